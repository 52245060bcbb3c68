//! The providers of a capability that a registry lists, cached on disk and in memory like the releases of a
//! package.

use std::sync::Arc;

use mu_provider::{ErrorKind, Lead};

use crate::index::cache::{Learned, Record};
use crate::index::error::PackageError;
use crate::index::routes::Route;
use crate::index::shared::SharedIndex;
use crate::index::wire;
use crate::manifest::Capability;
use crate::reference::PackageId;
use mu_provider::threads::lock;

/// A registry, the start of its packages' ids, and a capability.
pub(super) type Question = (String, Lead, String, String);

impl SharedIndex {
    /// The packages that the registry of `near` lists as providers of a capability, in its order.
    pub(super) fn providers(
        &self,
        capability: &str,
        near: &PackageId,
    ) -> Result<Arc<[PackageId]>, PackageError> {
        // A text that is not a capability is not the name of a file either.
        if Capability::parse(capability).is_err() {
            return Ok(Arc::from([]));
        }
        let route = self.run.routes.find(near, Some(&self.caches), self.run.progress())?;
        let Some(prefix) = near.as_str().strip_suffix(route.location.path.as_str()) else {
            return Ok(Arc::from([]));
        };
        let provider = route.provider.name().to_owned();
        let root = route.location.root.clone();
        let question = (provider, root, prefix.to_owned(), capability.to_owned());
        if let Some(known) = lock(&self.providers).get(&question) {
            return Ok(Arc::clone(known));
        }
        let record = self.list_providers(&route, capability)?;
        let listing = record.listing.iter();
        let names = listing.flat_map(|listing| {
            let lines = listing.heads().map(|head| wire::release(&listing.lines, head.line));
            lines.filter_map(|line| Some(line.ok()?.name))
        });
        let ids = names.filter_map(|name| PackageId::parse(&format!("{prefix}{name}")).ok());
        // If names stay whole, a registry may list what another one serves.
        let serving = |id: &PackageId| {
            self.run.routes.registry(id).map(|(registry, _)| registry.prefix.as_str())
        };
        let ids: Arc<[PackageId]> = ids.filter(|id| serving(id) == serving(near)).collect();
        // What a reference says about the registry of one holds for the others.
        ids.iter().for_each(|id| self.run.routes.hints.inherit(id, near));
        lock(&self.providers).insert(question, Arc::clone(&ids));
        Ok(ids)
    }

    fn list_providers(&self, route: &Route, capability: &str) -> Result<Record, PackageError> {
        let cache = self.caches.cache_of_registry(route.provider.name(), &route.location.root);
        let cache = cache.map_err(PackageError::Cache)?;
        // No package has such a name.
        let name = format!("capability:{capability}");
        let mut remembered = cache.find(&name);
        let is_fresh = |record: &mut Record| self.run.is_fresh(record.times());
        if let Some(record) = remembered.take_if(is_fresh) {
            return Ok(record);
        }
        let validator = remembered.as_ref().and_then(|record| record.validator.as_deref());
        let progress = self.run.progress();
        let answer = route.provider.providers(&route.location, capability, validator, progress);
        let listing = match answer {
            // A registry that cannot be reached lists nothing; other providers still count.
            Err(error) if error.kind() == ErrorKind::Offline => {
                let root = &route.location.root;
                return Ok(Learned::absent(self.run.options.now, Some(0), None, &[], root).record);
            }
            answer => answer?,
        };
        Ok(cache.put(&name, self.answer(route, listing, remembered.as_ref())?))
    }
}
