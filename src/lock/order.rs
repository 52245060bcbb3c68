//! The order of packages that depend on each other: dependencies come first.

use std::collections::BTreeSet;

use super::Lockfile;

impl Lockfile {
    /// The places of the packages in [`Lockfile::packages`], each after its dependencies, and otherwise by
    /// id. Packages that depend on each other in a circle have an arbitrary order, which is always the same.
    pub fn install_order(&self) -> Vec<usize> {
        ordered_by_needs(0..self.packages.len(), |place| {
            let needs = self.packages.get(place).into_iter().flat_map(|one| &one.dependencies);
            let used = needs.map(|id| self.used_for(id));
            let places = used.flat_map(|id| {
                let begin = self.packages.partition_point(|package| package.id < *id);
                begin..begin + self.find(id).count()
            });
            places.collect()
        })
    }
}

/// All items, each after those that it needs. Items that need each other in a circle have an arbitrary order, which is always the
/// same.
pub fn ordered_by_needs<T: Copy + Ord>(
    all: impl Iterator<Item = T>,
    needs: impl Fn(T) -> Vec<T>,
) -> Vec<T> {
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    // The items to look at. An item is ready after those above it on this stack.
    let mut open = Vec::new();
    for first in all {
        open.push((first, false));
        while let Some((item, is_ready)) = open.pop() {
            if is_ready {
                order.push(item);
            } else if seen.insert(item) {
                open.push((item, true));
                open.extend(needs(item).into_iter().rev().map(|item| (item, false)));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use crate::lock::{LockedPackage, Lockfile, Source};
    use crate::reference::PackageId;

    fn order(packages: &[(&str, &[&str])]) -> Vec<String> {
        let id = |name: &str| PackageId::parse(&format!("hub.mu.com/{name}")).expect("is an id");
        let packages = packages.iter().map(|(name, needs)| LockedPackage {
            dependencies: needs.iter().map(|name| id(name)).collect(),
            ..LockedPackage::new(id(name), "1.0.0".to_owned(), Source::new("hub", "x"))
        });
        let lock = Lockfile { packages: packages.collect(), ..Lockfile::default() };
        let order = lock.install_order().into_iter();
        order.map(|at| lock.packages[at].id.name().leaf().to_owned()).collect()
    }

    #[test]
    fn what_is_needed_comes_first() {
        assert_eq!(
            order(&[("x/a", &["x/c"]), ("x/b", &[]), ("x/c", &["x/d"]), ("x/d", &[])]),
            ["d", "c", "a", "b"]
        );
        // Needed twice, and at different depths.
        assert_eq!(
            order(&[("x/a", &["x/b", "x/c"]), ("x/b", &["x/c"]), ("x/c", &[])]),
            ["c", "b", "a"]
        );
        assert_eq!(
            order(&[("x/a", &["x/b"]), ("x/b", &["x/a"]), ("x/c", &["x/c"])]),
            ["b", "a", "c"]
        );
        // If there are several majors, each comes before.
        assert_eq!(
            order(&[("x/a", &["x/b"]), ("x/b", &[]), ("x/b", &["x/c"]), ("x/c", &[])]),
            ["b", "c", "b", "a"]
        );
    }
}
