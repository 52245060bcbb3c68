//! Small worlds that no search can finish: it stops after a number of steps that is the same on every
//! machine, and says what to do. Smaller worlds of the same kind finish.

use super::world::{Memory, id, requirement};
use crate::universe::Requirement;
use crate::{
    Failure, Highest, Minimal, RootRequirer, STEPS, SelectionRequest, Settings, Strategy,
    Unfinished, WayOut,
};

/// A small generator of numbers that look random and are always the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// A package, and its only accepted version.
type RequirementIndex = (String, usize);

fn asked((package, version): &RequirementIndex) -> Requirement {
    requirement(&format!("{package}#1.{version}.0"))
}

/// Adds a package of which each version has its own needs.
fn add(memory: &mut Memory, package: &str, versions: &[Vec<RequirementIndex>]) {
    let versions = versions.iter().enumerate();
    let versions = versions
        .map(|(number, needs)| (format!("1.{number}.0"), needs.iter().map(asked).collect()));
    memory.hub(package, versions.collect());
}

fn at_hand() -> Memory {
    let mut memory = Memory::default();
    memory.is_at_hand = true;
    memory
}

fn request(packages: impl IntoIterator<Item = String>, patience: usize) -> SelectionRequest {
    let requirements = packages.into_iter().map(|package| requirement(&package)).collect();
    let settings = Settings { patience: Some(patience), ..Settings::default() };
    let roots = vec![RootRequirer { by: "shop".to_owned(), requirements }];
    SelectionRequest { roots, settings, ..SelectionRequest::default() }
}

/// Pigeons, each of which needs its own hole; a hole has a version for each of them.
fn pigeons(count: usize, holes: usize, patience: usize) -> (Memory, SelectionRequest) {
    let mut memory = at_hand();
    for pigeon in 0..count {
        let versions: Vec<_> =
            (0..holes).map(|hole| vec![(format!("hole{hole}"), pigeon)]).collect();
        add(&mut memory, &format!("pigeon{pigeon}"), &versions);
    }
    for hole in 0..holes {
        add(&mut memory, &format!("hole{hole}"), &vec![Vec::new(); count]);
    }
    (memory, request((0..count).map(|pigeon| format!("pigeon{pigeon}")), patience))
}

/// Bits around a ring with chords, three at each corner, whose sum must be even at all corners but one. Each
/// bit counts twice, so that is impossible.
fn parity(corners: usize, patience: usize) -> (Memory, SelectionRequest) {
    let mut dice = Dice(7);
    let mut chords: Vec<usize> = (0..corners).collect();
    for last in (1..corners).rev() {
        chords.swap(last, dice.roll(last + 1));
    }
    let ring = (0..corners).map(|corner| (corner, (corner + 1) % corners));
    let ends: Vec<(usize, usize)> =
        ring.chain(chords.chunks(2).map(|pair| (pair[0], pair[1]))).collect();
    let mut memory = at_hand();
    for bit in 0..ends.len() {
        add(&mut memory, &format!("bit{bit}"), &[Vec::new(), Vec::new()]);
    }
    for corner in 0..corners {
        let bits: Vec<usize> =
            (0..ends.len()).filter(|&bit| ends[bit].0 == corner || ends[bit].1 == corner).collect();
        let sums = (0..1_usize << bits.len())
            .filter(|sum| sum.count_ones() as usize % 2 == usize::from(corner == 0));
        let needs = |sum: usize| {
            let values = bits.iter().enumerate();
            values.map(|(index, bit)| (format!("bit{bit}"), sum >> index & 1)).collect()
        };
        let versions: Vec<Vec<RequirementIndex>> = sums.map(needs).collect();
        add(&mut memory, &format!("corner{corner}"), &versions);
    }
    (memory, request((0..corners).map(|corner| format!("corner{corner}")), patience))
}

/// Clauses of three literals, so many that hardly anything satisfies all.
fn satisfiability(variables: usize, patience: usize) -> (Memory, SelectionRequest) {
    let mut dice = Dice(3);
    let mut memory = at_hand();
    for variable in 0..variables {
        add(&mut memory, &format!("variable{variable}"), &[Vec::new(), Vec::new()]);
    }
    let clauses = variables * 426 / 100;
    for clause in 0..clauses {
        let literals: Vec<Vec<RequirementIndex>> = (0..3)
            .map(|_| vec![(format!("variable{}", dice.roll(variables)), dice.roll(2))])
            .collect();
        add(&mut memory, &format!("clause{clause}"), &literals);
    }
    (memory, request((0..clauses).map(|clause| format!("clause{clause}")), patience))
}

#[track_caller]
fn stopped(strategy: &dyn Strategy, (memory, request): &(Memory, SelectionRequest)) -> Unfinished {
    match strategy.select(memory, request) {
        Err(Failure::Unfinished(unfinished)) => *unfinished,
        Err(Failure::Conflict(conflict)) => panic!("came to an end:\n{conflict}"),
        other => panic!("{other:?}"),
    }
}

fn ways_on(memory: &Memory, request: &SelectionRequest, unfinished: Unfinished) -> Vec<WayOut> {
    Highest.ways_out(memory, request, &Failure::Unfinished(Box::new(unfinished)))
}

#[track_caller]
fn conflict((memory, request): &(Memory, SelectionRequest)) -> String {
    match Highest.select(memory, request) {
        Err(Failure::Conflict(conflict)) => conflict.to_string(),
        other => panic!("{other:?}"),
    }
}

const FEW: usize = 2_000;

#[test]
fn searches_that_would_not_end_are_stopped_and_name_what_they_turn_round_in() {
    let unfinished = stopped(&Highest, &pigeons(12, 11, FEW));
    assert_eq!((unfinished.steps, unfinished.packages.len()), (FEW, 5), "{unfinished:?}");
    let text = unfinished.to_string();
    assert!(text.starts_with("most conflicts were about "), "{text}");
    assert!(text.contains("pigeon") && text.contains(" other packages"), "{text}");
    let again = stopped(&Highest, &pigeons(12, 11, FEW));
    assert_eq!(again, unfinished, "the same question has the same answer");
    for world in [parity(34, FEW), satisfiability(150, FEW)] {
        assert_eq!(stopped(&Highest, &world).packages.len(), 5);
    }
}

#[test]
fn the_same_worlds_come_to_an_end_where_they_are_small() {
    for world in [pigeons(5, 4, STEPS), parity(8, STEPS)] {
        assert!(!conflict(&world).is_empty());
    }
    let (memory, request) = pigeons(6, 6, STEPS);
    assert!(Highest.select(&memory, &request).is_ok(), "there is a hole for each");
}

#[test]
fn a_choice_counts_for_more_the_more_a_search_has_learned() {
    use crate::effort::Effort;
    use crate::node::Node;
    let mut effort = Effort::default();
    effort.begin();
    assert_eq!(effort.count_choice(), 1);
    effort.note(Node(3), 40_960);
    effort.note(Node(3), 40_960);
    assert_eq!(effort.count_choice(), 11, "what was noted before is not noted again");
    effort.begin();
    assert_eq!((effort.count_choice(), effort.steps()), (1, 13));
    assert_eq!(effort.conflicts().collect::<Vec<_>>(), [(Node(3), 40_960)]);
}

#[test]
fn where_a_search_is_stopped_what_helps_was_tried() {
    // The oldest versions fit together, and one version too many of something is the newest of all.
    let (mut memory, mut request) = pigeons(12, 11, FEW);
    for pigeon in 0..12 {
        memory.release(&format!("pigeon{pigeon}"), "0.9.0", Vec::new(), false);
    }
    request.roots[0].requirements = vec![requirement("all#^1")];
    let needs = |least: &str| {
        (0..12).map(|pigeon| requirement(&format!("pigeon{pigeon}#>={least}"))).collect::<Vec<_>>()
    };
    memory.hub("all", vec![("1.0.0".to_owned(), needs("0.9.0"))]);
    // Every pigeon could do without a hole, but the newest of them cannot be refuted first.
    let least = Minimal.select(&memory, &request);
    assert!(least.is_ok(), "{least:?}");
    let unfinished = Unfinished {
        steps: FEW,
        packages: vec![id("pigeon0"), id("pigeon1")],
        ..Unfinished::default()
    };
    let ways = ways_on(&memory, &request, unfinished);
    assert_eq!(ways.last(), Some(&WayOut::Minimal), "{ways:?}");
    for way in &ways {
        if let WayOut::Ask(asks) = way {
            for ask in asks {
                request.roots[0].requirements.push(ask.to.clone());
            }
            assert!(Highest.select(&memory, &request).is_ok(), "{asks:?}");
        }
    }
}

#[test]
fn nothing_is_suggested_that_does_not_help() {
    let (memory, request) = pigeons(12, 11, FEW);
    let unfinished = stopped(&Highest, &pigeons(12, 11, FEW));
    assert_eq!(ways_on(&memory, &request, unfinished), []);
}

/// Capabilities of which each is provided by packages that cannot be used beside each other's.
fn clashing(capabilities: usize, providers: usize, patience: usize) -> (Memory, SelectionRequest) {
    use crate::releases::{ChosenFacts, Details, Entry};
    use crate::tests::world::{Package, version};
    let mut memory = at_hand();
    let package = |details: Details, needs: Vec<Requirement>| {
        let entry = Entry { details: Some(details.into()), ..Entry::from(version("1.0.0")) };
        Package { versions: vec![(entry, needs)], ..Package::default() }
    };
    memory.hub("shared", vec![("1.0.0".to_owned(), Vec::new())]);
    let mut required = Vec::new();
    for capability in 0..capabilities {
        let name = format!("capability{capability}");
        let mut listed = Vec::new();
        for provider in 0..providers {
            let own = id(&format!("c{capability}p{provider}"));
            let provides = Details::from(ChosenFacts {
                provides: vec![name.clone()],
                ..ChosenFacts::default()
            });
            // Only the provider of the last capability is broken, so all others are tried in vain, in every
            // combination.
            let is_last = capability + 1 == capabilities;
            let needs = vec![requirement(if is_last { "shared#^2" } else { "shared#^1" })];
            memory.add(own.clone(), package(provides, needs));
            listed.push(own);
        }
        memory.list(&name, listed);
        required.push(name);
    }
    let requires = Details::from(ChosenFacts { requires: required, ..ChosenFacts::default() });
    memory.add(id("app"), package(requires, Vec::new()));
    (memory, request(["app".to_owned()], patience))
}

#[test]
fn the_minimal_strategy_does_not_try_every_combination_of_providers() {
    // 10 to the 8th lists would have to be built.
    let unfinished = stopped(&Minimal, &clashing(8, 10, FEW));
    assert!(unfinished.packages[0].as_str().contains("/c"), "{unfinished:?}");
    let (memory, request) = clashing(2, 3, STEPS);
    assert!(matches!(Minimal.select(&memory, &request), Err(Failure::Conflict(_))));
}

#[test]
fn a_broken_provider_is_given_up_once() {
    const BROKEN: usize = 300;
    // Each is looked at, and where it is given up the next one is: three choices each, and a search begun again.
    let (mut memory, request) = clashing(1, BROKEN, 10 * BROKEN);
    let result = Highest.select(&memory, &request);
    assert!(matches!(result, Err(Failure::Conflict(_))), "{result:?}");
    memory.release("shared", "2.0.0", Vec::new(), false);
    let selection = Highest.select(&memory, &request).expect("the first will do then");
    assert!(selection.find(&id("c0p0")).is_some(), "the order of the list decides");
}

#[test]
fn a_conflict_of_many_packages_fits_a_screen() {
    let mut memory = at_hand();
    let versions = (0..400)
        .map(|minor| (format!("1.{minor}.0"), vec![requirement(&format!("missing{minor}"))]));
    memory.hub("app", versions.collect());
    let request = request(["app".to_owned()], STEPS);
    for (strategy, (memory, request)) in [
        (&Highest as &dyn Strategy, &(memory, request)),
        (&Highest, &clashing(1, 400, STEPS)),
        (&Minimal, &clashing(1, 400, STEPS)),
        (&Minimal, &clashing(2, 20, STEPS)),
    ] {
        let Err(Failure::Conflict(conflict)) = strategy.select(memory, request) else {
            panic!("nothing fits together")
        };
        let text = conflict.to_string();
        assert!(text.lines().count() <= 40 && text.len() < 4_000, "{text}");
        assert!(text.contains("more such lines"), "{text}");
        assert!(conflict.facts.len() <= 300, "{}", conflict.facts.len());
        assert!(conflict.clashes.len() < 5 || text.contains("more like these"), "{text}");
    }
}
