//! Signatures by workflows and people, without a key of their own: a certificate says who it was, and logs and times prove it. All of it
//! is made by an instance of sigstore of the tests' own, whose root the settings name.

use std::fs;

use mu_testing::{CosignLayer, SignedContent, Sigstore, Workflow, extension, pull};
use serde_json::{Value, json};

use super::support::{Run, write};
use super::trust::{Registry, forget};

const OWN: &str = "https://github.com/acme/charts/.github/workflows/release.yml@refs/tags/v1.0.0";
/// How a lock names it.
const IDENTITY: &str = "github:acme/charts/.github/workflows/release.yml";
const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";
const PROVENANCE: &str = "https://slsa.dev/provenance/v1";

/// The workflow that the usual rule names.
const USUAL: Workflow<'static> =
    Workflow { subject: OWN, repository: "acme/charts", reference: "refs/tags/v1.0.0", id: "7" };

/// A registry, and an instance whose root the user trusts.
struct Instance {
    registry: Registry,
    sigstore: Sigstore,
}

/// Lets what is below `charts` be signed by this signer alone, whose certificate leads to one of the roots.
fn rule(host: &str, signer: &str, roots: &str) -> String {
    format!(
        "trust:\n  signers: {{acme-ci: {signer}}}\n  packages: {{\"{host}/charts/*\": {{signedBy: [acme-ci]}}}}\n{roots}"
    )
}

const ROOTS: &str = "  roots: [sigstore, ./root.json]\n";

impl Instance {
    fn new() -> Self {
        let instance = Self { registry: Registry::new(), sigstore: Sigstore::new() };
        instance.sigstore.workflow(&USUAL);
        instance.put_root(&instance.sigstore.root());
        instance.user_names(
            "{github: acme/charts, workflow: release.yml, ref: \"refs/tags/*\", id: 7}",
        );
        instance
    }

    fn put_root(&self, root: &Value) {
        write(&self.registry.sandbox.path("home/.mu"), "root.json", root.to_string());
    }

    /// Has the user name this signer in the only rule.
    fn user_names(&self, signer: &str) {
        self.user_says(&rule(&self.registry.host(), signer, ROOTS));
    }

    fn user_says(&self, lines: &str) {
        write(&self.registry.sandbox.path("home/.mu"), "config.yaml", lines);
    }

    fn mu(&self, arguments: &[&str]) -> Run {
        self.registry.sandbox.mu(arguments)
    }

    /// Puts a signature of cosign 2 about a digest there.
    fn put_cosign(&self, repository: &str, digest: &str, layer: &CosignLayer) {
        let said = [
            ("dev.cosignproject.cosign/signature", &*layer.signature),
            ("dev.sigstore.cosign/certificate", &layer.certificate),
            ("dev.sigstore.cosign/chain", &layer.chain),
            ("dev.sigstore.cosign/bundle", &layer.rekor),
        ];
        self.registry.put_layer(repository, digest, &layer.payload, &said);
    }

    fn put(&self, repository: &str, digest: &str, bundle: &Value) {
        self.registry.put_bundle(repository, digest, bundle.to_string().as_bytes());
    }

    /// Signs what a digest names as the last identity, in the newest form.
    fn sign(&self, repository: &str, digest: &str) {
        let content = SignedContent::Statement(digest, SIGNED);
        self.put(repository, digest, &self.sigstore.bundle("0.3", content));
    }

    /// What `mu trust show` says of a version.
    fn shown(&self, package: &str) -> Value {
        self.mu(&["trust", "show", &self.registry.chart(package), "--json"]).ok().json()
    }
}

#[test]
fn what_a_workflow_signed_is_used_in_each_form_and_its_identity_is_locked() {
    let instance = Instance::new();
    let Instance { registry, sigstore } = &instance;
    let sandbox = &registry.sandbox;
    let names = ["two", "v1", "v2", "v3", "bytes", "provenance"];
    for name in names {
        let (repository, digest) = (format!("charts/{name}"), registry.push(name, "1.0.0"));
        let path = format!("{repository}/manifests/{digest}");
        let manifest = pull(&registry.host(), &path).expect("was pushed");
        let signed = SignedContent::Statement(&digest, SIGNED);
        let (version, content) = match name {
            "two" => {
                instance.put_cosign(&repository, &digest, &sigstore.cosign(&digest));
                continue;
            }
            "v1" => ("0.1", signed),
            "v2" => ("0.2", signed),
            "v3" => ("0.3", signed),
            "bytes" => ("0.3", SignedContent::Bytes(&manifest)),
            _ => ("0.3", SignedContent::Statement(&digest, PROVENANCE)),
        };
        instance.put(&repository, &digest, &sigstore.bundle(version, content));
    }
    let charts: Vec<String> = names.iter().map(|name| registry.chart(name)).collect();
    sandbox.asks_for(&charts.iter().map(String::as_str).collect::<Vec<_>>());
    instance.mu(&["get"]).ok();
    let lock = sandbox.lock();
    for package in lock["packages"].as_array().expect("is a list") {
        assert_eq!(package["signedBy"], json!([IDENTITY]), "{package}");
    }
    // Wherever somebody looks.
    let six = json!([{"identity": IDENTITY, "packages": 6}]);
    assert_eq!(instance.mu(&["verify", "--json"]).ok().json()["signers"], six);
    instance.mu(&["trust"]).ok().says(&[IDENTITY, "github:acme/charts workflow release.yml"]);
    let info = instance.mu(&["info", &registry.chart("two")]).ok();
    info.says(&[&format!("signed by {IDENTITY}")]);
    for name in names {
        let shown = instance.shown(name);
        let piece = &shown["evidence"][0];
        assert_eq!((&shown["accepted"], &piece["verifies"]), (&json!(true), &json!(true)));
        assert_eq!(piece["identity"], json!(IDENTITY), "{shown}");
    }
    // The same on another machine; and then without the network, and nobody is asked.
    forget(sandbox);
    instance.mu(&["get", "--locked"]).ok();
    let before = registry.server.log().len();
    instance.mu(&["get", "--frozen", "--offline"]).ok();
    assert_eq!(registry.requests_since(before), [""; 0]);
}

#[test]
fn another_identity_is_passed_over_and_named() {
    let instance = Instance::new();
    let registry = &instance.registry;
    let digest = registry.push("web", "1.0.0");
    instance.sign("charts/web", &digest);
    let of_file = |file: &str| {
        format!("https://github.com/acme/charts/.github/workflows/{file}@refs/tags/v1.0.0")
    };
    let (test, posing) = (of_file("test.yml"), of_file("release.yml@x.yml"));
    let eve = OWN.replace("acme/", "eve/");
    let shared = OWN.replace("acme/charts", "acme/shared");
    let cases = [
        (
            "1.1.0",
            Workflow { subject: &eve, repository: "eve/charts", ..USUAL },
            "signed by github:eve/charts/.github/workflows/release.yml, which is not `acme-ci`",
        ),
        (
            "1.2.0",
            Workflow { reference: "refs/heads/main", ..USUAL },
            "release.yml for refs/heads/main of repository 7, which is not `acme-ci`",
        ),
        (
            "1.3.0",
            Workflow { subject: &test, ..USUAL },
            "workflows/test.yml for refs/tags/v1.0.0 of repository 7, which is not `acme-ci`",
        ),
        ("1.4.0", Workflow { subject: &posing, ..USUAL }, "workflows/release.yml@x.yml for"),
        // A workflow of another repository, which this one ran.
        (
            "1.5.0",
            Workflow { subject: &shared, ..USUAL },
            "signed by github:acme/charts/acme/shared/.github/workflows/release.yml for",
        ),
        // A repository that has the name now.
        ("1.6.0", Workflow { id: "8", ..USUAL }, "for refs/tags/v1.0.0 of repository 8, which"),
    ];
    for (version, workflow, _) in &cases {
        let digest = registry.push("web", version);
        instance.sigstore.workflow(workflow);
        instance.sign("charts/web", &digest);
    }
    for (version, _, why) in cases {
        let shown = instance.shown(&format!("web#{version}"));
        assert_eq!(shown["accepted"], json!(false), "{shown}");
        assert!(shown["why"].as_str().is_some_and(|text| text.contains(why)), "{why}: {shown}");
        // It is known who it was, all the same.
        assert_eq!(shown["evidence"][0]["verifies"], json!(true), "{shown}");
    }
    registry.sandbox.asks_for(&[&registry.chart("web#^1")]);
    instance.mu(&["get"]).ok().says(&["web 1.0.0", "1.6.0 and 5 more passed over"]);
    // Whoever means the workflow of another repository names it.
    instance
        .user_names("{github: acme/charts, workflow: acme/shared/.github/workflows/release.yml}");
    instance.mu(&["update"]).ok().says(&["1.5.0"]);
    let identity = "github:acme/charts/acme/shared/.github/workflows/release.yml";
    assert_eq!(registry.sandbox.lock()["packages"][0]["signedBy"], json!([identity]));
}

#[test]
fn evidence_that_is_forged_stripped_or_foreign_counts_for_nothing() {
    let instance = Instance::new();
    let Instance { registry, sigstore } = &instance;
    let digest = registry.push("web", "1.0.0");
    let other = registry.push("web", "0.9.0");
    let signed = SignedContent::Statement(&digest, SIGNED);
    let name = format!("subjectAltName = critical,URI:{OWN}\n");
    let extensions = format!(
        "extendedKeyUsage = codeSigning\n{name}{}{}{}{}",
        extension(8, "https://token.actions.githubusercontent.com"),
        extension(12, "https://github.com/acme/charts"),
        extension(14, "refs/tags/v1.0.0"),
        extension(15, "7"),
    );
    let good = sigstore.bundle("0.3", signed);
    let without = |at: &str| {
        let mut bundle = good.clone();
        *bundle.pointer_mut(at).expect("is there") = Value::Null;
        bundle
    };
    let (entries, times) =
        ("/verificationMaterial/tlogEntries", "/verificationMaterial/timestampVerificationData");
    let mut foreign_entry = good.clone();
    let of_other = sigstore.bundle("0.3", SignedContent::Statement(&other, SIGNED));
    *foreign_entry.pointer_mut(entries).expect("is there") =
        of_other.pointer(entries).expect("is there").clone();
    let mut foreign_time = good.clone();
    *foreign_time.pointer_mut(times).expect("is there") =
        of_other.pointer(times).expect("is there").clone();
    // The timestamp of the certificate's log by another key, and a certificate that is in none.
    sigstore.certify("ca", &extensions, Some("log"));
    let forged = sigstore.bundle("0.3", signed);
    sigstore.certify("ca", &extensions, None);
    let unlogged = sigstore.bundle("0.3", signed);
    // An authority that only signs times, and one that nobody knows.
    sigstore.certify("tsca", &extensions, Some("ctlog"));
    let by_times = sigstore.bundle("0.3", signed);
    let stranger = Sigstore::new();
    stranger.workflow(&USUAL);
    let by_stranger = stranger.bundle("0.3", signed);
    sigstore.workflow(&USUAL);
    let scan = "https://cosign.sigstore.dev/attestation/vuln/v1";
    let scan = sigstore.bundle("0.3", SignedContent::Statement(&digest, scan));
    registry.sandbox.asks_for(&[&registry.chart("web#1.0.0")]);
    for (bundle, why) in [
        (without(entries), "no entry of a log comes with it"),
        (without(times), "no time is proven"),
        (foreign_entry, "the entry of the log is over something else"),
        (foreign_time, "the timestamp is over something else"),
        (forged, "the certificate log's timestamp is not by the log"),
        (unlogged, "no certificate log has its certificate"),
        (by_times, "a certificate of acme time, which no root in trust.roots knows"),
        (by_stranger, "a certificate of acme code, which no root in trust.roots knows"),
        (of_other, "signature does not verify: it is over"),
        (scan, "vuln/v1` is not evidence that mu knows"),
    ] {
        instance.put("charts/web", &digest, &bundle);
        instance.mu(&["get", "--json"]).fails_with("untrusted");
        instance.mu(&["get"]).fails().says(&[why]);
        assert!(!registry.sandbox.path("work/Mu.lock").exists(), "{why}");
    }
    // The same of cosign 2, whose promise stands for the entry.
    let layer = sigstore.cosign(&digest);
    let changed = layer.rekor.replace("\"logIndex\":7", "\"logIndex\":8");
    let of_other = sigstore.cosign(&other);
    for layer in [
        CosignLayer { rekor: changed, ..layer.clone() },
        CosignLayer { rekor: of_other.rekor.clone(), ..layer.clone() },
        of_other,
    ] {
        instance.put_cosign("charts/web", &digest, &layer);
        instance.mu(&["get", "--json"]).fails_with("untrusted");
    }
    instance.put_cosign("charts/web", &digest, &layer);
    instance.mu(&["get"]).ok();
}

#[test]
fn a_root_that_is_too_old_is_said() {
    let instance = Instance::new();
    let Instance { registry, sigstore } = &instance;
    let digest = registry.push("web", "1.0.0");
    instance.sign("charts/web", &digest);
    registry.sandbox.asks_for(&[&registry.chart("web")]);
    let newer = sigstore.root();
    for (part, what) in [
        ("tlogs", "log.acme.com"),
        ("ctlogs", "the certificate log "),
        ("timestampAuthorities", "the authority of its timestamp"),
    ] {
        let mut older = newer.clone();
        older[part] = match part {
            "ctlogs" => newer["tlogs"].clone(),
            _ => json!([]),
        };
        instance.put_root(&older);
        instance.mu(&["get"]).fails().says(&[
            &format!("signed with {what}"),
            "which the root `[DIR]/home/.mu/root.json` of 2020-01-01 does not know",
            "update mu, or name a newer file in trust.roots",
        ]);
    }
    // A file that is not there, and one that is no root.
    fs::remove_file(registry.sandbox.path("home/.mu/root.json")).expect("is there");
    let cannot = "root.json` in trust.roots cannot be used: ";
    instance.mu(&["get"]).fails().says(&[cannot, "there is no file"]);
    write(&registry.sandbox.path("home/.mu"), "root.json", "{}");
    instance.mu(&["get"]).fails().says(&[cannot, "missing field"]);
    // The public instance's root knows nothing of another one.
    let host = registry.host();
    instance.user_says(&rule(&host, "{github: acme/charts}", ""));
    let nobody = "signed with a certificate of acme code, which no root in trust.roots knows";
    instance.mu(&["get"]).fails().says(&[nobody]);
    instance.put_root(&newer);
    instance.user_names("{github: acme/charts}");
    instance.mu(&["get"]).ok();
}

#[test]
fn a_root_counts_for_the_rules_that_see_it() {
    let instance = Instance::new();
    let registry = &instance.registry;
    let (host, sandbox) = (registry.host(), &registry.sandbox);
    let digest = registry.push("web", "1.0.0");
    instance.sign("charts/web", &digest);
    sandbox.asks_for(&[&registry.chart("web")]);
    let root = instance.sigstore.root().to_string();
    sandbox.write("trust/root.json", &root);
    let own = "  roots: [./trust/root.json]\n";
    let none = "no root in trust.roots knows";
    // What a workspace trusts is no matter for the rules of its user.
    instance.user_says(&rule(&host, "{github: acme/charts}", ""));
    sandbox.write(".mu/workspace.yaml", &format!("trust:\n{own}"));
    instance.mu(&["get"]).fails().says(&[none, "in ~/.mu/config.yaml"]);
    // Its own rules see that root, and those of the user.
    let of_workspace = rule(&host, "{github: acme/charts}", "");
    for (user, workspace) in
        [("", format!("{of_workspace}{own}")), ("trust:\n  roots: [./root.json]\n", of_workspace)]
    {
        let _ = fs::remove_file(sandbox.path("work/Mu.lock"));
        forget(sandbox);
        instance.user_says(user);
        sandbox.write(".mu/workspace.yaml", &workspace);
        instance.mu(&["get"]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["signedBy"], json!([IDENTITY]));
        // Another root, and nothing that was found out by the first one counts.
        instance.user_says("");
        sandbox.write(".mu/workspace.yaml", &rule(&host, "{github: acme/charts}", ""));
        instance.mu(&["get", "--locked"]).fails().says(&[none]);
    }
}

#[test]
fn the_first_rule_is_written_and_the_roots_are_shown() {
    let instance = Instance::new();
    let registry = &instance.registry;
    let digest = registry.push("web", "1.0.0");
    instance.sign("charts/web", &digest);
    registry.sandbox.asks_for(&[&registry.chart("web")]);
    instance.user_says("");
    let roots = instance.mu(&["trust", "--json"]).ok().json()["roots"].clone();
    assert_eq!(roots, json!([{"name": "sigstore", "until": "2031-10-05T13:56:58Z"}]));
    instance.user_says("trust:\n  roots: [./root.json]\n");
    let roots = instance.mu(&["trust", "--json"]).ok().json()["roots"].clone();
    assert_eq!(roots[0]["file"], json!("~/.mu/config.yaml"), "{roots}");
    // Without a rule it is known who signed, and that is what a rule can name.
    let shown = instance.mu(&["trust", "show", &registry.chart("web")]).ok();
    shown.says(&[
        &format!("signed by {IDENTITY} (ran for refs/tags/v1.0.0)"),
        "no rule asks for a signature",
    ]);
    let pattern = format!("{}/charts/*", registry.host());
    for signer in [IDENTITY, "github:acme/charts/release.yml"] {
        let add = ["trust", "add", "acme-ci", signer, "--for", &pattern, "--yes"];
        instance.mu(&add).ok().says(&["`acme-ci` is github:acme/charts workflow release.yml"]);
    }
    instance.mu(&["get"]).ok();
    let shown = instance.mu(&["trust"]).ok();
    shown.says(&["root [DIR]/home/.mu/root.json until ", IDENTITY]);
    let wrong = ["trust", "add", "x", "github:acme", "--yes"];
    instance.mu(&wrong).says(&["`github:acme` is not a repository"]);
}

#[test]
fn a_person_signs_for_whom_an_issuer_vouches() {
    let instance = Instance::new();
    let Instance { registry, sigstore } = &instance;
    const ISSUER: &str = "https://accounts.acme.com";
    for (version, issuer, mail) in [
        ("1.0.0", ISSUER, "ada@acme.com"),
        ("1.1.0", "https://accounts.evil.com", "ada@acme.com"),
        ("1.2.0", ISSUER, "eve@acme.com.evil.com"),
    ] {
        let digest = registry.push("web", version);
        sigstore.person(issuer, mail);
        instance.sign("charts/web", &digest);
    }
    instance.user_names(&format!("{{issuer: \"{ISSUER}\", subject: \"*@acme.com\"}}"));
    registry.sandbox.asks_for(&[&registry.chart("web")]);
    let run = instance.mu(&["get"]).ok();
    run.says(&["web 1.0.0", "signed by oidc:https://accounts.acme.com eve@acme.com.evil.com"]);
    let identity = format!("oidc:{ISSUER} ada@acme.com");
    assert_eq!(registry.sandbox.lock()["packages"][0]["signedBy"], json!([identity]));
}
