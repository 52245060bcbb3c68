//! The archives in `charts/` that follow from a chart's dependencies: they are fetched or made again, so they are no content of the
//! chart.

use std::collections::BTreeSet;
use std::path::Path;

use mu_formats::helm::{self, Need};
use mu_provider::ProviderError;

use super::unreadable;
use crate::env::Environment;
use crate::formats;
use crate::fs;
use crate::reference::Version;

/// The archives that follow from dependencies: those of any version of a present one, and those that Helm's lock names.
pub(crate) struct Derived {
    names: Vec<String>,
    locked: BTreeSet<String>,
}

impl Derived {
    /// Those of the dependencies `needs`, and of `lock`, which Helm or mu wrote when there were perhaps others.
    pub(crate) fn new(needs: &[Need], lock: Option<&str>) -> Self {
        // A chart without a repository was put there by a person.
        let is_brought = |need: &&Need| need.requirement.is_some() || !need.repository.is_empty();
        let kept: BTreeSet<&str> =
            needs.iter().filter(|need| !is_brought(need)).map(|need| &*need.name).collect();
        let former = lock.and_then(|lock| helm::locked("", lock).ok());
        let former = former.unwrap_or_default().into_iter();
        Self {
            names: needs.iter().filter(is_brought).map(|need| need.name.clone()).collect(),
            locked: former
                .filter(|(name, _)| !kept.contains(&**name))
                .map(|(name, version)| format!("{name}-{version}.tgz"))
                .collect(),
        }
    }

    /// Whether the file called `file` in `charts/` is such an archive.
    pub(crate) fn is_derived_archive(&self, file: &str) -> bool {
        self.locked.contains(file) || self.names.iter().any(|name| is_archive_of(file, name))
    }

    /// Whether the file at `path` in the chart is such an archive.
    pub(super) fn contains(&self, path: &str) -> bool {
        path.strip_prefix("charts/").is_some_and(|file| self.is_derived_archive(file))
    }
}

/// Whether a file is called like an archive of the chart `name`.
pub(crate) fn is_archive_of(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
    let version = rest.and_then(|rest| rest.strip_suffix(".tgz"));
    version.is_some_and(|version| Version::parse_lenient(version).is_ok())
}

/// A repository whose name is not known here.
const SOMEWHERE: &str = "https://localhost";

/// The archives that follow from the chart in a folder, which is worked on there.
pub(super) fn derived(folder: &Path, environment: &Environment) -> Result<Derived, ProviderError> {
    // Which archives follow does not depend on where they come from.
    let names = formats::helms_aliases(environment).or_of_chart(|_| Some(SOMEWHERE.to_owned()));
    let all = formats::helms_needs(&folder.join(helm::CHART), &names, true);
    let all = all.map_err(|error| unreadable(&error))?;
    let lock = fs::read_text_if_there(&folder.join(all.lock))?;
    Ok(Derived::new(&all.needs, lock.as_deref()))
}
