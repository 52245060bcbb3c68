//! One build: a copy of the package, the program in it, and what it made, as a tree of the store.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use mu_provider::{Digest, Entry, Mode, Tree};

use crate::formats::manifest_names;
use crate::fs::{self, AtPath as _, FileError, Lock, Sharing};
use crate::lock::LockedPackage;
use crate::manifest::Build;
use crate::ops::apply::fetch::{add_entry, copy_writable};
use crate::ops::build::confine::{self, Ended, Job};
use crate::ops::build::consent::shown;
use crate::ops::build::key::EPOCH;
use crate::ops::session::words::lines;
use crate::ops::{Code, CommandError, Session};
use crate::packs::hash_folder;
use crate::store::Stored;

/// The folder of builds in the cache.
const FOLDER: &str = "builds";

/// How long a build may take, in seconds.
const SECONDS: u64 = 30 * 60;

/// How much it may write.
const BYTES: u64 = 4 << 30;

/// A build that is ready to run.
pub(super) struct Prepared<'run> {
    pub(super) session: &'run Session,
    pub(super) package: &'run LockedPackage,
    pub(super) build: &'run Build,
    /// The package itself.
    pub(super) stored: &'run Stored,
    /// What it depends on, by the place below the folder of packs.
    pub(super) dependencies: &'run BTreeMap<String, PathBuf>,
    pub(super) environment: &'run BTreeMap<String, String>,
    pub(super) key: &'run str,
    pub(super) confined: bool,
}

/// What a build made.
pub(super) struct Made {
    /// The digest of the package together with its outputs.
    pub(super) digest: Digest,
    /// Whether it was built before.
    pub(super) reused: bool,
    /// The file with its output.
    pub(super) log: PathBuf,
}

impl Prepared<'_> {
    /// Takes the result of an earlier build, or builds. With `check`, builds twice, and compares.
    ///
    /// # Errors
    ///
    /// When the program fails, does not make its outputs, or makes something else the second time.
    pub(super) fn make(&self, check: bool) -> Result<Made, CommandError> {
        let folder = self.session.environment.cache.join(FOLDER).join(self.key);
        fs::create_private_folder(&self.session.environment.cache, crate::env::IN_CACHE)?;
        fs::create_folder(&folder)?;
        let what = format!("{} {}", self.package.id, self.package.version);
        let _lock = Lock::acquire(&folder.join("lock"), Sharing::Exclusive, &mut || {
            self.session.events.waiting(&format!("another mu process is building {what}"));
        })?;
        let (log, result) = (folder.join("log"), folder.join("result"));
        if let Some(digest) = self.known(&result)?.filter(|_| !check) {
            return Ok(Made { digest, reused: true, log });
        }
        let digest = self.run(&folder)?;
        if check {
            let again = self.run(&folder)?;
            if again != digest {
                return Err(self.differs(&digest, &again, &log)?);
            }
        }
        fs::write_atomic(&result, digest.to_string().as_bytes())?;
        Ok(Made { digest, reused: false, log })
    }

    /// The result of an earlier build, if the store has it.
    fn known(&self, result: &Path) -> Result<Option<Digest>, CommandError> {
        let text = fs::read_text_if_there(result)?;
        let digest: Option<Digest> = text.and_then(|text| text.trim().parse().ok());
        Ok(digest.filter(|digest| self.session.store.contains(digest)))
    }

    /// Runs the program, and keeps what it made.
    fn run(&self, folder: &Path) -> Result<Digest, CommandError> {
        let work = folder.join("work");
        fs::remove_folder(&work)?;
        fs::remove_file(&folder.join("log"))?;
        let result = self.run_in(&work, &folder.join("log"));
        // The first error counts.
        let removed = fs::remove_folder(&work);
        let digest = result?;
        removed?;
        Ok(digest)
    }

    fn run_in(&self, work: &Path, log: &Path) -> Result<Digest, CommandError> {
        let [tree, temporary, home, packs] =
            ["tree", "tmp", "home", "packs"].map(|name| work.join(name));
        for part in [&tree, &temporary, &home, &packs] {
            fs::create_folder(part)?;
        }
        copy_writable(self.stored, &tree)?;
        set_times(self.stored, &tree)?;
        let mut read = confine::system_folders();
        read.push(packs.clone());
        for (place, folder) in self.dependencies {
            let link = packs.join(place);
            fs::create_folder(link.parent().unwrap_or(&packs))?;
            fs::symlink_folder(folder, &link)?;
            read.push(folder.clone());
        }
        let mut environment = self.environment.clone();
        for (name, folder) in [("HOME", &home), ("TMPDIR", &temporary), ("MU_PACKS", &packs)] {
            environment.insert(name.to_owned(), folder.display().to_string());
        }
        let (seconds, bytes) = self.limits();
        let job = Job {
            command: self.build.command.clone(),
            environment,
            folder: tree.clone(),
            read,
            write: vec![tree.clone(), temporary, home],
            log: log.to_owned(),
            confined: self.confined,
            seconds,
            bytes,
        };
        let ended = confine::run(&job, &work.join("job"))?;
        if ended != Ended::Status(0) {
            return Err(self.failed(&ended, log, (seconds, bytes)));
        }
        self.keep(&tree)
    }

    fn limits(&self) -> (u64, u64) {
        // Tests cannot wait for half an hour.
        #[cfg(debug_assertions)]
        if let Some(text) = self.session.environment.variable("MU_TEST_BUILD_LIMITS")
            && let Some((seconds, bytes)) = text.split_once(' ')
            && let (Ok(seconds), Ok(bytes)) = (seconds.parse(), bytes.parse())
        {
            return (seconds, bytes);
        }
        (SECONDS, BYTES)
    }

    /// Adds the package with its outputs to the store.
    fn keep(&self, tree: &Path) -> Result<Digest, CommandError> {
        // The walk follows no links, so it stays in this folder whatever the program made.
        let made = hash_folder(tree, &HashSet::new());
        let made = made.map_err(|error| CommandError::from_error(Code::Integrity, error))?;
        let is_output = |path: &str| self.build.outputs.iter().any(|output| is_in(path, output));
        for output in &self.build.outputs {
            if !made.entries().iter().any(|entry| is_in(&entry.path, output)) {
                let message = format!(
                    "the build of `{}` {} did not make `{output}`, which its manifest names in `outputs`",
                    self.package.id, self.package.version
                );
                return Err(CommandError::new(Code::Manifest, message));
            }
        }
        if let Some(name) = manifest_names().find(|name| is_output(name)) {
            let message = format!(
                "the outputs of the build of `{}` {} contain `{name}`, and a build must not change the manifest",
                self.package.id, self.package.version
            );
            return Err(CommandError::new(Code::Manifest, message));
        }
        let entries = self.stored.tree.entries().iter().filter(|entry| !is_output(&entry.path));
        let old = entries.map(|entry| (self.stored.folder.join(&entry.path), entry));
        let new = made.entries().iter().filter(|entry| is_output(&entry.path));
        let new = new.map(|entry| (tree.join(&entry.path), entry));
        let mut all: Vec<(PathBuf, &Entry)> = old.chain(new).collect();
        all.sort_by(|left, right| left.1.path.cmp(&right.1.path));
        let added = self.session.store.add(None, |writer| {
            all.iter().try_for_each(|(path, entry)| add_entry(writer, path, entry))?;
            Ok(self.stored.called.to_string())
        });
        let added = added.map_err(|error| {
            let what = format!("cannot keep what the build of `{}` made", self.package.id);
            CommandError::from(error).while_doing(what)
        })?;
        Ok(added.digest)
    }

    /// The error of a program that did not end well, with all that it said.
    fn failed(&self, ended: &Ended, log: &Path, (seconds, bytes): (u64, u64)) -> CommandError {
        let LockedPackage { id, version, .. } = self.package;
        let command = shown(&self.build.command);
        let how = match ended {
            Ended::Status(status) => format!("ended with status {status}"),
            Ended::Signal(signal) => format!("was ended by signal {signal}"),
            Ended::Time => format!("was ended because it took longer than {seconds} s"),
            Ended::Size => format!("was ended because it wrote more than {bytes} bytes"),
            Ended::Stopped => "was ended".to_owned(),
            Ended::NotStarted(error) => format!("could not be started: {error}"),
        };
        let said = fs::read_if_there(log).ok().flatten().unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let said =
            if said.trim().is_empty() { String::new() } else { format!("\n{}", said.trim_end()) };
        let error = CommandError::new(
            Code::Io,
            format!("the build of `{id}` {version} failed: `{command}` {how}{said}"),
        );
        let error = match self.confined {
            true => error.hint(
                "a build reaches no network, and no files but its own, those of its dependencies and the system's: see \
                 docs/build.md",
            ),
            false => error,
        };
        error.with_details(serde_json::json!({ "id": id.to_string(), "version": version, "log": log.display().to_string() }))
    }

    /// The error of a build that made something else the second time.
    fn differs(
        &self,
        first: &Digest,
        second: &Digest,
        log: &Path,
    ) -> Result<CommandError, CommandError> {
        let tree = |digest: &Digest| -> Result<Vec<Entry>, CommandError> {
            let found = self.session.store.find(digest)?;
            Ok(found.map(|stored| Tree::entries(&stored.tree).to_vec()).unwrap_or_default())
        };
        let (first, second) = (tree(first)?, tree(second)?);
        let in_one = |one: &[Entry], other: &[Entry]| -> Vec<String> {
            one.iter()
                .filter(|entry| !other.contains(entry))
                .map(|entry| entry.path.clone())
                .collect()
        };
        let mut differing = in_one(&first, &second);
        differing.extend(in_one(&second, &first));
        differing.sort();
        differing.dedup();
        let LockedPackage { id, version, .. } = self.package;
        let message = format!(
            "the build of `{id}` {version} is not reproducible: it was run twice, and these files differ:{}",
            lines(&differing, 10)
        );
        Ok(CommandError::new(Code::Integrity, message)
            .hint("dates, random numbers and the order of files are the usual causes; SOURCE_DATE_EPOCH is set for builds")
            .with_details(serde_json::json!({ "id": id.to_string(), "version": version, "files": differing, "log": log.display().to_string() })))
    }
}

/// Whether a path is an output, or is in one.
fn is_in(path: &str, output: &str) -> bool {
    let output = output.trim_start_matches("./").trim_end_matches('/');
    path == output || path.strip_prefix(output).is_some_and(|rest| rest.starts_with('/'))
}

/// Gives the files of a package in a folder one time.
fn set_times(stored: &Stored, folder: &Path) -> Result<(), FileError> {
    for entry in stored.tree.entries().iter().filter(|entry| entry.mode != Mode::Symlink) {
        let path = folder.join(&entry.path);
        let mut writing = std::fs::OpenOptions::new();
        let file = fs::open_with(&path, writing.write(true))?;
        file.set_modified(UNIX_EPOCH + Duration::from_secs(EPOCH)).at("set the time of", &path)?;
    }
    Ok(())
}
