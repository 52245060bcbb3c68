//! `mu doctor`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::ops::build::confine::{Unconfined, is_supported};
use crate::ops::doctor::{Finding, doctor};
use crate::ops::{Code, CommandError};
use crate::report::{BAD, FAINT, GOOD, NOTICE, count, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
Checks folders, Git, ssh, the proxy, certificates, the clock and whether builds can be confined, and contacts each registry in the settings. Exits with status 1 if a check fails.

Examples:
  mu doctor
  mu doctor --json")]
pub(crate) struct DoctorArguments {}

/// What `mu doctor` answers; if a check fails, the `details` of the error.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// What was checked.
    findings: Vec<Finding>,
}

pub(crate) fn run(context: &Context, _arguments: &DoctorArguments) -> CommandExit {
    let mut findings = doctor(&context.environment, &context.open_settings_session());
    findings.push(builds());
    let answer = Answer { findings };
    let failed: Vec<&Finding> = answer.findings.iter().filter(|finding| !finding.ok).collect();
    if context.shell.is_json() && failed.is_empty() {
        return context.json(&answer);
    }
    if !context.shell.is_json() {
        answer.findings.iter().try_for_each(|finding| line(context, finding))?;
    }
    let Some(first) = failed.first() else { return Ok(0) };
    let is_network = first.subject.starts_with("registry ");
    let code = if is_network { Code::Network } else { Code::Io };
    let message = match failed.len() {
        1 => "1 check failed".to_owned(),
        more => format!("{} failed", count(more, "check")),
    };
    let subjects: Vec<&str> = failed.iter().map(|finding| &*finding.subject).collect();
    let message = format!("{message}: {}", subjects.join(", "));
    Err(CommandError::new(code, message).with_details(&answer).into())
}

/// Whether builds can be confined. Who builds nothing can do without.
fn builds() -> Finding {
    let subject = "builds".to_owned();
    match is_supported() {
        Ok(program) => {
            let found = format!("confined by `{program}`");
            Finding { subject, found, ok: true, advice: None }
        }
        Err(Unconfined { why, advice }) => {
            Finding { subject, found: why, ok: true, advice: Some(advice) }
        }
    }
}

fn line(context: &Context, finding: &Finding) -> Result<(), crate::cli::context::Stop> {
    let mark = match (finding.ok, &finding.advice) {
        (false, _) => format!("{BAD}✗{BAD:#}"),
        (true, Some(_)) => format!("{NOTICE}!{NOTICE:#}"),
        (true, None) => format!("{GOOD}✓{GOOD:#}"),
    };
    context.line(&format!("{mark} {}: {}", finding.subject, printable(&finding.found)))?;
    match &finding.advice {
        Some(advice) => context.line(&format!("  {FAINT}{}{FAINT:#}", printable(advice))),
        None => Ok(()),
    }
}
