//! How to use a way out of a conflict: the command to paste, or the file to edit.
//!
//! Selection has found and tried it; this puts it into words.
//!
//! The way out of a what-if question is the same question, with other assumptions. `mu resolve` writes nothing, so its ways out write nothing either, if an assumption can express the
//! change.

mod command;
mod remedy;
mod wording;
mod writing;

use crate::ops::CommandError;
use crate::ops::Session;
use crate::ops::explain::ways_out::command::{narrowing_flags, repeated_flags};
pub(crate) use crate::ops::explain::ways_out::remedy::Remedy;
use crate::ops::explain::ways_out::wording::Wording;
pub(super) use crate::ops::explain::ways_out::wording::line_in;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::steps::CommandChange;
use crate::ops::requirements::supposition::{Narrowing, WhatIf};
use crate::ops::session::error::quoted_for_shell;
use crate::reference::{PackageId, Reference, VersionSpec};
use crate::select::{Ask, WayOut};
use crate::workspace::Resolution;

/// Puts ways out into words; leaves out those that no command and no edit can take, and those whose commands would not lead out:
/// `leads_out` tries what they change.
pub(crate) fn remedies(
    session: &Session,
    requirements: &Requirements,
    ways_out: &[WayOut],
    leads_out: &dyn Fn(&WayOut, &[CommandChange]) -> bool,
) -> Vec<Remedy> {
    let wording = Wording { session, requirements, is_any_age: false, edits_more: false };
    let remedies = ways_out.iter().filter_map(|way_out| {
        let remedy = wording.remedy(way_out)?;
        let is_tried = |steps: &Vec<CommandChange>| leads_out(way_out, steps);
        remedy.tries.as_ref().is_none_or(is_tried).then_some(remedy)
    });
    remedies.collect()
}

/// How to search longer than a stopped search.
pub(crate) fn longer(session: &Session, requirements: &Requirements, steps: usize) -> String {
    let flag = "--patience";
    let command = match &requirements.question {
        Some(question) => {
            let (command, flags) = (command(question), repeated_flags(session, &[flag]));
            format!("{command} {flag} {steps}{flags}")
        }
        None => {
            let wording = Wording { session, requirements, is_any_age: false, edits_more: false };
            wording.again(flag, &steps.to_string()).join(" && ")
        }
    };
    format!("search longer: `{command}`")
}

/// Adds ways out to an error, as hints.
pub(crate) fn attach(error: CommandError, remedies: Vec<Remedy>) -> CommandError {
    remedies.into_iter().fold(error, |error, remedy| error.hint(remedy.text))
}

/// The command that assumes a way out; none if no assumption can express it.
fn again(session: &Session, question: &WhatIf, way_out: &WayOut) -> Option<String> {
    // The command line of the failed question, rebuilt from what it supposed, with a change; flags that the change sets
    // are not repeated in their old form.
    let mut next = NextQuestion { session, question: question.clone(), flags: Vec::new() };
    next.take(way_out)?;
    let without: Vec<&str> = next.flags.iter().map(|(flag, _)| *flag).collect();
    let flags: String = next.flags.iter().map(|(flag, value)| format!(" {flag} {value}")).collect();
    Some(format!("{}{flags}{}", command(&next.question), repeated_flags(session, &without)))
}

/// Whether a question excludes a package.
fn excludes(session: &Session, question: &WhatIf, id: &PackageId) -> bool {
    let mut excluded = question.exclude.iter().filter_map(|text| Reference::parse(text).ok());
    excluded.any(|reference| session.id_of_argument(&reference) == *id)
}

/// A question to ask again.
struct NextQuestion<'a> {
    session: &'a Session,
    question: WhatIf,
    /// Flags with other values than before.
    flags: Vec<(&'static str, &'static str)>,
}

impl NextQuestion<'_> {
    /// Supposes a way out.
    fn take(&mut self, way_out: &WayOut) -> Option<()> {
        let session = self.session;
        let names = |id: &PackageId, text: &str| {
            let reference = Reference::parse(text);
            reference.is_ok_and(|reference| session.id_of_argument(&reference) == *id)
        };
        // `ID#VERSION@CHANNEL`
        let is_of = |id: &PackageId, text: &str| names(id, text.split('#').next().unwrap_or(text));
        let other = &mut self.question;
        match way_out {
            WayOut::Runtime(fact, value) => {
                other.runtime.retain(|text| text.split('=').next() != Some(fact));
                other.runtime.push(format!("{fact}={value}"));
            }
            WayOut::Ask(asks) | WayOut::Withdrawn(asks) => {
                for ask in asks {
                    suppose(session, other, ask, &names)?;
                }
            }
            WayOut::GiveUp(id) => {
                // What the question itself asked for is left out of it. What the workspace requires needs `--without`.
                let given = (other.references.len(), other.with.len());
                other.references.retain(|text| !names(id, text));
                other.with.retain(|text| !names(id, text));
                let left = (other.references.len(), other.with.len());
                if given == left {
                    other.without.push(session.short_name(id).into_owned());
                } else if left.0 + left.1 == 0 || (given.0 > 0 && left.0 == 0) {
                    // The question would be empty.
                    return None;
                }
            }
            WayOut::Highest => self.flags.push(("--resolution", Resolution::Highest.as_str())),
            WayOut::Minimal => self.flags.push(("--resolution", Resolution::Minimal.as_str())),
            WayOut::AnyAge => self.flags.push(("--exclude-newer", "0")),
            WayOut::Include(id) => {
                let given = other.exclude.len();
                other.exclude.retain(|text| !names(id, text));
                // A question can take back its own `--exclude`, but not that of the settings.
                let mut settings = session.workspace.settings.exclude.iter();
                let is_given = other.exclude.len() < given;
                if !is_given || settings.any(|exclusion| exclusion.id == *id) {
                    return None;
                }
            }
            WayOut::Forget(id, _) if other.installed.iter().any(|text| is_of(id, text)) => {
                other.installed.retain(|text| !is_of(id, text));
            }
            WayOut::Together(all) => all.iter().try_for_each(|one| self.take(one))?,
            _ => return None,
        }
        Some(())
    }
}

/// Makes a question assume new requirements; `None` if flags that apply to all references cannot express one
/// for a single reference.
fn suppose(
    session: &Session,
    question: &mut WhatIf,
    ask: &Ask,
    names: &dyn Fn(&PackageId, &str) -> bool,
) -> Option<()> {
    let id = &ask.to.id;
    let mut given = question.references.iter_mut().chain(&mut question.with);
    let text = match given.find(|text| names(id, text)) {
        Some(text) => text,
        None => {
            question.with.push(session.short_name(id).into_owned());
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
    let mut words = vec!["mu resolve".to_owned()];
    words.extend(question.references.iter().map(|text| quoted_for_shell(text)));
    for (flag, texts) in [
        ("--with", &question.with),
        ("--without", &question.without),
        ("--installed", &question.installed),
        ("--runtime", &question.runtime),
        ("--exclude", &question.exclude),
    ] {
        words.extend(texts.iter().map(|text| format!("{flag} {}", quoted_for_shell(text))));
    }
    let Narrowing { channel, app_version, revision, prereleases } = &question.narrowing;
    words.extend(revision.iter().map(|text| format!("--revision {}", quoted_for_shell(text))));
    words.extend(
        question.mu_version.iter().map(|text| format!("--mu-version {}", quoted_for_shell(text))),
    );
    let flags = narrowing_flags(channel.as_deref(), app_version.as_deref(), *prereleases);
    format!("{}{flags}", words.join(" "))
}
