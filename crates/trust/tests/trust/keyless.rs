//! Signatures by identities of an instance of sigstore that `openssl` makes here: what the public one signs too rarely to be asked for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mu_testing::{SignedContent, Sigstore, Workflow, extension};
use mu_trust::{Cosign, Evidence, GithubSigner, Identity, Refusal, Roots, Signer, Verdict};
use serde_json::{Value, json};

use crate::{content, hex, sha256};

const MANIFEST: &[u8] = br#"{"schemaVersion": 2, "layers": []}"#;
const OWN: &str = "https://github.com/acme/charts/.github/workflows/release.yml@refs/tags/v1.4.0";
const SHARED: &str = "https://github.com/acme/shared/.github/workflows/release.yml@refs/heads/main";

/// The issuer of GitHub's workflows.
const GITHUB: &str = "https://token.actions.githubusercontent.com";

/// The lines of a certificate of the usual workflow.
fn usual_extensions() -> String {
    let name = format!("subjectAltName = critical,URI:{OWN}\n");
    let repository = extension(12, "https://github.com/acme/charts");
    format!("extendedKeyUsage = codeSigning\n{name}{}{repository}", extension(8, GITHUB))
}

/// The workflow that this repository runs for a tag.
fn workflow<'a>(subject: &'a str, repository: &'a str, id: &'a str) -> Workflow<'a> {
    Workflow { subject, repository, reference: "refs/tags/v1.4.0", id }
}

/// An instance whose signatures are of the usual workflow.
fn instance() -> Sigstore {
    let instance = Sigstore::new();
    instance.workflow(&workflow(OWN, "acme/charts", "7"));
    instance
}

/// A signature of cosign 2 over the manifest.
fn cosign(instance: &Sigstore) -> Cosign {
    let layer = instance.cosign(&format!("sha256:{}", hex(&sha256(MANIFEST))));
    Cosign {
        payload: layer.payload,
        signature: layer.signature,
        certificate: Some(layer.certificate),
        chain: Some(layer.chain),
        rekor: Some(layer.rekor),
        timestamp: None,
    }
}

/// A bundle over the manifest, whose time is a token.
fn bundle(instance: &Sigstore) -> Value {
    instance.bundle("0.3", SignedContent::Bytes(MANIFEST))
}

fn roots<'a>(all: impl IntoIterator<Item = &'a Value>) -> Roots {
    let mut roots = Roots::none();
    for root in all {
        roots.add("acme", root.to_string().as_bytes()).expect("it is a root");
    }
    roots
}

fn judged(evidence: &Evidence, signers: &[Signer], roots: &Roots) -> Verdict {
    mu_trust::verify(evidence, &content(MANIFEST), signers, roots)
}

fn bundled(bundle: &Value) -> Evidence {
    Evidence::Bundle(bundle.to_string().into_bytes())
}

fn signer(workflow: Option<&str>, reference: Option<&str>, id: Option<&str>) -> Signer {
    let [workflow, reference, id] = [workflow, reference, id].map(|part| part.map(str::to_owned));
    let github = GithubSigner { repository: "acme/charts".into(), workflow, reference, id };
    Signer::github("acme-ci", github).expect("it is a workflow")
}

#[test]
fn cosign_2_by_an_identity() {
    let instance = instance();
    let roots = roots([&instance.root()]);
    let good = cosign(&instance);
    let signers = [signer(Some("release.yml"), Some("refs/tags/*"), Some("7"))];
    let verdict = judged(&Evidence::Cosign(good.clone()), &signers, &roots);
    let [accepted] = verdict.accepted.as_slice() else { panic!("{verdict}") };
    assert_eq!(accepted.identity.to_string(), "github:acme/charts/.github/workflows/release.yml");
    assert!(accepted.time.is_some());
    assert_eq!(verdict.signed[0].reference.as_deref(), Some("refs/tags/v1.4.0"));

    // A token beside the promise must verify, too.
    let signature = BASE64.decode(&good.signature).expect("it is base64");
    for (signed, is_right) in [(&signature[..], true), (b"other", false)] {
        let token = BASE64.encode(instance.token(signed, "-sha512"));
        let timestamp = Some(json!({"SignedRFC3161Timestamp": token}).to_string());
        let evidence = Evidence::Cosign(Cosign { timestamp, ..good.clone() });
        assert_eq!(judged(&evidence, &signers, &roots).is_accepted(), is_right);
    }
    // Without the promise there is neither a time nor a log.
    for (changed, why) in [
        (Cosign { rekor: None, ..good.clone() }, "no time is proven"),
        (Cosign { certificate: None, ..good.clone() }, "no signature by acme-ci"),
        (
            Cosign {
                rekor: good
                    .rekor
                    .as_ref()
                    .map(|text| text.replace("\"logIndex\":7", "\"logIndex\":8")),
                ..good.clone()
            },
            "timestamp of the entry is not by the log",
        ),
        (
            Cosign { signature: BASE64.encode(instance.sign("ca", &good.payload)), ..good.clone() },
            "another signature",
        ),
    ] {
        let verdict = judged(&Evidence::Cosign(changed), &signers, &roots);
        assert!(!verdict.is_accepted() && verdict.to_string().contains(why), "{why}: {verdict}");
    }
    // A token alone is no log.
    let token = BASE64.encode(instance.token(&signature, "-sha256"));
    let timestamp = Some(json!({"SignedRFC3161Timestamp": token}).to_string());
    let verdict =
        judged(&Evidence::Cosign(Cosign { rekor: None, timestamp, ..good }), &signers, &roots);
    assert!(verdict.to_string().contains("no entry of a log"), "{verdict}");
}

#[test]
fn bundles_with_a_token_and_a_proof() {
    let instance = instance();
    let roots = roots([&instance.root()]);
    let signers = [signer(None, None, None)];
    let good = bundle(&instance);
    let signature = good["messageSignature"]["signature"].as_str().expect("it is text");
    let signature = BASE64.decode(signature).expect("it is base64");
    for hash in ["-sha256", "-sha384", "-sha512"] {
        let mut bundle = good.clone();
        let token = BASE64.encode(instance.token(&signature, hash));
        bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"][0] =
            json!({"signedTimestamp": token});
        let verdict = judged(&bundled(&bundle), &signers, &roots);
        assert!(verdict.is_accepted(), "{hash}: {verdict}");
    }
    // Whatever is taken away or changed, it is refused.
    let entry = "/verificationMaterial/tlogEntries/0";
    for (at, value) in [
        ("/verificationMaterial/tlogEntries".to_owned(), json!([])),
        ("/verificationMaterial/timestampVerificationData".to_owned(), Value::Null),
        (format!("{entry}/inclusionProof"), Value::Null),
        (format!("{entry}/inclusionProof/logIndex"), json!("0")),
        (format!("{entry}/inclusionProof/treeSize"), json!("3")),
        (format!("{entry}/inclusionProof/hashes"), json!([])),
        (format!("{entry}/kindVersion/kind"), json!("dsse")),
        (format!("{entry}/logId/keyId"), json!("AAAA")),
        (
            "/messageSignature/signature".to_owned(),
            json!(BASE64.encode(instance.sign("leaf", MANIFEST))),
        ),
    ] {
        let mut changed = good.clone();
        *changed.pointer_mut(&at).expect("it is there") = value;
        let verdict = judged(&bundled(&changed), &signers, &roots);
        assert!(!verdict.is_accepted() && verdict.refusal.is_some(), "{at}");
    }
    // An older bundle's promise may stand for a proof, a missing one may not.
    let mut old = good;
    old["mediaType"] = json!("application/vnd.dev.sigstore.bundle+json;version=0.1");
    old["verificationMaterial"]["tlogEntries"][0]["inclusionProof"] = Value::Null;
    assert!(!judged(&bundled(&old), &signers, &roots).is_accepted());
    for (version, is_enough) in [("0.1", true), ("0.2", false)] {
        let digest = format!("sha256:{}", hex(&sha256(MANIFEST)));
        let statement = SignedContent::Statement(&digest, "https://slsa.dev/provenance/v1");
        for content in [SignedContent::Bytes(MANIFEST), statement] {
            let mut promised = instance.bundle(version, content);
            assert!(judged(&bundled(&promised), &signers, &roots).is_accepted(), "{version}");
            promised["verificationMaterial"]["tlogEntries"][0]["inclusionProof"] = Value::Null;
            let verdict = judged(&bundled(&promised), &signers, &roots);
            assert_eq!(verdict.is_accepted(), is_enough, "{version}: {verdict}");
        }
    }
}

#[test]
fn reusable_workflows_and_renamed_repositories() {
    let instance = Sigstore::new();
    let shared = "acme/shared/.github/workflows/release.yml";
    instance.workflow(&workflow(SHARED, "acme/charts", "7"));
    let reusable = bundled(&bundle(&instance));
    let roots = roots([&instance.root()]);
    let verdict = judged(&reusable, &[signer(Some(shared), None, None)], &roots);
    let identity = Identity::Github { repository: "acme/charts".into(), workflow: shared.into() };
    assert_eq!(verdict.accepted.first().map(|accepted| &accepted.identity), Some(&identity));
    for other in [signer(None, None, None), signer(Some("release.yml"), None, None)] {
        assert!(!judged(&reusable, &[other], &roots).is_accepted());
    }
    // The same shared workflow, run by somebody else's repository.
    instance.workflow(&workflow(SHARED, "eve/charts", "9"));
    let foreign = bundled(&bundle(&instance));
    assert!(!judged(&foreign, &[signer(Some(shared), None, None)], &roots).is_accepted());

    // Somebody else got the name of the repository.
    instance
        .workflow(&Workflow { reference: "refs/heads/main", ..workflow(OWN, "acme/charts", "9") });
    let renamed = bundled(&bundle(&instance));
    let verdict = judged(&renamed, &[signer(None, None, Some("7"))], &roots);
    let who = "github:acme/charts/.github/workflows/release.yml";
    assert_eq!(
        verdict.to_string(),
        format!("signed by {who} of repository 9, which is not `acme-ci`")
    );
    let verdict = judged(&renamed, &[signer(None, Some("refs/tags/*"), None)], &roots);
    assert_eq!(
        verdict.to_string(),
        format!("signed by {who} for refs/heads/main, which is not `acme-ci`")
    );
}

#[test]
fn the_root_that_issued_the_certificate_decides() {
    let instance = instance();
    let bundle = bundled(&bundle(&instance));
    let signers = [signer(None, None, None)];
    let newer = instance.root();

    // An older root does not know the log, or the authority of times, and says so.
    for (part, why) in
        [("tlogs", "log.acme.com"), ("timestampAuthorities", "the authority of its timestamp")]
    {
        let mut older = newer.clone();
        older[part] = json!([]);
        let verdict = judged(&bundle, &signers, &roots([&older]));
        let words = format!(
            "signed with {why}, which the root `acme` of 2020-01-01 does not know: update mu, or name a newer file in trust.roots"
        );
        assert_eq!(verdict.to_string(), words);
        assert!(judged(&bundle, &signers, &roots([&older, &newer])).is_accepted());
        assert!(judged(&bundle, &signers, &roots([&newer, &older])).is_accepted());
    }
    // The public instance's logs vouch for nothing of another one.
    let verdict = judged(&bundle, &signers, &Roots::sigstore());
    assert!(
        matches!(verdict.refusal, Some(Refusal::RootDoesNotKnow { root: None, .. })),
        "{verdict}"
    );
    let other = Sigstore::new();
    let verdict = judged(&bundle, &signers, &roots([&other.root()]));
    assert!(
        matches!(verdict.refusal, Some(Refusal::RootDoesNotKnow { root: None, .. })),
        "{verdict}"
    );

    // Times outside of what the root trusts.
    for (part, why) in [
        ("/certificateAuthorities/0/validFor", "its issuer was not trusted then"),
        ("/timestampAuthorities/0/validFor", "its authority was not trusted then"),
        ("/tlogs/0/publicKey/validFor", "the log was not trusted then"),
    ] {
        let mut ended = newer.clone();
        ended.pointer_mut(part).expect("it is there")["end"] = json!("2021-01-01T00:00:00Z");
        let verdict = judged(&bundle, &signers, &roots([&ended]));
        assert!(!verdict.is_accepted() && verdict.to_string().contains(why), "{verdict}");
    }
}

#[test]
fn a_certificate_is_in_a_log_that_the_root_names() {
    let instance = instance();
    let root = instance.root();
    let extensions = usual_extensions();
    for (log, why) in [
        (Some("ctlog"), None),
        (Some("log"), Some("the certificate log's timestamp is not by the log")),
        (None, Some("no certificate log has its certificate")),
    ] {
        instance.certify("ca", &extensions, log);
        let bundle = bundled(&bundle(&instance));
        let verdict = judged(&bundle, &[signer(None, None, None)], &roots([&root]));
        assert_eq!(verdict.is_accepted(), why.is_none(), "{log:?}: {verdict}");
        assert!(verdict.to_string().contains(why.unwrap_or("signed by")), "{log:?}: {verdict}");
        // Without logs of certificates, a root asks for none.
        let mut without = root.clone();
        without["ctlogs"] = json!([]);
        assert!(judged(&bundle, &[signer(None, None, None)], &roots([&without])).is_accepted());
    }
    // A root that does not know the log says so.
    instance.certify("ca", &extensions, Some("ctlog"));
    let mut other = root;
    other["ctlogs"] = other["tlogs"].clone();
    let verdict = judged(&bundled(&bundle(&instance)), &[], &roots([&other]));
    assert!(verdict.to_string().contains("signed with the certificate log "), "{verdict}");
    assert!(verdict.to_string().contains("update mu, or name a newer file"), "{verdict}");
}

#[test]
fn certificates_for_something_else_sign_nothing() {
    let instance = Sigstore::new();
    let san = format!("subjectAltName = critical,URI:{OWN}\n");
    let issuer = extension(8, GITHUB);
    for (extensions, why) in [
        (format!("extendedKeyUsage = serverAuth\n{san}{issuer}"), "it is for another purpose"),
        (format!("extendedKeyUsage = codeSigning\n{issuer}"), "the certificate cannot be read"),
        (format!("extendedKeyUsage = codeSigning\n{san}"), "the certificate cannot be read"),
    ] {
        instance.certify("ca", &extensions, Some("ctlog"));
        let verdict = judged(
            &bundled(&bundle(&instance)),
            &[signer(None, None, None)],
            &roots([&instance.root()]),
        );
        assert!(!verdict.is_accepted() && verdict.to_string().contains(why), "{why}: {verdict}");
    }
    // A certificate of the authority of times is none of the authority of certificates.
    instance.certify("tsca", &usual_extensions(), Some("ctlog"));
    let verdict = judged(
        &bundled(&bundle(&instance)),
        &[signer(None, None, None)],
        &roots([&instance.root()]),
    );
    assert!(
        matches!(verdict.refusal, Some(Refusal::RootDoesNotKnow { root: None, .. })),
        "{verdict}"
    );
}
