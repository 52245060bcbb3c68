//! A release of a helmfile: what it says itself, what it inherits from templates, and the chart that it means.

use std::collections::BTreeMap;

use mu_manifest::reference::Version;

use super::{LockedChart, Repositories};
use crate::elsewhere::template::{ACTION, default_of, has_actions};
use crate::elsewhere::{FilesBeside, InUse, Meaning, terraform};
use crate::node::{Fault, Kind, Node};
use crate::shape::Shape::{self, List as Items, Map, Text, Unused};
use crate::shape::TEXTS;

/// What is read of a release.
pub(super) const RELEASE: Shape = Map(&[
    ("name", Text),
    ("chart", Text),
    ("version", Text),
    ("installed", Text),
    ("adopt", Unused),
    ("apiVersions", Unused),
    ("atomic", Unused),
    ("cascade", Unused),
    ("chartPath", Unused),
    ("cleanupOnFail", Unused),
    ("condition", Unused),
    ("conditionTemplate", Unused),
    ("createNamespace", Unused),
    ("deleteTimeout", Unused),
    ("deleteWait", Unused),
    ("dependencies", Items(&Map(&[("chart", Text), ("version", Text), ("alias", Unused)]))),
    ("description", Unused),
    ("devel", Unused),
    ("directory", Text),
    ("disableAutoDetectedKubeVersionForDiff", Unused),
    ("disableOpenAPIValidation", Unused),
    ("disableValidation", Unused),
    ("disableValidationOnInstall", Unused),
    ("enableDNS", Unused),
    ("env", Unused),
    ("force", Unused),
    ("forceConflicts", Unused),
    ("forceGoGetter", Unused),
    ("forceNamespace", Unused),
    ("helmStuckGrace", Unused),
    ("historyMax", Unused),
    ("hooks", Unused),
    ("inherit", Items(&Map(&[("template", Text), ("except", TEXTS)]))),
    ("insecureSkipTLSVerify", Unused),
    ("installedTemplate", Unused),
    ("jsonPatches", Unused),
    ("keyring", Unused),
    ("kubeContext", Unused),
    ("kubeVersion", Unused),
    ("kubedogBurst", Unused),
    ("kubedogQPS", Unused),
    ("labels", Unused),
    ("missingFileHandler", Unused),
    ("missingFileHandlerConfig", Unused),
    ("namespace", Unused),
    ("needs", Unused),
    ("plainHttp", Unused),
    ("postRenderer", Unused),
    ("postRendererArgs", Unused),
    ("recreatePods", Unused),
    ("reuseValues", Unused),
    ("rollbackOnFailure", Unused),
    ("secrets", Unused),
    ("serverSide", Unused),
    ("set", Unused),
    ("setString", Unused),
    ("setTemplate", Unused),
    ("skipDeps", Unused),
    ("skipKinds", Unused),
    ("skipRefresh", Unused),
    ("skipSchemaValidation", Unused),
    ("strategicMergePatches", Unused),
    ("suppressDiff", Unused),
    ("suppressOutputLineRegex", Unused),
    ("syncReleaseLabels", Unused),
    ("takeOwnership", Unused),
    ("timeout", Unused),
    ("trackFailOnError", Unused),
    ("trackFailedLogs", Unused),
    ("trackKinds", Unused),
    ("trackLogs", Unused),
    ("trackMode", Unused),
    ("trackResources", Unused),
    ("trackTimeout", Unused),
    ("transformers", Unused),
    ("unitTests", Unused),
    ("updateStrategy", Unused),
    ("values", Unused),
    ("valuesPathPrefix", Unused),
    ("valuesTemplate", Unused),
    ("verify", Unused),
    ("verifyTemplate", Unused),
    ("wait", Unused),
    ("waitForJobs", Unused),
    ("waitRetries", Unused),
    ("waitTemplate", Unused),
]);

/// A release, as far as it says what it installs.
#[derive(Clone)]
pub(super) struct HelmfileRelease {
    /// Its name, or else that of its chart.
    pub(super) name: String,
    chart: String,
    version: String,
    /// `false`, if it is not to be there.
    installed: String,
    inherits: Vec<Inherit>,
    /// The charts that are added to its own.
    dependencies: Vec<HelmfileRelease>,
}

/// The name of a template that a release, or another template, has the rest from; a later one counts before the ones in front of it.
#[derive(Clone)]
struct Inherit {
    template: String,
    /// The keys that it has not from there.
    except: Vec<String>,
}

/// Reads a release.
pub(super) fn read_release(node: &Node<'_>) -> Result<HelmfileRelease, Fault> {
    let word = |key: &str| -> Result<String, Fault> {
        Ok(node.text(key)?.map_or_else(String::new, |(text, _)| text.to_owned()))
    };
    let installed = match node.get("installed")?.map(|node| &node.kind) {
        Some(Kind::Scalar(text)) => text.to_string(),
        _ => String::new(),
    };
    let (name, chart) = (word("name")?, word("chart")?);
    // Another name of the same key.
    let chart = if chart.is_empty() { word("directory")? } else { chart };
    let name = if name.is_empty() { chart.clone() } else { name };
    let inherit = |one: &Node<'_>| {
        let template = one.text_for_people("template")?;
        let except = one.list("except").unwrap_or_default().iter();
        Some(Inherit {
            template,
            except: except.filter_map(|key| key.scalar()).map(str::to_owned).collect(),
        })
    };
    let inherits = node.list("inherit")?.iter().filter_map(inherit).collect();
    let (version, dependencies) = (word("version")?, dependencies(node)?);
    Ok(HelmfileRelease { name, chart, version, installed, inherits, dependencies })
}

/// The charts that helmfile adds to that of a release.
fn dependencies(node: &Node<'_>) -> Result<Vec<HelmfileRelease>, Fault> {
    let all = node.list("dependencies")?.iter().map(|one| {
        let word = |key: &str| one.text_for_people(key).unwrap_or_default();
        HelmfileRelease {
            name: word("chart"),
            chart: word("chart"),
            version: word("version"),
            installed: String::new(),
            inherits: Vec::new(),
            dependencies: Vec::new(),
        }
    });
    Ok(all.collect())
}

impl HelmfileRelease {
    /// With what it has from templates, where it says nothing itself: its own ones, and those that each release inherits from.
    pub(super) fn with_inherited(
        mut self,
        templates: &BTreeMap<String, Self>,
        defaults: &[String],
    ) -> Self {
        let default = |name: &String| Inherit { template: name.clone(), except: Vec::new() };
        let mut inherits: Vec<Inherit> = defaults.iter().map(default).collect();
        inherits.append(&mut self.inherits);
        self.fill(&inherits, templates, &mut Vec::new());
        self
    }

    /// Fills what it says nothing of. Ends: `above` has the templates on the way, and none of them counts again.
    fn fill<'t>(
        &mut self,
        inherits: &'t [Inherit],
        templates: &'t BTreeMap<String, Self>,
        above: &mut Vec<&'t str>,
    ) {
        for Inherit { template, except } in inherits.iter().rev() {
            let Some(found) = templates.get(template).filter(|_| !above.contains(&&**template))
            else {
                continue;
            };
            let mut whole = found.clone();
            above.push(template);
            whole.fill(&found.inherits, templates, above);
            above.pop();
            for (key, own, theirs) in [
                ("chart", &mut self.chart, whole.chart),
                ("version", &mut self.version, whole.version),
                ("installed", &mut self.installed, whole.installed),
            ] {
                if own.is_empty() && !except.iter().any(|one| one == key) {
                    *own = theirs;
                }
            }
            if self.dependencies.is_empty() && !except.iter().any(|one| one == "dependencies") {
                self.dependencies = whole.dependencies;
            }
        }
    }

    /// The charts that it installs, what it calls each, and what they mean: its own, and those that are added to that.
    pub(super) fn charts(
        &self,
        repositories: &Repositories,
        locked: &[LockedChart],
        beside: &dyn FilesBeside,
    ) -> Vec<(String, Result<Meaning, String>)> {
        let own = (self.name.clone(), self.chart_meant(repositories, locked, beside));
        let added = self.dependencies.iter().filter(|_| self.installed != "false");
        let added = added.map(|one| {
            let called = format!("{} of {}", one.name, self.name);
            (called, one.chart_meant(repositories, locked, beside))
        });
        [own].into_iter().chain(added).collect()
    }

    fn chart_meant(
        &self,
        repositories: &Repositories,
        locked: &[LockedChart],
        beside: &dyn FilesBeside,
    ) -> Result<Meaning, String> {
        if self.chart.contains(ACTION) {
            return Err(is_filled_in("chart"));
        }
        let mut defaults = Vec::new();
        let mut said = |key: &'static str, text: &str| {
            let (said, is_default) = default_of(text);
            defaults.extend(is_default.then(|| (key, said.clone().into_owned())));
            said.into_owned()
        };
        let (chart, version) = (said("chart", &self.chart), said("version", &self.version));
        // Then what the lock has is the only thing that says it.
        let is_unknown = version.contains(ACTION);
        let version = if is_unknown { String::new() } else { version };
        let chart = chart.as_str();
        if self.installed == "false" {
            return Err("it is not installed (`installed: false`)".to_owned());
        }
        if chart.is_empty() {
            return Err("it has no `chart`".to_owned());
        }
        let of_folder =
            || "its chart is a folder of this repository, so there is nothing to fetch".to_owned();
        if chart.starts_with(['.', '/']) {
            return Err(of_folder());
        }
        let chart = chart.trim_end_matches('/');
        let (repository, rest) =
            chart.split_once('/').ok_or_else(|| match beside.has_folder(chart) {
                true => of_folder(),
                false => format!("its chart `{chart}` is in no repository"),
            })?;
        let mut pinned = Pinned { version: &version, digest: None };
        let place = if chart.starts_with("oci://") {
            pinned.in_registry(chart).to_owned()
        } else if chart.contains("://") || chart.contains("::") {
            return of_address(chart);
        } else if !repositories.contains_key(repository) && beside.has_folder(chart) {
            return Err(of_folder());
        } else {
            // What the file lists, helmfile adds to those that Helm knows already.
            let of_helm = || Some((beside.repository(repository, rest)?, false));
            match repositories.get(repository).cloned().or_else(of_helm) {
                Some((url, _)) if url.contains(ACTION) => {
                    return Err(format!(
                        "the `url` of the repository `{repository}` is a template"
                    ));
                }
                Some((url, true)) => {
                    let rest = pinned.in_registry(rest);
                    let url = said("url", &url);
                    let place = url.strip_prefix("oci://").unwrap_or(&url);
                    format!("oci://{}/{rest}", place.trim_end_matches('/'))
                }
                Some((url, false)) => {
                    format!("{}/{rest}", said("url", &url).trim_end_matches('/'))
                }
                None => {
                    return Err(format!(
                        "neither the file nor your Helm has a repository `{repository}`: `helm repo add {repository} URL` adds it"
                    ));
                }
            }
        };
        let (url, name) = place.rsplit_once('/').unwrap_or((&place, ""));
        if let Some(digest) = pinned.digest {
            let meaning = Meaning::of_chart(url, name, None)?;
            let meaning = Meaning::parse(&format!("{}#{digest}", meaning.reference))?;
            return Ok(Meaning { defaults, ..meaning });
        }
        let range = Some(pinned.version).filter(|version| !version.is_empty() && !is_unknown);
        let meaning = Meaning::of_chart(url, name, range)?;
        // As helmfile does, of several versions the first one that the release accepts is its own.
        let spec = meaning.reference.spec();
        let is_it = |[chart, repository, _]: &&LockedChart| {
            chart == name && repository.trim_end_matches('/') == url
        };
        let is_accepted = |[.., version]: &&LockedChart| {
            let accepts = |version: Version| spec.accepts(&version, true);
            range.is_none() || Version::parse_lenient(version).is_ok_and(accepts)
        };
        let mut own = locked.iter().filter(is_it);
        let found = match has_actions(&self.version) {
            // The one version that is locked was chosen for what became of the template.
            true => own.next().filter(|_| own.next().is_none()),
            false => own.find(is_accepted),
        };
        if is_unknown && found.is_none() {
            return Err(is_filled_in("version"));
        }
        let meaning = match found.is_some_and(|found| !is_accepted(&found)) {
            true => Meaning::of_chart(url, name, None)?,
            false => meaning,
        };
        if found.is_some() {
            defaults.retain(|(key, _)| *key != "version");
        }
        let in_use = found.map(|[.., version]| InUse::Version(version.clone()));
        Ok(Meaning { defaults, ..meaning.at(in_use) })
    }
}

/// That a key of a release is a template.
fn is_filled_in(key: &str) -> String {
    format!("its `{key}` is a template, which only helmfile fills in")
}

/// What a release says of the version of its chart.
struct Pinned<'r> {
    version: &'r str,
    digest: Option<&'r str>,
}

impl<'r> Pinned<'r> {
    /// The address of a chart in an OCI registry, without the version and the digest that can be at its end: `chart:1.0.0@sha256:…`.
    /// As with helmfile, the version of the release counts before this one, and its digest, `1.0.0@sha256:…`, after it.
    fn in_registry(&mut self, chart: &'r str) -> &'r str {
        if let Some((version, digest)) = self.version.split_once('@') {
            *self = Self { version, digest: Some(digest) };
        }
        let (chart, digest) =
            chart.split_once('@').map_or((chart, None), |(chart, digest)| (chart, Some(digest)));
        self.digest = digest.or(self.digest);
        // What is in front of the last slash may have a port.
        let Some((chart, version)) =
            chart.rsplit_once(':').filter(|(_, version)| !version.contains('/'))
        else {
            return chart;
        };
        if self.version.is_empty() {
            self.version = version;
        }
        chart
    }
}

/// What a chart at an address of its own is: helmfile has a form of go-getter's, with `@` in front of the folder.
fn of_address(address: &str) -> Result<Meaning, String> {
    let source = match address.split_once("://") {
        Some((scheme, path)) if scheme.contains("git") => {
            format!("{scheme}://{}", path.replacen(".git@", ".git//", 1))
        }
        _ => address.to_owned(),
    };
    terraform::of_source(&source)
        .map_err(|_| "its chart is at an address that only helmfile follows".to_owned())
}
