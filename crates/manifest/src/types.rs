//! The content of a manifest, as the rest of mu sees it.
//!
//! These are plain data. `read.rs` and `requirement.rs` read it, and `edit` changes the file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::source::choice;
use mu_provider::{InnerPath, without_secrets};

use super::{Capability, Constraint, Globs, Requirement};
use crate::reference::{Range, Reference, Version};

/// The format of manifests that this mu reads.
pub const API_VERSION: &str = "mu/v1";

/// A manifest, `Mu.yaml` or `Mu.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// A name, or base and name; never with a protocol or a version.
    pub name: Reference,
    /// The package's version: of a composite package `appVersion-version`.
    pub version: Option<Version>,
    /// The key `version` as it is written: for a composite package, only the revision.
    pub written_version: Option<String>,
    /// The version of the software that the package contains, as free text.
    pub app_version: Option<String>,
    /// How the package's versions are formed.
    pub versioning: Versioning,
    /// Which texts are versions of the package.
    pub versions: Versions,
    /// The format of the package, if it is another ecosystem's: `helm`.
    pub format: Option<String>,
    /// The manifest's format, if it has the key.
    pub api_version: Option<String>,
    /// The versions of mu that can use the package.
    pub mu_version: Option<Range>,
    /// What the package is, in a sentence.
    pub description: Option<String>,
    /// Its authors.
    pub authors: Vec<Person>,
    /// Its maintainers.
    pub maintainers: Vec<Person>,
    /// Where to read more.
    pub website: Option<String>,
    /// Where its source is: the URL of a repository and, after a `#`, the folder in it.
    pub repository: Option<String>,
    /// Why nobody should begin to use it, if nobody looks after it any more.
    pub deprecated: Option<String>,
    /// The licence, usually an SPDX expression.
    pub license: Option<String>,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// The file to show about it, relative to the package.
    pub readme: Option<InnerPath>,
    /// The files to pack; all files if the key is left out.
    pub files: Globs,
    /// What it depends on.
    pub dependencies: Vec<Requirement>,
    /// What it depends on while it is in the workspace.
    pub dev_dependencies: Vec<Requirement>,
    /// Packages that it supersedes.
    pub replaces: Vec<Reference>,
    /// Capabilities that it provides.
    pub provides: Vec<Capability>,
    /// Capabilities that some package must provide.
    pub requires: Vec<Capability>,
    /// What facts of the runtime must be.
    pub constraints: BTreeMap<String, Constraint>,
    /// Packages and capabilities that must not be used together with it.
    pub conflicts: Vec<Reference>,
    /// Channels that it is published to, the best first.
    pub channels: Vec<String>,
    /// The channel to use if none is requested.
    pub default_channel: Option<String>,
    /// From which versions it can be upgraded to.
    pub upgrade: Vec<Upgrade>,
    /// Elements that can be referred to below the package.
    pub exports: BTreeMap<String, ExportedElement>,
    /// How it is built.
    pub build: Option<BuildRecipe>,
    /// Whether mu generated this manifest, for a package that has none (`x-generated: true`).
    pub generated: bool,
}

impl Manifest {
    /// What it depends on, also while it is in the workspace.
    pub fn all_dependencies(&self) -> impl Iterator<Item = &Requirement> {
        self.dependencies.iter().chain(&self.dev_dependencies)
    }
}

choice! {
    /// Which texts are versions of a package.
    #[derive(Default)]
    pub enum Versions {
        /// Semantic versions.
        #[default]
        Strict = "strict",
        /// Also versions that leave numbers out, which are 0 then: `1.28`.
        Lenient = "lenient",
    }
}

choice! {
    /// How a package's versions are formed.
    #[derive(Default)]
    pub enum Versioning {
        /// The manifest's `version` is the version.
        #[default]
        Semver = "semver",
        /// The version is `appVersion-version`.
        Composite = "composite",
    }
}

/// A person or team.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The mail address.
    pub email: Option<String>,
    /// A page.
    pub url: Option<String>,
}

impl Person {
    /// Reads `Name <email> (url)`, where everything but the name may be missing.
    pub fn parse(text: &str) -> Self {
        let mut rest = text.trim();
        let mut take = |open: char, close: char| {
            let body = rest.strip_suffix(close)?;
            let start = body.rfind(open)?;
            let found = body[start + 1..].trim().to_owned();
            rest = body[..start].trim_end();
            Some(found)
        };
        let url = take('(', ')');
        let email = take('<', '>');
        Self { name: rest.to_owned(), email, url }
    }
}

/// Prints `Name <email> (url)`.
impl fmt::Display for Person {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        if let Some(email) = &self.email {
            write!(formatter, " <{email}>")?;
        }
        if let Some(url) = &self.url {
            write!(formatter, " ({url})")?;
        }
        Ok(())
    }
}

/// From which versions a version can be upgraded to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Upgrade {
    /// The channel of the upgrade; without one, it is possible in every channel.
    pub channel: Option<String>,
    /// The version right before it.
    pub replaces: Option<Version>,
    /// Versions that it can also follow.
    pub skips: Vec<Version>,
    /// A range of versions that it can also follow.
    pub skip_range: Option<Range>,
}

/// An element that a package exports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportedElement {
    /// What it is.
    pub kind: Option<ExportKind>,
    /// The file it is in, relative to the package.
    pub path: Option<InnerPath>,
}

choice! {
    /// What an exported element is.
    pub enum ExportKind {
        /// A module.
        Module = "module",
        /// A class.
        Class = "class",
        /// A function.
        Function = "function",
        /// A variable.
        Variable = "variable",
    }
}

/// How a package is built; never run by what installs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRecipe {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The files and folders that it creates, relative to the package.
    pub outputs: Vec<InnerPath>,
    /// The environment variables that it gets, besides `PATH` and a few fixed ones.
    pub env: Vec<String>,
    /// The programs that it runs, whose content decides whether it is built again.
    pub tools: Vec<String>,
}

/// The part of a manifest that is read if only the package's identity and exports matter.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// A name, or base and name.
    pub name: Option<Reference>,
    /// The package's version: of a composite package `appVersion-version`.
    pub version: Option<Version>,
    /// Names of the exported elements.
    pub exports: Vec<String>,
    /// Whether mu wrote this manifest.
    pub generated: bool,
}

/// Something in a file that is allowed but probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWarning {
    path: PathBuf,
    line: Option<usize>,
    message: String,
}

impl FileWarning {
    /// Creates a warning about the file or folder at `path`; `line` counts from 1.
    pub fn new(path: &Path, line: Option<usize>, message: impl Into<String>) -> Self {
        let message = message.into();
        let message = super::source::printable(&without_secrets(&message)).into_owned();
        Self { path: path.to_owned(), line, message }
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The line in the file, counted from 1.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// The message: what mu noticed, and what would be right.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Prints `path:line: message`.
impl fmt::Display for FileWarning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.to_string_lossy();
        formatter.write_str(&super::source::printable(&path))?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        write!(formatter, ": {}", self.message)
    }
}
