//! Whoever knows how to be let in where a server asks for more than a stored token.
//!
//! To which requests an answer may be added is decided by the client, as for stored tokens: never over plain http to another
//! machine, never behind a redirect to another server.

use std::fmt::Debug;

use super::Authorization;
use crate::{ProviderError, SafeUrl};

/// Answers the challenges of one server.
pub trait Guard: Send + Sync + Debug {
    /// What is shown at `url`, as far as it is known before that refuses to answer; [`Authorization::Nothing`] if it is not.
    ///
    /// # Errors
    ///
    /// When whoever hands it out cannot be asked, or refuses.
    fn known(&self, url: &SafeUrl) -> Result<Authorization, ProviderError>;

    /// What is shown by the same request again, after it was refused with these challenges (`WWW-Authenticate`); `None` if
    /// there is nothing else to show than `shown`.
    ///
    /// # Errors
    ///
    /// As [`Guard::known`], and when the challenge leads to a place that nothing may be shown to.
    fn answer(
        &self,
        url: &SafeUrl,
        challenges: &[&str],
        shown: &Authorization,
    ) -> Result<Option<Authorization>, ProviderError>;
}
