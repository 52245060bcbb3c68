//! What `git` says of a repository that libgit2 cannot read, through a [`StandIn`]: its entries, references and commits.
//!
//! Only references and what HEAD was before are asked of the repository itself, by commands that run nothing.

use std::collections::BTreeSet;

use mu_provider::Commit;

use crate::config_text::settings;
use crate::programs::GitPrograms;
use crate::stand_in::{StandIn, StandInError, says_yes, text_of};

/// The mode of a submodule.
const SUBMODULE: u32 = 0o160_000;

/// An entry of the index.
#[derive(Debug, Clone)]
pub(crate) struct TrackedFile {
    pub(crate) mode: u32,
    pub(crate) oid: String,
    pub(crate) path: String,
}

impl TrackedFile {
    pub(crate) fn is_submodule(&self) -> bool {
        self.mode == SUBMODULE
    }
}

/// A branch, tag or the like, and the commit that it leads to.
#[derive(Debug, Clone)]
pub(crate) struct NamedCommit {
    pub(crate) name: String,
    pub(crate) commit: Commit,
}

/// A remote, and where it is read from and written to.
#[derive(Debug, Clone, Default)]
pub(crate) struct RemoteUrls {
    pub(crate) name: String,
    pub(crate) url: Option<String>,
    pub(crate) push: Option<String>,
}

/// What `git` printed, if it ended well.
fn fine((code, said): (i32, String)) -> Result<String, StandInError> {
    match code {
        0 => Ok(said),
        _ => Err(StandInError::Failed(said)),
    }
}

impl StandIn {
    /// All entries of the index.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn entries(&self, programs: &GitPrograms) -> Result<Vec<TrackedFile>, StandInError> {
        let listed = fine(self.ask(&["ls-files", "-z", "--stage"], b"", programs)?)?;
        // Such as `100644 OID 0`, a tab, and the path.
        let entries = listed.split('\0').filter_map(|line| {
            let (facts, path) = line.split_once('\t')?;
            let mut facts = facts.split(' ');
            let mode = u32::from_str_radix(facts.next()?, 8).ok()?;
            Some(TrackedFile { mode, oid: facts.next()?.to_owned(), path: path.to_owned() })
        });
        Ok(entries.collect())
    }

    /// What a commit has in the folder `inside`, with whole paths.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn entries_of_commit(
        &self,
        commit: &Commit,
        inside: &str,
        programs: &GitPrograms,
    ) -> Result<Vec<TrackedFile>, StandInError> {
        let mut arguments = vec!["ls-tree", "-r", "-z", "--full-tree", commit, "--"];
        arguments.extend((!inside.is_empty()).then_some(inside));
        let listed = fine(self.ask(&arguments, b"", programs)?)?;
        // Such as `100644 blob OID`, a tab, and the path.
        let entries = listed.split('\0').filter_map(|line| {
            let (facts, path) = line.split_once('\t')?;
            let mut facts = facts.split(' ');
            let mode = u32::from_str_radix(facts.next()?, 8).ok()?;
            Some(TrackedFile { mode, oid: facts.nth(1)?.to_owned(), path: path.to_owned() })
        });
        Ok(entries.collect())
    }

    /// The paths of the entries at which Git was told not to look.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn unwatched(&self, programs: &GitPrograms) -> Result<Vec<String>, StandInError> {
        let listed = fine(self.ask(&["ls-files", "-z", "-v"], b"", programs)?)?;
        let unwatched = listed.split('\0').filter_map(|line| {
            let (tag, path) = line.split_once(' ')?;
            let is_unwatched = tag == "S" || tag.starts_with(|first: char| first.is_lowercase());
            is_unwatched.then(|| path.to_owned())
        });
        Ok(unwatched.collect())
    }

    /// Those of these files that Git ignores and does not track; none if it ignores the folder `inside`, which has them.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn ignored_files(
        &self,
        inside: &str,
        paths: impl Iterator<Item = String>,
        programs: &GitPrograms,
    ) -> Result<BTreeSet<String>, StandInError> {
        let input: String = paths.map(|path| format!("./{path}\0")).collect();
        match self.ask(&["check-ignore", "-z", "--stdin"], input.as_bytes(), programs)? {
            (0, _)
                if !inside.is_empty()
                    && self.is_ignored_by_git(&format!("{inside}/"), programs)? =>
            {
                Ok(BTreeSet::new())
            }
            (0, listed) => {
                let paths = listed.split('\0').filter_map(|path| path.strip_prefix("./"));
                Ok(paths.map(str::to_owned).collect())
            }
            (1, _) => Ok(BTreeSet::new()),
            (_, said) => Err(StandInError::Failed(said)),
        }
    }

    /// Whether Git would add nothing of the folder at `place`, which has files and is not tracked: it ignores all of them.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn would_add_nothing(
        &self,
        place: &str,
        programs: &GitPrograms,
    ) -> Result<bool, StandInError> {
        let arguments = [
            "ls-files",
            "-z",
            "--others",
            "--exclude-standard",
            "--directory",
            "--no-empty-directory",
            "--",
            place,
        ];
        Ok(fine(self.ask(&arguments, b"", programs)?)?.is_empty())
    }

    /// What is set under a key of Git's configuration.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn setting(
        &self,
        key: &'static str,
        programs: &GitPrograms,
    ) -> Result<Option<String>, StandInError> {
        match self.ask(&["config", "--get", key], b"", programs)? {
            (0, value) => Ok(Some(value.trim_end_matches('\n').to_owned())),
            (1, _) => Ok(None),
            (_, said) => Err(StandInError::Failed(said)),
        }
    }

    /// The values of these attributes of files, by their paths.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn attributes<const N: usize>(
        &self,
        names: [&str; N],
        paths: impl Iterator<Item = impl AsRef<str>>,
        programs: &GitPrograms,
    ) -> Result<Vec<(String, [String; N])>, StandInError> {
        let input: String = paths.map(|path| format!("{}\0", path.as_ref())).collect();
        let arguments = [&["check-attr", "--stdin", "-z"][..], &names].concat();
        let listed = fine(self.ask(&arguments, input.as_bytes(), programs)?)?;
        // The path, the name and the value of each attribute, in the order in which they were asked for.
        let parts: Vec<&str> = listed.split('\0').collect();
        let files = parts.chunks_exact(3 * N).filter_map(|file| {
            let value = |number: usize| file.get(3 * number + 2).map(|value| (*value).to_owned());
            let values: Option<Vec<String>> = (0..N).map(value).collect();
            Some(((*file.first()?).to_owned(), values?.try_into().ok()?))
        });
        Ok(files.collect())
    }

    /// The names of objects with the content of these files, as it is.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn hashes(
        &self,
        paths: &[&str],
        programs: &GitPrograms,
    ) -> Result<Vec<String>, StandInError> {
        let root = self.root().display();
        let input: String = paths.iter().map(|path| format!("{root}/{path}\n")).collect();
        let arguments = ["hash-object", "--no-filters", "--stdin-paths"];
        let said = fine(self.ask(&arguments, input.as_bytes(), programs)?)?;
        Ok(said.lines().map(str::to_owned).collect())
    }

    /// The files that differ from the commit, which was asked for before: two letters, as `git status --porcelain` has them, and the
    /// path. With those that Git ignores, if they are wanted.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn statuses(
        &self,
        with_ignored: bool,
        programs: &GitPrograms,
    ) -> Result<Vec<(String, String)>, StandInError> {
        // In submodules, `git` would use their own configuration.
        let arguments = [
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=all",
            if with_ignored { "--ignored=matching" } else { "--ignored=no" },
        ];
        let listed = fine(self.ask(&arguments, b"", programs)?)?;
        let entries = listed
            .split('\0')
            .filter_map(|line| Some((line.get(..2)?.to_owned(), line.get(3..)?.to_owned())));
        Ok(entries.collect())
    }

    /// The name of the branch that is checked out.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn checked_out_branch(
        &self,
        programs: &GitPrograms,
    ) -> Result<Option<String>, StandInError> {
        match self.ask_itself(&["symbolic-ref", "--quiet", "HEAD"], programs)? {
            (0, name) => Ok(name.trim().strip_prefix("refs/heads/").map(str::to_owned)),
            (1, _) => Ok(None),
            (_, said) => Err(StandInError::Failed(said)),
        }
    }

    /// All branches, tags and the like.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn named_commits(
        &self,
        programs: &GitPrograms,
    ) -> Result<Vec<NamedCommit>, StandInError> {
        let arguments =
            ["for-each-ref", "--format=%(objectname) %(objecttype) %(*objectname) %(refname)"];
        let listed = fine(self.ask_itself(&arguments, programs)?)?;
        let references = listed.lines().filter_map(|line| {
            let mut parts = line.splitn(4, ' ');
            let (own, kind, inner) = (parts.next()?, parts.next()?, parts.next()?);
            let commit = if kind == "tag" { inner } else { own };
            Some(NamedCommit { name: parts.next()?.to_owned(), commit: commit.parse().ok()? })
        });
        Ok(references.collect())
    }

    /// What HEAD was before.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn heads_before(&self, programs: &GitPrograms) -> Result<Vec<Commit>, StandInError> {
        if !says_yes(self.ask_itself(&["reflog", "exists", "HEAD"], programs)?)? {
            return Ok(Vec::new());
        }
        let listed = fine(self.ask_itself(&["rev-list", "--walk-reflogs", "HEAD"], programs)?)?;
        Ok(listed.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// What stashed changes are called.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn stashes(&self, programs: &GitPrograms) -> Result<Vec<String>, StandInError> {
        if !says_yes(self.ask_itself(&["reflog", "exists", "refs/stash"], programs)?)? {
            return Ok(Vec::new());
        }
        // The configuration of the repository could have signatures shown by a program of its own.
        let arguments = [
            "log",
            "--walk-reflogs",
            "--no-show-signature",
            "--no-notes",
            "--no-patch",
            "--format=%gs",
            "refs/stash",
            "--",
        ];
        let listed = fine(self.ask_itself(&arguments, programs)?)?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// Whether there is such a reference beside HEAD, of something that Git has begun.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn has_begun(
        &self,
        name: &'static str,
        programs: &GitPrograms,
    ) -> Result<bool, StandInError> {
        says_yes(self.ask_itself(&["rev-parse", "--verify", "--quiet", name], programs)?)
    }

    /// The commit that the branch follows which is checked out.
    ///
    /// # Errors
    ///
    /// When `git` cannot be run.
    pub(crate) fn upstream(&self, programs: &GitPrograms) -> Result<Option<Commit>, StandInError> {
        let asked = ["rev-parse", "--verify", "--quiet", "@{upstream}"];
        let (code, said) = self.ask_itself(&asked, programs)?;
        Ok(said.trim().parse().ok().filter(|_| code == 0))
    }

    /// The commits that some of `from` lead to and none of `without`, with their subjects. What is not here counts for nothing.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn commits(
        &self,
        from: &BTreeSet<Commit>,
        without: &[Commit],
        programs: &GitPrograms,
    ) -> Result<Vec<(Commit, String)>, StandInError> {
        if from.is_empty() {
            return Ok(Vec::new());
        }
        let excluded = without.iter().map(|commit| format!("^{commit}\n"));
        let input: String =
            from.iter().map(|commit| format!("{commit}\n")).chain(excluded).collect();
        let arguments = ["rev-list", "--ignore-missing", "--format=%s", "--stdin"];
        let said = fine(self.ask(&arguments, input.as_bytes(), programs)?)?;
        let mut lines = said.lines();
        let mut commits = Vec::new();
        while let Some(commit) = lines.next().and_then(|line| line.strip_prefix("commit ")) {
            let subject = lines.next().unwrap_or_default().to_owned();
            commits.extend(commit.parse().ok().map(|commit| (commit, subject)));
        }
        Ok(commits)
    }

    /// Whether a commit is here.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn has_commit(
        &self,
        commit: &Commit,
        programs: &GitPrograms,
    ) -> Result<bool, StandInError> {
        let input = format!("{commit}^{{commit}}\n");
        let said = fine(self.ask(&["cat-file", "--batch-check"], input.as_bytes(), programs)?)?;
        Ok(said.trim().ends_with(|last: char| last.is_ascii_digit()))
    }

    /// The remotes, as the repository's own configuration has them.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(crate) fn remotes(&self) -> Result<Vec<RemoteUrls>, StandInError> {
        let text = text_of(&self.place().common.join("config"))?.unwrap_or_default();
        let mut remotes: Vec<RemoteUrls> = Vec::new();
        for setting in settings(&text) {
            let Some(name) = setting.name.filter(|_| setting.section == "remote") else { continue };
            if remotes.iter().all(|remote| remote.name != name) {
                remotes.push(RemoteUrls { name: name.clone(), ..RemoteUrls::default() });
            }
            let Some(remote) = remotes.iter_mut().find(|remote| remote.name == name) else {
                continue;
            };
            match setting.key.as_str() {
                "url" => drop(remote.url.get_or_insert(setting.value)),
                "pushurl" => drop(remote.push.get_or_insert(setting.value)),
                _ => {}
            }
        }
        Ok(remotes)
    }
}
