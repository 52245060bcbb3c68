//! The keeper of a confined program: starts it, watches its time and its size, and ends every process that is left of it.
//!
//! On Linux, processes whose parents have ended become the keeper's children, whatever they did to hide, so all of them are found. Elsewhere,
//! the keeper ends the program's process group.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::{CONFINE, Ended, INSIDE, Job};
use crate::fs::{self, AtPath as _};

/// How often time and size are checked.
const PAUSE: Duration = Duration::from_millis(250);

/// What the keeper waits for.
enum Event {
    Ended(Option<ExitStatus>),
    Stop,
}

/// Runs the program of a job to its end.
pub(super) fn keep(job: &Job, file: &Path) -> Ended {
    let (sender, events) = channel();
    watch_for_the_end_of_mu(sender.clone());
    let mut child = match start(job, file) {
        Ok(child) => child,
        Err(error) => return Ended::NotStarted(error.to_string()),
    };
    let id = child.id();
    std::thread::spawn(move || {
        let status = child.wait().ok();
        let _ = sender.send(Event::Ended(status));
    });
    let ended = wait(job, &events);
    end_all(id, &events);
    ended
}

fn start(job: &Job, file: &Path) -> Result<std::process::Child, fs::FileError> {
    let program = std::env::current_exe().at("find the program", Path::new("mu"))?;
    let mut append = std::fs::OpenOptions::new();
    append.create(true).append(true);
    let log = fs::open_with(&job.log, &append)?;
    let errors = log.try_clone().at("open", &job.log)?;
    let started = Command::new(&program)
        .args([CONFINE, INSIDE])
        .arg(file)
        .env_clear()
        .envs(&job.environment)
        .current_dir(&job.folder)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn();
    started.at("run", &program)
}

/// Waits until the program has ended, or must end.
fn wait(job: &Job, events: &Receiver<Event>) -> Ended {
    let (start, most) = (Instant::now(), Duration::from_secs(job.seconds));
    loop {
        match events.recv_timeout(PAUSE) {
            Ok(Event::Ended(status)) => {
                let ended = how(status);
                // The system ends a program whose file would be larger than everything may be, perhaps under a shell.
                let is_full = ended != Ended::Status(0) && written(job) >= job.bytes;
                return if is_full { Ended::Size } else { ended };
            }
            Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return Ended::Stopped,
            Err(RecvTimeoutError::Timeout) if start.elapsed() >= most => return Ended::Time,
            Err(RecvTimeoutError::Timeout) if written(job) > job.bytes => return Ended::Size,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn how(status: Option<ExitStatus>) -> Ended {
    #[cfg(unix)]
    if let Some(signal) =
        status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status))
    {
        return Ended::Signal(signal);
    }
    Ended::Status(status.and_then(|status| status.code()).unwrap_or(-1))
}

/// The bytes that a program has written.
fn written(job: &Job) -> u64 {
    job.write.iter().chain([&job.log]).map(|path| size(path)).sum()
}

/// The bytes of all files below a folder, or of a file.
fn size(path: &Path) -> u64 {
    let files = walkdir::WalkDir::new(path).into_iter().flatten();
    let bytes = files.filter_map(|file| file.metadata().ok()).filter(|file| file.is_file());
    bytes.map(|file| file.len()).sum()
}

/// Sends [`Event::Stop`] when mu, or a person at the keyboard, ends this process.
#[cfg(unix)]
fn watch_for_the_end_of_mu(stop: Sender<Event>) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    #[cfg(target_os = "linux")]
    {
        let _ =
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]) else {
        return;
    };
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = stop.send(Event::Stop);
        }
    });
}

#[cfg(not(unix))]
fn watch_for_the_end_of_mu(_stop: Sender<Event>) {}

/// Ends the program `id`, and every process that it started.
#[cfg(unix)]
fn end_all(id: u32, events: &Receiver<Event>) {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    let group = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
        let _ = kill_process(group, Signal::KILL);
    }
    #[cfg(target_os = "linux")]
    loop {
        let left = descendants(std::process::id());
        for process in &left {
            if let Some(process) = i32::try_from(*process).ok().and_then(Pid::from_raw) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
        if left.is_empty() {
            return;
        }
        // The next ones appear when these have ended.
        let _ = events.recv_timeout(Duration::from_millis(5));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = events;
}

#[cfg(not(unix))]
fn end_all(_id: u32, _events: &Receiver<Event>) {}

/// The processes that a process has started, directly or not, and that have not ended.
#[cfg(target_os = "linux")]
fn descendants(of: u32) -> Vec<u32> {
    let processes = fs::entries(Path::new("/proc")).unwrap_or_default();
    let parents: Vec<(u32, u32)> = processes
        .iter()
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let text = fs::read_text(&entry.path().join("stat")).ok()?;
            // The name of the program, in parentheses, can contain anything.
            let mut rest = text.rsplit_once(')')?.1.split_whitespace();
            let (state, parent) = (rest.next()?, rest.next()?.parse().ok()?);
            (state != "Z").then_some((id, parent))
        })
        .collect();
    let mut found = vec![of];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        at += 1;
    }
    found.remove(0);
    found
}
