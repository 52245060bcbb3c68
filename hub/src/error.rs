//! The error of everything that is done to a hub: what was tried, where, and what to do about it.

use mu_provider_hub::archive::ArchiveError;

use crate::place::credentials_hint;
use crate::root::HUB_FILE;

/// Why a hub could not be opened, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The text names no place where a hub can be.
    #[error("`{place}` is no place for a hub: {reason}")]
    Place {
        /// The text.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no `hub.json`.
    #[error("there is no hub at `{place}`: it has no hub.json")]
    Missing {
        /// Where it was looked for.
        place: String,
    },
    /// A file of the hub is not what it should be, so nothing is built on it.
    #[error("`{path}` of the hub at `{place}` is broken: {reason}")]
    Broken {
        /// The hub.
        place: String,
        /// The file, relative to the hub.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What was to be published, yanked or tagged breaks a rule.
    #[error("{what} is refused: {reason}")]
    Refused {
        /// What was refused.
        what: String,
        /// The rule.
        reason: String,
    },
    /// The archive breaks a rule, or is damaged.
    #[error("the archive of {package} is refused")]
    Archive {
        /// The package and version.
        package: String,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// What is in the archive is not what the index line says.
    #[error(
        "the archive of {package} is not what its index line says: its {what} is {found}, not {expected}"
    )]
    Mismatch {
        /// The package and version.
        package: String,
        /// What differs.
        what: &'static str,
        /// What the line says.
        expected: String,
        /// What the archive says.
        found: String,
    },
    /// The version is there already, with other content.
    #[error("{package} is published already, with other content (there {present}, here {offered})")]
    Exists {
        /// The package and version.
        package: String,
        /// The digest that is there.
        present: String,
        /// The digest that was offered.
        offered: String,
    },
    /// There is no such package, or no such version of it.
    #[error("the hub at `{place}` has no {package}")]
    NotFound {
        /// The hub.
        place: String,
        /// The package, perhaps with a version.
        package: String,
    },
    /// The package is not as the one who changes it has seen it.
    #[error("{package} has changed meanwhile")]
    Changed {
        /// The package.
        package: String,
    },
    /// The place refused to read or write.
    #[error("cannot {action} `{path}` of the hub at `{place}`")]
    Store {
        /// What was tried.
        action: &'static str,
        /// The file, relative to the hub.
        path: String,
        /// The hub.
        place: String,
        /// The reason.
        source: Box<object_store::Error>,
    },
    /// This machine refused something that is needed on the way.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// The reason.
        source: std::io::Error,
    },
    /// Others changed the same file each time that this was tried.
    #[error(
        "gave up changing `{path}` of the hub at `{place}`: others changed it {attempts} times meanwhile"
    )]
    Busy {
        /// The file, relative to the hub.
        path: String,
        /// The hub.
        place: String,
        /// How often it was tried.
        attempts: u32,
    },
}

impl HubError {
    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { place } => Some(format!("`mu hub init {place}` makes one there")),
            Self::Broken { place, path, .. } if path == HUB_FILE => Some(format!(
                "put back a copy of it; or remove it, and run `mu hub init {place}` and \
                 `mu hub check {place} --repair`, which make it anew"
            )),
            Self::Store { place, action: "write", source, .. }
                if matches!(**source, object_store::Error::NotFound { .. }) =>
            {
                Some(format!(
                    "the bucket of `{place}` has to be there: make it with its store's own tools"
                ))
            }
            Self::Store { place, .. } => credentials_hint(place).map(str::to_owned),
            Self::Broken { place, .. } => {
                Some(format!("`mu hub check {place}` lists everything that is wrong with it"))
            }
            Self::Exists { .. } => {
                Some("a published version never changes: publish a higher one".to_owned())
            }
            Self::Busy { .. } | Self::Changed { .. } => Some("try again".to_owned()),
            _ => None,
        }
    }
}
