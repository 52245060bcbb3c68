//! Which releases are listed for the refs of a repository.

use mu_provider::{Listing, Provider as _, Release};

use crate::support::{HttpServer, Origin, World, local, manifest, written};

/// `VERSION TAGS` of every release, and `tip` for the default branch.
fn shown(releases: &[Release]) -> Vec<String> {
    let show = |release: &Release| {
        let tip = if release.tip { " tip" } else { "" };
        format!("{} {}{tip}", release.version, release.tags.join(",")).trim().to_owned()
    };
    releases.iter().map(show).collect()
}

#[test]
fn every_form_of_a_tag() {
    let (world, origin) = (World::new(), Origin::new("r.git"));
    let first = origin.release("1.0.0");
    origin.git(&["tag", "-a", "v1.10.0", "-m", "annotated"]);
    let second = origin.release("v1.2.0-rc.1");
    origin.git(&["tag", "v1"]);
    origin.git(&["tag", "1.28"]);
    origin.git(&["tag", "release/2026"]);
    origin.git(&["branch", "dev", "HEAD~1"]);
    let location = local(origin.folder());
    let releases = world.list(&location);
    assert_eq!(
        shown(&releases),
        [
            "1.0.0 1.0.0",
            "1.2.0-rc.1 v1.2.0-rc.1",
            "1.10.0 v1.10.0",
            "1.28",
            "release/2026",
            "v1",
            "dev",
            "main tip"
        ]
    );
    let of = |index: usize| releases[index].revision().expect("every release has one").to_owned();
    assert_eq!((of(0), of(1)), (first.clone(), second));
    assert_eq!(of(2), first, "an annotated tag is its commit");
    assert_eq!(releases[2].reference.as_deref(), Some("refs/tags/v1.10.0"));
    assert_eq!(releases[6].reference.as_deref(), Some("refs/heads/dev"));
    assert!(releases.iter().all(|release| release.dependencies.is_none()));

    let mut lenient = location;
    lenient.lenient = true;
    assert_eq!(
        shown(&world.list(&lenient))[..5],
        ["1.0.0 1.0.0,v1", "1.2.0-rc.1 v1.2.0-rc.1", "1.10.0 v1.10.0", "1.28 1.28", "release/2026"]
            .map(|line| if line == "1.0.0 1.0.0,v1" { "1.0.0 1.0.0" } else { line })
    );
}

#[test]
fn the_listing_of_this_run_counts_before_the_stored_one() {
    let (world, origin) = (World::new(), Origin::new("r.git"));
    let first = origin.release("v1.0.0");
    let location = local(origin.folder());
    let release = world.release(&location, "1.0.0");
    world.fetch(&location, &release).expect("can be fetched, and stores the listing");

    origin.git(&["tag", "v1.1.0"]);
    origin.commit(&[("later", "")]);
    origin.git(&["tag", "--force", "v1.0.0"]);
    let next = world.again(|_| {});
    let versions = || {
        let releases = next
            .releases_of(&location, &first.parse().expect("is a commit"), "1.0.0")
            .expect("is known");
        releases.into_iter().map(|release| release.version).collect::<Vec<_>>()
    };
    assert_eq!(versions(), ["1.0.0"], "nobody was asked yet");
    next.list(&location, None, &world.notes).expect("can be listed");
    assert_eq!(versions(), ["1.1.0"]);
}

#[test]
fn packages_in_folders_have_versions_of_their_own() {
    let (world, origin) = (World::new(), Origin::new("mono.git"));
    origin.commit(&[("a/Mu.yaml", "name: m/a\n# one\n"), ("b/c/Mu.yaml", "name: m/c\n# one\n")]);
    origin.git(&["tag", "v1.0.0"]);
    origin.commit(&[("b/c/Mu.yaml", "name: m/c\n# two\n"), ("b/c/x.txt", "x\n")]);
    origin.git(&["tag", "b/c/v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let (a, c) = (written(&server.root(), "mono.git/a"), written(&server.root(), "mono.git/b/c"));
    assert_eq!(shown(&world.list(&a)), ["1.0.0 v1.0.0", "b/c/v1.0.0", "main tip"]);
    assert_eq!(shown(&world.list(&c)), ["1.0.0 b/c/v1.0.0", "v1.0.0", "main tip"]);
    assert_eq!(server.requests().len(), 2, "one listing for both: {:?}", server.requests());

    let text =
        |location, version| manifest(&world.provider, location, &world.release(location, version));
    assert!(text(&a, "1.0.0").contains("# one") && text(&c, "1.0.0").contains("# two"));
    assert_eq!(world.paths(&c, &world.release(&c, "1.0.0")), ["Mu.yaml", "x.txt"]);

    let absent = written(&server.root(), "mono.git/nothing");
    let release = world.release(&absent, "1.0.0");
    let error =
        world.provider.manifest(&absent, &release, &world.notes).expect_err("no such folder");
    assert_eq!(error.kind(), mu_provider::ErrorKind::NotFound);
    assert!(error.to_string().contains("`nothing`"), "{error}");
}

#[test]
fn a_tag_wins_over_a_branch_of_the_same_name() {
    let (world, origin) = (World::new(), Origin::new("r.git"));
    let tagged = origin.release("both");
    origin.commit(&[("x", "1")]);
    origin.git(&["branch", "both"]);
    let releases = world.list(&local(origin.folder()));
    // The branch has only its full name left.
    assert_eq!(shown(&releases), ["both", "", "main tip"]);
    assert_eq!(releases[1].reference.as_deref(), Some("refs/heads/both"));
    assert_eq!(releases[0].commit.as_deref(), Some(&*tagged));
}

#[test]
fn the_default_branch_is_heads() {
    let (world, origin) = (World::new(), Origin::new("r.git"));
    origin.commit(&[("x", "1")]);
    origin.git(&["branch", "aaa"]);
    origin.git(&["checkout", "--quiet", "-b", "trunk"]);
    for old in [false, true] {
        let server = if old {
            HttpServer::start_old(origin.root())
        } else {
            HttpServer::start(origin.root())
        };
        let releases = world.list(&written(&server.root(), "r.git"));
        assert_eq!(shown(&releases), ["aaa", "main", "trunk tip"], "old server: {old}");
    }
}

#[test]
fn an_empty_repository_has_no_releases() {
    let (world, origin) = (World::new(), Origin::new("r.git"));
    for server in [HttpServer::start(origin.root()), HttpServer::start_old(origin.root())] {
        assert_eq!(shown(&world.list(&written(&server.root(), "r.git"))), [""; 0]);
    }
}

#[test]
fn what_did_not_change_is_not_listed_again() {
    let (world, origin) = (World::new(), Origin::new("r.git"));
    origin.release("v1.0.0");
    let location = local(origin.folder());
    let list = |validator: Option<&str>| {
        let provider = world.again(|_| {});
        provider.list(&location, validator, &world.notes).expect("can be listed")
    };
    let Listing::Found(found) = list(None) else { panic!("is there") };
    let validator = found.validator.expect("there is one");
    assert!(matches!(list(Some(&validator)), Listing::Unchanged { .. }));
    origin.release("v1.1.0");
    let Listing::Found(found) = list(Some(&validator)) else { panic!("has changed") };
    assert_ne!(found.validator, Some(validator));
}

#[test]
fn a_repository_needs_no_manifest_but_not_two() {
    let (world, origin) = (World::new(), Origin::new("r.git"));
    origin.commit(&[("README.md", "hello\n")]);
    origin.git(&["tag", "v1.0.0"]);
    origin.commit(&[("mu.yaml", "name: a/b\n")]);
    origin.git(&["tag", "v1.1.0"]);
    origin.commit(&[("Mu.json", "{}")]);
    origin.git(&["tag", "v1.2.0"]);
    origin.commit(&[("Mu.yaml", "name: a/b\n")]);
    origin.git(&["tag", "v1.3.0"]);
    let location = local(origin.folder());
    let read = |version| {
        let release = world.release(&location, version);
        world.provider.manifest(&location, &release, &world.notes)
    };
    assert_eq!(read("1.0.0").expect("is fine"), None);
    assert_eq!(read("1.1.0").expect("is fine"), None);
    assert!(
        world.notes.said().contains("a manifest's name is `Mu.yaml`"),
        "{}",
        world.notes.said()
    );
    assert_eq!(read("1.2.0").expect("is fine").expect("is there").name, "Mu.json");
    let error = read("1.3.0").expect_err("there are two");
    assert_eq!(error.kind(), mu_provider::ErrorKind::Manifest);
}
