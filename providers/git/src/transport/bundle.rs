//! Bundles: files from `git bundle create`, read as the repositories in them.
//!
//! A bundle is unpacked into a temporary repository for the duration of the conversation. Bundles that depend
//! on commits that they do not contain are refused.

use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;

use git2::{Oid, Repository};
use mu_provider::{ErrorKind, ProviderError, fs};

use crate::pack::Scanned;
use crate::remote_url::RemoteUrl;

/// The possible first lines of a bundle.
const SIGNATURES: [&str; 2] = ["# v2 git bundle", "# v3 git bundle"];

/// No line of a header is longer, because names of refs have at most 4,096 bytes everywhere.
const LONGEST_LINE: usize = 8 << 10;

/// The largest result of a delta in bytes, as for other packs.
const LARGEST: u64 = 1 << 30;

/// How many branches and tags a bundle may have, as a server.
const MOST_REFS: usize = 500_000;

/// Whether a file is a bundle.
pub(super) fn is_git_bundle(path: &Path) -> bool {
    fs::open(path).is_ok_and(|file| {
        line(&mut BufReader::new(file)).is_ok_and(|line| SIGNATURES.contains(&line.as_str()))
    })
}

/// Unpacks a bundle into the new repository `into`.
pub(super) fn unpack(
    remote: &RemoteUrl,
    bundle: &Path,
    into: &Path,
) -> Result<Repository, ProviderError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        ProviderError::new(ErrorKind::Io, format!("cannot read the Git bundle `{remote}`"))
            .because(error)
    };
    let io_failed = |error: io::Error| failed(error.into());
    let git_failed = |error: git2::Error| failed(error.into());
    let mut reader = BufReader::new(fs::open(bundle).map_err(|error| failed(error.into()))?);
    let refs = header(&mut reader).map_err(failed)?;
    let repository = Repository::init_bare(into).map_err(git_failed)?;
    {
        let database = repository.odb().map_err(git_failed)?;
        let mut pack = database.packwriter().map_err(git_failed)?;
        io::copy(&mut Scanned::new(reader, LARGEST), &mut pack).map_err(io_failed)?;
        pack.flush().map_err(io_failed)?;
        pack.commit().map_err(git_failed)?;
    }
    set_refs(&repository, &refs).map_err(git_failed)?;
    Ok(repository)
}

/// Reads up to the empty line before the pack: the refs, and the objects that they point to.
fn header(
    reader: &mut impl BufRead,
) -> Result<Vec<(Oid, String)>, Box<dyn std::error::Error + Send + Sync>> {
    line(reader)?;
    let mut refs = Vec::new();
    loop {
        let line = line(reader)?;
        if line.is_empty() {
            return Ok(refs);
        }
        if line.starts_with('-') {
            return Err("it needs commits that it does not contain; create it with `--all`".into());
        }
        if let Some(capability) = line.strip_prefix('@') {
            if capability != "object-format=sha1" {
                return Err(format!(
                    "it needs `{}`",
                    crate::words::printable(capability.as_bytes())
                )
                .into());
            }
            continue;
        }
        if refs.len() == MOST_REFS {
            return Err(format!("it has more than {MOST_REFS} branches and tags").into());
        }
        let (target, name) = line.split_once(' ').ok_or("its header is damaged")?;
        refs.push((Oid::from_str(target)?, name.to_owned()));
    }
}

/// Creates the refs. HEAD becomes a branch that points to the same commit, preferably `main`.
fn set_refs(repository: &Repository, refs: &[(Oid, String)]) -> Result<(), git2::Error> {
    for (target, name) in refs.iter().filter(|(_, name)| name.starts_with("refs/")) {
        repository.reference(name, *target, true, "from a bundle")?;
    }
    let Some((head, _)) = refs.iter().find(|(_, name)| name == "HEAD") else {
        return Ok(());
    };
    let branches =
        || refs.iter().filter(|(target, name)| target == head && name.starts_with("refs/heads/"));
    let usual = |name: &str| name == "refs/heads/main" || name == "refs/heads/master";
    match branches().find(|(_, name)| usual(name)).or_else(|| branches().next()) {
        Some((_, name)) => repository.set_head(name),
        None => repository.set_head_detached(*head),
    }
}

/// Reads a line of the header, without its end.
fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut limited = io::Read::take(reader, LONGEST_LINE as u64);
    limited.read_until(b'\n', &mut bytes)?;
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "its header is damaged");
    if bytes.pop() != Some(b'\n') {
        return Err(damaged());
    }
    String::from_utf8(bytes).map_err(|_| damaged())
}
