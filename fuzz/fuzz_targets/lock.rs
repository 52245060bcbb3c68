//! Any text as `Mu.lock`: read or refused, and what is read is the same once it was written again. No package of it has
//! its pack anywhere but below the packs folder.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run lock -- -max_total_time=60`.

#![no_main]

use std::fs;
use std::path::{Component, Path};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mu::lock::{FILE_NAME, Lockfile};
use mu::ops::session::installed::named;

static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a temporary folder can be made"));

fuzz_target!(|text: &str| {
    let folder = FOLDER.path();
    fs::write(folder.join(FILE_NAME), text).expect("can be written");
    let Ok(Some(lock)) = Lockfile::read(folder) else { return };
    for pack in named(&lock) {
        let mut parts = Path::new(&pack.place).components();
        assert!(parts.clone().all(|part| matches!(part, Component::Normal(_))), "{}", pack.place);
        assert_ne!(parts.next(), Some(Component::Normal(".mu".as_ref())), "{}", pack.place);
    }
    lock.write(folder).expect("can be written");
    let again = Lockfile::read(folder).expect("its own text can be read").unwrap_or_default();
    assert_eq!(again.print(), lock.print());
});
