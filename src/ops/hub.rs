//! `hub init` and `hub check`: hubs from their owner's side, in a folder or a bucket.

use mu_hub::{Hub, HubError, Place, Report};

use crate::env::Environment;
use crate::ops::{Code, CommandError};

/// The place that a command line names: a folder, a `file:` URL, or `s3://BUCKET/PREFIX`.
///
/// # Errors
///
/// When the text names no such place.
pub fn place(environment: &Environment, text: &str) -> Result<Place, CommandError> {
    let variables = environment.variables.iter();
    let variables = variables.map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(Place::parse(text, &environment.current, variables)?)
}

/// Makes a hub, unless there is one; returns whether it is new.
///
/// # Errors
///
/// When the place is none, or cannot be written.
pub fn init(environment: &Environment, text: &str) -> Result<bool, CommandError> {
    let (_, is_new) = Hub::init(&place(environment, text)?)?;
    Ok(is_new)
}

/// Reads a whole hub again, and with `repair` puts right what can be.
///
/// # Errors
///
/// When there is no hub, or it cannot be read.
pub fn check(
    environment: &Environment,
    text: &str,
    repair: bool,
    progress: &mut dyn FnMut(&str),
) -> Result<Report, CommandError> {
    Ok(Hub::open(&place(environment, text)?)?.check(repair, progress)?)
}

impl From<HubError> for CommandError {
    fn from(error: HubError) -> Self {
        let code = match &error {
            HubError::Place { .. } => Code::Usage,
            HubError::Missing { .. } | HubError::NotFound { .. } => Code::NotFound,
            HubError::Broken { .. } | HubError::Archive { .. } | HubError::Mismatch { .. } => {
                Code::Integrity
            }
            HubError::Refused { .. } => Code::Manifest,
            HubError::Exists { .. } | HubError::Busy { .. } => Code::Conflict,
            HubError::Store { .. } | HubError::Io { .. } => Code::Io,
        };
        let hint = error.hint();
        let error = Self::from_error(code, error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}
