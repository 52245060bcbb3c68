//! Holds the tables of keys in `testdata/keys` against what the readers declare: one row for each key of a format, what it means
//! to mu, and where the format says so. And takes each key that published files have, in `testdata/keys/published.tsv`, through
//! the reader of its format: it knows the key, or tells of it, and no version becomes unusable by it.
//!
//! `used` counts for selection or installing, `shown` is for people, `without meaning` is known and passed over, `noted` is told
//! and passed over. What is in no row is no key of the format. `BLESS=1` writes the rows again, and keeps their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::elsewhere::{helmfile, jsonnet, terraform, vendir};
use crate::format::{Format, Reading, Texts};
use crate::shape::Shape;
use crate::{
    HelmRepositoryAliases, check_passwords, check_repositories, crossplane, helm, kcl, kudo, olm,
    osv, user_files,
};

/// The tables, by their names, with the parts of each: a path before its keys, and their shape.
fn tables() -> Vec<(&'static str, Vec<(&'static str, &'static Shape)>)> {
    let [packed, served] = crossplane::shapes();
    let [document, resource, annotated, listed] = olm::shapes();
    let [chart, required, lock, index] = helm::shapes();
    let [operator, operators] = kudo::shapes();
    let [module, locked] = kcl::shapes();
    let mut all = vec![
        ("Chart.yaml", vec![("", chart)]),
        ("requirements.yaml", vec![("", required)]),
        ("Chart.lock", vec![("", lock)]),
        ("repositories.yaml", vec![("", user_files::shape())]),
        ("index.yaml", vec![("", index)]),
        ("kudo-index.yaml", vec![("", operators)]),
        ("config.json", vec![("", user_files::password_file())]),
        ("kcl.mod", vec![("", module)]),
        ("kcl.mod.lock", vec![("", locked)]),
        ("crossplane.yaml", vec![("", packed), ("definition:", served)]),
        ("operator.yaml", vec![("", operator)]),
        ("osv.json", vec![("", &osv::OSV_KEYS)]),
        (
            "olm",
            vec![
                ("catalog:", document),
                ("manifests:", resource),
                ("metadata/annotations.yaml:", annotated),
                ("metadata/properties.yaml:", listed),
            ],
        ),
    ];
    let lists: [(_, &'static Shape); 6] = [
        ("vendir.yml", &vendir::VENDIR_KEYS),
        ("vendir.lock.yml", &vendir::VENDIR_LOCK_KEYS),
        ("jsonnetfile.json", &jsonnet::JSONNET_KEYS),
        ("modules.json", &terraform::MODULES_KEYS),
        ("helmfile.yaml", &helmfile::HELMFILE_KEYS),
        ("helmfile.lock", &helmfile::HELMFILE_LOCK_KEYS),
    ];
    all.extend(lists.map(|(name, shape)| (name, vec![("", shape)])));
    all
}

/// The rows of a shape: the path of each key, and what it means; `used` is what keys in it mean that are read.
fn rows(
    (shape, used): (&'static Shape, &str),
    path: &str,
    above: &[&'static Shape],
    into: &mut Vec<[String; 2]>,
) {
    // What holds itself is listed once.
    if above.iter().any(|other| std::ptr::eq(*other, shape)) {
        return;
    }
    let above = [above, &[shape]].concat();
    let child = |key: &str| match path {
        "" => key.to_owned(),
        path if path.ends_with(':') => format!("{path}{key}"),
        path => format!("{path}.{key}"),
    };
    match shape {
        Shape::Map(keys)
        | Shape::Folded(keys)
        | Shape::Open(keys)
        | Shape::Prefixed(_, keys)
        | Shape::Typed(_, keys) => {
            for (key, under) in *keys {
                let meaning = match under {
                    Shape::Unused => "without meaning",
                    Shape::Noted => "noted",
                    Shape::Shown(_) => "shown",
                    _ => used,
                };
                into.push([child(key), meaning.to_owned()]);
                rows((under, meaning), &child(key), &above, into);
            }
            if matches!(shape, Shape::Open(_) | Shape::Prefixed(..)) {
                into.push([child("*"), "without meaning".to_owned()]);
            }
        }
        Shape::Each(under) => rows((under, used), &child("NAME"), &above, into),
        Shape::List(inside) => rows((inside, used), &format!("{path}[]"), &above, into),
        Shape::As(inside) | Shape::Shown(inside) => rows((inside, used), path, &above, into),
        Shape::Text | Shape::All | Shape::Unused | Shape::Noted => {}
    }
}

#[test]
fn every_key_of_a_format_has_a_row() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/keys");
    for (name, parts) in tables() {
        let mut declared = Vec::new();
        parts.iter().for_each(|(path, shape)| rows((shape, "used"), path, &[], &mut declared));
        let file = folder.join(format!("{name}.tsv"));
        let text = fs::read_to_string(&file).unwrap_or_default();
        let written = text.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
        let written: Vec<Vec<&str>> = written.collect();
        if std::env::var_os("BLESS").is_some() {
            let sources: BTreeMap<&str, &str> =
                written.iter().filter_map(|row| Some((*row.first()?, *row.get(2)?))).collect();
            let line = |[key, meaning]: &[String; 2]| {
                format!("{key}\t{meaning}\t{}\n", sources.get(&**key).unwrap_or(&""))
            };
            let lines: String = declared.iter().map(line).collect();
            fs::write(&file, format!("key\tmeaning\tsource\n{lines}")).expect("can be written");
            continue;
        }
        let cell = |row: &Vec<&str>, at: usize| row.get(at).copied().unwrap_or_default().to_owned();
        let pairs: Vec<[String; 2]> =
            written.iter().map(|row| [cell(row, 0), cell(row, 1)]).collect();
        assert_eq!(pairs, declared, "{name}: run this test with BLESS=1, and add the sources");
        let bare = written.iter().find(|row| row.get(2).is_none_or(|source| source.is_empty()));
        assert_eq!(bare, None, "{name}: a row says where the format has its key");
    }
}

/// The keys that no format has. Published files have them, and `mu info` or `mu doctor` tells of them.
const TOLD: &[(&str, &str)] = &[
    ("Chart.yaml", "details"),
    ("Chart.yaml", "source"),
    ("requirements.yaml", "dependencies[].importvalues"),
    ("crossplane.yaml", "spec.repository"),
    ("olm", "manifests:spec.MinKubeVersion"),
    ("olm", "manifests:spec.crds"),
    ("olm", "manifests:spec.customresourcedefinitions.owned[].displayname"),
    ("olm", "manifests:spec.customresourcedefinitions.owned[].statusDescriptions"),
    ("olm", "manifests:spec.customresourcedefinitions.owned[].validation"),
    ("olm", "manifests:spec.miniKubeVersion"),
    ("olm", "manifests:spec.minikubeVersion"),
];

/// What a reader tells of a text, or why it cannot use it.
type Told = Result<Vec<String>, String>;

/// Puts a value under the path of a key, such as `dependencies[].name`, unless there is one.
fn put(root: &mut Value, path: &str) {
    let mut at = root;
    let mut rest = path;
    loop {
        let is_name = FREE.iter().any(|begin| rest.starts_with(begin));
        let end = rest.find('.').filter(|_| !is_name).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        let (key, is_list) = match part.strip_suffix("[]") {
            Some(key) => (key, true),
            None => (part, false),
        };
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[key];
        if is_list {
            if !at.is_array() {
                *at = json!([{}]);
            }
            at = &mut at[0];
        }
        match behind.strip_prefix('.') {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    if at.is_null() {
        *at = json!("1.0.0");
    }
}

/// What names with dots begin with.
const FREE: &[&str] = &["operators.", "com.", "io.", "ocs."];

fn read(format: Format, file: &str, others: &[(&str, Value)], text: &Value) -> Told {
    let mut texts = Texts([(file.to_owned(), written(format, text))].into());
    for (name, text) in others {
        texts.0.insert((*name).to_owned(), text.to_string());
    }
    let package = (format.read)(&texts, &Reading::default()).map_err(|error| error.reason)?;
    Ok(package.release.unknown)
}

/// A text of the format: JSON is YAML, too.
fn written(format: Format, value: &Value) -> String {
    match format.name == kcl::FORMAT.name {
        true => toml(value),
        false => value.to_string(),
    }
}

fn toml(value: &Value) -> String {
    let inline = |value: &Value| match value {
        Value::Object(keys) => {
            let pairs = keys.iter().map(|(key, value)| format!("{key} = {value}"));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    };
    let mut text = String::new();
    for (table, keys) in value.as_object().into_iter().flatten() {
        text.push_str(&format!("[{table}]\n"));
        for (key, value) in keys.as_object().into_iter().flatten() {
            text.push_str(&format!("{key} = {}\n", inline(value)));
        }
    }
    text
}

fn of_lines(packages: &std::collections::BTreeMap<String, Vec<u8>>) -> Told {
    let line = packages.values().next().ok_or("there is no package")?;
    let line: mu_provider::Release =
        serde_json::from_slice(line).map_err(|error| error.to_string())?;
    line.unusable.map_or(Ok(line.unknown), Err)
}

/// What the reader of `file` tells of a text with this key.
fn told(file: &str, key: &str) -> Told {
    let (part, path) = match key.split_once(':') {
        Some((part, path)) => (part, path),
        None => ("", key),
    };
    let with = |mut base: Value| {
        put(&mut base, path);
        base
    };
    let chart = json!({"apiVersion": "v2", "name": "web", "version": "1.0.0"});
    let entry = json!({"name": "NAME", "version": "1.0.0", "urls": ["a.tgz"], "apiVersion": "v2"});
    let operator = json!({"name": "NAME", "operatorVersion": "1.0.0", "urls": ["a.tgz"]});
    let kind =
        json!({"name": "webs.web.example", "group": "web.example", "version": "v1", "kind": "Web"});
    let kinds = json!({"owned": [kind], "required": [kind]});
    let csv = json!({"kind": "ClusterServiceVersion", "metadata": {"name": "web.v1.0.0"},
        "spec": {"version": "1.0.0", "customresourcedefinitions": kinds,
            "apiservicedefinitions": kinds}});
    let named = "operators.operatorframework.io.bundle.package.v1";
    let annotated = json!({"annotations": {named: "web"}});
    let reason = |error: crate::FormatError| error.reason;
    // Each gets the least text that its reader takes, with the key in it.
    match (file, part) {
        ("Chart.yaml", _) => read(helm::FORMAT, helm::CHART, &[], &with(chart)),
        ("requirements.yaml", _) => {
            let required = with(
                json!({"dependencies": [{"name": "a", "repository": "https://a.example/", "version": "1.0.0"}]}),
            );
            read(helm::FORMAT, helm::CHART, &[(helm::REQUIREMENTS, required)], &chart)
        }
        ("Chart.lock", _) => {
            helm::locked(file, &with(json!({})).to_string()).map(|_| Vec::new()).map_err(reason)
        }
        ("index.yaml", _) => {
            let text = with(json!({"entries": {"NAME": [entry]}})).to_string();
            of_lines(
                &helm::index(file, &text, &HelmRepositoryAliases::default())
                    .map_err(reason)?
                    .packages,
            )
        }
        ("kudo-index.yaml", _) => {
            let text = with(json!({"entries": {"NAME": [operator]}})).to_string();
            of_lines(&kudo::index(file, &text).map_err(reason)?.packages)
        }
        ("repositories.yaml", _) => {
            check_repositories(file, &with(json!({})).to_string()).map_err(reason)
        }
        ("kcl.mod", _) => {
            let module = json!({"package": {"name": "web", "version": "1.0.0"}});
            read(kcl::FORMAT, file, &[], &with(module))
        }
        ("kcl.mod.lock", _) => {
            kcl::locked(&toml(&with(json!({})))).map(|_| Vec::new()).map_err(reason)
        }
        ("config.json", _) => check_passwords(file, &with(json!({})).to_string()).map_err(reason),
        ("crossplane.yaml", _) => {
            let meta = json!({"apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration",
                "metadata": {"name": "web"}});
            read(crossplane::FORMAT, file, &[], &with(meta))
        }
        ("operator.yaml", _) => {
            let own = json!({"apiVersion": "kudo.dev/v1beta1", "name": "web", "operatorVersion": "1.0.0"});
            read(kudo::FORMAT, file, &[], &with(own))
        }
        ("olm", "catalog") => {
            let bundle = json!({"schema": "olm.bundle", "name": "web.v1.0.0", "package": "web",
                "properties": [{"type": "olm.package", "value": {"packageName": "web", "version": "1.0.0"}}]});
            let channel = json!({"schema": "olm.channel", "name": "stable", "package": "web",
                "entries": [{"name": "web.v1.0.0"}]});
            let (bundle, channel) = match path.starts_with("entries") {
                true => (bundle, with(channel)),
                false => (with(bundle), channel),
            };
            let mut catalog = olm::CatalogDocuments::default();
            let text = format!("{bundle}\n{channel}\n");
            catalog.add(file, &text, &mut |_| None).map_err(|excess| excess.to_string())?;
            of_lines(&catalog.finish().packages)
        }
        ("olm", "manifests") => {
            read(olm::FORMAT, olm::ANNOTATIONS, &[("manifests/a.yaml", with(csv))], &annotated)
        }
        ("olm", "metadata/annotations.yaml") => {
            read(olm::FORMAT, olm::ANNOTATIONS, &[("manifests/a.yaml", csv)], &with(annotated))
        }
        ("olm", _) => {
            let others = [("manifests/a.yaml", csv), (olm::DEPENDENCIES, with(json!({})))];
            read(olm::FORMAT, olm::ANNOTATIONS, &others, &annotated)
        }
        _ => Err(format!("there is no reader for `{file}`")),
    }
}

#[test]
fn what_published_files_have_is_known_or_told_and_harms_nothing() {
    let table = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/keys/published.tsv");
    let table = fs::read_to_string(table).expect("is there");
    let mut expected: BTreeSet<(&str, &str)> = TOLD.iter().copied().collect();
    let mut wrong = Vec::new();
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, key, _source] = cells[..] else { panic!("`{line}` has not three cells") };
        let is_expected = expected.remove(&(file, key));
        let last = key.rsplit([':', '.']).next().unwrap_or(key);
        match told(file, key) {
            Ok(told) if is_expected == told.iter().any(|told| told == last) => {}
            // Values are made up; what matters is that the reader looked at them.
            Err(reason) if !is_expected && !reason.contains("unknown key") => {}
            other => wrong.push(format!("{file}: {key}: {other:?}")),
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(expected.is_empty(), "no file has {expected:?}");
}
