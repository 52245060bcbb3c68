//! Ways out of a question what would be: the same question, with other suppositions.
//!
//! `mu resolve` writes nothing, so neither do its ways out, as far as a supposition can stand for a change.

use crate::ops::Session;
use crate::ops::explain::ways_out::{ANY_AGE, LEAST, narrowing, repeated};
use crate::ops::requirements::supposition::WhatIf;
use crate::ops::session::error::quoted;
use crate::reference::{PackageId, Reference, VersionSpec};
use crate::select::{Ask, WayOut};
use crate::workspace::Resolution;

/// What to do, and the command that supposes it; none if no supposition stands for the way out.
pub(crate) fn again(
    session: &Session,
    question: &WhatIf,
    way_out: &WayOut,
    short: &dyn Fn(&PackageId) -> String,
) -> Option<(String, String)> {
    let mut supposed = Supposed { session, question: question.clone(), flags: Vec::new(), short };
    let text = supposed.take(way_out)?;
    let without: Vec<&str> = supposed.flags.iter().map(|(flag, _)| *flag).collect();
    let flags: String =
        supposed.flags.iter().map(|(flag, value)| format!(" {flag} {value}")).collect();
    let again = format!("{}{flags}{}", command(&supposed.question), repeated(session, &without));
    Some((text, again))
}

/// A question that is to be asked again.
struct Supposed<'a> {
    session: &'a Session,
    question: WhatIf,
    /// Flags with other values than before.
    flags: Vec<(&'static str, &'static str)>,
    short: &'a dyn Fn(&PackageId) -> String,
}

impl Supposed<'_> {
    /// Supposes a way out; gives what that means, in words.
    fn take(&mut self, way_out: &WayOut) -> Option<String> {
        let session = self.session;
        let names = |id: &PackageId, text: &str| {
            let reference = Reference::parse(text);
            reference.is_ok_and(|reference| session.id_of(&reference) == *id)
        };
        let (other, short) = (&mut self.question, self.short);
        Some(match way_out {
            WayOut::Ask(asks) => {
                for ask in asks {
                    suppose(other, ask, &names, short)?;
                }
                let changes: Vec<String> = asks.iter().map(|ask| change(ask, short)).collect();
                format!("ask for {}", changes.join(", and "))
            }
            WayOut::GiveUp(id) => {
                let given = (other.references.len(), other.with.len());
                other.references.retain(|text| !names(id, text));
                other.with.retain(|text| !names(id, text));
                let left = (other.references.len(), other.with.len());
                if given == left {
                    other.without.push(short(id));
                } else if left.0 + left.1 == 0 || (given.0 > 0 && left.0 == 0) {
                    // Nothing that was asked would be left of the question.
                    return None;
                }
                format!("do without {}", short(id))
            }
            WayOut::Highest => {
                self.flags.push(("--resolution", Resolution::Highest.as_str()));
                "choose newer versions, which fit together".to_owned()
            }
            WayOut::Minimal => {
                self.flags.push(("--resolution", Resolution::Minimal.as_str()));
                LEAST.to_owned()
            }
            WayOut::AnyAge => {
                self.flags.push(("--exclude-newer", "0"));
                ANY_AGE.to_owned()
            }
            WayOut::Include(id) => {
                let given = other.exclude.len();
                other.exclude.retain(|text| !names(id, text));
                let mut settings = session.workspace.settings.exclude.iter();
                let is_given = other.exclude.len() < given;
                if !is_given || settings.any(|exclusion| exclusion.id == *id) {
                    return None;
                }
                format!("let {} in again", short(id))
            }
            WayOut::Forget(id, _) if other.installed.iter().any(|text| names(id, text)) => {
                other.installed.retain(|text| !names(id, text));
                format!("install {} anew instead of upgrading it", short(id))
            }
            WayOut::Together(all) => {
                let texts: Vec<String> =
                    all.iter().map(|one| self.take(one)).collect::<Option<_>>()?;
                texts.join(", and ")
            }
            _ => return None,
        })
    }
}

/// `elk ^2 instead of ^1`.
pub(crate) fn change(ask: &Ask, short: &dyn Fn(&PackageId) -> String) -> String {
    let id = short(&ask.to.id);
    match &ask.from {
        Some(from) => format!("{id} {} instead of {from}", ask.to),
        None => format!("{id} {}", ask.to),
    }
}

/// Makes a question suppose what is to be asked; none if flags for all that is given cannot say it of one thing.
fn suppose(
    question: &mut WhatIf,
    ask: &Ask,
    names: &dyn Fn(&PackageId, &str) -> bool,
    short: &dyn Fn(&PackageId) -> String,
) -> Option<()> {
    let id = &ask.to.id;
    let mut given = question.references.iter_mut().chain(&mut question.with);
    let text = match given.find(|text| names(id, text)) {
        Some(text) => text,
        None => {
            question.with.push(short(id));
            question.with.last_mut()?
        }
    };
    let reference = Reference::parse(text).ok().filter(|reference| reference.local().is_none())?;
    let spec = Some(ask.to.spec.clone()).filter(|spec| *spec != VersionSpec::Latest);
    *text = reference.with_version(spec).to_string();
    let is_alone = question.references.len() + question.with.len() == 1;
    let (channel, app_version) = (ask.to.channel.clone(), ask.to.app_version.clone());
    let is_said = question.channel == channel
        && question.app_version == app_version
        && question.prereleases == ask.to.prerelease;
    (question.channel, question.app_version) = (channel, app_version);
    question.prereleases = ask.to.prerelease;
    (is_said || is_alone).then_some(())
}

/// The command line that asks a question.
pub(crate) fn command(question: &WhatIf) -> String {
    let mut words = vec!["mu resolve".to_owned()];
    words.extend(question.references.iter().map(|text| quoted(text)));
    for (flag, texts) in [
        ("--with", &question.with),
        ("--without", &question.without),
        ("--installed", &question.installed),
        ("--runtime", &question.runtime),
        ("--exclude", &question.exclude),
    ] {
        words.extend(texts.iter().map(|text| format!("{flag} {}", quoted(text))));
    }
    let flags = narrowing(
        question.channel.as_deref(),
        question.app_version.as_deref(),
        question.prereleases,
    );
    format!("{}{flags}", words.join(" "))
}
