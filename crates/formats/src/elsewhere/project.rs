//! Projects of Crossplane: `crossplane-project.yaml` of its own program, and `upbound.yaml` of Upbound's. Both programs build a package
//! from what lies beside, with a `crossplane.yaml` that nobody writes.

use mu_provider::Dependency;

use super::{List, ListedDependency, Meaning, line_of, read};
use crate::crossplane;
use crate::node::{FormatError, Node};
use crate::shape::Shape::{self, List as Items, Map, Open, Text, Unused};

/// The names of the files.
pub const PROJECTS: [&str; 2] = ["crossplane-project.yaml", "upbound.yaml"];

/// Something that a project needs: a package, or definitions of resources.
const NEED: Shape = Open(&[
    ("xpkg", crossplane::DEPENDENCY),
    ("git", Map(&[("repository", Text), ("ref", Text), ("path", Text)])),
    ("http", Map(&[("url", Text)])),
    ("k8s", Open(&[("version", Text)])),
    ("type", Unused),
]);

/// What is read of a project.
static KEYS: Shape = Open(&[(
    "spec",
    Open(&[
        ("dependsOn", Items(&crossplane::DEPENDENCY)),
        ("dependencies", Items(&NEED)),
        ("apiDependencies", Items(&NEED)),
    ]),
)]);

/// What the project in `text`, that of `file`, needs.
///
/// # Errors
///
/// When it is no YAML.
pub fn list(file: &str, text: &str) -> Result<List, FormatError> {
    let (dependencies, unknown) = read(file, text, &KEYS, |root| {
        let Some(spec) = root.get("spec")? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for node in spec.list("dependsOn")? {
            found.push(listed(text, node, package(node)));
        }
        for key in ["dependencies", "apiDependencies"] {
            for node in spec.list(key)? {
                found.push(listed(text, node, need(node)));
            }
        }
        Ok(found)
    })?;
    Ok(List { dependencies, unknown })
}

/// What something is called, and what it is for mu.
type Named = (String, Result<Meaning, String>);

fn listed(text: &str, node: &Node<'_>, (called, meaning): Named) -> ListedDependency {
    ListedDependency { called, line: line_of(text, node), meaning }
}

fn package(node: &Node<'_>) -> Named {
    let named = crossplane::KEYS.iter().find_map(|key| node.text_for_people(key));
    let called = named.unwrap_or_else(|| "a package".to_owned());
    let meaning = crossplane::dependency(node).map_err(|fault| fault.reason);
    let meaning = meaning.and_then(|dependency| {
        let meaning = Meaning::parse(dependency.reference())?;
        if meaning.reference.base().is_none() {
            let what = crossplane::hint_of_registry(&called);
            return Err(format!("it does not say in which registry it is: {what}"));
        }
        let prerelease = matches!(dependency, Dependency::Detailed(one) if one.prerelease);
        Ok(Meaning { prerelease, ..meaning })
    });
    (called, meaning)
}

fn need(node: &Node<'_>) -> Named {
    let inner = |key: &str| node.get(key).ok().flatten();
    if let Some(found) = inner("xpkg") {
        return package(found);
    }
    let word = |node: &Node<'_>, key: &str| node.text_for_people(key).unwrap_or_default();
    if let Some(found) = inner("git") {
        let (url, path) = (word(found, "repository"), word(found, "path"));
        let revision = found.text_for_people("ref");
        let is_file = [".yaml", ".yml", ".json"].iter().any(|ending| path.ends_with(ending));
        let meaning = match is_file {
            true => {
                Err(format!("`{path}` is one file of its repository, and a package is a folder"))
            }
            // Without a revision, it is the tip of the default branch.
            false => match &revision {
                Some(name) => Meaning::of_git_name(&url, &path, name),
                None => Meaning::of_git(&url, &path, Some("tip")),
            },
        };
        return (url, meaning);
    }
    if let Some(found) = inner("http") {
        let reason = "it is one file at a URL, and no archive of a package".to_owned();
        return (word(found, "url"), Err(reason));
    }
    let reason = "these are the types of Kubernetes itself, which are no package".to_owned();
    let version = inner("k8s").map(|found| word(found, "version")).unwrap_or_default();
    match inner("k8s") {
        Some(_) => (format!("k8s {version}").trim_end().to_owned(), Err(reason)),
        None => ("a dependency".to_owned(), Err("mu does not know its kind".to_owned())),
    }
}
