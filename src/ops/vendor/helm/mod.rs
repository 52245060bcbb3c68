//! `vendor --for helm`: puts the dependencies of the workspace's charts where Helm looks for them, as
//! archives in `charts/` with a `Chart.lock`.
//!
//! Helm only knows the direct dependencies of a chart; their dependencies are inside their archives. The
//! files for Helm are written after Mu.lock, which remains authoritative.

mod packing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mu_formats::helm::{self, Need, Needs};
use mu_provider::{ArchiveDigest, Folder, InnerPath, KeptArchives, OwnPath, TreeError};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use self::packing::{MadeArchive, UnpackedChart, check_whole, is_registry_archive};
use crate::formats;
use crate::lock::LockedPackage;
use crate::ops::apply::fetch::fetch_archive;
use crate::ops::apply::kinds;
use crate::ops::explain::carried::{Inside, carried_in};
use crate::ops::requirements::requester::Requester;
use crate::ops::session::source::relative;
use crate::ops::vendor::{VendorMode, WrittenFiles, chosen, locked, prepared};
use crate::ops::{Code, CommandError, Outcome, Session, Warning, vendor};
use crate::reference::{Defaults, PackageId};
use crate::workspace::Member;

/// Where Helm looks, beside `Chart.yaml`.
const CHARTS: OwnPath = InnerPath::own(helm::CHARTS_FOLDER);

/// What `mu vendor --for helm` wrote.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Vendored {
    /// The charts of the workspace.
    pub charts: Vec<VendoredChart>,
}

impl WrittenFiles for Vendored {
    fn is_unchanged(&self) -> bool {
        self.charts.iter().all(|chart| {
            !chart.lock_changed
                && chart.removed.is_empty()
                && chart.archives.iter().all(|archive| !archive.changed)
        })
    }
}

/// The dependencies of one chart of the workspace, as Helm has them.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VendoredChart {
    /// Its name.
    pub name: String,
    /// Its folder, seen from the root of the workspace.
    pub folder: String,
    /// The name of its lock: `Chart.lock`, or `requirements.lock` of a chart of the first format.
    pub lock: String,
    /// Whether its lock has changed.
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

/// Installs what the workspace needs, and writes `charts/` and `Chart.lock` of each of its charts, or of those called `packages`. With
/// `unify`, archives that have other versions inside than Mu.lock are made again, with those of Mu.lock. Also returns how the packs
/// changed.
pub fn vendor_for_helm(
    session: &Session,
    packages: &[String],
    mode: VendorMode,
    unify: bool,
) -> Result<(Outcome, Vendored), CommandError> {
    let charts = chosen(session, packages, "chart", is_chart)?;
    if charts.is_empty() {
        let root = session.workspace.root.display();
        let message = format!("no package of the workspace `{root}` is a chart");
        return Err(CommandError::new(Code::NotFound, message)
            .hint("this command fills `charts/` beside a `Chart.yaml`")
            .hint("charts in folders below the root count with `formats: [helm]` in `.mu/workspace.yaml`"));
    }
    let outcome = prepared(session, mode)?;
    let files = kinds::missing(&session.workspace.root)?;
    if !files.is_empty() {
        session.events.warning(&Warning::HelmPacks { files });
    }
    let _store = session.use_store()?;
    let mut run = Vendoring { session, outcome: &outcome, mode, unify, made: BTreeMap::new() };
    let charts = charts.into_iter().map(|chart| run.chart(chart)).collect::<Result<_, _>>()?;
    Ok((outcome, Vendored { charts }))
}

fn is_chart(member: &Member) -> bool {
    member.manifest_path.file_name().is_some_and(|name| name == helm::CHART)
}

struct Vendoring<'run> {
    session: &'run Session,
    outcome: &'run Outcome,
    mode: VendorMode,
    /// Whether the charts inside of archives become those of Mu.lock, too.
    unify: bool,
    /// The archives that were made, by the folder of their chart.
    made: BTreeMap<PathBuf, MadeArchive>,
}

/// A dependency, found.
struct Found {
    version: String,
    /// The archive for `charts/`; `None` if the chart is there already.
    archive: Option<Content>,
    /// Where the chart is from, for messages.
    from: String,
    /// The digest of the archive, as far as it is known.
    digest: Option<ArchiveDigest>,
}

impl Found {
    /// A chart that is in `charts` as it is.
    fn there(version: String) -> Self {
        Self { version, archive: None, from: String::new(), digest: None }
    }
}

/// The archive of a dependency.
enum Content {
    /// It is there already.
    Kept,
    /// It is to be written.
    New(Rc<[u8]>),
    /// It would be written.
    Planned,
}

impl<'run> Vendoring<'run> {
    /// Fills one chart.
    fn chart(&mut self, member: &Member) -> Result<VendoredChart, CommandError> {
        let Needs { needs, lock: lock_name } =
            formats::helms_needs(&member.manifest_path, self.session.short_names(), true)?;
        let around = self.session.workspace.folder_of(member)?;
        // In a checkout, `charts` may be a link: everything would be written to where it leads. `inner` refuses it.
        if around.look_at(&CHARTS.into())?.is_some() {
            around.inner(&CHARTS.into())?;
        }
        let mut vendored = VendoredChart {
            name: member.manifest.name.name().to_string(),
            folder: relative(&self.session.workspace.root, &member.folder),
            lock: lock_name.to_owned(),
            ..VendoredChart::default()
        };
        let mut versions = Vec::with_capacity(needs.len());
        // Nothing is written before all of it is there.
        let mut new: BTreeMap<String, Rc<[u8]>> = BTreeMap::new();
        let mut origins: BTreeMap<String, (String, Option<ArchiveDigest>)> = BTreeMap::new();
        for need in &needs {
            let Found { version, archive, from, digest } =
                self.find(member, need, &around, &mut vendored)?;
            if let Some(content) = archive {
                let file = archive_name(need, &version);
                if let Some((first, known)) = origins.get(&file) {
                    if *first != from && *known != digest {
                        return Err(two_called(need, &version, first, &from));
                    }
                } else {
                    origins.insert(file.clone(), (from, digest));
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
        // Archives, then what nobody needs any more, then the lock: a run that is killed leaves the old lock, and the next
        // run sees what is missing.
        for (file, bytes) in &new {
            around.write(&in_charts(file)?, bytes)?;
        }
        let lock = InnerPath::own(lock_name).into();
        let previous = around.read_text(&lock)?;
        vendored.removed = self.remove_others(&around, &needs, previous.as_deref(), &vendored)?;
        vendored.lock_changed = self.write_lock(&around, &lock, previous, &needs, &versions)?;
        Ok(vendored)
    }

    /// The locked package of a dependency, which the manifest of `by` in the folder `from` names, and its place in the lock.
    fn locked(
        &self,
        defaults: &Defaults,
        from: &Path,
        by: &str,
        need: &Need,
    ) -> Option<(usize, &'run LockedPackage)> {
        let reference = &need.requirement.as_ref()?.reference;
        locked(self.session, &self.outcome.lock, reference, defaults, from, by)
    }

    /// The folder with the files of a locked package, if they are on this machine.
    fn content(&self, index: usize) -> Option<PathBuf> {
        vendor::installed_folder(self.session, self.outcome, index)
    }

    fn find(
        &mut self,
        member: &Member,
        need: &Need,
        around: &Folder,
        vendored: &mut VendoredChart,
    ) -> Result<Found, CommandError> {
        let by = Requester::from_member(member);
        let asked = self.locked(&member.defaults, &member.folder, by.as_str(), need);
        let Some((index, package)) = asked else {
            return self.inside(member, need, around);
        };
        // What is patched is no longer the archive that was published.
        let as_published = is_registry_archive(package) && package.patch.is_none();
        let is_there = |target: &InnerPath| -> Result<bool, CommandError> {
            let archive = package.archive.filter(|_| as_published);
            Ok(archive.is_some() && archive == digest_at(around, target)?)
        };
        // In a plan, what is not on this machine stays where it is, and is only named.
        let from = package.id.to_string();
        let published = package.archive.filter(|_| as_published);
        let Some(folder) = self.content(index) else {
            let version = need.version_for_helm(package.version.clone());
            let target = in_charts(&archive_name(need, &version))?;
            let content = if is_there(&target)? { Content::Kept } else { Content::Planned };
            return Ok(Found { version, archive: Some(content), from, digest: published });
        };
        let version =
            need.version_for_helm(self.version_in(&folder, need, &member.manifest_path)?);
        // Helm takes the charts inside of an archive, whatever versions Mu.lock has of them. With `--unify` the archive
        // is made again, with those of Mu.lock; otherwise this is told.
        let carried = carried_in(&self.outcome.lock, package, &folder);
        let is_made_one = self.unify && !carried.is_empty();
        let as_published = as_published && !is_made_one;
        if !is_made_one {
            let inside = format!("{} {version}", need.name);
            self.note_carried(&carried, package, &inside, vendored);
        }
        let target = in_charts(&archive_name(need, &version))?;
        if as_published {
            check_whole(&need.name, &version, &folder)?;
            self.warn_of_large_files(&format!("{} {version}", need.name), &folder);
        }
        if !is_made_one && is_there(&target)? {
            return Ok(Found { version, archive: Some(Content::Kept), from, digest: published });
        }
        // As it was published, byte for byte, where there is such an archive; everything else is packed here.
        let fetched = match as_published && !self.mode.is_dry() {
            true => fetch_archive(self.session, package, KeptArchives::OfOtherTools)?.map(Rc::from),
            false => None,
        };
        let bytes = match fetched {
            None => self.packed_package(package, &need.name, &folder)?,
            fetched => fetched,
        };
        let published = published.filter(|_| as_published);
        let digest = bytes.as_deref().map(digest_of).or(published);
        let archive = match bytes {
            Some(bytes) => self.compared(around, &target, bytes)?,
            None => Content::Planned,
        };
        Ok(Found { version, archive: Some(archive), from, digest })
    }

    /// What becomes of the archive at `target`, which should be `bytes`.
    fn compared(
        &self,
        around: &Folder,
        target: &InnerPath,
        bytes: Rc<[u8]>,
    ) -> Result<Content, CommandError> {
        Ok(match (digest_at(around, target)? == Some(digest_of(&bytes)), self.mode.is_dry()) {
            (true, _) => Content::Kept,
            (false, true) => Content::Planned,
            (false, false) => Content::New(bytes),
        })
    }

    /// A dependency that mu does not require, because the chart carries it in `charts/`, or elsewhere in its
    /// folder.
    fn inside(
        &mut self,
        member: &Member,
        need: &Need,
        around: &Folder,
    ) -> Result<Found, CommandError> {
        let carried = in_charts(&need.name)?;
        // Without a `repository`, the chart must be in `charts` already; with `file://`, it is elsewhere in the folder.
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
                carried.clone()
            }
            // The settings choose the copy inside.
            None => carried.clone(),
        };
        let folder = around.path().join(&place);
        if around.look_at(&place)?.is_some() {
            around.inner(&place)?;
        }
        let version = self.version_in(&folder, need, &member.manifest_path)?;
        if !need.has_in_range(&version) {
            return Err(other_version(need, &version, &folder, &member.manifest_path));
        }
        if place == carried {
            // Helm locks what is written for a chart without a repository, and else what is there.
            let is_written = need.repository.is_empty();
            return Ok(Found::there(if is_written { need.version.clone() } else { version }));
        }
        let chart =
            UnpackedChart { name: &need.name, folder: &folder, locked_as: None, is_own: true };
        let target = in_charts(&archive_name(need, &version))?;
        let bytes = self.packed(&chart)?;
        let digest = bytes.as_deref().map(digest_of);
        let archive = match bytes {
            Some(bytes) => self.compared(around, &target, bytes)?,
            None => Content::Planned,
        };
        let from = folder.display().to_string();
        Ok(Found { version, archive: Some(archive), from, digest })
    }

    /// The version of the chart in a folder, as it is written there.
    fn version_in(&self, folder: &Path, need: &Need, by: &Path) -> Result<String, CommandError> {
        let head = formats::helms_head(folder)?;
        // Helm finds a dependency by the name in its archive, and not by that of the file.
        if let Some(head) = head.filter(|head| head.name == need.name) {
            return Ok(head.version);
        }
        let id = need.requirement.as_ref().map(|one| {
            let from = by.parent().unwrap_or(by);
            let session = self.session;
            session.places.id_of(
                &one.reference,
                &session.reference_defaults(),
                from,
                &session.workspace,
            )
        });
        let overrides = &self.session.workspace.settings.overrides;
        let hint = match id.and_then(|id| overrides.get_key_value(&id)) {
            Some((id, to)) => format!(
                "the settings replace `{id}` by `{to}`: take the override away, or let it lead to a chart"
            ),
            None => format!(
                "Helm installs nothing but charts: remove `{}` from the dependencies in `{}`, or let it lead to a folder whose Chart.yaml has that name",
                need.name,
                by.display()
            ),
        };
        let message = format!("`{}` is not a chart called `{}`", folder.display(), need.name);
        Err(CommandError::new(Code::Manifest, message).hint(hint))
    }

    /// Records which charts inside an archive differ from the lock.
    fn note_carried(
        &self,
        carried: &[(PackageId, Inside)],
        package: &LockedPackage,
        inside: &str,
        vendored: &mut VendoredChart,
    ) {
        for (id, found) in carried {
            let name = id.name().leaf().to_owned();
            let around = found.inside.strip_suffix(package.id.name().leaf()).unwrap_or_default();
            let locked = self.outcome.lock.find(id).last().map(|package| package.version.clone());
            let one = Carried {
                inside: format!("{around}{inside}"),
                name,
                version: found.version.clone(),
                locked: locked.unwrap_or_default(),
            };
            if !vendored.carried.contains(&one) {
                vendored.carried.push(one);
            }
        }
    }

    /// Writes the lock; returns whether it has changed.
    fn write_lock(
        &self,
        around: &Folder,
        path: &InnerPath,
        previous: Option<String>,
        needs: &[Need],
        versions: &[String],
    ) -> Result<bool, CommandError> {
        let now = jiff::Timestamp::from_second(self.session.environment.now).unwrap_or_default();
        let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
        // What it says is kept with its date, so that a second run changes nothing.
        let text = helm::lock(needs, &versions, previous.as_deref(), &now.to_string());
        // A chart without dependencies needs no lock.
        let is_changed =
            previous.as_ref() != Some(&text) && !(previous.is_none() && needs.is_empty());
        if is_changed && !self.mode.is_dry() {
            around.write(path, text.as_bytes())?;
        }
        Ok(is_changed)
    }
}

/// The error for two dependencies whose archives differ and have one name in `charts`.
fn two_called(need: &Need, version: &str, first: &str, second: &str) -> CommandError {
    let name = &need.name;
    let message =
        format!("two dependencies are called `{name}` {version}: `{first}` and `{second}`");
    CommandError::new(Code::Conflict, message).hint(
        "Helm keeps charts by name and version alone, so it can use only one of them: take one out, or require another version of it",
    )
}

/// The error for a chart inside that is not in the range of the dependency. Helm renders it all the same, under its own name and not under
/// the alias.
fn other_version(need: &Need, version: &str, folder: &Path, by: &Path) -> CommandError {
    let Need { name, version: range, .. } = need;
    let (folder, by) = (folder.display(), by.display());
    let message = format!("`{folder}` is {name} {version}, and `{by}` asks for {range}");
    CommandError::new(Code::Conflict, message)
        .hint("put a version there that is in the range, or change the range")
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
