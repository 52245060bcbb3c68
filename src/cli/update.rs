//! `mu update`.

use clap::Args;

use crate::cli::change;
use crate::cli::context::{Context, Ending};
use crate::cli::get::Narrowing;
use crate::ops::Scope;
use crate::ops::get::check_not_empty;
use crate::ops::update::{UpdateRequest, update};

#[derive(Debug, Args)]
#[command(after_help = "\
Without PKG, everything moves to the newest versions that fit together. With PKG, that package moves, and others only as far as necessary. Mu.yaml does not change, only Mu.lock does. To move beyond what Mu.yaml allows, use `mu upgrade`.

With the minimal strategy, Mu.yaml says what is in use, so moves are written there: dependencies start at their \
new version, and packages that only others need are listed with `# indirect` where necessary. A move down lowers \
or drops whatever needs a newer version, and says why; it raises nothing.

Examples:
  mu update
  mu update aws/ec2
  mu update 'aws/ec2#1.1.0'            to this version, up or down
  mu update ops/kafka --app-version 2.3
  mu update --installed 'ops/kafka#1.0.0' --dry-run")]
pub(crate) struct Arguments {
    /// The packages to move, and to which version
    #[arg(value_name = "PKG[#VERSION]")]
    packages: Vec<String>,
    /// Move the global packs
    #[arg(short, long)]
    global: bool,
    /// Assume that this version is installed; step-by-step upgrades start there
    #[arg(long, value_name = "ID#V")]
    installed: Vec<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    narrowing: Narrowing,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let scope = Scope::of(arguments.global);
    let mut session = context.open_for(scope, arguments.dry_run)?;
    if arguments.packages.is_empty() {
        check_not_empty(&session)?;
    }
    let request = UpdateRequest {
        packages: arguments.packages.clone(),
        narrowing: arguments.narrowing.to_operation(),
        installed: arguments.installed.clone(),
    };
    let outcome = update(&mut session, &request, arguments.dry_run)?;
    change::note_apps(context, &outcome);
    change::print(context, &outcome)
}
