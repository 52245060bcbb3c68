//! `yank` withdraws a published version, `deprecate` says that nobody looks after it any more, and `tag` adds a tag to one; each undoes it,
//! too.
//!
//! A yanked version stays in use where it is locked, and is otherwise no longer chosen. A deprecated one is chosen last.
//!
//! The protocol of a reference can state the place of a published version: `mu yank oci://HOST/REPOSITORY#1.2.0`.

use mu_hub::Notice;
use mu_provider::NO_REASON;

use crate::ops::explain::unavailable_error;
use crate::ops::publication::lines::Mark;
use crate::ops::publication::target::PublicationTarget;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Protocol, Reference, Version, VersionSpec};

/// The version to change.
#[derive(Debug, Clone)]
pub struct MarkRequest {
    /// A reference with a version.
    pub reference: String,
    /// What it gets.
    pub marking: Marking,
    /// Whether that is undone.
    pub undo: bool,
    /// The hub; `None` means the one that the reference leads to.
    pub to: Option<String>,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// What a published version can get.
#[derive(Debug, Clone)]
pub enum Marking {
    /// What is said against it, and why.
    Notice(Notice, Option<String>),
    /// A tag; one that another version of the package has moves.
    Tag(String),
}

/// A published version that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedVersion {
    /// The package's name at the hub.
    pub name: String,
    /// The version.
    pub version: String,
    /// The hub.
    pub place: String,
    /// Whether this changed anything.
    pub changed: bool,
}

/// Says something against a version or tags it, or undoes that.
pub fn mark(session: &Session, request: &MarkRequest) -> Result<MarkedVersion, CommandError> {
    let (target, name, version) = named(session, &request.reference, request.to.as_deref())?;
    let mark = match &request.marking {
        Marking::Notice(notice, _) if request.undo => Mark::Notice(*notice, None),
        Marking::Notice(notice, reason) => {
            let given = reason.as_deref().filter(|reason| !reason.is_empty());
            // Without a reason, the one that was given before stays.
            if given.is_none() && target.has_notice(&name, &version, *notice)? {
                return Ok(MarkedVersion { name, version, place: target.name, changed: false });
            }
            Mark::Notice(*notice, Some(given.unwrap_or(NO_REASON)))
        }
        Marking::Tag(tag) if request.undo => Mark::NoTag(tag),
        Marking::Tag(tag) => Mark::Tag(tag),
    };
    let changed = match request.dry_run {
        true => target.would_mark(&name, &version, mark)?,
        false => target.mark(&name, &version, mark)?,
    };
    Ok(MarkedVersion { name, version, place: target.name, changed })
}

/// The published version that a reference of the command line names: the hub, the name there, the version.
fn named(
    session: &Session,
    text: &str,
    to: Option<&str>,
) -> Result<(PublicationTarget, String, String), CommandError> {
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
    let id = reference.id(&session.reference_defaults());
    session.index().declare(&id, &reference, &session.environment.current);
    let stated = if to.is_none() { stated(session, &reference, &id)? } else { None };
    let (target, name) = match stated {
        Some(found) => found,
        None => PublicationTarget::find(session, to, &id)?,
    };
    session.index().outdate(&id);
    Ok((target, name, version))
}

/// The place that the protocol of `reference` states, and the name of the package there; `None` if it has no protocol, or a
/// registry of the settings has the package.
fn stated(
    session: &Session,
    reference: &Reference,
    id: &PackageId,
) -> Result<Option<(PublicationTarget, String)>, CommandError> {
    if session.index().is_placed(id, reference) {
        return Ok(None);
    }
    let in_hub = |place: String, name: &str| {
        Ok(Some((PublicationTarget::hub_at(session, &place, false)?, name.to_owned())))
    };
    match reference.protocol() {
        None | Some(Protocol::Https) if reference.local().is_none() => Ok(None),
        Some(Protocol::Http) => in_hub(format!("http://{}", id.base()), id.name_str()),
        Some(Protocol::Oci) => in_hub(format!("oci://{}", id.base()), id.name_str()),
        Some(Protocol::Plugin(scheme)) if mu_provider::is_bucket_scheme(scheme) => {
            // The hub is in the first folder that has one.
            let route =
                session.index().route(id).map_err(|error| unavailable_error(session, error))?;
            in_hub(route.location.root.to_string(), &route.location.path)
        }
        _ => Err(unchangeable(session, reference, id)),
    }
}

fn unchangeable(session: &Session, reference: &Reference, id: &PackageId) -> CommandError {
    let place = match session.index().known_route(id) {
        Some(route) => format!("in {}", route.provider.facts().place),
        None => "not in a hub or an OCI registry".to_owned(),
    };
    let message = format!("`{reference}` is {place}: mu cannot change versions there");
    CommandError::new(Code::Usage, message)
        .hint("`--to PLACE` names the hub or the OCI registry that has the version")
}
