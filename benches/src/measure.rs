//! Runs whole processes in turns: measures their times, memory, and system calls.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// One way to do some work.
pub(crate) struct Contestant<'run> {
    pub(crate) name: &'static str,
    /// Brings everything into the state that the work begins in.
    pub(crate) prepare: Box<dyn Fn() + 'run>,
    /// The process that does the work.
    pub(crate) command: Box<dyn Fn() -> Command + 'run>,
}

/// What was measured of one contestant.
pub(crate) struct Result {
    pub(crate) name: &'static str,
    /// Sorted, in milliseconds.
    pub(crate) times: Vec<f64>,
    /// Processor time of each run, sorted, in milliseconds. Other work on the machine hardly affects it.
    processor: Vec<f64>,
}

impl Result {
    pub(crate) fn median(&self) -> f64 {
        self.times[self.times.len() / 2]
    }

    pub(crate) fn processor(&self) -> f64 {
        self.processor[self.processor.len() / 2]
    }
}

/// Runs all contestants in turns, `rounds` times, after one round that does not count.
pub(crate) fn in_turns(rounds: usize, contestants: &[Contestant<'_>]) -> Vec<Result> {
    let mut results: Vec<Result> = contestants
        .iter()
        .map(|contestant| Result {
            name: contestant.name,
            times: Vec::new(),
            processor: Vec::new(),
        })
        .collect();
    for round in 0..=rounds {
        for (contestant, result) in contestants.iter().zip(&mut results) {
            (contestant.prepare)();
            let mut command = (contestant.command)();
            let (start, used) = (Instant::now(), processor_of_children());
            run(&mut command);
            let time = start.elapsed().as_secs_f64() * 1_000.0;
            if round > 0 {
                result.times.push(time);
                result.processor.push(processor_of_children() - used);
            }
        }
    }
    for result in &mut results {
        result.times.sort_by(f64::total_cmp);
        result.processor.sort_by(f64::total_cmp);
    }
    results
}

/// The processor time of all children that have ended, in milliseconds.
fn processor_of_children() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("every process may ask for its own");
    let milliseconds =
        |time: TimeVal| time.tv_sec() as f64 * 1_000.0 + time.tv_usec() as f64 / 1_000.0;
    milliseconds(usage.user_time()) + milliseconds(usage.system_time())
}

/// Whether a process succeeds.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    output.status().is_ok_and(|status| status.success())
}

/// Runs a process that must succeed.
pub(crate) fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = output.output().expect("the program can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{said}");
}

/// The peak memory of a process in MiB, if `/usr/bin/time` is there.
pub(crate) fn peak_memory(command: &Command, folder: &Path) -> Option<f64> {
    let file = folder.join("time.txt");
    let mut wrapped = wrap(command, "/usr/bin/time", &["-f", "%M", "-o", file.to_str()?]);
    if !Path::new("/usr/bin/time").exists() {
        return None;
    }
    run(&mut wrapped);
    let text = fs::read_to_string(&file).ok()?;
    Some(text.trim().parse::<f64>().ok()? / 1_024.0)
}

/// The system calls of a process.
pub(crate) struct Calls {
    pub(crate) all: u64,
    pub(crate) opened: u64,
    pub(crate) looked_at: u64,
    pub(crate) reads: u64,
}

/// Counts the system calls of a process and its children, if `strace` is there.
pub(crate) fn calls(command: &Command, folder: &Path) -> Option<Calls> {
    Command::new("strace").arg("-V").stdout(Stdio::null()).status().ok()?;
    let file = folder.join("strace.txt");
    run(&mut wrap(command, "strace", &["-f", "-c", "-U", "calls,name", "-o", file.to_str()?]));
    let mut calls = Calls { all: 0, opened: 0, looked_at: 0, reads: 0 };
    for line in fs::read_to_string(&file).ok()?.lines() {
        let mut fields = line.split_whitespace();
        let (Some(count), Some(name)) = (fields.next(), fields.next()) else { continue };
        let Ok(count) = count.parse::<u64>() else { continue };
        match name {
            "total" => calls.all = count,
            "openat" | "open" => calls.opened += count,
            "stat" | "lstat" | "statx" | "newfstatat" | "access" | "faccessat2" => {
                calls.looked_at += count;
            }
            "read" | "readv" | "pread64" => calls.reads += count,
            _ => {}
        }
    }
    Some(calls)
}

fn wrap(command: &Command, program: &str, arguments: &[&str]) -> Command {
    let mut wrapped = Command::new(program);
    wrapped.args(arguments).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    wrapped
}

/// Where a program is, if it is installed.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The version of a program, according to itself.
pub(crate) fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// Removes a folder, if it is there.
pub(crate) fn remove(folder: &Path) {
    if folder.exists() {
        // Stored files may be in folders that only root may change.
        fs::remove_dir_all(folder).expect("can be removed");
    }
}
