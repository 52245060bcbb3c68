//! How an error is printed: `error: …`, its causes, what the text looks like, and hints.

use std::error::Error;

use serde_json::json;

use crate::manifest::source::SourceError;
use crate::ops::CommandError;
use crate::reference::ReferenceError;
use crate::report::text::printable;
use crate::report::{BAD, FAINT, HELP};

/// The error for people.
pub(super) fn text(error: &CommandError, coloured: bool) -> String {
    let mut text = String::new();
    let mut cause: Option<&(dyn Error + 'static)> = Some(&*error.error);
    let mut is_first = true;
    let mut said = String::new();
    while let Some(current) = cause {
        let (message, picture) = describe(current, coloured);
        // A wrapper that only repeats its cause adds nothing.
        if !said.contains(&message) || picture.is_some() {
            let heading = if is_first {
                format!("{BAD}error{BAD:#}")
            } else {
                format!("{FAINT}  caused by{FAINT:#}")
            };
            text.push_str(&format!("{heading}: {}\n", printable(&message)));
            if let Some(picture) = picture {
                text.push_str(&picture);
                if !picture.ends_with('\n') {
                    text.push('\n');
                }
            }
            is_first = false;
        }
        said = message;
        cause = current.source();
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

/// The message of one error, and the picture of the text that it is about.
fn describe(error: &(dyn Error + 'static), coloured: bool) -> (String, Option<String>) {
    let source = error
        .downcast_ref::<SourceError>()
        .or_else(|| error.downcast_ref::<Box<SourceError>>().map(|boxed| &**boxed));
    if let Some(source) = source {
        return (source.message().to_owned(), Some(source.render(coloured)));
    }
    if let Some(reference) = error.downcast_ref::<ReferenceError>() {
        let picture: String =
            reference.render().lines().map(|line| format!("  {line}\n")).collect();
        return (reference.message(), Some(picture));
    }
    (error.to_string(), None)
}

/// The error for programs.
pub(super) fn json(error: &CommandError) -> String {
    let mut message = error.error.to_string();
    let mut cause = error.error.source();
    while let Some(current) = cause {
        let text = current.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = current.source();
    }
    let help = if error.hints.is_empty() { json!(null) } else { json!(error.hints.join("\n")) };
    let value = json!({
        "error": {
            "code": error.code.as_str(),
            "message": message,
            "help": help,
            "details": error.details,
        }
    });
    format!("{value}\n")
}
