//! `vendor --for olm`: a subscription for each operator of Mu.lock, at exactly the version that it has there.
//!
//! What is written is for OLM in a cluster, with its own names of catalogs. mu applies nothing.

use std::collections::BTreeSet;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::fs;
use crate::lock::LockedPackage;
use crate::ops::apply::install::install;
use crate::ops::solve::names;
use crate::ops::solve::resolve::resolve;
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::select::Update;

/// The folder of the subscriptions, in the root of the workspace.
pub const FOLDER: &str = "olm";

/// The first line of what mu writes there; other files are left alone.
const HEADER: &str = "# Written by `mu vendor --for olm`; do not edit.\n";

/// The provider whose packages are operators.
const PROVIDER: &str = "olm";

/// What `mu vendor --for olm` wrote.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscribed {
    /// The subscriptions, one for each operator.
    pub subscriptions: Vec<Subscription>,
    /// Files that were removed, because their operator is no longer in Mu.lock.
    pub removed: Vec<String>,
}

/// The subscription of one operator.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// The operator.
    pub id: String,
    /// Its version in Mu.lock.
    pub version: String,
    /// Its bundle, at which the subscription begins.
    pub bundle: String,
    /// Its channel.
    pub channel: String,
    /// The catalog in the cluster.
    pub source: String,
    /// The file, seen from the root of the workspace.
    pub file: String,
    /// Whether it was not there before, or was another one.
    pub changed: bool,
}

/// Installs what the workspace needs, and writes a subscription for each operator of the lock. Also returns what became of the
/// packs.
///
/// # Errors
///
/// As [`install`]; when no operator is locked, or two have one name, or one is in no channel; when something else is in the
/// place of a file.
pub fn subscribe(session: &Session, dry_run: bool) -> Result<(Outcome, Subscribed), CommandError> {
    let extra = session.lockfile()?.unwrap_or_default().extra.clone();
    let requirements = names::collect(session, extra)?;
    let resolved = resolve(session, &requirements, Update::Nothing)?;
    let outcome = install(session, &requirements, resolved, &[], dry_run)?;
    let root = &session.workspace.root;
    let is_openshift = session.workspace.settings.runtime.contains_key("openshift");
    let packages = outcome.lock.packages.iter();
    let operators: Vec<&LockedPackage> =
        packages.filter(|package| package.source.provider == PROVIDER).collect();
    if operators.is_empty() {
        return Err(CommandError::new(Code::NotFound, "Mu.lock has no operator")
            .hint("operators come from catalogs: `mu add operatorhub.io/NAME`, with `operatorhub.io/: {provider: olm, url: …}` under `registries`"));
    }
    let mut written = BTreeSet::new();
    let mut all = Vec::new();
    for package in operators {
        let subscription = subscription(session, package)?;
        let text = text(&subscription, package, is_openshift);
        if !written.insert(subscription.file.clone()) {
            let message = format!("two operators are called `{}`", package.id.name().leaf());
            return Err(CommandError::new(Code::Conflict, message)
                .hint("OLM knows operators by name: take one of them from another catalog away"));
        }
        all.push((subscription, text));
    }
    let mut subscribed = Subscribed::default();
    for (mut subscription, text) in all {
        let path = root.join(&subscription.file);
        let before = fs::read_text_if_there(&path)?;
        if before.as_ref().is_some_and(|before| !before.starts_with(HEADER)) {
            let message = format!("`{}` was not written by mu", path.display());
            return Err(CommandError::new(Code::Conflict, message).hint("move it away"));
        }
        subscription.changed = before.as_deref() != Some(&text);
        if subscription.changed && !dry_run {
            fs::create_folder(&root.join(FOLDER))?;
            fs::write_atomic(&path, text.as_bytes())?;
        }
        subscribed.subscriptions.push(subscription);
    }
    subscribed.removed = remove_others(root, &written, dry_run)?;
    Ok((outcome, subscribed))
}

fn subscription(session: &Session, package: &LockedPackage) -> Result<Subscription, CommandError> {
    let LockedPackage { id, version, .. } = package;
    let (Some(channel), Some(bundle)) = (&package.channel, &package.locator) else {
        let message = format!("Mu.lock does not say from which channel `{id}` {version} is");
        return Err(CommandError::new(Code::LockOutdated, message)
            .hint(format!("`mu update {}` asks the catalog", session.short_name(id))));
    };
    let leaf = id.name().leaf().to_owned();
    let registry = session.index().registry(id).map(|(registry, _)| registry.prefix.clone());
    let place = registry.unwrap_or_else(|| id.as_str().trim_end_matches(&leaf).to_owned());
    Ok(Subscription {
        id: id.to_string(),
        version: version.clone(),
        bundle: bundle.clone(),
        channel: channel.clone(),
        source: resource_name(&place),
        file: format!("{FOLDER}/{leaf}.yaml"),
        changed: false,
    })
}

/// A base and the start of names as the name of a resource in a cluster: `operatorhub.io/` is `operatorhub.io`.
fn resource_name(place: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
    let letters = place.trim_matches('/').chars();
    let text: String = letters.map(|letter| if plain(letter) { letter } else { '-' }).collect();
    text.to_ascii_lowercase()
}

fn text(subscription: &Subscription, package: &LockedPackage, is_openshift: bool) -> String {
    let (namespace, catalogs) = match is_openshift {
        true => ("openshift-operators", "openshift-marketplace"),
        false => ("operators", "olm"),
    };
    let name = package.id.name().leaf().to_owned();
    let lines = [
        ("apiVersion: ", "operators.coreos.com/v1alpha1"),
        ("kind: ", "Subscription"),
        ("metadata:\n  name: ", &*resource_name(&name)),
        ("  namespace: ", namespace),
        ("spec:\n  name: ", &*name),
        ("  channel: ", &subscription.channel),
        ("  source: ", &subscription.source),
        ("  sourceNamespace: ", catalogs),
        ("  startingCSV: ", &subscription.bundle),
        // So that OLM itself moves nothing.
        ("  installPlanApproval: ", "Manual"),
    ];
    let print = |text: &str| match text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-./_".contains(letter))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text)
    {
        true => text.to_owned(),
        false => json!(text).to_string(),
    };
    let lines = lines.map(|(key, value)| format!("{key}{}\n", print(value)));
    format!("{HEADER}{}", lines.concat())
}

/// Removes what mu wrote for operators that are no longer locked.
fn remove_others(
    root: &Path,
    written: &BTreeSet<String>,
    dry_run: bool,
) -> Result<Vec<String>, CommandError> {
    let mut removed = Vec::new();
    for entry in fs::entries_if_there(&root.join(FOLDER))? {
        let name = entry.file_name();
        let Some(file) = name.to_str().map(|name| format!("{FOLDER}/{name}")) else { continue };
        if written.contains(&file) || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let is_ours = fs::read_text_if_there(&entry.path())
            .is_ok_and(|text| text.is_some_and(|text| text.starts_with(HEADER)));
        if is_ours {
            if !dry_run {
                fs::remove_file(&entry.path())?;
            }
            removed.push(file);
        }
    }
    removed.sort();
    Ok(removed)
}
