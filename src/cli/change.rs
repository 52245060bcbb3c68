//! How a change of versions is printed: one line for each package, and a summary, then what it wrote into manifests and the lock, with one
//! line for each requirement. Programs get an [`Answer`], as of every command that chooses versions.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use anstyle::Style;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::lock::{LockedPackage, Requested, Source};
use crate::ops::diff::{Changelog, Difference};
use crate::ops::{AppMove, Change, EditInUse, Outcome, Written};
use crate::reference::{PackageId, Version};
use crate::report::{BAD, FAINT, GOOD, NOTICE, count};
use crate::select::{Because, Lowered};
use crate::workspace::Resolution;

/// Prints the answer of a command that chooses versions.
pub(crate) fn print_outcome(context: &Context, outcome: &Outcome) -> CommandExit {
    if context.shell.is_json() {
        return context.json(&Answer::new(outcome));
    }
    // With `--quiet`, a report of changes is not an answer, but the result of a dry run is.
    if context.shell.is_quiet() && !outcome.dry_run {
        return Ok(0);
    }
    let [faint, good, bad, notice] =
        [FAINT, GOOD, BAD, NOTICE].map(|style| context.shell.style(style));
    let marks = Marks {
        added: format!("{good}+{good:#} "),
        removed: format!("{bad}-{bad:#} "),
        moved: format!("{notice}~{notice:#} "),
    };
    let mut lines = String::new();
    let own = outcome.lock.packages.iter().filter(|package| package.source.is_workspace_folder());
    let own: BTreeMap<&PackageId, &str> =
        own.map(|package| (&package.id, package.version.as_str())).collect();
    let gone_down = gone_down(&outcome.changes);
    for change in &outcome.changes {
        let is_edited = || outcome.edits.iter().any(|edit| edit.id == change.id);
        let mark = match own.get(&change.id) {
            // What is edited here stays where it is, and others get this.
            Some(used) if change.to.as_deref() != Some(*used) && is_edited() => " in Mu.lock",
            Some(_) => " (workspace)",
            None => "",
        };
        let lowered = outcome.lowered.iter().find(|lowered| lowered.id == change.id);
        let reason = lowered.map(reason).unwrap_or_default();
        let reason = if reason.is_empty() { brought(outcome, change, &gone_down) } else { reason };
        let by = outcome.newly_replaced.iter().find(|(id, _)| *id == change.id);
        let reason = by.map_or(reason, |(_, by)| format!(" (replaced by {by})"));
        lines.push_str(&shown(context, change, &marks, faint));
        if !mark.is_empty() || !reason.is_empty() {
            // Writing to a text cannot fail.
            let _ = write!(lines, "{faint}{mark}{}{faint:#}", context.short(&reason));
        }
        lines.push('\n');
    }
    // If the lock knew less than the manifests, it does not show everything that a downgrade moved.
    let is_listed = |id: &PackageId| outcome.changes.iter().any(|change| change.id == *id);
    for lowered in outcome.lowered.iter().filter(|lowered| !is_listed(&lowered.id)) {
        let (id, from) = (lowered.id.clone(), Some(lowered.from.clone()));
        let change = Change::new(id, from, lowered.to.clone());
        let (change, reason) = (shown(context, &change, &marks, faint), reason(lowered));
        let _ = writeln!(lines, "{change}{faint}{}{faint:#}", context.short(&reason));
    }
    for (id, by) in outcome.newly_replaced.iter().filter(|(id, _)| !is_listed(id)) {
        let (name, by) = (context.name(id), context.name(by));
        let _ = writeln!(lines, "{bad}-{bad:#} {name} {faint}(replaced by {by}){faint:#}");
    }
    context.print(&lines)?;
    for line in written_lines(context, outcome) {
        context.shell.status(&line);
    }
    for edit in &outcome.edits {
        // The whole name, because there is a folder beside it.
        context.shell.status_in_full(&edit.to_string());
    }
    context.shell.status(&summary(outcome));
    Ok(0)
}

/// Reports packages that moved to another minor version of their app, and how to stay on the old one.
pub(crate) fn note_apps(context: &Context, outcome: &Outcome) {
    for AppMove { id, from, to } in &outcome.app_moves {
        let line: Vec<&str> = from.split('.').take(2).collect();
        let name = context.name(id);
        context.shell.status(&format!(
            "note: {name} packages {to} instead of {from}: `mu update {name} --app-version {}` stays with that",
            line.join(".")
        ));
    }
}

/// What stands between a version and the digest of its content.
const CONTENT: &str = " (h1:";

/// What stands before a package, in its colour.
struct Marks {
    added: String,
    removed: String,
    moved: String,
}

/// `+ id 1.0.0`, `- id 1.0.0`, `~ id 1.0.0 → 1.1.0`.
fn shown(context: &Context, change: &Change, marks: &Marks, faint: Style) -> String {
    let name = context.name(&change.id);
    let Marks { added, removed, moved } = marks;
    match change.before_and_after() {
        // Where nothing was locked, all lines are of this kind: formatting each takes much longer.
        (None, Some(to)) => [&**added, &*name, " ", &to].concat(),
        (Some(from), None) => format!("{removed}{name} {faint}{from}{faint:#}"),
        (Some(from), Some(to)) => {
            if let (Some((version, before)), Some((same, after))) =
                (from.split_once(CONTENT), to.split_once(CONTENT))
                && version == same
            {
                return format!(
                    "{moved}{name} {version} with other files {faint}(h1:{} →{faint:#} h1:{after}",
                    before.trim_end_matches(')')
                );
            }
            let steps: String = change.via.iter().map(|step| format!(" → {step}")).collect();
            format!("{moved}{name} {faint}{from}{steps} →{faint:#} {to}")
        }
        (None, None) => format!("  {name}"),
    }
}

/// Why a downgrade lowered or dropped a package: ` (1.3.0 needs acme/log 1.4.0)`.
fn reason(lowered: &Lowered) -> String {
    let from = &lowered.from;
    match &lowered.because {
        Some(Because::Needs(id, version)) => format!(" ({from} needs {id} {version})"),
        Some(Because::Asks(asked)) => format!(" ({from} needs {} {asked})", asked.id),
        Some(Because::Asked(by, asked)) => format!(" ({by} needs {} {asked})", asked.id),
        Some(Because::Capability(capability)) => {
            format!(" ({from} does not fit with what provides {capability} then)")
        }
        Some(Because::Conflicts(id)) => format!(" ({from} may not be chosen beside {id})"),
        None => " (nothing needs it any more)".to_owned(),
    }
}

/// The packages that went to a lower version, and that version.
fn gone_down(changes: &[Change]) -> HashMap<&str, Version> {
    let lower = |change: &Change| {
        let from = Version::parse(change.from.as_ref()?).ok()?;
        let to = Version::parse(change.to.as_ref()?).ok()?;
        (to < from).then_some(to)
    };
    changes.iter().filter_map(|change| Some((change.id.as_str(), lower(change)?))).collect()
}

/// Why a package is new, if it is new only because others went to lower versions:
/// ` (brought in because acme/b 1.1.0 requires it)`.
fn brought(outcome: &Outcome, change: &Change, gone_down: &HashMap<&str, Version>) -> String {
    if gone_down.is_empty() {
        return String::new();
    }
    let lowered = |by: &str| Some(format!("{by} {}", gone_down.get(by)?));
    let package = outcome.lock.find(&change.id).last().filter(|_| change.from.is_none());
    let requested = package.into_iter().flat_map(|package| &package.requested);
    let by: Option<BTreeSet<String>> = requested.map(|one| lowered(&one.by)).collect();
    match by.map(|by| by.into_iter().collect::<Vec<_>>()) {
        Some(by) if !by.is_empty() => {
            let requires = if by.len() == 1 { "requires" } else { "require" };
            format!(" (brought in because {} {requires} it)", by.join(" and "))
        }
        _ => String::new(),
    }
}

fn summary(outcome: &Outcome) -> String {
    let left_out = match outcome.left_out {
        0 => String::new(),
        1 => "; 1 is left out, which only devDependencies need".to_owned(),
        several => format!("; {several} are left out, which only devDependencies need"),
    };
    format!("{}{left_out}", what_was_done(outcome))
}

fn what_was_done(outcome: &Outcome) -> String {
    let packages =
        outcome.lock.packages.iter().filter(|package| !package.source.is_workspace_folder());
    let total = packages.count() - outcome.left_out;
    if outcome.dry_run {
        return format!("{} would be in use; nothing was written", count(total, "package"));
    }
    if outcome.frozen && !outcome.edited.is_empty() {
        return "with --frozen, nothing was chosen or installed, and Mu.lock was not changed: run `mu get`"
            .to_owned();
    }
    if outcome.made == 0 {
        return format!("up to date ({})", count(total, "package"));
    }
    let downloaded = outcome.counts.fetched.min(outcome.made);
    let rest = if total > outcome.made { format!(", {total} in all") } else { String::new() };
    format!(
        "installed {} ({downloaded} downloaded, {} from cache){rest}",
        count(outcome.made, "package"),
        outcome.made - downloaded,
    )
}

/// The text for a requirement that accepts any version.
const ANY: &str = "any version";

/// What was written, or would be written.
fn written_lines(context: &Context, outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> =
        outcome.written.iter().map(|written| line(context, outcome.dry_run, written)).collect();
    for path in &outcome.edited {
        // The change is in a comment, or in a line that is there only because other packages need it.
        let is_it = |written: &Written| written.manifest == *path && written.is_change();
        if !outcome.written.iter().any(is_it) {
            let wrote = if outcome.dry_run { "would write" } else { "wrote" };
            lines.push(format!("{wrote} {}", context.path_for_people(path)));
        }
    }
    if !outcome.kept.is_empty() {
        let all = outcome.kept.join(" ");
        let members = outcome.members_manifest.as_ref();
        let members = members.map(|file| format!("; `--save` also writes it into {file}"));
        let members = members.unwrap_or_default();
        lines.push(format!("kept in Mu.lock until `mu remove {all}`{members}"));
    }
    lines
}

/// `added web/tls ^1.1.0 to acme/api (Mu.yaml)`, `aws/ec2 ~1.0.6 → ~2.0.0 in Mu.yaml`,
/// `https://github.com/web/tls ^1 → ssh://git@github.com/web/tls ^1 in Mu.yaml`,
/// `removed web/tls from acme/api (Mu.yaml)`, `web/tls stays at ^1.1.0 in Mu.yaml; 2.0.0 exists`.
fn line(context: &Context, dry_run: bool, written: &Written) -> String {
    let Written { package, name, from, to, .. } = written;
    let list = if written.dev { ", devDependencies" } else { "" };
    let file = context.path_for_people(&written.manifest);
    let version = |spec: &str| if spec == "latest" { String::new() } else { format!(" {spec}") };
    let any = |spec: &str| if spec == "latest" { ANY.to_owned() } else { spec.to_owned() };
    let mut line = match (from, to) {
        (None, Some(to)) => {
            let added = if dry_run { "would add" } else { "added" };
            format!("{added} {name}{} to {package} ({file}{list})", version(to))
        }
        (Some(from), Some(to)) if written.former_name.is_some() => {
            let former = written.former_name.as_deref().unwrap_or_default();
            let would = if dry_run { "would write " } else { "" };
            format!("{would}{former}{} → {name}{} in {file}", version(from), version(to))
        }
        (Some(from), Some(to)) if from == to => format!("{name} stays at {} in {file}", any(to)),
        (Some(from), Some(to)) => {
            let would = if dry_run { "would write " } else { "" };
            format!("{would}{name} {} → {} in {file}", any(from), any(to))
        }
        (_, None) => {
            let removed = if dry_run { "would remove" } else { "removed" };
            format!("{removed} {name} from {package} ({file}{list})")
        }
    };
    if let Some(newer) = &written.newer {
        match &written.passed_over {
            Some(why) => line.push_str(&format!("; {why}")),
            None => line.push_str(&format!("; {newer} exists")),
        }
        if !written.held_back_by.is_empty() {
            line.push_str(&format!(", held back by {}", written.held_back_by.join(" and ")));
        }
    }
    line
}

/// The versions that were chosen, and how they differ from before.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer<'a> {
    /// The strategy: `highest` or `minimal`.
    resolution: &'a str,
    /// The packages, in the order of installing: each after those that it depends on, otherwise by id.
    packages: Vec<Package<'a>>,
    /// The requirements of the manifests and the command line, as `ID#SPEC`.
    requirements: &'a [String],
    /// The packages that were moved, added or removed, by id.
    changes: &'a [Change],
    /// Packages whose new version contains another minor version of their app; left out if there are none.
    #[serde(rename = "appMoves", skip_serializing_if = "<[AppMove]>::is_empty")]
    app_moves: &'a [AppMove],
    /// The replaced packages, by id.
    replaced: Vec<Replaced<'a>>,
    /// The changed requirements in manifests, and those that stay (`from` is `to`) although there is a newer release.
    #[serde(skip_serializing_if = "<[Written]>::is_empty")]
    written: &'a [Written],
    /// The references of this `mu get`: Mu.lock keeps these packages until `mu remove`.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    kept: &'a [String],
    /// The packages that only this machine uses instead of locked ones; left out if there are none.
    #[serde(skip_serializing_if = "<[EditInUse]>::is_empty")]
    edits: &'a [EditInUse],
    /// Packages that were fetched.
    fetched: usize,
    /// Packages that were already on this machine.
    reused: usize,
    /// With `--diff`, what changed in each of the packages.
    #[serde(skip_serializing_if = "<[Difference]>::is_empty")]
    pub(crate) diffs: &'a [Difference],
    /// With `--changelog`, what the authors of the packages say has changed.
    #[serde(skip_serializing_if = "<[Changelog]>::is_empty")]
    pub(crate) changelogs: &'a [Changelog],
    /// With the minimal strategy, the other packages that a downgrade lowered or dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    lowered: Option<Vec<Lowering<'a>>>,
}

/// A package that was chosen.
#[derive(Serialize, JsonSchema)]
struct Package<'a> {
    /// The package.
    id: &'a PackageId,
    /// Its version.
    version: &'a str,
    /// The channel that it was chosen from, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: &'a Option<String>,
    /// Where it comes from.
    source: &'a Source,
    /// Its commit (Git).
    commit: Option<&'a str>,
    /// The digest of its content, if that is known.
    digest: Option<String>,
    /// The digest of its content with the patch of the settings, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    patched: Option<String>,
    /// The digest of its archive, if it has one and that is known: `sha256:HEX`.
    archive: Option<String>,
    /// Where its archive is, if it has one and that is known without a request.
    url: Option<&'a str>,
    /// What requires it.
    requested: Vec<Asker<'a>>,
    /// The packages that it depends on.
    dependencies: Vec<&'a PackageId>,
    /// Whether a manifest or the command line requires it.
    direct: bool,
    /// Its folder, if it is installed.
    path: Option<Cow<'a, str>>,
}

/// One that requires a package.
#[derive(Serialize, JsonSchema)]
struct Asker<'a> {
    /// Its name.
    by: &'a str,
    /// What it requires.
    spec: &'a str,
    /// The package that it requires, if another one is used instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'a PackageId>,
}

/// A replaced package.
#[derive(Serialize, JsonSchema)]
struct Replaced<'a> {
    /// The package.
    id: &'a PackageId,
    /// Its replacement.
    by: &'a PackageId,
    /// Whether nobody has agreed to that yet, so that only a dry run or a question can show it; otherwise
    /// left out.
    #[serde(rename = "needsConsent", skip_serializing_if = "std::ops::Not::not")]
    needs_consent: bool,
}

/// A package that a downgrade lowered or dropped.
#[derive(Serialize, JsonSchema)]
struct Lowering<'a> {
    /// The package.
    id: &'a PackageId,
    /// Its version before.
    from: &'a str,
    /// Its version now; none if it was dropped.
    to: &'a Option<String>,
    /// Why it could not stay; none if nothing needs it any more.
    because: Option<Cause<'a>>,
}

/// Why a package could not stay.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Cause<'a> {
    /// It needs this version of another package.
    Needs {
        /// The other package.
        id: &'a PackageId,
        /// The version.
        version: &'a str,
    },
    /// It requires this of another package.
    Asks {
        /// The other package.
        id: &'a PackageId,
        /// What it requires.
        spec: String,
    },
    /// Something requires this of it.
    Asked {
        /// What requires it.
        by: &'a str,
        /// The required spec.
        spec: String,
    },
    /// It conflicts with another package.
    Conflicts {
        /// The other package.
        conflicts: &'a PackageId,
    },
    /// It does not fit with the new provider of a capability.
    Capability {
        /// The capability.
        capability: String,
    },
}

impl<'a> Answer<'a> {
    /// The JSON form of an outcome.
    pub(crate) fn new(outcome: &'a Outcome) -> Self {
        let lock = &outcome.lock;
        let order = lock.install_order().into_iter();
        let replaced = lock.replaced.iter();
        let is_minimal = lock.resolution == Resolution::Minimal.as_str();
        Self {
            resolution: &lock.resolution,
            packages: order.map(|at| Package::new(outcome, at, &lock.packages[at])).collect(),
            requirements: &outcome.requirements,
            changes: &outcome.changes,
            app_moves: &outcome.app_moves,
            replaced: replaced
                .map(|one| {
                    let needs_consent = outcome.unagreed.contains(&one.id);
                    Replaced { id: &one.id, by: &one.by, needs_consent }
                })
                .collect(),
            written: &outcome.written,
            kept: &outcome.kept,
            edits: &outcome.edits,
            fetched: outcome.counts.fetched,
            reused: outcome.counts.reused,
            diffs: &[],
            changelogs: &[],
            lowered: is_minimal.then(|| outcome.lowered.iter().map(Lowering::new).collect()),
        }
    }
}

impl<'a> Package<'a> {
    fn new(outcome: &'a Outcome, index: usize, package: &'a LockedPackage) -> Self {
        let lock = &outcome.lock;
        let own = package.requested.iter().map(|requested| Asker::new(requested, None));
        // Requirements on a package that it replaces apply to it.
        let replaced = lock.replaced.iter().filter(|replaced| replaced.by == package.id);
        let instead = replaced.flat_map(|replaced| {
            replaced.requested.iter().map(|requested| Asker::new(requested, Some(&replaced.id)))
        });
        let used = package.dependencies.iter().map(|id| lock.used_for(id));
        let mut dependencies = Vec::with_capacity(package.dependencies.len());
        dependencies.extend(used.filter(|id| **id != package.id));
        dependencies.sort();
        dependencies.dedup();
        Self {
            id: &package.id,
            version: &package.version,
            channel: &package.channel,
            source: &package.source,
            commit: package.commit.as_deref(),
            digest: package.digest.map(|digest| digest.to_string()),
            patched: package.patched.map(|digest| digest.to_string()),
            archive: package.archive.map(|digest| digest.to_string()),
            url: outcome.archives.get(&index).map(String::as_str),
            requested: own.chain(instead).collect(),
            dependencies,
            direct: outcome.is_direct(package),
            path: outcome.folders.get(&index).map(|folder| folder.to_string_lossy()),
        }
    }
}

impl<'a> Asker<'a> {
    fn new(requested: &'a Requested, of: Option<&'a PackageId>) -> Self {
        Self { by: &requested.by, spec: &requested.spec, of }
    }
}

impl<'a> Lowering<'a> {
    fn new(lowered: &'a Lowered) -> Self {
        let because = lowered.because.as_ref().map(|because| match because {
            Because::Needs(id, version) => Cause::Needs { id, version },
            Because::Asks(asked) => Cause::Asks { id: &asked.id, spec: asked.to_string() },
            Because::Asked(by, asked) => Cause::Asked { by, spec: asked.to_string() },
            Because::Capability(capability) => {
                Cause::Capability { capability: capability.to_string() }
            }
            Because::Conflicts(conflicts) => Cause::Conflicts { conflicts },
        });
        Self { id: &lowered.id, from: &lowered.from, to: &lowered.to, because }
    }
}
