//! The content of manifests, and the errors about mistakes in them.

use std::path::Path;

use mu_provider::InnerPath;

use super::*;

fn parse(text: &str) -> Manifest {
    let path = if text.starts_with('{') { "Mu.json" } else { "Mu.yaml" };
    match Manifest::parse(Path::new(path), text) {
        Ok((manifest, _)) => manifest,
        Err(error) => panic!("{}", error.render(false)),
    }
}

/// Adds a name before `text`, and compares the rendered error without the place in its first two lines.
fn check_error(text: &str, expected: &str) {
    let text = format!("name: a\n{text}");
    let error = Manifest::parse(Path::new("Mu.yaml"), &text).expect_err("has a mistake");
    let rendered = error.render(false);
    assert_eq!(rendered, expected.trim_matches('\n'), "\n{rendered}");
}

const FULL: &str = r#"
name: acmecorp/elk
version: 1.4.0
appVersion: "8.11.1"
versioning: semver
apiVersion: mu/v1
muVersion: ">=0.1"
description: ELK stack
authors: [Ada L <ada@acmecorp.com>]
maintainers: [{name: Ada L, email: ada@acmecorp.com}]
website: https://acmecorp.github.io/elk
license: Apache-2.0
keywords: [logs]
readme: README.md
files: ["**"]
dependencies:
  - https://hub.mu.com/aws#^1.0.6
  - acmecorp/utils#~1.5   # indirect
  - {ref: "ops/kafka#3.x", channel: stable, appVersion: "2.3", prerelease: false}
devDependencies: []
replaces: [hub.mu.com/upbound/provider-family-aws]
provides: [compute.mu.com/v1/VM]
requires: [net.mu.com/v1/Network]
constraints: {kubernetes: ">=1.25"}
channels: [stable, fast]
upgrade: {replaces: 1.3.2, skips: [1.3.0], skipRange: ">=1.0.0 <1.3.0"}
exports:
  VM: {kind: class, path: ec2/vm.ts}
build: {command: ["make", "pack"], outputs: [dist]}
metadata: {anything: [goes, 1]}
x-mine: also
"#;

#[test]
fn every_key_is_read() {
    let manifest = parse(FULL);
    assert_eq!(manifest.name.to_string(), "acmecorp/elk");
    assert_eq!(manifest.version.map(|version| version.to_string()).as_deref(), Some("1.4.0"));
    assert_eq!(manifest.app_version.as_deref(), Some("8.11.1"));
    assert_eq!(manifest.versioning, Versioning::Semver);
    assert_eq!(manifest.api_version.as_deref(), Some("mu/v1"));
    assert_eq!(manifest.mu_version.map(|range| range.to_string()).as_deref(), Some(">=0.1"));
    assert_eq!(manifest.description.as_deref(), Some("ELK stack"));
    let ada = Person { name: "Ada L".into(), email: Some("ada@acmecorp.com".into()), url: None };
    assert_eq!((&manifest.authors, &manifest.maintainers), (&vec![ada.clone()], &vec![ada]));
    assert_eq!(manifest.website.as_deref(), Some("https://acmecorp.github.io/elk"));
    assert_eq!(manifest.license.as_deref(), Some("Apache-2.0"));
    assert_eq!(manifest.keywords, ["logs"]);
    assert_eq!(manifest.readme.as_ref().map(InnerPath::as_str), Some("README.md"));
    assert!(manifest.files.matches("any/file"));
    let [aws, utils, kafka] = manifest.dependencies.as_slice() else { panic!("has three") };
    assert_eq!(
        (aws.reference.as_str(), aws.indirect, aws.line),
        ("https://hub.mu.com/aws#^1.0.6", false, 17)
    );
    assert_eq!(
        (utils.reference.as_str(), utils.indirect, utils.line),
        ("acmecorp/utils#~1.5", true, 18)
    );
    assert_eq!(
        (kafka.channel.as_deref(), kafka.app_version.as_deref()),
        (Some("stable"), Some("2.3"))
    );
    assert!(manifest.dev_dependencies.is_empty());
    assert_eq!(manifest.replaces[0].as_str(), "hub.mu.com/upbound/provider-family-aws");
    assert_eq!(manifest.provides[0].as_str(), "compute.mu.com/v1/VM");
    assert_eq!(manifest.requires[0].parts(), ("net.mu.com", "v1", "Network"));
    assert!(manifest.constraints["kubernetes"].accepts("1.29.2"));
    assert_eq!(manifest.channels, ["stable", "fast"]);
    let [upgrade] = &manifest.upgrade[..] else { panic!("there is one") };
    let replaces = upgrade.replaces.as_ref().map(ToString::to_string);
    assert_eq!(replaces.as_deref(), Some("1.3.2"));
    assert_eq!((upgrade.skips.len(), upgrade.skip_range.is_some()), (1, true));
    assert_eq!(manifest.exports["VM"].kind, Some(ExportKind::Class));
    assert_eq!(manifest.build.expect("is there").command, ["make", "pack"]);
    assert!(!manifest.generated);
}

#[test]
fn the_example_is_right_and_has_every_key() {
    let text = include_str!("../../../Mu.yaml.example");
    let (manifest, warnings) = Manifest::parse(Path::new("Mu.yaml.example"), text)
        .unwrap_or_else(|error| panic!("{}", error.render(false)));
    assert_eq!((manifest.dependencies.len(), warnings), (4, Vec::new()));
    let groups = [
        schema::File::KEYS,
        schema::PersonTable::KEYS,
        schema::Upgrade::KEYS,
        schema::Export::KEYS,
        schema::Build::KEYS,
        schema::LongDependency::KEYS,
    ];
    for key in groups.concat() {
        assert!(text.contains(&format!("{key}:")), "`{key}` is missing from Mu.yaml.example");
    }
}

#[test]
fn small_manifests_are_enough() {
    let manifest = parse("name: hub.mu.com/aws/ec2\n");
    assert_eq!(manifest.name.base().map(ToString::to_string).as_deref(), Some("hub.mu.com/"));
    assert_eq!(manifest.version, None);
    assert!(manifest.files.matches("a/b"));
    parse("name: a\ndependencies:\ndevDependencies: ~\nkeywords:\nexports: {VM: }\n");
    parse("{\"name\": \"a\", \"dependencies\": [\"b#^1\"], \"metadata\": {\"n\": 1}}");
    assert_eq!(
        parse("name: a\nauthor: Ada <a@b> (https://c)\n").authors[0].to_string(),
        "Ada <a@b> (https://c)"
    );
}

#[test]
fn versions_are_what_they_are_made_of() {
    let composite = parse("name: a\nversion: 1.0.0\nappVersion: 2.3.0\nversioning: composite\n");
    assert_eq!(
        composite.version.map(|version| version.to_string()).as_deref(),
        Some("2.3.0-1.0.0")
    );
    assert_eq!(composite.written_version.as_deref(), Some("1.0.0"));
    assert_eq!(parse("name: a\nappVersion: 8.10\n").app_version.as_deref(), Some("8.10"));
}

fn check_dependencies(text: &str, expected: &[(Option<&str>, &str, bool)]) {
    let manifest = parse(text);
    let found: Vec<_> = manifest
        .dependencies
        .iter()
        .map(|r| (r.alias.as_deref(), r.reference.as_str(), r.indirect))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn dependencies_have_two_forms() {
    let list: &[_] = &[(None, "aws#^1", false), (None, "b/c", true), (None, "./d", false)];
    check_dependencies("name: a\ndependencies:\n- aws#^1\n- b/c # indirect\n- {ref: ./d}\n", list);
    check_dependencies("name: a\ndependencies: [aws#^1,\n b/c, # indirect; for d\n ./d]\n", list);
    check_dependencies(
        r#"{"name": "a", "dependencies": ["aws#^1", {"ref": "b/c", "x-indirect": true}, "./d"]}"#,
        list,
    );
    check_dependencies(
        "name: a\ndependencies: [aws#^1, b/c, ./d] # indirect\n",
        &[(None, "aws#^1", false), (None, "b/c", false), (None, "./d", false)],
    );
    check_dependencies(
        "name: a
dependencies:
  aws: ^1.0.6
  ten: 1.10
  utils: https://github.com/acme/utils#beta1 # indirect
  tagged: beta1
  hub.mu.com/b/c: {version: '>=1 <2'}
  d: {ref: b/d, version: ~1}
  hub.mu.com/e: hub.mu.com/e#1
",
        &[
            (Some("aws"), "aws#^1.0.6", false),
            (Some("ten"), "ten#1.10", false),
            (Some("utils"), "https://github.com/acme/utils#beta1", true),
            (Some("tagged"), "tagged#beta1", false),
            (Some("hub.mu.com/b/c"), "hub.mu.com/b/c#>=1 <2", false),
            (Some("d"), "b/d#~1", false),
            (Some("hub.mu.com/e"), "hub.mu.com/e#1", false),
        ],
    );
}

#[test]
fn wrong_keys_name_the_right_ones() {
    check_error(
        "Dependencies: []",
        r"
error: unknown key `Dependencies`
 --> Mu.yaml:2:1
  |
2 | Dependencies: []
  | ^^^^^^^^^^^^
  |
  = help: did you mean `dependencies`?
",
    );
    check_error(
        "dependencies: [{reff: a}]",
        r"
error: unknown key `reff`
 --> Mu.yaml:2:17
  |
2 | dependencies: [{reff: a}]
  |                 ^^^^
  |
  = help: did you mean `ref`?
",
    );
    check_error(
        "scripts: {}",
        r"
error: unknown key `scripts`
 --> Mu.yaml:2:1
  |
2 | scripts: {}
  | ^^^^^^^
  |
  = help: a key of your own starts with `x-`; settings of the workspace, such as `overrides`, are in `.mu/workspace.yaml`
",
    );
    check_error(
        "upgrade: {from: 1.0.0}",
        r"
error: unknown key `from`
 --> Mu.yaml:2:11
  |
2 | upgrade: {from: 1.0.0}
  |           ^^^^
  |
  = help: known here: `channel`, `replaces`, `skips`, `skipRange`
",
    );
    check_error(
        "exports: {VM: {kind: clas}}",
        r"
error: expected one of `module`, `class`, `function`, `variable`
 --> Mu.yaml:2:22
  |
2 | exports: {VM: {kind: clas}}
  |                      ^^^^
  |
  = help: did you mean `class`?
",
    );
}

#[test]
fn wrong_values_are_pointed_at() {
    check_error(
        "version: 1.4",
        r"
error: `1.4` is not a valid version: expected `.`, because a version has three numbers, found the end
 --> Mu.yaml:2:13
  |
2 | version: 1.4
  |             ^
  |
  = help: write `1.4.0`, or `versions: lenient` beside it if versions of this package have fewer numbers
",
    );
    check_error(
        "version: v1.4.0",
        r"
error: write the version without `v` here
 --> Mu.yaml:2:10
  |
2 | version: v1.4.0
  |          ^
  |
  = help: write `1.4.0`
",
    );
    check_error(
        "version: 1.0.0\nversioning: composite",
        r"
error: a composite version needs `appVersion` too
 --> Mu.yaml:2:10
  |
2 | version: 1.0.0
  |          ^^^^^
",
    );
    check_error(
        "dependencies:\n  - acme//utils#^1",
        r"
error: `acme//utils#^1` is not a valid reference: expected a name that begins with a letter, a digit or `_`, found `/`
 --> Mu.yaml:3:10
  |
3 |   - acme//utils#^1
  |          ^
  |
  = help: write `acme/utils#^1`
",
    );
    check_error(
        "dependencies:\n  - \"acme/utils#^1 ||| 2\"",
        r#"
error: `acme/utils#^1 ||| 2` is not a valid reference: expected a version or a comparator, such as `1.x`, `^1.2` or `>=1.2`, found `|`
 --> Mu.yaml:3:22
  |
3 |   - "acme/utils#^1 ||| 2"
  |                      ^
"#,
    );
    check_error(
        "dependencies: utils#^1, aws/ec2",
        r"
error: dependencies must be a list or a map
 --> Mu.yaml:2:15
  |
2 | dependencies: utils#^1, aws/ec2
  |               ^^^^^^^^^^^^^^^^^
  |
  = help: write `[utils#^1, aws/ec2]`
",
    );
    check_error(
        "dependencies: utils",
        r"
error: dependencies must be a list or a map
 --> Mu.yaml:2:15
  |
2 | dependencies: utils
  |               ^^^^^
  |
  = help: write `- utils` on a line of its own
",
    );
    check_error(
        "dependencies:\n  - utils: ^1",
        r"
error: unknown key `utils`
 --> Mu.yaml:3:5
  |
3 |   - utils: ^1
  |     ^^^^^
  |
  = help: in a list, write the name and the version together: `name#version`
",
    );
    check_error(
        "dependencies:\n  utils: {git: 'https://h.co/u.git', tag: v1}",
        r"
error: unknown key `git`
 --> Mu.yaml:3:11
  |
3 |   utils: {git: 'https://h.co/u.git', tag: v1}
  |           ^^^
  |
  = help: write the repository, and the tag or range, as `ref`: `ref: git+https://HOST/x.git#v1.0.0`
",
    );
    check_error(
        "dependencies:\n  - name: utils\n    version: ^1",
        r"
error: unknown key `name`
 --> Mu.yaml:3:5
  |
3 |   - name: utils
  |     ^^^^
  |
  = help: write the package as `ref`: `ref: aws/ec2`, and `version` beside it
",
    );
    check_error(
        "dependencies:\n  utils#^1: ^1",
        r"
error: the version goes after the colon, not into the key
 --> Mu.yaml:3:8
  |
3 |   utils#^1: ^1
  |        ^^^
",
    );
    check_error(
        "dependencies: {a b: c/d}",
        r"
error: `a b` is not a valid package name: expected a letter, a digit, `_`, `.`, `-`, `/` or the end, found ` `
 --> Mu.yaml:2:17
  |
2 | dependencies: {a b: c/d}
  |                 ^
",
    );
    check_error(
        "dependencies:\n  - b/c#^1\n  - d\n  - https://hub.mu.com/b/c#^2\n  - b/c",
        r"
error: `b/c` is listed twice, on lines 3 and 6
 --> Mu.yaml:6:5
  |
3 |   - b/c#^1
  |     ------ first here
...
6 |   - b/c
  |     ^^^
  |
  = help: keep one of them
",
    );
    check_error(
        "dependencies:\n  b:\n",
        r"
error: this dependency has no version
 --> Mu.yaml:3:3
  |
3 |   b:
  |   ^
  |
  = help: write `latest` to accept any version
",
    );
    check_error(
        "provides: [VM]",
        r"
error: `VM` is not a valid capability: expected GROUP/VERSION/KIND
 --> Mu.yaml:2:12
  |
2 | provides: [VM]
  |            ^^
  |
  = help: such as `compute.mu.com/v1/VM`
",
    );
    check_error(
        "constraints: {kubernetes: '>=foo'}",
        r"
error: `>=foo` is not a valid range: expected a version, such as `1.2`, found `f`
 --> Mu.yaml:2:30
  |
2 | constraints: {kubernetes: '>=foo'}
  |                              ^
",
    );
    check_error(
        "build: make pack",
        r"
error: expected a map, found text
 --> Mu.yaml:2:8
  |
2 | build: make pack
  |        ^^^^^^^^^
  |
  = help: write lines such as `key: value`, or `{key: value}`
",
    );
    check_error(
        "build: {command: make pack}",
        r#"
error: `command` must be a list
 --> Mu.yaml:2:18
  |
2 | build: {command: make pack}
  |                  ^^^^^^^^^
  |
  = help: write the program and each argument separately: `["make", "pack"]`
"#,
    );
    check_error(
        "readme: ../../secret",
        r"
error: expected a path inside the package
 --> Mu.yaml:2:9
  |
2 | readme: ../../secret
  |         ^^^^^^^^^^^^
",
    );
    check_error(
        "files: ['{a']",
        r"
error: this `{` is not closed
 --> Mu.yaml:2:10
  |
2 | files: ['{a']
  |          ^
",
    );
    check_error(
        "files: '*.yaml, a'",
        r#"
error: expected a list, found text
 --> Mu.yaml:2:8
  |
2 | files: '*.yaml, a'
  |        ^^^^^^^^^^^
  |
  = help: write `["*.yaml", a]`
"#,
    );
    check_error(
        "keywords: logs",
        r"
error: expected a list, found text
 --> Mu.yaml:2:11
  |
2 | keywords: logs
  |           ^^^^
  |
  = help: write `[logs]`
",
    );
    check_error(
        "description: [a]",
        r"
error: expected text, found a list
 --> Mu.yaml:2:14
  |
2 | description: [a]
  |              ^^^
  |
  = help: write `a`, without brackets
",
    );
    check_error(
        "apiVersion: mu/v2\nunheardOf: 1",
        r"
error: unknown manifest format `mu/v2`
 --> Mu.yaml:2:13
  |
2 | apiVersion: mu/v2
  |             ^^^^^
  |
  = help: this mu reads `mu/v1`; a newer mu may read more
",
    );
    check_error(
        "replaces: [b#1]",
        r"
error: no version belongs here
 --> Mu.yaml:2:13
  |
2 | replaces: [b#1]
  |             ^^
  |
  = help: write a name such as `acmecorp/elk`, or one with its base, such as `hub.acme.co/elk`
",
    );
    check_error(
        "author: a\nauthors: [b]",
        r"
error: `author` and `authors` are the same key
 --> Mu.yaml:2:9
  |
2 | author: a
  |         ^
",
    );
}

#[test]
fn names_are_names() {
    let check = |text: &str, expected: &str| {
        let error = Manifest::parse(Path::new("Mu.yaml"), text).expect_err("has a mistake");
        assert_eq!(error.to_string(), expected, "{text}");
    };
    check("", "Mu.yaml:1:1: the manifest is empty");
    check("version: 1.0.0\n", "Mu.yaml:1:1: the manifest has no `name`");
    check("name:\n", "Mu.yaml:1:1: the manifest has no `name`");
    check("name: https://hub.mu.com/a\n", "Mu.yaml:1:7: no protocol belongs here");
    check("name: a#1\n", "Mu.yaml:1:8: no version belongs here");
    check("name: ./a\n", "Mu.yaml:1:7: a folder is not a name");
    check(
        "name: a b\n",
        "Mu.yaml:1:8: `a b` is not a valid package name: expected a letter, a digit, `_`, `.`, `-`, `/` or the end, found ` `",
    );
    check("name: [a]\n", "Mu.yaml:1:7: expected text, found a list");
    check("- a\n", "Mu.yaml:1:1: expected a map, found a list");
}

#[test]
fn a_version_that_became_a_comment_is_warned_of() {
    let text = "name: a\ndependencies:\n  - b/b #^1.0\n  - c # ^1\n  - d#^1 #2\n  - e #soon\n  - f\n  - ./g #1.2.3 \n  - h # indirect\n";
    let (_, warnings) = Manifest::parse(Path::new("Mu.yaml"), text).expect("is right");
    let shown: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let expected = |line: usize, version: &str, whole: &str| {
        format!(
            "Mu.yaml:{line}: `{version}` is a comment, because there is a space before it; write `{whole}` for that version"
        )
    };
    assert_eq!(shown, [expected(3, "#^1.0", "b/b#^1.0"), expected(8, "#1.2.3", "./g#1.2.3")]);
    let map = "name: a\ndependencies:\n  b: c/b #~2\n";
    let (_, warnings) = Manifest::parse(Path::new("Mu.yaml"), map).expect("is right");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let brackets = "name: a\ndependencies: [b #^1]\n";
    let error = Manifest::parse(Path::new("Mu.yaml"), brackets).expect_err("is never closed");
    assert!(error.help_text().is_some_and(|help| help.contains("starts a comment")), "{error}");
}

#[test]
fn what_has_no_effect_is_warned_of() {
    let text = "name: a\ndependencies:\n  - {ref: 'b#1.0.0', prerelease: true}\n  - {ref: 'c#^1', channel: x}\n";
    let (_, warnings) = Manifest::parse(Path::new("Mu.yaml"), text).expect("is right");
    let shown: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["Mu.yaml:3: `prerelease` has no effect with the exact version `1.0.0`"]);
}

#[test]
fn heads_are_cheap_and_lenient() {
    let text =
        "name: a/b\nversion: 1.0.0\nexports: {VM: {}, Net: {}}\ndependencies: [wrong//one]\n";
    let head = Head::parse(Path::new("Mu.yaml"), text).expect("is right in what is read");
    assert_eq!(head.exports, ["Net", "VM"]);
    assert_eq!(head.version.map(|version| version.to_string()).as_deref(), Some("1.0.0"));
    assert!(!head.generated);
}

#[test]
fn generated_manifests_say_so() {
    for version in [None, Some("1.2.3")] {
        let manifest = parse(&generated_manifest("acme/\"x", version).replace("\\\"", ""));
        assert!(manifest.generated);
        assert_eq!(manifest.name.as_str(), "acme/x");
        assert_eq!(manifest.version.map(|version| version.to_string()).as_deref(), version);
    }
}

#[test]
fn folders_hold_one_manifest() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("writes");
    };
    let remove = |name: &str| std::fs::remove_file(folder.path().join(name)).expect("removes");
    assert!(Manifest::locate(folder.path()).is_ok_and(|found| found.is_none()));
    write("mu.yml", "name: a\n");
    assert!(Manifest::load(folder.path()).is_ok_and(|found| found.is_none()));
    let warning = misspelt(folder.path()).expect("is noticed");
    assert_eq!(warning.message(), "`mu.yml` is not read as a manifest: its name must be `Mu.yaml`");
    remove("mu.yml");
    write("Mu.json", "{\"name\": \"a\"}");
    let loaded = Manifest::load(folder.path()).expect("reads").expect("is there");
    assert_eq!(loaded.path, folder.path().join("Mu.json"));
    write("Mu.yaml", "name: a\n");
    let error = Manifest::load(folder.path()).expect_err("are two").to_string();
    assert!(
        error.ends_with("contains both `Mu.yaml` and `Mu.json`: remove one of them"),
        "{error}"
    );
    remove("Mu.json");
    assert!(misspelt(folder.path()).is_none());
    std::fs::write(folder.path().join("Mu.yaml"), b"name: a\ndescription: \xff\n").expect("writes");
    let error = Manifest::load_head(folder.path()).expect_err("is not text").to_string();
    assert!(error.ends_with("Mu.yaml:2:14: this is not UTF-8 text"), "{error}");
}

#[cfg(unix)]
#[test]
fn only_a_file_is_a_manifest() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let (yaml, json) = (folder.path().join(YAML_NAME), folder.path().join(JSON_NAME));
    std::fs::create_dir(&yaml).expect("is ours");
    std::os::unix::fs::symlink("nowhere", &json).expect("is ours");
    assert!(Manifest::load(folder.path()).is_ok_and(|found| found.is_none()));
    std::fs::remove_dir(&yaml).expect("is ours");
    // Opening the pipe would wait for a writer.
    let made = std::process::Command::new("mkfifo").arg(&yaml).status().expect("can be run");
    assert!(made.success());
    assert!(Manifest::load_head(folder.path()).is_ok_and(|found| found.is_none()));
}
