//! `mu list`.

use anstyle::Style;
use clap::Args;

use crate::cli::context::{Context, Ending, Packages};
use crate::ops::Scope;
use crate::ops::explain::carried::Inside;
use crate::ops::list::{Listed, Member, list, members};
use crate::report::{BAD, FAINT, NOTICE, STRONG, Table};

#[derive(Debug, Args)]
#[command(after_help = "\
Sorted by id, the base first, as in Mu.lock. The workspace's own packages are sorted by folder.

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
        let members = Packages { packages: members(&session) };
        let empty = "this workspace has no packages of its own; `mu init NAME` creates one";
        return context.answer(&members, |members| {
            context.table(&member_table(context, &members.packages), empty)
        });
    }
    let (place, get) = match scope {
        Scope::Workspace => ("here", "mu get"),
        Scope::Global => ("globally", "mu get --global"),
    };
    let empty = format!("nothing is installed {place}; `{get} REF` installs something");
    let installed = Packages { packages: list(&session)? };
    context.answer(&installed, |installed| {
        context.table(&table(context, &installed.packages, get).without_empty_columns(), &empty)
    })
}

/// The installed packages; `get` is the command that installs missing ones.
fn table(context: &Context, packages: &[Listed], get: &str) -> Table {
    let mut table = Table::new(&["package", "version", "from", "note"]);
    for package in packages {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let id = context.name(&package.id).into_owned();
        let version = or_none(package.label.clone());
        let source = or_none(package.source.as_ref().map(ToString::to_string));
        table.row(match &package.replaced_by {
            Some(by) => [
                (FAINT, id),
                (FAINT, version),
                (FAINT, source),
                (FAINT, format!("replaced by {}", context.name(by))),
            ],
            None => {
                let (style, state) = match package.installed {
                    true => (NOTICE, lines(&package.helm)),
                    false => (BAD, format!("not installed, run `{get}`")),
                };
                [(STRONG, id), (Style::new(), version), (FAINT, source), (style, state)]
            }
        });
    }
    table
}

/// What Helm uses otherwise than Mu.lock says.
fn lines(helm: &[Inside]) -> String {
    helm.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn member_table(context: &Context, members: &[Member]) -> Table {
    let mut table = Table::new(&["package", "version", "folder"]);
    for member in members {
        table.row([
            (STRONG, context.short(&member.name).into_owned()),
            (Style::new(), member.version.clone().unwrap_or_else(|| "-".to_owned())),
            (FAINT, member.place.clone()),
        ]);
    }
    table
}
