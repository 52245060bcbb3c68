//! Override by placement: a package in the workspace replaces the published one, everywhere.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Package, Sandbox};

/// `acme/web` needs `aws/app`, which needs `aws/ec2`.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1"]);
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/ec2#^1.0"),
        Package::new("aws/ec2", "1.0.6"),
    ]);
    sandbox
}

#[test]
fn a_package_in_the_workspace_overrides_a_transitive_dependency() {
    let sandbox = sandbox();
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/app 1.0.0", "hub.mu.com/aws/ec2 1.0.6"]);
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0"));
    let run = sandbox.mu(&["get", "--json"]).ok();
    let packages = run.json()["packages"].clone();
    assert_eq!(packages[0]["id"], "hub.mu.com/aws/ec2");
    assert_eq!(packages[0]["source"], "workspace+aws/ec2");
    assert_eq!(sandbox.lock()["packages"][1]["source"], "workspace+aws/ec2");
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2"), "the pack is needed no longer");
    let run = sandbox.mu(&["which", "aws/ec2"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/aws/ec2\n");
    // Without it, the published one is back.
    std::fs::remove_dir_all(sandbox.path("work/aws")).expect("was there");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/app 1.0.0", "hub.mu.com/aws/ec2 1.0.6"]);
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/Mu.yaml"));
}

#[test]
fn one_that_does_not_satisfy_is_used_all_the_same_with_a_warning() {
    let sandbox = sandbox();
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "2.0.0"));
    let run = sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    + aws/app 1.0.0
    + aws/ec2 2.0.0 (workspace)
    warning: `aws/ec2` is used from the workspace at version 2.0.0, although aws/app requires ^1.0
    installed 1 package (1 downloaded, 0 from cache)
    [exit 0]
    ");
    assert_eq!(sandbox.lock()["packages"][1]["version"], "2.0.0");
    // Nor is it forgotten once it is in the lock.
    let again = sandbox.mu(&["get"]).ok();
    again.says(&["up to date (", "version 2.0.0, although aws/app requires ^1.0"]);
    let status = sandbox.mu(&["status", "--json"]).ok().json();
    assert_eq!(status["placed"], json!([{"id": "hub.mu.com/aws/ec2", "path": "aws/ec2"}]));
}

/// If `mu which` does not find a package in the workspace, `mu get` does not use it from there either, and
/// says why.
fn check_left_out(sandbox: &Sandbox, why: &str) {
    sandbox.mu(&["which", "aws/ec2"]).fails().says(&["2. [DIR]/work/aws/ec2: passed over", why]);
    let warning = format!("`aws/ec2` is not taken from `[DIR]/work/aws/ec2`: {why}");
    let outcome = sandbox.mu(&["get"]).ok();
    outcome.says(&[&warning]);
    sandbox.mu(&["get"]).ok().says(&["up to date (", &warning]);
    sandbox.mu(&["status"]).ok().says(&[&warning]);
    let all = sandbox.mu(&["which", "aws/ec2", "--all", "--json"]).ok().json();
    assert_eq!(all["places"][1]["state"], "passed over", "{all}");
    assert_eq!(all["places"][2]["state"], "hit", "{all}");
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/app 1.0.0", "hub.mu.com/aws/ec2 1.0.6"]);
}

#[test]
fn a_folder_that_members_does_not_name_is_told_and_not_used() {
    let sandbox = sandbox();
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0"));
    sandbox.write(".mu/workspace.yaml", "members: []\n");
    check_left_out(&sandbox, "`members` in `.mu/workspace.yaml` does not name it");
}

#[cfg(unix)]
#[test]
fn a_folder_behind_a_link_is_told_and_not_used() {
    let sandbox = sandbox();
    sandbox.place("elsewhere/ec2", &Package::new("aws/ec2", "1.5.0"));
    std::os::unix::fs::symlink(sandbox.path("elsewhere"), sandbox.path("work/aws"))
        .expect("is new");
    check_left_out(&sandbox, "`[DIR]/work/aws` is a link, which is not followed");
}

#[test]
fn a_workspace_of_its_own_is_used_where_its_name_leads_and_else_told() {
    let sandbox = sandbox();
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0"));
    sandbox.write("aws/ec2/.mu/workspace.yaml", "namespace: aws\n");
    sandbox.mu(&["get"]).ok().says(&["aws/ec2 1.5.0 (workspace)"]);
    assert_eq!(sandbox.mu(&["which", "aws/ec2"]).ok().stdout, "[DIR]/work/aws/ec2\n");
    std::fs::remove_dir_all(sandbox.path("work/.mu")).expect("was there");
    std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.write("aws/.mu/workspace.yaml", "");
    check_left_out(&sandbox, "`[DIR]/work/aws` is a workspace of its own");
}

#[test]
fn a_package_that_is_only_installed_is_used_from_its_place() {
    let sandbox = Sandbox::with_dependencies(&["std/core#^1"]);
    sandbox.publish(&[Package::new("aws/app", "1.0.0")]);
    for (folder, source) in [
        ("runtime/lib/packs/std/core", "pack+muroot/std/core"),
        ("home/.mu/packs/hub.mu.com/std/core", "pack+global/hub.mu.com/std/core"),
    ] {
        sandbox.place(folder, &Package::new("std/core", "1.2.0"));
        let place = format!("[DIR]/{folder}");
        assert_eq!(sandbox.mu(&["which", "std/core"]).ok().stdout, format!("{place}\n"));
        sandbox.mu(&["get"]).ok().says(&["std/core 1.2.0"]);
        assert_eq!(sandbox.lock()["packages"][0]["source"], source);
        std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("was written");
        std::fs::remove_dir_all(sandbox.path("work/.mu")).expect("was made");
    }
}

#[test]
fn what_the_lock_has_installed_is_not_told_as_a_find() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    std::fs::remove_file(sandbox.path("hub/index/aws/ec2.jsonl")).expect("was published");
    let run = sandbox.mu(&["get", "aws/ec2#^2"]).fails();
    run.says(&["there is no package aws/ec2"]).does_not_say(&["overrides"]);
}

#[test]
fn its_own_dependencies_count() {
    let sandbox = sandbox();
    sandbox.publish(&[Package::new("aws/vpc", "3.0.0")]);
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.0.7").needs("aws/vpc#3.x"));
    sandbox.mu(&["get"]).ok();
    assert_eq!(
        sandbox.locked(),
        ["hub.mu.com/aws/app 1.0.0", "hub.mu.com/aws/ec2 1.0.7", "hub.mu.com/aws/vpc 3.0.0"]
    );
}

#[test]
fn packages_of_one_workspace_depend_on_each_other() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    sandbox.place("work/web", &Package::new("acme/web", "1.0.0").needs("acme/api#^1"));
    sandbox.place("work/api", &Package::new("acme/api", "1.3.0").needs("./../shared"));
    sandbox.place("work/shared", &Package::new("acme/shared", "0.1.0"));
    let run = sandbox.mu(&["get"]).ok();
    assert_eq!(run.stderr.matches("warning").count(), 0, "{}", run.shown());
    assert_eq!(sandbox.locked(), ["hub.mu.com/acme/api 1.3.0", "hub.mu.com/acme/shared 0.1.0"]);
    let sources = sandbox.lock()["packages"].clone();
    assert_eq!(
        (&sources[0]["source"], &sources[1]["source"]),
        (&json!("workspace+api"), &json!("workspace+shared"))
    );
}

#[test]
fn a_package_of_the_workspace_that_is_gone_is_told_by_where_it_was() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    sandbox.place("work/web", &Package::new("acme/web", "1.0.0").needs("acme/api#^1"));
    sandbox.place("work/api", &Package::new("acme/api", "1.3.0").needs("aws/ec2"));
    sandbox.mu(&["get"]).ok();
    fs::remove_dir_all(sandbox.path("work/api")).expect("is there");
    let status = sandbox.mu(&["status"]).ok();
    status.says(&["acme/api is no longer in the workspace"]).does_not_say(&["used from"]);
    let gone = sandbox.mu(&["get"]).fails();
    gone.says(&["Mu.lock has `acme/api` from `api` in this workspace, where it is no longer"])
        .does_not_say(&["mu search"]);
    // So is a folder that a manifest names. Nobody else is asked, also about the same path in lower case.
    sandbox.place("work/web", &Package::new("acme/web", "1.0.0").needs("../Shared"));
    let gone = sandbox.mu(&["get", "-v"]).fails();
    gone.says(&["the path of a folder begins at the manifest"])
        .does_not_say(&["mu search", "localhost"]);
}

#[test]
fn the_settings_may_override_too() {
    let sandbox = sandbox();
    sandbox.trusts_folder("elsewhere/*");
    sandbox.place("elsewhere/ec2", &Package::new("me/ec2", "1.0.7").file("patched", ""));
    let text = "overrides: {hub.mu.com/aws/ec2: ../elsewhere/ec2}\n";
    sandbox.write(".mu/workspace.yaml", text);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["list"]).ok();
    run.says(&["path+../elsewhere/ec2"]).does_not_say(&["not installed"]);
    // It has the name of the package that it replaces, also in the lock.
    assert_eq!(sandbox.locked()[1], "hub.mu.com/aws/ec2 1.0.7");
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date ("]);
    sandbox.mu(&["status"]).ok().says(&["up to date"]);
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["why", "aws/ec2"]).ok().says(&["../elsewhere/ec2 by overrides"]);
    // Also a folder of the workspace, which is not one where references look.
    sandbox.place("work/fork", &Package::new("aws/ec2", "1.0.8"));
    sandbox.write(".mu/workspace.yaml", "overrides: {hub.mu.com/aws/ec2: ./fork}\n");
    sandbox.mu(&["get"]).ok().says(&["1.0.7 → 1.0.8"]);
    sandbox.mu(&["which", "aws/ec2"]).ok().does_not_say(&["warning"]);
}

#[test]
fn what_is_in_use_already_may_be_used_instead_of_another_package() {
    let sandbox = sandbox();
    sandbox.publish(&[Package::new("aws/app", "1.1.0").needs("aws/ec2#^1.0")]);
    sandbox.mu(&["get"]).ok();
    // The lock has `aws/app` in one version, and its registry in two.
    let settings = sandbox.read(".mu/workspace.yaml");
    let overrides = "overrides: {aws/ec2: aws/app}\n";
    sandbox.write(".mu/workspace.yaml", &format!("{settings}{overrides}"));
    sandbox.mu(&["get"]).ok().says(&["~ aws/ec2 1.0.6 → 1.1.0"]);
    let lock = sandbox.lock();
    let [app, ec2] = [0, 1].map(|at| lock["packages"][at].clone());
    assert_eq!((&ec2["from"], &ec2["digest"]), (&"hub.mu.com/aws/app".into(), &app["digest"]));
    assert_eq!(app["version"], "1.1.0");
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date ("]);
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.mu(&["get"]).ok().says(&["~ aws/ec2 1.1.0 → 1.0.6"]);
}

#[test]
fn a_package_of_the_workspace_that_overrides_its_own_name_is_used_as_it_is() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
    sandbox.place("work/fork", &Package::new("aws/ec2", "1.0.8").file("main.tf", "one\n"));
    sandbox.write(".mu/workspace.yaml", "overrides: {aws/ec2: ./fork}\n");
    sandbox.mu(&["get"]).ok().says(&["+ aws/ec2 1.0.8 (workspace)"]).does_not_say(&["warning"]);
    let locked = &sandbox.lock()["packages"][0];
    assert_eq!((&locked["source"], &locked["digest"]), (&"workspace+fork".into(), &Value::Null));
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2"));
    // Whoever changes a file of it need not lock it again.
    sandbox.write("fork/main.tf", "two\n");
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["which", "aws/ec2"]).ok().says(&["work/fork"]).does_not_say(&["warning"]);
    sandbox.mu(&["status"]).ok().says(&["used by others here"]).does_not_say(&["warning"]);
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.mu(&["get"]).ok().says(&["1.0.8 → 1.0.0"]);
}

#[test]
fn an_override_of_what_nothing_requires_is_told() {
    let sandbox = Sandbox::with_dependencies(&["aws/elk"]);
    sandbox.publish(&[
        Package::new("aws/elk", "1.0.0").needs("aws/utils"),
        Package::new("aws/utils", "1.5.0"),
    ]);
    sandbox.write(".mu/workspace.yaml", "overrides: {aws/utlis: ./x, aws/utils: 1.5.0}\n");
    let told = "warning: `overrides` in `.mu/workspace.yaml` is of no use for `aws/utlis`: nothing here requires it\n";
    for arguments in [&["get"][..], &["get"], &["update"]] {
        let run = sandbox.mu(arguments).ok();
        assert_eq!(run.stderr.matches(told).count(), 1, "{}", run.shown());
        run.does_not_say(&["`aws/utils`"]);
    }
    for arguments in [["get", "--locked"], ["get", "--frozen"]] {
        sandbox.mu(&arguments).ok().does_not_say(&["of no use"]);
    }
    // What the user overrides is for every workspace.
    sandbox.write(".mu/workspace.yaml", "");
    let own = sandbox.read("../home/.mu/config.yaml");
    sandbox.write("../home/.mu/config.yaml", &format!("{own}overrides: {{aws/utlis: 1.0.0}}\n"));
    sandbox.mu(&["get"]).ok().does_not_say(&["of no use"]);
}

#[test]
fn an_override_may_name_a_version_alone() {
    let sandbox = Sandbox::with_dependencies(&["aws/elk"]);
    sandbox.publish(&[
        Package::new("aws/elk", "1.0.0").needs("aws/utils#^2"),
        Package::new("aws/utils", "1.5.0"),
        Package::new("aws/utils", "2.0.0"),
    ]);
    sandbox.write(".mu/workspace.yaml", "overrides: {hub.mu.com/aws/utils: 1.5.0}\n");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/elk 1.0.0", "hub.mu.com/aws/utils 1.5.0"]);
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    // Nothing else keeps the newer one away, and no requirement is what the version comes from.
    let why = sandbox.mu(&["why", "aws/utils"]).ok();
    why.says(&["2.0.0 is not 1.5.0, which overrides requires"])
        .does_not_say(&["at least", "which aws/elk requires"]);
    let outdated = sandbox.mu(&["outdated"]).ok();
    outdated.says(&["1.5.0 by overrides"]).does_not_say(&["^2 by"]);
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked()[1], "hub.mu.com/aws/utils 2.0.0");
}

#[test]
fn an_override_that_is_not_what_packages_require_is_reported_once_a_command() {
    let sandbox = Sandbox::with_dependencies(&["aws/elk", "aws/utils#^3"]);
    sandbox.publish(&[
        Package::new("aws/elk", "1.0.0").needs("aws/utils#^2"),
        Package::new("aws/utils", "1.5.0"),
        Package::new("aws/utils", "2.0.0"),
    ]);
    let warning = |version: &str, requirements: &str| {
        format!(
            "warning: `aws/utils` {version} is used because of `overrides` in the settings, although {requirements}\n"
        )
    };
    let both = "acme/web requires ^3, and aws/elk requires ^2";
    sandbox.write(".mu/workspace.yaml", "overrides: {aws/utils: 1.5.0}\n");
    for arguments in [&["get"][..], &["get"], &["get", "--locked"], &["update"], &["resolve"]] {
        let run = sandbox.mu(arguments).ok();
        assert_eq!(run.stderr.matches(&warning("1.5.0", both)).count(), 1, "{}", run.shown());
    }
    sandbox.mu(&["get", "-q"]).ok().does_not_say(&["requires"]);
    // Only what it breaks is named.
    sandbox.write(".mu/workspace.yaml", "overrides: {aws/utils: 2.0.0}\n");
    let run = sandbox.mu(&["get"]).ok();
    run.says(&[&warning("2.0.0", "acme/web requires ^3")]);
    // A folder without a version may be anything.
    sandbox.trusts_folder("elsewhere");
    for (manifest, is_said) in [("version: 3.1.0", true), ("description: ours", false)] {
        sandbox.write("../elsewhere/Mu.yaml", &format!("name: aws/utils\n{manifest}\n"));
        sandbox.write(".mu/workspace.yaml", "overrides: {aws/utils: ../elsewhere}\n");
        let run = sandbox.mu(&["get"]).ok();
        let expected = warning("3.1.0", "aws/elk requires ^2");
        assert_eq!(run.stderr.contains(&expected), is_said, "{}", run.shown());
        assert_eq!(run.stderr.contains("requires"), is_said, "{}", run.shown());
    }
    // One that fits is not reported.
    sandbox.asks_for(&["aws/elk"]);
    sandbox.write(".mu/workspace.yaml", "overrides: {aws/utils: 2.0.0}\n");
    sandbox.mu(&["get"]).ok().does_not_say(&["requires"]);
}

#[test]
fn a_folder_of_the_workspace_is_one_package_whatever_leads_to_it() {
    let sandbox = Sandbox::with_dependencies(&["acme/api", "aws/front"]);
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    sandbox.write("api/Mu.yaml", "name: acme/api\nversion: 1.0.0\n");
    sandbox.publish(&[Package::new("aws/front", "1.0.0").needs("hub.mu.com/api#^1")]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/acme/api 1.0.0", "hub.mu.com/aws/front 1.0.0"]);
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn what_a_package_that_git_ignores_needs_is_not_the_teams_even_if_nothing_needs_it() {
    let sandbox = sandbox();
    sandbox.publish(&[Package::new("aws/s3", "1.0.0")]);
    let work = sandbox.path("work");
    crate::support::git::git(&work, &["init", "--quiet", "."]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    sandbox.write(".git/info/exclude", "/mine/\n");
    sandbox.place("work/mine", &Package::new("acme/mine", "0.1.0").needs("aws/s3"));
    for _ in 0..2 {
        sandbox.mu(&["get"]).ok();
        assert_eq!(sandbox.read("Mu.lock"), lock);
        assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/s3"));
    }
    sandbox.mu(&["get", "--locked"]).ok();
    // What Git does not ignore is the team's.
    sandbox.write(".git/info/exclude", "");
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.read("Mu.lock").contains("latest by acme/mine"), "{}", sandbox.read("Mu.lock"));
}

#[test]
fn a_folder_of_ones_own_stays_that_when_its_package_is_added() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.publish(&[Package::new("aws/s3", "1.0.0"), Package::new("aws/log", "1.0.0")]);
    let conflicts = json!(["aws/s3"]);
    sandbox.publish(&[Package::new("aws/old", "1.0.0")
        .manifest("conflicts: [aws/s3]\n")
        .key("conflicts", conflicts)]);
    crate::support::git::git(&sandbox.path("work"), &["init", "--quiet", "."]);
    sandbox.write(".git/info/exclude", "/aws/s3/\n");
    sandbox.place("work/aws/s3", &Package::new("aws/s3", "1.0.0"));
    sandbox.mu(&["add", "aws/log"]).ok();
    sandbox.mu(&["add", "aws/s3"]).ok();
    assert!(!sandbox.read("Mu.lock").contains("workspace+"), "{}", sandbox.read("Mu.lock"));
    std::fs::remove_dir_all(sandbox.path("work/aws/s3")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
    // Nor does it keep the team from what it is in conflict with.
    sandbox.asks_for(&["aws/old"]);
    sandbox.mu(&["get"]).ok();
    sandbox.place("work/aws/s3", &Package::new("aws/s3", "1.0.0"));
    sandbox.mu(&["get", "--locked"]).ok();
}
