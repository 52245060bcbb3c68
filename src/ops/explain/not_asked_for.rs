//! What still requires a package, and the error about one that nothing requires.

use crate::lock::LockedPackage;
use crate::ops::{Code, CommandError, OperationScope, Session};
use crate::reference::PackageId;

/// More requirements than this are not listed.
const LISTED: usize = 8;

/// What still requires a package, as a sentence.
pub(crate) fn still_required_by(package: &LockedPackage) -> Option<String> {
    let by: Vec<String> =
        package.requested.iter().map(|requested| format!("`{}`", requested.by)).collect();
    match &by[..] {
        [] => None,
        [one] => Some(format!("{one} needs it")),
        [most @ .., last] => Some(format!("{} and {last} need it", most.join(", "))),
    }
}

/// The error that nothing requires what `text` names, with the likely intended name.
pub(crate) fn not_asked_for(
    session: &Session,
    text: &str,
    id: &PackageId,
    extra: &[String],
) -> CommandError {
    let error = CommandError::new(Code::NotFound, format!("nothing here requires `{text}`"));
    let locked = session.lockfile().ok().flatten().unwrap_or_default();
    if let Some(package) = locked.find(id).next() {
        return match still_required_by(package) {
            Some(needed) => error.hint(format!("it is installed because {needed}")),
            None => error,
        };
    }
    if let Some(replaced) = locked.replacement(id) {
        return error
            .hint(format!("`{}` took its place, and nothing of it is installed", replaced.by));
    }
    error.hint(required_here(session, text, extra))
}

/// What the manifests require, and `mu get REF` installed: the one that `text` probably means, or all of it.
pub(crate) fn required_here(session: &Session, text: &str, extra: &[String]) -> String {
    let members = &session.workspace.members;
    let known: Vec<String> = members
        .iter()
        .flat_map(|member| {
            member.manifest.dependencies.iter().chain(&member.manifest.dev_dependencies)
        })
        .map(|dependency| dependency.reference.to_string())
        .chain(extra.iter().cloned())
        .collect();
    let names = known.iter().map(|text| text.split('#').next().unwrap_or(text));
    if let Some(name) = crate::manifest::source::nearest(text, names) {
        return format!("did you mean `{name}`?");
    }
    let root = session.workspace.root.display();
    match (&known[..], &members[..]) {
        ([], []) if session.scope == OperationScope::Global => {
            "no global packages are installed; `mu get --global REF` installs one".to_owned()
        }
        ([], []) => format!("there is no Mu.yaml in `{root}` or below it, and no Mu.lock"),
        ([], [one]) => format!("`{}` has no dependencies", one.manifest.name),
        ([], _) => format!("the packages in `{root}` have no dependencies"),
        _ => {
            let listed: Vec<String> =
                known.iter().take(LISTED).map(|one| format!("`{one}`")).collect();
            let more = if known.len() > LISTED { ", …" } else { "" };
            format!("required here: {}{more}", listed.join(", "))
        }
    }
}
