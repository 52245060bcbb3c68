//! What is in use, for those who answer for it: container images, licences, and bills of materials that the published schemas accept.

use std::io::Write as _;
use std::process::{Command, Stdio};

use mu_testing::{Chart, Charts, Helm, Nginx, write};
use serde_json::Value;

use crate::support::{Package, Sandbox};

/// A workspace whose chart needs five others, each of another make.
struct Workspace {
    sandbox: Sandbox,
    _nginx: Nginx,
}

/// A template with one container, whose image is the value `image`.
const TEMPLATE: &str = "kind: Pod\nmetadata: {name: {{ .Chart.Name }}}\nspec:\n  containers:\n  - {name: a, image: {{ .Values.image | quote }}}\n";

impl Workspace {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let mut charts = Charts::new(&sandbox.path("www"));
        let nginx = Nginx::serve(&sandbox.path("www"), "");
        let listed = |annotation: &str, image: &str| {
            format!("annotations:\n  {annotation}: |\n    - name: a\n      image: {image}\n")
        };
        let all = [
            ("hub", listed("artifacthub.io/images", "ghcr.io/acme/hub:1.0"), "Apache-2.0"),
            ("helm", listed("helm.sh/images", "registry.example:5000/helm:1@sha256:00"), "MIT"),
            ("plain", listed("images", "docker.io/acme/plain:2"), "Apache 2.0"),
            ("silent", String::new(), "see LICENSE"),
            ("library", "type: library\n".to_owned(), ""),
        ];
        let mut needs = String::from("dependencies:\n");
        for (name, lines, license) in &all {
            let image = match *name {
                "hub" => "ghcr.io/acme/hub:1.0",
                "helm" => "registry.example:5000/helm:1@sha256:00",
                "plain" => "docker.io/acme/plain:2",
                _ => "quay.io/acme/undeclared:3",
            };
            let lines = match (license.is_empty(), lines.starts_with("annotations:")) {
                (true, _) => lines.clone(),
                (false, true) => format!("{lines}  licenses: {license}\n"),
                (false, false) => format!("{lines}annotations:\n  licenses: {license}\n"),
            };
            let mut chart = Chart::new(name, "1.0.0").lines(&lines);
            if *name != "library" {
                chart = chart
                    .file("templates/pod.yaml", TEMPLATE)
                    .file("values.yaml", &format!("image: {image}\n"));
            }
            charts.add(&chart);
            needs +=
                &format!("- {{name: {name}, version: ^1.0.0, repository: '{}'}}\n", nginx.url(""));
        }
        let web = Chart::new("web", "0.1.0").lines(&needs);
        for (path, (_, bytes)) in web.files() {
            write(&sandbox.path("work"), &path, bytes);
        }
        sandbox.mu(&["get"]).ok();
        Self { sandbox, _nginx: nginx }
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.sandbox.mu(&[arguments, &["--json"]].concat()).ok().json()
    }
}

/// The texts under a key of the values in a list.
fn texts<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let list = list.as_array().expect("is a list").iter();
    list.map(|one| one[key].as_str().expect("is text")).collect()
}

#[test]
fn images_are_those_that_packages_declare_and_others_are_named() {
    let workspace = Workspace::new();
    let answer = workspace.json(&["images"]);
    let declared = [
        "docker.io/acme/plain:2",
        "ghcr.io/acme/hub:1.0",
        "registry.example:5000/helm:1@sha256:00",
    ];
    assert_eq!(texts(&answer["images"], "image"), declared);
    let silent = texts(&answer["undeclared"], "id");
    let ends = ["/web", "/library", "/silent"];
    assert_eq!(silent.len(), ends.len(), "{silent:?}");
    assert!(ends.iter().all(|end| silent.iter().any(|id| id.ends_with(end))), "{silent:?}");
    workspace.sandbox.mu(&["images"]).ok().says(&[
        "ghcr.io/acme/hub:1.0",
        "artifacthub.io/images",
        "images are not known of 3 packages:",
        "silent 1.0.0: it declares none",
    ]);
}

/// What `helm template` runs is either declared, or its package is named; with what it wrote, nothing is left.
#[test]
fn no_image_that_helm_runs_is_passed_over_in_silence() {
    let workspace = Workspace::new();
    let sandbox = &workspace.sandbox;
    sandbox.mu(&["vendor", "--for", "helm"]).ok();
    let chart = sandbox.path("work");
    for helm in Helm::all() {
        let chart = chart.to_str().expect("is UTF-8");
        let text = helm.run(&sandbox.path("helm"), &["template", chart]).expect("it can");
        sandbox.write("rendered.yaml", &text);
        let runs = |image: &str| text.contains(&format!("image: \"{image}\""));
        let answer = workspace.json(&["images"]);
        assert!(texts(&answer["images"], "image").into_iter().all(runs), "{answer:#}");
        assert!(runs("quay.io/acme/undeclared:3"));
        let rendered = workspace.json(&["images", "--rendered", "rendered.yaml"]);
        let images = texts(&rendered["images"], "image");
        assert_eq!(images.len(), text.matches("image: ").count(), "{images:?}");
        let undeclared = rendered["images"].as_array().expect("is a list").iter();
        let mut undeclared = undeclared.filter(|one| one["image"] == "quay.io/acme/undeclared:3");
        let undeclared = undeclared.next().expect("is there");
        assert_eq!(undeclared["declaredBy"][0], "[DIR]/work/rendered.yaml");
        let id = undeclared["packages"][0]["id"].as_str().expect("is there");
        assert!(id.ends_with("/silent"), "{id}");
        // The chart has templates itself; the library has none.
        let silent = texts(&rendered["undeclared"], "id");
        assert!(silent.len() == 1 && silent[0].ends_with("/library"), "{silent:?}");
    }
    sandbox.write("broken.yaml", "a: [\n");
    let error =
        sandbox.mu(&["images", "--rendered", "broken.yaml", "--json"]).fails_with("manifest");
    assert!(error.to_string().contains("broken.yaml"), "{error}");
    sandbox.mu(&["images", "--rendered", "missing.yaml", "--json"]).fails_with("io");
}

#[test]
fn an_answer_without_a_package_that_is_not_here_would_be_wrong() {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/ec2 1.0.0:");
    sandbox.asks_for(&["aws/ec2#^1"]);
    for command in ["images", "licenses", "sbom"] {
        sandbox.mu(&[command, "--json"]).fails_with("lock-outdated");
    }
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["cache", "clean", "--yes"]).ok();
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    for command in ["images", "licenses", "sbom"] {
        let error = sandbox.mu(&[command, "--json"]).fails_with("not-found");
        assert!(error.to_string().contains("`hub.mu.com/aws/ec2` 1.0.0"), "{error}");
        assert!(error.to_string().contains("mu fetch"), "{error}");
    }
    sandbox.mu(&["fetch"]).ok();
    sandbox.mu(&["licenses"]).ok().says(&["aws/ec2"]);
    // The lock lags behind the manifest.
    sandbox.asks_for(&["aws/ec2#^2"]);
    sandbox.mu(&["sbom", "--json"]).fails_with("lock-outdated");
}

#[test]
fn licences_are_checked_by_the_settings() {
    let workspace = Workspace::new();
    let sandbox = &workspace.sandbox;
    let of = |answer: &Value, name: &str| {
        let packages = answer["packages"].as_array().expect("is a list").iter();
        let mut packages = packages.filter(|one| one["id"].as_str().expect("is").ends_with(name));
        packages.next().expect("is there").clone()
    };
    let answer = workspace.json(&["licenses"]);
    assert_eq!(of(&answer, "/plain")["license"], "Apache 2.0");
    assert_eq!(of(&answer, "/plain")["spdx"], "Apache-2.0");
    assert_eq!(of(&answer, "/silent")["spdx"], Value::Null);
    assert_eq!((&of(&answer, "/hub")["allowed"], &answer["refused"]), (&Value::Null, &0.into()));
    let rules = |text: &str| sandbox.write(".mu/workspace.yaml", &format!("licenses: {text}\n"));
    rules("{allow: [Apache-2.0]}");
    let error = sandbox.mu(&["licenses", "--json"]).fails_with("untrusted");
    let answer = &error["details"];
    assert_eq!((&of(answer, "/hub")["allowed"], &answer["refused"]), (&true.into(), &3.into()));
    sandbox.mu(&["licenses"]).fails().says(&[
        "the settings do not allow the licence of 3 packages:",
        "helm 1.0.0: MIT",
        "library 1.0.0: no licence",
        "write the licence under `licenses: allow`",
    ]);
    let id = |name: &str| of(answer, name)["id"].as_str().expect("is there").to_owned();
    let except = [id("/silent"), id("/library")];
    rules(&format!(
        "{{allow: [Apache-2.0, MIT], except: {{'{}': asked them, '{}': ours}}}}",
        except[0], except[1]
    ));
    sandbox.mu(&["licenses"]).ok().says(&["asked them", "ours"]);
    rules("{allow: [apache2]}");
    sandbox
        .mu(&["licenses"])
        .fails()
        .says(&["is not the name of a licence of SPDX", "`Apache-2.0`"]);
}

/// Compares a bill with the published schema of its format.
fn validate(schema: &str, bill: &str) {
    let mut validator = Command::new("/usr/bin/python3")
        .args([&*mu_testing::file("../../testdata/schemas/validate.py").to_string_lossy(), schema])
        .env("PYTHONWARNINGS", "ignore")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`.ci/setup` brings Python and jsonschema");
    validator.stdin.take().expect("is piped").write_all(bill.as_bytes()).expect("it reads");
    let output = validator.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}\n{bill}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn bills_of_materials_fit_the_published_schemas_and_are_the_same_each_time() {
    let workspace = Workspace::new();
    let sandbox = &workspace.sandbox;
    let cyclonedx = sandbox.mu(&["sbom"]).ok().stdout;
    validate("bom-1.6.schema.json", &cyclonedx);
    let bill: Value = serde_json::from_str(&cyclonedx).expect("is JSON");
    let component = |name: &str| {
        let mut components = bill["components"].as_array().expect("is a list").iter();
        components.find(|one| one["name"] == name).cloned().unwrap_or_default()
    };
    let plain = component("plain");
    assert_eq!(plain["licenses"][0]["expression"], "Apache-2.0");
    assert_eq!(component("silent")["licenses"][0]["license"]["name"], "see LICENSE");
    assert_eq!(plain["hashes"][0]["alg"], "SHA-256");
    let archive =
        sandbox.lock()["packages"].as_array().expect("is a list").iter().find_map(|one| {
            one["id"]
                .as_str()?
                .ends_with("/plain")
                .then(|| one["archive"].as_str().map(str::to_owned))?
        });
    assert_eq!(
        archive.as_deref(),
        plain["hashes"][0]["content"].as_str().map(|hex| format!("sha256:{hex}")).as_deref()
    );
    // The image of `plain` is a component, which it depends on; those that declare none are incomplete.
    let image = component("docker.io/acme/plain:2");
    let edges = bill["dependencies"].as_array().expect("is a list").iter();
    let edge = edges.clone().find(|one| one["ref"] == plain["bom-ref"]).expect("is there");
    assert_eq!(edge["dependsOn"], serde_json::json!([image["bom-ref"]]));
    let silent = bill["compositions"][0]["assemblies"].as_array().expect("is a list");
    assert_eq!((silent.len(), &bill["compositions"][0]["aggregate"]), (3, &"incomplete".into()));
    assert!(silent.contains(&component("silent")["bom-ref"]));
    let web = component("web")["bom-ref"].clone();
    let edge = edges.clone().find(|one| one["ref"] == web).expect("is there");
    assert_eq!(edge["dependsOn"].as_array().map(Vec::len), Some(5));

    let spdx = sandbox.mu(&["sbom", "--format", "spdx"]).ok().stdout;
    validate("spdx-2.3.schema.json", &spdx);
    assert!(
        spdx.contains("\"created\": \"1970-01-01T00:00:00Z\"")
            && spdx.contains("\"licenseComments\": \"see LICENSE\"")
    );
    // From the store alone, in another clone, by other packs.
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    assert_eq!(sandbox.mu(&["sbom"]).ok().stdout, cyclonedx);
    assert_eq!(sandbox.mu(&["sbom", "--format", "spdx"]).ok().stdout, spdx);
}

#[test]
fn a_bill_says_what_is_only_for_development_and_what_was_patched() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0")
            .manifest("license: MIT OR Apache-2.0\n")
            .file("a.txt", "one\n"),
        Package::new("aws/test", "1.0.0"),
    ]);
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 0.1.0\ndependencies: ['aws/ec2#^1']\ndevDependencies: ['aws/test#^1']\n");
    sandbox.mu(&["get"]).ok();
    let text = sandbox.mu(&["sbom"]).ok().stdout;
    validate("bom-1.6.schema.json", &text);
    let bill: Value = serde_json::from_str(&text).expect("is JSON");
    let scopes = bill["components"].as_array().expect("is a list").iter();
    let scopes: Vec<(&str, &Value)> =
        scopes.map(|one| (one["name"].as_str().expect("is text"), &one["scope"])).collect();
    assert_eq!(
        scopes,
        [("acme/web", &Value::Null), ("aws/ec2", &Value::Null), ("aws/test", &"excluded".into())]
    );
    assert_eq!(bill["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    assert_eq!(
        bill["components"][1]["purl"],
        "pkg:generic/ec2@1.0.0?repository_url=hub.mu.com%2Faws%2Fec2"
    );
}
