//! Any text, as YAML and as JSON: read as a manifest and as settings, or refused with an error that
//! points into it and harms no terminal; and a dependency that is added and removed leaves the rest.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run manifest -- -max_total_time=60`.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mu::manifest::edit::{Editor, Section};
use mu::manifest::source::SourceError;
use mu::manifest::{Head, Manifest, Requirement};
use mu::reference::{Defaults, Reference};
use mu::workspace::edit::{NewRegistry, remove_registry, set_registry};

fuzz_target!(|text: &str| {
    for path in ["Mu.yaml", "Mu.json"].map(Path::new) {
        match Manifest::parse(path, text) {
            Ok((manifest, _)) => {
                assert!(Head::parse(path, text).is_ok());
                check_edits(path, text, &manifest);
            }
            Err(error) => check_error(text, &error),
        }
    }
    check_settings(text);
});

fn check_error(text: &str, error: &SourceError) {
    assert!(text.get(error.span()).is_some() || text.len() > 1 << 20);
    assert!(error.line() > 0 && error.column() > 0);
    let rendered = error.render(false);
    assert!(!rendered.contains(|c: char| c.is_control() && c != '\n'), "{rendered:?}");
    assert!(!error.to_string().contains(char::is_control));
}

fn check_edits(path: &Path, text: &str, manifest: &Manifest) {
    let reference = Reference::parse("fuzz.example/added#^1").expect("is a reference");
    for indirect in [false, true] {
        let added = Requirement { indirect, ..Requirement::new(reference.clone()) };
        let mut editor = Editor::new(path, text, &Defaults::default());
        if editor.add(Section::Dependencies, &added).is_err() {
            assert_eq!(editor.text(), text);
            continue;
        }
        let (with, _) = Manifest::parse(path, editor.text()).expect("is still a manifest");
        let is_added = |entry: &&Requirement| entry.reference.name() == reference.name();
        let entry = with.dependencies.iter().find(is_added).expect("was added");
        assert_eq!(entry.indirect, indirect);
        if editor.remove(Section::Dependencies, &reference).is_err() {
            continue;
        }
        let (without, _) = Manifest::parse(path, editor.text()).expect("is still a manifest");
        let kept = manifest.dependencies.iter().filter(|entry| !is_added(entry)).count();
        assert_eq!(without.dependencies.len(), kept);
        assert_eq!(without.dev_dependencies.len(), manifest.dev_dependencies.len());
        assert_eq!(without.name, manifest.name);
    }
}

fn check_settings(text: &str) {
    let path = Path::new("/w/.mu/workspace.yaml");
    let new = NewRegistry { url: Some("https://a.example/".to_owned()), ..NewRegistry::default() };
    if let Ok(with) = set_registry(path, text, "fuzz.example/", &new)
        && let Ok(without) = remove_registry(path, &with.text, "fuzz.example/")
    {
        let without = without.expect("was there");
        assert!(matches!(remove_registry(path, &without, "fuzz.example/"), Ok(None)));
    }
}
