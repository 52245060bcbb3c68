//! Records of the messages between mu and a plugin: written while they talk, and read to send the questions
//! again.
//!
//! A record is a file of JSON Lines, `{"sent": MESSAGE}` or `{"received": MESSAGE}`, in the order in which mu
//! saw them. It has no tokens. If a plugin sends something that is not a message, it is not recorded, because
//! the error shows it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use mu_provider::fs::{self, FileError};
use mu_provider::threads::lock;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::message::Failure;

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
