//! Hints beside conflicts of versions: what they name works when it is pasted, or is not named.

use crate::support::{Package, Sandbox};

/// Pastes the one command of a failed run's hints, without what comes before and after it.
#[track_caller]
fn pasted(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let help = sandbox.mu(&[arguments, &["--json"]].concat()).error()["help"].to_string();
    let command = help.split('`').find(|part| part.starts_with("mu ")).expect("names a command");
    sandbox.shell("bash", command).ok();
    command.to_owned()
}

#[test]
fn a_folder_is_named_by_its_path() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.place("outl", &Package::new("acme/outl", "3.0.0"));
    let command = pasted(&sandbox, &["add", "../outl#^9"]);
    assert_eq!(command, "mu add '../outl#^3.0.0'");
    // From the folder where it is pasted.
    sandbox.asks_for(&["../outl#^9"]);
    std::fs::create_dir_all(sandbox.path("work/deep")).expect("can be made");
    let run = sandbox.mu_in("work/deep", &["get"]).fails();
    run.says(&["`mu add '../../outl#^3.0.0'`"]);
}

#[test]
fn a_downgrade_that_would_be_an_update_names_one_that_works() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1.0"]);
    sandbox.offer("aws/ec2 1.0.0:");
    sandbox.mu(&["get"]).ok();
    sandbox.offer("aws/ec2 1.1.0:\naws/ec2 2.0.0:");
    assert_eq!(pasted(&sandbox, &["downgrade", "aws/ec2#2.0.0"]), "mu why aws/ec2");
    let update = pasted(&sandbox, &["downgrade", "aws/ec2#1.1.0"]);
    assert_eq!(update, "mu update 'aws/ec2#1.1.0'");
}

#[test]
fn the_package_of_the_root_is_found_by_the_namespace_that_is_hinted() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.write("tools/Mu.yaml", "name: acme/tools\ndependencies: [acme/web]\n");
    let run = sandbox.mu(&["get"]).fails();
    let key = "namespace: acme/web";
    run.says(&[&format!("or set `{key}` in `.mu/workspace.yaml`")]).does_not_say(&["overrides"]);
    sandbox.write(".mu/workspace.yaml", key);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    // With another namespace, only moving helps.
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    sandbox.mu(&["get"]).fails().does_not_say(&["or set", "overrides"]);
}

#[test]
fn other_settings_are_not_hinted_if_the_command_excludes_too() {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/vpc 1.0.0:\naws/vpc 1.1.0:");
    let ask = ["resolve", "aws/vpc", "--exclude", "aws/vpc"];
    assert_eq!(pasted(&sandbox, &ask), "mu resolve aws/vpc");
    sandbox.write(".mu/workspace.yaml", "exclude: ['aws/vpc#1.0.0']\n");
    sandbox.mu(&ask).fails().does_not_say(&["out of `exclude`"]);
}

#[test]
fn what_is_missing_is_not_to_be_deleted() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.offer("aws/ec2 1.0.0:");
    sandbox.mu(&["get"]).ok();
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["verify"]).fails().says(&["is not installed\n"]).does_not_say(&["delete"]);
    assert_eq!(pasted(&sandbox, &["verify"]), "mu get");
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn a_package_that_is_nowhere_has_no_versions_to_list() {
    let sandbox = Sandbox::new();
    for more in [&[][..], &["--reason", "bad"], &["--dry-run"]] {
        let yank = [&["yank", "nope/x#1.0.0", "--to", "../hub"], more].concat();
        sandbox.mu(&yank).fails().says(&["`mu search x`"]).does_not_say(&["mu versions"]);
    }
    let revoke = ["hub", "token", "revoke", "../hub", "nobody"];
    assert_eq!(pasted(&sandbox, &revoke), "mu hub token list ../hub");
}

#[test]
fn a_command_that_the_lock_forbids_is_to_be_run_again() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.offer("aws/ec2 1.0.0:\naws/ec2 1.1.0:\naws/vpc 1.0.0:");
    sandbox.mu(&["get"]).ok();
    for arguments in [
        &["remove", "aws/ec2"][..],
        &["get", "aws/vpc#1.0.0"],
        &["add", "aws/vpc"],
        &["update", "aws/ec2#1.0.0"],
    ] {
        let run = sandbox.mu(&[arguments, &["--locked"]].concat()).fails();
        run.says(&["run this command without --locked, and commit Mu.lock"]);
    }
    sandbox.asks_for(&["aws/vpc"]);
    sandbox.mu(&["get", "--locked"]).fails().says(&["run `mu get` without --locked"]);
}

#[test]
fn a_folder_that_is_not_there_is_no_package_to_search() {
    let sandbox = Sandbox::with_dependencies(&[]);
    for arguments in [&["resolve", "./nonexist"][..], &["resolve", "--with", "./nonexist"]] {
        let run = sandbox.mu(arguments).fails();
        run.says(&["there is no folder `[DIR]/work/nonexist`"]).does_not_say(&["mu search"]);
    }
}
