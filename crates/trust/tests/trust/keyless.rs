//! Signatures by identities of an instance of sigstore that `openssl` makes here: what the public one signs too rarely to be asked for.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mu_trust::{Cosign, Evidence, GithubSigner, Identity, Refusal, Roots, Signer, Verdict};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{content, hex, run, sha256};

const MANIFEST: &[u8] = br#"{"schemaVersion": 2, "layers": []}"#;
const OWN: &str = "https://github.com/acme/charts/.github/workflows/release.yml@refs/tags/v1.4.0";
const SHARED: &str = "https://github.com/acme/shared/.github/workflows/release.yml@refs/heads/main";

/// An authority that issues certificates, one that signs times, and a log.
struct Instance {
    folder: TempDir,
}

impl Instance {
    fn new() -> Self {
        let instance = Self { folder: tempfile::tempdir().expect("there is room") };
        for (name, section) in [("ca", "code"), ("tsca", "time")] {
            instance.write("subject", "[req]\ndistinguished_name = name\n[name]\n");
            instance.key(name);
            let subject = format!("/O=acme/CN=acme {section}");
            instance.openssl(&[
                "req",
                "-x509",
                "-new",
                "-key",
                &format!("{name}.key"),
                "-subj",
                &subject,
                "-days",
                "30",
                "-config",
                "subject",
                "-addext",
                "basicConstraints=critical,CA:TRUE",
                "-out",
                &format!("{name}.pem"),
            ]);
        }
        instance.key("log");
        instance.certificate("ts", "tsca", "extendedKeyUsage = critical,timeStamping\n");
        instance.write("serial", "01\n");
        instance.write(
            "ts.cnf",
            "[tsa]\ndefault_tsa = own\n[own]\nserial = serial\ndefault_policy = 1.2.3.4\ndigests = sha256, sha384, sha512\n\
             signer_digest = sha256\ness_cert_id_alg = sha256\n",
        );
        instance
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), bytes).expect("the folder is writable");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).expect("it is there")
    }

    fn openssl(&self, arguments: &[&str]) -> Vec<u8> {
        run(self.path(), "openssl", arguments)
    }

    fn key(&self, name: &str) {
        let file = format!("{name}.key");
        self.openssl(&[
            "genpkey",
            "-algorithm",
            "EC",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-out",
            &file,
        ]);
    }

    /// Makes a key, and a certificate of it for a day.
    fn certificate(&self, name: &str, authority: &str, extensions: &str) {
        self.key(name);
        let [key, request, pem, ca, ca_key] = [
            format!("{name}.key"),
            format!("{name}.csr"),
            format!("{name}.pem"),
            format!("{authority}.pem"),
            format!("{authority}.key"),
        ];
        self.openssl(&[
            "req", "-new", "-key", &key, "-subj", "/", "-config", "subject", "-out", &request,
        ]);
        self.write("extensions", format!("basicConstraints = critical,CA:FALSE\n{extensions}"));
        self.openssl(&[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            &ca,
            "-CAkey",
            &ca_key,
            "-CAcreateserial",
            "-days",
            "1",
            "-extfile",
            "extensions",
            "-out",
            &pem,
        ]);
    }

    /// The certificate of a workflow.
    fn workflow(&self, subject: &str, repository: &str, reference: &str, id: &str) {
        let text = |number: &str, text: &str| {
            format!("1.3.6.1.4.1.57264.1.{number} = ASN1:UTF8String:{text}\n")
        };
        let extensions = [
            format!("extendedKeyUsage = codeSigning\nsubjectAltName = critical,URI:{subject}\n"),
            text("8", "https://token.actions.githubusercontent.com"),
            text("12", &format!("https://github.com/{repository}")),
            text("14", reference),
            text("15", id),
        ];
        self.certificate("leaf", "ca", &extensions.concat());
    }

    fn der(&self, name: &str) -> Vec<u8> {
        self.openssl(&["x509", "-in", &format!("{name}.pem"), "-outform", "DER"])
    }

    fn log_spki(&self) -> Vec<u8> {
        self.openssl(&["pkey", "-in", "log.key", "-pubout", "-outform", "DER"])
    }

    fn sign(&self, key: &str, message: &[u8]) -> Vec<u8> {
        self.write("message", message);
        self.openssl(&["dgst", "-sha256", "-sign", &format!("{key}.key"), "message"])
    }

    /// A token of RFC 3161 over bytes.
    fn token(&self, bytes: &[u8], hash: &str) -> Vec<u8> {
        self.write("signed", bytes);
        self.openssl(&["ts", "-query", "-data", "signed", hash, "-cert", "-out", "query"]);
        self.openssl(&[
            "ts",
            "-reply",
            "-queryfile",
            "query",
            "-signer",
            "ts.pem",
            "-inkey",
            "ts.key",
            "-config",
            "ts.cnf",
            "-out",
            "reply",
        ]);
        self.read("reply")
    }

    /// When the certificate of the workflow began.
    fn now(&self) -> i64 {
        let now = run(self.path(), "date", &["+%s"]);
        String::from_utf8(now).expect("it is text").trim().parse().expect("it is a number")
    }

    fn root(&self) -> Value {
        let valid = json!({"start": "2020-01-01T00:00:00Z"});
        let chain =
            |name: &str| json!({"certificates": [{"rawBytes": BASE64.encode(self.der(name))}]});
        let spki = self.log_spki();
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "certificateAuthorities": [{"certChain": chain("ca"), "validFor": valid}],
            "timestampAuthorities": [{"certChain": chain("tsca"), "validFor": valid}],
            "tlogs": [{"publicKey": {"rawBytes": BASE64.encode(&spki), "validFor": valid},
                       "logId": {"keyId": BASE64.encode(sha256(&spki))}}],
        })
    }

    fn roots(&self) -> Roots {
        roots([&self.root()])
    }

    /// A signature of cosign 2, with the log's promise.
    fn cosign(&self) -> Cosign {
        let digest = format!("sha256:{}", hex(&sha256(MANIFEST)));
        let payload = json!({"critical": {"identity": {"docker-reference": ""}, "image":
            {"docker-manifest-digest": digest}, "type": "cosign container image signature"}});
        let payload = payload.to_string().into_bytes();
        let signature = self.sign("leaf", &payload);
        let body = BASE64.encode(self.entry(&payload, &signature));
        let (id, time) = (hex(&sha256(&self.log_spki())), self.now());
        let promised =
            format!(r#"{{"body":"{body}","integratedTime":{time},"logID":"{id}","logIndex":7}}"#);
        let promise = BASE64.encode(self.sign("log", promised.as_bytes()));
        let entry = json!({"body": body, "integratedTime": time, "logIndex": 7, "logID": id});
        let rekor = json!({"SignedEntryTimestamp": promise, "Payload": entry}).to_string();
        Cosign {
            payload,
            signature: BASE64.encode(signature),
            certificate: Some(String::from_utf8(self.read("leaf.pem")).expect("PEM is text")),
            chain: None,
            rekor: Some(rekor),
            timestamp: None,
        }
    }

    fn entry(&self, message: &[u8], signature: &[u8]) -> String {
        let spec = json!({
            "data": {"hash": {"algorithm": "sha256", "value": hex(&sha256(message))}},
            "signature": {"content": BASE64.encode(signature), "publicKey": {"content": BASE64.encode(self.read("leaf.pem"))}},
        });
        json!({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": spec}).to_string()
    }

    /// A bundle of version 0.3 over the manifest, whose time is a token, and whose log has two entries.
    fn bundle(&self, hash: &str) -> Value {
        let signature = self.sign("leaf", MANIFEST);
        let body = self.entry(MANIFEST, &signature);
        let leaf = sha256(&[&[0], body.as_bytes()].concat());
        let root = sha256(&[&[1], &[7; 32][..], &leaf].concat());
        let text = format!("log.acme.com\n2\n{}\n", BASE64.encode(root));
        let id = sha256(&self.log_spki());
        let note = BASE64.encode([&id[..4], &self.sign("log", text.as_bytes())].concat());
        let proof = json!({"logIndex": "1", "treeSize": "2", "rootHash": BASE64.encode(root),
            "hashes": [BASE64.encode([7; 32])], "checkpoint": {"envelope": format!("{text}\n— log.acme.com {note}\n")}});
        let entry = json!({"logIndex": "1", "logId": {"keyId": BASE64.encode(id)}, "inclusionProof": proof,
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.1"}, "canonicalizedBody": BASE64.encode(body)});
        let token = json!({"signedTimestamp": BASE64.encode(self.token(&signature, hash))});
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {"certificate": {"rawBytes": BASE64.encode(self.der("leaf"))},
                "tlogEntries": [entry], "timestampVerificationData": {"rfc3161Timestamps": [token]}},
            "messageSignature": {"signature": BASE64.encode(signature)},
        })
    }
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
    let instance = Instance::new();
    instance.workflow(OWN, "acme/charts", "refs/tags/v1.4.0", "7");
    let roots = instance.roots();
    let good = instance.cosign();
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
    let instance = Instance::new();
    instance.workflow(OWN, "acme/charts", "refs/tags/v1.4.0", "7");
    let roots = instance.roots();
    let signers = [signer(None, None, None)];
    for hash in ["-sha256", "-sha384", "-sha512"] {
        let verdict = judged(&bundled(&instance.bundle(hash)), &signers, &roots);
        assert!(verdict.is_accepted(), "{hash}: {verdict}");
    }
    // Whatever is taken away or changed, it is refused.
    let good = instance.bundle("-sha256");
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
}

#[test]
fn reusable_workflows_and_renamed_repositories() {
    let instance = Instance::new();
    let shared = "acme/shared/.github/workflows/release.yml";
    instance.workflow(SHARED, "acme/charts", "refs/tags/v1.4.0", "7");
    let reusable = bundled(&instance.bundle("-sha256"));
    let roots = instance.roots();
    let verdict = judged(&reusable, &[signer(Some(shared), None, None)], &roots);
    let identity = Identity::Github { repository: "acme/charts".into(), workflow: shared.into() };
    assert_eq!(verdict.accepted.first().map(|accepted| &accepted.identity), Some(&identity));
    for other in [signer(None, None, None), signer(Some("release.yml"), None, None)] {
        assert!(!judged(&reusable, &[other], &roots).is_accepted());
    }
    // The same shared workflow, run by somebody else's repository.
    instance.workflow(SHARED, "eve/charts", "refs/tags/v1.4.0", "9");
    let foreign = bundled(&instance.bundle("-sha256"));
    assert!(!judged(&foreign, &[signer(Some(shared), None, None)], &roots).is_accepted());

    // Somebody else got the name of the repository.
    instance.workflow(OWN, "acme/charts", "refs/heads/main", "9");
    let renamed = bundled(&instance.bundle("-sha256"));
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
    let instance = Instance::new();
    instance.workflow(OWN, "acme/charts", "refs/tags/v1.4.0", "7");
    let bundle = bundled(&instance.bundle("-sha256"));
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
    let other = Instance::new();
    let verdict = judged(&bundle, &signers, &other.roots());
    assert!(
        matches!(verdict.refusal, Some(Refusal::RootDoesNotKnow { root: None, .. })),
        "{verdict}"
    );

    // Times outside of what the root trusts, and a root with certificate logs.
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
    let mut logged = newer;
    logged["ctlogs"] = logged["tlogs"].clone();
    let verdict = judged(&bundle, &signers, &roots([&logged]));
    assert!(verdict.to_string().contains("no certificate log has its certificate"), "{verdict}");
}

#[test]
fn certificates_for_something_else_sign_nothing() {
    let instance = Instance::new();
    let san = format!("subjectAltName = critical,URI:{OWN}\n");
    let issuer =
        "1.3.6.1.4.1.57264.1.8 = ASN1:UTF8String:https://token.actions.githubusercontent.com\n";
    for (extensions, why) in [
        (format!("extendedKeyUsage = serverAuth\n{san}{issuer}"), "it is for another purpose"),
        (format!("extendedKeyUsage = codeSigning\n{issuer}"), "the certificate cannot be read"),
        (format!("extendedKeyUsage = codeSigning\n{san}"), "the certificate cannot be read"),
    ] {
        instance.certificate("leaf", "ca", &extensions);
        let verdict = judged(
            &bundled(&instance.bundle("-sha256")),
            &[signer(None, None, None)],
            &instance.roots(),
        );
        assert!(!verdict.is_accepted() && verdict.to_string().contains(why), "{why}: {verdict}");
    }
    // A certificate of the authority of times is none of the authority of certificates.
    instance.certificate("leaf", "tsca", &format!("extendedKeyUsage = codeSigning\n{san}{issuer}"));
    let verdict = judged(
        &bundled(&instance.bundle("-sha256")),
        &[signer(None, None, None)],
        &instance.roots(),
    );
    assert!(
        matches!(verdict.refusal, Some(Refusal::RootDoesNotKnow { root: None, .. })),
        "{verdict}"
    );
}
