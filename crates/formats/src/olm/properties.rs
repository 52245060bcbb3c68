//! The properties of a bundle: what it is, what it needs, and what it provides.
//!
//! A catalog has them in `properties`, a bundle's folder in `metadata/properties.yaml` and `metadata/dependencies.yaml`. Types that
//! are not known here are ignored.

use mu_manifest::Capability;
use mu_manifest::reference::{Reference, Version};
use mu_provider::{Dependency, Release};

use super::document::{is_there, list, text, word};
use super::range::range;
use crate::format::check_name;
use crate::node::Node;

/// The fact of the runtime that `olm.maxOpenShiftVersion` is about.
const OPENSHIFT: &str = "openshift";

/// How deep constraints may be nested.
const MAX_DEPTH: usize = 16;

/// What a bundle says that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) package: String,
    pub(super) version: String,
    pub(super) release: Option<String>,
}

/// What a property of the type `olm.package` says.
pub(super) fn identity(value: &Node<'_>) -> Option<Identity> {
    Some(Identity {
        package: text(value, "packageName")?,
        version: text(value, "version")?,
        release: text(value, "release"),
    })
}

/// Adds to `release` what a property says that selection needs.
///
/// # Errors
///
/// Why no version that has it can be used.
pub(super) fn add(release: &mut Release, kind: &str, value: &Node<'_>) -> Result<(), String> {
    match kind {
        "olm.gvk" => {
            release.provides.push(capability(value, kind)?);
        }
        "olm.gvk.required" => require(release, value, kind)?,
        "olm.package.required" => depend(release, value, kind)?,
        "olm.constraint" => constrain(release, value, 0)?,
        "olm.maxOpenShiftVersion" => {
            let written = word(value).unwrap_or_default();
            let limit = written.strip_prefix('v').unwrap_or(&written);
            if Version::parse_lenient(limit).is_err() {
                return Err(format!("`{kind}`: `{written}` is not a version"));
            }
            let limit = lengthened(limit);
            release.constraints.insert(OPENSHIFT.to_owned(), format!("<={limit}"));
        }
        _ => {}
    }
    Ok(())
}

/// A version of OpenShift as it was meant: without quotes, YAML makes the number 4.1 of `4.10`, and no OpenShift before 4.9 knows the
/// property.
fn lengthened(limit: &str) -> String {
    match limit.strip_prefix("4.") {
        Some(minor) if ["1", "2", "3", "4", "5", "6", "7", "8"].contains(&minor) => {
            format!("{limit}0")
        }
        _ => limit.to_owned(),
    }
}

/// A constraint: on a package, on a kind, or all of several. Others cannot be expressed as requirements.
fn constrain(release: &mut Release, value: &Node<'_>, depth: usize) -> Result<(), String> {
    let message = text(value, "failureMessage").map(|text| format!(" ({text})"));
    let message = message.unwrap_or_default();
    let unsaid = |what: &str| {
        Err(format!("it has a constraint with `{what}`, which mu cannot check{message}"))
    };
    if depth > MAX_DEPTH {
        return Err("its constraints are nested too deep".to_owned());
    }
    for what in ["any", "not", "none", "cel"] {
        if is_there(value.last(what)) {
            return unsaid(what);
        }
    }
    let kind = "olm.constraint";
    let part = |key: &str| Some(value.last(key)).filter(|value| is_there(value));
    match (part("all"), part("gvk"), part("package")) {
        (Some(all), None, None) => {
            list(all, "constraints").iter().try_for_each(|one| constrain(release, one, depth + 1))
        }
        (None, Some(gvk), None) => require(release, gvk, kind),
        (None, None, Some(package)) => depend(release, package, kind),
        _ => Err("it has a constraint that mu does not know".to_owned()),
    }
}

fn require(release: &mut Release, value: &Node<'_>, kind: &str) -> Result<(), String> {
    // The kinds without a group are those of Kubernetes itself, which every cluster has.
    if text(value, "group").is_some() {
        release.requires.push(capability(value, kind)?);
    }
    Ok(())
}

fn depend(release: &mut Release, value: &Node<'_>, kind: &str) -> Result<(), String> {
    let name =
        text(value, "packageName").ok_or_else(|| format!("`{kind}` has no `packageName`"))?;
    check_name(&name, "an operator")?;
    let written = text(value, "versionRange").or_else(|| text(value, "version"));
    let written = written.ok_or_else(|| format!("`{kind}` of `{name}` has no `versionRange`"))?;
    let range = range(&written)
        .map_err(|reason| format!("the range `{written}` of the dependency `{name}` {reason}"))?;
    let reference = format!("{name}#{range}");
    Reference::parse(&reference)
        .map_err(|error| format!("the dependency `{name}` has no valid reference: {error}"))?;
    let dependency = Dependency::new(reference, true);
    release.dependencies.get_or_insert_default().push(dependency);
    Ok(())
}

/// The kind that a value with `group`, `version` and `kind` names.
pub(super) fn capability(value: &Node<'_>, of: &str) -> Result<String, String> {
    let group = text(value, "group").ok_or_else(|| format!("`{of}` has no `group`"))?;
    in_group(&group, value, of)
}

/// The kind of a group that a value with `version` and `kind` names.
pub(super) fn in_group(group: &str, value: &Node<'_>, of: &str) -> Result<String, String> {
    let part = |key: &str| text(value, key).ok_or_else(|| format!("`{of}` has no `{key}`"));
    named(group, &part("version")?, &part("kind")?, of)
}

/// A version of a kind.
pub(super) fn named(group: &str, version: &str, kind: &str, of: &str) -> Result<String, String> {
    let capability = format!("{group}/{version}/{kind}");
    match Capability::parse(&capability) {
        Ok(_) => Ok(capability),
        Err(_) => Err(format!("`{of}`: `{capability}` is not GROUP/VERSION/KIND")),
    }
}
