//! A first resolve: how many requests and waits it needs, with closures, with a snapshot, and by the files of packages alone; and that
//! nothing else depends on closures.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use mu_testing::http::{Reply, Seen, TestServer};
use serde_json::{Value, json};

use crate::support::{Nginx, Package, Sandbox, write};

/// The length of the chain of packages, each of which needs the next.
const LENGTH: usize = 12;

/// How many requests run at the same time.
const JOBS: &str = "16";

fn name(number: usize) -> String {
    format!("deep/n{number:02}")
}

/// A workspace that needs the first package of the chain, in a hub with closures. Dependencies are written
/// with `namespace` before the name; without it, they are looked for beside their dependent.
fn chain(namespace: &str) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&[&name(0)]);
    let hub = sandbox.hub();
    for number in 0..LENGTH {
        let package = Package::new(&name(number), "1.0.0");
        let next = format!("{namespace}n{:02}#^1", number + 1);
        let package = if number + 1 < LENGTH { package.needs(&next) } else { package };
        hub.publish(&package);
    }
    hub.release("deep/alone", "1.0.0");
    keep_closures(&sandbox);
    sandbox
}

/// Has the hub make closures, and no snapshot.
fn keep_closures(sandbox: &Sandbox) {
    sandbox.mu(&["hub", "check", "../hub", "--repair"]).ok();
    let mut file: Value =
        serde_json::from_str(&fs::read_to_string(sandbox.path("hub/hub.json")).expect("is there"))
            .expect("is JSON");
    assert_eq!(file["closures"], "closures/");
    file.as_object_mut().expect("is an object").remove("snapshot");
    write(&sandbox.path("hub"), "hub.json", file.to_string());
}

/// Sets the content of a package's closure.
fn set_closure(sandbox: &Sandbox, name: &str, text: &str) {
    write(&sandbox.path("hub"), &format!("closures/{name}.json"), text);
}

fn naming(names: &[String]) -> String {
    json!({ "packages": names }).to_string()
}

/// The ids of the packages that a machine with an empty cache locks, in the order of installing.
fn resolve(sandbox: &mut Sandbox, url: &str) -> Vec<String> {
    let packages = resolve_whole(sandbox, url).into_iter();
    packages.map(|one| one["id"].as_str().expect("is text").to_owned()).collect()
}

/// The same, with all that is said of each.
fn resolve_whole(sandbox: &mut Sandbox, url: &str) -> Vec<Value> {
    resolve_by(Some(JOBS), sandbox, url)
}

/// The same, with so many requests at the same time, or as many as usual.
fn resolve_by(jobs: Option<&str>, sandbox: &mut Sandbox, url: &str) -> Vec<Value> {
    sandbox.hub_is_at(url);
    for part in ["cache", "work/Mu.lock"] {
        let path = sandbox.path(part);
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
    let jobs = jobs.map_or_else(Vec::new, |jobs| vec!["--jobs", jobs]);
    let answer = sandbox.mu(&[&["resolve", "--json"], &jobs[..]].concat()).ok().json();
    answer["packages"].as_array().expect("is a list").clone()
}

/// All packages; each needs the next one, so the last one comes first.
fn all() -> Vec<String> {
    (0..LENGTH).rev().map(|number| format!("hub.mu.com/{}", name(number))).collect()
}

fn indexes(numbers: std::ops::Range<usize>) -> BTreeSet<String> {
    numbers.map(|number| format!("/index/{}.jsonl", name(number))).collect()
}

#[test]
fn one_closure_leads_to_everything_and_a_warm_cache_asks_for_none() {
    let mut sandbox = chain("");
    let nginx = Nginx::serve(&sandbox.path("hub"), "");
    let url = nginx.url("");
    assert_eq!(resolve(&mut sandbox, &url), all());
    let path = |line: &String| line.split(' ').nth(1).expect("has a path").to_owned();
    let asked: Vec<String> = nginx.log().iter().map(path).collect();
    let mut expected = indexes(0..LENGTH);
    expected.extend(["/hub.json".to_owned(), format!("/closures/{}.json", name(0))]);
    assert_eq!(asked.iter().cloned().collect::<BTreeSet<_>>(), expected);
    assert_eq!(asked.len(), expected.len(), "{asked:?}");
    // Later, one request is enough.
    sandbox.mu(&["resolve", "--refresh"]).ok();
    assert_eq!(nginx.log()[asked.len()..], ["GET /hub.json HTTP/1.1 304"]);
    // A new package does not bring packages that are already in the cache.
    sandbox.asks_for(&[&name(0), "deep/alone"]);
    sandbox.mu(&["resolve"]).ok();
    let asked: BTreeSet<String> = nginx.log()[asked.len() + 1..].iter().map(path).collect();
    let expected = ["/closures/deep/alone.json", "/hub.json", "/index/deep/alone.jsonl"];
    assert_eq!(asked, expected.map(str::to_owned).into());
}

/// Holds answers back until all requests of a group have arrived.
struct Gates {
    groups: Vec<BTreeSet<String>>,
    arrived: Mutex<BTreeSet<String>>,
    changed: Condvar,
}

impl Gates {
    /// Waits for the rest of the group that a path is in; returns `false` if it does not arrive.
    fn pass(&self, path: &str) -> bool {
        let Some(group) = self.groups.iter().find(|group| group.contains(path)) else {
            return true;
        };
        let mut arrived = self.arrived.lock().expect("nobody panics");
        arrived.insert(path.to_owned());
        self.changed.notify_all();
        let is_short = |arrived: &mut BTreeSet<String>| !group.is_subset(arrived);
        // Only a client that does not come ever waits to the end.
        let (_arrived, waited) = self
            .changed
            .wait_timeout_while(arrived, Duration::from_secs(60), is_short)
            .expect("nobody panics");
        !waited.timed_out()
    }
}

fn file(folder: &Path, request: &Seen) -> Reply {
    match fs::read(folder.join(request.path.trim_start_matches('/'))) {
        Ok(bytes) => Reply::body(bytes),
        Err(_) => Reply::status(404),
    }
}

/// A server that answers no request of a group before all of them have arrived.
fn gated(sandbox: &Sandbox, groups: Vec<BTreeSet<String>>) -> TestServer {
    let gates = Gates { groups, arrived: Mutex::default(), changed: Condvar::new() };
    let folder = sandbox.path("hub");
    TestServer::start(move |request, _| match gates.pass(&request.path) {
        true => file(&folder, request),
        false => Reply::status(410),
    })
}

#[test]
fn what_a_closure_names_is_asked_for_at_once() {
    let mut sandbox = chain("deep/");
    let server = gated(&sandbox, vec![indexes(1..LENGTH)]);
    assert_eq!(resolve(&mut sandbox, &server.url("")), all());
}

/// Files that the hub must be asked for, those of packages and the closures of some.
fn files(packages: &[&str], closures: &[&str]) -> BTreeSet<String> {
    let packages = packages.iter().map(|name| format!("/index/{name}.jsonl"));
    packages.chain(closures.iter().map(|name| format!("/closures/{name}.json"))).collect()
}

#[test]
fn all_that_short_names_may_mean_is_asked_for_at_once_with_its_closure() {
    let mut sandbox = Sandbox::with_dependencies(&["db", "vpc"]);
    sandbox.hub().publish(&Package::new("acme/db", "1.0.0").needs("log").needs("store"));
    sandbox.hub().publish(&Package::new("vpc", "1.0.0").needs("net"));
    for name in ["acme/log", "acme/store", "net"] {
        sandbox.hub().release(name, "1.0.0");
    }
    keep_closures(&sandbox);
    // The closure of no package is of use here, so that what is needed is asked for because of what needs it.
    for name in ["acme/db", "vpc"] {
        set_closure(&sandbox, name, &naming(&[]));
    }
    let meanings = ["acme/db", "acme/vpc", "db", "vpc"];
    let groups = vec![files(&meanings, &meanings), files(&["acme/log", "acme/store"], &[])];
    let server = gated(&sandbox, groups);
    let chosen: BTreeSet<String> = resolve(&mut sandbox, &server.url("")).into_iter().collect();
    let expected = ["acme/db", "acme/log", "acme/store", "net", "vpc"];
    assert_eq!(chosen, expected.map(|name| format!("hub.mu.com/{name}")).into());
    let asked = server.requests();
    let indexes = asked.iter().filter(|request| request.contains("/index/")).count();
    // Four meanings, and the three other packages.
    assert_eq!(indexes, 7, "{asked:?}");
    // What is not there is remembered, too.
    sandbox.mu(&["resolve"]).ok();
    sandbox.mu(&["resolve", "--refresh"]).ok();
    assert_eq!(server.requests()[asked.len()..], ["GET /hub.json"]);
}

#[test]
fn a_closure_that_is_short_costs_a_wave_and_no_more() {
    let mut sandbox = chain("deep/");
    let known: Vec<String> = (1..5).map(name).collect();
    set_closure(&sandbox, &name(0), &naming(&known));
    let rest = format!("/closures/{}.json", name(5));
    let server = gated(&sandbox, vec![indexes(1..5), indexes(6..LENGTH)]);
    assert_eq!(resolve(&mut sandbox, &server.url("")), all());
    let closures: Vec<String> =
        server.requests().into_iter().filter(|line| line.contains("/closures/")).collect();
    assert_eq!(closures, [format!("GET /closures/{}.json", name(0)), format!("GET {rest}")]);
}

#[test]
fn whatever_a_closure_says_the_answer_is_the_same_and_what_it_costs_is_bounded() {
    let mut sandbox = chain("deep/");
    let url = format!("file://{}/", sandbox.path("hub").display());
    assert_eq!(resolve(&mut sandbox, &url), all());
    let absent: Vec<String> = (0..3_000).map(|number| format!("not/there-{number}")).collect();
    let escaping = [
        "../../secret",
        "/etc/passwd",
        "//elsewhere.example/x",
        "http://elsewhere.example/x",
        "x\u{1b}[31m",
        "a b",
        "x?y=z",
        "%2e%2e/x",
        "",
    ]
    .map(str::to_owned);
    let long = naming(&[format!("x{}", "y".repeat(2 << 20))]);
    for (said, most) in [
        ("nonsense".to_owned(), LENGTH),
        ("[]".to_owned(), LENGTH),
        (naming(&[]), 0),
        (naming(&escaping), 0),
        // A hub whose closures name missing packages is soon not trusted any more.
        (naming(&absent), 32 + 16),
        (naming(&[&absent[..], &absent[..]].concat()), LENGTH),
        (long, LENGTH),
    ] {
        set_closure(&sandbox, &name(0), &said);
        let nginx = Nginx::serve(&sandbox.path("hub"), "");
        let url = nginx.url("");
        assert_eq!(resolve(&mut sandbox, &url), all(), "{said:.60}");
        let asked = nginx.log();
        // `hub.json`, the indexes, and the requests because of closures.
        assert!(asked.len() <= 1 + LENGTH + LENGTH + most, "{said:.60}: {asked:?}");
        let strange = asked.iter().find(|line| {
            !["/hub.json", "/index/", "/closures/deep/"].iter().any(|known| line.contains(known))
        });
        assert_eq!(strange, None, "{said:.60}");
    }
}

/// A workspace that requires this many packages, and their names; the hub has none of them yet.
fn wide(count: usize) -> (Sandbox, Vec<String>) {
    let roots: Vec<String> = (0..count).map(|number| format!("wide/n{number}")).collect();
    let texts: Vec<&str> = roots.iter().map(String::as_str).collect();
    (Sandbox::with_dependencies(&texts), roots)
}

#[test]
fn a_hub_whose_closures_cannot_be_had_is_soon_not_asked_for_them() {
    let (mut sandbox, roots) = wide(60);
    for root in &roots {
        sandbox.hub().release(root, "1.0.0");
    }
    keep_closures(&sandbox);
    for status in [404, 500, 403] {
        let folder = sandbox.path("hub");
        let asked: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let counted = Arc::clone(&asked);
        let server = TestServer::start(move |request, _| {
            *counted.lock().expect("nobody panics").entry(request.path.clone()).or_default() += 1;
            match request.path.starts_with("/closures/") {
                true => Reply::status(status),
                false => file(&folder, request),
            }
        });
        assert_eq!(resolve(&mut sandbox, &server.url("")).len(), 60);
        let asked = asked.lock().expect("nobody panics");
        let closures: Vec<_> = asked.iter().filter(|(path, _)| path.contains("closures")).collect();
        assert!(closures.len() <= 8 + 16, "{status}: {closures:?}");
        assert!(closures.iter().all(|(_, times)| **times == 1), "{status}: {closures:?}");
        assert_eq!(asked.len() - closures.len(), 61, "{status}");
    }
}

#[test]
fn a_hub_that_no_registry_tells_of_is_asked_no_more() {
    let mut sandbox = chain("deep/");
    let nginx = Nginx::serve(&sandbox.path("hub"), "");
    sandbox.asks_for(&[&nginx.url(&name(0))]);
    let answer = sandbox.mu(&["resolve", "--json"]).ok().json();
    assert_eq!(answer["packages"].as_array().map(Vec::len), Some(LENGTH));
    let asked: BTreeSet<String> = nginx.log().into_iter().collect();
    assert_eq!((asked.len(), nginx.log().len()), (2 + LENGTH, 2 + LENGTH), "{asked:?}");
    let roots: Vec<String> = (0..LENGTH).map(|number| nginx.url(&name(number))).collect();
    sandbox.asks_for(&roots.iter().map(String::as_str).collect::<Vec<_>>());
    // As one that is told of: with a snapshot there is nothing else to ask.
    sandbox.mu(&["hub", "check", "../hub", "--repair"]).ok();
    let before = nginx.log().len();
    resolve(&mut sandbox, "https://not-asked.example/");
    let asked = &nginx.log()[before..];
    assert_eq!(asked.len(), 3, "{asked:?}");
}

#[test]
fn a_snapshot_is_taken_instead_where_much_is_wanted() {
    let (mut sandbox, roots) = wide(40);
    for root in &roots {
        sandbox.hub().publish(&Package::new(root, "1.0.0").needs("wide/base"));
    }
    sandbox.hub().release("wide/base", "1.0.0");
    sandbox.mu(&["hub", "check", "../hub", "--repair"]).ok();
    let nginx = Nginx::serve(&sandbox.path("hub"), "");
    let url = nginx.url("");
    let packages = resolve_whole(&mut sandbox, &url);
    assert_eq!((packages.len(), without_digests(&packages)), (41, 0));
    // All of it is chosen, so all digests are less than the files of each package.
    let expected = ["hub.json", "snapshot.jsonl.gz", "snapshot.digests"]
        .map(|path| format!("GET /{path} HTTP/1.1 200"));
    assert_eq!(nginx.log(), expected);
    sandbox.mu(&["resolve", "--refresh"]).ok();
    assert_eq!(nginx.log().len(), 4);
}

/// How many of the packages have no digest.
fn without_digests(packages: &[Value]) -> usize {
    let is_without = |one: &&Value| !one["digest"].is_string() || !one["archive"].is_string();
    packages.iter().filter(is_without).count()
}

#[test]
fn of_a_large_snapshot_only_the_files_of_what_was_chosen_are_read_for_their_digests() {
    let (mut sandbox, roots) = wide(40);
    for root in &roots {
        sandbox.hub().publish(&Package::new(root, "1.0.0"));
    }
    sandbox.hub().publish(&Package::new("wide/n7", "1.1.0"));
    // What else the hub has: nobody chooses it, and all digests are more work than the files of what is chosen.
    for number in 0..8_000 {
        let line = json!({ "name": format!("else/n{number}"), "version": "1.0.0" });
        write(&sandbox.path("hub"), &format!("index/else/n{number}.jsonl"), format!("{line}\n"));
    }
    sandbox.mu(&["hub", "check", "../hub", "--repair"]).fails();
    let nginx = Nginx::serve(&sandbox.path("hub"), "");
    let url = nginx.url("");
    let packages = resolve_whole(&mut sandbox, &url);
    assert_eq!((packages.len(), without_digests(&packages)), (40, 0));
    assert_eq!(packages.iter().filter(|one| one["version"] == "1.1.0").count(), 1);
    let asked: BTreeSet<String> = nginx.log().into_iter().collect();
    let files = ["hub.json", "snapshot.jsonl.gz"].map(str::to_owned).into_iter();
    let files = files.chain(roots.iter().map(|root| format!("index/{root}.jsonl")));
    let expected: BTreeSet<String> =
        files.map(|path| format!("GET /{path} HTTP/1.1 200")).collect();
    assert_eq!((&asked, nginx.log().len()), (&expected, 42));
    // What was chosen is whole in the cache.
    let before = nginx.log().len();
    let again = sandbox.mu(&["resolve", "--refresh", "--json"]).ok().json();
    assert_eq!(again["packages"].as_array().map(|packages| without_digests(packages)), Some(0));
    assert_eq!(nginx.log()[before..], ["GET /hub.json HTTP/1.1 304"]);
    // The files are asked for at once, however many jobs there are of other kinds: the server answers none before all of them.
    let one = |path: &str| BTreeSet::from([path.to_owned()]);
    let all = roots.iter().map(|root| format!("/index/{root}.jsonl")).collect();
    let server = gated(&sandbox, vec![one("/hub.json"), one("/snapshot.jsonl.gz"), all]);
    assert_eq!(resolve_by(None, &mut sandbox, &server.url("")).len(), 40);
    assert_eq!(server.requests().len(), 42);
    // The file of a package is newer than the snapshot, without a word of the log: what it says counts.
    let index = sandbox.path("hub/index/wide/n7.jsonl");
    let text = fs::read_to_string(&index).expect("is there");
    fs::write(&index, text.replace("\"1.1.0\"", "\"1.1.0\",\"yanked\":true")).expect("is ours");
    let packages = resolve_whole(&mut sandbox, &url);
    assert_eq!((packages.len(), without_digests(&packages)), (40, 0));
    assert!(packages.iter().all(|one| one["version"] == "1.0.0"));
}

#[test]
fn a_snapshot_is_not_taken_for_what_was_asked_for_already() {
    let roots: Vec<String> = (0..4).map(|number| format!("two/n{number}")).collect();
    let texts: Vec<&str> = roots.iter().map(String::as_str).collect();
    let mut sandbox = Sandbox::with_dependencies(&texts);
    for root in &roots {
        let below = format!("{root}-below");
        sandbox.hub().publish(&Package::new(root, "1.0.0").needs(&below));
        sandbox.hub().release(&below, "1.0.0");
    }
    sandbox.mu(&["hub", "check", "../hub", "--repair"]).ok();
    let text = fs::read_to_string(sandbox.path("hub/hub.json")).expect("is there");
    let mut hub: Value = serde_json::from_str(&text).expect("is JSON");
    hub.as_object_mut().expect("is an object").remove("closures");
    // It is worth it for six packages, but not for four, and then four.
    hub["snapshotLines"] = (6 * (32 << 10)).into();
    write(&sandbox.path("hub"), "hub.json", hub.to_string());
    let nginx = Nginx::serve(&sandbox.path("hub"), "");
    let url = nginx.url("");
    assert_eq!(resolve(&mut sandbox, &url).len(), 8);
    let asked = nginx.log();
    assert!(asked.len() == 9 && !asked.iter().any(|line| line.contains("snapshot")), "{asked:?}");
}

/// What a hub has beside the index files of its packages.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    Closures,
    Snapshot,
}

/// A workspace with so many requirements, whose packages need others on three further levels; and the names of all, level by level.
fn on_levels(roots: usize) -> (Sandbox, [Vec<String>; 4]) {
    let names = |level: &str, count: usize| -> Vec<String> {
        (0..count).map(|number| format!("{level}/n{number}")).collect()
    };
    let levels =
        [names("top", roots), names("upper", roots / 2), names("lower", 3), names("base", 1)];
    let texts: Vec<&str> = levels[0].iter().map(String::as_str).collect();
    let sandbox = Sandbox::with_dependencies(&texts);
    for (level, names) in levels.iter().enumerate() {
        for (number, name) in names.iter().enumerate() {
            let below = levels.get(level + 1).map(|below| &below[number % below.len()]);
            let package = Package::new(name, "1.0.0");
            let package = below.into_iter().fold(package, |one, needed| one.needs(needed));
            sandbox.hub().publish(&package);
        }
    }
    (sandbox, levels)
}

/// Has a machine with an empty cache resolve against a hub that answers nothing of a group before all of it was asked for, and which has
/// nothing else: so there are as many waits as groups.
fn waits(roots: usize, beside: Beside) -> usize {
    let (mut sandbox, levels) = on_levels(roots);
    sandbox.mu(&["hub", "check", "../hub", "--repair"]).ok();
    let text = fs::read_to_string(sandbox.path("hub/hub.json")).expect("is there");
    let mut file: Value = serde_json::from_str(&text).expect("is JSON");
    let keys = file.as_object_mut().expect("is an object");
    if beside != Beside::Closures {
        keys.remove("closures");
    }
    if beside != Beside::Snapshot {
        keys.remove("snapshot");
    }
    write(&sandbox.path("hub"), "hub.json", file.to_string());
    let index = |names: &[String]| -> BTreeSet<String> {
        names.iter().map(|name| format!("/index/{name}.jsonl")).collect()
    };
    let one = |path: &str| BTreeSet::from([path.to_owned()]);
    let groups = match beside {
        Beside::Nothing => levels.iter().map(|level| index(level)).collect(),
        Beside::Closures => {
            let closures = levels[0].iter().map(|name| format!("/closures/{name}.json"));
            let first = index(&levels[0]).into_iter().chain(closures).collect();
            vec![first, index(&levels[1..].concat())]
        }
        Beside::Snapshot => ["/snapshot.jsonl.gz", "/snapshot.digests"].map(one).into(),
    };
    let groups: Vec<BTreeSet<String>> = std::iter::once(one("/hub.json")).chain(groups).collect();
    let server = gated(&sandbox, groups.clone());
    let packages = resolve_by(Some("256"), &mut sandbox, &server.url(""));
    assert_eq!(packages.len(), levels.concat().len());
    assert_eq!(without_digests(&packages), 0);
    let asked: Vec<String> =
        server.requests().iter().map(|request| request.replace("GET ", "")).collect();
    assert_eq!(asked.len(), groups.iter().map(BTreeSet::len).sum::<usize>(), "{asked:?}");
    assert_eq!(
        asked.into_iter().collect::<BTreeSet<_>>(),
        groups.iter().flatten().cloned().collect()
    );
    groups.len()
}

#[test]
fn a_first_resolve_waits_once_for_all_that_can_be_asked_at_once() {
    // With more than these, some wait for a free one of the 256 requests that are sent at once at most.
    for roots in [10, 250] {
        assert_eq!(waits(roots, Beside::Nothing), 1 + 4, "{roots}: a level after the other");
        assert_eq!(waits(roots, Beside::Snapshot), 3, "{roots}: the lines, and then the digests");
    }
    assert_eq!(waits(10, Beside::Closures), 3, "closures lead to all else");
}
