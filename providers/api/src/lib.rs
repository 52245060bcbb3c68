//! The interface of mu's providers: the small crate that every provider is written against.
//!
//! A provider knows one kind of place (a hub, Git remotes, folders) and does three things: it lists the
//! releases of a package, returns the manifest of a release, and fills a folder with its files. It does not
//! know selection, locks or packs. Everything that it fetches passes through [`TreeWriter`], the one door
//! between hostile bytes and the disk.
//!
//! This crate contains no network protocol. The feature `http` adds the client that the providers share, with
//! its rules for tokens, redirects and plain http.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]

pub mod catalog;
#[cfg(feature = "conformance")]
#[expect(clippy::disallowed_methods, reason = "looks at what a provider has made, as a test does")]
pub mod conformance;
mod digest;
mod error;
mod evidence;
#[expect(clippy::disallowed_methods, reason = "is the door to files")]
pub mod fs;
#[cfg(feature = "http")]
pub mod http;
mod json_lines;
mod lead;
mod program;
mod provider;
pub mod publishable;
mod release;
pub mod threads;
mod tree;
mod url;

pub use crate::catalog::{Account, Changes, LogPosition};
pub use crate::digest::{ArchiveDigest, Commit, CommitError, Digest, DigestError, FileDigest};
pub use crate::error::{
    ErrorKind, ProviderError, TreeError, and_more, brief, causes, none_if, with_causes,
};
pub use crate::evidence::{
    EVIDENCE_TYPE, EvidenceAbout, FoundEvidence, FoundPiece, LARGEST_CONTENT, LARGEST_EVIDENCE,
    MOST_EVIDENCE, NumberedLine, checked_evidence, evidence_lines, evidence_path, lines_to_text,
};
pub use crate::json_lines::{
    JsonLineError, MOST_VALUES, has_few_values, json_lines, numbered_lines, read_json_lines,
    split_lines,
};
pub use crate::lead::{Lead, NamedBy, Reach, check_lead};
pub use crate::program::{Program, Programs};
pub use crate::provider::{
    Copier, Dates, FOREIGN_MANIFESTS, Facts, Found, LineTrust, Listing, Location, LoggedCommit,
    MANIFEST_NAMES, MARKED_MANIFESTS, MOST_LOGGED, ManifestFile, MarkedManifest, PlaceKind,
    Progress, Provider, Silent, Soon, is_changelog,
};
pub use crate::release::{
    Dependency, DetailedDependency, LONGEST_REASON, Maintainer, NO_REASON, Release, Upgrade, Yanked,
};
pub use crate::tree::{
    Entry, Folder, InnerPath, KeptArchives, Kind, LONGEST_LFS_POINTER, Limits, Mode, OwnPath, Tree,
    TreeWriter, is_lfs_pointer, shown_path,
};
pub use crate::url::{
    SafeUrl, is_bucket_scheme, is_plain_key, place_without_secrets, secrets_in, without_secrets,
};
