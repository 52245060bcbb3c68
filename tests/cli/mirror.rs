//! `mu mirror`: a copy of packages that works without the original.

use std::fs;

use serde_json::{Value, json};

use crate::support::git::{HttpServer, Origin};
use crate::support::{Chart, Charts, Hub, Nginx, Package, Sandbox, Served, tree};

fn world() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/app"]);
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/old"),
        Package::new("aws/app", "1.1.0").needs("aws/lib#^1").key("x-more", json!("kept")),
        Package::new("aws/lib", "1.0.0").key("tags", json!(["first"])),
        Package::new("aws/lib", "1.1.0"),
        Package::new("aws/old", "1.0.0"),
        Package::new("other/tool", "1.0.0"),
    ]);
    Hub::new(&sandbox.path("mirror"));
    sandbox
}

fn copied(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let arguments = [&["mirror", "--to", "../mirror", "--json"], arguments].concat();
    let answer = sandbox.mu(&arguments).ok().json();
    let copied = answer["copied"].as_array().expect("is a list").clone();
    let text = |value: &Value| value.as_str().expect("is text").to_owned();
    copied.iter().map(|one| format!("{} {}", text(&one["name"]), text(&one["version"]))).collect()
}

#[test]
fn a_mirror_works_alone_with_the_same_lock() {
    let mut sandbox = world();
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.lock();
    assert_eq!(copied(&sandbox, &["aws/app"]), ["aws/app 1.1.0", "aws/lib 1.1.0"]);
    // Running it again costs nothing, and copies what is new.
    assert!(copied(&sandbox, &["aws/app"]).is_empty());
    sandbox.publish(&[Package::new("aws/lib", "1.2.0")]);
    assert_eq!(copied(&sandbox, &["aws/app"]), ["aws/lib 1.2.0"]);
    let mirror = Hub::new(&sandbox.path("mirror"));
    let line = fs::read_to_string(mirror.index("aws/app")).expect("was copied");
    assert!(line.contains("\"x-more\":\"kept\""), "{line}");
    // On another machine, without the original.
    fs::remove_dir_all(sandbox.path("hub")).expect("is ours");
    let cache = sandbox.path("another-cache").display().to_string();
    sandbox.set("MU_CACHE_DIR", &cache);
    sandbox.hub_is_at(&format!("file://{}/", mirror.folder().display()));
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is ours");
    sandbox.mu(&["get", "aws/lib#1.1.0"]).ok();
    let again = sandbox.lock();
    for (index, package) in lock["packages"].as_array().expect("is a list").iter().enumerate() {
        for key in ["id", "version", "digest", "archive"] {
            assert_eq!(again["packages"][index][key], package[key], "{key}");
        }
    }
    let place = mirror.folder().display().to_string();
    sandbox.mu(&["hub", "check", &place]).ok();
}

#[test]
fn as_much_as_is_asked_for() {
    let sandbox = world();
    assert_eq!(copied(&sandbox, &["aws/app", "--no-deps"]), ["aws/app 1.1.0"]);
    let all = copied(&sandbox, &["aws/app", "--all-versions"]);
    let expected = ["aws/app 1.0.0", "aws/lib 1.0.0", "aws/lib 1.1.0", "aws/old 1.0.0"];
    assert_eq!(all, expected);
    sandbox.mu(&["mirror", "no/such", "--to", "../mirror"]).fails();
    let run = sandbox.mu(&["mirror", "aws/lib#9", "--to", "../mirror"]).fails();
    let run = run.says(&["mu mirror requires aws/lib 9", "aws/lib has 1.0.0 and 1.1.0"]);
    run.does_not_say(&["mu get", "--global"]);
    sandbox.mu(&["mirror", "aws/app", "--to", "../nowhere"]).fails().says(&["mu hub init"]);
    let run = sandbox.mu(&["mirror", "./x", "--to", "../mirror"]);
    assert_eq!(run.status, 2, "{}", run.shown());
}

#[test]
fn what_changes_of_a_version_is_followed() {
    let sandbox = world();
    copied(&sandbox, &["aws/lib", "--all-versions"]);
    let mirror = Hub::new(&sandbox.path("mirror"));
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(mirror.index("aws/lib")).expect("was copied");
        text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
    };
    // This includes a version that would not be chosen now.
    sandbox.mu(&["yank", "aws/lib#1.0.0", "--reason", "bad"]).ok();
    sandbox.mu(&["deprecate", "aws/lib#1.1.0", "--reason", "old"]).ok();
    sandbox.mu(&["tag", "aws/lib#1.1.0", "first"]).ok();
    let run = sandbox.mu(&["mirror", "aws/lib", "--to", "../mirror"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu mirror aws/lib --to ../mirror
    ~ aws/lib 1.0.0 (yanked, tags)
    ~ aws/lib 1.1.0 (deprecated, tags)
    0 versions copied to ../mirror, 1 already there
    [exit 0]
    ");
    let [old, new] = &lines()[..] else { panic!("{:?}", lines()) };
    assert_eq!((&old["yanked"], &old["tags"]), (&json!("bad"), &Value::Null));
    assert_eq!((&new["deprecated"], &new["tags"]), (&json!("old"), &json!(["first"])));
    sandbox.mu(&["yank", "aws/lib#1.0.0", "--undo"]).ok();
    let text = fs::read_to_string(sandbox.hub().index("aws/lib")).expect("is there");
    let moved = text.replace("\"version\"", "\"movedTo\":\"hub.mu.com/aws/libs\",\"version\"");
    fs::write(sandbox.hub().index("aws/lib"), moved).expect("can be written");
    copied(&sandbox, &["aws/lib"]);
    let [old, new] = &lines()[..] else { panic!("{:?}", lines()) };
    assert_eq!(old["yanked"].as_str(), None);
    assert_eq!(
        (&old["movedTo"], &new["movedTo"]),
        (&json!("hub.mu.com/aws/libs"), &old["movedTo"])
    );
    let again = sandbox.mu(&["mirror", "aws/lib", "--to", "../mirror", "--json"]).ok().json();
    assert_eq!(again["changed"], json!([]));
}

#[test]
fn a_copy_has_a_text_for_a_version_that_was_yanked_without_one() {
    let sandbox = world();
    let index = sandbox.hub().index("aws/lib");
    let text = fs::read_to_string(&index).expect("is there");
    fs::write(&index, text.replacen("\"version\"", "\"yanked\":true,\"version\"", 1))
        .expect("is ours");
    copied(&sandbox, &["aws/lib", "--all-versions"]);
    let copy = fs::read_to_string(Hub::new(&sandbox.path("mirror")).index("aws/lib"));
    let copy = copy.expect("was copied");
    assert!(copy.contains("\"yanked\":\"no reason was given\""), "{copy}");
    let again = ["mirror", "aws/lib", "--all-versions", "--to", "../mirror", "--json"];
    assert_eq!(sandbox.mu(&again).ok().json()["changed"], json!([]));
}

#[test]
fn a_server_is_told_what_may_change_of_what_was_copied() {
    let mut sandbox = world();
    sandbox.mu(&["yank", "aws/lib#1.0.0", "--reason", "bad"]).ok();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let token = sandbox.mu(&["hub", "token", "add", "../srv", "m", "--namespace", "*"]).ok();
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.set_token(&served.address.to_string(), token.stdout.trim());
    let copy = |sandbox: &Sandbox| {
        sandbox.mu(&["mirror", "aws/lib", "--all-versions", "--to", &served.url(), "--json"])
    };
    let answer = copy(&sandbox).ok().json();
    assert_eq!(
        (answer["copied"].as_array().map(Vec::len), &answer["changed"]),
        (Some(2), &json!([]))
    );
    let lines = served.ask("GET", "/index/aws/lib.jsonl", &[], &[]).is(200).text();
    let [old, new] = &lines.lines().map(json_of).collect::<Vec<_>>()[..] else { panic!("{lines}") };
    assert_eq!((&old["yanked"], &old["tags"]), (&json!("bad"), &json!(["first"])));
    assert_eq!(new["yanked"], Value::Null);
    let again = copy(&sandbox).ok().json();
    assert_eq!((&again["copied"], &again["changed"]), (&json!([]), &json!([])));
}

fn json_of(line: &str) -> Value {
    serde_json::from_str(line).expect("is JSON")
}

#[test]
fn what_another_hub_says_wrongly_is_not_copied() {
    let sandbox = world();
    let odd = Package::new("odd/one", "1.0.0")
        .key("yanked", json!("two\nlines"))
        .key("movedTo", json!("javascript:alert(1)"));
    sandbox.publish(&[odd, Package::new("odd/one", "1.1.0")]);
    let arguments = ["mirror", "odd/one", "--all-versions", "--to", "../mirror"];
    let run = sandbox.mu(&arguments).ok();
    run.says(&["warning: the move of `odd/one` to `javascript:alert(1)` is refused", "2 versions"]);
    let mirror = Hub::new(&sandbox.path("mirror"));
    let lines = fs::read_to_string(mirror.index("odd/one")).expect("was copied");
    let line = lines.lines().map(json_of).next().expect("is there");
    assert_eq!((&line["yanked"], &line["movedTo"]), (&json!("two lines"), &Value::Null));
    let again = sandbox.mu(&[&arguments[..], &["--json"]].concat()).ok().json();
    assert_eq!((&again["copied"], &again["changed"]), (&json!([]), &json!([])));
}

#[test]
fn what_the_lock_names_is_copied_at_exactly_those_versions() {
    let origin = Origin::new("group/infra.git");
    origin.commit(&[("Mu.yaml", "name: group/infra\nversion: 1.0.0\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let git = format!("git+{}group/infra.git#^1", server.root());
    let sandbox = Sandbox::with_dependencies(&["aws/app", "other/tool#^1", &git]);
    Hub::new(&sandbox.path("mirror"));
    let run = sandbox.mu(&["mirror", "--to", "../mirror"]);
    assert_eq!(run.status, 2, "{}", run.shown());
    run.says(&["`--lock` copies everything that Mu.lock names"]);
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).fails();
    run.says(&["there is no Mu.lock in", "`mu get` writes it"]);
    sandbox.offer("aws/app 1.0.0: aws/lib#^1\n aws/lib 1.0.0:\n other/tool 1.0.0:");
    sandbox.mu(&["get"]).ok();
    sandbox.offer("aws/app 1.1.0: aws/new\n aws/lib 1.1.0:\n aws/new 1.0.0:\n other/tool 1.1.0:");
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror", "--dry-run"]).ok();
    run.says(&["+ aws/lib 1.0.0", "4 versions would be copied to ../mirror, 0 already there"]);
    assert!(!sandbox.path("mirror/index").exists());
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).ok();
    let run = run.says(&["next: `mu registry add hub.mu.com/ ../mirror`"]);
    assert_eq!(
        run.stdout.lines().collect::<Vec<_>>(),
        ["+ aws/app 1.0.0", "+ aws/lib 1.0.0", "+ group/infra 1.0.0", "+ other/tool 1.0.0"]
    );
    let again = sandbox.mu(&["mirror", "--lock", "--to", "../mirror", "--json"]).ok().json();
    assert_eq!((&again["copied"], &again["present"]), (&json!([]), &json!(4)));
    assert_eq!(again["elsewhere"], json!([]));
    let host = server.root().trim_start_matches("http://").to_owned();
    assert_eq!(again["prefixes"], json!([host, "hub.mu.com/"]));
    // If a hub's content differs from the lock, or is missing, it is not copied.
    let index = sandbox.hub().index("aws/lib");
    let lines = fs::read_to_string(&index).expect("is there");
    let mut line = json_of(lines.lines().next().expect("has a line"));
    line["digest"] = json!("h1:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    for (lines, said) in [
        (format!("{line}\n"), "Mu.lock has h1:"),
        (lines.lines().skip(1).collect(), "does not have it"),
    ] {
        fs::write(&index, lines).expect("is ours");
        Hub::new(&sandbox.path("other"));
        sandbox.mu(&["mirror", "--lock", "--to", "../other"]).fails().says(&[said]);
        assert!(!sandbox.path("other/index/aws/lib.jsonl").exists());
    }
}

#[test]
fn several_references_are_one_selection() {
    let sandbox = world();
    assert_eq!(
        copied(&sandbox, &["aws/lib#1.0.0", "other/tool"]),
        ["aws/lib 1.0.0", "other/tool 1.0.0"]
    );
    let run = sandbox.mu(&["mirror", "aws/app", "aws/lib#1.0", "aws/lib#1.1", "--to", "../mirror"]);
    run.fails().says(&["aws/lib"]);
}

#[test]
fn a_line_that_is_not_what_the_manifest_says_is_not_copied() {
    let mut sandbox = world();
    let odd = Package::new("odd/one", "1.0.0").manifest("provides: [a.example/v1/Real]\n");
    sandbox.publish(&[odd.lies("provides", json!(["a.example/v1/Made"]))]);
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let token = sandbox.mu(&["hub", "token", "add", "../srv", "m", "--namespace", "*"]).ok();
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.set_token(&served.address.to_string(), token.stdout.trim());
    for place in ["../mirror", &served.url()] {
        let error = sandbox.mu(&["mirror", "odd/one", "--to", place, "--json"]);
        let error = error.fails_with("integrity");
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains("`provides`: only the line has `a.example/v1/Made`"), "{message}");
    }
    sandbox.mu(&["hub", "check", "../mirror"]).ok();
    served.ask("GET", "/index/odd/one.jsonl", &[], &[]).is(404);
    assert!(!sandbox.path("mirror/packs/odd").exists());
}

#[test]
fn what_would_be_changed_can_be_asked_first() {
    let sandbox = world();
    let before = tree(&sandbox.path("hub"));
    for (arguments, said) in [
        (&["yank", "aws/lib#1.0.0", "--reason", "bad"][..], "would yank aws/lib 1.0.0"),
        (&["yank", "aws/lib#1.0.0", "--undo"], "not yanked, nothing to do"),
        (&["tag", "aws/lib#1.1.0", "beta"], "would tag aws/lib 1.1.0"),
        (&["tag", "aws/lib#1.0.0", "first"], "nothing to do"),
        (&["tag", "aws/lib#1.0.0", "first", "--undo"], "would untag aws/lib 1.0.0"),
    ] {
        sandbox.mu(&[arguments, &["--dry-run"]].concat()).ok().says(&[said]);
    }
    sandbox.mu(&["yank", "aws/lib#9.0.0", "--dry-run"]).fails().says(&["has no aws/lib 9.0.0"]);
    sandbox
        .mu(&["tag", "aws/lib#1.0.0", "latest", "--dry-run"])
        .fails()
        .says(&["the word is reserved"]);
    assert_eq!(tree(&sandbox.path("hub")), before);
    let answer = sandbox.mu(&["yank", "aws/lib#1.0.0", "--dry-run", "--json"]).ok().json();
    assert_eq!((&answer["changed"], &answer["dryRun"]), (&json!(true), &json!(true)));
    copied(&sandbox, &["aws/lib"]);
    sandbox.mu(&["tag", "aws/lib#1.1.0", "beta"]).ok();
    let mirror = tree(&sandbox.path("mirror"));
    let run = sandbox.mu(&["mirror", "aws/lib", "--to", "../mirror", "--dry-run"]);
    run.ok().says(&["~ aws/lib 1.1.0 (tags)", "0 versions would be copied"]);
    assert_eq!(tree(&sandbox.path("mirror")), mirror);
}

#[test]
fn a_checkout_works_behind_an_air_gap() {
    let mut sandbox = Sandbox::with_dependencies(&["aws/app", "private.example/kit/tool#^1"]);
    sandbox.offer("aws/app 1.0.0: aws/lib#^1\n aws/lib 1.0.0:");
    let other = Hub::new(&sandbox.path("other"));
    other.publish(&Package::new("kit/tool", "1.0.0").file("tool.txt", "one"));
    sandbox.write(".mu/workspace.yaml", "registries:\n  private.example/: ../other\n");
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let packs = tree(&sandbox.path("work/.mu/packs"));
    // The checkout does not need what was published later.
    sandbox.offer("aws/app 1.1.0:\n aws/lib 1.1.0:");
    Hub::new(&sandbox.path("mirror"));
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).ok();
    for prefix in ["hub.mu.com/", "private.example/"] {
        let add = format!("mu registry add {prefix} ../mirror");
        assert!(run.stderr.contains(&format!("next: `{add}`")), "{}", run.shown());
        let words: Vec<&str> = add.split(' ').skip(1).collect();
        sandbox.mu(&words).ok();
    }
    // Another machine that has only the checkout and the mirror.
    for gone in ["hub", "other", "cache", "work/.mu/packs", "home/.mu"] {
        fs::remove_dir_all(sandbox.path(gone)).expect("is ours");
    }
    let cache = sandbox.path("fresh").display().to_string();
    sandbox.set("MU_CACHE_DIR", &cache);
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    let installed = tree(&sandbox.path("work/.mu/packs"));
    assert_eq!(installed.keys().collect::<Vec<_>>(), packs.keys().collect::<Vec<_>>());
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn repositories_and_charts_are_packed_for_behind_an_air_gap() {
    let mut origin = Origin::new("group/infra.git");
    // The tag takes precedence, and a branch has no version.
    origin.commit(&[("Mu.yaml", "name: infra\nversion: 0.9.0\n"), ("run.sh", "one")]);
    origin.git(&["tag", "v1.0.0"]);
    origin.add("group/plain.git");
    origin.commit(&[("main.tf", "one"), ("link", "-> main.tf")]);
    let server = HttpServer::start(origin.root());
    let url = |name: &str| format!("git+{}group/{name}", server.root());
    let mut sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    charts.add(&Chart::new("web", "0.3.0").lines("appVersion: \"1.10\"\n"));
    let chart = format!("helm+http://{}/stable/web#^0.3", nginx.host());
    sandbox.asks_for(&[&url("infra.git#^1"), &url("plain.git#main"), &chart]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let packs = tree(&sandbox.path("work/.mu/packs"));
    // Another checkout that follows the branch has its next commit.
    origin.commit(&[("main.tf", "two")]);
    Hub::new(&sandbox.path("mirror"));
    sandbox.mu(&["mirror", &url("plain.git#main"), "--to", "../mirror"]).ok();
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).ok();
    run.says(&["+ group/infra 1.0.0", "+ group/plain 0.0.0-git-", "+ stable/web 0.3.0"]);
    let again = sandbox.mu(&["mirror", "--lock", "--to", "../mirror", "--json"]).ok().json();
    assert_eq!((&again["copied"], &again["present"]), (&json!([]), &json!(3)));
    sandbox.mu(&["hub", "check", "../mirror"]).ok();
    // The server gets what Git and the chart repository say.
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let token = sandbox.mu(&["hub", "token", "add", "../srv", "m", "--namespace", "*"]).ok();
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.set_token(&served.address.to_string(), token.stdout.trim());
    let run = sandbox.mu(&["mirror", "--lock", "--to", &served.url()]).ok();
    run.says(&["+ group/infra 1.0.0", "+ group/plain 0.0.0-git-", "+ stable/web 0.3.0"]);
    let again = sandbox.mu(&["mirror", "--lock", "--to", &served.url(), "--json"]).ok().json();
    assert_eq!((&again["copied"], &again["present"]), (&json!([]), &json!(3)));
    sandbox.mu(&["hub", "check", "../srv"]).ok();
    let next = run_of_next(&sandbox);
    assert_eq!(next.len(), 2, "{next:?}");
    drop((server, nginx, origin));
    for line in next {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        sandbox.mu(&words).ok();
    }
    for gone in ["www", "cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(gone)).expect("is ours");
    }
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    assert_eq!(tree(&sandbox.path("work/.mu/packs")), packs);
    sandbox.mu(&["verify"]).ok();
    // Without the lock, packages with a version are found by it too.
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    let again: Vec<String> = sandbox.locked();
    assert!(again.iter().any(|one| one.ends_with("group/infra 1.0.0")), "{again:?}");
    assert!(again.iter().any(|one| one.contains("group/plain 0.0.0-git-")), "{again:?}");
}

#[test]
fn folders_beside_a_package_in_its_repository_are_copied_with_it() {
    let origin = Origin::new("acme/infra.git");
    origin.commit(&[
        ("vpc/Mu.yaml", "name: acme/vpc\nversion: 1.0.0\ndependencies: [../subnet, ./rules]\n"),
        ("vpc/rules/Mu.yaml", "name: acme/rules\n"),
        ("subnet/Mu.yaml", "name: acme/subnet\nversion: 0.3.0\n"),
        ("subnet/main.tf", "one"),
    ]);
    origin.git(&["tag", "vpc/v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let url = format!("git+{}acme/infra.git/vpc#^1", server.root());
    let mut sandbox = Sandbox::new();
    sandbox.asks_for(&[&url]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let packs = tree(&sandbox.path("work/.mu/packs"));
    Hub::new(&sandbox.path("mirror"));
    let run = sandbox.mu(&["mirror", &url, "--no-deps", "--to", "../mirror"]).fails();
    run.says(&["it depends on `../subnet`", "copy it without `--no-deps`"]);
    // Into a folder, and to a server, whose hub is the same afterwards.
    sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).ok().says(&[
        "+ acme/infra/subnet 0.3.0-git-",
        "+ acme/infra/vpc 1.0.0",
        "+ acme/infra/vpc/rules 0.0.0-git-",
    ]);
    sandbox.mu(&["hub", "check", "../mirror"]).ok();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let token = sandbox.mu(&["hub", "token", "add", "../srv", "m", "--namespace", "*"]).ok();
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.set_token(&served.address.to_string(), token.stdout.trim());
    sandbox.mu(&["mirror", "--lock", "--to", &served.url()]).ok();
    sandbox.mu(&["hub", "check", "../srv"]).ok();
    let next = run_of_next(&sandbox);
    drop((server, origin));
    for line in next {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        sandbox.mu(&words).ok();
    }
    for gone in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(gone)).expect("is ours");
    }
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    assert_eq!(tree(&sandbox.path("work/.mu/packs")), packs);
    // Without a lock, only what the mirror says counts.
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert_eq!(tree(&sandbox.path("work/.mu/packs")), packs);
    let line = |hub: &str| {
        let path = Hub::new(&sandbox.path(hub)).index("acme/infra/vpc");
        let mut line = json_of(fs::read_to_string(path).expect("is there").trim_end());
        // Only a server knows who has published it.
        for key in ["published", "publishedBy"] {
            line.as_object_mut().expect("is a map").remove(key);
        }
        line
    };
    assert_eq!(line("srv"), line("mirror"));
}

/// The commands that lead to the mirror, as `mu mirror` prints them.
fn run_of_next(sandbox: &Sandbox) -> Vec<String> {
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).ok();
    let next = run.stderr.lines().filter_map(|line| line.strip_prefix("next: `"));
    next.map(|line| line.trim_end_matches('`').to_owned()).collect()
}

#[test]
fn what_is_locked_is_copied_into_another_namespace() {
    let sandbox = world();
    sandbox.asks_for(&["aws/app", "other/tool"]);
    sandbox.mu(&["get"]).ok();
    let expected = ["internal/app 1.1.0", "internal/lib 1.1.0", "internal/tool 1.0.0"];
    assert_eq!(copied(&sandbox, &["--lock", "--as", "internal"]), expected);
    sandbox.mu(&["hub", "check", "../mirror"]).ok();
    // The copies depend on each other.
    sandbox.write(".mu/workspace.yaml", "registries: {copies.example/: ../mirror}\n");
    sandbox.asks_for(&["copies.example/internal/app"]);
    sandbox.mu(&["get"]).ok();
    let locked = ["copies.example/internal/app 1.1.0", "copies.example/internal/lib 1.1.0"];
    assert_eq!(sandbox.locked(), locked);
    // No registry of the settings leads to them by their old names.
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror", "--as", "again"]).ok();
    assert!(!run.stderr.contains("mu registry add"), "{}", run.stderr);
}

#[test]
fn a_commit_stays_the_locked_one_behind_a_mirror() {
    for what in ["commit", "main", "^1"] {
        let origin = Origin::new("group/infra.git");
        origin.commit(&[("Mu.yaml", "name: infra\nversion: 1.0.0\n"), ("main.tf", "one")]);
        origin.git(&["tag", "v1.0.0"]);
        origin.commit(&[("main.tf", "two")]);
        let server = HttpServer::start(origin.root());
        let commit = origin.git(&["rev-parse", "HEAD"]);
        let spec = if what == "commit" { commit.trim() } else { what };
        let sandbox = Sandbox::new();
        sandbox.asks_for(&[&format!("git+{}group/infra.git#{spec}", server.root())]);
        sandbox.mu(&["get"]).ok();
        let lock = sandbox.read("Mu.lock");
        assert!(lock.contains("  commit: "), "{lock}");
        Hub::new(&sandbox.path("mirror"));
        for line in run_of_next(&sandbox) {
            let words: Vec<&str> = line.split(' ').skip(1).collect();
            sandbox.mu(&words).ok();
        }
        drop((server, origin));
        // What the mirror has is the same content, so nothing moves, and the commit stays known.
        sandbox.mu(&["update"]).ok().says(&["up to date (1 package)"]);
        assert_eq!(sandbox.read("Mu.lock"), lock, "{what}");
        // Also without the lock, the commit is found: the mirror says what its copies were made from.
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
        sandbox.mu(&["get"]).ok();
        let digest =
            |lock: &str| lock.lines().find(|line| line.contains("digest: ")).map(str::to_owned);
        assert_eq!(digest(&sandbox.read("Mu.lock")), digest(&lock), "{what}");
    }
}

#[test]
fn no_registry_is_advised_for_what_is_reached_on_this_machine() {
    let origin = Origin::new("lib.git");
    origin.commit(&[("Mu.yaml", "name: lib\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let lib = format!("git+file://{}#^1.0", origin.folder().display());
    let sandbox = Sandbox::with_dependencies(&[&lib, "aws/ec2#^1.0"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).ok();
    let next = run.shown().lines().filter(|line| line.starts_with("next: "));
    assert_eq!(next.collect::<Vec<_>>(), ["next: `mu registry add hub.mu.com/ ../mirror`"]);
}

#[test]
fn a_base_of_which_not_all_was_copied_stays_where_it_is() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("www/charts");
    fs::create_dir_all(&folder).expect("can be made");
    Charts::new(&folder).add(&Chart::new("web", "1.0.0"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let url = nginx.url("charts");
    sandbox.asks_for(&[&format!("helm+{url}/web#^1"), &format!("{url}/web-1.0.0.tgz")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    // A mirror that is not whole is no success, also for a script.
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).fails();
    let run = run.says(&["/` stays where it is: `", "web-1.0.0.tgz` was not copied"]);
    let run = run.says(&["1 version copied", "error: 1 package not copied, as said above"]);
    run.does_not_say(&["mu registry add"]);
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror", "--json"]).fails();
    let error: Value = serde_json::from_str(&run.stderr).expect("is JSON");
    assert_eq!(error["error"]["code"], "conflict");
    assert_eq!(error["error"]["details"]["present"], 1);
    assert_eq!(error["error"]["details"]["elsewhere"].as_array().map(Vec::len), Some(1));
    sandbox.mu(&["mirror", "--lock", "--to", "../mirror", "--dry-run"]).fails();
}
