//! `Mu.lock`: its content, the same bytes everywhere, merges, and future formats.

use std::fs;
use std::process::Command;

use crate::support::{Package, Sandbox, git};

fn sandbox(dependencies: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(dependencies);
    sandbox.publish(&[
        Package::new("a/one", "1.0.0").needs("m/two#^1.0"),
        Package::new("m/two", "1.2.0"),
        Package::new("z/three", "1.0.0"),
        Package::new("c/four", "1.0.0"),
        Package::new("s/five", "1.0.0"),
    ]);
    sandbox
}

#[test]
fn a_lock_says_what_where_and_why() {
    let mut sandbox = sandbox(&["a/one#^1"]);
    sandbox.mu(&["get", "z/three#1.x"]).ok();
    let lock = sandbox.read("Mu.lock");
    let root = sandbox.root().display().to_string();
    sandbox.replace("unused", "");
    let text = lock.replace(&root, "[DIR]");
    let hidden: Vec<String> = text
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((key @ ("  digest" | "  archive"), value)) => {
                format!("{key}: {}:…", value.split(':').next().unwrap_or_default())
            }
            _ => line.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(hidden.join("\n"), @r#"
    # Written by mu; do not edit. It holds the version, source and content of every package that this
    # workspace uses, so that `mu get` gives everyone the same. Commit it.
    version: 1
    resolution: highest
    packages:
    - id: hub.mu.com/a/one
      version: 1.0.0
      source: hub+file://[DIR]/hub/
      digest: h1:…
      archive: sha256:…
      requested: ["^1 by acme/web"]
      dependencies: [hub.mu.com/m/two]
    - id: hub.mu.com/m/two
      version: 1.2.0
      source: hub+file://[DIR]/hub/
      digest: h1:…
      archive: sha256:…
      requested: ["^1.0 by hub.mu.com/a/one"]
    - id: hub.mu.com/z/three
      version: 1.0.0
      source: hub+file://[DIR]/hub/
      digest: h1:…
      archive: sha256:…
      requested: ["1.x by mu get"]
    extra: [z/three#1.x]
    "#);
}

#[test]
fn the_same_selection_has_the_same_bytes() {
    let mut sandbox = sandbox(&["z/three", "a/one#^1", "s/five"]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    // Another folder, another order, another cache.
    fs::create_dir_all(sandbox.path("other/.mu")).expect("can be made");
    let text = "name: acme/web\ndependencies: [s/five, \"a/one#^1\", z/three]\n";
    fs::write(sandbox.path("other/Mu.yaml"), text).expect("can be written");
    let cache = sandbox.path("cache-of-another").display().to_string();
    sandbox.set("MU_CACHE_DIR", &cache);
    sandbox.mu_in("other", &["get"]).ok();
    let other = fs::read_to_string(sandbox.path("other/Mu.lock")).expect("was written");
    assert_eq!(other, lock);
    // Written again, it does not change either; and a lock that fits is not written at all.
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    let written = fs::metadata(sandbox.path("work/Mu.lock")).expect("is there").modified();
    sandbox.mu(&["get"]).ok();
    let again = fs::metadata(sandbox.path("work/Mu.lock")).expect("is there").modified();
    assert_eq!(again.expect("is known"), written.expect("is known"));
}

#[test]
fn a_lock_changes_as_little_as_possible() {
    let sandbox = sandbox(&["a/one#^1"]);
    sandbox.mu(&["get"]).ok();
    let before = sandbox.read("Mu.lock");
    sandbox.hub().release("m/two", "1.3.0");
    sandbox.mu(&["add", "z/three#1.0.0"]).ok();
    let after = sandbox.read("Mu.lock");
    assert!(after.starts_with(&before), "what was locked stays:\n{after}");
    sandbox.mu(&["remove", "z/three"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), before);
}

#[test]
fn branches_merge_line_by_line() {
    let sandbox = sandbox(&["a/one", "m/two", "z/three"]);
    let folder = sandbox.path("work");
    let lock_with = |more: &[&str]| {
        let mut all = vec!["a/one", "m/two", "z/three"];
        all.extend(more);
        sandbox.asks_for(&all);
        sandbox.mu(&["get"]).ok();
        sandbox.read("Mu.lock")
    };
    let ours = lock_with(&["c/four"]);
    let theirs = lock_with(&["s/five"]);
    let base = lock_with(&[]);
    for (name, text) in [("ours", &ours), ("theirs", &theirs), ("base", &base)] {
        fs::write(folder.join(name), text).expect("is ours");
    }
    let merged = git::git(&folder, &["merge-file", "--stdout", "ours", "base", "theirs"]);
    assert_eq!(format!("{merged}\n").replace("\n\n", "\n"), lock_with(&["c/four", "s/five"]));
}

#[test]
fn a_lock_of_the_future_is_refused() {
    let sandbox = sandbox(&["a/one"]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock").replace("version: 1\n", "version: 2\n");
    sandbox.write("Mu.lock", &lock);
    for arguments in [&["get"][..], &["list"], &["update"], &["get", "--frozen"], &["status"]] {
        let run = sandbox.mu(arguments).fails();
        run.says(&["Mu.lock", "format 2", "hint"]);
        assert_eq!(sandbox.read("Mu.lock"), lock, "it is not touched");
    }
    let error = sandbox.mu(&["get", "--json"]).fails_with("workspace");
    assert!(error["help"].as_str().expect("is text").contains("lock format 2"), "{error}");
}

#[test]
fn a_broken_lock_is_pointed_at() {
    let sandbox = sandbox(&["a/one"]);
    sandbox.write("Mu.lock", "version: 1\npackages:\n- id: [\n");
    sandbox.mu(&["get"]).fails().says(&["Mu.lock:"]);
}

#[test]
fn a_conflict_that_a_merge_left_is_told_with_what_to_do() {
    let sandbox = sandbox(&["a/one"]);
    sandbox.mu(&["get"]).ok();
    let base = sandbox.read("Mu.lock");
    sandbox.mu(&["get", "c/four"]).ok();
    let ours = sandbox.read("Mu.lock");
    sandbox.write("Mu.lock", &base);
    sandbox.asks_for(&["a/one", "z/three"]);
    sandbox.mu(&["get", "s/five"]).ok();
    let theirs = sandbox.read("Mu.lock");
    let folder = sandbox.path("sides");
    fs::create_dir(&folder).expect("is new");
    for (name, text) in [("ours", &ours), ("theirs", &theirs), ("base", &base)] {
        fs::write(folder.join(name), text).expect("is ours");
    }
    let merge = Command::new("git")
        .args(["merge-file", "--stdout", "ours", "base", "theirs"])
        .current_dir(&folder)
        .output()
        .expect("git runs");
    let merged = String::from_utf8(merge.stdout).expect("is text");
    sandbox.write("Mu.lock", &merged);
    let line = merged.lines().position(|line| line == "<<<<<<< ours").expect("is there") + 1;
    let place = format!("Mu.lock:{line}:1");
    // Who only reads, and who wants the lock as it is, learns what mends it.
    for arguments in [&["list"][..], &["get", "--locked"], &["get", "--frozen"]] {
        let run = sandbox.mu(arguments).fails();
        run.says(&["unresolved merge conflict", &place, "to here", "run `mu get`"]);
        assert_eq!(sandbox.read("Mu.lock"), merged, "it is not touched");
    }
    let error = sandbox.mu(&["list", "--json"]).fails_with("workspace");
    assert_eq!(error["details"]["line"], line, "{error}");
    // One command puts it together.
    let run = sandbox.mu(&["get"]).ok();
    run.says(&["Mu.lock was in a merge conflict: its entries are those of both sides"]);
    let whole = sandbox.read("Mu.lock");
    assert!(!whole.contains("<<<<<<<"), "{whole}");
    let locked = sandbox.locked();
    for package in ["a/one", "c/four", "s/five", "z/three"] {
        assert!(locked.contains(&format!("hub.mu.com/{package} 1.0.0")), "{locked:?}");
    }
    sandbox.mu(&["get", "--locked"]).ok().does_not_say(&["merge"]);
    // So does each other command that writes it.
    sandbox.write("Mu.lock", &merged);
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), whole);
    // Either side works: what the manifests need is added.
    for side in [&ours, &theirs] {
        sandbox.write("Mu.lock", side);
        sandbox.mu(&["get"]).ok();
        let locked = sandbox.locked();
        assert!(locked.contains(&"hub.mu.com/z/three 1.0.0".to_owned()), "{locked:?}");
    }
    // Half a conflict is damage.
    let half = merged.replace(">>>>>>> theirs\n", "");
    sandbox.write("Mu.lock", &half);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["unresolved merge conflict", "git checkout --ours Mu.lock", "run `mu get`"]);
    assert_eq!(sandbox.read("Mu.lock"), half, "it is not touched");
    sandbox.write("Mu.yaml", "name: acme/web\n<<<<<<< ours\nversion: 1.0.0\n=======\n>>>>>>> x\n");
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["unresolved merge conflict", "Mu.yaml:2:1", "keep the right lines"]);
}

#[test]
fn of_two_versions_in_a_merge_the_higher_stays_that_the_manifests_accept() {
    let sandbox = sandbox(&["a/one#^1"]);
    let newer = |version: &str| sandbox.publish(&[Package::new("c/four", version)]);
    let entries = |version: &str| {
        newer(version);
        sandbox.mu(&["get", &format!("c/four#{version}")]).ok();
        sandbox.read("Mu.lock")
    };
    let (older, newer_lock) = (entries("1.1.0"), entries("1.2.0"));
    newer("1.3.0");
    let line = |lock: &str| {
        let start = lock.find("- id: hub.mu.com/c/four").expect("is there");
        let end = lock[start + 1..].find("\n- id").expect("another follows") + start + 2;
        (start, lock[start..end].to_owned())
    };
    let (start, ours) = line(&older);
    let (_, theirs) = line(&newer_lock);
    let both = format!("<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> other\n");
    let head = older[..start].to_owned() + &both + &older[start + ours.len()..];
    let extra = head.find("extra:").expect("is there");
    let merged = head[..extra].to_owned() + "extra: [c/four#^1]\n";
    // Git merges line by line: what two people have added in different places is no conflict for it.
    let is_mark =
        |line: &&str| line.contains("<<<<") || line.contains("====") || line.contains(">>>>");
    let unmarked: String = merged.split_inclusive('\n').filter(|line| !is_mark(line)).collect();
    for (wanted, expected) in [(None, "1.2.0"), (Some("c/four#~1.1"), "1.1.0")] {
        sandbox.asks_for(&["a/one#^1"].into_iter().chain(wanted).collect::<Vec<_>>());
        for lock in [&merged, &unmarked] {
            sandbox.write("Mu.lock", lock);
            sandbox.mu(&["get", "--locked"]).fails().says(&["run `mu get`"]);
            let run = sandbox.mu(&["get"]).ok();
            run.says(&[&format!("of two versions the higher that fits: c/four {expected}")]);
            let locked = sandbox.locked();
            assert!(locked.contains(&format!("hub.mu.com/c/four {expected}")), "{locked:?}");
            sandbox.mu(&["get", "--locked"]).ok().does_not_say(&["merge"]);
        }
    }
}

#[test]
fn one_lock_covers_every_package_of_the_workspace() {
    let sandbox = sandbox(&["a/one"]);
    sandbox.place("work/api", &Package::new("acme/api", "1.0.0").needs("z/three"));
    sandbox.mu_in("work/api", &["get"]).ok();
    assert!(!sandbox.has("work/api/Mu.lock") && !sandbox.has("work/api/.mu"));
    assert_eq!(
        sandbox.locked(),
        ["hub.mu.com/a/one 1.0.0", "hub.mu.com/m/two 1.2.0", "hub.mu.com/z/three 1.0.0"]
    );
}

#[test]
fn a_package_that_is_called_as_the_settings_are_asks_for_itself() {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: overrides\nversion: 0.1.0\ndependencies: [c/four#^1]\n");
    sandbox.publish(&[Package::new("c/four", "1.0.0"), Package::new("s/five", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains("requested: [\"^1 by hub.mu.com/overrides\"]"), "{lock}");
    sandbox.mu(&["why", "c/four"]).ok().says(&["^1 by hub.mu.com/overrides", "overrides → c/four"]);
    sandbox.mu(&["tree"]).ok().says(&["overrides", "c/four 1.0.0"]);
    // Locked versions stay although something else is required.
    sandbox.publish(&[Package::new("c/four", "1.1.0")]);
    sandbox.mu(&["add", "s/five"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/c/four 1.0.0", "hub.mu.com/s/five 1.0.0"]);
    sandbox.mu(&["status", "--json"]).ok();
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.write(".mu/workspace.yaml", "overrides: {hub.mu.com/c/four: c/four#1.1.0}\n");
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let both = "requested: [\"^1 by hub.mu.com/overrides\", \"c/four#1.1.0 by overrides\"]";
    assert!(lock.contains(both), "{lock}");
}

#[test]
fn where_nothing_is_required_there_is_no_lock_and_none_is_missed() {
    for resolution in ["highest", "minimal"] {
        let sandbox = sandbox(&[]);
        sandbox.write(".mu/workspace.yaml", &format!("resolution: {resolution}\n"));
        for arguments in [&["get"][..], &["get", "--locked"]] {
            sandbox.mu(arguments).ok();
            assert!(!sandbox.has("work/Mu.lock"));
        }
    }
}
