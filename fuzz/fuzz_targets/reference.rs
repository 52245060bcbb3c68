//! Any text: read as a reference it prints back, keeps its identity when qualified, or is refused
//! with an error that no terminal is harmed by.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run reference -- -max_total_time=60`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu::reference::{Defaults, Name, PackageId, Reference, ReferenceError, VersionSpec};

fuzz_target!(|text: &str| {
    match Reference::parse(text) {
        Ok(reference) => check(text, &reference),
        Err(error) => check_error(&error),
    }
    match VersionSpec::parse(text) {
        Ok(VersionSpec::Latest) => {}
        Ok(spec) => assert_eq!(spec.to_string(), text),
        Err(error) => check_error(&error),
    }
    if let Err(error) = PackageId::parse(text) {
        check_error(&error);
    }
});

fn check(text: &str, reference: &Reference) {
    assert_eq!(reference.to_string(), text);
    let defaults = Defaults { namespace: Name::parse("internal").ok(), ..Defaults::default() };
    let id = reference.id(&defaults);
    assert_eq!(PackageId::parse(id.as_str()).as_ref(), Ok(&id));
    assert_eq!(PackageId::new(&id.base(), &id.name()), id);
    let is_safe = |segment: &str| !segment.starts_with('.') && segment.len() <= 128;
    assert!(id.name().segments().all(is_safe) && !id.base().folder_name().starts_with('.'));
    let qualified = reference.qualified(&defaults);
    let again = Reference::parse(&qualified).expect("a qualified reference is one");
    assert_eq!(again.id(&defaults), id);
    assert_eq!(again.qualified(&defaults), qualified);
    let bare = reference.with_version(None);
    assert_eq!(Reference::parse(bare.as_str()).as_ref(), Ok(&bare));
    assert_eq!(bare.with_version(reference.version().cloned()).id(&defaults), id);
}

fn check_error(error: &ReferenceError) {
    let rendered = error.render();
    assert_eq!(rendered.lines().count(), 2, "{rendered}");
    assert!(!rendered.contains(|character: char| character.is_control() && character != '\n'));
    assert!(!error.to_string().contains(char::is_control));
    assert!(error.text().get(error.span()).is_some());
}
