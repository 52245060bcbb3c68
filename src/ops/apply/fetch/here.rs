//! Content of locked packages that is already on this machine: packs that no registry has, packs that somebody has put into the
//! workspace, vendored ones, and packs that may have the content that a lock names.
//!
//! A package that somebody has put into the workspace must match the lock: [`check_placed`]. [`LocalPacks`] copies a pack into
//! the store, if it has exactly the wanted content. Nothing here asks a registry.
//!
//! Vendored packs bring more with them than their files: what vouches for packages under rules, and the archives that it speaks
//! of, so that a machine without cache and network can verify both. All of it is in the packs folder, and committed. It proves
//! itself by its digests and signatures, and is trusted no more than what a registry sends. Whether the rules accept it is
//! decided in `trust`, and what becomes of an archive in `signed.rs`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use mu_provider::{
    Digest, Entry, Folder, InnerPath, Kind, Mode, ProviderError, Tree, TreeWriter, lines_to_text,
};
use mu_trust::EvidenceLine;

use crate::formats;
use crate::fs::{self, FileError};
use crate::lock::{LockedPackage, Lockfile, Source};
use crate::manifest::YAML_NAME;
use crate::ops::apply::fetch::error::{content_differs, not_fetched};
use crate::ops::apply::fetch::route::{
    LockedRoots, LockedRoute, locked_by_digest, used_instead, way_of,
};
use crate::ops::apply::fetch::signed::{as_ruled, ids_under_rules};
use crate::ops::explain::unserved::with_requirer;
use crate::ops::session::events::Work;
use crate::ops::session::installed::place;
use crate::ops::{Code, CommandError, Session, VoucherGap, Warning};
use crate::packs::{HashError, hash_folder};
use crate::reference::PackageId;
use crate::search::{FirstNames, Place};
use crate::store::Stored;
use crate::trust::{VENDORED_ARCHIVES, VENDORED_FILE};

/// The folder of a package that somebody has put into the workspace, whether or not it exists.
pub(crate) fn placed_folder(
    session: &Session,
    package: &LockedPackage,
) -> Result<PathBuf, CommandError> {
    let folder = crate::env::absolute(session.lock_folder(), package.source.place.as_ref());
    let places = session.places.search().package_places(&package.id);
    // These two are the workspace's packs folder, with the base and without it. A lock in a checkout could name any
    // other folder.
    if places[2..4].iter().any(|place| place.folder == folder) {
        return Ok(folder);
    }
    let message = format!(
        "Mu.lock takes `{}` from `{}`, which is not where packs of that name are",
        package.id,
        folder.display()
    );
    Err(CommandError::new(Code::Integrity, message).hint("restore Mu.lock from version control"))
}

/// The problem with a package that somebody has put into the workspace, if it does not match the lock.
pub(crate) fn placed_fault(
    session: &Session,
    package: &LockedPackage,
) -> Result<Option<String>, CommandError> {
    let folder = placed_folder(session, package)?;
    let Some(digest) = package.digest else { return Ok(None) };
    // A link would lead to whatever the checkout wants to be taken for the package.
    if !folder.is_dir() || session.places.search().link_on_the_way(&folder).is_some() {
        return Ok(Some("it is not there".to_owned()));
    }
    let found = hash_folder(&folder, &HashSet::new());
    Ok(content_fault(&digest, found.map(|tree| tree.digest())))
}

/// The folder with the files of a locked package as they are installed, with its patch, if they are on this machine; `pack` is
/// where its pack is, if that is not the usual place.
pub(crate) fn folder_here(
    session: &Session,
    lock: &Lockfile,
    index: usize,
    pack: Option<&PathBuf>,
) -> Option<PathBuf> {
    let package = lock.packages.get(index)?;
    if package.source.is_authored_folder() {
        return Some(crate::env::absolute(session.lock_folder(), package.source.place.as_ref()));
    }
    if package.source.is_placed_pack() {
        return placed_folder(session, package).ok();
    }
    // The store first, because anybody can change a pack: one counts only if it still has the locked content.
    let digest = package.installed_digest().filter(|_| package.is_patched_as_locked())?;
    if let Some(stored) = session.store.find(&digest).ok().flatten() {
        return Some(stored.folder);
    }
    let usual = || session.packs().pack_path(&place(lock, index));
    Some(pack.cloned().unwrap_or_else(usual)).filter(|pack| content_of(pack) == Some(digest))
}

/// The digest of the content of a folder; `None` if it cannot be read.
pub(crate) fn content_of(folder: &Path) -> Option<Digest> {
    Some(hash_folder(folder, &HashSet::new()).ok()?.digest())
}

/// The files that a locked package had, if they are on this machine: in the store, or where it is installed.
pub(super) fn tree_of(
    session: &Session,
    lock: &Lockfile,
    index: usize,
    digest: &Digest,
) -> Option<Tree> {
    if let Some(stored) = session.store.find(digest).ok().flatten() {
        return Some(Tree::clone(&stored.tree));
    }
    let pack = session.packs().pack_path(&place(lock, index));
    hash_folder(&pack, &HashSet::new()).ok().filter(|tree| tree.digest() == *digest)
}

/// The problem with content that is not the expected one, or cannot be read.
pub(crate) fn content_fault(expected: &Digest, found: Result<Digest, HashError>) -> Option<String> {
    match found {
        Ok(digest) if digest == *expected => None,
        Ok(digest) => Some(format!("its content changed: expected {expected}, got {digest}")),
        Err(error) => Some(error.to_string()),
    }
}

/// Checks that packages that somebody has put into the workspace match the lock.
pub(crate) fn check_placed(session: &Session, lock: &Lockfile) -> Result<(), CommandError> {
    for package in lock.packages.iter().filter(|package| package.source.is_placed_pack()) {
        if let Some(fault) = placed_fault(session, package)? {
            let folder = placed_folder(session, package)?;
            let LockedPackage { id, version, .. } = package;
            let is_missing = !folder.is_dir();
            let code = if is_missing { Code::NotFound } else { Code::Integrity };
            let message = format!(
                "Mu.lock takes `{id}` {version} from `{}`, where somebody has put it: {fault}",
                folder.display()
            );
            let name = session.short_name(id);
            return Err(CommandError::new(code, message)
                .hint("mu does not install what is put there by hand: copy the folder from where it is whole")
                .hint(format!("`mu update {name}` locks what is there now, or what a registry has")));
        }
    }
    Ok(())
}

/// The error about a package that no registry had, and that no pack of this machine matches.
pub(super) fn missing(session: &Session, package: &LockedPackage) -> CommandError {
    let LockedPackage { id, version, source, .. } = package;
    let [_, user, runtime] = &session.places.search().packs;
    // Mu.lock says `global/…` or `muroot/…`, and never a path, so that it is the same on every machine.
    let (whose, folder) = match source.place.strip_prefix(Source::IN_RUNTIME) {
        Some(place) => ("the runtime", runtime.join(place)),
        None => {
            let place = source.place.strip_prefix(Source::USER_PLACE_PREFIX).unwrap_or_default();
            ("the user", user.join(place))
        }
    };
    let expected = package.digest.map(|digest| digest.to_string()).unwrap_or_default();
    let found = folder.is_dir().then(|| hash_folder(&folder, &HashSet::new()).ok()).flatten();
    let (code, what) = match found {
        Some(tree) => {
            let what =
                format!("other content is there: expected {expected}, got {}", tree.digest());
            (Code::Integrity, what)
        }
        None => (Code::NotFound, "it is not there".to_owned()),
    };
    let message = format!(
        "`{id}` {version} is locked from the packs of {whose}, in `{}`: {what}",
        folder.display()
    );
    let name = session.short_name(id);
    CommandError::new(code, message)
        .hint(
            "no registry had it when it was locked: put the package there that it was locked with",
        )
        .hint(format!("`mu update {name}` locks what is there now, or what a registry has by now"))
}

/// The packs of this machine, by their first names.
#[derive(Debug)]
pub(super) struct LocalPacks {
    pub(super) first_names: FirstNames,
}

impl LocalPacks {
    /// Reads the packs folders.
    pub(super) fn find(session: &Session) -> Self {
        Self { first_names: FirstNames::read(&session.places.search().packs) }
    }

    /// Copies a pack of this machine into the store, if it has exactly the wanted content.
    pub(super) fn take_back(
        &self,
        session: &Session,
        package: &LockedPackage,
        digest: &Digest,
    ) -> Option<Stored> {
        // The replacement of an overridden package has its own name among packs.
        let ids = BTreeSet::from([package.id.clone(), used_instead(session, &package.id)]);
        let search = session.places.search();
        let ids = ids.iter().filter(|id| self.first_names.may_hold(id));
        // The first two places are folders of the workspace itself: members, and not packs.
        let places: Vec<Place> =
            ids.flat_map(|id| search.package_places(id).into_iter().skip(2)).collect();
        // No other file counts as the manifest of a pack: a link could point anywhere.
        let has_link = |folder: &Path| folder.join(YAML_NAME).is_symlink();
        let packs = places.iter().filter(|place| place.folder.is_dir());
        for place in packs.filter(|place| !has_link(&place.folder)) {
            let Ok(Some(head)) = formats::load_package_head(&place.folder) else {
                continue;
            };
            // The version is cheap to read, and hashing is not.
            let same_version =
                head.version.is_some_and(|version| version.to_string() == package.version);
            if !same_version {
                continue;
            }
            let mut skip = HashSet::new();
            // The package has no manifest: mu has made this one for the pack, so the digest of the package is without
            // it.
            if head.generated {
                skip.insert(place.folder.join(YAML_NAME));
            }
            let Ok(tree) = hash_folder(&place.folder, &skip) else {
                continue;
            };
            if tree.digest() == *digest {
                // It is hashed again while it is copied: anybody may change a pack meanwhile.
                let stored = session.store.add(Some(digest), |writer| {
                    for entry in tree.entries() {
                        add_entry(writer, &place.folder.join(&entry.path), entry)?;
                    }
                    Ok(String::new())
                });
                if let Ok(stored) = stored {
                    return Some(stored);
                }
            }
        }
        None
    }
}

/// Whether the store has a package that cannot be fetched again; it is taken from its own pack, if that is
/// intact.
pub(crate) fn has_or_takes_back(session: &Session, package: &LockedPackage) -> bool {
    package.digest.is_some_and(|digest| {
        session.store.contains(&digest)
            || LocalPacks::find(session).take_back(session, package, &digest).is_some()
    })
}

/// Copies a package of the store into a folder, whose files can then be changed.
#[cfg(feature = "git")]
pub(crate) fn copy_writable(stored: &Stored, folder: &Path) -> Result<(), fs::FileError> {
    for entry in stored.tree.entries() {
        let (from, to) = (stored.folder.join(&entry.path), folder.join(&entry.path));
        fs::create_folder(to.parent().unwrap_or(folder))?;
        if entry.mode == Mode::Symlink {
            fs::symlink_file(&fs::read_link(&from)?, &to)?;
            continue;
        }
        fs::copy(&from, &to)?;
        crate::packs::make_writable(&to, entry.mode)?;
    }
    Ok(())
}

/// Adds the file or link at `path` to a tree of the store, as the entry.
pub(crate) fn add_entry(
    writer: &mut TreeWriter,
    path: &Path,
    entry: &Entry,
) -> Result<(), ProviderError> {
    if entry.mode == Mode::Symlink {
        let target = fs::read_link(path)?;
        writer.symlink(entry.path.as_bytes(), target.to_string_lossy().as_bytes())?;
    } else {
        let mut file = fs::open(path)?;
        writer.file(entry.path.as_bytes(), entry.mode == Mode::Executable, &mut file)?;
    }
    Ok(())
}

/// A package under rules whose evidence and archive can be kept.
struct Vouched<'l> {
    package: &'l LockedPackage,
    source: PackageId,
    stood_for: Vec<PackageId>,
    way: LockedRoute,
}

/// Writes what vouches for the locked packages under rules beside the vendored packs. Of packages that only the rules of somebody else
/// speak of, what is there stays. With `archives`, or where there are some, it does the same for archives.
pub(crate) fn keep_vouchers(
    session: &Session,
    lock: &Lockfile,
    archives: bool,
) -> Result<(), CommandError> {
    let root = session.workspace.opened()?;
    let file = InnerPath::own(VENDORED_FILE).into();
    let keeps_archives = archives || root.look_at(&VENDORED_ARCHIVES.into())? == Some(Kind::Folder);
    let vouched = vouched(session, lock)?;
    // The file, sorted, so that two branches merge.
    let mut lines: BTreeMap<(String, String), Vec<EvidenceLine>> = BTreeMap::new();
    // Lines about what is no longer locked go. Lines about the rest stay, because the rules of a colleague may have asked for them.
    let locked: BTreeSet<(String, String)> = (lock.packages.iter())
        .map(|package| (used_instead(session, &package.id).to_string(), package.version.clone()))
        .collect();
    for line in session.trust.vendored_lines() {
        if let Some(package) = line.package.clone().filter(|package| locked.contains(package)) {
            lines.entry(package).or_default().push(line);
        }
    }
    for one in &vouched {
        let key = (one.source.to_string(), one.package.version.clone());
        match one.evidence(session) {
            Ok(found) => {
                // What a place has now takes the place of what it had before.
                let found = found
                    .into_iter()
                    .map(|line| EvidenceLine { package: Some(key.clone()), ..line });
                let found: Vec<EvidenceLine> = found.collect();
                if !found.is_empty() {
                    lines.insert(key, found);
                }
            }
            Err(error) => one.warn_of_gap(session, VoucherGap::EvidenceNotKept, &error),
        }
    }
    let text = lines_to_text(lines.into_values().flatten());
    match text.is_empty() {
        true => remove_file(&root, &file)?,
        false => root.write(&file, text.as_bytes())?,
    }
    match keeps_archives {
        true => keep_archives(session, &root, lock, &vouched, archives),
        false => Ok(()),
    }
}

/// Removes all of it.
pub(crate) fn drop_vouchers(root: &Folder) -> Result<(), FileError> {
    remove_file(root, &InnerPath::own(VENDORED_FILE).into())?;
    match root.look_at(&VENDORED_ARCHIVES.into())? {
        Some(_) => root.remove(&VENDORED_ARCHIVES.into()),
        None => Ok(()),
    }
}

fn remove_file(root: &Folder, file: &InnerPath) -> Result<(), FileError> {
    match root.look_at(file)? {
        Some(_) => root.remove_file(file),
        None => Ok(()),
    }
}

/// The locked packages that rules speak of.
fn vouched<'l>(session: &Session, lock: &'l Lockfile) -> Result<Vec<Vouched<'l>>, CommandError> {
    let (roots, mut found) = (LockedRoots::default(), Vec::new());
    if session.trust.is_empty() {
        return Ok(found);
    }
    for package in &lock.packages {
        let Some((source, stood_for)) = ids_under_rules(session, lock, package) else { continue };
        let way = way_of(session, package, &roots)?;
        if !session.trust.rules_about(&way.route, &source, &stood_for).is_empty() {
            found.push(Vouched { package, source, stood_for, way });
        }
    }
    Ok(found)
}

impl Vouched<'_> {
    /// What vouches for it.
    fn evidence(&self, session: &Session) -> Result<Vec<EvidenceLine>, CommandError> {
        let Self { package, source, stood_for, way } = self;
        let release = locked_by_digest(session, package, way)?;
        let candidate = as_ruled(package, (source, stood_for.clone()), &way.route, &release);
        let progress = Work::begin(&session.events, format!("{} {}", package.id, package.version));
        Ok(session.trust.known_evidence_of(&candidate, &progress)?.to_lines())
    }

    /// Warns of what of it cannot be kept.
    fn warn_of_gap(&self, session: &Session, gap: VoucherGap, error: &CommandError) {
        let (name, version) = (self.package.id.to_string(), self.package.version.clone());
        let why = mu_provider::with_causes(&*error.error);
        session.events.warning(&Warning::Voucher { gap, name, version, why });
    }

    /// All that its content can be made of again; `None` if there is no such thing.
    fn preserve(&self, session: &Session) -> Result<Option<Vec<u8>>, CommandError> {
        let Self { package, way, .. } = self;
        let release = locked_by_digest(session, package, way)?;
        let what = format!("{} {}", package.id, package.version);
        let progress = Work::begin(&session.events, what.as_str());
        let (provider, location) = (&way.route.provider, &way.route.location);
        let _store = session.use_store()?;
        // The content is compared with the lock before anything is kept of it.
        let mut preserved = None;
        let tree = session.store.inspect(|tree| {
            preserved = provider.preserve(location, &release, tree, &progress)?;
            Ok(())
        });
        let found = tree
            .map_err(|error| with_requirer(session, &package.id, not_fetched(error, &what)))?
            .digest();
        match package.digest.filter(|expected| *expected != found) {
            Some(expected) => {
                let place = location.describe();
                Err(content_differs(package, [&expected, &found], "Mu.lock", &place))
            }
            None => Ok(preserved),
        }
    }
}

/// The name of what a locked package can be made of again.
fn archive_name(package: &LockedPackage) -> Option<InnerPath> {
    let name = match (&package.commit, package.archive) {
        (Some(commit), _) => format!("{commit}.pack"),
        (None, Some(archive)) => archive.to_string().replace(':', "-"),
        (None, None) => return None,
    };
    // A commit has more than one package.
    let folder = package.folder.as_deref().filter(|_| package.commit.is_some());
    let name = match folder {
        Some(folder) => format!("{}+{name}", folder.replace('/', "+")),
        None => name,
    };
    InnerPath::name(&name).ok()
}

/// Brings the archives of packages under rules that are not there, and removes those that no package of the lock has.
fn keep_archives(
    session: &Session,
    root: &Folder,
    lock: &Lockfile,
    vouched: &[Vouched<'_>],
    is_asked_for: bool,
) -> Result<(), CommandError> {
    let folder = root.make_inner(&VENDORED_ARCHIVES.into())?;
    let present: BTreeSet<String> = folder.entries()?.into_iter().map(|(name, _)| name).collect();
    for one in vouched {
        let Some(name) = archive_name(one.package) else { continue };
        // Its name is its digest, so what is there is the right one, or is found out when it is read.
        if present.contains(&name.to_string()) {
            continue;
        }
        match one.preserve(session) {
            Ok(Some(bytes)) => folder.write(&name, &bytes)?,
            Ok(None) => {
                let (id, version) = (one.package.id.clone(), one.package.version.clone());
                session.events.warning(&Warning::NoSingleArchive { id, version });
            }
            // What was asked for was another thing, and is done.
            Err(error) if !is_asked_for => {
                one.warn_of_gap(session, VoucherGap::ArchiveNotKept, &error);
            }
            Err(error) => return Err(error),
        }
    }
    let named: BTreeSet<String> =
        lock.packages.iter().filter_map(archive_name).map(|name| name.to_string()).collect();
    for other in present.iter().filter(|name| !named.contains(*name)) {
        if let Ok(name) = InnerPath::name(other) {
            folder.remove(&name)?;
        }
    }
    Ok(())
}

/// What a locked package can be made of again, if the packs folder has that.
pub(super) fn kept_archive(session: &Session, package: &LockedPackage) -> Option<Vec<u8>> {
    let path = InnerPath::from(VENDORED_ARCHIVES).join(&archive_name(package)?);
    match session.workspace.opened().and_then(|root| root.read(&path)) {
        Ok(found) => found,
        Err(error) => {
            let (path, why) = (path.to_string(), mu_provider::with_causes(&error));
            session.events.warning(&Warning::ArchiveUnread { path, why });
            None
        }
    }
}
