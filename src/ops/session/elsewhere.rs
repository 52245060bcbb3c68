//! Tells the user which bases a workspace leads elsewhere than the user does: once for each checkout, and again if it changes.
//!
//! It is no question: a workspace may do it. But ids then mean something else than elsewhere, which should not go unseen.

use crate::fs;
use crate::ops::{OperationScope, Session};
use crate::workspace::{MU_FOLDER, WORKSPACE_FILE};

/// The folder of the cache that has what was told about each checkout.
const FOLDER: &str = "told";

/// The bases that the workspace leads elsewhere, a line each.
pub(crate) fn redirected_base_lines(session: &Session) -> Vec<String> {
    if session.scope != OperationScope::Workspace {
        return Vec::new();
    }
    let all = session.workspace.settings.redirected_bases().into_iter();
    all.map(|one| {
        let (prefix, place) = (one.prefix, one.place);
        format!("`{prefix}` is at `{place}` here: {MU_FOLDER}/{WORKSPACE_FILE} says so")
    })
    .collect()
}

/// Says them, unless this was said of this checkout before.
pub(crate) fn warn_of_redirects(session: &Session) {
    let lines = redirected_base_lines(session);
    if lines.is_empty() {
        return;
    }
    let text = lines.join("\n");
    let path = session.packs().path_in_cache(FOLDER);
    let known = path.as_ref().and_then(|path| fs::read_text_if_there(path).ok().flatten());
    if known.as_deref() == Some(&text) {
        return;
    }
    lines.iter().for_each(|line| session.events.warning(line));
    if let Some(path) = path {
        // Without it, it is said once more.
        let _ = fs::create_private_folder(&session.environment.cache, crate::env::IN_CACHE)
            .and_then(|()| fs::write_atomic(&path, text.as_bytes()));
    }
}
