//! Brings the trees that a lock names into the store: from the store itself, from packs that are already on this machine,
//! or from where they are published. Many at once.

mod error;
mod here;
mod now;
mod one;
mod route;
mod signed;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mu_provider::threads::{self, at_once, lock};
use mu_provider::{Digest, Release, Soon};

use crate::fs;
use crate::index::{Candidate, Route};
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::{Head, YAML_NAME};
use crate::ops::apply::fetch::error::{archive_differs, content_differs, not_fetched};
use crate::ops::apply::fetch::here::LocalPacks;
use crate::ops::apply::fetch::one::{
    changed_folder, note_release_archive, unpacked_before, work_at_once,
};
use crate::ops::apply::fetch::route::{LockedRoots, locked_release, way_of};
use crate::ops::apply::identity::{Content, check_all, is_checked};
use crate::ops::apply::outcome::FetchCounts;
use crate::ops::explain::unserved::with_requirer;
use crate::ops::session::events::Work;
use crate::ops::session::installed::needed_packs;
use crate::ops::session::shown::lines;
use crate::ops::solve::record::Resolved;
use crate::ops::{Code, CommandError, Session, Stage};
use crate::packs::{State, WantedPack};
use crate::store::{Stored, TreeStoreError};

pub(crate) use crate::ops::apply::fetch::error::folder_has_changed;
#[cfg(feature = "git")]
pub(crate) use crate::ops::apply::fetch::here::copy_writable;
pub(crate) use crate::ops::apply::fetch::here::{
    add_entry, check_placed, content_fault, content_of, drop_vouchers, folder_here,
    has_or_takes_back, keep_vouchers, placed_fault, placed_folder,
};
pub use crate::ops::apply::fetch::now::TrustProblem;
pub(crate) use crate::ops::apply::fetch::now::{ListedBy, problems_now};
#[cfg(feature = "publish")]
pub(crate) use crate::ops::apply::fetch::one::fetch_locked;
pub(crate) use crate::ops::apply::fetch::one::{bring_locked, store_release};
#[cfg(feature = "git")]
pub(crate) use crate::ops::apply::fetch::route::location_in_settings;
pub(crate) use crate::ops::apply::fetch::route::{
    archive_urls, fetch_archive, is_led_elsewhere, source_now, used_instead,
};
#[cfg(feature = "publish")]
pub(crate) use crate::ops::apply::fetch::route::{fetch_evidence, fetch_provenance};
pub(crate) use crate::ops::apply::fetch::signed::{bring_signed, check_signed, signers_here};

/// How many packages are requested ahead, as a multiple of those that may be in progress at once. The next request is then
/// sent as soon as an answer arrives, without waking a thread here.
const AHEAD: usize = 6;

/// Brings every package of `resolved` into the store, and fills in the missing digests.
pub fn fetch(session: &Session, resolved: &mut Resolved) -> Result<FetchCounts, CommandError> {
    let signed = bring_signed(session, resolved)?;
    let brought = Fetching::begin(session, resolved).finish(&|_, _| Ok(()))?;
    for (index, digest) in brought.digests {
        if resolved.lock.packages[index].digest != Some(digest) {
            Arc::make_mut(&mut resolved.lock).packages[index].digest = Some(digest);
        }
    }
    Ok(brought.counts.with_fetched(signed))
}

/// The packages of a lock on their way into the store.
pub struct Fetching<'run> {
    session: &'run Session,
    resolved: &'run Resolved,
    packs: LocalPacks,
    roots: LockedRoots,
    /// How many packages are already in the store.
    reused: usize,
    /// The places in the lock of packages that an index of this run chose and the store already has.
    present: Vec<usize>,
    /// The places in the lock of missing packages.
    missing: Vec<usize>,
    /// The source of each missing package.
    origins: Vec<Origin>,
    /// Whether each missing package was requested, ahead or not.
    requested: Vec<Mutex<bool>>,
    queue: Mutex<Queue>,
    done: AtomicUsize,
    /// How many are in progress at once.
    most: usize,
}

/// What was brought into the store.
pub struct Brought {
    /// The bytes of that.
    pub counts: FetchCounts,
    /// The digests of what was missing, by their places in the lock.
    digests: Vec<(usize, Digest)>,
}

/// The progress through the missing packages.
#[derive(Debug)]
struct Queue {
    /// The package to fetch next.
    next: usize,
    /// The first package that was not requested ahead.
    asked: usize,
}

/// The source of a package and what is known about its release, once that was looked up.
type Origin = OnceLock<(Arc<Route>, Arc<Release>)>;

impl<'run> Fetching<'run> {
    /// Finds the missing packages, and requests the first of them.
    pub fn begin(session: &'run Session, resolved: &'run Resolved) -> Self {
        let mut reused = 0;
        let (mut present, mut missing) = (Vec::new(), Vec::new());
        let is_empty = session.store.is_empty();
        // What each package is: nothing to fetch (of the workspace, or left out); there (where somebody has put it, or
        // in the store); or missing. A folder is always missing: its content may have changed since it was locked.
        for (index, package) in resolved.lock.packages.iter().enumerate() {
            // The lock must also have the digests of packages that are not installed.
            let is_known = package.digest.is_some() && package.is_patched_as_locked();
            let is_left_out = is_known && resolved.left_out.contains(&index);
            if package.source.is_workspace_folder() || is_left_out {
                continue;
            }
            if package.source.is_placed_pack() {
                reused += 1;
                continue;
            }
            // In a CI run, the store is empty, and there is nothing to look up in it.
            let is_stored = |digest: Digest| !is_empty && session.store.contains(&digest);
            // If the result of the patch is there, nobody needs the content that it was made from.
            if package.patched.is_some_and(is_stored) {
                reused += 1;
                continue;
            }
            let is_there = package.digest.is_some_and(is_stored);
            if is_there && !package.source.is_outside_folder() {
                reused += 1;
                // It came here for another lock, or as another package. That its digest is right does not say that it
                // is what the index line of this run means, so it is compared with that.
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
            packs: LocalPacks::find(session),
            roots: LockedRoots::default(),
            reused,
            present,
            origins: missing.iter().map(|_| Origin::default()).collect(),
            requested: missing.iter().map(|_| Mutex::default()).collect(),
            missing,
            queue: Mutex::new(Queue { next: 0, asked: most }),
            done: AtomicUsize::new(0),
            most,
        };
        // Nothing can be added there, so no request is wasted; `finish` says what is lacking.
        if !session.store.is_read_only() {
            (0..most).for_each(|number| fetching.prefetch(number));
        }
        fetching
    }

    /// Brings every package into the store.
    ///
    /// Calls `then` with the place in the lock and the tree of each package that arrived.
    pub fn finish(
        self,
        then: &(dyn Fn(usize, &Stored) -> Result<(), CommandError> + Sync),
    ) -> Result<Brought, CommandError> {
        // Both may refuse, so they come before anything is waited for.
        self.check_present()?;
        self.check_addable()?;
        let digests = Mutex::new(Vec::with_capacity(self.missing.len()));
        let here = AtomicUsize::new(self.reused);
        let failure = Mutex::new(None);
        // What each thread does, until no package is left or one has failed.
        let work = || {
            while let Some(number) = self.take() {
                let index = self.missing[number];
                let package = &self.resolved.lock.packages[index];
                let fetched = self.fetch_one(number).and_then(|(stored, was_here)| {
                    then(index, &stored)?;
                    // A folder is read each time; if its content is unchanged, that is not reported.
                    let is_known = package.digest == Some(stored.digest);
                    Ok((stored.digest, was_here || is_known && package.source.is_outside_folder()))
                });
                match fetched {
                    Ok((digest, was_here)) => {
                        lock(&digests).push((index, digest));
                        here.fetch_add(usize::from(was_here), Ordering::Relaxed);
                        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
                        self.session.events.progress(Stage::Fetching, done, self.missing.len());
                    }
                    Err(error) => {
                        // Nobody takes another package. What is under way is finished and stays, so the next run has
                        // less to do. The first error is told.
                        lock(&self.queue).next = self.missing.len();
                        lock(&failure).get_or_insert(error);
                    }
                }
            }
        };
        work_at_once(self.session.disk_jobs(self.missing.len()), self.most, &self.done, &work);
        if let Some(error) = threads::into_inner(failure) {
            return Err(error);
        }
        let reused = here.into_inner();
        let fetched = self.reused + self.missing.len() - reused;
        Ok(Brought {
            counts: FetchCounts { fetched, reused },
            digests: threads::into_inner(digests),
        })
    }

    /// Checks packages that need not be fetched against the index lines that chose them.
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
        let route = |package: &LockedPackage| Ok(way_of(session, package, &self.roots)?.route);
        let contents = self.present.iter().zip(&folders).map(|(index, folder)| Content {
            session,
            package: &resolved.lock.packages[*index],
            line: resolved.releases.get(index).map(|(_, line)| &**line),
            folder,
            manifest: None,
            is_fetched: false,
            route: &route,
        });
        check_all(session, &contents.collect::<Vec<_>>())
    }

    /// Refuses to download what a store that cannot be written lacks. (What is in a folder may be in the store.)
    fn check_addable(&self) -> Result<(), CommandError> {
        if !self.session.store.is_read_only() {
            return Ok(());
        }
        let packages = self.missing.iter().map(|index| &self.resolved.lock.packages[*index]);
        let lacking: Vec<String> = packages
            .filter(|package| !package.source.is_outside_folder())
            .map(|package| format!("{} {}", package.id, package.version))
            .collect();
        if lacking.is_empty() {
            return Ok(());
        }
        // What cannot be looked at is not lacking: the cache belongs to the user who has filled it.
        fs::metadata_if_there(self.session.store.folder())?;
        let message = format!(
            "the store in `{}` cannot be written (--store-readonly), and lacks:{}",
            self.session.store.folder().display(),
            lines(&lacking, 5)
        );
        Err(CommandError::new(Code::NotFound, message)
            .hint("run `mu fetch` with the same Mu.lock where the store can be written")
            .with_details(serde_json::json!({ "missing": lacking })))
    }

    /// The number of the next package to fetch, if one is left.
    fn take(&self) -> Option<usize> {
        // The missing packages, by their numbers:
        //
        //     0 ............ next ............ asked ............ end
        //       being fetched      requested          not yet
        //       or done            ahead
        let mut queue = lock(&self.queue);
        let number = queue.next;
        queue.next += 1;
        let asked = queue.asked.max(number);
        // While packages are unpacked here, the next ones are on their way or have arrived; but only after the first has
        // arrived, because then its source is known to be right.
        let done = self.done.load(Ordering::Relaxed);
        let end = self.missing.len().min(done + AHEAD * self.most);
        if done > 0 && (end == self.missing.len() || end >= asked + AHEAD / 2 * self.most) {
            queue.asked = end.max(asked);
        }
        let ahead = asked..queue.asked;
        drop(queue);
        // Many at a time, so that the sending thread is woken once for all of them.
        ahead.for_each(|number| self.prefetch(number));
        // From here on it is too late to request it ahead.
        *lock(self.requested.get(number)?) = true;
        Some(number)
    }

    /// Makes the provider request a package that is fetched soon, unless it may be on this machine, or another thread was
    /// faster.
    fn prefetch(&self, number: usize) {
        let mut requested = lock(&self.requested[number]);
        // Whoever sets it first sends the request: two threads may have come to the same package.
        if std::mem::replace(&mut *requested, true) {
            return;
        }
        let index = self.missing[number];
        let package = &self.resolved.lock.packages[index];
        let may_be_here = package.digest.is_some() && self.packs.first_names.may_hold(&package.id);
        if may_be_here || package.source.is_pack() {
            return;
        }
        // An error here is reported when the package is fetched.
        if let Ok((route, release)) = self.origin(number)
            && (package.digest.is_some()
                || unpacked_before(self.session, &route, &release).is_none())
        {
            route.provider.soon(&route.location, Soon::Fetch(&release));
        }
    }

    /// The source of a missing package.
    fn origin(&self, number: usize) -> Result<(Arc<Route>, Arc<Release>), CommandError> {
        let index = self.missing[number];
        if let Some(known) = self.resolved.releases.get(&index).or(self.origins[number].get()) {
            return Ok(known.clone());
        }
        let package = &self.resolved.lock.packages[index];
        let way = way_of(self.session, package, &self.roots)?;
        let release = locked_release(self.session, package, &way)?;
        // Two threads may have looked it up at once; both use what the first one found.
        Ok(self.origins[number].get_or_init(|| (Arc::new(way.route), release)).clone())
    }

    /// Brings one package into the store; also returns whether its content was on this machine.
    fn fetch_one(&self, number: usize) -> Result<(Stored, bool), CommandError> {
        let session = self.session;
        let index = self.missing[number];
        let package = &self.resolved.lock.packages[index];
        let is_folder = package.source.is_outside_folder();
        // The current content of a folder counts; the lock only records it, except when only the lock counts.
        let is_pinned = !is_folder || session.options.frozen || session.options.locked;
        let expected = package.digest.filter(|_| is_pinned);
        if is_folder && is_pinned && expected.is_none() {
            return Err(folder_has_changed(package, None));
        }
        let line = self.resolved.releases.get(&index).map(|(_, line)| &**line);
        // Where it comes from, which most checks do not need: looking it up may take a request.
        let route = |_: &LockedPackage| Ok(Route::clone(&*self.origin(number)?.0));
        let judge = |stored: &Stored, manifest: Option<&str>, is_fetched: bool| {
            let (folder, route) = (&stored.folder, &route);
            Content { session, package, line, folder, manifest, is_fetched, route }.check()
        };
        // First, a pack with exactly this content: after the cache was cleaned, what is installed needs no network.
        if let Some(digest) = expected.filter(|_| !is_folder)
            && let Some(stored) = self.packs.take_back(session, package, &digest)
        {
            judge(&stored, None, false)?;
            return Ok((stored, true));
        }
        // No registry had it when it was locked, so there is nowhere else to look.
        if package.source.is_pack() {
            return Err(here::missing(session, package));
        }
        let (route, release) = self.origin(number)?;
        // Then, an archive that was unpacked here before. Without a digest of the content (a chart repository lists
        // that of the archive), the store itself would not know it again.
        let known = expected.is_none().then(|| unpacked_before(session, &route, &release));
        if let Some(stored) = known.flatten() {
            judge(&stored, None, false)?;
            return Ok((stored, true));
        }
        // Last, its source. Its manifest is kept in memory on the way into the store, so that it need not be opened
        // again to be judged.
        let what = format!("{} {}", package.id, package.version);
        session.events.detail(&|| format!("fetching {what} from {}", route.location.describe()));
        let progress = Work::begin(&session.events, what.as_str());
        let mut manifest = None;
        let result = session.store.add(expected.as_ref(), |tree| {
            tree.keep(YAML_NAME);
            route.provider.fetch(&route.location, &release, tree, &progress)?;
            manifest = tree.take_kept().and_then(|bytes| String::from_utf8(bytes).ok());
            Ok(manifest.as_deref().and_then(called).unwrap_or_default())
        });
        match result {
            Ok(stored) => {
                // The digest was right, or nobody knew one. Whether this is the package that was chosen is another
                // question, and if it is not, nothing may take it for verified later.
                if let Err(error) = judge(&stored, manifest.as_deref(), true) {
                    // Other processes may use what was there before.
                    if stored.checked.is_none() {
                        session.store.remove(&stored.digest)?;
                    }
                    return Err(error);
                }
                note_release_archive(session, &route, &release, &stored);
                Ok((stored, false))
            }
            Err(TreeStoreError::Mismatch { expected, .. }) if is_folder => {
                Err(changed_folder(session, &self.resolved.lock, index, &expected, &route))
            }
            Err(TreeStoreError::Mismatch { expected, actual }) => {
                let is_chosen = self.resolved.releases.contains_key(&index);
                let said_by = if is_chosen { "the index" } else { "Mu.lock" };
                let place = route.location.describe();
                Err(content_differs(package, [&expected, &actual], said_by, &place))
            }
            Err(error) => {
                let error = self.explain_archive(index, not_fetched(error, &what));
                Err(self.explain_move(index, with_requirer(session, &package.id, error)))
            }
        }
    }

    /// Says of an archive that is not the one in Mu.lock, but the one that its registry lists with the same content, that these two differ:
    /// nobody has changed what was published.
    fn explain_archive(&self, index: usize, error: CommandError) -> CommandError {
        let package = &self.resolved.lock.packages[index];
        let is_locked = !self.resolved.releases.contains_key(&index);
        let locked = package.archive.filter(|_| is_locked && error.code == Code::Integrity);
        let Some(locked) = locked.filter(|_| !package.source.is_url_archive()) else {
            return error;
        };
        let id = used_instead(self.session, &package.id);
        let listed = || {
            let (index, version) = (self.session.index(), package.parsed_version()?);
            let at = index.published(&id).ok()?.position_of_version(&version)?;
            let line = index.release(&id, Candidate::Release(at)).ok()?.1;
            // Some registries list no digests of contents.
            let own = package.digest.map(|digest| digest.to_string());
            let is_same = line.digest.is_none() || line.digest == own;
            line.archive.clone().filter(|archive| is_same && *archive != locked.to_string())
        };
        listed().map_or(error, |listed| archive_differs(package, &locked, &listed))
    }

    /// Adds to `error` that the settings lead to another place than when the package was locked, if so.
    fn explain_move(&self, index: usize, error: CommandError) -> CommandError {
        let package = &self.resolved.lock.packages[index];
        let is_locked = !self.resolved.releases.contains_key(&index);
        let way = way_of(self.session, package, &self.roots).ok();
        let Some(way) = way.filter(|way| way.is_moved && is_locked) else { return error };
        let LockedPackage { id, version, source, .. } = package;
        let place = way.route.location.root.to_string();
        let registry = self.session.index().registry(id);
        let by = registry.map_or_else(
            || {
                format!(
                    "no registry in the settings covers it now, so mu looks for it at `{place}`"
                )
            },
            |(registry, _)| {
                let file = registry.defined_in.display();
                format!("`{}` in `{file}` now leads to `{place}`", registry.prefix)
            },
        );
        let name = self.session.short_name(id);
        // A place that cannot be reached may well have the version: no advice to copy it there, or to choose another
        // one.
        let is_unknown = error.code == Code::Network;
        let error = error.hint(format!("Mu.lock has it from `{source}`, but {by}"));
        if is_unknown {
            return error;
        }
        error
            .hint(format!(
                "`mu mirror '{name}#{version}' --to PLACE` copies it there from a hub that has it"
            ))
            .hint(format!("`mu update {name}` chooses from the versions that are available there"))
    }
}

/// Checks a tree that was already in the store and becomes the pack `wanted`.
pub(crate) fn check_stored(
    session: &Session,
    resolved: &Resolved,
    wanted: &WantedPack,
    stored: &Stored,
) -> Result<(), CommandError> {
    // The store has noted what most trees call themselves. Only those of which it does not know are opened.
    let name = wanted.id.split_once('/').map(|(_, name)| name);
    if name.is_some() && stored.called.split_once(' ') == name.zip(Some(&*wanted.version)) {
        return Ok(());
    }
    let mut packages = resolved.lock.packages.iter().enumerate();
    let Some((index, package)) = packages
        .find(|(_, package)| package.version == wanted.version && package.id.as_str() == wanted.id)
    else {
        // The pack of a replaced package, or one that is vendored for everybody: the lock of this session does not say
        // what it is.
        return Ok(());
    };
    // A package that an index line chose was compared with that line.
    if resolved.releases.contains_key(&index) {
        return Ok(());
    }
    let route =
        |package: &LockedPackage| Ok(way_of(session, package, &LockedRoots::default())?.route);
    Content::locked(session, package, &stored.folder, &route).check()
}

/// Checks packs that were found in place: their content matches the lock; this checks that the lock gives them the right
/// version.
pub(crate) fn check_recognized(
    session: &Session,
    lock: &Lockfile,
    state: &State,
) -> Result<(), CommandError> {
    let packs = session.packs();
    let found: Vec<(usize, PathBuf)> = needed_packs(lock)
        .filter(|(_, wanted)| state.packs.contains_key(&wanted.place))
        .map(|(index, wanted)| (index, packs.pack_path(&wanted.place)))
        .collect();
    at_once(session.disk_jobs(found.len()), &found, |(index, folder)| {
        check_installed(session, &lock.packages[*index], folder)
    })
}

/// Checks that the lock gives the package in `folder` the right version, without any request.
pub(crate) fn check_installed(
    session: &Session,
    package: &LockedPackage,
    folder: &Path,
) -> Result<(), CommandError> {
    let route =
        |package: &LockedPackage| Ok(way_of(session, package, &LockedRoots::default())?.route);
    Content::locked(session, package, folder, &route).check_label()
}

/// The name and version of a package, as the store records them; `None` if it has no name or no version, or cannot be read.
fn called(manifest: &str) -> Option<String> {
    let head = Head::parse(Path::new(YAML_NAME), manifest).ok()?;
    Some(format!("{} {}", head.name?.name(), head.version?))
}
