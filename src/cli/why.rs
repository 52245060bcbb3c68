//! `mu why`.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::{Context, Ending, Stop};
use crate::ops::Scope;
use crate::ops::graph::{Graph, Node};
use crate::ops::session::locked::{find_used, version_of};
use crate::ops::why::{Reasons, why};
use crate::reference::{Base, Reference};
use crate::report::{FAINT, STRONG};
use crate::select::{Newer, Obstacle};
use crate::workspace::Resolution;

#[derive(Debug, Args)]
#[command(after_help = "\
Of many ways that lead to it, the shortest are shown; --all and --json show every one.

Examples:
  mu why aws/vpc
  mu why aws/vpc --all")]
pub(crate) struct Arguments {
    /// The package
    #[arg(value_name = "PKG")]
    package: String,
    /// Show every way that leads to it
    #[arg(long)]
    all: bool,
}

/// Of more ways than this only the shortest are shown, if not all are asked for.
const SHORTEST: usize = 20;
/// More ways than this are not looked for.
const MOST_PATHS: usize = 10_000;

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let (graph, lock) = Graph::load(&session)?;
    let reference = Reference::parse(&arguments.package).map_err(crate::ops::CommandError::from)?;
    let id = find_used(&session, &lock, &reference)?;
    let mut paths: Vec<Vec<Node>> = Vec::new();
    let mut is_complete = true;
    for node in graph.find(&id) {
        let (found, are_all) = graph.paths_to(node, MOST_PATHS);
        paths.extend(found);
        is_complete &= are_all;
    }
    let reasons = why(&session, &lock, &id)?;
    let is_minimal = session.resolution() == Resolution::Minimal;
    let base = session.defaults().base;
    if context.shell.is_json() {
        let paths: Vec<_> = paths
            .iter()
            .map(|path| {
                path.iter().map(|node| json!(graph.vertices[*node].name)).collect::<Vec<_>>()
            })
            .collect();
        let versions: Vec<_> =
            reasons.iter().map(|reasons| json_of(reasons, &base, is_minimal)).collect();
        context.json(&json!({
            "id": id.to_string(),
            "versions": versions,
            "paths": paths,
            "areAllPaths": is_complete,
        }))?;
        return Ok(0);
    }
    for reasons in &reasons {
        let package = &reasons.package;
        context.line(&format!("{STRONG}{id}{STRONG:#} {}", version_of(package)))?;
        context.line(&format!("{FAINT}from{FAINT:#} {}", package.source))?;
        context.line(&format!("{FAINT}asked for:{FAINT:#}"))?;
        for (requested, least) in package.requested.iter().zip(&reasons.least) {
            let decides = least.as_ref() == Some(&package.version);
            let note = if decides { " (at least this version)" } else { "" };
            context.line(&format!("  {} by {}{note}", requested.spec, requested.by))?;
        }
        for replaced in lock.replaced.iter().filter(|replaced| replaced.by == id) {
            for requested in &replaced.requested {
                let (spec, by) = (&requested.spec, &requested.by);
                context.line(&format!("  {spec} by {by} (asked of {})", replaced.id))?;
            }
        }
        print_newer(context, reasons, &base, is_minimal)?;
    }
    context.line(&format!("{FAINT}ways that lead to it:{FAINT:#}"))?;
    let shown = if arguments.all { paths.len() } else { SHORTEST.min(paths.len()) };
    for path in &paths[..shown] {
        let mut text = graph.vertices[path[0]].name.clone();
        for pair in path.windows(2) {
            let spec = graph.spec(pair[0], pair[1]);
            text.push_str(&format!(
                " {FAINT}→{FAINT:#} {} {FAINT}{spec}{FAINT:#}",
                graph.vertices[pair[1]].name
            ));
        }
        context.line(&format!("  {text}"))?;
    }
    let more = paths.len() - shown;
    let rest = match (more, is_complete) {
        (0, true) => return Ok(0),
        (0, false) => "… and more, which were not looked for".to_owned(),
        (more, true) => format!("… and {more} more: `mu why {} --all`", arguments.package),
        (more, false) => {
            format!("… and more than {more} others: `mu why {} --all`", arguments.package)
        }
    };
    context.line(&format!("  {FAINT}{rest}{FAINT:#}"))?;
    Ok(0)
}

/// Prints what stands against newer versions.
fn print_newer(
    context: &Context,
    reasons: &Reasons,
    base: &Base,
    is_minimal: bool,
) -> Result<(), Stop> {
    if let Some(unknown) = &reasons.unknown {
        return context.line(&format!("{FAINT}newer versions are not known: {unknown}{FAINT:#}"));
    }
    if reasons.newer.is_empty() {
        let source = &reasons.package.source;
        if !source.is_workspace() && !source.is_folder() {
            context.line(&format!("{FAINT}there is no newer release{FAINT:#}"))?;
        }
        return Ok(());
    }
    context.line(&format!("{FAINT}why no newer version:{FAINT:#}"))?;
    for newer in &reasons.newer {
        for line in explain(newer, reasons, base, is_minimal) {
            context.line(&format!("  {line}"))?;
        }
    }
    Ok(())
}

/// What stands against newer versions, with what would move there if nothing does.
fn explain(newer: &Newer, reasons: &Reasons, base: &Base, is_minimal: bool) -> Vec<String> {
    let id = &reasons.package.id;
    let name = if id.base() == *base { id.name_str() } else { id.as_str() };
    match &newer.obstacle {
        Obstacle::Unknown if is_minimal => {
            vec![format!("nothing asks for {}: `mu update {name}` moves up", newer.versions)]
        }
        Obstacle::Nothing => {
            vec![format!("{} would fit: `mu update {name}` moves up", newer.versions)]
        }
        _ => newer.explain(id, base),
    }
}

fn json_of(reasons: &Reasons, base: &Base, is_minimal: bool) -> Value {
    let package = &reasons.package;
    let requested: Vec<_> = package
        .requested
        .iter()
        .zip(&reasons.least)
        .map(|(one, least)| json!({ "by": &*one.by, "spec": &*one.spec, "least": least }))
        .collect();
    let newer: Vec<_> = reasons
        .newer
        .iter()
        .map(|newer| {
            json!({
                "versions": newer.versions.to_string(),
                "newest": newer.newest,
                "reason": match &newer.obstacle {
                    Obstacle::Rule(_) => "rule",
                    Obstacle::Asked(_) => "asked",
                    Obstacle::Conflict(_) => "conflict",
                    Obstacle::Nothing => "lock",
                    Obstacle::Unknown if is_minimal => "not-asked",
                    Obstacle::Unknown => "unknown",
                },
                "explanation": explain(newer, reasons, base, is_minimal),
            })
        })
        .collect();
    json!({
        "version": package.version,
        "commit": package.commit,
        "requested": requested,
        "newer": newer,
        "unknown": reasons.unknown,
    })
}
