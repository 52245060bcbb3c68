//! What evidence is worth for a version, by all rules that speak of it: who signed what its tag led to, and whether that leads to its
//! archive.
//!
//! A single piece is verified by `mu-trust`. Which rules there are, and what was found out before, is known in `mod.rs`.

use std::collections::BTreeSet;

use mu_provider::{FileDigest, FoundEvidence, FoundPiece, Release};
use mu_trust::{Evidence, MOST_MANIFESTS, Refusal, Roots, Signer, Subject, Verdict, verify};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Judgement, Refused, rule_in_words};
use crate::workspace::trust::RuleInForce;

/// What a rule asks of a version.
pub(super) struct RuleDemand<'r> {
    pub(super) rule: &'r RuleInForce<'r>,
    pub(super) need: usize,
    pub(super) signers: Vec<Signer>,
    pub(super) roots: Roots,
}

/// What the evidence is worth by all rules.
pub(super) fn weigh(
    found: &FoundEvidence,
    release: &Release,
    demands: &[RuleDemand<'_>],
) -> Judgement {
    let refused = |demand: &RuleDemand<'_>, why: String| {
        Judgement::Refused(Refused { why, rule: rule_in_words(demand.rule) })
    };
    let archive = release.archive.as_deref();
    // A signature over what the tag led to says nothing of an archive that this does not lead to.
    let leads = leads_to(found, release);
    let mut signed_by = BTreeSet::new();
    for demand in demands {
        let verdicts: Vec<Result<Verdict, String>> = (found.pieces.iter())
            .map(|piece| verdict_on(found, piece, archive, &demand.signers, &demand.roots))
            .collect();
        let (mut accepted, mut leads_elsewhere) = (BTreeSet::new(), demand.need == 0);
        for (piece, verdict) in found.pieces.iter().zip(&verdicts) {
            let identities = verdict.iter().flat_map(|verdict| &verdict.accepted);
            let identities = identities.map(|one| one.identity.to_string());
            match piece.archive.is_some() || leads.is_ok() {
                true => accepted.extend(identities),
                false => leads_elsewhere |= identities.count() > 0,
            }
        }
        match &leads {
            Err(why) if leads_elsewhere && accepted.len() < demand.need.max(1) => {
                return refused(demand, why.clone());
            }
            _ if accepted.len() < demand.need => {
                return refused(demand, why_refused(found, demand, &verdicts, accepted.len()));
            }
            _ => signed_by.extend(accepted),
        }
    }
    Judgement::Accepted(signed_by.into_iter().collect())
}

/// What a piece is worth; the error says why it cannot be read.
pub(super) fn verdict_on(
    found: &FoundEvidence,
    piece: &FoundPiece,
    archive: Option<&str>,
    signers: &[Signer],
    roots: &Roots,
) -> Result<Verdict, String> {
    let evidence = piece.evidence.as_ref().map_err(Clone::clone)?;
    if matches!(evidence, Evidence::Git { .. }) {
        let subject = Subject::Commit { id: &found.subject, tag: found.tag.as_deref() };
        return Ok(verify(evidence, &subject, signers, roots));
    }
    let file = piece.archive.as_deref();
    let digest = if file.is_some() { archive } else { Some(&*found.subject) };
    let digest = digest.unwrap_or_default();
    let Some(sha256) = bytes_of(digest) else {
        let why = match digest {
            "" => "nothing but the statement itself says which archive it is".to_owned(),
            other => format!("`{other}` is not a SHA-256 digest"),
        };
        let refusal = Some(Refusal::OtherSubject { why });
        return Ok(Verdict { accepted: Vec::new(), signed: Vec::new(), refusal });
    };
    let bytes = found.manifests.first().map(Vec::as_slice).filter(|_| file.is_none());
    Ok(verify(evidence, &Subject::Content { sha256, bytes, file }, signers, roots))
}

/// The bytes of a digest, `sha256:HEX`.
fn bytes_of(digest: &str) -> Option<[u8; 32]> {
    let hex = digest.strip_prefix("sha256:").filter(|hex| hex.len() == 64 && hex.is_ascii())?;
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Why a rule does not accept what was found, in the words of the piece that came nearest.
fn why_refused(
    found: &FoundEvidence,
    demand: &RuleDemand<'_>,
    verdicts: &[Result<Verdict, String>],
    accepted: usize,
) -> String {
    if accepted > 0 {
        return format!(
            "signed by {accepted} of those that the rule names, and {} must have",
            demand.need
        );
    }
    let refusals = verdicts.iter().flatten().filter_map(|verdict| verdict.refusal.as_ref());
    let nearness = |refusal: &&Refusal| match refusal {
        Refusal::SomeoneElse { .. } => 0,
        Refusal::DoesNotVerify { .. } | Refusal::OtherSubject { .. } => 1,
        Refusal::RootDoesNotKnow { .. } => 2,
        Refusal::NoneOfThese { .. } => 3,
        _ => 4,
    };
    match (refusals.min_by_key(nearness), verdicts.iter().find_map(|one| one.as_ref().err())) {
        (Some(refusal @ Refusal::NoneOfThese { .. }), _) => {
            let (number, s) = (verdicts.len(), if verdicts.len() == 1 { "" } else { "s" });
            format!("{refusal}; {number} signature{s} looked at")
        }
        (Some(refusal), _) => refusal.to_string(),
        (None, Some(unreadable)) => format!("no signature that can be read: {unreadable}"),
        (None, None) if found.looked_at.is_empty() => {
            "no signature: mu knows of none where it comes from".to_owned()
        }
        (None, None) => format!("no signature (looked at {})", found.looked_at.join(" and ")),
    }
}

/// What leads from one manifest to the next, and to the archive.
#[derive(Debug, Default, Deserialize)]
struct Leads {
    #[serde(default)]
    manifests: Vec<Lead>,
    #[serde(default)]
    layers: Vec<Lead>,
}

#[derive(Debug, Deserialize)]
struct Lead {
    digest: String,
}

/// Checks that the subject leads to the archive: each manifest has the digest that the one before names, and the last one names the
/// archive among its layers.
fn leads_to(found: &FoundEvidence, release: &Release) -> Result<(), String> {
    // A commit names all of its files itself.
    if let Some(commit) = release.commit.as_deref()
        && commit == found.subject
    {
        return Ok(());
    }
    let Some(archive) = release.archive.as_deref() else {
        return Err("nothing says which archive it is".to_owned());
    };
    let FoundEvidence { subject, manifests, .. } = found;
    // A chart in a repository is its archive, and so is an image that a catalog names.
    if subject == archive {
        return Ok(());
    }
    if manifests.is_empty() {
        return Err(format!("what is signed, {subject}, is not its archive, {archive}"));
    }
    if manifests.len() > MOST_MANIFESTS {
        return Err(format!("more than {MOST_MANIFESTS} manifests lead to its archive"));
    }
    let mut named = vec![subject.clone()];
    for (at, bytes) in manifests.iter().enumerate() {
        let digest = format!("sha256:{}", FileDigest::from_bytes(Sha256::digest(bytes).into()));
        if !named.contains(&digest) {
            return Err(format!("what is signed, {subject}, does not lead to {digest}"));
        }
        let leads: Leads = serde_json::from_slice(bytes)
            .map_err(|error| format!("the manifest {digest} cannot be read: {error}"))?;
        let is_last = at + 1 == manifests.len();
        let next = if is_last { leads.layers } else { leads.manifests };
        named = next.into_iter().map(|lead| lead.digest).collect();
    }
    match named.iter().any(|digest| digest == archive) {
        true => Ok(()),
        false => Err(format!("what is signed, {subject}, does not have its archive, {archive}")),
    }
}
