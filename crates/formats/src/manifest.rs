//! A foreign package as the manifest that the rest of mu knows.

use mu_manifest::reference::{Name, Range, Reference, Version, VersionSpec};
use mu_manifest::{
    Capability, Constraint, Globs, Manifest, Person, Requirement, Upgrade, Versioning, Versions,
};
use mu_provider::{Dependency, Maintainer, Release};

use crate::format::{GIT, OLM, Package};

/// Converts a foreign package into a manifest; `None` if its name is not a valid name.
///
/// The dependencies were parsed as references when the package was read, so none is lost here.
pub fn manifest(package: &Package) -> Option<Manifest> {
    let release = &package.release;
    let dependencies = release.dependencies.iter().flatten().enumerate();
    let dependencies = dependencies.filter_map(|(index, dependency)| {
        let mut requirement = Requirement::new(Reference::parse(dependency.reference()).ok()?);
        if let Dependency::Detailed(detailed) = dependency {
            requirement.prerelease = detailed.prerelease;
            requirement.app_version.clone_from(&detailed.app_version);
        }
        requirement.alias = package.names.get(index).cloned().flatten();
        requirement.indirect = package.indirect.contains(&index);
        requirement.line = package.places.get(index).map_or(0, |place| place.line);
        Some(requirement)
    });
    let parsed = |texts: &[String]| -> Vec<Reference> {
        texts.iter().filter_map(|text| Reference::parse(text).ok()).collect()
    };
    let capabilities = |texts: &[String]| -> Vec<Capability> {
        texts.iter().filter_map(|text| Capability::parse(text).ok()).collect()
    };
    let constraints = release.constraints.iter();
    Some(Manifest {
        name: Reference::parse(&release.name).ok()?,
        version: version_of(release),
        written_version: Some(release.version.clone()).filter(|text| !text.is_empty()),
        app_version: release.app_version.clone(),
        versioning: match release.versioning {
            Some(_) => Versioning::Composite,
            None => Versioning::Semver,
        },
        versions: if release.is_lenient() { Versions::Lenient } else { Versions::Strict },
        format: release.format.clone(),
        api_version: release.api_version.clone(),
        mu_version: release.mu_version.as_deref().and_then(|text| Range::parse(text).ok()),
        description: release.description.clone(),
        authors: Vec::new(),
        maintainers: release.maintainers.iter().map(person).collect(),
        website: release.website.clone(),
        repository: release.repository.clone(),
        deprecated: release.deprecated.reason(),
        license: release.license.clone(),
        keywords: release.keywords.clone(),
        readme: None,
        files: Globs::all(),
        dependencies: dependencies.collect(),
        dev_dependencies: Vec::new(),
        replaces: parsed(&release.replaces),
        conflicts: Vec::new(),
        provides: capabilities(&release.provides),
        requires: capabilities(&release.requires),
        constraints: constraints
            .filter_map(|(fact, text)| Some((fact.clone(), Constraint::parse(text).ok()?)))
            .collect(),
        channels: release.channels.clone(),
        default_channel: release.default_channel.clone(),
        upgrade: release.upgrade.iter().map(upgrade).collect(),
        exports: Default::default(),
        build: None,
        generated: false,
    })
}

/// The version of a release with all that tells it from others: of a composite one, app version and revision. It may leave
/// numbers out.
pub fn version_of(release: &Release) -> Option<Version> {
    match (&release.versioning, &release.app_version) {
        (Some(_), app) => Version::composite(app.as_deref()?, &release.version).ok(),
        (None, _) => Version::parse_lenient(&release.version).ok(),
    }
}

/// Makes the manifest of a foreign package agree with the index line `line` in the keys where the two may
/// differ: an index may have less, and may write numbers differently.
pub fn as_listed(manifest: &mut Manifest, line: &Release) {
    if line.format.as_deref() == Some(OLM) {
        // A catalog says what its operators need, provide and take the place of. A bundle need not.
        let listed = self::manifest(&Package { release: line.clone(), ..Package::default() });
        if let Some(listed) = listed {
            let (name, version) = (manifest.name.clone(), manifest.version.clone());
            *manifest = Manifest { name, version, ..listed };
        }
        return;
    }
    manifest.app_version.clone_from(&line.app_version);
    if line.api_version.is_none() {
        manifest.api_version = None;
    }
    if line.dependencies.is_none() {
        manifest.dependencies.clear();
    }
    if line.format.as_deref() == Some(GIT) {
        for requirement in &mut manifest.dependencies {
            if let Some(listed) = beside(line, &requirement.reference) {
                requirement.reference = listed;
            }
        }
    }
}

/// What a line says in place of a folder beside the package in its repository: one version of the package that has that place
/// in the hub.
fn beside(line: &Release, written: &Reference) -> Option<Reference> {
    let meant = Name::parse(&line.name).ok()?.at_relative_path(written.local()?)?;
    let listed = line.dependencies.iter().flatten();
    let mut listed = listed.filter_map(|one| Reference::parse(one.reference()).ok());
    listed.find(|one| {
        one.base().is_none()
            && one.protocol().is_none()
            && *one.name() == meant
            && matches!(one.version(), Some(VersionSpec::Pin(_)))
    })
}

/// Whether two texts are one version, which may leave numbers out.
pub fn same_version(one: &str, other: &str) -> bool {
    let other = Version::parse_lenient(other);
    Version::parse_lenient(one).is_ok_and(|one| other.is_ok_and(|other| one == other))
}

fn upgrade(step: &mu_provider::Upgrade) -> Upgrade {
    let version = |text: &String| Version::parse_lenient(text).ok();
    Upgrade {
        channel: step.channel.clone(),
        replaces: step.replaces.as_ref().and_then(version),
        skips: step.skips.iter().filter_map(version).collect(),
        skip_range: step.skip_range.as_ref().and_then(|text| Range::parse(text).ok()),
    }
}

fn person(maintainer: &Maintainer) -> Person {
    match maintainer {
        Maintainer::Text(text) => Person::parse(text),
        Maintainer::Person { name, email } => {
            Person { name: name.clone(), email: email.clone(), url: None }
        }
    }
}
