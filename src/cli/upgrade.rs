//! `mu upgrade` and `mu downgrade`.

use clap::Args;

use crate::cli::change;
use crate::cli::context::{Context, Ending};
use crate::cli::get::Narrowing;
use crate::ops::get::check_not_empty;
use crate::ops::session::named::PackageName;
use crate::ops::update::UpdateRequest;
use crate::ops::upgrade::upgrade;
use crate::ops::{Code, CommandError, Scope, update};

#[derive(Debug, Args)]
#[command(after_help = "\
Ranges in Mu.yaml are raised to the versions that were chosen, and keep their form: ~1.5 becomes ~2.1. \
Pins move only if they are named; tags, branches and commits stay. To stay within what Mu.yaml allows, use `mu update`. With the minimal strategy, whole versions are written: ~1.5 becomes ~2.1.3.

Examples:
  mu upgrade
  mu upgrade aws/ec2
  mu upgrade 'aws/ec2#2.1.0'           to this version, not to the newest
  mu upgrade ops/kafka --app-version 3
  mu upgrade --dry-run")]
pub(crate) struct Arguments {
    /// The packages to upgrade, and to which version [default: every range, to the newest]
    #[arg(value_name = "PKG[#VERSION]")]
    packages: Vec<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    narrowing: Narrowing,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The same as `mu update PKG#VERSION`, for older versions only; a range in Mu.yaml that forbids the version is lowered: \
~2.0.0 becomes ~1.0.6. With the minimal strategy, a package that needs \
more than that version goes to its next lower version that does not, or is dropped; each is listed with its \
reason.

Examples:
  mu downgrade 'aws/ec2#1.0.6'")]
pub(crate) struct DowngradeArguments {
    /// The packages to move, and to which version
    #[arg(value_name = "PKG#VERSION", required = true)]
    packages: Vec<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { packages, dry_run, narrowing } = arguments;
    let session = context.open_for(Scope::Workspace, dry_run)?;
    if packages.is_empty() {
        check_not_empty(&session)?;
    }
    let narrowing = narrowing.into_operation();
    let names = packages.iter().map(|text| PackageName::with_version(text));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let names_versions = names.iter().any(|(_, version)| version.is_some());
    let outcome = if narrowing.is_empty() && !names_versions {
        let names: Vec<PackageName> = names.into_iter().map(|(name, _)| name).collect();
        upgrade(&session, &names, dry_run)?
    } else {
        let request = UpdateRequest { packages, narrowing, ..UpdateRequest::default() };
        update::upgrade_within(&session, &request, dry_run)?
    };
    change::note_apps(context, &outcome);
    change::print(context, &outcome)
}

pub(crate) fn downgrade(context: &Context, arguments: &DowngradeArguments) -> Ending {
    for package in &arguments.packages {
        if !package.contains('#') {
            let message =
                format!("`mu downgrade` needs the version to move to: `{package}#VERSION`");
            let hint = format!("`mu versions {package}` lists the versions that there are");
            return Err(CommandError::new(Code::Usage, message).hint(hint).into());
        }
    }
    let session = context.open_for(Scope::Workspace, arguments.dry_run)?;
    change::print(context, &update::downgrade(&session, &arguments.packages, arguments.dry_run)?)
}
