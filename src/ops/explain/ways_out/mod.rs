//! How to use a way out of a conflict: the command to paste, or the file to edit.
//!
//! Selection has found and tried it; this puts it into words.

mod command;
mod pending;
mod question;
mod remedy;
mod wording;

use crate::ops::CommandError;
use crate::ops::Session;
use crate::ops::explain::ways_out::command::repeated;
pub(crate) use crate::ops::explain::ways_out::remedy::Remedy;
use crate::ops::explain::ways_out::wording::Wording;
pub(super) use crate::ops::explain::ways_out::wording::line_in;
use crate::ops::requirements::Requirements;
use crate::select::WayOut;

/// Puts ways out into words; leaves out those that no command and no edit can take.
pub(crate) fn remedies(
    session: &Session,
    requirements: &Requirements,
    ways_out: &[WayOut],
) -> Vec<Remedy> {
    let wording = Wording { session, requirements, is_any_age: false, edits_more: false };
    ways_out.iter().filter_map(|way_out| wording.remedy(way_out)).collect()
}

/// How to search longer than a stopped search.
pub(crate) fn longer(session: &Session, requirements: &Requirements, steps: usize) -> String {
    let flag = "--patience";
    let command = match &requirements.question {
        Some(question) => {
            let (command, flags) = (question::command(question), repeated(session, &[flag]));
            format!("{command} {flag} {steps}{flags}")
        }
        None => {
            let wording = Wording { session, requirements, is_any_age: false, edits_more: false };
            wording.again(flag, &steps.to_string()).join(" && ")
        }
    };
    format!("search longer: `{command}`")
}

/// Adds ways out to an error, as hints.
pub(crate) fn attach(error: CommandError, remedies: Vec<Remedy>) -> CommandError {
    remedies.into_iter().fold(error, |error, remedy| error.hint(remedy.text))
}
