//! Packs the archive of a chart in a folder, as `helm package` would. The caller decides which files are left
//! out.

use std::io;
use std::path::{Path, PathBuf};

use mu_provider::fs::{self, AtPath as _, FileError};
use mu_provider_hub::archive::ArchiveWriter;

/// Packs a chart called `name` from its files, by their paths in it, with slashes. The same files give the
/// same bytes.
///
/// # Errors
///
/// When a file cannot be read.
pub fn pack(name: &str, files: &[(String, PathBuf)]) -> Result<Vec<u8>, FileError> {
    let mut files: Vec<(String, &Path)> =
        files.iter().map(|(path, place)| (format!("{name}/{path}"), &**place)).collect();
    files.sort();
    let mut writer = ArchiveWriter::new(Vec::new());
    for (path, place) in files {
        let file = fs::open(place)?;
        let size = file.metadata().at("read", place)?.len();
        writer.file(&path, false, size, io::BufReader::new(file)).at("pack", place)?;
    }
    writer.finish().at("pack", Path::new(name))
}
