//! A program that may do little: read the system and what it was given, and write into its own folders. It has no network, ends in
//! time, and leaves nothing behind.
//!
//! On Linux, `bwrap` makes the walls: the program has namespaces of its own, and a file system in memory. mu itself is the first process in there
//! ([`first`]): it runs the program, ends everything that is left, and then sends the outputs as a tar. What comes out is as hostile as any archive;
//! nothing that the program made is looked at from outside. A program that is not confined runs under the same first process, in a folder of the cache.

mod first;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use mu_provider::{InnerPath, threads};
use serde::{Deserialize, Serialize};

use crate::fs::{self, AtPath as _, FileError};

pub(super) use self::first::is_in_output;

/// The command of mu that is the first process of a build.
pub(crate) const FIRST: &str = "__build";

/// The time that builds take for the time of their sources: 1980, the first that every archive format has.
pub(super) const EPOCH: u64 = 315_532_800;

/// The argument of a first process that only shows that it can run.
const TRY: &str = "--try";

/// The most that a program may print, in bytes. Its files have a limit of their own.
const PRINTED: u64 = 64 << 20;

/// The longest line in which the first process says how the program ended.
const LINE: u64 = 64 << 10;

/// What to run, and what it may see.
pub(super) struct Order<'run> {
    /// The program and its arguments.
    pub(super) command: &'run [String],
    /// Its environment, except for its own folders.
    pub(super) environment: &'run BTreeMap<String, String>,
    /// What to take of what it makes.
    pub(super) outputs: &'run [InnerPath],
    /// The package, of which it gets a copy.
    pub(super) package: &'run Path,
    /// What the package depends on, by the place below the folder of packs.
    pub(super) dependencies: &'run BTreeMap<String, PathBuf>,
    /// Where it runs if it has no file system of its own; the caller removes it afterwards.
    pub(super) work: &'run Path,
    /// The file that gets what it prints.
    pub(super) log: &'run Path,
    /// Whether it is confined.
    pub(super) confined: bool,
    /// How long it may take.
    pub(super) seconds: u64,
    /// How much it may write.
    pub(super) bytes: u64,
}

/// The folders of a program, as it sees them.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Places {
    /// The package itself.
    package: PathBuf,
    /// The packages that it depends on.
    packs: PathBuf,
    /// Its copy of the package, where it starts.
    tree: PathBuf,
    temporary: PathBuf,
    home: PathBuf,
}

/// What the first process is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Job {
    command: Vec<String>,
    environment: BTreeMap<String, String>,
    outputs: Vec<InnerPath>,
    places: Places,
    confined: bool,
    bytes: u64,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ended {
    /// By itself, with this status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// It took too long.
    Time,
    /// Its files became too large.
    Size,
    /// It printed too much.
    Printed,
    /// Because mu was ended, or the walls could not be made.
    Stopped,
    /// It could not be started.
    NotStarted(String),
    /// What it made cannot be read.
    Unreadable(String),
}

/// Why programs cannot be confined on this machine, and what to do about it.
#[derive(Debug)]
pub(crate) struct Unconfined {
    /// What was tried, and what it said.
    pub(crate) why: String,
    pub(crate) advice: String,
}

/// Tries whether programs can be confined on this machine; says what does it.
pub(crate) fn is_supported() -> Result<String, Unconfined> {
    #[cfg(target_os = "linux")]
    return linux::is_supported();
    #[cfg(target_os = "macos")]
    return macos::is_supported();
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    Err(Unconfined {
        why: "mu cannot confine programs on this system".to_owned(),
        advice: "build on Linux or macOS".to_owned(),
    })
}

/// What programs may read of the system: programs, libraries, and the few settings that these need.
pub(super) const SYSTEM: [&str; 25] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system/sw",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    // Beside these, private keys are kept.
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];

/// A program that runs.
pub(super) struct RunningProgram {
    answer: BufReader<ChildStdout>,
    events: Sender<Event>,
    watch: JoinHandle<Option<Ended>>,
}

/// What ends the watch over a program.
enum Event {
    /// Everything that was wanted of it has come.
    Finished,
    /// It printed too much.
    Printed,
}

/// Starts a program.
pub(super) fn start(order: &Order<'_>) -> Result<RunningProgram, FileError> {
    //     mu ── stdin: the job, then nothing until the end ──> first process ──> program
    //      <─── stdout: how it ended, then its outputs ─────────────┘              │
    //      <─── stderr: all that the program prints ───────────────────────────────┘
    let mu = std::env::current_exe().at("find the program", Path::new("mu"))?;
    let (mut command, places) = walls(order, &mu)?;
    let mut environment = order.environment.clone();
    for (name, folder) in
        [("HOME", &places.home), ("TMPDIR", &places.temporary), ("MU_PACKS", &places.packs)]
    {
        environment.insert(name.to_owned(), folder.display().to_string());
    }
    let job = Job {
        command: order.command.to_vec(),
        environment,
        outputs: order.outputs.to_vec(),
        places,
        confined: order.confined,
        bytes: order.bytes,
    };
    let mut writing = std::fs::OpenOptions::new();
    // The last build's output goes, also if this one does not start.
    let log = fs::open_with(order.log, writing.create(true).write(true).truncate(true))?;
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().at("run", Path::new(command.get_program()))?;
    let (mut lifeline, answer, said) = (
        child.stdin.take().expect("is piped"),
        child.stdout.take().expect("is piped"),
        child.stderr.take().expect("is piped"),
    );
    // One thread copies what is printed, and one waits for the end. The caller reads the answer meanwhile, so no pipe
    // can fill up and block the others.
    let (events, seen) = channel();
    let (most, sender) = (order.bytes.min(PRINTED), events.clone());
    // If one of the threads cannot be started, the first process sees its lifeline end, and ends, too.
    let printing = threads::start(move || print(said, log, most, &sender));
    let printing = printing.at("watch", Path::new(command.get_program()))?;
    let text = serde_json::to_string(&job).expect("texts and numbers always serialise");
    // If it cannot be told, it has ended, and its answer is missing.
    let _ = writeln!(lifeline, "{text}").and_then(|()| lifeline.flush());
    let limit = Duration::from_secs(order.seconds);
    let is_alone = cfg!(target_os = "linux") && order.confined;
    let watch = threads::start(move || {
        let cut = watch(child, lifeline, &seen, limit, is_alone);
        // What is confined has ended, and so has what it prints. Otherwise, something that is left may keep its end open for ever.
        if is_alone {
            let _ = printing.join();
        }
        cut
    });
    let watch = watch.at("watch", Path::new(command.get_program()))?;
    Ok(RunningProgram { answer: BufReader::new(answer), events, watch })
}

/// The command that starts the first process behind its walls, and the folders there.
fn walls(order: &Order<'_>, mu: &Path) -> Result<(Command, Places), FileError> {
    #[cfg(target_os = "linux")]
    if order.confined {
        return linux::command(order, mu);
    }
    // Without a file system of its own, its folders are in the cache. Dependencies are links into the store, whose
    // files are read-only.
    let work = order.work;
    let [tree, temporary, home, packs] =
        ["tree", "tmp", "home", "packs"].map(|name| work.join(name));
    fs::create_folder(&packs)?;
    for (place, folder) in shown(order.dependencies)? {
        let link = packs.join(place);
        fs::create_folder(link.parent().unwrap_or(&packs))?;
        fs::symlink_folder(&folder, &link)?;
    }
    let places = Places { package: order.package.to_owned(), packs, tree, temporary, home };
    #[cfg(target_os = "macos")]
    if order.confined {
        return Ok((macos::command(order, mu), places));
    }
    let mut command = Command::new(mu);
    command.arg(FIRST);
    Ok((command, places))
}

/// What is shown of dependencies, by the place below the folder of packs. Where one is inside another one, the outer one is shown in parts.
fn shown(dependencies: &BTreeMap<String, PathBuf>) -> Result<Vec<(String, PathBuf)>, FileError> {
    let mut open: Vec<(String, PathBuf)> = dependencies.clone().into_iter().collect();
    let mut shown = Vec::new();
    // With `aws/net` and `aws/net/lib`, `aws/net` is shown as each of its entries but `lib`. An entry that has packs
    // further inside is opened in the same way. It ends because each one is deeper than the last, and at some depth
    // nothing is inside.
    while let Some((place, path)) = open.pop() {
        let inside = format!("{place}/");
        let mut after = dependencies.range(inside.clone()..);
        if after.next().is_none_or(|(next, _)| !next.starts_with(&inside)) {
            shown.push((place, path));
            continue;
        }
        for entry in fs::entries(&path)? {
            let inner = format!("{inside}{}", entry.file_name().to_string_lossy());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_taken = dependencies.range(inner.clone()..).next();
            let is_taken = is_taken.is_some_and(|(next, _)| {
                *next == inner || !is_folder && next.starts_with(&format!("{inner}/"))
            });
            if !is_taken && entry.path().exists() {
                open.push((inner, entry.path()));
            }
        }
    }
    Ok(shown)
}

/// Keeps what a program prints, to the limit.
fn print(mut said: ChildStderr, mut log: std::fs::File, most: u64, events: &Sender<Event>) {
    let copied = std::io::copy(&mut said.by_ref().take(most), &mut log).unwrap_or_default();
    if copied == most && said.read(&mut [0]).is_ok_and(|count| count > 0) {
        let _ = events.send(Event::Printed);
    }
}

/// Waits until everything has come, or something must end the program; then ends it, and says why it had to.
fn watch(
    mut child: Child,
    lifeline: ChildStdin,
    seen: &Receiver<Event>,
    limit: Duration,
    is_alone: bool,
) -> Option<Ended> {
    let cut = match seen.recv_timeout(limit) {
        // `Disconnected`: whoever waited for the outputs has given up, so nothing is cut off any more.
        Ok(Event::Finished) | Err(RecvTimeoutError::Disconnected) => None,
        Ok(Event::Printed) => Some(Ended::Printed),
        Err(RecvTimeoutError::Timeout) => Some(Ended::Time),
    };
    // The first process ends what it has started when nobody holds the other end.
    drop(lifeline);
    if is_alone {
        // With it, its namespaces end, and everything in them.
        let _ = child.kill();
    }
    let _ = child.wait();
    cut
}

impl RunningProgram {
    /// How the program ended.
    pub(super) fn ended(&mut self) -> Ended {
        let mut line = Vec::new();
        let read = self.answer.by_ref().take(LINE).read_until(b'\n', &mut line);
        read.ok().and_then(|_| serde_json::from_slice(&line).ok()).unwrap_or(Ended::Stopped)
    }

    /// What it made, as a tar: hostile, as the whole answer is.
    pub(super) fn outputs(&mut self) -> impl Read + '_ {
        &mut self.answer
    }

    /// Ends everything that is left of it; says why it had to be ended before, if so.
    pub(super) fn finish(self) -> Option<Ended> {
        let Self { answer, events, watch } = self;
        // First this: a first process that is still sending would wait for ever.
        drop(answer);
        let _ = events.send(Event::Finished);
        watch.join().unwrap_or(Some(Ended::Stopped))
    }
}

/// Does what `mu __build` with these arguments does; returns its exit status. `None` if they are arguments of another command.
pub(crate) fn run_confined_build(arguments: &[OsString]) -> Option<u8> {
    match arguments.get(1..)? {
        [first] if first == FIRST => Some(first::run()),
        [first, only] if first == FIRST && only == TRY => Some(first::tried()),
        _ => None,
    }
}
