//! The error of every operation on a hub: what was tried, where, and what to do about it.

use std::error::Error;
use std::fmt;

use mu_archive::ArchiveError;
#[cfg(feature = "buckets")]
use mu_bucket::CredentialsNotProvided;
use mu_provider::fs::FileError;

use crate::file::{HUB_FILE, LINK};

/// Why a hub could not be opened, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The text does not name a place where a hub can be.
    #[error("`{}` is not a place for a hub: {reason}", mu_provider::place_without_secrets(.place))]
    Place {
        /// The text.
        place: String,
        /// The reason.
        reason: String,
    },
    /// There is no `hub.json`.
    #[error("there is no hub at `{place}`: it has no hub.json")]
    Missing {
        /// Where it was looked for.
        place: String,
    },
    /// A file of the hub is not valid, so the operation stops.
    #[error("`{path}` of the hub at `{place}` is broken: {reason}")]
    Broken {
        /// The hub.
        place: String,
        /// The file, relative to the hub.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The hub is of another version than this program writes.
    #[error("the hub at `{place}` has version {version}, and this mu writes version {known}")]
    OtherVersion {
        /// The hub.
        place: String,
        /// Its version.
        version: u32,
        /// The version of this program.
        known: u32,
    },
    /// A version to publish, yank or tag breaks a rule.
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
        /// The reason.
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
    /// The index line and the manifest in the archive disagree about something that versions are chosen by.
    #[error("{package} is refused: {difference}")]
    Differs {
        /// The package and version.
        package: String,
        /// The first difference.
        difference: String,
    },
    /// The version is there already, with other content.
    #[error(
        "{package} is already published with different content (published: {present}, new: {offered})"
    )]
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
    /// The package has changed after it was read.
    #[error("{package} has changed in the meantime")]
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
        source: StoreError,
    },
    /// An operation of this machine failed.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// The reason.
        source: std::io::Error,
    },
    /// A file of this machine could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Others changed the same file at every attempt.
    #[error(
        "gave up changing `{path}` of the hub at `{place}`: others changed it {attempts} times in the meantime"
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

/// Why an object store refused, in the words of its answer if these are meant for people.
#[derive(Debug)]
pub struct StoreError(Box<dyn Error + Send + Sync>);

impl StoreError {
    pub(crate) fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }

    /// The error about missing credentials, if it is one.
    #[cfg(feature = "buckets")]
    fn no_credentials(&self) -> Option<&CredentialsNotProvided> {
        mu_provider::causes(&*self.0).find_map(|error| error.downcast_ref())
    }

    /// Without object stores, nothing has credentials.
    #[cfg(not(feature = "buckets"))]
    fn no_credentials(&self) -> Option<&std::convert::Infallible> {
        None
    }

    /// Whether the store says that there is no such thing.
    fn is_missing(&self) -> bool {
        #[cfg(feature = "buckets")]
        if let Some(error) = self.0.downcast_ref() {
            return matches!(error, object_store::Error::NotFound { .. });
        }
        false
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.no_credentials() {
            // If the user forgot to set credentials, it does not help to list where they were looked for.
            Some(none) => none.fmt(formatter),
            None => formatter.write_str(&without_markup(&self.0.to_string())),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if self.no_credentials().is_some() {
            return None;
        }
        // The cause repeats the answer, with its markup.
        let text = self.0.to_string();
        self.0.source().filter(|_| without_markup(&text) == text)
    }
}

/// A message with the code and text of the answer instead of its XML.
fn without_markup(text: &str) -> String {
    let part = |begin: &str, end: &str| {
        let (_, rest) = text.split_once(begin)?;
        rest.split_once(end)?.0.lines().next()
    };
    let begin = ["<?xml", "<Error>"].iter().filter_map(|begin| text.find(begin)).min();
    let (Some(begin), Some(code)) = (begin, part("<Code>", "</Code>")) else {
        return text.to_owned();
    };
    let before = text[..begin].trim_end_matches(['\u{feff}', ' ']);
    match part("<Message>", "</Message>") {
        Some(message) => format!("{before} {code}: {message}"),
        None => format!("{before} {code}"),
    }
}

impl HubError {
    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { place } => Some(format!("`mu hub init {place}` creates one there")),
            Self::OtherVersion { .. } => {
                Some("nothing is wrong with it: use a mu for hubs of that version".to_owned())
            }
            Self::Broken { place, path, .. } if path == HUB_FILE => Some(format!(
                "restore it from a backup; or remove it, and run `mu hub init {place}` and \
                 `mu hub check {place} --repair`, which rebuild it"
            )),
            Self::Store { place, action: "write", source, .. } if source.is_missing() => {
                Some(format!(
                    "the bucket of `{place}` must exist: create it with the tools of its store"
                ))
            }
            #[cfg(feature = "buckets")]
            Self::Store { place, .. } => mu_bucket::credentials_hint(place).map(str::to_owned),
            Self::Broken { reason, .. } if reason == LINK => {
                Some("remove the link, or put the file or folder itself there".to_owned())
            }
            Self::Broken { place, .. } => {
                Some(format!("`mu hub check {place}` lists everything that is wrong with it"))
            }
            Self::Exists { .. } => {
                Some("a published version never changes: publish a higher one".to_owned())
            }
            Self::Differs { .. } => Some(
                "its publisher must fix the index line; `mu hub check PLACE` lists such lines"
                    .to_owned(),
            ),
            Self::NotFound { package, .. } => Some(match package.split_once(' ') {
                Some((name, _)) => {
                    format!("`mu versions {name}` lists the versions that there are")
                }
                None => {
                    let leaf = package.rsplit('/').next().unwrap_or(package);
                    format!("`mu search {leaf}` looks for packages by words")
                }
            }),
            Self::Busy { .. } | Self::Changed { .. } => Some("try again".to_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_markup;

    #[test]
    fn answers_are_told_without_their_markup() {
        let azure = "403 Forbidden: \u{feff}<?xml version=\"1.0\"?>\n<Error>\n  <Code>AuthorizationFailure</Code>\n  \
                     <Message>Server failed to authenticate.\nRequestId:3385\nTime:now</Message>\n</Error>";
        assert_eq!(
            without_markup(azure),
            "403 Forbidden: AuthorizationFailure: Server failed to authenticate."
        );
        let s3 = "404: <Error><Code>NoSuchBucket</Code><Message>It is not there</Message></Error>";
        assert_eq!(without_markup(s3), "404: NoSuchBucket: It is not there");
        let bare = "404: <Error><Code>NoSuchKey</Code></Error>";
        assert_eq!(without_markup(bare), "404: NoSuchKey");
        for other in ["connection refused", "<Error>", "<Code>a</Code>", "<?xml <Code>a"] {
            assert_eq!(without_markup(other), other);
        }
    }
}
