//! The sentences of all warnings, in one place: what is told, then why, then what helps.
//!
//! Ids stand in them as a whole; `Shell` shortens them for people. Where a sentence has a command or a key to copy, the name in it is
//! the one that this takes here.

use std::fmt::Display;
use std::path::PathBuf;

use mu_provider::PlaceKind;
use mu_provider::catalog::LONGEST_LINE;

use crate::index::LeftOut;
use crate::lock::LockedPackage;
use crate::ops::explain::unserved::still_required_by;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::places::folder_for_people;
use crate::ops::session::shown::PackageNaming;
use crate::ops::{VoucherGap, Warning};
use crate::reference::{PackageId, Version};
use crate::select::{RootOrPackage, SelectionWarning};
use crate::trust::{EvidenceFault, Objection, Refused, RefusedVersion, VENDORED_FILE};
use crate::workspace::{MU_FOLDER, RedirectedBase, WORKSPACE_FILE};

/// A row for each warning: what it has, and what is said of that.
macro_rules! sentences {
    ($warning:expr; $($name:ident $({ $($field:tt)* })? $(($($one:tt)*))? => ($($words:tt)*),)*) => {
        match $warning {
            $(Warning::$name $({ $($field)* })? $(($($one)*))? => format!($($words)*),)*
        }
    };
}

/// The sentence of a warning, with packages named as they are here.
pub fn sentence(warning: &Warning, names: &PackageNaming) -> String {
    sentences! { warning;
        // # What others have found
        File(warning) => ("{warning}"),
        Provider(words) => ("{words}"),
        Failure(error) => ("{error}"),
        Selection { warning, pinned_by } => ("{}", selected(warning, pinned_by.as_deref())),
        Found(note) => ("{note}"),

        // # The workspace and its places
        Misplaced(misplacement) => ("{misplacement}"),
        OtherName { by, reference, place, id, exact } => ("`{by}` requires `{reference}`, which points to the folder `{}` of the package `{id}`: write `{exact}`", folder_for_people(place)),
        OtherNameInFolder { written, place, name } => ("`{written}` points to the folder `{}` of the package `{name}`, which is used instead", folder_for_people(place)),
        OtherNameByPlace { name, called, parent: None } => ("references to `{name}` do not point to this folder, but references to `{called}` do: rename the package or move it"),
        OtherNameByPlace { name, called, parent: Some(parent) } => ("references to `{name}` do not point to this folder, but references to `{called}` do: rename the package, move it, or set `namespace: {parent}` in `{MU_FOLDER}/{WORKSPACE_FILE}`"),
        MeansOther { reference, here, exact } => ("the dependency `{reference}` means `{here}` here, but another package for others; write `{exact}` to be exact"),
        Conflicting { by, with, manifest } => ("`{by}` conflicts with `{with}`, and this workspace has both: no package can depend on both (`conflicts` in `{}`)", manifest.display()),
        MembersUnread { why } => ("the workspace's own packages are left out: {why}"),
        SparseCheckout { first, others } => ("the sparse checkout leaves out `{first}`{}, whose content is not on this machine, so what these packages need is not known: `git sparse-checkout add` their folders", more(*others)),
        Redirected(RedirectedBase { prefix, place }) => ("`{prefix}` is at `{place}` here: {MU_FOLDER}/{WORKSPACE_FILE} says so"),
        RegistryWithoutFolder { prefix, folder } => ("`{prefix}` leads to `{}`, which is not there", folder.display()),
        UnusedAlias { name } => ("`aliases` in `.mu/workspace.yaml` is of no use for `{name}`: nothing here has that name"),
        IdleRegistry { prefix, id } => ("the registry `{prefix}` has no effect on `{id}`, which is reached on this machine, by its path; `overrides` can lead it elsewhere"),
        UnusedOverride { id } => ("`overrides` in `.mu/workspace.yaml` is of no use for `{id}`: nothing here requires it"),
        UnusedPatch { key, is_in_folder: true } => ("the patch for `{key}` is not used: the package is in a folder, where its files are changed in place"),
        UnusedPatch { key, is_in_folder: false } => ("the patch for `{key}` is not used: no package in use is of that version"),
        NoFileLocks { folder } => ("the file system of `{}` has no locks: do not run mu there twice at the same time", folder.display()),
        ChangedInStore { path } => ("`{}` in the store was changed; fetching it again", path.display()),

        // # Git, and what only this machine uses
        IgnoredUnknown { why } => ("it is not known which folders Git ignores, so all packages of the workspace count as the team's: {why}"),
        LockedIgnored { id, place } => (
            "Mu.lock takes `{}` from `{place}`, which Git ignores, so others do not have it: take Mu.lock back with `git checkout Mu.lock`, or let Git track the folder with `git add --force {place}`",
            names.reference(id)
        ),
        UsedUntracked { id, place, pattern, exclude } => (
            "`{}` is used from `{place}`, which Git neither tracks nor ignores, so it counts as the team's, and Mu.lock will say so; to keep it to yourself, write `{pattern}` into `{}`, and \
             take Mu.lock back with `git checkout Mu.lock` if it has changed",
            names.reference(id), exclude.display()
        ),
        PacksIgnored { folder } => ("`{}` would not be committed, because a .gitignore excludes it; `git add --force` adds it", folder.display()),
        EditedSince { id, locked, clone, begun } => (
            "`{id}` is locked at commit {}, but its repository is edited in `{clone}` already, where the work began at {}",
            locked.short(), begun.short()
        ),
        PatchWithout { files } => ("the patch is without what Git ignores: {}", quoted(files)),
        EditNotBuilt { id, place } => ("builds do not use the edit of `{id}` in `{place}`, but the version in Mu.lock"),

        // # The lock, and the versions in it
        NoLock => ("there is no Mu.lock yet, so dependencies are not shown: run `mu get`, which writes it"),
        LockBehindManifests => ("Mu.lock is out of date with the manifests; mu copies what it names, and `mu get` updates it"),
        ReplacedName { id, by } => ("`{id}` was replaced by `{by}`, which is shown instead"),
        NewerUnknown { ids } => ("newer versions of {} are not known: mu is offline", quoted(ids)),
        ConflictsUnknown { ids } => ("what {} must not be used together with is not known: Mu.lock does not say it, and it cannot be looked up now", quoted(ids)),
        NoVersions { id, left_out } => ("the registry of `{}` lists what is not a version: {}", names.reference(id), LeftOut::in_words(left_out).unwrap_or_default()),
        Overridden { id, version, broken } => ("`{id}` {version} is used because of `overrides` in the settings, although {}", joined(broken, ", and ", |one| format!("{} requires {}", one.by, one.spec))),
        PlacedPack { id, version, place } => ("`{id}` {version} is used from `{place}`, where somebody has put it; mu leaves it alone"),
        ChartCalled { id, version, called } => ("`{id}` {version} is a chart that calls itself `{called}`: where a `Chart.yaml` requires `{}`, Helm does not find it", id.name().leaf()),
        Moved { id, to, by: None } => ("`{id}` has moved to `{to}`, where its new versions will be: depend on that instead"),
        Moved { id, to, by: Some(by) } => ("`{id}`, needed by {}, has moved to `{to}`, where its new versions will be", joined(by, " and ", |by| format!("`{by}`"))),
        Copies { one: (one, version), two: (two, other), written } => (
            "`{one}` {version} and `{two}` {other} are copies of one package: to have only the second, write `aliases: {{{one}: {written}}}` into `.mu/workspace.yaml`; \
             to keep both, `aliases: {{{one}: {one}}}`"
        ),
        DifferInCase { one, other } => ("`{one}` and `{other}` differ only in case: on macOS and Windows, their packs would be one folder"),
        Unagreed { id, by, settings } => ("`{by}` would take the place of `{id}`, and nobody has agreed to that yet: to agree, add `allowReplaces: {{{id}: {by}}}` to {settings}, or install it with `--yes`"),
        ReplacedRange { file, reference, by, spec: None } => ("`{}` requires `{reference}`, but `{by}` is used in its place: to upgrade further, remove this requirement", file.display()),
        ReplacedRange { file, reference, by, spec: Some(spec) } => (
            "`{}` requires `{reference}`, but `{by}` is used in its place: to upgrade further, write `{}#{spec}` there instead",
            file.display(), names.reference(by)
        ),
        OtherLock { file, apart } => ("{file} has versions that do not fit what is required now: {}", joined(apart, ", ", |(id, locked, chosen)| format!("`{}` {locked} (chosen: {chosen})", names.reference(id)))),
        StillRequired { id, by } => ("`{id}` stays, because {}", still_required_by(by).unwrap_or_default()),
        PinsKept { names } => (
            "kept these pins, because no note of `mu pin` says what was there before: {}; `mu unpin {}` turns them into ranges",
            quoted(names), names.join(" ")
        ),
        PinsWithoutNote { entries } => ("there is no place for a note of what was there before, so `mu unpin` cannot restore it: {}", joined(entries, ", ", unnoted)),

        // # What registries and catalogs have
        RegistryLeftOut { prefix, why } => ("`{prefix}` is left out: {why}"),
        CatalogLinesSkipped { registry, lines } => ("the catalog of `{registry}` has lines that describe no package, or are longer than {LONGEST_LINE} bytes, which were skipped ({lines})"),
        ManifestUnread { id, version: None } => ("the manifest of `{id}` cannot be read"),
        ManifestUnread { id, version: Some(version) } => ("the manifest of `{id}` {version} cannot be read, so only its version is shown"),
        CommitsUnknown { id, why } => ("the commits of `{}` are not known: {why}", names.reference(id)),

        // # Trust, tokens and consent
        Evidence(EvidenceFault::File(why)) => ("`{VENDORED_FILE}` is not read: {why}"),
        Evidence(EvidenceFault::Nameless(line)) => ("line {line} of `{VENDORED_FILE}` names no `id` and `version`, and was skipped"),
        Evidence(EvidenceFault::Line(line, why)) => ("line {line} of `{VENDORED_FILE}` was skipped: {why}"),
        Objection(Objection { source, version, refused: Refused { why, rule } }) => ("`{source}` {version}: {why} ({rule})"),
        PassedOver { source, version, why } => ("`{source}` {version} is passed over: {why}"),
        RefusedNewer { source, version, first: RefusedVersion { version: first, refused: Refused { why, rule } }, others } => ("`{source}` {version} is used, and {first}{} passed over: {why} ({rule})", more(*others)),
        RuleOfNone { pattern, file } => ("the rule `{pattern}` in {file} speaks of no package in Mu.lock"),
        Voucher { gap: VoucherGap::EvidenceNotKept, name, version, why } => ("what vouches for {name} {version} is not kept in `{VENDORED_FILE}`: {why}"),
        Voucher { gap: VoucherGap::EvidenceNotCopied, name, version, why } => ("what vouches for {name} {version} is not copied: {why}"),
        Voucher { gap: VoucherGap::EvidenceUnknown, name, version, why } => ("it is not known what vouches for {name} {version}: {why}"),
        Voucher { gap: VoucherGap::ProvenanceNotCopied, name, version, why } => ("the provenance of {name} {version} is not copied: {why}"),
        Voucher { gap: VoucherGap::ProvenanceUnknown, name, version, why } => ("it is not known whether {name} {version} has a provenance: {why}"),
        Voucher { gap: VoucherGap::ArchiveNotKept, name, version, why } => ("the archive of {name} {version} is not kept: {why}"),
        Voucher { gap: VoucherGap::ArchiveNotUsed, name, version, why } => ("the vendored archive of {name} {version} is not used: {why}"),
        NoSingleArchive { id, version } => ("{id} {version} is made of no single archive, so none is kept: without its registry, the rules cannot be asked about it"),
        ArchiveUnread { path, why } => ("`{path}` is not read: {why}"),
        NotSilenced { finding, file } => ("{finding} is ignored in {file}, which cannot silence what a feed of yours calls malicious"),
        FormerVariable { former, host, variable: Some(variable) } => ("`{former}` is not sent to `{host}`: the variable for that host is `{variable}`"),
        FormerVariable { former, host, variable: None } => ("`{former}` is not sent to `{host}`: no variable can name that host; use `mu login {host}`"),
        TokensReadable { file } => ("other users can read the tokens in `{0}`; `chmod 600 {0}` keeps them out", file.display()),
        TokensUnread { why } => ("no stored token is used: {why}"),
        TokenVariable { variable, is_out: false } => ("`{variable}` is set, and takes precedence over the stored token"),
        TokenVariable { variable, is_out: true } => ("`{variable}` is still set"),
        AnswerNotKept { why } => ("mu will ask again, because it cannot keep the answer: {why}"),
        SecretsInBuild { package, variables } => ("the build of `{package}` gets {}, and what it makes could contain that", variables.join(", ")),
        BuildUntrusted { package } => ("{package} has a build that is not trusted; it did not run"),

        // # Publishing and packing
        NoVersion { name } => ("`{name}` has no `version`, so it is not published"),
        OtherContent { name, version } => ("`{name}` {version} is already published with different content; raise its version to publish the change"),
        OlderThan { name, version, newest } => ("`{name}` {version} is older than {newest}, which is already published"),
        OrderedByText { name, app } => (
            "the app version `{app}` of `{name}` is not a version: such versions come before all others, in the order of their texts, and then of their revisions; ranges do not find them"
        ),
        KeysMissing { name, keys } => ("the manifest of `{name}` has no {}", quoted(keys)),
        KeysUnknown { file, keys } => ("{file} has keys that no such file has: {}", quoted(keys)),
        DefaultTaken { place, called, key, default } => ("the `{key}` of `{called}` ({place}) is a template, and was read as its default `{default}`: where something else is set, it is that"),
        SecretsPacked { files } => ("packed what looks like a secret: {}", quoted(files)),
        WithoutExactVersions { why } => ("packed without the exact versions: {why}"),
        PatternIdle { pattern } => ("`{pattern}` in `files` matches nothing: there is no such file, or `.gitignore` excludes it (`!{pattern}` in a `.muignore` brings it back)"),
        PackageInside { folder } => ("`{folder}` is a separate package and is packed too; `!{folder}` in `files` excludes it"),
        NotInCatalog { hub } => ("searching the hub at `{hub}` does not find what is new: `mu hub tidy {}` brings its catalog up to date", quoted_for_shell(hub)),
        WithoutProvenance { package, place } => ("{package} is already in `{place}` without its provenance, and stays as it is"),
        NotAtHub { package, kind, lacks } => ("{package} comes from a hub, which has of a {kind} its files alone: {lacks} is not copied"),

        // # Mirrors
        GoneFromHub { name } => ("`{name}` is not in the hub any more; what was copied of it stays"),
        MoveSkipped(error) => ("{error}; it was skipped"),
        NotCopied { name, version: None, why } => ("{name} is not copied: {why}"),
        NotCopied { name, version: Some(version), why } => ("{name} {version} is not copied: {why}"),
        LeftElsewhere { id, place, why: None, .. } => ("`{id}` is the folder `{place}`, and is not copied"),
        LeftElsewhere { id, provider, place, why: Some(why) } => ("`{id}` is not copied: {why}{}", mirrored(provider, place)),
        PackedAnew { id, version, kind, rule } => ("{id} {version} is packed anew, and {}", unsigned(id, version, *kind, rule)),

        // # Files that commands name or leave
        NoFile { path } => ("there is no file `{}`", path.display()),
        HelmPacks { files } => ("`helm package` takes files of mu along: write `{}` into `.helmignore`, each on a line", files.join("` and `")),
        HelmUses { folder } => ("Helm would use `{}` beside the archive of the same chart; remove the folder", folder.display()),
        HelmRefuses { chart, file, bytes } => ("`{file}` of the chart {chart} has {bytes} bytes, and Helm 4 loads no chart with a file of more than 5 MiB"),
        HelmRenders { path, is_folder: false } => ("Helm would render `{}`, which no dependency names; remove the archive", path.display()),
        HelmRenders { path, is_folder: true } => (
            "Helm would render `{}`, which no dependency names; remove the folder, or name it under `dependencies`, without a `repository`",
            path.display()
        ),
    }
}

/// What selection warns of.
fn selected(warning: &SelectionWarning, pinned_by: Option<&str>) -> String {
    let said = |before: &str, reason: &str, after: &str| match reason.is_empty() {
        true => String::new(),
        false => format!("{before}{reason}{after}"),
    };
    let number = |version: &Option<Version>| {
        version.as_ref().map_or_else(|| LockedPackage::NO_VERSION.to_owned(), ToString::to_string)
    };
    match warning {
        SelectionWarning::LocalDoesNotSatisfy { id, version, by, requirement } => {
            let version = match version {
                Some(version) => format!("at version {version}"),
                None => "without a version".to_owned(),
            };
            let by = match by {
                RootOrPackage::Root(name) => name,
                RootOrPackage::Package(id) => id.as_str(),
            };
            format!(
                "`{id}` is used from the workspace {version}, although {by} requires {requirement}"
            )
        }
        SelectionWarning::Yanked { id, version, is_locked, reason } => {
            let why = match pinned_by {
                Some(by) => format!("it is used because {by} requires exactly this version"),
                None if *is_locked => "it stays because Mu.lock names it".to_owned(),
                None => "it is used because it is exactly the lowest version of a requirement"
                    .to_owned(),
            };
            format!("`{id}` {} was yanked{}; {why}", number(version), said(" (", reason, ")"))
        }
        SelectionWarning::Deprecated { id, version, reason } => {
            format!("`{id}` {} is deprecated{}", number(version), said(": ", reason, ""))
        }
    }
}

/// An entry whose pin has no note.
fn unnoted((name, before, file): &(String, Option<String>, PathBuf)) -> String {
    match before {
        None => format!("`{name}` without a version in {}", file.display()),
        Some(before) => format!("`{name} {before}` in {}", file.display()),
    }
}

/// How to copy what a mirror leaves where it is.
fn mirrored(provider: &str, place: &str) -> String {
    match provider {
        "git" => format!(
            "; `git clone --mirror {place}` copies its repository, and a registry with `provider: git` leads to the copy"
        ),
        _ => String::new(),
    }
}

/// What a rule says of a copy, and what to do. A tag or a commit is signed as an object of Git, and an operator as an image of several
/// layers. The archive that a mirror gets is neither, and mu makes it.
fn unsigned(id: &PackageId, version: &str, kind: PlaceKind, rule: &str) -> String {
    let (signed, place) = match kind {
        PlaceKind::Repository => ("signatures in Git do", "the repository"),
        PlaceKind::OperatorCatalog => ("a signature of its image does", "the catalog"),
        _ => ("a signature of what it comes in does", "it"),
    };
    format!(
        "{signed} not speak of the copy: behind the mirror, no version satisfies the {rule}; leave {place} where it is, or accept exactly this content there with `mu trust allow '{id}#{version}'`"
    )
}

/// All of them in their words.
fn joined<T>(
    all: impl IntoIterator<Item = T>,
    between: &str,
    words: impl Fn(T) -> String,
) -> String {
    all.into_iter().map(words).collect::<Vec<_>>().join(between)
}

/// The names, each between backquotes.
fn quoted(names: &[impl Display]) -> String {
    joined(names, ", ", |name| format!("`{name}`"))
}

/// How many there are beside one that is named.
fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(" and {others} more") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::reference::Base;

    #[test]
    fn a_command_names_a_package_as_it_is_called_here() {
        let names = PackageNaming::new(&Base::default(), Path::new("/"));
        let told = |warning: &Warning| sentence(warning, &names);
        let id = |text: &str| PackageId::parse(text).expect("is an id");
        let ignored = Warning::LockedIgnored { id: id("hub.mu.com/a/b"), place: "b".to_owned() };
        assert!(told(&ignored).starts_with("Mu.lock takes `a/b` from `b`, which Git ignores"));
        let ids = vec![id("hub.mu.com/a/b"), id("acme.co/c")];
        assert_eq!(
            told(&Warning::NewerUnknown { ids }),
            "newer versions of `hub.mu.com/a/b`, `acme.co/c` are not known: mu is offline"
        );
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let names = PackageNaming::new(&Base::default(), Path::new("/"));
        for (others, expected) in [(0, "`a/Mu.yaml`, whose"), (2, "`a/Mu.yaml` and 2 more, whose")]
        {
            let first = "a/Mu.yaml".to_owned();
            let told = sentence(&Warning::SparseCheckout { first, others }, &names);
            assert!(told.contains(expected), "{told}");
        }
    }
}
