//! The archives that mu makes itself: of charts in folders and in Git repositories, and of patched ones.
//!
//! Helm packs what lies in `charts/` of such a chart, which may be nothing, or old. Here the charts inside follow from its
//! `Chart.yaml` and Mu.lock, and a chart that is nowhere is an error: Helm would install the others without a word.
//!
//! What lies in `charts/` beside these archives is here, too: those of former dependencies, and what Helm would use besides.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use mu_formats::helm::{self, Need};
use mu_provider::{Folder, InnerPath};
use mu_provider_helm::Content;

use super::{CHARTS, VendoredChart, Vendoring, archive_name, checked};
use crate::contents::Derived;
use crate::contents::rules::Rules;
use crate::contents::{self, Kind, Owned, is_archive_of};
use crate::formats;
use crate::fs;
use crate::lock::LockedPackage;
use crate::ops::{Code, CommandError, Warning};

/// The bytes of a chart's archive, which several charts can have inside.
type Archive = Rc<[u8]>;

/// A chart whose archive is made.
pub(super) struct UnpackedChart<'a> {
    /// Its name, as its dependent writes it.
    pub(super) name: &'a str,
    /// Where its files are.
    pub(super) folder: &'a Path,
    /// What Mu.lock calls it; `None` for one inside another chart, whose dependencies are not resolved.
    pub(super) locked_as: Option<&'a str>,
    /// Whether its author works on it there.
    pub(super) is_own: bool,
}

/// An archive that is made.
#[derive(Debug, Clone)]
pub(super) enum MadeArchive {
    /// It is being made.
    Begun,
    /// It is there.
    Done(Archive),
}

impl<'run> Vendoring<'run> {
    /// The archive of a chart; `None` if something that belongs into it is not on this machine.
    pub(super) fn packed(
        &mut self,
        chart: &UnpackedChart<'_>,
    ) -> Result<Option<Archive>, CommandError> {
        match self.made.get(chart.folder) {
            Some(MadeArchive::Done(bytes)) => return Ok(Some(Rc::clone(bytes))),
            Some(MadeArchive::Begun) => {
                let message = format!("the chart in `{}` needs itself", chart.folder.display());
                return Err(CommandError::new(Code::Conflict, message).hint(
                    "Helm packs a chart into those that need it: take one of the dependencies out",
                ));
            }
            None => {}
        }
        // A chart that comes back to itself meets this, and is refused.
        self.made.insert(chart.folder.to_owned(), MadeArchive::Begun);
        let mut files = self.files(chart)?;
        let is_whole = self.add_charts(chart, &mut files)?;
        // What is not whole is not remembered: the next dependent asks again.
        self.made.remove(chart.folder);
        if !is_whole {
            return Ok(None);
        }
        let bytes: Archive = mu_provider_helm::pack(chart.name, &files)?.into();
        self.made.insert(chart.folder.to_owned(), MadeArchive::Done(Rc::clone(&bytes)));
        Ok(Some(bytes))
    }

    /// The files of a chart: what Helm packs where it is worked on, and all that were packed elsewhere.
    fn files(&self, chart: &UnpackedChart<'_>) -> Result<BTreeMap<String, Content>, CommandError> {
        let (folder, environment) = (chart.folder, &self.session.environment);
        let (kind, owned) = match chart.is_own {
            true => (Kind::Chart, Owned::around(folder, environment)?),
            false => (Kind::Packed, Owned::own_folder_alone(folder)?),
        };
        let source = contents::Source { folder, kind, owned: &owned, others: &[] };
        let mut warnings = Vec::new();
        let chosen = contents::choose_contents(&source, environment, &mut warnings)?;
        for warning in warnings {
            self.session.events.warning(&Warning::File(warning));
        }
        let files = chosen.into_iter().filter_map(|item| match item.content {
            contents::Content::File { place, .. } => Some((item.path, Content::OnDisk(place))),
            _ => None,
        });
        Ok(files.collect())
    }

    /// Adds the charts inside; returns whether all of them are on this machine.
    fn add_charts(
        &mut self,
        chart: &UnpackedChart<'_>,
        files: &mut BTreeMap<String, Content>,
    ) -> Result<bool, CommandError> {
        let manifest = chart.folder.join(helm::CHART);
        let names = self.session.short_names();
        // What Mu.lock has is taken out of `charts`, so that it comes in again below, in the locked version.
        if self.unify && !chart.is_own {
            let all = formats::helms_needs(&manifest, names, false)?;
            for need in &all.needs {
                if self.is_resolved(chart, need) {
                    let folder = format!("{}/{}/", helm::CHARTS_FOLDER, need.name);
                    files.retain(|path, _| {
                        let file = helm::in_charts(path).unwrap_or_default();
                        !path.starts_with(&folder) && !is_archive_of(file, &need.name)
                    });
                }
            }
        } else if !chart.is_own {
            // A published chart with all of its charts inside is packed as it is.
            let lacking = lacking(chart.folder)?;
            if lacking.is_empty() {
                return Ok(true);
            }
        }
        let all = formats::helms_needs(&manifest, names, chart.is_own)?;
        let mut added = BTreeMap::new();
        for need in &all.needs {
            let folder = format!("{}/{}/{}", helm::CHARTS_FOLDER, need.name, helm::CHART);
            let is_archive = |path: &String| {
                helm::in_charts(path).is_some_and(|file| is_archive_of(file, &need.name))
            };
            if files.contains_key(&folder) || files.keys().any(is_archive) {
                continue;
            }
            // A chart inside another one is in no lock, so its own folder must have what it needs.
            let Some(locked_as) = chart.locked_as else {
                self.add_inner(chart, need, &mut added)?;
                continue;
            };
            match self.locked(&self.session.reference_defaults(), chart.folder, locked_as, need) {
                None => self.add_inner(chart, need, &mut added)?,
                Some((index, package)) => {
                    let Some((version, bytes)) = self.nested(index, package, need, &manifest)?
                    else {
                        return Ok(false);
                    };
                    let path = format!("{}/{}", helm::CHARTS_FOLDER, archive_name(need, &version));
                    added.insert(path, Content::Made(bytes));
                }
            }
        }
        files.append(&mut added);
        Ok(true)
    }

    /// Whether Mu.lock has what a chart needs, and does not leave it to the copy inside.
    fn is_resolved(&self, chart: &UnpackedChart<'_>, need: &Need) -> bool {
        let Some(locked_as) = chart.locked_as else { return false };
        let found = self.locked(&self.session.reference_defaults(), chart.folder, locked_as, need);
        let mut own = self.outcome.lock.packages.iter().filter(|one| one.id.as_str() == locked_as);
        found.is_some_and(|(_, found)| own.any(|own| own.dependencies.contains(&found.id)))
    }

    /// Adds a chart that is elsewhere in the folder of another one: `file://./parts/x`.
    fn add_inner(
        &mut self,
        chart: &UnpackedChart<'_>,
        need: &Need,
        added: &mut BTreeMap<String, Content>,
    ) -> Result<(), CommandError> {
        let place =
            need.repository.strip_prefix("file://").map(|path| path.trim_start_matches("./"));
        let place = place.and_then(|path| mu_provider::InnerPath::parse(path).ok());
        let folder = place.map(|place| chart.folder.join(&place));
        let head = match &folder {
            Some(folder) => formats::helms_head(folder)?.filter(|head| head.name == need.name),
            None => None,
        };
        let (Some(folder), Some(head)) = (folder, head) else {
            return Err(absent(chart.name, chart.folder, &need.name));
        };
        let inner = UnpackedChart {
            name: &need.name,
            folder: &folder,
            locked_as: None,
            is_own: chart.is_own,
        };
        if let Some(bytes) = self.packed(&inner)? {
            added.insert(
                format!("{}/{}", helm::CHARTS_FOLDER, archive_name(need, &head.version)),
                Content::Made(bytes),
            );
        }
        Ok(())
    }

    /// A locked chart for inside another one: its version and archive, if it is on this machine.
    fn nested(
        &mut self,
        index: usize,
        package: &'run LockedPackage,
        need: &Need,
        by: &Path,
    ) -> Result<Option<(String, Archive)>, CommandError> {
        let Some(folder) = self.content(index) else { return Ok(None) };
        let version = self.version_in(&folder, need, by)?;
        let bytes = self.packed_package(package, &need.name, &folder)?;
        Ok(bytes.map(|bytes| (version, bytes)))
    }

    /// The archive of a locked package, made of its files.
    pub(super) fn packed_package(
        &mut self,
        package: &LockedPackage,
        name: &str,
        folder: &Path,
    ) -> Result<Option<Archive>, CommandError> {
        if is_registry_archive(package) {
            check_whole(name, &package.version, folder)?;
        }
        let is_own = package.source.is_authored_folder();
        let locked_as = Some(package.id.as_str());
        self.packed(&UnpackedChart { name, folder, locked_as, is_own })
    }
}

/// Whether a package is an archive in a registry.
pub(super) fn is_registry_archive(package: &LockedPackage) -> bool {
    let source = &package.source;
    !source.is_authored_folder() && !source.is_pack() && package.commit.is_none()
}

/// Refuses an archive that lacks a chart which its `Chart.yaml` names.
pub(super) fn check_whole(name: &str, version: &str, folder: &Path) -> Result<(), CommandError> {
    match lacking(folder)?.first() {
        None => Ok(()),
        Some(inner) => {
            let message = format!(
                "the archive of `{name}` {version} lacks the chart `{inner}`, which its Chart.yaml names"
            );
            Err(CommandError::new(Code::Integrity, message)
                .hint(format!("Helm would install `{name}` without `{inner}`, and say nothing"))
                .hint("use another version, or replace it by a folder with `overrides`"))
        }
    }
}

/// The dependencies of the chart in a folder that are not in its `charts`.
fn lacking(folder: &Path) -> Result<Vec<String>, CommandError> {
    let mut names = formats::helms_dependencies(folder)?;
    if names.is_empty() {
        return Ok(names);
    }
    // In `charts`, a chart is a folder with a `Chart.yaml`, or an archive called `NAME-VERSION.tgz`.
    for entry in fs::entries_if_there(&folder.join(helm::CHARTS_FOLDER))? {
        let Ok(file) = entry.file_name().into_string() else { continue };
        let called = match fs::metadata(&entry.path()).is_ok_and(|found| found.is_dir()) {
            true => formats::helms_head(&entry.path()).ok().flatten().map(|head| head.name),
            false => None,
        };
        names.retain(|name| called.as_ref() != Some(name) && !is_archive_of(&file, name));
    }
    Ok(names)
}

fn absent(name: &str, folder: &Path, inner: &str) -> CommandError {
    let message = format!(
        "the chart `{name}` in `{}` needs `{inner}`, which is neither in its `charts` nor in Mu.lock",
        folder.display()
    );
    CommandError::new(Code::NotFound, message)
        .hint(format!("Helm would install `{name}` without `{inner}`, and say nothing"))
        .hint("run `helm dependency update` there, or give the dependency a `repository` that mu can ask")
}

/// The largest file of a chart that Helm loads, from 3.17.3 on and in 4.
const LARGEST_FILE: u64 = 5 << 20;

impl Vendoring<'_> {
    /// Warns of what is too large for Helm in the published chart whose files are in `folder`.
    pub(super) fn warn_of_large_files(&self, chart: &str, folder: &Path) {
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten() {
            let bytes =
                entry.metadata().map_or(0, |found| if found.is_file() { found.len() } else { 0 });
            if bytes > LARGEST_FILE {
                let file = entry.path().strip_prefix(folder).unwrap_or(entry.path());
                let (chart, file) = (chart.to_owned(), file.display().to_string());
                self.session.events.warning(&Warning::HelmRefuses { chart, file, bytes });
            }
        }
    }

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
        let rules = Rules::read_helmignore(around.path(), &mut Vec::new())?;
        for (file, kind) in charts.entries()? {
            if vendored.archives.iter().any(|archive| archive.file == file) {
                continue;
            }
            // Only what mu or Helm has made of a dependency is removed: an archive that the lock of before, or a dependency of now,
            // names. What a person has put there is left alone, and said if Helm would use it.
            let path = charts.path().join(&file);
            if kind != mu_provider::Kind::Folder && derived.is_derived_archive(&file) {
                if !self.mode.is_dry() {
                    charts.remove_file(&checked(&file, InnerPath::name)?)?;
                }
                removed.push(file);
            } else if needs.iter().any(|need| need.name == file) {
                if needs.iter().any(|need| need.requirement.is_some() && need.name == file) {
                    self.session.events.warning(&Warning::HelmUses { folder: path });
                }
            } else if is_rendered(&path, &file, &rules) {
                let is_folder = fs::metadata(&path).is_ok_and(|found| found.is_dir());
                self.session.events.warning(&Warning::HelmRenders { path, is_folder });
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
