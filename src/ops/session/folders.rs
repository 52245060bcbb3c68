//! Which folders and repositories of this machine packages may come from.
//!
//! A folder of the workspace, or of the Git repository around it, belongs to its author. Where there is no repository, so do the
//! packages beside the workspace, unless it lies in the home folder itself or where everybody writes. One further out is somebody else's: it counts
//! only with a manifest, and only after the user has named it, has agreed to it, or trusts it in `~/.mu/config.yaml`. Folders of
//! the user's own settings never count, and neither do repositories there. What a folder is called does not matter, but where it really is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use mu_provider::threads::lock;
use mu_provider::{ErrorKind, ProviderError};

use crate::env::Environment;
use crate::formats;
use crate::fs;
use crate::ops::{Events, Warning};
use crate::reference::PackageId;
use crate::workspace::root::is_bare_repository;
use crate::workspace::{CONFIG_FILE, Workspace, is_shared, names_folder, repository_around};

/// The folder in `~/.mu`, and the file in it: the folders outside that were agreed to, by the workspace.
const FOLDER: &str = "trust";
const FILE: &str = "folders.json";

type Agreed = BTreeMap<String, BTreeSet<String>>;

/// Decides which folders packages may come from.
pub(crate) struct AllowedFolders {
    root: PathBuf,
    home: PathBuf,
    mu_home: PathBuf,
    /// The patterns of folders that the user trusts.
    trusted: Vec<String>,
    /// The folders that the user's own settings put in place of packages.
    overrides: Vec<PathBuf>,
    /// Most runs meet no folder, and need to know nothing of what is around.
    around: OnceLock<Around>,
    /// Whether every question is answered with yes.
    yes: bool,
    events: Arc<dyn Events>,
    known: Mutex<Known>,
}

/// Where the workspace and the user's own files are, without links in their paths.
struct Around {
    /// The workspace, and the repository around it.
    own: Vec<PathBuf>,
    /// The folder around a workspace without a repository.
    beside: Option<PathBuf>,
    root: PathBuf,
    home: PathBuf,
    mu_home: PathBuf,
    overrides: Vec<PathBuf>,
}

impl Around {
    fn new(folders: &AllowedFolders) -> Self {
        let (root, home) = (real(&folders.root), real(&folders.home));
        // What has the whole home folder in it does not make all of that the author's.
        let is_whole = |folder: &Path| home.starts_with(folder);
        let repository = repository_around(&root);
        let beside = match repository {
            Some(_) => None,
            None => root.parent().filter(|folder| !is_whole(folder) && !is_shared(folder)),
        };
        let beside = beside.map(Path::to_owned);
        let repository = repository.filter(|folder| !is_whole(folder)).map(Path::to_owned);
        Self {
            own: repository.into_iter().chain([root.clone()]).collect(),
            beside,
            root,
            home,
            mu_home: real(&folders.mu_home),
            overrides: folders.overrides.iter().map(|path| real(path)).collect(),
        }
    }

    /// Whether a folder holds settings of the user: one beside which the user's own files lie hidden, or one above.
    fn is_of_user(&self, place: &Path) -> bool {
        if self.home.starts_with(place) {
            return true;
        }
        // `~/.config/x/y` is in the hidden folder `~/.config`, and `~/work/x` in none.
        let hidden =
            place.strip_prefix(&self.home).ok().and_then(|inner| inner.components().next());
        let hidden = hidden.map(|first| self.home.join(first));
        let hidden = hidden.filter(|folder| {
            folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
        });
        let of_mu = Some(self.mu_home.clone()).filter(|own| place.starts_with(own));
        // A workspace in there is its author's.
        hidden.into_iter().chain(of_mu).any(|folder| !self.root.starts_with(folder))
    }
}

/// What was decided in this run.
#[derive(Default)]
struct Known {
    /// Folders that the user names in a command.
    named: BTreeSet<PathBuf>,
    decided: BTreeMap<PathBuf, bool>,
}

impl AllowedFolders {
    pub(super) fn new(
        workspace: &Workspace,
        environment: &Environment,
        yes: bool,
        events: &Arc<dyn Events>,
    ) -> Self {
        let settings = &workspace.settings;
        let is_of_user = |id: &PackageId| !settings.overridden_here.contains(id);
        let overrides = settings.overrides.iter().filter(|(id, _)| is_of_user(id));
        let overrides = overrides.filter_map(|(_, reference)| reference.local());
        let overrides = overrides.map(|path| crate::env::absolute(&workspace.root, path.as_ref()));
        Self {
            root: workspace.root.clone(),
            home: environment.home.clone(),
            mu_home: environment.mu_home.clone(),
            trusted: settings.trusted_folders.clone(),
            overrides: overrides.collect(),
            around: OnceLock::new(),
            yes,
            events: Arc::clone(events),
            known: Mutex::default(),
        }
    }

    fn around(&self) -> &Around {
        self.around.get_or_init(|| Around::new(self))
    }

    /// Records that the user names a folder in a command.
    pub(crate) fn name(&self, folder: &Path) {
        lock(&self.known).named.insert(real(folder));
    }

    /// Checks that a package may come from `folder`, and asks the user about one outside that is new.
    pub(crate) fn check(&self, folder: &Path) -> Result<(), ProviderError> {
        let (place, around) = (real(folder), self.around());
        let shown = place.display();
        // First, what nobody can agree to; then, what is the author's own.
        if around.is_of_user(&place) {
            let text = format!("the folder `{shown}` is refused: your own settings are in there");
            return Err(ProviderError::new(ErrorKind::Refused, text)
                .hint("move the package to a folder of its own"));
        }
        if around.own.iter().any(|own| place.starts_with(own)) || !place.is_dir() {
            // What is not there is reported as missing.
            return Ok(());
        }
        let outside =
            format!("the folder `{shown}` is outside of this workspace and of its Git repository");
        // From here on, it is outside. A folder without a manifest is refused without a question: `../` instead of
        // `../lib` must not make a package of all that lies there. One whose manifest cannot be read goes on, because
        // that error says more.
        if !matches!(formats::locate_manifest(&place), Ok(Some(_)) | Err(_)) {
            let text = format!("{outside}, and has no manifest, so it is not taken as a package");
            let error = ProviderError::new(ErrorKind::Refused, text);
            return Err(error.hint(match is_bare_repository(&place) {
                true => format!("it is a Git repository: `git+file://{shown}` leads there"),
                false => "`mu init` in that folder makes it a package".to_owned(),
            }));
        }
        let is_beside = around.beside.as_ref().is_some_and(|beside| place.starts_with(beside));
        if is_beside || names_folder(&self.trusted, &place) {
            return Ok(());
        }
        // Held while the user is asked, so that there is one question at a time.
        let mut known = lock(&self.known);
        if let Some(true) = known.decided.get(&place) {
            return Ok(());
        }
        let path = around.mu_home.join(FOLDER).join(FILE);
        if self.has_agreed(&path, &place) {
            known.decided.insert(place, true);
            return Ok(());
        }
        let question = format!(
            "this workspace takes a package from `{shown}`, which is outside of it.\nUse it?"
        );
        // Whoever names it in a command, or in settings of their own, has agreed. What was refused in this run is
        // refused again, and not asked again.
        let is_named = known.named.contains(&place) || around.overrides.contains(&place);
        let is_asked = !known.decided.contains_key(&place);
        let agrees = is_named || self.yes || (is_asked && self.events.confirm(&question));
        known.decided.insert(place.clone(), agrees);
        if !agrees {
            let text = format!("{outside}, and nobody has agreed to use it");
            return Err(ProviderError::new(ErrorKind::Refused, text)
                .hint("run this on a terminal to be asked, or with `--yes` to agree")
                .hint(format!(
                    "or write into `~/.mu/{CONFIG_FILE}`: trust: {{folders: [{shown}]}}"
                )));
        }
        if let Err(error) = self.keep(&path, &place) {
            self.events.warning(&Warning::AnswerNotKept { why: error.to_string() });
        }
        Ok(())
    }

    /// Checks that packages may come from the Git repository in `folder`. What was committed is meant to be shared, so one
    /// outside needs no question; but one of the user's own settings has to be named by the user.
    #[cfg_attr(not(feature = "git"), allow(dead_code, reason = "only Git has repositories"))]
    pub(crate) fn check_repository(&self, folder: &Path) -> Result<(), ProviderError> {
        let (place, around) = (real(folder), self.around());
        if !around.is_of_user(&place) || names_folder(&self.trusted, &place) {
            return Ok(());
        }
        // A reference names a package in it.
        let is_in = |named: &PathBuf| named.starts_with(&place) || named.starts_with(folder);
        if !place.is_dir() || lock(&self.known).named.iter().any(is_in) {
            return Ok(());
        }
        let shown = place.display();
        let text = format!("the repository `{shown}` is refused: your own settings are in there");
        let line = format!("trust: {{folders: [{shown}]}}");
        Err(ProviderError::new(ErrorKind::Refused, text)
            .hint(format!("if it is meant, write into `~/.mu/{CONFIG_FILE}`: {line}")))
    }

    /// Whether the user has agreed to a folder in an earlier run.
    fn has_agreed(&self, path: &Path, place: &Path) -> bool {
        let agreed = read(path);
        // By the workspace: who agrees to a folder for one has said nothing about another one.
        let folders = self.around().root.to_str().and_then(|root| agreed.get(root));
        folders.zip(place.to_str()).is_some_and(|(folders, place)| folders.contains(place))
    }

    fn keep(&self, path: &Path, place: &Path) -> Result<(), fs::FileError> {
        let Around { root, mu_home, .. } = self.around();
        fs::create_private_folder(mu_home, crate::env::IN_HOME)?;
        fs::create_private_folder(&mu_home.join(FOLDER), &["builds.json", FILE])?;
        // A path that is no text is asked about each time.
        let Some((root, place)) = root.to_str().zip(place.to_str()) else { return Ok(()) };
        // Another process may have added to it meanwhile.
        let mut agreed = read(path);
        agreed.entry(root.to_owned()).or_default().insert(place.to_owned());
        let text = serde_json::to_string_pretty(&agreed).expect("texts always serialise");
        fs::write_private(path, text.as_bytes())
    }
}

/// What was agreed to; nothing if the file cannot be read.
fn read(path: &Path) -> Agreed {
    let text = fs::read_text_if_there(path).ok().flatten();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// A path without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
