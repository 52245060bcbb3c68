//! What the index of another tool's registry lists in a form that nobody can use: it is told where its package is asked for, and
//! takes nothing else away.

use mu_testing::Charts;
use serde_json::json;

use crate::support::{Chart, Nginx, Sandbox};

/// A repository with one chart, and entries that are none.
const INDEX: &str = "apiVersion: v1
entries:
  web:
  - {apiVersion: v2, name: web, version: 1.0.0, urls: [web-1.0.0.tgz]}
  - just text
  - {apiVersion: v2, name: web, version: 1.1.0}
  text: web-1.0.0.tgz
  my web:
  - {apiVersion: v2, name: my web, version: 1.0.0, urls: [web-1.0.0.tgz]}
";

#[test]
fn what_an_index_of_charts_lists_in_the_wrong_form_is_told() {
    let mut sandbox = Sandbox::new();
    let mut charts = Charts::new(&sandbox.path("www"));
    charts.add(&Chart::new("web", "1.0.0"));
    charts.index(INDEX);
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    sandbox.replace(&nginx.host(), "[HOST]");
    let at = |name: &str| format!("helm+{}", nginx.url(name));
    let told = "line 5 of the index has an entry without `version`";
    sandbox.mu(&["info", &at("web")]).ok().says(&[&format!("left out     {told}")]);
    sandbox.mu(&["versions", &at("web")]).ok().says(&[&format!("left out: {told}")]);
    sandbox
        .mu(&["versions", &at("web")])
        .ok()
        .says(&["1.1.0", "does not say where its archive is"]);
    // It is told when the package comes, and then no more.
    sandbox.asks_for(&[&at("web")]);
    let warning =
        format!("warning: the registry of `[HOST]/web` lists what is not a version: {told}");
    sandbox.mu(&["get"]).ok().says(&[&warning]);
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.0.0");
    sandbox.mu(&["update"]).ok().does_not_say(&["what is not a version"]);
    let none = "line 7 of the index has no list of its versions";
    sandbox.mu(&["versions", &at("text")]).ok().says(&[&format!("left out: {none}")]);
    let json = sandbox.mu(&["versions", &at("text"), "--json"]).ok().json();
    assert_eq!((&json["versions"], &json["leftOut"][0]["reason"]), (&json!([]), &json!(none)));
    sandbox.mu(&["resolve", &at("text")]).fails().says(&[none]);
    let near = "what it has besides cannot be used: `my web`";
    for wanted in ["my-web", "myweb", "other"] {
        let run = sandbox.mu(&["resolve", &at(wanted)]).fails();
        run.says(&[&format!("which lists no chart `{wanted}`"), near, "(line 8)"]);
    }
}

#[test]
fn what_a_catalog_of_operators_has_of_nobody_is_told() {
    let mut sandbox = Sandbox::new();
    let bundle = |properties: &str| {
        format!(
            "schema: olm.package\nname: web\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: web\nname: stable\nentries:\n- name: web.v1.0.0\n---\nschema: olm.bundle\npackage: web\nname: web.v1.0.0\nimage: registry.example/web@sha256:{}\nproperties:\n- {{type: olm.package, value: {{packageName: web, version: 1.0.0}}}}\n{properties}---\nschema: olm.bundle\nname: lost.v1.0.0\n---\nschema: olm.novelty\npackage: web\n",
            "0".repeat(64)
        )
    };
    let catalog = format!("olm+file://{}", sandbox.path("catalog").display());
    sandbox.replace(&sandbox.path("catalog").display().to_string(), "[CATALOG]");
    sandbox
        .write(".mu/workspace.yaml", &format!("registries: {{operators.example/: {catalog}}}\n"));
    sandbox.write("../catalog/web.yaml", &bundle("- {type: olm.feature, value: 1}\n"));
    let info = sandbox.mu(&["info", "operators.example/web"]).ok();
    info.says(&["web 1.0.0", "olm.feature", "olm.novelty"]);
    sandbox
        .mu(&["resolve", "operators.example/lost"])
        .fails()
        .says(&["`olm.bundle` without `package`"]);
    // What is required and not known keeps a version from being used.
    sandbox.write("../catalog/web.yaml", &bundle("- {type: olm.feature.required, value: 1}\n"));
    let reason = "it has a requirement of the kind `olm.feature.required`, which mu cannot check";
    sandbox.mu(&["versions", "operators.example/web"]).ok().says(&["1.0.0", reason]);
    sandbox.mu(&["resolve", "operators.example/web"]).fails().says(&[reason]);
}
