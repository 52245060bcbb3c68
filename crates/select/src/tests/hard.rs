//! Worlds that are hard to search: how many versions are read, compared with plain pubgrub. Counts are exact.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use mu_manifest::reference::PackageId;
use pubgrub::{Dependencies, DependencyProvider, Map, PackageResolutionStatistics, Ranges};

use super::world::{Memory, Package, id, requirement, version};
use crate::releases::{ChosenFacts, Details, Entry};
use crate::strategies::answer;
use crate::universe::Requirement;
use crate::world::World;
use crate::{Failure, Highest, OwnCapabilities, RootRequirer, SelectionRequest, Strategy as _};

/// A world of numbered packages whose versions are numbers: what each needs is a range of another's numbers.
#[derive(Clone, Default)]
struct Numbered {
    packages: Vec<Vec<Vec<RequirementIndex>>>,
    roots: Vec<RequirementIndex>,
}

/// A package, and the first and last of its accepted versions.
type RequirementIndex = (usize, usize, usize);

/// A small generator of numbers that look random and are always the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

impl Numbered {
    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.is_at_hand = true;
        for (package, versions) in self.packages.iter().enumerate() {
            let versions = versions.iter().enumerate().map(|(number, needs)| {
                (format!("1.{number}.0"), needs.iter().map(asked).collect())
            });
            memory.hub(&format!("p{package}"), versions.collect());
        }
        memory
    }

    fn request(&self) -> SelectionRequest {
        let requirements = self.roots.iter().map(asked).collect();
        SelectionRequest {
            roots: vec![RootRequirer { by: "shop".to_owned(), requirements }],
            ..SelectionRequest::default()
        }
    }

    /// How many versions are read by us and by plain pubgrub.
    fn compare(&self) -> (usize, usize) {
        let memory = self.memory();
        let request = self.request();
        // Only the search, like plain pubgrub, which requests nothing ahead.
        let ours = answer(&mut World::new(&memory, &request));
        let plain = Plain { world: self, read: RefCell::default() };
        let theirs = pubgrub::resolve(&plain, self.packages.len(), 0usize);
        assert_eq!(ours.is_ok(), theirs.is_ok());
        (memory.versions_read(), plain.read.borrow().len())
    }
}

fn asked(&(package, first, last): &RequirementIndex) -> Requirement {
    requirement(&format!("p{package}#>=1.{first}.0 <=1.{last}.0"))
}

/// Pubgrub with its own order, over ranges of versions.
struct Plain<'a> {
    world: &'a Numbered,
    read: RefCell<BTreeSet<(usize, usize)>>,
}

impl DependencyProvider for Plain<'_> {
    type P = usize;
    type V = usize;
    type VS = Ranges<usize>;
    type M = String;
    type Err = Infallible;
    type Priority = (u32, Reverse<usize>);

    fn prioritize(
        &self,
        package: &usize,
        range: &Ranges<usize>,
        statistics: &PackageResolutionStatistics,
    ) -> Self::Priority {
        let versions = self.world.packages.get(*package).map_or(1, Vec::len);
        let count = (0..versions).filter(|version| range.contains(version)).count();
        if count == 0 {
            return (u32::MAX, Reverse(0));
        }
        (statistics.conflict_count(), Reverse(count))
    }

    fn choose_version(
        &self,
        package: &usize,
        range: &Ranges<usize>,
    ) -> Result<Option<usize>, Infallible> {
        let versions = self.world.packages.get(*package).map_or(1, Vec::len);
        Ok((0..versions).rev().find(|version| range.contains(version)))
    }

    fn get_dependencies(
        &self,
        package: &usize,
        version: &usize,
    ) -> Result<Dependencies<usize, Ranges<usize>, String>, Infallible> {
        let needs = match self.world.packages.get(*package) {
            Some(versions) => {
                self.read.borrow_mut().insert((*package, *version));
                &versions[*version]
            }
            None => &self.world.roots,
        };
        let mut ranges: Map<usize, Ranges<usize>> = Map::default();
        for &(package, first, last) in needs {
            let range = Ranges::from_range_bounds(first..=last);
            let known = ranges.entry(package).or_insert_with(Ranges::full);
            *known = known.intersection(&range);
        }
        Ok(Dependencies::Available(ranges.into_iter().collect()))
    }
}

/// Many roots accept newer versions, while packages that many others need are capped at old ones.
fn capped(seed: u64, roots: usize, capped: usize) -> Numbered {
    const PACKAGES: usize = 500;
    const VERSIONS: usize = 20;
    const WANTED: usize = 200;
    let mut dice = Dice(seed);
    let mut packages = vec![vec![Vec::new(); VERSIONS]; WANTED];
    for _ in 0..PACKAGES {
        let package = packages.len();
        let wanted: Vec<usize> = (0..4).map(|_| dice.roll(WANTED)).collect();
        let others: Vec<usize> = (0..2).map(|_| dice.roll(package)).collect();
        let needs = |version: usize, dice: &mut Dice| {
            let mut needs = Vec::new();
            for &wanted in &wanted {
                let least = version.saturating_sub(dice.roll(4));
                needs.push((wanted, least, VERSIONS - 1));
            }
            for &other in &others {
                needs.push((other, version.saturating_sub(6 + dice.roll(6)), VERSIONS - 1));
            }
            needs
        };
        packages.push((0..VERSIONS).map(|version| needs(version, &mut dice)).collect());
    }
    let mut asked: Vec<RequirementIndex> =
        (0..roots).map(|_| (WANTED + dice.roll(PACKAGES), 0, VERSIONS - 1)).collect();
    for wanted in 0..capped {
        asked.push((wanted, 0, 4 + dice.roll(8)));
    }
    Numbered { packages, roots: asked }
}

/// The same, with the capped packages at the end of chains.
fn layered(seed: u64, roots: usize, layers: usize, caps: usize) -> Numbered {
    const WIDTH: usize = 60;
    const VERSIONS: usize = 30;
    let mut dice = Dice(seed);
    let mut packages = vec![vec![Vec::new(); VERSIONS]; WIDTH];
    for layer in 1..=layers {
        for _ in 0..WIDTH {
            let below: Vec<usize> =
                (0..3).map(|_| (layer - 1) * WIDTH + dice.roll(WIDTH)).collect();
            let needs = |version: usize, dice: &mut Dice| {
                let need =
                    |&below: &usize| (below, version.saturating_sub(dice.roll(3)), VERSIONS - 1);
                below.iter().map(need).collect()
            };
            packages.push((0..VERSIONS).map(|version| needs(version, &mut dice)).collect());
        }
    }
    let top = layers * WIDTH;
    let mut asked: Vec<RequirementIndex> =
        (0..roots).map(|root| (top + root % WIDTH, 0, VERSIONS - 1)).collect();
    asked.extend((0..caps).map(|cap| (cap, 0, 5 + dice.roll(15))));
    Numbered { packages, roots: asked }
}

/// Majors that do not mix: each version needs some major of three others, mostly a new one if it is new itself.
fn tangled(seed: u64, packages: usize, roots: usize) -> Numbered {
    const MAJORS: usize = 4;
    const MINORS: usize = 8;
    let mut dice = Dice(seed);
    let all = (0..packages)
        .map(|package| {
            let below: Vec<usize> =
                (0..3).filter(|_| package > 3).map(|_| dice.roll(package)).collect();
            let version = |version: usize, dice: &mut Dice| {
                let need = |&below: &usize| {
                    let major = (version / MINORS + dice.roll(3)).saturating_sub(1).min(MAJORS - 1);
                    (below, major * MINORS + dice.roll(MINORS / 2), major * MINORS + MINORS - 1)
                };
                below.iter().map(need).collect()
            };
            (0..MAJORS * MINORS).map(|number| version(number, &mut dice)).collect()
        })
        .collect();
    let asked =
        (0..roots).map(|_| (packages / 2 + dice.roll(packages / 2), 0, MAJORS * MINORS - 1));
    Numbered { packages: all, roots: asked.collect() }
}

/// Packages whose newest versions each exclude another one's.
fn quarrelling(seed: u64, packages: usize, versions: usize, newest: usize) -> Numbered {
    let mut dice = Dice(seed);
    let old = versions - newest;
    let needs = |package: usize, version: usize, dice: &mut Dice| {
        let other = (package + 1 + dice.roll(packages - 1)) % packages;
        if version < old { vec![(other, 0, versions - 1)] } else { vec![(other, 0, old - 1)] }
    };
    let all = (0..packages)
        .map(|package| (0..versions).map(|version| needs(package, version, &mut dice)).collect())
        .collect();
    Numbered {
        packages: all,
        roots: (0..packages).map(|package| (package, 0, versions - 1)).collect(),
    }
}

/// Sums over a few worlds of one kind, because which of two equal choices comes first is luck.
#[track_caller]
fn check(kind: &str, worlds: impl IntoIterator<Item = Numbered>) {
    let (ours, plain) = worlds.into_iter().fold((0, 0), |(ours, plain), world| {
        let counts = world.compare();
        (ours + counts.0, plain + counts.1)
    });
    assert!(ours * 10 <= plain * 12, "{kind}: {ours} versions read, and {plain} by plain pubgrub");
}

#[test]
fn capped_packages_cost_no_more_than_with_plain_pubgrub() {
    check("capped", [capped(0, 50, 60), capped(1, 120, 100)]);
}

#[test]
fn caps_at_the_end_of_chains_cost_no_more_than_with_plain_pubgrub() {
    check("layered", [layered(0, 60, 1, 30), layered(1, 10, 3, 5), layered(2, 20, 2, 10)]);
}

#[test]
fn new_versions_that_exclude_each_other_cost_no_more_than_with_plain_pubgrub() {
    check("quarrelling", (0..6).map(|seed| quarrelling(seed, 30, 100, 90)));
}

#[test]
fn majors_that_do_not_mix_cost_no_more_than_with_plain_pubgrub() {
    check("tangled", (0..8).map(|seed| tangled(seed, 30, 3)));
}

/// The same world with two more roots that disagree about a package. One of them has an older version that
/// does not.
fn disagreeing(mut world: Numbered) -> Numbered {
    let (middle, last) = (world.packages[0].len() / 2, world.packages[0].len() - 1);
    let count = world.packages.len();
    world.packages.push(vec![vec![(0, 0, middle - 1)]]);
    world.packages.push(vec![Vec::new(), vec![(0, middle, last)]]);
    world.roots.extend([(count, 0, 0), (count + 1, 1, 1)]);
    world
}

#[track_caller]
fn check_telling(kind: &str, world: Numbered) {
    let world = disagreeing(world);
    let mut agreeing = world.clone();
    if let Some((_, first, last)) = agreeing.roots.last_mut() {
        (*first, *last) = (0, 0);
    }
    let solved = agreeing.memory();
    assert!(Highest.select(&solved, &agreeing.request()).is_ok(), "{kind} can be solved");
    let (memory, request) = (world.memory(), world.request());
    let failure = Highest.select(&memory, &request).expect_err("two roots disagree");
    assert!(matches!(failure, Failure::Conflict(_)), "{kind}: two roots disagree");
    assert!(!Highest.ways_out(&memory, &request, &failure).is_empty(), "{kind} has a way out");
    let (told, solved) = (memory.versions_read(), solved.versions_read());
    assert!(told * 10 <= solved * 12, "{kind}: {told} versions read, and {solved} to solve it");
}

#[test]
fn telling_a_conflict_reads_little_more_than_a_solution_does() {
    check_telling("capped", capped(0, 50, 60));
    check_telling("capped, many roots", capped(1, 120, 100));
    check_telling("layered", layered(1, 10, 3, 5));
    check_telling("layered, many steps", layered(3, 60, 3, 10));
    check_telling("tangled", tangled(0, 30, 3));
    check_telling("quarrelling", quarrelling(0, 30, 100, 90));
}

/// How many steps it takes to provide 16 capabilities, each of which has its own provider. With `pairs`,
/// there is also a package for every two that provides both, but needs something that does not exist.
fn steps_of_providing(pairs: bool) -> usize {
    let mut memory = Memory::default();
    let capabilities: Vec<String> =
        (10..26).map(|number| format!("c.mu.com/v1/C{number}")).collect();
    let mut listed: Vec<Vec<PackageId>> = vec![Vec::new(); capabilities.len()];
    let mut add = |name: &str, provided: &[usize], needs: &[&str]| {
        provided.iter().for_each(|&one| listed[one].push(id(name)));
        let provides = provided.iter().map(|&one| capabilities[one].clone()).collect();
        let details =
            Some(Arc::new(Details::from(ChosenFacts { provides, ..ChosenFacts::default() })));
        let entry = Entry { details, ..Entry::from(version("1.0.0")) };
        let needs = needs.iter().map(|needed| requirement(needed)).collect();
        memory.add(id(name), Package { versions: vec![(entry, needs)], ..Package::default() });
    };
    for one in 0..capabilities.len() {
        add(&format!("single{one}"), &[one], &[]);
        for other in (0..one).filter(|_| pairs) {
            add(&format!("pair{one}-{other}"), &[one, other], &["missing"]);
        }
    }
    for (capability, listed) in capabilities.iter().zip(listed) {
        memory.list(capability, listed);
    }
    let by = BTreeMap::from([("shop".to_owned(), id("shop"))]);
    let requires = capabilities.into_iter().map(|capability| (capability, by.clone())).collect();
    let own = OwnCapabilities { requires, ..OwnCapabilities::default() };
    let request = SelectionRequest { own, ..SelectionRequest::default() };
    let mut world = World::new(&memory, &request);
    let selection = answer(&mut world).expect("fits together");
    assert_eq!(selection.packages.len(), 16);
    world.budget.search_steps()
}

#[test]
fn looking_for_fewer_providers_costs_little() {
    // If no package provides two, nothing is searched.
    let alone = steps_of_providing(false);
    assert!(alone < 100, "{alone}");
    let pairs = steps_of_providing(true);
    assert!(pairs < 10_000, "{pairs}");
}
