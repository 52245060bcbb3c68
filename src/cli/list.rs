//! `mu list`.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use clap::Args;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::lock::LockedPackage;
use crate::ops::Scope;
use crate::ops::session::installed_packs::{folder_of, named, wanted};
use crate::ops::session::locked::version_of;
use crate::packs::Wanted;
use crate::report::{BAD, FAINT, GOOD, STRONG, Table};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu list
  mu list --global
  mu list --workspace                  the packages of this workspace itself")]
pub(crate) struct Arguments {
    /// List the global packs
    #[arg(short, long)]
    global: bool,
    /// List the packages of the workspace itself
    #[arg(long, conflicts_with = "global")]
    workspace: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let scope = Scope::of(arguments.global);
    let session = context.open(scope)?;
    if arguments.workspace {
        return members(context, &session);
    }
    let lock = session.lockfile()?.unwrap_or_default();
    let packs = session.packs();
    let (indices, locked): (Vec<usize>, Vec<Wanted>) = wanted(&lock).unzip();
    let state = packs.recognized(|| named(&lock))?;
    let missing: BTreeSet<&str> =
        packs.missing(&state, &locked).into_iter().map(|wanted| &*wanted.place).collect();
    let is_installed = |wanted: &Wanted| !missing.contains(&*wanted.place);
    let installed: BTreeMap<usize, bool> =
        indices.into_iter().zip(locked.iter().map(is_installed)).collect();
    let paths: BTreeMap<usize, String> = wanted(&lock)
        .map(|(index, wanted)| (index, packs.pack_path(&wanted.place).display().to_string()))
        .collect();
    if context.shell.is_json() {
        let mut packages: Vec<_> = lock
            .packages
            .iter()
            .enumerate()
            .map(|(index, package)| {
                json!({
                    "id": package.id.to_string(),
                    "version": package.version,
                    "source": package.source.to_string(),
                    "commit": package.commit,
                    "installed": installed.get(&index).copied().unwrap_or(package.source.is_workspace()),
                    "path": paths.get(&index),
                    "replacedBy": null,
                })
            })
            .collect();
        packages.extend(lock.replaced.iter().map(|replaced| {
            let kept = replaced.kept.as_ref().filter(|kept| is_there(&session, kept));
            json!({
                "id": replaced.id.to_string(),
                "version": kept.map(|kept| &kept.version),
                "source": kept.map(|kept| kept.source.to_string()),
                "commit": kept.and_then(|kept| kept.commit.as_ref()),
                "installed": kept.is_some(),
                "path": kept.map(|kept| folder(&session, kept).display().to_string()),
                "replacedBy": replaced.by.to_string(),
            })
        }));
        context.json(&json!({ "packages": packages }))?;
        return Ok(0);
    }
    let (place, get) = match scope {
        Scope::Workspace => ("here", "mu get"),
        Scope::Global => ("for every workspace", "mu get --global"),
    };
    let mut table = Table::new(&["package", "version", "from", ""]);
    for (index, package) in lock.packages.iter().enumerate() {
        let (style, state) = match installed.get(&index) {
            Some(true) => (GOOD, String::new()),
            None if package.source.is_workspace() => (GOOD, String::new()),
            _ => (BAD, format!("not installed, run `{get}`")),
        };
        table.row([
            (STRONG, package.id.to_string()),
            (Style::new(), version_of(package)),
            (FAINT, package.source.to_string()),
            (style, state),
        ]);
    }
    for replaced in &lock.replaced {
        let kept = replaced.kept.as_ref().filter(|kept| is_there(&session, kept));
        let nothing = || "-".to_owned();
        table.row([
            (FAINT, replaced.id.to_string()),
            (FAINT, kept.map_or_else(nothing, |kept| version_of(kept))),
            (FAINT, kept.map_or_else(nothing, |kept| kept.source.to_string())),
            (FAINT, format!("replaced by {}", replaced.by)),
        ]);
    }
    if table.is_empty() {
        let text = format!("nothing is installed {place}; `{get} REF` installs something");
        context.shell.status(&text);
        return Ok(0);
    }
    context.print(&table.render())?;
    Ok(0)
}

/// The folder of a package that something else took the place of.
fn folder(session: &crate::ops::Session, kept: &LockedPackage) -> std::path::PathBuf {
    session.packs().pack_path(&folder_of(&kept.id))
}

/// Whether that is still there.
fn is_there(session: &crate::ops::Session, kept: &LockedPackage) -> bool {
    folder(session, kept).exists()
}

fn members(context: &Context, session: &crate::ops::Session) -> Ending {
    let members = &session.workspace.members;
    if context.shell.is_json() {
        let packages: Vec<_> = members
            .iter()
            .map(|member| {
                json!({
                    "id": member.id.to_string(),
                    "name": member.manifest.name.to_string(),
                    "version": member.manifest.version.as_ref().map(ToString::to_string),
                    "path": member.folder.display().to_string(),
                })
            })
            .collect();
        context.json(&json!({ "packages": packages }))?;
        return Ok(0);
    }
    let mut table = Table::new(&["package", "version", "folder"]);
    for member in members {
        let version = member.manifest.version.as_ref().map(ToString::to_string);
        let place = if member.place.is_empty() { "." } else { &member.place };
        table.row([
            (STRONG, member.manifest.name.to_string()),
            (Style::new(), version.unwrap_or_else(|| "-".to_owned())),
            (FAINT, place.to_owned()),
        ]);
    }
    if table.is_empty() {
        context
            .shell
            .status("this workspace has no packages of its own; `mu init NAME` begins one");
        return Ok(0);
    }
    context.print(&table.render())?;
    Ok(0)
}
