//! What a version really is, if it was chosen by a listing that is only a hint.

use std::sync::Arc;

use mu_provider::{LineTrust, Release, Yanked};

use super::Package;
use crate::index::error::PackageError;
use crate::index::run::PackageSurroundings;
use crate::manifest::facts::read_by_selection;
use crate::select::releases::Position;
use mu_provider::threads::lock;

impl Package {
    /// Asks the place itself about a version, if its listing is only a hint. Data about its archive is kept. Returns what the
    /// version is instead, if selection did not use the same data.
    pub(in crate::index) fn confirm_release(
        &self,
        around: &dyn PackageSurroundings,
        position: Position,
    ) -> Result<Option<Release>, PackageError> {
        let Self { route, .. } = self;
        if route.provider.facts().lines != LineTrust::Hint {
            return Ok(None);
        }
        let line = self.line(position)?;
        let progress = around.run().start_lookup(self.id());
        let Some(own) = route.provider.confirm(&route.location, &line, &*progress)? else {
            return Ok(None);
        };
        // If no listing had the data, selection asked the place itself.
        if line.dependencies.is_some() && comparable(&line) != comparable(&own) {
            return Ok(Some(own));
        }
        lock(&self.read).insert(position, Arc::new(own));
        Ok(None)
    }

    /// The lines of the package, with the line of the version at `position` replaced.
    pub(in crate::index) fn releases_with(
        &self,
        position: Position,
        own: &Release,
    ) -> Result<Vec<Release>, PackageError> {
        let line = |at| if at == position { Ok(own.clone()) } else { self.line(at) };
        (0..self.table.len() as Position).map(line).collect()
    }
}

/// What selection reads of a line, with one form for what is not withdrawn.
fn comparable(line: &Release) -> Release {
    let read = read_by_selection(line);
    let yanked = if read.yanked.is_no() { Yanked::No } else { read.yanked };
    Release { yanked, ..read }
}
