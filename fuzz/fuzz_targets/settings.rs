//! Any text as the settings of a workspace and of the user: read, or refused with an error that points into
//! it. No workspace can declare itself trusted.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run settings -- -max_total_time=60`.

#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mu::manifest::ManifestError;
use mu::workspace::{Workspace, WorkspaceError};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for part in ["work/.mu", "home"] {
        fs::create_dir_all(folder.path().join(part)).expect("can be made");
    }
    folder
});

fuzz_target!(|text: &str| {
    let (root, home) = (FOLDER.path().join("work"), FOLDER.path().join("home"));
    for (path, other) in [
        (root.join(".mu/workspace.yaml"), home.join("config.yaml")),
        (home.join("config.yaml"), root.join(".mu/workspace.yaml")),
    ] {
        fs::write(&path, text).expect("can be written");
        fs::write(&other, "").expect("can be written");
        match Workspace::open(&root, [&home, &home], &|| Default::default()) {
            Ok(_) => {}
            Err(WorkspaceError::Manifest(ManifestError::Source(error))) => {
                assert!(text.get(error.span()).is_some() || text.len() > 1 << 20);
                let rendered = error.render(false);
                let is_raw = |c: char| c.is_control() && c != '\n';
                assert!(!rendered.contains(is_raw), "{rendered:?}");
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control), "{error}"),
        }
    }
    // Its owner is not the user, so only the user's own settings could make it trusted.
    fs::write(root.join(".mu/workspace.yaml"), text).expect("can be written");
    fs::write(home.join("config.yaml"), "").expect("can be written");
    let _ = Workspace::check_root(&root, &home, &[]);
});
