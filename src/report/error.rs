//! How an error is printed: `error: …`, its causes, what the text looks like, and hints.

use std::error::Error;

use serde_json::{Value, json};

use crate::manifest::source::SourceError;
use crate::ops::CommandError;
use crate::reference::ReferenceError;
use crate::report::text::printable;
use crate::report::{BAD, FAINT, HELP};

/// The error for people.
pub(super) fn text(error: &CommandError, coloured: bool) -> String {
    let mut text = String::new();
    let mut said = String::new();
    let mut cause: Option<&(dyn Error + 'static)> = Some(&*error.error);
    while let Some(current) = cause {
        cause = current.source();
        let is_first = text.is_empty();
        if let Some(source) = current.downcast_ref::<SourceError>() {
            // The picture of a file has its own heading.
            text.push_str(source.render(coloured).trim_end());
            text.push('\n');
            continue;
        }
        let reference = current.downcast_ref::<ReferenceError>();
        let message = reference.map_or_else(|| current.to_string(), ReferenceError::headline);
        // A wrapper that only repeats its cause adds nothing.
        if said.contains(&message) && !is_first {
            continue;
        }
        let heading = if is_first {
            format!("{BAD}error{BAD:#}")
        } else {
            format!("{FAINT}  caused by{FAINT:#}")
        };
        text.push_str(&format!("{heading}: {}\n", printable(&message)));
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
    for hint in hints {
        text.push_str(&format!("{HELP}hint{HELP:#}: {}\n", printable(hint)));
    }
    text
}

/// The error for programs.
pub fn json(error: &CommandError) -> Value {
    let mut message = error.error.to_string();
    let mut cause = error.error.source();
    while let Some(current) = cause {
        let text = current.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = current.source();
    }
    let own = error.in_source().and_then(SourceError::help_text);
    let hints: Vec<&str> = own.into_iter().chain(error.hints.iter().map(String::as_str)).collect();
    let help = if hints.is_empty() { json!(null) } else { json!(hints.join("\n")) };
    json!({
        "error": {
            "code": error.code.as_str(),
            "message": message,
            "help": help,
            "details": error.details,
        }
    })
}
