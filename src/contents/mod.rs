//! What of a folder is the content of its package, as its owner would pack it: for `mu pack` and publishing, for the digest and
//! the installation of a folder that is a dependency, and for the archives of charts. There is one walk for all of them.
//!
//! `Walk` reads only names, kinds and modes. Whether a path is allowed in a package is checked where the files are written. A
//! link inside the package stays one. Where a link leads to something else of the author's, what is there is taken, as Helm does
//! with every link. `Owned` says what is the author's: the package, and the repository or workspace around it.
//!
//! `rules.rs` reads `.gitignore` and its like, and knows the archives that follow from a chart's dependencies, and those of the
//! package itself. `recorded.rs` asks Git how files are where a checkout has them otherwise.

pub(crate) mod recorded;
pub(crate) mod rules;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use mu_formats::helm;
use mu_provider::{ErrorKind, InnerPath, Limits, ProviderError, TreeWriter};
use mu_provider_hub::wire::HubFile;
#[cfg(feature = "git")]
use walkdir::{DirEntry, WalkDir};

#[cfg(feature = "git")]
use self::recorded::{
    leave_out_own_files, recorded_modes, take_recorded_line_ends, take_recorded_links,
};
use self::rules::{OF_PACKAGES, Rules};
use crate::env::Environment;
use crate::formats;
use crate::fs::{self, AtPath as _, FileError};
use crate::manifest::{FileWarning, Manifest, ManifestError};
use crate::workspace::{LOCK_FILE, MU_FOLDER, repository_around};

pub(crate) use self::rules::{Derived, GZIP, is_archive_of};

/// One file or link of a package.
#[derive(Debug)]
pub(crate) struct PackageItem {
    /// Slash-separated path in the package.
    pub(crate) path: String,
    /// Its content.
    pub(crate) content: Content,
}

/// The content of a file or link.
#[derive(Debug)]
pub(crate) enum Content {
    /// A file of this machine.
    File {
        /// Where it is.
        place: PathBuf,
        /// Whether it can be executed.
        executable: bool,
        /// Its content where that is not what is there, but what Git has recorded of it.
        recorded: Option<Vec<u8>>,
    },
    /// A file that mu writes.
    #[cfg(feature = "hub")]
    Text(String),
    /// A link with its target.
    Link(String),
}

/// Whose rules say what belongs to a package.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'a> {
    /// Those of its own manifest, and the ignore rules around.
    Own {
        /// The manifest.
        manifest: &'a Manifest,
        /// The name of its file.
        file: &'a str,
    },
    /// Helm's, for a chart that is worked on.
    Chart,
    /// Nobody's: a chart that was packed elsewhere.
    Packed,
    /// The ignore rules around: a package whose own tool packs it, or a folder without a manifest.
    Other {
        /// The manifest's path in the folder.
        file: Option<&'a str>,
    },
}

impl<'a> Kind<'a> {
    /// Whether what links lead to is taken, as Helm does.
    fn follows_all(self) -> bool {
        matches!(self, Self::Chart | Self::Packed)
    }

    /// The manifest's path in the folder, where it is packed regardless of the rules.
    fn manifest(self) -> Option<&'a str> {
        match self {
            Self::Own { file, .. } => Some(file),
            Self::Other { file } => file,
            Self::Chart | Self::Packed => None,
        }
    }
}

/// A folder whose content is chosen.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) kind: Kind<'a>,
    /// Where links may lead.
    pub(crate) owned: &'a Owned,
    /// What is left out: folders that belong to this machine alone, and a file that is being written.
    pub(crate) others: &'a [PathBuf],
}

/// The content of a package, sorted by the bytes of the paths, and warnings for its author.
pub(crate) fn choose_contents(
    source: &Source<'_>,
    environment: &Environment,
    warnings: &mut Vec<FileWarning>,
) -> Result<Vec<PackageItem>, ProviderError> {
    let Source { folder, kind, owned, others } = *source;
    let (rules, derived) = match kind {
        Kind::Own { .. } | Kind::Other { .. } => {
            let file = kind.manifest().unwrap_or_default();
            let rules = Rules::for_content(OF_PACKAGES, folder, owned.top(), file, warnings)?;
            (Some(rules.over_left_behind()), None)
        }
        Kind::Chart => {
            let rules = Rules::read_helmignore(folder, warnings)?;
            (Some(rules), Some(rules::derived(folder, environment)?))
        }
        Kind::Packed => (None, None),
    };
    let mut walk = Walk::new(folder, kind, owned, others);
    walk.folder(folder, "", rules.as_ref(), false, warnings)?;
    let mut chosen = walk.chosen();
    if let Some(derived) = derived {
        chosen.retain(|item| !derived.contains(&item.path));
    }
    chosen.sort_unstable_by(|left, right| left.path.as_bytes().cmp(right.path.as_bytes()));
    #[cfg(feature = "git")]
    if owned.has_more() {
        take_recorded_links(folder, owned, !kind.follows_all(), environment, &mut chosen)?;
    }
    #[cfg(feature = "git")]
    if owned.has_more()
        && let Some(modes) = recorded_modes(folder, environment)?
    {
        for item in &mut chosen {
            let Content::File { place, executable, .. } = &mut item.content else { continue };
            // As for Git, what is not tracked is an ordinary file.
            let recorded = fs::canonicalize(place).ok().and_then(|real| modes.get(&real));
            *executable = recorded.copied().unwrap_or_default();
        }
    }
    #[cfg(feature = "git")]
    if owned.has_more() {
        take_recorded_line_ends(folder, environment, &mut chosen)?;
    }
    Ok(chosen)
}

/// Whether a file at this path in the package would be its content, if it were there; of a folder, whether something in it could be.
#[cfg(feature = "git")]
pub(crate) fn would_choose(
    source: &Source<'_>,
    path: &str,
    is_folder: bool,
) -> Result<bool, ProviderError> {
    let Source { folder, kind, owned, others } = *source;
    let warnings = &mut Vec::new();
    let file = kind.manifest().unwrap_or_default();
    let rules = Rules::for_content(OF_PACKAGES, folder, owned.top(), file, warnings)?;
    let mut rules = rules.over_left_behind();
    let walk = Walk::new(folder, kind, owned, others);
    if path == LOCK_FILE || walk.is_needed(path) {
        return Ok(path != LOCK_FILE);
    }
    let around = path.match_indices('/').map(|(end, _)| (&path[..end], true));
    for (inner, is_folder) in around.chain([(path, is_folder)]) {
        let (name, place) = (inner.rsplit('/').next().unwrap_or(inner), folder.join(inner));
        if walk.leaves_out(name, inner, &place, is_folder, Some(&rules)) {
            return Ok(false);
        }
        if inner != path {
            rules = rules.with_folder_inside(&place, warnings)?;
        }
    }
    Ok(match kind {
        Kind::Own { manifest, .. } if is_folder => manifest.files.may_match_below(path),
        _ => walk.covers(path) && !walk.is_archive(path, &folder.join(path), true),
    })
}

/// The links in the package of `folder` that lead out of it, each with its path there and where it leads, without links. What they
/// lead to is packed, too.
#[cfg(feature = "git")]
pub(crate) fn links_out(folder: &Path) -> Vec<(String, PathBuf)> {
    let Ok(real) = fs::canonicalize(folder) else { return Vec::new() };
    let is_searched = |entry: &DirEntry| !entry.file_name().to_str().is_some_and(is_never);
    let entries = WalkDir::new(&real).min_depth(1).into_iter().filter_entry(is_searched);
    let links = entries.flatten().filter(DirEntry::path_is_symlink);
    let out = links.filter_map(|link| {
        let path = link.path().strip_prefix(&real).ok()?.to_str()?.to_owned();
        let target = fs::canonicalize(link.path()).ok()?;
        (!target.starts_with(&real)).then_some((path, target))
    });
    out.collect()
}

/// Writes the content of the package in `folder`, which is not one of the workspace's, into `tree`.
pub(crate) fn write(
    folder: &Path,
    environment: &Environment,
    tree: &mut TreeWriter,
) -> Result<(), ProviderError> {
    // The rules around it are those of where it really is.
    let folder = &fs::canonicalize(folder)?;
    let path = formats::locate_manifest(folder).map_err(|error| unreadable(&error))?;
    let file = path.as_deref().and_then(|path| path.strip_prefix(folder).ok()?.to_str());
    let format = path.as_deref().and_then(formats::format_of_manifest);
    let loaded = match &path {
        Some(path) if format.is_none() => {
            Some(Manifest::load_file(path).map_err(|error| unreadable(&error))?)
        }
        _ => None,
    };
    let kind = match (&loaded, file) {
        (Some(loaded), Some(file)) => Kind::Own { manifest: &loaded.manifest, file },
        (None, _) if format.is_some_and(|format| format.name == helm::FORMAT.name) => Kind::Chart,
        (_, file) => Kind::Other { file },
    };
    let others = [environment.cache.clone(), environment.mu_home.clone()];
    let owned = &Owned::around(folder, environment)?;
    let source = Source { folder, kind, owned, others: &others };
    let mut chosen = choose_contents(&source, environment, &mut Vec::new())?;
    #[cfg(feature = "git")]
    if owned.has_more() {
        leave_out_own_files(folder, kind.manifest(), owned.top(), environment, &mut chosen)?;
    }
    for PackageItem { path, content } in std::mem::take(&mut chosen) {
        match content {
            Content::File { executable, recorded: Some(content), .. } => {
                tree.file_in_memory(path.as_bytes(), executable, &content)?;
            }
            Content::File { place, executable, recorded: None } => {
                let mut file = fs::open(&place)?;
                let written = tree.file(path.as_bytes(), executable, &mut file);
                written.map_err(|error| match error {
                    mu_provider::TreeError::Content { source, .. } => {
                        ProviderError::from(FileError::new("read", &place, source))
                    }
                    other => other.into(),
                })?;
            }
            Content::Link(target) => tree.symlink(path.as_bytes(), target.as_bytes())?,
            #[cfg(feature = "hub")]
            Content::Text(text) => {
                tree.file_in_memory(path.as_bytes(), false, text.as_bytes())?;
            }
        }
    }
    Ok(())
}

fn unreadable(error: &ManifestError) -> ProviderError {
    ProviderError::new(ErrorKind::Manifest, error.to_string())
}

/// What Helm itself leaves out: its own rule is `templates/.?*`.
const HIDDEN_TEMPLATES: &str = "templates/.";

/// In how many ways links may lead to one folder. A chart whose subcharts all link to one folder has as many as subcharts.
const MOST_WAYS: usize = 1000;

struct Walk<'a> {
    root: &'a Path,
    kind: Kind<'a>,
    owned: &'a Owned,
    others: &'a [PathBuf],
    /// The folders around the one that is read, without links.
    around: Vec<PathBuf>,
    /// How many names were read.
    seen: usize,
    /// How often links have led to a folder: `N` links in each of `M` folders that follow each other are `N^M` ways.
    ways: HashMap<PathBuf, usize>,
    chosen: Vec<PackageItem>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Path, kind: Kind<'a>, owned: &'a Owned, others: &'a [PathBuf]) -> Self {
        let (around, ways) = (Vec::new(), HashMap::new());
        Self { root, kind, owned, others, around, seen: 0, ways, chosen: Vec::new() }
    }

    /// What was found, in no order.
    fn chosen(self) -> Vec<PackageItem> {
        self.chosen
    }

    /// Walks through a folder, whose paths begin with `prefix`; `is_linked` says that a link has led there.
    fn folder(
        &mut self,
        folder: &Path,
        prefix: &str,
        rules: Option<&Rules>,
        is_linked: bool,
        warnings: &mut Vec<FileWarning>,
    ) -> Result<(), ProviderError> {
        let real = fs::canonicalize(folder)?;
        if self.around.contains(&real) {
            return Err(refused(folder, "leads to a folder that it is in", "remove the link"));
        }
        if is_linked {
            let ways = self.ways.entry(real.clone()).or_default();
            *ways += 1;
            if *ways > MOST_WAYS {
                let what = "is reached through links in more than 1,000 ways";
                return Err(refused(&real, what, "remove links, or ignore them"));
            }
        }
        self.around.push(real);
        for entry in fs::entries(folder)? {
            self.seen += 1;
            if self.seen > Limits::default().entries {
                return Err(refused(
                    self.root,
                    "has too many files",
                    "remove links, or ignore them",
                ));
            }
            let place = entry.path();
            let kind = entry.file_type().at("read", &place)?;
            // Git does not take a link for a folder; Helm looks at what it leads to. A link that leads nowhere may be left out.
            let found = fs::metadata(&place);
            let is_followed_folder = found.as_ref().is_ok_and(std::fs::Metadata::is_dir);
            let is_folder = if self.follows_all() { is_followed_folder } else { kind.is_dir() };
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                if rules.is_some_and(|rules| rules.leave_out(&place, is_folder)) {
                    continue;
                }
                return Err(no_package(&place, "its name is not UTF-8"));
            };
            let path = format!("{prefix}{name}");
            let is_needed = self.is_needed(&path);
            if path == LOCK_FILE
                || !is_needed && self.leaves_out(name, &path, &place, is_folder, rules)
            {
                continue;
            }
            // Hubs read the manifest out of the archive, where a link says nothing.
            let is_manifest = self.kind.manifest() == Some(&*path);
            if kind.is_symlink() && !self.follows_all() && !is_linked && !is_manifest {
                let target = fs::read_link(&place)?;
                let real = fs::canonicalize(&place).ok();
                let target = target.to_str().filter(|target| stays(&path, target));
                // A link to nothing is the author's business.
                let is_inside = real.as_ref().is_none_or(|real| self.owned.is_inside(real));
                if let Some(target) = target.filter(|_| is_inside) {
                    if is_needed || self.covers(&path) {
                        self.add(path, Content::Link(target.to_owned()));
                    }
                    continue;
                }
            }
            if kind.is_symlink() {
                let may_be_chosen = is_needed || self.covers(&path);
                let is_owned =
                    fs::canonicalize(&place).is_ok_and(|real| self.owned.is_author_path(&real));
                if !is_owned && !may_be_chosen {
                    continue;
                }
                if !is_owned {
                    let what = "is a link to something that is neither in its package nor in the repository or workspace around it";
                    let next = "replace the link by what it leads to, or leave it out, as with a line in `.muignore`";
                    return Err(refused(&place, what, next));
                }
            }
            let found = found?;
            let what = if !found.is_dir() || self.follows_all() {
                None
            } else if is_hub(&place) {
                Some("a hub")
            } else if fs::is_cache(&place) {
                Some("a cache")
            } else {
                None
            };
            if let Some(what) = what {
                let message = format!("this folder is {what}, so it is not packed");
                warnings.push(FileWarning::new(&place, None, message));
            } else if found.is_dir() {
                let inner = match rules {
                    Some(rules) if !self.follows_all() => {
                        Some(rules.with_folder_inside(&place, warnings)?)
                    }
                    rules => rules.cloned(),
                };
                let is_linked = is_linked || kind.is_symlink();
                self.folder(&place, &format!("{path}/"), inner.as_ref(), is_linked, warnings)?;
            } else if !is_needed
                && (!self.covers(&path) || self.is_archive(&path, &place, found.is_file()))
            {
                continue;
            } else if found.is_file() {
                let executable = fs::is_executable(&found);
                self.add(path, Content::File { executable, place, recorded: None });
            } else if !self.follows_all() {
                return Err(no_package(&place, "it is not a file, a folder or a link"));
            }
        }
        self.around.pop();
        Ok(())
    }

    fn add(&mut self, path: String, content: Content) {
        self.chosen.push(PackageItem { path, content });
    }

    fn follows_all(&self) -> bool {
        self.kind.follows_all()
    }

    fn leaves_out(
        &self,
        name: &str,
        path: &str,
        place: &Path,
        is_folder: bool,
        rules: Option<&Rules>,
    ) -> bool {
        let hidden = path.strip_prefix(HIDDEN_TEMPLATES);
        let is_hidden = hidden.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'));
        is_never(name)
            || fs::is_staged(name)
            || self.others.iter().any(|other| other == place)
            || matches!(self.kind, Kind::Chart) && is_hidden
            || rules.is_some_and(|rules| rules.leave_out(place, is_folder))
    }

    /// Whether a file is packed regardless of the rules.
    fn is_needed(&self, path: &str) -> bool {
        let readme = match self.kind {
            Kind::Own { manifest, .. } => manifest.readme.as_ref().map(InnerPath::as_str),
            _ => None,
        };
        [self.kind.manifest(), readme].contains(&Some(path))
    }

    /// Whether the manifest chooses the file at this path.
    fn covers(&self, path: &str) -> bool {
        match self.kind {
            Kind::Own { manifest, .. } => manifest.files.covers(path),
            _ => true,
        }
    }

    /// Whether a file is an archive of the package itself.
    fn is_archive(&self, path: &str, place: &Path, is_file: bool) -> bool {
        match self.kind {
            Kind::Own { manifest, .. } => {
                is_file && rules::is_archive_of_package(manifest, path, place)
            }
            _ => false,
        }
    }
}

/// Whether a folder is the root of a hub, whose archives and tokens are no content of a package that stands beside it.
fn is_hub(folder: &Path) -> bool {
    let root = fs::read_text_if_there(&folder.join("hub.json")).ok().flatten();
    root.is_some_and(|text| serde_json::from_str::<HubFile>(&text).is_ok())
}

/// Whether a link at `path` with this target stays in the package, as it is written.
fn stays(path: &str, target: &str) -> bool {
    InnerPath::parse(path).is_ok_and(|path| path.may_lead_to(target))
}

fn no_package(place: &Path, why: &str) -> ProviderError {
    let text = format!("`{}` cannot be in a package: {why}", place.display());
    ProviderError::new(ErrorKind::Integrity, text)
        .hint("rename or remove it, or exclude it with a line in `.muignore`")
}

fn refused(path: &Path, what: &str, next: &str) -> ProviderError {
    ProviderError::new(ErrorKind::Integrity, format!("`{}` {what}", path.display())).hint(next)
}

/// What no package contains, at any depth: the data of Git, similar tools, mu and Finder.
const NEVER_PACKED: [&str; 6] = [".git", MU_FOLDER, ".hg", ".svn", ".jj", ".DS_Store"];

/// Where links of a package may lead.
#[derive(Debug)]
pub(crate) struct Owned {
    /// The package's folder, without links.
    package: PathBuf,
    /// What is around it and its author's, without links.
    around: Option<PathBuf>,
    /// The outermost folder whose ignore rules count.
    top: PathBuf,
}

impl Owned {
    /// The package itself, and the repository around it, or the workspace around it if it is in no repository. What is around the home
    /// folder says nothing about what belongs together.
    pub(crate) fn around(folder: &Path, environment: &Environment) -> Result<Self, FileError> {
        let package = fs::canonicalize(folder)?;
        let home = fs::canonicalize(&environment.home);
        let home = home.as_deref().unwrap_or(&environment.home);
        let around = |folder: &Path| {
            let is_workspace = |folder: &&Path| folder.join(MU_FOLDER).is_dir();
            let repository = repository_around(folder).filter(|around| !home.starts_with(around));
            let mut workspaces = folder.ancestors().take_while(|around| !home.starts_with(around));
            let around = repository.or_else(|| workspaces.find(is_workspace));
            around.map(Path::to_owned)
        };
        Ok(Self {
            around: around(&package),
            package,
            // Rules are matched with the paths as they are walked.
            top: around(folder).unwrap_or_else(|| folder.to_owned()),
        })
    }

    /// The package itself alone: it was packed elsewhere.
    pub(crate) fn own_folder_alone(folder: &Path) -> Result<Self, FileError> {
        Ok(Self { package: fs::canonicalize(folder)?, around: None, top: folder.to_owned() })
    }

    /// The outermost folder whose ignore rules count.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// Whether a repository or workspace around the package is its author's, too.
    #[cfg(feature = "git")]
    fn has_more(&self) -> bool {
        self.around.is_some()
    }

    /// Whether the file or folder at `real`, a path without links, is inside the package itself.
    fn is_inside(&self, real: &Path) -> bool {
        is_kept(&self.package, real)
    }

    /// Whether the file or folder at `real`, a path without links, is the author's.
    fn is_author_path(&self, real: &Path) -> bool {
        self.is_inside(real) || self.around.as_ref().is_some_and(|around| is_kept(around, real))
    }
}

/// Whether `real` is in `folder`, and not Git's or mu's own, which is nobody's to give away.
fn is_kept(folder: &Path, real: &Path) -> bool {
    let inner = real.strip_prefix(folder).ok();
    inner.is_some_and(|inner| !inner.iter().any(|part| part.to_str().is_some_and(is_never)))
}

/// Whether no package contains what is called so, at any depth.
fn is_never(name: &str) -> bool {
    NEVER_PACKED.iter().any(|never| name.eq_ignore_ascii_case(never))
}
