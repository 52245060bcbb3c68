//! The entries of the `index.yaml` of a repository of operators.

use mu_provider::Release;

use super::{NAME, operator};
use crate::error::{Fault, FormatError};
use crate::format::check_name;
use crate::index::{Entries, Index, add_archive};
use crate::node::Node;
use crate::shape::Shape;

/// What entries of Helm, and of the first versions of KUDO, are told apart by, and why they are not read.
const OTHER: (&str, &str) = (
    "version",
    "this is not an index of KUDO operators: its entries have no `operatorVersion`; `helm+https://` leads to charts",
);

/// The keys of an index.
pub(super) static OPERATOR_INDEX: Shape = Shape::Open(&[
    ("apiVersion", Shape::Unused),
    ("entries", Shape::Each(&Shape::List(&operator::SHAPE))),
    ("generated", Shape::Unused),
]);

/// Reads `text`, the index that came from `file`.
///
/// # Errors
///
/// When it is not YAML or JSON, or no index of operators.
pub fn index(file: &str, text: &str) -> Result<Index, FormatError> {
    let entries = Entries {
        format: NAME,
        called: "KUDO operators",
        index: &OPERATOR_INDEX,
        shape: &operator::SHAPE,
        version: "operatorVersion",
        other: OTHER,
        check_name: |name| check_name(name, "an operator"),
        read: &release,
    };
    entries.index(file, text)
}

fn release(name: &str, node: &Node<'_>) -> Result<Release, Fault> {
    let mut release = operator::head(node, Some(name))?;
    operator::details(&mut release, node)?;
    add_archive(&mut release, node)?;
    Ok(release)
}
