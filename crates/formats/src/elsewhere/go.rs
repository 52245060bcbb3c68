//! `go.mod`: a list of repositories at the versions in use. Teams also keep one for what is no Go at all, such as schemas and
//! configuration.
//!
//! Only the modules that the file itself needs are read, not those that only other modules need (`// indirect`). A module of a host
//! whose addresses say the repository is one of mu; of others only a proxy knows where they are.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use super::{InUse, KNOWN_HOSTS, List, ListedDependency, Meaning};
use crate::node::{Fault, FormatError};

/// The file.
pub const GO_FILE: &str = "go.mod";

/// The directives that say nothing about what is needed.
const OTHERS: [&str; 8] =
    ["module", "go", "toolchain", "godebug", "tool", "ignore", "exclude", "retract"];

/// The modules that `text`, that of `go.mod`, needs.
///
/// # Errors
///
/// When Go does not read it either.
pub fn list(text: &str) -> Result<List, FormatError> {
    let wrong = |fault| FormatError::new(GO_FILE, text, fault);
    let lines = lines(text).map_err(wrong)?;
    let of = |directive: &'static str| lines.iter().filter(move |one| one.directive == directive);
    let replaced: Result<Vec<_>, _> = of("replace").map(Replaced::read).collect();
    let replaced = replaced.map_err(wrong)?;
    let mut found = List::default();
    for line in of("require") {
        let [path, version] = line.words.as_slice() else {
            let reason = "expected the path of a module and its version: `require MODULE v1.2.3`";
            return Err(wrong(Fault::new(line.span.clone(), reason)));
        };
        // One for this version counts before one for all of them.
        let instead = replaced.iter().filter(|one| one.path == path);
        let instead = instead.filter(|one| one.version.is_none_or(|own| own == version));
        let instead = instead.max_by_key(|one| one.version.is_some());
        let meaning = match instead {
            _ if line.is_indirect => Err("only other modules need it".to_owned()),
            Some(Replaced { by, at: None, .. }) => {
                Err(format!("`{by}` takes its place, which is a folder of this machine"))
            }
            Some(Replaced { by, at: Some(at), .. }) => meaning(by, at),
            None => meaning(path, version),
        };
        found.dependencies.push(ListedDependency {
            called: path.clone().into_owned(),
            line: line.number,
            meaning,
        });
    }
    let is_known = |name: &str| ["require", "replace"].contains(&name) || OTHERS.contains(&name);
    let directives = lines.iter().map(|line| &*line.directive);
    let unknown: BTreeSet<&str> = directives.filter(|name| !is_known(name)).collect();
    found.unknown = unknown.into_iter().map(str::to_owned).collect();
    Ok(found)
}

/// A line with what it says, alone or in a block.
struct Line<'t> {
    number: usize,
    span: Range<usize>,
    directive: Cow<'t, str>,
    words: Vec<Cow<'t, str>>,
    is_indirect: bool,
}

/// The lines that say something, each with the directive of its block.
fn lines(text: &str) -> Result<Vec<Line<'_>>, Fault> {
    let mut found = Vec::new();
    let mut block: Option<(Cow<'_, str>, Range<usize>)> = None;
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        let (mut words, comment) = words_of(line, start)?;
        let span = start..start + line.len();
        let brackets = |words: &[Word<'_>]| -> Vec<bool> {
            words.iter().map(|word| word.is_sign && ["(", ")"].contains(&&*word.text)).collect()
        };
        match (&block, brackets(&words).as_slice()) {
            (_, []) => continue,
            (Some(_), [true]) if words.iter().all(|word| word.text == ")") => {
                block = None;
                continue;
            }
            (None, [false, true]) if words.iter().skip(1).all(|word| word.text == "(") => {
                block = Some((words.remove(0).text, span));
                continue;
            }
            // A block without lines.
            (None, [false, true, true]) if words.iter().any(|word| word.text == "(") => continue,
            (_, signs) if signs.contains(&true) => {
                let reason = "a bracket may only stand behind a directive, and alone in a line";
                return Err(Fault::new(span, reason));
            }
            _ => {}
        }
        let mut words = words.into_iter().map(|word| word.text);
        let directive = match &block {
            Some((directive, _)) => directive.clone(),
            None => words.next().unwrap_or_default(),
        };
        // As Go has it: the comment alone, or something else behind a semicolon.
        let mut said = comment.split_whitespace();
        let is_indirect = match (said.next(), said.next()) {
            (Some(first), None) => first == "indirect",
            (first, _) => first == Some("indirect;"),
        };
        let words = words.collect();
        found.push(Line { number: number + 1, span, directive, words, is_indirect });
    }
    match block {
        Some((_, span)) => Err(Fault::new(span, "the block that begins here has no `)`")),
        None => Ok(found),
    }
}

/// A word of a line, without its quotes.
struct Word<'t> {
    text: Cow<'t, str>,
    /// Whether it is a sign of Go's grammar, and no text.
    is_sign: bool,
}

/// The words of a line that begins at `start`, and the comment behind them.
fn words_of(line: &str, start: usize) -> Result<(Vec<Word<'_>>, &str), Fault> {
    const SIGNS: [char; 7] = ['(', ')', '[', ']', '{', '}', ','];
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        // Some editors begin a file with a mark of its encoding.
        rest = rest.trim_start_matches(|one: char| one.is_whitespace() || one == '\u{feff}');
        let at = start + line.len() - rest.len();
        let Some(first) = rest.chars().next() else { return Ok((words, "")) };
        if let Some(comment) = rest.strip_prefix("//") {
            return Ok((words, comment));
        }
        if rest.starts_with("/*") {
            return Err(Fault::new(at..at + 2, "comments of this file begin with `//`"));
        }
        if ['"', '`'].contains(&first) {
            let (text, length) = quoted(rest, first)
                .ok_or_else(|| Fault::new(at..at + 1, "the text that begins here has no end"))?;
            words.push(Word { text, is_sign: false });
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        let is_sign = SIGNS.contains(&first);
        let end = match is_sign {
            true => first.len_utf8(),
            false => {
                let end = rest.find(|one: char| one.is_whitespace() || SIGNS.contains(&one));
                let end = end.unwrap_or(rest.len());
                rest.find("//").map_or(end, |comment| comment.min(end))
            }
        };
        let (text, behind) = rest.split_at(end);
        if text.contains(['"', '`', '\'']) {
            return Err(Fault::new(at..at + end, "a word without quotes has one in it"));
        }
        words.push(Word { text: text.into(), is_sign });
        rest = behind;
    }
}

/// The text in quotes, and its length with them; `None` if it does not end in its line.
fn quoted(rest: &str, quote: char) -> Option<(Cow<'_, str>, usize)> {
    let mut text = String::new();
    let mut all = rest.char_indices().skip(1);
    while let Some((at, one)) = all.next() {
        match one {
            '\\' if quote == '"' => text.push(all.next()?.1),
            _ if one == quote => return Some((text.into(), at + 1)),
            _ => text.push(one),
        }
    }
    None
}

/// A module that another one takes the place of: `PATH [VERSION] => PATH [VERSION]`.
struct Replaced<'t> {
    path: &'t str,
    version: Option<&'t str>,
    by: &'t str,
    /// The version of that; a folder has none.
    at: Option<&'t str>,
}

impl<'t> Replaced<'t> {
    fn read(line: &'t Line<'t>) -> Result<Self, Fault> {
        let words: Vec<&str> = line.words.iter().map(AsRef::as_ref).collect();
        let (path, version, by) = match words[..] {
            [path, "=>", ref by @ ..] => (path, None, by),
            [path, version, "=>", ref by @ ..] => (path, Some(version), by),
            _ => ("", None, &[] as &[&str]),
        };
        match *by {
            [by] => Ok(Self { path, version, by, at: None }),
            [by, at] => Ok(Self { path, version, by, at: Some(at) }),
            _ => {
                let reason = "expected a module and what takes its place: `replace MODULE [v1.2.3] => MODULE v1.2.3`, or a folder behind `=>`";
                Err(Fault::new(line.span.clone(), reason))
            }
        }
    }
}

/// What a module is for mu.
fn meaning(path: &str, version: &str) -> Result<Meaning, String> {
    // `/v2` says the major version, which stands in the version, too.
    let is_major = |last: &str| {
        last.strip_prefix('v')
            .is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let path = match path.rsplit_once('/') {
        Some((before, last)) if is_major(last) => before,
        _ => path,
    };
    let mut segments = path.split('/');
    let is_known = segments.next().is_some_and(|host| KNOWN_HOSTS.contains(&host));
    let is_named = segments.any(|one| one.ends_with(".git"));
    if !is_known && !is_named {
        return Err("only a proxy of Go modules knows where it is".to_owned());
    }
    let place = format!("https://{path}");
    let version = version.strip_suffix("+incompatible").unwrap_or(version);
    let Some(number) = version.strip_prefix('v') else {
        return Err(format!("`{version}` is not a version of Go modules"));
    };
    // Without a tag: `v0.0.0-DATE-COMMIT`.
    let mut parts = number.rsplit('-');
    let (commit, date) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    // After the date of a tag that comes next: `v1.3.1-0.DATE-COMMIT`.
    let date = date.rsplit('.').next().unwrap_or_default();
    let is_commit = commit.len() == 12 && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_commit && date.len() == 14 && date.bytes().all(|digit| digit.is_ascii_digit()) {
        return Meaning::of_git(&place, "", Some(commit));
    }
    let range = format!("^{number}");
    let meaning = Meaning::of_git(&place, "", Some(&range))?;
    Ok(meaning.at(Some(InUse::Version(number.to_owned()))))
}
