//! Brings the trees that a lock names into the store: from the store itself, from packs that are
//! already on this machine, else from where they are published. Many at once.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mu_provider::{Digest, Location, Release, SafeUrl, Soon, TreeWriter};

use crate::fs;
use crate::guard::{self, lock};
use crate::index::Route;
use crate::lock::LockedPackage;
use crate::manifest::{Manifest, YAML_NAME};
use crate::ops::apply::at_once::work_at_once;
use crate::ops::apply::identity::{Content, check, check_all, is_checked, said_plainly};
use crate::ops::apply::outcome::Fetched;
use crate::ops::session::events::CallProgress;
use crate::ops::solve::resolved::Resolved;
use crate::ops::{Code, CommandError, Session, Stage};
use crate::packs::{Wanted, hash_folder};
use crate::reference::PackageId;
use crate::store::{StoreError, Stored};
use crate::workspace::MU_FOLDER;

/// How many times as many packages are asked for ahead as may be on their way at once: so the next request is sent as soon as
/// an answer is there, without waking a thread here.
const AHEAD: usize = 6;

/// Brings every package of `resolved` into the store, and fills in the digests that were not known.
///
/// # Errors
///
/// As [`Fetching::finish`].
pub fn fetch(session: &Session, resolved: &mut Resolved) -> Result<Fetched, CommandError> {
    let brought = Fetching::begin(session, resolved).finish(&|_, _| Ok(()))?;
    for (index, digest) in brought.digests {
        if resolved.lock.packages[index].digest != Some(digest) {
            Arc::make_mut(&mut resolved.lock).packages[index].digest = Some(digest);
        }
    }
    Ok(brought.counts)
}

/// The packages of a lock on their way into the store.
pub struct Fetching<'run> {
    session: &'run Session,
    resolved: &'run Resolved,
    places: Places,
    /// How many packages are there already.
    reused: usize,
    /// The places in the lock of those that were chosen by an index in this run, and are there.
    present: Vec<usize>,
    /// The places in the lock of those that are not there.
    missing: Vec<usize>,
    /// How each of these is fetched.
    ways: Vec<Way>,
    turn: Mutex<Turn>,
    done: AtomicUsize,
    /// How many are on their way at once.
    most: usize,
}

/// What came into the store.
pub struct Brought {
    /// How much that was.
    pub counts: Fetched,
    /// The digests of what was missing, by the places in the lock.
    digests: Vec<(usize, Digest)>,
}

/// Whose turn it is among the packages that are missing.
#[derive(Debug)]
struct Turn {
    /// The one that is fetched next.
    next: usize,
    /// The first that was not asked for ahead.
    asked: usize,
}

impl<'run> Fetching<'run> {
    /// Finds out what is missing, and asks for the first of it.
    pub fn begin(session: &'run Session, resolved: &'run Resolved) -> Self {
        let mut reused = 0;
        let (mut present, mut missing) = (Vec::new(), Vec::new());
        let is_empty = session.store.is_empty();
        for (index, package) in resolved.lock.packages.iter().enumerate() {
            if package.source.is_workspace() {
                continue;
            }
            let is_there =
                !is_empty && package.digest.is_some_and(|digest| session.store.contains(&digest));
            if is_there && !package.source.is_folder() {
                reused += 1;
                if is_checked(session, package) && resolved.releases.contains_key(&index) {
                    present.push(index);
                }
            } else {
                missing.push(index);
            }
        }
        if !missing.is_empty() {
            session.events.progress(Stage::Fetching, 0, missing.len());
        }
        let most = session.network_jobs().min(missing.len());
        let fetching = Self {
            session,
            resolved,
            places: Places::find(session),
            reused,
            present,
            ways: missing.iter().map(|_| Way::default()).collect(),
            missing,
            turn: Mutex::new(Turn { next: 0, asked: most }),
            done: AtomicUsize::new(0),
            most,
        };
        (0..most).for_each(|number| fetching.prefetch(number));
        fetching
    }

    /// Brings every package into the store.
    ///
    /// `then` is called with the place in the lock of each package that came into the store, and with its tree.
    ///
    /// # Errors
    ///
    /// When one cannot be fetched, or is not what the lock or the index says, or `then` fails. Those that were fetched
    /// stay in the store for the next run.
    pub fn finish(
        self,
        then: &(dyn Fn(usize, &Stored) -> Result<(), CommandError> + Sync),
    ) -> Result<Brought, CommandError> {
        self.check_present()?;
        let digests = Mutex::new(Vec::with_capacity(self.missing.len()));
        let here = AtomicUsize::new(self.reused);
        let failure = Mutex::new(None);
        let work = || {
            while let Some(number) = self.take() {
                let index = self.missing[number];
                let package = &self.resolved.lock.packages[index];
                let fetched = self.fetch_one(number).and_then(|(stored, was_here)| {
                    then(index, &stored)?;
                    // A folder is read each time, which is no news where its content is as it was.
                    let is_known = package.digest == Some(stored.digest);
                    Ok((stored.digest, was_here || is_known && package.source.is_folder()))
                });
                match fetched {
                    Ok((digest, was_here)) => {
                        lock(&digests).push((index, digest));
                        here.fetch_add(usize::from(was_here), Ordering::Relaxed);
                        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
                        self.session.events.progress(Stage::Fetching, done, self.missing.len());
                    }
                    Err(error) => {
                        lock(&self.turn).next = self.missing.len();
                        lock(&failure).get_or_insert(error);
                    }
                }
            }
        };
        work_at_once(self.session.disk_jobs(), self.most, &self.done, &work);
        if let Some(error) = guard::into_inner(failure) {
            return Err(error);
        }
        let reused = here.into_inner();
        let fetched = self.reused + self.missing.len() - reused;
        Ok(Brought { counts: Fetched { fetched, reused }, digests: guard::into_inner(digests) })
    }

    /// Checks what need not be fetched against the index lines that it was chosen by.
    fn check_present(&self) -> Result<(), CommandError> {
        let Self { session, resolved, .. } = *self;
        let folders: Vec<PathBuf> = self
            .present
            .iter()
            .map(|index| {
                let digest = resolved.lock.packages[*index].digest;
                session.store.tree_path(&digest.expect("what is there has a digest"))
            })
            .collect();
        let contents = self.present.iter().zip(&folders).map(|(index, folder)| Content {
            package: &resolved.lock.packages[*index],
            line: resolved.releases.get(index).map(|(_, line)| &**line),
            folder,
            manifest: None,
        });
        let contents: Vec<Content<'_>> = contents.collect();
        check_all(session, &contents, &|package| route_of(session, package, &self.places))
    }

    /// The number of the package that is fetched next, if one is left.
    fn take(&self) -> Option<usize> {
        let mut turn = lock(&self.turn);
        let number = turn.next;
        turn.next += 1;
        let asked = turn.asked.max(number);
        // While some are unpacked here, those that come next are on their way, or have come: but only once one has come,
        // because then it is known that they are where they are looked for.
        let done = self.done.load(Ordering::Relaxed);
        let end = self.missing.len().min(done + AHEAD * self.most);
        if done > 0 && (end == self.missing.len() || end >= asked + AHEAD / 2 * self.most) {
            turn.asked = end.max(asked);
        }
        let ahead = asked..turn.asked;
        drop(turn);
        // For many at a time, so that whoever sends that is woken once for all of them.
        ahead.for_each(|number| self.prefetch(number));
        (number < self.missing.len()).then_some(number)
    }

    /// Has the provider ask for a package that is fetched soon, unless it may be on this machine.
    fn prefetch(&self, number: usize) {
        let index = self.missing[number];
        let package = &self.resolved.lock.packages[index];
        if package.digest.is_some() && self.places.may_hold(&package.id) {
            return;
        }
        // Why it cannot be asked for is said where the package is fetched.
        if let Ok((route, release)) = self.way(number) {
            route.provider.soon(&route.location, Soon::Fetch(&release));
        }
    }

    /// The way to a package that is missing.
    fn way(&self, number: usize) -> Result<(Arc<Route>, Arc<Release>), CommandError> {
        let index = self.missing[number];
        if let Some(known) = self.resolved.releases.get(&index).or(self.ways[number].get()) {
            return Ok(known.clone());
        }
        let package = &self.resolved.lock.packages[index];
        let route = Arc::new(route_of(self.session, package, &self.places)?);
        let way = (route, Arc::new(release_of(package)));
        Ok(self.ways[number].get_or_init(|| way).clone())
    }

    /// Brings one package into the store; also says whether its content was on this machine.
    fn fetch_one(&self, number: usize) -> Result<(Stored, bool), CommandError> {
        let session = self.session;
        let index = self.missing[number];
        let package = &self.resolved.lock.packages[index];
        let is_folder = package.source.is_folder();
        // A folder's content is what it is now; the lock only records it, unless nothing but the lock counts.
        let is_pinned = !is_folder || session.options.frozen || session.options.locked;
        let expected = package.digest.filter(|_| is_pinned);
        if is_folder && is_pinned && expected.is_none() {
            return Err(folder_has_changed());
        }
        let line = self.resolved.releases.get(&index).map(|(_, line)| &**line);
        let judge = |stored: &Stored, manifest: Option<&[u8]>| {
            let content = Content { package, line, folder: &stored.folder, manifest };
            check(session, &content, &|| Ok(Route::clone(&*self.way(number)?.0)))
        };
        if let Some(digest) = expected.filter(|_| !is_folder)
            && let Some(stored) = from_pack(session, package, &digest, &self.places)
        {
            judge(&stored, None)?;
            return Ok((stored, true));
        }
        let (route, release) = self.way(number)?;
        let what = format!("{} {}", package.id, package.version);
        session.events.detail(&|| format!("fetching {what} from {}", route.location.describe()));
        let progress = CallProgress { events: &*session.events, what: &what };
        let mut manifest = None;
        let result = session.store.add_called(expected.as_ref(), |tree| {
            tree.keep(YAML_NAME);
            route.provider.fetch(&route.location, &release, tree, &progress)?;
            manifest = tree.take_kept();
            let plain = manifest.as_deref().and_then(said_plainly);
            Ok(plain.map_or_else(String::new, |(name, version)| [name, " ", version].concat()))
        });
        match result {
            Ok(stored) => {
                if let Err(error) = judge(&stored, manifest.as_deref()) {
                    // What was there before somebody else may use.
                    if stored.checked.is_none() {
                        session.store.remove(&stored.digest)?;
                    }
                    return Err(error);
                }
                Ok((stored, false))
            }
            Err(StoreError::Mismatch { .. }) if is_folder => Err(folder_has_changed()),
            Err(StoreError::Mismatch { expected, actual }) => {
                let is_chosen = self.resolved.releases.contains_key(&index);
                let said_by = if is_chosen { "the index" } else { "Mu.lock" };
                let place = route.location.describe();
                Err(CommandError::new(
                    Code::Integrity,
                    format!(
                        "the content of `{what}` is not what {said_by} says: expected {expected}, got \
                         {actual}, from {place}"
                    ),
                )
                .hint("nothing was installed; whoever publishes the package must say why its content changed")
                .with_details(serde_json::json!({
                    "id": package.id.to_string(),
                    "version": package.version,
                    "expected": expected.to_string(),
                    "actual": actual.to_string(),
                    "from": place,
                })))
            }
            Err(error) => {
                Err(CommandError::from(error).while_doing(format!("cannot fetch `{what}`")))
            }
        }
    }
}

/// Checks a tree that was in the store already and becomes the pack `wanted`.
///
/// # Errors
///
/// When the content that the lock pins is that of another package or version.
pub(crate) fn check_stored(
    session: &Session,
    resolved: &Resolved,
    wanted: &Wanted,
    stored: &Stored,
) -> Result<(), CommandError> {
    let name = wanted.id.split_once('/').map(|(_, name)| name);
    if name.is_some() && stored.called.split_once(' ') == name.zip(Some(&*wanted.version)) {
        return Ok(());
    }
    let mut packages = resolved.lock.packages.iter().enumerate();
    let Some((index, package)) = packages
        .find(|(_, package)| package.version == wanted.version && package.id.as_str() == wanted.id)
    else {
        return Ok(());
    };
    // What was chosen by an index line was held against that line.
    if resolved.releases.contains_key(&index) {
        return Ok(());
    }
    let content = Content { package, line: None, folder: &stored.folder, manifest: None };
    let places = Places { packs: HashSet::new(), roots: Mutex::default() };
    check(session, &content, &|| route_of(session, package, &places))
}

/// The error about a folder that is not what the lock says, where the lock must not change.
fn folder_has_changed() -> CommandError {
    CommandError::new(
        Code::LockOutdated,
        "a folder outside the workspace has changed since Mu.lock was written",
    )
    .hint("run `mu get` without --locked and --frozen, and commit Mu.lock")
}

/// How a package is fetched, once that is known.
type Way = OnceLock<(Arc<Route>, Arc<Release>)>;

/// Brings one release into the store, whatever any lock says of it.
pub(crate) fn fetch_release(
    session: &Session,
    id: &PackageId,
    route: &Route,
    release: &Release,
) -> Result<Stored, CommandError> {
    let what = format!("{id} {}", release.version);
    let progress = CallProgress { events: &*session.events, what: &what };
    let expected = release.digest.as_deref().and_then(|text| text.parse().ok());
    session
        .store
        .add(expected.as_ref(), |tree| {
            route.provider.fetch(&route.location, release, tree, &progress)
        })
        .map_err(|error| CommandError::from(error).while_doing(format!("cannot fetch `{what}`")))
}

/// The provider and place that a lock's entry names.
fn route_of(
    session: &Session,
    package: &LockedPackage,
    places: &Places,
) -> Result<Route, CommandError> {
    let provider = session
        .index()
        .providers()
        .get(&package.source.provider)
        .map_err(|error| CommandError::from_error(Code::NotFound, error))?;
    let damaged = || {
        CommandError::new(
            Code::Workspace,
            format!("the source `{}` of `{}` in Mu.lock is no place", package.source, package.id),
        )
    };
    let is_repository = provider.is_repository();
    let registry = session.index().registry(&package.id);
    let mut location = if package.source.is_folder() {
        let folder = crate::env::absolute(&session.lock_folder(), package.source.place.as_ref());
        if !may_be_folder(session, &package.id, &folder) {
            let message = format!(
                "Mu.lock takes `{}` from the folder `{}`, and no override in the settings does",
                package.id,
                folder.display()
            );
            return Err(CommandError::new(Code::Integrity, message)
                .hint("run `mu get` without --frozen, which mends Mu.lock, or restore it"));
        }
        let root = url::Url::from_directory_path(folder).map_err(|()| damaged())?;
        Location::new(root.into(), "")
    } else {
        let root = match package.source.place.strip_prefix("./") {
            Some(inside) => {
                let path = session.lock_folder().join(inside);
                let is_folder = inside.ends_with('/');
                let url = if is_folder {
                    url::Url::from_directory_path(path)
                } else {
                    url::Url::from_file_path(path)
                };
                SafeUrl::from(url.map_err(|()| damaged())?)
            }
            None => places.root(&package.source.place).map_err(|_| damaged())?,
        };
        // A registry of the settings may serve only what is below a prefix of the id.
        let path = registry.map_or_else(|| package.id.name_str(), |(_, rest)| rest);
        Location::new(root, if is_repository { "" } else { path })
    };
    if is_repository {
        location.folder = Some(package.folder.clone().unwrap_or_default());
    }
    location.insecure =
        session.options.allow_insecure || registry.is_some_and(|(registry, _)| registry.insecure);
    Ok(Route { provider, location })
}

/// Whether a folder outside of the workspace may be used for `id`: one that is called by its path, or that the settings put
/// in the place of the package. A lock alone, which anybody may have changed, is not enough.
fn may_be_folder(session: &Session, id: &PackageId, folder: &Path) -> bool {
    let root = &session.workspace.root;
    let is_it = |path: &str| crate::env::absolute(root, path.as_ref()) == folder;
    let overridden = session.workspace.settings.overrides.get(id);
    let is_registered = || {
        let (registry, _) = session.index().registry(id)?;
        let url = registry.url.as_ref().filter(|_| registry.provider.as_deref() == Some("path"))?;
        Some(folder.starts_with(url.as_url().to_file_path().ok()?))
    };
    *id == PackageId::local(folder)
        || overridden.and_then(|reference| reference.local()).is_some_and(is_it)
        || is_registered() == Some(true)
}

/// What a lock's entry knows of its release.
fn release_of(package: &LockedPackage) -> Release {
    Release {
        version: package.version.clone(),
        app_version: package.app_version.clone(),
        archive: package.archive.map(|digest| digest.to_string()),
        digest: package.digest.map(|digest| digest.to_string()),
        urls: package.url.clone().into_iter().collect(),
        commit: package.commit.clone(),
        ..Release::default()
    }
}

/// Whether the store has a package that nothing fetches again; it is taken from its own pack, if that is whole.
pub(crate) fn has_or_takes_back(session: &Session, package: &LockedPackage) -> bool {
    package.digest.is_some_and(|digest| {
        session.store.contains(&digest)
            || from_pack(session, package, &digest, &Places::find(session)).is_some()
    })
}

/// Copies a pack of this machine into the store, if it has the very content that is wanted.
fn from_pack(
    session: &Session,
    package: &LockedPackage,
    digest: &Digest,
    places: &Places,
) -> Option<Stored> {
    if !places.may_hold(&package.id) {
        return None;
    }
    let places = session.places.search().places(&package.id);
    // No other file stands for the manifest of a pack: a link could lead anywhere.
    let has_link = |folder: &Path| folder.join(YAML_NAME).is_symlink();
    let packs = places[2..].iter().filter(|place| place.folder.is_dir());
    for place in packs.filter(|place| !has_link(&place.folder)) {
        let Ok(Some(head)) = Manifest::load_head(&place.folder) else {
            continue;
        };
        let same_version =
            head.version.is_some_and(|version| version.to_string() == package.version);
        if !same_version {
            continue;
        }
        let mut skip = HashSet::new();
        if head.generated {
            skip.insert(place.folder.join(YAML_NAME));
        }
        let Ok(tree) = hash_folder(&place.folder, &skip) else {
            continue;
        };
        if tree.digest() == *digest {
            let stored =
                session.store.add(Some(digest), |writer| copy(&place.folder, &tree, writer));
            if let Ok(stored) = stored {
                return Some(stored);
            }
        }
    }
    None
}

/// What is asked for every package that is fetched, and found out once.
#[derive(Debug)]
struct Places {
    /// The first names below the packs folders of this machine. Most hold nothing of a package that is fetched, and need
    /// not be looked at for each.
    packs: HashSet<OsString>,
    /// The roots of registries and repositories, by their text in the lock.
    roots: Mutex<HashMap<String, SafeUrl>>,
}

impl Places {
    fn find(session: &Session) -> Self {
        let folders = session.places.search().packs().iter();
        let entries = folders.filter_map(|folder| fs::entries(folder).ok()).flatten();
        // Files are mu's own.
        let may_hold = |entry: &DirEntry| !entry.file_type().is_ok_and(|kind| kind.is_file());
        let names = entries.filter(may_hold).map(|entry| entry.file_name());
        Self { packs: names.filter(|name| name != MU_FOLDER).collect(), roots: Mutex::default() }
    }

    /// Whether a pack of this package may be there.
    fn may_hold(&self, id: &PackageId) -> bool {
        if self.packs.is_empty() {
            return false;
        }
        let first = id.name_str().split('/').next().unwrap_or_default();
        self.packs.contains(OsStr::new(first))
            || self.packs.contains(OsStr::new(&*id.base().folder_name()))
    }

    /// The root that `text` names.
    fn root(&self, text: &str) -> Result<SafeUrl, url::ParseError> {
        let mut roots = lock(&self.roots);
        if let Some(root) = roots.get(text) {
            return Ok(root.clone());
        }
        let root = SafeUrl::parse(text)?;
        roots.insert(text.to_owned(), root.clone());
        Ok(root)
    }
}

fn copy(
    folder: &Path,
    tree: &mu_provider::Tree,
    writer: &mut TreeWriter,
) -> Result<(), mu_provider::ProviderError> {
    use mu_provider::Mode;
    for entry in tree.entries() {
        let path = folder.join(&entry.path);
        if entry.mode == Mode::Symlink {
            let target = fs::read_link(&path)?;
            let target = target.to_string_lossy();
            writer.symlink(entry.path.as_bytes(), target.as_bytes())?;
        } else {
            let mut file = fs::open(&path)?;
            writer.file(entry.path.as_bytes(), entry.mode == Mode::Executable, &mut file)?;
        }
    }
    Ok(())
}
