//! `mirror`: copies packages into a hub, so that every lock that names them holds there too.
//!
//! This file decides what is copied: what `Mu.lock` names, what references lead to, or a namespace or the whole of a hub.
//! `copying.rs` copies archives of hubs byte for byte, `packing.rs` makes archives of packages that are in no hub, and `hub_copy.rs`
//! copies all of a namespace or a hub, and later what has changed there.
//!
//! What is already there is not fetched again, so an interrupted run can continue. Mutable properties of
//! published versions are updated.
//!
//! Packages may be copied under other names, in renamed namespaces.

mod copying;
mod hub_copy;
mod packing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mu_hub::names::is_in_namespace;
use mu_provider::Location;
use schemars::JsonSchema;
use serde::Serialize;

use self::copying::Copying;
use self::hub_copy::HubCopy;

use crate::index::{Route, RouteError, Universe as _};
use crate::lock::{FILE_NAME, LockedPackage, Lockfile};
use crate::manifest::agreement::Rename;
use crate::manifest::source::nearest;
use crate::ops::apply::fetch::used_instead;
use crate::ops::explain::unavailable_error;
use crate::ops::publication::target::PublicationTarget;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::names::as_here;
use crate::ops::requirements::requester::Requester;
use crate::ops::session::events::Work;
use crate::ops::session::shown::count;
use crate::ops::solve::question::Question;
use crate::ops::solve::resolve_from;
use crate::ops::{Code, CommandError, OperationScope, Options, Session, Warning};
use crate::reference::{Base, Name, PackageId, Reference};
use crate::workspace::ConfiguredRegistry;

/// What to copy, and the target.
#[derive(Debug, Clone, Default)]
pub struct MirrorRequest {
    /// References: of packages, or of namespaces, which are copied with every version; none for everything that `Mu.lock` names, at
    /// exactly those versions.
    pub references: Vec<String>,
    /// Whether everything that a hub has is copied.
    pub all: bool,
    /// The hub that is copied from, by its base or its place; the references are names there.
    pub from: Option<String>,
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
    /// Set by somebody else when no further package is to be begun.
    pub stop: Option<Arc<AtomicBool>>,
}

impl MirrorRequest {
    /// Whether what `Mu.lock` names is copied, and nothing else is asked for.
    pub fn is_of_lock(&self) -> bool {
        self.references.is_empty() && !self.all && self.from.is_none()
    }
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
    /// What could not be copied; the next run tries again.
    pub failed: Vec<CopyFailure>,
    /// What kind of failure the first of these was.
    #[serde(skip)]
    pub failure: Option<Code>,
    /// Packages that are not copied, and stay where they are.
    pub elsewhere: Vec<Elsewhere>,
    /// The prefixes of the registries that serve the packages now: registries with the same prefixes should
    /// point to the mirror.
    pub prefixes: BTreeSet<String>,
    /// For how many seconds nothing new need be expected, if a hub that was copied says so.
    pub max_age: Option<u32>,
    /// Whether this only describes what would be done.
    pub dry_run: bool,
}

/// A package that could not be copied, or one version of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct CopyFailure {
    /// The package's name at the hub.
    pub name: String,
    /// The version, unless it is the package as a whole.
    pub version: Option<String>,
    /// Why.
    pub reason: String,
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

/// Copies packages and their dependencies, namespaces, or everything that a hub has.
pub fn mirror(session: &Session, request: &MirrorRequest) -> Result<Mirrored, CommandError> {
    let target = PublicationTarget::hub_at(session, &request.to, false)?;
    if request.all || request.from.is_some() {
        return mirror_hub(session, &target, request);
    }
    if request.is_of_lock() {
        return mirror_locked(session, &target, request);
    }
    // Packages go by what would be chosen of them, and so together; namespaces go hub by hub, with one position for each hub and set of
    // names, whatever the order in which they were named.
    let outside = outside(session, None)?;
    let (mut references, mut namespaces) = (Vec::new(), BTreeMap::new());
    for text in &request.references {
        let reference = qualified(session, text.trim_end_matches('/'))?;
        match namespace(&outside, text, &reference)? {
            None => references.push(reference),
            Some(route) => {
                let hub = namespaces.entry(route.location.root.to_string());
                let (_, names) = hub.or_insert_with(|| (Arc::clone(&route), BTreeSet::new()));
                names.insert(route.location.path.clone());
            }
        }
    }
    let mut mirrored = match references.is_empty() {
        true => Mirrored::default(),
        false => mirror_references(&outside, &target, request, &references)?,
    };
    for (route, scope) in namespaces.into_values() {
        refuse_new_names(request)?;
        let source = hub_of(&route);
        let copy = HubCopy { session: &outside, target: &target, request, source: &source, scope };
        mirrored.add(copy.run()?);
    }
    outside.save_index();
    Ok(mirrored)
}

impl Mirrored {
    /// The error of a mirror that is not whole. What is a folder on this machine is never copied, and does not count.
    pub fn incomplete(&self) -> Option<CommandError> {
        let left = self.elsewhere.iter().filter(|one| one.reason.is_some()).count();
        let (code, of_which, hint) = match self.failure {
            Some(code) => (
                code,
                count(self.failed.len(), "package or version"),
                "the next run tries these again",
            ),
            None if left > 0 => (
                Code::Conflict,
                count(left, "package"),
                "the rest is copied; whoever uses the mirror needs these from where they are, or from a place that takes them",
            ),
            None => return None,
        };
        let message = format!("{of_which} not copied, as said above");
        Some(CommandError::new(code, message).hint(hint))
    }

    /// Adds what came of another copy into the same place.
    fn add(&mut self, other: Self) {
        self.place = other.place;
        self.copied.extend(other.copied);
        self.present += other.present;
        self.changed.extend(other.changed);
        self.failed.extend(other.failed);
        self.failure = self.failure.or(other.failure);
        self.max_age = self.max_age.into_iter().chain(other.max_age).min();
        self.dry_run = other.dry_run;
    }
}

/// A session without the workspace's own packages: a mirror has what registries have.
fn outside(
    session: &Session,
    registry: Option<ConfiguredRegistry>,
) -> Result<Session, CommandError> {
    let mut options = Options { locked: false, frozen: false, ..session.options.clone() };
    options.registries.extend(registry);
    let (environment, events) = (session.environment.clone(), Arc::clone(&session.events));
    Session::open(environment, options, OperationScope::Global, events)
}

/// Refuses `--as` where names stay as they are.
fn refuse_new_names(request: &MirrorRequest) -> Result<(), CommandError> {
    if request.namespace.is_none() {
        return Ok(());
    }
    let message =
        "`--as` renames single packages: a copy of a namespace or a hub has the same names";
    Err(CommandError::new(Code::Usage, message)
        .hint("name the packages of the namespace one by one"))
}

/// Refuses to copy packages and namespaces of a hub of which it has nothing.
fn check_scope(
    scope: &BTreeSet<String>,
    packages: &BTreeSet<String>,
    hub: &Location,
) -> Result<(), CommandError> {
    let has_none = |scope: &&String| {
        !scope.is_empty() && !packages.iter().any(|name| is_in_namespace(scope, name))
    };
    let Some(missing) = scope.iter().find(has_none) else { return Ok(()) };
    let message = format!("`{}` has no package `{missing}`, and none below it", hub.describe());
    let namespaces = packages.iter().filter_map(|name| Some(name.rsplit_once('/')?.0));
    let known = packages.iter().map(String::as_str).chain(namespaces);
    let near = nearest(missing, known).map(|near| format!("did you mean `{near}`?"));
    Err(near.into_iter().fold(CommandError::new(Code::NotFound, message), CommandError::hint))
}

/// The hub that a package is in.
fn hub_of(route: &Route) -> Route {
    let location = Location { path: String::new(), ..route.location.clone() };
    Route { location, ..route.clone() }
}

/// The place of a namespace, if the text of a reference means one: with a slash at its end, or if there is no such package, but others
/// below it.
fn namespace(
    outside: &Session,
    text: &str,
    reference: &Reference,
) -> Result<Option<Arc<Route>>, CommandError> {
    let (index, defaults) = (outside.index(), outside.reference_defaults());
    let (id, is_said) = (reference.id(&defaults), text.ends_with('/'));
    index.declare(&id, reference, &outside.environment.current);
    let is_package = || index.releases(&id).is_ok_and(|found| !found.is_empty());
    if !is_said && (text.contains('#') || is_package()) {
        return Ok(None);
    }
    // The default namespace is for packages.
    let plain = Reference::parse(text.trim_end_matches('/'))?;
    let id = match plain.base() {
        Some(_) => id,
        None => Reference::parse(&format!("{}{}", defaults.base, plain.path()))?.id(&defaults),
    };
    let route = index.route(&id).map_err(|error| unavailable_error(outside, error))?;
    if is_said {
        return Ok(Some(route));
    }
    // What is nothing is reported as a package that is not there.
    let below = format!("{}/", route.location.path);
    let work = Work::begin(&outside.events, id.as_str());
    let changes = route.provider.changes(&hub_of(&route).location, None, &work);
    let is_one = changes
        .ok()
        .flatten()
        .is_some_and(|changes| changes.packages.iter().any(|name| name.starts_with(&below)));
    Ok(is_one.then_some(route))
}

/// Copies what a hub has, or the packages and namespaces of it that the references name.
fn mirror_hub(
    session: &Session,
    target: &PublicationTarget,
    request: &MirrorRequest,
) -> Result<Mirrored, CommandError> {
    refuse_new_names(request)?;
    let mut scope = BTreeSet::new();
    for text in &request.references {
        let name = text.trim_end_matches('/');
        if Name::parse(name).is_err() {
            let message = format!("`{text}` is not the name of a package or a namespace");
            return Err(CommandError::new(Code::Usage, message).hint(
                "packages and namespaces are named here as the hub names them, such as `acme/web`",
            ));
        }
        scope.insert(name.to_owned());
    }
    // A base leads where the registries of the settings say. A place is what the default base leads to in this run, so that what is there
    // has the same names, and tokens go where they may.
    let default = session.workspace.settings.base.to_string();
    let from = request.from.as_deref().unwrap_or(&default);
    let is_place = from.contains("://") || from.starts_with(['.', '/', '~']);
    let current = &session.environment.current;
    let at = |prefix: &str, place: &str| {
        ConfiguredRegistry::at_place(prefix, place, current).map_err(|problem| {
            let error = CommandError::new(Code::Usage, format!("--from: {}", problem.message));
            problem.help.into_iter().fold(error, CommandError::hint)
        })
    };
    let prefix = match is_place {
        true => default.clone(),
        false => at(from, "https://h/")?.prefix,
    };
    // A base that no registry leads elsewhere is a host.
    let mut outside = self::outside(session, is_place.then(|| at(&prefix, from)).transpose()?)?;
    let is_known =
        |session: &Session| session.index().registries().iter().any(|one| one.prefix == prefix);
    if !is_known(&outside) {
        outside = self::outside(session, Some(at(&prefix, &format!("https://{prefix}"))?))?;
    }
    let found = outside.index().registries().into_iter().find(|one| one.prefix == prefix);
    let Some(registry) = found else {
        unreachable!("it was just put there");
    };
    let route = registry.route.map_err(|error| match error {
        RouteError::Provider(error) => error.into(),
        error => CommandError::from_error(Code::Reference, error),
    })?;
    let source = hub_of(&route);
    let copy = HubCopy { session: &outside, target, request, source: &source, scope };
    let mut mirrored = copy.run()?;
    if !is_place {
        mirrored.prefixes.insert(prefix);
    }
    Ok(mirrored)
}

/// Copies what would be chosen for references.
fn mirror_references(
    outside: &Session,
    target: &PublicationTarget,
    request: &MirrorRequest,
    references: &[Reference],
) -> Result<Mirrored, CommandError> {
    let roots: BTreeSet<PackageId> =
        references.iter().map(|reference| reference.id(&outside.reference_defaults())).collect();
    let texts = references.iter().map(ToString::to_string).collect();
    let mut requirements = Requirements::collect(outside, texts)?;
    for asked in &mut requirements.asked {
        asked.by = Requester::Mirror;
    }
    let resolved = resolve_from(outside, &Question::without_moves(requirements), Arc::default());
    let resolved = resolved.map_err(CommandError::without_ways_out)?;
    let is_copied = |id: &PackageId| !request.no_deps || roots.contains(id);
    let versions = versions(outside, &resolved.lock, is_copied);
    let mut copying = Copying::new(outside, target, request);
    if let Some(text) = &request.namespace {
        copying.renaming = Some(Renaming::new(&roots, text)?);
    }
    copying.run(&versions)
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
        session.events.warning(&Warning::LockBehindManifests);
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
