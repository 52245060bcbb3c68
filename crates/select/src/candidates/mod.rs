//! The candidates of one package.
//!
//! Positions below the number of releases are those releases, ascending. After them come revisions without a
//! version tag, which exist only because something names them: a commit, a tag, a branch, the lock.
//!
//! [`Listing`] is what the versions say, in the listing of their package, of capabilities and of other packages.

mod matching;
mod order;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mu_manifest::reference::{ArtifactDigest, PackageId, Version, VersionSpec};
use pubgrub::VersionSet;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use self::order::Preference;

use crate::candidates::order::Upgrades;
use crate::filters::{self, Looks, Rejection};
use crate::positions::PositionSet;
use crate::releases::{Details, Position, Releases};
use crate::universe::{Candidate, Requirement, Unavailable, Universe, Untagged};
use crate::{CandidateOfLock, Override, Settings};

/// The universe to ask, and the rules to apply.
#[derive(Clone, Copy)]
pub(super) struct Inquiry<'a> {
    pub(super) universe: &'a dyn Universe,
    pub(super) settings: &'a Settings,
}

/// What is known about a package in addition to its registry's data.
pub(super) struct Known<'k> {
    /// The locked versions that nobody wants to move.
    pub(super) kept: &'k [&'k CandidateOfLock],
    /// What there is to upgrade from.
    pub(super) installed: &'k [&'k Version],
    /// The channel of the installed version, if the user gave it.
    pub(super) channel: Option<String>,
    /// Whether the best version one upgrade away comes first.
    pub(super) is_next_wanted: bool,
    /// The requirements of roots that accept only one version.
    pub(super) pins: &'k [&'k VersionSpec],
    /// The channels that the roots request.
    pub(super) channels: &'k [&'k str],
}

/// The candidates of one package.
#[derive(Debug)]
pub(super) struct Candidates {
    /// The package, as it is required.
    pub(super) id: PackageId,
    /// The releases, candidates or not.
    pub(super) releases: Arc<Releases>,
    /// Rare and large, as the upgrades are: so it takes room only where it is.
    instead: Option<Box<Override>>,
    /// The candidates that no rule excludes.
    pub(super) allowed: PositionSet,
    upgrades: Option<Box<Upgrades>>,
    locked: Vec<LockedCandidate>,
    /// What an earlier answer chose, which is tried first.
    suggested: SmallVec<[Position; 1]>,
    /// Withdrawn versions that are there because someone outside the graph names exactly them.
    pinned: PositionSet,
    pub(super) preference: Preference,
    revisions: Vec<Untagged>,
    /// The versions that are not candidates because of their manifests, and why.
    refused: FxHashMap<Position, Arc<Details>>,
    named: FxHashMap<Box<str>, Option<Position>>,
    sets: FxHashMap<Arc<Requirement>, PositionSet>,
    is_outdated: bool,
    /// Whether several versions of it may be chosen, whatever their majors.
    pub(super) is_side_by_side: bool,
}

/// A candidate that the lock holds.
#[derive(Debug)]
struct LockedCandidate {
    position: Position,
    /// The name that it was locked for: a tag or a branch; `None` for a version, a commit or the tip.
    reference: Option<String>,
    /// What it was required as, where the lock has several majors.
    requested: Vec<Requirement>,
}

impl Candidates {
    /// Gathers the candidates of `id`.
    pub(super) fn gather(
        inquiry: Inquiry<'_>,
        id: &PackageId,
        known: &Known<'_>,
    ) -> Result<Self, Unavailable> {
        let instead = inquiry.settings.overrides.get(id).cloned().map(Box::new);
        let asked = instead.as_ref().map_or(id, |instead| &instead.id);
        let releases = inquiry.universe.releases(asked)?;
        let mut candidates = Self {
            id: id.clone(),
            releases,
            instead,
            allowed: PositionSet::default(),
            upgrades: None,
            locked: Vec::new(),
            suggested: SmallVec::new(),
            pinned: PositionSet::default(),
            preference: Preference::default(),
            revisions: Vec::new(),
            refused: FxHashMap::default(),
            named: FxHashMap::default(),
            sets: FxHashMap::default(),
            is_side_by_side: false,
            is_outdated: false,
        };
        // In this order, because each step uses what the one before found: rules let locked and pinned versions pass
        // that are yanked or too new, and upgrades follow the channel that the preference found.
        for locked in known.kept {
            candidates.keep(inquiry, locked)?;
        }
        // An override takes precedence over everything.
        if candidates.instead.is_none() {
            candidates.pin(known.pins);
        }
        let settings = inquiry.settings;
        let wants_prereleases =
            settings.prereleases || settings.wanted_prereleases.contains(&candidates.id);
        candidates.preference =
            Preference::from_releases(&candidates.releases, known, wants_prereleases);
        candidates.filter(inquiry.settings, known);
        Ok(candidates)
    }

    /// Lets withdrawn versions in that are named exactly.
    fn pin(&mut self, pins: &[&VersionSpec]) {
        let is_pinned = |position: Position| {
            let version = self.releases.version(position);
            pins.iter().any(|pin| pin.has_lower_bound_at(&version))
        };
        let all = self.releases.all_details().filter(|_| !pins.is_empty());
        let withdrawn = all.filter(|(_, details)| details.yanked.is_some());
        self.pinned = withdrawn.map(|(at, _)| at).filter(|at| is_pinned(*at)).collect();
    }

    /// Finds the candidates that the lock holds.
    fn keep(&mut self, inquiry: Inquiry<'_>, locked: &CandidateOfLock) -> Result<(), Unavailable> {
        let release =
            locked.version.as_ref().and_then(|version| self.releases.position_of_version(version));
        let commit = locked.commit.as_deref();
        // A tag may have been moved since the lock was written. Then the release of that version is not what was
        // locked, and the locked commit becomes a revision of its own.
        let is_it = |commit: &str| {
            let known = release.and_then(|release| self.releases.commit(release));
            known.is_none_or(|known| **known == *commit)
        };
        let position = match release.filter(|_| commit.is_none_or(is_it)) {
            Some(release) => Some(release),
            None => match commit.map(VersionSpec::parse) {
                // That a place no longer has it matters only if something requires exactly it.
                Some(Ok(spec @ VersionSpec::Digest(_))) => self.name(inquiry, &spec).ok().flatten(),
                Some(Ok(spec)) => self.name(inquiry, &spec)?,
                Some(Err(_)) | None => None,
            },
        };
        if let Some(position) = position {
            let (reference, requested) = (locked.reference.clone(), locked.requested.clone());
            self.locked.push(LockedCandidate { position, reference, requested });
        }
        Ok(())
    }

    fn filter(&mut self, settings: &Settings, known: &Known<'_>) {
        let passes =
            |at| filters::rejection_by_rules(settings, &self.id, &self.looks(at)).is_none();
        let length = self.releases.len();
        // A package may have thousands of versions, of which a few have details. If no rule is about plain versions,
        // only those few are looked at.
        let allowed = if filters::pass_plain_versions(settings, &self.id) {
            let detailed = self.releases.all_details().map(|(position, _)| position);
            let refused: PositionSet = detailed.filter(|&position| !passes(position)).collect();
            PositionSet::position_range(0, length).without(&refused)
        } else {
            (0..length).filter(|&position| passes(position)).collect()
        };
        let channels = self.preference.of_upgrades(known);
        let upgrades = Upgrades::from(&self.releases, &allowed, known.installed, channels);
        if let Some(upgrades) = upgrades.as_ref().filter(|_| known.is_next_wanted) {
            self.preference.put_first(&upgrades.next());
        }
        self.upgrades = upgrades.map(Box::new);
        // What is there already are the revisions that the lock holds.
        self.allowed = self.allowed.union(&allowed);
    }

    /// Removes a version if its manifest, which the listing does not contain, rules it out; returns whether
    /// it did.
    pub(super) fn declare(
        &mut self,
        settings: &Settings,
        position: Position,
        details: Arc<Details>,
    ) -> bool {
        let looks = Looks { details: Some(&details), ..self.looks(position) };
        if !self.allowed.holds(position)
            || filters::rejection_by_rules(settings, &self.id, &looks).is_none()
        {
            return false;
        }
        // The details stay, for `rejection` to say why. All sets may hold the version, so they are made again.
        self.refused.insert(position, details);
        self.allowed = self.allowed.without(&PositionSet::singleton(position));
        self.sets.clear();
        true
    }

    /// Whether the manifest of the candidate at `position` rules it out.
    pub(super) fn is_refused(&self, position: Position) -> bool {
        self.refused.contains_key(&position)
    }

    /// The candidates in `set` that their manifests rule out, as far as these were read.
    pub(super) fn refused_in(&self, set: &PositionSet) -> PositionSet {
        let mut refused: Vec<Position> = self.refused.keys().copied().collect();
        refused.sort_unstable();
        refused.into_iter().filter(|position| set.holds(*position)).collect()
    }

    /// Removes the versions that the installed version cannot be upgraded to.
    pub(super) fn narrow_upgrades(&mut self) {
        if let Some(upgrades) = &self.upgrades {
            // Somebody names a revision, and knows what that does to the installed version.
            let revisions = PositionSet::position_range(self.releases.len(), Position::MAX);
            self.allowed = self.allowed.intersection(&upgrades.reachable.union(&revisions));
        }
    }

    /// Why the installed version cannot be upgraded to the candidate at `position`; `None` if it can.
    pub(super) fn upgrade_refusal(
        &self,
        settings: &Settings,
        position: Position,
    ) -> Option<Rejection> {
        let unusable = |step| filters::rejection_by_rules(settings, &self.id, &self.looks(step));
        self.upgrades.as_ref()?.refusal(&self.releases, position, unusable)
    }

    /// Why the version at `position` is not a candidate; `None` if it is.
    pub(super) fn rejection(&self, settings: &Settings, position: Position) -> Option<Rejection> {
        let rejection = filters::rejection_by_rules(settings, &self.id, &self.looks(position));
        rejection.or_else(|| self.upgrade_refusal(settings, position))
    }

    fn looks(&self, position: Position) -> Looks<'_> {
        let is_release = self.revision(position).is_none();
        Looks {
            version: self.version(position),
            published: is_release.then(|| self.releases.published(position)).flatten(),
            details: self.details(position),
            is_locked: self.is_locked(position),
            is_pinned: self.pinned.holds(position),
            // Something names the revision, so it is not reached by accident.
            is_ageless: !is_release || self.releases.is_ageless,
        }
    }

    /// The versions between the installed one and the one at `position`, if upgrades go step by step.
    pub(super) fn upgrade_path(&self, position: Position) -> Vec<Version> {
        self.upgrades
            .as_ref()
            .map(|upgrades| upgrades.way(&self.releases, position))
            .unwrap_or_default()
    }

    /// The package whose releases are used, if an override says so.
    pub(super) fn used_override(&self) -> Option<&Override> {
        self.instead.as_deref()
    }

    /// The number of positions: releases, then revisions.
    pub(super) fn count(&self) -> Position {
        self.releases.len() + self.revisions.len() as Position
    }

    /// Whether the lock holds the candidate at `position`.
    pub(super) fn is_locked(&self, position: Position) -> bool {
        self.locked.iter().any(|locked| locked.position == position)
    }

    /// Whether the candidate at `position` is withdrawn, and allowed only for requirers outside the graph
    /// that name exactly it.
    pub(super) fn is_only_pinned(&self, position: Position) -> bool {
        self.pinned.holds(position) && !self.is_locked(position)
    }

    /// The candidate at `position`, as the universe names it.
    pub(super) fn candidate(&self, position: Position) -> Candidate<'_> {
        match self.revision(position) {
            Some(revision) => Candidate::Revision(revision),
            None => Candidate::Release(position),
        }
    }

    /// The revision at `position`, if it is not a release.
    pub(super) fn revision(&self, position: Position) -> Option<&Untagged> {
        let behind = position.checked_sub(self.releases.len())?;
        self.revisions.get(behind as usize)
    }

    /// The version at `position`; a revision may have none.
    pub(super) fn version(&self, position: Position) -> Option<Version> {
        match self.revision(position) {
            Some(revision) => revision.version.clone(),
            None => Some(self.releases.version(position)),
        }
    }

    /// The name of the candidate at `position` in messages: its version, or the start of its commit.
    pub(super) fn candidate_label(&self, position: Position) -> String {
        match (self.revision(position), self.version(position)) {
            (None, Some(version)) => version.to_string(),
            (Some(revision), _) if ArtifactDigest::is_artifact_digest(&revision.commit) => {
                ArtifactDigest::shortened(&revision.commit).to_owned()
            }
            (Some(revision), _) => revision.commit.chars().take(10).collect(),
            (None, None) => String::new(),
        }
    }

    /// The commit at `position`.
    pub(super) fn candidate_commit(&self, position: Position) -> Option<&Arc<str>> {
        match self.revision(position) {
            Some(revision) => Some(&revision.commit),
            None => self.releases.commit(position),
        }
    }

    /// What the listing says of the candidates.
    pub(super) fn registry_listing(&self) -> Listing<'_> {
        let default = self.preference.first.as_ref();
        Listing { releases: &self.releases, allowed: &self.allowed, default }
    }

    pub(super) fn details(&self, position: Position) -> Option<&Details> {
        match self.revision(position) {
            Some(revision) => revision.details.as_deref(),
            None => {
                let refused = || self.refused.get(&position).map(|details| &**details);
                self.releases.details(position).or_else(refused)
            }
        }
    }

    /// The first channel that the candidate at `position` is in.
    pub(super) fn channel(&self, position: Position) -> Option<String> {
        self.details(position)?.channels.first().cloned()
    }

    /// The app version of the candidate at `position`.
    pub(super) fn candidate_app_version(&self, position: Position) -> Option<String> {
        let version = self.version(position);
        let composite = version.as_ref().and_then(Version::app);
        let app = composite.or_else(|| self.details(position)?.app_version.as_deref());
        app.map(ToOwned::to_owned)
    }

    /// The major version at `position`; 0 for a revision without a version. Where several versions may be chosen, each is like a
    /// major of its own.
    pub(super) fn major(&self, position: Position) -> u64 {
        // Line 0 is that of all versions, so these are counted from 1.
        if self.is_side_by_side {
            return u64::from(position) + 1;
        }
        self.version(position).map_or(0, |version| version.major())
    }

    /// The majors of the candidates in `set`, ascending.
    pub(super) fn majors(&self, set: &PositionSet) -> Vec<u64> {
        let majors: BTreeSet<u64> = set.iter().map(|position| self.major(position)).collect();
        majors.into_iter().collect()
    }

    /// The locked candidate within `set`, the highest if there are several.
    pub(super) fn kept(&self, set: &PositionSet) -> Option<Position> {
        let within = self.locked.iter().map(|locked| locked.position);
        within.filter(|&position| set.holds(position)).max()
    }

    /// The locked candidate that met a requirement for which these `versions` are accepted; if the lock does not say which of several
    /// majors that was, the highest that fits. So a requirement stays with its major when another one joins it.
    pub(super) fn kept_major(&self, versions: &PositionSet) -> Option<Position> {
        let is_met = |locked: &&LockedCandidate| {
            let mut requested = locked.requested.iter();
            versions.holds(locked.position)
                && requested.any(|requirement| self.sets.get(requirement) == Some(versions))
        };
        let met = self.locked.iter().filter(is_met).map(|locked| locked.position).max();
        met.or_else(|| self.kept(versions))
    }

    /// Whether the lock has a candidate that `requirement`, which was examined before, accepts.
    pub(super) fn has_locked_match(&self, requirement: &Requirement) -> bool {
        self.sets.get(requirement).is_some_and(|set| self.kept(set).is_some())
    }

    /// The newest of the preferred candidates within `set`: a release if there is one, or else a revision.
    pub(super) fn newest(&self, set: &PositionSet) -> Option<Position> {
        self.preference.newest(set).or_else(|| {
            set.iter().max_by_key(|&position| {
                let revision = self.revision(position);
                let version = revision.and_then(|revision| revision.version.as_ref());
                // The commit says nothing about age. It is there so that the answer is always the same.
                let commit = revision.map(|revision| Reverse(&revision.commit));
                (!self.is_locked(position), version, commit)
            })
        })
    }

    /// The candidate within `set` that is chosen if nothing conflicts with it: the locked one, else what an
    /// earlier answer suggests, else the newest.
    pub(super) fn likely(&self, set: &PositionSet) -> Option<Position> {
        // The lock first: a suggestion comes from a search of this run, and must not move what is locked.
        let suggested = || self.suggested.iter().copied().filter(|&at| set.holds(at)).max();
        self.kept(set).or_else(suggested).or_else(|| self.newest(set))
    }

    /// Sets what is tried first where the lock has nothing.
    pub(super) fn suggest_releases(&mut self, releases: &[Position]) {
        self.suggested = releases.into();
    }
}

/// The listing of a package.
pub(crate) struct Listing<'c> {
    releases: &'c Releases,
    /// The candidates that no rule excludes.
    pub(crate) allowed: &'c PositionSet,
    /// The channel that counts if none is requested.
    default: Option<&'c String>,
}

impl Listing<'_> {
    /// The capabilities that versions provide: in which versions, and in which versions of the default
    /// channel if those are fewer.
    /// `stated` are those that all of its versions provide besides.
    pub(crate) fn provided_capabilities(
        &self,
        stated: &[String],
    ) -> Vec<(String, PositionSet, Option<PositionSet>)> {
        let mut provided: BTreeMap<&str, Vec<Position>> = BTreeMap::new();
        let detailed = self.releases.all_details();
        for (position, details) in detailed.filter(|(position, _)| self.allowed.holds(*position)) {
            for capability in &details.facts.provides {
                provided.entry(capability).or_default().push(position);
            }
        }
        // All of its versions provide it, also those that do not say so themselves.
        for capability in stated {
            provided.insert(capability, self.allowed.iter().collect());
        }
        let is_preferred = |position: &Position| {
            let details = self.releases.details(*position);
            let channels = details.map(|details| &details.channels);
            channels.zip(self.default).is_some_and(|(channels, default)| channels.contains(default))
        };
        let sets = provided.into_iter().map(|(capability, positions)| {
            let preferred: PositionSet = positions.iter().copied().filter(is_preferred).collect();
            let versions: PositionSet = positions.into_iter().collect();
            let is_part = !preferred.is_empty() && preferred != versions;
            (capability.to_owned(), versions, is_part.then_some(preferred))
        });
        sets.collect()
    }

    /// The packages that versions replace, and in which versions.
    pub(crate) fn replaced(&self) -> Vec<(PackageId, PositionSet)> {
        let mut replaced: BTreeMap<&PackageId, Vec<Position>> = BTreeMap::new();
        for (position, details) in self.releases.all_details() {
            if !details.facts.replaces.is_empty() && self.allowed.holds(position) {
                for id in &details.facts.replaces {
                    replaced.entry(id).or_default().push(position);
                }
            }
        }
        let sets = replaced.into_iter();
        sets.map(|(id, positions)| (id.clone(), positions.into_iter().collect())).collect()
    }

    /// What some versions conflict with: package ids and capabilities.
    pub(crate) fn opponents(&self) -> Vec<String> {
        let all = self.releases.all_details().flat_map(|(_, details)| &details.facts.conflicts);
        all.cloned().collect()
    }

    /// Whether any version declares that the package has moved.
    pub(crate) fn has_moved(&self) -> bool {
        self.releases.all_details().any(|(_, details)| details.moved_to.is_some())
    }
}
