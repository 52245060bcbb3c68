//! Clones without `git`: mu fetches the history over its own connections, and libgit2 stores it and checks it out.
//!
//! Filters that the user's settings name are not run, so files in Git LFS stay pointers. Later, the clone is like any other.

use std::collections::BTreeMap;
use std::path::Path;

use git2::build::CheckoutBuilder;
use git2::{Oid, Reference, Repository, RepositoryInitOptions, SubmoduleUpdate};
use mu_provider::fs;
use mu_provider::{Commit, ErrorKind, Progress, ProviderError};

use super::{Beginning, WorkingCopies, no_tag, parse};
use crate::database::Database;
use crate::ref_name;
use crate::ref_name::TagName;
use crate::remote_url::RemoteUrl;
use crate::transport::Session;
use crate::wire::{Advertisement, Depth, FetchRequest};

/// How deep submodules may lie in submodules.
const DEEPEST: usize = 8;

/// How many commits a server is told about that are here.
const MOST_HAVES: usize = 64;

impl WorkingCopies {
    pub(super) fn clone_with_library(
        &self,
        into: &Path,
        remote: &RemoteUrl,
        from: &Beginning<'_>,
        progress: &dyn Progress,
    ) -> Result<Commit, ProviderError> {
        let failed = |error: git2::Error| cannot("clone", remote, error);
        let mut options = RepositoryInitOptions::new();
        options.external_template(false).initial_head(from.branch.short()).no_reinit(true);
        let repository = Repository::init_opts(into, &options).map_err(failed)?;
        repository.remote("origin", from.url).map_err(failed)?;
        let commit = from.commit.map(parse).transpose()?;
        self.fill(&repository, remote, commit, progress)?;
        let commit = match commit {
            Some(commit) => commit,
            None => tagged(&repository, from.tags).ok_or_else(|| no_tag(from))?,
        };
        let first = repository.find_commit(commit).map_err(failed)?;
        repository.branch(from.branch.short(), &first, false).map_err(failed)?;
        repository.set_head(from.branch.full()).map_err(failed)?;
        check_out(&repository).map_err(|error| cannot("check out the files of", remote, error))?;
        self.bring_submodules(&repository, remote, 0, progress)?;
        Ok(ref_name::name(commit))
    }

    /// Fetches the history of all branches and tags, and a commit that none of them may contain.
    fn fill(
        &self,
        repository: &Repository,
        remote: &RemoteUrl,
        commit: Option<Oid>,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let opened = self.transports.open(remote).and_then(|mut session| {
            let listed = session.advertisement(None)?;
            Ok((session, listed))
        });
        let (session, listed) = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let text = format!("there is no Git repository at `{remote}`");
                ProviderError::new(ErrorKind::NotFound, text).because(error)
            }
            _ => error,
        })?;
        let mut wants: Vec<Oid> = listed.refs.iter().map(|other| other.target).collect();
        wants.sort_unstable();
        wants.dedup();
        if wants.is_empty() {
            let text = format!("`{remote}` has no branch and no tag");
            return Err(ProviderError::new(ErrorKind::NotFound, text));
        }
        let haves = wants.iter().copied().take(MOST_HAVES).collect();
        self.receive(repository, remote, session, (wants, Vec::new()), progress)?;
        store(repository, &listed).map_err(|error| cannot("clone", remote, error))?;
        let Some(commit) = commit.filter(|commit| repository.find_commit(*commit).is_err()) else {
            return Ok(());
        };
        let session = self.transports.open(remote)?;
        self.receive(repository, remote, session, (vec![commit], haves), progress).map_err(
            |error| {
                let text = format!("`{remote}` has no commit {commit}");
                ProviderError::new(ErrorKind::NotFound, text).because(error)
            },
        )
    }

    fn receive(
        &self,
        repository: &Repository,
        remote: &RemoteUrl,
        mut session: Box<dyn Session>,
        (wants, haves): (Vec<Oid>, Vec<Oid>),
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        if !session.is_open() {
            session = self.transports.open(remote)?;
        }
        let database = Database::new(repository.path().to_owned(), self.bounds);
        let request = FetchRequest { wants, haves, depth: Depth::Whole, ..FetchRequest::default() };
        session.fetch(&request, &mut |boundary, pack| database.add(boundary, pack, progress))
    }

    /// Clones the submodules of what is checked out, as `git submodule update --init --recursive` does.
    fn bring_submodules(
        &self,
        repository: &Repository,
        remote: &RemoteUrl,
        depth: usize,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let failed = |error: git2::Error| cannot("clone the submodules of", remote, error);
        for mut submodule in repository.submodules().map_err(failed)? {
            let path = submodule.path().display().to_string();
            let Some(commit) = submodule.head_id() else { continue };
            if submodule.update_strategy() == SubmoduleUpdate::None {
                continue;
            }
            let refuse = |why: &str| {
                let text = format!("the submodule `{path}` of `{remote}` cannot be cloned: {why}");
                ProviderError::new(ErrorKind::Refused, text)
            };
            if depth == DEEPEST {
                return Err(refuse("it lies too deep in other submodules"));
            }
            let url = submodule.url().ok().flatten().map(str::to_owned);
            let url =
                url.ok_or_else(|| refuse("`.gitmodules` does not say where it comes from"))?;
            let origin = RemoteUrl::submodule(remote, &url)?;
            submodule.init(false).map_err(failed)?;
            let inner = submodule.repo_init(true).map_err(failed)?;
            inner.remote_set_url("origin", &origin.to_string()).map_err(failed)?;
            self.fill(&inner, &origin, Some(commit), progress)?;
            inner.set_head_detached(commit).map_err(failed)?;
            check_out(&inner).map_err(failed)?;
            self.bring_submodules(&inner, &origin, depth + 1, progress)?;
        }
        Ok(())
    }
}

/// Stores what a remote listed, as Git does: its branches as those of `origin`, its tags, and which branch is the usual one.
fn store(repository: &Repository, listed: &Advertisement) -> Result<(), git2::Error> {
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for other in &listed.refs {
        let name = match other.branch() {
            Some(branch) => format!("refs/remotes/origin/{branch}"),
            None => other.name.clone(),
        };
        // Names come from the server.
        if !Reference::is_valid_name(&name) {
            continue;
        }
        let mut line = format!("{} {name}\n", other.target);
        if other.target != other.commit {
            line.push_str(&format!("^{}\n", other.commit));
        }
        lines.insert(name, line);
    }
    let lines: String = lines.into_values().collect();
    let text = format!("# pack-refs with: peeled fully-peeled sorted \n{lines}");
    fs::write_atomic(&repository.path().join("packed-refs"), text.as_bytes())
        .map_err(|error| git2::Error::from_str(&error.to_string()))?;
    let usual = listed.default_branch().and_then(|branch| branch.strip_prefix("refs/heads/"));
    if let Some(usual) = usual.map(|branch| format!("refs/remotes/origin/{branch}"))
        && repository.find_reference(&usual).is_ok()
    {
        repository.reference_symbolic("refs/remotes/origin/HEAD", &usual, true, "clone")?;
    }
    Ok(())
}

/// The commit of the first of these tags that is there.
fn tagged(repository: &Repository, tags: &[TagName]) -> Option<Oid> {
    tags.iter().find_map(|tag| {
        let found = repository.find_reference(tag.full()).ok()?;
        Some(found.peel_to_commit().ok()?.id())
    })
}

fn check_out(repository: &Repository) -> Result<(), git2::Error> {
    repository.checkout_head(Some(CheckoutBuilder::new().force()))
}

fn cannot(what: &str, remote: &RemoteUrl, error: git2::Error) -> ProviderError {
    ProviderError::new(ErrorKind::Io, format!("cannot {what} `{remote}`")).because(error)
}
