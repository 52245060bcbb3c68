//! Reads the text of a range into comparators.
//!
//! The grammar is node-semver's, with a comma as another "and". Unlike npm's loose mode, it ignores nothing
//! that it does not understand, because it would have to guess what was meant.

use std::sync::Arc;

use semver::{Prerelease, Version};
use smallvec::SmallVec;

use super::error::Fault;
use super::range::{Alternative, Comparator, Side};
use super::version_text::Cursor;

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

pub(super) fn parse_alternatives(text: &str) -> Result<Arc<[Alternative]>, Fault> {
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
        let version = Version { pre: self.pre.clone(), ..Version::new(major, minor, patch) };
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
    let version = Version { pre, ..Version::new(major, minor, patch) };
    Comparator { side: Side::AtLeast, version, is_completed: true }
}
