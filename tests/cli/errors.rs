//! Every code that a failure can have, with `--json`: at least one case each.

use mu_testing::ReservedPort;
use mu_testing::http::{Reply, TestServer};
use serde_json::json;

use crate::support::{Package, Sandbox};

#[track_caller]
fn check(sandbox: &Sandbox, arguments: &[&str], code: &str, parts: &[&str]) -> serde_json::Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    let error = sandbox.mu(&all).fails_with(code);
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing: {text}");
    }
    // For people, the same error and no JSON.
    let run = sandbox.mu(arguments);
    assert_eq!(run.status, if code == "usage" { 2 } else { 1 }, "{}", run.shown());
    assert!(run.stderr.contains("error: ") && run.stdout.is_empty(), "{}", run.shown());
    error
}

#[test]
fn reference() {
    let sandbox = Sandbox::new();
    check(&sandbox, &["get", "aws//ec2"], "reference", &["aws//ec2"]);
    check(&sandbox, &["which", "a b"], "reference", &[]);
    let run = sandbox.mu(&["get", "aws/ec2#^1.x.y.z"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get aws/ec2#^1.x.y.z
    error: `aws/ec2#^1.x.y.z` is not a valid reference
      aws/ec2#^1.x.y.z
                   ^ expected a number, `x` or `*`, found `y`
    [exit 1]
    ");
    let secret = sandbox.mu(&["get", "https://ada:hunter2@acme.co/x"]).fails();
    secret.does_not_say(&["caused by"]);
}

#[test]
fn manifest() {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: acme/web\ndependancies: []\n");
    check(&sandbox, &["get"], "manifest", &["Mu.yaml", "did you mean `dependencies`"]);
    let run = sandbox.mu(&["get"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    error: unknown key `dependancies`
     --> [DIR]/work/Mu.yaml:2:1
      |
    2 | dependancies: []
      | ^^^^^^^^^^^^
      |
      = help: did you mean `dependencies`?
    [exit 1]
    ");
    sandbox.write("Mu.yaml", "name: acme/web\n");
    sandbox.write("Mu.json", "{\"name\": \"acme/web\"}");
    check(&sandbox, &["list"], "manifest", &["Mu.yaml", "Mu.json"]);
}

#[test]
fn a_dependency_in_an_index_line_that_nobody_can_have() {
    let sandbox = Sandbox::new();
    for (name, dependency) in [("acme/here", "../y"), ("acme/wrong", "acme/x#^^1")] {
        sandbox.publish(&[Package::new(name, "1.0.0").needs(dependency)]);
    }
    let folder = "acme/here 1.0.0 cannot be used: it depends on the folder `../y`";
    check(&sandbox, &["get", "acme/here"], "no-solution", &[folder]);
    let error = check(&sandbox, &["get", "acme/wrong"], "manifest", &["acme/x#^^1"]);
    assert_eq!(error["details"]["line"], 1);
}

#[test]
fn a_manifest_with_the_wrong_case_gets_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.write("mu.yaml", "name: acme/web\n");
    sandbox.mu(&["list"]).ok().says(&["warning", "`Mu.yaml`"]);
}

#[test]
fn workspace() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "registrys: {}\n");
    check(&sandbox, &["list"], "workspace", &["workspace.yaml", "registries"]);
    sandbox.write(".mu/workspace.yaml", "base: https://hub.mu.com/\n");
    check(&sandbox, &["list"], "workspace", &["no protocol belongs here", "only the host"]);
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.place("work/a", &Package::new("acme/x", "1.0.0"));
    sandbox.place("work/b", &Package::new("acme/x", "1.0.0"));
    check(&sandbox, &["get"], "workspace", &["acme/x", "a/Mu.yaml", "b/Mu.yaml"]);
}

#[test]
fn lock_outdated() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    let error = check(&sandbox, &["get", "--locked"], "lock-outdated", &["aws/ec2"]);
    assert_eq!(
        error["details"]["differences"],
        json!(["acme/web requires hub.mu.com/aws/ec2 latest"])
    );
    check(&sandbox, &["get", "--frozen"], "lock-outdated", &["Mu.lock"]);
}

#[test]
fn not_found() {
    let sandbox = Sandbox::new();
    sandbox.hub().release("aws/ec2", "1.0.0");
    check(&sandbox, &["get", "aws/ec3"], "not-found", &["aws/ec3", "hub/index/aws/ec3.jsonl"]);
    check(&sandbox, &["which", "aws/ec3"], "not-found", &["work/aws/ec3"]);
    check(&sandbox, &["get", "./nowhere"], "not-found", &["nowhere"]);
    let run = sandbox.mu(&["get", "aws/ec3"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get aws/ec3
    error: package not found: `aws/ec3`
      mu get requires aws/ec3
      there is no package aws/ec3
        looked at file://[DIR]/hub/hub.json
        looked at file://[DIR]/hub/index/aws/ec3.jsonl

    hint: `mu search ec3` looks for packages by words
    [exit 1]
    ");
}

#[test]
fn a_failure_leaves_the_workspace_where_it_begins() {
    let sandbox = Sandbox::new();
    std::fs::remove_file(sandbox.path("work/.mu/workspace.yaml")).expect("was there");
    sandbox.mu(&["get", "aws/nothing"]).fails();
    assert!(sandbox.has("work/.mu"), "an empty `.mu` is a workspace's");
    assert!(!sandbox.has("work/.mu/packs"));
}

#[test]
fn no_solution() {
    let sandbox = Sandbox::with_dependencies(&["aws/app", "aws/vpc#^2"]);
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/vpc#^1"),
        Package::new("aws/vpc", "1.0.0"),
        Package::new("aws/vpc", "2.0.0"),
    ]);
    let error = check(&sandbox, &["get"], "no-solution", &["aws/app", "aws/vpc", "^1", "^2"]);
    assert!(!error["details"].is_null(), "{error}");
    let run = sandbox.mu(&["get"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    error: no versions fit together
      acme/web requires aws/app
      aws/app 1.0.0 requires aws/vpc ^1
      acme/web requires aws/vpc ^2
      no version of aws/vpc is both ^1 and ^2

    hint: in acme/web, require aws/vpc ^1.0.0 instead of ^2: `mu add 'aws/vpc#^1.0.0'`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
}

#[test]
fn integrity() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.hub().release("aws/other", "1.0.0");
    let hub = sandbox.hub();
    std::fs::copy(hub.archive("aws/other", "1.0.0"), hub.archive("aws/ec2", "1.0.0"))
        .expect("is ours");
    check(&sandbox, &["get"], "integrity", &["wrong size", "ec2-1.0.0.tgz"]);
    hub.flip(&hub.archive("aws/ec2", "1.0.0"));
    hub.release("aws/ec3", "1.0.0");
    hub.flip(&hub.archive("aws/ec3", "1.0.0"));
    sandbox.asks_for(&["aws/ec3"]);
    check(&sandbox, &["get"], "integrity", &["sha256:", "ec3-1.0.0.tgz"]);
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com") && !sandbox.has("work/Mu.lock"));
}

#[test]
fn a_lock_with_another_archive_than_its_hub_lists_is_not_the_fault_of_the_hub() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.hub().release("aws/other", "1.0.0");
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let locked = sandbox.lock()["packages"][0]["archive"].as_str().expect("is there").to_owned();
    let wrong =
        locked.replace("sha256:", "sha256:0000").chars().take(locked.len()).collect::<String>();
    sandbox.write("Mu.lock", &lock.replace(&locked, &wrong));
    let afresh = || {
        std::fs::remove_dir_all(sandbox.path("cache")).expect("is there");
        std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    };
    afresh();
    let said = [&*format!("expected {wrong}, as Mu.lock has it"), &*format!("lists {locked}")];
    check(&sandbox, &["get"], "integrity", &said);
    let run = sandbox.mu(&["get", "--locked"]).fails();
    run.says(&["if Mu.lock was edited or merged by hand, restore it, or take `archive` out of"])
        .does_not_say(&["the hub's operator"]);
    // As the hint says.
    let line = lock.lines().find(|line| line.contains(&locked)).expect("is there");
    sandbox.write("Mu.lock", &lock.replace(&format!("{line}\n"), ""));
    sandbox.mu(&["get", "--locked"]).ok();
    // An archive that is not what the hub itself lists is.
    sandbox.write("Mu.lock", &lock);
    let hub = sandbox.hub();
    hub.flip(&hub.archive("aws/ec2", "1.0.0"));
    afresh();
    sandbox.mu(&["get"]).fails().says(&["the hub's operator"]);
}

#[test]
fn network() {
    let sandbox = Sandbox::new();
    let nobody = ReservedPort::take();
    sandbox.hub_is_at(&nobody.url(""));
    check(&sandbox, &["get", "aws/ec2"], "network", &[&nobody.host()]);
}

#[test]
fn auth() {
    let server = TestServer::start(|_, _| Reply::status(401));
    let sandbox = Sandbox::new();
    sandbox.hub_is_at(&server.url(""));
    let error = check(&sandbox, &["get", "aws/ec2"], "auth", &["401"]);
    assert!(error["help"].as_str().expect("is text").contains("MU_TOKEN_"), "{error}");
}

#[test]
fn what_a_failed_command_learned_is_kept() {
    let server = TestServer::start(|seen, _| match seen.path.as_str() {
        "/index/aws/ec2.jsonl" => {
            Reply::body("{\"name\":\"aws/ec2\",\"version\":\"1.0.0\",\"dependencies\":[]}\n")
        }
        "/hub.json" => Reply::body("{\"hub\":1,\"index\":\"index/\",\"packs\":\"packs/\"}"),
        _ => Reply::status(404),
    });
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^2"]);
    sandbox.hub_is_at(&server.url(""));
    check(&sandbox, &["resolve"], "not-found", &["aws/ec2"]);
    let asked = server.requests().len();
    check(&sandbox, &["resolve", "--offline"], "not-found", &["aws/ec2"]);
    assert_eq!(server.requests().len(), asked, "{:?}", server.requests());
}

#[test]
fn offline() {
    let server = TestServer::start(|_, _| Reply::status(404));
    let sandbox = Sandbox::new();
    sandbox.hub_is_at(&server.url(""));
    check(&sandbox, &["get", "aws/ec2", "--offline"], "offline", &["aws/ec2"]);
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn conflict() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.write(".mu/packs/hub.mu.com/aws/ec2/precious.txt", "by hand");
    check(&sandbox, &["get"], "conflict", &["packs/hub.mu.com/aws/ec2"]);
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/ec2/precious.txt"), "by hand");
    // A file is no pack either, whether or not mu has installed one there before.
    let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws/ec2");
    for _ in 0..2 {
        std::fs::remove_dir_all(&pack).expect("is ours");
        std::fs::write(&pack, "by hand").expect("is ours");
        check(&sandbox, &["get"], "conflict", &["packs/hub.mu.com/aws/ec2", "it is a file"]);
        assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/ec2"), "by hand");
        std::fs::remove_file(&pack).expect("is ours");
        sandbox.mu(&["get"]).ok();
    }
}

#[test]
fn io() {
    let sandbox = Sandbox::new();
    check(&sandbox, &["-C", "nowhere", "list"], "io", &["nowhere"]);
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    std::fs::write(sandbox.path("cache"), "not a folder").expect("is ours");
    check(&sandbox, &["get"], "io", &["cache"]);
}

#[test]
fn usage() {
    let sandbox = Sandbox::with_dependencies(&[]);
    check(&sandbox, &["resolve", "--runtime", "x"], "usage", &["--runtime"]);
    check(&sandbox, &["--exclude-newer", "sometime", "get"], "usage", &["--exclude-newer"]);
}

#[test]
fn untrusted() {
    let sandbox = Sandbox::new();
    sandbox.hub_is_at("http://hub.invalid/");
    check(&sandbox, &["get", "aws/ec2"], "untrusted", &["--allow-insecure"]);
}

#[test]
fn escapes_of_terminals_are_not_printed_raw() {
    let sandbox = Sandbox::new();
    let run = sandbox.mu(&["get", "aws/\u{1b}[31mred"]).fails();
    assert!(!run.stderr.contains('\u{1b}'), "{}", run.shown());
    sandbox.write("Mu.yaml", "name: acme/web\n\"x\\e[31m\": 1\n");
    sandbox.mu(&["get"]).fails().does_not_say(&["\u{1b}"]);
}

#[test]
fn a_place_that_no_provider_serves_yet_is_named() {
    let sandbox = Sandbox::new();
    let error = sandbox.mu(&["get", "svn://svn.example/trunk/elk", "--json"]);
    let error = error.fails_with("reference");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("no protocol or provider `svn`"), "{message}");
    for registry in ["{provider: svn}", "svn://acme.co/"] {
        sandbox.write(".mu/workspace.yaml", &format!("registries: {{acme.co/: {registry}}}\n"));
        let error = sandbox.mu(&["get", "acme.co/elk", "--json"]).fails_with("workspace");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("`svn")), "{error}");
        assert_eq!(error["details"]["line"], 1);
    }
    assert!(!sandbox.has("work/Mu.lock"));
}
