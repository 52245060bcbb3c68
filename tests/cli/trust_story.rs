//! A platform team's rules as a story: charts of an OCI organization by a key or by a workflow, those of a chart repository by OpenPGP, Git
//! tags by SSH, and everything else with continuity. All of it is signed by the real tools, or by an instance of sigstore.

use std::fs;

use mu_testing::{Artifact, SignedContent, Signer, Sigstore, Workflow};
use serde_json::json;

use super::git_signatures::Author;
use super::trust::{Registry, forget, identity};
use crate::support::git::{HttpServer, Origin};
use crate::support::{Chart, Charts, Nginx, Sandbox, write};

const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

/// What the team's packages come from.
struct Team {
    registry: Registry,
    sigstore: Sigstore,
    charts: Charts,
    nginx: Nginx,
    _origin: Origin,
    git: HttpServer,
    /// The signers of the rules, as the file of settings has them.
    signers: String,
}

impl Team {
    fn new() -> Self {
        let (registry, sigstore) = (Registry::new(), Sigstore::new());
        let sandbox = &registry.sandbox;
        let pgp = Signer::new();
        let mut charts = Charts::new(&sandbox.path("www/stable"));
        let signed = Chart::new("prom", "2.0.0");
        let made = pgp.provenance(&signed.manifest(), "prom-2.0.0.tgz", &signed.archive());
        charts.add(&signed);
        write(&sandbox.path("www/stable"), "prom-2.0.0.tgz.prov", made);
        charts.add(&Chart::new("prom", "2.1.0"));

        let [ada, eve] = ["ada", "eve"].map(|name| Author::ssh(sandbox, name, &["-t", "ed25519"]));
        let origin = Origin::new("libs.git");
        origin.commit(&[("Mu.yaml", "name: libs\n"), ("file", "one")]);
        ada.git(&origin, &["tag", "-s", "-m", "a release", "v1.0.0"]);
        origin.commit(&[("file", "two")]);
        eve.git(&origin, &["tag", "-s", "-m", "a release", "v1.1.0"]);

        let indented = |text: &str| text.trim_end().replace('\n', "\n      ");
        let signers = format!(
            "trust:\n  roots: [sigstore, ./root.json]\n  signers:\n    charts-key: {}\n    \
             acme-ci: {{github: acme/charts, workflow: release.yml, ref: refs/heads/main}}\n    \
             prometheus: |-\n      {}\n    ada: |-\n      {}\n",
            registry.key.public.display(),
            indented(&pgp.public()),
            indented(&ada.public),
        );
        write(&sandbox.path("home/.mu"), "root.json", sigstore.root().to_string());
        let nginx = Nginx::serve(&sandbox.path("www"), "");
        let git = HttpServer::start(origin.root());
        let team = Self { registry, sigstore, charts, nginx, _origin: origin, git, signers };
        team.rules("charts-key, acme-ci");
        let tool = Chart::new("tool", "0.1.0");
        Artifact::chart(&tool).push(&team.registry.host(), "other/tool", "0.1.0");
        let digest = team.registry.push("web", "1.3.0");
        team.registry.sign("charts/web", &digest, &team.registry.key);
        team.by_workflow("1.4.0", "release.yml");
        team.by_workflow("1.5.0", "test.yml");
        team
    }

    fn sandbox(&self) -> &Sandbox {
        &self.registry.sandbox
    }

    /// The host of the repositories.
    fn git_host(&self) -> String {
        self.git.root().trim_start_matches("http://").trim_end_matches('/').to_owned()
    }

    /// Has the user say the team's rules; these may sign what is below `charts`.
    fn rules(&self, charts: &str) {
        let (host, nginx, git) = (self.registry.host(), self.nginx.host(), self.git_host());
        let packages = format!(
            "  packages:\n    \"{host}/charts/*\": {{signedBy: [{charts}]}}\n    \
             \"{nginx}/stable/*\": {{signedBy: [prometheus]}}\n    \
             \"{git}/*\": {{signedBy: [ada]}}\n    \"*\": {{continuity: warn}}\n"
        );
        let text = format!("{}{packages}", self.signers);
        write(&self.sandbox().path("home/.mu"), "config.yaml", text);
    }

    /// Pushes a version of `web` that a workflow of the team's repository has signed.
    fn by_workflow(&self, version: &str, file: &str) {
        let digest = self.registry.push("web", version);
        let subject =
            format!("https://github.com/acme/charts/.github/workflows/{file}@refs/heads/main");
        self.sigstore.workflow(&Workflow {
            subject: &subject,
            repository: "acme/charts",
            reference: "refs/heads/main",
            id: "7",
        });
        let bundle = self.sigstore.bundle("0.3", SignedContent::Statement(&digest, SIGNED));
        self.registry.put_bundle("charts/web", &digest, bundle.to_string().as_bytes());
    }

    /// All that the workspace asks for.
    fn asked(&self) -> [String; 4] {
        [
            self.registry.chart("web#^1"),
            format!("helm+{}", self.nginx.url("stable/prom#^2")),
            format!("{}libs.git#^1", self.git.root()),
            format!("oci://{}/other/tool", self.registry.host()),
        ]
    }
}

#[test]
fn a_teams_rules_hold_for_charts_workflows_and_git_and_a_clone_cannot_lower_them() {
    let mut team = Team::new();
    let asked = team.asked();
    team.sandbox().asks_for(&asked.each_ref().map(String::as_str));

    // The newest version that each rule accepts, with a line for what is passed over.
    let run = team.sandbox().mu(&["get"]).ok();
    run.says(&[
        "web` 1.4.0 is used, and 1.5.0 passed over: signed by github:acme/charts/.github/workflows/test.yml",
        "prom` 2.0.0 is used, and 2.1.0 passed over: no signature",
        "libs` 1.0.0 is used, and 1.1.0 passed over: ",
        "tool 0.1.0",
    ]);
    let lock = team.sandbox().lock();
    let signed = |leaf: &str| {
        let packages = lock["packages"].as_array().expect("is a list");
        let own =
            packages.iter().find(|one| one["id"].as_str().is_some_and(|id| id.ends_with(leaf)));
        own.unwrap_or_else(|| panic!("{leaf} is not in {lock}"))["signedBy"].clone()
    };
    assert_eq!(signed("/web"), json!(["github:acme/charts/.github/workflows/release.yml"]));
    assert!(signed("/prom")[0].as_str().is_some_and(|by| by.starts_with("pgp:")));
    assert!(signed("/libs")[0].as_str().is_some_and(|by| by.starts_with("ssh:SHA256:")));
    assert_eq!(signed("/tool"), json!(null));

    // Anybody can ask who signed what.
    let older = team.registry.chart("web#1.3.0");
    let shown = team.sandbox().mu(&["trust", "show", &older]).ok();
    shown.says(&[&identity(&team.registry.key), "accepted"]);
    let shown = team.sandbox().mu(&["trust", "show", &asked[1], "--json"]).ok().json();
    assert_eq!((&shown["version"], &shown["accepted"]), (&json!("2.1.0"), &json!(false)));

    // A locked version that a rule accepts no more is an error, and nothing moves by itself.
    let locked = team.sandbox().read("Mu.lock");
    team.rules("charts-key");
    let run = team.sandbox().mu(&["get"]).fails();
    run.says(&["/charts/web` 1.4.0, which Mu.lock names", "release.yml", "mu update"]);
    assert_eq!(team.sandbox().read("Mu.lock"), locked);
    team.rules("charts-key, acme-ci");
    team.sandbox().mu(&["get", "--locked"]).ok();

    // A clone brings settings and a lock of its own: neither lowers what the user's file says.
    let host = team.registry.host();
    team.sandbox().write(
        ".mu/workspace.yaml",
        &format!("trust: {{packages: {{\"{host}/charts/*\": {{continuity: off}}}}}}\n"),
    );
    team.sandbox().asks_for(&[&team.registry.chart("web#1.5.0")]);
    team.sandbox().mu(&["get", "--json"]).fails_with("untrusted");
    team.sandbox().write("Mu.lock", &locked.replace("release.yml", "test.yml"));
    team.sandbox().asks_for(&asked.each_ref().map(String::as_str));
    team.sandbox().write(".mu/workspace.yaml", "");
    forget(team.sandbox());
    let run = team.sandbox().mu(&["verify", "--trust"]).fails();
    run.says(&["Mu.lock says that github:acme/charts/.github/workflows/test.yml signed it"]);
    team.sandbox().write("Mu.lock", &locked);
    team.sandbox().mu(&["get", "--locked"]).ok();
    team.sandbox().mu(&["verify", "--trust"]).ok();

    // Behind an air gap: what was vendored proves itself, without cache and network.
    team.sandbox().mu(&["vendor", "--archives"]).ok();
    let _ = fs::remove_dir_all(team.sandbox().path("cache"));
    let before =
        team.registry.server.log().len() + team.nginx.log().len() + team.git.requests().len();
    team.sandbox().mu(&["get", "--locked", "--offline"]).ok();
    team.sandbox().mu(&["verify", "--offline"]).ok();
    let after =
        team.registry.server.log().len() + team.nginx.log().len() + team.git.requests().len();
    assert_eq!(after, before);

    // A later version goes the same way.
    let next = Chart::new("prom", "2.2.0");
    team.charts.add(&next);
    team.sandbox().mu(&["outdated"]).says(&["prom"]);
}
