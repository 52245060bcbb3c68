//! The messages between mu and a plugin: JSON-RPC 2.0, one message per line; and records of them.
//!
//! Source: <https://www.jsonrpc.org/specification>. Batches are not used. Unknown members are ignored, so that plugins can say
//! more than this version of mu reads.
//!
//! The types are public for those who test what a plugin may send.
//!
//! A plugin's lines are checked before anything else reads them: their locators and commits reach `Mu.lock`. These functions
//! return the fault of the plugin. Everything else in a line is read as in the line of a hub.
//!
//! A record is written while mu and a plugin talk, and read to send the questions again. It is a file of JSON Lines, `{"sent":
//! MESSAGE}` or `{"received": MESSAGE}`, in the order in which mu saw them. It has no tokens. If a plugin sends something that
//! is not a message, it is not recorded, because the error shows it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use mu_provider::fs::{self, FileError};
use mu_provider::threads::lock;
use mu_provider::{Commit, ErrorKind, ProviderError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The version of the protocol.
pub(crate) const PROTOCOL: u32 = 1;

/// The longest line, in bytes.
pub(crate) const LONGEST_PLUGIN_LINE: u64 = 64 << 20;

/// How many releases one answer may have.
const MOST_LINES: usize = 1_000_000;

/// The longest text of a plugin that is shown, in characters.
const LONGEST_TEXT: usize = 1_000;

/// A message from a plugin: an answer, a question or a notification.
#[derive(Debug, Deserialize)]
pub struct Incoming {
    /// For an answer, the number of the question; for a question, any value that the plugin chooses.
    #[serde(default)]
    pub(crate) id: Option<Value>,
    /// The method of a question or a notification.
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) params: Value,
    /// The result in an answer.
    #[serde(default)]
    pub result: Value,
    /// The failure in an answer that has no result.
    #[serde(default)]
    pub error: Option<Failure>,
}

/// Why a plugin could not answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failure {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Details,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    kind: String,
    hints: Vec<String>,
    /// After how many seconds the same question may have an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<f64>,
}

/// The code of a method that a plugin does not have.
const METHOD_NOT_FOUND: i64 = -32601;

impl Failure {
    /// Whether the plugin does not know the method.
    pub(crate) fn is_unknown_method(&self) -> bool {
        self.code == METHOD_NOT_FOUND
    }

    /// Whether the plugin does not know the method, or does not support the request.
    pub(crate) fn is_unsupported(&self) -> bool {
        self.is_unknown_method() || self.data.kind == "unsupported"
    }

    /// After which pause the same question may have an answer, if the plugin says so.
    pub(crate) fn retry_pause(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.data.retry_after?).ok()
    }

    /// This failure as the error of a provider; `plugin` is the program's name.
    pub fn into_provider_error(self, plugin: &str) -> ProviderError {
        let kind = match self.data.kind.as_str() {
            "not-found" => ErrorKind::NotFound,
            "auth" => ErrorKind::Auth,
            "network" => ErrorKind::Network,
            "offline" => ErrorKind::Offline,
            "refused" => ErrorKind::Refused,
            // Also `protocol`: only the plugin knows what its place should have answered.
            _ => ErrorKind::Plugin,
        };
        let text = match readable(&self.message) {
            text if text.is_empty() => "it does not say why".to_owned(),
            text => text,
        };
        let error = ProviderError::new(kind, format!("{plugin}: {text}"));
        self.data.hints.iter().take(4).fold(error, |error, hint| error.hint(readable(hint)))
    }
}

/// What a plugin says about itself when it starts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Introduction {
    pub(crate) protocol: u32,
    /// Its name, in its own words.
    pub name: String,
    /// Its version, in its own words.
    pub version: String,
    /// The schemes of references that it serves.
    pub schemes: Vec<String>,
    pub(crate) concurrency: usize,
    pub(crate) hosts: Vec<String>,
    pub(crate) capabilities: Capabilities,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Capabilities {
    pub(crate) versions: VersionsCapability,
    pub(crate) resolve: bool,
    pub(crate) manifest: bool,
    /// The forms of its answers to `fetch`; all, if it does not say.
    pub(crate) fetch: Option<Vec<String>>,
    pub(crate) search: bool,
}

/// How many packages one question can be about.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub(crate) struct VersionsCapability {
    pub(crate) most: usize,
}

impl Default for VersionsCapability {
    fn default() -> Self {
        Self { most: 1 }
    }
}

/// The answer of a plugin about several packages.
#[derive(Debug, Deserialize)]
pub struct Packages {
    packages: Vec<Value>,
}

impl Packages {
    /// What it says about each of `asked` packages, in their order.
    ///
    /// # Errors
    ///
    /// When it speaks of more or fewer, or lists more than a million releases in all: what the plugin has done wrong.
    pub fn of(self, asked: usize) -> Result<Vec<Value>, String> {
        let said = self.packages.len();
        if said != asked {
            return Err(format!(
                "answered `versions` for {said} packages, and was asked for {asked}"
            ));
        }
        let lines = self.packages.iter().filter_map(|package| package.get("lines")?.as_array());
        if lines.map(Vec::len).sum::<usize>() > MOST_LINES {
            return Err("answered `versions` with more than a million releases".to_owned());
        }
        Ok(self.packages)
    }
}

/// The answer of a plugin about one package.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    #[serde(default)]
    pub(crate) lines: Option<Vec<Value>>,
    #[serde(default)]
    pub(crate) validator: Option<String>,
    #[serde(default)]
    pub(crate) max_age: Option<u32>,
    #[serde(default)]
    pub(crate) unchanged: bool,
    #[serde(default)]
    pub(crate) absent: bool,
    #[serde(default)]
    pub(crate) tried: Vec<String>,
    #[serde(default)]
    pub(crate) error: Option<Failure>,
}

/// The answer of a plugin to a request for files.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Fetched {
    /// Whether the files are in one folder of the archive, whatever its name is; mu leaves that folder out.
    pub(crate) folder: bool,
    /// A file in the given folder; with `url`, the digest of the archive at that URL.
    pub(crate) archive: Option<String>,
    pub(crate) url: Option<String>,
}

impl Fetched {
    /// Its form, as capabilities call it.
    pub(crate) fn form(&self) -> &'static str {
        match self {
            Self { url: Some(_), .. } => "url",
            Self { archive: Some(_), .. } => "archive",
            _ => "folder",
        }
    }
}

/// How far a question has come.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Step {
    pub(crate) id: u64,
    pub(crate) done: u64,
    pub(crate) total: Option<u64>,
    pub(crate) unit: String,
    pub(crate) text: String,
}

/// Something that it tells.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Remark {
    pub(crate) level: String,
    pub(crate) text: String,
}

/// A plugin's text as a terminal may show it: one line without escape sequences and control characters, of bounded
/// length.
pub(crate) fn readable(text: &str) -> String {
    let text = anstream::adapter::strip_str(text).to_string();
    let words: Vec<&str> = text.split(|character: char| character.is_whitespace()).collect();
    let text = words.join(" ");
    let shown = text.trim().chars().filter(|character| !character.is_control());
    shown.take(LONGEST_TEXT).collect()
}

/// The longest locator, in bytes.
const LONGEST_LOCATOR: usize = 4 << 10;

/// Checks a line.
pub(crate) fn check(line: &Value) -> Result<(), String> {
    let said = |key| line.get(key).filter(|value| !value.is_null());
    let text = |key| said(key).and_then(Value::as_str).unwrap_or_default();
    if text("locator").len() > LONGEST_LOCATOR {
        return Err("gave a release a locator of more than 4 KiB".to_owned());
    }
    match said("commit").map(Commit::deserialize) {
        Some(Err(error)) => Err(format!("gave a wrong commit: {}", readable(&error.to_string()))),
        _ if said("version").is_some_and(|version| !version.is_string()) => {
            Err("gave a release a version that is not text".to_owned())
        }
        None if text("version").is_empty() => {
            Err("gave a release with neither a version nor a commit".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks that the line of `commit` answers the question for `revision`.
pub(crate) fn answers(commit: Option<&Commit>, revision: &str) -> Result<(), String> {
    // Only all digits are sure to be a commit: fewer may be the name of a tag.
    match revision.to_ascii_lowercase().parse::<Commit>() {
        Ok(asked) if commit != Some(&asked) => {
            Err(format!("answered `resolve` for {revision} with another commit"))
        }
        _ => Ok(()),
    }
}

/// How many records a folder may have of one plugin.
const MOST_RECORDS: usize = 10_000;

/// The text in a record in place of a token.
const HIDDEN: &str = "****";

/// A record that is being written.
#[derive(Debug)]
pub(crate) struct Record {
    file: Mutex<File>,
    /// Tokens that mu handed out, as JSON has them.
    tokens: Mutex<Vec<String>>,
}

impl Record {
    /// Starts a record in `folder`, which is created if necessary: `NAME-1.jsonl`, or the next free number.
    ///
    /// # Errors
    ///
    /// When the file cannot be created.
    pub(crate) fn begin(folder: &Path, name: &str) -> Result<Self, FileError> {
        fs::create_folder(folder)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut number = 1;
        loop {
            match fs::open_with(&folder.join(format!("{name}-{number}.jsonl")), &options) {
                Ok(file) => return Ok(Self { file: Mutex::new(file), tokens: Mutex::default() }),
                Err(error)
                    if error.kind() == std::io::ErrorKind::AlreadyExists
                        && number < MOST_RECORDS =>
                {
                    number += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Leaves a token out of all that follows.
    pub(crate) fn hide(&self, token: &str) {
        let token = Value::from(token).to_string();
        let token = token.trim_matches('"').to_owned();
        if !token.is_empty() {
            lock(&self.tokens).push(token);
        }
    }

    /// Records a message that was `sent` or `received`, as the line that it is.
    pub(crate) fn write(&self, direction: &str, line: &[u8]) {
        // The message is parsed and printed again, so that a token can only be written in one way.
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
        let mut text = json!({ direction: message }).to_string();
        for token in lock(&self.tokens).iter() {
            text = text.replace(token, HIDDEN);
        }
        text.push('\n');
        // A full disk must not make the user's command fail.
        let _ = lock(&self.file).write_all(text.as_bytes());
    }
}

/// A question of a record, with its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The file, and the line of the question in it.
    pub place: String,
    /// The method.
    pub method: String,
    /// What it took.
    pub params: Value,
    /// The answer: an object with `result` or `error`.
    pub answer: Value,
}

/// Why records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file or folder cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line is not that of a record.
    #[error("{place} is not a line of a record: {reason}")]
    Line {
        /// The file and the line.
        place: String,
        /// The problem.
        reason: String,
    },
}

/// The questions in all records of the plugin `name` in `folder`, with their answers. Questions without an
/// answer are left out, and so is the plugin's introduction.
///
/// # Errors
///
/// When a file cannot be read, or is not a record.
pub fn recorded(folder: &Path, name: &str) -> Result<Vec<Recorded>, RecordError> {
    let mut files: Vec<(usize, PathBuf)> = Vec::new();
    for entry in fs::entries(folder)? {
        let file = entry.file_name();
        let number = file.to_str().and_then(|file| {
            file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".jsonl")?.parse().ok()
        });
        files.extend(number.map(|number| (number, entry.path())));
    }
    files.sort();
    let mut all = Vec::new();
    for (_, path) in files {
        let text = fs::read_text(&path)?;
        let called = path.file_name().unwrap_or_default().display().to_string();
        all.extend(parse(&called, &text)?);
    }
    Ok(all)
}

/// The questions in the text of one record, in their order.
///
/// # Errors
///
/// When a line is not that of a record.
pub fn parse(file: &str, text: &str) -> Result<Vec<Recorded>, RecordError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Line {
        Sent(Message),
        Received(Message),
    }
    #[derive(Deserialize)]
    struct Message {
        #[serde(default)]
        id: Value,
        method: Option<String>,
        #[serde(default)]
        params: Value,
        #[serde(default)]
        result: Value,
        error: Option<Failure>,
    }
    let mut open: HashMap<u64, (usize, Recorded)> = HashMap::new();
    let mut answered = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = format!("{file}:{}", number + 1);
        let line = serde_json::from_str(line).map_err(|error| RecordError::Line {
            place: place.clone(),
            reason: error.to_string(),
        })?;
        match line {
            Line::Sent(Message { id, method: Some(method), params, .. }) => {
                let is_asked = !["initialize", "shutdown"].contains(&method.as_str());
                if let Some(id) = id.as_u64().filter(|_| is_asked) {
                    open.insert(
                        id,
                        (number, Recorded { place, method, params, answer: Value::Null }),
                    );
                }
            }
            Line::Received(Message { id, method: None, result, error, .. }) => {
                let question = id.as_u64().and_then(|id| open.remove(&id));
                if let Some((number, question)) = question {
                    let answer = answer(error.map_or(Ok(result), Err));
                    answered.push((number, Recorded { answer, ..question }));
                }
            }
            // Answers of mu, and questions and notifications of the plugin.
            Line::Sent(_) | Line::Received(_) => {}
        }
    }
    answered.sort_by_key(|(number, _)| *number);
    Ok(answered.into_iter().map(|(_, question)| question).collect())
}

/// An answer as records are compared: what mu uses of it.
pub(crate) fn answer(answer: Result<Value, Failure>) -> Value {
    match answer {
        Ok(result) => json!({ "result": result }),
        Err(failure) => json!({ "error": failure }),
    }
}
