//! The tables of keys of mu's own files in `testdata/keys`: what their schemas say, which are made of the one declaration that reads
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::Sandbox;

/// The files, what `mu schema` calls them, and where they are described.
const FILES: [(&str, &str, &str); 3] = [
    ("Mu.yaml", "manifest", "manifest.md"),
    ("Mu.lock", "lock", "lock.md"),
    ("workspace.yaml", "workspace", "configuration.md"),
];

/// Adds the keys of a schema, each by its path.
fn add(
    schema: &Value,
    whole: &Value,
    path: &str,
    above: &[&str],
    keys: &mut BTreeMap<String, &str>,
) {
    let child = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    if let Some(name) = schema["$ref"].as_str().and_then(|text| text.strip_prefix("#/$defs/"))
        && !above.contains(&name)
    {
        add(&whole["$defs"][name], whole, path, &[above, &[name]].concat(), keys);
    }
    for one in schema["anyOf"].as_array().into_iter().flatten() {
        add(one, whole, path, above, keys);
    }
    for (key, under) in schema["properties"].as_object().into_iter().flatten() {
        keys.insert(child(key), "used");
        add(under, whole, &child(key), above, keys);
    }
    for pattern in schema["patternProperties"].as_object().into_iter().flat_map(|all| all.keys()) {
        keys.insert(child(pattern), "without meaning");
    }
    add_if_there(&schema["items"], whole, &format!("{path}[]"), above, keys);
    add_if_there(&schema["additionalProperties"], whole, &child("NAME"), above, keys);
}

fn add_if_there(
    schema: &Value,
    whole: &Value,
    path: &str,
    above: &[&str],
    keys: &mut BTreeMap<String, &str>,
) {
    if schema.is_object() {
        add(schema, whole, path, above, keys);
    }
}

#[test]
fn every_key_of_our_own_files_has_a_row() {
    let sandbox = Sandbox::new();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/keys");
    for (file, name, doc) in FILES {
        let schema = sandbox.mu(&["schema", name]).ok().json();
        let mut keys = BTreeMap::new();
        add(&schema, &schema, "", &[], &mut keys);
        let source = format!("mu, docs/{doc}");
        let line = |(key, meaning): (&String, &&str)| format!("{key}\t{meaning}\t{source}\n");
        let lines: String = keys.iter().map(line).collect();
        let expected = format!("key\tmeaning\tsource\n{lines}");
        let path = folder.join(format!("{file}.tsv"));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &expected).expect("can be written");
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(written, expected, "{file}: run this test with BLESS=1");
    }
}
