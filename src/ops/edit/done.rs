//! Ends edits: only if nothing would be lost, and then by moving the clone into the trash, never by removing it.
//!
//! [`restore`] takes a clone out of the trash, back to where it was.

use std::collections::BTreeSet;
use std::path::Path;

use mu_provider::{Folder, InnerPath, without_secrets};
use mu_provider_git::{Kind, Unsaved, checked_url};
use schemars::JsonSchema;
use serde::Serialize;

use super::begin::copies;
use super::{Edited, find, package_of, seen};
use crate::fs;
use crate::manifest::{YAML_NAME, generated_manifest};
use crate::ops::session::edits::git_around;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::events::Work;
use crate::ops::session::locked::ambiguous;
use crate::ops::{Code, CommandError, Session};
use crate::reference::PackageId;
use crate::workspace::edits::{Edit, EditsError, RecordedEdits, State, TRASH};
use crate::workspace::refuse_links_of_edits;
use crate::workspace::root::local_git;

/// How long a clone stays in the trash, in seconds.
const KEPT: i64 = 30 * 24 * 60 * 60;

/// How the time is written in names in the trash, in UTC.
const TIME: &str = "%Y-%m-%dT%H-%M-%SZ";

/// How many characters such a time has.
const SHOWN_TIME: usize = "2026-01-31T01-02-03Z".len();

/// The most names that an error lists of one kind of work.
const SHOWN: usize = 10;

/// Which edits end, and how.
#[derive(Debug, Clone, Default)]
pub struct DoneRequest {
    /// The packages.
    pub references: Vec<String>,
    /// Whether all edits end.
    pub all: bool,
    /// Whether the folders stay where they are.
    pub keep: bool,
    /// Whether the checks are skipped.
    pub force: bool,
}

/// An edit that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ended {
    /// The package.
    pub id: PackageId,
    /// The folder of its clone, relative to the workspace's root.
    pub clone: String,
    /// Its name in the trash, for `mu edit --restore`; nothing if the folder stays, or was gone.
    pub trash: Option<String>,
    /// Whether the folder stays.
    pub kept: bool,
    /// How to use the commits that were made, if there are any: commands, or lines of the settings.
    pub ways: Vec<String>,
}

/// Ends edits.
pub fn end_edits(session: &Session, request: &DoneRequest) -> Result<Vec<Ended>, CommandError> {
    let root = &session.workspace.root;
    let mut edits = RecordedEdits::read(root)?;
    let mut meant: Vec<usize> = match request.all {
        true => (0..edits.edits.len())
            .filter(|at| edits.edits[*at].state_on_disk(root) != State::InTrash)
            .collect(),
        false => request
            .references
            .iter()
            .map(|text| find(session, &edits, text))
            .collect::<Result<_, _>>()?,
    };
    // Two of the names may mean one edit.
    meant.sort_unstable();
    meant.dedup();
    if meant.is_empty() {
        return Err(CommandError::new(Code::NotFound, "nothing is being edited here"));
    }
    if !request.keep {
        // Of all of them, before the first one moves.
        check(session, &edits, &meant, request.force)?;
    }
    let mut ended = Vec::new();
    for &at in &meant {
        ended.push(end(session, &mut edits, at, &ended, request)?);
    }
    edits.edits.retain(|edit| edit.state_on_disk(root) != State::Missing);
    edits.write(root)?;
    Ok(ended)
}

/// Refuses to end edits if anything in their clones would be lost, for all reasons at once.
fn check(
    session: &Session,
    edits: &RecordedEdits,
    meant: &[usize],
    is_forced: bool,
) -> Result<(), CommandError> {
    let root = &session.workspace.root;
    let mut reasons: Vec<String> = Vec::new();
    let mut clones: Vec<&InnerPath> = Vec::new();
    // What else ends with the clones.
    let mut together: Vec<&Edit> = Vec::new();
    let mut is_offline = false;
    for edit in meant.iter().map(|at| &edits.edits[*at]) {
        // A clone that other edits use as well does not go alone.
        let others = edits.edits.iter().enumerate().filter(|(at, other)| {
            !meant.contains(at)
                && other.clone == edit.clone
                && other.state_on_disk(root) != State::InTrash
        });
        for (_, other) in others {
            reasons.push(format!("{}: `{}` is edited in the same clone", edit.clone, other.id));
            together.push(other);
        }
        if is_forced || clones.contains(&&edit.clone) || edit.state_on_disk(root) == State::Missing
        {
            continue;
        }
        clones.push(&edit.clone);
        let clone = root.join(&edit.clone);
        if session.environment.current.starts_with(&clone) {
            reasons.push(format!("{}: the current folder is in it", edit.clone));
        }
        is_offline |= session.options.offline && edit.url.is_some();
        reasons.extend(losses(session, edit, &clone)?);
    }
    if reasons.is_empty() && !is_offline {
        return Ok(());
    }
    if is_offline {
        reasons.push("--offline: the remotes cannot be asked which commits they have".to_owned());
    }
    let lines: Vec<String> = reasons.iter().map(|reason| format!("\n  {reason}")).collect();
    let message = format!("the edit does not end, because work could be lost:{}", lines.concat());
    let code = if is_offline { Code::Offline } else { Code::Conflict };
    let mut error = CommandError::new(code, message);
    if !together.is_empty() {
        let named = meant.iter().map(|at| &edits.edits[*at]).chain(together);
        let mut names: Vec<String> =
            named.map(|edit| quoted_for_shell(&edit.id.to_string())).collect();
        names.sort();
        names.dedup();
        let force = if is_forced { "--force " } else { "" };
        error =
            error.hint(format!("end them together: `mu edit --done {force}{}`", names.join(" ")));
    }
    if !is_forced {
        error = error
            .hint("commit and push what you need; `--keep` ends the edit and leaves the folder where it is")
            .hint("`--force` moves the folder into the trash as it is; `mu edit --restore NAME` takes it out again");
    }
    Err(error.with_details(serde_json::json!({ "reasons": reasons })))
}

/// What would be lost with a clone, a line each.
fn losses(session: &Session, edit: &Edit, clone: &Path) -> Result<Vec<String>, CommandError> {
    let copies = copies(session);
    let tips = |url: &str| match session.options.offline {
        // One reason says so for all of them.
        true => Ok(Vec::new()),
        false => {
            let what = format!("asking `{}` which commits it has", without_secrets(url));
            let _work = Work::begin(&session.events, what);
            copies.tips(url)
        }
    };
    // The manifest that mu has made for a repository without one is nobody's work.
    let generated = generated_manifest(&edit.id, Some(&edit.version));
    let own = |path: &str| {
        let text = fs::read_text(&clone.join(path)).ok();
        path.rsplit('/').next() == Some(YAML_NAME) && text.as_deref() == Some(&generated)
    };
    let local = local_git(&session.environment);
    let found = local.unsaved(clone, Some(&edit.commit), &own, &tips).map_err(|error| {
        CommandError::from_error(Code::Io, error)
            .while_doing(format!("cannot tell what is in `{}`", clone.display()))
            .hint("`--keep` ends the edit and leaves the folder where it is")
    })?;
    // Without the network, it is not known which commits the remotes have.
    let is_unknown = session.options.offline && edit.url.is_some();
    let found = found.iter().filter(|one| !(is_unknown && one.kind == Kind::Commits));
    Ok(found.map(|one| worded(edit.clone.as_str(), one)).collect())
}

fn worded(clone: &str, unsaved: &Unsaved) -> String {
    let Unsaved { kind, inside, names } = unsaved;
    let place = if inside.is_empty() { clone.to_owned() } else { format!("{clone}/{inside}") };
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    let names = shown.join(", ");
    match kind {
        Kind::Staged => format!("{place}: staged and not committed: {names}"),
        Kind::Changed => format!("{place}: changed and not committed: {names}"),
        Kind::Untracked => format!("{place}: not tracked by Git: {names}"),
        Kind::Ignored => format!("{place}: ignored by Git, so in no commit: {names}"),
        Kind::Stashed => format!("{place}: stashed: {names}"),
        Kind::UnderWay => format!("{place}: {} is under way", unsaved.names.join(" and ")),
        Kind::Worktree => format!("{place}: other worktrees belong to it: {names}"),
        Kind::Commits => format!(
            "{place}: commits that no remote has: {names} (`git fetch` there, if they were merged; an amended commit counts, too)"
        ),
        Kind::Remote => {
            format!("{place}: a remote could not be asked: {}", unsaved.names.join("; "))
        }
    }
}

/// Ends one edit; its clone may have gone into the trash with an earlier one.
fn end(
    session: &Session,
    edits: &mut RecordedEdits,
    at: usize,
    before: &[Ended],
    request: &DoneRequest,
) -> Result<Ended, CommandError> {
    let (root, opened) = (session.workspace.root.clone(), session.workspace.opened()?);
    let edit = edits.edits[at].clone();
    let clone = root.join(&edit.clone);
    let id = package_of(&edit)?;
    let ways = ways(session, &id, &edit, &clone, !request.keep && !request.force);
    let ended = Ended { id, clone: edit.clone.to_string(), trash: None, kept: request.keep, ways };
    if request.keep {
        edits.edits[at].kept = true;
        edits.write(&root)?;
        return Ok(ended);
    }
    // The clone has gone into the trash with an earlier edit of this run, so both have the same name there.
    let with = before.iter().find(|other| edit.clone == *other.clone);
    if let Some(with) = with.filter(|with| with.trash.is_some()) {
        let named =
            |other: &&Edit| other.trash.as_ref().map(InnerPath::as_str) == with.trash.as_deref();
        let first = edits.edits.iter().find(named);
        let (trash, trashed) =
            first.map(|first| (first.trash.clone(), first.trashed)).unwrap_or_default();
        edits.edits[at].trash = trash;
        edits.edits[at].trashed = trashed;
        edits.write(&root)?;
        return Ok(Ended { trash: with.trash.clone(), ..ended });
    }
    if edit.state_on_disk(&root) == State::Missing {
        return Ok(Ended { ways: Vec::new(), ..ended });
    }
    let name = name_in_trash(&opened, &ended.id, session.environment.now)?;
    // The name is known before the folder is there, so that a run that ends in between loses nothing.
    edits.edits[at].trash = Some(name.clone());
    edits.edits[at].trashed = Some(session.environment.now);
    edits.edits[at].kept = false;
    edits.write(&root)?;
    opened.move_inside(&edit.clone, &TRASH.join(&name))?;
    opened.remove_empty_above(&edit.clone);
    // Last, so that Git never sees the clone as new files.
    if let Some(around) = git_around(session, &root)? {
        around.no_longer_ignore(&clone)?;
    }
    Ok(Ended { trash: Some(name.to_string()), ..ended })
}

/// A name that is free in the trash: the package's, and the time.
fn name_in_trash(root: &Folder, id: &PackageId, now: i64) -> Result<InnerPath, CommandError> {
    let time = jiff::Timestamp::from_second(now).unwrap_or_default();
    let time = time.strftime(TIME).to_string();
    let name = format!("{}-{time}", id.name_str().replace('/', "+"));
    let others = (2..).map(|number| format!("{name}-{number}"));
    for name in std::iter::once(name.clone()).chain(others) {
        let name = InnerPath::name(&name)
            .map_err(|error| CommandError::from_error(Code::Reference, error))?;
        if root.look_at(&TRASH.join(&name))?.is_none() {
            return Ok(name);
        }
    }
    Err(CommandError::new(Code::Conflict, format!("the trash has too many of `{id}`")))
}

/// When a folder was put into the trash, as [`name_in_trash`] has named it.
fn time_in_name(name: &str) -> Option<i64> {
    // The first date in the name of a package need not be it.
    let starts = name.match_indices('-').map(|(at, _)| &name[at + 1..]);
    let mut times = starts.filter_map(|text| {
        let (time, number) = text.split_at_checked(SHOWN_TIME)?;
        let is_numbered = |number: &str| number.parse::<u32>().is_ok();
        let ends = number.is_empty() || number.strip_prefix('-').is_some_and(is_numbered);
        let time = jiff::civil::DateTime::strptime(TIME, time).ok().filter(|_| ends)?;
        Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
    });
    times.next_back()
}

/// How to use the commits that were made in a clone, if they were pushed: as far as the clone knows, or because this was checked.
fn ways(
    session: &Session,
    id: &PackageId,
    edit: &Edit,
    clone: &Path,
    is_checked: bool,
) -> Vec<String> {
    let local = local_git(&session.environment);
    let Ok(work) = local.work_state(clone) else { return Vec::new() };
    if work.head.as_ref().is_none_or(|head| *head == edit.commit) {
        return Vec::new();
    }
    // Where it was pushed to, as the clone knows it. A push to a URL leaves no trace there; but if the check has found
    // all commits at the place that it was cloned from, they are there.
    let pushed = local.pushed_to(clone).ok().flatten();
    let pushed =
        pushed.and_then(|pushed| Some((checked_url(&pushed.url, true).ok()?, pushed.branch)));
    let Some((url, branch)) =
        pushed.or_else(|| edit.url.clone().zip(work.branch).filter(|_| is_checked))
    else {
        return Vec::new();
    };
    let inside = edit
        .folder
        .as_str()
        .strip_prefix(edit.clone.as_str())
        .unwrap_or_default()
        .trim_start_matches('/');
    // `.git` marks where the path of the repository ends and that of the folder begins.
    let marked = if url.contains("://") && !url.ends_with(".git") && !inside.is_empty() {
        format!("{url}.git")
    } else {
        url.clone()
    };
    let folder = if inside.is_empty() { String::new() } else { format!("/{inside}") };
    let marked =
        marked.strip_prefix("file://").map_or(marked.clone(), |path| format!("git+file://{path}"));
    let marked =
        marked.strip_prefix("http://").map_or(marked.clone(), |rest| format!("git+http://{rest}"));
    let reference = format!("{marked}{folder}#{branch}");
    let name = session.short_name(id);
    vec![
        format!("wait for a released version, then `mu update {}`", quoted_for_shell(&name)),
        format!("`mu add {}` depends on the branch", quoted_for_shell(&reference)),
        format!(
            "`overrides: {{{}: \"{reference}\"}}` in `.mu/workspace.yaml` uses the branch everywhere",
            edit.id
        ),
    ]
}

/// Removes clones that have been in the trash for 30 days, but in a dry run; returns how many.
pub fn prune_trash(session: &Session, dry_run: bool) -> Result<usize, CommandError> {
    let root = &session.workspace.root;
    let mut edits = RecordedEdits::read(root)?;
    let is_old = |edit: &Edit| {
        let age = edit.trashed.map(|trashed| session.environment.now - trashed);
        edit.state_on_disk(root) == State::InTrash && age.is_some_and(|age| age > KEPT)
    };
    let old: Vec<Edit> = edits.edits.iter().filter(|edit| is_old(edit)).cloned().collect();
    // What no edit names any more has the time in its name.
    let strays = strays(session, &edits)?;
    let is_old = |name: &&String| {
        time_in_name(name).is_some_and(|trashed| session.environment.now - trashed > KEPT)
    };
    let strays: Vec<InnerPath> =
        strays.iter().filter(is_old).filter_map(|name| InnerPath::name(name).ok()).collect();
    // Several edits of one clone are one folder in the trash.
    let mut names: Vec<&InnerPath> = old.iter().filter_map(|edit| edit.trash.as_ref()).collect();
    names.extend(&strays);
    names.dedup();
    if dry_run {
        return Ok(names.len());
    }
    for name in &names {
        session.workspace.opened()?.remove(&TRASH.join(name))?;
    }
    if !old.is_empty() {
        edits.edits.retain(|edit| !old.contains(edit));
        edits.write(root)?;
    }
    Ok(names.len())
}

/// The folders in the trash that no edit names, because somebody has removed the list of edits.
fn strays(session: &Session, edits: &RecordedEdits) -> Result<Vec<String>, CommandError> {
    let root = &session.workspace.root;
    refuse_links_of_edits(root).map_err(EditsError::from)?;
    let is_named = |name: &String| {
        edits.edits.iter().any(|edit| edit.trash.as_ref().is_some_and(|one| *one == **name))
    };
    let entries = fs::entries_if_there(&root.join(TRASH.as_str()))?.into_iter();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| !is_named(name)).collect())
}

/// Restores the edit with this name in the trash, or the newest one of this package; returns all that were in the clone.
pub fn restore(session: &Session, name: &str) -> Result<Vec<Edited>, CommandError> {
    let root = &session.workspace.root;
    let mut edits = RecordedEdits::read(root)?;
    let in_trash = |edit: &&Edit| edit.state_on_disk(root) == State::InTrash;
    let is_exact =
        |edit: &&Edit| edit.trash.as_ref().is_some_and(|trash| *trash == *name) || edit.id == name;
    let ends_so = |edit: &&Edit| edit.id.ends_with(&format!("/{name}"));
    let trashed = || edits.edits.iter().filter(in_trash);
    let mut named: Vec<&Edit> = trashed().filter(is_exact).collect();
    if named.is_empty() {
        named.extend(trashed().filter(ends_so));
        let ids: BTreeSet<&str> = named.iter().map(|edit| &*edit.id).collect();
        if ids.len() > 1 {
            return Err(ambiguous(name, ids));
        }
    }
    let Some(found) = named.into_iter().max_by_key(|edit| edit.trashed).cloned() else {
        let names: Vec<String> =
            trashed().filter_map(|edit| Some(edit.trash.as_ref()?.to_string())).collect();
        let error = CommandError::new(Code::NotFound, format!("there is no `{name}` in the trash"));
        let strays = strays(session, &edits)?;
        return Err(match (names.is_empty(), strays.first()) {
            (false, _) => error.hint(format!("in the trash are: {}", names.join(", "))),
            (true, None) => error.hint("the trash is empty"),
            (true, Some(_)) => error.hint(format!(
                "`.mu/edits.json`, which says where clones belong, is gone: move the folder yourself; in `{}` are: {}",
                TRASH.as_str(),
                strays.join(", ")
            )),
        });
    };
    let opened = session.workspace.opened()?;
    // Only what is in the trash was found.
    let Some(name) = found.trash.clone() else { return Ok(Vec::new()) };
    let from = TRASH.join(&name);
    if opened.look_at(&found.clone)?.is_some() {
        let message = format!("`{}` is already there", found.clone);
        return Err(CommandError::new(Code::Conflict, message).hint(format!(
            "move it away; the clone is in `{}`",
            opened.path().join(&from).display()
        )));
    }
    session.ignore_edits(Some(&opened.path().join(&found.clone)))?;
    opened.move_inside(&from, &found.clone)?;
    let mut restored = Vec::new();
    for edit in edits.edits.iter_mut().filter(|edit| edit.trash.as_ref() == Some(&name)) {
        edit.trash = None;
        edit.trashed = None;
        restored.push(edit.clone());
    }
    edits.write(root)?;
    restored.iter().map(|edit| seen(session, edit)).collect()
}
