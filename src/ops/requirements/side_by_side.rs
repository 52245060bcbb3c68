//! Packages that a chart lists more than once, each time as something else. Helm has each of them under its alias. mu has one version
//! where one will do, and otherwise several beside each other.

use std::collections::{BTreeMap, BTreeSet};

use mu_formats::helm;

use crate::formats;
use crate::lock::Lockfile;
use crate::ops::Session;
use crate::ops::requirements::Requirements;
use crate::reference::{PackageId, VersionSpec};
use crate::workspace::Member;

impl Requirements {
    /// The packages that a chart of the workspace lists more than once, each time as something else.
    pub(crate) fn listed_apart(&self, session: &Session) -> BTreeSet<PackageId> {
        self.apart(session).into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// Those of them of which one version will not do: the lock has several, or they are pinned to different ones.
    pub(crate) fn side_by_side(
        &self,
        session: &Session,
        lock: Option<&Lockfile>,
    ) -> BTreeSet<PackageId> {
        let is_needed = |(id, specs): &(&PackageId, Vec<&VersionSpec>)| {
            let pins = specs.iter().filter(|spec| matches!(spec, VersionSpec::Pin(_))).count();
            let mut locked = lock.into_iter().flat_map(|lock| lock.find(id));
            pins > 1 || locked.any(|package| !package.beside.is_empty())
        };
        self.apart(session).into_iter().filter(is_needed).map(|(id, _)| id.clone()).collect()
    }

    fn apart(&self, session: &Session) -> Vec<(&PackageId, Vec<&VersionSpec>)> {
        let is_chart = |member: &Member| {
            let format = formats::format_of(&member.manifest_path);
            format.is_some_and(|format| format.name == helm::FORMAT.name)
        };
        let charts: Vec<bool> = session.workspace.members.iter().map(is_chart).collect();
        let mut specs: BTreeMap<(usize, &PackageId), Vec<&VersionSpec>> = BTreeMap::new();
        for asked in &self.asked {
            let Some((member, _)) = asked.line.filter(|(member, _)| charts[*member]) else {
                continue;
            };
            let specs = specs.entry((member, &asked.requirement.id)).or_default();
            if !specs.contains(&&asked.requirement.spec) {
                specs.push(&asked.requirement.spec);
            }
        }
        let several = specs.into_iter().filter(|(_, specs)| specs.len() > 1);
        several.map(|((_, id), specs)| (id, specs)).collect()
    }
}
