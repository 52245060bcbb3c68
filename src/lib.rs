//! mu, a package manager for things that belong to no single programming language: the map of the library.
//!
//! Another program can do everything that a command does through [`ops`]. The library never prints, and never
//! reads the environment, the current folder or the date: the caller passes these in as an
//! [`env::Environment`]. [`report`] and [`cli`] are the part that interacts with people.
//!
//! Data flows one way, and a module uses only modules above it in this table; a test checks this.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`env`](mod@env), [`fs`] | the only doors to the machine: environment and clock; files, atomic writes, locks |
//! | [`reference`](mod@reference) | texts that name packages, ids, versions, ranges; no I/O; in the crate `mu-manifest` |
//! | [`manifest`] | `Mu.yaml` and `Mu.json`: reading with positions, editing that keeps the layout; the crate `mu-manifest` |
//! | [`select`] | from requirements to one version of each package, or to a conflict; no I/O; the crate `mu-select` |
//! | [`formats`] | the manifests of other ecosystems; how they are read is in the crate `mu-formats` |
//! | [`workspace`] | the root, the settings, the workspace's own packages |
//! | [`contents`] | which files of a folder are its package, as its owner would pack it |
//! | [`search`] | the eight places where a package may be |
//! | [`index`] | from an id to its releases, over the providers; which provider serves what |
//! | [`lock`] | `Mu.lock` |
//! | [`trust`] | who vouches for a version, by the rules of the settings |
//! | [`store`] | every tree that was fetched, once, under the digest of its content |
//! | [`packs`] | what is installed, and the transaction that changes it |
//! | [`ops`] | everything that a command does: the verbs, above five floors that they share |
//! | [`report`] | how things look: colour, progress, tables, errors, JSON |
//! | [`cli`] | arguments in, one operation, its answer out |
//!
//! The providers (`providers/hub`, `git`, `helm`, `oci`, `olm`, `url`, `path` and `exec`) are separate crates. They know the
//! protocol in `providers/api`, the formats of other ecosystems in `crates/formats`, and nothing of this library. The same holds
//! for `crates/hub/`, which writes hubs, `crates/hub-server/`, which serves them in the program `mu-hub`, and `crates/bucket/`, which opens
//! buckets for it. `crates/picture/` draws dependency graphs for both. `crates/trust/` verifies signatures. `crates/heap/` prepares the
//! memory of the program.
//!
//! # Files on disk
//!
//! | file | owner |
//! | --- | --- |
//! | `Mu.yaml`, `Mu.json` | the user; read and edited by [`manifest`] |
//! | `.mu-RANDOM` beside any file | [`fs`]; a file on its way |
//! | `.mu/workspace.yaml`, `~/.mu/config.yaml` | the user; read and edited by [`workspace`] |
//! | `.mu/{manifest,workspace}.schema.json` | `ops::init`; for editors, and never read |
//! | `~/.mu/credentials.{json,lock}` | [`ops::login`]; only its owner can read it |
//! | `Mu.lock`, `~/.mu/Mu.lock` | [`lock`] |
//! | `.mu/edits.json`, `.mu/edits.lock` | [`workspace::edits`], [`lock`]; only this machine's |
//! | `.mu/edit/` | the user's clones; made and put into the trash there by [`ops`] |
//! | `.git/info/exclude` | the user; `providers/git` adds and removes the lines of edits |
//! | `.mu/packs/BASE/NAME/`, `~/.mu/packs/BASE/NAME/` | [`packs`]; what is inside is the package's |
//! | `.mu/packs/{.gitignore,.gitattributes,vendored.json}`, `.mu/packs/.mu/{lock,partial.json,staging/}`, `CACHE/packs/` | [`packs`] |
//! | `.mu/packs/evidence.jsonl`, `.mu/packs/.mu/archives/` | `ops::apply`; read by [`trust`], and believed no more than a registry |
//! | `.helmignore` | the user; `ops::apply::kinds` adds lines for mu's own files |
//! | `.mu/patch/`, `patches/` | `ops::patch` |
//! | `$MUROOT/lib/packs/` | whoever installed the runtime; read by [`search`] |
//! | `CACHE/store/{lock,trees/,linked/,staging/}` | [`store`] |
//! | `CACHE/index/*.index`, `*.lock` | [`index`] |
//! | `CACHE/builds/`, `~/.mu/trust/builds.json` | [`ops::build`] |
//! | `CACHE/trust/`, `CACHE/evidence/` | [`trust`] |
//! | `CACHE/advisories/`, `CACHE/mirrors/`, `CACHE/told/`, `~/.mu/trust/folders.json` | [`ops`] |
//! | `CACHE/git/` | `providers/git` |
//! | `CACHE/catalogs/` | `providers/hub` |
//! | `CACHE/downloads/` | `providers/hub`, `providers/helm`, `providers/oci` |
//! | `CACHE/charts/` | `providers/helm` |
//! | `CACHE/operators/` | `providers/olm` |
//! | `CACHE/registries/` | `providers/oci` |
//! | `CACHE/plugins/` | `providers/exec` |
//! | `CACHE/hub-staging/` | `mu-hub` |
//! | `CACHE/hub-catalogs/` | `mu-hub-server` |
//! | `hub.json`, `index/`, `packs/`, `signatures/` and the rest of a hub | `crates/hub/`, the crate `mu-hub`; read by `providers/hub` |
//!
//! `CACHE` is `$MU_CACHE_DIR`, or `mu` in the platform's cache folder. All of it can be deleted at any time.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]

pub mod cli;
#[cfg_attr(
    not(all(feature = "hub", feature = "path", feature = "publish")),
    allow(dead_code, unused_imports, reason = "each of these features needs a part of it")
)]
pub mod contents;
pub mod env;
pub mod formats;
pub mod index;
pub mod lock;
pub mod ops;
pub mod packs;
pub mod report;
pub mod search;
pub mod store;
pub mod trust;
pub mod workspace;

pub use mu_manifest::{self as manifest, reference};
pub use mu_provider::fs;
pub use mu_select as select;
