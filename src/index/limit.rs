//! How many packages a run asks for at most: a registry that makes packages up, each of which needs others, would be asked
//! for ever.
//!
//! What is told of the way there comes from what has answered; nobody is asked for it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::index::error::PackageError;
use crate::index::package::Package;
use crate::index::shared::Shared;
use crate::reference::PackageId;
use mu_provider::threads::lock;

/// How many packages a run asks for at most, unless it is told otherwise.
pub const MOST_PACKAGES: usize = 100_000;

/// So many of those that lead to a package are named.
const NAMED: usize = 4;

/// In so many versions it is looked who leads there.
const LOOKED_INTO: u32 = 1_000_000;

impl Shared {
    /// The error of all packages from the first that is one too many.
    pub(super) fn too_many(&self, id: &PackageId) -> Arc<PackageError> {
        let error = self.first_too_many.get_or_init(|| {
            let most = self.run.options.most;
            Arc::new(PackageError::TooMany { id: id.clone(), most, way: self.way_to(id) })
        });
        Arc::clone(error)
    }

    /// Who requires a package, who requires that one, and so on, in words.
    fn way_to(&self, id: &PackageId) -> String {
        let packages: Vec<Arc<Package>> = lock(&self.packages)
            .values()
            .filter_map(|slot| slot.get()?.as_ref().ok().cloned())
            .collect();
        let askers = self.first_askers(&packages);
        let mut way = String::new();
        let (mut id, mut before) = (id, usize::MAX);
        for named in 0.. {
            // Who was asked for later is not why this one was.
            let Some(asker) = askers.get(id).filter(|asker| asker.order() < before) else { break };
            if named == NAMED {
                way.push_str(", and so on");
                break;
            }
            (id, before) = (asker.id(), asker.order());
            way.push_str(&format!(", which `{id}` requires"));
        }
        way
    }

    /// Of each package that others require, as far as that is known, the one of them that was asked for first.
    fn first_askers<'p>(
        &self,
        packages: &'p [Arc<Package>],
    ) -> FxHashMap<PackageId, &'p Arc<Package>> {
        let mut askers: FxHashMap<PackageId, &Arc<Package>> = FxHashMap::default();
        let mut left = LOOKED_INTO;
        for package in packages {
            for id in package.known_requirements(self, &mut left) {
                let first = askers.entry(id).or_insert(package);
                if package.order() < first.order() {
                    *first = package;
                }
            }
        }
        askers
    }
}
