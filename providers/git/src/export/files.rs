//! Writes many files: one thread reads them from the database, ahead of the one that writes them.
//!
//! Reading means decompressing and comparing with the object's name; writing means hashing and creating
//! files. Both take about the same time.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};

use git2::Oid;
use mu_provider::{ProviderError, TreeError, TreeWriter};

use crate::snapshot::{CommitFiles, Kind};
use mu_provider::threads::lock;

/// A file or link that is to be written.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: Vec<u8>,
    pub(super) kind: Kind,
    pub(super) oid: Oid,
}

/// Below this number another thread is not worth its while.
const FEW: usize = 16;
/// How many bytes may be read ahead. A larger file is read only while nothing else is in memory.
const AHEAD: u64 = 8 << 20;

/// Writes `files`, and returns those that are only pointers of Git LFS.
pub(super) fn write<'files>(
    snapshot: &CommitFiles<'_>,
    files: &'files [File],
    tree: &mut TreeWriter,
) -> Result<Vec<&'files File>, ProviderError> {
    let mut pointers = Vec::new();
    let mut write = |file: &'files File, data: &[u8]| {
        if write_one(file, data, tree)? {
            pointers.push(file);
        }
        Ok::<(), ProviderError>(())
    };
    if files.len() < FEW {
        for file in files {
            snapshot.blob(file.oid, &mut |data| write(file, data))??;
        }
        return Ok(pointers);
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
    })?;
    Ok(pointers)
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

fn write_behind<'files>(
    files: &'files [File],
    room: &Room,
    receiver: &Receiver<Content>,
    mut write: impl FnMut(&'files File, &[u8]) -> Result<(), ProviderError>,
) -> Result<(), ProviderError> {
    for (file, content) in files.iter().zip(receiver) {
        let content = content?;
        write(file, &content)?;
        room.give_back(content.len() as u64);
    }
    Ok(())
}

/// Writes one file; whether it is only a pointer of Git LFS.
fn write_one(file: &File, mut data: &[u8], tree: &mut TreeWriter) -> Result<bool, TreeError> {
    if file.kind == Kind::Symlink {
        return tree.symlink(&file.path, data).map(|()| false);
    }
    let is_pointer =
        data.len() < 1024 && data.starts_with(b"version https://git-lfs.github.com/spec/");
    tree.file(&file.path, file.kind == Kind::Executable, &mut data).map(|()| is_pointer)
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
