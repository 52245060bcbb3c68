//! The entry of a package in a lock, as it is written: the one declaration of its keys.
//!
//! The type of a locked package, the known keys, both ways to read them, their schema and their order on disk are derived from
//! it. The facts of a package among them are declared in `mu-select`. How a type is written is not here, but in `line.rs`.
//!
//! Two texts of each entry are types that everything else in the lock builds on: where a package came from ([`Source`]), and
//! what requires it ([`Requested`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use mu_provider::{ArchiveDigest, Commit, CommitError, Digest};
use schemars::JsonSchema;
use serde::Serialize;

use super::line;
use crate::lock::line::{Ids, Locked, Names};
use crate::manifest::source::{SourceError, Table, Value};
use crate::reference::PackageId;
use crate::select::chosen_facts;
use crate::select::releases::ChosenFacts;

/// The form of a commit, for the schema.
const COMMIT: &str = "^([0-9a-f]{40}|[0-9a-f]{64})$";

/// The value of a key.
trait Field: Sized {
    /// Reads it from a file in any layout.
    fn read(table: Table<'_>, key: &str) -> Result<Self, SourceError>;

    /// Reads it from the rest of a line that mu wrote; `None` if the form differs.
    fn read_line(value: &str) -> Option<Self>;

    /// The rest of its line; `None` if the key is left out.
    fn print(&self) -> Option<String>;

    /// Whether there is nothing in it, which mu never writes.
    fn is_empty(&self) -> bool;
}

/// A text that every entry has.
impl Field for String {
    fn read(table: Table<'_>, key: &str) -> Result<Self, SourceError> {
        let text: Option<Self> = Field::read(table, key)?;
        text.ok_or_else(|| table.value().error(format!("a locked package must have `{key}`")))
    }

    fn read_line(value: &str) -> Option<Self> {
        line::read_text(value)
    }

    fn print(&self) -> Option<String> {
        Some(line::print_text(self))
    }

    fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

impl Field for Option<String> {
    fn read(table: Table<'_>, key: &str) -> Result<Self, SourceError> {
        Ok(table.word(key)?.map(|text| text.as_str().to_owned()))
    }

    fn read_line(value: &str) -> Option<Self> {
        line::read_text(value).map(Some)
    }

    fn print(&self) -> Option<String> {
        self.as_deref().map(line::print_text)
    }

    fn is_empty(&self) -> bool {
        self.as_deref().is_none_or(str::is_empty)
    }
}

/// A commit; the error of any other text is at its place in the file.
impl Field for Option<Commit> {
    fn read(table: Table<'_>, key: &str) -> Result<Self, SourceError> {
        let Some(text) = table.word(key)? else { return Ok(None) };
        text.as_str().parse().map(Some).map_err(|error: CommitError| text.error(error.to_string()))
    }

    fn read_line(value: &str) -> Option<Self> {
        line::read_text(value)?.parse().ok().map(Some)
    }

    fn print(&self) -> Option<String> {
        self.as_deref().map(line::print_text)
    }

    fn is_empty(&self) -> bool {
        self.is_none()
    }
}

impl Field for Vec<String> {
    fn read(table: Table<'_>, key: &str) -> Result<Self, SourceError> {
        table.strings(key)
    }

    fn read_line(value: &str) -> Option<Self> {
        line::read_list(value)
    }

    fn print(&self) -> Option<String> {
        line::print_list(self)
    }

    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}

macro_rules! entry {
    (
        before: { $(
            $(#[doc = $about:literal])*
            $(#[schemars($($schema:tt)*)])?
            $key:literal $field:ident: $kind:ty $(= $default:ident)?,
        )* }
        after: { $($(#[$last_about:meta])* $last_key:literal $last:ident: $last_kind:ty,)* }
        new: ($($parameter:ident: $parameter_kind:ty),*)
        $($(#[$fact_about:meta])* $fact_key:literal $fact:ident: $fact_kind:ty,)*
    ) => {
        /// One chosen package.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct LockedPackage {
            $($(#[doc = $about])* pub $field: $kind,)*
            /// What it says of itself, so that it can be chosen again without its index line.
            pub facts: ChosenFacts,
        }

        impl LockedPackage {
            /// An entry with only the keys that every entry has.
            pub fn new($($parameter: $parameter_kind),*) -> Self {
                Self { $($field: entry!(@ $field $($default)?),)* facts: ChosenFacts::default() }
            }
        }

        impl WirePackage {
            /// The package; the error is the text that is wrong.
            pub(super) fn into_package(self, ids: &mut Ids<'_>) -> Result<LockedPackage, String> {
                Ok(LockedPackage {
                    $($field: Locked::read(self.$field, ids)?,)*
                    facts: ChosenFacts {
                        $($fact: Locked::read(self.$fact, ids)?,)*
                    },
                })
            }

            /// The entry of a package.
            pub(super) fn new(package: &LockedPackage, names: &Names<'_>) -> Self {
                Self {
                    $($field: Locked::written(&package.$field, names),)*
                    $($fact: Locked::written(&package.facts.$fact, names),)*
                    ..Self::default()
                }
            }
        }

        entry! {
            $(
                $(#[doc = $about])*
                $(#[schemars($($schema)*)])?
                $key $field: $kind $(= $default)?,
            )*
            $($(#[$fact_about])* $fact_key $fact: $fact_kind = default,)*
            $($(#[$last_about])* $last_key $last: $last_kind = default,)*
        }
    };
    (@ $field:ident) => { $field };
    (@ $field:ident default) => { Default::default() };
    ($($(#[$about:meta])* $key:literal $field:ident: $kind:ty $(= $default:ident)?,)*) => {
        /// One chosen package as it is written.
        #[derive(Debug, Default, PartialEq, JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub(super) struct WirePackage {
            $(
                $(#[$about])*
                $(#[schemars($default)])?
                #[schemars(rename = $key)]
                pub(super) $field: <$kind as Locked>::Wire,
            )*
        }

        impl WirePackage {
            /// Reads an entry in any layout.
            pub(super) fn read(value: Value<'_>) -> Result<Self, SourceError> {
                let table = value.table(&[$($key),*])?;
                Ok(Self { $($field: Field::read(table, $key)?,)* })
            }

            /// Reads one line of an entry that mu wrote; `None` if the form differs, or if the key was there before.
            pub(super) fn read_line(&mut self, field: &str) -> Option<()> {
                let (key, value) = line::split(field)?;
                match key {
                    $($key => {
                        let is_first = Field::is_empty(&self.$field);
                        self.$field = Field::read_line(value)?;
                        (is_first && !Field::is_empty(&self.$field)).then_some(())
                    })*
                    _ => None,
                }
            }

            /// Adds the entry to the text of a lock.
            pub(super) fn print(&self, text: &mut String) {
                let mut indent = "- ";
                $(if let Some(value) = self.$field.print() {
                    line::print(text, indent, $key, &value);
                    indent = "  ";
                })*
                debug_assert_eq!(indent, "  ", "an entry has at least its id");
            }
        }
    };
}

chosen_facts! {
    entry! {
        before: {
            /// Base and name.
            "id" id: PackageId,
            /// The chosen version.
            "version" version: String,
            /// The id of the package that it comes from, if an override leads to another one.
            "from" from: Option<PackageId> = default,
            /// Other versions with the same major that stand beside it: a chart has each of them under an alias.
            "beside" beside: Vec<String> = default,
            /// `composite`, if the version consists of app version and revision.
            "versioning" is_composite: bool = default,
            /// The version of the software that it contains.
            "appVersion" app_version: Option<String> = default,
            /// The channel that it was chosen from, if it is in one.
            "channel" channel: Option<String> = default,
            /// `hub+URL`, `git+URL`, `path+REL`, `workspace+REL`, `pack+` and a place in a packs folder of this machine, or a plugin's
            /// name and `+URL`.
            "source" source: Source,
            /// Git: the folder inside the repository.
            "folder" folder: Option<String> = default,
            /// Git: the commit, 40 or 64 hexadecimal digits.
            #[schemars(with = "Option<String>", regex(pattern = COMMIT))]
            "commit" commit: Option<Commit> = default,
            /// The requested tag or branch.
            "ref" reference: Option<String> = default,
            /// OCI: the digest of the artifact that the requested tag led to.
            "artifact" artifact: Option<ArchiveDigest> = default,
            /// `h1:` and the digest of the content.
            "digest" digest: Option<Digest> = default,
            /// `h1:` and the digest of the content together with what `mu build` made of it.
            "built" built: Option<Digest> = default,
            /// `sha256:` and the digest of the archive.
            "archive" archive: Option<ArchiveDigest> = default,
            /// OCI: `sha256:` and the digest of the manifest, or index of manifests, that the tag of the version led to.
            "manifest" manifest: Option<ArchiveDigest> = default,
            /// Who signed it, as far as rules asked: `key:sha256:…`, `github:OWNER/REPO/.github/workflows/FILE` and others. A record, never a proof.
            "signedBy" signed_by: Vec<String> = default,
            /// `sha256:` and the digest of the patch that is applied to the content.
            "patch" patch: Option<ArchiveDigest> = default,
            /// `h1:` and the digest of the content with the patch.
            "patched" patched: Option<Digest> = default,
            /// Where the archive is, if it is not in the usual place.
            "url" url: Option<String> = default,
            /// Text that its provider needs to find it again.
            "locator" locator: Option<String> = default,
            /// `SPEC by REQUIRER`.
            "requested" requested: Vec<Requested> = default,
            /// Ids.
            "dependencies" dependencies: Vec<PackageId> = default,
        }
        after: {
            /// The id of the package that took its place.
            "replacedBy" replaced_by: Option<String>,
        }
        new: (id: PackageId, version: String, source: Source)
    }
}

impl WirePackage {
    /// Whether it has the keys that every entry has.
    pub(super) fn is_complete(&self) -> bool {
        [&self.id, &self.version, &self.source].into_iter().all(|text| !Field::is_empty(text))
    }
}

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
