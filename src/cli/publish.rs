//! `mu publish`, `mu mirror`, `mu yank`, `mu deprecate` and `mu tag`: what others find of packages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use clap::Args;
use mu_hub::Notice;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context, Packages, Stop};
use crate::cli::pack;
use crate::env::absolute;
use crate::ops::mirror::{Changed, Copied, Elsewhere, MirrorRequest, Mirrored, mirror};
use crate::ops::publish::{Done, PublishRequest, Publishing, publish};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::yank::{MarkRequest, MarkedVersion, Marking, mark};
use crate::ops::{Code, CommandError, Events as _, OperationScope, Session, View, Warning};
use crate::reference::PackageId;
use crate::report::{FAINT, GOOD, NOTICE, count, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
Without --to, a package goes to the registry that its base leads to: see `mu registry list`. A PLACE is the folder or \
bucket (s3://, gs:// or az://BUCKET/PREFIX) of a hub, which is written directly, the URL of a hub's server, or an OCI registry (oci://HOST/REPOSITORY). \
The last two need a token: see `mu login`. Before \
anything is changed, the manifest is checked, and its dependencies are resolved as they will be for others. \
In a Git repository, what is published must be committed; the index line then names the commit. \
A published version never changes: publishing the same content again is fine, other content is refused.

Examples:
  mu publish --dry-run
  mu publish --to /srv/hub
  mu publish --all                     every package of this workspace, dependencies first
  mu publish --moved-to hub.mu.com/acme/site     its last version, which names the successor")]
pub(crate) struct PublishArguments {
    /// The package: its name or folder [default: the one in this folder]
    #[arg(conflicts_with = "all")]
    package: Option<String>,
    /// The same, as other commands take it
    #[arg(short = 'p', long = "package", value_name = "PACKAGE", hide = true, conflicts_with_all = ["package", "all"])]
    named: Option<String>,
    /// Where to publish to
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Check and pack, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Publish every package of this workspace that is not there yet
    #[arg(long)]
    all: bool,
    /// Publish the locked versions of the dependencies instead of ranges
    #[arg(long)]
    pinned: bool,
    /// Publish changes that are not committed in Git too
    #[arg(long)]
    allow_dirty: bool,
    /// Publish files that look like secrets, or are only pointers of Git LFS, too
    #[arg(long)]
    force: bool,
    /// The package that takes the place of this one
    #[arg(long, value_name = "PACKAGE", conflicts_with = "all")]
    moved_to: Option<String>,
}

pub(crate) fn run(context: &Context, arguments: PublishArguments) -> CommandExit {
    let PublishArguments { to, dry_run, all, force, pinned, allow_dirty, moved_to, .. } = arguments;
    let package = arguments.package.or(arguments.named);
    let view = if all { View::Team } else { View::Around(package.clone()) };
    let session = context.open_in(OperationScope::Workspace, view)?;
    session.refuse_edits("mu does not publish")?;
    let request =
        PublishRequest { package, to, dry_run, all, force, pinned, allow_dirty, moved_to };
    let published = publish(&session, &request)?;
    if context.shell.is_json() {
        return context.json(&Packages { packages: published.iter().map(Package::new).collect() });
    }
    for publishing in &published {
        if let Some(packed) = &publishing.packed {
            if dry_run {
                context.print_table(&pack::packed_files_table(packed))?;
            }
            if dry_run || !context.shell.is_quiet() {
                context.line(&context.short(&pack::contents(packed)))?;
            }
        }
        let (id, version) = (context.name(&publishing.id), &publishing.version);
        let place = printable(&publishing.place);
        context.line(&match publishing.done {
            Done::Published => format!("{GOOD}published{GOOD:#} {id} {version} to {place}"),
            Done::Present if publishing.other_lock => format!(
                "{id} {version} is already in {place}, packed with other versions in its Mu.lock"
            ),
            Done::Present => format!("{id} {version} is already in {place}"),
            Done::Possible => format!("{id} {version} would be published to {place}"),
        })?;
        if let Some(to) = &publishing.moved_to {
            let would = if dry_run { "would record" } else { "says" };
            context.line(&format!(
                "the hub {would} of {id} that it has moved to {}",
                context.name(to)
            ))?;
        }
    }
    Ok(0)
}

/// What was done with one package.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Package<'a> {
    /// The package.
    id: &'a PackageId,
    /// Its version.
    version: &'a str,
    /// The hub.
    place: &'a str,
    /// What was done.
    done: Done,
    /// Whether it was already there with the same files except for `Mu.lock`, which has the versions that it was packed with.
    other_lock: bool,
    /// The package that takes its place from now on.
    moved_to: &'a Option<PackageId>,
    /// The digest of what is in the archive; none if it did not have to be packed.
    digest: Option<String>,
    /// The digest of the archive.
    archive: Option<String>,
    /// The bytes of the archive.
    size: Option<u64>,
}

impl<'a> Package<'a> {
    fn new(publishing: &'a Publishing) -> Self {
        let archive = publishing.packed.as_ref().map(|packed| &packed.archive);
        Self {
            id: &publishing.id,
            version: &publishing.version,
            place: &publishing.place,
            done: publishing.done,
            other_lock: publishing.other_lock,
            moved_to: &publishing.moved_to,
            digest: archive.map(|archive| archive.tree.digest().to_string()),
            archive: archive.map(|archive| archive.archive.to_string()),
            size: archive.map(|archive| archive.size),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
A yanked version is no longer chosen, but stays in use where a lock names it. Nothing is deleted.

Examples:
  mu yank 'acme/web#1.2.0' --reason 'loses data'
  mu yank 'acme/web#1.2.0' --undo")]
pub(crate) struct YankArguments {
    #[command(flatten)]
    notice: NoticeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A deprecated version is chosen only if nothing else fits, and whoever uses it is told. A version whose Mu.yaml says `deprecated: REASON` is published as one.

Examples:
  mu deprecate 'acme/web#1.2.0' --reason 'nobody looks after it: use acme/site'
  mu deprecate 'acme/web#1.2.0' --undo")]
pub(crate) struct DeprecateArguments {
    #[command(flatten)]
    notice: NoticeArguments,
}

#[derive(Debug, Args)]
struct NoticeArguments {
    /// The package and its version
    reference: String,
    /// Take it back
    #[arg(long, conflicts_with = "reason")]
    undo: bool,
    /// Why; shown to those who use the version
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// Where it is: a hub's folder, bucket (s3://, gs:// or az://BUCKET/PREFIX) or URL, or an OCI registry (oci://HOST/REPOSITORY) [default: where the reference leads]
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `mu yank` and `mu deprecate` answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NoticeAnswer {
    /// The package's name at the hub.
    name: String,
    /// The version.
    version: String,
    /// The hub.
    place: String,
    /// Whether the version is withdrawn now, if the command withdraws.
    #[serde(skip_serializing_if = "Option::is_none")]
    yanked: Option<bool>,
    /// Whether the version is deprecated now, if the command deprecates.
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<bool>,
    /// Whether this is new.
    changed: bool,
    /// Whether this was a dry run.
    dry_run: bool,
}

pub(crate) fn run_yank(context: &Context, arguments: YankArguments) -> CommandExit {
    let words = match arguments.notice.undo {
        false => ["would yank", "yanked", "already yanked, nothing to do:"],
        true => ["would no longer be yanked:", "no longer yanked:", "not yanked, nothing to do:"],
    };
    run_notice(context, Notice::Yanked, arguments.notice, words)
}

pub(crate) fn run_deprecate(context: &Context, arguments: DeprecateArguments) -> CommandExit {
    let words = match arguments.notice.undo {
        false => ["would deprecate", "deprecated", "already deprecated, nothing to do:"],
        true => [
            "would no longer be deprecated:",
            "no longer deprecated:",
            "not deprecated, nothing to do:",
        ],
    };
    run_notice(context, Notice::Deprecated, arguments.notice, words)
}

fn run_notice(
    context: &Context,
    notice: Notice,
    arguments: NoticeArguments,
    words: [&str; 3],
) -> CommandExit {
    let NoticeArguments { reference, undo, reason, to, dry_run } = arguments;
    let session = context.open_asking_session()?;
    let marking = Marking::Notice(notice, reason);
    let request = MarkRequest { reference, marking, undo, to, dry_run };
    let (marked, line) = run_mark(context, &session, &request, words)?;
    let MarkedVersion { name, version, place, changed } = marked;
    let now = |one| (one == notice).then_some(!undo);
    let (yanked, deprecated) = (now(Notice::Yanked), now(Notice::Deprecated));
    let answer = NoticeAnswer { name, version, place, yanked, deprecated, changed, dry_run };
    context.answer(&answer, |_| context.line(&line))
}

/// Marks a published version, and tells it; the words are for what would be done, was done, and is not necessary.
fn run_mark(
    context: &Context,
    session: &Session,
    request: &MarkRequest,
    [would, done, unnecessary]: [&str; 3],
) -> Result<(MarkedVersion, String), CommandError> {
    let marked = mark(session, request)?;
    let what = match (marked.changed, request.dry_run) {
        (false, _) => unnecessary,
        (true, true) => would,
        (true, false) => done,
    };
    let tag = match &request.marking {
        Marking::Notice(..) => String::new(),
        Marking::Tag(tag) => format!(": {tag}"),
    };
    let (name, place) = (context.short(&marked.name), printable(&marked.place));
    let line = format!("{what} {name} {}{tag} in {place}", marked.version);
    Ok((marked, line))
}

#[derive(Debug, Args)]
#[command(after_help = "\
A tag names at most one version of a package; if it named another one, it moves. References use it like a \
version: acme/web#beta.

Examples:
  mu tag 'acme/web#1.2.0' beta
  mu tag 'acme/web#1.2.0' beta --undo")]
pub(crate) struct TagArguments {
    /// The package and its version
    reference: String,
    /// The tag
    tag: String,
    /// Remove the tag
    #[arg(long)]
    undo: bool,
    /// Where it is: a hub's folder, bucket (s3://, gs:// or az://BUCKET/PREFIX) or URL, or an OCI registry (oci://HOST/REPOSITORY) [default: where the reference leads]
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `mu tag` answers.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TagAnswer {
    /// The package's name at the hub.
    name: String,
    /// The version.
    version: String,
    /// The hub.
    place: String,
    /// The tag.
    tag: String,
    /// Whether the version has it now.
    tagged: bool,
    /// Whether this is new.
    changed: bool,
    /// Whether this was a dry run.
    dry_run: bool,
}

pub(crate) fn run_tag(context: &Context, arguments: TagArguments) -> CommandExit {
    let TagArguments { reference, tag, undo, to, dry_run } = arguments;
    let session = context.open_asking_session()?;
    let marking = Marking::Tag(tag.clone());
    let request = MarkRequest { reference, marking, undo, to, dry_run };
    let [would, done] = if undo { ["would untag", "untagged"] } else { ["would tag", "tagged"] };
    let words = [would, done, "nothing to do for"];
    let (marked, line) = run_mark(context, &session, &request, words)?;
    let MarkedVersion { name, version, place, changed } = marked;
    let answer = TagAnswer { name, version, place, tag, tagged: !undo, changed, dry_run };
    context.answer(&answer, |_| context.line(&line))
}

#[derive(Debug, Args)]
#[command(after_help = "\
With --lock, copies everything that Mu.lock names, at exactly those versions. With references, copies the versions that \
would be chosen for them, and those of their dependencies. Archives of hubs are copied byte for byte, so locks hold for the \
mirror too. Packages in Git repositories are packed from the commit that is locked, and charts from their archives; \
their content stays the same. What is already there is not fetched again. With --as, packages get another namespace: their index lines name the original, \
and the copies depend on each other.

A namespace, and with --all the whole hub, is copied with every package and version, and without what these need elsewhere. The next \
run asks the hub's log what has changed since, and copies that: new versions, and what was yanked, deprecated, tagged or moved. \
An interrupted run goes on where it was. What cannot be copied is named, the rest is copied, and the exit status is 1. \
With --follow, mu asks again as often as the hub says that its answers are fresh, or else every minute, until it is stopped.

Examples:
  mu mirror --lock --to /srv/mirror
  mu mirror acme/web acme/api --to /srv/mirror
  mu mirror 'acme/web#^1.2' --to s3://acme-mirror/hub --all-versions
  mu mirror contrib/web --to /srv/hub --as internal
  mu mirror --lock --to /srv/hub --as internal
  mu mirror acme --to /srv/mirror                        the namespace acme
  mu mirror --all --from hub.acme.co/ --to /srv/mirror --follow
  mu mirror acme lib/log --from https://hub.acme.co/ --to s3://acme-mirror/hub
  mu registry add hub.mu.com/ /srv/mirror")]
pub(crate) struct MirrorArguments {
    /// The packages or namespaces
    #[arg(value_name = "REF", conflicts_with = "lock")]
    references: Vec<String>,
    /// Copy everything that Mu.lock names, at exactly those versions
    #[arg(long, conflicts_with_all = ["no_deps", "all_versions"])]
    lock: bool,
    /// Copy everything that a hub has
    #[arg(long, conflicts_with_all = ["references", "lock", "no_deps", "all_versions", "namespace"])]
    all: bool,
    /// The hub to copy from: its base, folder, bucket or URL [default: where references without a base lead]; REF are names there
    #[arg(long, value_name = "HUB", conflicts_with_all = ["lock", "no_deps", "all_versions", "namespace"])]
    from: Option<String>,
    /// Where to copy to: a hub's folder, bucket (s3://, gs:// or az://BUCKET/PREFIX) or URL, or an OCI registry (oci://HOST/REPOSITORY)
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// Do not copy what the packages depend on
    #[arg(long)]
    no_deps: bool,
    /// Copy every version, not only the one that would be chosen
    #[arg(long)]
    all_versions: bool,
    /// Copy packages of the namespace of REF into this one instead; with --lock, all packages
    #[arg(long = "as", value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Copy what changes until stopped (Ctrl-C)
    #[arg(long, conflicts_with_all = ["lock", "dry_run"])]
    follow: bool,
    /// Print what would be copied, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run_mirror(context: &Context, arguments: MirrorArguments) -> CommandExit {
    let MirrorArguments {
        references,
        lock,
        all,
        from,
        to,
        no_deps,
        all_versions,
        namespace,
        follow,
        dry_run,
    } = arguments;
    if references.is_empty() && !lock && !all {
        let error = CommandError::new(Code::Usage, "the command names nothing to copy");
        let error = error.hint("`--lock` copies everything that Mu.lock names");
        let error = error.hint("`mu mirror acme/web --to PLACE` copies a package");
        return Err(error.hint("`mu mirror --all --to PLACE` copies a whole hub").into());
    }
    let stop = None;
    let request = MirrorRequest {
        references,
        all,
        from,
        to,
        no_deps,
        all_versions,
        namespace,
        dry_run,
        stop,
    };
    if follow { run_following(context, request) } else { run_round(context, &request).1 }
}

/// How long mu waits if a hub does not say for how long its answers are fresh.
const USUAL_WAIT: u32 = 60;

/// The longest wait, whatever a hub says.
const LONGEST_WAIT: u32 = 3_600;

/// Copies, and copies what has changed, until the process is asked to stop.
fn run_following(context: &Context, request: MirrorRequest) -> CommandExit {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stopping(&stop).map_err(|error| {
        CommandError::from_error(Code::Io, error).while_doing("cannot wait for signals".to_owned())
    })?;
    let request = MirrorRequest { stop: Some(Arc::clone(&stop)), ..request };
    let mut has_copied = false;
    loop {
        let (max_age, ended) = run_round(context, &request);
        match ended {
            Ok(_) => has_copied = true,
            Err(Stop::Failed(error)) if has_copied || !error.details.is_null() => {
                // What failed now may be there the next time.
                has_copied = true;
                context.shell.warning(&Warning::failure(&*error.error));
            }
            ended => return ended,
        }
        // The answer of a server that wants to be asked each time does not say how often.
        let wait = max_age.filter(|seconds| *seconds > 0).unwrap_or(USUAL_WAIT).min(LONGEST_WAIT);
        let is_asked = || stop.load(Ordering::Relaxed);
        if is_asked() || asked.recv_timeout(Duration::from_secs(wait.into())).is_ok() || is_asked()
        {
            return Ok(0);
        }
    }
}

/// Sets `stop`, and sends something, when the process is asked to stop (Ctrl-C, SIGTERM).
#[cfg(unix)]
fn stopping(stop: &Arc<AtomicBool>) -> std::io::Result<Receiver<()>> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    let (sender, receiver) = channel();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let stop = Arc::clone(stop);
    mu_provider::threads::start(move || {
        for _ in signals.forever() {
            if stop.swap(true, Ordering::Relaxed) {
                // Whoever asks twice does not want to wait for the package that is being copied.
                let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
            }
            let _ = sender.send(());
        }
    })?;
    Ok(receiver)
}

/// Sends nothing: here the system ends a process without asking it.
#[cfg(not(unix))]
fn stopping(_: &Arc<AtomicBool>) -> std::io::Result<Receiver<()>> {
    let (sender, receiver) = channel();
    std::mem::forget(sender);
    Ok(receiver)
}

/// Copies once; also returns for how many seconds that is fresh, if a hub says so.
fn run_round(context: &Context, request: &MirrorRequest) -> (Option<u32>, CommandExit) {
    // Only what is locked here is a question about the workspace's own packages.
    let opened = match request.is_of_lock() {
        true => context.open_in(OperationScope::Workspace, View::Team),
        false => context.open_asking_session(),
    };
    let copied = opened.and_then(|session| {
        let mirrored = mirror(&session, request)?;
        Ok((session, mirrored))
    });
    match copied {
        Ok((session, mirrored)) => {
            (mirrored.max_age, print_mirrored(context, &session, request, &mirrored))
        }
        Err(error) => (None, Err(error.into())),
    }
}

fn print_mirrored(
    context: &Context,
    session: &Session,
    request: &MirrorRequest,
    mirrored: &Mirrored,
) -> CommandExit {
    // Under another name, a registry of the settings does not lead to it.
    let is_for_registries =
        (request.references.is_empty() && !request.all) && request.namespace.is_none();
    for elsewhere in &mirrored.elsewhere {
        let Elsewhere { id, provider, place, reason } = elsewhere.clone();
        session.events.warning(&Warning::LeftElsewhere { id, provider, place, why: reason });
    }
    context.answer_checks(mirrored, mirrored.incomplete(), |mirrored| {
        for Copied { name, version } in &mirrored.copied {
            context.line(&format!("{GOOD}+{GOOD:#} {} {}", printable(name), printable(version)))?;
        }
        for Changed { name, version, keys } in &mirrored.changed {
            let (name, version) = (printable(name), printable(version));
            let keys = keys.join(", ");
            context
                .line(&format!("{NOTICE}~{NOTICE:#} {name} {version} {FAINT}({keys}){FAINT:#}"))?;
        }
        let copied = if mirrored.dry_run { "would be copied" } else { "copied" };
        context.shell.status(&format!(
            "{} {copied} to {}, {} already there",
            count(mirrored.copied.len(), "version"),
            printable(&mirrored.place),
            mirrored.present
        ));
        if is_for_registries && !mirrored.dry_run {
            let place = registry_place(session, &mirrored.place);
            let is_left = |one: &&Elsewhere, prefix: &str| {
                one.reason.is_some() && one.id.to_string().starts_with(prefix)
            };
            for (prefix, place) in mirrored.prefixes.iter().zip(place.iter().cycle()) {
                // A registry for all of it would look there for what was not copied.
                let mut left = mirrored.elsewhere.iter();
                if let Some(left) = left.find(|one| is_left(one, prefix)) {
                    let id = &left.id;
                    context.shell.status(&format!(
                        "`{prefix}` stays where it is: `{id}` was not copied, and a registry for `{prefix}` leads there, too"
                    ));
                    continue;
                }
                let next = format!("next: `mu registry add {prefix} {}`", quoted_for_shell(place));
                context.shell.status(&next);
            }
        }
        Ok(())
    })
}

/// The mirror's URL for a registry; none for a bucket, which is read through a web server.
fn registry_place(session: &Session, place: &str) -> Option<String> {
    match place.split_once("://") {
        Some((scheme, _)) => scheme.starts_with("http").then(|| place.to_owned()),
        None if session.environment.current == session.workspace.root => {
            let is_path = place.starts_with(['.', '/']);
            Some(if is_path { place.to_owned() } else { format!("./{place}") })
        }
        // Folders in settings are relative to the workspace's root.
        None => Some(absolute(&session.environment.current, place.as_ref()).display().to_string()),
    }
}
