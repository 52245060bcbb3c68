//! Copies a namespace, or all that a hub has, with every version; later runs ask the hub's log what has changed since.
//!
//! How far a run came is kept in a file of its own: in `private/` of the mirror, if mu writes its files itself, else in the cache. So
//! a run that ends early, whatever ends it, goes on where it was. In a hub whose files mu writes, all new versions of a package appear
//! at once, when everything about them is in its place; a server gets one version after another.
//!
//! What a package needs elsewhere is not copied with it, and no name is changed: `copying.rs` does that for single packages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mu_hub::{PlacedVersion, Publication, Vouching, names};
use mu_provider::threads::{into_inner, lock, on_threads};
use mu_provider::{
    Changes, Copier, ErrorKind, FileDigest, Listing, Location, LogPosition, Progress as _,
    ProviderError, Release, read_json_lines, with_causes,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::copying::{follow, upload_of_line};
use super::{Changed, Copied, CopyFailure, MirrorRequest, Mirrored, check_scope};
use crate::fs;
use crate::index::Route;
use crate::ops::publication::lines::{IndexLine, copy_of, is_version, line_version, tidied};
use crate::ops::publication::target::PublicationTarget;
use crate::ops::session::events::Work;
use crate::ops::{Code, CommandError, Session, Stage, Warning};

/// After how many packages of a first run it is written down how far it is.
const STEP: usize = 64;

/// After how many packages in a row whose places could not be reached a run ends: the others would fail too.
const MOST_IN_VAIN: usize = 20;

/// The folder in the cache for the positions in places that keep none themselves.
const IN_CACHE: &str = "mirrors";

/// A run that copies what a hub has.
pub(super) struct HubCopy<'a> {
    pub(super) session: &'a Session,
    pub(super) target: &'a PublicationTarget,
    pub(super) request: &'a MirrorRequest,
    /// The hub; the path of its location is empty.
    pub(super) source: &'a Route,
    /// The packages and namespaces that are copied; none for everything.
    pub(super) scope: BTreeSet<String>,
}

/// How far a mirror is, as it is written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MirrorPosition {
    /// The hub that is copied.
    from: String,
    /// The packages and namespaces that are copied; none for everything.
    packages: BTreeSet<String>,
    /// Everything up to this change is there.
    #[serde(flatten)]
    log: LogPosition,
    /// As long as the first run is not complete: the last name, in their order, up to which everything is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// What could not be copied: a package, or a version as the log names it if what vouches for it has changed.
    #[serde(default)]
    again: BTreeSet<String>,
    /// The last change of the mirror itself, if it has a server: one that was restored from a backup lacks what came later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    there: Option<u64>,
    /// Whether a run began, and has not ended.
    #[serde(default)]
    running: bool,
}

/// What a run does.
struct Plan {
    /// The packages in their order: first those that have changed, then those that a first run has not reached.
    names: Vec<String>,
    /// How many of them have changed.
    changed: usize,
    /// The versions of which only what vouches for them has changed.
    vouched: BTreeMap<String, BTreeSet<String>>,
    /// Whether it is not known of the versions that are there whether they have all that vouches for them.
    is_careful: bool,
    /// Where the mirror is once this is done.
    position: Option<MirrorPosition>,
    /// For how long the hub's answer is fresh.
    max_age: Option<u32>,
}

/// What came of a package.
#[derive(Default)]
struct PackageCopy {
    copied: Vec<Copied>,
    changed: Vec<Changed>,
    present: usize,
    failed: Vec<CopyFailure>,
    /// What kind of failure one of them was.
    code: Option<Code>,
}

/// What came of all packages so far.
struct RunState {
    all: PackageCopy,
    is_done: Vec<bool>,
    /// How many are done without a gap.
    done: usize,
    /// How many of them were written down.
    saved: usize,
    /// What could not be copied, as the log names it.
    again: BTreeSet<String>,
    in_vain: usize,
    /// Why no more packages are begun.
    end: Option<CommandError>,
}

impl HubCopy<'_> {
    pub(super) fn run(&self) -> Result<Mirrored, CommandError> {
        let known = self.known_position()?;
        let plan = self.plan(known.clone())?;
        // A server gets what vouches for a version after the version. If this run ends in between, the next one must know that it
        // cannot rely on the versions that are there.
        if let Some(known) = known.filter(|_| self.target.hub_of_files().is_none()) {
            self.keep(&MirrorPosition { running: true, ..known })?;
        }
        let progress = Mutex::new(RunState {
            all: PackageCopy::default(),
            is_done: vec![false; plan.names.len()],
            done: 0,
            saved: 0,
            again: BTreeSet::new(),
            in_vain: 0,
            end: None,
        });
        // Packages are begun in their order, so that those which are done are few behind those which are not.
        let next = AtomicUsize::new(0);
        let jobs = self.session.network_jobs().min(plan.names.len().max(1));
        on_threads(jobs, &|| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(name) = plan.names.get(number) else { return };
                if lock(&progress).end.is_some() || self.is_stopped() {
                    return;
                }
                let done = self.package(name, plan.vouched.get(name), plan.is_careful);
                self.note(&plan, &mut lock(&progress), number, done);
            }
        });
        // Also what was reached by a run that ends early is written down.
        let mut progress = into_inner(progress);
        let is_whole = progress.done == plan.names.len() && progress.end.is_none();
        let end = progress.end.take();
        if let Some(position) = self.reached(&plan, &progress, is_whole) {
            self.keep(&position)?;
        }
        if let Some(end) = end {
            return Err(end);
        }
        if let Some(hub) = self.target.hub_of_files().filter(|hub| hub.has_left()) {
            hub.tidy()?;
        }
        let PackageCopy { mut copied, mut changed, present, mut failed, code } = progress.all;
        copied.sort();
        changed
            .sort_by(|left, right| (&left.name, &left.version).cmp(&(&right.name, &right.version)));
        failed.sort();
        let place = self.target.name.clone();
        Ok(Mirrored {
            place,
            copied,
            present,
            changed,
            failed,
            failure: code,
            max_age: plan.max_age,
            dry_run: self.request.dry_run,
            ..Mirrored::default()
        })
    }

    fn is_stopped(&self) -> bool {
        self.request.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Finds out what there is to do.
    fn plan(&self, known: Option<MirrorPosition>) -> Result<Plan, CommandError> {
        // What is done has three parts: what has changed since the last run; what that run could not copy; and, as long as the first
        // run is not complete, what it has not reached. If the log does not know what has changed, it is everything.
        let since = known.as_ref().map(|known| &known.log);
        let mut changes = self.changes(since)?;
        let is_careful = changes.is_whole
            || known.as_ref().is_some_and(|known| known.running || known.until.is_some());
        let mut early: BTreeSet<String> = BTreeSet::new();
        let mut vouched: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut rest: BTreeSet<String> = BTreeSet::new();
        let until = known.as_ref().and_then(|known| known.until.clone());
        if changes.is_whole {
            if known.is_none() {
                check_scope(&self.scope, &changes.packages, &self.source.location)?;
            }
            rest = std::mem::take(&mut changes.packages);
        } else {
            early = std::mem::take(&mut changes.packages);
            for (name, version) in std::mem::take(&mut changes.vouched) {
                vouched.entry(name).or_default().insert(version);
            }
            for again in known.iter().flat_map(|known| &known.again) {
                match again.split_once(' ') {
                    None => drop(early.insert(again.clone())),
                    Some((name, version)) => {
                        vouched.entry(name.to_owned()).or_default().insert(version.to_owned());
                    }
                }
            }
            // The first run goes on with those that it has not reached, and with what has changed of the others.
            if let Some(until) = &until {
                changes = self.changes(None)?;
                rest = changes.packages.split_off(until);
                rest.remove(until);
                early.retain(|name| name <= until);
                vouched.retain(|name, _| name <= until);
            }
        }
        // Of these, only what vouches for versions has changed. Their index files are read too, because they say where archives are.
        early.extend(vouched.keys().cloned());
        let is_asked = |name: &String| self.is_in_scope(name);
        let mut names: Vec<String> = early.into_iter().filter(is_asked).collect();
        let changed = names.len();
        names.extend(rest.into_iter().filter(is_asked));
        let position = changes.position.map(|log| MirrorPosition {
            from: self.source.location.root.to_string(),
            packages: self.scope.clone(),
            log,
            until: None,
            again: BTreeSet::new(),
            there: None,
            running: false,
        });
        Ok(Plan { names, changed, vouched, is_careful, position, max_age: changes.max_age })
    }

    fn changes(&self, since: Option<&LogPosition>) -> Result<Changes, CommandError> {
        let Route { provider, location, .. } = self.source;
        let work = Work::begin(&self.session.events, location.describe());
        let changes = provider.changes(location, since, &work)?;
        changes.ok_or_else(|| {
            let (place, kind) = (location.describe(), provider.facts().place);
            let message = format!("`{place}` is {kind}, which does not say what it has");
            CommandError::new(Code::Usage, message)
                .hint("packages of other registries are copied by their names")
        })
    }

    fn is_in_scope(&self, name: &str) -> bool {
        // A registry for a namespace alone has that at its root.
        let is_in = |scope: &String| scope.is_empty() || names::is_in_namespace(scope, name);
        self.scope.is_empty() || self.scope.iter().any(is_in)
    }

    /// Notes what came of a package, and from time to time writes down how far the run is.
    fn note(
        &self,
        plan: &Plan,
        progress: &mut RunState,
        number: usize,
        done: Result<PackageCopy, CommandError>,
    ) {
        // A failure of the package as a whole: its index file could not be read, or the mirror's could not be written. Failures of single
        // versions are in what came of it already.
        let name = plan.names[number].as_str();
        let done = done.unwrap_or_else(|error| PackageCopy {
            failed: vec![CopyFailure {
                name: name.to_owned(),
                version: None,
                reason: with_causes(&*error.error),
            }],
            code: Some(error.code),
            ..PackageCopy::default()
        });
        for failed in &done.failed {
            let CopyFailure { version, .. } = failed;
            let (called, why) = (failed.name.clone(), failed.reason.clone());
            let warning = Warning::NotCopied { name: called, version: version.clone(), why };
            self.session.events.warning(&warning);
            // What else was to be done about the package was not done.
            let others = plan.vouched.get(name).filter(|_| version.is_none());
            let versions = version.iter().chain(others.into_iter().flatten());
            progress.again.extend(versions.map(|version| format!("{name} {version}")));
            progress.again.extend(version.is_none().then(|| name.to_owned()));
        }
        let is_far =
            matches!(done.code, Some(Code::Network | Code::Auth | Code::Io | Code::Offline));
        // One package that cannot be copied says nothing of the next one; twenty in a row say that a place is away.
        progress.in_vain = if is_far { progress.in_vain + 1 } else { 0 };
        if progress.in_vain == MOST_IN_VAIN {
            let message =
                format!("gave up after {MOST_IN_VAIN} packages in a row could not be copied");
            let error = CommandError::new(done.code.unwrap_or(Code::Network), message);
            progress.end =
                Some(error.hint("the same command goes on once the places can be reached"));
        }
        let all = &mut progress.all;
        all.copied.extend(done.copied);
        all.changed.extend(done.changed);
        all.failed.extend(done.failed);
        all.present += done.present;
        all.code = all.code.or(done.code);
        // Packages end in any order. What counts is how many are done without a gap, from the first on:
        //
        //     is_done   ■ ■ ■ ■ □ ■ □ □
        //     done            4
        progress.is_done[number] = true;
        while progress.is_done.get(progress.done) == Some(&true) {
            progress.done += 1;
        }
        self.session.events.progress(Stage::Mirroring, progress.done, plan.names.len());
        if progress.done >= progress.saved + STEP
            && let Some(position) = self.reached(plan, progress, false)
        {
            progress.saved = progress.done;
            // The next step writes it again.
            if let Err(error) = self.keep(&position) {
                let text = with_causes(&*error.error);
                self.session
                    .events
                    .detail(&|| format!("cannot write how far the mirror is: {text}"));
            }
        }
    }

    /// Where the mirror is now; `None` if that is where it was, or nothing is written down.
    fn reached(&self, plan: &Plan, progress: &RunState, is_whole: bool) -> Option<MirrorPosition> {
        let mut position = plan.position.clone().filter(|_| !self.request.dry_run)?;
        // Read now, so that a mirror that is restored from a backup of a moment ago is found to be older than this.
        position.again.clone_from(&progress.again);
        position.there = self.target.generation();
        if !is_whole {
            // What has changed comes first. Until all of that is there, it is as it was.
            let last = progress.done.checked_sub(1).filter(|last| *last >= plan.changed)?;
            position.until = plan.names.get(last).cloned();
            position.running = true;
        }
        Some(position)
    }

    /// Copies a package.
    fn package(
        &self,
        name: &str,
        vouched: Option<&BTreeSet<String>>,
        is_careful: bool,
    ) -> Result<PackageCopy, CommandError> {
        names::check_name(name)?;
        let work = Work::begin(&self.session.events, name);
        let Route { provider, location, .. } = self.source;
        let location = Location { path: name.to_owned(), ..location.clone() };
        let Some(copier) = provider.copier() else { return Ok(PackageCopy::default()) };
        let mut done = PackageCopy::default();
        let Listing::Found(found) = provider.list(&location, None, &work)? else {
            self.session.events.warning(&Warning::GoneFromHub { name: name.to_owned() });
            return Ok(done);
        };
        // Unknown keys are copied, too, so these are no releases, which have only the known ones.
        let mut here: Vec<IndexLine> = read_json_lines(&found.lines).flatten().collect();
        for line in &mut here {
            tidied(name, line);
        }
        let there = self.target.lines(name)?;
        let package = PackageSource { copy: self, name, location: &location, copier, work: &work };
        // A version that fails keeps no other one from being copied.
        let mut placed = Vec::new();
        let mut published = false;
        for line in &here {
            let version = line_version(line);
            // The same version with another archive is none of ours to replace: a published version never changes.
            let is_vouched = vouched.is_some_and(|versions| versions.contains(&version));
            let result = match copy_of(line, &there) {
                Some(_) => {
                    done.present += 1;
                    let must_look = (is_careful || is_vouched) && !self.request.dry_run;
                    if must_look { package.catch_up(line) } else { Ok(()) }
                }
                None if there.iter().any(|other| is_version(other, &version)) => {
                    let message = "the mirror has another archive under this version";
                    Err(CommandError::new(Code::Conflict, message))
                }
                None => {
                    let copied = match self.request.dry_run {
                        true => Ok(None),
                        false => package.bring(line),
                    };
                    copied.map(|one| {
                        published |= one.is_none();
                        placed.extend(one);
                        done.copied
                            .push(Copied { name: name.to_owned(), version: version.clone() });
                    })
                }
            };
            if let Err(error) = result {
                let reason = with_causes(&*error.error);
                let (name, version) = (name.to_owned(), Some(version));
                done.code = Some(error.code);
                done.failed.push(CopyFailure { name, version, reason });
            }
        }
        done.changed = self.follow(name, &here, &there, &placed, published)?;
        Ok(done)
    }

    /// Publishes what was placed, and changes what can change of the versions that are there.
    fn follow(
        &self,
        name: &str,
        here: &[IndexLine],
        there: &[IndexLine],
        placed: &[PlacedVersion],
        published: bool,
    ) -> Result<Vec<Changed>, CommandError> {
        let writes = !self.request.dry_run;
        if let Some(hub) = self.target.hub_of_files().filter(|_| writes) {
            // A version that could not be placed, or that is there with another archive, is left as it is.
            let is_placed = |line: &IndexLine| {
                let version = line_version(line);
                placed.iter().any(|placed| placed.version() == version)
            };
            let wanted =
                here.iter().filter(|line| copy_of(line, there).is_some() || is_placed(line));
            let wanted: Vec<IndexLine> = wanted.cloned().collect();
            let followed = hub.follow(name, placed, &wanted)?;
            let changed = followed.changed.into_iter();
            return Ok(changed
                .map(|(version, keys)| Changed { name: name.to_owned(), version, keys })
                .collect());
        }
        let changed = follow(self.target, writes, name, here, there)?;
        // A server makes its own lines, from the archive.
        if published && writes {
            let there = self.target.lines(name)?;
            follow(self.target, writes, name, here, &there)?;
        }
        Ok(changed)
    }

    /// The name of the file with the position.
    fn file(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.source.location.root.to_string());
        for name in &self.scope {
            hasher.update(format!("\n{name}"));
        }
        if self.target.hub_of_files().is_none() {
            hasher.update(format!("\nto {}", self.target.name));
        }
        let digest = FileDigest::from_bytes(hasher.finalize().into()).to_string();
        format!("mirror-{}.json", digest.get(..16).unwrap_or(&digest))
    }

    /// Where the mirror is. A file that cannot be read counts as none: then everything is compared.
    fn known_position(&self) -> Result<Option<MirrorPosition>, CommandError> {
        // In the hub itself, it is restored from a backup together with the packages. A server has no place for it, and an OCI registry
        // has none either.
        let bytes = match self.target.hub_of_files() {
            Some(hub) => hub.read_owner_file(&self.file())?.map(|bytes| bytes.to_vec()),
            None => {
                fs::read_if_there(&self.session.environment.cache.join(IN_CACHE).join(self.file()))?
            }
        };
        let known = bytes.and_then(|bytes| serde_json::from_slice::<MirrorPosition>(&bytes).ok());
        // Of a mirror that is older than it was, nothing is known.
        let is_older = |known: &MirrorPosition| known.there > self.target.generation();
        Ok(known.filter(|known| {
            known.from == self.source.location.root.to_string() && !is_older(known)
        }))
    }

    fn keep(&self, position: &MirrorPosition) -> Result<(), CommandError> {
        if self.request.dry_run {
            return Ok(());
        }
        let mut text = serde_json::to_vec(position).expect("texts and numbers can be printed");
        text.push(b'\n');
        match self.target.hub_of_files() {
            Some(hub) => hub.write_owner_file(&self.file(), text.into())?,
            None => {
                let folder = self.session.environment.cache.join(IN_CACHE);
                fs::create_folder(&folder)?;
                fs::write_atomic(&folder.join(self.file()), &text)?;
            }
        }
        Ok(())
    }
}

/// A package at its hub.
struct PackageSource<'a> {
    copy: &'a HubCopy<'a>,
    name: &'a str,
    location: &'a Location,
    copier: &'a dyn Copier,
    work: &'a Work,
}

impl PackageSource<'_> {
    /// Brings a version: places it where mu writes files itself, else publishes it.
    fn bring(&self, line: &IndexLine) -> Result<Option<PlacedVersion>, CommandError> {
        let (copy, name, version) = (self.copy, self.name, line_version(line));
        let release = release_of(line)?;
        // The archive has the digest of the index line, or this fails. What cannot be found out about who vouches for it fails, too: a later
        // run would not look at the version again.
        let mut archive = Vec::new();
        self.work.doing(&format!("fetching {name} {version}"));
        self.copier.copy_archive(self.location, &release, &mut archive, self.work)?;
        let (evidence, provenance) = self.vouching(line, &release)?;
        let route = Route { location: self.location.clone(), ..copy.source.clone() };
        let upload = upload_of_line(&route, archive, line, name, None);
        self.work.doing(&format!("sending {name} {version}"));
        if let Some(hub) = copy.target.hub_of_files() {
            let publication = Publication { line: upload.line, archive: upload.archive.into() };
            let provenance = provenance.map(Into::into);
            let vouching = Vouching { evidence: evidence.into(), provenance };
            return Ok(Some(hub.place(&publication, &vouching)?));
        }
        copy.target.compare(copy.session, &upload)?;
        copy.target.publish(upload)?;
        self.vouch(&version, &evidence, provenance)?;
        Ok(None)
    }

    /// Copies what vouches for a version that is there.
    fn catch_up(&self, line: &IndexLine) -> Result<(), CommandError> {
        let (evidence, provenance) = self.vouching(line, &release_of(line)?)?;
        self.vouch(&line_version(line), &evidence, provenance)
    }

    /// Adds what vouches for a version to the mirror.
    fn vouch(
        &self,
        version: &str,
        evidence: &str,
        provenance: Option<Vec<u8>>,
    ) -> Result<(), CommandError> {
        let target = self.copy.target;
        if let Some(provenance) = provenance {
            target.add_provenance(self.name, version, provenance)?;
        }
        target.add_evidence(self.name, version, evidence)
    }

    /// What vouches for a version at its hub: lines of evidence, and what lies beside its archive.
    fn vouching(
        &self,
        line: &IndexLine,
        release: &Release,
    ) -> Result<(String, Option<Vec<u8>>), CommandError> {
        let provider = &self.copy.source.provider;
        let evidence = provider.evidence(self.location, release, self.work)?.to_evidence_text();
        // mu's own archives have none.
        let provenance = match line.contains_key("locator") {
            true => provider.provenance(self.location, release, self.work)?,
            false => None,
        };
        Ok((evidence, provenance))
    }
}

fn release_of(line: &IndexLine) -> Result<Release, CommandError> {
    Ok(serde_json::from_value(Value::Object(line.clone())).map_err(|error| {
        ProviderError::new(ErrorKind::Protocol, "its index line cannot be read").because(error)
    })?)
}
