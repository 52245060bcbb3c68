//! Fills a folder with the files of a package, submodules included.
//!
//! Every path goes through [`TreeWriter`], which refuses what is hostile. Files are what the database
//! holds: no filters run, so files that Git LFS keeps elsewhere stay pointers.

use git2::Oid;
use mu_provider::{ErrorKind, Progress, ProviderError, TreeWriter};

use crate::gitmodules::Submodules;
use crate::remote_url::RemoteUrl;
use crate::repositories::Repositories;
use crate::snapshot::{Entry, Kind, Snapshot};
use crate::words::printable;

/// How deep submodules may lie in submodules.
const DEEPEST: usize = 8;
/// How many submodules a package may have: each is a remote that is connected to.
const MOST: usize = 256;

/// An export in progress.
pub(crate) struct Export<'call> {
    repositories: &'call Repositories,
    tree: &'call mut TreeWriter,
    progress: &'call dyn Progress,
    /// The repositories that the current one lies in, with their commits.
    above: Vec<(String, Oid)>,
    submodules: usize,
    pointers: Vec<String>,
}

/// The repository whose files are written.
struct Source<'call> {
    snapshot: Snapshot<'call>,
    submodules: Option<Submodules>,
}

impl<'call> Export<'call> {
    /// Writes into `tree`.
    pub(crate) fn new(
        repositories: &'call Repositories,
        tree: &'call mut TreeWriter,
        progress: &'call dyn Progress,
    ) -> Self {
        Self {
            repositories,
            tree,
            progress,
            above: Vec::new(),
            submodules: 0,
            pointers: Vec::new(),
        }
    }

    /// Writes the files of `folder` in a commit.
    pub(crate) fn run(mut self, snapshot: Snapshot<'_>, folder: &str) -> Result<(), ProviderError> {
        let entries = snapshot.folder(folder)?;
        let mut source = Source { snapshot, submodules: None };
        self.enter(&mut source, entries, folder.as_bytes(), b"")?;
        if let Some(first) = self.pointers.first() {
            let others = match self.pointers.len() - 1 {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            self.progress.warning(&format!(
                "`{first}`{others} of `{}`: only the Git LFS pointer is there, not the file",
                snapshot.repository.remote()
            ));
        }
        Ok(())
    }

    /// Writes a repository's files; `inside` is where they are in it, `at` where they go.
    fn enter(
        &mut self,
        source: &mut Source<'_>,
        entries: Vec<Entry>,
        inside: &[u8],
        at: &[u8],
    ) -> Result<(), ProviderError> {
        let Snapshot { repository, commit, .. } = source.snapshot;
        self.above.push((repository.remote().key(), commit));
        self.folder(source, entries, inside, at)?;
        self.above.pop();
        Ok(())
    }

    fn folder(
        &mut self,
        source: &mut Source<'_>,
        entries: Vec<Entry>,
        inside: &[u8],
        at: &[u8],
    ) -> Result<(), ProviderError> {
        for Entry { kind, name, oid } in entries {
            let path = join(at, &name);
            match kind {
                Kind::File | Kind::Executable => {
                    self.file(&source.snapshot, &path, kind == Kind::Executable, oid)?;
                }
                Kind::Symlink => {
                    let tree = &mut *self.tree;
                    source.snapshot.blob(oid, &mut |target| tree.symlink(&path, target))??;
                }
                Kind::Folder => {
                    // Also bounds how deep and how often this calls itself.
                    self.tree.directory(&path)?;
                    let entries = source.snapshot.tree(oid)?;
                    self.folder(source, entries, &join(inside, &name), &path)?;
                }
                Kind::Commit => self.submodule(source, &join(inside, &name), &path, oid)?,
                Kind::Unknown => {
                    return Err(self.tree.refuse(&path, "of a kind that Git does not have").into());
                }
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        snapshot: &Snapshot<'_>,
        path: &[u8],
        executable: bool,
        oid: Oid,
    ) -> Result<(), ProviderError> {
        let tree = &mut *self.tree;
        let is_pointer = snapshot.blob(oid, &mut |mut data| {
            let is_pointer = is_lfs_pointer(data);
            tree.file(path, executable, &mut data).map(|()| is_pointer)
        })?;
        if is_pointer? {
            self.pointers.push(printable(path));
        }
        Ok(())
    }

    fn submodule(
        &mut self,
        source: &mut Source<'_>,
        inside: &[u8],
        at: &[u8],
        commit: Oid,
    ) -> Result<(), ProviderError> {
        self.tree.directory(at)?;
        let remote = source.snapshot.repository.remote();
        let shown = printable(inside);
        let refuse = |why: String| {
            let text = format!("the submodule `{shown}` of `{remote}` is refused: {why}");
            ProviderError::new(ErrorKind::Integrity, text)
        };
        let submodules = match &mut source.submodules {
            Some(submodules) => submodules,
            slot => slot.insert(read_gitmodules(&source.snapshot)?),
        };
        let Some(url) = submodules.url(inside) else {
            self.progress.warning(&format!(
                "the submodule `{shown}` of `{remote}` stays empty: `.gitmodules` does not say where it comes from"
            ));
            return Ok(());
        };
        self.submodules += 1;
        if self.submodules > MOST {
            return Err(refuse(format!("there are more than {MOST}")));
        }
        if self.above.len() > DEEPEST {
            return Err(refuse(format!("it lies more than {DEEPEST} repositories deep")));
        }
        let url = RemoteUrl::submodule(remote, url)?;
        let repository = self.repositories.at(&url, self.progress);
        if self.above.contains(&(url.key(), commit)) {
            return Err(refuse("it contains itself".to_owned()));
        }
        let written = Snapshot::open(&repository, commit, self.progress).and_then(|snapshot| {
            let entries = snapshot.folder("")?;
            self.enter(&mut Source { snapshot, submodules: None }, entries, b"", at)
        });
        written.map_err(|error| error.hint(format!("it is the submodule `{shown}` of `{remote}`")))
    }
}

fn read_gitmodules(snapshot: &Snapshot<'_>) -> Result<Submodules, ProviderError> {
    let root = snapshot.folder("")?;
    let file = root.iter().find(|entry| entry.name == b".gitmodules" && entry.kind == Kind::File);
    match file {
        Some(file) => snapshot.blob(file.oid, &mut Submodules::parse),
        None => Ok(Submodules::default()),
    }
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, name].join(&b'/') }
}

/// Whether a file's content only says which file Git LFS would put there.
fn is_lfs_pointer(data: &[u8]) -> bool {
    data.len() < 1024 && data.starts_with(b"version https://git-lfs.github.com/spec/")
}
