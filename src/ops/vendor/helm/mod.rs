//! `vendor --for helm`: puts the dependencies of the workspace's charts where Helm looks for them, as
//! archives in `charts/` with a `Chart.lock`.
//!
//! Helm only knows the direct dependencies of a chart; their dependencies are inside their archives. The
//! files for Helm are written after Mu.lock, which remains authoritative.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mu_formats::helm::{self, Need, Needs};
use mu_provider::{ArchiveDigest, Folder, InnerPath, Kind, OwnPath, TreeError};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::formats;
use crate::fs::{self, AtPath as _};
use crate::lock::LockedPackage;
use crate::ops::apply::fetch::fetch_archive;
use crate::ops::apply::ignore_rules::{OF_HELM, Rules};
use crate::ops::requirements::names::id_in;
use crate::ops::requirements::requester::Requester;
use crate::ops::session::source::relative;
use crate::ops::vendor::shared::{locked, prepared};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::Version;
use crate::workspace::Member;

/// Where Helm looks, beside `Chart.yaml`.
const CHARTS: OwnPath = InnerPath::own("charts");

/// What Helm packs for no chart, because it is not a part of it.
const NEVER: [&str; 6] = [".git", ".mu", ".hg", ".svn", ".jj", ".DS_Store"];

/// What `mu vendor --for helm` wrote.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Vendored {
    /// The charts of the workspace.
    pub charts: Vec<VendoredChart>,
}

/// The dependencies of one chart of the workspace, as Helm has them.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VendoredChart {
    /// Its name.
    pub name: String,
    /// Its folder, seen from the root of the workspace.
    pub folder: String,
    /// Whether its `Chart.lock` has changed.
    pub lock_changed: bool,
    /// The archives in `charts`.
    pub archives: Vec<VendoredArchive>,
    /// The names of archives that were removed from `charts`, because no dependency uses them any more.
    pub removed: Vec<String>,
    /// Charts inside these archives whose version differs from Mu.lock.
    pub carried: Vec<Carried>,
}

/// An archive in `charts`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VendoredArchive {
    /// The name of the chart.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The name of the file.
    pub file: String,
    /// Whether it was not there before, or was another one.
    pub changed: bool,
}

/// A chart inside an archive, which Helm uses instead of the one in Mu.lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Carried {
    /// The chart whose archive contains it, and the version of that chart.
    pub inside: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version in Mu.lock.
    pub locked: String,
}

/// Installs what the workspace needs, and writes `charts/` and `Chart.lock` of each of its charts. Also
/// returns how the packs changed.
///
/// # Errors
///
/// As [`vendor`](super::vendor); when the workspace has no chart, or a dependency is not available as an archive.
pub fn vendor_for_helm(
    session: &Session,
    dry_run: bool,
) -> Result<(Outcome, Vendored), CommandError> {
    let charts: Vec<&Member> =
        session.workspace.members.iter().filter(|one| is_chart(one)).collect();
    if charts.is_empty() {
        let root = session.workspace.root.display();
        let message = format!("no package of the workspace `{root}` is a chart");
        return Err(CommandError::new(Code::NotFound, message)
            .hint("`mu vendor --for helm` fills `charts/` beside a `Chart.yaml`")
            .hint("charts in folders below the root count with `formats: [helm]` in `.mu/workspace.yaml`"));
    }
    let outcome = prepared(session, dry_run)?;
    let mut run = Run { session, outcome: &outcome, dry_run, begun: BTreeSet::new() };
    let mut vendored = Vendored::default();
    for chart in charts {
        run.chart(chart, &mut vendored)?;
    }
    Ok((outcome, vendored))
}

fn is_chart(member: &Member) -> bool {
    member.manifest_path.file_name().is_some_and(|name| name == helm::CHART)
}

struct Run<'run> {
    session: &'run Session,
    outcome: &'run Outcome,
    dry_run: bool,
    /// The folders of charts that were begun.
    begun: BTreeSet<PathBuf>,
}

/// A dependency, found.
struct Found {
    version: String,
    /// The archive for `charts/`; `None` if the chart is there already, or in a dry run.
    archive: Option<Content>,
}

/// The archive of a dependency.
enum Content {
    /// It is there already.
    Kept,
    /// It is to be written.
    New(Vec<u8>),
    /// It would be written.
    Planned,
}

impl<'run> Run<'run> {
    /// Fills one chart, after the charts of the workspace that it needs, because these are packed with their
    /// content.
    fn chart(&mut self, member: &'run Member, into: &mut Vendored) -> Result<(), CommandError> {
        if !self.begun.insert(member.folder.clone()) {
            return Ok(());
        }
        let environment = &self.session.environment;
        let Needs { needs, lock: lock_name } =
            formats::helms_needs(&member.manifest_path, environment)?;
        for need in &needs {
            let used = self.locked(member, need).map(|(_, package)| &package.id);
            if let Some(other) = used.and_then(|id| self.session.workspace.member(id))
                && is_chart(other)
            {
                self.chart(other, into)?;
            }
        }
        let around = self.session.workspace.folder_of(member)?;
        if around.look_at(&CHARTS.into())?.is_some() {
            around.inner(&CHARTS.into())?;
        }
        let mut vendored = VendoredChart {
            name: member.manifest.name.name().to_string(),
            folder: relative(&self.session.workspace.root, &member.folder),
            ..VendoredChart::default()
        };
        let mut versions = Vec::with_capacity(needs.len());
        // Nothing is written before all of it is there.
        let mut new: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for need in &needs {
            let Found { version, archive } = self.find(member, need, &around, &mut vendored)?;
            if let Some(content) = archive {
                let file = archive_name(need, &version);
                if vendored.archives.iter().all(|known| known.file != file) {
                    let (name, version) = (need.name.clone(), version.clone());
                    let changed = !matches!(content, Content::Kept);
                    if let Content::New(bytes) = content {
                        new.insert(file.clone(), bytes);
                    }
                    vendored.archives.push(VendoredArchive { name, version, file, changed });
                }
            }
            versions.push(version);
        }
        for (file, bytes) in &new {
            around.write(&in_charts(file)?, bytes)?;
        }
        vendored.removed = self.remove_others(&around, &needs, &vendored)?;
        let lock = InnerPath::own(lock_name).into();
        vendored.lock_changed = self.write_lock(&around, &lock, &needs, &versions)?;
        into.charts.push(vendored);
        Ok(())
    }

    /// The locked package of a dependency, and its place in the lock.
    fn locked(&self, member: &Member, need: &Need) -> Option<(usize, &'run LockedPackage)> {
        let reference = &need.requirement.as_ref()?.reference;
        let (defaults, by) = (&member.defaults, Requester::of(member));
        locked(self.session, &self.outcome.lock, reference, defaults, &member.folder, by.as_str())
    }

    fn find(
        &self,
        member: &Member,
        need: &Need,
        around: &Folder,
        vendored: &mut VendoredChart,
    ) -> Result<Found, CommandError> {
        let Some((index, package)) = self.locked(member, need) else {
            return self.inside(member, need, around);
        };
        let is_own = package.source.is_own();
        let folder = match self.outcome.folders.get(&index) {
            Some(folder) => folder.clone(),
            // A dry run installs nothing, but a folder is there anyway.
            None if is_own => {
                let root = &self.session.workspace.root;
                crate::env::absolute(root, package.source.place.as_ref())
            }
            None => {
                let version = package.version.clone();
                let target = in_charts(&archive_name(need, &version))?;
                let is_there =
                    package.archive.is_some() && package.archive == digest_at(around, &target)?;
                let content = if is_there { Content::Kept } else { Content::Planned };
                return Ok(Found { version, archive: Some(content) });
            }
        };
        let version = self.version_in(&folder, need, member)?;
        self.note_carried(&folder, package, &format!("{} {version}", need.name), vendored);
        let target = in_charts(&archive_name(need, &version))?;
        if !is_own && package.archive.is_some() && package.archive == digest_at(around, &target)? {
            return Ok(Found { version, archive: Some(Content::Kept) });
        }
        let fetched = match is_own || package.source.is_pack() {
            true => None,
            false => fetch_archive(self.session, package)?,
        };
        let bytes = match fetched {
            Some(bytes) => bytes,
            None => self.packed(&need.name, &folder)?,
        };
        Ok(Found { version, archive: Some(self.compared(around, &target, bytes)?) })
    }

    /// What becomes of the archive at `target`, which should be `bytes`.
    fn compared(
        &self,
        around: &Folder,
        target: &InnerPath,
        bytes: Vec<u8>,
    ) -> Result<Content, CommandError> {
        Ok(match (digest_at(around, target)? == Some(digest_of(&bytes)), self.dry_run) {
            (true, _) => Content::Kept,
            (false, true) => Content::Planned,
            (false, false) => Content::New(bytes),
        })
    }

    /// A dependency that mu does not require, because the chart carries it in `charts/`, or elsewhere in its
    /// folder.
    fn inside(&self, member: &Member, need: &Need, around: &Folder) -> Result<Found, CommandError> {
        let carried = in_charts(&need.name)?;
        let place = match need.repository.strip_prefix("file://") {
            Some(path) => checked(path.trim_start_matches("./"), InnerPath::parse)?,
            None if need.repository.is_empty() => {
                if around.look_at(&carried)?.is_none() {
                    let message = format!(
                        "`{}` depends on `{}` without a `repository`, and there is no `{}`",
                        member.manifest_path.display(),
                        need.name,
                        around.path().join(&carried).display()
                    );
                    return Err(CommandError::new(Code::NotFound, message)
                        .hint("write a `repository`, or put the chart there"));
                }
                return Ok(Found { version: need.version.clone(), archive: None });
            }
            // The settings choose the copy inside.
            None => carried.clone(),
        };
        let folder = around.path().join(&place);
        if around.look_at(&place)?.is_some() {
            around.inner(&place)?;
        }
        let version = self.version_in(&folder, need, member)?;
        if place == carried {
            return Ok(Found { version, archive: None });
        }
        let bytes = self.packed(&need.name, &folder)?;
        let target = in_charts(&archive_name(need, &version))?;
        Ok(Found { version, archive: Some(self.compared(around, &target, bytes)?) })
    }

    /// The version of the chart in a folder, as it is written there.
    fn version_in(
        &self,
        folder: &Path,
        need: &Need,
        member: &Member,
    ) -> Result<String, CommandError> {
        let head = formats::helms_head(folder)?;
        if let Some(head) = head.filter(|head| head.name == need.name) {
            return Ok(head.version);
        }
        let id = need.requirement.as_ref().map(|one| id_in(self.session, member, &one.reference));
        let overrides = &self.session.workspace.settings.overrides;
        let hint = match id.and_then(|id| overrides.get_key_value(&id)) {
            Some((id, to)) => format!(
                "the settings replace `{id}` by `{to}`: take the override away, or let it lead to a chart"
            ),
            None => format!(
                "`{}` requires it, and Helm can use charts alone: take it out there",
                member.manifest_path.display()
            ),
        };
        let message = format!("`{}` is not a chart called `{}`", folder.display(), need.name);
        Err(CommandError::new(Code::Manifest, message).hint(hint))
    }

    /// Records which charts inside an archive differ from the lock.
    fn note_carried(
        &self,
        folder: &Path,
        package: &LockedPackage,
        inside: &str,
        vendored: &mut VendoredChart,
    ) {
        for id in &package.dependencies {
            let name = id.name();
            let path = folder.join("charts").join(name.leaf());
            let Ok(Some(head)) = formats::helms_head(&path) else { continue };
            let locked: Vec<&str> =
                self.outcome.lock.find(id).map(|package| package.version.as_str()).collect();
            let same = |text: &&str| {
                let read = |text: &str| Version::parse_lenient(text).ok();
                **text == head.version || read(text).is_some() && read(text) == read(&head.version)
            };
            if let (Some(locked), false) = (locked.last(), locked.iter().any(same)) {
                let carried = Carried {
                    inside: inside.to_owned(),
                    name: name.leaf().to_owned(),
                    version: head.version,
                    locked: (*locked).to_owned(),
                };
                if !vendored.carried.contains(&carried) {
                    vendored.carried.push(carried);
                }
            }
        }
    }

    /// The archive of the chart in a folder, without the files in its `.helmignore`.
    fn packed(&self, name: &str, folder: &Path) -> Result<Vec<u8>, CommandError> {
        let mut warnings = Vec::new();
        let rules = Rules::only(OF_HELM, folder, &mut warnings)?;
        warnings.iter().for_each(|warning| self.session.events.warning(warning));
        let root = fs::canonicalize(folder)?;
        let mut files = Vec::new();
        walk(folder, &root, "", &rules, &mut files)?;
        Ok(mu_provider_helm::pack(name, &files)?)
    }

    /// Removes archives of earlier versions and of former dependencies.
    fn remove_others(
        &self,
        around: &Folder,
        needs: &[Need],
        vendored: &VendoredChart,
    ) -> Result<Vec<String>, CommandError> {
        let mut removed = Vec::new();
        if around.look_at(&CHARTS.into())?.is_none() {
            return Ok(removed);
        }
        let charts = around.inner(&CHARTS.into())?;
        for (file, kind) in charts.entries()? {
            let is_kept = vendored.archives.iter().any(|archive| archive.file == file);
            let is_of = |need: &Need| {
                let rest = file.strip_prefix(&*need.name).and_then(|rest| rest.strip_prefix('-'));
                let version = rest.and_then(|rest| rest.strip_suffix(".tgz"));
                version.is_some_and(|version| Version::parse_lenient(version).is_ok())
            };
            if !is_kept && kind != Kind::Folder && needs.iter().any(is_of) {
                if !self.dry_run {
                    charts.remove_file(&checked(&file, InnerPath::name)?)?;
                }
                removed.push(file);
            } else if needs.iter().any(|need| need.requirement.is_some() && need.name == file) {
                self.session.events.warning(&format!(
                    "Helm would use `{}` beside the archive of the same chart; remove the folder",
                    charts.path().join(&file).display()
                ));
            }
        }
        removed.sort();
        Ok(removed)
    }

    /// Writes the lock; returns whether it has changed.
    fn write_lock(
        &self,
        around: &Folder,
        path: &InnerPath,
        needs: &[Need],
        versions: &[String],
    ) -> Result<bool, CommandError> {
        let previous = around.read_text(path)?;
        let now = jiff::Timestamp::from_second(self.session.environment.now).unwrap_or_default();
        let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
        let text = helm::lock(needs, &versions, previous.as_deref(), &now.to_string());
        let is_changed =
            previous.as_ref() != Some(&text) && !(previous.is_none() && needs.is_empty());
        if is_changed && !self.dry_run {
            around.write(path, text.as_bytes())?;
        }
        Ok(is_changed)
    }
}

/// Collects the files below `folder`. It follows links that stay below `root`.
fn walk(
    folder: &Path,
    root: &Path,
    prefix: &str,
    rules: &Rules,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), CommandError> {
    for entry in fs::entries(folder)? {
        let place = entry.path();
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().at("read", &place)?;
        if NEVER.contains(&&*name) || rules.leave_out(&place, kind.is_dir()) {
            continue;
        }
        if kind.is_dir() {
            walk(&place, root, &format!("{path}/"), rules, files)?;
        } else if fs::metadata(&place)?.is_file() {
            if !fs::canonicalize(&place)?.starts_with(root) {
                let message = format!("`{}` leads out of its chart", place.display());
                return Err(CommandError::new(Code::Integrity, message)
                    .hint("replace the link by what it leads to"));
            }
            files.push((path, place));
        }
    }
    Ok(())
}

/// The name of the archive of a dependency.
fn archive_name(need: &Need, version: &str) -> String {
    format!("{}-{version}.tgz", need.name)
}

/// The path of what is called `name` in `charts`.
fn in_charts(name: &str) -> Result<InnerPath, CommandError> {
    Ok(CHARTS.join(&checked(name, InnerPath::name)?))
}

/// A path that a chart names.
fn checked(
    text: &str,
    check: impl Fn(&str) -> Result<InnerPath, TreeError>,
) -> Result<InnerPath, CommandError> {
    check(text).map_err(|error| CommandError::from_error(Code::Manifest, error))
}

fn digest_at(around: &Folder, path: &InnerPath) -> Result<Option<ArchiveDigest>, CommandError> {
    Ok(around.read(path)?.map(|bytes| digest_of(&bytes)))
}

fn digest_of(bytes: &[u8]) -> ArchiveDigest {
    ArchiveDigest::from_bytes(Sha256::digest(bytes).into())
}
