//! `mu why`.

use clap::Args;

use crate::cli::context::{Context, Ending, Stop};
use crate::cli::info::with_reason;
use crate::ops::Scope;
use crate::ops::session::locked::version_of;
use crate::ops::why::{Reasons, Why, why};
use crate::reference::VersionSpec;
use crate::report::{FAINT, NOTICE, STRONG, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
If many paths lead to it, the shortest are shown; --all and --json show all of them.

Examples:
  mu why aws/vpc
  mu why aws/vpc --all")]
pub(crate) struct Arguments {
    /// The package
    #[arg(value_name = "PKG")]
    package: String,
    /// Show every path that leads to it
    #[arg(long)]
    all: bool,
}

/// The number of paths that are shown without `--all`.
const SHORTEST: usize = 20;
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
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
    let has_releases = !package.source.is_workspace() && !package.source.is_folder();
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

fn print_paths(context: &Context, why: &Why, arguments: &Arguments) -> Result<(), Stop> {
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
