//! The `.helmignore` of a chart that is the root of a workspace.
//!
//! `helm package` and `helm install` take everything along that lies in a chart's folder and is not named there, so mu names its
//! own files. Lines that are there stay.

use std::path::{Path, PathBuf};

use mu_provider::{Folder, InnerPath, OwnPath};

use crate::contents::rules::{OF_HELM, Rules};
use crate::formats;
use crate::fs;
use crate::ops::CommandError;
use crate::workspace::{LOCK_FILE, MU_FOLDER};

/// The file, beside `Chart.yaml`.
const FILE: OwnPath = InnerPath::own(".helmignore");

/// The line above mu's own.
const WHY: &str = "# Files of mu, which are not a part of the chart.";

/// The lines that are missing in the `.helmignore` of the chart at `root`; none if there is no chart.
///
/// # Errors
///
/// When it cannot be read.
pub(crate) fn missing(root: &Path) -> Result<Vec<String>, CommandError> {
    use mu_formats::helm;

    if !formats::is_manifest(&helm::FORMAT, &root.join(helm::CHART)) {
        return Ok(Vec::new());
    }
    let rules = Rules::from_folder_alone(OF_HELM, root, &mut Vec::new())?;
    let own =
        [(MU_FOLDER, true, format!("{MU_FOLDER}/")), (LOCK_FILE, false, LOCK_FILE.to_owned())];
    let missing = own
        .into_iter()
        .filter(|(name, is_folder, _)| !rules.leave_out(&root.join(name), *is_folder));
    Ok(missing.map(|(_, _, line)| line).collect())
}

/// Adds the lines that are missing; returns the file, if it has changed. A `.helmignore` that is a link is left alone.
///
/// # Errors
///
/// When it cannot be read or written.
pub(crate) fn add(root: &Path) -> Result<Option<PathBuf>, CommandError> {
    let missing = missing(root)?;
    let is_link = fs::symlink_metadata(&root.join(FILE.as_str()));
    if missing.is_empty() || is_link.is_ok_and(|found| found.is_symlink()) {
        return Ok(None);
    }
    let folder = Folder::at(root)?;
    let mut text = folder.read_text(&FILE.into())?.unwrap_or_default();
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(end);
    }
    for line in [WHY.to_owned()].iter().chain(&missing) {
        text.push_str(line);
        text.push_str(end);
    }
    folder.write(&FILE.into(), text.as_bytes())?;
    Ok(Some(folder.path().join(FILE.as_str())))
}
