//! How an error is printed: `error: …`, its causes, the line of text, and hints.

use mu_provider::{brief, causes};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::manifest::source::SourceError;
use crate::ops::session::error::in_one_line;
use crate::ops::{Code, CommandError};
use crate::reference::ReferenceError;
use crate::report::text::printable;
use crate::report::{BAD, FAINT, HELP};

/// How many hints are printed.
const MOST_HINTS: usize = 20;

/// The error for people; `short` names packages as people do.
pub(super) fn text(error: &CommandError, coloured: bool, short: &dyn Fn(&str) -> String) -> String {
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
