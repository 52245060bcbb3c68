//! The entries of the `index.yaml` of a chart repository.

use mu_provider::Release;

use super::{FORMAT, chart, dependency};
use crate::aliases::Aliases;
use crate::error::{Fault, FormatError};
use crate::format::{Reading, Seen, check_name};
use crate::index::{Entries, Index, add_archive};
use crate::node::Node;
use crate::shape::Shape;

/// What an entry of KUDO is told apart by, and why it is not read.
const OTHER: (&str, &str) = (
    "operatorVersion",
    "this is not an index of charts: it has KUDO operators, which `kudo+https://` leads to",
);

/// The keys of an index. Servers add others to it.
pub(super) static CHART_INDEX: Shape = Shape::Open(&[
    ("apiVersion", Shape::Unused),
    ("annotations", Shape::Unused),
    ("entries", Shape::Each(&Shape::List(&chart::SHAPE))),
    ("generated", Shape::Unused),
    ("publicKeys", Shape::Unused),
    ("serverInfo", Shape::Unused),
]);

/// Reads `text`, the index that came from `file`.
///
/// # Errors
///
/// When it is not YAML or JSON, or no index of charts.
pub fn index(file: &str, text: &str, aliases: &Aliases) -> Result<Index, FormatError> {
    let around = Reading { aliases: Some(aliases), ..Reading::default() };
    let entries = Entries {
        format: FORMAT.name,
        called: "charts",
        index: &CHART_INDEX,
        shape: &chart::SHAPE,
        version: "version",
        other: OTHER,
        check_name: |name| check_name(name, "a chart"),
        read: &|name, node| release(name, node, &around),
    };
    entries.index(file, text)
}

fn release(name: &str, node: &Node<'_>, around: &Reading<'_>) -> Result<Release, Fault> {
    let mut release = chart::head(node, Some(name))?;
    let mut seen = Seen::default();
    for dependency in node.list("dependencies")? {
        dependency::add(&mut release, dependency, around, &mut seen)?;
    }
    if !chart::is_first(node) {
        release.dependencies.get_or_insert_default();
    }
    chart::details(&mut release, node)?;
    add_archive(&mut release, node)?;
    Ok(release)
}
