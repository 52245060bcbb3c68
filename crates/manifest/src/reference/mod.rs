//! References: the URL-like texts that name packages, the identities of packages, and requirements on
//! versions.
//!
//! Everything here works on text alone. A [`Reference`] remembers byte for byte what was written, and what
//! was left out; [`Defaults`] fill the gaps and give its [`PackageId`]. A [`VersionSpec`] says which
//! [`Version`]s it accepts. Nothing here looks at a disk, a registry or a network, so a local folder stays
//! text, and other code finds out whether a tag or a commit exists.

mod error;
mod id;
pub mod pasted;
mod protocol;
mod range;
mod spec;
mod stating;
#[cfg(test)]
mod tests;
mod version;

use std::fmt;
use std::ops::Range as Span;
use std::sync::Arc;

use self::error::Fault;

pub use self::error::ReferenceError;
pub(crate) use self::error::is_harmful;
pub use self::id::{Alias, Aliases, Name, PackageId, needs_base};
pub use self::protocol::{Base, GIT_HOSTS, Protocol};
pub use self::range::Range;
pub use self::spec::{ArtifactDigest, CommitDigits, Pin, Tag, VersionSpec};
pub use self::version::{AppVersioning, Version};

/// A reference as it was written: `[protocol][base]name[#version]`, or a local folder.
///
/// Two references are equal if their texts are. Compare [`Reference::id`] to find out whether they name the
/// same package.
#[derive(Debug, Clone)]
pub struct Reference {
    text: Arc<str>,
    protocol: Option<Protocol>,
    user: Option<Arc<str>>,
    base: Option<Base>,
    name: Name,
    path: Span<usize>,
    is_local: bool,
    version: Option<VersionSpec>,
}

/// The values of the parts that a reference leaves out; by default `hub.mu.com/` and no namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Defaults {
    /// The base of references without one.
    pub base: Base,
    /// The namespace for a name of one segment without a base, which a fetched package's dependencies inherit
    /// from it. `None` for the workspace's own packages.
    pub namespace: Option<Name>,
    /// Which ids mean others.
    pub aliases: Aliases,
}

impl Reference {
    /// Reads a reference.
    ///
    /// # Errors
    ///
    /// When the text is not a reference; the error points at the first offending character.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        reference(text).map_err(|fault| ReferenceError::new("reference", text, fault))
    }

    /// The protocol, if one was written; the scp form `git@host:org/repo` counts as `git+ssh`.
    pub fn protocol(&self) -> Option<&Protocol> {
        self.protocol.as_ref()
    }

    /// Whether it is written as `git@host:path`, which is no URL.
    pub fn is_scp(&self) -> bool {
        self.protocol == Some(Protocol::GitSsh) && !self.text.contains("://")
    }

    /// The user before the host, as in `ssh://git@host/x`. It is not part of the base.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The base, if one was written, in its normal form: a lower-case host without the default port.
    pub fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    /// The name without `.git` marks; for a local folder, the last parts of its path, changed to be a valid
    /// name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The name as it was written, with its `.git` marks: `group/repo.git/sub`.
    pub fn path(&self) -> &str {
        &self.text[self.path.clone()]
    }

    /// The version, if one was written.
    pub fn version(&self) -> Option<&VersionSpec> {
        self.version.as_ref()
    }

    /// The text after `#`, as it was written.
    pub fn version_text(&self) -> Option<&str> {
        self.text.split_once('#').map(|(_, version)| version)
    }

    /// The accepted versions: those that were written, or else the latest.
    pub fn spec(&self) -> VersionSpec {
        self.version.clone().unwrap_or(VersionSpec::Latest)
    }

    /// The folder that a local reference names: `./x`, `../x` or `/abs/x` (also for `file:///abs/x`).
    pub fn local(&self) -> Option<&str> {
        self.is_local.then(|| self.path())
    }

    /// The whole text, as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// This reference asking for another version, or for none in particular.
    #[must_use]
    pub fn with_version(&self, version: Option<VersionSpec>) -> Self {
        let place = self.text.split_once('#').map_or(&*self.text, |(place, _)| place);
        let text = match &version {
            Some(version) => Arc::from(format!("{place}#{version}")),
            None => Arc::from(place),
        };
        Self { text, version, ..self.clone() }
    }

    /// The package that this reference names.
    ///
    /// A relative local folder has no identity until it is joined to a folder ([`PackageId::local`]); here
    /// its path counts from the root.
    pub fn id(&self, defaults: &Defaults) -> PackageId {
        let id = match &self.base {
            Some(base) => PackageId::new(base, &self.name),
            None if self.is_local => return PackageId::new(&Base::localhost(), &self.name),
            None => PackageId::new(&defaults.base, &self.name_in(defaults)),
        };
        if defaults.aliases.is_empty() { id } else { defaults.aliases.counted(id) }
    }

    /// The reference with all its parts: `https://hub.mu.com/aws/ec2#^1.0.6`.
    pub fn qualified(&self, defaults: &Defaults) -> String {
        let version = self.version_text().unwrap_or("latest");
        if self.is_local {
            let path = self.path();
            let scheme = if path.starts_with('/') { "file://" } else { "" };
            return format!("{scheme}{path}#{version}");
        }
        let protocol = self.protocol.as_ref().unwrap_or(&Protocol::Https);
        let user = self.user().map(|user| format!("{user}@")).unwrap_or_default();
        let base = match (&self.base, protocol) {
            (_, protocol) if protocol.is_file() => "/",
            (Some(base), _) => base.as_str(),
            (None, _) => defaults.base.as_str(),
        };
        let namespace = self.namespace_in(defaults).map(|name| format!("{name}/"));
        let namespace = namespace.unwrap_or_default();
        format!("{}://{user}{base}{namespace}{}#{version}", protocol.as_str(), self.path())
    }

    /// Whether this reference, which somebody has given for the package that `known` names, says that it is reached in another way:
    /// as a folder instead of a repository, over ssh instead of https, by a tool where `known` says none, or at another base that counts as
    /// the same. A bare name, and `https://` where a tool is reached so, say nothing else.
    pub fn leads_elsewhere_than(&self, known: &Self) -> bool {
        if self.is_local || known.is_local {
            let is_said = self.is_local || self.protocol.is_some();
            return is_said && self.is_local != known.is_local;
        }
        // A base that counts as another one was written for its own sake.
        let bases = self.base.as_ref().zip(known.base.as_ref());
        let is_other_base = bases.is_some_and(|(base, other)| base != other);
        let Some(protocol) = &self.protocol else { return is_other_base };
        let other = known.protocol.as_ref().unwrap_or(&Protocol::Https);
        let tool = protocol.provider();
        is_other_base
            || protocol.transport() != other.transport()
            || (tool.is_some() && tool != other.provider())
            || (self.user().is_some() && self.user() != known.user())
    }

    /// Whether the reference is a name of one segment, without a base: the namespace is left out.
    pub fn is_single_name(&self) -> bool {
        !self.is_local && self.base.is_none() && !self.name.as_str().contains('/')
    }

    fn namespace_in<'a>(&self, defaults: &'a Defaults) -> Option<&'a Name> {
        defaults.namespace.as_ref().filter(|_| self.is_single_name())
    }

    fn name_in(&self, defaults: &Defaults) -> Name {
        match self.namespace_in(defaults) {
            Some(namespace) => namespace.join(&self.name),
            None => self.name.clone(),
        }
    }
}

impl PartialEq for Reference {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Reference {}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

/// Longer texts are not references: nobody writes them, and errors must stay readable.
const MAX_LENGTH: usize = 4096;

const REFERENCE: &str = "a reference, such as `aws/ec2` or `https://host/name#^1.2`";
const NAME: &str = "`/` and a name after the host";
const USER: &str = "no user except `git` over http, because it may be a token: use `mu login` or `MU_TOKEN_<HOST>`";
const FOLDER: &str = "a folder's path, without control characters";

/// The part before the `#`.
struct Place {
    protocol: Option<Protocol>,
    user: Option<Arc<str>>,
    base: Option<Base>,
    name: Name,
    path: Span<usize>,
    is_local: bool,
}

fn reference(text: &str) -> Result<Reference, Fault> {
    if text.len() > MAX_LENGTH {
        let at = text.floor_char_boundary(MAX_LENGTH);
        return Err(Fault::new(at, "a reference of at most 4096 bytes"));
    }
    let hash = text.find('#');
    let Place { protocol, user, base, name, path, is_local } =
        place(&text[..hash.unwrap_or(text.len())])?;
    let version = match hash {
        Some(hash) => Some(
            VersionSpec::from_text(&text[hash + 1..]).map_err(|fault| fault.shifted(hash + 1))?,
        ),
        None => None,
    };
    Ok(Reference { text: text.into(), protocol, user, base, name, path, is_local, version })
}

fn place(text: &str) -> Result<Place, Fault> {
    if text.is_empty() {
        return Err(Fault::new(0, REFERENCE));
    }
    if is_folder(text) {
        return folder(text, 0);
    }
    let first_segment = text.split('/').next().unwrap_or(text);
    if first_segment.ends_with(':') && text[first_segment.len()..].starts_with("//") {
        return with_protocol(text, first_segment.len() - 1);
    }
    let is_scheme = first_segment.strip_suffix(':').is_some_and(|scheme| {
        scheme.len() > 1
            && matches!(Protocol::from_scheme(scheme), Protocol::Https | Protocol::Http)
    });
    if is_scheme && first_segment.len() < text.len() {
        return Err(Fault::new(first_segment.len() + 1, "a second `/` after the protocol"));
    }
    if first_segment.contains('@') {
        return scp_form(text);
    }
    let is_base = first_segment.contains(['.', ':']) && first_segment.len() < text.len();
    if is_base {
        return on_host(text, 0, None);
    }
    named(text, 0, None, None, None)
}

fn is_folder(text: &str) -> bool {
    matches!(text, "." | "..")
        || text.starts_with('/')
        || text.starts_with("./")
        || text.starts_with("../")
}

/// A folder of this machine, whose path begins at `start`.
fn folder(text: &str, start: usize) -> Result<Place, Fault> {
    let path = &text[start..];
    if let Some(at) = path.find(is_harmful) {
        return Err(Fault::new(start + at, FOLDER));
    }
    Ok(Place {
        protocol: None,
        user: None,
        base: None,
        name: Name::from_folder(path),
        path: start..text.len(),
        is_local: true,
    })
}

fn with_protocol(text: &str, colon: usize) -> Result<Place, Fault> {
    const SCHEME: &str = "a protocol, such as `https://` or `git+ssh://`";
    let scheme = text[..colon].to_ascii_lowercase();
    for (at, character) in scheme.char_indices() {
        let fits = character.is_ascii_lowercase()
            || (at > 0 && (character.is_ascii_digit() || matches!(character, '+' | '-' | '.')));
        if !fits {
            return Err(Fault::new(at, SCHEME));
        }
    }
    if scheme.is_empty() {
        return Err(Fault::new(0, SCHEME));
    }
    let protocol = Protocol::from_scheme(&scheme);
    for (begin, expected) in [
        ("git+", "`https`, `http`, `ssh` or `file` after `git+`"),
        ("helm+", "`https`, `http`, `oci` or `file` after `helm+`"),
        ("kudo+", "`https`, `http`, `oci` or `file` after `kudo+`"),
        ("olm+", "`https`, `http` or `file` after `olm+`"),
    ] {
        if matches!(&protocol, Protocol::Plugin(scheme) if scheme.starts_with(begin)) {
            return Err(Fault::new(begin.len(), expected));
        }
    }
    let start = colon + "://".len();
    match protocol {
        Protocol::File => folder(text, folder_start(text, start)?),
        protocol if protocol.is_file() => {
            let path = folder_start(text, start)?;
            let Place { name, .. } = folder(text, path)?;
            let path = path + text[path..].len() - text[path..].trim_start_matches('/').len();
            if path == text.len() {
                return Err(Fault::new(path, "the path of a repository"));
            }
            Ok(Place {
                protocol: Some(protocol),
                user: None,
                base: Some(Base::localhost()),
                name,
                path: path..text.len(),
                is_local: false,
            })
        }
        protocol => on_host(text, start, Some(protocol)),
    }
}

/// Where the path of a `file:` URL begins. Its host must be this machine.
fn folder_start(text: &str, start: usize) -> Result<usize, Fault> {
    let host = if text[start..].starts_with("localhost/") { "localhost".len() } else { 0 };
    if text[start + host..].starts_with('/') {
        return Ok(start + host);
    }
    Err(Fault::new(start, "`/` and a path on this machine"))
}

/// A reference whose host begins at `start`.
fn on_host(text: &str, start: usize, protocol: Option<Protocol>) -> Result<Place, Fault> {
    let end = text[start..].find('/').map_or(text.len(), |slash| start + slash);
    let (user, host) = user(&text[start..end]).map_err(|fault| fault.shifted(start))?;
    let host_start = end - host.len();
    let is_http = protocol.as_ref().is_none_or(Protocol::is_http);
    if is_http && user.as_deref().is_some_and(|user| user != "git") {
        return Err(Fault::new(host_start - 1, USER));
    }
    let base = Base::from_authority(host, protocol.as_ref().unwrap_or(&Protocol::Https))
        .map_err(|fault| fault.shifted(host_start))?;
    if end == text.len() {
        return Err(Fault::new(end, NAME));
    }
    named(text, end + 1, protocol, user, Some(base))
}

/// The user before an `@`, and the rest.
fn user(authority: &str) -> Result<(Option<Arc<str>>, &str), Fault> {
    let Some((user, host)) = authority.rsplit_once('@') else { return Ok((None, authority)) };
    if let Some(colon) = user.find(':') {
        let expected =
            "no password, because references end up in lock files: use `MU_TOKEN_<HOST>`";
        return Err(Fault::new(colon, expected));
    }
    let is_odd = |character: char| {
        !character.is_ascii_alphanumeric() && !matches!(character, '_' | '.' | '-' | '+' | '~')
    };
    if let Some(at) = user.find(is_odd) {
        return Err(Fault::new(at, "a user name before the `@`"));
    }
    if user.is_empty() || user.starts_with('-') {
        return Err(Fault::new(0, "a user name before the `@`"));
    }
    Ok((Some(user.into()), host))
}

/// `git@host:org/repo`
fn scp_form(text: &str) -> Result<Place, Fault> {
    let end = text.find('/').unwrap_or(text.len());
    let (_, host) = user(&text[..end])?;
    let host_start = end - host.len();
    let bracket = host.find(']').unwrap_or_default();
    let Some(colon) = host[bracket..].find(':').map(|colon| host_start + bracket + colon) else {
        let expected = "a name, or `ssh://` before the user of a host";
        return Err(Fault::new(host_start - 1, expected));
    };
    let (user, host) = user(&text[..colon])?;
    let base =
        Base::from_authority(host, &Protocol::GitSsh).map_err(|fault| fault.shifted(host_start))?;
    named(text, colon + 1, Some(Protocol::GitSsh), user, Some(base))
}

fn named(
    text: &str,
    start: usize,
    protocol: Option<Protocol>,
    user: Option<Arc<str>>,
    base: Option<Base>,
) -> Result<Place, Fault> {
    let path = &text[start..];
    // On a host there may be home folders, and other names that a URL escapes.
    let name = if base.is_some() { Name::from_url(path) } else { Name::from_path(path) };
    let name = name.map_err(|fault| fault.shifted(start))?;
    Ok(Place { protocol, user, base, name, path: start..text.len(), is_local: false })
}
