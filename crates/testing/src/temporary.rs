//! Temporary folders whose paths have one length, so that tables and sizes are the same wherever temporary files are.

use tempfile::{Builder, TempDir};

/// How many bytes a path has.
const LENGTH: usize = 64;

/// A new folder, whose path has 64 bytes unless the folder of temporary files has a longer one.
///
/// # Panics
///
/// When it cannot be made.
#[must_use]
pub fn temporary_folder() -> TempDir {
    let around = std::env::temp_dir();
    let random = LENGTH.saturating_sub(around.as_os_str().len() + "/.tmp".len());
    let folder = Builder::new().rand_bytes(random.max(6)).tempdir_in(around);
    folder.expect("a temporary folder can be made")
}
