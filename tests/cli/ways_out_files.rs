//! Ways out are tried on the manifests as they are: what a command would not change, or what a manifest cannot say, is not proposed.

use std::fs;

use mu_testing::{Artifact, Chart, Charts, DockerRegistry, Nginx};

use crate::support::Sandbox;
use crate::ways_out::told;

/// Has a chart with these dependencies beside `web` 1, which needs `common` 2; pastes each way out, and expects this hint first. `URL` is
/// that of the repository.
#[track_caller]
fn leads_out(dependencies: &str, hint: &str) {
    let served = Sandbox::new();
    fs::create_dir_all(served.path("www")).expect("can be made");
    let mut charts = Charts::new(&served.path("www"));
    let nginx = Nginx::serve(&served.path("www"), "");
    let url = nginx.url("");
    for version in ["1.0.0", "1.5.0", "2.0.0"] {
        charts.add(&Chart::new("common", version));
    }
    let needs = format!("dependencies:\n- {{name: common, version: ^2, repository: '{url}'}}\n");
    charts.add(&Chart::new("web", "1.0.0").lines(&needs));
    let make = || {
        let sandbox = Sandbox::new();
        let head = "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n";
        let web = "- {name: web, version: ^1, repository: 'URL'}\n";
        let text = format!("{head}{dependencies}{web}").replace("URL", &url);
        sandbox.write("Chart.yaml", &text);
        sandbox
    };
    let run = told(make, &["get"]);
    let first = run.shown().lines().find_map(|line| line.strip_prefix("hint: "));
    let place = format!("{}/", nginx.host());
    let first = first.unwrap_or_default().replace("helm+http://", "").replace(&place, "");
    assert_eq!(first, hint, "{}", run.shown());
}

#[test]
fn each_alias_of_a_chart_is_changed() {
    let entry = |alias: &str, version: &str| {
        format!("- {{name: common, version: {version}, repository: 'URL', alias: {alias}}}\n")
    };
    leads_out(
        &(entry("one", "^1") + &entry("two", "^1")),
        "in shop, require common ^2.0.0 instead of ^1: `mu add 'common#^2.0.0' --alias one --frozen && \
         mu add 'common#^2.0.0' --alias two`",
    );
    // An entry without an alias is told from one with an alias.
    leads_out(
        &(entry("one", "^1") + "- {name: common, version: ^1, repository: 'URL'}\n"),
        "in shop, require common ^2.0.0 instead of ^1: `mu add 'common#^2.0.0' --alias one --frozen && \
         mu add 'common#^2.0.0'`",
    );
}

#[test]
fn the_package_is_named_so_that_its_own_manifest_is_changed() {
    let make = || {
        let sandbox = Sandbox::new();
        sandbox.offer("aws/app 1.0.0: aws/vpc#^2\naws/vpc 1.4.0:\naws/vpc 2.3.0:");
        // The name of one package is the folder of another one.
        let own = "name: acme/api\ndependencies: [\"aws/app#^1\", \"aws/vpc#^1\"]\n";
        sandbox.write("web/Mu.yaml", own);
        sandbox.write("acme/api/Mu.yaml", "name: acme/other\n");
        sandbox
    };
    told(make, &["get"]).says(&["`mu add -p web 'aws/vpc#^2.3.0'`"]);
}

#[test]
fn what_cannot_be_edited_is_not_proposed() {
    // The second entry says what the first one does: no command changes one of them alone.
    leads_out(
        "- &common {name: common, version: ^1, repository: 'URL', alias: one}\n\
         - {<<: *common, alias: two}\n",
        "use several majors of common side by side: write `majors: many` in `.mu/workspace.yaml`",
    );
}

#[test]
fn a_module_of_kcl_says_what_its_format_can_say() {
    let server = DockerRegistry::start();
    let host = server.host();
    let module = |name: &str, version: &str, dependencies: &str| {
        format!(
            "[package]\nname = \"{name}\"\nedition = \"v0.11.0\"\nversion = \"{version}\"\n\n\
             [dependencies]\n{dependencies}"
        )
    };
    let push = |name: &str, version: &str, dependencies: &str| {
        let text = module(name, version, dependencies);
        let files = [("kcl.mod", &*text), ("main.k", "a = 1\n")];
        Artifact::module(name, version, &files, true).push(&host, name, version);
    };
    let needs = |name: &str, tag: &str| {
        format!("{name} = {{ oci = \"oci://{host}/{name}\", tag = \"{tag}\" }}\n")
    };
    for version in ["1.0.0", "1.2.0", "2.0.0", "2.1.0"] {
        push("k8s", version, "");
    }
    push("konfig", "1.0.0", &needs("k8s", "1.0.0"));
    push("konfig", "2.0.0", &needs("k8s", "2.0.0"));
    for (k8s, konfig) in [("1.2.0", "2.0.0"), ("2.1.0", "1.0.0")] {
        let make = || {
            let sandbox = Sandbox::new();
            let dependencies = needs("k8s", k8s) + &needs("konfig", konfig);
            sandbox.write("kcl.mod", &module("shop", "0.1.0", &dependencies));
            sandbox
        };
        told(make, &["get"]).says(&["hint: ", "mu add 'oci://"]);
    }
}

#[test]
fn a_package_of_crossplane_says_what_its_format_can_say() {
    let server = DockerRegistry::start();
    let host = server.host();
    let package = |kind: &str, name: &str, needs: &str| {
        let head = format!(
            "apiVersion: meta.pkg.crossplane.io/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n"
        );
        head + needs
    };
    for version in ["v1.0.0", "v1.2.0", "v2.0.0"] {
        Artifact::package(&package("Provider", "aws", "")).push(&host, "acme/aws", version);
    }
    let needs = "spec:\n  dependsOn:\n  - {provider: acme/aws, version: '>=v2.0.0'}\n";
    let network = Artifact::package(&package("Configuration", "network", needs));
    network.push(&host, "acme/network", "v1.0.0");
    // As a list of blocks, and in one line.
    for own in [
        "spec:\n  dependsOn:\n  - provider: HOST/acme/aws\n    version: ^1\n  - configuration: HOST/acme/network\n    version: ^1\n",
        "spec: {dependsOn: [{provider: HOST/acme/aws, version: ^1}, {configuration: HOST/acme/network, version: ^1}]}\n",
    ] {
        let make = || {
            let sandbox = Sandbox::new();
            let own = own.replace("HOST", &host);
            sandbox.write("crossplane.yaml", &package("Configuration", "platform", &own));
            sandbox
        };
        told(make, &["get"]).says(&["hint: ", "/acme/aws#^2.0.0'"]);
    }
}
