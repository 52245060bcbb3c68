//! One commit's files, read directly from the database.
//!
//! mu parses objects here, instead of libgit2, to see every name and mode in a tree exactly as written.
//! Nothing is checked out: there are no filters, hooks or configuration.

use std::collections::BTreeSet;

use git2::{ObjectType, Oid};
use mu_provider::{ErrorKind, Progress, ProviderError};

use crate::repository::Repository;
use crate::wire::Ref;
use crate::words::printable;
use crate::{manifest, ref_name};

/// How many folders of a repository are named where one is not there.
const MOST_FOLDERS: usize = 8;

/// The kinds of entries in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Executable,
    Symlink,
    Folder,
    /// A commit of another repository: a submodule.
    Commit,
    /// A mode that Git itself never writes.
    Unknown,
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) name: Vec<u8>,
    pub(crate) oid: Oid,
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Led {
    /// Its path in the repository, without links.
    pub(crate) path: Vec<u8>,
    pub(crate) entry: Entry,
    /// Whether the path ends there; it does not if it goes on in a submodule.
    pub(crate) is_whole: bool,
}

/// Links on the way to a file, as Linux has it.
const MOST_LINKS: usize = 40;
/// The longest target of a link, in bytes.
const LONGEST_TARGET: usize = 4096;

/// The files of one commit.
#[derive(Clone, Copy)]
pub(crate) struct CommitFiles<'call> {
    pub(crate) repository: &'call Repository,
    pub(crate) commit: Oid,
    pub(crate) progress: &'call dyn Progress,
}

impl<'call> CommitFiles<'call> {
    /// The files of `commit`, which is fetched if it is not there.
    pub(crate) fn open(
        repository: &'call Repository,
        commit: Oid,
        progress: &'call dyn Progress,
    ) -> Result<Self, ProviderError> {
        repository.ensure(commit, progress)?;
        Ok(Self { repository, commit, progress })
    }

    /// The entries of the folder at `path`, `""` for the root, and its path without links.
    pub(crate) fn folder(&self, path: &str) -> Result<(Vec<u8>, Vec<Entry>), ProviderError> {
        match self.follow(path.as_bytes())? {
            Some(Led { path, entry, is_whole: true }) if entry.kind == Kind::Folder => {
                Ok((path, self.tree(entry.oid)?))
            }
            Some(Led { entry, .. }) if entry.kind == Kind::Commit => {
                let name = printable(&entry.name);
                Err(self.no_folder(path).hint(format!(
                    "`{name}` is a submodule: name the repository that it comes from"
                )))
            }
            _ => {
                let error = self.no_folder(path);
                Err(match self.folders_beside(path).ok().filter(|folders| !folders.is_empty()) {
                    Some(folders) => error.hint(format!("there are {}", folders.join(", "))),
                    None => error,
                })
            }
        }
    }

    /// Some folders that are where a path could go on that leads nowhere, in back-ticks.
    fn folders_beside(&self, path: &str) -> Result<Vec<String>, ProviderError> {
        const MOST: usize = 10;
        let mut above = path;
        while let Some((rest, _)) =
            above.rsplit_once('/').or((!above.is_empty()).then_some(("", "")))
        {
            above = rest;
            let Some(Led { entry, is_whole: true, .. }) = self.follow(above.as_bytes())? else {
                continue;
            };
            if entry.kind != Kind::Folder {
                continue;
            }
            let entries = self.tree(entry.oid)?.into_iter();
            let folders = entries.filter(|entry| entry.kind == Kind::Folder);
            let slash = if above.is_empty() { "" } else { "/" };
            let shown = folders.map(|entry| format!("`{above}{slash}{}`", printable(&entry.name)));
            return Ok(shown.take(MOST).collect());
        }
        Ok(Vec::new())
    }

    /// What `path` leads to, through the links in this commit; `None` if it leads nowhere, or out of the repository.
    pub(crate) fn follow(&self, path: &[u8]) -> Result<Option<Led>, ProviderError> {
        // `open` has the parts that are still to follow, the next one last. A link puts the parts of its target there, so links in
        // its folders are followed, too. `names` and `trees` say where that has led to; the root has a tree and no name. It ends:
        // each round takes a part away, and only so many links may add some.
        let mut open: Vec<Vec<u8>> = parts_from_end(path).collect();
        let (mut names, mut trees) = (Vec::new(), vec![self.root()?]);
        let mut links = 0;
        while let Some(name) = open.pop() {
            match &*name {
                b"" | b"." => continue,
                b".." if names.pop().is_some() => {
                    trees.pop();
                    continue;
                }
                b".." => return Ok(None),
                _ => {}
            }
            let Some(tree) = trees.last() else { return Ok(None) };
            let entries = self.tree(*tree)?;
            let Some(entry) = entries.into_iter().find(|entry| entry.name == name) else {
                return Ok(None);
            };
            match entry.kind {
                Kind::Folder => {
                    names.push(name);
                    trees.push(entry.oid);
                }
                Kind::Symlink => {
                    links += 1;
                    let target = self.target(entry.oid)?;
                    if links > MOST_LINKS || target.is_empty() || target.starts_with(b"/") {
                        return Ok(None);
                    }
                    open.extend(parts_from_end(&target));
                }
                _ => {
                    names.push(name);
                    let is_whole = open.is_empty();
                    let is_found = is_whole || entry.kind == Kind::Commit;
                    return Ok(is_found.then(|| Led { path: names.join(&b'/'), entry, is_whole }));
                }
            }
        }
        let Some(oid) = trees.pop() else { return Ok(None) };
        let name = names.last().cloned().unwrap_or_default();
        let entry = Entry { kind: Kind::Folder, name, oid };
        Ok(Some(Led { path: names.join(&b'/'), entry, is_whole: true }))
    }

    /// The target of a link; empty if it is longer than any system allows.
    pub(crate) fn target(&self, oid: Oid) -> Result<Vec<u8>, ProviderError> {
        self.blob(oid, &mut |data| {
            if data.len() > LONGEST_TARGET { Vec::new() } else { data.to_vec() }
        })
    }

    /// The folder of the package that `path` names: the folder with that path, or else that of the KCL module with that name, which
    /// `kcl.mod` names without its folder.
    pub(crate) fn package_folder(&self, path: &str) -> Result<String, ProviderError> {
        match self.folder(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                manifest::find_module(self, path)?.ok_or(error)
            }
            found => found.map(|_| path.to_owned()),
        }
    }

    fn no_folder(&self, path: &str) -> ProviderError {
        let remote = &self.repository.remote;
        let text = format!("`{remote}` has no folder `{path}` at commit {}", self.commit);
        let error = ProviderError::new(ErrorKind::NotFound, text);
        let listed = self.repository.known_advertisement();
        let tags = listed.iter().flat_map(|listed| &listed.refs).filter_map(Ref::tag);
        let folders = tags.filter_map(|tag| {
            let (folder, version) = tag.rsplit_once('/')?;
            ref_name::parse_version(version, false).map(|_| folder)
        });
        let folders: BTreeSet<&str> = folders.collect();
        // A tag may speak of a folder that is not in this commit.
        let is_there = |folder: &&str| {
            let found = self.follow(folder.as_bytes()).ok().flatten();
            found.is_some_and(|led| led.is_whole && led.entry.kind == Kind::Folder)
        };
        let folders = folders.into_iter().filter(is_there).take(MOST_FOLDERS);
        let folders: Vec<String> =
            folders.map(|folder| format!("`{}`", printable(folder.as_bytes()))).collect();
        match folders.is_empty() {
            true => error,
            false => {
                error.hint(format!("folders of it that have versions: {}", folders.join(", ")))
            }
        }
    }

    /// The entries of a tree.
    pub(crate) fn tree(&self, oid: Oid) -> Result<Vec<Entry>, ProviderError> {
        self.read(oid, ObjectType::Tree, &mut parse_tree)?.ok_or_else(|| self.nonsense(oid))
    }

    /// Hands out the content of a file.
    pub(crate) fn blob<T>(
        &self,
        oid: Oid,
        with: &mut dyn FnMut(&[u8]) -> T,
    ) -> Result<T, ProviderError> {
        self.read(oid, ObjectType::Blob, with)
    }

    fn root(&self) -> Result<Oid, ProviderError> {
        let tree = self.read(self.commit, ObjectType::Commit, &mut parse_commit)?;
        tree.ok_or_else(|| self.nonsense(self.commit))
    }

    fn read<T>(
        &self,
        oid: Oid,
        kind: ObjectType,
        with: &mut dyn FnMut(&[u8]) -> T,
    ) -> Result<T, ProviderError> {
        self.repository.read(self.commit, oid, kind, self.progress, with)
    }

    fn nonsense(&self, oid: Oid) -> ProviderError {
        let remote = &self.repository.remote;
        let text = format!("the object {oid} of `{remote}` is not what Git writes");
        ProviderError::new(ErrorKind::Integrity, text)
    }
}

/// The parts of a path, the last one first.
fn parts_from_end(path: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec)
}

/// The tree of a commit.
fn parse_commit(data: &[u8]) -> Option<Oid> {
    let line = data.split(|byte| *byte == b'\n').next()?;
    Oid::from_str(std::str::from_utf8(line.strip_prefix(b"tree ")?).ok()?).ok()
}

/// The data before and after the first `byte`.
fn split_at_byte(data: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let (before, rest) = data.split_at_checked(data.iter().position(|one| *one == byte)?)?;
    Some((before, rest.split_first()?.1))
}

/// The entries of a tree: a sequence of `MODE NAME`, a zero byte, and 20 bytes of object name.
fn parse_tree(mut data: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !data.is_empty() {
        let (mode, rest) = split_at_byte(data, b' ')?;
        let (name, rest) = split_at_byte(rest, 0)?;
        let (oid, rest) = rest.split_at_checked(20)?;
        let entry =
            Entry { kind: kind(mode), name: name.to_vec(), oid: Oid::from_bytes(oid).ok()? };
        entries.push(entry);
        data = rest;
    }
    Some(entries)
}

fn kind(mode: &[u8]) -> Kind {
    match mode {
        b"40000" | b"040000" => Kind::Folder,
        b"120000" => Kind::Symlink,
        b"160000" => Kind::Commit,
        // The group's permissions, which very old versions of Git wrote, do not count.
        [b'1', b'0', b'0', owner @ b'0'..=b'7', _, _] => {
            if (owner - b'0') & 1 == 1 {
                Kind::Executable
            } else {
                Kind::File
            }
        }
        _ => Kind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_trees_and_refuses_what_is_cut() {
        let oid = [7; 20];
        let mut data = Vec::new();
        for (mode, name) in [("100644", "a"), ("100755", "b"), ("40000", "c"), ("100664", "d")] {
            data.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            data.extend_from_slice(&oid);
        }
        let entries = parse_tree(&data).expect("is a tree");
        let kinds: Vec<Kind> = entries.iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [Kind::File, Kind::Executable, Kind::Folder, Kind::File]);
        assert_eq!(entries[1].name, b"b");
        assert_eq!(parse_tree(&data[..data.len() - 1]), None);
        assert_eq!(parse_tree(b"100644"), None);
        assert_eq!(parse_tree(b""), Some(Vec::new()));
    }

    #[test]
    fn knows_gits_modes_alone() {
        for (mode, expected) in [
            ("120000", Kind::Symlink),
            ("160000", Kind::Commit),
            ("20644", Kind::Unknown),
            ("60000", Kind::Unknown),
            ("10644", Kind::Unknown),
            ("", Kind::Unknown),
        ] {
            assert_eq!(kind(mode.as_bytes()), expected, "{mode}");
        }
    }

    #[test]
    fn reads_the_tree_of_a_commit() {
        let hex = "1895753f53a63c055e7cae81ebe4ea5d5805584f";
        let commit = format!("tree {hex}\nauthor …\n");
        assert_eq!(
            parse_commit(commit.as_bytes()).map(|oid| oid.to_string()).as_deref(),
            Some(hex)
        );
        assert_eq!(parse_commit(b"parent x\n"), None);
    }
}
