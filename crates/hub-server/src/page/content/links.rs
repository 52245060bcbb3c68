//! Where the relative links of a text in a package lead: to the package's other files, or else to its
//! repository.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::highlight;
use super::markdown::PREFIX;

/// Characters that must be escaped in the path of a URL.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'[')
    .add(b']')
    .add(b'\\')
    .add(b'^')
    .add(b'|')
    .add(b'\'')
    .add(b'&');

/// The targets for the links of one text.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The prefix of the page of a file of the package, on the page that shows the text.
    pub(super) files: String,
    /// The folder of the text in the package, with a slash at the end; empty at its root.
    pub(super) folder: String,
    /// The package's files.
    pub(super) paths: BTreeSet<String>,
    /// The prefix of the web page of a file in the repository, if it has web pages.
    pub(super) repository: Option<String>,
}

impl Links {
    /// The target of a relative URL; `None` if it is not known.
    pub(super) fn resolve(&self, url: &str) -> Option<String> {
        if let Some(id) = url.strip_prefix('#') {
            return Some(format!("#{PREFIX}{}", escaped(id)));
        }
        let (place, id) = url.split_once('#').map_or((url, None), |(place, id)| (place, Some(id)));
        let path = self.path(place)?;
        let mut found = match self.paths.contains(&path) {
            true => format!("{}{}", self.files, escaped(&path)),
            false => format!("{}{}", self.repository.as_deref()?, escaped(&path)),
        };
        if let Some(id) = id {
            let is_shown = self.paths.contains(&path) && highlight::is_markdown(&path);
            found.push('#');
            found.push_str(if is_shown { PREFIX } else { "" });
            found.push_str(&escaped(id));
        }
        Some(found)
    }

    /// The picture of the package that a relative URL leads to.
    pub(super) fn picture(&self, url: &str) -> Option<String> {
        let path = self.path(url)?;
        (self.paths.contains(&path) && highlight::picture(&path).is_some()).then_some(path)
    }

    /// The path in the package that a relative URL means; `None` if it leads out of the package.
    fn path(&self, url: &str) -> Option<String> {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let path = percent_decode_str(path).decode_utf8().ok()?;
        let is_other = path.contains(['\\', ':']) || path.starts_with("//");
        if path.is_empty() || is_other || path.chars().any(char::is_control) {
            return None;
        }
        // As on GitHub, a leading slash means the root.
        let (folder, rest) = match path.strip_prefix('/') {
            Some(rest) => ("", rest),
            None => (self.folder.as_str(), &*path),
        };
        let mut segments: Vec<&str> = Vec::new();
        for segment in folder.split('/').chain(rest.split('/')) {
            match segment {
                "" | "." => {}
                ".." => drop(segments.pop()?),
                other => segments.push(other),
            }
        }
        (!segments.is_empty()).then(|| segments.join("/"))
    }
}

/// A path as a part of a URL.
pub(in crate::page) fn escaped(path: &str) -> String {
    utf8_percent_encode(path, ESCAPED).to_string()
}

/// The prefix of the web pages of files in a repository; `None` if it is not on a known host.
///
/// `repository` is `URL[#FOLDER]`, and `commit` the commit that the package was made from.
pub(in crate::page) fn repository_files(repository: &str, commit: Option<&str>) -> Option<String> {
    let (place, folder) = repository.split_once('#').unwrap_or((repository, ""));
    let place = place.strip_prefix("git+").unwrap_or(place);
    let url = url::Url::parse(place).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let is_commit = |commit: &&str| {
        matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let commit = commit.filter(is_commit);
    let at = commit.unwrap_or("HEAD");
    let middle = match url.host_str()? {
        "github.com" => format!("blob/{at}"),
        "gitlab.com" => format!("-/blob/{at}"),
        "bitbucket.org" => format!("src/{at}"),
        "codeberg.org" => format!("src/commit/{}", commit?),
        _ => return None,
    };
    let path = url.path().trim_matches('/').trim_end_matches(".git");
    let is_repository = path.split('/').filter(|segment| !segment.is_empty()).count() >= 2;
    let folder = folder.trim_matches('/');
    let is_inside = !folder.split('/').any(|segment| segment == "..");
    if !is_repository || !is_inside {
        return None;
    }
    let folder = if folder.is_empty() { String::new() } else { format!("{}/", escaped(folder)) };
    Some(format!("https://{}/{path}/{middle}/{folder}", url.host_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_files_of_the_package_then_to_the_repository() {
        let paths = ["README.md", "docs/a b.md", "docs/flow.png", "x.md"];
        let mut links = Links {
            files: "proxy@1.0.0/".to_owned(),
            folder: "docs/".to_owned(),
            paths: paths.into_iter().map(str::to_owned).collect(),
            repository: None,
        };
        for (url, expected) in [
            ("a%20b.md", Some("proxy@1.0.0/docs/a%20b.md")),
            ("./flow.png?raw=true", Some("proxy@1.0.0/docs/flow.png")),
            ("../x.md#how-to", Some("proxy@1.0.0/x.md#readme-how-to")),
            ("/x.md", Some("proxy@1.0.0/x.md")),
            ("#a\"b", Some("#readme-a%22b")),
            ("missing.md", None),
            ("../../x.md", None),
            ("//evil.example/x.md", None),
            ("\\\\evil.example", None),
            ("https://evil.example/", None),
            ("", None),
            ("..", None),
        ] {
            assert_eq!(links.resolve(url).as_deref(), expected, "{url}");
        }
        assert_eq!(links.picture("flow.png").as_deref(), Some("docs/flow.png"));
        assert_eq!((links.picture("a%20b.md"), links.picture("gone.png")), (None, None));
        links.repository = Some("https://github.com/a/b/blob/HEAD/".to_owned());
        assert_eq!(
            links.resolve("missing.rs#L3").as_deref(),
            Some("https://github.com/a/b/blob/HEAD/docs/missing.rs#L3")
        );
        assert_eq!(links.resolve("../../x.md"), None);
    }

    #[test]
    fn files_of_repositories_are_where_their_hosts_show_them() {
        const COMMIT: &str = "1895753f53a63c055e7cae81ebe4ea5d5805584f";
        for (repository, commit, expected) in [
            ("https://github.com/a/b", None, Some("https://github.com/a/b/blob/HEAD/")),
            (
                "git+https://github.com/a/b.git#deploy/x",
                Some(COMMIT),
                Some(
                    "https://github.com/a/b/blob/1895753f53a63c055e7cae81ebe4ea5d5805584f/deploy/x/",
                ),
            ),
            ("https://gitlab.com/a/b/c", None, Some("https://gitlab.com/a/b/c/-/blob/HEAD/")),
            ("https://codeberg.org/a/b", None, None),
            ("https://git.acme.co/a/b", None, None),
            ("https://github.com/a", None, None),
            ("https://github.com/a/b#../..", None, None),
            ("https://github.com/a/b", Some("../../x"), Some("https://github.com/a/b/blob/HEAD/")),
            ("javascript:alert(1)", None, None),
        ] {
            let found = repository_files(repository, commit);
            assert_eq!(found.as_deref(), expected, "{repository}");
        }
    }
}
