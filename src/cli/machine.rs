//! `mu cache`, `mu fetch` and `mu doctor`: what mu keeps on this machine, and whether it can work there.

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context, OwnOptions};
use crate::ops::build::confine::{Unconfined, is_supported};
use crate::ops::cache::fill;
use crate::ops::doctor::{Finding, doctor};
#[cfg(feature = "git")]
use crate::ops::edit::prune_trash;
use crate::ops::{Code, CommandError, OperationScope, View, cache};
use crate::report::{BAD, FAINT, GOOD, NOTICE, count, printable, size};
use crate::store::Store;
#[cfg(feature = "git")]
use crate::workspace::edits::TRASH;

/// Manage the cache
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Everything in the cache can be deleted at any time: it is fetched again when it is needed. Packs of \
workspaces with `link: symlink` are links into it, though: `prune` keeps what they need; after `clean`, run `mu \
get` there.

Examples:
  mu cache dir
  mu cache size
  mu cache prune
  mu cache prune --dry-run")]
pub(crate) enum CacheCommand {
    /// Show the cache folder
    Dir,
    /// Show how large it is
    Size,
    /// Remove stored packages that no pack on this machine is linked to, and edits that have been in the trash for 30 days
    Prune {
        /// Remove nothing, and show how much would be removed
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove everything
    Clean,
}

/// Where the cache is.
#[derive(Serialize, JsonSchema)]
pub(super) struct Folder {
    /// The folder.
    path: String,
}

/// What `mu cache clean` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Cleaned {
    /// The folder.
    path: String,
    /// The bytes that were removed.
    bytes: u64,
}

/// What happened to what is listed.
fn removed(dry_run: bool) -> &'static str {
    if dry_run { "would remove" } else { "removed" }
}

/// Removes what has long been in the trash of the workspace around the current folder.
#[cfg(feature = "git")]
fn empty_trash(context: &Context, dry_run: bool) -> Result<(), CommandError> {
    let session = context.open_settings_session()?;
    let trash = session.workspace.root.join(TRASH.as_str());
    if crate::fs::metadata_if_there(&trash)?.is_none() {
        return Ok(());
    }
    let session = if dry_run { session } else { context.open_to_end()? };
    let edits = prune_trash(&session, dry_run)?;
    if edits > 0 {
        let removed = removed(dry_run);
        context.shell.status(&format!("{removed} {} from the trash", count(edits, "edit")));
    }
    Ok(())
}

#[cfg(not(feature = "git"))]
fn empty_trash(_context: &Context, _dry_run: bool) -> Result<(), CommandError> {
    Ok(())
}

pub(crate) fn run(context: &Context, command: &CacheCommand) -> CommandExit {
    let cache = &context.environment.cache;
    let store = Store::new(cache).read_only(context.options()?.store_readonly);
    let folder = || Folder { path: cache.display().to_string() };
    match command {
        CacheCommand::Dir => context.answer(&folder(), |folder| context.line(&folder.path)),
        CacheCommand::Size => context.answer(&cache::cache_size(cache)?, |found| {
            for (part, bytes) in &found.parts {
                context.line(&format!("{part:<11} {}", size(*bytes)))?;
            }
            context.line(&format!("{:<11} {}", "total", size(found.total)))
        }),
        CacheCommand::Prune { dry_run } => {
            empty_trash(context, *dry_run)?;
            let pruned = cache::prune(&store, cache, *dry_run, &*context.shell)?;
            context.answer(&pruned, |pruned| {
                let (trees, bytes) = (count(pruned.trees, "package"), size(pruned.bytes));
                let removed = removed(*dry_run);
                context.line(&format!("{removed} {trees} {FAINT}({bytes}){FAINT:#}"))
            })
        }
        CacheCommand::Clean => {
            let bytes = cache::clean(&store, cache, &*context.shell)?;
            let cleaned = Cleaned { path: cache.display().to_string(), bytes };
            context.answer(&cleaned, |Cleaned { path, bytes }| {
                context.line(&format!("removed {} {FAINT}from {path}{FAINT:#}", size(*bytes)))
            })
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Needs nothing but Mu.lock (and the settings that say where packages are), so it suits a layer of an image, or a cache: the layer stays valid until Mu.lock changes. `mu get --locked` then installs from the store. With --locked, the manifests must be there, and fit Mu.lock.

Examples:
  mu fetch
  mu fetch --locked --no-dev           without what only devDependencies need
  mu get --locked --store-readonly     with a store that cannot be written")]
pub(crate) struct FetchArguments {
    /// Do not fetch what only devDependencies need (reads the manifests)
    #[arg(long)]
    no_dev: bool,
}

pub(crate) fn run_fetch(context: &Context, arguments: &FetchArguments) -> CommandExit {
    let context =
        &context.with_own_options(OwnOptions { no_dev: arguments.no_dev, ..OwnOptions::default() });
    let session = context.open_in(OperationScope::Workspace, View::Team)?;
    let filled = fill(&session)?;
    context.answer(&filled, |filled| {
        let left_out = match filled.left_out.as_slice() {
            [] => String::new(),
            [one] => format!("; {one} was left out"),
            several => format!("; {} were left out", count(several.len(), "package")),
        };
        let were = if filled.reused == 1 { "was" } else { "were" };
        context.shell.status(&format!(
            "fetched {}, {} {were} already on this machine{left_out}",
            count(filled.fetched, "package"),
            filled.reused
        ));
        Ok(())
    })
}

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

pub(crate) fn run_doctor(context: &Context, _arguments: &DoctorArguments) -> CommandExit {
    let mut findings = doctor(&context.environment, &context.open_settings_session());
    findings.push(builds());
    let answer = Answer { findings };
    let failed = answer.findings.iter().filter(|finding| !finding.ok);
    let failed: Vec<&str> = failed.map(|finding| &*finding.subject).collect();
    let failure = failed.first().map(|first| {
        let code = if first.starts_with("registry ") { Code::Network } else { Code::Io };
        let checks = count(failed.len(), "check");
        CommandError::new(code, format!("{checks} failed: {}", failed.join(", ")))
    });
    context.answer_checks(&answer, failure, |answer| {
        answer.findings.iter().try_for_each(|finding| line(context, finding))
    })
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
