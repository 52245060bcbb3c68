//! `mu graph`.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::cli::global::number;
use crate::ops::graph::{Graph, Node, Vertex};
use crate::ops::{Code, CommandError, Scope};
use crate::report::graph::{MOST_PIECES, dot, mermaid, svg};

#[derive(Debug, Args)]
#[command(after_help = "\
Draws the workspace's packages and the packages in Mu.lock that they depend on. An arrow points from a package to one that it needs, and shows the versions that it requires. The same workspace always gives the same bytes. A picture (svg) of more than 500 packages is drawn only with --depth.

Examples:
  mu graph --format svg > graph.svg    a picture, for light and dark pages
  mu graph --format svg --depth 2      of a graph that is too large for one
  mu graph --format mermaid            for Markdown
  mu graph --format dot | dot -Tpng > graph.png
  mu graph --format json")]
pub(crate) struct Arguments {
    /// The output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    format: Format,
    /// Show at most N levels below the workspace's packages
    #[arg(long, value_name = "N", value_parser = number)]
    depth: Option<usize>,
}

/// What `mu graph` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer<'a> {
    /// The packages; roots come first.
    nodes: &'a [Vertex],
    /// What they require of each other.
    edges: Vec<Arrow<'a>>,
}

/// What one package requires of another.
#[derive(Serialize, JsonSchema)]
struct Arrow<'a> {
    /// The place of the requiring one in `nodes`.
    from: Node,
    /// The place of the required one.
    to: Node,
    /// The required spec.
    spec: &'a str,
}

impl<'a> Answer<'a> {
    fn new(graph: &'a Graph) -> Self {
        let edges = graph.vertices.iter().enumerate().flat_map(|(from, vertex)| {
            vertex.edges.iter().map(move |edge| Arrow { from, to: edge.to, spec: &edge.spec })
        });
        Self { nodes: &graph.vertices, edges: edges.collect() }
    }
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
    let (mut graph, _) = Graph::load(&session)?;
    if let Some(depth) = arguments.depth {
        graph = graph.within(depth);
    }
    if context.shell.is_json() || arguments.format == Format::Json {
        return context.json(&Answer::new(&graph));
    }
    for vertex in &mut graph.vertices {
        vertex.name = context.short(&vertex.name).into_owned();
    }
    let text = match arguments.format {
        Format::Dot | Format::Json => dot(&graph),
        Format::Mermaid => mermaid(&graph),
        Format::Svg => picture(&graph, arguments.depth)?,
    };
    context.print(&text)?;
    Ok(0)
}

/// The most packages that are drawn without `--depth`.
const MOST_DRAWN: usize = 500;

/// The graph as a picture, unless that would be too large to read.
fn picture(graph: &Graph, depth: Option<usize>) -> Result<String, CommandError> {
    let count = graph.vertices.len();
    let too_large = |why: String| {
        let deeper = depth.map_or_else(|| "N".to_owned(), |depth| (depth / 2).to_string());
        CommandError::new(Code::Usage, format!("a picture of {count} packages was not drawn: {why}"))
            .hint(format!(
                "`mu graph --format svg --depth {deeper}` draws fewer levels below the workspace's packages"
            ))
            .hint("`--format dot` and `--format json` have all packages, for other programs")
    };
    if depth.is_none() && count > MOST_DRAWN {
        return Err(too_large(format!("without --depth, {MOST_DRAWN} are drawn at most")));
    }
    svg(graph).map_err(|pieces| {
        too_large(format!(
            "it would have {pieces} boxes, labels and bends, and at most {MOST_PIECES} are allowed"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::graph::{Edge, Vertex};

    /// A chain of packages, with arrows from each to those that are this many steps later.
    fn chain(count: usize, steps: &[usize]) -> Graph {
        let vertices = (0..count).map(|node| Vertex {
            name: format!("p{node}"),
            id: None,
            version: None,
            is_root: node == 0,
            edges: steps
                .iter()
                .map(|step| node + step)
                .filter(|to| *to < count)
                .map(|to| Edge { to, spec: "^1".to_owned() })
                .collect(),
        });
        Graph { vertices: vertices.collect() }
    }

    #[test]
    fn pictures_that_nobody_could_read_are_refused() {
        assert!(picture(&chain(500, &[1]), None).is_ok());
        let graph = chain(501, &[1]);
        let error = picture(&graph, None).expect_err("is too large");
        assert!(error.to_string().contains("a picture of 501 packages was not drawn"), "{error}");
        assert!(error.hints[0].contains("--depth N"), "{:?}", error.hints);
        assert!(picture(&graph, Some(600)).is_ok(), "how deep was said");
        // Each package requires all later ones, and each arrow passes those in between.
        let every: Vec<usize> = (1..300).collect();
        let error = picture(&chain(300, &every), None).expect_err("its arrows are too long");
        assert!(error.to_string().contains("boxes, labels and bends"), "{error}");
    }

    #[test]
    fn only_so_many_levels_are_in_a_part() {
        let part = chain(10, &[1, 3]).within(2);
        let names: Vec<&str> = part.vertices.iter().map(|vertex| vertex.name.as_str()).collect();
        assert_eq!(names, ["p0", "p1", "p2", "p3", "p4", "p6"]);
        let to =
            |node: usize| part.vertices[node].edges.iter().map(|edge| edge.to).collect::<Vec<_>>();
        assert_eq!([to(0), to(3), to(5)], [vec![1, 3], vec![4, 5], vec![]]);
    }
}
