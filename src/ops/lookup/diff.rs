//! `diff`: what changed between two versions of a package, to read before an update. The versions are fetched into the store,
//! and nothing is installed.
//!
//! The two trees in the store are compared file by file. Files that nobody can read as text, or that are very long, are only
//! named.
//!
//! Two texts are compared line by line, as a unified diff prints them. The algorithm is Git's histogram diff, from `imara-diff`,
//! whose time has a limit even for texts that were made to be slow.
//!
//! What the authors say has changed is what the changelog says that it did not say before, or else the titles of the commits in
//! between. Changelogs have no form that all keep to, so what is new in one is found by comparison, whatever its headings are.
//! All of it is foreign text. Nothing fails where nobody can tell.

use std::fmt::Write as _;

use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};
use mu_provider::{Entry, MOST_LOGGED, Mode, is_changelog};
use schemars::JsonSchema;
use serde::Serialize;

use crate::formats::manifest_names;
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::source::Document;
use crate::manifest::{JSON_NAME, YAML_NAME};
use crate::ops::apply::fetch::bring_locked;
use crate::ops::apply::patched::content;
use crate::ops::lookup::chosen::{fetched, published};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Outcome, Session, Warning};
use crate::reference::{PackageId, Version};
use crate::store::Stored;

/// One of the two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Side {
    /// The package.
    pub id: PackageId,
    /// Its version.
    pub version: String,
    /// Its commit (Git).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The digest of its content.
    pub digest: String,
}

/// A package in two versions, and how they differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// The version before; `null` if the package is new.
    pub from: Option<Side>,
    /// The version after; `null` if the package is no longer used.
    pub to: Option<Side>,
    /// The keys of the manifest whose values differ, in the order of the alphabet.
    pub manifest: Vec<String>,
    /// The files that differ: the manifest first, then by path.
    pub files: Vec<FileChange>,
}

/// A version whose content is in the store.
struct Fetched {
    side: Side,
    stored: Stored,
}

/// Compares the version that `from` names with the one that `to` names: `PKG#VERSION`, or only `#VERSION` for the same package.
/// Without `to`, compares the locked version with the one that `from` names, which is the newest if it names none, or the tip of the
/// branch that is locked.
pub fn diff(session: &Session, from: &str, to: Option<&str>) -> Result<Difference, CommandError> {
    let _store = session.use_store()?;
    let (from, to) = match to {
        Some(to) => {
            let package = from.split('#').next().unwrap_or_default();
            let to = if to.starts_with('#') { format!("{package}{to}") } else { to.to_owned() };
            (of_registry(session, from)?, of_registry(session, &to)?)
        }
        None => {
            // The newer one first, because it says which package is meant; the lock then has the older one.
            let to = of_registry(session, &followed(session, from)?)?;
            (of_lock(session, &to.side.id, from)?, to)
        }
    };
    session.save_index();
    compare(Some(&from), Some(&to))
}

/// A reference, with the branch that is locked for its package, if it names no version.
fn followed(session: &Session, text: &str) -> Result<String, CommandError> {
    if text.contains('#') {
        return Ok(text.to_owned());
    }
    let id = published(session, text)?.id;
    let lock = session.lockfile()?.unwrap_or_default();
    let package = lock.find(lock.used_for(&id)).last().filter(|package| package.commit.is_some());
    // A branch goes on, and its tip is what an update would bring. A tag stays what it is.
    let is_tag = |name: &&str| Version::parse_lenient(name.trim_start_matches('v')).is_ok();
    let branch = package.and_then(|package| package.reference.as_deref());
    let branch = branch.filter(|name| !is_tag(name));
    Ok(branch.map_or_else(|| text.to_owned(), |branch| format!("{text}#{branch}")))
}

/// How the packages differ that a run moves from the lock `before` to what it has chosen.
pub fn of_moves(
    session: &Session,
    before: &Lockfile,
    outcome: &Outcome,
) -> Result<Vec<Difference>, CommandError> {
    let _store = session.use_store()?;
    let is_fetched = |package: &&LockedPackage| {
        !package.source.is_workspace_folder() && !package.source.is_placed_pack()
    };
    let mut all = Vec::new();
    for change in &outcome.changes {
        // `majors: many` can have several versions; the change that names the version names the entry.
        let one = |lock: &Lockfile, version: &Option<String>| {
            let version = version.as_deref()?.split(' ').next()?;
            let mut found = lock.find(&change.id).filter(|one| one.version == version);
            found.next().filter(is_fetched).map(|package| locked(session, package))
        };
        let from = one(before, &change.from).transpose()?;
        let to = one(&outcome.lock, &change.to).transpose()?;
        if from.is_some() || to.is_some() {
            all.push(compare(from.as_ref(), to.as_ref())?);
        }
    }
    Ok(all)
}

/// The version that a reference names in its registry.
fn of_registry(session: &Session, text: &str) -> Result<Fetched, CommandError> {
    let (id, release, stored) = fetched(session, text)?;
    let commit = release.revision().map(str::to_owned);
    let digest = stored.digest.to_string();
    // As the lock has a commit whose manifest says no version.
    let version = match release.version.as_str() {
        "" => LockedPackage::NO_VERSION.to_owned(),
        version => version.to_owned(),
    };
    Ok(Fetched { side: Side { id, version, commit, digest }, stored })
}

/// The locked version of a package.
fn of_lock(session: &Session, id: &PackageId, text: &str) -> Result<Fetched, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let message = match lock.find(lock.used_for(id)).last() {
        Some(package)
            if !package.source.is_workspace_folder() && !package.source.is_placed_pack() =>
        {
            return locked(session, package);
        }
        Some(_) => format!(
            "`{id}` is used from a folder of the workspace, so there is no fetched version to compare with"
        ),
        None => format!("`{id}` is not in Mu.lock, so there is no version to compare with"),
    };
    let hint = format!("name both versions: `mu diff {} '#VERSION'`", quoted_for_shell(text));
    Err(CommandError::new(Code::NotFound, message).hint(hint))
}

fn locked(session: &Session, package: &LockedPackage) -> Result<Fetched, CommandError> {
    let stored = bring_locked(session, package)?;
    let LockedPackage { id, version, commit, .. } = package.clone();
    let (commit, digest) = (commit.map(|commit| commit.to_string()), stored.digest.to_string());
    Ok(Fetched { side: Side { id, version, commit, digest }, stored })
}

fn compare(from: Option<&Fetched>, to: Option<&Fetched>) -> Result<Difference, CommandError> {
    let (manifest, files) = match (from, to) {
        (Some(Fetched { stored: before, .. }), Some(Fetched { stored: after, .. })) => {
            (changed_keys(before, after), compare_trees(before, after)?)
        }
        // Nobody reads a whole package line by line as a change.
        _ => (Vec::new(), Vec::new()),
    };
    let [from, to] = [from, to].map(|side| side.map(|side| side.side.clone()));
    Ok(Difference { from, to, manifest, files })
}

/// The keys of the manifest whose text differs. A manifest that cannot be read has none.
fn changed_keys(before: &Stored, after: &Stored) -> Vec<String> {
    let [before, after] = [before, after].map(keys);
    let mut changed: Vec<String> = before
        .iter()
        .filter(|pair| !after.contains(pair))
        .chain(after.iter().filter(|pair| !before.contains(pair)))
        .map(|(key, _)| key.clone())
        .collect();
    changed.sort();
    changed.dedup();
    changed
}

/// The keys of a tree's manifest, with their values as they are written.
fn keys(stored: &Stored) -> Vec<(String, String)> {
    let read = |name: &str| {
        let path = stored.folder.join(name);
        let text = crate::fs::read_text_if_there(&path).ok()??;
        let document = Document::read(&path, &text).ok()?;
        let words = |value: &str| value.split_whitespace().collect::<Vec<_>>().join(" ");
        let entries = document.root_value().entries().ok()?;
        let pairs =
            entries.map(|(key, value)| (key.as_str().to_owned(), words(&text[value.span()])));
        Some(pairs.collect())
    };
    [YAML_NAME, JSON_NAME].iter().find_map(|name| read(name)).unwrap_or_default()
}

/// Longer files are not compared line by line.
const MOST_BYTES: u64 = 1 << 20;

/// How many bytes of a file are searched for a zero, which no text has. Git does the same.
const BINARY_WITHIN: usize = 8000;

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// Its content or mode differs.
    Changed,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// Its path in the package.
    pub path: String,
    /// What happened to it.
    pub kind: Kind,
    /// Its mode before, as Git writes it: `100644`, `100755` (executable), `120000` (a link, whose content is its target).
    pub from_mode: Option<&'static str>,
    /// Its mode after.
    pub to_mode: Option<&'static str>,
    /// Its bytes before.
    pub from_size: Option<u64>,
    /// Its bytes after.
    pub to_size: Option<u64>,
    /// What its content is.
    pub content: Content,
    /// The number of new lines, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// The number of lines that are gone, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
    /// The hunks of a unified diff, with three lines of context, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunks: Option<String>,
}

/// The content of a file that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// It is the same: only the mode differs.
    Same,
    /// It is text.
    Text,
    /// It is not text.
    Binary,
    /// It is too long to be compared line by line.
    Long,
}

/// The files that differ: manifests first, then by path.
fn compare_trees(before: &Stored, after: &Stored) -> Result<Vec<FileChange>, CommandError> {
    let (mut old, mut new) = (before.tree.entries(), after.tree.entries());
    let mut changes = Vec::new();
    // Both lists are sorted by path and walked side by side: the lower of their first paths comes next, from one of
    // them or from both. Ends, because each round takes at least one entry.
    while let Some(path) = old.first().into_iter().chain(new.first()).map(|one| &one.path).min() {
        let (was, is) = (take(&mut old, path), take(&mut new, path));
        let is_same =
            was.zip(is).is_some_and(|(was, is)| was.sha256 == is.sha256 && was.mode == is.mode);
        if !is_same {
            changes.push(change(was.map(|was| (before, was)), is.map(|is| (after, is)))?);
        }
    }
    // The sort keeps the order of the others.
    changes.sort_by_key(|change| !manifest_names().any(|name| name == change.path));
    Ok(changes)
}

/// Takes the entry with this path, if it is the first.
fn take<'tree>(entries: &mut &'tree [Entry], path: &str) -> Option<&'tree Entry> {
    let (first, rest) = entries.split_first().filter(|(first, _)| first.path == path)?;
    *entries = rest;
    Some(first)
}

fn change(
    was: Option<(&Stored, &Entry)>,
    is: Option<(&Stored, &Entry)>,
) -> Result<FileChange, CommandError> {
    let [old, new] = [was, is].map(|side| side.map(|(_, entry)| entry));
    let either = new.or(old).expect("one of them is there");
    let kind = match (old, new) {
        (None, _) => Kind::Added,
        (_, None) => Kind::Removed,
        _ => Kind::Changed,
    };
    let sides = [old, new];
    let is_same = old.zip(new).is_some_and(|(old, new)| old.sha256 == new.sha256);
    let (content, compared) = if is_same {
        (Content::Same, None)
    // Sizes and digests are in the trees, so files are read only if they are compared line by line.
    } else if sides.iter().flatten().any(|entry| entry.size > MOST_BYTES) {
        (Content::Long, None)
    } else {
        let (before, after) = (read(was)?, read(is)?);
        match is_binary(&before) || is_binary(&after) {
            true => (Content::Binary, None),
            false => (Content::Text, Some(compare_lines(&before, &after))),
        }
    };
    let [from_mode, to_mode] = sides.map(|side| side.map(|entry| mode(entry.mode)));
    let [from_size, to_size] = sides.map(|side| side.map(|entry| entry.size));
    Ok(FileChange {
        path: either.path.clone(),
        kind,
        from_mode,
        to_mode,
        from_size,
        to_size,
        content,
        added: compared.as_ref().map(|compared| compared.added),
        removed: compared.as_ref().map(|compared| compared.removed),
        hunks: compared.map(|compared| compared.hunks),
    })
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(BINARY_WITHIN).any(|byte| *byte == 0)
}

/// The content of a file, or the target of a link.
fn read(side: Option<(&Stored, &Entry)>) -> Result<Vec<u8>, CommandError> {
    let Some((stored, entry)) = side else { return Ok(Vec::new()) };
    Ok(content(&stored.folder.join(&entry.path), entry.mode)?)
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::File => "100644",
        Mode::Executable => "100755",
        Mode::Symlink => "120000",
    }
}

/// How many unchanged lines are shown around a change.
const CONTEXT: u32 = 3;

/// How two texts differ.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Compared {
    /// The number of new lines.
    added: usize,
    /// The number of lines that are gone.
    removed: usize,
    /// The hunks of a unified diff.
    hunks: String,
}

/// Compares two texts. Bytes that are not UTF-8 are replaced.
fn compare_lines(before: &[u8], after: &[u8]) -> Compared {
    let input = InternedInput::new(byte_lines(before), byte_lines(after));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let changes: Vec<Hunk> = diff.hunks().collect();
    let mut hunks = String::new();
    let mut rest = changes.as_slice();
    while !rest.is_empty() {
        // Changes whose context touches are one hunk.
        let is_apart = |pair: &[Hunk]| pair[1].before.start - pair[0].before.end > 2 * CONTEXT;
        let end = rest.windows(2).position(is_apart).map_or(rest.len(), |last| last + 1);
        let (together, others) = rest.split_at(end);
        print(&input, together, &mut hunks);
        rest = others;
    }
    let (added, removed) = (diff.count_additions(), diff.count_removals());
    Compared { added: added as usize, removed: removed as usize, hunks }
}

/// Prints changes with the lines around them.
fn print(input: &InternedInput<&[u8]>, changes: &[Hunk], text: &mut String) {
    let [first, last] = [changes.first(), changes.last()].map(|one| one.expect("is not empty"));
    let above = first.before.start.min(CONTEXT);
    let length = u32::try_from(input.before.len()).expect("a file is not that long");
    let below = (length - last.before.end).min(CONTEXT);
    let (start, end) = (first.before.start - above, last.before.end + below);
    let new_start = first.after.start - above;
    let range = |start: u32, lines: u32| match lines {
        // An empty range names the line before it.
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        lines => format!("{},{lines}", start + 1),
    };
    let old = range(start, end - start);
    let new = range(new_start, last.after.end + below - new_start);
    writeln!(text, "@@ -{old} +{new} @@").expect("a string takes everything");
    let mut at = start;
    for change in changes {
        lines(input, &input.before[at as usize..change.before.start as usize], ' ', text);
        let range = |range: &std::ops::Range<u32>| range.start as usize..range.end as usize;
        lines(input, &input.before[range(&change.before)], '-', text);
        lines(input, &input.after[range(&change.after)], '+', text);
        at = change.before.end;
    }
    lines(input, &input.before[at as usize..end as usize], ' ', text);
}

fn lines(input: &InternedInput<&[u8]>, tokens: &[Token], sign: char, text: &mut String) {
    for token in tokens {
        let line = String::from_utf8_lossy(input.interner[*token]);
        text.push(sign);
        text.push_str(&line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// What has changed from one version of a package to another one, as its authors say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changelog {
    /// The package.
    pub id: PackageId,
    /// The version before.
    pub from: String,
    /// The version after.
    pub to: String,
    /// The file of the package that says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What that file says more than before.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Without such a file, the commits of its whole repository in between, the newest first: 200 at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<CommitTitle>,
}

/// A commit between two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommitTitle {
    /// Its name.
    pub commit: String,
    /// The first line of its message.
    pub title: String,
}

impl Changelog {
    /// Whether nobody says anything.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.commits.is_empty()
    }

    /// Whether there may be more commits than those in the list.
    pub fn is_cut(&self) -> bool {
        self.commits.len() == MOST_LOGGED
    }
}

/// What the authors of a package say about a difference; `None` if the package is new, or no longer used.
pub fn changelog(session: &Session, difference: &Difference) -> Option<Changelog> {
    let (from, to) = (difference.from.as_ref()?, difference.to.as_ref()?);
    // A file that only lost lines, or was only renamed, says nothing new. Then the commits may.
    let texts = difference.files.iter().filter(|file| is_changelog(&file.path));
    let mut told =
        texts.filter_map(|file| Some((file.path.clone(), added(file.hunks.as_deref()?))));
    let (file, text) = told.find(|(_, text)| !text.is_empty()).unzip();
    let commits = if file.is_some() { Vec::new() } else { commits(session, from, to) };
    Some(Changelog {
        id: to.id.clone(),
        from: from.version.clone(),
        to: to.version.clone(),
        file,
        text: text.unwrap_or_default(),
        commits,
    })
}

/// What the authors of a locked package say has changed up to the version `newest`, as `mu outdated` calls it.
pub fn up_to(
    session: &Session,
    id: &PackageId,
    newest: &str,
) -> Result<Option<Changelog>, CommandError> {
    // The id alone does not lead to what is in a folder of this machine.
    let written = session.index().written(id).unwrap_or_else(|| id.to_string());
    let package = written.split('#').next().unwrap_or_default();
    // A branch, or an archive by URL, has no version that names what is newest.
    let to = match Version::parse(newest) {
        Ok(_) => format!("{package}#{newest}"),
        Err(_) => package.to_owned(),
    };
    Ok(changelog(session, &diff(session, &to, None)?))
}

/// The lines that are new in the hunks of a unified diff.
fn added(hunks: &str) -> String {
    let lines: Vec<&str> = hunks.lines().filter_map(|line| line.strip_prefix('+')).collect();
    lines.join("\n").trim().to_owned()
}

/// The commits between two versions of a package in a repository; none where they are not known.
fn commits(session: &Session, from: &Side, to: &Side) -> Vec<CommitTitle> {
    let (Some(before), Some(after)) = (&from.commit, &to.commit) else { return Vec::new() };
    // What was moved to another repository has no history in common.
    if from.id != to.id || before == after {
        return Vec::new();
    }
    // Both versions were fetched a moment ago, so the route is known, and no request is made for it.
    let Ok(route) = session.index().route(&to.id) else { return Vec::new() };
    let progress = crate::ops::session::events::Work::begin(&session.events, to.id.as_str());
    match route.provider.log(&route.location, before, after, &progress) {
        Ok(found) => {
            let found = found.into_iter().flatten();
            found
                .map(|one| CommitTitle { commit: one.commit.to_string(), title: one.title })
                .collect()
        }
        Err(error) => {
            let (id, why) = (to.id.clone(), error.to_string());
            session.events.warning(&Warning::CommitsUnknown { id, why });
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(changes: &[(usize, &str)]) -> String {
        let line = |number: usize| {
            let changed = changes.iter().find(|(at, _)| *at == number);
            changed.map_or_else(|| format!("{number}\n"), |(_, text)| (*text).to_owned())
        };
        (1..=20).map(line).collect()
    }

    #[test]
    fn prints_hunks_as_diff_does() {
        let before = numbers(&[]);
        let after = numbers(&[(2, "two\n"), (8, "8\nnew\n"), (20, "20")]);
        let compared = compare_lines(before.as_bytes(), after.as_bytes());
        let hunks = "@@ -1,11 +1,12 @@\n 1\n-2\n+two\n 3\n 4\n 5\n 6\n 7\n 8\n+new\n 9\n 10\n 11\n\
            @@ -17,4 +18,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n";
        assert_eq!(compared, Compared { added: 3, removed: 2, hunks: hunks.to_owned() });
        assert_eq!(compare_lines(b"", b"a\n").hunks, "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(compare_lines(b"a\nb\n", b"").hunks, "@@ -1,2 +0,0 @@\n-a\n-b\n");
        assert_eq!(compare_lines(b"a\n", b"a\n").hunks, "");
    }

    #[test]
    fn what_is_new_in_a_file_is_what_it_has_more() {
        let hunks = "@@ -1,3 +1,6 @@\n # Changes\n+\n+## 1.1.0\n+- more\n \n-## 1.0\n+## 1.0.0\n\\ No newline at end of file\n";
        assert_eq!(added(hunks), "## 1.1.0\n- more\n## 1.0.0");
    }
}
