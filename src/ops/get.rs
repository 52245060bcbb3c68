//! `get`, `add` and `remove`: `get` installs what the workspace needs, or what references name; `add` also writes them
//! into a manifest; `remove` drops packages from manifests (or from what `mu get` was given), the lock and the packs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use crate::lock::Lockfile;
use crate::manifest::edit::Section;
use crate::manifest::{self, Manifest};
use crate::ops::apply::draft::ManifestDraft;
use crate::ops::apply::element::find_element_package;
use crate::ops::apply::transaction::{Adding, Transaction};
use crate::ops::explain::unserved::{not_asked_for, requirers};
use crate::ops::requirements::editing::refuse_several;
use crate::ops::requirements::names::unambiguous_name;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Requirements, print_extra, references_without};
use crate::ops::session::disk::local_folder;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::locked;
use crate::ops::session::locked::{PackageName, Purpose, find_locked};
use crate::ops::session::opening::warn_of_redirects;
use crate::ops::session::source::relative;
use crate::ops::solve::asking::{dependency_with_beginning, refuse_frozen};
use crate::ops::solve::is_locked_as;
use crate::ops::solve::question::{Narrowing, without_packages};
use crate::ops::{Code, CommandError, OperationScope, Outcome, Session, Warning};
use crate::reference::{PackageId, Range, Reference, Version, VersionSpec};
use crate::select::Update;
use crate::workspace::formats_below;

/// The request of `get`.
#[derive(Debug, Clone, Default)]
pub struct GetRequest {
    /// References; none means what the workspace needs.
    pub references: Vec<String>,
    /// Whether the references are written into a manifest, and into which.
    pub save: Option<Save>,
    /// Whether everything moves to its newest version.
    pub update: bool,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// Further limits on versions; an empty channel or app version removes the one in a manifest.
    pub narrowing: Narrowing,
}

/// Into which manifest references are written.
#[derive(Debug, Clone, Default)]
pub struct Save {
    /// The package; `None` means the one around the current folder.
    pub package: Option<String>,
    /// Whether they are dev dependencies.
    pub dev: bool,
    /// The name of the one dependency in the manifest.
    pub alias: Option<String>,
}

impl Save {
    fn section(&self) -> Section {
        if self.dev { Section::DevDependencies } else { Section::Dependencies }
    }
}

/// Installs.
pub fn get(session: &Session, request: &GetRequest) -> Result<Outcome, CommandError> {
    warn_of_redirects(session);
    let mut notes = Vec::new();
    get_noting(session, request, &mut notes).map_err(|error| match error.code {
        Code::NotFound => notes.into_iter().fold(error, CommandError::hint),
        _ => error,
    })
}

/// Installs, and records what to report if something is not found.
fn get_noting(
    session: &Session,
    request: &GetRequest,
    notes: &mut Vec<String>,
) -> Result<Outcome, CommandError> {
    if request.references.is_empty() && !request.narrowing.is_empty() {
        return Err(without_packages("mu get ops/kafka --app-version 2.3"));
    }
    let target = match &request.save {
        Some(save) => {
            let member = locked::target(session, save.package.as_deref(), "mu add REF -p PACKAGE")?;
            Some((member, save.section()))
        }
        None => None,
    };
    let member = target.map(|(member, _)| member);
    let dependencies = read(session, request, member, notes)?;
    let named = each_once(session, &dependencies, member)?;
    named.iter().for_each(|id| session.index().ask_about(id));
    let previous = session.lockfile()?.unwrap_or_default();
    if target.is_none() && session.options.frozen {
        check_locked(session, &dependencies, &previous)?;
    }
    // What `mu get` is given replaces what it was given for the same package before.
    let extra = named
        .iter()
        .fold(previous.extra.clone(), |extra, id| references_without(session, &extra, id));
    let mut draft = ManifestDraft::with_references(extra);
    let dependencies = match target {
        Some(list) => narrow(session, request, list, &mut draft, dependencies)?,
        None => dependencies,
    };
    let by = member.map(|member| Requester::from_member(&session.workspace.members[member]));
    let by = by.unwrap_or(Requester::CommandLine);
    // `ready` can be written as it is. For `open`, versions have to be chosen first.
    let (ready, open) = begin(session, &draft.collect_drafted(session)?, dependencies, &by)?;
    let is_kept = target.is_none() && session.scope == OperationScope::Workspace;
    let given = ready.iter().chain(&open).map(|one| one.reference.with_version(None).to_string());
    let kept: Vec<String> =
        given.filter(|_| is_kept && !session.options.frozen && !request.dry_run).collect();
    let mut adding = None;
    match target {
        None => draft.extra.extend(ready.iter().chain(&open).map(print_extra)),
        Some((member, section)) => {
            for dependency in ready {
                draft.editing.write_dependency(session, member, section, dependency)?;
            }
            adding = Some(Adding { member, section, dependencies: open });
        }
    }
    // Two people who run the same commands in another order get the same lock.
    draft.extra.sort();
    draft.extra.dedup();
    let mut transaction = if request.update {
        refuse_frozen(session)?;
        draft.move_everything(session)?;
        Transaction::new(session, draft, Update::Everything)?
    } else {
        Transaction::tidied(session, draft)?
    };
    if let Some(adding) = adding {
        transaction = transaction.writing_chosen(session, adding, &by);
    }
    let outcome = transaction.run(session, request.dry_run)?;
    Ok(Outcome { kept, ..outcome })
}

/// What the references of the request require, as they are written for the member `target`, or for the lock.
fn read(
    session: &Session,
    request: &GetRequest,
    target: Option<usize>,
    notes: &mut Vec<String>,
) -> Result<Vec<manifest::Requirement>, CommandError> {
    let alias = request.save.as_ref().and_then(|save| save.alias.clone());
    if let Some(alias) = &alias {
        check_alias(alias, &request.references)?;
    }
    let mut dependencies = Vec::new();
    for (at, text) in request.references.iter().enumerate() {
        refuse_version_apart(text, request.references.get(at.wrapping_sub(1)))?;
        let reference = Reference::parse(text)?;
        let member = target.map(|target| &session.workspace.members[target]);
        // What a person types is seen from the current folder. What is written is seen from the file that it is written
        // into, and a package of the workspace has its name there.
        let reference = match (reference.local(), target) {
            (None, _) => find_element_package(session, member, &reference, notes)?,
            (Some(folder), Some(target)) => {
                let from = &session.workspace.members[target].folder;
                match sibling_in(session, folder, target) {
                    Some(name) => {
                        Reference::parse(&name)?.with_version(reference.version().cloned())
                    }
                    None => seen_from(session, &reference, folder, from)?,
                }
            }
            (Some(folder), None) => seen_from(session, &reference, folder, session.lock_folder())?,
        };
        let narrowing = &request.narrowing;
        let dependency = manifest::Requirement {
            channel: narrowing.channel.clone().filter(|channel| !channel.is_empty()),
            app_version: narrowing.app_version.clone().filter(|version| !version.is_empty()),
            prerelease: narrowing.prereleases,
            alias: alias.clone(),
            ..manifest::Requirement::new(reference)
        };
        dependencies.push(narrowing.at_revision(session, dependency)?);
    }
    Ok(dependencies)
}

/// Refuses a version that stands after its package as a word of its own, as it would be looked up as a package.
fn refuse_version_apart(text: &str, before: Option<&String>) -> Result<(), CommandError> {
    let is_version = Version::parse_lenient(text).is_ok() || Range::parse(text).is_ok();
    let Some(before) = before.filter(|before| is_version && !before.contains('#')) else {
        return Ok(());
    };
    let message = format!("`{text}` is a version, and no package");
    let whole = format!("{before}#{text}");
    // A shell takes nothing in the other ones for itself.
    let is_plain = !text.contains(['<', '>', '|', '*', ' ', '^']);
    let whole = if is_plain { whole } else { quoted_for_shell(&whole) };
    Err(CommandError::new(Code::Usage, message).hint(format!("write `{whole}`")))
}

/// Checks the name of a dependency in the manifest.
fn check_alias(alias: &str, references: &[String]) -> Result<(), CommandError> {
    let refused = |message: String| Err(CommandError::new(Code::Usage, message));
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if alias.is_empty() || !alias.chars().all(is_letter) {
        return refused(format!("`{alias}` is not an alias: it has letters, digits, `-` and `_`"));
    }
    match references {
        [_] => Ok(()),
        _ => refused("`--alias` is for one dependency: add them one by one".to_owned()),
    }
}

/// The packages that the command names: each once, and not the one whose manifest is to change.
fn each_once(
    session: &Session,
    dependencies: &[manifest::Requirement],
    target: Option<usize>,
) -> Result<BTreeSet<PackageId>, CommandError> {
    let own = target.map(|target| &session.workspace.members[target]);
    let from = own.map_or_else(|| session.lock_folder(), |own| &own.folder);
    let mut named: BTreeMap<PackageId, &Reference> = BTreeMap::new();
    for dependency in dependencies {
        let reference = &dependency.reference;
        let (places, workspace) = (&session.places, &session.workspace);
        let id = places.id_of(reference, &session.reference_defaults(), from, workspace);
        if let Some(own) = own.filter(|own| own.id == id) {
            let message = format!("`{}` cannot depend on itself", own.manifest.name);
            let hint = match &session.workspace.members[..] {
                [_] => {
                    format!("`{reference}` is the package in this folder: name one that it needs")
                }
                _ => "`-p PACKAGE` names the package whose manifest is to change".to_owned(),
            };
            return Err(CommandError::new(Code::Usage, message).hint(hint));
        }
        // Each entry is for one package, so the second one would replace the first, and nobody would see it.
        if let Some(first) = named.get(&id).filter(|first| **first != reference) {
            let message = format!("the command names `{id}` twice: `{first}` and `{reference}`");
            let verb = if target.is_some() { "add" } else { "get" };
            let once = format!("`mu {verb} {}`", quoted_for_shell(reference.as_str()));
            return Err(CommandError::new(Code::Usage, message)
                .hint(format!("name each package once, such as {once}")));
        }
        named.insert(id, reference);
    }
    Ok(named.into_keys().collect())
}

/// Checks that a frozen lock has everything that the command names, in a version that it accepts.
fn check_locked(
    session: &Session,
    dependencies: &[manifest::Requirement],
    lock: &Lockfile,
) -> Result<(), CommandError> {
    for manifest::Requirement { reference, .. } in dependencies {
        let id = session.id_of_argument(reference);
        let own = session.workspace.member(&id).is_some() || lock.replacement(&id).is_some();
        if own || lock.find(&id).any(|package| is_locked_as(package, &reference.spec())) {
            continue;
        }
        let has = match lock.find(&id).last() {
            Some(package) => format!("has {id} {}", package.version),
            None => format!("does not have `{id}`"),
        };
        let message = format!(
            "`{reference}` cannot be installed: Mu.lock {has}, and --frozen forbids changing it"
        );
        return Err(CommandError::new(Code::LockOutdated, message).hint(format!(
            "run `mu get {}` without --frozen, and commit Mu.lock",
            quoted_for_shell(reference.as_str())
        )));
    }
    Ok(())
}

/// Writes channels and app versions to the entries that the manifest already has; returns what is still to add.
fn narrow(
    session: &Session,
    request: &GetRequest,
    list: (usize, Section),
    draft: &mut ManifestDraft,
    dependencies: Vec<manifest::Requirement>,
) -> Result<Vec<manifest::Requirement>, CommandError> {
    let narrowing = &request.narrowing;
    if narrowing.is_empty() || narrowing.revision.is_some() {
        return Ok(dependencies);
    }
    let narrowing = [narrowing.channel.as_ref(), narrowing.app_version.as_ref()];
    let mut left = Vec::new();
    for dependency in dependencies {
        let listed = draft.editing.narrow(session, list, &dependency, narrowing)?;
        if listed != Some(true) || dependency.reference.version().is_some() {
            left.push(dependency);
        }
    }
    Ok(left)
}

/// Gives dependencies without a version the one to begin with; the second list has those whose version is known only once
/// one was chosen.
fn begin(
    session: &Session,
    requirements: &Rc<Requirements>,
    dependencies: Vec<manifest::Requirement>,
    by: &Requester,
) -> Result<(Vec<manifest::Requirement>, Vec<manifest::Requirement>), CommandError> {
    let (mut ready, mut open) = (Vec::new(), Vec::new());
    for mut dependency in dependencies {
        let reference = &dependency.reference;
        let is_open = reference.version().is_none() && reference.local().is_none();
        let sibling =
            session.places.member_of(&session.id_of_argument(reference)).filter(|_| is_open);
        if let Some(version) = sibling.and_then(|sibling| sibling.version.as_ref())
            && *by != Requester::CommandLine
        {
            // A package that is published later must say which versions it accepts.
            let version = VersionSpec::compatible_with(version);
            dependency.reference = reference.with_version(Some(version));
        }
        if !is_open || sibling.is_some() {
            ready.push(dependency);
            continue;
        }
        match dependency_with_beginning(session, requirements, &dependency, by)? {
            Some(begun) => ready.push(begun),
            None => open.push(dependency),
        }
    }
    Ok((ready, open))
}

/// How the manifest of the member `target` names the package of the workspace in `folder`, if its name leads there.
fn sibling_in(session: &Session, folder: &str, target: usize) -> Option<String> {
    let folder = crate::env::absolute(&session.environment.current, folder.as_ref());
    let sibling = session.workspace.members.iter().find(|member| member.folder == folder)?;
    let found = session.places.member_of(&sibling.id).filter(|found| found.folder == folder);
    found.map(|_| unambiguous_name(session, &session.workspace.members[target], &sibling.id))
}

/// Whether a folder has the workspace in it, and is not a package: hashing it would read all of the disk in the end, and its
/// content would change with what is installed.
fn has_workspace(session: &Session, folder: &Path) -> bool {
    session.workspace.root.starts_with(folder) && matches!(Manifest::locate(folder), Ok(None))
}

/// A local folder of the command line, relative to `from`, where its reference will be.
fn seen_from(
    session: &Session,
    reference: &Reference,
    folder: &str,
    from: &Path,
) -> Result<Reference, CommandError> {
    // An absolute path stays what its author wants it to be.
    let is_anywhere = folder.starts_with('/') || session.environment.current == from;
    let folder = local_folder(session, folder)?;
    if has_workspace(session, &folder) {
        let is = if session.workspace.root == folder { "is" } else { "contains" };
        let message = format!("`{}` {is} this workspace, and has no Mu.yaml", folder.display());
        return Err(CommandError::new(Code::Usage, message).hint(
            "a folder without a Mu.yaml is a package with all that is in it: name a smaller one",
        ));
    }
    if is_anywhere {
        return Ok(reference.clone());
    }
    let relative = relative(from, &folder);
    // Without `./`, `lib` would be the name of a package.
    let prefix = if relative.starts_with('.') { "" } else { "./" };
    let version = reference.version_text().map(|text| format!("#{text}")).unwrap_or_default();
    Ok(Reference::parse(&format!("{prefix}{relative}{version}"))?)
}

/// Checks that there is anything here that `get` without references could install.
pub fn check_not_empty(session: &Session) -> Result<(), CommandError> {
    if !session.workspace.members.is_empty() || session.lockfile()?.is_some() {
        return Ok(());
    }
    if session.scope == OperationScope::Global {
        let message = "no global packages are installed";
        return Err(
            CommandError::new(Code::NotFound, message).hint("`mu get --global REF` installs one")
        );
    }
    let root = &session.workspace.root;
    let message =
        format!("there is no Mu.yaml in `{}` or below it, and no Mu.lock", root.display());
    let error = CommandError::new(Code::NotFound, message);
    let entries = crate::fs::entries_if_there(root).unwrap_or_default();
    let misspelt = entries.iter().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let right = manifest::manifest_name(&name).filter(|right| *right != name)?;
        Some(format!("rename `{name}` to `{right}`"))
    });
    if let Some(hint) = misspelt {
        return Err(error.hint(hint));
    }
    let own = [&*session.environment.mu_home, &*session.environment.cache];
    let formats = formats_below(root, own);
    Err(match formats.is_empty() {
        true => error.hint(
            "`mu init` creates a package here, and `mu get REF` installs packages without one",
        ),
        false => {
            let list = format!("[{}]", formats.join(", "));
            error.hint(format!(
                "packages of other tools are below it: `mu config set formats {}` makes them the workspace's own",
                quoted_for_shell(&list)
            ))
        }
    })
}

/// What to remove, and from where.
#[derive(Debug, Clone, Default)]
pub struct RemoveRequest {
    /// References, ids, or the local names of dependencies.
    pub references: Vec<String>,
    /// The package of the workspace whose manifest is edited; `None` means the one around the current folder.
    pub package: Option<String>,
    /// Whether all manifests of the workspace are edited.
    pub all: bool,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// Removes packages from the manifest around the current folder, or from all manifests if there is none; and
/// from what `mu get` was given.
///
/// Several manifests are edited only if requested.
pub fn remove(session: &Session, request: &RemoveRequest) -> Result<Outcome, CommandError> {
    let previous = session.lockfile()?.unwrap_or_default();
    let mut draft = ManifestDraft::new(session)?;
    let everywhere: Vec<usize> = (0..session.workspace.members.len()).collect();
    let named = request.package.as_deref();
    let targets = match named {
        Some(_) => vec![locked::target(session, named, "mu remove REF -p PACKAGE")?],
        None if request.all => everywhere,
        None => locked::around(session)?.map_or(everywhere, |index| vec![index]),
    };
    let mut removed = BTreeSet::new();
    for text in &request.references {
        let name = PackageName::without_version(text, Purpose::Remove)?;
        let found = find_locked(session, &previous, &name);
        let id = found
            .as_ref()
            .map_or_else(|_| session.id_of_argument(name.reference()), PackageId::clone);
        // Who names a package twice means it once.
        if removed.contains(&id) {
            continue;
        }
        if !request.all {
            refuse_several(session, &draft.editing.changed, &targets, text, &id)?;
        }
        let is_listed = draft.editing.leave(session, &targets, text, &id)?;
        let rest = references_without(session, &draft.extra, &id);
        let is_given = rest.len() < draft.extra.len();
        draft.extra = rest;
        let is_kept = previous.replacement(&id).is_some_and(|replaced| replaced.kept.is_some());
        if !is_listed && !is_given && !is_kept {
            // The beginning of a name is missing, and there are several.
            if let Err(error) = found
                && error.code == Code::Usage
            {
                return Err(error);
            }
            return Err(not_asked_for(session, text, &id, &draft.extra));
        }
        removed.insert(id);
    }
    draft.tidy_after_removal(session)?;
    let transaction = Transaction::new(session, draft, Update::Nothing)?;
    let outcome = transaction.discarding(removed.clone()).run(session, request.dry_run)?;
    let left = targets.iter().map(|target| &session.workspace.members[*target]);
    let left: BTreeSet<String> =
        left.map(|member| Requester::from_member(member).to_string()).collect();
    for package in removed.iter().filter_map(|id| outcome.lock.find(id).next()) {
        // A frozen lock still has those that required it until now.
        let mut by = requirers(package);
        by.retain(|by| !left.contains(by));
        if !by.is_empty() {
            session.events.warning(&Warning::StillRequired { id: package.id.clone(), by });
        }
    }
    Ok(outcome)
}
