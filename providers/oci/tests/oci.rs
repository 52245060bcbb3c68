//! The provider with the checks for all providers, on Docker's registry and on one with the referrers API.

#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

use std::path::Path;
use std::time::Duration;

use mu_provider::conformance::{Fixture, releases};
use mu_provider::http::{Http, HttpOptions};
use mu_provider::{Digest, Lead, Listing, Location, Provider as _, Release, SafeUrl, Silent};
use mu_provider_oci::{OciOptions, OciProvider, PushOutcome, WithoutLists};
use mu_testing::oci::Behaviour;
use mu_testing::{
    Artifact, Chart, DockerRegistry, Nginx, OciServer, digest_of, tar_gz, tree, write,
};
use serde_json::{Map, Value, json};

/// A provider as one run has it, with its cache in `cache`.
fn provider(cache: &Path) -> OciProvider {
    OciProvider::new(options(cache))
}

fn options(cache: &Path) -> OciOptions {
    let http = Http::new(HttpOptions {
        first_delay: Duration::ZERO,
        sleep: std::sync::Arc::new(|_| {}),
        ..HttpOptions::default()
    });
    OciOptions::new(http, cache.join("downloads"))
}

fn at(host: &str, name: &str) -> Location {
    let root = format!("https://{host}/acme/");
    Location::new(Lead::of_user(SafeUrl::parse(&root).expect("is a URL")), name)
}

/// Publishes a version; returns its digest.
fn publish(provider: &OciProvider, location: &Location, version: &str) -> Digest {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    write(folder.path(), "Mu.yaml", format!("name: web/log\nversion: {version}\n"));
    let digest = digest_of(folder.path());
    let line = json!({
        "name": "web/log", "version": version, "digest": digest,
        "dependencies": [], "published": "2026-01-01T00:00:00Z",
    });
    let line: Map<String, Value> = line.as_object().expect("is a map").clone();
    let archive = tar_gz(tree(folder.path()));
    let writer = provider.writer(location).expect("is a name");
    assert_eq!(writer.publish(&line, version, &archive).expect("is taken"), PushOutcome::New);
    assert_eq!(writer.publish(&line, version, &archive).expect("is there"), PushOutcome::Same);
    digest.parse().expect("is a digest")
}

fn conforms(host: &str) {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let provider = provider(&scratch.path().join("cache"));
    let location = at(host, "web/log");
    publish(&provider, &location, "1.0.0");
    let digest = publish(&provider, &location, "1.2.0");
    let nginx = Nginx::serve(scratch.path(), "");
    Fixture {
        provider: &provider,
        location,
        absent: at(host, "web/absent"),
        other_kind: Some(at(&nginx.host(), "web/log")),
        versions: vec!["1.0.0", "1.2.0"],
        fetched: 1,
        digest,
        manifest: None,
        unknown: Some(Release { version: "9.9.9".to_owned(), ..Release::default() }),
        scratch: scratch.path().join("trees"),
    }
    .check();
}

#[test]
fn conforms_on_dockers_registry() {
    conforms(&DockerRegistry::start().host());
}

#[test]
fn conforms_on_a_registry_that_keeps_lists_of_referrers() {
    let behaviour = Behaviour { referrers: true, page: 1, ..Behaviour::default() };
    conforms(&OciServer::start(behaviour).host());
}

#[test]
fn what_is_unchanged_is_not_read_again() {
    let registry = OciServer::start(Behaviour::default());
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let provider = provider(scratch.path());
    let location = at(&registry.host(), "web/log");
    publish(&provider, &location, "1.0.0");
    let Listing::Found(found) = provider.list(&location, None, &Silent).expect("answers") else {
        panic!("is there")
    };
    let before = registry.requests().len();
    let again = provider.list(&location, found.validator.as_deref(), &Silent).expect("answers");
    assert_eq!(again, Listing::Unchanged { max_age: None, validator: None });
    assert_eq!(registry.requests().len(), before + 2);
    publish(&provider, &location, "1.1.0");
    let changed = provider.list(&location, found.validator.as_deref(), &Silent).expect("answers");
    let Listing::Found(changed) = changed else { panic!("has changed") };
    assert_eq!(releases(&changed.lines).len(), 2);
}

#[test]
fn whatever_is_no_list_of_referrers_is_none_and_remembered_unless_it_may_pass() {
    let chart = Artifact::chart(&Chart::new("log", "1.0.0"));
    for (status, is_remembered) in [
        (400, true),
        (401, true),
        (403, true),
        (404, true),
        (405, true),
        (418, true),
        (422, true),
        (500, true),
        (204, true),
        (429, false),
        (502, false),
        (503, false),
    ] {
        let behaviour = Behaviour { referrers_status: status, ..Behaviour::default() };
        let registry = OciServer::start(behaviour);
        chart.push(&registry.host(), "acme/log", "1.0.0");
        let scratch = tempfile::tempdir().expect("a temporary folder can be made");
        let folder = Some(scratch.path().join("registries"));
        let asked = || {
            let without_lists = WithoutLists { folder: folder.clone(), now: 1_000 };
            let provider =
                OciProvider::new(OciOptions { without_lists, ..options(scratch.path()) });
            let before = registry.requests().len();
            let listing = provider.list(&at(&registry.host(), "log"), None, &Silent);
            let Listing::Found(found) = listing.expect("answers") else { panic!("is there") };
            assert_eq!(releases(&found.lines).len(), 1, "{status}");
            let requests = registry.requests().split_off(before);
            requests.iter().any(|line| line.contains("/referrers/"))
        };
        // The second time is the next run.
        assert_eq!([asked(), asked()], [true, !is_remembered], "{status}");
    }
}
