//! Locked packages under rules of the settings: whether the rules accept them, and whether what is in the store was unpacked from the
//! archive that is signed.
//!
//! A lock is no proof. So the digest of the content counts only if this machine has unpacked the signed archive itself; where it came
//! here otherwise, that archive is fetched once. The name in it must be that of the package, because a signature of an image names none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mu_archive::{ArchiveLayout, Packing};
use mu_formats::FORMATS;
use mu_provider::threads::{at_once, into_inner, lock};
use mu_provider::{Digest, ProviderError, Release, TreeWriter, with_causes};

use crate::formats;
use crate::index::Route;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::fetch::error::not_fetched;
use crate::ops::apply::fetch::here::kept_archive;
use crate::ops::apply::fetch::route::{
    LockedRoots, LockedRoute, known_way, locked_by_digest, locked_release, used_instead, way_of,
};
use crate::ops::explain::unserved::with_requirer;
use crate::ops::explain::untrusted;
use crate::ops::session::events::Work;
use crate::ops::solve::record::Resolved;
use crate::ops::solve::trusted::{as_locked, not_judged};
use crate::ops::{Code, CommandError, Session, VoucherGap, Warning};
use crate::reference::PackageId;
use crate::store::TreeStoreError;
use crate::trust::{self, Judgement};

/// A locked package that the rules of the settings speak of.
struct Ruled<'l> {
    /// Its place in the lock.
    at: usize,
    package: &'l LockedPackage,
    /// The package that its content comes from.
    source: PackageId,
    way: LockedRoute,
    /// What is known of it; only its archive says what is in it.
    release: Release,
    /// The rule that speaks of it, as messages name it.
    rule: String,
}

/// Checks that the rules accept the packages that `resolved` names.
pub(crate) fn check_signed(session: &Session, resolved: &Resolved) -> Result<(), CommandError> {
    ruled(session, resolved).map(drop)
}

/// As [`check_signed`]; then brings the signed archives into the store, as far as this machine has not unpacked them yet, and fills in
/// the missing digests. Returns how many were fetched.
pub(crate) fn bring_signed(
    session: &Session,
    resolved: &mut Resolved,
) -> Result<usize, CommandError> {
    let ruled = ruled(session, resolved)?;
    let (digests, fetched) = (Mutex::new(Vec::new()), Mutex::new(0));
    // What was unpacked here before is believed from the note in the cache, which no checkout can bring. The rest is fetched, even if
    // the store has the digest of the lock: somebody else may have written both.
    // A tree that arrives now is still there when a pack is made of it.
    let is_new = |ruled: &Ruled<'_>| ruled.known(session).is_none();
    let _store = ruled.iter().any(is_new).then(|| session.use_store()).transpose()?;
    at_once(session.network_jobs(), &ruled, |ruled| {
        let digest = match ruled.known(session) {
            Some(digest) => digest,
            None => {
                *lock(&fetched) += 1;
                ruled.unpack(session)?
            }
        };
        if ruled.package.digest.is_some_and(|expected| expected != digest) {
            return Err(other_content(ruled.package, &digest));
        }
        lock(&digests).push((ruled.at, digest));
        Ok(())
    })?;
    drop(ruled);
    for (at, digest) in into_inner(digests) {
        if resolved.lock.packages[at].digest != Some(digest) {
            Arc::make_mut(&mut resolved.lock).packages[at].digest = Some(digest);
        }
    }
    Ok(into_inner(fetched))
}

/// The packages under rules that are bound to an archive; an error if the rules do not accept one.
fn ruled<'l>(session: &Session, resolved: &'l Resolved) -> Result<Vec<Ruled<'l>>, CommandError> {
    if session.trust.is_empty() {
        return Ok(Vec::new());
    }
    let (roots, found) = (LockedRoots::default(), Mutex::new(Vec::new()));
    let lock_here = &resolved.lock;
    let packages = lock_here.packages.iter().enumerate();
    let is_left_out = |at: &usize| resolved.left_out.contains(at);
    let packages: Vec<_> = packages.filter(|(at, _)| !is_left_out(at)).collect();
    at_once(session.network_jobs(), &packages, |(at, package)| {
        if let Some(ruled) = rule(session, lock_here, *at, package, &roots)? {
            lock(&found).push(ruled);
        }
        Ok::<(), CommandError>(())
    })?;
    Ok(into_inner(found))
}

/// A package under rules that are bound to its archive; `None` if there are none.
fn rule<'l>(
    session: &Session,
    lock: &Lockfile,
    at: usize,
    package: &'l LockedPackage,
    roots: &LockedRoots,
) -> Result<Option<Ruled<'l>>, CommandError> {
    let Some((source, stood_for)) = ids_under_rules(session, lock, package) else {
        return Ok(None);
    };
    // A mirror is asked in the place of the origin, and has to have the same evidence.
    let way = way_of(session, package, roots)?;
    let rules = session.trust.rules_about(&way.route, &source, &stood_for);
    let Some(rule) = rules.first() else { return Ok(None) };
    let release = locked_by_digest(session, package, &way)?;
    let candidate = as_ruled(package, (&source, stood_for), &way.route, &release);
    let progress = Work::begin(&session.events, format!("{} {}", package.id, package.version));
    let judged = session.trust.judge(&candidate, &session.store, &progress);
    progress.warn_of_evidence(&session.trust);
    match judged
        .map_err(|error| not_judged(session, &package.id, &trust::rule_in_words(rule), error))?
    {
        Judgement::Free => Ok(None),
        Judgement::Refused(refused) => Err(untrusted::locked(session, package, &refused)),
        Judgement::Accepted(_) => {
            let release = Release { digest: None, ..release };
            let rule = trust::rule_in_words(rule);
            Ok(Some(Ruled { at, package, source, way, release, rule }))
        }
    }
}

/// The package that a locked one comes from, and those that this stands for, if rules may speak of any. Where it comes from may have to be
/// looked up, which costs a request, and is of no use without rules.
pub(super) fn ids_under_rules(
    session: &Session,
    lock: &Lockfile,
    package: &LockedPackage,
) -> Option<(PackageId, Vec<PackageId>)> {
    if package.source.is_authored_folder() || package.source.is_pack() {
        return None;
    }
    let source = used_instead(session, &package.id);
    let mut stood_for = session.workspace.settings.stood_for(&package.id, &source);
    let replaced = lock.replaced.iter().filter(|replaced| replaced.by == package.id);
    stood_for.extend(replaced.map(|replaced| replaced.id.clone()));
    let rules = session.trust.rules().in_force(&source, &stood_for);
    (!rules.is_empty()).then_some((source, stood_for))
}

/// A locked package as rules see it: what it comes from and stands for, and the release that its lock entry names. Who signed it, its entry says.
pub(super) fn as_ruled<'r>(
    package: &LockedPackage,
    (source, stood_for): (&'r PackageId, Vec<PackageId>),
    route: &'r Route,
    release: &'r Release,
) -> trust::RuledVersion<'r> {
    let (signed_by, version) = (package.signed_by.clone(), package.parsed_version());
    let before =
        trust::SignedBefore { signed_by, is_of_this: true, ..trust::SignedBefore::default() };
    trust::RuledVersion { source, stood_for, version, route, release, before }
}

/// Who signed the locked packages that rules speak of, by what this machine has found out before.
#[derive(Debug, Default)]
pub(crate) struct SignersHere {
    /// How many packages each identity signed.
    pub(crate) by_signer: BTreeMap<String, usize>,
    /// The packages of which this machine has found out nothing.
    pub(crate) unknown: Vec<PackageId>,
}

/// Who signed packages of the lock, as far as rules ask for that; an error if a rule accepts one of them in no case. Nobody is asked.
pub(crate) fn signers_here(
    session: &Session,
    lock: &Lockfile,
    is_meant: &dyn Fn(&LockedPackage) -> bool,
) -> Result<SignersHere, CommandError> {
    let mut here = SignersHere::default();
    if session.trust.is_empty() {
        return Ok(here);
    }
    let roots = LockedRoots::default();
    for package in lock.packages.iter().filter(|package| is_meant(package)) {
        let Some((source, stood_for)) = ids_under_rules(session, lock, package) else { continue };
        let Some(way) = known_way(session, package, &roots) else {
            here.unknown.push(package.id.clone());
            continue;
        };
        // By the digests of the lock, wherever the settings lead it now: evidence speaks of these, and not of places.
        let way = LockedRoute { is_moved: false, ..way };
        let release = as_locked(package, &*locked_release(session, package, &way)?);
        let candidate = as_ruled(package, (&source, stood_for), &way.route, &release);
        // Without evidence on this machine, nothing is wrong: `mu get` asks for it.
        let signed_by = match session.trust.known_judgement(&candidate)? {
            None => {
                here.unknown.push(package.id.clone());
                continue;
            }
            Some(Judgement::Free) => continue,
            Some(Judgement::Refused(refused)) => {
                return Err(untrusted::locked(session, package, &refused));
            }
            Some(Judgement::Accepted(accepted)) => accepted.signed_by,
        };
        // The archive is signed; that it has this content, only this machine can say.
        let ruled = Ruled { at: 0, package, source, way, release, rule: String::new() };
        let known = match ruled.known_anyhow(session) {
            None if kept_archive(session, package).is_some() => {
                let _store = session.use_store()?;
                Some(ruled.unpack(session)?)
            }
            known => known,
        };
        match known {
            Some(digest) if package.digest != Some(digest) => {
                return Err(other_content(package, &digest));
            }
            Some(_) => {}
            None => {
                here.unknown.push(package.id.clone());
                continue;
            }
        }
        for identity in signed_by {
            *here.by_signer.entry(identity).or_default() += 1;
        }
    }
    Ok(here)
}

/// The error of a lock that says other content than what the signed archive has.
fn other_content(package: &LockedPackage, digest: &Digest) -> CommandError {
    let LockedPackage { id, version, digest: expected, .. } = package;
    let expected = expected.map_or_else(|| "none".to_owned(), |expected| expected.to_string());
    let text = format!(
        "the signed archive of `{id}` {version} does not have the content that Mu.lock says: expected {expected}, got {digest}"
    );
    CommandError::new(Code::Untrusted, text)
        .hint("Mu.lock was edited or merged wrongly: restore it from version control")
}

impl Ruled<'_> {
    /// The name under which it is noted that its archive was unpacked and is this package.
    fn note(&self) -> Option<String> {
        self.note_of(self.release.locator.as_deref())
    }

    /// As [`Ruled::note`], for an archive that is laid out like this.
    fn note_of(&self, locator: Option<&str>) -> Option<String> {
        let Release { archive, commit, .. } = &self.release;
        let folder = self.package.folder.as_deref();
        let inside = locator.or(folder).unwrap_or_default();
        let content = archive.as_deref().or(commit.as_deref())?;
        let name = self.source.name();
        let name = if self.is_named_by_url() { name.as_str() } else { name.leaf() };
        Some([content, inside, name, &self.package.version].join("\n"))
    }

    /// Whether its name is the path of an archive in a URL, also where a mirror has it now.
    fn is_named_by_url(&self) -> bool {
        self.package.source.is_url_archive() || Packing::of(self.source.name_str()).is_some()
    }

    /// The content that this machine has unpacked from its archive.
    fn known(&self, session: &Session) -> Option<Digest> {
        session.trust.unpacked_from(&self.note()?)
    }

    /// As [`Ruled::known`], however the place that it came from lays archives out: a mirror may do that otherwise.
    fn known_anyhow(&self, session: &Session) -> Option<Digest> {
        let layouts = [ArchiveLayout::InFolder, ArchiveLayout::Layer, ArchiveLayout::Files];
        let mut locators: Vec<Option<&str>> = vec![self.release.locator.as_deref()];
        locators.extend(layouts.map(ArchiveLayout::as_locator));
        locators.extend(FORMATS.iter().map(|format| Some(format.name)));
        let mut notes = locators.into_iter().filter_map(|locator| self.note_of(locator));
        notes.find_map(|note| session.trust.unpacked_from(&note))
    }

    /// Fetches its archive, and returns the digest of the content.
    fn unpack(&self, session: &Session) -> Result<Digest, CommandError> {
        let Self { package, way, release, .. } = self;
        let what = format!("{} {}", package.id, package.version);
        // An entry of an older mu, or one that somebody has edited.
        let Some(note) = self.note() else {
            let text = format!(
                "Mu.lock names no archive of `{what}`, so that nothing ties it to what is signed"
            );
            return Err(CommandError::new(Code::Untrusted, text)
                .hint(format!("`mu update {}` locks it anew", session.short_name(&package.id))));
        };
        let progress = Work::begin(&session.events, what.as_str());
        let (provider, location) = (&way.route.provider, &way.route.location);
        // A vendored archive needs no place. One that is something else is told, and does not hide the right one.
        let kept = kept_archive(session, package);
        let restored = kept.map(|kept| {
            self.take(session, |tree| provider.restore(location, release, &kept, tree, &progress))
        });
        let digest = match restored {
            Some(Ok(digest)) => Ok(digest),
            Some(Err(error)) if error.code == Code::Untrusted => return Err(error),
            restored => {
                if let Some(Err(error)) = restored {
                    let (name, version) = (package.id.to_string(), package.version.clone());
                    let (gap, why) = (VoucherGap::ArchiveNotUsed, with_causes(&*error.error));
                    session.events.warning(&Warning::Voucher { gap, name, version, why });
                }
                self.take(session, |tree| provider.fetch(location, release, tree, &progress))
            }
        };
        let digest = digest.map_err(|error| self.not_taken(session, error))?;
        session.trust.note_unpacked_from(&note, &digest);
        Ok(digest)
    }

    /// The error of an archive that is signed, and cannot be had.
    fn not_taken(&self, session: &Session, error: CommandError) -> CommandError {
        match error.code {
            // Other bytes under a signed digest are no mistake of a registry.
            Code::Integrity => CommandError { code: Code::Untrusted, ..error },
            Code::Offline | Code::Network => {
                let name = session.short_name(&self.package.id);
                let error = error.while_doing(format!(
                    "cannot compare `{name}` with what is signed, which a {} asks for",
                    self.rule
                ));
                match session.packs().is_vendored() {
                    true => error.hint(
                        "`mu vendor --archives`, where there is a network, keeps the archives: only these tie vendored files to what is signed",
                    ),
                    false => error,
                }
            }
            _ => error,
        }
    }

    /// Takes the files that `fill` writes into the store, and returns the digest of the content.
    fn take(
        &self,
        session: &Session,
        fill: impl FnOnce(&mut TreeWriter) -> Result<(), ProviderError>,
    ) -> Result<Digest, CommandError> {
        let what = format!("{} {}", self.package.id, self.package.version);
        let failed = |error: TreeStoreError| {
            with_requirer(session, &self.package.id, not_fetched(error, &what))
        };
        if session.store.is_read_only() {
            return Ok(session.store.inspect(fill).map_err(failed)?.digest());
        }
        let stored = session.store.add(None, |tree| fill(tree).map(|()| String::new()));
        let stored = stored.map_err(failed)?;
        if let Err(error) = self.check_name(&stored.folder) {
            // Other processes may use what was there before.
            if stored.checked.is_none() {
                session.store.remove(&stored.digest)?;
            }
            return Err(error);
        }
        Ok(stored.digest)
    }

    /// Checks that the manifest in the archive has the name and the version of the package, as far as it has any.
    fn check_name(&self, folder: &std::path::Path) -> Result<(), CommandError> {
        let Self { package, source, .. } = self;
        let refused = |why: String| {
            let text = format!("what is signed as `{}` {} {why}", package.id, package.version);
            CommandError::new(Code::Untrusted, text).hint(
                "nothing was installed; somebody may have put another package's signature here",
            )
        };
        // A format without a manifest has no name: there, whoever may write into the registry may put one signed package in the place
        // of another one of the same signer.
        let head = formats::load_package_head(folder).map_err(|error| {
            let error = CommandError::from(error);
            error.while_doing(format!(
                "the manifest in the archive of `{}` cannot be read",
                package.id
            ))
        })?;
        let Some(head) = head else { return Ok(()) };
        let id = source.name();
        // The name of an archive by URL is what its author liked, so the package's stands somewhere in it.
        let by_url = self.is_named_by_url().then(|| id.as_str());
        let is_other_name = |name: &str| match by_url {
            Some(path) => !stands_in(path, name),
            None => name != id.leaf(),
        };
        if let Some(name) = head.name.filter(|name| is_other_name(name.name().leaf())) {
            return Err(refused(format!("is a package named `{}`", name.name())));
        }
        if let (Some(path), Some(version)) = (by_url, &head.version)
            && !is_version_in(path, &version.to_string())
        {
            return Err(refused(format!("is version {version}")));
        }
        // Composite versions are written in more than one way, so texts and numbers are both compared.
        let is_other = |version: &crate::reference::Version| {
            package.parsed_version().as_ref() != Some(version)
                && version.to_string() != package.version
        };
        match head.version.filter(is_other) {
            Some(version) => Err(refused(format!("is version {version}"))),
            None => Ok(()),
        }
    }
}

/// Whether a word stands in a path by itself: `tool` in `dl/tool-1.2.tgz`, and `1.2` in `tool-v1.2.tgz`.
fn stands_in(path: &str, word: &str) -> bool {
    let is_digit = |character: char| character.is_ascii_digit();
    let is_number = word.starts_with(is_digit);
    path.match_indices(word).any(|(at, _)| {
        let (before, after) = (&path[..at], &path[at + word.len()..]);
        let before = if is_number { before.strip_suffix('v').unwrap_or(before) } else { before };
        // A number beside a dot is the end or the beginning of a longer version.
        let longer = before.strip_suffix('.').is_some_and(|rest| rest.ends_with(is_digit))
            || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_digit));
        let mut beside = [before.chars().next_back(), after.chars().next()].into_iter().flatten();
        let is_part = beside.any(char::is_alphanumeric) || is_number && longer;
        !is_part
    })
}

/// Whether a path has this version, in full or without a zero at its end, or none.
fn is_version_in(path: &str, version: &str) -> bool {
    let is_one =
        |three: &[u8]| three[0].is_ascii_digit() && three[1] == b'.' && three[2].is_ascii_digit();
    stands_in(path, version)
        || version.strip_suffix(".0").is_some_and(|short| stands_in(path, short))
        || !path.as_bytes().windows(3).any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_a_version_or_none() {
        for (path, version, expected) in [
            ("dl/tool-1.2.tgz", "1.2.0", true),
            ("dl/tool-v1.2.0-linux.tgz", "1.2.0", true),
            ("dl/v1.2.0/tool.tgz", "1.2.0", true),
            ("dl/tool.tgz", "1.2.0", true),
            ("dl/tool-1.2.0-rc.1.tgz", "1.2.0-rc.1", true),
            ("dl/tool-1.3.0.tgz", "1.2.0", false),
            ("dl/tool-11.2.0.tgz", "1.2.0", false),
            ("dl/tool-1.2.0.1.tgz", "1.2.0", false),
            ("dl/tool-3.1.2.0.tgz", "1.2.0", false),
            ("dl/tool-rev1.2.0.tgz", "1.2.0", false),
            ("dl/tool-1.2.5.tgz", "1.2.0", false),
        ] {
            assert_eq!(is_version_in(path, version), expected, "{path} {version}");
        }
    }
}
