//! `mu mirror`.

use clap::Args;

use crate::cli::context::{Context, Ending};
use crate::ops::Scope;
use crate::ops::mirror::{Changed, Copied, MirrorRequest, mirror};
use crate::report::{FAINT, GOOD, NOTICE, count, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
Copies the version that would be chosen, and the versions of its dependencies: archives byte for byte, so that \
locks hold for the mirror too. What is already there is not fetched again. Packages that are not in a hub, such \
as those in Git repositories, are not copied. A registry then leads from a base to the mirror.

Examples:
  mu mirror acme/web --to /srv/mirror
  mu mirror 'acme/web#^1.2' --to s3://acme-mirror/hub --all-versions
  mu registry add hub.mu.com/ /srv/mirror")]
pub(crate) struct Arguments {
    /// The package
    reference: String,
    /// The hub to copy to: a folder, s3://, gs:// or az://BUCKET/PREFIX, or a server's URL
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// Do not copy what the package depends on
    #[arg(long)]
    no_deps: bool,
    /// Copy every version, not only the one that would be chosen
    #[arg(long)]
    all_versions: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let request = MirrorRequest {
        reference: arguments.reference.clone(),
        to: arguments.to.clone(),
        no_deps: arguments.no_deps,
        all_versions: arguments.all_versions,
    };
    let mirrored = mirror(&session, &request)?;
    for id in &mirrored.elsewhere {
        session.events.warning(&format!("`{id}` is not in a hub, and is not copied"));
    }
    context.answer(&mirrored, |mirrored| {
        for Copied { name, version } in &mirrored.copied {
            context.line(&format!("{GOOD}+{GOOD:#} {} {}", printable(name), printable(version)))?;
        }
        for Changed { name, version, keys } in &mirrored.changed {
            let (name, version) = (printable(name), printable(version));
            let keys = keys.join(", ");
            context
                .line(&format!("{NOTICE}~{NOTICE:#} {name} {version} {FAINT}({keys}){FAINT:#}"))?;
        }
        context.shell.status(&format!(
            "{} copied to {}, {} already there",
            count(mirrored.copied.len(), "version"),
            printable(&mirrored.place),
            mirrored.present
        ));
        Ok(())
    })
}
