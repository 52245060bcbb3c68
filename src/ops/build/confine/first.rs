//! The first process of a build: it copies the package, runs the program, ends everything that is left of it, and then sends what it made.
//!
//! On Linux, a confined one is the first process of its namespace: what it ends is everything that there is, and if it ends itself, or is ended,
//! nothing is left. Others end the program's process group. Its input is open as long as the mu outside lives.
//!
//! It sends what the program made as a tar. That code runs where the program ran, and decides nothing: the mu outside judges each entry, as of every archive.
//!
//! It follows no link, and sends what is neither file nor link as a pipe, so that it is refused and not passed over.

use std::io::{self, BufRead as _, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, UNIX_EPOCH};

use mu_provider::{Folder, InnerPath, Kind, Limits, threads};

use super::{EPOCH, Ended, Job};
use crate::fs::{self, AtPath as _, FileError};

/// How often it looks whether there is room left.
const PAUSE: Duration = Duration::from_millis(250);

/// What the first process waits for.
enum Event {
    Ended(Ended),
    /// Nobody is outside any more.
    Stop,
}

/// Shows that it can run.
pub(super) fn tried() -> u8 {
    #[cfg(target_os = "linux")]
    if let Err(error) = super::linux::restrict(super::linux::WRITABLE) {
        let _ = writeln!(io::stderr(), "{error}");
        return 1;
    }
    0
}

/// Does the job that its input describes, and answers in its output.
pub(super) fn run() -> u8 {
    let mut input = io::BufReader::new(io::stdin());
    let mut line = String::new();
    let job = input.read_line(&mut line).ok().and_then(|_| serde_json::from_str(&line).ok());
    let Some(job): Option<Job> = job else { return 2 };
    let (ended, outputs) = do_job(&job, input);
    let mut line = serde_json::to_string(&ended).expect("texts and numbers always serialise");
    line.push('\n');
    let mut answer = io::BufWriter::with_capacity(128 << 10, io::stdout().lock());
    let mut sent = answer.write_all(line.as_bytes());
    if let Some(outputs) = outputs {
        sent = sent.and_then(|()| outputs.write(&mut answer));
    }
    // What is not sent is missed outside.
    u8::from(sent.and_then(|()| answer.flush()).is_err())
}

fn do_job(job: &Job, input: impl Read + Send + 'static) -> (Ended, Option<Outputs>) {
    let (sender, events) = channel();
    let started = restrict(job).and_then(|()| {
        copy(job).map_err(|error| error.to_string())?;
        start(job, input, &sender)
    });
    let ended = match started {
        Ok(program) => {
            let ended = wait(job, &events);
            end_all(job, program);
            ended
        }
        Err(error) => Ended::NotStarted(error),
    };
    if ended != Ended::Status(0) {
        return (ended, None);
    }
    match Outputs::find(&job.places.tree, &job.outputs, is_alone(job)) {
        Ok(outputs) if outputs.bytes > job.bytes => (Ended::Size, None),
        Ok(outputs) => (ended, Some(outputs)),
        Err(error) => (Ended::Unreadable(error.to_string()), None),
    }
}

/// Whether nothing runs here but this process and what it has started.
fn is_alone(job: &Job) -> bool {
    cfg!(target_os = "linux") && job.confined && std::process::id() == 1
}

/// Takes from this process, and so from what it starts, what the program must not have.
fn restrict(job: &Job) -> Result<(), String> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

        // Files and connections that whoever started mu left open are not the program's.
        close_fds::set_fds_cloexec_threadsafe(3, &[]);
        // Ctrl-C ends the mu outside, and the missing input this one, which ends the rest.
        let _ = rustix::process::setsid();
        umask(rustix::fs::Mode::from_raw_mode(0o022));
        // Where it is alone, its file system has a size, and only its own processes count (the superuser's never do).
        let limit = match is_alone(job) {
            true => (Resource::Nproc, 8_192),
            false => (Resource::Fsize, job.bytes),
        };
        for (resource, most) in [limit, (Resource::Core, 0)] {
            let most = getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
            let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
        }
    }
    #[cfg(target_os = "linux")]
    if job.confined {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};

        if !is_alone(job) {
            return Err("mu is not the first process behind the walls".to_owned());
        }
        // The program cannot look into this process, or use its connection to the outside.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())?;
        super::linux::restrict(super::linux::WRITABLE)?;
    }
    Ok(())
}

/// Makes the folders, with a copy of the package in which all files have one time.
fn copy(job: &Job) -> Result<(), FileError> {
    for folder in [&job.places.tree, &job.places.temporary, &job.places.home] {
        fs::create_folder(folder)?;
    }
    copy_folder(&job.places.package, &job.places.tree)
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), FileError> {
    for entry in fs::entries(from)? {
        // Of a file in the store, its content and whether it is a program are taken; there, it is read-only, and its
        // time differs from machine to machine.
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().at("look at", &from)?;
        if kind.is_symlink() {
            fs::symlink_file(&fs::read_link(&from)?, &to)?;
        } else if kind.is_dir() {
            fs::create_folder(&to)?;
            copy_folder(&from, &to)?;
        } else {
            let mode = match fs::is_executable(&fs::metadata(&from)?) {
                true => mu_provider::Mode::Executable,
                false => mu_provider::Mode::File,
            };
            fs::copy(&from, &to)?;
            crate::packs::make_writable(&to, mode)?;
            let mut writing = std::fs::OpenOptions::new();
            let file = fs::open_with(&to, writing.write(true))?;
            let time = UNIX_EPOCH + Duration::from_secs(EPOCH);
            file.set_modified(time).at("set the time of", &to)?;
        }
    }
    Ok(())
}

/// Starts the program, and what waits for its end and for that of the mu outside. Returns the program's number.
fn start(
    job: &Job,
    mut input: impl Read + Send + 'static,
    events: &Sender<Event>,
) -> Result<u32, String> {
    let [program, arguments @ ..] = job.command.as_slice() else { return Err(String::new()) };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&job.environment).current_dir(&job.places.tree);
    // Everything that it prints goes one way; the other one is for the answer.
    command.stdin(Stdio::null()).stdout(io::stderr()).stderr(io::stderr());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let words = |error: io::Error| error.to_string();
    let sender = events.clone();
    // Before the program, which could not be watched without them.
    let (starts, started) = channel();
    threads::start(move || {
        if let Ok(child) = started.recv() {
            let _ = sender.send(Event::Ended(wait_for(child)));
        }
    })
    .map_err(words)?;
    let sender = events.clone();
    threads::start(move || {
        let _ = io::copy(&mut input, &mut io::sink());
        let _ = sender.send(Event::Stop);
    })
    .map_err(words)?;
    let child = command.spawn().map_err(words)?;
    let id = child.id();
    // The thread waits for it.
    let _ = starts.send(child);
    Ok(id)
}

/// Waits until the program has ended, or must end.
fn wait(job: &Job, events: &Receiver<Event>) -> Ended {
    loop {
        match events.recv_timeout(PAUSE) {
            // A full disk makes most programs end with a message of their own, so the true reason is looked for.
            Ok(Event::Ended(ended)) if ended != Ended::Status(0) && is_full(job) => {
                return Ended::Size;
            }
            Ok(Event::Ended(ended)) => return ended,
            Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return Ended::Stopped,
            Err(RecvTimeoutError::Timeout) if is_full(job) => return Ended::Size,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Whether the file system of a program has no room left. Where it has none of its own, the system limits each file alone.
fn is_full(job: &Job) -> bool {
    #[cfg(target_os = "linux")]
    return is_alone(job)
        && rustix::fs::statvfs(&job.places.tree).is_ok_and(|room| room.f_bavail == 0);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = job;
        false
    }
}

/// Waits for the end of the program; meanwhile, other processes become this one's, and end, too.
#[cfg(unix)]
fn wait_for(child: std::process::Child) -> Ended {
    use rustix::process::{WaitOptions, wait};

    let program = i32::try_from(child.id()).ok();
    // As the first process of a namespace, it gets every process whose parent has ended. They have to be waited for, or
    // their numbers would run out.
    loop {
        match rustix::io::retry_on_intr(|| wait(WaitOptions::empty())) {
            Ok(Some((id, status))) if Some(id.as_raw_pid()) == program => {
                return match status.terminating_signal() {
                    Some(signal) => Ended::Signal(signal),
                    None => Ended::Status(status.exit_status().unwrap_or(-1)),
                };
            }
            Ok(_) => {}
            Err(_) => return Ended::Stopped,
        }
    }
}

#[cfg(not(unix))]
fn wait_for(mut child: std::process::Child) -> Ended {
    let status = child.wait().ok().and_then(|status| status.code());
    status.map_or(Ended::Stopped, Ended::Status)
}

/// Ends every process but this one where it is alone, else the program's group; returns when they have ended.
#[cfg(unix)]
fn end_all(job: &Job, program: u32) {
    use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};

    // The group of the first process stands for all processes.
    let group = match is_alone(job) {
        true => Some(Pid::INIT),
        false => i32::try_from(program).ok().filter(|id| *id > 1).and_then(Pid::from_raw),
    };
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    // No process can be made while the system goes through them all, so this ends.
    while is_alone(job)
        && !matches!(
            rustix::io::retry_on_intr(|| wait(WaitOptions::empty())),
            Err(rustix::io::Errno::CHILD)
        )
    {}
}

#[cfg(not(unix))]
fn end_all(_job: &Job, _program: u32) {}

/// The outputs of a program, found.
struct Outputs {
    tree: Folder,
    found: Vec<(String, Kind)>,
    /// The size of all files together.
    pub(super) bytes: u64,
}

impl Outputs {
    /// Finds what is in `outputs` below the folder `tree`. If nothing else runs there, it `opens` what it could not read.
    pub(super) fn find(tree: &Path, outputs: &[InnerPath], opens: bool) -> io::Result<Self> {
        let mut walk = Walk { outputs, opens, found: Vec::new(), bytes: 0 };
        let folder = Folder::open(tree)?;
        walk.folder(&folder, "")?;
        Ok(Self { tree: folder, found: walk.found, bytes: walk.bytes })
    }

    /// Sends them.
    pub(super) fn write(&self, into: impl Write) -> io::Result<()> {
        let mut tar = tar::Builder::new(into);
        for (path, kind) in &self.found {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_size(0);
            match kind {
                Kind::Symlink => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    tar.append_link(&mut header, path, self.tree.read_link(path)?)?;
                }
                Kind::File => {
                    // The size is in front of the content, so exactly so many bytes have to follow.
                    let (file, metadata) = self.tree.open_file(path)?;
                    header.set_mode(if fs::is_executable(&metadata) { 0o755 } else { 0o644 });
                    header.set_size(metadata.len());
                    tar.append_data(&mut header, path, file.take(metadata.len()))?;
                }
                Kind::Folder | Kind::Other => {
                    header.set_entry_type(tar::EntryType::Fifo);
                    tar.append_data(&mut header, path, io::empty())?;
                }
            }
        }
        tar.into_inner()?.flush()
    }
}

struct Walk<'run> {
    outputs: &'run [InnerPath],
    opens: bool,
    found: Vec<(String, Kind)>,
    bytes: u64,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Folder, above: &str) -> io::Result<()> {
        let limits = Limits::default();
        for name in folder.names()? {
            let path = match above {
                "" => name.to_string_lossy().into_owned(),
                above => format!("{above}/{}", name.to_string_lossy()),
            };
            // Only what is an output, or is on the way to one, is looked at.
            let is_made = self.outputs.iter().any(|output| is_in_output(&path, output.as_str()));
            if !is_made && !self.outputs.iter().any(|output| is_in_output(output.as_str(), &path)) {
                continue;
            }
            let refused = |why: &str| Err(io::Error::other(format!("`{path}` {why}")));
            let Some(name) = name.to_str() else { return refused("is not UTF-8") };
            // The limits are those of every archive. The mu outside checks them, too; here they only end a walk that
            // has no end.
            match folder.kind(name).unwrap_or(Kind::Other) {
                Kind::Folder if path.matches('/').count() >= limits.depth => {
                    return refused("is in too many folders");
                }
                Kind::Folder => {
                    self.open(folder, name, 0o700)?;
                    self.folder(&folder.open_folder(name)?, &path)?;
                }
                _ if !is_made => {}
                _ if self.found.len() >= limits.entries => {
                    return refused("is one file too many");
                }
                kind => {
                    if kind == Kind::File {
                        self.open(folder, name, 0o400)?;
                        self.bytes += folder.size_and_time(name).map_or(0, |(size, _)| size);
                    }
                    self.found.push((path, kind));
                }
            }
        }
        Ok(())
    }

    /// Gives this user these rights to something that the program may have kept for nobody.
    fn open(&self, folder: &Folder, name: &str, rights: u32) -> io::Result<()> {
        #[cfg(unix)]
        if self.opens {
            use std::os::unix::fs::PermissionsExt as _;

            let path = folder.path().join(name);
            let metadata = fs::symlink_metadata(&path).map_err(io::Error::other)?;
            let mode = metadata.permissions().mode() & 0o777;
            if mode & rights != rights {
                let permissions = std::fs::Permissions::from_mode(mode | rights);
                fs::set_permissions(&path, permissions).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }
}

/// Whether a path is an output, or is in one.
pub(in crate::ops::build) fn is_in_output(path: &str, output: &str) -> bool {
    path == output || path.strip_prefix(output).is_some_and(|rest| rest.starts_with('/'))
}
