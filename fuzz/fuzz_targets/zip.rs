//! A zip: whatever its bytes are, nothing is written outside the folder, and the report matches the disk.
//!
//! Begin with a few zips, because no mutation would find a checksum.
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run zip -- -max_total_time=60`.

#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mu_archive::{Packing, unpack_anyones};
use mu_provider::conformance::read_tree;
use mu_provider::{Folder, Limits, TreeWriter};

fuzz_target!(|archive: &[u8]| {
    let around = tempfile::tempdir().expect("a temporary folder can be made");
    let folder = around.path().join("a/b");
    fs::create_dir_all(&folder).expect("can be made");
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    let mut tree = TreeWriter::new(Folder::open(&folder).expect("opens"), limits);
    let result = unpack_anyones(archive, Packing::Zip, &mut tree);
    let tree = result.ok().and_then(|()| tree.finish().ok());
    assert_eq!(names(around.path()), ["a"]);
    assert_eq!(names(&around.path().join("a")), ["b"]);
    if let Some(tree) = tree {
        assert_eq!(read_tree(&folder), tree);
    }
});

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("is there");
    entries.map(|entry| entry.expect("can be read").file_name().display().to_string()).collect()
}
