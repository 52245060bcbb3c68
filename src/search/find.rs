//! From a reference to a folder: the first hit, the replacement of what was replaced, and elements.

use std::fmt;
use std::path::{Path, PathBuf};

use super::candidate::look_at_work;
use super::{
    Candidate, Hit, MissingElement, Place, Query, SearchError, SearchPath, State, UnsatisfiedReason,
};
use crate::reference::{Name, PackageId};

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
    ///
    /// # Errors
    ///
    /// When no prefix is a hit, the package exports no such element, or a manifest in the workspace
    /// is wrong.
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
    ///
    /// # Errors
    ///
    /// When it is not found, or a manifest in the workspace is wrong.
    pub fn find_package(&self, wanted: &Query) -> Result<Found, SearchError> {
        self.look_for(wanted)?
            .map_err(|candidates| SearchError::package_not_found(wanted, candidates))
    }

    /// Finds the package of the workspace in `folder`, which need not be one of its eight places.
    ///
    /// # Errors
    ///
    /// When its manifest is wrong.
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
