//! `mirror`: copies packages into a hub, so that every lock that names them holds there too.
//!
//! This file decides what is copied: what `Mu.lock` names, or what references lead to. `copying.rs` copies
//! archives of hubs byte for byte, and `packing.rs` makes archives of packages that are in no hub.
//!
//! What is already there is not fetched again, so an interrupted run can continue. Mutable properties of
//! published versions are updated.
//!
//! Packages may be copied under other names, in renamed namespaces.

mod copying;
mod packing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use self::copying::Copying;

use crate::lock::{FILE_NAME, LockedPackage, Lockfile};
use crate::manifest::rename::Rename;
use crate::ops::apply::fetch::used_instead;
use crate::ops::publication::target::PublicationTarget;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::names::as_here;
use crate::ops::requirements::requester::Requester;
use crate::ops::solve::question::Question;
use crate::ops::solve::solver::resolve_from;
use crate::ops::{Code, CommandError, OperationScope, Options, Session};
use crate::reference::{Base, Name, PackageId, Reference};

/// What to copy, and the target.
#[derive(Debug, Clone, Default)]
pub struct MirrorRequest {
    /// References; none for everything that `Mu.lock` names, at exactly those versions.
    pub references: Vec<String>,
    /// The hub that is copied to.
    pub to: String,
    /// Whether dependencies are left out.
    pub no_deps: bool,
    /// Whether every version is copied, not only the one that would be chosen.
    pub all_versions: bool,
    /// The namespace that replaces that of the references, for all copied packages in it; without references, that of each
    /// package.
    pub namespace: Option<String>,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// A version that was copied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Copied {
    /// The package's name at the hub.
    pub name: String,
    /// The version.
    pub version: String,
}

/// A version that was already there, and was updated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changed {
    /// The package's name at the hub.
    pub name: String,
    /// The version.
    pub version: String,
    /// What changed of it: `yanked`, `deprecated`, `tags`, `movedTo`.
    pub keys: Vec<&'static str>,
}

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mirrored {
    /// The hub.
    pub place: String,
    /// What was copied.
    pub copied: Vec<Copied>,
    /// How many versions were there already.
    pub present: usize,
    /// Versions that were already there, and were updated.
    pub changed: Vec<Changed>,
    /// Packages that are not copied, and stay where they are.
    pub elsewhere: Vec<Elsewhere>,
    /// The prefixes of the registries that serve the packages now: registries with the same prefixes should
    /// point to the mirror.
    pub prefixes: BTreeSet<String>,
    /// Whether this only describes what would be done.
    pub dry_run: bool,
}

/// A package that is not copied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Elsewhere {
    /// The package.
    pub id: PackageId,
    /// Which provider serves it.
    pub provider: String,
    /// Where it is.
    pub place: String,
    /// The reason why it was not copied, unless it is a folder.
    pub reason: Option<String>,
}

/// The versions of a package to copy, with their locked entries.
type VersionsToCopy = BTreeMap<String, LockedPackage>;

/// Copies packages and their dependencies.
pub fn mirror(session: &Session, request: &MirrorRequest) -> Result<Mirrored, CommandError> {
    let target = PublicationTarget::hub_at(session, &request.to, false)?;
    if request.references.is_empty() {
        return mirror_locked(session, &target, request);
    }
    let references = request.references.iter().map(|text| qualified(session, text));
    let references: Vec<Reference> = references.collect::<Result<_, _>>()?;
    // Without the workspace's own packages: a mirror has what registries have.
    let outside = Session::open(
        session.environment.clone(),
        Options { locked: false, frozen: false, ..session.options.clone() },
        OperationScope::Global,
        Arc::clone(&session.events),
    )?;
    let roots: BTreeSet<PackageId> =
        references.iter().map(|reference| reference.id(&session.reference_defaults())).collect();
    let texts = references.iter().map(ToString::to_string).collect();
    let mut requirements = Requirements::collect(&outside, texts)?;
    for asked in &mut requirements.asked {
        asked.by = Requester::Mirror;
    }
    let resolved = resolve_from(&outside, &Question::without_moves(requirements), Arc::default());
    let resolved = resolved.map_err(CommandError::without_ways_out)?;
    let is_copied = |id: &PackageId| !request.no_deps || roots.contains(id);
    let versions = versions(&outside, &resolved.lock, is_copied);
    let mut copying = Copying::new(&outside, &target, request);
    if let Some(text) = &request.namespace {
        copying.renaming = Some(Renaming::new(&roots, text)?);
    }
    let mirrored = copying.run(&versions);
    outside.save_index();
    mirrored
}

/// The reference that a text of the command line means, with a base.
fn qualified(session: &Session, text: &str) -> Result<Reference, CommandError> {
    let reference = as_here(session, Reference::parse(text)?);
    if reference.local().is_some() {
        let message = format!("`{reference}` is a folder, not a package in a hub");
        return Err(
            CommandError::new(Code::Usage, message).hint("`mu publish` publishes it to a hub")
        );
    }
    if reference.base().is_some() {
        return Ok(reference);
    }
    Ok(Reference::parse(&reference.qualified(&session.reference_defaults()))?)
}

/// Copies what the lock names.
fn mirror_locked(
    session: &Session,
    target: &PublicationTarget,
    request: &MirrorRequest,
) -> Result<Mirrored, CommandError> {
    let Some(lock) = session.lockfile()? else {
        let folder = session.lock_folder();
        let message = format!("there is no {FILE_NAME} in `{}`", folder.display());
        return Err(CommandError::new(Code::NotFound, message)
            .hint("`mu get` writes it; `mu mirror REF --to PLACE` copies packages without one"));
    };
    // References in manifests may say more about the place of a package than its id.
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    if !requirements.differences(session, &lock).is_empty() {
        session.events.warning(&format!(
            "{FILE_NAME} is out of date with the manifests; mu copies what it names, and `mu get` updates it"
        ));
    }
    requirements.declare(session);
    let mut copying = Copying::new(session, target, request);
    let mut left: BTreeSet<&PackageId> = BTreeSet::new();
    // What is only on this machine is not copied. The workspace's own packages go without saying; a folder outside is
    // told, because whoever uses the mirror lacks it.
    for package in lock.packages.iter().filter(|package| package.source.is_authored_folder()) {
        left.insert(&package.id);
        if package.source.is_outside_folder() {
            let (provider, place) = (package.source.provider.clone(), package.source.place.clone());
            let elsewhere = Elsewhere { id: package.id.clone(), provider, place, reason: None };
            copying.mirrored.elsewhere.push(elsewhere);
        }
    }
    let versions = versions(session, &lock, |id| !left.contains(id));
    if let Some(text) = &request.namespace {
        copying.renaming = Some(Renaming::new(&versions.keys().cloned().collect(), text)?);
    }
    copying.run(&versions)
}

/// The versions in a lock of those packages that are copied. Of an overridden one that is the package that is used instead,
/// which the override leads to behind the mirror, too.
fn versions(
    session: &Session,
    lock: &Lockfile,
    is_copied: impl Fn(&PackageId) -> bool,
) -> BTreeMap<PackageId, VersionsToCopy> {
    let mut versions: BTreeMap<PackageId, VersionsToCopy> = BTreeMap::new();
    for package in lock.packages.iter().filter(|package| is_copied(&package.id)) {
        let of_package = versions.entry(used_instead(session, &package.id)).or_default();
        of_package.insert(package.version.clone(), package.clone());
    }
    versions
}

/// The namespaces of references, and their replacement.
#[derive(Debug)]
struct Renaming {
    /// The base of each, and its namespace if it has one; the longest namespace comes first.
    from: Vec<(Base, Option<Name>)>,
    to: Name,
}

impl Renaming {
    /// Renames the namespaces of `roots` to the one in `text`.
    fn new(roots: &BTreeSet<PackageId>, text: &str) -> Result<Self, CommandError> {
        let reference = Reference::parse(text.strip_suffix('/').unwrap_or(text))?;
        let is_name = reference.base().is_none()
            && reference.local().is_none()
            && reference.version().is_none()
            && reference.path() == reference.name().as_str();
        if !is_name {
            let message = format!("`--as {text}` is not a namespace");
            return Err(CommandError::new(Code::Usage, message)
                .hint("write only a namespace, such as `--as internal`"));
        }
        let from = roots.iter().map(|root| (root.base(), root.name().namespace()));
        let mut from: Vec<_> = from.collect();
        let length = |name: &Option<Name>| name.as_ref().map_or(0, |name| name.as_str().len());
        from.sort_by_key(|(_, namespace)| std::cmp::Reverse(length(namespace)));
        Ok(Self { from, to: reference.name().clone() })
    }

    /// The name of a package in the mirror, and the rename behind it; `None` if it keeps its name.
    fn of(&self, id: &PackageId) -> Option<(Name, Rename)> {
        let name = id.name();
        self.from.iter().filter(|(base, _)| *base == id.base()).find_map(|(_, from)| {
            let rest = match from {
                Some(from) => name.strip_prefix(from)?,
                None => Some(name.clone()).filter(|name| name.namespace().is_none())?,
            };
            let renamed = Rename { from: from.clone(), to: Some(self.to.clone()) };
            Some((self.to.join(&rest), renamed))
        })
    }
}
