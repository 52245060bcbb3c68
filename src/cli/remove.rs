//! `mu remove`.

use clap::Args;

use crate::cli::change;
use crate::cli::context::{Context, Ending};
use crate::ops::Scope;
use crate::ops::remove::remove;

#[derive(Debug, Args)]
#[command(after_help = "\
Edits the Mu.yaml of the package around this folder; outside of packages, every Mu.yaml of the workspace. With \
the minimal strategy, `# indirect` lines that nothing needs any more are removed too.

Examples:
  mu remove aws/ec2
  mu remove --global hub.mu.com/aws/ec2")]
pub(crate) struct Arguments {
    /// The packages to remove
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
    /// Remove from ~/.mu/packs
    #[arg(short, long)]
    global: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let scope = Scope::of(arguments.global);
    let mut session = context.open_for(scope, arguments.dry_run)?;
    change::print(context, &remove(&mut session, &arguments.references, arguments.dry_run)?)
}
