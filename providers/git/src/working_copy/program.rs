//! Clones that `git` makes, with the settings of the user and the system: their credentials, their line endings and their
//! filters. It never runs with the configuration of the repository around the workspace, and asks no questions.
//!
//! If a server accepts none of the user's own credentials, `git` gets the token that `mu login` stored: in its environment, for
//! exactly that host. It is never part of a command line, and no file and no other credential helper gets it.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use mu_provider::fs;
use mu_provider::{Commit, ErrorKind, InnerPath, ProviderError};

use super::{Beginning, WorkingCopies, no_tag};
use crate::config_text::Submodules;
use crate::remote_url::RemoteUrl;
use crate::transport::StoredToken;
use crate::words::printable_end;

/// How deep submodules may lie in submodules.
const DEEPEST: usize = 8;

/// Whose credentials `git` uses.
#[derive(Debug)]
pub(super) enum CredentialSource {
    /// The user's own, as Git has them.
    Own,
    /// The credentials that mu has.
    Tokens(Vec<StoredToken>),
}

impl WorkingCopies {
    pub(super) fn clone_with_git(
        &self,
        access: &CredentialSource,
        into: &Path,
        remote: &RemoteUrl,
        from: &Beginning<'_>,
    ) -> Result<Commit, ProviderError> {
        let clone = |filter: &[&str]| {
            let mut command = self.git(access)?;
            command.args(["clone", "--quiet", "--no-checkout"]).args(filter);
            command.args(["--", &remote.to_string()]).arg(into).env("GIT_NO_LAZY_FETCH", "1");
            run(command, &format!("`{remote}` cannot be cloned"))
        };
        match access {
            CredentialSource::Own => {
                let partial = clone(&["--filter=blob:none"]);
                let is_partial = partial.is_ok();
                if let Some(error) = partial.err().filter(is_refusal) {
                    return Err(error);
                }
                // If the server lacks a part of the history, Git asks for it without end in a clone that lacks contents, too.
                if !is_partial || fs::exists(&into.join(".git/shallow"))? {
                    fs::remove_folder(into)?;
                    clone(&[])?;
                }
            }
            // The user's `git`, which has no token, could not fetch later what a clone lacks.
            CredentialSource::Tokens(_) => drop(clone(&[])?),
        }
        let commit = self.begin(access, into, from)?;
        let mut command = self.inside(access, into)?;
        // Before 2.44, `checkout` does not know `--end-of-options`. What is after `--` is a path.
        let branch = from.branch.short();
        command.args(["checkout", "--quiet", "--no-track", "-b", branch, &commit, "--"]);
        run(command, &format!("the files of `{}` at {commit} cannot be checked out", from.url))?;
        self.submodules(access, into, remote, &mut Vec::new())?;
        Ok(commit)
    }

    /// The commit at which the work begins.
    fn begin(
        &self,
        access: &CredentialSource,
        clone: &Path,
        from: &Beginning<'_>,
    ) -> Result<Commit, ProviderError> {
        let Some(commit) = from.commit else {
            for tag in from.tags {
                let mut command = self.inside(access, clone)?;
                command.args(["rev-list", "--max-count=1", "--end-of-options", tag.full()]);
                let found = run(command, "").ok().and_then(|text| text.parse().ok());
                if let Some(commit) = found {
                    return Ok(commit);
                }
            }
            return Err(no_tag(from));
        };
        let mut known = self.inside(access, clone)?;
        // Without a connection, a commit that no branch or tag leads to counts as missing.
        known.env("GIT_NO_LAZY_FETCH", "1");
        known.args(["cat-file", "-e", "--end-of-options", &format!("{commit}^{{commit}}")]);
        if run(known, "").is_err() {
            let mut command = self.inside(access, clone)?;
            command.args(["fetch", "--quiet", "--end-of-options", "origin", commit]);
            run(command, &format!("`{}` has no commit {commit}", from.url))
                .map_err(|error| ProviderError::new(ErrorKind::NotFound, error.to_string()))?;
        }
        Ok(commit.clone())
    }

    /// Clones the submodules of a clone, and theirs. Git itself would ask wherever their URLs lead, so each level is checked before it is
    /// cloned; `above` are the repositories around it.
    fn submodules(
        &self,
        access: &CredentialSource,
        clone: &Path,
        parent: &RemoteUrl,
        above: &mut Vec<String>,
    ) -> Result<(), ProviderError> {
        let file = clone.join(".gitmodules");
        let is_file = fs::symlink_metadata(&file).is_ok_and(|found| found.is_file());
        let Some(text) = fs::read_if_there(&file)?.filter(|_| is_file) else { return Ok(()) };
        if above.len() >= DEEPEST {
            let text =
                format!("submodules of `{parent}` are more than {DEEPEST} repositories deep");
            return Err(ProviderError::new(ErrorKind::Integrity, text));
        }
        let named = Submodules::parse(&text);
        let named = named.all().map(|(path, url)| Ok((path, RemoteUrl::submodule(parent, url)?)));
        let named: Vec<(&[u8], RemoteUrl)> = named.collect::<Result<_, ProviderError>>()?;
        let update = |access: &CredentialSource| {
            let mut command = self.inside(access, clone)?;
            command.args(["submodule", "--quiet", "update", "--init"]);
            run(command, &format!("the submodules of `{parent}` cannot be cloned"))
        };
        let urls = || named.iter().map(|(_, url)| url.clone());
        let remotes = || Ok(urls().chain([parent.clone()]).collect());
        self.with_tokens(access, remotes, update)?;
        above.push(parent.key());
        for (path, url) in &named {
            let inner = std::str::from_utf8(path).ok().and_then(|path| InnerPath::parse(path).ok());
            let Some(inner) = inner else { continue };
            let folder = clone.join(&inner);
            // One that is not cloned has no folder, and no link leads out of the clone.
            let real = fs::canonicalize(&folder).ok();
            let is_here = real.zip(fs::canonicalize(clone).ok());
            if is_here.is_none_or(|(real, clone)| real != clone.join(&inner)) {
                continue;
            }
            if above.contains(&url.key()) {
                let text = format!("the submodule `{inner}` of `{parent}` contains itself");
                return Err(ProviderError::new(ErrorKind::Integrity, text));
            }
            self.submodules(access, &folder, url, above)?;
        }
        above.pop();
        Ok(())
    }

    pub(super) fn tips_with_git(
        &self,
        access: &CredentialSource,
        remote: &RemoteUrl,
    ) -> Result<Vec<Commit>, ProviderError> {
        let mut command = self.git(access)?;
        command.args(["ls-remote", "--quiet", "--", &remote.to_string()]);
        let listed = run(command, &format!("`{remote}` cannot be asked which commits it has"))?;
        let tips = listed.lines().filter_map(|line| line.split_once('\t'));
        Ok(tips.filter_map(|(commit, _)| commit.parse().ok()).collect())
    }

    /// Does `work`, once more with the tokens that mu has for `remotes`, if their servers did not accept what `git` had.
    pub(super) fn with_tokens<T>(
        &self,
        first: &CredentialSource,
        remotes: impl FnOnce() -> Result<Vec<RemoteUrl>, ProviderError>,
        work: impl Fn(&CredentialSource) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let refusal = match work(first) {
            Err(error) if is_refusal(&error) => error,
            done => return done,
        };
        let mut tokens: Vec<StoredToken> = Vec::new();
        for remote in remotes()? {
            let Some(token) = self.transports.token(&remote)? else { continue };
            if tokens.iter().all(|other| other.place != token.place) {
                tokens.push(token);
            }
        }
        if tokens.is_empty() { Err(refusal) } else { work(&CredentialSource::Tokens(tokens)) }
    }

    /// `git`, which may fetch what a clone without all files still lacks.
    fn git(&self, access: &CredentialSource) -> Result<Command, ProviderError> {
        let mut command = self.programs.git().map_err(not_run)?;
        command.env_remove("GIT_NO_LAZY_FETCH").stdin(Stdio::null());
        if let CredentialSource::Tokens(tokens) = access {
            self.give(&mut command, tokens);
        }
        Ok(command)
    }

    /// Gives `git` tokens: a credential helper for each place, in the environment alone, which takes the token from there. The
    /// user's helpers for that place are left out, because Git would have them store it.
    fn give(&self, command: &mut Command, tokens: &[StoredToken]) {
        let known = self.programs.variable("GIT_CONFIG_COUNT").and_then(|text| text.parse().ok());
        let mut count: usize = known.unwrap_or(0);
        for (number, token) in tokens.iter().enumerate() {
            let (user, password) =
                (format!("MU_GIT_USER_{number}"), format!("MU_GIT_PASSWORD_{number}"));
            let helper = format!(
                "!f() {{ if test \"$1\" = get; then printf 'username=%s\\npassword=%s\\n' \"${user}\" \"${password}\"; fi; }}; f"
            );
            for value in ["", &helper] {
                let key = format!("credential.{}.helper", token.place);
                command.env(format!("GIT_CONFIG_KEY_{count}"), key);
                command.env(format!("GIT_CONFIG_VALUE_{count}"), value);
                count += 1;
            }
            command.env(user, &token.user).env(password, token.password.expose());
        }
        command.env("GIT_CONFIG_COUNT", count.to_string());
    }

    fn inside(&self, access: &CredentialSource, clone: &Path) -> Result<Command, ProviderError> {
        let mut command = self.git(access)?;
        command.arg("-C").arg(clone);
        Ok(command)
    }
}

/// Whether a server may answer otherwise to somebody else. Some say that there is nothing, for what is private.
fn is_refusal(error: &ProviderError) -> bool {
    matches!(error.kind(), ErrorKind::Auth | ErrorKind::NotFound)
}

fn not_run(error: io::Error) -> ProviderError {
    ProviderError::new(ErrorKind::Io, "`git` cannot be run".to_owned()).because(error)
}

/// Runs `git`, and returns what it prints.
fn run(mut command: Command, failed: &str) -> Result<String, ProviderError> {
    let output = command.output().map_err(not_run)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = printable_end(&output.stderr);
    let said = mu_provider::without_secrets(&said).into_owned();
    let has = |all: &[&str]| all.iter().any(|words| said.contains(words));
    let kind = if has(&[
        "Authentication failed",
        "could not read Username",
        "Permission denied",
        "error: 403",
    ]) {
        ErrorKind::Auth
    } else if has(&["not found"]) {
        ErrorKind::NotFound
    } else {
        ErrorKind::Network
    };
    Err(ProviderError::new(kind, failed).because(said))
}
