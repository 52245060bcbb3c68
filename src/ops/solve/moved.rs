//! What is told of a chosen package that is known by another name elsewhere.

use std::collections::BTreeSet;

use mu_formats::helm;
use mu_provider::Release;

use crate::lock::LockedPackage;
use crate::select::{Asker, Chosen};

/// A warning that a chart has another name than its repository, by which Helm does not find it.
pub(crate) fn called_otherwise(package: &LockedPackage, release: &Release) -> Option<String> {
    let is_chart = release.format.as_deref() == Some(helm::FORMAT.name);
    let called = release.called.as_ref().filter(|_| is_chart)?;
    let name = package.id.name();
    Some(format!(
        "`{}` {} is a chart that calls itself `{called}`: where a `Chart.yaml` requires `{}`, Helm does not find it",
        package.id,
        package.version,
        name.leaf(),
    ))
}

/// Reports that a package has moved, and who should act.
pub(crate) fn moved(chosen: &Chosen, to: &str) -> String {
    let id = &chosen.id;
    let packages = chosen.requested.iter().map(|demand| match &demand.by {
        Asker::Package(by) => Some(format!("`{by}`")),
        Asker::Root(_) => None,
    });
    match packages.collect::<Option<BTreeSet<String>>>() {
        Some(by) if !by.is_empty() => {
            let by = by.into_iter().collect::<Vec<_>>().join(" and ");
            format!("`{id}`, needed by {by}, has moved to `{to}`, where its new versions will be")
        }
        _ => format!(
            "`{id}` has moved to `{to}`, where its new versions will be: depend on that instead"
        ),
    }
}
