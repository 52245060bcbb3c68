//! The files of a package, wherever they are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::error::FormatError;

/// The files of a package: a folder's, a Git tree's, an archive's.
pub trait Files {
    /// The text of a file at the package's top; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// When it is there, but cannot be read.
    fn text(&self, name: &str) -> Result<Option<Cow<'_, str>>, FormatError>;

    /// The names of the files that exist, in order.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Files that are in memory, by their names.
#[derive(Debug, Clone, Default)]
pub struct Texts(pub BTreeMap<String, String>);

impl Files for Texts {
    fn text(&self, name: &str) -> Result<Option<Cow<'_, str>>, FormatError> {
        Ok(self.0.get(name).map(|text| Cow::Borrowed(text.as_str())))
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
