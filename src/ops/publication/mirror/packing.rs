//! Packs packages that are in no hub, such as those in Git repositories, so that a hub has them with the same
//! files, and so with the same content as in a lock.
//!
//! A commit with a version tag becomes that version. Any other commit becomes a prerelease that is named by
//! the commit and that no range matches by chance; a lock finds it by its content.

use std::sync::Arc;

use mu_archive::{ArchiveError, ArchiveLayout, Packing, lacks_early, layout_of_anyones};
use mu_formats::{FORMATS, GIT, Reading, helm, kudo};
use mu_provider::{ArchiveDigest, KeptArchives, MANIFEST_NAMES, PlaceKind, Release};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::copying::Copying;
use super::{Copied, Elsewhere, VersionsToCopy};
use crate::formats;
use crate::index::{Candidate, Revision, Route, Unavailable, Universe as _, sibling};
use crate::lock::LockedPackage;
use crate::manifest::Manifest;
use crate::ops::apply::fetch::{fetch_archive, fetch_evidence, fetch_locked, fetch_provenance};
use crate::ops::publication::lines::{IndexLine, Mark, line_version};
use crate::ops::publication::packing::archive_of;
use crate::ops::publication::target::Upload;
use crate::ops::{CommandError, Session, Warning};
use crate::reference::{Name, PackageId, Reference, Version, VersionSpec};
use crate::store::Stored;
use crate::trust::rule_in_words;

/// Why a package cannot be packed for a hub.
type Refusal = String;

impl Copying<'_> {
    /// Packs the versions of a package that is in no hub, and publishes them.
    pub(super) fn pack(
        &mut self,
        id: &PackageId,
        chosen: Option<&VersionsToCopy>,
        route: &Route,
    ) -> Result<(), CommandError> {
        let Some(chosen) = chosen else {
            let reason =
                "`--all-versions` copies from hubs alone; without it, the version in use is copied";
            self.leave_at(id, route, reason.to_owned());
            return Ok(());
        };
        let (name, renamed) = self.name_in_mirror(id, route)?;
        for package in chosen.values() {
            if package.commit.is_some() {
                self.tell_repacked(id, package, route);
            }
            let called = version_in_hub(self.session, id, package);
            let there = match self.target.lines(&name) {
                // An archive by URL is called like a file of the hub.
                Err(error) if name.ends_with(".tgz") => {
                    let reason = format!("{error}; an OCI registry takes it: `--to oci://…`");
                    self.leave_at(id, route, reason);
                    return Ok(());
                }
                there => there?,
            };
            // Whether it is there is asked twice: by the digest of the lock, which needs nothing, and after fetching,
            // because a lock need not have one.
            let is_there = |digest: &str| {
                let mut lines = there.iter();
                lines.find(|line| line.get("digest").and_then(Value::as_str) == Some(digest))
            };
            let locked = package.digest.map(|digest| digest.to_string());
            // Whoever pins a digest needs the manifest itself.
            let is_pinned = pinned(package).is_some();
            if let Some(line) = locked.and_then(|digest| is_there(&digest)).filter(|_| !is_pinned) {
                self.catch_up_locked((id, &name), route, line, package);
                continue;
            }
            if !self.request.dry_run {
                let stored = fetch_locked(self.session, package)?;
                let same = is_there(&stored.digest.to_string()).filter(|_| !is_pinned);
                if let Some(line) = same {
                    self.catch_up_locked((id, &name), route, line, package);
                    continue;
                }
                // From here on, it is new there: its line first, because that may show that no hub can take it, and
                // then the archive.
                let beside = |folder: &str| self.beside(id, package, &name, folder);
                let line = line(self.session, id, package, &stored, &called, &beside);
                let mut line = match line.and_then(fits) {
                    Ok(line) => line,
                    Err(reason) => {
                        self.leave_at(id, route, reason);
                        continue;
                    }
                };
                let origin = line.get("name").and_then(Value::as_str).map(str::to_owned);
                // In Git a package is called by its place: names that leave something out mean its neighbours there.
                let is_by_place =
                    renamed.is_none() && line.get("format").is_some_and(|one| one == GIT);
                if let Some(origin) = origin.filter(|origin| *origin != name && !is_by_place) {
                    line.insert("origin".to_owned(), origin.into());
                }
                line.insert("name".to_owned(), name.as_str().into());
                // A package that followed a branch or a tag can continue to do so.
                let followed =
                    package.reference.clone().filter(|tag| mu_hub::check_tag(tag).is_ok());
                let release = release_of(self.session, id, package).map(Arc::unwrap_or_clone);
                let release = release.map(|release| Release {
                    tags: followed.clone().into_iter().collect(),
                    ..release
                });
                // From one OCI registry into another, nothing is unpacked and packed again: digests that people pin
                // stay what they are.
                if let Ok(release) = release
                    && self.target.copy(route, &release, &line, &name)?.is_some()
                {
                    self.mirrored.copied.push(Copied { name: name.clone(), version: called });
                    continue;
                }
                let made = self.as_it_is(package, route, &mut line)?;
                // What becomes an artifact says itself what it depends on.
                let is_artifact = line.contains_key("locator") && self.target.takes_artifacts();
                if let Some(renamed) = renamed.as_ref().filter(|_| !is_artifact) {
                    renamed.apply(&mut line);
                }
                // With the archive as it was published goes what somebody has signed of it.
                let (archive, provenance, evidence) = match made {
                    Some(archive) => {
                        let evidence = fetch_evidence(self.session, package);
                        let evidence = self.known_evidence(&name, &called, evidence);
                        (archive, fetch_provenance(self.session, package)?, evidence)
                    }
                    None => {
                        if package.commit.is_none() {
                            self.tell_repacked(id, package, route);
                        }
                        let what = format!("{id} {called}");
                        let archive = archive_of(self.session, &what, &stored)?.bytes()?;
                        (archive, None, String::new())
                    }
                };
                let digest = ArchiveDigest::from_bytes(Sha256::digest(&archive).into());
                line.insert("archive".to_owned(), digest.to_string().into());
                line.insert("size".to_owned(), archive.len().into());
                let version = line_version(&line);
                let upload = Upload {
                    name: name.clone(),
                    version: version.clone(),
                    line,
                    archive,
                    renamed: renamed.clone(),
                    provenance,
                    evidence,
                };
                self.target.compare(self.session, &upload)?;
                self.target.publish(upload)?;
                // After the version itself, so that the tag never leads to what is not there.
                if let Some(tag) = &followed {
                    self.target.mark(&name, &version, Mark::Tag(tag))?;
                }
            }
            self.mirrored.copied.push(Copied { name: name.clone(), version: called });
        }
        Ok(())
    }

    /// Counts a version that is there, and copies what it may lack.
    fn catch_up_locked(
        &mut self,
        (id, name): (&PackageId, &str),
        route: &Route,
        line: &IndexLine,
        package: &LockedPackage,
    ) {
        self.mirrored.present += 1;
        if self.request.dry_run {
            return;
        }
        // Of an artifact that was copied as it is, copying once more brings what others have attached to it since.
        let version = line_version(line);
        if self.target.takes_artifacts() && package.commit.is_none() {
            let release = release_of(self.session, id, package).map(Arc::unwrap_or_clone);
            let copied = release.map(|release| {
                let release = Release { tags: Vec::new(), ..release };
                self.target.copy(route, &release, line, name)
            });
            match copied {
                Ok(Ok(None)) => {}
                Ok(Err(error)) => return drop(self.known_evidence(name, &version, Err(error))),
                _ => return,
            }
        }
        self.catch_up(name, line, || fetch_provenance(self.session, package));
        // What was packed anew is another archive, of which nobody has signed anything.
        let Some(archive) = package.archive.map(|archive| archive.to_string()) else { return };
        match line.get("archive").and_then(Value::as_str) == Some(&archive) {
            true => {
                self.catch_up_evidence(name, &version, || fetch_evidence(self.session, package))
            }
            false if package.commit.is_none() => self.tell_repacked(id, package, route),
            false => {}
        }
    }

    /// Tells that rules will not accept a copy that mu packs: nothing that is signed where it comes from speaks of that archive.
    fn tell_repacked(&self, id: &PackageId, package: &LockedPackage, route: &Route) {
        let rules = self.session.trust.rules_about(route, id, &[]);
        let Some(rule) = rules.first().map(rule_in_words) else { return };
        let (id, version, kind) =
            (id.clone(), package.version.clone(), route.provider.facts().kind);
        self.session.events.warning(&Warning::PackedAnew { id, version, kind, rule });
    }

    /// The archive that a package was published as, which is copied byte for byte: the line says how it is laid out. `None` if mu packs
    /// the package.
    fn as_it_is(
        &self,
        package: &LockedPackage,
        route: &Route,
        line: &mut IndexLine,
    ) -> Result<Option<Vec<u8>>, CommandError> {
        let name = line.get("format").and_then(Value::as_str);
        // A package of mu in an OCI registry has the archive that a hub would have.
        if name.is_none()
            && package.commit.is_none()
            && route.provider.facts().kind == PlaceKind::OciRegistry
        {
            return fetch_archive(self.session, package, KeptArchives::All);
        }
        let mut of_name = FORMATS.iter().filter(|format| Some(format.name) == name);
        let layout = match of_name.find_map(|format| format.artifact.as_ref()) {
            Some(artifact) if artifact.in_folder => Some(ArchiveLayout::InFolder),
            Some(_) => Some(ArchiveLayout::Layer),
            // Its tool packs it as mu packs packages.
            None if name == Some(kudo::NAME) => Some(ArchiveLayout::Files),
            None => None,
        };
        if package.source.is_url_archive() {
            return self.archive_by_url(package, route, layout, line);
        }
        let Some(layout) = layout else { return Ok(None) };
        let archive = fetch_archive(self.session, package, KeptArchives::OfOtherTools)?;
        if let (Some(_), Some(locator)) = (&archive, layout.as_locator()) {
            line.insert("locator".to_owned(), locator.into());
        }
        Ok(archive)
    }

    /// The archive that somebody has put at a URL, byte for byte: it may be laid out in any way, so the line says how. `None` if a hub
    /// cannot say that, or an artifact must be laid out otherwise, as the tool of its format has it (`usual`).
    fn archive_by_url(
        &self,
        package: &LockedPackage,
        route: &Route,
        usual: Option<ArchiveLayout>,
        line: &mut IndexLine,
    ) -> Result<Option<Vec<u8>>, CommandError> {
        let Some(packing) = Packing::of(&route.location.path) else { return Ok(None) };
        let archive = fetch_archive(self.session, package, KeptArchives::All)?;
        let Some(archive) = archive else { return Ok(None) };
        let refused = |error: ArchiveError| error.at(&route.location.describe());
        let Some(layout) = layout_of_anyones(&archive, packing).map_err(refused)? else {
            return Ok(None);
        };
        let is_usual = usual.is_none_or(|usual| usual == layout);
        if self.target.takes_artifacts() && !is_usual {
            return Ok(None);
        }
        // Hubs want the manifest of a package of mu among the first files.
        if layout == ArchiveLayout::Files
            && !line.contains_key("format")
            && lacks_early(&archive, &MANIFEST_NAMES).map_err(refused)?
        {
            return Ok(None);
        }
        if let Some(locator) = layout.as_locator() {
            line.insert("locator".to_owned(), locator.into());
        }
        Ok(Some(archive))
    }

    fn leave_at(&mut self, id: &PackageId, route: &Route, reason: Refusal) {
        self.mirrored.elsewhere.push(Elsewhere {
            id: id.clone(),
            provider: route.provider.name().to_owned(),
            place: route.location.root.to_string(),
            reason: Some(reason),
        });
    }

    /// What a folder beside a package in its repository is in the hub: the package that has the same place there, in exactly
    /// the version that the commit is.
    fn beside(
        &self,
        id: &PackageId,
        package: &LockedPackage,
        name: &str,
        folder: &str,
    ) -> Result<Reference, Refusal> {
        let own = package.folder.as_deref().unwrap_or_default();
        let needed = sibling(id, own, folder)
            .ok_or_else(|| format!("it depends on `{folder}`, which is not in its repository"))?;
        let chosen = self.chosen.get(&needed).into_iter().flat_map(|chosen| chosen.values());
        let Some(locked) = chosen.into_iter().find(|one| one.commit == package.commit) else {
            return Err(format!(
                "it depends on `{folder}`, which is `{needed}` in the same commit, and that is not copied; copy it without `--no-deps`"
            ));
        };
        let route = self.session.index().route(&needed).map_err(|error| error.to_string())?;
        let (there, _) = self.name_there(&needed, &route);
        // The manifest says `../db`. Behind the mirror, that must still lead to the same package.
        let expected = Name::parse(name).ok().and_then(|name| name.at_relative_path(folder));
        if expected.is_none_or(|expected| expected.as_str() != there) {
            return Err(format!(
                "it depends on `{folder}`, which would be `{there}` in the mirror, and so not beside `{name}`"
            ));
        }
        let version = version_in_hub(self.session, &needed, locked);
        Reference::parse(&format!("{there}#{version}")).map_err(|error| error.to_string())
    }
}

/// Refuses a line that no hub would take.
fn fits(line: IndexLine) -> Result<IndexLine, Refusal> {
    let version = line_version(&line);
    let is_lenient = line.get("versions").is_some_and(|versions| versions == "lenient");
    let is_one = match is_lenient {
        true => Version::parse_lenient(&version).is_ok(),
        false => Version::parse(&version).is_ok(),
    };
    match is_one || line.contains_key("versioning") {
        true => Ok(line),
        false => Err(format!("hubs take no version such as `{version}`")),
    }
}

/// The version in a hub: a commit without a version tag is named by its hash.
fn version_in_hub(session: &Session, id: &PackageId, package: &LockedPackage) -> String {
    let Some(commit) = &package.commit else { return package.version.clone() };
    let releases = session.index().published(id).ok();
    let is_released = releases.is_some_and(|releases| {
        let at =
            package.parsed_version().and_then(|version| releases.position_of_version(&version));
        at.is_some_and(|at| releases.commit(at).is_some_and(|known| **known == **commit))
    });
    let copy = package.version_of_copy().filter(|_| !is_released);
    copy.unwrap_or_else(|| package.version.clone())
}

/// The index line of a package that is in no hub, with the name in its manifest, if that has one.
fn line(
    session: &Session,
    id: &PackageId,
    package: &LockedPackage,
    stored: &Stored,
    called: &str,
    beside: &dyn Fn(&str) -> Result<Reference, Refusal>,
) -> Result<IndexLine, Refusal> {
    let mut line = match &package.commit {
        Some(commit) => {
            let mut line = committed(stored, called, beside)?;
            line.insert("commit".to_owned(), commit.as_str().into());
            line
        }
        None => {
            let mut line = listed(session, id, package)?;
            // Some registries ignore the name in the archive.
            let own = formats::load(&stored.folder, &Reading::default()).ok().flatten();
            if own.is_none() {
                // The version and the name are those that its place gives it.
                line.entry("format").or_insert(GIT.into());
            }
            if let Some(own) = own.filter(|_| line.get("format").is_none_or(|one| one != GIT)) {
                line.shift_remove("origin");
                line.insert("name".to_owned(), own.manifest.name.name().as_str().into());
                if !line.contains_key("dependencies") {
                    // A registry that does not list them leaves all to the manifest.
                    for (key, value) in own.manifest.index_line() {
                        line.entry(key).or_insert(value);
                    }
                }
            }
            line
        }
    };
    line.insert("digest".to_owned(), stored.digest.to_string().into());
    Ok(line)
}

/// What the manifest in a commit says, with the version that the commit is called by, and packages for the folders `beside`.
fn committed(
    stored: &Stored,
    called: &str,
    beside: &dyn Fn(&str) -> Result<Reference, Refusal>,
) -> Result<IndexLine, Refusal> {
    let loaded = Manifest::load(&stored.folder).map_err(|error| error.to_string())?;
    let mut line = IndexLine::new();
    if let Some(mut loaded) = loaded {
        let mut has_folders = false;
        for dependency in &mut loaded.manifest.dependencies {
            if let Some(package) = dependency.reference.local().map(beside).transpose()? {
                dependency.reference = package;
                has_folders = true;
            }
        }
        line = loaded.manifest.index_line();
        let name = loaded.manifest.name.name().as_str();
        line.insert("name".to_owned(), name.into());
        // The manifest's own line will do. Otherwise it is a line of a commit, which says what differs from the
        // manifest inside.
        if line_version(&line) == called && !has_folders {
            return Ok(line);
        }
    }
    line.shift_remove("versioning");
    line.insert("version".to_owned(), called.into());
    line.insert("format".to_owned(), GIT.into());
    Ok(line)
}

/// The digest that a package is pinned to.
fn pinned(package: &LockedPackage) -> Option<VersionSpec> {
    let text = package.revision().filter(|_| package.commit.is_none())?;
    VersionSpec::parse(&text).ok()
}

/// What the registry of a locked package lists for it: what it is pinned to, or else its version.
fn release_of(
    session: &Session,
    id: &PackageId,
    package: &LockedPackage,
) -> Result<Arc<Release>, Refusal> {
    let index = session.index();
    let failed = |error: Unavailable| error.to_string();
    let gone = || format!("its registry does not list {} any more", package.version);
    let releases = index.published(id).map_err(failed)?;
    let revision = match pinned(package) {
        Some(digest) => index.revision(&releases, &digest).map_err(failed)?,
        None => {
            let at =
                package.parsed_version().and_then(|version| releases.position_of_version(&version));
            at.map(Revision::Release)
        }
    };
    let (_, release) = match revision.ok_or_else(gone)? {
        Revision::Release(at) => index.release_in_full(id, Candidate::Release(at)),
        Revision::Untagged(untagged) => index.release(id, Candidate::Revision(&untagged)),
    }
    .map_err(failed)?;
    Ok(release)
}

/// The index line of a package from its registry, without the place of its archive there.
fn listed(
    session: &Session,
    id: &PackageId,
    package: &LockedPackage,
) -> Result<IndexLine, Refusal> {
    let release = Arc::unwrap_or_clone(release_of(session, id, package)?);
    let Ok(Value::Object(mut line)) = serde_json::to_value(release) else {
        return Err("its index line cannot be written".to_owned());
    };
    for key in ["urls", "archive", "manifest", "size", "tags", "locator", "ref", "commit"] {
        line.shift_remove(key);
    }
    Ok(line)
}

/// Whether a line is that of a chart, which Helm may have signed.
pub(super) fn is_chart(line: &IndexLine) -> bool {
    line.get("format").is_some_and(|one| one == helm::FORMAT.name)
}
