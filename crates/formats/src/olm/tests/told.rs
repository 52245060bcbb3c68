//! What a catalog has and mu does not use: it is told, or keeps a version from being used.

use mu_manifest::reference::Version;

use super::super::properties;
use super::{bundle, index, releases};

#[test]
fn a_version_with_a_release_is_composite() {
    let release = |said: &str| {
        let text = format!(
            "schema: olm.channel\npackage: p\nname: a\nentries: [{{name: p.v1}}]\n---\nschema: olm.bundle\npackage: p\nname: p.v1\nproperties:\n- {{type: olm.package, value: {{packageName: p, version: 1.0.0, release: {said}}}}}\n"
        );
        releases(&index(&text), "p").remove(0)
    };
    let found = release("2.0.0");
    assert_eq!((found.versioning.as_deref(), &*found.version), (Some("composite"), "2.0.0"));
    assert_eq!((found.app_version.as_deref(), found.unusable), (Some("1.0.0"), None));
    // Any other one is ordered as OLM does it: behind a version without one, and as prereleases are.
    let version = |said: &str| {
        let found = release(said);
        assert_eq!((&found.versioning, &found.unusable), (&None, &None), "{said}");
        found.version
    };
    let all = ["1", "2", "10", "alpha", "alpha.1", "beta"].map(version);
    assert_eq!(all[0], "1.0.0+1");
    let mut sorted = all.to_vec();
    sorted.push("1.0.0".to_owned());
    sorted.sort_by_key(|version| Version::parse(version).expect("is one"));
    assert_eq!(sorted[1..], all);
    for wrong in ["02", "a..b", "a_b", &"a".repeat(21)] {
        let why = release(&format!("'{wrong}'")).unusable.unwrap_or_default();
        assert!(why.contains(&format!("release `{wrong}`")), "{why}");
    }
}

#[test]
fn what_a_catalog_has_of_nobody_is_told() {
    let bundle = "schema: olm.bundle\npackage: p\nname: p.v1.0.0\nproperties: [{type: olm.package, value: {packageName: p, version: 1.0.0}}]\n";
    let text = [
        bundle,
        "schema: olm.channel\npackage: p\nname: a\nentries: [{name: p.v1.0.0}, {replaces: p.v0.9.0}]\n",
        "schema: olm.channel\npackage: p\nentries: [{name: p.v1.0.0}]\n",
        "schema: olm.bundle\npackage: p\nproperties: []\n",
        "schema: olm.csv\npackage: p\n",
        "schema: olm.deprecations\npackage: p\nentries: [{message: x}]\n",
        "schema: olm.package\nname: a b\n",
        "schema: olm.bundle\nname: q.v1.0.0\n",
        "schema: olm.feature\n",
        "schema: com.acme.feature\nname: x y\n",
        "schema: com.acme.feature\npackage: p\n",
    ];
    let index = index(&text.join("---\n"));
    let said = releases(&index, "p");
    let expected = [
        "an entry of the channel `a` without `name`",
        "a channel without `name`",
        "olm.csv",
        "an entry of `olm.deprecations` about nothing",
    ];
    assert_eq!(
        (&said[0].unusable, &said[0].unknown[..]),
        (&None, &expected.map(str::to_owned)[..])
    );
    assert_eq!(said[1].unusable.as_deref(), Some("a bundle of it has no `name`"));
    assert_eq!(said.len(), 2);
    assert_eq!(index.broken.len(), 3, "{:?}", index.broken);
    for part in ["`a b`", "`olm.bundle` without `package`", "the schema `olm.feature`"] {
        assert!(index.broken.iter().any(|one| one.contains(part)), "{part}: {:?}", index.broken);
    }
}

#[test]
fn types_of_olm_that_are_not_known_are_told_and_requirements_are_not_passed_over() {
    let found = bundle(
        "- {type: olm.label, value: {label: x}}\n- {type: olm.novelty, value: 1}\n- {type: acme.novelty, value: 1}\n- {type: olm.channel, value: {channelName: a}}",
    );
    assert_eq!((found.unusable, found.unknown), (None, vec!["olm.novelty".to_owned()]));
    for (properties, reason) in [
        (
            "- {type: olm.novelty.required, value: 1}",
            "a requirement of the kind `olm.novelty.required`",
        ),
        (
            "- {type: olm.label.required, value: {label: x}}",
            "a requirement of the kind `olm.label.required`",
        ),
        ("- {type: olm.constraint, value: {novelty: {}}}", "a constraint that mu does not know"),
        ("- {type: olm.constraint, value: {all: {constraints: some}}}", "are not a list"),
        ("- {type: olm.constraint, value: {all: some}}", "are not a list"),
        ("- {type: olm.deprecated, value: {}}", "its catalog has withdrawn it"),
    ] {
        let why = bundle(properties).unusable.unwrap_or_default();
        assert!(why.contains(reason), "{properties}: {why}");
    }
    for (kind, meant) in [
        ("olm.gvk", "olm.gvk.required"),
        ("olm.label", "olm.label"),
        ("olm.novelty", "olm.novelty.required"),
        ("olm.constraint", "olm.constraint"),
        ("olm.package.required", "olm.package.required"),
        ("acme.novelty", "acme.novelty"),
    ] {
        assert_eq!(properties::in_dependencies(kind), meant);
    }
}
