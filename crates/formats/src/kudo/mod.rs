//! KUDO operators: `operator.yaml`, and the `index.yaml` of a repository of operators.
//!
//! An operator has the version of its application and its own; together they are one composite version. An index does not have
//! the tasks of an operator, so only its archive says what it depends on: a task that installs another
//! operator is a reference. mu reads operators and does not edit them.

use std::sync::Arc;

use mu_manifest::reference::{Reference, Version, VersionSpec};
use mu_manifest::source::LineCounter;
use mu_provider::{Dependency, DetailedDependency, Release};

use crate::format::{Format, Package, Place, Reading, Seen, Texts, Unedited, check_name_segment};
use crate::node::{Fault, FormatError, Node, PEOPLE};
use crate::reader;

/// The format of operators.
pub const FORMAT: Format = Format {
    name: NAME,
    kind: "KUDO operator",
    manifest: OPERATOR,
    others: &[],
    folder: None,
    is_named: true,
    is_one: Some(is_operator),
    lenient: false,
    dialect: |_| Arc::new(TASKS),
    place_of_word: None,
    packed_by: "`kubectl kudo package create` makes its archive",
    artifact: None,
    head,
    read,
};

pub use crate::format::KUDO as NAME;
use crate::index::{Index, IndexEntries, add_archive};
use crate::shape::Shape::{self, Folded};

use crate::shape::Shape::{List, Text, Unused};
use crate::shape::{Keys, SHOWN, TEXTS};

/// The tasks of operators: a dependency of an operator is a step of its plans, too.
const TASKS: Unedited = Unedited {
    place: "the tasks in `operator.yaml`",
    add: |name| {
        format!(
            "write a task `{{name: NAME, kind: KudoOperator, spec: {{package: {name}, appVersion: V, operatorVersion: V}}}}`, and use it in a plan"
        )
    },
};

/// The manifest of an operator.
pub const OPERATOR: &str = "operator.yaml";

/// The group of the kinds that KUDO's manifests are of.
const GROUP: &str = "kudo.dev/";

/// The key that only manifests of operators have.
const OPERATOR_VERSION: &str = "operatorVersion";

/// Whether `text` is the manifest of an operator: many tools have files called `operator.yaml`. What cannot be read is one only if
/// it speaks of KUDO.
pub fn is_operator(text: &str) -> bool {
    let is_named = text.contains(GROUP);
    // Reading a long file of another kind is not worth it.
    (is_named || text.contains(OPERATOR_VERSION))
        && reader::read(text, &SHAPE).map_or(is_named, |root| is_of_kudo(&root))
}

/// The version of its manifests that KUDO takes one for that does not say its own.
const UNSAID: &str = "kudo.dev/v1beta1";

fn is_of_kudo(root: &Node<'_>) -> bool {
    let says = |key: &str| matches!(root.text(key), Ok(Some(_)));
    match root.text("apiVersion") {
        Ok(Some((text, _))) => is_api_version(text),
        Ok(None) => says("name") && says(OPERATOR_VERSION),
        Err(_) => false,
    }
}

/// Whether an `apiVersion` is one of KUDO's, whose manifests [`read`] reads.
pub fn is_api_version(text: &str) -> bool {
    text.starts_with(GROUP)
}

/// Reads the operator whose files these are.
///
/// # Errors
///
/// When there is no `operator.yaml`, or when it says something that no version of mu can express.
pub fn read(files: &Texts, around: &Reading<'_>) -> Result<Package, FormatError> {
    files.read(OPERATOR, |text| {
        let (root, unknown) = reader::read_all(text, &SHAPE)?;
        let mut release = release(&root)?;
        release.unknown = unknown.check(around.is_own)?;
        let (mut places, mut seen) = (Vec::new(), Seen::default());
        let mut lines = LineCounter::new(text);
        for (index, task) in root.list("tasks")?.iter().enumerate() {
            if add(&mut release, task, around, &mut seen)? {
                let line = lines.line_at(task.span.start);
                places.push(Place { line, index });
            }
        }
        details(&mut release, &root)?;
        release.dependencies.get_or_insert_default();
        Ok(Package { release, places, ..Package::default() })
    })
}

/// Reads only the name and version of an operator.
///
/// # Errors
///
/// When it has none, or is not YAML.
pub fn head(files: &Texts) -> Result<Release, FormatError> {
    files.read(OPERATOR, |text| release(&reader::read(text, &SHAPE)?))
}

/// What the `operator.yaml` in the archive of a `listed` version adds to its line. If the version cannot be used, the line says
/// why.
pub fn completed(listed: &Release, text: &str) -> Release {
    let texts = Texts([(OPERATOR.to_owned(), text.to_owned())].into());
    let unusable = |reason: String| Release { unusable: Some(reason), ..listed.clone() };
    match read(&texts, &Reading::default()) {
        Err(error) => unusable(error.to_string()),
        Ok(Package { release: own, .. }) => {
            let identity =
                |release: &Release| format!("{} {}", release.name, release.full_version());
            if identity(&own) != identity(listed) {
                return unusable(format!("its archive has {}", identity(&own)));
            }
            Release {
                archive: listed.archive.clone(),
                urls: listed.urls.clone(),
                published: listed.published.clone(),
                yanked: listed.yanked.clone(),
                ..own
            }
        }
    }
}

fn release(root: &Node<'_>) -> Result<Release, Fault> {
    match is_of_kudo(root) {
        true => name_and_version(root, None).map(|release| Release {
            api_version: release.api_version.or_else(|| Some(UNSAID.to_owned())),
            ..release
        }),
        false => Err(root
            .fault(format!("this is not an operator of KUDO: its `apiVersion` is not `{GROUP}…`"))),
    }
}

/// What is read of `operator.yaml` and of the entries of an index, and of an index.
#[cfg(test)]
pub(crate) fn shapes() -> [&'static crate::shape::Shape; 2] {
    [&SHAPE, &OPERATOR_INDEX]
}

#[cfg(test)]
mod tests;

/// What entries of Helm, and of the first versions of KUDO, are told apart by, and why they are not read.
const OTHER: (&str, &str) = (
    "version",
    "this is not an index of KUDO operators: its entries have no `operatorVersion`; `helm+https://` leads to charts",
);

/// The keys of an index.
static OPERATOR_INDEX: Shape = Shape::Open(&[
    ("apiVersion", Shape::Unused),
    ("entries", Shape::Each(&Shape::List(&SHAPE))),
    ("generated", Shape::Unused),
]);

/// Reads `text`, the index that came from `file`.
///
/// # Errors
///
/// When it is not YAML or JSON, or no index of operators.
pub fn index(file: &str, text: &str) -> Result<Index, FormatError> {
    let entries = IndexEntries {
        format: NAME,
        called: "KUDO operators",
        index: &OPERATOR_INDEX,
        shape: &SHAPE,
        version: "operatorVersion",
        app: Some("appVersion"),
        other: OTHER,
        check_name: |name| check_name_segment(name, "an operator"),
        read: &indexed,
    };
    entries.index(file, text)
}

fn indexed(name: &str, node: &Node<'_>) -> Result<Release, Fault> {
    let mut release = name_and_version(node, Some(name))?;
    details(&mut release, node)?;
    add_archive(&mut release, node)?;
    Ok(release)
}

/// The keys that name the oldest versions an operator works with, and the facts of the runtime that they are about.
const OLDEST: [(&str, &str); 2] = [("kubernetesVersion", "kubernetes"), ("kudoVersion", "kudo")];

/// What mu reads of an operator, in `operator.yaml` and in an index alike.
static SHAPE: Shape = Folded(&[
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
fn name_and_version(root: &Node<'_>, name: Option<&str>) -> Result<Release, Fault> {
    if !root.is_map() {
        return Err(root.fault("an operator is a map of keys"));
    }
    let missing = |key: &str| root.fault(format!("the operator has no `{key}`"));
    let (own, node) = root.text("name")?.ok_or_else(|| missing("name"))?;
    if name.is_some_and(|name| name != own) {
        return Err(node.fault(format!("its name is `{own}`")));
    }
    check_name_segment(own, "an operator").map_err(|reason| node.fault(reason))?;
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
        api_version: root.text_for_people("apiVersion").filter(|text| is_api_version(text)),
        ..Release::default()
    })
}

/// Why an app version cannot be used, which may be any text that an archive can be called by.
fn unfit(app: &str) -> String {
    format!("the appVersion `{app}` cannot be a part of a version")
}

/// Reads everything else that an operator says. Text that is only for people is left out if it makes no sense.
fn details(release: &mut Release, root: &Node<'_>) -> Result<(), Fault> {
    for (key, fact) in OLDEST {
        let Some((text, node)) = root.text(key)? else { continue };
        let oldest = Version::parse_lenient(text)
            .map_err(|_| node.fault(format!("`{key}`: `{text}` is not a version")))?;
        release.constraints.insert(fact.to_owned(), format!(">={}", VersionSpec::exactly(&oldest)));
    }
    release.description = root.text_for_people("description");
    release.website = root.text_for_people("url");
    release.maintainers = root.maintainers();
    Ok(())
}

/// The kind of tasks that are dependencies.
const KIND: &str = "KudoOperator";

/// What mu reads of a task, whose keys can lie in `spec`, or beside its kind.
const TASK: Shape = Folded(&[
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
fn add(
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
        check_name_segment(package, "an operator").map_err(|reason| at.fault(reason))?;
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
