//! The checks before anything is published: what is wrong for others, or probably not intended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use mu_hub::Notice;
use mu_provider::{InnerPath, SafeUrl, place_without_secrets, without_secrets};
use url::Url;

use crate::lock::Lockfile;
use crate::manifest::{self, ManifestError, error_at_dependency, error_at_readme};
use crate::ops::publication::lines::{line_version, reason_of};
use crate::ops::publication::target::PublicationTarget;
use crate::ops::requirements::editing::{compatible_with_locked, pin_of};
use crate::ops::requirements::names::{Meant, id_in, meant, unambiguous_name, written_id};
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Requirements, print_extra};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::solve::names::is_published;
use crate::ops::solve::patches::patch_of;
use crate::ops::solve::question::Question;
use crate::ops::solve::resolve_from;
use crate::ops::{Code, CommandError, OperationScope, Session, Warning};
use crate::reference::{Base, Defaults, PackageId, Reference, Version, VersionSpec};
use crate::workspace::Member;

/// Packages that are published in this run, with their versions.
pub(super) type Siblings = BTreeMap<PackageId, Version>;

/// The place that `--to` names, for the packages of the base of `member`, and those that are named by it.
pub(super) struct There<'a> {
    pub(super) target: Option<&'a PublicationTarget>,
    pub(super) member: &'a Member,
}

impl There<'_> {
    /// The name that a package has at the place; `None` if others do not look for it there.
    fn name_of(&self, id: &PackageId) -> Option<String> {
        let own = self.target?.own_name(id);
        own.or_else(|| (id.base() == self.member.id.base()).then(|| id.name_str().to_owned()))
    }

    /// The versions of the package with a name, without withdrawn ones.
    fn versions(&self, name: &str) -> Result<Vec<Version>, CommandError> {
        let Some(target) = self.target else { return Ok(Vec::new()) };
        let lines = target.lines(name)?;
        let lines = lines.iter().filter(|line| reason_of(line, Notice::Yanked).is_none());
        Ok(lines.filter_map(|line| Version::parse(&line_version(line)).ok()).collect())
    }
}

/// Checks that no dependency of `member` is patched: others would get it without the patch.
pub(super) fn not_patched(
    session: &Session,
    member: &Member,
    lock: &Lockfile,
) -> Result<(), CommandError> {
    // All that would be installed with it counts: a patch far below is missing for others, too. Circles end, because
    // each version is followed once.
    let own = member.manifest.dependencies.iter();
    let mut open: Vec<PackageId> =
        own.map(|dependency| id_in(session, member, &dependency.reference)).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        for package in lock.find(lock.used_for(&id)) {
            if let Some(patch) = patch_of(session, package)? {
                let message = format!(
                    "`{}` needs `{}` {}, which this workspace patches with `{}`; others would get it without the patch",
                    member.manifest.name, package.id, package.version, patch.file
                );
                let name = session.short_name(&package.id);
                return Err(CommandError::new(Code::Conflict, message)
                    .hint("ask its publisher to release the change, and depend on that version")
                    .hint(format!("`mu patch --drop {name}` shows whether it works without")));
            }
            if seen.insert((package.id.clone(), package.version.clone())) {
                open.extend(package.dependencies.iter().cloned());
            }
        }
    }
    Ok(())
}

/// Checks the manifest of `member`; returns warnings about what is probably not intended.
pub(super) fn manifest(
    session: &Session,
    member: &Member,
    is_pinned: bool,
) -> Result<Vec<Warning>, CommandError> {
    let manifest = &member.manifest;
    if manifest.version.is_none() {
        return Err(CommandError::new(
            Code::Manifest,
            format!("the manifest of `{}` has no `version`", manifest.name),
        )
        .hint("add a line such as `version: 0.1.0`"));
    }
    // What works here, and would fail for others: folders of this machine, and whatever a version of years from now does.
    for dependency in &manifest.dependencies {
        let reference = &dependency.reference;
        if reference.local().is_some() || reference.base() == Some(&Base::localhost()) {
            let message = format!(
                "`{}` depends on `{reference}`, which exists only on this machine",
                manifest.name
            );
            return Err(CommandError::new(Code::Manifest, message)
                .hint("publish that package too, and depend on it by its name"));
        }
        if !is_pinned && is_unbounded(dependency) {
            return Err(unbounded(session, member, dependency));
        }
    }
    // People copy the URL of a clone, which may have a token in it.
    if let Some(repository) = &manifest.repository
        && without_secrets(repository) != *repository
    {
        let message = "`repository` contains a secret, which everyone could read";
        return Err(CommandError::new(Code::Manifest, message));
    }
    if let Some(readme) = &manifest.readme
        && !member.folder.join(readme).is_file()
    {
        return Err(no_readme(member, readme));
    }
    overrides(session, member)?;
    Ok(warnings(session, member))
}

/// The error about a readme that is not there, at the line that names it.
fn no_readme(member: &Member, readme: &InnerPath) -> CommandError {
    let path = &member.manifest_path;
    let message = format!("there is no file `{readme}` in `{}`", member.folder.display());
    let text = crate::fs::read_text(path).ok();
    let error = text.and_then(|text| error_at_readme(path, &text, &message));
    let error = match error {
        Some(error) => error.into(),
        None => CommandError::new(Code::Manifest, message),
    };
    error.hint(
        "write the readme, name another file, or remove the line: `README.md` is found without it",
    )
}

/// Whether a dependency accepts all future versions.
fn is_unbounded(dependency: &manifest::Requirement) -> bool {
    let is_any = matches!(dependency.reference.spec(), VersionSpec::Latest | VersionSpec::Tip);
    is_any && dependency.channel.is_none() && dependency.app_version.is_none()
}

/// The error about a dependency that accepts any version: a user who installs the package years from now
/// would get versions that it was never tested with.
fn unbounded(
    session: &Session,
    member: &Member,
    dependency: &manifest::Requirement,
) -> CommandError {
    let (path, reference) = (&member.manifest_path, &dependency.reference);
    let message = "a published package must say which versions of its dependencies it accepts";
    let error = crate::fs::read_text(path).ok();
    let error =
        error.and_then(|text| error_at_dependency(path, &text, reference.as_str(), message));
    let error = error.map_or_else(
        || {
            CommandError::new(
                Code::Manifest,
                format!("`{}`: {message}: `{reference}`", path.display()),
            )
        },
        |error| ManifestError::from(error).into(),
    );
    // The bound is one that holds now: what is locked, or what the workspace itself is about to publish.
    let id = id_in(session, member, reference);
    match fitting(session, &id) {
        Some(version) => {
            let bounded = reference.with_version(Some(version));
            let package = match session.workspace.members.len() {
                1 => String::new(),
                _ if member.place.is_empty() => "-p . ".to_owned(),
                _ => format!("-p {} ", quoted_for_shell(&member.place)),
            };
            error.hint(format!(
                "write `{bounded}` there, or run `mu add {package}{}`",
                quoted_for_shell(bounded.as_str())
            ))
        }
        None => error.hint(format!(
            "write a version there, such as `{}#^1.0.0`, or publish with `--pinned`",
            reference.with_version(None)
        )),
    }
}

/// A requirement of a package in its current version and compatible ones.
fn fitting(session: &Session, id: &PackageId) -> Option<VersionSpec> {
    if let Some(sibling) = session.places.member_of(id) {
        return Some(VersionSpec::compatible_with(sibling.version.as_ref()?));
    }
    let lock = session.lockfile().ok().flatten()?;
    let package = lock.find(id).last()?;
    let pinned = || pin_of(session, package, true).ok();
    compatible_with_locked(session, package).or_else(pinned)
}

/// Refuses to publish a package with a base in its name into a hub that, according to the settings, serves
/// another base: there it would be found as a package of that base, which its author did not mean.
pub(super) fn base(session: &Session, member: &Member, to: &str) -> Result<(), CommandError> {
    let Some(base) = member.manifest.name.base() else { return Ok(()) };
    // What `--to` names, in the form in which settings have it, so that both can be compared.
    let place = match SafeUrl::parse(to) {
        Ok(url) => Some(url),
        Err(_) => {
            let folder = crate::env::absolute(&session.environment.current, Path::new(to));
            Url::from_directory_path(folder).ok().map(SafeUrl::from)
        }
    };
    let place = place.map(|url| url.as_folder());
    let registries = session.workspace.settings.registries.iter();
    let there = registries.filter(|registry| registry.url.is_some() && registry.url == place);
    let prefixes: Vec<&str> = there.map(|registry| registry.prefix.as_str()).collect();
    if prefixes.is_empty() || prefixes.iter().any(|prefix| prefix.starts_with(base.as_str())) {
        return Ok(());
    }
    let message = format!(
        "`{}` is a package of `{base}`, and the settings say that `{}` serves `{}`",
        member.manifest.name,
        place_without_secrets(to),
        prefixes.join("`, `")
    );
    Err(CommandError::new(Code::Manifest, message).hint(
        "leave the base out of `name`, or publish without `--to`, to the registry of its base",
    ))
}

/// The successor of a package, from its name.
pub(super) fn moved_to(session: &Session, text: &str) -> Result<PackageId, CommandError> {
    let reference = Reference::parse(text)?;
    let refuse = |reason: &str| {
        Err(CommandError::new(
            Code::Usage,
            format!("a package cannot move to `{reference}`: {reason}"),
        )
        .hint("name a package, such as `hub.mu.com/acme/web`"))
    };
    if reference.local().is_some() || reference.base() == Some(&Base::localhost()) {
        return refuse("it exists only on this machine");
    }
    if reference.version_text().is_some() {
        return refuse("a package takes the place of another, not a version of it");
    }
    Ok(reference.id(&session.reference_defaults()))
}

/// Overrides apply only in this workspace: others do not get what was tested with them.
fn overrides(session: &Session, member: &Member) -> Result<(), CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let is_own = |id: &PackageId| {
        let dependencies = member.manifest.dependencies.iter();
        let mut ids = dependencies.map(|dependency| id_in(session, member, &dependency.reference));
        ids.any(|direct| direct == *id)
    };
    let overridden = |id: &&PackageId| {
        let is_locked = lock.find(id).any(|package| Requester::override_of(package).is_some());
        is_own(id) || is_locked
    };
    let Some(id) = session.workspace.settings.overrides.keys().find(overridden) else {
        return Ok(());
    };
    let message = format!(
        "the settings override `{id}` in this workspace only: others would not get what was tested here"
    );
    Err(CommandError::new(Code::Workspace, message)
        .hint("remove it from `overrides`, run `mu get`, and try again"))
}

fn warnings(session: &Session, member: &Member) -> Vec<Warning> {
    let manifest = &member.manifest;
    let mut warnings = Vec::new();
    let keys = [
        ("description", manifest.description.is_none()),
        ("license", manifest.license.is_none()),
        ("readme", manifest.readme.is_none()),
    ];
    let missing = keys.into_iter().filter(|(_, is_missing)| *is_missing);
    let keys: Vec<&str> = missing.map(|(key, _)| key).collect();
    if !keys.is_empty() {
        warnings.push(Warning::KeysMissing { name: manifest.name.to_string(), keys });
    }
    for dependency in &manifest.dependencies {
        let reference = &dependency.reference;
        let here = id_in(session, member, reference);
        if reference.local().is_none() && here != written_id(session, member, reference) {
            warnings.push(leads_elsewhere(session, member, reference, &here));
        }
    }
    warnings
}

/// Reports a dependency that means another package for others than in this workspace.
fn leads_elsewhere(
    session: &Session,
    member: &Member,
    reference: &Reference,
    here: &PackageId,
) -> Warning {
    let exact = unambiguous_name(session, member, here);
    Warning::MeansOther { reference: reference.with_version(None), here: here.clone(), exact }
}

/// Chooses versions of the dependencies as others will have to, without this workspace's own packages, except
/// `siblings`. The packages `there`, at the target, were checked when they were published.
pub(super) fn dependencies(
    session: &Session,
    member: &Member,
    siblings: &Siblings,
    there: &There<'_>,
) -> Result<(), CommandError> {
    // The session of somebody else: without this workspace, without the packs of this machine, and without a lock.
    let outside = Session::open(
        session.environment.clone(),
        crate::ops::Options {
            locked: false,
            frozen: false,
            without_packs: true,
            ..session.options.clone()
        },
        OperationScope::Global,
        std::sync::Arc::new(crate::ops::NoEvents),
    )?;
    let mut extra = Vec::new();
    for dependency in &member.manifest.dependencies {
        // What a short name means here depends on what there is.
        if dependency.reference.local().is_none()
            && let Meant { first, otherwise: Some(_) } = meant(member, &dependency.reference)
            && !session.workspace.members.iter().any(|sibling| sibling.id == first)
        {
            is_published(session, &first)?;
        }
        let here = id_in(session, member, &dependency.reference);
        // One after the other: what is published in this run, what the target has, and what others have to get from
        // registries. Only this is left for a selection.
        let name = there.name_of(&here);
        let is_it = |sibling: &PackageId| name.is_some() && there.name_of(sibling) == name;
        let sibling = siblings.get_key_value(&here);
        let sibling = sibling.or_else(|| siblings.iter().find(|(sibling, _)| is_it(sibling)));
        if let Some((id, version)) = sibling {
            // Nobody can fetch it yet, so it is compared here.
            let spec = dependency.reference.spec();
            let names_versions = !matches!(
                spec,
                VersionSpec::Commit(_) | VersionSpec::Tag(_) | VersionSpec::Digest(_)
            );
            if names_versions && !spec.accepts(version, dependency.prerelease) {
                let message = format!(
                    "`{}` requires {id} {spec}, but this workspace publishes {version}",
                    member.manifest.name
                );
                return Err(CommandError::new(Code::NoSolution, message));
            }
            continue;
        }
        let spec = dependency.reference.spec();
        let has_it = |version: &Version| spec.accepts(version, dependency.prerelease);
        if let Some(name) = name
            && there.versions(&name)?.iter().any(has_it)
        {
            continue;
        }
        let others = as_others_read(&outside, member, &dependency.reference)?;
        if others != here {
            let warning = leads_elsewhere(session, member, &dependency.reference, &here);
            session.events.warning(&warning);
        }
        // Others read the reference outside of this workspace, so it says whose base and namespace are left out here.
        let reference = match dependency.reference.base() {
            Some(_) => dependency.reference.clone(),
            None => {
                let left_out = Defaults {
                    base: others.base(),
                    namespace: others.name().namespace(),
                    ..Defaults::default()
                };
                Reference::parse(&dependency.reference.qualified(&left_out))?
            }
        };
        extra.push(print_extra(&manifest::Requirement { reference, ..dependency.clone() }));
    }
    if extra.is_empty() {
        return Ok(());
    }
    let mut requirements = Requirements::collect(&outside, extra)?;
    // A conflict is one of the package's requirements, and not of the command line.
    for asked in &mut requirements.asked {
        asked.by = Requester::from_member(member);
    }
    // From nothing, as for whoever installs the package first.
    let resolved = resolve_from(&outside, &Question::without_moves(requirements), Arc::default());
    outside.save_index();
    resolved.map(|_| ()).map_err(|error| {
        error
            .without_ways_out()
            .while_doing(format!(
                "others could not install `{}`: its dependencies cannot be resolved",
                member.manifest.name
            ))
            .hint("fix the dependencies in the manifest, or publish what is missing first")
    })
}

/// The package that a dependency means for others, who have none of this workspace's packages.
fn as_others_read(
    outside: &Session,
    member: &Member,
    reference: &Reference,
) -> Result<PackageId, CommandError> {
    match meant(member, reference) {
        Meant { first, otherwise: Some(otherwise) } if !is_published(outside, &first)? => {
            Ok(otherwise)
        }
        Meant { first, .. } => Ok(first),
    }
}
