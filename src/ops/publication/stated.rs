//! The place of a published version that the protocol of a reference states: `mu yank oci://HOST/REPOSITORY#1.2.0`.

use crate::ops::explain::failure::unavailable;
use crate::ops::publication::target::Target;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Protocol, Reference};

/// The place that the protocol of `reference` states, and the name of the package there; `None` if it has no protocol, or a
/// registry of the settings has the package.
///
/// # Errors
///
/// When nothing can be changed at such a place.
pub(super) fn stated(
    session: &Session,
    reference: &Reference,
    id: &PackageId,
) -> Result<Option<(Target, String)>, CommandError> {
    if session.index().is_placed(id, reference) {
        return Ok(None);
    }
    let in_hub = |place: String, name: &str| {
        Ok(Some((Target::at(session, &place, false)?, name.to_owned())))
    };
    match reference.protocol() {
        None | Some(Protocol::Https) if reference.local().is_none() => Ok(None),
        Some(Protocol::Http) => in_hub(format!("http://{}", id.base()), id.name_str()),
        Some(Protocol::Oci) => in_hub(format!("oci://{}", id.base()), id.name_str()),
        Some(Protocol::Plugin(scheme)) if mu_provider::is_bucket_scheme(scheme) => {
            // The hub is in the first folder that has one.
            let route = session.index().route(id).map_err(|error| unavailable(session, error))?;
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
