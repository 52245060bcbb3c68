//! `vendor --for crossplane` and `vendor --for olm`: a resource for each package of Crossplane in Mu.lock, and a subscription for each operator,
//! at exactly the version that it has there.
//!
//! What is written is for Crossplane or OLM in a cluster, for OLM with its own names of catalogs. mu applies nothing.

use std::collections::{BTreeMap, BTreeSet};

use mu_formats::crossplane;
use mu_provider::{InnerPath, PlaceKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::fs;
use crate::lock::LockedPackage;
use crate::ops::vendor::{
    Resources, VendorMode, WrittenFiles, installed_folder, lines, prepared, refuse_patched,
    registry_tag,
};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::Version;

/// The folder of the resources, in the root of the workspace.
pub const FOLDER: &str = "crossplane";

/// The first version of Crossplane whose functions have the version `v1` of the API.
const STABLE_FUNCTIONS: &str = "1.17.0";

/// The longest name of a resource, as Crossplane cuts it.
const LONGEST_NAME: usize = 63;

/// What `mu vendor --for crossplane` wrote.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrossplaneResources {
    /// The resources, one for each package.
    pub resources: Vec<CrossplaneResource>,
    /// Files that were removed, because their package is no longer in Mu.lock.
    pub removed: Vec<String>,
}

impl WrittenFiles for CrossplaneResources {
    fn is_unchanged(&self) -> bool {
        self.removed.is_empty() && self.resources.iter().all(|resource| !resource.changed)
    }
}

/// The resource of one package.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrossplaneResource {
    /// The package.
    pub id: String,
    /// Its version in Mu.lock.
    pub version: String,
    /// `Configuration`, `Function` or `Provider`; `None` in a dry run if the package is not on this machine yet.
    pub kind: Option<String>,
    /// The package and its tag, as Crossplane installs it.
    pub package: String,
    /// The file, seen from the root of the workspace.
    #[schemars(with = "String")]
    pub file: InnerPath,
    /// Whether it was not there before, or was another one.
    pub changed: bool,
}

/// Installs what the workspace needs, and writes a resource for each package of Crossplane in the lock. Also returns how the packs
/// changed.
pub fn vendor_for_crossplane(
    session: &Session,
    mode: VendorMode,
) -> Result<(Outcome, CrossplaneResources), CommandError> {
    let outcome = prepared(session, mode)?;
    let packages: Vec<(usize, &LockedPackage)> = outcome
        .lock
        .packages
        .iter()
        .enumerate()
        .filter(|(index, package)| {
            !package.source.is_authored_folder() && is_one(session, &outcome, *index)
        })
        .collect();
    if packages.is_empty() {
        return Err(CommandError::new(Code::NotFound, "Mu.lock has no package of Crossplane")
            .hint("they come from OCI registries: `mu add oci://HOST/REPOSITORY`"));
    }
    // Everything is planned before anything is written: two packages of one name, or somebody else's file, leave all as
    // it was.
    let mut resources = Resources::new(session, FOLDER, mode)?;
    let mut planned: BTreeMap<String, (CrossplaneResource, Option<String>)> = BTreeMap::new();
    for (index, package) in packages {
        refuse_patched(session, package, "Crossplane")?;
        let name = resource_name(package.id.name_str());
        let kind = kind(session, &outcome, index);
        let tagged = format!("{}:{}", package.id, registry_tag(session, package)?);
        let text = kind.as_ref().map(|kind| {
            lines(&[
                ("apiVersion: pkg.crossplane.io/", api_version(session, kind)),
                ("kind: ", kind),
                ("metadata:\n  name: ", &name),
                ("spec:\n  package: ", &tagged),
            ]) + "  # Mu.lock has the dependencies, too.\n  skipDependencyResolution: true\n"
        });
        let file = resources.file(&name)?;
        resources.check(&file)?;
        let resource = CrossplaneResource {
            id: package.id.to_string(),
            version: package.version.clone(),
            kind,
            package: tagged,
            file,
            changed: true,
        };
        if let Some((other, _)) = planned.insert(name.clone(), (resource, text)) {
            let message = format!("`{}` and `{}` are both called `{name}`", other.id, package.id);
            return Err(CommandError::new(Code::Conflict, message)
                .hint("Crossplane calls packages by their repository, without the host"));
        }
    }
    let mut written = CrossplaneResources::default();
    for (mut resource, text) in planned.into_values() {
        if let Some(text) = text {
            resource.changed = resources.write(&resource.file, &text)?;
        }
        written.resources.push(resource);
    }
    written.removed = resources.remove_others()?;
    Ok((outcome, written))
}

/// Whether a locked package is one of Crossplane.
fn is_one(session: &Session, outcome: &Outcome, index: usize) -> bool {
    let package = &outcome.lock.packages[index];
    package.locator.as_deref() == Some(crossplane::FORMAT.name)
        || kind(session, outcome, index).is_some()
}

/// The kind of a package, if its pack is there.
fn kind(session: &Session, outcome: &Outcome, index: usize) -> Option<String> {
    let folder = installed_folder(session, outcome, index)?;
    let text = [crossplane::PUBLISHED, crossplane::AUTHORED].iter().find_map(|name| {
        let path = folder.join(name);
        fs::read_text(&path).ok()
    });
    crossplane::kind_of(&text?)
}

/// The version of the API of a kind: functions were in beta for longer.
fn api_version(session: &Session, kind: &str) -> &'static str {
    let runtime = &session.workspace.settings.runtime;
    let stable = Version::parse_lenient(STABLE_FUNCTIONS).ok();
    let is_older = runtime.get(crossplane::FORMAT.name).is_some_and(|version| {
        Version::parse_lenient(version).ok().is_some_and(|version| Some(version) < stable)
    });
    if is_older && kind == "Function" { "v1beta1" } else { "v1" }
}

/// The name that Crossplane itself gives to a package that it installs: `acme/provider-aws` is `acme-provider-aws`.
fn resource_name(repository: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = repository.to_ascii_lowercase().chars().map(plain).collect();
    let cut: String = name.trim_matches('-').chars().take(LONGEST_NAME).collect();
    cut.trim_end_matches('-').to_owned()
}

/// The folder of the subscriptions, in the root of the workspace.
pub const OLM_FOLDER: &str = "olm";

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
    let mut resources = Resources::new(session, OLM_FOLDER, mode)?;
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
        source: olm_resource_name(&place),
        file: resources.file(&leaf)?,
        changed: false,
    })
}

/// A base and the start of names as the name of a resource in a cluster: `operatorhub.io/` is `operatorhub.io`.
fn olm_resource_name(place: &str) -> String {
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
        ("metadata:\n  name: ", &*olm_resource_name(&name)),
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
