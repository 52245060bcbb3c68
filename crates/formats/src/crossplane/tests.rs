//! Packages of every shape, and changes to them.

use std::path::Path;

use mu_manifest::Requirement;
use mu_manifest::edit::{Editor, Section};
use mu_manifest::reference::{Defaults, VersionSpec};

use super::*;
use crate::Texts;

fn package(name: &str, text: &str) -> Result<Package, String> {
    let texts = Texts([(name.to_owned(), text.to_owned())].into());
    let format = if name == AUTHORED { FORMAT } else { PACKED };
    (format.read)(&texts, &Reading::default()).map_err(|error| error.to_string())
}

const CONFIGURATION: &str = r#"apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: platform # ours
  annotations:
    meta.crossplane.io/maintainer: Ada <ada@acme.example>
    meta.crossplane.io/source: https://git.acme.example/platform
    meta.crossplane.io/license: Apache-2.0
    meta.crossplane.io/description: |
      What teams
      stand on.
spec:
  crossplane:
    version: ">=v1.14.1-0"
  dependsOn:
    # The cloud.
    - provider: xpkg.upbound.io/upbound/provider-aws-ec2
      version: ">=v1.2.0" # for spot
    - apiVersion: pkg.crossplane.io/v1
      kind: Function
      package: xpkg.crossplane.io/crossplane-contrib/function-patch-and-transform
      version: "v0.7.0"

    - configuration: acme/network
  capabilities: [composition]
"#;

const DEFINITIONS: &str = r#"---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: ec2.aws.example
  names: {kind: Instance, plural: instances}
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v1beta1, served: true}
  - {name: v1alpha1, served: false}
---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
spec:
  group: acme.example
  names: {kind: XNetwork}
  claimNames: {kind: Network}
  versions: [{name: v1, served: true}]
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
spec: {compositeTypeRef: {kind: XNetwork}}
"#;

#[test]
fn a_package_says_what_it_needs_and_brings() {
    let found = package(PUBLISHED, &format!("{CONFIGURATION}{DEFINITIONS}")).expect("is one");
    let release = &found.release;
    let references: Vec<_> =
        release.dependencies.iter().flatten().map(|one| one.reference()).collect();
    assert_eq!(
        references,
        [
            "oci://xpkg.upbound.io/upbound/provider-aws-ec2#>=v1.2.0",
            "oci://xpkg.crossplane.io/crossplane-contrib/function-patch-and-transform#v0.7.0",
            "acme/network",
        ]
    );
    assert_eq!(
        release.provides,
        [
            "ec2.aws.example/v1/Instance",
            "ec2.aws.example/v1beta1/Instance",
            "acme.example/v1/XNetwork",
            "acme.example/v1/Network",
        ]
    );
    assert_eq!(release.constraints["crossplane"], ">=v1.14.1-0");
    assert_eq!((&*release.name, &*release.version), ("platform", ""));
    assert_eq!(release.description.as_deref(), Some("What teams stand on."));
    assert_eq!(release.license.as_deref(), Some("Apache-2.0"));
    let lines: Vec<_> = found.places.iter().map(|place| place.line).collect();
    assert_eq!(lines, [17, 19, 24]);
}

#[test]
fn the_document_of_a_package_can_stand_anywhere() {
    let resources = DEFINITIONS.strip_prefix("---\n").expect("begins so");
    let expected = package(PUBLISHED, &format!("{CONFIGURATION}{DEFINITIONS}")).expect("is one");
    for text in [
        format!("# Copyright\n---\n{CONFIGURATION}{DEFINITIONS}"),
        format!("---\n---\n{CONFIGURATION}{DEFINITIONS}"),
        format!("{resources}---\n{CONFIGURATION}"),
        format!("{resources}---\n---\n{CONFIGURATION}---\napiVersion: v1\nkind: Secret\n"),
    ] {
        assert!(is_published(&text) && is_authored(&text), "{text}");
        assert_eq!(kind_of(&text).as_deref(), Some("Configuration"), "{text}");
        let found = package(PUBLISHED, &text).expect("is one");
        assert_eq!(found.release, expected.release, "{text}");
        let line =
            1 + text.lines().position(|line| line.contains("provider: xpkg")).expect("is there");
        assert_eq!(found.places[0].line, line, "{text}");
    }
    let error = package(PUBLISHED, &format!("{CONFIGURATION}---\n{CONFIGURATION}"));
    assert_eq!(
        error.expect_err("has two"),
        "package.yaml:27:1: a second document of `meta.pkg.crossplane.io/…`: a package has one"
    );
}

#[test]
fn a_package_can_say_what_it_replaces() {
    let text = CONFIGURATION.replace(
        "  capabilities: [composition]\n",
        "  replaces:\n  - xpkg.upbound.io/upbound/platform\n  - old/platform\n",
    );
    let found = package(PUBLISHED, &text).expect("is one");
    assert_eq!(found.release.replaces, ["xpkg.upbound.io/upbound/platform", "old/platform"]);
    let seen = crate::manifest(&found).expect("has a name");
    let replaced: Vec<String> = seen.replaces.iter().map(ToString::to_string).collect();
    assert_eq!(replaced, found.release.replaces);
    for wrong in ["a b", "a#^1", "{}"] {
        let error = package(PUBLISHED, &text.replace("old/platform", wrong));
        assert!(error.expect_err("is refused").contains("`replaces` names no package by"));
    }
}

#[test]
fn a_manifest_with_a_typo_is_still_one() {
    assert!(is_authored("kind: [\n"));
    let text = CONFIGURATION.replacen("kind: ", "kind: [", 1);
    assert!(is_authored(&text) && is_published(&text));
}

#[test]
fn files_of_other_tools_are_none() {
    assert!(is_published(CONFIGURATION) && is_authored(CONFIGURATION));
    for text in [
        "",
        "name: hpack\n",
        "apiVersion: v1\nkind: Provider\n",
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Lock\n",
    ] {
        assert!(!is_published(text) && !is_authored(text), "{text}");
    }
    assert!(!is_published("{{ a template }}: {"));
    let head = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: a}\n";
    for (text, expected) in [
        ("a: 1\n", "package.yaml:1:1: this is not a package of Crossplane"),
        (&format!("{head}spec: {{dependsOn: [{{version: v1}}]}}\n"), "names no `provider`"),
        (
            &format!("{head}spec: {{dependsOn: [{{provider: a.b/c, version: newest}}]}}\n"),
            "the range `newest` of the dependency `a.b/c`",
        ),
        (
            &format!("{head}spec: {{crossplane: {{version: no}}}}\n"),
            "package.yaml:4:30: the range `no`",
        ),
    ] {
        let error = package(PUBLISHED, text).expect_err("makes no sense");
        assert!(error.contains(expected), "{text}: {error}");
    }
}

fn editor(text: &str) -> Editor {
    Editor::new(Path::new(AUTHORED), text, &Defaults::default())
        .in_dialect((FORMAT.dialect)(&Default::default()))
}

fn requirement(text: &str) -> Requirement {
    Requirement::new(mu_manifest::reference::Reference::parse(text).expect("is a reference"))
}

#[test]
fn changes_keep_everything_else() {
    let section = Section::Dependencies;
    // An author's own file names the version of each.
    let own =
        CONFIGURATION.replace("acme/network\n", "acme/network\n      version: \">=v0.0.0\"\n");
    let mut editing = editor(&own);
    let provider = requirement("oci://xpkg.upbound.io/upbound/provider-aws-ec2").reference;
    let newer = VersionSpec::parse("^1.4.0").expect("is a version");
    assert!(editing.set_version(section, &provider, Some(newer)).expect("can be said"));
    let added = requirement("oci://xpkg.upbound.io/upbound/function-kcl#^0.9.0");
    assert!(editing.add(section, &added).expect("can be said"));
    let old =
        requirement("oci://xpkg.crossplane.io/crossplane-contrib/function-patch-and-transform");
    assert!(editing.remove(section, &old.reference).expect("can be removed"));
    let expected = own
        .replace("\">=v1.2.0\" # for", "\"^1.4.0\" # for")
        .replace("    - apiVersion: pkg.crossplane.io/v1\n      kind: Function\n      package: xpkg.crossplane.io/crossplane-contrib/function-patch-and-transform\n      version: \"v0.7.0\"\n", "")
        .replace("\">=v0.0.0\"\n", "\">=v0.0.0\"\n    - function: xpkg.upbound.io/upbound/function-kcl\n      version: \"^0.9.0\"\n");
    assert_eq!(editing.text(), expected);
    // Where there are none, and where none is left.
    let bare = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: a\nspec:\n  controller:\n    image: b\n";
    let mut editing = editor(bare);
    assert!(editing.add(section, &added).expect("can be said"));
    let with = bare.replace("spec:\n", "spec:\n  dependsOn:\n    - function: xpkg.upbound.io/upbound/function-kcl\n      version: \"^0.9.0\"\n");
    assert_eq!(editing.text(), with);
    assert!(editing.remove(section, &added.reference).expect("can be removed"));
    assert_eq!(editing.text(), bare);
    let no_spec = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: a}";
    let mut editing = editor(no_spec);
    assert!(editing.add(section, &added).expect("can be said"));
    assert!(editing.text().ends_with("a}\nspec:\n  dependsOn:\n    - function: xpkg.upbound.io/upbound/function-kcl\n      version: \"^0.9.0\"\n"));
    // Empty brackets are no list yet.
    let list = "  dependsOn:\n    - function: xpkg.upbound.io/upbound/function-kcl\n      version: \"^0.9.0\"\n";
    for (empty, expected) in [
        (
            "spec:\n  dependsOn: [] # none\n  controller: {}\n",
            format!("spec:\n{}  controller: {{}}\n", list.replacen("On:", "On: # none", 1)),
        ),
        ("spec:\n  dependsOn: [ ]", format!("spec:\n{list}")),
        ("spec:\n  dependsOn:\n", format!("spec:\n{list}")),
        ("spec: {} # later\n", format!("spec: # later\n{list}")),
        ("spec: {}", format!("spec:\n{list}")),
    ] {
        let mut editing = editor(&format!("{no_spec}\n{empty}"));
        assert!(editing.add(section, &added).expect("can be said"));
        assert_eq!(editing.text(), format!("{no_spec}\n{expected}"));
        assert!(editing.remove(section, &added.reference).expect("can be removed"));
    }
    // A version that comes from elsewhere stays there.
    let merged = format!(
        "{no_spec}\nx-v: &v\n  version: 'v1.0.0'\nspec:\n  dependsOn:\n    - provider: a.b/c\n      <<: *v\n"
    );
    let mut editing = editor(&merged);
    assert_eq!(
        editing.requirements(section).expect("is read")[0].reference.as_str(),
        "oci://a.b/c#v1.0.0"
    );
    let newer = VersionSpec::parse("v1.1.0").expect("is a version");
    let package = requirement("oci://a.b/c").reference;
    assert!(editing.set_version(section, &package, Some(newer)).expect("can be said"));
    assert_eq!(editing.text(), format!("{merged}      version: \"v1.1.0\"\n"));
    // What it does not understand stays as it is.
    let brackets =
        format!("{no_spec}\nspec: {{dependsOn: [{{provider: a.b/c, version: v1.0.0}}]}}\n");
    for result in [
        editor(&brackets).add(section, &added),
        editor(&brackets).remove(section, &requirement("oci://a.b/c").reference),
        editor(bare).add(section, &requirement("helm+https://a.b/c#^1")),
    ] {
        result.expect_err("is refused");
    }
}

#[test]
fn a_package_becomes_an_image_of_its_layer() {
    for (kind, lacks) in [("Configuration", None), ("Function", Some("the image that runs it"))] {
        let text =
            format!("apiVersion: meta.pkg.crossplane.io/v1\nkind: {kind}\nmetadata: {{name: a}}\n");
        let files = [(PUBLISHED.to_owned(), text.into_bytes())].into();
        let archived = Archived {
            name: "a",
            version: "1.0.0",
            created: None,
            digests: ["sha256:1", "sha256:2"],
            is_compressed: true,
            files: &files,
        };
        let found = pushed(&archived).expect("is a package");
        assert_eq!((found.version.as_str(), found.lacks), ("v1.0.0", lacks));
        let config: serde_json::Value = serde_json::from_slice(&found.config.1).expect("is JSON");
        assert_eq!(config["config"]["Labels"]["io.crossplane.xpkg:sha256:1"], "base");
        assert_eq!(config["rootfs"]["diff_ids"][0], "sha256:2");
        assert_eq!(found.layer.1["io.crossplane.xpkg"], "base");
    }
}
