//! The files of a package, wherever they are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::error::{Fault, FormatError};

/// The files of a package: a folder's, a Git tree's, an archive's.
pub trait Files {
    /// The text of a file at the package's top; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// When it is there, but cannot be read.
    fn text(&self, name: &str) -> Result<Option<Cow<'_, str>>, FormatError>;

    /// The text of a file at the package's top that makes it a package.
    ///
    /// # Errors
    ///
    /// When it is not there, or cannot be read.
    fn manifest(&self, name: &str) -> Result<Cow<'_, str>, FormatError> {
        let missing = || Fault::new(0..0, format!("there is no `{name}`"));
        self.text(name)?.ok_or_else(|| FormatError::new(name, "", missing()))
    }

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
