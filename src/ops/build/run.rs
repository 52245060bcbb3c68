//! One build: the program, and what it made, as a tree of the store together with the package.
//!
//! What it made arrives as a tar, and is judged as every archive is; nothing of it is looked at where it was made.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use mu_archive::{Sink, unpack_tar};
use mu_provider::{
    Digest, Entry, ErrorKind, InnerPath, ProviderError, Tree, TreeError, TreeWriter,
};

use crate::formats::manifest_names;
use crate::fs::{self, Lock, Sharing};
use crate::lock::LockedPackage;
use crate::manifest::BuildRecipe;
use crate::ops::apply::fetch::add_entry;
use crate::ops::build::confine::{self, Ended, Order, is_in_output};
use crate::ops::build::consent::escaped_command;
use crate::ops::session::shown::lines;
use crate::ops::{Code, CommandError, Session};
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
    pub(super) build: &'run BuildRecipe,
    /// The package itself.
    pub(super) stored: &'run Stored,
    /// What it depends on, by the place below the folder of packs.
    pub(super) dependencies: &'run BTreeMap<String, PathBuf>,
    pub(super) environment: &'run BTreeMap<String, String>,
    pub(super) key: &'run str,
    pub(super) confined: bool,
}

/// What a build made.
pub(super) struct BuildResult {
    /// The digest of the package together with its outputs.
    pub(super) digest: Digest,
    /// Whether it was built before.
    pub(super) reused: bool,
    /// The file with its output.
    pub(super) log: PathBuf,
}

impl Prepared<'_> {
    /// Takes the result of an earlier build, or builds. With `check`, builds twice, and compares.
    pub(super) fn make(&self, check: bool) -> Result<BuildResult, CommandError> {
        //     CACHE/builds/KEY/
        //         lock      held while it is built
        //         log       what the program has printed
        //         result    the digest of the tree; written last, so that a build that was killed has none, and runs again
        //         work/     where it runs, if it has no file system of its own
        let folder = self.session.environment.cache.join(FOLDER).join(self.key);
        fs::create_private_folder(&self.session.environment.cache, crate::env::IN_CACHE)?;
        fs::create_folder(&folder)?;
        let what = format!("{} {}", self.package.id, self.package.version);
        let _lock = Lock::acquire(&folder.join("lock"), Sharing::Exclusive, &mut || {
            self.session.events.waiting(&format!("another mu process is building {what}"));
        })?;
        let (log, result) = (folder.join("log"), folder.join("result"));
        if let Some(digest) = self.known(&result)?.filter(|_| !check) {
            return Ok(BuildResult { digest, reused: true, log });
        }
        let digest = self.run(&folder)?;
        if check {
            let again = self.run(&folder)?;
            if again != digest {
                return Err(self.differs(&digest, &again, &log)?);
            }
        }
        fs::write_atomic(&result, digest.to_string().as_bytes())?;
        Ok(BuildResult { digest, reused: false, log })
    }

    /// The result of an earlier build, if the store has it.
    fn known(&self, result: &Path) -> Result<Option<Digest>, CommandError> {
        let text = fs::read_text_if_there(result)?;
        let digest: Option<Digest> = text.and_then(|text| text.trim().parse().ok());
        Ok(digest.filter(|digest| self.session.store.contains(digest)))
    }

    /// Runs the program, and keeps what it made.
    fn run(&self, folder: &Path) -> Result<Digest, CommandError> {
        // Only what is not confined, or an older mu, leaves something there.
        let work = folder.join("work");
        fs::remove_folder(&work)?;
        let result = self.run_in(&work, &folder.join("log"));
        // The first error counts.
        let removed = fs::remove_folder(&work);
        let digest = result?;
        removed?;
        Ok(digest)
    }

    fn run_in(&self, work: &Path, log: &Path) -> Result<Digest, CommandError> {
        let (seconds, bytes) = self.limits();
        let mut running = confine::start(&Order {
            command: &self.build.command,
            environment: self.environment,
            outputs: &self.build.outputs,
            package: &self.stored.folder,
            dependencies: self.dependencies,
            work,
            log,
            confined: self.confined,
            seconds,
            bytes,
        })?;
        // First it says how it ended, then come the outputs. Last, `finish` says whether it was cut off (by time, or by
        // what it printed). Then nothing counts that came before.
        let ended = running.ended();
        let made = (ended == Ended::Status(0)).then(|| self.keep(running.outputs()));
        match (running.finish(), made) {
            (None, Some(made)) => made,
            (cut, _) => Err(self.failed(&cut.unwrap_or(ended), log, (seconds, bytes))),
        }
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

    /// Adds the package with its outputs, which come as a tar, to the store.
    fn keep(&self, outputs: impl Read) -> Result<Digest, CommandError> {
        let is_output = |path: &str| {
            self.build.outputs.iter().any(|output| is_in_output(path, output.as_str()))
        };
        let mut missing = None;
        let added = self.session.store.add(None, |writer| {
            // The package may have an older result in the place of an output.
            let own = self.stored.tree.entries().iter();
            for entry in own.filter(|entry| !is_output(&entry.path)) {
                add_entry(writer, &self.stored.folder.join(&entry.path), entry)?;
            }
            let mut arriving =
                Arriving { writer, open: self.build.outputs.iter().collect(), is_output };
            unpack_tar(outputs, &mut arriving).map_err(|error| {
                ProviderError::new(ErrorKind::Integrity, "its outputs are refused").because(error)
            })?;
            // An error here has the store keep nothing; the message for people is made below.
            missing = arriving.open.first().copied();
            match missing {
                Some(output) => Err(ProviderError::new(ErrorKind::Integrity, output.as_str())),
                None => Ok(self.stored.called.to_string()),
            }
        });
        let LockedPackage { id, version, .. } = self.package;
        if let Some(output) = missing {
            let message = format!(
                "the build of `{id}` {version} did not make `{output}`, which its manifest names in `outputs`"
            );
            return Err(CommandError::new(Code::Manifest, message));
        }
        let added = added.map_err(|error| {
            CommandError::from(error)
                .while_doing(format!("cannot keep what the build of `{id}` made"))
        })?;
        Ok(added.digest)
    }

    /// Refuses outputs that a build must not have.
    pub(super) fn check_outputs(
        package: &LockedPackage,
        build: &BuildRecipe,
    ) -> Result<(), CommandError> {
        let is_output =
            |name: &&str| build.outputs.iter().any(|output| is_in_output(name, output.as_str()));
        let Some(name) = manifest_names().find(|name| is_output(name)) else { return Ok(()) };
        let message = format!(
            "the outputs of the build of `{}` {} contain `{name}`, and a build must not change the manifest",
            package.id, package.version
        );
        Err(CommandError::new(Code::Manifest, message))
    }

    /// The error of a program that did not end well, with all that it said.
    fn failed(&self, ended: &Ended, log: &Path, (seconds, bytes): (u64, u64)) -> CommandError {
        let LockedPackage { id, version, .. } = self.package;
        let command = escaped_command(&self.build.command);
        let how = match ended {
            Ended::Status(status) => format!("ended with status {status}"),
            Ended::Signal(signal) => format!("was ended by signal {signal}"),
            Ended::Time => format!("was ended because it took longer than {seconds} s"),
            Ended::Size => format!("was ended because its files have more than {bytes} bytes"),
            Ended::Printed => "was ended because it printed too much".to_owned(),
            Ended::Stopped => "was ended".to_owned(),
            Ended::NotStarted(error) => format!("could not be started: {error}"),
            Ended::Unreadable(error) => format!("made what cannot be read: {error}"),
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
                "a build reaches no network, no files but its own, those of its dependencies and the system's, and has room for 4 GiB: see \
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

/// Takes what a build made into the tree of its package, and nothing but its outputs.
struct Arriving<'writer, 'run, F> {
    writer: &'writer mut TreeWriter,
    /// The outputs of which nothing has come yet.
    open: Vec<&'run InnerPath>,
    is_output: F,
}

impl<F: Fn(&str) -> bool> Arriving<'_, '_, F> {
    fn admit(&mut self, path: &[u8]) -> Result<(), TreeError> {
        let text = String::from_utf8_lossy(path);
        if !(self.is_output)(&text) {
            return Err(self.writer.refuse(path, "not one of the outputs"));
        }
        self.open.retain(|output| !is_in_output(&text, output.as_str()));
        Ok(())
    }
}

impl<F: Fn(&str) -> bool> Sink for Arriving<'_, '_, F> {
    fn directory(&mut self, path: &[u8]) -> Result<(), TreeError> {
        self.writer.directory(path)
    }

    fn symlink(&mut self, path: &[u8], target: &[u8]) -> Result<(), TreeError> {
        self.admit(path)?;
        self.writer.symlink(path, target)
    }

    fn file(
        &mut self,
        path: &[u8],
        executable: bool,
        content: &mut dyn Read,
    ) -> Result<(), TreeError> {
        self.admit(path)?;
        self.writer.file(path, executable, content)
    }

    fn odd(&mut self, path: &[u8], what: &'static str) -> Result<(), TreeError> {
        Err(self.writer.refuse(path, what))
    }
}
