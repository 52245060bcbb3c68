//! KUDO operators as packages: found in repositories, with the dependencies that only their archives say.

use std::fs;

use mu_testing::{DockerRegistry, KudoOperator, KudoRepository, Nginx, digest_of, pull, tree};

use crate::support::{Hub, Sandbox};

/// A sandbox, and a repository on nginx that `operators.example/` is.
struct Cluster {
    sandbox: Sandbox,
    repository: KudoRepository,
    nginx: Nginx,
}

impl Cluster {
    /// With `kafka`, which installs `zookeeper`, and needs what `[HOST]` is replaced for.
    fn new() -> Self {
        let mut sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.path("www/0.10.0")).expect("can be made");
        let nginx = Nginx::serve(&sandbox.path("www"), "");
        sandbox.replace(&nginx.host(), "[HOST]");
        let mut repository =
            KudoRepository::new(&sandbox.path("www/0.10.0"), &nginx.url("0.10.0/"));
        for (app, version) in [("3.4.14", "0.2.0"), ("3.4.14", "0.3.0"), ("3.5.0", "0.1.0")] {
            repository.add(&KudoOperator::new("zookeeper", version).app(app));
        }
        repository.add(&kafka("2.4.1", "1.3.2", "0.2.0"));
        repository.add(&kafka("2.5.0", "1.3.1", "0.3.0"));
        repository.add(&KudoOperator::new("flink-demo", "0.1.5").installs("package: kafka"));
        let cluster = Self { sandbox, repository, nginx };
        let url = cluster.nginx.url("0.10.0");
        cluster.is_at(&format!("kudo+{url}"));
        cluster
    }

    /// Says where `operators.example/` is.
    fn is_at(&self, place: &str) {
        let text = format!("registries:\n  operators.example/: {place}\n");
        self.sandbox.write(".mu/workspace.yaml", &text);
    }
}

fn kafka(app: &str, version: &str, zookeeper: &str) -> KudoOperator {
    KudoOperator::new("kafka", version)
        .app(app)
        .lines("kubernetesVersion: 1.16.0\nkudoVersion: 0.17.0\n")
        .installs(&format!("package: zookeeper, appVersion: 3.4.14, operatorVersion: {zookeeper}"))
}

#[test]
fn operators_of_kudo_are_packages_as_they_are() {
    let cluster = Cluster::new();
    let sandbox = &cluster.sandbox;
    sandbox.asks_for(&["operators.example/flink-demo"]);
    let run = sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    + operators.example/flink-demo 0.1.5
    + operators.example/kafka 2.5.0-1.3.1
    + operators.example/zookeeper 3.4.14-0.3.0
    installed 3 packages (3 downloaded, 0 from cache)
    [exit 0]
    ");
    // The index, and of each version that was looked at its archive, once.
    assert_eq!(
        cluster.nginx.log(),
        [
            "GET /0.10.0/index.yaml HTTP/1.1 200",
            "GET /0.10.0/flink-demo-0.1.5.tgz HTTP/1.1 200",
            "GET /0.10.0/kafka-2.5.0_1.3.1.tgz HTTP/1.1 200",
            "GET /0.10.0/zookeeper-3.4.14_0.3.0.tgz HTTP/1.1 200",
        ]
    );
    insta::assert_snapshot!(sandbox.mu(&["tree"]).ok().shown(), @"
    $ mu tree
    acme/web 0.1.0
    └── operators.example/flink-demo 0.1.5 [required: any version]
        └── operators.example/kafka 2.5.0-1.3.1 [required: any version]
            └── operators.example/zookeeper 3.4.14-0.3.0 [required: 3.4.14-0.3.0]
    [exit 0]
    ");
    let pack = sandbox.path("work/.mu/packs/operators.example/kafka");
    assert_eq!(tree(&pack), kafka("2.5.0", "1.3.1", "0.3.0").files());
    let lock = sandbox.lock();
    let locked = &lock["packages"][1];
    assert_eq!(locked["version"], "2.5.0-1.3.1");
    assert_eq!(locked["source"], *format!("kudo+{}/", cluster.nginx.url("0.10.0")));
    assert_eq!(locked["digest"], *digest_of(&pack));
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date (3 packages)"]);
    // Choosing again needs no archive, also without the network.
    let before = cluster.nginx.log().len();
    let choose = ["resolve", "operators.example/flink-demo"];
    sandbox.mu(&[&choose[..], &["--offline"]].concat()).ok().says(&["zookeeper 3.4.14-0.3.0"]);
    sandbox.mu(&choose).ok().says(&["zookeeper 3.4.14-0.3.0"]);
    assert_eq!(cluster.nginx.log()[before..], ["GET /0.10.0/index.yaml HTTP/1.1 304"]);
    // From a lock alone, the index is not needed.
    for gone in ["work/.mu/packs", "cache"] {
        fs::remove_dir_all(sandbox.path(gone)).expect("is there");
    }
    let before = cluster.nginx.log().len();
    sandbox.mu(&["get", "--locked"]).ok();
    let mut log = cluster.nginx.log()[before..].to_vec();
    log.sort();
    assert_eq!(log.len(), 3, "{log:?}");
    assert!(log.iter().all(|line| line.contains(".tgz ")), "{log:?}");
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn questions_about_operators_of_kudo_are_answered() {
    let cluster = Cluster::new();
    let sandbox = &cluster.sandbox;
    let versions = sandbox.mu(&["versions", "operators.example/zookeeper"]).ok();
    versions.says(&["3.4.14-0.2.0", "3.4.14-0.3.0", "3.5.0-0.1.0"]);
    assert_eq!(cluster.nginx.log(), ["GET /0.10.0/index.yaml HTTP/1.1 200"]);
    sandbox.mu(&["info", "operators.example/kafka"]).ok().says(&[
        "operators.example/kafka 2.5.0-1.3.1",
        "kubernetes >=1.16.0",
        "kudo >=0.17.0",
        "zookeeper#3.4.14-0.3.0",
        "kudo",
    ]);
    sandbox.mu(&["search", "zoo"]).ok().says(&["operators.example/zookeeper", "3.5.0-0.1.0"]);
    // A reference can name the repository, and what it leads to is in the same one.
    let reference = format!("kudo+http://{}/0.10.0/kafka#2.4.1-1.3.2", cluster.nginx.host());
    let run = sandbox.mu(&["resolve", &reference]).ok();
    run.says(&["[HOST]/0.10.0/kafka 2.4.1-1.3.2", "[HOST]/0.10.0/zookeeper 3.4.14-0.2.0"]);
    // Such a repository is searched, too, if a manifest names it.
    sandbox.asks_for(&[&reference]);
    sandbox.mu(&["search", "zoo"]).ok().says(&["[HOST]/0.10.0/zookeeper"]);
    // Without a protocol, mu finds out.
    let bare = format!("http://{}/0.10.0/zookeeper", cluster.nginx.host());
    sandbox.mu(&["resolve", &bare]).ok().says(&["[HOST]/0.10.0/zookeeper 3.5.0-0.1.0"]);
    let old = ["resolve", "operators.example/kafka", "--runtime", "kudo=0.16.0"];
    sandbox.mu(&old).fails().says(&["kudo >=0.17.0"]);
    // Two that need two versions of one operator do not fit together.
    let clash = ["resolve", "operators.example/kafka", "operators.example/zookeeper#3.5.0-0.1.0"];
    sandbox.mu(&clash).fails().says(&["operators.example/kafka", "3.4.14-0.3.0"]);
    let chart = format!("helm+http://{}/0.10.0/kafka", cluster.nginx.host());
    sandbox.mu(&["resolve", &chart]).fails().says(&["it has KUDO operators", "`kudo+https://`"]);
}

/// Kafka's operators in the proposal that KUDO's versions come from: the same revision packages several versions of Kafka.
const KAFKAS: [(&str, &str); 8] = [
    ("2.3.0", "1.0.0"),
    ("2.3.0", "1.1.0"),
    ("2.3.0", "1.1.1"),
    ("2.3.1", "1.2.0"),
    ("3.0.0", "1.0.0"),
    ("3.0.0", "1.1.0"),
    ("3.0.1", "1.1.0"),
    ("3.1.1", "1.0.0"),
];

/// A sandbox, and a repository in a folder that `operators.example/`, the base, is.
fn in_a_folder(operators: &[KudoOperator]) -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("operators")).expect("can be made");
    let mut repository = KudoRepository::new(&sandbox.path("operators"), "");
    operators.iter().for_each(|operator| repository.add(operator));
    let place = format!("kudo+file://{}", sandbox.path("operators").display());
    let settings = format!("base: operators.example\nregistries:\n  operators.example/: {place}\n");
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox
}

/// The versions that `mu versions` shows for these arguments.
fn versions(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let run = sandbox.mu(&[&["versions", "--json"], arguments].concat()).ok();
    let listed = run.json()["versions"].clone();
    let listed = listed.as_array().expect("is a list").iter();
    listed.map(|one| one["version"].as_str().expect("has a version").to_owned()).collect()
}

#[test]
fn one_revision_of_an_operator_can_package_several_app_versions() {
    let operators = KAFKAS.map(|(app, revision)| {
        let kubernetes = if app.starts_with('2') { "1.14.0" } else { "1.15.0" };
        let api = if app == "3.1.1" { "kudo.dev/v1" } else { "kudo.dev/v1beta1" };
        let lines = format!("kubernetesVersion: {kubernetes}\n");
        KudoOperator::new("kafka", revision).app(app).lines(&lines).api(api)
    });
    let sandbox = in_a_folder(&operators);
    let all = KAFKAS.map(|(app, revision)| format!("{app}-{revision}"));
    assert_eq!(versions(&sandbox, &["kafka"]), all);
    assert_eq!(versions(&sandbox, &["kafka", "--app-version", "2.3.0"]), all[..3]);
    assert_eq!(versions(&sandbox, &["kafka", "--app-version", "3.0"]), all[4..7]);
    assert_eq!(
        versions(&sandbox, &["kafka", "--revision", "1.1.0"]),
        ["2.3.0-1.1.0", "3.0.0-1.1.0", "3.0.1-1.1.0"]
    );
    // Their archives say which API they are written for.
    assert_eq!(versions(&sandbox, &["kafka", "--api-version", "kudo.dev/v1"]), all[7..]);
    assert_eq!(versions(&sandbox, &["kafka", "--api-version", "kudo.dev/v1beta1"]), all[..7]);
    sandbox.mu(&["info", "kafka", "--json"]).ok().says(&[r#""apiVersion": "kudo.dev/v1""#]);
    // What cannot be chosen is marked, for the reason that choosing has.
    let on_14 = ["--runtime", "kubernetes=1.14"];
    let run = sandbox.mu(&[&["versions", "kafka"], &on_14[..]].concat()).ok();
    let marked = run.shown().lines().filter(|line| line.contains("kubernetes >=1.15.0")).count();
    assert_eq!(marked, 4, "{}", run.shown());
    sandbox.mu(&[&["resolve", "kafka"], &on_14[..]].concat()).ok().says(&["kafka 2.3.1-1.2.0"]);
    sandbox
        .mu(&[&["resolve", "kafka#3.0.0-1.0.0"], &on_14[..]].concat())
        .fails()
        .says(&["kubernetes >=1.15.0"]);
    for (reference, chosen) in [
        ("kafka", "3.1.1-1.0.0"),
        ("kafka#2.3.0", "2.3.0-1.1.1"),
        ("kafka#2.3.0-1.1.0", "2.3.0-1.1.0"),
        ("kafka#^3.0 <3.0.1", "3.0.0-1.1.0"),
        ("kafka#3.0.0-1.0.0", "3.0.0-1.0.0"),
    ] {
        let expected = format!("operators.example/kafka {chosen}");
        sandbox.mu(&["resolve", reference]).ok().says(&[&expected]);
    }
    sandbox.mu(&["get", "kafka#3.0.0-1.1.0"]).ok().says(&["+ operators.example/kafka 3.0.0-1.1.0"]);
    let pack = sandbox.path("work/.mu/packs/operators.example/kafka");
    assert_eq!(tree(&pack), operators[5].files());
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn an_app_version_of_an_operator_can_be_any_text() {
    let of = |app: &str, revision: &str| KudoOperator::new("hobbit", revision).app(app);
    let sandbox = in_a_folder(&[
        of("Frodo", "0.1.0"),
        of("Frodo", "0.10.0"),
        of("11 SR2", "0.2.0"),
        KudoOperator::new("shire", "1.0.0")
            .app("2")
            .installs("package: hobbit, appVersion: Frodo, operatorVersion: 0.1.0"),
    ]);
    assert_eq!(versions(&sandbox, &["hobbit"]), ["11 SR2-0.2.0", "Frodo-0.1.0", "Frodo-0.10.0"]);
    assert_eq!(versions(&sandbox, &["hobbit", "--app-version", "11 SR2"]), ["11 SR2-0.2.0"]);
    sandbox.mu(&["resolve", "hobbit"]).ok().says(&["operators.example/hobbit Frodo-0.10.0"]);
    sandbox.mu(&["get", "shire"]).ok().says(&["+ operators.example/hobbit Frodo-0.1.0"]);
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["outdated"]).says(&["Frodo-0.10.0"]);
}

#[test]
fn a_folder_with_an_operator_yaml_is_a_workspace() {
    let cluster = Cluster::new();
    let sandbox = &cluster.sandbox;
    let pipeline = KudoOperator::new("pipeline", "0.4.0").app("1.2");
    let pipeline = pipeline.installs("package: kafka, appVersion: 2.4.1, operatorVersion: 1.3.2");
    let text = format!("# Ours\n{}", pipeline.manifest());
    sandbox.write("operator.yaml", &text);
    cluster.is_at(&format!("kudo+{}\nbase: operators.example", cluster.nginx.url("0.10.0")));
    sandbox.mu(&["get"]).ok().says(&["+ operators.example/kafka 2.4.1-1.3.2"]);
    insta::assert_snapshot!(sandbox.mu(&["tree"]).ok().shown(), @"
    $ mu tree
    pipeline 1.2-0.4.0
    └── operators.example/kafka 2.4.1-1.3.2 [required: 2.4.1-1.3.2]
        └── operators.example/zookeeper 3.4.14-0.2.0 [required: 3.4.14-0.2.0]
    [exit 0]
    ");
    assert_eq!(sandbox.read("operator.yaml"), text);
    // What mu cannot write, it says.
    let refused = "mu does not edit the tasks in `operator.yaml`";
    sandbox.mu(&["add", "flink-demo"]).fails().says(&[refused, "package: flink-demo"]);
    sandbox.mu(&["vendor", "--for", "kudo"]).fails().says(&["kubectl kudo install"]);
    sandbox.mu(&["pack"]).fails().says(&["kubectl kudo package create"]);
    assert_eq!(sandbox.read("operator.yaml"), text);
    sandbox.write("operator.yaml", &text.replace("2.4.1", "2.4.0"));
    sandbox
        .mu(&["get"])
        .fails()
        .says(&["hint: in pipeline, require operators.example/kafka 2.4.1-1.3.2 instead of 2.4.0-1.3.2: mu does not edit `[DIR]/work/operator.yaml`"])
        .does_not_say(&["mu add", "mu remove"]);
    let vague = text.replace("appVersion: 2.4.1, ", "");
    sandbox.write("operator.yaml", &vague);
    sandbox.mu(&["get"]).fails().says(&["operator.yaml:14:", "without an appVersion"]);
    // Other programs have files of that name.
    sandbox.write("operator.yaml", "apiVersion: apps/v1\nkind: Deployment\n");
    sandbox.mu(&["tree"]).does_not_say(&["apps/v1"]);
}

#[test]
fn an_operator_that_does_not_say_its_api_is_one_as_for_kudo() {
    let mut cluster = Cluster::new();
    let silent = |operator: &KudoOperator| {
        operator.manifest().replacen("apiVersion: kudo.dev/v1beta1\n", "", 1)
    };
    let demo = KudoOperator::new("demo", "0.1.6").installs("package: kafka");
    let text = silent(&demo);
    assert!(!text.contains("kudo.dev"));
    let archive = mu_testing::tar_gz([("operator.yaml".to_owned(), ('f', text.into_bytes()))]);
    cluster.repository.add_with(&demo, &archive);
    let sandbox = &cluster.sandbox;
    sandbox.mu(&["get", "operators.example/demo"]).ok().says(&["demo 0.1.6", "kafka 2.5.0-1.3.1"]);
    let versions = ["versions", "operators.example/demo", "--api-version", "kudo.dev/v1beta1"];
    sandbox.mu(&versions).ok().says(&["0.1.6"]);
    let pipeline = KudoOperator::new("pipeline", "0.4.0").app("1.2");
    sandbox.write("operator.yaml", &silent(&pipeline.installs("package: kafka")));
    sandbox.mu(&["tree"]).ok().says(&["pipeline 1.2-0.4.0"]);
    // Nothing else of that name is one.
    sandbox.write("operator.yaml", "operatorVersion: 1.2.0\nimage: kafka\n");
    sandbox.mu(&["tree"]).does_not_say(&["1.2.0"]);
}

#[test]
fn an_operator_in_a_folder_beside_another_one_is_used_as_it_is() {
    let sandbox = Sandbox::new();
    let pipeline = KudoOperator::new("pipeline", "0.4.0").app("1.2");
    sandbox.write("operator.yaml", &pipeline.installs("package: ../child").manifest());
    let child = KudoOperator::new("child", "0.0.1").app("3.2.1").manifest();
    fs::create_dir_all(sandbox.path("child")).expect("can be made");
    fs::write(sandbox.path("child/operator.yaml"), child).expect("can be written");
    sandbox.mu(&["get", "--yes"]).ok().says(&["+ ../child 3.2.1-0.0.1"]);
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    sandbox.mu(&["tree"]).ok().says(&["../child 3.2.1-0.0.1"]);
}

#[test]
fn an_archive_of_an_operator_that_is_not_there_is_named_by_its_url() {
    let cluster = Cluster::new();
    let archive = cluster.sandbox.path("www/0.10.0/flink-demo-0.1.5.tgz");
    fs::remove_file(archive).expect("is there");
    cluster.sandbox.asks_for(&["operators.example/flink-demo"]);
    let run = cluster.sandbox.mu(&["get"]).fails();
    let url =
        cluster.nginx.url("0.10.0/flink-demo-0.1.5.tgz").replace(&cluster.nginx.host(), "[HOST]");
    run.says(&["there is no archive of", &format!("mu looked for it at `{url}`")]);
}

#[test]
fn operators_of_kudo_are_mirrored_with_what_their_archives_say() {
    let registry = DockerRegistry::start();
    for mirror in ["../mirror".to_owned(), format!("oci://{}/copies", registry.host())] {
        mirrored(&mirror);
    }
}

/// A mirror of what is locked is enough for a locked get, and for choosing again.
fn mirrored(mirror: &str) {
    let cluster = Cluster::new();
    let sandbox = &cluster.sandbox;
    sandbox.asks_for(&["operators.example/kafka"]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let is_hub = mirror.starts_with("..");
    if is_hub {
        Hub::new(&sandbox.path("mirror"));
    }
    let run = sandbox.mu(&["mirror", "--lock", "--to", mirror]).ok();
    run.says(&["kafka 2.5.0-1.3.1", "zookeeper 3.4.14-0.3.0"]);
    // The archives are those that KUDO has made.
    let made = kafka("2.5.0", "1.3.1", "0.3.0").archive();
    match mirror.strip_prefix("oci://").and_then(|place| place.split_once('/')) {
        None => {
            sandbox.mu(&["hub", "check", mirror]).ok();
            assert!(tree(&sandbox.path("mirror")).values().any(|(_, bytes)| *bytes == made));
        }
        Some((host, prefix)) => {
            let layer = format!("{prefix}/kafka/blobs/sha256:{}", mu_testing::hex(&made));
            assert_eq!(pull(host, &layer), Some(made));
        }
    }
    cluster.is_at(mirror);
    for gone in ["www", "cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(gone)).expect("is ours");
    }
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    sandbox.mu(&["verify"]).ok();
    // The hub knows what an operator installs.
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert_eq!(
        sandbox.locked(),
        ["operators.example/kafka 2.5.0-1.3.1", "operators.example/zookeeper 3.4.14-0.3.0"]
    );
}

#[test]
fn what_an_archive_contradicts_is_not_used() {
    let mut cluster = Cluster::new();
    let operator = |version: &str| KudoOperator::new("web", version).app("1.0.0");
    cluster.repository.add(&operator("0.1.0"));
    let other = operator("0.9.0").archive();
    cluster.repository.add_with(&operator("0.2.0"), &other);
    cluster
        .repository
        .add(&operator("0.3.0").installs("package: zookeeper, operatorVersion: 0.3.0"));
    let no_operator = mu_testing::tar_gz([("web/operator.yaml".to_owned(), ('f', b"a".to_vec()))]);
    cluster.repository.add_with(&operator("0.4.0"), &no_operator);
    let sandbox = &cluster.sandbox;
    sandbox.mu(&["resolve", "operators.example/web"]).ok().says(&["web 1.0.0-0.1.0"]);
    for (version, reason) in [
        ("0.2.0", "its archive has web 1.0.0-0.9.0"),
        ("0.3.0", "without an appVersion"),
        ("0.4.0", "has no `operator.yaml` of an operator"),
    ] {
        let reference = format!("operators.example/web#1.0.0-{version}");
        sandbox.mu(&["resolve", &reference]).fails().says(&[reason]);
    }
    // An archive that is not the listed one is an attack, and not a reason to take another version.
    let file = sandbox.path("www/0.10.0/web-1.0.0_0.1.0.tgz");
    fs::write(&file, other).expect("can be written");
    fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    sandbox.mu(&["resolve", "operators.example/web", "--json"]).fails_with("integrity");
    sandbox.asks_for(&["operators.example/web"]);
    sandbox.mu(&["get", "--json"]).fails_with("integrity");
    assert!(!sandbox.has(".mu/packs/operators.example"));
}
