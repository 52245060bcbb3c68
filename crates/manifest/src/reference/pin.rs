//! Pins: exactly one version.

use std::fmt;
use std::sync::Arc;

use super::Version;
use super::error::Fault;
use super::version::Composite;
use super::version_text;

/// Exactly one version, written `1.0.6`, `v1.0.6` or `=1.0.6`.
///
/// Two pins are equal if they are written alike.
#[derive(Debug, Clone)]
pub struct Pin {
    text: Arc<str>,
    version: semver::Version,
    /// What few pins have; kept aside, because there are very many pins.
    rare: Option<Arc<Rare>>,
}

/// What few pins have.
#[derive(Debug, Clone)]
struct Rare {
    /// The text that its version was published with, if that leaves numbers out: written so, it would be a range.
    published: Option<String>,
    /// What `2.3.0-1.0.0` means if the package is composite, which only the package knows.
    composite: Option<Composite>,
}

impl Pin {
    pub(super) fn from_text(text: &str) -> Result<Self, Fault> {
        let number = text.trim_start_matches(['=', ' ', '\t']).trim_end_matches([' ', '\t']);
        let version = version_text::strict(number)?;
        let composite = if version.pre.is_empty() { None } else { Composite::parse(number) };
        let rare = composite.map(|composite| Rare { published: None, composite: Some(composite) });
        Ok(Self { text: text.into(), version, rare: rare.map(Arc::new) })
    }

    /// The pin to a version; `None` for a composite version whose app's version leaves numbers out.
    pub(super) fn of(version: &Version) -> Option<Self> {
        let pin = Self::from_text(&version.in_full().to_string()).ok()?;
        Some(if version.is_spelt() { pin.published_as(version.to_string()) } else { pin })
    }

    /// The pin to another version that is written in the same way: `=1.0.6`, `v1.0.6`.
    pub(super) fn moved_to(&self, version: &Version) -> Option<Self> {
        let pin = Self::of(version)?;
        let number = self.text.find(|character: char| character.is_ascii_digit())?;
        let text = format!("{}{pin}", &self.text[..number]);
        let moved = Self::from_text(&text).ok()?;
        let published = pin.rare.and_then(|rare| rare.published.clone());
        Some(match published {
            Some(published) => moved.published_as(published),
            None => moved,
        })
    }

    /// This pin, to a version that was published with this text.
    fn published_as(self, text: String) -> Self {
        let composite = self.rare.as_ref().and_then(|rare| rare.composite.clone());
        let rare = Rare { published: Some(text), composite };
        Self { rare: Some(Arc::new(rare)), ..self }
    }

    /// The version in the text that it was published with, as far as that is known; without a `=` or `v` before it.
    pub fn published(&self) -> &str {
        let written = || self.text.trim_start_matches(['=', ' ', '\t', 'v']);
        let published = self.rare.as_ref().and_then(|rare| rare.published.as_deref());
        published.unwrap_or_else(written)
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
            return version.leading().is_some_and(|found| is_same(&self.version, found));
        };
        let Some(app) = &found.app else { return false };
        let composite = self.rare.as_ref().and_then(|rare| rare.composite.as_ref());
        let names_both = composite.is_some_and(|wanted| {
            wanted.app.as_ref().is_some_and(|wanted| is_same(wanted, app))
                && is_same(&wanted.revision, &found.revision)
        });
        names_both || is_same(&self.version, app)
    }
}

impl PartialEq for Pin {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pin {}

fn is_same(wanted: &semver::Version, found: &semver::Version) -> bool {
    wanted.cmp_precedence(found).is_eq() && (wanted.build.is_empty() || wanted.build == found.build)
}

impl fmt::Display for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}
