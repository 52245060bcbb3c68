//! Ways out of conflicts about capabilities, and of packages that conflict: require a package that provides what
//! is missing, or drop one of those that conflict, that provide the same, or that require what nothing provides.

use std::collections::BTreeSet;

use mu_manifest::reference::{PackageId, VersionSpec};

use crate::conflict::{Fact, Requirer};
use crate::minimal::requirements::compatible;
use crate::search::Verdict;
use crate::universe::{Requirement, Unavailable};
use crate::way_out::{Ask, WayOut};
use crate::ways_out::Finder;
use crate::ways_out::asks::with;

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
