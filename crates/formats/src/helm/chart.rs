//! What a chart says about itself, in `Chart.yaml` and in an index alike.

use mu_manifest::reference::Version;
use mu_provider::{Release, Yanked};

use super::dependency::DEPENDENCY;
use crate::error::Fault;
use crate::format::check_name_segment;
use crate::node::{Node, PEOPLE};
use crate::range::rewritten;
use crate::shape::Shape::{self, Folded, List, Open, Shown, Text, Unused};
use crate::shape::{SHOWN, TEXTS};

/// The manifest of a chart.
pub const CHART: &str = "Chart.yaml";

/// What charts of the first format, and some of the second, depend on.
pub const REQUIREMENTS: &str = "requirements.yaml";

/// Whether the file at `path` in a chart is the manifest or the archive of its copy of the chart `name`.
pub fn is_copy(path: &str, name: &str) -> bool {
    let copy = path.strip_prefix("charts/").and_then(|path| path.strip_prefix(name));
    copy.is_some_and(|copy| {
        copy.strip_prefix('/') == Some(CHART)
            || (copy.starts_with('-') && copy.ends_with(".tgz") && !copy.contains('/'))
    })
}

/// The fact of the runtime that `kubeVersion` is about.
const KUBERNETES: &str = "kubernetes";

/// The annotations that hold a licence, the first that is there.
const LICENSES: [&str; 3] = ["licenses", "license", "artifacthub.io/license"];

/// What mu reads of a chart, in `Chart.yaml` and in an index alike.
pub(super) static SHAPE: Shape = Folded(&[
    ("apiVersion", Text),
    ("kind", Text),
    ("name", Text),
    ("version", Text),
    ("appVersion", Text),
    ("kubeVersion", Text),
    ("description", SHOWN),
    ("home", SHOWN),
    ("deprecated", Text),
    ("keywords", Shown(&TEXTS)),
    ("maintainers", PEOPLE),
    (
        "annotations",
        Shown(&Open(&[("licenses", Text), ("license", Text), ("artifacthub.io/license", Text)])),
    ),
    ("dependencies", List(&DEPENDENCY)),
    ("condition", Unused),
    ("engine", Unused),
    ("icon", Unused),
    ("sources", Unused),
    ("tags", Unused),
    ("tillerVersion", Unused),
    ("type", Unused),
    // In an index.
    ("checksum", Unused),
    ("created", Text),
    ("digest", Text),
    ("operatorVersion", Text),
    ("removed", Text),
    ("url", Unused),
    ("urls", TEXTS),
]);

/// What mu reads of `requirements.yaml`.
pub(super) static REQUIRED: Shape = Folded(&[("dependencies", List(&DEPENDENCY))]);

/// Whether the chart has the first format, whose dependencies are usually in another file.
pub(super) fn is_first(root: &Node<'_>) -> bool {
    // Helm reads it in the same way.
    !matches!(root.text("apiVersion"), Ok(Some(("v2", _))))
}

/// Reads name and version. In an index, `name` is the name under which the index lists the chart.
pub(super) fn head(root: &Node<'_>, name: Option<&str>) -> Result<Release, Fault> {
    if !root.is_map() {
        return Err(root.fault("a chart is a map of keys"));
    }
    let missing = |key: &str| root.fault(format!("the chart has no `{key}`"));
    let (own, node) = root.text("name")?.ok_or_else(|| missing("name"))?;
    if name.is_some_and(|name| name != own) {
        return Err(node.fault(format!("its name is `{own}`")));
    }
    check_name_segment(own, "a chart").map_err(|reason| node.fault(reason))?;
    let (version, node) = root.text("version")?.ok_or_else(|| missing("version"))?;
    if Version::parse_lenient(version).is_err() {
        return Err(node.fault(format!("`{version}` is not a version")));
    }
    if let Some((other, node)) = root.text("apiVersion")?
        && !["v1", "v2"].contains(&other)
    {
        let reason = format!("charts of the format `{other}` are not supported, only v1 and v2");
        return Err(node.fault(reason));
    }
    Ok(Release {
        name: own.to_owned(),
        version: version.to_owned(),
        format: Some("helm".to_owned()),
        ..Release::default()
    })
}

/// Reads everything else that a chart says. Text that is only for people is left out if it makes no sense.
pub(super) fn details(release: &mut Release, root: &Node<'_>) -> Result<(), Fault> {
    release.app_version = root.text_for_people("appVersion");
    release.description = root.text_for_people("description");
    release.website = root.text_for_people("home");
    if let Some((text, node)) = root.text("kubeVersion")? {
        let range = rewritten(text)
            .map_err(|reason| node.fault(format!("`kubeVersion`: the range `{text}` {reason}")))?;
        release.constraints.insert(KUBERNETES.to_owned(), range.text);
    }
    if root.flag("deprecated")? {
        release.deprecated = Yanked::Flag(true);
    }
    release.keywords = root.words("keywords");
    release.maintainers = root.maintainers();
    if let Ok(Some(annotations)) = root.get("annotations") {
        release.license = LICENSES.iter().find_map(|key| annotations.text_for_people(key));
    }
    Ok(())
}
