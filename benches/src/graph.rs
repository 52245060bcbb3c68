//! A graph of packages, versions and dependencies like those of real registries.
//!
//! Packages are released over time, and depend on what existed at that time: a few foundations that nearly
//! everything needs, many packages that few need, breaking changes mostly early in a package's life, and now
//! and then a newest version that holds something back, so that not every newest version fits.

use std::collections::HashSet;

use crate::random::Random;

/// One package.
pub(crate) struct Package {
    /// `team-07/name-0123`.
    pub(crate) name: String,
    /// In the order of publication, which is also that of the versions.
    pub(crate) versions: Vec<Version>,
    /// Whether it can be chosen together with all others of which this is true.
    pub(crate) is_root: bool,
}

/// One version.
pub(crate) struct Version {
    pub(crate) number: [u32; 3],
    /// In hours since the registry began.
    pub(crate) published: u64,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A version's requirement on another package.
pub(crate) struct Dependency {
    /// The place of the package in the graph.
    pub(crate) package: usize,
    /// From this version on …
    pub(crate) least: [u32; 3],
    /// … to the one before this.
    pub(crate) before: [u32; 3],
}

pub(crate) const PACKAGES: usize = 2_000;
pub(crate) const VERSIONS: usize = 30;

/// How many hours the registry has been there.
const HOURS: u64 = 80_000;

/// Makes the graph.
pub(crate) fn make() -> Vec<Package> {
    let mut random = Random::new(1);
    let mut packages: Vec<Package> = Vec::with_capacity(PACKAGES);
    for index in 0..PACKAGES {
        let name = format!("team-{:02}/name-{index:04}", index % 40);
        let wishes = wishes(&mut random, index);
        let holds_back = random.below(30) == 0;
        let mut versions: Vec<Version> = Vec::with_capacity(VERSIONS);
        let mut number = [1, 0, 0];
        for (place, published) in times(&mut random).into_iter().enumerate() {
            if place > 0 {
                number = next(&mut random, number, published);
            }
            let is_newest = place + 2 >= VERSIONS;
            let dependencies = wishes
                .iter()
                .enumerate()
                .filter(|(order, _)| place >= order * 2)
                .filter_map(|(order, package)| {
                    let held = holds_back && is_newest && order == 0;
                    dependency(&packages[*package], *package, published, held)
                })
                .collect();
            versions.push(Version { number, published, dependencies });
        }
        packages.push(Package { name, versions, is_root: true });
    }
    packages
}

/// The packages that the package at `index` comes to depend on, all of them before it.
fn wishes(random: &mut Random, index: usize) -> Vec<usize> {
    let count = if index < 40 { 0 } else { random.below(8) };
    let mut wishes: Vec<usize> =
        (0..count).map(|_| (random.unit().powf(1.8) * index as f64) as usize).collect();
    wishes.sort_unstable();
    wishes.dedup();
    wishes
}

fn times(random: &mut Random) -> Vec<u64> {
    let start = random.below(HOURS as usize / 3) as u64;
    let mut times: Vec<u64> =
        (0..VERSIONS - 2).map(|_| start + random.next() % (HOURS * 95 / 100 - start)).collect();
    times.extend((0..2).map(|_| HOURS - 1 - random.next() % (HOURS / 25)));
    times.sort_unstable();
    times
}

fn next(random: &mut Random, [major, minor, patch]: [u32; 3], published: u64) -> [u32; 3] {
    match random.below(20) {
        0..3 if published < HOURS / 2 => [major + 1, 0, 0],
        0..10 => [major, minor + 1, 0],
        _ => [major, minor, patch + 1],
    }
}

/// The requirement at a time: versions compatible with the newest at that time.
fn dependency(on: &Package, package: usize, published: u64, held: bool) -> Option<Dependency> {
    let known = on.versions.iter().take_while(|version| version.published < published).count();
    let newest = on.versions[..known].last()?.number;
    if !held {
        return Some(Dependency { package, least: newest, before: [newest[0] + 1, 0, 0] });
    }
    // Something broke, so the requirement excludes the newest versions.
    let older = &on.versions[known / 2];
    Some(Dependency { package, least: older.number, before: newest })
}

/// `1.2.3`.
pub(crate) fn text([major, minor, patch]: [u32; 3]) -> String {
    format!("{major}.{minor}.{patch}")
}

/// The packages that a workspace with `count` requirements needs; fewer if not so many can be chosen together.
pub(crate) fn roots(packages: &[Package], count: usize) -> Vec<&Package> {
    let order = order(packages).into_iter().map(|index| &packages[index]);
    order.filter(|package| package.is_root).take(count).collect()
}

/// All packages, by their places in the graph, in the order in which workspaces need them.
pub(crate) fn order(packages: &[Package]) -> Vec<usize> {
    let mut random = Random::new(2);
    let mut order: Vec<usize> = (0..packages.len()).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, random.below(place + 1));
    }
    order
}

/// What decides how much work a graph is, in words.
pub(crate) fn shape(packages: &[Package]) -> String {
    let mut versions: Vec<usize> = packages.iter().map(|package| package.versions.len()).collect();
    versions.sort_unstable();
    let all: usize = versions.iter().sum();
    let each = packages.iter().flat_map(|package| &package.versions);
    let dependencies: usize = each.map(|version| version.dependencies.len()).sum();
    let levels = levels(packages, 300);
    format!(
        "{} packages, {all} versions ({:.1} a package, at most {} in nine of ten), {dependencies} dependencies ({:.1} a version); \
         the newest versions of 300 of them lead to {} packages on {} levels",
        packages.len(),
        all as f64 / packages.len() as f64,
        versions[versions.len() * 9 / 10],
        dependencies as f64 / all as f64,
        levels.iter().sum::<usize>(),
        levels.len(),
    )
}

/// How many packages are first met on each level below `count` of them, if the newest version of each is chosen.
fn levels(packages: &[Package], count: usize) -> Vec<usize> {
    let mut met: HashSet<&str> = HashSet::new();
    let mut level = roots(packages, count);
    let mut levels = Vec::new();
    while !level.is_empty() {
        level.retain(|package| met.insert(&package.name));
        levels.push(level.len());
        let newest = level.iter().filter_map(|package| package.versions.last());
        let needed = newest.flat_map(|version| &version.dependencies);
        level = needed.map(|dependency| &packages[dependency.package]).collect();
    }
    levels.retain(|count| *count > 0);
    levels
}
