//! Errors as answers, in the form of problem details.
//!
//! Source of the format: RFC 9457.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mu_provider::causes;
use serde_json::json;

use mu_hub::HubError;

/// Why a request is not answered as its client wishes.
#[derive(Debug, Clone, Default)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) detail: String,
    /// After how many seconds to ask again.
    retry_after: Option<u64>,
    /// The methods that the path allows, if the request used another one.
    allow: Option<&'static str>,
    /// The cause, which only the server's log shows.
    pub(super) cause: Option<String>,
    /// Packages with names like the requested one, for people.
    pub(super) similar: Vec<String>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), ..Self::default() }
    }

    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no such file in this hub")
    }

    /// The problem of a change for which there is no room.
    pub(super) fn no_room(cause: String) -> Self {
        let detail = "there is no room left on the disk of the hub; its operator has to make some";
        Self { cause: Some(cause), ..Self::new(StatusCode::INSUFFICIENT_STORAGE, detail) }
    }

    /// The problem of a request whose method is not in `allow`.
    pub(super) fn method(allow: &'static str, detail: &str) -> Self {
        Self { allow: Some(allow), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, detail) }
    }

    /// This problem with its cause, for the log.
    pub(super) fn caused_by(mut self, cause: String) -> Self {
        self.cause = Some(cause);
        self
    }

    pub(super) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl From<HubError> for Problem {
    fn from(error: HubError) -> Self {
        let status = match &error {
            error if is_full(error) => {
                return Self::no_room(chain(error));
            }
            HubError::Exists { .. } => StatusCode::CONFLICT,
            HubError::Changed { .. } => StatusCode::PRECONDITION_FAILED,
            HubError::Refused { .. }
            | HubError::Archive { .. }
            | HubError::Differs { .. }
            | HubError::Mismatch { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            HubError::NotFound { package, .. } => {
                return Self::new(StatusCode::NOT_FOUND, format!("this hub has no {package}"));
            }
            HubError::Busy { .. } => {
                let detail = "too many clients are changing this package at the same time";
                return Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(1);
            }
            // The details of the server's disks and buckets are private.
            _ => {
                let detail = "the server could not read or write the hub; its log says more";
                let problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail);
                return Self { cause: Some(chain(&error)), ..problem };
            }
        };
        Self::new(status, chain(&error))
    }
}

/// Whether there was no room on a disk.
fn is_full(error: &HubError) -> bool {
    use std::io::{Error, ErrorKind};
    let kinds = causes(error).filter_map(|cause| Some(cause.downcast_ref::<Error>()?.kind()));
    kinds.into_iter().any(|kind| matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}

/// An error with its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or_default();
        let body = json!({ "title": title, "status": self.status.as_u16(), "detail": self.detail });
        let mut response = Response::new(Body::from(format!("{body}\n")));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        // For the log, and for code that turns the problem into a page; the client does not see all of it.
        response.extensions_mut().insert(self);
        response
    }
}
