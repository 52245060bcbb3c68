//! One commit's files, read directly from the database.
//!
//! mu parses objects here, instead of libgit2, to see every name and mode in a tree exactly as written.
//! Nothing is checked out: there are no filters, hooks or configuration.

use git2::{ObjectType, Oid};
use mu_provider::{ErrorKind, Progress, ProviderError};

use crate::repository::Repository;

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

/// The files of one commit.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot<'call> {
    pub(crate) repository: &'call Repository,
    pub(crate) commit: Oid,
    pub(crate) progress: &'call dyn Progress,
}

impl<'call> Snapshot<'call> {
    /// The files of `commit`, which is fetched if it is not there.
    pub(crate) fn open(
        repository: &'call Repository,
        commit: Oid,
        progress: &'call dyn Progress,
    ) -> Result<Self, ProviderError> {
        repository.ensure(commit, progress)?;
        Ok(Self { repository, commit, progress })
    }

    /// The entries of the folder at `path`, `""` for the root.
    pub(crate) fn folder(&self, path: &str) -> Result<Vec<Entry>, ProviderError> {
        let mut entries = self.tree(self.root()?)?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let entry = entries.iter().find(|entry| entry.name == name.as_bytes());
            entries = match entry {
                Some(Entry { kind: Kind::Folder, oid, .. }) => self.tree(*oid)?,
                Some(Entry { kind: Kind::Commit, .. }) => {
                    return Err(self.no_folder(path).hint(format!(
                        "`{name}` is a submodule: name the repository that it comes from"
                    )));
                }
                _ => return Err(self.no_folder(path)),
            };
        }
        Ok(entries)
    }

    fn no_folder(&self, path: &str) -> ProviderError {
        let remote = &self.repository.remote;
        let text = format!("`{remote}` has no folder `{path}` at commit {}", self.commit);
        ProviderError::new(ErrorKind::NotFound, text)
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
