//! What installs: `mu get`, `mu add`, `mu remove` and `mu build`.

use clap::Args;

use crate::cli::change;
use crate::cli::context::{CommandExit, Context, OwnOptions};
use crate::ops::build::{BuildRequest, build};
use crate::ops::get::{GetRequest, RemoveRequest, Save, check_not_empty, get, remove};
use crate::ops::solve::question;
use crate::ops::{Events as _, OperationScope, Warning};
use crate::report::count;

#[derive(Debug, Args)]
#[command(after_help = "\
Without REF, installs what Mu.yaml and Mu.lock require. With REF, installs that package and its \
dependencies; it stays until `mu remove REF`. --save also writes it into Mu.yaml.

With the minimal strategy (--resolution minimal), every requirement means the lowest version that it accepts, \
and Mu.lock is not used. mu also updates Mu.yaml: dependencies start at the version in use. A REF without a version means its newest version or later.

Examples:
  mu get
  mu get --locked --no-dev             exactly Mu.lock, without what only devDependencies need
  mu get 'aws/ec2#^1.0.6'
  mu get --global https://hub.mu.com/aws/ec2
  mu get 'https://git.acme.co/infra.git/modules/vpc#v1.2.0'
  mu get ../shared/logging")]
pub(crate) struct GetArguments {
    /// What to install: [PROTOCOL][BASE/]NAME[#VERSION], or a folder
    #[arg(value_name = "REF")]
    references: Vec<String>,
    /// Install into ~/.mu/packs, for every workspace of this user
    #[arg(short, long, conflicts_with = "save")]
    global: bool,
    /// Also write the references into Mu.yaml
    #[arg(short, long, requires = "references")]
    save: bool,
    /// The package of the workspace whose Mu.yaml is edited
    #[arg(short, long, value_name = "PACKAGE", requires = "save")]
    package: Option<String>,
    /// Also move everything to its newest version (see `mu update`)
    #[arg(short, long)]
    pub(super) update: bool,
    /// Do not install what only devDependencies need; Mu.lock stays the same
    #[arg(long, conflicts_with_all = ["references", "global"])]
    no_dev: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    narrowing: NarrowingArguments,
}

// The conditions on versions of references. (With a doc comment, clap would use it for the whole command.)
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NarrowingArguments {
    /// Only versions in this channel
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<String>,
    /// Only versions of this app version
    #[arg(long, value_name = "VERSION")]
    pub(crate) app_version: Option<String>,
    /// Only versions with this revision: the second part of APP-REVISION, or else the whole version
    #[arg(long, value_name = "VERSION")]
    pub(crate) revision: Option<String>,
    /// Accept prereleases too
    #[arg(long)]
    pub(crate) pre: bool,
}

impl NarrowingArguments {
    /// These conditions, as operations take them.
    pub(crate) fn into_operation(self) -> question::Narrowing {
        let Self { channel, app_version, revision, pre: prereleases } = self;
        question::Narrowing { channel, app_version, revision, prereleases }
    }
}

pub(crate) fn run(context: &Context, arguments: GetArguments) -> CommandExit {
    let GetArguments { references, package, update, dry_run, .. } = arguments;
    let context =
        &context.with_own_options(OwnOptions { no_dev: arguments.no_dev, ..OwnOptions::default() });
    let scope = OperationScope::from_global_flag(arguments.global);
    let opened = match arguments.save {
        true => context.open_for_manifest(scope, package.as_deref(), dry_run),
        false => context.open_for(scope, dry_run),
    };
    let session = opened.or_else(|error| {
        // If nothing can be written, there may be nothing to install either, and that error is more helpful.
        if references.is_empty() {
            check_not_empty(&context.open(scope)?)?;
        }
        Err(error)
    })?;
    if references.is_empty() {
        check_not_empty(&session)?;
    }
    let save = arguments.save.then_some(Save { package, ..Save::default() });
    let narrowing = arguments.narrowing.into_operation();
    let request = GetRequest { references, save, update, dry_run, narrowing };
    change::print_outcome(context, &get(&session, &request)?)
}

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
pub(crate) struct AddArguments {
    /// What to depend on: [PROTOCOL][BASE/]NAME[#VERSION], or a folder
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
    /// Write into devDependencies: needed only to develop the package
    #[arg(long)]
    dev: bool,
    /// Give the dependency this name in the manifest: the alias of a chart, or the key where dependencies are a map. A chart
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
    narrowing: NarrowingArguments,
}

pub(crate) fn run_add(context: &Context, arguments: AddArguments) -> CommandExit {
    let AddArguments { references, dev, alias, package, dry_run, narrowing } = arguments;
    let session =
        context.open_for_manifest(OperationScope::Workspace, package.as_deref(), dry_run)?;
    let (save, narrowing) = (Some(Save { package, dev, alias }), narrowing.into_operation());
    let request = GetRequest { references, save, update: false, dry_run, narrowing };
    change::print_outcome(context, &get(&session, &request)?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Edits the Mu.yaml of the package around this folder, or the one that --package names. Several are edited only with \
--all. With \
the minimal strategy, `# indirect` lines that nothing needs any more are removed too.

Examples:
  mu remove aws/ec2
  mu remove aws/ec2 -p acme/web
  mu remove --global hub.mu.com/aws/ec2")]
pub(crate) struct RemoveArguments {
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

pub(crate) fn run_remove(context: &Context, arguments: RemoveArguments) -> CommandExit {
    let RemoveArguments { references, package, all, global, dry_run } = arguments;
    let session = context.open_for_manifest(
        OperationScope::from_global_flag(global),
        package.as_deref(),
        dry_run,
    )?;
    let request = RemoveRequest { references, package, all, dry_run };
    change::print_outcome(context, &remove(&session, &request)?)
}

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
pub(crate) struct BuildArguments {
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

pub(crate) fn run_build(context: &Context, arguments: BuildArguments) -> CommandExit {
    let BuildArguments { packages, check, no_sandbox } = arguments;
    let session = context.open_changing_session(OperationScope::Workspace)?;
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
            context.shell.warning(&Warning::BuildUntrusted { package: one.clone() });
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
