//! Hubs with too many packages for a catalog: who searches them, and what says so.

use std::fs::{self, File};
use std::path::PathBuf;

use serde_json::json;

use crate::hub_page::{BROWSER, has, lacks, page, section, seen};
use crate::support::{Sandbox, Served, write};

/// A hub in `srv` that says of itself that it is too large for a catalog. What makes it say so is tested in `mu-hub`.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let lines = [
        json!({ "name": "web/proxy", "version": "1.0.0", "description": "In front of all",
            "dependencies": ["tls#^1", "log#^1"], "requires": ["net.example/v1/Server"],
            "published": "2025-02-10T12:00:00Z" }),
        json!({ "name": "web/tls", "version": "1.0.0", "movedTo": "sec/tls" }),
        json!({ "name": "tls", "version": "1.0.0" }),
        json!({ "name": "log", "version": "1.0.0", "description": "Writes down" }),
        json!({ "name": "ops/old", "version": "1.0.0", "dependencies": ["tls"] }),
        json!({ "name": "sec/tls", "version": "2.0.0", "replaces": ["web/tls"],
            "dependencies": ["hub.acme.co/log#^1"] }),
    ];
    let mut log = String::new();
    for line in &lines {
        let name = line["name"].as_str().expect("is text");
        write(&sandbox.path("srv"), &format!("index/{name}.jsonl"), format!("{line}\n"));
        log.push_str(&format!("{name}\n"));
    }
    let file = json!({
        "hub": 1, "index": "index/", "packs": "packs/", "log": "log/", "generation": 6,
        "catalog": { "generation": 6, "tooLarge": true },
    });
    write(&sandbox.path("srv"), "log/000000.txt", log);
    write(&sandbox.path("srv"), "hub.json", file.to_string());
    sandbox
}

fn served(sandbox: &Sandbox) -> Served {
    Served::start(sandbox, "../srv", &["--base", "hub.acme.co/", "--state", "../state"])
}

/// The names that a search of the server finds.
fn found(served: &Served, words: &str) -> Vec<String> {
    let answer = served.ask("GET", &format!("/api/v1/search?q={words}"), &[], &[]).is(200).json();
    let packages = answer["packages"].as_array().expect("is a list");
    assert_eq!(answer["total"], packages.len());
    packages.iter().map(|one| one["name"].as_str().expect("is text").to_owned()).collect()
}

#[test]
fn only_its_server_searches_a_large_hub_and_the_files_say_so() {
    let sandbox = sandbox();
    let place = sandbox.path("srv").display().to_string();
    sandbox.hub_is_at(&place);
    sandbox.mu(&["search", "log"]).fails().says(&[
        "cannot be searched by its files",
        "it has too many packages for a catalog, and only its server searches them",
        "search the address of its server",
    ]);
    sandbox.mu(&["hub", "tidy", "../srv"]).ok().says(&[
        "../srv is up to date",
        "too many packages for a catalog",
        "`mu hub serve`",
    ]);
    assert_eq!(sandbox.mu(&["hub", "tidy", "../srv", "--json"]).ok().json()["catalog"], false);
    assert!(!sandbox.path("srv/catalog.jsonl").exists());
    let served = served(&sandbox);
    sandbox.hub_is_at(&served.url());
    sandbox.mu(&["search", "down"]).ok().says(&["log"]);
    // Without `--state`, its file is in the cache.
    drop(served);
    let served = Served::start(&sandbox, "../srv", &[]);
    assert_eq!(found(&served, "down"), ["log"]);
    assert_eq!(fs::read_dir(sandbox.path("cache/hub-catalogs")).expect("is there").count(), 2);
}

#[test]
fn a_search_finds_what_was_published_since_and_after_a_restart() {
    let sandbox = sandbox();
    let first = served(&sandbox);
    assert_eq!(found(&first, "tls"), ["tls", "sec/tls", "web/tls"]);
    sandbox.mu(&["deprecate", "log#1.0.0", "--reason", "no more", "--to", "../srv"]).ok();
    sandbox.write("Mu.yaml", "name: acme/tls-proxy\nversion: 1.0.0\n");
    sandbox.mu(&["publish", "--to", "../srv"]).ok().does_not_say(&["hub tidy"]);
    assert_eq!(found(&first, "tls"), ["tls", "sec/tls", "web/tls", "acme/tls-proxy"]);
    let text = first.ask("GET", "/api/v1/search?q=log", &[], &[]).is(200).text();
    assert!(text.contains("no more"), "{text}");
    drop(first);
    // Only what the log names is read again.
    fs::remove_dir_all(sandbox.path("srv/index/web")).expect("is there");
    sandbox.mu(&["yank", "acme/tls-proxy#1.0.0", "--to", "../srv"]).ok();
    let second = served(&sandbox);
    assert_eq!(found(&second, "proxy").len(), 2);
    assert_eq!(found(&second, "acme"), ["acme/tls-proxy"]);
    assert!(!sandbox.path("srv/catalog.jsonl").exists());
}

/// The file of the server's own catalog.
#[cfg(unix)]
fn own_catalog(sandbox: &Sandbox) -> PathBuf {
    let entries = fs::read_dir(sandbox.path("state")).expect("was made").flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|kind| kind == "jsonl")).expect("was made")
}

#[cfg(unix)]
#[test]
fn a_catalog_that_cannot_be_read_to_its_end_is_an_error_and_is_read_again_after_that() {
    let sandbox = sandbox();
    let served = served(&sandbox);
    assert_eq!(found(&served, "tls").len(), 3);
    let path = own_catalog(&sandbox);
    let whole = fs::metadata(&path).expect("is there").len();
    let cut = |length: u64| {
        let file = File::options().write(true).open(&path).expect("is ours");
        file.set_len(length).expect("is ours");
    };
    let empty = || {
        cut(0);
        cut(whole);
    };
    let damages: [&dyn Fn(); 3] = [&|| cut(whole - 1), &|| cut(whole / 2), &empty];
    let asked = [
        ("/api/v1/search?q=tls", "accept: */*"),
        ("/search?q=tls", BROWSER),
        ("/namespaces/web", BROWSER),
        ("/packages/web/tls", BROWSER),
        ("/packages/web/tsl", BROWSER),
        ("/capabilities/net.example/v1/Server", BROWSER),
    ];
    for damage in damages {
        for (path, accept) in asked {
            let before = served.ask("GET", path, &[accept], &[]);
            assert!(before.status < 500, "{path}: {}", before.text());
            damage();
            let failed = served.ask("GET", path, &[accept], &[]).is(500);
            has(&failed.text(), "could not read or write the hub; its log says more");
            assert_eq!(failed.text().contains("<html"), accept == BROWSER, "{}", failed.text());
            assert_eq!(failed.header("cache-control"), Some("no-store"));
            let after = served.ask("GET", path, &[accept], &[]);
            assert_eq!((after.status, after.text()), (before.status, before.text()), "{path}");
        }
    }
    let (_, log) = served.end();
    let errors: Vec<&String> = log.iter().filter(|line| line.contains("\"error\"")).collect();
    assert_eq!(errors.len(), damages.len() * asked.len(), "{errors:#?}");
    for line in errors {
        has(line, "-1.jsonl`: it ");
    }
}

#[cfg(unix)]
#[test]
fn a_catalog_that_cannot_be_made_is_an_error_and_not_a_hub_that_is_still_read() {
    let sandbox = sandbox();
    // A folder is where its file would be.
    let first = served(&sandbox);
    found(&first, "tls");
    drop(first);
    let path = own_catalog(&sandbox);
    fs::remove_file(&path).expect("is ours");
    fs::create_dir_all(path.join("inside")).expect("is ours");
    let served = served(&sandbox);
    served.ask("GET", "/api/v1/search?q=tls", &[], &[]).is(500);
    served.ask("GET", "/packages/web/tls", &[BROWSER], &[]).is(500);
    fs::remove_dir_all(&path).expect("is ours");
    assert_eq!(found(&served, "tls").len(), 3);
    let (_, log) = served.end();
    assert!(log.iter().any(|line| line.contains("-1.jsonl")), "{log:#?}");
}

#[cfg(unix)]
#[test]
fn an_index_that_is_broken_hides_no_other_one_and_is_logged() {
    let sandbox = sandbox();
    write(&sandbox.path("srv"), "index/ops/old.jsonl", "nonsense\n");
    let served = served(&sandbox);
    assert_eq!(found(&served, "tls").len(), 3);
    served.ask("GET", "/feed.atom", &[], &[]).is(200);
    let (_, log) = served.end();
    let named = log.iter().filter(|line| line.contains("`index/ops/old.jsonl`")).count();
    assert!(named >= 2, "{log:#?}");
}

#[test]
fn pages_of_a_large_hub_know_dependents_and_claims() {
    let sandbox = sandbox();
    let served = served(&sandbox);
    has(&seen(&page(&served, "/")), "6 packages");
    // One segment means a package beside its dependent first.
    let dependents = |name: &str| {
        let page = page(&served, &format!("/packages/{name}"));
        seen(section(&page, "dependents"))
    };
    has(&dependents("web/tls"), "web/proxy");
    lacks(&dependents("web/tls"), "ops/old");
    has(&dependents("tls"), "ops/old");
    lacks(&dependents("tls"), "web/proxy");
    has(&dependents("log"), "web/proxy");
    has(&dependents("log"), "sec/tls");
    let moved = seen(&page(&served, "/packages/web/tls"));
    has(&moved, "That package agrees: it says that it replaces this one.");
    let claims = seen(&page(&served, "/packages/sec/tls"));
    has(&claims, "and that package agrees: it says that it has moved here.");
    let proxy = page(&served, "/packages/web/proxy");
    has(&proxy, "packages/web/tls");
    // Lists, and when what is in them was published.
    let namespace = page(&served, "/namespaces/web");
    has(&namespace, "2025-02-10");
    lacks(&seen(&namespace), "ops/old");
    has(&page(&served, "/capabilities/net.example/v1/Server"), "web/proxy");
    has(&page(&served, "/search?q=tls&sort=name"), "sec/tls");
    let missing = served.ask("GET", "/packages/web/tsl", &[BROWSER], &[]).is(404);
    has(&missing.text(), "web/tls");
}

#[test]
fn a_large_hub_is_copied_by_its_log() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../big"]).ok();
    for name in ["acme/web", "acme/lib"] {
        sandbox.write("Mu.yaml", &format!("name: {name}\nversion: 1.0.0\n"));
        sandbox.mu(&["publish", "--to", "../big"]).ok();
    }
    let path = sandbox.path("big/hub.json");
    let text = fs::read_to_string(&path).expect("is there");
    let mut file: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
    file["catalog"] = json!({ "generation": 2, "tooLarge": true });
    fs::write(&path, file.to_string()).expect("is ours");
    fs::remove_file(sandbox.path("big/catalog.jsonl")).expect("is there");
    sandbox.mu(&["hub", "init", "../copy"]).ok();
    let mirror = |to: &str| sandbox.mu(&["mirror", "--all", "--from", "../big", "--to", to]);
    mirror("../copy").ok().says(&["acme/lib 1.0.0", "acme/web 1.0.0", "2 versions copied"]);
    // A log that does not begin with the first change does not tell what there is.
    let log = sandbox.path("big/log/000000.txt");
    let lines = fs::read_to_string(&log).expect("is there");
    fs::write(&log, lines.lines().skip(1).flat_map(|line| [line, "\n"]).collect::<String>())
        .expect("is ours");
    sandbox.mu(&["hub", "init", "../other"]).ok();
    mirror("../other").fails().says(&[
        "does not list what it has",
        "too many packages for a catalog, and its log does not have all changes",
        "copy its files with other tools, such as rsync",
    ]);
}
