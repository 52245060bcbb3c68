//! The evidence that is on this machine: in the file that `mu vendor` has written into the packs of a workspace, and what places have
//! said before, in the cache.
//!
//! A checkout may bring the first one, so it is no more than what somebody says: it is weighed like what a registry hands out, and
//! hides nothing. The packs folder itself belongs to `packs`.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use mu_provider::threads::lock;
use mu_provider::{
    ErrorKind, EvidenceAbout, Folder, FoundEvidence, InnerPath, LARGEST_EVIDENCE, NumberedLine,
    OwnPath, Progress, Release, evidence_lines,
};
use mu_trust::EvidenceLine;

use super::weigh::{Needs, RuleDemand, weigh};
use super::{Judgement, KeptVerdict, Refused, RuledVersion, TrustError, TrustInForce, hash, key};
use crate::fs;
use crate::store::Store;

/// The file beside vendored packs, as seen from the root of the workspace.
pub const VENDORED_FILE: &str = ".mu/packs/evidence.jsonl";

/// The folder of the archives of vendored packs, as seen from the root of the workspace. It is committed, other than what else mu keeps
/// for itself there.
pub const VENDORED_ARCHIVES: OwnPath = InnerPath::own(".mu/packs/.mu/archives");

/// The folder in the cache.
const FOLDER: &str = "evidence";

/// What of [`VENDORED_FILE`] cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvidenceFault {
    /// The file, and why.
    File(String),
    /// The line of this number, which names no version.
    Nameless(usize),
    /// The line of this number, and why.
    Line(usize, String),
}

/// Where evidence is on this machine.
#[derive(Debug)]
pub(super) struct EvidenceHere {
    root: PathBuf,
    folder: PathBuf,
    vendored: OnceLock<Vec<NumberedLine>>,
    /// What of it cannot be used, until somebody is told.
    faults: Mutex<Vec<EvidenceFault>>,
}

impl EvidenceHere {
    pub(super) fn new(root: PathBuf, cache: &std::path::Path) -> Self {
        let (vendored, faults) = (OnceLock::new(), Mutex::default());
        Self { root, folder: cache.join(FOLDER), vendored, faults }
    }

    /// What vouches for a version here, the vendored packs first; each only if there is something.
    pub(super) fn evidence_here(
        &self,
        candidate: &RuledVersion<'_>,
    ) -> impl Iterator<Item = FoundEvidence> {
        let kept = self.kept_evidence(candidate).map(|kept| self.with_content(kept, candidate));
        let all = [Some(self.vendored_evidence(candidate)), kept];
        all.into_iter().flatten().filter(|found| !found.pieces.is_empty())
    }

    /// Evidence with the bytes of the archive, where a signature is over them and the vendored packs have them. Otherwise that signature
    /// is worth what is missing, which only its place has.
    fn with_content(
        &self,
        mut found: FoundEvidence,
        candidate: &RuledVersion<'_>,
    ) -> FoundEvidence {
        if found.needs_content() {
            found.content = self.vendored_archive(candidate);
            if found.content.is_none() {
                found.leave_out_content();
            }
        }
        found
    }

    /// The archive of a version that the vendored packs of the workspace bring.
    fn vendored_archive(&self, candidate: &RuledVersion<'_>) -> Option<Vec<u8>> {
        let archive = candidate.release.archive.as_deref()?;
        let name = InnerPath::name(&archive.replace(':', "-")).ok()?;
        let path = InnerPath::from(VENDORED_ARCHIVES).join(&name);
        let bytes = Folder::at(&self.root).and_then(|root| root.read(&path)).ok()??;
        (format!("sha256:{}", hash(&bytes)) == archive).then_some(bytes)
    }

    /// What its place has said of a version before.
    pub(super) fn kept_evidence(&self, candidate: &RuledVersion<'_>) -> Option<FoundEvidence> {
        let text = fs::read_text_if_there(&self.file(candidate)).ok()??;
        Some(FoundEvidence::from_lines(&"the cache", evidence_lines(&text), about(candidate)))
    }

    /// All lines of the vendored packs that can be read.
    pub(super) fn readable_lines(&self) -> Vec<EvidenceLine> {
        let lines = self.vendored.get_or_init(|| self.read()).iter();
        lines.filter_map(|one| one.line.clone().ok()).collect()
    }

    /// What the vendored packs of the workspace bring about a version.
    pub(super) fn vendored_evidence(&self, candidate: &RuledVersion<'_>) -> FoundEvidence {
        let lines = self.vendored.get_or_init(|| self.read()).iter();
        let is_about = |one: &&NumberedLine| {
            let package = one.line.as_ref().ok().and_then(|line| line.package.as_ref());
            package.is_some_and(|(id, version)| {
                let own = &candidate.release.version;
                let is_version = candidate.version.as_ref().map(ToString::to_string);
                id == candidate.source.as_str()
                    && (version == own || is_version.as_ref() == Some(version))
            })
        };
        let lines = lines.filter(is_about).cloned();
        let found = FoundEvidence::from_lines(&VENDORED_FILE, lines, about(candidate));
        self.with_content(found, candidate)
    }

    /// Keeps what a place has said about a version. What cannot be kept is asked again.
    pub(super) fn keep_found(&self, candidate: &RuledVersion<'_>, found: &FoundEvidence) {
        let text = found.to_evidence_text();
        if !text.is_empty() && fs::create_private_folder(&self.folder, &[]).is_ok() {
            let _ = fs::write_atomic(&self.file(candidate), text.as_bytes());
        }
    }

    /// The file of a version in the cache: under all that says what it is, wherever it comes from.
    fn file(&self, candidate: &RuledVersion<'_>) -> PathBuf {
        let release = candidate.release;
        let or_none = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let lines = [
            or_none(release.manifest.as_deref()),
            or_none(release.archive.as_deref()),
            or_none(release.commit.as_deref()),
            or_none(release.reference.as_deref().filter(|_| release.commit.is_some())),
            release.version.clone(),
        ];
        self.folder.join(format!("{}.jsonl", hash(format!("evidence\n{}", lines.join("\n")))))
    }

    /// The lines of the vendored file. Those that cannot be read are noted.
    fn read(&self) -> Vec<NumberedLine> {
        let note = |fault| lock(&self.faults).push(fault);
        let failed = |why: String| {
            note(EvidenceFault::File(why));
            Vec::new()
        };
        let file = InnerPath::own(VENDORED_FILE).into();
        let text = match Folder::at(&self.root).and_then(|root| root.read_text(&file)) {
            Ok(Some(text)) if text.len() as u64 > LARGEST_EVIDENCE => {
                return failed(format!("it has more than {LARGEST_EVIDENCE} bytes"));
            }
            Ok(text) => text.unwrap_or_default(),
            Err(error) => return failed(mu_provider::with_causes(&error)),
        };
        let mut lines = Vec::new();
        for one in evidence_lines(&text) {
            match &one.line {
                Ok(EvidenceLine { package: Some(_), .. }) => lines.push(one),
                Ok(_) => note(EvidenceFault::Nameless(one.number)),
                Err(why) => note(EvidenceFault::Line(one.number, why.to_string())),
            }
        }
        lines
    }
}

impl TrustInForce {
    /// What vouches for a version: what its place has said before, or says now.
    pub fn known_evidence_of(
        &self,
        candidate: &RuledVersion<'_>,
        progress: &dyn Progress,
    ) -> Result<FoundEvidence, TrustError> {
        if let Some(kept) = self.here.kept_evidence(candidate) {
            return Ok(kept);
        }
        let RuledVersion { route, release, .. } = candidate;
        let found = route.provider.evidence(&route.location, release, progress)?;
        self.here.keep_found(candidate, &found);
        Ok(found)
    }

    /// The lines that the vendored packs of the workspace bring, as far as they can be read.
    pub fn vendored_lines(&self) -> Vec<EvidenceLine> {
        self.here.readable_lines()
    }

    /// What of the vendored packs' evidence turned out to be of no use since this was last asked.
    pub fn take_evidence_faults(&self) -> Vec<EvidenceFault> {
        std::mem::take(&mut *lock(&self.here.faults))
    }

    /// As [`Self::judge`], by what vouches for the version now: what was found out before does not count, but what the checkout brings.
    pub fn judge_anew(
        &self,
        candidate: &RuledVersion<'_>,
        store: &Store,
        progress: &dyn Progress,
    ) -> Result<Judgement, TrustError> {
        self.judge_by(candidate, true, store, progress)
    }

    /// What the evidence on this machine is worth for what a rule asks, if it is enough.
    pub(super) fn verdict_here(
        &self,
        candidate: &RuledVersion<'_>,
        demand: &RuleDemand<'_>,
        before: &[String],
    ) -> Option<Found> {
        let here: Vec<FoundEvidence> = self.here.evidence_here(candidate).collect();
        let best = best_of(&here, candidate, demand, before);
        best.filter(|verdict| demand.is_satisfied_by(verdict, before))
    }

    /// As [`weigh`]. A rule of keys alone needs no root to accept a signature; to say whose the others are, it does.
    fn weigh_in_words(
        &self,
        found: &FoundEvidence,
        release: &Release,
        demand: &RuleDemand<'_>,
    ) -> Found {
        let verdict = weigh(found, release, demand);
        if verdict.is_ok() || demand.roots.iter().next().is_some() {
            return verdict;
        }
        match self.roots(&demand.rule.visible_roots()) {
            Ok(roots) => {
                let RuleDemand { rule, needs, ref signers, .. } = *demand;
                weigh(found, release, &RuleDemand { rule, needs, signers: signers.clone(), roots })
            }
            Err(_) => verdict,
        }
    }

    /// What the evidence about a version is worth for one demand; `before` is who signed the version before it, as far as that is
    /// compared.
    pub(super) fn answer_question(
        &self,
        question: &mut EvidenceQuestion<'_>,
        demand: &RuleDemand<'_>,
        before: &[String],
    ) -> Result<Found, TrustError> {
        let EvidenceQuestion { candidate, is_anew, progress, .. } = *question;
        let key = key(candidate.release, demand);
        let is_enough = |verdict: &Found| demand.is_satisfied_by(verdict, before);
        if let Some(said) = self.said_in_run(&key).filter(|_| !is_anew) {
            return Ok(said);
        }
        let kept = self.kept_verdict(&key, candidate.release).filter(|_| !is_anew);
        if let Some(known) = kept.clone().filter(is_enough) {
            return Ok(known);
        }
        let here = question.here.get_or_insert_with(|| match is_anew {
            true => vec![self.here.vendored_evidence(candidate)],
            false => self.here.evidence_here(candidate).collect(),
        });
        // What is here proves itself, and nobody has to be asked. If it is not enough, its place may have more by now: somebody may
        // have signed later.
        let here = best_of(here, candidate, demand, before);
        if let Some(verdict) = here.clone().filter(|verdict| !is_anew && is_enough(verdict)) {
            self.keep_verdict(&key, &verdict);
            return Ok(verdict);
        }
        // Its place is asked once, whatever rules there are.
        let RuledVersion { route, release, .. } = candidate;
        let found = match &question.place {
            Some(found) => found,
            None => {
                let asked = route.provider.evidence(&route.location, release, progress);
                match (asked, here.clone().or(kept)) {
                    (Ok(found), _) => {
                        self.here.keep_found(candidate, &found);
                        question.place.insert(found)
                    }
                    (Err(error), Some(known)) if error.kind() == ErrorKind::Offline => {
                        return Ok(known);
                    }
                    (Err(error), _) => return Err(error.into()),
                }
            }
        };
        let verdict = self.weigh_in_words(found, release, demand);
        let verdict = match here.filter(|here| is_enough(here) && !is_enough(&verdict)) {
            Some(here) => here,
            None => verdict,
        };
        // Who refuses to say may have what the rule asks for.
        if let (Err(_), Needs::Signatures(_), Some(error)) =
            (&verdict, demand.needs, &found.withheld)
        {
            return Err(error.clone().into());
        }
        self.keep_verdict(&key, &verdict);
        lock(&self.said).insert(key, verdict.clone());
        Ok(verdict)
    }
}

/// What evidence is worth for what a rule asks.
type Found = Result<KeptVerdict, Refused>;

impl RuleDemand<'_> {
    /// Whether nothing more is needed. A rule that compares needs one of those who signed before, if anybody did.
    pub(super) fn is_satisfied_by(&self, verdict: &Found, before: &[String]) -> bool {
        let Ok(verdict) = verdict else { return false };
        let is_compared = self.needs == Needs::Comparison && !before.is_empty();
        let is_known = |identity: &String| verdict.signed_by.contains(identity);
        verdict.unsigned.is_none() && (!is_compared || before.iter().any(is_known))
    }
}

/// What all of it is worth: the first that is enough, or else the first; `None` if there is nothing.
fn best_of(
    all: &[FoundEvidence],
    candidate: &RuledVersion<'_>,
    demand: &RuleDemand<'_>,
    before: &[String],
) -> Option<Found> {
    let all = all.iter().filter(|found| !found.pieces.is_empty());
    let mut verdicts: Vec<Found> =
        all.map(|found| weigh(found, candidate.release, demand)).collect();
    let is_enough = |verdict: &Found| demand.is_satisfied_by(verdict, before);
    let at = verdicts.iter().position(is_enough).unwrap_or(0);
    (!verdicts.is_empty()).then(|| verdicts.swap_remove(at))
}

/// What is asked about a version: what is here, and what its place says, each found out at most once.
pub(super) struct EvidenceQuestion<'q> {
    candidate: &'q RuledVersion<'q>,
    is_anew: bool,
    progress: &'q dyn Progress,
    here: Option<Vec<FoundEvidence>>,
    place: Option<FoundEvidence>,
}

impl<'q> EvidenceQuestion<'q> {
    /// About a version; if `is_anew`, of what is here only what the checkout brings counts.
    pub(super) fn new(
        candidate: &'q RuledVersion<'q>,
        is_anew: bool,
        progress: &'q dyn Progress,
    ) -> Self {
        Self { candidate, is_anew, progress, here: None, place: None }
    }
}

fn about<'c>(candidate: &'c RuledVersion<'_>) -> EvidenceAbout<'c> {
    EvidenceAbout { name: candidate.source.name_str(), release: candidate.release }
}
