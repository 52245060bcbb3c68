//! The lines of an index file: checked to be lines about one package, and returned unchanged.
//!
//! Most lines are never parsed, so this only makes sure that they can be.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use mu_provider::http::{because_of_web_page, begins_web_page};
use mu_provider::{ErrorKind, ProviderError, SafeUrl};
use serde::Deserialize;
use serde_json::Value;

use crate::wire::ProvidersFile;

/// The longest index file, in bytes.
pub(crate) const LONGEST_FILE: u64 = 64 << 20;

/// The longest line, in bytes.
const LONGEST_LINE: usize = 1 << 20;

/// The most packages in a list of providers: what is made of a name takes a hundred times as much memory.
const MOST_PROVIDERS: usize = 100_000;

/// The keys that every line must have, and those that distinguish versions.
#[derive(Deserialize)]
struct LineKeys<'line> {
    #[serde(borrow)]
    name: Cow<'line, str>,
    #[serde(borrow)]
    version: Cow<'line, str>,
    #[serde(default)]
    versioning: Value,
    #[serde(default, rename = "appVersion")]
    app_version: Value,
}

/// What to do about a damaged index file.
const DAMAGED: &str = "the hub is damaged: ask its operator to run `mu hub check`";

/// Checks the index file of `name` from `url`.
///
/// # Errors
///
/// When a line is not JSON, is too long, has no version, is about another package, or contradicts an earlier
/// line about the same version.
pub fn check(bytes: Vec<u8>, name: &str, url: &SafeUrl) -> Result<Vec<u8>, ProviderError> {
    if begins_web_page(&bytes) {
        let text = format!("`{url}` is not an index file");
        return Err(because_of_web_page(ProviderError::new(ErrorKind::Protocol, text)));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let fine = bytes.iter().take(error.valid_up_to());
        let number = 1 + fine.filter(|byte| **byte == b'\n').count();
        broken(url, number, ErrorKind::Integrity, "is not UTF-8")
    })?;
    let mut has_empty_lines = false;
    let mut versions: HashMap<_, (usize, &str)> = HashMap::new();
    for (index, line) in text.split_terminator('\n').enumerate() {
        let fail = |kind, what: &str| broken(url, index + 1, kind, what);
        if line.trim_ascii().is_empty() {
            has_empty_lines = true;
            continue;
        }
        if line.len() > LONGEST_LINE {
            let what = format!("is longer than {LONGEST_LINE} bytes");
            return Err(fail(ErrorKind::Integrity, &what));
        }
        if !line.starts_with('{') {
            // Some servers answer everything with a page.
            return Err(fail(ErrorKind::Protocol, "is not an index line"));
        }
        let parsed: LineKeys<'_> = serde_json::from_str(line).map_err(|error| {
            fail(ErrorKind::Integrity, "is not an index line").because(not_json(&error))
        })?;
        if parsed.name != name {
            let what = format!("is about another package than `{name}`");
            return Err(fail(ErrorKind::Integrity, &what));
        }
        if parsed.version.is_empty() {
            return Err(fail(ErrorKind::Integrity, "has no version"));
        }
        // An app version counts only if it is a part of the version.
        let is_composite = parsed.versioning == "composite";
        let app_version = is_composite.then(|| parsed.app_version.to_string());
        match versions.entry((parsed.version, app_version)) {
            Entry::Vacant(entry) => drop(entry.insert((index + 1, line))),
            Entry::Occupied(entry) => {
                let (first, other) = entry.get();
                if !is_same(line, other) {
                    let version = &entry.key().0;
                    let digests = match [line, other].map(digest) {
                        [Some(here), Some(there)] if here != there => {
                            format!(": the digest is {here} here, and {there} there")
                        }
                        _ => String::new(),
                    };
                    let what = format!("disagrees with line {first} about {version}{digests}");
                    return Err(fail(ErrorKind::Integrity, &what));
                }
            }
        }
    }
    if has_empty_lines {
        let lines = text.split_terminator('\n').filter(|line| !line.trim_ascii().is_empty());
        return Ok(lines.flat_map(|line| [line, "\n"]).collect::<String>().into_bytes());
    }
    Ok(bytes)
}

/// Whether two lines mean the same, however they are written.
fn is_same(one: &str, other: &str) -> bool {
    let value = |line: &str| serde_json::from_str::<Value>(line).ok();
    one == other || value(one).is_some_and(|one| value(other) == Some(one))
}

/// A line's digest of the content, or else of the archive.
fn digest(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    let digest = ["digest", "archive"].iter().find_map(|key| line.get(key)?.as_str());
    digest.map(str::to_owned)
}

/// The packages in a list of providers from `url`: a line for each, with only its name.
///
/// # Errors
///
/// When it is not such a list, or has more than 100,000 packages.
pub fn providers(bytes: &[u8], url: &SafeUrl) -> Result<Vec<u8>, ProviderError> {
    let file: ProvidersFile = serde_json::from_slice(bytes).map_err(|error| {
        let text = format!("`{url}` is not a list of packages");
        ProviderError::new(ErrorKind::Protocol, text).because(error)
    })?;
    if file.packages.len() > MOST_PROVIDERS {
        let text = format!("`{url}` lists more than {MOST_PROVIDERS} packages");
        return Err(ProviderError::new(ErrorKind::Protocol, text));
    }
    let lines = file.packages.iter().map(|name| {
        let line = serde_json::json!({ "name": name });
        format!("{line}\n")
    });
    Ok(lines.collect::<String>().into_bytes())
}

/// Why a text is not what was expected, in words.
pub(crate) fn not_json(error: &serde_json::Error) -> String {
    match error.is_eof() {
        true => "this is not JSON: it ends too early".to_owned(),
        false => format!("this is not JSON: {error}"),
    }
}

fn broken(url: &SafeUrl, number: usize, kind: ErrorKind, what: &str) -> ProviderError {
    ProviderError::new(kind, format!("line {number} of `{url}` {what}")).hint(DAMAGED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: impl Into<Vec<u8>>) -> Result<Vec<u8>, String> {
        let url = SafeUrl::parse("https://h/index/a.jsonl").expect("is a URL");
        check(text.into(), "a", &url).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_pass_as_they_came() {
        for text in [
            "",
            "{\"name\":\"a\",\"version\":\"1.0.0\"}\n",
            "{\"version\":\"1.0.0\", \"x\": [1, {}], \"name\":\"\\u0061\"}",
            "{\"name\":\"a\",\"version\":\"1\"}\r\n{\"name\":\"a\",\"version\":\"2\"}\n",
        ] {
            assert_eq!(check_text(text), Ok(text.as_bytes().to_vec()));
        }
        let line = "{\"name\":\"a\",\"version\":\"1\"}\n";
        assert_eq!(
            check_text(format!("\n{line}  \n{line}\n")),
            Ok([line, line].concat().into_bytes())
        );
    }

    #[test]
    fn a_version_is_said_once_or_the_same_each_time() {
        let check = |lines: &[&str]| {
            let lines = lines
                .iter()
                .map(|line| format!("{{\"name\":\"a\",\"version\":\"1.0.0\"{line}}}\n"));
            check_text(lines.collect::<String>())
        };
        check(&["", ""]).expect("is the same");
        check(&[r#","x":1,"y":2"#, r#", "y": 2, "x": 1"#]).expect("is the same in other words");
        let composite = |app: &str| format!(r#","versioning":"composite","appVersion":"{app}""#);
        check(&[&composite("1.0"), &composite("2.0")]).expect("are two versions");
        for lines in [
            ["", r#","yanked":"why""#],
            [r#","appVersion":"1.0""#, r#","appVersion":"2.0""#],
            [r#","digest":"h1:a""#, r#","digest":"h1:a","size":1"#],
            [&composite("1.0"), &format!("{},\"size\":1", composite("1.0"))],
        ] {
            let expected = "line 2 of `https://h/index/a.jsonl` disagrees with line 1 about 1.0.0";
            assert_eq!(check(&lines), Err(expected.to_owned()), "{lines:?}");
        }
    }

    #[test]
    fn both_digests_of_a_version_are_named() {
        let line = |digest: &str| {
            format!("{{\"name\":\"a\",\"version\":\"1.0.0\",\"digest\":\"{digest}\"}}\n")
        };
        let expected = "line 2 of `https://h/index/a.jsonl` disagrees with line 1 about 1.0.0: the digest is \
                        h1:b here, and h1:a there";
        assert_eq!(check_text(line("h1:a") + &line("h1:b")), Err(expected.to_owned()));
    }

    #[test]
    fn a_broken_line_is_damage_and_a_page_is_not_an_index() {
        let kind = |line: &str| {
            let url = SafeUrl::parse("https://h/index/a.jsonl").expect("is a URL");
            check(line.as_bytes().to_vec(), "a", &url).expect_err("is broken").kind()
        };
        for line in ["{\"name\":\"a\"", "{\"name\":\"a\"}", "{\"name\":\"a\",\"version\":\"\"}"] {
            assert_eq!(kind(line), ErrorKind::Integrity, "{line}");
        }
        assert_eq!(kind("<html>"), ErrorKind::Protocol);
    }

    #[test]
    fn a_broken_line_is_named() {
        let fine = "{\"name\":\"a\",\"version\":\"1\"}\n";
        for (line, what) in [
            ("<html>", "line 2 of `https://h/index/a.jsonl` is not an index line"),
            ("{\"name\":\"a\"}", "line 2 of `https://h/index/a.jsonl` is not an index line"),
            (
                "{\"name\":\"a\",\"version\":\"\"}",
                "line 2 of `https://h/index/a.jsonl` has no version",
            ),
            (
                "{\"name\":\"b\",\"version\":\"1\"}",
                "line 2 of `https://h/index/a.jsonl` is about another package than `a`",
            ),
            ("[\"a\", \"1\"]", "line 2 of `https://h/index/a.jsonl` is not an index line"),
        ] {
            assert_eq!(check_text(format!("{fine}{line}\n{fine}")), Err(what.to_owned()));
        }
        let latin = [fine.as_bytes(), b"\xe9"].concat();
        assert_eq!(
            check_text(latin),
            Err("line 2 of `https://h/index/a.jsonl` is not UTF-8".to_owned())
        );
        let long =
            format!("{{\"name\":\"a\",\"version\":\"1\",\"x\":\"{}\"}}", "x".repeat(1 << 20));
        assert!(check_text(long).is_err_and(|text| text.contains("longer than")));
    }
}
