//! `info` and `versions`: what a newcomer wants to know about one package, from its registry.
//!
//! `info` shows the package with its newest version. It fetches no package: for a package of a hub, only the index is
//! read. `info --readme` shows the readme of a package, which must be fetched for it. `versions` shows the versions in
//! ascending order, with what is known about each. Nothing is installed.

use std::collections::BTreeMap;
use std::sync::Arc;

use mu_provider::{Listing as Listed, Maintainer, Mode, Release, Silent};
use schemars::JsonSchema;
use serde::Serialize;

use crate::fs;
use crate::index::releases::{Details, Position};
use crate::index::{Candidate, LeftOut, Revision, Route, Unavailable, Universe as _, Untagged};
use crate::lock::{Lockfile, Source};
use crate::manifest::{JSON_NAME, Manifest, YAML_NAME};
use crate::ops::explain::unavailable_error;
use crate::ops::lookup::chosen::{
    PublishedPackage, ShownVerdict, candidate_of, choose, fetched, published, verdict_of,
};
use crate::ops::lookup::filter::VersionFilter;
use crate::ops::lookup::listing::{Here, Listing, details_from_manifest};
use crate::ops::session::age::Age;
use crate::ops::session::locked::exports_here;
use crate::ops::session::shown;
use crate::ops::session::source::source_of;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::{ArtifactDigest, PackageId, Reference};
use crate::store::Stored;

pub use crate::ops::lookup::listing::{ListedVersion, published_on};

/// What `mu info` answers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// The package.
    pub id: PackageId,
    /// The version that everything else describes.
    pub version: String,
    /// What it is, in a sentence.
    pub description: Option<String>,
    /// The licence, usually an SPDX expression.
    pub license: Option<String>,
    /// Where to read more.
    pub website: Option<String>,
    /// Where its source is: the URL of a repository, and after `#` the folder in it.
    pub repository: Option<String>,
    /// Its maintainers, as `Name <email>`.
    pub maintainers: Vec<String>,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// The version of the software that it contains.
    pub app_version: Option<String>,
    /// When it was published, RFC 3339.
    pub published: Option<String>,
    /// Who published it: the name of a hub's token, if the hub says it.
    pub published_by: Option<String>,
    /// Its commit (Git).
    pub commit: Option<String>,
    /// The channels that it is in.
    pub channels: Vec<String>,
    /// The channel of the package to use if none is requested.
    pub default_channel: Option<String>,
    /// Names that point to it.
    pub tags: Vec<String>,
    /// Why it was withdrawn, empty without a reason; `false` if it was not.
    #[serde(serialize_with = "shown::yanked")]
    #[schemars(schema_with = "shown::yanked_schema")]
    pub yanked: Option<String>,
    /// Why its authors no longer maintain it, empty without a reason; `false` if they do.
    #[serde(serialize_with = "shown::yanked")]
    #[schemars(schema_with = "shown::yanked_schema")]
    pub deprecated: Option<String>,
    /// The format of the package, if it is not mu's: `helm`.
    pub format: Option<String>,
    /// Packages that it carries inside, so that nobody else has to provide them.
    pub bundled: Vec<String>,
    /// Keys in its manifest that its format does not have.
    pub unknown: Vec<String>,
    /// The package that took its place.
    pub moved_to: Option<PackageId>,
    /// Its manifest format, if it states one.
    pub api_version: Option<String>,
    /// The range of mu versions that can use it.
    pub mu_version: Option<String>,
    /// Whether it can be used here: by this mu, and in the runtime, as far as that is known.
    pub usable: bool,
    /// Why it cannot be used here, if it cannot.
    pub reasons: Vec<String>,
    /// The newest version that can be used here, if this one cannot.
    pub newest_usable: Option<String>,
    /// References to what it depends on, as they were written.
    pub dependencies: Vec<String>,
    /// Which of the kinds of packages of its format each of these is said to be, if they have kinds.
    #[serde(skip)]
    pub dependency_kinds: Vec<String>,
    /// Capabilities that it provides.
    pub provides: Vec<String>,
    /// Capabilities that some package must provide.
    pub requires: Vec<String>,
    /// Packages that it supersedes.
    pub replaces: Vec<String>,
    /// Packages and capabilities that it conflicts with.
    pub conflicts: Vec<String>,
    /// Ranges, or exact words, over facts of the runtime.
    pub constraints: BTreeMap<String, String>,
    /// The existing versions.
    pub versions: VersionSpan,
    /// Where it comes from.
    pub source: Source,
    /// The versions in `Mu.lock` that are not the workspace's own.
    pub locked: Vec<String>,
    /// The folder of the workspace's own package of this name, relative to its root.
    pub workspace: Option<String>,
    /// The command that adds it as a dependency, if that is advisable.
    pub install: Option<String>,
    /// The elements that it exports, as far as that is known without fetching it.
    pub exports: Option<Exports>,
    /// Which of the kinds of packages of its format it is, if they have kinds: `Provider`.
    pub kind: Option<String>,
    /// What the rules of the settings say of who signed it, if one speaks of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<ShownVerdict>,
}

/// The existing versions of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Span")]
pub struct VersionSpan {
    /// Their number.
    pub total: usize,
    /// The number of withdrawn ones.
    pub yanked: usize,
    /// The oldest.
    pub oldest: Option<String>,
    /// The newest.
    pub newest: Option<String>,
    /// What the registry lists besides, and cannot be read as a version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// The elements of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Exports {
    /// The version that exports them: the one that the answer is about, or else the one that is installed here.
    pub version: String,
    /// Their names.
    pub names: Vec<String>,
}

/// Looks up the package that `text` names, and the newest version that it accepts. Whether that can be used
/// depends on facts of the runtime (`NAME=VALUE`): those of the settings, and `runtime`, which takes
/// precedence.
pub fn info(session: &Session, text: &str, runtime: &[String]) -> Result<Info, CommandError> {
    let filter = VersionFilter { runtime: runtime.to_vec(), ..VersionFilter::default() };
    let here = Here::new(session, &filter)?;
    let PublishedPackage { reference, id, releases } = published_or_own(session, text)?;
    let listing = Listing { session, id: &id, releases: &releases, here };
    let chosen = choose(&listing, reference.version())?;
    let candidate = candidate_of(&chosen);
    let failed = |error: Unavailable| unavailable_error(session, error);
    let (route, release) = session.index().release_in_full(&id, candidate).map_err(failed)?;
    // From here on, what is known of one version comes from three sources: its index line (`release`), its manifest, if
    // its place shows one, and what the listing says of all versions (`releases`).
    let release = in_full(&route, Arc::unwrap_or_clone(release));
    let manifest = manifest(session, &id, candidate)?;
    let version = match &chosen {
        Revision::Release(position) => listed(&listing, *position, manifest.as_ref())?,
        Revision::Untagged(untagged) => unlisted(&listing, untagged, manifest.as_ref()),
    };
    // Whoever asks about a package wants to know whether a command would take it.
    let exactly = match &chosen {
        Revision::Release(position) => Some(releases.version(*position)),
        Revision::Untagged(untagged) => untagged.version.clone(),
    };
    let trust = verdict_of(session, &id, candidate, exactly)?;
    // Only if the version cannot be used: then the newest release that can.
    let newest_usable = match &chosen {
        _ if version.usable => None,
        Revision::Release(position) => listing.here.newest(&listing, Some(*position))?,
        Revision::Untagged(_) => listing.here.newest(&listing, None)?,
    };
    let lock = session.lockfile()?.unwrap_or_default();
    let locked = lock.find(&id).filter(|package| !package.source.is_workspace_folder());
    let workspace = session.places.member_of(&id).map(|member| member.place.clone());
    let is_yanked = |&position: &Position| {
        releases.details(position).is_some_and(|details| details.yanked.is_some())
    };
    let mut versions = releases.versions().map(|version| version.to_string());
    let oldest = versions.next();
    let span = VersionSpan {
        total: releases.len() as usize,
        yanked: (0..releases.len()).filter(is_yanked).count(),
        newest: versions.next_back().or_else(|| oldest.clone()),
        oldest,
        left_out: session.index().left_out(&id).map_err(failed)?,
    };
    session.save_index();
    let about = about(manifest.as_ref(), &release);
    Ok(Info {
        description: about.description,
        license: about.license,
        website: about.website,
        repository: about.repository,
        maintainers: maintainers(manifest.as_ref(), &about.maintainers),
        keywords: about.keywords,
        default_channel: releases.default_channel().map(ToOwned::to_owned),
        format: release.format.or_else(|| manifest.as_ref()?.format.clone()),
        bundled: release.bundled,
        unknown: release.unknown,
        newest_usable: newest_usable.map(|position| releases.version(position).to_string()),
        dependencies: (about.dependencies.iter().flatten())
            .map(|one| one.reference().to_owned())
            .collect(),
        dependency_kinds: about.dependency_kinds,
        provides: about.provides,
        requires: about.requires,
        replaces: about.replaces,
        conflicts: about.conflicts,
        constraints: about.constraints,
        versions: span,
        source: source_of(session, &route),
        locked: locked.map(|package| package.version.clone()).collect(),
        install: install(reference.as_str(), &version, workspace.is_some()),
        workspace,
        exports: exports(session, &id, manifest.as_ref(), &version.version, &lock),
        kind: release.kind,
        trust,
        id,
        version: version.version,
        app_version: version.app_version,
        published: version.published,
        published_by: release.published_by,
        commit: version.commit,
        channels: version.channels,
        tags: version.tags,
        yanked: version.yanked,
        deprecated: version.deprecated,
        moved_to: version.moved_to,
        api_version: version.api_version,
        mu_version: version.mu_version,
        usable: version.usable,
        reasons: version.reasons,
    })
}

/// The command that depends on it; none for versions that nobody should start to use, or that cannot be used here.
fn install(reference: &str, version: &ListedVersion, is_own: bool) -> Option<String> {
    if let Some(other) = &version.moved_to {
        return Some(format!("mu add {other}"));
    }
    if version.yanked.is_some() || !version.usable || is_own {
        return None;
    }
    let is_plain = |character: char| character.is_alphanumeric() || "/.:-_#@~+".contains(character);
    match reference.chars().all(is_plain) {
        true => Some(format!("mu add {reference}")),
        false => Some(format!("mu add '{}'", reference.replace('\'', r"'\''"))),
    }
}

/// What a version exports, as far as that is known without fetching it; else what the installed version does.
fn exports(
    session: &Session,
    id: &PackageId,
    manifest: Option<&Manifest>,
    version: &str,
    lock: &Lockfile,
) -> Option<Exports> {
    // Without a manifest, fetching would be the only way. What is installed is near enough, and its version is said.
    let (version, names) = match manifest {
        Some(manifest) => (version.to_owned(), manifest.exports.keys().cloned().collect()),
        None => {
            let locked = lock.find(id).last()?;
            (locked.version.clone(), exports_here(session, id)?)
        }
    };
    Some(Exports { version, names }).filter(|exports| !exports.names.is_empty())
}

/// A release with its texts for people. A snapshot of a hub omits them, and so does the index made from it;
/// then the package's own index file is requested, if possible.
fn in_full(route: &Route, release: Release) -> Release {
    let says_something = release.description.is_some()
        || release.license.is_some()
        || release.published_by.is_some()
        || release.website.is_some()
        || release.repository.is_some()
        || !release.keywords.is_empty()
        || !release.maintainers.is_empty();
    if says_something || !route.provider.facts().lines.is_complete() {
        return release;
    }
    // A request that sends no validator gets the whole file.
    let Ok(Listed::Found(found)) = route.provider.list(&route.location, Some(""), &Silent) else {
        return release;
    };
    // A version may be there once for each app version.
    let same = |other: &Release| {
        (&other.version, &other.app_version) == (&release.version, &release.app_version)
    };
    found.releases().find(same).unwrap_or(release)
}

/// A version as `mu versions` shows it.
fn listed(
    listing: &Listing<'_>,
    position: Position,
    manifest: Option<&Manifest>,
) -> Result<ListedVersion, CommandError> {
    let releases = listing.releases;
    let details: Option<Details> =
        releases.details(position).cloned().or_else(|| manifest.map(details_from_manifest));
    let details = details.or_else(|| {
        let candidate = Candidate::Release(position);
        let declared = listing.session.index().declared(releases.id(), candidate).ok().flatten();
        declared.map(Arc::unwrap_or_clone)
    });
    let stated = details.as_ref().and_then(|details| details.app_version.clone());
    let app_version = releases.app_version(position).map(str::to_owned).or(stated);
    listing.describe(position, details.as_ref(), app_version)
}

/// A commit, or an archive, that is no version of the listing.
fn unlisted(
    listing: &Listing<'_>,
    untagged: &Untagged,
    manifest: Option<&Manifest>,
) -> ListedVersion {
    let details = manifest.map(details_from_manifest).unwrap_or_default();
    let version = untagged.version.clone().unwrap_or_else(|| semver::Version::new(0, 0, 0).into());
    // Who names a commit has it, however young it is.
    let reasons = listing.here.reasons(listing.id, &version, Some(&details), Age::Exempt);
    ListedVersion {
        version: version.to_string(),
        commit: Some(untagged.commit.to_string())
            .filter(|commit| !ArtifactDigest::is_artifact_digest(commit)),
        usable: reasons.is_empty(),
        reasons,
        app_version: details.app_version,
        channels: details.channels,
        api_version: details.api_version,
        mu_version: details.facts.mu_version,
        ..ListedVersion::default()
    }
}

/// The manifest, if its place shows it; warns if it cannot be read.
fn manifest(
    session: &Session,
    id: &PackageId,
    candidate: Candidate<'_>,
) -> Result<Option<Manifest>, CommandError> {
    match session.index().manifest(id, candidate) {
        Ok(manifest) => Ok(manifest),
        Err(error) => {
            let error = unavailable_error(session, error);
            if error.code != Code::Manifest {
                return Err(error);
            }
            session.events.warning(&Warning::ManifestUnread { id: id.clone(), version: None });
            Ok(None)
        }
    }
}

/// What a manifest says, with the texts for people that only the line has; or the line alone.
fn about(manifest: Option<&Manifest>, line: &Release) -> Release {
    let Some(manifest) = manifest else { return line.clone() };
    let own = manifest.to_release();
    let either = |own: Option<String>, line: &Option<String>| own.or_else(|| line.clone());
    Release {
        description: either(own.description, &line.description),
        license: either(own.license, &line.license),
        website: either(own.website, &line.website),
        repository: either(own.repository, &line.repository),
        maintainers: line.maintainers.clone(),
        keywords: if own.keywords.is_empty() { line.keywords.clone() } else { own.keywords },
        // What decides (dependencies, capabilities, constraints) is the manifest's alone.
        ..own
    }
}

/// The maintainers, as `Name <email>`: of the manifest, with their pages, or else of the line, which has none.
fn maintainers(manifest: Option<&Manifest>, line: &[Maintainer]) -> Vec<String> {
    let own = manifest.into_iter().flat_map(|manifest| &manifest.maintainers);
    let own: Vec<String> = own.map(ToString::to_string).collect();
    let name = |maintainer: &Maintainer| match maintainer {
        Maintainer::Text(text) => text.clone(),
        Maintainer::Person { name, email: Some(email) } => format!("{name} <{email}>"),
        Maintainer::Person { name, email: None } => name.clone(),
    };
    if own.is_empty() { line.iter().map(name).collect() } else { own }
}

/// The possible names of a readme, in lower case, if the manifest names none.
const NAMES: [&str; 5] = ["readme.md", "readme.markdown", "readme.txt", "readme.rst", "readme"];

/// What `mu info --readme` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PackageReadme {
    /// The package.
    pub id: PackageId,
    /// Its version.
    pub version: String,
    /// The file, relative to the package.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// Fetches the newest version that `text` accepts into the store, and reads its readme.
pub fn fetch_readme(session: &Session, text: &str) -> Result<PackageReadme, CommandError> {
    let _store = session.use_store()?;
    let (id, release, stored) = fetched(session, text)?;
    session.save_index();
    let version = release.version.clone();
    let Some(file) = file(&stored)? else {
        let message = format!("`{id} {version}` has no readme");
        return Err(CommandError::new(Code::NotFound, message));
    };
    let text = fs::read_text(&stored.folder.join(&file))?;
    Ok(PackageReadme { id, version, file, text })
}

/// The package as its registry has it; one of the workspace that is not there, or cannot be asked for, as it is in its folder.
fn published_or_own(session: &Session, text: &str) -> Result<PublishedPackage, CommandError> {
    let is_unknown =
        |error: &CommandError| matches!(error.code, Code::NotFound | Code::Offline | Code::Network);
    published(session, text).or_else(|error| {
        let reference = Reference::parse(text)?;
        let own = session.places.member_of(&session.id_of_argument(&reference));
        let own = own.filter(|_| is_unknown(&error) && reference.version().is_none());
        let own = own.filter(|member| !member.place.is_empty()).ok_or(error)?;
        let folder = session.workspace.root.join(&own.place);
        session.index().forget_answer(&own.id);
        published(session, &folder.to_string_lossy())
    })
}

/// The file of a tree that is its readme.
fn file(stored: &Stored) -> Result<Option<String>, CommandError> {
    let mut named = None;
    for name in [YAML_NAME, JSON_NAME] {
        let path = stored.folder.join(name);
        if let Some(text) = fs::read_text_if_there(&path)? {
            named = Manifest::parse(&path, &text).ok().and_then(|(manifest, _)| manifest.readme);
        }
    }
    let entries = || stored.tree.entries().iter().filter(|entry| entry.mode != Mode::Symlink);
    let paths = || entries().map(|entry| entry.path.clone());
    let named = named.and_then(|named| paths().find(|path| *path == named.as_str()));
    let usual = || NAMES.iter().find_map(|name| paths().find(|path| path.to_lowercase() == *name));
    Ok(named.or_else(usual))
}

/// The versions of a package.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VersionList {
    /// The package.
    pub id: PackageId,
    /// Their source, if there are any.
    pub source: Option<Source>,
    /// Those that the filter shows, ascending.
    #[serde(rename = "versions")]
    pub shown: Vec<ListedVersion>,
    /// How many there are.
    pub total: usize,
    /// What the registry lists besides, and cannot be read as a version.
    #[serde(rename = "leftOut", skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The packages in folders of the repository that its tags give versions of their own, if it is one. Whether they are there is not asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageId>,
    /// The same packages as references that lead there from anywhere, where the repository was named by one.
    #[serde(skip)]
    pub references: Vec<String>,
    /// Whether there are also commits and branches.
    #[serde(skip)]
    pub is_repository: bool,
}

/// Lists the versions of the package that `text` names that match the version in `text` and `filter`.
pub fn versions(
    session: &Session,
    text: &str,
    filter: &VersionFilter,
) -> Result<VersionList, CommandError> {
    let sieve = filter.read()?;
    let PublishedPackage { reference, id, releases } = published(session, text)?;
    let here = Here::new(session, filter)?;
    let listing = Listing { session, id: &id, releases: &releases, here };
    let wanted = reference.version();
    let is_wanted = |position: &Position| {
        sieve.passes(&releases.version(*position))
            && wanted.is_none_or(|wanted| listing.is_named(*position, wanted))
    };
    // Conditions on versions first, which cost nothing: the others may need each version's manifest.
    let positions: Vec<Position> = (0..releases.len()).filter(is_wanted).collect();
    let shown = listing.through(&sieve, &positions)?;
    let failed = |error| unavailable_error(session, error);
    let route = session.index().route(&id).map_err(failed)?;
    let source = (!releases.is_empty()).then(|| source_of(session, &route));
    let left_out = session.index().left_out(&id).map_err(failed)?;
    let folders = session.index().folders_with_versions(&id).map_err(failed)?;
    // Tags name folders from the root of the repository, and the package may be one of them.
    let own = route.location.folder.as_deref().unwrap_or_default();
    let inside: Vec<&str> = folders
        .iter()
        .filter_map(|folder| match own {
            "" => Some(&**folder),
            own => folder.strip_prefix(own)?.strip_prefix('/'),
        })
        .collect();
    let below = |folder: &&str| PackageId::parse(&format!("{id}/{folder}")).ok();
    let packages = inside.iter().filter_map(below).collect();
    let repository = reference.with_version(None);
    let repository = repository.as_str();
    let is_whole = repository.contains("://");
    let whole = inside.iter().filter(|_| is_whole);
    let references = whole.map(|folder| format!("{repository}/{folder}")).collect();
    session.save_index();
    Ok(VersionList {
        id: id.clone(),
        source,
        shown,
        total: releases.len() as usize,
        left_out,
        packages,
        references,
        is_repository: releases.has_commits(),
    })
}
