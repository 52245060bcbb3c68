//! Checks that the published files are committed, so that others can find the source of a version.

#[cfg(feature = "git")]
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use mu_provider::Commit;

#[cfg(feature = "git")]
use crate::formats;
use crate::ops::publication::packing::Packed;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Session};
#[cfg(feature = "git")]
use crate::workspace::programs::{local_git, programs};

/// The most files that are named.
const SHOWN: usize = 5;

/// The commit that contains everything packed from `folder`, if the folder is in a checkout.
///
/// # Errors
///
/// When a packed file is not committed as it is, or a sparse checkout leaves a file out, unless `allow_dirty` is set, or the repository cannot be
/// read.
pub(super) fn packed_commit(
    session: &Session,
    folder: &Path,
    packed: &Packed,
    allow_dirty: bool,
) -> Result<Option<Commit>, CommandError> {
    let found = match around(session, folder) {
        Err(_) if allow_dirty => None,
        found => found?,
    };
    let Some(Checkout { commit, changed, absent }) = found else { return Ok(None) };
    // What is not packed may be as it likes.
    let entries: BTreeSet<&str> =
        packed.archive.tree.entries().iter().map(|entry| entry.path.as_str()).collect();
    let dirty: Vec<String> =
        changed.into_iter().filter(|path| entries.contains(path.as_str())).collect();
    if dirty.is_empty() && absent.is_empty() {
        return Ok(commit);
    }
    if allow_dirty {
        return Ok(None);
    }
    let name = &packed.manifest.name;
    if !dirty.is_empty() {
        let message = format!(
            "`{name}` would be published with changes that are not committed: {}",
            some_of(&dirty)
        );
        return Err(CommandError::new(Code::Conflict, message)
            .hint("commit them first, or publish with `--allow-dirty`")
            .with_details(serde_json::json!({ "files": dirty })));
    }
    let message = format!(
        "`{name}` would be published without files that this sparse checkout leaves out: {}",
        some_of(&absent)
    );
    let first = absent.first().and_then(|path| path.rsplit_once('/'));
    let within = first.map_or_else(|| folder.to_owned(), |(within, _)| folder.join(within));
    let within = quoted_for_shell(&within.display().to_string());
    Err(CommandError::new(Code::Conflict, message)
        .hint(format!(
            "`git sparse-checkout add {within}` brings them; `--allow-dirty` publishes without them"
        ))
        .with_details(serde_json::json!({ "files": absent })))
}

/// The first files of a list, and how many more there are.
fn some_of(files: &[String]) -> String {
    let mut names: Vec<String> =
        files.iter().take(SHOWN).map(|path| format!("`{}`", quoted_for_shell(path))).collect();
    if files.len() > SHOWN {
        names.push(format!("{} more", files.len() - SHOWN));
    }
    names.join(", ")
}

/// A checkout around a folder.
#[cfg_attr(not(feature = "git"), allow(dead_code))]
struct Checkout {
    /// Its commit, if it has one.
    commit: Option<Commit>,
    /// The files of the folder that differ from it.
    changed: Vec<String>,
    /// Those that it has, and that a sparse checkout leaves out.
    absent: Vec<String>,
}

/// The checkout around a folder.
#[cfg(feature = "git")]
fn around(session: &Session, folder: &Path) -> Result<Option<Checkout>, CommandError> {
    let own = session.environment.cache.join("git");
    let programs = programs(&session.environment);
    let local = local_git(&session.environment);
    let found = mu_provider_git::Checkout::around(folder, &local).and_then(|found| {
        let Some(found) = found else { return Ok(None) };
        let absent = RefCell::new(Vec::new());
        let note = |path: &str| {
            absent.borrow_mut().push(path.to_owned());
            false
        };
        mu_provider_git::Surroundings::not_checked_out(folder, &note, &programs, &own)?;
        let absent = absent_of_package(folder, absent.into_inner());
        Ok(Some(Checkout { commit: found.commit, changed: found.changed, absent }))
    });
    found.map_err(|error| {
        let what = format!("cannot tell whether `{}` is committed", folder.display());
        CommandError::from_error(Code::Io, error)
            .while_doing(what)
            .hint("`--allow-dirty` publishes without this check")
    })
}

/// Those of the files that a sparse checkout may leave out which are not there, except those of packages inside.
#[cfg(feature = "git")]
fn absent_of_package(folder: &Path, skipped: Vec<String>) -> Vec<String> {
    let absent: BTreeSet<String> =
        skipped.into_iter().filter(|path| !folder.join(path).exists()).collect();
    // A package inside this one is published by itself.
    let is_inner = |path: &str| {
        path.match_indices('/').any(|(end, _)| {
            let manifests =
                formats::manifest_names().map(|name| format!("{}/{name}", &path[..end]));
            manifests.into_iter().any(|path| absent.contains(&path) || folder.join(&path).is_file())
        })
    };
    absent.iter().filter(|path| !is_inner(path)).cloned().collect()
}

/// Without the Git provider, nothing is known about checkouts.
#[cfg(not(feature = "git"))]
fn around(_session: &Session, _folder: &Path) -> Result<Option<Checkout>, CommandError> {
    Ok(None)
}
