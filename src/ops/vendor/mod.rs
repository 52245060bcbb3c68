//! `vendor`: keeps packs as plain files that are committed, so that a checkout needs no network.
//!
//! `packs/vendored.json` records this, so every later command that installs keeps packs that way. `vendor --for TOOL`
//! writes files for another tool instead; `helm/`, `kcl.rs` and `cluster.rs` do that. What these have in common is
//! here: what is locked for a dependency, its tag, and files that mu wrote.

pub mod cluster;
mod helm;
pub mod kcl;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mu_provider::{Folder, InnerPath, Kind, OwnPath, PlaceKind};

use crate::contents::Owned;
use crate::contents::rules::{OF_GIT, Rules};
use crate::fs::FileError;
use crate::index::Candidate;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::fetch::{drop_vouchers, fetch, folder_here, keep_vouchers, used_instead};
use crate::ops::apply::{install, patched};
use crate::ops::explain::unavailable_error;
use crate::ops::session::installed::named;
use crate::ops::session::locked::target;
use crate::ops::solve::question::Question;
use crate::ops::solve::{names, resolve};
use crate::ops::{Code, CommandError, Outcome, Session, Warning};
use crate::reference::{Defaults, Reference};
use crate::workspace::Member;

pub use mu_formats::helm::CHARTS_FOLDER;

pub use self::helm::{Carried, Vendored, VendoredArchive, VendoredChart, vendor_for_helm};

/// Installs what the workspace needs, as files to commit.
/// With `archives`, those of packages under rules are kept beside them.
pub fn vendor(session: &Session, dry_run: bool, archives: bool) -> Result<Outcome, CommandError> {
    let extra = session.lockfile()?.unwrap_or_default().extra.clone();
    let requirements = Rc::new(names::collect_looked_up(session, extra)?);
    let resolved = resolve(session, &Question::without_moves(Rc::clone(&requirements)))?;
    let packs = session.packs();
    let is_new = !dry_run && !packs.is_vendored();
    // Before anything is installed: packs that are vendored are made of files that Git can commit, and without a
    // `.gitignore`.
    if is_new {
        let lock = session.lockfile()?.unwrap_or_default();
        packs.recognize(|| named(&lock))?;
        packs.mark_vendored()?;
    }
    let outcome = match install(session, &requirements, resolved, &[], dry_run) {
        Err(error) if is_new => {
            // Nothing is committed yet, so packs are installed as before.
            packs.unmark_vendored()?;
            return Err(error);
        }
        result => result?,
    };
    if !dry_run {
        keep_vouchers(session, &outcome.lock, archives)?;
    }
    if !dry_run && let Some(folder) = left_out(session, packs.path())? {
        session.events.warning(&Warning::PacksIgnored { folder });
    }
    Ok(outcome)
}

/// Installs packs from the store again, as files that are not committed.
pub fn stop_vendoring(session: &Session) -> Result<(), CommandError> {
    session.packs().unmark_vendored()?;
    Ok(drop_vouchers(&session.workspace.opened()?)?)
}

/// The folder of the packs, or the one around it, if Git ignores it; what is in the packs has rules of its own.
fn left_out(session: &Session, packs: &Path) -> Result<Option<PathBuf>, FileError> {
    let root = &session.workspace.root;
    let owned = Owned::around(root, &session.environment)?;
    let mut rules = Rules::for_content(OF_GIT, root, owned.top(), "", &mut Vec::new())?;
    for folder in [packs.parent().unwrap_or(root), packs] {
        if rules.leave_out(folder, true) {
            return Ok(Some(folder.to_owned()));
        }
        rules = rules.with_folder_inside(folder, &mut Vec::new())?;
    }
    Ok(None)
}

/// What is done about the files of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VendorMode {
    /// They are written.
    Write,
    /// Nothing is written. What is not on this machine is only planned.
    Plan,
    /// Nothing is written, but everything is compared: what is not on this machine is fetched into the store.
    Check,
}

impl VendorMode {
    /// Whether nothing is written into the workspace.
    fn is_dry(self) -> bool {
        self != Self::Write
    }
}

/// What was written for another tool.
pub trait WrittenFiles {
    /// Whether all of it was there before, and nothing else.
    fn is_unchanged(&self) -> bool;
}

/// Installs what the workspace needs.
fn prepared(session: &Session, mode: VendorMode) -> Result<Outcome, CommandError> {
    let extra = session.lockfile()?.unwrap_or_default().extra.clone();
    let requirements = Rc::new(names::collect_looked_up(session, extra)?);
    let mut resolved = resolve(session, &Question::without_moves(Rc::clone(&requirements)))?;
    // A check compares content, so everything has to be here: in the store, and not in the workspace.
    if mode == VendorMode::Check {
        requirements.declare(session);
        let _store = session.use_store()?;
        fetch(session, &mut resolved)?;
        patched::apply_patches(session, &mut resolved)?;
        if !resolved.is_lock_current() {
            let message = "Mu.lock does not follow from the manifests and folders that it is for";
            return Err(CommandError::new(Code::LockOutdated, message)
                .hint("run `mu get`, and commit Mu.lock"));
        }
    }
    install(session, &requirements, resolved, &[], mode.is_dry())
}

/// The packages of the workspace that are of some kind, or those that were named.
fn chosen<'session>(
    session: &'session Session,
    packages: &[String],
    kind: &str,
    is_one: impl Fn(&Member) -> bool,
) -> Result<Vec<&'session Member>, CommandError> {
    let members = &session.workspace.members;
    if packages.is_empty() {
        let is_here = |member: &&Member| is_one(member) && !member.is_left_out;
        return Ok(members.iter().filter(is_here).collect());
    }
    let mut chosen = BTreeSet::new();
    for name in packages {
        let index = target(session, Some(name), "mu vendor --for TOOL --package NAME")?;
        if !is_one(&members[index]) {
            let message = format!("`{name}` is not a {kind}");
            return Err(CommandError::new(Code::Usage, message));
        }
        chosen.insert(index);
    }
    Ok(chosen.into_iter().map(|index| &members[index]).collect())
}

/// As [`folder_here`], for a package of what a command has installed.
fn installed_folder(session: &Session, outcome: &Outcome, index: usize) -> Option<PathBuf> {
    folder_here(session, &outcome.lock, index, outcome.folders.get(&index))
}

/// Refuses a package that is patched, where the tool takes it from its registry.
fn refuse_patched(
    session: &Session,
    package: &LockedPackage,
    tool: &str,
) -> Result<(), CommandError> {
    if package.patch.is_none() {
        return Ok(());
    }
    let LockedPackage { id, version, .. } = package;
    let message = format!(
        "`{id}` {version} is patched, and {tool} installs it from its registry, without the patch"
    );
    let name = session.short_name(id);
    Err(CommandError::new(Code::Conflict, message)
        .hint(format!("drop the patch with `mu patch --drop {name}`"))
        .hint("or publish the patched package, and use that one"))
}

/// The locked package of the dependency `reference` in the manifest of `by`, which is in the folder `from`, and its place in the
/// lock.
fn locked<'lock>(
    session: &Session,
    lock: &'lock Lockfile,
    reference: &Reference,
    defaults: &Defaults,
    from: &Path,
    by: &str,
) -> Option<(usize, &'lock LockedPackage)> {
    let id = session.places.id_of(reference, defaults, from, &session.workspace);
    let used = lock.used_for(&id);
    let packages = lock.packages.iter().enumerate().filter(|(_, package)| package.id == *used);
    // If there are several majors, the one for this requirement.
    packages.max_by_key(|(_, package)| {
        let spec = reference.spec();
        package.requested.iter().any(|one| &*one.by == by && *one.spec == *spec.as_str())
    })
}

/// The tag that a locked package has in its registry.
///
/// Mu.lock has versions and digests, which is all that is needed to install. So a registry is asked, if that was not remembered.
fn registry_tag(session: &Session, package: &LockedPackage) -> Result<String, CommandError> {
    if let Some(tag) = &package.reference {
        return Ok(tag.clone());
    }
    let id = used_instead(session, &package.id);
    let provider = session.index().providers().get(&package.source.provider);
    // An id alone does not say that its host is an OCI registry.
    if provider.is_ok_and(|provider| provider.facts().kind == PlaceKind::OciRegistry)
        && let Ok(reference) = Reference::parse(&format!("oci://{id}"))
    {
        session.index().declare(&id, &reference, &session.workspace.root);
    }
    let failed = |error| unavailable_error(session, error);
    let releases = session.index().published(&id).map_err(failed)?;
    let version = package.parsed_version();
    let at = version.and_then(|version| releases.position_of_version(&version));
    let listed = match at {
        Some(at) => session.index().release(&id, Candidate::Release(at)).map_err(failed)?.1,
        // Tags cannot have a `+`, so the tools that push a version write `_`.
        None => return Ok(package.version.replace('+', "_")),
    };
    Ok(listed.reference.clone().unwrap_or_else(|| package.version.replace('+', "_")))
}

/// Resources for a cluster: a file for each, in one folder of the workspace, beside files of other people.
struct Resources {
    /// The root of the workspace.
    root: Folder,
    /// The folder, in the root.
    folder: OwnPath,
    /// The first line of what mu writes there.
    header: String,
    mode: VendorMode,
    written: BTreeSet<InnerPath>,
}

impl Resources {
    /// The resources that `mu vendor --for TOOL` writes into `folder`.
    fn new(
        session: &Session,
        folder: &'static str,
        mode: VendorMode,
    ) -> Result<Self, CommandError> {
        let header = format!("# Written by `mu vendor --for {folder}`; do not edit.\n");
        let (root, folder) = (session.workspace.opened()?, InnerPath::own(folder));
        if root.look_at(&folder.into())?.is_some() {
            root.inner(&folder.into())?;
        }
        Ok(Self { root, folder, header, mode, written: BTreeSet::new() })
    }

    /// The file of the resource `name`, seen from the root of the workspace.
    fn file(&self, name: &str) -> Result<InnerPath, CommandError> {
        let name = InnerPath::name(&format!("{name}.yaml"));
        let name = name.map_err(|error| CommandError::from_error(Code::Manifest, error))?;
        Ok(self.folder.join(&name))
    }

    /// Refuses to write a file that somebody else wrote.
    fn check(&self, file: &InnerPath) -> Result<(), CommandError> {
        match self.root.read_text(file)? {
            Some(before) if !before.starts_with(&self.header) => {
                let path = self.root.path().join(file);
                let message = format!("`{}` was not written by mu", path.display());
                Err(CommandError::new(Code::Conflict, message).hint("move it away"))
            }
            _ => Ok(()),
        }
    }

    /// Writes a file; returns whether it was not there before, or was another one.
    fn write(&mut self, file: &InnerPath, text: &str) -> Result<bool, CommandError> {
        self.check(file)?;
        let text = format!("{}{text}", self.header);
        let is_changed = self.root.read_text(file)?.as_deref() != Some(&text);
        if is_changed && !self.mode.is_dry() {
            self.root.write(file, text.as_bytes())?;
        }
        self.written.insert(file.clone());
        Ok(is_changed)
    }

    /// Removes what mu wrote for packages that are no longer locked.
    fn remove_others(self) -> Result<Vec<String>, CommandError> {
        let mut removed = Vec::new();
        if self.root.look_at(&self.folder.into())?.is_none() {
            return Ok(removed);
        }
        for (name, kind) in self.root.inner(&self.folder.into())?.entries()? {
            // What has another name is not mu's.
            let Ok(name) = InnerPath::name(&name) else { continue };
            let file = self.folder.join(&name);
            if self.written.contains(&file) || kind != Kind::File {
                continue;
            }
            // The folder belongs to other people, too. Only its first line says that a file is mu's.
            let is_ours = self
                .root
                .read_text(&file)
                .is_ok_and(|text| text.is_some_and(|text| text.starts_with(&self.header)));
            if is_ours {
                if !self.mode.is_dry() {
                    self.root.remove_file(&file)?;
                }
                removed.push(file.to_string());
            }
        }
        removed.sort();
        Ok(removed)
    }
}

/// Lines of YAML: each is what comes before a value, and the value, which is quoted where it has to be.
fn lines(lines: &[(&str, &str)]) -> String {
    // `1.10`, `yes` and `null` would be something else than text.
    let print = |text: &str| match text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-./_".contains(letter))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text)
    {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    };
    lines.iter().map(|(key, value)| format!("{key}{}\n", print(value))).collect()
}
