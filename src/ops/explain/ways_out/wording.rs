//! What to change in this workspace, for each way out.
//!
//! The failed command was supposed to do something: the suggested command must still do it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::index::Requirement;
use crate::ops::explain::ways_out;
use crate::ops::explain::ways_out::writing::{ADD, Command, UNPIN};
use crate::ops::explain::ways_out::{ANY_AGE, Change, Kind, Remedy, way_out_meaning};
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::CommandChange;
use crate::ops::requirements::{Asked, Requirements, narrowing};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::named;
use crate::ops::{OperationScope, Session};
use crate::reference::{PackageId, VersionSpec};
use crate::select::{Ask, WayOut};
use crate::workspace::Key;
use crate::{fs, manifest};

pub(super) struct Wording<'a> {
    pub(super) session: &'a Session,
    pub(super) requirements: &'a Requirements,
    /// Whether commands should allow versions of any age.
    pub(super) is_any_age: bool,
    /// Whether commands that edit more manifests follow.
    pub(super) edits_more: bool,
}

impl Wording<'_> {
    /// The flags that a command needs to work on the same workspace as this session.
    pub(super) fn global(&self) -> &'static str {
        match self.session.scope {
            OperationScope::Workspace => "",
            OperationScope::Global => " --global",
        }
    }

    /// How to use a way out: with the same question and other assumptions, if the failed command only asks.
    pub(super) fn remedy(&self, way_out: &WayOut) -> Option<Remedy> {
        // A what-if question writes nothing, so it is asked again with what would help. A change of the workspace comes
        // with it only as data, for whoever reads JSON.
        let question = self.requirements.question.as_ref();
        let again = question.and_then(|question| ways_out::again(self.session, question, way_out));
        let Some(command) = again else {
            // The command excludes it too, so that other settings alone would not help.
            let is_excluded = |id: &PackageId| {
                question.is_some_and(|question| ways_out::excludes(self.session, question, id))
            };
            let is_of_both = matches!(way_out, WayOut::Include(id) if is_excluded(id));
            return if is_of_both { None } else { self.change(way_out) };
        };
        let is_asked = matches!(way_out, WayOut::Ask(_));
        let kind = if is_asked { Kind::Require } else { Kind::Suppose };
        let other = Remedy::run(kind, &way_out_meaning(self.session, way_out)?, vec![command]);
        Some(match self.change(way_out) {
            Some(change) => Remedy { text: other.text, commands: other.commands, ..change },
            None => other,
        })
    }

    /// What to change in this workspace.
    fn change(&self, way_out: &WayOut) -> Option<Remedy> {
        // `run` is for commands with arguments of their own, `again` for the failed command once more with another
        // flag.
        let run = |kind, commands: Vec<Command>| {
            Some(self.run(kind, &way_out_meaning(self.session, way_out)?, &commands, ""))
        };
        let again = |kind, flag: &str, value: &str| {
            let meaning = way_out_meaning(self.session, way_out)?;
            Some(self.run(kind, &meaning, &self.commands_again(flag, value), flag))
        };
        match way_out {
            // By command if mu edits the manifests, as `unpin` if that is all it takes, and otherwise as a sentence
            // that a person follows.
            WayOut::Ask(asks) => {
                let remedy = match (self.commands_to_ask(asks), &asks[..]) {
                    (None, [ask]) => self.by_hand(ask, way_out_meaning(self.session, way_out)?)?,
                    (Some(commands), [ask]) if commands[0].front == UNPIN => {
                        let what = format!("unpin {}", self.short(&ask.to.id));
                        self.run(Kind::Require, &what, &commands, "")
                    }
                    (commands, _) => run(Kind::Require, commands?)?,
                };
                Some(Remedy { changes: asks.iter().map(Change::new).collect(), ..remedy })
            }
            WayOut::Withdrawn(asks) => {
                let remedy = run(Kind::Withdrawn, self.commands_to_ask(asks)?)?;
                Some(Remedy { changes: asks.iter().map(Change::new).collect(), ..remedy })
            }
            WayOut::Runtime(fact, value) => Some(self.runtime(fact, value)),
            WayOut::GiveUp(id) => {
                let remedy = run(Kind::Remove, self.commands_to_give_up(id)?)?;
                Some(Remedy { id: Some(id.clone()), ..remedy })
            }
            WayOut::Highest => again(Kind::Highest, "--resolution", "highest"),
            WayOut::Minimal => again(Kind::Minimal, "--resolution", "minimal"),
            WayOut::AnyAge => again(Kind::AnyAge, "--exclude-newer", "0"),
            WayOut::Forget(id, version) => {
                let remedy = run(Kind::Reinstall, self.commands_to_reinstall(id)?)?;
                Some(Remedy { id: Some(id.clone()), version: Some(version.clone()), ..remedy })
            }
            WayOut::Include(id) => {
                let excluded = self.session.workspace.settings.exclude.iter();
                let entries: Vec<String> = excluded
                    .filter(|exclusion| exclusion.id == *id)
                    .map(|exclusion| match &exclusion.versions {
                        Some(versions) => format!("`{}#{versions}`", self.short(id)),
                        None => format!("`{}`", self.short(id)),
                    })
                    .collect();
                let what = format!("take {} out of", entries.join(" and "));
                Some(self.edit(Kind::Include, id, &what, Key::exclude, None))
            }
            WayOut::Bundle(by, id) => {
                let (short, carried) = (self.short(by), self.short(id));
                let what = format!("let {short} use the {carried} that it carries inside");
                let entry = format!("{by}>{id}");
                // A list of lines is begun on one line, and continued below its key.
                let remedy = if self.session.workspace.settings.bundled.is_empty() {
                    let (line, file) =
                        (format!("bundled: [\"{entry}\"]"), self.settings_with(Key::bundled));
                    let text = format!("{what}: write `{line}` into `{file}`");
                    let (file, line) = (Some(file), Some(line));
                    let kind = Kind::Bundle;
                    Remedy { kind, text, id: Some(id.clone()), file, line, ..Remedy::default() }
                } else {
                    let line = Some(format!("- \"{entry}\""));
                    self.edit(Kind::Bundle, id, &what, Key::bundled, line)
                };
                Some(Remedy { by: Some(by.clone()), ..remedy })
            }
            WayOut::NoOverride(id) => {
                let what = format!("take `{}` out of", self.short(id));
                Some(self.edit(Kind::NoOverride, id, &what, Key::overrides, None))
            }
            WayOut::Replace(id, by) => {
                let short = self.short(id);
                let what = if id == by {
                    format!("use {short} itself beside what would replace it")
                } else {
                    format!("let only {} replace {short}", self.short(by))
                };
                let line = Some(format!("{id}: {by}"));
                let remedy = self.edit(Kind::Replace, id, &what, Key::allow_replaces, line);
                Some(Remedy { by: Some(by.clone()), ..remedy })
            }
            WayOut::TakePlace(by, id) => {
                let (new, old) = (self.short(by), self.short(id));
                let what = format!("if {old} is now {new}, let that take its place");
                let line = Some(format!("{by}: {{replaces: [{id}]}}"));
                let remedy = self.edit(Kind::TakePlace, id, &what, Key::packages, line);
                Some(Remedy { by: Some(by.clone()), ..remedy })
            }
            // A version that a command moves to would be there beside the others, and nothing would require it.
            WayOut::ManyMajors(id) => (!self.is_moved(id)).then(|| self.many_majors(id)),
            WayOut::Override(id, version) => {
                let short = self.short(id);
                let what = format!(
                    "use {short} {version} against what packages require, at your own risk"
                );
                let line = Some(format!("{id}: {id}#{version}"));
                let remedy = self.edit(Kind::Override, id, &what, Key::overrides, line);
                Some(Remedy { version: Some(version.clone()), ..remedy })
            }
            WayOut::Together(all) => self.together(all),
        }
    }

    /// Several steps: first the files to edit, then the commands, which each allow new versions if that is
    /// one of the steps.
    fn together(&self, all: &[WayOut]) -> Option<Remedy> {
        // To allow any age is a flag of the commands that follow, if there are any, and no step of its own.
        let is_any_age = all.contains(&WayOut::AnyAge);
        let wording = Wording { is_any_age, ..*self };
        let others = all.iter().filter(|way_out| **way_out != WayOut::AnyAge);
        let steps = others.map(|way_out| Some((way_out, wording.change(way_out)?)));
        let mut steps: Vec<(&WayOut, Remedy)> = steps.collect::<Option<_>>()?;
        let has_commands = |step: &Remedy| !step.commands.is_empty();
        // Edits first, because the commands run under the changed settings.
        steps.sort_by_key(|(_, step)| has_commands(step));
        let edits = |step: &Remedy| step.commands.iter().any(|line| line.starts_with(ADD));
        // If several commands edit manifests, versions are chosen only after the last one: in between, they need not
        // fit together. So the earlier ones are worded again, as those that edit and do nothing else.
        if let Some(last) = steps.iter().rposition(|(_, step)| edits(step)) {
            let wording = Wording { edits_more: true, ..wording };
            for (way_out, step) in steps.iter_mut().take(last).filter(|(_, step)| edits(step)) {
                *step = wording.change(way_out)?;
            }
        }
        let mut steps: Vec<Remedy> = steps.into_iter().map(|(_, step)| step).collect();
        let is_said_first = is_any_age && steps.iter().any(has_commands);
        if is_any_age && !is_said_first {
            steps.push(self.change(&WayOut::AnyAge)?);
        }
        let texts = steps.iter().map(|step| step.text.as_str());
        let texts: Vec<&str> = is_said_first.then_some(ANY_AGE).into_iter().chain(texts).collect();
        let commands = steps.iter().flat_map(|step| step.commands.clone()).collect();
        let text = texts.join(", and ");
        // What settings change in between cannot be tried.
        let tries = steps.iter().map(|step| step.tries.clone());
        let tries =
            tries.collect::<Option<Vec<_>>>().map(|all| all.into_iter().flatten().collect());
        Some(Remedy { kind: Kind::Together, text, commands, steps, tries, ..Remedy::default() })
    }

    /// An edit of the settings: of a key, or a line below it.
    fn edit(
        &self,
        kind: Kind,
        id: &PackageId,
        what: &str,
        key: &str,
        line: Option<String>,
    ) -> Remedy {
        let file = self.settings_with(key);
        let text = match &line {
            Some(line) => format!("{what}: write `{line}` under `{key}` in `{file}`"),
            None => format!("{what} `{key}` in `{}`", self.placed(&file, key, id.name_str())),
        };
        Remedy { kind, text, id: Some(id.clone()), file: Some(file), line, ..Remedy::default() }
    }

    /// Whether the failed command moves this package.
    fn is_moved(&self, id: &PackageId) -> bool {
        let mut asked = self.requirements.asked.iter();
        asked.any(|asked| asked.by.is_move() && asked.requirement.id == *id)
    }

    /// An edit of the settings that lets packages be chosen once for each major.
    fn many_majors(&self, id: &PackageId) -> Remedy {
        let (key, line) = (Key::majors, "majors: many");
        let file = self.settings_with(key);
        // The key may be there with another value, as it is given once.
        let how = match line_in(&self.session.workspace.root.join(&file), key, key) {
            Some(at) => format!("change `{key}` to `{line}` in `{file}:{at}`"),
            None => format!("write `{line}` in `{file}`"),
        };
        let text = format!("use several majors of {} side by side: {how}", self.short(id));
        let (id, file, line) = (Some(id.clone()), Some(file), Some(line.to_owned()));
        Remedy { kind: Kind::ManyMajors, text, id, file, line, ..Remedy::default() }
    }

    /// An edit of a fact of the runtime, and the command that shows its effect.
    fn runtime(&self, fact: &str, value: &str) -> Remedy {
        let file = self.settings_with(Key::runtime);
        let actual = self.requirements.runtime.get(fact).map_or("", String::as_str);
        let place = self.placed(&file, Key::runtime, fact);
        let line = format!("{fact}: {value}");
        let shows = quoted_for_shell(&format!("{fact}={value}"));
        let text = format!(
            "`{fact}: {actual}` is set in `{place}`; `mu resolve --runtime {shows}` shows what {value} \
             would lead to"
        );
        let (file, line) = (Some(file), Some(line));
        Remedy { kind: Kind::Runtime, text, file, line, ..Remedy::default() }
    }

    /// A file of settings with the line where `item` is written under `key`, if that is there: `FILE:3`.
    fn placed(&self, file: &str, key: &str, item: &str) -> String {
        match line_in(&self.session.workspace.root.join(file), key, item) {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        }
    }

    /// A requirement that only a person can change, because mu does not edit its manifest.
    fn by_hand(&self, ask: &Ask, what: String) -> Option<Remedy> {
        let members = &self.session.workspace.members;
        let index =
            members.iter().position(|one| Requester::from_member(one).as_str() == ask.by)?;
        let path = members[index].manifest_path.display();
        let text = format!("{what}: mu does not edit `{path}`");
        (!self.is_manifest_editable(index)).then(|| Remedy {
            kind: Kind::Require,
            text,
            ..Remedy::default()
        })
    }

    fn commands_to_ask(&self, asks: &[Ask]) -> Option<Vec<Command>> {
        let mut commands: Vec<Command> = Vec::new();
        for ask in asks {
            for command in self.commands_for(asks, ask)? {
                Command::join(&mut commands, command);
            }
        }
        for command in self.pending(asks, None) {
            Command::join(&mut commands, command);
        }
        // A command that is to find a version comes last: all that is required is known then.
        commands.sort_by_key(Command::has_open);
        Some(commands)
    }

    /// A way out by commands.
    fn run(&self, kind: Kind, what: &str, commands: &[Command], without: &str) -> Remedy {
        let tries = Command::all_steps(commands);
        Remedy { tries, ..Remedy::run(kind, what, self.print(commands, without)) }
    }

    /// The commands that drop a package; none if the failed command requires nothing else.
    fn commands_to_give_up(&self, id: &PackageId) -> Option<Vec<Command>> {
        let all = &self.requirements.asked;
        let asked = all.iter().filter(|asked| asked.requirement.id == *id);
        // What the failed command itself asks for is in no file. It is left out of the command, if anything else is
        // left of that.
        let (new, asked): (Vec<&Asked>, Vec<&Asked>) = asked.partition(|asked| self.is_new(asked));
        let pending = self.pending(&[], Some(id));
        if !new.is_empty() && pending.is_empty() {
            return None;
        }
        let members = &self.session.workspace.members;
        let around = named::around(self.session).ok().flatten();
        let mut commands: Vec<Command> = Vec::new();
        for asked in asked {
            let own = asked.line.map(|(member, _)| member);
            if own.is_some_and(|own| !self.is_manifest_editable(own)) {
                return None;
            }
            let front = match own {
                // `mu remove` depends on the current folder.
                Some(own) if around.is_some_and(|around| around != own) => {
                    format!(
                        "mu -C {} remove",
                        quoted_for_shell(&members[own].folder.display().to_string())
                    )
                }
                _ => format!("mu remove{}", self.global()),
            };
            if !commands.iter().any(|known| known.front == front) {
                let place = own.filter(|own| around.is_some_and(|around| around != *own));
                let command = Command::new(front, self.short(id).into_owned());
                commands.push(command.with_step(CommandChange::Remove(place, id.clone())));
            }
        }
        commands.extend(pending);
        Some(commands)
    }

    /// The commands that reinstall what cannot be upgraded step by step; none if more than one requires it.
    fn commands_to_reinstall(&self, id: &PackageId) -> Option<Vec<Command>> {
        let mut asked = self.requirements.asked.iter().filter(|asked| asked.requirement.id == *id);
        let add = self.command(&[], &as_before(asked.next()?), None)?;
        let remove =
            Command::new(format!("mu remove{}", self.global()), self.short(id).into_owned());
        asked.next().is_none().then(|| vec![remove, add])
    }

    /// The failed command, with another value of a flag.
    pub(super) fn again(&self, flag: &str, value: &str) -> Vec<String> {
        self.print(&self.commands_again(flag, value), flag)
    }

    fn commands_again(&self, flag: &str, value: &str) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::new();
        for mut command in self.pending(&[], None) {
            command.back.push_str(&format!(" {flag} {value}"));
            Command::join(&mut commands, command);
        }
        if commands.is_empty() {
            let back = format!(" {flag} {value}");
            let (front, references) = (self.get(), Vec::new());
            commands.push(Command { front, references, back, steps: None });
        }
        commands
    }

    fn print(&self, commands: &[Command], without: &str) -> Vec<String> {
        // The last command that edits a manifest chooses versions; those before it only edit.
        let last = commands.iter().rposition(|command| command.front.starts_with(ADD));
        let lines = commands.iter().enumerate().map(|(index, command)| {
            let edits_more = self.edits_more || last.is_some_and(|last| index < last);
            command.command_text(self.session, without, self.is_any_age, edits_more)
        });
        lines.collect()
    }

    /// The command that installs here.
    pub(super) fn get(&self) -> String {
        format!("mu get{}", self.global())
    }

    /// The name of a package on the command line.
    pub(super) fn short<'i>(&self, id: &'i PackageId) -> Cow<'i, str> {
        self.session.short_name(id)
    }

    /// The file of settings to edit: the one with the key, else the workspace's.
    fn settings_with(&self, key: &str) -> String {
        if self.session.scope == OperationScope::Global {
            return self.session.environment.mu_home.join("config.yaml").display().to_string();
        }
        let own: PathBuf = self.session.workspace.root.join(".mu/workspace.yaml");
        let user = self.session.environment.mu_home.join("config.yaml");
        // Beginnings of lines are enough here: this says where to write, and the file was read as settings before.
        let has = |path: &PathBuf| {
            let text = fs::read_text_if_there(path).ok().flatten().unwrap_or_default();
            text.lines().any(|line| line.trim_start().starts_with(key))
        };
        if !has(&own) && has(&user) {
            return user.display().to_string();
        }
        ".mu/workspace.yaml".to_owned()
    }
}

/// The line, counted from 1, where `item` is written under `key` of a file of settings.
pub(crate) fn line_in(path: &Path, key: &str, item: &str) -> Option<usize> {
    let text = fs::read_text_if_there(path).ok().flatten()?;
    let mut lines = text.lines().enumerate();
    let (start, _) = lines.find(|(_, line)| line.starts_with(&format!("{key}:")))?;
    // Begins with the line of the key, where a list or map may be written in one line.
    let mut below = text.lines().enumerate().skip(start);
    below.find(|(_, line)| line.contains(item)).map(|(line, _)| line + 1)
}

impl Wording<'_> {
    /// Whether the failed command added this requirement.
    pub(super) fn is_new(&self, asked: &Asked) -> bool {
        let session = self.session;
        let mut members = session.workspace.members.iter();
        let member = members.find(|member| Requester::from_member(member) == asked.by);
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
fn as_before(asked: &Asked) -> Ask {
    Ask {
        by: asked.by.to_string(),
        from: Some(asked.requirement.clone()),
        to: asked.requirement.clone(),
        version: String::new(),
    }
}
