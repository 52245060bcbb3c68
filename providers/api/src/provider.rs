//! The trait that every provider implements.
//!
//! Calls block; whoever wants many answers at once calls from many threads. A provider keeps what it
//! needs between calls (connections, bare repositories) behind `&self`.

use std::collections::BTreeSet;
use std::fmt;

use crate::catalog::{Hits, Query};
use crate::{Location, Progress, ProviderError, Release, TreeWriter};

/// Lists and fetches the releases of packages from one kind of place.
pub trait Provider: Send + Sync + fmt::Debug {
    /// The provider's name, which is also the word before `+` in a lock's `source`: `hub`, `git`, `path`.
    fn name(&self) -> &str;

    /// Whether this provider's kind of place is at `location`, found out by asking it.
    ///
    /// # Errors
    ///
    /// When the place cannot be asked. A place that answers, but is of another kind, is `Ok(false)`.
    fn probe(&self, location: &Location) -> Result<bool, ProviderError>;

    /// Whether its places are repositories, which have commits, branches and a default branch besides versions.
    fn is_repository(&self) -> bool {
        false
    }

    /// Whether its places are folders on this machine, each with one version, which are read anew in every run.
    fn is_folder(&self) -> bool {
        false
    }

    /// Whether a line of a listing says all that selection needs of a version, so that no manifest says more.
    fn lines_are_complete(&self) -> bool {
        false
    }

    /// Whether a release is only what it was taken for if its manifest has the name and the version that it is listed under.
    fn names_are_binding(&self) -> bool {
        false
    }

    /// Whether a release is only what it was taken for if its manifest says what its line says, in all that selection uses,
    /// and has the version that it is listed under.
    fn lines_are_binding(&self) -> bool {
        self.names_are_binding()
    }

    /// Whether its listings are hints: [`Provider::confirm`] says what a version really is.
    fn lines_are_hints(&self) -> bool {
        false
    }

    /// Whether its places hold packages side by side, so that only the last segment of a name is the package there, and those
    /// before it lead to the place.
    fn places_are_flat(&self) -> bool {
        false
    }

    /// Whether the package at `location` carries copies of what it depends on, and can be used with those.
    fn carries_copies(&self, _location: &Location) -> bool {
        false
    }

    /// Whether its places are hubs, whose archives and index lines can be copied as they are.
    fn is_hub(&self) -> bool {
        false
    }

    /// Says what this provider will soon be asked, so that it can choose how, or ask the network already.
    ///
    /// Returns at once, and does nothing unless a provider says otherwise. What fails, fails in the call.
    fn soon(&self, _location: &Location, _what: Soon<'_>) {}

    /// Whether [`Provider::list`] with this validator is certain to answer [`Listing::Unchanged`] without asking about this
    /// package alone. What is asked once for all packages of a place may be asked for that.
    fn is_unchanged(
        &self,
        _location: &Location,
        _validator: &str,
        _progress: &dyn Progress,
    ) -> bool {
        false
    }

    /// Lists every release of the package at `location`.
    ///
    /// `validator` is what an earlier [`Found`] came with; if nothing changed since, the answer is
    /// [`Listing::Unchanged`] and costs as little as the place allows.
    ///
    /// # Errors
    ///
    /// When the place cannot be asked or answers nonsense. A package that is not there is
    /// [`Listing::Absent`], not an error.
    fn list(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError>;

    /// What is known of the package on this machine, if that holds all of these commits (40 digits each):
    /// then nobody has to be asked about them.
    ///
    /// Connects to nothing. `None` also where a place knows no commits.
    fn recall(
        &self,
        _location: &Location,
        _commits: &[String],
        _progress: &dyn Progress,
    ) -> Option<Found> {
        None
    }

    /// Lists the packages that provide a capability (`GROUP/VERSION/KIND`), as releases that have a name alone, in the order
    /// in which they are preferred. `location` is of any package of the registry.
    ///
    /// # Errors
    ///
    /// When the place cannot be asked or answers nonsense. A place that lists none, as most kinds of places, is
    /// [`Listing::Absent`].
    fn providers(
        &self,
        _location: &Location,
        _capability: &str,
        _validator: Option<&str>,
        _progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        Ok(Listing::Absent { tried: Vec::new() })
    }

    /// Lists the capabilities (`GROUP/VERSION/KIND`) that packages of the registry provide. `None` where it cannot tell.
    ///
    /// # Errors
    ///
    /// When the place cannot be asked or answers nonsense.
    fn capabilities(
        &self,
        _location: &Location,
        _progress: &dyn Progress,
    ) -> Result<Option<BTreeSet<String>>, ProviderError> {
        Ok(None)
    }

    /// Finds one revision that no listing holds: a commit, full or abbreviated.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::NotFound`] when there is no such revision, or several that begin so, or when the
    /// place knows no commits.
    fn resolve(
        &self,
        location: &Location,
        revision: &str,
        progress: &dyn Progress,
    ) -> Result<Release, ProviderError>;

    /// The manifest of a release whose line in the listing does not hold its dependencies.
    ///
    /// `None` means that the release has no manifest, which is fine.
    ///
    /// # Errors
    ///
    /// When the release cannot be fetched.
    fn manifest(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<ManifestFile>, ProviderError>;

    /// What the place itself says of a version, where its listing is only a hint: asked for before a version is relied on
    /// that is about to be used, or of which the listing knows no dependencies.
    ///
    /// `None` means that the listing is all there is, or that [`Provider::manifest`] says more. What turns out not to be a
    /// package is [`Release::unusable`].
    ///
    /// # Errors
    ///
    /// When the place cannot be asked, or has no such version any more.
    fn confirm(
        &self,
        _location: &Location,
        _release: &Release,
        _progress: &dyn Progress,
    ) -> Result<Option<Release>, ProviderError> {
        Ok(None)
    }

    /// Writes the files of a release into `tree`, and nothing else.
    ///
    /// `release` comes from a listing or from a lock; from a lock it holds only what a lock holds
    /// (version, commit, archive, digest, urls). The provider compares the archive's digest; the
    /// caller compares the content's.
    ///
    /// # Errors
    ///
    /// When anything was missing, cut short, refused by `tree`, or not what its digest says.
    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError>;

    /// Finds packages of the registry at `location`, whose path is empty, by words.
    ///
    /// `None` means that this kind of place cannot be searched, which is the case unless a provider says otherwise.
    ///
    /// # Errors
    ///
    /// When the registry cannot be asked, or turns out not to be searchable.
    fn search(
        &self,
        _location: &Location,
        _query: &Query,
        _progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        Ok(None)
    }
}

/// What a provider will soon be asked.
#[derive(Debug, Clone, Copy)]
pub enum Soon<'a> {
    /// To list more packages below the root of the location, of which nothing is known.
    List {
        /// How many.
        packages: usize,
        /// Whether what they depend on will be listed, too.
        leads_on: bool,
    },
    /// To fetch this release.
    Fetch(&'a Release),
}

/// What a place answered when asked for a package's releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// The same as when the validator was handed out; `max_age` as in [`Found`].
    Unchanged {
        /// For how many seconds the place says that it need not be asked again.
        max_age: u32,
        /// What to hand back the next time, if another one than this time saves work.
        validator: Option<String>,
    },
    /// The place has no such package. Holds what was looked at, for the message.
    Absent {
        /// URLs or paths that were asked.
        tried: Vec<String>,
    },
    /// The package's releases.
    Found(Found),
}

/// The releases of a package, as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// One JSON object a line, each a [`Release`]. Kept as bytes: most lines are never parsed.
    pub lines: Vec<u8>,
    /// What to hand back to ask whether anything changed.
    pub validator: Option<String>,
    /// For how many seconds the place says that it need not be asked again; 0 means ask every time.
    pub max_age: u32,
    /// Where the package really is, now that it is known (a Git repository's root).
    pub location: Location,
    /// Names of packages of the same registry that this one may lead to, where each of them would have to be asked for alone.
    /// Only a hint: it may be behind, or wrong.
    pub leads_to: Vec<String>,
}

/// The names that a manifest of mu's own can have.
pub const MANIFEST_NAMES: [&str; 2] = ["Mu.yaml", "Mu.json"];

/// A manifest as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// One of [`MANIFEST_NAMES`].
    pub name: String,
    /// Its text.
    pub text: String,
}
