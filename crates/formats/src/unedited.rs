//! Manifests whose dependencies mu reads and does not edit.

use std::path::Path;

use mu_manifest::Requirement;
use mu_manifest::edit::{Dialect, Placed};
use mu_manifest::source::{New, Problem, SourceError};

/// The dependencies of manifests that mu reads and does not edit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unedited {
    /// Where the dependencies are, in words.
    pub(crate) place: &'static str,
    /// What a person does there to add the package with this name.
    pub(crate) add: fn(&str) -> String,
}

impl Dialect for Unedited {
    fn requirements(&self, _path: &Path, _text: &str) -> Result<Vec<Placed>, SourceError> {
        Ok(Vec::new())
    }

    fn check(&self, _path: &Path, _text: &str, new: Option<&Requirement>) -> Result<(), Problem> {
        Err(self.refused(new))
    }

    fn entry(&self, new: &Requirement) -> Result<(New, Requirement), Problem> {
        Err(self.refused(Some(new)))
    }

    fn version(&self, wanted: &Requirement) -> Result<String, Problem> {
        Err(self.refused(Some(wanted)))
    }
}

impl Unedited {
    fn refused(&self, new: Option<&Requirement>) -> Problem {
        let refused = Problem::new(format!("mu does not edit {}", self.place));
        refused.help(match new {
            Some(new) => (self.add)(new.reference.name().leaf()),
            None => "change it there".to_owned(),
        })
    }
}
