//! Clones to work in: how one is made, and what the remotes of one have.
//!
//! `git` does this, with the settings of the user and the system: a clone to work in is the user's own, with their
//! credentials, their line endings and their filters. It never runs with the configuration of the repository around the
//! workspace, and asks no questions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mu_provider::{ErrorKind, ProviderError, SafeUrl};

use crate::programs::Programs;
use crate::remote_url::RemoteUrl;
use crate::words::printable_end;

/// Runs `git` for clones.
#[derive(Debug)]
pub struct WorkingCopies {
    programs: Programs,
    offline: bool,
}

/// What a clone is made of.
#[derive(Debug, Clone)]
pub struct Beginning<'a> {
    /// The repository's URL, as [`checked_url`] returns it.
    pub url: &'a str,
    /// The commit, if it is known.
    pub commit: Option<&'a str>,
    /// The tags, one of which has the commit otherwise.
    pub tags: &'a [String],
    /// The name of the branch that begins there.
    pub branch: &'a str,
}

/// Reads the URL of a repository that `git` may be given.
///
/// # Errors
///
/// When it is none, or one that could make `git` run something else.
pub fn checked_url(text: &str, insecure: bool) -> Result<String, ProviderError> {
    match RemoteUrl::parse(text, |_: &SafeUrl| insecure)? {
        Some(remote) => Ok(remote.to_string()),
        None => Err(ProviderError::new(
            ErrorKind::Refused,
            format!("`{}` is not the URL of a Git repository", mu_provider::without_secrets(text)),
        )),
    }
}

impl WorkingCopies {
    /// Runs `git` with these variables, in the folder `cache`, which is mu's own.
    pub fn new(variables: &BTreeMap<String, String>, cache: &Path, offline: bool) -> Self {
        Self { programs: Programs::new(variables, cache), offline }
    }

    /// Makes a clone with the whole history in `into`, with its own branch at the commit, and its submodules. Returns the
    /// commit.
    ///
    /// # Errors
    ///
    /// When the repository cannot be reached, or has no such commit or tag.
    pub fn clone_into(&self, into: &Path, from: &Beginning<'_>) -> Result<String, ProviderError> {
        self.refuse_offline(from.url)?;
        let clone = |filter: &[&str]| {
            let mut command = self.git();
            command.args(["clone", "--quiet", "--no-checkout"]).args(filter);
            command.args(["--", from.url]).arg(into).env("GIT_NO_LAZY_FETCH", "1");
            run(command, &format!("`{}` cannot be cloned", from.url))
        };
        let partial = clone(&["--filter=blob:none"]);
        // If the server lacks a part of the history, Git asks for it without end in a clone that lacks contents, too.
        if partial.is_err() || mu_provider::fs::exists(&into.join(".git/shallow"))? {
            mu_provider::fs::remove_folder(into)?;
            clone(&[])?;
        }
        let commit = self.begin(into, from)?;
        let mut command = self.inside(into);
        command.args(["checkout", "--quiet", "--no-track", "-b", from.branch, &commit]);
        run(command, &format!("the files of `{}` at {commit} cannot be checked out", from.url))?;
        if mu_provider::fs::metadata_if_there(&into.join(".gitmodules"))
            .is_ok_and(|it| it.is_some())
        {
            let mut command = self.inside(into);
            command.args(["submodule", "--quiet", "update", "--init", "--recursive"]);
            run(command, &format!("the submodules of `{}` cannot be cloned", from.url))?;
        }
        Ok(commit)
    }

    /// The commit at which the work begins.
    fn begin(&self, clone: &Path, from: &Beginning<'_>) -> Result<String, ProviderError> {
        let Some(commit) = from.commit else {
            let found = from.tags.iter().find_map(|tag| {
                let mut command = self.inside(clone);
                let name = format!("refs/tags/{tag}^{{commit}}");
                command.args(["rev-parse", "--verify", "--quiet", &name]);
                run(command, "").ok()
            });
            return found.ok_or_else(|| {
                let tags = from.tags.join("` or `");
                let text = format!("`{}` has no tag `{tags}`", from.url);
                ProviderError::new(ErrorKind::NotFound, text)
            });
        };
        let mut known = self.inside(clone);
        // Without a connection, a commit that no branch or tag leads to counts as missing.
        known.env("GIT_NO_LAZY_FETCH", "1");
        known.args(["cat-file", "-e", &format!("{commit}^{{commit}}")]);
        if run(known, "").is_err() {
            let mut command = self.inside(clone);
            command.args(["fetch", "--quiet", "origin", commit]);
            run(command, &format!("`{}` has no commit {commit}", from.url))
                .map_err(|error| ProviderError::new(ErrorKind::NotFound, error.to_string()))?;
        }
        Ok(commit.to_owned())
    }

    /// The commits that the branches and tags of a remote lead to now.
    ///
    /// # Errors
    ///
    /// When it cannot be reached.
    pub fn tips(&self, url: &str) -> Result<Vec<String>, ProviderError> {
        let url = checked_url(url, true)?;
        self.refuse_offline(&url)?;
        let mut command = self.git();
        command.args(["ls-remote", "--quiet", "--", &url]);
        let listed = run(command, &format!("`{url}` cannot be asked which commits it has"))?;
        let tips = listed.lines().filter_map(|line| line.split_once('\t'));
        Ok(tips.map(|(commit, _)| commit.to_owned()).collect())
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

    /// `git`, which may fetch what a clone without all files still lacks.
    fn git(&self) -> std::process::Command {
        let mut command = self.programs.git();
        command.env_remove("GIT_NO_LAZY_FETCH").stdin(Stdio::null());
        command
    }

    fn inside(&self, clone: &Path) -> std::process::Command {
        let mut command = self.git();
        command.arg("-C").arg(PathBuf::from(clone));
        command
    }
}

/// Runs `git`, and returns what it prints.
fn run(mut command: std::process::Command, failed: &str) -> Result<String, ProviderError> {
    let output = command.output().map_err(|error| {
        let text = "mu clones with `git`, which cannot be run; install it".to_owned();
        ProviderError::new(ErrorKind::Io, text).because(error)
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = printable_end(&output.stderr);
    let said = mu_provider::without_secrets(&said).into_owned();
    let is_auth = ["Authentication failed", "could not read Username", "Permission denied"];
    let kind = match is_auth.iter().any(|words| said.contains(words)) {
        true => ErrorKind::Auth,
        false => ErrorKind::Network,
    };
    Err(ProviderError::new(kind, failed).because(said))
}
