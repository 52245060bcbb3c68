//! A program that may do little: read the system and what it was given, and write into its own folders. It has no network, ends in
//! time, and leaves no process behind.
//!
//! mu runs itself twice for this (`mu __confine`). The *keeper* is not confined: it starts the second, watches time and size, and ends every
//! process that is left. The second confines itself, and then becomes the program. What both do is in a file, the [`Job`].

mod keeper;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::fs::{self, AtPath as _, FileError};

/// The command of mu that confines.
pub(crate) const CONFINE: &str = "__confine";

/// The argument of the second run.
const INSIDE: &str = "--inside";

/// A program to run, and what it may do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// All of its environment.
    pub(super) environment: BTreeMap<String, String>,
    /// Where it starts.
    pub(super) folder: PathBuf,
    /// What it may read and run.
    pub(super) read: Vec<PathBuf>,
    /// Folders that it may change. Their size together is limited.
    pub(super) write: Vec<PathBuf>,
    /// The file that gets its output.
    pub(super) log: PathBuf,
    /// Whether it is confined at all.
    pub(super) confined: bool,
    /// How long it may take.
    pub(super) seconds: u64,
    /// How much it may write.
    pub(super) bytes: u64,
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
    /// It wrote too much.
    Size,
    /// Because mu was ended.
    Stopped,
    /// It could not be started.
    NotStarted(String),
}

/// Whether programs can be confined on this machine; the error says what is missing.
pub(super) fn is_supported() -> Result<(), String> {
    #[cfg(target_os = "linux")]
    return linux::is_supported();
    #[cfg(target_os = "macos")]
    return macos::is_supported();
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    Err("mu cannot confine programs on this system".to_owned())
}

/// Folders of the system that programs may read: programs, libraries, and the few settings that these need.
pub(super) fn system_folders() -> Vec<PathBuf> {
    [
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
        "/etc/pki",
        "/etc/ssl",
    ]
    .map(PathBuf::from)
    .to_vec()
}

/// Runs a program as `job` says; `file` is where the job is written for the other processes.
pub(super) fn run(job: &Job, file: &Path) -> Result<Ended, FileError> {
    let text = serde_json::to_string(job).expect("texts and numbers always serialise");
    fs::write_atomic(file, text.as_bytes())?;
    let program = std::env::current_exe().at("find the program", Path::new("mu"))?;
    let keeper = Command::new(&program)
        .arg(CONFINE)
        .arg(file)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .at("run", &program)?;
    Ok(serde_json::from_slice(&keeper.stdout).unwrap_or(Ended::Stopped))
}

/// Does what `mu __confine` with these arguments does; returns its exit status. `None` if they are arguments of another command.
pub(crate) fn asked_for(arguments: &[OsString]) -> Option<(u8, String)> {
    if arguments.get(1).is_none_or(|first| first != CONFINE) {
        return None;
    }
    let (is_inside, file) = match &arguments[2..] {
        [file] => (false, file),
        [inside, file] if inside == INSIDE => (true, file),
        _ => return Some((2, String::new())),
    };
    let job = fs::read_text(Path::new(file)).ok().and_then(|text| serde_json::from_str(&text).ok());
    let Some(job): Option<Job> = job else { return Some((2, String::new())) };
    Some(match is_inside {
        true => (127, become_program(&job)),
        false => {
            let ended = keeper::keep(&job, Path::new(file));
            (0, serde_json::to_string(&ended).expect("texts and numbers always serialise"))
        }
    })
}

/// Confines this process, and becomes the program. Only a failure returns.
#[cfg(unix)]
fn become_program(job: &Job) -> String {
    use std::os::unix::process::CommandExt as _;

    let [program, arguments @ ..] = job.command.as_slice() else { return String::new() };
    // Files and connections that whoever started mu left open are not the program's.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    // A session of its own has no terminal.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let limit = |most| rustix::process::Rlimit { current: Some(most), maximum: Some(most) };
    for (resource, most) in
        [(rustix::process::Resource::Fsize, job.bytes), (rustix::process::Resource::Core, 0)]
    {
        let _ = rustix::process::setrlimit(resource, limit(most));
    }
    let mut command = Command::new(program);
    command.args(arguments);
    #[cfg(target_os = "linux")]
    if job.confined
        && let Err(error) = linux::confine(job)
    {
        return format!("mu cannot confine `{program}`: {error}\n");
    }
    #[cfg(target_os = "macos")]
    if job.confined {
        command = macos::confined(job);
    }
    format!("mu cannot run `{program}`: {}\n", command.exec())
}

#[cfg(not(unix))]
fn become_program(job: &Job) -> String {
    let [program, arguments @ ..] = job.command.as_slice() else { return String::new() };
    match Command::new(program).args(arguments).status() {
        Ok(_) => String::new(),
        Err(error) => format!("mu cannot run `{program}`: {error}\n"),
    }
}
