//! The tests of the `mu` program: each runs the real binary with its own home, cache and workspace.
//!
//! Modules have their own tests for what they compute. These tests check what a user sees, and what is on
//! disk afterwards. There is one file for each topic.

// The tests use other programs and facts of Unix.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

mod add;
mod affected;
#[cfg(feature = "url")]
mod archive_signatures;
#[cfg(feature = "url")]
mod archives;
#[cfg(feature = "oci")]
mod audit;
mod bare_base;
mod bots;
mod broken_manifests;
mod buckets;
mod build;
mod capabilities;
mod care;
mod changelogs;
mod channels;
mod chart_aliases;
mod chart_repositories;
mod chart_signatures;
mod closures;
mod completions;
mod conflict;
mod contents;
#[cfg(feature = "oci")]
mod continuity;
mod crossplane;
#[cfg(feature = "oci")]
mod crossplane_moves;
mod diff;
mod digest;
mod dist;
mod edit;
mod edit_access;
mod edit_story;
mod errors;
mod fetch;
mod find;
mod flags;
mod fresh;
mod get;
mod git;
mod git_committed;
mod git_config;
mod git_dates;
mod git_formats;
mod git_signatures;
mod git_ssh;
mod git_stopped;
mod git_words;
mod helm;
mod help;
mod hint_states;
mod hint_table;
mod hints;
mod hostile;
mod hostile_checkout;
mod hostile_hub;
mod hostile_links;
mod hub;
mod hub_browse;
mod hub_browser;
mod hub_check;
mod hub_faults;
mod hub_full;
mod hub_large;
mod hub_load;
mod hub_page;
mod hub_private;
mod hub_proxy;
mod hub_publisher;
mod hub_round_trip;
mod hub_serve;
#[cfg(all(feature = "publish", feature = "oci"))]
mod hub_story;
mod hub_tags;
mod hub_upstream;
mod identity;
mod import;
#[cfg(feature = "olm")]
mod index_entries;
mod info;
#[cfg(feature = "olm")]
mod installed;
mod inventory;
mod joined;
mod json;
mod kcl;
mod kcl_git;
mod kcl_story;
#[cfg(feature = "oci")]
mod keyless;
#[cfg(feature = "keyring")]
mod keyring;
mod keys;
mod kudo;
#[cfg(all(feature = "git", feature = "oci", feature = "olm"))]
mod large_hub;
mod leads;
mod lenient;
mod library;
mod limits;
mod local_override;
mod lock;
mod lock_facts;
mod login;
#[cfg(feature = "publish")]
mod login_asks;
#[cfg(feature = "olm")]
mod memory;
mod minimal;
mod mirror;
mod mirror_example;
mod mirror_foreign;
mod mirror_hub;
#[cfg(feature = "oci")]
mod mirror_provenance;
mod mislabelled;
mod missing;
mod moved_registry;
#[cfg(feature = "git")]
mod mu_story;
mod named;
mod names;
mod no_lock;
#[cfg(all(feature = "git", feature = "oci", feature = "olm", feature = "url"))]
mod not_again;
#[cfg(feature = "oci")]
mod oci;
#[cfg(feature = "oci")]
mod oci_auth;
mod oci_charts;
#[cfg(feature = "oci")]
mod oci_hostile;
#[cfg(feature = "oci")]
mod oci_indexes;
mod oci_others;
#[cfg(feature = "oci")]
mod oci_tags;
#[cfg(feature = "olm")]
mod olm;
#[cfg(feature = "exec")]
mod one_workspace;
mod outside;
mod pack;
mod packs;
mod packs_here;
mod passed_over;
mod pasted;
#[cfg(feature = "git")]
mod patch;
mod pin;
#[cfg(feature = "oci")]
mod pinned_digests;
mod placement;
mod places;
mod plugin_examples;
mod plugin_revisions;
mod plugins;
#[cfg(unix)]
mod programs;
mod progress;
mod publish;
mod questions;
#[cfg(all(feature = "git", feature = "oci"))]
mod random_worlds;
mod reasons;
mod registries;
mod replaces;
mod resolve;
mod robust;
mod runtime;
mod said;
mod search;
mod settings;
mod site;
mod skopeo;
mod stopped;
mod submodules;
mod support;
mod tables;
mod team;
#[cfg(feature = "git")]
mod team_story;
#[cfg(feature = "oci")]
mod trust;
#[cfg(feature = "oci")]
mod trust_away;
mod trust_carried;
mod trust_story;
mod update;
mod upgrades;
mod vendor;
mod vendor_helm;
#[cfg(feature = "oci")]
mod verify_trust;
mod versions;
mod ways_out;
mod ways_out_files;
mod written;
mod wrong_inputs;
