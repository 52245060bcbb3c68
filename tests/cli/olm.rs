//! Operators as packages: found in catalogs, chosen in one graph, installed as their bundles.

use std::fs;

use mu_testing::oci::Behaviour;
use mu_testing::{
    Bundle, Chart, Charts, DockerRegistry, Nginx, OciServer, Operators, digest_of, push_image,
    tar_gz, tree, write,
};
use serde_json::json;

use crate::support::{Hub, Sandbox};

#[test]
fn a_catalog_that_is_not_there_is_named_and_no_folder_above_it_is_read() {
    let sandbox = Sandbox::new();
    let root = sandbox.root().display().to_string();
    // No catalog, and nothing that mu has to read.
    sandbox.write("values.yaml", "{{ no: yaml }}: at all\n");
    let place = format!("olm+file://{root}/work/absent");
    for command in ["versions", "get"] {
        let run = sandbox.mu(&[command, &format!("{place}/kafka")]).fails();
        run.says(&["there is no catalog `[DIR]/work/absent`"]).does_not_say(&["values.yaml"]);
        for registry in [format!("\"{place}\""), "{provider: olm, url: ./absent}".to_owned()] {
            let settings = format!("registries: {{operators.example/: {registry}}}\n");
            sandbox.write(".mu/workspace.yaml", &settings);
            let run = sandbox.mu(&[command, "operators.example/kafka"]).fails();
            run.says(&["[DIR]/work/absent"]);
        }
        sandbox.write(".mu/workspace.yaml", "");
    }
}

#[test]
fn a_catalog_in_an_image_is_a_registry_and_the_error_has_its_line() {
    let mut sandbox = Sandbox::new();
    let registry = OciServer::start(Behaviour::default());
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("web", "stable");
    operators.channel("web", "stable", &[json!("web.v1.0.0")]);
    operators.bundle(&Bundle::new("web", "1.0.0"));
    let catalog = ("configs/catalog.json".to_owned(), ('f', operators.text().into_bytes()));
    let labels = json!({"operators.operatorframework.io.index.configs.v1": "/configs"});
    push_image(&registry, "acme/catalog", &[tar_gz([catalog])], labels);
    let host = registry.host();
    let base = format!("{host}/acme/catalog");
    sandbox.replace(&host, "[HOST]");
    let reference = format!("olm+oci://{base}:v1/web#^1");
    sandbox.asks_for(&[&reference]);
    let line = format!("registries: {{{base}/: \"olm+oci://{base}:v1\"}}");
    let hint = format!("write into the settings `{line}`, and here `{base}/web#^1`");
    let hint = hint.replace(&host, "[HOST]");
    sandbox.mu(&["get"]).fails().says(&[&format!("help: {hint}")]);
    sandbox.asks_for(&[]);
    sandbox.mu(&["get", &reference]).fails().says(&[&format!("hint: {hint}")]);
    // And it works.
    sandbox.write(".mu/workspace.yaml", &line);
    sandbox.mu(&["get", &format!("{base}/web#^1")]).ok();
    assert_eq!(sandbox.locked(), [format!("{base}/web 1.0.0")]);
    // A provider and a URL mean the same.
    let parts = format!("registries: {{{base}/: {{provider: olm, url: \"oci://{base}:v1\"}}}}");
    sandbox.write(".mu/workspace.yaml", &parts);
    sandbox.mu(&["resolve", &format!("{base}/web#^1"), "--refresh"]).ok().says(&["web 1.0.0"]);
    for (reference, shown) in [
        (
            "olm+oci://a.example/c/web",
            "{a.example/c/: \"olm+oci://a.example/c\"}`, and here `a.example/c/web`",
        ),
        (
            "olm+oci://a.example:5000/c:v1",
            "{a.example:5000/c/: \"olm+oci://a.example:5000/c:v1\"}`, and here `a.example:5000/c/NAME`",
        ),
    ] {
        sandbox.mu(&["versions", reference]).fails().says(&[shown]);
    }
}

#[test]
fn an_image_of_a_bundle_without_its_files_is_no_package() {
    let Cluster { mut sandbox, registry, mut operators } = Cluster::new();
    sandbox.replace(&registry.host(), "[HOST]");
    let csv = ("bundle/manifests/lost.yaml".to_owned(), ('f', b"kind: ConfigMap\n".to_vec()));
    let labels = json!({"operators.operatorframework.io.bundle.manifests.v1": "bundle/manifests/"});
    let image = push_image(&registry, "acme/lost-bundle", &[tar_gz([csv])], labels);
    operators.package("lost", "stable");
    operators.channel("lost", "stable", &[json!("lost.v1.0.0")]);
    operators.bundle(&Bundle::new("lost", "1.0.0").image(&image));
    let run = sandbox.mu(&["get", "operators.example/lost"]).fails();
    run.says(&["there are no files of", "acme/lost-bundle", "has nothing in `/manifests`"]);
    assert!(!sandbox.has(".mu/packs/operators.example/lost") && !sandbox.has("Mu.lock"));
}

#[test]
fn a_catalog_that_is_a_database_is_named_with_what_makes_files_of_it() {
    let sandbox = Sandbox::new();
    let registry = OciServer::start(Behaviour::default());
    let database = ("database/index.db".to_owned(), ('f', b"SQLite format 3\0".to_vec()));
    let labels = json!({"operators.operatorframework.io.index.database.v1": "/database/index.db"});
    push_image(&registry, "acme/catalog", &[tar_gz([database])], labels);
    let image = format!("{}/acme/catalog:v1", registry.host());
    write(sandbox.root(), "catalog.yaml", "SQLite format 3\0\x01");
    let file = sandbox.path("catalog.yaml").display().to_string();
    let shown = "[DIR]/catalog.yaml";
    for (url, place) in
        [(format!("olm+oci://{image}"), &*image), (format!("olm+file://{file}"), shown)]
    {
        sandbox.write(".mu/workspace.yaml", &format!("registries: {{x.example/: '{url}'}}\n"));
        sandbox.mu(&["versions", "x.example/web"]).fails().says(&[
            "is a database, and mu reads those that are files",
            &format!("`opm migrate {place} FOLDER` makes files of it"),
        ]);
    }
}

#[test]
fn a_release_comes_before_a_prerelease_that_a_range_accepts_too() {
    let sandbox = Sandbox::new();
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("pg", "stable");
    let after = |version: &str, before: &str| json!({"name": format!("pg.v{version}"), "replaces": format!("pg.v{before}")});
    operators.channel(
        "pg",
        "stable",
        &[json!("pg.v1.28.3"), after("1.28.4", "1.28.3"), after("1.29.0-rc1", "1.28.4")],
    );
    for version in ["1.28.3", "1.28.4", "1.29.0-rc1"] {
        operators.bundle(&Bundle::new("pg", version));
    }
    operators.package("web", "stable");
    operators.channel("web", "stable", &[json!("web.v1.0.0")]);
    operators.bundle(&Bundle::new("web", "1.0.0").needs("pg", ">=1.28.0 <1.29.0"));
    operators.package("next", "stable");
    operators.channel("next", "stable", &[json!("next.v1.0.0")]);
    operators.bundle(&Bundle::new("next", "1.0.0").needs("pg", ">=1.29.0-rc0"));
    let place = format!("olm+file://{}", sandbox.path("catalog").display());
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("base: operators.example\nregistries:\n  operators.example/: {place}\n"),
    );
    for (asked, chosen) in [
        (&["web"][..], "1.28.4"),
        (&["pg"], "1.28.4"),
        // Only a prerelease is left, or prereleases are wanted.
        (&["next"], "1.29.0-rc1"),
        (&["pg", "--pre"], "1.29.0-rc1"),
    ] {
        let expected = format!("operators.example/pg {chosen}");
        sandbox.mu(&[&["resolve"], asked].concat()).ok().says(&[&expected]);
    }
}

#[test]
fn a_default_channel_of_prereleases_is_chosen_from_although_another_has_releases() {
    let sandbox = Sandbox::new();
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("sync", "1.19");
    operators.channel("sync", "1.17", &[json!("sync.v0.0.1")]);
    operators.channel("sync", "1.16", &[json!("sync.v1.16.4-cee.1")]);
    let next = json!({"name": "sync.v1.19.5-cee.1", "replaces": "sync.v1.19.4-cee.1"});
    operators.channel("sync", "1.19", &[json!("sync.v1.19.4-cee.1"), next]);
    for version in ["0.0.1", "1.16.4-cee.1", "1.19.4-cee.1", "1.19.5-cee.1"] {
        operators.bundle(&Bundle::new("sync", version));
    }
    let place = format!("olm+file://{}", sandbox.path("catalog").display());
    sandbox.write(".mu/workspace.yaml", &format!("registries:\n  operators.example/: {place}\n"));
    let expected = |asked: &[&str], chosen: &str| {
        let expected = format!("operators.example/sync {chosen}");
        sandbox.mu(&[&["resolve"], asked].concat()).ok().says(&[&expected]);
    };
    expected(&["operators.example/sync"], "1.19.5-cee.1 (1.19)");
    expected(&["operators.example/sync", "--channel", "1.17"], "0.0.1 (1.17)");
    expected(&["operators.example/sync", "--channel", "1.16"], "1.16.4-cee.1 (1.16)");
    expected(&["operators.example/sync#<1"], "0.0.1 (1.17)");
    for command in [&["info", "operators.example/sync"][..], &["search", "sync"]] {
        sandbox
            .mu(command)
            .ok()
            .says(&["operators.example/sync", "1.19.5-cee.1"])
            .does_not_say(&["sync 0.0.1", "0.0.1\n"]);
    }
    sandbox.asks_for(&["operators.example/sync"]);
    sandbox.mu(&["get", "--dry-run"]).ok().says(&["operators.example/sync 1.19.5-cee.1"]);
}

/// A sandbox, a catalog that `operators.example/` is, and the registry that its bundles are in.
struct Cluster {
    sandbox: Sandbox,
    operators: Operators,
    registry: OciServer,
}

impl Cluster {
    /// With `kafka`, which needs `zookeeper` and a kind of `certs`; `zookeeper` has no image.
    fn new() -> Self {
        let mut sandbox = Sandbox::new();
        let registry = OciServer::start(Behaviour::default());
        sandbox.replace(&registry.host(), "[HOST]");
        let mut operators = Operators::new(&sandbox.path("catalog"));
        operators.package("certs", "stable");
        operators.channel("certs", "stable", &[json!("certs.v1.0.0")]);
        let certs = Bundle::new("certs", "1.0.0").provides("certs.example/v1/Certificate");
        operators.bundle(&pushed(&registry, certs));
        operators.package("zookeeper", "stable");
        for version in ["0.9.0", "0.9.2", "1.0.0"] {
            operators.bundle(&Bundle::new("zookeeper", version));
        }
        let entries = ["zookeeper.v0.9.0", "zookeeper.v0.9.2", "zookeeper.v1.0.0"];
        operators.channel("zookeeper", "stable", &entries.map(|name| json!(name)));
        operators.package("kafka", "stable");
        for version in ["0.1.0", "0.2.0", "0.3.0-rc.1"] {
            let kafka = Bundle::new("kafka", version)
                .provides("kafka.example/v1/Kafka")
                .requires("certs.example/v1/Certificate")
                .needs("zookeeper", ">=0.9.0 <1.0.0")
                .says("minKubeVersion", json!("1.25.0"));
            operators.bundle(&pushed(&registry, kafka));
        }
        operators.channel("kafka", "candidate", &[json!("kafka.v0.3.0-rc.1")]);
        operators.channel("kafka", "stable", &[json!("kafka.v0.1.0"), json!("kafka.v0.2.0")]);
        let cluster = Self { sandbox, operators, registry };
        cluster.is_at("{provider: olm, url: ../catalog}");
        cluster
    }

    /// Says where `operators.example/` is.
    fn is_at(&self, place: &str) {
        let text = format!("registries:\n  operators.example/: {place}\n");
        self.sandbox.write(".mu/workspace.yaml", &text);
    }
}

fn pushed(registry: &OciServer, bundle: Bundle) -> Bundle {
    let repository = format!("acme/{}-bundle", bundle.name().replace(".v", "/v"));
    let image = bundle.push(registry, &repository);
    bundle.image(&image)
}

#[test]
fn a_catalog_that_a_reference_names_has_the_providers_of_kinds() {
    let Cluster { sandbox, registry: _registry, operators } = Cluster::new();
    write(sandbox.root(), "www/catalog/api/v1/all", operators.text());
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let places = [
        format!("olm+http://{}/catalog", nginx.host()),
        format!("olm+file://{}", sandbox.path("catalog").display()),
    ];
    for place in places {
        fs::remove_dir_all(sandbox.path("work")).expect("is there");
        sandbox.write("Mu.yaml", "name: acme/web\nversion: 0.1.0\n");
        let run = sandbox.mu(&["add", &format!("{place}/kafka")]).ok();
        run.says(&["catalog/certs 1.0.0", "catalog/kafka 0.2.0", "catalog/zookeeper 0.9.2"]);
    }
}

#[test]
fn operators_are_packages_whose_files_are_their_bundles() {
    let cluster = Cluster::new();
    let sandbox = &cluster.sandbox;
    sandbox.asks_for(&["operators.example/kafka"]);
    let run = sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    + operators.example/certs 1.0.0
    + operators.example/kafka 0.2.0
    + operators.example/zookeeper 0.9.2
    installed 3 packages (3 downloaded, 0 from cache)
    [exit 0]
    ");
    let pack = sandbox.path("work/.mu/packs/operators.example/kafka");
    let kafka = Bundle::new("kafka", "0.2.0")
        .provides("kafka.example/v1/Kafka")
        .requires("certs.example/v1/Certificate")
        .needs("zookeeper", ">=0.9.0 <1.0.0")
        .says("minKubeVersion", json!("1.25.0"));
    assert_eq!(tree(&pack), kafka.files());
    let lock = sandbox.lock();
    let kafka = &lock["packages"][1];
    assert_eq!(kafka["digest"], *digest_of(&pack));
    assert_eq!(kafka["channel"], "stable");
    assert_eq!(kafka["locator"], "kafka.v0.2.0");
    assert_eq!(kafka["source"], "olm+../catalog/");
    let image = kafka["url"].as_str().expect("is there");
    assert!(image.ends_with(kafka["archive"].as_str().expect("is there")), "{image}");
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date (3 packages)"]);
    // From a lock alone, the catalog is not needed for what is in an image.
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    let before = cluster.registry.requests().len();
    sandbox.mu(&["get", "--locked"]).ok();
    let requests = cluster.registry.requests();
    assert_eq!(requests[before..].len(), 6, "{requests:#?}");
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn a_file_of_a_catalog_that_cannot_be_read_takes_out_its_package_alone() {
    let Cluster { sandbox, registry: _registry, mut operators } = Cluster::new();
    operators.package("broken", "stable");
    operators.bundle(&Bundle::new("broken", "1.0.0"));
    operators.channel("broken", "stable", &[json!("broken.v1.0.0")]);
    let bad = "schema: olm.bundle\npackage: broken\nname: [\n";
    write(sandbox.root(), "catalog/broken/later.yaml", bad);
    write(sandbox.root(), "catalog/lost/catalog.yaml", b"schema: olm.package\nname: lost\n\xff: [");
    sandbox.mu(&["versions", "operators.example/zookeeper"]).ok().says(&["0.9.2"]);
    let found = sandbox.mu(&["versions", "operators.example/broken", "--json"]).ok().json();
    let reason = "a document about it cannot be read: `[DIR]/catalog/broken/later.yaml`, line 3, column 7: this is not YAML: ";
    let [version] = &found["versions"].as_array().expect("is a list")[..] else {
        panic!("{found}")
    };
    let told = version["reasons"][0].as_str().unwrap_or_default();
    assert!(version["usable"] == false && told.starts_with(reason), "{found}");
    let run = sandbox.mu(&["get", "operators.example/broken"]).fails();
    run.says(&["broken 1.0.0 cannot be used: a document about it cannot be read"]);
    let run = sandbox.mu(&["get", "operators.example/lost"]).fails();
    run.says(&[
        "left out: a document about it cannot be read: `[DIR]/catalog/lost/catalog.yaml`, line 3, column",
    ]);
    let run = sandbox.mu(&["get", "operators.example/elsewhere"]).fails();
    run.says(&[
        "which lists no operator `elsewhere`; mu cannot read `[DIR]/catalog/broken/later.yaml`",
        "`[DIR]/catalog/lost/catalog.yaml`, line 3, column",
    ]);
    // Those that read the catalog again say it, too.
    for _ in 0..2 {
        let run = sandbox.mu(&["-v", "get", "operators.example/kafka"]).ok();
        run.says(&["operators.example/zookeeper 0.9.2", "mu cannot read `[DIR]/catalog/broken"]);
        fs::remove_dir_all(sandbox.path("work")).expect("is there");
        let place = "registries: {operators.example/: {provider: olm, url: ../catalog}}\n";
        sandbox.write(".mu/workspace.yaml", place);
    }
}

#[test]
fn catalogs_are_served_and_asked_for_once() {
    let mut cluster = Cluster::new();
    fs::create_dir_all(cluster.sandbox.path("www/api/v1")).expect("can be made");
    let serve = |cluster: &Cluster| {
        write(cluster.sandbox.root(), "www/api/v1/all", cluster.operators.text());
    };
    serve(&cluster);
    let nginx = Nginx::serve(&cluster.sandbox.path("www"), "");
    cluster.is_at(&format!("olm+{}", nginx.url("")));
    cluster.sandbox.asks_for(&["operators.example/kafka"]);
    cluster.sandbox.mu(&["get"]).ok();
    // Once for all packages, and once more for the resources of the one that has no image.
    assert_eq!(nginx.log(), ["GET /api/v1/all HTTP/1.1 200"; 2]);
    cluster.sandbox.mu(&["outdated"]).ok();
    cluster.sandbox.mu(&["versions", "operators.example/zookeeper"]).ok();
    assert_eq!(nginx.log()[2..], ["GET /api/v1/all HTTP/1.1 304"; 2]);
    cluster.operators.bundle(&Bundle::new("zookeeper", "0.9.3"));
    cluster.operators.channel("zookeeper", "fast", &[json!("zookeeper.v0.9.3")]);
    serve(&cluster);
    cluster.sandbox.mu(&["versions", "operators.example/zookeeper"]).ok().says(&["0.9.3", "fast"]);
    assert_eq!(nginx.log()[4..], ["GET /api/v1/all HTTP/1.1 200"]);
    cluster.sandbox.mu(&["get", "--offline"]).ok().says(&["up to date"]);
    cluster.sandbox.mu(&["versions", "operators.example/certs", "--offline"]).ok().says(&["1.0.0"]);
}

#[test]
fn operators_become_subscriptions_at_the_versions_of_the_lock() {
    let cluster = Cluster::new();
    let sandbox = &cluster.sandbox;
    sandbox.asks_for(&["operators.example/kafka"]);
    sandbox.mu(&["vendor", "--for", "olm", "--dry-run"]).ok();
    assert!(!sandbox.has("work/olm"));
    let run = sandbox.mu(&["vendor", "--for", "olm"]).ok();
    run.says(&["+ olm/kafka.yaml (kafka.v0.2.0 in stable)", "3 subscriptions in olm"]);
    let expected = "# Written by `mu vendor --for olm`; do not edit.\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata:\n  name: kafka\n  namespace: operators\nspec:\n  name: kafka\n  channel: stable\n  source: operators.example\n  sourceNamespace: olm\n  startingCSV: kafka.v0.2.0\n  installPlanApproval: Manual\n";
    assert_eq!(sandbox.read("olm/kafka.yaml"), expected);
    // The second time, there is nothing to do. Files of operators that are no longer locked are removed, but no file of
    // somebody else.
    sandbox.write("olm/own.yaml", "kind: Namespace\n");
    sandbox.mu(&["vendor", "--for", "olm"]).ok().says(&["up to date"]);
    sandbox.asks_for(&["operators.example/zookeeper#^0.9.0"]);
    let json = sandbox.mu(&["vendor", "--for", "olm", "--json"]).ok().json();
    assert_eq!(json["removed"], json!(["olm/certs.yaml", "olm/kafka.yaml"]));
    assert_eq!(json["subscriptions"][0]["bundle"], "zookeeper.v0.9.2");
    assert!(sandbox.has("work/olm/own.yaml") && !sandbox.has("work/olm/kafka.yaml"));
    sandbox.write("olm/zookeeper.yaml", "kind: Namespace\n");
    sandbox.mu(&["vendor", "--for", "olm"]).fails().says(&["was not written by mu"]);
}

/// A catalog of `kafka`, which needs a kind that nothing in it provides.
fn catalog_without_certs(sandbox: &Sandbox) -> Operators {
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("kafka", "stable");
    operators.bundle(&Bundle::new("kafka", "1.0.0").requires("certs.example/v1/Certificate"));
    operators.channel("kafka", "stable", &[json!("kafka.v1.0.0")]);
    operators
}

const PLACES: &str = "registries:\n  operators.example/: {provider: olm, url: ../catalog}\n  charts.example/: {provider: helm, url: ../charts}\n";

#[test]
fn a_kind_is_met_by_a_chart_if_the_settings_say_that_it_provides_it() {
    let sandbox = Sandbox::new();
    let mut operators = catalog_without_certs(&sandbox);
    fs::create_dir_all(sandbox.path("charts")).expect("can be made");
    let mut charts = Charts::new(&sandbox.path("charts"));
    charts.add(&Chart::new("cert-manager", "1.17.0"));
    sandbox.write(".mu/workspace.yaml", PLACES);
    sandbox.asks_for(&["operators.example/kafka"]);
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: nothing provides what is required
      acme/web requires operators.example/kafka
      operators.example/kafka 1.0.0 requires the capability certs.example/v1/Certificate
      nothing provides the capability certs.example/v1/Certificate

    hint: do without operators.example/kafka: `mu remove operators.example/kafka`
    hint: if the runtime has it, write `runtime: {provides: [certs.example/v1/Certificate]}` into `.mu/workspace.yaml`; if a package has it without saying so, `packages: {ID: {provides: [certs.example/v1/Certificate]}}`
    [exit 1]
    ");
    let provides =
        "packages:\n  charts.example/cert-manager: {provides: [certs.example/v1/Certificate]}\n";
    sandbox.write(".mu/workspace.yaml", &format!("{PLACES}{provides}"));
    sandbox.mu(&["get"]).ok().says(&["+ charts.example/cert-manager 1.17.0"]);
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    sandbox
        .mu(&["why", "charts.example/cert-manager"])
        .ok()
        .says(&["certs.example/v1/Certificate"]);
    // The lock has what packages say themselves.
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains("requires: [certs.example/v1/Certificate]"), "{lock}");
    assert!(!lock.contains("provides:"), "{lock}");
    // An operator that provides it, too, would be a second one.
    operators.package("certs", "stable");
    operators.bundle(&Bundle::new("certs", "1.0.0").provides("certs.example/v1/Certificate"));
    operators.channel("certs", "stable", &[json!("certs.v1.0.0")]);
    let both =
        ["operators.example/kafka", "operators.example/certs", "charts.example/cert-manager"];
    sandbox.asks_for(&both);
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: no versions fit together
      acme/web requires charts.example/cert-manager
      charts.example/cert-manager 1.17.0 provides certs.example/v1/Certificate
      acme/web requires operators.example/certs
      operators.example/certs 1.0.0 provides certs.example/v1/Certificate
      only one package at a time can provide certs.example/v1/Certificate

    hint: do without charts.example/cert-manager: `mu remove charts.example/cert-manager`
    hint: do without operators.example/certs: `mu remove operators.example/certs`
    [exit 1]
    ");
    // Without that setting, the operator provides it.
    sandbox.asks_for(&both[..1]);
    sandbox.write(".mu/workspace.yaml", PLACES);
    sandbox.mu(&["get", "--locked"]).fails();
    sandbox.mu(&["get"]).ok().says(&["+ operators.example/certs 1.0.0"]);
    assert_eq!(
        sandbox.locked(),
        ["operators.example/certs 1.0.0", "operators.example/kafka 1.0.0"]
    );
}

#[test]
fn nobody_has_to_provide_what_the_runtime_has() {
    let sandbox = Sandbox::new();
    catalog_without_certs(&sandbox);
    let runtime = "runtime: {kubernetes: 1.29, provides: [certs.example/v1/Certificate]}\n";
    sandbox.write(".mu/workspace.yaml", &format!("{PLACES}{runtime}"));
    sandbox.asks_for(&["operators.example/kafka"]);
    sandbox.mu(&["get"]).ok().says(&["+ operators.example/kafka 1.0.0"]);
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["get", "--locked", "--resolution", "minimal"]).fails();
    sandbox.mu(&["get", "--resolution", "minimal"]).ok();
    sandbox.mu(&["config", "list"]).ok().says(&["runtime.provides"]);
    sandbox.write(".mu/workspace.yaml", PLACES);
    sandbox.mu(&["get"]).fails().says(&["certs.example/v1/Certificate"]);
    let wrong = "runtime: {provides: [Certificate]}\n";
    sandbox.write(".mu/workspace.yaml", &format!("{PLACES}{wrong}"));
    sandbox.mu(&["get"]).fails().says(&["GROUP/VERSION/KIND", "workspace.yaml:4"]);
}

#[test]
fn the_folder_of_a_bundle_is_a_package() {
    let sandbox = Sandbox::new();
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("zookeeper", "stable");
    operators.bundle(&Bundle::new("zookeeper", "0.9.0"));
    operators.channel("zookeeper", "stable", &[json!("zookeeper.v0.9.0")]);
    sandbox.write(".mu/workspace.yaml", &format!("base: operators.example/\n{PLACES}"));
    let kafka = Bundle::new("kafka", "1.1.0").needs("zookeeper", "<1.0.0");
    for (path, (_, content)) in kafka.files() {
        write(&sandbox.path("work"), &path, content);
    }
    sandbox.mu(&["get"]).ok().says(&["zookeeper 0.9.0"]);
    sandbox
        .mu(&["tree"])
        .ok()
        .says(&["kafka 1.1.0", "zookeeper 0.9.0 (stable) [required: <1.0.0 with prereleases]"]);
    sandbox.mu(&["add", "zookeeper"]).fails().says(&["metadata/dependencies.yaml"]);
    // A file of that name that says nothing about a bundle is not a manifest.
    write(&sandbox.path("other"), "metadata/annotations.yaml", "annotations: {}\n");
    sandbox.mu_in("other", &["list"]).does_not_say(&["package.v1"]);
    // What is wrong is named with its file.
    let csv = "manifests/kafka.clusterserviceversion.yaml";
    sandbox.write(csv, "kind: ClusterServiceVersion\nspec: {version: latest}\n");
    sandbox.mu(&["get"]).fails().says(&[csv, "`latest` is not a version"]);
    let spec = "kind: ClusterServiceVersion\nspec:\n  version: 1.1.0\n";
    sandbox.write(csv, &format!("{spec}  minkubeversion: 1.20.0\n"));
    let said = "unknown key `minkubeversion`; did you mean `minKubeVersion`?";
    sandbox.mu(&["get"]).fails().says(&[&format!("{csv}:4:3"), said]);
    // Annotations are free, and those of bundles are not.
    sandbox.write(csv, spec);
    let annotations = sandbox.read("metadata/annotations.yaml");
    let own = "operators.operatorframework.io.bundle.";
    sandbox.write("metadata/annotations.yaml", &format!("{annotations}  com.acme.team: x\n"));
    sandbox.mu(&["get"]).ok();
    let wrong = annotations.replace(&format!("{own}channels.v1"), &format!("{own}chanels.v1"));
    assert_ne!(wrong, annotations);
    sandbox.write("metadata/annotations.yaml", &wrong);
    let said = format!("unknown key `{own}chanels.v1`; did you mean `{own}channels.v1`?");
    sandbox.mu(&["get"]).fails().says(&["metadata/annotations.yaml:", &said]);
}

#[test]
fn what_has_only_prereleases_is_chosen_without_asking_for_them() {
    let sandbox = Sandbox::new();
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("beta", "alpha");
    for version in ["0.1.0-alpha.1", "0.1.0-alpha.2"] {
        operators.bundle(&Bundle::new("beta", version));
    }
    operators.channel(
        "beta",
        "alpha",
        &[json!("beta.v0.1.0-alpha.1"), json!("beta.v0.1.0-alpha.2")],
    );
    fs::create_dir_all(sandbox.path("charts")).expect("can be made");
    let mut charts = Charts::new(&sandbox.path("charts"));
    for version in ["1.0.0-rc.1", "1.0.0-rc.2"] {
        charts.add(&Chart::new("new", version));
    }
    sandbox.write(".mu/workspace.yaml", PLACES);
    sandbox.asks_for(&["operators.example/beta#<1.0.0", "charts.example/new"]);
    let run = sandbox.mu(&["get"]).ok();
    run.says(&["+ charts.example/new 1.0.0-rc.2", "+ operators.example/beta 0.1.0-alpha.2"]);
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    sandbox.mu(&["get", "--resolution", "minimal", "--dry-run"]).ok();
    sandbox.mu(&["outdated"]).ok().does_not_say(&["rc.1"]);
    // With a release, prereleases are what they are elsewhere.
    charts.add(&Chart::new("new", "0.9.0"));
    sandbox.mu(&["update"]).ok().says(&["charts.example/new 1.0.0-rc.2 → 0.9.0"]);
    // For a package of mu's own, nothing changes.
    sandbox.publish(&[crate::support::Package::new("aws/new", "1.0.0-rc.1")]);
    sandbox.asks_for(&["aws/new"]);
    sandbox.mu(&["get"]).fails().says(&["--pre"]);
}

#[test]
fn a_bundle_in_git_is_a_package_with_what_it_says() {
    let sandbox = Sandbox::new();
    let mut operators = catalog_without_certs(&sandbox);
    operators.package("certs", "stable");
    operators.bundle(&Bundle::new("certs", "1.0.0").provides("certs.example/v1/Certificate"));
    operators.channel("certs", "stable", &[json!("certs.v1.0.0")]);
    sandbox.write(".mu/workspace.yaml", PLACES);
    let repository = sandbox.path("git/kafka");
    let kafka = Bundle::new("kafka", "1.1.0")
        .provides("kafka.example/v1/Kafka")
        .requires("certs.example/v1/Certificate");
    for (path, (_, content)) in kafka.files() {
        write(&repository, &format!("bundle/{path}"), content);
    }
    crate::support::git::git(&repository, &["init", "--quiet", "."]);
    crate::support::git::git(&repository, &["add", "."]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let commit = [&who[..], &["commit", "--quiet", "--message", "bundle"]].concat();
    crate::support::git::git(&repository, &commit);
    crate::support::git::git(&repository, &["tag", "v1.1.0"]);
    let reference = format!("git+file://{}.git/bundle#^1.1", repository.display());
    fs::rename(&repository, repository.with_extension("git")).expect("is ours");
    sandbox.asks_for(&[&reference, "operators.example/certs"]);
    sandbox.mu(&["get"]).ok().says(&["bundle 1.1.0", "+ operators.example/certs 1.0.0"]);
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains("provides: [kafka.example/v1/Kafka]"), "{lock}");
    assert!(lock.contains("requires: [certs.example/v1/Certificate]"), "{lock}");
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok().says(&["2 packs verified"]);
    // What it requires is not left out.
    sandbox.asks_for(&[&reference]);
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    sandbox.mu(&["get"]).fails().says(&["requires the capability certs.example/v1/Certificate"]);
    // The same folder, on this machine.
    sandbox.trusts_folder("git/kafka.git/bundle");
    let folder = repository.with_extension("git").join("bundle");
    sandbox.asks_for(&[folder.to_str().expect("is UTF-8"), "operators.example/certs"]);
    sandbox.mu(&["get"]).ok();
    sandbox.asks_for(&[folder.to_str().expect("is UTF-8")]);
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    sandbox.mu(&["get"]).fails().says(&["requires the capability certs.example/v1/Certificate"]);
}

#[test]
fn a_catalog_can_refer_to_the_files_of_a_bundle() {
    let sandbox = Sandbox::new();
    let place = sandbox.path("catalog");
    let catalog = |path: &str| {
        format!(
            "schema: olm.package\nname: kafka\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: kafka\nname: stable\nentries: [{{name: kafka.v1.0.0}}]\n---\nschema: olm.bundle\nname: kafka.v1.0.0\npackage: kafka\nproperties:\n- type: olm.package\n  value: {{packageName: kafka, version: 1.0.0}}\n- type: olm.bundle.object\n  value: {{ref: {path}}}\n"
        )
    };
    let csv = |kind: &str| {
        format!(
            "# By hand.\nkind: ClusterServiceVersion\nmetadata: {{name: kafka.v1.0.0}}\nspec:\n  version: 1.0.0\n  customresourcedefinitions:\n    owned: [{{name: kafkas.kafka.example, version: v1, kind: {kind}}}]\n"
        )
    };
    write(&place, "kafka/.indexignore", "objects\n");
    write(&place, "kafka/catalog.yaml", catalog("objects/csv.yaml"));
    write(&place, "kafka/objects/csv.yaml", csv("Kafka"));
    sandbox.write(".mu/workspace.yaml", PLACES);
    sandbox.asks_for(&["operators.example/kafka"]);
    sandbox.mu(&["get"]).ok().says(&["+ operators.example/kafka 1.0.0"]);
    assert!(sandbox.read("Mu.lock").contains("provides: [kafka.example/v1/Kafka]"));
    // Byte for byte, and by its own name.
    let pack = "work/.mu/packs/operators.example/kafka/manifests/csv.yaml";
    assert_eq!(fs::read_to_string(sandbox.path(pack)).expect("is there"), csv("Kafka"));
    sandbox.mu(&["get", "--locked"]).ok();
    // A change of that file is a change of the catalog.
    write(&place, "kafka/objects/csv.yaml", csv("Broker"));
    sandbox.mu(&["info", "operators.example/kafka"]).ok().says(&["kafka.example/v1/Broker"]);
    // Nothing outside of the catalog is read, and nothing through a link.
    write(&sandbox.path("outside"), "csv.yaml", csv("Secret"));
    write(&place, "kafka/link", "-> ../../outside");
    for path in ["../../outside/csv.yaml", "link/csv.yaml", "missing.yaml"] {
        write(&place, "kafka/catalog.yaml", catalog(path));
        fs::remove_dir_all(sandbox.path("cache")).expect("is there");
        fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
        fs::remove_file(sandbox.path("work/Mu.lock")).ok();
        sandbox.mu(&["get"]).fails().says(&[path, "cannot be read"]);
        fs::create_dir_all(sandbox.path("work/.mu/packs")).expect("can be made");
    }
}

#[test]
fn operators_that_replace_others_are_mirrored() {
    let mut cluster = Cluster::new();
    let entries =
        [json!("kafka.v0.1.0"), json!({"name": "kafka.v0.2.0", "replaces": "kafka.v0.1.0"})];
    cluster.operators.channel("kafka", "next", &entries);
    let registry = DockerRegistry::start();
    for mirror in ["../mirror".to_owned(), format!("oci://{}/copies", registry.host())] {
        let sandbox = &cluster.sandbox;
        cluster.is_at("{provider: olm, url: ../catalog}");
        sandbox.asks_for(&["operators.example/kafka"]);
        for left in ["work/Mu.lock", "mirror"] {
            let _ = fs::remove_file(sandbox.path(left));
            let _ = fs::remove_dir_all(sandbox.path(left));
        }
        sandbox.mu(&["get"]).ok();
        if mirror.starts_with("..") {
            Hub::new(&sandbox.path("mirror"));
        }
        let run = sandbox.mu(&["mirror", "--lock", "--to", &mirror]).ok();
        run.says(&["kafka 0.2.0", "zookeeper 0.9.2"]);
        cluster.is_at(&mirror);
        for gone in ["cache", "work/.mu/packs"] {
            fs::remove_dir_all(sandbox.path(gone)).expect("is there");
        }
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["verify"]).ok();
    }
}

#[test]
fn a_range_of_upgrades_that_olm_cannot_read_is_named_once() {
    let mut cluster = Cluster::new();
    let entry = json!({"name": "certs.v1.0.0", "skipRange": "newer"});
    cluster.operators.channel("certs", "fast", &[entry]);
    let sandbox = &cluster.sandbox;
    let versions = ["versions", "operators.example/certs", "-v"];
    let note =
        "the `skipRange` of `certs.v1.0.0` in the channel `fast` is left out: the range `newer`";
    sandbox.mu(&versions).ok().says(&["1.0.0", note]);
    // The catalog is not read again.
    sandbox.mu(&versions).ok().does_not_say(&[note]);
}
