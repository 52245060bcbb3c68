//! Ranges of versions, as npm's node-semver reads them.
//!
//! A range is stored as comparators, so that a plain version is matched by comparing numbers, and its lower bounds are known. The
//! grammar of its text is node-semver's, with a comma as another "and". Unlike npm's loose mode, it ignores nothing that it does
//! not understand, because it would have to guess what was meant.
//!
//! `nodejs-semver`, with which the tests compare, was considered: it ignores what it does not understand (the second part of `^1
//! foo`), reads `>2 <1` as a choice between the two, and does not return its bounds.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use semver::Prerelease;
use smallvec::SmallVec;

use super::Version;
use super::error::{Fault, ReferenceError};
use super::version::Cursor;

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
        let alternatives = parse_alternatives(text)?;
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

const TERM: &str = "a version or a comparator, such as `1.x`, `^1.2` or `>=1.2`";
const VERSION: &str = "a version, such as `1.2`";
const NEXT: &str = "a space, `,`, `||` or the end";
const OPERATORS: [(&str, Operator); 9] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("~>", Operator::Tilde),
    ("==", Operator::Equal),
    (">", Operator::Above),
    ("<", Operator::Below),
    ("=", Operator::Equal),
    ("^", Operator::Caret),
    ("~", Operator::Tilde),
];

#[derive(Clone, Copy)]
enum Operator {
    Equal,
    Above,
    AtLeast,
    Below,
    AtMost,
    Caret,
    Tilde,
}

/// A lower and an upper bound.
type Bounds = (Option<Comparator>, Option<Comparator>);

/// A version whose numbers may be missing: left out, or written `x`.
struct Partial {
    major: Option<u64>,
    minor: Option<u64>,
    patch: Option<u64>,
    pre: Prerelease,
}

fn parse_alternatives(text: &str) -> Result<Arc<[Alternative]>, Fault> {
    let mut cursor = Cursor::new(text);
    let first = alternative(&mut cursor)?;
    if cursor.is_at_end() {
        // This is by far the most common case, so it allocates no list.
        return Ok(Arc::new([first]));
    }
    let mut alternatives = vec![first];
    while !cursor.is_at_end() {
        if !cursor.eat("||") {
            return Err(cursor.fault_at_cursor(NEXT));
        }
        alternatives.push(alternative(&mut cursor)?);
    }
    Ok(alternatives.into())
}

/// Terms that must all hold, up to `||` or the end.
fn alternative(cursor: &mut Cursor<'_>) -> Result<Alternative, Fault> {
    let mut comparators = SmallVec::new();
    cursor.blanks();
    loop {
        let (lower, upper) = term(cursor)?;
        comparators.extend(lower);
        comparators.extend(upper);
        let mut goes_on = cursor.blanks();
        if cursor.eat(",") {
            goes_on = true;
            cursor.blanks();
        } else if cursor.is_at_end() || cursor.rest().starts_with("||") {
            return Ok(Alternative(comparators));
        }
        if !goes_on {
            return Err(cursor.fault_at_cursor(NEXT));
        }
    }
}

fn term(cursor: &mut Cursor<'_>) -> Result<Bounds, Fault> {
    let operator =
        OPERATORS.iter().find_map(|(text, operator)| cursor.eat(text).then_some(*operator));
    if let Some(operator) = operator {
        cursor.blanks();
        return Ok(partial(cursor, VERSION)?.bounds(operator));
    }
    let version = partial(cursor, TERM)?;
    if eat_hyphen(cursor) {
        let last = partial(cursor, VERSION)?;
        return Ok((version.start(), last.end()));
    }
    Ok(version.bounds(Operator::Equal))
}

/// A hyphen with blanks on both sides.
fn eat_hyphen(cursor: &mut Cursor<'_>) -> bool {
    let rest = cursor.rest().trim_start_matches([' ', '\t']);
    let is_hyphen = rest.len() < cursor.rest().len()
        && rest.starts_with('-')
        && rest[1..].starts_with([' ', '\t']);
    if is_hyphen {
        cursor.blanks();
        cursor.eat("-");
        cursor.blanks();
    }
    is_hyphen
}

fn partial(cursor: &mut Cursor<'_>, expected: &'static str) -> Result<Partial, Fault> {
    cursor.eat("v");
    if !matches!(cursor.peek(), Some(b'0'..=b'9' | b'x' | b'X' | b'*')) {
        return Err(cursor.fault_at_cursor(expected));
    }
    let major = component(cursor)?;
    let minor = next_component(cursor)?;
    let patch = next_component(cursor)?;
    let mut partial = Partial { major, minor, patch, pre: Prerelease::EMPTY };
    if let (Some(_), Some(_), Some(_)) = (major, minor, patch) {
        partial.pre = cursor.prerelease()?;
        // Build metadata does not affect order, so a range ignores it.
        cursor.build()?;
    }
    Ok(partial)
}

fn next_component(cursor: &mut Cursor<'_>) -> Result<Option<u64>, Fault> {
    if cursor.eat(".") { component(cursor) } else { Ok(None) }
}

fn component(cursor: &mut Cursor<'_>) -> Result<Option<u64>, Fault> {
    if cursor.eat("x") || cursor.eat("X") || cursor.eat("*") {
        return Ok(None);
    }
    if matches!(cursor.peek(), Some(b'0'..=b'9')) {
        return cursor.number().map(Some);
    }
    Err(cursor.fault_at_cursor("a number, `x` or `*`"))
}

impl Partial {
    fn bounds(&self, operator: Operator) -> Bounds {
        match operator {
            Operator::Equal => (self.start(), self.end()),
            Operator::AtLeast => (self.start(), None),
            Operator::AtMost => (None, self.end()),
            // No version is above or below every version.
            Operator::Above | Operator::Below if self.major.is_none() => {
                (None, Some(before(0, 0, 0)))
            }
            Operator::Above => (self.after(), None),
            Operator::Below => {
                (None, self.start().map(|start| Comparator { side: Side::Below, ..start }))
            }
            Operator::Caret => (self.start(), self.before_next_breaking()),
            Operator::Tilde => (self.start(), self.before_next_minor()),
        }
    }

    /// The lower bound of the versions that begin so.
    fn start(&self) -> Option<Comparator> {
        let (major, minor) = (self.major?, self.minor.unwrap_or(0));
        let (Some(_), Some(patch)) = (self.minor, self.patch) else {
            return Some(from(major, minor, 0));
        };
        let version =
            semver::Version { pre: self.pre.clone(), ..semver::Version::new(major, minor, patch) };
        Some(Comparator { side: Side::AtLeast, version, is_completed: false })
    }

    /// The upper bound of the versions that begin so.
    fn end(&self) -> Option<Comparator> {
        let start = self.start()?;
        if start.is_completed {
            return self.before_next_minor();
        }
        Some(Comparator { side: Side::AtMost, ..start })
    }

    /// The lower bound of the versions after those that start with these numbers.
    fn after(&self) -> Option<Comparator> {
        let end = self.end()?;
        let side = if end.is_completed { Side::AtLeast } else { Side::Above };
        Some(Comparator { side, ..end })
    }

    fn before_next_breaking(&self) -> Option<Comparator> {
        Some(match (self.major?, self.minor, self.patch) {
            (0, Some(0), Some(patch)) => before(0, 0, patch + 1),
            (0, Some(minor), _) => before(0, minor + 1, 0),
            (major, _, _) => before(major + 1, 0, 0),
        })
    }

    fn before_next_minor(&self) -> Option<Comparator> {
        Some(match (self.major?, self.minor) {
            (major, Some(minor)) => before(major, minor + 1, 0),
            (major, None) => before(major + 1, 0, 0),
        })
    }
}

/// Everything before the very first prerelease of a version.
fn before(major: u64, minor: u64, patch: u64) -> Comparator {
    Comparator { side: Side::Below, ..from(major, minor, patch) }
}

/// Everything from the very first prerelease of a version on.
fn from(major: u64, minor: u64, patch: u64) -> Comparator {
    let pre = Prerelease::new("0").expect("0 is the lowest prerelease there is");
    let version = semver::Version { pre, ..semver::Version::new(major, minor, patch) };
    Comparator { side: Side::AtLeast, version, is_completed: true }
}
