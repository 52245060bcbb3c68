//! One plugin: found, started and initialized at the first question, and started once more if it dies.
//!
//! A workspace can name a plugin, but cannot say where its program is: otherwise, whoever writes a file in a checkout could run
//! any program. So only folders of `PATH` count that are outside of the workspace and its packs ([`Programs`]).
//!
//! A [`Batch`] collects questions about single packages, and asks a plugin about several at once. The first caller asks for all
//! that wait. While that question is in progress, others gather for the next one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use mu_provider::fs::RunFolder;
use mu_provider::http::{
    AskedServer, Authorization, Credential, Credentials, Recipient, TokenHosts,
};
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, Program, Programs, Progress, ProviderError, SafeUrl, Silent, fs};
use serde_json::{Value, json};

use crate::message::{Failure, Introduction, LONGEST_PLUGIN_LINE, PROTOCOL, Record};
use crate::process::{Keeper, NoAnswer, Patience, Process};

/// How long a plugin may take to introduce itself; tests use less.
pub const INTRODUCTION: Duration = Duration::from_secs(10);

/// How often a plugin is started in a run.
const MOST_STARTS: usize = 2;

/// The most questions that a plugin gets at once, whatever it says.
const MOST_AT_ONCE: usize = 64;

/// How a plugin is started.
#[derive(Clone)]
pub struct Starting {
    /// The plugin's name, which is its scheme.
    pub name: String,
    /// The program.
    pub program: Program,
    /// The whole environment that it sees.
    pub environment: BTreeMap<String, String>,
    /// A folder for its temporary files, created when needed.
    pub folder: PathBuf,
    /// Whether it may not use the network.
    pub offline: bool,
    /// A folder for records of all messages between mu and the plugin, if somebody wants them.
    pub records: Option<PathBuf>,
    /// How long it may take to introduce itself, whatever it sends meanwhile.
    pub introduction: Duration,
    /// How long it may be silent while it owes an answer.
    pub silence: Duration,
    /// Tokens of the user. The plugin gets those for the hosts that it declares.
    pub credentials: Arc<dyn Credentials>,
}

// The environment may contain secrets.
mu_provider::debug_fields!(Starting { name, program });

/// A plugin, running or not.
#[derive(Debug)]
pub(crate) struct Plugin {
    pub(crate) starting: Starting,
    state: Mutex<State>,
    gate: Gate,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Running>,
    starts: usize,
    /// What it said before it ended.
    last_words: Option<String>,
    /// The folder where it runs and writes.
    folder: Option<Arc<RunFolder>>,
}

/// A process that has introduced itself.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    process: Arc<Process>,
    /// What it said.
    pub(crate) introduction: Arc<Introduction>,
    /// Where it writes.
    pub(crate) folder: Arc<RunFolder>,
}

impl Plugin {
    pub(crate) fn new(starting: Starting) -> Self {
        Self { starting, state: Mutex::default(), gate: Gate::default() }
    }

    /// What errors call it.
    pub(crate) fn called(&self) -> String {
        format!("the plugin `{PLUGIN_PROGRAM_PREFIX}{}`", self.starting.name)
    }

    /// An error about the plugin.
    pub(crate) fn error(&self, what: &str) -> ProviderError {
        ProviderError::new(ErrorKind::Plugin, format!("{} {what}", self.called()))
    }

    /// The running process, which is started if there is none.
    pub(crate) fn running(&self) -> Result<Running, ProviderError> {
        let mut state = lock(&self.state);
        loop {
            if let Some(running) = &state.running {
                return Ok(running.clone());
            }
            if state.starts >= MOST_STARTS {
                let error = self.error("ended twice, and is not started again in this run");
                return Err(match &state.last_words {
                    Some(words) => error.because(words.clone()),
                    None => error,
                });
            }
            state.starts += 1;
            match self.start(&mut state) {
                Ok(running) => return Ok(state.running.insert(running).clone()),
                Err(NoAnswer::Failed(failure)) => {
                    return Err(failure.into_provider_error(&self.called()));
                }
                Err(NoAnswer::Broken(error)) => return Err(error),
                Err(NoAnswer::Ended(error)) => {
                    state.last_words = last_words(&error);
                    if state.starts >= MOST_STARTS {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Starts the process, which introduces itself.
    fn start(&self, state: &mut State) -> Result<Running, NoAnswer> {
        let folder = match &state.folder {
            Some(folder) => Arc::clone(folder),
            None => {
                Arc::clone(state.folder.insert(Arc::new(RunFolder::new(&self.starting.folder)?)))
            }
        };
        // What an earlier process left there is not for this one.
        let work = folder.path().join(format!("work-{}", state.starts));
        mu_provider::fs::create_folder(&work)?;
        let introduced = Arc::new(Mutex::new(Vec::new()));
        let Starting { name, program, environment, records, .. } = &self.starting;
        let record = records.as_ref().map(|folder| Record::begin(folder, name)).transpose()?;
        let record = record.map(Arc::new);
        let keeper = self.keeper(Arc::clone(&introduced), record.clone());
        let process = Process::start(&self.called(), program, environment, &work, keeper, record)?;
        let question = json!({
            "protocols": [PROTOCOL],
            "mu": env!("CARGO_PKG_VERSION"),
            "offline": self.starting.offline,
            "cache": self.starting.folder.join(format!("{}.cache", self.starting.name)),
            "limits": {"line": LONGEST_PLUGIN_LINE, "silence": self.starting.silence.as_secs()},
        });
        let patience = Patience::Whole(self.starting.introduction);
        let answer = process.ask("initialize", &question, patience, &Silent)?;
        let introduction: Introduction = serde_json::from_value(answer).map_err(|error| {
            self.error("introduces itself in a way that mu cannot read").because(error)
        })?;
        if introduction.protocol != PROTOCOL {
            let spoken = introduction.protocol;
            let what =
                format!("speaks version {spoken} of the protocol, and this mu speaks {PROTOCOL}");
            let error = self.error(&what).hint("install a newer version of the plugin or of mu");
            return Err(error.into());
        }
        lock(&introduced).clone_from(&introduction.hosts);
        self.gate.open(introduction.concurrency.clamp(1, MOST_AT_ONCE));
        Ok(Running { process: Arc::new(process), introduction: Arc::new(introduction), folder })
    }

    /// Returns the plugin's answer, and restarts a process that died once.
    pub(crate) fn answer(
        &self,
        method: &str,
        params: &Value,
        progress: &dyn Progress,
    ) -> Result<Result<Value, Failure>, ProviderError> {
        loop {
            let running = self.running()?;
            let answer = {
                let _place = self.gate.enter();
                let patience = Patience::Silence(self.starting.silence);
                running.process.ask(method, params, patience, progress)
            };
            match answer {
                Ok(value) => return Ok(Ok(value)),
                Err(NoAnswer::Failed(failure)) => return Ok(Err(failure)),
                Err(NoAnswer::Ended(error)) => {
                    if !self.forget(&running, last_words(&error)) {
                        return Err(error);
                    }
                    progress.warning(&format!("{error}; it is started once more"));
                }
                Err(NoAnswer::Broken(error)) => {
                    self.forget(&running, last_words(&error));
                    return Err(error);
                }
            }
        }
    }

    /// Forgets a process that has ended; returns whether it may be started again.
    fn forget(&self, gone: &Running, last_words: Option<String>) -> bool {
        let mut state = lock(&self.state);
        let is_it = |running: &Running| Arc::ptr_eq(&running.process, &gone.process);
        if state.running.as_ref().is_some_and(is_it) {
            state.running = None;
            state.last_words = last_words;
        }
        state.running.is_some() || state.starts < MOST_STARTS
    }

    /// Returns the user's token for a URL, if the plugin has declared its host. The plugin itself says whom it asks: it is a program that
    /// the user has installed.
    fn keeper(&self, hosts: Arc<Mutex<Vec<String>>>, record: Option<Arc<Record>>) -> Keeper {
        let credentials = Arc::clone(&self.starting.credentials);
        Box::new(move |params| {
            let url = params.get("url").and_then(Value::as_str);
            let Some(url) = url.and_then(|url| SafeUrl::parse(url).ok()) else {
                return Value::Null;
            };
            let host = url.host_and_port();
            if !lock(&hosts).iter().any(|pattern| is_of(pattern, &host)) {
                return Value::Null;
            }
            let found = Credential::stored(credentials.as_ref(), &AskedServer::new(&url));
            let released = found
                .and_then(|own| own.release(Recipient::Server(&url), &TokenHosts::default()).ok());
            match released.map(|released| released.bearer()) {
                Some(Authorization::Made(header)) => {
                    let value = header.for_program().expose();
                    if let (Some(record), Some((_, secret))) = (&record, value.split_once(' ')) {
                        record.hide(secret);
                    }
                    json!({"headers": {"Authorization": value}})
                }
                _ => Value::Null,
            }
        })
    }
}

/// What a plugin said before it ended, if its error has that.
fn last_words(error: &ProviderError) -> Option<String> {
    std::error::Error::source(error).map(ToString::to_string)
}

/// Whether a pattern covers a host: exactly, or with `*.` all its subdomains.
fn is_of(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(below) => below.starts_with('.') && below.len() > 1 && host.ends_with(below),
        None => pattern == host,
    }
}

/// Lets in as many as the plugin can answer at once.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    inside: Mutex<Inside>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    count: usize,
    most: usize,
}

impl Gate {
    fn open(&self, most: usize) {
        lock(&self.inside).most = most;
        self.left.notify_all();
    }

    fn enter(&self) -> Place<'_> {
        let mut inside = lock(&self.inside);
        while inside.count >= inside.most {
            inside = self.left.wait(inside).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        inside.count += 1;
        Place(self)
    }
}

/// A place inside of a gate, until it is dropped.
struct Place<'gate>(&'gate Gate);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(&self.0.inside).count -= 1;
        self.0.left.notify_one();
    }
}

type Reply = Result<Value, ProviderError>;

/// Packages that nobody has asked about yet.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    waiting: Mutex<Vec<(Value, Sender<Reply>)>>,
    /// Held while questions are taken out, so that those that arrive meanwhile are taken together.
    turn: Mutex<()>,
}

impl Batch {
    /// The answer to a question, which `ask` puts together with others, at most `most` in all. `ask` answers
    /// in their order, or says why there are no answers.
    pub(crate) fn ask(
        &self,
        question: Value,
        most: usize,
        ask: impl Fn(&[Value]) -> Result<Vec<Value>, ProviderError>,
    ) -> Reply {
        let (sender, reply) = channel();
        lock(&self.waiting).push((question, sender));
        loop {
            let turn = lock(&self.turn);
            if let Ok(reply) = reply.try_recv() {
                return reply;
            }
            let mut waiting = lock(&self.waiting);
            let count = waiting.len().min(most);
            let (questions, senders): (Vec<Value>, Vec<_>) = waiting.drain(..count).unzip();
            drop(waiting);
            if questions.is_empty() {
                // Another caller has taken it, and gets the answer.
                drop(turn);
                return reply.recv().expect("whoever takes a question answers it");
            }
            // If the plugin takes many questions at once, send one such question at a time; otherwise as many
            // as it can handle.
            let _turn = (most > 1).then_some(turn);
            let answers = ask(&questions);
            match answers {
                Ok(answers) => {
                    for (sender, answer) in senders.iter().zip(answers) {
                        let _ = sender.send(Ok(answer));
                    }
                }
                Err(error) => {
                    for sender in &senders {
                        let _ = sender.send(Err(error.clone()));
                    }
                }
            }
        }
    }
}

/// The beginning of the names of plugins' programs.
pub const PLUGIN_PROGRAM_PREFIX: &str = "mu-provider-";

/// The places where mu looks for plugins.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Programs that the user's own settings name, by the plugin's name.
    pub named: BTreeMap<String, PathBuf>,
    /// The folder of plugins in the user's `.mu`.
    pub folder: PathBuf,
    /// The folders of `PATH`.
    pub programs: Programs,
}

impl Places {
    /// The program of a plugin, if there is one.
    pub fn find(&self, name: &str) -> Option<Program> {
        if !is_name(name) {
            return None;
        }
        if let Some(program) = self.named.get(name) {
            return Program::at(program);
        }
        let called = format!("{PLUGIN_PROGRAM_PREFIX}{name}");
        // What was put among the plugins is one: it says why it cannot be run.
        let file = self.folder.join(format!("{called}{}", std::env::consts::EXE_SUFFIX));
        let unfit = || Program::at(&file).filter(|_| is_file(&file));
        let mut programs = self.folders().map(|folder| Program::named(folder, &called));
        programs.find_map(|program| program).or_else(unfit)
    }

    /// The names of all plugins, with their programs.
    pub fn all(&self) -> BTreeMap<String, PathBuf> {
        let mut all = self.named.clone();
        let unfit = named_in(&self.folder).filter(|(_, path)| is_file(path));
        let names = self.folders().flat_map(named_in).chain(unfit);
        for (name, _) in names {
            if let (false, Some(program)) = (all.contains_key(&name), self.find(&name)) {
                all.insert(name, program.path().to_owned());
            }
        }
        all
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.folder).chain(self.programs.folders()).map(PathBuf::as_path)
    }
}

/// What has the name of a plugin in a folder; one that cannot be read has nothing to run.
fn named_in(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = fs::entries_if_there(folder).unwrap_or_default();
    entries.into_iter().filter_map(|entry| {
        let file = entry.file_name();
        let name = file.to_str()?.strip_prefix(PLUGIN_PROGRAM_PREFIX)?;
        let name = name.trim_end_matches(std::env::consts::EXE_SUFFIX);
        is_name(name).then(|| (name.to_owned(), entry.path()))
    })
}

/// Whether a plugin can have this name: it must be a valid URL scheme.
fn is_name(name: &str) -> bool {
    let is_inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(is_inner)
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}
