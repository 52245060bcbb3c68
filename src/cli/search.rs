//! `mu search`, `mu info` and `mu versions`: what registries have.

use std::collections::BTreeSet;

use anstyle::Style;
use clap::Args;
use mu_provider::brief;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context, OwnOptions};
use crate::cli::global::within;
use crate::index::LeftOut;
use crate::manifest::Capability;
use crate::ops::Session;
use crate::ops::filter::VersionFilter;
use crate::ops::info::{
    Exports, Info, ListedVersion, VersionList, VersionSpan, fetch_readme, info, published_on,
    versions,
};
use crate::ops::search::{FoundPackage, SearchRequest, registry_capabilities, search};
use crate::ops::trust::ShownRule;
use crate::report::{BAD, FAINT, GOOD, NOTICE, STRONG, Table, count, printable};

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
pub(crate) struct SearchArguments {
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

pub(crate) fn run(context: &Context, arguments: SearchArguments) -> CommandExit {
    let session = context.open_asking_session()?;
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
        return context.json(&found);
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
            (Style::new(), package.app_version.clone().unwrap_or_default()),
            (NOTICE, context.short(&state(package)).into_owned()),
            (FAINT, short(package.description.as_deref().unwrap_or_default())),
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
fn list_capabilities(context: &Context, session: &Session) -> CommandExit {
    let answer = Capabilities { capabilities: registry_capabilities(session)? };
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
    let mut marks: Vec<String> = match (&package.moved_to, &package.locked) {
        (Some(other), _) => vec![format!("moved to {other}")],
        (None, Some(version)) => vec![format!("{version} in Mu.lock")],
        (None, None) => Vec::new(),
    };
    for (what, reason) in [("yanked", &package.yanked), ("deprecated", &package.deprecated)] {
        marks.extend(reason.as_ref().map(|reason| with_reason(what, reason)));
    }
    marks.extend(package.reasons.iter().cloned());
    let newest = package.newest_usable.iter();
    marks.extend(newest.map(|version| format!("{version} can be used")));
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

// The conditions on versions. (With a doc comment, clap would use it for the whole command.)
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Filter {
    /// Only versions whose app version is this, or starts with it: 2.3 is not 2.30
    #[arg(long, value_name = "VERSION")]
    app_version: Option<String>,
    /// Only versions with this revision: the second part of APP-REVISION, or else the whole version
    #[arg(long, value_name = "VERSION")]
    revision: Option<String>,
    /// Only versions that start with this
    #[arg(long = "version", value_name = "PREFIX")]
    prefix: Option<String>,
    /// Only versions in this channel
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// Only versions that this version of mu can use
    #[arg(long, value_name = "VERSION")]
    mu_version: Option<String>,
    /// Only versions with this manifest format, such as mu/v1
    #[arg(long, value_name = "FORMAT")]
    api_version: Option<String>,
    /// Mark versions that cannot run with this fact, such as kubernetes=1.29
    #[arg(long, value_name = "K=V")]
    runtime: Vec<String>,
}

impl Filter {
    /// The filter, as operations take it.
    fn into_versions(self) -> VersionFilter {
        let Self { app_version, revision, prefix, channel, mu_version, api_version, runtime } =
            self;
        let version = prefix;
        VersionFilter { app_version, revision, version, channel, mu_version, api_version, runtime }
    }
}

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
pub(crate) struct VersionsArguments {
    /// The package; a version after # narrows what is shown
    #[arg(value_name = "REF")]
    reference: String,
    #[command(flatten)]
    filter: Filter,
}

pub(crate) fn run_versions(context: &Context, arguments: VersionsArguments) -> CommandExit {
    let context = &context.with_own_options(OwnOptions { dated: true, ..OwnOptions::default() });
    let session = context.open_asking_session()?;
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
    // A reference leads there from anywhere; a name may need the settings of this workspace.
    if !found.packages.is_empty() {
        let names: Vec<String> = match &found.references[..] {
            [] => found.packages.iter().map(|id| context.name(id).to_string()).collect(),
            references => references.to_vec(),
        };
        let packages = format!("`{}`", names.join("`, `"));
        context.shell.status(&format!("its tags give versions to folders: {packages}"));
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
            (FAINT, published_on(&version.published, &version.commit).to_owned()),
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

#[derive(Debug, Args)]
#[command(after_help = "\
Asks the registry, and does not fetch the package. With a version after #, shows the newest version that \
matches. Says if that cannot be used here, according to `runtime` in the settings and --runtime.

Examples:
  mu info aws/ec2
  mu info aws/ec2 --runtime kubernetes=1.24
  mu info 'aws/ec2#^1.2'
  mu info https://github.com/acme/logs.git
  mu info aws/ec2 --readme
  mu info ../logs --json")]
pub(crate) struct InfoArguments {
    /// The package
    #[arg(value_name = "REF")]
    reference: String,
    /// Fetch the package, and print its readme
    #[arg(long)]
    readme: bool,
    /// Say whether it can run with this fact, such as kubernetes=1.29
    #[arg(long, value_name = "K=V", conflicts_with = "readme")]
    runtime: Vec<String>,
}

fn show_readme(context: &Context, reference: &str) -> CommandExit {
    let session = context.open_asking_session()?;
    context.answer(&fetch_readme(&session, reference)?, |readme| {
        context.print(&format!("{}\n", printable(readme.text.trim_end())))
    })
}

/// The channels of the version, and which of the package's channels comes first, if there are several.
fn channels(found: &Info) -> String {
    let channels = found.channels.join(", ");
    match &found.default_channel {
        Some(default) if *default != channels => {
            let channels = if channels.is_empty() { "none" } else { &channels };
            format!("{channels} (default: {default})")
        }
        _ => channels,
    }
}

pub(crate) fn run_info(context: &Context, arguments: &InfoArguments) -> CommandExit {
    if arguments.readme {
        return show_readme(context, &arguments.reference);
    }
    let context = &context.with_own_options(OwnOptions { dated: true, ..OwnOptions::default() });
    let session = context.open_asking_session()?;
    context.answer(&info(&session, &arguments.reference, &arguments.runtime)?, |found| {
        let name = context.name(&found.id);
        context.line(&format!("{STRONG}{name}{STRONG:#} {}", in_line(&found.version)))?;
        if let Some(description) = &found.description {
            context.line(&in_line(description))?;
        }
        if let Some(reason) = &found.yanked {
            context.line(&format!("{BAD}{}{BAD:#}", in_line(&with_reason("yanked", reason))))?;
        }
        if let Some(verdict) = &found.trust {
            let ShownRule { pattern, file, .. } = &verdict.rule;
            let text = match &verdict.why {
                Some(why) => format!("not accepted by rule `{pattern}` in {file}: {why}"),
                None if verdict.signed_by.is_empty() => {
                    format!(
                        "accepted as it is, although rule `{pattern}` in {file} asks for signatures"
                    )
                }
                None => format!("signed by {} (rule `{pattern}`)", verdict.signed_by.join(", ")),
            };
            context.line(&format!("{NOTICE}{}{NOTICE:#}", in_line(&text)))?;
        }
        let deprecated = found.deprecated.iter().map(|reason| with_reason("deprecated", reason));
        let unusable = found.reasons.iter().map(|reason| format!("cannot be used here: {reason}"));
        for text in deprecated.chain(unusable) {
            context.line(&format!("{NOTICE}{}{NOTICE:#}", in_line(&text)))?;
        }
        if let Some(other) = &found.moved_to {
            context.line(&format!("{NOTICE}moved to {}{NOTICE:#}", context.name(other)))?;
        }
        for (heading, texts) in facts(context, found) {
            for (number, text) in texts.iter().filter(|text| !text.is_empty()).enumerate() {
                let heading = if number == 0 { heading } else { "" };
                context.line(&format!("{FAINT}{heading:<13}{FAINT:#}{}", in_line(text)))?;
            }
        }
        Ok(())
    })
}

/// What happened to a version, and the reason if there is one.
pub(super) fn with_reason(what: &str, reason: &str) -> String {
    if reason.is_empty() { what.to_owned() } else { format!("{what}: {reason}") }
}

/// The facts below the description; those without text are left out.
fn facts(context: &Context, found: &Info) -> Vec<(&'static str, Vec<String>)> {
    let one = |text: &Option<String>| text.iter().cloned().collect::<Vec<_>>();
    let newest_usable = found.newest_usable.iter();
    let newest_usable = newest_usable
        .map(|version| format!("{version} is the newest version that can be used here"));
    // Elsewhere, the names in a manifest have another base.
    let is_near = context.name(&found.id).len() < found.id.as_str().len();
    let short = |texts: &[String]| -> Vec<String> {
        let short = |text: &String| match is_near {
            true => context.short(text).into_owned(),
            false => text.clone(),
        };
        texts.iter().map(short).collect()
    };
    let constraints = found.constraints.iter().map(|(fact, value)| format!("{fact} {value}"));
    let mut here: Vec<String> =
        found.locked.iter().map(|version| format!("{version} in Mu.lock")).collect();
    here.extend(found.workspace.as_ref().map(|place| {
        format!("the workspace's own, in `{}`", if place.is_empty() { "." } else { place })
    }));
    vec![
        ("license", one(&found.license)),
        ("website", one(&found.website)),
        ("repository", one(&found.repository)),
        ("maintainers", found.maintainers.clone()),
        ("keywords", vec![found.keywords.join(", ")]),
        ("format", format(found).into_iter().collect()),
        ("app version", one(&found.app_version)),
        ("published", vec![publication(found)]),
        ("commit", one(&found.commit)),
        ("channels", vec![channels(found)]),
        ("versions", span(&found.versions).into_iter().collect()),
        ("left out", LeftOut::in_words(&found.versions.left_out).into_iter().collect()),
        ("usable", newest_usable.collect()),
        ("depends on", with_kinds(short(&found.dependencies), &found.dependency_kinds)),
        ("bundled", vec![found.bundled.join(", ")]),
        ("unknown keys", vec![found.unknown.join(", ")]),
        (
            "exports",
            found.exports.iter().map(|exports| exported(&found.version, exports)).collect(),
        ),
        ("provides", found.provides.clone()),
        ("requires", found.requires.clone()),
        ("replaces", short(&found.replaces)),
        ("conflicts", short(&found.conflicts)),
        ("constraints", constraints.collect()),
        ("from", vec![found.source.to_string()]),
        ("here", here),
        ("install", found.install.iter().map(|text| context.short(text).into_owned()).collect()),
    ]
}

/// The day on which it was published, and by whom, as far as that is known.
fn publication(found: &Info) -> String {
    let day = published_on(&found.published, &found.commit);
    match &found.published_by {
        Some(publisher) if day.is_empty() => format!("by {publisher}"),
        Some(publisher) => format!("{day} by {publisher}"),
        None => day.to_owned(),
    }
}

/// The format, and the kind of package that it is.
fn format(found: &Info) -> Option<String> {
    let format = found.format.clone()?;
    Some(match &found.kind {
        Some(kind) => format!("{format} {kind}"),
        None => format,
    })
}

/// What a package depends on, each with the kind of package that it is said to be.
fn with_kinds(dependencies: Vec<String>, kinds: &[String]) -> Vec<String> {
    let kinds = kinds.iter().map(String::as_str).chain(std::iter::repeat(""));
    let named = dependencies.into_iter().zip(kinds);
    named
        .map(|(dependency, kind)| match kind {
            "" => dependency,
            kind => format!("{dependency} ({kind})"),
        })
        .collect()
}

/// The exported elements; with the version, if that is another one than the one that is shown.
fn exported(version: &str, exports: &Exports) -> String {
    let names = exports.names.join(", ");
    match exports.version == version {
        true => names,
        false => format!("{names} ({})", exports.version),
    }
}

/// The number of versions, with the oldest and the newest.
fn span(versions: &VersionSpan) -> Option<String> {
    let (oldest, newest) = versions.oldest.as_ref().zip(versions.newest.as_ref())?;
    let mut text = match versions.total {
        1 => oldest.clone(),
        total => format!("{}, from {oldest} to {newest}", count(total, "version")),
    };
    if versions.yanked > 0 {
        text.push_str(&format!("; {} yanked", versions.yanked));
    }
    Some(text)
}

/// Foreign text in one line, so that it cannot imitate another line, and no longer than a person reads.
fn in_line(text: &str) -> String {
    printable(&brief(&text.split_whitespace().collect::<Vec<_>>().join(" "))).into_owned()
}
