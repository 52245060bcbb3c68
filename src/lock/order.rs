//! The order in which the packages of a lock are installed: dependencies come first.

use std::collections::BTreeSet;

use super::Lockfile;

impl Lockfile {
    /// The places of the packages in [`Lockfile::packages`], each after its dependencies, and otherwise by
    /// id. Packages that depend on each other in a circle have an arbitrary order, which is always the same.
    pub fn install_order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.packages.len());
        let mut seen = BTreeSet::new();
        // The packages to look at. A package is ready after the dependencies above it on this stack.
        let mut open = Vec::new();
        for first in 0..self.packages.len() {
            open.push((first, false));
            while let Some((place, is_ready)) = open.pop() {
                if is_ready {
                    order.push(place);
                    continue;
                }
                let Some(package) = self.packages.get(place).filter(|_| seen.insert(place)) else {
                    continue;
                };
                open.push((place, true));
                for id in package.dependencies.iter().rev().map(|id| self.used_for(id)) {
                    let begin = self.packages.partition_point(|package| package.id < *id);
                    let end = begin + self.find(id).count();
                    let new = (begin..end).rev().filter(|at| !seen.contains(at));
                    open.extend(new.map(|at| (at, false)));
                }
            }
        }
        order
    }
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
