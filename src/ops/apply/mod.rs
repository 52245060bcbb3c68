//! From a lock to packs on disk: fetching, installing, and the edits of manifests that go with it.
//!
//! Lock and packs are brought in line with the requirements by one transaction, which is behind `get`, `add`, `remove`,
//! `update`, `pin` and `unpin`. It plans, fetches into the store, verifies, stages beside the target, renames, and then writes
//! lock and manifests.
//!
//! It recognizes packs of which mu has no record, such as those of an earlier checkout after the cache was cleaned: what their
//! registry has published is nobody's own work, so it may be replaced.

pub(crate) mod draft;
pub(crate) mod edited;
pub(crate) mod element;
pub mod fetch;
mod identity;
pub(crate) mod kinds;
pub(crate) mod outcome;
pub(crate) mod patched;
pub(crate) mod rewrite;
pub(crate) mod transaction;
pub(crate) mod written;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mu_provider::{Digest, threads};

use crate::index::Candidate;
use crate::lock::Lockfile;
use crate::manifest::generated_manifest;
use crate::ops::apply::fetch::{Fetching, fetch, store_release};
use crate::ops::apply::outcome::FetchCounts;
use crate::ops::explain::places;
use crate::ops::requirements::editing::FileEdit;
use crate::ops::requirements::{self, Requirements};
use crate::ops::session::installed::{folder_of, named, needed_packs, place, replaced_packs};
use crate::ops::solve::copies::{self, copies_in_lock};
use crate::ops::solve::record::Resolved;
use crate::ops::solve::trusted;
use crate::ops::{Code, CommandError, OperationScope, Outcome, Session, Stage, Warning};
use crate::packs::{Building, Installation, PacksError, WantedPack};
use crate::reference::PackageId;
use crate::store::{Stored, TreeStoreError};
use crate::workspace::Link;
use crate::{formats, fs};

/// Brings packs, lock and manifests in line with what was resolved, or only reports what would change.
pub fn install(
    session: &Session,
    requirements: &Requirements,
    mut resolved: Resolved,
    edits: &[FileEdit],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    // Without a lock, `--frozen` has nothing to install, and removes nothing.
    let has_lock = !session.options.frozen || session.lockfile()?.is_some();
    if session.leaves_out_edits() && has_lock {
        return edited::install_edited(session, requirements, resolved, edits, dry_run);
    }
    // First, what may end the run before anything is fetched: a manifest with a wrong name, a replacement that nobody
    // has agreed to.
    let unagreed = examine(session, requirements, &resolved, dry_run)?;
    if dry_run {
        return would_be(session, requirements, resolved, edits, unagreed);
    }
    // Everything stays in the lock, also what is not installed: the lock is the same for everybody.
    if session.options.no_dev {
        resolved.left_out = requirements::development_only(requirements, &resolved.lock);
    }
    // From here on, files change, in this order: the store, the packs, Mu.lock, the manifests. A run that is killed
    // leaves packs that are ahead of an old lock; mu's record in the cache names them as its own, so the next run goes
    // on from there. The other way round, a lock would name what was never fetched.
    let made = match has_lock {
        true => make_packs(session, requirements, &mut resolved, &[])?,
        false => PackChanges::default(),
    };
    // What no index said before it was fetched.
    let copies = copies_in_lock(session, &resolved.lock).into_iter();
    let is_told = |warning: &Warning| {
        resolved.warnings.iter().any(|told| copies::says_the_same(told, warning))
    };
    for warning in copies.filter(|warning| !is_told(warning)) {
        session.events.warning(&warning);
    }
    record(session, requirements, &mut resolved)?;
    let edited = write(&of_view(session, edits))?;
    // What is vendored is verified elsewhere by what is vendored beside it.
    if made.made + made.removed > 0 && session.packs().is_vendored() {
        fetch::keep_vouchers(session, &resolved.lock, false)?;
    }
    session.save_index();
    // The last edit has ended: nothing reads `.mu/edits.lock` any more, and the next edit must not begin at it.
    if session.scope == OperationScope::Workspace && session.edited.is_empty() {
        Lockfile::remove_edits(&session.workspace.root)?;
    }
    let outcome = answer(session, requirements, resolved, made, edited)?;
    Ok(Outcome { edits: edited::edits_in_use(session), ..outcome })
}

/// Reports what is probably not intended, and checks that somebody has agreed to each replacement. Returns those without
/// consent, for a dry run.
fn examine(
    session: &Session,
    requirements: &Requirements,
    resolved: &Resolved,
    dry_run: bool,
) -> Result<BTreeSet<PackageId>, CommandError> {
    refuse_misspelt(session)?;
    let left_out = places::left_out(session, &resolved.lock);
    let own = places::warnings(session, requirements, &resolved.lock);
    let apart = places::warnings_of_conflicts(session);
    let passed = passed_over(session, requirements, &resolved.previous);
    trusted::refuse_malicious(session, &resolved.lock)?;
    fetch::check_signed(session, resolved)?;
    let all = resolved.warnings.iter().chain(&left_out).chain(&own).chain(&apart);
    for warning in all.chain(&passed) {
        session.events.warning(warning);
    }
    copies::check(session, &resolved.previous, resolved, dry_run)
}

/// What the registry of a package lists besides its versions, and nobody can use: told once, when the package comes anew, unless it
/// is required as one thing.
fn passed_over(
    session: &Session,
    requirements: &Requirements,
    previous: &Lockfile,
) -> Vec<Warning> {
    let asked = requirements.asked.iter().map(|asked| &asked.requirement);
    let asked = asked.filter(|asked| !asked.spec.is_pinned()).map(|asked| &asked.id);
    let new: BTreeSet<&PackageId> = asked.filter(|id| previous.find(id).next().is_none()).collect();
    let told = new.into_iter().filter_map(|id| {
        let left_out = session.index().left_out_if_known(id);
        (!left_out.is_empty()).then(|| Warning::NoVersions { id: id.clone(), left_out })
    });
    told.collect()
}

/// The answer of a dry run.
fn would_be(
    session: &Session,
    requirements: &Requirements,
    resolved: Resolved,
    edits: &[FileEdit],
    unagreed: BTreeSet<PackageId>,
) -> Result<Outcome, CommandError> {
    session.save_index();
    let outcome = Outcome::new(resolved.lock, &resolved.previous, requirements);
    let outcome = outcome.by_way_of(&resolved.ways);
    let edited = changed(edits)?.into_iter().map(|edit| edit.path.clone()).collect();
    let archives = fetch::archive_urls(session, &outcome.lock, &resolved.releases);
    Ok(Outcome { dry_run: true, edited, unagreed, archives, ..outcome })
}

/// Checks that the lock does not change if it must not.
fn check_held(session: &Session, resolved: &Resolved) -> Result<(), CommandError> {
    if !session.options.locked || resolved.is_lock_current() {
        return Ok(());
    }
    // Resolving refuses what it can know. What a folder holds is known only now that it was read: if a locked one is
    // among the changes, it is the likely reason, and the error names it.
    let before = &resolved.previous.packages;
    let mut folders =
        resolved.lock.packages.iter().filter(|package| package.source.is_outside_folder());
    let changed = folders.find(|package| !before.contains(package));
    Err(changed.map_or_else(
        || {
            CommandError::new(Code::LockOutdated, "Mu.lock would change")
                .hint("run `mu get` without --locked, and commit Mu.lock")
        },
        |package| fetch::folder_has_changed(package, None),
    ))
}

/// Writes the lock, if it has to change.
fn record(
    session: &Session,
    requirements: &Requirements,
    resolved: &mut Resolved,
) -> Result<(), CommandError> {
    check_held(session, resolved)?;
    // `lock_lags`: somebody has raised the version of a package of the workspace in its manifest. The lock repeats it,
    // so it is written, unless it must not change. It is no change of the selection.
    let is_held = session.options.locked || session.options.frozen;
    if !resolved.is_lock_current() || session.lock_lags() && !is_held {
        say_where(session, requirements, Arc::make_mut(&mut resolved.lock));
        session.write_lockfile(&resolved.lock)?;
    }
    if session.scope == OperationScope::Workspace && !is_held {
        kinds::add(&session.workspace.root)?;
    }
    Ok(())
}

/// The changes of manifests that the session may make: in the view of this machine, only its edits are at stake.
fn of_view(session: &Session, edits: &[FileEdit]) -> Vec<FileEdit> {
    let is_own = |edit: &&FileEdit| {
        let mut edited = session.edited.iter();
        session.edited.is_empty()
            || edited.any(|one| formats::dependencies_file(&one.member.manifest_path) == edit.path)
    };
    edits.iter().filter(is_own).cloned().collect()
}

/// Writes the manifests that change, and returns their paths.
fn write(edits: &[FileEdit]) -> Result<Vec<PathBuf>, CommandError> {
    let mut edited = Vec::new();
    for edit in changed(edits)? {
        // A manifest may be a link to a file that several folders share. The file is written, and the link stays.
        fs::write_through_links(&edit.path, edit.text.as_bytes())?;
        edited.push(edit.path.clone());
        edit.path.parent().into_iter().for_each(fs::remove_left_behind);
    }
    Ok(edited)
}

/// The answer, after everything was written.
fn answer(
    session: &Session,
    requirements: &Requirements,
    resolved: Resolved,
    PackChanges { counts, made, removed }: PackChanges,
    edited: Vec<PathBuf>,
) -> Result<Outcome, CommandError> {
    let Resolved { lock, previous, ways, left_out, releases, .. } = resolved;
    let mut outcome = Outcome::new(lock, &previous, requirements).by_way_of(&ways);
    outcome.archives = fetch::archive_urls(session, &outcome.lock, &releases);
    outcome.counts = counts;
    outcome.installed = made + removed;
    outcome.made = made;
    let workspace = &session.workspace;
    let has_members = !workspace.members.is_empty();
    outcome.members_manifest = has_members.then(|| workspace.common_manifest_name().to_owned());
    outcome.left_out = left_out.len();
    outcome.frozen = session.options.frozen;
    outcome.edited = edited;
    let packs = session.packs();
    // Where everything is, for programs that read the answer: packs, then what is used where it is (members, and packs
    // that somebody has put into the workspace).
    for (index, wanted) in
        needed_packs(&outcome.lock).filter(|(index, _)| !left_out.contains(index))
    {
        outcome.folders.insert(index, packs.pack_path(&wanted.place));
    }
    for (index, package) in outcome.lock.packages.iter().enumerate() {
        if package.source.is_workspace_folder() {
            let folder =
                crate::env::absolute(&session.workspace.root, package.source.place.as_ref());
            outcome.folders.insert(index, folder);
        } else if package.source.is_placed_pack() {
            outcome.folders.insert(index, fetch::placed_folder(session, package)?);
        }
    }
    Ok(outcome)
}

/// Refuses to continue as if nothing were required, if the only manifest is not read because of its name.
fn refuse_misspelt(session: &Session) -> Result<(), CommandError> {
    let Some((path, name, right)) = session.workspace.only_misspelt() else { return Ok(()) };
    let message = format!("`{}` is not read: a manifest must be named `{right}`", path.display());
    Err(CommandError::new(Code::Manifest, message).hint(format!("rename `{name}` to `{right}`")))
}

/// If the lock is written anyway, updates the places that its packages come from.
fn say_where(session: &Session, requirements: &Requirements, lock: &mut Lockfile) {
    for package in &mut lock.packages {
        if let Some(source) = fetch::source_now(session, &requirements.changed, package) {
            package.source = source;
        }
    }
}

/// The edits that change their file.
fn changed(edits: &[FileEdit]) -> Result<Vec<&FileEdit>, CommandError> {
    let mut changed = Vec::new();
    for edit in edits {
        if fs::read_text_if_there(&edit.path)?.as_ref() != Some(&edit.text) {
            changed.push(edit);
        }
    }
    Ok(changed)
}

/// The changes of packs.
#[derive(Default)]
struct PackChanges {
    counts: FetchCounts,
    made: usize,
    removed: usize,
}

/// Fetches and installs what `resolved` names; the packs in `also` stay where they are.
fn make_packs(
    session: &Session,
    requirements: &Requirements,
    resolved: &mut Resolved,
    also: &[WantedPack],
) -> Result<PackChanges, CommandError> {
    let signed = fetch::bring_signed(session, resolved)?;
    let packs = session.packs();
    let link = session.workspace.settings.link;
    let is_vendored = packs.is_vendored();
    // Packs from a checkout need neither store nor network, if they match the lock.
    let (state, is_news) = packs.recognize(|| named(&resolved.previous))?;
    let has_folders =
        resolved.lock.packages.iter().any(|package| package.source.is_outside_folder());
    fetch::check_placed(session, &resolved.lock)?;
    // `is_known`: the digests of everything are known before anything is fetched. Then each pack can be built as soon
    // as its tree arrives. Otherwise the digests come first, because the plan compares them with the packs that are
    // there.
    let is_known = !has_folders
        && resolved
            .lock
            .packages
            .iter()
            .all(|package| package.digest.is_some() || package.source.is_workspace_folder());
    let is_known = is_known && !patched::is_unknown(&resolved.lock);
    // The usual run in a workspace that is up to date: one or two small files of each pack are read, nothing is hashed,
    // and neither the index nor the store's lock is needed.
    if resolved.is_lock_current() && is_known {
        let wanted = packs_of(session, resolved, also)?;
        if is_news {
            fetch::check_recognized(session, &resolved.lock, &state)?;
        }
        let is_linked = is_vendored || state.is_linked_by(link);
        if is_linked && packs.is_current(&state, &wanted) {
            if link == Link::Symlink {
                // The workspace may have moved since its packs were created.
                session.store.note_linked(packs.path())?;
            }
            let reused = resolved.lock.packages.iter().filter(|one| one.digest.is_some()).count();
            let reused = reused - resolved.left_out.len();
            let counts = FetchCounts { fetched: 0, reused };
            return Ok(PackChanges { counts, ..PackChanges::default() });
        }
    }
    // Only now places are needed. The lock of the store keeps `mu cache prune` from removing a tree between its arrival
    // and the pack that is made of it.
    requirements.declare(session);
    let events = &session.events;
    let _store = session.use_store()?;
    let is_known = is_known && !patched::is_patch_result_missing(session, &resolved.lock);
    let names = |wanted: &WantedPack| generated_manifest(&wanted.id, Some(&wanted.version));
    // After the cache was cleaned, mu has no record of packs that are there. One with exactly the content that a
    // registry has published is nobody's own work, and may be replaced.
    // What is vendored is what the lock says, where the lock says something.
    let before = named(&resolved.previous);
    let is_told = |place: &str| is_vendored && before.iter().any(|pack| pack.place == place);
    let published = |wanted: &WantedPack, found: &Digest| {
        if is_told(&wanted.place) {
            return None;
        }
        let id = PackageId::parse(&wanted.id).ok()?;
        version_in(session, &id, &packs.pack_path(&wanted.place), found)
    };
    let mut counts = FetchCounts::default();
    // Twice at most: the second time only if a tree of the store turned out to be corrupt, which has removed it, so
    // that it is missing now and is fetched.
    for attempt in 0.. {
        if !is_known {
            counts = counts.and(fetch(session, resolved)?);
            patched::apply_patches(session, resolved)?;
        }
        // Requested before the rest is planned, so that the first answers have arrived when they are needed.
        let fetching = is_known.then(|| Fetching::begin(session, resolved));
        let wanted = packs_of(session, resolved, also)?;
        let mut plan = Installation::plan(&packs, wanted, link, &published)?;
        // A replaced package's pack is never fetched again. One that cannot be made again, although packs around it
        // change, is not wanted any more: the second plan removes it.
        let lost = lost(session, &resolved.lock, plan.installs());
        if !lost.is_empty() {
            let mut wanted = packs_of(session, resolved, also)?;
            wanted.retain(|wanted| !lost.contains(&wanted.place));
            plan = Installation::plan(&packs, wanted, link, &published)?;
        }
        let (made, removed) = (plan.installs().len(), plan.removals().count());
        let threads = session.disk_jobs(made + removed);
        // The last question before anything changes: whether all that is replaced or removed was made by mu.
        plan.check_own(&session.store, &before, threads)?;
        // The installation knows no errors of commands, so the first of these waits here, and is returned in place of
        // `Refused`.
        let refused = Mutex::new(None);
        let check = |wanted: &WantedPack, stored: &Stored| {
            fetch::check_stored(session, resolved, wanted, stored).map_err(|error| {
                threads::lock(&refused).get_or_insert(error);
                PacksError::Refused { id: wanted.id.clone() }
            })
        };
        let building = plan.begin(&session.store, &names, &check)?;
        if let Some(fetching) = fetching {
            match fetch_and_build(session, &resolved.lock, fetching, &building) {
                Ok(fetched) => counts = counts.and(fetched),
                // Nothing but the staging folder exists so far.
                Err(error) => {
                    building.cancel();
                    return Err(error);
                }
            }
        }
        events.progress(Stage::Installing, 0, made + removed);
        match building.finish(threads) {
            Ok(()) => {
                let counts = counts.with_fetched(signed);
                return Ok(PackChanges { counts, made, removed });
            }
            Err(PacksError::Store(TreeStoreError::Corrupt { path }))
                if attempt == 0 && !session.store.is_read_only() =>
            {
                // The store no longer has the tree; it is fetched and checked again.
                events.warning(&Warning::ChangedInStore { path });
            }
            Err(error) => {
                return Err(threads::into_inner(refused).unwrap_or_else(|| error.into()));
            }
        }
    }
    unreachable!("the second attempt returns")
}

/// Fetches what `lock` names, and builds each pack as soon as its tree is there.
fn fetch_and_build(
    session: &Session,
    lock: &Lockfile,
    fetching: Fetching<'_>,
    building: &Building<'_>,
) -> Result<FetchCounts, CommandError> {
    // The number of each locked package in the plan; `None` for packs that stay as they are.
    let numbers: Vec<Option<usize>> =
        (0..lock.packages.len()).map(|index| building.number(&place(lock, index))).collect();
    let brought = fetching.finish(&|index, stored| match numbers[index] {
        // Trees that were already in the store are checked once more, after all others were built.
        Some(number) if stored.checked.is_none() => {
            building.build(number, stored)?;
            // Nothing asks for its files again. Kept, the lists of all packages of a large lock would fill the memory.
            session.store.forget_tree(&stored.digest);
            Ok(())
        }
        _ => Ok(()),
    });
    Ok(brought?.counts)
}

/// The packs that must be there, and the remaining packs of replaced packages.
fn packs_of(
    session: &Session,
    resolved: &Resolved,
    also: &[WantedPack],
) -> Result<Vec<WantedPack>, CommandError> {
    let lock = &resolved.lock;
    let wanted = needed_packs(lock).filter(|(index, _)| !resolved.left_out.contains(index));
    // What `mu build` made on this machine is installed, too.
    let built = |digest: &Digest| session.store.contains(digest);
    let mut all: Vec<WantedPack> = wanted
        .map(|(_, wanted)| match wanted.built.filter(built) {
            Some(digest) => WantedPack { digest, ..wanted },
            None => wanted,
        })
        .collect();
    let others = also.iter().filter(|also| !all.iter().any(|wanted| wanted.place == also.place));
    let others: Vec<WantedPack> = others.cloned().collect();
    all.extend(others);
    // Files may name the path of a pack whose package was replaced since, so it stays as long as it is there. It is not
    // made if it is missing: nobody needs a new one.
    if lock.replaced.is_empty() {
        return Ok(all);
    }
    let packs = session.packs();
    let state = packs.state();
    let kept: Vec<WantedPack> = replaced_packs(lock).collect();
    let missing: Vec<WantedPack> = packs.missing(&state, &kept).into_iter().cloned().collect();
    all.extend(kept.into_iter().filter(|wanted| !missing.contains(wanted)));
    Ok(all)
}

/// The packs of replaced packages that would have to be rebuilt, because packs around or inside them change,
/// but cannot be, because they are never fetched again.
fn lost(session: &Session, lock: &Lockfile, made: &[WantedPack]) -> BTreeSet<String> {
    let kept = lock.replaced.iter().filter_map(|replaced| replaced.kept.as_ref());
    kept.map(|kept| (folder_of(&kept.id), kept))
        .filter(|(place, kept)| {
            made.iter().any(|made| made.place == *place) && !fetch::has_or_takes_back(session, kept)
        })
        .map(|(place, _)| place)
        .collect()
}

/// The published version of a package that is in `folder`, where content with the digest `found` is.
///
/// Where a listing has no digests, the version that the folder's own manifest names is fetched and compared. What cannot be looked up is
/// no version.
fn version_in(session: &Session, id: &PackageId, folder: &Path, found: &Digest) -> Option<String> {
    let named = formats::load_package_head(folder).ok().flatten().and_then(|head| head.version);
    let releases = session.index().published(id).ok()?;
    (0..releases.len()).rev().find_map(|position| {
        let version = releases.version(position);
        let candidate = Candidate::Release(position);
        let (route, release) = session.index().release(id, candidate).ok()?;
        let stated: Option<Digest> = release.digest.as_deref().and_then(|text| text.parse().ok());
        let is_it = match stated {
            Some(stated) => stated == *found,
            None => {
                named.as_ref() == Some(&version)
                    && store_release(session, id, &route, &release)
                        .is_ok_and(|stored| stored.digest == *found)
            }
        };
        is_it.then(|| version.to_string())
    })
}
