//! Looks at versions that the search had no reason to look at.
//!
//! A package may help though nothing that was looked at leads to it: an old version of another one asks for it, and it
//! provides or replaces what is required. A search that fails looks at all of them before it says so; others never do.

use rustc_hash::FxHashSet;

use super::World;
use crate::index::Unavailable;
use crate::index::releases::Position;
use crate::select::node::Node;

/// How many versions are looked at in vain at most.
const MOST: usize = 20_000;

impl World<'_> {
    /// Looks at every version of every package that can be reached, once; says whether that may change an answer. Does
    /// nothing where no capability is required, and nothing is or says that it should be replaced of what is among
    /// `nodes`, to which a refutation leads.
    pub(in crate::select) fn explore(
        &mut self,
        nodes: &FxHashSet<Node>,
    ) -> Result<bool, Unavailable> {
        if self.is_explored {
            return Ok(false);
        }
        let is_of_use = self.requires_capabilities()
            || nodes.iter().any(|&node| self.may_have_replacements(node));
        if !is_of_use {
            return Ok(false);
        }
        self.is_explored = true;
        self.notes_askers = true;
        self.edges.clear();
        let mut place = 0;
        while place < self.packages.len() && self.versions_read() < MOST {
            // Manifests of a repository would have to be fetched one by one.
            let package = &self.packages[place];
            let known =
                if package.releases().is_repository() { 0 } else { package.releases().len() };
            let versions: Vec<(Position, u64)> = package
                .allowed()
                .iter()
                .take_while(|position| *position < known)
                .map(|position| (position, package.major(position)))
                .collect();
            for (position, major) in versions {
                let node = self.line_node(place, major);
                self.edges(node, position)?;
            }
            place += 1;
        }
        Ok(true)
    }
}
