//! A lock with both sides of a merge in it: each of them is a lock, and both together are the one to go on from. Git has marked them,
//! or has put the lines of both together where that was no conflict for it, and so left a package in two versions.
//!
//! What one side alone has stays, and so does what both have. Where they differ in the version of a package, there can be only one of
//! the two. Whether it fits is not decided here, but when versions are chosen again, which has to follow.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use crate::fs;
use crate::lock::{FILE_NAME, LockError, LockedPackage, Lockfile, ReplacedPackage, read};
use crate::manifest::source::without_conflicts;
use crate::reference::PackageId;

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
    let both = read::read_entries(path, text).ok()?;
    Some((unmarked_sides(&both)?, false))
}

/// Both sides, as Git has marked them.
pub(super) fn marked_sides(path: &Path, text: &str) -> Option<[Lockfile; 2]> {
    let [ours, theirs] = without_conflicts(text)?.map(|side| read::parse(path, &side).ok());
    Some([ours?, theirs?])
}

/// The lock with the lower, and with the higher version of each package that is there in two. `None` if there is none, or one that is
/// there otherwise: that is no merge of two locks.
pub(super) fn unmarked_sides(both: &Lockfile) -> Option<[Lockfile; 2]> {
    let twice: Vec<_> = read::repeated_entries(both).collect();
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
pub(super) fn merged(
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
    use super::*;

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
