//! The commands that write what a root should require instead, as lines that a user can paste.
//!
//! A command writes into the entry of the manifest that says what it requires now, or into each, if several do.
//! [`Command`] is one of them: its text, with the flags of the failed command, and what it would change in a file.
//! Nothing is written here.

use std::path::Path;

use crate::env::absolute;
use crate::manifest::edit::Section;
use crate::ops::Session;
use crate::ops::explain::ways_out::wording::Wording;
use crate::ops::requirements::editing::{MARK, NO_VERSION_TEXT};
use crate::ops::requirements::names::id_in;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::CommandChange;
use crate::ops::requirements::{Asked, requirement};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::named;
use crate::ops::session::source::relative;
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::Ask;
use crate::workspace::Member;
use crate::{formats, manifest};

/// The command that removes a pin.
pub(super) const UNPIN: &str = "mu unpin";

impl Wording<'_> {
    /// The commands that make one root require something else: one for each entry that says what it requires now.
    pub(super) fn commands_for(&self, asks: &[Ask], ask: &Ask) -> Option<Vec<Command>> {
        let entries = self.member_called(&ask.by).map(|index| (index, self.entries(index, ask)));
        // The usual case: one entry, or none yet. A chart may have several, under aliases, and each is written by a
        // command of its own.
        let Some((index, entries)) = entries.filter(|(_, entries)| entries.len() > 1) else {
            return Some(vec![self.command(asks, ask, None)?]);
        };
        let own = self.is_manifest_editable(index).then_some(entries)?.into_iter();
        Some(own.map(|(section, entry)| self.adding(index, section, Some(&entry), ask)).collect())
    }

    /// The entries of a manifest that say what a root requires now, dev dependencies first. The alias of one that can be told from the
    /// others without it is left out.
    fn entries(&self, index: usize, ask: &Ask) -> Vec<(Section, manifest::Requirement)> {
        let member = &self.session.workspace.members[index];
        let manifest = self.requirements.changed.manifest(&self.session.workspace, index);
        let mut found = Vec::new();
        for section in [Section::DevDependencies, Section::Dependencies] {
            let about = section.of(manifest).iter();
            let about = about.filter(|entry| self.is_about(member, entry, &ask.to.id));
            let is_alone = about.clone().count() == 1;
            let said = about
                .filter(|entry| Some(&requirement(ask.to.id.clone(), entry)) == ask.from.as_ref());
            found.extend(said.map(|entry| {
                let alias = entry.alias.clone().filter(|_| !is_alone);
                (section, manifest::Requirement { alias, ..entry.clone() })
            }));
        }
        found
    }

    /// The member that is called so where something is required.
    fn member_called(&self, by: &str) -> Option<usize> {
        let mut members = self.session.workspace.members.iter();
        members.position(|member| Requester::from_member(member).as_str() == by)
    }

    /// The command that makes one root require something else, in this list of its manifest if it is known.
    pub(super) fn command(
        &self,
        asks: &[Ask],
        ask: &Ask,
        list: Option<Section>,
    ) -> Option<Command> {
        let to = &ask.to;
        // What an earlier `mu get REF` asked for is in no manifest, so `mu get` says it anew.
        if ask.by == Requester::CommandLine.as_str() {
            let (text, id) = (self.reference(ask), to.id.clone());
            let back =
                narrowing_flags(to.channel.as_deref(), to.app_version.as_deref(), to.prerelease);
            let dependency = self.dependency(&text, ask)?;
            let command = Command { back, ..Command::new(self.get(), text) };
            return Some(command.with_step(CommandChange::Get(id, dependency)));
        }
        let index = self.member_called(&ask.by)?;
        let member = &self.session.workspace.members[index];
        if !self.is_manifest_editable(index) {
            return None;
        }
        let manifest = self.requirements.changed.manifest(&self.session.workspace, index);
        let is_it = |one: &&manifest::Requirement| self.is_about(member, one, &to.id);
        let mut said = self.entries(index, ask).into_iter();
        let said = said.find(|(section, _)| list.is_none_or(|list| list == *section));
        // No entry says exactly what is required: then the one on this package is meant, wherever it is, or a new one.
        let any = || {
            let own = manifest.dependencies.iter().find(is_it);
            let own = own.map(|entry| (Section::Dependencies, entry));
            let dev = || manifest.dev_dependencies.iter().find(is_it);
            let found = own.or_else(|| Some((Section::DevDependencies, dev()?)))?;
            Some((found.0, manifest::Requirement { alias: None, ..found.1.clone() }))
        };
        let found = said.or_else(any);
        let section = found.as_ref().map_or(Section::Dependencies, |(section, _)| *section);
        let mut asked = self.requirements.asked.iter();
        // `mu unpin` restores what was written before the pin. It is shorter, and right only if nobody else asks for
        // the package and the old requirement takes the version.
        if let Some((_, entry)) = &found
            && asks.len() == 1
            && asked.by_ref().filter(|asked| asked.requirement.id == to.id).count() == 1
            && is_unpinned_to(self.session, &member.manifest_path, section, entry, ask)
        {
            return Some(Command::new(UNPIN.to_owned(), self.short(&to.id).into_owned()));
        }
        Some(self.adding(index, section, found.as_ref().map(|(_, entry)| entry), ask))
    }

    /// The command that writes what a root should require into this list of its manifest, where it is `listed` so.
    fn adding(
        &self,
        index: usize,
        section: Section,
        listed: Option<&manifest::Requirement>,
        ask: &Ask,
    ) -> Command {
        let (members, to) = (&self.session.workspace.members, &ask.to);
        // Keys of the entry must be removed if they should no longer count.
        // `mu add --channel ''` takes the channel out of the entry; without the flag it would stay.
        let or_away = |new: &'_ Option<String>, old: Option<&Option<String>>| match new {
            None if old.is_some_and(Option::is_some) => Some(String::new()),
            new => new.clone(),
        };
        let channel = or_away(&to.channel, listed.map(|listed| &listed.channel));
        let app_version = or_away(&to.app_version, listed.map(|listed| &listed.app_version));
        let mut back = narrowing_flags(channel.as_deref(), app_version.as_deref(), to.prerelease);
        let alias = listed.and_then(|listed| listed.alias.clone());
        if let Some(alias) = &alias {
            back.push_str(&format!(" --alias {}", quoted_for_shell(alias)));
        }
        let mut front = ADD.to_owned();
        let package = (members.len() > 1).then(|| package(self.session, index));
        if let Some(package) = &package {
            front = format!("{front} -p {}", quoted_for_shell(package));
        }
        if section == Section::DevDependencies {
            front.push_str(" --dev");
        }
        let text = self.reference(ask);
        // What the command would change, for trying it in memory before it is proposed.
        let step = self.dependency(&text, ask).map(|dependency| {
            let dependency = manifest::Requirement { alias, ..dependency };
            CommandChange::Add((package, section), dependency, [channel, app_version])
        });
        let steps = step.map(|step| vec![step]);
        Command { steps, back, ..Command::new(front, text) }
    }

    /// What a command would write for a reference. A folder is named from where the command runs, so it stays as it was written.
    fn dependency(&self, text: &str, ask: &Ask) -> Option<manifest::Requirement> {
        let to = &ask.to;
        let given = Reference::parse(text).ok()?;
        let asked = self.written(ask).filter(|_| given.local().is_some());
        let reference = match asked {
            Some(asked) => asked.reference.with_version(given.version().cloned()),
            None => given,
        };
        Some(manifest::Requirement {
            channel: to.channel.clone(),
            app_version: to.app_version.clone(),
            prerelease: to.prerelease,
            ..manifest::Requirement::new(reference)
        })
    }

    /// Whether mu edits the manifest of a member, so that a command can.
    pub(super) fn is_manifest_editable(&self, member: usize) -> bool {
        let path = &self.session.workspace.members[member].manifest_path;
        formats::has_editable_dependencies(path, self.session.short_names())
    }

    /// Whether an entry of a manifest requires a package.
    pub(super) fn is_about(
        &self,
        member: &Member,
        entry: &manifest::Requirement,
        id: &PackageId,
    ) -> bool {
        id_in(self.session, member, &entry.reference) == *id
    }

    /// The requirement that changes, as it is written now.
    fn written(&self, ask: &Ask) -> Option<&Asked> {
        let mut asked = self.requirements.asked.iter();
        asked.find(|asked| {
            asked.by.as_str() == ask.by && Some(&asked.requirement) == ask.from.as_ref()
        })
    }

    /// A reference as it is written now, with another version.
    fn reference(&self, ask: &Ask) -> String {
        match self.written(ask) {
            Some(asked) if asked.requirement.spec == ask.to.spec => asked.reference.to_string(),
            Some(asked) => match asked.reference.local() {
                Some(folder) => format!("{}#{}", self.folder(asked, folder), ask.to.spec),
                None => asked.reference.with_version(Some(ask.to.spec.clone())).to_string(),
            },
            None => format!("{}#{}", self.short(&ask.to.id), ask.to.spec),
        }
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
    let leads_there = named::target(session, Some(&name), "").is_ok_and(|it| it == index);
    let place = if member.place.is_empty() { "." } else { &*member.place };
    if leads_there { name } else { place.to_owned() }
}

/// The command that writes a requirement into a manifest.
pub(super) const ADD: &str = "mu add";

/// A command line.
pub(super) struct Command {
    /// The program, the command, and everything before the references.
    pub(super) front: String,
    /// The references that it is about.
    pub(super) references: Vec<String>,
    /// The flags after them.
    pub(super) back: String,
    /// What each changes in files that mu can try it on; none if it does something else.
    pub(super) steps: Option<Vec<CommandChange>>,
}

impl Command {
    pub(super) fn new(front: String, reference: String) -> Self {
        Self { front, references: vec![reference], back: String::new(), steps: None }
    }

    /// This command, which changes this in a file.
    pub(super) fn with_step(self, step: CommandChange) -> Self {
        Self { steps: Some(vec![step]), ..self }
    }

    /// Merges a command into the one that does the same, if there is one. What it says already is not said again.
    pub(super) fn join(commands: &mut Vec<Self>, command: Self) {
        // `mu add 'a#^2'` and `mu add 'b#^3'` become `mu add 'a#^2' 'b#^3'`. If one of them cannot be tried, neither
        // can both.
        let same = |known: &&mut Self| known.front == command.front && known.back == command.back;
        let Some(known) = commands.iter_mut().find(same) else {
            commands.push(command);
            return;
        };
        known.steps = known.steps.take().zip(command.steps).map(|(mut steps, more)| {
            steps.extend(more);
            steps
        });
        let new = command.references.into_iter();
        let new: Vec<String> = new.filter(|text| !known.references.contains(text)).collect();
        known.references.extend(new);
    }

    /// Whether it names a package without the version, which it is to find.
    pub(super) fn has_open(&self) -> bool {
        self.front.starts_with(ADD) && self.references.iter().any(|text| !text.contains('#'))
    }

    /// What all commands change; none if one of them does something else.
    pub(super) fn all_steps(commands: &[Self]) -> Option<Vec<CommandChange>> {
        let steps = commands.iter().map(|command| command.steps.clone());
        Some(steps.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// The command line, with the flags of the failed command, except some. `is_any_age` says whether it
    /// allows young versions, and `edits_more` whether other commands that edit manifests follow. In that
    /// case, a command that edits a manifest does nothing else: before the other manifests are edited, there
    /// may be no versions to choose.
    pub(super) fn command_text(
        &self,
        session: &Session,
        without: &str,
        is_any_age: bool,
        edits_more: bool,
    ) -> String {
        // A flag that the command has by itself is not given a second time.
        let without = if self.front.contains(" -C ") { "-C" } else { without };
        let (age, no_age) =
            if is_any_age { (" --exclude-newer 0", "--exclude-newer") } else { ("", "") };
        let references: String =
            self.references.iter().map(|text| format!(" {}", quoted_for_shell(text))).collect();
        let repeated = repeated_flags(session, &[without, no_age]);
        let only_edits = if edits_more && self.front.starts_with(ADD) { " --frozen" } else { "" };
        format!("{}{references}{}{only_edits}{age}{repeated}", self.front, self.back)
    }
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
    channel: Option<&str>,
    app_version: Option<&str>,
    prerelease: bool,
) -> String {
    let mut flags = String::new();
    for (flag, value) in [("--channel", channel), ("--app-version", app_version)] {
        if let Some(value) = value {
            flags.push_str(&format!(" {flag} {}", quoted_for_shell(value)));
        }
    }
    if prerelease {
        flags.push_str(" --pre");
    }
    flags
}
