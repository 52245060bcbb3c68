//! A folder that Git ignores takes the place of a package on this machine alone: Mu.lock stays as it is for everyone.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::git::{Daemon, Origin, git};
use crate::support::{Package, Sandbox};

const USING: &str = "using the edit of hub.mu.com/aws/ec2 in aws/ec2";

/// A committed workspace: `acme/web` needs `aws/app`, which needs `aws/ec2`; `aws/vpc` is needed by nobody yet.
fn team() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1"]);
    sandbox.offer(
        "aws/app 1.0.0: aws/ec2#^1.0
         aws/ec2 1.0.6:
         aws/log 1.0.0:
         aws/vpc 1.0.0:
         aws/vpc 2.0.0:",
    );
    sandbox.write(".gitignore", "/.mu/packs/\n");
    sandbox.mu(&["get"]).ok();
    commit(&sandbox, "begin");
    sandbox
}

/// Commits everything in the workspace.
fn commit(sandbox: &Sandbox, message: &str) {
    let work = sandbox.path("work");
    if !sandbox.has("work/.git") {
        git(&work, &["init", "--quiet", "--initial-branch=main"]);
    }
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--allow-empty", "--message", message]);
}

/// What Git sees as changed in the workspace.
fn changed(sandbox: &Sandbox) -> String {
    git(&sandbox.path("work"), &["status", "--porcelain", "--untracked-files=all"])
}

fn exclude(sandbox: &Sandbox, pattern: &str) {
    sandbox.write(".git/info/exclude", &format!("{pattern}\n"));
}

#[test]
fn an_ignored_folder_is_used_and_no_committed_file_changes() {
    let sandbox = team();
    let lock = sandbox.read("Mu.lock");
    exclude(&sandbox, "/aws/");
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0").needs("aws/vpc#^2"));
    let run = sandbox.mu(&["get"]).ok();
    run.says(&["+ aws/vpc 2.0.0", USING]).does_not_say(&["commits ahead"]);
    assert_eq!(sandbox.read("Mu.lock"), lock);
    assert_eq!(changed(&sandbox), "");
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2"), "the folder is used instead");
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/vpc/Mu.yaml"), "it needs this");
    let edits = sandbox.read(".mu/edits.lock");
    assert!(edits.contains("source: workspace+aws/ec2"), "{edits}");
    assert!(edits.contains("id: hub.mu.com/aws/vpc\n  version: 2.0.0"), "{edits}");
    // A second time, nothing is left to do; every command that installs says what is used.
    sandbox.mu(&["get"]).ok().says(&["up to date (", USING]);
    sandbox.mu(&["get", "--locked"]).ok().says(&[USING]);
    sandbox.mu(&["get", "--frozen"]).ok().says(&[USING]);
    let answer = sandbox.mu(&["get", "--json"]).ok().json();
    assert_eq!(
        answer["edits"],
        json!([{"id": "hub.mu.com/aws/ec2", "folder": "aws/ec2", "ahead": null}])
    );
    assert_eq!(sandbox.mu(&["which", "aws/ec2"]).ok().stdout, "[DIR]/work/aws/ec2\n");
    sandbox.mu(&["tree"]).ok().says(&["aws/vpc 2.0.0"]);
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["status"]).ok().says(&["up to date"]);
    // Another machine has not got the folder.
    fs::rename(sandbox.path("work/aws"), sandbox.path("aside")).expect("was there");
    sandbox.mu(&["get", "--locked"]).ok().does_not_say(&["using the edit"]);
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/Mu.yaml"));
    assert!(
        !sandbox.has("work/.mu/edits.lock") && !sandbox.has("work/.mu/packs/hub.mu.com/aws/vpc")
    );
    assert_eq!((sandbox.read("Mu.lock"), changed(&sandbox)), (lock, String::new()));
}

#[test]
fn moves_of_other_packages_are_those_of_everyone() {
    let sandbox = team();
    exclude(&sandbox, "/aws/");
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0").needs("aws/vpc#^1"));
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["add", "aws/log"]).ok().says(&["added aws/log ^1.0.0", USING]);
    sandbox.offer("aws/log 1.1.0:");
    sandbox.mu(&["update"]).ok().says(&["aws/log 1.0.0 → 1.1.0", USING]);
    let with_edit = (sandbox.read("Mu.lock"), sandbox.read("Mu.yaml"));
    assert!(!with_edit.0.contains("vpc") && !with_edit.0.contains("workspace+"), "{}", with_edit.0);
    // The same without the folder.
    fs::remove_dir_all(sandbox.path("work/aws")).expect("was there");
    git(&sandbox.path("work"), &["checkout", "--quiet", "."]);
    sandbox.mu(&["add", "aws/log#^1.0.0"]).ok();
    sandbox.mu(&["update"]).ok();
    assert_eq!((sandbox.read("Mu.lock"), sandbox.read("Mu.yaml")), with_edit);
}

#[test]
fn what_the_edit_moved_goes_back_when_it_no_longer_needs_that() {
    let sandbox = team();
    sandbox.asks_for(&["aws/app#^1", "aws/vpc#>=1"]);
    sandbox.mu(&["update", "aws/vpc#1.0.0"]).fails();
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["update", "aws/vpc#1.0.0"]).ok();
    commit(&sandbox, "vpc");
    let lock = sandbox.read("Mu.lock");
    exclude(&sandbox, "/aws/");
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0").needs("aws/vpc#^2"));
    sandbox.mu(&["get"]).ok().says(&["aws/vpc 1.0.0 → 2.0.0"]);
    sandbox.offer("aws/vpc 2.1.0:");
    sandbox.mu(&["get"]).ok().says(&["up to date"]);
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0").needs("aws/vpc#>=1"));
    sandbox.mu(&["get"]).ok().says(&["aws/vpc 2.0.0 → 1.0.0"]);
    assert_eq!((sandbox.read("Mu.lock"), changed(&sandbox)), (lock, String::new()));
    // The version of everyone moves: so does the one here.
    sandbox.mu(&["update", "aws/vpc"]).ok().says(&["aws/vpc 1.0.0 → 2.1.0"]);
    assert!(sandbox.read(".mu/edits.lock").contains("id: hub.mu.com/aws/vpc\n  version: 2.1.0"));
}

#[test]
fn the_edit_has_its_own_manifest_commands() {
    let sandbox = team();
    let before = (sandbox.read("Mu.lock"), sandbox.read("Mu.yaml"));
    exclude(&sandbox, "/aws/");
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0"));
    sandbox.mu(&["get"]).ok();
    sandbox.mu_in("work/aws/ec2", &["add", "aws/vpc"]).ok().says(&["added aws/vpc ^2.0.0"]);
    assert!(sandbox.read("aws/ec2/Mu.yaml").contains("aws/vpc#^2.0.0"));
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/vpc/Mu.yaml"));
    sandbox.mu(&["remove", "aws/vpc", "-p", "aws/ec2"]).ok();
    sandbox.mu_in("work/aws/ec2", &["version", "minor"]).ok().says(&["1.5.0 → 1.6.0"]);
    assert_eq!((sandbox.read("Mu.lock"), sandbox.read("Mu.yaml")), before);
    assert_eq!(changed(&sandbox), "");
}

#[test]
fn a_tracked_folder_is_the_decision_of_the_team() {
    let sandbox = team();
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0"));
    commit(&sandbox, "take ec2 over");
    // A pattern has no effect on what Git tracks.
    exclude(&sandbox, "/aws/");
    sandbox.mu(&["get", "--locked"]).fails().says(&["aws/ec2 is now in the workspace"]);
    sandbox.mu(&["get"]).ok().does_not_say(&["using the edit", "neither tracks"]);
    assert!(sandbox.read("Mu.lock").contains("source: workspace+aws/ec2"));
    assert!(!sandbox.has("work/.mu/edits.lock"));
}

#[test]
fn an_untracked_folder_counts_as_the_teams_and_the_note_helps() {
    let sandbox = team();
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0"));
    let note = "`aws/ec2` is used from `aws/ec2`, which Git neither tracks nor ignores";
    sandbox.mu(&["get", "--locked"]).fails().says(&[note]);
    sandbox.mu(&["get"]).ok().says(&[note, "write `/aws/ec2/` into", "/.git/info/exclude"]);
    assert!(sandbox.read("Mu.lock").contains("source: workspace+aws/ec2"));
    sandbox.mu(&["get"]).ok().does_not_say(&[note]);
    exclude(&sandbox, "/aws/ec2/");
    git(&sandbox.path("work"), &["checkout", "Mu.lock"]);
    sandbox.mu(&["get"]).ok().says(&[USING]);
    assert_eq!(changed(&sandbox), "");
}

#[test]
fn a_workspace_that_git_ignores_as_a_whole_is_without_git() {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1"]);
    sandbox.offer("aws/app 1.0.0: aws/ec2#^1\n aws/ec2 1.0.6:");
    git(sandbox.root(), &["init", "--quiet"]);
    fs::write(sandbox.path(".gitignore"), "/work/\n").expect("can be written");
    sandbox.mu(&["get"]).ok();
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0"));
    sandbox.mu(&["get"]).ok().does_not_say(&["using the edit", "neither tracks"]);
    assert!(sandbox.read("Mu.lock").contains("source: workspace+aws/ec2"));
}

#[test]
fn continuous_integration_and_publishing_need_a_word() {
    let mut sandbox = team();
    sandbox.write("Mu.yaml", &format!("{}license: MIT\n", sandbox.read("Mu.yaml")));
    commit(&sandbox, "license");
    exclude(&sandbox, "/aws/");
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0"));
    let error = sandbox.mu(&["publish", "--json"]).fails_with("conflict");
    assert_eq!(error["details"]["edits"], json!({"hub.mu.com/aws/ec2": "aws/ec2"}));
    sandbox.mu(&["publish", "--dry-run", "--allow-edits"]).ok().says(&["would be published"]);
    sandbox.mu(&["vendor"]).fails().says(&["while packages are edited here"]);
    sandbox.set("CI", "true");
    let before = sandbox.state();
    for command in [&["get"][..], &["get", "--locked"], &["update"], &["add", "aws/log"]] {
        let run = sandbox.mu(command).fails();
        run.says(&["while packages are edited here: `aws/ec2` in `aws/ec2`", "--allow-edits"]);
    }
    assert_eq!(sandbox.state(), before);
    sandbox.mu(&["get", "--allow-edits"]).ok().says(&[USING]);
    fs::remove_dir_all(sandbox.path("work/aws")).expect("was there");
    sandbox.mu(&["get"]).ok();
}

#[test]
fn publishing_everything_leaves_the_edit_alone() {
    let sandbox = team();
    exclude(&sandbox, "/aws/");
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0"));
    let run = sandbox.mu(&["publish", "--all", "--allow-edits", "--dry-run"]).ok();
    run.says(&["acme/web"]).does_not_say(&["aws/ec2"]);
}

#[test]
fn an_edit_that_fits_nothing_says_that_it_takes_part() {
    let sandbox = team();
    exclude(&sandbox, "/aws/");
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0").needs("aws/vpc#^7"));
    let before = sandbox.state();
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["aws/vpc", "without what is edited here, Mu.lock would do: `aws/ec2` in `aws/ec2`"]);
    assert_eq!(sandbox.state(), before);
}

#[test]
fn commits_of_a_clone_are_counted() {
    let origin = Origin::new("acme/log.git");
    origin.commit(&[("Mu.yaml", "name: acme/log\n")]);
    origin.release("v1.0.0");
    let daemon = Daemon::start(origin.root());
    let sandbox = Sandbox::new();
    let root = daemon.root();
    sandbox.asks_for(&[&format!("{root}acme/log.git#^1")]);
    sandbox.write(".gitignore", "/.mu/packs/\n");
    sandbox.mu(&["get"]).ok();
    commit(&sandbox, "begin");
    let base = root.split_once("://").expect("is a URL").1.replace(':', "+");
    let place = format!("{base}acme/log");
    exclude(&sandbox, &format!("/{base}"));
    let clone = sandbox.path("work").join(&place);
    git(
        &sandbox.path("work"),
        &["clone", "--quiet", &origin.folder().display().to_string(), &place],
    );
    git(&clone, &["commit", "--quiet", "--allow-empty", "--message", "one"]);
    let run = sandbox.mu(&["get"]).ok();
    run.says(&[&format!("acme/log in {place} (1 commit ahead)")]);
    git(&clone, &["commit", "--quiet", "--allow-empty", "--message", "two"]);
    let run = sandbox.mu(&["get"]).ok();
    run.says(&[&format!("acme/log in {place} (2 commits ahead)")]);
    assert_eq!(changed(&sandbox), "");
}

#[test]
fn with_the_minimal_strategy_the_manifests_stay_too() {
    let sandbox = team();
    sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
    sandbox.mu(&["get"]).ok();
    commit(&sandbox, "minimal");
    let before = (sandbox.read("Mu.lock"), sandbox.read("Mu.yaml"));
    exclude(&sandbox, "/aws/");
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0").needs("aws/vpc#^2"));
    sandbox.mu(&["get"]).ok().says(&["+ aws/vpc 2.0.0", USING]);
    assert_eq!((sandbox.read("Mu.lock"), sandbox.read("Mu.yaml")), before);
    assert_eq!(changed(&sandbox), "");
}

#[test]
fn vendored_packs_stay_as_they_are_committed() {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1"]);
    sandbox.offer("aws/app 1.0.0: aws/ec2#^1\n aws/ec2 1.0.6:");
    sandbox.mu(&["vendor"]).ok();
    commit(&sandbox, "vendored");
    exclude(&sandbox, "/aws/");
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0"));
    sandbox.mu(&["get"]).ok().says(&[USING]);
    assert_eq!(changed(&sandbox), "");
}

#[test]
fn a_vendored_pack_does_not_become_what_only_this_machine_uses() {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1"]);
    sandbox.offer("aws/app 1.0.0: aws/ec2#^1 aws/vpc#>=1\n aws/ec2 1.0.6:\n aws/vpc 1.0.0:");
    sandbox.mu(&["vendor"]).ok();
    commit(&sandbox, "vendored");
    sandbox.offer("aws/vpc 2.0.0:");
    exclude(&sandbox, "/aws/");
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.5.0").needs("aws/vpc#^2"));
    let before = sandbox.state();
    let run = sandbox.mu(&["get"]).fails();
    run.says(&[
        "aws/vpc` is vendored: it is 1.0.0, as Mu.lock has it, and what only this machine uses (`aws/ec2` in `aws/ec2`) needs 2.0.0",
        "`mu vendor --undo`",
    ]);
    assert_eq!(sandbox.state(), before);
    assert_eq!(changed(&sandbox), "");
    sandbox.mu(&["vendor", "--undo", "--allow-edits"]).ok();
    sandbox.mu(&["get"]).ok().says(&[USING]);
    assert!(sandbox.read(".mu/packs/hub.mu.com/aws/vpc/Mu.yaml").contains("2.0.0"));
}

#[test]
fn a_link_inside_the_workspace_is_followed_and_another_is_not() {
    let sandbox = team();
    sandbox.place("work/sources/compute", &Package::new("aws/ec2", "1.5.0"));
    fs::create_dir(sandbox.path("work/aws")).expect("is new");
    symlink("../sources/compute", sandbox.path("work/aws/ec2")).expect("links");
    commit(&sandbox, "link");
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.read("Mu.lock").contains("source: workspace+sources/compute"));
    assert_eq!(sandbox.mu(&["which", "aws/ec2"]).ok().stdout, "[DIR]/work/sources/compute\n");
    // Through a folder of packages, too.
    fs::remove_dir_all(sandbox.path("work/aws")).expect("was there");
    fs::rename(sandbox.path("work/sources/compute"), sandbox.path("work/sources/ec2"))
        .expect("moves");
    symlink("sources", sandbox.path("work/aws")).expect("links");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.mu(&["which", "aws/ec2"]).ok().stdout, "[DIR]/work/sources/ec2\n");
    // Out of the workspace, nothing is followed.
    fs::rename(sandbox.path("work/sources"), sandbox.path("outside")).expect("moves");
    fs::remove_file(sandbox.path("work/aws")).expect("was there");
    symlink("../outside", sandbox.path("work/aws")).expect("links");
    let run = sandbox.mu(&["get"]).ok();
    run.says(&[
        "`aws/ec2` is not taken from `[DIR]/work/aws/ec2`",
        "is a link, which is not followed",
    ]);
}

#[test]
fn another_branch_is_not_upgraded_from_what_the_last_one_used() {
    for strategy in ["highest", "minimal"] {
        let mut sandbox = Sandbox::with_dependencies(&["ops/kafka#~1.0.0"]);
        sandbox.set("MU_RESOLUTION", strategy);
        let follows = |version: &str, before: &str| {
            Package::new("ops/kafka", version).key("upgrade", json!({ "replaces": before }))
        };
        sandbox.publish(&[Package::new("ops/kafka", "1.0.0"), follows("1.0.1", "1.0.0")]);
        sandbox.write(".gitignore", "/.mu/packs/\n");
        sandbox.mu(&["add", "ops/kafka#1.0.0"]).ok();
        commit(&sandbox, "begin");
        exclude(&sandbox, "/mine/");
        sandbox.place("work/mine", &Package::new("acme/mine", "0.1.0"));
        sandbox.mu(&["get"]).ok();
        let work = sandbox.path("work");
        git(&work, &["checkout", "--quiet", "-b", "newer"]);
        sandbox.mu(&["add", "ops/kafka#1.0.1"]).ok();
        commit(&sandbox, "upgrade");
        // Nothing leads back from 1.0.1, but nobody here upgrades: another branch is another Mu.lock.
        git(&work, &["checkout", "--quiet", "main"]);
        sandbox.mu(&["get"]).ok();
        assert!(sandbox.has("work/.mu/edits.lock"), "{strategy}");
        assert_eq!(sandbox.locked(), ["hub.mu.com/ops/kafka 1.0.0"], "{strategy}");
        let pack = sandbox.read(".mu/packs/hub.mu.com/ops/kafka/Mu.yaml");
        assert!(pack.contains("version: 1.0.0"), "{strategy}: {pack}");
        assert_eq!(changed(&sandbox), "", "{strategy}");
    }
}
