//! An archive: whatever its bytes are, nothing is written outside the folder, both ways to read it agree, and
//! the report matches the disk.
//!
//! The input is the tar; it is wrapped in gzip here, because no mutation would find a checksum.
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run archive -- -max_total_time=60`.

#![no_main]

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use mu_archive::{ArchiveError, ArchiveLayout, unpack, unpack_from};
use mu_provider::conformance::read_tree;
use mu_provider::{Folder, Limits, Tree, TreeWriter};

fuzz_target!(|tar: &[u8]| {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(&sealed(tar)).expect("goes to memory");
    let archive = gzip.finish().expect("goes to memory");
    let whole = inside_a_folder(|tree| unpack(&archive, tree));
    let pieces = inside_a_folder(|tree| {
        unpack_from(archive.as_slice(), archive.len() as u64, ArchiveLayout::Files, tree)
    });
    assert_eq!(whole.as_ref().ok(), pieces.as_ref().ok());
    // Without changes, it is hardly ever valid gzip, but it must not do harm either.
    let _ = inside_a_folder(|tree| unpack(tar, tree));
});

/// The tar with the right checksum in every block that could be a header: no mutation finds these.
fn sealed(tar: &[u8]) -> Vec<u8> {
    let mut tar = tar.to_vec();
    for block in tar.chunks_exact_mut(512).filter(|block| block.iter().any(|byte| *byte != 0)) {
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    tar
}

fn inside_a_folder(
    unpack: impl FnOnce(&mut TreeWriter) -> Result<(), ArchiveError>,
) -> Result<Tree, ArchiveError> {
    let around = tempfile::tempdir().expect("a temporary folder can be made");
    let folder = around.path().join("a/b");
    fs::create_dir_all(&folder).expect("can be made");
    let mut tree = TreeWriter::new(
        Folder::open(&folder).expect("opens"),
        Limits { bytes: 1 << 20, ..Limits::default() },
    );
    let result = unpack(&mut tree).and_then(|()| Ok(tree.finish()?));
    assert_eq!(names(around.path()), ["a"]);
    assert_eq!(names(&around.path().join("a")), ["b"]);
    if let Ok(tree) = &result {
        assert_eq!(read_tree(&folder), *tree);
    }
    result
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("is there");
    entries.map(|entry| entry.expect("can be read").file_name().display().to_string()).collect()
}
