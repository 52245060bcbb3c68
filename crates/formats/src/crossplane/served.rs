//! The kinds that a package brings with it: those of its custom resources, and of the composite ones that it defines.

use mu_manifest::Capability;

use crate::node::Node;
use crate::shape::Shape::{self, List, Open, Text};

/// What mu reads of the definition of a kind.
pub(super) static SHAPE: Shape = Open(&[
    ("apiVersion", Text),
    ("kind", Text),
    (
        "spec",
        Open(&[
            ("group", Text),
            ("names", Open(&[("kind", Text)])),
            ("claimNames", Open(&[("kind", Text)])),
            ("versions", List(&Open(&[("name", Text), ("served", Text)]))),
        ]),
    ),
]);

/// Adds the kinds that a document defines, in each version that is served.
pub(super) fn add(provides: &mut Vec<String>, document: &Node<'_>) {
    for found in kinds(document).into_iter().flatten() {
        // Written as capabilities are; nobody can require one that is not valid.
        if let Ok(capability) = Capability::parse(&found) {
            provides.push(capability.to_string());
        }
    }
}

fn kinds(document: &Node<'_>) -> Option<Vec<String>> {
    let (version, _) = document.text("apiVersion").ok()??;
    let (kind, _) = document.text("kind").ok()??;
    let is_definition = match kind {
        "CustomResourceDefinition" => version.starts_with("apiextensions.k8s.io/"),
        "CompositeResourceDefinition" => version.starts_with("apiextensions.crossplane.io/"),
        _ => false,
    };
    let spec = document.get("spec").ok()?.filter(|_| is_definition)?;
    let (group, _) = spec.text("group").ok()??;
    let name = |key: &str| Some(spec.get(key).ok()??.text("kind").ok()??.0.to_owned());
    let names: Vec<String> = ["names", "claimNames"].into_iter().filter_map(name).collect();
    let served = |node: &&Node<'_>| node.flag("served").unwrap_or(false);
    let versions = spec.list("versions").ok()?.iter().filter(served);
    let versions = versions.filter_map(|node| Some(node.text("name").ok()??.0));
    let all = versions
        .flat_map(|version| names.iter().map(move |kind| format!("{group}/{version}/{kind}")));
    Some(all.collect())
}
