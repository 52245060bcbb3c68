//! How many packages a run requests at most. A registry that invents packages, each of which needs others,
//! could otherwise keep mu asking for ever.
//!
//! The path in the message comes from earlier answers, without new requests.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::index::error::PackageError;
use crate::index::package::Package;
use crate::index::shared::Shared;
use crate::reference::PackageId;
use mu_provider::threads::lock;

/// How many packages a run requests at most, by default.
pub const MOST_PACKAGES: usize = 100_000;

/// The most packages of a path that are named.
const NAMED: usize = 4;

/// The most versions that are searched for the path.
const LOOKED_INTO: u32 = 1_000_000;

impl Shared {
    /// The error of every package above the limit.
    pub(super) fn too_many(&self, id: &PackageId) -> Arc<PackageError> {
        let error = self.first_too_many.get_or_init(|| {
            let most = self.run.options.most;
            Arc::new(PackageError::TooMany { id: id.clone(), most, way: self.way_to(id) })
        });
        Arc::clone(error)
    }

    /// The path of requirers of a package, in words.
    fn way_to(&self, id: &PackageId) -> String {
        let packages: Vec<Arc<Package>> = lock(&self.packages)
            .values()
            .filter_map(|slot| slot.get()?.as_ref().ok().cloned())
            .collect();
        // For each required package, as far as known, the requirer that was requested first.
        let mut askers: FxHashMap<PackageId, &Arc<Package>> = FxHashMap::default();
        let mut left = LOOKED_INTO;
        for package in &packages {
            for id in package.known_requirements(self, &mut left) {
                let first = askers.entry(id).or_insert(package);
                if package.order < first.order {
                    *first = package;
                }
            }
        }
        let mut way = String::new();
        let (mut id, mut before) = (id, usize::MAX);
        for named in 0.. {
            // A package that was requested later is not the reason for this one.
            let Some(asker) = askers.get(id).filter(|asker| asker.order < before) else { break };
            if named == NAMED {
                way.push_str(", and so on");
                break;
            }
            (id, before) = (asker.id(), asker.order);
            way.push_str(&format!(", which `{id}` requires"));
        }
        way
    }
}
