//! Small random worlds in which packages replace each other, and every possible choice can be tried.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mu_manifest::reference::{PackageId, Version};
use proptest::prelude::*;

use super::many;
use super::ways_out::lead_out;
use super::world::{Memory, Package, id, requirement, version};
use crate::releases::{ChosenFacts, Details, Entry};
use crate::universe::Requirement;
use crate::{
    Fact, Failure, Highest, Minimal, Requirer, RootRequirer, Selection, SelectionRequest,
    Strategy as _,
};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const VERSIONS: [&str; 3] = ["1.0.0", "1.1.0", "2.0.0"];
const SPECS: [&str; 6] = ["latest", "^1", ">=1.1", "<2", "2.0.0", "^1.1 || 2.0.0"];

/// A requirement on a package: indices into the constants.
type RequirementIndex = (usize, usize);

/// A version: what it needs, and the packages that it replaces.
type Release = (Vec<RequirementIndex>, BTreeSet<usize>);

/// Of each package, which version, if any.
type Choice = BTreeMap<usize, usize>;

/// What replaces what.
type StandIns = BTreeMap<usize, usize>;

/// A random world, and the requirements on it.
#[derive(Debug, Clone)]
struct Case {
    packages: Vec<Vec<Release>>,
    roots: Vec<RequirementIndex>,
    /// Whether the indexes of replaced packages name their replacements.
    tells: bool,
}

fn needs(most: usize) -> impl Strategy<Value = Vec<RequirementIndex>> {
    proptest::collection::vec((0..NAMES.len(), 0..SPECS.len()), 0..=most)
}

fn case() -> impl Strategy<Value = Case> {
    let replaced = proptest::collection::vec(proptest::bool::weighted(0.12), NAMES.len());
    let replaced = replaced
        .prop_map(|each| (0..NAMES.len()).filter(|&name| each[name]).collect::<BTreeSet<_>>());
    let package = proptest::collection::vec((needs(2), replaced), 0..=VERSIONS.len());
    let packages = proptest::collection::vec(package, NAMES.len());
    (packages, needs(4), any::<bool>()).prop_map(|(mut packages, roots, tells)| {
        for (name, package) in packages.iter_mut().enumerate() {
            for (_, replaced) in package {
                replaced.remove(&name);
            }
        }
        Case { packages, roots, tells }
    })
}

fn requirements(needs: &[RequirementIndex]) -> Vec<Requirement> {
    let asked =
        |&(name, spec): &RequirementIndex| requirement(&format!("{}#{}", NAMES[name], SPECS[spec]));
    needs.iter().map(asked).collect()
}

fn accepts(spec: usize, at: usize) -> bool {
    requirement(&format!("a#{}", SPECS[spec])).spec.accepts(&version(VERSIONS[at]), false)
}

impl Case {
    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for (name, releases) in self.packages.iter().enumerate() {
            let is_replaced = self.packages.iter().flatten().any(|one| one.1.contains(&name));
            let versions = VERSIONS.iter().zip(releases).map(|(number, (needs, replaced))| {
                let details = Details {
                    facts: ChosenFacts {
                        replaces: replaced.iter().map(|&name| id(NAMES[name])).collect(),
                        ..ChosenFacts::default()
                    },
                    moved_to: (self.tells && is_replaced).then(|| id("elsewhere")),
                    ..Details::default()
                };
                let details = (details != Details::default()).then(|| Arc::new(details));
                (Entry { details, ..Entry::from(version(number)) }, requirements(needs))
            });
            let package = Package { versions: versions.collect(), ..Package::default() };
            if !releases.is_empty() {
                memory.add(id(NAMES[name]), package);
            }
        }
        memory
    }

    fn request(&self) -> SelectionRequest {
        let roots = self.roots.iter().enumerate().map(|(index, need)| RootRequirer {
            by: format!("root {index}"),
            requirements: requirements(std::slice::from_ref(need)),
        });
        SelectionRequest { roots: roots.collect(), ..SelectionRequest::default() }
    }

    /// All that the roots and a choice need.
    fn needs<'c>(&'c self, choice: &'c Choice) -> impl Iterator<Item = &'c RequirementIndex> {
        let chosen = choice.iter().flat_map(|(&name, &at)| &self.packages[name][at].0);
        self.roots.iter().chain(chosen)
    }

    /// The chosen packages that replace `name`.
    fn replacers(&self, choice: &Choice, name: usize) -> Vec<usize> {
        let replaces =
            |(&by, &at): (&usize, &usize)| self.packages[by][at].1.contains(&name).then_some(by);
        choice.iter().filter_map(replaces).collect()
    }

    /// The replacements in a choice that fits.
    fn stand_ins(&self, choice: &Choice) -> StandIns {
        let asked: BTreeSet<usize> = self.needs(choice).map(|need| need.0).collect();
        let replaced = asked.into_iter();
        replaced.filter_map(|name| Some((name, *self.replacers(choice, name).first()?))).collect()
    }

    /// Whether everything that is required is there, itself or through its replacement, and nothing that is
    /// replaced.
    fn is_sound(&self, choice: &Choice) -> bool {
        let replaced = |name: &usize| !self.replacers(choice, *name).is_empty();
        !choice.keys().any(replaced)
            && self.needs(choice).all(|&(name, spec)| match *self.replacers(choice, name) {
                [] => choice.get(&name).is_some_and(|&at| accepts(spec, at)),
                [by] => accepts(spec, choice[&by]),
                _ => false,
            })
    }

    /// Whether everything in it is also needed. Strictly, a replacement must itself be required.
    fn holds(&self, choice: &Choice, strictly: bool) -> bool {
        if !self.is_sound(choice) {
            return false;
        }
        let stand_ins = self.stand_ins(choice);
        let mut reached = BTreeSet::new();
        let mut open: Vec<usize> = self.roots.iter().map(|need| need.0).collect();
        while let Some(name) = open.pop() {
            let name = match stand_ins.get(&name) {
                Some(_) if strictly => continue,
                Some(&by) => by,
                None => name,
            };
            if reached.insert(name) {
                open.extend(self.packages[name][choice[&name]].0.iter().map(|need| need.0));
            }
        }
        reached.len() == choice.len()
    }

    /// Every choice that strictly fits.
    fn solutions(&self) -> Vec<Choice> {
        self.all(true)
    }

    /// Every choice that holds.
    fn all(&self, strictly: bool) -> Vec<Choice> {
        let mut choices = vec![Choice::new()];
        for name in 0..NAMES.len() {
            let with = choices.iter().flat_map(|choice| {
                (0..self.packages[name].len()).map(|at| {
                    let mut choice = choice.clone();
                    choice.insert(name, at);
                    choice
                })
            });
            choices = choices.iter().cloned().chain(with).collect();
        }
        choices.retain(|choice| self.holds(choice, strictly));
        choices
    }

    /// Minimal version selection as in the textbook, repeated with the replacements that were found, until
    /// there are no more.
    fn textbook(&self) -> Option<(Choice, StandIns)> {
        let mut stand_ins = StandIns::new();
        let mut tried = vec![stand_ins.clone()];
        loop {
            let meant = |&(name, spec): &RequirementIndex| {
                let name = *stand_ins.get(&name).unwrap_or(&name);
                let at = (0..self.packages[name].len()).find(|&at| accepts(spec, at));
                (name, at)
            };
            let mut visited: BTreeSet<(usize, usize)> = BTreeSet::new();
            let mut asked: BTreeSet<usize> = BTreeSet::new();
            // A requirement of an older version that nothing can meet is ignored.
            let mut met: BTreeSet<usize> = BTreeSet::new();
            let mut open: Vec<RequirementIndex> = self.roots.clone();
            while let Some(need) = open.pop() {
                asked.insert(need.0);
                let (name, Some(at)) = meant(&need) else { continue };
                met.insert(need.0);
                if visited.insert((name, at)) {
                    open.extend(&self.packages[name][at].0);
                }
            }
            let mut chosen = Choice::new();
            for &(name, at) in &visited {
                let highest = chosen.entry(name).or_insert(at);
                *highest = at.max(*highest);
            }
            let by = |name: usize| self.replacers(&chosen, name);
            // Replacements are in use too.
            let in_use = asked.iter().chain(chosen.keys()).copied();
            let replaced: BTreeSet<usize> = in_use.filter(|&name| !by(name).is_empty()).collect();
            let mut more = stand_ins.clone();
            for &name in &replaced {
                let active = by(name).into_iter().find(|by| !replaced.contains(by));
                if let Some(active) = active {
                    more.entry(name).or_insert(active);
                }
            }
            let keys: BTreeSet<usize> = more.keys().copied().collect();
            more.retain(|_, by| !keys.contains(by));
            if !tried.contains(&more) {
                tried.push(more.clone());
                stand_ins = more;
                continue;
            }
            // If the replacement is not chosen after all, there is nothing left to replace.
            let is_plain = |&name: &usize| by(name).len() == 1 && stand_ins.contains_key(&name);
            let has_ended = |(name, one): (&usize, &usize)| {
                asked.contains(name) && !by(*name).contains(one) && chosen.contains_key(one)
            };
            if !replaced.iter().all(is_plain) || stand_ins.iter().any(has_ended) {
                return None;
            }
            let is_kept = |need: &&RequirementIndex| {
                let (name, at) = meant(need);
                at.is_some() && accepts(need.1, chosen[&name])
            };
            let all_kept = self.needs(&chosen).all(|need| is_kept(&need));
            stand_ins.retain(|name, _| met.contains(name));
            return all_kept.then_some((chosen, stand_ins));
        }
    }
}

fn index(of: &PackageId) -> usize {
    NAMES.iter().position(|name| id(name) == *of).expect("is a package")
}

fn choice(selection: &Selection) -> Choice {
    let at = |version: &Version| VERSIONS.iter().position(|one| *one == version.to_string());
    let chosen = selection.packages.iter();
    chosen
        .map(|chosen| {
            (index(&chosen.id), chosen.version.as_ref().and_then(at).expect("is a release"))
        })
        .collect()
}

fn stand_ins(selection: &Selection) -> StandIns {
    selection.replaced.iter().map(|one| (index(&one.id), index(&one.by))).collect()
}

/// The roots that a conflict names, line by line.
fn named(facts: &[Fact]) -> Vec<Vec<usize>> {
    let named = facts.iter().filter_map(|fact| match fact {
        Fact::Requires { by: Requirer::Roots(names), .. } => Some(
            names.iter().map(|name| name["root ".len()..].parse().expect("is a number")).collect(),
        ),
        _ => None,
    });
    named.collect()
}

#[test]
fn what_is_replaced_stands_in_for_nothing() {
    let one = |needs: &[RequirementIndex], replaced: &[usize]| -> Release {
        (needs.to_vec(), replaced.iter().copied().collect())
    };
    // d needs c ^1.1 or more, which replaces d; the lowest c needs the e that replaces c.
    let packages = vec![
        vec![],
        vec![],
        vec![one(&[(4, 4)], &[3]), one(&[], &[3])],
        vec![one(&[(2, 2)], &[])],
        vec![one(&[], &[]), one(&[], &[]), one(&[], &[2])],
    ];
    let case = Case { packages, roots: vec![(3, 0)], tells: false };
    assert!(Minimal.select(&case.memory(), &case.request()).is_err());
}

proptest! {
    #![proptest_config(many(500))]

    #[test]
    fn highest_finds_an_answer_exactly_when_there_is_one(case in case()) {
        let solutions = case.solutions();
        match Highest.select(&case.memory(), &case.request()) {
            Ok(selection) => {
                let chosen = choice(&selection);
                // Two packages that nothing else leads to may be each other's reason to be there.
                prop_assert!(case.holds(&chosen, false), "{chosen:?} does not hold; {solutions:?} do");
                prop_assert_eq!(stand_ins(&selection), case.stand_ins(&chosen));
                let direct: BTreeSet<usize> = case.roots.iter().map(|need| need.0).collect();
                let mine = case.stand_ins(&chosen);
                for other in &solutions {
                    // A replacement is looked for only if nothing else fits, not to raise something, unless
                    // the index names it.
                    let is_told = |name: &usize| case.tells && !case.packages[*name].is_empty();
                    // Nor is a lower version examined for what it would bring.
                    let is_seen = |(name, at): (&usize, &usize)| {
                        direct.contains(name) || at + 1 == case.packages[*name].len()
                    };
                    let is_better = mine.is_empty()
                        && case.stand_ins(other).keys().all(is_told)
                        && other.iter().all(is_seen)
                        && direct.iter().all(|name| other.get(name) >= Some(&chosen[name]))
                        && direct.iter().any(|name| other[name] > chosen[name]);
                    prop_assert!(!is_better, "{other:?} is better than {chosen:?}");
                }
            }
            Err(Failure::Conflict(conflict)) => {
                // A replacement that no index names is not looked for.
                let is_told = case.tells && !case.packages.iter().any(Vec::is_empty);
                prop_assert!(solutions.is_empty() || !is_told, "{solutions:?} hold\n{conflict}");
            }
            Err(Failure::Unavailable(error)) => prop_assert!(false, "{error}"),
            Err(Failure::Unfinished(error)) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn minimal_is_the_textbooks(case in case()) {
        let expected = case.textbook();
        match Minimal.select(&case.memory(), &case.request()) {
            Ok(selection) => {
                let found = (choice(&selection), stand_ins(&selection));
                prop_assert!(case.is_sound(&found.0), "{found:?} does not hold");
                prop_assert_eq!(Some(found), expected);
            }
            Err(Failure::Conflict(conflict)) => prop_assert_eq!(None, expected, "{}", conflict),
            Err(Failure::Unavailable(error)) => prop_assert!(false, "{error}"),
            Err(Failure::Unfinished(error)) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn a_conflict_names_no_root_without_which_the_others_could_not_be_met(case in case()) {
        let case = Case { tells: true, ..case };
        let Err(Failure::Conflict(conflict)) = Highest.select(&case.memory(), &case.request()) else {
            return Ok(());
        };
        let named = named(&conflict.facts);
        prop_assert!(!named.is_empty(), "{conflict}");
        let only = |roots: Vec<usize>| Case {
            roots: roots.into_iter().map(|root| case.roots[root]).collect(),
            ..case.clone()
        };
        let all = named.iter().flatten().copied().collect();
        // A replacement that no index names is not looked for.
        let is_told = !case.packages.iter().any(Vec::is_empty);
        prop_assert!(!is_told || only(all).solutions().is_empty(), "{conflict}");
        for dropped in &named {
            let others = named.iter().filter(|names| *names != dropped).flatten().copied();
            prop_assert!(!only(others.collect()).all(false).is_empty(), "not {dropped:?}: {conflict}");
        }
    }

    #[test]
    fn every_way_out_leads_out(case in case()) {
        for strategy in [&Highest as &dyn crate::Strategy, &Minimal] {
            let (memory, request) = (case.memory(), case.request());
            if let Err(Failure::Conflict(conflict)) = strategy.select(&memory, &request) {
                lead_out(strategy, &memory, &request, &conflict)?;
            }
        }
    }

    #[test]
    fn the_order_in_which_things_are_written_changes_nothing(case in case()) {
        let mut turned = case.clone();
        turned.packages.iter_mut().flatten().for_each(|(needs, _)| needs.reverse());
        let mut request = case.request();
        request.roots.reverse();
        for strategy in [&Highest as &dyn crate::Strategy, &Minimal] {
            let one = strategy.select(&case.memory(), &case.request());
            let two = strategy.select(&turned.memory(), &request);
            match (one, two) {
                (Ok(one), Ok(two)) => prop_assert_eq!(one, two),
                (Err(Failure::Conflict(_)), Err(Failure::Conflict(_))) => {}
                (one, two) => prop_assert!(false, "{one:?} is not {two:?}"),
            }
        }
    }
}
