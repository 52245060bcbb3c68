//! Properties of any text: nothing panics, and what was parsed prints back.

use proptest::prelude::*;

use crate::reference::{Base, Defaults, Name, PackageId, Range, Reference, Version, VersionSpec};

fn any_version() -> impl Strategy<Value = String> {
    (0..4_u64, 0..4_u64, 0..4_u64, "(-(rc|beta|0|1)(\\.[0-2])?)?")
        .prop_map(|(major, minor, patch, pre)| format!("{major}.{minor}.{patch}{pre}"))
}

fn any_partial() -> impl Strategy<Value = String> {
    prop_oneof![any_version(), "[0-3](\\.[0-3x*])?", "v[0-3]\\.x"]
}

fn any_alternative() -> impl Strategy<Value = String> {
    let term =
        ("(>=|<=|>|<|=|\\^|~|~>)?", any_partial()).prop_map(|(op, it)| format!("{}{it}", op));
    let terms = prop::collection::vec(term, 1..3).prop_map(|terms| terms.join(" "));
    let hyphen = (any_partial(), any_version()).prop_map(|(from, to)| format!("{from} - {to}"));
    prop_oneof![8 => terms, 2 => hyphen, 1 => Just("*".to_owned())]
}

fn any_range() -> impl Strategy<Value = String> {
    prop::collection::vec(any_alternative(), 1..3).prop_map(|parts| parts.join(" || "))
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,30}|[a-z0-9:/@.#\\[\\]^~<>=|, *x+-]{0,40}") {
        match Reference::parse(&text) {
            Ok(reference) => {
                prop_assert_eq!(reference.as_str(), &text);
                let id = reference.id(&Defaults::default());
                prop_assert_eq!(PackageId::parse(id.as_str()), Ok(id.clone()));
                prop_assert_eq!(PackageId::new(&id.base(), &id.name()), id);
            }
            Err(error) => prop_assert_eq!(error.render().lines().count(), 2),
        }
        for error in [
            Version::parse(&text).err(),
            Version::parse_lenient(&text).err(),
            VersionSpec::parse(&text).err(),
            Range::parse(&text).err(),
            Name::parse(&text).err(),
            Base::parse(&text).err(),
        ].into_iter().flatten() {
            prop_assert!(error.text().get(error.span()).is_some());
        }
    }

    #[test]
    fn what_is_qualified_names_the_same_package(
        text in "((https|ssh|git\\+https|oci)://(me@)?)?([a-z]{1,3}\\.co(:[1-9][0-9]{0,3})?/)?[a-z_][a-z.-]{0,3}(\\.git)?(/[a-z]{1,3}){0,2}(#\\^1)?"
    ) {
        let Ok(reference) = Reference::parse(&text) else { return Ok(()) };
        let defaults = Defaults::default();
        let qualified = Reference::parse(&reference.qualified(&defaults)).expect("is a reference");
        prop_assert_eq!(qualified.id(&defaults), reference.id(&defaults));
        prop_assert_eq!(qualified.qualified(&defaults), reference.qualified(&defaults));
    }

    #[test]
    fn versions_print_back(text in any_version()) {
        prop_assert_eq!(Version::parse(&text).expect("is a version").to_string(), text);
    }

    #[test]
    fn composite_versions_print_back(app in any_version(), revision in "[0-9]\\.[0-9]\\.[0-9]") {
        let version = Version::composite(&app, &revision).expect("is a version");
        prop_assert_eq!(Version::parse_composite(&version.to_string()).expect("is a version"), version);
    }

    /// Compares with a Rust implementation of npm's ranges. That one reads a contradiction such as `>2 <1` as
    /// "or", and does not know `=*` and `1 - *`, which npm does, so these are left out.
    #[test]
    fn ranges_match_as_in_npm(range in any_range(), version in any_version()) {
        let ours = Range::parse(&range).expect("is a range");
        let found = Version::parse(&version).expect("is a version");
        let theirs = |part: &str| {
            let wanted = nodejs_semver::Version::parse(&version).expect("is a version");
            let comparators = if part.contains(" - ") { vec![part] } else { part.split(' ').collect() };
            comparators
                .iter()
                .try_fold(None, |all: Option<nodejs_semver::Range>, comparator| {
                    let range = nodejs_semver::Range::parse(comparator).ok()?;
                    Some(Some(match all {
                        Some(all) => all.intersect(&range)?,
                        None => range,
                    }))
                })
                .flatten()
                .is_some_and(|range| range.satisfies(&wanted))
        };
        let expected = range.split(" || ").any(theirs);
        prop_assert_eq!(ours.matches(&found, false), expected);
    }
}
