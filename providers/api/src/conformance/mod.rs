//! The tests that every provider runs: one set of checks for every kind of place.
//!
//! A provider's tests set up a real place, describe it in a [`Fixture`], and call [`Fixture::check`]. There
//! are also trees that every provider must refuse, as files and links that every format can express; tricks that only one
//! format can express (hard links, devices) are tested with that format. mu itself uses nothing of this, because it is compiled without the
//! feature. Failures are panics.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use sha2::{Digest as _, Sha256};

use crate::threads::start_in;
use crate::{
    Digest, ErrorKind, FOREIGN_MANIFESTS, Folder, Limits, Listing, Location, MANIFEST_NAMES,
    MARKED_MANIFESTS, Provider, ProviderError, Release, Silent, Tree, TreeWriter,
};
use crate::{Entry, FileDigest, Mode, read_json_lines};

/// How many threads ask at once.
const THREADS: usize = 8;

/// A place, and what a provider must find in it.
#[derive(Debug)]
pub struct Fixture<'place> {
    /// The provider under test.
    pub provider: &'place dyn Provider,
    /// A package.
    pub location: Location,
    /// A package that this place does not have.
    pub absent: Location,
    /// A place that answers, but is of another kind.
    pub other_kind: Option<Location>,
    /// The version of every release, in the order of the listing; empty if a release has none.
    pub versions: Vec<&'place str>,
    /// Which of the versions is fetched.
    pub fetched: usize,
    /// The content digest of the files of the fetched version.
    pub digest: Digest,
    /// A line of the manifest of the fetched version; `None` if the listing has everything that the manifest
    /// has.
    pub manifest: Option<&'place str>,
    /// A release that the place does not have, as it could be in a lock; `None` if every release is there.
    pub unknown: Option<Release>,
    /// An empty folder for the checks to write into.
    pub scratch: PathBuf,
}

impl Fixture<'_> {
    /// Runs every check.
    ///
    /// # Panics
    ///
    /// When the provider does something wrong.
    pub fn check(&self) {
        self.probes();
        self.lists();
        self.knows_what_is_absent();
        self.reads_the_manifest();
        self.fetches_exactly_the_tree();
        self.refuses_unknown_releases();
        self.serves_many_threads();
    }

    fn probes(&self) {
        assert!(!self.provider.name().is_empty(), "the provider has no name");
        let here = self.provider.probe(&self.location).expect("the place can be probed");
        assert!(here, "`{}` is not taken for a place of this kind", self.location.describe());
        if let Some(other) = &self.other_kind {
            let there = self.provider.probe(other).expect("the other place answers");
            assert!(!there, "`{}` is taken for a place of this kind", other.describe());
        }
    }

    fn lists(&self) {
        let listing = self.provider.list(&self.location, None, &Silent).expect("can be listed");
        let Listing::Found(found) = listing else { panic!("the package is there: {listing:?}") };
        let versions: Vec<String> =
            releases(&found.lines).into_iter().map(|release| release.version).collect();
        assert_eq!(versions, self.versions);
        let again = self.provider.list(&found.location, None, &Silent).expect("lists again");
        assert_eq!(again, Listing::Found(found.clone()), "the settled location lists otherwise");
        if let Some(validator) = &found.validator {
            let listing = self.provider.list(&self.location, Some(validator), &Silent);
            let listing = listing.expect("can be listed");
            assert!(matches!(listing, Listing::Unchanged { .. }), "{listing:?}");
            let listing = self.provider.list(&self.location, Some("no validator"), &Silent);
            let listing = listing.expect("a validator from elsewhere does no harm");
            assert!(matches!(listing, Listing::Found(_)), "{listing:?}");
        }
    }

    fn knows_what_is_absent(&self) {
        let listing = self.provider.list(&self.absent, None, &Silent).expect("the place answers");
        let Listing::Absent { tried, .. } = listing else {
            panic!("nothing is there: {listing:?}")
        };
        assert!(!tried.is_empty(), "nothing was tried");
    }

    fn reads_the_manifest(&self) {
        let file = self
            .provider
            .manifest(&self.location, &self.release(), &Silent)
            .expect("the manifest can be read");
        match (self.manifest, file) {
            (None, None) => {}
            (Some(line), Some(file)) => {
                let foreign = FOREIGN_MANIFESTS.iter().any(|(name, _)| *name == file.name)
                    || MARKED_MANIFESTS.iter().any(|marked| marked.name == file.name);
                assert!(foreign || MANIFEST_NAMES.contains(&file.name.as_str()), "{}", file.name);
                assert!(file.text.contains(line), "{}", file.text);
            }
            (expected, found) => panic!("expected {expected:?}, found {found:?}"),
        }
    }

    fn fetches_exactly_the_tree(&self) {
        for name in ["first", "second"] {
            let around = self.scratch.join(name);
            let tree = self.fetch_into(&around).expect("can be fetched");
            assert_eq!(tree.digest(), self.digest, "{:#?}", tree.entries());
            assert_eq!(read_tree(&around.join("tree")), tree, "what lies on the disk");
            assert_eq!(names(&around), ["tree"], "nothing lies beside the tree");
        }
    }

    fn refuses_unknown_releases(&self) {
        let revision = "0123456789abcdef0123456789abcdef01234567";
        let error = self.provider.resolve(&self.location, revision, &Silent);
        assert_eq!(error.expect_err("there is no such commit").kind(), ErrorKind::NotFound);
        if let Some(unknown) = &self.unknown {
            let folder = self.scratch.join("unknown");
            fs::create_dir(&folder).expect("the folder can be made");
            let mut writer =
                TreeWriter::new(Folder::open(&folder).expect("opens"), Limits::default());
            let result = self.provider.fetch(&self.location, unknown, &mut writer, &Silent);
            let error = result.expect_err("there is no such release");
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            assert!(names(&folder).is_empty(), "something was written");
        }
    }

    fn serves_many_threads(&self) {
        thread::scope(|scope| {
            for number in 0..THREADS {
                let started = start_in(scope, move || {
                    let listing = self.provider.list(&self.location, None, &Silent);
                    assert!(matches!(listing, Ok(Listing::Found(_))), "{listing:?}");
                    let around = self.scratch.join(format!("thread-{number}"));
                    let tree = self.fetch_into(&around).expect("can be fetched");
                    assert_eq!(tree.digest(), self.digest, "in thread {number}");
                });
                started.expect("a thread");
            }
        });
    }

    /// The release that is fetched, as the listing gives it.
    fn release(&self) -> Release {
        let listing = self.provider.list(&self.location, None, &Silent).expect("can be listed");
        let Listing::Found(found) = listing else { panic!("the package is there: {listing:?}") };
        releases(&found.lines).swap_remove(self.fetched)
    }

    fn fetch_into(&self, around: &Path) -> Result<Tree, ProviderError> {
        let folder = around.join("tree");
        fs::create_dir_all(&folder).expect("the folder can be made");
        let mut writer = TreeWriter::new(Folder::open(&folder).expect("opens"), Limits::default());
        self.provider.fetch(&self.location, &self.release(), &mut writer, &Silent)?;
        Ok(writer.finish()?)
    }
}

/// The releases of a listing.
///
/// # Panics
///
/// When a line is none.
pub fn releases(lines: &[u8]) -> Vec<Release> {
    read_json_lines(lines).map(|line| line.expect("every line is a release")).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    entries
        .map(|entry| entry.expect("can be read").file_name().to_string_lossy().into_owned())
        .collect()
}

/// Reads every file and link below `folder`; folders themselves are not part of a tree.
///
/// # Panics
///
/// When something there cannot be read, or is not a file, a folder or a link.
pub fn read_tree(folder: &Path) -> Tree {
    let mut entries = Vec::new();
    read_folder(folder, "", &mut entries);
    Tree::new(entries)
}

fn read_folder(folder: &Path, prefix: &str, entries: &mut Vec<Entry>) {
    for item in fs::read_dir(folder).expect("the folder can be read") {
        let item = item.expect("the folder can be read");
        let name = item.file_name().into_string().expect("names are UTF-8");
        let path = format!("{prefix}{name}");
        let kind = item.file_type().expect("its kind is known");
        let (mode, content) = if kind.is_dir() {
            read_folder(&item.path(), &format!("{path}/"), entries);
            continue;
        } else if kind.is_symlink() {
            let target = fs::read_link(item.path()).expect("the link can be read");
            (Mode::Symlink, target.to_str().expect("targets are UTF-8").as_bytes().to_vec())
        } else {
            assert!(kind.is_file(), "`{path}` is not a file, a folder or a link");
            (file_mode(&item.path()), fs::read(item.path()).expect("the file can be read"))
        };
        entries.push(Entry {
            path,
            mode,
            sha256: FileDigest::from_bytes(Sha256::digest(&content).into()),
            size: content.len() as u64,
        });
    }
}

#[cfg(unix)]
fn file_mode(path: &Path) -> Mode {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = fs::metadata(path).expect("the file can be read").permissions().mode();
    assert_eq!(mode & 0o7000, 0, "`{}` has set-uid, set-gid or sticky bits", path.display());
    if mode & 0o100 == 0 { Mode::File } else { Mode::Executable }
}

#[cfg(not(unix))]
fn file_mode(_path: &Path) -> Mode {
    Mode::File
}

/// What lies at a path of a hostile tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A file with this content.
    File(&'static str),
    /// A symbolic link to this target.
    Link(&'static str),
}

/// A tree that must be refused.
#[derive(Debug, Clone)]
pub struct HostileTree {
    /// What it tries.
    pub name: &'static str,
    /// Paths, slash-separated, and what lies there.
    pub items: Vec<(Vec<u8>, Item)>,
}

/// All hostile trees. Each also has a valid `Mu.yaml`, so that nothing else is wrong with it.
pub fn hostile_trees() -> Vec<HostileTree> {
    const FILE: Item = Item::File("hostile");
    let tree = |name, items: &[(&[u8], Item)]| {
        let honest = (b"Mu.yaml".to_vec(), Item::File("name: hostile/package\n"));
        let hostile = items.iter().map(|(path, item)| (path.to_vec(), item.clone()));
        HostileTree { name, items: std::iter::once(honest).chain(hostile).collect() }
    };
    vec![
        tree("an absolute path", &[(b"/tmp/mu-hostile", FILE)]),
        tree("a path that climbs out", &[(b"../mu-hostile", FILE)]),
        tree("a path that climbs out further in", &[(b"a/../../mu-hostile", FILE)]),
        tree("a path with a dot segment", &[(b"a/./b", FILE)]),
        tree("a path with an empty segment", &[(b"a//b", FILE)]),
        tree("a path with a backslash", &[(b"..\\mu-hostile", FILE)]),
        tree("a path with a drive", &[(b"C:mu-hostile", FILE)]),
        tree("a path with a control character", &[(b"a\x1b[2Jb", FILE)]),
        tree("a path that is not UTF-8", &[(b"a\xffb", FILE)]),
        tree("a .git folder", &[(b".git/config", FILE)]),
        tree("a .git folder in another case", &[(b"a/.Git/config", FILE)]),
        tree("a .git folder under its short name", &[(b"GIT~1/config", FILE)]),
        tree("a .git folder with a trailing dot", &[(b".git./config", FILE)]),
        tree("a .git folder that HFS+ sees", &[(".g\u{200c}it/config".as_bytes(), FILE)]),
        tree("a .mu folder under its short name", &[(b"MU~1/packs/a/Mu.yaml", FILE)]),
        tree("a name that Windows cuts", &[(b"a./b", FILE)]),
        tree("a name that Windows cannot hold", &[(b"a?b", FILE)]),
        tree("a name that is turned around", &[("a\u{202e}cod.exe".as_bytes(), FILE)]),
        tree("names that HFS+ takes for one", &[(b"a", FILE), ("a\u{200c}".as_bytes(), FILE)]),
        tree("a link to a drive", &[(b"link", Item::Link("C:/Windows"))]),
        tree("a .mu folder", &[(b".mu/packs/a/Mu.yaml", FILE)]),
        tree("names that differ in case", &[(b"a/File", FILE), (b"a/file", FILE)]),
        tree("folders that differ in case", &[(b"A/x", FILE), (b"a/y", FILE)]),
        tree(
            "names that differ in Unicode form",
            &[("\u{e9}".as_bytes(), FILE), ("e\u{301}".as_bytes(), FILE)],
        ),
        tree("a link to an absolute path", &[(b"link", Item::Link("/etc/passwd"))]),
        tree("a link that climbs out", &[(b"a/link", Item::Link("../../mu-hostile"))]),
        tree("a link that climbs after descending", &[(b"link", Item::Link("a/../../x"))]),
        tree("a link into .git", &[(b"link", Item::Link(".git/hooks/pre-commit"))]),
        tree("a link that is also a folder", &[(b"Link", Item::Link("a")), (b"link/x", FILE)]),
    ]
}
