//! `mu which`.

use clap::Args;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::Scope;
use crate::ops::which::{All, which, which_all};
use crate::report::{FAINT, GOOD, NOTICE};
use crate::search::State;

#[derive(Debug, Args)]
#[command(after_help = "\
Looks in eight places, in order: the workspace (twice), its .mu/packs (twice), ~/.mu/packs (twice) \
and $MUROOT/lib/packs (twice). A package in the workspace always wins; elsewhere the version must fit.

Examples:
  mu which aws/ec2
  mu which aws/ec2#^1.0 --all
  cd \"$(mu which aws/ec2)\"")]
pub(crate) struct Arguments {
    /// The reference
    #[arg(value_name = "REF")]
    reference: String,
    /// Show all eight places, and what was found there
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    if arguments.all {
        return all(context, &session, &arguments.reference);
    }
    let found = which(&session, &arguments.reference)?;
    for note in &found.notes {
        crate::ops::Events::warning(&*context.shell, &note.to_string());
    }
    if context.shell.is_json() {
        context.json(&json!({
            "id": found.id.to_string(),
            "path": found.place.folder.display().to_string(),
            "place": (found.place.number > 0).then_some(found.place.number),
            "version": found.hit.version.as_ref().map(ToString::to_string),
            "element": found.element,
        }))?;
        return Ok(0);
    }
    context.line(&found.place.folder.display().to_string())?;
    Ok(0)
}

fn all(context: &Context, session: &crate::ops::Session, reference: &str) -> Ending {
    let All { candidates, found } = which_all(session, reference)?;
    for note in found.iter().flat_map(|found| &found.notes) {
        crate::ops::Events::warning(&*context.shell, &note.to_string());
    }
    if context.shell.is_json() {
        let places: Vec<_> = candidates
            .iter()
            .map(|candidate| {
                let (state, why) = match &candidate.state {
                    State::Hit(_) => ("hit", None),
                    State::Miss => ("miss", None),
                    State::PassedOver(reason) => ("passed over", Some(reason.to_string())),
                };
                json!({
                    "place": candidate.place.number,
                    "path": candidate.place.folder.display().to_string(),
                    "state": state,
                    "why": why,
                })
            })
            .collect();
        context.json(&json!({ "places": places }))?;
    } else {
        for candidate in &candidates {
            let state = match &candidate.state {
                State::Hit(_) => format!("{GOOD}hit{GOOD:#}"),
                State::Miss => format!("{FAINT}miss{FAINT:#}"),
                State::PassedOver(reason) => format!("{NOTICE}passed over{NOTICE:#}: {reason}"),
            };
            context.line(&format!(
                "{}  {}  {state}",
                candidate.place.number,
                candidate.place.folder.display()
            ))?;
        }
    }
    found?;
    Ok(0)
}
