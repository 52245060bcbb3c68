//! Whether the settings trust a version: the rules that speak of it, what vouches for it where it comes from, and what `mu-trust`
//! says of that.
//!
//! Nothing that a lock, a registry or a package says is evidence. What was accepted once is kept in the cache, under everything that
//! the answer depends on, so that a machine asks once. Which version is used instead of one that is refused is not decided here.

mod here;
mod weigh;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;

use mu_provider::threads::lock;
use mu_provider::{
    Digest, FileDigest, FoundEvidence, NamedBy, PlaceKind, Progress, ProviderError, Release,
};
use mu_trust::{Evidence, Roots, Signer};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use self::here::{EvidenceHere, EvidenceQuestion};
pub use self::weigh::{LockedClaim, SignedBefore};
use self::weigh::{Needs, RuleDemand, verdict_on};
use crate::fs;
use crate::index::Route;
use crate::reference::{PackageId, Version};
use crate::store::{Store, TreeStoreError};
use crate::workspace::trust::{Continuity, RuleAsks, RuleInForce, TrustSettings};

pub use self::here::{EvidenceFault, VENDORED_ARCHIVES, VENDORED_FILE};

/// The folder in the cache.
const FOLDER: &str = "trust";

/// How many versions of a package are refused in a run before mu gives up.
pub const MOST_REFUSED: usize = 32;

/// The rules of a session, and what was found out by them.
#[derive(Debug)]
pub struct TrustInForce {
    settings: TrustSettings,
    root: PathBuf,
    folder: PathBuf,
    here: EvidenceHere,
    signers: Mutex<BTreeMap<(bool, String), Signer>>,
    /// What the evidence is worth that places have in this run, by everything that it depends on.
    said: Mutex<BTreeMap<String, Result<KeptVerdict, Refused>>>,
    refused: Mutex<BTreeMap<PackageId, Vec<RefusedVersion>>>,
}

/// A version that rules are asked about.
#[derive(Debug, Clone)]
pub struct RuledVersion<'a> {
    /// The package that its content comes from.
    pub source: &'a PackageId,
    /// The packages in whose place it is used.
    pub stood_for: Vec<PackageId>,
    /// Its version; none of a revision without one.
    pub version: Option<Version>,
    /// Where it comes from.
    pub route: &'a Route,
    /// What is known of it: the digests of its manifest and its archive, and of its content.
    pub release: &'a Release,
    /// Who signed what is locked.
    pub before: SignedBefore,
}

/// What the rules say of a version.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// No rule speaks of it, or all accept its content as it is.
    Free,
    /// All of them accept its archive.
    Accepted(Accepted),
    /// One does not.
    Refused(Refused),
}

/// What is known of a version that rules accept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Accepted {
    /// The identities that signed it, sorted.
    pub signed_by: Vec<String>,
    /// When it was signed first, in seconds since 1970, as far as that is proven.
    pub time: Option<i64>,
    /// What rules that refuse nobody hold against it.
    pub objections: Vec<Objection>,
}

/// Why a version is not accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// Why.
    pub why: String,
    /// The rule, with its file.
    pub rule: String,
}

/// A version that is accepted, and why a rule would not.
#[derive(Debug, Clone, PartialEq)]
pub struct Objection {
    /// The package that its content comes from.
    pub source: PackageId,
    /// The version.
    pub version: String,
    /// What is held against it.
    pub refused: Refused,
}

/// A version that was refused in this run.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedVersion {
    /// The version.
    pub version: String,
    /// Why.
    pub refused: Refused,
}

/// Why it cannot be said whether a version is trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Its place cannot be asked.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// Its content cannot be looked at.
    #[error(transparent)]
    Store(TreeStoreError),
    /// A signer of the settings cannot be used.
    #[error("the signer `{name}` in {file}:{line} cannot be used: {why}")]
    Signer {
        /// Its name.
        name: String,
        /// The file that has it.
        file: &'static str,
        /// The line there.
        line: usize,
        /// Why.
        why: String,
    },
    /// A root of the settings cannot be used.
    #[error("the root `{name}` in trust.roots cannot be used: {why}")]
    Root {
        /// Its file.
        name: String,
        /// Why.
        why: String,
    },
}

/// A piece of evidence, and what it is worth.
#[derive(Debug, Clone)]
pub struct Weighed {
    /// Where it is.
    pub place: String,
    /// Its kind; none of what cannot be read.
    pub kind: Option<&'static str>,
    /// Who signed.
    pub identities: Vec<String>,
    /// Whether a signature verifies, whoever made it.
    pub verifies: bool,
    /// What it is worth, in words.
    pub why: String,
}

/// A verdict about what one rule asks, as it is kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptVerdict {
    signed_by: BTreeSet<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<i64>,
    /// Why nobody signed it, where nobody needs to have.
    #[serde(skip)]
    unsigned: Option<String>,
}

impl TrustInForce {
    /// The rules of `settings`; the workspace's files are below `root`, and what is found out is kept in `cache`.
    pub fn new(settings: &TrustSettings, root: &Path, cache: &Path) -> Self {
        Self {
            settings: settings.clone(),
            root: root.to_owned(),
            folder: cache.join(FOLDER),
            here: EvidenceHere::new(root.to_owned(), cache),
            signers: Mutex::default(),
            said: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// The settings.
    pub fn rules(&self) -> &TrustSettings {
        &self.settings
    }

    /// Whether no package needs anything.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// The rules that speak of a package from a place; none speaks of what its user or author has put there by hand.
    pub fn rules_about(
        &self,
        route: &Route,
        source: &PackageId,
        stood_for: &[PackageId],
    ) -> Vec<RuleInForce<'_>> {
        let facts = route.provider.facts();
        match facts.kind == PlaceKind::Folder || facts.answers_for_itself {
            true => Vec::new(),
            false => self.settings.in_force(source, stood_for),
        }
    }

    /// What the rules say of a version, whose content may be looked at in `store`.
    pub fn judge(
        &self,
        candidate: &RuledVersion<'_>,
        store: &Store,
        progress: &dyn Progress,
    ) -> Result<Judgement, TrustError> {
        self.judge_by(candidate, false, store, progress)
    }

    /// As [`Self::judge`]; if `is_anew`, nothing that was found out before counts.
    fn judge_by(
        &self,
        candidate: &RuledVersion<'_>,
        is_anew: bool,
        store: &Store,
        progress: &dyn Progress,
    ) -> Result<Judgement, TrustError> {
        let RuledVersion { source, stood_for, route, .. } = candidate;
        let rules = self.rules_about(route, source, stood_for);
        let read = with_content(&rules, candidate, store, progress)?;
        let candidate = &RuledVersion {
            release: read.as_ref().unwrap_or(candidate.release),
            ..candidate.clone()
        };
        let demands = match self.demands(&rules, candidate)? {
            Ok(demands) => demands,
            Err(settled) => return Ok(settled),
        };
        let (mut accepted, mut question) =
            (Accepted::default(), EvidenceQuestion::new(candidate, is_anew, progress));
        for demand in &demands {
            let before = match self.signers_before(candidate, demand, progress)? {
                Ok(before) => before,
                Err(refused) => return Ok(Judgement::Refused(refused)),
            };
            let verdict = self.answer_question(&mut question, demand, &before)?;
            let judged =
                verdict.and_then(|verdict| accepted.add(verdict, demand, candidate, &before));
            if let Err(refused) = judged {
                return Ok(Judgement::Refused(refused));
            }
        }
        Ok(Judgement::Accepted(accepted))
    }

    /// What the rules say of a version by what this machine has found out before, or by the evidence that is here; `None` if that is not
    /// enough. Nobody is asked.
    pub fn known_judgement(
        &self,
        candidate: &RuledVersion<'_>,
    ) -> Result<Option<Judgement>, TrustError> {
        let RuledVersion { source, stood_for, route, release, .. } = candidate;
        let rules = self.rules_about(route, source, stood_for);
        let demands = match self.demands(&rules, candidate)? {
            Ok(demands) => demands,
            Err(settled) => return Ok(Some(settled)),
        };
        let mut accepted = Accepted::default();
        for demand in &demands {
            let (key, before) = (key(release, demand), &candidate.before.signed_by);
            let known = self.said_in_run(&key).or_else(|| self.kept_verdict(&key, release));
            let verdict = match known {
                Some(known) if demand.is_satisfied_by(&known, before) => Some(known),
                known => self.verdict_here(candidate, demand, before).or(known),
            };
            let Some(verdict) = verdict else { return Ok(None) };
            let judged =
                verdict.and_then(|verdict| accepted.add(verdict, demand, candidate, before));
            if let Err(refused) = judged {
                return Ok(Some(Judgement::Refused(refused)));
            }
        }
        Ok(Some(Judgement::Accepted(accepted)))
    }

    /// What the rules ask of a version, or what they say of it whatever vouches for it.
    fn demands<'r>(
        &self,
        rules: &'r [RuleInForce<'r>],
        candidate: &RuledVersion<'_>,
    ) -> Result<Result<Vec<RuleDemand<'r>>, Judgement>, TrustError> {
        let (mut demands, mut is_bound) = (Vec::new(), false);
        for rule in rules {
            match (allowance(rule, candidate), &rule.rule.asks) {
                (Some(Allowance::Content), _) => continue,
                (Some(Allowance::Archive), _) => {
                    is_bound = true;
                    continue;
                }
                (Some(Allowance::Manifest), _) => {
                    let (needs, signers, roots) = (Needs::Archive, Vec::new(), Roots::none());
                    demands.push(RuleDemand { rule, needs, signers, roots });
                    continue;
                }
                (None, RuleAsks::Nothing) => {}
                (None, RuleAsks::Refuse(why)) => {
                    let why = format!("refused: {why}");
                    return Ok(Err(Judgement::Refused(Refused { why, rule: rule_in_words(rule) })));
                }
                (None, RuleAsks::SignedBy { signers, need }) => {
                    let signers = self.signers_of(rule, signers)?;
                    // Keys need no root, and then their verdicts depend on none.
                    let has_keys = |signer: &Signer| !signer.identities().is_empty();
                    let roots = match signers.iter().all(has_keys) {
                        true => Roots::none(),
                        false => self.roots(&rule.visible_roots())?,
                    };
                    let needs = Needs::Signatures(*need);
                    demands.push(RuleDemand { rule, needs, signers, roots });
                }
            }
            // What is locked already is no news, and where nobody signed it, nothing can be compared.
            let SignedBefore { signed_by, is_of_this, .. } = &candidate.before;
            let is_compared = match rule.rule.continuity {
                Continuity::Off => false,
                Continuity::Warn => !is_of_this,
                Continuity::Refuse => !is_of_this || !signed_by.is_empty(),
            };
            if is_compared {
                let signers = rule.visible_signers().into_iter();
                let signers = signers.map(|(by, name, setting)| self.signer_of(by, name, setting));
                let signers = signers.collect::<Result<_, _>>()?;
                let roots = self.roots(&rule.visible_roots())?;
                demands.push(RuleDemand { rule, needs: Needs::Comparison, signers, roots });
            }
        }
        Ok(match (demands.is_empty(), is_bound) {
            (false, _) => Ok(demands),
            (true, true) => Err(Judgement::Accepted(Accepted::default())),
            (true, false) => Err(Judgement::Free),
        })
    }

    /// What the evidence is worth that the place of a version has in this run.
    fn said_in_run(&self, key: &str) -> Option<Result<KeptVerdict, Refused>> {
        lock(&self.said).get(key).cloned()
    }

    /// What an earlier run has found out.
    fn kept_verdict(&self, key: &str, release: &Release) -> Option<Result<KeptVerdict, Refused>> {
        // Without the digest of the archive or the commit, nothing says what the verdict was about.
        release.archive.as_deref().or(release.commit.as_deref())?;
        Some(Ok(read(&self.folder.join(key))?))
    }

    /// Keeps what was found out. That there is no signature is not kept, because one may be added.
    fn keep_verdict(&self, key: &str, verdict: &Result<KeptVerdict, Refused>) {
        if let Ok(verdict) = verdict
            && verdict.unsigned.is_none()
        {
            let text = serde_json::to_string(verdict).expect("a list of texts can be printed");
            self.keep(&self.folder.join(key), &text);
        }
    }

    /// All that vouches for a version where it comes from, and what it is worth by all signers of the settings.
    pub fn weigh_all(
        &self,
        candidate: &RuledVersion<'_>,
        progress: &dyn Progress,
    ) -> Result<(FoundEvidence, Vec<Weighed>), TrustError> {
        let RuledVersion { route, release, .. } = candidate;
        let found = route.provider.evidence(&route.location, release, progress)?;
        // All signers of both files, because who has signed is shown whether or not a rule names them.
        let mut signers = Vec::new();
        for named_by in [NamedBy::User, NamedBy::Workspace] {
            for (name, setting) in &self.settings.rules_of(named_by).signers {
                signers.push(self.signer_of(named_by, name, setting)?);
            }
        }
        let TrustSettings { of_user, of_workspace } = &self.settings;
        let roots = of_user.roots.iter().chain(&of_workspace.roots);
        let roots = self.roots(&roots.collect::<Vec<_>>())?;
        let archive = release.archive.as_deref();
        let weighed = found.pieces.iter().map(|piece| {
            let verdict = verdict_on(&found, piece, archive, &signers, &roots);
            let signed = verdict.iter().flat_map(|verdict| &verdict.signed);
            let mut why = verdict.as_ref().map_or_else(Clone::clone, ToString::to_string);
            // What a workflow ran for says which signers could name it.
            let ran_for = signed.clone().filter(|one| one.verifies);
            for reference in ran_for.filter_map(|one| one.reference.as_deref()) {
                if !why.contains(reference) {
                    why.push_str(&format!(" (ran for {reference})"));
                }
            }
            Weighed {
                place: piece.place.clone(),
                kind: piece.evidence.as_ref().ok().map(Evidence::kind),
                identities: signed.clone().map(|one| one.by.to_string()).collect(),
                verifies: signed.clone().any(|one| one.verifies),
                why,
            }
        });
        let weighed = weighed.collect();
        Ok((found, weighed))
    }

    /// Notes that a version was refused in this run; returns how many of its package were.
    pub fn refuse_version(&self, id: &PackageId, version: &str, refused: Refused) -> usize {
        let mut all = lock(&self.refused);
        let all = all.entry(id.clone()).or_default();
        if !all.iter().any(|known| known.version == version) {
            all.push(RefusedVersion { version: version.to_owned(), refused });
        }
        all.len()
    }

    /// The versions of a package that were refused in this run, in the order in which they were looked at.
    pub fn refused_versions(&self, id: &PackageId) -> Vec<RefusedVersion> {
        lock(&self.refused).get(id).cloned().unwrap_or_default()
    }

    /// The package of which a version was refused in this run for this reason.
    pub fn refused_because(&self, why: &str) -> Option<PackageId> {
        let all = lock(&self.refused);
        let is_it = |versions: &[RefusedVersion]| versions.iter().any(|one| one.refused.why == why);
        all.iter().find(|(_, versions)| is_it(versions)).map(|(id, _)| id.clone())
    }

    /// The content that this machine has unpacked from an archive under a rule, and as what; `what` names both.
    pub fn unpacked_from(&self, what: &str) -> Option<Digest> {
        let text = fs::read_text_if_there(&self.folder.join(archive_key(what))).ok()??;
        text.trim_end().parse().ok()
    }

    /// Notes the content that this machine has unpacked from an archive.
    pub fn note_unpacked_from(&self, what: &str, digest: &Digest) {
        self.keep(&self.folder.join(archive_key(what)), &format!("{digest}\n"));
    }

    /// Keeps what was found out. What cannot be kept is found out again.
    fn keep(&self, file: &Path, text: &str) {
        if fs::create_private_folder(&self.folder, &[]).is_ok() {
            let _ = fs::write_atomic(file, text.as_bytes());
        }
    }
}

fn read(file: &Path) -> Option<KeptVerdict> {
    serde_json::from_str(&fs::read_text_if_there(file).ok()??).ok()
}

/// The name of a verdict: everything that it depends on.
fn key(release: &Release, demand: &RuleDemand<'_>) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut signers: Vec<String> = demand.signers.iter().map(Signer::describe).collect();
    signers.sort();
    let roots = demand.roots.iter().map(|root| FileDigest::from_bytes(root.digest()).to_string());
    let roots = roots.collect::<Vec<_>>().join(" ");
    let mut lines = vec![format!("{:?} of {} by {roots}", demand.needs, signers.join(" | "))];
    lines.push(or_none(&release.manifest));
    lines.push(or_none(&release.archive));
    if let Some(commit) = &release.commit {
        // Another tag of the same commit may be signed by somebody else.
        let name = release.reference.as_deref().unwrap_or_default();
        lines.push(format!("{commit} {} {name}", release.version));
    }
    hash(format!("verdict\n{}", lines.join("\n")))
}

fn archive_key(what: &str) -> String {
    hash(format!("archive\n{what}"))
}

fn hash(bytes: impl AsRef<[u8]>) -> String {
    FileDigest::from_bytes(Sha256::digest(bytes).into()).to_string()
}

/// What the file of a rule accepts as it is.
enum Allowance {
    /// The content, which is compared with its digest wherever it comes from.
    Content,
    /// The archive.
    Archive,
    /// What its tag leads to, which is still to be followed to the archive.
    Manifest,
}

/// What is known of a version with the digest of its content, which is fetched if a file accepts it by that and nothing says it before: so
/// it is in Git.
fn with_content(
    rules: &[RuleInForce<'_>],
    candidate: &RuledVersion<'_>,
    store: &Store,
    progress: &dyn Progress,
) -> Result<Option<Release>, TrustError> {
    let RuledVersion { route, release, .. } = *candidate;
    let is_content = |digest: &&str| Digest::from_str(digest).is_ok();
    let accepts = |rule: &RuleInForce<'_>| allowed(rule, candidate).iter().any(is_content);
    if release.digest.is_some() || !rules.iter().any(accepts) {
        return Ok(None);
    }
    let tree = store
        .inspect(|tree| route.provider.fetch(&route.location, release, tree, progress))
        .map_err(|error| match error {
            TreeStoreError::Provider(error) => TrustError::Provider(error),
            error => TrustError::Store(error),
        })?;
    Ok(Some(Release { digest: Some(tree.digest().to_string()), ..release.clone() }))
}

/// The digests that the file of a rule accepts of a version.
fn allowed<'s>(rule: &RuleInForce<'s>, candidate: &RuledVersion<'_>) -> Vec<&'s str> {
    let Some(version) = &candidate.version else { return Vec::new() };
    let ids: Vec<PackageId> =
        candidate.stood_for.iter().chain([candidate.source]).cloned().collect();
    rule.allowed(&ids, version)
}

/// Whether the file of a rule accepts exactly this content, signed or not.
fn allowance(rule: &RuleInForce<'_>, candidate: &RuledVersion<'_>) -> Option<Allowance> {
    let Release { archive, manifest, digest, .. } = candidate.release;
    let allowed = allowed(rule, candidate);
    let is_allowed =
        |found: &Option<String>| found.as_deref().is_some_and(|found| allowed.contains(&found));
    if is_allowed(digest) {
        Some(Allowance::Content)
    } else if is_allowed(archive) {
        Some(Allowance::Archive)
    } else {
        is_allowed(manifest).then_some(Allowance::Manifest)
    }
}

/// A rule as messages name it.
pub fn rule_in_words(rule: &RuleInForce<'_>) -> String {
    let continuity = format!("continuity {}", rule.rule.continuity.as_str());
    let asks = match &rule.rule.asks {
        RuleAsks::Nothing => continuity,
        RuleAsks::Refuse(_) => "refuse".to_owned(),
        RuleAsks::SignedBy { signers, need: 1 } => format!("signedBy {}", signers.join(", ")),
        RuleAsks::SignedBy { signers, need } => {
            format!("signedBy {} ({need} of them)", signers.join(", "))
        }
    };
    format!("rule `{}` in {}: {asks}", rule.rule.pattern, rule.file())
}
