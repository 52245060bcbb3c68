//! `mu info`.

use std::collections::BTreeMap;

use clap::Args;
use mu_provider::brief;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context, OwnOptions};
use crate::index::LeftOut;
use crate::lock::Source;
use crate::ops::info::{Exports, Info, ListedVersion, PackageReadme, fetch_readme, info};
use crate::ops::session::shown;
use crate::reference::PackageId;
use crate::report::{BAD, FAINT, NOTICE, STRONG, count, printable};

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

/// What `mu info --readme` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReadmeAnswer {
    /// The package.
    id: PackageId,
    /// Its version.
    version: String,
    /// The file, relative to the package.
    file: String,
    /// Its text.
    text: String,
}

fn show_readme(context: &Context, reference: &str) -> CommandExit {
    let session = context.open_asking_session()?;
    let PackageReadme { id, version, file, text } = fetch_readme(&session, reference)?;
    let answer = ReadmeAnswer { id, version, file, text };
    context.answer(&answer, |answer| {
        context.print(&format!("{}\n", printable(answer.text.trim_end())))
    })
}

/// What `mu info` answers.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer<'a> {
    /// The package.
    id: &'a PackageId,
    /// The version that everything else describes.
    version: &'a str,
    /// What it is, in a sentence.
    description: &'a Option<String>,
    /// The licence, usually an SPDX expression.
    license: &'a Option<String>,
    /// Where to read more.
    website: &'a Option<String>,
    /// Where its source is: the URL of a repository, and after `#` the folder in it.
    repository: &'a Option<String>,
    /// Its maintainers, as `Name <email>`.
    maintainers: &'a [String],
    /// Words to find it by.
    keywords: &'a [String],
    /// The version of the software that it contains.
    app_version: &'a Option<String>,
    /// When it was published, RFC 3339.
    published: &'a Option<String>,
    /// Its commit (Git).
    commit: &'a Option<String>,
    /// The channels that it is in.
    channels: &'a [String],
    /// The channel of the package to use if none is requested.
    default_channel: &'a Option<String>,
    /// Names that point to it.
    tags: &'a [String],
    /// Why it was withdrawn, empty without a reason; `false` if it was not.
    #[serde(serialize_with = "shown::yanked")]
    #[schemars(schema_with = "shown::yanked_schema")]
    yanked: &'a Option<String>,
    /// Why its authors no longer maintain it, empty without a reason; `false` if they do.
    #[serde(serialize_with = "shown::yanked")]
    #[schemars(schema_with = "shown::yanked_schema")]
    deprecated: &'a Option<String>,
    /// The format of the package, if it is not mu's: `helm`.
    format: &'a Option<String>,
    /// Packages that it carries inside, so that nobody else has to provide them.
    bundled: &'a [String],
    /// Keys in its manifest that its format does not have.
    unknown: &'a [String],
    /// The package that took its place.
    moved_to: &'a Option<PackageId>,
    /// Its manifest format, if it states one.
    api_version: &'a Option<String>,
    /// The range of mu versions that can use it.
    mu_version: &'a Option<String>,
    /// Whether it can be used here: by this mu, and in the runtime, as far as that is known.
    usable: bool,
    /// Why it cannot be used here, if it cannot.
    reasons: &'a [String],
    /// The newest version that can be used here, if this one cannot.
    newest_usable: &'a Option<String>,
    /// References to what it depends on, as they were written.
    dependencies: &'a [String],
    /// Capabilities that it provides.
    provides: &'a [String],
    /// Capabilities that some package must provide.
    requires: &'a [String],
    /// Packages that it supersedes.
    replaces: &'a [String],
    /// Packages and capabilities that it conflicts with.
    conflicts: &'a [String],
    /// Ranges, or exact words, over facts of the runtime.
    constraints: &'a BTreeMap<String, String>,
    /// The existing versions.
    versions: Span<'a>,
    /// Where it comes from.
    source: &'a Source,
    /// The versions in `Mu.lock` that are not the workspace's own.
    locked: &'a [String],
    /// The folder of the workspace's own package of this name, relative to its root.
    workspace: &'a Option<String>,
    /// The command that adds it as a dependency, if that is advisable.
    install: Option<String>,
    /// The elements that it exports, as far as that is known without fetching it.
    exports: &'a Option<Exports>,
    /// Which of the kinds of packages of its format it is, if they have kinds: `Provider`.
    kind: &'a Option<String>,
}

/// The channels of the version, and which of the package's channels comes first, if there are several.
fn channels(found: &Info) -> String {
    let channels = found.version.channels.join(", ");
    match &found.default_channel {
        Some(default) if *default != channels => {
            let channels = if channels.is_empty() { "none" } else { &channels };
            format!("{channels} (default: {default})")
        }
        _ => channels,
    }
}

/// The existing versions of a package.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Span<'a> {
    /// Their number.
    total: usize,
    /// The number of withdrawn ones.
    yanked: usize,
    /// The oldest.
    oldest: Option<&'a str>,
    /// The newest.
    newest: Option<&'a str>,
    /// What the registry lists besides, and cannot be read as a version.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [LeftOut],
}

impl<'a> Answer<'a> {
    fn new(found: &'a Info) -> Self {
        let Info { version, about, .. } = found;
        Self {
            id: &found.id,
            version: &version.version,
            description: &about.description,
            license: &about.license,
            website: &about.website,
            repository: &about.repository,
            maintainers: &about.maintainers,
            keywords: &about.keywords,
            app_version: &version.app_version,
            published: &version.published,
            commit: &version.commit,
            channels: &version.channels,
            default_channel: &found.default_channel,
            tags: &version.tags,
            yanked: &version.yanked,
            deprecated: &version.deprecated,
            format: &found.format,
            bundled: &found.bundled,
            unknown: &found.unknown,
            moved_to: &version.moved_to,
            api_version: &version.api_version,
            mu_version: &version.mu_version,
            usable: version.usable,
            reasons: &version.reasons,
            newest_usable: &found.newest_usable,
            dependencies: &about.dependencies,
            provides: &about.provides,
            requires: &about.requires,
            replaces: &about.replaces,
            conflicts: &about.conflicts,
            constraints: &about.constraints,
            versions: Span {
                total: found.total,
                yanked: found.yanked,
                oldest: found.span.as_ref().map(|(oldest, _)| oldest.as_str()),
                newest: found.span.as_ref().map(|(_, newest)| newest.as_str()),
                left_out: &found.left_out,
            },
            source: &found.source,
            locked: &found.locked,
            workspace: &found.workspace,
            install: install(found),
            exports: &found.exports,
            kind: &found.kind,
        }
    }
}

pub(crate) fn run(context: &Context, arguments: &InfoArguments) -> CommandExit {
    if arguments.readme {
        return show_readme(context, &arguments.reference);
    }
    let context = &context.with_own_options(OwnOptions { dated: true, ..OwnOptions::default() });
    let session = context.open_asking_session()?;
    let found = info(&session, &arguments.reference, &arguments.runtime)?;
    if context.shell.is_json() {
        return context.json(&Answer::new(&found));
    }
    let version = &found.version;
    context.line(&format!(
        "{STRONG}{}{STRONG:#} {}",
        context.name(&found.id),
        in_line(&version.version)
    ))?;
    if let Some(description) = &found.about.description {
        context.line(&in_line(description))?;
    }
    if let Some(reason) = &version.yanked {
        context.line(&format!("{BAD}{}{BAD:#}", in_line(&with_reason("yanked", reason))))?;
    }
    if let Some(reason) = &version.deprecated {
        let text = in_line(&with_reason("deprecated", reason));
        context.line(&format!("{NOTICE}{text}{NOTICE:#}"))?;
    }
    for reason in &version.reasons {
        let text = in_line(&format!("cannot be used here: {reason}"));
        context.line(&format!("{NOTICE}{text}{NOTICE:#}"))?;
    }
    if let Some(other) = &version.moved_to {
        context.line(&format!("{NOTICE}moved to {}{NOTICE:#}", context.name(other)))?;
    }
    for (heading, texts) in facts(context, &found) {
        for (number, text) in texts.iter().filter(|text| !text.is_empty()).enumerate() {
            let heading = if number == 0 { heading } else { "" };
            context.line(&format!("{FAINT}{heading:<13}{FAINT:#}{}", in_line(text)))?;
        }
    }
    Ok(0)
}

/// What happened to a version, and the reason if there is one.
pub(super) fn with_reason(what: &str, reason: &str) -> String {
    if reason.is_empty() { what.to_owned() } else { format!("{what}: {reason}") }
}

/// The facts below the description; those without text are left out.
fn facts(context: &Context, found: &Info) -> Vec<(&'static str, Vec<String>)> {
    let Info { version, about, .. } = found;
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
    let constraints = about.constraints.iter().map(|(fact, value)| format!("{fact} {value}"));
    let mut here: Vec<String> =
        found.locked.iter().map(|version| format!("{version} in Mu.lock")).collect();
    here.extend(found.workspace.as_ref().map(|place| {
        format!("the workspace's own, in `{}`", if place.is_empty() { "." } else { place })
    }));
    vec![
        ("license", one(&about.license)),
        ("website", one(&about.website)),
        ("repository", one(&about.repository)),
        ("maintainers", about.maintainers.clone()),
        ("keywords", vec![about.keywords.join(", ")]),
        ("format", format(found).into_iter().collect()),
        ("app version", one(&version.app_version)),
        ("published", vec![version.published_on().to_owned()]),
        ("commit", one(&version.commit)),
        ("channels", vec![channels(found)]),
        ("versions", span(found).into_iter().collect()),
        ("left out", LeftOut::in_words(&found.left_out).into_iter().collect()),
        ("usable", newest_usable.collect()),
        ("depends on", with_kinds(short(&about.dependencies), &about.dependency_kinds)),
        ("bundled", vec![found.bundled.join(", ")]),
        ("unknown keys", vec![found.unknown.join(", ")]),
        ("exports", found.exports.iter().map(|exports| exported(version, exports)).collect()),
        ("provides", about.provides.clone()),
        ("requires", about.requires.clone()),
        ("replaces", short(&about.replaces)),
        ("conflicts", short(&about.conflicts)),
        ("constraints", constraints.collect()),
        ("from", vec![found.source.to_string()]),
        ("here", here),
        ("install", install(found).iter().map(|text| context.short(text).into_owned()).collect()),
    ]
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
fn exported(version: &ListedVersion, exports: &Exports) -> String {
    let names = exports.names.join(", ");
    match exports.version == version.version {
        true => names,
        false => format!("{names} ({})", exports.version),
    }
}

/// The number of versions, with the oldest and the newest.
fn span(found: &Info) -> Option<String> {
    let (oldest, newest) = found.span.as_ref()?;
    let mut text = match found.total {
        1 => oldest.clone(),
        total => format!("{}, from {oldest} to {newest}", count(total, "version")),
    };
    if found.yanked > 0 {
        text.push_str(&format!("; {} yanked", found.yanked));
    }
    Some(text)
}

/// The command that depends on it; none for versions that nobody should start to use, or that cannot be used
/// here.
fn install(found: &Info) -> Option<String> {
    let version = &found.version;
    if let Some(other) = &version.moved_to {
        return Some(format!("mu add {other}"));
    }
    if version.yanked.is_some() || !version.usable || found.workspace.is_some() {
        return None;
    }
    let is_plain = |character: char| character.is_alphanumeric() || "/.:-_#@~+".contains(character);
    let reference = &found.reference;
    match reference.chars().all(is_plain) {
        true => Some(format!("mu add {reference}")),
        false => Some(format!("mu add '{}'", reference.replace('\'', r"'\''"))),
    }
}

/// Foreign text in one line, so that it cannot imitate another line, and no longer than a person reads.
fn in_line(text: &str) -> String {
    printable(&brief(&text.split_whitespace().collect::<Vec<_>>().join(" "))).into_owned()
}
