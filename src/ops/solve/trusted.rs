//! Whether the rules of the settings accept the versions that selection chose, and whether an advisory calls them malicious. One that is
//! not accepted is no candidate from then on, and versions are chosen again.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mu_formats::osv::AdvisedPackage;
use mu_provider::threads::{at_once, into_inner, lock};
use mu_provider::{ErrorKind, Release};

use crate::index::Candidate;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::explain::unserved::with_requirer;
use crate::ops::explain::{unavailable_error, untrusted};
use crate::ops::session::advisories::{Feeds, Ignored, ignored};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::events::Work;
use crate::ops::session::source::PackagePlace;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::{PackageId, VersionSpec};
use crate::select::{Chosen, Selection};
use crate::trust::{
    self, Accepted, Judgement, LockedClaim, MOST_REFUSED, SignedBefore, TrustError,
};
use crate::workspace::trust::{Continuity, RuleInForce};

/// Who signed each chosen package, by its place in a selection.
pub(crate) type Signers = BTreeMap<usize, Accepted>;

/// Asks the rules about chosen packages, all at once; `previous` says who signed those before. `None` if one is not accepted: then
/// versions must be chosen again.
pub(crate) fn accept(
    session: &Session,
    selection: &Selection,
    previous: &Lockfile,
    is_asked_about: &dyn Fn(usize, &Chosen) -> bool,
) -> Result<Option<Signers>, CommandError> {
    let mut signers = Signers::new();
    if accepts_everything(session) {
        return Ok(Some(signers));
    }
    // What is the workspace's own, and what somebody has put on this machine by hand, has no registry that could vouch for it.
    let asked: Vec<(usize, &Chosen)> = (selection.packages.iter().enumerate())
        .filter(|(at, chosen)| !chosen.is_local() && is_asked_about(*at, chosen))
        .filter(|(_, chosen)| !session.index().has_pack_versions(chosen.source()))
        .collect();
    let (found, is_accepted) = (Mutex::new(Vec::new()), AtomicBool::new(true));
    at_once(session.network_jobs(), &asked, |(at, chosen)| {
        match judge(session, selection, previous, chosen)? {
            Some(accepted) => lock(&found).push((*at, accepted)),
            // All are asked, so that the next selection knows all of it.
            None => is_accepted.store(false, Ordering::Relaxed),
        }
        Ok::<(), CommandError>(())
    })?;
    signers.extend(into_inner(found));
    Ok(is_accepted.into_inner().then_some(signers))
}

/// Whether there is nothing by which a version could be refused.
fn accepts_everything(session: &Session) -> bool {
    session.trust.is_empty() && !session.advisories.has_any_feed()
}

/// Who signed a chosen package, if the rules accept it; `None` if selection has to choose again.
fn judge(
    session: &Session,
    selection: &Selection,
    previous: &Lockfile,
    chosen: &Chosen,
) -> Result<Option<Accepted>, CommandError> {
    let source = chosen.source();
    let mut stood_for = session.workspace.settings.stood_for(&chosen.id, source);
    let replaced = selection.replaced.iter().filter(|replaced| replaced.by == chosen.id);
    stood_for.extend(replaced.map(|replaced| replaced.id.clone()));
    let candidate = chosen.as_candidate().expect("what is not the workspace's own is a candidate");
    judge_candidate(session, source, stood_for, (previous, &chosen.id), candidate)
}

/// Whether the rules accept the version that a requirement begins at; if not, it is no candidate any more.
pub(crate) fn accepts_beginning(
    session: &Session,
    id: &PackageId,
    spec: Option<&VersionSpec>,
) -> Result<bool, CommandError> {
    let Some(spec) = spec.filter(|_| !accepts_everything(session)) else { return Ok(true) };
    // The version is not yet anybody's requirement, so it is looked up as the lowest one that this spec accepts.
    let releases =
        session.index().published(id).map_err(|error| unavailable_error(session, error))?;
    let mut positions = 0..releases.len();
    let Some(at) = positions.find(|at| spec.has_lower_bound_at(&releases.version(*at))) else {
        return Ok(true);
    };
    let stood_for = session.workspace.settings.stood_for(id, id);
    let previous = session.lockfile()?.unwrap_or_default();
    let candidate = Candidate::Release(at);
    Ok(judge_candidate(session, id, stood_for, (&previous, id), candidate)?.is_some())
}

/// What is known of a release, with the digests of its locked entry.
pub(crate) fn as_locked(package: &LockedPackage, known: &Release) -> Release {
    Release {
        archive: package.archive.map(|digest| digest.to_string()),
        manifest: package.manifest.map(|digest| digest.to_string()),
        // A mirror may lay its archives out otherwise, and says it.
        locator: known.locator.clone().or_else(|| package.locator.clone()),
        digest: package.digest.map(|digest| digest.to_string()),
        // In a repository, the tag that was asked for is the one that counts.
        reference: match package.commit {
            Some(_) => known.reference.clone().or_else(|| package.reference.clone()),
            None => known.reference.clone(),
        },
        ..known.clone()
    }
}

/// Who signed the locked versions of a package, where a rule refuses others. It can be proven of those from the same place that this still
/// has; at the URL of an archive is another one by now, with another bundle.
fn signed_before(
    session: &Session,
    source: &PackageId,
    (previous, id): (&Lockfile, &PackageId),
) -> Result<SignedBefore, CommandError> {
    let failed = |error| unavailable_error(session, error);
    let (index, mut before) = (session.index(), SignedBefore::default());
    let releases = index.published(source).map_err(failed)?;
    for package in previous.find(id).filter(|package| !package.signed_by.is_empty()) {
        let signed_by = package.signed_by.clone();
        let is_here = package.from.as_ref().unwrap_or(id) == source;
        let version = package.parsed_version().filter(|_| is_here);
        let version = version.filter(|_| !package.source.is_url_archive());
        let listed = |version| (0..releases.len()).find(|at| releases.version(*at) == version);
        match version.and_then(listed) {
            Some(at) => {
                let (_, known) = index.release(source, Candidate::Release(at)).map_err(failed)?;
                before.claims.push(LockedClaim { release: as_locked(package, &known), signed_by });
            }
            None => before.signed_by.extend(signed_by),
        }
    }
    Ok(before)
}

fn judge_candidate(
    session: &Session,
    source: &PackageId,
    stood_for: Vec<PackageId>,
    locked: (&Lockfile, &PackageId),
    candidate: Candidate<'_>,
) -> Result<Option<Accepted>, CommandError> {
    let failed = |error| unavailable_error(session, error);
    let index = session.index();
    // What a feed on this machine knows costs nothing, so it comes first.
    if is_malicious(session, source, candidate)? {
        return Ok(None);
    }
    let (route, _) = index.release(source, candidate).map_err(failed)?;
    let rules = session.trust.rules_about(&route, source, &stood_for);
    let Some(rule) = rules.first() else { return Ok(Some(Accepted::default())) };
    // Only the place itself knows which digest its tag leads to.
    if let Candidate::Release(position) = candidate
        && !index.confirm(source, position).map_err(failed)?
    {
        return Ok(None);
    }
    let refuses_others = |rule: &RuleInForce<'_>| rule.rule.continuity == Continuity::Refuse;
    let before = match rules.iter().any(refuses_others) {
        true => signed_before(session, source, locked)?,
        false => SignedBefore::of_locked(locked.0, locked.1, None),
    };
    // After that, the digests are those of the place, and no longer those of a listing.
    let (route, release) = index.release(source, candidate).map_err(failed)?;
    let version = match candidate {
        Candidate::Release(position) => {
            Some(index.published(source).map_err(failed)?.version(position))
        }
        Candidate::Revision(untagged) => untagged.version.clone(),
    };
    let (route, release) = (&*route, &*release);
    let asked =
        trust::RuledVersion { source, stood_for, version: version.clone(), route, release, before };
    let what = format!("{source} {}", release.version);
    let progress = Work::begin(&session.events, what.as_str());
    let judged = session.trust.judge(&asked, &session.store, &progress);
    progress.warn_of_evidence(&session.trust);
    match judged.map_err(|error| not_judged(session, source, &trust::rule_in_words(rule), error))? {
        Judgement::Free => Ok(Some(Accepted::default())),
        Judgement::Accepted(accepted) => {
            // A registry may say that a version is old. What was signed yesterday was not there last year.
            let limit = session.age_rule().latest_publication();
            let is_newer = match (candidate, accepted.time.zip(limit)) {
                (Candidate::Release(position), Some((time, limit))) if time > limit => {
                    index.note_publication(source, position, time).map_err(failed)?
                }
                _ => false,
            };
            Ok((!is_newer).then_some(accepted))
        }
        // No candidate from now on; what was asked for by its digest has no other one.
        Judgement::Refused(refused) => {
            let position = match candidate {
                Candidate::Release(position) => position,
                Candidate::Revision(untagged) => {
                    let commit = &untagged.commit;
                    return Err(untrusted::revision(session, source, commit, &refused));
                }
            };
            let why = refused.why.clone();
            let version = version.map(|version| version.to_string()).unwrap_or_default();
            if session.trust.refuse_version(source, &version, refused) > MOST_REFUSED {
                return Err(untrusted::no_version(
                    session,
                    source,
                    &session.trust.refused_versions(source),
                ));
            }
            index.refuse(source, position, &why).map_err(failed)?;
            Ok(None)
        }
    }
}

/// Whether an advisory that is on this machine calls a version malicious. Then all of which that is said are no candidates any more.
fn is_malicious(
    session: &Session,
    source: &PackageId,
    candidate: Candidate<'_>,
) -> Result<bool, CommandError> {
    let failed = |error| unavailable_error(session, error);
    if !session.advisories.has_any_feed() {
        return Ok(false);
    }
    let (index, feeds) = (session.index(), session.advisories.kept_feeds()?);
    let (route, release) = index.release(source, candidate).map_err(failed)?;
    let releases = match candidate {
        Candidate::Release(_) => Some(index.published(source).map_err(failed)?),
        Candidate::Revision(_) => None,
    };
    let version = match (candidate, &releases) {
        (Candidate::Release(position), Some(releases)) => Some(releases.version(position)),
        (Candidate::Revision(untagged), _) => untagged.version.clone(),
        _ => None,
    };
    let place = PackagePlace::of_candidate(source, version.as_ref(), (&route, &release));
    let package = place.advised();
    let Some(why) = malicious(session, feeds, &package)? else { return Ok(false) };
    let (Candidate::Release(position), Some(releases)) = (candidate, releases) else {
        // What was asked for by its commit or its digest has no other one.
        let text = format!("`{}` at {} is malicious: {why}", source, release.version);
        return Err(CommandError::new(Code::Untrusted, text));
    };
    let version = releases.version(position).to_string();
    index.refuse(source, position, &why).map_err(failed)?;
    session.events.warning(&Warning::PassedOver { source: source.clone(), version, why });
    // There may be many, and each round of selection would find one of them.
    for position in (0..releases.len()).filter(|other| *other != position) {
        let version = releases.version(position);
        let text = version.to_string();
        let other = package.clone().in_version(Some(version), &[&text]);
        if let Some(why) = malicious(session, feeds, &other)? {
            index.refuse(source, position, &why).map_err(failed)?;
        }
    }
    Ok(true)
}

/// Which advisory calls a package malicious, unless the settings ignore it.
fn malicious(
    session: &Session,
    feeds: &Feeds,
    package: &AdvisedPackage,
) -> Result<Option<String>, CommandError> {
    let Some(found) = feeds.first_malicious(package)? else { return Ok(None) };
    let is_called = |id: &str| found.advisory.is_called(id);
    Ok(match ignored(&session.advisories, &is_called, Some(&found)) {
        Ignored::Until(_) => None,
        _ => Some(found.as_sentence()),
    })
}

/// Refuses a lock with a package that an advisory on this machine calls malicious; nobody is asked.
pub(crate) fn refuse_malicious(session: &Session, lock: &Lockfile) -> Result<(), CommandError> {
    // A lock is no proof that nobody has found out anything since. It is not moved by itself: what is in it was somebody's decision.
    if !session.advisories.has_any_feed() {
        return Ok(());
    }
    let feeds = session.advisories.kept_feeds()?;
    for package in lock.packages.iter().filter(|package| !package.source.is_authored_folder()) {
        let advised =
            PackagePlace::of_locked_content(session.index().providers(), package).advised();
        if let Some(why) = malicious(session, feeds, &advised)? {
            let (id, version) = (&package.id, &package.version);
            let text = format!("`{id}` {version}, which Mu.lock names, is malicious: {why}");
            let name = quoted_for_shell(&session.short_name(id));
            return Err(CommandError::new(Code::Untrusted, text)
                .hint(format!("`mu update {name}` moves to a version of which nobody says that"))
                .with_details(serde_json::json!({ "id": id.to_string(), "versions": [version] })));
        }
    }
    Ok(())
}

/// The error of a version about which the rules cannot be asked.
pub(crate) fn not_judged(
    session: &Session,
    id: &PackageId,
    rule: &str,
    error: TrustError,
) -> CommandError {
    // "Offline" is about what this machine lacks, and running once with the network helps. All else may be about the network itself,
    // the password, or the registry: their own hints fit better.
    let is_offline =
        matches!(&error, TrustError::Provider(error) if error.kind() == ErrorKind::Offline);
    let is_of_settings = matches!(error, TrustError::Signer { .. } | TrustError::Root { .. });
    let error = CommandError::from(error);
    if is_of_settings {
        return error;
    }
    let name = session.short_name(id);
    let error = with_requirer(session, id, error);
    let error =
        error.while_doing(format!("cannot find out who signed `{name}`, which a {rule} asks for"));
    match is_offline && error.code == Code::Offline {
        true => error.hint("run the command once without `--offline`; what was verified is kept"),
        false => error,
    }
}

/// Warnings about versions that are passed over, for packages that are used in another one.
pub(crate) fn passed_over_versions(session: &Session, selection: &Selection) -> Vec<Warning> {
    if session.trust.is_empty() {
        return Vec::new();
    }
    // One line a package is enough: the first version that was looked at is the newest, and the one that people miss.
    let told = selection.packages.iter().filter_map(|chosen| {
        let refused = session.trust.refused_versions(chosen.source());
        let others = refused.len().saturating_sub(1);
        let (first, version) = (refused.into_iter().next()?, chosen.version.clone()?);
        let source = chosen.source().clone();
        Some(Warning::RefusedNewer { source, version, first, others })
    });
    told.collect()
}
