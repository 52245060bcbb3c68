//! The files of a package, wherever they are: a folder's, a Git tree's, an archive's.

use std::collections::BTreeMap;

use crate::error::{Fault, FormatError};

/// Files that are in memory, by their names.
#[derive(Debug, Clone, Default)]
pub struct Texts(pub BTreeMap<String, String>);

impl Texts {
    /// The text of a file at the package's top; `None` if it is not there.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The text of a file at the package's top that makes it a package.
    pub(crate) fn manifest(&self, name: &str) -> Result<&str, FormatError> {
        let missing = || Fault::new(0..0, format!("there is no `{name}`"));
        self.text(name).ok_or_else(|| FormatError::new(name, "", missing()))
    }

    /// What `read` makes of a file at the package's top that makes it a package.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, Fault>,
    ) -> Result<T, FormatError> {
        let text = self.manifest(name)?;
        read(text).map_err(|fault| FormatError::new(name, text, fault))
    }
}
