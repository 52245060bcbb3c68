//! Where a package is, from the view of its provider.
//!
//! A reference names a package, and the registries of a workspace turn it into a location. Nothing here
//! connects to anything.

use crate::Lead;

/// The place of one package: a root URL, and the path below it.
///
/// | provider | `root` | `path` | `folder` |
/// | --- | --- | --- | --- |
/// | hub | the folder that holds `hub.json` | the package's name, `aws/ec2` | `None` |
/// | git, as written | the host, `https://host/` | the rest, `.git` marks kept: `group/repo.git/sub` | `None` |
/// | git, settled | the repository, `https://host/group/repo.git` | empty | `Some("sub")`, `Some("")` for its root |
/// | helm | the folder that holds `index.yaml` | the chart | `None` |
/// | oci | the registry, `https://host/`, and the part before names there | the rest of the repository's name | `None` |
/// | olm | the catalog: a folder, a file, a server, an image | the operator | `None` |
/// | url | the folder that the archive is in, on a web server | the archive's name | `None` |
/// | path | the folder, `file:///srv/ec2/` | empty | `None` |
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The URL of the registry, host, repository or folder; it was named by somebody who may name it.
    pub root: Lead,
    /// The package below `root`, slash-separated, without a leading slash.
    pub path: String,
    /// The package's folder in a Git repository (`""` for the root), once the repository's root is known.
    pub folder: Option<String>,
    /// Whether plain http to another machine was allowed for this registry.
    pub insecure: bool,
    /// Whether `v1` and `1.28` count as versions (`versions: lenient`).
    pub lenient: bool,
    /// Why somebody wants to know when versions were published.
    pub dates: Dates,
}

/// Why somebody wants to know when versions were published, where finding it out takes more requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dates {
    /// Nobody does.
    #[default]
    Ignored,
    /// To show it: an unknown date is shown as such.
    Shown,
    /// To choose versions by it: versions without a date cannot be chosen, so the user is warned.
    Needed,
}

impl Location {
    /// A location without special permissions. For Git, the repository's root is not known yet.
    pub fn new(root: Lead, path: impl Into<String>) -> Self {
        Self {
            root,
            path: path.into(),
            folder: None,
            insecure: false,
            lenient: false,
            dates: Dates::default(),
        }
    }

    /// The location as a person would write it, for messages.
    pub fn describe(&self) -> String {
        let root = self.root.to_string();
        let mut text = if self.path.is_empty() {
            root
        } else {
            format!("{}/{}", root.trim_end_matches('/'), self.path)
        };
        if let Some(folder) = self.folder.as_deref().filter(|folder| !folder.is_empty()) {
            text = format!("{}/{folder}", text.trim_end_matches('/'));
        }
        text
    }
}
