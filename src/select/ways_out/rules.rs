//! Ways out that change no requirement: rules of the settings that could go, and what could be forced.

use crate::index::Unavailable;
use crate::reference::VersionSpec;
use crate::select::conflict::{Fact, ReplacementClash, Requirer};
use crate::select::filters::Rejection;
use crate::select::trial::{Outcome, Trial};
use crate::select::way_out::WayOut;
use crate::select::ways_out::Finder;
use crate::select::{Override, Request};

impl Finder<'_> {
    /// Tries to do without each rule that took out what would have helped; `anew` means to forget what is installed, and
    /// nothing else.
    pub(super) fn lift_rules(&mut self, anew: bool) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        let of_packages = conflict.clashes.iter().flat_map(|clash| {
            clash.rejected.iter().map(|(rejection, versions)| (&clash.id, rejection, versions))
        });
        let of_providers = conflict.capabilities.iter().flat_map(|clash| &clash.rejected);
        let of_providers = of_providers.map(|(id, rejection, versions)| (id, rejection, versions));
        for (id, rejection, versions) in of_packages.chain(of_providers) {
            if anew != matches!(rejection, Rejection::NoUpgrade { .. }) {
                continue;
            }
            let mut request = self.request.clone();
            let way_out = match rejection {
                Rejection::Excluded => {
                    request.settings.exclude.retain(|exclusion| exclusion.id != *id);
                    WayOut::Include(id.clone())
                }
                Rejection::TooNew => {
                    request.settings.published_before = None;
                    WayOut::AnyAge
                }
                Rejection::NoUpgrade { .. } => {
                    request.installed.remove(id);
                    request.locked.retain(|locked| locked.id != *id);
                    let last = versions.runs.last().map(|run| run.last.clone());
                    WayOut::Forget(id.clone(), last.unwrap_or_default())
                }
                _ => continue,
            };
            if !self.is_done() && self.holds(&request)? {
                self.add(way_out);
            }
        }
        for fact in conflict.facts.iter().filter(|_| !anew) {
            let Fact::Overridden { id, .. } = fact else { continue };
            let mut request = self.request.clone();
            request.settings.overrides.remove(id);
            if !self.is_done() && self.holds(&request)? {
                self.add(WayOut::NoOverride(id.clone()));
            }
        }
        if anew { Ok(()) } else { self.settle_replacements() }
    }

    /// Tries to say which of several packages replaces another one, or that none does.
    fn settle_replacements(&mut self) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        let pairs = conflict.facts.iter().filter_map(|fact| match fact {
            Fact::Replaces { by: Requirer::Package(by, _), id } => Some((id, by)),
            _ => None,
        });
        let disputed = pairs.clone().filter(|(id, _)| {
            conflict.replacements.iter().any(|clash| {
                matches!(clash, ReplacementClash::Several { id: several } if several == *id)
            })
        });
        let kept = pairs.clone().map(|(id, _)| (id, id));
        for (id, by) in disputed.chain(kept) {
            let mut request = self.request.clone();
            request.settings.replacements.insert(id.clone(), by.clone());
            if !self.is_done() && self.holds(&request)? {
                self.add(WayOut::Replace(id.clone(), by.clone()));
            }
        }
        Ok(())
    }

    /// Tries to use one version of a package that nothing is left of, whatever is asked of it: the last resort.
    pub(super) fn force(&mut self) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        if !self.ways.is_empty() {
            return Ok(());
        }
        for clash in conflict.clashes.iter().filter(|clash| clash.tried.is_none()) {
            let Some(newest) = clash.available.runs.last() else { continue };
            let overrides = &self.request.settings.overrides;
            let Ok(spec) = VersionSpec::parse(&newest.last) else { continue };
            if self.is_done() || overrides.contains_key(&clash.id) {
                continue;
            }
            let mut request = self.request.clone();
            let instead = Override { id: clash.id.clone(), spec };
            request.settings.overrides.insert(clash.id.clone(), instead);
            if self.holds(&request)? {
                self.add(WayOut::Override(clash.id.clone(), newest.last.clone()));
            }
        }
        Ok(())
    }

    /// Whether another request could be met.
    fn holds(&self, request: &Request) -> Result<bool, Unavailable> {
        let cost = self.conflict.statistics.versions_read;
        if self.is_minimal {
            let mut trial = Trial::minimal(self.universe, request, cost);
            return Ok(trial.build(request.roots.clone())?.1.is_none());
        }
        let mut trial = Trial::new(self.universe, request, cost);
        Ok(matches!(trial.search(request.roots.clone(), &[])?, Outcome::Holds(_)))
    }
}
