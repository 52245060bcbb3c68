//! What the ClusterServiceVersion of a bundle says: as a whole, or as the excerpt that catalogs have of it.

use mu_manifest::reference::Version;
use mu_provider::{Maintainer, Release};
use serde_json::Value;

use super::document::{list, text, texts};
use super::properties::capability;
use crate::format::push;

/// The fact of the runtime that `minKubeVersion` is about.
const KUBERNETES: &str = "kubernetes";

/// The kind of a ClusterServiceVersion.
pub(super) const KIND: &str = "ClusterServiceVersion";

/// The longest description that is kept, in characters.
const LONGEST_DESCRIPTION: usize = 500;

/// The parts of a ClusterServiceVersion that count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Csv<'v> {
    annotations: &'v Value,
    spec: &'v Value,
    crds: &'v Value,
    services: &'v Value,
}

impl<'v> Csv<'v> {
    /// The excerpt that a catalog has: a property of the type `olm.csv.metadata`.
    pub(super) fn excerpt(value: &'v Value) -> Self {
        let part = |key: &str| value.get(key).unwrap_or(&Value::Null);
        Self {
            annotations: part("annotations"),
            spec: value,
            crds: part("crdDescriptions"),
            services: part("apiServiceDefinitions"),
        }
    }

    /// The whole resource; `None` if it is another one.
    pub(super) fn whole(value: &'v Value) -> Option<Self> {
        if text(value, "kind")? != KIND {
            return None;
        }
        let part = |from: &'v Value, key: &str| from.get(key).unwrap_or(&Value::Null);
        let spec = part(value, "spec");
        Some(Self {
            annotations: part(part(value, "metadata"), "annotations"),
            spec,
            crds: part(spec, "customresourcedefinitions"),
            services: part(spec, "apiservicedefinitions"),
        })
    }

    /// Adds to `release` what it provides and requires.
    ///
    /// # Errors
    ///
    /// Why no version that says so can be used.
    pub(super) fn add(&self, release: &mut Release) -> Result<(), String> {
        if let Some(written) = text(self.spec, "minKubeVersion") {
            let lowest = written.strip_prefix('v').unwrap_or(&written);
            if Version::parse_lenient(lowest).is_err() {
                return Err(format!("`minKubeVersion`: `{written}` is not a version"));
            }
            release.constraints.insert(KUBERNETES.to_owned(), format!(">={lowest}"));
        }
        for crd in list(self.crds, "owned") {
            push(&mut release.provides, of_crd(crd)?);
        }
        for crd in list(self.crds, "required") {
            push(&mut release.requires, of_crd(crd)?);
        }
        for service in list(self.services, "owned") {
            push(&mut release.provides, capability(service, "apiservicedefinitions")?);
        }
        for service in list(self.services, "required") {
            push(&mut release.requires, capability(service, "apiservicedefinitions")?);
        }
        Ok(())
    }

    /// Adds to `release` what is only for people to read.
    pub(super) fn describe(&self, release: &mut Release) {
        let short =
            text(self.annotations, "description").or_else(|| text(self.spec, "displayName"));
        release.description =
            short.map(|text| text.chars().take(LONGEST_DESCRIPTION).collect::<String>());
        release.keywords = texts(self.spec, "keywords");
        let maintainer = |value: &Value| {
            let name = text(value, "name").or_else(|| text(value, "email"))?;
            Some(Maintainer::Person { name, email: text(value, "email") })
        };
        release.maintainers =
            list(self.spec, "maintainers").iter().filter_map(maintainer).collect();
        let links = list(self.spec, "links").iter();
        let provider = self.spec.get("provider").and_then(|provider| text(provider, "url"));
        release.website = links.filter_map(|link| text(link, "url")).next().or(provider);
        release.repository = text(self.annotations, "repository");
        // Many write a date alone, or in words of their own.
        let is_moment = |text: &String| text.len() >= 20 && text.as_bytes().get(10) == Some(&b'T');
        release.published = text(self.annotations, "createdAt").filter(is_moment);
    }
}

/// The kind that a description of a custom resource names: `{name: certificates.cert-manager.io, version, kind}`.
fn of_crd(crd: &Value) -> Result<String, String> {
    let name = text(crd, "name").unwrap_or_default();
    let Some((_, group)) = name.split_once('.') else {
        return Err(format!("`customresourcedefinitions`: `{name}` is not the name of one"));
    };
    let mut crd = crd.clone();
    if let Some(fields) = crd.as_object_mut() {
        fields.insert("group".to_owned(), group.into());
    }
    capability(&crd, "customresourcedefinitions")
}
