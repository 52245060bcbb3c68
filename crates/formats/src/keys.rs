//! Holds the tables of keys in `testdata/keys` against what the readers declare: one row for each key of a format, what it means to
//! mu, and where the format says so.
//!
//! `used` counts for selection or installing, `shown` is for people, `without meaning` is known and passed over, `noted` is told and
//! passed over. What is in no row is no key of the format. `BLESS=1` writes the rows again, and keeps their sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::shape::Shape;
use crate::{aliases, crossplane, helm, kcl, kudo, olm, passwords};

/// The tables, by their names, with the parts of each: a path before its keys, and their shape.
fn tables() -> Vec<(&'static str, Vec<(&'static str, &'static Shape)>)> {
    let [packed, served] = crossplane::shapes();
    let [document, resource, annotated, listed] = olm::shapes();
    let [chart, required, lock, index] = helm::shapes();
    let [operator, operators] = kudo::shapes();
    let [module, locked] = kcl::shapes();
    vec![
        ("Chart.yaml", vec![("", chart)]),
        ("requirements.yaml", vec![("", required)]),
        ("Chart.lock", vec![("", lock)]),
        ("repositories.yaml", vec![("", aliases::shape())]),
        ("index.yaml", vec![("", index)]),
        ("kudo-index.yaml", vec![("", operators)]),
        ("config.json", vec![("", passwords::shape())]),
        ("kcl.mod", vec![("", module)]),
        ("kcl.mod.lock", vec![("", locked)]),
        ("crossplane.yaml", vec![("", packed), ("definition:", served)]),
        ("operator.yaml", vec![("", operator)]),
        (
            "olm",
            vec![
                ("catalog:", document),
                ("manifests:", resource),
                ("metadata/annotations.yaml:", annotated),
                ("metadata/properties.yaml:", listed),
            ],
        ),
    ]
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
