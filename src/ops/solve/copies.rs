//! Packages that are one, could be taken for one, or take the place of one another.
//!
//! Two copies, such as an original and its mirrored copy, and ids that differ only in case: mu warns about them,
//! because nothing else would show it. It also says so if a chosen package is known by another name elsewhere, or has
//! moved.
//!
//! Whether a package may replace another one: its own manifest is not enough. The owner of the old package has agreed
//! if the new one is in the same namespace, or if the old index says that it has moved; the user agrees by a setting,
//! by an earlier `Mu.lock`, or by an answer now. Packages of the workspace need no consent. [`check`] refuses the rest.

use std::collections::BTreeSet;

use mu_formats::helm;
use mu_provider::{ArchiveDigest, Commit, Digest, Release};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::index::{Candidate, Index, Universe as _};
use crate::lock::{LockedPackage, Lockfile, ReplacedPackage};
use crate::ops::solve::record::Resolved;
use crate::ops::{Code, CommandError, OperationScope, Session, Warning};
use crate::reference::{Alias, PackageId, Version};
use crate::select::{Chosen, RootOrPackage, Selection};

/// A warning for each package that is in use twice, with two ids. The lock's packages are those of the selection, in its order; it
/// comes after `previous`.
pub(crate) fn copy_warnings(
    session: &Session,
    previous: &Lockfile,
    lock: &Lockfile,
    selection: &Selection,
) -> Vec<Warning> {
    let packages = lock.packages.iter().zip(&selection.packages);
    let seen = packages.map(|(package, chosen)| Seen::new(package, chosen.copy_of.as_deref()));
    let mut warnings = warnings(session, &seen.collect::<Vec<_>>());
    // What is locked already was counted when it was locked.
    if previous.packages.is_empty() {
        warnings.extend(unused_aliases(session));
    }
    warnings
}

/// A warning for each alias of the workspace that no name in its whole graph begins with.
fn unused_aliases(session: &Session) -> Vec<Warning> {
    let settings = &session.workspace.settings;
    let unused = settings.aliases.unused().filter(|alias| settings.aliases_here.contains(alias));
    let warning = |alias: &Alias| {
        let name = alias.from.trim_end_matches('/').to_owned();
        Warning::UnusedAlias { name }
    };
    unused.map(warning).collect()
}

/// A warning for each package that is locked twice, with two ids and the same content.
pub(crate) fn copies_in_lock(session: &Session, lock: &Lockfile) -> Vec<Warning> {
    let seen = lock.packages.iter().map(|package| Seen::new(package, None));
    warnings(session, &seen.collect::<Vec<_>>())
}

/// Whether two warnings are of the same two copies, whichever of them the index has told to be the original.
pub(crate) fn says_the_same(left: &Warning, right: &Warning) -> bool {
    match (left, right) {
        (Warning::Copies { one, two, .. }, Warning::Copies { one: other, two: another, .. }) => {
            (one, two) == (other, another) || (one, two) == (another, other)
        }
        _ => left == right,
    }
}

/// A package, and what tells whether another one is the same.
#[derive(Debug, Clone)]
struct Seen<'lock> {
    package: &'lock LockedPackage,
    /// The name of the package that it is a copy of.
    of: Option<&'lock str>,
    /// What names its content; nothing for packages of this machine.
    content: [Option<Content<'lock>>; 3],
}

/// What names the content of a package, compared as it is: this is looked at in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content<'lock> {
    Tree(Digest),
    Archive(ArchiveDigest),
    /// A commit, and the folder in it.
    Commit(&'lock Commit, &'lock str),
}

impl Content<'_> {
    /// A number that the same content has, and hardly any other.
    fn number(&self) -> u64 {
        let begin =
            |bytes: &[u8]| bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
        match self {
            Self::Tree(digest) => begin(digest.as_bytes()),
            Self::Archive(digest) => begin(digest.as_bytes()),
            Self::Commit(commit, _) => begin(commit.as_bytes()),
        }
    }
}

impl<'lock> Seen<'lock> {
    fn new(package: &'lock LockedPackage, of: Option<&'lock str>) -> Self {
        let LockedPackage { digest, archive, commit, folder, .. } = package;
        let folder = folder.as_deref().unwrap_or_default();
        let is_here = package.source.is_workspace_folder() || package.source.is_outside_folder();
        // Three names of content, because not every lock has all: an original and its mirrored copy may have only the
        // archive in common.
        let content = match is_here {
            true => [None; 3],
            false => [
                digest.map(Content::Tree),
                archive.map(Content::Archive),
                commit.as_ref().map(|commit| Content::Commit(commit, folder)),
            ],
        };
        Self { package, of, content }
    }

    fn content(&self) -> impl Iterator<Item = &Content<'lock>> {
        self.content.iter().flatten()
    }

    /// Whether two packages of the same last name have the same files.
    fn has_content_of(&self, other: &Self) -> bool {
        let leaf = |one: &Self| one.package.id.name().leaf().to_owned();
        self.content().any(|one| other.content().any(|other| one == other))
            && leaf(self) == leaf(other)
    }
}

fn warnings(session: &Session, seen: &[Seen<'_>]) -> Vec<Warning> {
    let mut found = differing_in_case(seen);
    let suspects = suspects(seen);
    // Few are left here, so each is compared with each.
    for (at, copy) in suspects.iter().enumerate() {
        for (other_at, other) in suspects.iter().enumerate() {
            let (one, two) = (&copy.package.id, &other.package.id);
            let is_copied = copy.of == Some(two.name_str()) && one != two;
            // Of two equal ones, each pair is reported once.
            let is_twin = at < other_at
                && one != two
                && other.of != Some(one.name_str())
                && (copy.of.is_some() && copy.of == other.of || copy.has_content_of(other));
            if is_copied || is_twin {
                found.extend(tell(session, copy.package, other.package));
            }
        }
    }
    found
}

/// The few packages that may be in use twice: comparing each with each other one takes too long.
fn suspects<'s, 'lock>(seen: &'s [Seen<'lock>]) -> Vec<&'s Seen<'lock>> {
    let copied: FxHashSet<&str> = seen.iter().filter_map(|one| one.of).collect();
    // This is looked at in every run, and in most of them nothing is there twice: so numbers are compared, instead of content.
    let mut known = FxHashSet::with_capacity_and_hasher(3 * seen.len(), FxBuildHasher);
    let numbers = seen.iter().flat_map(Seen::content).map(Content::number);
    let twice: FxHashSet<u64> = numbers.filter(|number| !known.insert(*number)).collect();
    if copied.is_empty() && twice.is_empty() {
        return Vec::new();
    }
    let is_one = |one: &&Seen<'lock>| {
        let is_copied = !copied.is_empty() && copied.contains(one.package.id.name_str());
        one.of.is_some()
            || is_copied
            || one.content().any(|content| twice.contains(&content.number()))
    };
    seen.iter().filter(is_one).collect()
}

/// Says that two packages are one, unless the settings say that one of them is meant as it is.
fn tell(session: &Session, copy: &LockedPackage, original: &LockedPackage) -> Option<Warning> {
    let aliases = &session.workspace.settings.aliases;
    if aliases.keeps(&copy.id) || aliases.keeps(&original.id) {
        return None;
    }
    let [one, two] = [copy, original].map(|package| (package.id.clone(), package.version.clone()));
    let written = session.index().written(&two.0).unwrap_or_else(|| two.0.to_string());
    Some(Warning::Copies { one, two, written })
}

/// A warning for packages whose ids differ only in case.
fn differing_in_case(seen: &[Seen<'_>]) -> Vec<Warning> {
    let mut found = Vec::new();
    // Of two such ids, one has a capital letter, which few have.
    let is_plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if seen.iter().all(|one| one.package.id.as_str().bytes().all(is_plain)) {
        return found;
    }
    let mut spelt: FxHashMap<String, &LockedPackage> = FxHashMap::default();
    for Seen { package, .. } in seen {
        let known = *spelt.entry(package.id.as_str().to_lowercase()).or_insert(package);
        if known.id != package.id {
            let (one, other) = (known.id.clone(), package.id.clone());
            found.push(Warning::DifferInCase { one, other });
        }
    }
    found
}

/// A warning that a chart has another name than its repository, by which Helm does not find it.
pub(crate) fn called_otherwise(package: &LockedPackage, release: &Release) -> Option<Warning> {
    let is_chart = release.format.as_deref() == Some(helm::FORMAT.name);
    let called = release.called.clone().filter(|_| is_chart)?;
    let (id, version) = (package.id.clone(), package.version.clone());
    Some(Warning::ChartCalled { id, version, called })
}

/// Reports that a package has moved, and who should act.
pub(crate) fn moved(chosen: &Chosen, to: PackageId) -> Warning {
    let packages = chosen.requested.iter().map(|demand| match &demand.by {
        RootOrPackage::Package(by) => Some(by.clone()),
        RootOrPackage::Root(_) => None,
    });
    // Whoever requires it in the workspace can act.
    let by = packages.collect::<Option<BTreeSet<_>>>().filter(|by| !by.is_empty());
    Warning::Moved { id: chosen.id.clone(), to, by }
}

/// Checks that somebody has agreed to each new replacement; `before` is the lock, which records earlier
/// consent. A dry run only reports how to agree, and returns the replacements without consent.
pub(crate) fn check(
    session: &Session,
    before: &Lockfile,
    resolved: &Resolved,
    dry_run: bool,
) -> Result<BTreeSet<PackageId>, CommandError> {
    let mut missing = BTreeSet::new();
    for replaced in &resolved.lock.replaced {
        if is_agreed(session, before, &resolved.lock, replaced) {
            continue;
        }
        let ReplacedPackage { id, by, .. } = replaced;
        if dry_run && session.options.yes {
            continue;
        }
        if dry_run {
            let (id, by, settings) = (id.clone(), by.clone(), settings_file(session));
            session.events.warning(&Warning::Unagreed { id, by, settings });
            missing.insert(replaced.id.clone());
            continue;
        }
        let text = format!("`{by}` would take the place of `{id}`");
        let is_answered = session.options.yes || {
            let who = asking(replaced);
            session
                .events
                .confirm(&format!("{text}, which {who}\n{}\nAllow it?", reasons(replaced)))
        };
        if !is_answered {
            return Err(refused(session, replaced, &text));
        }
    }
    Ok(missing)
}

/// The file that consent can be written into.
fn settings_file(session: &Session) -> &'static str {
    match session.scope {
        OperationScope::Workspace => "`.mu/workspace.yaml`",
        OperationScope::Global => "`~/.mu/config.yaml`",
    }
}

fn is_agreed(
    session: &Session,
    previous: &Lockfile,
    lock: &Lockfile,
    replaced: &ReplacedPackage,
) -> bool {
    let ReplacedPackage { id, by, .. } = replaced;
    // Each of these is enough. The last one may read an index, so it comes last.
    let is_known = previous.replacement(id).is_some_and(|before| before.by == *by);
    let is_own = lock.find(by).any(|package| package.source.is_workspace_folder());
    let settings = &session.workspace.settings;
    let is_allowed = settings.allow_replaces.get(id) == Some(by) || settings.lets_replace(by, id);
    is_known || is_own || is_allowed || have_one_owner(id, by) || has_moved(session, id, by)
}

/// Whether two packages are in one namespace of one registry. Names without a namespace have no common owner.
fn have_one_owner(one: &PackageId, other: &PackageId) -> bool {
    let namespace = one.name().namespace();
    one.base() == other.base() && namespace.is_some() && namespace == other.name().namespace()
}

/// Whether the index of `id` says that it has moved to `by`. An index that cannot be read does not.
fn has_moved(session: &Session, id: &PackageId, by: &PackageId) -> bool {
    let Ok(releases) = session.index().releases(id) else { return false };
    releases.all_details().any(|(_, details)| details.moved_to.as_ref() == Some(by))
}

/// `acme/shop and hub.mu.com/web require`.
fn asking(replaced: &ReplacedPackage) -> String {
    let mut names: Vec<&str> = replaced.requested.iter().map(|requested| &*requested.by).collect();
    names.sort_unstable();
    names.dedup();
    match names[..] {
        [] => "nothing requires".to_owned(),
        [one] => format!("{one} requires"),
        [one, other] => format!("{one} and {other} require"),
        [one, ..] => format!("{one} and {} others require", names.len() - 1),
    }
}

/// Why consent is needed.
fn reasons(ReplacedPackage { id, by, .. }: &ReplacedPackage) -> String {
    format!(
        "  the manifest of `{by}` says that it replaces `{id}`\n  \
         the index of `{id}` does not say that it has moved there, and the two are not in one namespace"
    )
}

fn refused(session: &Session, replaced: &ReplacedPackage, text: &str) -> CommandError {
    let ReplacedPackage { id, by, .. } = replaced;
    let file = settings_file(session);
    let who = asking(replaced);
    let message =
        format!("{text}, which {who}, and nobody has agreed to it\n{}", reasons(replaced));
    CommandError::new(Code::Untrusted, message)
        .hint(format!("to agree, add this to {file}: `allowReplaces: {{{id}: {by}}}`"))
        .hint("to agree this time, run the command again with `--yes`; Mu.lock remembers it")
        .hint(format!(
            "to use both, each under its own name, put this there: `allowReplaces: {{{id}: {id}}}`"
        ))
        .with_details(serde_json::json!({ "id": id.to_string(), "by": by.to_string() }))
}

/// Whether what was chosen is the copy of a locked commit that a mirror has: the same content, under the version of the commit or the one
/// that such a copy gets. The entry stays then, with its commit, by which the repository itself has it.
pub(super) fn is_copy(index: &Index, package: &LockedPackage, chosen: &Chosen) -> bool {
    let (Some(_), Some(digest)) = (&package.commit, package.digest) else { return false };
    let (None, Some(version)) = (&chosen.commit, &chosen.version) else { return false };
    let called = package.version_of_copy().and_then(|called| Version::parse(&called).ok());
    if package.parsed_version().as_ref() != Some(version) && called.as_ref() != Some(version) {
        return false;
    }
    let Some(candidate) = chosen.as_candidate() else { return false };
    let found = index.release(chosen.source(), candidate);
    found.is_ok_and(|(_, release)| release.digest == Some(digest.to_string()))
}

/// Whether the place of a locked package may have other content for its version, without breaking what it promises.
pub(super) fn is_replaceable(index: &Index, package: &LockedPackage) -> bool {
    let provider = index.providers().get(&package.source.provider);
    package.archive.is_some()
        && provider.is_ok_and(|provider| provider.facts().archives_are_content)
}

/// The archive that the place of a locked version has now, if it may have another one than the locked one; asks nobody.
pub(crate) fn archive_now(session: &Session, package: &LockedPackage) -> Option<ArchiveDigest> {
    let (index, place) = (session.index(), package.from.as_ref().unwrap_or(&package.id));
    if !is_replaceable(index, package) || !index.has_answered(place) {
        return None;
    }
    let at = index.releases(place).ok()?.position_of_version(&package.parsed_version()?)?;
    let (_, release) = index.release(place, Candidate::Release(at)).ok()?;
    release.archive.as_ref()?.parse().ok()
}
