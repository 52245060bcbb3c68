//! A chart in an OCI registry, as `helm push` makes it of an archive: its `Chart.yaml` is the config, as JSON, with annotations, and its
//! archive is a layer. There may be another layer with a signature.
//!
//! Helm reads the config into its own types, so what is a text there must be one here, whatever YAML makes of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::chart::{self, CHART, REQUIREMENTS};

use super::lock;
use crate::format::{Archived, Artifact, ArtifactManifest, Pushed};
use crate::node::{Fault, FormatError, Node};
use crate::reader;
use crate::shape::Shape::All;

/// Keys of a chart that are texts.
const TEXTS: [&str; 11] = [
    "apiVersion",
    "appVersion",
    "condition",
    "description",
    "engine",
    "home",
    "icon",
    "kubeVersion",
    "name",
    "tags",
    "type",
];

/// Keys of a dependency that are texts.
const TEXTS_OF_DEPENDENCIES: [&str; 5] = ["name", "version", "repository", "condition", "alias"];

/// What `helm push` makes of the archive of a chart.
///
/// # Errors
///
/// When it is no chart, or one that Helm would reject.
pub(super) fn pushed(archived: &Archived<'_>) -> Result<Pushed, FormatError> {
    let files = &archived.texts();
    let text = files.manifest(CHART)?;
    let in_chart = |fault| FormatError::new(CHART, text, fault);
    let root = reader::read(text, &All).map_err(in_chart)?;
    let release = chart::head(&root, None).map_err(in_chart)?;
    let mut config = mapping(CHART, text, &root)?;
    as_texts(&mut config, &root, &TEXTS);
    if let (Some(Value::Object(annotations)), Ok(Some(node))) =
        (config.get_mut("annotations"), root.get("annotations"))
    {
        let keys: Vec<String> = annotations.keys().cloned().collect();
        as_texts(annotations, node, &keys);
    }
    dependencies(&mut config, &root);
    // Helm takes what is in another file into the same place.
    if let Some(text) = files.text(REQUIREMENTS).filter(|text| !text.trim().is_empty()) {
        let in_file = |fault| FormatError::new(REQUIREMENTS, text, fault);
        let root = reader::read(text, &All).map_err(in_file)?;
        let mut requirements = mapping(REQUIREMENTS, text, &root)?;
        dependencies(&mut requirements, &root);
        config.extend(requirements.remove_entry("dependencies"));
    }
    config.retain(|_, value| !value.is_null());
    let annotations = annotations(&config, archived.created);
    let config = Value::Object(config).to_string().into_bytes();
    Ok(Pushed {
        version: release.version,
        artifact_type: None,
        config: (CONFIG, config),
        layer: (CONTENT[0], BTreeMap::new()),
        annotations,
        lacks: None,
    })
}

fn mapping(file: &str, text: &str, root: &Node<'_>) -> Result<Map<String, Value>, FormatError> {
    let wrong = |reason: String| FormatError::new(file, text, Fault::new(0..0, reason));
    let json = lock::json(text, root);
    match serde_json::from_str(&json).map_err(|error| wrong(error.to_string()))? {
        Value::Object(map) => Ok(map),
        _ => Err(wrong("it is not a mapping".to_owned())),
    }
}

/// Makes the values of these keys texts, as Helm reads them: it takes `1.10` for `1.1`.
fn as_texts(map: &mut Map<String, Value>, node: &Node<'_>, keys: &[impl AsRef<str>]) {
    for key in keys.iter().map(AsRef::as_ref) {
        if let (Some(value), Ok(Some((text, _)))) = (map.get_mut(key), node.text(key))
            && (value.is_number() || value.is_boolean())
        {
            *value = text.into();
        }
    }
}

fn dependencies(map: &mut Map<String, Value>, root: &Node<'_>) {
    let Some(Value::Array(all)) = map.get_mut("dependencies") else { return };
    let nodes = root.list("dependencies").unwrap_or_default();
    for (dependency, node) in all.iter_mut().filter_map(Value::as_object_mut).zip(nodes) {
        as_texts(dependency, node, &TEXTS_OF_DEPENDENCIES);
    }
}

/// The annotations that Helm writes: its own first, then those of the chart, except for its name and version.
fn annotations(chart: &Map<String, Value>, created: Option<&str>) -> BTreeMap<String, String> {
    let text = |key: &str| chart.get(key).and_then(Value::as_str).map(str::to_owned);
    let list = |key: &str| chart.get(key).and_then(Value::as_array).into_iter().flatten();
    let authors: Vec<String> = list("maintainers")
        .map(|one| {
            let said = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default();
            match said("email") {
                "" => said("name").to_owned(),
                email => format!("{} ({email})", said("name")),
            }
        })
        .collect();
    let own = [
        ("title", text("name")),
        ("version", text("version")),
        ("description", text("description")),
        ("url", text("home")),
        ("source", list("sources").find_map(Value::as_str).map(str::to_owned)),
        ("authors", Some(authors.join(", "))),
        ("created", created.map(str::to_owned)),
    ];
    let own = own.into_iter().filter_map(|(key, value)| {
        let value = value.filter(|value| !value.is_empty())?;
        Some((format!("org.opencontainers.image.{key}"), value))
    });
    let mut all: BTreeMap<String, String> = own.collect();
    let said = chart.get("annotations").and_then(Value::as_object).into_iter().flatten();
    for (key, value) in said {
        let is_fixed = ["title", "version"]
            .iter()
            .any(|fixed| key.strip_prefix("org.opencontainers.image.") == Some(*fixed));
        if let (Some(value), false) = (value.as_str(), is_fixed) {
            all.insert(key.clone(), value.to_owned());
        }
    }
    all
}

/// The media type of the config of a chart.
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

/// The media type of the archive of a chart, and the one that it had first.
const CONTENT: [&str; 2] =
    ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];

/// The media type of the signed statement about a chart, in a layer beside it.
pub const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

pub(super) const ARTIFACT: Artifact = Artifact {
    find,
    label: None,
    in_config: true,
    in_folder: true,
    provenance: Some(PROVENANCE),
    looks_into: |path| [CHART, REQUIREMENTS].contains(&path),
    pushed,
};

fn find(image: &ArtifactManifest<'_>) -> Option<Result<usize, String>> {
    if image.config != CONFIG {
        return None;
    }
    let mut layers = image.layers.iter().enumerate();
    let found = layers.find(|(_, layer)| CONTENT.contains(&layer.media_type));
    Some(found.map(|(at, _)| at).ok_or_else(|| "it is a chart without an archive".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Texts;

    fn of(files: &[(&str, &str)]) -> Pushed {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        let archived = Archived {
            name: "web",
            version: "1.2.0",
            created: Some("2026-01-02T03:04:05Z"),
            digests: [""; 2],
            is_compressed: true,
            files: &files.collect(),
        };
        pushed(&archived).expect("is a chart")
    }

    #[test]
    fn a_chart_becomes_what_helm_makes_of_it() {
        let found = of(&[(
            CHART,
            "apiVersion: v2\nname: web\nversion: v1.2.0+b7\nappVersion: 1.10\nkubeVersion: 1.25\nicon: null\nhome: https://a.example\n\
             sources: [https://b.example, https://c.example]\nmaintainers: [{name: Ada, email: a@x.example}, {name: Bo}]\n\
             dependencies: [{name: common, version: 2, repository: 'https://d.example', tags: [x], enabled: true}]\n\
             annotations: {licenses: MIT, n: 1, org.opencontainers.image.title: other, org.opencontainers.image.url: https://e.example}\n",
        )]);
        assert_eq!(found.version, "v1.2.0+b7");
        assert_eq!(found.layer, (CONTENT[0], BTreeMap::new()));
        let config: Value = serde_json::from_slice(&found.config.1).expect("is JSON");
        let expected = serde_json::json!({
            "apiVersion": "v2", "name": "web", "version": "v1.2.0+b7", "appVersion": "1.1", "kubeVersion": "1.25",
            "home": "https://a.example", "sources": ["https://b.example", "https://c.example"],
            "maintainers": [{"name": "Ada", "email": "a@x.example"}, {"name": "Bo"}],
            "dependencies": [{"name": "common", "version": "2", "repository": "https://d.example", "tags": ["x"], "enabled": true}],
            "annotations": {
                "licenses": "MIT", "n": "1", "org.opencontainers.image.title": "other",
                "org.opencontainers.image.url": "https://e.example",
            },
        });
        assert_eq!(config, expected);
        let annotations = [
            ("licenses", "MIT"),
            ("n", "1"),
            ("org.opencontainers.image.authors", "Ada (a@x.example), Bo"),
            ("org.opencontainers.image.created", "2026-01-02T03:04:05Z"),
            ("org.opencontainers.image.source", "https://b.example"),
            ("org.opencontainers.image.title", "web"),
            ("org.opencontainers.image.url", "https://e.example"),
            ("org.opencontainers.image.version", "v1.2.0+b7"),
        ];
        let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(found.annotations, annotations.into());
    }

    #[test]
    fn an_old_chart_has_its_requirements_in_the_config() {
        let requirements =
            "dependencies: [{name: common, version: ~1, repository: 'https://a.example'}]\n";
        let found = of(&[
            (CHART, "apiVersion: v1\nname: web\nversion: 1.0.0\n"),
            (REQUIREMENTS, requirements),
        ]);
        let config: Value = serde_json::from_slice(&found.config.1).expect("is JSON");
        assert_eq!(config["dependencies"][0]["version"], "~1");
        // mu reads the same of it again.
        let text = String::from_utf8(found.config.1).expect("is text");
        let files = Texts([(CHART.to_owned(), text)].into());
        let package = super::super::read(&files, &crate::Reading::default()).expect("is a chart");
        assert_eq!(package.release.dependencies.map(|all| all.len()), Some(1));
    }
}
