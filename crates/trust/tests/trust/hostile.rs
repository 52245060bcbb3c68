//! Hostile input: real pieces with bytes changed, cut and repeated. Whatever they are, the answer is a verdict.

use std::path::Path;

use mu_trust::{Cosign, Evidence, EvidenceLine, GitKind, Roots, Signer, Subject};
use proptest::prelude::*;

use crate::sha256;

fn testdata(path: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    std::fs::read(folder.join(path)).expect("it is there")
}

fn bundle(name: &str) -> Vec<u8> {
    testdata(&format!("sigstore/bundle-verify/{name}/bundle.sigstore.json"))
}

/// One change of bytes: where it is in thousandths, what it writes, how many bytes it takes away.
fn changed(mut bytes: Vec<u8>, changes: &[(usize, Vec<u8>, usize)]) -> Vec<u8> {
    for (at, new, gone) in changes {
        let at = bytes.len() * at / 1000;
        let end = bytes.len().min(at + gone);
        bytes.splice(at..end, new.iter().copied());
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(usize, Vec<u8>, usize)>> {
    let byte =
        prop_oneof![any::<u8>(), Just(b'"'), Just(b'\n'), Just(b'A'), Just(b'-'), Just(b'0')];
    let new = proptest::collection::vec(byte, 0..3);
    proptest::collection::vec((0_usize..1000, new, 0_usize..3), 1..4)
}

/// Changes what each base64 text holds, so that the readers of the content are reached, too.
fn changed_inside(
    value: &mut serde_json::Value,
    changes: &[(usize, Vec<u8>, usize)],
    which: &mut usize,
) {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    match value {
        serde_json::Value::String(text) => {
            if let Ok(bytes) = BASE64.decode(&*text)
                && bytes.len() > 8
            {
                if *which == 0 {
                    *text = BASE64.encode(changed(bytes, changes));
                }
                *which = which.wrapping_sub(1);
            }
        }
        serde_json::Value::Array(all) => {
            all.iter_mut().for_each(|one| changed_inside(one, changes, which));
        }
        serde_json::Value::Object(all) => {
            all.values_mut().for_each(|one| changed_inside(one, changes, which));
        }
        _ => {}
    }
}

const BUNDLES: [&str; 6] = [
    "happy-path-v0.1",
    "happy-path-intoto-in-dsse-v3",
    "intoto-with-custom-trust-root",
    "managed-key-happy-path",
    "rekor2-happy-path",
    "rekor2-timestamp-with-embedded-cert",
];

fn judge(evidence: &Evidence) {
    let artifact = testdata("sigstore/bundle-verify/a.txt");
    let archive = testdata("trust/web-1.4.0.tgz");
    let pgp = String::from_utf8(testdata("trust/ada.asc")).expect("armour is text");
    let signers = [Signer::from_keys("ada", &pgp).expect("it is a key")];
    let mut roots = Roots::sigstore();
    for name in ["rekor2-happy-path", "intoto-with-custom-trust-root"] {
        let root = testdata(&format!("sigstore/bundle-verify/{name}/trusted_root.json"));
        roots.add(name, &root).expect("it is a root");
    }
    let id = "0".repeat(40);
    for subject in [
        Subject::Content { sha256: sha256(&artifact), bytes: Some(&artifact), file: None },
        Subject::Content { sha256: sha256(&archive), bytes: None, file: Some("web-1.4.0.tgz") },
        Subject::Commit { id: &id, tag: Some("v1") },
        Subject::Package { name: "web", version: "1", h1: "h1:" },
    ] {
        let verdict = mu_trust::verify(evidence, &subject, &signers, &roots);
        assert_eq!(verdict.is_accepted(), verdict.refusal.is_none());
        assert!(!verdict.to_string().is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn changed_bundles(which in 0..BUNDLES.len(), changes in changes()) {
        judge(&Evidence::Bundle(changed(bundle(BUNDLES[which]), &changes)));
    }

    #[test]
    fn bundles_with_changed_content(which in 0..BUNDLES.len(), at in 0_usize..40, changes in changes()) {
        let mut value = serde_json::from_slice(&bundle(BUNDLES[which])).expect("it is JSON");
        changed_inside(&mut value, &changes, &mut at.clone());
        judge(&Evidence::Bundle(value.to_string().into_bytes()));
    }

    #[test]
    fn changed_provenance_and_keys(changes in changes()) {
        let prov = changed(testdata("trust/web-1.4.0.tgz.prov"), &changes);
        judge(&Evidence::Prov(String::from_utf8_lossy(&prov).into_owned()));
        for file in ["trust/ada.asc", "sigstore/bundle-verify/managed-key-happy-path/key.pub"] {
            let key = changed(testdata(file), &changes);
            let _ = Signer::from_keys("ada", &String::from_utf8_lossy(&key));
        }
        let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0kxwTqZ5bYZzqZkqXb9bX8f7kqvXQXbP0qkZ0v9Y1a ada";
        let key = changed(line.into(), &changes);
        let _ = Signer::from_keys("ada", &String::from_utf8_lossy(&key));
    }

    #[test]
    fn changed_roots(changes in changes(), at in 0_usize..20) {
        let json = testdata("sigstore/bundle-verify/rekor2-happy-path/trusted_root.json");
        let mut value = serde_json::from_slice(&json).expect("it is JSON");
        changed_inside(&mut value, &changes, &mut at.clone());
        for root in [changed(json, &changes), value.to_string().into_bytes()] {
            let mut roots = Roots::none();
            if roots.add("changed", &root).is_ok() {
                let evidence = Evidence::Bundle(bundle("rekor2-happy-path"));
                let artifact = testdata("sigstore/bundle-verify/a.txt");
                let subject = Subject::Content { sha256: sha256(&artifact), bytes: Some(&artifact), file: None };
                let _ = mu_trust::verify(&evidence, &subject, &[], &roots);
            }
        }
    }

    #[test]
    fn changed_lines_and_objects(changes in changes(), text in "\\PC{0,80}") {
        let cosign = Cosign {
            payload: bundle("happy-path-v0.1"),
            signature: text.clone(),
            certificate: Some(text.clone()),
            rekor: Some(text.clone()),
            timestamp: Some(text.clone()),
            chain: None,
        };
        let object = format!("object {}\ntype commit\ntag v1\n\n-----BEGIN SSH SIGNATURE-----\n{text}", "0".repeat(40));
        for evidence in [
            Evidence::Cosign(cosign),
            Evidence::Prov(text.clone()),
            Evidence::Git { kind: GitKind::Tag, object: object.into_bytes() },
            Evidence::Git { kind: GitKind::Commit, object: text.clone().into_bytes() },
            Evidence::Sshsig(text.clone().into_bytes()),
        ] {
            judge(&evidence);
            let line = EvidenceLine { evidence, manifests: vec![vec![7]], package: Some(("a/b".into(), "1".into())) };
            let written = line.write().expect("it is no bundle");
            prop_assert_eq!(EvidenceLine::read(&written), Ok(line));
            let changed = changed(written.into_bytes(), &changes);
            for line in mu_trust::read_lines(&String::from_utf8_lossy(&changed)).flatten() {
                judge(&line.evidence);
            }
        }
    }
}

#[test]
fn a_line_that_cannot_be_read_hides_no_other_one() {
    let good = r#"{"prov": "text"}"#;
    let text = format!(
        "{{\n{good}\n\n{{\"log\": \"\", \"line\": {{}}}}\n{{}}\n{{\"prov\": \"\", \"git\": \"\"}}\n{good}\r\n"
    );
    let lines: Vec<_> = mu_trust::read_lines(&text).collect();
    let are_read: Vec<bool> = lines.iter().map(Result::is_ok).collect();
    assert_eq!(are_read, [false, true, false, false, false, true]);
    let large = format!(r#"{{"prov": "{}"}}"#, "a".repeat(mu_trust::MOST_BYTES + 1));
    assert!(matches!(EvidenceLine::read(&large), Err(mu_trust::Refusal::TooLarge { .. })));
}
