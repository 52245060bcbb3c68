//! A repository of mu's own that stands in for the one around a folder, where libgit2 cannot read that: partial and sparse checkouts,
//! references in tables, SHA-256.
//!
//! It has the index, the objects, the rules of the other one, and those settings that say how files are ([`OF_FILES`]): the rest of its
//! configuration could name programs. libgit2 or the program `git` then reads it. Nothing in the other repository is written.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use git2::Repository;
use mu_provider::Commit;
use mu_provider::fs::{self, AtPath as _, FileError, RunFolder, canonicalize};

use crate::config_text::{Setting, settings, written};
use crate::programs::GitPrograms;
use crate::words::printable_end;

/// The file with the rules that one clone alone ignores by.
pub(crate) const EXCLUDE: &str = "info/exclude";

/// The file with the attributes that one clone alone gives to files.
const ATTRIBUTES: &str = "info/attributes";

/// The settings that say how Git has files in a checkout, and which ones. None of them names a program.
const OF_FILES: [&str; 10] = [
    "core.attributesfile",
    "core.autocrlf",
    "core.checkstat",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.trustctime",
];

/// The folder in mu's own folder for what stands in.
pub(crate) const AROUND: &str = "around";

/// Where a checkout has its files and Git its data.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The root of the checkout, without links in its path.
    pub(crate) root: PathBuf,
    /// The data of this checkout alone, such as its index.
    pub(crate) own: PathBuf,
    /// The data that it shares with its worktrees.
    pub(crate) common: PathBuf,
}

/// Why a repository cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StandInError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// `git` cannot be run.
    #[error("`git` cannot be run")]
    Run(#[source] std::io::Error),
    /// Nothing looks like a checkout.
    #[error("no folder above it has a repository that `git` would read")]
    NoCheckout,
    /// `git` failed, with these words.
    #[error("`git` says: {0}")]
    Failed(String),
}

impl Place {
    /// The repository in a folder, bare or with a checkout.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        if folder.join(".git").exists() {
            return Self::around(folder).ok().flatten();
        }
        let own = folder.to_owned();
        folder.join("HEAD").is_file().then(|| Self { root: own.clone(), common: own.clone(), own })
    }

    /// Looks for the checkout around a folder as Git does. It is not checked whether Git can read it.
    ///
    /// # Errors
    ///
    /// When a file on the way cannot be read.
    pub(crate) fn around(folder: &Path) -> Result<Option<Self>, FileError> {
        let folder = canonicalize(folder)?;
        for root in folder.ancestors() {
            let at = root.join(".git");
            let Some(found) = fs::metadata_if_there(&at)? else { continue };
            let own = match found.is_dir() {
                true => at,
                false => {
                    let text = text_of(&at)?.unwrap_or_default();
                    let Some(leads) = text.strip_prefix("gitdir:").map(str::trim) else { continue };
                    root.join(leads)
                }
            };
            if !own.join("HEAD").exists() {
                continue;
            }
            let common = text_of(&own.join("commondir"))?;
            let common = common.map_or_else(|| own.clone(), |path| own.join(path.trim()));
            // For Git, a folder without objects is no repository.
            if !common.join("objects").is_dir() {
                continue;
            }
            return Ok(Some(Self { root: root.to_owned(), own, common }));
        }
        Ok(None)
    }

    /// Whether its configuration names the root of the checkout (`core.worktree`). A linked worktree reads only its own.
    pub(crate) fn names_root(&self) -> bool {
        let shared = (self.own == self.common).then(|| self.common.join("config"));
        shared.into_iter().chain([self.own.join("config.worktree")]).any(|file| {
            let text = text_of(&file).ok().flatten().unwrap_or_default();
            settings(&text).iter().any(|one| one.section == "core" && one.key == "worktree")
        })
    }

    /// Whether its objects have names of SHA-256.
    fn is_sha256(&self) -> Result<bool, FileError> {
        let text = text_of(&self.common.join("config"))?.unwrap_or_default();
        Ok(settings(&text).iter().any(|one| {
            one.section == "extensions"
                && one.key == "objectformat"
                && one.value.eq_ignore_ascii_case("sha256")
        }))
    }

    /// Whether Git can read its configuration without waiting: its files are files, or not there.
    pub(crate) fn has_plain_configuration(&self) -> bool {
        let files = [self.common.join("config"), self.own.join("config.worktree")];
        files.iter().all(|file| match fs::metadata_if_there(file) {
            Ok(found) => found.is_none_or(|found| found.is_file()),
            Err(_) => false,
        })
    }

    /// Whether only a part of the files is checked out.
    pub(crate) fn is_sparse(&self) -> bool {
        let is_set = |file: PathBuf| {
            let text = text_of(&file).ok().flatten().unwrap_or_default();
            settings(&text).iter().any(|one| {
                one.section == "core"
                    && one.key == "sparsecheckout"
                    && ["true", "1", "yes", "on"].contains(&&*one.value.to_ascii_lowercase())
            })
        };
        self.own.join("info/sparse-checkout").is_file()
            && [self.common.join("config"), self.own.join("config.worktree")]
                .into_iter()
                .any(is_set)
    }

    /// The URL that a partial clone fetches from what it lacks, as it is written.
    pub(crate) fn promisor(&self) -> Option<String> {
        let text = text_of(&self.common.join("config")).ok()??;
        let all = settings(&text);
        let named = all.iter().find(|one| one.section == "extensions" && one.key == "partialclone");
        let is_promisor = |one: &&Setting| one.section == "remote" && one.key == "promisor";
        let name = named.map(|one| Some(one.value.clone()));
        let name = name.or_else(|| all.iter().find(is_promisor).map(|one| one.name.clone()))??;
        let is_url = |one: &&Setting| {
            one.section == "remote" && one.name.as_ref() == Some(&name) && one.key == "url"
        };
        Some(all.iter().find(is_url)?.value.clone())
    }

    /// The URL, as it is written, of the remote that Git takes where none is named: that which the checked-out `branch` follows, or
    /// `origin`, or the only one.
    pub(crate) fn default_remote(&self, branch: Option<&str>) -> Option<String> {
        let text = text_of(&self.common.join("config")).ok()??;
        let all = settings(&text);
        let value = |section: &str, name: &str, key: &str| {
            let is_it = |one: &&Setting| {
                (&*one.section, one.name.as_deref(), &*one.key) == (section, Some(name), key)
            };
            all.iter().rfind(is_it).map(|one| one.value.clone())
        };
        let followed = branch.and_then(|branch| value("branch", branch, "remote"));
        let url = |remote: &str| value("remote", remote, "url");
        let only = || {
            let urls = all.iter().filter(|one| one.section == "remote" && one.key == "url");
            let names: BTreeSet<_> = urls.filter_map(|one| one.name.as_deref()).collect();
            names.first().filter(|_| names.len() == 1).and_then(|name| url(name))
        };
        followed.and_then(|remote| url(&remote)).or_else(|| url("origin")).or_else(only)
    }

    /// The commit that is checked out, or the branch without commits, as `HEAD` has it; `None` if only `git` could tell.
    fn head(&self) -> Result<Option<String>, FileError> {
        let Some(text) = text_of(&self.own.join("HEAD"))? else { return Ok(None) };
        let Some(name) = text.strip_prefix("ref:").map(str::trim) else { return Ok(Some(text)) };
        // In tables there is this, and no name.
        if name.contains("..") || name.ends_with(".invalid") || !name.starts_with("refs/") {
            return Ok(None);
        }
        if let Some(commit) = text_of(&self.common.join(name))? {
            return Ok(Some(commit));
        }
        let packed = text_of(&self.common.join("packed-refs"))?.unwrap_or_default();
        let lines = packed.lines().filter_map(|line| line.split_once(' '));
        let commit = lines.into_iter().find(|(_, other)| *other == name);
        Ok(Some(commit.map_or_else(|| text.clone(), |(commit, _)| format!("{commit}\n"))))
    }
}

/// The text of a regular file, if there is one.
pub(crate) fn text_of(path: &Path) -> Result<Option<String>, FileError> {
    match fs::metadata_if_there(path)? {
        Some(found) if found.is_file() => {
            let bytes = fs::read_if_there(path)?;
            Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        }
        _ => Ok(None),
    }
}

/// The repository that stands in.
#[derive(Debug)]
pub(crate) struct StandIn {
    place: Place,
    folder: RunFolder,
}

/// What `git` answers by how it ends: yes or no.
pub(crate) fn says_yes((code, said): (i32, String)) -> Result<bool, StandInError> {
    match code {
        0 => Ok(true),
        1 => Ok(false),
        _ => Err(StandInError::Failed(said)),
    }
}

/// Copies an index together with its time: Git reads a file whose time is not before that of the index, because it may have
/// changed after the index was written. A younger copy would make it trust such a file unread.
fn copy_with_time(from: &Path, to: &Path) -> Result<(), FileError> {
    let time = fs::metadata(from)?.modified().at("read the time of", from)?;
    let mut index = fs::open_with(from, OpenOptions::new().read(true))?;
    let mut copy = fs::open_with(to, OpenOptions::new().write(true).create_new(true))?;
    io::copy(&mut index, &mut copy).and_then(|_| copy.set_modified(time)).at("write", to)
}

impl StandIn {
    /// Makes one in mu's own folder `above`.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written.
    pub(crate) fn new(
        place: &Place,
        programs: &GitPrograms,
        above: &Path,
    ) -> Result<Self, FileError> {
        let folder = RunFolder::new(&above.join(AROUND))?;
        let stand_in = Self { place: place.clone(), folder };
        for inner in ["objects/info", "refs", "info"] {
            fs::create_folder(&stand_in.path(inner))?;
        }
        let format = if place.is_sha256()? { "sha256" } else { "sha1" };
        let mut config = format!(
            "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = {format}\n"
        );
        // If Git cannot say them, whoever asks it something else is told.
        let listed = programs.configuration(place).ok().flatten().unwrap_or_default();
        config.push_str(&written(&listed, &|key| OF_FILES.contains(&key)));
        stand_in.write("config", config.as_bytes())?;
        let head = place.head()?;
        let head = head.unwrap_or_else(|| "ref: refs/heads/unknown\n".to_owned());
        stand_in.write("HEAD", head.as_bytes())?;
        let objects = canonicalize(&place.common.join("objects"))?;
        let line = format!("{}\n", objects.display());
        stand_in.write("objects/info/alternates", line.as_bytes())?;
        for entry in fs::entries(&place.own)? {
            let name = entry.file_name();
            let is_index = name.to_str().is_some_and(|name| {
                name == "index" || name.starts_with("sharedindex.") && !name.ends_with(".lock")
            });
            if is_index && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                copy_with_time(&entry.path(), &stand_in.folder.path().join(&name))?;
            }
        }
        stand_in.take_rules()?;
        Ok(stand_in)
    }

    /// Takes over the rules of the clone alone, which may have changed.
    ///
    /// # Errors
    ///
    /// When they cannot be read or written.
    pub(crate) fn take_rules(&self) -> Result<(), FileError> {
        for file in [EXCLUDE, ATTRIBUTES] {
            let rules = text_of(&self.place.common.join(file))?.unwrap_or_default();
            self.write(file, rules.as_bytes())?;
        }
        Ok(())
    }

    /// The root of the checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.place.root
    }

    /// Where the other repository is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Asks the other repository itself, which alone has references. Only what runs nothing and reads no files may be asked.
    ///
    /// # Errors
    ///
    /// When `git` cannot be run.
    pub(crate) fn ask_itself(
        &self,
        arguments: &[&str],
        programs: &GitPrograms,
    ) -> Result<(i32, String), StandInError> {
        let (code, said) = self.ask_in(&self.place.own, arguments, b"", programs)?;
        Ok((code, String::from_utf8_lossy(&said).into_owned()))
    }

    fn path(&self, inner: &str) -> PathBuf {
        self.folder.path().join(inner)
    }

    fn write(&self, inner: &str, content: &[u8]) -> Result<(), FileError> {
        fs::write_atomic(&self.path(inner), content)
    }

    /// Whether it is known which commit is checked out.
    pub(crate) fn knows_head(&self) -> bool {
        self.place.head().is_ok_and(|head| head.is_some())
    }

    /// Opens it with libgit2.
    ///
    /// # Errors
    ///
    /// When libgit2 cannot read it either.
    pub(crate) fn open(&self) -> Result<Repository, git2::Error> {
        let repository = Repository::open(self.folder.path())?;
        repository.set_workdir(&self.place.root, false)?;
        Ok(repository)
    }

    /// Whether Git tracks the file at `place`, or anything in the folder there.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn tracks(&self, place: &str, programs: &GitPrograms) -> Result<bool, StandInError> {
        // Git before 2.35 knows no `--sparse`, and has no sparse index.
        let list = |more: &[&str]| {
            let arguments = [&["ls-files", "-z"], more, &["--", place]].concat();
            self.ask(&arguments, b"", programs)
        };
        let (code, listed) = match list(&["--sparse"]) {
            Ok((0, listed)) => (0, listed),
            _ => list(&[])?,
        };
        if code == 0 { Ok(!listed.is_empty()) } else { Err(StandInError::Failed(listed)) }
    }

    /// The commit that is checked out; `None` before the first one.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn checked_out_commit(
        &self,
        programs: &GitPrograms,
    ) -> Result<Option<Commit>, StandInError> {
        // Only the repository itself has references in tables. This reads no objects and runs nothing.
        let arguments = ["rev-parse", "--verify", "--quiet", "HEAD"];
        let said = match self.ask_in(&self.place.own, &arguments, b"", programs)? {
            (0, said) => String::from_utf8_lossy(&said).trim().to_owned(),
            (1, _) => return Ok(None),
            (_, said) => return Err(StandInError::Failed(printable_end(&said))),
        };
        let commit = said.parse().map_err(|_| StandInError::Failed(said))?;
        // Status compares with it.
        self.write("HEAD", format!("{commit}\n").as_bytes())?;
        Ok(Some(commit))
    }

    /// The files below the folder `inside` that differ from the commit, which was asked for before, or that it does not have.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn differing_files(
        &self,
        inside: &str,
        programs: &GitPrograms,
    ) -> Result<Vec<String>, StandInError> {
        let place = if inside.is_empty() { "." } else { inside };
        // In submodules, `git` would use their own configuration.
        let arguments = [
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=all",
            "--",
            place,
        ];
        match self.ask(&arguments, b"", programs)? {
            // Two letters and a space come before each path.
            (0, listed) => {
                Ok(listed.split('\0').filter_map(|line| line.get(3..)).map(str::to_owned).collect())
            }
            (_, said) => Err(StandInError::Failed(said)),
        }
    }

    /// Whether Git ignores the file at `place`, or the folder, with a slash at its end.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn is_ignored_by_git(
        &self,
        place: &str,
        programs: &GitPrograms,
    ) -> Result<bool, StandInError> {
        let asked = format!("./{place}\0");
        // The index says whether it is tracked, which was asked before.
        let arguments = ["check-ignore", "--no-index", "-z", "--stdin"];
        says_yes(self.ask(&arguments, asked.as_bytes(), programs)?)
    }

    /// The files with these names that Git has and that are not checked out: their paths in the checkout, and their content, if that is on
    /// this machine.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn skipped(
        &self,
        is_wanted: &dyn Fn(&str) -> bool,
        programs: &GitPrograms,
    ) -> Result<Vec<(String, Option<String>)>, StandInError> {
        let (code, listed) = self.ask(&["ls-files", "-z", "-t", "--stage"], b"", programs)?;
        if code != 0 {
            return Err(StandInError::Failed(listed));
        }
        // Such as `S 100644 OID 0`, a tab, and the path.
        let mut found: Vec<(String, String)> = Vec::new();
        for entry in listed.split('\0') {
            let Some((facts, path)) = entry.split_once('\t') else { continue };
            let mut facts = facts.split(' ');
            let is_skipped = facts.next() == Some("S");
            let is_file = facts.next().is_some_and(|mode| mode.starts_with("100"));
            let Some(oid) = facts.next().filter(|_| is_skipped && is_file) else { continue };
            if is_wanted(path) && !self.place.root.join(path).exists() {
                found.push((path.to_owned(), oid.to_owned()));
            }
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<&str> = found.iter().map(|(_, oid)| &**oid).collect();
        let contents = self.contents(&names, programs)?.into_iter();
        let contents = contents.map(|content| String::from_utf8(content?).ok());
        Ok(found.iter().map(|(path, _)| path.clone()).zip(contents).collect())
    }

    /// The contents of objects with these names; `None` of those that are not on this machine.
    ///
    /// # Errors
    ///
    /// When `git` fails.
    pub(crate) fn contents(
        &self,
        names: &[&str],
        programs: &GitPrograms,
    ) -> Result<Vec<Option<Vec<u8>>>, StandInError> {
        let input: String = names.iter().map(|name| format!("{name}\n")).collect();
        let (code, said) = self.ask_bytes(&["cat-file", "--batch"], input.as_bytes(), programs)?;
        if code != 0 {
            return Err(StandInError::Failed(printable_end(&said)));
        }
        let mut rest = said.as_slice();
        Ok(names.iter().map(|_| next_object(&mut rest)).collect())
    }

    /// Runs `git` with this repository; returns how it ended, and what it printed, or said.
    ///
    /// # Errors
    ///
    /// When `git` cannot be run.
    pub(crate) fn ask(
        &self,
        arguments: &[&str],
        input: &[u8],
        programs: &GitPrograms,
    ) -> Result<(i32, String), StandInError> {
        let (code, said) = self.ask_bytes(arguments, input, programs)?;
        let said = match code {
            0 | 1 => String::from_utf8_lossy(&said).into_owned(),
            _ => printable_end(&said),
        };
        Ok((code, said))
    }

    /// As [`Self::ask`], with what it printed as it is.
    fn ask_bytes(
        &self,
        arguments: &[&str],
        input: &[u8],
        programs: &GitPrograms,
    ) -> Result<(i32, Vec<u8>), StandInError> {
        self.ask_in(self.folder.path(), arguments, input, programs)
    }

    /// As [`Self::ask_bytes`], with the repository whose data is in `git_dir`.
    fn ask_in(
        &self,
        git_dir: &Path,
        arguments: &[&str],
        input: &[u8],
        programs: &GitPrograms,
    ) -> Result<(i32, Vec<u8>), StandInError> {
        let mut command = programs.git().map_err(StandInError::Run)?;
        command.arg("--git-dir").arg(git_dir);
        command.arg("--work-tree").arg(&self.place.root);
        command.args(["-c", "core.fsmonitor=false"]).args(arguments);
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_LITERAL_PATHSPECS", pathspecs(arguments));
        // It may print before it has read everything, so it reads from a file.
        self.write("input", input)?;
        command.stdin(Stdio::from(fs::open(&self.path("input"))?));
        let output = command.output().map_err(StandInError::Run)?;
        let code = output.status.code().unwrap_or(-1);
        Ok((code, if matches!(code, 0 | 1) { output.stdout } else { output.stderr }))
    }
}

/// The next object that `cat-file --batch` printed; `None` if it is not on this machine.
fn next_object(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, after) = rest.split_at_checked(end)?;
    *rest = after.get(1..)?;
    let line = std::str::from_utf8(line).ok()?;
    let size: usize = line.rsplit(' ').next()?.parse().ok()?;
    let (content, after) = rest.split_at_checked(size)?;
    *rest = after.get(1..)?;
    Some(content.to_vec())
}

/// Whether the paths in these arguments are no patterns. `check-ignore` takes no patterns, and refuses to be told so.
fn pathspecs(arguments: &[&str]) -> &'static str {
    if arguments.first() == Some(&"check-ignore") { "0" } else { "1" }
}
