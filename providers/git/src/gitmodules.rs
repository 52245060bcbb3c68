//! `.gitmodules`: the repository of the submodule at a path.
//!
//! mu reads it with its own small parser of Git's configuration format, because libgit2's follows `include`,
//! and a hostile repository must not choose files of this machine to be read.

use std::collections::BTreeMap;

/// The paths of submodules, and the URLs of their repositories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Submodules(BTreeMap<Vec<u8>, String>);

impl Submodules {
    /// Reads the file; lines that make no sense are ignored.
    pub(crate) fn parse(data: &[u8]) -> Self {
        let text = String::from_utf8_lossy(data);
        let mut sections: BTreeMap<String, [Option<String>; 2]> = BTreeMap::new();
        let mut section = None;
        for line in logical_lines(&text) {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                section = submodule_name(header);
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            let Some(name) = &section else { continue };
            let [path, url] = sections.entry(String::clone(name)).or_default();
            match key.trim().to_ascii_lowercase().as_str() {
                "path" => *path = Some(unquote(value.trim())),
                "url" => *url = Some(unquote(value.trim())),
                _ => {}
            }
        }
        let pairs = sections.into_values().filter_map(|[path, url]| {
            let path = path?.trim_end_matches('/').as_bytes().to_vec();
            Some((path, url?))
        });
        Self(pairs.collect())
    }

    /// The URLs of all submodules, as they are written.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    /// The URL of the submodule at `path`, as it is written.
    pub(crate) fn url(&self, path: &[u8]) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }
}

/// Logical lines: one that ends in a backslash continues in the next.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for line in text.lines() {
        let last = lines.last_mut().expect("there is always one");
        match line.strip_suffix('\\') {
            Some(start) => last.push_str(start),
            None => {
                last.push_str(line);
                lines.push(String::new());
            }
        }
    }
    lines
}

/// The name in `submodule "name"]`.
fn submodule_name(header: &str) -> Option<String> {
    let (section, rest) = header.split_once('"')?;
    if !section.trim().eq_ignore_ascii_case("submodule") {
        return None;
    }
    let end = rest.rfind('"')?;
    Some(rest[..end].replace("\\\"", "\"").replace("\\\\", "\\"))
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

#[cfg(test)]
mod tests {
    use super::*;

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
            [submodule "three"]
                path = three
        "#;
        let submodules = Submodules::parse(file.as_bytes());
        assert_eq!(submodules.url(b"libs/one"), Some("../one.git"));
        assert_eq!(submodules.url(b"libs/a b"), Some("https://h/ab"));
        assert_eq!(submodules.url(b"elsewhere"), None);
        assert_eq!(submodules.url(b"three"), None);
    }
}
