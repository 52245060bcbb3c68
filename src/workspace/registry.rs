//! Registries: which place and provider serve the packages below a prefix, and where a workspace leads these elsewhere
//! than its user does.
//!
//! [`ConfiguredRegistry`] is one registry. What a workspace leads elsewhere than its user or ids do, its user should
//! know ([`RedirectedBase`]), and the user's trust in builds does not cover it ([`Untrusted`]). This is data only: the
//! index finds the provider of a registry without one, and sends requests.

use std::path::{Path, PathBuf};

use mu_provider::http::or_variable;
use mu_provider::{NamedBy, SafeUrl, place_without_secrets};
use url::Url;

use super::Settings;
use super::schema::{File, RegistryTable, Versions};
use crate::manifest::Globs;
use crate::manifest::source::{Document, SourceError, Text, TextProblem, Value};
use crate::reference::{Base, Name, PackageId};

/// Where the packages below a prefix are, and how to request them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredRegistry {
    /// The start of its packages' ids: a base, or a base and leading segments of names, and a slash.
    pub prefix: String,
    /// The provider's name; detected if none was given.
    pub provider: Option<String>,
    /// Where it is, with a slash at the end; taken from the prefix if none was given.
    pub url: Option<SafeUrl>,
    /// Whether the place is written as a folder relative to the file's workspace.
    pub is_relative: bool,
    /// Whether plain http to another machine is allowed.
    pub insecure: bool,
    /// Whether tags such as `v1` and `1.28` count as versions.
    pub lenient: bool,
    /// Whether names there leave out the segments of the prefix.
    pub strip: bool,
    /// The host that it may name for its tokens, besides those of its own domain; from the user's own file alone.
    pub tokens_at: Option<String>,
    /// The file that sets it.
    pub defined_in: PathBuf,
    /// Who has set it.
    pub named_by: NamedBy,
}

impl ConfiguredRegistry {
    /// A registry at this place, without further settings. `place` is a URL, or a folder relative to
    /// `folder`.
    pub fn at_place(prefix: &str, place: &str, folder: &Path) -> Result<Self, TextProblem> {
        let mut registry = Self::new(self::prefix(prefix)?, PathBuf::new(), NamedBy::User);
        registry.url = Some(self::place(place, folder)?);
        Ok(registry)
    }

    fn new(prefix: String, defined_in: PathBuf, named_by: NamedBy) -> Self {
        Self {
            prefix,
            provider: None,
            url: None,
            is_relative: false,
            insecure: false,
            lenient: false,
            strip: true,
            tokens_at: None,
            defined_in,
            named_by,
        }
    }

    /// Whether it says where packages come from: not if it only names a host for tokens.
    pub(super) fn says_where(&self) -> bool {
        let alone = Self {
            tokens_at: self.tokens_at.clone(),
            ..Self::new(self.prefix.clone(), self.defined_in.clone(), self.named_by)
        };
        self.tokens_at.is_none() || *self != alone
    }

    /// The host that is asked, and the one that it may name for its tokens.
    pub(super) fn token_hosts(&self) -> Option<(String, String)> {
        let tokens_at = self.tokens_at.clone()?;
        let Some(url) = &self.url else {
            return Some((self.base().trim_end_matches('/').to_owned(), tokens_at));
        };
        // A scheme such as `oci` has no usual port of its own.
        let rest = url.as_url().as_str().split_once("://")?.1;
        let url = SafeUrl::parse(&format!("https://{rest}")).ok()?;
        Some((url.host_and_port(), tokens_at))
    }

    /// The name of a package in the registry: the rest of its id after the prefix, or its whole name; empty
    /// for a package whose id is the prefix itself. `None` for a package that is not below the prefix.
    pub fn rest_of<'i>(&self, id: &'i PackageId) -> Option<&'i str> {
        let text = id.as_str();
        let rest = text
            .strip_prefix(&*self.prefix)
            .or_else(|| (text == self.prefix.trim_end_matches('/')).then_some(""))?;
        Some(if self.strip { rest } else { id.name_str() })
    }

    /// The part of the ids of the registry's packages before their names.
    pub fn before_names(&self) -> &str {
        if self.strip { &self.prefix } else { self.base() }
    }

    /// The segments that names in the registry leave out, with a slash at the end; empty if there are none.
    pub fn left_out(&self) -> &str {
        if self.strip { self.prefix.strip_prefix(self.base()).unwrap_or_default() } else { "" }
    }

    pub(super) fn base(&self) -> &str {
        let end = self.prefix.find('/').map_or(self.prefix.len(), |slash| slash + 1);
        self.prefix.get(..end).unwrap_or_default()
    }
}

/// Reads the prefix of a registry: `hub.mu.com/`, `hub.mu.com/internal/`; the last slash may be missing.
pub fn prefix(text: &str) -> Result<String, TextProblem> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let end = scheme.len() + "://".len();
        return Err(TextProblem::new("a registry's key has no protocol").at(0..end).help(format!(
            "write `{}/`, and the URL after the colon",
            rest.trim_end_matches('/')
        )));
    }
    let whole = text.strip_suffix('/').unwrap_or(text);
    let (host, name) = whole.split_once('/').unwrap_or((whole, ""));
    let base = Base::parse(&format!("{host}/"))?;
    if name.is_empty() {
        return Ok(base.to_string());
    }
    let shifted = |mut problem: TextProblem| {
        let shift = host.len() + 1;
        problem.span = problem.span.map(|span| span.start + shift..span.end + shift);
        problem
    };
    let name = Name::parse(name).map_err(|error| shifted(error.into()))?;
    Ok(format!("{base}{name}/"))
}

/// Reads a registry: a URL, a folder relative to `folder`, or a map.
pub(super) fn read(
    key: &Text<'_>,
    value: Value<'_>,
    folder: &Path,
    named_by: NamedBy,
) -> Result<ConfiguredRegistry, SourceError> {
    let file = value.document().path().to_owned();
    let mut registry = ConfiguredRegistry::new(key.parse(prefix)?, file, named_by);
    let mut place = |text: Text<'_>| {
        registry.is_relative = text.as_str().starts_with('.');
        text.parse(|text| place(text, folder))
    };
    if !value.is_table() {
        let url = place(value.text()?)?;
        return Ok(ConfiguredRegistry { url: Some(url), ..registry });
    }
    let table = value.table(RegistryTable::KEYS)?;
    registry.url = table.text(RegistryTable::url)?.map(&mut place).transpose()?;
    let named = table.text(RegistryTable::provider)?;
    registry.provider = named.map(|text| text.parse(provider)).transpose()?;
    registry.insecure = table.flag(RegistryTable::insecure)?;
    registry.strip = table.get(RegistryTable::strip).map(Value::flag).transpose()?.unwrap_or(true);
    registry.tokens_at =
        table.get(RegistryTable::tokens_at).map(|value| tokens_at(value, named_by)).transpose()?;
    registry.lenient = table.choice(RegistryTable::versions)? == Some(Versions::Lenient);
    Ok(registry)
}

/// An error about the provider or the protocol of a registry; `None` if `text`, the content of its file, has it no more.
pub fn error_at_registry(
    registry: &ConfiguredRegistry,
    text: &str,
    message: &str,
) -> Option<SourceError> {
    let document = Document::read(&registry.defined_in, text).ok()?;
    let mut keys = document.root_value().entries().ok()?;
    let (_, all) = keys.find(|(key, _)| key.as_str() == File::registries)?;
    let is_it = |key: &Text<'_>| prefix(key.as_str()).is_ok_and(|key| key == registry.prefix);
    let (_, value) = all.entries().ok()?.find(|(key, _)| is_it(key))?;
    let of = |wanted: &str| {
        value.entries().ok()?.find(|(key, _)| key.as_str() == wanted).map(|(_, value)| value)
    };
    if let Some(provider) = of(RegistryTable::provider) {
        return Some(provider.error(message));
    }
    let place = of(RegistryTable::url).unwrap_or(value).text().ok()?;
    let end = place.as_str().find("://")?;
    Some(place.problem(TextProblem::new(message).at(0..end)))
}

/// The host that a registry may name for its tokens, which only the user can say. Otherwise, whoever writes into a checkout could have
/// passwords sent anywhere.
fn tokens_at(value: Value<'_>, named_by: NamedBy) -> Result<String, SourceError> {
    if named_by == NamedBy::Workspace {
        let message = "a workspace cannot say which host gets passwords";
        return Err(value.error(message).help("write it into `~/.mu/config.yaml`"));
    }
    value.text()?.parse(|text| {
        let host = text.strip_suffix('/').unwrap_or(text);
        let base = Base::parse(&format!("{host}/")).map_err(|_| {
            TextProblem::new(format!("`{text}` is not a host"))
                .help("write it as in `auth.acme.co`")
        })?;
        Ok::<_, TextProblem>(base.host_port().to_owned())
    })
}

/// A provider's name becomes part of a program's name, so it is a plain word.
fn provider(text: &str) -> Result<String, TextProblem> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "+-._".contains(character);
    let starts_well = text.starts_with(|character: char| character.is_ascii_alphanumeric());
    if starts_well && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err(TextProblem::new(format!("`{text}` is not a provider"))
        .help("the providers are `hub`, `git`, `oci`, `helm`, `kudo`, `olm`, `path`, and those of plugins"))
}

/// The files that are at the roots of registries. People copy the URL of what they see there, and mean the registry.
const ROOT_FILES: [&str; 2] = ["/hub.json", "/index.yaml"];

/// Reads a URL, or a folder relative to `folder`, into a URL that ends in a slash. What follows a `#`, where no place has anything, may be
/// a secret.
pub(super) fn place(text: &str, folder: &Path) -> Result<SafeUrl, TextProblem> {
    read_place(text, folder).map_err(|problem| match text.find('#') {
        Some(mark) => problem.hiding_bytes(mark + 1..text.len()),
        None => problem,
    })
}

fn read_place(text: &str, folder: &Path) -> Result<SafeUrl, TextProblem> {
    let text = ROOT_FILES.iter().find_map(|file| text.strip_suffix(file)).unwrap_or(text);
    let is_folder = matches!(text, "." | "..")
        || text.starts_with(['/'])
        || text.starts_with("./")
        || text.starts_with("../");
    if is_folder {
        let path = normalized(&folder.join(text));
        let url = Url::from_directory_path(&path).map_err(|()| {
            TextProblem::new(format!("`{}` cannot be written as a URL", path.display()))
        })?;
        return Ok(url.into());
    }
    let help = "write a URL such as `https://hub.acme.co/`, or `./hub` for a folder";
    if !text.contains("://") {
        return Err(TextProblem::new(format!(
            "`{}` is neither a URL nor a folder",
            place_without_secrets(text)
        ))
        .help(help));
    }
    let url = SafeUrl::parse(text).map_err(|error| {
        TextProblem::new(format!("this is not a valid URL: {error}")).help(help)
    })?;
    if url.may_hold_secret() {
        let what = match url.as_url().password() {
            Some(_) => "a password does not belong in this file",
            None => "a user name in a URL may be a token, which does not belong in this file",
        };
        let host = url.host_and_port();
        let variable = or_variable(&host);
        return Err(TextProblem::new(what)
            .help(format!("leave it out; `mu login {host}` stores a token{variable}")));
    }
    if url.as_url().query().is_some() || url.as_url().fragment().is_some() {
        return Err(TextProblem::new("the URL of a registry has no `?` and no `#`")
            .help("the part after them would not be sent with requests for its files"));
    }
    Ok(url.as_folder())
}

/// The longest prefix first; for equal prefixes, only the workspace's registry.
pub(super) fn merged_registries(
    mut above: Vec<ConfiguredRegistry>,
    below: Vec<ConfiguredRegistry>,
) -> Vec<ConfiguredRegistry> {
    for registry in below {
        if above.iter().all(|other| other.prefix != registry.prefix) {
            above.push(registry);
        }
    }
    above.sort_by(|left, right| {
        (right.prefix.len(), &left.prefix).cmp(&(left.prefix.len(), &right.prefix))
    });
    above
}

/// Whether patterns name a folder: by its own path, by a folder above it with `/*`, or by `*`.
pub(crate) fn names_folder(patterns: &[String], folder: &Path) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some("") => true,
        Some(above) if above.ends_with('/') => folder.starts_with(above) && folder != above,
        _ => folder == Path::new(pattern),
    })
}

/// The path without `.` and `..`, by its text alone.
fn normalized(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normalized.pop();
            }
            component => normalized.push(component),
        }
    }
    normalized
}

/// What the user's own file says, in whatever workspace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OfUser {
    /// The base of references without one.
    pub base: Base,
    /// Where bases really are.
    pub registries: Vec<ConfiguredRegistry>,
}

/// Patterns of packages whose `build` may be run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrustedBuilds {
    /// Those of the user, whose short names have the user's base.
    pub of_user: Option<Globs>,
    /// Those of the workspace, whose short names have its base.
    pub of_workspace: Option<Globs>,
}

/// Why the build of a package is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untrusted<'s> {
    /// No pattern names it, or only those of the workspace, which are not enough where the user has some.
    Unnamed,
    /// It comes from another place than its id says: a registry of the workspace has it.
    Led(&'s ConfiguredRegistry),
    /// The workspace uses something else instead of it.
    Overridden,
}

/// A base, or a part of one, that the workspace leads elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectedBase {
    /// The start of the ids.
    pub prefix: String,
    /// What they lead to, as the settings say it.
    pub place: String,
}

impl Settings {
    /// Why the build of a package may not run; `None` if the settings trust it. What the user and the workspace say is joined: both
    /// must name it, as far as they name any.
    pub fn untrusted(&self, id: &PackageId) -> Option<Untrusted<'_>> {
        let TrustedBuilds { of_user, of_workspace } = &self.trusted_builds;
        let names = |patterns: &Globs, base: &Base| {
            patterns.matches(id.as_str()) || patterns.matches(id.short(base))
        };
        let by_user = of_user.as_ref().map(|patterns| names(patterns, &self.of_user.base));
        let by_workspace = of_workspace.as_ref().map(|patterns| names(patterns, &self.base));
        if by_user.or(by_workspace) != Some(true) || by_workspace == Some(false) {
            return Some(Untrusted::Unnamed);
        }
        // Only what the user trusts depends on where that is for the user.
        by_user?;
        if self.overridden_here.contains(id) {
            return Some(Untrusted::Overridden);
        }
        let registry = self.registry(id).filter(|registry| self.is_elsewhere(registry));
        registry.map(Untrusted::Led)
    }

    /// The bases that the workspace leads elsewhere than the user's settings or the default do. A base of its own, which is not the
    /// default one and which the user's settings do not name, is the workspace's own matter.
    pub fn redirected_bases(&self) -> Vec<RedirectedBase> {
        let known = self.of_user.registries.iter().map(|registry| registry.base());
        let known: Vec<&str> = known.chain([self.of_user.base.as_str()]).collect();
        let default = Base::default();
        let is_known = |prefix: &str| {
            let is_of = |base: &str| prefix.starts_with(base);
            is_of(default.as_str()) || known.iter().any(|base| is_of(base))
        };
        let led = self.registries.iter().filter(|registry| self.is_elsewhere(registry));
        let led =
            led.filter(|registry| is_known(&registry.prefix)).map(|registry| RedirectedBase {
                prefix: registry.prefix.clone(),
                place: registry.url.as_ref().map(ToString::to_string).unwrap_or_default(),
            });
        let named = self.aliases_here.iter().filter(|alias| is_known(&alias.from));
        let named = named
            .map(|alias| RedirectedBase { prefix: alias.from.clone(), place: alias.to.clone() });
        led.chain(named).collect()
    }

    /// Whether a registry is one of the workspace, and leads its packages elsewhere than they would be without it.
    fn is_elsewhere(&self, registry: &ConfiguredRegistry) -> bool {
        let Some(url) = registry.url.as_ref().filter(|_| registry.named_by == NamedBy::Workspace)
        else {
            return false;
        };
        let covers = |other: &&ConfiguredRegistry| registry.prefix.starts_with(&*other.prefix);
        let before = self.of_user.registries.iter().filter(covers);
        let before = before.max_by_key(|other| other.prefix.len());
        let place = url.as_url().as_str().trim_end_matches('/');
        let expected = match before {
            Some(before) => {
                let Some(url) = &before.url else {
                    return place != format!("https://{}", registry.prefix.trim_end_matches('/'));
                };
                // What is left of the prefix is a folder there.
                let rest = registry.prefix.get(before.prefix.len()..).unwrap_or_default();
                format!("{}{rest}", url.as_folder().as_url())
            }
            None => format!("https://{}", registry.prefix),
        };
        place != expected.trim_end_matches('/')
    }
}
