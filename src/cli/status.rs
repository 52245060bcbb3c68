//! `mu status`.

use clap::Args;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::Scope;
use crate::ops::status::status;
use crate::report::{BAD, FAINT, GOOD, NOTICE, STRONG, count};

#[derive(Debug, Args)]
#[command(after_help = "\
Asks no registry and changes nothing.

Examples:
  mu status
  mu status --json")]
pub(crate) struct Arguments {}

pub(crate) fn run(context: &Context, _arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let status = status(&session)?;
    let is_fine = status.differences.is_empty() && status.missing.is_empty();
    if context.shell.is_json() {
        let members: Vec<_> = status
            .members
            .iter()
            .map(
                |(name, version, place)| json!({ "name": name, "version": version, "path": place }),
            )
            .collect();
        let placed: Vec<_> =
            status.placed.iter().map(|(id, place)| json!({ "id": id, "path": place })).collect();
        context.json(&json!({
            "root": status.root.display().to_string(),
            "members": members,
            "lock": { "exists": status.has_lock, "packages": status.locked, "differences": status.differences },
            "missing": status.missing,
            "placed": placed,
            "upToDate": is_fine,
        }))?;
        return Ok(0);
    }
    context.line(&format!("workspace {STRONG}{}{STRONG:#}", status.root.display()))?;
    for (name, version, place) in &status.members {
        let version = version.as_deref().unwrap_or("without a version");
        context.line(&format!("  {name} {version} {FAINT}{place}{FAINT:#}"))?;
    }
    for (id, place) in &status.placed {
        let place = if place.is_empty() { "." } else { place };
        context.line(&format!(
            "{NOTICE}used from the workspace{NOTICE:#}: {id} {FAINT}{place}{FAINT:#}"
        ))?;
    }
    if !status.differences.is_empty() {
        context.line(&format!("{BAD}Mu.lock is out of date{BAD:#}:"))?;
        for difference in &status.differences {
            context.line(&format!("  {difference}"))?;
        }
    }
    if !status.missing.is_empty() {
        context.line(&format!("{BAD}not installed{BAD:#}:"))?;
        for missing in &status.missing {
            context.line(&format!("  {missing}"))?;
        }
    }
    if is_fine {
        context.line(&format!(
            "{GOOD}up to date{GOOD:#}: {} locked and installed",
            count(status.locked, "package")
        ))?;
    } else {
        context.shell.status("run `mu get`");
    }
    Ok(0)
}
