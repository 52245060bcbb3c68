//! Whether the content of a hub's archive is the chosen package and version.
//!
//! If an index line of this run chose it, it must agree with that line in everything that selection used. If
//! a lock chose it, the lock pins the content; then name and version are compared. Repositories and folders
//! were read themselves when they were chosen, and may have any name; for a locked commit, the version is
//! compared.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use mu_formats::{FORMATS, GIT, Reading};
use mu_provider::threads::at_once;
use mu_provider::{Listing, Release, Silent};

use crate::formats;
use crate::fs;
use crate::index::{Candidate, Route};
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::agreement::first_difference;
use crate::manifest::{Head, Manifest, ManifestError, YAML_NAME};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{Reference, Version};

/// A package whose content is on this machine.
pub(crate) struct Content<'a> {
    /// The session that chose it, or that read the lock.
    pub(crate) session: &'a Session,
    /// The choice.
    pub(crate) package: &'a LockedPackage,
    /// The index line that chose it, if that was in this run.
    pub(crate) line: Option<&'a Release>,
    /// The folder that holds its files.
    pub(crate) folder: &'a Path,
    /// The text of its `Mu.yaml`, if that is known.
    pub(crate) manifest: Option<&'a str>,
    /// Whether it was fetched just now, so that its source may be asked again.
    pub(crate) is_fetched: bool,
    /// Finds its source, which is asked only if necessary.
    pub(crate) route: &'a (dyn Fn(&LockedPackage) -> Result<Route, CommandError> + Sync),
}

/// Whether a package's manifest must be checked.
pub(crate) fn is_checked(session: &Session, package: &LockedPackage) -> bool {
    let provider = session.index().providers().get(&package.source.provider);
    provider.is_ok_and(|provider| provider.facts().lines_are_binding)
}

impl<'a> Content<'a> {
    /// A package that a lock chose, and that was here before.
    pub(crate) fn locked(
        session: &'a Session,
        package: &'a LockedPackage,
        folder: &'a Path,
        route: &'a (dyn Fn(&LockedPackage) -> Result<Route, CommandError> + Sync),
    ) -> Self {
        Self { session, package, line: None, folder, manifest: None, is_fetched: false, route }
    }

    /// Checks that a package is the chosen one.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        // Repositories and folders were read themselves, so nothing else could have been mixed up. What can be wrong is
        // the version that a lock claims for a commit.
        if !is_checked(self.session, self.package) {
            return self.check_commit();
        }
        if self.manifest.is_none() {
            self.check_kind()?;
        }
        match self.line {
            // A lock chose it, and its digest was compared. What selection used was compared when the lock was made.
            // What is open is the label: somebody may have merged two locks line by line, so that one package has the
            // other one's digest.
            None => match self.head().map_err(|error| self.unreadable(error))? {
                Some(head) => {
                    self.check_name(head.name.as_ref())?;
                    self.check_version(head.version.as_ref())
                }
                None => Ok(()),
            },
            // An index line chose it in this run. If the archive has other dependencies than its line, versions were
            // chosen for a package that does not exist.
            Some(line) => {
                let loaded = self.load().map_err(|error| self.unreadable(error))?;
                let Some(mut manifest) = loaded else { return self.check_absence(line) };
                if line.format.is_some() {
                    mu_formats::as_listed(&mut manifest, line);
                }
                // For a commit that was copied into a hub, the line has Git's name and version.
                if line.format.as_deref() != Some(GIT) {
                    self.check_name(Some(&manifest.name))?;
                    self.check_version(manifest.version.as_ref())?;
                }
                let listed = self.with_its_manifest(line)?;
                match first_difference(&self.package.id, &listed, &manifest) {
                    None => Ok(()),
                    Some(difference) => {
                        let text = format!(
                            "is not what its index line says in {difference}, from {}",
                            self.route()?.location.describe()
                        );
                        let details = serde_json::json!({
                            "key": difference.key,
                            "line": difference.line,
                            "manifest": difference.manifest,
                        });
                        Err(self.refuse("the manifest in the archive", &text, details))
                    }
                }
            }
        }
    }

    /// The line, with what its place gave as the manifest when versions were chosen, if the line leaves its dependencies to that.
    fn with_its_manifest(&self, line: &'a Release) -> Result<Cow<'a, Release>, CommandError> {
        let route = self.route()?;
        // A line that lists dependencies is compared as it is. One that leaves them to the manifest was completed by
        // what the same place returned for it, so this is compared.
        if line.dependencies.is_some() || !route.provider.facts().has_revisions {
            return Ok(Cow::Borrowed(line));
        }
        let Some(given) = route.provider.manifest(&route.location, line, &Silent)? else {
            return Ok(Cow::Borrowed(line));
        };
        let read = Manifest::parse_published(Path::new(&given.name), &given.text);
        Ok(Cow::Owned(read.map_err(|error| self.unreadable(error.into()))?.to_release()))
    }

    /// Checks that an installed pack has the version that the lock says, without any request.
    pub(crate) fn check_label(&self) -> Result<(), CommandError> {
        if !is_checked(self.session, self.package) {
            return self.check_commit();
        }
        let head = self.head().map_err(|error| self.unreadable(error))?;
        match head {
            Some(head) => self.check_version(head.version.as_ref()),
            None => Ok(()),
        }
    }

    fn route(&self) -> Result<Route, CommandError> {
        (self.route)(self.package)
    }

    /// Refuses a folder or a link with the name of a manifest: some tools would read a manifest there, others
    /// none.
    fn check_kind(&self) -> Result<(), CommandError> {
        let is_odd = |name: &&str| {
            let metadata = fs::symlink_metadata(&self.folder.join(name));
            metadata.is_ok_and(|metadata| !metadata.is_file())
        };
        match formats::manifest_names().find(is_odd) {
            None => Ok(()),
            Some(name) => {
                let text = format!("has a `{name}` that is not a file");
                Err(self.refuse("the archive", &text, serde_json::json!({})))
            }
        }
    }

    /// Refuses an archive without a manifest where that has to agree with a line: a hub's, and that of a package of another
    /// ecosystem. Repositories and other artifacts need none, nor does a commit that was copied into a hub.
    fn check_absence(&self, line: &Release) -> Result<(), CommandError> {
        let is_commit = line.format.as_deref() == Some(GIT);
        let route = self.route()?;
        if is_commit || (line.format.is_none() && !route.provider.facts().names_are_binding) {
            return Ok(());
        }
        let format = FORMATS.iter().find(|format| line.format.as_deref() == Some(format.name));
        let name = format.map_or(YAML_NAME, |format| format.manifest);
        let text = format!(
            "has no `{name}`, which must agree with its index line, from {}",
            route.location.describe()
        );
        Err(self.refuse("the archive", &text, serde_json::json!({ "key": "manifest" })))
    }

    fn load(&self) -> Result<Option<Manifest>, ManifestError> {
        match self.manifest {
            Some(text) => Ok(Some(Manifest::parse_published(&self.folder.join(YAML_NAME), text)?)),
            None => {
                if let Some(own) = Manifest::load_published(self.folder)? {
                    return Ok(Some(own));
                }
                let aliases = formats::helms_aliases(&self.session.environment);
                let around = Reading { aliases: Some(&aliases), ..Reading::default() };
                Ok(formats::load(self.folder, &around)?.map(|loaded| loaded.manifest))
            }
        }
    }

    fn head(&self) -> Result<Option<Head>, ManifestError> {
        match self.manifest {
            Some(text) => Ok(Some(Head::parse(&self.folder.join(YAML_NAME), text)?)),
            None => formats::load_package_head(self.folder),
        }
    }

    fn unreadable(&self, error: ManifestError) -> CommandError {
        let what = format!("the manifest in the archive of `{}` cannot be read", self.package.id);
        CommandError::from_error(Code::Integrity, error).while_doing(what)
    }

    /// Refuses a package with another name in its manifest: its archive was mixed up, or somebody wants it to
    /// be mistaken for something else. The base in that name does not matter: a mirror has another base.
    fn check_name(&self, name: Option<&Reference>) -> Result<(), CommandError> {
        // An archive without a name claims nothing that could be wrong.
        let Some(name) = name.map(|name| name.name().as_str()) else { return Ok(()) };
        if name == self.package.id.name_str() {
            return Ok(());
        }
        // Only some places promise names, as hubs do. In others, an archive may be called anything.
        let route = self.route()?;
        if !route.provider.facts().names_are_binding {
            return Ok(());
        }
        // Two names are right beside its own. A mirror lists a package under another name, and its line keeps the first
        // one as `origin`. A commit that was copied into a hub has a manifest as its author wrote it.
        let is_origin = |line: &Release| {
            line.origin.as_deref() == Some(name) || line.format.as_deref() == Some(GIT)
        };
        // A registry of the settings may serve what is below a prefix: `acme/tools/x` is `x` there.
        let is_right = name == route.location.path
            || match self.line {
                Some(line) => is_origin(line),
                None => self.listed().is_some_and(|line| is_origin(&line)),
            };
        if is_right {
            return Ok(());
        }
        let text = format!("contains a package named `{name}`, from {}", route.location.describe());
        Err(self.refuse("the archive", &text, serde_json::json!({ "key": "name" })))
    }

    fn check_version(&self, version: Option<&Version>) -> Result<(), CommandError> {
        // Without a version of its own, it is the one under which it is listed.
        let Some(version) = version else { return Ok(()) };
        let package = self.package;
        if package.parsed_version().as_ref() == Some(version)
            || version.to_string() == package.version
        {
            return Ok(());
        }
        // The manifest of a copied commit may say the version of the last release, where the lock says that of the
        // commit.
        let is_commit = |line: Arc<Release>| line.format.as_deref() == Some(GIT);
        if self.line.is_none() && self.listed().is_some_and(is_commit) {
            return Ok(());
        }
        let place = self.route()?.location.describe();
        // Whose mistake it is: a lock's, which this workspace can restore, or a publisher's.
        if self.line.is_none() {
            let said = format!("its manifest says {version}, from {place}");
            return Err(self.mislabelled(&said, &version.to_string()));
        }
        let text = format!("holds version {version}, from {place}");
        Err(self.refuse("the archive", &text, serde_json::json!({ "key": "version" })))
    }

    /// Refuses a locked commit with another version than the lock says, as far as tags and manifest tell.
    fn check_commit(&self) -> Result<(), CommandError> {
        // What was chosen in this run was read at its commit just now.
        let (None, Some(commit)) = (self.line, &self.package.commit) else { return Ok(()) };
        // A manifest that mu has generated repeats the lock, so it proves nothing.
        let head = self.head().ok().flatten().filter(|head| !head.generated);
        let claimed = head.and_then(|head| head.version);
        let copied = self.package.version_of_copy();
        // Three ways to write the version of a commit: as it was parsed, as it is written, and as a hub has called its
        // copy.
        let is_locked = |version: &Version| {
            self.package.parsed_version().as_ref() == Some(version)
                || version.to_string() == self.package.version
                || copied.as_ref().is_some_and(|copied| version.to_string() == *copied)
        };
        if claimed.as_ref().is_some_and(is_locked) {
            return Ok(());
        }
        // The tag takes precedence. A tag that was moved later says nothing about its earlier commit.
        let route = self.route()?;
        // An installed pack is checked by many runs, which stay without requests: there, what the last listing says is
        // enough.
        let is_asked = self.is_fetched && !self.session.options.offline;
        let version = self.package.version.as_str();
        let (provider, place) = (&route.provider, &route.location);
        let known = provider.releases_of(place, commit, version);
        // In most cases one tag tells, and the others need not be listed.
        if known.is_none() && is_asked && provider.has_version_at(place, commit, version, &Silent) {
            return Ok(());
        }
        let here = known.or_else(|| {
            let asked = is_asked.then(|| provider.list(place, None, &Silent).ok());
            let Listing::Found(found) = asked?? else { return None };
            let is_it = |line: &Release| line.commit.as_ref() == Some(commit);
            Some(found.releases().filter(is_it).collect())
        });
        let here = here.unwrap_or_default().into_iter();
        let tagged: Vec<Version> =
            here.filter_map(|release| Version::parse_lenient(&release.version).ok()).collect();
        // Without a tag, nothing contradicts the lock. Of several tags, one that agrees is enough.
        let Some(first) = tagged.first().filter(|_| !tagged.iter().any(is_locked)) else {
            return Ok(());
        };
        // Tags that came later may have made others count no more.
        if is_asked && provider.has_version_at(place, commit, version, &Silent) {
            return Ok(());
        }
        let place = route.location.describe();
        let said = format!("the tag of its commit says {first}, at {place}");
        let name = quoted_for_shell(&self.session.short_name(&self.package.id));
        Err(self.mislabelled(&said, &first.to_string()).hint(format!(
            "or the tag of that version was moved since: `mu update {name}` takes what is there now"
        )))
    }

    /// The error about a lock that gives content the wrong version.
    fn mislabelled(&self, said: &str, found: &str) -> CommandError {
        let LockedPackage { id, version, .. } = self.package;
        let folder = self.session.lock_folder();
        let file = folder.join(crate::lock::FILE_NAME);
        let line = Lockfile::line_of_version(folder, self.package);
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        let message = format!("{}{line} says that `{id}` is {version}, but {said}", file.display());
        CommandError::new(Code::Integrity, message)
            .hint("Mu.lock was edited or merged wrongly: restore it from version control")
            .with_details(serde_json::json!({
                "id": id.to_string(),
                "key": "version",
                "version": version,
                "expected": version,
                "actual": found,
            }))
    }

    /// The current index line of a version for which the lock only has the digest.
    fn listed(&self) -> Option<Arc<Release>> {
        let index = self.session.index();
        // By version, and by digest if the listing has one. A version that was published anew with other content is not
        // the locked one.
        let releases = index.published(&self.package.id).ok()?;
        let digest = self.package.digest?.to_string();
        let mut positions = (0..releases.len())
            .filter(|position| releases.version(*position).to_string() == self.package.version);
        positions.find_map(|position| {
            let (_, line) = index.release(&self.package.id, Candidate::Release(position)).ok()?;
            line.digest.as_ref().is_none_or(|listed| *listed == digest).then_some(line)
        })
    }

    fn refuse(&self, what: &str, text: &str, mut details: serde_json::Value) -> CommandError {
        let LockedPackage { id, version, .. } = self.package;
        details["id"] = id.to_string().into();
        details["version"] = version.as_str().into();
        CommandError::new(Code::Integrity, format!("{what} of `{id}` {version} {text}"))
            .hint("nothing was installed; the package's publisher must fix it")
            .with_details(details)
    }
}

/// Checks packages that need not be fetched: that a tree in the store was once verified for one package does
/// not prove that it belongs to another.
pub(crate) fn check_all(session: &Session, contents: &[Content<'_>]) -> Result<(), CommandError> {
    /// The number of packages that are checked in the time that it takes to start a thread.
    const FEW: usize = 16;
    let threads = if contents.len() <= FEW { 1 } else { session.disk_jobs(contents.len()) };
    at_once(threads, contents, Content::check)
}
