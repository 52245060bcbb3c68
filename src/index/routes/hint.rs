//! What references say about the places of packages, in addition to their ids.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustc_hash::FxHashMap;

use crate::reference::{PackageId, Protocol, Reference};
use mu_provider::threads::lock;

/// Hosts that serve Git repositories and no hub.
pub(crate) const GIT_HOSTS: [&str; 4] =
    ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org"];

/// What references say about packages.
#[derive(Debug, Default)]
pub(in crate::index) struct Hints {
    stated: Mutex<FxHashMap<PackageId, Hint>>,
    /// What the lock says, where no reference says anything.
    locked: Mutex<FxHashMap<PackageId, Hint>>,
}

/// What a reference says about the place of a package, in addition to its id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::index) struct Hint {
    pub(super) protocol: Option<Protocol>,
    pub(super) user: Option<String>,
    /// The name as written, `.git` marks kept.
    pub(super) path: Option<String>,
    pub(super) folder: Option<PathBuf>,
}

impl Hint {
    /// What a reference says; local folders are relative to `from`.
    fn read(reference: &Reference, from: &Path) -> Self {
        let marked = reference.path() != reference.name().as_str();
        let mut path = marked.then(|| reference.path().to_owned());
        // As for Git, `git@host:path` is below the home folder of whoever connects. On these hosts both are the same.
        let is_known = reference.base().is_some_and(|base| GIT_HOSTS.contains(&base.host_port()));
        if reference.is_scp() && !is_known {
            path = Some(format!("{HOME}{}", reference.path()));
        }
        Self {
            protocol: reference.protocol().cloned(),
            user: reference.user().map(str::to_owned),
            path,
            folder: reference.local().map(|path| crate::env::absolute(from, Path::new(path))),
        }
    }
}

impl Hints {
    /// What is known about a package.
    pub(in crate::index) fn hint_for(&self, id: &PackageId) -> Option<Hint> {
        let stated = lock(&self.stated).get(id).cloned();
        stated.or_else(|| lock(&self.locked).get(id).cloned())
    }

    /// Records the place of a package that the lock gives.
    pub(super) fn note_locked(&self, id: &PackageId, reference: &Reference) {
        let hint = Hint::read(reference, Path::new(""));
        lock(&self.locked).insert(id.clone(), hint);
    }

    /// Records the place of a package that `reference` gives; local folders are relative to `from`.
    pub(super) fn note(&self, id: &PackageId, reference: &Reference, from: &Path) {
        let hint = Hint::read(reference, from);
        if hint == Hint::default() {
            return;
        }
        let mut hints = lock(&self.stated);
        let known = hints.entry(id.clone()).or_default();
        // The reference that says the most wins, in whatever order they come.
        if rank(&hint) > rank(known) {
            *known = hint;
        }
    }

    /// The reference that leads to `id` again, if its id alone does not.
    pub(in crate::index) fn written(&self, id: &PackageId) -> Option<String> {
        let hint = self.hint_for(id)?;
        if let Some(folder) = &hint.folder {
            return Some(folder.display().to_string());
        }
        let user = hint.user.map(|user| format!("{user}@")).unwrap_or_default();
        let path = hint.path.unwrap_or_else(|| id.name_str().to_owned());
        let protocol = match hint.protocol {
            // The place of a local repository is complete.
            Some(protocol) if protocol.is_file() => {
                return Some(format!("{protocol}:///{path}"));
            }
            // Below the home folder, as Git writes it.
            Some(_) if path.starts_with(HOME) && !user.is_empty() => {
                let base = id.base();
                return Some(format!("{user}{}:{}", base.host_port(), &path[HOME.len()..]));
            }
            Some(protocol) => format!("{protocol}://"),
            None => String::new(),
        };
        Some(format!("{protocol}{user}{}{path}", id.base()))
    }

    /// Records that `id` is where `from` is: a dependency without a base is reached in the same way as the
    /// package that declares it, and comes from the same repository if it is in it.
    pub(in crate::index) fn inherit(&self, id: &PackageId, from: &PackageId) {
        let Some(known) = self.hint_for(from).filter(|_| id.base() == from.base()) else { return };
        let path = known.path.as_deref().and_then(|path| {
            let is_file = known.protocol.as_ref().is_some_and(Protocol::is_file);
            let is_beside = is_file && id.name().namespace() == from.name().namespace();
            let folder = path.rsplit_once('/').filter(|_| is_beside).map(|(folder, _)| folder);
            let beside = || folder.map(|folder| format!("{folder}/{}", id.name().leaf()));
            marked_alike(id.name_str(), path).or_else(beside)
        });
        let hint = Hint { protocol: known.protocol, user: known.user, path, folder: None };
        if hint != Hint::default() {
            lock(&self.stated).entry(id.clone()).or_insert(hint);
        }
    }
}

/// The beginning of a path below the home folder of whoever connects.
pub(super) const HOME: &str = "~/";

/// `name` with the `.git` mark of `path`, if it is in the same repository.
fn marked_alike(name: &str, path: &str) -> Option<String> {
    if let Some(path) = path.strip_prefix(HOME) {
        return marked_alike(name, path).map(|path| format!("{HOME}{path}"));
    }
    let mut repository = String::new();
    for segment in path.split('/') {
        let (plain, is_marked) = match segment.strip_suffix(".git") {
            Some(plain) => (plain, true),
            None => (segment, false),
        };
        repository.push_str(plain);
        if is_marked {
            let rest = name.strip_prefix(&repository)?;
            let is_inside = rest.is_empty() || rest.starts_with('/');
            return is_inside.then(|| format!("{repository}.git{rest}"));
        }
        repository.push('/');
    }
    None
}

/// The amount of information in a hint.
fn rank(hint: &Hint) -> (bool, bool, bool, String) {
    (
        hint.folder.is_some(),
        hint.protocol
            .as_ref()
            .is_some_and(|protocol| !matches!(protocol, Protocol::Https | Protocol::Http)),
        hint.path.is_some(),
        // Any order works among equals, as long as it is always the same.
        format!("{:?}{:?}{:?}{:?}", hint.protocol, hint.user, hint.path, hint.folder),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_the_same_repository_has_its_mark() {
        for (name, path, expected) in [
            ("grp/mono/libs/b", "grp/mono.git/libs/a", Some("grp/mono.git/libs/b")),
            ("grp/mono", "grp/mono.git/libs/a", Some("grp/mono.git")),
            ("grp/monolith", "grp/mono.git", None),
            ("grp/b", "grp/mono.git", None),
            ("grp/mono/b", "grp/mono/a", None),
        ] {
            assert_eq!(marked_alike(name, path).as_deref(), expected, "{name} {path}");
        }
    }
}
