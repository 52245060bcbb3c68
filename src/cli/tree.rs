//! `mu tree`.

use anstyle::Style;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::cli::global::number;
use crate::ops::Scope;
use crate::ops::tree::{Roots, Tree, tree};
use crate::report::{FAINT, NOTICE, STRONG};

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
pub(crate) struct Arguments {
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

impl Arguments {
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
pub(super) struct Answer {
    /// The workspace's packages, and the command line; or the packages in the question.
    roots: Vec<Tree>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let depth = arguments.depth.unwrap_or(usize::MAX);
    let answer = Answer { roots: tree(&session, &arguments.roots(), depth)? };
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
