//! Any text as the state of a packs folder, and as the record of vendored packs: read or refused, and nothing
//! in it leads out of the packs folder.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run state -- -max_total_time=60`.

#![no_main]

use std::fs;
use std::path::{Component, Path};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mu::packs::{PacksFolder, State};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    fs::create_dir_all(folder.path().join("work/.mu/packs")).expect("can be made");
    folder
});

fuzz_target!(|text: &str| {
    if let Some(state) = State::parse(text) {
        for place in state.packs.keys().chain(&state.pending) {
            let mut parts = Path::new(place).components();
            assert!(parts.clone().all(|part| matches!(part, Component::Normal(_))), "{place}");
            assert_ne!(parts.next(), Some(Component::Normal(".mu".as_ref())), "{place}");
        }
        let text = state.print(Path::new("/w/.mu/packs"));
        assert_eq!(State::parse(&text), Some(state));
    }
    let root = FOLDER.path().join("work");
    let packs = PacksFolder::for_workspace(&root, &FOLDER.path().join("cache"));
    fs::write(packs.path().join("vendored.json"), text).expect("can be written");
    let _ = packs.recognized(Vec::new);
});
