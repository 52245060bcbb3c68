//! What a plugin's lines must be like before anything else reads them: their locators and commits reach `Mu.lock`.
//!
//! The functions return the fault of the plugin. Everything else in a line is read as in the line of a hub.

use mu_provider::Commit;
use serde::Deserialize as _;
use serde_json::Value;

use crate::message::readable;

/// The longest locator, in bytes.
const LONGEST_LOCATOR: usize = 4 << 10;

/// Checks a line.
pub(crate) fn check(line: &Value) -> Result<(), String> {
    let said = |key| line.get(key).filter(|value| !value.is_null());
    let text = |key| said(key).and_then(Value::as_str).unwrap_or_default();
    if text("locator").len() > LONGEST_LOCATOR {
        return Err("gave a release a locator of more than 4 KiB".to_owned());
    }
    match said("commit").map(Commit::deserialize) {
        Some(Err(error)) => Err(format!("gave a wrong commit: {}", readable(&error.to_string()))),
        None if text("version").is_empty() => {
            Err("gave a release with neither a version nor a commit".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks that the line of `commit` answers the question for `revision`.
pub(crate) fn answers(commit: Option<&Commit>, revision: &str) -> Result<(), String> {
    // Only all digits are sure to be a commit: fewer may be the name of a tag.
    match revision.to_ascii_lowercase().parse::<Commit>() {
        Ok(asked) if commit != Some(&asked) => {
            Err(format!("answered `resolve` for {revision} with another commit"))
        }
        _ => Ok(()),
    }
}
