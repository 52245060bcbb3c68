//! Searches without a result: the places that were searched, and what may have been meant.

use std::path::PathBuf;

use super::{Candidate, Query, State};
use crate::manifest::source::{nearest, printable};
use crate::manifest::{ManifestError, misspelt};
use crate::reference::{PackageId, VersionSpec};

/// A search without a result.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// No place has the package.
    #[error("there is no package `{id}{}` in the workspace or among the packs", version(.spec))]
    NotFound {
        /// The requested package or version.
        id: PackageId,
        /// The requested version.
        spec: Box<VersionSpec>,
        /// Every place that was searched, and unsuitable packs with shorter names.
        looked_at: Vec<Candidate>,
    },
    /// A package of a shorter name is there, but it does not export the rest.
    #[error("there is no package `{id}`, and {element}")]
    NoExport {
        /// The requested package or version.
        id: PackageId,
        /// The missing export of the package with a shorter name.
        element: Box<MissingElement>,
        /// Every place where the whole name was searched.
        looked_at: Vec<Candidate>,
    },
    /// A manifest in the workspace is wrong.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// A requested element that a package does not export.
#[derive(Debug, thiserror::Error)]
#[error("`{package}` in `{}` exports no `{element}`", .folder.display())]
pub struct MissingElement {
    /// The package.
    pub package: PackageId,
    /// Its folder.
    pub folder: PathBuf,
    /// The name that it does not export.
    pub element: String,
    /// The names that it exports.
    pub exports: Vec<String>,
}

impl SearchError {
    pub(super) fn package_not_found(wanted: &Query, looked_at: Vec<Candidate>) -> Self {
        Self::NotFound { id: wanted.id.clone(), spec: Box::new(wanted.spec.clone()), looked_at }
    }

    /// Every place that was searched, with what was there.
    pub fn looked_at(&self) -> &[Candidate] {
        match self {
            Self::NotFound { looked_at, .. } | Self::NoExport { looked_at, .. } => looked_at,
            Self::Manifest(_) => &[],
        }
    }

    /// Hints: the places that were searched, misspelt manifests, similar exports.
    pub fn search_hints(&self) -> Vec<String> {
        let mut hints = self.hints_besides_places();
        if !self.looked_at().is_empty() {
            let places: Vec<_> =
                self.looked_at().iter().map(|place| format!("  {place}")).collect();
            hints.push(format!("looked in these places:\n{}", places.join("\n")));
        }
        hints
    }

    /// Hints, if the places were already reported.
    pub fn hints_besides_places(&self) -> Vec<String> {
        let mut hints = Vec::new();
        if let Self::NoExport { element, .. } = self {
            hints.extend(element.hints());
        }
        for candidate in self.looked_at() {
            let is_miss = matches!(candidate.state, State::Miss);
            let misspelt = if is_miss { misspelt(&candidate.place.folder) } else { None };
            hints.extend(misspelt.map(|warning| warning.to_string()));
        }
        hints
    }
}

impl MissingElement {
    fn hints(&self) -> Vec<String> {
        if self.exports.is_empty() {
            return vec!["it exports nothing".to_owned()];
        }
        let quoted = |export: &str| format!("`{}`", printable(export));
        let names: Vec<_> = self.exports.iter().map(|export| quoted(export)).collect();
        let similar = nearest(&self.element, self.exports.iter().map(String::as_str));
        let mut hints = vec![format!("it exports {}", names.join(", "))];
        hints.extend(similar.map(|export| format!("did you mean {}?", quoted(export))));
        hints
    }
}

fn version(spec: &VersionSpec) -> String {
    match spec {
        VersionSpec::Latest => String::new(),
        spec => format!("#{spec}"),
    }
}
