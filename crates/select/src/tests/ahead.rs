//! How often selection waits with a cold index.

use super::world::{Memory, requirement};
use crate::{Highest, RootRequirer, SelectionRequest, Strategy as _};

/// A graph of some levels: each package needs three of the next level.
fn levels(depth: usize, width: usize) -> Memory {
    let mut memory = Memory::default();
    for level in 0..depth {
        for place in 0..width {
            let below = (0..3).map(|step| format!("l{}-{}#^1", level + 1, (place + step) % width));
            let needs: Vec<_> = below.map(|need| requirement(&need)).collect();
            let needs = if level + 1 < depth { needs } else { Vec::new() };
            let versions = ["1.0.0", "1.1.0"].map(|number| (number.to_owned(), needs.clone()));
            memory.hub(&format!("l{level}-{place}"), versions.to_vec());
        }
    }
    memory
}

fn request(width: usize) -> SelectionRequest {
    let requirements = (0..width).map(|place| requirement(&format!("l0-{place}"))).collect();
    SelectionRequest {
        roots: vec![RootRequirer { by: "shop".to_owned(), requirements }],
        ..SelectionRequest::default()
    }
}

#[test]
fn a_cold_index_is_waited_for_about_as_often_as_the_graph_is_deep() {
    let (depth, width) = (6, 10);
    let memory = levels(depth, width);
    let selection = Highest.select(&memory, &request(width)).expect("all fits together");
    assert_eq!(selection.packages.len(), depth * width);
    let asked = memory.asked.lock().expect("nothing panicked");
    assert_eq!(asked.waves.len(), depth, "{:?}", asked.waves);
    assert!(asked.unexpected.is_empty(), "{:?}", asked.unexpected);
}

#[test]
fn an_index_at_hand_is_asked_only_about_what_the_search_comes_to() {
    let mut memory = levels(4, 5);
    memory.is_at_hand = true;
    let selection = Highest.select(&memory, &request(5)).expect("all fits together");
    assert_eq!(selection.statistics.versions_read, 20);
    assert_eq!(memory.versions_read(), 20);
    assert_eq!(selection.statistics.packages_read, 20);
}
