//! What evidence is worth for a version, by all rules that speak of it: whom they name, who signed what its tag led to, whether
//! that leads to its archive, and who signed what is locked, for rules that compare it with who signed a new version.
//!
//! A single piece is verified by `mu-trust`. Which rules there are, and what was found out before, is known in `mod.rs`. Of the
//! signers and roots that settings name, only the files that a rule needs are read, once a run.
//!
//! A lock is no proof: where a rule refuses others, what it claims is proven first.

use std::collections::BTreeSet;

use mu_provider::threads::lock;
use mu_provider::{FileDigest, Folder, FoundEvidence, FoundPiece, NamedBy, Progress, Release};
use mu_trust::{
    Evidence, MOST_KEY_BYTES, MOST_MANIFESTS, Refusal, Roots, Signer, Subject, Verdict,
    text_of_keys, verify,
};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::here::EvidenceQuestion;
use super::{
    Accepted, KeptVerdict, Objection, Refused, RuledVersion, TrustError, TrustInForce,
    rule_in_words,
};
use crate::fs;
use crate::lock::{LockedPackage, Lockfile};
use crate::reference::{PackageId, Version};
use crate::workspace::trust::{
    Continuity, RootSetting, RuleInForce, SignerSetting, SignerText, TrustFile, settings_file,
};

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

/// Who signed what is locked, which rules about continuity compare.
#[derive(Debug, Clone, Default)]
pub struct SignedBefore {
    /// The identities that are believed as the lock has them; none at first sight.
    pub signed_by: Vec<String>,
    /// Whether the version is the locked one itself. A lock is no proof, so where a rule refuses others, one of them must have signed it.
    pub is_of_this: bool,
    /// The locked versions of which that is to be proven where a rule refuses others.
    pub claims: Vec<LockedClaim>,
}

/// A locked version, and who signed it as its entry says.
#[derive(Debug, Clone)]
pub struct LockedClaim {
    /// What is known of it, with the digests of the lock.
    pub release: Release,
    /// The identities that its entry names.
    pub signed_by: Vec<String>,
}

impl SignedBefore {
    /// Who signed the versions of a package that a lock names; of which one may be `version`.
    pub fn of_locked(lock: &Lockfile, id: &PackageId, version: Option<&Version>) -> Self {
        let is_it = |package: &LockedPackage| package.parsed_version().as_ref() == version;
        let is_of_this = version.is_some() && lock.find(id).any(is_it);
        let locked = lock.find(id).filter(|package| !is_of_this || is_it(package));
        let signed_by = locked.flat_map(|package| package.signed_by.iter().cloned()).collect();
        Self { signed_by, is_of_this, claims: Vec::new() }
    }
}

impl TrustInForce {
    /// Who signed before, as far as a rule believes it; an error if nobody whom the lock names signed what is locked. Otherwise an edit of
    /// the lock would let in whoever signed the next version.
    pub(super) fn signers_before(
        &self,
        candidate: &RuledVersion<'_>,
        demand: &RuleDemand<'_>,
        progress: &dyn Progress,
    ) -> Result<Result<Vec<String>, Refused>, TrustError> {
        let SignedBefore { signed_by, claims, .. } = &candidate.before;
        let mut before = signed_by.clone();
        let compared = claims.iter().filter(|_| demand.needs == Needs::Comparison);
        for LockedClaim { release, signed_by } in compared {
            if demand.rule.rule.continuity != Continuity::Refuse {
                before.extend(signed_by.iter().cloned());
                continue;
            }
            let version = Version::parse_lenient(&release.version).ok();
            let locked = RuledVersion { release, version, ..candidate.clone() };
            let mut question = EvidenceQuestion::new(&locked, false, progress);
            let verdict = match self.answer_question(&mut question, demand, signed_by)? {
                Ok(verdict) => verdict,
                Err(refused) => return Ok(Err(refused)),
            };
            let known = before.len();
            let is_proven = |identity: &&String| verdict.signed_by.contains(*identity);
            before.extend(signed_by.iter().filter(is_proven).cloned());
            if before.len() == known {
                let (version, claimed) = (&release.version, in_words(signed_by));
                let found = verdict.who_signed();
                let why = format!(
                    "Mu.lock says that {version} is signed by {claimed}, and it is not: {found}"
                );
                return Ok(Err(Refused { why, rule: rule_in_words(demand.rule) }));
            }
        }
        Ok(Ok(before))
    }
}

impl Accepted {
    /// Adds what came of one rule; an error if that compares signers, and refuses others than those of before.
    pub(super) fn add(
        &mut self,
        verdict: KeptVerdict,
        demand: &RuleDemand<'_>,
        candidate: &RuledVersion<'_>,
        before: &[String],
    ) -> Result<(), Refused> {
        let is_other = demand.needs == Needs::Comparison
            && !before.is_empty()
            && !before.iter().any(|identity| verdict.signed_by.contains(identity));
        if is_other {
            let (signed, before) = (verdict.who_signed(), in_words(before));
            let why = format!("{signed}; the locked one is signed by {before}");
            let refused = Refused { why, rule: rule_in_words(demand.rule) };
            if demand.rule.rule.continuity == Continuity::Refuse {
                return Err(refused);
            }
            let (source, version) = (candidate.source.clone(), candidate.release.version.clone());
            self.objections.push(Objection { source, version, refused });
        }
        let signed_by = verdict.signed_by.into_iter().chain(std::mem::take(&mut self.signed_by));
        self.signed_by = signed_by.collect::<BTreeSet<_>>().into_iter().collect();
        // Of several rules the latest time: none may make it older for another one.
        self.time = self.time.max(verdict.time);
        Ok(())
    }
}

impl KeptVerdict {
    /// Who signed, or why nobody did, for a message.
    fn who_signed(&self) -> String {
        match &self.unsigned {
            Some(why) => why.clone(),
            None => format!("signed by {}", in_words(&self.signed_by)),
        }
    }
}

/// Identities in a message.
fn in_words<'i>(identities: impl IntoIterator<Item = &'i String>) -> String {
    identities.into_iter().cloned().collect::<Vec<_>>().join(", ")
}

/// The largest file of a root, in bytes.
const LARGEST_ROOT: usize = 1 << 20;

impl TrustInForce {
    /// A signer of the settings, with the keys that it names.
    pub fn signer_of(
        &self,
        named_by: NamedBy,
        name: &str,
        setting: &SignerSetting,
    ) -> Result<Signer, TrustError> {
        // Both files may have a signer of this name.
        let key = (named_by == NamedBy::User, name.to_owned());
        if let Some(known) = lock(&self.signers).get(&key) {
            return Ok(known.clone());
        }
        let failed = |why: String| TrustError::Signer {
            name: name.to_owned(),
            file: settings_file(named_by),
            line: setting.line,
            why,
        };
        let signer = match &setting.who {
            SignerText::Keys(text) => {
                Signer::from_keys(name, text).map_err(|error| failed(error.to_string()))?
            }
            SignerText::File(file) => {
                let content = self.read(file, MOST_KEY_BYTES).map_err(&failed)?;
                let signer = text_of_keys(&content).and_then(|text| Signer::from_keys(name, text));
                signer.map_err(|error| failed(format!("`{file}`: {error}")))?
            }
            SignerText::Github(github) => {
                Signer::github(name, github.clone()).map_err(|error| failed(error.to_string()))?
            }
            SignerText::Oidc(oidc) => {
                Signer::oidc(name, oidc.clone()).map_err(|error| failed(error.to_string()))?
            }
        };
        lock(&self.signers).insert(key, signer.clone());
        Ok(signer)
    }

    /// The roots that settings name; those that come with mu, if they name none.
    pub fn roots(&self, settings: &[&RootSetting]) -> Result<Roots, TrustError> {
        if settings.is_empty() {
            return Ok(Roots::sigstore());
        }
        let mut roots = Roots::none();
        for setting in settings {
            match setting {
                RootSetting::Sigstore => roots.add_sigstore(),
                RootSetting::File(file) => {
                    let failed = |why| TrustError::Root { name: file.to_string(), why };
                    let content = self.read(file, LARGEST_ROOT).map_err(failed)?;
                    let added = roots.add(&file.to_string(), &content);
                    added.map_err(|error| failed(error.why))?;
                }
            }
        }
        Ok(roots)
    }

    pub(super) fn signers_of(
        &self,
        rule: &RuleInForce<'_>,
        names: &[String],
    ) -> Result<Vec<Signer>, TrustError> {
        // Reading the settings has refused a name that nobody has.
        let settings = names.iter().filter_map(|name| Some((name, rule.signer_named(name)?)));
        settings
            .map(|(name, (named_by, setting))| self.signer_of(named_by, name, setting))
            .collect()
    }

    /// The content of a file that the settings name.
    fn read(&self, file: &TrustFile, most: usize) -> Result<Vec<u8>, String> {
        let content = match file {
            TrustFile::InWorkspace(path) => Folder::at(&self.root).and_then(|root| root.read(path)),
            TrustFile::OfUser(path) => fs::read_if_there(path),
        };
        match content {
            Ok(Some(content)) if content.len() <= most => Ok(content),
            Ok(Some(_)) => Err(format!("`{file}` has more than {most} bytes")),
            Ok(None) => Err(format!("there is no file `{file}`")),
            Err(error) => Err(mu_provider::with_causes(&error)),
        }
    }
}
