//! What a program made, as a tar. It runs where the program ran, and decides nothing: the mu outside judges each entry, as of every archive.
//!
//! It follows no link, and sends what is neither file nor link as a pipe, so that it is refused and not passed over.

use std::io::{self, Read as _, Write};
use std::path::Path;

use mu_provider::{Folder, InnerPath, Kind, Limits};

use crate::fs;

/// The outputs of a program, found.
pub(super) struct Outputs {
    tree: Folder,
    found: Vec<(String, Kind)>,
    /// The size of all files together.
    pub(super) bytes: u64,
}

impl Outputs {
    /// Finds what is in `outputs` below the folder `tree`. If nothing else runs there, it `opens` what it could not read.
    pub(super) fn find(tree: &Path, outputs: &[InnerPath], opens: bool) -> io::Result<Self> {
        let mut walk = Walk { outputs, opens, found: Vec::new(), bytes: 0 };
        let folder = Folder::open(tree)?;
        walk.folder(&folder, "")?;
        Ok(Self { tree: folder, found: walk.found, bytes: walk.bytes })
    }

    /// Sends them.
    pub(super) fn write(&self, into: impl Write) -> io::Result<()> {
        let mut tar = tar::Builder::new(into);
        for (path, kind) in &self.found {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_size(0);
            match kind {
                Kind::Symlink => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    tar.append_link(&mut header, path, self.tree.read_link(path)?)?;
                }
                Kind::File => {
                    // The size is in front of the content, so exactly so many bytes have to follow.
                    let (file, metadata) = self.tree.open_file(path)?;
                    header.set_mode(if fs::is_executable(&metadata) { 0o755 } else { 0o644 });
                    header.set_size(metadata.len());
                    tar.append_data(&mut header, path, file.take(metadata.len()))?;
                }
                Kind::Folder | Kind::Other => {
                    header.set_entry_type(tar::EntryType::Fifo);
                    tar.append_data(&mut header, path, io::empty())?;
                }
            }
        }
        tar.into_inner()?.flush()
    }
}

struct Walk<'run> {
    outputs: &'run [InnerPath],
    opens: bool,
    found: Vec<(String, Kind)>,
    bytes: u64,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Folder, above: &str) -> io::Result<()> {
        let limits = Limits::default();
        for name in folder.names()? {
            let path = match above {
                "" => name.to_string_lossy().into_owned(),
                above => format!("{above}/{}", name.to_string_lossy()),
            };
            // Only what is an output, or is on the way to one, is looked at.
            let is_made = self.outputs.iter().any(|output| is_in_output(&path, output.as_str()));
            if !is_made && !self.outputs.iter().any(|output| is_in_output(output.as_str(), &path)) {
                continue;
            }
            let refused = |why: &str| Err(io::Error::other(format!("`{path}` {why}")));
            let Some(name) = name.to_str() else { return refused("is not UTF-8") };
            // The limits are those of every archive. The mu outside checks them, too; here they only end a walk that
            // has no end.
            match folder.kind(name).unwrap_or(Kind::Other) {
                Kind::Folder if path.matches('/').count() >= limits.depth => {
                    return refused("is in too many folders");
                }
                Kind::Folder => {
                    self.open(folder, name, 0o700)?;
                    self.folder(&folder.open_folder(name)?, &path)?;
                }
                _ if !is_made => {}
                _ if self.found.len() >= limits.entries => {
                    return refused("is one file too many");
                }
                kind => {
                    if kind == Kind::File {
                        self.open(folder, name, 0o400)?;
                        self.bytes += folder.size_and_time(name).map_or(0, |(size, _)| size);
                    }
                    self.found.push((path, kind));
                }
            }
        }
        Ok(())
    }

    /// Gives this user these rights to something that the program may have kept for nobody.
    fn open(&self, folder: &Folder, name: &str, rights: u32) -> io::Result<()> {
        #[cfg(unix)]
        if self.opens {
            use std::os::unix::fs::PermissionsExt as _;

            let path = folder.path().join(name);
            let metadata = fs::symlink_metadata(&path).map_err(io::Error::other)?;
            let mode = metadata.permissions().mode() & 0o777;
            if mode & rights != rights {
                let permissions = std::fs::Permissions::from_mode(mode | rights);
                fs::set_permissions(&path, permissions).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }
}

/// Whether a path is an output, or is in one.
pub(in crate::ops::build) fn is_in_output(path: &str, output: &str) -> bool {
    path == output || path.strip_prefix(output).is_some_and(|rest| rest.starts_with('/'))
}
