//! Ways out that change no requirement: settings that could be dropped, and versions that could be forced; and two steps if one
//! is not enough, of which the first drops such a rule. And ways out of conflicts about capabilities, and of packages that
//! conflict: require a package that provides what is missing, or drop one of those that conflict, that provide the same, or that
//! require what nothing provides.

use std::collections::BTreeSet;

use mu_manifest::reference::{PackageId, Version, VersionSpec};

use crate::conflict::{Ask, Clash, Conflict, Fact, ReplacementClash, Requirer, WayOut};
use crate::filters::Rejection;
use crate::minimal::build::compatible;
use crate::search::Verdict;
use crate::universe::{Requirement, Unavailable};
use crate::ways_out::reach::with;
use crate::ways_out::{Finder, MOST, fewest_first, others};
use crate::world::World;
use crate::{Bundled, Majors, Override, SelectionRequest};

/// For how many rules mu tries what would still be missing without them.
const FIRST_STEPS: usize = 3;

impl Finder<'_> {
    /// Tries to drop each rule that excluded what would have helped; `anew` means to forget what is
    /// installed, and nothing else.
    pub(super) fn lift_rules(&mut self, anew: bool) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        // The versions that would have helped, with the rule that excludes each: of packages that are required, and of
        // packages that would provide what is required.
        let of_packages = conflict.clashes.iter().flat_map(|clash| {
            clash.rejected.iter().map(|(rejection, versions)| (&clash.id, rejection, versions))
        });
        let of_providers = conflict.capabilities.iter().flat_map(|clash| &clash.rejected);
        let of_providers = of_providers.map(|(id, rejection, versions)| (id, rejection, versions));
        for (id, rejection, versions) in of_packages.chain(of_providers) {
            let way_out = match rejection {
                Rejection::NoUpgrade { .. } if anew => {
                    let last = versions.runs.last().map(|run| run.last.clone());
                    Some(WayOut::Forget(id.clone(), last.unwrap_or_default()))
                }
                rejection if !anew => lifting(id, rejection),
                _ => None,
            };
            self.try_step(way_out)?;
        }
        for fact in conflict.facts.iter().filter(|_| !anew) {
            let Fact::Overridden { id, .. } = fact else { continue };
            self.try_step(Some(WayOut::NoOverride(id.clone())))?;
        }
        if anew { Ok(()) } else { self.settle_replacements() }
    }

    /// Tries to let packages that clash use the copies that they carry inside.
    pub(super) fn use_copies(&mut self) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        for fact in &conflict.facts {
            let Fact::Requires { by: Requirer::Package(by, versions), id, .. } = fact else {
                continue;
            };
            let clashes = conflict.clashes.iter().any(|clash| clash.id == *id);
            // A chart asks for `redis ^17` and carries it, another one needs `redis ^18`: if the first one uses its
            // own, both have what they want. A hint that was true of its newest version is tried; the trial shows
            // whether it holds.
            let newest = versions.runs.last().filter(|_| clashes);
            let universe = self.trial.world.universe();
            if newest.is_some_and(|newest| universe.carries_copy(by, &newest.last, id)) {
                self.try_step(Some(WayOut::Bundle(by.clone(), id.clone())))?;
            }
        }
        Ok(())
    }

    /// Tries to let a package replace another one that provides the same and has the same last name: probably the package has moved,
    /// and its metadata does not say so. What is newer is tried first.
    pub(super) fn take_places(&mut self) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        for clash in conflict.capabilities.iter().filter(|clash| clash.is_provided) {
            let mut providers: Vec<(Option<Version>, &PackageId)> = Vec::new();
            for fact in &conflict.facts {
                if let Fact::Provides { by: Requirer::Package(id, versions), capability } = fact
                    && *capability == clash.capability
                {
                    let newest = versions.runs.last().map(|run| Version::parse_lenient(&run.last));
                    providers.push((newest.and_then(Result::ok), id));
                }
            }
            providers.sort();
            providers.dedup();
            // By version, so the package that is still maintained is tried as the one that takes the place.
            let ids = providers.iter().rev().map(|(_, id)| *id);
            for by in ids.clone() {
                let is_one = |id: &&PackageId| *id != by && id.name().leaf() == by.name().leaf();
                let before = self.ways.len();
                for id in ids.clone().filter(is_one) {
                    self.try_step(Some(WayOut::TakePlace(by.clone(), id.clone())))?;
                }
                if self.ways.len() > before {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Tries to choose packages once for each major, if two majors of one clash. This is reported even if
    /// there are already enough other ways out: it is the only one that changes no requirement.
    pub(super) fn allow_majors(&mut self) -> Result<(), Unavailable> {
        if self.request.settings.majors == Majors::Many || self.is_second_step {
            return Ok(());
        }
        let Some(clash) = self.conflict.pulled_apart() else { return Ok(()) };
        let way_out = WayOut::ManyMajors(clash.id.clone());
        // In the same world that is nearly free, since everything is read.
        let holds = match self.trial.holds_with(Majors::Many)? {
            Some(holds) => holds,
            None => self.holds(&taking(self.request, &way_out))?,
        };
        if holds {
            // It takes the place of the third one, if there are three.
            self.ways.truncate(MOST - 1);
            self.add(way_out);
        }
        Ok(())
    }

    /// Tries to choose which of several packages replaces another one, or that none does.
    fn settle_replacements(&mut self) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        let pairs = conflict.facts.iter().filter_map(|fact| match fact {
            Fact::Replaces { by: Requirer::Package(by, _), id } => Some((id, by)),
            _ => None,
        });
        // First each of the packages that want the place, then that the package itself keeps it.
        let disputed = pairs.clone().filter(|(id, _)| {
            conflict.replacements.iter().any(|clash| {
                matches!(clash, ReplacementClash::Several { id: several } if several == *id)
            })
        });
        let kept = pairs.clone().map(|(id, _)| (id, id));
        for (id, by) in disputed.chain(kept) {
            self.try_step(Some(WayOut::Replace(id.clone(), by.clone())))?;
        }
        Ok(())
    }

    /// Tries to pin a withdrawn version, if nothing else is left.
    pub(super) fn take_withdrawn(&mut self, wishes: &[Requirement]) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        for clash in &conflict.clashes {
            if !self.ways.is_empty() {
                return Ok(());
            }
            let mut yanked =
                clash.rejected.iter().filter_map(|(rejection, versions)| match rejection {
                    Rejection::Yanked(_) => versions.runs.last().map(|run| &run.last),
                    _ => None,
                });
            let Some(newest) = yanked.next_back() else { continue };
            let Ok(pin) = VersionSpec::parse(newest) else { continue };
            let wishes = wishes.iter().filter(|wish| wish.id == clash.id && wish.spec != pin);
            let ask = |wish: &Requirement| {
                let root =
                    self.request.roots.iter().find(|root| root.requirements.contains(wish))?;
                let to = Requirement { spec: pin.clone(), ..wish.clone() };
                let (by, from, version) = (root.by.clone(), Some(wish.clone()), newest.clone());
                Some(Ask { by, from, to, version })
            };
            // A pin on the withdrawn version in place of each requirement on the package: only who names it exactly
            // gets it.
            let asks: Vec<Ask> = wishes.filter_map(ask).collect();
            let is_any = !asks.is_empty();
            self.try_step(is_any.then_some(WayOut::Withdrawn(asks)))?;
        }
        Ok(())
    }

    /// Tries to use one version of a package without candidates, whatever is required of it: the last resort.
    pub(super) fn force(&mut self) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        if !self.ways.is_empty() {
            return Ok(());
        }
        for clash in conflict.clashes.iter().filter(|clash| clash.tried.is_none()) {
            if self.request.settings.overrides.contains_key(&clash.id) {
                continue;
            }
            if let Some(version) = self.newest_for_one(clash)? {
                self.try_step(Some(WayOut::Override(clash.id.clone(), version)))?;
            }
        }
        Ok(())
    }

    /// The newest version of a package that at least one of those takes who require it.
    fn newest_for_one(&mut self, clash: &Clash) -> Result<Option<String>, Unavailable> {
        let asked = self.conflict.facts.iter().filter_map(|fact| match fact {
            Fact::Requires { id, asked, .. } if *id == clash.id => Some(asked),
            _ => None,
        });
        let mut newest = None;
        for text in asked.flatten() {
            let Ok(spec) = VersionSpec::parse(text) else { continue };
            let (place, set) =
                self.trial.world.accepted(&Requirement::new(clash.id.clone(), spec))?;
            let package = self.trial.world.package(place);
            // An override ignores all others, so the newest that one of them wants is a guess that is good for
            // somebody.
            newest = newest.max(set.last_below(package.releases.len()));
        }
        let any = Requirement::new(clash.id.clone(), VersionSpec::Latest);
        let (place, _) = self.trial.world.accepted(&any)?;
        Ok(newest.map(|at| self.trial.world.package(place).candidate_label(at)))
    }

    /// Tries two steps, if no single one helps: drops a rule about a package without candidates, then looks
    /// for what else would help. Three rules are tried at most.
    pub(super) fn look_for_pairs(&mut self) -> Result<(), Unavailable> {
        if !self.ways.is_empty() || self.is_second_step {
            return Ok(());
        }
        let rules = rules_at_work(&mut self.trial.world, self.conflict)?;
        for first in rules.into_iter().take(FIRST_STEPS) {
            let request = taking(self.request, &first);
            // Without the rule there is another conflict, and that one has ways out of its own. Steps and trials are
            // those of the first search, so two steps take no longer than one.
            let mut trial = self.trial.trial_of_request(&request);
            let Some(conflict) = trial.conflict()? else { continue };
            let mut finder = Finder {
                is_second_step: true,
                trials: self.trials,
                ..Finder::new(&request, &conflict, trial)
            };
            finder.look_once()?;
            self.trials = finder.trials;
            self.trial.share_steps_of(&finder.trial);
            for second in fewest_first(finder.ways) {
                // These do more than a second step may: they would help without the first one.
                let is_anew =
                    matches!(second, WayOut::Forget(..) | WayOut::Highest | WayOut::Minimal);
                if !is_anew && self.holds(&taking(&request, &second))? {
                    self.add(WayOut::Together(vec![first.clone(), second]));
                }
            }
        }
        Ok(())
    }

    /// Adds a way out, if it works.
    fn try_step(&mut self, way_out: Option<WayOut>) -> Result<(), Unavailable> {
        if let Some(way_out) = way_out
            && !self.is_done()
            && self.holds(&taking(self.request, &way_out))?
        {
            self.add(way_out);
        }
        Ok(())
    }

    /// Whether another request could be met.
    pub(super) fn holds(&mut self, request: &SelectionRequest) -> Result<bool, Unavailable> {
        // A new world reads manifests again, which is the dear part of a trial. So their number is limited, too.
        let Some(left) = self.trials.checked_sub(1) else { return Ok(false) };
        self.trials = left;
        let mut trial = self.trial.trial_of_request(request);
        let holds = trial.holds()?;
        self.trial.share_steps_of(&trial);
        Ok(holds)
    }
}

/// The rules that excluded any version of the packages without candidates, whether dropping that rule alone
/// would help or not.
fn rules_at_work(world: &mut World<'_>, conflict: &Conflict) -> Result<Vec<WayOut>, Unavailable> {
    let settings = &world.request().settings;
    let mut rules: Vec<WayOut> = Vec::new();
    let mut note = |rule: Option<WayOut>| {
        rules.extend(rule.filter(|rule| !rules.contains(rule)));
    };
    for clash in conflict.clashes.iter().filter(|clash| clash.tried.is_none()) {
        // Asking for any version has the package read, if nothing has yet.
        let any = Requirement::new(clash.id.clone(), VersionSpec::Latest);
        let (place, _) = world.accepted(&any)?;
        let package = world.package(place);
        for position in 0..package.count() {
            let rejection = package.rejection(settings, position);
            note(rejection.and_then(|rejection| lifting(&clash.id, &rejection)));
        }
        let is_overridden = settings.overrides.contains_key(&clash.id);
        note(is_overridden.then(|| WayOut::NoOverride(clash.id.clone())));
    }
    for (id, rejection, _) in conflict.capabilities.iter().flat_map(|clash| &clash.rejected) {
        note(lifting(id, rejection));
    }
    Ok(rules)
}

/// The way out that drops the rule that excluded versions of a package; `None` if the user cannot change that
/// rule.
fn lifting(id: &PackageId, rejection: &Rejection) -> Option<WayOut> {
    match rejection {
        Rejection::Excluded => Some(WayOut::Include(id.clone())),
        Rejection::TooNew | Rejection::Undated => Some(WayOut::AnyAge),
        Rejection::Runtime { fact, wanted, .. } => {
            // The first version that it names, or the word; a trial shows whether that is enough.
            let word = wanted.trim_start_matches(|c: char| !c.is_alphanumeric());
            let word = word.split([' ', ',', '|']).next().filter(|word| !word.is_empty())?;
            Some(WayOut::Runtime(fact.clone(), word.to_owned()))
        }
        _ => None,
    }
}

/// The request after a way out was applied.
pub(super) fn taking(request: &SelectionRequest, way_out: &WayOut) -> SelectionRequest {
    let mut request = request.clone();
    match way_out {
        WayOut::Ask(asks) | WayOut::Withdrawn(asks) => request.roots = with(&request, asks),
        WayOut::Runtime(fact, value) => {
            request.settings.runtime.insert(fact.clone(), value.clone());
        }
        WayOut::GiveUp(id) => request.roots = others(&request, &BTreeSet::from([id])),
        WayOut::Include(id) => request.settings.exclude.retain(|exclusion| exclusion.id != *id),
        WayOut::AnyAge => request.settings.published_before = None,
        WayOut::Bundle(by, id) => {
            let (by, id) = (by.clone(), Some(id.clone()));
            request.settings.bundled.insert(Bundled { by, id });
        }
        WayOut::NoOverride(id) => {
            request.settings.overrides.remove(id);
        }
        WayOut::Replace(id, by) => {
            request.settings.replacements.insert(id.clone(), by.clone());
        }
        WayOut::TakePlace(by, id) => {
            let stated = &mut request.settings.stated_replaces;
            stated.entry(by.clone()).or_default().insert(id.clone());
        }
        WayOut::ManyMajors(_) => request.settings.majors = Majors::Many,
        WayOut::Override(id, version) => {
            if let Ok(spec) = VersionSpec::parse(version) {
                request.settings.overrides.insert(id.clone(), Override { id: id.clone(), spec });
            }
        }
        WayOut::Forget(id, _) => {
            request.installed.remove(id);
            request.locked.retain(|locked| locked.id != *id);
        }
        // In this order, each on the request that the one before left.
        WayOut::Together(all) => {
            for one in all {
                request = taking(&request, one);
            }
        }
        // Another strategy is asked the same.
        WayOut::Highest | WayOut::Minimal => {}
    }
    request
}

impl Finder<'_> {
    /// Tries to require packages that provide something, and that count only if they are required.
    pub(super) fn provide(&mut self) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        let requirer = conflict.facts.iter().find_map(|fact| match fact {
            Fact::RequiresCapability { by: Requirer::Roots(names), .. }
            | Fact::Requires { by: Requirer::Roots(names), .. } => names.first(),
            _ => None,
        });
        let Some(by) = requirer else { return Ok(()) };
        for fact in &conflict.facts {
            let Fact::OnlyWhereAsked { id } = fact else { continue };
            if self.is_done() {
                return Ok(());
            }
            let any = Requirement::new(id.clone(), VersionSpec::Latest);
            let ask =
                |to: Requirement, version: String| Ask { by: by.clone(), from: None, to, version };
            let roots = with(self.request, &[ask(any.clone(), String::new())]);
            let Verdict::Chosen(choices) = self.trial.search(roots, &[])? else { continue };
            let Some((place, position)) = self.trial.chosen(&choices, &any)? else { continue };
            let package = self.trial.world.package(place);
            let to = Requirement::new(id.clone(), compatible(package, position));
            let asks = vec![ask(to, package.candidate_label(position))];
            self.try_step(Some(WayOut::Ask(asks)))?;
        }
        Ok(())
    }

    /// Tries to drop each of the packages that `wishes` are about.
    pub(super) fn try_dropping(&mut self, wishes: &[Requirement]) -> Result<(), Unavailable> {
        let conflict = self.conflict;
        let is_about_presence = |fact: &Fact| {
            matches!(
                fact,
                Fact::RequiresCapability { .. } | Fact::Provides { .. } | Fact::Conflicts { .. }
            )
        };
        if !conflict.facts.iter().any(is_about_presence) {
            return Ok(());
        }
        let mut tried: BTreeSet<&PackageId> = BTreeSet::new();
        for wish in wishes {
            if tried.insert(&wish.id) {
                self.try_step(Some(WayOut::GiveUp(wish.id.clone())))?;
            }
        }
        Ok(())
    }
}
