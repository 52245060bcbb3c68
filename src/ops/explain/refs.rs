//! What a repository has in the place of a version, a tag or a branch that it does not have: other names near to it, and its
//! default branch.

use crate::manifest::source::{nearest, printable};
use crate::ops::Session;
use crate::select::Clash;

/// The forms in which Git writes names of tags and branches elsewhere.
const BEGINNINGS: [&str; 8] = [
    "refs/heads/",
    "refs/tags/",
    "refs/remotes/origin/",
    "remotes/origin/",
    "heads/",
    "tags/",
    "origin/",
    "upstream/",
];

/// What to say beside a requirement on a package in a repository that nothing fulfils.
pub(super) fn notes(session: &Session, clash: &Clash, has_versions: bool) -> Vec<String> {
    let Ok((names, default)) = session.index().names(&clash.id) else { return Vec::new() };
    let mut notes = Vec::new();
    if names.is_empty() && default.is_none() {
        return vec!["its repository has no commits".to_owned()];
    }
    if !has_versions {
        notes.push("its repository has no version tags".to_owned());
    }
    for asked in clash.asked.iter().flatten() {
        let short = BEGINNINGS.iter().find_map(|start| asked.strip_prefix(start)).unwrap_or(asked);
        let is_name = short.starts_with(|first: char| first.is_ascii_alphanumeric());
        let near = match names.iter().find(|name| *name == short && short != asked) {
            Some(name) => Some(name.as_str()),
            None => nearest(short, names.iter().map(String::as_str)).filter(|_| is_name),
        };
        if let Some(near) = near {
            notes.push(format!("near to that: `#{}`", printable(near)));
        }
    }
    if let Some(default) = default {
        notes.push(format!("its default branch is `{}`", printable(&default)));
    }
    notes
}
