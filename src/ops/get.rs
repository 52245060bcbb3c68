//! `get` and `add`: installs what the workspace needs, or what references name; `add` also writes them
//! into a manifest.

use std::path::Path;

use crate::manifest;
use crate::manifest::edit::Section;
use crate::ops::apply::element::find_package;
use crate::ops::apply::least::{
    self, Idle, Plan, carry_out, conclude, update_everything, with_newest,
};
use crate::ops::requirements::editing::Editing;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Requirements, print_extra, without};
use crate::ops::session::member;
use crate::ops::session::source::relative;
use crate::ops::solve::resolve::resolve;
use crate::ops::{Code, CommandError, Outcome, Scope, Session};
use crate::reference::{PackageId, Reference, VersionSpec};
use crate::select::Update;

/// What `get` is asked to do.
#[derive(Debug, Clone, Default)]
pub struct GetRequest {
    /// References; none means what the workspace needs.
    pub references: Vec<String>,
    /// Whether the references are written into a manifest, and into which.
    pub save: Option<Save>,
    /// Whether everything moves to its newest.
    pub update: bool,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// Only versions in this channel.
    pub channel: Option<String>,
    /// Only versions of this app version.
    pub app_version: Option<String>,
    /// Whether prereleases will do.
    pub prereleases: bool,
}

/// Into which manifest references are written.
#[derive(Debug, Clone, Default)]
pub struct Save {
    /// The package; `None` means the one around the current folder.
    pub package: Option<String>,
    /// Whether they are dependencies of development only.
    pub dev: bool,
}

/// Installs.
///
/// # Errors
///
/// When a reference cannot be read or leads nowhere, and for all that [`crate::ops::apply::install::install`] fails for.
pub fn get(session: &mut Session, request: &GetRequest) -> Result<Outcome, CommandError> {
    let mut notes = Vec::new();
    get_noting(session, request, &mut notes).map_err(|error| match error.code {
        Code::NotFound => notes.into_iter().fold(error, CommandError::hint),
        _ => error,
    })
}

/// Installs, and notes what there is to say if something is not found.
fn get_noting(
    session: &mut Session,
    request: &GetRequest,
    notes: &mut Vec<String>,
) -> Result<Outcome, CommandError> {
    let previous = session.lockfile()?.unwrap_or_default();
    let mut extra = previous.extra.clone();
    let mut editing = Editing::default();
    let mut dependencies = Vec::new();
    let target = match &request.save {
        Some(save) => {
            Some(member::target(session, save.package.as_deref(), "mu add REF -p PACKAGE")?)
        }
        None => None,
    };
    for text in &request.references {
        let reference = Reference::parse(text)?;
        let reference = match (reference.local(), target) {
            (None, _) => find_package(session, &reference, notes)?,
            (Some(folder), Some(target)) => {
                let from = &session.workspace.members[target].folder;
                seen_from(session, &reference, folder, from)?
            }
            (Some(folder), None) => seen_from(session, &reference, folder, &session.lock_folder())?,
        };
        dependencies.push(manifest::Requirement {
            channel: request.channel.clone(),
            app_version: request.app_version.clone(),
            prerelease: request.prereleases,
            ..manifest::Requirement::new(reference)
        });
    }
    let from = match target {
        Some(target) => session.workspace.members[target].folder.clone(),
        None => session.lock_folder(),
    };
    for dependency in &dependencies {
        let id = session.places.id_of(
            &dependency.reference,
            &session.defaults(),
            &from,
            &session.workspace,
        );
        extra = without(session, &extra, &id);
    }
    // The least version of a requirement that names none would be the oldest there is.
    if target.is_some() || least::is_in_force(session) {
        let by = target.map(|target| Requester::of(&session.workspace.members[target]));
        let by = by.unwrap_or(Requester::CommandLine);
        dependencies = with_versions(session, &extra, dependencies, &by)?;
    }
    match request.save.as_ref().zip(target) {
        None => extra.extend(dependencies.iter().map(print_extra)),
        Some((save, target)) => {
            let section = if save.dev { Section::DevDependencies } else { Section::Dependencies };
            for mut dependency in dependencies {
                if let Some(known) = known_as(session, target, &dependency.reference) {
                    let version = dependency.reference.version().cloned();
                    dependency.reference = known.with_version(version);
                }
                editing.change(session, target, |editor| editor.add(section, &dependency))?;
            }
        }
    }
    extra.sort();
    extra.dedup();
    let mut plan = Plan { editing, extra, ..Plan::default() };
    if !request.update {
        return carry_out(session, plan, Update::Nothing, Idle::Stay, request.dry_run);
    }
    if least::is_in_force(session) {
        update_everything(session, &mut plan)?;
    }
    conclude(session, plan, Update::Everything, request.dry_run)
}

/// A local folder of the command line as it is seen from `from`, where its reference will stand.
fn seen_from(
    session: &Session,
    reference: &Reference,
    folder: &str,
    from: &Path,
) -> Result<Reference, CommandError> {
    let is_anywhere = folder.starts_with('/') || session.environment.current == from;
    let folder = crate::env::absolute(&session.environment.current, folder.as_ref());
    if !folder.is_dir() {
        let message = format!("there is no folder `{}`", folder.display());
        return Err(CommandError::new(Code::NotFound, message));
    }
    if is_anywhere {
        return Ok(reference.clone());
    }
    let relative = relative(from, &folder);
    let prefix = if relative.starts_with('.') { "" } else { "./" };
    let version = reference.version_text().map(|text| format!("#{text}")).unwrap_or_default();
    Ok(Reference::parse(&format!("{prefix}{relative}{version}"))?)
}

/// How a package's manifest names the package of a new reference already.
fn known_as(session: &Session, target: usize, new: &Reference) -> Option<Reference> {
    let member = &session.workspace.members[target];
    let (places, workspace, defaults) = (&session.places, &session.workspace, session.defaults());
    let id = |reference| places.id_of(reference, &defaults, &member.folder, workspace);
    let new = id(new);
    let manifest = &member.manifest;
    let all = manifest.dependencies.iter().chain(&manifest.dev_dependencies);
    all.map(|known| &known.reference).find(|known| id(known) == new).cloned()
}

/// References that were written without a version get the newest that fits, as the least they accept. `by` is the package
/// that will depend on them.
fn with_versions(
    session: &Session,
    extra: &[String],
    dependencies: Vec<manifest::Requirement>,
    by: &Requester,
) -> Result<Vec<manifest::Requirement>, CommandError> {
    let needs = |dependency: &manifest::Requirement| {
        dependency.reference.version().is_none()
            && dependency.reference.local().is_none()
            && session.places.member_of(&session.id_of(&dependency.reference)).is_none()
    };
    if !dependencies.iter().any(needs) {
        return Ok(dependencies);
    }
    if least::is_in_force(session) {
        let requirements = Requirements::collect(session, extra.to_vec())?;
        return dependencies
            .into_iter()
            .map(|dependency| match needs(&dependency) {
                true => with_newest(session, &requirements, dependency, by),
                false => Ok(dependency),
            })
            .collect();
    }
    let mut asked = extra.to_vec();
    asked.extend(dependencies.iter().map(print_extra));
    let mut requirements = Requirements::collect(session, asked)?;
    for asked in requirements.asked.iter_mut().filter(|asked| asked.by == Requester::CommandLine) {
        if dependencies.iter().any(|dependency| dependency.reference == asked.reference) {
            asked.by = by.clone();
        }
    }
    // What is given with a version takes the place of what the manifest says.
    let given = dependencies.iter().filter(|dependency| dependency.reference.version().is_some());
    let given: Vec<PackageId> =
        given.map(|dependency| session.id_of(&dependency.reference)).collect();
    requirements.asked.retain(|asked| {
        asked.line.is_none() || asked.by != *by || !given.contains(&asked.requirement.id)
    });
    let resolved = resolve(session, &requirements, Update::Nothing)?;
    let versions = |id: &PackageId| -> Option<VersionSpec> {
        let package = resolved.lock.find(id).last()?;
        let has_tag = package.commit.is_none() || package.version != "0.0.0";
        let is_released = has_tag && package.reference.is_none();
        is_released.then(|| VersionSpec::parse(&format!("^{}", package.version)).ok()).flatten()
    };
    Ok(dependencies
        .into_iter()
        .map(|dependency| {
            if !needs(&dependency) {
                return dependency;
            }
            let version = versions(&session.id_of(&dependency.reference));
            let reference = dependency.reference.with_version(version);
            manifest::Requirement { reference, ..dependency }
        })
        .collect())
}

/// Whether there is anything here that `get` without references could install.
///
/// # Errors
///
/// When there is nothing: the error says how to begin.
pub fn check_not_empty(session: &Session) -> Result<(), CommandError> {
    if !session.workspace.members.is_empty() || session.lockfile()?.is_some() {
        return Ok(());
    }
    if session.scope == Scope::Global {
        let message = "no packages are installed for every workspace";
        return Err(
            CommandError::new(Code::NotFound, message).hint("`mu get --global REF` installs one")
        );
    }
    let folder = session.workspace.root.display();
    Err(CommandError::new(
        Code::NotFound,
        format!("there is no Mu.yaml in `{folder}` or below it, and no Mu.lock"),
    )
    .hint("`mu init` begins a package here, and `mu get REF` installs one without")
    .hint("what `mu get REF` installs stays until `mu remove REF`"))
}
