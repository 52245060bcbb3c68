//! Short names of chart repositories, as a user gave them to Helm.

use std::collections::BTreeMap;

use crate::node::Node;
use crate::reader;
use crate::shape::Shape::{self, List, Map, Text};

/// What mu reads of `repositories.yaml`.
static SHAPE: Shape = Map(&[("repositories", List(&Map(&[("name", Text), ("url", Text)])))]);

/// Repositories by the short names that the user gave them: `helm repo add NAME URL`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases(BTreeMap<String, String>);

impl Aliases {
    /// Reads Helm's `repositories.yaml`. What cannot be read names nothing.
    pub fn read(text: &str) -> Self {
        let Ok(root) = reader::read(text, &SHAPE) else { return Self::default() };
        let pair =
            |repository: &Node<'_>| Some((repository.said("name")?, repository.said("url")?));
        Self(root.list("repositories").unwrap_or_default().iter().filter_map(pair).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}
