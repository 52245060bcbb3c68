//! Sets of positions in a package's sorted candidates: the only thing that the solver knows about versions.
//!
//! A position has no meaning by itself; `candidates` turns requirements into sets, and sets into words. Sets
//! are kept canonical (sorted, no two intervals touch), so equal sets are equal values.

use std::cmp::Ordering;
use std::fmt;

use pubgrub::VersionSet;
use smallvec::{SmallVec, smallvec};

use crate::releases::Position;

/// A half-open interval of positions.
// A package with the versions 1.0.0, 1.1.0, 2.0.0, 2.1.0 and a requirement `>=1.1 <2 || ^2.1`:
//
//     position    0      1      2      3
//     version   1.0.0  1.1.0  2.0.0  2.1.0
//     set              [1, 2)        [3, 4)
//
type Interval = (Position, Position);

/// A set of positions, as sorted intervals with gaps between them.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct PositionSet {
    intervals: SmallVec<[Interval; 2]>,
}

impl PositionSet {
    /// The positions from `start` up to `end`, exclusive.
    pub(super) fn position_range(start: Position, end: Position) -> Self {
        let mut intervals = SmallVec::new();
        if start < end {
            intervals.push((start, end));
        }
        Self { intervals }
    }

    /// Whether it is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// The number of positions.
    pub(super) fn len(&self) -> usize {
        self.intervals.iter().map(|(start, end)| (end - start) as usize).sum()
    }

    /// The lowest position.
    pub(super) fn lowest_position(&self) -> Option<Position> {
        self.intervals.first().map(|interval| interval.0)
    }

    /// The highest position.
    pub(super) fn highest_position(&self) -> Option<Position> {
        self.intervals.last().map(|interval| interval.1 - 1)
    }

    /// The highest position below `limit`.
    pub(super) fn last_below(&self, limit: Position) -> Option<Position> {
        // The last interval that begins below the limit; it may go on behind it.
        let interval = self.intervals.iter().rev().find(|interval| interval.0 < limit)?;
        Some(interval.1.min(limit) - 1)
    }

    /// Whether it holds `position`.
    pub(super) fn holds(&self, position: Position) -> bool {
        self.intervals
            // "Less" means that the whole interval is before the position, so the one that holds it is "equal".
            .binary_search_by(|&(start, end)| {
                if end <= position {
                    Ordering::Less
                } else if start > position {
                    Ordering::Greater
                } else {
                    Ordering::Equal
                }
            })
            .is_ok()
    }

    /// The positions, lowest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Position> + '_ {
        self.intervals.iter().flat_map(|&(start, end)| start..end)
    }

    /// The positions that are in this set and not in `other`.
    #[must_use]
    pub(super) fn without(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }

    /// Puts `interval` at the end, joined to the last one if they touch.
    fn push(&mut self, interval: Interval) {
        debug_assert!(self.intervals.last().is_none_or(|last| last.0 <= interval.0), "ascending");
        match self.intervals.last_mut() {
            // `interval` must not begin before the last one does. Then touching it is the only way to overlap, and sets
            // stay canonical.
            Some(last) if last.1 >= interval.0 => last.1 = last.1.max(interval.1),
            _ => self.intervals.push(interval),
        }
    }
}

/// Collects positions that come in ascending order.
impl FromIterator<Position> for PositionSet {
    fn from_iter<I: IntoIterator<Item = Position>>(positions: I) -> Self {
        let mut set = Self::default();
        for position in positions {
            set.push((position, position + 1));
        }
        set
    }
}

/// Collects all that is in any of some sets.
impl<'s> FromIterator<&'s Self> for PositionSet {
    fn from_iter<I: IntoIterator<Item = &'s Self>>(sets: I) -> Self {
        sets.into_iter().fold(Self::default(), |all, one| all.union(one))
    }
}

impl VersionSet for PositionSet {
    type V = Position;

    fn empty() -> Self {
        Self::default()
    }

    // Includes positions behind the last candidate. There may be one later: a revision that is named, or another
    // provider.
    fn full() -> Self {
        Self::position_range(0, Position::MAX)
    }

    fn singleton(position: Position) -> Self {
        Self { intervals: smallvec![(position, position + 1)] }
    }

    fn complement(&self) -> Self {
        let mut complement = Self::default();
        // `start` is the end of the interval before: what is between the two is the gap.
        let mut start = 0;
        for &(from, to) in &self.intervals {
            if start < from {
                complement.intervals.push((start, from));
            }
            start = to;
        }
        if start < Position::MAX {
            complement.intervals.push((start, Position::MAX));
        }
        complement
    }

    fn intersection(&self, other: &Self) -> Self {
        let mut common = Self::default();
        // Both lists are walked once, side by side. After each step the interval that ends first is done: nothing that
        // comes later in the other list can overlap it.
        let (mut left, mut right) = (self.intervals.iter(), other.intervals.iter());
        let (mut mine, mut theirs) = (left.next(), right.next());
        while let (Some(one), Some(two)) = (mine, theirs) {
            let (start, end) = (one.0.max(two.0), one.1.min(two.1));
            if start < end {
                common.intervals.push((start, end));
            }
            if one.1 <= two.1 {
                mine = left.next();
            } else {
                theirs = right.next();
            }
        }
        common
    }

    fn contains(&self, position: &Position) -> bool {
        self.holds(*position)
    }

    fn union(&self, other: &Self) -> Self {
        let mut union = Self::default();
        let (mut left, mut right) =
            (self.intervals.iter().peekable(), other.intervals.iter().peekable());
        loop {
            // Of both lists the interval that begins first comes next, as `push` needs it.
            let next = match (left.peek(), right.peek()) {
                (Some(one), Some(two)) if one.0 <= two.0 => left.next(),
                (Some(_), None) => left.next(),
                (_, Some(_)) => right.next(),
                (None, None) => return union,
            };
            union.push(*next.expect("was peeked at"));
        }
    }

    fn is_disjoint(&self, other: &Self) -> bool {
        let (mut left, mut right) = (self.intervals.iter(), other.intervals.iter());
        let (mut mine, mut theirs) = (left.next(), right.next());
        while let (Some(one), Some(two)) = (mine, theirs) {
            if one.1 <= two.0 {
                mine = left.next();
            } else if two.1 <= one.0 {
                theirs = right.next();
            } else {
                return false;
            }
        }
        true
    }

    fn subset_of(&self, other: &Self) -> bool {
        let mut theirs = other.intervals.iter();
        let mut candidate = theirs.next();
        self.intervals.iter().all(|mine| {
            // `theirs` goes on from where it was for the interval before, because both are sorted. An interval of this
            // set must be in a single one of the other: two would have a gap between them.
            while candidate.is_some_and(|interval| interval.1 <= mine.0) {
                candidate = theirs.next();
            }
            candidate.is_some_and(|interval| interval.0 <= mine.0 && mine.1 <= interval.1)
        })
    }
}

impl fmt::Display for PositionSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (start, end)) in self.intervals.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{start}..{end}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for PositionSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const LENGTH: Position = 40;

    fn positions() -> impl Strategy<Value = BTreeSet<Position>> {
        prop_oneof![
            proptest::collection::btree_set(0..LENGTH, 0..12),
            (0..LENGTH, 0..LENGTH).prop_map(|(start, end)| (start..end).collect()),
        ]
    }

    fn set(positions: &BTreeSet<Position>) -> PositionSet {
        positions.iter().copied().collect()
    }

    fn within(set: &PositionSet) -> BTreeSet<Position> {
        set.intersection(&PositionSet::position_range(0, LENGTH)).iter().collect()
    }

    proptest! {
        #[test]
        fn behaves_as_a_set(one in positions(), two in positions(), probe in 0..LENGTH) {
            let (left, right) = (set(&one), set(&two));
            prop_assert_eq!(within(&left), one.clone());
            prop_assert_eq!(left.len(), one.len());
            prop_assert_eq!(left.lowest_position(), one.first().copied());
            prop_assert_eq!(left.highest_position(), one.last().copied());
            prop_assert_eq!(left.last_below(probe), one.range(..probe).next_back().copied());
            prop_assert_eq!(left.holds(probe), one.contains(&probe));
            prop_assert_eq!(left.union(&right), set(&(&one | &two)));
            prop_assert_eq!(left.intersection(&right), set(&(&one & &two)));
            prop_assert_eq!(left.without(&right), set(&(&one - &two)));
            prop_assert_eq!(left.is_disjoint(&right), one.is_disjoint(&two));
            prop_assert_eq!(left.subset_of(&right), one.is_subset(&two));
            prop_assert_eq!(left == right, one == two);
        }

        #[test]
        fn a_complement_holds_all_the_rest(one in positions()) {
            let left = set(&one);
            let rest = (0..LENGTH).filter(|position| !one.contains(position)).collect();
            prop_assert_eq!(within(&left.complement()), rest);
            prop_assert_eq!(left.complement().complement(), left.clone());
            prop_assert_eq!(left.union(&left.complement()), PositionSet::full());
        }
    }

    #[test]
    fn the_empty_and_the_full_set_are_each_others_complement() {
        assert_eq!(PositionSet::empty().complement(), PositionSet::full());
        assert_eq!(PositionSet::full().complement(), PositionSet::empty());
        assert!(PositionSet::position_range(3, 3).is_empty());
    }
}
