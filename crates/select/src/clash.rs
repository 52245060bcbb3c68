//! Describes what cannot be had: a package of which no version is left (what it has, and what the rules exclude), and a
//! capability or replacement that conflicts, as facts. `diagnose` and the minimal strategy's check share this; `explain` puts it
//! into words.
//!
//! [`FoldedVersions`] are many versions in few words: `1.2.0 to 1.9.3 (14 versions)`.

use std::collections::BTreeMap;
use std::fmt;

use mu_manifest::reference::{PackageId, Version, VersionSpec};
use pubgrub::VersionSet;

use crate::candidates::Candidates;
use crate::conflict::{CapabilityClash, Clash, Fact, Requirer};
use crate::core::{FactGroup, GraphLink};
use crate::filters::Rejection;
use crate::node::{CapabilityIndex, Node, NodeKind, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::Requirement;
use crate::world::{CapabilityProvider, World, is_opponent};

/// Describes the package at `place`, of which `asked` leaves nothing; `wanted` are the versions that would
/// match if no rule excluded any.
pub(super) fn describe(
    world: &World<'_>,
    place: PackageIndex,
    asked: Vec<Vec<String>>,
    wanted: &PositionSet,
) -> Clash {
    let package = world.package(place);
    // Whatever else was asked for, an override takes only what it names.
    let asked = match package.used_override() {
        Some(by) => vec![vec![by.spec.to_string()]],
        None => asked,
    };
    let releases = &package.releases;
    let available = package.allowed.intersection(&PositionSet::position_range(0, releases.len()));
    let all = PositionSet::position_range(0, package.count());
    let barred = wanted.without(&package.allowed).intersection(&all);
    let tried = releases.tried().map(<[String]>::to_vec);
    let mut rejected = rejections(world, package, &barred);
    let is_there = !rejected.is_empty();
    // Nothing that was asked for is excluded, and yet there is nothing to choose from: then it is worth knowing why all
    // others are excluded.
    if rejected.is_empty() && available.is_empty() {
        rejected = rejections(world, package, &all.without(&package.allowed));
    }
    let mut prereleases = available.iter().map(|at| releases.version(at).is_prerelease());
    Clash {
        id: package.id.clone(),
        needed: None,
        similar: tried.iter().flat_map(|_| world.universe().similar(&package.id)).collect(),
        tried,
        nearest: nearest(package, &available, &asked),
        narrowed: narrowed(package, &available, &asked),
        notes: (asked.iter().flatten())
            .filter_map(|asked| three_numbers(asked))
            .map(|three| format!("a version has three numbers, such as {three}"))
            .collect(),
        source: None,
        available: FoldedVersions::fold_candidates(package, &available),
        only_prereleases: prereleases.all(|is_prerelease| is_prerelease),
        rejected,
        is_there,
        asked,
    }
}

/// More channels or app versions than this are not listed.
const GROUPS: usize = 5;

/// The channels or app versions that exist, if only one of these is required; the newest ones.
fn narrowed(
    package: &Candidates,
    available: &PositionSet,
    asked: &[Vec<String>],
) -> Vec<(String, FoldedVersions)> {
    // Only for one requirement in one wording: of several, each may have another channel.
    let [asked] = asked else { return Vec::new() };
    let [asked] = &asked[..] else { return Vec::new() };
    let Some(wish) = Requirement::parse(package.id.clone(), asked) else { return Vec::new() };
    let mut groups: Vec<(String, Vec<Position>)> = Vec::new();
    for position in available.iter() {
        // A version may be in several channels, and is then in the group of each.
        let mut words: Vec<String> = Vec::new();
        if wish.channel.is_some() {
            let channels = package.details(position).map(|details| &details.channels[..]);
            words.extend(channels.into_iter().flatten().map(|name| format!("in channel {name}")));
            if words.is_empty() {
                words.push("in no channel".to_owned());
            }
        } else if wish.app_version.is_some() {
            words.push(match package.candidate_app_version(position) {
                Some(version) => format!("(app version {version})"),
                None => "without an app version".to_owned(),
            });
        }
        for word in words {
            match groups.iter_mut().find(|(known, _)| *known == word) {
                Some((_, positions)) => positions.push(position),
                None => groups.push((word, vec![position])),
            }
        }
    }
    // Positions ascend, so the groups that were found last have the newest versions.
    let older = groups.len().saturating_sub(GROUPS);
    let newest = groups.into_iter().skip(older);
    let fold = |positions: Vec<Position>| {
        FoldedVersions::fold_candidates(package, &positions.into_iter().collect())
    };
    newest.map(|(word, positions)| (word, fold(positions))).collect()
}

/// The versions next to the required one, if only one thing is required.
fn nearest(package: &Candidates, available: &PositionSet, asked: &[Vec<String>]) -> Vec<String> {
    let [asked] = asked else { return Vec::new() };
    if package.used_override().is_some() {
        return Vec::new();
    }
    let [asked] = &asked[..] else { return Vec::new() };
    let Some(wish) = Requirement::parse(package.id.clone(), asked) else { return Vec::new() };
    // `>2 <1` has no place among the versions.
    if matches!(&wish.spec, VersionSpec::Range(range) if range.is_empty()) {
        return Vec::new();
    }
    if matches!(&wish.spec, VersionSpec::Tag(tag) if three_numbers(tag.as_str()).is_none()) {
        // No version is next to a name.
        return Vec::new();
    }
    let Some(end) = position_behind(package, &wish.spec) else { return Vec::new() };
    let above = available.intersection(&PositionSet::position_range(end, Position::MAX));
    let around = available.last_below(end).into_iter().chain(above.lowest_position());
    around.map(|position| package.candidate_label(position)).collect()
}

/// The first three of more numbers with dots in between: `1.0.0` of `1.0.0.0`.
pub(super) fn three_numbers(text: &str) -> Option<&str> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (end, _) = text.match_indices('.').nth(2)?;
    text.split('.').all(is_number).then(|| &text[..end])
}

/// The position after the version that a specification names first, which need not exist.
pub(super) fn position_behind(package: &Candidates, spec: &VersionSpec) -> Option<Position> {
    let wanted = named_first(spec)?;
    let versions = package.releases.versions();
    Some(versions.take_while(|version| *version <= wanted).count() as Position)
}

/// The version that a specification names first.
pub(super) fn named_first(spec: &VersionSpec) -> Option<Version> {
    // Of `>=1.2 <2`, that is `1.2`; of `^1.x`, it is `1`. Enough to say what is near, also for what no version matches.
    let text = spec.as_str().trim_start_matches(|c: char| !c.is_ascii_digit());
    let first = text.split([' ', ',', '|']).next().unwrap_or_default();
    let first = first.trim_end_matches(['x', 'X', '*', '.']);
    // A text with more numbers than a version has means its first three.
    let first = three_numbers(first).unwrap_or(first);
    Version::parse_lenient(first).ok()
}

/// Why versions are not candidates, grouped by reason.
fn rejections(
    world: &World<'_>,
    package: &Candidates,
    barred: &PositionSet,
) -> Vec<(Rejection, FoldedVersions)> {
    let mut by_reason: BTreeMap<Rejection, Vec<Position>> = BTreeMap::new();
    for position in barred.iter() {
        if let Some(rejection) = package.rejection(&world.request().settings, position) {
            by_reason.entry(rejection).or_default().push(position);
        }
    }
    by_reason
        .into_iter()
        .map(|(rejection, positions)| {
            (rejection, FoldedVersions::fold_candidates(package, &positions.into_iter().collect()))
        })
        .collect()
}

/// The fact of a group that starts or ends at a node without a package; `None` if it does neither.
pub(super) fn fact_of_supply(world: &World<'_>, group: &FactGroup) -> Option<Vec<Fact>> {
    // Which nodes the group leads from and to decides what it says. Some say nothing, because another fact says it.
    let GraphLink { from, to, .. } = group[0];
    let versions_of = |node: Node, positions: &PositionSet| {
        let package = world.package(world.place(node)?);
        Some(Requirer::versions(package, positions))
    };
    // The versions of what the group starts at, if there are any.
    let some =
        |positions: &PositionSet| versions_of(from, positions).filter(|_| !positions.is_empty());
    Some(match (world.kind(from), world.kind(to)) {
        (NodeKind::ProviderChoice(_), NodeKind::PackageRequirer(place)) => {
            vec![Fact::OnlyWhereAsked { id: world.package(*place).id.clone() }]
        }
        // What requires the package says so itself.
        (NodeKind::PackageRequirer(_), _) | (_, NodeKind::PackageRequirer(_)) => Vec::new(),
        (NodeKind::ProviderChoice(capability), _) => {
            let by = versions_of(to, &group.iter().map(|link| &link.set).collect());
            let capability = world.packages.capabilities.name(*capability).to_owned();
            by.into_iter().map(|by| Fact::Provides { by, capability: capability.clone() }).collect()
        }
        (NodeKind::Root, NodeKind::ProviderChoice(capability)) => {
            vec![stated_by_root(world, *capability, &group[0].set)]
        }
        (_, NodeKind::Opponent(name)) => {
            // The same node is reached by what wants it absent and by what is it, so the group may have both.
            let (opposing, being): (Vec<&GraphLink>, Vec<&GraphLink>) =
                group.iter().partition(|link| is_opponent(&link.set));
            // Their versions; a line names them all at once.
            let [opposing, being] = [opposing, being].map(|links| -> PositionSet {
                links.into_iter().map(|link| &link.positions).collect()
            });
            let mut facts = Vec::new();
            if from == Node::GRAPH_ROOT {
                facts.push(opposed_by_own(world, name));
            } else if let Some(by) = some(&opposing) {
                facts.push(opposes(world, by, name));
            }
            // The package itself is there because something requires it, which is stated elsewhere.
            let is_it =
                world.place(from).is_some_and(|at| world.package(at).id.as_str() == &**name);
            if let Some(by) = some(&being).filter(|_| !is_it) {
                facts.push(Fact::Provides { by, capability: name.to_string() });
            }
            facts
        }
        // Links that lead only to the package itself say which of its versions provide the capability; the others
        // require it.
        (_, NodeKind::ProviderChoice(capability)) => {
            let (mut providing, mut requiring) = (PositionSet::empty(), PositionSet::empty());
            let providers = world.packages.capabilities.providers(*capability);
            let own = world.place(from);
            let is_own_place = |index: Position| {
                let package = providers.get(index as usize).and_then(CapabilityProvider::package);
                package.is_some_and(|(place, _)| Some(place) == own)
            };
            for link in group {
                let is_own = link.set.iter().all(is_own_place);
                // An empty set is a requirement that nothing provides: all of nothing would be the package itself.
                let into =
                    if is_own && !link.set.is_empty() { &mut providing } else { &mut requiring };
                *into = into.union(&link.positions);
            }
            let name = world.packages.capabilities.name(*capability).to_owned();
            let provides = some(&providing);
            let provides = provides.map(|by| Fact::Provides { by, capability: name.clone() });
            let requires = some(&requiring);
            let requires = requires.map(|by| Fact::RequiresCapability { by, capability: name });
            provides.into_iter().chain(requires).collect()
        }
        _ => return None,
    })
}

/// The fact that something conflicts with a package or a capability.
pub(super) fn opposes(world: &World<'_>, by: Requirer, name: &str) -> Fact {
    // `c/v1/N` also reads like the id of a package. It is a capability if anything provides or requires it.
    let is_capability = world.packages.capabilities.find(name).is_some()
        || world.request().own.provides.contains_key(name);
    match PackageId::parse(name) {
        Ok(with) if !is_capability => Fact::Conflicts { by, with },
        _ => Fact::ConflictsWithProvider { by, capability: name.to_owned() },
    }
}

/// The fact that packages of the workspace conflict with a package or a capability.
pub(super) fn opposed_by_own(world: &World<'_>, name: &str) -> Fact {
    let by = world.request().own.conflicts.get(name).into_iter().flatten();
    let base = &world.request().settings.base;
    let by = Requirer::Roots(by.map(|id| id.short(base).to_owned()).collect());
    opposes(world, by, name)
}

/// The fact of a root about a capability: that it is required, or that a package of the workspace provides
/// it.
fn stated_by_root(world: &World<'_>, capability: CapabilityIndex, set: &PositionSet) -> Fact {
    let name = world.packages.capabilities.name(capability).to_owned();
    let providers = world.packages.capabilities.providers(capability);
    // With one provider alone, "requires it" and "is it" lead to the same set. Then it is told as a requirement.
    if let Some(CapabilityProvider::Local(id)) =
        set.lowest_position().and_then(|index| providers.get(index as usize))
        && set.len() == 1
        && providers.len() > 1
    {
        return Fact::Provides {
            by: Requirer::Roots(vec![id.short(&world.request().settings.base).to_owned()]),
            capability: name,
        };
    }
    required_by_own(world, &name)
}

/// The fact that packages of the workspace require a capability.
pub(super) fn required_by_own(world: &World<'_>, capability: &str) -> Fact {
    let by = world.own_requires.get(capability);
    let by = Requirer::Roots(by.into_iter().flat_map(|by| by.keys().cloned()).collect());
    Fact::RequiresCapability { by, capability: capability.to_owned() }
}

/// Describes a capability of which no provider is left.
pub(super) fn capability_clash(
    world: &World<'_>,
    node: Node,
    left: &PositionSet,
) -> Option<CapabilityClash> {
    let NodeKind::ProviderChoice(capability) = world.kind(node) else { return None };
    let is_provided = !world.packages.capabilities.providers(*capability).is_empty();
    left.is_empty().then(|| {
        describe_capability(world, world.packages.capabilities.name(*capability), is_provided)
    })
}

/// Describes a capability, with the packages that would provide it if no rule excluded them.
pub(super) fn describe_capability(
    world: &World<'_>,
    capability: &str,
    is_provided: bool,
) -> CapabilityClash {
    let provides = |package: &Candidates, position: Position| {
        let details = package.details(position);
        details.is_some_and(|details| details.facts.provides.iter().any(|one| one == capability))
    };
    let mut rejected = Vec::new();
    for package in world.packages.known.iter().filter(|_| !is_provided) {
        let all = PositionSet::position_range(0, package.count()).without(&package.allowed);
        let barred = all.iter().filter(|&position| provides(package, position)).collect();
        for (rejection, versions) in rejections(world, package, &barred) {
            rejected.push((package.id.clone(), rejection, versions));
        }
    }
    rejected.sort_by(|one, two| one.0.cmp(&two.0));
    CapabilityClash { capability: capability.to_owned(), is_provided, rejected }
}

/// More runs than this are counted, not named.
const RUNS: usize = 3;

/// Versions of one package, as runs without a relevant gap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldedVersions {
    /// The runs, ascending.
    pub runs: Vec<VersionRun>,
}

/// Versions in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRun {
    /// The lowest version.
    pub first: String,
    /// The highest version; the same as the lowest if there is one version.
    pub last: String,
    /// How many versions there are.
    pub count: usize,
}

impl FoldedVersions {
    /// Folds the versions at `positions`. Prereleases and versions that are not candidates do not interrupt a
    /// run.
    pub(super) fn fold_candidates(package: &Candidates, positions: &PositionSet) -> Self {
        let mut versions = Self::default();
        let mut previous: Option<Position> = None;
        for position in positions.iter() {
            // With 1.0, 1.1, 1.2-rc, 1.2 and 1.3, of which 1.1 is yanked, the versions 1.0, 1.2 and 1.3 are `1.0 to 1.3
            // (3 versions)`: what lies between could not be chosen anyway, or only if somebody asks for prereleases.
            // Revisions are in no order that a reader knows.
            let joined = previous.is_some_and(|previous| {
                (previous + 1..position).all(|between| is_silent(package, between))
                    && package.revision(position).is_none()
            });
            let name = package.candidate_label(position);
            match versions.runs.last_mut() {
                Some(run) if joined => {
                    run.last = name;
                    run.count += 1;
                }
                _ => versions.runs.push(VersionRun { first: name.clone(), last: name, count: 1 }),
            }
            previous = Some(position);
        }
        versions
    }

    /// How many versions there are.
    pub fn count(&self) -> usize {
        self.runs.iter().map(|run| run.count).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

impl VersionRun {
    /// A single version.
    pub(super) fn single_version(version: &str) -> Self {
        Self { first: version.to_owned(), last: version.to_owned(), count: 1 }
    }
}

/// Whether a run may skip the version at `position`.
fn is_silent(package: &Candidates, position: Position) -> bool {
    !package.allowed.holds(position)
        || package.version(position).is_some_and(|version| version.is_prerelease())
}

impl fmt::Display for VersionRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => formatter.write_str(&self.first),
            2 => write!(formatter, "{} and {}", self.first, self.last),
            count => write!(formatter, "{} to {} ({count} versions)", self.first, self.last),
        }
    }
}

impl fmt::Display for FoldedVersions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A single run more is named: that it is counted takes no less room.
        let named = if self.runs.len() > RUNS + 1 { RUNS } else { self.runs.len() };
        for (index, run) in self.runs[..named].iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{run}")?;
        }
        let rest: usize = self.runs[named..].iter().map(|run| run.count).sum();
        if rest > 0 { write!(formatter, " and {rest} other versions") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: &str, last: &str, count: usize) -> VersionRun {
        VersionRun { first: first.to_owned(), last: last.to_owned(), count }
    }

    #[test]
    fn folds_runs_and_counts_what_would_not_fit() {
        let few =
            FoldedVersions { runs: vec![run("1.0.0", "1.0.0", 1), run("1.2.0", "1.9.3", 14)] };
        assert_eq!(few.to_string(), "1.0.0, 1.2.0 to 1.9.3 (14 versions)");
        let many = (0..6).map(|major| run(&format!("{major}.0.0"), "", 1)).collect();
        assert_eq!(
            FoldedVersions { runs: many }.to_string(),
            "0.0.0, 1.0.0, 2.0.0 and 3 other versions"
        );
    }
}
