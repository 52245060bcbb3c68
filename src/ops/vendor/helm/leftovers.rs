//! What lies in `charts/` beside the archives of a chart's dependencies: those of former ones, and what Helm would render
//! although no dependency names it.

use mu_formats::helm::{self, Need};
use mu_provider::{Folder, InnerPath, Kind};

use super::{CHARTS, VendoredChart, Vendoring, checked};
use crate::contents::Derived;
use crate::contents::rules::{OF_HELM, Rules};
use crate::fs;
use crate::ops::CommandError;

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
            // Only what mu or Helm has made of a dependency is removed: an archive that the lock of before, or a dependency of now,
            // names. What a person has put there is left alone, and said if Helm would use it.
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
