//! `mu diff`, and how differences are printed: as a unified diff, or in numbers.
//!
//! What packages contain is foreign: everything that is printed of it is escaped, so that it cannot control the terminal.

use clap::Args;

use crate::cli::context::{CommandExit, Context, Stop};
use crate::lock::LockedPackage;
use crate::ops::OperationScope;
use crate::ops::diff::{Content, Difference, FileChange, Kind, Side, diff};
use crate::reference::ArtifactDigest;
use crate::report::{BAD, GOOD, HELP, STRONG, count, printable, size};

#[derive(Debug, Args)]
#[command(after_help = "\
With one version, shows what would change from the version in Mu.lock to that one; without any, to the newest version. With two, shows what changed from the first to the second. The versions are fetched into the store, and nothing is installed.

Examples:
  mu diff aws/ec2                      from the locked version to the newest
  mu diff 'aws/ec2#1.3.0'              from the locked version to 1.3.0
  mu diff 'aws/ec2#1.2.0' '#1.3.0'     between two versions
  mu diff --stat 'aws/ec2#^2'          only how much changed in each file
  mu update --diff                     everything that an update would move")]
pub(crate) struct DiffArguments {
    /// The package, and the version to compare: PKG#VERSION
    #[arg(value_name = "PKG#A")]
    from: String,
    /// The version to compare with: PKG#VERSION, or #VERSION of the same package
    #[arg(value_name = "PKG#B")]
    to: Option<String>,
    /// Show only how much changed in each file
    #[arg(long)]
    stat: bool,
}

pub(crate) fn run(context: &Context, arguments: &DiffArguments) -> CommandExit {
    let session = context.open(OperationScope::Workspace)?;
    let difference = diff(&session, &arguments.from, arguments.to.as_deref())?;
    context.answer(&difference, |difference| {
        print_difference(context, difference, arguments.stat)?;
        if difference.files.is_empty() {
            context.shell.status("the content is the same");
        }
        Ok(())
    })
}

/// Prints a difference for people.
pub(super) fn print_difference(
    context: &Context,
    difference: &Difference,
    only_numbers: bool,
) -> Result<(), Stop> {
    let [strong, good, bad, head] =
        [STRONG, GOOD, BAD, HELP].map(|style| context.shell.style(style));
    let side = |side: &Side| {
        let short = |revision| match ArtifactDigest::is_artifact_digest(revision) {
            true => Some(ArtifactDigest::shortened(revision)),
            false => revision.get(..7),
        };
        let commit = side.commit.as_deref().and_then(short);
        let version = match commit {
            // Without a version, the commit is all that tells one from another.
            Some(commit) if side.version == LockedPackage::NO_VERSION => commit.to_owned(),
            Some(commit) => format!("{} ({commit})", side.version),
            None => side.version.clone(),
        };
        printable(&format!("{} {version}", context.name(&side.id))).into_owned()
    };
    let title = match (&difference.from, &difference.to) {
        (Some(from), Some(to)) => format!("{} -> {}", side(from), side(to)),
        (None, Some(to)) => format!("{} is new", side(to)),
        (Some(from), None) => format!("{} is no longer used", side(from)),
        (None, None) => return Ok(()),
    };
    context.line(&format!("{strong}{title}{strong:#}"))?;
    if !difference.manifest.is_empty() {
        let keys = printable(&difference.manifest.join(", ")).into_owned();
        context.line(&format!("changed in the manifest: {keys}"))?;
    }
    if only_numbers {
        return print_numbers(context, &difference.files);
    }
    for file in &difference.files {
        let path = printable(&file.path).replace(['\n', '\t'], "?");
        context.line(&format!("{strong}diff --git a/{path} b/{path}{strong:#}"))?;
        match (file.kind, file.from_mode, file.to_mode) {
            (Kind::Added, _, Some(mode)) => context.line(&format!("new file mode {mode}"))?,
            (Kind::Removed, Some(mode), _) => context.line(&format!("deleted file mode {mode}"))?,
            (_, from, to) if from != to => {
                let [from, to] = [from, to].map(Option::unwrap_or_default);
                context.line(&format!("old mode {from}\nnew mode {to}"))?;
            }
            _ => {}
        }
        match &file.hunks {
            None if file.content == Content::Same => {}
            None => context.line(&numbers(file))?,
            // A new file without content.
            Some(hunks) if hunks.is_empty() => {}
            Some(hunks) => {
                let (mut old, mut new) = (format!("a/{path}"), format!("b/{path}"));
                match file.kind {
                    Kind::Added => old = "/dev/null".to_owned(),
                    Kind::Removed => new = "/dev/null".to_owned(),
                    Kind::Changed => {}
                }
                context.line(&format!("--- {old}\n+++ {new}"))?;
                let mut text = String::with_capacity(hunks.len());
                for line in hunks.lines() {
                    let line = printable(line);
                    let style = match line.as_bytes().first() {
                        Some(b'+') => good,
                        Some(b'-') => bad,
                        Some(b'@') => head,
                        _ => anstyle::Style::new(),
                    };
                    text.push_str(&format!("{style}{line}{style:#}\n"));
                }
                context.print(&text)?;
            }
        }
    }
    Ok(())
}

/// Prints a line for each file, and their sum.
fn print_numbers(context: &Context, files: &[FileChange]) -> Result<(), Stop> {
    let shown = |file: &FileChange| printable(&file.path).replace(['\n', '\t'], "?");
    let width = files.iter().map(|file| shown(file).chars().count()).max().unwrap_or_default();
    let (mut added, mut removed) = (0, 0);
    for file in files {
        added += file.added.unwrap_or_default();
        removed += file.removed.unwrap_or_default();
        let path = shown(file);
        let kind = match file.kind {
            Kind::Added => " (new)",
            Kind::Removed => " (gone)",
            Kind::Changed => "",
        };
        context.line(&format!(" {path:<width$} | {}{kind}", numbers(file)))?;
    }
    let files = count(files.len(), "file");
    context.line(&format!(" {files} changed, +{added} -{removed} lines"))
}

/// How much of a file changed.
fn numbers(file: &FileChange) -> String {
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "nothing".to_owned(), size);
    let sizes = || format!("{} -> {}", bytes(file.from_size), bytes(file.to_size));
    match file.content {
        Content::Same => {
            let [from, to] = [file.from_mode, file.to_mode].map(Option::unwrap_or_default);
            format!("mode {from} -> {to}")
        }
        Content::Text => {
            let [added, removed] = [file.added, file.removed].map(Option::unwrap_or_default);
            format!("+{added} -{removed}")
        }
        Content::Binary => format!("binary, {}", sizes()),
        Content::Long => format!("too long to show, {}", sizes()),
    }
}
