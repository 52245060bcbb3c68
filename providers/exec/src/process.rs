//! A plugin's process: questions go in, and answers come out in any order; and its process group: the plugin, what it has
//! started, and a guard.
//!
//! Four threads serve it: one writes, so that a plugin that does not read blocks nobody; one reads answers and hands each to its
//! caller; one keeps the end of its standard error; one waits for its end. This file does not know what the answers mean.
//!
//! The guard is a shell that waits for the end of its input, which only mu holds. So however mu ends, the guard ends the group,
//! also a plugin that is busy and does not see the end of its own input. No process outlives the plugin in its group.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mu_provider::fs::FileError;
use mu_provider::threads::{lock, start};
use mu_provider::{ErrorKind, MOST_VALUES, Program, Progress, ProviderError, has_few_values};
use serde_json::{Value, json};

use crate::message::{Failure, Incoming, LONGEST_PLUGIN_LINE, Record, Remark, Step, readable};

/// How much of a plugin's standard error is kept, in bytes.
const LONGEST_WORDS: usize = 1 << 20;

/// How many of the last lines of a plugin's standard error an error shows.
const LAST_LINES: usize = 5;

/// How long the rest of its standard error is waited for after its last answer.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// How long its last answers are waited for after its end, if a process that it has started holds its output.
const HELD_OUTPUT: Duration = Duration::from_secs(2);

/// How long a plugin may take to end after mu asked it to.
const FAREWELL: Duration = Duration::from_secs(5);

/// Answers questions of a plugin for credentials.
pub(crate) type Keeper = Box<dyn Fn(&Value) -> Value + Send>;

/// How long an answer is waited for.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    /// As long as the plugin sends anything at least this often.
    Silence(Duration),
    /// This long, whatever it sends.
    Whole(Duration),
}

impl Patience {
    /// What is left of it, if the question was sent at `asked` and something was last heard at `heard`.
    fn left(self, asked: Instant, heard: Instant) -> Duration {
        match self {
            Self::Silence(silence) => silence.saturating_sub(heard.max(asked).elapsed()),
            Self::Whole(whole) => whole.saturating_sub(asked.elapsed()),
        }
    }

    /// What a plugin has done wrong if nothing is left.
    fn exhausted(self) -> String {
        match self {
            Self::Silence(silence) => format!("said nothing for {} s", silence.as_secs()),
            Self::Whole(whole) => format!("did not answer within {} s", whole.as_secs()),
        }
    }
}

/// Why there is no answer.
pub(crate) enum NoAnswer {
    /// The plugin says why.
    Failed(Failure),
    /// The process ended; it may be started again.
    Ended(ProviderError),
    /// It broke the protocol or was silent, and mu ended it.
    Broken(ProviderError),
}

impl From<ProviderError> for NoAnswer {
    fn from(error: ProviderError) -> Self {
        Self::Broken(error)
    }
}

impl From<FileError> for NoAnswer {
    fn from(error: FileError) -> Self {
        Self::Broken(error.into())
    }
}

/// A running plugin.
pub(crate) struct Process {
    /// Its name in errors.
    name: String,
    group: Arc<Group>,
    shared: Arc<Shared>,
    next: AtomicU64,
    ended: Mutex<Receiver<()>>,
}

/// What the threads share.
struct Shared {
    /// Takes the lines to send; `None` once mu asked it to end.
    input: Mutex<Option<Sender<Vec<u8>>>>,
    /// The callers that wait for an answer; `None` once there will be no more answers.
    waiting: Mutex<Option<HashMap<u64, Sender<Event>>>>,
    /// When it last sent anything.
    heard: Mutex<Instant>,
    /// The end of its standard error.
    words: Mutex<VecDeque<u8>>,
    /// How it broke the protocol.
    fault: Mutex<Option<String>>,
    /// Where all messages are recorded, if somebody wants that.
    record: Option<Arc<Record>>,
}

enum Event {
    Answer(Result<Value, Failure>),
    Step(Step),
    Remark(Remark),
}

mu_provider::debug_fields!(Process { name });

/// The number of the error of Unix that a file is neither a program of this machine nor a script (`ENOEXEC`).
const NOT_EXECUTABLE: i32 = 8;

impl Process {
    /// Starts `program` in `folder`, with only `environment`.
    pub(crate) fn start(
        name: &str,
        program: &Program,
        environment: &BTreeMap<String, String>,
        folder: &Path,
        keeper: Keeper,
        record: Option<Arc<Record>>,
    ) -> Result<Self, ProviderError> {
        let mut command = program.command(environment);
        command.current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (group, (stdin, stdout, stderr)) = Group::start(&mut command).map_err(|error| {
            let text = format!("{name} cannot be started: `{}`", program.path().display());
            let is_there = || mu_provider::fs::metadata(program.path()).is_ok();
            let hint = match (error.kind(), error.raw_os_error()) {
                (std::io::ErrorKind::PermissionDenied, _) => {
                    Some("a program must be executable: `chmod +x` makes it so")
                }
                (std::io::ErrorKind::NotFound, _) if is_there() => {
                    Some("it is there, but not the program that its first line (`#!…`) names")
                }
                (_, Some(NOT_EXECUTABLE)) => Some(
                    "a script begins with a line such as `#!/bin/sh`; any other program may be for another kind of machine",
                ),
                _ => None,
            };
            let refused = ProviderError::new(ErrorKind::Plugin, text).because(error);
            hint.into_iter().fold(refused, ProviderError::hint)
        })?;
        let group = Arc::new(group);
        let (input, lines) = channel();
        let shared = Arc::new(Shared {
            input: Mutex::new(Some(input)),
            waiting: Mutex::new(Some(HashMap::new())),
            heard: Mutex::new(Instant::now()),
            words: Mutex::default(),
            fault: Mutex::default(),
            record,
        });
        let (end, ended) = channel();
        let unstarted = |error| {
            group.end();
            let text = format!("{name} cannot be used");
            ProviderError::new(ErrorKind::Io, text).because(error)
        };
        start(move || write(stdin, &lines)).map_err(unstarted)?;
        let (reading, listening) = (Arc::clone(&shared), Arc::clone(&shared));
        let words = start(move || listening.keep_words(stderr)).map_err(unstarted)?;
        let (watching, outlasting, last) = (Arc::clone(&shared), Arc::clone(&group), end.clone());
        let (drained, rest) = channel();
        let began = start(move || {
            reading.read(stdout, &keeper);
            // Its last output is worth waiting for, unless a child process holds the pipe.
            let (said, all) = channel();
            // Without another thread, nobody waits.
            let _ = start(move || {
                let _ = words.join();
                let _ = said.send(());
            });
            let _ = all.recv_timeout(LAST_OUTPUT);
            lock(&reading.waiting).take();
            let _ = drained.send(());
            let _ = end.send(());
        });
        began.map_err(unstarted)?;
        let began = start(move || {
            // Its output usually ends with it. If a process that has left the group holds the pipe, it does not.
            if outlasting.outlast() && rest.recv_timeout(HELD_OUTPUT).is_err() {
                lock(&watching.waiting).take();
                let _ = last.send(());
            }
        });
        began.map_err(unstarted)?;
        Ok(Self {
            name: name.to_owned(),
            group,
            shared,
            next: AtomicU64::new(1),
            ended: Mutex::new(ended),
        })
    }

    /// Asks, and waits for the answer as patiently as it says.
    pub(crate) fn ask(
        &self,
        method: &str,
        params: &Value,
        patience: Patience,
        progress: &dyn Progress,
    ) -> Result<Value, NoAnswer> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, events) = channel();
        let is_waited_for =
            lock(&self.shared.waiting).as_mut().map(|waiting| waiting.insert(id, sender)).is_some();
        let is_sent = is_waited_for
            && self
                .shared
                .send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        if !is_sent {
            return Err(self.gone(method));
        }
        let asked = Instant::now();
        loop {
            let left = patience.left(asked, *lock(&self.shared.heard));
            if left.is_zero() {
                self.group.end();
                let text = format!("{} {} after `{method}`", self.name, patience.exhausted());
                return Err(NoAnswer::Broken(self.error(&text)));
            }
            match events.recv_timeout(left) {
                Ok(Event::Answer(answer)) => return answer.map_err(NoAnswer::Failed),
                Ok(Event::Step(step)) => tell_step(&step, progress),
                Ok(Event::Remark(remark)) => self.tell(&remark, progress),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone(method)),
                // Another question may have been answered meanwhile.
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Why there is no answer, if the process has ended.
    fn gone(&self, method: &str) -> NoAnswer {
        if let Some(fault) = lock(&self.shared.fault).clone() {
            return NoAnswer::Broken(self.error(&format!("{} {fault}", self.name)));
        }
        NoAnswer::Ended(self.error(&format!("{} ended before it answered `{method}`", self.name)))
    }

    fn error(&self, text: &str) -> ProviderError {
        let error = ProviderError::new(ErrorKind::Plugin, text);
        let words: Vec<u8> = lock(&self.shared.words).iter().copied().collect();
        let words = String::from_utf8_lossy(&words);
        let lines: Vec<String> =
            words.lines().map(readable).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        if last.is_empty() {
            return error;
        }
        error.because(format!("its last words: {}", last.join(" / ")))
    }

    fn tell(&self, remark: &Remark, progress: &dyn Progress) {
        let text = || format!("{}: {}", self.name, readable(&remark.text));
        match remark.level.as_str() {
            "error" | "warning" | "warn" => progress.warning(&text()),
            _ => progress.detail(&text),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.shared.send(&json!({"jsonrpc": "2.0", "method": "shutdown", "params": {}}));
        lock(&self.shared.input).take();
        let _ = lock(&self.ended).recv_timeout(FAREWELL);
        self.group.end();
    }
}

fn tell_step(step: &Step, progress: &dyn Progress) {
    if !step.text.is_empty() {
        progress.doing(&readable(&step.text));
    }
    if step.unit.is_empty() || step.unit == "bytes" {
        progress.bytes(step.done, step.total);
    }
}

/// Writes lines until there will be no more, or nobody reads them.
fn write(mut stdin: ChildStdin, lines: &Receiver<Vec<u8>>) {
    while let Ok(line) = lines.recv() {
        if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

impl Shared {
    /// Sends a message; returns whether the process still takes messages.
    fn send(&self, message: &Value) -> bool {
        let mut line = serde_json::to_vec(message).expect("a message is plain JSON");
        if let Some(record) = &self.record {
            record.write("sent", &line);
        }
        line.push(b'\n');
        lock(&self.input).as_ref().is_some_and(|input| input.send(line).is_ok())
    }

    /// Reads messages until the output ends or has something that is not a message.
    fn read(&self, stdout: ChildStdout, keeper: &Keeper) {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        loop {
            line.clear();
            match stdout.by_ref().take(LONGEST_PLUGIN_LINE + 1).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            *lock(&self.heard) = Instant::now();
            let is_whole = line.last() == Some(&b'\n');
            if !is_whole && line.len() as u64 > LONGEST_PLUGIN_LINE {
                return self.give_up("sent a line of more than 64 MiB");
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Some(record) = &self.record {
                record.write("received", &line);
            }
            if !has_few_values(&line, MOST_VALUES) {
                return self.give_up("sent a message with more than 4,000,000 values");
            }
            let Ok(message) = serde_json::from_slice::<Incoming>(&line) else {
                let text = readable(&String::from_utf8_lossy(&line[..line.len().min(200)]));
                return self.give_up(&format!("sent something that is not a message: `{text}`"));
            };
            if let Err(fault) = self.handle(message, keeper) {
                return self.give_up(&fault);
            }
        }
    }

    fn give_up(&self, fault: &str) {
        lock(&self.fault).get_or_insert_with(|| fault.to_owned());
    }

    fn handle(&self, message: Incoming, keeper: &Keeper) -> Result<(), String> {
        let Some(method) = message.method else {
            let id = message.id.as_ref().and_then(Value::as_u64);
            let waiting = id.and_then(|id| lock(&self.waiting).as_mut()?.remove(&id));
            let Some(waiting) = waiting else {
                return Err("answered a question that nobody asked".to_owned());
            };
            let answer = message.error.map_or(Ok(message.result), Err);
            // The caller may have given up.
            let _ = waiting.send(Event::Answer(answer));
            return Ok(());
        };
        match (method.as_str(), message.id) {
            ("$/progress", _) => {
                let step: Step = serde_json::from_value(message.params).unwrap_or_default();
                if let Some(asker) = lock(&self.waiting).as_ref().and_then(|all| all.get(&step.id))
                {
                    let _ = asker.send(Event::Step(step));
                }
            }
            ("log", _) => {
                let remark = serde_json::from_value(message.params).unwrap_or_default();
                let waiting = lock(&self.waiting);
                let first = waiting.as_ref().and_then(|all| all.iter().min_by_key(|(id, _)| **id));
                if let Some((_, asker)) = first {
                    let _ = asker.send(Event::Remark(remark));
                }
            }
            (method, Some(id)) => {
                let answer = match method {
                    "credential" => {
                        json!({"jsonrpc": "2.0", "id": id, "result": keeper(&message.params)})
                    }
                    _ => json!({"jsonrpc": "2.0", "id": id,
                        "error": {"code": -32601, "message": format!("mu has no method `{method}`")}}),
                };
                self.send(&answer);
            }
            // A notification that this version of mu does not know.
            (_, None) => {}
        }
        Ok(())
    }

    fn keep_words(&self, mut stderr: ChildStderr) {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = stderr.read(&mut piece) {
            let mut words = lock(&self.words);
            words.extend(&piece[..length]);
            let excess = words.len().saturating_sub(LONGEST_WORDS);
            words.drain(..excess);
        }
    }
}

/// A plugin and what it has started.
struct Group(Mutex<Option<Members>>);

/// The pipes to a plugin: its standard input, output and error.
pub(crate) type Pipes = (ChildStdin, ChildStdout, ChildStderr);

/// The processes that mu waits for; until then, their numbers are theirs.
struct Members {
    plugin: Child,
    /// The process that leads the group.
    #[cfg(unix)]
    guard: Option<Child>,
}

impl Group {
    /// Starts a plugin in a group of its own, which Ctrl-C does not reach. Its pipes are still in the child. The guard is there
    /// first, so there is no moment at which mu can end and leave a plugin behind.
    pub(crate) fn start(command: &mut Command) -> io::Result<(Self, Pipes)> {
        #[cfg(unix)]
        let mut guard = guard();
        #[cfg(unix)]
        {
            let group = guard.as_ref().and_then(|guard| i32::try_from(guard.id()).ok());
            std::os::unix::process::CommandExt::process_group(command, group.unwrap_or(0));
        }
        let started = command.spawn();
        #[cfg(unix)]
        if let (Err(_), Some(guard)) = (&started, &mut guard) {
            // It ends with its input.
            let _ = guard.wait();
        }
        let mut plugin = started?;
        let pipes = (plugin.stdin.take(), plugin.stdout.take(), plugin.stderr.take());
        let members = Members {
            plugin,
            #[cfg(unix)]
            guard,
        };
        let group = Self(Mutex::new(Some(members)));
        match pipes {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((group, (stdin, stdout, stderr))),
            _ => {
                group.end();
                Err(io::Error::other("it was started without pipes"))
            }
        }
    }

    /// Ends the plugin, and what it has started.
    pub(crate) fn end(&self) {
        let Some(mut members) = lock(&self.0).take() else { return };
        members.kill();
        let _ = members.plugin.kill();
        let _ = members.plugin.wait();
        #[cfg(unix)]
        if let Some(mut guard) = members.guard {
            let _ = guard.wait();
        }
    }

    /// Waits until the plugin itself has ended, and ends what it has left. Returns whether this system can wait so.
    fn outlast(&self) -> bool {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

            let plugin = lock(&self.0).as_ref().map(|members| Pid::from_child(&members.plugin));
            let Some(plugin) = plugin else { return true };
            // It is only looked at, so that its number stays that of the group.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(plugin), options), Err(rustix::io::Errno::INTR)) {}
            if let Some(members) = &mut *lock(&self.0) {
                members.kill();
            }
        }
        cfg!(unix)
    }
}

impl Members {
    fn kill(&mut self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};

            let leader = self.guard.as_ref().unwrap_or(&self.plugin);
            let _ = kill_process_group(Pid::from_child(leader), Signal::KILL);
        }
    }
}

/// Starts the guard of a group, which it leads. Without one, a plugin sees that mu has ended only at the end of its input.
#[cfg(unix)]
fn guard() -> Option<Child> {
    use std::os::unix::process::CommandExt as _;
    use std::path::Path;
    use std::process::Stdio;

    use mu_provider::Program;

    let nothing: [(&str, &str); 0] = [];
    let mut command = Program::at(Path::new("/bin/sh"))?.command(nothing);
    command.args(["-c", "read -r _; kill -s KILL 0"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().ok()
}
