//! Reading a lock: the wire types and their conversion.
//!
//! The text that mu writes is read line by line. A YAML parser takes as long for a lock as everything else in a `mu get` that
//! has nothing to do, and it refuses a lock of some thousand packages as too large. Any other layout of the same YAML, from
//! people and merges, goes through the parser, because its errors point into the file. Both take the keys from one declaration:
//! of the lock here, of a package in `entry.rs`.
//!
//! A lock may have both sides of a merge in it: each of them is a lock, and both together are the one to go on from. Git has
//! marked them, or has put the lines of both together where that was no conflict for it, and so left a package in two versions.
//! What one side alone has stays, and so does what both have. Where they differ in the version of a package, there can be only
//! one of the two. Whether it fits is not decided here, but when versions are chosen again, which has to follow.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use schemars::Schema;

use crate::fs;
use crate::lock::entry::WirePackage;
use crate::lock::line::{Ids, read_conflict, read_id};
use crate::lock::{FILE_NAME, FORMAT, LockError, LockedPackage, Lockfile, ReplacedPackage, line};
use crate::manifest::source::{Document, MAX_BYTES, SourceError, conflict, without_conflicts};
use crate::manifest::{in_lines, keys};
use crate::reference::PackageId;

keys! {
    /// A lock as it is written.
    #[derive(Debug, Default, PartialEq)]
    #[schemars(title = "Mu.lock", transform = without_own_keys)]
    pub(super) struct WireLock {
        /// The format.
        "version" version: u32,
        /// The strategy that chose the versions.
        #[schemars(default)]
        "resolution" resolution: String,
        /// The chosen packages, sorted by id.
        #[schemars(default)]
        "packages" packages: Vec<WirePackage>,
        /// References that `mu get` was given without `--save`.
        #[schemars(default)]
        "extra" extra: Vec<String>,
    }
}

/// Nobody writes keys of their own into a lock.
fn without_own_keys(schema: &mut Schema) {
    schema.remove("patternProperties");
}

/// The JSON schema of `Mu.lock`.
pub fn schema() -> serde_json::Value {
    in_lines(schemars::schema_for!(WireLock).to_value())
}

/// Reads the text of the lock at `path`.
pub(super) fn parse(path: &Path, text: &str) -> Result<Lockfile, LockError> {
    let lock = read_entries(path, text)?;
    let package = repeated_entries(&lock)
        .map(|(first, later)| (&later.id, [&*first.version, &*later.version]))
        .next();
    let twice = package.or_else(|| {
        lock.replaced.windows(2).find_map(|two| match two {
            [first, later] if first.id == later.id => {
                Some((&later.id, [first.by.as_str(), later.by.as_str()]))
            }
            _ => None,
        })
    });
    let Some((id, differences)) = twice else { return Ok(lock) };
    let help = if unmarked_sides(&lock).is_some() { TWICE } else { DAMAGED };
    Err(has_twice(path, text, id, differences).help(help).into())
}

/// The neighbours that are of one package, which can be in the lock only once.
fn repeated_entries(lock: &Lockfile) -> impl Iterator<Item = (&LockedPackage, &LockedPackage)> {
    lock.packages.windows(2).filter_map(|two| match two {
        [first, later] if is_twice(first, later) => Some((first, later)),
        _ => None,
    })
}

/// Reads the text of the lock at `path`, whether or not it has a package twice.
fn read_entries(path: &Path, text: &str) -> Result<Lockfile, LockError> {
    let version = format_version(text);
    if let Some(version) = version.filter(|version| *version > FORMAT) {
        return Err(LockError::Newer { path: path.to_owned(), version });
    }
    let wire = match parse_lines(text) {
        Some(wire) => wire,
        None => read_document(path, text)?,
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut ids = Ids::new(folder);
    let mut packages = Vec::with_capacity(wire.packages.len());
    let mut replaced = Vec::new();
    for mut package in wire.packages {
        let id = package.id.clone();
        let by = package.replaced_by.take();
        let mut package =
            package.into_package(&mut ids).map_err(|wrong| damaged(path, text, &wrong, &id))?;
        package.facts.conflicts.iter_mut().for_each(|text| read_conflict(folder, text));
        match by {
            None => packages.push(package),
            Some(by) => {
                let by = read_id(folder, &by).ok_or_else(|| damaged(path, text, &by, &id))?;
                replaced.push(out_of_use(package, by));
            }
        }
    }
    replaced.sort_by(|left, right| left.id.cmp(&right.id));
    let mut doubled = drop_doubled(&mut replaced, |replaced| &replaced.id, PartialEq::eq);
    packages.sort_by(|left, right| (&left.id, &left.version).cmp(&(&right.id, &right.version)));
    doubled.extend(drop_doubled(&mut packages, |package| &package.id, is_same_content));
    let (resolution, extra) = (wire.resolution, wire.extra);
    Ok(Lockfile { resolution, packages, replaced, extra, doubled, is_merge: false })
}

/// Drops each entry that says the same as the one before it, and returns the ids of these.
fn drop_doubled<Entry>(
    entries: &mut Vec<Entry>,
    id: impl Fn(&Entry) -> &PackageId,
    says_same: impl Fn(&Entry, &Entry) -> bool,
) -> Vec<PackageId> {
    let mut doubled = Vec::new();
    entries.dedup_by(|later, first| {
        let is_same = says_same(later, first);
        doubled.extend(is_same.then(|| id(later).clone()));
        is_same
    });
    doubled
}

/// Whether two entries are of the same content from the same place. Who requires it may differ: Git merges two locks line by line,
/// and then has an entry of each side. As versions are chosen again because of that, the requirements are told again, too.
fn is_same_content(one: &LockedPackage, other: &LockedPackage) -> bool {
    (&one.id, &one.version, &one.source) == (&other.id, &other.version, &other.source)
        && (&one.commit, &one.reference) == (&other.commit, &other.reference)
        && (one.digest, one.archive, one.patch) == (other.digest, other.archive, other.patch)
}

/// Whether two entries are of one package, and neither of two majors of it, nor of versions that are meant to stand beside each other.
fn is_twice(one: &LockedPackage, other: &LockedPackage) -> bool {
    let names = |one: &LockedPackage, other: &LockedPackage| one.beside.contains(&other.version);
    let are_beside = names(one, other) && names(other, one);
    one.id == other.id && one.locked_major() == other.locked_major() && !are_beside
}

/// The error of a package with two entries that differ.
fn has_twice(path: &Path, text: &str, id: &PackageId, [one, other]: [&str; 2]) -> SourceError {
    let how = match one == other {
        true => format!("its two entries for {one} differ"),
        false => format!("once as {one}, and once as {other}"),
    };
    let message = format!("`{id}` is in the lock twice: {how}");
    let entry = format!("- id: {id}\n");
    let last = text.rfind(&entry).map_or(0..0, |start| start..start + entry.len() - 1);
    SourceError::new(path, text, last, message)
}

/// The error of an entry with an invalid value.
fn damaged(path: &Path, text: &str, wrong: &str, id: &str) -> SourceError {
    let start = text.find(wrong).unwrap_or(0);
    let message = format!("`{wrong}` in the entry of `{id}` is not valid there");
    SourceError::new(path, text, start..start + wrong.len(), message).help(DAMAGED)
}

/// The entry of a package that `by` replaced. It was locked before if its content is known.
fn out_of_use(mut package: LockedPackage, by: PackageId) -> ReplacedPackage {
    let requested = std::mem::take(&mut package.requested);
    let id = package.id.clone();
    let kept = package.digest.is_some().then(|| Box::new(package));
    ReplacedPackage { id, by, requested, kept }
}

const DAMAGED: &str =
    "the lock was damaged, perhaps by a merge: restore it, or delete it and run `mu get`";

const REFORMATTED: &str =
    "in the layout that mu writes, it may be longer: restore it, and keep formatters away from it";

const TO_MERGE: &str = "run `mu get`, once the manifests are merged: it goes on from the entries of both sides, and \
    writes a lock that fits";

const TWICE: &str = "a merge has left the entries of both sides: run `mu get`, which keeps the higher version that the \
    manifests accept, and writes a lock that fits";

const IN_CONFLICT: &str = "keep either side (`git checkout --ours Mu.lock`, or `--theirs`) and run `mu get`: it \
    adds what the other side's manifests need";

/// Reads any layout of the YAML.
fn read_document(path: &Path, text: &str) -> Result<WireLock, SourceError> {
    let read = || {
        let document = Document::read(path, text)?;
        let table = document.root_value().table(WireLock::KEYS)?;
        let version = table
            .word(WireLock::version)?
            .ok_or_else(|| document.root_value().error("a lock needs its format: `version: 1`"))?;
        let number = version.as_str().parse();
        Ok(WireLock {
            version: number.map_err(|_| version.error("the format is a number"))?,
            resolution: table.string(WireLock::resolution)?.unwrap_or_default(),
            packages: table.list(WireLock::packages, WirePackage::read)?,
            extra: table.strings(WireLock::extra)?,
        })
    };
    read().map_err(|error: SourceError| match conflict(path, text) {
        Some(conflict) => {
            let sides = marked_sides(path, text);
            let can_be_merged = sides.and_then(|sides| merged(sides, &|_| true)).is_some();
            conflict.help(if can_be_merged { TO_MERGE } else { IN_CONFLICT })
        }
        None if text.len() > MAX_BYTES => error.help(REFORMATTED),
        None => error.help(DAMAGED),
    })
}

/// The format that the text states, whatever else it contains.
fn format_version(text: &str) -> Option<u32> {
    let mut lines = text.lines();
    let version = lines.find_map(|line| line.strip_prefix(WireLock::version)?.strip_prefix(':'))?;
    version.trim().parse().ok()
}

/// Reads the layout that mu writes; `None` for any other, which is then right or wrong as YAML.
fn parse_lines(text: &str) -> Option<WireLock> {
    let mut lock = WireLock::default();
    let mut keys: Vec<&str> = Vec::new();
    // Whether the lines before are the list of packages, or its key.
    let mut is_in_packages = false;
    let mut lines = text.lines().peekable();
    while let Some(comment) = lines.next_if(|line| line.starts_with('#')) {
        if comment.contains(line::is_odd) {
            return None;
        }
    }
    for line in lines {
        let (first, field) = (line.strip_prefix("- "), line.strip_prefix("  "));
        if first.is_some() {
            // An empty one takes a hundred times as much memory as its line.
            if lock.packages.last().is_some_and(|package| !package.is_complete()) {
                return None;
            }
            lock.packages.push(WirePackage::default());
        }
        if let Some(field) = first.or(field) {
            lock.packages.last_mut().filter(|_| is_in_packages)?.read_line(field)?;
            continue;
        }
        let (key, value) = line::split(line)?;
        if keys.contains(&key) {
            return None;
        }
        keys.push(key);
        is_in_packages = (key, value) == (WireLock::packages, "");
        match key {
            WireLock::version => lock.version = value.parse().ok()?,
            WireLock::resolution => lock.resolution = line::read_text(value)?,
            WireLock::packages if matches!(value, "" | "[]") => {}
            WireLock::extra => lock.extra = line::read_list(value)?,
            _ => return None,
        }
    }
    let is_whole = lock.version == FORMAT && lock.packages.iter().all(WirePackage::is_complete);
    is_whole.then_some(lock)
}

/// A lock that was put together from both sides of a merge.
#[derive(Debug)]
pub struct Merged {
    /// The entries of both.
    pub lock: Lockfile,
    /// The packages of which they have different versions: each with the version that stays.
    pub settled: Settled,
    /// Whether Git has marked the sides as a conflict.
    pub is_marked: bool,
}

impl Lockfile {
    /// Reads the lock in `folder` if it has both sides of a merge in it, each of them a lock: what either has. Of two versions, the
    /// higher stays that `fits`. `None` if there is nothing to put together, or it contradicts itself.
    pub fn read_merge(
        folder: &Path,
        fits: &dyn Fn(&LockedPackage) -> bool,
    ) -> Result<Option<Merged>, LockError> {
        let path = folder.join(FILE_NAME);
        let text = fs::read_text_if_there(&path)?.unwrap_or_default();
        let Some((sides, is_marked)) = sides(&path, &text) else { return Ok(None) };
        let merged = merged(sides, fits);
        Ok(merged.map(|(lock, settled)| Merged { lock, settled, is_marked }))
    }
}

/// Both sides of the text at `path`, if it has both sides of a merge in it, and each is a lock; and whether Git has marked them.
fn sides(path: &Path, text: &str) -> Option<([Lockfile; 2], bool)> {
    if let Some(sides) = marked_sides(path, text) {
        return Some((sides, true));
    }
    let both = read_entries(path, text).ok()?;
    Some((unmarked_sides(&both)?, false))
}

/// Both sides, as Git has marked them.
fn marked_sides(path: &Path, text: &str) -> Option<[Lockfile; 2]> {
    let [ours, theirs] = without_conflicts(text)?.map(|side| parse(path, &side).ok());
    Some([ours?, theirs?])
}

/// The lock with the lower, and with the higher version of each package that is there in two. `None` if there is none, or one that is
/// there otherwise: that is no merge of two locks.
fn unmarked_sides(both: &Lockfile) -> Option<[Lockfile; 2]> {
    let twice: Vec<_> = repeated_entries(both).collect();
    // Of three versions of one package, the middle one is in two of these pairs.
    let mut neighbours = twice.iter().zip(twice.iter().skip(1));
    let is_of_three = neighbours.any(|((_, middle), (first, _))| middle == first);
    let is_one_version = twice.iter().any(|(first, later)| first.version == later.version);
    if twice.is_empty() || is_of_three || is_one_version {
        return None;
    }
    let mut sides = [both.clone(), both.clone()];
    for (first, later) in twice {
        for (side, other) in sides.iter_mut().zip([later, first]) {
            side.packages.retain(|package| package != other);
        }
    }
    Some(sides)
}

/// Both sides together, and where they differ: there, the higher version stays that `fits`, or else the higher one. `None` if they have
/// one version with different content, of which none can be believed.
fn merged(
    [ours, theirs]: [Lockfile; 2],
    fits: &dyn Fn(&LockedPackage) -> bool,
) -> Option<(Lockfile, Settled)> {
    let (packages, settled) = packages([by_id(ours.packages), by_id(theirs.packages)], fits)?;
    let is_in_use = |one: &ReplacedPackage| packages.iter().any(|package| package.id == one.id);
    let mut replaced: Vec<ReplacedPackage> = ours.replaced;
    replaced.extend(theirs.replaced);
    replaced.retain(|one| !is_in_use(one));
    replaced.sort_by(|one, other| one.id.cmp(&other.id));
    replaced.dedup_by(|one, other| one.id == other.id);
    let mut extra = ours.extra;
    extra.extend(theirs.extra);
    extra.sort();
    extra.dedup();
    let resolution = ours.resolution;
    let lock =
        Lockfile { resolution, packages, replaced, extra, is_merge: true, ..Lockfile::default() };
    Some((lock, settled))
}

type ById = BTreeMap<PackageId, Vec<LockedPackage>>;

type Settled = Vec<(PackageId, String)>;

/// The packages of both sides, and the versions that stay of those of which they have different ones.
fn packages(
    [own, mut left]: [ById; 2],
    fits: &dyn Fn(&LockedPackage) -> bool,
) -> Option<(Vec<LockedPackage>, Settled)> {
    let (mut packages, mut settled) = (Vec::new(), Vec::new());
    for (id, own) in own {
        let Some(other) = left.remove(&id) else {
            packages.extend(own);
            continue;
        };
        match (&own[..], &other[..]) {
            ([one], [two]) if one.version == two.version => {
                if contradicts(one, two) {
                    return None;
                }
                packages.extend(own);
            }
            ([_], [_]) => {
                let mut both: Vec<LockedPackage> = own.into_iter().chain(other).collect();
                both.sort_by_key(|one| (!fits(one), Reverse(one.parsed_version())));
                let chosen = both.swap_remove(0);
                settled.push((id, chosen.version.clone()));
                packages.push(chosen);
            }
            // Several majors, or several aliases: where more are needed, the others are among them.
            _ => packages.extend(if other.len() > own.len() { other } else { own }),
        }
    }
    packages.extend(left.into_values().flatten());
    packages.sort_by(|one, other| (&one.id, &one.version).cmp(&(&other.id, &other.version)));
    Some((packages, settled))
}

fn by_id(packages: Vec<LockedPackage>) -> ById {
    let mut all = ById::new();
    for package in packages {
        all.entry(package.id.clone()).or_default().push(package);
    }
    all
}

/// Whether two entries of one version have different content. A folder's may have changed between the two.
fn contradicts(one: &LockedPackage, other: &LockedPackage) -> bool {
    let is_own = one.source.is_authored_folder() || other.source.is_authored_folder();
    let is_same_place = one.commit == other.commit && one.reference == other.reference;
    let differs = one.digest.zip(other.digest).is_some_and(|(one, other)| one != other);
    !is_own && is_same_place && differs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A lock with each kind of value.
    const LOCK: &str = "\
# Written by mu.
# Commit it.
version: 1
resolution: highest
packages:
- id: hub.mu.com/aws/ec2
  version: 1.2.0
  versioning: composite
  appVersion: \"8\"
  source: git+https://github.com/aws/ec2.git
  folder: \"sub dir/x: y\"
  commit: 1895753f00000000000000000000000000000000
  digest: h1:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU
  requested: [\">=1, <2 by acmecorp/elk\", \"* by hub.mu.com/aws/vpc\"]
  dependencies: [hub.mu.com/aws/vpc]
  conflicts: [hub.mu.com/aws/old, aws/old]
- id: hub.mu.com/aws/vpc
  version: 1.0.0
  source: hub+https://hub.mu.com/
  requested: [\"^1 by hub.mu.com/aws/ec2\"]
extra: [aws/vpc#^2, ./x#y]
";

    /// What is put into a lock: what YAML reads as something else, and what merges leave.
    const PIECES: [&str; 52] = [
        "\"",
        "'",
        "\\",
        ":",
        ": ",
        " ",
        "  ",
        "#",
        " #",
        "[",
        "]",
        "{",
        "}",
        ",",
        ", ",
        "- ",
        "-",
        "\t",
        "\r",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\0",
        "\u{7f}",
        "ä",
        "null",
        "~",
        "true",
        "&a ",
        "*a",
        "!x ",
        "|",
        ">",
        "%",
        "@",
        "`",
        "?",
        "\n",
        "---\n",
        "...\n",
        "x-a: b\n",
        "  x-a: b\n",
        "version: 1\n",
        "packages:\n",
        "packages: []\n",
        "extra: []\n",
        "  requested: []\n",
        "  version: 1.3.0\n",
        "  channel: Null\n",
        "  channel: \"\"\n",
        "# note\n",
        "\n\n",
    ];

    /// One change of a text: its kind, where, and with what.
    type Change = (u8, prop::sample::Index, prop::sample::Index);

    fn changed(mut text: String, (kind, place, with): &Change) -> String {
        let starts: Vec<usize> =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let line = |index: &prop::sample::Index| {
            let start = starts[index.index(starts.len())];
            let end = text[start..].find('\n').map_or(text.len(), |length| start + length + 1);
            start..end
        };
        let at =
            text.char_indices().map(|(at, _)| at).nth(place.index(text.chars().count().max(1)));
        match (kind, at) {
            (0, _) => text.insert_str(line(place).start, PIECES[with.index(PIECES.len())]),
            (1, _) => text.replace_range(line(place), ""),
            (2, _) => {
                let copied = text[line(with)].to_owned();
                text.insert_str(line(place).start, &copied);
            }
            (3, Some(at)) => drop(text.remove(at)),
            (_, Some(at)) => text.insert_str(at, PIECES[with.index(PIECES.len())]),
            (_, None) => {}
        }
        text
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

        #[test]
        fn the_fast_reader_takes_only_what_yaml_reads_the_same(
            changes in prop::collection::vec((0..5u8, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
        ) {
            let text = changes.iter().fold(LOCK.to_owned(), changed);
            if let Some(fast) = parse_lines(&text) {
                let slow = read_document(Path::new("Mu.lock"), &text);
                prop_assert_eq!(Some(fast), slow.ok(), "{}", text);
            }
        }
    }

    #[test]
    fn the_layout_that_mu_writes_needs_no_parser() {
        assert!(parse_lines(LOCK).is_some());
    }

    #[test]
    fn a_key_or_list_twice_is_refused() {
        for (once, twice) in [
            ("  version: 1.2.0\n", "  version: 1.2.0\n  version: 1.3.0\n"),
            ("  version: 1.2.0\n", "  version: 1.2.0\n  version: 1.2.0\n"),
            ("version: 1\n", "version: 1\nversion: 1\n"),
            ("extra: [", "extra: [a/b#^1]\nextra: ["),
            ("packages:\n", "packages: []\npackages:\n"),
            ("packages:\n", "packages: []\n"),
            ("extra: [", "resolution: highest\nextra: ["),
        ] {
            let text = LOCK.replacen(once, twice, 1);
            assert_ne!(text, LOCK);
            let read = parse(Path::new("Mu.lock"), &text);
            assert!(matches!(read, Err(LockError::Source(_))), "{text}: {read:?}");
        }
    }

    #[test]
    fn a_package_is_there_once_or_once_a_major() {
        let vpc = &LOCK[LOCK.find("- id: hub.mu.com/aws/vpc").expect("is there")
            ..LOCK.find("extra:").expect("is there")];
        let with = |other: &str| {
            let text = LOCK.replacen("extra:", &format!("{other}extra:"), 1);
            parse(Path::new("Mu.lock"), &text).map_err(|error| error.to_string())
        };
        let same = with(vpc).expect("the same twice is no contradiction");
        assert_eq!((same.packages.len(), same.doubled.len()), (2, 1));
        assert_eq!(same.print().matches("- id: hub.mu.com/aws/vpc").count(), 1);
        let major = with(&vpc.replace("1.0.0", "2.0.0")).expect("is another major");
        assert_eq!((major.packages.len(), major.doubled.len()), (3, 0));
        let newer = with(&vpc.replace("1.0.0", "1.1.0")).expect_err("is the same major");
        assert!(
            newer.contains(
                "`hub.mu.com/aws/vpc` is in the lock twice: once as 1.0.0, and once as 1.1.0"
            ),
            "{newer}"
        );
        let asked = with(&vpc.replace("^1 by", "~1 by")).expect("is the same content");
        assert_eq!((asked.packages.len(), asked.doubled.len()), (2, 1));
        let changed = vpc.replace("hub+https://hub.mu.com/", "hub+https://other.mu.com/");
        let other = with(&changed).expect_err("is from another place");
        assert!(other.contains("its two entries for 1.0.0 differ"), "{other}");
        let replaced =
            |by: &str| format!("{}  replacedBy: {by}\n", vpc.replace("aws/vpc", "aws/old"));
        let twice = with(&(replaced("hub.mu.com/a/b") + &replaced("hub.mu.com/a/c")))
            .expect_err("contradicts");
        assert!(twice.contains("once as hub.mu.com/a/b, and once as hub.mu.com/a/c"), "{twice}");
    }

    const HEAD: &str = "version: 1\nresolution: highest\npackages:\n";

    fn entry(name: &str, version: &str) -> String {
        format!(
            "- id: hub.mu.com/{name}\n  version: {version}\n  source: hub+https://hub.mu.com/\n"
        )
    }

    fn conflict(before: &str, ours: &str, theirs: &str) -> String {
        format!(
            "{HEAD}{before}<<<<<<< HEAD\n{ours}||||||| base\nx\n=======\n{theirs}>>>>>>> other\n"
        )
    }

    fn check(text: &str, fits: &dyn Fn(&LockedPackage) -> bool, expected: &[&str]) {
        let (sides, _) = sides(Path::new("Mu.lock"), text).expect("both sides are locks");
        let (lock, _) = merged(sides, fits).expect("nothing contradicts");
        let packages = lock.packages.iter();
        let packages: Vec<String> =
            packages.map(|one| format!("{} {}", one.id.name().leaf(), one.version)).collect();
        assert_eq!(packages, expected, "{text}");
        assert!(lock.is_merge);
    }

    #[test]
    fn both_sides_stay() {
        let text = conflict(&entry("a/a", "1.0.0"), &entry("a/b", "1.0.0"), &entry("a/c", "2.0.0"));
        check(&text, &|_| true, &["a 1.0.0", "b 1.0.0", "c 2.0.0"]);
        // A side may have added nothing.
        let text = conflict(&entry("a/a", "1.0.0"), "", &entry("a/c", "2.0.0"));
        check(&text, &|_| true, &["a 1.0.0", "c 2.0.0"]);
    }

    #[test]
    fn of_two_versions_the_higher_stays_that_fits() {
        let text = conflict("", &entry("a/a", "1.10.0"), &entry("a/a", "1.9.0"));
        check(&text, &|_| true, &["a 1.10.0"]);
        check(&text, &|one| one.version == "1.9.0", &["a 1.9.0"]);
        check(&text, &|_| false, &["a 1.10.0"]);
    }

    #[test]
    fn sides_that_git_has_put_together_are_told_apart() {
        let twice = entry("a/a", "1.9.0") + &entry("a/a", "1.10.0") + &entry("a/b", "1.0.0");
        let text = HEAD.to_owned() + &twice;
        check(&text, &|_| true, &["a 1.10.0", "b 1.0.0"]);
        check(&text, &|one| one.version == "1.9.0", &["a 1.9.0", "b 1.0.0"]);
        // Two majors stand beside each other, and three versions of one are no merge of two locks.
        let sides = |text: String| sides(Path::new("Mu.lock"), &(HEAD.to_owned() + &text));
        assert_eq!(sides(entry("a/a", "1.0.0") + &entry("a/a", "2.0.0")), None);
        assert_eq!(sides(twice + &entry("a/a", "1.1.0")), None);
    }

    #[test]
    fn what_cannot_be_put_together_is_left_to_the_user() {
        let lock = |text: &str| sides(Path::new("Mu.lock"), text);
        let with = |digest: char| {
            let digest = digest.to_string().repeat(42) + "A";
            entry("a/a", "1.0.0") + &format!("  digest: h1:{digest}\n")
        };
        let (both, _) = lock(&conflict("", &with('A'), &with('B'))).expect("both are locks");
        assert!(merged(both, &|_| true).is_none());
        assert_eq!(lock(&(HEAD.to_owned() + &entry("a/a", "1.0.0"))), None, "no conflict");
        assert_eq!(lock(&conflict("", "  version: 7\n", &entry("a/a", "1.0.0"))), None);
        assert_eq!(lock(&format!("{HEAD}<<<<<<< HEAD\n=======\n")), None, "it does not end");
    }
}
