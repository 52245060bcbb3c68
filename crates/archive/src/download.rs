//! Downloads one archive from one URL, and checks that its bytes are the expected ones.
//!
//! A small archive is read into memory, and read again if the download is interrupted. A large one goes into
//! a file, where an interrupted download resumes. Neither is used before all of it was hashed.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use mu_provider::fs::{self, AtPath as _};
use mu_provider::http::{Failure, Guard, Http, Response, because_of_web_page};
use mu_provider::{
    ArchiveDigest, ErrorKind, FileDigest, Folder, Progress, ProviderError, SafeUrl, TreeWriter,
};
use sha2::{Digest as _, Sha256};

use crate::document::{Validator, file_path};
use crate::partial::Partial;
use crate::pick::Layers;
use crate::unpack::{self, ArchiveError, ArchiveLayout, Scratch, is_gzip};
use crate::zip::Source;

/// Archives up to this size are held in memory. The download of a larger one can resume.
const SMALL: u64 = 1 << 20;

/// The limit for archives in a folder, where no download can be interrupted.
const SMALL_FILE: u64 = 8 << 20;

/// What is known about an archive before the download.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedArchive {
    pub(crate) digest: Option<ArchiveDigest>,
    pub(crate) size: Option<u64>,
    /// The largest that is accepted.
    pub(crate) limit: u64,
    /// What another archive at the same place means.
    pub(crate) changed: &'static str,
}

/// An archive with the expected bytes.
#[derive(Debug)]
pub struct Archive(Bytes);

#[derive(Debug)]
enum Bytes {
    Memory(Vec<u8>),
    /// Through a file of ours, which is removed with this.
    Partial(Partial),
    /// A file of the hub, with its size.
    File(File, u64),
}

impl Archive {
    /// Writes it into `into`, as it is.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or `into` cannot be written.
    pub fn copy(self, into: &mut dyn io::Write) -> io::Result<()> {
        match self.0 {
            Bytes::Memory(bytes) => into.write_all(&bytes),
            Bytes::Partial(mut partial) => io::copy(&mut partial.reader()?, into).map(drop),
            Bytes::File(mut file, _) => io::copy(&mut file, into).map(drop),
        }
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> u64 {
        match &self.0 {
            Bytes::Memory(bytes) => bytes.len() as u64,
            Bytes::Partial(partial) => partial.length(),
            Bytes::File(_, size) => *size,
        }
    }

    /// Its digest.
    pub(crate) fn digest(&self) -> io::Result<ArchiveDigest> {
        Ok(match &self.0 {
            Bytes::Memory(bytes) => ArchiveDigest::from_bytes(Sha256::digest(bytes).into()),
            Bytes::Partial(partial) => partial.digest(),
            Bytes::File(file, _) => {
                let mut file = file;
                io::Seek::rewind(&mut file)?;
                ArchiveDigest::from_bytes(hash(file)?)
            }
        })
    }

    /// Calls `work` with its bytes, from the first on.
    pub(crate) fn read<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Source) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        match &mut self.0 {
            Bytes::Memory(bytes) => work(&mut io::Cursor::new(&*bytes)),
            Bytes::Partial(partial) => work(&mut partial.reader().map_err(ArchiveError::Io)?),
            Bytes::File(file, _) => work(file),
        }
    }

    /// Unpacks it as a layer of an image, the last one first.
    pub(crate) fn unpack_layer(
        mut self,
        layers: &mut Layers,
        tree: &mut TreeWriter,
    ) -> Result<(), ArchiveError> {
        if let Bytes::Memory(bytes) = &self.0 {
            return unpack::unpack_layer(&**bytes, bytes.len() as u64, layers, tree);
        }
        let size = self.size();
        self.read(|file| {
            let file = BufReader::with_capacity(256 << 10, file);
            unpack::unpack_layer(file, size, layers, tree)
        })
    }

    /// Unpacks it, as one of many that share `scratch`.
    pub(crate) fn unpack(
        mut self,
        scratch: &Scratch,
        layout: ArchiveLayout,
        tree: &mut TreeWriter,
    ) -> Result<(), ArchiveError> {
        if let Bytes::Memory(bytes) = &self.0 {
            return unpack::unpack_with(scratch, bytes, layout, tree);
        }
        let size = self.size();
        self.read(|file| {
            let file = BufReader::with_capacity(256 << 10, file);
            unpack::unpack_from(file, size, layout, tree)
        })
    }
}

/// How archives are got.
pub(crate) struct Download<'call> {
    pub(crate) http: &'call Http,
    pub(crate) insecure: bool,
    /// Provides credentials, if not the stored token should be used.
    pub(crate) guard: Option<Arc<dyn Guard>>,
    /// Where large downloads are stored until they are complete.
    pub(crate) folder: &'call Path,
    /// The folder of large downloads, if it exists: only then can there be a file from an earlier attempt.
    pub(crate) left: Option<&'call Folder>,
    pub(crate) progress: &'call dyn Progress,
    /// Whether 403 means that nothing is there, and whether the server answered so.
    pub(crate) hides: Option<&'call Cell<bool>>,
    /// What was there the last time, if it need not be downloaded again.
    pub(crate) unless: Option<&'call Unless>,
}

/// A download that is not needed if the archive is the one of the last time.
#[derive(Debug, Default)]
pub(crate) struct Unless {
    /// What it was known by.
    pub(crate) known: Option<Validator>,
    /// Whether the server says that it is still the same. Then the download ends with an error.
    pub(crate) is_same: Cell<bool>,
    /// What it is known by now, and for how many seconds it need not be requested again.
    pub(crate) now: RefCell<(Validator, Option<u32>)>,
}

impl Download<'_> {
    /// Gets the archive at `url`.
    pub(crate) fn get(
        &self,
        url: &SafeUrl,
        wanted: ExpectedArchive,
    ) -> Result<Archive, ProviderError> {
        if url.scheme() == "file" {
            return read_file(url, wanted);
        }
        let mut partial = None;
        // With a digest, the file of an earlier run is a part of the same archive.
        if let Some(digest) = wanted.digest
            && wanted.size.is_none_or(|size| size > SMALL)
        {
            partial = self.left_over(digest)?;
        }
        if let Some(left) = partial.as_mut() {
            if wanted.digest == Some(left.digest()) {
                return Ok(done(partial.take().expect("it was there a moment ago")));
            }
            if wanted.size.is_some_and(|size| left.length() >= size) {
                left.clear()?;
            }
        }
        let resumed = partial.as_ref().is_some_and(|left| left.length() > 0);
        match self.download(url, wanted, partial) {
            // The file from an earlier run may have been damaged, so this failure is not final.
            Err(error) if resumed && error.kind() == ErrorKind::Integrity => {
                self.download(url, wanted, None)
            }
            result => result,
        }
    }

    /// What an earlier attempt has got of an archive.
    fn left_over(&self, digest: ArchiveDigest) -> Result<Option<Partial>, ProviderError> {
        let name = name(digest.as_bytes());
        match self.left {
            Some(left) if Partial::is_in(left, &name) => {
                Partial::left_over(self.folder, &name, self.progress)
            }
            _ => Ok(None),
        }
    }

    fn download(
        &self,
        url: &SafeUrl,
        wanted: ExpectedArchive,
        mut partial: Option<Partial>,
    ) -> Result<Archive, ProviderError> {
        let mut etag = None;
        let whole = self.http.retry(|| {
            let is_compared = wanted.digest.is_some();
            let mut response = self.ask(url, is_compared, &mut partial, etag.as_deref())?;
            // Some servers call everything so.
            if response.is_web_page() && !is_packed(&response.excerpt(4)) {
                let text = format!("`{url}` is not an archive");
                let error = ProviderError::new(ErrorKind::Protocol, text);
                return Err(because_of_web_page(error).into());
            }
            wanted.check_size(url, start(&partial), response.content_length())?;
            let length = response.content_length().or(wanted.size);
            if partial.is_none() && length.is_some_and(|length| length <= SMALL) {
                return self.read_small(response, wanted).map(Some);
            }
            etag = response.header("etag").filter(|tag| !tag.starts_with("W/")).map(str::to_owned);
            if partial.is_none() {
                partial = Some(self.new_partial(url, wanted)?);
            }
            let partial = partial.as_mut().expect("was made if it was not there");
            self.read_large(response, wanted, partial).map(|()| None)
        })?;
        if let Some(bytes) = whole {
            wanted.check(url, bytes.len() as u64, || Sha256::digest(&bytes).into())?;
            return Ok(Archive(Bytes::Memory(bytes)));
        }
        let partial = done(partial.expect("a large archive is in a file"));
        let Bytes::Partial(held) = &partial.0 else { return Ok(partial) };
        wanted.check(url, held.length(), || *held.digest().as_bytes())?;
        Ok(partial)
    }

    /// Requests the missing part. If the server does not resume there, the received part is dropped.
    fn ask(
        &self,
        url: &SafeUrl,
        is_compared: bool,
        partial: &mut Option<Partial>,
        etag: Option<&str>,
    ) -> Result<Response, Failure> {
        let get = || {
            let request = self.http.get(url).insecure(self.insecure).compared(is_compared);
            request.guarded(self.guard.clone())
        };
        let start = start(partial);
        // A part counts only if it continues exactly what was received, of the same file (`if-range`). 200 is the whole file: what
        // was received is dropped, and this answer is read from its beginning. All else, such as 416 for a file that has become
        // shorter, says nothing about the whole, so that is requested once more below, without a range. Where nothing would tell whether
        // the rest is one of another file, neither a digest nor the server, nothing is continued.
        let is_recognized = is_compared || etag.is_some();
        if let (true, false, Some(partial)) = (start > 0, is_recognized, partial.as_mut()) {
            partial.clear()?;
        }
        if start > 0 && is_recognized {
            let mut request = get().allow(416).header("range", format!("bytes={start}-"));
            if let Some(etag) = etag {
                request = request.header("if-range", etag);
            }
            let response = request.attempt()?;
            let range = response.header("content-range").unwrap_or_default();
            // Some servers do not know `if-range`, and give a part of whatever is there now.
            let now = response.header("etag");
            let is_another = etag.is_some_and(|etag| now.is_some_and(|now| now != etag));
            let continues = range.starts_with(&format!("bytes {start}-")) && !is_another;
            if response.status() == 206 && continues {
                return Ok(response);
            }
            if let Some(partial) = partial {
                partial.clear()?;
            }
            if response.status() == 200 {
                return Ok(response);
            }
        }
        // The whole file. What else than 200 is an answer depends on who asks: 304 if it was fetched before, and 403 where a server
        // says that instead of 404.
        let request = get();
        let request = if self.hides.is_some() { request.allow(403) } else { request };
        let known = self.unless.and_then(|unless| unless.known.as_ref());
        let request = if known.is_some() { request.allow(304) } else { request };
        let headers = known.into_iter().flat_map(Validator::conditional_headers);
        let mut request =
            headers.fold(request, |request, (name, value)| request.header(name, value));
        let response = request.attempt()?;
        if let Some(unless) = self.unless {
            unless.now.replace((Validator::of_response(&response), response.max_age()));
        }
        if response.status() == 200 {
            return Ok(response);
        }
        if let (304, Some(unless), Some(_)) = (response.status(), self.unless, known) {
            unless.is_same.set(true);
            let text = format!("`{url}` is still the same");
            return Err(ProviderError::new(ErrorKind::NotFound, text).into());
        }
        if let (403, Some(is_hidden)) = (response.status(), self.hides) {
            is_hidden.set(true);
            let text = format!("`{url}` answered {}", response.status_text());
            return Err(ProviderError::new(ErrorKind::NotFound, text).into());
        }
        let instead = match response.status() {
            206 => "without being asked for a part",
            _ => "and not with an archive",
        };
        let text = format!("`{url}` answered {} {instead}", response.status_text());
        Err(ProviderError::new(ErrorKind::Protocol, text).into())
    }

    fn read_small(&self, response: Response, wanted: ExpectedArchive) -> Result<Vec<u8>, Failure> {
        let url = response.url().clone();
        let bytes =
            response.bytes(wanted.size.unwrap_or(SMALL).min(wanted.limit), self.progress)?;
        match wanted.size {
            Some(size) if size > bytes.len() as u64 => {
                Err(Failure::broken_off(&io::ErrorKind::UnexpectedEof.into(), &url))
            }
            _ => Ok(bytes),
        }
    }

    fn read_large(
        &self,
        mut response: Response,
        wanted: ExpectedArchive,
        partial: &mut Partial,
    ) -> Result<(), Failure> {
        // Of a part, a server says how long the whole is, and may give less than it was asked for.
        let range = response.header("content-range").and_then(|range| range.rsplit_once('/'));
        let stated = range.and_then(|(_, total)| total.parse::<u64>().ok());
        let total = wanted.size.or(stated);
        let total = total.or_else(|| Some(partial.length() + response.content_length()?));
        let mut buffer = vec![0; 256 << 10];
        loop {
            let count = match response.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) => return Err(Failure::broken_off(&error, response.url())),
            };
            #[expect(
                clippy::indexing_slicing,
                reason = "an answer reads no more than there is room for"
            )]
            partial.append(&buffer[..count])?;
            self.progress.bytes(partial.length(), total);
            if partial.length() > wanted.size.unwrap_or(wanted.limit) {
                partial.give_up();
                let size = partial.length();
                return Err(wanted
                    .wrong_size(response.url(), &format!("at least {size} bytes"))
                    .into());
            }
        }
        match total {
            Some(total) if partial.length() < total => {
                let error = io::ErrorKind::UnexpectedEof.into();
                Err(Failure::broken_off(&error, response.url()))
            }
            _ => Ok(()),
        }
    }

    fn new_partial(
        &self,
        url: &SafeUrl,
        wanted: ExpectedArchive,
    ) -> Result<Partial, ProviderError> {
        let name = match wanted.digest {
            Some(digest) => name(digest.as_bytes()),
            None => name(&Sha256::digest(url.as_url().as_str()).into()),
        };
        let mut partial = Partial::create(self.folder, &name, self.progress)?;
        // The following answer begins at the first byte.
        partial.clear()?;
        Ok(partial)
    }
}

/// Whether bytes begin as those of an archive do: as gzip, or as a zip.
fn is_packed(start: &[u8]) -> bool {
    is_gzip(start) || start.starts_with(b"PK")
}

/// What another archive means where a version was published.
pub(crate) const CHANGED: &str = "a published version never changes: the hub's operator, or something in between, has changed it";

impl ExpectedArchive {
    /// Compares sizes before anything is read, if the server gives the size.
    fn check_size(
        &self,
        url: &SafeUrl,
        start: u64,
        length: Option<u64>,
    ) -> Result<(), ProviderError> {
        let Some(total) = length.map(|length| start + length) else { return Ok(()) };
        if self.size.is_some_and(|size| size != total) || total > self.limit {
            return Err(self.wrong_size(url, &format!("{total} bytes")));
        }
        Ok(())
    }

    fn wrong_size(&self, url: &SafeUrl, got: &str) -> ProviderError {
        let expected = match self.size {
            Some(size) if size <= self.limit => format!("{size} bytes"),
            _ => format!("at most {} bytes", self.limit),
        };
        let text =
            format!("the archive `{url}` has the wrong size: expected {expected}, got {got}");
        ProviderError::new(ErrorKind::Integrity, text).hint(self.changed)
    }

    /// Compares the received archive with the expected one.
    fn check(
        &self,
        url: &SafeUrl,
        size: u64,
        digest: impl FnOnce() -> [u8; 32],
    ) -> Result<(), ProviderError> {
        self.check_size(url, 0, Some(size))?;
        let Some(expected) = self.digest else { return Ok(()) };
        let got = ArchiveDigest::from_bytes(digest());
        if got == expected {
            return Ok(());
        }
        let text = format!(
            "the archive `{url}` is not the one that was expected: expected {expected}, got {got}"
        );
        Err(ProviderError::new(ErrorKind::Integrity, text).hint(self.changed))
    }
}

fn read_file(url: &SafeUrl, wanted: ExpectedArchive) -> Result<Archive, ProviderError> {
    let path = file_path(url)?;
    let mut file = fs::open_if_there(&path)?.ok_or_else(|| {
        ProviderError::new(ErrorKind::NotFound, format!("there is no `{}`", path.display()))
    })?;
    let size = file.metadata().at("read", &path)?.len();
    wanted.check_size(url, 0, Some(size))?;
    if size <= SMALL_FILE {
        let mut bytes = Vec::with_capacity(usize::try_from(size).expect("8 MiB fit") + 1);
        (&mut file).take(SMALL_FILE + 1).read_to_end(&mut bytes).at("read", &path)?;
        wanted.check(url, bytes.len() as u64, || Sha256::digest(&bytes).into())?;
        return Ok(Archive(Bytes::Memory(bytes)));
    }
    let digest = hash(&file).at("read", &path)?;
    wanted.check(url, size, || digest)?;
    io::Seek::rewind(&mut file).at("read", &path)?;
    Ok(Archive(Bytes::File(file, size)))
}

#[expect(clippy::indexing_slicing, reason = "a file reads no more than there is room for")]
fn hash(mut file: &File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.finalize().into()),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// The position of the next bytes.
fn start(partial: &Option<Partial>) -> u64 {
    partial.as_ref().map_or(0, Partial::length)
}

/// A complete download, which is used now and never again.
fn done(mut partial: Partial) -> Archive {
    partial.give_up();
    Archive(Bytes::Partial(partial))
}

/// The name of a partial download.
fn name(bytes: &[u8; 32]) -> String {
    FileDigest::from_bytes(*bytes).to_string()
}
