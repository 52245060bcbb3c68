//! `mu graph`.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::cli::{Context, Ending};
use crate::ops::Scope;
use crate::ops::graph::Graph;
use crate::report::graph::{dot, mermaid, svg};

#[derive(Debug, Args)]
#[command(after_help = "\
The graph of the workspace's packages and of what Mu.lock says they lead to. An arrow leads from a \
package to one that it needs, and says which versions of it. The same workspace gives the same bytes.

Examples:
  mu graph --format svg > graph.svg    a picture, for light and dark pages
  mu graph --format mermaid            for Markdown
  mu graph --format dot | dot -Tpng > graph.png
  mu graph --format json")]
pub(crate) struct Arguments {
    /// In which form
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    #[default]
    Dot,
    Mermaid,
    Svg,
    Json,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let (graph, _) = Graph::load(&session)?;
    if context.shell.is_json() || arguments.format == Format::Json {
        context.json(&to_json(&graph))?;
        return Ok(0);
    }
    let text = match arguments.format {
        Format::Dot | Format::Json => dot(&graph),
        Format::Mermaid => mermaid(&graph),
        Format::Svg => svg(&graph),
    };
    context.print(&text)?;
    Ok(0)
}

fn to_json(graph: &Graph) -> Value {
    let nodes: Vec<Value> = graph
        .vertices
        .iter()
        .map(|vertex| {
            json!({
                "name": vertex.name,
                "id": vertex.id.as_ref().map(ToString::to_string),
                "version": vertex.version,
                "root": vertex.is_root,
            })
        })
        .collect();
    let edges: Vec<Value> = graph
        .vertices
        .iter()
        .enumerate()
        .flat_map(|(from, vertex)| {
            vertex
                .edges
                .iter()
                .map(move |edge| json!({ "from": from, "to": edge.to, "spec": edge.spec }))
        })
        .collect();
    json!({ "nodes": nodes, "edges": edges })
}
