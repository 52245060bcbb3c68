//! `mu build`.

use clap::Args;

use crate::cli::context::{Context, Ending};
use crate::ops::build::{BuildRequest, build};
use crate::ops::{Events as _, Scope};
use crate::report::count;

#[derive(Debug, Args)]
#[command(after_help = "\
A package can have a `build` in its manifest: a command, and the files that it makes. Installing a package never runs it; `mu build` does, for packages that `trust: {build: [PATTERN]}` in the settings names. The first time, and whenever anything of it has changed, it shows what would run and asks. \
A build gets a copy of the package, no network, and no files but its own, those of its dependencies, and the system's programs; on Linux, the package bubblewrap does that. The result is installed together with the package.

Without PKG, builds everything in Mu.lock that is trusted; what PKG depends on is built first. What was built before from the same is not built again.

Examples:
  mu build
  mu build acme/web
  mu build --check                     build twice, and compare
  mu build --yes                       agree to every build that is trusted and new, and print it")]
pub(crate) struct Arguments {
    /// The packages to build, with what they depend on
    #[arg(value_name = "PKG")]
    packages: Vec<String>,
    /// Build twice, and fail if the results differ
    #[arg(long)]
    check: bool,
    /// Run builds with all of your rights, and ask anew for that
    #[arg(long)]
    no_sandbox: bool,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { packages, check, no_sandbox } = arguments;
    let session = context.open_to_change(Scope::Workspace)?;
    let report = build(&session, &BuildRequest { packages, check, no_sandbox })?;
    context.answer(&report, |report| {
        for one in &report.packages {
            let how = match (one.checked, one.reused) {
                (true, _) => "built twice, with the same result",
                (false, true) => "was built before",
                (false, false) => "built",
            };
            context.line(&format!("{} {}: {how}", context.name(&one.id), one.version))?;
        }
        for one in &report.untrusted {
            let name = context.short(one);
            context
                .shell
                .warning(&format!("{name} has a build that is not trusted; it did not run"));
        }
        if report.packages.is_empty() {
            context.shell.status("no package in Mu.lock has a build");
        } else {
            context.shell.status(&format!(
                "{} built and installed",
                count(report.packages.len(), "package")
            ));
        }
        Ok(())
    })
}
