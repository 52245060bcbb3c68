//! Any text as a catalog of operators, and as the files of a bundle: read, or refused with an error that points into it; and
//! what was read are references, versions and ranges that mu reads, too.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run operators -- -max_total_time=60`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu::reference::{Range, Reference, Version};
use mu_formats::olm::{
    ANNOTATIONS, CatalogDocuments, DEPENDENCIES, PROPERTIES_FILE, range, read, resources,
};
use mu_formats::{FormatError, Reading, Texts, manifest};
use mu_provider::Release;

fuzz_target!(|text: &str| {
    let mut catalog = CatalogDocuments::default();
    catalog.add("catalog", text, &mut |_| None).expect("is short");
    if let Some(error) = catalog.first_broken() {
        check_error(text, error);
    }
    for lines in catalog.finish().packages.values() {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            check_release(&serde_json::from_slice(line).expect("is a line"));
        }
    }
    resources(text, "a", "a.v1.0.0");
    let annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: a}";
    let csv = "kind: ClusterServiceVersion\nspec: {version: 1.0.0}\n";
    for (annotations, csv, more) in
        [(text, csv, ""), (annotations, text, ""), (annotations, csv, text)]
    {
        let files = [
            (ANNOTATIONS, annotations),
            (PROPERTIES_FILE, more),
            (DEPENDENCIES, more),
            ("manifests/a.yaml", csv),
        ];
        let files = Texts(files.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
        if let Ok(package) = read(&files, &Reading::default()) {
            check_release(&package.release);
            let read = manifest(&package).expect("has a name");
            assert_eq!(read.dependencies.len(), package.places.len());
        }
    }
    if let Ok(range) = range(text) {
        assert!(Range::parse(&range).is_ok());
    }
});

fn check_error(text: &str, error: &FormatError) {
    assert!(text.get(error.span.clone()).is_some(), "{error:?}");
    assert!(error.line > 0 && error.column > 0);
    assert!(!error.reason.contains(char::is_control), "{error:?}");
}

fn check_release(release: &Release) {
    assert!(Reference::parse(&release.name).is_ok(), "{release:?}");
    if release.unusable.is_some() {
        return;
    }
    match &release.app_version {
        Some(app) => assert!(Version::composite(app, &release.version).is_ok(), "{release:?}"),
        None => assert!(Version::parse(&release.version).is_ok(), "{release:?}"),
    }
    for dependency in release.dependencies.iter().flatten() {
        assert!(Reference::parse(dependency.reference()).is_ok(), "{dependency:?}");
    }
    for range in release.upgrade.iter().filter_map(|one| one.skip_range.as_ref()) {
        assert!(Range::parse(range).is_ok(), "{range}");
    }
}
