//! `publish`: packs packages and puts them where others find them.
//!
//! `check.rs` looks for what would be wrong for others, `target.rs` knows the places, `server.rs` talks to
//! hubs with a server. `mu-hub` decides what is written where, and in which order.
//!
//! `committed.rs` checks that the published files are committed, so that others can find the source of a version.

use std::collections::BTreeSet;

use mu_hub::Published;
use mu_provider::{Commit, Tree};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::lock::{FILE_NAME, Lockfile, ordered_by_needs};
use crate::ops::publication::check::{self, Siblings, There};
#[cfg(feature = "git")]
use crate::ops::publication::committed::packed_commit;
use crate::ops::publication::lines::{Mark, line_version};
use crate::ops::publication::packing::{self, Making, Packed};
use crate::ops::publication::target::{PublicationTarget, Upload};
use crate::ops::requirements::names::id_in;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::events::Work;
use crate::ops::session::locked;
use crate::ops::{Code, CommandError, Session, Stage, Warning};
use crate::reference::{PackageId, Version};
use crate::workspace::Member;

/// What is published, and where.
#[derive(Debug, Clone, Default)]
pub struct PublishRequest {
    /// The package; `None` means the one around the current folder.
    pub package: Option<String>,
    /// The hub; `None` means the one that the package's base leads to.
    pub to: Option<String>,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// Whether every package of the workspace is published, in the order of their dependencies.
    pub all: bool,
    /// Whether files that look like secrets are published too.
    pub force: bool,
    /// Whether dependencies are published with their locked versions.
    pub pinned: bool,
    /// Whether changes that are not committed are published too.
    pub allow_dirty: bool,
    /// The package that takes the place of this one.
    pub moved_to: Option<String>,
}

/// The result for one package.
#[derive(Debug)]
pub struct Publishing {
    /// The package, as it was packed; nothing if that was not needed.
    pub packed: Option<Packed>,
    /// The package.
    pub id: PackageId,
    /// Its version.
    pub version: String,
    /// The hub.
    pub place: String,
    /// What was done.
    pub done: Done,
    /// Whether it is there as it was packed with other versions in its `Mu.lock`, and with the same files otherwise.
    pub other_lock: bool,
    /// The package that takes its place.
    pub moved_to: Option<PackageId>,
}

/// What was done with a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Done {
    /// It was published.
    Published,
    /// It was already there, with the same content, or with `--all` and a warning with other content.
    Present,
    /// It would be published.
    Possible,
}

/// Publishes packages of the workspace.
pub fn publish(
    session: &Session,
    request: &PublishRequest,
) -> Result<Vec<Publishing>, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let members = if request.all && !session.workspace.members.is_empty() {
        ordered_by_needs(0..session.workspace.members.len(), |index| {
            own_dependencies(session, index)
        })
    } else {
        vec![locked::target(session, request.package.as_deref(), "mu publish PACKAGE")?]
    };
    let moved_to = request.moved_to.as_deref().map(|to| check::moved_to(session, to));
    let moved_to = moved_to.transpose()?;
    // A version that is published stays. So whatever can be known before is known of all packages before the first one is sent.
    let mut siblings = Siblings::new();
    let mut prepared = Vec::new();
    let mut held = 0;
    for index in members {
        let member = &session.workspace.members[index];
        let _work = Work::begin(&session.events, member.id.as_str());
        let version = member.manifest.version.clone();
        if request.all && version.is_none() {
            session.events.warning(&Warning::NoVersion { name: member.manifest.name.to_string() });
            continue;
        }
        let mut one = prepare(session, request, index, &lock, &siblings, moved_to.as_ref())?;
        held += usize::from(one.packed.is_some());
        if held > MOST_HELD && !request.dry_run {
            one.packed = None;
        }
        prepared.push(one);
        siblings.extend(version.map(|version| (member.id.clone(), version)));
    }
    let (mut published, total) = (Vec::new(), prepared.len());
    for (done, one) in prepared.into_iter().enumerate() {
        session.events.progress(Stage::Publishing, done, total);
        let sent = send(session, request, one, &lock, moved_to.as_ref());
        published.push(sent.map_err(|error| after(error, &published))?);
    }
    Ok(published)
}

/// How many archives are kept from when they are checked until they are sent, each in an open file. More of them are packed again.
const MOST_HELD: usize = 128;

/// The error about a package, after others were published.
fn after(error: CommandError, published: &[Publishing]) -> CommandError {
    let new = published.iter().filter(|one| one.done == Done::Published);
    let names: Vec<String> = new.map(|one| format!("`{}` {}", one.id, one.version)).collect();
    match names.is_empty() {
        true => error,
        false => error.hint(format!(
            "this run has published {}; once the rest is mended, run it again, and it goes on",
            names.join(", ")
        )),
    }
}

/// A package of which all is known that can be known before it is sent.
struct Prepared {
    index: usize,
    target: PublicationTarget,
    /// Its name there.
    name: String,
    version: String,
    /// What it is to be; nothing if it is there already, or too many others are kept.
    packed: Option<Packed>,
    commit: Option<Commit>,
    is_present: bool,
    other_lock: bool,
}

fn prepare(
    session: &Session,
    request: &PublishRequest,
    index: usize,
    lock: &Lockfile,
    siblings: &Siblings,
    moved_to: Option<&PackageId>,
) -> Result<Prepared, CommandError> {
    let member = &session.workspace.members[index];
    let id = &member.id;
    if moved_to == Some(id) {
        let message = format!("`{id}` cannot have moved to itself");
        return Err(CommandError::new(Code::Usage, message));
    }
    // First, what needs no file but the manifest, and no request.
    packing::refuse_foreign(member)?;
    let mut doubts = check::manifest(session, member, request.pinned)?;
    check::not_patched(session, member, lock)?;
    if let Some(to) = &request.to {
        check::base(session, member, to)?;
    }
    let version = member.manifest.version.as_ref().map(ToString::to_string).unwrap_or_default();
    let (target, name) = PublicationTarget::find(session, request.to.as_deref(), id)?;
    // What is there already needs no second look at its dependencies, unless it is to be published in spite of that. Of what is new,
    // they are checked before it is packed: that is quick, and packing may read a whole repository.
    let published = target.line(&name, &version)?;
    if published.is_none() {
        check_dependencies(session, request, index, siblings, &target)?;
    }
    let packed = packing::make(session, index, lock, making(request))?;
    if let Some(line) = published {
        let published = compare(session, &target, &name, &line, &packed)?;
        let is_same = published != AlreadyThere::OtherFiles;
        if !is_same && !request.all && request.dry_run {
            return Err(taken(&line, &packed));
        }
        if !is_same && request.all {
            let (name, version) = (name.clone(), version.clone());
            session.events.warning(&Warning::OtherContent { name, version });
        }
        // The same again is fine, so that a run that was cut off can be repeated. With `--all`, other content is left alone, too.
        if is_same || request.all {
            let (packed, commit, is_present) = (None, None, true);
            let other_lock = published == AlreadyThere::OtherLock;
            return Ok(Prepared {
                index,
                target,
                name,
                version,
                packed,
                commit,
                is_present,
                other_lock,
            });
        }
        check_dependencies(session, request, index, siblings, &target)?;
    }
    // Only the archive says which files have to be committed, so this comes after packing.
    let commit = packed_commit(session, member, &packed, request.allow_dirty)?;
    // Warnings are told once nothing can be refused any more.
    doubts.extend(older(&target, &name, member)?);
    doubts.extend(ordered_by_text(member));
    for doubt in doubts {
        session.events.warning(&doubt);
    }
    let (packed, is_present, other_lock) = (Some(packed), false, false);
    Ok(Prepared { index, target, name, version, packed, commit, is_present, other_lock })
}

fn making(request: &PublishRequest) -> Making<'_> {
    let PublishRequest { force, pinned, .. } = *request;
    Making { force, pinned, not: None, may_lack_versions: true }
}

/// Sends a package, unless it is there or this is a dry run.
fn send(
    session: &Session,
    request: &PublishRequest,
    prepared: Prepared,
    lock: &Lockfile,
    moved_to: Option<&PackageId>,
) -> Result<Publishing, CommandError> {
    let Prepared { index, target, name, version, packed, commit, is_present, other_lock } =
        prepared;
    let id = session.workspace.members[index].id.clone();
    let _work = Work::begin(&session.events, id.as_str());
    let place = target.name.clone();
    let answer = |done, packed| {
        let (id, version, moved_to) = (id.clone(), version.clone(), moved_to.cloned());
        Publishing { packed, id, version, place, done, other_lock, moved_to }
    };
    let mark_moved = || match moved_to.filter(|_| !request.dry_run) {
        Some(to) => target.mark(&name, &version, Mark::Moved(Some(to.as_str()))).map(drop),
        None => Ok(()),
    };
    if is_present {
        mark_moved()?;
        return Ok(answer(Done::Present, None));
    }
    let packed = match packed {
        Some(packed) => packed,
        None => packing::make(session, index, lock, making(request))?,
    };
    if request.dry_run {
        return Ok(answer(Done::Possible, Some(packed)));
    }
    let upload = Upload {
        line: line(session, &packed, &name, commit),
        archive: packed.archive.bytes()?,
        renamed: None,
        provenance: None,
        evidence: String::new(),
        name: name.clone(),
        version: version.clone(),
    };
    // What the index knows of it is old from here on, however the upload ends.
    session.index().outdate(&id);
    let done = match target.publish(upload)? {
        Published::New => Done::Published,
        Published::Same => Done::Present,
    };
    mark_moved()?;
    Ok(answer(done, Some(packed)))
}

/// Chooses versions of the dependencies of the package at `index`, as others will have to.
fn check_dependencies(
    session: &Session,
    request: &PublishRequest,
    index: usize,
    siblings: &Siblings,
    target: &PublicationTarget,
) -> Result<(), CommandError> {
    let member = &session.workspace.members[index];
    let there = There { target: request.to.is_some().then_some(target), member };
    let checked = check::dependencies(session, member, siblings, &there);
    let Err(error) = checked else { return Ok(()) };
    if let Some(circle) = circle(session, index) {
        return Err(in_circle(session, &error, &circle));
    }
    Err(match &request.to {
        Some(to) if error.code == Code::Network => error.hint(format!(
            "if they are in the hub that you publish to, configure it for packages of that base: \
             `mu registry add {} {}`",
            member.id.base(),
            quoted_for_shell(to)
        )),
        _ => error,
    })
}

/// Warns if a newer version than that of `member` is already published.
fn older(
    target: &PublicationTarget,
    name: &str,
    member: &Member,
) -> Result<Option<Warning>, CommandError> {
    let Some(version) = &member.manifest.version else { return Ok(None) };
    let lines = target.lines(name)?;
    let is_composite = version.app().is_some();
    // Versions with an app version and versions without one are not compared.
    let read = if is_composite { Version::parse_composite } else { Version::parse };
    let alike = lines.iter().filter(|line| line.contains_key("versioning") == is_composite);
    let published = alike.filter_map(|line| read(&line_version(line)).ok());
    let newest = published.filter(|published| !published.is_prerelease()).max();
    Ok(newest.filter(|newest| newest > version).map(|newest| {
        let (name, version) = (name.to_owned(), version.clone());
        Warning::OlderThan { name, version, newest }
    }))
}

/// Warns if versions of `member` have no other order than that of their texts.
fn ordered_by_text(member: &Member) -> Option<Warning> {
    let version = member.manifest.version.as_ref().filter(|version| version.is_of_text())?;
    let (name, app) = (member.manifest.name.to_string(), version.app()?.to_string());
    Some(Warning::OrderedByText { name, app })
}

/// The cycle of workspace packages through which one depends on itself, if there is one, starting with
/// itself.
fn circle(session: &Session, start: usize) -> Option<Vec<usize>> {
    // Each package ends one way at most, so the ways run out.
    let mut ways = vec![vec![start]];
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop() {
        for next in own_dependencies(session, *way.last()?) {
            if next == start {
                return Some(way);
            }
            if seen.insert(next) {
                ways.push([&way[..], &[next]].concat());
            }
        }
    }
    None
}

/// The error about packages that depend on each other, none of which can come first.
fn in_circle(session: &Session, error: &CommandError, circle: &[usize]) -> CommandError {
    let names: Vec<String> = circle
        .iter()
        .map(|&index| format!("`{}`", session.workspace.members[index].manifest.name))
        .collect();
    let message = format!(
        "{} depend on each other, so neither can be published before the other",
        names.join(" and ")
    );
    let why =
        "packages are published after their dependencies: move what both need into a third package";
    CommandError::new(error.code, message).hint(why)
}

/// What is there already under a version, compared with what was packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AlreadyThere {
    /// The same.
    Same,
    /// The same files except for `Mu.lock`, which only records the versions that the package was packed with. They can change while the
    /// package does not.
    OtherLock,
    /// Something else.
    OtherFiles,
}

/// Compares a published version with what was packed. If both are not the same, what is published is fetched, because its line says
/// nothing of single files.
fn compare(
    session: &Session,
    target: &PublicationTarget,
    name: &str,
    line: &Map<String, Value>,
    packed: &Packed,
) -> Result<AlreadyThere, CommandError> {
    let said = |key: &str| line.get(key).and_then(Value::as_str);
    let tree = &packed.archive.tree;
    let digest = said("digest");
    let is_same = match digest {
        Some(digest) => digest == tree.digest().to_string(),
        None => said("archive") == Some(&packed.archive.archive.to_string()),
    };
    if is_same {
        return Ok(AlreadyThere::Same);
    }
    let own = without_lock(tree).digest();
    if digest == Some(&own.to_string()) {
        return Ok(AlreadyThere::OtherLock);
    }
    let published = target.published_tree(session, name, line).map_err(|error| {
        error.while_doing(format!(
            "cannot compare `{name}` {} with what is published under this version",
            line_version(line)
        ))
    })?;
    let is_listed = digest.is_none_or(|digest| digest == published.digest().to_string());
    match is_listed && without_lock(&published).digest() == own {
        true => Ok(AlreadyThere::OtherLock),
        false => Ok(AlreadyThere::OtherFiles),
    }
}

/// The files of a package without the `Mu.lock` that it was packed with.
fn without_lock(tree: &Tree) -> Tree {
    Tree::new(tree.entries().iter().filter(|entry| entry.path != FILE_NAME).cloned().collect())
}

/// The error about a version that is already published with other content, before anything is sent.
fn taken(line: &Map<String, Value>, packed: &Packed) -> CommandError {
    let said = |key: &str| line.get(key).and_then(Value::as_str);
    mu_hub::HubError::Exists {
        package: format!("{} {}", packed.manifest.name, line_version(line)),
        present: said("digest").or(said("archive")).unwrap_or("no digest").to_owned(),
        offered: packed.archive.tree.digest().to_string(),
    }
    .into()
}

/// The index line of a package, with `name`, its name at the hub.
fn line(
    session: &Session,
    packed: &Packed,
    name: &str,
    commit: Option<Commit>,
) -> Map<String, Value> {
    let archive = &packed.archive;
    let mut line = packed.manifest.index_line();
    line.insert("name".to_owned(), name.into());
    line.insert("digest".to_owned(), archive.tree.digest().to_string().into());
    line.insert("archive".to_owned(), archive.archive.to_string().into());
    line.insert("size".to_owned(), archive.size.into());
    line.extend(commit.map(|commit| ("commit".to_owned(), commit.as_str().into())));
    if let Ok(now) = jiff::Timestamp::from_second(session.environment.now) {
        line.insert("published".to_owned(), now.to_string().into());
    }
    line
}

/// The packages of the workspace that one of them depends on, by their places in it.
fn own_dependencies(session: &Session, index: usize) -> Vec<usize> {
    let members = &session.workspace.members;
    let dependencies = members[index].manifest.dependencies.iter();
    let ids = dependencies.map(|one| id_in(session, &members[index], &one.reference));
    ids.filter_map(|id| members.iter().position(|other| other.id == id)).collect()
}

/// Without the Git provider, nothing is known about checkouts.
#[cfg(not(feature = "git"))]
fn packed_commit(
    _session: &Session,
    _member: &Member,
    _packed: &Packed,
    _allow_dirty: bool,
) -> Result<Option<Commit>, CommandError> {
    Ok(None)
}
