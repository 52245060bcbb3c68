//! What stands between a locked package and newer versions of it, asked of selection.

use crate::index::{Requirement, Unavailable};
use crate::lock::LockedPackage;
use crate::ops::Session;
use crate::ops::requirements::requester::Requester;
use crate::select::{Asking, Ceiling, Local, Request};

/// Who asks for a locked package, and how.
pub(crate) fn asking(package: &LockedPackage) -> Vec<Asking> {
    let requested = package.requested.iter().filter(|requested| !Requester::is_override(requested));
    requested
        .filter_map(|requested| {
            let requirement = Requirement::parse(package.id.clone(), &requested.spec)?;
            Some((requested.by.to_string(), requirement))
        })
        .collect()
}

/// Looks at what could be chosen, and again where a fetched package turned out to ask for one of the workspace's own.
pub(crate) fn look<T>(
    session: &Session,
    request: &Request,
    mut ask: impl FnMut(&mut Ceiling<'_>) -> Result<T, Unavailable>,
) -> Result<T, Unavailable> {
    let mut request = request.clone();
    loop {
        let result = ask(&mut Ceiling::new(session.index(), &request));
        let known = request.local.len();
        for id in session.index().take_met_local() {
            let version = session.places.member_of(&id).and_then(|member| member.version.clone());
            request.local.entry(id).or_insert(Local { version });
        }
        if request.local.len() == known {
            return result;
        }
    }
}
