//! What versions conflict with, by number. What that means for the graph is in [`super::apart`].

use rustc_hash::FxHashMap;

use crate::select::node::Opponent;

/// Everything that something conflicts with: package ids, and capabilities.
#[derive(Debug, Default)]
pub(super) struct Opponents {
    names: Vec<String>,
    by_name: FxHashMap<String, Opponent>,
}

impl Opponents {
    /// The number of a package or a capability that something conflicts with.
    pub(super) fn find(&self, name: &str) -> Option<Opponent> {
        self.by_name.get(name).copied()
    }

    /// Adds a package or a capability.
    pub(super) fn add(&mut self, name: &str) -> Opponent {
        let opponent = Opponent(self.names.len());
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), opponent);
        opponent
    }

    /// The package or capability of a number.
    pub(super) fn name(&self, Opponent(index): Opponent) -> &str {
        &self.names[index]
    }

    /// Whether nothing conflicts with anything.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
