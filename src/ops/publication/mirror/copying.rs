//! Copies versions of packages from their hubs into another one, dependencies first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mu_hub::Notice;
use mu_provider::{Digest, Listing, Progress as _, Silent, read_json_lines};

use super::packing::is_chart;
use super::{Changed, Copied, MirrorRequest, Mirrored, VersionsToCopy};
use crate::index::releases::{Position, Releases};
use crate::index::{Candidate, Route, Universe as _};
use crate::lock::{LockedPackage, ordered_by_needs};
use crate::manifest::agreement::Rename;
use crate::ops::explain::unavailable_error;
use crate::ops::publication::lines::{
    IndexLine, Mark, copy_of, is_version, line_version, reason_of, tidied, version_tags,
};
use crate::ops::publication::mirror::Renaming;
use crate::ops::publication::target::{PublicationTarget, Upload};
use crate::ops::session::events::Work;
use crate::ops::session::warning::ErrorText;
use crate::ops::{Code, CommandError, Session, Stage, VoucherGap, Warning};
use crate::reference::{Base, PackageId, Version};

/// A run of copying.
pub(super) struct Copying<'a> {
    pub(super) session: &'a Session,
    pub(super) target: &'a PublicationTarget,
    pub(super) request: &'a MirrorRequest,
    /// The versions that are copied, with what the lock says of them.
    pub(super) chosen: BTreeMap<PackageId, VersionsToCopy>,
    /// Which package is copied under a name.
    names: BTreeMap<String, PackageId>,
    /// Which namespaces have another name in the mirror.
    pub(super) renaming: Option<Renaming>,
    pub(super) mirrored: Mirrored,
}

impl<'a> Copying<'a> {
    pub(super) fn new(
        session: &'a Session,
        target: &'a PublicationTarget,
        request: &'a MirrorRequest,
    ) -> Self {
        let place = target.name.clone();
        let mirrored = Mirrored { place, dry_run: request.dry_run, ..Mirrored::default() };
        let names = BTreeMap::new();
        let chosen = BTreeMap::new();
        Self { session, target, request, chosen, names, renaming: None, mirrored }
    }

    /// Copies these versions, or all versions of these packages, if requested.
    pub(super) fn run(
        mut self,
        versions: &BTreeMap<PackageId, VersionsToCopy>,
    ) -> Result<Mirrored, CommandError> {
        self.chosen.clone_from(versions);
        // First, what needs what; then everything in that order, so that what an interrupted run has copied is
        // complete. With `--all-versions`, what the versions depend on is found only here. Each package is looked at
        // once, so this ends.
        let mut needs: BTreeMap<PackageId, BTreeSet<PackageId>> = BTreeMap::new();
        let mut open: Vec<PackageId> = versions.keys().cloned().collect();
        let follows = self.request.all_versions && !self.request.no_deps;
        while let Some(id) = open.pop() {
            if needs.contains_key(&id) {
                continue;
            }
            let chosen = versions.get(&id).filter(|_| !self.request.all_versions);
            let needed = self.needed(&id, chosen)?;
            open.extend(needed.iter().filter(|_| follows).cloned());
            needs.insert(id, needed);
        }
        for (done, id) in ordered(&needs).into_iter().enumerate() {
            self.session.events.progress(Stage::Mirroring, done, needs.len());
            let work = Work::begin(&self.session.events, id.as_str());
            let chosen = versions.get(id).filter(|_| !self.request.all_versions);
            self.package(id, chosen, &work)?;
        }
        self.mirrored.copied.sort();
        self.mirrored.elsewhere.sort();
        Ok(self.mirrored)
    }

    /// The versions of a package that are copied: those in `chosen`, or all.
    fn versions(
        &self,
        id: &PackageId,
        chosen: Option<&VersionsToCopy>,
    ) -> Result<(Arc<Releases>, Vec<Position>), CommandError> {
        let releases = self.session.index().releases(id);
        let releases = releases.map_err(|error| unavailable_error(self.session, error))?;
        let Some(chosen) = chosen else {
            let all = (0..releases.len()).collect();
            return Ok((releases, all));
        };
        // By the text in the lock, which a listing may write otherwise.
        let mut positions = BTreeMap::new();
        for position in 0..releases.len() {
            if let Some((version, _)) = of_version(chosen, &releases.version(position)) {
                positions.insert(version, position);
            }
        }
        if let Some(missing) = chosen.keys().find(|version| !positions.contains_key(version)) {
            let place = match self.session.index().route(id) {
                Ok(route) => format!("`{}`", route.location.describe()),
                Err(_) => "its registry".to_owned(),
            };
            let message = format!("cannot copy `{id}` {missing}: {place} does not have it");
            return Err(CommandError::new(Code::NotFound, message).hint(
                "configure a registry that has that version while you copy it: `mu registry list` shows yours",
            ));
        }
        Ok((releases, positions.into_values().collect()))
    }

    /// What the versions of a package that are copied depend on.
    fn needed(
        &self,
        id: &PackageId,
        chosen: Option<&VersionsToCopy>,
    ) -> Result<BTreeSet<PackageId>, CommandError> {
        let index = self.session.index();
        let failed = |error| unavailable_error(self.session, error);
        let route = index.route(id).map_err(failed)?;
        let mut needed = BTreeSet::new();
        if route.provider.copier().is_none() {
            let locked = chosen.into_iter().flat_map(|chosen| chosen.values());
            return Ok(locked.flat_map(|package| package.dependencies.iter().cloned()).collect());
        }
        let (releases, positions) = self.versions(id, chosen)?;
        for position in positions {
            let candidate = Candidate::Release(position);
            let requirements = index.requirements(&releases, candidate).map_err(failed)?;
            needed.extend(requirements.iter().map(|requirement| requirement.id.clone()));
        }
        Ok(needed)
    }

    /// Copies versions of a package.
    fn package(
        &mut self,
        id: &PackageId,
        chosen: Option<&VersionsToCopy>,
        work: &Work,
    ) -> Result<(), CommandError> {
        let session = self.session;
        let route = session.index().route(id).map_err(|error| unavailable_error(session, error))?;
        let Some(copier) = route.provider.copier() else {
            return self.pack(id, chosen, &route);
        };
        let (releases, positions) = self.versions(id, chosen)?;
        if positions.is_empty() {
            return Ok(());
        }
        let (name, renamed) = self.name_in_mirror(id, &route)?;
        let here = self.lines(&route)?;
        let there = self.target.lines(&name)?;
        // What can change of a published version follows its hub in every run: whether it is withdrawn, its tags, and
        // where it has moved.
        let writes = !self.request.dry_run;
        let changed = follow(self.target, writes, &name, &here, &there)?;
        self.mirrored.changed.extend(changed);
        let mut has_copied = false;
        for position in positions {
            let number = releases.version(position);
            let line = here.iter().find(|line| is_version(line, &number.to_string()));
            let Some(line) = line else { continue };
            let version = line_version(line);
            // A lock pins the content. What its hub has under that version now may be something else.
            let locked = chosen.and_then(|chosen| of_version(chosen, &number)?.1.digest);
            if let Some(locked) = locked {
                check_digest(id, &version, line, &locked, &route)?;
            }
            let is_there = copy_of(line, &there).is_some();
            self.mirrored.present += usize::from(is_there);
            if !self.request.dry_run {
                let release = session.index().release(id, Candidate::Release(position));
                let (_, release) = release.map_err(|error| unavailable_error(session, error))?;
                // mu's own archives have none.
                let is_foreign = line.contains_key("locator");
                let provenance = || match is_foreign {
                    true => route.provider.provenance(&route.location, &release, work),
                    false => Ok(None),
                };
                let evidence = || {
                    let found = route.provider.evidence(&route.location, &release, work);
                    Ok(found?.to_evidence_text())
                };
                if is_there {
                    self.catch_up(&name, line, || Ok(provenance()?));
                    if is_foreign {
                        self.catch_up_evidence(&name, &version, evidence);
                    }
                    continue;
                }
                work.doing(&format!("fetching {id} {version}"));
                let mut archive = Vec::new();
                copier.copy_archive(&route.location, &release, &mut archive, work)?;
                let mut upload = upload_of_line(&route, archive, line, &name, renamed.as_ref());
                upload.provenance = provenance()?;
                upload.evidence = self.known_evidence(&name, &version, evidence());
                // Before it is sent: a line that does not match its archive would be refused by whoever installs it,
                // and could not be taken back.
                self.target.compare(session, &upload)?;
                work.doing(&format!("sending {id} {version}"));
                self.target.publish(upload)?;
                has_copied = true;
            }
            if is_there {
                continue;
            }
            self.mirrored.copied.push(Copied { name: name.clone(), version });
        }
        // A server makes its own lines, from the archive.
        if has_copied {
            let there = self.target.lines(&name)?;
            follow(self.target, true, &name, &here, &there)?;
        }
        Ok(())
    }

    /// Copies what may have come to the archive of a version since that was copied, and what an interrupted run has not copied;
    /// `line` is that of the version. What is there counts all the same, so an error is only told.
    pub(super) fn catch_up(
        &self,
        name: &str,
        line: &IndexLine,
        provenance: impl FnOnce() -> Result<Option<Vec<u8>>, CommandError>,
    ) {
        if self.target.takes_artifacts() || !line.contains_key("locator") || !is_chart(line) {
            return;
        }
        let version = line_version(line);
        match provenance() {
            Ok(Some(provenance)) => self.target.keep_provenance(name, &version, provenance),
            Ok(None) => {}
            Err(error) => {
                self.target.warn_of_gap(VoucherGap::ProvenanceUnknown, name, &version, &error);
            }
        }
    }

    /// As [`Self::catch_up`], for what vouches for a version.
    pub(super) fn catch_up_evidence(
        &self,
        name: &str,
        version: &str,
        evidence: impl FnOnce() -> Result<String, CommandError>,
    ) {
        let evidence = self.known_evidence(name, version, evidence());
        self.target.keep_evidence(name, version, &evidence);
    }

    /// What vouches for a version, as lines of a file. What cannot be found out is told: the next run copies it.
    pub(super) fn known_evidence(
        &self,
        name: &str,
        version: &str,
        evidence: Result<String, CommandError>,
    ) -> String {
        evidence.unwrap_or_else(|error| {
            self.target.warn_of_gap(VoucherGap::EvidenceUnknown, name, version, &error);
            String::new()
        })
    }

    /// The name of a package in the mirror: as in the hub that it comes from, unless its namespace is
    /// renamed. No two packages have one name there.
    pub(super) fn name_in_mirror(
        &mut self,
        id: &PackageId,
        route: &Route,
    ) -> Result<(String, Option<Rename>), CommandError> {
        let (name, renamed) = self.name_there(id, route);
        let prefix = match self.session.index().registry(id) {
            Some((registry, _)) => registry.prefix.clone(),
            None => id.base().to_string(),
        };
        if let Some(other) = self.names.insert(name.clone(), id.clone()) {
            let message =
                format!("`{other}` and `{id}` would both be named `{name}` in the mirror");
            return Err(CommandError::new(Code::Usage, message).hint(
                "copy them to two hubs, one for each registry; `mu mirror REF --to PLACE` copies some of them",
            ));
        }
        // What is on this machine is reached there, whatever registries say.
        if id.base() != Base::localhost() {
            self.mirrored.prefixes.insert(prefix);
        }
        Ok((name, renamed))
    }

    /// The name of a package in the mirror, and what was renamed for it.
    pub(super) fn name_there(&self, id: &PackageId, route: &Route) -> (String, Option<Rename>) {
        let renamed = self.renaming.as_ref().and_then(|renaming| renaming.of(id));
        match renamed {
            Some((name, renamed)) => (name.to_string(), Some(renamed)),
            None if route.provider.copier().is_some() => (route.location.path.clone(), None),
            None => {
                let registry = self.session.index().registry(id);
                (registry.map_or(id.name_str(), |(_, rest)| rest).to_owned(), None)
            }
        }
    }

    /// The index lines of a package as they are, including unknown keys.
    fn lines(&self, route: &Route) -> Result<Vec<IndexLine>, CommandError> {
        let Listing::Found(found) = route.provider.list(&route.location, None, &Silent)? else {
            return Ok(Vec::new());
        };
        let mut lines: Vec<_> = read_json_lines(&found.lines).flatten().collect();
        // All lines of a package have the same `movedTo`, so one warning says it.
        let mut spoiled = None;
        for line in &mut lines {
            spoiled = tidied(&route.location.path, line).or(spoiled);
        }
        if let Some(error) = spoiled {
            self.session.events.warning(&Warning::MoveSkipped(ErrorText::new(&error)));
        }
        Ok(lines)
    }
}

/// Updates what can change of versions that are `there` to what it is `here`; returns the versions, and
/// what was changed of each.
pub(super) fn follow(
    target: &PublicationTarget,
    writes: bool,
    name: &str,
    here: &[IndexLine],
    there: &[IndexLine],
) -> Result<Vec<Changed>, CommandError> {
    let mut all = Vec::new();
    // In a hub, all versions have the same `movedTo`.
    let moved_to = here.last().and_then(|line| line.get("movedTo")).and_then(|to| to.as_str());
    let mut has_moved = false;
    for line in here {
        let Some(copy) = copy_of(line, there) else { continue };
        let version = line_version(line);
        let mut keys = Vec::new();
        for notice in Notice::ALL {
            let [reason, known] = [line, copy].map(|line| reason_of(line, notice));
            // A copy always has a reason: a text, if the original has none.
            let is_kept = reason.as_deref() == Some("") && known.is_some();
            if reason != known && !is_kept {
                if writes {
                    target.mark(name, &version, Mark::Notice(notice, reason.as_deref()))?;
                }
                keys.push(notice.key());
            }
        }
        let (wanted, known) = (version_tags(line), version_tags(copy));
        if wanted != known {
            for tag in known.difference(&wanted).filter(|_| writes) {
                target.mark(name, &version, Mark::NoTag(tag))?;
            }
            for tag in wanted.difference(&known).filter(|_| writes) {
                target.mark(name, &version, Mark::Tag(tag))?;
            }
            keys.push("tags");
        }
        if moved_to != copy.get("movedTo").and_then(|to| to.as_str()) {
            if !has_moved && writes {
                target.mark(name, &version, Mark::Moved(moved_to))?;
            }
            has_moved = true;
            keys.push("movedTo");
        }
        if !keys.is_empty() {
            all.push(Changed { name: name.to_owned(), version, keys });
        }
    }
    Ok(all)
}

/// The one of the versions to copy that has this number, however it is written: `1.28` is `1.28.0`.
fn of_version<'c>(
    chosen: &'c VersionsToCopy,
    version: &Version,
) -> Option<(&'c String, &'c LockedPackage)> {
    chosen.iter().find(|(_, package)| package.parsed_version().as_ref() == Some(version))
}

/// The published data of a version: its archive, and its line with the name that it has in the mirror.
pub(super) fn upload_of_line(
    route: &Route,
    archive: Vec<u8>,
    line: &IndexLine,
    name: &str,
    renamed: Option<&Rename>,
) -> Upload {
    let mut line = line.clone();
    // They are places in the other hub.
    line.remove("urls");
    line.insert("name".to_owned(), name.into());
    // The archive stays as it is, with its own name inside. `origin` tells whoever checks it that this is right.
    if name != route.location.path && !line.contains_key("origin") {
        line.insert("origin".to_owned(), route.location.path.as_str().into());
    }
    // It may be back at its original name.
    if line.get("origin").is_some_and(|origin| origin == name) {
        line.shift_remove("origin");
    }
    if let Some(renamed) = renamed {
        renamed.apply(&mut line);
    }
    let (name, version) = (name.to_owned(), line_version(&line));
    let (renamed, evidence) = (renamed.cloned(), String::new());
    Upload { name, version, line, archive, renamed, provenance: None, evidence }
}

/// Refuses a line with another digest than the lock.
fn check_digest(
    id: &PackageId,
    version: &str,
    line: &IndexLine,
    locked: &Digest,
    route: &Route,
) -> Result<(), CommandError> {
    let Some(digest) = line.get("digest").and_then(|digest| digest.as_str()) else { return Ok(()) };
    if digest == locked.to_string() {
        return Ok(());
    }
    let place = route.location.describe();
    let message =
        format!("`{id}` {version} at `{place}` has the digest {digest}, but Mu.lock has {locked}");
    Err(CommandError::new(Code::Integrity, message).hint("it was not copied"))
}

/// The packages, each after those that it needs, except in cycles: an interrupted mirror has nothing whose
/// dependencies it lacks.
fn ordered(needs: &BTreeMap<PackageId, BTreeSet<PackageId>>) -> Vec<&PackageId> {
    ordered_by_needs(needs.keys(), |id| {
        needs[id].iter().filter(|id| needs.contains_key(id)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_comes_first() {
        let id = |name: &str| PackageId::parse(&format!("h.example/{name}")).expect("is an id");
        let needs: BTreeMap<PackageId, BTreeSet<PackageId>> =
            [("a", &["b", "d"][..]), ("b", &["c"]), ("c", &["b"]), ("d", &["away"])]
                .map(|(name, needed)| (id(name), needed.iter().map(|name| id(name)).collect()))
                .into();
        let order: Vec<&str> = ordered(&needs).into_iter().map(PackageId::name_str).collect();
        assert_eq!(order, ["c", "b", "d", "a"]);
    }
}
