//! Moves: a package that replaces another takes its place, once somebody has agreed.

use serde_json::{Value, json};

use crate::support::{Package, Sandbox};

const OLD: &str = "hub.mu.com/upbound/family";
const NEW: &str = "hub.mu.com/contrib/family";

/// A hub where `contrib/family` 1.2.0 replaces `upbound/family`, which `app/web` needs, and `app/tool` needs the new one.
fn sandbox(dependencies: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(dependencies);
    let replaces = json!(["upbound/family"]);
    sandbox.publish(&[
        Package::new("upbound/family", "1.0.0"),
        Package::new("upbound/family", "1.1.0"),
        Package::new("contrib/family", "1.2.0").key("replaces", replaces),
        Package::new("app/web", "1.0.0").needs("upbound/family#^1"),
        Package::new("app/tool", "1.0.0").needs("contrib/family#^1"),
    ]);
    sandbox
}

fn allow(sandbox: &Sandbox, old: &str, new: &str) {
    let settings = sandbox.read(".mu/workspace.yaml");
    let allowed = format!("{settings}\nallowReplaces: {{{old}: {new}}}\n");
    sandbox.write(".mu/workspace.yaml", &allowed);
}

fn ids(answer: &Value) -> Vec<String> {
    let packages = answer["packages"].as_array().expect("is a list");
    packages.iter().map(|package| package["id"].as_str().expect("is text").to_owned()).collect()
}

#[test]
fn nothing_is_replaced_without_consent() {
    let sandbox = sandbox(&["app/web", "app/tool"]);
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: `contrib/family` would take the place of `upbound/family`, which app/web requires, and nobody has agreed to it
      the manifest of `contrib/family` says that it replaces `upbound/family`
      the index of `upbound/family` does not say that it has moved there, and the two are not in one namespace

    hint: to agree, add this to `.mu/workspace.yaml`: `allowReplaces: {upbound/family: contrib/family}`
    hint: to agree this time, run the command again with `--yes`; Mu.lock remembers it
    hint: to use both, each under its own name, put this there: `allowReplaces: {upbound/family: upbound/family}`
    [exit 1]
    ");
    assert!(!sandbox.has("work/Mu.lock") && !sandbox.has("work/.mu/packs"));
    let error = sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    assert_eq!(error["details"], json!({ "id": OLD, "by": NEW }));
    sandbox.mu(&["get", "--dry-run"]).ok().says(&[
        "warning: `contrib/family` would take the place of `upbound/family`, and nobody has agreed \
         to that yet: to agree, add `allowReplaces: {upbound/family: contrib/family}` to \
         `.mu/workspace.yaml`, or install it with `--yes`",
        "nothing was written",
    ]);
    // A question shows it too, and says that consent is missing.
    for arguments in [&["resolve"][..], &["resolve", "app/web", "app/tool"]] {
        sandbox.mu(arguments).ok().says(&["nobody has agreed to that yet", "allowReplaces"]);
    }
    let json = sandbox.mu(&["resolve", "--json"]).ok().json();
    assert_eq!(json["replaced"], json!([{ "id": OLD, "by": NEW, "needsConsent": true }]));
    let agreed = sandbox.mu(&["resolve", "--yes", "--json"]).ok();
    assert_eq!(agreed.json()["replaced"], json!([{ "id": OLD, "by": NEW }]));
    assert_eq!(agreed.stderr, "");
}

#[test]
fn a_yes_is_consent_and_the_lock_remembers_it() {
    let sandbox = sandbox(&["app/web", "app/tool"]);
    insta::assert_snapshot!(sandbox.mu(&["get", "--yes"]).ok().shown(), @"
    $ mu get --yes
    + app/tool 1.0.0
    + app/web 1.0.0
    + contrib/family 1.2.0
    - upbound/family (replaced by contrib/family)
    installed 3 packages (3 downloaded, 0 from cache)
    [exit 0]
    ");
    let packages = sandbox.lock()["packages"].clone();
    assert_eq!((&packages[2]["id"], &packages[2]["replaces"]), (&json!(NEW), &json!([OLD])));
    let old = json!({
        "id": OLD,
        "version": "1.2.0",
        "source": packages[2]["source"],
        "requested": ["^1 by hub.mu.com/app/web"],
        "replacedBy": NEW,
    });
    assert_eq!(packages[3], old);
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/upbound"));
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("can be removed");
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    // A package that is added later does not need consent again.
    sandbox.hub().publish(&Package::new("app/more", "1.0.0").needs("upbound/family#>=1"));
    let answer = sandbox.mu(&["add", "app/more", "--json"]).ok().json();
    assert_eq!(answer["replaced"], json!([{ "id": OLD, "by": NEW }]));
    sandbox.mu(&["update"]).ok();
    assert!(sandbox.read("Mu.lock").contains("replacedBy"));
}

#[test]
fn the_settings_can_consent() {
    let sandbox = sandbox(&["app/web", "app/tool"]);
    allow(&sandbox, OLD, NEW);
    let answer = sandbox.mu(&["get", "--json"]).ok().json();
    assert_eq!(ids(&answer), [NEW, "hub.mu.com/app/tool", "hub.mu.com/app/web"]);
    assert_eq!(answer["replaced"], json!([{ "id": OLD, "by": NEW }]));
    assert_eq!(answer["packages"][2]["dependencies"], json!([NEW]));
    let asked = json!([
        { "by": "hub.mu.com/app/tool", "spec": "^1" },
        { "by": "hub.mu.com/app/web", "spec": "^1", "of": OLD },
    ]);
    assert_eq!(answer["packages"][0]["requested"], asked);
    assert_eq!(answer["packages"][0]["direct"], false);
}

#[test]
fn the_settings_can_keep_both() {
    let sandbox = sandbox(&["app/web", "app/tool"]);
    sandbox.mu(&["get", "--yes"]).ok();
    allow(&sandbox, OLD, OLD);
    let answer = sandbox.mu(&["get", "--json"]).ok().json();
    assert_eq!(answer["replaced"], json!([]));
    assert_eq!(answer["changes"], json!([{ "id": OLD, "from": null, "to": "1.1.0" }]));
}

#[test]
fn the_old_packages_index_can_consent() {
    let sandbox = sandbox(&["app/web", "app/tool"]);
    let moved = Package::new("upbound/family", "1.1.1").key("movedTo", json!(NEW));
    sandbox.hub().publish(&moved);
    let answer = sandbox.mu(&["get", "--json"]).ok().json();
    assert_eq!(answer["replaced"], json!([{ "id": OLD, "by": NEW }]));
}

#[test]
fn an_owner_may_replace_what_is_in_the_same_namespace() {
    let sandbox = Sandbox::with_dependencies(&["acme/old", "acme/new"]);
    let replaces = json!(["acme/old"]);
    sandbox.publish(&[
        Package::new("acme/old", "1.0.0"),
        Package::new("acme/new", "2.0.0").key("replaces", replaces),
    ]);
    let answer = sandbox.mu(&["get", "--json"]).ok().json();
    assert_eq!(ids(&answer), ["hub.mu.com/acme/new"]);
    assert_eq!(answer["packages"][0]["direct"], true);
}

#[test]
fn names_without_a_namespace_have_no_common_owner() {
    let sandbox = Sandbox::with_dependencies(&["old", "new"]);
    sandbox.publish(&[
        Package::new("old", "1.0.0"),
        Package::new("new", "2.0.0").key("replaces", json!(["old"])),
    ]);
    let error = sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    assert_eq!(error["details"], json!({ "id": "hub.mu.com/old", "by": "hub.mu.com/new" }));
}

#[test]
fn the_old_pack_stays_until_it_is_removed() {
    let sandbox = sandbox(&["app/web"]);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/upbound/family"));
    insta::assert_snapshot!(sandbox.mu(&["add", "app/tool", "-y"]).ok().shown(), @"
    $ mu add app/tool -y
    + app/tool 1.0.0
    + contrib/family 1.2.0
    - upbound/family 1.1.0 (replaced by contrib/family)
    added app/tool ^1.0.0 to acme/web (Mu.yaml)
    installed 2 packages (2 downloaded, 0 from cache), 3 in all
    [exit 0]
    ");
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/upbound/family"));
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    sandbox.mu(&["verify"]).ok();
    insta::assert_snapshot!(sandbox.mu(&["list"]).ok().shown(), @"
    $ mu list
    package         version  from                                                                              note
    app/tool        1.0.0    hub+file://[DIR]/hub/
    app/web         1.0.0    hub+file://[DIR]/hub/
    contrib/family  1.2.0    hub+file://[DIR]/hub/
    upbound/family  1.1.0    hub+file://[DIR]/hub/  replaced by contrib/family
    [exit 0]
    ");
    let listed = sandbox.mu(&["list", "--json"]).ok().json();
    let replaced = listed["packages"].as_array().expect("is a list").last().expect("is there");
    assert_eq!((&replaced["id"], &replaced["replacedBy"]), (&json!(OLD), &json!(NEW)));
    assert_eq!((&replaced["version"], &replaced["installed"]), (&json!("1.1.0"), &json!(true)));

    insta::assert_snapshot!(sandbox.mu(&["which", "upbound/family"]).ok().shown(), @"
    $ mu which upbound/family
    [DIR]/work/.mu/packs/hub.mu.com/contrib/family
    warning: `upbound/family` was replaced by `contrib/family`
    [exit 0]
    ");
    let all = sandbox.mu(&["which", "upbound/family", "--all"]).ok();
    all.says(&["passed over: replaced by `contrib/family`", "warning: ", "was replaced by"]);
    insta::assert_snapshot!(sandbox.mu(&["tree"]).ok().shown(), @"
    $ mu tree
    acme/web 0.1.0
    ├── app/tool 1.0.0 [required: ^1.0.0]
    │   └── contrib/family 1.2.0 [required: ^1]
    └── app/web 1.0.0 [required: any version]
        └── contrib/family 1.2.0 [required: ^1 as upbound/family]
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["why", "upbound/family"]).ok().shown(), @"
    $ mu why upbound/family
    contrib/family 1.2.0
    from hub+file://[DIR]/hub/
    required:
      ^1 by app/tool (at least this version)
      ^1 by app/web (required of upbound/family)
    there is no newer release
    paths to it:
      acme/web → app/tool ^1.0.0 → contrib/family ^1
      acme/web → app/web latest → contrib/family ^1 as upbound/family
    warning: `upbound/family` was replaced by `contrib/family`, which is shown instead
    [exit 0]
    ");

    sandbox.mu(&["remove", "upbound/family"]).ok();
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/upbound"));
    assert!(sandbox.read("Mu.lock").contains("replacedBy"), "something still requires it");
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    let refusal = sandbox.mu(&["remove", "upbound/family"]).fails();
    refusal.says(&["nothing here requires `upbound/family`", "`contrib/family` took its place"]);

    // Without its replacement, it is back.
    sandbox.mu(&["remove", "app/tool"]).ok().says(&["+ upbound/family 1.1.0"]);
    assert!(!sandbox.read("Mu.lock").contains("replacedBy"));
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/upbound/family"));
}

#[test]
fn the_old_pack_stays_though_the_store_has_lost_its_content() {
    let sandbox = sandbox(&["app/web"]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["add", "app/tool", "-y"]).ok();
    sandbox.mu(&["cache", "clean"]).ok();
    sandbox.publish(&[
        Package::new("upbound/family/more", "1.0.0"),
        Package::new("app/else", "1.0.0"),
    ]);
    let old = "work/.mu/packs/hub.mu.com/upbound/family";
    sandbox.mu(&["add", "app/else"]).ok();
    assert!(sandbox.has(&format!("{old}/Mu.yaml")));
    // A pack inside of it rebuilds it from itself.
    sandbox.mu(&["cache", "clean"]).ok();
    sandbox.mu(&["add", "upbound/family/more"]).ok();
    assert!(sandbox.has(&format!("{old}/Mu.yaml")) && sandbox.has(&format!("{old}/more/Mu.yaml")));
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    sandbox.mu(&["remove", "upbound/family"]).ok();
    assert!(!sandbox.has(&format!("{old}/Mu.yaml")) && sandbox.has(&format!("{old}/more/Mu.yaml")));
}

#[test]
fn removing_the_last_who_asks_for_a_replaced_package_forgets_it() {
    let sandbox = sandbox(&["upbound/family#^1", "app/tool"]);
    sandbox.mu(&["get", "--yes"]).ok();
    let manifest = sandbox.read("Mu.yaml");
    sandbox.mu(&["remove", "upbound/family"]).ok();
    assert!(!sandbox.read("Mu.lock").contains("upbound/family\n  version"));
    assert_ne!(sandbox.read("Mu.yaml"), manifest);
}

#[test]
fn a_version_that_does_not_fit_is_no_replacement() {
    let sandbox = sandbox(&["upbound/family#1.0.0", "app/tool"]);
    insta::assert_snapshot!(sandbox.mu(&["get", "--yes"]).fails().shown(), @"
    $ mu get --yes
    error: no versions fit together
      acme/web requires app/tool
      app/tool 1.0.0 requires contrib/family ^1
      contrib/family 1.2.0 replaces upbound/family
      acme/web requires upbound/family 1.0.0
      no version of contrib/family is both ^1 and 1.0.0 (required of upbound/family)

    hint: use upbound/family itself beside what would replace it: write `upbound/family: upbound/family` under `allowReplaces` in `.mu/workspace.yaml`
    [exit 1]
    ");
}

#[test]
fn a_package_of_the_workspace_replaces_without_being_asked() {
    let sandbox = sandbox(&["app/web"]);
    sandbox.mu(&["get"]).ok();
    let own = "name: acme/own\nversion: 1.3.0\nreplaces: [upbound/family]\n";
    sandbox.write("own/Mu.yaml", own);
    insta::assert_snapshot!(sandbox.mu(&["get"]).ok().shown(), @"
    $ mu get
    + acme/own 1.3.0 (workspace)
    - upbound/family 1.1.0 (replaced by acme/own)
    up to date (1 package)
    [exit 0]
    ");
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    assert!(sandbox.read("Mu.lock").contains("replacedBy: hub.mu.com/acme/own\n"));
    sandbox.mu(&["which", "upbound/family"]).ok().says(&["[DIR]/work/own\n", "was replaced by"]);
    sandbox.write("own/Mu.yaml", "name: acme/own\nversion: 1.3.0\n");
    sandbox.mu(&["get"]).ok().says(&["+ upbound/family 1.1.0"]);
}

#[test]
fn the_minimal_strategy_replaces_too() {
    let mut sandbox = sandbox(&["app/web", "app/tool", "upbound/family#^1.0"]);
    sandbox.set("MU_RESOLUTION", "minimal");
    sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    let manifest = sandbox.read("Mu.yaml");
    let answer = sandbox.mu(&["get", "--yes", "--json"]).ok().json();
    assert_eq!(ids(&answer), [NEW, "hub.mu.com/app/tool", "hub.mu.com/app/web"]);
    assert_eq!(answer["replaced"], json!([{ "id": OLD, "by": NEW }]));
    assert!(sandbox.read("Mu.yaml").contains("upbound/family#^1.0"), "{manifest}");
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    let replaces = json!(["upbound/family"]);
    sandbox.hub().publish(&Package::new("contrib/family", "1.3.0").key("replaces", replaces));
    sandbox.mu(&["update"]).ok().says(&["~ contrib/family 1.2.0 → 1.3.0"]);
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    sandbox.mu(&["downgrade", "contrib/family#1.2.0"]).ok();
    sandbox.mu(&["remove", "app/tool"]).ok().says(&["+ upbound/family 1.0.0"]);
}

#[test]
fn global_packs_are_replaced_too() {
    let sandbox = sandbox(&[]);
    sandbox.mu(&["get", "-g", "app/web"]).ok();
    sandbox.mu(&["get", "-g", "app/tool"]).fails().says(&["`~/.mu/config.yaml`"]);
    sandbox.mu(&["get", "-g", "app/tool", "--yes"]).ok();
    sandbox.mu(&["list", "-g"]).ok().says(&["replaced by contrib/family"]);
    let found = sandbox.mu(&["which", "upbound/family"]).ok();
    found.says(&["packs/hub.mu.com/contrib/family", "was replaced by"]);
}

#[test]
fn of_two_that_replace_one_the_settings_say_which() {
    let sandbox = sandbox(&["app/web", "app/tool", "other/family"]);
    let replaces = json!(["upbound/family"]);
    sandbox.hub().publish(&Package::new("other/family", "1.0.0").key("replaces", replaces));
    insta::assert_snapshot!(sandbox.mu(&["get", "--yes"]).fails().shown(), @"
    $ mu get --yes
    error: no versions fit together
      acme/web requires app/tool
      app/tool 1.0.0 requires contrib/family ^1
      contrib/family 1.2.0 replaces upbound/family
      acme/web requires app/web
      app/web 1.0.0 requires upbound/family ^1
      acme/web requires other/family
      other/family 1.0.0 replaces upbound/family
      only one package at a time can replace upbound/family

    hint: let only contrib/family replace upbound/family: write `upbound/family: contrib/family` under `allowReplaces` in `.mu/workspace.yaml`
    hint: let only other/family replace upbound/family: write `upbound/family: other/family` under `allowReplaces` in `.mu/workspace.yaml`
    hint: use upbound/family itself beside what would replace it: write `upbound/family: upbound/family` under `allowReplaces` in `.mu/workspace.yaml`
    [exit 1]
    ");
    allow(&sandbox, OLD, "hub.mu.com/other/family");
    let answer = sandbox.mu(&["get", "--json"]).ok().json();
    assert_eq!(answer["replaced"], json!([{ "id": OLD, "by": "hub.mu.com/other/family" }]));
}

#[test]
fn a_replaced_dependency_is_not_pinned() {
    let sandbox = sandbox(&["upbound/family#^1", "app/tool"]);
    sandbox.mu(&["get", "--yes"]).ok();
    sandbox.mu(&["pin"]).ok();
    let manifest = sandbox.read("Mu.yaml");
    assert!(manifest.contains("- upbound/family#^1\n"), "{manifest}");
    assert!(manifest.contains("- app/tool#1.0.0 # pinned"), "{manifest}");
}

#[test]
fn a_package_of_a_repository_replaces_one_of_a_hub() {
    let sandbox = sandbox(&["app/web"]);
    let folder = sandbox.path("family");
    let package = Package::new("contrib/family", "1.4.0");
    package.manifest("replaces: [hub.mu.com/upbound/family]\n").write_into(&folder);
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).current_dir(&folder);
        let output = command.args(arguments).output().expect("git is there");
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "begin"]);
    git(&["tag", "v1.4.0"]);
    let reference = format!("git+file://{}#^1", folder.display());
    sandbox.mu(&["get", &reference]).fails().says(&["nobody has agreed to it"]);
    let answer = sandbox.mu(&["get", &reference, "--yes", "--json"]).ok().json();
    assert_eq!(answer["replaced"][0]["id"], OLD);
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    sandbox.mu(&["update"]).ok();
    assert!(sandbox.read("Mu.lock").contains("replacedBy"));
}

#[test]
fn what_is_replaced_need_not_be_there_any_more() {
    let sandbox = sandbox(&["app/web", "app/tool"]);
    std::fs::remove_file(sandbox.hub().index("upbound/family")).expect("was there");
    sandbox.mu(&["get", "--yes"]).ok();
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
}

/// A workspace that requires a package, and for the one that replaces it from its next version on.
fn both() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["acme/old#^1", "acme/new#^1"]);
    sandbox.publish(&[Package::new("acme/old", "1.0.0"), Package::new("acme/new", "1.1.0")]);
    for version in ["1.2.0", "2.0.0"] {
        let new = Package::new("acme/new", version).key("replaces", json!(["acme/old"]));
        sandbox.hub().publish(&new);
    }
    sandbox
}

#[test]
fn an_upgrade_leaves_what_is_asked_of_a_replaced_package() {
    for strategy in ["highest", "minimal"] {
        let mut sandbox = both();
        sandbox.set("MU_RESOLUTION", strategy);
        sandbox.mu(&["get"]).ok();
        let run = sandbox.mu(&["upgrade"]).ok();
        run.says(&[
            "`Mu.yaml` requires `acme/old#^1`, but `acme/new` is used in its place",
            "to upgrade further, remove this requirement\n",
        ]);
        assert_eq!(sandbox.locked()[0], "hub.mu.com/acme/new 1.2.0", "{strategy}");
        let manifest = sandbox.read("Mu.yaml");
        assert!(manifest.contains("- acme/old#^1\n"), "{manifest}");
        sandbox.mu(&["upgrade", "acme/new"]).ok().says(&["remove this requirement\n"]);
        sandbox.write("Mu.yaml", &manifest.replace("  - acme/old#^1\n", ""));
        sandbox.mu(&["upgrade"]).ok().says(&["~ acme/new 1.2.0 → 2.0.0"]);
    }
}

#[test]
fn an_upgrade_says_what_to_ask_for_instead_of_a_replaced_package() {
    let sandbox = Sandbox::with_dependencies(&["acme/old#^1", "acme/app"]);
    sandbox.publish(&[
        Package::new("acme/old", "1.0.0"),
        Package::new("acme/new", "1.2.0").key("replaces", json!(["acme/old"])),
        Package::new("acme/app", "1.0.0").needs("acme/new"),
    ]);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["upgrade"]).ok();
    run.says(&["to upgrade further, write `acme/new#^1` there instead\n"]);
}

#[test]
fn who_asks_for_both_names_is_one_way() {
    let sandbox = both();
    sandbox.mu(&["get"]).ok();
    let answer = sandbox.mu(&["why", "acme/new", "--json"]).ok().json();
    assert_eq!(answer["paths"], json!([["acme/web", "hub.mu.com/acme/new"]]));
    sandbox.mu(&["why", "acme/new"]).ok().says(&["  acme/web → acme/new ^1 and ^1 as acme/old\n"]);
}
