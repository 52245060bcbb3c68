//! A hub of a million packages and twenty million versions, of which nothing is stored: a server makes each file of its name. What
//! `mu` asks it for, in requests, bytes and waits, and how much memory that takes.
//!
//! The figures stand in `docs/performance.md`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use mu_provider::{ArchiveDigest, Digest};
use mu_testing::http::{Reply, Seen, TestServer};
use mu_testing::{gzip, hex};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{Sandbox, write};

/// How many packages the hub has: those of a third need others of the second third, and those others of the last.
const PACKAGES: u64 = 1_000_000;

/// How many versions each of them has.
const VERSIONS: u64 = 20;

/// The requirements of a large workspace.
const ROOTS: u64 = 300;

/// A number that is spread over a range, the same for the same numbers.
fn spread(number: u64, below: u64) -> u64 {
    let hash = Sha256::digest(number.to_le_bytes());
    let (first, _) = hash.split_first_chunk().expect("has 32 bytes");
    u64::from_le_bytes(*first) % below
}

fn name(number: u64) -> String {
    format!("acme/n{number}")
}

/// What a package needs. Of a third of all, a thousand are popular, as in any registry.
fn needs(number: u64) -> Vec<u64> {
    let popular = |place: u64, third: u64| spread(place, 1_200) * 277 * 3 + third;
    match number % 3 {
        0 => (0..5).map(|one| popular(number * 8 + one, 1)).collect(),
        1 => (0..2).map(|one| popular(number * 8 + one, 2)).collect(),
        _ => Vec::new(),
    }
}

/// The packages that some lead to, with these.
fn reached(roots: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
    let (mut all, mut next) = (BTreeSet::new(), roots.into_iter().collect::<Vec<_>>());
    while let Some(number) = next.pop() {
        if all.insert(number) {
            next.extend(needs(number));
        }
    }
    all
}

fn index(number: u64) -> String {
    let needs: BTreeSet<u64> = needs(number).into_iter().collect();
    let needs: Vec<String> = needs.into_iter().map(|one| format!("{}#^1", name(one))).collect();
    let line = |minor: u64| {
        let hash = |what: u64| Sha256::digest([number, minor, what].map(u64::to_le_bytes).concat());
        let line = json!({
            "name": name(number),
            "version": format!("1.{minor}.0"),
            "digest": Digest::from_bytes(hash(0).into()).to_string(),
            "archive": ArchiveDigest::from_bytes(hash(1).into()).to_string(),
            "size": 1_000 + number % 1_000,
            "dependencies": needs,
        });
        format!("{line}\n")
    };
    (0..VERSIONS).map(line).collect()
}

/// Holds answers back until all requests of a group have arrived.
#[derive(Default)]
struct Gate {
    group: Mutex<BTreeSet<String>>,
    arrived: Condvar,
}

impl Gate {
    /// Waits for the rest of the group if a path is in it; returns `false` if that does not come.
    fn pass(&self, path: &str) -> bool {
        let mut group = self.group.lock().expect("nobody panics");
        if !group.remove(path) {
            return true;
        }
        self.arrived.notify_all();
        // Only a client that does not come ever waits to the end.
        let patience = Duration::from_secs(60);
        let waited = self.arrived.wait_timeout_while(group, patience, |group| !group.is_empty());
        !waited.expect("nobody panics").1.timed_out()
    }
}

/// A hub with a snapshot of some packages, which is some changes behind.
#[derive(Clone, Copy)]
struct Snapshot {
    generation: u64,
    packages: u64,
}

/// The hub, which answers from the name alone.
struct LargeHub {
    server: TestServer,
    generation: Arc<AtomicU64>,
    gate: Arc<Gate>,
    bytes: Arc<AtomicU64>,
}

impl LargeHub {
    /// A hub that has had so many changes, which concerned nothing that anybody here needs.
    fn start(changes: u64, snapshot: Option<Snapshot>) -> Self {
        let (generation, bytes) = (Arc::new(AtomicU64::new(changes)), Arc::<AtomicU64>::default());
        let gate: Arc<Gate> = Arc::default();
        let shared = (Arc::clone(&generation), Arc::clone(&bytes), Arc::clone(&gate));
        let server = TestServer::start(move |request, _| {
            let (generation, bytes, gate) = &shared;
            if !gate.pass(&request.path) {
                return Reply::status(410);
            }
            let reply = answer(request, generation.load(Ordering::SeqCst), snapshot);
            bytes.fetch_add(reply.length() as u64, Ordering::SeqCst);
            reply
        });
        Self { server, generation, gate, bytes }
    }

    /// Has so many changes happen.
    fn change(&self, changes: u64) {
        self.generation.fetch_add(changes, Ordering::SeqCst);
    }

    /// Answers none of these before all of them were asked for.
    fn holds(&self, paths: impl IntoIterator<Item = String>) {
        *self.gate.group.lock().expect("nobody panics") = paths.into_iter().collect();
    }

    /// What `work` asks for, and the bytes of the answers.
    fn asked_by(&self, work: impl FnOnce()) -> (Vec<String>, u64) {
        let (before, bytes) = (self.server.requests().len(), self.bytes.load(Ordering::SeqCst));
        work();
        let asked = self.server.requests().split_off(before);
        let asked = asked.into_iter().map(|request| request.replace("GET /", "")).collect();
        (asked, self.bytes.load(Ordering::SeqCst) - bytes)
    }
}

/// The lines of the snapshot, and the digests.
fn snapshot_of(snapshot: Snapshot) -> (Vec<u8>, Vec<u8>) {
    let Snapshot { generation, packages } = snapshot;
    let lines: String = (0..packages)
        .flat_map(|number| (0..VERSIONS).map(move |minor| (number, minor)))
        .map(|(number, minor)| {
            let version = format!("1.{minor}.0");
            let line =
                json!({ "name": name(number * 3 + 2), "version": version, "dependencies": [] });
            format!("{line}\n")
        })
        .collect();
    let rows = vec![7; usize::try_from(packages * VERSIONS * 72).expect("is small")];
    let head = json!({ "generation": generation, "digests": hex(&rows) });
    (gzip(format!("{head}\n{lines}").as_bytes()), rows)
}

fn answer(request: &Seen, generation: u64, snapshot: Option<Snapshot>) -> Reply {
    let path = request.path.trim_start_matches('/');
    let number = |rest: &str, end: &str| -> Option<u64> { rest.strip_suffix(end)?.parse().ok() };
    let (tag, body) = if path == "hub.json" {
        let mut file = json!({
            "hub": 1, "index": "index/", "packs": "packs/", "log": "log/", "closures": "closures/",
            "generation": generation, "snapshotGeneration": 250_000,
        });
        if let Some(snapshot) = snapshot {
            let (lines, rows) = snapshot_of(snapshot);
            file["snapshot"] = "snapshot.jsonl.gz".into();
            file["snapshotBytes"] = (lines.len() + rows.len()).into();
            file["snapshotLines"] = lines.len().into();
        }
        (format!("\"{generation}\""), file.to_string().into_bytes())
    } else if let Some(file) = path.strip_prefix("log/").and_then(|rest| number(rest, ".txt")) {
        let lines = generation.saturating_sub(file * 1_000).min(1_000);
        let line = |line: u64| format!("else/n{}\n", spread(file * 1_000 + line, PACKAGES));
        (String::new(), (0..lines).map(line).collect::<String>().into_bytes())
    } else if let Some(number) =
        path.strip_prefix("index/acme/n").and_then(|rest| number(rest, ".jsonl"))
    {
        (format!("\"n{number}\""), index(number).into_bytes())
    } else if let Some(number) =
        path.strip_prefix("closures/acme/n").and_then(|rest| number(rest, ".json"))
    {
        let all = reached([number]).into_iter().filter(|one| *one != number).map(name);
        let file = json!({ "packages": all.collect::<Vec<String>>() });
        (String::new(), file.to_string().into_bytes())
    } else {
        let files = snapshot.map(snapshot_of).unwrap_or_default();
        match path {
            "snapshot.jsonl.gz" => return Reply::body(files.0),
            "snapshot.digests" => return Reply::body(files.1),
            _ => return Reply::status(404),
        }
    };
    let reply =
        if tag.is_empty() { Reply::status(200) } else { Reply::status(200).header("etag", &tag) };
    if !tag.is_empty() && request.header("if-none-match") == Some(&tag) {
        return Reply::status(304).header("etag", tag);
    }
    match request.header("accept-encoding").is_some_and(|known| known.contains("gzip")) {
        true => reply.saying(gzip(&body)).header("content-encoding", "gzip"),
        false => reply.saying(body),
    }
}

/// A workspace that needs these packages of the hub.
fn workspace(hub: &LargeHub, roots: &[u64]) -> Sandbox {
    let names: Vec<String> = roots.iter().map(|root| name(*root)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let sandbox = Sandbox::with_dependencies(&names);
    sandbox.hub_is_at(&hub.server.url(""));
    sandbox
}

fn roots() -> Vec<u64> {
    (0..ROOTS).map(|root| root * 3_333).collect()
}

/// How many versions are chosen, all of them the newest.
fn resolve(sandbox: &Sandbox) -> usize {
    let answer = sandbox.mu(&["resolve", "--refresh", "--json"]).ok().json();
    let packages = answer["packages"].as_array().expect("is a list");
    let is_newest = |one: &Value| one["version"] == "1.19.0" && one["digest"].is_string();
    assert!(packages.iter().all(is_newest), "{packages:?}");
    packages.len()
}

fn count(asked: &[String], folder: &str) -> usize {
    asked.iter().filter(|path| path.starts_with(folder)).count()
}

#[test]
fn a_few_packages_of_a_million_take_three_waits() {
    let hub = LargeHub::start(20_000_000, None);
    let sandbox = workspace(&hub, &[6]);
    let needed = reached([6]);
    let file = |number: u64| format!("/index/{}.jsonl", name(number));
    // All that the closure names is asked for at once, after one wait for `hub.json`, and one for the closure.
    hub.holds(needed.iter().filter(|number| **number != 6).map(|number| file(*number)));
    let (asked, bytes) = hub.asked_by(|| assert_eq!(resolve(&sandbox), needed.len()));
    assert_eq!(asked[0], "hub.json");
    assert_eq!(
        asked[1..3].iter().collect::<BTreeSet<_>>(),
        [&format!("index/{}.jsonl", name(6)), &format!("closures/{}.json", name(6)),].into()
    );
    assert_eq!((asked.len(), needed.len()), (2 + needed.len(), 16));
    assert!(bytes < 80 << 10, "{bytes} bytes");
}

#[test]
fn many_packages_of_a_million_take_their_files_and_later_what_has_changed() {
    let hub = LargeHub::start(20_000_000, None);
    let sandbox = workspace(&hub, &roots());
    let needed = reached(roots());
    let peak = |sandbox: &Sandbox, packages: usize| {
        let (run, peak) = sandbox.peak(&["resolve", "--refresh"]);
        run.ok().says(&[&format!("{packages} package")]);
        peak
    };
    let mut most = 0;
    let (asked, bytes) = hub.asked_by(|| most = peak(&sandbox, needed.len()));
    println!("{} packages: {} requests, {bytes} bytes, {most} KiB", needed.len(), asked.len());
    assert_eq!(count(&asked, "index/"), needed.len());
    // Closures are asked for as long as it is not known what the requirements lead to.
    let closures = count(&asked, "closures/");
    assert!((1..=roots().len()).contains(&closures), "{closures}");
    assert_eq!(asked.len(), 1 + closures + needed.len());
    assert!(bytes < 6 << 20, "{bytes} bytes");
    // What the program itself takes differs between builds.
    let least = peak(&workspace(&hub, &[2]), reached(vec![2]).len());
    println!("{least} KiB for one package");
    assert!(most - least < 40 << 10, "{most} KiB for many, {least} KiB for one");

    // Nothing has changed.
    let (asked, bytes) = hub.asked_by(|| assert_eq!(resolve(&sandbox), needed.len()));
    assert_eq!((asked, bytes), (vec!["hub.json".to_owned()], 0));
    // A day: 7,200 changes, all of which are asked for at once.
    hub.change(7_200);
    hub.holds((20_000..20_008).map(|file| format!("/log/{file:06}.txt")));
    let (asked, bytes) = hub.asked_by(|| assert_eq!(resolve(&sandbox), needed.len()));
    println!("a day: {} requests, {bytes} bytes", asked.len());
    assert_eq!((asked.len(), count(&asked, "log/")), (9, 8));
    assert!(bytes < 100 << 10, "{bytes} bytes");
    // As far as the log is read: the file with the last change that was seen, and 63 more.
    hub.change(63_000);
    let (asked, _) = hub.asked_by(|| assert_eq!(resolve(&sandbox), needed.len()));
    assert_eq!((asked.len(), count(&asked, "log/")), (65, 64));
    // A month: what is needed is asked for with its ETag, and nothing is sent.
    hub.change(216_000);
    let (asked, bytes) = hub.asked_by(|| assert_eq!(resolve(&sandbox), needed.len()));
    println!("a month: {} requests, {bytes} bytes", asked.len());
    assert_eq!((asked.len(), count(&asked, "index/")), (1 + needed.len(), needed.len()));
    assert!(bytes < 1 << 10, "{bytes} bytes");
    // From then on, it is known as of that.
    let (asked, _) = hub.asked_by(|| assert_eq!(resolve(&sandbox), needed.len()));
    assert_eq!(asked, ["hub.json"]);
}

#[test]
fn a_snapshot_that_is_long_behind_is_brought_up_to_date_by_the_log() {
    for (behind, files) in [(9_500, 10), (31_000, 31)] {
        let generation = 2_000;
        let snapshot = Snapshot { generation, packages: 100 };
        let hub = LargeHub::start(generation + behind, Some(snapshot));
        let roots: Vec<u64> = (0..100).map(|number| number * 3 + 2).collect();
        let sandbox = workspace(&hub, &roots);
        let first = generation / 1_000;
        hub.holds((first..first + files).map(|file| format!("/log/{file:06}.txt")));
        let (asked, _) = hub.asked_by(|| assert_eq!(resolve(&sandbox), 100));
        // To choose versions: `hub.json`, the lines, and the log. Then the digests of what was chosen.
        let expected = ["hub.json", "snapshot.jsonl.gz"].map(str::to_owned).into_iter();
        let logs = (first..first + files).map(|file| format!("log/{file:06}.txt"));
        let expected: BTreeSet<String> =
            expected.chain(logs).chain(["snapshot.digests".to_owned()]).collect();
        assert_eq!(asked.len(), expected.len(), "{asked:?}");
        assert_eq!(asked.into_iter().collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn publishing_into_a_large_hub_takes_no_more_memory_than_into_a_new_one() {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: acme/n0\nversion: 2.0.0\n");
    sandbox.mu(&["hub", "init", "../new"]).ok();
    let file = json!({
        "hub": 1, "index": "index/", "packs": "packs/", "log": "log/", "closures": "closures/",
        "generation": 20_000_000, "snapshotGeneration": 250_000,
        "catalog": { "generation": 1_000_000, "tooLarge": true },
    });
    let large = sandbox.path("large");
    write(&large, "hub.json", file.to_string());
    write(&large, "log/019999.txt", "acme/n1\n".repeat(1_000));
    write(&large, "index/acme/n0.jsonl", index(0));
    let [few, many] = ["../new", "../large"].map(|place| {
        let (run, peak) = sandbox.peak(&["publish", "--to", place]);
        run.ok().does_not_say(&["hub tidy"]);
        peak
    });
    println!("{few} KiB to publish into a new hub, {many} KiB into one of a million packages");
    assert!(many < few + (8 << 10), "{few} KiB for a new hub, {many} KiB for a large one");
    let file = std::fs::read_to_string(large.join("hub.json")).expect("is there");
    assert!(file.contains("\"generation\":20000001"), "{file}");
}
