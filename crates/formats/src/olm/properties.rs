//! What a bundle says of itself: its properties (what it is, what it needs, and what it provides), and its ClusterServiceVersion,
//! as a whole, or as the excerpt that catalogs have of it.
//!
//! A catalog has them in `properties`, a bundle's folder in `metadata/properties.yaml` and `metadata/dependencies.yaml`. Authors
//! have types of their own, which say nothing here. Of OLM's types, one that is not known is told; if its name says that it is a
//! requirement, no version that has it is used.

use std::borrow::Cow;

use mu_manifest::Capability;
use mu_manifest::reference::{Reference, Version};
use mu_provider::{Dependency, Maintainer, Release};

use super::document::{is_there, list, text, word};
use super::range::range;
use crate::format::check_name_segment;
use crate::node::{Kind, MOST_SAID, Node};
use crate::shape;

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

/// How OLM's own types begin.
const OWN: &str = "olm.";

/// How the types of requirements end.
const REQUIREMENT: &str = ".required";

/// OLM's types that say nothing about which version fits: what a bundle is, resources, the channels of catalogs before they had
/// documents for them, and labels, which OLM looks at only where one is required.
const WITHOUT_MEANING: [&str; 5] =
    ["olm.package", "olm.bundle.object", "olm.csv.metadata", "olm.channel", "olm.label"];

/// The longest release of a bundle, in characters, as OLM has it.
const LONGEST_RELEASE: usize = 20;

/// Adds the release of a bundle's packaging to its version: OLM puts bundles of one version into the order of their releases, as
/// prereleases are ordered, behind one without. Ranges do not look at it.
///
/// One that is a version makes a composite one; any other one is build metadata, which is ordered alike.
///
/// # Errors
///
/// When OLM would not take it.
pub(super) fn add_release(release: &mut Release, revision: Option<String>) -> Result<(), String> {
    let Some(revision) = revision.filter(|revision| !revision.is_empty()) else { return Ok(()) };
    let version = &release.version;
    if Version::composite(version, &revision).is_ok() {
        release.versioning = Some("composite".to_owned());
        release.app_version = Some(std::mem::replace(&mut release.version, revision));
        return Ok(());
    }
    let wrong = |why: &str| Err(format!("`{version}` with the release `{revision}` {why}"));
    if version.contains('+') {
        return wrong("has two releases: one is build metadata");
    }
    // What can be a prerelease can be a release.
    if revision.len() > LONGEST_RELEASE || Version::parse(&format!("0.0.0-{revision}")).is_err() {
        return wrong("is not a version");
    }
    release.version = format!("{version}+{revision}");
    Ok(())
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
        // OLM installs no such bundle anew.
        "olm.deprecated" => {
            return Err("its catalog has withdrawn it (`olm.deprecated`)".to_owned());
        }
        _ if !kind.starts_with(OWN) || WITHOUT_MEANING.contains(&kind) => {}
        _ if kind.ends_with(REQUIREMENT) => {
            return Err(format!(
                "it has a requirement of the kind `{kind}`, which mu cannot check"
            ));
        }
        _ => {
            release.unknown.push(kind.to_owned());
            shape::told_once(&mut release.unknown);
        }
    }
    Ok(())
}

/// What a type means in `metadata/dependencies.yaml`: there, OLM's types are those of requirements, except for labels, which catalogs
/// have as what the bundle itself is.
pub(super) fn in_dependencies(kind: &str) -> Cow<'_, str> {
    let stays = ["olm.constraint", "olm.label"].contains(&kind) || kind.ends_with(REQUIREMENT);
    match kind.starts_with(OWN) && !stays {
        true => format!("{kind}{REQUIREMENT}").into(),
        false => kind.into(),
    }
}

/// A version of OpenShift as it was meant: without quotes, YAML makes the number 4.1 of `4.10`, and no OpenShift before 4.9 knows the
/// property. One without a minor version has the minor version 0 for OLM, and 4.23 is another name of 5.0.
fn lengthened(limit: &str) -> String {
    match limit.split_once('.') {
        Some(("4", "23")) => "5.0".to_owned(),
        Some(("4", minor)) if ["1", "2", "3", "4", "5", "6", "7", "8"].contains(&minor) => {
            format!("{limit}0")
        }
        Some(_) => limit.to_owned(),
        None => format!("{limit}.0"),
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
        (Some(all), None, None) => match &all.last("constraints").kind {
            Kind::List(inside) => {
                inside.iter().try_for_each(|one| constrain(release, one, depth + 1))
            }
            Kind::Null if all.is_map() => Ok(()),
            _ => Err("it has constraints that are not a list".to_owned()),
        },
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
    check_name_segment(&name, "an operator")?;
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
fn in_group(group: &str, value: &Node<'_>, of: &str) -> Result<String, String> {
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

/// The fact of the runtime that `minKubeVersion` is about.
const KUBERNETES: &str = "kubernetes";

/// The kind of a ClusterServiceVersion.
pub(super) const KIND: &str = "ClusterServiceVersion";

/// The longest description that is kept, in characters.
const LONGEST_DESCRIPTION: usize = 500;

/// The parts of a ClusterServiceVersion that count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Csv<'v, 't> {
    annotations: &'v Node<'t>,
    spec: &'v Node<'t>,
    crds: &'v Node<'t>,
    services: &'v Node<'t>,
}

impl<'v, 't> Csv<'v, 't> {
    /// The excerpt that a catalog has: a property of the type `olm.csv.metadata`.
    pub(super) fn from_metadata_property(value: &'v Node<'t>) -> Self {
        Self {
            annotations: value.last("annotations"),
            spec: value,
            crds: value.last("crdDescriptions"),
            services: value.last("apiServiceDefinitions"),
        }
    }

    /// The whole resource; `None` if it is another one.
    pub(super) fn from_whole_resource(value: &'v Node<'t>) -> Option<Self> {
        if text(value, "kind")? != KIND {
            return None;
        }
        let spec = value.last("spec");
        Some(Self {
            annotations: value.last("metadata").last("annotations"),
            spec,
            crds: spec.last("customresourcedefinitions"),
            services: spec.last("apiservicedefinitions"),
        })
    }

    /// Adds to `release` all that it says.
    ///
    /// # Errors
    ///
    /// As [`Csv::add`].
    pub(super) fn fill(&self, release: &mut Release) -> Result<(), String> {
        self.add(release)?;
        self.describe(release);
        Ok(())
    }

    /// Adds to `release` what it provides and requires.
    ///
    /// # Errors
    ///
    /// Why no version that says so can be used.
    fn add(&self, release: &mut Release) -> Result<(), String> {
        if let Some(written) = text(self.spec, "minKubeVersion") {
            let lowest = written.strip_prefix('v').unwrap_or(&written);
            if Version::parse_lenient(lowest).is_err() {
                return Err(format!("`minKubeVersion`: `{written}` is not a version"));
            }
            release.constraints.insert(KUBERNETES.to_owned(), format!(">={lowest}"));
        }
        for crd in list(self.crds, "owned") {
            release.provides.push(of_crd(crd)?);
        }
        for crd in list(self.crds, "required") {
            release.requires.push(of_crd(crd)?);
        }
        for service in list(self.services, "owned") {
            release.provides.push(capability(service, "apiservicedefinitions")?);
        }
        for service in list(self.services, "required") {
            release.requires.push(capability(service, "apiservicedefinitions")?);
        }
        Ok(())
    }

    /// Adds to `release` what is only for people to read.
    fn describe(&self, release: &mut Release) {
        let short =
            text(self.annotations, "description").or_else(|| text(self.spec, "displayName"));
        release.description =
            short.map(|text| text.chars().take(LONGEST_DESCRIPTION).collect::<String>());
        release.keywords = self.spec.words("keywords");
        let maintainer = |value: &Node<'_>| {
            let name = text(value, "name").or_else(|| text(value, "email"))?;
            Some(Maintainer::Person { name, email: text(value, "email") })
        };
        release.maintainers =
            list(self.spec, "maintainers").iter().filter_map(maintainer).take(MOST_SAID).collect();
        let links = list(self.spec, "links").iter();
        let provider = text(self.spec.last("provider"), "url");
        release.website = links.filter_map(|link| text(link, "url")).next().or(provider);
        release.repository = text(self.annotations, "repository");
        // Many write a date alone, or in words of their own.
        let is_moment = |text: &String| text.len() >= 20 && text.as_bytes().get(10) == Some(&b'T');
        release.published = text(self.annotations, "createdAt").filter(is_moment);
    }
}

/// The kind that a description of a custom resource names: `{name: certificates.cert-manager.io, version, kind}`.
fn of_crd(crd: &Node<'_>) -> Result<String, String> {
    let name = text(crd, "name").unwrap_or_default();
    let Some((_, group)) = name.split_once('.') else {
        return Err(format!("`customresourcedefinitions`: `{name}` is not the name of one"));
    };
    in_group(group, crd, "customresourcedefinitions")
}
