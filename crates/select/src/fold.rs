//! Describes many versions in few words: `1.2.0 to 1.9.3 (14 versions)`.

use std::fmt;

use crate::candidates::Candidates;
use crate::positions::PositionSet;
use crate::releases::Position;

/// More runs than this are counted, not named.
const RUNS: usize = 3;

/// Versions of one package, as runs without a relevant gap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldedVersions {
    /// The runs, ascending.
    pub runs: Vec<VersionRun>,
}

/// Versions in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRun {
    /// The lowest version.
    pub first: String,
    /// The highest version; the same as the lowest if there is one version.
    pub last: String,
    /// How many versions there are.
    pub count: usize,
}

impl FoldedVersions {
    /// Folds the versions at `positions`. Prereleases and versions that are not candidates do not interrupt a
    /// run.
    pub(super) fn fold_candidates(package: &Candidates, positions: &PositionSet) -> Self {
        let mut versions = Self::default();
        let mut previous: Option<Position> = None;
        for position in positions.iter() {
            // With 1.0, 1.1, 1.2-rc, 1.2 and 1.3, of which 1.1 is yanked, the versions 1.0, 1.2 and 1.3 are `1.0 to 1.3
            // (3 versions)`: what lies between could not be chosen anyway, or only if somebody asks for prereleases.
            // Revisions are in no order that a reader knows.
            let joined = previous.is_some_and(|previous| {
                (previous + 1..position).all(|between| is_silent(package, between))
                    && package.revision(position).is_none()
            });
            let name = package.candidate_label(position);
            match versions.runs.last_mut() {
                Some(run) if joined => {
                    run.last = name;
                    run.count += 1;
                }
                _ => versions.runs.push(VersionRun { first: name.clone(), last: name, count: 1 }),
            }
            previous = Some(position);
        }
        versions
    }

    /// How many versions there are.
    pub fn count(&self) -> usize {
        self.runs.iter().map(|run| run.count).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

impl VersionRun {
    /// A single version.
    pub(super) fn single_version(version: &str) -> Self {
        Self { first: version.to_owned(), last: version.to_owned(), count: 1 }
    }
}

/// Whether a run may skip the version at `position`.
fn is_silent(package: &Candidates, position: Position) -> bool {
    !package.allowed.holds(position)
        || package.version(position).is_some_and(|version| version.is_prerelease())
}

impl fmt::Display for VersionRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => formatter.write_str(&self.first),
            2 => write!(formatter, "{} and {}", self.first, self.last),
            count => write!(formatter, "{} to {} ({count} versions)", self.first, self.last),
        }
    }
}

impl fmt::Display for FoldedVersions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A single run more is named: that it is counted takes no less room.
        let named = if self.runs.len() > RUNS + 1 { RUNS } else { self.runs.len() };
        for (index, run) in self.runs[..named].iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{run}")?;
        }
        let rest: usize = self.runs[named..].iter().map(|run| run.count).sum();
        if rest > 0 { write!(formatter, " and {rest} other versions") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: &str, last: &str, count: usize) -> VersionRun {
        VersionRun { first: first.to_owned(), last: last.to_owned(), count }
    }

    #[test]
    fn folds_runs_and_counts_what_would_not_fit() {
        let few =
            FoldedVersions { runs: vec![run("1.0.0", "1.0.0", 1), run("1.2.0", "1.9.3", 14)] };
        assert_eq!(few.to_string(), "1.0.0, 1.2.0 to 1.9.3 (14 versions)");
        let many = (0..6).map(|major| run(&format!("{major}.0.0"), "", 1)).collect();
        assert_eq!(
            FoldedVersions { runs: many }.to_string(),
            "0.0.0, 1.0.0, 2.0.0 and 3 other versions"
        );
    }
}
