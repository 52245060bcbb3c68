//! How to use a way out of a conflict: the command to paste, or the file to edit.
//!
//! Selection has found and tried it; this puts it into words. [`Wording::row`] is the table of all kinds of ways out. What to change in the
//! workspace follows from its rows; what to suppose instead, if the failed command is a what-if question, stands in `question`.
//!
//! A [`Remedy`] is a way out in words: what it does, by which commands or edits, and the facts of it for programs.

mod commands;
mod question;

use std::borrow::Cow;
use std::path::Path;
use std::slice;

use schemars::JsonSchema;
use serde::Serialize;

use crate::fs;
use crate::ops::explain::ways_out::commands::{Command, UNPIN};
use crate::ops::requirements::Requirements;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::CommandChange;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{CommandError, OperationScope, Session};
use crate::reference::PackageId;
use crate::select::{Ask, WayOut};
use crate::workspace::Key;

/// Puts ways out into words; leaves out those that no command and no edit can take, and those whose commands would not lead out:
/// `leads_out` tries what they change.
pub(crate) fn remedies(
    session: &Session,
    requirements: &Requirements,
    ways_out: &[WayOut],
    leads_out: &dyn Fn(&WayOut, &[CommandChange]) -> bool,
) -> Vec<Remedy> {
    let wording = Wording { session, requirements };
    let remedies = ways_out.iter().filter_map(|way_out| {
        let remedy = wording.remedy(way_out)?;
        let is_tried = |steps: &Vec<CommandChange>| leads_out(way_out, steps);
        remedy.tries.as_ref().is_none_or(is_tried).then_some(remedy)
    });
    remedies.collect()
}

/// How to search longer than a stopped search.
pub(crate) fn longer(session: &Session, requirements: &Requirements, steps: usize) -> String {
    let (flag, value) = ("--patience", steps.to_string());
    let wording = Wording { session, requirements };
    let command = match &requirements.question {
        Some(question) => wording.ask_with(question, &[(flag, &*value)]),
        None => {
            let commands = wording.commands_again(flag, &value);
            wording.print(&commands.iter().collect::<Vec<_>>(), false).join(" && ")
        }
    };
    format!("search longer: `{command}`")
}

/// Adds ways out to an error, as hints.
pub(crate) fn attach(error: CommandError, remedies: Vec<Remedy>) -> CommandError {
    remedies.into_iter().fold(error, |error, remedy| error.hint(remedy.text))
}

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

/// What a way out changes.
enum Effect<'w> {
    /// What roots require: by commands, or by hand where mu does not edit a manifest.
    Requirements(&'w [Ask]),
    /// Nothing requires this package any more.
    Removal(&'w PackageId),
    /// This package is removed, and added again.
    Reinstallation(&'w PackageId),
    /// The failed command runs again, with this flag and value.
    Again(&'static str, &'static str),
    /// A key of the settings.
    Settings(&'static str, Setting<'w>),
    /// All of these.
    All(&'w [WayOut]),
}

/// What to write for a key of the settings.
enum Setting<'w> {
    /// What is about this package there is taken out.
    Without(&'w PackageId),
    /// A line below the key.
    Below(String),
    /// An entry of the list of `bundled`.
    Bundled(String),
    /// The value, of which there is one.
    Value(&'static str),
    /// A fact of the runtime, and its value.
    Fact(&'w str, &'w str),
}

/// What ways out are put into words with.
struct Wording<'a> {
    session: &'a Session,
    requirements: &'a Requirements,
}

impl Wording<'_> {
    /// The table of ways out, a row for each kind: what it is called, what it does, and what it changes.
    fn row<'w>(&self, way_out: &'w WayOut) -> (Kind, String, Effect<'w>) {
        use Effect::{Again, All, Reinstallation, Removal, Requirements, Settings};
        use Setting::{Below, Bundled, Fact, Value, Without};

        let name = |id| self.short(id);
        match way_out {
            WayOut::Ask(asks) => (Kind::Require, requiring(self.session, asks), Requirements(asks)),
            WayOut::Withdrawn(asks) => {
                let does = format!("{}, although it is yanked", requiring(self.session, asks));
                (Kind::Withdrawn, does, Requirements(asks))
            }
            WayOut::GiveUp(id) => (Kind::Remove, format!("do without {}", name(id)), Removal(id)),
            WayOut::Forget(id, _) => {
                let does = format!("reinstall {} instead of upgrading it", name(id));
                (Kind::Reinstall, does, Reinstallation(id))
            }
            WayOut::Highest => {
                let does = "versions fit together with the highest strategy".to_owned();
                (Kind::Highest, does, Again("--resolution", "highest"))
            }
            WayOut::Minimal => {
                let does = "versions fit together with the minimal strategy".to_owned();
                (Kind::Minimal, does, Again("--resolution", "minimal"))
            }
            WayOut::AnyAge => (Kind::AnyAge, ANY_AGE.to_owned(), Again("--exclude-newer", "0")),
            WayOut::Runtime(fact, value) => {
                let does = format!("suppose that {fact} is {value}");
                (Kind::Runtime, does, Settings(Key::runtime, Fact(fact, value)))
            }
            WayOut::Include(id) => {
                let does = format!("take {} out of", self.excluded(id));
                (Kind::Include, does, Settings(Key::exclude, Without(id)))
            }
            WayOut::NoOverride(id) => {
                let does = format!("take `{}` out of", name(id));
                (Kind::NoOverride, does, Settings(Key::overrides, Without(id)))
            }
            WayOut::Override(id, version) => {
                let what = format!("use {} {version}", name(id));
                let does = format!("{what} against what packages require, at your own risk");
                let line = format!("{id}: {id}#{version}");
                (Kind::Override, does, Settings(Key::overrides, Below(line)))
            }
            WayOut::Bundle(by, id) => {
                let does = format!("let {} use the {} that it carries inside", name(by), name(id));
                (Kind::Bundle, does, Settings(Key::bundled, Bundled(format!("{by}>{id}"))))
            }
            WayOut::Replace(id, by) => {
                // If both are the same, nothing may replace it.
                let does = if id == by {
                    format!("use {} itself beside what would replace it", name(id))
                } else {
                    format!("let only {} replace {}", name(by), name(id))
                };
                let line = format!("{id}: {by}");
                (Kind::Replace, does, Settings(Key::allow_replaces, Below(line)))
            }
            WayOut::TakePlace(by, id) => {
                let (new, old) = (name(by), name(id));
                let does = format!("if {old} is now {new}, let that take its place");
                let line = format!("{by}: {{replaces: [{id}]}}");
                (Kind::TakePlace, does, Settings(Key::packages, Below(line)))
            }
            WayOut::ManyMajors(id) => {
                let does = format!("use several majors of {} side by side", name(id));
                (Kind::ManyMajors, does, Settings(Key::majors, Value("many")))
            }
            WayOut::Together(all) => (Kind::Together, String::new(), All(all)),
        }
    }

    /// How to use a way out: with the same question and other assumptions, if the failed command only asks.
    fn remedy(&self, way_out: &WayOut) -> Option<Remedy> {
        // A what-if question writes nothing, so it is asked again with what would help. A change of the workspace comes
        // with it only as data, for whoever reads JSON.
        let question = self.requirements.question.as_ref();
        let again = question.and_then(|question| self.ask_again(question, way_out));
        let Some((text, command)) = again else {
            // The command excludes it too, so that other settings alone would not help.
            let excludes = |id: &PackageId| {
                let mut excluded = question.iter().flat_map(|question| &question.exclude);
                excluded.any(|text| self.leads_to(id, text))
            };
            let is_of_both = matches!(way_out, WayOut::Include(id) if excludes(id));
            return if is_of_both { None } else { self.change(way_out) };
        };
        let is_asked = matches!(way_out, WayOut::Ask(_));
        let kind = if is_asked { Kind::Require } else { Kind::Suppose };
        let asked = Remedy { kind, text, ..Remedy::default() }.with_commands(vec![command]);
        Some(match self.change(way_out) {
            Some(change) => Remedy { text: asked.text, commands: asked.commands, ..change },
            None => asked,
        })
    }

    /// What to change in this workspace, in one step or several: first the files to edit, because the commands run under the changed
    /// settings, then the commands.
    fn change(&self, way_out: &WayOut) -> Option<Remedy> {
        let (kind, _, effect) = self.row(way_out);
        let all = if let Effect::All(all) = effect { all } else { slice::from_ref(way_out) };
        let others = all.iter().filter(|way_out| **way_out != WayOut::AnyAge);
        let mut steps = others.map(|one| self.step(one)).collect::<Option<Vec<_>>>()?;
        steps.sort_by_key(|(_, commands)| !commands.is_empty());
        // To allow any age is a flag of the other commands, if there are any, and no step of its own.
        let is_any_age = all.contains(&WayOut::AnyAge);
        let is_said_first = is_any_age && steps.iter().any(|(_, commands)| !commands.is_empty());
        if is_any_age && !is_said_first {
            steps.push(self.step(&WayOut::AnyAge)?);
        }
        let commands: Vec<&Command> = steps.iter().flat_map(|(_, commands)| commands).collect();
        let commands = self.print(&commands, is_said_first);
        let mut lines = commands.iter().cloned();
        let steps = steps
            .into_iter()
            .map(|(remedy, own)| remedy.with_commands(lines.by_ref().take(own.len()).collect()));
        let mut steps: Vec<Remedy> = steps.collect();
        if kind != Kind::Together {
            return steps.pop();
        }
        let texts = steps.iter().map(|step| step.text.as_str());
        let texts: Vec<&str> = is_said_first.then_some(ANY_AGE).into_iter().chain(texts).collect();
        let text = texts.join(", and ");
        // What settings change in between cannot be tried.
        let tries = steps.iter().map(|step| step.tries.clone()).collect::<Option<Vec<_>>>();
        let tries = tries.map(|tries| tries.concat());
        Some(Remedy { kind, text, commands, steps, tries, ..Remedy::default() })
    }

    /// One step: what it does, without the commands, and these.
    fn step(&self, way_out: &WayOut) -> Option<(Remedy, Vec<Command>)> {
        let (kind, text, effect) = self.row(way_out);
        let (id, by, version) = match way_out {
            WayOut::GiveUp(id) | WayOut::Include(id) | WayOut::NoOverride(id) => {
                (Some(id), None, None)
            }
            // A version that a command moves to would be there beside the others, and nothing would require it.
            WayOut::ManyMajors(id) if self.is_moved(id) => return None,
            WayOut::ManyMajors(id) => (Some(id), None, None),
            WayOut::Forget(id, version) | WayOut::Override(id, version) => {
                (Some(id), None, Some(version))
            }
            WayOut::Replace(id, by) | WayOut::Bundle(by, id) | WayOut::TakePlace(by, id) => {
                (Some(id), Some(by), None)
            }
            _ => (None, None, None),
        };
        let (id, by, version) = (id.cloned(), by.cloned(), version.cloned());
        let mut remedy = Remedy { kind, text, id, by, version, ..Remedy::default() };
        let commands = match effect {
            Effect::Requirements(asks) => {
                remedy.changes = asks.iter().map(Change::new).collect();
                let is_withdrawn = kind == Kind::Withdrawn;
                match (self.commands_to_ask(asks), asks) {
                    (Some(commands), _) => {
                        if commands[0].front == UNPIN && !is_withdrawn {
                            remedy.text = format!("unpin {}", self.short(&asks[0].to.id));
                        }
                        commands
                    }
                    // A person can change what mu does not edit.
                    (None, [ask]) if !is_withdrawn => {
                        let index = self.member_called(&ask.by)?;
                        if self.is_manifest_editable(index) {
                            return None;
                        }
                        let path = self.session.workspace.members[index].manifest_path.display();
                        remedy.text = format!("{}: mu does not edit `{path}`", remedy.text);
                        Vec::new()
                    }
                    (None, _) => return None,
                }
            }
            Effect::Removal(id) => self.commands_to_give_up(id)?,
            Effect::Reinstallation(id) => self.commands_to_reinstall(id)?,
            Effect::Again(flag, value) => self.commands_again(flag, value),
            Effect::Settings(key, setting) => {
                let file = settings_with(self.session, key);
                (remedy.text, remedy.line) = self.in_settings(&remedy.text, &file, key, setting);
                remedy.file = Some(file);
                Vec::new()
            }
            // Selection finds pairs of single steps.
            Effect::All(_) => return None,
        };
        remedy.tries = Command::all_steps(&commands);
        Some((remedy, commands))
    }

    /// A change of the settings in words, and the line to write.
    fn in_settings(
        &self,
        does: &str,
        file: &str,
        key: &str,
        setting: Setting<'_>,
    ) -> (String, Option<String>) {
        let place = |item: &str| place_in_settings(&self.session.workspace.root, file, key, item);
        let (text, line) = match setting {
            Setting::Without(id) => {
                return (format!("{does} `{key}` in `{}`", place(id.name_str())), None);
            }
            Setting::Below(line) => {
                (format!("{does}: write `{line}` under `{key}` in `{file}`"), line)
            }
            // A list of lines is begun on one line, and continued below its key.
            Setting::Bundled(entry) if self.session.workspace.settings.bundled.is_empty() => {
                let line = format!("{key}: [\"{entry}\"]");
                (format!("{does}: write `{line}` into `{file}`"), line)
            }
            Setting::Bundled(entry) => {
                let line = format!("- \"{entry}\"");
                (format!("{does}: write `{line}` under `{key}` in `{file}`"), line)
            }
            Setting::Value(value) => {
                let (line, at) = (format!("{key}: {value}"), place(key));
                // The key may be there with another value, as it is given once.
                let how = if at == file { "write" } else { &format!("change `{key}` to") };
                (format!("{does}: {how} `{line}` in `{at}`"), line)
            }
            Setting::Fact(fact, value) => {
                let actual = self.requirements.runtime.get(fact).map_or("", String::as_str);
                let (at, shows) = (place(fact), quoted_for_shell(&format!("{fact}={value}")));
                let text = format!(
                    "`{fact}: {actual}` is set in `{at}`; `mu resolve --runtime {shows}` shows what {value} \
                     would lead to"
                );
                (text, format!("{fact}: {value}"))
            }
        };
        (text, Some(line))
    }

    /// The entries of `exclude` about a package.
    fn excluded(&self, id: &PackageId) -> String {
        let excluded = self.session.workspace.settings.exclude.iter();
        let entries = excluded.filter(|exclusion| exclusion.id == *id);
        let entries = entries.map(|exclusion| match &exclusion.versions {
            Some(versions) => format!("`{}#{versions}`", self.short(id)),
            None => format!("`{}`", self.short(id)),
        });
        entries.collect::<Vec<_>>().join(" and ")
    }

    /// Whether the failed command moves this package.
    fn is_moved(&self, id: &PackageId) -> bool {
        let mut asked = self.requirements.asked.iter();
        asked.any(|asked| asked.by.is_move() && asked.requirement.id == *id)
    }

    /// The name of a package on the command line.
    fn short<'i>(&self, id: &'i PackageId) -> Cow<'i, str> {
        self.session.short_name(id)
    }
}

/// `in acme/web, require aws/vpc ^2 instead of ^1`; of a command: `` ask `mu get` for … ``.
fn requiring(session: &Session, asks: &[Ask]) -> String {
    // In the order in which requirers first appear, and each of them once, with all its changes.
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for ask in asks {
        let (from, to) = (ask.from.as_ref(), &ask.to);
        // What is no longer asked for is said in words, because a requirement without a channel says nothing of it.
        let any = |was: Option<&Option<String>>, is: &Option<String>, words| {
            if was.is_some_and(Option::is_some) && is.is_none() { words } else { "" }
        };
        let channel = any(from.map(|from| &from.channel), &to.channel, " in any channel");
        let app = from.map(|from| &from.app_version);
        let wider = channel.to_owned() + any(app, &to.app_version, " of any app version");
        let asked = to.to_string();
        let asked = match asked.strip_prefix(ANY).unwrap_or(&asked) {
            "latest" if !wider.is_empty() => String::new(),
            asked => format!(" {asked}"),
        };
        let mut change = format!("{}{asked}{wider}", session.short_name(&to.id));
        if let Some(from) = from.map(ToString::to_string) {
            // `instead of channel fast`.
            let words = from.strip_prefix(ANY).and_then(|words| words.split_once(' '));
            change.push_str(" instead of ");
            change.push_str(words.map_or(&from, |(_, words)| words));
        }
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

/// The words for ignoring the age of versions.
const ANY_AGE: &str = "allow versions of any age";

/// The start of a requirement without a version that is narrowed otherwise.
const ANY: &str = "latest ";

impl Remedy {
    /// With the commands that do what its text says.
    fn with_commands(self, commands: Vec<String>) -> Self {
        let text = match &commands[..] {
            [] => self.text,
            commands => format!("{}: `{}`", self.text, commands.join(" && ")),
        };
        Self { text, commands, ..self }
    }
}

/// The file of settings to edit: the one with the key, else the workspace's.
fn settings_with(session: &Session, key: &str) -> String {
    let own = ".mu/workspace.yaml";
    let user = session.environment.mu_home.join("config.yaml");
    // Beginnings of lines are enough here: this says where to write, and the file was read as settings before.
    let has = |path: &Path| {
        let text = fs::read_text_if_there(path).ok().flatten().unwrap_or_default();
        text.lines().any(|line| line.trim_start().starts_with(key))
    };
    let is_users = session.scope == OperationScope::Global
        || (!has(&session.workspace.root.join(own)) && has(&user));
    if is_users { user.display().to_string() } else { own.to_owned() }
}

/// A file of settings with the line where `item` is written under `key`, if that is there: `FILE:3`.
pub(super) fn place_in_settings(root: &Path, file: &str, key: &str, item: &str) -> String {
    let text = fs::read_text_if_there(&root.join(file)).ok().flatten();
    let text = text.unwrap_or_default();
    let key = format!("{key}:");
    // Begins with the line of the key, where a list or map may be written in one line.
    let mut below = text.lines().zip(1..).skip_while(|(line, _)| !line.starts_with(&key));
    match below.find(|(line, _)| line.contains(item)) {
        Some((_, number)) => format!("{file}:{number}"),
        None => file.to_owned(),
    }
}
