//! `mu mirror`.

use clap::Args;

use crate::cli::context::{Context, Ending};
use crate::env::absolute;
use crate::ops::mirror::{Changed, Copied, Elsewhere, MirrorRequest, mirror};
use crate::ops::session::error::quoted;
use crate::ops::{Code, CommandError, Scope, Session, View};
use crate::report::{FAINT, GOOD, NOTICE, count, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
With --lock, copies everything that Mu.lock names, at exactly those versions. With references, copies the versions that \
would be chosen for them, and those of their dependencies. Archives of hubs are copied byte for byte, so locks hold for the \
mirror too. Packages in Git repositories are packed from the commit that is locked, and charts from their archives; \
their content stays the same. What is already there is not fetched again. With --as, packages get another namespace: their index lines name the original, \
and the copies depend on each other.

Examples:
  mu mirror --lock --to /srv/mirror
  mu mirror acme/web acme/api --to /srv/mirror
  mu mirror 'acme/web#^1.2' --to s3://acme-mirror/hub --all-versions
  mu mirror contrib/web --to /srv/hub --as internal
  mu mirror --lock --to /srv/hub --as internal
  mu registry add hub.mu.com/ /srv/mirror")]
pub(crate) struct Arguments {
    /// The packages
    #[arg(value_name = "REF", conflicts_with = "lock")]
    references: Vec<String>,
    /// Copy everything that Mu.lock names, at exactly those versions
    #[arg(long, conflicts_with_all = ["no_deps", "all_versions"])]
    lock: bool,
    /// Where to copy to: a hub's folder, bucket (s3://, gs:// or az://BUCKET/PREFIX) or URL, or an OCI registry (oci://HOST/REPOSITORY)
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// Do not copy what the packages depend on
    #[arg(long)]
    no_deps: bool,
    /// Copy every version, not only the one that would be chosen
    #[arg(long)]
    all_versions: bool,
    /// Copy packages of the namespace of REF into this one instead; with --lock, all packages
    #[arg(long = "as", value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Print what would be copied, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { references, lock, to, no_deps, all_versions, namespace, dry_run } = arguments;
    if references.is_empty() && !lock {
        let error = CommandError::new(Code::Usage, "the command names nothing to copy");
        let error = error.hint("`--lock` copies everything that Mu.lock names");
        return Err(error.hint("`mu mirror acme/web --to PLACE` copies a package").into());
    }
    let session = context.open_in(Scope::Workspace, View::Team)?;
    // Under another name, a registry of the settings does not lead to it.
    let is_for_registries = lock && namespace.is_none();
    let request = MirrorRequest { references, to, no_deps, all_versions, namespace, dry_run };
    let mirrored = mirror(&session, &request)?;
    for elsewhere in &mirrored.elsewhere {
        session.events.warning(&left(elsewhere));
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
        let copied = if mirrored.dry_run { "would be copied" } else { "copied" };
        context.shell.status(&format!(
            "{} {copied} to {}, {} already there",
            count(mirrored.copied.len(), "version"),
            printable(&mirrored.place),
            mirrored.present
        ));
        if is_for_registries && !mirrored.dry_run {
            let place = registry_place(&session, &mirrored.place);
            for (prefix, place) in mirrored.prefixes.iter().zip(place.iter().cycle()) {
                let next = format!("next: `mu registry add {prefix} {}`", quoted(place));
                context.shell.status(&next);
            }
        }
        Ok(())
    })
}

/// The mirror's URL for a registry; none for a bucket, which is read through a web server.
fn registry_place(session: &Session, place: &str) -> Option<String> {
    match place.split_once("://") {
        Some((scheme, _)) => scheme.starts_with("http").then(|| place.to_owned()),
        None if session.environment.current == session.workspace.root => {
            let is_path = place.starts_with(['.', '/']);
            Some(if is_path { place.to_owned() } else { format!("./{place}") })
        }
        // Folders in settings are relative to the workspace's root.
        None => Some(absolute(&session.environment.current, place.as_ref()).display().to_string()),
    }
}

/// Why a package was not copied, and how to copy it.
fn left(elsewhere: &Elsewhere) -> String {
    let Elsewhere { id, provider, place, reason } = elsewhere;
    match (reason, &**provider) {
        (Some(reason), "git") => format!(
            "`{id}` is not copied: {reason}; `git clone --mirror {place}` copies its repository, and a registry with \
             `provider: git` leads to the copy"
        ),
        (Some(reason), _) => format!("`{id}` is not copied: {reason}"),
        (None, _) => format!("`{id}` is the folder `{place}`, and is not copied"),
    }
}
