//! The tests that every provider runs: one set of checks for every kind of place.
//!
//! A provider's tests set up a real place, describe it in a [`Fixture`], and call [`Fixture::check`]. There
//! are also trees that must be refused. mu itself uses nothing of this, because it is compiled without the
//! feature. Failures are panics.

mod disk;
pub mod hostile;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

pub use self::disk::read_tree;
use crate::threads::start_in;
use crate::{
    Digest, ErrorKind, FOREIGN_MANIFESTS, Folder, Limits, Listing, Location, MANIFEST_NAMES,
    MARKED_MANIFESTS, Provider, ProviderError, Release, Silent, Tree, TreeWriter,
};

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
    lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("every line is a release"))
        .collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    entries
        .map(|entry| entry.expect("can be read").file_name().to_string_lossy().into_owned())
        .collect()
}
