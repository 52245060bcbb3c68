//! Small random worlds with channels and capabilities, in which every possible choice can be tried.

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
    Exclusion, Fact, Failure, Highest, Minimal, OwnCapabilities, Requirer, RootRequirer, Selection,
    SelectionRequest, Strategy as Selecting,
};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const VERSIONS: [&str; 3] = ["1.0.0", "1.1.0", "2.0.0"];
const SPECS: [&str; 5] = ["latest", "^1", ">=1.1", "<2", "2.0.0"];
const CAPABILITIES: [&str; 2] = ["net.mu.com/v1/Network", "store.mu.com/v1/Disk"];
const CHANNEL: &str = "fast";

/// A requirement on a package: indices into the constants, and whether only the channel is accepted.
#[derive(Debug, Clone, Copy)]
struct RequirementIndex {
    name: usize,
    spec: usize,
    in_channel: bool,
}

/// A version: indices into the constants.
#[derive(Debug, Clone)]
struct Release {
    needs: Vec<RequirementIndex>,
    provides: BTreeSet<usize>,
    requires: BTreeSet<usize>,
    /// The packages, and after them capabilities, that must not be used together with it.
    conflicts: BTreeSet<usize>,
    in_channel: bool,
}

/// A random world, and the requirements on it.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// Of each package, its versions from the lowest on. Packages need only later ones.
    packages: Vec<Vec<Release>>,
    roots: Vec<RequirementIndex>,
    required: BTreeSet<usize>,
    /// Of each capability, the packages that the registry lists, in its order.
    listed: Vec<Vec<usize>>,
}

fn need(names: std::ops::Range<usize>) -> impl Strategy<Value = RequirementIndex> {
    (names, 0..SPECS.len(), proptest::bool::weighted(0.15))
        .prop_map(|(name, spec, in_channel)| RequirementIndex { name, spec, in_channel })
}

fn some_capabilities(weight: f64) -> impl Strategy<Value = BTreeSet<usize>> {
    let each = proptest::collection::vec(proptest::bool::weighted(weight), CAPABILITIES.len());
    each.prop_map(|each| (0..CAPABILITIES.len()).filter(|&index| each[index]).collect())
}

fn release(package: usize) -> impl Strategy<Value = Release> {
    let needs = if package + 1 < NAMES.len() {
        proptest::collection::vec(need(package + 1..NAMES.len()), 0..=2).boxed()
    } else {
        Just(Vec::new()).boxed()
    };
    let provides = some_capabilities(0.35);
    let requires = some_capabilities(0.25);
    let conflicts =
        proptest::collection::vec(proptest::bool::weighted(0.04), NAMES.len() + CAPABILITIES.len());
    let conflicts = conflicts.prop_map(|each| (0..each.len()).filter(|&at| each[at]).collect());
    (needs, provides, requires, conflicts, any::<bool>()).prop_map(
        |(needs, provides, requires, conflicts, in_channel)| Release {
            needs,
            provides,
            requires,
            conflicts,
            in_channel,
        },
    )
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let packages: Vec<_> = (0..NAMES.len())
        .map(|package| proptest::collection::vec(release(package), 0..=VERSIONS.len()))
        .collect();
    let roots = proptest::collection::vec(need(0..NAMES.len()), 0..=3);
    let all: Vec<usize> = (0..NAMES.len()).collect();
    let listed = proptest::sample::subsequence(all, 0..=NAMES.len()).prop_shuffle();
    let listed = proptest::collection::vec(listed, CAPABILITIES.len());
    (packages, roots, some_capabilities(0.3), listed)
        .prop_map(|(packages, roots, required, listed)| Case { packages, roots, required, listed })
}

fn requirements(needs: &[RequirementIndex]) -> Vec<Requirement> {
    let requirement = |need: &RequirementIndex| Requirement {
        channel: need.in_channel.then(|| CHANNEL.to_owned()),
        ..requirement(&format!("{}#{}", NAMES[need.name], SPECS[need.spec]))
    };
    needs.iter().map(requirement).collect()
}

/// What a number in a release's conflicts means.
fn opponents(of: &BTreeSet<usize>) -> Vec<String> {
    let name = |&index: &usize| match NAMES.get(index) {
        Some(name) => id(name).to_string(),
        None => CAPABILITIES[index - NAMES.len()].to_owned(),
    };
    of.iter().map(name).collect()
}

fn capabilities(of: &BTreeSet<usize>) -> Vec<String> {
    of.iter().map(|&index| CAPABILITIES[index].to_owned()).collect()
}

/// A choice: of each package, which version, if any.
type Choice = BTreeMap<usize, usize>;

impl Case {
    pub(super) fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for (name, releases) in NAMES.iter().zip(&self.packages) {
            let versions = VERSIONS.iter().zip(releases).map(|(number, release)| {
                let channels =
                    if release.in_channel { vec![CHANNEL.to_owned()] } else { Vec::new() };
                let details = Details {
                    facts: ChosenFacts {
                        provides: capabilities(&release.provides),
                        requires: capabilities(&release.requires),
                        conflicts: opponents(&release.conflicts),
                        ..ChosenFacts::default()
                    },
                    channels,
                    ..Details::default()
                };
                let details = (details != Details::default()).then(|| Arc::new(details));
                let entry = Entry { details, ..Entry::from(version(number)) };
                (entry, requirements(&release.needs))
            });
            if !releases.is_empty() {
                memory
                    .add(id(name), Package { versions: versions.collect(), ..Package::default() });
            }
        }
        for (capability, listed) in CAPABILITIES.iter().zip(&self.listed) {
            memory.list(capability, listed.iter().map(|&name| id(NAMES[name])).collect());
        }
        memory
    }

    pub(super) fn request(&self) -> SelectionRequest {
        let roots =
            vec![RootRequirer { by: "root".to_owned(), requirements: requirements(&self.roots) }];
        let by = BTreeMap::from([("root".to_owned(), id("root"))]);
        let required = capabilities(&self.required).into_iter();
        let requires = required.map(|capability| (capability, by.clone())).collect();
        let own = OwnCapabilities { requires, ..OwnCapabilities::default() };
        SelectionRequest { roots, own, ..SelectionRequest::default() }
    }

    /// The same, with the registries' lists of providers in reverse order.
    pub(super) fn turned(&self) -> Self {
        let listed = self.listed.iter().map(|listed| listed.iter().rev().copied().collect());
        Self { listed: listed.collect(), ..self.clone() }
    }

    /// The same, in which all versions of a package provide the same.
    fn steady(&self) -> Self {
        let mut steady = self.clone();
        for releases in &mut steady.packages {
            let provides = releases.first().map(|first| first.provides.clone());
            for release in releases {
                release.provides.clone_from(provides.as_ref().expect("is of the first"));
            }
        }
        steady
    }

    fn accepts(&self, need: &RequirementIndex, at: usize) -> bool {
        let asked = requirement(&format!("{}#{}", NAMES[need.name], SPECS[need.spec]));
        asked.spec.accepts(&version(VERSIONS[at]), false)
            && (!need.in_channel || self.packages[need.name][at].in_channel)
    }

    /// All that the root and a choice need.
    fn needs<'c>(&'c self, choice: &'c Choice) -> impl Iterator<Item = &'c RequirementIndex> {
        let chosen = choice.iter().flat_map(|(&name, &at)| &self.packages[name][at].needs);
        self.roots.iter().chain(chosen)
    }

    /// All capabilities that the root and a choice require.
    fn requires<'c>(&'c self, choice: &'c Choice) -> impl Iterator<Item = usize> {
        let chosen = choice.iter().flat_map(|(&name, &at)| &self.packages[name][at].requires);
        self.required.iter().chain(chosen).copied()
    }

    fn providers(&self, choice: &Choice, capability: usize) -> Vec<usize> {
        let provides =
            |name: usize, at: usize| self.packages[name][at].provides.contains(&capability);
        choice.iter().filter(|&(&name, &at)| provides(name, at)).map(|(&name, _)| name).collect()
    }

    /// Whether everything that is required is there, and nothing twice.
    fn is_sound(&self, choice: &Choice) -> bool {
        let is_met = |need: &RequirementIndex| {
            choice.get(&need.name).is_some_and(|&at| self.accepts(need, at))
        };
        let providers: Vec<_> =
            (0..CAPABILITIES.len()).map(|capability| self.providers(choice, capability)).collect();
        let is_beside = |(&name, &at): (&usize, &usize)| {
            self.packages[name][at].conflicts.iter().all(|&with| {
                match with.checked_sub(NAMES.len()) {
                    None => with == name || !choice.contains_key(&with),
                    Some(capability) => providers[capability].iter().all(|&other| other == name),
                }
            })
        };
        self.needs(choice).all(is_met)
            && choice.iter().all(is_beside)
            && providers.iter().all(|providers| providers.len() <= 1)
            && self.requires(choice).all(|capability| !providers[capability].is_empty())
    }

    /// Whether everything in it is also needed. Strictly, only listed packages can be added as providers, and
    /// everything else must be required.
    fn holds(&self, choice: &Choice, strictly: bool) -> bool {
        if !self.is_sound(choice) {
            return false;
        }
        let brought_in = |required: &BTreeSet<usize>| -> Vec<usize> {
            let providers = required.iter().flat_map(|&one| {
                let providers = self.providers(choice, one);
                providers
                    .into_iter()
                    .filter(move |name| !strictly || self.listed[one].contains(name))
            });
            providers.collect()
        };
        let mut reached = BTreeSet::new();
        let mut open: Vec<usize> = self.roots.iter().map(|need| need.name).collect();
        open.extend(brought_in(&self.required));
        while let Some(name) = open.pop() {
            if reached.insert(name) {
                let release = &self.packages[name][choice[&name]];
                open.extend(release.needs.iter().map(|need| need.name));
                open.extend(brought_in(&release.requires));
            }
        }
        reached.len() == choice.len()
    }

    /// The packages that are required by name, by `from` or by what that leads to.
    fn named(&self, choice: &Choice, from: &[RequirementIndex]) -> BTreeSet<usize> {
        let mut named = BTreeSet::new();
        let mut open: Vec<usize> = from.iter().map(|need| need.name).collect();
        while let Some(name) = open.pop() {
            if named.insert(name) {
                open.extend(self.packages[name][choice[&name]].needs.iter().map(|need| need.name));
            }
        }
        named
    }

    /// How much a version is preferred: versions of the default channel come first, unless the roots name a channel.
    fn rank(&self, name: usize, at: usize) -> (bool, usize) {
        let releases = &self.packages[name];
        let has_default = releases.last().is_some_and(|newest| newest.in_channel)
            && !self.roots.iter().any(|need| need.name == name && need.in_channel);
        (!has_default || releases[at].in_channel, at)
    }

    /// Whether packages that are required by name provide nothing.
    fn names_no_provider(&self) -> bool {
        let provides = |name: usize| self.packages[name].iter().any(|one| !one.provides.is_empty());
        let mut needs = self.packages.iter().flatten().flat_map(|release| &release.needs);
        !needs.any(|need| provides(need.name))
    }

    /// How many packages are there only for what they provide.
    fn brought(&self, choice: &Choice) -> usize {
        let named: BTreeSet<usize> = self.needs(choice).map(|need| need.name).collect();
        choice.keys().filter(|name| !named.contains(name)).count()
    }

    /// Whether every package that provides something is listed for it.
    fn lists_all(&self) -> bool {
        let provides = |name: usize, one: usize| {
            self.packages[name].iter().any(|release| release.provides.contains(&one))
        };
        (0..CAPABILITIES.len()).all(|one| {
            (0..NAMES.len()).all(|name| !provides(name, one) || self.listed[one].contains(&name))
        })
    }

    /// Every choice that strictly fits.
    fn solutions(&self) -> Vec<Choice> {
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
        choices.retain(|choice| self.holds(choice, true));
        choices
    }
}

fn choice(selection: &Selection) -> Choice {
    let position = |of: &PackageId| NAMES.iter().position(|name| id(name) == *of);
    let at = |version: &Version| VERSIONS.iter().position(|one| *one == version.to_string());
    let chosen = selection.packages.iter();
    chosen
        .map(|chosen| {
            let version = chosen.version.as_ref().and_then(at).expect("is a release");
            (position(&chosen.id).expect("is a package"), version)
        })
        .collect()
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
                let direct: BTreeSet<usize> = case.roots.iter().map(|need| need.name).collect();
                let core = case.named(&chosen, &case.roots);
                for other in &solutions {
                    let is_alike = core.iter().all(|name| other.get(name) == chosen.get(name));
                    // A provider that another one requires by name does not count.
                    let is_counted = is_alike && case.lists_all() && case.names_no_provider();
                    prop_assert!(
                        !is_counted || case.brought(&chosen) <= case.brought(other),
                        "{other:?} has fewer providers than {chosen:?}"
                    );
                    let rank = |of: &Choice, name: &usize| case.rank(*name, of[name]);
                    let is_higher = |name: &usize| rank(other, name) > rank(&chosen, name);
                    let is_better = direct.iter().any(is_higher)
                        && direct.iter().all(|name| rank(other, name) >= rank(&chosen, name));
                    // A provider that no registry lists is looked for only if nothing else fits, not to raise
                    // something.
                    prop_assert!(
                        !is_better || !case.lists_all(),
                        "{other:?} is better than {chosen:?}"
                    );
                }
            }
            Err(Failure::Conflict(conflict)) => {
                prop_assert!(solutions.is_empty(), "{solutions:?} hold\n{conflict}");
            }
            Err(Failure::Unavailable(error)) => prop_assert!(false, "{error}"),
            Err(Failure::Unfinished(error)) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn minimal_gives_everyone_a_provider_and_nothing_two(case in case()) {
        match Minimal.select(&case.memory(), &case.request()) {
            Ok(selection) => {
                let chosen = choice(&selection);
                prop_assert!(case.is_sound(&chosen), "{chosen:?} does not hold");
            }
            Err(Failure::Conflict(conflict)) => prop_assert!(!conflict.to_string().is_empty()),
            Err(Failure::Unavailable(error)) => prop_assert!(false, "{error}"),
            Err(Failure::Unfinished(error)) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn without_any_one_line_the_others_can_be_met(case in case()) {
        for is_minimal in [false, true] {
            // With the minimal strategy, a package with fewer requirements may get a provider that makes
            // another one unnecessary.
            let case = if is_minimal { case.steady() } else { case.clone() };
            let (memory, request) = (case.memory(), case.request());
            let strategy: &dyn Selecting = if is_minimal { &Minimal } else { &Highest };
            let Err(Failure::Conflict(conflict)) = strategy.select(&memory, &request) else { continue };
            let lines: Vec<&Fact> = conflict.facts.iter().filter(|fact| matches!(
                fact,
                Fact::Requires { by: Requirer::Roots(_), .. }
                    | Fact::RequiresCapability { by: Requirer::Roots(_), .. }
            )).collect();
            let only = |lines: &[&Fact]| {
                let mut only = request.clone();
                only.roots[0].requirements.retain(|one| lines.iter().any(|line| {
                    matches!(line, Fact::Requires { id, asked, .. }
                        if *id == one.id && asked.contains(&one.to_string()))
                }));
                only.own.requires.retain(|name, _| lines.iter().any(|line| {
                    matches!(line, Fact::RequiresCapability { capability, .. } if capability == name)
                }));
                strategy.select(&memory, &only)
            };
            prop_assert!(!lines.is_empty(), "{conflict}");
            // Two packages that no registry lists may keep each other in use.
            let is_told_whole = only(&lines).is_err();
            prop_assert!(is_told_whole || !case.lists_all(), "{conflict}");
            // A provider that no registry lists counts only because something requires it, so that
            // requirement is in the conflict too.
            for dropped in (0..lines.len()).filter(|_| is_told_whole && case.lists_all()) {
                let mut others = lines.clone();
                let line = others.remove(dropped);
                prop_assert!(only(&others).is_ok(), "{line:?} is not needed: {conflict}");
            }
        }
    }

    #[test]
    fn every_way_out_leads_out(case in case(), excluded in proptest::option::of(0..NAMES.len())) {
        let mut request = case.request();
        let exclude = excluded.map(|name| Exclusion { id: id(NAMES[name]), spec: None });
        request.settings.exclude.extend(exclude);
        let memory = case.memory();
        for strategy in [&Highest as &dyn Selecting, &Minimal] {
            let Err(Failure::Conflict(conflict)) = strategy.select(&memory, &request) else { continue };
            let ways = lead_out(strategy, &memory, &request, &conflict)?;
            // If dropping a requirement is enough, that is always found. Providers that no registry lists are
            // not searched for.
            let is_told = |wish: &Requirement| conflict.facts.iter().any(|fact| {
                matches!(fact, Fact::Requires { by: Requirer::Roots(_), id, .. } if *id == wish.id)
            });
            let is_about = |fact: &Fact| {
                matches!(fact, Fact::RequiresCapability { .. } | Fact::Provides { .. })
            };
            let wishes = request.roots.iter().flat_map(|root| &root.requirements);
            for wish in wishes.filter(|wish| is_told(wish)) {
                let mut without = request.clone();
                for root in &mut without.roots {
                    root.requirements.retain(|one| one.id != wish.id);
                }
                let helps = case.lists_all()
                    && conflict.facts.iter().any(is_about)
                    && strategy.select(&memory, &without).is_ok();
                prop_assert!(!helps || !ways.is_empty(), "nothing was found\n{conflict}");
            }
        }
    }
}
