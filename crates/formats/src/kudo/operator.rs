//! What an operator says about itself, in `operator.yaml` and in an index alike.

use mu_manifest::reference::{Version, VersionSpec};
use mu_provider::Release;

use super::dependency::TASK;
use super::{NAME, is_api_version};
use crate::error::Fault;
use crate::format::check_name;
use crate::node::{Node, PEOPLE};
use crate::shape::Shape::{self, Folded, List, Text, Unused};
use crate::shape::{SHOWN, TEXTS};

/// The keys that name the oldest versions an operator works with, and the facts of the runtime that they are about.
const OLDEST: [(&str, &str); 2] = [("kubernetesVersion", "kubernetes"), ("kudoVersion", "kudo")];

/// What mu reads of an operator, in `operator.yaml` and in an index alike.
pub(super) static SHAPE: Shape = Folded(&[
    ("apiVersion", Text),
    ("name", Text),
    ("operatorVersion", Text),
    ("appVersion", Text),
    ("kubernetesVersion", Text),
    ("kudoVersion", Text),
    ("description", SHOWN),
    ("url", SHOWN),
    ("maintainers", PEOPLE),
    ("tasks", List(&TASK)),
    ("namespaceManifest", Unused),
    ("plans", Unused),
    // In an index.
    ("created", Text),
    ("digest", Text),
    ("removed", Text),
    ("urls", TEXTS),
    ("version", Text),
]);

/// Reads name and version. In an index, `name` is the name under which the index lists the operator.
pub(super) fn head(root: &Node<'_>, name: Option<&str>) -> Result<Release, Fault> {
    if !root.is_map() {
        return Err(root.fault("an operator is a map of keys"));
    }
    let missing = |key: &str| root.fault(format!("the operator has no `{key}`"));
    let (own, node) = root.text("name")?.ok_or_else(|| missing("name"))?;
    if name.is_some_and(|name| name != own) {
        return Err(node.fault(format!("its name is `{own}`")));
    }
    check_name(own, "an operator").map_err(|reason| node.fault(reason))?;
    let (version, node) =
        root.text("operatorVersion")?.ok_or_else(|| missing("operatorVersion"))?;
    let app = root.text("appVersion")?;
    let read = if app.is_some() { Version::parse } else { Version::parse_lenient };
    read(version).map_err(|_| node.fault(format!("`{version}` is not a version")))?;
    if let Some((app, at)) = app {
        Version::composite(app, version).map_err(|_| at.fault(unfit(app)))?;
    }
    Ok(Release {
        name: own.to_owned(),
        version: version.to_owned(),
        app_version: app.map(|(app, _)| app.to_owned()),
        versioning: app.map(|_| "composite".to_owned()),
        format: Some(NAME.to_owned()),
        api_version: root.said("apiVersion").filter(|text| is_api_version(text)),
        ..Release::default()
    })
}

/// Why an app version cannot be used, which may be any text that an archive can be called by.
pub(super) fn unfit(app: &str) -> String {
    format!("the appVersion `{app}` cannot be a part of a version")
}

/// Reads everything else that an operator says. Text that is only for people is left out if it makes no sense.
pub(super) fn details(release: &mut Release, root: &Node<'_>) -> Result<(), Fault> {
    for (key, fact) in OLDEST {
        let Some((text, node)) = root.text(key)? else { continue };
        let oldest = Version::parse_lenient(text)
            .map_err(|_| node.fault(format!("`{key}`: `{text}` is not a version")))?;
        release.constraints.insert(fact.to_owned(), format!(">={}", VersionSpec::exactly(&oldest)));
    }
    release.description = root.said("description");
    release.website = root.said("url");
    release.maintainers = root.maintainers();
    Ok(())
}
