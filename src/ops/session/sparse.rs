//! Packages of the workspace that a sparse checkout leaves out: Git has their manifests, and they count as unchanged, so that Mu.lock keeps
//! what they need.

use mu_formats::helm::Aliases;

use crate::env::Environment;
use crate::formats;
use crate::ops::{CommandError, Events};
use crate::workspace::Workspace;
use crate::workspace::programs::programs;

/// Adds these packages to the workspace.
///
/// # Errors
///
/// When Git cannot be asked, or one of their manifests is wrong.
pub(super) fn add_left_out(
    workspace: &mut Workspace,
    environment: &Environment,
    aliases: &dyn Fn() -> Aliases,
    events: &dyn Events,
) -> Result<(), CommandError> {
    let named = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        formats::manifest_names().any(|known| known == name)
    };
    let own = environment.cache.join("git");
    let programs = programs(environment);
    let found = mu_provider_git::Surroundings::not_checked_out(
        &workspace.root,
        &|path| named(path),
        &programs,
        &own,
    );
    let found = found.map_err(super::edits::unreadable)?;
    let mut lacking = Vec::new();
    for (path, text) in found {
        match text {
            Some(text) => workspace.add_left_out(&path, &text, aliases)?,
            None => lacking.push(format!("`{path}`")),
        }
    }
    if let Some(first) = lacking.first() {
        let more = match lacking.len() {
            1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        events.warning(&format!(
            "the sparse checkout leaves out {first}{more}, whose content is not on this machine, so what these packages need is not \
             known: `git sparse-checkout add` their folders"
        ));
    }
    Ok(())
}
