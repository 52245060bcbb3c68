//! `registry add` and `registry remove`: edits of the settings that keep what a person wrote.

use std::path::PathBuf;

use crate::fs;
use crate::ops::{Code, CommandError, Session};
use crate::workspace::{CONFIG_FILE, MU_FOLDER, WORKSPACE_FILE, edit};

/// A registry to add.
#[derive(Debug, Clone, Default)]
pub struct NewRegistry {
    /// What the ids of its packages begin with.
    pub prefix: String,
    /// Where it is.
    pub url: Option<String>,
    /// Which provider serves it.
    pub provider: Option<String>,
    /// Whether plain http to it is fine.
    pub insecure: bool,
    /// Whether `v1` and `1.28` are versions.
    pub lenient: bool,
}
