//! Describes a package of which no version is left: what it has, and what the rules exclude.

use std::collections::BTreeMap;

use mu_manifest::reference::{Version, VersionSpec};
use pubgrub::VersionSet;

use crate::candidates::Candidates;
use crate::conflict::Clash;
use crate::filters::Rejection;
use crate::fold::FoldedVersions;
use crate::node::PackageIndex;
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::Requirement;
use crate::world::World;

/// Describes the package at `place`, of which `asked` leaves nothing; `wanted` are the versions that would
/// match if no rule excluded any.
pub(super) fn describe(
    world: &World<'_>,
    place: PackageIndex,
    asked: Vec<Vec<String>>,
    wanted: &PositionSet,
) -> Clash {
    let package = world.package(place);
    let releases = &package.releases;
    let available = package.allowed.intersection(&PositionSet::position_range(0, releases.len()));
    let all = PositionSet::position_range(0, package.count());
    let barred = wanted.without(&package.allowed).intersection(&all);
    let tried = releases.tried().map(<[String]>::to_vec);
    let mut rejected = rejections(world, package, &barred);
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
pub(super) fn rejections(
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
