//! Which packages of a workspace a branch affects: by their own files, by Mu.lock, by each other; in checkouts of any format.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::Sandbox;
use crate::support::git::{REPOSITORY_FORMATS, git};

/// A committed workspace: `web` needs `lib` and `aws/app`, which needs `aws/ec2`; `lib` needs `aws/vpc`; `docs` needs nothing.
fn committed(init: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/app 1.0.0: aws/ec2#^1.0\naws/ec2 1.0.6:\naws/vpc 2.0.0:");
    for (name, dependencies) in
        [("web", "[acme/lib, 'aws/app#^1']"), ("lib", "['aws/vpc#^2']"), ("docs", "[]")]
    {
        let text = format!("name: acme/{name}\nversion: 0.1.0\ndependencies: {dependencies}\n");
        sandbox.write(&format!("acme/{name}/Mu.yaml"), &text);
        sandbox.write(&format!("acme/{name}/file"), "one");
    }
    sandbox.write(".gitignore", "/.mu/packs/\n*.tmp\n");
    sandbox.mu(&["get"]).ok();
    let work = sandbox.path("work");
    git(&work, &[&["init", "--quiet", "--initial-branch=main"], init].concat());
    commit(&work);
    git(&work, &["checkout", "--quiet", "-b", "topic"]);
    sandbox
}

fn commit(work: &Path) {
    git(work, &["add", "--all"]);
    git(work, &["commit", "--quiet", "--message", "more"]);
}

fn answer(sandbox: &Sandbox) -> Value {
    let run = sandbox.mu(&["affected", "--since", "main", "--json"]).ok();
    run.json()
}

/// The folders of the affected packages.
fn affected(sandbox: &Sandbox) -> Vec<String> {
    let answer = answer(sandbox);
    let packages = answer["packages"].as_array().expect("is a list").iter();
    packages.map(|one| one["path"].as_str().expect("is text").to_owned()).collect()
}

#[test]
fn a_package_is_affected_by_its_files_and_by_those_of_packages_that_it_needs() {
    let sandbox = committed(&[]);
    sandbox.mu(&["affected", "--since", "main"]).ok().says(&["no package is affected since main"]);
    sandbox.write("acme/web/ignored.tmp", "x");
    sandbox.write("beside", "no package has it");
    assert!(affected(&sandbox).is_empty());
    sandbox.write("acme/web/new/file", "not even added");
    assert_eq!(affected(&sandbox), ["acme/web"]);
    sandbox.write("acme/lib/file", "two");
    commit(&sandbox.path("work"));
    assert_eq!(affected(&sandbox), ["acme/lib", "acme/web"]);
    let answer = answer(&sandbox);
    let web = &answer["packages"][1];
    assert_eq!(web["name"], "acme/web");
    assert_eq!(web["files"], serde_json::json!(["new/file"]));
    assert_eq!(web["members"], serde_json::json!(["acme/lib"]));
    assert_eq!(web["changes"], serde_json::json!([]));
    let main = git(&sandbox.path("work"), &["rev-parse", "main"]);
    assert_eq!(answer["commit"], main.trim());
    let run = sandbox.mu(&["affected", "--since", "main"]).ok();
    run.says(&["acme/lib", "acme/web", "new/file, acme/lib"]).does_not_say(&["acme/docs"]);
}

#[test]
fn what_others_did_on_the_branch_meanwhile_does_not_count() {
    let sandbox = committed(&[]);
    let work = sandbox.path("work");
    git(&work, &["checkout", "--quiet", "main"]);
    sandbox.write("acme/docs/file", "of others");
    commit(&work);
    git(&work, &["checkout", "--quiet", "topic"]);
    sandbox.write("acme/lib/file", "two");
    assert_eq!(affected(&sandbox), ["acme/lib", "acme/web"]);
}

#[test]
fn a_package_is_affected_by_the_entries_of_the_lock_that_it_needs() {
    let sandbox = committed(&[]);
    // A dependency of a dependency.
    sandbox.offer("aws/ec2 1.0.7:");
    sandbox.mu(&["update"]).ok();
    assert_eq!(affected(&sandbox), ["acme/web"]);
    let answer = answer(&sandbox);
    let change = &answer["packages"][0]["changes"][0];
    assert_eq!(change["id"], "hub.mu.com/aws/ec2");
    assert_eq!((&change["from"], &change["to"]), (&"1.0.6".into(), &"1.0.7".into()));
    sandbox.mu(&["affected", "--since", "main"]).ok().says(&["aws/ec2 1.0.6 → 1.0.7"]);
    // One of a package of the workspace that another one needs.
    commit(&sandbox.path("work"));
    git(&sandbox.path("work"), &["branch", "--force", "main"]);
    sandbox.offer("aws/vpc 2.1.0:");
    sandbox.mu(&["update"]).ok();
    assert_eq!(affected(&sandbox), ["acme/lib", "acme/web"]);
    // Without a lock, everything that it named is new.
    let lock = sandbox.read("Mu.lock");
    std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    git(&sandbox.path("work"), &["commit", "--quiet", "--all", "--message", "no lock"]);
    git(&sandbox.path("work"), &["branch", "--force", "main"]);
    sandbox.write("Mu.lock", &lock);
    assert_eq!(affected(&sandbox), ["acme/lib", "acme/web"]);
}

#[test]
fn settings_and_patches_count() {
    let sandbox = committed(&[]);
    sandbox.mu(&["patch", "aws/vpc"]).ok();
    let mut copies = std::fs::read_dir(sandbox.path("work/.mu/patch")).expect("is there");
    let copy = copies.next().expect("there is one").expect("can be read").path();
    std::fs::write(copy.join("more"), "x").expect("can be written");
    sandbox.mu(&["patch", "--save", "aws/vpc"]).ok();
    let answer = answer(&sandbox);
    // The settings name the patch.
    assert_eq!(answer["settings"], true);
    assert_eq!(affected(&sandbox), ["acme/docs", "acme/lib", "acme/web"]);
    let lib = &answer["packages"][1];
    assert_eq!(lib["changes"][0]["id"], "hub.mu.com/aws/vpc");
    sandbox
        .mu(&["affected", "--since", "main"])
        .ok()
        .says(&["the settings of the workspace have changed: all packages are affected"]);
}

#[test]
fn a_folder_outside_of_the_workspace_counts() {
    let mut sandbox = Sandbox::new();
    let top = sandbox.path("top");
    for (path, text) in [
        ("side/Mu.yaml", "name: acme/side\nversion: 1.0.0\n"),
        ("inner/.mu/workspace.yaml", ""),
        ("inner/Mu.yaml", "name: acme/web\nversion: 1.0.0\ndependencies: [../side]\n"),
        ("inner/other/Mu.yaml", "name: acme/other\nversion: 1.0.0\n"),
        ("inner/.gitignore", "/.mu/packs/\n"),
    ] {
        crate::support::write(&top, path, text);
    }
    sandbox.trusts_folder("top");
    sandbox.set("MU_LOG", "warn");
    sandbox.mu_in("top/inner", &["get"]).ok();
    git(&top, &["init", "--quiet", "--initial-branch=main"]);
    commit(&top);
    crate::support::write(&top, "side/file", "new");
    let run = sandbox.mu_in("top/inner", &["affected", "--since", "main", "--json"]).ok();
    let answer = run.json();
    let paths: Vec<&Value> =
        answer["packages"].as_array().expect("is a list").iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, ["."]);
}

#[test]
fn what_cannot_be_compared_is_said() {
    let sandbox = committed(&[]);
    let since = |text: &str| sandbox.mu(&["affected", "--since", text]).fails();
    since("nowhere")
        .says(&["this repository has no branch, tag or commit `nowhere`", "fetch-depth: 0"]);
    let work = sandbox.path("work");
    git(&work, &["checkout", "--quiet", "--orphan", "alone"]);
    sandbox.write("alone", "x");
    commit(&work);
    since("main").says(&["have no commit in common"]);
    // A clone of the last commit alone, as CI makes them.
    git(&work, &["checkout", "--quiet", "topic"]);
    sandbox.write("acme/lib/file", "two");
    commit(&work);
    let clone = sandbox.path("clone");
    let url = format!("file://{}", work.display());
    let arguments = ["clone", "--quiet", "--depth=1", "--no-single-branch", "--branch=topic"];
    let mut command = Command::new("git");
    command.args(arguments).arg(&url).arg(&clone).env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(command.status().expect("git runs").success());
    sandbox
        .mu_in("clone", &["affected", "--since", "origin/main"])
        .fails()
        .says(&["have no commit in common", "fetch the rest of it"]);
    std::fs::remove_dir_all(work.join(".git")).expect("is there");
    since("main").says(&["is in no Git repository"]);
}

#[test]
fn checkouts_that_libgit2_cannot_read_are_compared_too() {
    for (format, init, after) in REPOSITORY_FORMATS {
        let sandbox = committed(init);
        let work = sandbox.path("work");
        for arguments in after {
            git(&work, arguments);
        }
        // Programs that the configuration of a checkout names do not run.
        let mark = sandbox.path("mark");
        let run = format!("touch '{}'; false", mark.display());
        git(&work, &["config", "core.fsmonitor", &run]);
        git(&work, &["config", "diff.external", &run]);
        sandbox.offer("aws/ec2 1.0.7:");
        sandbox.mu(&["update"]).ok();
        assert_eq!(affected(&sandbox), ["acme/web"], "{format}");
        sandbox.write("acme/lib/new", "x");
        assert_eq!(affected(&sandbox), ["acme/lib", "acme/web"], "{format}");
        sandbox.mu(&["affected", "--since", "nowhere"]).fails().says(&["no branch, tag or commit"]);
        sandbox.mu(&["affected", "--since=--all"]).fails().says(&["no branch, tag or commit"]);
        assert!(!mark.exists(), "{format}: a program of the checkout ran");
    }
}

#[test]
fn what_a_package_has_in_it_of_others_affects_it() {
    let sandbox = committed(&[]);
    let work = sandbox.path("work");
    // A package in the folder of another one is packed with it, and a link brings what it leads to.
    sandbox.write("acme/docs/inner/Mu.yaml", "name: acme/docs/inner\n");
    sandbox.write("acme/docs/left-out/Mu.yaml", "name: acme/docs/left-out\n");
    sandbox.write("acme/docs/.muignore", "left-out\nignored\n");
    sandbox.write("LICENSE", "one");
    sandbox.write("shared/deep/file", "one");
    let links = [("../../LICENSE", "lib/LICENSE"), ("../../shared", "lib/shared")];
    for (target, link) in links.into_iter().chain([("../../LICENSE", "docs/ignored")]) {
        let link = work.join("acme").join(link);
        std::os::unix::fs::symlink(target, link).expect("can be made");
    }
    commit(&work);
    git(&work, &["branch", "--force", "main"]);
    assert!(affected(&sandbox).is_empty());
    sandbox.write("acme/docs/inner/file", "new");
    assert_eq!(affected(&sandbox), ["acme/docs", "acme/docs/inner"]);
    sandbox.write("acme/docs/inner/file", "");
    commit(&work);
    git(&work, &["branch", "--force", "main"]);
    sandbox.write("acme/docs/left-out/file", "new");
    assert_eq!(affected(&sandbox), ["acme/docs/left-out"]);
    std::fs::remove_file(work.join("acme/docs/left-out/file")).expect("is there");
    sandbox.write("LICENSE", "two");
    assert_eq!(affected(&sandbox), ["acme/lib", "acme/web"]);
    assert_eq!(answer(&sandbox)["packages"][0]["files"], serde_json::json!(["LICENSE"]));
    git(&work, &["checkout", "--quiet", "LICENSE"]);
    sandbox.write("shared/deep/file", "two");
    assert_eq!(answer(&sandbox)["packages"][0]["files"], serde_json::json!(["shared"]));
}
