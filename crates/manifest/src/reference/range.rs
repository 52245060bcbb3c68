//! Ranges of versions, as npm's node-semver reads them.
//!
//! A range is stored as comparators, so that a plain version is matched by comparing numbers, and its lower
//! bounds are known. `range_text` reads the text.
//!
//! `nodejs-semver`, with which the tests compare, was considered: it ignores what it does not understand (the
//! second part of `^1 foo`), reads `>2 <1` as a choice between the two, and does not return its bounds.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Version;
use super::error::{Fault, ReferenceError};
use super::range_text;

/// A set of versions: `^1.0.6`, `>=1.2 <2`, `1.2 - 1.4`, `^1 || ^3`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Range {
    text: Arc<str>,
    /// At least one alternative must hold, and within one, all comparators.
    alternatives: Arc<[Alternative]>,
}

impl Range {
    /// Reads a range; a full or partial version is one too.
    ///
    /// # Errors
    ///
    /// When the text is not a range. Nothing is ignored: npm would ignore the `foo` in `^1 foo`.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        Self::from_text(text).map_err(|fault| ReferenceError::new("range", text, fault))
    }

    pub(super) fn from_text(text: &str) -> Result<Self, Fault> {
        let alternatives = range_text::parse_alternatives(text)?;
        Ok(Self { text: text.into(), alternatives })
    }

    /// The range as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn alternatives(&self) -> &[Alternative] {
        &self.alternatives
    }

    /// Whether a version is in the range. For a composite version, the app's version counts; other text is in no range.
    ///
    /// A prerelease is in the range only if a comparator names a prerelease of the same three numbers, or if
    /// `prereleases` is set.
    pub fn matches(&self, version: &Version, prereleases: bool) -> bool {
        let Some(leading) = version.leading() else { return false };
        // A range is about apps, so it cannot name a prerelease of a revision.
        let hidden = !prereleases
            && version.as_composite().is_some_and(|composite| !composite.revision.pre.is_empty());
        !hidden
            && self.alternatives.iter().any(|alternative| alternative.holds(leading, prereleases))
    }

    /// Whether no version can be in the range, as in `>=2 <1`.
    pub fn is_empty(&self) -> bool {
        self.alternatives.iter().all(Alternative::is_empty)
    }

    /// Which of `count` ascending versions are in the range, if they are consecutive; `None` if each version
    /// has to be tested. None of the versions may be a prerelease or a composite one.
    pub fn span(
        &self,
        count: usize,
        version: impl Fn(usize) -> Version,
    ) -> Option<std::ops::Range<usize>> {
        let [Alternative(comparators)] = &*self.alternatives else { return None };
        let holds = |at: usize, is_lower: bool| {
            let version = version(at);
            let mut bounds = comparators.iter().filter(|bound| bound.side.is_lower() == is_lower);
            bounds.all(|bound| version.leading().is_some_and(|leading| bound.holds(leading, true)))
        };
        let start = first(0, count, |at| holds(at, true));
        Some(start..first(start, count, |at| !holds(at, false)))
    }

    /// Whether a lower bound of the range is exactly this version, and the version is in the range.
    pub fn begins_at(&self, version: &Version) -> bool {
        let Some(leading) = version.leading() else { return false };
        self.alternatives.iter().any(|alternative| {
            alternative.holds(leading, true)
                && alternative.0.iter().any(|comparator| comparator.begins_at(leading))
        })
    }
}

/// The first place from `start` up to `end` where a condition holds that then holds for all later ones; `end`
/// if it never holds.
fn first(start: usize, end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (start, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

/// Comparators that must all hold. Without comparators, it accepts every version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Alternative(pub(super) SmallVec<[Comparator; 2]>);

/// One bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Comparator {
    pub(super) side: Side,
    pub(super) version: semver::Version,
    /// Whether the text leaves numbers out. Then `version` is the very first prerelease, as in `>=1.2.0-0`
    /// for `>=1.2`. Nobody named that prerelease, but it counts once prereleases are allowed.
    pub(super) is_completed: bool,
}

/// The side of its version on which a comparator holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Side {
    pub(super) fn is_lower(self) -> bool {
        matches!(self, Self::Above | Self::AtLeast)
    }
}

impl Alternative {
    /// Whether a lower bound is above an upper one.
    fn is_empty(&self) -> bool {
        let bounds =
            |is_lower: bool| self.0.iter().filter(move |bound| bound.side.is_lower() == is_lower);
        bounds(true).any(|lower| {
            bounds(false).any(|upper| match lower.version.cmp_precedence(&upper.version) {
                Ordering::Less => false,
                Ordering::Equal => (lower.side, upper.side) != (Side::AtLeast, Side::AtMost),
                Ordering::Greater => true,
            })
        })
    }

    fn holds(&self, version: &semver::Version, prereleases: bool) -> bool {
        self.0.iter().all(|comparator| comparator.holds(version, prereleases))
            && (prereleases
                || version.pre.is_empty()
                || self.0.iter().any(|comparator| comparator.names_prerelease_of(version)))
    }
}

impl Comparator {
    fn holds(&self, version: &semver::Version, prereleases: bool) -> bool {
        let order = version.cmp_precedence(&self.version);
        match self.side {
            Side::Above => order.is_gt(),
            Side::AtLeast if self.is_completed && !prereleases => {
                order.is_ge() && (version.pre.is_empty() || !self.is_of_release(version))
            }
            Side::AtLeast => order.is_ge(),
            Side::Below => order.is_lt(),
            Side::AtMost => order.is_le(),
        }
    }

    fn names_prerelease_of(&self, version: &semver::Version) -> bool {
        !self.is_completed && !self.version.pre.is_empty() && self.is_of_release(version)
    }

    fn begins_at(&self, version: &semver::Version) -> bool {
        let is_same_pre = if self.is_completed {
            version.pre.is_empty()
        } else {
            version.pre == self.version.pre
        };
        self.side == Side::AtLeast && self.is_of_release(version) && is_same_pre
    }

    fn is_of_release(&self, version: &semver::Version) -> bool {
        self.version.major == version.major
            && self.version.minor == version.minor
            && self.version.patch == version.patch
    }
}
