//! Whether an index line says what the manifest in its archive says, as far as it counts for choosing versions.
//!
//! A line that does not misleads everybody who chooses by it. What is only for people may differ, and so may the way
//! something is written: a base that is left out, blanks, the long form of a dependency.

use std::path::Path;

use mu_provider::{Dependency, Release};
use serde_json::{Map, Value};

use crate::manifest::Manifest;
use crate::reference::{Defaults, Name, Reference};

/// Something that a line or a manifest says.
struct Said {
    /// What tells it from others.
    key: String,
    /// The base of the package that it is about, where that is written.
    base: Option<String>,
    /// As it is written.
    shown: String,
}

/// Where the line `map` and the manifest in `folder` differ; nothing if the manifest cannot be read by this mu.
pub(crate) fn differences(folder: &Path, map: &Map<String, Value>) -> Vec<String> {
    let Some(manifest) = manifest_in(folder) else { return Vec::new() };
    let line = match serde_json::from_value::<Release>(Value::Object(map.clone())) {
        Ok(line) => line,
        Err(error) => return vec![format!("its line cannot be read: {error}")],
    };
    let namespace = manifest.name.name().namespace();
    let manifest = said(&manifest.to_release(), namespace.as_ref());
    let line = said(&line, namespace.as_ref());
    let pairs = line.into_iter().zip(manifest);
    pairs.filter_map(|((key, line), (_, manifest))| difference(key, &line, &manifest)).collect()
}

fn manifest_in(folder: &Path) -> Option<Manifest> {
    let path = Manifest::locate(folder).ok()??;
    let text = std::fs::read_to_string(&path).ok()?;
    Manifest::parse(Path::new(path.file_name()?), &text).ok().map(|(manifest, _)| manifest)
}

fn difference(key: &str, line: &[Said], manifest: &[Said]) -> Option<String> {
    let only = |these: &[Said], those: &[Said]| {
        let missing = these.iter().filter(|this| !those.iter().any(|that| this.is(that)));
        let shown: Vec<String> = missing.map(|this| format!("`{}`", this.shown)).collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    };
    let parts = [("line", only(line, manifest)), ("manifest", only(manifest, line))];
    let parts = parts.into_iter().filter_map(|(whose, shown)| Some((whose, shown?)));
    let parts: Vec<String> =
        parts.map(|(whose, shown)| format!("only the {whose} has {shown}")).collect();
    let text = "its line and the manifest in its archive differ in";
    (!parts.is_empty()).then(|| format!("{text} `{key}`: {}", parts.join(", ")))
}

/// All that counts, by key, in the same order for every release.
fn said(release: &Release, namespace: Option<&Name>) -> Vec<(&'static str, Vec<Said>)> {
    let texts = |texts: &[String]| texts.iter().map(|text| Said::text(text)).collect();
    let one = |text: Option<&str>| text.map(Said::text).into_iter().collect();
    let usual =
        |text: &Option<String>, usual: &str| one(text.as_deref().filter(|text| *text != usual));
    let upgrade = release.upgrade.clone().unwrap_or_default();
    vec![
        ("dependencies", {
            let dependencies = release.dependencies.iter().flatten();
            dependencies.map(|dependency| Said::dependency(dependency, namespace)).collect()
        }),
        ("provides", texts(&release.provides)),
        ("requires", texts(&release.requires)),
        (
            "replaces",
            release.replaces.iter().map(|text| Said::reference(text, namespace)).collect(),
        ),
        ("constraints", {
            let constraints = release.constraints.iter();
            constraints.map(|(fact, range)| Said::text(&format!("{fact}: {range}"))).collect()
        }),
        ("channels", texts(&release.channels)),
        ("upgrade.replaces", one(upgrade.replaces.as_deref())),
        ("upgrade.skips", texts(&upgrade.skips)),
        ("upgrade.skipRange", one(upgrade.skip_range.as_deref())),
        ("apiVersion", usual(&release.api_version, "mu/v1")),
        ("muVersion", one(release.mu_version.as_deref())),
        ("appVersion", one(release.app_version.as_deref())),
        ("versioning", usual(&release.versioning, "semver")),
    ]
}

impl Said {
    fn text(text: &str) -> Self {
        let key = text.chars().filter(|character| !character.is_whitespace()).collect();
        Self { key, base: None, shown: text.to_owned() }
    }

    /// A reference; the namespace that a name of one segment leaves out is filled in.
    fn reference(text: &str, namespace: Option<&Name>) -> Self {
        let Ok(reference) = Reference::parse(text) else { return Self::text(text) };
        if reference.local().is_some() {
            return Self::text(text);
        }
        let defaults = Defaults { namespace: namespace.cloned(), ..Defaults::default() };
        let name = reference.id(&defaults).name();
        let spec = Self::text(&reference.spec().to_string()).key;
        let base = reference.base().map(ToString::to_string);
        Self { key: format!("{name}#{spec}"), base, shown: text.to_owned() }
    }

    fn dependency(dependency: &Dependency, namespace: Option<&Name>) -> Self {
        let mut said = Self::reference(dependency.reference(), namespace);
        if let Dependency::Detailed(detailed) = dependency {
            for (what, value) in [
                ("channel", detailed.channel.as_deref()),
                ("appVersion", detailed.app_version.as_deref()),
                ("prerelease", detailed.prerelease.then_some("true")),
            ] {
                let value = value.map(|value| format!(" {what}: {value}")).unwrap_or_default();
                said.key.push_str(&value);
                said.shown.push_str(&value);
            }
        }
        said
    }

    /// Whether the two mean the same. A base that one of them leaves out is the hub's, which only its readers know.
    fn is(&self, other: &Self) -> bool {
        let same_base = match (&self.base, &other.base) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.key == other.key && same_base
    }
}
