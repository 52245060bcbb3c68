//! Repositories of KUDO operators on nginx and in a folder, with the checks for all providers.

#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

use std::path::Path;
use std::time::Duration;

use mu_provider::conformance::{Fixture, releases};
use mu_provider::http::{Http, HttpOptions};
use mu_provider::{Digest, Lead, Listing, Location, Provider as _, Release, SafeUrl, Silent};
use mu_provider_helm::{RepositoryOptions, RepositoryProvider};
use mu_testing::{Chart, Charts, KudoOperator, KudoRepository, Nginx, digest_of, write};
use tempfile::TempDir;

fn kafka(version: &str) -> KudoOperator {
    KudoOperator::new("kafka", version).app("2.5.0").installs("package: zookeeper")
}

/// A repository with two versions of `kafka`, and one of charts beside it.
fn repository() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut repository = KudoRepository::new(&folder.path().join("operators"), "");
    repository.add(&kafka("1.3.0"));
    repository.add(&kafka("1.3.1"));
    Charts::new(&folder.path().join("charts")).add(&Chart::new("kafka", "1.0.0"));
    folder
}

/// A provider as one run has it, with its cache in `cache`.
fn provider(cache: &Path) -> RepositoryProvider {
    let http = Http::new(HttpOptions {
        first_delay: Duration::ZERO,
        sleep: std::sync::Arc::new(|_| {}),
        ..HttpOptions::default()
    });
    RepositoryProvider::operators(RepositoryOptions {
        http,
        indexes: cache.join("charts"),
        downloads: cache.join("downloads"),
    })
}

fn at(root: &str, name: &str) -> Location {
    Location::new(Lead::of_user(SafeUrl::parse(root).expect("is a URL")), name)
}

fn conforms(root: &str, other: &str) {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let expected = tempfile::tempdir().expect("a temporary folder can be made");
    for (path, (_, content)) in kafka("1.3.1").files() {
        write(expected.path(), &path, content);
    }
    let digest: Digest = digest_of(expected.path()).parse().expect("is a digest");
    let provider = provider(&scratch.path().join("cache"));
    Fixture {
        provider: &provider,
        location: at(root, "kafka"),
        absent: at(root, "absent"),
        other_kind: Some(at(other, "kafka")),
        versions: vec!["1.3.1", "1.3.0"],
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
    let folder = repository();
    let nginx = Nginx::serve(folder.path(), "");
    conforms(&nginx.url("operators/"), &nginx.url("charts/"));
    let url = |name: &str| format!("file://{}/{name}/", folder.path().display());
    conforms(&url("operators"), &url("charts"));
}

#[test]
fn what_an_operator_installs_is_read_once_from_its_archive() {
    let folder = repository();
    let nginx = Nginx::serve(folder.path(), "");
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let location = at(&nginx.url("operators/"), "kafka");
    for run in 0..2 {
        let provider = provider(cache.path());
        let listing = provider.list(&location, None, &Silent).expect("answers");
        let Listing::Found(found) = listing else { panic!("is listed: {listing:?}") };
        let newest = releases(&found.lines).remove(0);
        assert_eq!(newest.dependencies, None);
        let full = provider.confirm(&location, &newest, &Silent).expect("can be read");
        let full = full.expect("has more");
        assert_eq!(
            full.dependencies.map(|all| all[0].reference().to_owned()).as_deref(),
            Some("zookeeper")
        );
        assert_eq!(full.archive, newest.archive);
        let status = if run == 0 { 200 } else { 304 };
        let log = nginx.log();
        assert!(log.contains(&format!("GET /operators/index.yaml HTTP/1.1 {status}")), "{log:?}");
        assert_eq!(log.iter().filter(|line| line.contains(".tgz")).count(), 1, "{log:?}");
    }
}
