//! `testdata/hints.tsv` has each hint that mu can show, and a test that shows it, in which it is tried. A new hint has no row,
//! and fails here.
//!
//! `HINTS=FILE cargo test --all-features --test cli` writes which tests show which hints, and `BLESS=1 HINTS=FILE cargo test --test cli
//! hint_table::` makes the table of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use walkdir::WalkDir;

use crate::support::hints::{GAP, advice, fits, pattern, table};

/// The file, from the root of the repository.
const TABLE: &str = "testdata/hints.tsv";

#[test]
fn every_hint_has_a_row_and_a_test_that_shows_it() {
    let sources = sources(&["src", "providers", "crates"]);
    let templates: Vec<String> = sources.iter().flat_map(|text| templates(text)).collect();
    assert!(templates.len() > 200, "the hints of the sources are found: {}", templates.len());
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        write(&templates);
        return;
    }
    let rows = table();
    let tests = sources_of_tests();
    let mut faults = Vec::new();
    for template in &templates {
        if !rows.iter().any(|(hint, _)| hint == template) {
            faults.push(format!("no test shows the hint `{template}`"));
        }
    }
    for (hint, test) in &rows {
        if test == "-" && !templates.contains(hint) {
            faults.push(format!("no source has the hint `{hint}` any more"));
        }
        let name = test.rsplit("::").next().unwrap_or_default();
        let is_test = tests.contains(&format!("fn {name}("));
        if !is_test && (test != "-" || !advice(hint).is_empty()) {
            faults.push(format!("`{hint}` says what to do, and no test `{test}` tries it"));
        }
    }
    assert!(faults.is_empty(), "{TABLE}:\n{}", faults.join("\n"));
}

/// Makes the table of what a run of the tests has shown, and of the rows there are.
fn write(templates: &[String]) {
    let mut rows: BTreeMap<String, String> = table().into_iter().collect();
    let shown = std::env::var_os("HINTS").map(|file| fs::read_to_string(file).expect("is there"));
    for template in templates {
        rows.entry(template.clone()).or_insert_with(|| "-".to_owned());
    }
    for line in shown.iter().flat_map(|text| text.lines()) {
        let (hint, test) = line.rsplit_once('\t').expect("has two columns");
        let known: Vec<String> = rows.keys().filter(|row| fits(row, hint)).cloned().collect();
        if known.is_empty() {
            rows.insert(pattern(hint), test.to_owned());
        }
        for row in known {
            let has = rows.entry(row).or_default();
            if has == "-" || (&**has > test && has.contains("::")) {
                *has = test.to_owned();
            }
        }
    }
    let text: String = rows.iter().map(|(hint, test)| format!("{hint}\t{test}\n")).collect();
    fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE), text).expect("can be written");
}

/// The hints that are literals in a source, with a gap for each value.
fn templates(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut found = Vec::new();
    for after in code.split(".hint(").skip(1) {
        let after = after.trim_start();
        let (is_format, after) = match after.strip_prefix("format!(") {
            Some(rest) => (true, rest.trim_start()),
            None => (false, after),
        };
        if let Some(text) = after.strip_prefix('"').map(literal) {
            found.push(if is_format { with_gaps(&text) } else { text });
        }
    }
    found
}

/// The value of the literal whose text begins here.
fn literal(text: &str) -> String {
    let mut value = String::new();
    let mut rest = text.chars();
    while let Some(one) = rest.next() {
        match one {
            '"' => break,
            '\\' => match rest.next() {
                Some('\n') => rest = rest.as_str().trim_start().chars(),
                Some(escaped) => value.push(escaped),
                None => break,
            },
            one => value.push(one),
        }
    }
    value
}

/// A format string with gaps in place of its values.
fn with_gaps(format: &str) -> String {
    let format = format.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let mut parts = format.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(GAP);
        text.push_str(part.split_once('}').map_or("", |(_, after)| after));
    }
    text.replace('\u{1}', "{").replace('\u{2}', "}")
}

fn sources(folders: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = folders.iter().flat_map(|folder| WalkDir::new(root.join(folder)));
    let files = files.map(|entry| entry.expect("can be read").into_path());
    let is_source = |path: &Path| {
        path.extension().is_some_and(|one| one == "rs")
            && !path.components().any(|part| part.as_os_str() == "tests")
    };
    files
        .filter(|path| is_source(path))
        .map(|path| fs::read_to_string(path).expect("is text"))
        .collect()
}

fn sources_of_tests() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let files = WalkDir::new(root).into_iter().map(|entry| entry.expect("can be read").into_path());
    files
        .filter(|path| path.extension().is_some_and(|one| one == "rs"))
        .map(|path| fs::read_to_string(path).expect("is text"))
        .collect()
}
