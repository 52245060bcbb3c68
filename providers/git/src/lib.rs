//! Packages in Git repositories: over https, http, ssh, `git://`, and on this machine.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `repositories`, `remote_url` | which repository a location means, and which URLs are accepted |
//! | `transport` | how bytes get to a server and back: http, `ssh`, `git upload-pack`, plain TCP |
//! | `programs`, `settings` | what is run for the user, and what the user told Git |
//! | `wire` | Git's protocol, for reading |
//! | `database` | one bare repository in the cache for each remote; on disk: `NAME-HASH.git`, `.git.lock` beside it, and `NAME-HASH.history.git` with commits alone; and the objects of one package, in a pack for machines without a network (`kept/` while one is read) |
//! | `pack` | what a pack would become, before it does |
//! | `repository` | what is listed, what is here, what must be fetched |
//! | `listing` | the releases that refs are |
//! | `snapshot`, `manifest` | reading one commit |
//! | `ref_name` | names of branches and tags that Git accepts, which tags are versions, and names of commits |
//! | `config_text` | Git's configuration format, in a repository of others, and `.gitmodules` in it |
//! | `export` | its files, submodules included |
//! | `checkout` | what a checkout says of a folder that is published, and a clone of edited packages |
//! | `changes` | what a checkout has changed since it left another branch |
//! | `opened` | opens a repository on this machine, or asks `git` where libgit2 cannot read it |
//! | `stand_in`, `asked` | a repository of mu's own in the place of one that libgit2 cannot read, and what `git` says through it |
//! | `submodules` | the submodules of a checkout, as its index has them |
//! | `surroundings` | what the repository around a workspace says of edited packages |
//! | `patch` | patches of packages, made and applied |
//! | `working_copy`, `unsaved` | clones to work in, and what would be lost with one |
//!
//! libgit2 handles packs and objects, but not the network: none of its transports is used. mu runs no code of a repository, and
//! nothing is checked out, except in a clone that the user asked for. This crate does not know the dependencies of a release, or
//! the content of its manifest.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
#![deny(clippy::indexing_slicing)]

mod asked;
mod changes;
mod checkout;
mod config_text;
mod database;
mod export;
mod line_ends;
mod listing;
mod manifest;
mod opened;
mod pack;
pub mod patch;
mod programs;
mod provider;
mod ref_name;
mod remote_url;
mod repositories;
mod repository;
mod settings;
mod snapshot;
mod stand_in;
mod submodules;
mod surroundings;
mod transport;
mod unsaved;
mod wire;
mod words;
mod working_copy;

pub use crate::changes::{ChangesSince, CheckoutChanges};
pub use crate::checkout::Checkout;
pub use crate::opened::LocalGit;
pub use crate::provider::{CheckFolder, GitOptions, GitProvider};
pub use crate::ref_name::{BranchName, TagName};
pub use crate::stand_in::StandInError;
pub use crate::submodules::{SUBMODULES, UsedSubmodule, UsedSubmodules, is_missing_or_empty};
pub use crate::surroundings::{
    FolderStanding, Surroundings, SurroundingsError, note_in_checkout, noted_in_checkout,
};
pub use crate::unsaved::{Kind, PushedBranch, Tips, Unsaved, WorkState, begin_repository};
pub use crate::working_copy::{Beginning, WorkingCopies, checked_url, folder_of, named_url};
