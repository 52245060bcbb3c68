//! Where a package comes from, as the lock writes it, and as a purl: <https://github.com/package-url/purl-spec>. Bills of
//! materials and advisories name packages so.
//!
//! And how packages are reached that the lock names: as they were reached when they were locked. That counts if neither a
//! reference nor the settings say anything else.

use std::path::{Path, PathBuf};

use mu_formats::osv::AdvisedPackage;
use mu_provider::{PlaceKind, Release, SafeUrl};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::index::{Providers, Route};
use crate::lock::{LockedPackage, Source};
use crate::manifest::Manifest;
use crate::ops::session::edits::ChangedManifests;
use crate::ops::session::shown::relative_folder;
use crate::ops::{OperationScope, Session};
use crate::reference::{ArtifactDigest, Defaults, PackageId, Reference, Version};

/// The source of `route`, as written in the lock.
pub(crate) fn source_of(session: &Session, route: &Route) -> Source {
    source_beside(session, &ChangedManifests::default(), route)
}

/// The source of `route`, as written in the lock beside these manifests.
pub(crate) fn source_beside(
    session: &Session,
    changed: &ChangedManifests,
    route: &Route,
) -> Source {
    Source::new(route.provider.name(), place_of(session, changed, route))
}

/// The place of a registry, a repository or a folder, for the lock: a folder is written relative to the
/// workspace, so that the lock is valid in every checkout, unless the settings or a manifest name it by its
/// absolute path.
fn place_of(session: &Session, changed: &ChangedManifests, route: &Route) -> String {
    let (from, root) = (session.lock_folder(), &route.location.root);
    let Ok(folder) = root.as_url().to_file_path() else {
        return root.to_string();
    };
    if route.provider.facts().kind == PlaceKind::Folder {
        if is_written_in_full(session, changed, &folder) {
            return folder.components().collect::<PathBuf>().display().to_string();
        }
        return relative(from, &folder);
    }
    // A registry elsewhere on this machine stays a `file:` URL: a path from here would be wrong in another checkout.
    if !folder.starts_with(from) && !is_in_relative_registry(session, &folder) {
        return root.to_string();
    }
    // A slash at the end says whether a URL continues below it or beside it, so the lock keeps it.
    let slash = if root.as_url().path().ends_with('/') { "/" } else { "" };
    match relative(from, &folder) {
        here if here == "." => "./".to_owned(),
        above if above.starts_with("..") => format!("{above}{slash}"),
        inside => format!("./{inside}{slash}"),
    }
}

/// Whether a registry with a relative path in the workspace's settings contains `folder`. Global packs keep
/// their place on this machine, whatever happens to the enclosing workspace.
fn is_in_relative_registry(session: &Session, folder: &Path) -> bool {
    let registries = &session.workspace.settings.registries;
    session.scope == OperationScope::Workspace
        && registries.iter().filter(|registry| registry.is_relative).any(|registry| {
            let url = registry.url.as_ref().and_then(|url| url.as_url().to_file_path().ok());
            url.is_some_and(|path| folder.starts_with(path))
        })
}

/// Whether an override or a manifest names a folder by its absolute path.
fn is_written_in_full(session: &Session, changed: &ChangedManifests, folder: &Path) -> bool {
    let workspace = &session.workspace;
    let overrides = workspace.settings.overrides.values();
    let own = (0..workspace.members.len()).flat_map(|index| {
        let Manifest { dependencies, dev_dependencies, .. } =
            changed.manifest(&session.workspace, index);
        dependencies.iter().chain(dev_dependencies).map(|dependency| &dependency.reference)
    });
    overrides.chain(own).filter_map(Reference::local).any(|path| {
        let path = Path::new(path);
        path.is_absolute() && crate::env::absolute(path, Path::new("")) == folder
    })
}

/// `folder` as seen from `from`, with `/` between names.
pub(crate) fn relative(from: &Path, folder: &Path) -> String {
    let parts = |path: &Path| -> Vec<String> {
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    relative_folder(parts(from), parts(folder))
}

/// The reference that leads to a locked package again, if the lock says more about its place than its id.
pub(super) fn stated_reference(
    providers: &Providers,
    package: &LockedPackage,
    defaults: &Defaults,
) -> Option<Reference> {
    let LockedPackage { id, source, folder, .. } = package;
    if source.is_authored_folder() || source.is_pack() {
        return None;
    }
    let provider = providers.get(&source.provider);
    let (scheme, place) = source.place.split_once("://")?;
    let says_where = place.starts_with(id.base().as_str());
    let is_hub = provider.as_ref().is_ok_and(|one| one.facts().kind == PlaceKind::Hub);
    // Its id says where a hub is, and the settings may. Only on this machine, plain http is what was meant.
    let is_here = || SafeUrl::parse(&source.place).is_ok_and(|url| url.is_loopback());
    if is_hub && !(scheme == "http" && says_where && is_here()) {
        return None;
    }
    let (is_flat, is_oci) = provider.map_or((false, false), |one| {
        (one.facts().places_are_flat, one.facts().kind == PlaceKind::OciRegistry)
    });
    let inside = match folder {
        Some(folder) => folder,
        None if is_flat => id.name_str().rsplit('/').next().unwrap_or_default(),
        None => "",
    };
    let below = source.place.trim_end_matches('/');
    let text = match is_oci && says_where {
        // Its id says where it is.
        true => format!("oci://{id}"),
        false if is_hub => format!("{scheme}://{id}"),
        // A plugin serves the scheme that it is called by.
        false if says_where && scheme == source.provider => format!("{scheme}://{id}"),
        false if source.is_url_archive() => format!("{below}/{inside}"),
        false => format!("{}+{below}/{inside}", source.provider),
    };
    let reference = Reference::parse(text.trim_end_matches('/')).ok();
    reference.filter(|one| one.id(defaults) == *id)
}

/// What a purl has in another form: everything but letters, digits and these four.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where repositories of GitHub are.
const GITHUB: &str = "https://github.com/";

/// Where a version of a package comes from.
pub(crate) struct PackagePlace<'a> {
    /// The package that is there.
    id: &'a PackageId,
    version: Option<&'a str>,
    parsed: Option<Version>,
    kind: Option<PlaceKind>,
    /// The registry or the repository.
    place: String,
    folder: Option<&'a str>,
    commit: Option<&'a str>,
    /// The digest of an artifact.
    digest: Option<String>,
    /// What it was asked for by, if that was no version: a tag, a branch, or a digest.
    reference: Option<&'a str>,
    /// Its version as it is written, also of what has none.
    written: &'a str,
}

impl<'a> PackagePlace<'a> {
    /// Where a locked package comes from, as the lock says.
    pub(crate) fn of_locked(providers: &Providers, entry: &'a LockedPackage) -> Self {
        let provider = providers.get(&entry.source.provider).ok();
        Self {
            id: &entry.id,
            version: entry.is_versioned().then_some(&*entry.version),
            parsed: entry.parsed_version().filter(|_| entry.is_versioned()),
            kind: provider.map(|provider| provider.facts().kind),
            place: entry.source.place.clone(),
            folder: entry.folder.as_deref(),
            commit: entry.commit.as_deref(),
            digest: entry.manifest.or(entry.artifact).map(|digest| digest.to_string()),
            reference: entry.reference.as_deref(),
            written: &entry.version,
        }
    }

    /// The same, and of a package that is used in another one's place, that package.
    pub(crate) fn of_locked_content(providers: &Providers, entry: &'a LockedPackage) -> Self {
        let place = Self::of_locked(providers, entry);
        Self { id: entry.from.as_ref().unwrap_or(&entry.id), ..place }
    }

    /// Where a version comes from that may be chosen.
    pub(crate) fn of_candidate(
        id: &'a PackageId,
        version: Option<&Version>,
        (route, release): (&'a Route, &'a Release),
    ) -> Self {
        Self {
            id,
            version: version.map(|_| &*release.version),
            parsed: version.cloned(),
            kind: Some(route.provider.facts().kind),
            place: route.location.root.to_string(),
            folder: route.location.folder.as_deref().filter(|folder| !folder.is_empty()),
            commit: release.commit.as_deref(),
            digest: release.manifest.clone(),
            reference: release.reference.as_deref(),
            written: &release.version,
        }
    }

    /// Its purl.
    pub(crate) fn purl(&self) -> String {
        let leaf = escaped(self.id.name().leaf());
        let at = |version: &str| format!("@{}", escaped(version));
        let version = self.version.map(at).unwrap_or_default();
        // A purl has its version behind `@`, then what else is known of the place, then a folder behind `#`:
        //
        //     pkg:oci/web@sha256%3A12…?repository_url=ghcr.io%2Facme%2Fcharts%2Fweb
        //     pkg:github/acme/infra@1895753…#modules/vpc
        //     pkg:generic/ec2@1.0.6?repository_url=hub.mu.com%2Faws%2Fec2
        //
        match self.kind {
            Some(PlaceKind::OciRegistry) => {
                // The version of an artifact is its digest there.
                let digest = self.digest.as_deref().map(at).unwrap_or_default();
                let is_digest = |text: &&str| ArtifactDigest::is_artifact_digest(text);
                // Which tag a version has there (`v1.2.0`, `1.2.0_b7`), a lock does not say. Where it has the digest, that says more.
                let guess = self.digest.is_none().then_some(self.written);
                let tag = self.reference.filter(|text| !is_digest(text)).or(guess);
                let tag = tag.map(|tag| format!("&tag={}", escaped(tag))).unwrap_or_default();
                let place = escaped(self.id.as_str());
                format!("pkg:oci/{}{digest}?repository_url={place}{tag}", leaf.to_lowercase())
            }
            Some(PlaceKind::Repository) => {
                // GitHub has a type of its own, by owner and repository; any other repository is named by its URL, and the commit is a
                // part of that.
                let commit = self.commit.map(at).unwrap_or_else(|| version.clone());
                let folder = self.folder.iter().map(|folder| format!("#{}", escaped(folder)));
                let folder: String = folder.collect();
                let place = self.place.strip_prefix(GITHUB);
                match place.map(|place| place.trim_end_matches(".git")) {
                    Some(place) => {
                        let place = escaped(place).replace("%2F", "/").to_lowercase();
                        format!("pkg:github/{place}{commit}{folder}")
                    }
                    None => {
                        let url = escaped(&format!("git+{}", self.place));
                        format!(
                            "pkg:generic/{leaf}{version}?vcs_url={url}{}{folder}",
                            commit.replace('@', "%40")
                        )
                    }
                }
            }
            // Everything but the last segment says where it is.
            _ => {
                let place = escaped(self.id.as_str());
                format!("pkg:generic/{leaf}{version}?repository_url={place}")
            }
        }
    }

    /// What advisories may say of it.
    pub(crate) fn advised(&self) -> AdvisedPackage {
        let mut package = AdvisedPackage::new(self.id.as_str(), &self.purl());
        if self.kind == Some(PlaceKind::Repository) {
            package = package.in_repository(&self.place, self.commit);
            // Where a mirror has it, its id still says which repository that is a mirror of.
            let mut segments = self
                .id
                .as_str()
                .strip_prefix("github.com/")
                .into_iter()
                .flat_map(|name| name.split('/'));
            if let (Some(owner), Some(repository)) = (segments.next(), segments.next()) {
                package.add_name(self.id.as_str(), &format!("pkg:github/{owner}/{repository}"));
            }
        }
        let named = self.reference.unwrap_or(self.written);
        let written = self.version.into_iter().chain([named]);
        package.in_version(self.parsed.clone(), &written.collect::<Vec<_>>())
    }
}

/// The purl of a package of the workspace, which comes from nowhere else.
pub(crate) fn purl_of_own(id: &PackageId, version: Option<&str>) -> String {
    let version = version.map(|version| format!("@{}", escaped(version))).unwrap_or_default();
    format!("pkg:generic/{}{version}", escaped(id.as_str()))
}

/// Text inside of a purl.
pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}
