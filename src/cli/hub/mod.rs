//! `mu hub`: creates, checks and serves hubs; `token.rs` manages who may change one.

mod serve;
pub(super) mod token;

use clap::Subcommand;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::ops::hub;
use crate::ops::{Code, CommandError, Events as _, Stage};
use crate::report::{FAINT, count, size};

/// Manage a hub in a folder or a bucket
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
pub(crate) enum HubCommand {
    /// Create an empty hub; an existing one stays as it is
    #[command(after_help = "\
A hub is only files: any web server can serve them for reading, and `mu hub serve` accepts changes too.

Examples:
  mu hub init /srv/hub
  mu hub init s3://acme-packages/hub")]
    Init {
        /// A folder, which is created if necessary, or s3://, gs:// or az://BUCKET/PREFIX
        #[arg(value_name = "PLACE")]
        place: String,
    },
    /// Check every index line and archive of a hub
    #[command(after_help = "\
Exits with status 1 if there are problems. Leftovers come from interrupted writes and do no harm. --repair removes them, and rebuilds the files that are derived from the index. It never changes an index line, or an archive that an index line names.

Examples:
  mu hub check /srv/hub
  mu hub check s3://acme-packages/hub --repair")]
    Check {
        /// A folder, or s3://, gs:// or az://BUCKET/PREFIX
        #[arg(value_name = "PLACE")]
        place: String,
        /// Rebuild the files that are derived from the index, and remove leftovers
        #[arg(long)]
        repair: bool,
    },
    Serve(serve::ServeArguments),
    #[command(subcommand)]
    Token(token::TokenCommand),
}

/// What `mu hub init` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Init<'a> {
    /// The place of the hub.
    place: &'a str,
    /// Whether there was none before.
    new: bool,
}

/// What `mu hub check` answers; for a hub with problems, the `details` of the error.
#[derive(Serialize, JsonSchema)]
pub(super) struct Check<'a> {
    /// Packages that were checked.
    packages: u64,
    /// Their versions.
    versions: u64,
    /// Bytes of their archives.
    bytes: u64,
    /// The problems, including repaired ones.
    findings: Vec<Finding<'a>>,
}

/// One problem.
#[derive(Serialize, JsonSchema)]
struct Finding<'a> {
    /// The file, relative to the hub.
    path: &'a str,
    /// The problem.
    what: &'a str,
    /// Whether it is harmless: left by an interrupted write.
    leftover: bool,
    /// Whether it was repaired.
    repaired: bool,
}

pub(crate) use self::serve::run_server;

pub(crate) fn run(context: &Context, command: HubCommand) -> CommandExit {
    match command {
        HubCommand::Init { place } => init(context, &place),
        HubCommand::Check { place, repair } => check(context, &place, repair),
        HubCommand::Serve(arguments) => serve::run(context, arguments),
        HubCommand::Token(command) => token::run(context, command),
    }
}

fn init(context: &Context, place: &str) -> CommandExit {
    let new = hub::create_hub(&context.environment, place)?;
    context.answer(&Init { place, new }, |_| {
        context.line(&match new {
            true => format!("created a hub at {place}"),
            false => format!("there is already a hub at {place}"),
        })
    })
}

fn check(context: &Context, place: &str, repair: bool) -> CommandExit {
    let mut begun = 0;
    let mut progress = |_: &str| {
        context.shell.progress(Stage::Checking, begun, 0);
        begun += 1;
    };
    let report = hub::check(&context.environment, place, repair, &mut progress)?;
    let findings = report.findings.iter().map(|finding| Finding {
        path: &finding.path,
        what: &finding.what,
        leftover: finding.is_leftover,
        repaired: finding.is_repaired,
    });
    let answer = Check {
        packages: report.packages,
        versions: report.versions,
        bytes: report.bytes,
        findings: findings.collect(),
    };
    if !report.is_sound() {
        let wrong: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| !finding.is_leftover && !finding.is_repaired)
            .collect();
        let mut message = format!("{} with the hub at `{place}`", count(wrong.len(), "problem"));
        for finding in &wrong {
            message.push_str(&format!("\n  {}: {}", finding.path, finding.what));
        }
        // What people have written is theirs to restore.
        let by_repair = !repair && wrong.iter().any(|finding| finding.can_be_repaired);
        let by_hand = repair || wrong.iter().any(|finding| !finding.can_be_repaired);
        let hints = [
            (
                by_repair,
                "`--repair` rebuilds the files that are derived from the index; it changes no index line and no archive",
            ),
            (by_hand, "restore the right archive or index line from a backup"),
        ];
        let error = CommandError::new(Code::Integrity, message);
        let hints = hints.into_iter().filter(|(helps, _)| *helps);
        let error = hints.fold(error, |error, (_, hint)| error.hint(hint));
        return Err(error.with_details(answer).into());
    }
    context.answer(&answer, |answer| {
        for finding in &answer.findings {
            let state = if finding.repaired { "repaired" } else { "leftover" };
            context.line(&format!("{state}  {}: {}", finding.path, finding.what))?;
        }
        context.line(&format!(
            "{} with {} checked {FAINT}({}){FAINT:#}",
            count(usize::try_from(answer.packages).unwrap_or(usize::MAX), "package"),
            count(usize::try_from(answer.versions).unwrap_or(usize::MAX), "version"),
            size(answer.bytes)
        ))?;
        if !repair && !answer.findings.is_empty() {
            context.shell.status("`mu hub check --repair` removes leftovers");
        }
        Ok(())
    })
}
