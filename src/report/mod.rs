//! Everything that mu prints goes through here: answers to stdout, the rest to stderr.
//!
//! [`crate::cli`] decides what is printed; this decides how it looks (colour, width, progress, escapes). [`Shell`] is
//! the one way to the terminal. It prints an error as `error: …`, its causes, the line of text, and hints. With `-v`, it also prints a line
//! for each finished request, and their totals; with `-vv`, also headers.

pub mod graph;
mod json;
mod progress;
mod table;
pub mod warnings;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use mu_provider::http::RequestEvent;
use mu_provider::threads::lock;
use mu_provider::{brief, causes, without_secrets};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::manifest::source::SourceError;
use crate::ops::session::error::in_one_line;
use crate::ops::session::shown::PackageNaming;
use crate::ops::{Code, CommandError, Events, Stage, Warning};
use crate::reference::{Base, PackageId, ReferenceError};
use crate::report::progress::{ProgressLine, State};
use crate::report::table::brief_lines;
use crate::report::warnings::sentence;

pub use anstream::ColorChoice;

pub use crate::report::json::Document;
pub use crate::report::table::{Table, count, printable, size};

/// The verbosity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verbosity {
    /// Answers and errors.
    Quiet,
    /// Also actions, warnings and progress.
    #[default]
    Normal,
    /// Also details: each request, and timings.
    Verbose,
    /// Also the headers of requests and answers.
    Debug,
}

/// The options of the shell.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShellOptions {
    /// When output is coloured.
    pub color: ColorChoice,
    /// The verbosity.
    pub verbosity: Verbosity,
    /// Whether the answer is one JSON document.
    pub json: bool,
    /// Whether progress is not shown.
    pub no_progress: bool,
}

/// The one way to the terminal.
pub struct Shell {
    options: ShellOptions,
    out: Mutex<AutoStream<io::Stdout>>,
    coloured_errors: bool,
    progress: ProgressLine,
    requests: Requests,
    /// When it was created, and the last stage and its start.
    begun: Instant,
    stage: Mutex<Option<(Stage, Instant)>>,
    /// The warnings; with `--json`, part of the answer instead of lines on stderr.
    warned: Mutex<BTreeSet<String>>,
    /// How packages are called, once the settings are read.
    shown: OnceLock<PackageNaming>,
    /// How they are called until then.
    unnamed: PackageNaming,
}

/// Writes text as a whole to where the answer goes, whatever else writes there.
fn write_at_once(out: &AutoStream<io::Stdout>, text: &[u8]) -> io::Result<()> {
    let mut out = out.as_inner().lock();
    out.write_all(text)?;
    out.flush()
}

/// No style at all.
pub const PLAIN: Style = Style::new();
/// Bold, for what should stand out.
pub const STRONG: Style = Style::new().bold();
/// Dim, for what can be skipped.
pub const FAINT: Style = Style::new().dimmed();
/// Green, for what was added or is fine.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Bold red, for what was removed or is wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Yellow, for what changed or deserves a look.
pub const NOTICE: Style = AnsiColor::Yellow.on_default();
/// Cyan, for hints.
pub const HELP: Style = AnsiColor::Cyan.on_default();

impl Shell {
    /// A shell over this process's stdout and stderr.
    pub fn new(options: ShellOptions) -> Self {
        let choice = match options.color {
            ColorChoice::Auto => None,
            choice => Some(choice),
        };
        let out = choice.unwrap_or_else(|| AutoStream::choice(&io::stdout()));
        let errors = choice.unwrap_or_else(|| AutoStream::choice(&io::stderr()));
        let coloured_errors = errors != ColorChoice::Never;
        let is_said = !options.json && options.verbosity >= Verbosity::Normal;
        Self {
            options,
            out: Mutex::new(AutoStream::new(io::stdout(), out)),
            coloured_errors,
            progress: ProgressLine::new(is_said, !options.no_progress, coloured_errors),
            requests: Requests::new(options.verbosity >= Verbosity::Debug),
            begun: Instant::now(),
            stage: Mutex::default(),
            warned: Mutex::default(),
            shown: OnceLock::new(),
            unnamed: PackageNaming::new(&Base::default(), Path::new("/")),
        }
    }

    /// Whether a person is there who can answer a question.
    pub fn can_ask(&self) -> bool {
        let is_quiet = self.options.json || self.options.verbosity == Verbosity::Quiet;
        !is_quiet && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether the answer is one JSON document.
    pub fn is_json(&self) -> bool {
        self.options.json
    }

    /// Whether only answers and errors are printed.
    pub fn is_quiet(&self) -> bool {
        self.options.verbosity == Verbosity::Quiet
    }

    /// Prints text of the answer unchanged (it may contain styles).
    pub fn print(&self, text: &str) -> io::Result<()> {
        self.progress.done();
        let mut out = lock(&self.out);
        if out.current_choice() == ColorChoice::Never && table::is_plain(text) {
            // No style must be removed.
            return write_at_once(&out, text.as_bytes());
        }
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// A text with the names of packages as people write them here.
    pub fn short<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.shown().text(text)
    }

    /// The name of a package where it stands for itself.
    pub fn name<'i>(&'i self, id: &'i PackageId) -> Cow<'i, str> {
        self.shown().name(id)
    }

    /// Before there is a workspace, nothing is known of this machine.
    fn shown(&self) -> &PackageNaming {
        self.shown.get().unwrap_or(&self.unnamed)
    }

    /// The number of columns of the terminal that shows the answer; `None` if it goes elsewhere.
    pub fn columns(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        // Some terminals report zero columns.
        Some(usize::from(width.0)).filter(|columns| *columns > 0)
    }

    /// A style for the answer; plain if it is not coloured.
    pub fn style(&self, style: Style) -> Style {
        let choice = lock(&self.out).current_choice();
        if choice == ColorChoice::Never { Style::new() } else { style }
    }

    /// Prints a line of the answer.
    pub fn line(&self, text: &str) -> io::Result<()> {
        self.print(&format!("{text}\n"))
    }

    /// Prints the one JSON document of the answer, with the warnings so far under `warnings`.
    pub fn json<A: Serialize>(&self, answer: &A) -> io::Result<()> {
        let text = Document { answer, warnings: &lock(&self.warned) }.text()?;
        self.progress.done();
        write_at_once(&lock(&self.out), &text)
    }

    /// Prints a report of what was done on stderr.
    pub fn status(&self, text: &str) {
        if self.options.verbosity >= Verbosity::Normal && !self.options.json {
            self.to_stderr(&format!("{}\n", brief_lines(&self.short(text))));
        }
    }

    /// Prints a report of what was done on stderr, with whole names of packages.
    pub fn status_in_full(&self, text: &str) {
        if self.options.verbosity >= Verbosity::Normal && !self.options.json {
            self.to_stderr(&format!("{}\n", printable(&brief_lines(text))));
        }
    }

    /// Prints an error: what, why, what to do; or its JSON form.
    pub fn error(&self, error: &CommandError) {
        let text = if self.options.json {
            let failure = serde_json::to_string(&Failure::new(error));
            format!("{}\n", failure.expect("texts always serialise"))
        } else {
            text(error, self.coloured_errors, &|text| self.short(text).into_owned())
        };
        self.progress.end();
        self.to_stderr(&text);
    }

    /// Ends the run: stops drawing, and with `-v` prints how long it took.
    pub fn end(&self) {
        self.progress.end();
        self.end_stage(None);
        let requests = self.requests.summary().map(|text| format!(", {text}")).unwrap_or_default();
        self.detail(&|| format!("took {}{requests}", seconds(self.begun)));
    }

    /// Prints how long the last stage took, if this is another one.
    fn end_stage(&self, next: Option<Stage>) {
        if self.options.verbosity < Verbosity::Verbose {
            return;
        }
        let mut stage = lock(&self.stage);
        if stage.map(|(stage, _)| stage) == next {
            return;
        }
        let now = next.map(|stage| (stage, Instant::now()));
        let last = std::mem::replace(&mut *stage, now);
        drop(stage);
        if let Some((last, since)) = last {
            self.detail(&|| format!("{} took {}", last.verb(), seconds(since)));
        }
    }

    /// Keeps progress off the terminal while `talk` has it.
    pub fn run_without_progress<T>(&self, talk: impl FnOnce() -> T) -> T {
        let _held = self.progress.hold();
        talk()
    }

    /// Tells about a piece of work, if it is drawn.
    fn draws(&self, what: &str, tell: impl FnOnce(&mut State, &str, Instant)) {
        if self.progress.is_drawn() {
            let what = self.short(what);
            self.progress.change(|state, now| tell(state, &what, now));
        }
    }

    fn to_stderr(&self, text: &str) {
        self.progress.clear();
        let choice = if self.coloured_errors { ColorChoice::Always } else { ColorChoice::Never };
        // What a person typed is in many messages, and logs of CI keep them. Most never hold a secret, and this is the one place that
        // all of them pass.
        let text = without_secrets(text);
        // There is no way to report that stderr is closed.
        let _ = AutoStream::new(io::stderr(), choice).write_all(text.as_bytes());
    }
}

impl Events for Shell {
    fn warning(&self, warning: &Warning) {
        if self.options.verbosity == Verbosity::Quiet {
            return;
        }
        let text = &sentence(warning, self.shown());
        let is_new = lock(&self.warned).insert(text.clone());
        if is_new && !self.options.json {
            self.to_stderr(&format!(
                "{NOTICE}warning{NOTICE:#}: {}\n",
                printable(&brief(&self.short(text)))
            ));
        }
    }

    fn note(&self, text: &str) {
        if self.options.verbosity >= Verbosity::Normal && !self.options.json {
            self.to_stderr(&format!("{}\n", printable(&self.short(text))));
        }
    }

    fn waiting(&self, text: &str) {
        let text = &*self.short(text);
        if self.progress.is_drawn() && self.options.verbosity < Verbosity::Verbose {
            self.progress.change(|state, now| state.waiting(text, now));
        } else if self.options.verbosity >= Verbosity::Normal && !self.options.json {
            self.to_stderr(&format!("{FAINT}waiting: {}{FAINT:#}\n", printable(text)));
        }
    }

    fn confirm(&self, question: &str) -> bool {
        if !self.can_ask() {
            return false;
        }
        let _held = self.progress.hold();
        self.to_stderr(&format!("{} [y/N] ", printable(&self.short(question))));
        let mut answer = String::new();
        let is_read = io::stdin().read_line(&mut answer).is_ok();
        is_read && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }

    fn names(&self, shown: &PackageNaming) {
        // A run has one workspace.
        let _ = self.shown.set(shown.clone());
    }

    fn progress(&self, stage: Stage, done: usize, total: usize) {
        self.end_stage(Some(stage));
        // Every package of a run is a step, and most need no request.
        if self.progress.is_drawn() {
            self.progress.change(|state, now| state.step(stage, done, total, now));
        }
    }

    fn begins(&self, what: &str) {
        self.draws(what, |state, what, now| state.begins(what, now));
    }

    fn doing(&self, what: &str, step: &str) {
        self.draws(what, |state, what, _| state.doing(what, step));
    }

    fn ends(&self, what: &str) {
        self.draws(what, |state, what, _| state.ends(what));
    }

    fn request(&self, event: &RequestEvent<'_>) {
        self.progress.request(event);
        if self.options.verbosity >= Verbosity::Verbose {
            self.requests.lines(event).iter().for_each(|line| self.detail(&|| line.clone()));
        }
    }

    fn bytes(&self, what: &str, done: u64, total: Option<u64>) {
        self.draws(what, |state, what, now| state.bytes(what, done, total, now));
    }

    fn detail(&self, text: &dyn Fn() -> String) {
        if self.options.verbosity >= Verbosity::Verbose && !self.options.json {
            let text = text();
            self.to_stderr(&format!("{FAINT}{}{FAINT:#}\n", printable(&self.short(&text))));
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.progress.end();
    }
}

/// The time since a moment, as `1.25 s`.
fn seconds(since: Instant) -> String {
    format!("{:.2} s", since.elapsed().as_secs_f64())
}

/// How many hints are printed.
const MOST_HINTS: usize = 20;

/// The error for people; `short` names packages as people do.
fn text(error: &CommandError, coloured: bool, short: &dyn Fn(&str) -> String) -> String {
    let mut text = String::new();
    let mut said = String::new();
    for current in causes(&*error.error) {
        let is_first = text.is_empty();
        if let Some(source) = current.downcast_ref::<SourceError>() {
            // An excerpt of a file has its own heading.
            let picture = source.render(coloured);
            let (heading, file) = picture.split_once('\n').unwrap_or((&picture, ""));
            let heading = match is_first {
                true => short(heading),
                false => format!("{FAINT}  caused by{FAINT:#}: {}", short(source.message())),
            };
            text.push_str(&format!("{heading}\n{}\n", file.trim_end()));
            continue;
        }
        let reference = current.downcast_ref::<ReferenceError>();
        let message =
            reference.map_or_else(|| short(&current.to_string()), ReferenceError::headline);
        // A wrapper that only repeats its cause adds nothing.
        if said.contains(&message) && !is_first {
            continue;
        }
        let heading = if is_first {
            format!("{BAD}error{BAD:#}")
        } else {
            format!("{FAINT}  caused by{FAINT:#}")
        };
        text.push_str(&format!("{heading}: {}\n", printable(&brief(&message))));
        for line in reference.map(ReferenceError::render).unwrap_or_default().lines() {
            text.push_str(&format!("  {line}\n"));
        }
        said = message;
    }
    let mut hints: Vec<&String> = Vec::new();
    for hint in &error.hints {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    if !hints.is_empty() {
        text.push('\n');
    }
    for hint in hints.iter().take(MOST_HINTS) {
        text.push_str(&format!("{HELP}hint{HELP:#}: {}\n", printable(&brief(&short(hint)))));
    }
    text
}

/// The stderr output of a failed command with `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Failure<'a> {
    /// The error.
    error: Fault<'a>,
}

/// An error, for programs.
#[derive(Debug, Serialize, JsonSchema)]
struct Fault<'a> {
    /// The kind of error, as a word that never changes.
    code: Code,
    /// What went wrong, with its causes.
    message: String,
    /// What to do about it, a line each.
    help: Option<String>,
    /// Facts, by the code.
    details: &'a Value,
}

impl<'a> Failure<'a> {
    /// The error, as it is printed.
    pub fn new(error: &'a CommandError) -> Self {
        let message = brief(&in_one_line(&*error.error)).into_owned();
        let own = error.in_source().and_then(SourceError::help_text);
        let hints: Vec<&str> =
            own.into_iter().chain(error.hints.iter().map(String::as_str)).collect();
        let help = (!hints.is_empty()).then(|| hints.join("\n"));
        Self { error: Fault { code: error.code, message, help, details: &error.details } }
    }
}

/// The requests of a run.
#[derive(Default)]
struct Requests {
    log: Mutex<Log>,
    with_headers: bool,
}

#[derive(Default)]
struct Log {
    open: HashMap<u64, Open>,
    ended: usize,
    bytes: u64,
}

/// A sent request.
struct Open {
    sent: Instant,
    text: String,
    /// The origin of its token, and its proxy.
    way: String,
    status: Option<String>,
    sent_bytes: u64,
    bytes: u64,
}

impl Requests {
    /// Creates the log of requests; `with_headers` says whether headers are printed, too.
    fn new(with_headers: bool) -> Self {
        Self { log: Mutex::default(), with_headers }
    }

    /// The lines about an event.
    fn lines(&self, event: &RequestEvent<'_>) -> Vec<String> {
        let mut log = lock(&self.log);
        let header_lines = |mark: &str, headers: Vec<String>| -> Vec<String> {
            let headers = headers.into_iter().filter(|_| self.with_headers);
            headers.map(|header| format!("  {mark} {header}")).collect()
        };
        match event {
            RequestEvent::Sent { number, method, url, authorized, proxy, headers } => {
                let text = format!("{method} {url}");
                let mut lines = header_lines(">", headers.shown());
                if self.with_headers {
                    lines.insert(0, text.clone());
                }
                let mut way = String::new();
                if let Some(origin) = authorized {
                    way.push_str(&match url.is_bucket() {
                        true => ", with the credentials".to_owned(),
                        false => format!(", with the token for {}", url.host_and_port()),
                    });
                    if !origin.is_empty() {
                        way.push_str(&format!(" from {origin}"));
                    }
                }
                if let Some(proxy) = proxy {
                    way.push_str(&format!(", through the proxy {proxy}"));
                }
                let (sent, status) = (Instant::now(), None);
                let open = Open { sent, text, way, status, sent_bytes: 0, bytes: 0 };
                log.open.insert(*number, open);
                lines
            }
            RequestEvent::Sending { number, done, .. } => {
                log.open.entry(*number).and_modify(|open| open.sent_bytes = *done);
                Vec::new()
            }
            RequestEvent::Answered { number, status, headers } => {
                log.open.entry(*number).and_modify(|open| open.status = Some((*status).to_owned()));
                header_lines("<", headers.shown())
            }
            RequestEvent::Received { number, bytes } => {
                log.bytes += bytes;
                log.open.entry(*number).and_modify(|open| open.bytes += bytes);
                Vec::new()
            }
            RequestEvent::Ended { number } => {
                log.ended += 1;
                log.open.remove(number).map(|open| open.line()).into_iter().collect()
            }
            RequestEvent::Repeated { reason, attempt, attempts, pause } => {
                let (next, pause) = (attempt + 1, pause.as_secs_f32());
                vec![format!("{reason}; attempt {next} of {attempts} in {pause:.1} s")]
            }
        }
    }

    /// The number of finished requests, and their bytes; `None` if there were none.
    fn summary(&self) -> Option<String> {
        let log = lock(&self.log);
        (log.ended > 0)
            .then(|| format!("{}, {} received", count(log.ended, "request"), size(log.bytes)))
    }
}

impl Open {
    fn line(self) -> String {
        let answer = match &self.status {
            Some(status) if status.starts_with("304") => {
                format!("{status}, the cached copy is used")
            }
            Some(status) => format!("{status}, {}", size(self.bytes)),
            None => "no answer".to_owned(),
        };
        let took = self.sent.elapsed().as_millis();
        let sent = match self.sent_bytes {
            0 => String::new(),
            bytes => format!("{} sent, ", size(bytes)),
        };
        format!("{}: {sent}{answer} in {took} ms{}", self.text, self.way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_before_the_settings_are_read_leaves_the_names_open() {
        let shell = Shell::new(ShellOptions { json: true, ..ShellOptions::default() });
        shell.warning(&Warning::NoLock);
        let base = Base::parse("acme.co").expect("is a base");
        shell.names(&PackageNaming::new(&base, Path::new("/")));
        assert_eq!(shell.short("acme.co/a/b"), "a/b");
    }
}
