//! No object is so large that nobody can know all of its methods, in however many files they are.

use std::collections::BTreeMap;

use crate::tidy::{is_test, texts, without_tests};

/// How many lines the methods of one type may fill.
const MOST_LINES: usize = 600;

/// The type that the implementation with this first line is for.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let mut depth = 0_usize;
    let parameters = rest.find(|character| {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let rest = rest[parameters..].trim_start_matches('>').strip_prefix(' ')?;
    let subject = rest.rsplit_once(" for ").map_or(rest, |(_, subject)| subject);
    let path = subject.trim_start_matches('&').split(['<', ' ']).next()?;
    path.rsplit("::").next()
}

#[test]
fn the_type_of_an_implementation_is_found() {
    assert_eq!(implemented("impl World<'_> {"), Some("World"));
    assert_eq!(implemented("impl<'a, F: Fn(&'a str)> From<F> for super::World<F>"), Some("World"));
    assert_eq!(implemented("impl<T: Into<Vec<u8>>> World<T> {"), Some("World"));
    assert_eq!(implemented("implement it"), None);
}

#[test]
fn no_object_has_too_many_methods() {
    let mut objects: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (path, text) in texts("rs") {
        let module = path.split('/').take(2).collect::<Vec<_>>().join("/");
        if is_test(&path) || module == "crates/testing" {
            continue;
        }
        let mut object = None;
        for line in without_tests(&text).lines() {
            if let Some(name) = implemented(line) {
                object = Some(name).filter(|_| !line.ends_with('}'));
            }
            // What explains the code makes no object too large.
            if let Some(name) = object.filter(|_| !line.trim_start().starts_with("//")) {
                *objects.entry((module.clone(), name.to_owned())).or_default() += 1;
            }
            if line == "}" {
                object = None;
            }
        }
    }
    assert!(objects.len() > 500, "implementations are found");
    objects.retain(|_, lines| *lines > MOST_LINES);
    assert!(objects.is_empty(), "these have more than {MOST_LINES} lines: {objects:?}");
}
