//! Published versions that `yank` and `tag` change: which one a reference names, and what became of it.

use crate::ops::publication::lines::Mark;
use crate::ops::publication::stated::stated;
use crate::ops::publication::target::Target;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{Reference, Version, VersionSpec};

/// A published version that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// The package's name at the hub.
    pub name: String,
    /// The version.
    pub version: String,
    /// The hub.
    pub place: String,
    /// Whether this changed anything.
    pub changed: bool,
}

impl Marked {
    /// Changes the version that is named so at `target`, unless this is a dry run.
    pub(super) fn new(
        (target, name, version): (Target, String, String),
        mark: Mark<'_>,
        dry_run: bool,
    ) -> Result<Self, CommandError> {
        let changed = match dry_run {
            true => target.would_mark(&name, &version, mark)?,
            false => target.mark(&name, &version, mark)?,
        };
        Ok(Self { name, version, place: target.name, changed })
    }
}

/// The published version that a reference of the command line names: the hub, the name there, the version.
///
/// # Errors
///
/// When the reference names no version, or its hub does not accept changes.
pub(super) fn named(
    session: &Session,
    text: &str,
    to: Option<&str>,
) -> Result<(Target, String, String), CommandError> {
    let reference = Reference::parse(text)?;
    let written = reference.version_text().unwrap_or_default();
    let version = match reference.version() {
        Some(VersionSpec::Pin(pin)) => pin.version().to_string(),
        // Of a package with lenient versions, `1.28` is one; the hub says if it has no such version.
        Some(VersionSpec::Range(_)) if Version::parse_lenient(written).is_ok() => {
            written.trim_start_matches('v').to_owned()
        }
        Some(spec) if spec.is_pinned() => written.to_owned(),
        _ => {
            let message = format!("`{text}` does not name a single version");
            return Err(CommandError::new(Code::Usage, message)
                .hint("write the version after the name, such as `acme/web#1.2.0`"));
        }
    };
    let id = reference.id(&session.defaults());
    session.index().declare(&id, &reference, &session.environment.current);
    let stated = if to.is_none() { stated(session, &reference, &id)? } else { None };
    let (target, name) = match stated {
        Some(found) => found,
        None => Target::find(session, to, &id)?,
    };
    session.index().outdate(&id);
    Ok((target, name, version))
}
