//! The trait that every provider implements, where a package is from its view, and how it reports what it is doing, without
//! knowing the terminal.
//!
//! Calls block; a caller that needs many answers at once calls from many threads. A provider keeps what it needs between calls
//! (connections, bare repositories) behind `&self`. A reference names a package, and the registries of a workspace turn it into a
//! location. Nothing here connects to anything.

use std::collections::BTreeSet;
use std::{fmt, io};

use crate::catalog::{Changes, Hits, LogPosition, Query};
use crate::{
    Account, Commit, ErrorKind, FoundEvidence, KeptArchives, Lead, ProviderError, Release,
    TreeWriter, read_json_lines,
};

/// Lists and fetches the releases of packages from one kind of place.
pub trait Provider: Send + Sync + fmt::Debug {
    /// The provider's name, which is also the word before `+` in a lock's `source`: `hub`, `git`, `path`.
    fn name(&self) -> &str;

    /// Whether this provider's kind of place is at `location`. This asks the place.
    ///
    /// # Errors
    ///
    /// When the place cannot be reached. If it answers, but is of another kind, that is `Ok(false)`.
    fn probe(&self, location: &Location) -> Result<bool, ProviderError>;

    /// What holds for its places, so that no other code has to know its name.
    fn facts(&self) -> Facts;

    /// Whether the package at `location` carries copies of its dependencies, and can be used with those.
    fn carries_copies(&self, _location: &Location) -> bool {
        false
    }

    /// Tells this provider what it will be asked soon, so that it can choose how to do it, or send requests
    /// already.
    ///
    /// It returns at once; by default, it does nothing. Failures are reported by the later call.
    fn soon(&self, _location: &Location, _what: Soon<'_>) {}

    /// Whether [`Provider::list`] with this validator will certainly answer [`Listing::Unchanged`] without a
    /// request for this package alone. This call may send a request that is needed once for all packages of a
    /// place.
    fn is_unchanged(
        &self,
        _location: &Location,
        _validator: &str,
        _progress: &dyn Progress,
    ) -> bool {
        false
    }

    /// Lists every release of the package at `location`.
    ///
    /// `validator` comes from an earlier [`Found`]. If nothing has changed since, the answer is
    /// [`Listing::Unchanged`] and costs as little as the place allows.
    ///
    /// # Errors
    ///
    /// When the place cannot be reached or answers nonsense. A missing package is [`Listing::Absent`], not an
    /// error.
    fn list(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError>;

    /// Lists the package with all that its place says of it, after [`Provider::list`] has left out what selection does not need
    /// ([`Release::short`]).
    ///
    /// # Errors
    ///
    /// As [`Provider::list`].
    fn list_in_full(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        self.list(location, None, progress)
    }

    /// The local data about the package, if it contains all of these commits (40 digits each) or digests. Then no
    /// request is needed for them.
    ///
    /// This does not connect to anything. It is `None` for places without commits.
    fn recall(
        &self,
        _location: &Location,
        _revisions: &[String],
        _progress: &dyn Progress,
    ) -> Option<Found> {
        None
    }

    /// The releases that are a commit, as the last listing on this machine has them; `None` if there is no listing.
    /// If one of them is `version`, the others may be missing.
    ///
    /// This does not connect to anything. It is `None` for places without commits.
    fn releases_of(
        &self,
        _location: &Location,
        _commit: &Commit,
        _version: &str,
    ) -> Option<Vec<Release>> {
        None
    }

    /// Whether `version` is at this commit, as far as the place tells without listing all that it has; `false` also if it does not tell.
    fn has_version_at(
        &self,
        _location: &Location,
        _commit: &Commit,
        _version: &str,
        _progress: &dyn Progress,
    ) -> bool {
        false
    }

    /// Lists the packages that provide a capability (`GROUP/VERSION/KIND`) in order of preference, as
    /// releases with only a name. `location` is that of any package of the registry.
    ///
    /// # Errors
    ///
    /// When the place cannot be reached or answers nonsense. A place without such lists, as most kinds are,
    /// is [`Listing::Absent`].
    fn providers(
        &self,
        _location: &Location,
        _capability: &str,
        _validator: Option<&str>,
        _progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        Ok(Listing::absent(Vec::new()))
    }

    /// Lists the capabilities (`GROUP/VERSION/KIND`) that packages of the registry provide; `None` if the
    /// registry has no such list.
    ///
    /// # Errors
    ///
    /// When the place cannot be reached or answers nonsense.
    fn capabilities(
        &self,
        _location: &Location,
        _progress: &dyn Progress,
    ) -> Result<Option<BTreeSet<String>>, ProviderError> {
        Ok(None)
    }

    /// Finds a revision that is not in the listing: a commit, with all digits or some, or a digest; if the provider
    /// [has revisions](Facts::has_revisions) or its [listings are hints](LineTrust::Hint), also a tag or a branch.
    ///
    /// If it is a digest, everything that selection needs of it is in the answer, or [`Provider::confirm`] has it. The same holds for
    /// a tag where listings are hints: the commit in the answer is the digest of what the tag leads to, if it is no listed version.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::NotFound`] when there is no such revision, several that match, or the place has no
    /// commits.
    fn resolve(
        &self,
        location: &Location,
        revision: &str,
        _progress: &dyn Progress,
    ) -> Result<Release, ProviderError> {
        let (of, place) = (location.describe(), self.facts().place);
        let text = format!("there is no commit `{revision}` of `{of}`: {place} has no commits");
        Err(ProviderError::new(ErrorKind::NotFound, text))
    }

    /// The manifest of a release whose line in the listing does not have its dependencies.
    ///
    /// `None` means that the release has no manifest, or that its manifest adds nothing to what else is known, which is the default.
    ///
    /// # Errors
    ///
    /// When the release cannot be fetched.
    fn manifest(
        &self,
        _location: &Location,
        _release: &Release,
        _progress: &dyn Progress,
    ) -> Result<Option<ManifestFile>, ProviderError> {
        Ok(None)
    }

    /// What the place itself says about a version, if its listing is only a hint. mu calls this before it
    /// uses a version, or if the listing does not have the version's dependencies.
    ///
    /// `None` means that the listing has everything, or that [`Provider::manifest`] has more. If the version
    /// is not a package, the answer has [`Release::unusable`].
    ///
    /// # Errors
    ///
    /// When the place cannot be reached, or no longer has such a version.
    fn confirm(
        &self,
        _location: &Location,
        _release: &Release,
        _progress: &dyn Progress,
    ) -> Result<Option<Release>, ProviderError> {
        Ok(None)
    }

    /// Writes the files of a release into `tree`, and nothing else.
    ///
    /// `release` comes from a listing or from a lock. From a lock, it has only what a lock has (version,
    /// commit, archive, digest, urls). The provider compares the archive's digest, and the caller the
    /// content's.
    ///
    /// # Errors
    ///
    /// When anything is missing, incomplete, refused by `tree`, or does not match its digest.
    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError>;

    /// As [`Provider::fetch`], and returns all that the files can be made of again where its place cannot be asked: the archive of the
    /// release, or the objects of its commit. `None` if there is no such thing.
    ///
    /// # Errors
    ///
    /// As [`Provider::fetch`].
    fn preserve(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        tree.keeps_archive = KeptArchives::All;
        self.fetch(location, release, tree, progress)?;
        Ok(tree.archive.take())
    }

    /// Writes the files of a release into `tree`, made of what [`Provider::preserve`] has returned, which may have been changed since.
    /// No place is asked.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Integrity`] when it is something else than the release names; [`ErrorKind::NotFound`] if this kind of place
    /// preserves nothing, which is the default.
    fn restore(
        &self,
        location: &Location,
        _release: &Release,
        _preserved: &[u8],
        _tree: &mut TreeWriter,
        _progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let text = format!(
            "`{}` is {}, of which nothing is kept",
            location.describe(),
            self.facts().place
        );
        Err(ProviderError::new(ErrorKind::NotFound, text))
    }

    /// What copies its archives as they are; `None` where a copy has to be packed again, which is the default.
    fn copier(&self) -> Option<&dyn Copier> {
        None
    }

    /// What the registry at `location`, whose path is empty, has, or what has changed in it since an earlier answer. From this call on,
    /// caches on the way are not believed about its packages: what they keep could be older than the answer.
    ///
    /// `None` means that this kind of place does not say it, which is the default.
    ///
    /// # Errors
    ///
    /// When the place cannot be reached, or does not list what it has.
    fn changes(
        &self,
        _location: &Location,
        _since: Option<&LogPosition>,
        _progress: &dyn Progress,
    ) -> Result<Option<Changes>, ProviderError> {
        Ok(None)
    }

    /// The URL of the archive of a release, as [`crate::SafeUrl`] shows it, as far as that is known without asking the network; `release` as in
    /// [`Provider::fetch`].
    ///
    /// `None` where releases have no archives, or nothing says where this one is.
    fn archive(&self, _location: &Location, _release: &Release) -> Option<String> {
        None
    }

    /// The signed statement about the archive of a release that lies beside it; `None` if there is none, which is the default.
    ///
    /// # Errors
    ///
    /// When that cannot be found out.
    fn provenance(
        &self,
        _location: &Location,
        _release: &Release,
        _progress: &dyn Progress,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        Ok(None)
    }

    /// What vouches for a release where it comes from. `release` as in [`Provider::fetch`]; from a lock it has the digest of its
    /// manifest, if the lock has it.
    ///
    /// By default, nothing does. Nothing of it is verified here.
    ///
    /// # Errors
    ///
    /// When a place cannot be asked. If it has nothing, that is an answer.
    fn evidence(
        &self,
        _location: &Location,
        _release: &Release,
        _progress: &dyn Progress,
    ) -> Result<FoundEvidence, ProviderError> {
        Ok(FoundEvidence::default())
    }

    /// Searches the registry at `location`, whose path is empty, for packages with these words.
    ///
    /// `None` means that this kind of place cannot be searched, which is the default.
    ///
    /// # Errors
    ///
    /// When the registry cannot be reached, or cannot be searched.
    fn search(
        &self,
        _location: &Location,
        _query: &Query,
        _progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        Ok(None)
    }

    /// The commits of a repository that led from one revision of a package to another one, the newest first, and no more than
    /// [`MOST_LOGGED`].
    ///
    /// `None` means that they cannot be had, or only together with the files of each, which is the default.
    ///
    /// # Errors
    ///
    /// When the repository cannot be reached.
    fn log(
        &self,
        _location: &Location,
        _from: &str,
        _to: &str,
        _progress: &dyn Progress,
    ) -> Result<Option<Vec<LoggedCommit>>, ProviderError> {
        Ok(None)
    }

    /// Asks the registry at `location`, whose path is empty, whose the password or token is that is stored for it.
    ///
    /// `None` means that it lets in everybody, or that this kind of place cannot be asked, which is the default.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Auth`](crate::ErrorKind::Auth) if it does not accept what is stored; otherwise when it cannot be reached, or there
    /// is none.
    fn account(
        &self,
        _location: &Location,
        _progress: &dyn Progress,
    ) -> Result<Option<Account>, ProviderError> {
        Ok(None)
    }
}

/// The most commits of which [`Provider::log`] tells.
pub const MOST_LOGGED: usize = 200;

/// A commit, as a list of commits has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCommit {
    /// Its name.
    pub commit: Commit,
    /// The first line of what its author says about it: foreign text of any kind.
    pub title: String,
}

/// Whether a file at this path of a package has that name in which authors tell what has changed.
pub fn is_changelog(path: &str) -> bool {
    let name = path.to_ascii_lowercase();
    let name = name.strip_suffix(".md").or_else(|| name.strip_suffix(".txt")).unwrap_or(&name);
    matches!(name, "changelog" | "changes" | "history" | "news" | "releases")
}

/// What holds for the places of a provider.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts {
    /// What a place is called in messages: `a hub`.
    pub place: &'static str,
    /// What its places are.
    pub kind: PlaceKind,
    /// What a line of a listing is worth.
    pub lines: LineTrust,
    /// Whether the manifest of a release must have the name and the version that it is listed with.
    pub names_are_binding: bool,
    /// Whether the manifest of a release must agree with its line in everything that selection uses, and have
    /// the version that it is listed with.
    pub lines_are_binding: bool,
    /// Whether its places know what they have by `sha256:` digests, which [`Provider::resolve`] takes then.
    pub has_digests: bool,
    /// Whether the digest of an archive, with its locator, says what is in it once it is unpacked, however often that happens.
    pub archives_are_content: bool,
    /// Whether its places may have commits, branches and a tip beside versions, without being repositories. A listing then has
    /// some of them, and [`Provider::resolve`] takes the names of others.
    pub has_revisions: bool,
    /// Whether its places have no namespaces: only the last segment of a name is the package there, and the
    /// segments before it lead to the place.
    pub places_are_flat: bool,
    /// Whether whoever set its places up answers for what they have, so that rules about signatures do not speak of it.
    pub answers_for_itself: bool,
}

/// What the places of a provider are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlaceKind {
    /// Registries of their own kind.
    #[default]
    Registry,
    /// Hubs.
    Hub,
    /// OCI registries, whose artifacts can be copied as they are.
    OciRegistry,
    /// Catalogs of operators, which a cluster can install from the same place.
    OperatorCatalog,
    /// Repositories, which have commits, branches and a default branch in addition to versions.
    Repository,
    /// Folders on this machine, each with one version, which every run reads again.
    Folder,
}

/// What a line of a listing is worth for selection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineTrust {
    /// A line without dependencies is completed from the manifest of its version when that is looked at.
    #[default]
    Partial,
    /// A line has everything, so that the manifest adds nothing.
    Complete,
    /// The manifest is only in the archive. A line without dependencies is completed once, when it is listed, with what
    /// [`Provider::manifest`] has, and the version there counts.
    InArchive,
    /// A line is only a hint, and [`Provider::confirm`] knows what a version really is.
    Hint,
}

impl LineTrust {
    /// Whether nothing is left to be found out about a listed version.
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Complete | Self::InArchive)
    }
}

/// Copies the archives of a registry as they are; its index lines hold for the copies, too.
pub trait Copier {
    /// Writes the archive of a release into `into`; it has the expected digest.
    ///
    /// # Errors
    ///
    /// As [`Provider::fetch`].
    fn copy_archive(
        &self,
        location: &Location,
        release: &Release,
        into: &mut dyn io::Write,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError>;
}

/// What a provider will be asked soon.
#[derive(Debug, Clone, Copy)]
pub enum Soon<'a> {
    /// To list more packages below the root of the location, of which nothing is known yet.
    List {
        /// Their paths.
        packages: &'a [String],
        /// Whether the dependencies of these packages will be listed too.
        leads_on: bool,
    },
    /// To list the package at the location [in full](Provider::list_in_full).
    ListInFull,
    /// To fetch this release.
    Fetch(&'a Release),
}

/// The answer of a place to the question for a package's releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// Nothing has changed since the validator was issued; `max_age` as in [`Found`].
    Unchanged {
        /// For how many seconds the answer stays valid without another request.
        max_age: Option<u32>,
        /// The validator for the next time, if another one saves work.
        validator: Option<String>,
    },
    /// The place has no such package.
    Absent {
        /// The URLs or paths that were tried, for the message.
        tried: Vec<String>,
        /// What to hand back to ask whether that is still so, if that saves a request.
        validator: Option<String>,
        /// For how many seconds it stays so without another request, as in [`Found`].
        max_age: Option<u32>,
    },
    /// The package's releases.
    Found(Found),
}

impl Listing {
    /// There is no such package, and what was tried to find it; asking again takes a request as the first time.
    pub fn absent(tried: Vec<String>) -> Self {
        Self::Absent { tried, validator: None, max_age: None }
    }
}

/// The releases of a package, as they arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// One JSON object per line, each a [`Release`]. They stay bytes, because most lines are never parsed.
    pub lines: Vec<u8>,
    /// What to hand back to ask whether anything changed.
    pub validator: Option<String>,
    /// For how many seconds the answer stays valid without another request; 0 means to ask every time, and `None` that the
    /// place does not say.
    pub max_age: Option<u32>,
    /// The place of the package, if it is known more precisely now (a Git repository's root).
    pub location: Location,
    /// Names of packages of the same registry that this one may lead to, in registries where each needs its
    /// own request. This is only a hint, which may be out of date or wrong.
    pub leads_to: Vec<String>,
}

impl Found {
    /// The lines of the package at `location`, which leads to no others that are known.
    pub fn new(
        location: &Location,
        lines: Vec<u8>,
        validator: Option<String>,
        max_age: Option<u32>,
    ) -> Self {
        Self { lines, validator, max_age, location: location.clone(), leads_to: Vec::new() }
    }

    /// The releases, as far as their lines can be read.
    pub fn releases(&self) -> impl Iterator<Item = Release> {
        read_json_lines(&self.lines).flatten()
    }
}

/// The names that a manifest of mu's own can have.
pub const MANIFEST_NAMES: [&str; 2] = ["Mu.yaml", "Mu.json"];

/// The manifests of other ecosystems. A folder that has one, and none of mu's own, is a package; the first that is there counts.
/// Behind each is the file beside it that belongs to it, if there is one.
pub const FOREIGN_MANIFESTS: [(&str, Option<&str>); 4] = [
    ("Chart.yaml", Some("requirements.yaml")),
    ("kcl.mod", None),
    ("crossplane.yaml", None),
    ("package.yaml", None),
];

/// The manifests of ecosystems whose files other programs have under the same name, too. They count after
/// [`FOREIGN_MANIFESTS`]; the first that is there counts.
pub const MARKED_MANIFESTS: [MarkedManifest; 2] = [
    MarkedManifest {
        name: "metadata/annotations.yaml",
        marker: "operators.operatorframework.io.bundle.package.v1",
        others: &["metadata/properties.yaml", "metadata/dependencies.yaml"],
        folder: Some("manifests/"),
    },
    MarkedManifest { name: "operator.yaml", marker: "kudo.dev/", others: &[], folder: None },
];

/// A manifest that is known by what it contains, and may be spread over several files.
#[derive(Debug, Clone, Copy)]
pub struct MarkedManifest {
    /// The file that makes a folder a package.
    pub name: &'static str,
    /// What the file `name` contains, and files of other programs under the same name do not.
    pub marker: &'static str,
    /// Other files that belong to it.
    pub others: &'static [&'static str],
    /// The folder, with a slash, whose files belong to it.
    pub folder: Option<&'static str>,
}

impl MarkedManifest {
    fn find(
        &self,
        read: &dyn Fn(&str) -> Result<Option<String>, ProviderError>,
        list: &dyn Fn(&str) -> Result<Vec<String>, ProviderError>,
    ) -> Result<Option<ManifestFile>, ProviderError> {
        let text = match read(self.name) {
            // Whatever it is, it is not the file that is meant.
            Err(error) if error.kind() == ErrorKind::Manifest => None,
            read => read?,
        };
        let Some(text) = text.filter(|text| text.contains(self.marker)) else { return Ok(None) };
        let mut paths: Vec<String> = self.others.iter().map(|path| (*path).to_owned()).collect();
        if let Some(folder) = self.folder {
            paths.extend(list(folder)?.into_iter().map(|name| format!("{folder}{name}")));
        }
        let mut beside = Vec::new();
        for path in paths {
            if let Ok(Some(text)) = read(&path) {
                beside.push((path, text));
            }
        }
        Ok(Some(ManifestFile { name: self.name.to_owned(), text, beside }))
    }
}

/// A manifest as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestFile {
    /// One of [`MANIFEST_NAMES`], else of [`FOREIGN_MANIFESTS`], else of [`MARKED_MANIFESTS`].
    pub name: String,
    /// Its text.
    pub text: String,
    /// Paths and texts of the other files that belong to it, of a foreign one.
    pub beside: Vec<(String, String)>,
}

impl ManifestFile {
    /// Finds the manifest of a package: `read` reads a file of the package, and `list` lists the names of the files in a folder of
    /// it. Files beside one of [`MARKED_MANIFESTS`] that cannot be read as text are left out.
    ///
    /// # Errors
    ///
    /// When reading or listing fails; `both` if there are two manifests of mu's own.
    pub fn find(
        read: &dyn Fn(&str) -> Result<Option<String>, ProviderError>,
        list: &dyn Fn(&str) -> Result<Vec<String>, ProviderError>,
        both: &dyn Fn() -> ProviderError,
    ) -> Result<Option<Self>, ProviderError> {
        let mut own = None;
        for name in MANIFEST_NAMES {
            let Some(text) = read(name)? else { continue };
            if own.is_some() {
                return Err(both());
            }
            own = Some(Self { name: name.to_owned(), text, beside: Vec::new() });
        }
        if own.is_some() {
            return Ok(own);
        }
        for (name, beside) in FOREIGN_MANIFESTS {
            let Some(text) = read(name)? else { continue };
            let mut file = Self { name: name.to_owned(), text, beside: Vec::new() };
            if let Some(name) = beside {
                file.beside.extend(read(name)?.map(|text| (name.to_owned(), text)));
            }
            return Ok(Some(file));
        }
        for marked in MARKED_MANIFESTS {
            if let Some(found) = marked.find(read, list)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// The place of one package: a root URL, and the path below it.
///
/// | provider | `root` | `path` | `folder` |
/// | --- | --- | --- | --- |
/// | hub | the folder that holds `hub.json` | the package's name, `aws/ec2` | `None` |
/// | git, as written | the host, `https://host/` | the rest, `.git` marks kept: `group/repo.git/sub` | `None` |
/// | git, settled | the repository, `https://host/group/repo.git` | empty | `Some("sub")`, `Some("")` for its root |
/// | helm | the folder that holds `index.yaml` | the chart | `None` |
/// | oci | the registry, `https://host/`, and the part before names there | the rest of the repository's name | `None` |
/// | olm | the catalog: a folder, a file, a server, an image | the operator | `None` |
/// | url | the folder that the archive is in, on a web server | the archive's name | `None` |
/// | path | the folder, `file:///srv/ec2/` | empty | `None` |
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The URL of the registry, host, repository or folder; it was named by somebody who may name it.
    pub root: Lead,
    /// The package below `root`, slash-separated, without a leading slash.
    pub path: String,
    /// The package's folder in a Git repository (`""` for the root), once the repository's root is known.
    pub folder: Option<String>,
    /// Whether plain http to another machine was allowed for this registry.
    pub insecure: bool,
    /// Whether `v1` and `1.28` count as versions (`versions: lenient`).
    pub lenient: bool,
    /// Why somebody wants to know when versions were published.
    pub dates: Dates,
}

/// Why somebody wants to know when versions were published, where finding it out takes more requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dates {
    /// Nobody does.
    #[default]
    Ignored,
    /// To show it: an unknown date is shown as such.
    Shown,
    /// To choose versions by it: versions without a date cannot be chosen, so the user is warned.
    Needed,
}

impl Location {
    /// A location without special permissions. For Git, the repository's root is not known yet.
    pub fn new(root: Lead, path: impl Into<String>) -> Self {
        Self {
            root,
            path: path.into(),
            folder: None,
            insecure: false,
            lenient: false,
            dates: Dates::default(),
        }
    }

    /// The location as a person would write it, for messages.
    pub fn describe(&self) -> String {
        let root = self.root.to_string();
        let mut text = if self.path.is_empty() {
            root
        } else {
            format!("{}/{}", root.trim_end_matches('/'), self.path)
        };
        if let Some(folder) = self.folder.as_deref().filter(|folder| !folder.is_empty()) {
            text = format!("{}/{folder}", text.trim_end_matches('/'));
        }
        text
    }
}

/// Receives the progress of one piece of work, such as one download.
///
/// The thread that does the work makes the calls. Implementations must be fast: there may be a call for every
/// few kilobytes.
pub trait Progress: Send + Sync {
    /// `done` of `total` bytes have arrived; the total is not always known.
    fn bytes(&self, done: u64, total: Option<u64>);

    /// The work waits, for the reason in `what`: another process holds a lock, or a retry comes later.
    fn waiting(&self, what: &str);

    /// Something that the user should know although nothing failed.
    fn warning(&self, text: &str);

    /// The current activity, such as `cloning https://…`.
    fn doing(&self, _what: &str) {}

    /// A detail. The text is built only if it is shown.
    fn detail(&self, _text: &dyn Fn() -> String) {}
}

/// Ignores all progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn bytes(&self, _done: u64, _total: Option<u64>) {}

    fn waiting(&self, _what: &str) {}

    fn warning(&self, _text: &str) {}
}
