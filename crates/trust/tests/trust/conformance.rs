//! sigstore's conformance suite: every bundle is accepted or refused, and for the right reason.

use std::path::Path;

use mu_trust::{Evidence, Refusal, Roots, Signer, SignerError, Subject, Verdict};

use crate::sha256;

/// What a folder of the suite holds, judged.
fn judge(name: &str) -> Result<Verdict, SignerError> {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sigstore/bundle-verify");
    let folder = suite.join(name);
    let own = |file: &str| std::fs::read(folder.join(file)).ok();
    let artifact = own("artifact").or_else(|| std::fs::read(suite.join("a.txt")).ok());
    let artifact = artifact.expect("the suite has an artifact");
    let bundle = own("bundle.sigstore.json").expect("each folder has a bundle");
    let key = own("key.pub").map(|key| String::from_utf8(key).expect("PEM is text"));
    let signers = key.map(|key| Signer::from_keys("key", &key)).transpose()?;
    let subject =
        Subject::Content { sha256: sha256(&artifact), bytes: Some(&artifact), file: None };
    let signers = signers.into_iter().collect::<Vec<_>>();
    Ok(mu_trust::verify(&Evidence::Bundle(bundle), &subject, &signers, &Roots::none()))
}

#[test]
fn managed_keys() {
    for name in ["managed-key-happy-path", "managed-key-and-trusted-root"] {
        assert!(judge(name).is_ok_and(|verdict| verdict.is_accepted()), "{name}");
    }
    let no_key = judge("managed-key-no-key_fail").expect("it has no key");
    assert!(matches!(no_key.refusal, Some(Refusal::NoneOfThese { .. })), "{no_key}");
    // Its base64 has bits behind its end, which two readers could take for two texts.
    let wrong_key = judge("managed-key-wrong-key_fail").expect_err("its key cannot be read");
    assert!(matches!(wrong_key, SignerError::Key { .. }), "{wrong_key}");
}
