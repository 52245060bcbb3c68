//! What an operation warns of, as data: the packages, files and causes. `report::warnings` has the sentences.
//!
//! A warning ends nothing: the operation went on, or did something else. What ends it is a `CommandError`. No variant takes a
//! sentence of an operation; `why` is the text of an error, or of whoever was asked.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use mu_provider::{Commit, PlaceKind, with_causes};

use crate::index::LeftOut;
use crate::lock::Requested;
use crate::manifest::FileWarning;
use crate::ops::session::events::ProviderWords;
use crate::ops::session::places::Misplacement;
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::search::Note;
use crate::select::SelectionWarning;
use crate::trust::{EvidenceFault, Objection, RefusedVersion};
use crate::workspace::RedirectedBase;

/// What the user is warned of. Versions are written as locks and indexes have them; a `name` is that of a package at a hub, or as its
/// manifest says it.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say what there is; comments say the rest")]
pub enum Warning {
    // # What others have found
    // What is probably not meant in a file of the workspace.
    File(FileWarning),
    // What a provider or a plugin says.
    Provider(ProviderWords),
    // An error that ended only a part of the operation.
    Failure(ErrorText),
    // What selection says; `pinned_by` requires exactly the version that was yanked.
    Selection { warning: SelectionWarning, pinned_by: Option<String> },
    // What the search path says of what it found.
    Found(Note),

    // # The workspace and its places
    // A package on this machine is not where references lead.
    Misplaced(Misplacement),
    // A dependency leads to a package of the workspace with another name, which `exact` names.
    OtherName { by: String, reference: Reference, place: String, id: PackageId, exact: String },
    // A reference on the command line leads to the folder of a package with another name.
    OtherNameInFolder { written: String, place: String, name: String },
    // The package of a new manifest is `called` otherwise by its place; `parent` as the namespace would make its name right.
    OtherNameByPlace { name: String, called: String, parent: Option<String> },
    // A dependency means the package `here` only in this workspace.
    MeansOther { reference: Reference, here: PackageId, exact: String },
    Conflicting { by: String, with: String, manifest: PathBuf },
    MembersUnread { why: String },
    SparseCheckout { first: String, others: usize },
    Redirected(RedirectedBase),
    RegistryWithoutFolder { prefix: String, folder: PathBuf },
    UnusedAlias { name: String },
    UnusedOverride { id: PackageId },
    // A registry would have a package that is reached on this machine, by its path.
    IdleRegistry { prefix: String, id: PackageId },
    UnusedPatch { key: String, is_in_folder: bool },
    NoFileLocks { folder: PathBuf },
    ChangedInStore { path: PathBuf },

    // # Git, and what only this machine uses
    IgnoredUnknown { why: String },
    LockedIgnored { id: PackageId, place: String },
    UsedUntracked { id: PackageId, place: String, pattern: String, exclude: PathBuf },
    PacksIgnored { folder: PathBuf },
    // The repository of a locked package is edited already, since another commit.
    EditedSince { id: PackageId, locked: Commit, clone: String, begun: Commit },
    EditNotBuilt { id: PackageId, place: String },
    // New files of a working copy that Git ignores.
    PatchWithout { files: Vec<String> },

    // # The lock, and the versions in it
    NoLock,
    LockBehindManifests,
    ReplacedName { id: PackageId, by: PackageId },
    NewerUnknown { ids: Vec<PackageId> },
    ConflictsUnknown { ids: Vec<PackageId> },
    NoVersions { id: PackageId, left_out: Vec<LeftOut> },
    // What an override is used in spite of.
    Overridden { id: PackageId, version: String, broken: Vec<Requested> },
    PlacedPack { id: PackageId, version: String, place: String },
    // A chart has another name than its repository.
    ChartCalled { id: PackageId, version: String, called: String },
    // A package has moved; only the packages `by` depend on it, or else the workspace does.
    Moved { id: PackageId, to: PackageId, by: Option<BTreeSet<PackageId>> },
    // Two packages are one; `written` is how the settings name the second.
    Copies { one: (PackageId, String), two: (PackageId, String), written: String },
    DifferInCase { one: PackageId, other: PackageId },
    Unagreed { id: PackageId, by: PackageId, settings: &'static str },
    // A range of a replaced package stays; `spec` is what to require of the other package, unless that is required too.
    ReplacedRange { file: PathBuf, reference: Reference, by: PackageId, spec: Option<VersionSpec> },
    // What the lock of another tool has, and what was chosen.
    OtherLock { file: &'static str, apart: Vec<(PackageId, Version, Version)> },
    StillRequired { id: PackageId, by: Vec<String> },
    PinsKept { names: Vec<String> },
    // What pins have replaced, and cannot note: the entries, their versions if they had one, and their files.
    PinsWithoutNote { entries: Vec<(String, Option<String>, PathBuf)> },

    // # What registries and catalogs have
    RegistryLeftOut { prefix: String, why: String },
    CatalogLinesSkipped { registry: String, lines: usize },
    ManifestUnread { id: PackageId, version: Option<Version> },
    CommitsUnknown { id: PackageId, why: String },

    // # Trust, tokens and consent
    Evidence(EvidenceFault),
    // What is held against a version that is used.
    Objection(Objection),
    PassedOver { source: PackageId, version: String, why: String },
    // Newer versions than the one that is used were refused, the `first` of them and `others`.
    RefusedNewer { source: PackageId, version: Version, first: RefusedVersion, others: usize },
    // What is beside a package, and vouches for it.
    // A rule about signatures that speaks of no package that is locked.
    RuleOfNone { pattern: String, file: &'static str },
    Voucher { gap: VoucherGap, name: String, version: String, why: String },
    NoSingleArchive { id: PackageId, version: String },
    ArchiveUnread { path: String, why: String },
    // The settings in `file` ignore what a feed of the user calls malicious.
    NotSilenced { finding: String, file: &'static str },
    // A token in a variable that earlier versions sent to this host; `variable` is the one for it, if there can be one.
    FormerVariable { former: String, host: String, variable: Option<String> },
    TokensReadable { file: PathBuf },
    TokensUnread { why: String },
    // A variable has a token for a host that somebody logs in to, or out of (`is_out`).
    TokenVariable { variable: String, is_out: bool },
    AnswerNotKept { why: String },
    SecretsInBuild { package: String, variables: Vec<String> },
    BuildUntrusted { package: String },

    // # Publishing and packing
    NoVersion { name: String },
    OtherContent { name: String, version: String },
    OlderThan { name: String, version: Version, newest: Version },
    OrderedByText { name: String, app: String },
    KeysMissing { name: String, keys: Vec<&'static str> },
    KeysUnknown { file: String, keys: Vec<String> },
    // What a template of another tool becomes is its user's.
    DefaultTaken { place: String, called: String, key: &'static str, default: String },
    SecretsPacked { files: Vec<String> },
    WithoutExactVersions { why: String },
    PatternIdle { pattern: String },
    PackageInside { folder: String },
    NotInCatalog { hub: String },
    WithoutProvenance { package: String, place: String },
    // What a package of this kind comes with where its tool pushes it, and a hub does not have.
    NotAtHub { package: String, kind: &'static str, lacks: &'static str },

    // # Mirrors
    GoneFromHub { name: String },
    // Where a package has moved is not copied.
    MoveSkipped(ErrorText),
    NotCopied { name: String, version: Option<String>, why: String },
    LeftElsewhere { id: PackageId, provider: String, place: String, why: Option<String> },
    // Nothing that is signed in a place of this kind speaks of the archive of a copy, and a rule asks for that.
    PackedAnew { id: PackageId, version: String, kind: PlaceKind, rule: String },

    // # Files that commands name or leave
    NoFile { path: PathBuf },
    HelmPacks { files: Vec<String> },
    HelmUses { folder: PathBuf },
    HelmRenders { path: PathBuf, is_folder: bool },
    HelmRefuses { chart: String, file: String, bytes: u64 },
}

impl Warning {
    /// Of an error that ends only a part of the operation.
    pub(crate) fn failure(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Failure(ErrorText::new(error))
    }
}

/// What lacks of that which vouches for a version: its evidence or its provenance, or its archive, in which that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what there is")]
pub enum VoucherGap {
    EvidenceNotKept,
    EvidenceNotCopied,
    EvidenceUnknown,
    ProvenanceNotCopied,
    ProvenanceUnknown,
    ArchiveNotKept,
    ArchiveNotUsed,
}

/// The words of an error, with its causes. Nothing else makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorText(String);

impl ErrorText {
    /// The words of this error.
    pub fn new(error: &(dyn std::error::Error + 'static)) -> Self {
        Self(with_causes(error))
    }
}

impl fmt::Display for ErrorText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
