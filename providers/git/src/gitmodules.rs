//! `.gitmodules`: the repository of the submodule at a path.
//!
//! mu reads it with its own small parser of Git's configuration format (`config_text`).

use std::collections::BTreeMap;

use crate::config_text::{Setting, settings};

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
