//! Reads a whole hub again: every line, every archive, and everything that is derived from them.
//!
//! Something that could mislead readers is a problem. Something that an interrupted write left, and that
//! nobody reads, is a leftover. A repair (`repair.rs`) rewrites derived files and removes leftovers. It never
//! touches an index line, or an archive that a line leads to: only people can correct these.

mod repair;

use std::collections::{BTreeMap, BTreeSet};

use mu_archive::document::PROV_ENDING;
use mu_provider::{evidence_lines, evidence_path, fs, with_causes};
use mu_provider_hub::wire::SNAPSHOT_FILE;

use crate::HubError;
use crate::archive;
use crate::closures::{self, Meaning};
use crate::derived::{self, Capability};
use crate::file::{CATALOG_FILE, FileMeta, LINK, Read};
use crate::files::Odd;
use crate::lines::{Lines, PublishedLine};
use crate::log::{self, BrokenOff};
use crate::names;
use crate::root::{HUB_FILE, Root};
use crate::snapshot;
use crate::tokens::Tokens;
use crate::writer::Writer;

/// The folder with evidence about versions.
const SIGNATURES: &str = "signatures/";

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
        catalog: BTreeMap::new(),
        lines: BTreeMap::new(),
        dependencies: BTreeMap::new(),
        used: BTreeSet::new(),
        vouched: BTreeSet::new(),
        broken: BTreeSet::new(),
        behind: pending.names.iter().cloned().collect(),
        wrong: BTreeSet::new(),
        lasting: BTreeSet::new(),
    };
    for name in derived::all_package_names(&writer.files, &check.root).await? {
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
    check.snapshot().await?;
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
    /// Name → catalog line, according to the index.
    catalog: BTreeMap<String, String>,
    /// Name and version → line of the snapshot, according to the index.
    lines: BTreeMap<(String, String), String>,
    /// Name → the dependencies of its versions, according to the index.
    dependencies: BTreeMap<String, BTreeSet<Meaning>>,
    /// Archives that a line leads to.
    used: BTreeSet<String>,
    /// Where the evidence about each version is, if there is some.
    vouched: BTreeSet<String>,
    /// Packages whose index cannot be read completely.
    broken: BTreeSet<String>,
    /// Packages whose derived files may be out of date, according to a marker or the log.
    behind: BTreeSet<String>,
    /// Packages whose derived files are wrong.
    wrong: BTreeSet<String>,
    /// Files with mistakes that only people can fix.
    lasting: BTreeSet<String>,
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
            self.lines.insert((name.to_owned(), line.full_version()), snapshot::of(line));
        }
        for capability in derived::provided(&lines) {
            self.capabilities.entry(capability).or_default().insert(name.to_owned());
        }
        self.dependencies.insert(name.to_owned(), closures::dependencies(&lines));
        if let Some(line) = derived::catalog_line_text(&lines) {
            self.catalog.insert(name.to_owned(), line);
        }
        Ok(())
    }

    async fn archive(&mut self, line: &PublishedLine, index: &str) -> Result<(), HubError> {
        let usual = format!("{}{}", self.root.packs_folder(), line.usual_archive());
        let mut places: Vec<String> = line.texts("urls").map(str::to_owned).collect();
        if places.is_empty() {
            places.push(usual);
            let by_version = format!("{}{}", self.root.packs_folder(), line.archive_by_version());
            places.extend(Some(by_version).filter(|other| *other != places[0]));
        }
        self.vouched.insert(evidence_path(line.name(), &line.full_version()));
        let mut is_elsewhere = false;
        for place in places {
            if place.contains("://") {
                is_elsewhere = true;
                continue;
            }
            self.used.insert(place.clone());
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
        for meta in self.writer.files.list(&folder).await? {
            let path = meta.path;
            let name = path.strip_prefix(&folder).and_then(|path| path.strip_suffix(".json"));
            if !name.is_some_and(|name| self.dependencies.contains_key(name)) {
                self.leftover(&path, "it belongs to no package");
            } else if let Some(read) = self.read(&path).await?
                && closures::parse(&read.bytes).is_none()
            {
                self.problem(&path, "it is not a list of packages");
            }
        }
        Ok(())
    }

    async fn catalog(&mut self) -> Result<(), HubError> {
        let present = match self.read(CATALOG_FILE).await? {
            Some(read) => derived::catalog_of(&read.bytes),
            None if self.root.catalog().is_none() => {
                if !self.catalog.is_empty() {
                    self.leftover(CATALOG_FILE, "there is none yet, so searching finds nothing");
                }
                return Ok(());
            }
            None => Some(BTreeMap::new()),
        };
        let Some(present) = present else {
            self.wrong.extend(self.catalog.keys().cloned());
            self.problem(CATALOG_FILE, "it cannot be read");
            return Ok(());
        };
        let names: BTreeSet<&String> = present.keys().chain(self.catalog.keys()).collect();
        let differs = |name: &&String| present.get(*name) != self.catalog.get(*name);
        let differing: Vec<String> = names.into_iter().filter(differs).cloned().collect();
        self.derived(CATALOG_FILE, differing);
        Ok(())
    }

    async fn snapshot(&mut self) -> Result<(), HubError> {
        let files = &self.writer.files;
        if self.root.snapshot_progress().is_none() {
            return Ok(());
        }
        let Some(snapshot) = snapshot::read(files).await? else {
            self.problem(SNAPSHOT_FILE, "it cannot be read, or its digests differ");
            return Ok(());
        };
        let generation = self.root.generation().max(snapshot.generation);
        let newer = log::names(files, &self.root, snapshot.generation, generation).await?;
        let Some(newer) = newer else { return Ok(()) };
        let key = |text: &String| {
            let line = PublishedLine::parse(text).ok()?;
            Some((line.name().to_owned(), line.full_version()))
        };
        let present: BTreeMap<_, _> =
            snapshot.lines.iter().filter_map(|(text, _)| Some((key(text)?, text))).collect();
        let keys: BTreeSet<_> = present.keys().chain(self.lines.keys()).collect();
        let differs = |key: &&&(String, String)| {
            present.get(**key).copied() != self.lines.get(**key) && !newer.contains(&key.0)
        };
        let names: BTreeSet<String> =
            keys.iter().filter(differs).map(|(name, _)| name.clone()).collect();
        self.derived(SNAPSHOT_FILE, names);
        Ok(())
    }

    /// Reports a derived file that is wrong about `names`. It may be wrong about packages that are known to
    /// be out of date.
    fn derived(&mut self, path: &str, names: impl IntoIterator<Item = String>) {
        let is_wrong = |name: &String| !self.behind.contains(name) && !self.broken.contains(name);
        let wrong: Vec<String> = names.into_iter().filter(is_wrong).collect();
        let Some(first) = wrong.first() else { return };
        let more = match wrong.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let first = names::printable(first);
        let what = format!("it disagrees with the index about {first}{more}");
        self.wrong.extend(wrong);
        self.problem(path, what);
    }

    /// Archives that no line leads to, and statements about such archives; evidence about what is not there. If a package's index is broken, its archives may still belong to a
    /// line.
    async fn orphans(&mut self) -> Result<Vec<FileMeta>, HubError> {
        let packs = self.root.packs_folder();
        let mut orphans = Vec::new();
        for meta in self.writer.files.list(&packs).await? {
            let path = meta.path.as_str();
            let package = path.strip_prefix(&packs).and_then(|path| path.rsplit_once('/'));
            let is_broken = package.is_some_and(|(name, _)| self.broken.contains(name));
            let archive = path.strip_suffix(PROV_ENDING).unwrap_or(path);
            // Somebody put other files there by hand; no write leaves one.
            if archive.ends_with(".tgz") && !self.used.contains(archive) && !is_broken {
                self.leftover(path, "no version uses it");
                orphans.push(meta);
            }
        }
        for meta in self.writer.files.list(SIGNATURES).await? {
            let path = meta.path.as_str();
            let package = path.strip_prefix(SIGNATURES).and_then(|path| path.rsplit_once('/'));
            let is_broken = package.is_some_and(|(name, _)| self.broken.contains(name));
            if self.vouched.contains(path) {
                if let Some(read) = self.read(path).await? {
                    let text = String::from_utf8_lossy(&read.bytes);
                    let bad =
                        evidence_lines(&text).find_map(|one| Some((one.number, one.line.err()?)));
                    if let Some((number, why)) = bad {
                        self.lasting(path, format!("line {number} is no evidence: {why}"));
                    }
                }
            } else if !is_broken {
                self.leftover(path, "it speaks of no version");
                orphans.push(meta);
            }
        }
        Ok(orphans)
    }
}
