//! What a hub has, and what has changed in it since somebody asked last: from its catalog and its log.
//!
//! `hub.rs` reads the log too, to save requests, and believes "may have changed" when anything is odd. Here the answer must be
//! complete: whoever copies a hub never asks again about a package that is not named.
//!
//! Names are returned as the hub has them. Nothing here reads an index file.

use std::collections::BTreeSet;

use mu_archive::below;
use mu_archive::document::{Asking, DocumentAnswer};
use mu_provider::threads;
use mu_provider::{
    Changes, ErrorKind, FileDigest, LogPosition, ProviderError, SafeUrl, read_json_lines,
};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::catalog::{CATALOG, LONGEST_CATALOG};
use crate::hub::{KnownHub, MOST_FILES, file_of};
use crate::wire::{self, LOG_LINES};

/// The longest file of the log, in bytes: 1,000 names, of which some are versions too.
const LONGEST_FILE: u64 = 4 << 20;

/// What helps where a hub does not list what it has.
const CATALOG_BY_REPAIR: &str =
    "ask its operator to run `mu hub check --repair`, which writes its catalog";

/// What helps where a server shows no list.
const NO_LIST_FOR_SOME: &str = "a token that reads only some packages gets no list of them: `mu mirror NAME --registry BASE=URL`, without `--from`, copies one by its name";

/// The part of a log behind a position.
struct LogPart {
    /// Its lines.
    lines: Vec<String>,
    /// The SHA-256 of the last file up to the last line.
    digest: String,
}

impl KnownHub {
    /// What has changed since a position, or everything that there is.
    pub(crate) fn changes_since(
        &self,
        since: Option<&LogPosition>,
        asking: &Asking<'_>,
    ) -> Result<Changes, ProviderError> {
        self.believe_no_caches();
        let asking = &Asking { past_caches: true, ..*asking };
        let mut changes = Changes { max_age: self.max_age, ..Changes::default() };
        let log = self.file.generation.zip(self.file.log.as_deref());
        let Some((now, log)) = log else {
            // Without a log, the catalog is all that the hub says.
            changes.is_whole = true;
            changes.packages = self.packages_of_catalog(asking)?.unwrap_or_default();
            return Ok(changes);
        };
        if let Some(since) = since
            && let Some(part) = self.log_part(log, since, now, asking)?
        {
            note(&mut changes, &part.lines);
            let log = Some(part.digest);
            changes.position = Some(LogPosition { generation: now, log });
            return Ok(changes);
        }
        changes.is_whole = true;
        let is_large = self.has_no_catalog();
        let listed = if is_large { None } else { self.packages_of_catalog(asking)? };
        // A hub that says nothing of its catalog keeps it up to date; one without packages has none yet, and of a large one, the whole log
        // says what there is.
        let mut known = match (&listed, &self.file.catalog) {
            (None, _) => 0,
            (Some(_), None) => now,
            (Some(_), Some(catalog)) => catalog.generation.min(now),
        };
        let digest = loop {
            let from = LogPosition { generation: known, log: None };
            let next = now.min((file_of(known + 1) + MOST_FILES - 1) * LOG_LINES);
            let Some(part) = self.log_part(log, &from, next, asking)? else {
                return Err(self.unlisted(is_large));
            };
            note(&mut changes, &part.lines);
            changes.vouched.clear();
            if next == now {
                break part.digest;
            }
            known = next;
        };
        changes.packages.extend(listed.unwrap_or_default());
        changes.position = Some(LogPosition { generation: now, log: Some(digest) });
        Ok(changes)
    }

    /// The error about a log that has gaps.
    fn unlisted(&self, is_large: bool) -> ProviderError {
        let text = format!("the hub at `{}` does not list what it has", self.url);
        let error = ProviderError::new(ErrorKind::Protocol, text);
        match is_large {
            true => error
                .because("it has too many packages for a catalog, and its log does not have all changes, as after a repair")
                .hint("copy its files with other tools, such as rsync or those of the bucket"),
            false => error
                .because("its log does not say what has changed since its catalog was written")
                .hint(CATALOG_BY_REPAIR),
        }
    }

    /// The lines of the log behind `since`, up to generation `now`. `None` if the log does not have them all, or is not the one
    /// that `since` is a position of.
    ///
    /// A file has 1,000 lines. The first that is read is the one with the line of `since`, whose digest says whether it is still
    /// the same log:
    ///
    /// ```text
    /// 000001.txt   ┌ 1001 … ┐ digest of `since`
    ///              └ 1234   ┘
    ///                1235 … 2000     returned
    /// 000002.txt     2001 … 2100     returned; the digest of these is the new one
    /// ```
    fn log_part(
        &self,
        log: &str,
        since: &LogPosition,
        now: u64,
        asking: &Asking<'_>,
    ) -> Result<Option<LogPart>, ProviderError> {
        if since.generation > now {
            return Ok(None);
        }
        if since.generation == now
            && let Some(digest) = &since.log
        {
            return Ok(Some(LogPart { lines: Vec::new(), digest: digest.clone() }));
        }
        let folder = below(&self.url, log)?.as_folder();
        let (first, last) = (file_of(since.generation), file_of(now));
        let mut part = LogPart { lines: Vec::new(), digest: digest_of(&[]) };
        if now == 0 {
            return Ok(Some(part));
        }
        // Beyond that, the catalog says what there is.
        if last - first >= MOST_FILES {
            return Ok(None);
        }
        let texts = threads::all_at_once((first..=last).collect(), |file| {
            read(&below(&folder, &wire::log_path(file * LOG_LINES + 1).0)?, asking)
        });
        for (file, text) in (first..).zip(texts) {
            let start = file * LOG_LINES;
            let Some(text) = text? else { return Ok(None) };
            let count = usize::try_from(now.min(start + LOG_LINES) - start).unwrap_or(usize::MAX);
            let mut lines: Vec<&str> = text.lines().collect();
            // A file with fewer lines has a gap behind it: what changed there is not known.
            if lines.len() < count {
                return Ok(None);
            }
            lines.truncate(count);
            let known = usize::try_from(since.generation.saturating_sub(start)).unwrap_or(0);
            let (before, after) = lines.split_at(known.min(lines.len()));
            let is_other = |digest: &String| *digest != digest_of(before);
            if file == first && since.log.as_ref().is_some_and(is_other) {
                return Ok(None);
            }
            part.lines.extend(after.iter().map(|line| (*line).to_owned()));
            part.digest = digest_of(&lines);
        }
        Ok(Some(part))
    }

    /// The names in the catalog; `None` if there is none because the hub has no packages yet.
    fn packages_of_catalog(
        &self,
        asking: &Asking<'_>,
    ) -> Result<Option<BTreeSet<String>>, ProviderError> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let place = below(&self.url, CATALOG)?;
        let asking = Asking { limit: LONGEST_CATALOG, ..*asking };
        match asking.read(&place, None)? {
            DocumentAnswer::Read(document) => {
                let names: Result<_, _> = read_json_lines::<Named>(&document.bytes)
                    .map(|line| line.map(|line| line.name))
                    .collect();
                names.map(Some).map_err(|error| {
                    let text = format!("`{place}` cannot be read");
                    ProviderError::new(ErrorKind::Protocol, text).because(error.to_string())
                })
            }
            // Without a log, nothing says that it is empty: a server names neither to a token that reads only some packages.
            _ if self.file.catalog.is_none() && self.file.log.is_some() => Ok(None),
            _ => {
                let text = format!("the hub at `{}` does not list what it has", self.url);
                let error = ProviderError::new(ErrorKind::NotFound, text);
                let error = error.because(format!("there is no `{place}`"));
                Err(match self.file.api {
                    Some(_) => error.hint(NO_LIST_FOR_SOME),
                    None => error.hint(CATALOG_BY_REPAIR),
                })
            }
        }
    }
}

/// Adds what lines of the log name: a package, or with a version what vouches for that.
fn note(changes: &mut Changes, lines: &[String]) {
    for line in lines {
        match line.split_once(' ') {
            // A line that is only there for its number.
            None if line == "-" => {}
            None => drop(changes.packages.insert(line.clone())),
            Some((name, version)) => {
                changes.vouched.insert((name.to_owned(), version.to_owned()));
            }
        }
    }
}

/// A file of the log; `None` if there is none.
fn read(place: &SafeUrl, asking: &Asking<'_>) -> Result<Option<String>, ProviderError> {
    let asking = Asking { limit: LONGEST_FILE, ..*asking };
    let DocumentAnswer::Read(document) = asking.read(place, None)? else { return Ok(None) };
    Ok(String::from_utf8(document.bytes).ok())
}

fn digest_of(lines: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for line in lines {
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
    }
    FileDigest::from_bytes(hasher.finalize().into()).to_string()
}
