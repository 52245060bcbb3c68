//! `mu add`.

use clap::Args;

use crate::cli::change;
use crate::cli::context::{Context, Ending};
use crate::cli::get::Narrowing;
use crate::ops::Scope;
use crate::ops::get::{GetRequest, Save, get};

#[derive(Debug, Args)]
#[command(after_help = "\
A reference without a version is written with the newest one that fits: `mu add aws/ec2` may write \
aws/ec2#^1.2.0. One that is already there gets the new version, channel or app version; an empty one (`--channel ''`) removes the key. One in the other list (with or without --dev) moves. With the minimal strategy, other dependencies \
that it raises are raised in Mu.yaml too.

Examples:
  mu add aws/ec2
  mu add 'acme/utils#~1.5' --dev
  mu add 'helm+https://charts.acme.co/postgresql#^12' --alias olddb
  mu add 'https://github.com/acme/logs#main' -p acme/web")]
pub(crate) struct Arguments {
    /// What to depend on: [PROTOCOL][BASE/]NAME[#VERSION], or a folder
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
    /// Write into devDependencies: needed only to develop the package
    #[arg(long)]
    dev: bool,
    /// Give the dependency this name in the manifest: the alias of a chart, or the key where dependencies are a map. A chart \
    /// may be listed under several
    #[arg(long, value_name = "NAME")]
    alias: Option<String>,
    /// The package of the workspace whose Mu.yaml is edited
    #[arg(short, long, value_name = "PACKAGE")]
    package: Option<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    narrowing: Narrowing,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { references, dev, alias, package, dry_run, narrowing } = arguments;
    let session = context.open_for_manifest(Scope::Workspace, package.as_deref(), dry_run)?;
    let (save, narrowing) = (Some(Save { package, dev, alias }), narrowing.into_operation());
    let request = GetRequest { references, save, update: false, dry_run, narrowing };
    change::print(context, &get(&session, &request)?)
}
