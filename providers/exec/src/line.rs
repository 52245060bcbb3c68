//! What a plugin's lines must be like before anything else reads them: their locators and commits reach `Mu.lock`.
//!
//! The functions return the fault of the plugin. Everything else in a line is read as in the line of a hub.

use crate::message::readable;

/// The longest locator, in bytes.
const LONGEST_LOCATOR: usize = 4 << 10;

/// The length of a commit, in digits.
const COMMIT_LENGTH: usize = 40;

/// Checks a line, by those of its members that are texts.
pub(crate) fn check(
    version: Option<&str>,
    commit: Option<&str>,
    locator: Option<&str>,
) -> Result<(), String> {
    if locator.is_some_and(|text| text.len() > LONGEST_LOCATOR) {
        return Err("gave a release a locator of more than 4 KiB".to_owned());
    }
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match commit {
        Some(commit) if commit.len() != COMMIT_LENGTH || !commit.bytes().all(is_digit) => {
            let commit = readable(commit);
            Err(format!(
                "gave a commit that is not 40 hexadecimal digits in lower case: `{commit}`"
            ))
        }
        None if version.is_none_or(str::is_empty) => {
            Err("gave a release with neither a version nor a commit".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks that the line of `commit` answers the question for `revision`.
pub(crate) fn answers(commit: Option<&str>, revision: &str) -> Result<(), String> {
    // Only all digits are sure to be a commit: fewer may be the name of a tag.
    let is_commit =
        revision.len() == COMMIT_LENGTH && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    match commit {
        Some(commit) if is_commit && commit.eq_ignore_ascii_case(revision) => Ok(()),
        _ if is_commit => Err(format!("answered `resolve` for {revision} with another commit")),
        _ => Ok(()),
    }
}
