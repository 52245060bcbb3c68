//! What a reference of the command line means, for questions about packages that need not be installed: the package that it names in its
//! registry, the one version, and what the rules of the settings say of that.

use std::sync::Arc;

use mu_provider::Release;
use schemars::JsonSchema;
use serde::Serialize;

use crate::index::releases::{Position, Releases};
use crate::index::{Candidate, Revision, Route, Unavailable, Universe as _};
use crate::ops::apply::element::find_element_package;
use crate::ops::apply::fetch::store_release;
use crate::ops::explain::places;
use crate::ops::explain::{self, unavailable_error, unserved};
use crate::ops::lookup::filter::VersionFilter;
use crate::ops::lookup::listing::{Here, Listing};
use crate::ops::requirements::Requirements;
use crate::ops::requirements::names::package_here;
use crate::ops::session::disk::local_folder;
use crate::ops::session::events::Work;
use crate::ops::session::places::folder_for_people;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::store::Stored;
use crate::trust::{self, Judgement};
use crate::workspace::trust::{Continuity, RuleAsks, RuleInForce, TrustRule};

/// The newest version that is accepted: preferably not a prerelease, and a withdrawn one only if all are. For
/// a repository without version tags, the tip of its default branch.
pub(super) fn choose(
    listing: &Listing<'_>,
    wanted: Option<&VersionSpec>,
) -> Result<Revision, CommandError> {
    let Listing { session, id, releases, .. } = listing;
    let filter = VersionFilter::default();
    if wanted.is_none()
        && let Some(newest) = filter.read()?.newest(releases)
    {
        return Ok(Revision::Release(newest));
    }
    // Here a withdrawn version may be shown, unlike in selection: who asks for `#^1` of which all are withdrawn wants
    // to know of it.
    let accepted = (0..releases.len())
        .filter(|&position| wanted.is_none_or(|wanted| listing.is_named(position, wanted)));
    let standing = |position: Position| {
        let details = releases.details(position);
        details.is_none_or(|details| details.yanked.is_none())
    };
    let first = releases.default_channel();
    let best = accepted.max_by_key(|&position| {
        (standing(position), releases.preference(position, first), position)
    });
    if let Some(position) = best {
        return Ok(Revision::Release(position));
    }
    // No version is meant. Where there are commits and branches, the name may be one of these; elsewhere a tag that is no version, or a
    // digest.
    let name = wanted.unwrap_or(&VersionSpec::Tip);
    let name = if *name == VersionSpec::Latest { &VersionSpec::Tip } else { name };
    let is_name = match name {
        VersionSpec::Tag(_) | VersionSpec::Digest(_) => true,
        VersionSpec::Tip | VersionSpec::Commit(_) => releases.has_revisions(),
        other => releases.has_revisions() && other.as_tag().is_some(),
    };
    if is_name {
        let found = session.index().revision(releases, name);
        if let Some(revision) = found.map_err(|error| unavailable_error(session, error))? {
            return Ok(revision);
        }
    }
    Err(missing(session, id, releases, wanted))
}

/// What the index is asked about a version.
pub(super) fn candidate_of(chosen: &Revision) -> Candidate<'_> {
    match chosen {
        Revision::Release(position) => Candidate::Release(*position),
        Revision::Untagged(untagged) => Candidate::Revision(untagged),
    }
}

/// The version that `text` names in its registry, brought into the store.
pub(super) fn fetched(
    session: &Session,
    text: &str,
) -> Result<(PackageId, Arc<Release>, Stored), CommandError> {
    let PublishedPackage { reference, id, releases } = published(session, text)?;
    let listing = Listing { session, id: &id, releases: &releases, here: Here::default() };
    let chosen = choose(&listing, reference.version())?;
    let found = session.index().release(&id, candidate_of(&chosen));
    let (route, release) = found.map_err(|error| unavailable_error(session, error))?;
    let stored = store_release(session, &id, &route, &release)?;
    Ok((id, release, stored))
}

/// The error about a package without any requested version.
fn missing(
    session: &Session,
    id: &PackageId,
    releases: &Releases,
    wanted: Option<&VersionSpec>,
) -> CommandError {
    let message = match wanted {
        Some(wanted) if !releases.is_empty() => format!("`{id}` has no version {wanted}"),
        _ => format!("`{id}` has no versions"),
    };
    let error = CommandError::new(Code::NotFound, message);
    let has_others = session.index().left_out(id).is_ok_and(|left_out| !left_out.is_empty());
    match releases.is_empty() && !has_others {
        true => error,
        false if releases.is_empty() => error.hint(format!(
            "`mu versions {}` says which entries of its registry are not versions",
            session.short_name(id)
        )),
        false => error.hint(format!("`mu versions {}` lists its versions", session.short_name(id))),
    }
}

/// A package, and its versions in its registry.
pub(super) struct PublishedPackage {
    pub(super) reference: Reference,
    pub(super) id: PackageId,
    pub(super) releases: Arc<Releases>,
}

/// Asks the registry of the package that `text` names, directly or by one of its elements.
pub(super) fn published(session: &Session, text: &str) -> Result<PublishedPackage, CommandError> {
    let mut notes = Vec::new();
    // What a word means here comes first (the lock, the manifest around the current folder), then what the registry has
    // by that name.
    let reference = package_here(session, Reference::parse(text)?)?;
    if reference.protocol().is_none() && reference.local().is_none() {
        declare_as_here(session, &session.id_of_argument(&reference))?;
    }
    let reference = match reference.local() {
        Some(folder) => {
            local_folder(session, folder)?;
            reference
        }
        None => find_element_package(session, None, &reference, &mut notes)?,
    };
    let id = session.id_of_argument(&reference);
    let index = session.index();
    index.declare(&id, &reference, &session.environment.current);
    let releases = index.published(&id).map_err(|error| unavailable_error(session, error))?;
    match releases.tried() {
        None => Ok(PublishedPackage { reference, id, releases }),
        Some(tried) => {
            let error = absent(session, &id, tried);
            Err(notes.into_iter().fold(error, CommandError::hint))
        }
    }
}

/// Tells the index how this workspace reaches a package: a manifest may say more about that than its id.
fn declare_as_here(session: &Session, id: &PackageId) -> Result<(), CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    for asked in requirements.asked.iter().filter(|asked| asked.requirement.id == *id) {
        session.index().declare(id, &asked.reference.with_version(None), &asked.from);
    }
    Ok(())
}

/// The error about a package that its registry does not have.
fn absent(session: &Session, id: &PackageId, tried: &[String]) -> CommandError {
    let mut message = format!("there is no package `{id}`");
    for place in tried {
        message.push_str(&format!("\n  looked at {place}"));
    }
    let mut error = CommandError::new(Code::NotFound, message)
        .with_details(serde_json::json!({ "id": id.to_string(), "tried": tried }));
    if let Some(member) = session.places.member_of(id) {
        let place = folder_for_people(&member.place);
        error = error.hint(format!("the workspace has it in `{place}`; it is not published"));
    }
    let similar = session.index().similar(id);
    let similar = similar.into_iter().map(|other| format!("did you mean `{other}`?"));
    let hints = places::report_installed(session, id).into_iter();
    let hints = hints.chain(places::stripped(session, id)).chain(similar);
    let hints = hints.chain(unserved::no_place(session, id));
    hints.fold(error, CommandError::hint).hint(explain::absent(session, id))
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownRule {
    /// Which packages it speaks of, as it is written.
    pub pattern: String,
    /// The file that has it.
    pub file: String,
    /// Who must have signed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signed_by: Vec<String>,
    /// How many of these must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub need: Option<usize>,
    /// Why the packages are never used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse: Option<String>,
    /// What happens if none of those who signed the locked version has signed a new one: `warn` or `refuse`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuity: Option<String>,
}

impl ShownRule {
    pub(super) fn new(rule: &RuleInForce<'_>) -> Self {
        Self::of(rule.rule, rule.file())
    }

    pub(super) fn of(rule: &TrustRule, file: &str) -> Self {
        let (signed_by, need, refuse) = match &rule.asks {
            RuleAsks::Nothing => (Vec::new(), None, None),
            RuleAsks::SignedBy { signers, need } => (signers.clone(), Some(*need), None),
            RuleAsks::Refuse(why) => (Vec::new(), None, Some(why.clone())),
        };
        let need = need.filter(|need| *need > 1);
        let continuity = Some(rule.continuity).filter(|level| *level != Continuity::Off);
        let continuity = continuity.map(|level| level.as_str().to_owned());
        let (pattern, file) = (rule.pattern.clone(), file.to_owned());
        Self { pattern, file, signed_by, need, refuse, continuity }
    }
}

/// What the rules say of a version that is only shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownVerdict {
    /// The rule; of several, the one that does not accept it.
    pub rule: ShownRule,
    /// Whether all rules accept it.
    pub accepted: bool,
    /// Who signed it, of those whom the rules name.
    pub signed_by: Vec<String>,
    /// Why it is not accepted, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What the rules say of a version; `None` if none speaks of it, and then nobody is asked.
pub(super) fn verdict_of(
    session: &Session,
    id: &PackageId,
    candidate: Candidate<'_>,
    version: Option<Version>,
) -> Result<Option<ShownVerdict>, CommandError> {
    let failed = |error| unavailable_error(session, error);
    let stood_for = session.workspace.settings.stood_for(id, id);
    if session.trust.rules().in_force(id, &stood_for).is_empty() {
        return Ok(None);
    }
    // From here on there is a request, which only a rule is worth.
    let (route, release) = confirmed(session, id, candidate).map_err(failed)?;
    let rules = session.trust.rules_about(&route, id, &stood_for);
    let (source, route, release) = (id, &*route, &*release);
    let lock = session.lockfile()?.unwrap_or_default();
    let before = trust::SignedBefore::of_locked(&lock, id, version.as_ref());
    let asked = trust::RuledVersion {
        source,
        stood_for: stood_for.clone(),
        version,
        route,
        release,
        before,
    };
    let progress = Work::begin(&session.events, id.to_string());
    let judgement = session.trust.judge(&asked, &session.store, &progress)?;
    progress.warn_of_evidence(&session.trust);
    // Several rules may speak of it: the one that does not accept it is the one to change.
    let deciding = deciding(&rules, &judgement);
    let (signed_by, why) = match judgement {
        Judgement::Free => (Vec::new(), None),
        Judgement::Accepted(accepted) => (accepted.signed_by, None),
        Judgement::Refused(refused) => (Vec::new(), Some(refused.why)),
    };
    Ok(deciding.map(|rule| ShownVerdict { rule, accepted: why.is_none(), signed_by, why }))
}

/// The rule to show: the one that does not accept a version, or else the first.
pub(super) fn deciding(rules: &[RuleInForce<'_>], judgement: &Judgement) -> Option<ShownRule> {
    let decides = |rule: &&RuleInForce<'_>| match judgement {
        Judgement::Refused(refused) => trust::rule_in_words(rule) == refused.rule,
        _ => true,
    };
    rules.iter().find(decides).map(ShownRule::new)
}

/// A version as its place itself has it.
pub(super) fn confirmed(
    session: &Session,
    id: &PackageId,
    candidate: Candidate<'_>,
) -> Result<(Arc<Route>, Arc<Release>), Unavailable> {
    if let Candidate::Release(position) = candidate {
        session.index().confirm(id, position)?;
    }
    session.index().release(id, candidate)
}
