//! `mu doctor`.

use clap::Args;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::cache::doctor;
use crate::report::{BAD, FAINT, GOOD};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu doctor
  mu doctor --json")]
pub(crate) struct Arguments {}

pub(crate) fn run(context: &Context, _arguments: &Arguments) -> Ending {
    let findings = doctor(&context.environment);
    if context.shell.is_json() {
        let findings: Vec<_> = findings
            .iter()
            .map(|finding| {
                json!({ "subject": finding.subject, "found": finding.found, "advice": finding.advice })
            })
            .collect();
        context.json(&json!({ "findings": findings }))?;
        return Ok(0);
    }
    for finding in &findings {
        let mark = if finding.advice.is_some() {
            format!("{BAD}!{BAD:#}")
        } else {
            format!("{GOOD}✓{GOOD:#}")
        };
        context.line(&format!("{mark} {}: {}", finding.subject, finding.found))?;
        if let Some(advice) = &finding.advice {
            context.line(&format!("  {FAINT}{advice}{FAINT:#}"))?;
        }
    }
    Ok(0)
}
