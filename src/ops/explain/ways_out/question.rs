//! The ways out of a what-if question: the same question, with other assumptions.
//!
//! `mu resolve` writes nothing, so its ways out write nothing either, if an assumption can express the change.

use crate::ops::explain::ways_out::commands::{arguments, narrowing_flags, repeated_flags};
use crate::ops::explain::ways_out::{Effect, Setting, Wording};
use crate::ops::requirements::supposition::{Narrowing, WhatIf};
use crate::reference::{PackageId, Reference, VersionSpec};
use crate::select::{Ask, WayOut};
use crate::workspace::Key;

/// Flags with other values than before.
type Flags = Vec<(&'static str, &'static str)>;

impl Wording<'_> {
    /// What assuming a way out does, and the command that does it; none if no assumption can express it.
    pub(super) fn ask_again(
        &self,
        question: &WhatIf,
        way_out: &WayOut,
    ) -> Option<(String, String)> {
        // The command line of the failed question, rebuilt from what it supposed, with a change.
        let (mut next, mut flags) = (question.clone(), Flags::new());
        let does = self.suppose(&mut next, &mut flags, way_out)?;
        Some((does, self.ask_with(&next, &flags)))
    }

    /// The command that asks a question; flags that are set here are not repeated in their old form.
    pub(super) fn ask_with(&self, question: &WhatIf, flags: &[(&str, &str)]) -> String {
        let set: Vec<&str> = flags.iter().map(|(flag, _)| *flag).collect();
        let flags: String = flags.iter().map(|(flag, value)| format!(" {flag} {value}")).collect();
        format!("{}{flags}{}", command(question), repeated_flags(self.session, &set))
    }

    /// Whether a reference of a question leads to a package.
    pub(super) fn leads_to(&self, id: &PackageId, text: &str) -> bool {
        Reference::parse(text).is_ok_and(|reference| self.session.id_of_argument(&reference) == *id)
    }

    /// Supposes a way out, and says what that does.
    fn suppose(
        &self,
        question: &mut WhatIf,
        flags: &mut Flags,
        way_out: &WayOut,
    ) -> Option<String> {
        // `ID#VERSION@CHANNEL`
        let is_of =
            |id: &PackageId, text: &str| self.leads_to(id, text.split('#').next().unwrap_or(text));
        let (_, does, effect) = self.row(way_out);
        match effect {
            Effect::Settings(_, Setting::Fact(fact, value)) => {
                question.runtime.retain(|text| text.split('=').next() != Some(fact));
                question.runtime.push(format!("{fact}={value}"));
            }
            Effect::Requirements(asks) => {
                asks.iter().try_for_each(|ask| suppose_asked(self, question, ask))?;
            }
            Effect::Removal(id) => {
                // What the question itself asked for is left out of it. What the workspace requires needs `--without`.
                let given = (question.references.len(), question.with.len());
                question.references.retain(|text| !self.leads_to(id, text));
                question.with.retain(|text| !self.leads_to(id, text));
                let left = (question.references.len(), question.with.len());
                if given == left {
                    question.without.push(self.short(id).into_owned());
                } else if left.0 + left.1 == 0 || (given.0 > 0 && left.0 == 0) {
                    // The question would be empty.
                    return None;
                }
            }
            Effect::Again(flag, value) => flags.push((flag, value)),
            Effect::Settings(Key::exclude, Setting::Without(id)) => {
                let given = question.exclude.len();
                question.exclude.retain(|text| !self.leads_to(id, text));
                // A question can take back its own `--exclude`, but not that of the settings.
                let mut settings = self.session.workspace.settings.exclude.iter();
                let is_given = question.exclude.len() < given;
                let is_set = settings.any(|exclusion| exclusion.id == *id);
                let does = format!("stop excluding {}", self.short(id));
                return (is_given && !is_set).then_some(does);
            }
            Effect::Reinstallation(id) if question.installed.iter().any(|text| is_of(id, text)) => {
                question.installed.retain(|text| !is_of(id, text));
            }
            Effect::All(all) => {
                let does = all.iter().map(|one| self.suppose(question, flags, one));
                return Some(does.collect::<Option<Vec<_>>>()?.join(", and "));
            }
            _ => return None,
        }
        Some(does)
    }
}

/// Makes a question assume a new requirement; `None` if flags that apply to all references cannot express it for a single one.
fn suppose_asked(wording: &Wording<'_>, question: &mut WhatIf, ask: &Ask) -> Option<()> {
    let id = &ask.to.id;
    let mut given = question.references.iter_mut().chain(&mut question.with);
    let text = match given.find(|text| wording.leads_to(id, text)) {
        Some(text) => text,
        None => {
            question.with.push(wording.short(id).into_owned());
            question.with.last_mut()?
        }
    };
    let reference = Reference::parse(text).ok().filter(|reference| reference.local().is_none())?;
    let spec = Some(ask.to.spec.clone()).filter(|spec| *spec != VersionSpec::Latest);
    *text = reference.with_version(spec).to_string();
    // `--channel` is about all references of the question. It can say what one of them needs only if that is the only
    // one, or if it says so already.
    let is_alone = question.references.len() + question.with.len() == 1;
    let narrowing = Narrowing {
        channel: ask.to.channel.clone(),
        app_version: ask.to.app_version.clone(),
        revision: question.narrowing.revision.clone(),
        prereleases: ask.to.prerelease,
    };
    let is_said = question.narrowing == narrowing;
    question.narrowing = narrowing;
    (is_said || is_alone).then_some(())
}

/// The command line that asks a question.
fn command(question: &WhatIf) -> String {
    let Narrowing { channel, app_version, revision, prereleases } = &question.narrowing;
    let words = [
        ("", &question.references[..]),
        (" --with", &question.with[..]),
        (" --without", &question.without[..]),
        (" --installed", &question.installed[..]),
        (" --runtime", &question.runtime[..]),
        (" --exclude", &question.exclude[..]),
        (" --revision", revision.as_slice()),
        (" --mu-version", question.mu_version.as_slice()),
    ];
    let words: String = words.iter().map(|(flag, texts)| arguments(flag, texts)).collect();
    format!("mu resolve{words}{}", narrowing_flags(channel, app_version, *prereleases))
}
