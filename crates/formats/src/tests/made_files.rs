//! Whole files of the shapes that other tools make, in `testdata/keys/made`, with every key that the tool's own source writes: each has
//! a row in the table of its format, and its reader takes the file without a word.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use mu_provider::read_json_lines;

use crate::{HelmRepositoryAliases, check_passwords, check_repositories, helm, kcl, kudo};

/// The files, the tables of their formats, and the rows of those that no such tool writes: other files have them.
const FILES: [(&str, &str, &[&str]); 6] = [
    ("config.json", "config.json", &[]),
    (
        "auth.json",
        "config.json",
        // Docker's alone.
        &["*"],
    ),
    ("repositories.yaml", "repositories.yaml", &[]),
    ("kcl.mod.lock", "kcl.mod.lock", &[]),
    // These tell a file of another kind.
    ("index.yaml", "index.yaml", &["entries.NAME[].kind", "entries.NAME[].operatorVersion"]),
    (
        "kudo-index.yaml",
        "kudo-index.yaml",
        // Of `operator.yaml`, which is read alike.
        &[
            "entries.NAME[].apiVersion",
            "entries.NAME[].kubernetesVersion",
            "entries.NAME[].kudoVersion",
            "entries.NAME[].url",
            "entries.NAME[].maintainers[].url",
            "entries.NAME[].tasks*",
            "entries.NAME[].namespaceManifest",
            "entries.NAME[].plans",
            "entries.NAME[].created",
            "entries.NAME[].version",
        ],
    ),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/keys")
}

/// The paths of all rows of a table.
fn rows(table: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(folder().join(format!("{table}.tsv"))).expect("is there");
    let paths = text.lines().skip(1).filter_map(|line| line.split('\t').next());
    paths.map(str::to_owned).collect()
}

/// A text of JSON, YAML or TOML as values.
fn value(name: &str, text: &str) -> Value {
    if name.ends_with(".json") {
        return serde_json::from_str(text).expect("is JSON");
    }
    if name.ends_with(".yaml") {
        return serde_yaml::from_str(text).expect("is YAML");
    }
    let document: toml_edit::DocumentMut = text.parse().expect("is TOML");
    of_table(document.as_table())
}

fn of_table(table: &dyn toml_edit::TableLike) -> Value {
    let pairs = table.iter().map(|(key, item)| {
        let value = item.as_table_like().map(of_table);
        (key.to_owned(), value.unwrap_or_else(|| item.as_str().unwrap_or_default().into()))
    });
    Value::Object(pairs.collect())
}

/// Adds the paths of the keys of a value, as the rows of its table have them: what has no rows below is not looked into.
fn add(value: &Value, path: &str, rows: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    let is_below = |begin: &str| rows.iter().any(|row| row.starts_with(begin));
    match value {
        Value::Array(items) => {
            items.iter().for_each(|item| add(item, &format!("{path}[]"), rows, found));
        }
        Value::Object(keys) => {
            let child = |key: &str| match path {
                "" => key.to_owned(),
                path => format!("{path}.{key}"),
            };
            for (key, value) in keys {
                let own = child(key);
                let at = match is_below(&child("NAME")) {
                    true => child("NAME"),
                    false if !rows.contains(&own) && rows.contains(&child("*")) => child("*"),
                    false => own,
                };
                if !at.ends_with("NAME") {
                    found.insert(at.clone());
                }
                if is_below(&format!("{at}.")) || is_below(&format!("{at}[]")) {
                    add(value, &at, rows, found);
                }
            }
        }
        _ => {}
    }
}

/// What the reader of a file tells of it.
fn told(name: &str, text: &str) -> Vec<String> {
    let of_index = |packages: &BTreeMap<String, Vec<u8>>| {
        let lines = packages.values().flat_map(|lines| read_json_lines(lines));
        let told = lines.flat_map(|line| {
            let line: mu_provider::Release = line.expect("is a line");
            line.unknown.into_iter().chain(line.unusable)
        });
        told.collect::<Vec<_>>()
    };
    match name {
        "repositories.yaml" => check_repositories(name, text).expect("can be read"),
        "kcl.mod.lock" => {
            // Of the others, the lock says no place in a registry.
            let locked = kcl::locked(text).expect("can be read");
            assert_eq!(locked, [("oci://ghcr.io/kcl-lang/k8s".to_owned(), "1.28".to_owned())]);
            Vec::new()
        }
        "index.yaml" => {
            let index =
                helm::index(name, text, &HelmRepositoryAliases::default()).expect("can be read");
            of_index(&index.packages)
        }
        "kudo-index.yaml" => of_index(&kudo::index(name, text).expect("can be read").packages),
        _ => check_passwords(name, text).expect("can be read"),
    }
}

#[test]
fn every_key_that_a_tool_writes_is_known() {
    for (name, table, others) in FILES {
        let text = fs::read_to_string(folder().join("made").join(name)).expect("is there");
        let (rows, mut found) = (rows(table), BTreeSet::new());
        add(&value(name, &text), "", &rows, &mut found);
        let unknown: Vec<&String> = found.difference(&rows).collect();
        assert_eq!(unknown, Vec::<&String>::new(), "{name} has keys without a row in {table}.tsv");
        assert_eq!(told(name, &text), Vec::<String>::new(), "{name}");
        let is_other = |row: &&String| {
            others.iter().any(|other| match other.strip_suffix('*') {
                Some(begin) => row.starts_with(begin),
                None => row == other,
            })
        };
        // Every row but those is in a file that somebody could have.
        let missing = rows.difference(&found).filter(|row| !row.ends_with('*') && !is_other(row));
        let missing: Vec<&String> = missing.collect();
        assert_eq!(missing, Vec::<&String>::new(), "{name} lacks keys that {table}.tsv has");
    }
}

#[test]
fn a_key_that_is_in_no_table_is_found() {
    let rows = ["entries", "entries.NAME[].name", "annotations", "annotations.*"];
    let rows = rows.map(str::to_owned).into();
    let value = serde_json::json!({"entries": {"web": [{"name": "web", "nmae": 1}]}, "annotations": {"x": 1}, "y": {"z": 1}});
    let mut found = BTreeSet::new();
    add(&value, "", &rows, &mut found);
    let unknown: Vec<&String> = found.difference(&rows).collect();
    assert_eq!(unknown, ["entries.NAME[].nmae", "y"]);
}
