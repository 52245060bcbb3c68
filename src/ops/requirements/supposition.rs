//! The question what would be chosen if other things were asked for.

use crate::workspace::Resolution;

/// What to suppose.
#[derive(Debug, Clone, Default)]
pub struct WhatIf {
    /// What is asked for, instead of what the workspace asks for; nothing means what it does.
    pub references: Vec<String>,
    /// What is asked for, too.
    pub with: Vec<String>,
    /// Packages that nobody asks for.
    pub without: Vec<String>,
    /// Versions that are installed.
    pub installed: Vec<String>,
    /// Facts of the runtime, `NAME=VALUE`.
    pub runtime: Vec<String>,
    /// Versions never to pick.
    pub exclude: Vec<String>,
    /// Only versions in this channel, of the references given here.
    pub channel: Option<String>,
    /// Only versions of this app version, of the references given here.
    pub app_version: Option<String>,
    /// Whether prereleases will do, for the references given here.
    pub prereleases: bool,
    /// The strategy that chooses, if not the one in force.
    pub resolution: Option<Resolution>,
    /// Whether the requirements of the outcome are to be what the minimal strategy would write, which takes another selection;
    /// else they are what was asked for.
    pub tidies: bool,
}
