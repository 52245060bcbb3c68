//! Chart repositories on nginx and in a folder, honest and hostile.

#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

use std::error::Error as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use mu_provider::catalog::Query;
use mu_provider::conformance::{self, Fixture, releases};
use mu_provider::http::{Http, HttpOptions};
use mu_provider::{
    Digest, ErrorKind, Folder, Found, Lead, Limits, Listing, Location, Provider as _,
    ProviderError, Release, SafeUrl, Silent, Tree, TreeWriter,
};
use mu_provider_helm::{RepositoryOptions, RepositoryProvider};
use mu_testing::{Chart, Charts, Files, Nginx, digest_of, tar_gz, write};
use tempfile::TempDir;

/// A repository with two versions of `web`, and what lies beside it.
fn repository() -> (TempDir, Charts) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut charts = Charts::new(&folder.path().join("charts"));
    charts.add(&web("1.0.0"));
    charts.add(&web("1.2.0").lines("appVersion: \"8\"\n"));
    charts.add(&Chart::new("common", "2.0.0"));
    (folder, charts)
}

fn web(version: &str) -> Chart {
    Chart::new("web", version).needs("common", "2.x", "https://charts.example/stable")
}

/// A provider as one run has it, with its cache in `cache`.
fn provider(cache: &Path) -> RepositoryProvider {
    let http = Http::new(HttpOptions {
        first_delay: Duration::ZERO,
        sleep: std::sync::Arc::new(|_| {}),
        ..HttpOptions::default()
    });
    let options = RepositoryOptions {
        http,
        indexes: cache.join("charts"),
        downloads: cache.join("downloads"),
    };
    RepositoryProvider::charts(options, None, None)
}

fn at(root: &str, chart: &str) -> Location {
    Location::new(Lead::of_user(SafeUrl::parse(root).expect("is a URL")), chart)
}

fn found(provider: &RepositoryProvider, location: &Location) -> Found {
    match provider.list(location, None, &Silent).expect("the repository answers") {
        Listing::Found(found) => found,
        other => panic!("is not listed: {other:?}"),
    }
}

fn fetch(
    provider: &RepositoryProvider,
    location: &Location,
    release: &Release,
) -> Result<Tree, ProviderError> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let inner = folder.path().join("a/tree");
    fs::create_dir_all(&inner).expect("can be made");
    let mut tree = TreeWriter::new(Folder::open(&inner).expect("opens"), Limits::default());
    let result = provider.fetch(location, release, &mut tree, &Silent);
    let outside = fs::read_dir(folder.path().join("a")).expect("is there").count();
    assert_eq!(outside, 1, "something lies beside the tree");
    result?;
    Ok(tree.finish()?)
}

fn conforms(root: &str, other: &str) {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let expected = tempfile::tempdir().expect("a temporary folder can be made");
    for (path, (_, content)) in web("1.2.0").lines("appVersion: \"8\"\n").files() {
        write(expected.path(), &path, content);
    }
    let digest: Digest = digest_of(expected.path()).parse().expect("is a digest");
    let provider = provider(&scratch.path().join("cache"));
    Fixture {
        provider: &provider,
        location: at(root, "web"),
        absent: at(root, "absent"),
        other_kind: Some(at(other, "web")),
        versions: vec!["1.2.0", "1.0.0"],
        fetched: 0,
        digest,
        manifest: None,
        unknown: Some(Release { version: "9.9.9".to_owned(), ..Release::default() }),
        scratch: scratch.path().join("trees"),
    }
    .check();
}

#[test]
fn conforms_on_nginx_and_in_a_folder() {
    let (folder, charts) = repository();
    let nginx = Nginx::serve(folder.path(), "");
    fs::create_dir(folder.path().join("other")).expect("can be made");
    conforms(&nginx.url("charts/"), &nginx.url("other/"));
    let url = |path: &Path| format!("file://{}/", path.display());
    conforms(&url(charts.folder()), &url(folder.path()));
}

#[test]
fn an_index_is_asked_for_once_and_read_again_only_if_it_has_changed() {
    let (folder, mut charts) = repository();
    let nginx = Nginx::serve(folder.path(), "");
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let [web_at, common_at] = ["web", "common"].map(|name| at(&nginx.url("charts/"), name));
    let first = provider(cache.path());
    let web = found(&first, &web_at);
    let common = found(&first, &common_at);
    assert!(web.location.lenient);
    assert_eq!(nginx.log(), ["GET /charts/index.yaml HTTP/1.1 200"]);
    // The next run.
    let second = provider(cache.path());
    let validator = web.validator.as_deref().expect("has one");
    assert!(second.is_unchanged(&web_at, validator, &Silent));
    let listing = second.list(&web_at, Some(validator), &Silent).expect("answers");
    assert_eq!(listing, Listing::Unchanged { max_age: None, validator: None });
    assert_eq!(found(&second, &common_at), common);
    assert_eq!(nginx.log()[1..], ["GET /charts/index.yaml HTTP/1.1 304"]);
    // A change of one chart does not affect another.
    charts.add(&Chart::new("common", "2.1.0"));
    let third = provider(cache.path());
    assert!(third.is_unchanged(&web_at, validator, &Silent));
    assert_eq!(releases(&found(&third, &common_at).lines).len(), 2);
    assert_eq!(nginx.log()[2..], ["GET /charts/index.yaml HTTP/1.1 200"]);
    // From a lock alone, only the archive is requested.
    let release = Release {
        version: "1.2.0".to_owned(),
        archive: releases(&web.lines)[0].archive.clone(),
        urls: vec!["web-1.2.0.tgz".to_owned()],
        ..Release::default()
    };
    fetch(&provider(cache.path()), &web_at, &release).expect("is there");
    assert_eq!(nginx.log()[3..], ["GET /charts/web-1.2.0.tgz HTTP/1.1 200"]);
    // It has moved since, and the index knows where.
    fs::rename(charts.folder().join("web-1.2.0.tgz"), charts.folder().join("moved.tgz"))
        .expect("is there");
    charts.index(&charts.text().replace("- web-1.2.0.tgz", "- gone.tgz\n    - moved.tgz"));
    fetch(&provider(cache.path()), &web_at, &release).expect("is found");
    // If the stored index is damaged or missing, that only costs time.
    for entry in fs::read_dir(cache.path().join("charts")).expect("is there") {
        fs::write(entry.expect("is one").path(), "{\"format\":1}\nnonsense").expect("can be");
    }
    assert_eq!(releases(&found(&provider(cache.path()), &web_at).lines).len(), 2);
}

#[test]
fn places_that_no_index_may_lead_to_are_refused() {
    let (folder, mut charts) = repository();
    write(folder.path(), "outside.tgz", Chart::new("out", "1.0.0").archive());
    for (name, url) in [
        ("file", format!("file://{}/outside.tgz", folder.path().display())),
        ("above", "../outside.tgz".to_owned()),
        ("secret", "https://ada:hunter2@example.com/a.tgz".to_owned()),
        ("data", "data:text/plain,x".to_owned()),
    ] {
        charts.add(&Chart::new(name, "1.0.0").listed(&format!("urls: [{url:?}]\n")));
    }
    charts.add(&Chart::new("oci", "1.0.0").listed("urls: [oci://registry.example/oci:1.0.0]\n"));
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let provider = provider(cache.path());
    let nginx = Nginx::serve(folder.path(), "");
    let local = format!("file://{}/", charts.folder().display());
    for (root, names) in [
        (&local, &["above", "data", "secret"][..]),
        (&nginx.url("charts/"), &["file", "data", "secret"]),
    ] {
        for name in names {
            let location = at(root, name);
            let release = releases(&found(&provider, &location).lines).remove(0);
            let error = fetch(&provider, &location, &release).expect_err("leads away");
            assert_eq!(error.kind(), ErrorKind::Refused, "{root} {name}: {error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
    let location = at(&local, "oci");
    let release = releases(&found(&provider, &location).lines).remove(0);
    let error = fetch(&provider, &location, &release).expect_err("is elsewhere");
    assert!(error.to_string().contains("built without OCI registries"), "{error}");
}

/// An archive of these files.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let file = |(path, text): &(&str, &str)| match text.strip_prefix("-> ") {
        Some(target) => ((*path).to_owned(), ('l', target.as_bytes().to_vec())),
        None => ((*path).to_owned(), ('f', text.as_bytes().to_vec())),
    };
    tar_gz(files.iter().map(file))
}

#[test]
fn hostile_archives_are_refused() {
    let (folder, mut charts) = repository();
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let honest = ("a/Chart.yaml", "name: a\nversion: 1.0.0\n");
    for (version, archive, reason) in [
        ("1.0.0", archive(&[honest, ("b/values.yaml", "x: 1\n")]), "not in the same folder"),
        ("1.0.1", archive(&[("Chart.yaml", "name: a\n")]), "not inside the archive's folder"),
        ("1.0.2", archive(&[honest, ("a/link", "-> ../../../etc/passwd")]), "link"),
        ("1.0.3", archive(&[honest, ("a/.git/config", "x")]), ".git"),
        ("1.0.4", archive(&[honest, ("a/x", "1"), ("a/X", "2")]), "X"),
        ("1.0.5", b"no archive".to_vec(), "gzip"),
        // What follows would be another member of gzip.
        ("1.0.6", [archive(&[honest]), b"more".to_vec()].concat(), "data after its end"),
        ("1.0.7", archive(&[honest])[..90].to_vec(), "ends early"),
    ] {
        charts.add_with(&Chart::new("a", version), &archive);
        let provider = provider(cache.path());
        let location = at(&format!("file://{}/", charts.folder().display()), "a");
        let release = releases(&found(&provider, &location).lines).remove(0);
        let error = fetch(&provider, &location, &release).expect_err(reason);
        let why = error.source().map(ToString::to_string).unwrap_or_default();
        let said = format!("{error}: {why}");
        assert_eq!(error.kind(), ErrorKind::Integrity, "{version}: {said}");
        assert!(said.contains(reason), "{version}: {said}");
    }
    // An archive that differs from the index.
    let text = charts.text();
    charts.add(&Chart::new("web", "3.0.0"));
    write(charts.folder(), "web-3.0.0.tgz", web("3.0.1").archive());
    let provider = provider(cache.path());
    let location = at(&format!("file://{}/", charts.folder().display()), "web");
    let release = releases(&found(&provider, &location).lines).remove(0);
    let error = fetch(&provider, &location, &release).expect_err("is another one");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(error.to_string().contains("not the one that was expected"), "{error}");
    assert!(text.len() < charts.text().len() && conformance::hostile_trees().len() > 3);
    drop(folder);
}

#[test]
fn an_index_that_makes_no_sense_is_named() {
    let (folder, charts) = repository();
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let location = at(&format!("file://{}/", charts.folder().display()), "web");
    for (text, reason, kind) in [
        ("<html>", "the answer is a web page", ErrorKind::Protocol),
        ("a: 1", "it has no `entries`", ErrorKind::Protocol),
        ("entries:\n  web:\n  - {a: [\n", "line 3", ErrorKind::Integrity),
        ("entries: {web: [*a]}", "line 1", ErrorKind::Integrity),
        (
            "entries: {web: [{name: web, operatorVersion: 1.0.0}]}",
            "`kudo+https://` leads to",
            ErrorKind::Protocol,
        ),
    ] {
        charts.index(text);
        let provider = provider(cache.path());
        let error = provider.list(&location, None, &Silent).expect_err("makes no sense");
        assert_eq!(error.kind(), kind);
        assert!(format!("{error:?}").contains(reason), "{error:?}");
        assert!(error.to_string().contains("index.yaml"), "{error}");
    }
    charts.index(&"x".repeat(65 << 20));
    let error = provider(cache.path()).list(&location, None, &Silent).expect_err("is too long");
    assert!(error.to_string().contains("longer than"), "{error}");
    let kept: Files = mu_testing::tree(cache.path());
    assert!(kept.is_empty(), "{:?}", kept.keys());
    drop(folder);
}

/// Indexes as large as the largest that are public: every fifth chart has a version that makes no sense.
#[test]
fn an_index_of_five_thousand_charts_is_read_whole_and_once() {
    let (folder, charts) = repository();
    let mut text = "apiVersion: v1\nentries:\n".to_owned();
    for number in 0..5000 {
        text.push_str(&format!("  chart-{number}:\n"));
        let bad = match number % 25 {
            0 => {
                "    version: 2.0.0\n    dependencies: [{name: common, version: newest, repository: 'https://x.example'}]\n"
            }
            5 => "    version: 2.0.0\n    digest: abc\n",
            10 => "    version: not a version\n",
            15 => "    version: 2.0.0\n    version: 2.0.1\n",
            20 => "    version: 2.0.0\n    kubeVersion: soon\n",
            _ => "",
        };
        if !bad.is_empty() {
            text.push_str(&format!(
                "  - apiVersion: v2\n    name: chart-{number}\n    urls: [a.tgz]\n{bad}"
            ));
        }
        text.push_str(&format!(
            "  - apiVersion: v2\n    name: chart-{number}\n    version: 1.{number}.0\n    description: The {number}th of many charts that do something\n    keywords: [many, charts]\n    created: \"2026-01-02T03:04:05Z\"\n    digest: {number:064x}\n    dependencies:\n    - {{name: common, version: 2.x.x, repository: https://charts.example/stable, condition: a.b}}\n    urls:\n    - https://charts.example/stable/chart-{number}-1.{number}.0.tgz\n"
        ));
    }
    charts.index(&text);
    let nginx = Nginx::serve(folder.path(), "");
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let root = nginx.url("charts/");
    let mut validators = Vec::new();
    let first = provider(cache.path());
    let (mut usable, mut unusable) = (0, 0);
    for number in 0..5000 {
        let found = found(&first, &at(&root, &format!("chart-{number}")));
        for release in releases(&found.lines) {
            match release.unusable {
                None => usable += 1,
                Some(reason) => {
                    assert!(!reason.is_empty());
                    unusable += 1;
                }
            }
        }
        validators.push(found.validator.expect("has one"));
    }
    assert_eq!((usable, unusable), (5000, 1000));
    assert_eq!(nginx.log(), ["GET /charts/index.yaml HTTP/1.1 200"]);
    // The next run: one question.
    let second = provider(cache.path());
    for (number, validator) in validators.iter().enumerate() {
        let location = at(&root, &format!("chart-{number}"));
        assert!(second.is_unchanged(&location, validator, &Silent), "{number}");
    }
    let hits = second.search(&at(&root, ""), &Query::new("1234th", 5), &Silent);
    let hits = hits.expect("answers").expect("can be searched");
    let found: Vec<_> = hits.packages.iter().map(|one| (&*one.name, &*one.latest)).collect();
    assert_eq!(found, [("chart-1234", "1.1234.0")]);
    let hits = second.search(&at(&root, ""), &Query::new("many", 5), &Silent);
    assert_eq!(hits.expect("answers").expect("can be searched").total, 5000);
    assert_eq!(nginx.log()[1..], ["GET /charts/index.yaml HTTP/1.1 304"]);
}
