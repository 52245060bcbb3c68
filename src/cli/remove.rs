//! `mu remove`.

use clap::Args;

use crate::cli::change;
use crate::cli::context::{Context, Ending};
use crate::ops::Scope;
use crate::ops::remove::{RemoveRequest, remove};

#[derive(Debug, Args)]
#[command(after_help = "\
Edits the Mu.yaml of the package around this folder, or the one that --package names. Several are edited only with \
--all. With \
the minimal strategy, `# indirect` lines that nothing needs any more are removed too.

Examples:
  mu remove aws/ec2
  mu remove aws/ec2 -p acme/web
  mu remove --global hub.mu.com/aws/ec2")]
pub(crate) struct Arguments {
    /// The packages to remove
    #[arg(value_name = "PKG", required = true)]
    references: Vec<String>,
    /// The package of the workspace whose Mu.yaml is edited
    #[arg(short, long, value_name = "PACKAGE", conflicts_with_all = ["global", "all"])]
    package: Option<String>,
    /// Edit the Mu.yaml of every package of the workspace
    #[arg(long, conflicts_with = "global")]
    all: bool,
    /// Remove from ~/.mu/packs
    #[arg(short, long)]
    global: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { references, package, all, global, dry_run } = arguments;
    let session = context.open_for_manifest(Scope::of(global), package.as_deref(), dry_run)?;
    let request = RemoveRequest { references, package, all, dry_run };
    change::print(context, &remove(&session, &request)?)
}
