//! `build`: runs the builds of packages that are trusted, each once for its content. Nothing else in mu runs code of a
//! package.
//!
//! A build gets a copy of its package in which it may do everything, and nearly nothing elsewhere (`confine`). Its
//! outputs, together with the package, are a tree of the store, which is installed instead of the package alone. What a
//! build depends on becomes one key: the same key gives the same result, so it is not built again. Whether the user has
//! agreed is decided in `consent.rs`.

#[allow(clippy::disallowed_methods, reason = "starts what a package brings, which is confined")]
pub(crate) mod confine;
mod consent;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_provider::http::TOKEN_PREFIX;
use mu_provider::{Digest, FileDigest};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::{BuildRecipe, JSON_NAME, Manifest, YAML_NAME};
use crate::ops::apply::fetch::bring_locked;
use crate::ops::apply::install;
use crate::ops::build::confine::{EPOCH, SYSTEM, Unconfined};
use crate::ops::build::consent::Agreement;
use crate::ops::build::run::Prepared;
use crate::ops::session::events::Work;
use crate::ops::session::installed::folder_of;
use crate::ops::session::locked::{PackageName, Purpose, find_used};
use crate::ops::session::shown;
use crate::ops::solve::names;
use crate::ops::solve::record::Resolved;
use crate::ops::{Code, CommandError, Session, Stage, Warning};
use crate::packs::hash_file;
use crate::reference::PackageId;
use crate::store::Stored;

/// What to build, and how.
#[derive(Debug, Clone, Default)]
pub struct BuildRequest {
    /// The packages; none means all that are locked and trusted.
    pub packages: Vec<String>,
    /// Whether to build twice and compare.
    pub check: bool,
    /// Whether builds run without being confined.
    pub no_sandbox: bool,
}

/// A package that was built.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BuiltPackage {
    /// The package.
    pub id: PackageId,
    /// Its version.
    pub version: String,
    /// The digest of its content.
    pub digest: String,
    /// The digest of its content together with what was built.
    pub built: String,
    /// What the build depends on, as one key.
    pub key: String,
    /// The program that ran, and its arguments.
    pub command: Vec<String>,
    /// Whether it was built before, so that nothing ran.
    pub reused: bool,
    /// Whether it was built twice with the same result.
    pub checked: bool,
    /// The file with the output of the program.
    #[serde(serialize_with = "shown::path")]
    #[schemars(with = "String")]
    pub log: PathBuf,
}

/// What `mu build` did.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct BuildReport {
    /// The packages with a build, each after those that it depends on.
    pub packages: Vec<BuiltPackage>,
    /// The packages, `ID VERSION`, whose build is not trusted, and did not run.
    pub untrusted: Vec<String>,
}

/// A locked package that has a build.
struct Buildable<'lock> {
    package: &'lock LockedPackage,
    stored: Stored,
    build: BuildRecipe,
}

/// Builds packages and what they depend on, and installs the results.
pub fn build(session: &Session, request: &BuildRequest) -> Result<BuildReport, CommandError> {
    let lock = session.lockfile()?.ok_or_else(|| {
        CommandError::new(Code::NotFound, "there is no Mu.lock, so nothing can be built")
            .hint("`mu get` chooses versions and writes Mu.lock")
    })?;
    // What there is to build. The store stays locked for pruning until the last build has ended, because each one reads
    // its trees.
    let asked = asked(session, &lock, &request.packages)?;
    let store = session.use_store()?;
    let mut found = buildable(session, &lock, &asked)?;
    if found.is_empty() {
        return match request.packages.as_slice() {
            [] => Ok(BuildReport::default()),
            [one] => Err(nothing_to_build(&format!("`{one}` has"))),
            _ => Err(nothing_to_build("none of these packages has")),
        };
    }
    // Trust comes before everything else: nobody is asked about a build that the settings do not name. Untrusted ones
    // are left out and listed, unless they were named, or nothing else is left.
    let (named, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|one| consent::is_build_permitted(session, one.package));
    found = named;
    if !others.is_empty() && (found.is_empty() || !request.packages.is_empty()) {
        let packages: Vec<&LockedPackage> = others.iter().map(|one| one.package).collect();
        return Err(consent::not_named(session, &packages));
    }
    let confined = !request.no_sandbox;
    if confined {
        is_supported()?;
    }
    note_edits(session, &found);
    // Everything is asked, and what is missing is reported, before anything runs.
    for one in &found {
        let Buildable { package, stored, build } = one;
        build_environment(session, package, build)?;
        Prepared::check_outputs(package, build)?;
        let seen: Vec<(&LockedPackage, Digest)> = dependencies(&lock, &package.id)
            .into_iter()
            .filter_map(|other| Some((other, other.installed_digest()?)))
            .collect();
        consent::ask(
            session,
            Agreement::new(session, package, &stored.digest, build, confined, &seen),
        )?;
    }
    // Builds run one after the other, in the order of their dependencies: each sees what those before it have made.
    let mut report = BuildReport::default();
    let mut results: BTreeMap<PackageId, Digest> = BTreeMap::new();
    for (number, one) in found.iter().enumerate() {
        session.events.progress(Stage::Building, number, found.len());
        let built = build_one(session, &lock, one, &results, request)?;
        results.insert(one.package.id.clone(), built.1);
        report.packages.push(built.0);
    }
    report.untrusted =
        others.iter().map(|one| format!("{} {}", one.package.id, one.package.version)).collect();
    // Installing takes this lock again.
    drop(store);
    place(session, lock, &results)?;
    Ok(report)
}

/// The packages that were asked for, and everything that they depend on; all, if none was named.
fn asked(
    session: &Session,
    lock: &Lockfile,
    texts: &[String],
) -> Result<BTreeSet<PackageId>, CommandError> {
    let mut asked = BTreeSet::new();
    for text in texts {
        let id = find_used(session, lock, &PackageName::without_version(text, Purpose::Build)?)?;
        if lock.find(&id).any(|package| package.source.is_workspace_folder()) {
            let message = format!(
                "`{id}` is a package of this workspace, and `mu build` builds what it depends on"
            );
            return Err(CommandError::new(Code::Usage, message)
                .hint("run the command of its `build` yourself, in its folder"));
        }
        if let Some(place) = edited_in(session, &id) {
            let message =
                format!("`{id}` is edited in `{place}`, and `mu build` builds what Mu.lock names");
            return Err(CommandError::new(Code::Usage, message)
                .hint(format!("run the command of its `build` yourself, in `{place}`")));
        }
        asked.extend(reachable(lock, &id));
    }
    if texts.is_empty() {
        asked.extend(lock.packages.iter().map(|package| package.id.clone()));
    }
    Ok(asked)
}

/// The folder that this machine uses instead of a package.
fn edited_in<'s>(session: &'s Session, id: &PackageId) -> Option<&'s str> {
    let edited = session.edited.iter().find(|edited| edited.is_used && edited.id == *id)?;
    Some(&edited.member.place)
}

/// Says which edits are not built, and not used by what is built: a build has the same result for everyone.
fn note_edits(session: &Session, found: &[Buildable<'_>]) {
    let mut ids: BTreeSet<&PackageId> = found.iter().map(|one| &one.package.id).collect();
    ids.extend(found.iter().flat_map(|one| &one.package.dependencies));
    for id in ids {
        if let Some(place) = edited_in(session, id) {
            let (id, place) = (id.clone(), place.to_owned());
            session.events.warning(&Warning::EditNotBuilt { id, place });
        }
    }
}

/// A package and everything that it depends on.
fn reachable(lock: &Lockfile, id: &PackageId) -> BTreeSet<PackageId> {
    let mut found = BTreeSet::new();
    let mut open = vec![id.clone()];
    while let Some(id) = open.pop() {
        let needs = lock.find(&id).flat_map(|package| &package.dependencies);
        let needs: Vec<PackageId> = needs.map(|id| lock.used_for(id).clone()).collect();
        if found.insert(id) {
            open.extend(needs);
        }
    }
    found
}

/// The packages among `asked` that have a build, each after those that it depends on.
fn buildable<'lock>(
    session: &Session,
    lock: &'lock Lockfile,
    asked: &BTreeSet<PackageId>,
) -> Result<Vec<Buildable<'lock>>, CommandError> {
    let mut found = Vec::new();
    for index in lock.install_order() {
        let package = &lock.packages[index];
        let is_fetched = !package.source.is_workspace_folder() && !package.source.is_placed_pack();
        if !is_fetched || !asked.contains(&package.id) {
            continue;
        }
        // With a patch, what is built is what is installed: the package with its patch.
        let stored = match &package.patched {
            None => bring_locked(session, package)?,
            Some(patched) => session.store.find(patched)?.ok_or_else(|| {
                let message = format!("`{}` is patched, and is not installed yet", package.id);
                CommandError::new(Code::NotFound, message).hint("run `mu get` first")
            })?,
        };
        if let Some(build) = build_of(&stored)? {
            found.push(Buildable { package, stored, build });
        }
    }
    session.save_index();
    Ok(found)
}

/// The build in the manifest of a tree.
fn build_of(stored: &Stored) -> Result<Option<BuildRecipe>, CommandError> {
    for name in [YAML_NAME, JSON_NAME] {
        let path = stored.folder.join(name);
        if let Some(text) = crate::fs::read_text_if_there(&path)? {
            return Ok(Manifest::parse(&path, &text)?.0.build);
        }
    }
    Ok(None)
}

fn nothing_to_build(which: &str) -> CommandError {
    CommandError::new(Code::NotFound, format!("{which} no `build` in its manifest"))
}

fn is_supported() -> Result<(), CommandError> {
    confine::is_supported().map(drop).map_err(|Unconfined { why, advice }| {
        CommandError::new(Code::Untrusted, why).hint(advice).hint(
            "`mu build --no-sandbox` runs builds with all of your rights: do that only if you trust them like your own programs",
        )
    })
}

/// The packages that the build of one sees: everything that it depends on.
fn dependencies<'lock>(lock: &'lock Lockfile, id: &PackageId) -> Vec<&'lock LockedPackage> {
    let ids = reachable(lock, id);
    ids.iter().flat_map(|id| lock.find(id)).filter(|other| other.id != *id).collect()
}

/// Builds one package; `results` has what was built of its dependencies.
fn build_one(
    session: &Session,
    lock: &Lockfile,
    one: &Buildable<'_>,
    results: &BTreeMap<PackageId, Digest>,
    request: &BuildRequest,
) -> Result<(BuiltPackage, Digest), CommandError> {
    let Buildable { package, stored, build } = one;
    let mut digests = BTreeMap::new();
    let mut folders = BTreeMap::new();
    // Of a dependency, it sees what was built of that in this run. One whose build is not trusted has made nothing, and
    // is seen as its author has published it.
    for other in dependencies(lock, &package.id) {
        let Some(digest) = results.get(&other.id).copied().or(other.installed_digest()) else {
            continue;
        };
        digests.insert(other.id.to_string(), digest);
        folders.insert(folder_of(&other.id), session.store.tree_path(&digest));
    }
    let environment = build_environment(session, package, build)?;
    let confined = !request.no_sandbox;
    let key = build_key(&stored.digest, &digests, build, &environment, confined)?;
    let work = Work::begin(&session.events, format!("{} {}", package.id, package.version));
    let prepared = Prepared {
        session,
        package,
        build,
        stored,
        dependencies: &folders,
        environment: &environment,
        key: &key,
        confined,
    };
    let made = prepared.make(request.check)?;
    drop(work);
    let built = BuiltPackage {
        id: package.id.clone(),
        version: package.version.clone(),
        digest: stored.digest.to_string(),
        built: made.digest.to_string(),
        key,
        command: build.command.clone(),
        reused: made.reused,
        checked: request.check,
        log: made.log,
    };
    Ok((built, made.digest))
}

/// Installs what was built, and records it in the lock.
fn place(
    session: &Session,
    previous: Arc<Lockfile>,
    results: &BTreeMap<PackageId, Digest>,
) -> Result<(), CommandError> {
    let mut lock = Lockfile::clone(&previous);
    for package in &mut lock.packages {
        if let Some(digest) = results.get(&package.id) {
            package.built = Some(*digest);
        }
    }
    // Mu.lock has the digest of what was made. So `--locked` on another machine finds a build that is not reproducible.
    if session.options.locked && lock != *previous {
        let message = "what was built is not what Mu.lock says, and --locked forbids changing it";
        return Err(CommandError::new(Code::LockOutdated, message)
            .hint("run `mu build` without --locked, and commit Mu.lock")
            .hint("`mu build --check` shows whether the builds are reproducible"));
    }
    let requirements = names::collect_looked_up(session, previous.extra.clone())?;
    let resolved = Resolved { lock: Arc::new(lock), previous, ..Resolved::default() };
    install(session, &requirements, resolved, &[], false)?;
    Ok(())
}

/// The variables that a build gets, except for those that name its own folders.
fn build_environment(
    session: &Session,
    package: &LockedPackage,
    build: &BuildRecipe,
) -> Result<BTreeMap<String, String>, CommandError> {
    let mut all = BTreeMap::new();
    // Not even with consent: a token would be for everything that the user may do there.
    if let Some(name) = build.env.iter().find(|name| is_token(name)) {
        let message = format!(
            "the build of `{}` {} wants the environment variable `{name}`, and mu never hands over its tokens",
            package.id, package.version
        );
        return Err(CommandError::new(Code::Untrusted, message)
            .hint("ask its author to take the variable out of `build: {env: […]}` in its manifest")
            .with_details(serde_json::json!({ "id": package.id.to_string(), "version": package.version, "variable": name })));
    }
    for name in &build.env {
        let value = session.environment.variables.get(name).ok_or_else(|| {
            let message = format!(
                "the build of `{}` needs the environment variable `{name}`, which is not set",
                package.id
            );
            CommandError::new(Code::Usage, message)
        })?;
        all.insert(name.clone(), value.clone());
    }
    let fixed = [
        ("PATH", path(session)),
        ("LC_ALL", "C".to_owned()),
        ("TZ", "UTC".to_owned()),
        ("SOURCE_DATE_EPOCH", EPOCH.to_string()),
    ];
    // After the others, so that a manifest that names one of these does not get the user's.
    all.extend(fixed.map(|(name, value)| (name.to_owned(), value)));
    Ok(all)
}

/// Whether a variable has a token of mu's. Not all systems tell letters from their capitals in these names.
fn is_token(name: &str) -> bool {
    name.to_ascii_uppercase().starts_with(TOKEN_PREFIX)
}

/// The folders of the user's path that builds can read; the usual ones, if there are none.
fn path(session: &Session) -> String {
    let known = session.environment.variables.get("PATH").map(String::as_str).unwrap_or_default();
    let is_system = |folder: &&str| SYSTEM.iter().any(|one| Path::new(folder).starts_with(one));
    let folders: Vec<&str> = known.split(':').filter(is_system).collect();
    if folders.is_empty() { "/usr/local/bin:/usr/bin:/bin".to_owned() } else { folders.join(":") }
}

/// The key of a build.
fn build_key(
    digest: &Digest,
    dependencies: &BTreeMap<String, Digest>,
    build: &BuildRecipe,
    environment: &BTreeMap<String, String>,
    confined: bool,
) -> Result<String, CommandError> {
    // The key is the hash of a text, which has a line for everything that the result depends on:
    //
    //     mu-build 1
    //     tree DIGEST
    //     dependency (ID, DIGEST)
    //     command [...]
    //
    // The first line changes with the meaning of the others, so that older results are not found.
    let mut text = format!("mu-build 1\ntree {digest}\n");
    let mut add = |word: &str, value: &dyn std::fmt::Debug| {
        // Quoted, so that no value looks like another line.
        writeln!(text, "{word} {value:?}").expect("a string takes everything");
    };
    for (id, digest) in dependencies {
        add("dependency", &(id, digest.to_string()));
    }
    add("command", &build.command);
    add("outputs", &build.outputs);
    for variable in environment {
        add("variable", &variable);
    }
    add("machine", &(std::env::consts::OS, std::env::consts::ARCH));
    add("confined", &confined);
    // Of the system, only the programs that the manifest names count, by their content: all of it would change every
    // day.
    for tool in &build.tools {
        let path = find(tool, environment.get("PATH").map(String::as_str).unwrap_or_default());
        let path = path.ok_or_else(|| {
            let message = format!("the build runs `{tool}`, which is not on this machine");
            CommandError::new(Code::NotFound, message)
                .hint("install it in a folder of the system, such as /usr/local/bin: builds see no other programs")
        })?;
        add("tool", &(tool, hash_file(&path)?.0.to_string()));
    }
    Ok(FileDigest::from_bytes(Sha256::digest(text).into()).to_string())
}

fn find(tool: &str, path: &str) -> Option<PathBuf> {
    path.split(':').map(|folder| Path::new(folder).join(tool)).find(|path| path.is_file())
}
