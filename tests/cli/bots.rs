//! What bots and CI systems run of mu: the hooks, the action, the template and the configuration for Renovate that this repository
//! has. Each of their commands is run as it stands there, and each regular expression over real manifests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Chart, Charts, Nginx, Sandbox};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn file(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_yaml::from_str(&file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The arguments of a command line that begins with `mu`.
fn arguments(line: &str) -> Vec<&str> {
    line.strip_prefix("mu ").expect("is a command of mu").split(' ').collect()
}

#[test]
fn each_hook_fails_where_something_is_forgotten() {
    let hooks = yaml(".pre-commit-hooks.yaml");
    let hooks: BTreeMap<&str, &Value> = hooks
        .as_array()
        .expect("is a list")
        .iter()
        .map(|hook| (hook["id"].as_str().expect("has an id"), hook))
        .collect();
    let entry = |id: &str| arguments(hooks[id]["entry"].as_str().expect("has an entry"));
    for (id, hook) in &hooks {
        assert_eq!(
            (&hook["language"], &hook["pass_filenames"]),
            (&json!("system"), &json!(false)),
            "{id}"
        );
    }
    assert_eq!(
        hooks.keys().copied().collect::<Vec<_>>(),
        ["mu-lock", "mu-vendor-helm", "mu-verify"]
    );
    // The manifest has changed, and Mu.lock has not.
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1.0"]);
    sandbox.offer("aws/ec2 1.0.6:\naws/ec2 1.1.0:\naws/vpc 2.0.0:");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&entry("mu-lock")).ok();
    sandbox.asks_for(&["aws/ec2#^1.0", "aws/vpc#^2"]);
    sandbox.mu(&entry("mu-lock")).fails().says(&["--locked forbids changing it"]);
    assert!(!sandbox.read("Mu.lock").contains("aws/vpc"));
    // Mu.lock has changed, and what is vendored has not.
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["vendor"]).ok();
    sandbox.mu(&entry("mu-verify")).ok();
    fs::remove_dir_all(sandbox.path("work/.mu/packs/hub.mu.com/aws/vpc")).expect("is there");
    assert_ne!(sandbox.mu(&entry("mu-verify")).status, 0);
    // The same for Helm.
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    charts.add(&Chart::new("redis", "17.0.0"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    let url = nginx.url("stable");
    sandbox.write("Chart.yaml", &format!("apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n- {{name: redis, version: 17.x, repository: '{url}'}}\n"));
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["vendor", "--for", "helm"]).ok();
    sandbox.mu(&entry("mu-vendor-helm")).ok();
    fs::remove_file(sandbox.path("work/charts/redis-17.0.0.tgz")).expect("is there");
    assert_ne!(sandbox.mu(&entry("mu-vendor-helm")).status, 0);
}

#[test]
fn the_hooks_run_for_the_files_that_they_are_about() {
    let hooks = yaml(".pre-commit-hooks.yaml");
    let matches = |id: &str, path: &str| {
        let mut all = hooks.as_array().expect("is a list").iter();
        let hook = all.find(|hook| hook["id"] == id).expect("is there");
        let found = matched(hook["files"].as_str().expect("is text"), "", path);
        !found.is_empty()
    };
    for (id, path, expected) in [
        ("mu-lock", "Mu.yaml", true),
        ("mu-lock", "acme/web/Mu.json", true),
        ("mu-lock", ".mu/workspace.yaml", true),
        ("mu-lock", "charts/web/Chart.yaml", true),
        ("mu-lock", "NotMu.yaml", false),
        ("mu-lock", "Mu.yaml.example", false),
        ("mu-verify", ".mu/packs/hub.mu.com/aws/ec2/file", true),
        ("mu-vendor-helm", "web/charts/redis-1.0.0.tgz", true),
        ("mu-vendor-helm", "web/templates/x.yaml", false),
    ] {
        assert_eq!(matches(id, path), expected, "{id}: {path}");
    }
}

#[test]
fn the_action_and_the_template_run_what_is_documented() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.offer("aws/ec2 1.0.6:");
    sandbox.mu(&["get"]).ok();
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    let action = yaml("packaging/ci/action.yml");
    let steps = action["runs"]["steps"].as_array().expect("is a list");
    let commands = steps.iter().filter_map(|step| step["run"].as_str());
    let commands: Vec<&str> = commands.filter(|line| line.starts_with("mu ")).collect();
    assert_eq!(commands, ["mu get --locked", "mu verify", "mu vendor --for \"$TOOL\" --check"]);
    let template = yaml("packaging/ci/mu.gitlab-ci.yml");
    let lines = [&template[".mu"]["before_script"], &template["mu"]["script"]];
    let lines = lines.into_iter().flat_map(|list| list.as_array().expect("is a list"));
    let lines: Vec<&str> = lines.map(|line| line.as_str().expect("is text")).collect();
    assert_eq!(lines, commands[..2]);
    assert_eq!(template["mu"]["extends"], ".mu");
    for line in lines {
        sandbox.mu(&arguments(line)).ok();
    }
    // A lock that does not fit ends both.
    sandbox.asks_for(&["aws/ec2#^1", "aws/vpc#^2"]);
    sandbox.mu(&arguments(commands[0])).fails();
    // What a page says that CI runs is what they run.
    let page = file("docs/ci.md");
    for line in commands[..2].iter() {
        assert!(page.contains(*line), "docs/ci.md has no `{line}`");
    }
}

/// Renovate runs regular expressions by RE2, which has neither of these.
#[test]
fn the_expressions_look_neither_ahead_nor_behind() {
    let text = file(RENOVATE);
    for group in ["(?!", "(?=", "(?<!", "(?<=", "\\\\1"] {
        assert!(!text.contains(group), "{group}");
    }
}

/// The named groups of each match of a regular expression in a text, by the program in which Renovate runs them.
fn matched(expression: &str, flags: &str, text: &str) -> Vec<BTreeMap<String, String>> {
    let script = "const [expression, flags, text] = JSON.parse(require('fs').readFileSync(0, 'utf8'));\
        const all = [...text.matchAll(new RegExp(expression, flags + 'g'))];\
        console.log(JSON.stringify(all.map(one => one.groups || {})));";
    let mut command = Command::new("node");
    command.args(["-e", script]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("node runs");
    let input = json!([expression, flags, text]).to_string();
    std::io::Write::write_all(&mut child.stdin.take().expect("is piped"), input.as_bytes())
        .expect("node reads");
    let output = child.wait_with_output().expect("node ends");
    assert!(output.status.success(), "{expression}");
    serde_json::from_slice(&output.stdout).expect("is JSON")
}

const RENOVATE: &str = "examples/update-bots/renovate.json";

/// Whether a rule of the configuration switches a package off.
fn is_off(configuration: &Value, source: &str, package: &str) -> bool {
    let mut rules = configuration["packageRules"].as_array().expect("is a list").iter();
    rules.any(|rule| {
        let of = rule["matchPackageNames"][0].as_str().unwrap_or_default();
        rule["enabled"] == false
            && rule["matchDatasources"][0] == source
            && of.strip_suffix("**").is_some_and(|begin| package.starts_with(begin))
    })
}

/// What the configuration for Renovate finds in a manifest: the kind of registry, the name there, and the version.
fn found(text: &str) -> Vec<String> {
    let configuration: Value = serde_json::from_str(&file(RENOVATE)).expect("is JSON");
    let mut found = Vec::new();
    for manager in configuration["customManagers"].as_array().expect("is a list") {
        for expression in manager["matchStrings"].as_array().expect("is a list") {
            for groups in matched(expression.as_str().expect("is text"), "", text) {
                let group = |name: &str| groups.get(name).cloned();
                let name = |name: &str| {
                    let template = manager[format!("{name}Template")].as_str()?;
                    let own = groups.iter().fold(template.to_owned(), |text, (key, value)| {
                        text.replace(&format!("{{{{{{{key}}}}}}}"), value)
                    });
                    Some(own)
                };
                let package =
                    group("packageName").or_else(|| group("depName")).expect("has a name");
                let source = name("datasource").expect("has one");
                if is_off(&configuration, &source, &package) {
                    continue;
                }
                let mut line = format!("{source} {package}");
                line.extend(group("registryUrl").map(|url| format!(" at {url}")));
                line.extend(name("extractVersion").map(|tags| format!(" tags {tags}")));
                assert!(group("depName").or_else(|| name("depName")).is_some(), "{line}");
                found.push(format!("{line} {}", group("currentValue").expect("has a version")));
            }
        }
    }
    found
}

#[test]
fn renovate_finds_the_references_of_manifests() {
    assert_eq!(
        found(&file("examples/update-bots/Mu.yaml")),
        [
            "github-tags acme/logs ^1.2.0",
            "github-tags acme/metrics v2.0.1",
            "github-tags acme/infra tags ^net/vpc/v?(?<version>.+)$ ^1.4.0",
            "git-tags https://git.acme.example/ops/base.git v0.3.0",
            "git-tags https://git.acme.example/ops/infra.git tags ^modules/vpc/v?(?<version>.+)$ ~1.1.0",
            "helm redis at https://charts.acme.example/stable ^17.3.1",
            "docker registry.acme.example/charts/web 2.0.0",
        ]
    );
    // Nothing else in the manifests of this repository looks like one.
    let mut manifests = vec![root().join("Mu.yaml.example"), root().join("Mu.yaml")];
    manifests_below(&root().join("testdata"), &mut manifests);
    assert!(manifests.len() > 6, "{manifests:?}");
    for path in manifests {
        let text = fs::read_to_string(&path).expect("is there");
        let name = path.strip_prefix(root()).expect("is inside").display().to_string();
        let expected: &[&str] = match name.as_str() {
            "Mu.yaml.example" => &["github-tags ops/kafka v3.1.0"],
            _ => &[],
        };
        assert_eq!(found(&text), expected, "{name}");
    }
}

fn manifests_below(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("is a folder") {
        let path = entry.expect("is there").path();
        if path.is_dir() && !path.ends_with(".mu") {
            manifests_below(&path, into);
        } else if path.ends_with("Mu.yaml") || path.ends_with("Mu.json") {
            into.push(path);
        }
    }
}

/// What a bot writes into a manifest is a manifest, and its command brings Mu.lock along.
#[test]
fn a_version_that_a_bot_raises_is_locked_by_its_command() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    charts.add(&Chart::new("redis", "17.0.0"));
    charts.add(&Chart::new("redis", "18.0.0"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let url = nginx.url("stable");
    let manifest = |version: &str| {
        format!("name: acme/web\nversion: 0.1.0\ndependencies:\n  - helm+{url}/redis#{version}\n")
    };
    sandbox.write("Mu.yaml", &manifest("^17.0.0"));
    sandbox.mu(&["get"]).ok();
    let outdated = sandbox.mu(&["outdated", "--json"]).ok().json();
    assert_eq!(outdated["packages"][0]["newest"], "18.0.0");
    sandbox.write("Mu.yaml", &manifest("^18.0.0"));
    let configuration: Value = serde_json::from_str(&file(RENOVATE)).expect("is JSON");
    let mut rules = configuration["packageRules"].as_array().expect("is a list").iter();
    let command = rules.find_map(|rule| rule["postUpgradeTasks"]["commands"][0].as_str());
    let command = command.expect("there is a command");
    sandbox.mu(&arguments(command)).ok();
    assert!(sandbox.locked()[0].ends_with("/redis 18.0.0"), "{:?}", sandbox.locked());
    sandbox.mu(&["get", "--locked"]).ok();
}
