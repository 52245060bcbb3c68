//! Clones to work in: how one is made, and what the remotes of one have.
//!
//! `git` does this if it is installed ([`program`]); otherwise libgit2 does, over mu's own connections ([`library`]). A clone to
//! work in is the user's own. This module does not look into one: `unsaved` does.

mod library;
mod program;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use git2::Oid;
use mu_provider::{Commit, ErrorKind, Lead, Progress, ProviderError, SafeUrl};

use self::program::CredentialSource;
use crate::database::Bounds;
use crate::programs::GitPrograms;
use crate::provider::{CheckFolder, GitOptions};
use crate::ref_name;
use crate::ref_name::{BranchName, TagName};
use crate::remote_url::RemoteUrl;
use crate::transport::Transports;

/// Makes clones, and asks their remotes.
#[derive(Debug)]
pub struct WorkingCopies {
    programs: GitPrograms,
    transports: Transports,
    bounds: Bounds,
    check_folder: CheckFolder,
    offline: bool,
    has_git: OnceLock<bool>,
}

/// What a clone is made of.
#[derive(Debug, Clone)]
pub struct Beginning<'a> {
    /// The repository's URL, as [`checked_url`] returns it.
    pub url: &'a str,
    /// The commit, if it is known.
    pub commit: Option<&'a Commit>,
    /// The tags, one of which has the commit otherwise.
    pub tags: &'a [TagName],
    /// The branch that begins there.
    pub branch: &'a BranchName,
}

/// Reads the URL of a repository that `git` may be given.
///
/// # Errors
///
/// When it is none, or one that could make `git` run something else.
pub fn checked_url(text: &str, insecure: bool) -> Result<String, ProviderError> {
    Ok(remote(text, insecure)?.to_string())
}

/// The folder of a repository on this machine.
pub fn folder_of(url: &str) -> Option<PathBuf> {
    remote(url, true).ok()?.folder()
}

/// Reads the URL of a repository that `git` may be given, which what is at `from` names.
///
/// # Errors
///
/// As for [`checked_url`], and when it is nearer to this machine than `from` is.
pub fn named_url(text: &str, from: &Lead, insecure: bool) -> Result<String, ProviderError> {
    let remote = remote(text, insecure)?;
    from.leads_to(remote.url.clone())?;
    Ok(remote.to_string())
}

fn remote(text: &str, insecure: bool) -> Result<RemoteUrl, ProviderError> {
    RemoteUrl::parse(text, |_: &SafeUrl| insecure)?.ok_or_else(|| {
        let text = mu_provider::without_secrets(text);
        let text = format!("`{text}` is not the URL of a Git repository");
        ProviderError::new(ErrorKind::Refused, text)
    })
}

impl WorkingCopies {
    /// Makes clones with these options, as the provider uses them.
    pub fn new(options: &GitOptions) -> Self {
        let programs = GitPrograms::new(options.programs.clone(), &options.cache)
            .for_work_in(options.current.clone());
        Self {
            transports: Transports::new(&options.http, programs.clone()),
            programs,
            bounds: options.bounds(),
            check_folder: options.check_folder.clone(),
            offline: options.offline,
            has_git: OnceLock::new(),
        }
    }

    /// Makes a clone with the whole history in `into`, with its own branch at the commit, and its submodules. Returns the
    /// commit.
    ///
    /// # Errors
    ///
    /// When the repository cannot be reached, or has no such commit or tag.
    pub fn clone_into(
        &self,
        into: &Path,
        from: &Beginning<'_>,
        progress: &dyn Progress,
    ) -> Result<Commit, ProviderError> {
        self.refuse_offline(from.url)?;
        let remote = self.allowed(from.url)?;
        if !self.has_git() {
            return self.clone_with_library(into, &remote, from, progress);
        }
        let remotes = || Ok(vec![remote.clone()]);
        self.with_tokens(&CredentialSource::Own, remotes, |access| {
            if matches!(access, CredentialSource::Tokens(_)) {
                mu_provider::fs::remove_folder(into)?;
            }
            self.clone_with_git(access, into, &remote, from)
        })
    }

    /// The commits that the branches and tags of a remote lead to now.
    ///
    /// # Errors
    ///
    /// When it cannot be reached.
    pub fn tips(&self, url: &str) -> Result<Vec<Commit>, ProviderError> {
        let remote = self.allowed(url)?;
        self.refuse_offline(&remote.to_string())?;
        if !self.has_git() {
            let listed = self.transports.open(&remote)?.advertisement(None)?;
            let commits = listed.refs.iter().map(|other| other.commit).chain(listed.head);
            return Ok(commits.map(ref_name::name).collect());
        }
        let remotes = || Ok(vec![remote.clone()]);
        self.with_tokens(&CredentialSource::Own, remotes, |access| {
            self.tips_with_git(access, &remote)
        })
    }

    /// The repository at a URL, from which clones may be made.
    fn allowed(&self, url: &str) -> Result<RemoteUrl, ProviderError> {
        let remote = remote(url, true)?;
        if let Some(folder) = remote.folder() {
            self.check_folder.check(&folder)?;
        }
        Ok(remote)
    }

    fn refuse_offline(&self, url: &str) -> Result<(), ProviderError> {
        match self.offline {
            false => Ok(()),
            true => Err(ProviderError::new(
                ErrorKind::Offline,
                format!("`{url}` is not asked, because of --offline"),
            )),
        }
    }

    /// Whether there is a `git` that can be run.
    fn has_git(&self) -> bool {
        *self.has_git.get_or_init(|| {
            let version = self.programs.git().and_then(|mut git| git.arg("--version").output());
            version.is_ok_and(|output| output.status.success())
        })
    }
}

/// The error for a repository that has none of the tags.
fn no_tag(from: &Beginning<'_>) -> ProviderError {
    let tags: Vec<&str> = from.tags.iter().map(TagName::short).collect();
    let text = format!("`{}` has no tag `{}`", from.url, tags.join("` or `"));
    ProviderError::new(ErrorKind::NotFound, text)
}

/// The commit as libgit2 knows it.
fn parse(commit: &Commit) -> Result<Oid, ProviderError> {
    ref_name::parse(Some(commit)).ok_or_else(|| {
        let text = format!("the commit {commit} is of a repository with SHA-256");
        ProviderError::new(ErrorKind::Refused, text).hint("install `git`, which can read it")
    })
}
