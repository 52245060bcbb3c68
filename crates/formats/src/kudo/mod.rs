//! KUDO operators: `operator.yaml`, and the `index.yaml` of a repository of operators.
//!
//! An operator has the version of its application and its own; together they are one composite version. An index does not have
//! the tasks of an operator, so only its archive says what it depends on. mu reads operators and does not edit them.

mod dependency;
mod index;
mod operator;

use std::sync::Arc;

use mu_provider::Release;

pub use self::index::index;
use crate::error::{Fault, FormatError};
use crate::files::Texts;
use crate::format::{Format, Package, Place, Reading, Seen};
use crate::node::Node;
use crate::reader;
use crate::unedited::Unedited;

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

/// Whether `text` is the manifest of an operator: many tools have files called `operator.yaml`. What cannot be read is one only if
/// it speaks of KUDO.
pub fn is_operator(text: &str) -> bool {
    // Reading a long file of another kind is not worth it.
    text.contains(GROUP)
        && reader::read(text, &operator::SHAPE).map_or(true, |root| is_of_kudo(&root))
}

fn is_of_kudo(root: &Node<'_>) -> bool {
    root.text("apiVersion").is_ok_and(|found| found.is_some_and(|(text, _)| is_api_version(text)))
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
        let (root, unknown) = reader::read_all(text, &operator::SHAPE)?;
        let mut release = release(&root)?;
        release.unknown = unknown.check(around.is_own)?;
        let (mut places, mut seen) = (Vec::new(), Seen::default());
        for (index, task) in root.list("tasks")?.iter().enumerate() {
            if dependency::add(&mut release, task, around, &mut seen)? {
                let line = mu_manifest::source::line_of(text, task.span.start);
                places.push(Place { line, index });
            }
        }
        operator::details(&mut release, &root)?;
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
    files.read(OPERATOR, |text| release(&reader::read(text, &operator::SHAPE)?))
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
        true => operator::head(root, None),
        false => Err(root
            .fault(format!("this is not an operator of KUDO: its `apiVersion` is not `{GROUP}…`"))),
    }
}

/// What is read of `operator.yaml` and of the entries of an index, and of an index.
#[cfg(test)]
pub(crate) fn shapes() -> [&'static crate::shape::Shape; 2] {
    [&operator::SHAPE, &index::OPERATOR_INDEX]
}

#[cfg(test)]
mod tests;
