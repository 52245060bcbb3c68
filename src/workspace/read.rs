//! From the two files of settings to [`Settings`]: each is read into a layer, the workspace's on top.
//!
//! Lists and single values of the workspace replace those of the home folder; maps are merged entry by entry. What keeps versions or
//! programs away (`exclude`, `minimumReleaseAge`, `trust`, `advisories`) is joined: a workspace adds to what its user asks for, and takes nothing from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mu_formats::FORMATS;
use mu_provider::http::TokenHosts;
use mu_provider::{InnerPath, NamedBy};

use super::members::Patterns;
use super::registry::{OfUser, TrustedBuilds};
use super::rules::TrustLayer;
use super::schema::{Consent, File, Trust};
use super::settings::{
    AdvisorySettings, ExclusionSetting, FRESH_FOR, LicenseRules, Link, Namespace, PatchFile,
    ReleaseAge, Settings, StatedPackage, packages, runtime, runtime_provides,
};
use super::trust::TrustSettings;
use super::{ConfiguredRegistry, Cutoff, registry, rules, settings};
use crate::manifest::source::{Document, SourceError, Table, Text, TextProblem, Value};
use crate::manifest::{Globs, globs, is_version_alone, unversioned};
use crate::reference::{Alias, Aliases, Base, Defaults, PackageId, Reference, VersionSpec};
use crate::select::{Bundled, Majors, Resolution};

/// The keys of a workspace's file only, and those of both files.
const KEYS: (&[&str], &[&str]) = File::KEYS.split_at(3);

/// The content of one file; ids are not yet complete, because the base may come from the other.
#[derive(Debug, Default)]
pub(super) struct SettingsLayer {
    pub(super) namespace: Option<Namespace>,
    pub(super) members: Option<Patterns>,
    base: Option<Base>,
    resolution: Option<Resolution>,
    pub(super) registries: Vec<ConfiguredRegistry>,
    runtime: BTreeMap<String, String>,
    runtime_provides: Option<Vec<String>>,
    packages: Vec<StatedPackage>,
    overrides: Vec<(Reference, Reference)>,
    aliases: Vec<Alias>,
    licenses: Option<settings::StatedLicenses>,
    advisories: AdvisorySettings,
    exclude: Option<Vec<Reference>>,
    pub(super) patches: Vec<(String, Reference, InnerPath)>,
    bundled: Option<Vec<BundledReferences>>,
    formats: Option<Vec<&'static str>>,
    majors: Option<Majors>,
    minimum_release_age: Option<Cutoff>,
    fresh_for: Option<u32>,
    allow_replaces: Vec<(Reference, Reference)>,
    link: Option<Link>,
    trusted_builds: Option<Globs>,
    /// The lines, counted from 1, that have builds run without a question.
    pub(super) unasked_builds: Vec<usize>,
    trusted_workspaces: Vec<String>,
    trusted_folders: Vec<String>,
    plugins: BTreeMap<String, PathBuf>,
    pub(super) trust: TrustLayer,
}

/// A chart, and the only chart inside of it that is meant, unless all are.
type BundledReferences = (Reference, Option<Reference>);

/// Which of the two files is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Workspace,
    Config,
}

/// Reads one file; relative folders in it are relative to `folder`.
pub(super) fn layer(
    document: &Document<'_>,
    kind: Kind,
    folder: &Path,
) -> Result<SettingsLayer, SourceError> {
    let root = document.root_value();
    if root.is_null() {
        return Ok(SettingsLayer::default());
    }
    let keys = match kind {
        Kind::Workspace => File::KEYS,
        Kind::Config => {
            refuse_workspace_keys(root)?;
            KEYS.1
        }
    };
    let others = "what a package is and needs, such as `dependencies`, is in its Mu.yaml";
    let table = root.file(keys, others)?;
    let base = table.text(File::base)?.map(|text| text.parse(base)).transpose()?;
    let defaults = Defaults { base: base.clone().unwrap_or_default(), ..Defaults::default() };
    let licenses = table.get(File::licenses);
    let by_package =
        [File::packages, File::overrides, File::allow_replaces].map(|key| table.get(key));
    let except = licenses.map(settings::licenses_except).transpose()?.flatten();
    for map in by_package.into_iter().chain([except]).flatten() {
        refuse_repeated(map, "are one package", |key| Ok(key.parse(unversioned)?.id(&defaults)))?;
    }
    for map in [File::registries, File::aliases].into_iter().filter_map(|key| table.get(key)) {
        refuse_repeated(map, "are one prefix", |key| key.parse(registry::prefix))?;
    }
    let (trusted_builds, unasked_builds) = trusted_builds(table)?;
    let is_workspace = kind == Kind::Workspace;
    let workspace_only = |key| is_workspace.then(|| table.get(key)).flatten();
    Ok(SettingsLayer {
        namespace: workspace_only(File::namespace).map(namespace).transpose()?,
        members: workspace_only(File::members).map(Patterns::read).transpose()?,
        base,
        resolution: table.choice(File::resolution)?,
        registries: registries(table, kind, folder)?,
        runtime: runtime(table)?,
        runtime_provides: runtime_provides(table)?,
        packages: packages(table)?,
        overrides: overrides(table, kind, folder)?,
        aliases: aliases(table)?,
        licenses: licenses.map(settings::licenses).transpose()?,
        advisories: settings::read(table, named_by(kind), folder)?,
        exclude: list(table, File::exclude, |text| text.parse(Reference::parse))?,
        patches: workspace_only(File::patches).map(patches).transpose()?.unwrap_or_default(),
        bundled: list(table, File::bundled, |text| text.parse(bundled))?,
        formats: list(table, File::formats, |text| text.parse(format))?,
        majors: table.choice(File::majors)?,
        minimum_release_age: word(table, File::minimum_release_age, Cutoff::parse)?,
        fresh_for: word(table, File::fresh_for, seconds)?,
        allow_replaces: allow_replaces(table)?,
        link: table.choice(File::link)?,
        trusted_builds,
        unasked_builds,
        trusted_workspaces: trusted_paths(table, kind, Trust::workspaces)?,
        trusted_folders: trusted_paths(table, kind, Trust::folders)?,
        plugins: plugins(table, kind, folder)?,
        trust: rules::read(trust_table(table)?, named_by(kind), folder)?,
    })
}

impl SettingsLayer {
    /// Whether the workspace at `root` is trusted, whoever owns it: by its own path, by a folder above it
    /// with `/*`, or by `*`.
    pub(super) fn trusts(&self, root: &Path) -> bool {
        registry::names_folder(&self.trusted_workspaces, root)
    }

    /// The settings of this layer, the workspace's, and the one below it, the user's. Short names in the user's file have the base
    /// and the aliases of that file, whatever the workspace says.
    pub(super) fn over(self, below: Self) -> Settings {
        let of_user = Defaults {
            base: below.base.clone().unwrap_or_default(),
            namespace: None,
            aliases: Aliases::new(below.aliases.clone()),
        };
        let base = self.base.or(below.base).unwrap_or_default();
        let is_new = |alias: &&Alias| !below.aliases.contains(alias);
        let aliases_here: Vec<Alias> = self.aliases.iter().filter(is_new).cloned().collect();
        let above = self.aliases;
        let mut all = below.aliases;
        all.retain(|alias| above.iter().all(|other| other.from != alias.from));
        all.extend(above);
        let aliases = Aliases::new(all);
        let defaults = Defaults { base: base.clone(), namespace: None, aliases: aliases.clone() };
        let mut runtime = below.runtime;
        runtime.extend(self.runtime);
        let pairs = |all: Vec<(Reference, Reference)>, defaults: &Defaults| {
            all.into_iter().map(|(old, new)| (old.id(defaults), new)).collect::<Vec<_>>()
        };
        let overrides_of_user = pairs(below.overrides, &of_user);
        let overrides = pairs(self.overrides, &defaults);
        let is_other = |(id, reference): &&(PackageId, Reference)| {
            // A version of the package itself is not something else.
            reference.id(&defaults) != *id
                && !overrides_of_user.contains(&((*id).clone(), reference.clone()))
        };
        let overrides_here = overrides.iter().map(|(id, _)| id.clone()).collect();
        let overridden_here = overrides.iter().filter(is_other).map(|(id, _)| id.clone()).collect();
        let allow_replaces = |all: Vec<(Reference, Reference)>, defaults: &Defaults| {
            let ids = all.into_iter().map(|(old, new)| (old.id(defaults), new.id(defaults)));
            ids.collect::<Vec<_>>()
        };
        let allowed = allow_replaces(below.allow_replaces, &of_user);
        let allow_replaces = allow_replaces(self.allow_replaces, &defaults);
        let exclude = |all: Option<Vec<Reference>>, defaults: &Defaults| {
            let exclusion = |reference: Reference| ExclusionSetting {
                id: reference.id(defaults),
                versions: reference.version().cloned(),
            };
            all.unwrap_or_default().into_iter().map(exclusion).collect::<Vec<_>>()
        };
        let mut excluded = exclude(below.exclude, &of_user);
        for exclusion in exclude(self.exclude, &defaults) {
            if !excluded.contains(&exclusion) {
                excluded.push(exclusion);
            }
        }
        let licenses = match (self.licenses, below.licenses) {
            (Some(here), _) => Some((here, &defaults)),
            (None, of_user_file) => of_user_file.map(|there| (there, &of_user)),
        };
        let licenses = licenses.map(|((allow, except), defaults)| LicenseRules {
            allow,
            except: except.into_iter().map(|(one, why)| (one.id(defaults), why)).collect(),
        });
        let (bundled, bundled_by) = match self.bundled {
            Some(bundled) => (bundled, &defaults),
            None => (below.bundled.unwrap_or_default(), &of_user),
        };
        let bundled = bundled
            .into_iter()
            .map(|(by, id)| Bundled { by: by.id(bundled_by), id: id.map(|id| id.id(bundled_by)) });
        let (provided, stated_replaces) =
            settings::joined([(below.packages, &of_user), (self.packages, &defaults)]);
        let ages = [
            (self.minimum_release_age, NamedBy::Workspace),
            (below.minimum_release_age, NamedBy::User),
        ];
        let trust = TrustSettings {
            of_user: below.trust.with_ids(&of_user),
            of_workspace: self.trust.with_ids(&defaults),
        };
        let token_hosts =
            TokenHosts::new(below.registries.iter().filter_map(ConfiguredRegistry::token_hosts));
        let mut of_user_registries = below.registries;
        of_user_registries.retain(ConfiguredRegistry::says_where);
        Settings {
            resolution: self.resolution.or(below.resolution).unwrap_or_default(),
            of_user: OfUser { base: of_user.base.clone(), registries: of_user_registries.clone() },
            registries: registry::merged_registries(self.registries, of_user_registries),
            token_hosts,
            runtime,
            runtime_provides: self.runtime_provides.or(below.runtime_provides).unwrap_or_default(),
            provided,
            stated_replaces,
            aliases,
            aliases_here,
            overrides: overrides_of_user.into_iter().chain(overrides).collect(),
            overridden_here,
            overrides_here,
            licenses,
            advisories: self.advisories.over(below.advisories),
            exclude: excluded,
            patches: (self.patches.into_iter())
                .map(|(key, reference, file)| PatchFile {
                    key,
                    id: reference.id(&defaults),
                    versions: reference.version().cloned(),
                    file,
                })
                .collect(),
            bundled: bundled.collect(),
            formats: self.formats.or(below.formats).unwrap_or_default(),
            majors: self.majors.or(below.majors).unwrap_or_default(),
            release_ages: ages
                .into_iter()
                .filter_map(|(cutoff, named_by)| Some(ReleaseAge { cutoff: cutoff?, named_by }))
                .filter(|age| age.cutoff != Cutoff::Age(0))
                .collect(),
            fresh_for: self.fresh_for.or(below.fresh_for).unwrap_or(FRESH_FOR),
            allow_replaces: allowed.into_iter().chain(allow_replaces).collect(),
            link: self.link.or(below.link).unwrap_or_default(),
            trusted_builds: TrustedBuilds {
                of_user: below.trusted_builds,
                of_workspace: self.trusted_builds,
            },
            trusted_folders: below.trusted_folders,
            base,
            plugins: below.plugins,
            trust,
        }
    }
}

fn refuse_workspace_keys(root: Value<'_>) -> Result<(), SourceError> {
    for (key, _) in root.entries()? {
        if KEYS.0.contains(&key.as_str()) {
            return Err(key
                .error(format!("`{}` cannot be set for every workspace", key.as_str()))
                .help("move it to the workspace's `.mu/workspace.yaml`"));
        }
    }
    Ok(())
}

/// Refuses a map that has one thing twice, under two keys that mean the same, such as a short name and a whole one: the second would
/// take the place of the first without a word.
fn refuse_repeated<'d, Meaning: Ord>(
    map: Value<'d>,
    same: &str,
    meaning: impl Fn(&Text<'d>) -> Result<Meaning, SourceError>,
) -> Result<(), SourceError> {
    let mut seen = BTreeMap::new();
    for (key, _) in map.entries()? {
        if let Some(first) = seen.insert(meaning(&key)?, key.as_str()) {
            let message = format!("`{first}` and `{}` {same}", key.as_str());
            return Err(key.error(message).help("keep one of them"));
        }
    }
    Ok(())
}

/// A base; its last slash may be missing.
fn base(text: &str) -> Result<Base, TextProblem> {
    if let Some(colon) = text.find("://") {
        let end = colon + "://".len();
        let help = format!("write only the host: `{}`", &text[end..]);
        return Err(TextProblem::new("no protocol belongs here").at(0..end).help(help));
    }
    let with_slash = if text.ends_with('/') { text.to_owned() } else { format!("{text}/") };
    Ok(Base::parse(&with_slash)?)
}

fn namespace(value: Value<'_>) -> Result<Namespace, SourceError> {
    let reference = value.text()?.parse(unversioned)?;
    Ok(Namespace { base: reference.base().cloned(), name: reference.name().clone() })
}

/// A list of texts, if the file has it: an empty one takes the place of another file's.
fn list<'d, T>(
    table: Table<'d>,
    key: &str,
    read: impl Fn(Text<'d>) -> Result<T, SourceError>,
) -> Result<Option<Vec<T>>, SourceError> {
    let list = table.get(key).map(Value::list).transpose()?;
    list.map(|list| list.map(|value| read(value.text()?)).collect()).transpose()
}

/// Who has written a file.
fn named_by(kind: Kind) -> NamedBy {
    match kind {
        Kind::Workspace => NamedBy::Workspace,
        Kind::Config => NamedBy::User,
    }
}

fn registries(
    table: Table<'_>,
    kind: Kind,
    folder: &Path,
) -> Result<Vec<ConfiguredRegistry>, SourceError> {
    let named_by = named_by(kind);
    table.entries(File::registries, |(key, value)| registry::read(&key, value, folder, named_by))
}

fn overrides(
    table: Table<'_>,
    kind: Kind,
    folder: &Path,
) -> Result<Vec<(Reference, Reference)>, SourceError> {
    table.entries(File::overrides, |(key, value)| {
        let package = key.parse(unversioned)?;
        let text = value.word()?;
        // As in a map of dependencies: a value without a place is a version of the package itself.
        if is_version_alone(text.as_str()) {
            let version = text.parse(VersionSpec::parse)?;
            return Ok((package.clone(), package.with_version(Some(version))));
        }
        let reference = text.parse(Reference::parse)?;
        let path = reference.local().map(|path| crate::env::absolute(folder, Path::new(path)));
        if kind == Kind::Workspace && path.is_some_and(|path| path == folder) {
            return Err(
                value.error("this is the workspace itself, with all that is installed in it")
            );
        }
        let relative = reference.local().filter(|folder| !folder.starts_with('/'));
        // A path relative to the home folder must not become relative to the workspace.
        let reference = match relative.filter(|_| kind == Kind::Config) {
            Some(relative) => {
                let path = folder.join(relative);
                text.parse(|_| Reference::parse(&path.to_string_lossy()))?
            }
            None => reference,
        };
        Ok((package, reference))
    })
}

fn aliases(table: Table<'_>) -> Result<Vec<Alias>, SourceError> {
    table.entries(File::aliases, |(key, value)| {
        let from = key.parse(registry::prefix)?;
        let text = value.text()?;
        let (protocol, to) = text.parse(|text| -> Result<_, TextProblem> {
            let Some((protocol, rest)) = text.split_once("://") else {
                return Ok((None, registry::prefix(text)?));
            };
            // Checks the protocol, too.
            Reference::parse(&format!("{}/x", text.trim_end_matches('/')))?;
            Ok((Some(protocol.to_owned()), registry::prefix(rest)?))
        })?;
        // What is itself is meant as it is.
        if to != from && (to.starts_with(&from) || from.starts_with(&to)) {
            let message =
                format!("`{from}` and `{to}` begin alike, so one cannot replace the other");
            return Err(value.error(message));
        }
        Ok(Alias { from, to, protocol })
    })
}

fn patches(value: Value<'_>) -> Result<Vec<(String, Reference, InnerPath)>, SourceError> {
    let read = |(key, value): (Text<'_>, Value<'_>)| {
        let package = key.parse(|text| -> Result<_, TextProblem> {
            let package = Reference::parse(text)?;
            match package.version() {
                None
                | Some(VersionSpec::Pin(_) | VersionSpec::Range(_) | VersionSpec::Commit(_)) => {
                    Ok(package)
                }
                Some(_) => {
                    let start = text.find('#').unwrap_or_default();
                    Err(TextProblem::new("a patch is for a version, a range or a commit")
                        .at(start..text.len()))
                }
            }
        })?;
        let file = value.text()?;
        let path = file.as_str();
        let path = InnerPath::parse(path.strip_prefix("./").unwrap_or(path)).map_err(|error| {
            let message = format!("this is not a file below the workspace's root: {error}");
            value.error(message).help("write its path, such as `patches/fix.patch`")
        })?;
        Ok((key.as_str().to_owned(), package, path))
    };
    value.entries()?.map(read).collect()
}

fn bundled(text: &str) -> Result<BundledReferences, TextProblem> {
    Ok(match text.split_once('>') {
        Some((by, id)) => (unversioned(by.trim())?, Some(unversioned(id.trim())?)),
        None => (unversioned(text)?, None),
    })
}

fn format(text: &str) -> Result<&'static str, TextProblem> {
    let known = FORMATS.iter().find(|format| format.name == text);
    known.map(|format| format.name).ok_or_else(|| {
        let mut names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        names.dedup();
        let help = format!("the formats are: `{}`", names.join("`, `"));
        TextProblem::new(format!("`{text}` is not a format that mu reads")).help(help)
    })
}

fn allow_replaces(table: Table<'_>) -> Result<Vec<(Reference, Reference)>, SourceError> {
    table.entries(File::allow_replaces, |(key, value)| {
        Ok((key.parse(unversioned)?, value.text()?.parse(unversioned)?))
    })
}

fn word<T>(
    table: Table<'_>,
    key: &str,
    read: impl Fn(&str) -> Result<T, TextProblem>,
) -> Result<Option<T>, SourceError> {
    table.word(key)?.map(|text| text.parse(read)).transpose()
}

fn seconds(text: &str) -> Result<u32, TextProblem> {
    let seconds = Cutoff::parse_age(text)?;
    u32::try_from(seconds).map_err(|_| TextProblem::new(format!("`{text}` is too long")))
}

/// The map below `trust`.
fn trust_table<'d>(table: Table<'d>) -> Result<Option<Table<'d>>, SourceError> {
    table.get(File::trust).map(|value| value.table(Trust::KEYS)).transpose()
}

fn trust_value<'d>(table: Table<'d>, key: &str) -> Result<Option<Value<'d>>, SourceError> {
    Ok(trust_table(table)?.and_then(|trust| trust.get(key)))
}

/// The packages whose builds may run, and the lines that want them to run without a question.
fn trusted_builds(table: Table<'_>) -> Result<(Option<Globs>, Vec<usize>), SourceError> {
    let mut unasked = Vec::new();
    let Some(value) = trust_value(table, Trust::build)? else { return Ok((None, unasked)) };
    if !value.is_table() {
        return Ok((Some(globs(value)?), unasked));
    }
    let mut patterns = Globs::default();
    for (pattern, consent) in value.entries()? {
        if consent.text()?.choice::<Consent>()? == Consent::Auto {
            unasked.push(consent.document().line_of(consent.span().start));
        }
        pattern.parse(|text| patterns.add_pattern(text))?;
    }
    Ok((Some(patterns), unasked))
}

/// Workspaces or folders that the user trusts.
fn trusted_paths(table: Table<'_>, kind: Kind, key: &str) -> Result<Vec<String>, SourceError> {
    let Some(value) = trust_value(table, key)? else { return Ok(Vec::new()) };
    if kind == Kind::Workspace {
        let message = match key {
            Trust::workspaces => "a workspace cannot declare itself trusted",
            _ => "a workspace cannot say which folders outside of it are trusted",
        };
        return Err(value.error(message).help("write it into `~/.mu/config.yaml`"));
    }
    value.list()?.map(|folder| folder.text().map(|text| text.as_str().to_owned())).collect()
}

/// The programs of plugins, which only the user can name. Otherwise, whoever writes into a checkout could run
/// any program.
fn plugins(
    table: Table<'_>,
    kind: Kind,
    folder: &Path,
) -> Result<BTreeMap<String, PathBuf>, SourceError> {
    let Some(value) = table.get(File::plugins) else { return Ok(BTreeMap::new()) };
    if kind == Kind::Workspace {
        let message = "a workspace cannot say which program a plugin is";
        return Err(value.error(message).help("write it into `~/.mu/config.yaml`"));
    }
    let program = |(name, program): (Text<'_>, Value<'_>)| {
        let program = crate::env::absolute(folder, Path::new(program.text()?.as_str()));
        Ok((name.as_str().to_owned(), program))
    };
    table.entries(File::plugins, program)
}
