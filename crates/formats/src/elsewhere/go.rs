//! `go.mod`: a list of repositories at the versions in use. Teams also keep one for what is no Go at all, such as schemas and
//! configuration.
//!
//! Only the modules that the file itself needs are read, not those that only other modules need (`// indirect`). A module of a host
//! whose addresses say the repository is one of mu; of others only a proxy knows where they are.

use super::{InUse, KNOWN_HOSTS, List, ListedDependency, Meaning};

/// The file.
pub const GO_FILE: &str = "go.mod";

/// The modules that `text`, that of `go.mod`, needs.
pub fn list(text: &str) -> List {
    let lines: Vec<Line<'_>> = lines(text).collect();
    let replaced =
        lines.iter().filter(|line| line.directive == "replace").filter_map(Replaced::read);
    let replaced: Vec<Replaced<'_>> = replaced.collect();
    let needed = lines.iter().filter(|line| line.directive == "require");
    let dependencies = needed.map(|line| {
        let [path, version] = [0, 1].map(|at| line.words.get(at).copied().unwrap_or_default());
        let instead = replaced.iter().find(|one| one.stands_for(path, version));
        let meaning = match instead {
            _ if line.is_indirect => Err("only other modules need it".to_owned()),
            Some(Replaced { by: [folder], .. }) => {
                Err(format!("`{folder}` takes its place, which is a folder of this machine"))
            }
            Some(Replaced { by: [path, version], .. }) => meaning(path, version),
            _ => meaning(path, version),
        };
        ListedDependency { called: path.to_owned(), line: line.number, meaning }
    });
    List { dependencies: dependencies.collect(), unknown: Vec::new() }
}

/// A line with what it says, alone or in a block.
struct Line<'t> {
    number: usize,
    directive: &'t str,
    words: Vec<&'t str>,
    is_indirect: bool,
}

/// The lines that say something, each with the directive of its block.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut block = None;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let (said, comment) = line.split_once("//").unwrap_or((line, ""));
        let mut words: Vec<&str> =
            said.split_whitespace().map(|word| word.trim_matches(['"', '`'])).collect();
        match words.as_slice() {
            [] => return None,
            [")"] => {
                block = None;
                return None;
            }
            [directive, "("] => {
                block = Some(*directive);
                return None;
            }
            _ => {}
        }
        let directive = block.unwrap_or_else(|| words.remove(0));
        let is_indirect = comment.trim_start().starts_with("indirect");
        Some(Line { number: at + 1, directive, words, is_indirect })
    })
}

/// A module that another one takes the place of: `PATH [VERSION] => PATH [VERSION]`.
struct Replaced<'t> {
    path: &'t str,
    version: Option<&'t str>,
    by: &'t [&'t str],
}

impl<'t> Replaced<'t> {
    fn read(line: &'t Line<'t>) -> Option<Self> {
        let mut sides = line.words.split(|word| *word == "=>");
        let (of, by) = (sides.next()?, sides.next()?);
        Some(Self { path: of.first()?, version: of.get(1).copied(), by })
    }

    fn stands_for(&self, path: &str, version: &str) -> bool {
        self.path == path && self.version.is_none_or(|own| own == version)
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
