//! How a browser shows a file of a package, judged by its name alone: as a picture, Markdown, or text in some
//! language.

use super::highlight::Language;

/// Pictures that are sent as they are, and their types. Scripts in an SVG do not run: other pages show it
/// only as a picture, and its own page forbids them.
const PICTURES: [(&str, &str); 8] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("ico", "image/x-icon"),
    ("svg", "image/svg+xml"),
];

/// The type of a picture; `None` if the file is not a picture.
pub(in crate::page) fn picture(path: &str) -> Option<&'static str> {
    let ending = ending(path);
    PICTURES.iter().find(|(known, _)| *known == ending).map(|(_, kind)| *kind)
}

/// Whether a file is Markdown.
pub(super) fn is_markdown(path: &str) -> bool {
    matches!(&*ending(path), "md" | "markdown")
}

/// The language that a file is in, if it is a known one.
pub(super) fn language(path: &str) -> Option<Language> {
    let leaf = path.rsplit('/').next().unwrap_or(path);
    match leaf {
        "Dockerfile" | "Makefile" => Language::named(leaf),
        _ => Language::named(&ending(path)),
    }
}

/// The part after the last dot of a file's name, in lower case.
fn ending(path: &str) -> String {
    let leaf = path.rsplit('/').next().unwrap_or(path);
    leaf.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default()
}
