//! From the tree of a file to a [`Manifest`], or to the parts of one that can be read alone: its [`Head`] and its [`Outline`].
//! And the manifest that mu generates for a package without one.
//!
//! Every check that needs no other file happens here, and every error points at its place.

use std::collections::BTreeMap;
use std::path::Path;

use mu_provider::InnerPath;

use super::schema::{self, File, PersonTable};
use super::source::{Document, SourceError, Table, Text, TextProblem, Value};
use super::{
    API_VERSION, BuildRecipe, Capability, Constraint, ExportedElement, FileWarning, Globs, Head,
    Manifest, Person, Upgrade, Versioning, Versions, requirement,
};
use crate::reference::{Name, Range, Reference, ReferenceError, Version, VersionSpec, pasted};
use crate::source::layout::entries::quoted;

const GENERATED_KEY: &str = "x-generated";

impl From<ReferenceError> for TextProblem {
    fn from(error: ReferenceError) -> Self {
        let mut problem = Self::new(error.to_string());
        problem.help = pasted::help(&error);
        // If a password was hidden, positions in the text are not those in the file.
        problem.span = (!error.text().contains("****")).then(|| error.span());
        problem
    }
}

/// Reads a manifest. One that is not `is_own` was published by somebody and checked then: its version may
/// leave numbers out.
fn manifest(
    document: &Document<'_>,
    is_own: bool,
) -> Result<(Manifest, Vec<FileWarning>), SourceError> {
    let root = document.root_value();
    if root.is_null() {
        return Err(root.error("the manifest is empty").help("it needs at least `name`"));
    }
    let api_version = api_version(root)?;
    let table = root.file(File::KEYS, OTHERS)?;
    let name = name(table)?.ok_or_else(|| {
        let start = root.span().start;
        document
            .error(start..start, "the manifest has no `name`")
            .help("add the name of the package, such as `name: acme/web`")
    })?;
    let mut warnings = Vec::new();
    let mut requirements = |key| match table.get(key) {
        Some(value) => requirement::read(value, &mut warnings),
        None => Ok(Vec::new()),
    };
    let dependencies = requirements(File::dependencies)?;
    let dev_dependencies = requirements(File::dev_dependencies)?;
    let Numbers { versioning, version, versions, written, app_version } = numbers(table, is_own)?;
    let is_lenient = versions == Versions::Lenient || !is_own;
    let manifest = Manifest {
        name,
        version,
        written_version: written,
        app_version,
        versioning,
        versions,
        format: None,
        api_version,
        mu_version: parsed(table, File::mu_version, Range::parse)?,
        description: table.string(File::description)?,
        authors: authors(table)?,
        maintainers: one_or_more(table.get(File::maintainers), person)?,
        website: table.string(File::website)?,
        repository: table.string(File::repository)?,
        deprecated: table.string(File::deprecated)?,
        license: table.string(File::license)?,
        keywords: table.strings(File::keywords)?,
        readme: table.text(File::readme)?.map(|text| inner_path(&text)).transpose()?,
        files: table.get(File::files).map(globs).transpose()?.unwrap_or_else(Globs::all),
        dependencies,
        dev_dependencies,
        replaces: table.list(File::replaces, |value| value.text()?.parse(unversioned))?,
        provides: table.list(File::provides, |value| value.text()?.parse(Capability::parse))?,
        requires: table.list(File::requires, |value| value.text()?.parse(Capability::parse))?,
        constraints: constraints(table)?,
        conflicts: table.list(File::conflicts, |value| value.text()?.parse(unversioned))?,
        channels: table.list(File::channels, |value| word(&value.text()?))?,
        default_channel: table.text(File::default_channel)?.map(|text| word(&text)).transpose()?,
        upgrade: one_or_more(table.get(File::upgrade), |one| upgrade(one, versioning, is_lenient))?,
        exports: exports(table)?,
        build: build(table)?,
        generated: table.flag(GENERATED_KEY)?,
    };
    Ok((manifest, warnings))
}

/// Reads only what [`Head`] holds, and is equally strict about it.
fn head(document: &Document<'_>) -> Result<Head, SourceError> {
    let root = document.root_value();
    api_version(root)?;
    let table = root.file(File::KEYS, OTHERS)?;
    Ok(Head {
        name: name(table)?,
        version: numbers(table, false)?.version,
        exports: exports(table)?.into_keys().collect(),
        generated: table.flag(GENERATED_KEY)?,
    })
}

/// Where the keys are that are no keys of a manifest.
const OTHERS: &str = "settings of the workspace, such as `overrides`, are in `.mu/workspace.yaml`";

/// The format is checked first: mu cannot judge anything else in a newer one.
fn api_version(root: Value<'_>) -> Result<Option<String>, SourceError> {
    let found = root.entries()?.find(|(key, _)| key.as_str() == File::api_version);
    let Some((_, value)) = found.filter(|(_, value)| !value.is_null()) else { return Ok(None) };
    let text = value.text()?;
    if text.as_str() == API_VERSION {
        return Ok(Some(API_VERSION.to_owned()));
    }
    let error = text.error(format!("unknown manifest format `{}`", text.as_str()));
    Err(error.help(format!("this mu reads `{API_VERSION}`; a newer mu may read more")))
}

fn parsed<T, P: Into<TextProblem>>(
    table: Table<'_>,
    key: &str,
    parser: impl FnOnce(&str) -> Result<T, P>,
) -> Result<Option<T>, SourceError> {
    table.word(key)?.map(|text| text.parse(parser)).transpose()
}

fn name(table: Table<'_>) -> Result<Option<Reference>, SourceError> {
    table.text(File::name)?.map(|text| text.parse(unversioned)).transpose()
}

/// A name, or base and name: neither protocol nor version.
///
/// # Errors
///
/// When the text is not a reference, or has a version.
pub fn unversioned(text: &str) -> Result<Reference, TextProblem> {
    let advice =
        "write a name such as `acmecorp/elk`, or one with its base, such as `hub.acme.co/elk`";
    let reference = Reference::parse(text).map_err(|error| {
        let headline = error.headline().replace("valid reference", "valid package name");
        let message = error.message().replace("`/`, `#` or", "`/` or");
        TextProblem::new(format!("{headline}: {message}")).at(error.span()).help(advice)
    })?;
    if let Some(at) = text.find('#') {
        return Err(TextProblem::new("no version belongs here").at(at..text.len()).help(advice));
    }
    if reference.local().is_some() {
        return Err(TextProblem::new("a folder is not a name").help(advice));
    }
    // What is in a repository on this machine has no other name.
    let is_elsewhere = reference.protocol().is_some_and(|protocol| !protocol.is_file());
    if is_elsewhere || reference.user().is_some() {
        let end = text.find("://").map_or(text.len(), |at| at + "://".len());
        return Err(TextProblem::new("no protocol belongs here").at(0..end).help(advice));
    }
    Ok(reference)
}

struct Numbers {
    versioning: Versioning,
    versions: Versions,
    version: Option<Version>,
    written: Option<String>,
    app_version: Option<String>,
}

fn numbers(table: Table<'_>, is_own: bool) -> Result<Numbers, SourceError> {
    let versions: Versions = table.choice(File::versions)?.unwrap_or_default();
    let is_lenient = versions == Versions::Lenient || !is_own;
    let versioning = table.choice(File::versioning)?.unwrap_or_default();
    let app = table.word(File::app_version)?;
    let written = table.word(File::version)?;
    let revision =
        written.as_ref().map(|text| text.parse(|text| version_of(text, is_lenient))).transpose()?;
    let version = match (versioning, &written, revision) {
        (_, None, _) | (_, _, None) => None,
        (Versioning::Semver, _, revision) => revision,
        (Versioning::Composite, Some(written), Some(_)) => {
            let Some(app) = &app else {
                return Err(written.error("a composite version needs `appVersion` too"));
            };
            let composite = app.parse(|app| Version::composite(app, written.as_str()))?;
            Some(composite)
        }
    };
    let owned = |text: Text<'_>| text.as_str().to_owned();
    Ok(Numbers {
        versioning,
        version,
        versions,
        written: written.map(owned),
        app_version: app.map(owned),
    })
}

/// A version: semver to the letter, or with numbers left out.
fn version_of(text: &str, is_lenient: bool) -> Result<Version, TextProblem> {
    match strict_version(text) {
        Err(_) if is_lenient && !text.starts_with(['v', 'V']) => {
            Version::parse_lenient(text).map_err(TextProblem::from)
        }
        result => result,
    }
}

/// Semver to the letter: no `v`, no missing parts.
fn strict_version(text: &str) -> Result<Version, TextProblem> {
    if let Some(rest) = text.strip_prefix(['v', 'V']).filter(|rest| Version::parse(rest).is_ok()) {
        return Err(TextProblem::new("write the version without `v` here")
            .at(0..1)
            .help(format!("write `{rest}`")));
    }
    Version::parse(text).map_err(|error| {
        // `1` and `1.0` only lack zeros.
        let whole = [".0", ".0.0"].iter().map(|rest| format!("{text}{rest}"));
        let whole = whole.into_iter().find(|whole| Version::parse(whole).is_ok());
        let problem = TextProblem::from(error);
        match whole {
            Some(whole) => problem.help(format!(
                "write `{whole}`, or `versions: lenient` beside it if versions of this package have fewer numbers"
            )),
            None => problem,
        }
    })
}

fn authors(table: Table<'_>) -> Result<Vec<Person>, SourceError> {
    match (table.get(File::author), table.get(File::authors)) {
        (Some(author), Some(_)) => Err(author.error("`author` and `authors` are the same key")),
        (author, authors) => one_or_more(author.or(authors), person),
    }
}

/// What one value says, or each of a list.
fn one_or_more<'d, T>(
    value: Option<Value<'d>>,
    read: impl Fn(Value<'d>) -> Result<T, SourceError>,
) -> Result<Vec<T>, SourceError> {
    match value {
        None => Ok(Vec::new()),
        Some(value) if value.is_list() => value.list()?.map(read).collect(),
        Some(value) => Ok(vec![read(value)?]),
    }
}

fn person(value: Value<'_>) -> Result<Person, SourceError> {
    if !value.is_table() {
        return Ok(Person::parse(value.text()?.as_str()));
    }
    let table = value.table(PersonTable::KEYS)?;
    let name = table.string(PersonTable::name)?;
    let name = name.ok_or_else(|| value.error("a person needs `name`"))?;
    let (email, url) = (table.string(PersonTable::email)?, table.string(PersonTable::url)?);
    Ok(Person { name, email, url })
}

/// A list of patterns.
///
/// # Errors
///
/// When the value is not a list, or one of its elements is not a pattern.
pub fn globs(value: Value<'_>) -> Result<Globs, SourceError> {
    let mut globs = Globs::default();
    for pattern in value.list()? {
        pattern.text()?.parse(|text| globs.add_pattern(text))?;
    }
    Ok(globs)
}

/// A path that stays in the package.
fn inner_path(text: &Text<'_>) -> Result<InnerPath, SourceError> {
    let path = text.as_str();
    InnerPath::parse(path.strip_prefix("./").unwrap_or(path))
        .map_err(|_| text.error("expected a path inside the package"))
}

/// The text, if it is what it should be.
fn checked(text: &Text<'_>, is_right: bool, message: &str) -> Result<String, SourceError> {
    if is_right { Ok(text.as_str().to_owned()) } else { Err(text.error(message)) }
}

/// One word, such as a channel's name.
fn word(text: &Text<'_>) -> Result<String, SourceError> {
    let word = text.as_str();
    let has_blanks = word.contains(|c: char| c.is_whitespace() || c.is_control());
    checked(text, !word.is_empty() && !has_blanks, "expected one word")
}

fn constraints(table: Table<'_>) -> Result<BTreeMap<String, Constraint>, SourceError> {
    table.entries(File::constraints, |(key, value)| {
        Ok((key.as_str().to_owned(), value.word()?.parse(Constraint::parse)?))
    })
}

fn upgrade(
    value: Value<'_>,
    versioning: Versioning,
    is_lenient: bool,
) -> Result<Upgrade, SourceError> {
    let table = value.table(schema::Upgrade::KEYS)?;
    let version = |text: &str| match versioning {
        Versioning::Semver => version_of(text, is_lenient),
        Versioning::Composite => Version::parse_composite(text).map_err(TextProblem::from),
    };
    Ok(Upgrade {
        channel: table.text(schema::Upgrade::channel)?.map(|text| word(&text)).transpose()?,
        replaces: parsed(table, schema::Upgrade::replaces, version)?,
        skips: table.list(schema::Upgrade::skips, |value| value.word()?.parse(version))?,
        skip_range: parsed(table, schema::Upgrade::skip_range, Range::parse)?,
    })
}

fn exports(table: Table<'_>) -> Result<BTreeMap<String, ExportedElement>, SourceError> {
    table.entries(File::exports, |(key, value)| {
        key.parse(Name::parse)?;
        Ok((key.as_str().to_owned(), export(value)?))
    })
}

fn export(value: Value<'_>) -> Result<ExportedElement, SourceError> {
    if value.is_null() {
        return Ok(ExportedElement::default());
    }
    let table = value.table(schema::Export::KEYS)?;
    Ok(ExportedElement {
        kind: table.choice(schema::Export::kind)?,
        path: table.text(schema::Export::path)?.map(|text| inner_path(&text)).transpose()?,
    })
}

fn build(table: Table<'_>) -> Result<Option<BuildRecipe>, SourceError> {
    let Some(value) = table.get(File::build) else { return Ok(None) };
    let table = value.table(schema::Build::KEYS)?;
    let missing = || value.error("`build` needs `command`");
    let command = table.get(schema::Build::command).ok_or_else(missing)?;
    if !command.is_list() {
        return Err(command
            .error("`command` must be a list")
            .help("write the program and each argument separately: `[\"make\", \"pack\"]`"));
    }
    let command = table.strings(schema::Build::command)?;
    if command.first().is_none_or(String::is_empty) {
        return Err(missing());
    }
    let outputs = table.list(schema::Build::outputs, |value| inner_path(&value.text()?))?;
    let env = table.list(schema::Build::env, |value| {
        let text = value.text()?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = text.as_str().chars().all(is_word) && !text.as_str().is_empty();
        checked(&text, is_name, "an environment variable has a name of letters, digits and `_`")
    })?;
    let tools = table.list(schema::Build::tools, |value| {
        let text = value.text()?;
        let is_name = !text.as_str().is_empty() && !text.as_str().contains(['/', '\\', '\0']);
        checked(&text, is_name, "a tool is the name of a program, without a folder")
    })?;
    Ok(Some(BuildRecipe { command, outputs, env, tools }))
}

impl Manifest {
    /// Reads `text`, the content of the manifest at `path`. A `.json` file is read as JSON, any other as
    /// YAML.
    ///
    /// # Errors
    ///
    /// When the text is not well formed, or has something that a manifest cannot have.
    pub fn parse(path: &Path, text: &str) -> Result<(Self, Vec<FileWarning>), SourceError> {
        manifest(&Document::read(path, text)?, true)
    }

    /// Reads the manifest of a published package. Its version may leave numbers out, whether or not it has
    /// `versions: lenient`, because a registry's settings may allow that.
    ///
    /// # Errors
    ///
    /// As [`Manifest::parse`].
    pub fn parse_published(path: &Path, text: &str) -> Result<Self, SourceError> {
        Ok(manifest(&Document::read(path, text)?, false)?.0)
    }
}

impl Head {
    /// Reads only the name, version and exports of the manifest at `path`.
    ///
    /// # Errors
    ///
    /// When the text is not well formed, or one of these keys is wrong.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SourceError> {
        head(&Document::read(path, text)?)
    }
}

/// What a manifest of any format says about its identity and about who can use it, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The package's name, with or without a base.
    pub name: Option<String>,
    /// The version; for a composite one, only the revision.
    pub version: Option<String>,
    /// The version of the software inside.
    pub app_version: Option<String>,
    /// The kind of its versions.
    pub versioning: Option<String>,
    /// The path of its readme.
    pub readme: Option<String>,
    /// The manifest format.
    pub api_version: Option<String>,
    /// The range of mu versions.
    pub mu_version: Option<String>,
}

impl Outline {
    /// Reads only these keys of the manifest at `path`. Another version of mu may be needed to read the rest.
    ///
    /// # Errors
    ///
    /// When the text is not well formed.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SourceError> {
        let document = Document::read(path, text)?;
        // A number becomes the text that it is written as.
        let word = |key: &str| {
            let mut entries = document.root_value().entries().ok()?;
            let (_, value) = entries.find(|(known, _)| known.as_str() == key)?;
            value.word().ok().map(|text| text.as_str().to_owned())
        };
        Ok(Self {
            name: word(File::name),
            version: word(File::version),
            app_version: word(File::app_version),
            versioning: word(File::versioning),
            readme: word(File::readme),
            api_version: word(File::api_version),
            mu_version: word(File::mu_version),
        })
    }

    /// Whether it needs a manifest format or a version of mu that is not this one.
    pub fn is_of_another_mu(&self) -> bool {
        let own = Version::parse(env!("CARGO_PKG_VERSION")).ok();
        let accepts = |wanted: &str| {
            let range = VersionSpec::parse(wanted).ok();
            range.zip(own.as_ref()).is_none_or(|(range, own)| range.accepts(own, true))
        };
        self.api_version.as_deref().is_some_and(|format| format != API_VERSION)
            || self.mu_version.as_deref().is_some_and(|wanted| !accepts(wanted))
    }
}

/// The manifest for a package that has none: name, version, and the mark that mu generated it.
pub fn generated_manifest(name: &str, version: Option<&str>) -> String {
    let mut text = format!(
        "# Written by mu: this package has no manifest of its own.\nname: {}\n",
        quoted(name)
    );
    if let Some(version) = version {
        text.push_str(&format!("version: {}\n", quoted(version)));
    }
    text.push_str("x-generated: true\n");
    text
}
