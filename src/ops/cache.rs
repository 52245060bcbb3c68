//! `cache` and `doctor`: what mu keeps on this machine, and whether it can work here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use schemars::JsonSchema;
use serde::Serialize;

use crate::env::{Environment, IN_CACHE};
use crate::fs::{self, AtPath as _, FileError, Lock, Sharing};
use crate::ops::{CommandError, Events};
use crate::packs::remove_orphans;
use crate::store::Store;

/// What the cache folder holds, by part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CacheSize {
    /// The bytes of all parts.
    pub total: u64,
    /// The parts (see [`IN_CACHE`]) and their bytes; a file with several names
    /// counts once.
    pub parts: BTreeMap<String, u64>,
}

/// Measures the cache folder.
///
/// # Errors
///
/// When it cannot be read.
pub fn cache_size(cache: &Path) -> Result<CacheSize, FileError> {
    let mut size = CacheSize::default();
    for entry in fs::entries_if_there(cache)? {
        let files = walkdir::WalkDir::new(entry.path()).into_iter().flatten();
        let bytes: u64 = files
            .filter(|file| file.file_type().is_file())
            .filter_map(|file| file.metadata().ok())
            .map(|metadata| metadata.len())
            .sum();
        size.total += bytes;
        size.parts.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
    }
    Ok(size)
}

/// What pruning removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pruned {
    /// Trees that no pack shares files with.
    #[serde(rename = "removed")]
    pub trees: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes trees that no pack is linked to, and partial downloads.
///
/// # Errors
///
/// When the store cannot be read or changed.
pub fn prune(store: &Store, cache: &Path, events: &dyn Events) -> Result<Pruned, CommandError> {
    let _lock = alone(store, events)?;
    let mut pruned = Pruned::default();
    let linked = store.linked()?;
    for digest in store.digests()? {
        if linked.binary_search(&digest).is_ok() {
            continue;
        }
        let Some(stored) = store.find(&digest)? else { continue };
        let is_linked =
            stored.tree.entries().iter().any(|entry| links(&stored.folder.join(&entry.path)) > 1);
        if !is_linked {
            pruned.trees += 1;
            pruned.bytes += stored.tree.size();
            store.remove(&digest)?;
        }
    }
    store.remove_unlisted()?;
    remove_orphans(cache)?;
    fs::remove_folder(&cache.join("downloads"))?;
    Ok(pruned)
}

/// Removes everything in the cache folder.
///
/// # Errors
///
/// When something cannot be removed.
pub fn clean(store: &Store, cache: &Path, events: &dyn Events) -> Result<(), CommandError> {
    // The lock's own file goes last, with the folder that it is in.
    let lock = alone(store, events)?;
    // Each part goes out of the way as a whole first: what is half removed would still be used, by links to it or by
    // another run.
    let staging = store.folder().join("staging");
    fs::create_folder(&staging)?;
    let aside = tempfile::tempdir_in(&staging).at("make a folder in", &staging)?;
    let parts = IN_CACHE.iter().map(|part| cache.join(part)).filter(|part| part != store.folder());
    let of_store = ["trees", "linked"].map(|part| store.folder().join(part));
    for (number, part) in parts.chain(of_store).enumerate() {
        fs::move_away(&part, &aside.path().join(number.to_string()))?;
    }
    fs::remove_folder(&staging)?;
    drop(lock);
    Ok(())
}

fn alone(store: &Store, events: &dyn Events) -> Result<Lock, FileError> {
    store.lock(Sharing::Exclusive, &mut || {
        events.waiting("another mu process is using the store");
    })
}

#[cfg(unix)]
fn links(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::symlink_metadata(path).map_or(0, |metadata| metadata.nlink())
}

#[cfg(not(unix))]
fn links(_path: &Path) -> u64 {
    // Where links cannot be counted, nothing counts as unused.
    2
}

/// One thing that `doctor` looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// What was looked at.
    pub subject: String,
    /// What was found.
    pub found: String,
    /// What to do, if something is wrong.
    pub advice: Option<String>,
}

/// Looks whether mu can work on this machine.
pub fn doctor(environment: &Environment) -> Vec<Finding> {
    let mut findings = vec![Finding {
        subject: "mu".to_owned(),
        found: env!("CARGO_PKG_VERSION").to_owned(),
        advice: None,
    }];
    for (subject, folder) in
        [("cache folder", environment.cache.clone()), ("global packs", environment.mu_home.clone())]
    {
        findings.push(writable(subject, folder));
    }
    let runtime = environment.mu_root.join("lib").join("packs");
    findings.push(Finding {
        subject: "runtime packs".to_owned(),
        found: format!(
            "{} ({})",
            runtime.display(),
            if runtime.is_dir() { "present" } else { "absent" }
        ),
        advice: None,
    });
    findings.push(links_work(environment));
    for (program, advice) in [
        ("git", "install git to fetch from file:// repositories quickly"),
        ("ssh", "install an ssh client to fetch from ssh:// repositories"),
    ] {
        findings.push(program_found(program, advice));
    }
    for variable in ["HTTPS_PROXY", "HTTP_PROXY", "SSL_CERT_FILE", "MU_OFFLINE"] {
        if environment.variable(variable).is_some() {
            findings.push(Finding {
                subject: variable.to_owned(),
                // Proxies may hold passwords; that they are set is all that matters here.
                found: "set".to_owned(),
                advice: None,
            });
        }
    }
    findings
}

fn writable(subject: &str, folder: PathBuf) -> Finding {
    let result = fs::create_folder(&folder)
        .and_then(|()| tempfile::tempfile_in(&folder).at("write a file in", &folder));
    let shown = folder.display().to_string();
    match result {
        Ok(_) => Finding { subject: subject.to_owned(), found: shown, advice: None },
        Err(error) => Finding {
            subject: subject.to_owned(),
            found: format!("{shown}: {}", error.reason()),
            advice: Some("make the folder writable, or set MU_CACHE_DIR and MU_HOME".to_owned()),
        },
    }
}

/// Whether packs here can share files with the store.
fn links_work(environment: &Environment) -> Finding {
    let subject = "links from the store".to_owned();
    let try_link = || -> std::io::Result<bool> {
        let from = tempfile::NamedTempFile::new_in(&environment.cache)?;
        let folder = tempfile::tempdir_in(&environment.current)?;
        Ok(fs::hard_link(from.path(), &folder.path().join("link")).is_ok())
    };
    match try_link() {
        Ok(true) => Finding { subject, found: "work in this folder".to_owned(), advice: None },
        Ok(false) => Finding {
            subject,
            found: "this folder is on another file system than the cache: packs are copied"
                .to_owned(),
            advice: Some(
                "set MU_CACHE_DIR to a folder on this file system to save space".to_owned(),
            ),
        },
        Err(error) => Finding { subject, found: format!("not known: {error}"), advice: None },
    }
}

fn program_found(program: &str, advice: &str) -> Finding {
    let version = if program == "ssh" { "-V" } else { "--version" };
    let output = Command::new(program).arg(version).output();
    match output {
        Ok(output) => {
            let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
            let text = String::from_utf8_lossy(&text);
            Finding {
                subject: program.to_owned(),
                found: text.lines().next().unwrap_or("present").to_owned(),
                advice: None,
            }
        }
        Err(_) => Finding {
            subject: program.to_owned(),
            found: "not found".to_owned(),
            advice: Some(advice.to_owned()),
        },
    }
}
