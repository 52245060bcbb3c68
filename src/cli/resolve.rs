//! `mu resolve`.

use clap::Args;

use crate::cli::get::Narrowing;
use crate::cli::{Context, Ending, change};
use crate::ops::Scope;
use crate::ops::graph::version_of;
use crate::ops::what_if::{WhatIf, what_if};
use crate::report::{FAINT, STRONG};

/// Show what would be chosen, and change nothing
#[derive(Debug, Args)]
#[command(after_help = "\
REFs stand instead of what the workspace asks for; --with and --without add to it and take from it.

Examples:
  mu resolve
  mu resolve aws/ec2#^1 aws/vpc
  mu resolve --with aws/ec2#^2 --explain
  mu what-if --without hub.mu.com/aws/vpc")]
pub(crate) struct Arguments {
    /// What to ask for, instead of what the workspace does
    #[arg(value_name = "REF")]
    references: Vec<String>,
    /// Ask for this, too
    #[arg(long, value_name = "REF")]
    with: Vec<String>,
    /// Do not ask for this
    #[arg(long, value_name = "ID")]
    without: Vec<String>,
    /// Suppose that this version is installed
    #[arg(long, value_name = "ID#V")]
    installed: Vec<String>,
    /// Suppose this fact of the runtime
    #[arg(long, value_name = "K=V")]
    runtime: Vec<String>,
    /// Never pick this
    #[arg(long, value_name = "REF")]
    exclude: Vec<String>,
    /// Also say what each version was asked for by
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    narrowing: Narrowing,
}

impl Arguments {
    /// The same with `--explain`.
    pub(crate) fn explained(self) -> Self {
        Self { explain: true, ..self }
    }
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let mut session = context.open(Scope::Workspace)?;
    let request = WhatIf {
        references: arguments.references.clone(),
        with: arguments.with.clone(),
        without: arguments.without.clone(),
        installed: arguments.installed.clone(),
        runtime: arguments.runtime.clone(),
        exclude: arguments.exclude.clone(),
        channel: arguments.narrowing.channel.clone(),
        app_version: arguments.narrowing.app_version.clone(),
        prereleases: arguments.narrowing.pre,
    };
    let outcome = what_if(&mut session, &request)?;
    if context.shell.is_json() {
        return change::print(context, &outcome);
    }
    for package in &outcome.lock.packages {
        context.line(&format!("{STRONG}{}{STRONG:#} {}", package.id, version_of(package)))?;
        if arguments.explain {
            for requested in &package.requested {
                context
                    .line(&format!("  {FAINT}{} by {}{FAINT:#}", requested.spec, requested.by))?;
            }
        }
    }
    if !outcome.changes.is_empty() && !outcome.lock.packages.is_empty() {
        context.line("")?;
        context.line(&format!("{FAINT}compared with Mu.lock:{FAINT:#}"))?;
    }
    change::print(context, &outcome)
}
