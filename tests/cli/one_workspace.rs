//! The story of a team that has everything: an application, a Helm chart, a KCL module, a Crossplane configuration and an operator in
//! one workspace, with one lock, one graph and one mirror.

use std::fs;

use mu_testing::{Artifact, Bundle, Chart, Charts, DockerRegistry, Operators};
use serde_json::json;

use crate::support::Sandbox;

/// Where things come from; `[HOST]` is the registry.
const PLACES: &str = "formats: [helm, kcl, crossplane]
packages:
  charts.example/cert-manager: {provides: [cert-manager.io/v1/Certificate]}
registries:
  charts.example/: {provider: helm, url: ../charts}
  operators.example/: {provider: olm, url: ../catalog}
  ghcr.io/kcl-lang/: \"oci://[HOST]/kcl-lang\"
  xpkg.example/: \"oci://[HOST]/xpkg\"
";

/// The places that things come from: a chart repository, a catalog of operators, and a registry with KCL modules and packages of
/// Crossplane.
fn publish(sandbox: &Sandbox, host: &str) {
    fs::create_dir_all(sandbox.path("charts")).expect("can be made");
    let mut charts = Charts::new(&sandbox.path("charts"));
    charts.add(&Chart::new("cert-manager", "1.17.0"));
    charts.add(&Chart::new("common", "2.4.0").lines("type: library\n"));
    for version in ["20.0.0", "20.1.0"] {
        let redis = Chart::new("redis", version);
        charts.add(&redis.needs("common", "^2.0.0", "https://charts.example"));
    }
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("kafka", "stable");
    operators.channel("kafka", "stable", &[json!("kafka.v1.0.0")]);
    operators.bundle(&Bundle::new("kafka", "1.0.0").requires("cert-manager.io/v1/Certificate"));
    for (name, version, needs) in [("k8s", "1.31.2", ""), ("konfig", "0.4.2", "k8s = \"1.30\"\n")] {
        let text = format!(
            "[package]\nname = \"{name}\"\nversion = \"{version}\"\n\n[dependencies]\n{needs}"
        );
        let files = [("kcl.mod", &*text), ("main.k", "a = 1\n")];
        let module = Artifact::module(name, version, &files, true);
        module.push(host, &format!("kcl-lang/{name}"), version);
    }
    let provider =
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-aws}\n";
    Artifact::package(provider).push(host, "xpkg/acme/provider-aws", "v1.2.0");
}

/// The workspace: one folder for each thing that the team builds.
fn workspace(sandbox: &Sandbox, host: &str) {
    sandbox.write(".mu/workspace.yaml", &PLACES.replace("[HOST]", host));
    sandbox.write(
        "acme/shop/Mu.yaml",
        "name: acme/shop\nversion: 1.0.0\ndependencies:\n  - operators.example/kafka#^1\n",
    );
    sandbox.write(
        "deploy/Chart.yaml",
        "apiVersion: v2\nname: deploy\nversion: 0.1.0\ndependencies:\n  - name: redis\n    version: ~20\n    repository: https://charts.example\n",
    );
    sandbox.write(
        "schemas/kcl.mod",
        "[package]\nname = \"schemas\"\nversion = \"0.1.0\"\n\n[dependencies]\nkonfig = \"0.4.0\"\n",
    );
    sandbox.write(
        "platform/crossplane.yaml",
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: platform}\nspec:\n  dependsOn:\n    - provider: xpkg.example/acme/provider-aws\n      version: \">=v1.0.0\"\n",
    );
}

#[test]
fn everything_that_a_team_builds_is_in_one_workspace() {
    let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    fs::remove_file(sandbox.path("work/Mu.yaml")).ok();
    publish(&sandbox, &host);
    workspace(&sandbox, &host);
    insta::assert_snapshot!(sandbox.mu(&["get"]).ok().shown(), @"
    $ mu get
    + charts.example/cert-manager 1.17.0
    + charts.example/common 2.4.0
    + charts.example/redis 20.1.0
    + ghcr.io/kcl-lang/k8s 1.31.2
    + ghcr.io/kcl-lang/konfig 0.4.2
    + operators.example/kafka 1.0.0
    + xpkg.example/acme/provider-aws 1.2.0
    installed 7 packages (7 downloaded, 0 from cache)
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["tree"]).ok().shown(), @"
    $ mu tree
    acme/shop 1.0.0
    └── operators.example/kafka 1.0.0 (stable) [required: ^1]
        └── charts.example/cert-manager 1.17.0 [required: capability cert-manager.io/v1/Certificate]
    deploy 0.1.0
    └── charts.example/redis 20.1.0 [required: ~20]
        └── charts.example/common 2.4.0 [required: ^2.0.0]
    platform
    └── xpkg.example/acme/provider-aws 1.2.0 [required: >=v1.0.0]
    schemas 0.1.0
    └── ghcr.io/kcl-lang/konfig 0.4.2 [required: ^0.4.0]
        └── ghcr.io/kcl-lang/k8s 1.31.2 [required: ^1.30]
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["why", "charts.example/cert-manager"]).ok().shown(), @"
    $ mu why charts.example/cert-manager
    charts.example/cert-manager 1.17.0
    from helm+../charts/
    required:
      capability cert-manager.io/v1/Certificate by operators.example/kafka
    there is no newer release
    paths to it:
      acme/shop → operators.example/kafka ^1 → charts.example/cert-manager capability cert-manager.io/v1/Certificate
    [exit 0]
    ");
    sandbox.mu(&["graph", "--format", "dot"]).ok().says(&[
        "kafka",
        "redis",
        "konfig",
        "provider-aws",
    ]);
    sandbox.mu(&["verify"]).ok();
    let lock = sandbox.lock();

    // Everything goes to one mirror, and the places that it came from go away.
    let mirror = DockerRegistry::start();
    let place = format!("oci://{}/copies", mirror.host());
    sandbox.mu(&["mirror", "--lock", "--to", &place]).ok().says(&[
        "+ acme/provider-aws 1.2.0",
        "+ cert-manager 1.17.0",
        "+ kafka 1.0.0",
        "+ konfig 0.4.2",
        "7 versions copied",
    ]);
    drop(server);
    for folder in ["charts", "catalog", "cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    let (head, _) = PLACES.split_once("registries:").expect("has registries");
    let bases = ["charts.example/", "operators.example/", "ghcr.io/kcl-lang/", "xpkg.example/"];
    let registries = bases.map(|base| format!("  {base}: \"{place}\"\n")).concat();
    sandbox.write(".mu/workspace.yaml", &format!("{head}registries:\n{registries}"));
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.lock(), lock);
    sandbox.mu(&["verify"]).ok();
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
}
