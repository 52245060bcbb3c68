//! `vendor --for olm`: a subscription for each operator of Mu.lock, at exactly the version that it has there.
//!
//! What is written is for OLM in a cluster, with its own names of catalogs. mu applies nothing.

use std::collections::BTreeSet;

use mu_provider::{InnerPath, PlaceKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::LockedPackage;
use crate::ops::vendor::shared::{
    Resources, VendorMode, WrittenFiles, lines, prepared, refuse_patched,
};
use crate::ops::{Code, CommandError, Outcome, Session};

/// The folder of the subscriptions, in the root of the workspace.
pub const FOLDER: &str = "olm";

/// What `mu vendor --for olm` wrote.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscribed {
    /// The subscriptions, one for each operator.
    pub subscriptions: Vec<Subscription>,
    /// Files that were removed, because their operator is no longer in Mu.lock.
    pub removed: Vec<String>,
}

impl WrittenFiles for Subscribed {
    fn is_unchanged(&self) -> bool {
        self.removed.is_empty() && self.subscriptions.iter().all(|one| !one.changed)
    }
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
    #[schemars(with = "String")]
    pub file: InnerPath,
    /// Whether it was not there before, or was another one.
    pub changed: bool,
}

/// Installs what the workspace needs, and writes a subscription for each operator of the lock. Also returns what became of the
/// packs.
///
/// # Errors
///
/// As [`vendor`](super::vendor); when no operator is locked, or two have one name, or one is in no channel; when something else is in the
/// place of a file.
pub fn subscribe(
    session: &Session,
    mode: VendorMode,
) -> Result<(Outcome, Subscribed), CommandError> {
    let outcome = prepared(session, mode)?;
    let is_openshift = session.workspace.settings.runtime.contains_key("openshift");
    let is_operator = |package: &&LockedPackage| {
        let provider = session.index().providers().get(&package.source.provider);
        provider.is_ok_and(|provider| provider.facts().kind == PlaceKind::OperatorCatalog)
    };
    let operators: Vec<&LockedPackage> = outcome.lock.packages.iter().filter(is_operator).collect();
    if operators.is_empty() {
        return Err(CommandError::new(Code::NotFound, "Mu.lock has no operator")
            .hint("operators come from catalogs: `mu add operatorhub.io/NAME`, with `operatorhub.io/: {provider: olm, url: …}` under `registries`"));
    }
    // As for Crossplane: all of them, and then the files.
    let mut resources = Resources::new(session, FOLDER, mode)?;
    let mut written = BTreeSet::new();
    let mut all = Vec::new();
    for package in operators {
        refuse_patched(session, package, "OLM")?;
        let subscription = subscription(session, &resources, package)?;
        let text = text(&subscription, package, is_openshift);
        if !written.insert(subscription.file.clone()) {
            let message = format!("two operators are called `{}`", package.id.name().leaf());
            return Err(CommandError::new(Code::Conflict, message)
                .hint("OLM knows operators by name: take one of them from another catalog away"));
        }
        resources.check(&subscription.file)?;
        all.push((subscription, text));
    }
    let mut subscribed = Subscribed::default();
    for (mut subscription, text) in all {
        subscription.changed = resources.write(&subscription.file, &text)?;
        subscribed.subscriptions.push(subscription);
    }
    subscribed.removed = resources.remove_others()?;
    Ok((outcome, subscribed))
}

fn subscription(
    session: &Session,
    resources: &Resources,
    package: &LockedPackage,
) -> Result<Subscription, CommandError> {
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
        file: resources.file(&leaf)?,
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
    lines(&[
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
    ])
}
