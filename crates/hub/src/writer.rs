//! Changes of a hub: publishing, and the mutable properties of a published version.
//!
//! The order of writes makes them safe. First comes the archive, which nothing leads to yet; then a marker;
//! then the index file, which publishes the version; then derived files, the log, and `hub.json`; last, the
//! marker is removed. Wherever this is interrupted, readers find no half version, and the next write, or a
//! repair, completes what the marker names.

use std::sync::Arc;

use bytes::Bytes;
use mu_archive::ArchiveLayout;
use mu_archive::document::PROV_ENDING;
use mu_provider::publishable::LONGEST_PROVENANCE;
use mu_provider::{MOST_EVIDENCE, checked_evidence, evidence_path};
use serde_json::json;

use crate::HubError;
use crate::archive::{self, Unpacked};
use crate::change::{Change, Tags, check_tags};
use crate::closures;
use crate::derived::{self, CatalogChange, LONGEST_IN_A_CHANGE, Left};
use crate::file::{CATALOG_FILE, Read};
use crate::files::Files;
use crate::lines::{Lines, PublishedLine};
use crate::log::{self, BrokenOff, Marker};
use crate::names;
use crate::root::{HUB_FILE, Root};
use crate::snapshot::{self, SnapshotChange};

/// What came of publishing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The version is there now.
    New,
    /// The version was already there, with the same content.
    Same,
}

/// Changes one hub.
#[derive(Debug, Clone)]
pub struct Writer {
    /// The files of the hub.
    pub files: Files,
    /// What its changes leave to [`Self::tidy`].
    pub left: Arc<Left>,
}

impl Writer {
    /// Creates a hub, unless there is one; returns whether it is new.
    pub(crate) async fn init(&self) -> Result<bool, HubError> {
        let _turn = self.files.turn().await?;
        if let Some(read) = self.files.read(HUB_FILE).await? {
            Root::parse(&read.bytes, &self.files)?;
            return Ok(false);
        }
        self.files.replace(HUB_FILE, &None, Root::new().to_bytes()).await
    }

    /// Publishes an archive that was unpacked, with its index line.
    pub async fn publish(
        &self,
        line: PublishedLine,
        bytes: Bytes,
        unpacked: &Unpacked,
    ) -> Result<Published, HubError> {
        let _turn = self.files.turn().await?;
        let root = Root::read_to_write(&self.files).await?;
        let name = line.name().to_owned();
        let present = derived::index(&self.files, &root, &name).await?;
        if let Some(published) = present.find(&line.full_version()) {
            same_or_other(published, unpacked)?;
            self.complete_earlier(&name).await?;
            return Ok(Published::Same);
        }
        let (line, new_archive) = self.upload(&root, line, bytes, unpacked).await?;
        let published = self.change(&root, &name, |lines, _| {
            if let Some(published) = lines.find(&line.full_version()) {
                same_or_other(published, unpacked)?;
                return Ok((false, Published::Same));
            }
            lines.push(line.clone());
            Ok((true, Published::New))
        });
        let published = published.await;
        if published.is_err()
            && self.files.is_folder()
            && let Some(archive) = new_archive
        {
            self.remove_unnamed(&root, &line, &archive).await;
        }
        published
    }

    /// Keeps the signed statement about the archive of a version beside it, where tools look for it.
    pub async fn write_provenance(
        &self,
        name: &str,
        version: &str,
        bytes: Bytes,
    ) -> Result<Published, HubError> {
        names::check_name(name)?;
        let _turn = self.files.turn().await?;
        let root = Root::read_to_write(&self.files).await?;
        let present = derived::index(&self.files, &root, name).await?;
        let described = format!("{name} {}", names::printable(version));
        let Some(line) = present.find(version) else { return Err(self.not_found(&described)) };
        let what = format!("the provenance of {}", line.describe());
        if line.archive_layout() == ArchiveLayout::Files {
            let reason =
                "its archive is one of mu's own, about which no other tool has said anything";
            return Err(names::refused(&what, reason));
        }
        if bytes.len() as u64 > LONGEST_PROVENANCE {
            let reason = format!("it is longer than {LONGEST_PROVENANCE} bytes");
            return Err(names::refused(&what, &reason));
        }
        let place = self.place_provenance(&root, line, bytes);
        // What is there stays, so there is nothing to log.
        match self.files.head(&place_of_provenance(&root, line)).await? {
            Some(_) => place.await,
            None => self.write_logged(line, place).await,
        }
    }

    /// Writes what vouches for a version, with a line of the log, from which those learn of it who copy the hub. The marker comes first,
    /// so that they do in any case.
    async fn write_logged(
        &self,
        line: &PublishedLine,
        write: impl Future<Output = Result<Published, HubError>>,
    ) -> Result<Published, HubError> {
        let logged = format!("{} {}", line.name(), line.full_version());
        let marker = Marker::set(&self.files, &logged).await?;
        match write.await {
            Ok(Published::New) => {
                self.complete_with_earlier(marker, &logged).await?;
                Ok(Published::New)
            }
            // It is not known whether the write happened, so the marker stays.
            Err(error @ HubError::Store { .. }) => Err(error),
            written => {
                marker.clear(&self.files).await?;
                written
            }
        }
    }

    /// Writes the signed statement about an archive beside that, unless it is there.
    pub(crate) async fn place_provenance(
        &self,
        root: &Root,
        line: &PublishedLine,
        bytes: Bytes,
    ) -> Result<Published, HubError> {
        let path = place_of_provenance(root, line);
        if self.files.replace(&path, &None, bytes.clone()).await? {
            return Ok(Published::New);
        }
        let present = self.files.read(&path).await?.map(|present| archive::digest(&present.bytes));
        let offered = archive::digest(&bytes);
        match present {
            Some(present) if present != offered => Err(HubError::Exists {
                package: format!("the provenance of {}", line.describe()),
                present: present.to_string(),
                offered: offered.to_string(),
            }),
            _ => Ok(Published::Same),
        }
    }

    /// Adds what vouches for a version, as lines of evidence; those that are there stay. What they say is not looked at here, but each
    /// must be one.
    pub async fn write_evidence(
        &self,
        name: &str,
        version: &str,
        bytes: Bytes,
    ) -> Result<Published, HubError> {
        names::check_name(name)?;
        let what = format!("the evidence about {name} {}", names::printable(version));
        let offered = checked_evidence(&bytes).map_err(|why| names::refused(&what, &why))?;
        let _turn = self.files.turn().await?;
        let root = Root::read_to_write(&self.files).await?;
        let present = derived::index(&self.files, &root, name).await?;
        let Some(line) = present.find(version) else {
            return Err(self.not_found(&format!("{name} {}", names::printable(version))));
        };
        let path = evidence_path(name, &line.full_version());
        let known = self.files.read(&path).await?.map(|read| read.bytes).unwrap_or_default();
        let known = String::from_utf8_lossy(&known);
        if offered.iter().all(|line| known.lines().any(|other| other == line)) {
            return Ok(Published::Same);
        }
        self.write_logged(line, self.join_evidence(&path, &what, &offered)).await
    }

    /// Adds lines to a file of evidence.
    pub(crate) async fn join_evidence(
        &self,
        path: &str,
        what: &str,
        offered: &[String],
    ) -> Result<Published, HubError> {
        // Somebody else may add lines meanwhile, so they are joined with those that are there each time.
        self.files
            .change(path, async |known| {
                let known = known.map(|known| String::from_utf8_lossy(known)).unwrap_or_default();
                let mut lines: Vec<&str> = known.lines().collect();
                let before = lines.len();
                for line in offered {
                    if !lines.contains(&&**line) {
                        lines.push(line);
                    }
                }
                if lines.len() == before {
                    return Ok((None, Published::Same));
                }
                if lines.len() > MOST_EVIDENCE {
                    let reason = format!("a version has no more than {MOST_EVIDENCE} pieces of it");
                    return Err(names::refused(what, &reason));
                }
                let text: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
                Ok((Some(text.into()), Published::New))
            })
            .await
    }

    /// Makes all changes of a version at once; returns whether that changed anything.
    pub async fn change_version(
        &self,
        name: &str,
        version: &str,
        change: &Change,
    ) -> Result<bool, HubError> {
        change.check(name)?;
        self.change_lines(name, |lines, index| {
            if lines.is_empty() {
                return Err(self.not_found(name));
            }
            let Some(line) = lines.find(version) else {
                return Err(self.not_found(&format!("{name} {}", names::printable(version))));
            };
            if change.is_for_another_index(index) {
                return Err(HubError::Changed { package: name.to_owned() });
            }
            let found = line.map().clone();
            let changed = lines.change(|map| {
                let is_it = *map == found;
                change.apply(map, is_it)
            })?;
            if changed && matches!(change.tags, Some(Tags::Set(_) | Tags::Add(_))) {
                lines.find(version).map_or(Ok(()), check_tags)?;
            }
            Ok((changed, changed))
        })
        .await
    }

    /// Records that another package replaced this one, or removes that record.
    pub(crate) async fn moved(&self, name: &str, to: Option<&str>) -> Result<bool, HubError> {
        let change = Change { moved_to: Some(to.map(str::to_owned)), ..Change::default() };
        change.check(name)?;
        self.change_lines(name, |lines, _| {
            if lines.is_empty() {
                return Err(self.not_found(name));
            }
            let changed = lines.change(|map| change.apply(map, false))?;
            Ok((changed, changed))
        })
        .await
    }

    async fn change_lines<T>(
        &self,
        name: &str,
        edit: impl FnMut(&mut Lines, Option<&Read>) -> Result<(bool, T), HubError>,
    ) -> Result<T, HubError> {
        names::check_name(name)?;
        let _turn = self.files.turn().await?;
        let root = Root::read_to_write(&self.files).await?;
        self.change(&root, name, edit).await
    }

    /// Removes the archive of a version that was not published after all, so that a full disk does not become fuller with each
    /// attempt. It is still this writer's turn, so nobody else is about to publish it. If it cannot be removed, it does no harm.
    async fn remove_unnamed(&self, root: &Root, line: &PublishedLine, archive: &str) {
        let lines = derived::index(&self.files, root, line.name()).await;
        if lines.is_ok_and(|lines| lines.find(&line.full_version()).is_none()) {
            let _ = self.files.remove(archive).await;
        }
    }

    /// Writes the archive to the place in its line, or to another one that it then records in the line. It
    /// never replaces a file, because somebody may be about to publish it. Returns the line, and the archive if it is new.
    pub(crate) async fn upload(
        &self,
        root: &Root,
        line: PublishedLine,
        bytes: Bytes,
        unpacked: &Unpacked,
    ) -> Result<(PublishedLine, Option<String>), HubError> {
        let mut map = line.map().clone();
        map.remove("urls");
        map.insert("digest".to_owned(), unpacked.content.to_string().into());
        map.insert("archive".to_owned(), unpacked.archive.to_string().into());
        map.insert("size".to_owned(), unpacked.size.into());
        let line = PublishedLine::new(map);
        let usual = format!("{}{}", root.packs_folder(), line.usual_archive());
        if let Some(is_new) = self.place(&usual, &bytes).await? {
            return Ok((line, is_new.then_some(usual)));
        }
        let digest = unpacked.archive.to_string();
        let short = digest.trim_start_matches("sha256:").get(..16).unwrap_or_default();
        let other = format!("{}~{short}.tgz", usual.trim_end_matches(".tgz"));
        let Some(is_new) = self.place(&other, &bytes).await? else {
            return Err(self.files.broken(&other, "its content does not match its name"));
        };
        let mut map = line.map().clone();
        map.insert("urls".to_owned(), json!([other]));
        Ok((PublishedLine::new(map), is_new.then_some(other)))
    }

    /// Writes an archive, unless it is already there; returns whether it is new, and `None` if another file is there.
    async fn place(&self, path: &str, bytes: &Bytes) -> Result<Option<bool>, HubError> {
        if self.files.replace(path, &None, bytes.clone()).await? {
            return Ok(Some(true));
        }
        let present = self.files.read(path).await?;
        let is_same = present
            .is_some_and(|present| archive::digest(&present.bytes) == archive::digest(bytes));
        Ok(is_same.then_some(false))
    }

    /// Changes the index of a package, and all that follows from that.
    pub(crate) async fn change<T>(
        &self,
        root: &Root,
        name: &str,
        mut edit: impl FnMut(&mut Lines, Option<&Read>) -> Result<(bool, T), HubError>,
    ) -> Result<T, HubError> {
        let path = root.index(name);
        let marker = Marker::set(&self.files, name).await?;
        let result = self
            .files
            .change_seen(&path, async |read| {
                let bytes = read.map(|read| &*read.bytes).unwrap_or_default();
                let mut lines =
                    Lines::parse(bytes, name).map_err(|reason| self.files.broken(&path, reason))?;
                let (changed, answer) = edit(&mut lines, read)?;
                Ok((changed.then(|| lines.to_bytes()), answer))
            })
            .await;
        match result {
            Ok(answer) => {
                self.complete_with_earlier(marker, name).await?;
                Ok(answer)
            }
            // It is not known whether the write happened, so the marker stays.
            Err(error @ HubError::Store { .. }) => Err(error),
            Err(error) => {
                marker.clear(&self.files).await?;
                Err(error)
            }
        }
    }

    /// Completes earlier changes of a package, if any is not complete.
    pub(crate) async fn complete_earlier(&self, name: &str) -> Result<(), HubError> {
        let earlier = BrokenOff::all(&self.files).await?;
        if earlier.names.iter().any(|other| other == name) {
            let marker = Marker::set(&self.files, name).await?;
            self.complete_with_earlier(marker, name).await?;
        }
        Ok(())
    }

    /// Completes the change of a package that `marker` is of, and those that were broken off.
    async fn complete_with_earlier(&self, marker: Marker, name: &str) -> Result<(), HubError> {
        let earlier = marker.find_interrupted_writes(&self.files).await?;
        let mut names = earlier.names.clone();
        names.push(name.to_owned());
        self.complete(&names, false).await?;
        earlier.clear(&self.files).await?;
        marker.clear(&self.files).await
    }

    /// Writes everything that is derived from the index files of `names`. Doing it twice does no harm.
    ///
    /// With `anew`, the catalog is always written.
    pub(crate) async fn complete(&self, names: &[String], anew: bool) -> Result<(), HubError> {
        let mut names = names.to_vec();
        names.retain(|name| names::check_name(name).is_ok() || log::is_about_evidence(name));
        names.sort_unstable();
        names.dedup();
        let root = Root::read_to_write(&self.files).await?;
        for name in names.iter().filter(|name| !log::is_about_evidence(name)) {
            // Neither needs the other one, and a store may take long for each.
            let capabilities = derived::write_capabilities(&self.files, &root, name);
            let closure = closures::write(&self.files, &root, name);
            futures_util::future::try_join(capabilities, closure).await?;
        }
        let generation = log::append_log_lines(&self.files, &root, &names).await?;
        if anew || root.longest_about_all() <= LONGEST_IN_A_CHANGE {
            return self.write_about_all(&root, generation, anew).await;
        }
        self.advance(generation, None, None).await?;
        if derived::is_catalog_due(&root, generation) || snapshot::is_due(&root, generation) {
            self.left.add();
        }
        Ok(())
    }

    /// Does what changes have left to do, as far as it is due: each such file takes all packages into account. If another task does
    /// that already, it does this too.
    ///
    /// # Errors
    ///
    /// When the hub cannot be read or written. The next change leaves the same again.
    pub async fn tidy(&self) -> Result<(), HubError> {
        while let Some(_doing) = self.left.take() {
            let _turn = self.files.turn().await?;
            let root = Root::read_to_write(&self.files).await?;
            self.write_about_all(&root, root.generation(), false).await?;
        }
        Ok(())
    }

    /// Writes the files about all packages, if enough has changed until `generation`, and moves the hub on to that.
    async fn write_about_all(
        &self,
        root: &Root,
        generation: u64,
        anew: bool,
    ) -> Result<(), HubError> {
        let catalog = derived::write_catalog(&self.files, root, generation, anew).await?;
        let snapshot = snapshot::write(&self.files, root, generation, anew).await?;
        self.advance(generation, catalog, snapshot).await?;
        if matches!(catalog, Some(CatalogChange::TooLarge { .. })) {
            self.files.remove(CATALOG_FILE).await?;
        }
        match snapshot {
            Some(SnapshotChange::TooLarge { .. }) => snapshot::remove(&self.files).await,
            _ => Ok(()),
        }
    }

    /// Moves the hub on to a generation.
    pub(crate) async fn advance(
        &self,
        generation: u64,
        catalog: Option<CatalogChange>,
        snapshot: Option<SnapshotChange>,
    ) -> Result<(), HubError> {
        self.change_root(|root| {
            root.advance_generation(generation, catalog);
            if let Some(snapshot) = snapshot {
                root.take_snapshot(snapshot);
            }
        })
        .await
    }

    /// Sets the generation to one after all lines of the log.
    pub(crate) async fn count_anew(&self) -> Result<(), HubError> {
        let root = Root::read(&self.files).await?;
        let generation = log::behind(&self.files, &root).await?;
        self.change_root(|root| root.count_from(generation)).await
    }

    /// Changes `hub.json`.
    pub(crate) async fn change_root(&self, change: impl Fn(&mut Root)) -> Result<(), HubError> {
        self.files
            .change(HUB_FILE, async |bytes| {
                let missing = || HubError::Missing { place: self.files.name.to_string() };
                let bytes = bytes.ok_or_else(missing)?;
                let mut root = Root::parse(bytes, &self.files)?;
                change(&mut root);
                let changed = root.to_bytes();
                Ok(((changed != *bytes).then_some(changed), ()))
            })
            .await
    }

    fn not_found(&self, package: &str) -> HubError {
        HubError::NotFound { place: self.files.name.to_string(), package: package.to_owned() }
    }
}

/// The place of the signed statement about an archive.
fn place_of_provenance(root: &Root, line: &PublishedLine) -> String {
    format!("{}{PROV_ENDING}", place_of_archive(root, line))
}

/// The place of a version's archive in its hub.
pub(crate) fn place_of_archive(root: &Root, line: &PublishedLine) -> String {
    let own = line.texts("urls").next().filter(|place| !place.contains("://"));
    let usual = || format!("{}{}", root.packs_folder(), line.usual_archive());
    own.map_or_else(usual, str::to_owned)
}

/// Whether a published version has the content that is offered again.
fn same_or_other(published: &PublishedLine, unpacked: &Unpacked) -> Result<(), HubError> {
    let (archive, content) = (unpacked.archive.to_string(), unpacked.content.to_string());
    let is_same = match published.text("digest") {
        Some(digest) => digest == content,
        None => published.text("archive") == Some(&archive),
    };
    if is_same {
        return Ok(());
    }
    let present = published.text("digest").or(published.text("archive")).unwrap_or("no digest");
    Err(HubError::Exists {
        package: published.describe(),
        present: present.to_owned(),
        offered: content,
    })
}
