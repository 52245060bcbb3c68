//! A way out in words: what it does, by which commands or edits, and the facts of it for programs.

use schemars::JsonSchema;
use serde::Serialize;

use crate::ops::Session;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::steps::CommandChange;
use crate::reference::PackageId;
use crate::select::{Ask, WayOut};

/// The words for ignoring the age of versions.
pub(super) const ANY_AGE: &str = "allow versions of any age";

/// A way out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Remedy {
    /// What kind of change it is.
    pub(super) kind: Kind,
    /// What to do, for people.
    pub(crate) text: String,
    /// The commands that do it, one after the other; none if a file must be edited.
    pub(super) commands: Vec<String>,
    /// The package that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<PackageId>,
    /// The package that may replace it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<PackageId>,
    /// The version that is used then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// The file to edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    /// The line to write there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<String>,
    /// What is required instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) changes: Vec<Change>,
    /// The steps, if it takes several: edits, then commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<Remedy>,
    /// What its commands change in manifests, if that is all they do.
    #[serde(skip)]
    pub(super) tries: Option<Vec<CommandChange>>,
}

/// What kind of change a way out is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
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
pub(super) struct Change {
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
    pub(super) fn run(kind: Kind, what: &str, commands: Vec<String>) -> Self {
        let text = format!("{what}: `{}`", commands.join(" && "));
        Self { kind, text, commands, ..Self::default() }
    }
}

impl Change {
    pub(super) fn new(ask: &Ask) -> Self {
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
pub(super) fn way_out_meaning(session: &Session, way_out: &WayOut) -> Option<String> {
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
