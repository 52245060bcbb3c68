//! Archives that must be refused: one test for each trick, created byte by byte.

use std::fs;
use std::path::Path;

use mu_archive::{ArchiveError, ArchiveLayout, Scratch, unpack_from, unpack_with};
use mu_provider::conformance::{self, Item};
use mu_provider::{ErrorKind, Folder, Limits, Release, TreeWriter};
use mu_testing::gzip;

use crate::client::{Client, chain};
use crate::place::{Hub, at};

/// A tar under construction, which may be hostile.
#[derive(Default, Clone)]
struct Tar(Vec<u8>);

impl Tar {
    /// Appends an entry.
    fn entry(mut self, kind: u8, path: &[u8], target: &[u8], mode: u32, content: &[u8]) -> Self {
        let mut header = [0; 512];
        let short = &path[..path.len().min(100)];
        header[..short.len()].copy_from_slice(short);
        header[100..108].copy_from_slice(format!("{mode:07o}\0").as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[156] = kind;
        header[157..157 + target.len()].copy_from_slice(target);
        header[257..265].copy_from_slice(b"ustar\x0000");
        self.0.extend_from_slice(&sealed(header));
        self.content(content)
    }

    fn file(self, path: &[u8], content: &[u8]) -> Self {
        self.entry(b'0', path, b"", 0o644, content)
    }

    fn pax(self, records: &str) -> Self {
        self.entry(b'x', b"pax", b"", 0o644, records.as_bytes())
    }

    fn content(mut self, content: &[u8]) -> Self {
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// Changes the header of the last entry that has no content.
    fn changed(mut self, change: impl FnOnce(&mut [u8; 512])) -> Self {
        let start = self.0.len() - 512;
        let mut header: [u8; 512] = self.0[start..].try_into().expect("is a block");
        change(&mut header);
        self.0.truncate(start);
        self.0.extend_from_slice(&sealed(header));
        self
    }

    /// With the marker at its end.
    fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(&[0; 1024]);
        self.0
    }
}

/// With the right checksum.
fn sealed(mut header: [u8; 512]) -> [u8; 512] {
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

fn pax_record(key: &str, value: &str) -> String {
    // The length counts its own digits.
    let rest = key.len() + value.len() + 3;
    let length = (rest..).find(|length| *length == rest + length.to_string().len());
    format!("{} {key}={value}\n", length.expect("there is one"))
}

/// The result of an archive of mu's, with both ways of reading it.
fn unpacked(archive: &[u8]) -> Result<Vec<String>, ArchiveError> {
    unpacked_as(archive, ArchiveLayout::Files)
}

/// The result of an archive that is laid out like this, with both ways of reading it.
fn unpacked_as(archive: &[u8], layout: ArchiveLayout) -> Result<Vec<String>, ArchiveError> {
    let once = |whole: bool| {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let around = folder.path().join("a/b");
        fs::create_dir_all(&around).expect("can be made");
        let mut tree = TreeWriter::new(Folder::open(&around).expect("opens"), Limits::default());
        let result = match whole {
            true => unpack_with(&Scratch::default(), archive, layout, &mut tree),
            false => unpack_from(archive, archive.len() as u64, layout, &mut tree),
        };
        assert!(
            is_alone(folder.path(), "a") && is_alone(&folder.path().join("a"), "b"),
            "it got out"
        );
        result?;
        let tree = tree.finish()?;
        Ok(tree.entries().iter().map(|entry| entry.path.clone()).collect::<Vec<_>>())
    };
    let results = [once(true), once(false)];
    assert_eq!(results[0].is_ok(), results[1].is_ok(), "{results:?}");
    let [whole, _] = results;
    whole
}

fn is_alone(folder: &Path, name: &str) -> bool {
    let mut entries = fs::read_dir(folder).expect("is there");
    entries.all(|entry| entry.expect("can be read").file_name() == name)
}

#[track_caller]
fn refused(tar: Vec<u8>, reason: &str) {
    let error = unpacked(&gzip(&tar)).expect_err(reason);
    let error = error.at("a.tgz");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(chain(&error).contains(reason), "{}", chain(&error));
}

#[track_caller]
fn accepted(tar: Vec<u8>, paths: &[&str]) {
    assert_eq!(unpacked(&gzip(&tar)).expect("is honest"), paths);
}

#[test]
fn trees_that_no_provider_accepts() {
    for hostile in conformance::hostile_trees() {
        let mut tar = Tar::default();
        for (path, item) in &hostile.items {
            tar = match item {
                Item::File(content) => tar.file(path, content.as_bytes()),
                Item::Link(target) => tar.entry(b'2', path, target.as_bytes(), 0o777, b""),
            };
        }
        let error = unpacked(&gzip(&tar.end())).expect_err(hostile.name);
        assert!(matches!(error, ArchiveError::Tree(_)), "{}: {error:?}", hostile.name);
    }
}

#[test]
fn hard_links() {
    refused(
        Tar::default().file(b"a", b"x").entry(b'1', b"b", b"a", 0o644, b"").end(),
        "a hard link",
    );
}

#[test]
fn hard_links_of_others_count_where_all_programs_agree_on_them() {
    let linked = |target: &[u8]| {
        let tar = Tar::default().file(b"c/a", b"x").entry(b'1', b"c/b", target, 0o644, b"");
        gzip(&tar.end())
    };
    let read = |target: &[u8], layout| {
        unpacked_as(&linked(target), layout).map_err(|error| chain(&error.at("a.tgz")))
    };
    assert_eq!(read(b"c/a", ArchiveLayout::Layer).expect("is read"), ["c/a", "c/b"]);
    for target in [&b"c/later"[..], b"../c/a", b"/etc/passwd"] {
        read(target, ArchiveLayout::Layer).expect_err("leads to no file before it");
    }
    let error = read(b"c/a", ArchiveLayout::InFolder).expect_err("Helm reads an empty file");
    assert!(error.contains("which some tools read as an empty file"), "{error}");
}

#[test]
fn several_members_of_gzip_are_one_archive_of_others() {
    let whole = Tar::default().file(b"c/a", b"x").file(b"c/b", b"y").end();
    let (first, second) = whole.split_at(700);
    let members = [gzip(first), gzip(second)].concat();
    let layouts = [(ArchiveLayout::Layer, ["c/a", "c/b"]), (ArchiveLayout::InFolder, ["a", "b"])];
    for (layout, paths) in layouts {
        assert_eq!(unpacked_as(&members, layout).expect("is one archive"), paths);
        // What some programs would not see is refused.
        let hiding = [whole.clone(), Tar::default().file(b"c/d", b"z").end()].map(|tar| gzip(&tar));
        unpacked_as(&hiding.concat(), layout).expect_err("has files after its end");
        let followed = [&members[..], b"more"].concat();
        unpacked_as(&followed, layout).expect_err("has data after its end");
    }
    unpacked(&members).expect_err("is not an archive of mu's");
}

#[test]
fn devices_and_pipes() {
    for (kind, what) in [(b'3', "a device"), (b'4', "a device"), (b'6', "a named pipe")] {
        refused(Tar::default().entry(kind, b"a", b"", 0o644, b"").end(), what);
    }
}

#[test]
fn sparse_and_unknown_kinds() {
    refused(Tar::default().entry(b'S', b"a", b"", 0o644, b"").end(), "a sparse file");
    for kind in [b'7', b'N', b'X', b'Z', 0xff] {
        refused(Tar::default().entry(kind, b"a", b"", 0o644, b"").end(), "unknown kind");
    }
    for (kind, what) in
        [(b'D', "an incremental backup"), (b'M', "another volume"), (b'V', "the label of a volume")]
    {
        for content in [b"".as_slice(), b"x"] {
            refused(Tar::default().entry(kind, b"a", b"", 0o644, content).end(), what);
        }
    }
    let sparse = Tar::default().pax(&pax_record("GNU.sparse.major", "1"));
    refused(sparse.file(b"a", b"").end(), "`a` is refused: it is a sparse file");
    let named = Tar::default().pax(&pax_record("GNU.sparse.name", "b"));
    refused(named.file(b"a", b"").end(), "`b` is refused: it is a sparse file");
}

#[test]
fn what_is_inside_a_sparse_file_is_not_found_by_those_who_only_look() {
    let hidden = Tar::default().file(b"package.yaml", b"name: another\n").0;
    let archive = Tar::default().entry(b'S', b"a", b"", 0o644, &hidden).end();
    let found = mu_archive::pick(&archive, &|_| true, 1 << 20);
    let error = found.expect_err("programs disagree about where such a file ends").to_string();
    assert!(error.starts_with("`a` is refused: it is a sparse file"), "{error}");
}

#[test]
fn a_folder_as_old_tars_have_it() {
    let folder = |kind| Tar::default().entry(kind, b"a/", b"", 0o755, b"").file(b"a/b", b"x");
    accepted(folder(0).end(), &["a/b"]);
    refused(folder(b'0').end(), "a file's path ends with a slash");
    refused(Tar::default().entry(0, b"a/", b"", 0o755, b"x").end(), "ends with a slash");
}

#[test]
fn set_uid_set_gid_and_sticky() {
    for mode in [0o4755, 0o2755, 0o1755] {
        refused(Tar::default().entry(b'0', b"a", b"", mode, b"x").end(), "set-uid");
        // Folders of groups have such bits; the unpacked ones do not.
        let folder = Tar::default().entry(b'5', b"a/", b"", mode, b"").file(b"a/b", b"x");
        accepted(folder.end(), &["a/b"]);
    }
}

#[test]
fn the_same_path_twice() {
    refused(Tar::default().file(b"a", b"1").file(b"a", b"2").end(), "differ only in case");
    refused(Tar::default().file(b"a", b"1").file(b"./a", b"2").end(), "differ only in case");
    let folder = |tar: Tar, path: &[u8]| tar.entry(b'5', path, b"", 0o755, b"");
    // A folder may be there twice, but not without end.
    accepted(folder(folder(Tar::default(), b"a/"), b"./a").file(b"a/b", b"x").end(), &["a/b"]);
    let endless = (0..40_000).fold(Tar::default(), |tar, _| folder(tar, b"a/"));
    refused(endless.end(), "far more headers and padding than files");
}

#[test]
fn a_path_in_two_extended_headers() {
    let once = pax_record("path", "a");
    let twice = format!("{once}{once}");
    refused(Tar::default().pax(&twice).file(b"x", b"").end(), "given twice");
    refused(Tar::default().pax(&once).pax(&once).file(b"x", b"").end(), "given twice");
    let gnu = Tar::default().entry(b'L', b"././@LongLink", b"", 0o644, b"b\0");
    refused(gnu.clone().pax(&once).file(b"x", b"").end(), "given twice");
    accepted(gnu.file(b"x", b"").end(), &["b"]);
}

#[test]
fn an_extended_header_that_leads_out() {
    for path in ["../x", "/etc/passwd", "a\0b", "a/.git/config"] {
        refused(Tar::default().pax(&pax_record("path", path)).file(b"x", b"").end(), "is refused");
    }
    let link = Tar::default().pax(&pax_record("linkpath", "/etc/passwd"));
    refused(link.entry(b'2', b"l", b"honest", 0o777, b"").end(), "is refused");
}

#[test]
fn a_size_that_hides_an_entry() {
    let hidden = Tar::default().file(b"hidden", b"").0;
    let tar = Tar::default().pax(&pax_record("size", "0")).file(b"a", &hidden);
    refused(tar.end(), "two sizes differ");
    let tar = Tar::default().entry(b'5', b"a/", b"", 0o755, &hidden);
    refused(tar.end(), "it has content");
    let tar = Tar::default().entry(b'2', b"a", b"b", 0o755, &hidden);
    refused(tar.end(), "it has content");
}

#[test]
fn a_global_header_that_renames() {
    let global = |records: &str| Tar::default().entry(b'g', b"pax", b"", 0o644, records.as_bytes());
    refused(global(&pax_record("path", "a")).file(b"b", b"").end(), "a global header");
    accepted(global(&pax_record("comment", "of git")).file(b"b", b"").end(), &["b"]);
}

#[test]
fn an_extended_header_about_nothing() {
    refused(Tar::default().pax(&pax_record("path", "a")).end(), "nothing follows");
}

#[test]
fn an_endless_extended_header() {
    let tar = Tar::default().entry(b'x', b"pax", b"", 0o644, b"").changed(|header| {
        header[124..136].copy_from_slice(b"77777777777\0");
    });
    refused(tar.end(), "too long");
}

#[test]
fn a_wrong_checksum() {
    let mut tar = Tar::default().file(b"a", b"").end();
    tar[0] = b'b';
    refused(tar, "checksum");
}

#[test]
fn a_size_beyond_the_archive() {
    let tar = Tar::default().file(b"a", b"").changed(|header| {
        header[124..136].copy_from_slice(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
    });
    refused(tar.end(), "ends early");
}

#[test]
fn a_file_that_looks_like_a_folder() {
    refused(Tar::default().file(b"a/", b"x").end(), "ends with a slash");
}

#[test]
fn a_tar_without_its_end() {
    let whole = Tar::default().file(b"a", b"content").end();
    for length in [0, 100, 512, 515, 1100, 1600] {
        refused(whole[..length].to_vec(), "ends early");
    }
    // The zeros that mark the end are no content, and some programs write none.
    for length in [1024, 1536, whole.len()] {
        accepted(whole[..length].to_vec(), &["a"]);
    }
}

#[test]
fn something_behind_the_end() {
    let mut padded = Tar::default().file(b"a", b"").end();
    padded.resize(10_240, 0);
    accepted(padded.clone(), &["a"]);
    let more = Tar::default().file(b"b", b"").end();
    refused([padded, more].concat(), "there is data after");
    let mut gap = Tar::default().file(b"a", b"").0;
    gap.extend_from_slice(&[0; 512]);
    gap.extend_from_slice(&Tar::default().file(b"b", b"").end());
    refused(gap, "an empty header");
}

#[test]
fn damaged_gzip() {
    let whole = gzip(&Tar::default().file(b"a", b"content").end());
    for length in 0..whole.len() {
        unpacked(&whole[..length]).expect_err("ends too early");
    }
    for index in [0, 1, 2, whole.len() - 8, whole.len() - 4] {
        let mut damaged = whole.clone();
        damaged[index] ^= 0x55;
        unpacked(&damaged).expect_err("is damaged");
    }
}

#[test]
fn something_behind_the_gzip() {
    let whole = gzip(&Tar::default().file(b"a", b"").end());
    let second = gzip(&Tar::default().file(b"b", b"").end());
    for more in [&b"\0"[..], b"garbage", &second] {
        let error = unpacked(&[&whole, more].concat()).expect_err("holds more");
        assert!(matches!(error, ArchiveError::Trailing | ArchiveError::Gzip(_)), "{error:?}");
    }
}

#[test]
fn bombs() {
    let zeros = vec![0; 40 << 20];
    refused(Tar::default().file(b"a", &zeros).end(), "ratio");
    let mut padding = Tar::default().file(b"a", b"").end();
    padding.resize(17 << 20, 0);
    refused(padding, "headers and padding");
    let mut headers = Tar::default();
    for _ in 0..9 {
        headers = headers.pax(&pax_record("comment", &"x".repeat((1 << 20) - 20)));
        headers = headers.pax(&pax_record("comment", &"x".repeat((1 << 20) - 20)));
    }
    refused(headers.file(b"a", b"").end(), "headers and padding");
}

#[test]
fn too_many_levels() {
    let deep = "a/".repeat(70);
    let tar = Tar::default().pax(&pax_record("path", &format!("{deep}x"))).file(b"x", b"");
    refused(tar.end(), "depth");
}

#[test]
fn honest_archives_of_other_tools() {
    let long = format!("{}/{}", "d".repeat(90), "f".repeat(120));
    let tar = Tar::default()
        .entry(b'5', b"./", b"", 0o755, b"")
        .entry(b'5', b"./bin/", b"", 0o755, b"")
        .entry(b'0', b"./bin/run", b"", 0o755, b"#!/bin/sh\n")
        .entry(b'2', b"./link", b"bin/run", 0o777, b"")
        .pax(&[pax_record("mtime", "1.5"), pax_record("path", &long)].concat())
        .file(b"short", b"x");
    accepted(tar.end(), &["bin/run", &long, "link"]);
}

#[test]
fn a_refused_archive_names_its_place_and_leaves_nothing_behind() {
    let hub = Hub::new(r#"{"hub": 1}"#);
    let tar = Tar::default().file(b"a", b"x").entry(b'1', b"b", b"a", 0o644, b"").end();
    let release: Release = hub.publish("a", "1.0.0", &gzip(&tar));
    let client = Client::new();
    let error = client.fetch(&at(&hub.file_url(), "a"), &release).expect_err("holds a hard link");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    let text = chain(&error);
    assert!(
        text.contains("packs/a/a-1.0.0.tgz` is refused: `b` is refused: it is a hard link"),
        "{text}"
    );
    assert!(client.downloads().is_empty());
}

#[test]
fn what_is_no_gzip_is_called_so() {
    for page in [&b"<html>an error</html>"[..], &[b' '; 9_000_000]] {
        let error = unpacked(page).expect_err("is no archive").at("a.tgz");
        assert!(chain(&error).contains("it is not gzip, or is damaged"), "{}", chain(&error));
    }
}
