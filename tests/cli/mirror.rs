//! `mu mirror`: a copy of packages that works without the original.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Hub, Package, Sandbox, Served};

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
    // Again costs nothing, and what is new comes along.
    assert!(copied(&sandbox, &["aws/app"]).is_empty());
    sandbox.publish(&[Package::new("aws/lib", "1.2.0")]);
    assert_eq!(copied(&sandbox, &["aws/app"]), ["aws/lib 1.2.0"]);
    let mirror = Hub::new(&sandbox.path("mirror"));
    let line = fs::read_to_string(mirror.index("aws/app")).expect("was copied");
    assert!(line.contains("\"x-more\":\"kept\""), "{line}");
    // On another machine, with the original gone.
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
    // Also of a version that nobody would choose now.
    sandbox.mu(&["yank", "aws/lib#1.0.0", "--reason", "bad"]).ok();
    sandbox.mu(&["tag", "aws/lib#1.1.0", "first"]).ok();
    let run = sandbox.mu(&["mirror", "aws/lib", "--to", "../mirror"]).ok();
    insta::assert_snapshot!(run.shown(), @r"
    $ mu mirror aws/lib --to ../mirror
    ~ aws/lib 1.0.0 (yanked, tags)
    ~ aws/lib 1.1.0 (tags)
    0 versions copied to ../mirror, 1 already there
    [exit 0]
    ");
    let [old, new] = &lines()[..] else { panic!("{:?}", lines()) };
    assert_eq!((&old["yanked"], &old["tags"]), (&json!("bad"), &Value::Null));
    assert_eq!(new["tags"], json!(["first"]));
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
