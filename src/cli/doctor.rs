//! `mu doctor`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::ops::cache::{Finding, doctor};
use crate::report::{BAD, FAINT, GOOD};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu doctor
  mu doctor --json")]
pub(crate) struct Arguments {}

/// What `mu doctor` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// What was looked at.
    findings: Vec<Finding>,
}

pub(crate) fn run(context: &Context, _arguments: &Arguments) -> Ending {
    let answer = Answer { findings: doctor(&context.environment) };
    context.answer(&answer, |answer| {
        for Finding { subject, found, advice } in &answer.findings {
            let mark = match advice {
                Some(_) => format!("{BAD}!{BAD:#}"),
                None => format!("{GOOD}✓{GOOD:#}"),
            };
            context.line(&format!("{mark} {subject}: {found}"))?;
            if let Some(advice) = advice {
                context.line(&format!("  {FAINT}{advice}{FAINT:#}"))?;
            }
        }
        Ok(())
    })
}
