//! Rules about who must have signed a package: versions that they do not accept are no candidates, and what a lock, a registry or a
//! checkout says changes nothing about that.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_testing::oci::Behaviour;
use mu_testing::{
    Artifact, Bundle, Chart, DockerRegistry, OciServer, Operators, hex, pull, push_blob,
    push_manifest,
};
use serde_json::{Value, json};

use super::support::{Sandbox, write};

const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A pair of keys that `openssl` has made.
pub(crate) struct Key {
    private: PathBuf,
    pub(crate) public: PathBuf,
    is_pure: bool,
}

fn openssl(arguments: &[&str]) {
    let run = Command::new("openssl").args(arguments).output().expect("these tests need openssl");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

impl Key {
    fn new(sandbox: &Sandbox, name: &str, algorithm: &[&str]) -> Self {
        let folder = sandbox.path("keys");
        fs::create_dir_all(&folder).expect("can be made");
        let (private, public) =
            (folder.join(format!("{name}.pem")), folder.join(format!("{name}.pub")));
        let [from, to] = [&private, &public].map(|path| path.to_str().expect("is UTF-8"));
        openssl(&[&["genpkey"], algorithm, &["-out", from]].concat());
        openssl(&["pkey", "-in", from, "-pubout", "-out", to]);
        Self { is_pure: algorithm.contains(&"ed25519"), private, public }
    }

    /// The usual one: P-256, as cosign makes it.
    pub(crate) fn usual(sandbox: &Sandbox, name: &str) -> Self {
        Self::new(sandbox, name, &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
    }

    pub(crate) fn sign(&self, bytes: &[u8]) -> String {
        let file = self.private.with_extension("message");
        let signature = self.private.with_extension("signature");
        fs::write(&file, bytes).expect("can be written");
        let [key, from, to] =
            [&self.private, &file, &signature].map(|path| path.to_str().expect("is UTF-8"));
        match self.is_pure {
            true => {
                openssl(&["pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", from, "-out", to])
            }
            false => openssl(&["dgst", "-sha256", "-sign", key, "-out", to, from]),
        }
        STANDARD.encode(fs::read(&signature).expect("was written"))
    }

    /// A signature of cosign 2 about a digest: its payload, and its annotation.
    pub(super) fn cosign(&self, digest: &str) -> (Vec<u8>, String) {
        let payload = json!({"critical": {
            "identity": {"docker-reference": "somewhere.example/else"},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        }, "optional": null});
        let payload = payload.to_string().into_bytes();
        let signature = self.sign(&payload);
        (payload, signature)
    }

    /// A bundle about a digest, as cosign 3 has it.
    pub(crate) fn bundle(&self, digest: &str, predicate: &str) -> Vec<u8> {
        const KIND: &str = "application/vnd.in-toto+json";
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": digest.trim_start_matches("sha256:")}}],
            "predicateType": predicate,
            "predicate": {},
        });
        let statement = statement.to_string();
        let message = format!("DSSEv1 {} {KIND} {} {statement}", KIND.len(), statement.len());
        json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": ""}},
            "dsseEnvelope": {
                "payload": STANDARD.encode(&statement),
                "payloadType": KIND,
                "signatures": [{"sig": self.sign(message.as_bytes()), "keyid": ""}],
            },
        })
        .to_string()
        .into_bytes()
    }
}

/// The predicate of a signature by cosign 3.
pub(super) const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

pub(super) fn tag_of(digest: &str) -> String {
    digest.replace(':', "-")
}

/// A registry, and a sandbox whose user has the key `team`, and a rule for what is below `charts`.
pub(crate) struct Registry {
    pub(crate) sandbox: Sandbox,
    pub(crate) server: DockerRegistry,
    pub(crate) key: Key,
}

/// Adds lines to `~/.mu/config.yaml`.
pub(super) fn user_says(sandbox: &Sandbox, lines: &str) {
    let text = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).unwrap_or_default();
    write(&sandbox.path("home/.mu"), "config.yaml", format!("{text}{lines}"));
}

/// The lines of a file of settings that let packages below `charts` be signed by a key alone.
pub(super) fn rule(host: &str, key: &Key) -> String {
    let key = key.public.display();
    format!(
        "trust:\n  signers: {{team: {key}}}\n  packages: {{\"{host}/charts/*\": {{signedBy: [team]}}}}\n"
    )
}

impl Registry {
    pub(crate) fn new() -> Self {
        let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
        sandbox.replace(&server.host(), "[HOST]");
        let key = Key::usual(&sandbox, "team");
        user_says(&sandbox, &rule(&server.host(), &key));
        Self { sandbox, server, key }
    }

    pub(crate) fn host(&self) -> String {
        self.server.host()
    }

    /// Pushes a chart below `charts`; returns the digest of its manifest.
    pub(crate) fn push(&self, name: &str, version: &str) -> String {
        let chart = Chart::new(name, version).file("values.yaml", "a: 1\n");
        Artifact::chart(&chart).push(&self.host(), &format!("charts/{name}"), version)
    }

    /// Puts a signature of cosign 2 there.
    pub(super) fn sign(&self, repository: &str, digest: &str, key: &Key) {
        let (payload, signature) = key.cosign(digest);
        self.put_signature(repository, digest, &payload, &signature);
    }

    pub(super) fn put_signature(
        &self,
        repository: &str,
        digest: &str,
        payload: &[u8],
        signature: &str,
    ) {
        let said = [("dev.cosignproject.cosign/signature", signature)];
        self.put_layer(repository, digest, payload, &said);
    }

    /// Puts a signature of cosign 2 with these annotations there.
    pub(crate) fn put_layer(
        &self,
        repository: &str,
        digest: &str,
        payload: &[u8],
        said: &[(&str, &str)],
    ) {
        Artifact::new("application/vnd.oci.image.config.v1+json", b"{}")
            .layer(SIMPLE_SIGNING, payload, said)
            .push(&self.host(), repository, &format!("{}.sig", tag_of(digest)));
    }

    /// Puts a bundle there, at the tag for registries that keep no lists.
    pub(crate) fn put_bundle(&self, repository: &str, digest: &str, bundle: &[u8]) {
        let host = self.host();
        let manifest = referrer(digest, bundle, |bytes| push_blob(&host, repository, bytes));
        let bytes = manifest.to_string().into_bytes();
        let own = format!("sha256:{}", hex(&bytes));
        push_manifest(&host, repository, &own, &manifest);
        let entry = json!({"mediaType": MANIFEST, "digest": own, "size": bytes.len(), "artifactType": BUNDLE});
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
        push_manifest(&host, repository, &tag_of(digest), &index);
    }

    pub(crate) fn chart(&self, rest: &str) -> String {
        format!("oci://{}/charts/{rest}", self.host())
    }

    pub(crate) fn id(&self, name: &str) -> String {
        format!("{}/charts/{name}", self.host())
    }

    /// The requests since the log had `before` lines, in short.
    pub(crate) fn requests_since(&self, before: usize) -> Vec<String> {
        self.server.log().split_off(before)
    }
}

/// The manifest of a bundle that refers to a digest.
pub(super) fn referrer(digest: &str, bundle: &[u8], put: impl Fn(&[u8]) -> String) -> Value {
    let (config, layer) = (put(b"{}"), put(bundle));
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": BUNDLE,
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2},
        "layers": [{"mediaType": BUNDLE, "digest": layer, "size": bundle.len()}],
        "subject": {"mediaType": MANIFEST, "digest": digest, "size": 1},
    })
}

/// As on another machine.
pub(crate) fn forget(sandbox: &Sandbox) {
    for folder in ["cache", "work/.mu/packs"] {
        let _ = fs::remove_dir_all(sandbox.path(folder));
    }
}

/// The identity of a key, as `openssl` computes it.
pub(crate) fn identity(key: &Key) -> String {
    let der = key.public.with_extension("der");
    let [from, to] = [&key.public, &der].map(|path| path.to_str().expect("is UTF-8"));
    openssl(&["pkey", "-pubin", "-in", from, "-outform", "DER", "-out", to]);
    format!("key:sha256:{}", hex(&fs::read(&der).expect("was written")))
}

#[test]
fn a_signed_version_is_used_and_its_signer_is_locked() {
    let registry = Registry::new();
    let (sandbox, key) = (&registry.sandbox, &registry.key);
    let digest = registry.push("web", "1.0.0");
    registry.sign("charts/web", &digest, key);
    sandbox.asks_for(&[&registry.chart("web#^1")]);
    sandbox.mu(&["get"]).ok().says(&["web 1.0.0"]);
    let entry = &sandbox.lock()["packages"][0];
    assert_eq!(entry["signedBy"], json!([identity(key)]), "{entry}");
    assert_eq!(entry["manifest"], json!(digest));
    // A lock that stays costs nothing.
    let before = registry.server.log().len();
    sandbox.mu(&["get"]).ok().says(&["up to date"]);
    assert_eq!(registry.requests_since(before), [""; 0]);
    // On another machine, the same evidence is asked for once.
    forget(sandbox);
    sandbox.mu(&["get", "--locked"]).ok();
    let before = registry.server.log().len();
    sandbox.mu(&["get", "--frozen"]).ok();
    assert_eq!(registry.requests_since(before), [""; 0]);
}

#[test]
fn the_newest_version_that_is_signed_is_chosen_with_a_line() {
    for strategy in ["highest", "minimal"] {
        let registry = Registry::new();
        let sandbox = &registry.sandbox;
        let signed = registry.push("web", "1.0.0");
        registry.sign("charts/web", &signed, &registry.key);
        let stranger = Key::usual(sandbox, "stranger");
        let other = registry.push("web", "1.1.0");
        registry.sign("charts/web", &other, &stranger);
        registry.push("web", "1.2.0");
        sandbox.asks_for(&[]);
        let chart = registry.chart("web");
        let run = sandbox.mu(&["add", &chart, "--resolution", strategy]).ok();
        run.says(&["1.2.0", "passed over", "no signature", "rule `"]);
        assert_eq!(sandbox.locked(), [format!("{} 1.0.0", registry.id("web"))], "{strategy}");
    }
}

#[test]
fn a_version_that_must_be_used_and_is_not_signed_is_an_error() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    let stranger = Key::usual(sandbox, "stranger");
    let digest = registry.push("web", "1.0.0");
    registry.push("web", "0.9.0");
    registry.sign("charts/web", &digest, &stranger);
    sandbox.asks_for(&[&registry.chart("web#1.0.0")]);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&[
        "no version of `[HOST]/charts/web` that fits is signed as your rules ask",
        "1.0.0: no signature by team; 1 signature looked at",
        "rule `[HOST]/charts/*` in ~/.mu/config.yaml: signedBy team",
        "hint: to accept exactly this content: mu trust allow '[HOST]/charts/web#1.0.0'",
    ]);
    sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    assert!(!sandbox.path("work/Mu.lock").exists());
    // The way out works as it is printed.
    let allow = format!("{}#1.0.0", registry.id("web"));
    sandbox.mu(&["trust", "allow", &allow]).fails().says(&["nobody has agreed"]);
    sandbox.mu(&["trust", "allow", &allow, "--yes"]).ok();
    sandbox.mu(&["get"]).ok().says(&["web 1.0.0"]);
    // It is exactly this content.
    let chart = Chart::new("web", "1.0.0").file("values.yaml", "a: 2\n");
    Artifact::chart(&chart).push(&registry.host(), "charts/web", "1.0.0");
    forget(sandbox);
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    sandbox.mu(&["get"]).fails().says(&["no version of"]);
}

#[test]
fn what_is_signed_is_found_wherever_a_registry_has_it() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    // A bundle at the tag for registries without lists; Docker's has none.
    let digest = registry.push("web", "1.0.0");
    registry.put_bundle("charts/web", &digest, &registry.key.bundle(&digest, SIGNED));
    sandbox.asks_for(&[&registry.chart("web")]);
    sandbox.mu(&["get"]).ok().says(&["web 1.0.0"]);
    // A scan by the same key vouches for nothing.
    let digest = registry.push("scan", "1.0.0");
    let scan = registry.key.bundle(&digest, "https://cosign.sigstore.dev/attestation/vuln/v1");
    registry.put_bundle("charts/scan", &digest, &scan);
    sandbox.asks_for(&[&registry.chart("scan")]);
    sandbox.mu(&["get"]).fails().says(&["charts/scan` that fits is signed"]);
}

#[test]
fn an_index_is_signed_for_the_manifest_that_it_names() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    let text = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: db}\n";
    let image = Artifact::package(text);
    image.push(&host, "charts/db", "part");
    let bytes = image.manifest().to_string();
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [{
        "mediaType": MANIFEST,
        "digest": format!("sha256:{}", hex(bytes.as_bytes())),
        "size": bytes.len(),
        "platform": {"os": "linux", "architecture": "amd64"},
    }]});
    let digest = push_manifest(&host, "charts/db", "v1.0.0", &index);
    registry.sign("charts/db", &digest, &registry.key);
    sandbox.asks_for(&[&registry.chart("db#^1")]);
    sandbox.mu(&["get"]).ok().says(&["db 1.0.0"]);
    assert_eq!(sandbox.lock()["packages"][0]["manifest"], json!(digest));
}

#[test]
fn keys_of_each_kind_sign() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    let kinds: [(&str, &[&str]); 2] = [
        ("ed", &["-algorithm", "ed25519"]),
        ("rsa", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]),
    ];
    for (name, algorithm) in kinds {
        let key = Key::new(sandbox, name, algorithm);
        let digest = registry.push(name, "1.0.0");
        registry.sign(&format!("charts/{name}"), &digest, &key);
        write(&sandbox.path("home/.mu"), "config.yaml", rule(&registry.host(), &key));
        sandbox.asks_for(&[&registry.chart(name)]);
        sandbox.mu(&["get"]).ok();
    }
}

#[test]
fn two_of_three_are_two_identities() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    let (one, two) = (&registry.key, Key::usual(sandbox, "second"));
    let lines = format!(
        "trust:\n  signers: {{one: {0}, again: {0}, two: {1}}}\n  packages: {{\"{host}/charts/*\": {{signedBy: [one, again, two], need: 2}}}}\n",
        one.public.display(),
        two.public.display()
    );
    write(&sandbox.path("home/.mu"), "config.yaml", lines);
    let digest = registry.push("web", "1.0.0");
    registry.sign("charts/web", &digest, one);
    sandbox.asks_for(&[&registry.chart("web")]);
    sandbox.mu(&["get"]).fails().says(&["signed by 1 of those"]);
    registry.put_bundle("charts/web", &digest, &two.bundle(&digest, SIGNED));
    sandbox.mu(&["get"]).ok();
}

#[test]
fn after_32_unsigned_versions_mu_gives_up() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    let signed = registry.push("web", "1.0.0");
    registry.sign("charts/web", &signed, &registry.key);
    for minor in 1..=32 {
        registry.push("web", &format!("1.{minor}.0"));
    }
    sandbox.asks_for(&[&registry.chart("web#^1")]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), [format!("{} 1.0.0", registry.id("web"))]);
    registry.push("web", "1.33.0");
    forget(sandbox);
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    sandbox.mu(&["get"]).fails().says(&["none of 33 versions of"]);
}

#[test]
fn a_locked_version_that_fails_never_moves_by_itself() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    let signed = registry.push("web", "1.0.0");
    registry.sign("charts/web", &signed, &registry.key);
    registry.push("web", "1.1.0");
    sandbox.asks_for(&[&registry.chart("web#^1")]);
    let config = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    write(&sandbox.path("home/.mu"), "config.yaml", "");
    sandbox.mu(&["get"]).ok();
    let locked = [format!("{} 1.1.0", registry.id("web"))];
    assert_eq!(sandbox.locked(), locked);
    // From now on there is a rule.
    write(&sandbox.path("home/.mu"), "config.yaml", config);
    for command in [
        &["get"][..],
        &["get", "--locked"],
        &["get", "--frozen"],
        &["get", "--dry-run"],
        &["fetch"],
    ] {
        sandbox.mu(command).fails().says(&[
            "`[HOST]/charts/web` 1.1.0, which Mu.lock names, is not signed as your rules ask: no signature",
            "`mu update [HOST]/charts/web` moves to a version",
        ]);
        assert_eq!(sandbox.locked(), locked, "{command:?}");
    }
    sandbox.mu(&["update", &registry.id("web")]).ok().says(&["1.1.0 passed over"]);
    assert_eq!(sandbox.locked(), [format!("{} 1.0.0", registry.id("web"))]);
}

#[test]
fn a_changed_byte_anywhere_is_refused() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    let digest = registry.push("web", "1.0.0");
    let (payload, signature) = registry.key.cosign(&digest);
    sandbox.asks_for(&[&registry.chart("web")]);
    let mut other = STANDARD.decode(&signature).expect("is base64");
    *other.last_mut().expect("is not empty") ^= 1;
    let mut space = payload.clone();
    space.push(b' ');
    for (payload, signature) in [
        (payload.clone(), STANDARD.encode(&other)),
        (space, signature.clone()),
        (registry.key.cosign(&format!("sha256:{}", "0".repeat(64))).0, signature.clone()),
    ] {
        registry.put_signature("charts/web", &digest, &payload, &signature);
        sandbox.mu(&["get"]).fails().says(&["no version of"]);
    }
    // A signature of another version under this tag.
    let old = registry.push("web", "0.9.0");
    let (old, of_old) = registry.key.cosign(&old);
    registry.put_signature("charts/web", &digest, &old, &of_old);
    sandbox.asks_for(&[&registry.chart("web#1.0.0")]);
    sandbox.mu(&["get"]).fails().says(&["1.0.0: "]);
    registry.put_signature("charts/web", &digest, &payload, &signature);
    sandbox.mu(&["get"]).ok();
    // The archive itself.
    let locked = sandbox.lock()["packages"][0]["archive"].as_str().expect("is a text").to_owned();
    assert!(pull(&host, &format!("charts/web/blobs/{locked}")).is_some());
}

#[test]
fn a_lock_proves_nothing() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    for (name, text) in [("web", "a: 1\n"), ("evil", "a: 666\n")] {
        let chart = Chart::new(name, "1.0.0").file("values.yaml", text);
        let digest =
            Artifact::chart(&chart).push(&registry.host(), &format!("charts/{name}"), "1.0.0");
        if name == "web" {
            registry.sign("charts/web", &digest, &registry.key);
        }
    }
    sandbox.asks_for(&[&registry.chart("web")]);
    sandbox.mu(&["get"]).ok();
    let good = sandbox.read("Mu.lock");
    // What the evil one is, on a machine without the rule.
    let config = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    write(&sandbox.path("home/.mu"), "config.yaml", "");
    sandbox.asks_for(&[&registry.chart("evil")]);
    sandbox.mu(&["get"]).ok();
    let evil = sandbox.lock()["packages"][0].clone();
    write(&sandbox.path("home/.mu"), "config.yaml", config);
    sandbox.asks_for(&[&registry.chart("web")]);
    let entry = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{key}: ")));
        line.expect("has the key").trim().to_owned()
    };
    // Other content under the signed archive; another archive under the signed manifest; a signer that is only claimed.
    for keys in [&["digest"][..], &["digest", "archive"], &["digest", "archive", "manifest"]] {
        let mut forged = good.clone();
        for key in keys {
            let value = evil[*key].as_str().expect("is a text");
            forged = forged.replace(&entry(&good, key), &format!("{key}: {value}"));
        }
        for is_new_machine in [false, true] {
            if is_new_machine {
                forget(sandbox);
            }
            sandbox.write("Mu.lock", &forged);
            sandbox.mu(&["get", "--frozen", "--json"]).fails_with("untrusted");
        }
    }
    forget(sandbox);
    sandbox.write("Mu.lock", &good);
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_signed_package_is_not_another_one() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    // Somebody with the password of the registry puts the signed `old` where `web` is.
    let chart = Chart::new("old", "1.0.0").file("values.yaml", "a: 1\n");
    let digest = Artifact::chart(&chart).push(&host, "charts/web", "1.0.0");
    registry.sign("charts/web", &digest, &registry.key);
    sandbox.asks_for(&[&registry.chart("web")]);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["is a package named `old`"]);
    sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    // Or an older version of its own, whose signature is as good.
    let chart = Chart::new("api", "0.9.0").file("values.yaml", "a: 1\n");
    let digest = Artifact::chart(&chart).push(&host, "charts/api", "1.0.0");
    registry.sign("charts/api", &digest, &registry.key);
    sandbox.asks_for(&[&registry.chart("api")]);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["0.9.0"]);
    assert!(!sandbox.has("work/.mu/packs/evidence.jsonl") && !sandbox.has("work/Mu.lock"));
}

#[test]
fn without_rules_nothing_is_asked_and_with_one_three_places_at_once() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    let digest = registry.push("web", "1.0.0");
    registry.sign("charts/web", &digest, &registry.key);
    sandbox.asks_for(&[&registry.chart("web")]);
    let config = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    let count = |lines: &str| {
        write(&sandbox.path("home/.mu"), "config.yaml", lines);
        forget(sandbox);
        let _ = fs::remove_file(sandbox.path("work/Mu.lock"));
        let before = registry.server.log().len();
        sandbox.mu(&["get"]).ok();
        registry.requests_since(before)
    };
    let without = count("");
    let other = count(&config.replace("/charts/*", "/other/*"));
    assert_eq!(other.len(), without.len(), "{other:#?}");
    let with = count(&config);
    let more: Vec<&String> = with
        .iter()
        .filter(|line| {
            line.contains(&digest.replace(':', "-"))
                || line.contains("/referrers/") && line.contains(&digest)
        })
        .collect();
    // The tag of signatures and that of referrers; a registry without lists of referrers is known by then. At the same time the manifest
    // itself, and then the one signature.
    assert_eq!(more.len(), 2, "{with:#?}");
    assert_eq!(with.len(), without.len() + 4, "{with:#?}");
}

/// The calls of a run that name a file, as `strace` shows them, without those of the loader and the libraries that start it.
fn file_calls(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let told = sandbox.path("calls");
    let file = told.to_str().expect("is UTF-8");
    let options = ["-f", "-qq", "-s", "4096", "-e", "trace=%file", "-o", file];
    let program = [env!("CARGO_BIN_EXE_mu")];
    let command = sandbox.command_of("strace", &[&options[..], &program, arguments].concat());
    sandbox.run(arguments, command).ok();
    let text = fs::read_to_string(&told).expect("strace has written it");
    let calls = text.lines().filter_map(|line| line.split_once(' ')).map(|(_, call)| call.trim());
    let is_ours = |call: &&str| call.contains(sandbox.root().to_str().expect("is UTF-8"));
    calls.filter(is_ours).map(str::to_owned).collect()
}

#[test]
fn without_a_rule_about_a_package_no_file_is_looked_at_for_rules() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    let digest = registry.push("web", "1.0.0");
    registry.sign("charts/web", &digest, &registry.key);
    sandbox.offer("aws/ec2 1.0.0:\naws/log 1.0.0:");
    sandbox.asks_for(&[&registry.chart("web"), "aws/ec2", "aws/log"]);
    let config = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    let without = config.split("trust:").next().expect("is a text");
    write(&sandbox.path("home/.mu"), "config.yaml", without);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let parts = ["/trust", "evidence", "advisories", ".mu/archives"];
    let mut counted = Vec::new();
    for rules in [without, &config.replace("/charts/*", "/other/*")] {
        write(&sandbox.path("home/.mu"), "config.yaml", rules);
        // What is installed, and what is chosen anew.
        let installed = file_calls(sandbox, &["get"]);
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
        let chosen = file_calls(sandbox, &["get", "--dry-run"]);
        sandbox.write("Mu.lock", &lock);
        for call in installed.iter().chain(&chosen) {
            assert!(parts.iter().all(|part| !call.contains(part)), "{call}");
        }
        assert!(installed.iter().any(|call| call.contains("Mu.lock")), "{installed:#?}");
        counted.push((installed.len(), chosen.len()));
    }
    assert_eq!(counted[0], counted[1]);
    // With a rule, they are.
    write(&sandbox.path("home/.mu"), "config.yaml", config);
    sandbox.mu(&["get"]).ok();
    let calls = file_calls(sandbox, &["get"]);
    assert!(calls.iter().any(|call| call.contains("cache/trust/")), "{calls:#?}");
}

#[test]
fn a_registry_that_cannot_be_asked_is_not_one_without_signatures() {
    let mut sandbox = Sandbox::new();
    let server = OciServer::start(Behaviour { referrers: true, ..Behaviour::default() });
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    let key = Key::usual(&sandbox, "team");
    user_says(&sandbox, &rule(&host, &key));
    let chart = Chart::new("web", "1.0.0");
    let artifact = Artifact::chart(&chart);
    let manifest = artifact.manifest();
    server.blob(&chart.archive());
    let config: Value = serde_yaml::from_str(&chart.manifest()).expect("is YAML");
    server.blob(config.to_string().as_bytes());
    let digest = server.manifest("charts/web", "1.0.0", &manifest);
    // By the registry's own list.
    let bundle = key.bundle(&digest, SIGNED);
    let referring = referrer(&digest, &bundle, |bytes| server.blob(bytes));
    server.manifest("charts/web", "bundle", &referring);
    sandbox.asks_for(&[&format!("oci://{host}/charts/web")]);
    sandbox.mu(&["get"]).ok().says(&["web 1.0.0"]);
    let signed = rule(&host, &key);
    let lock = sandbox.read("Mu.lock");
    // A rule that only warns does not know either who signed: an answer is not missing because nobody is asked.
    let [refuse, warn] = ["refuse", "warn"]
        .map(|what| format!("trust: {{packages: {{\"*\": {{continuity: {what}}}}}}}\n"));
    for (rules, status, code) in [
        (&signed, 403, "auth"),
        (&refuse, 403, "auth"),
        (&warn, 403, "auth"),
        (&warn, 502, "network"),
    ] {
        server.behave(|behaviour| behaviour.referrers_status = status);
        write(&sandbox.path("home/.mu"), "config.yaml", rules);
        forget(&sandbox);
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
        let error = sandbox.mu(&["get", "--json"]).fails_with(code);
        assert!(error.to_string().contains("cannot find out who signed"), "{error}");
        assert!(!sandbox.path("work/Mu.lock").exists());
        sandbox.write("Mu.lock", &lock);
    }
    // What is locked is no news for it.
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_registry_that_has_learned_to_list_signatures_is_asked_for_them() {
    let mut sandbox = Sandbox::new();
    let server = OciServer::start(Behaviour::default());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    let key = Key::usual(&sandbox, "team");
    user_says(&sandbox, &rule(&host, &key));
    let chart = Chart::new("web", "1.0.0");
    server.blob(&chart.archive());
    let config: Value = serde_yaml::from_str(&chart.manifest()).expect("is YAML");
    server.blob(config.to_string().as_bytes());
    let digest = server.manifest("charts/web", "1.0.0", &Artifact::chart(&chart).manifest());
    sandbox.asks_for(&[&format!("oci://{host}/charts/web")]);
    let lists = |from: usize| {
        let asked = server.requests().split_off(from);
        asked.into_iter().filter(|line| line.contains("/referrers/")).count()
    };
    // That it keeps none is remembered for a day, and asked again where a signature is missing.
    sandbox.mu(&["get"]).fails().says(&["no signature (looked at"]);
    assert!(fs::read_dir(sandbox.path("cache/registries")).expect("is there").count() > 0);
    server.behave(|behaviour| behaviour.referrers = true);
    let bundle = key.bundle(&digest, SIGNED);
    let referring = referrer(&digest, &bundle, |bytes| server.blob(bytes));
    server.manifest("charts/web", "bundle", &referring);
    let before = server.requests().len();
    sandbox.mu(&["get"]).ok().says(&["web 1.0.0"]);
    assert_eq!(lists(before), 1);
    let before = server.requests().len();
    sandbox.mu(&["get"]).ok();
    assert_eq!(server.requests().len(), before);
}

#[test]
fn offline_counts_what_was_verified() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    let digest = registry.push("web", "1.0.0");
    registry.sign("charts/web", &digest, &registry.key);
    sandbox.asks_for(&[&registry.chart("web")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["get", "--offline"]).ok();
    // Without its verdict, the evidence that was seen is still here; what the archive has in it, it does not say.
    let _ = fs::remove_dir_all(sandbox.path("cache/trust"));
    let names = ["[HOST]/charts/web", "rule `[HOST]/charts/*`"];
    sandbox.mu(&["get", "--offline"]).fails().says(&names).says(&["cannot compare"]);
    let _ = fs::remove_dir_all(sandbox.path("cache/trust"));
    let _ = fs::remove_dir_all(sandbox.path("cache/evidence"));
    sandbox.mu(&["get", "--offline"]).fails().says(&names).says(&["cannot find out who signed"]);
    sandbox.mu(&["get", "--offline", "--json"]).fails_with("offline");
    // Another rule is asked about the evidence that is here.
    sandbox.mu(&["get"]).ok();
    let settings = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    let settings = settings.replace("signedBy: [team]", "signedBy: [team], need: 1");
    let stranger = Key::usual(sandbox, "stranger");
    let settings = settings
        .replace("signers: {", &format!("signers: {{other: {}, ", stranger.public.display()));
    write(&sandbox.path("home/.mu"), "config.yaml", settings.replace("[team]", "[other, team]"));
    sandbox.mu(&["get", "--offline"]).ok();
    write(&sandbox.path("home/.mu"), "config.yaml", settings.replace("[team]", "[other]"));
    sandbox.mu(&["get", "--offline", "--json"]).fails_with("untrusted");
}

#[test]
fn a_checkout_takes_nothing_from_the_rules_of_its_user() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    registry.push("web", "1.0.0");
    let stranger = Key::usual(sandbox, "stranger");
    let digest = Artifact::chart(&Chart::new("web", "1.0.0").file("values.yaml", "a: 3\n")).push(
        &host,
        "elsewhere/web",
        "1.0.0",
    );
    registry.sign("elsewhere/web", &digest, &stranger);
    sandbox.asks_for(&[&registry.chart("web")]);
    let public = fs::read_to_string(&stranger.public).expect("was written");
    sandbox.write("keys/stranger.pub", &public);
    let signers = "signers: {team: ./keys/stranger.pub}";
    for settings in [
        // A weaker rule, a signer of the same name, a content that is allowed.
        format!("trust: {{{signers}, packages: {{\"{host}/charts/*\": {{signedBy: [team]}}}}}}\n"),
        format!("trust: {{allow: {{\"{host}/charts/web#1.0.0\": \"{digest}\"}}}}\n"),
        // Another package in its place.
        format!("overrides: {{{host}/charts/web: \"oci://{host}/elsewhere/web\"}}\n"),
        format!("aliases: {{{host}/charts/: \"oci://{host}/elsewhere/\"}}\n"),
        // Another place of it.
        format!("registries: {{{host}/charts/: \"oci://{host}/elsewhere/\"}}\n"),
    ] {
        sandbox.write(".mu/workspace.yaml", &settings);
        sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    }
    // What the user leads elsewhere is another package for the user.
    sandbox.write(".mu/workspace.yaml", "");
    user_says(
        sandbox,
        &format!("overrides: {{{host}/charts/web: \"oci://{host}/elsewhere/web\"}}\n"),
    );
    sandbox.mu(&["get"]).ok();
    let elsewhere = format!("{host}/elsewhere/web");
    assert_eq!(sandbox.lock()["packages"][0]["from"], json!(elsewhere));
    // And a rule about that one speaks of it.
    let config = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    let config = config.replace("/charts/*", "/elsewhere/*");
    write(&sandbox.path("home/.mu"), "config.yaml", config);
    sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    registry.sign("elsewhere/web", &digest, &registry.key);
    sandbox.mu(&["get"]).ok();
    let overview = sandbox.mu(&["trust", "--json"]).ok().json();
    assert_eq!(overview["packages"][0]["rule"], "[HOST]/elsewhere/*", "{overview}");
}

#[test]
fn both_files_must_be_satisfied_and_a_workspace_sees_the_users_signers() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    let second = Key::usual(sandbox, "second");
    let digest = registry.push("web", "1.0.0");
    registry.sign("charts/web", &digest, &registry.key);
    sandbox.asks_for(&[&registry.chart("web")]);
    let public = fs::read_to_string(&second.public).expect("was written");
    sandbox.write("keys/second.pub", &public);
    let rule = |signer: &str| {
        format!(
            "trust:\n  signers: {{second: ./keys/second.pub}}\n  packages: {{\"{host}/charts/web\": {{signedBy: [{signer}]}}}}\n"
        )
    };
    sandbox.write(".mu/workspace.yaml", &rule("second"));
    sandbox.mu(&["get"]).fails().says(&["in .mu/workspace.yaml: signedBy second"]);
    sandbox.write(".mu/workspace.yaml", &rule("team"));
    sandbox.mu(&["get"]).ok();
    // The longest pattern of a file counts.
    let refuse = format!(
        "trust: {{packages: {{\"*\": {{refuse: \"ask Ada first\"}}, \"{host}/charts/*\": {{signedBy: [team]}}}}}}\n"
    );
    sandbox.write(".mu/workspace.yaml", &refuse);
    sandbox.mu(&["get"]).ok();
    let refuse = format!(
        "trust: {{packages: {{\"{host}/charts/web\": {{refuse: \"ask Ada first\"}}, \"*\": {{signedBy: [team]}}}}}}\n"
    );
    sandbox.write(".mu/workspace.yaml", &refuse);
    sandbox.mu(&["get"]).fails().says(&["refused: ask Ada first"]);
}

#[test]
fn a_rule_that_is_wrong_is_an_error_at_its_place() {
    let sandbox = Sandbox::new();
    for (lines, says) in [
        ("trust: {packages: {acme/*: {signedBy: [ada]}}}\n", "there is no signer `ada`"),
        ("trust: {signers: {a: ./a.pub}, packages: {acme/*: {signedBy: []}}}\n", "nobody is named"),
        (
            "trust: {signers: {a: ./a.pub}, packages: {acme/*: {signedBy: [a], need: 2}}}\n",
            "from 1 to 1",
        ),
        (
            "trust: {signers: {a: ./a.pub}, packages: {a*b: {signedBy: [a]}}}\n",
            "`*` is only at the end",
        ),
        ("trust: {packages: {acme/a: {}}}\n", "`signedBy`, `continuity` or `refuse`"),
        ("trust: {packages: {acme/a: {refuse: \"a\", continuity: warn}}}\n", "no next version"),
        ("trust: {packages: {acme/a: {continuity: often}}}\n", "`off`, `warn`, `refuse`"),
        ("trust: {packages: {acme/a: {need: 1, refuse: \"a\"}}}\n", "only a rule with `signedBy`"),
        ("trust: {signers: {a: ../a.pub}}\n", "below the workspace's root"),
        ("trust: {signers: {a: {github: acme}}}\n", "`acme` is no GitHub repository"),
        (
            "trust: {signers: {a: {github: acme/web, workflow: ci/a.yml}}}\n",
            "`ci/a.yml` is not a workflow: one is FILE or OWNER/REPO/.github/workflows/FILE",
        ),
        ("trust: {signers: {a: {issuer: \"https://acme.com\"}}}\n", "vouches for everybody"),
        ("trust: {allow: {acme/a: \"h1:x\"}}\n", "one version is allowed at a time"),
        ("trust: {allow: {\"acme/a#1.0.0\": nonsense}}\n", "this is not a digest"),
        ("trust: {packages: {\"https://h.co/a/b\": {refuse: a}}}\n", "write `h.co/a/b`"),
        ("trust: {packages: {\"git+ssh://git@h.co/a/*\": {refuse: a}}}\n", "write `h.co/a/*`"),
        ("trust: {packages: {\"https://h.co/a/\": {refuse: a}}}\n", "write `h.co/a/*`"),
        ("trust: {packages: {\"https://h.co/a/b.git\": {refuse: a}}}\n", "write `h.co/a/b`"),
        ("trust: {packages: {\"https://h.co\": {refuse: a}}}\n", "write `h.co/*`"),
        ("trust: {packages: {\"git@h.co:a/b.git\": {refuse: a}}}\n", "write `h.co/a/b`"),
        ("trust: {packages: {h.co/a/: {refuse: a}}}\n", "write `h.co/a/*`"),
        ("trust: {packages: {a/: {refuse: a}}}\n", "write `a/*`"),
    ] {
        sandbox.write(".mu/workspace.yaml", lines);
        let run = sandbox.mu(&["get"]).fails();
        run.says(&[says, "workspace.yaml:1:"]);
    }
    // A file of keys is read when a rule needs it.
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    registry.push("web", "1.0.0");
    sandbox.asks_for(&[&registry.chart("web")]);
    let lines = format!(
        "trust:\n  signers:\n    a: ./keys/a.pub\n  packages: {{\"{host}/charts/*\": {{signedBy: [a]}}}}\n"
    );
    sandbox.write(".mu/workspace.yaml", &lines);
    let says =
        ["the signer `a` in .mu/workspace.yaml:3 cannot be used: there is no file `keys/a.pub`"];
    sandbox.mu(&["get"]).fails().says(&says);
}

#[test]
fn trust_shows_what_there_is_and_writes_rules() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    let digest = registry.push("web", "1.0.0");
    registry.sign("charts/web", &digest, &registry.key);
    write(&sandbox.path("home/.mu"), "config.yaml", "");
    sandbox.asks_for(&[&registry.chart("web")]);
    sandbox.mu(&["trust"]).ok().says(&["no rules"]);
    let reference = registry.chart("web");
    let json = sandbox.mu(&["trust", "show", &reference, "--json"]).ok().json();
    assert_eq!((&json["rule"], &json["accepted"]), (&Value::Null, &json!(true)), "{json}");
    assert_eq!(
        (&json["subject"], &json["evidence"][0]["kind"]),
        (&json!(digest), &json!("cosign"))
    );
    // From nothing to the first rule.
    let key = registry.key.public.to_str().expect("is UTF-8");
    let pattern = format!("{host}/charts/*");
    let add = ["trust", "add", "team", key, "--for", &pattern];
    sandbox.mu(&add).fails().says(&[&identity(&registry.key), "nobody has agreed"]);
    assert_eq!(fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there"), "");
    sandbox.mu(&[&add[..], &["--yes"]].concat()).ok().says(&[&identity(&registry.key)]);
    // The text was written, so the file does not matter any more.
    fs::remove_file(&registry.key.public).expect("is there");
    sandbox.mu(&["get"]).ok();
    let overview = sandbox.mu(&["trust"]).ok();
    overview.says(&["[HOST]/charts/*", "signed by team", "web"]).does_not_say(&["warning"]);
    // A rule that names a host alone speaks of a package of the hub.
    let mistyped = "trust: {packages: {ghcr.io: {refuse: later}}}\n";
    sandbox.write(".mu/workspace.yaml", mistyped);
    let told = "the rule `ghcr.io` in .mu/workspace.yaml speaks of no package in Mu.lock";
    sandbox.mu(&["trust"]).ok().says(&[told]).does_not_say(&["charts/*` in"]);
    sandbox.write(".mu/workspace.yaml", "");
    let json = sandbox.mu(&["trust", "--json"]).ok().json();
    assert_eq!(json["rules"][0]["pattern"], "[HOST]/charts/*");
    assert_eq!(json["packages"][0]["rule"], "[HOST]/charts/*");
    let shown = sandbox.mu(&["trust", "show", &reference]).ok();
    shown.says(&["signed by key:sha256:", "which is `team`", "accepted by rule"]);
    let json = sandbox.mu(&["trust", "show", &reference, "--json"]).ok().json();
    assert_eq!(json["evidence"][0]["verifies"], json!(true), "{json}");
    assert_eq!(json["rule"]["signedBy"], json!(["team"]));
}

#[test]
fn verify_counts_packages_by_their_signers() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    for name in ["web", "db"] {
        let digest = registry.push(name, "1.0.0");
        registry.sign(&format!("charts/{name}"), &digest, &registry.key);
    }
    sandbox.asks_for(&[&registry.chart("web"), &registry.chart("db")]);
    sandbox.mu(&["get"]).ok();
    let before = registry.server.log().len();
    let signer = identity(&registry.key);
    let says = format!("2 packages signed by {signer}");
    sandbox.mu(&["verify"]).ok().says(&["2 packs verified", &says]);
    let json = sandbox.mu(&["verify", "--json"]).ok().json();
    assert_eq!(json["signers"], json!([{"identity": signer, "packages": 2}]), "{json}");
    // Where nothing was verified yet, nobody is asked, and that is said.
    let _ = fs::remove_dir_all(sandbox.path("cache/trust"));
    sandbox.mu(&["verify"]).ok().says(&["who signed 2 packages is not known on this machine"]);
    assert_eq!(registry.requests_since(before), [""; 0]);
    sandbox
        .write(".mu/workspace.yaml", "trust: {packages: {\"*\": {refuse: \"ask Ada first\"}}}\n");
    sandbox.mu(&["verify", "--json"]).fails_with("untrusted");
}

#[test]
fn questions_about_news_check_as_an_update_does() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    let sign = |version: &str| {
        let digest = registry.push("web", version);
        registry.sign("charts/web", &digest, &registry.key);
    };
    sign("1.0.0");
    sandbox.asks_for(&[&registry.chart("web#^1")]);
    sandbox.mu(&["get"]).ok();
    sign("1.1.0");
    registry.push("web", "1.2.0");
    let json = sandbox.mu(&["outdated", "--json"]).ok().json();
    assert_eq!(json["packages"][0]["allowed"], "1.1.0", "{json}");
    sandbox.mu(&["update", "--dry-run"]).ok().says(&["1.1.0", "1.2.0 passed over"]);
    assert_eq!(sandbox.locked(), [format!("{} 1.0.0", registry.id("web"))]);
    let resolved = sandbox.mu(&["resolve", &registry.chart("web#^1.1")]).ok();
    resolved.says(&["1.1.0"]);
}

#[test]
fn the_image_of_a_bundle_is_signed_as_any_other() {
    let mut sandbox = Sandbox::new();
    let server = OciServer::start(Behaviour { referrers: true, ..Behaviour::default() });
    sandbox.replace(&server.host(), "[HOST]");
    let key = Key::usual(&sandbox, "team");
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("kafka", "stable");
    let mut images = Vec::new();
    for version in ["0.1.0", "0.2.0"] {
        let bundle = Bundle::new("kafka", version);
        let image = bundle.push(&server, "acme/kafka-bundle");
        images.push(image.rsplit_once('@').expect("has a digest").1.to_owned());
        operators.bundle(&bundle.image(&image));
    }
    operators.channel("kafka", "stable", &[json!("kafka.v0.1.0"), json!("kafka.v0.2.0")]);
    sandbox.write(
        ".mu/workspace.yaml",
        "registries:\n  operators.example/: {provider: olm, url: ../catalog}\n",
    );
    let key_file = key.public.display();
    user_says(
        &sandbox,
        &format!(
            "trust:\n  signers: {{team: {key_file}}}\n  packages: {{operators.example/*: {{signedBy: [team]}}}}\n"
        ),
    );
    // The older one alone is signed.
    let bundle = key.bundle(&images[0], SIGNED);
    let referring = referrer(&images[0], &bundle, |bytes| server.blob(bytes));
    server.manifest("acme/kafka-bundle", "signature", &referring);
    sandbox.asks_for(&["operators.example/kafka"]);
    sandbox.mu(&["get"]).ok().says(&["kafka 0.1.0", "0.2.0 passed over"]);
    assert_eq!(sandbox.lock()["packages"][0]["signedBy"], json!([identity(&key)]));
    forget(&sandbox);
    sandbox.mu(&["get", "--locked"]).ok();
}
