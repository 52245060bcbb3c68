//! A catalog in a folder: the files below it that may be parts of one, in the order of their paths.
//!
//! `.indexignore` files leave files out, as `.gitignore` files do for Git. Nothing is reached through a link.

use std::time::UNIX_EPOCH;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use mu_provider::{ErrorKind, Folder, InnerPath, Kind, ProviderError};

/// The file that leaves others out.
const IGNORE: &str = ".indexignore";

/// The ends of names that files of catalogs have.
const ENDS: [&str; 3] = [".yaml", ".yml", ".json"];

/// How many files a catalog may have.
const MOST_FILES: usize = 200_000;

/// How deep its folders may be nested.
const MAX_DEPTH: usize = 32;

/// A file of a catalog.
#[derive(Debug)]
pub(crate) struct Part {
    /// Its path in the folder of the catalog.
    pub(crate) path: InnerPath,
    /// What tells whether it is still the same: its path below the folder, when it changed, and its size.
    pub(crate) stamp: String,
}

/// The files of the catalog in a folder.
pub(crate) fn parts(folder: &Folder) -> Result<Vec<Part>, ProviderError> {
    let mut walk = Walk { top: folder, parts: Vec::new(), ignored: Vec::new() };
    walk.folder(folder, None, 0)?;
    Ok(walk.parts)
}

struct Walk<'w> {
    top: &'w Folder,
    parts: Vec<Part>,
    /// What the folders above leave out.
    ignored: Vec<Gitignore>,
}

impl Walk<'_> {
    /// Finds the parts in `folder`, whose path in the catalog is `place`.
    fn folder(
        &mut self,
        folder: &Folder,
        place: Option<&InnerPath>,
        depth: usize,
    ) -> Result<(), ProviderError> {
        if depth > MAX_DEPTH {
            return Err(self.refused("its folders are nested too deep"));
        }
        let entries = folder.entries()?;
        let ignore = InnerPath::from(InnerPath::own(IGNORE));
        let has_ignore = entries.iter().any(|(name, _)| name == IGNORE);
        if has_ignore {
            let text = folder.read_text(&ignore)?.unwrap_or_default();
            let mut builder = GitignoreBuilder::new(folder.path());
            for line in text.lines() {
                // What it cannot read leaves nothing out.
                let _ = builder.add_line(None, line);
            }
            self.ignored.push(builder.build().unwrap_or_else(|_| Gitignore::empty()));
        }
        for (name, kind) in entries {
            let path = folder.path().join(&name);
            let is_folder = kind == Kind::Folder;
            let is_ignored = |ignored: &Gitignore| ignored.matched(&path, is_folder).is_ignore();
            let is_part =
                is_folder || kind == Kind::File && ENDS.iter().any(|end| name.ends_with(end));
            // Those of a checkout around the catalog.
            let is_own = matches!(&*name, ".git" | ".mu");
            if !is_part || is_own || self.ignored.iter().any(is_ignored) {
                continue;
            }
            let inside =
                InnerPath::name(&name).map_err(|error| self.refused(&error.to_string()))?;
            let place = place.map_or_else(|| inside.clone(), |place| place.join(&inside));
            if is_folder {
                self.folder(&folder.inner(&inside)?, Some(&place), depth + 1)?;
            } else {
                self.file(folder, &inside, place)?;
            }
        }
        if has_ignore {
            self.ignored.pop();
        }
        Ok(())
    }

    fn file(
        &mut self,
        folder: &Folder,
        name: &InnerPath,
        path: InnerPath,
    ) -> Result<(), ProviderError> {
        if self.parts.len() == MOST_FILES {
            return Err(self.refused(&format!("it has more than {MOST_FILES} files")));
        }
        // A file that is gone meanwhile is no part.
        let Some((size, changed)) = folder.size_and_time(name.as_str()) else { return Ok(()) };
        let age = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        let stamp = format!("{path} {} {size}", age.as_nanos());
        self.parts.push(Part { path, stamp });
        Ok(())
    }

    fn refused(&self, why: &str) -> ProviderError {
        let text = format!("the catalog `{}` is refused: {why}", self.top.path().display());
        ProviderError::new(ErrorKind::Refused, text)
    }
}
