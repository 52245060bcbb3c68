//! What the failed command was supposed to do: the suggested command must still do it.

use crate::index::Requirement;
use crate::manifest;
use crate::ops::explain::ways_out::command::Command;
use crate::ops::explain::ways_out::wording::Wording;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Asked, narrowing};
use crate::reference::{PackageId, VersionSpec};
use crate::select::Ask;

impl Wording<'_> {
    /// Whether the failed command added this requirement.
    pub(super) fn is_new(&self, asked: &Asked) -> bool {
        let session = self.session;
        let mut members = session.workspace.members.iter();
        let member = members.find(|member| Requester::of(member) == asked.by);
        match (&asked.by, member) {
            (by, _) if by.is_move() => true,
            _ if asked.reference.local().is_some() => false,
            (Requester::CommandLine, _) => {
                let known = session.lockfile().ok().flatten().unwrap_or_default();
                let narrowing = narrowing(asked.requirement.clone());
                !known.extra.contains(&format!("{}{narrowing}", asked.reference))
            }
            (_, Some(member)) => {
                let written = &member.manifest;
                let Requirement { id, spec, channel, app_version, prerelease } = &asked.requirement;
                let mut known = written.dependencies.iter().chain(&written.dev_dependencies);
                let is_alike = |one: &manifest::Requirement| {
                    one.reference.spec() == *spec
                        && (&one.channel, &one.app_version) == (channel, app_version)
                        && one.prerelease == *prerelease
                };
                // Whether it is the same name is told sooner than what a name means.
                let is_same =
                    |one: &manifest::Requirement| one.reference == asked.reference && is_alike(one);
                !known.clone().any(is_same)
                    && !known.any(|one| is_alike(one) && self.is_about(member, one, id))
            }
            (_, None) => asked.line.is_none(),
        }
    }

    /// What is left to do after `asks`, without anything about `given_up`.
    pub(super) fn pending(&self, asks: &[Ask], given_up: Option<&PackageId>) -> Vec<Command> {
        // It is done if it is what changes, or if a manifest then requires the same, or any version if none
        // was named.
        let is_done = |asked: &Asked| {
            asks.iter().filter(|ask| ask.to.id == asked.requirement.id).any(|ask| {
                let is_same = ask.to.spec == asked.requirement.spec
                    || asked.requirement.spec == VersionSpec::Latest && asked.by.as_str() == ask.by;
                ask.from.as_ref() == Some(&asked.requirement) || (!asked.by.is_move() && is_same)
            })
        };
        let asked = self.requirements.asked.iter();
        let asked = asked.filter(|asked| {
            given_up != Some(&asked.requirement.id) && self.is_new(asked) && !is_done(asked)
        });
        asked
            .filter_map(|asked| {
                if asked.by.is_move() {
                    let front = format!("{}{}", asked.by, self.global());
                    return Some(Command::new(front, asked.reference.to_string()));
                }
                self.command(&[], &as_before(asked), asked.line.map(|(_, list)| list))
            })
            .collect()
    }
}

/// The requirement as it is now.
pub(super) fn as_before(asked: &Asked) -> Ask {
    Ask {
        by: asked.by.to_string(),
        from: Some(asked.requirement.clone()),
        to: asked.requirement.clone(),
        version: String::new(),
    }
}
