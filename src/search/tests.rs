//! The search path in real folders.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{FirstNames, InstalledPack, Query, SearchError, SearchPath, State, UnsatisfiedReason};
use crate::reference::{Defaults, PackageId, Reference, Version};
use crate::workspace::Namespace;

/// The places of `hub.mu.com/aws/ec2`, in order.
const PLACES: [&str; 8] = [
    "w/hub.mu.com/aws/ec2",
    "w/aws/ec2",
    "w/.mu/packs/hub.mu.com/aws/ec2",
    "w/.mu/packs/aws/ec2",
    "home/.mu/packs/hub.mu.com/aws/ec2",
    "home/.mu/packs/aws/ec2",
    "mu/lib/packs/hub.mu.com/aws/ec2",
    "mu/lib/packs/aws/ec2",
];

/// A workspace `w`, a home and a runtime, all empty at first.
struct World {
    folder: TempDir,
    namespace: Option<&'static str>,
}

impl World {
    fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder"), namespace: None }
    }

    fn with_namespace(namespace: &'static str) -> Self {
        Self { namespace: Some(namespace), ..Self::new() }
    }

    fn path(&self, place: &str) -> PathBuf {
        self.folder.path().join(place)
    }

    /// Adds a package at `place`, with more keys in its manifest.
    fn with(self, place: &str, rest: &str) -> Self {
        self.with_file(&format!("{place}/Mu.yaml"), &format!("name: any/name\n{rest}\n"))
    }

    fn with_file(self, file: &str, content: &str) -> Self {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("is in a folder")).expect("can make folders");
        fs::write(path, content).expect("can write");
        self
    }

    fn search_path(&self) -> SearchPath {
        let namespace = self.namespace.map(|text| {
            let reference = Reference::parse(text).expect("is a namespace");
            Namespace { base: reference.base().cloned(), name: reference.name().clone() }
        });
        SearchPath::new(
            &self.path("w"),
            namespace.as_ref(),
            &self.path("home/.mu"),
            &self.path("mu"),
        )
    }

    /// A folder as the tests write it.
    fn shown(&self, folder: &Path) -> String {
        let place = folder.strip_prefix(self.folder.path()).expect("is in the world");
        place.display().to_string()
    }

    /// Finds `reference` and compares `folder[ element][; note]`.
    fn check(&self, reference: &str, expected: &str) {
        self.check_in(&self.search_path(), reference, expected);
    }

    fn check_in(&self, path: &SearchPath, reference: &str, expected: &str) {
        let found = path.find(&wanted(reference)).unwrap_or_else(|error| panic!("{error}"));
        let mut shown = self.shown(&found.place.folder);
        if let Some(element) = found.element {
            shown.push_str(&format!(" {element}"));
        }
        for note in found.notes {
            shown.push_str(&format!("; {}", self.relative(&note.to_string())));
        }
        assert_eq!(shown, expected, "{reference}");
    }

    /// Compares the eight candidates.
    fn check_all(&self, path: &SearchPath, reference: &str, expected: [&str; 8]) {
        let candidates = path.candidates(&wanted(reference)).expect("manifests are right");
        let states: Vec<_> = candidates.iter().map(|found| found.state.to_string()).collect();
        assert_eq!(states, expected, "{reference}");
    }

    fn refused(&self, reference: &str) -> SearchError {
        self.search_path().find(&wanted(reference)).expect_err(reference)
    }

    fn relative(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

fn wanted(reference: &str) -> Query {
    let reference = Reference::parse(reference).expect("is a reference");
    Query::new(&reference, &Defaults::default())
}

fn id(text: &str) -> PackageId {
    PackageId::parse(text).expect("is an id")
}

#[test]
fn the_lower_number_wins_in_every_pair() {
    for (first, lower) in PLACES.iter().enumerate() {
        World::new().with(lower, "").check("aws/ec2", lower);
        for higher in &PLACES[first + 1..] {
            let world = World::new().with(higher, "").with(lower, "");
            world.check("aws/ec2", lower);
            world.check("https://hub.mu.com/aws/ec2.git", lower);
        }
    }
}

#[test]
fn json_before_yaml_makes_no_difference() {
    World::new()
        .with_file("w/hub.mu.com/aws/ec2/Mu.json", "{\"name\": \"aws/ec2\"}")
        .with("w/aws/ec2", "")
        .check("aws/ec2", "w/hub.mu.com/aws/ec2");
}

#[test]
fn folders_without_a_manifest_are_no_hits() {
    let world = World::new().with_file("w/aws/ec2/README.md", "").with(PLACES[3], "");
    world.check("aws/ec2", PLACES[3]);
    let path = world.search_path();
    let expected = ["miss", "miss", "miss", "hit", "miss", "miss", "miss", "miss"];
    world.check_all(&path, "aws/ec2", expected);
}

#[test]
fn packs_must_satisfy_the_version() {
    let world = World::new()
        .with(PLACES[2], "version: 1.0.0")
        .with(PLACES[3], "")
        .with(PLACES[4], "version: 2.1.0")
        .with(PLACES[5], "version: nonsense")
        .with(PLACES[7], "version: 2.0.0-rc.1");
    let path = world.search_path();
    let candidates = path.candidates(&wanted("aws/ec2#^2")).expect("manifests are right");
    let states: Vec<_> = candidates.iter().map(|found| found.state.to_string()).collect();
    assert_eq!(
        states[..5],
        [
            "miss",
            "miss",
            "passed over: version 1.0.0 does not satisfy `^2`",
            "passed over: it has no version that could satisfy `^2`",
            "hit",
        ]
    );
    assert!(states[5].starts_with("passed over: its manifest cannot be read: "), "{}", states[5]);
    assert_eq!(states[7], "passed over: version 2.0.0-rc.1 does not satisfy `^2`");
    world.check("aws/ec2#^2", PLACES[4]);
    world.check("aws/ec2#>=2.0.0-rc.1 <2.0.1", PLACES[7]);
    world.check("aws/ec2", PLACES[2]);
    let found = path.find(&wanted("aws/ec2#^2")).expect("is there");
    assert_eq!(found.passed_over.len(), 2);
    let lifted = Query { prereleases: true, ..wanted("aws/ec2#>=2.0.0-alpha <2.0.1-0") };
    assert_eq!(path.find(&lifted).expect("is there").place.number, 8);
    let lifted = Query { prereleases: true, ..wanted("aws/ec2#>1.5 <2.0.0") };
    assert_eq!(path.find(&lifted).expect("is there").place.number, 8);
}

#[test]
fn the_workspace_wins_whatever_was_asked_for() {
    let world = World::new().with("w/aws/ec2", "version: 1.0.0").with(PLACES[2], "version: 2.0.0");
    world.check("aws/ec2#^1", "w/aws/ec2");
    world.check(
        "aws/ec2#^2",
        "w/aws/ec2; `hub.mu.com/aws/ec2` is taken from the workspace at `w/aws/ec2`, \
         but version 1.0.0 does not satisfy `^2`",
    );
    world.check(
        "aws/ec2#beta1",
        "w/aws/ec2; `hub.mu.com/aws/ec2` is taken from the workspace at `w/aws/ec2`, \
         but it is not known to come from `beta1`",
    );
    let path = world.search_path();
    let expected = ["miss", "hit", "hit", "miss", "miss", "miss", "miss", "miss"];
    world.check_all(&path, "aws/ec2#^2", expected);
}

#[test]
fn a_wrong_manifest_in_the_workspace_is_an_error() {
    let world = World::new().with("w/aws/ec2", "version: nonsense").with(PLACES[2], "");
    let error = world.refused("aws/ec2");
    assert!(matches!(error, SearchError::Manifest(_)), "{error}");
    let world = World::new()
        .with("w/aws/ec2", "")
        .with_file("w/aws/ec2/Mu.json", "{\"name\": \"aws/ec2\"}");
    let error = world.refused("aws/ec2");
    assert!(world.relative(&error.to_string()).contains("`w/aws/ec2` contains both"), "{error}");
}

#[test]
fn commits_tags_and_branches_are_known_from_the_installation() {
    let world = World::new().with(PLACES[2], "version: 1.0.0");
    let path = world.search_path();
    let check = |path: &SearchPath, reference: &str, expected: &str| {
        let candidates = path.candidates(&wanted(reference)).expect("manifests are right");
        assert_eq!(candidates[2].state.to_string(), expected, "{reference}");
    };
    check(&path, "aws/ec2#abcdef0", "passed over: it is not known to come from `abcdef0`");
    check(&path, "aws/ec2#beta1", "passed over: it is not known to come from `beta1`");
    let installed = InstalledPack {
        version: Some(Version::parse("1.5.0").expect("is a version")),
        commit: Some("1895753f53a63c055e7cae81ebe4ea5d5805584f".to_owned()),
        reference: Some("v1".to_owned()),
    };
    let path = SearchPath { installed: [(world.path(PLACES[2]), installed)].into(), ..path };
    check(&path, "aws/ec2#1895753", "hit");
    check(&path, "aws/ec2#1895753f53a63c055e7cae81ebe4ea5d5805584f", "hit");
    check(&path, "aws/ec2#v1", "hit");
    check(&path, "aws/ec2#1.5.0", "hit");
    check(&path, "aws/ec2#1.0.0", "passed over: version 1.5.0 does not satisfy `1.0.0`");
    check(&path, "aws/ec2#beta1", "passed over: it came from `v1`, not from `beta1`");
    check(
        &path,
        "aws/ec2#abcdef0",
        "passed over: it came from `1895753f53a63c055e7cae81ebe4ea5d5805584f`, not from `abcdef0`",
    );
}

#[test]
fn the_namespace_is_stripped_in_the_workspace_alone() {
    let world = World::with_namespace("aws")
        .with("w/ec2", "")
        .with("w/aws/vpc", "")
        .with("w", "")
        .with("w/.mu/packs/iam", "")
        .with("w/awsome", "");
    world.check("aws/ec2", "w/ec2");
    world.check("acme.co/aws/ec2", "w/ec2");
    world.check("aws", "w");
    world.check("awsome", "w/awsome");
    for reference in ["aws/vpc", "aws/iam"] {
        let error = world.refused(reference).to_string();
        assert!(error.contains("`hub.mu.com/aws` in"), "{error}");
    }
}

#[test]
fn a_namespace_with_a_base_holds_for_that_base() {
    let world = World::with_namespace("hub.mu.com/aws").with("w/ec2", "").with("w/aws/ec2", "");
    world.check("aws/ec2", "w/ec2");
    world.check("acme.co/aws/ec2", "w/aws/ec2");
}

#[test]
fn a_namespace_may_have_several_segments() {
    let world = World::with_namespace("acme/infra").with("w/vpc", "").with("w/acme/vpc", "");
    world.check("acme/infra/vpc", "w/vpc");
    world.check("acme/vpc", "w/acme/vpc");
}

#[test]
fn ports_are_part_of_the_place() {
    let world = World::new().with("w/localhost+8080/a", "").with("w/.mu/packs/localhost+81/b", "");
    world.check("http://localhost:8080/a", "w/localhost+8080/a");
    world.check("localhost:81/b", "w/.mu/packs/localhost+81/b");
    let world = World::new().with("w/.mu/packs/localhost/b", "");
    world.check("http://localhost:80/b", "w/.mu/packs/localhost/b");
}

#[test]
fn no_name_leads_into_the_folder_of_mu() {
    let path = World::new().search_path();
    for reference in ["/.mu/packs/a", "git+file:///.mu/packs/a.git"] {
        let [first, second, ..] = path.package_places(&wanted(reference).id);
        assert!(first.folder.ends_with("w/localhost/_2emu/packs/a"), "{first}");
        assert!(second.folder.ends_with("w/_2emu/packs/a"), "{second}");
    }
    assert!(Reference::parse(".mu/packs/a").is_err());
    assert!(Reference::parse("a/.mu").is_err());
}

#[test]
fn first_names_tell_which_packages_a_packs_folder_may_hold() {
    for place in PLACES.iter().skip(2) {
        let world = World::new().with(place, "").with_file("w/.mu/packs/state", "");
        let world = world.with_file("w/.mu/packs/.mu/lock", "");
        let path = world.search_path();
        let may_hold = |reference: &str| {
            let id = wanted(reference).id;
            path.packs
                .iter()
                .filter(|packs| FirstNames::read(std::slice::from_ref(*packs)).may_hold(&id))
                .count()
        };
        assert_eq!(may_hold("aws/ec2"), 1, "{place}");
        assert_eq!(may_hold("other.example/gcp/ec2"), 0, "{place}");
        assert_eq!(may_hold("state"), usize::from(place.contains("hub.mu.com")), "{place}");
    }
}

#[test]
fn the_runtime_may_keep_its_packs_in_bin() {
    World::new().with("mu/bin/packs/aws/ec2", "").check("aws/ec2", "mu/bin/packs/aws/ec2");
    let both = World::new().with("mu/bin/packs/aws/ec2", "").with("mu/lib/packs/aws/vpc", "");
    assert!(matches!(both.refused("aws/ec2"), SearchError::NotFound { .. }));
}

#[test]
fn other_majors_are_beside_the_highest() {
    let world = World::new()
        .with("w/.mu/packs/aws/ec2", "version: 12.0.0")
        .with("w/.mu/packs/aws/ec2@9", "version: 9.1.0")
        .with("w/.mu/packs/aws/ec2@10", "version: 10.1.0")
        .with("w/.mu/packs/aws/ec2@x", "version: 8.0.0")
        .with("w/.mu/packs/aws/vpc@1", "version: 1.0.0");
    let path = SearchPath { has_many_majors: true, ..world.search_path() };
    world.check_in(&path, "aws/ec2", "w/.mu/packs/aws/ec2");
    world.check_in(&path, "aws/ec2#^9", "w/.mu/packs/aws/ec2@9");
    world.check_in(&path, "aws/ec2#<12", "w/.mu/packs/aws/ec2@10");
    world.check_in(&path, "aws/vpc", "w/.mu/packs/aws/vpc@1");
    assert!(path.find(&wanted("aws/ec2#^8")).is_err());
    let states = ["miss", "miss", "miss", "passed over: version 1.0.0 does not satisfy `^2`"];
    let candidates = path.candidates(&wanted("aws/vpc#^2")).expect("manifests are right");
    let found: Vec<_> = candidates[..4].iter().map(|found| found.state.to_string()).collect();
    assert_eq!(found, states);
    assert!(matches!(world.refused("aws/ec2#^9"), SearchError::NotFound { .. }));
}

#[test]
fn what_was_replaced_leads_to_its_replacement() {
    let world = World::new().with("w/.mu/packs/contrib/family", "version: 1.0.0");
    let replaced = [
        (id("hub.mu.com/upbound/family"), id("hub.mu.com/contrib/family")),
        (id("hub.mu.com/a"), id("hub.mu.com/b")),
        (id("hub.mu.com/b"), id("hub.mu.com/a")),
    ];
    let path = SearchPath { replaced: replaced.into(), ..world.search_path() };
    let note = "; `hub.mu.com/upbound/family` was replaced by `hub.mu.com/contrib/family`";
    let expected = format!("w/.mu/packs/contrib/family{note}");
    world.check_in(&path, "upbound/family", &expected);
    assert!(path.find(&wanted("upbound/family#^2")).is_err());
    assert!(path.find(&wanted("a")).is_err());

    let world = world.with("w/.mu/packs/upbound/family", "");
    world.check_in(&path, "upbound/family", &expected);
    let state = "passed over: replaced by `hub.mu.com/contrib/family`";
    let expected = ["miss", "miss", "miss", state, "miss", "miss", "miss", "miss"];
    world.check_all(&path, "upbound/family", expected);

    let world = world.with("w/upbound/family", "");
    world.check_in(&path, "upbound/family", "w/upbound/family");
}

#[test]
fn elements_belong_to_the_longest_package() {
    let exports =
        "exports:\n  VM: {kind: class, path: vm.ts}\n  net/Vpc: {kind: class, path: v.ts}";
    let world = World::new()
        .with("w/.mu/packs/aws/ec2", exports)
        .with("w/.mu/packs/aws", "exports: {ec2: {kind: module, path: x.ts}}")
        .with("w/.mu/packs/aws/s3", "version: 1.0.0\nexports: {Bucket: {kind: class, path: b.ts}}");
    world.check("aws/ec2", "w/.mu/packs/aws/ec2");
    world.check("aws/ec2/VM", "w/.mu/packs/aws/ec2 VM");
    world.check("aws/ec2/net/Vpc", "w/.mu/packs/aws/ec2 net/Vpc");
    world.check("aws/s3/Bucket#^1", "w/.mu/packs/aws/s3 Bucket");

    let error = world.refused("aws/ec2/VN");
    assert_eq!(
        world.relative(&error.to_string()),
        "there is no package `hub.mu.com/aws/ec2/VN`, \
         and `hub.mu.com/aws/ec2` in `w/.mu/packs/aws/ec2` exports no `VN`"
    );
    assert_eq!(error.search_hints()[..2], ["it exports `VM`, `net/Vpc`", "did you mean `VM`?"]);
    let exact = world.search_path().find_package(&wanted("aws/ec2/VM"));
    assert!(matches!(exact, Err(SearchError::NotFound { .. })));
    let error = world.refused("aws/s3/Bucket#^2");
    assert!(matches!(error, SearchError::NotFound { .. }), "{error}");
    let passed: Vec<_> = error.looked_at()[8..]
        .iter()
        .map(|candidate| world.relative(&candidate.to_string()))
        .collect();
    assert_eq!(
        passed,
        [
            "4. w/.mu/packs/aws/s3: passed over: version 1.0.0 does not satisfy `^2`",
            "4. w/.mu/packs/aws: passed over: it has no version that could satisfy `^2`",
        ]
    );
}

#[test]
fn a_missing_package_lists_every_place() {
    let world = World::new().with_file("w/aws/ec2/mu.yaml", "name: aws/ec2");
    let error = world.refused("aws/ec2#^1");
    assert_eq!(
        error.to_string(),
        "there is no package `hub.mu.com/aws/ec2#^1` in the workspace or among the packs"
    );
    let places: Vec<_> =
        error.looked_at().iter().map(|found| world.relative(&found.to_string())).collect();
    let expected: Vec<_> =
        PLACES.iter().enumerate().map(|(at, place)| format!("{}. {place}: miss", at + 1)).collect();
    assert_eq!(places, expected);
    let hints = error.search_hints();
    assert!(hints[0].contains("mu.yaml") && hints[0].contains("`Mu.yaml`"), "{hints:?}");
    assert!(hints[1].contains("8. "), "{hints:?}");
}

#[cfg(unix)]
#[test]
fn links_to_packages_are_hits() {
    let world = World::new().with("elsewhere/ec2", "").with_file("w/aws/README.md", "");
    std::os::unix::fs::symlink(world.path("elsewhere/ec2"), world.path("w/aws/ec2"))
        .expect("can link");
    world.check("aws/ec2", "w/aws/ec2");
}

#[test]
#[cfg(unix)]
fn packs_of_the_workspace_behind_links_are_passed_over() {
    let disk = tempfile::tempdir().expect("a temporary folder");
    let at = |path: &str| disk.path().join(path);
    let put = |path: &str| {
        std::fs::create_dir_all(at(path)).expect("makes");
        std::fs::write(at(path).join("Mu.yaml"), "name: aws/ec2\nversion: 1.0.0\n")
            .expect("writes");
    };
    put("elsewhere/ec2");
    put("store/trees/1/files");
    let search = SearchPath {
        trees: Some(at("store/trees")),
        ..SearchPath::new(&at("w"), None, &at("home"), &at("root"))
    };
    let wanted = Query::new(&Reference::parse("aws/ec2").expect("is one"), &Defaults::default());
    let third = || search.candidates(&wanted).expect("looks").remove(2);
    let link = |target: &str, path: &str| {
        let _ = std::fs::remove_dir_all(at("w/.mu/packs"));
        std::fs::create_dir_all(at(path).parent().expect("is below")).expect("makes");
        std::os::unix::fs::symlink(at(target), at(path)).expect("links");
    };
    for (target, path) in [
        ("elsewhere", "w/.mu/packs/hub.mu.com/aws"),
        ("elsewhere/ec2", "w/.mu/packs/hub.mu.com/aws/ec2"),
    ] {
        link(target, path);
        let State::PassedOver(reason) = third().state else { panic!("{path} is followed") };
        assert_eq!(reason, UnsatisfiedReason::Link(at(path)));
    }
    // Only mu links a pack to the store.
    link("store/trees/1/files", "w/.mu/packs/hub.mu.com/aws/ec2");
    assert!(third().hit().is_some());
}
