//! Archives on nginx and in a folder, honest and hostile.

#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

use std::error::Error as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use mu_provider::conformance::Item;
use mu_provider::conformance::{self, Fixture, releases};
use mu_provider::http::{Http, HttpOptions};
use mu_provider::{
    ErrorKind, Folder, Lead, Limits, Listing, Location, Provider as _, ProviderError, Release,
    SafeUrl, Silent, Tree, TreeWriter,
};
use mu_provider_url::UrlProvider;
use mu_testing::http::{Reply, Seen, TestServer};
use mu_testing::{Nginx, ZipEntry, digest_of, gzip, tar, tar_gz, tree, write, zip};
use tempfile::TempDir;

/// A folder with a package, and the package packed in several ways, with and without a folder around it.
fn archives() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let package = folder.path().join("package");
    write(&package, "Mu.yaml", "name: acme/tool\nversion: 1.2.0\ndependencies: [acme/log]\n");
    write(&package, "bin/tool*", "#!/bin/sh\n");
    write(&package, "docs/a.md", "a".repeat(3_000));
    let files = tree(&package);
    let inside = files.iter().map(|(path, file)| (format!("tool-1.2.0/{path}"), file.clone()));
    let inside: Vec<_> = inside.collect();
    let entries = |files: &[(String, (char, Vec<u8>))]| -> Vec<ZipEntry> {
        let files = files.iter();
        files
            .map(|(path, (mode, content))| ZipEntry::new(path.clone(), *mode, content.clone()))
            .collect()
    };
    let flat: Vec<_> = files.clone().into_iter().collect();
    let place = folder.path().join("files");
    write(&place, "tool-1.2.tgz", tar_gz(inside.clone()));
    write(&place, "flat.tar.gz", tar_gz(flat.clone()));
    write(&place, "tool.tar", tar(inside.clone()));
    let mut zipped = entries(&inside);
    zipped.insert(0, ZipEntry::new("tool-1.2.0/", 'd', ""));
    write(&place, "tool.zip", zip(&zipped));
    write(&place, "flat.zip", zip(&entries(&flat)));
    write(&place, "page.zip", "<!doctype html>");
    let digest = digest_of(&package);
    (folder, digest)
}

fn provider(cache: &Path) -> UrlProvider {
    let http = Http::new(HttpOptions {
        first_delay: Duration::ZERO,
        sleep: std::sync::Arc::new(|_| {}),
        ..HttpOptions::default()
    });
    UrlProvider::new(http, cache.join("downloads"))
}

fn at(root: &str, archive: &str) -> Location {
    Location::new(Lead::of_user(SafeUrl::parse(root).expect("is a URL")), archive)
}

fn listed(provider: &UrlProvider, location: &Location) -> Result<Release, ProviderError> {
    match provider.list(location, None, &Silent)? {
        Listing::Found(found) => Ok(releases(&found.lines).swap_remove(0)),
        other => panic!("is not listed: {other:?}"),
    }
}

/// Lists and fetches an archive; whatever happens, nothing is beside the tree.
fn fetch(location: &Location) -> Result<(Release, Tree), ProviderError> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let inner = folder.path().join("a/tree");
    fs::create_dir_all(&inner).expect("can be made");
    let provider = provider(folder.path());
    let mut writer = TreeWriter::new(Folder::open(&inner).expect("opens"), Limits::default());
    let release = listed(&provider, location)?;
    let result = provider.fetch(location, &release, &mut writer, &Silent);
    assert_eq!(fs::read_dir(folder.path().join("a")).expect("is there").count(), 1);
    result?;
    drop(provider);
    let left = tree(&folder.path().join("downloads"));
    assert!(left.is_empty(), "{:?}", left.keys());
    Ok((release, writer.finish()?))
}

#[test]
fn conforms_on_nginx_and_in_a_folder() {
    let (folder, digest) = archives();
    let nginx = Nginx::serve(folder.path(), "");
    let local = format!("file://{}/files/", folder.path().display());
    for root in [nginx.url("files/"), local] {
        for name in ["tool-1.2.tgz", "flat.tar.gz", "tool.tar", "tool.zip", "flat.zip"] {
            let scratch = tempfile::tempdir().expect("a temporary folder can be made");
            let guess = if name == "tool-1.2.tgz" { "1.2.0" } else { "0.0.0" };
            Fixture {
                provider: &provider(scratch.path()),
                location: at(&root, name),
                absent: at(&root, "absent.tgz"),
                other_kind: Some(at(&root, "page.zip")),
                versions: vec![guess],
                fetched: 0,
                digest: digest.parse().expect("is a digest"),
                manifest: Some("name: acme/tool"),
                unknown: None,
                scratch: scratch.path().join("trees"),
            }
            .check();
        }
    }
}

/// An archive in a folder, and where it is.
fn alone(name: &str, bytes: &[u8]) -> (TempDir, Location) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    write(folder.path(), name, bytes);
    let location = at(&format!("file://{}/", folder.path().display()), name);
    (folder, location)
}

/// Why an archive is refused.
fn refusal(name: &str, bytes: &[u8]) -> String {
    let (_folder, location) = alone(name, bytes);
    let error = fetch(&location).expect_err(name);
    assert_eq!(error.kind(), ErrorKind::Integrity, "{error}");
    assert!(error.to_string().contains(&location.describe()), "{error}");
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

fn file(name: &str, content: &str) -> ZipEntry {
    ZipEntry::new(name, 'f', content)
}

#[test]
fn hostile_trees_are_refused() {
    for tree in conformance::hostile_trees() {
        let entries = tree.items.iter().map(|(path, item)| match item {
            Item::File(content) => ZipEntry::new(path.clone(), 'f', *content),
            Item::Link(target) => ZipEntry::new(path.clone(), 'l', *target),
        });
        let text = refusal("x.zip", &zip(&entries.collect::<Vec<_>>()));
        assert!(text.contains("refused"), "{}: {text}", tree.name);
    }
}

#[test]
fn zips_that_can_be_read_in_two_ways_are_refused() {
    let honest = [file("Mu.yaml", "name: a/b\n"), file("a.txt", "content")];
    let bytes = zip(&honest);
    let (_folder, location) = alone("x.zip", &bytes);
    fetch(&location).expect("nothing is wrong with it");
    let list = bytes.windows(4).position(|four| four == b"PK\x01\x02").expect("has a list");
    let second = list + 46 + "Mu.yaml".len();
    let local = bytes.windows(4).rposition(|four| four == b"PK\x03\x04").expect("has two entries");
    let changed = |changes: &[(usize, u8)]| {
        let mut bytes = bytes.clone();
        for (at, byte) in changes {
            bytes[*at] = *byte;
        }
        refusal("x.zip", &bytes)
    };
    let says = |text: String, reason: &str| assert!(text.contains(reason), "{reason}: {text}");
    says(changed(&[(second + 8, 1), (local + 6, 1)]), "is malformed: it is encrypted");
    says(
        changed(&[(second + 10, 12), (local + 8, 12)]),
        "compressed in a way that mu does not read",
    );
    says(changed(&[(local + 30, b'b')]), "its header and the list of entries differ");
    says(changed(&[(local + 22, 1)]), "its header and the list of entries differ");
    says(changed(&[(second + 24, 8), (local + 22, 8)]), "it ends early");
    says(changed(&[(second + 24, 6), (local + 22, 6)]), "it is longer than it says");
    says(changed(&[(second + 16, 0), (local + 14, 0)]), "its checksum is wrong");
    says(changed(&[(second + 42, 0)]), "its header and the list of entries differ");
    says(changed(&[(list, 0)]), "its record in the list is damaged");
    says(refusal("x.zip", &bytes[..bytes.len() - 1]), "is not a zip, or ends early");
    says(refusal("x.zip", &[b"MZ".as_slice(), &bytes].concat()), "not right before its end");
    says(refusal("x.zip", &[bytes.as_slice(), b"more"].concat()), "is not a zip, or ends early");
    says(refusal("x.zip", &tar_gz([])), "is not a zip, or ends early");
    says(refusal("x.tgz", &bytes), "it is neither gzip nor tar");
    says(refusal("x.tgz", b"<html>an error</html>"), "it is a web page");
    // The largest number says that the true one is elsewhere, where nothing is.
    let largest = |at: usize| [0, 1, 2, 3].map(|byte| (at + byte, 0xff));
    says(changed(&largest(second + 24)), "its record in the list is damaged");
    says(changed(&largest(local + 22)), "its header and the list of entries differ");
    says(changed(&largest(bytes.len() - 6)), "not right before its end");
    let twice = [file("a.txt", "one"), file("a.txt", "two")];
    says(refusal("x.zip", &zip(&twice)), "its entry `a.txt` is malformed: it is there twice");
    let mut stored = file("a.txt", "content");
    stored.is_deflated = false;
    let mut folder = ZipEntry::new("a/", 'd', "content");
    folder.mode = 0o040_755;
    says(refusal("x.zip", &zip(&[stored, folder])), "it is called like a folder, and is none");
    let mut device = file("null", "");
    device.mode = 0o020_666;
    says(refusal("x.zip", &zip(&[device])), "neither a file nor a folder nor a link");
    let mut powerful = file("su", "");
    powerful.mode = 0o104_755;
    says(refusal("x.zip", &zip(&[powerful])), "set-uid");
}

#[test]
fn bombs_are_refused() {
    let zeros = "\0".repeat(32 << 20);
    let text = refusal("x.zip", &zip(&[file("a", &zeros)]));
    assert!(text.contains("the size of its files"), "{text}");
    let files = [("a".to_owned(), ('f', zeros.into_bytes()))];
    let text = refusal("x.tgz", &tar_gz(files));
    assert!(text.contains("the size of its files"), "{text}");
}

#[test]
fn only_a_single_folder_is_left_out_and_the_name_may_say_the_version() {
    let paths = |name: &str, files: &[&str]| {
        let files = files.iter().map(|path| ((*path).to_owned(), ('f', b"content".to_vec())));
        let (_folder, location) = alone(name, &gzip(&tar(files)));
        let (release, tree) = fetch(&location).expect("can be fetched");
        let paths: Vec<String> = tree.entries().iter().map(|entry| entry.path.clone()).collect();
        (release.version, paths.join(" "))
    };
    let is = |version: &str, paths: &str| (version.to_owned(), paths.to_owned());
    assert_eq!(paths("x-1.2.tgz", &["x/a", "x/b/c"]), is("1.2.0", "a b/c"));
    assert_eq!(paths("x-1.2.3-rc.1.tgz", &["x/a", "y/b"]), is("1.2.3-rc.1", "x/a y/b"));
    assert_eq!(paths("main.tar.gz", &["x/a", "b"]), is("0.0.0", "b x/a"));
    // A manifest in a folder below does not count.
    let (_folder, location) =
        alone("x.tgz", &tar_gz([("a/b/Mu.yaml".to_owned(), ('f', b"[".to_vec()))]));
    fetch(&location).expect("can be fetched");
}

#[test]
fn manifests_of_other_ecosystems_say_what_is_needed() {
    let chart = "apiVersion: v2\nname: web\nversion: v3.1.0\nappVersion: \"8\"\ndependencies:\n- {name: common, version: 2.x, repository: 'https://charts.example/stable'}\n";
    let files = [("web/Chart.yaml".to_owned(), ('f', chart.as_bytes().to_vec()))];
    let (_folder, location) = alone("anything.tgz", &tar_gz(files));
    let (release, _) = fetch(&location).expect("can be fetched");
    assert_eq!((release.format.as_deref(), &*release.version), (Some("helm"), "v3.1.0"));
    let needs = release.dependencies.expect("are known");
    assert_eq!(needs[0].reference(), "helm+https://charts.example/stable/common#2.x");
    let files = [("web/Chart.yaml".to_owned(), ('f', b"name: [".to_vec()))];
    let (_folder, location) = alone("broken.tgz", &tar_gz(files));
    let error = fetch(&location).expect_err("cannot be read");
    assert_eq!(error.kind(), ErrorKind::Manifest);
    assert!(error.to_string().contains("`Chart.yaml` in `file://"), "{error}");
}

#[test]
fn an_archive_is_downloaded_again_only_if_it_has_changed_and_goes_on_where_it_broke_off() {
    let large: Vec<u8> =
        (0..3_u32 << 20).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let archive = tar([("x/a".to_owned(), ('f', large))]);
    let sent = archive.clone();
    let server = TestServer::start(move |seen, before| {
        if seen.header("if-none-match") == Some("\"one\"") {
            return Reply::status(304);
        }
        let reply = Reply::ranged(seen, &sent).header("etag", "\"one\"");
        if before == 0 { reply.cut_after(2 << 20) } else { reply }
    });
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let location = at(&server.url("/"), "x.tar");
    let first = provider(cache.path());
    let Ok(Listing::Found(found)) = first.list(&location, None, &Silent) else {
        panic!("is not listed");
    };
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen[1].header("range").is_some(), "it started over");
    let digest = format!("sha256:{}", mu_testing::hex(&archive));
    assert_eq!(releases(&found.lines)[0].archive.as_ref(), Some(&digest));
    let listing = provider(cache.path()).list(&location, found.validator.as_deref(), &Silent);
    assert!(matches!(listing, Ok(Listing::Unchanged { .. })), "{listing:?}");
    assert_eq!(server.seen().len(), 3);
    // Another archive than the pinned one.
    let other = format!("sha256:{}", mu_testing::hex(b"other"));
    let error = first.resolve(&location, &other, &Silent).expect_err("is another");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(error.to_string().contains(&other) && error.to_string().contains(&digest), "{error}");
    assert_eq!(first.resolve(&location, &digest, &Silent).expect("is it").archive, Some(digest));
}

/// The digest of the archive that is got from a server which breaks off its first answer; `answer` gives the others.
fn digest_after_a_break(
    first: Reply,
    answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> (String, TestServer) {
    let server = TestServer::start(move |seen, before| match before {
        0 => first.clone().cut_after(2 << 20),
        _ => answer(seen),
    });
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let listing = provider(cache.path()).list(&at(&server.url("/"), "x.tar"), None, &Silent);
    let Ok(Listing::Found(found)) = listing else { panic!("is not listed: {listing:?}") };
    let digest = releases(&found.lines)[0].archive.clone();
    (digest.expect("is known"), server)
}

#[test]
fn the_rest_of_another_file_is_not_put_behind_the_beginning_of_one() {
    let archive = |byte| tar([("x/a".to_owned(), ('f', vec![byte; 3 << 20]))]);
    let (old, new) = (archive(b'a'), archive(b'b'));
    let expected = format!("sha256:{}", mu_testing::hex(&new));
    // A server that does not know `if-range`.
    let (first, now) = (Reply::body(old.clone()).header("etag", "\"one\""), new.clone());
    let changed = move |seen: &Seen| Reply::ranged(seen, &now).header("etag", "\"two\"");
    assert_eq!(digest_after_a_break(first, changed).0, expected);
    // Nothing tells the files apart.
    let now = new.clone();
    let (digest, server) =
        digest_after_a_break(Reply::body(old), move |seen| Reply::ranged(seen, &now));
    assert_eq!(digest, expected);
    assert!(server.seen().iter().all(|seen| seen.header("range").is_none()));
    // A server that gives less than it is asked for.
    let (first, whole) = (Reply::body(new.clone()).header("etag", "\"two\""), new);
    let piece = move |seen: &Seen| {
        let start = seen.header("range").and_then(|range| range.strip_prefix("bytes="));
        let start: usize = start.expect("goes on").trim_end_matches('-').parse().expect("is one");
        let end = whole.len().min(start + (600 << 10));
        let range = format!("bytes {start}-{}/{}", end - 1, whole.len());
        let reply = Reply::status(206).saying(&whole[start..end]);
        reply.header("content-range", range).header("etag", "\"two\"")
    };
    assert_eq!(digest_after_a_break(first, piece).0, expected);
}
