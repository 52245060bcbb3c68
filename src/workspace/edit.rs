//! Edits of the registries in `.mu/workspace.yaml` or `~/.mu/config.yaml` that keep the user's layout.
//!
//! Works on text; the caller reads and writes the file. A file that does not exist yet is an empty text.

use std::path::Path;

use super::read::{self, Kind, SettingsLayer};
use super::schema::{File, RegistryTable};
use super::{CONFIG_FILE, ConfiguredRegistry, registry};
use crate::manifest::edit::EditError;
use crate::manifest::source::New;
use crate::manifest::source::layout::{self, Collection, NewEntry, Patch};
use crate::manifest::source::{Document, SourceError, TextProblem};

const KEY: &str = File::registries;

const PATCHES: &str = File::patches;

/// The parts of a registry to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewRegistry {
    /// The provider's name.
    pub provider: Option<String>,
    /// A URL, or a folder relative to the workspace's root or mu's home.
    pub url: Option<String>,
    /// Whether plain http to another machine is allowed.
    pub insecure: bool,
    /// Whether tags such as `v1` and `1.28` count as versions.
    pub lenient: bool,
    /// Whether names stay whole there, including the segments of the prefix.
    pub no_strip: bool,
    /// The host that it may name for its tokens; what the file says stays.
    pub tokens_at: Option<String>,
}

impl NewRegistry {
    /// Checks what a person wrote, before it is in any file; `folder` is what a relative place is relative to.
    pub fn check(&self, prefix: &str, folder: &Path) -> Result<(), (Part, TextProblem)> {
        registry::prefix(prefix).map_err(|problem| (Part::Prefix, problem))?;
        let url = self.url.as_ref().map(|url| registry::place(url, folder));
        url.transpose().map_err(|problem| (Part::Url, problem))?;
        Ok(())
    }

    fn pairs(&self) -> Vec<(&'static str, Option<New>)> {
        let text = |text: &Option<String>| text.clone().map(New::Text);
        vec![
            (RegistryTable::provider, text(&self.provider)),
            (RegistryTable::url, text(&self.url)),
            (RegistryTable::insecure, self.insecure.then_some(New::Flag(true))),
            (RegistryTable::versions, self.lenient.then(|| New::Text("lenient".to_owned()))),
            (RegistryTable::strip, self.no_strip.then_some(New::Flag(false))),
            (RegistryTable::tokens_at, text(&self.tokens_at)),
        ]
    }

    /// The registry as a value of the settings: only the URL, if nothing else is set.
    fn value(&self) -> New {
        let pairs = self.pairs().into_iter().filter_map(|(key, value)| Some((key, value?)));
        let mut pairs: Vec<_> = pairs.collect();
        match pairs.as_slice() {
            [(RegistryTable::url, _)] => pairs.remove(0).1,
            _ => New::Table(pairs),
        }
    }
}

/// What a person writes of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The start of its packages' ids.
    Prefix,
    /// Where it is.
    Url,
}

/// Settings with a registry that was added or replaced.
#[derive(Debug)]
pub struct Set {
    /// The text of the file.
    pub text: String,
    /// The registry as it was, if there was one.
    pub before: Option<ConfiguredRegistry>,
    /// The registry as it is now.
    pub now: ConfiguredRegistry,
}

/// The text of the settings at `path` with a registry for `prefix` (`hub.mu.com/`) added or replaced.
pub fn set_registry(
    path: &Path,
    text: &str,
    prefix: &str,
    new: &NewRegistry,
) -> Result<Set, EditError> {
    let before = layer(path, text)?.registries;
    let wanted = registry::prefix(prefix).unwrap_or_else(|_| prefix.to_owned());
    let index = before.iter().position(|registry| registry.prefix == wanted);
    let tokens_at = before.get(index.unwrap_or(before.len())).and_then(|old| old.tokens_at.clone());
    let new = &NewRegistry { tokens_at, ..new.clone() };
    let changed = layout::change(path, text, KEY, |patch, collection| match (collection, index) {
        (Some(collection), Some(index)) => replace(patch, collection, index, new),
        _ => patch.add(KEY, &NewEntry { key: Some(wanted.clone()), value: new.value() }),
    })?;
    let after = layer(path, &changed)?.registries;
    let is_new = |registry: &&ConfiguredRegistry| registry.prefix == wanted;
    let others = |all: &[ConfiguredRegistry]| {
        all.iter().filter(|registry| !is_new(registry)).cloned().collect::<Vec<_>>()
    };
    let now = after.iter().find(is_new).cloned().filter(|registry| {
        registry.provider == new.provider
            && registry.url.is_some() == new.url.is_some()
            && registry.insecure == new.insecure
            && registry.lenient == new.lenient
            && registry.strip != new.no_strip
            && registry.tokens_at == new.tokens_at
    });
    match now {
        Some(now) if others(&before) == others(&after) => {
            let before = before.into_iter().find(|registry| registry.prefix == wanted);
            Ok(Set { text: changed, before, now })
        }
        _ => Err(EditError::unsafe_at(path)),
    }
}

/// The text of the settings at `path` without the registry for `prefix`; `None` if there is none.
pub fn remove_registry(path: &Path, text: &str, prefix: &str) -> Result<Option<String>, EditError> {
    let mut expected = layer(path, text)?.registries;
    let wanted = registry::prefix(prefix).unwrap_or_else(|_| prefix.to_owned());
    let Some(index) = expected.iter().position(|registry| registry.prefix == wanted) else {
        return Ok(None);
    };
    expected.remove(index);
    let changed = layout::change(path, text, KEY, |patch, collection| match collection {
        Some(collection) => patch.take(collection, index),
        None => Ok(()),
    })?;
    if layer(path, &changed)?.registries == expected {
        Ok(Some(changed))
    } else {
        Err(EditError::unsafe_at(path))
    }
}

/// A value as a person writes it behind a key: a list of texts as in YAML, or a text.
pub fn value(text: &str) -> New {
    let document = Document::read(Path::new("value"), text);
    let items =
        document.as_ref().ok().filter(|document| document.root_value().is_list()).map(|list| {
            let items = list.root_value().list()?;
            items
                .map(|item| Ok(item.word()?.as_str().to_owned()))
                .collect::<Result<_, SourceError>>()
        });
    match items {
        Some(Ok(items)) => New::List(items),
        _ => New::Text(text.to_owned()),
    }
}

/// The text of the settings at `path` with another value for `key`, such as `resolution` or `runtime.kubernetes`.
pub fn set_key(path: &Path, text: &str, key: &str, value: New) -> Result<String, EditError> {
    let changed = match key.split_once('.') {
        Some((map, key)) => {
            layout::change(path, text, map, |patch, collection| match collection {
                Some(collection) if collection.is_map_collection() => {
                    patch.set(collection, key, value)
                }
                _ => patch.add(map, &NewEntry { key: Some(key.to_owned()), value }),
            })?
        }
        None => layout::set(path, text, key, value)?,
    };
    // Reading the new text finds whatever is wrong with the value.
    layer(path, &changed)?;
    Ok(changed)
}

/// The text of the settings at `path` without `key`, such as `resolution` or `overrides.aws/ec2`; `None` if it is not there.
pub fn unset_key(path: &Path, text: &str, key: &str) -> Result<Option<String>, EditError> {
    // No empty map stays, unless it is all that there is beside comments.
    let document = Document::read(path, text)?;
    let has_more = document.root_value().entries().is_ok_and(|entries| entries.count() > 1);
    let whole = match key.split_once('.') {
        Some((map, inner)) if has_more && is_only_entry(&document, map, inner) => map,
        _ => key,
    };
    let changed = match whole.split_once('.') {
        Some((map, key)) => layout::change(path, text, map, |patch, collection| match collection
            .filter(|collection| collection.is_map_collection())
        {
            Some(collection) => patch.unset(collection, key),
            None => Ok(()),
        })?,
        None => layout::change(path, text, whole, |patch, _| patch.take_key(whole))?,
    };
    // Something else may need what was taken out.
    layer(path, &changed)?;
    Ok((changed != text).then_some(changed))
}

/// Whether a map of a document has this key, and no other one.
fn is_only_entry(document: &Document<'_>, map: &str, key: &str) -> bool {
    let maps = document.root_value().entries().ok();
    let found = maps.into_iter().flatten().find(|(name, _)| name.as_str() == map);
    let mut keys = found.and_then(|(_, value)| value.entries().ok()).into_iter().flatten();
    keys.next().is_some_and(|(name, _)| name.as_str() == key) && keys.next().is_none()
}

/// The text of the settings at `path` with `value` for `key` in a map below `trust`, such as `signers`.
pub fn set_trust(
    path: &Path,
    text: &str,
    map: &'static str,
    key: &str,
    value: New,
) -> Result<String, EditError> {
    // First the maps themselves, where they are not there yet.
    let with_map = layout::change(path, text, File::trust, |patch, collection| {
        let trust = collection.filter(|trust| trust.is_map_collection());
        let nothing = New::Table(Vec::new());
        match trust {
            Some(trust) if trust.nested_at_key(map).is_some() => Ok(()),
            Some(trust) => patch.set(trust, map, nothing),
            None => patch.add(File::trust, &NewEntry { key: Some(map.to_owned()), value: nothing }),
        }
    })?;
    let changed =
        layout::change(path, &with_map, File::trust, |patch, collection| {
            match collection.and_then(|trust| trust.nested_at_key(map)) {
                Some(inner) => patch.set(inner, key, value),
                None => Ok(()),
            }
        })?;
    // Reading the new text finds whatever is wrong with the value.
    layer(path, &changed)?;
    Ok(changed)
}

/// The text of a workspace's settings at `path` without the patch for `key`; `None` if there is none.
pub fn remove_patch(path: &Path, text: &str, key: &str) -> Result<Option<String>, EditError> {
    let mut expected = patches(path, text)?;
    let Some(index) = expected.iter().position(|known| known == key) else { return Ok(None) };
    expected.remove(index);
    let document = Document::read(path, text)?;
    let is_alone = document.root_value().entries()?.count() == 1;
    if expected.is_empty() && is_alone && document.comments().next().is_none() {
        return Ok(Some(String::new()));
    }
    let changed = layout::change(path, text, PATCHES, |patch, collection| match collection {
        // No empty map stays, unless it is all that there is beside comments.
        Some(_) if expected.is_empty() && !is_alone => patch.take_key(PATCHES),
        Some(collection) => patch.take(collection, index),
        None => Ok(()),
    })?;
    if patches(path, &changed)? == expected {
        Ok(Some(changed))
    } else {
        Err(EditError::unsafe_at(path))
    }
}

/// The text of a workspace's settings at `path` with `file` as the patch for `key`.
pub fn set_patch(path: &Path, text: &str, key: &str, file: &str) -> Result<String, EditError> {
    let file = New::Text(file.to_owned());
    let changed = set_key(path, text, &format!("{PATCHES}.{key}"), file)?;
    if patches(path, &changed)?.iter().any(|known| known == key) {
        Ok(changed)
    } else {
        Err(EditError::unsafe_at(path))
    }
}

/// What the patches of the file are for, in its order.
fn patches(path: &Path, text: &str) -> Result<Vec<String>, SourceError> {
    Ok(layer(path, text)?.patches.into_iter().map(|(key, ..)| key).collect())
}

/// Replaces a registry; if it is in the long form, only the keys that differ.
fn replace<'d>(
    patch: &mut Patch<'d>,
    collection: Collection<'d>,
    index: usize,
    new: &NewRegistry,
) -> Result<(), SourceError> {
    let table = collection.nested_collection(index);
    if !table.is_map_collection() {
        return match new.value() {
            New::Text(text) => patch.replace_text(collection, index, &text),
            value => {
                patch.replace_value(collection, index, &value);
                Ok(())
            }
        };
    }
    if table.is_flow() {
        patch.replace_value(collection, index, &new.value());
        return Ok(());
    }
    for (key, value) in new.pairs() {
        match value {
            Some(value) => patch.set(table, key, value)?,
            None => patch.unset(table, key)?,
        }
    }
    Ok(())
}

/// What the file itself says, in its order.
fn layer(path: &Path, text: &str) -> Result<SettingsLayer, SourceError> {
    let is_config = path.file_name().is_some_and(|name| name == CONFIG_FILE);
    let kind = if is_config { Kind::Config } else { Kind::Workspace };
    let folder = path.parent().unwrap_or(path);
    // Folders are relative to the workspace's root, or to mu's home.
    let folder = if is_config { folder } else { folder.parent().unwrap_or(folder) };
    read::layer(&Document::read(path, text)?, kind, folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/w/.mu/workspace.yaml";

    fn check_set(before: &str, prefix: &str, new: &NewRegistry, after: &str) {
        let changed = set_registry(Path::new(PATH), before, prefix, new);
        assert_eq!(changed.ok().map(|set| set.text).as_deref(), Some(after), "{before}");
    }

    fn url(url: &str) -> NewRegistry {
        NewRegistry { url: Some(url.to_owned()), ..NewRegistry::default() }
    }

    #[test]
    fn registries_are_set() {
        let git = NewRegistry { provider: Some("git".to_owned()), ..NewRegistry::default() };
        let (insecure, lenient, no_strip) = (true, true, true);
        let all = NewRegistry { insecure, lenient, no_strip, ..url("http://x.co/") };
        check_set("", "a.co/", &url("https://b.co/"), "registries:\n  a.co/: https://b.co/\n");
        check_set(
            "# mine\nbase: a.co/\n",
            "localhost:80",
            &url("./hub"),
            "# mine\nbase: a.co/\nregistries:\n  localhost:80/: ./hub\n",
        );
        check_set("registries: {}\n", "a.co/", &git, "registries:\n  a.co/: {provider: git}\n");
        check_set(
            "registries:\n    # the hub\n    a.co/: ./x # here\n\nlink: copy\n",
            "a.co/b",
            &all,
            "registries:\n    # the hub\n    a.co/: ./x # here\n    a.co/b/: {url: http://x.co/, insecure: true, versions: lenient, strip: false}\n\nlink: copy\n",
        );
        check_set(
            "registries:\n  a.co: './x' # here\n",
            "a.co/",
            &url("./y"),
            "registries:\n  a.co: './y' # here\n",
        );
        check_set(
            "registries: {a.co/: ./x, b.co/: {}}\n",
            "b.co/",
            &url("./y"),
            "registries: {a.co/: ./x, b.co/: ./y}\n",
        );
        check_set(
            "registries:\n  a.co/:\n    provider: hub # p\n    # u\n    url: ./x\n",
            "a.co/",
            &all,
            "registries:\n  a.co/:\n    # u\n    url: http://x.co/\n    insecure: true\n    versions: lenient\n    strip: false\n",
        );
    }

    /// Sending a password elsewhere is nothing that setting a place says anything about.
    #[test]
    fn the_host_for_tokens_stays_when_a_registry_is_set() {
        let path = Path::new("/h/config.yaml");
        for (before, after) in [
            (
                "registries: {a.co/: {tokensAt: b.co}}\n",
                "registries: {a.co/: {url: ./y, tokensAt: b.co}}\n",
            ),
            (
                "registries:\n  a.co/:\n    tokensAt: b.co # theirs\n",
                "registries:\n  a.co/:\n    tokensAt: b.co # theirs\n    url: ./y\n",
            ),
        ] {
            let set = set_registry(path, before, "a.co/", &url("./y")).expect("can be set");
            assert_eq!(set.text, after);
        }
    }

    #[test]
    fn registries_are_removed() {
        let check = |before: &str, prefix: &str, after: Option<&str>| {
            let changed = remove_registry(Path::new(PATH), before, prefix).expect("can be removed");
            assert_eq!(changed.as_deref(), after, "{before}");
        };
        check(
            "registries:\n  a.co/: ./x\n  # b\n  b.co/: ./y\n",
            "a.co",
            Some("registries:\n  # b\n  b.co/: ./y\n"),
        );
        check("registries:\n  a.co/: ./x\n", "a.co/", Some("registries: {}\n"));
        check("registries:\n  a.co/: ./x\n", "b.co/", None);
        check("", "b.co/", None);
    }

    #[test]
    fn keys_are_taken_out() {
        let check = |before: &str, key: &str, after: Option<&str>| {
            let changed = unset_key(Path::new(PATH), before, key).expect("can be taken out");
            assert_eq!(changed.as_deref(), after, "{before} {key}");
        };
        let before = "# mine\nlink: copy\noverrides:\n  a/b: ../b # for now\n  a/c: 1.0.0\n";
        check(before, "overrides.a/b", Some("# mine\nlink: copy\noverrides:\n  a/c: 1.0.0\n"));
        check(before, "overrides", Some("# mine\nlink: copy\n"));
        check("overrides: {a/b: ../b}\nlink: copy\n", "overrides.a/b", Some("link: copy\n"));
        check("overrides: {a/b: ../b}\n", "overrides.a/b", Some("overrides: {}\n"));
        for key in ["overrides.a/d", "link.a", "majors"] {
            check(before, key, None);
        }
        check("", "link", None);
    }

    #[test]
    fn what_is_wrong_is_not_written() {
        for (before, prefix, new) in [
            ("", "https://a.co/", url("./x")),
            ("", "a.co/", url("x")),
            ("registries: [a]\n", "a.co/", url("./x")),
            ("base: [\n", "a.co/", url("./x")),
        ] {
            assert!(
                set_registry(Path::new(PATH), before, prefix, &new).is_err(),
                "{before} {prefix}"
            );
        }
        assert!(
            set_registry(Path::new("/h/config.yaml"), "members: []\n", "a.co/", &url("./x"))
                .is_err()
        );
    }
}
