//! From a reference to a folder: the first hit, the replacement of what was replaced, and elements.
//!
//! [`Found`] is a result. A search without a result is a [`SearchError`]: the places that were searched, and what may
//! have been meant. What is at one place is checked in `candidate.rs`.

use std::fmt;
use std::path::{Path, PathBuf};

use super::candidate::look_at_work;
use super::{Candidate, Hit, Place, Query, SearchPath, State, UnsatisfiedReason};
use crate::manifest::source::{nearest, printable};
use crate::manifest::{ManifestError, misspelt};
use crate::reference::{Name, PackageId, VersionSpec};

/// A package that was found, and what to report about it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The package. It differs from the request if that was an element, or was replaced.
    pub id: PackageId,
    /// Where it is.
    pub place: Place,
    /// The path.
    pub hit: Hit,
    /// The requested exported element, `VM` of `aws/ec2/VM`.
    pub element: Option<String>,
    /// Unsuitable packs on the way.
    pub passed_over: Vec<Candidate>,
    /// What the user should know.
    pub notes: Vec<Note>,
}

/// A warning about what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A package of the workspace won although it does not satisfy the request.
    Unsatisfied {
        /// The package.
        id: PackageId,
        /// Its folder.
        folder: PathBuf,
        /// Why it does not satisfy the request.
        reason: UnsatisfiedReason,
    },
    /// Another package replaces the requested one.
    Replaced {
        /// The requested package or version.
        id: PackageId,
        /// Its replacement.
        by: PackageId,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsatisfied { id, folder, reason } => {
                let folder = folder.display();
                write!(formatter, "`{id}` is taken from the workspace at `{folder}`, but {reason}")
            }
            Self::Replaced { id, by } => write!(formatter, "`{id}` was replaced by `{by}`"),
        }
    }
}

impl SearchPath {
    /// Finds a package, or the package that exports an element.
    ///
    /// The package is the longest prefix of the name that is a hit; the rest must be one of its exports.
    pub fn find(&self, wanted: &Query) -> Result<Found, SearchError> {
        let mut looked_at = match self.look_for(wanted)? {
            Ok(found) => return Ok(found),
            Err(candidates) => candidates,
        };
        let base = wanted.id.base();
        let mut prefix = wanted.id.name().namespace();
        while let Some(package) = prefix {
            let shorter = Query { id: PackageId::new(&base, &package), ..wanted.clone() };
            match self.look_for(&shorter)? {
                Ok(found) => return element(wanted, &package, found, looked_at),
                Err(candidates) => looked_at.extend(passed_over(candidates)),
            }
            prefix = package.namespace();
        }
        Err(SearchError::package_not_found(wanted, looked_at))
    }

    /// Finds exactly the named package, and no element of another.
    pub fn find_package(&self, wanted: &Query) -> Result<Found, SearchError> {
        self.look_for(wanted)?
            .map_err(|candidates| SearchError::package_not_found(wanted, candidates))
    }

    /// Finds the package of the workspace in `folder`, which need not be one of its eight places.
    pub fn find_at(&self, wanted: &Query, folder: &Path) -> Result<Option<Found>, SearchError> {
        let places = self.package_places(&wanted.id);
        let number = places.iter().find(|place| place.folder == folder);
        let number = number.map_or(Place::ELSEWHERE, |place| place.number);
        let place = Place { number, folder: folder.to_owned() };
        let State::Hit(hit) = look_at_work(wanted, folder)? else { return Ok(None) };
        let id = wanted.id.clone();
        let notes = unsatisfied(&id, &place, &hit).into_iter().collect();
        Ok(Some(Found { id, place, hit, element: None, passed_over: Vec::new(), notes }))
    }

    /// Searches a package, and its replacement if it is not there itself. What was not found has its candidates.
    fn look_for(&self, wanted: &Query) -> Result<Result<Found, Vec<Candidate>>, SearchError> {
        let mut wanted = wanted.clone();
        let mut notes = Vec::new();
        let mut looked_at = Vec::new();
        let mut seen: Vec<PackageId> = Vec::new();
        loop {
            for place in self.package_places(&wanted.id) {
                let candidate = self.look_at_place(&wanted, place)?;
                let State::Hit(hit) = candidate.state else {
                    looked_at.push(candidate);
                    continue;
                };
                let Candidate { place, .. } = candidate;
                notes.extend(unsatisfied(&wanted.id, &place, &hit));
                let passed_over = passed_over(looked_at).collect();
                let id = wanted.id;
                return Ok(Ok(Found { id, place, hit, element: None, passed_over, notes }));
            }
            // Packages that replace each other lead to nothing.
            let by = self.replaced.get(&wanted.id).filter(|by| !seen.contains(by));
            let Some(by) = by.cloned() else { return Ok(Err(looked_at)) };
            seen.push(wanted.id.clone());
            notes.push(Note::Replaced { id: wanted.id, by: by.clone() });
            wanted.id = by;
        }
    }
}

/// Reports a package of the workspace that does not satisfy the request.
fn unsatisfied(id: &PackageId, place: &Place, hit: &Hit) -> Option<Note> {
    let reason = hit.objection.clone()?;
    Some(Note::Unsatisfied { id: id.clone(), folder: place.folder.clone(), reason })
}

/// The element of `found` with the rest of the wanted name after `package`.
fn element(
    wanted: &Query,
    package: &Name,
    mut found: Found,
    looked_at: Vec<Candidate>,
) -> Result<Found, SearchError> {
    let name = wanted.id.name();
    let rest = name.strip_prefix(package).expect("a namespace is a prefix of its name");
    if !found.hit.exports.iter().any(|export| export == rest.as_str()) {
        let element = Box::new(MissingElement {
            package: found.id,
            folder: found.place.folder,
            element: rest.to_string(),
            exports: found.hit.exports,
        });
        return Err(SearchError::NoExport { id: wanted.id.clone(), element, looked_at });
    }
    let mut passed: Vec<_> = passed_over(looked_at).collect();
    passed.append(&mut found.passed_over);
    Ok(Found { element: Some(rest.to_string()), passed_over: passed, ..found })
}

fn passed_over(candidates: Vec<Candidate>) -> impl Iterator<Item = Candidate> {
    candidates.into_iter().filter(|candidate| matches!(candidate.state, State::PassedOver(_)))
}

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
    fn package_not_found(wanted: &Query, looked_at: Vec<Candidate>) -> Self {
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
