//! Who may name which place: what keeps content of the network away from this machine.
//!
//! A reference of the workspace or the user leads anywhere, and so do the settings. A dependency of a package that was fetched leads no
//! nearer to this machine than the place of that package. What it names is checked here before it becomes the place of a package,
//! and a place near to this machine that nobody has named so is not asked.

use mu_provider::threads::lock;
use mu_provider::{Lead, PlaceKind, Reach, SafeUrl};

use super::{Route, RouteError, Routes, is_misspelt};
use crate::reference::{PackageId, Protocol, Reference};

impl Route {
    /// How near to this machine something may be that a package of this place depends on.
    fn reach(&self) -> Reach {
        let facts = self.provider.facts();
        match Reach::of(&self.location.root) {
            // A registry in a folder has what others have published.
            Reach::Files
                if facts.kind != PlaceKind::Folder && facts.kind != PlaceKind::Repository =>
            {
                Reach::Machine
            }
            reach => reach,
        }
    }
}

/// Whether a reference leads to files of this machine, whatever host it names.
fn leads_to_files(reference: &Reference) -> bool {
    reference.protocol().is_some_and(Protocol::is_file) || reference.local().is_some()
}

/// Why a package at `from` may not depend on what `reference` names; `None` if it may.
pub(crate) fn objection(
    from: &Route,
    id: &PackageId,
    reference: &Reference,
) -> Option<&'static str> {
    let reach = match leads_to_files(reference) {
        true => Reach::Files,
        false => Reach::of_host(id.base().host_port()),
    };
    reach.objection(from.reach())
}

impl Routes {
    /// Lets a base be asked although it is near to this machine, because somebody named it who may.
    pub(in crate::index) fn let_in_base(&self, base: &str) {
        let mut near = lock(&self.near);
        if !near.contains(base) {
            near.insert(base.into());
        }
    }

    /// How near to this machine a reference leads, if no setting has its place.
    fn reach_of(&self, id: &PackageId, reference: &Reference) -> Reach {
        if leads_to_files(reference) {
            return Reach::Files;
        }
        let (mut reaches, base) = (lock(&self.reaches), id.base_str());
        if let Some(known) = reaches.get(base) {
            return *known;
        }
        let reach = Reach::of_host(id.base().host_port());
        reaches.insert(base.into(), reach);
        reach
    }

    /// Lets `id` be asked where `reference` says, which is a dependency of a package at `from`.
    ///
    /// # Errors
    ///
    /// When it is nearer to this machine than `from` is, and the settings do not lead it there: why it is refused.
    pub(in crate::index) fn let_in_dependency(
        &self,
        from: &Route,
        id: &PackageId,
        reference: &Reference,
    ) -> Result<(), &'static str> {
        if self.reach_of(id, reference) == Reach::Network {
            return Ok(());
        }
        let protocol = reference.protocol();
        // The settings have its place, whatever the reference says.
        let is_placed = match protocol {
            Some(protocol) if is_misspelt(protocol) => false,
            Some(Protocol::Https | Protocol::Http) | None => {
                self.registry(id).is_some_and(|(registry, _)| registry.url.is_some())
            }
            Some(protocol) => self.has_registry_place(id, protocol),
        };
        // Without a base it is where the package itself is.
        let is_beside = reference.base().is_none();
        if !is_placed
            && !is_beside
            && let Some(why) = objection(from, id, reference)
        {
            return Err(why);
        }
        self.let_in_base(id.base_str());
        Ok(())
    }

    /// The place that an id alone names.
    ///
    /// # Errors
    ///
    /// When it is near to this machine, and nobody has named it who may.
    pub(super) fn lead(&self, id: &PackageId, url: SafeUrl) -> Result<Lead, RouteError> {
        if lock(&self.near).contains(id.base_str()) {
            return Ok(Lead::of_workspace(url));
        }
        Ok(Lead::of_content(url)?)
    }
}
