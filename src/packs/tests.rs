//! Checks that nothing in a file leads out of a packs folder.

use std::fs;
use std::path::{Component, Path};

use proptest::prelude::*;

use mu_provider::Digest;

use super::*;
use crate::packs::state::is_place;
use crate::store::Store;
use crate::workspace::Link;

/// Texts that could be places: parts that lead up, on, nowhere, or to mu's own folder, in all combinations.
fn place() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(".."),
        Just("."),
        Just(""),
        Just(".mu"),
        Just("hub.mu.com"),
        Just("a"),
        Just("link"),
        Just("victim"),
        Just("a\0b"),
        Just("..."),
        Just("@"),
        Just("\\..\\"),
        Just("C:"),
        Just("\u{202e}"),
    ];
    let usual = prop::collection::vec(part, 0..7).prop_map(|parts| parts.join("/"));
    prop_oneof![4 => usual, 1 => any::<String>(), 1 => Just("/".to_owned())]
}

struct World {
    around: tempfile::TempDir,
    packs: PacksFolder,
    store: Store,
}

/// A workspace with packs and links, among things that an attacker would want to reach.
fn world() -> World {
    let around = tempfile::tempdir().expect("a temporary folder");
    let at = |path: &str| around.path().join(path);
    for folder in ["victim/a", "work/.mu/packs/hub.mu.com/a", "work/.mu/packs/.mu", "work/src"] {
        fs::create_dir_all(at(folder)).expect("makes");
        fs::write(at(folder).join("file"), "precious").expect("writes");
    }
    #[cfg(unix)]
    for link in ["work/.mu/packs/link", "work/.mu/packs/hub.mu.com/link"] {
        std::os::unix::fs::symlink(at("victim"), at(link)).expect("links");
    }
    let cache = at("cache");
    let packs = PacksFolder::for_workspace(&at("work"), &cache);
    World { packs, store: Store::new(&cache), around }
}

/// Every file outside of the packs and the cache.
fn outside(world: &World) -> Vec<String> {
    let root = world.around.path();
    let is_own = |path: &Path| path.starts_with("cache") || path.starts_with("work/.mu/packs");
    let entries = walkdir::WalkDir::new(root).sort_by_file_name().into_iter().flatten();
    let paths = entries.map(|entry| entry.path().strip_prefix(root).expect("is below").to_owned());
    paths.filter(|path| !is_own(path)).map(|path| path.display().to_string()).collect()
}

proptest! {
    #[test]
    fn a_place_leads_below_the_packs_and_not_to_mus_own(text in place()) {
        if is_place(&text) {
            let mut parts = Path::new(&text).components();
            prop_assert_ne!(parts.next(), Some(Component::Normal(".mu".as_ref())));
            prop_assert!(Path::new(&text).components().all(|part| matches!(part, Component::Normal(_))));
        }
    }

    #[test]
    fn no_state_and_no_record_leads_outside(
        pending in prop::collection::vec(place(), 0..4),
        packs in prop::collection::vec(place(), 0..4),
        omitted in prop::collection::vec(place(), 0..3),
        link in any::<bool>(),
    ) {
        let world = world();
        let before = outside(&world);
        let digest = Digest::of_lines("").to_string();
        let pack = |place: &String| serde_json::json!({
            "place": place, "id": "hub.mu.com/a", "version": "1.0.0", "digest": digest,
            "omitted": omitted.iter().map(|path| format!("f {}  {path}", "0".repeat(64))).collect::<Vec<_>>(),
        });
        let state = serde_json::json!({
            "version": 2, "folder": "/", "pending": pending, "packs": packs.iter().map(pack).collect::<Vec<_>>(),
        });
        let partial: serde_json::Map<_, _> =
            packs.iter().map(|place| (place.clone(), pack(place))).collect();
        let record = serde_json::json!({"version": 2, "partial": partial});
        let path = world.packs.state_path().expect("the workspace is there");
        fs::create_dir_all(path.parent().expect("is in the cache")).expect("makes");
        fs::write(&path, state.to_string()).expect("writes");
        fs::write(world.around.path().join("work/.mu/packs/.mu/state.json"), state.to_string()).expect("writes");
        fs::write(world.around.path().join("work/.mu/packs/vendored.json"), record.to_string()).expect("writes");
        let wanted: Vec<WantedPack> = packs.iter().filter(|place| is_place(place)).map(|place| WantedPack {
            place: place.clone(),
            id: "hub.mu.com/a".to_owned(),
            version: "1.0.0".to_owned(),
            digest: Digest::of_lines(""),
            built: None,
        }).collect();
        // Whether it succeeds or fails, it stays inside.
        let _ = world.packs.recognize(|| wanted.clone());
        let link = if link { Link::Symlink } else { Link::Copy };
        let generate = |_: &WantedPack| String::new();
        if let Ok(plan) = Installation::plan(&world.packs, Vec::new(), link, &|_, _| None)
            && let Ok(building) = plan.begin(&world.store, &generate, &|_, _| Ok(()))
        {
            let _ = building.finish(1);
        }
        prop_assert_eq!(outside(&world), before);
        prop_assert!(world.around.path().join("victim/a/file").exists());
    }
}

/// A folder with many packs is listed, which must notice what a look at each would notice.
#[test]
#[cfg(unix)]
fn among_many_packs_of_one_folder_each_that_is_not_as_installed_is_missing() {
    let world = world();
    let wanted: Vec<WantedPack> = (10..40)
        .map(|number| WantedPack {
            place: format!("hub.mu.com/many/p{number}"),
            id: format!("hub.mu.com/many/p{number}"),
            version: "1.0.0".to_owned(),
            digest: Digest::of_lines(""),
            built: None,
        })
        .collect();
    let at = |number: usize| {
        world.around.path().join(format!("work/.mu/packs/hub.mu.com/many/p{number}"))
    };
    for number in 10..40 {
        fs::create_dir_all(at(number)).expect("makes");
        fs::write(at(number).join("Mu.yaml"), "name: many/p").expect("writes");
    }
    let packs = wanted.iter().map(|pack| (pack.place.clone(), Pack::new(pack, Vec::new())));
    let state = State { packs: packs.collect(), ..State::default() };
    assert!(world.packs.is_current(&state, &wanted));

    let elsewhere = world.around.path().join("elsewhere");
    fs::rename(at(20), &elsewhere).expect("moves");
    std::os::unix::fs::symlink(&elsewhere, at(20)).expect("links");
    fs::remove_dir_all(at(25)).expect("removes");
    fs::remove_dir_all(at(30)).expect("removes");
    fs::write(at(30), "a file").expect("writes");
    fs::remove_file(at(35).join("Mu.yaml")).expect("removes");
    let missing = world.packs.missing(&state, &wanted);
    let missing: Vec<&str> = missing.iter().map(|pack| &pack.place[16..]).collect();
    assert_eq!(missing, ["p20", "p25", "p30", "p35"]);
}

#[test]
#[cfg(unix)]
fn a_folder_that_was_made_again_has_another_state() {
    let world = world();
    let state = State { pending: ["hub.mu.com/a".to_owned()].into(), ..State::default() };
    world.packs.write_state(&state).expect("writes");
    assert_eq!(world.packs.state(), state);
    let work = world.around.path().join("work");
    let moved = world.around.path().join("moved");
    fs::rename(&work, &moved).expect("moves");
    let at_new_path = PacksFolder::for_workspace(&moved, &world.around.path().join("cache"));
    assert_eq!(at_new_path.state(), State::default());
    fs::create_dir_all(work.join(".mu/packs")).expect("makes");
    assert_eq!(world.packs.state(), State::default());
    // Pruning the cache removes the states of folders that no longer exist.
    fs::remove_dir_all(&work).expect("removes");
    remove_orphans(&world.around.path().join("cache")).expect("prunes");
    let left = fs::read_dir(world.around.path().join("cache/packs")).expect("reads").count();
    assert_eq!(left, 0);
}
