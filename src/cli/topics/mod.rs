//! `mu help TOPIC`: pages that are not about a command.

use std::ffi::OsString;

use crate::cli::global::{global_program, words};

/// The topics: name, title, text.
const TOPICS: [(&str, &str, &str); 4] = [
    ("references", "How packages are named", include_str!("references.txt")),
    ("versions", "Versions, ranges and tags", include_str!("versions.txt")),
    ("files", "The files that mu reads and writes", include_str!("files.txt")),
    ("environment", "Environment variables", include_str!("environment.txt")),
];

/// The text of a topic.
fn find(name: &str) -> Option<&'static str> {
    TOPICS.iter().find(|(topic, _, _)| *topic == name).map(|(_, _, text)| *text)
}

/// The topic that a command line requests: `mu help versions`.
pub(super) fn asked_for(arguments: &[OsString]) -> Option<&'static str> {
    if !arguments.iter().any(|argument| argument == "help") {
        return None;
    }
    let program = global_program();
    let words: Vec<&str> =
        words(arguments, &program).filter_map(|(_, word)| word.to_str()).collect();
    match words.as_slice() {
        // Words behind it are passed over, as behind a command: `mu help get x`.
        [_, "help", name, ..] => find(name),
        _ => None,
    }
}

/// The names of the topics.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, ..)| *name)
}

/// A line for each topic.
pub(super) fn list() -> String {
    let line = |(name, title, _): &(&str, &str, &str)| {
        format!("  {:<22}  {title}\n", format!("mu help {name}"))
    };
    TOPICS.iter().map(line).collect::<String>().trim_end().to_owned()
}
