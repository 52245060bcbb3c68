//! Helm charts: `Chart.yaml`, `requirements.yaml`, and the `index.yaml` of a chart repository.
//!
//! A chart carries its subcharts inside. mu treats those that come from a repository as separate packages, so
//! that there is one version of each. Subcharts without a repository stay inside, and are named in `bundled`.

mod chart;
mod dependency;
mod edit;
mod lock;
mod pushed;

use std::sync::Arc;

use mu_provider::Release;

pub use self::chart::{CHART, REQUIREMENTS, is_copy};
pub use self::edit::Charts;
pub use self::pushed::PROVENANCE;

pub use self::lock::{Need, Needs, dependencies, lock, locked, needs};
pub use crate::aliases::HelmRepositoryAliases;
use crate::error::{Fault, FormatError};
use crate::files::Texts;
use crate::format::{Format, Package, Place, Reading, Seen, check_name_segment};
pub use crate::index::{Index, is_index};
use crate::index::{IndexEntries, add_archive};
use crate::node::Node;
use crate::reader;
use crate::shape::Shape;
use crate::unknown::Unknown;

/// The format of charts.
pub const FORMAT: Format = Format {
    name: "helm",
    kind: "chart",
    manifest: CHART,
    others: &[REQUIREMENTS],
    folder: None,
    is_named: true,
    is_one: Some(is_one),
    lenient: false,
    artifact: Some(pushed::ARTIFACT),
    dialect: |aliases| Arc::new(Charts { aliases: aliases.clone() }),
    place_of_word: None,
    packed_by: "`helm package` makes its archive, and `helm push` publishes it",
    head,
    read,
};

/// Whether a text is the manifest of a chart, and not a resource of another kind in a file of that name. What
/// cannot be read is a chart with a mistake.
fn is_one(text: &str) -> bool {
    let has = |root: &Node<'_>, key| root.text(key).is_ok_and(|value| value.is_some());
    reader::read(text, &chart::SHAPE).map_or(true, |root| !has(&root, "kind") || has(&root, "name"))
}

/// Reads the chart whose files these are.
///
/// # Errors
///
/// When there is no `Chart.yaml`, or if it or `requirements.yaml` has something that Helm would reject.
pub fn read(files: &Texts, around: &Reading<'_>) -> Result<Package, FormatError> {
    let text = files.manifest(CHART)?;
    let in_chart = |fault| FormatError::new(CHART, text, fault);
    let (root, unknown) = reader::read_all(text, &chart::SHAPE).map_err(in_chart)?;
    let mut release = chart::head(&root, None).map_err(in_chart)?;
    release.unknown = unknown.check(around.is_own).map_err(in_chart)?;
    let (mut places, mut names, mut seen) = (Vec::new(), Vec::new(), Seen::default());
    let mut add = |text: &str, root: &Node<'_>| -> Result<(), Fault> {
        for (index, node) in root.list("dependencies")?.iter().enumerate() {
            if dependency::add(&mut release, node, around, &mut seen)? {
                let line = mu_manifest::source::line_at_offset(text, node.span.start);
                places.push(Place { line, index });
                names.push(node.text_for_people("alias"));
            }
        }
        Ok(())
    };
    match required(files)? {
        Some((text, root, unknown)) => {
            let read = unknown.check(around.is_own).and_then(|keys| {
                add(text, &root)?;
                Ok(keys)
            });
            let keys = read.map_err(|fault| FormatError::new(REQUIREMENTS, text, fault))?;
            release.unknown.extend(keys);
        }
        None => add(text, &root).map_err(in_chart)?,
    }
    chart::details(&mut release, &root).map_err(in_chart)?;
    release.dependencies.get_or_insert_default();
    Ok(Package { release, places, names, ..Package::default() })
}

/// What `requirements.yaml` says, if it lists dependencies: Helm then reads them there, and not in `Chart.yaml`, in both formats of
/// charts.
fn required(files: &Texts) -> Result<Option<(&str, Node<'_>, Unknown)>, FormatError> {
    let Some(text) = files.text(REQUIREMENTS) else { return Ok(None) };
    let in_file = |fault| FormatError::new(REQUIREMENTS, text, fault);
    let (root, unknown) = reader::read_all(text, &chart::REQUIRED).map_err(in_file)?;
    let lists = root.written("dependencies").is_some();
    // A misspelt key lists nothing.
    Ok((lists || !unknown.is_empty()).then_some((text, root, unknown)))
}

/// The file of a chart in which its dependencies are written: `Chart.yaml` or `requirements.yaml`.
pub fn lists_dependencies(files: &Texts) -> &'static str {
    let root = |name, shape| files.text(name).and_then(|text| reader::read(text, shape).ok());
    let lists = |root: &Node<'_>| root.written("dependencies").is_some();
    let chart = root(CHART, &chart::SHAPE);
    let is_first = chart.as_ref().is_some_and(chart::is_first);
    let is_there = root(REQUIREMENTS, &chart::REQUIRED).is_some_and(|root| lists(&root));
    // Helm takes no dependencies in a `Chart.yaml` of the first format where it checks charts, though it reads them.
    match is_there || (is_first && !chart.as_ref().is_some_and(lists)) {
        true => REQUIREMENTS,
        false => CHART,
    }
}

/// Reads only the name and version of a chart: they identify even a chart that cannot be used.
///
/// # Errors
///
/// When it has none, or is not YAML.
pub fn head(files: &Texts) -> Result<Release, FormatError> {
    files.read(CHART, |text| chart::head(&reader::read(text, &chart::SHAPE)?, None))
}

/// What is read of `Chart.yaml` and of the entries of an index, of `requirements.yaml`, of a lock, and of an index.
#[cfg(test)]
pub(crate) fn shapes() -> [&'static crate::shape::Shape; 4] {
    [&chart::SHAPE, &chart::REQUIRED, lock::shape(), &CHART_INDEX]
}

#[cfg(test)]
mod tests;

/// What an entry of KUDO is told apart by, and why it is not read.
const OTHER: (&str, &str) = (
    "operatorVersion",
    "this is not an index of charts: it has KUDO operators, which `kudo+https://` leads to",
);

/// The keys of an index. Servers add others to it.
static CHART_INDEX: Shape = Shape::Open(&[
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
pub fn index(
    file: &str,
    text: &str,
    aliases: &HelmRepositoryAliases,
) -> Result<Index, FormatError> {
    let around = Reading { aliases: Some(aliases), ..Reading::default() };
    let entries = IndexEntries {
        format: FORMAT.name,
        called: "charts",
        index: &CHART_INDEX,
        shape: &chart::SHAPE,
        version: "version",
        other: OTHER,
        check_name: |name| check_name_segment(name, "a chart"),
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
