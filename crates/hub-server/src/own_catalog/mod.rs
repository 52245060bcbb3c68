//! The catalog of a hub that is too large for one: a file of the server's own, in its state folder. A search reads all of it, and so
//! does a page that says who depends on a package.
//!
//! It follows the hub's log: lines of what has changed are appended, and the last line of a package is the one that counts. When they
//! are many, the file is written again without the others.
//!
//! `file.rs` has its layout. If it cannot be read to its end under a running server, that request fails, and the next one reads the file again as
//! after a restart.

mod file;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use mu_hub::files::{Files, in_its_own_thread};
use mu_hub::lines::{Lines, PublishedLine};
use mu_hub::root::Root;
use mu_hub::{HubError, derived, log};
use serde::{Deserialize, Serialize};

pub(crate) use self::file::{KnownPackages, name_in};

use self::file::{FilePlace, NewFile, Package};

/// How long a request waits for changes. After that, it gets what was known before.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many changes are read before a mark says that they are there.
const CHANGES_AT_ONCE: u64 = 10_000;

/// Index files that are read at once.
const AT_ONCE: usize = 32;

/// What the newest version of a package says about others.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Brief {
    /// References, as they were written.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) dependencies: Box<[Box<str>]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) replaces: Box<[Box<str>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moved_to: Option<Box<str>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) requires: Box<[Box<str>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<Timestamp>,
}

impl Brief {
    /// What a line says about other packages.
    pub(crate) fn of(line: &PublishedLine) -> Self {
        Self {
            dependencies: line.references().map(Into::into).collect(),
            replaces: line.texts("replaces").map(Into::into).collect(),
            moved_to: line.text("movedTo").map(Into::into),
            requires: line.texts("requires").map(Into::into).collect(),
            published: line.text("published").and_then(|moment| moment.parse().ok()),
        }
    }
}

/// Takes an error that no request is answered with.
pub(crate) type ReportError = Box<dyn Fn(&HubError) + Send + Sync>;

/// The catalog that a server keeps of one hub.
pub(crate) struct OwnCatalog {
    /// Where its file is.
    folder: PathBuf,
    /// What users call the hub.
    hub: Arc<str>,
    /// Is told what cannot be read of the hub, or kept of it, where no request fails by that.
    report: ReportError,
    known: RwLock<Option<KnownPackages>>,
    /// Held while the file is written. It has its place once it was needed.
    writing: tokio::sync::Mutex<Option<FilePlace>>,
    /// How many packages were read of a file that is being made.
    made: AtomicU64,
}

impl OwnCatalog {
    /// The catalog of the hub that users call `hub`, below `folder`, of which nothing was read yet.
    pub(crate) fn new(folder: PathBuf, hub: Arc<str>, report: ReportError) -> Self {
        let (known, writing, made) = Default::default();
        Self { folder, hub, report, known, writing, made }
    }

    /// What is known without waiting.
    pub(crate) fn known_packages(&self) -> Option<KnownPackages> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        known.filter(|known| !known.has_damage())
    }

    /// How many packages were read so far, while nothing is known.
    pub(crate) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// What is known, after a moment of waiting for the changes since the last time; `None` while the file is being made.
    ///
    /// # Errors
    ///
    /// When nothing is known, because the hub cannot be read, or the file not be written.
    pub(crate) async fn follow_log(
        self: &Arc<Self>,
        files: &Files,
        root: &Root,
    ) -> Result<Option<KnownPackages>, HubError> {
        if self.known_packages().is_none() && self.writing.try_lock().is_err() {
            // Another request has begun to make it.
            if tokio::time::timeout(PATIENCE, self.writing.lock()).await.is_err() {
                return Ok(None);
            }
        }
        if !self.is_current(root) {
            let (own, files, root) = (Arc::clone(self), files.clone(), root.clone());
            let update = async move { own.update(&files, &root).await };
            self.wait_a_moment(update, || self.known_packages().is_some()).await?;
        }
        Ok(self.known_packages())
    }

    /// Reports an error that no request is answered with.
    pub(crate) fn report_error(&self, error: &HubError) {
        (self.report)(error);
    }

    /// Waits a moment for `update`, which brings in what has changed. It goes on even if the request stops waiting.
    ///
    /// # Errors
    ///
    /// When it fails, and `is_known` says that nothing is known from before. Otherwise that is better than no answer, and the error is
    /// reported.
    pub(crate) async fn wait_a_moment(
        self: &Arc<Self>,
        update: impl Future<Output = Result<(), HubError>> + Send + 'static,
        is_known: impl Fn() -> bool,
    ) -> Result<(), HubError> {
        let (sender, updated) = tokio::sync::oneshot::channel();
        let own = Arc::clone(self);
        tokio::spawn(async move {
            // If nobody waits any more, the error comes back.
            if let Err(Err(error)) = sender.send(update.await) {
                own.report_error(&error);
            }
        });
        let Ok(updated) = tokio::time::timeout(PATIENCE, updated).await else { return Ok(()) };
        let action = "read what has changed in the hub".to_owned();
        let failed = |error| HubError::Io { action, source: io::Error::other(error) };
        match updated.map_err(failed).flatten() {
            Err(error) if is_known() => {
                self.report_error(&error);
                Ok(())
            }
            updated => updated,
        }
    }

    /// The index of a package; `None` if it is broken, which is reported: it must not stop the others.
    pub(crate) async fn index_unless_broken(
        &self,
        files: &Files,
        root: &Root,
        name: &str,
    ) -> Result<Option<Lines>, HubError> {
        match derived::index(files, root, name).await {
            Err(error @ HubError::Broken { .. }) => {
                self.report_error(&error);
                Ok(None)
            }
            lines => lines.map(Some),
        }
    }

    fn is_current(&self, root: &Root) -> bool {
        let generation = self.known_packages().map(|known| known.mark.generation);
        generation.is_some_and(|known| known == root.generation())
    }

    fn put(&self, contents: KnownPackages) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(contents);
    }

    async fn update(&self, files: &Files, root: &Root) -> Result<(), HubError> {
        let mut writing = self.writing.lock().await;
        if self.is_current(root) {
            return Ok(());
        }
        let path = match &*writing {
            Some(place) => Arc::clone(&place.path),
            None => {
                let (folder, hub) = (self.folder.clone(), Arc::clone(&self.hub));
                let place =
                    in_its_own_thread(move || FilePlace::lock_place(&folder, &hub)).await??;
                Arc::clone(&writing.insert(place).path)
            }
        };
        let known = match self.known_packages() {
            Some(known) => Some(known),
            None => {
                let (hub, path) = (Arc::clone(&self.hub), Arc::clone(&path));
                in_its_own_thread(move || KnownPackages::read_left_file(path, &hub)).await??
            }
        };
        let mut contents = match known {
            Some(known) if known.fits_log(files, root).await? => known,
            _ => self.make(files, root, &path).await?,
        };
        while contents.mark.generation < root.generation() {
            let next = root.generation().min(contents.mark.generation + CHANGES_AT_ONCE);
            contents = match log::names(files, root, contents.mark.generation, next).await? {
                Some(changed) => self.append_changes(contents, files, root, changed, next).await?,
                None => self.make(files, root, &path).await?,
            };
            if contents.is_worth_rewriting() {
                let hub = Arc::clone(&self.hub);
                contents = in_its_own_thread(move || contents.rewrite_file(&hub)).await??;
            }
            self.put(contents.clone());
        }
        self.put(contents);
        Ok(())
    }

    /// Makes the file by the index files of all packages.
    async fn make(
        &self,
        files: &Files,
        root: &Root,
        path: &Arc<Path>,
    ) -> Result<KnownPackages, HubError> {
        let (hub, path) = (Arc::clone(&self.hub), Arc::clone(path));
        let mut new = in_its_own_thread(move || NewFile::begin_file(&hub, path)).await??;
        // The generation was read before, so all that is read now has at least its changes.
        let generation = root.generation();
        let log = log::digest_up_to(files, root, generation).await?.unwrap_or_default();
        self.made.store(0, Ordering::Relaxed);
        let mut reading = derived::package_names(files, root)?
            .map_ok(|name| async move { self.read_package(files, root, name).await })
            .try_buffered(AT_ONCE);
        while let Some(read) = reading.try_next().await? {
            let Some(Package { line: Some(line), .. }) = read else { continue };
            self.made.fetch_add(1, Ordering::Relaxed);
            new.push_package(line.as_bytes());
            if new.has_a_piece() {
                new = in_its_own_thread(move || new.write_piece()).await??;
            }
        }
        Ok(in_its_own_thread(move || new.end_file(generation, log)).await??)
    }

    /// Appends what the index says now of some packages, as of a generation.
    async fn append_changes(
        &self,
        contents: KnownPackages,
        files: &Files,
        root: &Root,
        names: Vec<String>,
        generation: u64,
    ) -> Result<KnownPackages, HubError> {
        let reading = futures_util::stream::iter(names)
            .map(|name| async move { self.read_package(files, root, name).await })
            .buffered(AT_ONCE);
        let read: Vec<Package> =
            reading.try_filter_map(|read| std::future::ready(Ok(read))).try_collect().await?;
        let log = log::digest_up_to(files, root, generation).await?.unwrap_or_default();
        let append = move || contents.append_packages(read, generation, log);
        Ok(in_its_own_thread(append).await??)
    }

    /// Reads a package; `None` if its index file is broken.
    async fn read_package(
        &self,
        files: &Files,
        root: &Root,
        name: String,
    ) -> Result<Option<Package>, HubError> {
        let lines = self.index_unless_broken(files, root, &name).await?;
        Ok(lines.map(|lines| Package { line: line_of(&lines), name }))
    }
}

/// The line of a package; `None` if it has no versions.
fn line_of(lines: &Lines) -> Option<String> {
    let brief = Brief::of(lines.latest()?);
    let brief = serde_json::to_string(&brief).expect("texts can be printed");
    // JSON has no tab inside of a line.
    Some(format!("{}\t{brief}\n", derived::catalog_line_text(lines)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs as files;

    use mu_hub::Place;
    use mu_provider::catalog::CatalogLine;
    use tempfile::TempDir;
    use tokio::runtime::Runtime;

    use serde_json::json;

    use super::file::FEWEST_SUPERSEDED;
    use super::*;

    /// A hub that is too large for a catalog, as it says, and a server of it.
    struct Case {
        hub: TempDir,
        state: TempDir,
        runtime: Runtime,
        /// The lines of its log.
        log: Vec<String>,
    }

    impl Case {
        /// A hub with so many packages, `n0` and so on, that are all described as old.
        fn new(packages: usize) -> Self {
            let folder = || tempfile::tempdir().expect("there is room");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("starts");
            let mut case = Self { hub: folder(), state: folder(), runtime, log: Vec::new() };
            let names: Vec<String> = (0..packages).map(|number| format!("n{number}")).collect();
            names.iter().for_each(|name| case.edit(name, "old"));
            case.note(names);
            case
        }

        fn write(&self, path: &str, text: impl AsRef<[u8]>) {
            let path = self.hub.path().join(path);
            files::create_dir_all(path.parent().expect("is in a folder")).expect("is ours");
            files::write(path, text).expect("is ours");
        }

        /// Changes an index file by hand.
        fn edit(&self, name: &str, description: &str) {
            let line = json!({ "name": name, "version": "1.0.0", "description": description });
            self.write(&format!("index/{name}.jsonl"), format!("{line}\n"));
        }

        /// Adds changes to the log, and counts them.
        fn note(&mut self, names: impl IntoIterator<Item = String>) {
            self.log.extend(names);
            for (number, lines) in self.log.chunks(1_000).enumerate() {
                self.write(&format!("log/{number:06}.txt"), lines.join("\n") + "\n");
            }
            let file = json!({
                "hub": 1, "log": "log/", "generation": self.log.len(),
                "catalog": { "generation": 1, "tooLarge": true },
            });
            self.write("hub.json", file.to_string());
        }

        fn change(&mut self, name: &str, description: &str) {
            self.edit(name, description);
            self.note([name.to_owned()]);
        }

        fn server(&self) -> Arc<OwnCatalog> {
            let hub = self.hub.path().to_string_lossy().into();
            let report = Box::new(|error: &HubError| panic!("{error}"));
            Arc::new(OwnCatalog::new(self.state.path().to_owned(), hub, report))
        }

        /// What the server knows: name → description.
        fn known(&self, server: &Arc<OwnCatalog>) -> BTreeMap<String, String> {
            let contents = self.runtime.block_on(async {
                let files = Files::open(&Place::folder(self.hub.path()), false).expect("is there");
                let root = Root::read(&files).await.expect("is there");
                server.follow_log(&files, &root).await.expect("can be read").expect("is known")
            });
            let mut known = BTreeMap::new();
            let take = |line: &[u8], _: &[u8]| {
                let line: CatalogLine = serde_json::from_slice(line).expect("is a line");
                known.insert(line.name, line.description.unwrap_or_default());
            };
            contents.each_package(take).expect("can be read");
            assert_eq!(contents.package_count(), known.len() as u64);
            known
        }

        fn expected(said: &[(&str, &str)]) -> BTreeMap<String, String> {
            said.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        }

        /// The file of the first server.
        fn file(&self) -> PathBuf {
            let entries = files::read_dir(self.state.path()).expect("is there");
            let mut paths = entries.map(|entry| entry.expect("is there").path());
            let is_it = |path: &PathBuf| path.to_string_lossy().ends_with("-1.jsonl");
            paths.find(is_it).expect("was made")
        }
    }

    #[test]
    fn what_has_changed_is_appended_and_nothing_else_is_read_again() {
        let mut case = Case::new(4);
        let server = case.server();
        let first = [("n0", "old"), ("n1", "old"), ("n2", "old"), ("n3", "old")];
        assert_eq!(case.known(&server), Case::expected(&first));
        // The log says nothing of this one.
        case.edit("n0", "edited");
        case.change("n1", "new");
        case.change("n4", "added");
        files::remove_file(case.hub.path().join("index/n2.jsonl")).expect("is there");
        case.note(["n2".to_owned(), "n9".to_owned(), "n3 1.0.0".to_owned()]);
        let now = [("n0", "old"), ("n1", "new"), ("n3", "old"), ("n4", "added")];
        assert_eq!(case.known(&server), Case::expected(&now));
        case.change("n1", "newer");
        case.change("n2", "back");
        let now = [("n0", "old"), ("n1", "newer"), ("n2", "back"), ("n3", "old"), ("n4", "added")];
        assert_eq!(case.known(&server), Case::expected(&now));
        // A restart changes nothing of that, and reads what has come since.
        drop(server);
        let size = case.file().metadata().expect("is there").len();
        let server = case.server();
        assert_eq!(case.known(&server), Case::expected(&now));
        assert_eq!(case.file().metadata().expect("is there").len(), size);
        case.change("n3", "new");
        assert_eq!(case.known(&server)["n3"], "new");
    }

    #[test]
    fn what_was_torn_is_written_again() {
        let mut case = Case::new(3);
        let server = case.server();
        case.known(&server);
        let base = files::read(case.file()).expect("is there").len();
        case.change("n1", "new");
        case.known(&server);
        case.change("n2", "new");
        let now = case.known(&server);
        drop(server);
        let whole = files::read(case.file()).expect("is there");
        let cut = (0..whole.len()).step_by(5).map(|length| whole[..length].to_vec());
        let flipped = (base..whole.len()).step_by(5).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            bytes
        });
        let longer = [whole.clone(), b"{\"name\":\"n0\"}\t{}\n#{\"gen".to_vec()].concat();
        for bytes in cut.chain(flipped).chain([longer]) {
            files::write(case.file(), &bytes).expect("is ours");
            assert_eq!(case.known(&case.server()), now, "{}", String::from_utf8_lossy(&bytes));
        }
        assert_eq!(files::read(case.file()).expect("is there").len(), whole.len());
    }

    #[test]
    fn a_file_that_does_not_fit_the_hub_is_rebuilt() {
        let mut case = Case::new(3);
        let server = case.server();
        case.known(&server);
        // As after a backup was restored: the same numbers, for other changes.
        case.edit("n0", "restored");
        case.log[2] = "n7".to_owned();
        case.note(["n8".to_owned()]);
        assert_eq!(case.known(&server)["n0"], "restored");
        // As after a repair: the log has a gap.
        case.edit("n0", "repaired");
        case.log.truncate(4);
        let file = json!({
            "hub": 1, "log": "log/", "generation": 1_001,
            "catalog": { "generation": 1, "tooLarge": true },
        });
        case.write("log/000001.txt", "-\n");
        case.write("hub.json", file.to_string());
        assert_eq!(case.known(&server)["n0"], "repaired");
        drop(server);
        // As of another hub.
        case.edit("n0", "other");
        let text = files::read_to_string(case.file()).expect("is there");
        let (head, rest) = text.split_once('\n').expect("has lines");
        files::write(case.file(), format!("{}\n{rest}", head.replace("hub", "HUB")))
            .expect("is ours");
        assert_eq!(case.known(&case.server())["n0"], "other");
    }

    #[test]
    fn two_servers_have_a_file_each() {
        let mut case = Case::new(2);
        let servers = [case.server(), case.server()];
        for (number, server) in servers.iter().enumerate() {
            assert_eq!(case.known(server).len(), 2);
            let made = files::read_dir(case.state.path()).expect("is there").flatten();
            let made = made.filter(|file| file.path().extension() == Some("jsonl".as_ref()));
            assert_eq!(made.count(), number + 1);
        }
        case.change("n1", "new");
        servers.iter().for_each(|server| assert_eq!(case.known(server)["n1"], "new"));
    }

    #[test]
    fn a_file_with_many_superseded_lines_is_written_again() {
        let mut case = Case::new(1_200);
        let server = case.server();
        case.known(&server);
        let size = |case: &Case| case.file().metadata().expect("is there").len();
        let first = size(&case);
        let names: Vec<String> = (0..FEWEST_SUPERSEDED).map(|n| format!("n{n}")).collect();
        for round in 0..3 {
            names.iter().for_each(|name| case.edit(name, &round.to_string()));
            case.note(names.clone());
            let known = case.known(&server);
            assert_eq!(
                (known.len(), &*known["n7"], &*known["n1100"]),
                (1_200, &*round.to_string(), "old")
            );
        }
        assert!(size(&case) <= first, "{} bytes, {first} at first", size(&case));
        assert!(server.known_packages().is_some_and(|known| known.newest.is_empty()));
    }

    #[test]
    fn the_name_of_a_line_is_found_wherever_it_stands() {
        for (line, expected) in [
            ("{\"name\":\"a/b\",\"latest\":\"1\"}", Some("a/b")),
            ("{\"name\":\"a\\/b\",\"latest\":\"1\"}", Some("a/b")),
            ("{ \"latest\": \"1\", \"name\": \"a\"}", Some("a")),
            ("{\"name\":\"a", None),
            ("", None),
        ] {
            assert_eq!(name_in(line.as_bytes()).as_deref(), expected, "{line}");
        }
    }
}
