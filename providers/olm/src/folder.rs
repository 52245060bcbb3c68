//! A catalog in a folder: the files below it that may be parts of one, in the order of their paths.
//!
//! `.indexignore` files leave files out, as `.gitignore` files do for Git. Nothing is reached through a link.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use mu_provider::fs::{self, AtPath as _};
use mu_provider::{ErrorKind, ProviderError};

/// The file that leaves others out.
const IGNORE: &str = ".indexignore";

/// The ends of names that files of catalogs have.
const ENDS: [&str; 3] = ["yaml", "yml", "json"];

/// How many files a catalog may have.
const MOST_FILES: usize = 200_000;

/// How deep its folders may be nested.
const MAX_DEPTH: usize = 32;

/// A file of a catalog.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    /// What tells whether it is still the same: its path below the folder, when it changed, and its size.
    pub(crate) stamp: String,
}

/// The files of the catalog in a folder.
pub(crate) fn parts(folder: &Path) -> Result<Vec<Part>, ProviderError> {
    let mut walk = Walk { top: folder, parts: Vec::new(), ignored: Vec::new() };
    walk.folder(folder, 0)?;
    Ok(walk.parts)
}

struct Walk<'w> {
    top: &'w Path,
    parts: Vec<Part>,
    /// What the folders above leave out.
    ignored: Vec<Gitignore>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), ProviderError> {
        if depth > MAX_DEPTH {
            return Err(self.refused("its folders are nested too deep"));
        }
        let ignore = folder.join(IGNORE);
        let text = fs::read_text_if_there(&ignore)?;
        let has_ignore = text.is_some();
        if let Some(text) = text {
            let mut builder = GitignoreBuilder::new(folder);
            for line in text.lines() {
                // What it cannot read leaves nothing out.
                let _ = builder.add_line(None, line);
            }
            self.ignored.push(builder.build().unwrap_or_else(|_| Gitignore::empty()));
        }
        let mut entries: Vec<_> = fs::entries(folder)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let kind = entry.file_type().at("read", &path)?;
            let is_ignored =
                |ignored: &Gitignore| ignored.matched(&path, kind.is_dir()).is_ignore();
            if self.ignored.iter().any(is_ignored) {
                continue;
            }
            if kind.is_dir() {
                self.folder(&path, depth + 1)?;
            } else if kind.is_file() && is_part(&path) {
                self.file(path)?;
            }
        }
        if has_ignore {
            self.ignored.pop();
        }
        Ok(())
    }

    fn file(&mut self, path: PathBuf) -> Result<(), ProviderError> {
        if self.parts.len() == MOST_FILES {
            return Err(self.refused(&format!("it has more than {MOST_FILES} files")));
        }
        let metadata = fs::metadata(&path)?;
        let changed = metadata.modified().at("read", &path)?;
        let age = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        let inside = path.strip_prefix(self.top).unwrap_or(&path);
        let stamp = format!("{} {} {}", inside.display(), age.as_nanos(), metadata.len());
        self.parts.push(Part { path, stamp });
        Ok(())
    }

    fn refused(&self, why: &str) -> ProviderError {
        let text = format!("the catalog `{}` is refused: {why}", self.top.display());
        ProviderError::new(ErrorKind::Refused, text)
    }
}

fn is_part(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str());
    end.is_some_and(|end| ENDS.contains(&end))
}
