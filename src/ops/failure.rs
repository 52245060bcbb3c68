//! From a selection that failed to the error that the user sees.

use crate::index::{Cause, Unavailable, cause};
use crate::ops::error::code_of;
use crate::ops::requirements::Requirements;
use crate::ops::update::UPDATE;
use crate::ops::{Code, CommandError, Session, ways_out};
use crate::reference::PackageId;
use crate::select::{Conflict, Failure, Request, Strategy};

/// The error of a selection that failed, with what helps against it.
pub(super) fn failed(
    session: &Session,
    requirements: &Requirements,
    strategy: &dyn Strategy,
    request: &Request,
    failure: Failure,
) -> CommandError {
    match failure {
        Failure::Unavailable(error) => unavailable(session, error),
        Failure::Conflict(conflict) => {
            let ways_out = strategy.ways_out(session.index(), request, &conflict);
            let remedies = ways_out::remedies(session, requirements, &ways_out);
            let missing = is_missing(&conflict);
            let code = if missing { Code::NotFound } else { Code::NoSolution };
            let headline = match (missing, &conflict.clashes[..]) {
                (true, [clash]) if clash.tried.is_some() => "a package was not found",
                (true, _) => "no version was found that is what was asked for",
                (false, _) => "no versions fit together",
            };
            let text = conflict.to_string();
            let lines: Vec<&str> = text.lines().collect();
            let by: Vec<&str> = request.roots.iter().map(|root| root.by.as_str()).collect();
            let mut error = CommandError::new(code, format!("{headline}\n{}", indent(&lines)))
                .with_details(serde_json::json!({ "explanation": lines, "roots": by }));
            for clash in conflict.clashes.iter().filter(|clash| clash.tried.is_some()) {
                if let Some(member) = session.workspace.member(&clash.id) {
                    error = error.hint(misplaced(&clash.id, &member.place));
                }
            }
            if !missing && by.contains(&UPDATE) && remedies.is_empty() {
                let hint =
                    "`mu add PKG#VERSION` changes what Mu.yaml asks for, `mu upgrade` raises it";
                error = error.hint(hint);
            }
            let has_way = !remedies.is_empty();
            error = ways_out::attach(error, remedies);
            if !missing && !has_way && session.options.published_before.is_some() {
                error = error.hint("versions newer than --exclude-newer were passed over");
            }
            error
        }
    }
}

/// What to do about a package of the workspace that is not where references to it lead.
fn misplaced(id: &PackageId, place: &str) -> String {
    let here = if place.is_empty() { "." } else { place };
    format!(
        "the package in `{here}` calls itself `{id}`, but packages are found by their place: move it to \
         `{}`, or set `namespace` in `.mu/workspace.yaml`",
        id.name_str()
    )
}

/// Whether the conflict is only that something asked for does not exist.
fn is_missing(conflict: &Conflict) -> bool {
    !conflict.clashes.is_empty()
        && conflict.clashes.iter().all(|clash| {
            clash.tried.is_some() || (clash.asked.len() == 1 && clash.rejected.is_empty())
        })
}

fn indent(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// The error of something that could not be found out.
pub(super) fn unavailable(session: &Session, error: Unavailable) -> CommandError {
    let (code, mut hints) = match cause(&error) {
        Cause::Provider(provider) => (code_of(provider.kind()), provider.hints().to_vec()),
        Cause::Route => (Code::Reference, Vec::new()),
        Cause::Package => (Code::Manifest, Vec::new()),
        Cause::Cache => (Code::Io, vec!["`mu cache clean` empties the cache".to_owned()]),
    };
    match code {
        Code::Network if !session.options.offline => {
            hints.push("`--offline` uses only what is already on this machine".to_owned());
        }
        Code::Offline => {
            hints.push(format!("run once without --offline to learn of `{}`", error.id))
        }
        _ => {}
    }
    let mut command = CommandError::from_error(code, error);
    command.hints = hints;
    command
}
