//! A provider's error that can be returned to several callers.

use std::error::Error as _;

use mu_provider::{ErrorKind, ProviderError};

/// The content of a [`ProviderError`], in a form that can be copied.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    kind: ErrorKind,
    message: String,
    cause: Option<String>,
    hints: Vec<String>,
}

impl Failure {
    pub(crate) fn new(error: &ProviderError) -> Self {
        Self {
            kind: error.kind(),
            message: error.to_string(),
            cause: error.source().map(ToString::to_string),
            hints: error.hints().to_vec(),
        }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn to_error(&self) -> ProviderError {
        let error = ProviderError::new(self.kind, &self.message);
        let error = self.hints.iter().fold(error, ProviderError::hint);
        match &self.cause {
            Some(cause) => error.because(cause.as_str()),
            None => error,
        }
    }
}
