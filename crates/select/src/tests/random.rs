//! Small random worlds, in which every possible choice can be tried.

use std::collections::{BTreeMap, BTreeSet};

use mu_manifest::reference::{PackageId, Version};
use proptest::prelude::*;

use super::many;
use super::world::{Memory, id, requirement, version};
use crate::universe::Requirement;
use crate::{
    CandidateOfLock, Fact, Failure, Highest, Minimal, Requirer, RootRequirer, Selection,
    SelectionRequest, Strategy as _, Update,
};

pub(super) const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
pub(super) const VERSIONS: [&str; 4] = ["1.0.0", "1.1.0", "2.0.0", "2.1.0"];
pub(super) const SPECS: [&str; 10] =
    ["latest", "^1", "^2", "~1.0", "1.1.0", ">=1.1", "<2", "~1.0 || ^2.1", "2.0.0", ">=2"];
/// The ranges without an upper bound or a gap.
const UNBOUNDED: [usize; 3] = [0, 5, 9];

/// What one candidate needs, and of what: indices into the constants.
pub(super) type Needs = Vec<(usize, usize)>;

/// A random world, and the requirements on it.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// For each package, its versions in ascending order: their needs, and whether they are yanked.
    pub(super) packages: Vec<Vec<(Needs, bool)>>,
    pub(super) roots: Needs,
    /// Of each package, which version is locked.
    locked: Vec<Option<usize>>,
}

fn needs(most: usize) -> impl Strategy<Value = Needs> {
    proptest::collection::vec((0..NAMES.len(), 0..SPECS.len()), 0..=most)
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let candidate = (needs(3), proptest::bool::weighted(0.1));
    let package = proptest::collection::vec(candidate, 0..=VERSIONS.len());
    let locked = proptest::collection::vec(proptest::option::of(0..VERSIONS.len()), NAMES.len());
    (proptest::collection::vec(package, NAMES.len()), needs(4), locked)
        .prop_map(|(packages, roots, locked)| Case { packages, roots, locked })
}

fn requirements(needs: &Needs) -> Vec<Requirement> {
    needs
        .iter()
        .map(|&(name, spec)| requirement(&format!("{}#{}", NAMES[name], SPECS[spec])))
        .collect()
}

/// The same without upper bounds and yanked versions, and with everything that is needed.
pub(super) fn unbounded(mut case: Case) -> Case {
    let counts: Vec<usize> = case.packages.iter().map(Vec::len).collect();
    let open = |needs: &mut Needs| {
        for need in needs.iter_mut() {
            need.1 = UNBOUNDED[need.1 % UNBOUNDED.len()];
        }
        needs.retain(|need| least(*need) < counts[need.0]);
    };
    for (needs, is_yanked) in case.packages.iter_mut().flatten() {
        open(needs);
        *is_yanked = false;
    }
    open(&mut case.roots);
    case
}

/// The lowest of all versions that a need accepts.
pub(super) fn least((_, spec): (usize, usize)) -> usize {
    let spec = requirement(&format!("a#{}", SPECS[spec])).spec;
    let mut versions = VERSIONS.iter();
    versions.position(|number| spec.accepts(&version(number), false)).expect("none is empty")
}

/// A choice: of each package, which version, if any.
pub(super) type Choice = BTreeMap<PackageId, Version>;

impl Case {
    pub(super) fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for (name, versions) in NAMES.iter().zip(&self.packages) {
            for (number, (needs, is_yanked)) in VERSIONS.iter().zip(versions) {
                memory.release(name, number, requirements(needs), *is_yanked);
            }
        }
        memory
    }

    pub(super) fn request(&self) -> SelectionRequest {
        let roots = self.roots.iter().enumerate().map(|(index, &need)| RootRequirer {
            by: format!("root {index}"),
            requirements: requirements(&vec![need]),
        });
        SelectionRequest { roots: roots.collect(), ..SelectionRequest::default() }
    }

    pub(super) fn locked(&self) -> Vec<CandidateOfLock> {
        let locked = NAMES.iter().zip(&self.locked).filter_map(|(name, locked)| {
            Some(CandidateOfLock {
                id: id(name),
                version: Some(version(VERSIONS[(*locked)?])),
                commit: None,
                reference: None,
                dependencies: Vec::new(),
                requested: Vec::new(),
            })
        });
        locked.collect()
    }

    /// Every choice that fits and contains nothing unneeded.
    pub(super) fn solutions(&self, locked: &[CandidateOfLock]) -> Vec<Choice> {
        let mut solutions = Vec::new();
        self.extend(locked, &mut BTreeMap::new(), 0, &mut solutions);
        solutions
    }

    fn extend(
        &self,
        locked: &[CandidateOfLock],
        choice: &mut BTreeMap<usize, usize>,
        package: usize,
        solutions: &mut Vec<Choice>,
    ) {
        if package == NAMES.len() {
            if self.holds(choice) {
                let chosen = choice.iter();
                solutions.push(
                    chosen.map(|(&name, &at)| (id(NAMES[name]), version(VERSIONS[at]))).collect(),
                );
            }
            return;
        }
        self.extend(locked, choice, package + 1, solutions);
        for (at, (_, is_yanked)) in self.packages[package].iter().enumerate() {
            let is_locked = locked.iter().any(|locked| {
                locked.id == id(NAMES[package]) && locked.version == Some(version(VERSIONS[at]))
            });
            if *is_yanked && !is_locked && !self.is_pinned(package, at) {
                continue;
            }
            choice.insert(package, at);
            self.extend(locked, choice, package + 1, solutions);
            choice.remove(&package);
        }
    }

    /// Whether a root requires exactly this version.
    fn is_pinned(&self, name: usize, at: usize) -> bool {
        self.roots.iter().any(|&(asked, spec)| asked == name && SPECS[spec] == VERSIONS[at])
    }

    /// The same, in which no version that a root pins is yanked: what may be chosen of it does not depend on
    /// which of the roots are asked.
    pub(super) fn without_yanks_of_pins(&self) -> Self {
        let mut pinned = self.clone();
        for (name, versions) in pinned.packages.iter_mut().enumerate() {
            for (at, (_, is_yanked)) in versions.iter_mut().enumerate() {
                *is_yanked &= !self.is_pinned(name, at);
            }
        }
        pinned
    }

    fn holds(&self, choice: &BTreeMap<usize, usize>) -> bool {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&(usize, usize)> = self.roots.iter().collect();
        while let Some(&(name, spec)) = open.pop() {
            let Some(&at) = choice.get(&name) else { return false };
            let asked = requirement(&format!("{}#{}", NAMES[name], SPECS[spec]));
            if !asked.spec.accepts(&version(VERSIONS[at]), false) {
                return false;
            }
            if reached.insert(name) {
                open.extend(&self.packages[name][at].0);
            }
        }
        reached.len() == choice.len()
    }

    fn direct(&self) -> BTreeSet<PackageId> {
        self.roots.iter().map(|&(name, _)| id(NAMES[name])).collect()
    }
}

/// Minimal version selection as in the textbook; `None` if a bound is broken or something requires what does
/// not exist.
pub(super) fn textbook(case: &Case) -> Option<Choice> {
    let lowest = |&(name, spec): &(usize, usize)| {
        let asked = requirement(&format!("{}#{}", NAMES[name], SPECS[spec])).spec;
        case.packages[name].iter().enumerate().position(|(at, (_, is_yanked))| {
            let number = version(VERSIONS[at]);
            let is_named = || asked.has_lower_bound_at(&number) || case.is_pinned(name, at);
            asked.accepts(&number, false) && (!is_yanked || is_named())
        })
    };
    let mut visited: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut open: Vec<(usize, usize)> = case.roots.clone();
    while let Some(need) = open.pop() {
        let Some(at) = lowest(&need) else { continue };
        if visited.insert((need.0, at)) {
            open.extend(&case.packages[need.0][at].0);
        }
    }
    let mut chosen: BTreeMap<usize, usize> = BTreeMap::new();
    for &(name, at) in &visited {
        let highest = chosen.entry(name).or_insert(at);
        *highest = at.max(*highest);
    }
    let needs = chosen.iter().flat_map(|(&name, &at)| &case.packages[name][at].0);
    let is_kept = |&(name, spec): &(usize, usize)| {
        let asked = requirement(&format!("{}#{}", NAMES[name], SPECS[spec])).spec;
        let at = chosen.get(&name);
        at.is_some_and(|&at| asked.accepts(&version(VERSIONS[at]), false))
            && lowest(&(name, spec)).is_some()
    };
    let all_kept = case.roots.iter().chain(needs).all(is_kept);
    let named = chosen.iter().map(|(&name, &at)| (id(NAMES[name]), version(VERSIONS[at])));
    all_kept.then(|| named.collect())
}

fn choice(selection: &Selection) -> Choice {
    let chosen = selection.packages.iter();
    chosen
        .map(|chosen| (chosen.id.clone(), chosen.version.clone().expect("is a release")))
        .collect()
}

/// Whether `better` has some direct dependency at a higher version, and none at a lower one.
fn raises(better: &Choice, than: &Choice, direct: &BTreeSet<PackageId>) -> bool {
    direct.iter().all(|id| better[id] >= than[id]) && direct.iter().any(|id| better[id] > than[id])
}

proptest! {
    #![proptest_config(many(500))]

    #[test]
    fn an_answer_is_found_exactly_when_there_is_one_and_no_better_one_exists(case in case()) {
        let solutions = case.solutions(&[]);
        match Highest.select(&case.memory(), &case.request()) {
            Ok(selection) => {
                let chosen = choice(&selection);
                prop_assert!(solutions.contains(&chosen), "{chosen:?} does not hold together");
                let direct = case.direct();
                let better = solutions.iter().find(|other| raises(other, &chosen, &direct));
                prop_assert!(better.is_none(), "{better:?} is better than {chosen:?}");
            }
            Err(Failure::Conflict(_)) => prop_assert!(solutions.is_empty(), "{solutions:?}"),
            Err(Failure::Unavailable(error)) => prop_assert!(false, "{error}"),
            Err(Failure::Unfinished(error)) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn the_minimal_strategy_is_the_textbooks(case in case()) {
        let expected = textbook(&case);
        match Minimal.select(&case.memory(), &case.request()) {
            Ok(selection) => prop_assert_eq!(Some(choice(&selection)), expected),
            Err(Failure::Conflict(conflict)) => prop_assert_eq!(None, expected, "{}", conflict),
            Err(Failure::Unavailable(error)) => prop_assert!(false, "{error}"),
            Err(Failure::Unfinished(error)) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn a_conflict_names_no_root_without_which_the_others_could_not_be_met(case in case()) {
        let Err(Failure::Conflict(conflict)) = Highest.select(&case.memory(), &case.request()) else {
            return Ok(());
        };
        let named: Vec<Vec<usize>> = conflict.facts.iter().filter_map(|fact| match fact {
            Fact::Requires { by: Requirer::Roots(names), .. } => Some(
                names.iter().map(|name| name["root ".len()..].parse().expect("is a number")).collect(),
            ),
            _ => None,
        }).collect();
        prop_assert!(!named.is_empty(), "{conflict}");
        let pinned = case.without_yanks_of_pins();
        let only = |roots: Vec<usize>| Case {
            roots: roots.into_iter().map(|root| case.roots[root]).collect(),
            ..pinned.clone()
        };
        let all = named.iter().flatten().copied().collect();
        prop_assert!(only(all).solutions(&[]).is_empty(), "{conflict}");
        for dropped in &named {
            let others = named.iter().filter(|names| *names != dropped).flatten().copied();
            prop_assert!(!only(others.collect()).solutions(&[]).is_empty(), "not {dropped:?}: {conflict}");
        }
    }

    #[test]
    fn the_lock_is_kept_as_far_as_it_can_be(case in case()) {
        let request = SelectionRequest { locked: case.locked(), ..case.request() };
        let solutions = case.solutions(&request.locked);
        let kept = |choice: &Choice| -> BTreeSet<PackageId> {
            let kept = request.locked.iter().filter(|one| choice.get(&one.id) == one.version.as_ref());
            kept.map(|one| one.id.clone()).collect()
        };
        match Highest.select(&case.memory(), &request) {
            Ok(selection) => {
                let chosen = choice(&selection);
                prop_assert!(solutions.contains(&chosen), "{chosen:?} does not hold together");
                let direct: BTreeSet<_> =
                    request.locked.iter().map(|one| one.id.clone()).filter(|id| case.direct().contains(id)).collect();
                let mine: BTreeSet<_> = kept(&chosen).intersection(&direct).cloned().collect();
                for other in &solutions {
                    let theirs: BTreeSet<_> = kept(other).intersection(&direct).cloned().collect();
                    prop_assert!(!(theirs.is_superset(&mine) && theirs.len() > mine.len()), "{other:?} keeps more than {chosen:?}");
                }
            }
            Err(Failure::Conflict(_)) => prop_assert!(solutions.is_empty(), "{solutions:?}"),
            Err(Failure::Unavailable(error)) => prop_assert!(false, "{error}"),
            Err(Failure::Unfinished(error)) => prop_assert!(false, "{error}"),
        }
        let everything = SelectionRequest { update: Update::Everything, ..request };
        let free = Highest.select(&case.memory(), &case.request());
        let updated = Highest.select(&case.memory(), &everything);
        prop_assert_eq!(free.ok().map(|free| choice(&free)), updated.ok().map(|updated| choice(&updated)));
    }

    #[test]
    fn the_order_in_which_things_are_written_changes_nothing(case in case(), seed in any::<u64>()) {
        let mut turned = case.clone();
        let turn = |needs: &mut Needs| {
            let by = seed as usize % needs.len().max(1);
            needs.rotate_left(by);
            if seed & 1 == 1 {
                needs.reverse();
            }
        };
        turned.packages.iter_mut().flatten().for_each(|(needs, _)| turn(needs));
        let mut request = case.request();
        request.roots.reverse();
        let one = Highest.select(&case.memory(), &case.request());
        let two = Highest.select(&turned.memory(), &request);
        match (one, two) {
            (Ok(one), Ok(two)) => prop_assert_eq!(one, two),
            (Err(Failure::Conflict(one)), Err(Failure::Conflict(two))) => {
                prop_assert_eq!(one.to_string(), two.to_string());
            }
            (one, two) => prop_assert!(false, "{one:?} is not {two:?}"),
        }
    }
}
