//! What a build depends on, as one key: the same key gives the same result, so it is not built again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mu_provider::http::TOKEN_PREFIX;
use mu_provider::{Digest, FileDigest};
use sha2::{Digest as _, Sha256};

use crate::lock::LockedPackage;
use crate::manifest::BuildRecipe;
use crate::ops::build::confine::{EPOCH, SYSTEM};
use crate::ops::{Code, CommandError, Session};
use crate::packs::hash_file;

/// The variables that a build gets, except for those that name its own folders.
///
/// # Errors
///
/// When one that the manifest names is not set, or has a token of mu's.
pub(super) fn build_environment(
    session: &Session,
    package: &LockedPackage,
    build: &BuildRecipe,
) -> Result<BTreeMap<String, String>, CommandError> {
    let mut all = BTreeMap::new();
    // Not even with consent: a token would be for everything that the user may do there.
    if let Some(name) = build.env.iter().find(|name| is_token(name)) {
        let message = format!(
            "the build of `{}` {} wants the environment variable `{name}`, and mu never hands over its tokens",
            package.id, package.version
        );
        return Err(CommandError::new(Code::Untrusted, message)
            .hint("ask its author to take the variable out of `build: {env: […]}` in its manifest")
            .with_details(serde_json::json!({ "id": package.id.to_string(), "version": package.version, "variable": name })));
    }
    for name in &build.env {
        let value = session.environment.variables.get(name).ok_or_else(|| {
            let message = format!(
                "the build of `{}` needs the environment variable `{name}`, which is not set",
                package.id
            );
            CommandError::new(Code::Usage, message)
        })?;
        all.insert(name.clone(), value.clone());
    }
    let fixed = [
        ("PATH", path(session)),
        ("LC_ALL", "C".to_owned()),
        ("TZ", "UTC".to_owned()),
        ("SOURCE_DATE_EPOCH", EPOCH.to_string()),
    ];
    // After the others, so that a manifest that names one of these does not get the user's.
    all.extend(fixed.map(|(name, value)| (name.to_owned(), value)));
    Ok(all)
}

/// Whether a variable has a token of mu's. Not all systems tell letters from their capitals in these names.
fn is_token(name: &str) -> bool {
    name.to_ascii_uppercase().starts_with(TOKEN_PREFIX)
}

/// The folders of the user's path that builds can read; the usual ones, if there are none.
fn path(session: &Session) -> String {
    let known = session.environment.variables.get("PATH").map(String::as_str).unwrap_or_default();
    let is_system = |folder: &&str| SYSTEM.iter().any(|one| Path::new(folder).starts_with(one));
    let folders: Vec<&str> = known.split(':').filter(is_system).collect();
    if folders.is_empty() { "/usr/local/bin:/usr/bin:/bin".to_owned() } else { folders.join(":") }
}

/// The key of a build.
///
/// # Errors
///
/// When a program of `tools` is not there.
pub(super) fn build_key(
    digest: &Digest,
    dependencies: &BTreeMap<String, Digest>,
    build: &BuildRecipe,
    environment: &BTreeMap<String, String>,
    confined: bool,
) -> Result<String, CommandError> {
    // The key is the hash of a text, which has a line for everything that the result depends on:
    //
    //     mu-build 1
    //     tree DIGEST
    //     dependency (ID, DIGEST)
    //     command [...]
    //
    // The first line changes with the meaning of the others, so that older results are not found.
    let mut text = format!("mu-build 1\ntree {digest}\n");
    let mut add = |word: &str, value: &dyn std::fmt::Debug| {
        // Quoted, so that no value looks like another line.
        writeln!(text, "{word} {value:?}").expect("a string takes everything");
    };
    for (id, digest) in dependencies {
        add("dependency", &(id, digest.to_string()));
    }
    add("command", &build.command);
    add("outputs", &build.outputs);
    for variable in environment {
        add("variable", &variable);
    }
    add("machine", &(std::env::consts::OS, std::env::consts::ARCH));
    add("confined", &confined);
    // Of the system, only the programs that the manifest names count, by their content: all of it would change every
    // day.
    for tool in &build.tools {
        let path = find(tool, environment.get("PATH").map(String::as_str).unwrap_or_default());
        let path = path.ok_or_else(|| {
            let message = format!("the build runs `{tool}`, which is not on this machine");
            CommandError::new(Code::NotFound, message)
                .hint("install it in a folder of the system, such as /usr/local/bin: builds see no other programs")
        })?;
        add("tool", &(tool, hash_file(&path)?.0.to_string()));
    }
    Ok(FileDigest::from_bytes(Sha256::digest(text).into()).to_string())
}

fn find(tool: &str, path: &str) -> Option<PathBuf> {
    path.split(':').map(|folder| Path::new(folder).join(tool)).find(|path| path.is_file())
}
