//! What is on this machine is not fetched again: packages of other ecosystems, of which registries say only what their archives
//! are.

use std::fs;

use mu_testing::git::{HttpServer, Origin};
use mu_testing::oci::Behaviour;
use mu_testing::{
    Artifact, Bundle, Chart, Charts, DockerRegistry, KudoOperator, KudoRepository, Nginx,
    OciServer, Operators, Package, tar_gz,
};
use serde_json::json;

use super::support::{Sandbox, write};

/// A second workspace with the same requirements and the same cache, and no lock.
fn other(sandbox: &Sandbox, reference: &str) {
    let _ = fs::remove_dir_all(sandbox.path("other"));
    fs::create_dir_all(sandbox.path("other/.mu")).expect("can be made");
    let text = format!("name: acme/other\nversion: 0.1.0\ndependencies: [\"{reference}\"]\n");
    write(&sandbox.path("other"), "Mu.yaml", text);
    write(&sandbox.path("other"), ".mu/workspace.yaml", "");
}

/// The entries of a lock without who requires them.
fn entries(lock: &str) -> Vec<String> {
    let kept = lock.lines().filter(|line| !line.starts_with("  requested: "));
    kept.map(str::to_owned).collect()
}

#[test]
fn no_blob_of_another_ecosystem_is_downloaded_a_second_time() {
    let (sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    let host = server.host();
    let module = |name: &str, needs: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.4.0\"\n\n[dependencies]\n{needs}")
    };
    let chart = Chart::new("web", "1.0.0").lines("appVersion: v2\n");
    Artifact::chart(&chart).push(&host, "charts/web", "1.0.0");
    let k8s = module("k8s", "");
    Artifact::module("k8s", "0.4.0", &[("kcl.mod", &k8s)], true).push(&host, "kcl/k8s", "0.4.0");
    let needs = format!("k8s = {{ oci = \"oci://{host}/kcl/k8s\", tag = \"0.4.0\" }}\n");
    let konfig = module("konfig", &needs);
    let files = [("kcl.mod", &*konfig), ("main.k", "a = 1\n")];
    Artifact::module("konfig", "0.4.0", &files, false).push(&host, "kcl/konfig", "0.4.0");
    let provider = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-a}\nspec: {}\n";
    Artifact::package(provider).push(&host, "up/provider-a", "v1.0.0");
    let blobs = || {
        let is_blob = |line: &&String| line.contains("GET ") && line.contains("/blobs/sha256:");
        server.log().iter().filter(is_blob).count()
    };
    for path in ["charts/web", "kcl/konfig", "up/provider-a"] {
        let reference = format!("oci://{host}/{path}");
        sandbox.asks_for(&[&reference]);
        let before = blobs();
        sandbox.mu(&["get"]).ok();
        let fetched = blobs();
        assert!(fetched > before, "{path}");
        // Not by questions, and not in another workspace.
        sandbox.mu(&["resolve", "--refresh"]).ok();
        sandbox.mu(&["info", &reference]).ok();
        other(&sandbox, &reference);
        let run = sandbox.mu_in("other", &["get"]).ok();
        assert_eq!(blobs(), fetched, "{path}: {:#?}", server.log());
        assert!(run.stderr.contains("(0 downloaded, "), "{}", run.stderr);
        let lock = fs::read_to_string(sandbox.path("other/Mu.lock")).expect("was written");
        assert_eq!(entries(&lock), entries(&sandbox.read("Mu.lock")), "{path}");
        sandbox.mu_in("other", &["verify"]).ok();
    }
}

#[test]
fn no_archive_of_a_chart_repository_is_downloaded_a_second_time() {
    let sandbox = Sandbox::new();
    let mut charts = Charts::new(&sandbox.path("www"));
    charts.add(&Chart::new("redis", "17.0.0").lines("description: caches\n"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let archives = || nginx.log().iter().filter(|line| line.contains(".tgz")).count();
    let reference = format!("helm+http://{}/redis", nginx.host());
    sandbox.asks_for(&[&reference]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(archives(), 1);
    other(&sandbox, &reference);
    sandbox.mu_in("other", &["get"]).ok();
    assert_eq!(archives(), 1);
    sandbox.mu_in("other", &["verify"]).ok();
    // What is pruned is fetched again, and nothing is left of it.
    for packs in ["work/.mu/packs", "other/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(packs)).expect("is there");
    }
    let notes = || fs::read_dir(sandbox.path("cache/store/archives")).expect("is there").count();
    assert_eq!(notes(), 1);
    sandbox.mu(&["cache", "prune"]).ok();
    assert_eq!(notes(), 0);
    other(&sandbox, &reference);
    sandbox.mu_in("other", &["get"]).ok();
    assert_eq!((archives(), notes()), (2, 1));
}

/// Gets a package in two workspaces that share a cache. `fetched` counts what was fetched so far: the second gets nothing.
fn comes_once(sandbox: &Sandbox, reference: &str, fetched: &dyn Fn() -> usize) {
    sandbox.asks_for(&[reference]);
    let before = fetched();
    sandbox.mu(&["get"]).ok();
    let once = fetched();
    assert!(once > before, "{reference}: nothing was fetched");
    other(sandbox, reference);
    sandbox.mu_in("other", &["get"]).ok();
    assert_eq!(fetched(), once, "{reference}");
    sandbox.mu_in("other", &["verify"]).ok();
}

#[test]
fn archives_on_web_servers_come_once() {
    let mut sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0").needs("aws/vpc"),
        Package::new("aws/vpc", "1.0.0"),
    ]);
    let nginx = Nginx::serve(sandbox.root(), "");
    let url = |path: &str| nginx.url(path);
    sandbox.hub_is_at(&url("hub/"));
    let mut operators = KudoRepository::new(&sandbox.path("kudo"), &url("kudo/"));
    operators.add(&KudoOperator::new("kafka", "1.0.0"));
    let files =
        [("tool-1.2/Mu.yaml".to_owned(), ('f', b"name: acme/tool\nversion: 1.2.0\n".to_vec()))];
    mu_testing::write(sandbox.root(), "dl/tool-1.2.tgz", tar_gz(files));
    let host = nginx.host();
    sandbox.replace(&host, "[HOST]");
    // An archive by URL is asked for every time, and sent if it is another one.
    let is_sent = |line: &&String| line.contains(".tgz") && line.ends_with(" 200");
    let archives = || nginx.log().iter().filter(is_sent).count();
    for reference in
        ["aws/ec2".to_owned(), format!("kudo+http://{host}/kudo/kafka"), url("dl/tool-1.2.tgz")]
    {
        comes_once(&sandbox, &reference, &archives);
    }
}

#[test]
fn commits_come_once() {
    let (sandbox, origin) = (Sandbox::new(), Origin::new("infra.git"));
    origin.release("v1.0.0");
    let server = HttpServer::start(origin.root());
    let fetched = || {
        let is_fetch = |body: &[u8]| body.windows(13).any(|part| part == b"command=fetch");
        server.seen().iter().filter(|seen| is_fetch(&seen.body)).count()
    };
    comes_once(&sandbox, &format!("{}infra.git", server.root()), &fetched);
}

#[test]
fn blobs_of_packages_of_mu_and_of_bundles_come_once() {
    let (sandbox, registry) = (Sandbox::new(), OciServer::start(Behaviour::default()));
    let is_blob = |line: &&String| line.starts_with("GET ") && line.contains("/blobs/sha256:");
    let blobs = || registry.requests().iter().filter(is_blob).count();
    let place = format!("oci://{}/acme", registry.host());
    sandbox.publish(&[Package::new("web/log", "1.0.0").file("a.txt", "a")]);
    sandbox.mu(&["mirror", "web/log", "--to", &place]).ok();
    comes_once(&sandbox, &format!("{place}/web/log"), &blobs);
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("web", "stable");
    operators.channel("web", "stable", &[json!("web.v1.0.0")]);
    let bundle = Bundle::new("web", "1.0.0");
    let image = bundle.push(&registry, "acme/web-bundle/1.0.0");
    operators.bundle(&bundle.image(&image));
    let reference = format!("olm+file://{}/web", sandbox.path("catalog").display());
    comes_once(&sandbox, &reference, &blobs);
}
