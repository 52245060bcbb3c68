//! Packages in Git repositories: over https, http, ssh, `git://`, and on this machine.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `root`, `remote_url` | which repository a location means, and which URLs are accepted |
//! | `transport` | how bytes get to a server and back: http, `ssh`, `git upload-pack`, plain TCP |
//! | `programs`, `settings` | what is run for the user, and what the user told Git |
//! | `wire` | Git's protocol, for reading |
//! | `database` | one bare repository in the cache for each remote; on disk: `NAME-HASH.git`, `.git.lock` beside it, and `NAME-HASH.history.git` with commits alone |
//! | `pack` | what a pack would become, before it does |
//! | `repository`, `repositories` | what is listed, what is here, what must be fetched |
//! | `listing`, `version` | the releases that refs are |
//! | `commit`, `snapshot`, `manifest` | finding and reading one commit |
//! | `oid` | names of commits, as libgit2 has them |
//! | `ref_name` | names of branches and tags that Git accepts |
//! | `config_text` | Git's configuration format, in a repository of others |
//! | `export`, `gitmodules` | its files, submodules included |
//! | `checkout` | what a checkout says of a folder that is published |
//! | `opened` | opens a repository on this machine, or asks `git` where libgit2 cannot read it |
//! | `stand_in`, `asked` | a repository of mu's own in the place of one that libgit2 cannot read, and what `git` says through it |
//! | `surroundings`, `ahead`, `modes` | what the repository around a workspace, and a clone inside it, say of edited packages |
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

mod ahead;
mod asked;
mod checkout;
mod commit;
mod config_text;
mod database;
mod dates;
mod export;
mod gitmodules;
mod listing;
mod manifest;
mod modes;
mod modules;
mod oid;
mod opened;
mod pack;
pub mod patch;
mod programs;
mod provider;
mod ref_name;
mod remote_url;
mod repositories;
mod repository;
mod root;
mod settings;
mod snapshot;
mod stand_in;
mod surroundings;
mod transport;
mod unsaved;
mod version;
mod wire;
mod words;
mod working_copy;

pub use crate::checkout::Checkout;
pub use crate::opened::LocalGit;
pub use crate::provider::{CheckFolder, GitOptions, GitProvider};
pub use crate::ref_name::{BranchName, TagName};
pub use crate::stand_in::StandInError;
pub use crate::surroundings::{Standing, Surroundings, SurroundingsError};
pub use crate::unsaved::{Kind, Pushed, Tips, Unsaved, WorkState, begin_repository};
pub use crate::working_copy::{Beginning, WorkingCopies, checked_url, folder_of, named_url};
