//! The identity of a package: base and name, without protocol and version.

use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::error::{Fault, ReferenceError};
use super::protocol::Protocol;
use super::{Base, Name, base, name};

/// Base and name of a package, `hub.mu.com/aws/ec2`. Cheap to clone.
///
/// The base of a text ends at its first slash, so the text alone identifies the package.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(inline)]
pub struct PackageId(Arc<str>);

/// Whether a name means something else without a base: one of one segment means a package's own namespace first,
/// and the first segment of another may look like a host.
pub fn needs_base(name: &str) -> bool {
    name.bytes().find(|byte| matches!(byte, b'/' | b'.')) != Some(b'/')
}

impl PackageId {
    /// The id of the package that is called `name` at `base`.
    pub fn new(base: &Base, name: &Name) -> Self {
        Self([base.as_str(), name.as_str()].concat().into())
    }

    /// Reads an id as it prints: a base, always, and a name.
    ///
    /// # Errors
    ///
    /// When the text is not a base and name.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        Self::from_text(text).map_err(|fault| ReferenceError::new("package id", text, fault))
    }

    /// The id of the package in a folder of this machine, made from the folder's absolute path.
    pub fn local(folder: &Path) -> Self {
        let mut path = String::new();
        for component in folder.components() {
            if let Component::Normal(segment) = component {
                path.push('/');
                path.push_str(&segment.to_string_lossy());
            }
        }
        Self::new(&Base::localhost(), &Name::from_folder(&path))
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The base.
    pub fn base(&self) -> Base {
        base::base_from_trusted(&self.0[..self.name_start()])
    }

    /// The text of the base, which ends in a slash.
    pub fn base_str(&self) -> &str {
        &self.0[..self.name_start()]
    }

    /// The name.
    pub fn name(&self) -> Name {
        name::name_from_trusted(self.name_str())
    }

    /// The text of the name.
    pub fn name_str(&self) -> &str {
        &self.0[self.name_start()..]
    }

    /// The shortest name that means this package wherever `base` is the default: without the base, unless the
    /// rest [needs one](needs_base).
    pub fn short(&self, base: &Base) -> &str {
        let name = self.0.strip_prefix(base.as_str());
        name.filter(|name| !needs_base(name)).unwrap_or(self.as_str())
    }

    fn name_start(&self) -> usize {
        self.0.find('/').expect("an id is made of a base, which ends in a slash, and a name") + 1
    }

    fn from_text(text: &str) -> Result<Self, Fault> {
        let Some((authority, path)) = text.split_once('/') else {
            return Err(Fault::new(text.len(), "`/` and a name after the base"));
        };
        let host = base::normal_host(authority, &Protocol::Https)?;
        let name =
            name::without_git_marks(path).map_err(|fault| fault.shifted(authority.len() + 1))?;
        // Locks and caches are full of ids as they print.
        if host == authority && name == path {
            return Ok(Self(text.into()));
        }
        Ok(Self([&*host, "/", &*name].concat().into()))
    }
}

impl From<PackageId> for String {
    fn from(id: PackageId) -> Self {
        id.0.as_ref().to_owned()
    }
}

/// The whole id, shared with it.
impl From<&PackageId> for Arc<str> {
    fn from(id: &PackageId) -> Self {
        Self::clone(&id.0)
    }
}

impl fmt::Display for PackageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}
