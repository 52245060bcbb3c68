//! `mu status`, `mu list` and `mu verify`: the state of the workspace and its packs.

use anstyle::Style;
use clap::Args;

use crate::cli::context::{CommandExit, Context, Packages, Stop};
use crate::ops::explain::carried::Inside;
use crate::ops::list::{self, Listed, list};
use crate::ops::status::{Member, Placed, Status, status};
use crate::ops::verify::{verify, verify_store};
use crate::ops::{Code, CommandError, OperationScope};
use crate::report::{BAD, FAINT, GOOD, NOTICE, STRONG, Table, count};

#[derive(Debug, Args)]
#[command(after_help = "\
Contacts no registry and changes nothing.

Examples:
  mu status
  mu status --json")]
pub(crate) struct StatusArguments {}

pub(crate) fn run(context: &Context, _arguments: &StatusArguments) -> CommandExit {
    let session = context.open(OperationScope::Workspace)?;
    context.answer(&status(&session)?, |status| print(context, status))
}

/// The packages of the workspace, and which of them others use.
fn members(context: &Context, status: &Status) -> Table {
    let mut table = Table::new(&["package", "version", "folder", "note"]);
    for member in &status.members {
        let placed = status.placed.iter().filter(|placed| is_at(member, placed));
        let notes = placed.map(|Placed { id, .. }| match id.as_str().ends_with(&member.name) {
            true => "used by others here".to_owned(),
            false => format!("used by others here as {}", context.name(id)),
        });
        let not_read = member.not_read.iter().map(|name| format!("`{name}` is not read"));
        let notes: Vec<String> = notes.chain(not_read).collect();
        table.row([
            (STRONG, context.short(&member.name).into_owned()),
            (Style::new(), member.version.clone().unwrap_or_else(|| "-".to_owned())),
            (FAINT, member.path.clone()),
            (NOTICE, notes.join(", ")),
        ]);
    }
    table.without_empty_columns()
}

/// Whether a package that is used from the workspace is this one.
fn is_at(member: &Member, placed: &Placed) -> bool {
    member.path == if placed.path.is_empty() { "." } else { &placed.path }
}

/// What to do if the workspace's only manifest is not read because of its name.
fn rename(status: &Status) -> Option<String> {
    let (name, right) = status.misspelt.as_ref()?;
    Some(format!("rename `{name}` to `{right}`"))
}

fn print(context: &Context, status: &Status) -> Result<(), Stop> {
    context.line(&format!("workspace {STRONG}{}{STRONG:#}", status.root.display()))?;
    if !status.members.is_empty() {
        context.print_table(&members(context, status))?;
    }
    let is_member = |placed: &&Placed| status.members.iter().any(|member| is_at(member, placed));
    for Placed { id, path } in status.placed.iter().filter(|placed| !is_member(placed)) {
        let path = if path.is_empty() { "." } else { path };
        context.line(&format!(
            "{NOTICE}used from the workspace{NOTICE:#}: {} {FAINT}(in `{path}`){FAINT:#}",
            context.name(id)
        ))?;
    }
    for reference in &status.extra {
        context.line(&format!(
            "{NOTICE}installed by `mu get`{NOTICE:#}: {} {FAINT}(stays in Mu.lock until `mu remove`){FAINT:#}",
            context.short(reference)
        ))?;
    }
    if status.members.is_empty() && !status.lock.exists {
        context.line("there is no package here")?;
        if let Some(rename) = rename(status) {
            context.shell.status(&rename);
            return Ok(());
        }
        context
            .shell
            .status("`mu init` creates one, and `mu get REF` installs packages without one");
        return Ok(());
    }
    let outdated =
        if status.lock.exists { "Mu.lock is out of date" } else { "there is no Mu.lock yet" };
    let lists = [(outdated, &status.lock.differences), ("not installed", &status.missing)];
    for (heading, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        context.line(&format!("{BAD}{heading}{BAD:#}:"))?;
        for line in list {
            context.line(&format!("  {}", context.short(line)))?;
        }
    }
    if !status.up_to_date {
        context.shell.status(&rename(status).unwrap_or_else(|| "run `mu get`".to_owned()));
        return Ok(());
    }
    let count = count(status.lock.packages, "package");
    context.line(&format!("{GOOD}up to date{GOOD:#}: {count} locked and installed"))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Sorted by id, the base first, as in Mu.lock. The workspace's own packages are sorted by folder.

Examples:
  mu list
  mu list --global
  mu list --workspace                  the packages of this workspace itself")]
pub(crate) struct ListArguments {
    /// List the global packs
    #[arg(short, long)]
    global: bool,
    /// List the packages of the workspace itself
    #[arg(long, conflicts_with = "global")]
    workspace: bool,
}

pub(crate) fn run_list(context: &Context, arguments: &ListArguments) -> CommandExit {
    let scope = OperationScope::from_global_flag(arguments.global);
    let session = context.open(scope)?;
    if arguments.workspace {
        let members = Packages { packages: list::members(&session) };
        let empty = "this workspace has no packages of its own; `mu init NAME` creates one";
        return context.answer(&members, |members| {
            context.table(&member_table(context, &members.packages), empty)
        });
    }
    let (place, get) = match scope {
        OperationScope::Workspace => ("here", "mu get"),
        OperationScope::Global => ("globally", "mu get --global"),
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

fn member_table(context: &Context, members: &[list::Member]) -> Table {
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

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu verify
  mu verify aws/ec2
  mu verify --global
  mu verify --store                    every tree in the store of this machine")]
pub(crate) struct VerifyArguments {
    /// Check only these packages
    #[arg(value_name = "PKG", conflicts_with = "store")]
    packages: Vec<String>,
    /// Check the store instead of the packs
    #[arg(long)]
    store: bool,
    /// Check the global packs
    #[arg(short, long, conflicts_with = "store")]
    global: bool,
}

pub(crate) fn run_verify(context: &Context, arguments: &VerifyArguments) -> CommandExit {
    let scope = OperationScope::from_global_flag(arguments.global);
    let session = context.open(scope)?;
    let report = match arguments.store {
        true => verify_store(&session)?,
        false => verify(&session, &arguments.packages)?,
    };
    let noun = if arguments.store { "tree" } else { "pack" };
    if !report.faults.is_empty() {
        let mut message = format!(
            "{} of {} failed verification",
            report.faults.len(),
            count(report.checked, noun)
        );
        for fault in &report.faults {
            message.push_str(&format!(
                "\n  {} at `{}`: {}",
                fault.what,
                fault.folder.display(),
                fault.problem
            ));
        }
        let hint = if arguments.store {
            "`mu cache clean` empties the store; packs are fetched again when they are needed"
        } else if report.faults.iter().all(|fault| fault.problem.contains("Mu.lock:")) {
            "Mu.lock was edited or merged wrongly: restore it from version control"
        } else if report.faults.iter().all(|fault| !fault.folder.exists()) {
            "`mu get` installs what is missing"
        } else {
            "delete the folder and run `mu get` to install the pack again"
        };
        return Err(CommandError::new(Code::Integrity, message)
            .hint(hint)
            .with_details(&report)
            .into());
    }
    context.answer(&report, |report| {
        context.line(&format!("{} verified", count(report.checked, noun)))
    })
}
