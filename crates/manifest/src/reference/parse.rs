//! Parses a reference, from its first character to the first one that does not fit.

use std::ops::Range as Span;
use std::sync::Arc;

use super::error::{Fault, is_harmful};
use super::{Base, Name, Protocol, Reference, VersionSpec};

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

pub(super) fn reference(text: &str) -> Result<Reference, Fault> {
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
