//! Helm charts: `Chart.yaml`, `requirements.yaml`, and the `index.yaml` of a chart repository; and dependencies as `Chart.yaml`
//! writes them, for commands that change it.
//!
//! A chart carries its subcharts inside. mu treats those that come from a repository as separate packages, so that there is one
//! version of each. Subcharts without a repository stay inside, and are named in `bundled`.

mod chart;
mod ignore;
mod lock;
mod pushed;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use mu_manifest::Requirement;
use mu_manifest::edit::{Dialect, Placed};
use mu_manifest::reference::{Protocol, Reference, VersionSpec};
use mu_manifest::source::{LineCounter, New, SourceError, TextProblem};
use mu_provider::{Progress, Release, TreeWriter, and_more};

pub(crate) use self::chart::dependency_reference;
pub use self::chart::{CHART, CHARTS_FOLDER, REQUIREMENTS, in_charts, is_copy};
pub use self::ignore::{IgnoreRules, RefusedLine};
pub use self::pushed::PROVENANCE;

pub use self::lock::{Need, Needs, dependencies, lock, locked, needs};
use crate::format::{Format, Package, Place, Reading, Seen, Texts, check_name_segment};
pub use crate::index::{Index, is_index};
use crate::index::{IndexEntries, add_archive};
use crate::node::{Fault, FormatError, Node};
use crate::range::{ranged, rewritten};
use crate::reader;
use crate::shape::{Shape, Unknown};
pub use crate::user_files::HelmRepositoryAliases;

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

/// Tells of links in the archive of a chart from `place`: Helm takes them for empty files as long as they are in an archive, and follows
/// them in a folder, such as an installed package.
pub fn tell_links(tree: &TreeWriter, place: &dyn fmt::Display, progress: &dyn Progress) {
    let mut links = tree.links();
    let Some(first) = links.next() else { return };
    let others = and_more(links.len());
    progress.warning(&format!(
        "`{first}`{others} of the chart `{place}`: it is a link, which Helm reads as an empty file in the archive, and follows in the package that mu installs"
    ));
}

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
    if around.is_own {
        chart::check_forms(&root).map_err(in_chart)?;
    }
    let (mut places, mut names, mut seen) = (Vec::new(), Vec::new(), Seen::default());
    let mut add = |text: &str, root: &Node<'_>| -> Result<(), Fault> {
        let mut lines = LineCounter::new(text);
        for (index, node) in root.list("dependencies")?.iter().enumerate() {
            if chart::add(&mut release, node, around, &mut seen)? {
                let line = lines.line_at(node.span.start);
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
        app: None,
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
        chart::add(&mut release, dependency, around, &mut seen)?;
    }
    if !chart::is_first(node) {
        release.dependencies.get_or_insert_default();
    }
    chart::details(&mut release, node)?;
    add_archive(&mut release, node)?;
    Ok(release)
}

/// A `Chart.yaml` that says nothing of a chart.
const NAMELESS: &str = "name: chart\nversion: 0.0.0\n";

/// What Helm takes for any version.
const ANY: &str = "*";

/// The dependencies of charts.
#[derive(Debug, Clone, Default)]
pub struct Charts {
    /// Short names of repositories.
    pub aliases: HelmRepositoryAliases,
}

impl Dialect for Charts {
    fn requirements(&self, path: &Path, text: &str) -> Result<Vec<Placed>, SourceError> {
        match path.file_name() {
            // Name and version are in another file.
            Some(name) if name == REQUIREMENTS => {
                let chart = (CHART.to_owned(), NAMELESS.to_owned());
                let texts = Texts([chart, (REQUIREMENTS.to_owned(), text.to_owned())].into());
                FORMAT.placed_in(path, text, &texts, Some(&self.aliases))
            }
            _ => FORMAT.placed(path, text, Some(&self.aliases)),
        }
    }

    fn check(&self, _: &Path, _: &str, _: Option<&Requirement>) -> Result<(), TextProblem> {
        Ok(())
    }

    fn entry(&self, new: &Requirement) -> Result<(New, Requirement), TextProblem> {
        let reference = &new.reference;
        let refused = || {
            TextProblem::new(format!("a chart cannot depend on `{reference}`"))
                .help("charts depend on charts of repositories and of OCI registries: `helm+https://HOST/REPOSITORY/CHART`, `oci://HOST/REPOSITORY/CHART`")
        };
        let (scheme, protocol) = match reference.protocol() {
            Some(Protocol::HelmHttps) => ("https", "helm+https"),
            Some(Protocol::HelmHttp) => ("http", "helm+http"),
            Some(Protocol::Oci) => ("oci", "oci"),
            _ => return Err(refused()),
        };
        let base = reference.base().ok_or_else(refused)?;
        let name = reference.name();
        let folder = name.namespace().map(|folder| format!("/{folder}")).unwrap_or_default();
        let host = base.as_str().trim_end_matches('/');
        let version = self.version(new)?;
        let text = format!("{protocol}://{host}{folder}/{}#{version}", name.leaf());
        let read = Reference::parse(&text).map_err(|_| refused())?;
        let mut pairs = vec![
            ("name", New::Text(name.leaf().to_owned())),
            ("version", New::Text(version)),
            ("repository", New::Text(format!("{scheme}://{host}{folder}"))),
        ];
        let alias = new.alias.clone();
        pairs.extend(alias.iter().map(|alias| ("alias", New::Text(alias.clone()))));
        let prerelease = names_prerelease(&read);
        let read = Requirement { prerelease, alias, ..Requirement::new(read) };
        Ok((New::Lines(pairs), read))
    }

    fn read_as(&self, wanted: &Requirement) -> Requirement {
        let spec = self.version(wanted).ok().and_then(|text| VersionSpec::parse(&text).ok());
        let reference = wanted.reference.with_version(spec);
        let prerelease = names_prerelease(&reference);
        Requirement { reference, prerelease, indirect: false, ..wanted.clone() }
    }

    fn version(&self, wanted: &Requirement) -> Result<String, TextProblem> {
        match wanted.reference.spec() {
            VersionSpec::Latest => ranged(ANY, wanted),
            VersionSpec::Range(range) => ranged(range.as_str(), wanted),
            VersionSpec::Pin(pin) => Ok(pin.as_str().to_owned()),
            other => Err(TextProblem::new(format!(
                "`{other}` is not a version or a range that Helm reads"
            ))),
        }
    }
}

fn names_prerelease(reference: &Reference) -> bool {
    let text = reference.version_text().unwrap_or_default();
    rewritten(text).is_ok_and(|range| range.prerelease)
}
