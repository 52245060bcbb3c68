//! `mu tree`.

use anstyle::Style;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::cli::global::number;
use crate::ops::Scope;
use crate::ops::tree::{Tree, tree};
use crate::report::{FAINT, STRONG};

#[derive(Debug, Args)]
#[command(after_help = "\
The dependencies of a package are shown once: where it appears again, it is marked (*). A package that depends \
on itself is marked (cycle). With --json, these are `repeated` and `cycle`.

Examples:
  mu tree
  mu tree --depth 1
  mu tree --invert aws/vpc             who needs it")]
pub(crate) struct Arguments {
    /// Show what needs this package: the tree upside down
    #[arg(short, long, value_name = "PKG")]
    invert: Option<String>,
    /// Show at most N levels
    #[arg(long, value_name = "N", value_parser = number)]
    depth: Option<usize>,
}

/// What `mu tree` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The workspace's packages, and the command line; upside down, the package.
    roots: Vec<Tree>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let depth = arguments.depth.unwrap_or(usize::MAX);
    let answer = Answer { roots: tree(&session, arguments.invert.as_deref(), depth)? };
    context.answer(&answer, |answer| {
        let mut text = String::new();
        for root in &answer.roots {
            text.push_str(&format!("{}\n", name(root)));
            draw(&root.dependencies, "", &mut text);
        }
        if text.is_empty() {
            context.shell.status("nothing is installed here");
        }
        context.print(&context.short(&text))
    })
}

/// What asks for packages without being one.
const COMMAND: &str = "mu get";

/// Draws what is below a package, a line each.
fn draw(trees: &[Tree], indent: &str, text: &mut String) {
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
        let (name, spec) = (name(tree), tree.spec.as_deref().unwrap_or_default());
        text.push_str(&format!(
            "{FAINT}{indent}{branch}{FAINT:#}{name} {FAINT}{spec}{mark}{FAINT:#}\n"
        ));
        draw(&tree.dependencies, &format!("{indent}{stem}"), text);
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
