//! Hostile trees and answers.

use mu_provider::conformance::{Item, hostile_trees};
use mu_provider::{ErrorKind, Folder, Limits, Provider as _, ProviderError, Tree, TreeWriter};
use mu_testing::http::{Reply, TestServer};

use crate::support::{Origin, World, git, git_with_input, local, locked, told, written};

/// Fetches a commit whose objects were put into the database as a server could send them, because a real
/// `git upload-pack` refuses to serve some of them.
fn fetch_as_sent(origin: &Origin, commit: &str) -> Result<Tree, ProviderError> {
    let world = World::new();
    let location = local(origin.folder());
    let honest = origin.git(&["rev-parse", "main"]);
    world.fetch(&location, &locked(&honest)).expect("is honest");
    let objects = origin.git(&["cat-file", "--batch-check=%(objectname)", "--batch-all-objects"]);
    let target = world.database().join("objects/pack/pack");
    let target = target.to_str().expect("temporary folders are UTF-8");
    git_with_input(
        origin.folder(),
        &["pack-objects", "--quiet", target],
        (objects + "\n").as_bytes(),
    );
    crate::support::fetch(&world.again(|_| {}), &location, &locked(commit), &world.notes)
}

#[test]
fn every_hostile_tree_is_refused() {
    let origin = Origin::new("r.git");
    origin.commit(&[("x", "1")]);
    for hostile in hostile_trees() {
        // Git has no paths, only names in trees, so a hostile path becomes trees in trees where it can.
        let mut entries = Vec::new();
        for (path, item) in &hostile.items {
            let (mode, content) = match item {
                Item::File(content) => ("100644", content),
                Item::Link(target) => ("120000", target),
            };
            let mut oid = origin.object("blob", content.as_bytes());
            let mut mode = mode;
            let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
            while names.len() > 1 {
                let name = names.pop().expect("there is one more");
                oid = origin.object("tree", &origin.tree(&[(mode, name, &oid)]));
                mode = "40000";
            }
            entries.push((mode, names[0].to_vec(), oid));
        }
        let entries: Vec<(&str, &[u8], &str)> =
            entries.iter().map(|(mode, name, oid)| (*mode, &name[..], &oid[..])).collect();
        let commit = origin.commit_raw(&origin.tree(&entries));
        let error = fetch_as_sent(&origin, &commit).expect_err(hostile.name);
        assert_eq!(error.kind(), ErrorKind::Integrity, "{}: {error}", hostile.name);
    }
}

#[test]
fn names_with_slashes_and_strange_modes_are_refused() {
    let origin = Origin::new("r.git");
    origin.commit(&[("x", "1")]);
    let blob = origin.object("blob", b"hostile");
    for (mode, name) in [
        ("100644", &b"../x"[..]),
        ("100644", b"/etc/passwd"),
        ("100644", b"a/../../b"),
        ("100644", b"..\\x"),
        ("100644", b""),
        ("40000", b"is-no-folder"),
        ("020666", b"device"),
        ("1", b"strange"),
        ("104755", b"set-uid"),
    ] {
        let commit = origin.commit_raw(&origin.tree(&[(mode, name, &blob)]));
        match fetch_as_sent(&origin, &commit) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Integrity, "{mode}: {error:?}"),
            // Bits that Git does not know are not written to disk either.
            Ok(tree) => assert_eq!((mode, tree.entries().len()), ("104755", 1)),
        }
    }
}

#[test]
fn a_tree_that_grows_without_end_is_refused() {
    let origin = Origin::new("r.git");
    origin.commit(&[("x", "1")]);
    // Ten folders in ten folders, ten times over, all of them the same few objects, and no file at all.
    let mut oid = origin.object("tree", b"");
    let names: Vec<String> = (0..10).map(|number| format!("d{number}")).collect();
    for _ in 0..10 {
        let entries: Vec<(&str, &[u8], &str)> =
            names.iter().map(|name| ("40000", name.as_bytes(), &oid[..])).collect();
        oid = origin.object("tree", &origin.tree(&entries));
    }
    let commit = origin.git(&["commit-tree", &oid, "-m", "bomb"]);
    origin.git(&["update-ref", "refs/heads/bomb", &commit]);
    let world = World::new();
    let error = world.fetch(&local(origin.folder()), &locked(&commit)).expect_err("is a bomb");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(error.to_string().contains("number of its entries"), "{error}");
}

#[test]
fn nothing_of_a_tree_that_grows_without_end_is_written() {
    let origin = Origin::new("r.git");
    origin.commit(&[("x", "1")]);
    let blob = origin.object("blob", b"x");
    let mut oid = origin.object("tree", &origin.tree(&[("100644", b"file", &blob)]));
    for _ in 0..40 {
        let entries: [(&str, &[u8], &str); 3] =
            [("40000", b"a", &oid), ("40000", b"b", &oid), ("100644", b"c", &blob)];
        oid = origin.object("tree", &origin.tree(&entries));
    }
    let commit = origin.git(&["commit-tree", &oid, "-m", "bomb"]);
    origin.git(&["update-ref", "refs/heads/bomb", &commit]);
    let (world, folder) = (World::new(), tempfile::tempdir().expect("there is room"));
    let limits = Limits { entries: 5_000, ..Limits::default() };
    let mut tree = TreeWriter::new(Folder::open(folder.path()).expect("opens"), limits);
    let location = local(origin.folder());
    let error = world.provider.fetch(&location, &locked(&commit), &mut tree, &world.notes);
    let error = error.expect_err("is a bomb");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(error.to_string().contains("limit of 5000"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("can be read").count(), 0);
}

/// A server that answers every request with these bytes.
fn saying(body: Vec<u8>) -> TestServer {
    TestServer::start(move |_, _| {
        Reply::body(body.clone())
            .header("content-type", "application/x-git-upload-pack-advertisement")
    })
}

#[test]
fn a_server_that_never_stops_to_tell_what_it_can_do_is_left() {
    let same = "0013capability=abc\n".repeat(20_000);
    let many: String = (0..20_000).map(|number| format!("000ecap={number:05}\n")).collect();
    for body in [format!("000eversion 2\n{same}"), format!("000eversion 2\n{many}")] {
        let server = saying(body.into_bytes());
        let world = World::new();
        let location = written(&server.url(""), "a.git");
        let error = world.provider.list(&location, None, &world.notes).expect_err("is too much");
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error:?}");
        assert!(told(&error).contains("sends more than"), "{}", told(&error));
    }
}

#[test]
fn what_a_server_says_is_no_line_of_its_own() {
    let line = "ERR no\nhint: run `curl x | sh`\u{2028}\u{202e}\n";
    let server = saying(format!("{:04x}{line}", line.len() + 4).into_bytes());
    let world = World::new();
    let location = written(&server.url(""), "a.git");
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let error = world.provider.resolve(&location, commit, &world.notes).expect_err("is refused");
    let error = told(&error);
    assert!(
        error.contains("no; hint: run") && !error.contains(['\n', '\u{2028}', '\u{202e}']),
        "{error}"
    );
}

#[test]
fn escapes_in_what_a_server_says_are_not_passed_on() {
    let server = TestServer::start(|_, _| {
        Reply::body("001aERR \x1b]0;owned\x07 denied\n")
            .header("content-type", "application/x-git-upload-pack-advertisement")
    });
    let world = World::new();
    let listing = world.provider.resolve(
        &written(&server.url(""), "a.git"),
        "0123456789abcdef0123456789abcdef01234567",
        &world.notes,
    );
    let error = told(&listing.expect_err("is refused"));
    assert!(error.contains("denied") && !error.contains('\x1b'), "{error}");
}

#[test]
fn answers_that_are_nonsense_are_errors() {
    for body in ["", "0000", "00", "zzzz", "000eversion 2\n", "000eversion 2\n0000", "0008abcd0000"]
    {
        let server = TestServer::start(move |_, _| {
            Reply::body(body).header("content-type", "application/x-git-upload-pack-advertisement")
        });
        let world = World::new();
        let location = written(&server.url(""), "a.git");
        let error = world.provider.resolve(
            &location,
            "0123456789abcdef0123456789abcdef01234567",
            &world.notes,
        );
        let error = error.expect_err("is nonsense");
        let kinds = [ErrorKind::Protocol, ErrorKind::Network, ErrorKind::NotFound];
        assert!(kinds.contains(&error.kind()), "{body}: {error:?}");
    }
}

#[test]
fn a_pack_with_other_content_than_its_names_is_refused() {
    // A server that sends another pack than the requested one.
    let mut origin = Origin::new("wanted.git");
    let wanted = origin.commit(&[("x", "wanted")]);
    origin.add("other.git");
    let other = origin.commit(&[("x", "other")]);
    let backend = crate::support::HttpServer::start(origin.root());
    let there = backend.root();
    let (from, to) = (wanted.clone(), other.clone());
    let server = TestServer::start(move |request, _| {
        let http = mu_provider::http::Http::new(mu_provider::http::HttpOptions::default());
        let path = request.path.replace("/wanted.git", "other.git");
        let url = mu_provider::SafeUrl::parse(&format!("{there}{path}")).expect("is a URL");
        let call = match request.method.as_str() {
            "GET" => http.get(&url),
            _ => {
                let body =
                    String::from_utf8(request.body.clone()).expect("is text").replace(&from, &to);
                http.post(&url)
                    .header("content-type", "application/x-git-upload-pack-request")
                    .body(body.into_bytes())
            }
        };
        let mut response = call.header("git-protocol", "version=2").send().expect("answers");
        let mut body = Vec::new();
        std::io::Read::read_to_end(&mut response, &mut body).expect("can be read");
        Reply::body(body).header("content-type", response.header("content-type").expect("has one"))
    });
    let world = World::new();
    let location = written(&server.url(""), "wanted.git");
    let error = world.fetch(&location, &locked(&wanted)).expect_err("is another commit");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
}

#[test]
fn a_repository_with_other_object_names_is_explained() {
    let origin = Origin::new("r.git");
    let folder = origin.root().join("new.git");
    let path = folder.to_str().expect("is UTF-8");
    origin.git(&["init", "--quiet", "--object-format=sha256", path]);
    git(&folder, &["commit", "--quiet", "--allow-empty", "--message", "first"]);
    let world = World::new();
    let error = world.provider.list(&local(&folder), None, &world.notes).expect_err("is not sha1");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(told(&error).contains("sha256"), "{}", told(&error));
}
