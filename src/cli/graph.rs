//! `mu graph`, `mu tree` and `mu why`: what depends on what.

use anstyle::Style;
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context, Stop};
use crate::cli::global::number;
use crate::cli::search::with_reason;
use crate::ops::graph::{Graph, Node, Roots, Tree, Vertex, dependency_trees};
use crate::ops::session::locked::version_of;
use crate::ops::why::{Reasons, Why, why};
use crate::ops::{Code, CommandError, OperationScope};
use crate::reference::VersionSpec;
use crate::report::graph::{MOST_PIECES, dot, graph_as_svg, mermaid};
use crate::report::{FAINT, NOTICE, STRONG, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
Draws the workspace's packages and the packages in Mu.lock that they depend on. An arrow points from a package to one that it needs, and shows the versions that it requires. The same workspace always gives the same bytes. A picture (svg) of more than 500 packages is drawn only with --depth.

Examples:
  mu graph --format svg > graph.svg    a picture, for light and dark pages
  mu graph --format svg --depth 2      of a graph that is too large for one
  mu graph --format mermaid            for Markdown
  mu graph --format dot | dot -Tpng > graph.png
  mu graph --format json")]
pub(crate) struct GraphArguments {
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

pub(crate) fn run(context: &Context, arguments: &GraphArguments) -> CommandExit {
    let session = context.open(OperationScope::Workspace)?;
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
    graph_as_svg(graph).map_err(|pieces| {
        too_large(format!(
            "it would have {pieces} boxes, labels and bends, and at most {MOST_PIECES} are allowed"
        ))
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
The dependencies of a package are shown once: where it appears again, it is marked (*). A package that depends \
on itself is marked (cycle). With --json, these are `repeated` and `cycle`. The workspace's packages are sorted by \
folder, and what a package needs by id, the base first.

Examples:
  mu tree
  mu tree --depth 1
  mu tree web/proxy                    what one package needs
  mu tree --invert aws/vpc             what needs it
  mu tree --duplicates                 what brings several versions of a package")]
pub(crate) struct TreeArguments {
    /// Show what this package needs; it can be any package in use
    #[arg(value_name = "PKG")]
    name: Option<String>,
    /// Show what this package of the workspace needs
    #[arg(short, long, value_name = "PACKAGE", conflicts_with = "name")]
    package: Option<String>,
    /// Show what needs this package: the tree upside down
    #[arg(short, long, value_name = "PKG", conflicts_with_all = ["name", "package"])]
    invert: Option<String>,
    /// Show the packages that are in use in several versions, and what needs each
    #[arg(short, long, conflicts_with_all = ["name", "package", "invert"])]
    duplicates: bool,
    /// Show at most N levels
    #[arg(long, value_name = "N", value_parser = number)]
    depth: Option<usize>,
}

impl TreeArguments {
    fn roots(&self) -> Roots {
        match (&self.name, &self.package, &self.invert) {
            (Some(name), _, _) => Roots::Package(name.clone()),
            (_, Some(member), _) => Roots::Member(member.clone()),
            (_, _, Some(package)) => Roots::Inverted(package.clone()),
            _ if self.duplicates => Roots::Duplicates,
            _ => Roots::Workspace,
        }
    }
}

/// What `mu tree` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct TreeAnswer {
    /// The workspace's packages, and the command line; or the packages in the question.
    roots: Vec<Tree>,
}

pub(crate) fn run_tree(context: &Context, arguments: &TreeArguments) -> CommandExit {
    let session = context.open(OperationScope::Workspace)?;
    let depth = arguments.depth.unwrap_or(usize::MAX);
    let answer = TreeAnswer { roots: dependency_trees(&session, &arguments.roots(), depth)? };
    let verb =
        if arguments.invert.is_some() || arguments.duplicates { "requires" } else { "required" };
    context.answer(&answer, |answer| {
        let mut text = String::new();
        for root in &answer.roots {
            text.push_str(&format!("{}\n", name(root)));
            draw(&root.dependencies, verb, "", &mut text);
        }
        if text.is_empty() {
            context.shell.status(match arguments.duplicates {
                true => "no package is in use in several versions",
                false => "nothing is installed here",
            });
        }
        context.print(&context.short(&text))
    })
}

/// What requires packages without being one.
const COMMAND: &str = "mu get";

/// Draws the packages below a package, one on each line; `verb` says what the versions after them are.
fn draw(trees: &[Tree], verb: &str, indent: &str, text: &mut String) {
    for (index, tree) in trees.iter().enumerate() {
        let (branch, stem) = if index + 1 == trees.len() {
            ("└── ", "    ")
        } else {
            ("├── ", "│   ")
        };
        let mark = match (tree.cycle, tree.repeated) {
            (true, _) => " (cycle)",
            (_, true) => " (*)",
            _ => "",
        };
        let (name, spec) = (name(tree), spec(tree));
        let helm: String = tree.helm.iter().map(|inside| format!(" ({inside})")).collect();
        text.push_str(&format!(
            "{FAINT}{indent}{branch}{FAINT:#}{name}{NOTICE}{helm}{NOTICE:#} {FAINT}[{verb}: {spec}]{mark}{FAINT:#}\n"
        ));
        draw(&tree.dependencies, verb, &format!("{indent}{stem}"), text);
    }
}

/// What is required of a package, or by it; `latest` could be mistaken for its version.
fn spec(tree: &Tree) -> String {
    let spec = tree.spec.as_deref().unwrap_or_default();
    match spec.strip_prefix("latest") {
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => format!("any version{rest}"),
        _ => spec.to_owned(),
    }
}

fn name(tree: &Tree) -> String {
    let style = if tree.is_root { STRONG } else { Style::new() };
    match &tree.version {
        None if tree.is_root && tree.name == COMMAND => {
            format!("{style}installed by `{COMMAND}`{style:#}")
        }
        Some(version) => format!("{style}{}{style:#} {version}", tree.name),
        None => format!("{style}{}{style:#}", tree.name),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
If many paths lead to it, the shortest are shown; --all and --json show all of them.

Examples:
  mu why aws/vpc
  mu why aws/vpc --all")]
pub(crate) struct WhyArguments {
    /// The package
    #[arg(value_name = "PKG")]
    package: String,
    /// Show every path that leads to it
    #[arg(long)]
    all: bool,
}

/// The number of paths that are shown without `--all`.
const SHORTEST: usize = 20;
pub(crate) fn run_why(context: &Context, arguments: &WhyArguments) -> CommandExit {
    let session = context.open(OperationScope::Workspace)?;
    let why = why(&session, &arguments.package)?;
    context.answer(&why, |why| {
        for other in &why.aliases {
            let text = format!("`aliases` in the settings make {other} the package {}", why.id);
            line(context, &text)?;
        }
        for reasons in &why.versions {
            print_reasons(context, why, reasons)?;
        }
        for inside in &why.helm {
            line(
                context,
                &format!(
                    "{NOTICE}Helm uses {} from inside {}{NOTICE:#}",
                    inside.version, inside.inside
                ),
            )?;
        }
        print_paths(context, why, arguments)
    })
}

/// Prints a line that names packages.
fn line(context: &Context, text: &str) -> Result<(), Stop> {
    context.line(&context.short(text))
}

fn print_reasons(context: &Context, why: &Why, reasons: &Reasons) -> Result<(), Stop> {
    let package = &reasons.package;
    let name = context.name(&why.id);
    line(context, &format!("{STRONG}{name}{STRONG:#} {}", version_of(package)))?;
    for (what, reason) in [("yanked", &reasons.yanked), ("deprecated", &reasons.deprecated)] {
        let Some(reason) = reason else { continue };
        line(context, &format!("{NOTICE}{}{NOTICE:#}", printable(&with_reason(what, reason))))?;
    }
    line(context, &format!("{FAINT}from{FAINT:#} {}", package.source))?;
    line(context, &format!("{FAINT}required:{FAINT:#}"))?;
    for asker in &reasons.requested {
        let is_exact = VersionSpec::parse(&asker.spec).is_ok_and(|spec| spec.is_pinned());
        let decides = !is_exact && asker.least.as_ref() == Some(&reasons.version);
        let note = if decides { " (at least this version)" } else { "" };
        line(context, &format!("  {} by {}{note}", asker.spec, asker.by))?;
    }
    for (id, spec, by) in &why.instead {
        line(context, &format!("  {spec} by {by} (required of {id})"))?;
    }
    if let Some(unknown) = &reasons.unknown {
        return line(context, &format!("{FAINT}newer versions are not known: {unknown}{FAINT:#}"));
    }
    let has_releases = !package.source.is_workspace_folder() && !package.source.is_outside_folder();
    if reasons.newer.is_empty() && has_releases {
        return line(context, &format!("{FAINT}there is no newer release{FAINT:#}"));
    }
    if !reasons.newer.is_empty() {
        line(context, &format!("{FAINT}why no newer version:{FAINT:#}"))?;
    }
    for newer in reasons.newer.iter().flat_map(|newer| &newer.explanation) {
        line(context, &format!("  {newer}"))?;
    }
    Ok(())
}

fn print_paths(context: &Context, why: &Why, arguments: &WhyArguments) -> Result<(), Stop> {
    let (graph, paths) = (&why.paths.graph, &why.paths.nodes);
    line(context, &format!("{FAINT}paths to it:{FAINT:#}"))?;
    let shown = if arguments.all { paths.len() } else { SHORTEST.min(paths.len()) };
    for path in &paths[..shown] {
        let mut text = graph.vertices[path[0]].name.clone();
        for pair in path.windows(2) {
            let spec = graph.spec(pair[0], pair[1]);
            let name = &graph.vertices[pair[1]].name;
            text.push_str(&format!(" {FAINT}→{FAINT:#} {name} {FAINT}{spec}{FAINT:#}"));
        }
        line(context, &format!("  {text}"))?;
    }
    let all = format!("`mu why {} --all`", arguments.package);
    let rest = match (paths.len() - shown, why.are_all_paths) {
        (0, true) => return Ok(()),
        (0, false) => "… and more, which were not searched".to_owned(),
        (more, true) => format!("… and {more} more: {all}"),
        (more, false) => format!("… and more than {more} others: {all}"),
    };
    line(context, &format!("  {FAINT}{rest}{FAINT:#}"))
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
