//! The error that all providers return.
//!
//! The kind decides how the caller reacts (try elsewhere, retry later, give up) and becomes the code that
//! users see. The text says what was tried, and where. There are no variants for protocol details on purpose.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::brief;

/// An error, what caused it, what caused that, and so on.
pub fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// An error with its causes, in one line.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let texts: Vec<String> = causes(error).map(ToString::to_string).collect();
    texts.join(": ")
}

/// What went wrong, as far as a caller can react to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The place answered, and it has no such package, version, tag or commit.
    NotFound,
    /// The place could not be reached, the connection was lost, or it answered with a server error.
    Network,
    /// The place requires credentials, or refused the given ones.
    Auth,
    /// The content is not the expected one, or breaks the rules for hostile content.
    Integrity,
    /// The network was needed, and `--offline` forbids it.
    Offline,
    /// The place answered with something that is not its protocol.
    Protocol,
    /// The request was refused before anything was sent, such as plain http to another machine.
    Refused,
    /// The manifest that was found cannot be read.
    Manifest,
    /// A plugin broke the protocol, was silent, or died.
    Plugin,
    /// A file on this machine could not be read or written.
    Io,
}

/// The value, or `None` if it failed with an error of this kind, which is an answer there.
///
/// # Errors
///
/// Any other error.
pub fn none_if<T>(
    result: Result<T, ProviderError>,
    kind: ErrorKind,
) -> Result<Option<T>, ProviderError> {
    match result {
        Err(error) if error.kind() == kind => Ok(None),
        result => result.map(Some),
    }
}

/// A failure of a provider: what was tried and where, the reason, and what to do next.
#[derive(Debug, Clone)]
pub struct ProviderError {
    kind: ErrorKind,
    message: String,
    hints: Vec<String>,
    is_without_tls: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl ProviderError {
    /// Creates an error with a message: in lower case, without a full stop, naming the URL or path; as
    /// [`brief`] as a person reads it.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = brief(&message.into()).into_owned();
        Self { kind, message, hints: Vec::new(), is_without_tls: false, source: None }
    }

    /// Adds the reason.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Adds one thing that the user can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Hints at this one thing, in place of what was said before.
    #[must_use]
    pub fn hint_instead(mut self, hint: impl Into<String>) -> Self {
        self.hints = vec![hint.into()];
        self
    }

    /// Says that the server did not answer with TLS, and so perhaps speaks plain http.
    #[cfg(feature = "http")]
    #[must_use]
    pub(crate) fn without_tls(mut self) -> Self {
        self.is_without_tls = true;
        self
    }

    /// Adds that this many attempts in this time failed.
    #[cfg(feature = "http")]
    #[must_use]
    pub(crate) fn after(mut self, attempts: usize, time: std::time::Duration) -> Self {
        if attempts > 1 {
            let seconds = time.as_secs_f32();
            let gave_up = format!(" (gave up after {attempts} attempts in {seconds:.1} s)");
            self.message.push_str(&gave_up);
        }
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the server did not answer with TLS, and so perhaps speaks plain http.
    pub fn is_without_tls(&self) -> bool {
        self.is_without_tls
    }

    /// What the user can do about it.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for ProviderError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<crate::TreeError> for ProviderError {
    fn from(error: crate::TreeError) -> Self {
        let kind = if error.is_io() { ErrorKind::Io } else { ErrorKind::Integrity };
        let failed = Self::new(kind, error.to_string());
        match error.source() {
            Some(cause) => failed.because(cause.to_string()),
            None => failed,
        }
    }
}
