//! `vendor`: keeps packs as plain files that are committed, so that a checkout needs no network.
//!
//! `packs/vendored.json` records this, so every later command that installs keeps packs that way. `vendor
//! --for TOOL` writes files for another tool instead; there is one source file for each tool.

pub mod crossplane;
mod helm;
pub mod kcl;
pub mod olm;
mod shared;

use std::path::{Path, PathBuf};

pub use self::helm::{Carried, Vendored, VendoredArchive, VendoredChart, vendor_for_helm};
pub use self::shared::{VendorMode, WrittenFiles};

use crate::contents::Owned;
use crate::contents::rules::{OF_GIT, Rules};
use crate::fs::FileError;
use crate::ops::apply::install::install;
use crate::ops::session::installed_packs::named;
use crate::ops::solve::names;
use crate::ops::solve::resolve::resolve;
use crate::ops::{CommandError, Outcome, Session};
use crate::select::Update;

/// Installs what the workspace needs, as files to commit.
///
/// # Errors
///
/// As [`install`].
pub fn vendor(session: &Session, dry_run: bool) -> Result<Outcome, CommandError> {
    let extra = session.lockfile()?.unwrap_or_default().extra.clone();
    let requirements = names::collect_looked_up(session, extra)?;
    let resolved = resolve(session, &requirements, Update::Nothing)?;
    let packs = session.packs();
    let is_new = !dry_run && !packs.is_vendored();
    // Before anything is installed: packs that are vendored are made of files that Git can commit, and without a
    // `.gitignore`.
    if is_new {
        let lock = session.lockfile()?.unwrap_or_default();
        packs.recognize(|| named(&lock))?;
        packs.mark_vendored()?;
    }
    let outcome = match install(session, &requirements, resolved, &[], dry_run) {
        Err(error) if is_new => {
            // Nothing is committed yet, so packs are installed as before.
            packs.unmark_vendored()?;
            return Err(error);
        }
        result => result?,
    };
    if !dry_run && let Some(file) = left_out(session, packs.path())? {
        session.events.warning(&format!(
            "`{}` would not be committed, because a .gitignore excludes it; `git add --force` adds it",
            file.display()
        ));
    }
    Ok(outcome)
}

/// Installs packs from the store again, as files that are not committed.
///
/// # Errors
///
/// When it cannot be written.
pub fn stop_vendoring(session: &Session) -> Result<(), CommandError> {
    Ok(session.packs().unmark_vendored()?)
}

/// The folder of the packs, or the one around it, if Git ignores it; what is in the packs has rules of its own.
fn left_out(session: &Session, packs: &Path) -> Result<Option<PathBuf>, FileError> {
    let root = &session.workspace.root;
    let owned = Owned::around(root, &session.environment)?;
    let mut rules = Rules::for_content(OF_GIT, root, owned.top(), "", &mut Vec::new())?;
    for folder in [packs.parent().unwrap_or(root), packs] {
        if rules.leave_out(folder, true) {
            return Ok(Some(folder.to_owned()));
        }
        rules = rules.with_folder_inside(folder, &mut Vec::new())?;
    }
    Ok(None)
}
