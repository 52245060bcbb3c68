//! What evidence is worth for a version, by all rules that speak of it: who signed what its tag led to, and whether that leads to its
//! archive.
//!
//! A single piece is verified by `mu-trust`. Which rules there are, and what was found out before, is known in `mod.rs`.

use mu_provider::{FileDigest, FoundEvidence, FoundPiece, Release};
use mu_trust::{Evidence, MOST_MANIFESTS, Refusal, Roots, Signer, Subject, Verdict, verify};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{KeptVerdict, Refused, rule_in_words};
use crate::workspace::trust::RuleInForce;

/// What a rule asks of a version.
pub(super) struct RuleDemand<'r> {
    pub(super) rule: &'r RuleInForce<'r>,
    pub(super) needs: Needs,
    pub(super) signers: Vec<Signer>,
    pub(super) roots: Roots,
}

/// What there must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Signatures by so many identities of the signers.
    Signatures(usize),
    /// Nothing but that what the tag led to, which is accepted as it is, leads to the archive.
    Archive,
    /// Nothing: who has signed is compared with who signed before, whoever that is.
    Comparison,
}

/// What the evidence is worth for what a rule asks.
pub(super) fn weigh(
    found: &FoundEvidence,
    release: &Release,
    demand: &RuleDemand<'_>,
) -> Result<KeptVerdict, Refused> {
    let RuleDemand { rule, needs, signers, roots } = demand;
    let refused = |why: String| Err(Refused { why, rule: rule_in_words(rule) });
    let archive = release.archive.as_deref();
    // A signature over what the tag led to says nothing of an archive that this does not lead to.
    let ways: Vec<Way<'_>> = found.pieces.iter().map(|piece| Way::of(found, Some(piece))).collect();
    if *needs == Needs::Archive {
        return match allowed_leads(found, &ways, release) {
            Ok(()) => Ok(KeptVerdict::default()),
            Err(why) => refused(why),
        };
    }
    let verdicts: Vec<Result<Verdict, String>> = (found.pieces.iter())
        .map(|piece| verdict_on(found, piece, archive, signers, roots))
        .collect();
    let (mut weighed, mut elsewhere) = (KeptVerdict::default(), None);
    for ((piece, verdict), way) in found.pieces.iter().zip(&verdicts).zip(&ways) {
        let identities: Vec<(String, Option<i64>)> = match (verdict, needs) {
            (Err(_), _) | (_, Needs::Archive) => Vec::new(),
            (Ok(verdict), Needs::Signatures(_)) => {
                let accepted = verdict.accepted.iter();
                accepted.map(|one| (one.identity.to_string(), one.time)).collect()
            }
            (Ok(verdict), Needs::Comparison) => verdict
                .signed
                .iter()
                .filter_map(|one| Some((one.verified()?.to_string(), one.time)))
                .collect(),
        };
        if piece.archive.is_none()
            && !identities.is_empty()
            && let Err(why) = way.leads_to(release)
        {
            elsewhere.get_or_insert(why);
            continue;
        }
        for (identity, time) in identities {
            weighed.signed_by.insert(identity);
            // Whoever signs once more, later, makes nothing younger.
            weighed.time = [weighed.time, time].into_iter().flatten().min();
        }
    }
    let (number, least) = match needs {
        Needs::Signatures(need) => (weighed.signed_by.len(), *need),
        Needs::Archive | Needs::Comparison => (0, 0),
    };
    match elsewhere {
        Some(why) if number < least => refused(why),
        Some(why) if weighed.signed_by.is_empty() => {
            Ok(KeptVerdict { unsigned: Some(why), ..weighed })
        }
        _ if number < least => refused(why_refused(found, &verdicts, number, least)),
        _ if *needs == Needs::Comparison && weighed.signed_by.is_empty() => {
            let why = why_refused(found, &verdicts, 0, 1);
            Ok(KeptVerdict { unsigned: Some(why), ..weighed })
        }
        _ => Ok(weighed),
    }
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
    let way = Way::of(found, Some(piece));
    let digest = if file.is_some() { archive } else { Some(&*way.subject) };
    let digest = digest.unwrap_or_default();
    let Some(sha256) = bytes_of(digest) else {
        let why = match digest {
            "" => "nothing but the statement itself says which archive it is".to_owned(),
            other => format!("`{other}` is not a SHA-256 digest"),
        };
        let refusal = Some(Refusal::OtherSubject { why });
        return Ok(Verdict { accepted: Vec::new(), signed: Vec::new(), refusal });
    };
    let manifest = way.manifests.first().filter(|_| file.is_none());
    let bytes = manifest.or(found.content.as_ref()).map(Vec::as_slice);
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
    verdicts: &[Result<Verdict, String>],
    accepted: usize,
    need: usize,
) -> String {
    if accepted > 0 {
        return format!("signed by {accepted} of those that the rule names, and {need} must have");
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

/// What leads from a subject to the archive.
struct Way<'f> {
    subject: String,
    manifests: &'f [Vec<u8>],
}

/// The digest of a manifest.
fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", FileDigest::from_bytes(Sha256::digest(bytes).into()))
}

impl<'f> Way<'f> {
    /// The way of a piece of evidence: its own, if it brings the manifests itself, or else that of its place.
    fn of(found: &'f FoundEvidence, piece: Option<&'f FoundPiece>) -> Self {
        match piece.filter(|piece| !piece.manifests.is_empty()) {
            Some(FoundPiece { manifests, .. }) => Self {
                subject: manifests.first().map(|first| digest_of(first)).unwrap_or_default(),
                manifests,
            },
            None => Self { subject: found.subject.clone(), manifests: &found.manifests },
        }
    }

    /// Checks that the subject leads to the archive: each manifest has the digest that the one before names, and the last one names the
    /// archive among its layers.
    fn leads_to(&self, release: &Release) -> Result<(), String> {
        let Self { subject, manifests } = self;
        // A commit names all of its files itself.
        if let Some(commit) = release.commit.as_deref()
            && commit == subject
        {
            return Ok(());
        }
        let Some(archive) = release.archive.as_deref() else {
            return Err("nothing says which archive it is".to_owned());
        };
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
            let digest = digest_of(bytes);
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
            false => {
                Err(format!("what is signed, {subject}, does not have its archive, {archive}"))
            }
        }
    }
}

/// Checks that something here leads from the manifest that is allowed to the archive.
fn allowed_leads(found: &FoundEvidence, ways: &[Way<'_>], release: &Release) -> Result<(), String> {
    let manifest = release.manifest.as_deref().unwrap_or_default();
    let place = Way::of(found, None);
    let mut all = ways.iter().chain([&place]).filter(|way| way.subject == manifest);
    let first = all.next().map(|way| way.leads_to(release));
    match first {
        Some(Err(why)) => all.find_map(|way| way.leads_to(release).ok()).ok_or(why),
        Some(Ok(())) => Ok(()),
        None => Err(format!("nothing here leads from {manifest} to its archive")),
    }
}
