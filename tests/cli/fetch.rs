//! `mu fetch`, which fills the store and installs nothing, and `--store-readonly`, which uses a store that cannot be written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::json;

use crate::support::{Package, Sandbox};

/// A workspace with a lock, whose packs and cache are gone.
fn locked() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(
        "Mu.yaml",
        "name: acme/web\nversion: 0.1.0\ndependencies: [aws/app]\ndevDependencies: [aws/test]\n",
    );
    sandbox.offer(
        "aws/app 1.0.0: aws/lib
         aws/lib 1.0.0:
         aws/test 1.0.0:",
    );
    sandbox.mu(&["get"]).ok();
    fresh(&sandbox);
    sandbox
}

/// Removes what was installed and fetched.
fn fresh(sandbox: &Sandbox) {
    for folder in ["work/.mu/packs", "cache"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("was there");
    }
}

/// Every file and folder below `folder`, and when it was changed.
fn times(folder: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let changed = |entry: walkdir::Result<walkdir::DirEntry>| {
        let entry = entry.expect("can be read");
        let time = entry.metadata().expect("can be read").modified();
        (entry.path().to_owned(), time.expect("has a time"))
    };
    walkdir::WalkDir::new(folder).into_iter().map(changed).collect()
}

#[test]
fn the_lock_alone_fills_the_store() {
    let sandbox = locked();
    let manifest = sandbox.read("Mu.yaml");
    let lock = sandbox.read("Mu.lock");
    fs::remove_file(sandbox.path("work/Mu.yaml")).expect("was there");
    let answer = sandbox.mu(&["fetch", "--json"]).ok().json();
    assert_eq!(answer["fetched"], 3);
    assert_eq!(answer["reused"], 0);
    assert_eq!(answer["leftOut"], json!([]));
    assert_eq!(answer["store"], "[DIR]/cache/store");
    assert!(!sandbox.has("work/.mu/packs"), "nothing is installed");
    sandbox.mu(&["fetch"]).ok().says(&["fetched 0 packages, 3 were already on this machine"]);
    assert_eq!(sandbox.read("Mu.lock"), lock);

    // What was fetched is enough.
    fs::remove_dir_all(sandbox.path("hub")).expect("was there");
    sandbox.write("Mu.yaml", &manifest);
    sandbox.mu(&["fetch", "--offline", "--locked"]).ok();
    sandbox
        .mu(&["get", "--offline", "--locked"])
        .ok()
        .says(&["installed 3 packages (0 downloaded"]);
}

#[test]
fn what_cannot_be_fetched_is_said() {
    let sandbox = locked();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 0.1.0\ndependencies: ['aws/app#^2']\n");
    let run = sandbox.mu(&["fetch", "--locked", "--json"]);
    run.fails_with("lock-outdated");
    let hub = sandbox.path("hub").display().to_string();
    sandbox.hub_is_at("https://hub.invalid/");
    let run = sandbox.mu(&["fetch", "--offline"]).fails();
    run.says(&["was not requested: mu is offline"]);
    assert!(!sandbox.has("cache/store/trees"));
    sandbox.hub_is_at(&format!("file://{hub}/"));
    sandbox.mu(&["fetch"]).ok();
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    sandbox.mu(&["fetch"]).fails().says(&["there is no Mu.lock in `[DIR]/work` to fetch from"]);
}

#[test]
fn what_is_for_development_or_elsewhere_is_left_out() {
    let sandbox = locked();
    let run = sandbox.mu(&["fetch", "--no-dev"]).ok();
    run.says(&["fetched 2 packages, 0 were already on this machine; aws/test 1.0.0 was left out"]);
    sandbox.place("shared", &Package::new("acme/shared", "1.0.0"));
    sandbox.trusts_folder("shared");
    sandbox.asks_for(&["aws/app", "../shared"]);
    sandbox.mu(&["get"]).ok();
    fresh(&sandbox);
    fs::rename(sandbox.path("shared"), sandbox.path("away")).expect("was there");
    let left_out = sandbox.mu(&["fetch", "--json"]).ok().json()["leftOut"].clone();
    assert_eq!(left_out.as_array().map(Vec::len), Some(1), "{left_out}");
    fs::rename(sandbox.path("away"), sandbox.path("shared")).expect("was there");
    // What is in a folder was not downloaded.
    sandbox.mu(&["fetch"]).ok().says(&["fetched 0 packages, 3 were already on this machine\n"]);
}

#[test]
fn a_store_that_cannot_be_written_is_enough() {
    let mut sandbox = locked();
    sandbox.place("shared", &Package::new("acme/shared", "1.0.0"));
    sandbox.trusts_folder("shared");
    sandbox.asks_for(&["aws/app", "../shared"]);
    sandbox.mu(&["get"]).ok();
    fresh(&sandbox);
    let run = sandbox.mu(&["get", "--locked", "--store-readonly"]).fails();
    run.says(&[
        "the store in `[DIR]/cache/store` cannot be written (--store-readonly), and lacks:",
        "\n  aws/app 1.0.0\n  aws/lib 1.0.0\n",
        "hint: run `mu fetch` with the same Mu.lock where the store can be written",
    ]);
    assert!(!sandbox.has("cache/store"));

    sandbox.mu(&["fetch"]).ok();
    fs::remove_dir_all(sandbox.path("hub")).expect("was there");
    let store = sandbox.path("cache/store");
    let before = times(&store);
    sandbox.set("MU_STORE_READONLY", "1");
    for link in ["copy", "symlink", "auto"] {
        sandbox.write(".mu/workspace.yaml", &format!("link: {link}\n"));
        sandbox.mu(&["get", "--locked", "--offline"]).ok();
        sandbox.mu(&["verify"]).ok().says(&["3 packs verified"]);
    }
    sandbox.mu(&["verify", "--store"]).ok().says(&["3 trees verified"]);
    let refused = sandbox.mu(&["cache", "prune"]);
    assert_eq!(refused.status, 2);
    refused.says(&["forbids removing from the store"]);
    assert_eq!(times(&store), before, "the store was changed");

    // A folder whose content is not in the store cannot be added.
    sandbox.place("shared", &Package::new("acme/shared", "1.0.0").file("new.txt", "new\n"));
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["does not have it, and --store-readonly forbids adding it"]);
    assert_eq!(times(&store), before, "the store was changed");
}

#[test]
fn a_cache_inside_the_workspace_is_not_a_part_of_it() {
    let mut sandbox = Sandbox::with_dependencies(&["a/one#^1"]);
    sandbox.publish(&[Package::new("a/one", "1.0.0")]);
    sandbox.set("MU_CACHE_DIR", &sandbox.path("work/cache").display().to_string());
    sandbox.mu(&["fetch"]).fails();
    sandbox.mu(&["get"]).ok().does_not_say(&["warning"]);
    assert!(sandbox.has("work/cache/store"));
    let run = sandbox.mu(&["get", "--locked", "--offline"]).ok();
    run.says(&["up to date (1 package)"]).does_not_say(&["warning"]);
    assert_eq!(
        sandbox.mu(&["list", "--workspace", "--json"]).ok().json()["packages"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    sandbox.mu(&["version", "1.0.0"]).ok();
    sandbox.mu(&["pack", "--list"]).ok().says(&["Mu.yaml"]).does_not_say(&["cache/"]);
}

#[test]
fn a_file_in_the_place_of_the_cache_or_of_the_home_is_told() {
    let mut sandbox = Sandbox::with_dependencies(&["aws/vpc"]);
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0")]);
    sandbox.write("../file", "");
    let file = sandbox.path("file");
    sandbox.set("MU_CACHE_DIR", &file.join("cache").display().to_string());
    let told = "`[DIR]/file` is a file, not a folder: ";
    sandbox.mu(&["get"]).fails().says(&[&format!("{told}MU_CACHE_DIR names another folder")]);
    for place in ["/proc/mu/cache", "/dev/null/cache"] {
        sandbox.set("MU_CACHE_DIR", place);
        sandbox.mu(&["get"]).fails().says(&["MU_CACHE_DIR names another folder for the cache"]);
    }
    sandbox.set("MU_CACHE_DIR", "/proc/mu");
    sandbox.mu(&["get"]).fails().says(&["nothing can be made there: MU_CACHE_DIR names another"]);
    // Only a shell knows it, and files of CI are read by none.
    sandbox.set("MU_CACHE_DIR", "~/cache");
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["MU_CACHE_DIR is `~/cache`, but `~` is the home folder in a shell only: write `"]);
    assert!(!sandbox.has("work/~"), "a folder of that name was made");
    sandbox.set("MU_CACHE_DIR", &sandbox.path("cache").display().to_string());
    // What is no text would count as not set, and the usual folders would be used.
    for name in ["MU_CACHE_DIR", "MU_HOME", "MUROOT", "MU_TOKEN_HUB_MU_COM"] {
        let line = format!("{name}=$(printf '/tmp/\\377') mu get");
        sandbox.shell("bash", &line).fails().says(&[&format!("{name} is not UTF-8")]);
    }
    sandbox.set("MU_HOME", &file.join("mu").display().to_string());
    let global = sandbox.mu(&["get", "--global", "aws/vpc"]).fails();
    global.says(&[&format!("{told}MU_HOME names another folder")]);
}
