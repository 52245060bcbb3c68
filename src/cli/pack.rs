//! `mu pack`.

use std::path::PathBuf;

use anstyle::Style;
use clap::Args;
use mu_provider::Mode;
use serde_json::{Value, json};

use crate::cli::{Context, Ending};
use crate::ops::Scope;
use crate::ops::pack::{PackRequest, Packed, pack};
use crate::report::{FAINT, STRONG, Table, count, printable, size};

#[derive(Debug, Args)]
#[command(after_help = "\
The same files give the same archive on every machine. Packed is what `files` in the manifest \
chooses, without what a .gitignore or .muignore leaves out (`!dist` in a .muignore brings back what \
Git should not have); always the manifest and its readme, never .git and .mu. Mu.lock is packed cut \
down to what this package depends on. Files that look like secrets (.env, *.pem, .npmrc, …) are \
refused.

Examples:
  mu pack                              the package of this folder, into LEAF-VERSION.tgz
  mu pack --list                       what would go in
  mu pack acme/web --output dist/      a package of this workspace, into a folder")]
pub(crate) struct Arguments {
    /// The package: its name or folder; left out, the one of this folder
    package: Option<String>,
    /// The archive's file, or a folder for it
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Say what would be packed, and write nothing
    #[arg(long, visible_alias = "list")]
    dry_run: bool,
    /// Pack files that look like secrets too
    #[arg(long)]
    force: bool,
    /// Write the locked versions of the dependencies into the packed manifest
    #[arg(long)]
    pinned: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let request = PackRequest {
        package: arguments.package.clone(),
        output: arguments.output.clone(),
        dry_run: arguments.dry_run,
        force: arguments.force,
        pinned: arguments.pinned,
    };
    let packed = pack(&session, &request)?;
    if context.shell.is_json() {
        context.json(&to_json(&packed))?;
        return Ok(0);
    }
    context.print(&files(&packed))?;
    context.line(&summary(&packed))?;
    if let Some(path) = &packed.path {
        let shown = path.strip_prefix(&context.environment.current).unwrap_or(path);
        context.shell.status(&format!("wrote {}", printable(&shown.display().to_string())));
    }
    Ok(0)
}

/// The files with their sizes.
pub(super) fn files(packed: &Packed) -> String {
    let mut table = Table::new(&["file", "size"]);
    for entry in packed.archive.tree.entries() {
        let mark = match entry.mode {
            Mode::File => "",
            Mode::Executable => "*",
            Mode::Symlink => "@",
        };
        table.row([(Style::new(), format!("{}{mark}", entry.path)), (FAINT, size(entry.size))]);
    }
    table.render()
}

/// What was packed, and what tells it from everything else.
pub(super) fn summary(packed: &Packed) -> String {
    let archive = &packed.archive;
    let version = packed.manifest.version.as_ref().map(ToString::to_string).unwrap_or_default();
    format!(
        "{STRONG}{} {version}{STRONG:#}: {}, {}\ncontent  {}\narchive  {}, {}",
        packed.manifest.name,
        count(archive.tree.entries().len(), "file"),
        size(archive.tree.size()),
        archive.tree.digest(),
        archive.archive,
        size(archive.size),
    )
}

/// The JSON form.
pub(super) fn to_json(packed: &Packed) -> Value {
    let archive = &packed.archive;
    let files: Vec<Value> = archive
        .tree
        .entries()
        .iter()
        .map(|entry| {
            let mode = entry.mode.letter().to_string();
            json!({ "path": entry.path, "size": entry.size, "mode": mode })
        })
        .collect();
    json!({
        "name": packed.manifest.name.to_string(),
        "version": packed.manifest.version.as_ref().map(ToString::to_string),
        "digest": archive.tree.digest().to_string(),
        "archive": archive.archive.to_string(),
        "size": archive.size,
        "unpacked": archive.tree.size(),
        "files": files,
        "path": packed.path.as_ref().map(|path| path.display().to_string()),
    })
}
