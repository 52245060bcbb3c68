//! Turns the refs of a repository into releases, for one package in it.
//!
//! There is one line for each tag and branch. Versions come first, in ascending order, then other tags, then
//! branches. Nothing is fetched for this: a release's dependencies are in its manifest.
//!
//! A version was published at the date of an annotated tag, or else at that of the commit. The author's machine set this date. Branches and plain tags do not need one.

use std::collections::{BTreeMap, HashMap, HashSet};

use git2::Oid;
use mu_provider::{Commit, Dates, FileDigest, Location, Progress, ProviderError, Release};
use semver::Version;
use sha2::{Digest as _, Sha256};

use crate::ref_name;
use crate::repository::Repository;
use crate::wire::{Advertisement, Ref};

/// Change this when the same refs lead to another listing, so that no old listing is reused.
const FORMAT: &str = "mu git listing 5";

/// What stands between the last part of a folder and the version in tags that name no whole folder: `argo-cd-9.0.0`, `web@1.2.0`.
const SEPARATORS: [char; 3] = ['/', '-', '@'];

/// Which package in a repository is meant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Package<'call> {
    folder: &'call str,
    lenient: bool,
    dated: bool,
}

impl<'call> Package<'call> {
    /// The package in `folder`; `location` says how to read its versions.
    pub(crate) fn new(folder: &'call str, location: &Location) -> Self {
        Self { folder, lenient: location.lenient, dated: location.dates != Dates::Ignored }
    }

    /// A short text for everything that a listing depends on.
    pub(crate) fn validator(self, listed: &Advertisement) -> String {
        let mut hash = Sha256::new();
        hash.update(format!("{FORMAT}\n{}\n{}\n", self.folder, self.lenient));
        hash.update(if self.dated { "dated\n" } else { "" });
        hash.update(listed.digest());
        FileDigest::from_bytes(hash.finalize().into()).to_string()
    }

    /// The releases.
    pub(crate) fn releases(self, listed: &Advertisement) -> Vec<Listed<'_>> {
        let mut sorted = Sorted::default();
        let prefix = format!("{}/", self.folder);
        let own =
            |tag: &Ref| tag.tag().is_some_and(|tag| tag.starts_with(&prefix)) && prefix != "/";
        let tags = listed.refs.iter().filter(|other| other.tag().is_some());
        // Tags of the folder come first: they take precedence over others with the same name.
        for tag in tags.clone().filter(|tag| own(tag)) {
            let short = &tag.tag().unwrap_or_default()[prefix.len()..];
            match ref_name::parse_version(short, self.lenient) {
                Some(version) => sorted.add_version(version, tag, short),
                None => sorted.add_tag(tag, Some(short)),
            }
        }
        // Next are those that name the last part of the folder alone, as programs write them that release one chart, crate or
        // module of several.
        let last = self.folder.rsplit('/').next();
        let last = last.filter(|last| !last.is_empty() && sorted.versions.is_empty());
        let named = |tag: &'_ Ref| {
            let version = tag.tag()?.strip_prefix(last?)?.strip_prefix(SEPARATORS)?;
            Some((ref_name::parse_version(version, self.lenient)?, version.len()))
        };
        for tag in tags.clone().filter(|tag| !own(tag)) {
            if let Some((version, length)) = named(tag) {
                let name = tag.tag().unwrap_or_default();
                sorted.add_version(version, tag, &name[name.len() - length..]);
            }
        }
        let has_own_versions = !sorted.versions.is_empty();
        for tag in tags.filter(|tag| !own(tag) && named(tag).is_none()) {
            let name = tag.tag().unwrap_or_default();
            match ref_name::parse_version(name, self.lenient) {
                Some(version) if !has_own_versions => sorted.add_version(version, tag, name),
                _ => sorted.add_tag(tag, None),
            }
        }
        // Finding it may look at all refs.
        let default = listed.default_branch();
        for branch in &listed.refs {
            sorted.add_branch(branch, default);
        }
        sorted.finish(listed)
    }

    /// The release that `version` is if the remote has its plainest tag at `commit`; `None` for a version that
    /// leaves numbers out, which several tags may spell. No other tag takes precedence over this one.
    pub(crate) fn plain_release(self, version: &str, commit: &Commit) -> Option<Release> {
        let mut tag = format!("v{version}");
        ref_name::parse_version(&tag, false)?;
        if !self.folder.is_empty() {
            tag = format!("{}/{tag}", self.folder);
        }
        Some(Release {
            version: version.to_owned(),
            reference: Some(format!("refs/tags/{tag}")),
            tags: vec![tag],
            commit: Some(commit.clone()),
            ..Release::default()
        })
    }

    /// The tag that leads to a release: the one that it names, or the one of its version; `None` if none leads to its commit now.
    pub(crate) fn tag_of<'refs>(
        self,
        release: &Release,
        commit: Oid,
        listed: &'refs Advertisement,
    ) -> Option<&'refs Ref> {
        let releases = self.releases(listed);
        let own = releases.iter().filter(|one| one.commit == commit && !one.version.is_empty());
        let mut own = own.filter(|one| one.version == release.version);
        let named = match release.reference.as_deref() {
            Some(name) if name.starts_with("refs/") => name.to_owned(),
            Some(name) => format!("refs/tags/{name}"),
            None => own.next()?.reference.to_owned(),
        };
        listed
            .refs
            .iter()
            .find(|one| one.name == named && one.commit == commit && one.tag().is_some())
    }

    /// This package, with publication dates or without.
    pub(crate) fn with_dates(self, dated: bool) -> Self {
        Self { dated, ..self }
    }

    /// The commits of the other versions, those nearest to `commit` first.
    pub(crate) fn neighbours(self, commit: Oid, listed: &Advertisement) -> Vec<Oid> {
        let releases = self.releases(listed);
        let versions = releases.iter().filter(|release| !release.version.is_empty());
        let commits: Vec<Oid> = versions.map(|release| release.commit).collect();
        let Some(here) = commits.iter().position(|other| *other == commit) else {
            return Vec::new();
        };
        let mut others: Vec<(usize, Oid)> = commits
            .into_iter()
            .enumerate()
            .map(|(position, other)| (position.abs_diff(here), other))
            .filter(|(_, other)| *other != commit)
            .collect();
        others.sort_by_key(|(distance, _)| *distance);
        others.into_iter().map(|(_, other)| other).collect()
    }

    /// The release for a commit: the highest version whose tag leads to exactly this commit.
    pub(crate) fn release_of(self, commit: Oid, listed: Option<&Advertisement>) -> Release {
        let releases = listed.map(|listed| self.releases(listed)).unwrap_or_default();
        let mut versions = releases.iter().rev().filter(|release| !release.version.is_empty());
        match versions.find(|release| release.commit == commit) {
            Some(release) => release.to_listed_release(),
            None => Release { commit: Some(ref_name::name(commit)), ..Release::default() },
        }
    }
}

/// What is known about a release without further requests. There may be very many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed<'refs> {
    /// The version; empty if the ref is not a version.
    pub(crate) version: &'refs str,
    /// Its names.
    tags: Vec<&'refs str>,
    pub(crate) commit: Oid,
    /// The full name of the tag or branch.
    pub(crate) reference: &'refs str,
    tip: bool,
    /// When it was published, RFC 3339.
    pub(crate) published: Option<String>,
}

impl Listed<'_> {
    /// The release as its listing has it.
    pub(crate) fn to_listed_release(&self) -> Release {
        Release {
            version: self.version.to_owned(),
            tags: self.tags.iter().map(|tag| (*tag).to_owned()).collect(),
            commit: Some(ref_name::name(self.commit)),
            reference: Some(self.reference.to_owned()),
            tip: self.tip,
            published: self.published.clone(),
            ..Release::default()
        }
    }
}

/// A version and its release.
struct Versioned<'refs> {
    release: Listed<'refs>,
    /// How faithfully its tag spells the version: `v1.2.3` before `1.2.3` before `v1.2`.
    rank: u8,
}

/// Releases by kind, in their order.
#[derive(Default)]
struct Sorted<'refs> {
    versions: BTreeMap<Version, Versioned<'refs>>,
    tags: Vec<Listed<'refs>>,
    branches: Vec<Listed<'refs>>,
    names: HashSet<&'refs str>,
    has_tip: bool,
}

impl<'refs> Sorted<'refs> {
    fn add_version(
        &mut self,
        (version, is_whole): (Version, bool),
        tag: &'refs Ref,
        short: &'refs str,
    ) {
        let rank = match (is_whole, short.starts_with('v')) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => 2,
        };
        let mut release = self.release(tag, &[]);
        // Versions that leave numbers out print as they were published.
        release.version = short.strip_prefix('v').unwrap_or(short);
        match self.versions.entry(version) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Versioned { release, rank });
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                let there = entry.get_mut();
                if there.release.commit == release.commit {
                    there.release.tags.append(&mut release.tags);
                } else {
                    // If two tags claim one version, the other one stays a plain name.
                    if rank < there.rank {
                        there.rank = rank;
                        std::mem::swap(&mut there.release, &mut release);
                    }
                    release.version = "";
                    self.tags.push(release);
                }
            }
        }
    }

    fn add_tag(&mut self, tag: &'refs Ref, short: Option<&'refs str>) {
        // If the folder's own tag has its name, only its full name is left.
        let release = self.release(tag, short.as_slice());
        self.tags.push(release);
    }

    fn add_branch(&mut self, branch: &'refs Ref, default: Option<&str>) {
        if branch.branch().is_none() {
            return;
        }
        let mut release = self.release(branch, &[]);
        release.tip = default == Some(branch.name.as_str());
        self.has_tip |= release.tip;
        // If a tag has its name, only its full name is left.
        self.branches.push(release);
    }

    /// A release with the names that no earlier one has.
    fn release(&mut self, other: &'refs Ref, more: &[&'refs str]) -> Listed<'refs> {
        let name = other.tag().or(other.branch()).unwrap_or_default();
        let names = std::iter::once(name).chain(more.iter().copied());
        Listed {
            version: "",
            tags: names.filter(|name| self.names.insert(*name)).collect(),
            commit: other.commit,
            reference: &other.name,
            tip: false,
            published: None,
        }
    }

    fn finish(self, listed: &Advertisement) -> Vec<Listed<'refs>> {
        let detached = listed.head.filter(|_| !self.has_tip).map(|head| Listed {
            version: "",
            tags: Vec::new(),
            commit: head,
            reference: "HEAD",
            tip: true,
            published: None,
        });
        let versions = self.versions.into_values().map(|version| version.release);
        versions.chain(self.tags).chain(self.branches).chain(detached).collect()
    }
}

/// Adds publication dates to the releases that are versions; returns whether all dates are known.
pub(crate) fn add_dates(
    repository: &Repository,
    listed: &Advertisement,
    releases: &mut [Listed<'_>],
    progress: &dyn Progress,
) -> Result<bool, ProviderError> {
    let targets: HashMap<&str, Oid> =
        listed.refs.iter().map(|other| (&*other.name, other.target)).collect();
    let target = |release: &Listed<'_>| targets.get(release.reference).copied();
    let is_version = |release: &&mut Listed<'_>| !release.version.is_empty();
    let wanted: Vec<Oid> =
        releases.iter_mut().filter(is_version).filter_map(|release| target(release)).collect();
    let dates = repository.dates(&wanted, progress)?;
    let mut is_complete = true;
    for release in releases.iter_mut().filter(is_version) {
        let date = target(release).and_then(|target| dates.get(&target));
        let moment = date.and_then(|seconds| jiff::Timestamp::from_second(*seconds).ok());
        release.published = moment.map(|moment| moment.to_string());
        is_complete &= release.published.is_some();
    }
    if !is_complete {
        // If only some had dates, the others would look old.
        releases.iter_mut().for_each(|release| release.published = None);
    }
    Ok(is_complete)
}

/// The date in a tag or commit, in seconds since 1970.
pub(crate) fn date_of(object: &[u8]) -> Option<i64> {
    let mut lines = object.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let line =
        lines.find(|line| line.starts_with(b"tagger ") || line.starts_with(b"committer "))?;
    let mut words = std::str::from_utf8(line.rsplit(|byte| *byte == b'>').next()?).ok()?.split(' ');
    words.find(|word| !word.is_empty())?.parse().ok()
}

/// The parents of a commit, and the first line of its message, shortened.
pub(crate) fn logged(commit: &[u8]) -> (Vec<Oid>, String) {
    let text = String::from_utf8_lossy(commit);
    let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    let parents = head.lines().filter_map(|line| line.strip_prefix("parent "));
    let parents = parents.filter_map(|parent| ref_name::parse(Some(parent))).collect();
    let title = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    (parents, title.trim().chars().take(LONGEST_TITLE).collect())
}

/// The longest title of a commit, in characters.
const LONGEST_TITLE: usize = 200;

#[cfg(test)]
mod tests {
    use mu_provider::{Lead, SafeUrl};

    use super::*;

    /// A listing in short form: `VERSION TAGS COMMIT'S FIRST DIGIT`.
    fn check(folder: &str, lenient: bool, refs: &[(&str, u8)], expected: &[&str]) {
        let hex = |digit: u8| digit.to_string().repeat(40);
        let text: String =
            refs.iter().map(|(name, digit)| format!("{} {name}\n", hex(*digit))).collect();
        let listed = Advertisement::parse(&text).expect("is a listing");
        let mut location =
            Location::new(Lead::of_user(SafeUrl::parse("https://h/r").expect("is a URL")), "");
        location.lenient = lenient;
        let releases = Package::new(folder, &location).releases(&listed);
        let found: Vec<String> = releases
            .iter()
            .map(|release| {
                let tip = if release.tip { " tip" } else { "" };
                let commit = release.commit.to_string();
                format!("{} {} {}{tip}", release.version, release.tags.join(","), &commit[..1])
            })
            .collect();
        assert_eq!(found, expected, "{refs:?}");
        check_plain(Package::new(folder, &location), &text, &releases);
    }

    /// What one line of a text says of a version is what the whole text says.
    fn check_plain(package: Package<'_>, text: &str, releases: &[Listed<'_>]) {
        let commits = releases.iter().map(|release| ref_name::name(release.commit));
        for (version, commit) in ["1.0.0", "1.10.0", "1.28", "1"]
            .into_iter()
            .flat_map(|version| commits.clone().map(move |commit| (version, commit)))
        {
            let Some(plain) = package.plain_release(version, &commit) else { continue };
            let name = plain.reference.as_deref().unwrap_or_default();
            let is_there = Advertisement::text_has(text, name, &commit);
            let known = releases.iter().find(|release| {
                release.version == version && ref_name::name(release.commit) == commit
            });
            let has_this_tag = known.is_some_and(|known| known.tags.contains(&&*plain.tags[0]));
            assert_eq!(is_there, has_this_tag, "{version} at {commit} in {text}");
        }
    }

    #[test]
    fn versions_ascend_then_come_tags_and_branches() {
        check(
            "",
            false,
            &[
                ("HEAD", 3),
                ("refs/heads/main", 3),
                ("refs/heads/dev", 4),
                ("refs/tags/v1.10.0", 2),
                ("refs/tags/1.9.0", 1),
                ("refs/tags/v1", 2),
                ("refs/tags/sub/v9.0.0", 5),
            ],
            &[
                "1.9.0 1.9.0 1",
                "1.10.0 v1.10.0 2",
                " sub/v9.0.0 5",
                " v1 2",
                " dev 4",
                " main 3 tip",
            ],
        );
    }

    #[test]
    fn a_hundred_thousand_tags_are_each_looked_at_once() {
        // HEAD is at no branch, so that all refs are looked at to find the default one: for each of them, this would not end.
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let mut text = format!("{one} HEAD\n{two} refs/heads/main\n");
        for number in 0..100_000 {
            text.push_str(&format!("{two} refs/tags/v1.{}.{}\n", number / 1_000, number % 1_000));
        }
        let listed = Advertisement::parse(&text).expect("is a listing");
        let location =
            Location::new(Lead::of_user(SafeUrl::parse("https://h/r").expect("is a URL")), "");
        let releases = Package::new("", &location).releases(&listed);
        let versions = releases.iter().filter(|release| !release.version.is_empty()).count();
        assert_eq!((versions, releases.len()), (100_000, 100_002));
        let digest: [u8; 32] = Sha256::digest(listed.to_text()).into();
        assert_eq!(listed.digest(), digest);
    }

    #[test]
    fn a_folders_own_tags_are_its_only_versions() {
        let refs = [
            ("refs/tags/v1.0.0", 1),
            ("refs/tags/beta", 2),
            ("refs/tags/a/b/v1.0.0", 3),
            ("refs/tags/a/b/beta", 4),
            ("refs/tags/a/v2.0.0", 5),
        ];
        check(
            "a/b",
            false,
            &refs,
            &["1.0.0 a/b/v1.0.0 3", " a/b/beta,beta 4", " a/v2.0.0 5", "  2", " v1.0.0 1"],
        );
        check(
            "c",
            false,
            &refs,
            &["1.0.0 v1.0.0 1", " a/b/beta 4", " a/b/v1.0.0 3", " a/v2.0.0 5", " beta 2"],
        );
    }

    #[test]
    fn tags_with_the_last_part_of_a_folder_are_its_versions_if_no_tag_has_all_of_it() {
        let mut refs = vec![
            ("refs/tags/v9.0.0", 1),
            ("refs/tags/web-1.0.0", 2),
            ("refs/tags/web-v1.1.0", 3),
            ("refs/tags/web-hook-2.0.0", 4),
            ("refs/tags/web/1.2.0", 5),
            ("refs/tags/web@1.3.0", 6),
        ];
        let own = ["1.0.0 web-1.0.0 2", "1.1.0 web-v1.1.0 3", "1.2.0 web/1.2.0 5"];
        let others = ["1.3.0 web@1.3.0 6", " v9.0.0 1", " web-hook-2.0.0 4"];
        check("charts/web", false, &refs, &[own, others].concat());
        let rest = [" web-1.0.0 2", " web-v1.1.0 3", " web/1.2.0 5", " web@1.3.0 6"];
        let hook = ["2.0.0 web-hook-2.0.0 4", " v9.0.0 1"];
        check("web-hook", false, &refs, &[hook.as_slice(), &rest].concat());
        let plain = ["9.0.0 v9.0.0 1", " web-1.0.0 2", " web-hook-2.0.0 4"];
        check("charts/none", false, &refs, &[plain.as_slice(), &rest[1..]].concat());
        refs = vec![("refs/tags/charts/web/v0.1.0", 1), ("refs/tags/web-1.0.0", 2)];
        check("charts/web", false, &refs, &["0.1.0 charts/web/v0.1.0 1", " web-1.0.0 2"]);
    }

    #[test]
    fn a_tag_wins_over_a_branch_of_its_name() {
        check("", false, &[("refs/heads/x", 1), ("refs/tags/x", 2)], &[" x 2", "  1"]);
        check(
            "",
            false,
            &[("HEAD", 1), ("refs/heads/x", 1), ("refs/tags/x", 2)],
            &[" x 2", "  1 tip"],
        );
    }

    #[test]
    fn one_version_is_listed_once() {
        let same = [("refs/tags/1.0.0", 1), ("refs/tags/v1.0.0", 1)];
        check("", false, &same, &["1.0.0 1.0.0,v1.0.0 1"]);
        let other = [("refs/tags/1.0.0", 1), ("refs/tags/v1.0.0", 2)];
        check("", false, &other, &["1.0.0 v1.0.0 2", " 1.0.0 1"]);
        let lenient = [("refs/tags/v1", 1), ("refs/tags/1.0.0", 2), ("refs/tags/1.28", 3)];
        check("", true, &lenient, &["1.0.0 1.0.0 2", "1.28 1.28 3", " v1 1"]);
    }

    #[test]
    fn a_detached_head_is_a_tip() {
        check("", false, &[("HEAD", 1), ("refs/heads/x", 2)], &[" x 2", "  1 tip"]);
        check("", false, &[], &[]);
    }

    #[test]
    fn neighbours_are_the_nearest_versions() {
        let hex = |digit: u8| digit.to_string().repeat(40);
        let text: String =
            (1..6).map(|digit| format!("{} refs/tags/v{digit}.0.0\n", hex(digit))).collect();
        let listed = Advertisement::parse(&text).expect("is a listing");
        let location =
            Location::new(Lead::of_user(SafeUrl::parse("https://h/r").expect("is a URL")), "");
        let oid = |digit| Oid::from_str(&hex(digit)).expect("is an object name");
        let near = Package::new("", &location).neighbours(oid(4), &listed);
        assert_eq!(near, [oid(3), oid(5), oid(2), oid(1)]);
        assert_eq!(Package::new("", &location).neighbours(oid(9), &listed), []);
    }

    #[test]
    fn a_commit_is_the_highest_version_that_leads_to_it() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let text = format!("{one} refs/tags/v1.0.0\n{one} refs/tags/v1.1.0\n{two} refs/tags/x\n");
        let listed = Advertisement::parse(&text).expect("is a listing");
        let location =
            Location::new(Lead::of_user(SafeUrl::parse("https://h/r").expect("is a URL")), "");
        let package = Package::new("", &location);
        let oid = |hex: &str| Oid::from_str(hex).expect("is an object name");
        assert_eq!(package.release_of(oid(&one), Some(&listed)).version, "1.1.0");
        let unversioned = package.release_of(oid(&two), Some(&listed));
        assert_eq!((&*unversioned.version, unversioned.commit.as_deref()), ("", Some(&*two)));
    }

    #[test]
    fn reads_the_date_of_a_tag_and_of_a_commit() {
        for (object, expected) in [
            (
                "object x\ntype commit\ntag v1\ntagger A B <a@b> 1700000000 +0100\n\ntext",
                Some(1_700_000_000),
            ),
            ("tree x\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 2 -0500\n\ntext", Some(2)),
            ("tree x\n\ncommitter A <a@b> 2 +0000\n", None),
            ("tree x\ncommitter A <a@b>\n\n", None),
            ("committer A <a@b> soon +0000\n\n", None),
            ("", None),
        ] {
            assert_eq!(date_of(object.as_bytes()), expected, "{object}");
        }
        assert_eq!(date_of(b"committer \xff <a> 5 +0000\n\n"), Some(5));
    }
}
