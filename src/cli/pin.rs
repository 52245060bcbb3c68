//! `mu pin` and `mu unpin`.

use clap::Args;

use crate::cli::change;
use crate::cli::context::{Context, Ending};
use crate::ops::Scope;
use crate::ops::pin::{self, PinRequest};

#[derive(Debug, Args)]
#[command(after_help = "\
A comment after each entry keeps what was there, and `mu unpin` restores it. Where no comment can be (in Mu.json, \
and lists in brackets), mu says what it cannot restore. A Git package without a version tag is \
pinned to its commit; with --commits, every Git package is.

Examples:
  mu pin
  mu pin aws/ec2
  mu pin 'aws/ec2#1.1.0'               to this version, which is installed then
  mu pin --commits")]
pub(crate) struct PinArguments {
    /// The packages to pin, and to which version [default: all, to the version in use]
    #[arg(value_name = "PKG[#VERSION]")]
    packages: Vec<String>,
    /// Pin Git packages to their commit, not their version
    #[arg(long)]
    commits: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Restores what `mu pin` replaced, if its comment is still there. A pin without such a comment is changed only if PKG \
names it: 1.2.0 becomes ^1.2.0.

Examples:
  mu unpin
  mu unpin aws/ec2")]
pub(crate) struct UnpinArguments {
    /// The packages to unpin [default: all that `mu pin` pinned]
    #[arg(value_name = "PKG")]
    packages: Vec<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn pin(context: &Context, arguments: PinArguments) -> Ending {
    let PinArguments { packages, commits, dry_run } = arguments;
    let session = context.open_for(Scope::Workspace, dry_run)?;
    change::print(context, &pin::pin(&session, &PinRequest { packages, commits, dry_run })?)
}

pub(crate) fn unpin(context: &Context, arguments: UnpinArguments) -> Ending {
    let UnpinArguments { packages, dry_run } = arguments;
    let session = context.open_for(Scope::Workspace, dry_run)?;
    let request = PinRequest { packages, commits: false, dry_run };
    change::print(context, &pin::unpin(&session, &request)?)
}
