//! `mu patch`.

use std::path::Path;

use anstyle::Style;
use clap::Args;

use crate::cli::change;
use crate::cli::context::{Context, Ending, Stop};
use crate::ops::Scope;
use crate::ops::patch::{self, Patches};
use crate::ops::session::error::quoted;
use crate::report::{BAD, FAINT, GOOD, STRONG, Table};

#[derive(Debug, Args)]
#[command(after_help = "\
A patch changes files of a package before it is installed, for everyone who uses this workspace: commit \
`patches/`, `.mu/workspace.yaml` and Mu.lock. Without arguments, mu lists the patches.

Examples:
  mu patch aws/ec2                                 make a working copy, and change files there
  mu patch --save aws/ec2                          save them, and install the package with them
  mu patch --drop aws/ec2                          install the package as it is published")]
pub(crate) struct Arguments {
    /// The package to make a working copy of
    #[arg(value_name = "REF", conflicts_with_all = ["save", "drop"])]
    reference: Option<String>,
    /// Save the changes of a working copy as a patch
    #[arg(long, value_name = "FOLDER|REF", conflicts_with = "drop")]
    save: Option<String>,
    /// Remove the patches of these packages
    #[arg(long, value_name = "REF", num_args = 1..)]
    drop: Vec<String>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    if let Some(folder) = &arguments.save {
        let mut session = context.open_to_change(Scope::Workspace)?;
        let saved = patch::save(&mut session, folder)?;
        context.shell.status(&format!("saved {} for {}", saved.file, context.short(&saved.key)));
        return change::print(context, &saved.outcome);
    }
    if !arguments.drop.is_empty() {
        let mut session = context.open_to_change(Scope::Workspace)?;
        return change::print(context, &patch::drop(&mut session, &arguments.drop)?);
    }
    let session = context.open(Scope::Workspace)?;
    let Some(reference) = &arguments.reference else {
        return context.answer(&patch::list(&session)?, |patches| print(context, patches));
    };
    let begun = patch::begin(&session, reference)?;
    context.answer(&begun, |begun| {
        context.line(&begun.folder)?;
        let folder = Path::new(&begun.folder);
        let folder = folder.strip_prefix(&context.environment.current).unwrap_or(folder);
        context.shell.status(&format!(
            "this is {} {}: change files there, then run `mu patch --save {}`",
            context.name(&begun.id),
            begun.version,
            quoted(&folder.to_string_lossy())
        ));
        Ok(())
    })
}

fn print(context: &Context, patches: &Patches) -> Result<(), Stop> {
    if patches.patches.is_empty() && patches.drafts.is_empty() {
        context.line("no package is patched")?;
        context.shell.status("`mu patch REF` makes a working copy of a package");
        return Ok(());
    }
    let mut table = Table::new(&["package", "patch", "installed"]);
    for patch in &patches.patches {
        let state = match (&patch.version, patch.applied) {
            (None, _) => (BAD, "no: no package in use is of that version".to_owned()),
            (Some(version), true) => (GOOD, version.clone()),
            (Some(_), false) => (BAD, "no: run `mu get`".to_owned()),
        };
        let key = context.short(&patch.key).into_owned();
        table.row([(STRONG, key), (Style::new(), patch.file.to_string()), state]);
    }
    if !patches.patches.is_empty() {
        context.print_table(&table)?;
    }
    for draft in &patches.drafts {
        let name = context.name(&draft.id);
        context.line(&format!(
            "working copy of {STRONG}{name}{STRONG:#} {}: {FAINT}{}{FAINT:#}",
            draft.version, draft.folder
        ))?;
    }
    Ok(())
}
