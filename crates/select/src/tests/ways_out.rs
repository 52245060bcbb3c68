//! Explanations of conflicts in random worlds: each is minimal, and every way out works.

use mu_manifest::reference::VersionSpec;
use proptest::prelude::*;

use super::many;
use super::random::{self, Case};
use super::world::{Memory, id, requirement};
use crate::{
    Conflict, Exclusion, Fact, Failure, Highest, Majors, Minimal, Override, Requirer, RootRequirer,
    Selection, SelectionRequest, Strategy as Selecting, WayOut,
};

/// A random question, some of whose packages have excluded versions.
fn question() -> impl Strategy<Value = (Case, SelectionRequest)> {
    let excluded = proptest::option::weighted(0.3, (0..5usize, 0..4usize));
    (random::case(), excluded, any::<bool>()).prop_map(|(case, excluded, locked)| {
        let mut request = case.request();
        request.settings.exclude.extend(excluded.map(|(name, version)| Exclusion {
            id: id(["a", "b", "c", "d", "e"][name]),
            spec: VersionSpec::parse(["1.0.0", "^1", "^2", ">=1.1"][version]).ok(),
        }));
        if locked {
            request.locked = case.locked();
        }
        (case, request)
    })
}

/// The request after a way out was applied.
fn take(request: &SelectionRequest, way_out: &WayOut) -> (SelectionRequest, bool) {
    let mut request = request.clone();
    let mut is_highest = false;
    match way_out {
        WayOut::Runtime(fact, value) => {
            request.settings.runtime.insert(fact.clone(), value.clone());
        }
        WayOut::Ask(asks) | WayOut::Withdrawn(asks) => {
            for ask in asks {
                let mut roots = request.roots.iter_mut();
                let Some(root) = roots.find(|root| root.by == ask.by) else {
                    assert!(ask.from.is_none(), "no root of that name asks for something");
                    let requirements = vec![ask.to.clone()];
                    request.roots.push(RootRequirer { by: ask.by.clone(), requirements });
                    continue;
                };
                if let Some(from) = &ask.from {
                    let before = root.requirements.len();
                    root.requirements.retain(|one| one != from);
                    assert!(root.requirements.len() < before, "{from} was not asked for");
                }
                root.requirements.push(ask.to.clone());
            }
        }
        WayOut::GiveUp(id) => {
            for root in &mut request.roots {
                root.requirements.retain(|one| one.id != *id);
            }
        }
        WayOut::Include(id) => request.settings.exclude.retain(|one| one.id != *id),
        WayOut::AnyAge => request.settings.published_before = None,
        WayOut::Bundle(by, id) => {
            let (by, id) = (by.clone(), Some(id.clone()));
            request.settings.bundled.insert(crate::Bundled { by, id });
        }
        WayOut::NoOverride(id) => {
            request.settings.overrides.remove(id);
        }
        WayOut::Replace(id, by) => {
            request.settings.replacements.insert(id.clone(), by.clone());
        }
        WayOut::TakePlace(by, id) => {
            let stated = &mut request.settings.stated_replaces;
            stated.entry(by.clone()).or_default().insert(id.clone());
        }
        WayOut::ManyMajors(_) => request.settings.majors = Majors::Many,
        WayOut::Override(id, version) => {
            let spec = VersionSpec::parse(version).expect("is a version");
            let instead = Override { id: id.clone(), spec };
            request.settings.overrides.insert(id.clone(), instead);
        }
        WayOut::Forget(id, _) => {
            request.installed.remove(id);
            request.locked.retain(|locked| locked.id != *id);
        }
        WayOut::Highest => is_highest = true,
        WayOut::Minimal => unreachable!("no conflict has this way out"),
        WayOut::Together(all) => {
            for one in all {
                request = take(&request, one).0;
            }
        }
    }
    (request, is_highest)
}

fn failed(result: Result<Selection, Failure>) -> Option<Conflict> {
    match result {
        Err(Failure::Conflict(conflict)) => Some(*conflict),
        _ => None,
    }
}

/// Takes every way out of a conflict, and checks that it works; returns the ways out.
pub(super) fn lead_out(
    strategy: &dyn Selecting,
    memory: &Memory,
    request: &SelectionRequest,
    conflict: &Conflict,
) -> Result<Vec<WayOut>, TestCaseError> {
    let failure = Failure::Conflict(Box::new(conflict.clone()));
    let ways = strategy.ways_out(memory, request, &failure);
    prop_assert!(ways.len() <= 3, "{ways:?}");
    for way_out in &ways {
        let (taken, is_highest) = take(request, way_out);
        let result = if is_highest {
            Highest.select(memory, &taken)
        } else {
            strategy.select(memory, &taken)
        };
        prop_assert!(result.is_ok(), "{way_out:?} leads nowhere\n{conflict}\n{:?}", failed(result));
    }
    Ok(ways)
}

/// Checks that every way out works, and that there is one if requiring any version would help, or, with the
/// minimal strategy, if the other strategy would help.
fn check(is_minimal: bool, case: &Case, request: &SelectionRequest) -> Result<(), TestCaseError> {
    let strategy: &dyn Selecting = if is_minimal { &Minimal } else { &Highest };
    let memory = case.memory();
    let Some(conflict) = failed(strategy.select(&memory, request)) else { return Ok(()) };
    let ways = lead_out(strategy, &memory, request, &conflict)?;
    let mut open = request.clone();
    if Highest.select(&memory, request).is_err() && !is_minimal {
        for one in open.roots.iter_mut().flat_map(|root| &mut root.requirements) {
            one.spec = VersionSpec::Latest;
        }
    }
    let has_one = Highest.select(&memory, &open).is_ok();
    prop_assert!(!has_one || !ways.is_empty(), "nothing was found\n{conflict}");
    Ok(())
}

/// The requirements of roots that a conflict names, each line alone.
fn named(conflict: &Conflict, request: &SelectionRequest) -> Vec<Vec<RootRequirer>> {
    let lines = conflict.facts.iter().filter_map(|fact| match fact {
        Fact::Requires { by: Requirer::Roots(names), id, asked } => Some((names, id, asked)),
        _ => None,
    });
    lines
        .map(|(names, id, asked)| {
            let roots = request.roots.iter().filter(|root| names.contains(&root.by));
            let told = |root: &RootRequirer| {
                let told = root
                    .requirements
                    .iter()
                    .filter(|one| one.id == *id && asked.contains(&one.to_string()));
                RootRequirer { requirements: told.cloned().collect(), ..root.clone() }
            };
            roots.map(told).collect()
        })
        .collect()
}

proptest! {
    #![proptest_config(many(500))]

    #[test]
    fn every_way_out_leads_out((case, request) in question()) {
        check(false, &case, &request)?;
    }

    #[test]
    fn every_way_out_of_the_minimal_strategy_leads_out((case, request) in question()) {
        check(true, &case, &request)?;
    }

    #[test]
    fn without_any_one_requirement_the_others_can_be_met((case, request) in question()) {
        for strategy in [&Highest as &dyn Selecting, &Minimal] {
            let memory = case.memory();
            let Some(conflict) = failed(strategy.select(&memory, &request)) else { continue };
            let named = named(&conflict, &request);
            let memory = case.without_yanks_of_pins().memory();
            let only = |lines: Vec<&Vec<RootRequirer>>| {
                let roots = lines.into_iter().flatten().cloned().collect();
                strategy.select(&memory, &SelectionRequest { roots, ..request.clone() })
            };
            prop_assert!(failed(only(named.iter().collect())).is_some(), "{conflict}");
            for dropped in 0..named.len() {
                let others = named.iter().enumerate().filter(|(index, _)| *index != dropped);
                let others = only(others.map(|(_, line)| line).collect());
                prop_assert!(others.is_ok(), "line {dropped} is not needed: {conflict}");
            }
        }
    }
}

#[test]
fn asks_keep_the_form_of_what_was_asked() {
    let mut memory = Memory::default();
    memory.hub("app", vec![("1.0.0".to_owned(), vec![requirement("vpc#^2")])]);
    let versions = ["1.0.0", "1.4.0", "2.0.0", "2.3.0", "3.0.0"];
    memory.hub("vpc", versions.map(|version| (version.to_owned(), Vec::new())).to_vec());
    for (asked, expected) in
        [("~1.4", "~2.3.0"), ("^1", "^2.3.0"), ("1.4.0", "2.3.0"), (">=3", ">=2.3.0")]
    {
        let requirements = vec![requirement("app#^1"), requirement(&format!("vpc#{asked}"))];
        let roots = vec![RootRequirer { by: "shop".to_owned(), requirements }];
        let request = SelectionRequest { roots, ..SelectionRequest::default() };
        let failure = Highest.select(&memory, &request).expect_err("cannot hold");
        let ways = Highest.ways_out(&memory, &request, &failure);
        let WayOut::Ask(asks) = &ways[0] else { panic!("{ways:?}") };
        assert_eq!(asks[0].to.to_string(), expected, "{asked}");
    }
}
