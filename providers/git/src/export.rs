//! Fills a folder with the files of a package, submodules included.
//!
//! A link that leads to something else in the repository becomes what is there, at the same commit: one repository is one
//! author's. Every path goes through [`TreeWriter`], which refuses hostile ones. Files are written as they are in the database:
//! no filters run, so files in Git LFS stay pointers.
//!
//! If files are many, one thread reads them from the database, ahead of the one that writes them. Reading means decompressing and
//! comparing with the object's name; writing means hashing and creating files. Both take about the same time.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};

use git2::Oid;
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, InnerPath, Progress, ProviderError, TreeError, TreeWriter, and_more};

use crate::config_text::Submodules;
use crate::remote_url::RemoteUrl;
use crate::repositories::Repositories;
use crate::snapshot::{CommitFiles, Entry, Kind, Led};
use crate::words::printable;

/// How deep submodules may lie in submodules.
const DEEPEST: usize = 8;
/// How many submodules a package may have: each needs a connection to a remote.
const MOST: usize = 256;
/// How many submodules a warning names.
const NAMED: usize = 3;

/// An export in progress.
pub(crate) struct RunningExport<'call> {
    repositories: &'call Repositories,
    tree: &'call mut TreeWriter,
    progress: &'call dyn Progress,
    /// The repositories that the current one lies in, with their commits.
    above: Vec<(String, Oid)>,
    submodules: usize,
    /// Folders, files and links that were met.
    entries: usize,
}

/// The repository whose files are written.
struct Source<'call> {
    snapshot: CommitFiles<'call>,
    submodules: Option<Submodules>,
    /// Files that are still to be written.
    files: Vec<File>,
    /// The first submodules without a known URL, and how many there are.
    lost: (Vec<String>, usize),
    /// The folders around what is read, in the repository.
    around: Vec<Vec<u8>>,
    /// How many links have led to it.
    linked: usize,
}

impl<'call> Source<'call> {
    fn new(snapshot: CommitFiles<'call>) -> Self {
        Self {
            snapshot,
            submodules: None,
            files: Vec::new(),
            lost: (Vec::new(), 0),
            around: Vec::new(),
            linked: 0,
        }
    }
}

impl<'call> RunningExport<'call> {
    /// Writes into `tree`.
    pub(crate) fn new(
        repositories: &'call Repositories,
        tree: &'call mut TreeWriter,
        progress: &'call dyn Progress,
    ) -> Self {
        Self { repositories, tree, progress, above: Vec::new(), submodules: 0, entries: 0 }
    }

    /// Writes the files of `folder` in a commit.
    pub(crate) fn run(
        mut self,
        snapshot: CommitFiles<'_>,
        folder: &str,
    ) -> Result<(), ProviderError> {
        let (inside, entries) = snapshot.folder(folder)?;
        let remote = snapshot.repository.remote.clone();
        self.enter(&mut Source::new(snapshot), entries, &inside, b"")?;
        self.tree.tell_pointers(&remote, self.progress);
        Ok(())
    }

    /// Writes a repository's files; `inside` is their folder in it, and `at` the place where they go.
    fn enter(
        &mut self,
        source: &mut Source<'_>,
        entries: Vec<Entry>,
        inside: &[u8],
        at: &[u8],
    ) -> Result<(), ProviderError> {
        let CommitFiles { repository, commit, .. } = source.snapshot;
        self.above.push((repository.remote.key(), commit));
        // Nothing is written before everything is known: a few bytes can name a tree many times.
        self.folder(source, entries, inside, at)?;
        self.write(source)?;
        let (lost, count) = &source.lost;
        if *count > 0 {
            self.progress.warning(&format!(
                "submodules of `{}` stay empty, because `.gitmodules` does not say where they come from: {}{}",
                repository.remote,
                lost.join(", "),
                and_more(count - lost.len())
            ));
        }
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
        source.around.push(inside.to_vec());
        for Entry { kind, name, oid } in entries {
            self.entries += 1;
            let path = join(at, &name);
            self.tree.foresee(self.entries, &path)?;
            match kind {
                Kind::File | Kind::Executable => source.files.push(File { path, kind, oid }),
                Kind::Symlink => self.link(source, &join(inside, &name), path, oid)?,
                Kind::Folder => {
                    // This also limits how deep and how often this function calls itself.
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
        source.around.pop();
        Ok(())
    }

    /// Writes a link, or what it leads to, if that is in the repository and not in the package.
    fn link(
        &mut self,
        source: &mut Source<'_>,
        inside: &[u8],
        path: Vec<u8>,
        oid: Oid,
    ) -> Result<(), ProviderError> {
        let as_it_is = |source: &mut Source<'_>, path| {
            source.files.push(File { path, kind: Kind::Symlink, oid });
            Ok(())
        };
        // What is written for a link is elsewhere than in the repository, so links there would lead elsewhere, too.
        if source.linked == 0 {
            let target = source.snapshot.target(oid)?;
            let target = std::str::from_utf8(&target).ok();
            let own = std::str::from_utf8(&path).ok().and_then(|path| InnerPath::parse(path).ok());
            if own.zip(target).is_some_and(|(own, target)| own.may_lead_to(target)) {
                return as_it_is(source, path);
            }
        }
        let Some(Led { path: real, entry, is_whole: true }) = source.snapshot.follow(inside)?
        else {
            return as_it_is(source, path);
        };
        match entry.kind {
            Kind::File | Kind::Executable => {
                source.files.push(File { path, kind: entry.kind, oid: entry.oid });
            }
            Kind::Folder if source.around.contains(&real) => {
                return Err(self.tree.refuse(&path, "a link to a folder that it is in").into());
            }
            Kind::Folder => {
                self.tree.directory(&path)?;
                let entries = source.snapshot.tree(entry.oid)?;
                source.linked += 1;
                self.folder(source, entries, &real, &path)?;
                source.linked -= 1;
            }
            Kind::Commit => self.submodule(source, &real, &path, entry.oid)?,
            Kind::Symlink | Kind::Unknown => return as_it_is(source, path),
        }
        Ok(())
    }

    /// Writes the files that were collected.
    fn write(&mut self, source: &mut Source<'_>) -> Result<(), ProviderError> {
        let files = std::mem::take(&mut source.files);
        write(&source.snapshot, &files, self.tree)
    }

    fn submodule(
        &mut self,
        source: &mut Source<'_>,
        inside: &[u8],
        at: &[u8],
        commit: Oid,
    ) -> Result<(), ProviderError> {
        self.tree.directory(at)?;
        let remote = &source.snapshot.repository.remote;
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
            let (named, count) = &mut source.lost;
            *count += 1;
            if named.len() < NAMED {
                named.push(format!("`{shown}`"));
            }
            return Ok(());
        };
        // Three ways in which submodules could go on for ever: very many beside each other, very deep ones, and one that has itself
        // inside. Whoever writes `.gitmodules` need not mean well.
        self.submodules += 1;
        if self.submodules > MOST {
            return Err(refuse(format!("there are more than {MOST}")));
        }
        if self.above.len() > DEEPEST {
            return Err(refuse(format!("it is more than {DEEPEST} repositories deep")));
        }
        let url = RemoteUrl::submodule(remote, url)?;
        let repository = self.repositories.at(&url, self.progress);
        if self.above.contains(&(url.key(), commit)) {
            return Err(refuse("it contains itself".to_owned()));
        }
        let written = CommitFiles::open(&repository, commit, self.progress).and_then(|snapshot| {
            let (_, entries) = snapshot.folder("")?;
            self.enter(&mut Source::new(snapshot), entries, b"", at)
        });
        written.map_err(|error| error.hint(format!("it is the submodule `{shown}` of `{remote}`")))
    }
}

fn read_gitmodules(snapshot: &CommitFiles<'_>) -> Result<Submodules, ProviderError> {
    let (_, root) = snapshot.folder("")?;
    let file = root.iter().find(|entry| entry.name == b".gitmodules" && entry.kind == Kind::File);
    match file {
        Some(file) => snapshot.blob(file.oid, &mut Submodules::parse),
        None => Ok(Submodules::default()),
    }
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, name].join(&b'/') }
}

/// A file or link that is to be written.
#[derive(Debug)]
struct File {
    path: Vec<u8>,
    kind: Kind,
    oid: Oid,
}

/// Below this number another thread is not worth its while.
const FEW: usize = 16;
/// How many bytes may be read ahead. A larger file is read only while nothing else is in memory.
const AHEAD: u64 = 8 << 20;

/// Writes `files`.
fn write(
    snapshot: &CommitFiles<'_>,
    files: &[File],
    tree: &mut TreeWriter,
) -> Result<(), ProviderError> {
    let mut write = |file: &File, data: &[u8]| Ok(write_one(file, data, tree)?);
    if files.len() < FEW {
        for file in files {
            snapshot.blob(file.oid, &mut |data| write(file, data))??;
        }
        return Ok(());
    }
    let room = Room::default();
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(files.len().min(1 << 10));
        let reader = std::thread::Builder::new().name("mu-git-read".to_owned());
        let reading = reader.spawn_scoped(scope, || read_ahead(snapshot, files, &room, sender));
        if reading.is_err() {
            // Without a second thread it only takes longer.
            return files
                .iter()
                .try_for_each(|file| snapshot.blob(file.oid, &mut |data| write(file, data))?);
        }
        let written = write_behind(files, &room, &receiver, write);
        // The reader may wait for room that nobody will free.
        drop(receiver);
        room.close();
        written
    })
}

type Content = Result<Vec<u8>, ProviderError>;

fn read_ahead(
    snapshot: &CommitFiles<'_>,
    files: &[File],
    room: &Room,
    sender: SyncSender<Content>,
) {
    for file in files {
        room.take(snapshot.repository.database.size(file.oid));
        let content = snapshot.blob(file.oid, &mut |data| data.to_vec());
        let failed = content.is_err();
        if sender.send(content).is_err() || failed {
            return;
        }
    }
}

fn write_behind(
    files: &[File],
    room: &Room,
    receiver: &Receiver<Content>,
    mut write: impl FnMut(&File, &[u8]) -> Result<(), ProviderError>,
) -> Result<(), ProviderError> {
    for (file, content) in files.iter().zip(receiver) {
        let content = content?;
        write(file, &content)?;
        room.give_back(content.len() as u64);
    }
    Ok(())
}

/// Writes one file.
fn write_one(file: &File, mut data: &[u8], tree: &mut TreeWriter) -> Result<(), TreeError> {
    if file.kind == Kind::Symlink {
        return tree.symlink(&file.path, data);
    }
    tree.file(&file.path, file.kind == Kind::Executable, &mut data)
}

/// Limits the memory for what was read and not yet written.
#[derive(Default)]
struct Room {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    taken: u64,
    closed: bool,
}

impl Room {
    /// Waits until there is room for `bytes`, or until nothing else is in memory.
    fn take(&self, bytes: u64) {
        let state = lock(&self.state);
        let full = |state: &mut State| {
            !state.closed && state.taken > 0 && state.taken.saturating_add(bytes) > AHEAD
        };
        let state = self.freed.wait_while(state, full);
        state.unwrap_or_else(PoisonError::into_inner).taken += bytes;
    }

    fn give_back(&self, bytes: u64) {
        self.change(|state| state.taken = state.taken.saturating_sub(bytes));
    }

    /// Releases everybody who waits: nothing is written any more.
    fn close(&self) {
        self.change(|state| state.closed = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
        self.freed.notify_all();
    }
}
