//! Who signs stays who signed: what rules compare between the locked version and a new one. And what a proven time does to a cooldown.

use std::fs;

use mu_testing::{
    Chart, Charts, Nginx, SignedContent, Signer, Sigstore, Workflow, pull, push_manifest,
};
use serde_json::{Value, json};

use super::support::{Run, Sandbox, write};
use super::trust::{Registry, forget};

const ACME: &str = "github:acme/charts/.github/workflows/release.yml";
const EVE: &str = "github:eve/charts/.github/workflows/release.yml";

/// A registry, and an instance of sigstore whose root the user trusts.
struct Published {
    registry: Registry,
    sigstore: Sigstore,
}

impl Published {
    fn new() -> Self {
        let published = Self { registry: Registry::new(), sigstore: Sigstore::new() };
        let root = published.sigstore.root().to_string();
        write(&published.sandbox().path("home/.mu"), "root.json", root);
        published.sandbox().asks_for(&[&published.registry.chart("web#^1")]);
        published
    }

    fn sandbox(&self) -> &Sandbox {
        &self.registry.sandbox
    }

    /// Has the user say these rules.
    fn rules(&self, packages: &str) {
        let text = format!("trust:\n  roots: [./root.json]\n  packages: {{{packages}}}\n");
        write(&self.sandbox().path("home/.mu"), "config.yaml", text);
    }

    fn mu(&self, arguments: &[&str]) -> Run {
        self.sandbox().mu(arguments)
    }

    /// Pushes a version that a workflow of this owner has signed, or nobody.
    fn push(&self, version: &str, owner: Option<&str>) {
        let digest = self.registry.push("web", version);
        if let Some(owner) = owner {
            sign(&self.registry, &self.sigstore, "charts/web", &digest, owner);
        }
    }

    /// The locked version, and who signed it.
    fn locked(&self) -> (String, Value) {
        let entry = &self.sandbox().lock()["packages"][0];
        (entry["version"].as_str().expect("is a text").to_owned(), entry["signedBy"].clone())
    }
}

/// Signs what a digest in a repository names as the workflow of this owner.
fn sign(registry: &Registry, sigstore: &Sigstore, place: &str, digest: &str, owner: &str) {
    let repository = format!("{owner}/charts");
    let subject =
        format!("https://github.com/{repository}/.github/workflows/release.yml@refs/tags/v1");
    let reference = "refs/tags/v1";
    let workflow = Workflow { subject: &subject, repository: &repository, reference, id: "7" };
    sigstore.workflow(&workflow);
    let content = SignedContent::Statement(digest, "https://sigstore.dev/cosign/sign/v1");
    let bundle = sigstore.bundle("0.3", content).to_string();
    registry.put_bundle(place, digest, bundle.as_bytes());
}

#[test]
fn first_sight_is_trusted_and_a_change_is_warned_of() {
    let published = Published::new();
    published.rules("\"*\": {continuity: warn}");
    published.push("1.0.0", Some("acme"));
    published.mu(&["get"]).ok();
    assert_eq!(published.locked(), ("1.0.0".to_owned(), json!([ACME])));
    published.push("1.1.0", Some("acme"));
    published.mu(&["update"]).ok().does_not_say(&["signed by"]);
    published.push("1.2.0", Some("eve"));
    let changed = format!("1.2.0: signed by {EVE}; the locked one is signed by {ACME}");
    let rule = "(rule `*` in ~/.mu/config.yaml: continuity warn)";
    let run = published.mu(&["update", "--dry-run"]).ok();
    run.says(&[&changed, rule]);
    published.mu(&["update"]).ok().says(&["1.2.0", &changed, rule]);
    assert_eq!(published.locked(), ("1.2.0".to_owned(), json!([EVE])));
    // It was said, and now the new one is the one before.
    published.mu(&["get"]).ok().does_not_say(&["signed by"]);
    published.push("1.3.0", None);
    let unsigned = "1.3.0: no signature (looked at sha256-";
    let run = published.mu(&["update"]).ok();
    run.says(&[unsigned, &format!("; the locked one is signed by {EVE}")]);
    assert_eq!(published.locked(), ("1.3.0".to_owned(), json!(null)));
    // Nobody signed that one, so whoever comes next is the first.
    published.push("1.4.0", Some("acme"));
    published.mu(&["update"]).ok().does_not_say(&["signed by"]);
    published.mu(&["trust"]).ok().says(&["*", "with a warning if it is by others", ACME]);
}

#[test]
fn versions_by_others_are_no_candidates_where_a_rule_refuses_them() {
    for strategy in ["minimal", "highest"] {
        let published = Published::new();
        published.sandbox().write(".mu/workspace.yaml", &format!("resolution: {strategy}\n"));
        published.rules("\"*\": {continuity: refuse}");
        published.push("1.0.0", Some("acme"));
        published.mu(&["get"]).ok();
        published.push("1.1.0", Some("acme"));
        published.push("1.2.0", Some("eve"));
        published.push("1.3.0", None);
        let run = published.mu(&["update"]).ok();
        run.says(&["1.1.0", "1.3.0 and 1 more passed over", "the locked one is signed by"]);
        assert_eq!(published.locked(), ("1.1.0".to_owned(), json!([ACME])), "{strategy}");
    }
}

#[test]
fn a_signature_that_comes_later_is_seen_when_versions_are_chosen_again() {
    let published = Published::new();
    let (registry, sigstore) = (&published.registry, &published.sigstore);
    published.rules("\"*\": {continuity: refuse}");
    published.push("1.0.0", Some("acme"));
    published.mu(&["get"]).ok();
    let digest = registry.push("web", "1.1.0");
    sign(registry, sigstore, "charts/web", &digest, "eve");
    let passed_over = ["1.1.0 passed over", EVE];
    published.mu(&["update"]).ok().says(&passed_over);
    // What was found out about it before was worth too little, so it is no answer any more.
    sign(registry, sigstore, "charts/web", &digest, "acme");
    published.mu(&["outdated", "--json"]).ok().says(&["1.1.0"]);
    published.mu(&["update"]).ok().says(&["1.1.0"]).does_not_say(&["passed over"]);
    assert_eq!(published.locked(), ("1.1.0".to_owned(), json!([ACME])));
    // The same for one that nobody had signed. What was good stays so, and asks nobody.
    let digest = registry.push("web", "1.2.0");
    published.mu(&["update"]).ok().says(&["1.2.0 passed over: no signature"]);
    sign(registry, sigstore, "charts/web", &digest, "acme");
    published.mu(&["update"]).ok().does_not_say(&["passed over"]);
    assert_eq!(published.locked().0, "1.2.0");
    let before = registry.server.log().len();
    published.mu(&["get"]).ok();
    published.mu(&["get", "--frozen"]).ok();
    assert_eq!(registry.requests_since(before), [""; 0]);
}

#[test]
fn a_version_by_others_must_be_asked_for_and_allowed() {
    let published = Published::new();
    published.rules("\"*\": {continuity: refuse}");
    published.push("1.0.0", Some("acme"));
    published.push("1.2.0", Some("eve"));
    published.sandbox().asks_for(&[&published.registry.chart("web#1.0.0")]);
    published.mu(&["get"]).ok();
    published.sandbox().asks_for(&[&published.registry.chart("web#1.2.0")]);
    let run = published.mu(&["get"]).fails();
    run.says(&["no version of", EVE, "continuity refuse", "mu trust allow"]);
    published.mu(&["get", "--json"]).fails_with("untrusted");
    // Whoever knows why may say so, for this content.
    let allow = format!("{}#1.2.0", published.registry.id("web"));
    published.mu(&["trust", "allow", &allow, "--yes"]).ok();
    published.mu(&["get"]).ok().says(&["1.2.0"]);
}

#[test]
fn a_lock_that_claims_the_signer_of_before_is_refused() {
    let published = Published::new();
    published.rules("\"*\": {continuity: refuse}");
    published.push("1.0.0", Some("acme"));
    published.mu(&["get"]).ok();
    let good = published.sandbox().read("Mu.lock");
    // A pull request brings the version of somebody else, and says that it is by the same as before.
    fs::remove_file(published.sandbox().path("work/Mu.lock")).expect("is there");
    published.push("1.1.0", Some("eve"));
    forget(published.sandbox());
    published.mu(&["get"]).ok();
    let other = published.sandbox().read("Mu.lock");
    assert!(other.contains(EVE));
    forget(published.sandbox());
    published.mu(&["get", "--locked"]).ok();
    published.sandbox().write("Mu.lock", &other.replace(EVE, ACME));
    for options in ["--locked", "--frozen"] {
        let run = published.mu(&["get", options]).fails();
        run.says(&["1.1.0, which Mu.lock names, is not signed as your rules ask", EVE, ACME]);
        published.mu(&["get", options, "--json"]).fails_with("untrusted");
    }
    // The other way round: the old version, with the name of whoever signed the next one.
    published.sandbox().write("Mu.lock", &good.replace(ACME, EVE));
    forget(published.sandbox());
    let why =
        format!("Mu.lock says that 1.0.0 is signed by {EVE}, and it is not: signed by {ACME}");
    published.mu(&["update"]).fails().says(&["no version of", &why]);
    published.mu(&["update", "--json"]).fails_with("untrusted");
    // One more name beside the right one.
    published.sandbox().write("Mu.lock", &good.replace(ACME, &format!("{ACME}, {EVE}")));
    assert_eq!(published.locked().1, json!([ACME, EVE]));
    forget(published.sandbox());
    published.mu(&["update"]).ok().says(&["1.1.0 passed over", EVE]);
    assert_eq!(published.locked(), ("1.0.0".to_owned(), json!([ACME])));
    published.sandbox().write("Mu.lock", &good);
    forget(published.sandbox());
    published.mu(&["get", "--locked"]).ok();
}

#[test]
fn the_most_exact_rule_counts_and_costs_what_it_asks_for() {
    let published = Published::new();
    published.push("1.0.0", Some("acme"));
    let host = published.registry.host();
    let count = |packages: &str, is_locked: bool| {
        published.rules(packages);
        forget(published.sandbox());
        if !is_locked {
            let _ = fs::remove_file(published.sandbox().path("work/Mu.lock"));
        }
        let before = published.registry.server.log().len();
        published.mu(&["get"]).ok();
        published.registry.requests_since(before).len()
    };
    let without = count("", false);
    let off = format!("\"*\": {{continuity: refuse}}, \"{host}/charts/*\": {{continuity: off}}");
    assert_eq!(count(&off, false), without);
    assert!(count("\"*\": {continuity: warn}", false) > without);
    assert_eq!(published.locked().1, json!([ACME]));
    // What is locked already is no news: only where others are refused is it proven who signed it.
    let locked = count("", true);
    assert_eq!(count("\"*\": {continuity: warn}", true), locked);
    assert!(count("\"*\": {continuity: refuse}", true) > locked);
    let before = published.registry.server.log().len();
    published.mu(&["get"]).ok();
    published.mu(&["get", "--frozen", "--offline"]).ok();
    assert_eq!(published.registry.requests_since(before), [""; 0]);
    // A rule that also names signers.
    let both = "\"*\": {signedBy: [eve, acme], continuity: refuse}";
    published.rules(both);
    let config = published.sandbox().path("home/.mu/config.yaml");
    let text = fs::read_to_string(&config).expect("is there");
    let signers = "  signers: {eve: {github: eve/charts}, acme: {github: acme/charts}}\n";
    fs::write(config, text + signers).expect("can be written");
    published.push("1.1.0", Some("eve"));
    published.mu(&["update"]).ok().says(&["1.1.0 passed over", "the locked one is signed by"]);
}

#[test]
fn a_checkout_vouches_for_nobody_before_its_user() {
    let published = Published::new();
    published.rules("\"*\": {continuity: refuse}");
    published.push("1.0.0", Some("acme"));
    published.mu(&["get"]).ok();
    // An instance of somebody else, which calls itself what it likes, and whose root a checkout brings.
    let other = Sigstore::new();
    let digest = published.registry.push("web", "1.1.0");
    sign(&published.registry, &other, "charts/web", &digest, "acme");
    let sandbox = published.sandbox();
    sandbox.write("root.json", &other.root().to_string());
    for rule in ["continuity: off", "continuity: warn", "signedBy: [acme]"] {
        let text = format!(
            "trust:\n  roots: [./root.json]\n  signers: {{acme: {{github: acme/charts}}}}\n  packages: {{\"*\": {{{rule}}}}}\n"
        );
        sandbox.write(".mu/workspace.yaml", &text);
        let run = published.mu(&["update"]).ok();
        run.says(&["1.1.0 passed over", "in ~/.mu/config.yaml"]);
        assert_eq!(published.locked().0, "1.0.0");
    }
}

#[test]
fn a_place_that_hides_what_it_has_not_is_no_change_at_first_sight() {
    let signer = Signer::new();
    let mut sandbox = Sandbox::new();
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    charts.add(&Chart::new("web", "1.0.0"));
    let serve = |rules: &str| Nginx::serve(&sandbox.path("www"), rules);
    // A store that answers 403 for what is not there, and one that refuses the archive as well.
    let (hiding, closed) =
        (serve("location ~ prov$ { return 403; }"), serve("location ~ tgz { return 403; }"));
    sandbox.replace(&hiding.host(), "[HOST]");
    sandbox.replace(&closed.host(), "[CLOSED]");
    let says = |lines: &str| write(&sandbox.path("home/.mu"), "config.yaml", lines);
    let signers = format!("  signers: {{ada: \"{}\"}}\n", signer.public().replace('\n', "\\n"));
    for level in ["warn", "refuse"] {
        says(&format!("trust:\n  packages: {{\"*\": {{continuity: {level}}}}}\n"));
        forget(&sandbox);
        let _ = fs::remove_file(sandbox.path("work/Mu.lock"));
        sandbox.asks_for(&[&format!("helm+{}", hiding.url("stable/web"))]);
        sandbox.mu(&["get"]).ok();
        forget(&sandbox);
        let _ = fs::remove_file(sandbox.path("work/Mu.lock"));
        sandbox.asks_for(&[&format!("helm+{}", closed.url("stable/web"))]);
        sandbox.mu(&["get", "--json"]).fails_with("auth");
    }
    // Where somebody must have signed, a refusal may hide just that.
    says(&format!("trust:\n{signers}  packages: {{\"*\": {{signedBy: [ada]}}}}\n"));
    sandbox.asks_for(&[&format!("helm+{}", hiding.url("stable/web"))]);
    sandbox.mu(&["get", "--json"]).fails_with("auth");
    let reference = format!("helm+{}", hiding.url("stable/web"));
    let shown = sandbox.mu(&["trust", "show", &reference]).ok();
    shown.says(&["unreadable http://[HOST]/stable/web-1.0.0.tgz.prov", "not accepted", "403"]);
}

/// The tag at which a registry has the index of a package of mu.
const INDEX_TAG: &str = "sha256-eba1582f16a4f7dba39359c71460b353a642c47048b6532d6d37b704ddb3f5a3";

/// Has the registry say of the only version of a package that it was published at this time; returns the digest of its manifest.
fn date(host: &str, repository: &str, version: &str, time: &str) -> String {
    const CREATED: &str = "org.opencontainers.image.created";
    const RELEASE: &str = "com.mu.release";
    let read = |name: &str| -> Value {
        let bytes = pull(host, &format!("{repository}/manifests/{name}")).expect("is there");
        serde_json::from_slice(&bytes).expect("is JSON")
    };
    let (mut manifest, mut index) = (read(version), read(INDEX_TAG));
    let entries = index["manifests"].as_array_mut().expect("is a list");
    let is_it = |entry: &&mut Value| entry["annotations"] == manifest["annotations"];
    let entry = entries.iter_mut().find(is_it).expect("has the version");
    let said = &mut manifest["annotations"];
    let mut line: Value =
        serde_json::from_str(said[RELEASE].as_str().expect("is a text")).expect("is JSON");
    line["published"] = json!(time);
    said[RELEASE] = json!(line.to_string());
    said[CREATED] = json!(time);
    entry["annotations"] = said.clone();
    let digest = push_manifest(host, repository, version, &manifest);
    entry["digest"] = json!(digest);
    entry["size"] = json!(manifest.to_string().len());
    push_manifest(host, repository, INDEX_TAG, &index);
    digest
}

#[test]
fn a_proven_time_makes_a_version_younger_and_never_older() {
    let published = Published::new();
    let (registry, host) = (&published.registry, published.registry.host());
    let sandbox = published.sandbox();
    let place = format!("registries: {{hub.mu.com/: \"oci://{host}/charts\"}}\n");
    let user = |lines: &str| {
        write(&sandbox.path("home/.mu"), "config.yaml", format!("{place}{lines}"));
        forget(sandbox);
        let _ = fs::remove_file(sandbox.path("work/Mu.lock"));
    };
    let publish = |version: &str, time: &str| {
        let folder = format!("author/{version}");
        let text = format!("name: acme/lib\nversion: {version}\nlicense: MIT\n");
        write(&sandbox.path(&folder), "Mu.yaml", text);
        write(&sandbox.path(&folder), ".mu/workspace.yaml", "");
        sandbox.mu_in(&folder, &["publish"]).ok();
        let digest = date(&host, "charts/acme/lib", version, time);
        sign(registry, &published.sigstore, "charts/acme/lib", &digest, "acme");
    };
    user("");
    publish("1.0.0", "2020-01-01T00:00:00Z");
    sandbox.asks_for(&["acme/lib"]);
    let root = "trust:\n  roots: [./root.json]\n  signers: {acme: {github: acme/charts}}\n";
    let rule = format!("{root}  packages: {{\"*\": {{signedBy: [acme]}}}}\n");
    // The registry says that it is old, and without a rule that is all there is.
    user("minimumReleaseAge: 3 days\n");
    published.mu(&["get"]).ok().says(&["1.0.0"]);
    // It was signed just now.
    user(&format!("minimumReleaseAge: 3 days\n{rule}"));
    published.mu(&["get"]).fails().says(&["minimumReleaseAge", "1.0.0"]);
    // Whoever allows that gets it, and a locked version stays.
    published.mu(&["get", "--exclude-newer", "2999-01-01"]).ok();
    published.mu(&["get"]).ok();
    // A version of tomorrow is not of today because it was signed today.
    publish("1.1.0", "2999-01-01T00:00:00Z");
    user(&rule);
    published.mu(&["get", "--exclude-newer", "2998-01-01"]).ok();
    assert_eq!(published.locked().0, "1.0.0");
}
