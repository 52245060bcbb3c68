//! `mu edit` and `mu patch`: packages that are changed on this machine.

use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::change;
use crate::cli::context::{CommandExit, Context, Stop};
use crate::ops::edit::{
    BeginRequest, DoneRequest, Edited, Ended, Is, begin, end_edits, list, restore,
};
use crate::ops::get::{GetRequest, get};
use crate::ops::patch::Patches;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, OperationScope, Outcome, patch};
use crate::report::{BAD, FAINT, GOOD, PLAIN, STRONG, Table, count};

#[derive(Debug, Args)]
#[command(after_help = "\
Clones the package's Git repository to where references find it first, on a branch of its own at the version in use. No committed file changes: Mu.lock \
stays the same, Git ignores the clone, and others still get the locked version.

Without REF, lists what is being edited.

--done ends an edit if nothing would be lost: everything is committed, and the remote has every commit. The clone goes into the trash, and `mu edit --restore NAME` takes it out again; `mu \
cache prune` empties the trash after 30 days.

Examples:
  mu edit aws/ec2
  mu edit aws/ec2 --url https://github.com/me/ec2
  mu edit aws/ec2 --from-pack          begin a repository with the installed files
  mu edit                              list edits, and the state of each
  mu edit --done aws/ec2
  mu edit --done aws/ec2 --keep        leave the clone where it is
  mu edit --restore aws/ec2")]
pub(crate) struct EditArguments {
    /// The package, one that the workspace uses; with --done, one or more that are being edited
    #[arg(value_name = "REF")]
    references: Vec<String>,
    /// The name of the branch [default: edit/LEAF-VERSION]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["done", "restore"])]
    branch: Option<String>,
    /// The repository, if not the one that the package names: URL[#FOLDER]
    #[arg(long, value_name = "URL", conflicts_with_all = ["done", "restore", "from_pack"])]
    url: Option<String>,
    /// A folder of the workspace for the clone
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["done", "restore"])]
    at: Option<PathBuf>,
    /// Begin a new repository with the installed files
    #[arg(long, conflicts_with_all = ["done", "restore"])]
    from_pack: bool,
    /// End edits
    #[arg(long, conflicts_with = "restore")]
    done: bool,
    /// With --done: end all edits
    #[arg(long, requires = "done", conflicts_with = "references")]
    all: bool,
    /// With --done: leave the clone where it is
    #[arg(long, requires = "done")]
    keep: bool,
    /// With --done: move the clone into the trash without checking what is in it
    #[arg(long, requires = "done", conflicts_with = "keep")]
    force: bool,
    /// Take a clone out of the trash
    #[arg(long, value_name = "NAME", conflicts_with = "references")]
    restore: Option<String>,
}

/// What `mu edit` answers: the edits that it lists, began or restored.
#[derive(Serialize, JsonSchema)]
pub(super) struct Edits {
    /// The edits.
    edits: Vec<Edited>,
}

/// What `mu edit --done` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Done {
    /// The edits that have ended.
    ended: Vec<Ended>,
}

pub(crate) fn run(context: &Context, arguments: EditArguments) -> CommandExit {
    if arguments.done {
        return run_done(context, arguments);
    }
    if let Some(name) = &arguments.restore {
        let edits = restore(&context.open_for(OperationScope::Workspace, false)?, name)?;
        return began(context, edits, "restored");
    }
    let EditArguments { references, branch, url, at, from_pack, .. } = arguments;
    match &references[..] {
        [] => {
            if branch.is_some() || url.is_some() || at.is_some() || from_pack {
                let message = "name the package to edit: `mu edit REF`";
                return Err(CommandError::new(Code::Usage, message).into());
            }
            let edits = list(&context.open_asking_session()?)?;
            context.answer(&Edits { edits }, |Edits { edits }| print_list(context, edits))
        }
        [reference] => {
            let reference = reference.clone();
            let request = BeginRequest { reference, branch, url, at, from_pack };
            let edit = begin(&context.open_for(OperationScope::Workspace, false)?, &request)?;
            began(context, vec![edit], "editing")
        }
        _ => {
            let message = "one package at a time: `mu edit REF` for each";
            Err(CommandError::new(Code::Usage, message).into())
        }
    }
}

/// Installs what is used now, and prints where the edits are.
fn began(context: &Context, edits: Vec<Edited>, verb: &str) -> CommandExit {
    let outcome = install(context);
    if context.shell.is_json() {
        outcome?;
        return context.json(&Edits { edits });
    }
    for edit in &edits {
        let branch = edit.branch.as_deref().unwrap_or_default();
        let name = context.name(&edit.id);
        context.line(&format!(
            "{verb} {name} {} in {} {FAINT}(branch {branch}){FAINT:#}",
            edit.version, edit.folder
        ))?;
    }
    change::print_outcome(context, &outcome?)
}

/// Brings packs in line with the edits.
fn install(context: &Context) -> Result<Outcome, CommandError> {
    let session = context.open_for(OperationScope::Workspace, false)?;
    get(&session, &GetRequest::default()).map_err(|error| {
        error.hint("the edits themselves are as they should be: mend this, and run `mu get`")
    })
}

fn run_done(context: &Context, arguments: EditArguments) -> CommandExit {
    let EditArguments { references, all, keep, force, .. } = arguments;
    if references.is_empty() && !all {
        let message = "name the edits to end, or use `--all`";
        let error = CommandError::new(Code::Usage, message);
        return Err(error.hint("`mu edit` lists them").into());
    }
    let request = DoneRequest { references, all, keep, force };
    let ended = end_edits(&context.open_to_end()?, &request)?;
    let outcome = install(context);
    if context.shell.is_json() {
        outcome?;
        return context.json(&Done { ended });
    }
    for one in &ended {
        print_ended(context, one)?;
    }
    change::print_outcome(context, &outcome?)
}

fn print_ended(context: &Context, ended: &Ended) -> Result<(), Stop> {
    let name = context.name(&ended.id);
    match &ended.trash {
        Some(trash) => context.line(&format!(
            "{name} is no longer edited; its clone is in the trash {FAINT}(`mu edit --restore {trash}`){FAINT:#}"
        ))?,
        None if ended.kept => {
            context.line(&format!("{name} is no longer edited; its clone stays in {}", ended.clone))?;
        }
        None => context.line(&format!("{name} is no longer edited; its clone was gone"))?,
    }
    if !ended.ways.is_empty() {
        context.shell.status("to use what you committed:");
        for way in &ended.ways {
            context.shell.status_in_full(&format!("  {way}"));
        }
    }
    Ok(())
}

fn print_list(context: &Context, edits: &[Edited]) -> Result<(), Stop> {
    let rows = edits.iter().map(|edit| {
        let (version, folder) = (edit.version.clone(), edit.folder.clone());
        [context.name(&edit.id).into_owned(), version, folder, state_of(edit)]
            .map(|cell| (PLAIN, cell))
    });
    let table = Table::with_rows(["package", "version", "folder", "state"], rows);
    context.table(&table, "nothing is being edited; `mu edit REF` begins")
}

fn state_of(edit: &Edited) -> String {
    let what = match edit.state {
        Is::InUse => "in use",
        Is::Kept => "kept, not used",
        Is::Missing => return "its folder is gone".to_owned(),
        Is::InTrash => {
            return format!("in the trash as {}", edit.trash.as_deref().unwrap_or_default());
        }
    };
    let mut parts = vec![what.to_owned()];
    parts.push(match &edit.branch {
        Some(branch) => format!("branch {branch}"),
        None => "no branch".to_owned(),
    });
    if let Some(ahead) = edit.ahead.filter(|ahead| *ahead > 0) {
        parts.push(format!("{} ahead", count(ahead, "commit")));
    }
    if edit.changed > 0 {
        parts.push(format!("{} changed", count(edit.changed, "file")));
    }
    parts.join(", ")
}

#[derive(Debug, Args)]
#[command(after_help = "\
A patch changes files of a package before it is installed, for everyone who uses this workspace: commit \
`patches/`, `.mu/workspace.yaml` and Mu.lock. Without arguments, mu lists the patches.

Examples:
  mu patch aws/ec2                                 make a working copy, and change files there
  mu patch --save aws/ec2                          save them, and install the package with them
  mu patch --drop aws/ec2                          install the package as it is published")]
pub(crate) struct PatchArguments {
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

pub(crate) fn run_patch(context: &Context, arguments: &PatchArguments) -> CommandExit {
    if let Some(folder) = &arguments.save {
        let session = context.open_changing_session(OperationScope::Workspace)?;
        let saved = patch::save(session, folder)?;
        context.shell.status(&format!("saved {} for {}", saved.file, context.short(&saved.key)));
        return change::print_outcome(context, &saved.outcome);
    }
    if !arguments.drop.is_empty() {
        let session = context.open_changing_session(OperationScope::Workspace)?;
        return change::print_outcome(context, &patch::drop(session, &arguments.drop)?);
    }
    let session = context.open(OperationScope::Workspace)?;
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
            quoted_for_shell(&folder.to_string_lossy())
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
    let rows = patches.patches.iter().map(|patch| {
        let state = match (&patch.version, patch.applied) {
            (None, _) => (BAD, "no: no package in use is of that version".to_owned()),
            (Some(version), true) => (GOOD, version.clone()),
            (Some(_), false) => (BAD, "no: run `mu get`".to_owned()),
        };
        let key = context.short(&patch.key).into_owned();
        [(STRONG, key), (PLAIN, patch.file.to_string()), state]
    });
    if !patches.patches.is_empty() {
        context.print_table(&Table::with_rows(["package", "patch", "installed"], rows))?;
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
