//! `mirror`: copies packages of hubs into another hub, archives byte for byte, so that every lock that
//! names them holds there too.
//!
//! What is there already is not fetched again, so a run that broke off goes on where it ended. What can change of a published
//! version, changes there too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mu_provider::{Listing, Provider as _, Silent, Yanked};
use mu_provider_hub::{HubOptions, HubProvider};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::index::releases::{Position, Releases};
use crate::index::{Candidate, Route, Universe as _};
use crate::ops::explain::failure::unavailable;
use crate::ops::publication::publish::full_version;
use crate::ops::publication::target::{Target, Upload};
use crate::ops::requirements::Requirements;
use crate::ops::requirements::requester::Requester;
use crate::ops::solve::resolve::resolve_from;
use crate::ops::{Code, CommandError, Options, Scope, Session, Stage};
use crate::reference::{PackageId, Reference};
use crate::select::Update;

/// What is copied, and where to.
#[derive(Debug, Clone, Default)]
pub struct MirrorRequest {
    /// A reference.
    pub reference: String,
    /// The hub that is copied to.
    pub to: String,
    /// Whether what the package depends on is left out.
    pub no_deps: bool,
    /// Whether every version is copied, not only the one that would be chosen.
    pub all_versions: bool,
}

/// A version that was copied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Copied {
    /// The package's name at the hub.
    pub name: String,
    /// The version.
    pub version: String,
}

/// A version that was there, and has changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changed {
    /// The package's name at the hub.
    pub name: String,
    /// The version.
    pub version: String,
    /// What changed of it: `yanked`, `tags`, `movedTo`.
    pub keys: Vec<&'static str>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Mirrored {
    /// The hub.
    pub place: String,
    /// What was copied.
    pub copied: Vec<Copied>,
    /// How many versions were there already.
    pub present: usize,
    /// What was there, and has changed since.
    pub changed: Vec<Changed>,
    /// Packages that are in no hub, and stay where they are.
    pub elsewhere: Vec<PackageId>,
}

/// Copies a package, and what it depends on.
///
/// # Errors
///
/// When the package cannot be resolved or fetched, or the hub refuses it. What was copied before stays.
pub fn mirror(session: &Session, request: &MirrorRequest) -> Result<Mirrored, CommandError> {
    let target = Target::at(session, &request.to, false)?;
    let reference = Reference::parse(&request.reference)?;
    if reference.local().is_some() {
        let message = format!("`{reference}` is a folder, which no hub has");
        return Err(CommandError::new(Code::Usage, message).hint("`mu publish` puts it into one"));
    }
    // Without the workspace's own packages: a mirror has what registries have.
    let outside = Session::open(
        session.environment.clone(),
        Options { locked: false, frozen: false, ..session.options.clone() },
        Scope::Global,
        Arc::clone(&session.events),
    )?;
    let qualified = Reference::parse(&reference.qualified(&session.defaults()))?;
    let reference = if reference.base().is_some() { reference } else { qualified };
    let root = reference.id(&session.defaults());
    let mut requirements = Requirements::collect(&outside, vec![reference.to_string()])?;
    for asked in &mut requirements.asked {
        asked.by = Requester::Mirror;
    }
    let resolved = resolve_from(&outside, &requirements, Update::Nothing, Arc::default());
    let resolved = resolved.map_err(CommandError::without_ways_out)?;
    let mut versions: BTreeMap<PackageId, BTreeSet<String>> = BTreeMap::new();
    for package in &resolved.lock.packages {
        if !request.no_deps || package.id == root {
            versions.entry(package.id.clone()).or_default().insert(package.version.clone());
        }
    }
    let copying = Copying::new(&outside, &target, request);
    let mirrored = copying.run(versions);
    outside.save_index();
    mirrored
}

struct Copying<'a> {
    session: &'a Session,
    target: &'a Target,
    request: &'a MirrorRequest,
    provider: HubProvider,
    mirrored: Mirrored,
}

impl<'a> Copying<'a> {
    fn new(session: &'a Session, target: &'a Target, request: &'a MirrorRequest) -> Self {
        let downloads = session.environment.cache.join("downloads");
        let provider = HubProvider::new(HubOptions::new(session.http(), downloads));
        let mirrored = Mirrored { place: target.name.clone(), ..Mirrored::default() };
        Self { session, target, request, provider, mirrored }
    }

    fn run(
        mut self,
        versions: BTreeMap<PackageId, BTreeSet<String>>,
    ) -> Result<Mirrored, CommandError> {
        let mut needs: BTreeMap<PackageId, BTreeSet<PackageId>> = BTreeMap::new();
        let mut open: Vec<PackageId> = versions.keys().cloned().collect();
        let follows = self.request.all_versions && !self.request.no_deps;
        while let Some(id) = open.pop() {
            if needs.contains_key(&id) {
                continue;
            }
            let chosen = versions.get(&id).filter(|_| !self.request.all_versions);
            let needed = self.needed(&id, chosen)?;
            open.extend(needed.iter().filter(|_| follows).cloned());
            needs.insert(id, needed);
        }
        for (done, id) in in_order(&needs).into_iter().enumerate() {
            self.session.events.progress(Stage::Fetching, done, needs.len());
            let chosen = versions.get(id).filter(|_| !self.request.all_versions);
            self.package(id, chosen)?;
        }
        self.mirrored.copied.sort();
        self.mirrored.elsewhere.sort();
        Ok(self.mirrored)
    }

    /// The versions of a package that are copied: those in `chosen`, or all.
    fn versions(
        &self,
        id: &PackageId,
        chosen: Option<&BTreeSet<String>>,
    ) -> Result<(Arc<Releases>, Vec<Position>), CommandError> {
        let releases = self.session.index().releases(id);
        let releases = releases.map_err(|error| unavailable(self.session, error))?;
        let is_copied = |position: &Position| {
            let version = releases.version(*position).to_string();
            chosen.is_none_or(|chosen| chosen.contains(&version))
        };
        let positions = (0..releases.len()).filter(is_copied).collect();
        Ok((releases, positions))
    }

    /// What the versions of a package that are copied depend on.
    fn needed(
        &self,
        id: &PackageId,
        chosen: Option<&BTreeSet<String>>,
    ) -> Result<BTreeSet<PackageId>, CommandError> {
        let (releases, positions) = self.versions(id, chosen)?;
        let mut needed = BTreeSet::new();
        for position in positions {
            let (index, candidate) = (self.session.index(), Candidate::Release(position));
            let failed = |error| unavailable(self.session, error);
            let (route, _) = index.release(id, candidate).map_err(failed)?;
            if !route.provider.lines_are_complete() {
                break;
            }
            let requirements = index.requirements(&releases, candidate).map_err(failed)?;
            needed.extend(requirements.iter().map(|requirement| requirement.id.clone()));
        }
        Ok(needed)
    }

    /// Copies versions of a package.
    fn package(
        &mut self,
        id: &PackageId,
        chosen: Option<&BTreeSet<String>>,
    ) -> Result<(), CommandError> {
        let session = self.session;
        let (releases, positions) = self.versions(id, chosen)?;
        let (mut lines, mut copied): (Option<Lines>, Option<String>) = (None, None);
        for position in positions {
            let candidate = Candidate::Release(position);
            let release = session.index().release(id, candidate);
            let (route, release) = release.map_err(|error| unavailable(session, error))?;
            if !route.provider.lines_are_complete() {
                self.mirrored.elsewhere.push(id.clone());
                return Ok(());
            }
            let lines = match &mut lines {
                Some(lines) => lines,
                None => {
                    let there = self.target.lines(&route.location.path)?;
                    let here = self.lines(&route)?;
                    let changed = self.follow(&route.location.path, &here, &there)?;
                    self.mirrored.changed.extend(changed);
                    lines.insert(Lines { here, there })
                }
            };
            let version = releases.version(position).to_string();
            let line = lines.here.iter().find(|line| full_version(line) == version);
            let Some(line) = line else { continue };
            if copy_of(line, &lines.there).is_some() {
                self.mirrored.present += 1;
                continue;
            }
            self.version(&route, &release, line, &version)?;
            copied.get_or_insert_with(|| route.location.path.clone());
        }
        // A server makes lines of its own, of what is in the archive.
        if let (Some(name), Some(lines)) = (copied, lines) {
            let there = self.target.lines(&name)?;
            self.follow(&name, &lines.here, &there)?;
        }
        Ok(())
    }

    /// The index lines of a package as they are, with keys that are not known here.
    fn lines(&self, route: &Route) -> Result<Vec<Map<String, Value>>, CommandError> {
        let Listing::Found(found) = self.provider.list(&route.location, None, &Silent)? else {
            return Ok(Vec::new());
        };
        let lines = found.lines.split(|byte| *byte == b'\n');
        let mut lines: Vec<_> =
            lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let mut spoiled = None;
        for line in &mut lines {
            spoiled = tidied(&route.location.path, line).or(spoiled);
        }
        if let Some(error) = spoiled {
            self.session.events.warning(&format!("{error}; it is left out"));
        }
        Ok(lines)
    }

    fn version(
        &mut self,
        route: &Route,
        release: &mu_provider::Release,
        line: &Map<String, Value>,
        version: &str,
    ) -> Result<(), CommandError> {
        let name = route.location.path.clone();
        let mut archive = Vec::new();
        self.provider.copy_archive(&route.location, release, &mut archive, &Silent)?;
        let mut line = line.clone();
        line.remove("urls");
        line.insert("name".to_owned(), name.clone().into());
        let version = version.to_owned();
        let upload = Upload { name: name.clone(), version: version.clone(), line, archive };
        self.target.publish(upload)?;
        self.mirrored.copied.push(Copied { name, version });
        Ok(())
    }

    /// Makes what can change of versions that are `there` what it is `here` now; returns the versions, and what was changed
    /// of each.
    fn follow(
        &self,
        name: &str,
        here: &[Map<String, Value>],
        there: &[Map<String, Value>],
    ) -> Result<Vec<Changed>, CommandError> {
        let mut all = Vec::new();
        // A hub says of all versions alike where the package has moved.
        let moved_to = here.last().and_then(|line| line.get("movedTo")).and_then(Value::as_str);
        let mut has_moved = false;
        for line in here {
            let Some(copy) = copy_of(line, there) else { continue };
            let version = full_version(line);
            let mut keys = Vec::new();
            let yanked = yanked(line);
            if yanked != self::yanked(copy) {
                self.target.yank(name, &version, yanked.as_deref())?;
                keys.push("yanked");
            }
            let (wanted, known) = (tags(line), tags(copy));
            for tag in known.difference(&wanted) {
                self.target.tag(name, &version, tag, true)?;
            }
            for tag in wanted.difference(&known) {
                self.target.tag(name, &version, tag, false)?;
            }
            if wanted != known {
                keys.push("tags");
            }
            if moved_to != copy.get("movedTo").and_then(Value::as_str) {
                if !has_moved {
                    self.target.moved(name, &version, moved_to)?;
                }
                has_moved = true;
                keys.push("movedTo");
            }
            if !keys.is_empty() {
                all.push(Changed { name: name.to_owned(), version, keys });
            }
        }
        Ok(all)
    }
}

/// The index lines of a package, where it is copied from and where it is copied to.
struct Lines {
    here: Vec<Map<String, Value>>,
    there: Vec<Map<String, Value>>,
}

/// The line of the same version with the same archive.
fn copy_of<'l>(
    line: &Map<String, Value>,
    there: &'l [Map<String, Value>],
) -> Option<&'l Map<String, Value>> {
    let version = full_version(line);
    let copy = there.iter().find(|copy| full_version(copy) == version)?;
    copy.get("archive").filter(|archive| line.get("archive") == Some(archive)).map(|_| copy)
}

/// Makes a line of a hub that somebody else wrote one that hubs of mu take: why it was withdrawn is one line of text, and
/// what it moved to a package. Returns why it was none.
fn tidied(name: &str, line: &mut Map<String, Value>) -> Option<mu_hub::HubError> {
    if let Some(reason) = yanked(line).filter(|reason| !reason.is_empty()) {
        line.insert("yanked".to_owned(), reason.replace(char::is_control, " ").into());
    }
    let to = line.get("movedTo").and_then(Value::as_str)?;
    let error = mu_hub::check_moved_to(name, to).err()?;
    line.shift_remove("movedTo");
    Some(error)
}

/// Why a version was withdrawn, if it was.
fn yanked(line: &Map<String, Value>) -> Option<String> {
    let yanked = line.get("yanked").cloned().unwrap_or_default();
    serde_json::from_value(yanked).ok().and_then(|yanked: Yanked| yanked.reason())
}

fn tags(line: &Map<String, Value>) -> BTreeSet<&str> {
    let tags = line.get("tags").and_then(Value::as_array);
    tags.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The packages, each after those that it needs, as far as circles allow: a mirror that is cut off has nothing
/// whose dependencies it lacks.
fn in_order(needs: &BTreeMap<PackageId, BTreeSet<PackageId>>) -> Vec<&PackageId> {
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    for start in needs.keys() {
        // A package, and whether what it needs was put before it.
        let mut open = vec![(start, false)];
        while let Some((id, is_ready)) = open.pop() {
            if is_ready {
                order.push(id);
            } else if let Some((id, needed)) = needs.get_key_value(id)
                && seen.insert(id)
            {
                open.push((id, true));
                open.extend(needed.iter().rev().map(|id| (id, false)));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_comes_first() {
        let id = |name: &str| PackageId::parse(&format!("h.example/{name}")).expect("is an id");
        let needs: BTreeMap<PackageId, BTreeSet<PackageId>> =
            [("a", &["b", "d"][..]), ("b", &["c"]), ("c", &["b"]), ("d", &["away"])]
                .map(|(name, needed)| (id(name), needed.iter().map(|name| id(name)).collect()))
                .into();
        let order: Vec<&str> = in_order(&needs).into_iter().map(PackageId::name_str).collect();
        assert_eq!(order, ["c", "b", "d", "a"]);
    }
}
