//! Creates the archive, and reads it back as its users will.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _, Write};
use std::path::Path;

use mu_archive::{ArchiveLayout, ArchiveWriter, EARLY, unpack_from};
use mu_provider::{ArchiveDigest, Tree};
use sha2::{Digest as _, Sha256};

use crate::contents::{Content, PackageItem};
use crate::fs::{self, AtPath as _, FileError};
use crate::manifest::{JSON_NAME, YAML_NAME};
use crate::ops::{CommandError, Session};

/// An archive that any mu will accept. It has no path; the file is deleted with this value.
#[derive(Debug)]
pub struct PackedArchive {
    file: File,
    /// Bytes of the archive.
    pub size: u64,
    /// The digest of the archive.
    pub archive: ArchiveDigest,
    /// What is in it.
    pub tree: Tree,
}

impl PackedArchive {
    /// Packs `items`, which are sorted by the bytes of their paths; errors name the archive `name`.
    pub(super) fn make(
        session: &Session,
        name: &str,
        items: &[PackageItem],
    ) -> Result<Self, CommandError> {
        let cache = &session.environment.cache;
        fs::create_folder(cache)?;
        let file = tempfile::tempfile_in(cache).at("write a file in", cache)?;
        // Hashed on its way to the disk, because it may be too large to be in memory.
        let hashing = Hashing { into: BufWriter::new(file), hash: Sha256::new(), size: 0 };
        let mut writer = ArchiveWriter::new(hashing);
        let is_manifest = |item: &&PackageItem| [YAML_NAME, JSON_NAME].contains(&&*item.path);
        // Hubs look for it there. Where it is early anyway, it stays in its place, so that archives keep their digests.
        let late = items.iter().skip(EARLY).find(is_manifest);
        if let Some(manifest) = late {
            add(&mut writer, manifest, true)?;
        }
        for item in items.iter().filter(|item| late.is_none_or(|late| late.path != item.path)) {
            add(&mut writer, item, false)?;
        }
        let finished = writer.finish().and_then(|hashing| {
            let Hashing { into, hash, size } = hashing;
            let mut file = into.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            Ok((file, ArchiveDigest::from_bytes(hash.finalize().into()), size))
        });
        let (file, archive, size) = finished.at("write a file in", cache)?;
        // What nobody can unpack is not published. What is unpacked here also says the digest of the content, which the
        // index line has.
        let _store = session.use_store()?;
        let tree = session.store.inspect(|tree| {
            let reader = BufReader::with_capacity(256 << 10, &file);
            unpack_from(reader, size, ArchiveLayout::Files, tree).map_err(|error| error.at(name))
        });
        let tree = tree.map_err(|error| {
            CommandError::from(error)
                .while_doing("the package cannot be packed: nobody could unpack it")
                .hint("rename or remove the file, or exclude it with a line in `.muignore`")
        })?;
        Ok(Self { file, size, archive, tree })
    }

    /// Reads the bytes from the start.
    pub fn read(&self) -> io::Result<impl io::Read + '_> {
        let mut file = &self.file;
        file.rewind()?;
        Ok(file)
    }

    /// All bytes of the archive.
    #[cfg(feature = "publish")]
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::new();
        let read = self.read().and_then(|mut file| io::Read::read_to_end(&mut file, &mut bytes));
        read.at("read the archive for", Path::new("publishing"))?;
        Ok(bytes)
    }

    /// Writes the archive to `path`.
    pub(in crate::ops::publication) fn save(&self, path: &Path) -> Result<(), FileError> {
        let mut bytes = self.read().at("read the archive for", path)?;
        fs::copy_atomic(path, &mut bytes)
    }
}

fn add(
    writer: &mut ArchiveWriter<impl Write>,
    item: &PackageItem,
    is_first: bool,
) -> Result<(), FileError> {
    let path = &item.path;
    if is_first {
        writer.any_first();
    }
    match &item.content {
        Content::File { executable, recorded: Some(content), .. } => {
            let (size, content) = (content.len() as u64, &**content);
            writer.file(path, *executable, size, content).at("pack", path.as_ref())
        }
        Content::File { place, executable, recorded: None } => {
            let file = fs::open(place)?;
            let size = file.metadata().at("read", place)?.len();
            writer.file(path, *executable, size, file).at("pack", place)
        }
        Content::Text(text) => {
            writer.file(path, false, text.len() as u64, text.as_bytes()).at("pack", path.as_ref())
        }
        Content::Link(target) => writer.add_symlink(path, target).at("pack", path.as_ref()),
    }
}

/// Hashes and counts the bytes that it passes on.
struct Hashing<W> {
    into: W,
    hash: Sha256,
    size: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.into.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}
