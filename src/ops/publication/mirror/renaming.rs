//! Packages that are copied under other names: the renamed namespaces, and their new names.

use std::collections::BTreeSet;

use crate::manifest::rename::Rename;
use crate::ops::{Code, CommandError};
use crate::reference::{Base, Name, PackageId, Reference};

/// The namespaces of references, and their replacement.
#[derive(Debug)]
pub(super) struct Renaming {
    /// The base of each, and its namespace if it has one; the longest namespace comes first.
    from: Vec<(Base, Option<Name>)>,
    to: Name,
}

impl Renaming {
    /// Renames the namespaces of `roots` to the one in `text`.
    ///
    /// # Errors
    ///
    /// When the text is not a namespace.
    pub(super) fn new(roots: &BTreeSet<PackageId>, text: &str) -> Result<Self, CommandError> {
        let reference = Reference::parse(text.strip_suffix('/').unwrap_or(text))?;
        let is_name = reference.base().is_none()
            && reference.local().is_none()
            && reference.version().is_none()
            && reference.path() == reference.name().as_str();
        if !is_name {
            let message = format!("`--as {text}` is not a namespace");
            return Err(CommandError::new(Code::Usage, message)
                .hint("write only a namespace, such as `--as internal`"));
        }
        let from = roots.iter().map(|root| (root.base(), root.name().namespace()));
        let mut from: Vec<_> = from.collect();
        let length = |name: &Option<Name>| name.as_ref().map_or(0, |name| name.as_str().len());
        from.sort_by_key(|(_, namespace)| std::cmp::Reverse(length(namespace)));
        Ok(Self { from, to: reference.name().clone() })
    }

    /// The name of a package in the mirror, and the rename behind it; `None` if it keeps its name.
    pub(super) fn of(&self, id: &PackageId) -> Option<(Name, Rename)> {
        let name = id.name();
        self.from.iter().filter(|(base, _)| *base == id.base()).find_map(|(_, from)| {
            let rest = match from {
                Some(from) => name.strip_prefix(from)?,
                None => Some(name.clone()).filter(|name| name.namespace().is_none())?,
            };
            let renamed = Rename { from: from.clone(), to: Some(self.to.clone()) };
            Some((self.to.join(&rest), renamed))
        })
    }
}
