//! Modules in all their forms, and changes to them.

use std::path::Path;
use std::sync::Arc;

use mu_manifest::Requirement;
use mu_manifest::edit::{Editor, Known, Section};
use mu_manifest::reference::{Defaults, Reference, VersionSpec};

use super::*;
use crate::Texts;

fn module(text: &str, is_own: bool) -> Result<Package, String> {
    let texts = Texts([(MODULE.to_owned(), text.to_owned())].into());
    let around = Reading { is_own, ..Reading::default() };
    read(&texts, &around).map_err(|error| error.to_string())
}

fn references(package: &Package) -> Vec<&str> {
    package.release.dependencies.iter().flatten().map(|one| one.reference()).collect()
}

const WEB: &str = r#"# The front door.
[package]
name = "web"
edition = "v0.11.0"
version = "1.35"
description = "serves"

[dependencies]
# What Kubernetes knows.
k8s = "1.31.2"  # pinned by nobody
json = { oci = "oci://registry.example/libs/json-merge", tag = "v0.1.1", version = "0.1.1" }
helper = { repo = "acme/helper", tag = "edge" }
flask = { git = "https://github.com/kcl-lang/flask-demo-kcl-manifests", tag = "v0.1.0" }
site = { git = "ssh://git@git.example/site.git", commit = "8308200" }
inside = { path = "./lib/inside" }

[dependencies.beside]
path = "../beside"

[profile]
entries = ["main.k"]
"#;

#[test]
fn every_kind_of_dependency_is_a_reference() {
    let package = module(WEB, true).expect("is a module");
    let release = &package.release;
    let head = (&*release.name, &*release.version, release.is_lenient());
    assert_eq!(head, ("web", "1.35", true));
    assert_eq!(release.description.as_deref(), Some("serves"));
    assert_eq!(
        references(&package),
        [
            "../beside",
            "oci://ghcr.io/kcl-lang/k8s#^1.31.2",
            "oci://registry.example/libs/json-merge#^0.1.1",
            "oci://ghcr.io/acme/helper#edge",
            "git+https://github.com/kcl-lang/flask-demo-kcl-manifests#v0.1.0",
            "ssh://git@git.example/site.git#8308200",
            "./lib/inside",
        ]
    );
    let places: Vec<_> = package.places.iter().map(|place| (place.index, place.line)).collect();
    assert_eq!(places, [(0, 17), (1, 10), (2, 11), (3, 12), (4, 13), (5, 14), (6, 15)]);
    // A fetched module contains the folders.
    let got = module(WEB, false).expect("is a module");
    assert_eq!(references(&got).first(), Some(&"../beside"));
    assert_eq!(got.release.bundled, ["inside"]);
    // Name and version matter to nobody but those who publish.
    for text in
        ["[package]\nname = \"x\"\n", "[package]\n", "", "\u{feff}[package]\r\nname = \"x\"\r\n"]
    {
        let bare = module(text, true).expect("is a module");
        assert_eq!((&*bare.release.version, bare.release.dependencies), ("", Some(Vec::new())));
    }
    // One of several modules in a place is named by its own name.
    for (entry, expected) in [
        (
            "git = \"https://a.b/c/d.git\", tag = \"v1\", package = \"e\"",
            "git+https://a.b/c/d.git/e#refs/tags/v1",
        ),
        (
            "git = \"https://a.b/c/d.git\", commit = \"8308200\", tag = \"v1\"",
            "git+https://a.b/c/d.git#refs/tags/v1",
        ),
        // Without a revision, it is the tip of the default branch.
        ("git = \"https://a.b/c/d.git\"", "git+https://a.b/c/d.git#tip"),
        ("package = \"e\", version = \"1.2\"", "oci://ghcr.io/kcl-lang/e#^1.2"),
        ("reg = \"a.b\", repo = \"c/d\", tag = \"1.2.0\"", "oci://a.b/c/d#^1.2.0"),
    ] {
        let text = format!("[dependencies]\nx = {{ {entry} }}\n");
        let read = module(&text, true).expect("is a module").release.dependencies;
        let read: Vec<String> =
            read.iter().flatten().map(|one| one.reference().to_owned()).collect();
        assert_eq!(read, [expected]);
    }
}

#[test]
fn what_makes_no_sense_is_pointed_at() {
    for (text, expected) in [
        ("[package]\nnmae = \"a\"\n", "kcl.mod:2:1: unknown key `nmae`; did you mean `name`?"),
        ("[dependencys]\n", "kcl.mod:1:2: unknown key `dependencys`; did you mean `dependencies`?"),
        (
            "[dependencies]\nb = { oci = \"oci://x/y\", tga = \"1\" }\n",
            "kcl.mod:2:26: unknown key `tga`; did you mean `tag`?",
        ),
        ("[dependencies.b]\ngti = \"x\"\n", "kcl.mod:2:1: unknown key `gti`; did you mean `git`?"),
        ("[package]\nname = 7\n", "kcl.mod:2:8: `name` must be text"),
        ("[package]\nname = \"a/b\"\n", "kcl.mod:2:8: `a/b` is not the name of a module"),
        ("[package]\nname = \"a\"\nversion = \"x\"\n", "kcl.mod:3:11: `x` is not a version"),
        (
            "[package]\nname = \"a\"\nversion = 1\n",
            "kcl.mod:3:11: `version` must be text: write `version = \"1\"`",
        ),
        (
            "[package]\nname = \"a\"\nversion = [1]\n",
            "kcl.mod:3:11: `version` must be text, and is `[1]`",
        ),
        ("[package]\nname = \"a\nversion", "kcl.mod:3:8: key with no value"),
        (
            "dependencies = 1\n[package]\nname = \"a\"\n",
            "kcl.mod:1:16: `dependencies` must be a table",
        ),
        (
            "[package]\nname = \"a\"\n[dependencies]\nb = 1\n",
            "kcl.mod:4:5: the dependency `b` must be a version, or a table",
        ),
        (
            "[package]\nname = \"a\"\n[dependencies]\nb = { tag = \"1\" }\n",
            "kcl.mod:4:5: the dependency `b` names no `oci`",
        ),
        (
            "[package]\nname = \"a\"\n[dependencies]\nb = { oci = \"https://x\" }\n",
            "does not begin with `oci://`",
        ),
        (
            "[package]\nname = \"a\"\n[dependencies]\nb = { oci = \"oci://x y/z\" }\n",
            "has no valid reference",
        ),
    ] {
        let error = module(text, true).expect_err("makes no sense");
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

fn editor(text: &str) -> Editor {
    Editor::new(Path::new(MODULE), text, &Defaults::default()).in_dialect(Arc::new(edit::Modules))
}

fn requirement(text: &str) -> Requirement {
    Requirement::new(Reference::parse(text).expect("is a reference"))
}

#[test]
fn changes_keep_everything_else() {
    let mut editor = editor(WEB);
    let section = Section::Dependencies;
    assert!(
        editor
            .add(section, &requirement("oci://ghcr.io/kcl-lang/helloworld#^0.1.2"))
            .expect("can be said")
    );
    assert!(
        editor
            .add(section, &requirement("oci://registry.example/libs/base#^2.0.0"))
            .expect("can be said")
    );
    assert!(
        editor
            .add(section, &requirement("git+https://git.example/tools#v3.0.0"))
            .expect("can be said")
    );
    let k8s = Reference::parse("oci://ghcr.io/kcl-lang/k8s").expect("is a reference");
    let newer = VersionSpec::parse("^1.32.0").expect("is a version");
    assert!(editor.set_version(section, &k8s, Some(newer)).expect("can be said"));
    let json = Reference::parse("oci://registry.example/libs/json-merge").expect("is a reference");
    let pin = VersionSpec::parse("0.1.4").expect("is a version");
    assert!(editor.set_version(section, &json, Some(pin)).expect("can be said"));
    let helper = Reference::parse("oci://ghcr.io/acme/helper").expect("is a reference");
    assert!(editor.remove(section, &helper).expect("can be removed"));
    let beside = Reference::parse("../beside").expect("is a reference");
    assert!(editor.remove(section, &beside).expect("can be removed"));
    assert_eq!(
        editor.text(),
        r#"# The front door.
[package]
name = "web"
edition = "v0.11.0"
version = "1.35"
description = "serves"

[dependencies]
# What Kubernetes knows.
k8s = "1.32.0"  # pinned by nobody
json = { oci = "oci://registry.example/libs/json-merge", tag = "v0.1.4", version = "0.1.4" }
flask = { git = "https://github.com/kcl-lang/flask-demo-kcl-manifests", tag = "v0.1.0" }
site = { git = "ssh://git@git.example/site.git", commit = "8308200" }
inside = { path = "./lib/inside" }
helloworld = "0.1.2"
base = { oci = "oci://registry.example/libs/base", tag = "2.0.0" }
tools = { git = "https://git.example/tools", tag = "v3.0.0" }

[profile]
entries = ["main.k"]
"#
    );
}

#[test]
fn what_it_cannot_say_is_refused() {
    for (text, expected) in [
        ("oci://ghcr.io/kcl-lang/a#>=1 <3", "`kcl.mod` cannot say `>=1 <3`"),
        ("helm+https://charts.example/a#^1", "a KCL module cannot depend on"),
        ("gitlab://git.example/a#^1", "a KCL module cannot depend on"),
        ("sshfs://git.example/a", "a KCL module cannot depend on"),
        ("git+https://git.example/a#^1", "`kcl.mod` cannot say `^1`"),
        ("oci://other.example/k8s#^1", "there is another dependency called `k8s`"),
    ] {
        let error = editor(WEB).add(Section::Dependencies, &requirement(text));
        let error = error.expect_err("cannot be said").to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    // A text without the section, and one of Windows.
    let mut bare = editor("[package]\r\nname = \"x\"\r\n");
    bare.add(Section::Dependencies, &requirement("oci://ghcr.io/kcl-lang/a#^1.0.0")).expect("fits");
    assert_eq!(bare.text(), "[package]\r\nname = \"x\"\r\n\r\n[dependencies]\r\na = \"1.0.0\"\r\n");
}

#[test]
fn a_dependency_has_a_name_that_a_folder_can_have() {
    for name in
        ["", "a/b", "../x", "/x", "x\\u001b[31m", "a\\nb", "a\\\\b", "c:", ".git", ".mu", ".."]
    {
        let text = format!(
            "[package]\nname = \"web\"\nversion = \"1.0.0\"\n[dependencies]\n\"{name}\" = {{ oci = \"oci://h.example/a\", tag = \"1.0.0\" }}\n"
        );
        for is_own in [true, false] {
            let error = module(&text, is_own).expect_err(name);
            assert!(error.contains("a name that no module can have"), "{name}: {error}");
            assert!(
                !error.contains(|letter: char| letter.is_control() && letter != '\n'),
                "{error:?}"
            );
        }
    }
}

#[test]
fn a_comment_marks_what_only_others_need() {
    let mut editor = editor("[package]\nname = \"x\"\n\n[dependencies]\nk8s = \"1.28\"  # mine\n");
    let section = Section::Dependencies;
    let konfig =
        Requirement { indirect: true, ..requirement("oci://ghcr.io/kcl-lang/konfig#^0.4") };
    assert!(editor.takes(section, &konfig));
    editor.add(section, &konfig).expect("can be said");
    let marked = "k8s = \"1.28\"  # mine\nkonfig = \"0.4\" # indirect\n";
    assert!(editor.text().ends_with(marked), "{}", editor.text());
    let read = module(editor.text(), true).expect("is a module");
    assert_eq!(read.indirect, [1]);
    // A new version keeps the mark; who asks for it takes the mark away.
    let konfig = Requirement { indirect: false, ..konfig };
    let newer = VersionSpec::parse("^0.5").expect("is a version");
    editor.set_version(section, &konfig.reference, Some(newer)).expect("can be said");
    assert!(editor.text().ends_with("konfig = \"0.5\" # indirect\n"), "{}", editor.text());
    editor.add(section, &konfig).expect("can be said");
    assert!(editor.text().ends_with("konfig = \"0.4\"\n"), "{}", editor.text());
    // Nothing marks what is in Git.
    let git = Requirement { indirect: true, ..requirement("git+https://git.example/tools#v3.0.0") };
    assert!(editor.takes(section, &Requirement { indirect: false, ..git.clone() }));
    assert!(!editor.takes(section, &git));
}

#[test]
fn an_entry_names_a_tag() {
    let mut editor = editor("[package]\nname = \"x\"\n\n[dependencies]\nk8s = \"1.28\"\n");
    let known = |tag: &str| Known { tag: Some(tag.to_owned()), ..Known::default() };
    let section = Section::Dependencies;
    assert!(editor.describe(section, 0, &known("v1.28")).expect("can be said"));
    assert!(editor.text().ends_with("k8s = \"v1.28\"\n"));
    assert!(!editor.describe(section, 0, &known("v1.29")).expect("is another version"));
    // What names no version has no key for one.
    let k8s = requirement("oci://ghcr.io/kcl-lang/k8s").reference;
    let error = editor.set_version(section, &k8s, None).expect_err("names nothing else");
    assert!(error.to_string().contains("the version is all that this entry says"), "{error}");
    let text =
        "[package]\nname = \"x\"\n\n[dependencies]\na = { oci = \"oci://h/a\", tag = \"1.0.0\" }\n";
    let mut open = self::editor(text);
    open.set_version(section, &requirement("oci://h/a").reference, None).expect("can be said");
    assert!(open.text().ends_with("a = { oci = \"oci://h/a\" }\n"), "{}", open.text());
}

#[test]
fn a_module_becomes_what_kcl_makes_of_it() {
    let text = "[package]\nname = \"lib\"\nversion = \"0.4\"\ndescription = \"x\"\n";
    let files = [("kcl.mod", text), ("main.k", "a = 1\n")];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into();
    let artifact = FORMAT.artifact.expect("it is in registries");
    let content = "application/vnd.oci.image.layer.v1.tar";
    for (is_compressed, kind, end) in
        [(true, format!("{content}+gzip"), "tgz"), (false, content.to_owned(), "tar")]
    {
        let archived = Archived {
            name: "other",
            version: "0.4",
            created: None,
            digests: [""; 2],
            is_compressed,
            files: &files,
        };
        let found = (artifact.pushed)(&archived).expect("is a module");
        assert_eq!((found.version.as_str(), found.artifact_type), ("0.4", Some(&*kind)));
        let title = &found.layer.1["org.opencontainers.image.title"];
        assert_eq!((found.layer.0, title), (&*kind, &format!("lib_0.4.{end}")));
        let said = |key: &str| found.annotations[&format!("org.kcllang.package.{key}")].as_str();
        assert_eq!([said("name"), said("description"), said("sum")], ["lib", "x", &sum(&files)]);
    }
}

#[test]
fn files_count_in_the_order_of_a_walk() {
    let of = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        sum(&files.collect::<std::collections::BTreeMap<_, _>>())
    };
    let whole = of(&[("x", "abc")]);
    // A folder comes where its name does, whatever is in it.
    assert_eq!(of(&[("a.k", "b"), ("a/b.k", "a"), ("b", "c")]), whole);
    assert_eq!(of(&[("x", "abc"), (".gitignore", "q"), ("a.tar", "q")]), whole);
    assert_ne!(of(&[("x", "abd")]), whole);
}
