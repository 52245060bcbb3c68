//! Moves with the minimal strategy, on the classic examples, with the results that a user of Go expects after
//! `go mod tidy`: packages that nothing leads to any more are removed.

use std::sync::Arc;

use mu_manifest::reference::VersionSpec;

use super::format::{Scenario, without_base};
use super::moved;
use super::world::{Memory, Package, id, requirement, version};
use crate::releases::{ChosenFacts, Details, Entry};
use crate::{
    Because, Change, Failure, Minimal, Move, RootRequirer, Selection, SelectionRequest, Strategy,
};

/// A graph in short: `B1: D3` is version 1.3.0 of d, required as `>=1.3.0` by version 1.1.0 of b. The line of `A` is the
/// root's; a name alone means version 1.
struct Graph {
    memory: Memory,
    root: Vec<String>,
}

fn module(text: &str) -> (String, String) {
    let (name, number) = text.split_at(1);
    let number = if number.is_empty() { "1" } else { number };
    (name.to_lowercase(), format!("1.{number}.0"))
}

fn graph(text: &str) -> Graph {
    let mut graph = Graph { memory: Memory::default(), root: Vec::new() };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (of, needs) = line.split_once(':').expect("is a line of a graph");
        let needs: Vec<String> = needs.split_whitespace().map(ToOwned::to_owned).collect();
        if of == "A" {
            graph.root = needs;
            continue;
        }
        let (name, number) = module(of);
        let needs = needs.iter().map(|need| least(need)).collect();
        graph.memory.release(&name, &number, needs, false);
    }
    graph
}

fn least(text: &str) -> crate::universe::Requirement {
    let (name, number) = module(text);
    requirement(&format!("{name}#>={number}"))
}

impl Graph {
    fn request(&self) -> SelectionRequest {
        let requirements = self.root.iter().map(|need| least(need)).collect();
        SelectionRequest {
            roots: vec![RootRequirer { by: "shop".to_owned(), requirements }],
            ..SelectionRequest::default()
        }
    }

    #[track_caller]
    fn builds(&self, expected: &str) -> &Self {
        let selection = Minimal.select(&self.memory, &self.request()).expect("holds together");
        assert_eq!(short(&selection), expected);
        self
    }

    #[track_caller]
    fn updates(&self, expected: &str) -> &Self {
        let change = moved(&self.memory, &self.request(), Move::Everything);
        self.gives(change, expected, None)
    }

    #[track_caller]
    fn moves(&self, to: &str, expected: &str, requirements: Option<&str>) -> &Self {
        let (name, number) = module(to);
        let to = VersionSpec::parse(&number).expect("is a version");
        let change = moved(&self.memory, &self.request(), Move::To(&id(&name), &to));
        self.gives(change, expected, requirements)
    }

    #[track_caller]
    fn gives(
        &self,
        change: Result<Change, Failure>,
        expected: &str,
        requirements: Option<&str>,
    ) -> &Self {
        let change = match change {
            Ok(change) => change,
            Err(Failure::Conflict(conflict)) => panic!("{conflict}"),
            Err(Failure::Unavailable(error)) => panic!("{error}"),
            Err(Failure::Unfinished(error)) => panic!("{error}"),
        };
        assert_eq!(short(&change.selection), expected);
        if let Some(requirements) = requirements {
            let all = change.asked.iter().flatten().flatten().chain(&change.indirect);
            let text: Vec<String> =
                all.map(|one| format!("{}{}", one.id.name_str(), one.spec)).collect();
            assert_eq!(text.join(" "), requirements);
        }
        self
    }
}

/// `B1 C2`, as the graph has it.
fn short(selection: &Selection) -> String {
    let module = |chosen: &crate::Chosen| {
        let version = chosen.version.as_ref().and_then(|version| version.as_semver().cloned());
        let minor = version.expect("has a version").minor;
        format!("{}{minor}", chosen.id.name_str().to_uppercase())
    };
    selection.packages.iter().map(module).collect::<Vec<_>>().join(" ")
}

const BLOG: &str = "
    A: B1 C2
    B1: D3
    C1: D2
    C2: D4
    C3: D5
    C4: G1
    D2: E1
    D3: E2
    D4: E2 F1
    D5: E2
    E1:
    E2:
    F1:
    G1: C4";

#[test]
fn the_example_that_explains_the_method() {
    graph(BLOG).builds("B1 C2 D4 E2 F1").updates("B1 C4 D5 E2 G1").moves(
        "C4",
        "B1 C4 D4 E2 F1 G1",
        Some("b>=1.1.0 c>=1.4.0 d>=1.4.0"),
    );
}

#[test]
fn a_downgrade_lowers_and_drops_and_keeps_the_rest() {
    let mut graph = graph(BLOG);
    graph.root = ["B1", "C4", "D4"].map(str::to_owned).to_vec();
    graph.moves("D2", "C4 D2 E2 G1", None);
    let to = VersionSpec::parse("1.2.0").expect("is a version");
    let change = moved(&graph.memory, &graph.request(), Move::To(&id("d"), &to));
    let change = change.unwrap_or_else(|_| panic!("is possible"));
    let lowered: Vec<String> = change
        .lowered
        .iter()
        .map(|one| {
            let why = one.because.as_ref().map(|because| match because {
                Because::Needs(needs, at) => format!("{needs} {at}"),
                other => format!("{other:?}"),
            });
            format!("{} {} to {:?}: {why:?}", one.id.name_str(), one.from, one.to)
        })
        .collect();
    assert_eq!(
        lowered,
        [r#"b 1.1.0 to None: Some("hub.mu.com/d 1.3.0")"#, "f 1.1.0 to None: None"]
    );
}

#[test]
fn requirements_of_superseded_versions_stay() {
    graph("A: B1 C2\nB1: D3\nB2:\nC2: B2\nD3:").builds("B2 C2 D3");
    graph("A: B C\nB: D1\nC: D2\nD1: E2\nD2: E1\nE1:\nE2:").builds("B1 C1 D2 E2");
}

#[test]
fn a_downgrade_follows_what_needs_the_lowered_package() {
    graph("A: B2\nB1: C1\nB2: C2\nC1:\nC2:").builds("B2 C2").moves("C1", "B1 C1", Some("b>=1.1.0"));
    graph("A: B2 E2\nB1:\nB2: C2 F2\nC1:\nC2: D2 E2\nD1:\nD2: B2\nE1:\nE2: D2\nF1:\nF2:")
        .builds("B2 C2 D2 E2 F2")
        .moves("F1", "B1 E1 F1", None);
}

#[test]
fn a_downgrade_never_raises_anything() {
    graph("A: B2 C1\nB1: C2\nB2: C1\nC1: D2\nC2:\nD1:\nD2:")
        .builds("B2 C1 D2")
        .moves("D1", "D1", None);
}

#[test]
fn an_update_goes_no_further_than_what_is_asked_for() {
    let mut memory = Memory::default();
    for number in ["1.0.0", "1.1.0", "2.0.0"] {
        memory.release("elk", number, vec![requirement("log#~1.0")], false);
        memory.release("log", number, Vec::new(), false);
    }
    memory.release("log", "1.0.7", Vec::new(), false);
    let requirements = vec![requirement("elk#^1")];
    let request = SelectionRequest {
        roots: vec![RootRequirer { by: "shop".to_owned(), requirements }],
        ..SelectionRequest::default()
    };
    let graph = Graph { memory, root: Vec::new() };
    let everything = moved(&graph.memory, &request, Move::Everything);
    graph.gives(everything, "ELK1 LOG0", Some("elk^1.1.0 log>=1.0.7"));
    let one = moved(&graph.memory, &request, Move::Raise(&[id("elk")]));
    graph.gives(one, "ELK1 LOG0", Some("elk^1.1.0"));
}

#[test]
fn a_version_that_breaks_a_bound_is_refused() {
    let graph = graph("A: B1 C1\nB1:\nB2: C2\nC1:\nC2:");
    let mut request = graph.request();
    request.roots[0].requirements[1] = requirement("c#1.1.0");
    let to = VersionSpec::parse("1.2.0").expect("is a version");
    let change = moved(&graph.memory, &request, Move::To(&id("b"), &to));
    let Err(Failure::Conflict(conflict)) = change else { panic!("the pin is broken") };
    assert_eq!(
        without_base(&conflict.to_string()),
        "this command requires b 1.2.0\nb 1.2.0 requires c >=1.2.0\nshop requires c 1.1.0\n\
         at least c 1.2.0 is needed, which is not 1.1.0"
    );
}

/// A world in short, with bounds: `b 1.1.0: d#>=1.1.0 e#<1.2.0`, a line each; the line of `A` is the root's.
fn bounded(text: &str) -> (Memory, SelectionRequest) {
    let mut memory = Memory::default();
    let mut requirements = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (of, needs) = line.split_once(':').expect("is a line of a world");
        let needs = needs.split_whitespace().map(requirement).collect();
        match of.split_once(' ') {
            Some((name, number)) => memory.release(name, number, needs, false),
            None => requirements = needs,
        }
    }
    let roots = vec![RootRequirer { by: "shop".to_owned(), requirements }];
    (memory, SelectionRequest { roots, ..SelectionRequest::default() })
}

#[track_caller]
fn lowers(world: &str, to: &str, expected: &str, lowered: &[&str]) {
    let (memory, request) = bounded(world);
    let to = requirement(to);
    let change = moved(&memory, &request, Move::To(&to.id, &to.spec));
    let change = change.unwrap_or_else(|failure| panic!("{failure:?}"));
    assert_eq!(short(&change.selection), expected);
    let told = change.lowered.iter().map(|one| {
        let to = one.to.as_deref().unwrap_or("nothing");
        format!("{} {} to {to}: {:?}", one.id.name_str(), one.from, one.because)
    });
    let told: Vec<String> = told.collect();
    assert_eq!(told.len(), lowered.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(lowered) {
        assert!(told.starts_with(expected), "{told} is not {expected}");
    }
}

#[test]
fn a_lowered_version_whose_bound_does_not_hold_goes_lower_still() {
    let world = "
        A: b#>=1.2.0 e#>=1.2.0
        b 1.0.0: d#>=1.1.0
        b 1.1.0: d#>=1.1.0 e#<1.2.0
        b 1.2.0: d#>=1.3.0
        d 1.1.0:
        d 1.2.0:
        d 1.3.0:
        e 1.1.0:
        e 1.2.0:";
    lowers(world, "d#1.2.0", "B0 D2 E2", &["b 1.2.0 to 1.0.0: Some(Needs("]);
    let without = world.replace("b 1.0.0: d#>=1.1.0", "");
    lowers(&without, "d#1.2.0", "D2 E2", &["b 1.2.0 to nothing: Some(Needs("]);
    // What it needs may not exist.
    let without = without.replace("e#<1.2.0", "e#>=7");
    lowers(&without, "d#1.2.0", "D2 E2", &["b 1.2.0 to nothing: Some(Needs("]);
}

#[test]
fn what_the_target_has_an_upper_bound_for_goes_down() {
    let world = "
        A: d#>=1.3.0 e#>=1.2.0
        d 1.2.0: e#<1.2.0
        d 1.3.0:
        e 1.1.0:
        e 1.2.0:";
    lowers(world, "d#1.2.0", "D2 E1", &["e 1.2.0 to 1.1.0: Some(Asked(\"hub.mu.com/d 1.2.0\""]);
}

#[test]
fn who_does_not_accept_a_lowered_version_goes_lower_too() {
    let world = "
        A: b#>=1.1.0 d#>=1.3.0
        b 1.0.0:
        b 1.1.0: d#~1.1.0||~1.3.0
        d 1.1.0:
        d 1.2.0:
        d 1.3.0:";
    lowers(world, "d#1.2.0", "B0 D2", &["b 1.1.0 to 1.0.0: Some(Asks("]);
}

#[test]
fn who_requires_what_no_lower_version_provides_goes_lower_too() {
    let (mut memory, mut request) = (Memory::default(), SelectionRequest::default());
    let provides = |provides: &[&str], requires: &[&str]| {
        Details::from(ChosenFacts {
            provides: provides.iter().map(|&name| name.to_owned()).collect(),
            requires: requires.iter().map(|&name| name.to_owned()).collect(),
            ..ChosenFacts::default()
        })
    };
    let entry = |number: &str, details: Details| {
        let details = Some(Arc::new(details));
        (Entry { details, ..Entry::from(version(number)) }, Vec::new())
    };
    let package = |versions: Vec<_>| Package { versions, ..Package::default() };
    let old = entry("1.0.0", Details::default());
    memory.add(id("d"), package(vec![old.clone(), entry("1.1.0", provides(&["net"], &[]))]));
    memory.add(id("b"), package(vec![old, entry("1.1.0", provides(&[], &["net"]))]));
    let requirements = vec![requirement("b#>=1.1.0"), requirement("d#>=1.1.0")];
    request.roots = vec![RootRequirer { by: "shop".to_owned(), requirements }];
    let to = requirement("d#1.0.0");
    let change = moved(&memory, &request, Move::To(&to.id, &to.spec));
    let change = change.unwrap_or_else(|failure| panic!("{failure:?}"));
    assert_eq!(short(&change.selection), "B0 D0");
    assert_eq!(change.lowered[0].because, Some(Because::Capability("net".to_owned())));
}

#[test]
fn a_downgrade_goes_to_a_yanked_version_that_it_names() {
    let (mut memory, request) = bounded(
        "A: d#^2
        d 1.0.0: e#>=1.0.0
        d 2.0.0:",
    );
    memory.release("d", "1.1.0", Vec::new(), true);
    let to = requirement("d#1.1.0");
    let change = moved(&memory, &request, Move::To(&to.id, &to.spec));
    let change = change.unwrap_or_else(|failure| panic!("{failure:?}"));
    let chosen = change.selection.find(&to.id).and_then(|chosen| chosen.version.clone());
    assert_eq!(chosen, Some(version("1.1.0")));
}

#[test]
fn a_conflict_that_was_there_before_lowers_nothing() {
    let (memory, request) = bounded(
        "A: b#>=1.0.0 c#>=1.1.0 d#>=1.1.0
        b 1.0.0: c#<1.1.0
        c 1.0.0:
        c 1.1.0:
        d 1.0.0:
        d 1.1.0:",
    );
    let to = requirement("d#1.0.0");
    let change = moved(&memory, &request, Move::To(&to.id, &to.spec));
    assert!(matches!(change, Err(Failure::Conflict(_))), "{change:?}");
    let to = requirement("c#1.0.0");
    let change = moved(&memory, &request, Move::To(&to.id, &to.spec));
    assert_eq!(short(&change.expect("is mended by that").selection), "B0 C0 D1");
}

/// Updates everything, twice; the second time must change nothing.
#[track_caller]
fn updates_once(world: &str, expected: &str) {
    let scenario: Scenario = serde_yaml::from_str(world).expect("is a scenario");
    let (memory, request) = scenario.world();
    let change = moved(&memory, &request, Move::Everything).expect("holds together");
    assert_eq!(short(&change.selection), expected);
    let updated = change.rewritten_request(&request);
    let again = moved(&memory, &updated, Move::Everything).expect("holds together");
    assert_eq!(short(&again.selection), expected, "the second time");
}

#[test]
fn an_update_lowers_no_provider_to_raise_what_that_needs() {
    // c 1.1.0 would need d as a provider, which brings e; e provides what a does; without a, c would not be there.
    let world = "
        case: a provider that is only listed
        packages:
          a: {1.0.0: {provides: [disk]}, 1.1.0: {needs: [c#^1], provides: [disk], requires: [net]}}
          c: {1.0.0: {provides: [net]}, 1.1.0: []}
          d: {1.0.0: {needs: [e#>=1.1], provides: [net]}, 1.1.0: {provides: [net]}}
          e: {1.0.0: [], 1.1.0: {provides: [disk]}}
        capabilities: {net: [d], disk: [a]}
        own: {requires: {disk: [shop]}}
        roots: {shop: []}
        indirect: {shop: [a#>=1.0.0]}";
    updates_once(world, "A1 C0");
}

#[test]
fn an_update_goes_on_where_a_provider_was_held_by_a_superseded_version() {
    // Only b 1.0.0 needs e, which provides what a does; once b 1.1.0 is required, e may go and a may rise.
    let world = "
        case: a provider that nothing needs any more
        packages:
          a: {1.0.0: {provides: [disk]}, 1.1.0: {needs: [c#^1], provides: [disk], requires: [net]}}
          b: {1.0.0: [e#>=1.1], 1.1.0: []}
          c: {1.0.0: {provides: [net]}, 1.1.0: []}
          e: {1.0.0: [], 1.1.0: {provides: [disk]}, 1.2.0: {provides: [net]}}
        own: {requires: {net: [shop]}}
        roots: {shop: [a#>=1.0.0, b#>=1.0.0]}
        indirect: {shop: [e#>=1.2.0]}";
    updates_once(world, "A1 B1 C0");
}

#[test]
fn a_version_that_needs_a_higher_one_of_its_own_package_cannot_be_moved_to() {
    let (memory, request) = bounded(
        "A: c#>=1.0.0
        c 1.0.0:
        c 1.1.0: d#>=1.0.0
        c 1.2.0:
        d 1.0.0: c#>=1.2.0",
    );
    let to = requirement("c#1.1.0");
    let change = moved(&memory, &request, Move::To(&to.id, &to.spec));
    let Err(Failure::Conflict(conflict)) = change else { panic!("{change:?}") };
    assert_eq!(
        without_base(&conflict.to_string()),
        "this command requires c 1.1.0\nc 1.1.0 requires d >=1.0.0\nd 1.0.0 requires c >=1.2.0\n\
         at least c 1.2.0 is needed, which is not 1.1.0"
    );
}

#[test]
fn a_lower_version_may_bring_what_was_not_there() {
    let world = "
        A: b#^1.2
        b 1.1.0: c#^1.0
        b 1.2.0: d#^1.2
        c 1.0.0:
        d 1.1.0:
        d 1.2.0:";
    lowers(world, "d#1.1.0", "B1 C0 D1", &["b 1.2.0 to 1.1.0: Some(Needs("]);
    // But what that needs raises nothing that was there.
    let raising = world.replace("c 1.0.0:", "c 1.0.0: d#>=1.2.0");
    lowers(&raising, "d#1.1.0", "D1", &["b 1.2.0 to nothing: Some(Needs("]);
}
