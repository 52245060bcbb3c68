//! The mark of an entry that only other packages need: a comment where one can stand, else a key.

use std::path::Path;

use super::{EditError, Section, entry, step};
use crate::manifest::requirement::{INDIRECT, INDIRECT_KEY};

/// The text with the mark of entry `index` set or removed.
pub(super) fn set(
    path: &Path,
    text: &str,
    section: Section,
    index: usize,
    on: bool,
) -> Result<String, EditError> {
    if !on {
        return step(path, text, section, |patch, collection| {
            let Some(collection) = collection else { return Ok(()) };
            if collection.inner(index).is_table() {
                patch.unset(collection.inner(index), INDIRECT_KEY)?;
            }
            patch.mark(collection, index, INDIRECT, false);
            Ok(())
        });
    }
    let opened = opened(path, text, section)?;
    step(path, opened.as_deref().unwrap_or(text), section, |patch, collection| match collection {
        Some(collection) if collection.takes_comments() => {
            patch.mark(collection, index, INDIRECT, true);
            Ok(())
        }
        Some(collection) => entry::mark_by_key(patch, collection, index),
        None => Ok(()),
    })
}

/// The text with a section that stands in brackets on one line written as lines, if that can be done.
fn opened(path: &Path, text: &str, section: Section) -> Result<Option<String>, EditError> {
    let opened = step(path, text, section, |patch, collection| match collection {
        Some(collection) if !collection.takes_comments() => patch.unfold(collection),
        _ => Ok(()),
    });
    match opened {
        Ok(text) => Ok(Some(text)),
        // Then a key must do.
        Err(EditError::Source(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
