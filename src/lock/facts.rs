//! The facts of a package in a lock: how each type of them is written there, and read.
//!
//! Which facts there are is declared in `mu-select`, for all that deals with them.

use std::collections::BTreeMap;
use std::mem::take;

use crate::lock::entry::WirePackage;
use crate::lock::read::{Ids, read_conflict};
use crate::lock::write::Names;
use crate::reference::PackageId;
use crate::select::chosen_facts;
use crate::select::releases::ChosenFacts;

/// The type of a fact that a lock has as `Wire`.
trait LockedFact<Wire>: Sized {
    /// The fact that was written; the error is the text that is wrong.
    fn read(written: Wire, ids: &mut Ids<'_>) -> Result<Self, String>;

    /// The fact as it is written.
    fn written(&self, names: &Names<'_>) -> Wire;
}

impl LockedFact<Self> for Option<String> {
    fn read(written: Self, _ids: &mut Ids<'_>) -> Result<Self, String> {
        Ok(written)
    }

    fn written(&self, _names: &Names<'_>) -> Self {
        self.clone()
    }
}

/// Capabilities, and packages that may be folders of this machine.
impl LockedFact<Self> for Vec<String> {
    fn read(written: Self, ids: &mut Ids<'_>) -> Result<Self, String> {
        Ok(written.into_iter().map(|text| read_conflict(ids.folder, text)).collect())
    }

    fn written(&self, names: &Names<'_>) -> Self {
        self.iter().map(|text| names.name(text)).collect()
    }
}

impl LockedFact<Vec<String>> for Vec<PackageId> {
    fn read(written: Vec<String>, ids: &mut Ids<'_>) -> Result<Self, String> {
        written.into_iter().map(|text| ids.read(text)).collect()
    }

    fn written(&self, names: &Names<'_>) -> Vec<String> {
        self.iter().map(|id| names.name(id.as_str())).collect()
    }
}

/// `FACT RANGE`.
impl LockedFact<Vec<String>> for BTreeMap<String, String> {
    fn read(written: Vec<String>, _ids: &mut Ids<'_>) -> Result<Self, String> {
        let split = |text: String| match text.split_once(' ') {
            Some((fact, wanted)) => Ok((fact.to_owned(), wanted.to_owned())),
            None => Err(text),
        };
        written.into_iter().map(split).collect()
    }

    fn written(&self, _names: &Names<'_>) -> Vec<String> {
        self.iter().map(|(fact, wanted)| format!("{fact} {wanted}")).collect()
    }
}

macro_rules! facts_of_entries {
    ($($(#[$about:meta])* $key:literal $field:ident: $kind:ty => $written:ty,)*) => {
        impl WirePackage {
            /// Takes the facts out of an entry; the error is the text that is wrong.
            pub(super) fn take_facts(&mut self, ids: &mut Ids<'_>) -> Result<ChosenFacts, String> {
                Ok(ChosenFacts {
                    $($field: LockedFact::<$written>::read(take(&mut self.$field), ids)?,)*
                })
            }

            /// This entry, with facts.
            pub(super) fn with_facts(self, facts: &ChosenFacts, names: &Names<'_>) -> Self {
                Self { $($field: LockedFact::<$written>::written(&facts.$field, names),)* ..self }
            }
        }
    };
}

chosen_facts! { facts_of_entries! {} }
