//! `mu search`.

use std::collections::BTreeSet;

use anstyle::Style;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::cli::filter::Filter;
use crate::cli::global::within;
use crate::cli::info::with_reason;
use crate::lock::Source;
use crate::manifest::Capability;
use crate::ops::Session;
use crate::ops::search::{FoundPackage, SearchRequest, capabilities, search};
use crate::ops::session::json;
use crate::reference::PackageId;
use crate::report::{FAINT, NOTICE, STRONG, Table, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
Every word must occur in a package's name, keywords, description or app version; the best matches come first. \
Searches the registries in the settings, and the default base. With a filter, the newest version that passes is shown. One that cannot be used here, \
according to `runtime` in the settings and --runtime, is marked with the reason.

Examples:
  mu search postgres
  mu search log collector --limit 50
  mu search kafka --app-version 3 --channel stable
  mu search --provides                            all capabilities
  mu search --provides compute.mu.com/v1/VM       which packages provide it
  mu search kafka --json")]
pub(crate) struct Arguments {
    /// The words to search for; without any, all packages are listed
    #[arg(value_name = "WORDS", conflicts_with = "provides")]
    words: Vec<String>,
    /// List packages that provide this capability; without CAP, list all capabilities
    #[arg(long, value_name = "CAP", num_args = 0..=1)]
    provides: Option<Option<String>>,
    /// Show at most N packages
    #[arg(long, value_name = "N", default_value = "20", value_parser = |text: &str| within::<u16>(text, 1..=1000))]
    limit: u16,
    #[command(flatten)]
    filter: Filter,
}

/// The longest description that is shown; `mu info` shows all of it.
const LONGEST_DESCRIPTION: usize = 72;

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let session = context.open_to_ask()?;
    if let Some(None) = arguments.provides {
        return list_capabilities(context, &session);
    }
    let request = SearchRequest {
        provides: arguments.provides.flatten(),
        words: arguments.words,
        filter: arguments.filter.into_versions(),
        limit: usize::from(arguments.limit),
    };
    let found = search(&session, &request)?;
    if context.shell.is_json() {
        let packages = found.packages.iter().map(Package::new).collect();
        return context.json(&Answer { packages, total: found.total });
    }
    if found.packages.is_empty() {
        let words = request.words.join(" ");
        let text = match request.provides {
            Some(capability) => format!("no package provides `{capability}`"),
            None if Capability::parse(&words).is_ok() => format!(
                "found nothing for `{words}`; `mu search --provides {words}` lists the packages that provide this capability"
            ),
            None if words.is_empty() => "no registry lists any package".to_owned(),
            None => format!("found nothing for `{words}`"),
        };
        context.shell.status(&text);
        return Ok(0);
    }
    let mut table = Table::new(&["package", "newest", "app version", "note", "description"]);
    for package in &found.packages {
        table.row([
            (STRONG, context.name(&package.id).into_owned()),
            (Style::new(), package.latest.clone()),
            (Style::new(), package.line.app_version.clone().unwrap_or_default()),
            (NOTICE, context.short(&state(package)).into_owned()),
            (FAINT, short(package.line.description.as_deref().unwrap_or_default())),
        ]);
    }
    context.print_table(&table.without_empty_columns())?;
    let more = found.total.saturating_sub(found.packages.len());
    if more > 0 {
        context.shell.status(&format!("and {more} more; `--limit` shows more of them"));
    }
    Ok(0)
}

/// Lists the capabilities that there are.
fn list_capabilities(context: &Context, session: &Session) -> Ending {
    let answer = Capabilities { capabilities: capabilities(session)? };
    context.answer(&answer, |answer| {
        if answer.capabilities.is_empty() {
            context
                .shell
                .status("no package provides a capability, as far as registries list them");
        }
        answer.capabilities.iter().try_for_each(|capability| context.line(&printable(capability)))
    })
}

/// What `mu search --provides` answers without a capability.
#[derive(Serialize, JsonSchema)]
pub(super) struct Capabilities {
    /// The capabilities that packages of the registries provide.
    capabilities: BTreeSet<String>,
}

fn state(package: &FoundPackage) -> String {
    let mut marks: Vec<String> = match (&package.line.moved_to, &package.locked) {
        (Some(other), _) => vec![format!("moved to {other}")],
        (None, Some(version)) => vec![format!("{version} in Mu.lock")],
        (None, None) => Vec::new(),
    };
    let line = &package.line;
    for (what, happened) in [("yanked", &line.yanked), ("deprecated", &line.deprecated)] {
        marks.extend(happened.reason().map(|reason| with_reason(what, &reason)));
    }
    if let Some(usability) = &package.usability {
        marks.extend(usability.reasons.iter().cloned());
        let newest = usability.newest_usable.iter();
        marks.extend(newest.map(|version| format!("{version} can be used")));
    }
    marks.join("; ")
}

/// A description as one line that is not too long.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_DESCRIPTION) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// What `mu search` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer<'a> {
    /// The packages, best first.
    packages: Vec<Package<'a>>,
    /// Their number; with a filter, only listed packages are counted.
    total: usize,
}

/// A package that was found.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Package<'a> {
    /// The package.
    id: &'a PackageId,
    /// Its name in its registry.
    name: &'a str,
    /// Its newest release that passes the filter.
    latest: &'a str,
    /// The version of what that packages.
    app_version: &'a Option<String>,
    /// What it is, in a sentence.
    description: &'a Option<String>,
    /// Words to find it by.
    keywords: &'a [String],
    /// The package that took its place.
    moved_to: &'a Option<String>,
    /// Why its newest release was withdrawn, as all others were, empty without a reason; `false` if it was not.
    #[serde(serialize_with = "json::yanked")]
    #[schemars(schema_with = "json::yanked_schema")]
    yanked: Option<String>,
    /// Why the authors of its newest release no longer maintain it, empty without a reason; `false` if they do.
    #[serde(serialize_with = "json::yanked")]
    #[schemars(schema_with = "json::yanked_schema")]
    deprecated: Option<String>,
    /// Where it was found.
    source: &'a Source,
    /// The version in `Mu.lock`, if it is there.
    locked: &'a Option<String>,
    /// Whether its newest release can be used here; left out if this was not checked, as without a filter, without facts of
    /// the runtime, and without settings that exclude versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    usable: Option<bool>,
    /// Why it cannot be used here, if it cannot.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    reasons: &'a [String],
    /// The newest version that can be used here, if its newest release cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_usable: Option<&'a str>,
}

impl<'a> Package<'a> {
    fn new(package: &'a FoundPackage) -> Self {
        let line = &package.line;
        let usability = package.usability.as_ref();
        Self {
            id: &package.id,
            name: &line.name,
            latest: &package.latest,
            app_version: &line.app_version,
            description: &line.description,
            keywords: &line.keywords,
            moved_to: &line.moved_to,
            yanked: line.yanked.reason(),
            deprecated: line.deprecated.reason(),
            source: &package.source,
            locked: &package.locked,
            usable: usability.map(|usability| usability.reasons.is_empty()),
            reasons: usability.map_or(&[], |usability| &usability.reasons),
            newest_usable: usability.and_then(|usability| usability.newest_usable.as_deref()),
        }
    }
}
