//! Small texts for people, and the form of values in JSON answers where it differs from serde's.

use std::path::{Path, PathBuf};

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// An indented line for each text; of many, only for the first `most`, and how many more there are.
pub(crate) fn lines(texts: &[String], most: usize) -> String {
    let mut lines: String = texts.iter().take(most).map(|text| format!("\n  {text}")).collect();
    if texts.len() > most {
        lines.push_str(&format!("\n  and {} more", texts.len() - most));
    }
    lines
}

/// `1 package`, `2 packages`.
pub fn count(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Writes a path as text, with a mark in place of what is not UTF-8.
pub(crate) fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Writes a path as [`path`] does, or `null`.
pub(crate) fn optional_path<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(serializer)
}

/// Writes why a version was withdrawn: the reason, or `false` for a version that was not.
pub(crate) fn yanked<S: Serializer>(
    reason: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match reason {
        Some(reason) => serializer.serialize_str(reason),
        None => serializer.serialize_bool(false),
    }
}

/// The schema of what [`yanked`] writes.
pub(crate) fn yanked_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "const": false }, { "type": "string" }] })
}
