//! Catalogs on nginx, in a folder, in a file and in an image; bundles whose images are hostile.

#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

use std::error::Error as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mu_provider::conformance::Fixture;
use mu_provider::http::{Http, HttpOptions};
use mu_provider::{
    Digest, ErrorKind, Folder, Found, Lead, Limits, Listing, Location, Provider as _,
    ProviderError, Release, SafeUrl, Silent, Tree, TreeWriter,
};
use mu_provider_oci::{OciOptions, OciProvider};
use mu_provider_olm::OlmProvider;
use mu_testing::oci::Behaviour;
use mu_testing::{Bundle, Nginx, OciServer, Operators, digest_of, push_image, tar_gz, write};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A provider as one run has it, with its cache in `cache`.
fn provider(cache: &Path) -> OlmProvider {
    let http = Http::new(HttpOptions {
        first_delay: Duration::ZERO,
        sleep: Arc::new(|_| {}),
        ..HttpOptions::default()
    });
    let oci = OciProvider::new(OciOptions::new(Arc::clone(&http), cache.join("downloads")));
    OlmProvider::new(http, Arc::new(oci), cache.join("operators"))
}

fn at(root: &str, name: &str) -> Location {
    Location::new(Lead::of_user(SafeUrl::parse(root).expect("is a URL")), name)
}

/// A catalog with two versions of `web`, whose bundles are in a registry.
fn catalog(registry: &OciServer) -> (TempDir, Operators) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut operators = Operators::new(&folder.path().join("catalog"));
    operators.package("web", "stable");
    let entries = ["web.v1.0.0", "web.v1.2.0"].map(|name| json!(name));
    operators.channel("web", "stable", &entries);
    for version in ["1.0.0", "1.2.0"] {
        let image = web(version).push(registry, &format!("acme/web/v{version}"));
        operators.bundle(&web(version).image(&image));
    }
    (folder, operators)
}

fn web(version: &str) -> Bundle {
    Bundle::new("web", version).provides("web.example/v1/Web")
}

fn found(provider: &OlmProvider, location: &Location) -> Found {
    match provider.list(location, None, &Silent).expect("the catalog answers") {
        Listing::Found(found) => found,
        other => panic!("is not listed: {other:?}"),
    }
}

fn fetch(
    provider: &OlmProvider,
    location: &Location,
    release: &Release,
) -> Result<Tree, ProviderError> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let opened = Folder::open(folder.path()).expect("opens");
    let mut tree = TreeWriter::new(opened, Limits::default());
    provider.fetch(location, release, &mut tree, &Silent)?;
    Ok(tree.finish()?)
}

fn conforms(root: &str, other: &str) {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let expected = tempfile::tempdir().expect("a temporary folder can be made");
    for (path, (_, content)) in web("1.2.0").files() {
        write(expected.path(), &path, content);
    }
    let digest: Digest = digest_of(expected.path()).parse().expect("is a digest");
    let provider = provider(&scratch.path().join("cache"));
    Fixture {
        provider: &provider,
        location: at(root, "web"),
        absent: at(root, "absent"),
        other_kind: Some(at(other, "web")),
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
fn conforms_on_nginx_in_a_folder_in_a_file_and_in_an_image() {
    let registry = OciServer::start(Behaviour::default());
    let (folder, operators) = catalog(&registry);
    write(folder.path(), "www/api/v1/all", operators.text());
    write(folder.path(), "www/one.json", operators.text());
    fs::create_dir(folder.path().join("other")).expect("can be made");
    let nginx = Nginx::serve(&folder.path().join("www"), "");
    let other = format!("file://{}/", folder.path().join("other").display());
    conforms(&nginx.url(""), &nginx.url("other/"));
    conforms(&nginx.url("one.json"), &other);
    conforms(&format!("file://{}/", operators.folder().display()), &other);
    let file = operators.folder().join("web/catalog.json");
    conforms(&format!("file://{}", file.display()), &other);
    // As `opm generate dockerfile` makes it: programs below, the catalog in a folder that a label names.
    let file = |path: &str, text: &str| (path.to_owned(), ('f', text.as_bytes().to_vec()));
    let name = push_image(
        &registry,
        "acme/catalog",
        &[
            tar_gz([file("bin/opm", "x"), file("catalogs/gone/catalog.json", "{\"schema\": 1}")]),
            tar_gz([
                file("catalogs/.wh.gone", ""),
                file("catalogs/web/catalog.json", &operators.text()),
            ]),
        ],
        json!({"operators.operatorframework.io.index.configs.v1": "/catalogs"}),
    );
    assert!(name.contains("@sha256:"));
    conforms(&format!("oci://{}/acme/catalog:v1/", registry.host()), &other);
    // An image that is named by its digest is never requested again.
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let location = at(&format!("oci://{name}/"), "web");
    let first = found(&provider(cache.path()), &location);
    let before = registry.requests().len();
    assert_eq!(found(&provider(cache.path()), &location), first);
    assert_eq!(registry.requests().len(), before);
}

#[test]
fn a_label_that_leads_out_of_its_image_is_refused() {
    let registry = OciServer::start(Behaviour::default());
    let (folder, operators) = catalog(&registry);
    let outside = folder.path().join("outside");
    write(&outside, "catalog.json", operators.text());
    let up = "../".repeat(30);
    let (place, file) = (outside.display(), operators.text());
    let layer = || {
        let entry = ('f', file.as_bytes().to_vec());
        tar_gz([
            ("configs/web/catalog.json".to_owned(), entry),
            ("elsewhere".to_owned(), ('l', b"configs".to_vec())),
        ])
    };
    for (label, is_refused) in [
        (format!("/{up}{place}"), true),
        (format!("configs/{up}{place}"), true),
        (format!("{up}{place}"), true),
        ("..".to_owned(), true),
        ("configs/.".to_owned(), true),
        ("configs/".to_owned(), false),
        // The image has nothing there.
        (place.to_string(), false),
    ] {
        let label = json!({"operators.operatorframework.io.index.configs.v1": label});
        push_image(&registry, "acme/catalog", &[layer()], label.clone());
        let cache = tempfile::tempdir().expect("a temporary folder can be made");
        let location = at(&format!("oci://{}/acme/catalog:v1/", registry.host()), "web");
        match provider(cache.path()).list(&location, None, &Silent) {
            Ok(_) => assert!(!is_refused && label.to_string().contains("configs/"), "{label}"),
            Err(error) if is_refused => {
                assert_eq!(error.kind(), ErrorKind::Refused, "{label}: {error}");
                let why = error.source().map(ToString::to_string).unwrap_or_default();
                assert!(why.contains("names no folder in it"), "{label}: {error}: {why}");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Protocol, "{label}: {error}"),
        }
    }
}

#[test]
fn a_catalog_is_read_again_only_if_it_has_changed() {
    let registry = OciServer::start(Behaviour::default());
    let (folder, mut operators) = catalog(&registry);
    let cache = folder.path().join("cache");
    let location = at(&format!("file://{}/", operators.folder().display()), "web");
    let first = found(&provider(&cache), &location);
    let validator = first.validator.as_deref().expect("has one");
    assert!(provider(&cache).is_unchanged(&location, validator, &Silent));
    write(operators.folder(), ".indexignore", "drafts/*\n*.yml\n");
    write(operators.folder(), "drafts/web.json", "no catalog");
    write(operators.folder(), "notes.yml", "no: [catalog");
    write(operators.folder(), "README.md", "no catalog");
    assert_eq!(found(&provider(&cache), &location), first);
    operators.channel("web", "fast", &[json!("web.v1.2.0")]);
    let second = found(&provider(&cache), &location);
    assert!(String::from_utf8_lossy(&second.lines).contains("\"fast\""));
    // What was remembered is damaged: nothing but time is lost.
    for entry in fs::read_dir(cache.join("operators")).expect("is there") {
        fs::write(entry.expect("is one").path(), "{\"format\":1}\nnonsense").expect("can be");
    }
    assert_eq!(found(&provider(&cache), &location), second);
    let kinds = provider(&cache).capabilities(&location, &Silent).expect("answers");
    assert_eq!(kinds, Some(["web.example/v1/Web".to_owned()].into()));
    write(operators.folder(), "web/catalog.json", "{\"schema\": \"olm.package\"}\n{\"a\":");
    let listing = provider(&cache).list(&location, None, &Silent).expect("is read");
    let Listing::Absent { tried, .. } = listing else { panic!("should be absent: {listing:?}") };
    let said = tried.join(" ");
    assert!(said.contains("web/catalog.json`, line 2"), "{said}");
    // Where nothing is a document of a catalog, there is no catalog.
    write(operators.folder(), "web/catalog.json", "{\"a\":");
    let error = provider(&cache).list(&location, None, &Silent).expect_err("is not a catalog");
    assert!(error.to_string().contains("web/catalog.json"), "{error}");
    assert!(error.source().is_some_and(|why| why.to_string().contains("line 1")), "{error:?}");
}

#[test]
fn images_that_are_not_what_they_should_be_are_refused() {
    let registry = OciServer::start(Behaviour::default());
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let file = |path: &str, text: &str| (path.to_owned(), ('f', text.as_bytes().to_vec()));
    let link = |path: &str, to: &str| (path.to_owned(), ('l', to.as_bytes().to_vec()));
    let location = at("file:///nowhere/", "web");
    let named = |name: &str| Release {
        version: "1.0.0".to_owned(),
        archive: name.split_once('@').map(|(_, digest)| digest.to_owned()),
        urls: vec![format!("oci://{name}")],
        ..Release::default()
    };
    let push = |layers: &[Vec<u8>]| push_image(&registry, "acme/web", layers, json!({}));
    let refused = |release: &Release| {
        fetch(&provider(cache.path()), &location, release).expect_err("is refused")
    };
    for (layers, reason) in [
        (vec![tar_gz([link("manifests/a", "../../../etc/passwd")])], "link"),
        (vec![tar_gz([file("manifests/a", "1"), file("manifests/A", "2")])], "manifests/A"),
        (vec![tar_gz([file("manifests/a", "1"), file("manifests/a", "2")])], "manifests/a"),
        (vec![b"\x1f\x8bnothing that could be inflated, however long it is read".to_vec()], "gzip"),
        (vec![tar_gz([file("manifests/a", "1")])[..60].to_vec()], "ends early"),
    ] {
        let error = refused(&named(&push(&layers)));
        let why = error.source().map(ToString::to_string).unwrap_or_default();
        assert_eq!(error.kind(), ErrorKind::Integrity, "{reason}: {error}: {why}");
        assert!(format!("{error}: {why}").contains(reason), "{reason}: {error}: {why}");
    }
    // A later layer counts, and what is outside of the two folders is nothing to a bundle.
    let name = push(&[
        tar_gz([file("manifests/a", "old"), file("manifests/b", "gone"), file("manifests/c", "c")]),
        tar_gz([file("manifests/a", "new"), file("manifests/.wh.b", ""), link("bin/sh", "/x/y")]),
        tar_gz([file("metadata/annotations.yaml", "x"), file("tests/t", "t")]),
    ]);
    let tree = fetch(&provider(cache.path()), &location, &named(&name)).expect("is fine");
    let paths: Vec<&str> = tree.entries().iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["manifests/a", "manifests/c", "metadata/annotations.yaml"]);
    assert_eq!(tree.entries()[0].size, 3);
    // Other bytes than the digest says, another image than the lock says, and nothing.
    let manifest: Value = registry.tagged("acme/web", "v1").expect("is there");
    let layer = manifest["layers"][0]["digest"].as_str().expect("is one").to_owned();
    registry.spoil(&layer, b"other bytes");
    assert_eq!(refused(&named(&name)).kind(), ErrorKind::Integrity);
    let (other, _) = name.split_once('@').expect("has a digest");
    let tagged = Release { urls: vec![format!("oci://{other}:v1")], ..named(&name) };
    let error = refused(&tagged);
    assert!(error.to_string().contains("not named by its digest"), "{error}");
    let absent = format!("{other}@sha256:{}", "0".repeat(64));
    assert_eq!(refused(&named(&absent)).kind(), ErrorKind::NotFound);
    let secret = refused(&Release {
        archive: None,
        urls: vec!["oci://ada:hunter2@127.0.0.1:1/web".to_owned()],
        ..Release::default()
    });
    assert!(!format!("{secret:?}").contains("hunter2"), "{secret:?}");
}
