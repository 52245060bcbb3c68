//! What the places of locked packages say of them now: whether each still has, under that version, what the lock has, and whether what
//! vouches for it still satisfies the rules.
//!
//! Nothing that was found out before counts here, neither by an index nor by a verdict, except which content an archive has: that is
//! said by its digest. Nothing is changed; what `mu get` would do about a difference is not decided here.

use std::borrow::Cow;
use std::sync::Mutex;

use mu_provider::threads::{at_once, into_inner, lock};
use mu_provider::{
    Digest, ErrorKind, LineTrust, Listing, PlaceKind, Progress, ProviderError, Release,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::index::{Candidate, Route};
use crate::lock::{LockedPackage, Lockfile, Requested};
use crate::ops::apply::fetch::error::not_fetched;
use crate::ops::apply::fetch::one::unpacked_tree;
use crate::ops::apply::fetch::route::{
    LockedRoots, LockedRoute, locked_by_digest, used_instead, way_of,
};
use crate::ops::apply::fetch::signed::{as_ruled, ids_under_rules};
use crate::ops::explain::unavailable_error;
use crate::ops::explain::unserved::with_requirer;
use crate::ops::session::events::Work;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Version, VersionSpec};
use crate::trust::Judgement;

/// A locked package that is not what its place says now, or about which that cannot be found out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct TrustProblem {
    /// The package.
    pub id: PackageId,
    /// The locked version.
    pub version: String,
    /// `untrusted`, if it is something else now, or its entry was edited; `not-found`, if it is gone; `network`, if its place cannot
    /// be asked.
    pub code: &'static str,
    /// What is wrong.
    pub why: String,
}

impl TrustProblem {
    /// Whether its place has it no more.
    pub(crate) fn is_gone(&self) -> bool {
        self.code == NOT_FOUND
    }

    /// Whether it is something else now, or not signed as it should be.
    pub(crate) fn is_untrusted(&self) -> bool {
        self.code == UNTRUSTED
    }
}

/// What is wrong with a package, in a word and in a sentence.
type Problem = (&'static str, String);

const UNTRUSTED: &str = "untrusted";
const NOT_FOUND: &str = "not-found";
const NETWORK: &str = "network";

/// Who says what a place lists now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListedBy {
    /// The place, which is asked for it.
    Place,
    /// The index, which has asked the place in this run.
    Index,
}

/// Asks the places of locked packages; returns how many packages were asked about, and what is wrong with some of them.
pub(crate) fn problems_now(
    session: &Session,
    lock_here: &Lockfile,
    listed_by: ListedBy,
    is_meant: &dyn Fn(&LockedPackage) -> bool,
) -> Result<(usize, Vec<TrustProblem>), CommandError> {
    // What somebody works on, or has put on this machine by hand, has no place that could be asked.
    let is_elsewhere = |package: &&LockedPackage| {
        !package.source.is_authored_folder() && !package.source.is_pack() && is_meant(package)
    };
    let packages: Vec<&LockedPackage> = lock_here.packages.iter().filter(is_elsewhere).collect();
    let (roots, found) = (LockedRoots::default(), Mutex::new(Vec::new()));
    at_once(session.network_jobs(), &packages, |package| {
        let problem = match problem(session, lock_here, package, listed_by, &roots) {
            Ok(problem) => problem,
            Err(error) => Some(of_error(error)?),
        };
        if let Some((code, why)) = problem {
            let (id, version) = (package.id.clone(), package.version.clone());
            lock(&found).push(TrustProblem { id, version, code, why });
        }
        Ok::<(), CommandError>(())
    })?;
    let mut found = into_inner(found);
    found.sort();
    Ok((packages.len(), found))
}

/// What an error says of a package; the error itself, if it is about the settings or this machine, and so about all packages.
fn of_error(error: CommandError) -> Result<Problem, CommandError> {
    let code = match error.code {
        Code::NotFound => NOT_FOUND,
        Code::Integrity | Code::Untrusted => UNTRUSTED,
        Code::Network | Code::Auth | Code::Offline | Code::Plugin => NETWORK,
        _ => return Err(error),
    };
    Ok((code, mu_provider::with_causes(&*error.error)))
}

fn problem(
    session: &Session,
    lock: &Lockfile,
    package: &LockedPackage,
    listed_by: ListedBy,
    roots: &LockedRoots,
) -> Result<Option<Problem>, CommandError> {
    let way = way_of(session, package, roots)?;
    let progress = Work::begin(&session.events, format!("{} {}", package.id, package.version));
    let found = match package.commit.is_some() && is_repository(&way) {
        true => commit_now(&way, package, &progress)?,
        false => {
            let listed = listed(session, package, &way, listed_by, &progress)?;
            release_now(&way, package, listed, &progress)?
        }
    };
    let (stated, is_moved) = match found {
        Now::Same { digest, is_moved } => (digest, is_moved),
        Now::Problem(problem) => return Ok(Some(problem)),
    };
    // The place says which archive or commit it is. Which content that has, only unpacking it tells, unless the place says that, too.
    let digest = match stated {
        Some(digest) => digest,
        None => content(session, package, &way, is_moved)?,
    };
    if package.digest.is_some_and(|locked| locked != digest) {
        return Ok(Some(differs("its content", &digest, package.digest)));
    }
    evidence_now(session, lock, package, &way)
}

fn is_repository(way: &LockedRoute) -> bool {
    way.route.provider.facts().kind == PlaceKind::Repository
}

/// What a place says of a locked package now.
enum Now {
    /// It is what the lock has, as far as the place says what it is.
    Same {
        /// The digest of its content, if the place says it.
        digest: Option<Digest>,
        /// The release there, if the place has another archive of it than the lock.
        is_moved: Option<Box<Release>>,
    },
    /// It is not.
    Problem(Problem),
}

impl Now {
    fn gone(why: impl Into<String>) -> Self {
        Self::Problem((NOT_FOUND, why.into()))
    }
}

fn differs(
    what: &str,
    now: &dyn std::fmt::Display,
    locked: Option<impl std::fmt::Display>,
) -> Problem {
    let locked = locked.map_or_else(|| "none".to_owned(), |locked| locked.to_string());
    (UNTRUSTED, format!("{what} is {now} now, and Mu.lock has {locked}"))
}

/// What a registry says of a version now that is `listed` there.
fn release_now(
    way: &LockedRoute,
    package: &LockedPackage,
    listed: Option<Release>,
    progress: &dyn Progress,
) -> Result<Now, CommandError> {
    let (provider, location) = (&way.route.provider, &way.route.location);
    let place = location.describe();
    let Some(listed) = listed else {
        return Ok(Now::gone(format!("`{place}` does not have it")));
    };
    // Where a listing is only a hint, what the tag of the version leads to decides. A digest has no other name that could lead elsewhere.
    let is_hint =
        provider.facts().lines == LineTrust::Hint && pinned_digest(way, package).is_none();
    let now = match is_hint {
        true => provider.confirm(location, &listed, progress)?.unwrap_or(listed),
        false => listed,
    };
    if let Some(why) = &now.unusable {
        return Ok(Now::Problem((UNTRUSTED, format!("`{place}` has no package there now: {why}"))));
    }
    let digest: Option<Digest> = now.digest.as_deref().and_then(|text| text.parse().ok());
    if way.is_moved {
        // A mirror may have packed it anew. The content is what has to be the same.
        let is_moved = Some(Box::new(now));
        return Ok(Now::Same { digest, is_moved });
    }
    // Each only where both are known: an older lock has no manifests, and some indexes have no digests.
    let pairs = [
        ("what its tag leads to", &now.manifest, package.manifest),
        ("its archive", &now.archive, package.archive),
    ];
    for (what, now, locked) in pairs {
        if let (Some(now), Some(locked)) = (now, locked)
            && *now != locked.to_string()
        {
            return Ok(Now::Problem(differs(what, now, Some(locked))));
        }
    }
    Ok(Now::Same { digest, is_moved: None })
}

/// The digest that a locked package is known by where it is.
fn pinned_digest<'p>(way: &LockedRoute, package: &'p LockedPackage) -> Option<Cow<'p, str>> {
    let is_known = way.route.provider.facts().has_digests && package.commit.is_none();
    package.revision().filter(|_| is_known)
}

/// What its place has as a locked package; `None` if it does not have it.
fn listed(
    session: &Session,
    package: &LockedPackage,
    way: &LockedRoute,
    listed_by: ListedBy,
    progress: &dyn Progress,
) -> Result<Option<Release>, CommandError> {
    let Route { provider, location, .. } = &way.route;
    // An archive by URL is all that there is to list.
    let is_alone = provider.facts().lines == LineTrust::InArchive;
    let is_known = is_alone && listed_by == ListedBy::Index;
    match (pinned_digest(way, package).filter(|_| !is_known), listed_by) {
        (Some(digest), _) => Ok(Some(provider.resolve(location, &digest, progress)?)),
        (None, ListedBy::Index) => listed_in_index(session, package, is_alone),
        (None, ListedBy::Place) => Ok(listed_now(way, package, progress)?),
    }
}

/// What the index knows of a locked package from the listing of its place, which it has asked in this run; of one that `is_alone` there,
/// whatever it is now.
fn listed_in_index(
    session: &Session,
    package: &LockedPackage,
    is_alone: bool,
) -> Result<Option<Release>, CommandError> {
    let (id, index) = (used_instead(session, &package.id), session.index());
    let failed = |error| unavailable_error(session, error);
    let releases = index.published(&id).map_err(failed)?;
    let release = |at| -> Result<Release, CommandError> {
        let (_, release) = index.release(&id, Candidate::Release(at)).map_err(failed)?;
        Ok(Release::clone(&release))
    };
    // A copy of a commit has a name of its own there, and the same content.
    let copied = package.digest.filter(|_| package.commit.is_some()).map(|one| one.to_string());
    let Some(copied) = copied else {
        let version = package.parsed_version();
        let at = version.and_then(|version| releases.position_of_version(&version));
        let at = if is_alone { releases.len().checked_sub(1) } else { at };
        return at.map(release).transpose();
    };
    for at in 0..releases.len() {
        let found = release(at)?;
        if found.digest.as_ref() == Some(&copied) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The line of a locked version in the listing of its place, which is asked; `None` if it has none.
fn listed_now(
    way: &LockedRoute,
    package: &LockedPackage,
    progress: &dyn Progress,
) -> Result<Option<Release>, ProviderError> {
    // Of this version all counts, also what selection does not need.
    let Listing::Found(found) = way.route.provider.list_in_full(&way.route.location, progress)?
    else {
        return Ok(None);
    };
    let locked = package.parsed_version();
    let is_it = |release: &Release| {
        let version = release.full_version();
        let parsed = match release.versioning.as_deref() {
            Some("composite") => Version::parse_composite(&version).ok(),
            _ => Version::parse_lenient(&version).ok(),
        };
        version == package.version || parsed.is_some() && parsed == locked
    };
    // A copy of a commit has a name of its own there, and the same content.
    let digest =
        package.digest.map(|digest| digest.to_string()).filter(|_| package.commit.is_some());
    let is_copy = |release: &Release| digest.is_some() && release.digest == digest;
    let mut releases: Vec<Release> = found.releases().collect();
    let at = releases.iter().position(is_copy);
    let at = at.or_else(|| releases.iter().position(is_it).filter(|_| package.commit.is_none()));
    Ok(at.map(|at| releases.swap_remove(at)))
}

/// What a repository says of the name that a commit was locked by.
fn commit_now(
    way: &LockedRoute,
    package: &LockedPackage,
    progress: &dyn Progress,
) -> Result<Now, CommandError> {
    let (provider, location) = (&way.route.provider, &way.route.location);
    let commit = package.commit.as_deref().unwrap_or_default();
    let same = Now::Same { digest: None, is_moved: None };
    let is_there = || match provider.resolve(location, commit, progress) {
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    };
    let found = match provider.list(location, None, progress)? {
        Listing::Found(found) => found,
        _ => return Ok(Now::gone(format!("there is no repository `{}`", location.describe()))),
    };
    // A commit that was asked for as one has no other name, also if its manifest says the version of a tag that leads elsewhere.
    let reference = package.reference.as_deref();
    let is_it = |requested: &Requested| match VersionSpec::parse(&requested.spec) {
        Ok(VersionSpec::Commit(asked)) => asked.names(Some(commit), reference),
        _ => false,
    };
    if package.requested.iter().any(is_it) {
        return Ok(is_there()?.map_or(same, Now::gone));
    }
    // Tags stay where they are, and a branch moves by itself.
    let is_tag =
        |one: &Release| one.reference.as_deref().is_some_and(|name| name.starts_with("refs/tags/"));
    let tags: Vec<Release> = found.releases().filter(is_tag).collect();
    // By the name that was asked for; if a range or a number was, by the tags that say this version.
    let named: Vec<&Release> = match package.reference.as_deref() {
        Some(name) => {
            let full = match name.starts_with("refs/") {
                true => name.to_owned(),
                false => format!("refs/tags/{name}"),
            };
            tags.iter().filter(|tag| tag.reference.as_deref() == Some(&*full)).collect()
        }
        None => {
            let version = package.parsed_version();
            let is_it = |tag: &&Release| {
                let parsed = Version::parse_lenient(&tag.version).ok();
                !tag.version.is_empty()
                    && (tag.version == package.version || parsed.is_some() && parsed == version)
            };
            tags.iter().filter(is_it).collect()
        }
    };
    if named.iter().any(|tag| tag.commit.as_deref() == Some(commit)) {
        return Ok(same);
    }
    if let Some(tag) = named.first() {
        let name = tag.reference.as_deref().unwrap_or_default();
        let name = name.trim_start_matches("refs/tags/");
        let now = tag.commit.as_deref().unwrap_or_default();
        return Ok(Now::Problem(differs(
            &format!("the commit of the tag `{name}`"),
            &now,
            Some(commit),
        )));
    }
    // Without tags of versions, the default branch was locked.
    let has_versions = tags.iter().any(|tag| !tag.version.is_empty());
    if package.reference.is_none() && has_versions {
        return Ok(Now::gone(format!("`{}` has no tag of it", location.describe())));
    }
    Ok(is_there()?.map_or(same, Now::gone))
}

/// The digest of the content of a locked package, or of the `release` that another place has of it.
fn content(
    session: &Session,
    package: &LockedPackage,
    way: &LockedRoute,
    is_moved: Option<Box<Release>>,
) -> Result<Digest, CommandError> {
    let release = match is_moved {
        Some(release) => Release { digest: None, ..*release },
        None => Release { digest: None, ..locked_by_digest(session, package, way)? },
    };
    // What this machine has unpacked once is not downloaded again: the digest of an archive says what is in it.
    if let Some(digest) = unpacked_tree(session, &way.route, &release) {
        return Ok(digest);
    }
    let what = format!("{} {}", package.id, package.version);
    let progress = Work::begin(&session.events, what.as_str());
    let _store = session.use_store()?;
    let fetched = session
        .store
        .inspect(|tree| way.route.provider.fetch(&way.route.location, &release, tree, &progress));
    Ok(fetched
        .map_err(|error| with_requirer(session, &package.id, not_fetched(error, &what)))?
        .digest())
}

/// Whether the rules accept a locked package by what vouches for it now, and whether its entry says rightly who signed it.
fn evidence_now(
    session: &Session,
    lock: &Lockfile,
    package: &LockedPackage,
    way: &LockedRoute,
) -> Result<Option<Problem>, CommandError> {
    let Some((source, stood_for)) = ids_under_rules(session, lock, package) else {
        return Ok(None);
    };
    let release = locked_by_digest(session, package, way)?;
    let candidate = as_ruled(package, (&source, stood_for), &way.route, &release);
    let progress = Work::begin(&session.events, format!("{} {}", package.id, package.version));
    // The rules of this user and this workspace count, not those under which somebody else has locked it.
    let judgement = session.trust.judge_anew(&candidate, &session.store, &progress)?;
    progress.warn_of_evidence(&session.trust);
    let signed_by = match judgement {
        Judgement::Free => return Ok(None),
        Judgement::Refused(refused) => {
            return Ok(Some((UNTRUSTED, format!("{} ({})", refused.why, refused.rule))));
        }
        Judgement::Accepted(accepted) => accepted.signed_by,
    };
    let is_other = |identity: &&String| !signed_by.contains(identity);
    let mut others: Vec<&String> = package.signed_by.iter().filter(is_other).collect();
    if others.is_empty() {
        return Ok(None);
    }
    // The lock may name signers of somebody else's rules. A signature that nothing here can read may be theirs; each of these speaks
    // for one of them.
    let (_, weighed) = session.trust.weigh_all(&candidate, &progress)?;
    others
        .retain(|other| !weighed.iter().any(|one| one.verifies && one.identities.contains(other)));
    let unread = weighed.iter().filter(|one| !one.verifies).count();
    if others.len() <= unread {
        return Ok(None);
    }
    let others: Vec<&str> = others.into_iter().map(|other| &**other).collect();
    let why =
        format!("Mu.lock says that {} signed it, and nothing shows that", others.join(" and "));
    Ok(Some((UNTRUSTED, why)))
}
