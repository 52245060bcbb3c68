//! Who signed what is locked, for rules that compare it with who signed a new version.
//!
//! A lock is no proof: where a rule refuses others, what it claims is proven first. What a single rule asks for, `mod.rs` knows.

use std::collections::BTreeSet;

use mu_provider::{Progress, Release};

use super::here::EvidenceQuestion;
use super::weigh::{Needs, RuleDemand};
use super::{
    Accepted, KeptVerdict, Refused, RuledVersion, TrustError, TrustInForce, rule_in_words,
};
use crate::lock::{LockedPackage, Lockfile};
use crate::reference::{PackageId, Version};
use crate::workspace::trust::Continuity;

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
            let rule = rule_in_words(demand.rule);
            if demand.rule.rule.continuity == Continuity::Refuse {
                return Err(Refused { why, rule });
            }
            let RuledVersion { source, release, .. } = candidate;
            self.warnings.push(format!("`{source}` {}: {why} ({rule})", release.version));
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
