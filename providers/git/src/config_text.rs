//! Git's configuration format, as others wrote it in a repository.
//!
//! mu reads it with its own small parser, because libgit2's follows `include`, and a hostile repository must not choose files of
//! this machine to be read. Lines that make no sense are ignored.
//!
//! `.gitmodules` has this format: it says the repository of the submodule at a path.

use std::collections::BTreeMap;

/// One line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The section, in lower case.
    pub(crate) section: String,
    /// The name of what the section is about: `a` in `[submodule "a"]`.
    pub(crate) name: Option<String>,
    /// The key, in lower case.
    pub(crate) key: String,
    /// Its value; empty if there is none.
    pub(crate) value: String,
}

/// The settings in a text, in their order.
pub(crate) fn settings(text: &str) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut section = None;
    for line in logical_lines(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        let mut line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let Some((inner, rest)) = split_header(header) else {
                section = None;
                continue;
            };
            section = inner;
            line = rest.trim();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim().to_ascii_lowercase();
        let Some((section, name)) = &section else { continue };
        if key.is_empty() || key.starts_with(['#', ';']) {
            continue;
        }
        let (section, name) = (String::clone(section), Option::clone(name));
        found.push(Setting { section, name, key, value: unquote(value.trim()) });
    }
    found
}

/// The section and the name in what follows a bracket, and what follows the header.
#[allow(clippy::type_complexity, reason = "it is taken apart at once")]
fn split_header(header: &str) -> Option<(Option<(String, Option<String>)>, &str)> {
    let (section, rest) = header.split_at_checked(header.find(['"', ']'])?)?;
    let section = section.trim().to_ascii_lowercase();
    if let Some(rest) = rest.strip_prefix(']') {
        // The older way to write a name, in lower case.
        return Some(match section.split_once('.') {
            Some((section, name)) => (Some((section.to_owned(), Some(name.to_owned()))), rest),
            None => (Some((section, None)), rest),
        });
    }
    let quoted = rest.strip_prefix('"')?;
    let mut name = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let rest = quoted.get(at + 1..)?.trim_start().strip_prefix(']')?;
                return Some((Some((section, Some(name))), rest));
            }
            '\\' => name.push(characters.next()?.1),
            other => name.push(other),
        }
    }
    None
}

/// Logical lines: one that ends in a backslash continues in the next, unless that stands in a comment.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for line in text.lines() {
        let last = lines.last_mut().expect("there is always one");
        match line.strip_suffix('\\').filter(|start| !ends_in_comment(&format!("{last}{start}"))) {
            Some(start) => last.push_str(start),
            None => {
                last.push_str(line);
                lines.push(String::new());
            }
        }
    }
    lines
}

/// Whether a comment begins in a line: at a `#` or `;` outside of quotes.
fn ends_in_comment(line: &str) -> bool {
    let mut quoted = false;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '\\' => drop(characters.next()),
            '#' | ';' if !quoted => return true,
            _ => {}
        }
    }
    false
}

/// A value without its quotes, escapes and trailing comment.
fn unquote(value: &str) -> String {
    let mut text = String::new();
    let mut quoted = false;
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => match characters.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => {}
            },
            _ => text.push(character),
        }
    }
    if quoted { text } else { text.trim_end().to_owned() }
}

/// What `git config --null --list` has printed, as a text in this format: those whose keys, in lower case, are `wanted`. What files include
/// is in the list, so they are not included again.
pub(crate) fn written(listed: &str, wanted: &dyn Fn(&str) -> bool) -> String {
    let mut text = String::new();
    for entry in listed.split('\0') {
        let (name, value) = match entry.split_once('\n') {
            Some((name, value)) => (name, Some(value)),
            None => (entry, None),
        };
        let Some((section, rest)) = name.split_once('.') else { continue };
        if ["include", "includeif"].contains(&section) || !wanted(name) {
            continue;
        }
        match rest.rsplit_once('.') {
            Some((about, key)) => {
                text.push_str(&format!("[{section} \"{}\"]\n\t{key}", escaped(about)));
            }
            None => text.push_str(&format!("[{section}]\n\t{rest}")),
        }
        if let Some(value) = value {
            text.push_str(&format!(" = \"{}\"", escaped(value)));
        }
        text.push('\n');
    }
    text
}

/// Whether a value is one of Git's words for no.
pub(crate) fn says_no(value: &str) -> bool {
    ["false", "no", "off", "0"].contains(&&*value.to_ascii_lowercase())
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The paths of submodules, and the URLs of their repositories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Submodules(BTreeMap<Vec<u8>, String>);

impl Submodules {
    /// Reads the file; lines that make no sense are ignored.
    pub(crate) fn parse(data: &[u8]) -> Self {
        let text = String::from_utf8_lossy(data);
        let mut sections: BTreeMap<String, [Option<String>; 2]> = BTreeMap::new();
        for Setting { section, name, key, value } in settings(&text) {
            let Some(name) = name.filter(|_| section == "submodule") else { continue };
            let [path, url] = sections.entry(name).or_default();
            match key.as_str() {
                "path" => *path = Some(value),
                "url" => *url = Some(value),
                _ => {}
            }
        }
        let pairs = sections.into_values().filter_map(|[path, url]| {
            let path = path?.trim_end_matches('/').as_bytes().to_vec();
            Some((path, url?))
        });
        Self(pairs.collect())
    }

    /// The paths of all submodules, and their URLs as they are written.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&[u8], &str)> {
        self.0.iter().map(|(path, url)| (path.as_slice(), url.as_str()))
    }

    /// The URL of the submodule at `path`, as it is written.
    pub(crate) fn url(&self, path: &[u8]) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sections_names_and_values_as_git_does() {
        let text = "[core]\n\tbare = false # no\n[Extensions]\n\tobjectFormat = \"sha256\"\n[remote \"a \\\"b\\\" c\"]\nurl = x;y\n[broken\nkey = lost\n[core] editor = vi\n";
        let found: Vec<(String, Option<String>, String, String)> = settings(text)
            .into_iter()
            .map(|one| (one.section, one.name, one.key, one.value))
            .collect();
        let one = |section: &str, name: Option<&str>, key: &str, value: &str| {
            (section.to_owned(), name.map(str::to_owned), key.to_owned(), value.to_owned())
        };
        assert_eq!(
            found,
            [
                one("core", None, "bare", "false"),
                one("extensions", None, "objectformat", "sha256"),
                one("remote", Some("a \"b\" c"), "url", "x"),
                one("core", None, "editor", "vi"),
            ]
        );
    }

    #[test]
    fn reads_what_git_writes_and_what_people_write() {
        let file = r#"
            # a comment
            [submodule "libs/one"]
                path = libs/one
                url = ../one.git
            [SubModule "two"]
                path = "libs/a b"  ; another
                URL = https://h/a\
b
            [core]
                path = elsewhere
                url = x
            [submodule.four] # a note \
                path = four ; another \
                url = ../four.git
            [submodule "three"]
                path = three
        "#;
        let file = &format!("\u{feff}{file}");
        let submodules = Submodules::parse(file.as_bytes());
        assert_eq!(submodules.url(b"libs/one"), Some("../one.git"));
        assert_eq!(submodules.url(b"libs/a b"), Some("https://h/ab"));
        assert_eq!(submodules.url(b"four"), Some("../four.git"));
        assert_eq!(submodules.url(b"elsewhere"), None);
        assert_eq!(submodules.url(b"three"), None);
    }
}
