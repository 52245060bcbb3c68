//! `mu get`.

use clap::Args;

use crate::cli::change;
use crate::cli::context::{Context, Ending};
use crate::ops::Scope;
use crate::ops::get::{GetRequest, Save, check_not_empty, get};
use crate::ops::solve::narrowed;

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
pub(crate) struct Arguments {
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
    narrowing: Narrowing,
}

// The conditions on versions of references. (With a doc comment, clap would use it for the whole command.)
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Narrowing {
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

impl Narrowing {
    /// These conditions, as operations take them.
    pub(crate) fn into_operation(self) -> narrowed::Narrowing {
        let Self { channel, app_version, revision, pre: prereleases } = self;
        narrowed::Narrowing { channel, app_version, revision, prereleases }
    }
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { references, package, update, dry_run, .. } = arguments;
    let scope = Scope::of(arguments.global);
    let opened = match arguments.save {
        true => context.open_for_manifest(scope, package.as_deref(), dry_run),
        false => context.open_for(scope, dry_run),
    };
    let mut session = opened.or_else(|error| {
        // If nothing can be written, there may be nothing to install either, and that error is more helpful.
        if references.is_empty() {
            check_not_empty(&context.open(scope)?)?;
        }
        Err(error)
    })?;
    if references.is_empty() {
        check_not_empty(&session)?;
    }
    session.options.no_dev = arguments.no_dev;
    let save = arguments.save.then_some(Save { package, ..Save::default() });
    let narrowing = arguments.narrowing.into_operation();
    let request = GetRequest { references, save, update, dry_run, narrowing };
    change::print(context, &get(&session, &request)?)
}
