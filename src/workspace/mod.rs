//! Workspaces: where one starts, what its settings say, and which packages are its own.
//!
//! Everything is read once, in [`Workspace::open`]. Nothing here contacts a registry or reads packs.

pub mod edit;
pub mod edits;
mod members;
mod read;
mod registry;
pub(crate) mod root;
mod rules;
#[allow(dead_code, reason = "only the shape of its types and their keys are used")]
mod schema;
pub mod settings;
pub mod trust;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_formats::Reading;
use mu_formats::helm::HelmRepositoryAliases;
use mu_provider::Folder;

use self::edits::{Edit, EditsError};
use self::members::{Members, Patterns};
use self::read::{Kind, SettingsLayer};
use crate::formats;
use crate::fs::{AtPath as _, FileError};
use crate::manifest::source::{Document, SourceError};
use crate::manifest::{
    FileWarning, Loaded, Manifest, ManifestError, Requirement, manifest_name, read_bounded_text,
};
use crate::reference::{Defaults, PackageId, Reference, Version};

pub use self::members::{LeftOutFolders, LeftOutReason, Unread, formats_below};
pub(crate) use self::registry::names_folder;
pub use self::registry::{
    ConfiguredRegistry, RedirectedBase, TrustedBuilds, Untrusted, error_at_registry, prefix,
};
pub use self::root::{
    CONFIG_FILE, ForeignError, LOCK_FILE, MU_FOLDER, WORKSPACE_FILE, find_root, root_around,
};
pub(crate) use self::root::{is_shared, refuse_links_of_edits, repository_around};
pub(crate) use self::schema::File as Key;
pub use self::schema::schema;
pub use self::settings::{
    Cutoff, ExclusionSetting, LicenseRules, Link, Namespace, PatchFile, ReleaseAge, Settings,
};

pub use crate::select::{Bundled, Majors, Resolution};

/// A workspace: its settings and its own packages.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The root folder.
    pub root: PathBuf,
    /// The settings of the workspace and the home folder.
    pub settings: Settings,
    /// The part of names that the workspace's folders leave out.
    pub namespace: Option<Namespace>,
    /// The workspace's own packages, sorted by place.
    pub members: Vec<Member>,
    /// The packages that mu has made editable, and that are used from their folders.
    pub edits: Vec<Edit>,
    /// The folders that were not searched for members.
    pub left_out: Arc<LeftOutFolders>,
    /// Warnings about what is probably not intended.
    pub warnings: Vec<FileWarning>,
    /// What is there and cannot be read.
    pub unread: Unread,
    /// Which folders are searched for members.
    patterns: Arc<Patterns>,
}

/// One of the workspace's own packages.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its folder.
    pub folder: PathBuf,
    /// Its folder relative to the root, with slashes; empty for the root itself.
    pub place: String,
    /// Where references find it, if that is not its place.
    pub found_at: Option<String>,
    /// The content of its manifest.
    pub manifest: Manifest,
    /// Its manifest's file.
    pub manifest_path: PathBuf,
    /// Its id.
    pub id: PackageId,
    /// What references in its manifest leave out: its base, and for a name of one segment its namespace.
    pub defaults: Defaults,
    /// Whether a sparse checkout leaves it out, so that only its manifest is known.
    pub is_left_out: bool,
}

impl Member {
    /// Where references find it, relative to the root.
    pub fn found_at(&self) -> &str {
        self.found_at.as_deref().unwrap_or(&self.place)
    }
}

/// A workspace that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// A manifest or a file of settings cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The folder is refused as a workspace.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// The list of edits cannot be read.
    #[error(transparent)]
    Edits(#[from] EditsError),
    /// Two folders hold the same package.
    #[error("`{id}` is in this workspace twice: in `{}` and in `{}`", .first.display(), .second.display())]
    Repeated {
        /// The package.
        id: PackageId,
        /// The manifest that comes first.
        first: PathBuf,
        /// The other manifest.
        second: PathBuf,
    },
}

impl From<SourceError> for WorkspaceError {
    fn from(error: SourceError) -> Self {
        Self::Manifest(error.into())
    }
}

impl Workspace {
    /// What the manifests of its packages are called: the name of their file, if all have the same.
    pub fn common_manifest_name(&self) -> &str {
        let own = crate::manifest::YAML_NAME;
        let files = self.members.iter().map(|member| member.manifest_path.file_name());
        let mut names = files.map(|file| file.and_then(OsStr::to_str).unwrap_or(own));
        let first = names.next().unwrap_or(own);
        if names.all(|name| name == first) { first } else { "its manifest" }
    }

    /// Refuses a root that another user prepared: if a file or folder that mu knows by name is a symbolic
    /// link, or belongs to none of `users`, unless the settings in `mu_home` trust that root.
    pub fn check_root(root: &Path, mu_home: &Path, users: &[u32]) -> Result<(), WorkspaceError> {
        root::refuse_links(root)?;
        let Err(error) = root::refuse_other_owners(root, users) else { return Ok(()) };
        let config = read_layer(&mu_home.join(CONFIG_FILE), Kind::Config, mu_home)?;
        if config.is_some_and(|config| config.trusts(root)) { Ok(()) } else { Err(error.into()) }
    }

    /// Opens the workspace at `root`: reads its settings, those in `mu_home`, and every member's manifest, with the short names that
    /// the user has given to chart repositories. No packages are searched in mu's own folders: `mu_home`, and the cache, which may
    /// be inside the workspace.
    pub fn open(
        root: &Path,
        [mu_home, cache]: [&Path; 2],
        aliases: &dyn Fn() -> HelmRepositoryAliases,
    ) -> Result<Self, WorkspaceError> {
        let (mut workspace, patterns) = Self::read_settings(root, mu_home)?;
        workspace.patterns = Arc::new(patterns);
        let patterns = Arc::clone(&workspace.patterns);
        let mut links = Vec::new();
        if is_searched(root, mu_home) {
            let mut members = members::find(
                root,
                [mu_home, cache],
                &patterns,
                &workspace.settings.formats,
                &mut workspace.warnings,
            )?;
            links = std::mem::take(&mut members.links);
            workspace.unread = std::mem::take(&mut members.unread);
            workspace.add_members(members, aliases)?;
        } else {
            if let Some(path) = formats::locate_manifest(root)? {
                workspace.add_member(String::new(), path, aliases)?;
            }
            workspace.left_out = Arc::new(not_searched(root));
        }
        workspace.place_overridden();
        workspace.add_edits(aliases)?;
        if !links.is_empty() {
            workspace.follow_links(&links);
        }
        workspace.drop_hidden();
        workspace.refuse_repeated()?;
        Ok(workspace)
    }

    /// Opens the workspace at `root` without searching its members.
    pub fn open_without_members(root: &Path, mu_home: &Path) -> Result<Self, WorkspaceError> {
        Ok(Self::read_settings(root, mu_home)?.0)
    }

    /// If no folder has a manifest: the first file that was probably meant to be one, its name, and the right name.
    pub fn only_misspelt(&self) -> Option<(&Path, &str, &'static str)> {
        let mut files =
            self.warnings.iter().map(FileWarning::path).filter(|_| self.members.is_empty());
        files.find_map(|path| {
            let name = path.file_name()?.to_str()?;
            Some((path, name, manifest_name(name).filter(|right| *right != name)?))
        })
    }

    /// What references outside of manifests leave out.
    pub fn defaults_outside_manifests(&self) -> Defaults {
        self.settings.defaults()
    }

    /// The root, opened: what a checkout names is read, made, replaced and removed below it alone.
    pub fn opened(&self) -> Result<Folder, FileError> {
        Folder::at(&self.root)
    }

    /// The folder of a member, opened below the root and through no link.
    pub fn folder_of(&self, member: &Member) -> Result<Folder, FileError> {
        let root = self.opened()?;
        match member.place.as_str() {
            "" => Ok(root),
            place => root.open_folder(place).at("open the folder", &member.folder),
        }
    }

    /// The member that is the package `id`.
    pub fn member(&self, id: &PackageId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == *id)
    }

    fn read_settings(root: &Path, mu_home: &Path) -> Result<(Self, Patterns), WorkspaceError> {
        let mut warnings = Vec::new();
        let mu_folder = root.join(MU_FOLDER);
        let path = mu_folder.join(WORKSPACE_FILE);
        let above = read_layer(&path, Kind::Workspace, root)?;
        if above.is_none() && mu_folder.join("workspace.yml").is_file() {
            let message = format!("this is not read: its name must be `{WORKSPACE_FILE}`");
            warnings.push(FileWarning::new(&mu_folder.join("workspace.yml"), None, message));
        }
        let mut above = above.unwrap_or_default();
        let config = mu_home.join(CONFIG_FILE);
        let below = read_layer(&config, Kind::Config, mu_home)?;
        if below.is_none() && config.is_symlink() {
            let message = "this link is broken, so your settings are not read";
            warnings.push(FileWarning::new(&config, None, message));
        }
        let below = below.unwrap_or_default();
        for (path, layer) in [(&path, &above), (&config, &below)] {
            let message = "`auto` is for signed versions, and mu does not check signatures yet: it asks, as with `ask`";
            let lines = layer.unasked_builds.iter();
            warnings.extend(lines.map(|line| FileWarning::new(path, Some(*line), message)));
        }
        above.trust.refuse_unknown(&below.trust)?;
        let namespace = above.namespace.take();
        let patterns = above.members.take().unwrap_or_default();
        let workspace = Self {
            root: root.to_owned(),
            settings: above.over(below),
            namespace,
            members: Vec::new(),
            edits: Vec::new(),
            left_out: Arc::default(),
            warnings,
            unread: Unread::default(),
            patterns: Arc::default(),
        };
        Ok((workspace, patterns))
    }

    fn add_members(
        &mut self,
        members: Members,
        aliases: &dyn Fn() -> HelmRepositoryAliases,
    ) -> Result<(), WorkspaceError> {
        let Members { manifests, nested, mut left_out, links: _, unread: _ } = members;
        for (place, path) in manifests {
            self.add_member(place, path, aliases)?;
        }
        for (place, folder) in nested {
            // A repository that was cloned to where references point is meant to be found there.
            if let Some(path) = self.manifest_at_its_place(&place, &folder) {
                self.add_member(place, path, aliases)?;
                left_out.include_folder(&folder);
            }
        }
        self.members.sort_by(|left, right| left.place.cmp(&right.place));
        self.left_out = Arc::new(left_out);
        Ok(())
    }

    /// The manifest in a folder, if references to the package that it names point there.
    fn manifest_at_its_place(&self, place: &str, folder: &Path) -> Option<PathBuf> {
        let id = Manifest::load_head(folder).ok()??.name?.id(&self.defaults_outside_manifests());
        let path = self
            .is_place_of_package(&id, place)
            .then(|| Manifest::locate(folder).ok().flatten())
            .flatten();
        // An edit would change the target of a link.
        path.filter(|path| !path.is_symlink())
    }

    fn add_member(
        &mut self,
        place: String,
        path: PathBuf,
        aliases: &dyn Fn() -> HelmRepositoryAliases,
    ) -> Result<(), WorkspaceError> {
        let aliases = formats::format_of_manifest(&path).map(|_| aliases());
        let around = Reading { is_own: true, aliases: aliases.as_ref(), ..Reading::default() };
        let loaded = formats::load_manifest(&path, &around)?;
        self.add_loaded(place, loaded, false)
    }

    fn add_loaded(
        &mut self,
        place: String,
        loaded: Loaded,
        is_left_out: bool,
    ) -> Result<(), WorkspaceError> {
        let Loaded { manifest, path, text, warnings } = loaded;
        let is_own = formats::format_of_manifest(&path).is_none();
        refuse_other_mu(&manifest, &path, &text)?;
        let folder = formats::folder_of(&path).unwrap_or(&self.root).to_owned();
        let id = manifest.name.id(&self.defaults_outside_manifests());
        let defaults = self.defaults_in(&id);
        // A chart may need another one twice, with two aliases. The version must satisfy both ranges.
        let own = [&manifest.dependencies, &manifest.dev_dependencies];
        for requirements in own.into_iter().filter(|_| is_own) {
            refuse_repeated_dependency(requirements, &defaults, &path, &text)?;
        }
        self.warnings.extend(warnings);
        let manifest_path = path;
        self.members.push(Member {
            folder,
            place,
            found_at: None,
            id,
            manifest,
            manifest_path,
            defaults,
            is_left_out,
        });
        Ok(())
    }

    /// Adds a package whose manifest, with this text, is not on disk yet.
    pub(crate) fn add_new(&mut self, path: &Path, text: &str) -> Result<(), WorkspaceError> {
        let (manifest, warnings) = Manifest::parse(path, text)?;
        let folder = path.parent().unwrap_or(&self.root);
        let place = folder.strip_prefix(&self.root).unwrap_or(folder);
        let place = place.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
        let (path, text) = (path.to_owned(), text.to_owned());
        self.add_loaded(place, Loaded { manifest, path, text, warnings }, false)?;
        self.members.sort_by(|left, right| left.place.cmp(&right.place));
        self.refuse_repeated()
    }

    /// Lets packages of the workspace be found under their names where its settings override these by their folders. Such a package is
    /// developed here, like one that is where references lead: it is used as it is, and the lock has no digest of it.
    fn place_overridden(&mut self) {
        for index in 0..self.members.len() {
            let Member { id, folder, place, .. } = &self.members[index];
            let settings = &mut self.settings;
            let local = settings.overrides.get(id).and_then(Reference::local);
            let leads_here =
                |path: &str| crate::env::absolute(&self.root, path.as_ref()) == *folder;
            if !settings.overrides_here.contains(id) || !local.is_some_and(leads_here) {
                continue;
            }
            settings.overrides.remove(id);
            settings.overrides_here.remove(id);
            settings.overridden_here.remove(id);
            if !self.is_place_of_package(id, place) {
                self.members[index].found_at = Some(in_base(id));
            }
        }
    }

    /// Drops members that no reference can point to, because the search path finds the same package in the
    /// folder with its base first.
    fn drop_hidden(&mut self) {
        let with_base = |member: &Member| member.found_at() == in_base(&member.id);
        let first: HashMap<PackageId, PathBuf> = self
            .members
            .iter()
            .filter(|member| with_base(member))
            .map(|member| (member.id.clone(), member.folder.clone()))
            .collect();
        let members = std::mem::take(&mut self.members);
        for member in members {
            let winner = first.get(&member.id).filter(|folder| **folder != member.folder);
            match winner {
                Some(folder) if member.found_at() == self.unprefixed(&member.id) => {
                    let message = format!("not used: `{}` is found first", folder.display());
                    self.warnings.push(FileWarning::new(&member.manifest_path, None, message));
                }
                _ => self.members.push(member),
            }
        }
    }

    /// What references in the manifest of a package here leave out; where its own name has no namespace, that is the workspace's.
    fn defaults_in(&self, id: &PackageId) -> Defaults {
        let mut defaults = self.settings.defaults_in(id);
        let applies = |own: &&Namespace| own.base.as_ref().is_none_or(|base| *base == id.base());
        if defaults.namespace.is_none() {
            defaults.namespace =
                self.namespace.as_ref().filter(applies).map(|own| own.name.clone());
        }
        defaults
    }

    /// The place of a package in a folder named without its base, and without the namespace.
    fn unprefixed<'i>(&self, id: &'i PackageId) -> &'i str {
        Namespace::unprefixed(self.namespace.as_ref(), id)
    }

    fn left_out_mut(&mut self) -> &mut LeftOutFolders {
        Arc::make_mut(&mut self.left_out)
    }
}

/// The place of a package in the folder of its base.
fn in_base(id: &PackageId) -> String {
    format!("{}/{}", id.base().folder_name(), id.name_str())
}

/// What is left out if nothing below `root` is searched.
fn not_searched(root: &Path) -> LeftOutFolders {
    let mut left_out = LeftOutFolders::default();
    let why = if root::is_shared(root) {
        LeftOutReason::Shared(root.to_owned())
    } else if root.parent().is_none() {
        LeftOutReason::Disk
    } else {
        return left_out;
    };
    left_out.note_folder_tree(root, why);
    left_out.include_folder(root);
    left_out
}

/// Whether the folders below `root` are searched: not those of a whole disk or home folder in which mu
/// happened to be started, nor those of a folder into which anyone can put files.
fn is_searched(root: &Path, mu_home: &Path) -> bool {
    let mu_folder = root.join(MU_FOLDER);
    if root::is_shared(root) {
        return false;
    }
    let is_huge = root.parent().is_none() || mu_folder == mu_home;
    !is_huge || mu_folder.join(WORKSPACE_FILE).is_file()
}

fn read_layer(
    path: &Path,
    kind: Kind,
    folder: &Path,
) -> Result<Option<SettingsLayer>, WorkspaceError> {
    let Some(text) = read_bounded_text(path)? else { return Ok(None) };
    Ok(Some(read::layer(&Document::read(path, &text)?, kind, folder)?))
}

/// Refuses a package of the workspace whose manifest excludes this mu.
fn refuse_other_mu(manifest: &Manifest, path: &Path, text: &str) -> Result<(), SourceError> {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    let Some(wanted) = &manifest.mu_version else { return Ok(()) };
    let own = Version::parse(OWN).expect("mu's own version is one");
    if wanted.matches(&own, true) {
        return Ok(());
    }
    let is_key =
        |line: &str| line.trim_start_matches([' ', '"', '\'', '{']).starts_with("muVersion");
    let line = text.lines().position(is_key).unwrap_or_default() + 1;
    let message = format!("`{}` needs mu {wanted}, and this is mu {OWN}", manifest.name);
    let error = SourceError::new(path, text, line_span(text, line), message);
    Err(error.help("install a mu that fits, or change `muVersion`"))
}

/// Finds packages that are listed twice once the workspace's base is filled in; a manifest alone could not
/// know.
fn refuse_repeated_dependency(
    requirements: &[Requirement],
    defaults: &Defaults,
    path: &Path,
    text: &str,
) -> Result<(), SourceError> {
    let mut seen = HashMap::with_capacity(requirements.len());
    for requirement in requirements.iter().filter(|r| r.reference.local().is_none()) {
        let id = requirement.reference.id(defaults);
        if let Some(first) = seen.insert(id.clone(), requirement.line) {
            let again = requirement.line;
            let message = format!("`{id}` is listed twice, on lines {first} and {again}");
            return Err(SourceError::new(path, text, line_span(text, again), message)
                .related(line_span(text, first), "first here")
                .help("keep one of them"));
        }
    }
    Ok(())
}

/// The text of a line, counted from 1.
fn line_span(text: &str, line: usize) -> std::ops::Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let content = text[start..].lines().next().unwrap_or_default();
    let indent = content.len() - content.trim_start().len();
    start + indent..start + content.trim_end().len().max(indent)
}

#[cfg(test)]
mod tests;
