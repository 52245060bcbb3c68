//! What is packed, or not, and was probably not intended.

use crate::contents::Item;
use crate::manifest::{Globs, JSON_NAME, Warning, YAML_NAME, error_at_readme};
use crate::workspace::Member;

/// Reports what was probably not intended.
pub(super) fn warn(member: &Member, chosen: &[Item], warnings: &mut Vec<String>) {
    for pattern in member.manifest.files.patterns().filter(|pattern| !pattern.starts_with('!')) {
        let Ok(globs) = Globs::parse([pattern]) else { continue };
        if !chosen.iter().any(|chosen| globs.covers(&chosen.path)) {
            warnings.push(format!(
                "`{pattern}` in `files` matches nothing: there is no such file, or `.gitignore` excludes it (`!{pattern}` in a `.muignore` brings it back)"
            ));
        }
    }
    if let Some(readme) = &member.manifest.readme
        && !chosen.iter().any(|chosen| chosen.path == readme.as_str())
    {
        let text = crate::fs::read_text(&member.manifest_path).ok();
        let message = format!("there is no file `{readme}`, which `readme` names");
        let error = text.and_then(|text| error_at_readme(&member.manifest_path, &text, &message));
        let line = error.map(|error| error.line());
        warnings.push(Warning::new(&member.manifest_path, line, message).to_string());
    }
    for chosen in chosen {
        let (folder, name) = chosen.path.rsplit_once('/').unwrap_or(("", &chosen.path));
        if !folder.is_empty() && (name == YAML_NAME || name == JSON_NAME) {
            warnings.push(format!(
                "`{folder}` is a separate package and is packed too; `!{folder}` in `files` excludes it"
            ));
        }
    }
}
