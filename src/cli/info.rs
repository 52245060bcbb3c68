//! `mu info`.

use clap::Args;
use mu_provider::brief;

use crate::cli::context::{CommandExit, Context, OwnOptions};
use crate::index::LeftOut;
use crate::ops::info::{Exports, Info, VersionSpan, fetch_readme, info, published_on};
use crate::ops::trust::ShownRule;
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

pub(crate) fn run(context: &Context, arguments: &InfoArguments) -> CommandExit {
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
