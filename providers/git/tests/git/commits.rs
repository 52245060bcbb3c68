//! Commits: full ones, short ones, those that no ref leads to, and missing ones.

use mu_provider::{ErrorKind, Provider as _, Release};

use crate::support::{Daemon, HttpServer, Origin, World, local, locked, written};

/// A history whose third commit is a version, with something before and after.
fn history() -> (Origin, Vec<String>) {
    let origin = Origin::new("r.git");
    let mut commits: Vec<String> =
        (0..3).map(|number| origin.commit(&[("x", &number.to_string())])).collect();
    commits.push(origin.release("v1.0.0"));
    commits.push(origin.commit(&[("x", "after")]));
    (origin, commits)
}

#[test]
fn any_commit_can_be_asked_for() {
    let (origin, commits) = history();
    let new = HttpServer::start(origin.root());
    let old = HttpServer::start_old(origin.root());
    let daemon = Daemon::start(origin.root());
    for root in
        [new.root(), old.root(), daemon.root(), format!("file://{}/", origin.root().display())]
    {
        for (index, commit) in commits.iter().enumerate() {
            let world = World::new();
            let location = written(&root, "r.git");
            for revision in [&commit[..], &commit[..9], &commit[..20].to_uppercase()] {
                let release = world.provider.resolve(&location, revision, &world.notes);
                let release =
                    release.unwrap_or_else(|error| panic!("{root} {revision}: {error:?}"));
                assert_eq!(release.commit.as_deref(), Some(&**commit));
                let version = if index == 3 { "1.0.0" } else { "" };
                assert_eq!(release.version, version, "{root} {revision}");
            }
            let tree = world.fetch(&location, &locked(commit)).expect("can be fetched");
            assert!(tree.entries().iter().any(|entry| entry.path == "x"));
        }
    }
}

#[test]
fn servers_that_give_only_whole_histories_are_asked_for_them() {
    let (origin, commits) = history();
    for filter in ["true", "false"] {
        origin.git(&["config", "uploadpack.allowFilter", filter]);
        let server = HttpServer::start_old(origin.root());
        let world = World::new();
        let location = written(&server.root(), "r.git");
        let found = world.provider.resolve(&location, &commits[1][..8], &world.notes);
        assert_eq!(found.expect("is there").commit.as_deref(), Some(&*commits[1]), "{filter}");
        // With a filter, the history came without files, into a database of its own.
        let databases = world.databases().len();
        assert_eq!(databases, if filter == "true" { 2 } else { 1 });
        for database in world.databases() {
            let whole = crate::support::git(&database, &["rev-list", "--all"]);
            assert_eq!(whole.lines().count(), commits.len(), "{filter}");
        }
    }
}

#[test]
fn one_commit_is_fetched_not_the_history() {
    let (origin, commits) = history();
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let location = written(&server.root(), "r.git");
    world.fetch(&location, &locked(&commits[1])).expect("can be fetched");
    assert_eq!(server.requests().len(), 2, "{:?}", server.requests());
    let count = crate::support::git(&world.database(), &["count-objects", "-v"]);
    assert!(count.contains("in-pack: 3\n"), "commit, tree and file: {count}");
}

#[test]
fn what_is_there_costs_no_network() {
    let (origin, commits) = history();
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let location = written(&server.root(), "r.git");
    let release = world.release(&location, "1.0.0");
    world.fetch(&location, &release).expect("can be fetched");
    let before = server.requests().len();
    for offline in [false, true] {
        let provider = world.again(|options| options.offline = offline);
        for revision in [&commits[3][..], &commits[3][..7]] {
            let release = provider.resolve(&location, revision, &world.notes).expect("is there");
            assert_eq!(release.version, "1.0.0", "the last listing is remembered");
        }
        crate::support::manifest(&provider, &location, &release);
        crate::support::fetch(&provider, &location, &release, &world.notes).expect("is there");
    }
    assert_eq!(server.requests().len(), before);
}

#[test]
fn offline_says_what_is_missing() {
    let (origin, commits) = history();
    let server = HttpServer::start(origin.root());
    let world = World::with(|options| options.offline = true);
    let location = written(&server.root(), "r.git");
    let errors = [
        world.provider.list(&location, None, &world.notes).expect_err("is offline"),
        world.provider.resolve(&location, &commits[0], &world.notes).expect_err("is offline"),
        world.provider.resolve(&location, &commits[0][..8], &world.notes).expect_err("is offline"),
        world.fetch(&location, &locked(&commits[0])).expect_err("is offline"),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Offline, "{error}");
        assert!(error.to_string().contains("r.git"), "{error}");
    }
    assert!(server.requests().is_empty());
    world.fetch(&local(origin.folder()), &locked(&commits[0])).expect("is on this machine");
}

#[test]
fn an_ambiguous_commit_names_the_candidates() {
    let origin = Origin::new("r.git");
    origin.commit(&[("x", "1")]);
    // Two commits that begin with the same 7 digits, found by search: the messages differ.
    let tree = origin.git(&["rev-parse", "HEAD^{tree}"]);
    let identity = "Ada <ada@example.com> 1767225600 +0000";
    let commit = |message: &str| {
        format!("tree {tree}\nauthor {identity}\ncommitter {identity}\n\n{message}\n")
    };
    let twins = find_twins(commit);
    let commits: Vec<String> =
        twins.iter().map(|text| origin.object("commit", text.as_bytes())).collect();
    assert_eq!(commits[0][..7], commits[1][..7]);
    for (branch, commit) in ["one", "two"].iter().zip(&commits) {
        origin.git(&["branch", branch, commit]);
    }
    let world = World::new();
    let location = local(origin.folder());
    let error = world.provider.resolve(&location, &commits[0][..7], &world.notes);
    let error = error.expect_err("is ambiguous");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let text = error.to_string();
    assert!(text.contains(&commits[0]) && text.contains(&commits[1]), "{text}");
    let longer = world.provider.resolve(&location, &commits[0], &world.notes).expect("is certain");
    assert_eq!(longer.commit.as_deref(), Some(&*commits[0]));
}

/// Two texts that `text` makes whose names as commits begin with the same 28 bits.
fn find_twins(text: impl Fn(&str) -> String) -> [String; 2] {
    let mut seen = std::collections::HashMap::new();
    for number in 0_u32.. {
        let candidate = text(&number.to_string());
        let oid = git2::Oid::hash_object(git2::ObjectType::Commit, candidate.as_bytes());
        let prefix = oid.expect("can be hashed").to_string()[..7].to_owned();
        if let Some(earlier) = seen.insert(prefix, number) {
            return [text(&earlier.to_string()), candidate];
        }
    }
    unreachable!("there are fewer prefixes than numbers")
}

#[test]
fn an_unknown_commit_is_not_found() {
    let (origin, _) = history();
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let location = written(&server.root(), "r.git");
    for revision in
        ["0123456789abcdef0123456789abcdef01234567", "0123456", "012345", "master", "", "zzzzzzzz"]
    {
        let error =
            world.provider.resolve(&location, revision, &world.notes).expect_err("is not there");
        assert_eq!(error.kind(), ErrorKind::NotFound, "{revision}: {error}");
        assert!(!error.hints().is_empty(), "{revision}: {error}");
    }
}

#[test]
fn a_release_without_a_commit_is_refused() {
    let (origin, _) = history();
    let world = World::new();
    // One of SHA-256 is in no repository that libgit2 can read.
    for release in [Release::default(), locked(&"a".repeat(64))] {
        let error = world.fetch(&local(origin.folder()), &release).expect_err("there is no commit");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
