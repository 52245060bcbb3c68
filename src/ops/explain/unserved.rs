//! What was probably meant, where somebody has named something that is not there, and who names it, where that cannot be asked for.
//!
//! It may be a protocol or provider that nothing serves: the answer has the line of the settings. It may be a version,
//! tag or branch that a repository does not have: the answer has what it has instead. Or it is a package that nothing
//! requires: the answer has which packages still need it, or what is required here. Nothing is corrected, only said.
//!
//! A place that does not answer says nothing about who sent mu there, so every error about one gets that sentence ([`with_requirer`]). The
//! manifests, the lock and what this run has read know it; nobody is asked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mu_provider::PlaceKind;

use crate::fs;
use crate::index::RouteError;
use crate::lock::{FILE_NAME, LockedPackage};
use crate::manifest::error_at_dependency;
use crate::manifest::source::{nearest, printable};
use crate::ops::requirements::names::{id_in, meant};
use crate::ops::requirements::parse_extra;
use crate::ops::requirements::requester::Requester;
use crate::ops::{Code, CommandError, OperationScope, Session};
use crate::reference::{GIT_HOSTS, PackageId, Reference, VersionSpec};
use crate::select::Clash;
use crate::workspace::{
    CONFIG_FILE, ConfiguredRegistry, MU_FOLDER, Member, WORKSPACE_FILE, error_at_registry,
};

/// The protocols that registries and references may have, in addition to the names of providers.
const PROTOCOLS: [&str; 9] =
    ["https", "http", "file", "ssh", "git", "git+https", "git+http", "git+ssh", "git+file"];

/// What is wrong with the protocol or provider of a registry, and what to do.
pub(crate) fn registry(registry: &ConfiguredRegistry, name: &str, known: &str) -> (String, String) {
    // A registry either names its provider, or its URL's protocol says which one it is. So the mistake is in one of the
    // two.
    let known: Vec<&str> = known.split(", ").collect();
    if registry.provider.is_some() {
        let plugin = format!("there is also no plugin `mu-provider-{name}`");
        let listed = format!("the built-in providers are {}; {plugin}", known.join(", "));
        let help = nearest(name, known).map(|meant| format!("did you mean `{meant}`?"));
        return (format!("unknown provider `{name}`"), help.unwrap_or(listed));
    }
    let protocols = PROTOCOLS.into_iter().chain(known);
    let help = match nearest(name, protocols) {
        Some(meant) => format!("did you mean `{meant}://`?"),
        None => format!(
            "known are `https://`, `http://`, `file://`, `ssh://` and `git+https://`, and there is no plugin `mu-provider-{name}`"
        ),
    };
    (format!("unknown protocol `{name}://`"), help)
}

/// The error in the settings that is why nothing serves a package, if that is why.
fn in_settings(session: &Session, id: &PackageId) -> Option<CommandError> {
    let entry = session.workspace.settings.registry(id)?;
    let Err(RouteError::NoProvider { name, known, .. }) = session.index().provider_of(entry) else {
        return None;
    };
    let (message, help) = registry(entry, &name, &known);
    let text = fs::read_text(&entry.defined_in).ok()?;
    let error = error_at_registry(entry, &text, &message)?.help(help);
    let details = crate::ops::session::error::place(&error);
    Some(CommandError::from_error(Code::Workspace, error).with_details(details))
}

/// The likely intended protocol of a reference that no provider serves; the error of the settings, if they are why.
pub(crate) fn in_reference(
    session: &Session,
    id: &PackageId,
) -> Result<Option<String>, CommandError> {
    if let Some(error) = in_settings(session, id) {
        return Err(error);
    }
    let written = session.index().written(id);
    let Some((scheme, rest)) = written.as_deref().and_then(|written| written.split_once("://"))
    else {
        return Ok(None);
    };
    let meant = nearest(scheme, PROTOCOLS.into_iter().chain(["oci", "helm+https", "helm+file"]));
    Ok(meant.map(|meant| format!("did you mean `{meant}://{rest}`?")))
}

/// The line of the settings that allows plain http for the OCI registry of a package, as `oci://` always means https.
pub(crate) fn plain_http(session: &Session, id: &PackageId) -> Option<String> {
    let (prefix, url, provider) = match session.workspace.settings.registry(id) {
        Some(entry) => {
            let provider = entry.provider.as_ref().map(|name| format!(", provider: {name}"));
            (entry.prefix.clone(), entry.url.as_ref()?.to_string(), provider.unwrap_or_default())
        }
        None => (id.base().to_string(), format!("oci://{}", id.base()), String::new()),
    };
    let is_oci = session
        .index()
        .known_route(id)
        .is_some_and(|route| route.provider.facts().kind == PlaceKind::OciRegistry);
    is_oci.then(|| {
        let line =
            format!("registries: {{\"{prefix}\": {{url: \"{url}\"{provider}, insecure: true}}}}");
        format!("if it is plain http, write into `.mu/workspace.yaml`: {line}")
    })
}

/// The sentence that the folder which the settings name for a package is not there; `None` if it is.
pub(crate) fn no_place(session: &Session, id: &PackageId) -> Option<String> {
    let entry = session.workspace.settings.registry(id)?;
    // The format comes first: `olm+file://`.
    let url = entry.url.as_ref().filter(|url| url.scheme().rsplit('+').next() == Some("file"))?;
    let folder = PathBuf::from(url.as_url().path().trim_end_matches('/'));
    let folder = url.as_url().to_file_path().unwrap_or(folder);
    let folder = Some(folder).filter(|folder| !folder.exists())?;
    let file = entry.defined_in.display();
    Some(format!(
        "`{file}` says that `{}` is in the folder `{}`, which is not there",
        entry.prefix,
        folder.display()
    ))
}

/// How to write the URL of a page that shows a folder of a repository, or a version of it: `…/org/repo/tree/main/folder`,
/// `…/org/repo/releases/tag/v1.0.0`.
pub(super) fn browsed(id: &PackageId) -> Option<String> {
    let name = id.name();
    let segments: Vec<&str> = name.segments().filter(|segment| *segment != "-").collect();
    let [organization, repository, page @ ..] = &segments[..] else { return None };
    let (revision, folder) = match page {
        // Gitea and Forgejo, before Bitbucket's shorter form.
        ["src", "branch" | "tag" | "commit", revision, folder @ ..]
        | ["tree" | "blob", revision, folder @ ..] => (revision, folder),
        ["src", revision, folder @ ..] if id.base().host_port() == "bitbucket.org" => {
            (revision, folder)
        }
        ["releases", "tag", revision] | ["commit" | "commits", revision] => (revision, &[][..]),
        _ => return None,
    };
    let folder: String = folder.iter().map(|segment| format!("/{segment}")).collect();
    // There it is known where a repository ends.
    let mark = if GIT_HOSTS.contains(&id.base().host_port()) { "" } else { ".git" };
    Some(format!(
        "for a folder at a branch or tag, write `https://{}{organization}/{repository}{mark}{folder}#{revision}`",
        id.base()
    ))
}

/// The forms in which Git writes names of tags and branches elsewhere.
const BEGINNINGS: [&str; 8] = [
    "refs/heads/",
    "refs/tags/",
    "refs/remotes/origin/",
    "remotes/origin/",
    "heads/",
    "tags/",
    "origin/",
    "upstream/",
];

/// How many tags and branches are named.
const MOST_NAMES: usize = 8;

/// What to say beside a requirement on a package in a repository that nothing fulfils.
pub(super) fn notes(session: &Session, clash: &Clash, has_versions: bool) -> Vec<String> {
    let Ok((names, default)) = session.index().names(&clash.id) else { return Vec::new() };
    let mut notes = Vec::new();
    if names.is_empty() && default.is_none() {
        return vec!["its repository has no commits".to_owned()];
    }
    if !has_versions {
        notes.push("its repository has no version tags".to_owned());
    }
    for asked in clash.asked.iter().flatten() {
        if let Some(near) = near_name(asked, &names) {
            notes.push(format!("near to that: `#{}`", printable(&near)));
        }
    }
    match default {
        Some(default) => {
            notes.push(format!("its default branch is `{}`", printable(&default)));
        }
        None => {
            let there: Vec<String> = names
                .iter()
                .take(MOST_NAMES)
                .map(|name| format!("`#{}`", printable(short_name(name))))
                .collect();
            notes.push(format!("its default branch is not there; it has {}", there.join(", ")));
        }
    }
    notes
}

/// A tag or branch as it is usually written, without the form that Git has before it.
fn short_name(name: &str) -> &str {
    BEGINNINGS.iter().find_map(|start| name.strip_prefix(start)).unwrap_or(name)
}

/// What to write behind the `#` for the tag or branch that is meant by one that is not there. `names` are the whole ones that are there.
fn near_name(asked: &str, names: &[String]) -> Option<String> {
    let short = short_name(asked);
    // Git's own word for what a server has checked out, which no reference can name.
    if short == "HEAD" {
        return Some("tip".to_owned());
    }
    let known = || names.iter().map(|name| short_name(name));
    let is_name = short.starts_with(|first: char| first.is_ascii_alphanumeric());
    let near = known()
        .find(|name| *name == short && short != asked)
        .or_else(|| nearest(short, known()).filter(|_| is_name))?;
    match VersionSpec::parse(near) {
        Ok(VersionSpec::Tag(_)) => Some(near.to_owned()),
        Err(_) => None,
        // A branch that is called like a version is one only with its whole name. Of tags that are versions, the list of
        // versions names those near to the version that was asked for.
        Ok(_) => {
            let branch = format!("refs/heads/{near}");
            let is_version = !matches!(VersionSpec::parse(asked), Ok(VersionSpec::Tag(_)));
            match names.contains(&branch) {
                true => Some(branch),
                false => Some(near.to_owned()).filter(|_| !is_version),
            }
        }
    }
}

/// How many of those that require a package are named.
const MOST_NAMED: usize = 4;

/// How many packages on the way to one are named.
const MOST_STEPS: usize = 8;

/// The sentence that says who requires a package; `None` if nobody here does, such as for a question about any package.
fn required_by(session: &Session, id: &PackageId) -> Option<String> {
    let mut way = vec![id.clone()];
    let mut asked = session.index().way_to(id).into_iter();
    // Upwards, until a manifest names the package. Ends, because no package is on the way twice.
    loop {
        let named = named_by(session, &way[way.len() - 1]);
        if !named.is_empty() {
            return Some(sentence(session, &way, &named));
        }
        let next = asked.next().or_else(|| locked_requirer(session, &way[way.len() - 1]));
        match next.filter(|next| !way.contains(next)) {
            Some(next) if way.len() <= MOST_STEPS => way.push(next),
            _ => break,
        }
    }
    (way.len() > 1).then(|| sentence(session, &way, &[]))
}

/// What names a package in the workspace, each with its file and line: manifests, earlier runs of `mu get REF`, and overrides.
fn named_by(session: &Session, id: &PackageId) -> Vec<String> {
    let workspace = &session.workspace;
    let mut named = Vec::new();
    for member in &workspace.members {
        let manifest = &member.manifest;
        let mut all = manifest.all_dependencies();
        if let Some(entry) = all.find(|entry| may_mean(session, member, &entry.reference, id)) {
            let place = place_in(session, member, &entry.reference);
            named.push(format!("`{}` ({place})", manifest.name));
        }
    }
    let lock = session.lockfile().ok().flatten().unwrap_or_default();
    let root = session.lock_folder();
    let defaults = session.reference_defaults();
    let meant = |reference: &Reference, from: &Path| {
        session.places.id_of(reference, &defaults, from, workspace)
    };
    let mut given = lock.extra.iter().filter_map(|text| parse_extra(text).ok());
    if given.any(|given| meant(&given.reference, root) == *id) {
        named.push(format!("`extra` ({FILE_NAME})"));
    }
    let settings = &workspace.settings;
    for (instead_of, reference) in &settings.overrides {
        if meant(reference, &workspace.root) == *id && instead_of != id {
            let file = match settings.overridden_here.contains(instead_of) {
                true => format!("{MU_FOLDER}/{WORKSPACE_FILE}"),
                false => format!("~/.mu/{CONFIG_FILE}"),
            };
            named.push(format!("`overrides` ({file})"));
        }
    }
    named
}

/// Whether a reference in the manifest of a member means a package, as far as that is known: a name of one segment has two meanings,
/// and the place that does not answer may be that of either.
fn may_mean(session: &Session, member: &Member, reference: &Reference, id: &PackageId) -> bool {
    id_in(session, member, reference) == *id
        || reference.local().is_none() && meant(member, reference).otherwise.as_ref() == Some(id)
}

/// Where a dependency is written.
fn place_in(session: &Session, member: &Member, reference: &Reference) -> String {
    let path = crate::formats::dependencies_file(&member.manifest_path);
    let text = fs::read_text(&path).unwrap_or_default();
    let file = shown(session, &path);
    // The manifests of other ecosystems have another form, in which only their own readers find it.
    match error_at_dependency(&path, &text, reference.as_str(), "") {
        Some(error) => format!("{file}:{}", error.line()),
        None => file,
    }
}

/// A file, as seen from the root of the workspace.
fn shown(session: &Session, path: &Path) -> String {
    path.strip_prefix(&session.workspace.root).unwrap_or(path).display().to_string()
}

/// A package that requires another one, as the lock has it.
fn locked_requirer(session: &Session, id: &PackageId) -> Option<PackageId> {
    let lock = session.lockfile().ok().flatten()?;
    let known: BTreeSet<&PackageId> = lock.packages.iter().map(|package| &package.id).collect();
    let mut requested = lock.find(id).flat_map(|package| &package.requested);
    requested.find_map(|requested| match Requester::from_name(&requested.by) {
        Requester::Member(name) => PackageId::parse(&name).ok().filter(|id| known.contains(id)),
        _ => None,
    })
}

/// An error of the place that a package comes from, with who requires that.
pub(crate) fn with_requirer(
    session: &Session,
    id: &PackageId,
    error: CommandError,
) -> CommandError {
    // The disk is nobody's place.
    if error.code == Code::Io {
        return error;
    }
    let not_there = no_place(session, id).filter(|_| error.code == Code::NotFound);
    not_there.into_iter().chain(required_by(session, id)).fold(error, CommandError::hint)
}

/// The words for what names the last package of a way.
fn sentence(session: &Session, way: &[PackageId], named: &[String]) -> String {
    let by = match named {
        [] => String::new(),
        [one] => format!("{one} requires"),
        [most @ .., last] if named.len() <= MOST_NAMED => {
            format!("{} and {last} require", most.join(", "))
        }
        _ => format!(
            "{} and {} more require",
            named[..MOST_NAMED].join(", "),
            named.len() - MOST_NAMED
        ),
    };
    let mut steps = way.iter().skip(1);
    let Some(first) = steps.next() else { return format!("{by} it") };
    // The version tells which release of it to look at.
    let versions = session.index().requirers(&way[0]);
    let version = versions.iter().find(|(by, _)| by == first);
    let version = version.map(|(_, version)| format!(" {version}")).unwrap_or_default();
    let mut text = format!("`{}`{version} requires it", session.short_name(first));
    for step in steps {
        text.push_str(&format!(", which `{}` requires", session.short_name(step)));
    }
    if !by.is_empty() {
        text.push_str(&format!(", which {by}"));
    }
    text
}

/// More requirements than this are not listed.
const LISTED: usize = 8;

/// The names of those who require a package.
pub(crate) fn requirers(package: &LockedPackage) -> Vec<String> {
    package.requested.iter().map(|requested| requested.by.to_string()).collect()
}

/// That these still require a package, as a sentence; nothing without any.
pub(crate) fn still_required_by(requirers: &[String]) -> Option<String> {
    match requirers {
        [] => None,
        [one] => Some(format!("`{one}` needs it")),
        [most @ .., last] => Some(format!("`{}` and `{last}` need it", most.join("`, `"))),
    }
}

/// The error that nothing requires what `text` names, with the likely intended name.
pub(crate) fn not_asked_for(
    session: &Session,
    text: &str,
    id: &PackageId,
    extra: &[String],
) -> CommandError {
    let error = CommandError::new(Code::NotFound, format!("nothing here requires `{text}`"));
    let locked = session.lockfile().ok().flatten().unwrap_or_default();
    if let Some(package) = locked.find(id).next() {
        return match still_required_by(&requirers(package)) {
            Some(needed) => error.hint(format!("it is installed because {needed}")),
            None => error,
        };
    }
    if let Some(replaced) = locked.replacement(id) {
        return error
            .hint(format!("`{}` took its place, and nothing of it is installed", replaced.by));
    }
    error.hint(required_here(session, text, extra))
}

/// What the manifests require, and `mu get REF` installed: the one that `text` probably means, or all of it.
pub(crate) fn required_here(session: &Session, text: &str, extra: &[String]) -> String {
    let members = &session.workspace.members;
    let known: Vec<String> = members
        .iter()
        .flat_map(|member| member.manifest.all_dependencies())
        .map(|dependency| dependency.reference.to_string())
        .chain(extra.iter().cloned())
        .collect();
    let names = known.iter().map(|text| text.split('#').next().unwrap_or(text));
    if let Some(name) = crate::manifest::source::nearest(text, names) {
        return format!("did you mean `{name}`?");
    }
    let root = session.workspace.root.display();
    match (&known[..], &members[..]) {
        ([], []) if session.scope == OperationScope::Global => {
            "no global packages are installed; `mu get --global REF` installs one".to_owned()
        }
        ([], []) => format!("there is no Mu.yaml in `{root}` or below it, and no Mu.lock"),
        ([], [one]) => format!("`{}` has no dependencies", one.manifest.name),
        ([], _) => format!("the packages in `{root}` have no dependencies"),
        _ => {
            let listed: Vec<String> =
                known.iter().take(LISTED).map(|one| format!("`{one}`")).collect();
            let more = if known.len() > LISTED { ", …" } else { "" };
            format!("required here: {}{more}", listed.join(", "))
        }
    }
}

/// What to do where no repository was found for a chart: the reference may name the repository alone.
pub(super) fn without_chart(session: &Session, id: &PackageId) -> Option<String> {
    let written = session.index().written(id)?;
    let written = written.split('#').next()?;
    let url = written.strip_prefix("helm+")?;
    let releases = session.index().published(id).ok()?;
    let is_no_repository = releases.tried()?.iter().all(|place| place.ends_with("/index.yaml"));
    is_no_repository
        .then(|| format!("if `{url}` is a chart repository, name a chart in it: `{written}/CHART`"))
}
