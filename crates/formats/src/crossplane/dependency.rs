//! One dependency of a package, as a reference.

use mu_manifest::reference::Reference;
use mu_provider::Dependency;

use crate::error::Fault;
use crate::node::{Kind, Node};
use crate::range::rewritten;
use crate::shape::Shape::{self, Map, Text, Unused};

/// The keys that can have a dependency's package; the key also says its kind.
pub(super) const KEYS: [&str; 4] = ["package", "provider", "configuration", "function"];

/// What mu reads of a dependency.
pub(super) const SHAPE: Shape = Map(&[
    ("package", Text),
    ("provider", Text),
    ("configuration", Text),
    ("function", Text),
    ("version", Text),
    // The kind of a `package`; mu reads it from the package itself.
    ("apiVersion", Unused),
    ("kind", Unused),
]);

/// The keys among them that say a kind.
pub(super) const KINDS: [&str; 3] = ["provider", "configuration", "function"];

/// The kind of package that a dependency is said to be, if its key says it.
pub(super) fn kind(node: &Node<'_>) -> Option<&'static str> {
    let kinds = KINDS.iter().zip(["Provider", "Configuration", "Function"]);
    let mut said = kinds.filter(|(key, _)| matches!(node.text(key), Ok(Some(_))));
    said.next().map(|(_, kind)| kind)
}

/// The dependencies of a document.
pub(super) fn list<'n, 't>(root: &'n Node<'t>) -> Result<&'n [Node<'t>], Fault> {
    match root.get("spec")? {
        Some(spec) => spec.list("dependsOn"),
        None => Ok(&[]),
    }
}

/// Reads a dependency.
pub(super) fn read(node: &Node<'_>) -> Result<Dependency, Fault> {
    let Kind::Map(..) = &node.kind else {
        return Err(node.fault(
            "a dependency is a map with `provider`, `configuration`, `function` or `package`",
        ));
    };
    let mut found = None;
    for key in KEYS {
        if let Some(one) = node.text(key)? {
            found = Some(one);
        }
    }
    let (package, at) = found.ok_or_else(|| {
        node.fault("a dependency names no `provider`, `configuration`, `function` or `package`")
    })?;
    let first = package.split('/').next().unwrap_or_default();
    let has_host = package.contains('/') && first.contains(['.', ':']);
    // Without a host, it is in the registry of whoever depends on it.
    let place = if has_host { format!("oci://{package}") } else { package.to_owned() };
    let (reference, prerelease) = match node.text("version")? {
        None => (place, false),
        Some((text, _)) if text.starts_with("sha256:") => (format!("{place}#{text}"), false),
        Some((text, at)) => {
            let range = rewritten(text).map_err(|reason| {
                at.fault(format!("the range `{text}` of the dependency `{package}` {reason}"))
            })?;
            (format!("{place}#{}", range.text), range.prerelease)
        }
    };
    if let Err(error) = Reference::parse(&reference) {
        return Err(at.fault(format!("the dependency `{package}` has no valid reference: {error}")));
    }
    Ok(Dependency::new(reference, prerelease))
}
