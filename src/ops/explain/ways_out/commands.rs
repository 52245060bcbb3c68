//! The commands of a way out, as lines that a user can paste. Nothing is written here.
//!
//! The failed command was supposed to do something: the commands must still do it, with its flags. A command writes
//! into the entry of the manifest that says what it requires now, or into each, if several do. [`Command`] is one of
//! them: its text, and what it would change in a file, so that it can be tried in memory before it is proposed.

use std::path::Path;

use crate::env::absolute;
use crate::manifest::edit::Section;
use crate::ops::explain::ways_out::Wording;
use crate::ops::requirements::editing::{MARK, NO_VERSION_TEXT};
use crate::ops::requirements::names::id_in;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::CommandChange;
use crate::ops::requirements::{Asked, Requirements, narrowing, requirement};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::locked;
use crate::ops::session::source::relative;
use crate::ops::{OperationScope, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::Ask;
use crate::workspace::Member;
use crate::{formats, manifest};

/// The command that removes a pin.
pub(super) const UNPIN: &str = "mu unpin";

/// The command that writes a requirement into a manifest.
const ADD: &str = "mu add";

/// A command line.
#[derive(Default)]
pub(super) struct Command {
    /// The program, the command, and everything before the references.
    pub(super) front: String,
    /// The references that it is about.
    references: Vec<String>,
    /// The flags after them.
    back: String,
    /// The flag of the failed command that this one gives by itself.
    own: &'static str,
    /// What each reference changes in files that mu can try it on; none if it does something else.
    steps: Option<Vec<CommandChange>>,
}

impl Command {
    fn new(front: String, reference: String, step: Option<CommandChange>) -> Self {
        let steps = step.map(|step| vec![step]);
        Self { front, references: vec![reference], steps, ..Self::default() }
    }

    /// Merges commands that do the same: `mu add 'a#^2'` and `mu add 'b#^3'` become `mu add 'a#^2' 'b#^3'`. What one says already
    /// is not said again.
    fn merged(all: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::new();
        for command in all {
            let same =
                |known: &&mut Self| known.front == command.front && known.back == command.back;
            let Some(known) = merged.iter_mut().find(same) else {
                merged.push(command);
                continue;
            };
            // If one of them cannot be tried, neither can both.
            let steps = known.steps.take().zip(command.steps);
            known.steps = steps.map(|(steps, more)| [steps, more].concat());
            for text in command.references {
                if !known.references.contains(&text) {
                    known.references.push(text);
                }
            }
        }
        merged
    }

    fn edits(&self) -> bool {
        self.front.starts_with(ADD)
    }

    /// Whether it names a package without the version, which it is to find.
    fn has_open(&self) -> bool {
        self.edits() && self.references.iter().any(|text| !text.contains('#'))
    }

    /// What all commands change; none if one of them does something else, or there are none.
    pub(super) fn all_steps(commands: &[Self]) -> Option<Vec<CommandChange>> {
        let steps = commands.iter().map(|command| command.steps.clone());
        let steps = steps.collect::<Option<Vec<_>>>()?.concat();
        (!commands.is_empty()).then_some(steps)
    }
}

impl Wording<'_> {
    /// Command lines, with the flags of the failed command; `is_any_age` says whether they allow young versions.
    pub(super) fn print(&self, commands: &[&Command], is_any_age: bool) -> Vec<String> {
        // Versions are chosen only by the last command that edits a manifest: before all are edited, there may be none that fit.
        let last = commands.iter().rposition(|command| command.edits());
        let (age, set) =
            if is_any_age { (" --exclude-newer 0", "--exclude-newer") } else { ("", "") };
        let lines = commands.iter().enumerate().map(|(index, command)| {
            let only_edits = if command.edits() && last != Some(index) { " --frozen" } else { "" };
            let references = arguments("", &command.references);
            let repeated = repeated_flags(self.session, &[command.own, set]);
            format!("{}{references}{}{only_edits}{age}{repeated}", command.front, command.back)
        });
        lines.collect()
    }

    /// The flag that a command needs to work on the same workspace as this session.
    fn global(&self) -> &'static str {
        match self.session.scope {
            OperationScope::Workspace => "",
            OperationScope::Global => " --global",
        }
    }

    /// The failed command, with another value of a flag.
    pub(super) fn commands_again(&self, flag: &'static str, value: &str) -> Vec<Command> {
        let mut commands = self.pending(&[], None);
        if commands.is_empty() {
            let front = format!("mu get{}", self.global());
            commands.push(Command { front, ..Command::default() });
        }
        for command in &mut commands {
            command.back.push_str(&format!(" {flag} {value}"));
            command.own = flag;
        }
        Command::merged(commands)
    }

    /// The commands that make roots require something else; none if mu does not edit one of their manifests.
    pub(super) fn commands_to_ask(&self, asks: &[Ask]) -> Option<Vec<Command>> {
        let unpin = if let [ask] = asks { self.unpin(ask) } else { None };
        let mut commands = Vec::from_iter(unpin);
        if commands.is_empty() {
            for ask in asks {
                commands.extend(self.commands_for(ask, None)?);
            }
        }
        commands.extend(self.pending(asks, None));
        let mut commands = Command::merged(commands);
        // A command that is to find a version comes last: all that is required is known then.
        commands.sort_by_key(Command::has_open);
        Some(commands)
    }

    /// The commands that drop a package; none if the failed command requires nothing else.
    pub(super) fn commands_to_give_up(&self, id: &PackageId) -> Option<Vec<Command>> {
        let all = &self.requirements.asked;
        let asked = all.iter().filter(|asked| asked.requirement.id == *id);
        // What the failed command itself asks for is in no file. It is left out of the command, if anything else is
        // left of that.
        let (new, asked): (Vec<&Asked>, Vec<&Asked>) = asked.partition(|asked| self.is_new(asked));
        let pending = self.pending(&[], Some(id));
        if !new.is_empty() && pending.is_empty() {
            return None;
        }
        let around = locked::around(self.session).ok().flatten();
        let mut commands: Vec<Command> = Vec::new();
        for asked in asked {
            let own = asked.line.map(|(member, _)| member);
            if own.is_some_and(|own| !self.is_manifest_editable(own)) {
                return None;
            }
            // `mu remove` depends on the current folder.
            let place = own.filter(|own| around.is_some_and(|around| around != *own));
            let folder =
                place.map(|own| self.session.workspace.members[own].folder.display().to_string());
            let (front, own) = match folder {
                Some(folder) => (format!("mu{} remove", arguments(" -C", &[folder])), "-C"),
                None => (format!("mu remove{}", self.global()), ""),
            };
            if !commands.iter().any(|known| known.front == front) {
                let step = CommandChange::Remove(place, id.clone());
                let command = Command::new(front, self.short(id).into_owned(), Some(step));
                commands.push(Command { own, ..command });
            }
        }
        commands.extend(pending);
        Some(commands)
    }

    /// The commands that reinstall what cannot be upgraded step by step; none if more than one requires it.
    pub(super) fn commands_to_reinstall(&self, id: &PackageId) -> Option<Vec<Command>> {
        let asked = asked_anew(self.session, self.requirements, id)?;
        let add = self.command_as_before(&asked, None)?;
        let front = format!("mu remove{}", self.global());
        Some(vec![Command::new(front, self.short(id).into_owned(), None), add])
    }

    /// What is left to do after `asks`, without anything about `given_up`.
    fn pending(&self, asks: &[Ask], given_up: Option<&PackageId>) -> Vec<Command> {
        // It is done if it is what changes, or if a manifest then requires the same, or any version if none
        // was named.
        let is_done = |asked: &Asked| {
            asks.iter().filter(|ask| ask.to.id == asked.requirement.id).any(|ask| {
                let is_same = ask.to.spec == asked.requirement.spec
                    || asked.requirement.spec == VersionSpec::Latest && asked.by.as_str() == ask.by;
                ask.from.as_ref() == Some(&asked.requirement) || (!asked.by.is_move() && is_same)
            })
        };
        let asked = self.requirements.asked.iter().filter(|asked| {
            given_up != Some(&asked.requirement.id) && self.is_new(asked) && !is_done(asked)
        });
        let commands = asked.filter_map(|asked| {
            if asked.by.is_move() {
                let front = format!("{}{}", asked.by, self.global());
                return Some(Command::new(front, asked.reference.to_string(), None));
            }
            self.command_as_before(asked, asked.line.map(|(_, list)| list))
        });
        commands.collect()
    }

    /// Whether the failed command added this requirement.
    fn is_new(&self, asked: &Asked) -> bool {
        let session = self.session;
        match (&asked.by, self.member_called(asked.by.as_str())) {
            (by, _) if by.is_move() => true,
            _ if asked.reference.local().is_some() => false,
            (Requester::CommandLine, _) => {
                let known = session.lockfile().ok().flatten().unwrap_or_default();
                let narrowing = narrowing(asked.requirement.clone());
                !known.extra.contains(&format!("{}{narrowing}", asked.reference))
            }
            (_, Some(member)) => {
                let member = &session.workspace.members[member];
                let written = &member.manifest;
                let id = &asked.requirement.id;
                let mut known = written.all_dependencies();
                !known.any(|one| {
                    // Whether it is the same name is told sooner than what a name means.
                    requirement(id.clone(), one) == asked.requirement
                        && (one.reference == asked.reference || self.is_about(member, one, id))
                })
            }
            (_, None) => asked.line.is_none(),
        }
    }

    /// The command that requires what is required now, in this list of its manifest if it is known.
    fn command_as_before(&self, asked: &Asked, list: Option<Section>) -> Option<Command> {
        let ask = Ask {
            by: asked.by.to_string(),
            from: Some(asked.requirement.clone()),
            to: asked.requirement.clone(),
            version: String::new(),
        };
        self.commands_for(&ask, list)?.into_iter().next()
    }

    /// The commands that make one root require something else: one for each entry that says what it requires now. Usually there is
    /// one, or none yet; a chart may have several, under aliases.
    fn commands_for(&self, ask: &Ask, list: Option<Section>) -> Option<Vec<Command>> {
        let to = &ask.to;
        // What an earlier `mu get REF` asked for is in no manifest, so `mu get` says it anew.
        if ask.by == Requester::CommandLine.as_str() {
            let (text, dependency) = self.reference(ask);
            let step = CommandChange::Get(to.id.clone(), dependency?);
            let back = narrowing_flags(&to.channel, &to.app_version, to.prerelease);
            let front = format!("mu get{}", self.global());
            return Some(vec![Command { back, ..Command::new(front, text, Some(step)) }]);
        }
        let index =
            self.member_called(&ask.by).filter(|index| self.is_manifest_editable(*index))?;
        let entries = self.entries(index, ask, list);
        if entries.is_empty() {
            return Some(vec![self.add(index, ask, None)]);
        }
        Some(entries.iter().map(|entry| self.add(index, ask, Some(entry))).collect())
    }

    /// The entries of a manifest that say what a root requires now, dev dependencies first. If none says exactly that, the one on
    /// this package is meant, wherever it is. The alias of one that can be told from the others without it is left out.
    fn entries(
        &self,
        index: usize,
        ask: &Ask,
        list: Option<Section>,
    ) -> Vec<(Section, manifest::Requirement)> {
        let member = &self.session.workspace.members[index];
        let manifest = self.requirements.changed.manifest(&self.session.workspace, index);
        let about = |section: Section| {
            let all = section.of(manifest).iter();
            all.filter(|entry| self.is_about(member, entry, &ask.to.id)).collect::<Vec<_>>()
        };
        let with_alias = |entry: &manifest::Requirement, alias: Option<String>| {
            manifest::Requirement { alias, ..entry.clone() }
        };
        let mut found = Vec::new();
        for section in [Section::DevDependencies, Section::Dependencies] {
            let all = about(section);
            let is_meant = |entry: &manifest::Requirement| {
                list.is_none_or(|list| list == section)
                    && ask.from.as_ref() == Some(&requirement(ask.to.id.clone(), entry))
            };
            for entry in all.iter().filter(|entry| is_meant(entry)) {
                let alias = entry.alias.clone().filter(|_| all.len() > 1);
                found.push((section, with_alias(entry, alias)));
            }
        }
        if found.is_empty() {
            let sections = [Section::Dependencies, Section::DevDependencies].into_iter();
            let mut any = sections.filter_map(|section| Some((section, *about(section).first()?)));
            found.extend(any.next().map(|(section, entry)| (section, with_alias(entry, None))));
        }
        found
    }

    /// `mu unpin`, if it leads to a requirement that allows the version. It restores what was written before the pin, which is
    /// shorter, and right only if nobody else asks for the package.
    fn unpin(&self, ask: &Ask) -> Option<Command> {
        let index =
            self.member_called(&ask.by).filter(|index| self.is_manifest_editable(*index))?;
        let (section, entry) = self.entries(index, ask, None).into_iter().next()?;
        let asked = self.requirements.asked.iter();
        let is_alone = asked.filter(|asked| asked.requirement.id == ask.to.id).count() == 1;
        let path = &self.session.workspace.members[index].manifest_path;
        (is_alone && is_unpinned_to(self.session, path, section, &entry, ask))
            .then(|| Command::new(UNPIN.to_owned(), self.short(&ask.to.id).into_owned(), None))
    }

    /// The command that writes what a root should require into its manifest, where it is listed in this entry.
    fn add(
        &self,
        index: usize,
        ask: &Ask,
        entry: Option<&(Section, manifest::Requirement)>,
    ) -> Command {
        let (to, listed) = (&ask.to, entry.map(|(_, listed)| listed));
        let section = entry.map_or(Section::Dependencies, |(section, _)| *section);
        // Keys of the entry must be removed if they should no longer count.
        // `mu add --channel ''` takes the channel out of the entry; without the flag it would stay.
        let or_away = |new: &Option<String>, old: Option<&Option<String>>| match new {
            None if old.is_some_and(Option::is_some) => Some(String::new()),
            new => new.clone(),
        };
        let channel = or_away(&to.channel, listed.map(|listed| &listed.channel));
        let app_version = or_away(&to.app_version, listed.map(|listed| &listed.app_version));
        let alias = listed.and_then(|listed| listed.alias.clone());
        let back = narrowing_flags(&channel, &app_version, to.prerelease)
            + &arguments(" --alias", alias.as_slice());
        let package =
            (self.session.workspace.members.len() > 1).then(|| package(self.session, index));
        let dev = if section == Section::DevDependencies { " --dev" } else { "" };
        let front = format!("{ADD}{}{dev}", arguments(" -p", package.as_slice()));
        let (text, dependency) = self.reference(ask);
        let step = dependency.map(|dependency| {
            let dependency = manifest::Requirement { alias, ..dependency };
            CommandChange::Add((package, section), dependency, [channel, app_version])
        });
        Command { back, ..Command::new(front, text, step) }
    }

    /// Whether mu edits the manifest of a member, so that a command can.
    pub(super) fn is_manifest_editable(&self, member: usize) -> bool {
        let path = &self.session.workspace.members[member].manifest_path;
        formats::has_editable_dependencies(path, self.session.short_names())
    }

    /// The member that is called so where something is required.
    pub(super) fn member_called(&self, by: &str) -> Option<usize> {
        let mut members = self.session.workspace.members.iter();
        members.position(|member| Requester::from_member(member).as_str() == by)
    }

    /// Whether an entry of a manifest requires a package.
    fn is_about(&self, member: &Member, entry: &manifest::Requirement, id: &PackageId) -> bool {
        id_in(self.session, member, &entry.reference) == *id
    }

    /// A reference as it is written now, with another version, and what a command would write for it.
    fn reference(&self, ask: &Ask) -> (String, Option<manifest::Requirement>) {
        let to = &ask.to;
        let mut asked = self.requirements.asked.iter();
        let written = asked.find(|asked| {
            asked.by.as_str() == ask.by && Some(&asked.requirement) == ask.from.as_ref()
        });
        let text = match written.map(|asked| (asked, asked.reference.local())) {
            Some((asked, _)) if asked.requirement.spec == to.spec => asked.reference.to_string(),
            Some((asked, Some(folder))) => format!("{}#{}", self.folder(asked, folder), to.spec),
            Some((asked, None)) => asked.reference.with_version(Some(to.spec.clone())).to_string(),
            None => format!("{}#{}", self.short(&to.id), to.spec),
        };
        let dependency = Reference::parse(&text).ok().map(|given| {
            // A folder is named from where the command runs, so it stays in the manifest as it was written.
            let reference = match written.filter(|_| given.local().is_some()) {
                Some(asked) => asked.reference.with_version(given.version().cloned()),
                None => given,
            };
            manifest::Requirement {
                channel: to.channel.clone(),
                app_version: to.app_version.clone(),
                prerelease: to.prerelease,
                ..manifest::Requirement::new(reference)
            }
        });
        (text, dependency)
    }

    /// A local folder that is required, as it is written on a command line here.
    fn folder(&self, asked: &Asked, folder: &str) -> String {
        let current = &self.session.environment.current;
        if folder.starts_with('/') || asked.from == *current {
            return folder.to_owned();
        }
        let path = relative(current, &absolute(&asked.from, folder.as_ref()));
        if path.starts_with('.') { path } else { format!("./{path}") }
    }
}

/// Whether removing a pin leads to a requirement that allows the version.
fn is_unpinned_to(
    session: &Session,
    path: &Path,
    section: Section,
    entry: &manifest::Requirement,
    ask: &Ask,
) -> bool {
    let reference = &entry.reference;
    let is_pin = matches!(reference.version(), Some(VersionSpec::Pin(_)));
    let path = &formats::dependencies_file(path);
    let text = formats::dependencies_text(path).ok();
    let Some(text) = text.filter(|_| is_pin) else { return false };
    let (defaults, names) = (session.reference_defaults(), session.short_names());
    let editor = formats::editor(path, text, &defaults, names);
    // The comment `pinned from ^1.2` behind the entry.
    let Ok(Some(note)) = editor.note(section, reference, MARK) else { return false };
    let before =
        if note == NO_VERSION_TEXT { Ok(VersionSpec::Latest) } else { VersionSpec::parse(&note) };
    before.ok().zip(Version::parse(&ask.version).ok()).is_some_and(|(before, version)| {
        before.accepts(&version, ask.to.prerelease) && ask.to.channel.is_none()
    })
}

/// How a command names a package of the workspace: as its manifest does, unless that leads to another one, or else by its folder.
fn package(session: &Session, index: usize) -> String {
    let member = &session.workspace.members[index];
    let name = member.manifest.name.to_string();
    let leads_there = locked::target(session, Some(&name), "").is_ok_and(|it| it == index);
    let place = if member.place.is_empty() { "." } else { &*member.place };
    if leads_there { name } else { place.to_owned() }
}

/// Words of a command line, each behind a flag if there is one: ` --with aws/vpc --with 'aws/app#^1'`.
pub(super) fn arguments(flag: &str, texts: &[String]) -> String {
    texts.iter().map(|text| format!("{flag} {}", quoted_for_shell(text))).collect()
}

/// The flags that commands to run next need, without some.
pub(super) fn repeated_flags(session: &Session, without: &[&str]) -> String {
    let flags = session.options.repeated.iter().filter(|(flag, _)| !without.contains(flag));
    let text = flags.map(|(flag, value)| match value {
        Some(value) => format!(" {flag} {}", quoted_for_shell(value)),
        None => format!(" {flag}"),
    });
    text.collect()
}

/// What narrows a requirement in addition to its version, as flags.
pub(super) fn narrowing_flags(
    channel: &Option<String>,
    app_version: &Option<String>,
    prerelease: bool,
) -> String {
    let prerelease = if prerelease { " --pre" } else { "" };
    let channel = arguments(" --channel", channel.as_slice());
    format!("{channel}{}{prerelease}", arguments(" --app-version", app_version.as_slice()))
}

/// What a package that is reinstalled has to be required as, if one manifest requires it: what it says, or the version of the move that
/// takes the place of that.
fn asked_anew(session: &Session, requirements: &Requirements, id: &PackageId) -> Option<Asked> {
    let asked = requirements.asked.iter().filter(|asked| asked.requirement.id == *id);
    let (moves, own): (Vec<&Asked>, Vec<&Asked>) = asked.partition(|asked| asked.by.is_move());
    match (&own[..], &moves[..]) {
        ([own], []) => Some(Asked::clone(own)),
        ([] | [_], [to]) => {
            let listed = Requirements::collect(session, Vec::new()).ok()?.asked;
            let mut listed = listed.into_iter().filter(|asked| asked.requirement.id == *id);
            let own = listed.next().filter(|_| listed.next().is_none())?;
            let reference = own.reference.with_version(to.reference.version().cloned());
            Some(Asked { reference, requirement: to.requirement.clone(), ..own })
        }
        _ => None,
    }
}
