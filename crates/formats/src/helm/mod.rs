//! Helm charts: `Chart.yaml`, `requirements.yaml`, and the `index.yaml` of a chart repository.
//!
//! A chart carries its subcharts inside. mu treats those that come from a repository as separate packages, so
//! that there is one version of each. Subcharts without a repository stay inside, and are named in `bundled`.

mod chart;
mod dependency;
mod edit;
mod image;
mod index;
mod lock;
mod pushed;

use std::sync::Arc;

use mu_provider::Release;

pub use self::chart::{CHART, REQUIREMENTS, is_copy};
pub use self::edit::Charts;
pub use self::image::PROVENANCE;
pub use self::index::index;
pub use self::lock::{Need, Needs, dependencies, lock, locked, needs};
pub use self::pushed::{Pushed, pushed};
pub use crate::aliases::Aliases;
use crate::error::FormatError;
use crate::files::Texts;
use crate::format::{Format, Package, Place, Reading, Seen};
pub use crate::index::{Index, is_index};
use crate::node::Node;
use crate::reader;

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
    artifact: Some(image::ARTIFACT),
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
    let root = reader::read(text, &chart::SHAPE).map_err(in_chart)?;
    let (mut release, is_first) = chart::head(&root, None).map_err(in_chart)?;
    let line = |text: &str, node: &Node<'_>| mu_manifest::source::line_of(text, node.span.start);
    let (mut places, mut seen) = (Vec::new(), Seen::default());
    let mut add = |file: &str, text: &str, root: &Node<'_>| -> Result<(), FormatError> {
        let in_file = |fault| FormatError::new(file, text, fault);
        for (index, node) in root.list("dependencies").map_err(in_file)?.iter().enumerate() {
            if dependency::add(&mut release, node, around, &mut seen).map_err(in_file)? {
                places.push(Place { line: line(text, node), index });
            }
        }
        Ok(())
    };
    add(CHART, text, &root)?;
    if is_first && let Some(text) = files.text(REQUIREMENTS) {
        let in_file = |fault| FormatError::new(REQUIREMENTS, text, fault);
        let root = reader::read(text, &chart::SHAPE).map_err(in_file)?;
        add(REQUIREMENTS, text, &root)?;
    }
    chart::details(&mut release, &root).map_err(in_chart)?;
    release.dependencies.get_or_insert_default();
    Ok(Package { release, places, ..Package::default() })
}

/// Reads only the name and version of a chart: they identify even a chart that cannot be used.
///
/// # Errors
///
/// When it has none, or is not YAML.
pub fn head(files: &Texts) -> Result<Release, FormatError> {
    files.read(CHART, |text| Ok(chart::head(&reader::read(text, &chart::SHAPE)?, None)?.0))
}

#[cfg(test)]
mod tests;
