//! A search that was stopped before its end, as data and in words.

use std::fmt;

use mu_manifest::reference::{Base, PackageId};

/// More packages than this are not named.
pub(super) const NAMED: usize = 5;

/// What is known about a search that exceeded its steps: whether versions fit together is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// How many steps it was allowed.
    pub steps: usize,
    /// The packages that it came back to most often, those first.
    pub packages: Vec<PackageId>,
    /// How many others it came back to.
    pub others: usize,
    /// The default base, which names leave out where they can.
    pub base: Base,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.packages.iter().map(|id| id.short(&self.base).to_owned());
        let mut names: Vec<String> = names.collect();
        if self.others > 0 {
            names.push(format!("{} other packages", self.others));
        }
        if !names.is_empty() {
            let last = names.pop().unwrap_or_default();
            let and = if names.is_empty() { "" } else { " and " };
            writeln!(formatter, "most conflicts were about {}{and}{last}", names.join(", "))?;
        }
        formatter.write_str("whether any versions fit together is not known")
    }
}
