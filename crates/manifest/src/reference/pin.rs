//! Pins: exactly one version.

use std::fmt;
use std::sync::Arc;

use super::Version;
use super::error::Fault;
use super::version::Composite;
use super::version_text;

/// Exactly one version, written `1.0.6`, `v1.0.6` or `=1.0.6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    text: Arc<str>,
    version: semver::Version,
    /// What `2.3.0-1.0.0` means if the package is composite, which only the package knows.
    composite: Option<Arc<Composite>>,
}

impl Pin {
    pub(super) fn from_text(text: &str) -> Result<Self, Fault> {
        let number = text.trim_start_matches(['=', ' ', '\t']).trim_end_matches([' ', '\t']);
        let version = version_text::strict(number)?;
        let composite = if version.pre.is_empty() { None } else { Composite::parse(number) };
        Ok(Self { text: text.into(), version, composite: composite.map(Arc::new) })
    }

    /// The pin as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The version, read as a semantic one.
    pub fn version(&self) -> &semver::Version {
        &self.version
    }

    /// Whether a version is the pinned one.
    ///
    /// A pin without build metadata accepts any build. For a composite version, a pin can name app and
    /// revision, or only the app, which accepts any revision of it.
    pub fn accepts(&self, version: &Version) -> bool {
        let Some(found) = version.as_composite() else {
            return is_same(&self.version, version.leading());
        };
        let names_both = self.composite.as_ref().is_some_and(|wanted| {
            is_same(&wanted.app, &found.app) && is_same(&wanted.revision, &found.revision)
        });
        names_both || is_same(&self.version, &found.app)
    }
}

fn is_same(wanted: &semver::Version, found: &semver::Version) -> bool {
    wanted.cmp_precedence(found).is_eq() && (wanted.build.is_empty() || wanted.build == found.build)
}

impl fmt::Display for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}
