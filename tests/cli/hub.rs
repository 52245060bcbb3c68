//! A hub of 60 packages on nginx: which requests are sent when, and what works after it has stopped.

use std::fs;

use serde_json::json;

use crate::support::{Hub, Nginx, Package, Sandbox};

/// Ten chains of six packages each; the workspace requires the first of each chain.
fn sixty(sandbox: &Sandbox) -> Hub {
    let hub = sandbox.hub();
    let name = |chain: usize, link: usize| format!("acme/c{chain}-{link}");
    for chain in 0..10 {
        for link in 0..6 {
            let mut package = Package::new(&name(chain, link), "1.0.0")
                .file("data.txt", &format!("{chain} {link}\n").repeat(50));
            if link < 5 {
                package = package.needs(&format!("{}#^1.0", name(chain, link + 1)));
            }
            hub.publish(&package);
        }
    }
    let roots: Vec<String> = (0..10).map(|chain| format!("{}#^1", name(chain, 0))).collect();
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    sandbox.asks_for(&roots);
    hub
}

struct World {
    sandbox: Sandbox,
    hub: Hub,
    nginx: Nginx,
}

fn world() -> World {
    let mut sandbox = Sandbox::new();
    let hub = sixty(&sandbox);
    let nginx = Nginx::serve(hub.folder(), "");
    let url = nginx.url("");
    sandbox.hub_is_at(&url);
    sandbox.replace(url.trim_end_matches('/'), "[HUB]");
    World { sandbox, hub, nginx }
}

/// How many requests there were for a part of the hub with an answer of this status.
fn count(log: &[String], part: &str, status: &str) -> usize {
    log.iter().filter(|line| line.contains(part) && line.ends_with(status)).count()
}

#[test]
fn each_file_is_asked_for_once_and_then_no_more() {
    let World { sandbox, hub, nginx } = world();
    let run = sandbox.mu(&["get"]).ok();
    run.says(&["installed 60 packages (60 downloaded"]);
    let cold = nginx.log();
    assert_eq!(count(&cold, "/index/", " 200"), 60);
    assert_eq!(count(&cold, "/packs/", " 200"), 60);
    assert_eq!(count(&cold, "/hub.json", " 200"), 1);
    assert_eq!(cold.len(), 121, "{cold:#?}");
    // With a lock, no request is sent, with or without the packs.
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["get"]).ok().says(&["0 downloaded, 60 from cache"]);
    assert_eq!(nginx.log().len(), cold.len());
    // Nor without a lock, as the last answers are recent. With --refresh, indexes are requested only if they have changed,
    // and no archive is.
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    sandbox.mu(&["get"]).ok();
    assert_eq!(nginx.log().len(), cold.len());
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    sandbox.mu(&["get", "--refresh"]).ok();
    let warm = nginx.log().split_off(cold.len());
    assert!(warm.len() <= 61, "{warm:#?}");
    assert_eq!(count(&warm, "/index/", " 304"), 60, "{warm:#?}");
    // One changed package costs its index and its archive.
    let before = nginx.log().len();
    hub.publish(&Package::new("acme/c3-5", "1.1.0").file("data.txt", "new"));
    let run = sandbox.mu(&["update", "--json"]).ok().json();
    let change = json!([{"id": "hub.mu.com/acme/c3-5", "from": "1.0.0", "to": "1.1.0"}]);
    assert_eq!(run["changes"], change);
    assert_eq!(run["fetched"], 1);
    let changed = nginx.log().split_off(before);
    assert_eq!(count(&changed, "/index/", " 200"), 1, "{changed:#?}");
    assert_eq!(count(&changed, "/packs/", " 200"), 1, "{changed:#?}");
    assert_eq!(count(&changed, "/index/", " 304"), 59, "{changed:#?}");
    sandbox.mu(&["verify"]).ok().says(&["60 packs verified"]);
}

#[test]
fn a_stopped_hub_is_not_missed_for_what_is_here() {
    let World { sandbox, hub, mut nginx } = world();
    sandbox.mu(&["get"]).ok();
    nginx.refuse();
    sandbox.mu(&["get"]).ok();
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["get", "--offline"]).ok();
    sandbox.mu(&["verify"]).ok();
    // Without the lock, the cached indexes are enough under --offline …
    let lock = sandbox.read("Mu.lock");
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    sandbox.mu(&["get", "--offline"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    // … and without --offline, an unreachable hub is an error that changes nothing.
    let before = sandbox.state();
    let run = sandbox.mu(&["update"]).fails();
    run.says(&["error: ", "[HUB]", "hint"]);
    let error = sandbox.mu(&["update", "--json"]).fails_with("network");
    assert!(error["message"].as_str().expect("is text").contains("[HUB]"), "{error}");
    assert!(sandbox.state() == before);
    let run = sandbox.mu(&["get", "acme/unknown", "--offline"]).fails();
    run.says(&["acme/unknown", "offline"]);
    drop(hub);
}

#[test]
fn another_machine_gets_the_same_from_the_lock_alone() {
    let World { mut sandbox, hub: _, nginx } = world();
    sandbox.mu(&["get"]).ok();
    let before = nginx.log().len();
    let cache = sandbox.path("another-cache").display().to_string();
    sandbox.set("MU_CACHE_DIR", &cache);
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["get", "--locked"]).ok().says(&["60 downloaded"]);
    // The last lines of the first run may arrive late.
    let mut asked = nginx.log().split_off(before);
    asked.sort();
    asked.dedup();
    // No index is read for locked packages.
    assert_eq!(count(&asked, "/packs/", " 200"), 60);
    assert_eq!(count(&asked, "/index/", ""), 0, "{asked:#?}");
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn the_store_is_shared_by_workspaces() {
    let World { sandbox, hub: _, nginx } = world();
    sandbox.mu(&["get"]).ok();
    fs::create_dir_all(sandbox.path("other/.mu")).expect("can be made");
    fs::copy(sandbox.path("work/Mu.yaml"), sandbox.path("other/Mu.yaml")).expect("is ours");
    let before = nginx.log().len();
    sandbox.mu_in("other", &["get"]).ok().says(&["0 downloaded, 60 from cache"]);
    assert_eq!(count(&nginx.log()[before..], "/packs/", ""), 0);
    let (one, other) = (sandbox.read("Mu.lock"), fs::read_to_string(sandbox.path("other/Mu.lock")));
    assert_eq!(one, other.expect("was written"));
}

#[test]
fn a_hub_that_is_probed_for_is_found() {
    let sandbox = Sandbox::new();
    let hub = sandbox.hub();
    hub.release("aws/ec2", "1.0.0");
    let nginx = Nginx::serve(hub.folder(), "");
    let url = nginx.url("aws/ec2");
    sandbox.mu(&["get", &url]).ok();
    let host = nginx.host().replace(':', "+");
    assert!(sandbox.has(&format!("work/.mu/packs/{host}/aws/ec2/Mu.yaml")), "{host}");
}

#[test]
fn slow_bodies_arrive_all_the_same() {
    let sandbox = Sandbox::with_dependencies(&["aws/big", "aws/big2"]);
    // Digits that do not repeat, so that they stay large when compressed.
    let text: String = (0..9_000u64).map(|n| format!("{:x}", n * n * 2_654_435_761)).collect();
    sandbox.publish(&[
        Package::new("aws/big", "1.0.0").file("data.txt", &text),
        Package::new("aws/big2", "1.0.0").file("data.txt", &text).file("more.txt", "x"),
    ]);
    let nginx = Nginx::serve(&sandbox.path("hub"), "limit_rate 30k;");
    sandbox.hub_is_at(&nginx.url(""));
    sandbox.mu(&["get"]).ok().says(&["2 downloaded"]);
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn a_hub_is_not_made_in_the_place_of_a_file() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "mine");
    let run = sandbox.mu(&["hub", "init", "notes.txt"]).fails();
    run.says(&["cannot make the folder", "notes.txt` is a file, not a folder: name another place"]);
    assert_eq!(sandbox.read("notes.txt"), "mine");
}
