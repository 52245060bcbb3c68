//! `mu update`.

use clap::Args;

use crate::cli::change;
use crate::cli::context::{Context, Ending};
use crate::ops::Scope;
use crate::ops::update::update;

#[derive(Debug, Args)]
#[command(after_help = "\
Without PKG, everything moves to the newest versions that fit together. With PKG, that package moves, \
and others only as far as it forces them. Mu.yaml stays as it is; only Mu.lock changes. To move beyond \
what Mu.yaml asks for, use `mu upgrade`.

By the minimal strategy Mu.yaml says what is in use, so moves are written there: dependencies begin at their new \
version, and what only others need is listed with `# indirect` where it must be. A move down lowers or drops \
what needs more, and says why; it raises nothing.

Examples:
  mu update
  mu update aws/ec2
  mu update aws/ec2#1.1.0              to this version, up or down")]
pub(crate) struct Arguments {
    /// What to move, and where to
    #[arg(value_name = "PKG[#VERSION]")]
    packages: Vec<String>,
    /// Move the global packs
    #[arg(short, long)]
    global: bool,
    /// Say what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let scope = Scope::of(arguments.global);
    let mut session = context.open_for(scope, arguments.dry_run)?;
    change::print(context, &update(&mut session, &arguments.packages, arguments.dry_run)?)
}
