//! Why something failed or was passed over, in words, and hints. Here, a failed selection becomes the error that the user sees.

pub mod carried;
mod details;
pub(crate) mod places;
pub(crate) mod unserved;
pub(crate) mod untrusted;
mod ways_out;

use std::borrow::Cow;
use std::path::Path;

use mu_archive::Packing;
use mu_provider::PlaceKind;

use crate::formats;
use crate::index::{
    Cause, LeftOut, Unavailable, Universe as _, cause, nearest_ids, unreadable_version,
};
use crate::manifest::source::printable;
use crate::ops::explain::details::{ConflictDetails, UnfinishedDetails};
use crate::ops::explain::places::{misplaced, only_pack, read_otherwise, report_installed};
use crate::ops::explain::ways_out::Remedy;
use crate::ops::requirements::names::is_nowhere;
use crate::ops::requirements::supposition::CommandChange;
use crate::ops::requirements::{ADD_REQUIRER, Asked, Requirements};
use crate::ops::session::error::{code_of, place, quoted_for_shell};
use crate::ops::session::places::folder_for_people;
use crate::ops::session::shown::count;
use crate::ops::session::source::source_of;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{ArtifactDigest, Base, PackageId, Version};
use crate::select::{
    CapabilityClash, Conflict, Fact, Failure, Requirer, SelectionRequest, Strategy, Unfinished,
    WayOut,
};

/// The error of a failed selection, with what helps against it; `leads_out` tries what the commands of a way out change in manifests.
///
/// The first hint is the one that people follow, so their order is a policy:
///
/// 1. why a package is not there at all: a misplaced folder, an address copied from a browser, a pack of this machine;
/// 2. for a command that only moves versions, which command changes what is required, if no way out was found;
/// 3. the ways out, each of which was tried; the cheapest comes first;
/// 4. what the settings can say of the runtime;
/// 5. only if there is nothing else: where to look for versions, and what the command itself left out.
pub(crate) fn selection_error(
    session: &Session,
    requirements: &Requirements,
    strategy: &dyn Strategy,
    request: &SelectionRequest,
    mut failure: Failure,
    leads_out: &dyn Fn(&WayOut, &[CommandChange]) -> bool,
) -> CommandError {
    if let Failure::Conflict(conflict) = &mut failure {
        // No way out leads to a version that the rules accept.
        if let Some(error) = untrusted::of_conflict(session, conflict) {
            return error;
        }
        // Before ways out are looked for: names that are similar, for example, come from the session.
        complete(session, conflict);
    }
    let mut ways_out = strategy.ways_out(session.index(), request, &failure);
    if let Failure::Unavailable(error) = &failure {
        ways_out.extend(copies(session, &error.id));
    }
    let remedies = ways_out::remedies(session, requirements, &ways_out, leads_out);
    match failure {
        Failure::Unavailable(error) => {
            ways_out::attach(unavailable_error(session, error), remedies)
        }
        Failure::Unfinished(unfinished) => too_hard(session, requirements, &unfinished, remedies),
        Failure::Conflict(mut conflict) => {
            // After them, because they find requirements by who has them, and this gives some another name.
            tell_apart(requirements, &mut conflict);
            let missing = is_missing(&conflict);
            let code = if missing { Code::NotFound } else { Code::NoSolution };
            let headline = headline(session, &conflict, missing);
            let text = conflict.to_string();
            let lines: Vec<&str> = text.lines().collect();
            let by: Vec<&str> = request.roots.iter().map(|root| root.by.as_str()).collect();
            let mut error = CommandError::new(code, format!("{headline}\n{}", indent(&lines)))
                .with_details(ConflictDetails::new(&conflict, &lines, by.clone(), &remedies));
            // 1. Why a package is not there.
            for clash in conflict.clashes.iter().filter(|clash| clash.tried.is_some()) {
                let id = &clash.id;
                let own = session.workspace.member(id);
                let own = own.map(|member| misplaced(session, member).to_string());
                let hints =
                    unserved::browsed(id).into_iter().chain(no_repository(session, id)).chain(own);
                let hints = hints.chain(report_installed(session, id));
                let hints = hints.chain(read_otherwise(session, requirements, id));
                let hints = hints.chain(unserved::no_place(session, id)).chain(gone(session, id));
                let hints = hints.chain(of_default_base(session, requirements, id));
                error = hints.fold(error, CommandError::hint);
            }
            let packs = conflict.clashes.iter().filter_map(|clash| only_pack(session, &clash.id));
            error = packs.fold(error, CommandError::hint);
            // 2. Which command changes what is required.
            if !missing && remedies.is_empty() && moves_own(requirements) {
                let file = session.workspace.common_manifest_name();
                let hint = format!(
                    "`mu add 'PKG#VERSION'` changes the requirement in {file}, `mu upgrade` raises it"
                );
                error = error.hint(hint);
            }
            // 3. The ways out.
            let has_way = !remedies.is_empty();
            error = ways_out::attach(error, remedies);
            // 4. What the settings can say, if nothing that is known provides a capability.
            let unheard =
                |clash: &&CapabilityClash| !clash.is_provided && clash.rejected.is_empty();
            if let Some(CapabilityClash { capability, .. }) =
                conflict.capabilities.iter().find(unheard)
            {
                error = error.hint(format!(
                    "if the runtime has it, write `runtime: {{provides: [{capability}]}}` into `.mu/workspace.yaml`; \
                     if a package has it without saying so, `packages: {{ID: {{provides: [{capability}]}}}}`"
                ));
            }
            if let [clash] = &conflict.clashes[..]
                && clash.tried.is_some()
                && clash.similar.is_empty()
                && error.hints.is_empty()
            {
                error = error.hint(absent(session, &clash.id));
            }
            if let [clash] = &conflict.clashes[..]
                && clash
                    .asked
                    .iter()
                    .flatten()
                    .any(|asked| ArtifactDigest::is_artifact_digest(asked))
                && error.hints.is_empty()
            {
                // Its id alone may not say that it is in an OCI registry.
                let name = session.index().written(&clash.id);
                let name = name.map_or_else(|| session.short_name(&clash.id), Cow::Owned);
                let name = quoted_for_shell(&name);
                error =
                    error.hint(format!("`mu versions {name}` lists the versions that there are"));
            }
            // 5. And what the command left out.
            if !missing && !has_way && session.options.published_before.is_some() {
                error = error.hint("versions newer than --exclude-newer were passed over");
            }
            error
        }
    }
}

/// Whether a command moves what a manifest requires, too.
fn moves_own(requirements: &Requirements) -> bool {
    let (moved, own): (Vec<&Asked>, Vec<&Asked>) =
        requirements.asked.iter().partition(|asked| asked.by.is_move());
    let is_moved = |own: &Asked| moved.iter().any(|one| one.requirement.id == own.requirement.id);
    own.into_iter().any(is_moved)
}

/// What went wrong, in a few words that fit one package as well as several.
fn headline(session: &Session, conflict: &Conflict, missing: bool) -> String {
    match (missing, &conflict.clashes[..]) {
        (true, [clash]) if clash.tried.is_some() => match repository(session, &clash.id) {
            Some(written) => format!("Git repository not found: `{written}`"),
            None => format!("package not found: `{}`", session.short_name(&clash.id)),
        },
        (true, [clash]) => {
            let name = session.short_name(&clash.id);
            format!("no version of {name} meets the requirements")
        }
        (true, _) => "some packages or versions do not exist".to_owned(),
        (false, []) if conflict.capabilities.iter().any(|clash| !clash.is_provided) => {
            "nothing provides what is required".to_owned()
        }
        (false, [clash]) if clash.asked.len() == 1 && clash.needed.is_none() => {
            format!("no version of {} can be used", session.short_name(&clash.id))
        }
        (false, _) => "no versions fit together".to_owned(),
    }
}

/// The factor by which the hint for a stopped search raises the number of steps.
const LONGER: usize = 10;

/// The error of a stopped search.
fn too_hard(
    session: &Session,
    requirements: &Requirements,
    unfinished: &Unfinished,
    remedies: Vec<Remedy>,
) -> CommandError {
    let text = unfinished.to_string();
    let lines: Vec<&str> = text.lines().collect();
    let steps = unfinished.steps;
    let headline = format!("choosing versions was stopped after {}", count(steps, "step"));
    let mut error = CommandError::new(Code::NoSolution, format!("{headline}\n{}", indent(&lines)))
        .with_details(UnfinishedDetails {
            explanation: &lines,
            steps,
            packages: &unfinished.packages,
            ways_out: &remedies,
        });
    if remedies.is_empty()
        && let Some(id) = unfinished.packages.first()
    {
        let name = session.short_name(id);
        let hint = format!(
            "with less to choose it takes fewer steps: pin what you know, such as `{name}#VERSION`"
        );
        error = error.hint(hint);
    }
    // To search longer is always offered, and last: most often it takes as long and ends the same way.
    let longer = ways_out::longer(session, requirements, steps.saturating_mul(LONGER));
    ways_out::attach(error, remedies).hint(longer)
}

/// How many folders of a repository are named.
const MOST_FOLDERS: usize = 8;

/// Adds what only the session knows: names in the workspace and the lock, and where versions come from.
fn complete(session: &Session, conflict: &mut Conflict) {
    let is_missing = is_missing(conflict);
    for clash in &mut conflict.clashes {
        clash.notes.extend(details::too_new_notes(session, clash));
        if clash.tried.is_some() {
            let lock = session.lockfile().ok().flatten().unwrap_or_default();
            let locked = lock.packages.iter().map(|package| package.id.clone());
            let members = session.workspace.members.iter().map(|member| member.id.clone());
            // What the registry found similar, what is in the workspace and what is locked are weighed together.
            let known = std::mem::take(&mut clash.similar).into_iter().chain(members).chain(locked);
            clash.similar = nearest_ids(&clash.id, known);
        } else if is_missing {
            // It may have no version at all.
            let route = session.index().route(&clash.id);
            if route
                .as_ref()
                .is_ok_and(|route| route.provider.facts().kind == PlaceKind::Repository)
            {
                let has_versions = !clash.available.is_empty() || !clash.rejected.is_empty();
                let notes = unserved::notes(session, clash, has_versions);
                clash.notes.extend(notes);
                let folders = session.index().folders_with_versions(&clash.id).unwrap_or_default();
                let folders: Vec<String> = folders
                    .iter()
                    .take(MOST_FOLDERS)
                    .map(|one| format!("`{}`", printable(one)))
                    .collect();
                if !has_versions && !folders.is_empty() {
                    let all = folders.join(", ");
                    clash.notes.push(format!("its tags give versions to folders: {all}"));
                }
            }
            let left_out = session.index().left_out(&clash.id).unwrap_or_default();
            let left_out = LeftOut::in_words(&left_out);
            clash.notes.extend(left_out.map(|words| format!("left out: {words}")));
            clash.source = route.ok().map(|route| source_of(session, &route).to_string());
        }
    }
}

/// Distinguishes a command's requirement on a package from the manifest's, which the command would change.
fn tell_apart(requirements: &Requirements, conflict: &mut Conflict) {
    let all = &requirements.asked;
    // `mu add 'a#^2'`, and the manifest has `a ^1`: both are requirements of this manifest. If they clash, the user
    // must see which one is the command's, which is called `mu add` in the explanation.
    let new = all.iter().filter(|asked| {
        let is_same =
            |other: &&Asked| other.by == asked.by && other.requirement.id == asked.requirement.id;
        let mut listed = all.iter().filter(|other| other.line.is_some()).filter(is_same);
        asked.line.is_none() && listed.next().is_some()
    });
    for new in new {
        let wording = new.requirement.to_string();
        let is_it = |fact: &Fact| match fact {
            Fact::Requires { by: Requirer::Roots(names), id, asked } => {
                *id == new.requirement.id
                    && names.iter().any(|name| name == new.by.as_str())
                    && asked.contains(&wording)
            }
            _ => false,
        };
        let Some(place) = conflict.facts.iter().position(is_it) else { continue };
        let Fact::Requires { asked, .. } = &mut conflict.facts[place] else { continue };
        asked.retain(|one| *one != wording);
        let by = Requirer::Roots(vec![ADD_REQUIRER.to_owned()]);
        let id = new.requirement.id.clone();
        let fact = Fact::Requires { by, id, asked: vec![wording] };
        // If the manifest's own wording is in the same fact, that stays, and the command's comes behind it.
        if asked.is_empty() {
            conflict.facts[place] = fact;
        } else {
            conflict.facts.insert(place + 1, fact);
        }
    }
}

/// Whether the conflict is only that something required does not exist.
fn is_missing(conflict: &Conflict) -> bool {
    !conflict.clashes.is_empty()
        && conflict.clashes.iter().all(|clash| {
            let is_alone = clash.asked.len() == 1 && clash.needed.is_none();
            // If rules exclude what is asked for, it exists.
            clash.tried.is_some() || (is_alone && clash.rejected.is_empty())
        })
}

fn indent(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// The error of something that could not be looked up.
pub(crate) fn unavailable_error(session: &Session, error: Unavailable) -> CommandError {
    let (code, mut hints) = match cause(&error) {
        Cause::TooMany(message) => {
            return CommandError::new(Code::NoSolution, message)
                .hint("a registry that invents packages never ends: remove the dependency that leads to it")
                .hint("if you need all of these packages, raise the limit with `--most N`");
        }
        Cause::Provider(provider) => {
            let plain = provider.is_without_tls().then(|| unserved::plain_http(session, &error.id));
            let hints = match plain.flatten() {
                Some(hint) => vec![hint],
                None => provider.hints().to_vec(),
            };
            (code_of(provider.kind()), hints)
        }
        Cause::Route => (Code::Reference, Vec::new()),
        Cause::NoDigests => {
            let hint = format!(
                "pin its version, such as `{}#1.0.0`; Mu.lock has the digest of its content",
                session.short_name(&error.id)
            );
            return CommandError::from_error(Code::Reference, error).hint(hint);
        }
        Cause::Refused => {
            let hint = "if you trust it, say so yourself: lead there by `registries` or `overrides` in the settings";
            let mut hints = vec![hint.to_owned()];
            hints.extend(without(&error));
            (Code::Untrusted, hints)
        }
        Cause::Package => (Code::Manifest, without(&error).into_iter().collect()),
        Cause::Cache => (Code::Io, vec!["`mu cache clean` empties the cache".to_owned()]),
    };
    // What the provider says comes first: it was there. Then what only the workspace knows: another package of that name, a pack of
    // this machine, a base that is not the right one. General advice comes only where there is nothing else.
    hints.extend(unserved::browsed(&error.id));
    let own = hints.len();
    match code {
        Code::Network if !session.options.offline => {
            hints.extend(places::misplacement(session, &error.id).map(|one| one.to_string()));
            hints.extend(report_installed(session, &error.id));
            if is_nowhere(&session.workspace.settings, &error.id) {
                hints.extend(in_helms_repository(session, &error.id));
                hints.extend(at_another_base(&error.id));
            }
            let lock = session.lockfile().ok().flatten();
            if lock.is_some_and(|lock| lock.find(&error.id).next().is_some()) {
                hints.push("`--offline` uses only what is already on this machine".to_owned());
            }
            if hints.is_empty() {
                hints.push("`mu doctor` checks registries, the proxy and certificates".to_owned());
            }
        }
        Code::Offline => {
            let what = session.short_name(&error.id);
            let is_set = session.environment.variable("MU_OFFLINE").is_some();
            let how = if is_set { "with MU_OFFLINE unset" } else { "without `--offline`" };
            hints.push(format!("run the command once {how}, so that mu can look up `{what}`"));
        }
        Code::Reference => match unserved::in_reference(session, &error.id) {
            Ok(hint) => hints.extend(hint),
            Err(error) => return error,
        },
        _ => {}
    }
    // Who wants it is the first question about a place that does not answer, and is no advice, which others might make needless.
    let (id, advice) = (error.id.clone(), hints.split_off(own));
    let command = CommandError { hints, ..CommandError::from_error(code, error) };
    let mut command = unserved::with_requirer(session, &id, command);
    command.hints.extend(advice);
    if let Some(source) = command.in_source() {
        command.details = place(source);
    }
    command
}

/// The ways out of a package that cannot be looked up: charts that require it may carry a copy, which is all that Helm looks at.
fn copies(session: &Session, id: &PackageId) -> Vec<WayOut> {
    let index = session.index();
    let carries =
        |(by, version): &(PackageId, Version)| index.carries_copy(by, &version.to_string(), id);
    let carrying = index.requirers(id).into_iter().filter(carries);
    carrying.map(|(by, _)| WayOut::Bundle(by, id.clone())).collect()
}

/// A failure to reach a registry; if it is the default base, because nothing says where packages are, with what to do then.
pub(crate) fn at_default_base(session: &Session, error: CommandError) -> CommandError {
    let settings = &session.workspace.settings;
    if error.code != Code::Network || !settings.registries.is_empty() {
        return error;
    }
    let base = &settings.base;
    error
        .hint(format!("no registry is configured, so mu looked at `{base}`"))
        .hint(format!("if your packages are elsewhere: `mu registry add -g {base} URL`"))
}

/// What to do about a chart in a repository that the user's Helm knows by the first part of the name.
fn in_helms_repository(session: &Session, id: &PackageId) -> Option<String> {
    let (repository, chart) = id.name_str().split_once('/')?;
    let aliases = formats::helms_aliases(&session.environment);
    let url = aliases.repository_url(repository, chart)?;
    let reference = quoted_for_shell(&format!("helm+{}/{chart}", url.trim_end_matches('/')));
    Some(format!("`{repository}` is a chart repository of your Helm: `mu add {reference}`"))
}

/// What to do if packages are not at the default base.
fn at_another_base(id: &PackageId) -> [String; 2] {
    let (base, name) = (id.base(), id.name());
    [
        format!("a reference without a host, such as `{name}`, is looked up at `{base}`"),
        format!(
            "if your packages are elsewhere, run `mu registry add -g {base} URL`, or write `https://HOST/{}`",
            id.name()
        ),
    ]
}

/// The reference to a package that was looked for in Git repositories; `None` if it was not.
fn repository(session: &Session, id: &PackageId) -> Option<String> {
    let route = session.index().route(id).ok()?;
    let is_git = route.provider.facts().kind == PlaceKind::Repository;
    is_git.then(|| session.index().written(id).unwrap_or_else(|| id.to_string()))
}

/// What to do about a package that is not where mu looked, if nothing more is known.
pub(crate) fn absent(session: &Session, id: &PackageId) -> String {
    let route = session.index().route(id).ok();
    let (base, is_here) = (id.base(), session.index().registry(id).is_some());
    let host = base.host_port();
    if route.as_ref().is_some_and(|route| source_of(session, route).is_url_archive()) {
        if Packing::of(id.name_str()).is_none() {
            return "look whether the same files are there as `.tar.gz` or `.zip`, or pack them so and put them on a server of yours".to_owned();
        }
        return format!("`{host}` answered that this file does not exist: check the URL");
    }
    // What is searched by words are the registries of the settings, and this is none of them.
    if !is_here && route.is_some_and(|one| one.provider.facts().kind == PlaceKind::OciRegistry) {
        return format!(
            "check the name: registries hide private repositories from strangers; if `{host}` has it for you, run `mu login {host}`"
        );
    }
    if repository(session, id).is_some() {
        return hidden(session, id);
    }
    if let Some(hint) = unserved::without_chart(session, id) {
        return hint;
    }
    if base == Base::localhost() {
        return "the path of a folder begins at the manifest that names it: check it there"
            .to_owned();
    }
    format!("`mu search {}` looks for packages by words", quoted_for_shell(id.name().leaf()))
}

/// That a package was one of the workspace when Mu.lock was written, and is not where it was.
fn gone(session: &Session, id: &PackageId) -> Option<String> {
    let lock = session.lockfile().ok().flatten()?;
    let package = lock.find(id).find(|package| package.source.is_workspace_folder())?;
    let (name, place) = (session.short_name(id), folder_for_people(&package.source.place));
    Some(format!(
        "Mu.lock has `{name}` from `{place}` in this workspace, where it is no longer: put it back, or change the manifests that require it"
    ))
}

/// That a package which only packages of others require is at the default base: its name was written there without a host, and so
/// means the host of their own. Only a registry of the settings is asked.
fn of_default_base(
    session: &Session,
    requirements: &Requirements,
    id: &PackageId,
) -> Option<String> {
    let base = session.reference_defaults().base;
    let meant = PackageId::new(&base, &id.name());
    let is_own = requirements.asked.iter().any(|asked| asked.requirement.id == *id);
    let registries = &session.workspace.settings.registries;
    let is_served = registries.iter().any(|registry| meant.as_str().starts_with(&registry.prefix));
    if is_own || meant == *id || !is_served {
        return None;
    }
    let releases = session.index().releases(&meant).ok()?;
    releases.tried().is_none().then(|| {
        format!(
            "a name without a host means the host of the package that says it; if `{meant}` is meant, its authors have to write that; until then, write `aliases: {{{id}: {meant}}}` into `.mu/workspace.yaml`"
        )
    })
}

/// How to use another version than one that cannot be read.
fn without(error: &Unavailable) -> Option<String> {
    let (id, version) = (&error.id, unreadable_version(error)?);
    Some(format!(
        "to use another version until its author fixes it, write `exclude: [\"{id}#{version}\"]` into `.mu/workspace.yaml`"
    ))
}

/// Why a repository may not be found although it is there.
fn hidden(session: &Session, id: &PackageId) -> String {
    let (base, name) = (id.base(), id.name());
    let host = base.host_port();
    let route = session.index().route(id).ok();
    match name.namespace() {
        // Tokens and helpers are for the web.
        Some(_) if route.is_some_and(|route| route.location.root.scheme().ends_with("ssh")) => {
            "hosts hide private repositories from strangers: if this is one, the key that ssh uses must have access to it".to_owned()
        }
        None => format!("a repository on most hosts has an owner: `{host}/OWNER/{name}`"),
        Some(_) => format!(
            "hosts hide private repositories from strangers: if this is one, run `mu login {host}`, or set up a Git credential helper"
        ),
    }
}

/// What is in the place of a missing repository on this machine.
fn no_repository(session: &Session, id: &PackageId) -> Option<String> {
    let written = repository(session, id)?;
    let path = written.strip_prefix("git+file://")?;
    let folder = Path::new(path);
    Some(if folder.is_dir() {
        format!(
            "`{path}` is a folder without a Git repository: `git init` makes one, and `mu add {}` uses the folder as it is",
            quoted_for_shell(path)
        )
    } else if folder.exists() {
        format!("`{path}` is a file, not a Git repository")
    } else {
        // The highest folder that is missing: `/srv/gti` of `/srv/gti/acme/web` shows the typing error.
        let missing = folder.ancestors().take_while(|at| !at.exists()).last()?;
        format!("there is no `{}`", missing.display())
    })
}
