//! `vendor --for kcl`: puts the modules that the workspace's KCL modules need where KCL looks for them: into `vendor`, with a
//! `kcl.mod.lock`.
//!
//! KCL reads every `kcl.mod` again and chooses by itself. Where a `kcl.mod` names another version than Mu.lock, mu says so.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use mu_formats::kcl::{self, Locked, ModuleRequirement, Origin};
use mu_provider::{Folder, InnerPath, Kind, Mode, OwnPath};
use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::LockedPackage;
use crate::ops::apply::fetch::content_of;
use crate::ops::requirements::requester::Requester;
use crate::ops::session::source::relative;
use crate::ops::vendor::{WrittenFiles, chosen, locked, prepared, registry_tag};
use crate::ops::{Code, CommandError, Outcome, Session, vendor};
use crate::packs::hash_folder;
use crate::reference::{Defaults, Version};
use crate::workspace::Member;
use crate::{formats, fs};

/// Where KCL looks, beside `kcl.mod`.
const FOLDER: OwnPath = InnerPath::own("vendor");

/// The name of KCL's lock.
pub const LOCK_NAME: &str = kcl::LOCK;

/// The lock of KCL, beside `kcl.mod`.
const LOCK: OwnPath = InnerPath::own(LOCK_NAME);

/// What a folder is called while it is filled.
const STAGED: &str = ".mu-";

/// What `mu vendor --for kcl` wrote.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VendoredModules {
    /// The KCL modules of the workspace.
    pub modules: Vec<VendoredModule>,
}

impl WrittenFiles for VendoredModules {
    fn is_unchanged(&self) -> bool {
        self.modules.iter().all(|module| {
            !module.lock_changed
                && module.removed.is_empty()
                && module.folders.iter().all(|folder| !folder.changed)
        })
    }
}

/// The dependencies of one KCL module of the workspace, as KCL has them.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VendoredModule {
    /// Its name.
    pub name: String,
    /// Its folder, seen from the root of the workspace.
    pub folder: String,
    /// Whether its `kcl.mod.lock` has changed.
    pub lock_changed: bool,
    /// The folders in `vendor`.
    pub folders: Vec<VendoredFolder>,
    /// The folders that were removed from `vendor`, because nothing needs them any more.
    pub removed: Vec<String>,
    /// Where a `kcl.mod` names another version than Mu.lock.
    pub differing: Vec<Differing>,
}

/// A folder in `vendor`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VendoredFolder {
    /// The package.
    pub id: String,
    /// Its version in Mu.lock.
    pub version: String,
    /// The name of the folder.
    pub folder: String,
    /// Whether it was not there before, or had other content.
    pub changed: bool,
}

/// A `kcl.mod` that names another version than Mu.lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Differing {
    /// The module whose `kcl.mod` it is.
    pub by: String,
    /// Whether it is the workspace's own, so that `mu pin` can change it.
    pub own: bool,
    /// The module that it names.
    pub name: String,
    /// The version that it names.
    pub named: String,
    /// The version in Mu.lock.
    pub locked: String,
}

/// Installs what the workspace needs, and writes `vendor` and `kcl.mod.lock` of each of its KCL modules, or of those called `packages`.
/// Also returns how the packs changed.
pub fn vendor_for_kcl(
    session: &Session,
    packages: &[String],
    mode: vendor::VendorMode,
) -> Result<(Outcome, VendoredModules), CommandError> {
    let is_module =
        |one: &Member| one.manifest_path.file_name().is_some_and(|name| name == kcl::MODULE);
    let members = chosen(session, packages, "KCL module", is_module)?;
    if members.is_empty() {
        let root = session.workspace.root.display();
        let message = format!("no package of the workspace `{root}` is a KCL module");
        return Err(CommandError::new(Code::NotFound, message)
            .hint("this command fills `vendor` beside a `kcl.mod`")
            .hint("modules in folders below the root count with `formats: [kcl]` in `.mu/workspace.yaml`"));
    }
    let outcome = prepared(session, mode)?;
    let _store = session.use_store()?;
    let run = Run { session, outcome: &outcome, mode };
    let modules = members.into_iter().map(|member| run.module(member)).collect::<Result<_, _>>()?;
    Ok((outcome, VendoredModules { modules }))
}

struct Run<'run> {
    session: &'run Session,
    outcome: &'run Outcome,
    mode: vendor::VendorMode,
}

/// A `kcl.mod` whose dependencies are still to be followed.
struct Source {
    needs: Vec<ModuleRequirement>,
    folder: PathBuf,
    defaults: Defaults,
    /// What Mu.lock calls its package.
    by: String,
    /// For people.
    name: String,
    is_own: bool,
}

/// A dependency, found in Mu.lock.
struct Found<'run> {
    index: usize,
    package: &'run LockedPackage,
    locked: Locked,
    /// Its folder in `vendor`, if it has one there.
    folder: Option<InnerPath>,
}

impl<'run> Run<'run> {
    /// Fills `vendor` and the lock of one module of the workspace.
    fn module(&self, member: &Member) -> Result<VendoredModule, CommandError> {
        let around = self.session.workspace.folder_of(member)?;
        let mut vendored = VendoredModule {
            name: member.manifest.name.name().to_string(),
            folder: relative(&self.session.workspace.root, &member.folder),
            ..VendoredModule::default()
        };
        // All that KCL will look for: it reads the `kcl.mod` of each module again, and follows it.
        let mut found = self.reached(member, &mut vendored.differing)?;
        for one in found.values_mut() {
            let Some(name) = &one.folder else { continue };
            let target = FOLDER.join(name);
            let changed = self.fill(one, &around, &target)?;
            // KCL's lock has sums of what comes from registries alone.
            if matches!(one.locked.origin, Origin::Oci { .. }) {
                let filled = || around.path().join(&target);
                one.locked.sum = sum_of(&self.content(one.index).unwrap_or_else(filled));
            }
            let (id, version) = (one.package.id.to_string(), one.package.version.clone());
            vendored.folders.push(VendoredFolder {
                id,
                version,
                folder: name.to_string(),
                changed,
            });
        }
        // The lock is written last: after a run that was killed it differs, so the next run goes on.
        let before = around.read_text(&LOCK.into())?;
        let kept: BTreeSet<InnerPath> =
            found.values().filter_map(|one| one.folder.clone()).collect();
        let modules: Vec<Locked> = found.into_values().map(|one| one.locked).collect();
        let text = kcl::lock(&modules);
        vendored.removed = self.remove_others(&around, before.as_deref(), &kept, &modules)?;
        // A plan for what is not on this machine yet has no sums, so its lock cannot be compared.
        let is_known = modules.iter().all(|one| {
            one.sum.is_some() || !matches!(one.origin, Origin::Oci { .. }) || !self.mode.is_dry()
        });
        vendored.lock_changed = match &before {
            Some(before) if is_known => *before != text,
            Some(_) => vendored.folders.iter().any(|one| one.changed),
            None => !modules.is_empty(),
        };
        if vendored.lock_changed && !self.mode.is_dry() {
            around.write(&LOCK.into(), text.as_bytes())?;
        }
        Ok(vendored)
    }

    /// Everything that a module of the workspace needs, by the names under which KCL imports it.
    fn reached(
        &self,
        member: &Member,
        differing: &mut Vec<Differing>,
    ) -> Result<BTreeMap<String, Found<'run>>, CommandError> {
        let mut found: BTreeMap<String, Found<'run>> = BTreeMap::new();
        // From the module itself outwards. Each package is followed once, so circles end.
        let mut queue = VecDeque::from([Source {
            needs: formats::kcls_needs(&member.manifest_path, true)?,
            folder: member.folder.clone(),
            defaults: member.defaults.clone(),
            by: Requester::from_member(member).as_str().to_owned(),
            name: member.manifest.name.name().to_string(),
            is_own: true,
        }]);
        let mut seen = BTreeSet::new();
        while let Some(source) = queue.pop_front() {
            for need in &source.needs {
                let Source { folder, defaults, by, .. } = &source;
                let lock = &self.outcome.lock;
                let used = locked(self.session, lock, &need.reference, defaults, folder, by);
                let Some((index, package)) = used else { continue };
                note_differing(&source, need, package, differing);
                // KCL imports by name alone, so one name must be one package for all of them.
                if let Some(known) = found.get(&need.name) {
                    if known.index != index {
                        return Err(two_called(&need.name, known.package, package));
                    }
                    continue;
                }
                let one = self.found(need, index, package)?;
                found.insert(need.name.clone(), one);
                if seen.insert(index) {
                    queue.push_back(self.source(index, package)?);
                }
            }
        }
        Ok(found)
    }

    /// The `kcl.mod` of a locked package.
    fn source(&self, index: usize, package: &LockedPackage) -> Result<Source, CommandError> {
        let is_own = package.source.is_authored_folder();
        let folder = self.content(index);
        let needs = match &folder {
            Some(folder) => formats::kcls_needs(&folder.join(kcl::MODULE), is_own)?,
            // What is not on this machine yet is only planned: by the names that packages have in Mu.lock.
            None => package.dependencies.iter().filter_map(need_of).collect(),
        };
        Ok(Source {
            needs,
            folder: folder.unwrap_or_default(),
            defaults: self.session.reference_defaults(),
            by: package.id.to_string(),
            name: format!("{} {}", package.id.name().leaf(), package.version),
            is_own,
        })
    }

    /// A dependency as KCL locks it; its sum is not known yet.
    fn found(
        &self,
        need: &ModuleRequirement,
        index: usize,
        package: &'run LockedPackage,
    ) -> Result<Found<'run>, CommandError> {
        let head = match self.content(index) {
            Some(folder) => formats::load_package_head(&folder)?,
            None => None,
        };
        let own = head.as_ref().and_then(|head| head.name.as_ref()).map(|name| name.name().leaf());
        let module = own.unwrap_or(package.id.name().leaf()).to_owned();
        let written = |text: &String| need.written.as_ref().is_some_and(|named| named == text);
        // The three kinds of entries in KCL's lock. Of a repository, it says what `kcl.mod` says; where that says nothing,
        // the commit, which cannot move.
        let (version, origin) = if package.source.is_authored_folder() {
            (package.version.clone(), Origin::Folder)
        } else if let Some(url) = need.git.clone().or_else(|| git_of(package)) {
            let (kind, revision) = match (&need.written, &package.reference, &package.commit) {
                (Some(text), _, _) if need.git.is_some() => (need.revision, text.clone()),
                (_, Some(name), _) if written(name) => ("tag", name.clone()),
                (_, _, commit) => ("commit", commit.as_deref().unwrap_or_default().to_owned()),
            };
            // In `kcl.mod` the key is `tag`.
            let kind = if kind == "tag" { "git_tag" } else { kind };
            let package_in = need.package.clone();
            (package.version.clone(), Origin::Git { url, kind, revision, package: package_in })
        } else {
            let tag = registry_tag(self.session, package)?;
            let host = need.reference.base().map(|base| base.as_str().trim_end_matches('/'));
            let registry = host.unwrap_or(package.id.base().host_port()).to_owned();
            let repository = need.reference.name().to_string();
            (tag.clone(), Origin::Oci { registry, repository, tag })
        };
        let locked = Locked { name: need.name.clone(), module, version, sum: None, origin };
        let folder = locked.folder().map_err(|error| {
            let message = format!("a KCL module cannot have a folder: {error}");
            CommandError::new(Code::Manifest, message)
                .hint(format!("`{}` has it in a `kcl.mod`", package.id))
        })?;
        Ok(Found { index, package, locked, folder })
    }

    /// The folder with the files of a locked package, if they are on this machine.
    fn content(&self, index: usize) -> Option<PathBuf> {
        vendor::installed_folder(self.session, self.outcome, index)
    }

    /// Puts the files of a package into the folder `target`, unless they are there already; returns whether they were not.
    fn fill(
        &self,
        one: &Found<'_>,
        around: &Folder,
        target: &InnerPath,
    ) -> Result<bool, CommandError> {
        // KCL takes whatever is in the folder, so its content is compared, and not its name alone.
        let expected = one.package.installed_digest();
        if is_folder(around, target)?
            && expected.is_some()
            && content_of(&around.path().join(target)) == expected
        {
            return Ok(false);
        }
        if self.mode.is_dry() {
            return Ok(true);
        }
        let LockedPackage { id, version, .. } = one.package;
        let missing = || {
            let message = format!("the files of `{id}` {version} are not on this machine");
            CommandError::new(Code::NotFound, message)
        };
        let from = self.content(one.index).ok_or_else(missing)?;
        // Filled beside its place, and moved there when it is whole: a run that is killed leaves no half of a module
        // where KCL looks.
        let staged = target.beside(&format!("{STAGED}{}", target.leaf()));
        let staged = staged.map_err(|error| CommandError::from_error(Code::Manifest, error))?;
        if is_folder(around, &staged)? {
            around.remove(&staged)?;
        }
        let filled = around.make_inner(&staged)?;
        copy(&from, &filled)?;
        if content_of(filled.path()) != expected {
            around.remove(&staged)?;
            let message = format!("the files of `{id}` {version} changed while they were copied");
            return Err(CommandError::new(Code::Integrity, message));
        }
        around.remove(target)?;
        around.move_inside(&staged, target)?;
        Ok(true)
    }

    /// Removes folders of other versions, and of modules that the lock of KCL had before.
    fn remove_others(
        &self,
        around: &Folder,
        before: Option<&str>,
        kept: &BTreeSet<InnerPath>,
        modules: &[Locked],
    ) -> Result<Vec<String>, CommandError> {
        if !is_folder(around, &FOLDER.into())? {
            return Ok(Vec::new());
        }
        let former: BTreeSet<InnerPath> = before.map(kcl::folders).into_iter().flatten().collect();
        // `k8s_1.29.0` is an old version of the module `k8s`. Whatever else a person has put there stays.
        let is_of = |name: &str| {
            modules.iter().any(|module| {
                let rest = name.strip_prefix(&*module.name).and_then(|rest| rest.strip_prefix('_'));
                rest.is_some_and(|version| Version::parse_lenient(version).is_ok())
            })
        };
        let mut removed = Vec::new();
        for (name, kind) in around.inner(&FOLDER.into())?.entries()? {
            // What has another name is nobody's module.
            let Ok(place) = InnerPath::name(&name) else { continue };
            let is_kept = kept.iter().any(|one| one.is_in(&place));
            if kind == Kind::Folder && !is_kept && (former.contains(&place) || is_of(&name)) {
                if !self.mode.is_dry() {
                    around.remove(&FOLDER.join(&place))?;
                }
                removed.push(name);
            }
        }
        removed.sort();
        Ok(removed)
    }
}

/// The URL of a locked package's repository, if it is one.
fn git_of(package: &LockedPackage) -> Option<String> {
    package.commit.as_ref().map(|_| package.source.place.clone())
}

/// The dependency of a package that is only planned.
fn need_of(id: &crate::reference::PackageId) -> Option<ModuleRequirement> {
    Some(ModuleRequirement {
        name: id.name().leaf().to_owned(),
        reference: crate::reference::Reference::parse(&format!("https://{id}")).ok()?,
        written: None,
        git: None,
        revision: "commit",
        package: None,
    })
}

fn note_differing(
    source: &Source,
    need: &ModuleRequirement,
    package: &LockedPackage,
    differing: &mut Vec<Differing>,
) {
    let named = need.written.as_deref().unwrap_or_default();
    let locked = package.version.as_str();
    let read = |text: &str| Version::parse_lenient(text).ok();
    let is_other = read(named).is_some() && read(named) != read(locked);
    if is_other && need.git.is_none() && !package.source.is_authored_folder() {
        differing.push(Differing {
            by: source.name.clone(),
            own: source.is_own,
            name: need.name.clone(),
            named: named.to_owned(),
            locked: locked.to_owned(),
        });
    }
}

fn two_called(name: &str, first: &LockedPackage, second: &LockedPackage) -> CommandError {
    let [first, second] = [first, second].map(|one| format!("`{}` {}", one.id, one.version));
    let message = format!("two modules are called `{name}`: {first} and {second}");
    CommandError::new(Code::Conflict, message)
        .hint("KCL knows modules by name alone, so it can use only one of them")
}

/// Whether there is a folder; an error if something else is there, such as a link.
fn is_folder(around: &Folder, path: &InnerPath) -> Result<bool, CommandError> {
    match around.look_at(path)? {
        None => Ok(false),
        // It says what else is there.
        Some(_) => Ok(around.inner(path).map(|_| true)?),
    }
}

/// Copies a folder, without its links leading anywhere else than before.
fn copy(from: &Path, to: &Folder) -> Result<(), CommandError> {
    let tree = hash_folder(from, &HashSet::new())
        .map_err(|error| CommandError::from_error(Code::Io, error))?;
    for entry in tree.entries() {
        let source = from.join(&entry.path);
        let target = InnerPath::parse(&entry.path)
            .map_err(|error| CommandError::from_error(Code::Integrity, error))?;
        let content = match entry.mode {
            Mode::Symlink => fs::read_link(&source)?.to_string_lossy().into_owned().into_bytes(),
            Mode::File | Mode::Executable => fs::read(&source)?,
        };
        to.put(&target, entry.mode, &content)?;
    }
    Ok(())
}

/// KCL's sum of a folder; `None` if it cannot be read.
fn sum_of(folder: &Path) -> Option<String> {
    let mut files = BTreeMap::new();
    add_files(folder, "", &mut files)?;
    Some(kcl::sum(&files))
}

fn add_files(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Option<()> {
    for entry in fs::entries(folder).ok()? {
        let path = format!("{prefix}{}", entry.file_name().to_str()?);
        if entry.file_type().ok()?.is_dir() {
            add_files(&entry.path(), &format!("{path}/"), files)?;
        } else if kcl::is_summed(&path) {
            files.insert(path, fs::read(&entry.path()).ok()?);
        }
    }
    Some(())
}
