//! Packs the archive of a chart, as `helm package` would. The caller decides which files belong to it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mu_provider::fs::{self, AtPath as _, FileError};
use mu_provider_hub::archive::ArchiveWriter;

/// What is in a file of an archive.
#[derive(Debug, Clone)]
pub enum Content {
    /// What is in this file.
    OnDisk(PathBuf),
    /// What was made, such as the archive of a chart inside.
    Made(Rc<[u8]>),
}

/// Packs a chart called `name` from its files, by their paths in it, with slashes. The same files give the
/// same bytes.
///
/// # Errors
///
/// When a file cannot be read.
pub fn pack(name: &str, files: &BTreeMap<String, Content>) -> Result<Vec<u8>, FileError> {
    let mut writer = ArchiveWriter::new(Vec::new());
    for (path, content) in files {
        let path = format!("{name}/{path}");
        match content {
            Content::OnDisk(place) => {
                let file = fs::open(place)?;
                let size = file.metadata().at("read", place)?.len();
                writer.file(&path, false, size, io::BufReader::new(file)).at("pack", place)?;
            }
            Content::Made(bytes) => {
                let written = writer.file(&path, false, bytes.len() as u64, &**bytes);
                written.at("pack", Path::new(&path))?;
            }
        }
    }
    writer.finish().at("pack", Path::new(name))
}
