//! `resolve --compare`: what each strategy would choose, side by side. Writes nothing.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::ops::requirements::supposition::WhatIf;
use crate::ops::session::locked::version_of;
use crate::ops::what_if::what_if;
use crate::ops::{CommandError, Outcome, Session};
use crate::reference::PackageId;
use crate::workspace::Resolution;

/// What both strategies choose.
#[derive(Debug)]
pub struct Comparison {
    /// The result of the highest strategy.
    pub highest: Result<Outcome, CommandError>,
    /// The result of the minimal strategy.
    pub minimal: Result<Outcome, CommandError>,
}

/// One package, and its version with each strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Row {
    /// The package.
    pub id: PackageId,
    /// Its version, or several with commas between; `None` if it is not chosen.
    pub highest: Option<String>,
    /// The same with the minimal strategy.
    pub minimal: Option<String>,
}

/// Chooses versions with both strategies, under the same assumptions.
///
/// # Errors
///
/// When neither strategy finds versions that fit together: the error of the one in effect.
pub fn compare(session: &Session, request: &WhatIf) -> Result<Comparison, CommandError> {
    let by =
        |resolution| what_if(session, &WhatIf { resolution: Some(resolution), ..request.clone() });
    let (highest, minimal) = (by(Resolution::Highest), by(Resolution::Minimal));
    match (highest, minimal, session.resolution()) {
        (Err(error), Err(_), Resolution::Highest) | (Err(_), Err(error), Resolution::Minimal) => {
            Err(error)
        }
        (highest, minimal, _) => Ok(Comparison { highest, minimal }),
    }
}

impl Comparison {
    /// Every package that either chooses, by id.
    pub fn rows(&self) -> Vec<Row> {
        let outcomes = [self.highest.as_ref().ok(), self.minimal.as_ref().ok()];
        let packages = outcomes.into_iter().flatten().flat_map(|outcome| &outcome.lock.packages);
        let ids: BTreeSet<&PackageId> = packages.map(|package| &package.id).collect();
        let version = |outcome: &Result<Outcome, CommandError>, id: &PackageId| {
            let versions: Vec<String> =
                outcome.as_ref().ok()?.lock.find(id).map(version_of).collect();
            (!versions.is_empty()).then(|| versions.join(", "))
        };
        ids.into_iter()
            .map(|id| Row {
                highest: version(&self.highest, id),
                minimal: version(&self.minimal, id),
                id: id.clone(),
            })
            .collect()
    }
}
