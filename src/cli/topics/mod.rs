//! `mu help TOPIC`: pages that are not about a command.

use std::ffi::OsString;

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
    let words = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    let words: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
    match words.as_slice() {
        ["help", name] => find(name),
        _ => None,
    }
}

/// A line for each topic.
pub(super) fn list() -> String {
    let line = |(name, title, _): &(&str, &str, &str)| {
        format!("  {:<22}  {title}\n", format!("mu help {name}"))
    };
    TOPICS.iter().map(line).collect::<String>().trim_end().to_owned()
}
