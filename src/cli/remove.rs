//! `mu remove`.

use clap::Args;

use crate::cli::change;
use crate::cli::context::{Context, Ending};
use crate::ops::Scope;
use crate::ops::remove::remove;

#[derive(Debug, Args)]
#[command(after_help = "\
Edits the Mu.yaml around this folder, or every one of the workspace where this folder is in none. By the \
minimal strategy, `# indirect` lines that nothing leads to any more go as well.

Examples:
  mu remove aws/ec2
  mu remove --global hub.mu.com/aws/ec2")]
pub(crate) struct Arguments {
    /// What to stop using
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
    /// Remove from ~/.mu/packs
    #[arg(short, long)]
    global: bool,
    /// Say what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let scope = Scope::of(arguments.global);
    let mut session = context.open_for(scope, arguments.dry_run)?;
    change::print(context, &remove(&mut session, &arguments.references, arguments.dry_run)?)
}
