//! What lies in `charts/` beside the archives of a chart's dependencies: those of former ones, and what Helm would render
//! although no dependency names it.

use std::collections::BTreeSet;

use mu_formats::helm::{self, Need};
use mu_provider::{Folder, InnerPath, Kind};

use super::{CHARTS, VendoredChart, Vendoring, checked};
use crate::fs;
use crate::ops::CommandError;
use crate::ops::apply::ignore_rules::{OF_HELM, Rules};
use crate::reference::Version;

/// The archives that follow from dependencies: those of any version of a present one, and those that Helm's lock names.
pub(super) struct Derived<'a> {
    names: Vec<&'a str>,
    locked: BTreeSet<String>,
}

impl<'a> Derived<'a> {
    /// Those of the dependencies `needs`, and of `lock`, which Helm or mu wrote when there were perhaps others.
    pub(super) fn new(needs: &'a [Need], lock: Option<&str>) -> Self {
        // A chart without a repository was put there by a person.
        let is_brought = |need: &&Need| need.requirement.is_some() || !need.repository.is_empty();
        let kept: BTreeSet<&str> =
            needs.iter().filter(|need| !is_brought(need)).map(|need| &*need.name).collect();
        let former = lock.map(helm::locked).unwrap_or_default().into_iter();
        Self {
            names: needs.iter().filter(is_brought).map(|need| &*need.name).collect(),
            locked: former
                .filter(|(name, _)| !kept.contains(&**name))
                .map(|(name, version)| format!("{name}-{version}.tgz"))
                .collect(),
        }
    }

    /// Whether the file called `file` in `charts/` is such an archive.
    pub(super) fn has(&self, file: &str) -> bool {
        self.locked.contains(file) || self.names.iter().any(|name| is_archive_of(file, name))
    }
}

/// Whether a file is called like an archive of the chart `name`.
pub(super) fn is_archive_of(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
    let version = rest.and_then(|rest| rest.strip_suffix(".tgz"));
    version.is_some_and(|version| Version::parse_lenient(version).is_ok())
}

impl Vendoring<'_> {
    /// Removes the archives of earlier versions and of former dependencies, which `lock` names. Warns of what else Helm would
    /// render.
    pub(super) fn remove_others(
        &self,
        around: &Folder,
        needs: &[Need],
        lock: Option<&str>,
        vendored: &VendoredChart,
    ) -> Result<Vec<String>, CommandError> {
        let mut removed = Vec::new();
        if around.look_at(&CHARTS.into())?.is_none() {
            return Ok(removed);
        }
        let charts = around.inner(&CHARTS.into())?;
        let derived = Derived::new(needs, lock);
        let rules = Rules::only(OF_HELM, around.path(), &mut Vec::new())?;
        for (file, kind) in charts.entries()? {
            if vendored.archives.iter().any(|archive| archive.file == file) {
                continue;
            }
            let path = charts.path().join(&file);
            if kind != Kind::Folder && derived.has(&file) {
                if !self.mode.is_dry() {
                    charts.remove_file(&checked(&file, InnerPath::name)?)?;
                }
                removed.push(file);
            } else if needs.iter().any(|need| need.name == file) {
                if needs.iter().any(|need| need.requirement.is_some() && need.name == file) {
                    self.session.events.warning(&format!(
                        "Helm would use `{}` beside the archive of the same chart; remove the folder",
                        path.display()
                    ));
                }
            } else if is_rendered(&path, &file, &rules) {
                let (what, next) = match fs::metadata(&path).is_ok_and(|found| found.is_dir()) {
                    true => ("folder", ", or name it under `dependencies`, without a `repository`"),
                    false => ("archive", ""),
                };
                self.session.events.warning(&format!(
                    "Helm would render `{}`, which no dependency names; remove the {what}{next}",
                    path.display()
                ));
            }
        }
        removed.sort();
        Ok(removed)
    }
}

/// Whether Helm takes what is called `name` in `charts/` for a chart.
fn is_rendered(path: &std::path::Path, name: &str, rules: &Rules) -> bool {
    let found = fs::metadata(path);
    let is_folder = found.as_ref().is_ok_and(std::fs::Metadata::is_dir);
    let is_chart = match is_folder {
        true => fs::metadata(&path.join(helm::CHART)).is_ok(),
        false => found.is_ok() && name.ends_with(".tgz"),
    };
    is_chart && !name.starts_with(['.', '_']) && !rules.leave_out(path, is_folder)
}
