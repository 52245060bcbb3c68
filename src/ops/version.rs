//! `version`: shows or changes the version in a package's manifest, and keeps its layout.

use std::path::PathBuf;

use crate::formats;
use crate::fs;
use crate::manifest::Versions;
use crate::ops::session::member;
use crate::ops::{Code, CommandError, Session};
use crate::reference::Version;

/// A request about a package's version.
#[derive(Debug, Clone, Default)]
pub struct VersionRequest {
    /// The package; `None` means the one around the current folder.
    pub package: Option<String>,
    /// `patch`, `minor`, `major` or a version; `None` only shows the one there is.
    pub change: Option<String>,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// The version of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnVersion {
    /// The package's name.
    pub name: String,
    /// Its manifest.
    pub file: PathBuf,
    /// The version before; none if the manifest had none.
    pub from: Option<String>,
    /// The version now.
    pub to: Option<String>,
}

/// Shows the version of a package of the workspace, or changes it.
///
/// # Errors
///
/// When there is no such package, the version is not one, or the manifest cannot be changed.
pub fn version(session: &Session, request: &VersionRequest) -> Result<OwnVersion, CommandError> {
    let package = request.package.as_deref();
    let index = member::target(session, package, "mu version patch -p PACKAGE")?;
    let member = &session.workspace.members[index];
    let current = member.manifest.version.as_ref();
    let found = OwnVersion {
        name: member.manifest.name.to_string(),
        file: member.manifest_path.clone(),
        from: current.map(ToString::to_string),
        to: current.map(ToString::to_string),
    };
    let Some(change) = &request.change else { return Ok(found) };
    let wanted = match change.as_str() {
        "patch" | "minor" | "major" => raised(current, change, &found)?,
        text if member.manifest.versions == Versions::Lenient => Version::parse_lenient(text)?,
        text => Version::parse(text).map_err(|error| {
            CommandError::from(error)
                .while_doing(format!("cannot set the version to `{text}`"))
                .hint("write `patch`, `minor`, `major`, or a version such as 1.2.0")
        })?,
    };
    let to = wanted.to_string();
    if !request.dry_run && found.from.as_ref() != Some(&to) {
        let text = fs::read_text(&found.file)?;
        let text = formats::manifest_with_version(&found.file, &text, &to, session.short_names())?;
        // What an edit of the text has made is read again before it is written.
        formats::parse_own(&found.file, &text, session.short_names())?;
        fs::write_through_links(&found.file, text.as_bytes())?;
    }
    Ok(OwnVersion { to: Some(to), ..found })
}

/// The next version. A prerelease of it becomes that version, as in npm.
fn raised(
    current: Option<&Version>,
    part: &str,
    found: &OwnVersion,
) -> Result<Version, CommandError> {
    let Some(current) = current.and_then(Version::as_semver) else {
        let file = found.file.display();
        let message = format!("`{file}` has no `version` that can be raised");
        return Err(CommandError::new(Code::Manifest, message).hint("set one: `mu version 0.1.0`"));
    };
    let (major, minor, patch) = (current.major, current.minor, current.patch);
    let is_released = current.pre.is_empty();
    // Raised by `major`, `2.0.0-rc.1` is 2.0.0, and `2.1.0-rc.1` is 3.0.0.
    let (major, minor, patch) = match part {
        "major" if is_released || minor > 0 || patch > 0 => (major + 1, 0, 0),
        "major" => (major, 0, 0),
        "minor" if is_released || patch > 0 => (major, minor + 1, 0),
        "minor" => (major, minor, 0),
        _ if is_released => (major, minor, patch + 1),
        _ => (major, minor, patch),
    };
    // `1.28` becomes `1.29`: missing numbers stay missing if they are zero.
    let written = found.from.as_deref().unwrap_or_default().split('.').count().min(3);
    let mut text = format!("{major}.{minor}.{patch}");
    for _ in written..3 {
        text = text.strip_suffix(".0").map(str::to_owned).unwrap_or(text);
    }
    Ok(Version::parse_lenient(&text)?)
}
