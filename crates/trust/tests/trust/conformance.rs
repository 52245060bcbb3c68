//! sigstore's conformance suite: every bundle is accepted or refused, and for the right reason.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mu_trust::{Evidence, OidcSigner, Roots, Signer, Subject, Verdict};

use crate::sha256;

/// Whose signatures the suite has, unless it says otherwise.
const ISSUER: &str = "https://token.actions.githubusercontent.com";
const SUBJECT: &str = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/\
                       extremely-dangerous-oidc-beacon.yml@refs/heads/main";

/// Those that are accepted.
const ACCEPTED: [&str; 21] = [
    "bundle-with-sct-with-extensions",
    "happy-path-intoto-in-dsse-v3",
    "happy-path-v0.1",
    "happy-path-v0.2",
    "happy-path-v0.3",
    "happy-path-v0.3-new-mediaType",
    "intoto-with-custom-trust-root",
    "managed-key-and-trusted-root",
    "managed-key-happy-path",
    "rekor2-checkpoint-cosigned",
    "rekor2-checkpoint-multiple-cosigs",
    "rekor2-checkpoint-origin-not-first",
    "rekor2-checkpoint-two-sigs-cosigned",
    "rekor2-checkpoint-two-sigs-from-origin",
    "rekor2-dsse-happy-path",
    "rekor2-happy-path",
    "rekor2-timestamp-with-embedded-cert",
    "rekor2-timestamp-with-expired-cert-chain",
    "rekor2-timestamp-without-embedded-cert",
    "trust-root-tlog-validity-end-inclusive",
    "trust-root-tsa-validity-end-inclusive",
];

/// Those that are refused, and why.
const REFUSED: [(&str, &str); 49] = [
    ("bundle-empty-certificate-chain_fail", "its chain is empty"),
    (
        "bundle-from-wrong-instance_fail",
        "sigstore-intermediate, which no root in trust.roots knows",
    ),
    ("bundle-invalid-base64-signature_fail", "the signature cannot be read"),
    ("bundle-malformed-json_fail", "the bundle cannot be read: EOF"),
    ("bundle-negative-log-index_fail", "`-1` is not a number from 0 up"),
    ("bundle-unknown-version_fail", "version=99.9` is not evidence that mu knows"),
    ("bundle-with-root-cert_fail", "its chain has a root"),
    ("checkpoint-bad-keyhint_fail", "the checkpoint is not by the log"),
    ("checkpoint-wrong-roothash_fail", "the checkpoint is of another tree"),
    ("dsse-invalid-sig_fail", "the entry of the log has another signature"),
    ("dsse-mismatch-envelope_fail", "the entry of the log is over something else"),
    ("dsse-mismatch-sig_fail", "the entry of the log has another signature"),
    ("inclusion-proof-corrupted-hash_fail", "the proof of the entry leads to another root"),
    ("incorrect-public-key_fail", "the log's timestamp of the entry is not by the log"),
    ("integrated-time-in-future_fail", "the certificate, at the proven time: it had expired"),
    (
        "intoto-expired-certificate_fail",
        "the certificate, at the proven time: it was not valid yet",
    ),
    ("intoto-log-entry-mismatch_fail", "the entry of the log has another"),
    ("intoto-missing-inclusion-proof_fail", "the entry is not proven to be in the log"),
    ("intoto-set-outside-signing-cert-validity_fail", "at the proven time: it had expired"),
    ("intoto-tsa-timestamp-outside-cert-validity_fail", "at the proven time: it had expired"),
    ("invalid-checkpoint-signature_fail", "the checkpoint is not by the log"),
    ("invalid-ct-key_fail", "does not know: update mu, or name a newer file in trust.roots"),
    ("invalid-inclusion-proof_fail", "the proof of the entry leads to another root"),
    ("managed-key-no-key_fail", "no signature by beacon"),
    ("managed-key-wrong-key_fail", "no signature by key"),
    ("message-digest-mismatch_fail", "it is over `sha256:a1cfc712"),
    ("rekor2-checkpoint-missing-log-signature_fail", "the checkpoint is not by the log"),
    ("rekor2-checkpoint-missing-origin_fail", "the checkpoint cannot be read"),
    ("rekor2-checkpoint-missing-root-hash_fail", "the checkpoint cannot be read"),
    ("rekor2-checkpoint-missing-size_fail", "the checkpoint cannot be read"),
    ("rekor2-checkpoint-no-matching-signature_fail", "the checkpoint is not by the log"),
    ("rekor2-dsse-invalid-sig_fail", "the entry of the log has another signature"),
    ("rekor2-dsse-mismatch-envelope_fail", "the entry of the log is over something else"),
    ("rekor2-dsse-mismatch-sig_fail", "the entry of the log has another signature"),
    ("rekor2-no-inclusion-proof_fail", "the entry is not proven to be in the log"),
    ("rekor2-no-timestamp_fail", "no time is proven"),
    ("rekor2-timestamp-outside-trust-root-tsa-validity_fail", "its authority was not trusted then"),
    ("rekor2-timestamp-outside-tsa-cert-validity_fail", "the timestamp: its certificate: "),
    ("rekor2-timestamp-payload-mismatch_fail", "the timestamp is over something else"),
    (
        "rekor2-timestamp-untrusted-tsa-with-embedded-cert_fail",
        "the authority of its timestamp, which",
    ),
    (
        "rekor2-timestamp-untrusted-tsa-without-embedded-cert_fail",
        "the authority of its timestamp, which",
    ),
    ("rekor2-timestamp-with-incorrect-time_fail", "at the proven time: it had expired"),
    ("set-invalid-signature_fail", "the log's timestamp of the entry is not by the log"),
    ("signature-mismatch_fail", "the entry of the log has another signature"),
    ("trust-root-tlog-missing-validity-start_fail", "a `validFor` has no `start`"),
    ("wrong-hashedrekord-artifact_fail", "the entry of the log is over something else"),
    ("wrong-hashedrekord-cert-and-sig_fail", "the entry of the log has another certificate"),
    ("wrong-hashedrekord-entry_fail", "the entry of the log has another certificate"),
    ("wrong-material_fail", "it is over `sha256:a0cfc712"),
];

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sigstore/bundle-verify")
}

/// What a folder of the suite holds, judged; an error where its root cannot be read.
fn judge(name: &str) -> Result<Verdict, String> {
    let folder = suite().join(name);
    let own = |file: &str| std::fs::read(folder.join(file)).ok();
    let text = |file: &str| own(file).map(|bytes| String::from_utf8(bytes).expect("it is text"));
    let artifact = own("artifact").or_else(|| std::fs::read(suite().join("a.txt")).ok());
    let artifact = artifact.expect("the suite has an artifact");
    let bundle = own("bundle.sigstore.json").expect("each folder has a bundle");
    let signer = match text("key.pub") {
        Some(key) => Signer::from_keys("key", &key).expect("it is a key"),
        None => {
            let issuer = text("issuer").unwrap_or(ISSUER.into()).trim().to_owned();
            let subject = text("identity").unwrap_or(SUBJECT.into()).trim().to_owned();
            Signer::oidc("beacon", OidcSigner { issuer, subject }).expect("both are there")
        }
    };
    let mut roots = Roots::none();
    match own("trusted_root.json") {
        Some(json) => roots.add(name, &json).map_err(|error| error.to_string())?,
        None => roots.add_sigstore(),
    }
    let subject =
        Subject::Content { sha256: sha256(&artifact), bytes: Some(&artifact), file: None };
    Ok(mu_trust::verify(&Evidence::Bundle(bundle), &subject, &[signer], &roots))
}

#[test]
fn each_bundle_is_judged_as_the_suite_says() {
    let entries = std::fs::read_dir(suite()).expect("the suite is there");
    let names = entries.map(|entry| entry.expect("it is an entry").file_name());
    let names = names.map(|name| name.into_string().expect("names are UTF-8"));
    let found: BTreeSet<String> = names.filter(|name| name != "a.txt").collect();
    let refused = REFUSED.iter().map(|(name, _)| *name);
    let listed: BTreeSet<String> = ACCEPTED.into_iter().chain(refused).map(str::to_owned).collect();
    assert_eq!(found, listed);
    assert_eq!(listed.len(), 70);

    let mut wrong = Vec::new();
    for name in ACCEPTED {
        assert!(!name.ends_with("_fail"));
        match judge(name) {
            Ok(verdict) if verdict.is_accepted() && verdict.verified().count() == 1 => {
                // Only an identity needs a time, and all of the suite's are from 2023 to 2026.
                let time = verdict.accepted[0].time;
                let is_keyless = !name.starts_with("managed-key");
                assert_eq!(time.is_some_and(|time| time > 1_672_531_200), is_keyless, "{name}");
            }
            other => wrong.push(format!("{name}: {other:?}")),
        }
    }
    for (name, why) in REFUSED {
        assert!(name.ends_with("_fail"));
        let words = match judge(name) {
            Ok(verdict) if verdict.is_accepted() => "accepted".to_owned(),
            Ok(verdict) => verdict.to_string(),
            Err(error) => error,
        };
        if !words.contains(why) {
            wrong.push(format!("{name}: {words}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn someone_else_is_refused_and_named() {
    let bundle = std::fs::read(suite().join("happy-path-v0.3/bundle.sigstore.json"));
    let bundle = Evidence::Bundle(bundle.expect("it is there"));
    let artifact = std::fs::read(suite().join("a.txt")).expect("it is there");
    let subject =
        Subject::Content { sha256: sha256(&artifact), bytes: Some(&artifact), file: None };
    for (issuer, subject_pattern, expected) in [
        (ISSUER, SUBJECT, true),
        (ISSUER, "https://github.com/sigstore-conformance/*", true),
        (ISSUER, "https://github.com/sigstore-conformance/", false),
        ("https://accounts.google.com", SUBJECT, false),
        ("https://token.actions.*", SUBJECT, false),
    ] {
        let oidc = OidcSigner { issuer: issuer.into(), subject: subject_pattern.into() };
        let signer = Signer::oidc("ci", oidc).expect("both are there");
        let verdict = mu_trust::verify(&bundle, &subject, &[signer], &Roots::sigstore());
        assert_eq!(verdict.is_accepted(), expected, "{issuer} {subject_pattern}: {verdict}");
        // Whoever is asked for, it is known who signed.
        assert_eq!(verdict.verified().count(), 1);
        assert!(expected || verdict.to_string().ends_with("oidc-beacon.yml, which is not `ci`"));
    }
    let nobody = mu_trust::verify(&bundle, &subject, &[], &Roots::none());
    assert_eq!(nobody.verified().count(), 0, "no root, no proof: {nobody}");
}

#[test]
fn keys_of_the_root_decide_and_not_their_ids() {
    let artifact = std::fs::read(suite().join("a.txt")).expect("it is there");
    let subject =
        Subject::Content { sha256: sha256(&artifact), bytes: Some(&artifact), file: None };
    let bundle = std::fs::read(suite().join("happy-path-v0.3/bundle.sigstore.json"));
    let bundle = Evidence::Bundle(bundle.expect("it is there"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/trusted_root.json");
    let root = std::fs::read(root).expect("it is compiled in");
    let root: serde_json::Value = serde_json::from_slice(&root).expect("it is JSON");
    let judge = |root: &serde_json::Value| {
        let mut roots = Roots::none();
        roots.add("changed", root.to_string().as_bytes()).expect("it is a root");
        mu_trust::verify(&bundle, &subject, &[], &roots)
    };
    assert_eq!(judge(&root).verified().count(), 1);

    let ended = serde_json::json!("2022-11-01T00:00:00Z");
    let other_key = root["ctlogs"][0]["publicKey"]["rawBytes"].clone();
    let other_chain = root["timestampAuthorities"][0]["certChain"].clone();
    for (at, value, why) in [
        (
            "/ctlogs/1/publicKey/rawBytes",
            other_key.clone(),
            "certificate log's timestamp is not by the log",
        ),
        (
            "/ctlogs/1/publicKey/validFor/end",
            ended.clone(),
            "certificate log's timestamp is not by the log",
        ),
        ("/tlogs/0/publicKey/rawBytes", other_key, "timestamp of the entry is not by the log"),
        (
            "/tlogs/0/publicKey/validFor/end",
            ended.clone(),
            "was not trusted when it took the entry in",
        ),
        ("/certificateAuthorities/1/certChain", other_chain, "which no root in trust.roots knows"),
        ("/certificateAuthorities/1/validFor/end", ended, "its issuer was not trusted then"),
    ] {
        let mut changed = root.clone();
        let (parent, key) = at.rsplit_once('/').expect("it is a path");
        changed.pointer_mut(parent).expect("it is there")[key] = value;
        let verdict = judge(&changed);
        assert_eq!(verdict.verified().count(), 0, "{at}");
        assert!(verdict.to_string().contains(why), "{at}: {verdict}");
    }
}
