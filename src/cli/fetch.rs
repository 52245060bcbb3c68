//! `mu fetch`.

use clap::Args;

use crate::cli::context::{Context, Ending};
use crate::ops::fetch::fill;
use crate::ops::{Scope, View};
use crate::report::count;

#[derive(Debug, Args)]
#[command(after_help = "\
Needs nothing but Mu.lock (and the settings that say where packages are), so it suits a layer of an image, or a cache: the layer stays valid until Mu.lock changes. `mu get --locked` then installs from the store. With --locked, the manifests must be there, and fit Mu.lock.

Examples:
  mu fetch
  mu fetch --locked --no-dev           without what only devDependencies need
  mu get --locked --store-readonly     with a store that cannot be written")]
pub(crate) struct Arguments {
    /// Do not fetch what only devDependencies need (reads the manifests)
    #[arg(long)]
    no_dev: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let mut session = context.open_in(Scope::Workspace, View::Team)?;
    session.options.no_dev = arguments.no_dev;
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
