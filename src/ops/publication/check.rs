//! What is looked at before anything is published: what is wrong for others, or probably not meant.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mu_provider::{SafeUrl, without_secrets};
use url::Url;

use crate::manifest;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Requirements, print_extra};
use crate::ops::solve::resolve::resolve_from;
use crate::ops::{Code, CommandError, Scope, Session};
use crate::reference::{Base, Defaults, PackageId, Reference, Version, VersionSpec};
use crate::select::Update;
use crate::workspace::Member;

/// Packages that are published in this run, with their versions.
pub(super) type Siblings = BTreeMap<PackageId, Version>;

/// Checks what the manifest of `member` says; returns what is probably not meant.
///
/// # Errors
///
/// When it cannot be published.
pub(super) fn manifest(session: &Session, member: &Member) -> Result<Vec<String>, CommandError> {
    let manifest = &member.manifest;
    let fail = |message: String| Err(CommandError::new(Code::Manifest, message));
    if manifest.version.is_none() {
        return Err(CommandError::new(
            Code::Manifest,
            format!("the manifest of `{}` has no `version`", manifest.name),
        )
        .hint("add a line such as `version: 0.1.0`"));
    }
    for dependency in &manifest.dependencies {
        let reference = &dependency.reference;
        if reference.local().is_some() || reference.base() == Some(&Base::localhost()) {
            let message = format!(
                "`{}` depends on `{reference}`, which is on this machine alone",
                manifest.name
            );
            return Err(CommandError::new(Code::Manifest, message)
                .hint("publish that package too, and depend on it by its name"));
        }
    }
    if let Some(readme) = &manifest.readme
        && !member.folder.join(readme).is_file()
    {
        return fail(format!("the manifest names `{readme}` as its readme, which is not there"));
    }
    overrides(session, member)?;
    Ok(warnings(session, member))
}

/// Refuses to publish a package that names its base into a hub that the settings say to serve another one: there it would be
/// found as a package of that base, which its author did not mean.
///
/// # Errors
///
/// When the settings lead other bases to `to`, and not the one that the manifest names.
pub(super) fn base(session: &Session, member: &Member, to: &str) -> Result<(), CommandError> {
    let Some(base) = member.manifest.name.base() else { return Ok(()) };
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
        without_secrets(to),
        prefixes.join("`, `")
    );
    Err(CommandError::new(Code::Manifest, message)
        .hint("leave the base out of `name`, or publish it where its base leads, without `--to`"))
}

/// The package that takes the place of one, from how it was named.
///
/// # Errors
///
/// When it is not a package, or a version of one.
pub(super) fn moved_to(session: &Session, text: &str) -> Result<PackageId, CommandError> {
    let reference = Reference::parse(text)?;
    let refuse = |reason: &str| {
        Err(CommandError::new(
            Code::Usage,
            format!("nothing can have moved to `{reference}`: {reason}"),
        )
        .hint("name a package, such as `hub.mu.com/acme/web`"))
    };
    if reference.local().is_some() || reference.base() == Some(&Base::localhost()) {
        return refuse("it is on this machine alone");
    }
    if reference.version_text().is_some() {
        return refuse("a package takes its place, not a version of one");
    }
    Ok(reference.id(&session.defaults()))
}

/// Overrides hold in this workspace alone: what was tried under them is not what others get.
fn overrides(session: &Session, member: &Member) -> Result<(), CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let is_own = |id: &PackageId| {
        let dependencies = member.manifest.dependencies.iter();
        let mut ids = dependencies.map(|dependency| dependency.reference.id(&session.defaults()));
        ids.any(|direct| direct == *id)
    };
    let overridden = |id: &&PackageId| {
        let is_locked =
            lock.find(id).any(|package| package.requested.iter().any(Requester::is_override));
        is_own(id) || is_locked
    };
    let Some(id) = session.workspace.settings.overrides.keys().find(overridden) else {
        return Ok(());
    };
    let message = format!(
        "the settings override `{id}`, which holds in this workspace alone: others would not get what was tried here"
    );
    Err(CommandError::new(Code::Workspace, message)
        .hint("take it out of `overrides`, run `mu get`, and try again"))
}

fn warnings(session: &Session, member: &Member) -> Vec<String> {
    let manifest = &member.manifest;
    let mut warnings = Vec::new();
    let mut missing = Vec::new();
    for (key, is_there) in [
        ("description", manifest.description.is_some()),
        ("license", manifest.license.is_some()),
        ("readme", manifest.readme.is_some()),
    ] {
        if !is_there {
            missing.push(format!("`{key}`"));
        }
    }
    if !missing.is_empty() {
        warnings.push(format!("the manifest of `{}` has no {}", manifest.name, missing.join(", ")));
    }
    let published = as_others_read(&member.id);
    for dependency in &manifest.dependencies {
        let reference = &dependency.reference;
        let others = reference.id(&published);
        let here = reference.id(&session.defaults());
        if others != here {
            let base = here.base();
            warnings.push(format!(
                "the dependency `{}` leads to `{here}` here, and to `{others}` first for others; \
                 write `{base}{}` or `{base}{}` to say which",
                reference.with_version(None),
                here.name_str(),
                others.name_str(),
            ));
        }
    }
    warnings
}

/// What the dependencies of a published package leave out: its own base, and its own namespace.
fn as_others_read(id: &PackageId) -> Defaults {
    Defaults { base: id.base(), namespace: id.name().namespace() }
}

/// Chooses versions of the dependencies as others will have to, without this workspace's own packages,
/// but for `siblings`.
///
/// # Errors
///
/// When a dependency cannot be had, or they do not fit together.
pub(super) fn dependencies(
    session: &Session,
    member: &Member,
    siblings: &Siblings,
) -> Result<(), CommandError> {
    let defaults = as_others_read(&member.id);
    let elsewhere = Session::open(
        session.environment.clone(),
        crate::ops::Options { locked: false, frozen: false, ..session.options.clone() },
        Scope::Global,
        std::sync::Arc::new(crate::ops::NoEvents),
    )?;
    let mut extra = Vec::new();
    for dependency in &member.manifest.dependencies {
        let here = dependency.reference.id(&session.defaults());
        let id = dependency.reference.id(&defaults);
        let sibling = siblings.get_key_value(&id).or_else(|| siblings.get_key_value(&here));
        if let Some((id, version)) = sibling {
            let spec = dependency.reference.spec();
            let names_versions = !matches!(spec, VersionSpec::Commit(_) | VersionSpec::Tag(_));
            if names_versions && !spec.accepts(version, dependency.prerelease) {
                let message = format!(
                    "`{}` asks for {id} {spec}, and this workspace publishes {version}",
                    member.manifest.name
                );
                return Err(CommandError::new(Code::NoSolution, message));
            }
            continue;
        }
        let reference = qualified(&elsewhere, dependency, &defaults)?;
        extra.push(print_extra(&manifest::Requirement { reference, ..dependency.clone() }));
    }
    if extra.is_empty() {
        return Ok(());
    }
    let mut requirements = Requirements::collect(&elsewhere, extra)?;
    for asked in &mut requirements.asked {
        asked.by = Requester::of(member);
    }
    let resolved = resolve_from(&elsewhere, &requirements, Update::Nothing, Arc::default());
    elsewhere.save_index();
    resolved.map(|_| ()).map_err(|error| {
        error
            .without_ways_out()
            .while_doing(format!(
                "others could not install `{}`: its dependencies cannot be had",
                member.manifest.name
            ))
            .hint("mend the dependencies in the manifest, or publish what is missing first")
    })
}

/// A dependency with nothing left out: of a single-segment name, the package beside its dependent if
/// there is one, else the one without a namespace.
fn qualified(
    session: &Session,
    dependency: &manifest::Requirement,
    defaults: &Defaults,
) -> Result<Reference, CommandError> {
    use crate::index::Universe as _;
    let reference = &dependency.reference;
    let beside = Reference::parse(&reference.qualified(defaults))?;
    if reference.base().is_some()
        || defaults.namespace.is_none()
        || reference.name().as_str().contains('/')
    {
        return Ok(if reference.base().is_some() { reference.clone() } else { beside });
    }
    let id = beside.id(defaults);
    let is_beside = session.index().releases(&id).is_ok_and(|releases| releases.tried().is_none());
    if is_beside {
        return Ok(beside);
    }
    let alone = Defaults { base: defaults.base.clone(), namespace: None };
    Ok(Reference::parse(&reference.qualified(&alone))?)
}
