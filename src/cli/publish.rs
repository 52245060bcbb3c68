//! `mu publish`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending, Packages};
use crate::cli::pack;
use crate::ops::publish::{Done, PublishRequest, Publishing, publish};
use crate::ops::{Scope, View};
use crate::reference::PackageId;
use crate::report::{GOOD, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
Without --to, a package goes to the registry that its base leads to: see `mu registry list`. A PLACE is the folder or \
bucket (s3://, gs:// or az://BUCKET/PREFIX) of a hub, which is written directly, the URL of a hub's server, or an OCI registry (oci://HOST/REPOSITORY). \
The last two need a token: see `mu login`. Before \
anything is changed, the manifest is checked, and its dependencies are resolved as they will be for others. \
In a Git repository, what is published must be committed; the index line then names the commit. \
A published version never changes: publishing the same content again is fine, other content is refused.

Examples:
  mu publish --dry-run
  mu publish --to /srv/hub
  mu publish --all                     every package of this workspace, dependencies first
  mu publish --moved-to hub.mu.com/acme/site     its last version, which names the successor")]
pub(crate) struct Arguments {
    /// The package: its name or folder [default: the one in this folder]
    #[arg(conflicts_with = "all")]
    package: Option<String>,
    /// The same, as other commands take it
    #[arg(short = 'p', long = "package", value_name = "PACKAGE", hide = true, conflicts_with_all = ["package", "all"])]
    named: Option<String>,
    /// Where to publish to
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Check and pack, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Publish every package of this workspace that is not there yet
    #[arg(long)]
    all: bool,
    /// Publish the locked versions of the dependencies instead of ranges
    #[arg(long)]
    pinned: bool,
    /// Publish changes that are not committed in Git too
    #[arg(long)]
    allow_dirty: bool,
    /// Publish files that look like secrets too
    #[arg(long)]
    force: bool,
    /// The package that takes the place of this one
    #[arg(long, value_name = "PACKAGE", conflicts_with = "all")]
    moved_to: Option<String>,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { to, dry_run, all, force, pinned, allow_dirty, moved_to, .. } = arguments;
    let package = arguments.package.or(arguments.named);
    let view = if all { View::Team } else { View::Around(package.clone()) };
    let session = context.open_in(Scope::Workspace, view)?;
    session.refuse_edits("mu does not publish")?;
    let request =
        PublishRequest { package, to, dry_run, all, force, pinned, allow_dirty, moved_to };
    let published = publish(&session, &request)?;
    if context.shell.is_json() {
        return context.json(&Packages { packages: published.iter().map(Package::new).collect() });
    }
    for publishing in &published {
        if let Some(packed) = &publishing.packed {
            if dry_run {
                context.print_table(&pack::files(packed))?;
            }
            if dry_run || !context.shell.is_quiet() {
                context.line(&context.short(&pack::contents(packed)))?;
            }
        }
        let (id, version) = (context.name(&publishing.id), &publishing.version);
        let place = printable(&publishing.place);
        context.line(&match publishing.done {
            Done::Published => format!("{GOOD}published{GOOD:#} {id} {version} to {place}"),
            Done::Present => format!("{id} {version} is already in {place}"),
            Done::Possible => format!("{id} {version} would be published to {place}"),
        })?;
        if let Some(to) = &publishing.moved_to {
            let would = if dry_run { "would record" } else { "says" };
            context.line(&format!(
                "the hub {would} of {id} that it has moved to {}",
                context.name(to)
            ))?;
        }
    }
    Ok(0)
}

/// What was done with one package.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Package<'a> {
    /// The package.
    id: &'a PackageId,
    /// Its version.
    version: &'a str,
    /// The hub.
    place: &'a str,
    /// What was done.
    done: Done,
    /// The package that takes its place from now on.
    moved_to: &'a Option<PackageId>,
    /// The digest of what is in the archive; none if it did not have to be packed.
    digest: Option<String>,
    /// The digest of the archive.
    archive: Option<String>,
    /// The bytes of the archive.
    size: Option<u64>,
}

impl<'a> Package<'a> {
    fn new(publishing: &'a Publishing) -> Self {
        let archive = publishing.packed.as_ref().map(|packed| &packed.archive);
        Self {
            id: &publishing.id,
            version: &publishing.version,
            place: &publishing.place,
            done: publishing.done,
            moved_to: &publishing.moved_to,
            digest: archive.map(|archive| archive.tree.digest().to_string()),
            archive: archive.map(|archive| archive.archive.to_string()),
            size: archive.map(|archive| archive.size),
        }
    }
}
