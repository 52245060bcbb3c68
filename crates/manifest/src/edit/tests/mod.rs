//! Changes keep everything of a person's layout.

mod random;

use std::path::Path;

use super::*;

fn requirement(text: &str) -> Requirement {
    let (reference, indirect) = match text.strip_suffix(" # indirect") {
        Some(reference) => (reference, true),
        None => (text, false),
    };
    let reference = Reference::parse(reference).expect("is a reference");
    Requirement { indirect, ..Requirement::new(reference) }
}

fn path_of(text: &str) -> &'static Path {
    Path::new(if text.starts_with('{') && text.contains("\"name\"") {
        "Mu.json"
    } else {
        "Mu.yaml"
    })
}

fn editor(text: &str) -> Editor {
    Editor::new(path_of(text), text, &Defaults::default())
}

fn check_add(before: &str, added: &str, after: &str) {
    check_add_to(Section::Dependencies, before, &requirement(added), after);
}

fn check_add_to(section: Section, before: &str, added: &Requirement, after: &str) {
    let mut editor = editor(before);
    let changed = editor.add(section, added);
    assert!(matches!(changed, Ok(true)), "{before}: {changed:?}");
    assert_eq!(editor.text(), after, "{before}");
}

#[test]
fn entries_are_added_to_lists() {
    check_add(
        "name: a\ndependencies:\n  - b\n",
        "c#^1",
        "name: a\ndependencies:\n  - b\n  - c#^1\n",
    );
    check_add(
        "name: a\ndependencies:\n- b\nlicense: MIT\n",
        "c#^1",
        "name: a\ndependencies:\n- b\n- c#^1\nlicense: MIT\n",
    );
    check_add(
        "name: a # me\ndependencies: # all\n    - b # the b\n    # - d\n\n# end\n",
        "c",
        "name: a # me\ndependencies: # all\n    - b # the b\n    - c\n    # - d\n\n# end\n",
    );
    check_add(
        "name: a\ndependencies:\n  - {ref: b,\n     channel: x} # two lines\n",
        "c",
        "name: a\ndependencies:\n  - {ref: b,\n     channel: x} # two lines\n  - c\n",
    );
    check_add(
        "name: a\ndependencies:\n  - ref: b\n    channel: x\nx-y: 1",
        "c",
        "name: a\ndependencies:\n  - ref: b\n    channel: x\n  - c\nx-y: 1",
    );
    check_add("name: a\ndependencies:\n  - b", "c", "name: a\ndependencies:\n  - b\n  - c");
    check_add(
        "name: a\r\ndependencies:\r\n  - b # x\r\n",
        "c",
        "name: a\r\ndependencies:\r\n  - b # x\r\n  - c\r\n",
    );
    // Programs that did not agree about line endings: each line keeps its own.
    check_add(
        "name: a\r\ndependencies:\r\n  - b\nx-y: 1\r\n",
        "c",
        "name: a\r\ndependencies:\r\n  - b\n  - c\nx-y: 1\r\n",
    );
    check_add("name: a\r\nx-y: 1\n", "b", "name: a\r\nx-y: 1\ndependencies:\n  - b\n");
    check_add(
        "name: a\ndependencies:\n  - 'b'\n",
        "c",
        "name: a\ndependencies:\n  - 'b'\n  - 'c'\n",
    );
    check_add(
        "name: a\ndependencies:\n  - \"b\"\n",
        "c",
        "name: a\ndependencies:\n  - \"b\"\n  - \"c\"\n",
    );
    check_add(
        "name: a\ndependencies:\n  - b\n",
        "c#>=1 <2",
        "name: a\ndependencies:\n  - b\n  - c#>=1 <2\n",
    );
}

#[test]
fn empty_lists_become_lines() {
    check_add("name: a\ndependencies: []\n", "b#^1", "name: a\ndependencies:\n  - b#^1\n");
    check_add(
        "name: a\ndependencies: [] # none\nx-y: 1\n",
        "b",
        "name: a\ndependencies: # none\n  - b\nx-y: 1\n",
    );
    check_add("name: a\ndependencies:\n", "b", "name: a\ndependencies:\n  - b\n");
    check_add("name: a\ndependencies: ~\n", "b", "name: a\ndependencies:\n  - b\n");
    check_add(
        "name: a\ndependencies: # none\n  # - c\nx-y: 1\n",
        "b",
        "name: a\ndependencies: # none\n  - b\n  # - c\nx-y: 1\n",
    );
    check_add("name: a\ndependencies:", "b", "name: a\ndependencies:\n  - b");
    check_add(
        "name: a\nkeywords:\n- x\ndependencies: []\n",
        "b",
        "name: a\nkeywords:\n- x\ndependencies:\n- b\n",
    );
    check_add("name: a\ndependencies: {}\n", "b#^1", "name: a\ndependencies:\n  b: ^1\n");
}

#[test]
fn missing_keys_are_written() {
    check_add("name: a\n", "b#^1", "name: a\ndependencies:\n  - b#^1\n");
    check_add("name: a", "b", "name: a\ndependencies:\n  - b");
    check_add("name: a\r\n", "b", "name: a\r\ndependencies:\r\n  - b\r\n");
    check_add(
        "name: a\ndescription: |\n  text\n",
        "b",
        "name: a\ndescription: |\n  text\ndependencies:\n  - b\n",
    );
    check_add("name: a\n...\n", "b", "name: a\ndependencies:\n  - b\n...\n");
    check_add("{name: a}\n", "b#^1", "{name: a, dependencies: [b#^1]}\n");
    check_add(
        "# only a comment\nname: a\n# end\n",
        "b",
        "# only a comment\nname: a\n# end\ndependencies:\n  - b\n",
    );
    let before = "name: a\ndependencies:\n    - b\n";
    check_add_to(
        Section::DevDependencies,
        before,
        &requirement("c"),
        "name: a\ndependencies:\n    - b\ndevDependencies:\n    - c\n",
    );
}

#[test]
fn entries_are_added_in_brackets() {
    check_add("name: a\ndependencies: [b] # x\n", "c#^1", "name: a\ndependencies: [b, c#^1] # x\n");
    check_add("name: a\ndependencies: [ b, ]\n", "c", "name: a\ndependencies: [ b, c, ]\n");
    check_add(
        "name: a\ndependencies: [b]\n",
        "c#>1, <3",
        "name: a\ndependencies: [b, \"c#>1, <3\"]\n",
    );
    check_add(
        "name: a\ndependencies: [\n  b # x, y\n]\n",
        "c",
        "name: a\ndependencies: [\n  b, # x, y\n  c\n]\n",
    );
    check_add(
        "name: a\ndependencies: [\n  b, # x\n  # y\n]\n",
        "c",
        "name: a\ndependencies: [\n  b, # x\n  c,\n  # y\n]\n",
    );
    check_add("name: a\ndependencies: [\n  b]\n", "c", "name: a\ndependencies: [\n  b,\n  c]\n");
    check_add("name: a\ndependencies: [ # none\n]\n", "b", "name: a\ndependencies: [b # none\n]\n");
}

#[test]
fn entries_are_added_to_maps() {
    check_add(
        "name: a\ndependencies:\n  b: ^1\n",
        "c#^2",
        "name: a\ndependencies:\n  b: ^1\n  c: ^2\n",
    );
    check_add(
        "name: a\ndependencies:\n  b: ^1\n",
        "c#>=2",
        "name: a\ndependencies:\n  b: ^1\n  c: \">=2\"\n",
    );
    check_add(
        "name: a\ndependencies:\n  b: ^1\n",
        "x/c",
        "name: a\ndependencies:\n  b: ^1\n  x/c: latest\n",
    );
    check_add(
        "name: a\ndependencies:\n  b: ^1\n",
        "https://github.com/x/c#beta",
        "name: a\ndependencies:\n  b: ^1\n  c: https://github.com/x/c#beta\n",
    );
    check_add(
        "name: a\ndependencies:\n  c: ^1\n",
        "https://github.com/x/c#beta",
        "name: a\ndependencies:\n  c: ^1\n  x/c: https://github.com/x/c#beta\n",
    );
    check_add(
        "name: a\ndependencies:\n  b: ^1\n",
        "c#release/1",
        "name: a\ndependencies:\n  b: ^1\n  c: c#release/1\n",
    );
    check_add(
        "name: a\ndependencies: {b: ^1}\n",
        "c#^2",
        "name: a\ndependencies: {b: ^1, c: ^2}\n",
    );
    check_add(
        "name: a\ndependencies:\n  b: ^1\n",
        "./c",
        "name: a\ndependencies:\n  b: ^1\n  c: ./c\n",
    );
}

#[test]
fn entries_are_added_to_json() {
    check_add("{\"name\": \"a\"}", "b#^1", "{\"name\": \"a\", \"dependencies\": [\"b#^1\"]}");
    check_add(
        "{\n  \"name\": \"a\"\n}\n",
        "b",
        "{\n  \"name\": \"a\",\n  \"dependencies\": [\n    \"b\"\n  ]\n}\n",
    );
    check_add(
        "{\n\t\"name\": \"a\",\n\t\"dependencies\": [],\n\t\"license\": \"MIT\"\n}\n",
        "b",
        "{\n\t\"name\": \"a\",\n\t\"dependencies\": [\n\t\t\"b\"\n\t],\n\t\"license\": \"MIT\"\n}\n",
    );
    check_add(
        "{\n  \"name\": \"a\",\n  \"dependencies\": [\n    \"b\"\n  ]\n}\n",
        "c # indirect",
        "{\n  \"name\": \"a\",\n  \"dependencies\": [\n    \"b\",\n    {\"ref\": \"c\", \"x-indirect\": true}\n  ]\n}\n",
    );
    check_add(
        "{\"name\": \"a\", \"dependencies\": {\"b\": \"1\"}}",
        "c#^2",
        "{\"name\": \"a\", \"dependencies\": {\"b\": \"1\", \"c\": \"^2\"}}",
    );
    check_add(
        "{\"name\": \"a\", \"dependencies\": null}",
        "c#^2",
        "{\"name\": \"a\", \"dependencies\": [\"c#^2\"]}",
    );
}

#[test]
fn what_is_there_gets_the_new_version() {
    check_add(
        "name: a\ndependencies:\n  - b#^1 # why\n",
        "b#^2",
        "name: a\ndependencies:\n  - b#^2 # why\n",
    );
    check_add(
        "name: a\ndependencies:\n  - 'b#^1'\n",
        "b#^2",
        "name: a\ndependencies:\n  - 'b#^2'\n",
    );
    check_add(
        "name: a\ndependencies: [\"b#^1\"]\n",
        "https://hub.mu.com/b#^2",
        "name: a\ndependencies: [\"b#^2\"]\n",
    );
    check_add(
        "name: a\ndependencies:\n  - https://hub.mu.com/b\n",
        "b#^2",
        "name: a\ndependencies:\n  - https://hub.mu.com/b#^2\n",
    );
    check_add(
        "name: a\ndependencies:\n  - {ref: b#^1, channel: x}\n",
        "b#^2",
        "name: a\ndependencies:\n  - {ref: b#^2, channel: x}\n",
    );
    check_add(
        "name: a\ndependencies:\n  b: ^1 # why\n",
        "b#^2",
        "name: a\ndependencies:\n  b: ^2 # why\n",
    );
    check_add(
        "name: a\ndependencies:\n  b: \"^1\"\n",
        "b#^2",
        "name: a\ndependencies:\n  b: \"^2\"\n",
    );
    check_add(
        "name: a\ndependencies:\n  b: {version: ^1}\n",
        "b#^2",
        "name: a\ndependencies:\n  b: {version: ^2}\n",
    );
    check_add(
        "name: a\ndependencies:\n  x: c/b#^1\n",
        "c/b#^2",
        "name: a\ndependencies:\n  x: c/b#^2\n",
    );
    check_add("name: a\ndependencies:\n  b: ^1\n", "b#x/y", "name: a\ndependencies:\n  b: b#x/y\n");
    check_add(
        "{\"name\": \"a\", \"dependencies\": [\"b#^1\", \"c\"]}",
        "b#^2",
        "{\"name\": \"a\", \"dependencies\": [\"b#^2\", \"c\"]}",
    );
    check_add(
        "name: a\ndependencies: &d\n  - b#^1\n",
        "b#^2",
        "name: a\ndependencies: &d\n  - b#^2\n",
    );
    let mut editor = editor("name: a\ndependencies: [b#^1]\n");
    assert!(matches!(editor.add(Section::Dependencies, &requirement("b#^1")), Ok(false)));
}

#[test]
fn long_forms_are_made_and_changed() {
    let long = Requirement {
        channel: Some("stable".to_owned()),
        app_version: Some("2.3".to_owned()),
        prerelease: true,
        ..requirement("b#^2")
    };
    let dependencies = Section::Dependencies;
    check_add_to(
        dependencies,
        "name: a\n",
        &long,
        "name: a\ndependencies:\n  - {ref: b#^2, channel: stable, appVersion: \"2.3\", prerelease: true}\n",
    );
    check_add_to(
        dependencies,
        "name: a\ndependencies:\n  - b # why\n",
        &long,
        "name: a\ndependencies:\n  - {ref: b#^2, channel: stable, appVersion: \"2.3\", prerelease: true} # why\n",
    );
    check_add_to(
        dependencies,
        "name: a\ndependencies:\n  - ref: b\n    channel: fast # speed\n    # more\n",
        &long,
        "name: a\ndependencies:\n  - ref: b#^2\n    channel: stable # speed\n    appVersion: \"2.3\"\n    prerelease: true\n    # more\n",
    );
    check_add_to(
        dependencies,
        "name: a\ndependencies:\n  b: 1.0\n",
        &long,
        "name: a\ndependencies:\n  b: {version: ^2, channel: stable, appVersion: \"2.3\", prerelease: true}\n",
    );
    check_add_to(
        dependencies,
        "{\"name\": \"a\", \"dependencies\": {\"b\": {\"version\": \"1\", \"prerelease\": false}}}",
        &long,
        "{\"name\": \"a\", \"dependencies\": {\"b\": {\"version\": \"^2\", \"prerelease\": true, \"channel\": \"stable\", \"appVersion\": \"2.3\"}}}",
    );
}

fn check_remove(before: &str, removed: &str, after: &str) {
    let mut editor = editor(before);
    let changed = editor.remove(Section::Dependencies, &requirement(removed).reference);
    assert!(matches!(changed, Ok(true)), "{before}: {changed:?}");
    assert_eq!(editor.text(), after, "{before}");
}

#[test]
fn entries_are_removed() {
    check_remove(
        "name: a\ndependencies:\n  - b#^1 # x\n  # y\n  - c\n",
        "b",
        "name: a\ndependencies:\n  # y\n  - c\n",
    );
    check_remove("name: a\ndependencies:\n  - b\n  - c\n", "c", "name: a\ndependencies:\n  - b\n");
    check_remove("name: a\ndependencies:\n  - b\n  - c", "c", "name: a\ndependencies:\n  - b");
    check_remove(
        "name: a\r\ndependencies:\r\n  - b\r\n  - c",
        "c",
        "name: a\r\ndependencies:\r\n  - b",
    );
    check_remove("name: a\ndependencies:\n  - b\n", "b", "name: a\ndependencies: []\n");
    check_remove("name: a\ndependencies: # x\n  - b", "b", "name: a\ndependencies: [] # x");
    check_remove(
        "name: a\ndependencies:\n  - ref: b\n    channel: x\n  - c\n",
        "b",
        "name: a\ndependencies:\n  - c\n",
    );
    check_remove(
        "name: a\ndependencies:\n  b: ^1\n  c: ^1\n",
        "b",
        "name: a\ndependencies:\n  c: ^1\n",
    );
    check_remove("name: a\ndependencies:\n  b: ^1\n", "b", "name: a\ndependencies: {}\n");
    check_remove("name: a\ndependencies: [b, c, d]\n", "c", "name: a\ndependencies: [b, d]\n");
    check_remove("name: a\ndependencies: [ b, c ]\n", "c", "name: a\ndependencies: [ b ]\n");
    check_remove("name: a\ndependencies: [b, c]\n", "b", "name: a\ndependencies: [c]\n");
    check_remove("name: a\ndependencies: [b, c, ]\n", "c", "name: a\ndependencies: [b, ]\n");
    check_remove("name: a\ndependencies: [ b ]\n", "b", "name: a\ndependencies: []\n");
    check_remove(
        "name: a\ndependencies: [\n  b, # x\n  # y, z\n  c # w\n]\n",
        "c",
        "name: a\ndependencies: [\n  b # x\n  # y, z\n]\n",
    );
    check_remove(
        "name: a\ndependencies: [\n  b, # x\n  c\n]\n",
        "b",
        "name: a\ndependencies: [\n  c\n]\n",
    );
    check_remove(
        "{\n  \"name\": \"a\",\n  \"dependencies\": [\n    \"b\",\n    \"c\"\n  ]\n}\n",
        "c",
        "{\n  \"name\": \"a\",\n  \"dependencies\": [\n    \"b\"\n  ]\n}\n",
    );
    check_remove(
        "{\"name\": \"a\", \"dependencies\": {\"b\": \"1\", \"c\": \"2\"}}",
        "c",
        "{\"name\": \"a\", \"dependencies\": {\"b\": \"1\"}}",
    );
    check_remove("name: a\ndependencies: [./b/, c]\n", "./b", "name: a\ndependencies: [c]\n");
    let mut editor = editor("name: a\n");
    assert!(matches!(editor.remove(Section::Dependencies, &requirement("b").reference), Ok(false)));
}

fn check_mark(before: &str, package: &str, on: bool, after: &str) {
    let mut editor = editor(before);
    let wanted = requirement(package).reference;
    let mut entries = editor.requirements(Section::Dependencies).expect("is right");
    entries.retain(|entry| entry.reference.name() == wanted.name());
    let [entry] = &entries[..] else { panic!("{before}: {package} is not there") };
    let changed = editor.add(Section::Dependencies, &Requirement { indirect: on, ..entry.clone() });
    assert!(matches!(changed, Ok(true)), "{before}: {changed:?}");
    assert_eq!(editor.text(), after, "{before}");
}

#[test]
fn marks_come_and_go() {
    check_add("name: a\n", "b#^1 # indirect", "name: a\ndependencies:\n  - b#^1 # indirect\n");
    check_add(
        "name: a\ndependencies:\n  - b # indirect\n",
        "b#^1",
        "name: a\ndependencies:\n  - b#^1\n",
    );
    check_add(
        "name: a\ndependencies:\n  c: ^1\n",
        "b#^1 # indirect",
        "name: a\ndependencies:\n  c: ^1\n  b: ^1 # indirect\n",
    );
    check_add(
        "name: a\ndependencies: [c, {ref: d}] # x\n",
        "b # indirect",
        "name: a\ndependencies: # x\n  - c\n  - {ref: d}\n  - b # indirect\n",
    );
    check_mark(
        "name: a\ndependencies:\n  - b # why\n",
        "b",
        true,
        "name: a\ndependencies:\n  - b # indirect; why\n",
    );
    check_mark(
        "name: a\ndependencies:\n  - b # indirect; why\n",
        "b",
        false,
        "name: a\ndependencies:\n  - b # why\n",
    );
    check_mark(
        "name: a\ndependencies:\n  - b   # indirect\n",
        "b",
        false,
        "name: a\ndependencies:\n  - b\n",
    );
    check_mark(
        "name: a\ndependencies:\n  - ref: b\n    channel: x\n",
        "b",
        true,
        "name: a\ndependencies:\n  - ref: b\n    channel: x # indirect\n",
    );
    check_mark(
        "name: a\ndependencies: {b: ^1}\n",
        "b",
        true,
        "name: a\ndependencies:\n  b: ^1 # indirect\n",
    );
    check_mark(
        "{name: a, dependencies: {b: ^1}}\n",
        "b",
        true,
        "{name: a, dependencies: {b: {version: ^1, x-indirect: true}}}\n",
    );
    check_mark(
        "name: a\ndependencies: [b, # x\n c]\n",
        "b",
        true,
        "name: a\ndependencies: [{ref: b, x-indirect: true}, # x\n c]\n",
    );
    check_mark(
        "name: a\ndependencies: [b, # indirect\n c]\n",
        "b",
        false,
        "name: a\ndependencies: [b,\n c]\n",
    );
    check_mark(
        "{\"name\": \"a\", \"dependencies\": [\"b\"]}",
        "b",
        true,
        "{\"name\": \"a\", \"dependencies\": [{\"ref\": \"b\", \"x-indirect\": true}]}",
    );
    check_mark(
        "{\"name\": \"a\", \"dependencies\": [{\"ref\": \"b\", \"x-indirect\": true}]}",
        "b",
        false,
        "{\"name\": \"a\", \"dependencies\": [{\"ref\": \"b\"}]}",
    );
}

fn check_note(before: &str, note: Option<&str>, after: &str, expected: bool) {
    let mut editor = editor(before);
    let package = requirement("b").reference;
    let set = editor.set_note_at(Section::Dependencies, 0, "pinned from", note);
    assert_eq!((set.ok(), editor.text()), (Some(expected), after), "{before}");
    let read = editor.note(Section::Dependencies, &package, "pinned from").expect("is right");
    assert_eq!(read.as_deref(), note.filter(|_| expected), "{before}");
}

#[test]
fn notes_stand_in_comments() {
    let list =
        |entry: &str| format!("name: a\ndependencies:\n  - {entry}\n  - c # pinned from x\n");
    let check = |before: &str, note: Option<&str>, after: &str| {
        check_note(&list(before), note, &list(after), true);
    };
    check("b", Some("^1 <2"), "b # pinned from ^1 <2");
    check("b # why", Some("^1"), "b # pinned from ^1; why");
    check("b # indirect", Some("^1"), "b # indirect; pinned from ^1");
    check("b # indirect; pinned from ^1; why", Some("^2"), "b # indirect; pinned from ^2; why");
    check("b # indirect; pinned from ^1; why", None, "b # indirect; why");
    check("b # pinned from ^1", None, "b");
    check("b # mine;  kept", None, "b # mine;  kept");
    check_note(
        "name: a\ndependencies: {b: ^1}\n",
        Some("^1"),
        "name: a\ndependencies: {b: ^1}\n",
        false,
    );
    check_note(
        "{\"name\": \"a\", \"dependencies\": [\"b\"]}",
        Some("^1"),
        "{\"name\": \"a\", \"dependencies\": [\"b\"]}",
        false,
    );
    check_note("name: a\n", Some("^1"), "name: a\n", false);
}

#[test]
fn versions_are_set_and_dropped() {
    let check = |before: &str, version: Option<&str>, after: &str| {
        let mut editor = editor(before);
        let version = version.map(|text| VersionSpec::parse(text).expect("is a version"));
        let reference = requirement("b").reference;
        let changed = editor.set_version(Section::Dependencies, &reference, version);
        assert!(matches!(changed, Ok(true)), "{before}: {changed:?}");
        assert_eq!(editor.text(), after, "{before}");
    };
    check(
        "name: a\ndependencies:\n  - b#^1 # indirect\n",
        Some("1.2.0"),
        "name: a\ndependencies:\n  - b#1.2.0 # indirect\n",
    );
    check("name: a\ndependencies:\n  - b#^1\n", None, "name: a\ndependencies:\n  - b\n");
    check("name: a\ndependencies:\n  b: ^1\n", None, "name: a\ndependencies:\n  b: latest\n");
    check("name: a\ndependencies:\n  x: b#^1\n", None, "name: a\ndependencies:\n  x: b#latest\n");
    let mut editor = editor("name: a\n");
    let missing = editor.set_version(Section::Dependencies, &requirement("b").reference, None);
    assert!(matches!(missing, Ok(false)));
}

#[test]
fn what_is_not_understood_is_left_alone() {
    let check = |before: &str| {
        let mut editor = editor(before);
        assert!(editor.add(Section::Dependencies, &requirement("b#^2")).is_err(), "{before}");
        assert_eq!(editor.text(), before);
    };
    check("name: a\ndependencies: b\n");
    check("name: a\ndependencies: [b, b]\n");
    check("name: a\nx-list: &l [b#^1]\ndependencies: *l\n");
    check("name: a\nx-item: &i b#^1\ndependencies:\n  - *i\n");
    check("name: [\n");
    check("- a\n");
    let mut editor = editor("name: a\ndependencies:\n  - *i\nx: &i b");
    assert!(editor.remove(Section::Dependencies, &requirement("b").reference).is_err());
}

#[test]
fn an_entry_that_leads_elsewhere_keeps_its_place() {
    let check = |before: &str, known: &str, new: &str, after: &str| {
        let mut editor = editor(before);
        let known = requirement(known).reference;
        let changed = editor.lead_elsewhere(Section::Dependencies, &known, &requirement(new));
        assert!(matches!(changed, Ok(true)), "{before}: {changed:?}");
        assert_eq!(editor.text(), after, "{before}");
    };
    let ssh = "ssh://git@h.co/b#^2";
    check(
        "name: a\ndependencies:\n  - https://h.co/b#^1 # why\n  - c\n",
        "h.co/b",
        ssh,
        "name: a\ndependencies:\n  - ssh://git@h.co/b#^2 # why\n  - c\n",
    );
    check(
        "name: a\ndependencies:\n  h.co/b: ^1 # why\n  c: ^1\n",
        "h.co/b",
        ssh,
        "name: a\ndependencies:\n  h.co/b: ssh://git@h.co/b#^2 # why\n  c: ^1\n",
    );
    check(
        "name: a\ndependencies:\n  h.co/b:\n    version: ^1 # why\n    channel: x\n",
        "h.co/b",
        ssh,
        "name: a\ndependencies:\n  h.co/b:\n    channel: x\n    ref: ssh://git@h.co/b#^2\n",
    );
    check(
        "name: a\ndependencies:\n  - {ref: h.co/b, channel: x}\n",
        "h.co/b",
        ssh,
        "name: a\ndependencies:\n  - {ref: ssh://git@h.co/b#^2, channel: x}\n",
    );
    check(
        "{\"name\": \"a\", \"dependencies\": [\"/srv/b#^1\"]}",
        "/srv/b",
        "git+file:///srv/b",
        "{\"name\": \"a\", \"dependencies\": [\"git+file:///srv/b\"]}",
    );
}
