//! What the lock of another tool has, where there is no Mu.lock yet: whoever begins to use mu for a chart or a KCL module gets the
//! versions that were in use before, if they fit.
//!
//! This is looked at once. Afterwards only Mu.lock counts, and `mu vendor` writes the other lock.

use std::collections::BTreeMap;

use mu_formats::{helm, kcl};

use crate::formats;
use crate::fs;
use crate::ops::Session;
use crate::ops::requirements::names::id_in;
use crate::ops::session::words::count;
use crate::reference::{PackageId, Reference, Version};
use crate::select::{Locked, Selection};
use crate::workspace::Member;

/// The packages that locks of other tools have.
#[derive(Debug, Default)]
pub(super) struct Adopted {
    /// The version of each package, and the lock that has it.
    versions: BTreeMap<PackageId, (Version, &'static str)>,
}

impl Adopted {
    /// What there is beside the manifests of the workspace. A lock that cannot be read has nothing.
    pub(super) fn find(session: &Session) -> Self {
        let mut adopted = Self::default();
        for member in &session.workspace.members {
            let format = formats::format_of(&member.manifest_path).map(|format| format.name);
            let (lock, found) = if format == Some(helm::FORMAT.name) {
                of_chart(session, member)
            } else if format == Some(kcl::FORMAT.name) {
                (kcl::LOCK, of_module(member))
            } else {
                continue;
            };
            for (reference, version) in found {
                let Ok(version) = Version::parse_lenient(&version) else { continue };
                let id = id_in(session, member, &reference);
                adopted.versions.entry(id).or_insert((version, lock));
            }
        }
        adopted
    }

    /// The packages, as selection knows those of a lock.
    pub(super) fn locked(&self) -> impl Iterator<Item = Locked> {
        self.versions.iter().map(|(id, (version, _))| Locked {
            id: id.clone(),
            version: Some(version.clone()),
            commit: None,
            reference: None,
            dependencies: Vec::new(),
        })
    }

    /// Says how many of them were chosen.
    pub(super) fn say(&self, session: &Session, selection: &Selection) {
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        for chosen in &selection.packages {
            if let Some((version, lock)) = self.versions.get(&chosen.id)
                && chosen.version.as_ref() == Some(version)
            {
                *taken.entry(lock).or_default() += 1;
            }
        }
        for (lock, number) in taken {
            let versions = count(number, "version");
            session.events.note(&format!(
                "kept {versions} of {lock}, because there was no Mu.lock yet; `mu update` takes newer ones"
            ));
        }
    }
}

/// What the lock of a chart has, and its name.
fn of_chart(session: &Session, member: &Member) -> (&'static str, Vec<(Reference, String)>) {
    let needs = formats::helms_needs(&member.manifest_path, session.short_names(), true);
    let Ok(helm::Needs { needs, lock }) = needs else { return ("", Vec::new()) };
    let text = fs::read_text_if_there(&member.folder.join(lock)).ok().flatten();
    let locked = text.map(|text| helm::locked(&text)).unwrap_or_default();
    let found = needs.into_iter().enumerate().filter_map(|(at, need)| {
        let reference = need.requirement?.reference;
        // One chart can be there several times, in the order of the manifest.
        let is_it = |(name, _): &&(String, String)| *name == need.name;
        let same = locked.get(at).filter(is_it).or_else(|| locked.iter().find(is_it));
        Some((reference, same?.1.clone()))
    });
    (lock, found.collect())
}

/// What the lock of a KCL module has.
fn of_module(member: &Member) -> Vec<(Reference, String)> {
    let text = fs::read_text_if_there(&member.folder.join(kcl::LOCK)).ok().flatten();
    let locked = text.map(|text| kcl::locked(&text)).unwrap_or_default();
    let parsed =
        |(place, version): (String, String)| Some((Reference::parse(&place).ok()?, version));
    locked.into_iter().filter_map(parsed).collect()
}
