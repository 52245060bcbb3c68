//! Many threads and processes, one cache; and a cache that was damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use mu_provider::{ErrorKind, Progress, Provider as _};

use crate::support::{HttpServer, Origin, World, fetch, git, locked, manifest, written};

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("can be read");
    let paths = entries.map(|entry| entry.expect("can be read").path());
    paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

#[test]
fn many_threads_list_once_and_fetch_together() {
    const THREADS: usize = 16;
    let origin = Origin::new("r.git");
    let commits: Vec<String> =
        (0..THREADS).map(|number| origin.release(&format!("v1.0.{number}"))).collect();
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let location = written(&server.root(), "r.git");
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for commit in &commits {
            let (world, location, barrier) = (&world, &location, &barrier);
            scope.spawn(move || {
                barrier.wait();
                world.provider.list(location, None, &mu_provider::Silent).expect("can be listed");
                manifest(&world.provider, location, &locked(commit));
            });
        }
    });
    let requests = server.requests();
    let listings = requests.iter().filter(|line| line.starts_with("GET")).count();
    assert_eq!(listings, 1, "{requests:?}");
    assert!(requests.len() < THREADS, "what waits is fetched together: {requests:?}");
}

#[test]
fn two_processes_share_a_database() {
    let origin = Origin::new("r.git");
    let commits: Vec<String> =
        (0..8).map(|number| origin.release(&format!("v1.0.{number}"))).collect();
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let location = written(&server.root(), "r.git");
    let providers = [world.again(|_| {}), world.again(|_| {})];
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        for provider in &providers {
            let (location, commits, barrier) = (&location, &commits, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for commit in commits {
                    fetch(provider, location, &locked(commit), &mu_provider::Silent)
                        .expect("can be fetched");
                }
            });
        }
    });
    git(&world.database(), &["fsck", "--full", "--strict"]);
}

#[test]
fn waiting_for_another_process_is_told() {
    let origin = Origin::new("r.git");
    let commit = origin.release("v1.0.0");
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let location = written(&server.root(), "r.git");
    world.fetch(&location, &locked(&commit)).expect("can be fetched");
    let lock = files(&world.options.cache, ".git.lock").remove(0);
    let lock = fs::File::open(lock).expect("is there");
    lock.lock().expect("nobody else has it");
    let next = origin.release("v1.1.0");
    std::thread::scope(|scope| {
        let (other, notes) = (world.again(|_| {}), world.notes.clone());
        let (location, next) = (&location, &next);
        let waiting = scope.spawn(move || fetch(&other, location, &locked(next), &notes));
        world.notes.wait_for("another mu process is fetching");
        drop(lock);
        waiting.join().expect("no panic").expect("can be fetched");
    });
}

#[test]
fn fetches_are_shallow_and_later_ones_bring_only_what_is_new() {
    let origin = Origin::new("r.git");
    // Random enough that it cannot be compressed.
    let mut state = 1_u64;
    let noise: String = (0..40_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'a' + (state % 26) as u8)
        })
        .collect();
    origin.commit(&[("noise", &noise)]);
    for number in 0..20 {
        origin.release(&format!("v1.0.{number}"));
    }
    for server in [HttpServer::start(origin.root()), HttpServer::start_old(origin.root())] {
        let world = World::new();
        let location = written(&server.root(), "r.git");
        world.fetch(&location, &world.release(&location, "1.0.10")).expect("can be fetched");
        let first = world.notes.received();
        let count = git(&world.database(), &["count-objects", "-v"]);
        assert!(count.contains("in-pack: 4\n"), "commit, tree and two files: {count}");
        for version in ["1.0.11", "1.0.3"] {
            world.fetch(&location, &world.release(&location, version)).expect("can be fetched");
            let then = world.notes.received();
            assert!(then * 10 < first, "{version}: {then} bytes after {first}");
        }
        let count = git(&world.database(), &["count-objects", "-v"]);
        assert!(count.contains("in-pack: 10\n"), "three objects each: {count}");
        git(&world.database(), &["fsck", "--full", "--strict"]);
        assert!(git(&world.database(), &["log", "--all", "--oneline"]).lines().count() == 3);
    }
}

#[test]
fn a_damaged_database_is_fetched_again() {
    let origin = Origin::new("r.git");
    origin.commit(&[("a", "content of a\n"), ("b", &"content of b\n".repeat(100))]);
    let commit = origin.release("v1.0.0");
    let server = HttpServer::start(origin.root());
    let location = written(&server.root(), "r.git");
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 5] = [
        (".pack", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle..middle + 30].fill(0xaa);
        }),
        (".pack", |bytes| bytes.truncate(60)),
        (".pack", Vec::clear),
        (".idx", |bytes| bytes.truncate(100)),
        (".idx", |bytes| bytes[1100..1120].fill(7)),
    ];
    for (number, (ending, damage)) in damages.into_iter().enumerate() {
        let world = World::new();
        // The provider is dropped, because a process need not read again what it has open.
        let expected = fetch(&world.again(|_| {}), &location, &locked(&commit), &world.notes);
        let expected = expected.expect("can be fetched");
        let packs = world.database().join("objects/pack");
        let path = files(&packs, ending).remove(0);
        let mut bytes = fs::read(&path).expect("can be read");
        damage(&mut bytes);
        fs::remove_file(&path).expect("can be removed");
        fs::write(&path, bytes).expect("can be written");
        let offline = world.again(|options| options.offline = true);
        let error = fetch(&offline, &location, &locked(&commit), &world.notes);
        let error = error.expect_err(&format!("damage {number} is noticed"));
        assert!(
            matches!(error.kind(), ErrorKind::Integrity | ErrorKind::Offline),
            "damage {number}: {error:?}"
        );
        drop(offline);
        let provider = world.again(|_| {});
        let tree = fetch(&provider, &location, &locked(&commit), &world.notes);
        let tree = tree.unwrap_or_else(|error| panic!("damage {number}: {error:?}"));
        assert_eq!(tree, expected, "damage {number}");
        git(&world.database(), &["fsck", "--full", "--strict"]);
    }
}

#[test]
fn a_server_that_keeps_files_back_is_found_out() {
    let origin = Origin::new("r.git");
    let commit = origin.commit(&[("a", "content of a\n")]);
    let server = HttpServer::start(origin.root());
    let location = written(&server.root(), "r.git");
    let world = World::new();
    // As if the server had sent only the commit.
    let blob = origin.git(&["rev-parse", "HEAD:a"]);
    world.fetch(&location, &locked(&commit)).expect("can be fetched");
    let database = world.database();
    for file in files(&database.join("objects/pack"), "") {
        fs::remove_file(file).expect("can be removed");
    }
    let list = origin.git(&["rev-list", "--objects", "HEAD"]);
    let list: String = list
        .lines()
        .filter(|line| !line.starts_with(&blob))
        .map(|line| format!("{}\n", &line[..40]))
        .collect();
    let target = database.join("objects/pack/pack");
    crate::support::git_with_input(
        origin.folder(),
        &["pack-objects", "--quiet", target.to_str().expect("is UTF-8")],
        list.as_bytes(),
    );
    let provider = world.again(|_| {});
    fetch(&provider, &location, &locked(&commit), &world.notes).expect("is fetched again");
}

#[test]
fn what_a_killed_process_left_is_swept_out() {
    let origin = Origin::new("r.git");
    let commit = origin.release("v1.0.0");
    let server = HttpServer::start(origin.root());
    let location = written(&server.root(), "r.git");
    let world = World::new();
    world.fetch(&location, &locked(&commit)).expect("can be fetched");
    let packs = world.database().join("objects/pack");
    for name in ["pack_git2_abcdef", "pack-0123.idx", "pack-0123.idx.lock"] {
        fs::write(packs.join(name), "half").expect("can be written");
    }
    let next = origin.release("v1.1.0");
    fetch(&world.again(|_| {}), &location, &locked(&next), &world.notes).expect("can be fetched");
    assert_eq!(
        fs::read_dir(&packs).expect("can be read").count(),
        4,
        "two packs and their indices"
    );
}

#[test]
fn a_pack_over_the_limit_is_refused() {
    let origin = Origin::new("r.git");
    let commit = origin.release("v1.0.0");
    let server = HttpServer::start(origin.root());
    let world = World::with(|options| options.largest_pack = 100);
    let error = world.fetch(&written(&server.root(), "r.git"), &locked(&commit));
    let error = error.expect_err("is too large");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(error.to_string().contains("more than 100 bytes"), "{error}");
    let left = fs::read_dir(world.database().join("objects/pack")).expect("can be read").count();
    assert_eq!(left, 0, "nothing half done stays");
}

#[test]
fn reading_one_version_after_another_takes_few_fetches() {
    const VERSIONS: usize = 40;
    let origin = Origin::new("r.git");
    let commits: Vec<String> =
        (0..VERSIONS).map(|number| origin.release(&format!("v1.{number}.0"))).collect();
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let location = written(&server.root(), "r.git");
    world.list(&location);
    let listing = server.requests().len();
    for (number, commit) in commits.iter().enumerate().rev() {
        let text = manifest(&world.provider, &location, &locked(commit));
        assert!(text.contains(&format!("for v1.{number}.0")), "{text}");
        if number == VERSIONS - 1 {
            assert_eq!(git(&world.database(), &["rev-list", "--all"]).lines().count(), 1);
        }
    }
    let fetches = server.requests().len() - listing;
    assert!(fetches <= 6, "{fetches} fetches for {VERSIONS} versions");
}

/// The source and the target of the process that ends too early.
const TO_END: &str = "MU_TEST_FETCH_AND_END";

/// Ends the process, as a kill would, when a part of the fetch has arrived.
struct EndsIt;

impl Progress for EndsIt {
    fn bytes(&self, done: u64, _total: Option<u64>) {
        if done > 300_000 {
            std::process::abort();
        }
    }

    fn waiting(&self, _what: &str) {}

    fn warning(&self, _text: &str) {}
}

/// Not a separate test: [`a_process_that_is_killed_does_no_harm`] runs this in another process.
#[test]
fn fetch_and_end() {
    let Ok(order) = std::env::var(TO_END) else { return };
    let words: Vec<&str> = order.split(' ').collect();
    let world = World::with(|options| options.cache = words[0].into());
    let location = written(words[1], "r.git");
    let result = fetch(&world.provider, &location, &locked(words[2]), &EndsIt);
    panic!("it came to its end: {result:?}");
}

#[test]
fn a_process_that_is_killed_does_no_harm() {
    let origin = Origin::new("r.git");
    // More than is read at once, and nothing that can be compressed.
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:08x}", state >> 32)
    };
    let content: String = (0..200_000).map(|_| next()).collect();
    origin.commit(&[("a", &content)]);
    let commit = origin.release("v1.0.0");
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let order = format!("{} {} {commit}", world.options.cache.display(), server.root());
    let ended = std::process::Command::new(std::env::current_exe().expect("runs"))
        .args(["--exact", "sharing::fetch_and_end"])
        .env(TO_END, order)
        .output()
        .expect("can be run");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), None, "it did not end as if it were killed: {said}");
    let half_done = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("pack_"))
    };
    let packs = world.database().join("objects/pack");
    assert!(half_done(&packs), "it was not in the middle");

    let location = written(&server.root(), "r.git");
    world.fetch(&location, &locked(&commit)).expect("goes on where the other was killed");
    assert!(!half_done(&packs));
    git(&world.database(), &["fsck", "--full", "--strict"]);
}
