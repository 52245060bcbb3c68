//! Where a dependency is written in somebody else's file, for errors that mu notices only later.

use std::borrow::Cow;
use std::path::Path;

use super::requirement::is_version_alone;
use super::schema::{File, LongDependency};
use super::source::{Document, SourceError, Value};
use crate::reference::Reference;

/// An error that points at the dependency `reference` in the manifest (or index line) `text`, if it is found
/// there. The extension of `path` gives the format.
pub fn error_at_dependency(
    path: &Path,
    text: &str,
    reference: &str,
    message: &str,
) -> Option<SourceError> {
    let document = Document::read(path, text).ok()?;
    let is_list = |key: &str| matches!(key, File::dependencies | File::dev_dependencies);
    let lists = document.root_value().entries().ok()?.filter(|(key, _)| is_list(key.as_str()));
    let mut dependencies = lists.flat_map(|(_, value)| values(value));
    let (_, found) = dependencies.find(|(name, value)| is_written(*name, *value, reference))?;
    Some(found.error(message))
}

/// An error about the readme that a manifest names; `None` if the text names none.
pub fn error_at_readme(path: &Path, text: &str, message: &str) -> Option<SourceError> {
    let document = Document::read(path, text).ok()?;
    let mut entries = document.root_value().entries().ok()?;
    let (_, value) = entries.find(|(name, _)| name.as_str() == File::readme)?;
    Some(value.error(message))
}

/// The reference of each dependency, in either form; with its key, where that may be the name.
fn values(dependencies: Value<'_>) -> Vec<(Option<&str>, Value<'_>)> {
    let listed = || Some(dependencies.list().ok()?.map(|value| (None, value)).collect());
    let named = || {
        let entries = dependencies.entries().ok()?;
        Some(entries.map(|(key, value)| (Some(key.as_str()), value)).collect())
    };
    let all: Vec<(Option<&str>, Value<'_>)> = listed().or_else(named).unwrap_or_default();
    all.into_iter().map(|(key, value)| (key, long_form(value).unwrap_or(value))).collect()
}

fn long_form(value: Value<'_>) -> Option<Value<'_>> {
    let mut keys = value.entries().ok()?;
    keys.find(|(key, _)| key.as_str() == LongDependency::r#ref).map(|(_, value)| value)
}

fn is_written(name: Option<&str>, value: Value<'_>, reference: &str) -> bool {
    let Ok(text) = value.word() else { return false };
    let text = match name.filter(|_| is_version_alone(text.as_str())) {
        Some(name) => Cow::Owned(format!("{name}#{}", text.as_str())),
        None => Cow::Borrowed(text.as_str()),
    };
    text == reference || Reference::parse(&text).is_ok_and(|read| read.to_string() == reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_found_in_every_form() {
        for (path, text, line, column) in [
            ("Mu.yaml", "name: a\ndependencies:\n  - b\n  - ../c\n", 4, 5),
            ("Mu.yaml", "dependencies:\n  - {ref: ../c, channel: x}\n", 2, 11),
            ("Mu.yaml", "dependencies:\n  here: ../c\n", 2, 9),
            ("Mu.yaml", "devDependencies: [../c]\n", 1, 19),
            ("line.json", r#"{"name":"a","dependencies":["b","../c"]}"#, 1, 33),
            ("line.json", r#"{"dependencies":[{"ref":"../c","channel":"x"}]}"#, 1, 25),
        ] {
            let error = error_at_dependency(Path::new(path), text, "../c", "wrong");
            let error = error.expect("it is there");
            assert_eq!((error.line(), error.column()), (line, column), "{text}");
        }
    }

    #[test]
    fn what_is_not_there_has_no_place() {
        for text in ["name: a\n", "dependencies: [b]\n", "- ../c\n", "dependencies: ../d\n", "{"] {
            assert_eq!(error_at_dependency(Path::new("Mu.yaml"), text, "../c", "wrong"), None);
        }
    }
}
