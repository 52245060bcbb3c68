//! The cost of a search.

/// The cost of a search. The same question costs the same on every machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packages whose releases were looked at.
    pub packages_read: usize,
    /// Versions whose requirements were looked at.
    pub versions_read: usize,
}
