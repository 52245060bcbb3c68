//! The border between the data of registries and the types of mu.
//!
//! Index lines become heads (for the cache), releases (for selection) and requirements. An invalid line is a
//! version that cannot be used, not a package that cannot.

use std::ops::Range;
use std::sync::Arc;

use mu_provider::{Dependency, ErrorKind, Found, ProviderError, Release, split_lines};
use schemars::JsonSchema;
use serde::Serialize;

use crate::index::cache::{Fetched, Label, Learned, LineHead, LineSpan, Listing, ListingLines};
use crate::manifest::Capability;
use crate::manifest::facts::fixed_part;
use crate::reference::{
    Base, Defaults, PackageId, Reference, ReferenceError, Version, VersionSpec,
};
use crate::select::Requirement;
use crate::select::releases::{ChosenFacts, Details, Entry, Upgrade, plain};

/// Sorts the lines of a listing, ascending by version; those that are not versions come last.
pub(super) fn fetched(found: &Found) -> Result<Vec<Fetched>, ProviderError> {
    let mut sorted: Vec<(Option<Version>, Range<usize>, Fetched)> = line_ranges(&found.lines)
        .filter_map(|range| {
            let line = found.lines.get(range.clone())?;
            let release = read(std::str::from_utf8(line).ok()?).ok()?;
            let version = version_of(&release, found.location.lenient);
            let head = LineHead {
                version: version_label(version.as_ref()),
                composite: is_composite(&release),
                detailed: has_details(&release),
                published: release.published.as_deref().and_then(seconds),
                commit: known_by(&release).map(Box::from),
                line: LineSpan::fetched(range.clone()),
            };
            Some((version, range, Fetched { head, needs: needs(release.dependencies) }))
        })
        .collect();
    // The sort is stable, so that of two lines for one version the first stays first.
    sorted.sort_by(|(left, ..), (right, ..)| match (left, right) {
        (Some(left), Some(right)) => left.cmp(right),
        (left, right) => right.is_some().cmp(&left.is_some()),
    });
    let mut doubled = Ok(());
    sorted.dedup_by(|(later, other, _), (first, one, _)| {
        let is_same = later.is_some() && later == first;
        if let (true, Ok(()), Some(version)) = (is_same, &doubled, first) {
            doubled = agree(found, version, [one, other]);
        }
        is_same
    });
    doubled.map(|()| sorted.into_iter().map(|(.., fetched)| fetched).collect())
}

/// Reads a line. If it cannot be read and still says a version, that is one that nobody can use, and that is not
/// passed over in silence.
fn read(line: &str) -> Result<Release, serde_json::Error> {
    serde_json::from_str(line).or_else(|error| {
        let outline = outline(line);
        outline.map(|release| Release { unusable: Some(reason(&error)), ..release }).ok_or(error)
    })
}

fn reason(error: &serde_json::Error) -> String {
    format!("its index line cannot be read: {error}")
}

/// What a line says of its version.
fn outline(line: &str) -> Option<Release> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Outline {
        version: String,
        app_version: Option<String>,
        versioning: Option<String>,
        versions: Option<String>,
    }
    let Outline { version, app_version, versioning, versions } = serde_json::from_str(line).ok()?;
    Some(Release { version, app_version, versioning, versions, ..Release::default() })
}

/// Whether two lines for one version have the same content, apart from changeable keys.
fn agree(found: &Found, version: &Version, lines: [&Range<usize>; 2]) -> Result<(), ProviderError> {
    let read = |range: &Range<usize>| found.lines.get(range.clone());
    let [one, other] = lines.map(|range| {
        let release = serde_json::from_slice::<Release>(read(range).unwrap_or_default());
        release.unwrap_or_default()
    });
    // In a repository, commits define the content, and two tags can be one version.
    let is_in_repository = commit_of(&one).is_some() || commit_of(&other).is_some();
    if is_in_repository || fixed_part(&one) == fixed_part(&other) {
        return Ok(());
    }
    let digest_of = |release: &Release| match (&release.digest, &release.archive) {
        _ if one.digest == other.digest && one.archive == other.archive => None,
        (Some(digest), _) if one.digest != other.digest => Some(digest.clone()),
        (_, Some(archive)) => Some(archive.clone()),
        (digest, None) => Some(digest.clone().unwrap_or_else(|| "no digest".to_owned())),
    };
    let how = match (digest_of(&one), digest_of(&other)) {
        (Some(one), Some(other)) => format!("once as {one}, and once as {other}"),
        _ => "with different dependencies or other facts".to_owned(),
    };
    let place = found.location.describe();
    let message = format!("the index at `{place}` lists {version} twice: {how}");
    Err(ProviderError::new(ErrorKind::Integrity, message).hint(
        "a published version never changes: whoever runs the registry has to remove the wrong line",
    ))
}

/// The cached form of a listing with the lines `fetched`.
pub(super) fn learned(checked: i64, found: &Found, fetched: &[Fetched]) -> Learned {
    let (validator, lines) = (found.validator.as_deref(), (fetched, &*found.lines));
    Learned::from_listing(checked, found.max_age, validator, &found.location, lines)
}

/// A version in short form, if that loses nothing.
pub(super) fn version_label(version: Option<&Version>) -> Label {
    let Some(version) = version else { return Label::Text("".into()) };
    plain(version).map_or_else(|| Label::Text(version.to_string().into()), Label::Plain)
}

/// The references of dependencies that are nothing else.
fn needs(dependencies: Option<Vec<Dependency>>) -> Option<Vec<String>> {
    let references = dependencies?.into_iter().map(|dependency| match dependency {
        Dependency::Reference(reference) => Some(reference),
        Dependency::Detailed(_) => None,
    });
    references.collect()
}

fn line_ranges(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    split_lines(bytes).filter_map(move |line| {
        let range = start..start + line.len();
        start = range.end + 1;
        (!line.trim_ascii().is_empty()).then_some(range)
    })
}

/// The release that a line describes.
pub(super) fn release(lines: &ListingLines, line: LineSpan) -> Result<Release, serde_json::Error> {
    let bytes = lines.read(line).map_err(serde::de::Error::custom)?;
    // Checked once, rather than string by string.
    let text = std::str::from_utf8(&bytes).map_err(serde::de::Error::custom)?;
    read(text)
}

/// The listing's versions for selection: the heads up to the first that is not a version. Times of
/// publication are left out unless they matter.
pub(super) fn entries(id: &PackageId, listing: &Listing, dated: bool) -> Vec<Entry> {
    let entries = listing.heads().map_while(|head| {
        let details = || Arc::new(details_at(id, &listing.lines, head.line));
        Some(Entry {
            version: parse_head(&head)?,
            published: head.published.filter(|_| dated),
            commit: head.commit.as_deref().map(Arc::from),
            details: head.detailed.then(details),
        })
    });
    entries.collect()
}

/// The format of a listing, if it is of a package of another ecosystem, judged by its first line.
pub(super) fn format_of_listing(listing: &Listing) -> Option<String> {
    let first = listing.heads().next()?;
    let line = release(&listing.lines, first.line).ok()?;
    line.format.filter(|format| format != mu_formats::GIT)
}

fn parse_head(head: &LineHead) -> Option<Version> {
    match &head.version {
        Label::Plain([major, minor, patch]) if !head.composite => {
            let [major, minor, patch] = [*major, *minor, *patch].map(u64::from);
            Some(semver::Version::new(major, minor, patch).into())
        }
        Label::Plain(_) => None,
        Label::Text(text) if text.is_empty() => None,
        Label::Text(text) if head.composite => Version::parse_composite(text).ok(),
        // Cached lines were accepted once; so were the versions of a lenient registry.
        Label::Text(text) => Version::parse_lenient(text).ok(),
    }
}

pub(super) fn details_at(id: &PackageId, lines: &ListingLines, line: LineSpan) -> Details {
    match release(lines, line) {
        Ok(release) => details(id, &release),
        Err(error) => Details { broken: Some(reason(&error)), ..Details::default() },
    }
}

/// The rare details of a line, or of a manifest in the same form.
pub(crate) fn details(id: &PackageId, release: &Release) -> Details {
    let folder = authors_folder(release).map(|folder| {
        format!("it depends on the folder `{folder}`, which is on its author's machine")
    });
    Details {
        yanked: release.yanked.reason(),
        broken: release.unusable.clone().or(folder),
        app_version: release.app_version.clone(),
        api_version: release.api_version.clone(),
        deprecated: release.deprecated.reason(),
        channels: release.channels.clone(),
        default_channel: release.default_channel.clone(),
        tags: release.tags.clone(),
        facts: chosen_facts(id, release),
        origin: release.origin.clone(),
        moved_to: moved_to(id, release),
        upgrade: (release.upgrade.iter()).map(|one| upgrade(one, is_composite(release))).collect(),
    }
}

/// The type of a fact that a line has as `Line`.
trait LineFact<Line>: Sized {
    /// The fact; `named` is the package that a text names in the line.
    fn read(line: &Line, named: &dyn Fn(&str) -> Option<PackageId>) -> Self;
}

impl<T: Clone> LineFact<T> for T {
    fn read(line: &T, _named: &dyn Fn(&str) -> Option<PackageId>) -> Self {
        line.clone()
    }
}

impl LineFact<Vec<String>> for Vec<PackageId> {
    fn read(line: &Vec<String>, named: &dyn Fn(&str) -> Option<PackageId>) -> Self {
        line.iter().filter_map(|text| named(text)).collect()
    }
}

macro_rules! facts_of_lines {
    ($($(#[$about:meta])* $key:literal $field:ident: $kind:ty,)*) => {
        /// What a line says of its version that a lock keeps, too.
        pub(super) fn chosen_facts(id: &PackageId, release: &Release) -> ChosenFacts {
            let defaults = inherited(id);
            let named = |text: &str| Some(Reference::parse(text).ok()?.id(&defaults));
            let facts = ChosenFacts { $($field: LineFact::read(&release.$field, &named),)* };
            let conflicts = facts.conflicts.iter();
            let conflicts = conflicts.filter_map(|text| Some(conflicting(text, &named(text)?)));
            ChosenFacts { conflicts: conflicts.flatten().collect(), ..facts }
        }

        /// Whether a line says any of these.
        fn states_facts(release: &Release) -> bool {
            fn is_stated<Line: Default + PartialEq>(line: &Line) -> bool {
                *line != Line::default()
            }
            $(is_stated(&release.$field))||*
        }
    };
}

mu_select::chosen_facts! { facts_of_lines! {} }

fn upgrade(upgrade: &mu_provider::Upgrade, is_composite: bool) -> Upgrade {
    let range = upgrade.skip_range.as_deref();
    // Only a package whose versions leave numbers out can have such a version here.
    let lenient = |text: &str| Version::parse_lenient(text).ok();
    let step = |text: &str| match is_composite {
        true => Version::parse_composite(text).ok().or_else(|| lenient(text)),
        false => lenient(text),
    };
    Upgrade {
        channel: upgrade.channel.clone(),
        replaces: upgrade.replaces.as_deref().and_then(step),
        skips: upgrade.skips.iter().filter_map(|text| step(text)).collect(),
        skip_range: range.and_then(|text| VersionSpec::parse(text).ok()),
    }
}

/// The package that replaced `id`, according to its line; `None` if that is not a package.
pub fn moved_to(id: &PackageId, release: &Release) -> Option<PackageId> {
    let to = Reference::parse(release.moved_to.as_deref()?).ok()?;
    (to.local().is_none()).then(|| to.id(&inherited(id))).filter(|to| to != id)
}

/// What an entry of `conflicts` means: the package with that id, and the capability with that name, because
/// the text does not say which of the two it is.
pub(crate) fn conflicting(text: &str, id: &PackageId) -> Vec<String> {
    let mut meant = vec![id.as_str().to_owned()];
    if text != id.as_str() && Capability::parse(text).is_ok() {
        meant.push(text.to_owned());
    }
    meant
}

fn is_composite(release: &Release) -> bool {
    release.versioning.as_deref() == Some("composite")
}

/// What a version is known by, where what is at its place can change: its commit, or the digest of its archive.
fn known_by(release: &Release) -> Option<&str> {
    let digest = release.archive.as_deref().filter(|_| release.archive == release.artifact);
    commit_of(release).or(digest)
}

/// The commit of a revision. A published archive is only that archive; its line merely says from which commit
/// it was made.
fn commit_of(release: &Release) -> Option<&str> {
    release.revision().filter(|_| release.archive.is_none())
}

fn has_details(release: &Release) -> bool {
    !release.yanked.is_no()
        || release.unusable.is_some()
        // The first part of a composite version is its app version.
        || (release.app_version.is_some() && !is_composite(release))
        // What the formats of other ecosystems say there is for their readers.
        || (release.api_version.is_some() && release.format.is_none())
        || states_facts(release)
        || !release.channels.is_empty()
        || (!release.tags.is_empty() && commit_of(release).is_none())
        || release.moved_to.is_some()
        || release.origin.is_some()
        || release.default_channel.is_some()
        || !release.deprecated.is_no()
        || !release.upgrade.is_empty()
        || authors_folder(release).is_some()
}

/// The folder that a line of a registry depends on, which others do not have. In a repository it may be a
/// neighbour.
fn authors_folder(release: &Release) -> Option<&str> {
    let references = release.dependencies.iter().flatten().map(Dependency::reference);
    let mut references = references.filter(|_| commit_of(release).is_none());
    // Most references are recognized as not being folders without parsing.
    references.find(|reference| {
        let looks_so = reference.starts_with(['.', '/']) || reference.starts_with("file:");
        looks_so && Reference::parse(reference).is_ok_and(|reference| reference.local().is_some())
    })
}

/// The version of a line; `None` for a tag or branch without one, or text that is not a version.
pub(super) fn version_of(release: &Release, lenient: bool) -> Option<Version> {
    if release.version.is_empty() {
        None
    } else if is_composite(release) {
        Version::composite(release.app_version.as_deref()?, &release.version).ok()
    } else if lenient || release.is_lenient() {
        Version::parse_lenient(&release.version).ok()
    } else {
        Version::parse(&release.version).ok()
    }
}

/// An entry of a registry that cannot be read as a version, and is not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// What it has in place of a version; may be empty.
    pub version: String,
    /// Why it is left out.
    pub reason: String,
}

/// How many entries that are left out are named.
const MOST_NAMED: usize = 5;

impl LeftOut {
    /// What is left out, and why; `None` if nothing is. Of many entries, the first are named.
    pub fn in_words(left_out: &[Self]) -> Option<String> {
        let named = left_out.iter().take(MOST_NAMED).map(|Self { version, reason }| {
            match reason.contains(version.as_str()) {
                true => reason.clone(),
                false => format!("`{version}`: {reason}"),
            }
        });
        let mut named: Vec<String> = named.collect();
        if left_out.len() > MOST_NAMED {
            named.push(format!("and {} more", left_out.len() - MOST_NAMED));
        }
        (!named.is_empty()).then(|| named.join("; "))
    }
}

/// A line that says no version, and why; `None` for a name of something that need not be one.
pub(super) fn left_out(release: &Release) -> Option<LeftOut> {
    let version = release.full_version();
    if version.is_empty() && release.unusable.is_none() {
        return None;
    }
    let reason = release.unusable.clone().unwrap_or_else(|| {
        let read = match Version::parse_lenient(&version) {
            Ok(_) => "; `versions: lenient` in the registry's settings makes it one",
            Err(_) => "",
        };
        format!("`{version}` is not a version{read}")
    });
    Some(LeftOut { version, reason })
}

/// What a fetched package's dependencies inherit from it.
pub(super) fn inherited(declaring: &PackageId) -> Defaults {
    let (base, namespace) = (declaring.base(), declaring.name().namespace());
    Defaults { base, namespace, ..Defaults::default() }
}

/// One dependency of a fetched package.
pub(super) struct Declared {
    /// As it was written.
    pub(super) reference: Reference,
    /// What it requires, under the first possible id.
    pub(super) requirement: Requirement,
    /// The id to fall back to, if the first package does not exist.
    pub(super) fallback: Option<PackageId>,
}

/// Parses a dependency, in which `defaults` are left out.
pub(super) fn parse_dependency(
    defaults: &Defaults,
    dependency: &Dependency,
) -> Result<Declared, ReferenceError> {
    let reference = Reference::parse(dependency.reference())?;
    let mut requirement = Requirement::new(reference.id(defaults), reference.spec());
    if let Dependency::Detailed(detailed) = dependency {
        requirement.prerelease = detailed.prerelease;
        requirement.channel = detailed.channel.clone();
        requirement.app_version = detailed.app_version.clone();
    }
    let fallback = reference.id(&Defaults { namespace: None, ..defaults.clone() });
    // On this machine a name is a path, and one of a single segment is not looked for at the top of the disk.
    let is_elsewhere = fallback != requirement.id && fallback.base() != Base::localhost();
    let fallback = is_elsewhere.then_some(fallback);
    Ok(Declared { reference, requirement, fallback })
}

/// The seconds since 1970 of an RFC 3339 time.
fn seconds(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::facts::{FACTS, Fact};
    use mu_provider::{Lead, Location, SafeUrl};

    fn found(lines: &str) -> Found {
        let root = Lead::of_user(SafeUrl::parse("https://hub.example/").expect("is a URL"));
        Found {
            lines: lines.as_bytes().to_vec(),
            validator: None,
            max_age: None,
            location: Location::new(root, "aws/ec2"),
            leads_to: Vec::new(),
        }
    }

    #[test]
    fn sorts_lines_by_version_and_leaves_out_what_makes_no_sense() {
        let found = found(
            "{\"version\":\"1.10.0\"}\n{\"version\":\"1.2.0\",\"yanked\":\"bad\"}\n\n{nonsense\n{\"version\":\"x\"}\n\
             {\"tags\":[\"main\"],\"commit\":\"0000000000000000000000000000000000c0ffee\"}\n{\"version\":\"1.2.0\"}\n{\"version\":\"1.0.0\",\
             \"published\":\"1970-01-01T00:00:07Z\"}",
        );
        let listing = learned(0, &found, &fetched(&found).expect("no two contradict each other"))
            .record
            .listing
            .expect("is there");
        let heads: Vec<LineHead> = listing.heads().collect();
        let versions: Vec<String> = heads.iter().map(|head| head.version.to_string()).collect();
        assert_eq!(versions, ["1.0.0", "1.2.0", "1.10.0", "", ""]);
        assert_eq!(heads[0].published, Some(7));
        let id = PackageId::parse("hub.example/aws/ec2").expect("is an id");
        let entries = entries(&id, &listing, false);
        assert_eq!(entries.len(), 3);
        let yanked = entries[1].details.as_ref().and_then(|details| details.yanked.clone());
        assert_eq!(yanked.as_deref(), Some("bad"));
        assert!(entries[0].details.is_none());
    }

    #[test]
    fn a_version_whose_line_cannot_be_read_is_there_and_cannot_be_used() {
        let found = found(
            "{\"version\":\"1.0.0\",\"commit\":\"--upload-pack=touch x; false\"}\n{\"version\":\"1.1.0\",\"provides\":7}",
        );
        let listing = learned(0, &found, &fetched(&found).expect("are no two"))
            .record
            .listing
            .expect("is there");
        let id = PackageId::parse("hub.example/aws/ec2").expect("is an id");
        let entries = entries(&id, &listing, false);
        let broken = entries.iter().map(|entry| {
            entry.details.as_ref().and_then(|details| details.broken.clone()).expect("has a reason")
        });
        let [commit, other] = broken.collect::<Vec<_>>().try_into().expect("are two");
        assert!(
            commit.starts_with(
                "its index line cannot be read: `--upload-pack=touch x; false` is not a commit: expected"
            ),
            "{commit}"
        );
        assert!(other.starts_with("its index line cannot be read: invalid type"), "{other}");
    }

    #[test]
    fn two_lines_for_one_version_have_to_agree() {
        let twice = |one: &str, other: &str| {
            let lines = format!("{{\"version\":\"1.2.0\"{one}}}\n{{\"version\":\"1.2.0\"{other}}}");
            fetched(&found(&lines)).map(|fetched| fetched.len()).map_err(|error| error.to_string())
        };
        assert_eq!(twice(",\"digest\":\"h1:a\"", ",\"digest\":\"h1:a\",\"yanked\":true"), Ok(1));
        let digests =
            twice(",\"digest\":\"h1:a\"", ",\"digest\":\"h1:b\"").expect_err("contradicts");
        assert_eq!(
            digests,
            "the index at `https://hub.example/aws/ec2` lists 1.2.0 twice: once as h1:a, and once as h1:b"
        );
        let one_has_none = twice(",\"archive\":\"sha256:a\"", "").expect_err("contradicts");
        assert!(
            one_has_none.ends_with("once as sha256:a, and once as no digest"),
            "{one_has_none}"
        );
        let needs = twice("", ",\"dependencies\":[\"a\"]").expect_err("contradicts");
        assert!(needs.ends_with("with different dependencies or other facts"), "{needs}");
        let commit =
            |tag: &str| format!(",\"commit\":\"{}\",\"ref\":\"refs/tags/{tag}\"", tag.repeat(40));
        assert_eq!(twice(&commit("a"), &commit("b")), Ok(1));
    }

    #[test]
    fn every_fact_that_selection_reads_is_a_detail_or_has_a_place_of_its_own() {
        // The version itself, its time, its requirements, and what only the whole listing or the place is asked for.
        const ELSEWHERE: [&str; 9] = [
            "name",
            "version",
            "versioning",
            "versions",
            "dependencies",
            "format",
            "bundled",
            "published",
            "tip",
        ];
        let samples = [
            ("origin", r#""origin":"a/b""#),
            ("app_version", r#""appVersion":"3""#),
            ("api_version", r#""apiVersion":"mu/v1""#),
            ("mu_version", r#""muVersion":">=0.1""#),
            ("provides", r#""provides":["a.b/v1/C"]"#),
            ("requires", r#""requires":["a.b/v1/C"]"#),
            ("replaces", r#""replaces":["a/b"]"#),
            ("conflicts", r#""conflicts":["a/b"]"#),
            ("constraints", r#""constraints":{"os":"linux"}"#),
            ("channels", r#""channels":["stable"]"#),
            ("default_channel", r#""defaultChannel":"stable""#),
            ("upgrade", r#""upgrade":{"replaces":"1.0.0"}"#),
            ("tags", r#""tags":["beta"]"#),
            ("yanked", r#""yanked":true"#),
            ("deprecated", r#""deprecated":true"#),
            ("unusable", r#""unusable":"it is broken""#),
            ("moved_to", r#""movedTo":"a/b""#),
        ];
        let id = PackageId::parse("hub.example/aws/ec2").expect("is an id");
        let is_read = |what: &Fact| matches!(what, Fact::Chosen(_) | Fact::Among);
        for (fact, _) in FACTS.iter().filter(|(_, what)| is_read(what)) {
            let sample = samples.iter().find(|(name, _)| name == fact);
            let Some((_, key)) = sample else {
                assert!(ELSEWHERE.contains(fact), "there is no sample of `{fact}`");
                continue;
            };
            let release: Release = serde_json::from_str(&format!("{{{key}}}")).expect("is a line");
            assert!(has_details(&release), "{fact}");
            assert_ne!(details(&id, &release), Details::default(), "{fact}");
        }
    }

    #[test]
    fn missing_parts_come_from_the_declaring_package() {
        let (conf, local) = ("acme.co/internal/conf", "localhost/srv/catalog/kafka");
        for (declaring, written, id, fallback) in [
            (conf, "provider-b", "acme.co/internal/provider-b", Some("acme.co/provider-b")),
            (conf, "contrib/provider-a#^1", "acme.co/contrib/provider-a", None),
            (conf, "hub.mu.com/x", "hub.mu.com/x", None),
            (local, "strimzi", "localhost/srv/catalog/strimzi", None),
        ] {
            let declaring = PackageId::parse(declaring).expect("is an id");
            let dependency = Dependency::Reference(written.to_owned());
            let declared =
                parse_dependency(&inherited(&declaring), &dependency).expect("is a reference");
            assert_eq!(declared.requirement.id.to_string(), id);
            assert_eq!(declared.fallback.map(|id| id.to_string()).as_deref(), fallback);
        }
    }
}
