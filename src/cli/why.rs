//! `mu why`.

use clap::Args;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::Scope;
use crate::ops::graph::{Graph, Node, version_of};
use crate::ops::update::find_locked;
use crate::reference::Reference;
use crate::report::{FAINT, STRONG};

/// Show why a package is installed, and why in this version
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu why aws/vpc")]
pub(crate) struct Arguments {
    /// The package
    #[arg(value_name = "PKG")]
    package: String,
}

/// More ways than this tell nobody anything.
const MOST_PATHS: usize = 50;

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let (graph, lock) = Graph::load(&session)?;
    let reference = Reference::parse(&arguments.package).map_err(crate::ops::CommandError::from)?;
    let id = find_locked(&session, &lock, &reference)?;
    let paths: Vec<Vec<Node>> =
        graph.find(&id).into_iter().flat_map(|node| graph.paths_to(node, MOST_PATHS)).collect();
    if context.shell.is_json() {
        let paths: Vec<_> = paths
            .iter()
            .map(|path| {
                path.iter().map(|node| json!(graph.vertices[*node].name)).collect::<Vec<_>>()
            })
            .collect();
        let versions: Vec<_> = lock
            .find(&id)
            .map(|package| {
                let requested: Vec<_> = package
                    .requested
                    .iter()
                    .map(|requested| json!({ "by": requested.by, "spec": requested.spec }))
                    .collect();
                json!({ "version": package.version, "commit": package.commit, "requested": requested })
            })
            .collect();
        context.json(&json!({ "id": id.to_string(), "versions": versions, "paths": paths }))?;
        return Ok(0);
    }
    for package in lock.find(&id) {
        context.line(&format!("{STRONG}{id}{STRONG:#} {}", version_of(package)))?;
        context.line(&format!("{FAINT}from{FAINT:#} {}", package.source))?;
        context.line(&format!("{FAINT}asked for:{FAINT:#}"))?;
        for requested in &package.requested {
            context.line(&format!("  {} by {}", requested.spec, requested.by))?;
        }
    }
    context.line(&format!("{FAINT}ways that lead to it:{FAINT:#}"))?;
    for path in &paths {
        let mut text = graph.vertices[path[0]].name.clone();
        for pair in path.windows(2) {
            let spec = graph.spec(pair[0], pair[1]).unwrap_or_default();
            text.push_str(&format!(
                " {FAINT}→{FAINT:#} {} {FAINT}{spec}{FAINT:#}",
                graph.vertices[pair[1]].name
            ));
        }
        context.line(&format!("  {text}"))?;
    }
    if paths.len() == MOST_PATHS {
        context.line(&format!("  {FAINT}and more{FAINT:#}"))?;
    }
    Ok(0)
}
