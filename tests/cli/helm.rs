//! Helm charts as packages: found in repositories, chosen in one graph, installed as they are.

use std::fs;

use mu_testing::http::{Reply, TestServer};
use serde_json::json;

use crate::support::git::git;
use crate::support::{Chart, Charts, Nginx, Package, Sandbox, digest_of, tree, write};

/// A sandbox, a repository on nginx, and the host of that.
struct Repository {
    sandbox: Sandbox,
    charts: Charts,
    nginx: Nginx,
}

impl Repository {
    /// With `stack` 1.0.0 and 1.1.0, which need `exporter` and `common`, and `web`, which needs `common`.
    fn new() -> Self {
        let mut sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
        let charts = Charts::new(&sandbox.path("www/stable"));
        let nginx = Nginx::serve(&sandbox.path("www"), "");
        sandbox.replace(&nginx.host(), "[HOST]");
        let mut repository = Self { sandbox, charts, nginx };
        let url = repository.nginx.url("stable");
        for version in ["1.0.0", "1.1.0"] {
            let stack = Chart::new("stack", version).lines("kubeVersion: '>=1.25.0-0'\n");
            let stack = stack.needs("exporter", "4.47.*", &url).needs("common", "^2.0.0", &url);
            repository.charts.add(&stack);
        }
        for (version, month) in [("4.46.0", 1), ("4.47.0", 2), ("4.47.3", 3)] {
            let created = format!("created: \"2026-0{month}-01T10:11:12.123456789Z\"\n");
            repository.charts.add(&Chart::new("exporter", version).listed(&created));
        }
        for version in ["2.0.0", "2.1.0", "3.0.0"] {
            repository.charts.add(&Chart::new("common", version).lines("type: library\n"));
        }
        repository.charts.add(&Chart::new("web", "0.3.0").needs("common", "2.x.x", &url));
        repository
    }

    /// The reference of a chart.
    fn chart(&self, rest: &str) -> String {
        format!("helm+http://{}/stable/{rest}", self.nginx.host())
    }

    /// The id of a chart, with the version behind it.
    fn id(&self, rest: &str) -> String {
        format!("{}/stable/{rest}", self.nginx.host())
    }

    /// Where the pack of a chart is, in the sandbox.
    fn pack(&self, name: &str) -> String {
        let host = self.nginx.host().replace(':', "+");
        format!("work/.mu/packs/{host}/stable/{name}")
    }
}

#[test]
fn charts_are_packages_as_they_are() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    sandbox.asks_for(&[&repository.chart("stack#^1"), &repository.chart("web")]);
    let run = sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    + [HOST]/stable/common 2.1.0
    + [HOST]/stable/exporter 4.47.3
    + [HOST]/stable/stack 1.1.0
    + [HOST]/stable/web 0.3.0
    installed 4 packages (4 downloaded, 0 from cache)
    [exit 0]
    ");
    // Byte for byte, without the folder in the archive, and without any file of mu's.
    let stack = Chart::new("stack", "1.1.0").lines("kubeVersion: '>=1.25.0-0'\n");
    let url = repository.nginx.url("stable");
    let stack = stack.needs("exporter", "4.47.*", &url).needs("common", "^2.0.0", &url);
    assert_eq!(tree(&sandbox.path(&repository.pack("stack"))), stack.files());
    let lock = sandbox.lock();
    let packages = lock["packages"].as_array().expect("is a list");
    let stack = packages.iter().find(|package| package["id"] == *repository.id("stack"));
    let stack = stack.expect("is locked");
    assert_eq!(stack["source"], *format!("helm+{}/", repository.nginx.url("stable")));
    assert_eq!(stack["digest"], *digest_of(&sandbox.path(&repository.pack("stack"))));
    let archive = stack["archive"].as_str().expect("is there");
    assert!(archive.starts_with("sha256:"), "{archive}");
    // There is one version of each, whatever needs it.
    assert_eq!(
        sandbox.locked(),
        [
            repository.id("common 2.1.0"),
            repository.id("exporter 4.47.3"),
            repository.id("stack 1.1.0"),
            repository.id("web 0.3.0"),
        ]
    );
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date (4 packages)"]);
    let which = sandbox.mu(&["which", &repository.chart("stack")]).ok();
    which.says(&[&repository.pack("stack")]);
}

#[test]
fn questions_about_charts_are_answered() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    sandbox.asks_for(&[&repository.chart("stack#1.0.0"), &repository.chart("web")]);
    sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(sandbox.mu(&["tree"]).ok().shown(), @"
    $ mu tree
    acme/web 0.1.0
    ├── [HOST]/stable/stack 1.0.0 [required: 1.0.0]
    │   ├── [HOST]/stable/common 2.1.0 [required: ^2.0.0]
    │   └── [HOST]/stable/exporter 4.47.3 [required: 4.47.*]
    └── [HOST]/stable/web 0.3.0 [required: any version]
        └── [HOST]/stable/common 2.1.0 [required: 2.x.x]
    [exit 0]
    ");
    sandbox.mu(&["why", &repository.chart("common")]).ok().says(&[
        "^2.0.0 by [HOST]/stable/stack",
        "2.x.x by [HOST]/stable/web",
        "acme/web → [HOST]/stable/web latest → [HOST]/stable/common 2.x.x",
    ]);
    let outdated = sandbox.mu(&["outdated"]).ok();
    let outdated = outdated.says(&["^2.0.0 by [HOST]/stable/stack", "1.0.0 by acme/web"]);
    outdated.does_not_say(&["exporter"]);
    let versions = sandbox.mu(&["versions", &repository.chart("exporter")]).ok();
    versions.says(&["4.46.0   2026-01-01", "4.47.3   2026-03-01  in Mu.lock"]);
    sandbox.mu(&["info", &repository.chart("stack")]).ok().says(&[
        "[HOST]/stable/stack 1.1.0",
        "kubernetes >=1.25.0-0",
        "helm+http://[HOST]/stable/exporter#4.47.*",
        "1.0.0 in Mu.lock",
    ]);
    // Versions that are too new are passed over, and so are excluded ones, and those that need a newer
    // runtime.
    let young = ["resolve", &repository.chart("exporter"), "--exclude-newer", "2026-02-01"];
    sandbox.mu(&young).ok().says(&["exporter 4.46.0"]);
    let excluded = format!("exclude: [\"{}#4.47.3\"]\n", repository.id("exporter"));
    sandbox.write(".mu/workspace.yaml", &excluded);
    sandbox.mu(&["resolve", &repository.chart("exporter")]).ok().says(&["exporter 4.47.0"]);
    let old = ["resolve", &repository.chart("stack"), "--runtime", "kubernetes=1.24.9-gke.1"];
    sandbox.mu(&old).fails().says(&["kubernetes >=1.25.0-0"]);
}

#[test]
fn a_lock_is_enough_and_offline_what_is_here() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    sandbox.asks_for(&[&repository.chart("stack")]);
    sandbox.mu(&["get"]).ok();
    let before = repository.nginx.log().len();
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--offline", "--locked"]).ok();
    assert_eq!(repository.nginx.log().len(), before);
    // A new machine: one request for each archive, and none for the index.
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    sandbox.mu(&["get", "--offline"]).fails();
    sandbox.mu(&["get", "--locked"]).ok();
    let log = repository.nginx.log();
    let asked: Vec<&String> = log[before..].iter().collect();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked.iter().all(|line| line.contains(".tgz")), "{asked:?}");
}

#[test]
fn a_bare_reference_finds_a_repository_and_settings_name_one() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    // Only the protocol says that it uses http.
    let bare = repository.chart("web").replace("helm+", "");
    sandbox.mu(&["get", &bare]).ok();
    assert_eq!(sandbox.locked(), [repository.id("common 2.1.0"), repository.id("web 0.3.0")]);
    let settings =
        format!("registries:\n  charts.acme.example/: helm+{}\n", repository.nginx.url("stable"));
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.write("Mu.lock", "version: 1\npackages: []\n");
    sandbox.mu(&["get", "helm+https://charts.acme.example/exporter#4.46.0"]).ok();
    let locked = sandbox.locked();
    assert!(locked.contains(&"charts.acme.example/exporter 4.46.0".to_owned()), "{locked:?}");
    // Without a URL, the registry is at its own name, by the protocol of the reference.
    let settings = format!(
        "registries:\n  {}/stable/: {{provider: helm, strip: false}}\n",
        repository.nginx.host()
    );
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.mu(&["resolve", &repository.chart("web")]).ok().says(&["stable/web 0.3.0"]);
    // It is in a folder of this machine.
    let folder = format!("helm+file://{}/exporter#~4.46", sandbox.path("www/stable").display());
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.write("Mu.lock", "version: 1\npackages: []\n");
    let run = sandbox.mu(&["get", &folder, "--json"]).ok().json();
    assert_eq!(run["packages"][0]["version"], "4.46.0", "{run}");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn versions_that_cannot_be_used_are_named() {
    let mut repository = Repository::new();
    let url = repository.nginx.url("stable");
    repository.charts.add(&Chart::new("web", "0.4.0").needs("common", "newest", &url));
    repository.charts.add(
        &Chart::new("web", "0.5.0")
            .lines("dependencies:\n- name: private\n  version: 1.x\n  repository: 's3://acme'\n"),
    );
    let sandbox = &repository.sandbox;
    sandbox.asks_for(&[&repository.chart("web")]);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.locked().contains(&repository.id("web 0.3.0")));
    sandbox.asks_for(&[&repository.chart("web#>=0.4")]);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&[
        "0.4.0 cannot be used: the range `newest` of the dependency `common` is not a range: `newest` is not a version",
        "0.5.0 cannot be used: its repository has the scheme `s3`, which only a Helm plugin supports",
    ]);
    // mu also knows the names that the user gave to Helm.
    let file = format!("repositories:\n- name: acme\n  url: {url}\n");
    write(sandbox.root(), "home/.config/helm/repositories.yaml", file);
    repository.charts.add(&Chart::new("private", "1.3.0"));
    repository.charts.add(
        &Chart::new("web", "0.6.0")
            .lines("dependencies:\n- name: private\n  version: 1.x\n  repository: '@acme'\n"),
    );
    let sandbox = &repository.sandbox;
    sandbox.mu(&["get"]).ok();
    let locked = sandbox.locked();
    assert_eq!(locked, [repository.id("private 1.3.0"), repository.id("web 0.6.0")]);
}

#[test]
fn a_published_chart_carries_what_its_author_had_from_a_repository_with_a_name() {
    let mut repository = Repository::new();
    let inside = Chart::new("private", "1.2.0");
    for (name, file, format) in [("old", "requirements.yaml", "v1"), ("new", "Chart.yaml", "v2")] {
        let list = "dependencies: [{name: private, version: 1.x, repository: '@acme'}]\n";
        let head = format!("apiVersion: {format}\nname: {name}\nversion: 1.0.0\n");
        let mut files = vec![(format!("{name}/Chart.yaml"), ('f', head.into_bytes()))];
        match file {
            "Chart.yaml" => files[0].1.1.extend(list.bytes()),
            other => files.push((format!("{name}/{other}"), ('f', list.into()))),
        }
        let inner = inside.files().into_iter();
        files.extend(inner.map(|(path, file)| (format!("{name}/charts/private/{path}"), file)));
        let listed = Chart::new(name, "1.0.0").listed(list);
        repository.charts.add_with(&listed, &mu_testing::tar_gz(files));
    }
    let sandbox = &repository.sandbox;
    for name in ["old", "new"] {
        sandbox.mu(&["get", &repository.chart(name)]).ok();
        assert!(sandbox.has(&format!("{}/charts/private/Chart.yaml", repository.pack(name))));
        let url = repository.nginx.url(&format!("stable/{name}-1.0.0.tgz"));
        sandbox.mu(&["get", &url]).ok();
    }
    assert_eq!(sandbox.locked().len(), 4);
}

#[test]
fn a_private_repository_gets_the_password_that_helm_has_for_it() {
    let mut sandbox = Sandbox::new();
    let mut charts = Charts::new(&sandbox.path("www"));
    charts.add(&Chart::new("web", "0.3.0"));
    let users = sandbox.path("users");
    write(sandbox.root(), "users", "ada:{PLAIN}hunter2\n");
    let guarded = format!("auth_basic charts; auth_basic_user_file {};", users.display());
    let nginx = Nginx::serve(&sandbox.path("www"), &guarded);
    sandbox.asks_for(&[&format!("helm+{}", nginx.url("web"))]);
    let helms = format!("`helm repo add NAME {} --username USER`", nginx.url(""));
    sandbox.mu(&["get"]).fails().says(&["mu login", "MU_TOKEN_", &helms]);
    // Of two on one host, and with one on another port.
    let entry = |name: &str, url: &str, password: &str| {
        format!("- {{name: {name}, url: '{url}', username: ada, password: {password}}}\n")
    };
    let other = entry("other", "http://localhost:9/", "wrong");
    let inner = entry("inner", &nginx.url("inner"), "wrong");
    let file = |password: &str| {
        let own = entry("own", &nginx.url(""), password);
        let text = format!("repositories:\n{other}{own}{inner}");
        write(sandbox.root(), "home/.config/helm/repositories.yaml", text);
    };
    file("wrong");
    sandbox.mu(&["get"]).fails();
    file("hunter2");
    sandbox.mu(&["get", "-vv"]).ok().does_not_say(&["hunter2"]);
    assert_eq!(sandbox.locked(), [format!("{}/web 0.3.0", nginx.host())]);
    // What the user has given to mu counts first.
    sandbox.set_token(&nginx.host(), "ada:wrong");
    sandbox.mu(&["update"]).fails();
}

#[test]
fn a_repository_that_strangers_do_not_find_gets_the_password_that_there_is_for_it() {
    let mut sandbox = Sandbox::new();
    Charts::new(&sandbox.path("www")).add(&Chart::new("web", "0.3.0"));
    write(sandbox.root(), "users", "ada:{PLAIN}hunter2\n");
    let users = sandbox.path("users").display().to_string();
    let guarded = format!(
        "auth_basic charts; auth_basic_user_file {users};
        error_page 401 =404 @hidden; location @hidden {{ return 404; }}"
    );
    let nginx = Nginx::serve(&sandbox.path("www"), &guarded);
    let base = nginx.url("");
    sandbox.asks_for(&[&format!("helm+{base}web")]);
    sandbox.mu(&["get"]).fails().says(&["there is no package"]);
    let names = "home/.config/helm/repositories.yaml";
    let own =
        format!("repositories: [{{name: own, url: '{base}', username: ada, password: hunter2}}]");
    write(sandbox.root(), names, own);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), [format!("{}/web 0.3.0", nginx.host())]);
    fs::remove_file(sandbox.path(names)).expect("is there");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked"]).fails();
    sandbox.set_token(&nginx.host(), "ada:hunter2");
    sandbox.mu(&["get", "--locked"]).ok();
    // One that has expired is told, where the server tells it.
    let server = TestServer::start(|seen, _| match seen.header("authorization") {
        Some(_) => Reply::status(401),
        None => Reply::status(404),
    });
    sandbox.set_token(&server.host(), "ada:hunter2");
    let said = format!("; the server does not accept what is stored for `{}`", server.host());
    for reference in [format!("helm+{}", server.url("web")), server.url("web-1.0.0.tgz")] {
        sandbox.mu(&["get", &reference]).fails().says(&[&said]);
    }
}

#[test]
fn a_chart_says_by_its_range_that_prereleases_are_wanted() {
    let mut repository = Repository::new();
    repository.charts.add(&Chart::new("web", "0.5.0-rc.1"));
    let sandbox = &repository.sandbox;
    let head = "apiVersion: v2\nname: shop\nversion: 0.1.0\n";
    let start = || {
        fs::remove_dir_all(sandbox.path("work")).expect("is there");
        sandbox.write("Chart.yaml", head);
    };
    for (asked, written, chosen) in [
        ("web#>=0.4.0", ">=0.4.0-0", "web 0.5.0-rc.1"),
        ("web#0.5", "~0.5.0-0", "web 0.5.0-rc.1"),
        ("web#^0.3.0", "^0.3.0-0", "web 0.3.0"),
        ("web", "^0.5.0-rc.1", "web 0.5.0-rc.1"),
    ] {
        start();
        sandbox.mu(&["add", "--pre", &repository.chart(asked)]).ok();
        let text = sandbox.read("Chart.yaml");
        assert!(
            text.contains(&format!("version: {written}\n"))
                || text.contains(&format!("version: \"{written}\"\n")),
            "{text}"
        );
        assert!(sandbox.locked().contains(&repository.id(chosen)), "{:?}", sandbox.locked());
        sandbox.mu(&["get", "--locked"]).ok();
    }
    start();
    let run = sandbox.mu(&["add", "--pre", &repository.chart("web#<=0.5.0")]).fails();
    run.says(&["`<=0.5.0` cannot say here that prereleases are wanted", ">=1.2.0-0 <2.0.0-0"]);
    assert_eq!(sandbox.read("Chart.yaml"), head);
}

#[test]
fn a_damaged_index_is_no_fault_of_the_network() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let chart = repository.chart("web");
    for (text, code) in [
        ("apiVersion: v1\nentries:\n  web:\n  - {name: [\n", "integrity"),
        // Anything can answer with a page.
        ("<html>\n", "network"),
    ] {
        repository.charts.index(text);
        let error = sandbox.mu(&["versions", &chart, "--json"]).fails_with(code);
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains("index.yaml` is not an index of charts"), "{error}");
    }
}

#[test]
fn charts_and_packages_are_in_one_graph() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    sandbox.publish(&[Package::new("acme/base", "1.0.0").needs(&repository.chart("common#<2.1"))]);
    sandbox.asks_for(&["acme/base", &repository.chart("web")]);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.locked().contains(&repository.id("common 2.0.0")), "{:?}", sandbox.locked());
    sandbox.asks_for(&[&repository.chart("common#3.x"), &repository.chart("web")]);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["no version of [HOST]/stable/common is both 3.x and 2.x.x"]);
}

#[test]
fn a_chart_that_is_not_what_its_index_says_is_refused() {
    let mut repository = Repository::new();
    let url = repository.nginx.url("stable");
    let liar = Chart::new("liar", "1.0.0");
    repository.charts.add_with(&liar, &liar.clone().needs("common", "3.x", &url).archive());
    repository
        .charts
        .add_with(&Chart::new("mixed", "1.0.0"), &Chart::new("other", "1.0.0").archive());
    let sandbox = &repository.sandbox;
    let before = sandbox.state();
    for (name, said) in [("liar", "`dependencies`"), ("mixed", "contains a package named `other`")]
    {
        let error = sandbox.mu(&["get", &repository.chart(name), "--json"]).fails_with("integrity");
        assert!(error.to_string().contains(said), "{error}");
    }
    let kept: Vec<String> =
        sandbox.state().into_keys().filter(|path| !before.contains_key(path)).collect();
    assert!(kept.iter().all(|path| !path.contains("liar") && !path.contains("mixed")), "{kept:?}");
}

#[test]
fn a_folder_with_a_chart_is_a_workspace_that_commands_edit() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let url = repository.nginx.url("stable");
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    let head = "apiVersion: v2\nname: shop # ours\nversion: 0.1.0\n";
    let stack = |version: &str| {
        format!(
            "  # what it stands on\n  - name: stack\n    version: {version} # for now\n    repository: {url}/\n    condition: stack.enabled\n"
        )
    };
    let local = "  - name: local\n    version: 0.1.0\n    repository: \"\"\n";
    let tail = "type: application\n";
    let chart = |dependencies: &str| format!("{head}dependencies:\n{dependencies}{tail}");
    sandbox.write("Chart.yaml", &chart(&format!("{local}{}", stack("~1.0.0"))));
    sandbox.write("charts/local/Chart.yaml", "apiVersion: v2\nname: local\nversion: 0.1.0\n");
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.locked().contains(&repository.id("stack 1.0.0")), "{:?}", sandbox.locked());
    sandbox
        .mu(&["tree"])
        .ok()
        .says(&["shop 0.1.0", "[HOST]/stable/stack 1.0.0 [required: ~1.0.0]"]);
    sandbox.mu_in("work/charts/local", &["status"]).ok();
    // A new entry has the form of its neighbours.
    sandbox.mu(&["add", &repository.chart("web#^0.3.0")]).ok().says(&["(Chart.yaml)"]);
    let web = format!("  - name: web\n    version: ^0.3.0\n    repository: {url}\n");
    let with_web = |version: &str| chart(&format!("{local}{}{web}", stack(version)));
    assert_eq!(sandbox.read("Chart.yaml"), with_web("~1.0.0"));
    sandbox.mu(&["upgrade", &repository.id("stack")]).ok();
    assert_eq!(sandbox.read("Chart.yaml"), with_web("~1.1.0"));
    sandbox.mu(&["remove", &repository.id("web")]).ok();
    assert_eq!(sandbox.read("Chart.yaml"), chart(&format!("{local}{}", stack("~1.1.0"))));
    // A package that charts cannot depend on is refused, and nothing is written.
    sandbox.publish(&[Package::new("acme/base", "1.0.0")]);
    sandbox.mu(&["add", "acme/base"]).fails().says(&["a chart cannot depend on"]);
    assert_eq!(sandbox.read("Chart.yaml"), chart(&format!("{local}{}", stack("~1.1.0"))));
    assert!(!sandbox.has("work/Mu.yaml"));
    // The error points at a wrong entry.
    sandbox.write("Chart.yaml", &chart(&stack("newest")));
    sandbox.mu(&["get"]).fails().says(&["Chart.yaml:7:14", "`newest` is not a version"]);
}

#[test]
fn a_misspelt_key_of_a_chart_is_no_dependency_less() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let url = repository.nginx.url("stable");
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    let chart = |rest: &str| {
        format!(
            "apiVersion: v2\nname: shop\nversion: 0.1.0\nx-notes: ours\nShared: &s {{version: 0.3.x}}\n{rest}"
        )
    };
    let entry = format!("dependencies:\n- name: web\n  version: 0.3.x\n  repository: {url}\n");
    sandbox.write("Chart.yaml", &chart(&entry));
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    for (from, to, place, said) in [
        (
            "version: 0.3.x",
            "verison: 0.3.x",
            "Chart.yaml:8:3",
            "unknown key `verison`; did you mean `version`?",
        ),
        (
            "repository:",
            "repositroy:",
            "Chart.yaml:9:3",
            "unknown key `repositroy`; did you mean `repository`?",
        ),
        (
            "dependencies:",
            "dependencys:",
            "Chart.yaml:6:1",
            "unknown key `dependencys`; did you mean `dependencies`?",
        ),
        (
            "dependencies:",
            "helmVersion: 3\ndependencies:",
            "Chart.yaml:6:1",
            "unknown key `helmVersion`",
        ),
        (
            "  version: 0.3.x\n",
            "",
            "Chart.yaml:7:3",
            "the dependency `web` has no `version`, and the chart does not carry it: there is no `charts/web`",
        ),
        ("repository:", "alias: x #", "Chart.yaml:7:3", "the dependency `web` has no `repository`"),
    ] {
        let wrong = chart(&entry.replace(from, to));
        sandbox.write("Chart.yaml", &wrong);
        sandbox.mu(&["get"]).fails().says(&[place, said]);
        assert_eq!(sandbox.read("Mu.lock"), lock);
        assert_eq!(sandbox.read("Chart.yaml"), wrong);
    }
    // What it carries, it carries, as a folder or as an archive; and Helm takes keys in any case.
    sandbox.write("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.3.0\n");
    sandbox.write("charts/base-1.0.0.tgz", "");
    sandbox.write(
        "Chart.yaml",
        &chart("Dependencies:\n- Name: web\n  Version: 0.3.x\n- name: base\n"),
    );
    sandbox.mu(&["get"]).ok();
    assert!(!sandbox.has("work/Mu.lock"), "nothing is needed");
    sandbox.write(
        "Chart.yaml",
        &chart(&format!("DEPENDENCIES:\n- Name: web\n  Version: 0.3.x\n  REPOSITORY: {url}\n")),
    );
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.locked().contains(&repository.id("web 0.3.0")));
}

#[test]
fn a_misspelt_key_of_a_published_chart_is_said() {
    let mut repository = Repository::new();
    let url = repository.nginx.url("stable");
    let lines = format!("dependencies:\n- {{name: common, verison: 2.x.x, repository: {url}}}\n");
    repository.charts.add(&Chart::new("typo", "1.0.0").lines(&lines));
    repository.charts.add(&Chart::new("typo", "0.9.0").lines("maintainer: a\nlogo: b\n"));
    let sandbox = &repository.sandbox;
    sandbox
        .mu(&["get", &repository.chart("typo#1.0.0")])
        .fails()
        .says(&["unknown key `verison`; did you mean `version`?"]);
    sandbox.mu(&["get", &repository.chart("typo")]).ok().says(&["typo 0.9.0"]);
    let info = sandbox.mu(&["info", &repository.chart("typo#0.9.0")]).ok();
    info.says(&["unknown keys", "maintainer, logo"]);
}

#[test]
fn what_helm_has_locked_stays_where_there_is_no_lock_of_mu_yet() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let url = repository.nginx.url("stable");
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    let needs = format!(
        "dependencies:\n- name: exporter\n  version: 4.x\n  repository: {url}\n- name: web\n  version: 0.x\n  repository: {url}\n"
    );
    sandbox.write("Chart.yaml", &format!("apiVersion: v2\nname: shop\nversion: 0.1.0\n{needs}"));
    // A version that is there no more is no obstacle.
    let lock = needs.replace("4.x", "4.47.0").replace("0.x", "0.2.0");
    sandbox.write("Chart.lock", &format!("{lock}digest: sha256:0\ngenerated: \"x\"\n"));
    // A key that no lock has, or a merge that nobody has finished, would lose the versions.
    for (from, to, said) in [
        ("dependencies", "dependecies", "unknown key `dependecies`; did you mean `dependencies`?"),
        ("dependencies", "<<<<<<< HEAD\ndependencies", "this is not a lock: it has no keys"),
    ] {
        let right = sandbox.read("Chart.lock");
        sandbox.write("Chart.lock", &right.replace(from, to));
        sandbox.mu(&["get"]).fails().says(&[
            said,
            "Chart.lock:1:",
            "`helm dependency update` writes it anew",
        ]);
        sandbox.write("Chart.lock", &right);
    }
    sandbox.mu(&["get"]).ok().says(&["kept 1 version of Chart.lock"]);
    let has = |text: &str| sandbox.locked().contains(&repository.id(text));
    assert!(has("exporter 4.47.0") && has("web 0.3.0"), "{:?}", sandbox.locked());
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["update"]).ok();
    assert!(has("exporter 4.47.3"), "{:?}", sandbox.locked());
    // Afterwards it counts no more.
    assert!(!sandbox.mu(&["get"]).ok().stderr.contains("Chart.lock"));
}

#[test]
fn a_chart_that_was_packed_on_windows_is_one() {
    let mut repository = Repository::new();
    let packed = |chart: &Chart, paths: [&str; 2]| {
        let text = |path: &str| match path.contains("Chart") {
            true => chart.manifest(),
            false => "kind: Y\n".to_owned(),
        };
        let files = paths.map(|path| (path.to_owned(), ('f', text(path).into_bytes())));
        mu_testing::tar_gz(files)
    };
    let chart = Chart::new("keda", "1.3.2");
    let archive = packed(&chart, ["keda\\Chart.yaml", "keda\\templates\\sub\\y.yaml"]);
    repository.charts.add_with(&chart, &archive);
    let mixed = Chart::new("keda", "1.4.0");
    let archive = packed(&mixed, ["keda/Chart.yaml", "keda/templates\\y.yaml"]);
    repository.charts.add_with(&mixed, &archive);
    let sandbox = &repository.sandbox;
    sandbox.mu(&["get", &repository.chart("keda#1.3.2")]).ok();
    assert!(sandbox.has(&format!("{}/templates/sub/y.yaml", repository.pack("keda"))));
    sandbox.mu(&["get", &repository.chart("keda#1.4.0")]).fails().says(&[
        "its entry `keda/templates\\y.yaml` is malformed: its path has slashes and backslashes",
    ]);
}

#[test]
fn charts_that_clash_can_use_what_they_carry_inside() {
    let mut repository = Repository::new();
    let url = repository.nginx.url("stable");
    repository.charts.add(&Chart::new("common", "1.4.0"));
    repository.charts.add(&Chart::new("old", "1.0.0").needs("common", "^1.0.0", &url));
    let sandbox = &repository.sandbox;
    sandbox.asks_for(&[&repository.chart("web"), &repository.chart("old")]);
    let (old, common) = (repository.id("old"), repository.id("common"));
    let line = format!("bundled: [\"{old}>{common}\"]");
    let said = line.replace(&repository.nginx.host(), "[HOST]");
    sandbox.mu(&["get"]).fails().says(&[&format!("write `{said}` into `.mu/workspace.yaml`")]);
    sandbox.write(".mu/workspace.yaml", &format!("{line}\n"));
    sandbox.mu(&["get"]).ok();
    let locked = [repository.id("common 2.1.0"), repository.id("old 1.0.0")];
    assert_eq!(sandbox.locked(), [&locked[..], &[repository.id("web 0.3.0")]].concat());
    sandbox.mu(&["get", "--locked"]).ok();
    // All that a chart depends on, compared with a lock that has it.
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("bundled: [\"{old}\", \"{}\"]\n", repository.id("web")),
    );
    let run = sandbox.mu(&["get", "--locked"]).fails();
    run.says(&["[HOST]/stable/web uses the [HOST]/stable/common that it carries inside now"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), [repository.id("old 1.0.0"), repository.id("web 0.3.0")]);
}

#[test]
fn a_copy_is_offered_only_if_the_archive_has_it() {
    let mut repository = Repository::new();
    let url = repository.nginx.url("stable");
    repository.charts.add(&Chart::new("common", "1.4.0"));
    let needs =
        format!("dependencies:\n- {{name: common, version: ^1.0.0, repository: '{url}'}}\n");
    repository.charts.add(&Chart::new("bare", "1.0.0").lines(&needs));
    repository.charts.add(&Chart::new("bare", "1.1.0").lines(&needs).file("charts/common.md", ""));
    let packed = Chart::new("packed", "1.0.0").lines(&needs).file("charts/common-1.4.0.tgz", "");
    repository.charts.add(&packed);
    let sandbox = &repository.sandbox;
    let offered = |name: &str| format!("let {} use the", repository.id(name));
    let offered = |name: &str| offered(name).replace(&repository.nginx.host(), "[HOST]");
    for (name, is_offered) in [("bare", false), ("packed", true)] {
        sandbox.asks_for(&[&repository.chart("web"), &repository.chart(name)]);
        // The other chart has a copy.
        let run = sandbox.mu(&["get"]).fails().says(&[&offered("web")]);
        match is_offered {
            true => run.says(&[&offered(name)]),
            false => run.does_not_say(&[&offered(name)]),
        };
    }
}

#[test]
fn charts_of_a_workspace_take_the_place_of_those_that_are_published_from_it() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let url = repository.nginx.url("stable");
    let namespace = format!("{}/stable", repository.nginx.host());
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    sandbox.write(".mu/workspace.yaml", &format!("formats: [helm]\nnamespace: \"{namespace}\"\n"));
    let needs = |range: &str| {
        format!("dependencies:\n- {{name: web, version: {range}, repository: '{url}'}}\n")
    };
    sandbox.write("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.9.0\n");
    let shop = format!("apiVersion: v2\nname: shop\nversion: 0.1.0\n{}", needs("0.x"));
    sandbox.write("shop/Chart.yaml", &shop);
    let lock = format!("{}digest: sha256:0\ngenerated: \"x\"\n", needs("0.3.0"));
    sandbox.write("shop/Chart.lock", &lock);
    // The chart has no other name in the repository than its own, and the published version is not what is missing.
    for command in ["get", "status"] {
        sandbox.mu(&[command]).ok().does_not_say(&["warning"]);
    }
    assert!(sandbox.locked().contains(&repository.id("web 0.9.0")), "{:?}", sandbox.locked());
    sandbox.write("web/Chart.yaml", "apiVersion: v2\nname: other\nversion: 0.9.0\n");
    sandbox.mu(&["get"]).ok().says(&["whose package is named `other`"]);
}

#[test]
fn charts_below_the_root_are_members_where_the_settings_say_so() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n");
    let inner = ["api/charts/inner", "api/tests/case", "api/part", "tests/other"];
    for place in inner.into_iter().chain(["api", "charts/lone"]) {
        let name = place.rsplit('/').next().unwrap_or(place);
        sandbox.write(&format!("deploy/{place}/Chart.yaml"), &chart(name));
    }
    let members = |sandbox: &Sandbox| {
        let answer = sandbox.mu(&["list", "--workspace", "--json"]).ok().json();
        let ids = answer["packages"].as_array().expect("is a list").iter();
        ids.map(|one| one["id"].as_str().expect("is text").to_owned()).collect::<Vec<_>>()
    };
    sandbox.asks_for(&[]);
    assert_eq!(members(sandbox), ["hub.mu.com/acme/web"]);
    sandbox.write(".mu/workspace.yaml", "formats: [helm]\n");
    // A folder of charts is one that a chart carries only where a chart is around it.
    assert_eq!(members(sandbox), ["hub.mu.com/acme/web", "hub.mu.com/api", "hub.mu.com/lone"]);
    sandbox.mu_in("work/deploy/api", &["version", "minor"]).ok();
    assert!(sandbox.read("deploy/api/Chart.yaml").contains("version: 0.2.0"));
    sandbox.write(".mu/workspace.yaml", "formats: [helm]\nmembers: [., deploy/*]\n");
    sandbox.mu(&["list", "--workspace"]).ok().does_not_say(&["matches"]);
    sandbox.write(".mu/workspace.yaml", "formats: [helm]\nmembers: [., deploy/api/charts/*]\n");
    assert_eq!(members(sandbox), ["hub.mu.com/acme/web"]);
    sandbox.write(".mu/workspace.yaml", "formats: [chef]\n");
    sandbox.mu(&["list"]).fails().says(&[
        "`chef` is not a format",
        "workspace.yaml:1:11",
        "`helm`",
    ]);
}

#[test]
fn a_chart_that_somebody_put_there_is_a_pack() {
    let mut repository = Repository::new();
    let muroot = repository.sandbox.path("muroot").display().to_string();
    repository.sandbox.set("MUROOT", &muroot);
    let sandbox = &repository.sandbox;
    let chart = |name: &str| Chart::new(name, "0.1.0").manifest();
    let host = repository.nginx.host().replace(':', "+");
    let base = format!("{host}/stable");
    write(
        &sandbox.path(&format!("muroot/lib/packs/{base}/runtime")),
        "Chart.yaml",
        chart("runtime"),
    );
    sandbox.write(&format!(".mu/packs/{base}/placed/Chart.yaml"), &chart("placed"));
    sandbox.asks_for(&[&repository.chart("runtime#^0.1"), &repository.chart("placed#^0.1")]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.lock();
    let sources: Vec<&str> = lock["packages"]
        .as_array()
        .expect("is a list")
        .iter()
        .map(|one| one["source"].as_str().expect("is text"))
        .collect();
    assert_eq!(
        sources,
        [format!("pack+.mu/packs/{base}/placed"), format!("pack+muroot/{base}/runtime")]
    );
    assert_eq!(sandbox.read(&format!(".mu/packs/{base}/placed/Chart.yaml")), chart("placed"));
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
    let which = sandbox.mu(&["which", &repository.chart("runtime")]).ok();
    assert!(which.stdout.contains("stable/runtime"), "{}", which.shown());
}

#[test]
fn a_chart_of_the_first_format_says_where_its_dependencies_are() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let url = repository.nginx.url("stable");
    sandbox.write("Chart.yaml", "name: shop\nversion: 0.1.0\n");
    let requirements =
        format!("dependencies:\n- {{name: web, version: 0.3.x, repository: {url}}}\n");
    sandbox.write("requirements.yaml", &requirements);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.locked().contains(&repository.id("web 0.3.0")));
    let exporter = repository.chart("exporter#4.46.0");
    sandbox.mu(&["add", &exporter]).ok().says(&["(requirements.yaml)"]);
    let flow = |name: &str, version: &str| {
        format!("- {{name: {name}, version: {version}, repository: {url}}}\n")
    };
    let web = |version: &str| flow("web", version);
    let added = format!("- name: exporter\n  version: 4.46.0\n  repository: {url}\n");
    assert_eq!(
        sandbox.read("requirements.yaml"),
        format!("dependencies:\n{}{added}", web("0.3.x"))
    );
    sandbox.mu(&["pin"]).ok();
    assert!(sandbox.read("requirements.yaml").contains("version: 0.3.0, "));
    sandbox.mu(&["remove", &repository.id("web")]).ok();
    assert_eq!(sandbox.read("requirements.yaml"), format!("dependencies:\n{added}"));
    sandbox.mu(&["version", "patch"]).ok();
    assert_eq!(sandbox.read("Chart.yaml"), "name: shop\nversion: 0.1.1\n");
    sandbox.mu(&["get", "--locked"]).ok();
    // Helm reads the file in a chart of the second format, too, and no dependencies in `Chart.yaml` beside it.
    sandbox.write(
        "Chart.yaml",
        &format!("apiVersion: v2\nname: shop\nversion: 0.1.0\n{requirements}"),
    );
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["add", &repository.chart("exporter#4.47.3")]).ok();
    assert!(sandbox.read("requirements.yaml").contains("version: 4.47.3\n"));
    assert!(sandbox.read("Chart.yaml").contains("0.3.x"), "is not read");
    sandbox.mu(&["vendor", "--for", "helm"]).ok();
    assert!(sandbox.read("Chart.lock").contains("- name: exporter\n"));
    assert!(!sandbox.read("Chart.lock").contains("web"));
    // Where there is none yet, it is made for a chart of the first format.
    sandbox.write("Chart.yaml", "name: shop\nversion: 0.1.0\n");
    fs::remove_file(sandbox.path("work/requirements.yaml")).expect("is there");
    sandbox.mu(&["add", &repository.chart("exporter#4.46.0")]).ok();
    let made =
        format!("dependencies:\n  - name: exporter\n    version: 4.46.0\n    repository: {url}\n");
    assert_eq!(sandbox.read("requirements.yaml"), made);
    // The same in the second format.
    sandbox.write(
        "Chart.yaml",
        &format!("apiVersion: v2\nname: shop\nversion: 0.1.0\n{requirements}"),
    );
    fs::remove_file(sandbox.path("work/requirements.yaml")).expect("is there");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["pin"]).ok();
    assert!(
        sandbox.read("Chart.yaml").contains("version: 0.3.0"),
        "{}",
        sandbox.read("Chart.yaml")
    );
}

#[test]
fn a_chart_says_that_it_is_one_and_that_nobody_looks_after_it() {
    let mut repository = Repository::new();
    repository.charts.add(&Chart::new("lone", "1.0.0").lines(
        "deprecated: true\ndependencies:\n- {name: inner, version: 1.0.0, repository: ''}\n",
    ));
    let sandbox = &repository.sandbox;
    let lone = repository.chart("lone");
    sandbox.mu(&["info", &lone]).ok().says(&[
        "deprecated",
        "format       helm",
        "bundled      inner",
    ]);
    sandbox.mu(&["versions", &lone]).ok().says(&["deprecated"]);
    let answer = sandbox.mu(&["info", &lone, "--json"]).ok().json();
    assert_eq!((&answer["format"], &answer["deprecated"]), (&"helm".into(), &"".into()));
}

/// The paths in an archive.
fn entries(archive: &[u8]) -> Vec<String> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let entries = archive.entries().expect("is an archive");
    let path = |entry: std::io::Result<tar::Entry<'_, _>>| {
        entry.expect("is whole").path().expect("is UTF-8").display().to_string()
    };
    entries.map(path).collect()
}

#[test]
fn helm_finds_what_it_reads_in_charts_and_its_lock() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let url = repository.nginx.url("stable");
    let aliases = format!("repositories:\n- name: acme\n  url: {url}\n");
    write(sandbox.root(), "home/.config/helm/repositories.yaml", aliases);
    let chart = |web: &str| {
        format!(
            "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n\
             - {{name: web, version: {web}, repository: '@acme', alias: front}}\n\
             - {{name: web, version: 0.3.x, repository: '@acme', alias: back}}\n\
             - {{name: exporter, version: 4.46.x || 4.47.x, repository: '{url}/'}}\n\
             - {{name: local, version: 0.9.0, repository: ''}}\n\
             - {{name: side, version: ~0.4, repository: 'file://../side'}}\n"
        )
    };
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    sandbox.write("Chart.yaml", &chart("^0.3.0"));
    sandbox.write("charts/local/Chart.yaml", "apiVersion: v2\nname: local\nversion: 0.9.0\n");
    sandbox.write("charts/exporter-4.46.0.tgz", "an earlier one");
    sandbox.write("charts/exporter-of-mine-1.0.0.tgz", "another chart");
    let side = Chart::new("side", "0.4.2")
        .needs("common", "<2.1", &url)
        .file(".helmignore", "*.md\n")
        .file("notes.md", "");
    for (path, (_, bytes)) in side.files() {
        write(&sandbox.path("side"), &path, bytes);
    }
    sandbox.trusts_folder("side");
    // A question writes nothing, but knows all of it.
    let before = tree(&sandbox.path("work"));
    let asked = sandbox.mu(&["vendor", "--for", "helm", "--dry-run"]).ok();
    asked.says(&["+ charts/side-0.4.2.tgz", "- charts/exporter-4.46.0.tgz", "nothing was written"]);
    assert_eq!(tree(&sandbox.path("work")), before);
    let run = sandbox.mu(&["vendor", "--for", "helm"]).ok();
    run.says(&[
        "/side 0.4.2",
        "+ [HOST]/stable/common 2.0.0",
        "+ [HOST]/stable/web 0.3.0",
        "+ charts/web-0.3.0.tgz",
        "+ charts/exporter-4.47.3.tgz",
        "- charts/exporter-4.46.0.tgz",
        "note: Helm uses common 0.0.1 from inside web 0.3.0; Mu.lock has 2.0.0",
        "charts/ (3 archives) and Chart.lock of shop fit Mu.lock",
    ]);
    let published = |name: &str| fs::read(sandbox.path(&format!("www/stable/{name}"))).expect("is");
    for name in ["web-0.3.0.tgz", "exporter-4.47.3.tgz"] {
        let vendored = fs::read(sandbox.path(&format!("work/charts/{name}"))).expect("is there");
        assert_eq!(vendored, published(name), "{name}");
    }
    assert!(sandbox.has("work/charts/exporter-of-mine-1.0.0.tgz"));
    // What no repository has is packed as Helm would.
    let packed = fs::read(sandbox.path("work/charts/side-0.4.2.tgz")).expect("is there");
    assert_eq!(
        entries(&packed),
        [
            "side/.helmignore",
            "side/Chart.yaml",
            "side/charts/common/Chart.yaml",
            "side/templates/map.yaml"
        ]
    );
    let lock = sandbox.read("Chart.lock").replace(&repository.nginx.host(), "[HOST]");
    let (entries, rest) = lock.split_once("digest: sha256:").expect("has one");
    assert_eq!(
        entries,
        "dependencies:\n\
         - name: web\n  repository: http://[HOST]/stable\n  version: 0.3.0\n\
         - name: web\n  repository: http://[HOST]/stable\n  version: 0.3.0\n\
         - name: exporter\n  repository: http://[HOST]/stable/\n  version: 4.47.3\n\
         - name: local\n  repository: \"\"\n  version: 0.9.0\n\
         - name: side\n  repository: file://../side\n  version: 0.4.2\n"
    );
    assert!(rest.contains("generated: \"20"), "{lock}");
    // The second time, it requests nothing and changes nothing.
    let (asked, state) = (repository.nginx.log().len(), tree(&sandbox.path("work")));
    let run = sandbox.mu(&["vendor", "--for", "helm", "--offline"]).ok();
    run.says(&["charts/ (3 archives) and Chart.lock of shop are up to date"]);
    assert_eq!((repository.nginx.log().len(), tree(&sandbox.path("work"))), (asked, state));
    // Another requirement, another lock; the same versions.
    let lock = sandbox.read("Chart.lock");
    sandbox.write("Chart.yaml", &chart("'>=0.3'"));
    let answer = sandbox.mu(&["vendor", "--for", "helm", "--json"]).ok().json();
    assert_eq!(answer["charts"][0]["lockChanged"], true, "{answer}");
    assert_eq!(answer["charts"][0]["archives"][0]["changed"], false, "{answer}");
    assert_ne!(sandbox.read("Chart.lock"), lock);
}

#[test]
fn nothing_is_vendored_for_helm_if_a_chart_is_missing() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let url = repository.nginx.url("stable");
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    let needs = format!(
        "- {{name: web, version: 0.3.0, repository: '{url}'}}\n- {{name: local, version: 0.9.0}}\n"
    );
    let chart = format!("apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n{needs}");
    sandbox.write("Chart.yaml", &chart);
    let run = sandbox.mu(&["vendor", "--for", "helm"]).fails();
    run.says(&["the dependency `local` has no `repository`"]);
    assert!(!sandbox.has("work/charts") && !sandbox.has("work/Chart.lock"));
}

#[test]
fn what_is_vendored_for_helm_is_what_the_lock_says() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    // A package of mu's has no place for them.
    sandbox.asks_for(&[&repository.chart("web")]);
    let run = sandbox.mu(&["vendor", "--for", "helm"]).fails();
    run.says(&["no package of the workspace", "is a chart", "`formats: [helm]`"]);
    fs::remove_dir_all(sandbox.path("work")).expect("is there");
    let url = repository.nginx.url("stable");
    sandbox.write(".mu/workspace.yaml", "formats: [helm]\n");
    let chart = |name: &str, on: &str| {
        let head = format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\ndependencies:\n");
        sandbox.write(&format!("{name}/Chart.yaml"), &format!("{head}{on}"));
    };
    // The second comes first by name, and needs what the first is filled with.
    chart("back", &format!("- {{name: web, version: 0.3.x, repository: '{url}'}}\n"));
    chart("app", "- {name: back, version: 0.1.0, repository: file://../back}\n");
    sandbox.mu(&["vendor", "--for", "helm"]).ok().says(&["+ app/charts/back-0.1.0.tgz"]);
    let packed = fs::read(sandbox.path("work/app/charts/back-0.1.0.tgz")).expect("is there");
    assert!(entries(&packed).contains(&"back/charts/web-0.3.0.tgz".to_owned()));
    // The archive is another one than when it was locked.
    fs::remove_file(sandbox.path("work/back/charts/web-0.3.0.tgz")).expect("is there");
    let other = Chart::new("web", "0.3.0").archive();
    write(&sandbox.path("www/stable"), "web-0.3.0.tgz", other);
    let run = sandbox.mu(&["vendor", "--for", "helm"]).fails();
    run.says(&["the archive of `[HOST]/stable/web 0.3.0`", "not the one that was expected"]);
    assert!(!sandbox.has("work/back/charts/web-0.3.0.tgz"));
    // Nothing is written through a link.
    fs::remove_dir_all(sandbox.path("work/back/charts")).expect("is there");
    std::os::unix::fs::symlink("../..", sandbox.path("work/back/charts")).expect("can be");
    sandbox
        .mu(&["vendor", "--for", "helm", "-p", "back"])
        .fails()
        .says(&["back/charts`", "it is a symbolic link, and mu follows no links"]);
    // Nor is anything packed that it leads to.
    sandbox
        .mu(&["vendor", "--for", "helm"])
        .fails()
        .says(&["neither in its package nor in the repository or workspace around it"]);
}

#[test]
fn the_format_of_a_package_in_git_or_a_folder_is_shown() {
    let sandbox = Sandbox::new();
    let (chart, module, package, annotations, operator) = (
        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "[package]\nname = \"web\"\nversion = \"1.0.0\"\n",
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: web}\n",
        "annotations:\n  operators.operatorframework.io.bundle.package.v1: web\n",
        "kind: ClusterServiceVersion\nmetadata: {name: web.v1.0.0}\nspec: {version: 1.0.0}\n",
    );
    for (format, files) in [
        ("helm", &[("Chart.yaml", chart)][..]),
        ("kcl", &[("kcl.mod", module)]),
        ("crossplane", &[("crossplane.yaml", package)]),
        ("olm", &[("metadata/annotations.yaml", annotations), ("manifests/web.yaml", operator)]),
    ] {
        let folder = sandbox.path(format);
        for (path, text) in files {
            mu_testing::write(&folder, path, text);
        }
        let who = ["-c", "user.name=A", "-c", "user.email=a@x.example"];
        git(&folder, &["init", "--quiet", "."]);
        git(&folder, &["add", "."]);
        git(&folder, &[&who[..], &["commit", "--quiet", "--message", "x"]].concat());
        git(&folder, &["tag", "v1.0.0"]);
        for place in [folder.display().to_string(), format!("git+file://{}", folder.display())] {
            let info = sandbox.mu(&["info", &place, "--json"]).ok().json();
            assert_eq!(info["format"], format, "{place}: {info}");
        }
    }
}

#[test]
fn a_chart_in_a_git_repository_is_read_as_one() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let url = repository.nginx.url("stable");
    let source = sandbox.path("charts.git");
    let chart = Chart::new("shop", "9.9.9").needs("common", "~2.0", &url);
    for (path, (_, bytes)) in chart.files() {
        write(&source.join("deploy/shop"), &path, bytes);
    }
    // By a short name that only this machine knows.
    let short = Chart::new("short", "1.0.0")
        .lines("dependencies: [{name: common, repository: '@acme', version: ~2.0}]\n");
    for (path, (_, bytes)) in short.files() {
        write(&source.join("short"), &path, bytes);
    }
    // One of the first format, without a tag.
    write(&source, "old/Chart.yaml", "name: old\nversion: 0.1.0\n");
    let needs =
        format!("dependencies: [{{name: exporter, version: 4.46.0, repository: '{url}'}}]\n");
    write(&source, "old/requirements.yaml", needs);
    git(&source, &["init", "--quiet", "."]);
    git(&source, &["add", "."]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    git(&source, &[&who[..], &["commit", "--quiet", "--message", "charts"]].concat());
    git(&source, &["tag", "deploy/shop/v1.2.0"]);
    let place = format!("git+file://{}", source.display());
    let [shop, old, short] =
        ["deploy/shop#^1", "old", "short"].map(|rest| format!("{place}/{rest}"));
    sandbox.asks_for(&[&short]);
    sandbox.mu(&["get"]).fails().says(&["`@acme` is not named in Helm's `repositories.yaml`"]);
    let aliases = format!("repositories: [{{name: acme, url: '{url}'}}]\n");
    write(sandbox.root(), "home/.config/helm/repositories.yaml", aliases);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.locked().contains(&repository.id("common 2.0.0")));
    sandbox.asks_for(&[&shop, &old]);
    sandbox.mu(&["get"]).ok();
    let locked = sandbox.locked().join(" ");
    for one in [repository.id("common 2.0.0"), repository.id("exporter 4.46.0")] {
        assert!(locked.contains(&one), "{locked}");
    }
    assert!(locked.contains("/deploy/shop 1.2.0"), "{locked}");
    // Nothing is added to a chart.
    let inside = source.display().to_string().replace("/.", "/_2e").replace(".git", "");
    let pack = format!("work/.mu/packs/localhost{inside}/deploy/shop");
    assert_eq!(tree(&sandbox.path(&pack)), chart.files());
}

#[test]
fn two_ids_of_the_same_charts_are_made_one() {
    let mut repository = Repository::new();
    let (host, url) = (repository.nginx.host(), repository.nginx.url("stable"));
    // The same charts at another place; one chart needs them there.
    let elsewhere = repository.nginx.url("moved");
    repository.charts.add(&Chart::new("late", "1.0.0").needs("common", "<2.1", &elsewhere));
    let sandbox = &repository.sandbox;
    sandbox.asks_for(&[&repository.chart("web"), &repository.chart("late")]);
    let asked = || repository.nginx.log().iter().filter(|line| line.contains("/moved/")).count();
    let settings = |from: &str, to: &str| {
        sandbox.write(".mu/workspace.yaml", &format!("aliases: {{\"{from}\": {to}}}\n"));
    };
    // With a protocol, and without one, where a reference that needs no alias has it.
    for to in [format!("helm+{url}"), format!("{host}/stable/")] {
        settings(&format!("{host}/moved/"), &to);
        let _ = fs::remove_file(sandbox.path("work/Mu.lock"));
        sandbox.mu(&["get"]).ok();
        let common = repository.id("common 2.0.0");
        let locked = sandbox.locked();
        assert_eq!(locked, [common, repository.id("late 1.0.0"), repository.id("web 0.3.0")]);
    }
    assert_eq!(asked(), 0);
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    sandbox.mu(&["why", &repository.chart("common")]).ok().says(&[
        "`aliases` in the settings make [HOST]/moved/common the package [HOST]/stable/common",
        "<2.1 by [HOST]/stable/late",
    ]);
    let why =
        sandbox.mu(&["why", &repository.chart("common").replace("stable", "moved"), "--json"]);
    assert_eq!(why.ok().json()["aliases"][0], "[HOST]/moved/common");
    sandbox.mu(&["config", "get", "aliases"]).ok().says(&["[HOST]/stable/"]);
    // A lock from before is brought in line, or refused.
    settings(&format!("{host}/stable/"), &format!("helm+{elsewhere}"));
    let run = sandbox.mu(&["get", "--locked"]).fails();
    run.says(&["make [HOST]/stable/common the package [HOST]/moved/common"]);
    for (settings, said) in [
        ("aliases: {a.example/x/: a.example/x/y/}\n", "begin alike"),
        ("aliases: {a.example/x/: nope://a.example/}\n", "nope"),
        ("aliases: {'oci://a.example/x': b.example/}\n", "protocol"),
    ] {
        sandbox.write(".mu/workspace.yaml", settings);
        sandbox.mu(&["list"]).fails().says(&["workspace.yaml:1:", said]);
    }
}

#[test]
fn charts_of_a_repository_are_found_by_words() {
    let mut repository = Repository::new();
    let url = repository.nginx.url("stable");
    let db = Chart::new("mariadb", "20.2.1").lines(
        "description: A database for shops\nkeywords: [sql, storage]\nappVersion: \"11.4\"\n",
    );
    repository.charts.add(&db);
    repository.charts.add(&Chart::new("mariadb", "21.0.0-rc.1"));
    let sandbox = &repository.sandbox;
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("registries: {{charts.acme.example/: \"helm+{url}\"}}\n"),
    );
    let only = ["--only", "charts.acme.example/"];
    let search = |word| sandbox.mu(&[&["search", word], &only[..]].concat()).ok();
    let run = search("sql");
    run.says(&["charts.acme.example/mariadb", "20.2.1", "A database for shops"]);
    search("export").says(&["charts.acme.example/exporter", "4.47.3"]);
    // Without the network, what was read before.
    let before = repository.nginx.log().len();
    let run = sandbox.mu(&[&["search", "storage", "--offline"], &only[..]].concat()).ok();
    run.says(&["charts.acme.example/mariadb"]);
    assert_eq!(repository.nginx.log().len(), before);
}

#[test]
fn repositories_that_the_workspace_uses_are_searched_without_settings() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let url = repository.nginx.url("stable");
    write(&sandbox.path("hub"), "catalog.jsonl", "");
    write(
        &sandbox.path("hub"),
        "hub.json",
        "{\"hub\": 1, \"index\": \"index/\", \"packs\": \"packs/\"}",
    );
    sandbox.mu(&["search", "export"]).ok().does_not_say(&["exporter"]);
    // What a chart of the workspace names, and what Mu.lock has.
    let chart = format!(
        "apiVersion: v2\nname: root\nversion: 0.1.0\ndependencies: [{{name: common, version: ^2, repository: '{url}'}}]\n"
    );
    sandbox.write(".mu/workspace.yaml", "formats: [helm]\nregistries: {hub.mu.com/: ../hub}\n");
    sandbox.write("root/Chart.yaml", &chart);
    let found = "[HOST]/stable/exporter";
    sandbox.mu(&["search", "export"]).ok().says(&[found]);
    sandbox.mu(&["search", "export", "--only", "hub.mu.com/"]).ok().does_not_say(&[found]);
    fs::remove_dir_all(sandbox.path("work/root")).expect("is there");
    sandbox.mu(&["search", "export"]).ok().does_not_say(&[found]);
    sandbox.asks_for(&[&repository.chart("common")]);
    sandbox.mu(&["get"]).ok();
    sandbox.asks_for(&[]);
    sandbox.mu(&["search", "export"]).ok().says(&[found]);
}

#[test]
fn aliases_hold_for_what_packages_replace_and_what_they_conflict_with() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("web/app", "1.0.0"),
        Package::new("web/new", "1.0.0")
            .manifest("replaces: [old.example/web/app]\n")
            .key("replaces", json!(["old.example/web/app"])),
        Package::new("web/lone", "1.0.0")
            .manifest("conflicts: [old.example/web/app]\n")
            .key("conflicts", json!(["old.example/web/app"])),
    ]);
    let settings = fs::read_to_string(sandbox.path("work/.mu/workspace.yaml")).expect("is there");
    sandbox.asks_for(&["web/app", "web/lone"]);
    sandbox.mu(&["get"]).ok();
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    let aliases = format!("{settings}aliases: {{old.example/: hub.mu.com/}}\n");
    sandbox.write(".mu/workspace.yaml", &aliases);
    sandbox.mu(&["get"]).fails().says(&["web/lone", "web/app"]);
    sandbox.asks_for(&["web/app", "web/new"]);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.read("Mu.lock").contains("replacedBy: hub.mu.com/web/new"));
    sandbox.mu(&["get", "--locked"]).ok();
}

/// An index of 3,591 versions in 4 MB, of which every 50th makes no sense.
fn large(url: &str) -> String {
    let about = "x".repeat(900);
    let mut text = "apiVersion: v1\nentries:\n".to_owned();
    for chart in 0..399 {
        text.push_str(&format!("  c{chart}:\n"));
        for version in (0..9).rev() {
            let number = if (chart * 9 + version) % 50 == 7 {
                "of the day".to_owned()
            } else {
                format!("1.{version}.0")
            };
            text.push_str(&format!("  - {{apiVersion: v2, name: c{chart}, version: {number}, description: {about}, urls: [{url}/c{chart}-1.{version}.0.tgz]}}\n"));
        }
    }
    text
}

#[test]
fn a_large_index_is_downloaded_once_and_a_chart_of_a_lock_alone() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("charts/stable")).expect("can be made");
    let nginx = Nginx::serve(&sandbox.path("charts"), "");
    let url = nginx.url("stable");
    let text = large(&url);
    assert!((3_500_000..4_500_000).contains(&text.len()), "{}", text.len());
    let chart = Chart::new("c5", "1.8.0");
    write(&sandbox.path("charts/stable"), "c5-1.8.0.tgz", chart.archive());
    write(&sandbox.path("charts/stable"), "index.yaml", &text);
    sandbox.asks_for(&[&format!("helm+{url}/c5")]);
    let asked = |arguments: &[&str]| {
        let before = nginx.log().len();
        sandbox.mu(arguments).ok();
        nginx.log().split_off(before)
    };
    let index = |status: u16| format!("GET /stable/index.yaml HTTP/1.1 {status}");
    let archive = "GET /stable/c5-1.8.0.tgz HTTP/1.1 200".to_owned();
    // `helm dependency update` downloads the whole index in every run, because it sends no conditional request.
    assert_eq!(asked(&["get"]), [index(200), archive.clone()]);
    assert_eq!(asked(&["update"]), [index(304)]);
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    assert_eq!(asked(&["get", "--locked"]), [archive]);
    // Entries that make no sense are versions of their chart that cannot be used.
    let versions = sandbox.mu(&["versions", &format!("helm+{url}/c0")]).ok();
    versions.says(&["1.8.0", "1.0.0", "left out: `of the day` is not a version\n"]);
}

#[test]
fn a_chart_is_added_by_a_name_that_only_the_settings_know() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let settings =
        format!("registries:\n  charts.acme.example/: helm+{}\n", repository.nginx.url("stable"));
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.write("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n");
    sandbox.mu(&["add", "charts.acme.example/web"]).ok();
    sandbox.mu(&["add", "charts.acme.example/exporter#~4.46"]).ok();
    let chart = sandbox.read("Chart.yaml");
    assert!(chart.contains("name: web\n"), "{chart}");
    assert!(chart.contains("version: ~4.46"), "{chart}");
    let locked = sandbox.locked();
    assert!(locked.contains(&"charts.acme.example/exporter 4.46.0".to_owned()), "{locked:?}");
}

#[test]
fn a_folder_with_a_chart_is_not_made_another_package() {
    let sandbox = Sandbox::new();
    sandbox.write("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n");
    let before = sandbox.state();
    let run = sandbox.mu(&["init"]).ok();
    run.says(&["Chart.yaml makes this folder a package already", "`mu get`", "`mu init NAME`"]);
    let answer = sandbox.mu(&["init", "--json"]).ok().json();
    let already = answer["already"].as_str().expect("is text");
    assert!(
        already.ends_with("Chart.yaml") && answer["files"] == serde_json::json!([]),
        "{answer}"
    );
    assert!(sandbox.state() == before, "nothing was written");
    // Below the root of a workspace, the settings have to say that charts count.
    sandbox.write("ws/.mu/workspace.yaml", "formats: [kcl]\n");
    sandbox.write("ws/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\n");
    let lacking = sandbox.mu_in("work/ws/web", &["init"]).ok();
    lacking.says(&["`mu config set formats '[kcl, helm]'` makes it a package of this workspace"]);
    // One that cannot be read is none.
    sandbox.write("broken/Chart.yaml", "name: [\n");
    sandbox.mu_in("work/broken", &["init"]).fails().says(&["Chart.yaml"]);
    std::fs::remove_dir_all(sandbox.path("work/broken")).expect("is ours");
    // Whoever says so gets one.
    sandbox.mu(&["init", "acme/shop"]).ok();
    sandbox.mu(&["status"]).ok().says(&["acme/shop", "`Chart.yaml` is not read"]);
}

#[test]
fn a_manifest_beside_another_one_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("acme/shop/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n");
    sandbox.write("acme/shop/Mu.yaml", "name: acme/shop\nversion: 0.1.0\n");
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.mu(&["status"]).ok().says(&["`Chart.yaml` is not read"]);
    sandbox.mu(&["which", "acme/shop", "--all"]).ok().says(&["hit (`Chart.yaml` is not read)"]);
    let status = sandbox.mu(&["status", "--json"]).ok().json();
    assert_eq!(status["members"][0]["notRead"], json!(["Chart.yaml"]));
}

#[test]
fn a_file_of_another_kind_is_no_chart() {
    let sandbox = Sandbox::new();
    sandbox.write("Chart.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n");
    sandbox.mu(&["status"]).ok().says(&["there is no package here"]);
}

#[test]
fn a_version_with_two_archives_is_not_used() {
    let mut repository = Repository::new();
    repository.charts.add(&Chart::new("web", "0.5.0"));
    repository.charts.add(&Chart::new("web", "0.5.0").lines("description: another\n"));
    let sandbox = &repository.sandbox;
    sandbox.mu(&["resolve", &repository.chart("web")]).ok().says(&["web 0.3.0"]);
    let run = sandbox.mu(&["resolve", &repository.chart("web#0.5.0")]).fails();
    run.says(&["0.5.0 cannot be used: the index lists it twice, with different archives"]);
}

#[test]
fn a_version_in_git_that_helm_would_refuse_does_not_stop_the_others() {
    let repository = Repository::new();
    let sandbox = &repository.sandbox;
    let source = sandbox.path("shop.git");
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    git(sandbox.root(), &["init", "--quiet", "shop.git"]);
    for (version, range) in [("1.0.0", "~2.0"), ("1.1.0", "newest")] {
        let chart = Chart::new("shop", version);
        let chart = chart.needs("common", range, &repository.nginx.url("stable"));
        for (path, (_, bytes)) in chart.files() {
            write(&source, &path, bytes);
        }
        git(&source, &["add", "."]);
        git(&source, &[&who[..], &["commit", "--quiet", "--message", version]].concat());
        git(&source, &["tag", &format!("v{version}")]);
    }
    let place = format!("git+file://{}", source.display());
    sandbox.mu(&["resolve", &place]).ok().says(&["shop 1.0.0", "common 2.0.0"]);
    let run = sandbox.mu(&["resolve", &format!("{place}#1.1.0")]).fails();
    run.says(&["1.1.0 cannot be used", "the range `newest`"]);
}

/// The files of a package at a version.
type Files<'f> = &'f dyn Fn(&str) -> Vec<(String, Vec<u8>)>;

#[test]
fn a_chart_in_git_that_has_only_prereleases_is_chosen() {
    let sandbox = Sandbox::new();
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let resolve = |name: &str, files: Files<'_>| {
        let source = sandbox.path(name);
        git(sandbox.root(), &["init", "--quiet", name]);
        for version in ["1.0.0-rc.1", "1.0.0-rc.2"] {
            files(version).into_iter().for_each(|(path, bytes)| write(&source, &path, bytes));
            git(&source, &["add", "."]);
            git(&source, &[&who[..], &["commit", "--quiet", "--message", version]].concat());
            git(&source, &["tag", &format!("v{version}")]);
        }
        sandbox.mu(&["resolve", &format!("git+file://{}", source.display())])
    };
    let chart = |version: &str| {
        let files = Chart::new("shop", version).files();
        files.into_iter().map(|(path, (_, bytes))| (path, bytes)).collect()
    };
    resolve("shop.git", &chart).ok().says(&["shop 1.0.0-rc.2"]);
    // A package of mu's own says with `prerelease: true` that they are wanted.
    let own = |version: &str| {
        vec![("Mu.yaml".to_owned(), format!("name: tool\nversion: {version}\n").into_bytes())]
    };
    resolve("tool.git", &own).fails().says(&["all prereleases"]);
}

#[test]
fn a_chart_in_a_folder_that_does_not_satisfy_the_chart_beside_it_is_said() {
    let sandbox = Sandbox::new();
    let shop = "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n- {name: lib, version: ^1, repository: 'file://../lib'}\n";
    sandbox.write(".mu/workspace.yaml", "formats: [helm]\n");
    sandbox.write("shop/Chart.yaml", shop);
    sandbox.write("lib/Chart.yaml", "apiVersion: v2\nname: lib\nversion: 2.0.0\n");
    let warning = "lib` is used from the workspace at version 2.0.0, although shop requires";
    for _ in 0..2 {
        sandbox.mu(&["get"]).ok().says(&[warning]);
    }
    sandbox.write("lib/Chart.yaml", "apiVersion: v2\nname: lib\nversion: 1.2.0\n");
    sandbox.mu(&["get"]).ok().does_not_say(&["although"]);
    sandbox.mu(&["upgrade"]).ok();
    sandbox.mu(&["pin"]).ok();
    assert_eq!(sandbox.read("shop/Chart.yaml"), shop);
    // The same for a chart that is not in the workspace.
    sandbox.write(".mu/workspace.yaml", "members: [shop]\nformats: [helm]\n");
    sandbox.mu(&["get"]).ok();
    // A folder has one version, so there is nothing to raise.
    sandbox.mu(&["upgrade"]).ok();
    assert_eq!(sandbox.read("shop/Chart.yaml"), shop);
    sandbox.write("lib/Chart.yaml", "apiVersion: v2\nname: lib\nversion: 2.0.0\n");
    sandbox.mu(&["get"]).fails().says(&["2.0.0"]);
}

#[test]
fn a_chart_begins_at_the_release_that_it_was_moved_to() {
    let repository = Repository::new();
    let Repository { sandbox, mut charts, .. } = repository;
    for version in ["1.0.0-rc.1", "1.0.0", "2.0.0-rc.2"] {
        charts.add(&Chart::new("db", version));
    }
    let place = format!("helm+http://{}/stable/db", repository.nginx.host());
    sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
    sandbox.write("Chart.yaml", "apiVersion: v2\nname: app\nversion: 0.1.0\n");
    sandbox.mu(&["add", &format!("{place}#^2.0.0-rc.2")]).ok();
    assert!(sandbox.read("Chart.yaml").contains("version: ^2.0.0-rc.2\n"));
    // Where the range says that prereleases are wanted, the lowest match would be one.
    sandbox.mu(&["update", &format!("{place}#1.0.0")]).ok();
    assert!(
        sandbox.read("Chart.yaml").contains("version: ^1.0.0\n"),
        "{}",
        sandbox.read("Chart.yaml")
    );
    assert_eq!(sandbox.locked(), [format!("{}/stable/db 1.0.0", repository.nginx.host())]);
}

#[test]
fn a_chart_whose_inner_repository_cannot_be_reached_can_use_its_copy() {
    let mut repository = Repository::new();
    // A port on which nobody listens, as a repository that only the author's company reaches.
    let gone = "http://127.0.0.1:9";
    let inner = Chart::new("private", "1.3.0").lines("type: library\n");
    let vendor = Chart::new("vendor", "2.0.0").needs("private", "1.x", gone);
    let vendor = vendor.file("charts/private/Chart.yaml", &inner.manifest());
    repository.charts.add(&vendor);
    let sandbox = &repository.sandbox;
    sandbox.asks_for(&[&repository.chart("vendor")]);
    let by = repository.id("vendor");
    let line = format!("bundled: [\"{by}>127.0.0.1:9/private\"]");
    let shown = "bundled: [\"[HOST]/stable/vendor>127.0.0.1:9/private\"]";
    sandbox.mu(&["get"]).fails().says(&["2.0.0 requires it", shown]);
    let settings = format!("{}\n{line}\n", sandbox.read(".mu/workspace.yaml"));
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), [repository.id("vendor 2.0.0")]);
}
