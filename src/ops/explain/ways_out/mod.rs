//! How to use a way out of a conflict: the command to paste, or the file to edit.
//!
//! Selection has found and tried it; this puts it into words.

mod command;
mod pending;
mod question;
mod remedy;
mod wording;
mod writing;

use crate::ops::CommandError;
use crate::ops::Session;
use crate::ops::explain::ways_out::command::repeated;
pub(crate) use crate::ops::explain::ways_out::remedy::Remedy;
use crate::ops::explain::ways_out::wording::Wording;
pub(super) use crate::ops::explain::ways_out::wording::line_in;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::steps::Step;
use crate::select::WayOut;

/// Puts ways out into words; leaves out those that no command and no edit can take, and those whose commands would not lead out:
/// `leads_out` tries what they change.
pub(crate) fn remedies(
    session: &Session,
    requirements: &Requirements,
    ways_out: &[WayOut],
    leads_out: &dyn Fn(&WayOut, &[Step]) -> bool,
) -> Vec<Remedy> {
    let wording = Wording { session, requirements, is_any_age: false, edits_more: false };
    let remedies = ways_out.iter().filter_map(|way_out| {
        let remedy = wording.remedy(way_out)?;
        let is_tried = |steps: &Vec<Step>| leads_out(way_out, steps);
        remedy.tries.as_ref().is_none_or(is_tried).then_some(remedy)
    });
    remedies.collect()
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
