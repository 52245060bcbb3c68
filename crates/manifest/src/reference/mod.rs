//! References: the URL-like texts that name packages, the identities of packages, and requirements on
//! versions.
//!
//! Everything here works on text alone. A [`Reference`] remembers byte for byte what was written, and what
//! was left out; [`Defaults`] fill the gaps and give its [`PackageId`]. A [`VersionSpec`] says which
//! [`Version`]s it accepts. Nothing here looks at a disk, a registry or a network, so a local folder stays
//! text, and other code finds out whether a tag or a commit exists.

mod error;
mod id;
mod name;
mod parse;
pub mod pasted;
mod protocol;
mod range;
mod spec;
mod stating;
#[cfg(test)]
mod tests;
mod version;
mod version_text;

use std::fmt;
use std::ops::Range as Span;
use std::sync::Arc;

pub use self::error::ReferenceError;
pub(crate) use self::error::is_harmful;
pub use self::id::{Alias, Aliases, PackageId, needs_base};
pub use self::name::Name;
pub use self::protocol::{Base, Protocol};
pub use self::range::Range;
pub use self::spec::CommitDigits;
pub use self::spec::Tag;
pub use self::spec::VersionSpec;
pub use self::spec::{ArtifactDigest, Pin};
pub use self::version::{AppVersioning, Version};

/// A reference as it was written: `[protocol][base]name[#version]`, or a local folder.
///
/// Two references are equal if their texts are. Compare [`Reference::id`] to find out whether they name the
/// same package.
#[derive(Debug, Clone)]
pub struct Reference {
    text: Arc<str>,
    protocol: Option<Protocol>,
    user: Option<Arc<str>>,
    base: Option<Base>,
    name: Name,
    path: Span<usize>,
    is_local: bool,
    version: Option<VersionSpec>,
}

/// The values of the parts that a reference leaves out; by default `hub.mu.com/` and no namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Defaults {
    /// The base of references without one.
    pub base: Base,
    /// The namespace for a name of one segment without a base, which a fetched package's dependencies inherit
    /// from it. `None` for the workspace's own packages.
    pub namespace: Option<Name>,
    /// Which ids mean others.
    pub aliases: Aliases,
}

impl Reference {
    /// Reads a reference.
    ///
    /// # Errors
    ///
    /// When the text is not a reference; the error points at the first offending character.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        parse::reference(text).map_err(|fault| ReferenceError::new("reference", text, fault))
    }

    /// The protocol, if one was written; the scp form `git@host:org/repo` counts as `git+ssh`.
    pub fn protocol(&self) -> Option<&Protocol> {
        self.protocol.as_ref()
    }

    /// Whether it is written as `git@host:path`, which is no URL.
    pub fn is_scp(&self) -> bool {
        self.protocol == Some(Protocol::GitSsh) && !self.text.contains("://")
    }

    /// The user before the host, as in `ssh://git@host/x`. It is not part of the base.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The base, if one was written, in its normal form: a lower-case host without the default port.
    pub fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    /// The name without `.git` marks; for a local folder, the last parts of its path, changed to be a valid
    /// name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The name as it was written, with its `.git` marks: `group/repo.git/sub`.
    pub fn path(&self) -> &str {
        &self.text[self.path.clone()]
    }

    /// The version, if one was written.
    pub fn version(&self) -> Option<&VersionSpec> {
        self.version.as_ref()
    }

    /// The text after `#`, as it was written.
    pub fn version_text(&self) -> Option<&str> {
        self.text.split_once('#').map(|(_, version)| version)
    }

    /// The accepted versions: those that were written, or else the latest.
    pub fn spec(&self) -> VersionSpec {
        self.version.clone().unwrap_or(VersionSpec::Latest)
    }

    /// The folder that a local reference names: `./x`, `../x` or `/abs/x` (also for `file:///abs/x`).
    pub fn local(&self) -> Option<&str> {
        self.is_local.then(|| self.path())
    }

    /// The whole text, as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// This reference asking for another version, or for none in particular.
    #[must_use]
    pub fn with_version(&self, version: Option<VersionSpec>) -> Self {
        let place = self.text.split_once('#').map_or(&*self.text, |(place, _)| place);
        let text = match &version {
            Some(version) => Arc::from(format!("{place}#{version}")),
            None => Arc::from(place),
        };
        Self { text, version, ..self.clone() }
    }

    /// The package that this reference names.
    ///
    /// A relative local folder has no identity until it is joined to a folder ([`PackageId::local`]); here
    /// its path counts from the root.
    pub fn id(&self, defaults: &Defaults) -> PackageId {
        let id = match &self.base {
            Some(base) => PackageId::new(base, &self.name),
            None if self.is_local => return PackageId::new(&Base::localhost(), &self.name),
            None => PackageId::new(&defaults.base, &self.name_in(defaults)),
        };
        if defaults.aliases.is_empty() { id } else { defaults.aliases.counted(id) }
    }

    /// The reference with all its parts: `https://hub.mu.com/aws/ec2#^1.0.6`.
    pub fn qualified(&self, defaults: &Defaults) -> String {
        let version = self.version_text().unwrap_or("latest");
        if self.is_local {
            let path = self.path();
            let scheme = if path.starts_with('/') { "file://" } else { "" };
            return format!("{scheme}{path}#{version}");
        }
        let protocol = self.protocol.as_ref().unwrap_or(&Protocol::Https);
        let user = self.user().map(|user| format!("{user}@")).unwrap_or_default();
        let base = match (&self.base, protocol) {
            (_, protocol) if protocol.is_file() => "/",
            (Some(base), _) => base.as_str(),
            (None, _) => defaults.base.as_str(),
        };
        let namespace = self.namespace_in(defaults).map(|name| format!("{name}/"));
        let namespace = namespace.unwrap_or_default();
        format!("{}://{user}{base}{namespace}{}#{version}", protocol.as_str(), self.path())
    }

    /// Whether the reference is a name of one segment, without a base: the namespace is left out.
    pub fn is_single_name(&self) -> bool {
        !self.is_local && self.base.is_none() && !self.name.as_str().contains('/')
    }

    fn namespace_in<'a>(&self, defaults: &'a Defaults) -> Option<&'a Name> {
        defaults.namespace.as_ref().filter(|_| self.is_single_name())
    }

    fn name_in(&self, defaults: &Defaults) -> Name {
        match self.namespace_in(defaults) {
            Some(namespace) => namespace.join(&self.name),
            None => self.name.clone(),
        }
    }
}

impl PartialEq for Reference {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Reference {}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}
