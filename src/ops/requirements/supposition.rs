//! Changes that are only supposed, to see what would follow: nothing here writes a file.
//!
//! [`WhatIf`] is the what-if question: what would be chosen with other requirements. `CommandChange` is what one
//! command of a way out would change: it is tried on the text of the files, in memory, before anybody is told to paste
//! it. The functions of the command itself make the change, so what it refuses is refused here, and what it overlooks
//! is overlooked.

use std::collections::BTreeMap;

use crate::manifest::edit::Section;
use crate::ops::requirements::editing::{Editing, refuse_several};
use crate::ops::requirements::{print_extra, references_without};
use crate::ops::session::locked;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::InstalledVersion;
use crate::workspace::Resolution;
use crate::{fs, manifest};

/// What to suppose.
#[derive(Debug, Clone, Default)]
pub struct WhatIf {
    /// The requirements that replace the workspace's; if empty, the workspace's are used.
    pub references: Vec<String>,
    /// Additional requirements.
    pub with: Vec<String>,
    /// Packages whose requirements are dropped.
    pub without: Vec<String>,
    /// Versions that are installed, or files with lists of them: upgrades begin there.
    pub installed: Vec<String>,
    /// Whether upgrades may take several steps at once; otherwise the best version one step away comes first.
    pub takes_steps: bool,
    /// Facts of the runtime, `NAME=VALUE`.
    pub runtime: Vec<String>,
    /// The version of mu, if not this one's.
    pub mu_version: Option<String>,
    /// Versions never to pick.
    pub exclude: Vec<String>,
    /// The conditions on versions of the references given here.
    pub narrowing: Narrowing,
    /// The strategy, if not the one in effect.
    pub resolution: Option<Resolution>,
    /// Whether the requirements of the outcome should be those that the minimal strategy would write, which
    /// takes another selection; otherwise they are the given ones.
    pub tidies: bool,
}

/// The conditions on versions in addition to a reference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// Only versions in this channel.
    pub channel: Option<String>,
    /// Only versions of this app version, or of one that begins so.
    pub app_version: Option<String>,
    /// Only versions of this revision, or of one that begins so.
    pub revision: Option<String>,
    /// Whether prereleases are allowed.
    pub prereleases: bool,
}

/// Reads facts of the runtime, `NAME=VALUE`.
pub(crate) fn facts(texts: &[String]) -> Result<BTreeMap<String, String>, CommandError> {
    let fact = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => {
            let message = format!("--runtime takes NAME=VALUE, not `{text}`");
            Err(CommandError::new(Code::Usage, message)
                .hint("such as `--runtime kubernetes=1.29.2`"))
        }
    };
    texts.iter().map(fact).collect()
}

/// Reads the version of mu that is supposed.
pub(crate) fn supposed_mu(text: Option<&str>) -> Result<Option<Version>, CommandError> {
    let version = text.map(Version::parse_lenient).transpose();
    version.map_err(|error| CommandError::new(Code::Usage, format!("--mu-version: {error}")))
}

/// Reads supposed installations: each `ID#VERSION` or `ID#VERSION@CHANNEL`, or a file with one of them in each line.
pub(crate) fn supposed_installations(
    session: &Session,
    texts: &[String],
) -> Result<BTreeMap<PackageId, InstalledVersion>, CommandError> {
    let mut all = BTreeMap::new();
    for text in texts {
        let file = session.environment.current.join(text);
        // A reference with a version has a `#`, so a file of the same name is no obstacle to it.
        let is_list = !text.contains('#') && file.is_file();
        let lines = if is_list { Some(fs::read_text(&file)?) } else { None };
        match lines {
            None => all.extend([one(session, text, None)?]),
            Some(lines) => {
                for (number, line) in lines.lines().enumerate() {
                    // A list in YAML is one, too.
                    let entry = line.trim().trim_start_matches("- ").trim_matches(['"', '\'']);
                    if !entry.is_empty() && !entry.starts_with('#') {
                        let place = format!("{}:{}: ", file.display(), number + 1);
                        all.extend([one(session, entry, Some(&place))?]);
                    }
                }
            }
        }
    }
    Ok(all)
}

fn one(
    session: &Session,
    text: &str,
    place: Option<&str>,
) -> Result<(PackageId, InstalledVersion), CommandError> {
    // Versions never contain `@`; in a repository's URL, `@` follows the user.
    let channel = text.split_once('#').and_then(|(_, version)| version.split_once('@'));
    let channel = channel.map(|(_, channel)| channel.to_owned());
    // The text without `@CHANNEL`, which no reference has.
    let length = text.len() - channel.as_ref().map_or(0, |channel| channel.len() + 1);
    let reference = Reference::parse(text.get(..length).unwrap_or(text))?;
    let version = match reference.version() {
        Some(VersionSpec::Pin(pin)) => Some(Version::parse(&pin.version().to_string())?),
        // Of a composite one, the app's version can leave numbers out, or be other text.
        Some(VersionSpec::Tag(tag)) => Version::parse_composite(tag.as_str()).ok(),
        _ => None,
    };
    let Some(version) = version.filter(|_| channel.as_deref() != Some("")) else {
        let form =
            "ID#VERSION or ID#VERSION@CHANNEL, with one version, or a file with a list of them";
        let place = place.unwrap_or_default();
        let message = format!("{place}--installed takes {form}, not `{text}`");
        return Err(
            CommandError::new(Code::Usage, message).hint("such as `--installed 'aws/ec2#1.0.6'`")
        );
    };
    let id = session.id_of_argument(&reference);
    let alone = reference.with_version(None);
    session.index().declare(&id, &alone, &session.environment.current);
    Ok((id, InstalledVersion { version, channel, is_next_wanted: false }))
}

/// One change of one command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CommandChange {
    /// `mu add` of one reference: the package as the command names it and the list of its manifest, the entry, and the channel and app
    /// version as flags, where an empty one removes a key.
    Add((Option<String>, Section), manifest::Requirement, [Option<String>; 2]),
    /// `mu get` of one reference.
    Get(PackageId, manifest::Requirement),
    /// `mu remove` of one package, from this manifest, or from wherever the command finds it.
    Remove(Option<usize>, PackageId),
}

impl CommandChange {
    /// Makes the change in memory.
    pub(crate) fn make_change(
        &self,
        session: &Session,
        editing: &mut Editing,
        extra: &mut Vec<String>,
    ) -> Result<(), CommandError> {
        match self {
            Self::Add((package, section), dependency, [channel, app_version]) => {
                let member = locked::target(session, package.as_deref(), "mu add REF -p PACKAGE")?;
                let narrowing = [channel.as_ref(), app_version.as_ref()];
                let is_narrowed = narrowing.iter().any(Option::is_some) || dependency.prerelease;
                if is_narrowed {
                    editing.narrow(session, (member, *section), dependency, narrowing)?;
                }
                editing.write_dependency(session, member, *section, dependency.clone())
            }
            Self::Get(id, dependency) => {
                *extra = references_without(session, extra, id);
                extra.push(print_extra(dependency));
                Ok(())
            }
            Self::Remove(member, id) => {
                let everywhere = || (0..session.workspace.members.len()).collect();
                let targets: Vec<usize> = match member {
                    Some(member) => vec![*member],
                    None => locked::around(session)?.map_or_else(everywhere, |index| vec![index]),
                };
                let text = session.short_name(id);
                refuse_several(session, &editing.changed, &targets, &text, id)?;
                editing.leave(session, &targets, &text, id)?;
                *extra = references_without(session, extra, id);
                Ok(())
            }
        }
    }
}
