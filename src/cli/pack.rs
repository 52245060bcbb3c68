//! `mu pack`.

use std::path::PathBuf;

use clap::Args;
use mu_provider::Mode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::ops::pack::{PackRequest, Packed, pack};
use crate::ops::{OperationScope, View};
use crate::report::{FAINT, PLAIN, STRONG, Table, count, printable, size};

#[derive(Debug, Args)]
#[command(after_help = "\
The same files give the same archive on every machine. The archive has the files that `files` in the manifest selects, without those that a .gitignore or .muignore excludes (`!dist` in a .muignore brings back what Git \
ignores). It always has the manifest and its readme, never .git and .mu, and the part of Mu.lock that this \
package depends on. Files that look like secrets (.env, *.pem, .npmrc, …) are \
refused.

Examples:
  mu pack                              the package of this folder, such as web-1.2.0.tgz
  mu pack --list                       what would go in
  mu pack acme/web --output dist/      a package of this workspace, into a folder")]
pub(crate) struct PackArguments {
    /// The package: its name or folder [default: the one in this folder]
    package: Option<String>,
    /// The same, as other commands take it
    #[arg(
        short = 'p',
        long = "package",
        value_name = "PACKAGE",
        hide = true,
        conflicts_with = "package"
    )]
    named: Option<String>,
    /// The archive's file, or a folder for it
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Show what would be packed, and write nothing
    #[arg(long, visible_alias = "list")]
    dry_run: bool,
    /// Pack files that look like secrets, or are only pointers of Git LFS, too
    #[arg(long)]
    force: bool,
    /// Write the locked versions of the dependencies into the packed manifest
    #[arg(long)]
    pinned: bool,
}

pub(crate) fn run(context: &Context, arguments: PackArguments) -> CommandExit {
    let PackArguments { package, named, output, dry_run, force, pinned } = arguments;
    let package = package.or(named);
    let session = context.open_in(OperationScope::Workspace, View::Around(package.clone()))?;
    let request = PackRequest { package, output, dry_run, force, pinned };
    let packed = pack(&session, &request)?;
    context.answer(&Answer::new(&packed), |_| {
        context.print_table(&packed_files_table(&packed))?;
        context.line(&context.short(&packed_summary(&packed)))?;
        if let Some(path) = &packed.path {
            context.shell.status(&format!("wrote {}", printable(&context.path_for_people(path))));
        }
        Ok(())
    })
}

/// The files with their sizes.
pub(super) fn packed_files_table(packed: &Packed) -> Table {
    let rows = packed.archive.tree.entries().iter().map(|entry| {
        let mark = match entry.mode {
            Mode::File => "",
            Mode::Executable => "*",
            Mode::Symlink => "@",
        };
        [(PLAIN, format!("{}{mark}", entry.path)), (FAINT, size(entry.size))]
    });
    Table::with_rows(["file", "size"], rows)
}

/// The packed files, and their digests.
pub(super) fn packed_summary(packed: &Packed) -> String {
    let archive = &packed.archive;
    format!(
        "{}\ncontent  {}\narchive  {}, {}",
        contents(packed),
        archive.tree.digest(),
        archive.archive,
        size(archive.size),
    )
}

/// How much was packed.
pub(super) fn contents(packed: &Packed) -> String {
    let tree = &packed.archive.tree;
    let version = packed.manifest.version.as_ref().map(ToString::to_string).unwrap_or_default();
    let (files, size) = (count(tree.entries().len(), "file"), size(tree.size()));
    format!("{STRONG}{} {version}{STRONG:#}: {files}, {size}", packed.manifest.name)
}

/// What `mu pack` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer<'a> {
    /// The package's name.
    name: &'a str,
    /// Its version.
    version: Option<String>,
    /// The digest of what is in the archive.
    digest: String,
    /// The digest of the archive.
    archive: String,
    /// The bytes of the archive.
    size: u64,
    /// The bytes of its content.
    unpacked: u64,
    /// What is in it.
    files: Vec<File<'a>>,
    /// Where it was written; none if it was not.
    path: Option<String>,
}

/// A file of an archive.
#[derive(Serialize, JsonSchema)]
struct File<'a> {
    /// Its path in the package.
    path: &'a str,
    /// Its bytes.
    size: u64,
    /// What it is: `f`, a file; `x`, an executable one; `l`, a symbolic link.
    mode: char,
}

impl<'a> Answer<'a> {
    fn new(packed: &'a Packed) -> Self {
        let archive = &packed.archive;
        let entries = archive.tree.entries().iter();
        let files = entries.map(|entry| File {
            path: &entry.path,
            size: entry.size,
            mode: entry.mode.letter(),
        });
        Self {
            name: packed.manifest.name.as_str(),
            version: packed.manifest.version.as_ref().map(ToString::to_string),
            digest: archive.tree.digest().to_string(),
            archive: archive.archive.to_string(),
            size: archive.size,
            unpacked: archive.tree.size(),
            files: files.collect(),
            path: packed.path.as_ref().map(|path| path.display().to_string()),
        }
    }
}
