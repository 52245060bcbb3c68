//! What the ClusterServiceVersion of a bundle says: as a whole, or as the excerpt that catalogs have of it.

use mu_manifest::reference::Version;
use mu_provider::{Maintainer, Release};

use super::document::{list, text};
use super::properties::{capability, in_group};
use crate::node::{MOST_SAID, Node};

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
