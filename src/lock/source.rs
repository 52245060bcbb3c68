//! Where a locked package came from, and what requires it: two texts of each entry, which everything else in the lock builds on.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

/// One requirement of a package: `^1.0.6 by acmecorp/elk`. Cheap to clone, because they all share a few
/// texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requested {
    /// The required version, as it was written.
    pub spec: Arc<str>,
    /// What requires it.
    pub by: Arc<str>,
}

/// Where a package came from: `hub+URL`, `git+URL`, `url+URL`, `path+REL`, `workspace+REL`, `pack+PLACE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(inline)]
pub struct Source {
    /// The provider's name, or `workspace`.
    pub provider: String,
    /// The registry or repository, or the folder relative to the workspace's root.
    pub place: String,
}

impl Source {
    /// The provider name of packages that are in the workspace itself.
    pub const WORKSPACE: &'static str = "workspace";

    /// Creates a source from its two parts.
    pub fn new(provider: impl Into<String>, place: impl Into<String>) -> Self {
        Self { provider: provider.into(), place: place.into() }
    }

    /// The provider name of packages that are folders outside the workspace.
    pub const FOLDER_PROVIDER: &'static str = "path";

    /// Whether the package is a folder outside the workspace.
    pub fn is_outside_folder(&self) -> bool {
        self.provider == Self::FOLDER_PROVIDER
    }

    /// The provider name of archives by URL.
    pub const ARCHIVE_PROVIDER: &'static str = "url";

    /// Whether the package is an archive by URL.
    pub fn is_url_archive(&self) -> bool {
        self.provider == Self::ARCHIVE_PROVIDER
    }

    /// Whether the package is in the workspace itself.
    pub fn is_workspace_folder(&self) -> bool {
        self.provider == Self::WORKSPACE
    }

    /// Whether the package is a folder that its author works on, in the workspace or outside.
    pub fn is_authored_folder(&self) -> bool {
        self.is_workspace_folder() || self.is_outside_folder()
    }

    /// The provider name of packages that were taken from a packs folder of this machine, because no registry has them.
    pub const PACK: &'static str = "pack";

    /// The beginning of the place of a pack that somebody has put into the workspace.
    pub const IN_WORKSPACE: &'static str = ".mu/packs/";

    /// The beginning of the place of a pack of the user.
    pub const USER_PLACE_PREFIX: &'static str = "global/";

    /// The beginning of the place of a pack of the runtime.
    pub const IN_RUNTIME: &'static str = "muroot/";

    /// Whether the package was taken from a packs folder of this machine.
    pub fn is_pack(&self) -> bool {
        self.provider == Self::PACK
    }

    /// Whether the package is a pack that somebody has put into the workspace, which is used where it is.
    pub fn is_placed_pack(&self) -> bool {
        self.is_pack() && self.place.starts_with(Self::IN_WORKSPACE)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (provider, place) = text.split_once('+')?;
        Some(Self::new(provider, place))
    }
}

impl From<Source> for String {
    fn from(source: Source) -> Self {
        source.to_string()
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}+{}", self.provider, self.place)
    }
}

impl std::fmt::Display for Requested {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} by {}", self.spec, self.by)
    }
}

/// The start of [`Requested::spec`] if a capability was required, from any provider.
const CAPABILITY: &str = "capability ";

impl Requested {
    /// A requirement of a capability, as recorded at its provider.
    pub fn for_capability(capability: &str, by: Arc<str>) -> Self {
        Self { spec: [CAPABILITY, capability].concat().into(), by }
    }

    /// The required capability, if this requires one.
    pub fn capability(&self) -> Option<&str> {
        self.spec.strip_prefix(CAPABILITY)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (spec, by) = text.rsplit_once(" by ")?;
        Some(Self { spec: spec.into(), by: by.into() })
    }
}
