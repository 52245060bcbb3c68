//! Graphs for which it is hard to choose versions, and how many versions plain pubgrub reads of them.

use std::cell::RefCell;
use std::collections::HashSet;

use pubgrub::{
    Dependencies, DependencyProvider, OfflineDependencyProvider, PackageResolutionStatistics,
    Ranges, resolve,
};

use crate::graph::{Dependency, Package, Version};
use crate::random::Random;

/// A graph, and the requirements of a workspace on it.
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) packages: Vec<Package>,
    pub(crate) roots: Vec<Dependency>,
}

/// All sets.
pub(crate) fn sets() -> Vec<Set> {
    vec![capped(60), capped(100), capped(150), ring()]
}

/// Many roots accept newer versions, while `wanted` packages that all of them need are capped at old ones.
fn capped(wanted: usize) -> Set {
    const VERSIONS: u32 = 40;
    let mut random = Random::new(10 + wanted as u64);
    let mut packages: Vec<Package> = (0..wanted)
        .map(|index| package(format!("wanted/name-{index:04}"), VERSIONS, |_| Vec::new()))
        .collect();
    for root in 0..200 {
        let wishes: Vec<usize> = (0..6).map(|_| random.below(wanted)).collect();
        // Each requires what was new when it was released.
        packages.push(package(format!("open/name-{root:04}"), VERSIONS, |version| {
            wishes.iter().map(|wish| from(*wish, version)).collect()
        }));
    }
    let open = (wanted..packages.len()).map(|index| from(index, 0));
    let caps = (0..wanted).map(|index| {
        let cap = 5 + random.below(10) as u32;
        Dependency { package: index, least: [1, 0, 0], before: [1, cap, 0] }
    });
    Set { name: format!("{wanted} capped"), roots: open.chain(caps).collect(), packages }
}

/// 30 packages of 100 versions. The newest 90 of each require what excludes all the others.
fn ring() -> Set {
    const PACKAGES: usize = 30;
    let packages: Vec<Package> = (0..PACKAGES)
        .map(|index| {
            package(format!("ring/name-{index:04}"), 100, |version| {
                let next = (index + 1) % PACKAGES;
                let wanted = [1, version + 1, 0];
                let exactly =
                    Dependency { package: next, least: wanted, before: [1, version + 2, 0] };
                if version < 10 { Vec::new() } else { vec![exactly] }
            })
        })
        .collect();
    Set {
        name: "30 whose newest conflict".to_owned(),
        roots: (0..PACKAGES).map(|index| from(index, 0)).collect(),
        packages,
    }
}

/// A package of `count` versions 1.N.0.
fn package(name: String, count: u32, needs: impl Fn(u32) -> Vec<Dependency>) -> Package {
    let versions = (0..count).map(|minor| Version {
        number: [1, minor, 0],
        published: u64::from(minor) * 24,
        dependencies: needs(minor),
    });
    Package { name, versions: versions.collect(), is_root: true }
}

/// At least 1.`minor`.0, and below 2.
fn from(package: usize, minor: u32) -> Dependency {
    Dependency { package, least: [1, minor, 0], before: [2, 0, 0] }
}

type Known = OfflineDependencyProvider<usize, Ranges<Number>>;

/// A version, in order.
type Number = u128;

fn number([major, minor, patch]: [u32; 3]) -> Number {
    u128::from(major) << 64 | u128::from(minor) << 32 | u128::from(patch)
}

/// The package that the workspace is.
const WORKSPACE: usize = usize::MAX;

/// All versions of these packages, as pubgrub reads them.
fn known(packages: &[Package]) -> Known {
    let mut known = Known::new();
    for (index, package) in packages.iter().enumerate() {
        for version in &package.versions {
            known.add_dependencies(index, number(version.number), needs(&version.dependencies));
        }
    }
    known
}

/// Each package once, as pubgrub wants it.
fn needs(dependencies: &[Dependency]) -> Vec<(usize, Ranges<Number>)> {
    let mut all: Vec<(usize, Ranges<Number>)> = Vec::new();
    for dependency in dependencies {
        let range = Ranges::between(number(dependency.least), number(dependency.before));
        match all.iter_mut().find(|(package, _)| *package == dependency.package) {
            Some((_, other)) => *other = other.intersection(&range),
            None => all.push((dependency.package, range)),
        }
    }
    all
}

/// The first `count` packages of `order` that can be chosen together.
pub(crate) fn together(packages: &[Package], order: &[usize], count: usize) -> Vec<usize> {
    let mut known = known(packages);
    let mut chosen: Vec<usize> = Vec::new();
    // Ten at a time, and one after the other if they do not fit. The last one is the next.
    let mut open: Vec<Vec<usize>> = order.chunks(10).rev().map(<[usize]>::to_vec).collect();
    let mut attempt: Number = 0;
    while chosen.len() < count
        && let Some(next) = open.pop()
    {
        let any = |package: &usize| (*package, Ranges::full());
        attempt += 1;
        known.add_dependencies(WORKSPACE, attempt, chosen.iter().chain(&next).map(any));
        match resolve(&known, WORKSPACE, attempt) {
            Ok(_) => chosen.extend(next),
            Err(_) if next.len() > 1 => open.extend(next.into_iter().rev().map(|one| vec![one])),
            Err(_) => {}
        }
    }
    chosen.truncate(count);
    chosen
}

/// How many versions pubgrub looks at with its own order, and how long it takes, in milliseconds.
pub(crate) fn pubgrub_alone(set: &Set) -> (usize, f64) {
    let mut known = known(&set.packages);
    known.add_dependencies(WORKSPACE, 0_u128, needs(&set.roots));
    let counting = Counting { known, read: RefCell::default() };
    let start = std::time::Instant::now();
    assert!(resolve(&counting, WORKSPACE, 0_u128).is_ok(), "every set has a solution");
    let time = start.elapsed().as_secs_f64() * 1_000.0;
    // The roots are not a version.
    (counting.read.borrow().len() - 1, time)
}

/// Records the versions whose dependencies are requested.
struct Counting {
    known: Known,
    read: RefCell<HashSet<(usize, Number)>>,
}

impl DependencyProvider for Counting {
    type P = usize;
    type V = Number;
    type VS = Ranges<Number>;
    type M = String;
    type Err = std::convert::Infallible;
    type Priority = <Known as DependencyProvider>::Priority;

    fn prioritize(
        &self,
        package: &usize,
        range: &Ranges<Number>,
        statistics: &PackageResolutionStatistics,
    ) -> Self::Priority {
        self.known.prioritize(package, range, statistics)
    }

    fn choose_version(
        &self,
        package: &usize,
        range: &Ranges<Number>,
    ) -> Result<Option<Number>, Self::Err> {
        self.known.choose_version(package, range)
    }

    fn get_dependencies(
        &self,
        package: &usize,
        version: &Number,
    ) -> Result<Dependencies<usize, Ranges<Number>, String>, Self::Err> {
        self.read.borrow_mut().insert((*package, *version));
        self.known.get_dependencies(package, version)
    }
}
