//! Moves with the minimal strategy in random worlds: the written requirements lead to the reported selection.

use std::collections::{BTreeMap, BTreeSet};

use mu_manifest::reference::{PackageId, Version, VersionSpec};
use proptest::prelude::*;

use super::random::{Case, NAMES, SPECS, VERSIONS, case, least, unbounded};
use super::random_virtual;
use super::world::{Memory, id, requirement, version};
use super::{many, moved};
use crate::{
    Change, Failure, Majors, Minimal, Move, RootRequirer, Selection, SelectionRequest, Statistics,
    Strategy as _, Update,
};

fn versions(selection: &Selection) -> BTreeMap<PackageId, Version> {
    let packages = selection.packages.iter();
    packages.filter_map(|chosen| Some((chosen.id.clone(), chosen.version.clone()?))).collect()
}

/// Checks that the rewritten requirements lead to the selection, and that nothing is left to tidy. Returns
/// the request.
fn check_stays(memory: &Memory, request: &SelectionRequest, change: &Change) -> SelectionRequest {
    let request = change.rewritten_request(request);
    let selection = Minimal.select(memory, &request);
    let chosen = selection.map(|selection| versions(&selection));
    assert_eq!(chosen.expect("holds together"), versions(&change.selection));
    check_answer(memory, &request, change);
    let again = moved(memory, &request, Move::Tidy).expect("holds together");
    assert_eq!(again.indirect, change.indirect);
    let own = request.roots.iter().map(|root| &root.requirements);
    for (asked, own) in again.asked.iter().zip(own) {
        assert_eq!(asked.iter().flatten().collect::<Vec<_>>(), own.iter().collect::<Vec<_>>());
    }
    request
}

/// Checks that the selection is also that of manifests which list what is required indirectly, and of no others.
fn check_answer(memory: &Memory, request: &SelectionRequest, change: &Change) {
    let mut written = request.clone();
    let listed = written.roots.pop().expect("is there").requirements;
    let (first, second): (Vec<_>, Vec<_>) = listed.into_iter().partition(|one| one.id < id("c"));
    for (by, requirements) in [("first", first), ("second", second)] {
        written.roots.push(RootRequirer { by: by.to_owned(), requirements });
    }
    written.indirect = 2;
    let statistics = Statistics::default();
    let plain = |selection: Selection| Selection { statistics, ..selection };
    let selected = Minimal.select(memory, &written).expect("holds together");
    assert_eq!(Minimal.planned(change, &written).map(plain), Some(plain(selected)));
    let mut other = written.clone();
    if other.roots.iter_mut().any(|root| root.requirements.pop().is_some()) {
        assert_eq!(Minimal.planned(change, &other), None);
    }
    assert_eq!(
        Minimal.planned(change, &SelectionRequest { update: Update::Everything, ..written }),
        None
    );
}

/// Also checks that each requirement that is only for others is needed.
fn check(memory: &Memory, request: &SelectionRequest, change: &Change) -> SelectionRequest {
    let request = check_stays(memory, request, change);
    for index in 0..change.indirect.len() {
        let mut fewer = request.clone();
        let list = fewer.roots.last_mut().expect("is there");
        let left_out = list.requirements.remove(index);
        if let Ok(selection) = Minimal.select(memory, &fewer) {
            assert_ne!(versions(&selection), versions(&change.selection), "{left_out:?}");
        }
    }
    request
}

/// Of each package, a version.
type Positions = BTreeMap<usize, usize>;

/// The textbook's downgrade: of all versions that need nothing above the limit, however far away, the
/// highest. Packages that were not there may have any version.
fn textbook(case: &Case, before: &Positions, of: usize, at: usize) -> Positions {
    let needs = |(name, at): (usize, usize)| {
        let version = case.packages[name].get(at);
        version.into_iter().flat_map(|version| &version.0).map(|&need| (need.0, least(need)))
    };
    let mut most = before.clone();
    most.insert(of, at);
    let all = case.packages.iter().enumerate();
    let all = all.flat_map(|(name, versions)| (0..versions.len()).map(move |at| (name, at)));
    let mut left: BTreeSet<(usize, usize)> =
        all.filter(|(name, at)| most.get(name).is_none_or(|most| at <= most)).collect();
    loop {
        let fits = |module: &&(usize, usize)| needs(**module).all(|need| left.contains(&need));
        let fitting: BTreeSet<(usize, usize)> = left.iter().filter(fits).copied().collect();
        if fitting.len() == left.len() {
            return left.into_iter().filter(|(name, _)| before.contains_key(name)).collect();
        }
        left = fitting;
    }
}

fn positions(selection: &Selection) -> Positions {
    let place = |id: &PackageId| NAMES.iter().position(|name| id.name_str() == *name);
    let chosen = versions(selection);
    let positions = chosen.iter().filter_map(|(id, chosen)| {
        Some((place(id)?, VERSIONS.iter().position(|number| version(number) == *chosen)?))
    });
    positions.collect()
}

fn is_conflict(failure: &Failure) -> bool {
    matches!(failure, Failure::Conflict(_))
}

proptest! {
    #![proptest_config(many(1_000))]

    #[test]
    fn moves_end_with_many_majors(case in case()) {
        let (memory, mut request) = (case.memory(), case.request());
        request.settings.majors = Majors::Many;
        for to in [Move::Clear, Move::Everything] {
            if let Ok(change) = moved(&memory, &request, to) {
                let written = change.rewritten_request(&request);
                let selection = Minimal.select(&memory, &written).expect("holds together");
                prop_assert_eq!(selection.packages, change.selection.packages.clone());
                check_answer(&memory, &written, &change);
            }
        }
    }

    #[test]
    fn what_is_written_leads_to_what_was_chosen(case in case(), of in 0..5_usize, at in 0..4_usize) {
        let (memory, request) = (case.memory(), case.request());
        let Ok(tidy) = moved(&memory, &request, Move::Tidy) else { return Ok(()) };
        let request = check(&memory, &request, &tidy);
        let Ok(clear) = moved(&memory, &request, Move::Clear) else { return Ok(()) };
        let request = check(&memory, &request, &clear);
        let before = versions(&clear.selection);

        match moved(&memory, &request, Move::Everything) {
            Ok(newest) => {
                let request = check(&memory, &request, &newest);
                let again = moved(&memory, &request, Move::Everything).expect("holds together");
                let again = versions(&again.selection);
                for (id, version) in versions(&newest.selection) {
                    prop_assert!(again.get(&id).is_none_or(|again| *again >= version));
                }
                // A package that nothing needs any more may come back at a lower version, if something new
                // excludes the old one.
                let chosen = positions(&newest.selection);
                for (id, version) in versions(&newest.selection) {
                    let is_refused = |before: &Version| {
                        let needs = chosen.iter().flat_map(|(&name, &at)| &case.packages[name][at].0);
                        let on_it = |need: &&(usize, usize)| id.name_str() == NAMES[need.0];
                        needs.filter(on_it).any(|need| {
                            let spec = requirement(&format!("a#{}", SPECS[need.1])).spec;
                            !spec.accepts(before, false)
                        })
                    };
                    let may_be = |before: &Version| *before <= version || is_refused(before);
                    prop_assert!(before.get(&id).is_none_or(may_be));
                }
            }
            Err(failure) => prop_assert!(is_conflict(&failure)),
        }

        let (package, to) = (id(NAMES[of]), VERSIONS[at]);
        let spec = VersionSpec::parse(to).expect("is a version");
        let Some(now) = before.get(&package) else { return Ok(()) };
        if let Ok(moved) = moved(&memory, &request, Move::Raise(std::slice::from_ref(&package))) {
            check(&memory, &request, &moved);
            // What it brought along may no longer need it.
            let moved = versions(&moved.selection);
            prop_assert!(moved.get(&package).is_none_or(|version| version >= now));
        }
        let requirements = vec![requirement(&format!("{package}#{to}"))];
        let roots = vec![RootRequirer { by: "shop".to_owned(), requirements }];
        let alone = Minimal.select(&memory, &SelectionRequest { roots, ..SelectionRequest::default() });
        let moved = match moved(&memory, &request, Move::To(&package, &spec)) {
            Ok(moved) => moved,
            Err(_) => {
                // Everything else goes lower, or away, until it fits, but nothing goes higher.
                let alone = alone.as_ref().map(versions).unwrap_or_default();
                let is_above = |(id, version)| before.get(id).is_some_and(|before| before < version);
                let is_refused = alone.is_empty() || alone.iter().any(is_above);
                prop_assert!(version(to) >= *now || is_refused, "{to} is refused");
                return Ok(());
            }
        };
        check(&memory, &request, &moved);
        let after = versions(&moved.selection);
        // A version that needs a higher one of its own package cannot be moved down to.
        prop_assert!(after.get(&package).is_none_or(|after| *after <= version(to)));
        if version(to) < *now {
            for (id, version) in &after {
                let is_fine = before.get(id).is_none_or(|before| version <= before);
                prop_assert!(is_fine, "{} was raised", id);
            }
            for (id, version) in &before {
                let is_said = moved.lowered.iter().any(|lowered| lowered.id == *id);
                prop_assert!(after.get(id) == Some(version) || *id == package || is_said);
            }
        }
    }

    #[test]
    fn providers_stay_whatever_a_registry_lists_later(case in random_virtual::case()) {
        let (memory, request) = (case.memory(), case.request());
        let Ok(tidy) = moved(&memory, &request, Move::Tidy) else { return Ok(()) };
        let tidied = check_stays(&memory, &request, &tidy);
        // The order of a registry's lists changes nothing.
        let turned = Minimal.select(&case.turned().memory(), &tidied).expect("holds together");
        prop_assert_eq!(versions(&turned), versions(&tidy.selection));

        let newest = moved(&memory, &tidied, Move::Everything).expect("holds together");
        let updated = check_stays(&memory, &tidied, &newest);
        let again = moved(&memory, &updated, Move::Everything).expect("holds together");
        prop_assert_eq!(versions(&again.selection), versions(&newest.selection));
        prop_assert_eq!(&again.indirect, &newest.indirect);
    }

    #[test]
    fn a_downgrade_without_bounds_is_the_textbooks(case in case(), of in 0..5_usize, at in 0..4_usize) {
        let case = unbounded(case);
        let memory = case.memory();
        let clear = moved(&memory, &case.request(), Move::Clear).expect("there are no bounds");
        let request = check(&memory, &case.request(), &clear);
        let before = positions(&clear.selection);
        if before.get(&of).is_none_or(|&now| at >= now) {
            return Ok(());
        }
        let expected = textbook(&case, &before, of, at);
        let spec = VersionSpec::parse(VERSIONS[at]).expect("is a version");
        let moved = moved(&memory, &request, Move::To(&id(NAMES[of]), &spec));
        let moved = moved.expect("there are no bounds");
        check(&memory, &request, &moved);
        let after = positions(&moved.selection);
        for name in before.keys() {
            match after.get(name) {
                Some(after) => prop_assert_eq!(Some(after), expected.get(name), "{}", NAMES[*name]),
                // Packages that nothing leads to any more are removed too.
                None => prop_assert!(
                    !expected.contains_key(name)
                        || (*name != of && case.roots.iter().all(|root| root.0 != *name)),
                    "{} is gone", NAMES[*name]
                ),
            }
        }
    }
}
