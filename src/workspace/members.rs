//! The workspace's own packages, and the folders that are not searched for them: one walk over its folders, one read
//! for each manifest.
//!
//! The walk follows no symbolic links, so it never leaves the workspace. Two packages never have one name: where
//! manifests say none, folders of one name are told apart by their paths. Of members that a sparse checkout leaves out,
//! only the manifests are known.
//!
//! [`LeftOutFolders`] says which folders were not searched, and why, to distinguish an ignored package from a missing
//! one. It is collected on the same walk; the disk is not read again.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use mu_formats::helm::{self, HelmRepositoryAliases};
use mu_formats::{FORMATS, Format, Reading};
use walkdir::{DirEntry, WalkDir};

use super::root::{MU_FOLDER, WORKSPACE_FILE};
use super::{Workspace, WorkspaceError, is_searched};
use crate::manifest::source::{SourceError, Value};
use crate::manifest::{
    FileWarning, Globs, JSON_NAME, Loaded, Manifest, ManifestError, YAML_NAME, globs,
    manifest_name, misspelt_name,
};
use crate::reference::{PackageId, Reference};
use crate::{formats, fs};

/// Folders of other tools, which are not searched for packages.
const SKIPPED: [&str; 2] = ["node_modules", "target"];

/// Where packages of other ecosystems have tests, which may be packages that nobody uses.
const TESTS: &str = "tests";

/// `members`: patterns of the folders that are searched, and the line of each.
#[derive(Debug)]
pub(super) struct Patterns {
    globs: Globs,
    lines: Vec<usize>,
}

impl Default for Patterns {
    fn default() -> Self {
        Self { globs: Globs::all(), lines: Vec::new() }
    }
}

impl Patterns {
    pub(super) fn read(value: Value<'_>) -> Result<Self, SourceError> {
        let line = |pattern: Value<'_>| pattern.document().line_of(pattern.span().start);
        Ok(Self { globs: globs(value)?, lines: value.list()?.map(line).collect() })
    }

    /// Whether a folder at a place can hold a member: its pattern matches, and no folder around it belongs to a tool.
    #[cfg_attr(not(feature = "git"), allow(dead_code, reason = "only Git leaves members out"))]
    fn may_be_member(&self, place: &str) -> bool {
        let is_tools = |part: &str| part.starts_with('.') || SKIPPED.contains(&part);
        self.globs.matches(place) && !place.split('/').any(is_tools)
    }

    /// A warning for each pattern that none of the `places` matches.
    fn warnings(&self, root: &Path, places: &[&str]) -> Vec<FileWarning> {
        let file = root.join(MU_FOLDER).join(WORKSPACE_FILE);
        let warning = |index: usize| {
            let pattern = self.globs.patterns().nth(index)?;
            let mut message = format!("no folder with a {YAML_NAME} matches `{pattern}`");
            let inner = pattern.trim_matches('/');
            if root.join(inner).is_dir() {
                message.push_str(&format!("; `{inner}/*` would be the folders in it"));
            }
            Some(FileWarning::new(&file, self.lines.get(index).copied(), message))
        };
        self.globs.idle(places).into_iter().filter_map(warning).collect()
    }
}

/// What the walk found.
pub(super) struct Members {
    /// Pairs of a folder's place in the workspace and the manifest in it, sorted by place.
    pub(super) manifests: Vec<(String, PathBuf)>,
    /// Folders that are separate workspaces, with their places.
    pub(super) nested: Vec<(String, PathBuf)>,
    /// Links that are not manifests, with their places.
    pub(super) links: Vec<(String, PathBuf)>,
    /// The folders that were not searched.
    pub(super) left_out: LeftOutFolders,
    /// What is there and cannot be read.
    pub(super) unread: Unread,
}

/// What is in the workspace and cannot be read, so that nobody knows what its packages require.
#[derive(Debug, Clone, Default)]
pub struct Unread {
    /// Manifests, each with its place and the reason.
    pub manifests: Vec<(String, FileWarning)>,
    /// Folders in which there may be packages, each with its place and the reason.
    pub folders: Vec<(String, FileWarning)>,
}

impl Unread {
    /// A warning for each.
    pub fn warnings(&self) -> impl Iterator<Item = &FileWarning> {
        self.folders.iter().chain(&self.manifests).map(|(_, warning)| warning)
    }
}

/// Finds the manifests below `root`, except in the folders of mu itself, `own`.
pub(super) fn find(
    root: &Path,
    own: [&Path; 2],
    patterns: &Patterns,
    formats: &[&str],
    warnings: &mut Vec<FileWarning>,
) -> Result<Members, ManifestError> {
    let globs = &patterns.globs;
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut foreign: BTreeMap<String, PathBuf> = BTreeMap::new();
    let is_foreign = |path: &Path| {
        let is_meant = |format: &&Format| formats.contains(&format.name);
        let format = formats::format_of_manifest(path).filter(is_meant);
        format.is_some_and(|format| formats::is_manifest(format, path))
    };
    let mut nested = Vec::new();
    let mut links = Vec::new();
    let mut unread = Unread::default();
    let left_out = RefCell::new(LeftOutFolders::default());
    let is_searched = |entry: &DirEntry| {
        let why = match look_at(entry, root, own, globs, &is_foreign) {
            Look::Search => return true,
            Look::PassBy => return false,
            Look::LeaveOut(why) => why,
        };
        if let LeftOutReason::OwnWorkspace(folder) = &why {
            let place = place_below(root, folder).filter(|place| globs.matches(place));
            nested.extend(place.map(|place| (place, folder.clone())));
        }
        if let LeftOutReason::Link(path) = &why {
            links.extend(place_below(root, path).map(|place| (place, path.clone())));
        }
        left_out.borrow_mut().note_folder_tree(entry.path(), why);
        false
    };
    for entry in WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(is_searched) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().unwrap_or(root);
                let message = "this folder cannot be searched for packages";
                let place = place_below(root, path).unwrap_or_default();
                unread.folders.push((place, FileWarning::new(path, None, message)));
                continue;
            }
        };
        let is_dir = entry.file_type().is_dir();
        let is_exact = |name: &str| name == YAML_NAME || name == JSON_NAME;
        if is_dir && !entry.file_name().to_str().is_some_and(is_exact) {
            continue;
        }
        let folder = formats::folder_of(entry.path()).unwrap_or(root);
        let Some(place) = place_below(root, folder) else { continue };
        if !place.is_empty() && !globs.matches(&place) {
            left_out.borrow_mut().note(folder, LeftOutReason::Unnamed);
            continue;
        }
        if is_dir {
            return Err(ManifestError::Folder { path: entry.into_path() });
        }
        if let Some(message) = objection(&entry, root) {
            left_out.borrow_mut().note(folder, LeftOutReason::Link(entry.path().to_owned()));
            let warning = FileWarning::new(entry.path(), None, message);
            // What is called almost like a manifest would not be read in any case.
            match entry.file_name().to_str().is_some_and(is_exact) || is_foreign(entry.path()) {
                true => unread.manifests.push((place, warning)),
                false => warnings.push(warning),
            }
            continue;
        }
        match entry.file_name().to_str() {
            Some(name) if is_exact(name) => found.entry(place).or_default().push(entry.into_path()),
            Some(_) if is_foreign(entry.path()) => {
                foreign.entry(place).or_insert(entry.into_path());
            }
            Some(name) => warnings.extend(misspelt_name(folder, name)),
            None => {}
        }
    }
    let only = |(place, mut files): (String, Vec<PathBuf>)| match files.pop() {
        Some(file) if files.is_empty() => Ok((place, file)),
        file => {
            let folder = file.as_deref().and_then(Path::parent).unwrap_or(root).to_owned();
            Err(ManifestError::Both { folder })
        }
    };
    let mut manifests: BTreeMap<String, PathBuf> =
        found.into_iter().map(only).collect::<Result<_, _>>()?;
    // A manifest at the root always counts. Below it there are charts inside charts, so others count only if
    // the settings say so.
    let at_root = formats::locate_manifest(root)?.filter(|path| !path.is_symlink());
    if let Some(path) = at_root.filter(|_| !manifests.contains_key("")) {
        manifests.insert(String::new(), path);
    }
    let is_whole = |path: &PathBuf| formats::format_of_manifest(path).is_some();
    for (place, path) in foreign {
        if !manifests.contains_key(&place)
            && !is_inside_another(root, &place, |above| {
                manifests.get(above).is_some_and(|path| !above.is_empty() || is_whole(path))
            })
        {
            manifests.insert(place, path);
        }
    }
    let places: Vec<&str> = manifests.keys().map(String::as_str).collect();
    warnings.extend(patterns.warnings(root, &places));
    let manifests = manifests.into_iter().collect();
    Ok(Members { manifests, nested, links, left_out: left_out.into_inner(), unread })
}

/// The formats of other ecosystems that have a manifest below `root`, whatever settings say. No packages are searched in mu's own
/// folders: `~/.mu` and the cache.
pub fn formats_below(root: &Path, own: [&Path; 2]) -> Vec<&'static str> {
    if !is_searched(root, own[0]) {
        return Vec::new();
    }
    let mut all: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    all.dedup();
    let found = find(root, own, &Patterns::default(), &all, &mut Vec::new());
    let manifests = found.map(|members| members.manifests).unwrap_or_default();
    let below = manifests.iter().filter(|(place, _)| !place.is_empty());
    let present: Vec<&str> =
        below.filter_map(|(_, path)| Some(formats::format_of_manifest(path)?.name)).collect();
    all.into_iter().filter(|format| present.contains(format)).collect()
}

/// Whether a folder with a foreign manifest is part of another package: it is in that package's folder, or among tests, or a chart
/// carries it, which need not be a member itself.
fn is_inside_another(root: &Path, place: &str, is_package: impl Fn(&str) -> bool) -> bool {
    let mut above = place;
    loop {
        let (rest, name) = above.rsplit_once('/').unwrap_or(("", above));
        // Without a chart around it, as in a repository of charts, it is a folder like any other.
        let is_carried =
            || name == helm::CHARTS_FOLDER && root.join(rest).join(helm::CHART).is_file();
        if name == TESTS || is_carried() || (!above.is_empty() && is_package(rest)) {
            return true;
        }
        if rest.is_empty() {
            return false;
        }
        above = rest;
    }
}

/// What the walk does with an entry.
enum Look {
    /// It may be a manifest, or contain one.
    Search,
    /// No reference points there.
    PassBy,
    /// A reference could point there, but packages in it do not belong to the workspace.
    LeaveOut(LeftOutReason),
}

fn look_at(
    entry: &DirEntry,
    root: &Path,
    own: [&Path; 2],
    globs: &Globs,
    is_foreign: &dyn Fn(&Path) -> bool,
) -> Look {
    if entry.depth() == 0 {
        return Look::Search;
    }
    let Some(name) = entry.file_name().to_str() else { return Look::PassBy };
    let path = || entry.path().to_owned();
    if !entry.file_type().is_dir() {
        return match manifest_name(name) {
            Some(_) => Look::Search,
            None if is_foreign(entry.path()) => Look::Search,
            None if entry.path_is_symlink() => Look::LeaveOut(LeftOutReason::Link(path())),
            None => Look::PassBy,
        };
    }
    if name.starts_with('.') || own.contains(&entry.path()) {
        return Look::PassBy;
    }
    if SKIPPED.contains(&name) {
        return Look::LeaveOut(LeftOutReason::OtherTool(path()));
    }
    let Some(place) = place_below(root, entry.path()) else { return Look::PassBy };
    if !globs.matches(&place) && !globs.may_match_below(&place) {
        return Look::LeaveOut(LeftOutReason::Unnamed);
    }
    // What mu has in its cache are packages, and the cache of another run may be anywhere.
    if fs::is_cache(entry.path()) {
        return Look::PassBy;
    }
    let is_workspace = entry.path().join(MU_FOLDER).join(WORKSPACE_FILE).is_file();
    if is_workspace { Look::LeaveOut(LeftOutReason::OwnWorkspace(path())) } else { Look::Search }
}

/// The folder relative to the root, with slashes; `None` for names that are not UTF-8.
pub(super) fn place_below(root: &Path, folder: &Path) -> Option<String> {
    let relative = folder.strip_prefix(root).ok()?;
    let segments: Option<Vec<&str>> =
        relative.components().map(|component| component.as_os_str().to_str()).collect();
    Some(segments?.join("/"))
}

/// Why an entry named like a manifest is not read.
fn objection(entry: &DirEntry, root: &Path) -> Option<&'static str> {
    let path = entry.path();
    if !entry.path_is_symlink() {
        return (!entry.file_type().is_file()).then_some("this is not a file, so it is not read");
    }
    let target = fs::canonicalize(path);
    match (target, fs::canonicalize(root)) {
        (Err(_), _) => Some("this link is broken"),
        (Ok(target), Ok(root)) if target.starts_with(&root) => (!target.is_file())
            .then_some("this link does not point to a file, so it is not followed"),
        _ => Some("this link points out of the workspace, so it is not followed"),
    }
}

impl Workspace {
    /// Refuses packages of one name, after those that say no name have got one that nothing else here has.
    pub(super) fn refuse_repeated(&mut self) -> Result<(), WorkspaceError> {
        self.name_by_path();
        let mut seen = HashMap::with_capacity(self.members.len());
        for member in &self.members {
            if let Some(first) = seen.insert(&member.id, &member.manifest_path) {
                return Err(WorkspaceError::Repeated {
                    id: member.id.clone(),
                    first: first.clone(),
                    second: member.manifest_path.clone(),
                });
            }
        }
        Ok(())
    }

    /// Names those that say no name by their whole paths in the workspace, if others have the names of their folders, too.
    fn name_by_path(&mut self) {
        let mut seen = HashSet::with_capacity(self.members.len());
        let ids = self.members.iter().map(|member| &member.id);
        let repeated: HashSet<PackageId> = ids.filter(|id| !seen.insert(*id)).cloned().collect();
        if repeated.is_empty() {
            return;
        }
        let defaults = self.defaults_outside_manifests();
        let members = self.members.iter_mut().filter(|member| repeated.contains(&member.id));
        for member in members.filter(|member| formats::says_no_name(&member.manifest_path)) {
            let by_path = Reference::parse(&member.place).ok();
            if let Some(name) =
                by_path.filter(|name| name.base().is_none() && name.local().is_none())
            {
                member.id = name.id(&defaults);
                member.manifest.name = name;
            }
        }
    }
}

impl Workspace {
    /// Adds the member whose manifest has this path and text in the checkout, and is left out of it. What is no member is passed over.
    #[cfg_attr(not(feature = "git"), allow(dead_code, reason = "only Git leaves members out"))]
    pub(crate) fn add_left_out(
        &mut self,
        path: &str,
        text: &str,
        aliases: &dyn Fn() -> HelmRepositoryAliases,
    ) -> Result<(), WorkspaceError> {
        let path = self.root.join(path);
        let Some(folder) = formats::folder_of(&path) else { return Ok(()) };
        let Some(place) = folder.strip_prefix(&self.root).ok().and_then(Path::to_str) else {
            return Ok(());
        };
        let format = formats::format_of_manifest(&path);
        let is_meant = format.is_none_or(|format| self.settings.formats.contains(&format.name));
        if !self.patterns.may_be_member(place) || !is_meant {
            return Ok(());
        }
        let place = place.to_owned();
        let (manifest, warnings) = match format {
            None => Manifest::parse(&path, text)?,
            Some(format) => {
                let aliases = aliases();
                let around =
                    Reading { is_own: true, aliases: Some(&aliases), ..Reading::default() };
                (formats::parse(format, &path, text, None, &around)?, Vec::new())
            }
        };
        let text = text.to_owned();
        self.add_loaded(place, Loaded { manifest, path, text, warnings }, true)?;
        self.members.sort_by(|left, right| left.place.cmp(&right.place));
        self.refuse_repeated()
    }
}

/// Folders that may contain packages which do not belong to the workspace.
#[derive(Debug, Clone, Default)]
pub struct LeftOutFolders {
    alone: HashMap<PathBuf, LeftOutReason>,
    with_all_below: HashMap<PathBuf, LeftOutReason>,
    taken: HashSet<PathBuf>,
}

/// Why a folder is not searched for packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOutReason {
    /// `members` does not name it.
    Unnamed,
    /// It belongs to another tool.
    OtherTool(PathBuf),
    /// It is in another workspace, with this root.
    OwnWorkspace(PathBuf),
    /// It is behind this link.
    Link(PathBuf),
    /// The workspace is a whole disk.
    Disk,
    /// Anyone can put files into this folder.
    Shared(PathBuf),
    /// It was edited, and its edit has ended.
    Ended,
}

impl LeftOutFolders {
    /// Records a folder, but not what is below it.
    pub(super) fn note(&mut self, folder: &Path, why: LeftOutReason) {
        self.alone.insert(folder.to_owned(), why);
    }

    /// Records a folder and everything below it.
    pub(super) fn note_folder_tree(&mut self, folder: &Path, why: LeftOutReason) {
        self.with_all_below.insert(folder.to_owned(), why);
    }

    /// Records that the package in this folder belongs to the workspace anyway.
    pub(super) fn include_folder(&mut self, folder: &Path) {
        self.taken.insert(folder.to_owned());
    }

    /// Whether every folder was searched.
    pub fn is_empty(&self) -> bool {
        self.alone.is_empty() && self.with_all_below.is_empty()
    }

    /// Why a package in `folder` does not belong to the workspace; `None` if the folder was searched, or did
    /// not exist.
    pub fn reason_left_out(&self, folder: &Path) -> Option<&LeftOutReason> {
        if self.taken.contains(folder) {
            return None;
        }
        let above = || folder.ancestors().find_map(|folder| self.with_all_below.get(folder));
        self.alone.get(folder).or_else(above)
    }
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unnamed => {
                write!(formatter, "`members` in `{MU_FOLDER}/{WORKSPACE_FILE}` does not name it")
            }
            Self::OtherTool(folder) => {
                write!(formatter, "packages are not looked for in `{}`", folder.display())
            }
            Self::OwnWorkspace(root) => {
                write!(formatter, "`{}` is a workspace of its own", root.display())
            }
            Self::Link(path) => {
                write!(formatter, "`{}` is a link, which is not followed", path.display())
            }
            Self::Shared(folder) => {
                write!(formatter, "anyone can put packages into `{}`", folder.display())
            }
            Self::Ended => {
                formatter.write_str("its edit has ended; editing the package again uses it")
            }
            Self::Disk => write!(
                formatter,
                "a whole disk is searched only if it has a `{MU_FOLDER}/{WORKSPACE_FILE}`"
            ),
        }
    }
}
