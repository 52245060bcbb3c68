//! Which files are packed: one walk over the package's folder, with the results sorted by the bytes of their
//! paths.
//!
//! Only names, kinds and modes are read here. Whether a path is allowed in a package is checked when the
//! archive is read back.

use std::path::{Path, PathBuf};

use crate::fs::{self, AtPath as _};
use crate::lock::FILE_NAME;
use crate::manifest::{JSON_NAME, Manifest, Warning, YAML_NAME, error_at_readme};
use crate::ops::apply::ignore_rules::{OF_PACKAGES, Rules};
use crate::ops::publication::packing::archive::{Content, Item};
use crate::ops::{Code, CommandError};
use crate::workspace::Member;

/// What no package contains, at any depth: the data of Git, similar tools, mu and Finder.
const NEVER: [&str; 6] = [".git", ".mu", ".hg", ".svn", ".jj", ".DS_Store"];

/// The files of `member` that are packed, without its lock, and warnings for its author.
///
/// `archives` says which files are archives of the package that were made earlier. `others` are folders that belong to this
/// machine alone: those of other packages, and mu's own.
///
/// # Errors
///
/// When a folder cannot be read, or something in it cannot be in a package.
pub(super) fn choose(
    member: &Member,
    root: &Path,
    archives: &dyn Fn(&str) -> bool,
    others: &[PathBuf],
    warnings: &mut Vec<String>,
) -> Result<Vec<Item>, CommandError> {
    let rules = Rules::of(OF_PACKAGES, &member.folder, root, warnings)?;
    let own_manifest = member.manifest_path.file_name().and_then(|name| name.to_str());
    let (manifest, chosen) = (&member.manifest, Vec::new());
    let mut walk = Walk { manifest, own_manifest, archives, others, chosen };
    walk.folder(&member.folder, "", &rules, warnings)?;
    let mut chosen = walk.chosen;
    chosen.sort_unstable_by(|left, right| left.path.as_bytes().cmp(right.path.as_bytes()));
    warn(member, &chosen, warnings);
    Ok(chosen)
}

struct Walk<'a> {
    manifest: &'a Manifest,
    own_manifest: Option<&'a str>,
    archives: &'a dyn Fn(&str) -> bool,
    others: &'a [PathBuf],
    chosen: Vec<Item>,
}

impl Walk<'_> {
    fn folder(
        &mut self,
        folder: &Path,
        prefix: &str,
        rules: &Rules,
        warnings: &mut Vec<String>,
    ) -> Result<(), CommandError> {
        for entry in fs::entries(folder)? {
            let place = entry.path();
            let kind = entry.file_type().at("read", &place)?;
            let Ok(name) = entry.file_name().into_string() else {
                return Err(no_package(&place, "its name is not UTF-8"));
            };
            let path = format!("{prefix}{name}");
            let is_needed = self.is_needed(&path);
            if !is_needed
                && (NEVER.contains(&name.as_str())
                    || fs::is_staged(&name)
                    || rules.leave_out(&place, kind.is_dir()))
            {
                continue;
            }
            if kind.is_dir() && self.others.contains(&place) {
                continue;
            }
            if kind.is_dir() {
                let inner = rules.inside(&place, warnings)?;
                self.folder(&place, &format!("{path}/"), &inner, warnings)?;
                continue;
            }
            let is_chosen = is_needed || self.manifest.files.covers(&path);
            if path == FILE_NAME || !is_chosen || kind.is_file() && (self.archives)(&path) {
                continue;
            }
            let content = if kind.is_symlink() {
                let target = fs::read_link(&place)?;
                let Some(target) = target.to_str() else {
                    return Err(no_package(&place, "its target is not UTF-8"));
                };
                Content::Link(target.to_owned())
            } else if kind.is_file() {
                Content::File { executable: fs::is_executable(&fs::metadata(&place)?), place }
            } else {
                return Err(no_package(&place, "it is not a file, a folder or a link"));
            };
            self.chosen.push(Item { path, content });
        }
        Ok(())
    }

    /// Whether a file is packed regardless of the rules.
    fn is_needed(&self, path: &str) -> bool {
        Some(path) == self.own_manifest || Some(path) == self.manifest.readme.as_deref()
    }
}

/// Reports what was probably not intended.
fn warn(member: &Member, chosen: &[Item], warnings: &mut Vec<String>) {
    for pattern in member.manifest.files.patterns().filter(|pattern| !pattern.starts_with('!')) {
        let Ok(globs) = crate::manifest::Globs::parse([pattern]) else { continue };
        if !chosen.iter().any(|chosen| globs.covers(&chosen.path)) {
            warnings.push(format!(
                "`{pattern}` in `files` matches nothing: there is no such file, or `.gitignore` excludes it (`!{pattern}` in a `.muignore` brings it back)"
            ));
        }
    }
    if let Some(readme) = &member.manifest.readme
        && !chosen.iter().any(|chosen| chosen.path == *readme)
    {
        let text = crate::fs::read_text(&member.manifest_path).ok();
        let message = format!("there is no file `{readme}`, which `readme` names");
        let error = text.and_then(|text| error_at_readme(&member.manifest_path, &text, &message));
        let line = error.map(|error| error.line());
        warnings.push(Warning::new(&member.manifest_path, line, message).to_string());
    }
    for chosen in chosen {
        let (folder, name) = chosen.path.rsplit_once('/').unwrap_or(("", &chosen.path));
        if !folder.is_empty() && (name == YAML_NAME || name == JSON_NAME) {
            warnings.push(format!(
                "`{folder}` is a separate package and is packed too; `!{folder}` in `files` excludes it"
            ));
        }
    }
}

fn no_package(place: &Path, why: &str) -> CommandError {
    let message = format!("`{}` cannot be in a package: {why}", place.display());
    CommandError::new(Code::Integrity, message)
        .hint("rename or remove it, or exclude it with a line in `.muignore`")
}
