//! `publish`: packs packages and puts them where others find them.
//!
//! `check.rs` looks for what would be wrong for others, `target.rs` knows the places, `server.rs` speaks
//! to those that write themselves. What is written where, and in which order, is `mu-hub`'s.

use std::collections::BTreeSet;

use mu_hub::Published;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::lock::Lockfile;
use crate::ops::publication::check::{self, Siblings};
use crate::ops::publication::lines::full_version;
use crate::ops::publication::pack::{self, Making, Packed};
use crate::ops::publication::target::{Target, Upload};
use crate::ops::requirements::names::id_in;
use crate::ops::session::error::quoted;
use crate::ops::session::events::Work;
use crate::ops::session::member;
use crate::ops::{Code, CommandError, Session, Stage};
use crate::reference::PackageId;

/// What is published, and where.
#[derive(Debug, Clone, Default)]
pub struct PublishRequest {
    /// The package; `None` means the one around the current folder.
    pub package: Option<String>,
    /// The hub; `None` means the one that the package's base leads to.
    pub to: Option<String>,
    /// Whether nothing is changed.
    pub dry_run: bool,
    /// Whether every package of the workspace is published, in the order of their dependencies.
    pub all: bool,
    /// Whether files that look like secrets are published too.
    pub force: bool,
    /// Whether dependencies are published as the versions that are locked.
    pub pinned: bool,
    /// The package that takes the place of this one.
    pub moved_to: Option<String>,
}

/// What came of one package.
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
    /// The package that takes its place from now on.
    pub moved_to: Option<PackageId>,
}

/// What was done with a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Done {
    /// It was published.
    Published,
    /// It was there already, with the same content.
    Present,
    /// It would be published.
    Possible,
}

/// Publishes packages of the workspace.
///
/// # Errors
///
/// When a package cannot be published as it is, or the hub refuses it. Those before it stay published.
pub fn publish(
    session: &Session,
    request: &PublishRequest,
) -> Result<Vec<Publishing>, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let members = if request.all && !session.workspace.members.is_empty() {
        in_order(session)
    } else {
        vec![member::target(session, request.package.as_deref(), "mu publish PACKAGE")?]
    };
    let moved_to = request.moved_to.as_deref().map(|to| check::moved_to(session, to));
    let moved_to = moved_to.transpose()?;
    let mut siblings = Siblings::new();
    let mut published = Vec::new();
    let total = members.len();
    for (done, index) in members.into_iter().enumerate() {
        let member = &session.workspace.members[index];
        session.events.progress(Stage::Publishing, done, total);
        let _work = Work::begin(&session.events, member.id.as_str());
        let version = member.manifest.version.clone();
        if request.all && version.is_none() {
            let name = &member.manifest.name;
            session.events.warning(&format!("`{name}` has no `version`, and is not published"));
            continue;
        }
        published.push(one(session, request, index, &lock, &siblings, moved_to.as_ref())?);
        siblings.extend(version.map(|version| (member.id.clone(), version)));
    }
    Ok(published)
}

fn one(
    session: &Session,
    request: &PublishRequest,
    index: usize,
    lock: &Lockfile,
    siblings: &Siblings,
    moved_to: Option<&PackageId>,
) -> Result<Publishing, CommandError> {
    let member = &session.workspace.members[index];
    let id = member.id.clone();
    if moved_to == Some(&id) {
        let message = format!("`{id}` cannot have moved to itself");
        return Err(CommandError::new(Code::Usage, message));
    }
    for warning in check::manifest(session, member, request.pinned)? {
        session.events.warning(&warning);
    }
    if let Some(to) = &request.to {
        check::base(session, member, to)?;
    }
    let version = member.manifest.version.as_ref().map(ToString::to_string).unwrap_or_default();
    let (target, name) = Target::find(session, request.to.as_deref(), &id)?;
    let place = target.name.clone();
    let making = Making { force: request.force, pinned: request.pinned, not: None };
    let packed = pack::make(session, index, lock, making)?;
    let answer = |done, packed| {
        let moved_to = moved_to.cloned();
        Publishing { packed, id, version: version.clone(), place, done, moved_to }
    };
    if let Some(line) = target.line(&name, &version)? {
        let is_same = is_same(&line, &packed);
        if !is_same && !request.all && request.dry_run {
            return Err(taken(&line, &packed));
        }
        if !is_same && request.all {
            session.events.warning(&format!(
                "`{name}` {version} is published with other content; raise its version to publish the change"
            ));
        }
        if is_same || request.all {
            if let Some(to) = moved_to.filter(|_| !request.dry_run) {
                target.moved(&name, &version, Some(to.as_str()))?;
            }
            return Ok(answer(Done::Present, None));
        }
    }
    check::dependencies(session, member, siblings).map_err(|error| match &request.to {
        Some(to) if error.code == Code::Network => error.hint(format!(
            "if they are in the hub that you publish to, say that packages of that base come from there: \
             `mu registry add {} {}`",
            member.id.base(),
            quoted(to)
        )),
        _ => error,
    })?;
    if request.dry_run {
        return Ok(answer(Done::Possible, Some(packed)));
    }
    let upload = Upload {
        line: line(session, &packed, &name),
        archive: packed.archive.bytes()?,
        name: name.clone(),
        version: version.clone(),
    };
    let done = match target.publish(upload)? {
        Published::New => Done::Published,
        Published::Same => Done::Present,
    };
    if let Some(to) = moved_to {
        target.moved(&name, &version, Some(to.as_str()))?;
    }
    Ok(answer(done, Some(packed)))
}

/// Whether a published version is what was packed.
fn is_same(line: &Map<String, Value>, packed: &Packed) -> bool {
    let said = |key: &str| line.get(key).and_then(Value::as_str);
    match said("digest") {
        Some(digest) => digest == packed.archive.tree.digest().to_string(),
        None => said("archive") == Some(&packed.archive.archive.to_string()),
    }
}

/// The error about a version that is published with other content, before anything is sent.
fn taken(line: &Map<String, Value>, packed: &Packed) -> CommandError {
    let said = |key: &str| line.get(key).and_then(Value::as_str);
    mu_hub::HubError::Exists {
        package: format!("{} {}", packed.manifest.name, full_version(line)),
        present: said("digest").or(said("archive")).unwrap_or("no digest").to_owned(),
        offered: packed.archive.tree.digest().to_string(),
    }
    .into()
}

/// The index line of a package, which is called `name` at the hub.
fn line(session: &Session, packed: &Packed, name: &str) -> Map<String, Value> {
    let archive = &packed.archive;
    let mut line = packed.manifest.index_line();
    line.insert("name".to_owned(), name.into());
    line.insert("digest".to_owned(), archive.tree.digest().to_string().into());
    line.insert("archive".to_owned(), archive.archive.to_string().into());
    line.insert("size".to_owned(), archive.size.into());
    if let Ok(now) = jiff::Timestamp::from_second(session.environment.now) {
        line.insert("published".to_owned(), now.to_string().into());
    }
    line
}

/// The workspace's packages, each after those that it depends on.
fn in_order(session: &Session) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for index in 0..session.workspace.members.len() {
        visit(session, index, &mut seen, &mut order);
    }
    order
}

fn visit(session: &Session, index: usize, seen: &mut BTreeSet<usize>, order: &mut Vec<usize>) {
    if !seen.insert(index) {
        return;
    }
    let member = &session.workspace.members[index];
    for dependency in &member.manifest.dependencies {
        let id = id_in(session, member, &dependency.reference);
        if let Some(other) = session.workspace.members.iter().position(|other| other.id == id) {
            visit(session, other, seen, order);
        }
    }
    order.push(index);
}

/// A published version that a reference of the command line names: the hub, the name there, the version.
///
/// # Errors
///
/// When the reference names no version, or leads to no hub that takes changes.
pub(super) fn named(
    session: &Session,
    text: &str,
    to: Option<&str>,
) -> Result<(Target, String, String), CommandError> {
    let reference = crate::reference::Reference::parse(text)?;
    let written = reference.version_text().unwrap_or_default();
    let version = match reference.version() {
        Some(crate::reference::VersionSpec::Pin(pin)) => pin.version().to_string(),
        Some(spec) if spec.is_pinned() => written.to_owned(),
        _ => {
            let message = format!("`{text}` names no single version");
            return Err(CommandError::new(Code::Usage, message)
                .hint("write the version behind the name, such as `acme/web#1.2.0`"));
        }
    };
    let id = reference.id(&session.defaults());
    let (target, name) = Target::find(session, to, &id)?;
    Ok((target, name, version))
}
