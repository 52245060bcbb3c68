//! How to use a way out of a conflict: the command to paste, or the file to edit.
//!
//! Selection has found and tried it; this puts it into words.
//!
//! The way out of a what-if question is the same question, with other assumptions. `mu resolve` writes nothing, so its ways out write nothing either, if an assumption can express the
//! change.
//!
//! A [`Remedy`] is a way out in words: what it does, by which commands or edits, and the facts of it for programs.

mod wording;
mod writing;

use schemars::JsonSchema;
use serde::Serialize;

use crate::ops::explain::ways_out::wording::Wording;
use crate::ops::explain::ways_out::writing::{narrowing_flags, repeated_flags};
use crate::ops::requirements::Requirements;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::{CommandChange, Narrowing, WhatIf};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{CommandError, Session};
use crate::reference::{PackageId, Reference, VersionSpec};
use crate::select::{Ask, WayOut};
use crate::workspace::Resolution;

pub(super) use crate::ops::explain::ways_out::wording::line_in;

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

/// The words for ignoring the age of versions.
const ANY_AGE: &str = "allow versions of any age";

/// A way out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Remedy {
    /// What kind of change it is.
    kind: Kind,
    /// What to do, for people.
    pub(crate) text: String,
    /// The commands that do it, one after the other; none if a file must be edited.
    commands: Vec<String>,
    /// The package that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<PackageId>,
    /// The package that may replace it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<PackageId>,
    /// The version that is used then.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The file to edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The line to write there.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    /// What is required instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Change>,
    /// The steps, if it takes several: edits, then commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Remedy>,
    /// What its commands change in manifests, if that is all they do.
    #[serde(skip)]
    tries: Option<Vec<CommandChange>>,
}

/// What kind of change a way out is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// Require something else.
    #[default]
    Require,
    /// Pin a version that was withdrawn.
    Withdrawn,
    /// Change a fact of the runtime.
    Runtime,
    /// Drop the requirement of a package.
    Remove,
    /// Ask the same question with other assumptions.
    Suppose,
    /// Choose with the highest strategy.
    Highest,
    /// Choose with the minimal strategy.
    Minimal,
    /// Allow versions of any age.
    AnyAge,
    /// Remove a package from `exclude`.
    Include,
    /// Remove a package from `overrides`.
    NoOverride,
    /// Choose in `bundled` which of a package's inner copies are used.
    Bundle,
    /// Allow in `allowReplaces` that a package replaces another.
    Replace,
    /// Say in `packages` that a package replaces another.
    TakePlace,
    /// Let packages be chosen once for each major version.
    ManyMajors,
    /// Use one version, whatever is required.
    Override,
    /// Remove a package, and add it again.
    Reinstall,
    /// Several of these.
    Together,
}

/// A requirement, and its replacement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Change {
    /// What requires it.
    by: String,
    /// The package.
    id: PackageId,
    /// The current requirement; `None` if there is none.
    from: Option<String>,
    /// What to require instead.
    to: String,
    /// The version that is chosen then.
    version: String,
}

impl Remedy {
    /// A way out by commands.
    fn run(kind: Kind, what: &str, commands: Vec<String>) -> Self {
        let text = format!("{what}: `{}`", commands.join(" && "));
        Self { kind, text, commands, ..Self::default() }
    }
}

impl Change {
    fn new(ask: &Ask) -> Self {
        Self {
            by: ask.by.clone(),
            id: ask.to.id.clone(),
            from: ask.from.as_ref().map(ToString::to_string),
            to: ask.to.to_string(),
            version: ask.version.clone(),
        }
    }
}

/// What a way out does, without the command; none if only an edit of the settings can do it.
fn way_out_meaning(session: &Session, way_out: &WayOut) -> Option<String> {
    let short = |id: &PackageId| session.short_name(id).into_owned();
    Some(match way_out {
        WayOut::Ask(asks) => requiring(session, asks),
        WayOut::Withdrawn(asks) => {
            format!("{}, although it is yanked", requiring(session, asks))
        }
        WayOut::Runtime(fact, value) => format!("suppose that {fact} is {value}"),
        WayOut::GiveUp(id) => format!("do without {}", short(id)),
        WayOut::Highest => "versions fit together with the highest strategy".to_owned(),
        WayOut::Minimal => "versions fit together with the minimal strategy".to_owned(),
        WayOut::AnyAge => ANY_AGE.to_owned(),
        WayOut::Include(id) => format!("stop excluding {}", short(id)),
        WayOut::Forget(id, _) => format!("reinstall {} instead of upgrading it", short(id)),
        WayOut::Together(all) => {
            let all: Option<Vec<String>> =
                all.iter().map(|one| way_out_meaning(session, one)).collect();
            all?.join(", and ")
        }
        WayOut::Bundle(..)
        | WayOut::NoOverride(_)
        | WayOut::Replace(..)
        | WayOut::TakePlace(..)
        | WayOut::ManyMajors(_)
        | WayOut::Override(..) => return None,
    })
}

/// `in acme/web, require aws/vpc ^2 instead of ^1`; of a command: `` ask `mu get` for … ``.
fn requiring(session: &Session, asks: &[Ask]) -> String {
    // In the order in which requirers first appear, and each of them once, with all its changes.
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for ask in asks {
        let from = ask.from.as_ref();
        // What is no longer asked for is said in words, because a requirement without a channel says nothing of it.
        let wider = [
            (from.is_some_and(|from| from.channel.is_some()), &ask.to.channel, "in any channel"),
            (
                from.is_some_and(|from| from.app_version.is_some()),
                &ask.to.app_version,
                "of any app version",
            ),
        ];
        let wider: String = wider
            .into_iter()
            .filter(|(was, is, _)| *was && is.is_none())
            .map(|(.., words)| format!(" {words}"))
            .collect();
        let asked = ask.to.to_string();
        let asked = match narrowed(&asked) {
            "latest" if !wider.is_empty() => String::new(),
            asked => format!(" {asked}"),
        };
        let to = format!("{}{asked}{wider}", session.short_name(&ask.to.id));
        let change = match from.map(ToString::to_string) {
            None => to,
            Some(from) => {
                // `instead of channel fast`.
                let words = from.strip_prefix(ANY).map(|words| words.split_once(' '));
                format!("{to} instead of {}", words.flatten().map_or(&*from, |(_, words)| words))
            }
        };
        match groups.iter_mut().find(|(by, _)| *by == ask.by) {
            Some((_, changes)) => changes.push(change),
            None => groups.push((&ask.by, vec![change])),
        }
    }
    let groups = groups.into_iter().map(|(by, changes)| {
        let changes = changes.join(", and ");
        match Requester::from_name(by) {
            Requester::Member(_) => format!("in {by}, require {changes}"),
            _ => format!("ask `{by}` for {changes}"),
        }
    });
    groups.collect::<Vec<_>>().join(", and ")
}

/// The start of a requirement without a version that is narrowed otherwise.
const ANY: &str = "latest ";

fn narrowed(asked: &str) -> &str {
    asked.strip_prefix(ANY).unwrap_or(asked)
}
