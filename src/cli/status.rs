//! `mu status`.

use anstyle::Style;
use clap::Args;

use crate::cli::context::{Context, Ending, Stop};
use crate::ops::Scope;
use crate::ops::status::{Member, Placed, Status, status};
use crate::report::{BAD, FAINT, GOOD, NOTICE, STRONG, Table, count};

#[derive(Debug, Args)]
#[command(after_help = "\
Contacts no registry and changes nothing.

Examples:
  mu status
  mu status --json")]
pub(crate) struct Arguments {}

pub(crate) fn run(context: &Context, _arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
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
