//! Signatures by keys in PEM, which `openssl` makes: cosign 2, and bundles over bytes and statements.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mu_trust::{Cosign, Evidence, EvidenceLine, Identity, Refusal, Signer, Subject};
use serde_json::json;

use crate::{content, hex, judge, run, sha256};

/// How `openssl genpkey` is told of a kind of key, and `openssl dgst` of its hash.
const KINDS: [(&str, &[&str], &str); 5] = [
    ("p256", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], "-sha256"),
    ("p384", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"], "-sha384"),
    ("p384-sha256", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"], "-sha256"),
    ("ed25519", &["-algorithm", "ED25519"], ""),
    ("rsa", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "-sha256"),
];

/// A key that `openssl` made in a folder, and the hash that it signs with.
struct Key<'a> {
    folder: &'a Path,
    name: &'static str,
    hash: &'static str,
}

impl<'a> Key<'a> {
    fn generate(
        folder: &'a Path,
        (name, arguments, hash): (&'static str, &[&str], &'static str),
    ) -> Self {
        let private = format!("{name}.pem");
        run(folder, "openssl", &[&["genpkey", "-out", &private], arguments].concat());
        Self { folder, name, hash }
    }

    fn public(&self) -> String {
        let private = format!("{}.pem", self.name);
        let pem = run(self.folder, "openssl", &["pkey", "-in", &private, "-pubout"]);
        String::from_utf8(pem).expect("PEM is text")
    }

    fn signer(&self) -> Signer {
        Signer::from_keys(self.name, &self.public()).expect("openssl writes public keys")
    }

    fn sign(&self, message: &[u8]) -> String {
        std::fs::write(self.folder.join("message"), message).expect("the folder is writable");
        let private = format!("{}.pem", self.name);
        let arguments: &[&str] = if self.hash.is_empty() {
            &["pkeyutl", "-sign", "-rawin", "-inkey", &private, "-in", "message"]
        } else {
            &["dgst", self.hash, "-sign", &private, "message"]
        };
        BASE64.encode(run(self.folder, "openssl", arguments))
    }
}

const MANIFEST: &[u8] = br#"{"schemaVersion": 2, "layers": []}"#;

fn payload(kind: &str, manifest: &[u8]) -> Vec<u8> {
    let digest = format!("sha256:{}", hex(&sha256(manifest)));
    let image = json!({"docker-manifest-digest": digest});
    let identity = json!({"docker-reference": "elsewhere.example.com/web"});
    let critical = json!({"identity": identity, "image": image, "type": kind});
    json!({"critical": critical, "optional": null}).to_string().into_bytes()
}

fn cosign(key: &Key<'_>) -> Cosign {
    let payload = payload("cosign container image signature", MANIFEST);
    let signature = key.sign(&payload);
    Cosign::from_layer(payload, |name| {
        (name == "dev.cosignproject.cosign/signature").then_some(signature.as_str())
    })
    .expect("it has a signature")
}

fn bundle(content: (&str, serde_json::Value)) -> Evidence {
    let mut bundle = json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": ""}},
    });
    bundle[content.0] = content.1;
    Evidence::Bundle(bundle.to_string().into_bytes())
}

fn envelope(key: &Key<'_>, payload_type: &str, statement: &serde_json::Value) -> Evidence {
    let statement = statement.to_string();
    let pae =
        format!("DSSEv1 {} {payload_type} {} {statement}", payload_type.len(), statement.len());
    let signatures = json!([{"sig": key.sign(pae.as_bytes())}]);
    let payload = BASE64.encode(&statement);
    let envelope =
        json!({"payload": payload, "payloadType": payload_type, "signatures": signatures});
    bundle(("dsseEnvelope", envelope))
}

fn statement(predicate: &str, manifest: &[u8]) -> serde_json::Value {
    let subject =
        json!([{"digest": {"sha512": "0"}}, {"digest": {"sha256": hex(&sha256(manifest))}}]);
    json!({"_type": "https://in-toto.io/Statement/v1", "subject": subject, "predicateType": predicate,
           "predicate": {}})
}

const IN_TOTO: &str = "application/vnd.in-toto+json";
const SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

#[test]
fn each_kind_of_key_signs_each_form() {
    let folder = tempfile::tempdir().expect("there is room");
    let keys = KINDS.map(|kind| Key::generate(folder.path(), kind));
    let signers: Vec<Signer> = keys.iter().map(Key::signer).collect();
    for (at, key) in keys.iter().enumerate() {
        let message = json!({"signature": key.sign(MANIFEST), "messageDigest":
            {"algorithm": "SHA2_256", "digest": BASE64.encode(sha256(MANIFEST))}});
        for evidence in [
            Evidence::Cosign(cosign(key)),
            bundle(("messageSignature", message)),
            envelope(key, IN_TOTO, &statement(SIGN, MANIFEST)),
        ] {
            let verdict = judge(&evidence, &content(MANIFEST), &signers);
            let [accepted] = verdict.accepted.as_slice() else { panic!("{}: {verdict}", key.name) };
            assert_eq!((&*accepted.signer, accepted.time), (key.name, None));
            assert_eq!(vec![accepted.identity.clone()], signers[at].identities());
            assert_eq!(verdict.verified().count(), 1);

            // A line carries it whole.
            let manifests = vec![MANIFEST.to_vec()];
            let line = EvidenceLine { evidence, manifests, package: None };
            let read =
                EvidenceLine::read(&line.write().expect("it is JSON")).expect("it is a line");
            assert!(judge(&read.evidence, &content(MANIFEST), &signers).is_accepted());
            assert_eq!(read.manifests, line.manifests);

            let others: Vec<Signer> =
                signers.iter().filter(|one| one.name() != key.name).cloned().collect();
            let verdict = judge(&line.evidence, &content(MANIFEST), &others);
            assert!(matches!(verdict.refusal, Some(Refusal::NoneOfThese { .. })), "{verdict}");
            assert_eq!(verdict.to_string().split(' ').next(), Some("no"), "{verdict}");
        }
    }
}

#[test]
fn the_identity_of_a_key_is_the_hash_of_what_openssl_writes() {
    let folder = tempfile::tempdir().expect("there is room");
    for kind in KINDS {
        let key = Key::generate(folder.path(), kind);
        let private = format!("{}.pem", key.name);
        let der =
            run(folder.path(), "openssl", &["pkey", "-in", &private, "-pubout", "-outform", "DER"]);
        assert_eq!(key.signer().identities(), [Identity::Key(hex(&sha256(&der)))]);
    }
}

#[test]
fn any_changed_byte_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let key = Key::generate(folder.path(), KINDS[0]);
    let signers = [key.signer()];
    let good = cosign(&key);
    assert!(judge(&Evidence::Cosign(good.clone()), &content(MANIFEST), &signers).is_accepted());
    for at in 0..good.payload.len() {
        let mut changed = good.clone();
        changed.payload[at] ^= 1;
        let verdict = judge(&Evidence::Cosign(changed), &content(MANIFEST), &signers);
        assert!(!verdict.is_accepted() && verdict.refusal.is_some(), "byte {at}");
    }
    let signature = BASE64.decode(&good.signature).expect("it is base64");
    for at in 0..signature.len() {
        let mut changed = signature.clone();
        changed[at] ^= 1;
        let changed = Cosign { signature: BASE64.encode(changed), ..good.clone() };
        assert!(!judge(&Evidence::Cosign(changed), &content(MANIFEST), &signers).is_accepted());
    }
    for at in 0..MANIFEST.len() {
        let mut changed = MANIFEST.to_vec();
        changed[at] ^= 1;
        let verdict = judge(&Evidence::Cosign(good.clone()), &content(&changed), &signers);
        assert!(matches!(verdict.refusal, Some(Refusal::OtherSubject { .. })), "{verdict}");
    }
}

#[test]
fn what_speaks_of_something_else_vouches_for_nothing() {
    let folder = tempfile::tempdir().expect("there is room");
    let key = Key::generate(folder.path(), KINDS[0]);
    let signers = [key.signer()];
    let refusal = |evidence: &Evidence, subject: &Subject<'_>| {
        let verdict = judge(evidence, subject, &signers);
        assert!(!verdict.is_accepted());
        verdict.refusal.expect("it is refused")
    };
    // A scan is signed by the same key, about the same digest.
    let scan = envelope(
        &key,
        IN_TOTO,
        &statement("https://cosign.sigstore.dev/attestation/vuln/v1", MANIFEST),
    );
    assert!(
        matches!(refusal(&scan, &content(MANIFEST)), Refusal::UnknownKind { kind } if kind.contains("vuln"))
    );
    let other_type = envelope(&key, "application/json", &statement(SIGN, MANIFEST));
    assert!(matches!(refusal(&other_type, &content(MANIFEST)), Refusal::UnknownKind { .. }));
    let other = envelope(&key, IN_TOTO, &statement(SIGN, b"other"));
    assert!(matches!(refusal(&other, &content(MANIFEST)), Refusal::OtherSubject { .. }));
    let payload = payload("something else", MANIFEST);
    let signature = key.sign(&payload);
    let other_payload = Evidence::Cosign(Cosign { payload, signature, ..Cosign::default() });
    assert!(matches!(refusal(&other_payload, &content(MANIFEST)), Refusal::UnknownKind { .. }));

    // A signature over bytes needs them, and they must be the subject.
    let over_bytes = bundle(("messageSignature", json!({"signature": key.sign(MANIFEST)})));
    let absent = Subject::Content { sha256: sha256(MANIFEST), bytes: None, file: None };
    assert_eq!(refusal(&over_bytes, &absent), Refusal::BytesNeeded);
    let false_digest = Subject::Content { sha256: [0; 32], bytes: Some(MANIFEST), file: None };
    assert!(matches!(refusal(&over_bytes, &false_digest), Refusal::OtherSubject { .. }));
    let commit = Subject::Commit { id: &"0".repeat(40), tag: None };
    assert!(matches!(refusal(&over_bytes, &commit), Refusal::OtherSubject { .. }));

    // Two signatures, two contents, and more than is read.
    let two =
        json!({"payload": "", "payloadType": IN_TOTO, "signatures": [{"sig": ""}, {"sig": ""}]});
    assert!(matches!(
        refusal(&bundle(("dsseEnvelope", two)), &content(MANIFEST)),
        Refusal::Unreadable { .. }
    ));
    let large = Evidence::Bundle(vec![b' '; mu_trust::MOST_BYTES + 1]);
    assert!(matches!(refusal(&large, &content(MANIFEST)), Refusal::TooLarge { .. }));
}

#[test]
fn a_hint_says_whose_signature_it_ought_to_be() {
    let folder = tempfile::tempdir().expect("there is room");
    let key = Key::generate(folder.path(), KINDS[0]);
    let private = "p256.pem";
    let spki =
        run(folder.path(), "openssl", &["pkey", "-in", private, "-pubout", "-outform", "DER"]);
    let evidence = json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": BASE64.encode(sha256(&spki))}},
        "messageSignature": {"signature": key.sign(b"other")},
    });
    let evidence = Evidence::Bundle(evidence.to_string().into_bytes());
    let verdict = judge(&evidence, &content(MANIFEST), &[key.signer()]);
    assert!(matches!(verdict.refusal, Some(Refusal::DoesNotVerify { .. })), "{verdict}");
    assert_eq!(verdict.verified().count(), 0);
}

#[test]
fn weak_and_private_keys_are_no_signers() {
    let folder = tempfile::tempdir().expect("there is room");
    for (kind, why) in [
        (
            ("short", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"][..], ""),
            "1024 bits",
        ),
        (
            ("p521", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"], ""),
            "neither P-256",
        ),
        (("ed448", &["-algorithm", "ED448"], ""), "neither P-256"),
    ] {
        let key = Key::generate(folder.path(), kind);
        let error = Signer::from_keys("acme", &key.public()).expect_err("it is refused");
        assert!(error.to_string().contains(why), "{error}");
        let private = std::fs::read_to_string(folder.path().join(format!("{}.pem", key.name)));
        let error = Signer::from_keys("acme", &private.expect("it is there")).expect_err("no");
        assert_eq!(error, mu_trust::SignerError::Private);
    }
    let options =
        ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "compressed.pem"];
    run(folder.path(), "openssl", &[&["genpkey"][..], &options].concat());
    let options = ["-in", "compressed.pem", "-pubout", "-ec_conv_form", "compressed"];
    let public = run(folder.path(), "openssl", &[&["pkey"][..], &options].concat());
    let error = Signer::from_keys("acme", &String::from_utf8_lossy(&public)).expect_err("no");
    assert!(error.to_string().contains("its point is compressed"), "{error}");
    for text in [
        "",
        "hello",
        "-----BEGIN PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\n?\n-----END PUBLIC KEY-----",
    ] {
        assert!(Signer::from_keys("acme", text).is_err(), "{text}");
    }
    let long = " ".repeat(mu_trust::MOST_KEY_BYTES + 1);
    assert_eq!(Signer::from_keys("acme", &long), Err(mu_trust::SignerError::TooLarge));
}

#[test]
fn one_file_may_hold_two_keys() {
    let folder = tempfile::tempdir().expect("there is room");
    let old = Key::generate(folder.path(), KINDS[0]);
    let new = Key::generate(folder.path(), KINDS[3]);
    let text = format!("# rotated\n{}\n{}", old.public(), new.public());
    let signer = Signer::from_keys("acme", &text).expect("both are read");
    for key in [&old, &new] {
        let verdict = judge(
            &Evidence::Cosign(cosign(key)),
            &content(MANIFEST),
            std::slice::from_ref(&signer),
        );
        assert_eq!(
            verdict.accepted.first().map(|one| &one.identity),
            key.signer().identities().first()
        );
    }
}
