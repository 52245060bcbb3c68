//! What the tools of other ecosystems have in common: what is locked for a dependency, its tag, and files that mu wrote.

use std::collections::BTreeSet;
use std::path::Path;

use crate::fs;
use crate::index::Candidate;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::fetch::used_instead;
use crate::ops::apply::install::install;
use crate::ops::explain::failure::unavailable;
use crate::ops::solve::names;
use crate::ops::solve::resolve::resolve;
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{Defaults, Reference};
use crate::select::Update;

/// Installs what the workspace needs.
///
/// # Errors
///
/// As [`install`].
pub(super) fn prepared(session: &Session, dry_run: bool) -> Result<Outcome, CommandError> {
    let extra = session.lockfile()?.unwrap_or_default().extra.clone();
    let requirements = names::collect(session, extra)?;
    let resolved = resolve(session, &requirements, Update::Nothing)?;
    install(session, &requirements, resolved, &[], dry_run)
}

/// The locked package of the dependency `reference` in the manifest of `by`, which is in the folder `from`, and its place in the
/// lock.
pub(super) fn locked<'lock>(
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
///
/// # Errors
///
/// When the registry cannot be asked.
pub(super) fn tag_of(session: &Session, package: &LockedPackage) -> Result<String, CommandError> {
    if let Some(tag) = &package.reference {
        return Ok(tag.clone());
    }
    let id = used_instead(session, &package.id);
    let provider = session.index().providers().get(&package.source.provider);
    // An id alone does not say that its host is an OCI registry.
    if provider.is_ok_and(|provider| provider.facts().is_oci)
        && let Ok(reference) = Reference::parse(&format!("oci://{id}"))
    {
        session.index().declare(&id, &reference, &session.workspace.root);
    }
    let failed = |error| unavailable(session, error);
    let releases = session.index().published(&id).map_err(failed)?;
    let version = package.parsed_version();
    let at = version.and_then(|version| releases.position(&version));
    let listed = match at {
        Some(at) => session.index().release(&id, Candidate::Release(at)).map_err(failed)?.1,
        None => return Ok(package.version.replace('+', "_")),
    };
    Ok(listed.reference.clone().unwrap_or_else(|| package.version.replace('+', "_")))
}

/// Refuses what is not a folder, because a checkout must not redirect what is written.
///
/// # Errors
///
/// When something else is there.
pub(super) fn refuse_link(folder: &Path) -> Result<(), CommandError> {
    match fs::symlink_metadata(folder) {
        Ok(metadata) if !metadata.is_dir() => {
            let message =
                format!("`{}` is not a folder, and mu writes through no links", folder.display());
            Err(CommandError::new(Code::Conflict, message))
        }
        _ => Ok(()),
    }
}

/// Resources for a cluster: a file for each, in one folder of the workspace, beside files of other people.
pub(super) struct Resources<'run> {
    session: &'run Session,
    /// The folder, in the root of the workspace.
    folder: &'static str,
    /// The first line of what mu writes there.
    header: String,
    dry_run: bool,
    written: BTreeSet<String>,
}

impl<'run> Resources<'run> {
    /// The resources that `mu vendor --for TOOL` writes into `folder`.
    ///
    /// # Errors
    ///
    /// When the folder is a link.
    pub(super) fn new(
        session: &'run Session,
        folder: &'static str,
        dry_run: bool,
    ) -> Result<Self, CommandError> {
        refuse_link(&session.workspace.root.join(folder))?;
        let header = format!("# Written by `mu vendor --for {folder}`; do not edit.\n");
        Ok(Self { session, folder, header, dry_run, written: BTreeSet::new() })
    }

    /// The file of the resource `name`, seen from the root of the workspace.
    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}.yaml", self.folder)
    }

    /// Refuses to write a file that somebody else wrote.
    ///
    /// # Errors
    ///
    /// When there is such a file.
    pub(super) fn check(&self, file: &str) -> Result<(), CommandError> {
        let path = self.session.workspace.root.join(file);
        match fs::read_text_if_there(&path)? {
            Some(before) if !before.starts_with(&self.header) => {
                let message = format!("`{}` was not written by mu", path.display());
                Err(CommandError::new(Code::Conflict, message).hint("move it away"))
            }
            _ => Ok(()),
        }
    }

    /// Writes a file; returns whether it was not there before, or was another one.
    ///
    /// # Errors
    ///
    /// When somebody else wrote it, or it cannot be written.
    pub(super) fn write(&mut self, file: &str, text: &str) -> Result<bool, CommandError> {
        self.check(file)?;
        let path = self.session.workspace.root.join(file);
        let text = format!("{}{text}", self.header);
        let is_changed = fs::read_text_if_there(&path)?.as_deref() != Some(&text);
        if is_changed && !self.dry_run {
            fs::create_folder(&self.session.workspace.root.join(self.folder))?;
            fs::write_atomic(&path, text.as_bytes())?;
        }
        self.written.insert(file.to_owned());
        Ok(is_changed)
    }

    /// Removes what mu wrote for packages that are no longer locked.
    ///
    /// # Errors
    ///
    /// When it cannot be removed.
    pub(super) fn remove_others(self) -> Result<Vec<String>, CommandError> {
        let mut removed = Vec::new();
        let root = &self.session.workspace.root;
        for entry in fs::entries_if_there(&root.join(self.folder))? {
            let name = entry.file_name();
            let Some(file) = name.to_str().map(|name| format!("{}/{name}", self.folder)) else {
                continue;
            };
            if self.written.contains(&file) || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            let is_ours = fs::read_text_if_there(&entry.path())
                .is_ok_and(|text| text.is_some_and(|text| text.starts_with(&self.header)));
            if is_ours {
                if !self.dry_run {
                    fs::remove_file(&entry.path())?;
                }
                removed.push(file);
            }
        }
        removed.sort();
        Ok(removed)
    }
}

/// Lines of YAML: each is what comes before a value, and the value, which is quoted where it has to be.
pub(super) fn lines(lines: &[(&str, &str)]) -> String {
    let print = |text: &str| match text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-./_".contains(letter))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text)
    {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    };
    lines.iter().map(|(key, value)| format!("{key}{}\n", print(value))).collect()
}
