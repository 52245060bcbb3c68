//! From a manifest to the line that a hub's index has for it.

use mu_provider::{Maintainer, Release, Upgrade};
use serde_json::{Map, Value};

use super::{Constraint, Manifest, Person, Requirement, Versioning, Versions};

impl Manifest {
    /// The package's index line, as far as the manifest alone knows it. The publisher adds digests, size and
    /// time.
    pub fn to_release(&self) -> Release {
        let versioning =
            (self.versioning != Versioning::Semver).then(|| self.versioning.as_str().to_owned());
        let texts = |items: &[super::Capability]| -> Vec<String> {
            items.iter().map(ToString::to_string).collect()
        };
        Release {
            name: self.name.name().to_string(),
            version: self.written_version.clone().unwrap_or_default(),
            app_version: self.app_version.clone(),
            versioning,
            versions: (self.versions != Versions::Strict)
                .then(|| self.versions.as_str().to_owned()),
            api_version: self.api_version.clone(),
            mu_version: self.mu_version.as_ref().map(ToString::to_string),
            dependencies: Some(self.dependencies.iter().map(Requirement::to_wire).collect()),
            provides: texts(&self.provides),
            requires: texts(&self.requires),
            replaces: self.replaces.iter().map(ToString::to_string).collect(),
            constraints: self
                .constraints
                .iter()
                .map(|(fact, constraint)| (fact.clone(), Constraint::to_string(constraint)))
                .collect(),
            conflicts: self.conflicts.iter().map(ToString::to_string).collect(),
            channels: self.channels.clone(),
            default_channel: self.default_channel.clone(),
            upgrade: self.upgrade.iter().map(to_wire).collect(),
            description: self.description.clone(),
            keywords: self.keywords.clone(),
            license: self.license.clone(),
            maintainers: self.maintainers.iter().map(maintainer).collect(),
            website: self.website.clone(),
            repository: self.repository.clone(),
            ..Release::default()
        }
    }

    /// The index line as it is written; keys that are empty are left out.
    pub fn index_line(&self) -> Map<String, Value> {
        let value = serde_json::to_value(self.to_release()).unwrap_or_default();
        let Value::Object(mut line) = value else { return Map::new() };
        line.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
        line
    }
}

fn to_wire(upgrade: &super::Upgrade) -> Upgrade {
    Upgrade {
        channel: upgrade.channel.clone(),
        replaces: upgrade.replaces.as_ref().map(ToString::to_string),
        skips: upgrade.skips.iter().map(ToString::to_string).collect(),
        skip_range: upgrade.skip_range.as_ref().map(ToString::to_string),
    }
}

fn maintainer(person: &Person) -> Maintainer {
    Maintainer::Person { name: person.name.clone(), email: person.email.clone() }
}
