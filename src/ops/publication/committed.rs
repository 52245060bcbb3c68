//! Whether what is packed is what the checked-out commit has: each file as it is there, and each file of the package.
//!
//! Only the archive says which files these are. What the rules of the repository leave out, and a `.muignore` includes, is built, and
//! not committed; what a user's own settings of Git ignore is not there for others. A submodule has a commit of its own, which the commit
//! around it names.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mu_provider::{Commit, Mode};
use mu_provider_git::{Checkout, Surroundings, SurroundingsError, is_missing_or_empty};

use crate::contents::rules::Rules;
use crate::contents::{Owned, Source, would_choose};
use crate::lock::FILE_NAME;
use crate::ops::publication::packing::{Packed, folders_of_this_machine, source_of};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::solve::names::checkout_command;
use crate::ops::{Code, CommandError, Session};
use crate::workspace::Member;
use crate::workspace::root::local_git;
use crate::{formats, fs};

/// The most files that are named.
const SHOWN: usize = 5;

/// The commit that contains everything packed of a member, if its folder is in a checkout.
pub(super) fn packed_commit(
    session: &Session,
    member: &Member,
    packed: &Packed,
    allow_dirty: bool,
) -> Result<Option<Commit>, CommandError> {
    let found = match compare(session, member, packed) {
        Err(_) if allow_dirty => None,
        found => found?,
    };
    let Some((commit, found)) = found else { return Ok(None) };
    let Differences { differing, absent, empty } = found;
    if differing.is_empty() && absent.is_empty() && empty.is_empty() {
        return Ok(commit);
    }
    if allow_dirty {
        return Ok(None);
    }
    // First what explains the rest: a submodule without files lacks each of them.
    let (name, folder) = (&packed.manifest.name, &member.folder);
    if let Some(EmptySubmodule { path, within, inner }) = empty.first() {
        let message = format!(
            "`{name}` would be published without the files of a submodule that is not checked out: `{path}`"
        );
        let command = checkout_command(&session.environment, within, inner);
        return Err(CommandError::new(Code::Conflict, message)
            .hint(format!("`git {command}` checks it out; `--allow-dirty` publishes without it")));
    }
    if !differing.is_empty() {
        let differing: Vec<String> = differing.into_iter().collect();
        let message = format!(
            "`{name}` would be published with changes that are not committed: {}",
            some_of(&differing)
        );
        return Err(CommandError::new(Code::Conflict, message)
            .hint("commit them first, or publish with `--allow-dirty`")
            .with_details(serde_json::json!({ "files": differing })));
    }
    let message = format!(
        "`{name}` would be published without files that this sparse checkout leaves out: {}",
        some_of(&absent)
    );
    let first = absent.first().and_then(|path| path.rsplit_once('/'));
    let within = first.map_or_else(|| folder.to_owned(), |(within, _)| folder.join(within));
    let within = quoted_for_shell(&within.display().to_string());
    Err(CommandError::new(Code::Conflict, message)
        .hint(format!(
            "`git sparse-checkout add {within}` brings them; `--allow-dirty` publishes without them"
        ))
        .with_details(serde_json::json!({ "files": absent })))
}

/// The first files of a list, and how many more there are.
fn some_of(files: &[String]) -> String {
    let mut names: Vec<String> =
        files.iter().take(SHOWN).map(|path| format!("`{}`", quoted_for_shell(path))).collect();
    if files.len() > SHOWN {
        names.push(format!("{} more", files.len() - SHOWN));
    }
    names.join(", ")
}

/// How what is packed differs from the commit.
#[derive(Default)]
struct Differences {
    /// Paths that differ, or that only one of the two has.
    differing: BTreeSet<String>,
    /// Files that a sparse checkout leaves out.
    absent: Vec<String>,
    /// Submodules that are not checked out.
    empty: Vec<EmptySubmodule>,
}

/// A submodule that is not checked out.
struct EmptySubmodule {
    /// Its path in the package.
    path: String,
    /// A folder in the checkout around it, and its path there.
    within: PathBuf,
    inner: String,
}

/// Compares what is packed of `member` with the commit that is checked out there; `None` if its folder is in no checkout.
fn compare(
    session: &Session,
    member: &Member,
    packed: &Packed,
) -> Result<Option<(Option<Commit>, Differences)>, CommandError> {
    let folder = fs::canonicalize(&member.folder)?;
    let Some(checkout) = checkout_around(session, &folder)? else { return Ok(None) };
    let (absent, skipped) = left_out_files(session, &folder)?;
    let owned = Owned::around(&member.folder, &session.environment)?;
    let others = folders_of_this_machine(session);
    let entries = packed.archive.tree.entries().iter();
    let mut comparing = Comparing {
        session,
        source: source_of(member, &owned, &others),
        folder,
        packed: entries.map(|entry| (&*entry.path, entry.mode)).collect(),
        skipped,
        found: Differences { absent, ..Differences::default() },
        elsewhere: BTreeMap::new(),
    };
    comparing.compare("", &checkout)?;
    Ok(Some((checkout.commit, comparing.found)))
}

struct Comparing<'a> {
    session: &'a Session,
    source: Source<'a>,
    /// The package's folder, without links in its path.
    folder: PathBuf,
    packed: BTreeMap<&'a str, Mode>,
    /// The files that a sparse checkout leaves out, also those of packages inside.
    skipped: BTreeSet<String>,
    found: Differences,
    /// The checkouts around folders that links lead to.
    elsewhere: BTreeMap<PathBuf, Option<Checkout>>,
}

impl Comparing<'_> {
    /// Compares what is in the folder whose paths begin with `prefix`: the package's, or a submodule in it.
    fn compare(&mut self, prefix: &str, checkout: &Checkout) -> Result<(), CommandError> {
        let changed = checkout.changed.iter().map(|path| format!("{prefix}{path}"));
        self.found.differing.extend(changed.filter(|path| self.packed.contains_key(&**path)));
        let submodules = self.submodules(prefix, checkout)?;
        let is_elsewhere = |path: &str| submodules.iter().any(|inside| path.starts_with(inside));
        let packed: Vec<(&str, &str, Mode)> = (self.packed.iter())
            .filter_map(|(path, mode)| Some((*path, path.strip_prefix(prefix)?, *mode)))
            .collect();
        for (path, inner, mode) in packed {
            // Of the lock, a part is written anew.
            if path != FILE_NAME
                && !is_elsewhere(path)
                && !self.is_committed(path, inner, mode, checkout)?
            {
                self.found.differing.insert(path.to_owned());
            }
        }
        for inner in &checkout.files {
            let path = format!("{prefix}{inner}");
            let is_there = || {
                let found = fs::symlink_metadata(&self.folder.join(&path));
                found.is_ok_and(|found| !found.is_dir())
            };
            if !self.packed.contains_key(&*path)
                && !self.skipped.contains(&path)
                && !is_there()
                && would_choose(&self.source, &path, false)?
            {
                self.found.differing.insert(path);
            }
        }
        Ok(())
    }

    /// Compares the submodules of a folder whose paths begin with `prefix`; returns with what the paths in those begin that are checked out.
    fn submodules(
        &mut self,
        prefix: &str,
        checkout: &Checkout,
    ) -> Result<Vec<String>, CommandError> {
        let mut checked_out = Vec::new();
        for (inner, commit) in &checkout.submodules {
            let path = format!("{prefix}{inner}");
            let (inside, place) = (format!("{path}/"), self.folder.join(&path));
            let is_packed = self.packed.keys().any(|packed| packed.starts_with(&inside));
            if !is_packed && !would_choose(&self.source, &path, true)? {
                continue;
            }
            let own = match is_missing_or_empty(&place) {
                true => None,
                false => checkout_around(self.session, &place)?,
            };
            let Some(own) = own.filter(|own| own.root == place) else {
                // Files without a checkout of their own are in no commit, which is seen of each.
                if !is_packed {
                    let (within, inner) = (self.folder.join(prefix), inner.clone());
                    self.found.empty.push(EmptySubmodule { path, within, inner });
                }
                continue;
            };
            if own.commit.as_ref() != Some(commit) {
                self.found.differing.insert(path);
            }
            self.compare(&inside, &own)?;
            checked_out.push(inside);
        }
        Ok(checked_out)
    }

    /// Whether the file at `path` in the package, which is `inner` in the folder of `checkout`, is in a commit. What has changed since is
    /// known from elsewhere.
    fn is_committed(
        &mut self,
        path: &str,
        inner: &str,
        mode: Mode,
        checkout: &Checkout,
    ) -> Result<bool, CommandError> {
        let place = self.folder.join(path);
        let real = fs::canonicalize(&place).ok();
        let linked = real.filter(|real| mode != Mode::Symlink && *real != place);
        let Some(real) = linked else {
            return Ok(checkout.files.contains(inner) || is_built(&checkout.root, &place)?);
        };
        // The link must be in the commit, and what it leads to.
        let is_same = |path: &str, checkout: &Checkout| {
            checkout.files.contains(path) && !checkout.changed.iter().any(|other| other == path)
        };
        let around = inner.match_indices('/').map(|(end, _)| &inner[..end]);
        if !around.chain([inner]).any(|way| is_same(way, checkout)) {
            return is_built(&checkout.root, &place);
        }
        let name = real.file_name().and_then(|name| name.to_str());
        let (Some(folder), Some(name)) = (real.parent(), name) else { return Ok(false) };
        if !self.elsewhere.contains_key(folder) {
            let found = checkout_around(self.session, folder)?;
            self.elsewhere.insert(folder.to_owned(), found);
        }
        let Some(Some(there)) = self.elsewhere.get(folder) else { return Ok(false) };
        Ok(is_same(name, there) || is_built(&there.root, &real)?)
    }
}

/// Whether a file is one that nobody commits: the rules leave it out that everybody has, and the package has it all the same.
fn is_built(root: &Path, file: &Path) -> Result<bool, CommandError> {
    Ok(Rules::of_everybody(root)?.leave_out_on_the_way(root, file, false)?)
}

fn checkout_around(session: &Session, folder: &Path) -> Result<Option<Checkout>, CommandError> {
    let found = Checkout::around(folder, &local_git(&session.environment));
    found.map_err(|error| unknown(folder, error))
}

/// The files of a folder that a sparse checkout leaves out, without those of packages inside; and with them.
fn left_out_files(
    session: &Session,
    folder: &Path,
) -> Result<(Vec<String>, BTreeSet<String>), CommandError> {
    let skipped = RefCell::new(BTreeSet::new());
    let note = |path: &str| {
        skipped.borrow_mut().insert(path.to_owned());
        false
    };
    let local = local_git(&session.environment);
    let found = Surroundings::not_checked_out(folder, &note, &local);
    found.map_err(|error| unknown(folder, error))?;
    let mut skipped = skipped.into_inner();
    skipped.retain(|path| !folder.join(path).exists());
    // A package inside this one is published by itself.
    let is_inner = |path: &str| {
        path.match_indices('/').any(|(end, _)| {
            let manifests =
                formats::manifest_names().map(|name| format!("{}/{name}", &path[..end]));
            manifests
                .into_iter()
                .any(|path| skipped.contains(&path) || folder.join(&path).is_file())
        })
    };
    let absent = skipped.iter().filter(|path| !is_inner(path)).cloned().collect();
    Ok((absent, skipped))
}

fn unknown(folder: &Path, error: SurroundingsError) -> CommandError {
    let what = format!("cannot tell whether `{}` is committed", folder.display());
    CommandError::from_error(Code::Io, error)
        .while_doing(what)
        .hint("`--allow-dirty` publishes without this check")
}
