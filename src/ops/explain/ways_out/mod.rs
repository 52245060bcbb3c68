//! How a way out of a conflict is taken: the command to paste, or the file to edit.
//!
//! What helps was found, and tried, by selection. Here it gets its words.

mod supposed;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::fs;
use crate::index::Requirement;
use crate::manifest::edit::{Editor, Section};
use crate::manifest::{self, Manifest};
use crate::ops::requirements::pins::{MARK, NOTHING};
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::session::error::quoted;
use crate::ops::session::member;
use crate::ops::{CommandError, Scope, Session};
use crate::reference::{PackageId, VersionSpec};
use crate::select::{Ask, WayOut};

/// What it means to look at no version's age.
pub(crate) const ANY_AGE: &str = "let versions in however young they are";

/// What it means to choose by the minimal strategy where the other one does not come to an end.
pub(crate) const LEAST: &str = "choose the oldest versions that are new enough, which fit together";

/// The command that takes a pin back.
const UNPIN: &str = "mu unpin";

/// A way out in words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Remedy {
    /// The sentence for people.
    pub(crate) text: String,
    /// The same for programs.
    pub(crate) json: Value,
}

/// Words ways out; one that no command and no edit can take is left out.
pub(crate) fn remedies(
    session: &Session,
    requirements: &Requirements,
    ways_out: &[WayOut],
) -> Vec<Remedy> {
    let wording = Wording { session, requirements, is_any_age: false };
    ways_out.iter().filter_map(|way_out| wording.remedy(way_out)).collect()
}

/// How to search longer than a search that was stopped.
pub(crate) fn longer(session: &Session, requirements: &Requirements, steps: usize) -> String {
    let flag = "--patience";
    let Some(question) = &requirements.question else {
        let wording = Wording { session, requirements, is_any_age: false };
        let commands = wording.again(flag, &format!(" {steps}"));
        return format!("search longer: `{}`", commands.join(" && "));
    };
    let flags = repeated(session, &[flag]);
    format!("search longer: `{} {flag} {steps}{flags}`", supposed::command(question))
}

struct Wording<'a> {
    session: &'a Session,
    requirements: &'a Requirements,
    /// Whether commands are to let versions in however young they are.
    is_any_age: bool,
}

impl Wording<'_> {
    /// The command that installs here.
    fn get(&self) -> String {
        format!("mu get{}", self.global())
    }

    /// What a command needs to work on what this session does.
    fn global(&self) -> &'static str {
        match self.session.scope {
            Scope::Workspace => "",
            Scope::Global => " --global",
        }
    }

    fn remedy(&self, way_out: &WayOut) -> Option<Remedy> {
        let Some(question) = &self.requirements.question else { return self.change(way_out) };
        let short = |id: &PackageId| self.short(id).to_owned();
        let Some((text, command)) = supposed::again(self.session, question, way_out, &short) else {
            return self.change(way_out);
        };
        let mut remedy = self.change(way_out).unwrap_or_else(|| {
            let kind = if matches!(way_out, WayOut::Ask(_)) { "require" } else { "suppose" };
            remedy(kind, String::new(), &[], json!({}))
        });
        remedy.text = format!("{text}: `{command}`");
        remedy.json["text"] = json!(remedy.text);
        remedy.json["commands"] = json!([command]);
        Some(remedy)
    }

    /// What to change in this workspace.
    fn change(&self, way_out: &WayOut) -> Option<Remedy> {
        match way_out {
            WayOut::Ask(asks) => self.ask(asks),
            WayOut::GiveUp(id) => self.give_up(id),
            WayOut::Highest => {
                let commands = self.again("--resolution", " highest");
                let joined = commands.join(" && ");
                let text = format!("choose newer versions, which fit together: `{joined}`");
                Some(remedy("highest", text, &commands, json!({})))
            }
            WayOut::Minimal => {
                let commands = self.again("--resolution", " minimal");
                let joined = commands.join(" && ");
                let text = format!("{LEAST}: `{joined}`");
                Some(remedy("minimal", text, &commands, json!({})))
            }
            WayOut::AnyAge => {
                let commands = self.again("--exclude-newer", " 0");
                let joined = commands.join(" && ");
                let text = format!("{ANY_AGE}: `{joined}`");
                Some(remedy("any-age", text, &commands, json!({})))
            }
            WayOut::Include(id) => {
                let file = self.settings_with("exclude");
                let excluded = self.session.workspace.settings.exclude.iter();
                let entries: Vec<String> = excluded
                    .filter(|exclusion| exclusion.id == *id)
                    .map(|exclusion| match &exclusion.versions {
                        Some(versions) => format!("`{}#{versions}`", self.short(id)),
                        None => format!("`{}`", self.short(id)),
                    })
                    .collect();
                let text = format!("take {} out of `exclude` in `{file}`", entries.join(" and "));
                let facts = json!({ "id": id.to_string(), "file": file });
                Some(remedy("include", text, &[], facts))
            }
            WayOut::NoOverride(id) => {
                let file = self.settings_with("overrides");
                let text = format!("take `{}` out of `overrides` in `{file}`", self.short(id));
                let facts = json!({ "id": id.to_string(), "file": file });
                Some(remedy("no-override", text, &[], facts))
            }
            WayOut::Replace(id, by) => Some(self.replace(id, by)),
            WayOut::Override(id, version) => Some(self.force(id, version)),
            WayOut::Forget(id, version) => self.reinstall(id, version),
            WayOut::Together(all) => self.together(all),
        }
    }

    /// Several steps: first the files to edit, then the commands, which each let young versions in if that is one of the steps.
    fn together(&self, all: &[WayOut]) -> Option<Remedy> {
        let is_any_age = all.contains(&WayOut::AnyAge);
        let wording = Wording { is_any_age, ..*self };
        let others = all.iter().filter(|way_out| **way_out != WayOut::AnyAge);
        let mut steps: Vec<Remedy> =
            others.map(|way_out| wording.change(way_out)).collect::<Option<_>>()?;
        let has_commands =
            |step: &Remedy| step.json["commands"].as_array().is_some_and(|all| !all.is_empty());
        steps.sort_by_key(has_commands);
        let mut texts: Vec<String> = steps.iter().map(|step| step.text.clone()).collect();
        if is_any_age && !steps.iter().any(has_commands) {
            let age = self.change(&WayOut::AnyAge)?;
            texts.push(age.text.clone());
            steps.push(age);
        } else if is_any_age {
            texts.insert(0, ANY_AGE.to_owned());
        }
        let text = texts.join(", and ");
        let commands: Vec<Value> = steps
            .iter()
            .flat_map(|step| step.json["commands"].as_array().cloned().unwrap_or_default())
            .collect();
        let steps: Vec<Value> = steps.into_iter().map(|step| step.json).collect();
        let json =
            json!({ "kind": "together", "text": text, "commands": commands, "steps": steps });
        Some(Remedy { text, json })
    }

    /// That only one package, or none, may take the place of another.
    fn replace(&self, id: &PackageId, by: &PackageId) -> Remedy {
        let file = self.settings_with("allowReplaces");
        let what = if id == by {
            format!("use {} itself beside what would replace it", self.short(id))
        } else {
            format!("let only {} replace {}", self.short(by), self.short(id))
        };
        let line = format!("{id}: {by}");
        let text = format!("{what}: write `{line}` under `allowReplaces` in `{file}`");
        let by = by.to_string();
        let facts = json!({ "id": id.to_string(), "by": by, "file": file, "line": line });
        remedy("replace", text, &[], facts)
    }

    fn ask(&self, asks: &[Ask]) -> Option<Remedy> {
        let mut commands: Vec<Command> = Vec::new();
        for ask in asks {
            let command = self.command(asks, ask)?;
            Command::join(&mut commands, command);
        }
        for command in self.pending(asks) {
            Command::join(&mut commands, command);
        }
        let commands = self.print(&commands, "");
        let short = |id: &PackageId| self.short(id).to_owned();
        let changes: Vec<String> = asks.iter().map(|ask| supposed::change(ask, &short)).collect();
        let joined = commands.join(" && ");
        let text = if joined.starts_with(UNPIN) && asks.len() == 1 {
            format!("take back the pin of {}: `{joined}`", self.short(&asks[0].to.id))
        } else {
            format!("ask for {}: `{joined}`", changes.join(", and "))
        };
        let changes: Vec<Value> = asks
            .iter()
            .map(|ask| {
                json!({
                    "by": ask.by,
                    "id": ask.to.id.to_string(),
                    "from": ask.from.as_ref().map(ToString::to_string),
                    "to": ask.to.to_string(),
                    "version": ask.version,
                })
            })
            .collect();
        Some(remedy("require", text, &commands, json!({ "changes": changes })))
    }

    /// Asking no more for a package; none if it is all that the command which failed asks for.
    fn give_up(&self, id: &PackageId) -> Option<Remedy> {
        let all = &self.requirements.asked;
        let asked = all.iter().filter(|asked| asked.requirement.id == *id);
        let (new, asked): (Vec<&Asked>, Vec<&Asked>) = asked.partition(|asked| self.is_new(asked));
        let pending = self.pending_but(&[], Some(id));
        if !new.is_empty() && pending.is_empty() {
            return None;
        }
        let members = &self.session.workspace.members;
        let around = member::around(self.session).ok().flatten();
        let mut commands: Vec<Command> = Vec::new();
        for asked in asked {
            let own = asked.line.map(|(member, _)| member);
            let front = match own {
                // `mu remove` looks where it is run.
                Some(own) if around.is_some_and(|around| around != own) => {
                    format!("mu -C {} remove", quoted(&members[own].folder.display().to_string()))
                }
                _ => format!("mu remove{}", self.global()),
            };
            if !commands.iter().any(|known| known.front == front) {
                commands.push(Command::new(&front, self.short(id).to_owned(), String::new()));
            }
        }
        commands.extend(pending);
        let commands = self.print(&commands, "");
        let text = format!("do without {}: `{}`", self.short(id), commands.join(" && "));
        Some(remedy("remove", text, &commands, json!({ "id": id.to_string() })))
    }

    /// Whether the command that failed was the first to ask for this.
    fn is_new(&self, asked: &Asked) -> bool {
        let session = self.session;
        let mut members = session.workspace.members.iter();
        let member = members.find(|member| Requester::of(member) == asked.by);
        match (&asked.by, member) {
            (by, _) if by.is_move() => true,
            _ if asked.reference.local().is_some() => false,
            (Requester::CommandLine, _) => {
                let known = session.lockfile().ok().flatten().unwrap_or_default();
                !known.extra.contains(&format!("{}{}", asked.reference, suffix(&asked.requirement)))
            }
            (_, Some(member)) => {
                let path = &member.manifest_path;
                let text = fs::read_text(path).unwrap_or_default();
                let Ok((written, _)) = Manifest::parse(path, &text) else { return false };
                let known = written.dependencies.iter().chain(&written.dev_dependencies);
                let is_same = |one: &manifest::Requirement| {
                    let defaults = session.defaults();
                    let places = &session.places;
                    let workspace = &session.workspace;
                    let id = places.id_of(&one.reference, &defaults, &member.folder, workspace);
                    id == asked.requirement.id && one.reference.spec() == asked.requirement.spec
                };
                !known.into_iter().any(is_same)
            }
            (_, None) => asked.line.is_none(),
        }
    }

    /// What the command that failed was to do, and is still to be done after `asks`.
    fn pending(&self, asks: &[Ask]) -> Vec<Command> {
        self.pending_but(asks, None)
    }

    /// The same without what is about one package.
    fn pending_but(&self, asks: &[Ask], without: Option<&PackageId>) -> Vec<Command> {
        // It is done where it is what changes, or where a manifest asks for the same then, or for a version where none
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
            without != Some(&asked.requirement.id) && self.is_new(asked) && !is_done(asked)
        });
        asked
            .filter_map(|asked| {
                if asked.by.is_move() {
                    let reference = asked.reference.to_string();
                    let front = format!("{}{}", asked.by, self.global());
                    return Some(Command::new(&front, reference, String::new()));
                }
                let ask = Ask {
                    by: asked.by.to_string(),
                    from: Some(asked.requirement.clone()),
                    to: asked.requirement.clone(),
                    version: String::new(),
                };
                self.command(&[], &ask)
            })
            .collect()
    }

    /// The command that failed, with another value of a flag.
    fn again(&self, flag: &str, value: &str) -> Vec<String> {
        let mut commands: Vec<Command> = Vec::new();
        for mut command in self.pending(&[]) {
            command.back.push_str(&format!(" {flag}{value}"));
            Command::join(&mut commands, command);
        }
        if commands.is_empty() {
            let back = format!(" {flag}{value}");
            commands.push(Command { front: self.get(), references: Vec::new(), back });
        }
        self.print(&commands, flag)
    }

    /// Command lines, with the flags that the command that failed was given but for one.
    fn print(&self, commands: &[Command], without: &str) -> Vec<String> {
        let line = |command: &Command| {
            let is_elsewhere = command.front.contains(" -C ");
            let without = if is_elsewhere { "-C" } else { without };
            let (age, no_age) =
                if self.is_any_age { (" --exclude-newer 0", "--exclude-newer") } else { ("", "") };
            format!("{}{age}{}", command.print(), repeated(self.session, &[without, no_age]))
        };
        commands.iter().map(line).collect()
    }

    /// The command that makes one root ask for something else.
    fn command(&self, asks: &[Ask], ask: &Ask) -> Option<Command> {
        let id = &ask.to.id;
        let references = vec![self.reference(ask)];
        let to = &ask.to;
        let back = narrowing(to.channel.as_deref(), to.app_version.as_deref(), to.prerelease);
        if ask.by == Requester::CommandLine.as_str() {
            return Some(Command { front: self.get(), references, back });
        }
        let members = &self.session.workspace.members;
        let member = members.iter().find(|member| Requester::of(member).as_str() == ask.by)?;
        let is_id = |one: &manifest::Requirement| {
            let defaults = self.session.defaults();
            let workspace = &self.session.workspace;
            let places = &self.session.places;
            places.id_of(&one.reference, &defaults, &member.folder, workspace) == *id
        };
        let entry = member.manifest.dependencies.iter().find(|one| is_id(one));
        let dev = member.manifest.dev_dependencies.iter().find(|one| is_id(one));
        let section = match (entry, dev) {
            (None, Some(_)) => Section::DevDependencies,
            _ => Section::Dependencies,
        };
        if let Some(entry) = entry.or(dev)
            && asks.len() == 1
            && self.asked_once(id)
            && self.is_unpinned_to(&member.manifest_path, section, entry, ask)
        {
            return Some(Command::new(UNPIN, self.short(id).to_owned(), String::new()));
        }
        let mut front = "mu add".to_owned();
        if members.len() > 1 {
            let name = member.manifest.name.to_string();
            let place = if member.place.is_empty() { "." } else { &*member.place };
            let is_found = name.ends_with(member.id.name_str());
            front = format!("{front} -p {}", if is_found { &*name } else { place });
        }
        if section == Section::DevDependencies {
            front.push_str(" --dev");
        }
        Some(Command { front, references, back })
    }

    /// Whether only one root asks for a package.
    fn asked_once(&self, id: &PackageId) -> bool {
        self.requirements.asked.iter().filter(|asked| asked.requirement.id == *id).count() == 1
    }

    /// Whether taking a pin back asks for what lets the version in.
    fn is_unpinned_to(
        &self,
        path: &std::path::Path,
        section: Section,
        entry: &manifest::Requirement,
        ask: &Ask,
    ) -> bool {
        let reference = &entry.reference;
        let is_pin = matches!(reference.version(), Some(VersionSpec::Pin(_)));
        let Some(text) = Some(path).filter(|_| is_pin).and_then(|path| fs::read_text(path).ok())
        else {
            return false;
        };
        let editor = Editor::new(path, text, &self.session.defaults());
        let Ok(Some(note)) = editor.note(section, reference, MARK) else { return false };
        let before =
            if note == NOTHING { Ok(VersionSpec::Latest) } else { VersionSpec::parse(&note) };
        let version = crate::reference::Version::parse(&ask.version);
        before.ok().zip(version.ok()).is_some_and(|(before, version)| {
            before.accepts(&version, ask.to.prerelease) && ask.to.channel.is_none()
        })
    }

    /// A reference as it is written now, with another version.
    fn reference(&self, ask: &Ask) -> String {
        let written = self.requirements.asked.iter().find(|asked| {
            asked.by.as_str() == ask.by && Some(&asked.requirement) == ask.from.as_ref()
        });
        match written {
            Some(asked) if asked.requirement.spec == ask.to.spec => asked.reference.to_string(),
            Some(asked) if asked.reference.local().is_none() => {
                asked.reference.with_version(Some(ask.to.spec.clone())).to_string()
            }
            _ => format!("{}#{}", self.short(&ask.to.id), ask.to.spec),
        }
    }

    fn force(&self, id: &PackageId, version: &str) -> Remedy {
        let file = self.settings_with("overrides");
        let line = format!("{}: {id}#{version}", id);
        let short = self.short(id);
        let text = format!(
            "use {short} {version} whatever is asked for, at your own risk: write `{line}` under `overrides` in `{file}`"
        );
        let facts = json!({ "id": id.to_string(), "version": version, "file": file, "line": line });
        remedy("override", text, &[], facts)
    }

    /// Installing anew, for what cannot be upgraded step by step.
    fn reinstall(&self, id: &PackageId, version: &str) -> Option<Remedy> {
        let asked = self.requirements.asked.iter().find(|asked| asked.requirement.id == *id)?;
        let ask = Ask {
            by: asked.by.to_string(),
            from: Some(asked.requirement.clone()),
            to: asked.requirement.clone(),
            version: version.to_owned(),
        };
        let add = self.command(&[], &ask)?;
        let remove = Command::new(
            &format!("mu remove{}", self.global()),
            self.short(id).to_owned(),
            String::new(),
        );
        let commands = self.print(&[remove, add], "");
        let text = format!(
            "install {} anew instead of upgrading it: `{}`",
            self.short(id),
            commands.join(" && ")
        );
        let facts = json!({ "id": id.to_string(), "version": version });
        self.asked_once(id).then(|| remedy("reinstall", text, &commands, facts))
    }

    /// What a package is called on the command line.
    fn short<'i>(&self, id: &'i PackageId) -> &'i str {
        self.session.short_name(id)
    }

    /// The file of settings to edit: that which has the key; the workspace's, if none has.
    fn settings_with(&self, key: &str) -> String {
        if self.session.scope == Scope::Global {
            return self.session.environment.mu_home.join("config.yaml").display().to_string();
        }
        let own: PathBuf = self.session.workspace.root.join(".mu/workspace.yaml");
        let user = self.session.environment.mu_home.join("config.yaml");
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

/// A command line.
struct Command {
    front: String,
    references: Vec<String>,
    back: String,
}

impl Command {
    fn new(front: &str, reference: String, back: String) -> Self {
        Self { front: front.to_owned(), references: vec![reference], back }
    }

    /// Adds to the command that does the same, if there is one.
    fn join(commands: &mut Vec<Self>, command: Self) {
        let same = |known: &&mut Self| known.front == command.front && known.back == command.back;
        match commands.iter_mut().find(same) {
            Some(known) => known.references.extend(command.references),
            None => commands.push(command),
        }
    }

    fn print(&self) -> String {
        let references = self.references.iter().map(|text| format!(" {}", quoted(text)));
        format!("{}{}{}", self.front, references.collect::<String>(), self.back)
    }
}

/// What narrows a requirement besides its version, as the lock has it.
fn suffix(requirement: &Requirement) -> String {
    let any = Requirement { spec: VersionSpec::Latest, ..requirement.clone() }.to_string();
    any.strip_prefix(&VersionSpec::Latest.to_string()).unwrap_or_default().to_owned()
}

/// The flags that commands to run next need, but for some.
pub(crate) fn repeated(session: &Session, without: &[&str]) -> String {
    let flags = session.options.repeated.iter().filter(|(flag, _)| !without.contains(flag));
    let text = flags.map(|(flag, value)| match value {
        Some(value) => format!(" {flag} {}", quoted(value)),
        None => format!(" {flag}"),
    });
    text.collect()
}

/// What narrows a requirement besides its version, as flags.
pub(crate) fn narrowing(
    channel: Option<&str>,
    app_version: Option<&str>,
    prerelease: bool,
) -> String {
    let mut flags = String::new();
    for (flag, value) in [("--channel", channel), ("--app-version", app_version)] {
        if let Some(value) = value {
            flags.push_str(&format!(" {flag} {}", quoted(value)));
        }
    }
    if prerelease {
        flags.push_str(" --pre");
    }
    flags
}

fn remedy(kind: &str, text: String, commands: &[String], facts: Value) -> Remedy {
    let mut json = json!({ "kind": kind, "text": text, "commands": commands });
    if let (Value::Object(all), Value::Object(more)) = (&mut json, facts) {
        all.extend(more);
    }
    Remedy { text, json }
}

/// Adds ways out to an error, for people as hints and for programs.
pub(crate) fn attach(mut error: CommandError, remedies: Vec<Remedy>) -> CommandError {
    let json: Vec<Value> = remedies.iter().map(|remedy| remedy.json.clone()).collect();
    error.details["waysOut"] = Value::Array(json);
    for remedy in remedies {
        error = error.hint(remedy.text);
    }
    error
}
