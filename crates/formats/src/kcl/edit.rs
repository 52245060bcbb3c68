//! Dependencies as `kcl.mod` writes them, for commands that change it: comments and layout stay.

use std::path::Path;

use mu_manifest::Requirement;
use mu_manifest::edit::{Change, Dialect, Known, Placed};
use mu_manifest::reference::{Protocol, Reference, Version, VersionSpec};
use mu_manifest::source::{New, SourceError, TextProblem};
use toml_edit::{DocumentMut, InlineTable, Item, Table, Value};

use super::{FORMAT, NAMESPACE, REGISTRY, VersionKey, git_reference};
use crate::format::Reading;

/// The dependencies of modules.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modules;

/// The versions that an entry can have: its revision in Git, or its lowest version.
enum EntryVersion {
    Least(String),
    Tag(String),
    Branch(String),
    Commit(String),
    Any,
}

impl Dialect for Modules {
    fn requirements(&self, path: &Path, text: &str) -> Result<Vec<Placed>, SourceError> {
        FORMAT.placed(path, text, None)
    }

    fn check(&self, _: &Path, _: &str, new: Option<&Requirement>) -> Result<(), TextProblem> {
        new.map_or(Ok(()), |new| said(&new.reference).map(drop))
    }

    fn entry(&self, new: &Requirement) -> Result<(New, Requirement), TextProblem> {
        value(&new.reference)?;
        let read = Requirement { alias: None, ..self.read_as(new) };
        Ok((New::Text(self.version(new)?), read))
    }

    fn version(&self, wanted: &Requirement) -> Result<String, TextProblem> {
        Ok(match said(&wanted.reference)? {
            EntryVersion::Least(text)
            | EntryVersion::Tag(text)
            | EntryVersion::Branch(text)
            | EntryVersion::Commit(text) => text,
            // Then there is no such key.
            EntryVersion::Any => String::new(),
        })
    }

    fn read_as(&self, wanted: &Requirement) -> Requirement {
        let read = match said(&wanted.reference) {
            Ok(EntryVersion::Least(text) | EntryVersion::Tag(text))
                if is_git(&wanted.reference) =>
            {
                VersionSpec::parse(&super::revision_of("tag", &text)).ok()
            }
            Ok(EntryVersion::Branch(text)) => {
                VersionSpec::parse(&super::revision_of("branch", &text)).ok()
            }
            Ok(EntryVersion::Least(text)) => {
                let range = super::at_least(&text);
                VersionSpec::parse(range.trim_start_matches('#')).ok()
            }
            Ok(EntryVersion::Any) if is_git(&wanted.reference) => Some(VersionSpec::Tip),
            _ => wanted.reference.version().cloned(),
        };
        Requirement { reference: wanted.reference.with_version(read), ..wanted.clone() }
    }

    fn least(&self, spec: &VersionSpec) -> VersionSpec {
        let version = spec.as_str().strip_prefix(">=").map(Version::parse_lenient);
        match version {
            Some(Ok(version)) => VersionSpec::compatible_with(&version),
            _ => spec.clone(),
        }
    }

    fn marks_indirect(&self) -> bool {
        true
    }

    fn is_described(&self) -> bool {
        true
    }

    fn read_once_described(&self, entry: &Requirement, known: &Known) -> Requirement {
        // The text of a tag is all that a revision in Git is.
        let tag = known.tag.as_deref().filter(|tag| {
            let spec = entry.reference.version();
            is_git(&entry.reference) && spec.is_some_and(|spec| is_spelt(spec.as_str(), tag))
        });
        match tag.map(|tag| VersionSpec::parse(&super::revision_of("tag", tag))) {
            Some(Ok(tag)) => {
                Requirement { reference: entry.reference.with_version(Some(tag)), ..entry.clone() }
            }
            _ => entry.clone(),
        }
    }

    fn comment_at(&self, text: &str, index: usize) -> Option<usize> {
        let document = super::parse(text).ok()?;
        super::all(&document).ok()?.get(index)?.comment(text)
    }

    fn is_list(&self) -> bool {
        false
    }

    fn change(&self, text: &str, change: &Change<'_>) -> Option<Result<String, TextProblem>> {
        Some(changed(text, change).map(|changed| match text.contains("\r\n") {
            true => changed.replace("\r\n", "\n").replace('\n', "\r\n"),
            false => changed,
        }))
    }
}

fn changed(text: &str, change: &Change<'_>) -> Result<String, TextProblem> {
    let unread = |_| TextProblem::new("it is not TOML");
    let mut document: DocumentMut = text.parse().map_err(unread)?;
    match change {
        Change::Add(new) => {
            let table = document.entry("dependencies").or_insert_with(|| Item::Table(Table::new()));
            let table = table.as_table_like_mut();
            let table = table.ok_or_else(|| TextProblem::new("`dependencies` must be a table"))?;
            let name = &super::usual_name(&new.reference);
            if table.contains_key(name) {
                return Err(TextProblem::new(format!(
                    "there is another dependency called `{name}`"
                ))
                .help("modules are imported by that name, so only one can have it"));
            }
            table.insert(name, Item::Value(value(&new.reference)?));
        }
        Change::Set { index, wanted } => {
            let (name, key) = place(text, *index)?;
            let entry = document.get_mut("dependencies").and_then(|table| table.get_mut(&name));
            let entry = entry.ok_or_else(|| TextProblem::new("the dependency is not there"))?;
            set(entry, key, &wanted.reference)?;
        }
        Change::Describe { index, known } => {
            // What is known is written only where the author has left it to mu.
            let (name, key) = place(text, *index)?;
            let entry = document.get_mut("dependencies").and_then(|table| table.get_mut(&name));
            let Some(entry) = entry else { return Ok(document.to_string()) };
            if let Some(tag) = &known.tag {
                name_tag(entry, key, tag);
            }
            if known.is_branch {
                name_branch(entry, key);
            }
            if let Some((module, folder)) = &known.in_repository {
                name_module(entry, module, folder)?;
            }
        }
        Change::Version(version) => {
            let package = document.get_mut("package").and_then(Item::as_table_like_mut);
            let package = package.ok_or_else(|| TextProblem::new("it has no `[package]`"))?;
            match package.get_mut("version").and_then(Item::as_value_mut) {
                Some(old) => overwrite(old, version),
                None => drop(package.insert("version", toml_edit::value(*version))),
            }
        }
        Change::Remove { index } => {
            let (name, _) = place(text, *index)?;
            let table = document.get_mut("dependencies").and_then(Item::as_table_like_mut);
            table.and_then(|table| table.remove(&name));
        }
    }
    Ok(document.to_string())
}

/// The name of the entry at a place in the list, and the key of its version.
fn place(text: &str, index: usize) -> Result<(String, VersionKey), TextProblem> {
    let gone = || TextProblem::new("the dependency is not there");
    let document = super::parse(text).map_err(|_| gone())?;
    let entries = super::all(&document).map_err(|_| gone())?;
    let entry = entries.get(index).ok_or_else(gone)?;
    let around = Reading { is_own: true, ..Reading::default() };
    let (_, key) = entry.read(&around).map_err(|_| gone())?;
    Ok((entry.name.to_owned(), key))
}

/// Gives an entry another version, and nothing else.
fn set(entry: &mut Item, key: VersionKey, wanted: &Reference) -> Result<(), TextProblem> {
    let wanted = said(wanted)?;
    let (text, named) = match &wanted {
        EntryVersion::Least(text) | EntryVersion::Tag(text) => (text.as_str(), "tag"),
        EntryVersion::Branch(text) => (text.as_str(), "branch"),
        EntryVersion::Commit(text) => (text.as_str(), "commit"),
        EntryVersion::Any => return leave_open(entry, key),
    };
    let old = match key {
        VersionKey::Whole => Some(entry),
        VersionKey::Named(key) | VersionKey::Missing(key) => {
            let table = entry.as_table_like_mut();
            let table = table.ok_or_else(|| TextProblem::new("the entry is not a table"))?;
            // The key decides what is requested from Git.
            let is_revision = matches!(key, "tag" | "commit" | "branch");
            if is_revision && key != named {
                table.remove(key);
                append(entry, named, text);
                return Ok(());
            }
            if !table.contains_key(key) {
                append(entry, key, text);
                return Ok(());
            }
            // The version of the module itself, which can be beside its tag.
            let plain =
                |item: &Item| item.as_str().map(|text| text.trim_start_matches('v').to_owned());
            let is_repeated = key == "tag"
                && table
                    .get("version")
                    .and_then(plain)
                    .is_some_and(|version| table.get(key).and_then(plain) == Some(version));
            if let Some(version) = table.get_mut("version").filter(|_| is_repeated)
                && let Some(version) = version.as_value_mut()
            {
                overwrite(version, text);
            }
            table.get_mut(key)
        }
    };
    if let Some(old) = old.and_then(Item::as_value_mut) {
        overwrite(old, text);
    }
    Ok(())
}

/// Has an entry name no version.
fn leave_open(entry: &mut Item, key: VersionKey) -> Result<(), TextProblem> {
    let places = ["oci", "git", "repo", "path"];
    match (key, entry.as_table_like_mut()) {
        (VersionKey::Missing(_), _) => Ok(()),
        (VersionKey::Named(key), Some(table))
            if places.iter().any(|place| table.contains_key(place)) =>
        {
            let removed = table.remove(key);
            // The space before the bracket is the last value's.
            let end =
                removed.as_ref().and_then(Item::as_value).and_then(|old| old.decor().suffix());
            let last = entry.as_inline_table_mut().and_then(|table| table.iter_mut().last());
            if let Some(((_, last), end)) = last.zip(end.cloned())
                && end.as_str().is_some_and(|end| !end.is_empty())
            {
                last.decor_mut().set_suffix(end);
            }
            Ok(())
        }
        _ => Err(TextProblem::new("the version is all that this entry says")
            .help("name the least version that will do")),
    }
}

/// Has an entry name a tag as it is, with a `v` or without one, if it names just that version.
fn name_tag(entry: &mut Item, key: VersionKey, tag: &str) {
    let named = match key {
        VersionKey::Whole => Some(entry),
        VersionKey::Named(key @ ("tag" | "version")) => entry.get_mut(key),
        VersionKey::Named(_) | VersionKey::Missing(_) => None,
    };
    let Some(old) = named.and_then(Item::as_value_mut) else { return };
    if old.as_str().is_some_and(|old| old != tag && is_spelt(old, tag)) {
        replace(old, Value::from(tag));
    }
}

/// Whether a text is the name of a tag, which may have a `v` that the text lacks, or lack its own.
fn is_spelt(text: &str, tag: &str) -> bool {
    let bare = |text: &str| text.strip_prefix('v').unwrap_or(text).to_owned();
    bare(text) == bare(tag)
}

/// Has an entry name a branch, which KCL looks for nowhere else.
fn name_branch(entry: &mut Item, key: VersionKey) {
    let Some(table) = entry.as_inline_table_mut() else {
        if let (VersionKey::Named("tag"), Some(table)) = (key, entry.as_table_like_mut())
            && let Some(name) = table.remove("tag")
        {
            table.insert("branch", name);
        }
        return;
    };
    if key != VersionKey::Named("tag") {
        return;
    }
    // Its place among the others stays.
    let all: Vec<(String, Value)> =
        table.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
    for (key, _) in &all {
        table.remove(key);
    }
    for (key, value) in all {
        let key = if key == "tag" { "branch".to_owned() } else { key };
        table.insert(key, value);
    }
}

/// Has an entry of a repository with several modules name the one that it means as KCL does: by the module's own name, beside the URL
/// of the repository.
fn name_module(entry: &mut Item, module: &str, folder: &str) -> Result<(), TextProblem> {
    let Some(table) = entry.as_table_like_mut().filter(|table| !table.contains_key("package"))
    else {
        return Ok(());
    };
    let Some(url) = table.get_mut("git").and_then(Item::as_value_mut) else { return Ok(()) };
    let written = url.as_str().unwrap_or_default().to_owned();
    let Some(repository) = written.strip_suffix(folder).and_then(|url| url.strip_suffix('/'))
    else {
        return Ok(());
    };
    if module != folder {
        let what = format!(
            "`kcl.mod` names a module of a Git repository by its own name, `{module}`, and not by its folder `{folder}`"
        );
        let reference = git_reference(&format!("{repository}/{module}"));
        return Err(TextProblem::new(what).help(format!("add it by its name: `{reference}`")));
    }
    replace(url, Value::from(repository));
    append(entry, "package", module);
    Ok(())
}

/// Puts a key behind those of an entry.
fn append(entry: &mut Item, key: &str, text: &str) {
    let Some(table) = entry.as_table_like_mut() else { return };
    table.insert(key, toml_edit::value(text));
    // The space before the bracket is the last value's.
    if let Some(table) = entry.as_inline_table_mut() {
        let mut values: Vec<_> = table.iter_mut().map(|(_, value)| value).collect();
        if let [.., before, last] = &mut values[..]
            && let Some(end) = before.decor().suffix().cloned()
        {
            before.decor_mut().set_suffix("");
            last.decor_mut().set_suffix(end);
        }
    }
}

fn replace(old: &mut Value, mut new: Value) {
    *new.decor_mut() = old.decor().clone();
    *old = new;
}

/// Replaces a version. It keeps a leading `v`, because the text is the name of a tag.
fn overwrite(old: &mut Value, text: &str) {
    let has_v = old.as_str().is_some_and(|old| old.starts_with('v'));
    let is_bare = text.starts_with(|first: char| first.is_ascii_digit());
    let new = match has_v && is_bare {
        true => Value::from(format!("v{text}")),
        false => Value::from(text),
    };
    replace(old, new);
}

/// The value of a new entry.
fn value(reference: &Reference) -> Result<Value, TextProblem> {
    let mut table = InlineTable::new();
    let mut put = |key: &str, text: &str| drop(table.insert(key, text.into()));
    if let Some(folder) = reference.local() {
        put("path", folder);
        return Ok(table.into());
    }
    let wanted = said(reference)?;
    let refused = || {
        TextProblem::new(format!("a KCL module cannot depend on `{reference}`"))
            .help("modules depend on modules of OCI registries, Git repositories and folders: `oci://HOST/REPOSITORY`, `git+https://HOST/REPOSITORY`")
    };
    if is_git(reference) {
        let bare = reference.with_version(None).to_string();
        put("git", bare.strip_prefix("git+").unwrap_or(&bare));
    } else {
        let base = reference.base().ok_or_else(refused)?;
        if reference.protocol() != Some(&Protocol::Oci) {
            return Err(refused());
        }
        let (host, name) = (base.as_str().trim_end_matches('/'), reference.name());
        let is_usual = host == REGISTRY && name.as_str().split('/').eq([NAMESPACE, name.leaf()]);
        if let (true, EntryVersion::Least(version)) = (is_usual, &wanted) {
            return Ok(version.as_str().into());
        }
        put("oci", &format!("oci://{host}/{name}"));
    }
    match &wanted {
        EntryVersion::Least(text) | EntryVersion::Tag(text) => put("tag", text),
        EntryVersion::Branch(text) => put("branch", text),
        EntryVersion::Commit(text) => put("commit", text),
        EntryVersion::Any => {}
    }
    Ok(table.into())
}

fn is_git(reference: &Reference) -> bool {
    reference.protocol().is_some_and(Protocol::is_git)
}

/// The version in the form that `kcl.mod` can have.
fn said(reference: &Reference) -> Result<EntryVersion, TextProblem> {
    let Some(spec) = reference.version() else { return Ok(EntryVersion::Any) };
    let text = spec.as_str();
    let is_git = is_git(reference);
    match spec {
        // Without a revision, an entry means the tip in Git, and any version elsewhere.
        VersionSpec::Tip if is_git => Ok(EntryVersion::Any),
        VersionSpec::Latest if !is_git => Ok(EntryVersion::Any),
        VersionSpec::Latest => Err(TextProblem::new("`kcl.mod` cannot say `latest`")
            .help("leave the version out: then it gets the tag of the newest one")),
        VersionSpec::Commit(commit) if is_git => Ok(EntryVersion::Commit(commit.as_str().to_owned())),
        VersionSpec::Tag(_) if is_git => Ok(match text.strip_prefix("refs/heads/") {
            Some(branch) => EntryVersion::Branch(branch.to_owned()),
            None => EntryVersion::Tag(text.strip_prefix("refs/tags/").unwrap_or(text).to_owned()),
        }),
        VersionSpec::Tag(_) => Ok(EntryVersion::Tag(text.to_owned())),
        VersionSpec::Pin(pin) => {
            let has_v = text.trim_start_matches(['=', ' ']).starts_with('v');
            let v = if has_v { "v" } else { "" };
            Ok(EntryVersion::Least(format!("{v}{}", pin.published())))
        }
        VersionSpec::Range(_) if !is_git => least(text).ok_or_else(|| {
            TextProblem::new(format!("`kcl.mod` cannot say `{text}`"))
                .help("it says the least version that will do, within its major: write `^` and that version")
        }),
        other => Err(TextProblem::new(format!("`kcl.mod` cannot say `{other}`"))
            .help("name a tag or a commit")),
    }
}

/// The version after a caret, or alone, as `kcl.mod` itself writes it.
fn least(text: &str) -> Option<EntryVersion> {
    let version = text.trim();
    let version = version.strip_prefix('^').unwrap_or(version).trim();
    Version::parse_lenient(version).ok()?;
    Some(EntryVersion::Least(version.to_owned()))
}
