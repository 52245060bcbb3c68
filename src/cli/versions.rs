//! `mu versions`.

use anstyle::Style;
use clap::Args;

use crate::cli::context::{Context, Ending};
use crate::cli::filter::Filter;
use crate::cli::info::with_reason;
use crate::index::releases::LeftOut;
use crate::ops::versions::{ListedVersion, VersionList, versions};
use crate::report::{BAD, FAINT, GOOD, NOTICE, STRONG, Table, count};

#[derive(Debug, Args)]
#[command(after_help = "\
The oldest comes first. An app version is the version of what a package packages. If all app versions of a \
package are numbers, --app-version 2.3 matches all that start with 2.3; otherwise it must be equal. Versions that \
cannot be used here, according to `runtime` in the settings and --runtime, are marked with the reason.

Examples:
  mu versions aws/ec2
  mu versions 'aws/ec2#^1.2'
  mu versions ops/kafka --app-version 2.3
  mu versions ops/kafka --version 3 --channel stable
  mu versions ops/kafka --runtime kubernetes=1.24
  mu versions https://github.com/acme/logs.git --json")]
pub(crate) struct Arguments {
    /// The package; a version after # narrows what is shown
    #[arg(value_name = "REF")]
    reference: String,
    #[command(flatten)]
    filter: Filter,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let mut session = context.open_to_ask()?;
    session.options.dated = true;
    let found = versions(&session, &arguments.reference, &arguments.filter.into_versions())?;
    if context.shell.is_json() {
        return context.json(&found);
    }
    if let Some(left_out) = LeftOut::in_words(&found.left_out) {
        context.shell.status(&format!("left out: {left_out}"));
    }
    if found.shown.is_empty() {
        context.shell.status(&emptiness(&found));
    }
    if !found.packages.is_empty() {
        let packages = found.packages.iter().map(|id| format!("`{}`", context.name(id)));
        let packages = packages.collect::<Vec<_>>().join(", ");
        context.shell.status(&format!("packages in its folders: {packages}"));
    }
    if found.shown.is_empty() {
        return Ok(0);
    }
    let mut table =
        Table::new(&["version", "app version", "published", "commit", "channels", "note"]);
    for version in &found.shown {
        let is_plain = version.usable && version.yanked.is_none() && !version.prerelease;
        let style = if is_plain { STRONG } else { FAINT };
        let (mark_style, mark) = mark(version);
        let mark = context.short(&mark).into_owned();
        table.row([
            (style, version.version.clone()),
            (Style::new(), version.app_version.clone().unwrap_or_default()),
            (FAINT, version.published_on().to_owned()),
            (FAINT, version.short_commit().unwrap_or_default().to_owned()),
            (Style::new(), version.channels.join(", ")),
            (mark_style, mark),
        ]);
    }
    context.print_table(&table.without_empty_columns())?;
    Ok(0)
}

/// Why there is nothing to show.
fn emptiness(found: &VersionList) -> String {
    match (found.total, found.is_repository) {
        (0, true) => {
            format!("`{}` has no version tags; `latest` is the tip of its default branch", found.id)
        }
        (0, false) => format!("`{}` has no versions", found.id),
        (total, _) => {
            format!("none of the {} of `{}` matches", count(total, "version"), found.id)
        }
    }
}

fn mark(version: &ListedVersion) -> (Style, String) {
    let mut marks = Vec::new();
    for (what, reason) in [("yanked", &version.yanked), ("deprecated", &version.deprecated)] {
        marks.extend(reason.as_ref().map(|reason| with_reason(what, reason)));
    }
    if version.prerelease {
        marks.push("prerelease".to_owned());
    }
    marks.extend(version.reasons.iter().cloned());
    if !version.tags.is_empty() && version.commit.is_none() {
        marks.push(format!("tagged {}", version.tags.join(", ")));
    }
    if let Some(other) = &version.moved_to {
        marks.push(format!("moved to {other}"));
    }
    if version.locked {
        marks.push("in Mu.lock".to_owned());
    }
    let style = match version {
        ListedVersion { yanked: Some(_), .. } => BAD,
        ListedVersion { usable: false, .. }
        | ListedVersion { deprecated: Some(_), .. }
        | ListedVersion { moved_to: Some(_), .. } => NOTICE,
        ListedVersion { locked: true, .. } => GOOD,
        _ => FAINT,
    };
    (style, marks.join("; "))
}
