//! Repositories on this machine: read with `git upload-pack` if Git is installed, and otherwise with libgit2, like bundles, which
//! are files from `git bundle create`.
//!
//! libgit2's own local transport copies whole histories; this only packs the requested commits. It is still slower than Git. A
//! bundle is unpacked into a temporary repository for the duration of the conversation. Bundles that depend on commits that they
//! do not contain are refused.

use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid, Repository, RepositoryOpenFlags};
use mu_provider::{ErrorKind, ProviderError, fs};
use tempfile::TempDir;

use super::pipe::{self, Ending};
use super::session::{Receive, ReceiveError, Session, describe, not_a_repository};
use crate::pack::Scanned;
use crate::programs::GitPrograms;
use crate::remote_url::RemoteUrl;
use crate::stand_in::Place;
use crate::wire::{Advertisement, Boundary, Depth, FetchRequest, WireError};
use crate::words::printable;

/// Begins a conversation with a repository of this machine.
pub(super) fn open(
    remote: &RemoteUrl,
    programs: &GitPrograms,
) -> Result<Box<dyn Session>, ProviderError> {
    let path = remote.folder().ok_or_else(|| not_a_repository(remote))?;
    if is_git_bundle(&path) {
        return open_bundle(remote, &path);
    }
    let folder = Some(path).filter(|folder| is_repository(folder));
    let folder = folder.ok_or_else(|| not_a_repository(remote))?;
    let opened = programs.git().and_then(|mut command| {
        // A reader who can read everything may also request commits without files.
        command
            .args(["-c", "uploadpack.allowFilter=true", "upload-pack", "--"])
            .arg(&folder)
            .env("GIT_PROTOCOL", "version=2");
        // A partial clone fetches what it lacks from where its configuration says, which mu does not let it. If that is a
        // repository on this machine, its objects are here.
        if let Some(objects) = promised(&folder) {
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        }
        pipe::open(remote, command, explain)
    });
    match opened {
        Ok(session) => session,
        Err(error) if error.kind() == io::ErrorKind::NotFound => open_without_git(remote, &folder),
        Err(error) => {
            Err(ProviderError::new(ErrorKind::Io, format!("cannot run `git` to read `{remote}`"))
                .because(error))
        }
    }
}

/// The objects of the repository on this machine that a partial clone in a folder was made from.
fn promised(folder: &Path) -> Option<PathBuf> {
    let place = Place::of(folder)?;
    let url = place.promisor()?;
    let other = PathBuf::from(url.strip_prefix("file://").unwrap_or(&url));
    let other = Place::of(&other).filter(|_| other.is_absolute())?;
    Some(other.common.join("objects"))
}

/// Whether a folder looks like a repository, bare or with a working tree.
fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists()
        || (folder.join("HEAD").is_file() && folder.join("objects").is_dir())
}

fn explain(remote: &RemoteUrl, ending: Ending) -> ProviderError {
    let Ending { words, error, .. } = ending;
    let place = || remote.folder().and_then(|folder| Place::of(&folder));
    let lacks = error.to_string().contains("repository corruption");
    if let Some(url) = place().filter(|_| lacks).and_then(|place| place.promisor()) {
        let url = mu_provider::place_without_secrets(&url);
        let text = format!("the Git repository `{remote}` is a partial clone, which lacks files");
        return ProviderError::new(ErrorKind::Io, text).because(error).hint(format!(
            "name the repository that it was cloned from: `{}`",
            printable(url.as_bytes())
        ));
    }
    if !matches!(error, WireError::Cut | WireError::Io(_)) {
        return describe(remote, error);
    }
    if words.contains("dubious ownership") {
        let text = format!("the Git repository `{remote}` belongs to another user");
        let failure = ProviderError::new(ErrorKind::Refused, text).because(words);
        // What Git wants named is not the checkout, but the repository in it.
        let Some(place) = place() else { return failure };
        let own = printable(place.own.display().to_string().as_bytes());
        return failure.hint(format!(
            "if you trust its owner: `git config --global --add safe.directory '{own}'`"
        ));
    }
    let reason = if words.is_empty() { error.to_string() } else { words };
    ProviderError::new(ErrorKind::Io, format!("cannot read the Git repository `{remote}`"))
        .because(reason)
}

struct Local {
    remote: RemoteUrl,
    repository: Repository,
    /// The folder of the repository during the conversation, if it comes from a bundle.
    _unpacked: Option<TempDir>,
}

mu_provider::debug_fields!(Local { remote });

/// Opens the repository in `folder`.
fn open_without_git(remote: &RemoteUrl, folder: &Path) -> Result<Box<dyn Session>, ProviderError> {
    let none: [&Path; 0] = [];
    let repository = Repository::open_ext(folder, RepositoryOpenFlags::NO_SEARCH, none)
        .map_err(|error| failed(remote, error))?;
    Ok(Box::new(Local { remote: remote.clone(), repository, _unpacked: None }))
}

/// Opens the repository that is in a bundle.
fn open_bundle(remote: &RemoteUrl, path: &Path) -> Result<Box<dyn Session>, ProviderError> {
    let unpacked = TempDir::new().map_err(|error| {
        let text = format!("cannot create a temporary folder to read `{remote}`");
        ProviderError::new(ErrorKind::Io, text).because(error)
    })?;
    let repository = unpack(remote, path, unpacked.path())?;
    Ok(Box::new(Local { remote: remote.clone(), repository, _unpacked: Some(unpacked) }))
}

fn failed(remote: &RemoteUrl, error: git2::Error) -> ProviderError {
    let kind = match error.code() {
        git2::ErrorCode::NotFound => ErrorKind::NotFound,
        git2::ErrorCode::Owner => ErrorKind::Refused,
        _ => ErrorKind::Io,
    };
    ProviderError::new(kind, format!("cannot read the Git repository `{remote}`")).because(error)
}

impl Local {
    fn text(&self) -> Result<String, git2::Error> {
        let mut text = String::new();
        if let Ok(head) = self.repository.head()
            && let Some(commit) = head.target()
        {
            text.push_str(&format!("{commit} HEAD"));
            if let Some(name) = head.name().ok().filter(|_| head.is_branch()) {
                text.push_str(&format!(" symref-target:{name}"));
            }
            text.push('\n');
        }
        for reference in self.repository.references()? {
            let reference = reference?.resolve()?;
            let (Ok(name), Some(target)) = (reference.name(), reference.target()) else { continue };
            let commit = reference.peel(ObjectType::Any)?.id();
            text.push_str(&format!("{target} {name} peeled:{commit}\n"));
        }
        Ok(text)
    }

    fn pack(&self, request: &FetchRequest) -> Result<(Boundary, Vec<u8>), git2::Error> {
        let mut builder = self.repository.packbuilder()?;
        let mut boundary = Boundary::default();
        let mut walk = self.repository.revwalk()?;
        for want in &request.wants {
            let object = self.repository.find_object(*want, None)?;
            if object.kind() == Some(ObjectType::Tag) {
                builder.insert_object(object.id(), None)?;
            }
            let commit = object.peel_to_commit()?;
            walk.push(commit.id())?;
            if request.depth == Depth::One {
                builder.insert_commit(commit.id())?;
                boundary.shallow.extend((commit.parent_count() > 0).then_some(commit.id()));
            }
        }
        if request.depth == Depth::Whole {
            builder.insert_walk(&mut walk)?;
            boundary.unshallow.clone_from(&request.shallow);
        }
        let mut pack = Vec::new();
        builder.foreach(|bytes| {
            pack.extend_from_slice(bytes);
            true
        })?;
        Ok((boundary, pack))
    }
}

impl Session for Local {
    fn advertisement(&mut self, _prefix: Option<&str>) -> Result<Advertisement, ProviderError> {
        let text = self.text().map_err(|error| failed(&self.remote, error))?;
        Advertisement::parse(&text).map_err(|error| describe(&self.remote, error))
    }

    fn gives_any_commit(&self) -> bool {
        true
    }

    fn gives_commits_only(&self) -> bool {
        false
    }

    fn fetch(
        &mut self,
        request: &FetchRequest,
        receive: &mut Receive<'_>,
    ) -> Result<(), ProviderError> {
        let (boundary, pack) = self.pack(request).map_err(|error| failed(&self.remote, error))?;
        receive(&boundary, &mut pack.as_slice()).map_err(|error| match error {
            ReceiveError::Source(error) => describe(&self.remote, error.into()),
            ReceiveError::Refused(error) => error,
        })
    }

    fn is_open(&self) -> bool {
        true
    }
}

/// The possible first lines of a bundle.
const SIGNATURES: [&str; 2] = ["# v2 git bundle", "# v3 git bundle"];

/// No line of a header is longer, because names of refs have at most 4,096 bytes everywhere.
const LONGEST_LINE: usize = 8 << 10;

/// The largest result of a delta in bytes, as for other packs.
const LARGEST: u64 = 1 << 30;

/// How many branches and tags a bundle may have, as a server.
const MOST_REFS: usize = 500_000;

/// Whether a file is a bundle.
fn is_git_bundle(path: &Path) -> bool {
    fs::open(path).is_ok_and(|file| {
        line(&mut BufReader::new(file)).is_ok_and(|line| SIGNATURES.contains(&line.as_str()))
    })
}

/// Unpacks a bundle into the new repository `into`.
fn unpack(remote: &RemoteUrl, bundle: &Path, into: &Path) -> Result<Repository, ProviderError> {
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
