//! A task that installs another operator, as a reference.

use mu_manifest::reference::{Reference, Version, VersionSpec};
use mu_provider::{Dependency, DetailedDependency, Release};

use super::operator::unfit;
use crate::error::Fault;
use crate::format::{Reading, Seen, check_name};
use crate::node::Node;
use crate::shape::Keys;
use crate::shape::Shape::{self, Folded, Text, Unused};

/// The kind of tasks that are dependencies.
const KIND: &str = "KudoOperator";

/// What mu reads of a task, whose keys can lie in `spec`, or beside its kind.
pub(super) const TASK: Shape = Folded(&[
    ("name", Unused),
    ("kind", Text),
    ("spec", Folded(KEYS)),
    ("package", Text),
    ("appVersion", Text),
    ("operatorVersion", Text),
    ("instanceName", Unused),
    ("parameterFile", Unused),
]);

/// The keys of the `spec` of a task, of whatever kind it is.
const KEYS: Keys = &[
    ("package", Text),
    ("appVersion", Text),
    ("operatorVersion", Text),
    ("instanceName", Unused),
    ("parameterFile", Unused),
    ("resources", Unused),
    ("parameter", Unused),
    ("wantErr", Unused),
    ("fatal", Unused),
    ("done", Unused),
    ("pod", Unused),
    ("pipe", Unused),
];

/// Adds the dependency of a task, and returns whether the list of dependencies is longer now.
///
/// Whether a task is used depends on the parameters that an operator is installed with, so every dependency is required.
pub(super) fn add(
    release: &mut Release,
    task: &Node<'_>,
    around: &Reading<'_>,
    seen: &mut Seen,
) -> Result<bool, Fault> {
    if task.text("kind")?.is_none_or(|(kind, _)| kind != KIND) {
        return Ok(false);
    }
    let spec = task.get("spec")?.unwrap_or(task);
    let (package, at) = spec
        .text("package")?
        .ok_or_else(|| task.fault(format!("a task of the kind `{KIND}` has no `package`")))?;
    let dependency = if package.contains("://") {
        // KUDO looks at nothing else then.
        Dependency::Reference(package.to_owned())
    } else if package.contains('/') || package.ends_with(".tgz") {
        let is_beside = around.is_own && package.starts_with("../");
        if !is_beside || package.ends_with(".tgz") {
            // In an archive, KUDO looks nowhere else.
            let name = package.trim_end_matches('/').rsplit('/').next().unwrap_or(package);
            seen.bundle(release, name);
            return Ok(false);
        }
        Dependency::Reference(package.to_owned())
    } else {
        check_name(package, "an operator").map_err(|reason| at.fault(reason))?;
        in_repository(package, spec)?
    };
    if let Err(error) = Reference::parse(dependency.reference()) {
        return Err(at.fault(format!("the dependency `{package}` has no valid reference: {error}")));
    }
    Ok(seen.depend(release, dependency))
}

/// A dependency on an operator in the same repository.
fn in_repository(package: &str, spec: &Node<'_>) -> Result<Dependency, Fault> {
    let (app, own) = (spec.text("appVersion")?, spec.text("operatorVersion")?);
    let parsed = |(text, at): (&str, &Node<'_>)| {
        let version = Version::parse_lenient(text);
        version
            .map_err(|_| at.fault(format!("`{text}` is not a version")))
            .map(|it| VersionSpec::exactly(&it))
    };
    // An app version can be any text.
    let named = |(text, at): (&str, &Node<'_>)| match Version::parse_lenient(text) {
        Ok(version) => Ok(VersionSpec::exactly(&version).to_string()),
        Err(_) => match Version::composite(text, "0.0.0") {
            Ok(_) => Ok(text.to_owned()),
            Err(_) => Err(at.fault(unfit(text))),
        },
    };
    match (app, own) {
        (None, None) => Ok(Dependency::Reference(package.to_owned())),
        (Some(app), Some(own)) => {
            let own = parsed(own)?;
            let app = named(app)?;
            Ok(Dependency::Reference(format!("{package}#{app}-{own}")))
        }
        (Some(app), None) => {
            named(app)?;
            Ok(Dependency::Detailed(Box::new(DetailedDependency {
                reference: package.to_owned(),
                app_version: Some(app.0.to_owned()),
                ..DetailedDependency::default()
            })))
        }
        (None, Some((own, at))) => Err(at.fault(format!(
            "the dependency `{package}` has the operatorVersion `{own}` without an appVersion, which does not say which version it is"
        ))),
    }
}
