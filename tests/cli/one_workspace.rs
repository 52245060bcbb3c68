//! The story of a team that has everything: an application, a Helm chart, a KCL module, a Crossplane configuration and an operator in
//! one workspace, with one lock, one graph and one mirror. Its files are in `testdata/team`.

use std::fs;

use mu_testing::{DockerRegistry, team};

use crate::support::Sandbox;

#[test]
fn everything_that_a_team_builds_is_in_one_workspace() {
    let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    fs::remove_file(sandbox.path("work/Mu.yaml")).ok();
    team::publish(&sandbox.path("work"), &host);
    insta::assert_snapshot!(sandbox.mu(&["get"]).ok().shown(), @"
    $ mu get
    + charts.example/cert-manager 1.17.0
    + charts.example/common 2.4.0
    + charts.example/redis 20.1.0
    + ghcr.io/kcl-lang/k8s 1.31.2
    + ghcr.io/kcl-lang/konfig 0.4.2
    + web/tls 1.1.0
    + operators.example/kafka 1.0.0
    + xpkg.example/acme/provider-aws 1.2.0
    warning: `hub.mu.com/` is at `file://[DIR]/published/hub/` here: .mu/workspace.yaml says so
    installed 8 packages (8 downloaded, 0 from cache)
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["tree"]).ok().shown(), @"
    $ mu tree
    acme/shop 1.0.0
    ├── web/tls 1.1.0 [required: ^1.1]
    └── operators.example/kafka 1.0.0 (stable) [required: ^1]
        └── charts.example/cert-manager 1.17.0 [required: capability cert-manager.io/v1/Certificate]
    deploy 0.1.0
    └── charts.example/redis 20.1.0 [required: ~20]
        └── charts.example/common 2.4.0 (2.0.0 inside redis, for Helm) [required: ^2.0.0]
    platform
    └── xpkg.example/acme/provider-aws 1.2.0 [required: >=v1.0.0]
    schemas 0.1.0
    └── ghcr.io/kcl-lang/konfig 0.4.2 [required: ^0.4.0]
        └── ghcr.io/kcl-lang/k8s 1.31.2 [required: ^1.30]
    shop-operator 0.1.0
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["why", "charts.example/cert-manager"]).ok().shown(), @"
    $ mu why charts.example/cert-manager
    charts.example/cert-manager 1.17.0
    from helm+../published/charts/
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
        "8 versions copied",
    ]);
    drop(server);
    for folder in ["published", "cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    let settings = sandbox.read(".mu/workspace.yaml");
    let (head, _) = settings.split_once("registries:").expect("has registries");
    let bases = [
        "hub.mu.com/",
        "charts.example/",
        "operators.example/",
        "ghcr.io/kcl-lang/",
        "xpkg.example/",
    ];
    let registries = bases.map(|base| format!("  {base}: \"{place}\"\n")).concat();
    sandbox.write(".mu/workspace.yaml", &format!("{head}registries:\n{registries}"));
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.lock(), lock);
    sandbox.mu(&["verify"]).ok();
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    // Each of the other tools finds what it needs, from the lock and the mirror alone.
    for tool in ["helm", "kcl", "crossplane", "olm"] {
        sandbox.mu(&["vendor", "--for", tool]).ok();
    }
    assert!(sandbox.has("work/deploy/charts/redis-20.1.0.tgz"));
    assert!(sandbox.has("work/schemas/vendor/k8s_1.31.2/kcl.mod"));
    assert!(sandbox.read("crossplane/acme-provider-aws.yaml").contains(":v1.2.0"));
    assert!(sandbox.read("olm/kafka.yaml").contains("startingCSV: kafka.v1.0.0"));
}
