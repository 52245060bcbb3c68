//! Code that can obtain credentials when a server requires more than a stored token.
//!
//! As for stored tokens, the client decides which requests get them: never over plain http to another
//! machine, and never after a redirect to another server.

use std::fmt::Debug;

use super::{AskedServer, Authorization};
use crate::ProviderError;

/// Answers the challenges of one server.
pub trait Guard: Send + Sync + Debug {
    /// The credentials for `asked`, as far as they are known before it refuses a request; otherwise
    /// [`Authorization::Nothing`].
    ///
    /// # Errors
    ///
    /// When the server that issues them cannot be reached, or refuses.
    fn known(&self, asked: &AskedServer) -> Result<Authorization, ProviderError>;

    /// The credentials for the same request after it was refused with these challenges (`WWW-Authenticate`);
    /// `None` if there are none but `shown`.
    ///
    /// # Errors
    ///
    /// As for [`Guard::known`], and when the challenge leads to a place that must not get credentials.
    fn answer(
        &self,
        asked: &AskedServer,
        challenges: &[&str],
        shown: &Authorization,
    ) -> Result<Option<Authorization>, ProviderError>;

    /// What helps if `asked` refuses all the same; empty if nothing special does.
    fn hints(&self, _asked: &AskedServer) -> Vec<String> {
        Vec::new()
    }
}
