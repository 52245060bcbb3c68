//! Capabilities (`compute.mu.com/v1/VM`) and constraints over facts of the runtime (`kubernetes: >=1.25`).
//!
//! This describes what a package provides and needs, and where it can run. Selection decides which package
//! provides a capability.

use std::fmt;
use std::sync::Arc;

use super::source::TextProblem;
use crate::reference::{Name, Range, Version};

/// Something that a package provides or requires: `GROUP/VERSION/KIND`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability(Arc<str>);

impl Capability {
    /// Reads a capability.
    ///
    /// # Errors
    ///
    /// When the text does not have three segments, or one of them cannot be a file name.
    pub fn parse(text: &str) -> Result<Self, TextProblem> {
        let expected = "such as `compute.mu.com/v1/VM`";
        let name = Name::parse(text).map_err(|error| TextProblem::from(error).help(expected))?;
        if name.segments().count() != 3 || name.as_str() != text {
            return Err(TextProblem::new(format!(
                "`{text}` is not a valid capability: expected GROUP/VERSION/KIND"
            ))
            .help(expected));
        }
        Ok(Self(text.into()))
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Group, version and kind.
    pub fn parts(&self) -> (&str, &str, &str) {
        let mut parts = self.0.splitn(3, '/');
        let mut part = || parts.next().unwrap_or_default();
        (part(), part(), part())
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// What a constraint requires of a fact of the runtime: a range, or an exact word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Constraint {
    /// A range of versions.
    Range(Range),
    /// Exactly this word.
    Word(String),
}

impl Constraint {
    /// Reads a constraint: a range if the text is one, and otherwise a word.
    ///
    /// # Errors
    ///
    /// When the text begins like a range and is not a valid one.
    pub fn parse(text: &str) -> Result<Self, TextProblem> {
        match Range::parse(text) {
            Ok(range) => Ok(Self::Range(range)),
            Err(error) if text.is_empty() || text.starts_with(['<', '>', '=', '^', '~', '*']) => {
                Err(TextProblem::from(error))
            }
            Err(_) => Ok(Self::Word(text.to_owned())),
        }
    }

    /// Whether a runtime with this fact satisfies the constraint. Missing parts of a version are 0 here, and
    /// a prerelease or vendor suffix (`1.29.2-eks`) does not keep a version out of a range.
    pub fn accepts(&self, fact: &str) -> bool {
        match self {
            Self::Word(word) => word == fact,
            Self::Range(range) => {
                Version::parse_lenient(fact).is_ok_and(|version| range.matches(&version, true))
            }
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(range) => fmt::Display::fmt(range, formatter),
            Self::Word(word) => formatter.pad(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_three_parts() {
        let capability = Capability::parse("compute.mu.com/v1/VM").expect("is one");
        assert_eq!(capability.parts(), ("compute.mu.com", "v1", "VM"));
        for wrong in ["compute/v1", "a/b/c/d", "", "a//c", "../a/b", "a/b/c.git"] {
            assert!(Capability::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn constraints_accept_facts() {
        let check = |constraint: &str, fact: &str, expected: bool| {
            let parsed = Constraint::parse(constraint).expect("is a constraint");
            assert_eq!(parsed.accepts(fact), expected, "{constraint} {fact}");
            assert_eq!(parsed.to_string(), constraint);
        };
        check(">=1.25", "1.29.2", true);
        check(">=1.25", "1.25", true);
        check(">=1.25", "v1.29.2-eks-1", true);
        check(">=1.25 <1.29", "1.29.2", false);
        check("1.29", "1.29.2", true);
        check("linux", "linux", true);
        check("linux", "windows", false);
        check(">=1.25", "linux", false);
        assert!(Constraint::parse(">=linux").is_err());
    }
}
