//! Packages of one workspace that conflict with each other.
//!
//! A workspace may contain two packages that nobody can use together, such as two implementations of one
//! thing: this is reported. If one of its packages depends on both, nobody can install that one: this is
//! refused.

use std::collections::{BTreeMap, VecDeque};

use crate::index::conflicting;
use crate::ops::explain::own_packages::shown;
use crate::ops::requirements::names::id_in;
use crate::ops::session::changed_manifests::ChangedManifests;
use crate::ops::{Code, CommandError, Session};

/// A package of the workspace that conflicts with another one; both by their places in its members.
struct Apart {
    by: usize,
    with: usize,
}

/// The warnings about each conflicting pair.
pub(crate) fn warnings(session: &Session) -> Vec<String> {
    let members = &session.workspace.members;
    let warning = |Apart { by, with }: Apart| {
        let by = &members[by];
        format!(
            "`{}` conflicts with `{}`, and this workspace has both: no package can depend on both (`conflicts` in `{}`)",
            by.manifest.name,
            members[with].manifest.name,
            by.manifest_path.display()
        )
    };
    apart(session).into_iter().map(warning).collect()
}

/// Refuses a workspace in which a package needs two others that conflict with each other.
///
/// # Errors
///
/// When there is such a package. The error names the paths to both.
pub(crate) fn check(session: &Session, changed: &ChangedManifests) -> Result<(), CommandError> {
    let members = &session.workspace.members;
    for Apart { by, with } in apart(session) {
        for start in 0..members.len() {
            // A pair that nobody needs together is only a warning. A package that needs both cannot be installed by
            // anyone.
            let from = reached(session, changed, start);
            if !from.contains_key(&by) || !from.contains_key(&with) {
                continue;
            }
            let name = |at: usize| &members[at].manifest.name;
            let mut lines: Vec<String> = Vec::new();
            for end in [by, with] {
                let mut way = vec![end];
                // From the end back to the start. Ends, because each package was reached by one that was reached before
                // it, and the start by none.
                while let Some(before) = way.last().and_then(|at| from[at]) {
                    way.push(before);
                }
                for step in way.windows(2).rev() {
                    let line = format!("  {} requires {}", name(step[1]), name(step[0]));
                    if !lines.contains(&line) {
                        lines.push(line);
                    }
                }
            }
            lines.push(format!("  {} conflicts with {}", name(by), name(with)));
            let message = format!("no versions fit together\n{}", lines.join("\n"));
            let file = shown(&members[by].place);
            return Err(CommandError::new(Code::NoSolution, message).hint(format!(
                "remove one of the dependencies, or the entry under `conflicts` of the package in `{file}`"
            )));
        }
    }
    Ok(())
}

/// Every pair of the workspace's packages in which one conflicts with the other.
fn apart(session: &Session) -> Vec<Apart> {
    let members = &session.workspace.members;
    let mut all = Vec::new();
    for (by, member) in members.iter().enumerate() {
        for reference in &member.manifest.conflicts {
            let named = conflicting(&reference.to_string(), &reference.id(&member.defaults));
            let is_meant = |other: &crate::workspace::Member| {
                let mut provides = other.manifest.provides.iter().map(ToString::to_string);
                named.iter().any(|name| name == other.id.as_str())
                    || provides.any(|capability| named.contains(&capability))
            };
            let others = (0..members.len()).filter(|with| *with != by && is_meant(&members[*with]));
            all.extend(others.map(|with| Apart { by, with }));
        }
    }
    all
}

/// The packages of the workspace that one of them needs, including itself, each with the one that needs it.
fn reached(
    session: &Session,
    changed: &ChangedManifests,
    start: usize,
) -> BTreeMap<usize, Option<usize>> {
    let members = &session.workspace.members;
    let mut from = BTreeMap::from([(start, None)]);
    let mut open = VecDeque::from([start]);
    while let Some(at) = open.pop_front() {
        let (member, manifest) = (&members[at], changed.manifest(&session.workspace, at));
        // The development dependencies of others do not matter to their users.
        let dev = manifest.dev_dependencies.iter().filter(|_| at == start);
        for dependency in manifest.dependencies.iter().chain(dev) {
            let id = id_in(session, member, &dependency.reference);
            let Some(next) = members.iter().position(|other| other.id == id) else { continue };
            if let std::collections::btree_map::Entry::Vacant(entry) = from.entry(next) {
                entry.insert(Some(at));
                open.push_back(next);
            }
        }
    }
    from
}
