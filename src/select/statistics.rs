//! What a search cost.

/// What a search cost. The same for the same question, on every machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packages whose releases were looked at.
    pub packages_read: usize,
    /// Versions whose requirements were looked at.
    pub versions_read: usize,
}
