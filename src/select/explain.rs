//! Words a conflict for the user: one screen, their own words, from their own requirement down to the clash.

use std::fmt;

use crate::reference::PackageId;
use crate::select::conflict::{Clash, Conflict, Requirer, Requires, WayOut};
use crate::select::filters::Rejection;
use crate::select::fold::Versions;

impl fmt::Display for Conflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Names::of(self);
        for fact in &self.facts {
            writeln!(formatter, "{}", names.fact(fact))?;
        }
        for clash in &self.clashes {
            for line in names.clash(clash) {
                writeln!(formatter, "{line}")?;
            }
        }
        for way_out in &self.ways_out {
            writeln!(formatter, "{}", names.way_out(way_out))?;
        }
        Ok(())
    }
}

/// How packages are called: without their base if all have the same.
struct Names {
    with_base: bool,
}

impl Names {
    fn of(conflict: &Conflict) -> Self {
        let required = conflict.facts.iter().map(|fact| &fact.id);
        let requiring = conflict.facts.iter().filter_map(|fact| match &fact.by {
            Requirer::Package(id, _) => Some(id),
            Requirer::Roots(_) => None,
        });
        let mut bases = required.chain(requiring).map(PackageId::base);
        let first = bases.next();
        Self { with_base: bases.any(|base| Some(base) != first) }
    }

    fn name(&self, id: &PackageId) -> String {
        if self.with_base { id.to_string() } else { id.name().as_str().to_owned() }
    }

    fn fact(&self, fact: &Requires) -> String {
        let (by, verb) = match &fact.by {
            Requirer::Roots(names) => {
                (join(names, "and"), plural(names.len(), "requires", "require"))
            }
            Requirer::Package(id, versions) => (
                format!("{} {versions}", self.name(id)),
                plural(versions.count(), "requires", "require"),
            ),
        };
        format!("{by} {verb} {} {}", self.name(&fact.id), join(&fact.asked, "or"))
    }

    fn clash(&self, clash: &Clash) -> Vec<String> {
        let name = self.name(&clash.id);
        let mut lines = Vec::new();
        if let Some(tried) = &clash.tried {
            lines.push(format!("there is no package {name}"));
            lines.extend(tried.iter().map(|place| format!("  looked at {place}")));
            if !clash.similar.is_empty() {
                let similar: Vec<String> = clash.similar.iter().map(|id| self.name(id)).collect();
                lines.push(format!("  is {} meant?", join(&similar, "or")));
            }
            return lines;
        }
        lines.push(match clash.asked.as_slice() {
            [one] => format!("no version of {name} is {one}"),
            several => format!("no version of {name} is {}", join(several, "and")),
        });
        for (rejection, versions) in &clash.rejected {
            lines.push(format!("  {name} {versions} {}", reason(rejection, versions)));
        }
        if clash.available.is_empty() {
            lines.push(format!("  {name} has no version that can be used"));
        } else if clash.asked.len() == 1 {
            lines.push(format!("  {name} has {}", clash.available));
        }
        lines
    }

    fn way_out(&self, way_out: &WayOut) -> String {
        match way_out {
            WayOut::Relax { by, id, from, to } => {
                format!("in {by}, require {} {to} instead of {from}", self.name(id))
            }
        }
    }
}

/// Why versions are no candidates, as the end of a sentence that they begin.
fn reason(rejection: &Rejection, versions: &Versions) -> String {
    let is = plural(versions.count(), "is", "are");
    let needs = plural(versions.count(), "needs", "need");
    match rejection {
        Rejection::Excluded => format!("{is} excluded by the settings"),
        Rejection::Yanked(reason) if reason.is_empty() => format!("{is} yanked"),
        Rejection::Yanked(reason) => format!("{is} yanked: {reason}"),
        Rejection::TooNew => format!("{is} too new"),
        Rejection::ApiVersion(wanted) => format!("{needs} the manifest format {wanted}"),
        Rejection::MuVersion(wanted) => format!("{needs} mu {wanted}"),
        Rejection::Runtime { fact, wanted, actual } => {
            format!("{needs} {fact} {wanted}, and it is {actual}")
        }
        Rejection::Broken(reason) => format!("cannot be used: {reason}"),
    }
}

fn plural(count: usize, one: &'static str, several: &'static str) -> &'static str {
    if count == 1 { one } else { several }
}

/// `a`, `a and b`, `a, b and c`.
fn join(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
