//! `mu info`.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::{Context, Ending};
use crate::ops::Scope;
use crate::ops::info::{Info, info};
use crate::report::{BAD, FAINT, NOTICE, STRONG, count, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
Asks the registry, and fetches no package. A version after # tells of the newest version that it \
accepts.

Examples:
  mu info aws/ec2
  mu info 'aws/ec2#^1.2'
  mu info https://github.com/acme/logs.git
  mu info ../logs --json")]
pub(crate) struct Arguments {
    /// The package
    #[arg(value_name = "REF")]
    reference: String,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let found = info(&session, &arguments.reference)?;
    if context.shell.is_json() {
        context.json(&to_json(&found))?;
        return Ok(0);
    }
    let version = &found.version;
    context.line(&format!("{STRONG}{}{STRONG:#} {}", found.id, in_line(&version.version)))?;
    if let Some(description) = &found.about.description {
        context.line(&in_line(description))?;
    }
    if let Some(reason) = &version.yanked {
        let text =
            if reason.is_empty() { "yanked".to_owned() } else { format!("yanked: {reason}") };
        context.line(&format!("{BAD}{}{BAD:#}", in_line(&text)))?;
    }
    if let Some(other) = &version.moved_to {
        context.line(&format!("{NOTICE}moved to {other}{NOTICE:#}"))?;
    }
    for (heading, texts) in facts(&found) {
        for (number, text) in texts.iter().filter(|text| !text.is_empty()).enumerate() {
            let heading = if number == 0 { heading } else { "" };
            context.line(&format!("{FAINT}{heading:<13}{FAINT:#}{}", in_line(text)))?;
        }
    }
    Ok(0)
}

/// What is shown below the description; nothing is shown of what has no text.
fn facts(found: &Info) -> Vec<(&'static str, Vec<String>)> {
    let Info { version, about, .. } = found;
    let one = |text: &Option<String>| text.iter().cloned().collect::<Vec<_>>();
    let day = version.published.as_deref().map(|moment| moment.get(..10).unwrap_or(moment));
    let needs_mu = version.mu_version.as_ref().filter(|_| !version.usable);
    let constraints = about.constraints.iter().map(|(fact, value)| format!("{fact} {value}"));
    let mut here: Vec<String> =
        found.locked.iter().map(|version| format!("{version} in Mu.lock")).collect();
    here.extend(found.workspace.as_ref().map(|place| {
        format!("the workspace's own, in `{}`", if place.is_empty() { "." } else { place })
    }));
    vec![
        ("licence", one(&about.license)),
        ("website", one(&about.website)),
        ("maintainers", about.maintainers.clone()),
        ("keywords", vec![about.keywords.join(", ")]),
        ("app version", one(&version.app_version)),
        ("published", day.map(str::to_owned).into_iter().collect()),
        ("commit", one(&version.commit)),
        ("channels", vec![version.channels.join(", ")]),
        ("versions", span(found).into_iter().collect()),
        ("needs mu", needs_mu.cloned().into_iter().collect()),
        ("depends on", about.dependencies.clone()),
        ("provides", about.provides.clone()),
        ("requires", about.requires.clone()),
        ("replaces", about.replaces.clone()),
        ("constraints", constraints.collect()),
        ("from", vec![found.source.to_string()]),
        ("here", here),
        ("install", install(found).into_iter().collect()),
    ]
}

/// How many versions there are, from which to which.
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

/// The command that depends on it; none for what nobody should begin to depend on.
fn install(found: &Info) -> Option<String> {
    let version = &found.version;
    if let Some(other) = &version.moved_to {
        return Some(format!("mu add {other}"));
    }
    if version.yanked.is_some() || found.workspace.is_some() {
        return None;
    }
    let is_plain = |character: char| character.is_alphanumeric() || "/.:-_#@~+".contains(character);
    let reference = &found.reference;
    match reference.chars().all(is_plain) {
        true => Some(format!("mu add {reference}")),
        false => Some(format!("mu add '{}'", reference.replace('\'', r"'\''"))),
    }
}

/// Foreign text in one line, so that it can look like no other line.
fn in_line(text: &str) -> String {
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

fn to_json(found: &Info) -> Value {
    let Info { version, about, .. } = found;
    json!({
        "id": found.id.to_string(),
        "version": version.version,
        "description": about.description,
        "license": about.license,
        "website": about.website,
        "maintainers": about.maintainers,
        "keywords": about.keywords,
        "appVersion": version.app_version,
        "published": version.published,
        "commit": version.commit,
        "channels": version.channels,
        "tags": version.tags,
        "yanked": version.yanked.as_ref().map_or(json!(false), |reason| json!(reason)),
        "movedTo": version.moved_to.as_ref().map(ToString::to_string),
        "apiVersion": version.api_version,
        "muVersion": version.mu_version,
        "usable": version.usable,
        "dependencies": about.dependencies,
        "provides": about.provides,
        "requires": about.requires,
        "replaces": about.replaces,
        "constraints": about.constraints,
        "versions": {
            "total": found.total,
            "yanked": found.yanked,
            "oldest": found.span.as_ref().map(|(oldest, _)| oldest),
            "newest": found.span.as_ref().map(|(_, newest)| newest),
        },
        "source": found.source.to_string(),
        "locked": found.locked,
        "workspace": found.workspace,
        "install": install(found),
    })
}
