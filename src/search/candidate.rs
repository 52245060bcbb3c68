//! Checks a place: whether there is a package, and whether it is one of the requested versions.
//!
//! [`Candidate`] is a place with what was found there. [`UnsatisfiedReason`] says why a folder's package does not
//! satisfy the request. Which candidate wins is decided in `find.rs`.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{Place, Query, SearchError, SearchPath};
use crate::manifest::Head;
use crate::manifest::source::printable;
use crate::reference::{PackageId, Version, VersionSpec};
use crate::workspace::LeftOutReason;
use crate::{formats, fs};

/// A place, and what was found there.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The place; with `majors: many` its folder may be that of an older major.
    pub place: Place,
    /// What was found there.
    pub state: State,
}

/// What was found at a place.
#[derive(Debug, Clone)]
pub enum State {
    /// A package that satisfies the request.
    Hit(Hit),
    /// No package.
    Miss,
    /// A package that does not satisfy the request.
    PassedOver(UnsatisfiedReason),
}

/// A package that was found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// Its version, if it is known.
    pub version: Option<Version>,
    /// The elements that it exports.
    pub exports: Vec<String>,
    /// Why a package of the workspace, which wins anyway, does not satisfy the request.
    pub objection: Option<UnsatisfiedReason>,
}

impl Candidate {
    /// The package, if it satisfies the request.
    pub fn hit(&self) -> Option<&Hit> {
        match &self.state {
            State::Hit(hit) => Some(hit),
            State::Miss | State::PassedOver(_) => None,
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.state)
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hit(_) => formatter.write_str("hit"),
            Self::Miss => formatter.write_str("miss"),
            Self::PassedOver(reason) => write!(formatter, "passed over: {reason}"),
        }
    }
}

impl SearchPath {
    /// The package at one of the first two places that does not belong to the workspace, if no package of the
    /// workspace is at the other.
    pub fn left_out(&self, id: &PackageId) -> Option<Candidate> {
        if self.left_out.is_empty() {
            return None;
        }
        let wanted = Query { id: id.clone(), spec: VersionSpec::Latest, prereleases: false };
        let [first, second, ..] = self.package_places(id);
        let candidates = [first, second]
            .into_iter()
            .filter(|place| self.left_out.reason_left_out(&place.folder).is_some());
        let mut candidates = candidates.filter_map(|place| self.look_at_place(&wanted, place).ok());
        candidates.find(|candidate| matches!(candidate.state, State::PassedOver(_)))
    }

    /// All eight places with what is there, in order; more than one may be a hit.
    pub fn candidates(&self, wanted: &Query) -> Result<Vec<Candidate>, SearchError> {
        self.package_places(&wanted.id)
            .into_iter()
            .map(|place| self.look_at_place(wanted, place))
            .collect()
    }

    pub(super) fn look_at_place(
        &self,
        wanted: &Query,
        place: Place,
    ) -> Result<Candidate, SearchError> {
        if place.is_workspace() {
            if let Some(folder) = self.other_folders.get(&place.folder) {
                let state = look_at_work(wanted, folder)?;
                let place = Place { number: place.number, folder: folder.clone() };
                return Ok(Candidate { place, state });
            }
            let state = match self.left_out.reason_left_out(&place.folder) {
                None => look_at_work(wanted, &place.folder)?,
                Some(_) if matches!(formats::locate_manifest(&place.folder), Ok(None)) => {
                    State::Miss
                }
                Some(why) => State::PassedOver(UnsatisfiedReason::LeftOut(why.clone())),
            };
            return Ok(Candidate { place, state });
        }
        let state = self.look_at_pack(wanted, &place.folder);
        let first = Candidate { place, state };
        if self.has_many_majors && first.hit().is_none() {
            return Ok(self.look_at_majors(wanted, first));
        }
        Ok(first)
    }

    fn look_at_pack(&self, wanted: &Query, folder: &Path) -> State {
        let head = match formats::load_package_head(folder) {
            Ok(Some(head)) => head,
            Ok(None) => return State::Miss,
            Err(error) => return State::PassedOver(UnsatisfiedReason::Broken(error.to_string())),
        };
        if let Some(path) = self.link_on_the_way(folder) {
            return State::PassedOver(UnsatisfiedReason::Link(path));
        }
        if let Some(by) = self.replaced.get(&wanted.id) {
            return State::PassedOver(UnsatisfiedReason::Replaced(by.clone()));
        }
        let unknown = InstalledPack::default();
        let installed = self.installed.get(folder).unwrap_or(&unknown);
        match objection(wanted, head.version.as_ref(), installed) {
            Some(reason) => State::PassedOver(reason),
            None => {
                let version = installed.version.clone().or(head.version);
                State::Hit(Hit { version, exports: head.exports, objection: None })
            }
        }
    }

    /// The first pack of another major that satisfies the request, newest major first; else `first`, or why
    /// the newest of the others does not.
    fn look_at_majors(&self, wanted: &Query, first: Candidate) -> Candidate {
        let number = first.place.number;
        let mut best = first;
        for folder in folders_of_majors(&best.place.folder) {
            let state = self.look_at_pack(wanted, &folder);
            let is_hit = matches!(state, State::Hit(_));
            let is_news = matches!(best.state, State::Miss) && !matches!(state, State::Miss);
            if is_hit || is_news {
                best = Candidate { place: Place { number, folder }, state };
            }
            if is_hit {
                break;
            }
        }
        best
    }
}

pub(super) fn look_at_work(wanted: &Query, folder: &Path) -> Result<State, SearchError> {
    let Some(Head { version, exports, .. }) = formats::load_package_head(folder)? else {
        return Ok(State::Miss);
    };
    let objection = objection(wanted, version.as_ref(), &InstalledPack::default());
    Ok(State::Hit(Hit { version, exports, objection }))
}

/// The folders `n@MAJOR` beside `n`, highest major first.
fn folders_of_majors(folder: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(leaf)) = (folder.parent(), folder.file_name()) else {
        return Vec::new();
    };
    let mut majors: Vec<(u64, PathBuf)> = fs::entries(parent)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|entry| {
            let name = entry.file_name();
            let major = name.to_str()?.strip_prefix(leaf.to_str()?)?.strip_prefix('@')?;
            Some((major.parse().ok()?, entry.path()))
        })
        .collect();
    majors.sort_by(|one, other| other.cmp(one));
    majors.into_iter().map(|(_, folder)| folder).collect()
}

/// What is known about an installed pack in addition to its manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstalledPack {
    /// The version that was chosen; it takes precedence over the manifest's.
    pub version: Option<Version>,
    /// The commit that it came from, or the digest that it is known by.
    pub commit: Option<String>,
    /// The tag or branch that it came from.
    pub reference: Option<String>,
}

/// Why a folder with a manifest does not satisfy a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnsatisfiedReason {
    /// It is another version.
    Version {
        /// The version that is there, if its manifest has one.
        found: Option<Version>,
        /// The requested package or version.
        wanted: VersionSpec,
    },
    /// It came from another commit, tag or branch.
    Revision {
        /// The commit, tag or branch that it came from, if that is known.
        found: Option<String>,
        /// The requested package or version.
        wanted: VersionSpec,
    },
    /// Another package, this one, took its place.
    Replaced(PackageId),
    /// It is in a folder of the workspace where mu does not look for packages, and why not.
    LeftOut(LeftOutReason),
    /// It is behind this symbolic link in the packs of the workspace.
    Link(PathBuf),
    /// Its manifest cannot be read, and why not.
    Broken(String),
}

impl fmt::Display for UnsatisfiedReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { found: Some(found), wanted } => {
                write!(formatter, "version {found} does not satisfy `{wanted}`")
            }
            Self::Version { found: None, wanted } => {
                write!(formatter, "it has no version that could satisfy `{wanted}`")
            }
            Self::Revision { found: Some(found), wanted } => {
                write!(formatter, "it came from `{}`, not from `{wanted}`", printable(found))
            }
            Self::Revision { found: None, wanted } => {
                write!(formatter, "it is not known to come from `{wanted}`")
            }
            Self::Replaced(by) => write!(formatter, "replaced by `{by}`"),
            Self::LeftOut(why) => why.fmt(formatter),
            Self::Link(path) => {
                write!(formatter, "`{}` is a link, which is not followed", path.display())
            }
            Self::Broken(message) => write!(formatter, "its manifest cannot be read: {message}"),
        }
    }
}

/// Why the package with this version, and with what is known about its installation, does not satisfy the
/// request.
///
/// If no particular version was requested, any version does.
pub(super) fn objection(
    wanted: &Query,
    version: Option<&Version>,
    installed: &InstalledPack,
) -> Option<UnsatisfiedReason> {
    let spec = &wanted.spec;
    let version = installed.version.as_ref().or(version);
    let has_version = || version.is_some_and(|version| spec.accepts(version, wanted.prereleases));
    let has_tag = || spec.as_tag().is_some() && spec.as_tag() == installed.reference.as_deref();
    let commit = installed.commit.as_deref();
    let fits = match spec {
        VersionSpec::Latest | VersionSpec::Tip => true,
        VersionSpec::Pin(_) | VersionSpec::Range(_) | VersionSpec::Tag(_) => {
            has_version() || has_tag()
        }
        VersionSpec::Digest(digest) => commit == Some(digest.as_str()) || has_tag(),
        VersionSpec::Commit(wanted) => {
            let is_version = || {
                let range = wanted.as_range();
                range.zip(version).is_some_and(|(range, version)| range.matches(version, false))
            };
            wanted.names(commit, installed.reference.as_deref()) || is_version()
        }
    };
    if fits {
        return None;
    }
    let wanted = spec.clone();
    Some(match spec {
        VersionSpec::Pin(_) | VersionSpec::Range(_) => {
            UnsatisfiedReason::Version { found: version.cloned(), wanted }
        }
        VersionSpec::Tag(_) => {
            UnsatisfiedReason::Revision { found: installed.reference.clone(), wanted }
        }
        _ => UnsatisfiedReason::Revision { found: installed.commit.clone(), wanted },
    })
}
