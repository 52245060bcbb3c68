//! An instance of sigstore of one's own, which `openssl` is: it issues certificates to identities, logs them, signs times, and keeps a log
//! of signatures. What it makes is what Fulcio, its log of certificates, Rekor and a timestamp authority make; nothing is served.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::files::hex;

/// The issuer of GitHub's workflows.
const GITHUB: &str = "https://token.actions.githubusercontent.com";

/// An authority for certificates, one for times, and a log of each.
#[derive(Debug)]
pub struct Sigstore {
    folder: TempDir,
}

/// A workflow at GitHub, as a certificate states it.
#[derive(Debug, Clone, Copy)]
pub struct Workflow<'a> {
    /// The file of the workflow: `https://github.com/OWNER/REPO/.github/workflows/FILE@REF`.
    pub subject: &'a str,
    /// The repository that ran it: `OWNER/REPO`.
    pub repository: &'a str,
    /// The ref that it ran for.
    pub reference: &'a str,
    /// The number of the repository.
    pub id: &'a str,
}

/// What a bundle signs.
#[derive(Debug, Clone, Copy)]
pub enum SignedContent<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// A statement about what has this digest (`sha256:HEX`), of this type.
    Statement(&'a str, &'a str),
}

/// A signature of cosign 2: its layer, and the annotations of that.
#[derive(Debug, Clone)]
pub struct CosignLayer {
    /// The bytes of the layer.
    pub payload: Vec<u8>,
    /// `dev.cosignproject.cosign/signature`.
    pub signature: String,
    /// `dev.sigstore.cosign/certificate`.
    pub certificate: String,
    /// `dev.sigstore.cosign/chain`.
    pub chain: String,
    /// `dev.sigstore.cosign/bundle`.
    pub rekor: String,
}

impl Sigstore {
    /// Makes its keys, and the certificates of its authorities, for a month.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let instance = Self { folder };
        instance.write("subject", "[req]\ndistinguished_name = name\n[name]\n");
        for (name, section) in [("ca", "code"), ("tsca", "time")] {
            instance.key(name);
            let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
            let subject = format!("/O=acme/CN=acme {section}");
            let made = ["req", "-x509", "-new", "-key", &key, "-subj", &subject, "-days", "30"];
            let says = ["-config", "subject", "-addext", "basicConstraints=critical,CA:TRUE"];
            instance.openssl(&[&made[..], &says, &["-out", &pem]].concat());
        }
        instance.key("log");
        instance.key("ctlog");
        instance.certificate("ts", "tsca", "extendedKeyUsage = critical,timeStamping\n");
        instance.write("serial", "01\n");
        instance.write(
            "ts.cnf",
            "[tsa]\ndefault_tsa = own\n[own]\nserial = serial\ndefault_policy = 1.2.3.4\ndigests = sha256, sha384, sha512\n\
             signer_digest = sha256\ness_cert_id_alg = sha256\n",
        );
        instance
    }

    /// Its `trusted_root.json`, which trusts all of it since 2020.
    pub fn root(&self) -> Value {
        let valid = json!({"start": "2020-01-01T00:00:00Z"});
        let authority = |name: &str| {
            let chain = json!({"certificates": [{"rawBytes": BASE64.encode(self.der(name))}]});
            json!([{"certChain": chain, "validFor": valid}])
        };
        let log = |name: &str| {
            let spki = self.spki(name);
            json!([{"publicKey": {"rawBytes": BASE64.encode(&spki), "validFor": valid},
                "logId": {"keyId": BASE64.encode(Sha256::digest(&spki))}}])
        };
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "certificateAuthorities": authority("ca"),
            "timestampAuthorities": authority("tsca"),
            "tlogs": log("log"),
            "ctlogs": log("ctlog"),
        })
    }

    /// From now on, signatures are of this workflow.
    pub fn workflow(&self, workflow: &Workflow<'_>) {
        let Workflow { subject, repository, reference, id } = workflow;
        let extensions = [
            format!("extendedKeyUsage = codeSigning\nsubjectAltName = critical,URI:{subject}\n"),
            extension(8, GITHUB),
            extension(12, &format!("https://github.com/{repository}")),
            extension(14, reference),
            extension(15, id),
        ];
        self.certify("ca", &extensions.concat(), Some("ctlog"));
    }

    /// From now on, signatures are of the person with this mail address, for whom `issuer` vouches.
    pub fn person(&self, issuer: &str, mail: &str) {
        let name = format!("subjectAltName = critical,email:{mail}\n");
        let extensions = format!("extendedKeyUsage = codeSigning\n{name}{}", extension(8, issuer));
        self.certify("ca", &extensions, Some("ctlog"));
    }

    /// Issues a certificate with these lines of extensions, by the key and the name of `authority`. A log has it if one is named: `ctlog`
    /// is the one that the root names, and any other key forges its timestamp.
    pub fn certify(&self, authority: &str, extensions: &str, log: Option<&str>) {
        self.certificate("leaf", authority, extensions);
        let Some(log) = log else { return };
        let der = self.logged(&self.der("leaf"), authority, log);
        self.write("leaf.der", der);
        self.openssl(&["x509", "-inform", "DER", "-in", "leaf.der", "-out", "leaf.pem"]);
    }

    /// A signature of cosign 2 about a digest, with the log's promise.
    pub fn cosign(&self, digest: &str) -> CosignLayer {
        let payload = json!({"critical": {
            "identity": {"docker-reference": ""},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        }});
        let payload = payload.to_string().into_bytes();
        let signature = self.sign("leaf", &payload);
        let body = self.hashedrekord(&payload, &signature);
        let (time, promise) = self.promise(&body);
        let log = hex(&self.spki("log"));
        let entry = json!({"body": BASE64.encode(body), "integratedTime": time, "logIndex": 7, "logID": log});
        CosignLayer {
            payload,
            signature: BASE64.encode(signature),
            certificate: self.text("leaf.pem"),
            chain: self.text("ca.pem"),
            rekor: json!({"SignedEntryTimestamp": promise, "Payload": entry}).to_string(),
        }
    }

    /// A bundle. Version `0.1` has the log's promise, `0.2` also the proof that the entry is there, and `0.3` the proof, and the time by
    /// the other authority.
    pub fn bundle(&self, version: &str, content: SignedContent<'_>) -> Value {
        const KIND: &str = "application/vnd.in-toto+json";
        let (mut bundle, signature, kind, body);
        match content {
            SignedContent::Bytes(bytes) => {
                signature = self.sign("leaf", bytes);
                (kind, body) = ("hashedrekord", self.hashedrekord(bytes, &signature));
                bundle = json!({"messageSignature": {"signature": BASE64.encode(&signature)}});
            }
            SignedContent::Statement(digest, predicate) => {
                let subject = json!([{"digest": {"sha256": digest.trim_start_matches("sha256:")}}]);
                let statement = json!({"_type": "https://in-toto.io/Statement/v1", "subject": subject,
                    "predicateType": predicate, "predicate": {}});
                let statement = statement.to_string();
                let message =
                    format!("DSSEv1 {} {KIND} {} {statement}", KIND.len(), statement.len());
                signature = self.sign("leaf", message.as_bytes());
                (kind, body) = ("dsse", self.dsse(&statement, &signature));
                bundle = json!({"dsseEnvelope": {"payload": BASE64.encode(&statement), "payloadType": KIND,
                    "signatures": [{"sig": BASE64.encode(&signature)}]}});
            }
        }
        let mut entry = json!({
            "logIndex": "7",
            "logId": {"keyId": BASE64.encode(Sha256::digest(self.spki("log")))},
            "kindVersion": {"kind": kind, "version": "0.0.1"},
            "canonicalizedBody": BASE64.encode(&body),
        });
        let leaf = json!({"rawBytes": BASE64.encode(self.der("leaf"))});
        let mut material = match version {
            "0.3" => json!({"certificate": leaf}),
            _ => json!({"x509CertificateChain": {"certificates": [leaf]}}),
        };
        if version == "0.3" {
            let token = BASE64.encode(self.token(&signature, "-sha256"));
            material["timestampVerificationData"] =
                json!({"rfc3161Timestamps": [{"signedTimestamp": token}]});
        } else {
            let (time, promise) = self.promise(&body);
            entry["integratedTime"] = json!(time.to_string());
            entry["inclusionPromise"] = json!({"signedEntryTimestamp": promise});
        }
        if version != "0.1" {
            entry["inclusionProof"] = self.proof(&body);
        }
        material["tlogEntries"] = json!([entry]);
        bundle["mediaType"] = match version {
            "0.3" => json!("application/vnd.dev.sigstore.bundle.v0.3+json"),
            _ => json!(format!("application/vnd.dev.sigstore.bundle+json;version={version}")),
        };
        bundle["verificationMaterial"] = material;
        bundle
    }

    /// A token of RFC 3161 over bytes, with their hash by `-sha256` or another option of `openssl ts`.
    pub fn token(&self, bytes: &[u8], hash: &str) -> Vec<u8> {
        self.write("signed", bytes);
        self.openssl(&["ts", "-query", "-data", "signed", hash, "-cert", "-out", "query"]);
        let files = ["-queryfile", "query", "-signer", "ts.pem", "-inkey", "ts.key"];
        let options = ["-config", "ts.cnf", "-out", "reply"];
        self.openssl(&[&["ts", "-reply"], &files[..], &options].concat());
        self.read("reply")
    }

    /// A signature over bytes by one of its keys: `leaf`, `ca`, `log`, `ctlog`.
    pub fn sign(&self, key: &str, message: &[u8]) -> Vec<u8> {
        self.write("message", message);
        self.openssl(&["dgst", "-sha256", "-sign", &format!("{key}.key"), "message"])
    }

    /// An entry of the log about a signature over bytes.
    fn hashedrekord(&self, message: &[u8], signature: &[u8]) -> String {
        let key = BASE64.encode(self.read("leaf.pem"));
        let spec = json!({
            "data": {"hash": {"algorithm": "sha256", "value": hex(message)}},
            "signature": {"content": BASE64.encode(signature), "publicKey": {"content": key}},
        });
        json!({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": spec}).to_string()
    }

    /// One about a signature over a statement.
    fn dsse(&self, statement: &str, signature: &[u8]) -> String {
        let key = BASE64.encode(self.read("leaf.pem"));
        let spec = json!({
            "envelopeHash": {"algorithm": "sha256", "value": ""},
            "payloadHash": {"algorithm": "sha256", "value": hex(statement.as_bytes())},
            "signatures": [{"signature": BASE64.encode(signature), "verifier": key}],
        });
        json!({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec}).to_string()
    }

    /// The time at which the log takes an entry in, and its promise in base64.
    fn promise(&self, body: &str) -> (u64, String) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        let (time, id) = (since.as_secs(), hex(&self.spki("log")));
        let body = BASE64.encode(body);
        let promised =
            format!(r#"{{"body":"{body}","integratedTime":{time},"logID":"{id}","logIndex":7}}"#);
        (time, BASE64.encode(self.sign("log", promised.as_bytes())))
    }

    /// The proof of an entry, which is the second one in a log of two.
    fn proof(&self, body: &str) -> Value {
        let leaf = Sha256::digest([&[0], body.as_bytes()].concat());
        let root = BASE64.encode(Sha256::digest([&[1], &[7; 32][..], &leaf[..]].concat()));
        let text = format!("log.acme.com\n2\n{root}\n");
        let id = Sha256::digest(self.spki("log"));
        let note = BASE64.encode([&id[..4], &self.sign("log", text.as_bytes())].concat());
        json!({"logIndex": "1", "treeSize": "2", "rootHash": root, "hashes": [BASE64.encode([7; 32])],
            "checkpoint": {"envelope": format!("{text}\n— log.acme.com {note}\n")}})
    }

    /// A certificate with the timestamp of a log, which signs it as it was before (RFC 6962, 3.2), and then once more by its issuer.
    fn logged(&self, certificate: &[u8], authority: &str, log: &str) -> Vec<u8> {
        const SCTS: &[u8] = &[0x06, 10, 0x2b, 0x06, 0x01, 0x04, 0x01, 0xd6, 0x79, 0x02, 0x04, 0x02];
        let whole = elements(content(certificate));
        let (before, algorithm) = (whole[0], whole[1]);
        let length = u32::try_from(before.len()).expect("is short").to_be_bytes();
        let time = [0, 0, 1, 0x80, 0, 0, 0, 0];
        let issuer = Sha256::digest(self.spki(authority));
        // Version 1 and its kind; the time; an entry that was not yet whole, and whose; and no extensions.
        let parts: [&[u8]; 7] = [&[0, 0], &time, &[0, 1], &issuer, &length[1..], before, &[0, 0]];
        let signature = self.sign(log, &parts.concat());
        let id = Sha256::digest(self.spki("ctlog"));
        // Also without extensions; then ECDSA with SHA-256.
        let stamp = [&[0], &id[..], &time, &[0, 0], &[4, 3], &listed(&signature)].concat();
        let scts = element(0x04, &element(0x04, &listed(&listed(&stamp))));
        let added = element(0x30, &[SCTS, &scts].concat());

        let mut fields = elements(content(before));
        let last = fields.pop().expect("has extensions");
        let extensions = [content(content(last)), &added].concat();
        let extensions = element(0xa3, &element(0x30, &extensions));
        let after = element(0x30, &[fields.concat(), extensions].concat());
        let signature = [&[0], &self.sign(authority, &after)[..]].concat();
        element(0x30, &[&after, algorithm, &element(0x03, &signature)].concat())
    }

    fn key(&self, name: &str) {
        let kind = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
        let file = format!("{name}.key");
        self.openssl(&[&["genpkey"], &kind[..], &["-out", &file]].concat());
    }

    /// Makes a key, and a certificate of it for a day.
    fn certificate(&self, name: &str, authority: &str, extensions: &str) {
        self.key(name);
        let [key, request, pem] = ["key", "csr", "pem"].map(|end| format!("{name}.{end}"));
        let [ca, ca_key] = ["pem", "key"].map(|end| format!("{authority}.{end}"));
        let asked = ["req", "-new", "-key", &key, "-subj", "/", "-config", "subject"];
        self.openssl(&[&asked[..], &["-out", &request]].concat());
        self.write("extensions", format!("basicConstraints = critical,CA:FALSE\n{extensions}"));
        let by = ["-in", &request, "-CA", &ca, "-CAkey", &ca_key, "-CAcreateserial"];
        let with = ["-days", "1", "-extfile", "extensions", "-out", &pem];
        self.openssl(&[&["x509", "-req"], &by[..], &with].concat());
    }

    fn der(&self, name: &str) -> Vec<u8> {
        self.openssl(&["x509", "-in", &format!("{name}.pem"), "-outform", "DER"])
    }

    /// The public one of a key, as DER.
    fn spki(&self, name: &str) -> Vec<u8> {
        self.openssl(&["pkey", "-in", &format!("{name}.key"), "-pubout", "-outform", "DER"])
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), bytes).expect("can be written");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).expect("was written")
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("is text")
    }

    fn openssl(&self, arguments: &[&str]) -> Vec<u8> {
        let mut command = Command::new("openssl");
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        let output = command.output().expect("these tests need openssl: `.ci/setup` installs it");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments:?}: {words}");
        output.stdout
    }
}

impl Default for Sigstore {
    fn default() -> Self {
        Self::new()
    }
}

/// A line with one of Fulcio's extensions.
pub fn extension(number: u8, text: &str) -> String {
    format!("1.3.6.1.4.1.57264.1.{number} = ASN1:UTF8String:{text}\n")
}

/// A list of TLS: its length in two bytes in front.
fn listed(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("is short");
    [&length.to_be_bytes()[..], bytes].concat()
}

/// An element of DER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("is short").to_be_bytes();
    let head = match length {
        [0, short] if short < 0x80 => vec![tag, short],
        [0, long] => vec![tag, 0x81, long],
        [first, second] => vec![tag, 0x82, first, second],
    };
    [&head, content].concat()
}

/// How many bytes in front of the content an element has, and how many the content has.
fn lengths(element: &[u8]) -> (usize, usize) {
    match element[1] {
        0x82 => (4, usize::from(element[2]) << 8 | usize::from(element[3])),
        0x81 => (3, usize::from(element[2])),
        short => (2, usize::from(short)),
    }
}

fn content(element: &[u8]) -> &[u8] {
    let (head, length) = lengths(element);
    &element[head..head + length]
}

/// The elements that stand one behind the other.
fn elements(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (head, length) = lengths(bytes);
        let (element, rest) = bytes.split_at(head + length);
        all.push(element);
        bytes = rest;
    }
    all
}
