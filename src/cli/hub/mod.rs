//! `mu hub`: made, checked and served; `token.rs` has who may change one.

mod serve;
mod token;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::hub;
use crate::ops::{Code, CommandError};
use crate::report::{FAINT, count, size};

/// Make and care for a hub, in a folder or a bucket
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A PLACE is a folder or a bucket, whose credentials are in the environment:
  s3://BUCKET/PREFIX     AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL
  gs://BUCKET/PREFIX     GOOGLE_APPLICATION_CREDENTIALS
  az://CONTAINER/PREFIX  AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY

Examples:
  mu hub init /srv/hub
  mu hub token add /srv/hub ada --namespace acme
  mu hub serve /srv/hub --listen 127.0.0.1:8080
  mu hub check s3://acme-packages/hub --repair")]
pub(crate) enum Command {
    /// Make a hub without packages; one that is there stays as it is
    #[command(after_help = "\
A hub is files alone: any web server can serve them for reading, and `mu hub serve` takes changes too.

Examples:
  mu hub init /srv/hub
  mu hub init s3://acme-packages/hub")]
    Init(InitArguments),
    /// Read every line and archive of a hub again, and find what is wrong
    #[command(after_help = "\
Problems end it with status 1. Leftovers are what a write left that broke off; they do no harm. Repairing \
removes them, and writes what follows from the index again. It never changes an index line, nor an \
archive that one leads to.

Examples:
  mu hub check /srv/hub
  mu hub check s3://acme-packages/hub --repair")]
    Check(CheckArguments),
    Serve(serve::Arguments),
    #[command(subcommand)]
    Token(token::Command),
}

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// A folder, which is made if it is not there, or s3://, gs:// or az://BUCKET/PREFIX
    #[arg(value_name = "PLACE")]
    place: String,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// A folder, or s3://, gs:// or az://BUCKET/PREFIX
    #[arg(value_name = "PLACE")]
    place: String,
    /// Put right what follows from the index, and remove leftovers
    #[arg(long)]
    repair: bool,
}

pub(crate) fn run(context: &Context, command: &Command) -> Ending {
    match command {
        Command::Init(arguments) => init(context, &arguments.place),
        Command::Check(arguments) => check(context, arguments),
        Command::Serve(arguments) => serve::run(context, arguments),
        Command::Token(command) => token::run(context, command),
    }
}

fn init(context: &Context, place: &str) -> Ending {
    let is_new = hub::init(&context.environment, place)?;
    if context.shell.is_json() {
        context.json(&json!({ "place": place, "new": is_new }))?;
    } else if is_new {
        context.line(&format!("made a hub at {place}"))?;
    } else {
        context.line(&format!("there is a hub at {place} already"))?;
    }
    Ok(0)
}

fn check(context: &Context, arguments: &CheckArguments) -> Ending {
    let report = hub::check(&context.environment, &arguments.place, arguments.repair, &mut |_| {})?;
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "path": finding.path,
                "what": finding.what,
                "leftover": finding.is_leftover,
                "repaired": finding.is_repaired,
            })
        })
        .collect();
    let facts = json!({
        "packages": report.packages,
        "versions": report.versions,
        "bytes": report.bytes,
        "findings": findings,
    });
    if !report.is_sound() {
        let wrong: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| !finding.is_leftover && !finding.is_repaired)
            .collect();
        let mut message =
            format!("{} with the hub at `{}`", count(wrong.len(), "problem"), arguments.place);
        for finding in &wrong {
            message.push_str(&format!("\n  {}: {}", finding.path, finding.what));
        }
        let hint = if arguments.repair {
            "put back the right archive or index line, from a copy"
        } else {
            "`--repair` puts right what follows from the index; it changes no index line and no archive"
        };
        let error = CommandError::new(Code::Integrity, message).hint(hint);
        return Err(error.with_details(facts).into());
    }
    if context.shell.is_json() {
        context.json(&facts)?;
        return Ok(0);
    }
    for finding in &report.findings {
        let state = if finding.is_repaired { "repaired" } else { "leftover" };
        context.line(&format!("{state}  {}: {}", finding.path, finding.what))?;
    }
    context.line(&format!(
        "{} with {} checked {FAINT}({}){FAINT:#}",
        count(usize::try_from(report.packages).unwrap_or(usize::MAX), "package"),
        count(usize::try_from(report.versions).unwrap_or(usize::MAX), "version"),
        size(report.bytes)
    ))?;
    if !arguments.repair && !report.findings.is_empty() {
        context.shell.status("`mu hub check --repair` removes what is left over");
    }
    Ok(0)
}
