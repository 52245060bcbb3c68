//! `Mu.lock`: which version of every package was chosen, from where, and with which content.
//!
//! One lock covers a workspace, another the global packs. Goals of the format: a person can read a change in it, two branches
//! merge, the same selection gives the same bytes (sorted, one field a line), and a mu that is too old says so instead of
//! guessing. [`crate::select`] decides which versions belong in it.

// A lock from a clone never leads to an unchecked index.
#![deny(clippy::indexing_slicing)]

mod entry;
mod line;
mod read;

use std::borrow::Cow;
use std::hash::Hash;
use std::ops::Range;
use std::path::{Path, PathBuf};

use mu_provider::Digest;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::fs::{self, FileError};
use crate::lock::entry::WirePackage;
use crate::lock::line::Names;
use crate::lock::read::WireLock;
use crate::manifest::source::SourceError;
use crate::reference::{ArtifactDigest, PackageId, Version};
use crate::workspace::{ForeignError, MU_FOLDER, edits, refuse_links_of_edits};

pub use crate::lock::entry::{LockedPackage, Requested, Source};
pub use crate::lock::read::{Merged, schema};

/// The newest format this program reads, and the one it writes.
pub const FORMAT: u32 = 1;

/// The name of the file.
pub const FILE_NAME: &str = crate::workspace::LOCK_FILE;

/// Above this number of bytes, some hundred packages, reading a lock takes longer than starting a thread for
/// it.
const LONG: u64 = 32 << 10;

/// Why a lock could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The disk refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The text is not a lock.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A link leads to it.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// A newer mu wrote it.
    #[error("`{}` has lock format {version}, but this mu supports formats up to {FORMAT}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: u32,
    },
}

/// A whole lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lockfile {
    /// The strategy that chose the versions: `highest` or `minimal`.
    pub resolution: String,
    /// The packages, sorted by id and version.
    pub packages: Vec<LockedPackage>,
    /// The replaced packages, sorted by id.
    pub replaced: Vec<ReplacedPackage>,
    /// References that `mu get` was given without `--save`, as they were written.
    pub extra: Vec<String>,
    /// Packages whose entry stands there twice, as merges leave it. They are here once, and so is the entry when the lock
    /// is written next.
    pub doubled: Vec<PackageId>,
    /// Whether the file has both sides of a merge in it, so that it is to be written again.
    pub is_merge: bool,
}

/// A package that another one took the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedPackage {
    /// Its id.
    pub id: PackageId,
    /// The package that took its place.
    pub by: PackageId,
    /// Its requirements, and what has them.
    pub requested: Vec<Requested>,
    /// Its earlier locked entry, so that its pack can stay; `None` if it never was locked.
    pub kept: Option<Box<LockedPackage>>,
}

impl LockedPackage {
    /// An entry for a version that is only supposed to be installed.
    pub fn supposed(id: &PackageId, version: &Version) -> Self {
        let is_composite = version.app().is_some();
        let source = Source::new("hub", "supposed");
        Self { is_composite, ..Self::new(id.clone(), version.to_string(), source) }
    }

    /// Whether the result of its patch is known, if it has one.
    pub fn is_patched_as_locked(&self) -> bool {
        self.patch.is_none() || self.patched.is_some()
    }

    /// The digest of what is installed: the content, with the patch if there is one.
    pub fn installed_digest(&self) -> Option<Digest> {
        self.patched.or(self.digest)
    }

    /// The version that a hub gives to a copy of a commit without a version tag, such as
    /// `1.2.0-git-1895753f53a6`; `None` without a commit.
    pub fn version_of_copy(&self) -> Option<String> {
        let commit = self.commit.as_ref()?.get(..12)?;
        let version = self.version.split('+').next().unwrap_or_default();
        let separator = if version.contains('-') { '.' } else { '-' };
        Some(format!("{version}{separator}git-{commit}"))
    }

    /// The commit that it is; in a place without commits, the digest of an archive by URL, of what a tag led to, or the digest
    /// that it is pinned to.
    pub fn revision(&self) -> Option<Cow<'_, str>> {
        if let (true, Some(archive)) = (self.source.is_url_archive(), self.archive) {
            return Some(archive.to_string().into());
        }
        if let Some(artifact) = self.artifact {
            return Some(artifact.to_string().into());
        }
        let pinned =
            || self.reference.as_deref().filter(|text| ArtifactDigest::is_artifact_digest(text));
        self.commit.as_deref().or_else(pinned).map(Cow::Borrowed)
    }

    /// The version of a package that has none, such as a commit without a tag.
    pub const NO_VERSION: &'static str = "0.0.0";

    /// Whether the package has a version.
    pub fn is_versioned(&self) -> bool {
        self.version != Self::NO_VERSION
    }

    /// Its version, in a form that can be compared.
    pub fn parsed_version(&self) -> Option<Version> {
        if self.is_composite {
            Version::parse_composite(&self.version).ok()
        } else {
            Version::parse_lenient(&self.version).ok()
        }
    }

    /// The major of its version, of which the lock has one version; 0 for a package without a version.
    pub fn locked_major(&self) -> u64 {
        self.parsed_version().map_or(0, |version| version.major())
    }
}

impl Lockfile {
    /// Reads the lock in `folder`; `None` when there is none.
    pub fn read(folder: &Path) -> Result<Option<Self>, LockError> {
        let path = folder.join(FILE_NAME);
        match fs::read_text_if_there(&path)? {
            Some(text) => read::parse(&path, &text).map(Some),
            None => Ok(None),
        }
    }

    /// Reads the text of a lock that was in `folder`.
    #[cfg(feature = "git")]
    pub fn read_former(folder: &Path, text: &str) -> Result<Self, LockError> {
        read::parse(&folder.join(FILE_NAME), text)
    }

    /// Reads what this machine uses while packages are edited in the workspace at `root`; `None` when there is no such lock, or
    /// it is damaged: everything in it can be found out again.
    pub fn read_edits(root: &Path) -> Result<Option<Self>, LockError> {
        let Some(text) = fs::read_text_if_there(&edits_path(root))? else { return Ok(None) };
        refuse_links_of_edits(root)?;
        // Folders in it are relative to the workspace, as in the other lock.
        Ok(read::parse(&root.join(FILE_NAME), &text).ok())
    }

    /// Writes the lock as [`Lockfile::read_edits`] reads it.
    pub fn write_edits(&self, root: &Path) -> Result<(), LockError> {
        refuse_links_of_edits(root)?;
        Ok(fs::write_atomic(&edits_path(root), self.print_edits().as_bytes())?)
    }

    /// Removes the lock of edits, if there is one.
    pub fn remove_edits(root: &Path) -> Result<(), FileError> {
        let path = edits_path(root);
        if fs::metadata_if_there(&path)?.is_some() { fs::remove_file(&path) } else { Ok(()) }
    }

    /// Whether the lock in `folder` names many packages, so that reading it takes a while.
    pub fn is_long(folder: &Path) -> bool {
        fs::metadata(&folder.join(FILE_NAME)).is_ok_and(|file| file.len() > LONG)
    }

    /// Whether it locks nothing, and so has no file.
    pub fn is_empty(&self) -> bool {
        self.packages.is_empty() && self.replaced.is_empty() && self.extra.is_empty()
    }

    /// Writes the lock into `folder`, or removes it there if nothing is locked.
    pub fn write(&self, folder: &Path) -> Result<(), FileError> {
        let path = folder.join(FILE_NAME);
        if self.is_empty() {
            return fs::remove_file(&path);
        }
        fs::write_atomic(&path, self.print().as_bytes())
    }

    /// The line of the lock in `folder` with the version of a package, counted from 1.
    pub fn line_of_version(folder: &Path, package: &LockedPackage) -> Option<usize> {
        let text = fs::read_text_if_there(&folder.join(FILE_NAME)).ok()??;
        let mut is_inside = false;
        text.lines()
            .position(|line| {
                if let Some(id) = line.strip_prefix("- id: ") {
                    is_inside = id.trim_matches('"') == package.id.as_str();
                }
                let version =
                    line.trim().strip_prefix("version: ").map(|text| text.trim_matches('"'));
                is_inside && version == Some(&package.version)
            })
            .map(|at| at + 1)
    }

    /// The locked packages with this id: one, or one a major version.
    pub fn find(&self, id: &PackageId) -> impl Iterator<Item = &LockedPackage> {
        let start = self.packages.partition_point(|package| package.id < *id);
        let id = id.clone();
        self.packages.iter().skip(start).take_while(move |package| package.id == id)
    }

    /// What took the place of a package, if something did.
    pub fn replacement(&self, id: &PackageId) -> Option<&ReplacedPackage> {
        let found = self.replaced.binary_search_by(|replaced| replaced.id.cmp(id)).ok()?;
        self.replaced.get(found)
    }

    /// The id of the package that is used for `id`.
    pub fn used_for<'id>(&'id self, id: &'id PackageId) -> &'id PackageId {
        self.replacement(id).map_or(id, |replaced| &replaced.by)
    }

    /// All requirements: the spec, the requirer, and the package, including replaced packages.
    pub fn all_requested(&self) -> impl Iterator<Item = (&PackageId, &Requested)> {
        let packages = self.packages.iter().map(|package| (&package.id, &package.requested));
        let replaced = self.replaced.iter().map(|replaced| (&replaced.id, &replaced.requested));
        let all = packages.chain(replaced);
        all.flat_map(|(id, requested)| requested.iter().map(move |one| (id, one)))
    }
}

fn edits_path(root: &Path) -> PathBuf {
    root.join(MU_FOLDER).join(edits::EDITS_LOCK)
}

impl Lockfile {
    /// The places of the packages in [`Lockfile::packages`], each after its dependencies, and otherwise by
    /// id. Packages that depend on each other in a circle have an arbitrary order, which is always the same.
    pub fn install_order(&self) -> Vec<usize> {
        // Where the packages with an id are: most of them are needed several times.
        let mut places: FxHashMap<&PackageId, Range<usize>> = FxHashMap::default();
        for (place, package) in self.packages.iter().enumerate() {
            places.entry(&package.id).or_insert(place..place).end = place + 1;
        }
        ordered_by_needs(0..self.packages.len(), |place| {
            let needs = self.packages.get(place).into_iter().flat_map(|one| &one.dependencies);
            let used = needs.filter_map(|id| places.get(self.used_for(id)));
            used.flat_map(Range::clone).collect()
        })
    }
}

/// All items, each after those that it needs. Items that need each other in a circle have an arbitrary order, which is always the
/// same.
pub fn ordered_by_needs<T: Copy + Eq + Hash>(
    all: impl Iterator<Item = T>,
    needs: impl Fn(T) -> Vec<T>,
) -> Vec<T> {
    let (mut order, mut seen) = (Vec::new(), FxHashSet::default());
    // The items to look at. An item is ready after those above it on this stack.
    let mut open = Vec::new();
    for first in all {
        open.push((first, false));
        while let Some((item, is_ready)) = open.pop() {
            if is_ready {
                order.push(item);
            } else if seen.insert(item) {
                open.push((item, true));
                open.extend(needs(item).into_iter().rev().map(|item| (item, false)));
            }
        }
    }
    order
}

const HEADER: &str = "\
# Written by mu; do not edit. It holds the version, source and content of every package that this
# workspace uses, so that `mu get` gives everyone the same. Commit it.
";

const EDITS_HEADER: &str = "\
# Written by mu; do not edit or commit. It holds what this machine uses while packages are edited
# here: Mu.lock, with what the edits add and move. mu names them when it installs.
";

impl Lockfile {
    /// The text of the lock of edits.
    fn print_edits(&self) -> String {
        self.print().replacen(HEADER, EDITS_HEADER, 1)
    }

    /// The text of the lock.
    pub fn print(&self) -> String {
        let mut text = String::from(HEADER);
        line::print(&mut text, "", WireLock::version, &FORMAT.to_string());
        line::print(&mut text, "", WireLock::resolution, &line::print_text(&self.resolution));
        let is_empty = self.packages.is_empty() && self.replaced.is_empty();
        text.push_str(WireLock::packages);
        text.push_str(if is_empty { ": []\n" } else { ":\n" });
        let names = Names::new(self.packages.iter().map(|package| (&package.id, &package.source)));
        let mut replaced = self.replaced.iter().peekable();
        for package in &self.packages {
            while let Some(before) = replaced.next_if(|replaced| replaced.id < package.id) {
                replaced_entry(self, before, &names).print(&mut text);
            }
            entry(package, &names).print(&mut text);
        }
        for last in replaced {
            replaced_entry(self, last, &names).print(&mut text);
        }
        if let Some(extra) = line::print_list(&self.extra) {
            line::print(&mut text, "", WireLock::extra, &extra);
        }
        text
    }
}

/// The entry of a package.
fn entry(package: &LockedPackage, names: &Names<'_>) -> WirePackage {
    let mut entry = WirePackage::new(package, names);
    // A text that may be the id of a folder.
    entry.conflicts.iter_mut().for_each(|text| *text = names.name(text));
    entry
}

/// The earlier entry of a replaced package; if it never was locked, the replacement's version and source.
fn replaced_entry(lock: &Lockfile, replaced: &ReplacedPackage, names: &Names<'_>) -> WirePackage {
    let mut package = match &replaced.kept {
        Some(kept) => (**kept).clone(),
        None => {
            let by = lock.find(&replaced.by).last();
            let version = by.map_or(LockedPackage::NO_VERSION, |by| &by.version).to_owned();
            let nowhere = || Source::new(Source::WORKSPACE, ".");
            let source = by.map_or_else(nowhere, |by| by.source.clone());
            let is_composite = by.is_some_and(|by| by.is_composite);
            let id = replaced.id.clone();
            LockedPackage { is_composite, ..LockedPackage::new(id, version, source) }
        }
    };
    package.requested.clone_from(&replaced.requested);
    WirePackage { replaced_by: Some(names.name(replaced.by.as_str())), ..entry(&package, names) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{LockedPackage, Source};
    use crate::reference::PackageId;
    use crate::select::releases::ChosenFacts;

    fn example() -> Lockfile {
        let id = |text: &str| PackageId::parse(text).expect("is an id");
        Lockfile {
            resolution: "highest".to_owned(),
            packages: vec![LockedPackage {
                id: id("hub.mu.com/aws/ec2"),
                version: "1.2.0".to_owned(),
                from: Some(id("github.com/acme/ec2")),
                beside: Vec::new(),
                is_composite: true,
                app_version: Some("8".to_owned()),
                channel: Some("stable".to_owned()),
                source: Source::new("git", "https://github.com/aws/ec2.git"),
                folder: Some("sub dir/x: y".to_owned()),
                commit: Some(
                    "1895753000000000000000000000000000000000".parse().expect("is a commit"),
                ),
                reference: Some("v1.2.0".to_owned()),
                artifact: None,
                digest: Some(
                    "h1:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU".parse().expect("is a digest"),
                ),
                built: None,
                archive: None,
                manifest: Some(format!("sha256:{:064}", 8).parse().expect("is a digest")),
                signed_by: vec!["ssh:SHA256:a/b+c".to_owned(), "github:a/b: #".to_owned()],
                patch: Some(format!("sha256:{:064}", 7).parse().expect("is a digest")),
                patched: Some(
                    "h1:57DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU".parse().expect("is a digest"),
                ),
                url: None,
                locator: None,
                requested: vec![
                    Requested { spec: ">=1, <2".into(), by: "acmecorp/elk".into() },
                    Requested { spec: "*".into(), by: "hub.mu.com/aws/vpc".into() },
                ],
                dependencies: vec![id("hub.mu.com/aws/vpc")],
                facts: ChosenFacts {
                    conflicts: vec!["hub.mu.com/aws/old".to_owned(), "aws/old".to_owned()],
                    constraints: [("kubernetes".to_owned(), ">=1.25, <2".to_owned())].into(),
                    mu_version: Some(">=0.1".to_owned()),
                    replaces: vec![id("hub.mu.com/old/ec2")],
                    ..ChosenFacts::default()
                },
            }],
            replaced: vec![
                ReplacedPackage {
                    id: id("hub.mu.com/aws/ec1"),
                    by: id("hub.mu.com/aws/ec2"),
                    requested: vec![Requested { spec: "^1".into(), by: "acme/web".into() }],
                    kept: None,
                },
                ReplacedPackage {
                    id: id("hub.mu.com/old/ec2"),
                    by: id("hub.mu.com/aws/ec2"),
                    requested: Vec::new(),
                    kept: Some(Box::new(LockedPackage {
                        digest: Some(
                            "h1:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
                                .parse()
                                .expect("is a digest"),
                        ),
                        ..LockedPackage::new(
                            id("hub.mu.com/old/ec2"),
                            "0.9.0".to_owned(),
                            Source::new("hub", "https://hub.mu.com/"),
                        )
                    })),
                },
            ],
            extra: vec!["aws/vpc#^2".to_owned(), "./x#y".to_owned()],
            doubled: Vec::new(),
            is_merge: false,
        }
    }

    #[test]
    fn reads_what_it_writes() {
        let lock = example();
        let text = lock.print();
        let read = read::parse(Path::new(FILE_NAME), &text).expect("reads its own text");
        assert_eq!(read, lock, "{text}");
        assert_eq!(read.print(), text);
    }

    #[test]
    fn folders_are_called_by_where_they_are_from_here() {
        let mut lock = example();
        let folder = PackageId::local(Path::new("/home/ada/shared"));
        let package = &mut lock.packages[0];
        package.dependencies = vec![folder.clone()];
        package.requested[0].by = folder.as_str().into();
        let source = Source::new(Source::FOLDER_PROVIDER, "../shared");
        lock.packages.push(LockedPackage::new(folder, "1.0.0".to_owned(), source));
        let text = lock.print();
        assert!(!text.contains("localhost"), "{text}");
        let read =
            read::parse(Path::new("/home/ada/here/Mu.lock"), &text).expect("reads its own text");
        assert_eq!(read, lock);
        let moved =
            read::parse(Path::new("/else/where/Mu.lock"), &text).expect("reads its own text");
        assert_eq!(moved.packages[1].id, PackageId::local(Path::new("/else/shared")));
        assert_eq!(moved.print(), text);
    }

    #[test]
    fn reads_other_layouts_of_the_same_yaml() {
        let lock = example();
        let text = lock
            .print()
            .replace("extra: [aws/vpc#^2, ./x#y]\n", "extra:\n- aws/vpc#^2\n- './x#y'\n");
        assert_ne!(text, lock.print());
        assert_eq!(read::parse(Path::new(FILE_NAME), &text).expect("is YAML"), lock);
    }

    #[test]
    fn refuses_a_newer_format_and_damage() {
        let newer = read::parse(Path::new(FILE_NAME), "version: 2\nshape: new\n");
        assert!(matches!(newer, Err(LockError::Newer { version: 2, .. })), "{newer:?}");
        for damaged in [
            "",
            "version: 1\npackages: 7\n",
            "<<<<<<< ours\nversion: 1\n",
            "version: 1\npackages:\n- id: a/\n",
        ] {
            let result = read::parse(Path::new(FILE_NAME), damaged);
            assert!(matches!(result, Err(LockError::Source(_))), "{damaged}: {result:?}");
        }
    }

    fn order(packages: &[(&str, &[&str])]) -> Vec<String> {
        let id = |name: &str| PackageId::parse(&format!("hub.mu.com/{name}")).expect("is an id");
        let packages = packages.iter().map(|(name, needs)| LockedPackage {
            dependencies: needs.iter().map(|name| id(name)).collect(),
            ..LockedPackage::new(id(name), "1.0.0".to_owned(), Source::new("hub", "x"))
        });
        let lock = Lockfile { packages: packages.collect(), ..Lockfile::default() };
        let order = lock.install_order().into_iter();
        order.map(|at| lock.packages[at].id.name().leaf().to_owned()).collect()
    }

    #[test]
    fn what_is_needed_comes_first() {
        assert_eq!(
            order(&[("x/a", &["x/c"]), ("x/b", &[]), ("x/c", &["x/d"]), ("x/d", &[])]),
            ["d", "c", "a", "b"]
        );
        // Needed twice, and at different depths.
        assert_eq!(
            order(&[("x/a", &["x/b", "x/c"]), ("x/b", &["x/c"]), ("x/c", &[])]),
            ["c", "b", "a"]
        );
        assert_eq!(
            order(&[("x/a", &["x/b"]), ("x/b", &["x/a"]), ("x/c", &["x/c"])]),
            ["b", "a", "c"]
        );
        // If there are several majors, each comes before.
        assert_eq!(
            order(&[("x/a", &["x/b"]), ("x/b", &[]), ("x/b", &["x/c"]), ("x/c", &[])]),
            ["b", "c", "b", "a"]
        );
    }
}
