//! What Git would record of files whose line ends it turns when it checks them out (`core.autocrlf`, `core.eol`, and attributes such as
//! `eol=crlf`): a package in a folder is the same on every system.
//!
//! Git's own rules are followed as far as they are about line ends. No filter of a checkout is run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::{AttrCheckFlags, AttrValue, ObjectType, Oid, Repository};
use mu_provider::fs::{self, FileError};
use sha2::{Digest as _, Sha256};

use crate::opened::{LocalGit, root_of};
use crate::ref_name::FULL;
use crate::stand_in::{StandIn, StandInError};
use crate::surroundings::SurroundingsError;

/// Git looks at so much of a file to find out whether it is text.
const LOOKED_AT: usize = 8_000;

/// A file of at most so many bytes is read before its attributes are looked up.
const SMALL: u64 = 64 << 10;

/// The names of the attributes that decide about line ends. `crlf` is what `text` was called once.
const ATTRIBUTES: [&str; 3] = ["text", "crlf", "eol"];

/// What Git has recorded of files, by their places, where that is not what is there.
type Recorded = Result<BTreeMap<PathBuf, Vec<u8>>, FileError>;

/// What Git does to the line ends of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// It leaves them.
    Leave,
    /// It turns them, unless they were recorded as they are.
    Guess,
    /// It turns them.
    Turn,
}

impl Rule {
    /// The rule for a file with these values of [`ATTRIBUTES`], as `git check-attr` words them. The settings say whether Git turns the line
    /// ends of files about which no attribute says anything.
    fn new([text, crlf, eol]: [&str; 3], turns_all: bool) -> Self {
        let said = |value| match value {
            "unset" => Some(Self::Leave),
            "set" | "input" => Some(Self::Turn),
            "auto" => Some(Self::Guess),
            _ => None,
        };
        said(text).or_else(|| said(crlf)).unwrap_or(match eol {
            "crlf" | "lf" => Self::Turn,
            _ if turns_all => Self::Guess,
            _ => Self::Leave,
        })
    }
}

/// Whether these settings have Git turn the line ends of files about which no attribute says anything.
fn turns_all(autocrlf: Option<&str>, eol: Option<&str>) -> bool {
    let says = |said: Option<&str>, values: &[&str]| {
        said.is_some_and(|value| values.contains(&&*value.to_ascii_lowercase()))
    };
    cfg!(windows) || says(autocrlf, &["true", "yes", "on", "1", "input"]) || says(eol, &["crlf"])
}

impl LocalGit {
    /// What Git has recorded of those of the files at `places`, paths without links, whose line ends it has turned when it checked them out
    /// into the checkout around `folder`.
    ///
    /// # Errors
    ///
    /// When the repository, or one of the files, cannot be read.
    pub fn recorded_line_ends(
        &self,
        folder: &Path,
        places: &[PathBuf],
    ) -> Result<BTreeMap<PathBuf, Vec<u8>>, SurroundingsError> {
        let library = |repository: &Repository| by_library(repository, places);
        let program = |stand_in: &StandIn| match by_program(stand_in, places, self) {
            // Without Git, files are as they are there.
            Err(StandInError::Run(_)) => Ok(Ok(BTreeMap::new())),
            found => found,
        };
        match self.around(folder, &|_| true, &library, &program)? {
            Some(recorded) => Ok(recorded?),
            None => Ok(BTreeMap::new()),
        }
    }
}

fn by_library(repository: &Repository, places: &[PathBuf]) -> Result<Recorded, git2::Error> {
    let Some(root) = root_of(repository) else {
        return Ok(Ok(BTreeMap::new()));
    };
    let config = repository.config()?.snapshot()?;
    let setting = |key| config.get_str(key).ok();
    let turns_all = turns_all(setting("core.autocrlf"), setting("core.eol"));
    let mut found = BTreeMap::new();
    for place in places {
        let Ok(inside) = place.strip_prefix(&root) else { continue };
        let read = || with_windows_ends(place);
        // libgit2 takes longer to find the attributes of a file than to read a small one, and hardly any has such line ends.
        let is_small = fs::metadata(place).is_ok_and(|found| found.len() <= SMALL);
        let early = is_small.then(read);
        if matches!(early, Some(Ok(None))) {
            continue;
        }
        let rule = Rule::new(attributes(repository, inside)?, turns_all);
        if rule == Rule::Leave {
            continue;
        }
        let content = match early.unwrap_or_else(read) {
            Ok(Some(content)) => content,
            Ok(None) => continue,
            Err(error) => return Ok(Err(error)),
        };
        let entry = repository.index()?.get_path(inside, 0).map(|entry| entry.id);
        let blob = || {
            let blob = repository.find_blob(entry?).ok()?;
            Some(blob.content().to_owned())
        };
        let name = entry.map(|entry| entry.to_string());
        found.extend(
            turned_content(rule, &content, name.as_deref(), blob)
                .map(|recorded| (place.clone(), recorded)),
        );
    }
    Ok(Ok(found))
}

/// The values of [`ATTRIBUTES`] of a file.
fn attributes<'r>(repository: &'r Repository, inside: &Path) -> Result<[&'r str; 3], git2::Error> {
    let mut values: [&'r str; 3] = ATTRIBUTES;
    for value in &mut values {
        let flags = AttrCheckFlags::FILE_THEN_INDEX;
        *value = match AttrValue::from_string(repository.get_attr(inside, value, flags)?) {
            AttrValue::True => "set",
            AttrValue::False => "unset",
            AttrValue::String(said) => said,
            _ => "unspecified",
        };
    }
    Ok(values)
}

/// What [`by_library`] finds, as `git` tells it. It is asked about files that have the line ends of Windows.
fn by_program(
    stand_in: &StandIn,
    places: &[PathBuf],
    local: &LocalGit,
) -> Result<Recorded, StandInError> {
    let mut with_ends: BTreeMap<&str, (&PathBuf, Vec<u8>)> = BTreeMap::new();
    for place in places {
        let inside = place.strip_prefix(stand_in.root()).ok().and_then(Path::to_str);
        let Some(inside) = inside else { continue };
        match with_windows_ends(place) {
            Ok(content) => with_ends.extend(content.map(|content| (inside, (place, content)))),
            Err(error) => return Ok(Err(error)),
        }
    }
    let mut found = BTreeMap::new();
    if with_ends.is_empty() {
        return Ok(Ok(found));
    }
    let programs = &local.programs;
    let setting = |key| stand_in.setting(key, programs);
    let turns_all =
        turns_all(setting("core.autocrlf")?.as_deref(), setting("core.eol")?.as_deref());
    let entries: BTreeMap<String, String> =
        stand_in.entries(programs)?.into_iter().map(|entry| (entry.path, entry.oid)).collect();
    for (path, values) in stand_in.attributes(ATTRIBUTES, with_ends.keys(), programs)? {
        let Some((place, content)) = with_ends.get(&*path) else { continue };
        let rule = Rule::new(values.each_ref().map(String::as_str), turns_all);
        let name = entries.get(&path).map(String::as_str);
        let blob = || stand_in.contents(&[name?], programs).ok()?.pop()?;
        let recorded = turned_content(rule, content, name, blob);
        found.extend(recorded.map(|recorded| (PathBuf::clone(place), recorded)));
    }
    Ok(Ok(found))
}

/// The content of a file, if it is a text with the line ends of Windows.
fn with_windows_ends(place: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let content = fs::read(place)?;
    let start = content.get(..LOOKED_AT).unwrap_or(&content);
    let is_text = !start.contains(&0);
    Ok((is_text && has_windows_ends(&content)).then_some(content))
}

/// What Git would record of such a content, where it has recorded a blob with this name of the file, if any; `None` if it is the content
/// itself.
fn turned_content(
    rule: Rule,
    content: &[u8],
    name: Option<&str>,
    blob: impl FnOnce() -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    if rule == Rule::Leave {
        return None;
    }
    let turned = turned(content);
    let Some(name) = name else { return Some(turned) };
    if is_name_of(name, content) {
        return None;
    }
    // Git leaves them in what was recorded with them.
    let stays = rule == Rule::Guess
        && !is_name_of(name, &turned)
        && blob().is_some_and(|blob| has_windows_ends(&blob));
    (!stays).then_some(turned)
}

/// Whether a blob with this content has this name: of SHA-1, or of SHA-256.
fn is_name_of(name: &str, content: &[u8]) -> bool {
    if name.len() == FULL {
        let hash = Oid::hash_object(ObjectType::Blob, content);
        return hash.is_ok_and(|hash| hash.to_string() == name);
    }
    let mut hash = Sha256::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    digits == name
}

fn has_windows_ends(content: &[u8]) -> bool {
    content.windows(2).any(|pair| pair == b"\r\n")
}

/// The content with the line ends of Unix.
pub(crate) fn turned(content: &[u8]) -> Vec<u8> {
    let next = content.iter().skip(1).map(Some).chain([None]);
    let kept =
        content.iter().zip(next).filter(|(byte, next)| (**byte, next) != (b'\r', &Some(&b'\n')));
    kept.map(|(byte, _)| *byte).collect()
}
