//! `audit`: what has changed about the locked packages since they were locked: withdrawn and changed versions, and advisories about them.
//!
//! Registries are asked about each package as `outdated` asks them, and feeds of advisories for all that they have: nothing says to a
//! feed which packages are in use. A feed that cannot be read is told beside what the others say, because "nothing found" would be wrong.
//! [`sarif`] writes the findings for code scanning, each at the line of Mu.lock that has the package.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use mu_formats::osv::Matched;
use mu_provider::threads::{at_once, into_inner, lock};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::fs;
use crate::index::releases::Releases;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::fetch::{ListedBy, TrustProblem, problems_now};
use crate::ops::explain::unavailable_error;
use crate::ops::graph::inventory::lock_in_use;
use crate::ops::session::advisories::{
    Feeds, FoundAdvisory, Ignored, ignored, name_of_feed, never_fetched, read_feed,
};
use crate::ops::session::error::in_one_line;
use crate::ops::session::shown::count;
use crate::ops::session::source::{PackagePlace, escaped};
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::PackageId;
use crate::workspace::settings::FeedPlace;
use crate::workspace::trust::settings_file;
use crate::workspace::{LOCK_FILE, repository_around};

/// What is wrong with the locked packages.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Audit {
    /// What was found, by package.
    pub findings: Vec<Finding>,
    /// What was found and does not count, as the settings say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<IgnoredFinding>,
    /// What could not be found out, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<Finding>,
    /// Where advisories come from.
    pub feeds: Vec<AuditedFeed>,
    /// With `--fix`: the packages that were moved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<AuditMove>,
    /// With `--fix`: what could be mended and was not, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmended: Vec<Unmended>,
}

/// A package that was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuditMove {
    /// The package.
    pub package: PackageId,
    /// Its version before.
    pub from: String,
    /// Its version now; `null` if it is not used any more.
    pub to: Option<String>,
}

/// A finding that a version would mend, and that is still there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unmended {
    /// The package.
    pub package: PackageId,
    /// The id of the finding.
    pub id: String,
    /// Why.
    pub why: String,
}

/// Something that is wrong with a locked package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Finding {
    /// The package.
    pub package: PackageId,
    /// Its locked version.
    pub version: String,
    /// The id of the advisory; of what its registry says, `yanked:ID`, `deprecated:ID`, `moved:ID`, `gone:ID` or `changed:ID`.
    pub id: String,
    /// The least version that mends it, if one is known.
    pub fixed: Option<String>,
    /// What is wrong.
    pub why: String,
    /// The feed that says so; none of what the registry says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed: Option<String>,
}

impl Finding {
    /// What is wrong at the registry of a package: no advisory says it, and no version is known to mend it.
    fn at_registry(kind: &str, package: PackageId, version: String, why: String) -> Self {
        let id = format!("{kind}:{package}");
        Self { package, version, id, fixed: None, why, feed: None }
    }
}

/// A finding that does not count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct IgnoredFinding {
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// The last day on which it does not count.
    pub until: String,
    /// Why it does not.
    pub reason: String,
}

/// A feed of advisories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditedFeed {
    /// Its place: a folder, a URL, or `hub`.
    pub name: String,
    /// The file of settings that names it.
    pub file: &'static str,
    /// How many advisories it has; `null` of hubs, which have none, and of a feed that could not be read.
    pub advisories: Option<usize>,
    /// Whether it is as it was when it was last fetched.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Audit {
    /// Whether no feed has advisories, so that none were looked for.
    pub fn lacks_feeds(&self) -> bool {
        self.feeds.iter().all(|feed| feed.advisories.is_none() && feed.error.is_none())
    }
}

/// What an audit has found, and the error with which it ends if something is wrong.
#[derive(Debug)]
pub struct Audited {
    /// What it has found.
    pub audit: Audit,
    /// The lock that it is about.
    pub lock: Arc<Lockfile>,
    /// Why it fails.
    pub failure: Option<CommandError>,
}

/// Looks for what is wrong with the locked packages.
pub fn audit(session: &Session) -> Result<Audited, CommandError> {
    let (lock_here, requirements) = lock_in_use(session)?;
    // Advisories are about all that is locked. Registries are asked about what comes from one: what the workspace itself has in a folder, nobody
    // could withdraw.
    // References in manifests may say more about the place of a package than its id.
    requirements.declare(session);
    let (mut audit, mut unread) = (Audit::default(), None);
    let feeds = read_feeds(session, &mut audit, &mut unread);
    let packages = lock_here.packages.iter();
    let packages: Vec<&LockedPackage> =
        packages.filter(|package| !package.source.is_authored_folder()).collect();
    let found = Mutex::new((Vec::new(), Vec::new()));
    at_once(session.network_jobs(), &packages, |package| {
        let (findings, undecided) = withdrawn(session, package)?;
        let mut found = lock(&found);
        found.0.extend(findings);
        found.1.extend(undecided);
        Ok::<(), CommandError>(())
    })?;
    session.save_index();
    let (mut withdrawn, undecided) = into_inner(found);
    audit.undecided = undecided;
    // Without the network nobody can say what is at a registry now.
    if !session.options.offline {
        let (changed, unasked) = changed(session, &lock_here)?;
        // That something is gone, its listing may have said already: not that of a repository, which lists no commits.
        let is_known = |new: &Finding| {
            let is_it = |old: &Finding| (&old.id, &old.version) == (&new.id, &new.version);
            withdrawn.iter().any(is_it)
        };
        let changed: Vec<Finding> = changed.into_iter().filter(|one| !is_known(one)).collect();
        withdrawn.extend(changed);
        audit.undecided.extend(unasked);
    }
    // What a registry says can wait, too: its id names the package, so that an ignore silences nothing else.
    for finding in withdrawn {
        let ignored = ignored(&session.advisories, &|id: &str| finding.id == id, None);
        add(session, &mut audit, finding, ignored);
    }
    for package in packages {
        for found in feeds.advisories_about(
            &PackagePlace::of_locked_content(session.index().providers(), package).advised(),
        )? {
            let finding = advised_against(package, &found);
            match found.matched {
                // Neither found nor ignored, so it is told on its own.
                Matched::Undecided(_) => audit.undecided.push(finding),
                Matched::Affected { .. } => {
                    let is_called = |id: &str| found.advisory.is_called(id);
                    add(
                        session,
                        &mut audit,
                        finding,
                        ignored(&session.advisories, &is_called, Some(&found)),
                    );
                }
            }
        }
    }
    audit.findings.sort();
    audit.ignored.sort();
    audit.undecided.sort();
    let failure = failure(&audit, unread);
    Ok(Audited { audit, lock: lock_here, failure })
}

/// Why an audit fails: for a feed that could not be read, before all that was found.
fn failure(audit: &Audit, unread: Option<CommandError>) -> Option<CommandError> {
    // It may have had more, and what was found elsewhere does not make up for that.
    if let Some(error) = unread {
        return Some(error);
    }
    if audit.findings.is_empty() {
        return None;
    }
    let packages: BTreeSet<&PackageId> = audit.findings.iter().map(|one| &one.package).collect();
    let findings = count(audit.findings.len(), "finding");
    let message = format!("{findings} about {}", count(packages.len(), "package"));
    let error = CommandError::new(Code::Untrusted, message);
    Some(error.hint("what does not matter here can wait: `audit: {ignore: {ID: \"until DATE, why\"}}` in `.mu/workspace.yaml`"))
}

/// Adds a finding: to those that count, unless it is ignored.
fn add(session: &Session, audit: &mut Audit, mut finding: Finding, ignored: Ignored<'_>) {
    match ignored {
        Ignored::No => audit.findings.push(finding),
        Ignored::Until(ignore) => audit.ignored.push(IgnoredFinding {
            finding,
            until: ignore.until.to_string(),
            reason: ignore.why.clone(),
        }),
        // Said, so that nobody takes it for news.
        Ignored::Ended(ignore) => {
            let words = format!(" (it was ignored until {}: {})", ignore.until, ignore.why);
            finding.why.push_str(&words);
            audit.findings.push(finding);
        }
        // A checkout hides nothing from the one who has cloned it.
        Ignored::NotByWorkspace(ignore) => {
            let (finding_id, file) = (finding.id.clone(), settings_file(ignore.named_by));
            session.events.warning(&Warning::NotSilenced { finding: finding_id, file });
            audit.findings.push(finding);
        }
    }
}

/// Reads all feeds, and notes of each what came of it.
fn read_feeds(session: &Session, audit: &mut Audit, unread: &mut Option<CommandError>) -> Feeds {
    let (mut feeds, http) = (Feeds::default(), session.http());
    // Offline, what was fetched before is all that there is, and the answer says so.
    let http = (!session.options.offline).then_some(&*http);
    for feed in session.advisories.named_feeds() {
        let (name, file) = (name_of_feed(feed), settings_file(feed.named_by));
        let mut shown =
            AuditedFeed { name: name.clone(), file, advisories: None, cached: false, error: None };
        let read = match read_feed(&session.advisories, feed, http) {
            Ok(None) if feed.place != FeedPlace::Hub => Err(never_fetched(&name)),
            read => read,
        };
        match read {
            Ok(Some(read)) => {
                shown.advisories = Some(read.advisories);
                shown.cached = read.is_kept;
                feeds.feeds.push(read);
            }
            Ok(None) => {}
            // The others are read all the same.
            Err(error) => {
                shown.error = Some(in_one_line(&*error.error));
                unread.get_or_insert(error);
            }
        }
        audit.feeds.push(shown);
    }
    feeds
}

/// What an advisory says of a locked package.
fn advised_against(package: &LockedPackage, found: &FoundAdvisory<'_>) -> Finding {
    let (fixed, why) = match &found.matched {
        Matched::Affected { fixed } => (fixed.clone(), String::new()),
        Matched::Undecided(why) => (None, format!(" ({why})")),
    };
    let summary = found.advisory.summary.as_deref().unwrap_or("no summary");
    Finding {
        package: package.id.clone(),
        version: package.version.clone(),
        id: found.advisory.id.clone(),
        fixed,
        why: format!("{summary}{why}"),
        feed: Some(found.feed.name.clone()),
    }
}

/// What is no longer what was locked, or not there, or not signed as the rules ask, and what cannot be found out about that.
fn changed(
    session: &Session,
    lock: &Lockfile,
) -> Result<(Vec<Finding>, Vec<Finding>), CommandError> {
    let (_, problems) = problems_now(session, lock, ListedBy::Index, &|_| true)?;
    let (mut found, mut unasked) = (Vec::new(), Vec::new());
    for problem in problems {
        let (kind, findings) = match (problem.is_gone(), problem.is_untrusted()) {
            (true, _) => ("gone", &mut found),
            (_, true) => ("changed", &mut found),
            _ => ("unasked", &mut unasked),
        };
        let TrustProblem { id, version, why, .. } = problem;
        findings.push(Finding::at_registry(kind, id, version, why));
    }
    Ok((found, unasked))
}

/// What the registry of a package says against it now, and what cannot be found out.
fn withdrawn(
    session: &Session,
    package: &LockedPackage,
) -> Result<(Vec<Finding>, Vec<Finding>), CommandError> {
    let finding = |kind: &str, why: String| {
        Finding::at_registry(kind, package.id.clone(), package.version.clone(), why)
    };
    // What somebody has put on this machine by hand has no registry that could say something.
    if package.source.is_pack() || package.source.is_placed_pack() {
        return Ok((Vec::new(), Vec::new()));
    }
    // Where an override leads to another package, that one is in use.
    let id = package.from.as_ref().unwrap_or(&package.id);
    let releases = match session.index().listed_releases(id) {
        Ok(releases) => releases,
        Err(error) => {
            let error = unavailable_error(session, error);
            let why = in_one_line(&*error.error);
            return match error.code {
                Code::NotFound => Ok((vec![finding("gone", why)], Vec::new())),
                Code::Offline => Ok((Vec::new(), vec![finding("offline", why)])),
                _ => Err(error),
            };
        }
    };
    Ok((said(package, &releases, &finding), Vec::new()))
}

/// What a registry says of a locked version in its listing.
fn said(
    package: &LockedPackage,
    releases: &Releases,
    finding: &dyn Fn(&str, String) -> Finding,
) -> Vec<Finding> {
    let with_words = |what: &str, words: &str| match words {
        "" => what.to_owned(),
        words => format!("{what}: {words}"),
    };
    // A package may be several of these at once: moved, and yanked in this version.
    let mut found = Vec::new();
    // That it has moved stands in its newest line, whatever version is locked.
    let last = releases.len().checked_sub(1).and_then(|last| releases.details(last));
    if let Some(to) = last.and_then(|details| details.moved_to.as_ref()) {
        found.push(finding("moved", format!("the package has moved to {to}")));
    }
    // Without a version, there is no line that could say something about it.
    let Some(version) = package.parsed_version().filter(|_| package.is_versioned()) else {
        return found;
    };
    let Some(position) = releases.position_of_version(&version) else {
        // A commit, a branch and a digest are listed nowhere.
        if package.revision().is_none() {
            let why = "the registry does not list this version any more".to_owned();
            found.push(finding("gone", why));
        }
        return found;
    };
    let details = releases.details(position);
    if let Some(words) = details.and_then(|details| details.yanked.as_deref()) {
        found.push(finding("yanked", with_words("the version was withdrawn", words)));
    }
    if let Some(words) = details.and_then(|details| details.deprecated.as_deref()) {
        let what = "its authors do not look after it any more";
        found.push(finding("deprecated", with_words(what, words)));
    }
    found
}

/// Where the format is described.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The longest text of a rule that code scanning shows.
const LONGEST_TEXT: usize = 1_024;

/// The findings as SARIF; `version` is that of this program.
pub fn sarif(session: &Session, audited: &Audited, version: &str) -> Result<Value, CommandError> {
    let folder = session.lock_folder();
    let text = fs::read_text_if_there(&folder.join(LOCK_FILE))?.unwrap_or_default();
    // Paths are relative to the root of the repository, which is where code scanning looks for them.
    let above = repository_around(folder).and_then(|root| folder.strip_prefix(root).ok());
    let above = above.into_iter().flat_map(|path| path.components());
    let above = above.map(|part| escaped(&part.as_os_str().to_string_lossy()) + "/");
    let file = above.collect::<String>() + LOCK_FILE;
    // A rule is what several results may be about: an advisory, or what a registry says of a package.
    let mut rules: BTreeMap<&str, &Finding> = BTreeMap::new();
    for finding in &audited.audit.findings {
        rules.entry(&finding.id).or_insert(finding);
    }
    let results = audited.audit.findings.iter().map(|finding| {
        let Finding { package, version, id, fixed, why, .. } = finding;
        let fixed = fixed.as_ref().map(|fixed| format!(" Fixed in {fixed}.")).unwrap_or_default();
        let print = Sha256::digest(format!("{id}\n{package}\n{version}"));
        let print: String = print.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({
            "ruleId": id,
            "ruleIndex": rules.keys().position(|rule| rule == id),
            "level": level(finding),
            "message": { "text": format!("{package} {version}: {why}.{fixed}") },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": file },
                "region": { "startLine": line_of(&text, finding) },
            } }],
            "partialFingerprints": { "finding/v1": print },
        })
    });
    let results: Vec<Value> = results.collect();
    let described = rules.iter().map(|(id, finding)| {
        let why: String = finding.why.chars().take(LONGEST_TEXT).collect();
        json!({
            "id": id,
            "shortDescription": { "text": why },
            "defaultConfiguration": { "level": level(finding) },
            "properties": { "tags": ["security"] },
        })
    });
    let described: Vec<Value> = described.collect();
    // A feed that could not be read is no result, and must not look like none.
    let unread = audited.audit.feeds.iter().filter_map(|feed| {
        let text = format!("{}: {}", feed.name, feed.error.as_ref()?);
        Some(json!({ "level": "error", "message": { "text": text } }))
    });
    let unread: Vec<Value> = unread.collect();
    Ok(json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "mu", "version": version, "rules": described } },
            "invocations": [{
                "executionSuccessful": unread.is_empty(),
                "toolExecutionNotifications": unread,
            }],
            "results": results,
        }],
    }))
}

/// How serious a finding is.
fn level(finding: &Finding) -> &'static str {
    match finding.id.split_once(':').map(|(kind, _)| kind) {
        Some("deprecated" | "moved") => "warning",
        _ => "error",
    }
}

/// The line of a lock, counted from 1, that has the id of a package whose version is in its entry.
fn line_of(lock: &str, finding: &Finding) -> usize {
    let (id, version) = (finding.package.as_str(), &*finding.version);
    let is_entry = |line: &str| line.trim_start().starts_with("- ");
    let is_value = |line: &str, value: &str| {
        let text = line.trim_start_matches([' ', '-']).split_once(": ").map(|(_, text)| text);
        text.is_some_and(|text| text.trim_matches(['"', '\'']) == value)
    };
    let mut first = None;
    let lines: Vec<&str> = lock.lines().collect();
    for (number, _) in lines.iter().enumerate().filter(|(_, line)| is_value(line, id)) {
        first = first.or(Some(number));
        let entry = lines[number + 1..].iter().take_while(|line| !is_entry(line));
        if entry.into_iter().any(|line| is_value(line, version)) {
            return number + 1;
        }
    }
    first.map_or(1, |number| number + 1)
}
