//! Operators to install. For the Operator Lifecycle Manager: catalogs as `opm render` writes them, and bundles as `operator-sdk`
//! makes them, in folders and as images in a registry. For KUDO: a repository in a folder, with archives as `kubectl kudo package
//! create` makes them, and an index as `kubectl kudo repo index` writes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::files::{hex, tar_gz, write};
use super::oci::OciServer;

/// A version of an operator.
#[derive(Debug, Clone)]
pub struct Bundle {
    package: String,
    version: String,
    image: Option<String>,
    properties: Vec<Value>,
    owned: Vec<Value>,
    csv: Value,
}

impl Bundle {
    /// `PACKAGE VERSION`, which neither provides nor needs anything.
    pub fn new(package: &str, version: &str) -> Self {
        let identity = json!({"packageName": package, "version": version});
        Self {
            package: package.to_owned(),
            version: version.to_owned(),
            image: None,
            properties: vec![json!({"type": "olm.package", "value": identity})],
            owned: Vec::new(),
            csv: json!({"displayName": format!("The {package} operator"), "keywords": ["operator"]}),
        }
    }

    /// Its name in a catalog.
    pub fn name(&self) -> String {
        format!("{}.v{}", self.package, self.version)
    }

    /// Adds a property.
    pub fn property(mut self, kind: &str, value: Value) -> Self {
        self.properties.push(json!({"type": kind, "value": value}));
        self
    }

    /// Owns a kind, `GROUP/VERSION/KIND`.
    pub fn provides(mut self, kind: &str) -> Self {
        let [group, version, kind] = parts(kind);
        let name = format!("{}s.{group}", kind.to_lowercase());
        self.owned.push(json!({"name": name, "version": version, "kind": kind}));
        self.property("olm.gvk", json!({"group": group, "version": version, "kind": kind}))
    }

    /// Needs a kind, `GROUP/VERSION/KIND`.
    pub fn requires(self, kind: &str) -> Self {
        let [group, version, kind] = parts(kind);
        self.property("olm.gvk.required", json!({"group": group, "version": version, "kind": kind}))
    }

    /// Needs another operator.
    pub fn needs(self, package: &str, range: &str) -> Self {
        let value = json!({"packageName": package, "versionRange": range});
        self.property("olm.package.required", value)
    }

    /// Sets a field of the specification of its ClusterServiceVersion.
    pub fn says(mut self, key: &str, value: Value) -> Self {
        self.csv[key] = value;
        self
    }

    /// Names the image that its files are in.
    pub fn image(mut self, image: &str) -> Self {
        self.image = Some(image.to_owned());
        self
    }

    fn resource(&self) -> Value {
        let mut spec = self.csv.clone();
        spec["version"] = json!(self.version);
        spec["customresourcedefinitions"] = json!({"owned": self.owned});
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {"name": self.name()},
            "spec": spec,
        })
    }

    /// The files of its folder, with properties and dependencies in files of their own.
    pub fn files(&self) -> BTreeMap<String, (char, Vec<u8>)> {
        let prefix = "operators.operatorframework.io.bundle";
        let annotations = format!(
            "annotations:\n  {prefix}.mediatype.v1: registry+v1\n  {prefix}.manifests.v1: manifests/\n  {prefix}.metadata.v1: metadata/\n  {prefix}.package.v1: {}\n  {prefix}.channels.v1: stable\n",
            self.package
        );
        let own =
            |property: &&Value| property["type"] != "olm.package" && property["type"] != "olm.gvk";
        let dependencies: Vec<&Value> = self.properties.iter().filter(own).collect();
        let mut files = vec![
            (
                format!("manifests/{}.clusterserviceversion.yaml", self.package),
                self.resource().to_string(),
            ),
            ("metadata/annotations.yaml".to_owned(), annotations),
        ];
        if !dependencies.is_empty() {
            let text = json!({"properties": dependencies}).to_string();
            files.push(("metadata/properties.yaml".to_owned(), text));
        }
        files.into_iter().map(|(path, text)| (path, ('f', text.into_bytes()))).collect()
    }

    /// Pushes it as an image, as `FROM scratch` with two layers makes it; returns its name with the digest.
    pub fn push(&self, registry: &OciServer, repository: &str) -> String {
        let files = self.files();
        let folder = |folder: &str| {
            tar_gz(files.clone().into_iter().filter(|(path, _)| path.starts_with(folder)))
        };
        push_image(registry, repository, &[folder("manifests/"), folder("metadata/")], json!({}))
    }

    /// Its document in a catalog. What has no image has its resources there.
    pub fn document(&self) -> Value {
        let mut properties = self.properties.clone();
        match &self.image {
            Some(_) => {
                let mut excerpt = self.csv.clone();
                excerpt["crdDescriptions"] = json!({"owned": self.owned});
                properties.push(json!({"type": "olm.csv.metadata", "value": excerpt}));
            }
            None => {
                let data = STANDARD.encode(self.resource().to_string());
                properties.push(json!({"type": "olm.bundle.object", "value": {"data": data}}));
            }
        }
        json!({
            "schema": "olm.bundle",
            "name": self.name(),
            "package": self.package,
            "image": self.image.clone().unwrap_or_default(),
            "properties": properties,
        })
    }
}

/// Pushes an image of gzip'd layers with these labels; returns its name with the digest.
pub fn push_image(
    registry: &OciServer,
    repository: &str,
    layers: &[Vec<u8>],
    labels: Value,
) -> String {
    let config = json!({"os": "linux", "architecture": "amd64", "config": {"Labels": labels}});
    let config = config.to_string().into_bytes();
    let descriptor = |kind: &str, bytes: &[u8]| {
        let kind = format!("application/vnd.docker.{kind}");
        json!({"mediaType": kind, "digest": format!("sha256:{}", hex(bytes)), "size": bytes.len()})
    };
    registry.blob(&config);
    let layers = layers.iter().map(|layer| {
        registry.blob(layer);
        descriptor("image.rootfs.diff.tar.gzip", layer)
    });
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "layers": layers.collect::<Vec<_>>(),
        "config": descriptor("container.image.v1+json", &config),
    });
    let digest = registry.manifest(repository, "v1", &manifest);
    format!("{}/{repository}@{digest}", registry.host())
}

/// A catalog in a folder, with a file for each package.
#[derive(Debug)]
pub struct Operators {
    folder: PathBuf,
    documents: BTreeMap<String, Vec<Value>>,
}

impl Operators {
    /// A catalog without packages.
    pub fn new(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("can be made");
        Self { folder: folder.to_owned(), documents: BTreeMap::new() }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a package with its default channel.
    pub fn package(&mut self, name: &str, default: &str) {
        let document = json!({"schema": "olm.package", "name": name, "defaultChannel": default});
        self.add(name, document);
    }

    /// Adds a channel; each entry is the name of a bundle, or an entry as catalogs have it.
    pub fn channel(&mut self, package: &str, name: &str, entries: &[Value]) {
        let entries = entries.iter().map(|entry| match entry {
            Value::String(name) => json!({"name": name}),
            entry => entry.clone(),
        });
        let entries: Vec<Value> = entries.collect();
        let document =
            json!({"schema": "olm.channel", "package": package, "name": name, "entries": entries});
        self.add(package, document);
    }

    /// Adds a version.
    pub fn bundle(&mut self, bundle: &Bundle) {
        self.add(&bundle.package, bundle.document());
    }

    /// Adds a document to the file of a package.
    pub fn add(&mut self, package: &str, document: Value) {
        self.documents.entry(package.to_owned()).or_default().push(document);
        let text = self.text_of(package);
        write(&self.folder, &format!("{package}/catalog.json"), text);
    }

    fn text_of(&self, package: &str) -> String {
        let documents = self.documents.get(package).into_iter().flatten();
        documents.map(|document| format!("{document:#}\n")).collect()
    }

    /// The whole of it, as a server serves it.
    pub fn text(&self) -> String {
        self.documents.keys().map(|package| self.text_of(package)).collect()
    }
}

fn parts(kind: &str) -> [&str; 3] {
    let parts: Vec<&str> = kind.split('/').collect();
    parts.try_into().expect("is GROUP/VERSION/KIND")
}

/// A version of an operator.
#[derive(Debug, Clone)]
pub struct KudoOperator {
    name: String,
    version: String,
    app: Option<String>,
    api: String,
    lines: String,
    tasks: String,
}

impl KudoOperator {
    /// `NAME VERSION`, which installs nothing else.
    pub fn new(name: &str, version: &str) -> Self {
        let tasks =
            "- name: app\n  kind: Apply\n  spec:\n    resources:\n    - map.yaml\n".to_owned();
        let (name, version) = (name.to_owned(), version.to_owned());
        let api = "kudo.dev/v1beta1".to_owned();
        Self { name, version, app: None, api, lines: String::new(), tasks }
    }

    /// With the version of its application.
    pub fn app(mut self, app: &str) -> Self {
        self.app = Some(app.to_owned());
        self
    }

    /// With another `apiVersion` than that of all KUDO's releases.
    pub fn api(mut self, api: &str) -> Self {
        api.clone_into(&mut self.api);
        self
    }

    /// Adds lines to its `operator.yaml`.
    pub fn lines(mut self, lines: &str) -> Self {
        self.lines.push_str(lines);
        self
    }

    /// Adds a task that installs another operator, by its `spec` in one line.
    pub fn installs(mut self, spec: &str) -> Self {
        let task = format!("- name: other\n  kind: KudoOperator\n  spec: {{{spec}}}\n");
        self.tasks.push_str(&task);
        self
    }

    fn head(&self) -> String {
        let app = self.app.as_ref().map(|app| format!("appVersion: \"{app}\"\n"));
        let (name, version) = (&self.name, &self.version);
        format!("{}name: {name}\noperatorVersion: \"{version}\"\n", app.unwrap_or_default())
    }

    /// Its `operator.yaml`.
    pub fn manifest(&self) -> String {
        let Self { api, lines, tasks, .. } = self;
        let plans = "plans:\n  deploy:\n    strategy: serial\n    phases: []\n";
        format!("apiVersion: {api}\n{}{lines}tasks:\n{tasks}{plans}", self.head())
    }

    /// Its files.
    pub fn files(&self) -> BTreeMap<String, (char, Vec<u8>)> {
        let files = [
            ("operator.yaml", self.manifest()),
            ("params.yaml", "apiVersion: kudo.dev/v1beta1\nparameters: []\n".to_owned()),
            ("templates/map.yaml", "apiVersion: v1\nkind: ConfigMap\n".to_owned()),
        ];
        files.map(|(path, text)| (path.to_owned(), ('f', text.into_bytes()))).into()
    }

    /// Its archive, which has no folder at its top.
    pub fn archive(&self) -> Vec<u8> {
        tar_gz(self.files())
    }

    /// The name of its archive.
    pub fn file(&self) -> String {
        match &self.app {
            Some(app) => format!("{}-{app}_{}.tgz", self.name, self.version),
            None => format!("{}-{}.tgz", self.name, self.version),
        }
    }
}

/// A repository in a folder.
#[derive(Debug)]
pub struct KudoRepository {
    folder: PathBuf,
    /// What the URLs of its archives begin with.
    url: String,
    entries: BTreeMap<String, Vec<String>>,
}

impl KudoRepository {
    /// A repository without operators; the URLs in its index begin with `url`.
    pub fn new(folder: &Path, url: &str) -> Self {
        let (folder, url) = (folder.to_owned(), url.to_owned());
        let repository = Self { folder, url, entries: BTreeMap::new() };
        repository.write_index();
        repository
    }

    /// Adds a version.
    pub fn add(&mut self, operator: &KudoOperator) {
        self.add_with(operator, &operator.archive());
    }

    /// Adds a version with another archive than its own.
    pub fn add_with(&mut self, operator: &KudoOperator, archive: &[u8]) {
        let file = operator.file();
        write(&self.folder, &file, archive);
        let urls = format!("urls:\n- {}{file}\n", self.url);
        let entry = format!("{}digest: {}\n{urls}", operator.head(), hex(archive));
        // The newest comes first.
        self.entries.entry(operator.name.clone()).or_default().insert(0, entry);
        self.write_index();
    }

    fn write_index(&self) {
        let mut text = "apiVersion: v1\nentries:".to_owned();
        text.push_str(if self.entries.is_empty() { " {}\n" } else { "\n" });
        for (name, entries) in &self.entries {
            text.push_str(&format!("  {name}:\n"));
            for entry in entries {
                for (number, line) in entry.lines().enumerate() {
                    text.push_str(if number == 0 { "  - " } else { "    " });
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        text.push_str("generated: \"2020-09-01T10:11:12Z\"\n");
        write(&self.folder, "index.yaml", text);
    }
}
