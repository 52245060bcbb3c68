//! Hostile artifacts of other ecosystems in an OCI registry: each trick is refused, with its place named, and nothing is kept.

use std::fs;
use std::path::Path;

use mu_provider::conformance::hostile_trees;
use mu_testing::oci::Behaviour;
use mu_testing::{Artifact, Chart, OciServer};
use serde_json::{Value, json};

use crate::hostile::{Entry, entries, gzip, outside, stored, tar};
use crate::support::Sandbox;
use crate::ways_out::told;

const CHART: &[u8] = b"apiVersion: v2\nname: web\nversion: 1.0.0\n";
const CHART_CONFIG: &[u8] = br#"{"apiVersion":"v2","name":"web","version":"1.0.0"}"#;
const MODULE: &[u8] = b"[package]\nname = \"web\"\nversion = \"1.0.0\"\n";
const PACKAGE: &[u8] =
    b"apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: web}\n";

const HELM: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const IMAGE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The ecosystems whose packages are in registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Chart,
    Module,
    Package,
}

const KINDS: [Kind; 3] = [Kind::Chart, Kind::Module, Kind::Package];

impl Kind {
    /// A layer with an honest manifest, and these entries.
    fn layer(self, more: &[Entry]) -> Vec<u8> {
        let honest = match self {
            Self::Chart => Entry::file(b"web/Chart.yaml", CHART),
            Self::Module => Entry::file(b"kcl.mod", MODULE),
            Self::Package => Entry::file(b"package.yaml", PACKAGE),
        };
        mu_testing::gzip(&tar(&[&[honest], more].concat()))
    }

    /// The same path, where the files of a package are.
    fn inside(self, entry: Entry) -> Entry {
        let is_chart = self == Self::Chart && !entry.path.starts_with(b"/");
        let path = if is_chart { [b"web/", &*entry.path].concat() } else { entry.path };
        Entry { path, ..entry }
    }

    fn artifact(self, layer: &[u8]) -> Artifact {
        match self {
            Self::Chart => Artifact::new(HELM, CHART_CONFIG).layer(CONTENT, layer, &[]),
            Self::Module => Artifact::new(IMAGE, b"{}")
                .layer(LAYER, layer, &[])
                .says("org.kcllang.package.name", "web")
                .says("org.kcllang.package.version", "1.0.0"),
            Self::Package => {
                Artifact::new(IMAGE, b"{}").layer(LAYER, layer, &[("io.crossplane.xpkg", "base")])
            }
        }
    }
}

struct Attack {
    sandbox: Sandbox,
    server: OciServer,
    reference: String,
}

impl Attack {
    fn new() -> Self {
        let server = OciServer::start(Behaviour::default());
        let reference = format!("oci://{}/acme/web", server.host());
        Self { sandbox: Sandbox::new(), server, reference }
    }

    fn push(&self, artifact: &Artifact) -> String {
        artifact.push(&self.server.host(), "acme/web", "1.0.0")
    }

    /// Installs what is there; that fails for these reasons, and leaves nothing.
    fn is_refused(&self, what: &str, reasons: &[&str]) -> Value {
        let _ = fs::remove_dir_all(self.sandbox.path("cache"));
        let before = outside(&self.sandbox);
        let error = self.sandbox.mu(&["get", &self.reference, "--json"]).fails().error();
        let text = error.to_string();
        assert!(text.contains("acme/web"), "{what}: {text}");
        for reason in reasons {
            assert!(text.contains(reason), "{what}: `{reason}` is missing in {text}");
        }
        let message = error["message"].as_str().expect("is text");
        assert!(!message.contains('\u{1b}'), "{what}: {message:?}");
        assert_eq!(outside(&self.sandbox), before, "{what}");
        assert_eq!(stored(&self.sandbox), Vec::<String>::new(), "{what}");
        assert!(!Path::new("/tmp/mu-hostile").exists(), "{what}");
        error
    }
}

#[test]
fn honest_artifacts_of_the_same_form_are_installed() {
    for kind in KINDS {
        let attack = Attack::new();
        attack.push(&kind.artifact(&kind.layer(&[kind.inside(Entry::file(b"a/b", b"c"))])));
        attack.sandbox.mu(&["get", &attack.reference]).ok().says(&["1.0.0"]);
    }
}

#[test]
fn every_hostile_tree_in_a_layer_is_refused() {
    for kind in KINDS {
        let attack = Attack::new();
        for hostile in hostile_trees() {
            let bad = entries(&hostile).into_iter().filter(|entry| entry.path != b"Mu.yaml");
            let bad: Vec<Entry> = bad.map(|entry| kind.inside(entry)).collect();
            attack.push(&kind.artifact(&kind.layer(&bad)));
            let what = format!("{kind:?}: {}", hostile.name);
            let error = attack.is_refused(&what, &["is refused"]);
            assert_eq!(error["code"], "integrity", "{what}: {error}");
        }
    }
}

#[test]
fn entries_that_only_a_tar_can_have_are_refused() {
    let odd = |kind: u8, target| Entry { kind, target, ..Entry::file(b"odd", b"") };
    let tricks = [
        ("a hard link to what is not there", odd(b'1', "nothing")),
        ("a character device", odd(b'3', "")),
        ("a block device", odd(b'4', "")),
        ("a named pipe", odd(b'6', "")),
        ("a set-uid program", Entry { mode: 0o4755, ..Entry::file(b"odd", b"x") }),
        ("a link with content", Entry { content: b"x".to_vec(), ..odd(b'2', "a") }),
    ];
    for kind in KINDS {
        let attack = Attack::new();
        for (what, entry) in &tricks {
            let entry = kind.inside(entry.clone());
            attack.push(&kind.artifact(&kind.layer(&[entry])));
            let error = attack.is_refused(&format!("{kind:?}: {what}"), &[]);
            let codes = ["integrity", "no-solution"].map(Value::from);
            assert!(codes.contains(&error["code"]), "{kind:?}: {what}: {error}");
        }
    }
}

#[test]
fn layers_that_are_not_what_the_manifest_says_are_refused() {
    for kind in KINDS {
        let attack = Attack::new();
        let layer = kind.layer(&[]);
        let artifact = kind.artifact(&layer);
        attack.push(&artifact);
        let digest = format!("sha256:{}", mu_testing::hex(&layer));
        // The same files and size, at another time.
        let mut other = layer.clone();
        other[5] ^= 1;
        attack.server.spoil(&digest, &other);
        let error = attack.is_refused("another layer", &["expected", &digest]);
        assert_eq!(error["code"], "integrity", "{error}");
        attack.server.spoil(&digest, &layer);
        for size in [1, layer.len() as u64 + 1, 1 << 50] {
            let mut manifest = artifact.manifest();
            manifest["layers"][0]["size"] = size.into();
            attack.server.manifest("acme/web", "1.0.0", &manifest);
            attack.is_refused("another size", &["bytes"]);
        }
        // More than anybody wants to unpack, in little.
        let bomb = kind.inside(Entry::file(b"zeros", &vec![0; 40 << 20]));
        attack.push(&kind.artifact(&kind.layer(&[bomb])));
        attack.is_refused("a bomb", &["is refused"]);
        for (what, layer) in [
            ("no gzip", b"no archive at all".to_vec()),
            ("a gzip of nothing", gzip(b"")),
            ("a layer that breaks off", layer[..layer.len() - 20].to_vec()),
            ("a layer with something after it", [&layer[..], b"more"].concat()),
        ] {
            attack.push(&kind.artifact(&layer));
            attack.is_refused(&format!("{kind:?}: {what}"), &[]);
        }
    }
    let attack = Attack::new();
    let beside = Entry::file(b"other/templates/x.yaml", b"kind: Secret\n");
    attack.push(&Kind::Chart.artifact(&Kind::Chart.layer(&[beside])));
    attack.is_refused("two folders", &["it is not in the same folder as the entries before it"]);
    attack.push(&Kind::Chart.artifact(&Kind::Chart.layer(&[Entry::file(b"x.yaml", b"")])));
    attack.is_refused("a file beside the folder", &["it is not inside the archive's folder"]);
}

#[test]
fn manifests_and_configs_that_make_no_sense_are_refused() {
    let attack = Attack::new();
    let layer = Kind::Chart.layer(&[]);
    let with_config = |config: &[u8]| Artifact::new(HELM, config).layer(CONTENT, &layer, &[]);
    for (what, config) in [("no JSON", &b"{"[..]), ("no chart", b"[]"), ("no text", b"\xff\xfe")] {
        attack.push(&with_config(config));
        attack.is_refused(what, &["1.0.0"]);
    }
    let most = "8388608 are the most that mu reads";
    let long = format!("{{\"description\":\"{}\"}}", "a".repeat(9 << 20));
    attack.push(&with_config(long.as_bytes()));
    attack.is_refused("a long config", &[most, "/blobs/sha256:"]);
    // A manifest of ten megabytes.
    let mut manifest = Kind::Chart.artifact(&layer).manifest();
    manifest["annotations"] = json!({"a": "b".repeat(10 << 20)});
    attack.server.manifest("acme/web", "1.0.0", &manifest);
    attack.is_refused("a long manifest", &["/manifests/1.0.0"]);
    for (what, manifest) in [
        ("a list", json!([])),
        ("no layers", json!({"schemaVersion": 2, "config": {"mediaType": HELM}})),
        ("layers that are text", json!({"schemaVersion": 2, "layers": "many"})),
        (
            "digests that lead elsewhere",
            json!({
                "schemaVersion": 2,
                "config": {"mediaType": HELM, "digest": "sha256:../../x", "size": 2},
                "layers": [{"mediaType": CONTENT, "digest": "../../../etc/passwd", "size": 2}],
            }),
        ),
    ] {
        attack.server.manifest("acme/web", "1.0.0", &manifest);
        attack.is_refused(what, &[]);
    }
}

#[test]
fn an_index_that_leads_to_itself_is_refused() {
    let attack = Attack::new();
    let index = |digest: &str| {
        json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": digest, "size": 7,
                "platform": {"os": "linux", "architecture": "amd64"},
            }],
        })
    };
    let nothing = format!("sha256:{}", mu_testing::hex(b"nothing"));
    // One after the other: mu follows an index once.
    let inner = attack.server.manifest("acme/web", "inner", &index(&nothing));
    let outer = attack.server.manifest("acme/web", "1.0.0", &index(&inner));
    let before = attack.server.requests().len();
    attack.is_refused("an index of indexes", &["1.0.0"]);
    let asked = attack.server.requests().split_off(before);
    assert!(asked.iter().all(|line| !line.contains(&nothing)), "{asked:#?}");
    // In a circle, which no honest registry can have.
    attack.server.spoil_manifest("acme/web", &inner, index(&outer).to_string().as_bytes());
    let error = attack.is_refused("a circle", &["is not the one that was expected"]);
    assert_eq!(error["code"], "integrity", "{error}");
    let asked = attack.server.requests().len() - before;
    assert!(asked < 20, "{asked} requests");
}

#[test]
fn no_way_out_leads_to_a_version_that_cannot_be_used() {
    let registry = OciServer::start(Behaviour::default());
    let host = registry.host();
    let push = |repository: &str, version: &str, tag: &str| {
        Artifact::chart(&Chart::new("bad", version)).push(&host, repository, tag);
    };
    push("acme/bad", "1.2.0", "1.0.0");
    push("other/bad", "1.0.0", "1.0.0");
    push("other/bad", "1.1.0", "1.1.0");
    // Its manifest says another version, which mu finds out only when it looks into it.
    push("other/bad", "1.3.0", "1.2.0");
    for strategy in ["highest", "minimal"] {
        let sandbox = || {
            let sandbox = Sandbox::new();
            sandbox.write("Mu.yaml", "name: acme/app\n");
            sandbox.write(".mu/workspace.yaml", &format!("resolution: {strategy}\n"));
            sandbox
        };
        let run = told(sandbox, &["add", &format!("oci://{host}/acme/bad")]);
        run.says(&["its tag is `1.0.0`"]).does_not_say(&["hint: in acme/app, require"]);
        let run = told(sandbox, &["add", &format!("oci://{host}/other/bad#^1.2")]);
        let hint = format!("require {host}/other/bad ^1.1.0 instead of ^1.2");
        run.says(&["its tag is `1.2.0`", &hint]);
    }
}
