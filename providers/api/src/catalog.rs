//! Catalogs: one line for each package of a registry, for searching.
//!
//! Static hubs store a catalog as a file; servers search theirs. Both rank with [`Query`], so they give the
//! same answer. The index has the versions, not the catalog. What else a registry says of itself is here, too: what has changed in it, and
//! whose a token is.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};
use std::io::{self, BufRead};

use memchr::memchr;
use memchr::memmem::{self, Finder};
use serde::{Deserialize, Serialize};

use crate::release::Yanked;

/// One package, as a catalog has it. Keys that are empty are left out, unknown ones ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CatalogLine {
    /// The package's name in its registry.
    pub name: String,
    /// Its newest release: one that is neither withdrawn nor a prerelease, if there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub latest: String,
    /// What it is, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// The version of the software in its newest release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// The package that took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// Capabilities that its newest release provides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
    /// Whether its newest release was withdrawn, as all its releases were, and why.
    #[serde(skip_serializing_if = "Yanked::is_no")]
    pub yanked: Yanked,
    /// Whether its authors no longer maintain its newest release, and why.
    #[serde(skip_serializing_if = "Yanked::is_no")]
    pub deprecated: Yanked,
}

/// What `GET api/v1/search?q=` answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchAnswer {
    /// The packages, best first.
    pub packages: Vec<CatalogLine>,
    /// How many there are. If it is left out, there are as many as are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
}

/// The longest line of a catalog that is read, in bytes; longer ones are skipped. Hubs write shorter lines.
pub const LONGEST_LINE: usize = 64 << 10;

/// How many capabilities a catalog may have.
const MOST_CAPABILITIES: usize = 200_000;

/// Words to find packages by. All must occur in a package's name, keywords, description or app version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    text: String,
    words: Vec<String>,
    limit: usize,
}

/// How well a package answers a query; the least is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// 0 if the name is the query, 1 if its last segment is, 2 otherwise.
    exactness: u8,
    /// Whether another package took its place.
    moved: bool,
    /// How far from its name the words were found, added up.
    distance: u32,
    /// The length of its name.
    length: usize,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hits {
    /// The best, best first.
    pub packages: Vec<CatalogLine>,
    /// The number of all matches, including those that are not listed.
    pub total: usize,
    /// Lines that were skipped: because they are longer than [`LONGEST_LINE`], or have the words and describe no package.
    pub passed_over: usize,
}

impl Query {
    /// Splits words at blanks; the search returns the best `limit` packages.
    pub fn new(text: &str, limit: usize) -> Self {
        let words = text.split_whitespace().map(str::to_lowercase).collect();
        Self { text: text.trim().to_owned(), words, limit }
    }

    /// What was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether this is one of its words, in whatever case.
    pub fn has_word(&self, word: &str) -> bool {
        self.words.contains(&word.to_lowercase())
    }

    /// The largest number of packages to return.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How well a package matches; `None` if it lacks a word.
    pub fn rank(&self, line: &CatalogLine) -> Option<Rank> {
        let name = line.name.to_lowercase();
        let leaf = name.rsplit('/').next().unwrap_or(&name);
        let asked = self.words.join("/");
        let exactness = match () {
            () if asked == name => 0,
            () if asked == leaf => 1,
            () => 2,
        };
        let texts = Texts::new(line, &name);
        let distance = self.words.iter().map(|word| texts.distance(word)).sum::<Option<u32>>()?;
        Some(Rank { exactness, moved: line.moved_to.is_some(), distance, length: name.len() })
    }

    /// Searches a catalog: one JSON object per line. Lines that are too long are skipped and counted, and so are those that may match
    /// and are not such objects.
    ///
    /// # Errors
    ///
    /// When the catalog cannot be read.
    pub fn search(&self, catalog: impl BufRead) -> io::Result<Hits> {
        let mut search = self.begin_search();
        let too_long = each_line(catalog, |line| {
            search.look_at_line(line);
            Ok(())
        })?;
        let hits = search.into_hits();
        Ok(Hits { passed_over: too_long + hits.passed_over, ..hits })
    }

    /// Begins a search of lines that the caller hands over one after another.
    pub fn begin_search(&self) -> Search<'_> {
        let plain = |word: &&String| word.is_ascii() && !word.contains(['"', '\\']);
        Search {
            query: self,
            plain: self.words.iter().filter(plain).map(Finder::new).collect(),
            best: Best { limit: self.limit, heap: BinaryHeap::new(), total: 0 },
            unreadable: 0,
            lower: Vec::new(),
        }
    }
}

/// A search that has looked at some lines of a catalog.
pub struct Search<'query> {
    query: &'query Query,
    /// The words that JSON writes without escapes.
    plain: Vec<Finder<'query>>,
    best: Best,
    unreadable: usize,
    /// Room for a line in lower case.
    lower: Vec<u8>,
}

impl Search<'_> {
    /// Looks at a line: a JSON object.
    pub fn look_at_line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() || !may_match(line, &self.plain, &mut self.lower) {
            return;
        }
        match parsed(line) {
            None => self.unreadable += 1,
            Some(package) => {
                if let Some(rank) = self.query.rank(&package) {
                    self.best.add(rank, package);
                }
            }
        }
    }

    /// What was found. Lines that may match and are no JSON objects were skipped.
    pub fn into_hits(self) -> Hits {
        Hits { passed_over: self.unreadable, ..self.best.into_hits() }
    }
}

/// The capabilities that the packages of a catalog provide. Only these are kept of it.
///
/// # Errors
///
/// When the catalog cannot be read, or has more than 200,000 of them.
pub fn capabilities(catalog: impl BufRead) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    each_line(catalog, |line| {
        let may_provide =
            memmem::find(line, b"provides").is_some() || memchr(b'\\', line).is_some();
        if may_provide && let Some(package) = parsed(line) {
            found.extend(package.provides);
        }
        match found.len() > MOST_CAPABILITIES {
            true => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it has more than {MOST_CAPABILITIES} capabilities"),
            )),
            false => Ok(()),
        }
    })?;
    Ok(found)
}

/// Hands each line of a catalog to `take`; returns how many are too long, and were skipped.
fn each_line(
    mut catalog: impl BufRead,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<usize> {
    let mut line = Vec::new();
    let mut passed_over = 0;
    loop {
        line.clear();
        let most = LONGEST_LINE as u64 + 1;
        if io::Read::take(&mut catalog, most).read_until(b'\n', &mut line)? == 0 {
            return Ok(passed_over);
        }
        if line.len() > LONGEST_LINE && !line.ends_with(b"\n") {
            catalog.skip_until(b'\n')?;
            passed_over += 1;
            continue;
        }
        take(&line)?;
    }
}

/// The package of a line; `None` if the line is none.
fn parsed(line: &[u8]) -> Option<CatalogLine> {
    serde_json::from_str(std::str::from_utf8(line).ok()?).ok()
}

/// Whether a line can contain every word, judged by its bytes. If the parsed line matches, this is always true.
/// `plain` are the words that JSON writes without escapes.
fn may_match(line: &[u8], plain: &[Finder<'_>], lower: &mut Vec<u8>) -> bool {
    if memchr(b'\\', line).is_some() {
        return true;
    }
    lower.clear();
    lower.extend_from_slice(line);
    lower.make_ascii_lowercase();
    plain.iter().all(|word| word.find(lower).is_some())
}

/// The texts of a package that are searched, in lower case.
struct Texts<'name> {
    name: &'name str,
    keywords: Vec<String>,
    description: String,
    app_version: String,
}

impl<'name> Texts<'name> {
    fn new(line: &CatalogLine, name: &'name str) -> Self {
        Self {
            name,
            keywords: line.keywords.iter().map(|keyword| keyword.to_lowercase()).collect(),
            description: line.description.as_deref().unwrap_or_default().to_lowercase(),
            app_version: line.app_version.as_deref().unwrap_or_default().to_lowercase(),
        }
    }

    /// How far from the name a word occurs; `None` if it does not occur.
    fn distance(&self, word: &str) -> Option<u32> {
        let mut segments = self.name.split('/');
        let parts = |text: &str| text.split(['/', '-', '_', '.']).any(|part| part == word);
        let is_word = |text: &str| {
            text.split(|character: char| !character.is_alphanumeric()).any(|part| part == word)
        };
        Some(match () {
            () if segments.any(|segment| segment == word) => 0,
            () if parts(self.name) => 1,
            () if self.name.split('/').any(|segment| segment.starts_with(word)) => 2,
            () if self.keywords.iter().any(|keyword| keyword == word) => 3,
            () if self.name.contains(word) => 4,
            () if is_word(&self.description) => 6,
            () if self.keywords.iter().any(|keyword| keyword.contains(word)) => 7,
            () if self.description.contains(word) => 8,
            () if self.app_version.starts_with(word) => 9,
            () => return None,
        })
    }
}

/// The best so far; the worst of them is on top.
struct Best {
    limit: usize,
    heap: BinaryHeap<Ranked>,
    total: usize,
}

struct Ranked(Rank, CatalogLine);

impl Best {
    fn add(&mut self, rank: Rank, package: CatalogLine) {
        self.total += 1;
        self.heap.push(Ranked(rank, package));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    fn into_hits(self) -> Hits {
        let sorted = self.heap.into_sorted_vec().into_iter();
        let packages = sorted.map(|Ranked(_, package)| package).collect();
        Hits { packages, total: self.total, passed_over: 0 }
    }
}

impl Ranked {
    fn key(&self) -> (Rank, &str) {
        (self.0, &self.1.name)
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Ranked {}

/// How far the log of a registry was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// The number of the last change.
    pub generation: u64,
    /// The SHA-256 of the part of its log file up to that change. A registry that was restored from a backup counts the same numbers
    /// again, for other changes.
    pub log: Option<String>,
}

/// The packages of a registry that may have changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Their names, as the registry has them: they were not checked.
    pub packages: BTreeSet<String>,
    /// Names and versions of which only what vouches for them has changed.
    pub vouched: BTreeSet<(String, String)>,
    /// Whether these are all packages of the registry.
    pub is_whole: bool,
    /// What to ask with the next time; `None` if the registry keeps no log, so that the answer is always a whole one.
    pub position: Option<LogPosition>,
    /// For how many seconds nothing else need be expected, if the registry says so.
    pub max_age: Option<u32>,
}

/// Whose a password or token is, as far as a place says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The user, or the name of the token; empty if it has none.
    pub name: String,
    /// The packages that it is for: those in these namespaces.
    pub namespaces: Vec<String>,
    /// The packages that it reads, if it does not read everything: those in these namespaces.
    pub reads: Option<Vec<String>>,
    /// What it allows.
    pub can: Vec<String>,
    /// When it ends, as RFC 3339 writes it.
    pub expires: Option<String>,
}

impl Account {
    /// That of a user about whom nothing else is known.
    pub fn of_user(name: String) -> Self {
        Self { name, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = concat!(
        "{\"name\":\"ops/kafka-exporter\",\"latest\":\"1.0.0\"}\n",
        "{\"name\":\"acme/kafka\",\"latest\":\"1.0.0\",\"movedTo\":\"ops/kafka\"}\n",
        "not a line\n",
        "{\"name\":\"ops/kafka\",\"latest\":\"2.0.0\",\"description\":\"Streams\",\"appVersion\":\"3.0.0\"}\n",
        "{\"name\":\"web/proxy\",\"description\":\"In front of KAFKA and of everything\"}\n",
        "{\"name\":\"data/streams\",\"keywords\":[\"Kafka\",\"queue\"]}\n",
        "{\"name\":\"kafka\",\"latest\":\"0.1.0\"}\n",
        "{\"name\":\"fr/file\",\"description\":\"\\u00c9tat des files \\u006bafka\"}\n",
        "{\"name\":\"de/strasse\",\"description\":\"Die Stra\u{df}e, ÄRGER\"}",
    );

    fn names(words: &str, limit: usize) -> (Vec<String>, usize) {
        let hits = Query::new(words, limit).search(CATALOG.as_bytes()).expect("is in memory");
        (hits.packages.into_iter().map(|package| package.name).collect(), hits.total)
    }

    #[test]
    fn the_exact_name_comes_first_and_descriptions_last() {
        let expected = [
            "kafka",
            "ops/kafka",
            "acme/kafka",
            "ops/kafka-exporter",
            "data/streams",
            "fr/file",
            "web/proxy",
        ];
        assert_eq!(names("Kafka", 10), (expected.map(str::to_owned).to_vec(), 7));
        assert_eq!(
            names("kafka", 2),
            (expected[..2].iter().map(|name| (*name).to_owned()).collect(), 7)
        );
        assert_eq!(names("ops/kafka", 1).0, ["ops/kafka"]);
        assert_eq!(names("ops kafka", 1).0, ["ops/kafka"]);
    }

    #[test]
    fn lines_that_are_not_text_are_skipped() {
        let catalog = b"{\"name\":\"a/kafka\",\"x\":\"\xff\"}\n{\"name\":\"b/kafka\"}\n";
        let hits = Query::new("kafka", 9).search(&catalog[..]).expect("is in memory");
        let names: Vec<&str> = hits.packages.iter().map(|package| &*package.name).collect();
        assert_eq!((names, hits.total, hits.passed_over), (vec!["b/kafka"], 1, 1));
        // Only what may match is looked at.
        let catalog = b"{\"name\":\"a/kafka\"\n\n<html>\n{\"name\":\"b/kafka\"}\n";
        let hits = Query::new("kafka", 9).search(&catalog[..]).expect("is in memory");
        assert_eq!((hits.total, hits.passed_over), (1, 1));
    }

    #[test]
    fn every_word_must_be_found_somewhere() {
        assert_eq!(names("kafka queue", 9).0, ["data/streams"]);
        assert_eq!(names("kafka 3.0", 9).0, ["ops/kafka"]);
        assert_eq!(names("kafka nonsense", 9), (Vec::new(), 0));
        assert_eq!(names("état", 9).0, ["fr/file"]);
        assert_eq!(names("ärger STRASSE", 9).0, ["de/strasse"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_whole() {
        let long = "a".repeat(LONGEST_LINE);
        // If the rest of a line that is too long were not skipped, it would count as a separate line.
        let catalog = format!("{long}a{{\"name\":\"kafka/hidden\"}}\n{CATALOG}\n{long}\n{long}a");
        let hits = Query::new("kafka", 10).search(catalog.as_bytes()).expect("is in memory");
        assert_eq!((hits.total, hits.passed_over), (7, 2));
    }

    #[test]
    fn no_words_find_everything() {
        assert_eq!(names(" ", 100).1, 8);
    }
}
