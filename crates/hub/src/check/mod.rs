//! Reads a whole hub again: every line, every archive, and everything that is derived from them.
//!
//! Something that could mislead readers is a problem. Something that an interrupted write left, and that
//! nobody reads, is a leftover. A repair rewrites derived files and removes leftovers. It never touches an index line, or an archive that a
//! line leads to: only people can correct these. They may have changed index files by hand, so a repair makes readers ask for each of them
//! again. `about_all.rs` compares the files about all packages.
//!
//! A hub may have more packages and versions than memory has room for, so they are looked at one after another, and of the lines of the
//! catalog and the snapshot only hashes are kept.

mod about_all;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use mu_archive::document::PROV_ENDING;
use mu_provider::{and_more, evidence_lines, evidence_path, fs, with_causes};

use self::about_all::SaidLines;
use crate::HubError;
use crate::archive;
use crate::closures::{self, Meaning};
use crate::derived::{self, Capability};
use crate::file::{CATALOG_FILE, FileMeta, LINK, Read, closure_file};
use crate::files::Odd;
use crate::lines::{Lines, PublishedLine};
use crate::log::{self, BrokenOff, Marker};
use crate::names;
use crate::root::{HUB_FILE, Root};
use crate::snapshot::{self, Snapshot};
use crate::tokens::Tokens;
use crate::writer::Writer;

/// The folder with evidence about versions.
const SIGNATURES: &str = "signatures/";

/// How old an archive without a line has to be, in a bucket, before nobody can be about to publish it.
const ORPHAN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Packages that were checked.
    pub packages: u64,
    /// Versions of the checked packages.
    pub versions: u64,
    /// Bytes of the archives of the checked packages.
    pub bytes: u64,
    /// The problems that it has, or had.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether readers can rely on everything in the hub.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.is_leftover || finding.is_repaired)
    }
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the hub.
    pub path: String,
    /// The problem.
    pub what: String,
    /// Whether it is harmless: left by an interrupted write, and never read.
    pub is_leftover: bool,
    /// Whether a repair puts it right: it is derived from the index, or nobody reads it.
    pub can_be_repaired: bool,
    /// Whether it was repaired.
    pub is_repaired: bool,
}

/// Checks a hub; see [`crate::Hub::check`].
pub(crate) async fn check(
    writer: &Writer,
    repair: bool,
    progress: &mut dyn FnMut(&str),
) -> Result<Report, HubError> {
    let _turn = if repair { writer.files.turn().await? } else { None };
    let root = Root::read(&writer.files).await?;
    let pending = BrokenOff::all(&writer.files).await?;
    let mut check = Check {
        writer,
        root,
        report: Report::default(),
        capabilities: BTreeMap::new(),
        catalog: None,
        lacks_catalog: false,
        has_unreadable_catalog: false,
        snapshot: None,
        dependencies: repair.then(BTreeMap::new),
        elsewhere: BTreeSet::new(),
        broken: BTreeSet::new(),
        behind: pending.names.iter().cloned().collect(),
        newer: BTreeSet::new(),
        wrong: BTreeSet::new(),
        lasting: BTreeSet::new(),
    };
    check.read_catalog().await?;
    check.read_snapshot().await?;
    let mut names = derived::package_names(&writer.files, &check.root)?;
    while let Some(name) = names.try_next().await? {
        progress(&name);
        check.package(&name).await?;
    }
    if !pending.is_empty() {
        let what = match pending.names.join(", ").as_str() {
            // A repair concerns all packages.
            "" => "a repair was not completed".to_owned(),
            names => format!("a change was not completed, of {names}"),
        };
        check.leftover("pending/", what);
    }
    check.log().await?;
    check.capabilities().await?;
    check.closures().await?;
    check.catalog().await?;
    check.snapshot();
    let orphans = check.orphans().await?;
    check.tokens().await?;
    let Odd { half_written, links } = writer.files.odd();
    let links: Vec<String> = links.into_iter().filter(|link| check.root.owns(link)).collect();
    for link in links {
        check.lasting(&link, LINK);
    }
    for path in &half_written {
        check.leftover(&path.display().to_string(), "was not written completely");
    }
    check.mark_repairable();
    if repair {
        check.repair(pending, &orphans).await?;
        for path in half_written {
            fs::remove_file(&path)?;
        }
    }
    Ok(check.report)
}

struct Check<'hub> {
    writer: &'hub Writer,
    root: Root,
    report: Report,
    /// Capability → packages, according to the index.
    capabilities: BTreeMap<String, BTreeSet<String>>,
    /// What the catalog says, if there is one that can be read.
    catalog: Option<SaidLines>,
    /// Whether the hub has to have another catalog, with all packages.
    lacks_catalog: bool,
    has_unreadable_catalog: bool,
    /// The snapshot, if there is one, and what it says.
    snapshot: Option<(Snapshot, SaidLines)>,
    /// Name → the dependencies of its versions, according to the index, if a repair needs them.
    dependencies: Option<BTreeMap<String, BTreeSet<Meaning>>>,
    /// Archives that a line leads to, outside of the folder of its package.
    elsewhere: BTreeSet<String>,
    /// Packages whose index cannot be read completely.
    broken: BTreeSet<String>,
    /// Packages whose derived files may be out of date, according to a marker or the log.
    behind: BTreeSet<String>,
    /// Packages that have changed since the snapshot.
    newer: BTreeSet<String>,
    /// Packages whose derived files are wrong.
    wrong: BTreeSet<String>,
    /// Files with mistakes that only people can fix.
    lasting: BTreeSet<String>,
}

/// The package whose files are looked at.
#[derive(Default)]
struct Neighbours {
    name: String,
    /// Its archives, and where the evidence about each version is, if there is some.
    files: BTreeSet<String>,
}

impl Check<'_> {
    fn problem(&mut self, path: &str, what: impl Into<String>) {
        self.find(path, what.into(), false);
    }

    /// A problem that no repair puts right.
    fn lasting(&mut self, path: &str, what: impl Into<String>) {
        if self.lasting.insert(path.to_owned()) {
            self.problem(path, what);
        }
    }

    fn leftover(&mut self, path: &str, what: impl Into<String>) {
        self.find(path, what.into(), true);
    }

    fn find(&mut self, path: &str, what: String, is_leftover: bool) {
        let path = path.to_owned();
        self.report.findings.push(Finding {
            path,
            what,
            is_leftover,
            can_be_repaired: false,
            is_repaired: false,
        });
    }

    /// Reads a file, if it exists. A file behind a link counts as absent: links are reported separately.
    async fn read(&self, path: &str) -> Result<Option<Read>, HubError> {
        match self.writer.files.read(path).await {
            Err(HubError::Broken { .. }) => Ok(None),
            read => read,
        }
    }

    async fn package(&mut self, name: &str) -> Result<(), HubError> {
        let path = self.root.index(name);
        let Some(read) = self.read(&path).await? else { return Ok(()) };
        let (lines, wrong) = Lines::parse_all(&read.bytes, name);
        if !wrong.is_empty() {
            self.broken.insert(name.to_owned());
        }
        for what in wrong {
            self.problem(&path, what);
        }
        self.report.packages += 1;
        let mut seen = BTreeSet::new();
        for line in lines.iter() {
            self.report.versions += 1;
            if !seen.insert(line.full_version()) {
                self.problem(&path, format!("{} appears twice", line.describe()));
            }
            if let Err(error) = line.check() {
                self.problem(&path, format!("{}: {error}", line.describe()));
            }
            self.archive(line, &path).await?;
            if let Some((_, said)) = &mut self.snapshot {
                said.compare(name, &snapshot::of(line));
            }
        }
        for capability in derived::provided(&lines) {
            self.capabilities.entry(capability).or_default().insert(name.to_owned());
        }
        if let Some(dependencies) = &mut self.dependencies {
            dependencies.insert(name.to_owned(), closures::dependencies(&lines));
        }
        if let (Some(catalog), Some(line)) = (&mut self.catalog, derived::catalog_line_text(&lines))
        {
            catalog.compare(name, &line);
        }
        Ok(())
    }

    /// Where the archive of a version may be, in the order in which to look.
    fn places(&self, line: &PublishedLine) -> Vec<String> {
        let mut places: Vec<String> = line.texts("urls").map(str::to_owned).collect();
        if places.is_empty() {
            let usual = [line.usual_archive(), line.archive_by_version()];
            places.extend(usual.map(|path| format!("{}{path}", self.root.packs_folder())));
            places.dedup();
        }
        places
    }

    async fn archive(&mut self, line: &PublishedLine, index: &str) -> Result<(), HubError> {
        let own = format!("{}{}/", self.root.packs_folder(), line.name());
        let places = self.places(line);
        let is_foreign = |place: &&String| !place.contains("://") && !place.starts_with(&own);
        self.elsewhere.extend(places.iter().filter(is_foreign).cloned());
        let mut is_elsewhere = false;
        for place in places {
            if place.contains("://") {
                is_elsewhere = true;
                continue;
            }
            let Some(read) = self.read(&place).await? else { continue };
            self.report.bytes += read.bytes.len() as u64;
            let staging = &self.writer.files.staging;
            let result = archive::unpack(staging, &read.bytes, line);
            match result.and_then(|unpacked| unpacked.check(line).map(|()| unpacked)) {
                Err(error) => self.problem(&place, with_causes(&error)),
                Ok(unpacked) => {
                    for what in unpacked.differences(line) {
                        self.problem(index, format!("{}: {what}", line.describe()));
                    }
                }
            }
            return Ok(());
        }
        if !is_elsewhere {
            self.problem(index, format!("the archive of {} is missing", line.describe()));
        }
        Ok(())
    }

    async fn log(&mut self) -> Result<(), HubError> {
        let (files, generation) = (&self.writer.files, self.root.generation());
        if !self.root.counts_on() {
            self.problem(HUB_FILE, self.root.too_high());
            return Ok(());
        }
        if !self.root.counts() {
            return Ok(());
        }
        if generation > 0
            && log::names(files, &self.root, generation - 1, generation).await?.is_none()
        {
            self.problem(HUB_FILE, format!("the log does not mention generation {generation}"));
        }
        if let Some(catalog) = self.root.catalog()
            && let Some(names) =
                log::names(files, &self.root, catalog.generation, generation).await?
        {
            self.behind.extend(names);
        }
        Ok(())
    }

    /// Checks the tokens: if they cannot be read, nobody can change anything.
    async fn tokens(&mut self) -> Result<(), HubError> {
        match Tokens::read(&self.writer.files).await {
            Err(HubError::Broken { path, reason, .. }) => {
                self.lasting(&path, format!("{reason}; until that is fixed, nobody can publish"));
                Ok(())
            }
            tokens => tokens.map(drop),
        }
    }

    async fn capabilities(&mut self) -> Result<(), HubError> {
        let mut present = BTreeMap::new();
        for meta in self.writer.files.list("capabilities/").await? {
            let path = meta.path;
            let Some(read) = self.read(&path).await? else { continue };
            match serde_json::from_slice::<Capability>(&read.bytes) {
                Ok(file) => drop(present.insert(path, file.packages)),
                Err(_) => self.problem(&path, "it is not a list of packages"),
            }
        }
        let expected: BTreeMap<String, BTreeSet<String>> = self
            .capabilities
            .iter()
            .filter_map(|(name, packages)| Some((names::capability_path(name)?, packages.clone())))
            .collect();
        let paths: BTreeSet<&String> = present.keys().chain(expected.keys()).collect();
        let none = BTreeSet::new();
        for path in paths {
            let expected = expected.get(path).unwrap_or(&none);
            let present = present.get(path).unwrap_or(&none);
            self.derived(path, expected.symmetric_difference(present).cloned());
        }
        Ok(())
    }

    /// Closures may list less than the index, or more, but not nonsense.
    async fn closures(&mut self) -> Result<(), HubError> {
        let Some(folder) = self.root.closures_folder() else { return Ok(()) };
        let mut files = self.writer.files.each_file(&folder)?;
        while let Some(FileMeta { path, .. }) = files.try_next().await? {
            let name = path.strip_prefix(&folder).and_then(|path| path.strip_suffix(".json"));
            let is_there = match name {
                Some(name) => self.is_there(name).await?,
                None => false,
            };
            if !is_there {
                self.leftover(&path, "it belongs to no package");
            } else if let Some(read) = self.read(&path).await?
                && closures::parse(&read.bytes).is_none()
            {
                self.problem(&path, "it is not a list of packages");
            }
        }
        Ok(())
    }

    /// Whether a package has an index file.
    async fn is_there(&self, name: &str) -> Result<bool, HubError> {
        match self.writer.files.head(&self.root.index(name)).await {
            Err(HubError::Broken { .. }) => Ok(false),
            meta => Ok(meta?.is_some()),
        }
    }

    /// Reports a derived file that is wrong about `names`. It may be wrong about packages that are known to
    /// be out of date.
    fn derived(&mut self, path: &str, names: impl IntoIterator<Item = String>) {
        let is_wrong = |name: &String| !self.behind.contains(name) && !self.broken.contains(name);
        let wrong: Vec<String> = names.into_iter().filter(is_wrong).collect();
        let Some(first) = wrong.first() else { return };
        let more = and_more(wrong.len() - 1);
        let first = names::printable(first);
        let what = format!("it disagrees with the index about {first}{more}");
        self.wrong.extend(wrong);
        self.problem(path, what);
    }

    /// Archives that no line leads to, and statements about such archives; evidence about what is not there. If a package's index is broken, its archives may still belong to a
    /// line.
    async fn orphans(&mut self) -> Result<Vec<FileMeta>, HubError> {
        let packs = self.root.packs_folder();
        let (mut orphans, mut of) = (Vec::new(), Neighbours::default());
        let mut files = self.writer.files.each_file(&packs)?;
        while let Some(meta) = files.try_next().await? {
            let archive = meta.path.strip_suffix(PROV_ENDING).unwrap_or(&meta.path);
            // Somebody put other files there by hand; no write leaves one.
            if !archive.ends_with(".tgz") || self.elsewhere.contains(archive) {
                continue;
            }
            let package = archive.strip_prefix(&packs).and_then(|path| path.rsplit_once('/'));
            let name = package.map_or("", |(name, _)| name);
            self.look_around(name, &mut of).await?;
            if !of.files.contains(archive) && !self.broken.contains(name) {
                self.leftover(&meta.path, "no version uses it");
                orphans.push(meta);
            }
        }
        let mut files = self.writer.files.each_file(SIGNATURES)?;
        while let Some(meta) = files.try_next().await? {
            let path = meta.path.as_str();
            let package = path.strip_prefix(SIGNATURES).and_then(|path| path.rsplit_once('/'));
            let name = package.map_or("", |(name, _)| name);
            self.look_around(name, &mut of).await?;
            if of.files.contains(path) {
                if let Some(read) = self.read(path).await? {
                    let text = String::from_utf8_lossy(&read.bytes);
                    let bad =
                        evidence_lines(&text).find_map(|one| Some((one.number, one.line.err()?)));
                    if let Some((number, why)) = bad {
                        self.lasting(path, format!("line {number} is not evidence: {why}"));
                    }
                }
            } else if !self.broken.contains(name) {
                self.leftover(path, "it speaks of no version");
                orphans.push(meta);
            }
        }
        Ok(orphans)
    }

    /// Finds out which files belong to a package, unless it is the one that was looked at last.
    async fn look_around(&self, name: &str, of: &mut Neighbours) -> Result<(), HubError> {
        if of.name == name {
            return Ok(());
        }
        *of = Neighbours { name: name.to_owned(), files: BTreeSet::new() };
        let Some(read) = self.read(&self.root.index(name)).await? else { return Ok(()) };
        for line in Lines::parse_all(&read.bytes, name).0.iter() {
            of.files.extend(self.places(line));
            of.files.insert(evidence_path(name, &line.full_version()));
        }
        Ok(())
    }
}

impl Check<'_> {
    /// Repairs everything that can be derived from the index and the archives, and removes files that nobody reads.
    async fn repair(&mut self, pending: BrokenOff, orphans: &[FileMeta]) -> Result<(), HubError> {
        let files = &self.writer.files;
        let marker = Marker::set(files, "").await?;
        let now = files.head(&marker.path).await?.map(|meta| meta.modified);
        let mut kept = BTreeSet::new();
        for meta in orphans {
            let age = now.map(|now| now.duration_since(meta.modified).unwrap_or_default());
            if files.is_folder() || age.is_some_and(|age| age >= ORPHAN_AFTER) {
                files.remove(&meta.path).await?;
            } else {
                kept.insert(meta.path.clone());
            }
        }
        for meta in files.list("capabilities/").await? {
            self.rewrite_capability(&meta.path).await?;
        }
        self.rewrite_closures().await?;
        let mut all: BTreeSet<String> = std::mem::take(&mut self.wrong);
        all.extend(self.behind.iter().cloned());
        if self.lacks_catalog {
            all.extend(self.dependencies.iter().flat_map(BTreeMap::keys).cloned());
        }
        let mut names = Vec::new();
        for name in all.into_iter().filter(|name| !self.broken.contains(name)) {
            if names::check_name(&name).is_ok() && self.is_there(&name).await? {
                names.push(name);
            }
        }
        if !self.root.counts_on() {
            self.writer.count_anew().await?;
        }
        // This comes first, so that the snapshot is not older than the gap in the log.
        let generation = log::begin_anew(files, &Root::read(files).await?).await?;
        self.writer.advance(generation, None, None).await?;
        self.writer.complete(&names, self.broken.is_empty()).await?;
        pending.clear(files).await?;
        marker.clear(files).await?;
        for finding in &mut self.report.findings {
            finding.is_repaired = finding.can_be_repaired && !kept.contains(&finding.path);
        }
        Ok(())
    }

    /// Marks the findings that a repair puts right.
    fn mark_repairable(&mut self) {
        let (packs, index) = (self.root.packs_folder(), self.root.index_folder());
        let can_be_repaired = |finding: &Finding| {
            !self.lasting.contains(&finding.path)
                && !finding.path.starts_with(&index)
                && (finding.is_leftover || !finding.path.starts_with(&packs))
                && (self.broken.is_empty() || finding.path != CATALOG_FILE)
        };
        for finding in &mut self.report.findings {
            finding.can_be_repaired = can_be_repaired(finding);
        }
    }

    /// Writes the current closures of all packages, whether or not the hub had any before.
    async fn rewrite_closures(&self) -> Result<(), HubError> {
        let files = &self.writer.files;
        let mut root = self.root.clone();
        root.keep_closures();
        let folder = root.closures_folder().expect("they are kept");
        let dependencies = self.dependencies.as_ref().expect("a repair collects them");
        for meta in files.list(&folder).await? {
            let path = meta.path.as_str();
            let name = path.strip_prefix(&folder).and_then(|path| path.strip_suffix(".json"));
            if !name.is_some_and(|name| dependencies.contains_key(name)) {
                files.remove(path).await?;
            }
        }
        for (name, closure) in closures::exact(dependencies) {
            let file = closures::file(&closure);
            let path = closure_file(&folder, &name);
            files
                .change(&path, async |bytes| Ok(((bytes != Some(&file)).then(|| file.clone()), ())))
                .await?;
        }
        self.writer.change_root(Root::keep_closures).await
    }

    /// Removes from a capability's file what the index does not contain. What is missing is added with its
    /// package.
    async fn rewrite_capability(&self, path: &str) -> Result<(), HubError> {
        let capability =
            path.strip_prefix("capabilities/").and_then(|path| path.strip_suffix(".json"));
        let Some(capability) = capability else { return Ok(()) };
        let packages = self.capabilities.get(capability).cloned().unwrap_or_default();
        let file = derived::capability_file(&packages);
        self.writer
            .files
            .change(path, async |bytes| {
                Ok(((bytes != Some(&file) && self.broken.is_empty()).then(|| file.clone()), ()))
            })
            .await
    }
}
