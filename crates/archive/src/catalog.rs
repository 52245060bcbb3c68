//! Registries that are one index: it is read once in a run, and answers all questions about its packages.
//!
//! A provider says where its index is, what it means, and what to call it. What an index answers is the same for all of them. Nothing
//! here connects to anything.

use std::sync::Arc;

use mu_provider::catalog::{CatalogLine, Hits, Query};
use mu_provider::{
    ErrorKind, Listing, Location, Progress, ProviderError, Release, Silent, none_if,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::remembered::{Part, Remembered};

/// A provider whose registries each have one index for all their packages.
pub trait Catalog {
    /// What is known of an index besides its packages.
    type Of: Serialize + DeserializeOwned;

    /// The index at a location as it is in this run; `None` if there is none.
    ///
    /// # Errors
    ///
    /// When the place cannot be reached or answers nonsense.
    fn index(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<Remembered<Self::Of>>>, ProviderError>;

    /// Where a package was looked for in vain: in this index, or where there is none.
    ///
    /// # Errors
    ///
    /// When the location is no place of such a registry.
    fn tried(
        &self,
        location: &Location,
        index: Option<&Remembered<Self::Of>>,
    ) -> Result<String, ProviderError>;

    /// That there is no such registry at a location.
    ///
    /// # Errors
    ///
    /// As [`Catalog::tried`].
    fn no_registry(&self, location: &Location) -> Result<String, ProviderError>;

    /// Whether a line of an index is that of a release of which a lock has only a little.
    fn is_line_of(&self, line: &Release, release: &Release) -> bool;

    /// A package as searches show it; `None` if they do not.
    fn line(&self, query: &Query, name: &str, part: Part<'_>) -> Option<CatalogLine>;

    /// As [`Provider::probe`](mu_provider::Provider::probe).
    ///
    /// # Errors
    ///
    /// As that.
    fn probe_index(&self, location: &Location) -> Result<bool, ProviderError> {
        Ok(none_if(self.index(location, &Silent), ErrorKind::Protocol)?.flatten().is_some())
    }

    /// As [`Provider::is_unchanged`](mu_provider::Provider::is_unchanged).
    fn is_part_unchanged(
        &self,
        location: &Location,
        validator: &str,
        progress: &dyn Progress,
    ) -> bool {
        // The code that really needs the index reports the error.
        let index = self.index(location, progress).ok().flatten();
        let part = index.as_ref().and_then(|index| index.package(&location.path));
        part.is_some_and(|part| part.digest == validator)
    }

    /// As [`Provider::list`](mu_provider::Provider::list).
    ///
    /// # Errors
    ///
    /// As that.
    fn list_part(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let index = self.index(location, progress)?;
        let listing = index.as_ref().and_then(|index| index.listing(location, validator));
        match listing {
            Some(listing) => Ok(listing),
            None => Ok(Listing::absent(vec![self.tried(location, index.as_deref())?])),
        }
    }

    /// The line that the index has now of a release.
    ///
    /// # Errors
    ///
    /// As [`Catalog::index`].
    fn listed(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Release>, ProviderError> {
        let Some(index) = self.index(location, progress)? else { return Ok(None) };
        let Some(part) = index.package(&location.path) else { return Ok(None) };
        Ok(part.releases().find(|line| self.is_line_of(line, release)))
    }

    /// As [`Provider::search`](mu_provider::Provider::search).
    ///
    /// # Errors
    ///
    /// As that.
    fn search_index(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        let Some(index) = self.index(location, progress)? else {
            let text = self.no_registry(location)?;
            return Err(ProviderError::new(ErrorKind::NotFound, text));
        };
        Ok(Some(index.search(query, |name, part| self.line(query, name, part))))
    }
}
