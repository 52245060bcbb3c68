//! Where a reference leads: the examples of the search path, elements, and missing packages.

use crate::support::{Package, Sandbox};

fn ec2(version: &str) -> Package {
    Package::new("aws/ec2", version)
}

#[test]
fn a_package_of_the_workspace_is_found_under_its_full_name() {
    let sandbox = Sandbox::new();
    sandbox.place("work/aws/ec2", &ec2("1.0.6"));
    for reference in
        ["aws/ec2", "hub.mu.com/aws/ec2", "https://hub.mu.com/aws/ec2", "aws/ec2#^1.0.6"]
    {
        let run = sandbox.mu(&["which", reference]).ok();
        assert_eq!(run.stdout, "[DIR]/work/aws/ec2\n", "{reference}");
        assert_eq!(run.stderr, "", "{reference}");
    }
    sandbox.place("work/hub.mu.com/aws/ec2", &ec2("1.0.7"));
    let run = sandbox.mu(&["which", "aws/ec2"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/hub.mu.com/aws/ec2\n", "with the base comes first");
}

#[test]
fn a_package_of_the_workspace_is_found_without_the_namespace() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "namespace: aws\n");
    sandbox.place("work/ec2", &ec2("1.0.6"));
    for reference in ["aws/ec2", "https://hub.mu.com/aws/ec2#^1.0.6"] {
        let run = sandbox.mu(&["which", reference]).ok();
        assert_eq!(run.stdout, "[DIR]/work/ec2\n", "{reference}");
    }
    sandbox.mu(&["which", "other/ec2"]).fails().says(&["no package `other/ec2`"]);
}

#[test]
fn a_namespace_may_be_the_whole_name() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "namespace: aws\n");
    sandbox.place("work", &Package::new("aws", "1.0.0"));
    let run = sandbox.mu(&["which", "aws#^1"]).ok();
    assert_eq!(run.stdout, "[DIR]/work\n");
}

#[test]
fn get_installs_into_the_packs_of_the_workspace() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[ec2("1.0.6").file("ec2/vm.ts", "export class VM {}\n")]);
    sandbox.mu(&["get", "https://hub.mu.com/aws/ec2"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/ec2/vm.ts"));
    let run = sandbox.mu(&["which", "https://hub.mu.com/aws/ec2#^1.0.6"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/.mu/packs/hub.mu.com/aws/ec2\n");
}

#[test]
fn get_global_installs_into_the_packs_of_the_user() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[ec2("1.0.6")]);
    let run = sandbox.mu(&["get", "--global", "https://hub.mu.com/aws/ec2"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get --global https://hub.mu.com/aws/ec2
    + aws/ec2 1.0.6
    installed 1 package (1 downloaded, 0 from cache)
    [exit 0]
    ");
    assert!(sandbox.has("home/.mu/packs/hub.mu.com/aws/ec2/Mu.yaml"));
    assert!(sandbox.has("home/.mu/Mu.lock"));
    assert!(!sandbox.has("work/Mu.lock") && !sandbox.has("work/.mu/packs"));
    let run = sandbox.mu(&["which", "aws/ec2"]).ok();
    assert_eq!(run.stdout, "[DIR]/home/.mu/packs/hub.mu.com/aws/ec2\n");
    assert_eq!(sandbox.mu(&["list", "-g"]).ok().stdout.lines().count(), 2);
    sandbox.mu(&["remove", "-g", "aws/ec2"]).ok();
    assert!(!sandbox.has("home/.mu/packs/hub.mu.com/aws"));
    sandbox.mu(&["which", "aws/ec2"]).fails();
}

#[test]
fn mu_home_is_in_the_home_folder_unless_said_otherwise() {
    let sandbox = Sandbox::new();
    sandbox.place("home/.mu/packs/aws/ec2", &ec2("1.0.0"));
    let mut command = sandbox.command(&["which", "aws/ec2"]);
    command.env_remove("MU_HOME");
    let run = sandbox.run(&["which", "aws/ec2"], command).ok();
    assert_eq!(run.stdout, "[DIR]/home/.mu/packs/aws/ec2\n");
}

#[test]
fn elements_lead_to_the_package_that_exports_them() {
    let sandbox = Sandbox::new();
    let exports = "exports:\n  VM: {kind: class, path: ec2/vm.ts}\n";
    sandbox.place("work/aws/ec2", &ec2("1.0.6").manifest(exports));
    let run = sandbox.mu(&["which", "https://hub.mu.com/aws/ec2/VM#^1.0.6"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/aws/ec2/ec2/vm.ts  class\n");
    run.says(&["warning: there is no file `[DIR]/work/aws/ec2/ec2/vm.ts`"]);
    sandbox.write("aws/ec2/ec2/vm.ts", "export class VM {}\n");
    let run = sandbox.mu(&["which", "aws/ec2/VM", "--json"]).ok();
    assert_eq!(run.stderr, "");
    let json = run.json();
    assert_eq!((&json["element"], &json["id"]), (&"VM".into(), &"hub.mu.com/aws/ec2".into()));
    assert_eq!((&json["kind"], &json["folder"]), (&"class".into(), &"[DIR]/work/aws/ec2".into()));
    assert_eq!(json["path"], "[DIR]/work/aws/ec2/ec2/vm.ts");
    // The eight places are those of the package.
    let all = sandbox.mu(&["which", "aws/ec2/VM", "--all"]).ok();
    all.says(&["[DIR]/work/aws/ec2  hit"]);
    // The longest prefix is the package, even where a shorter one exports the name.
    sandbox.place("work/aws/ec2/VM", &Package::new("aws/ec2/VM", "1.0.0"));
    let run = sandbox.mu(&["which", "aws/ec2/VM"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/aws/ec2/VM\n");
    let run = sandbox.mu(&["which", "aws/ec2/VN"]).fails();
    run.says(&["exports no `VN`", "did you mean `VM`?"]);
}

#[test]
fn what_is_nowhere_lists_every_place() {
    let sandbox = Sandbox::new();
    let run = sandbox.mu(&["which", "aws/ec2#^1"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu which aws/ec2#^1
    error: there is no package `aws/ec2#^1` in the workspace or among the packs

    hint: looked in these places:
      1. [DIR]/work/hub.mu.com/aws/ec2: miss
      2. [DIR]/work/aws/ec2: miss
      3. [DIR]/work/.mu/packs/hub.mu.com/aws/ec2: miss
      4. [DIR]/work/.mu/packs/aws/ec2: miss
      5. [DIR]/home/.mu/packs/hub.mu.com/aws/ec2: miss
      6. [DIR]/home/.mu/packs/aws/ec2: miss
      7. [DIR]/runtime/lib/packs/hub.mu.com/aws/ec2: miss
      8. [DIR]/runtime/lib/packs/aws/ec2: miss
    hint: `mu get 'aws/ec2#^1'` asks registries for it
    [exit 1]
    ");
    let all = sandbox.mu(&["which", "--all", "aws/ec2#^1"]).fails();
    insta::assert_snapshot!(all.shown(), @"
    $ mu which --all aws/ec2#^1
    1  [DIR]/work/hub.mu.com/aws/ec2  miss
    2  [DIR]/work/aws/ec2  miss
    3  [DIR]/work/.mu/packs/hub.mu.com/aws/ec2  miss
    4  [DIR]/work/.mu/packs/aws/ec2  miss
    5  [DIR]/home/.mu/packs/hub.mu.com/aws/ec2  miss
    6  [DIR]/home/.mu/packs/aws/ec2  miss
    7  [DIR]/runtime/lib/packs/hub.mu.com/aws/ec2  miss
    8  [DIR]/runtime/lib/packs/aws/ec2  miss
    error: there is no package `aws/ec2#^1` in the workspace or among the packs

    hint: `mu get 'aws/ec2#^1'` asks registries for it
    [exit 1]
    ");
    sandbox.mu(&["which", "--all", "aws/ec2", "--json"]).fails().says(&["\"not-found\""]);
}

#[test]
fn a_package_that_is_elsewhere_in_the_workspace_is_told_of() {
    let sandbox = Sandbox::new();
    sandbox.place("work/libs/log", &Package::new("acme/log", "1.0.0"));
    for arguments in [&["which", "acme/log"][..], &["which", "acme/log", "--all"]] {
        sandbox.mu(arguments).fails().says(&[
            "the workspace has `acme/log` in `libs/log`",
            "references to it point to `acme/log`",
        ]);
    }
}

#[test]
fn a_folder_that_is_not_installed() {
    let sandbox = Sandbox::new();
    sandbox.place("tool", &Package::new("acme/tool", "1.0.0"));
    insta::assert_snapshot!(sandbox.mu(&["which", "../tool"]).fails().shown(), @"
    $ mu which ../tool
    error: `../tool` is not installed here

    hint: `mu get ../tool` installs it
    [exit 1]
    ");
    sandbox.mu(&["get", "../tool"]).ok();
    sandbox.mu(&["which", "../tool"]).ok();
    let run = sandbox.mu(&["which", "../nothing"]).fails();
    run.says(&["there is no folder `[DIR]/nothing`"]).does_not_say(&["looked in"]);
}

#[test]
fn a_pack_of_another_version_is_passed_over_and_said_so() {
    let sandbox = Sandbox::new();
    sandbox.place("work/.mu/packs/hub.mu.com/aws/ec2", &ec2("1.2.0"));
    sandbox.place("work/.mu/packs/aws/ec2", &ec2("2.0.0-rc.1"));
    sandbox.place("home/.mu/packs/aws/ec2", &ec2("2.1.0"));
    let all = sandbox.mu(&["which", "--all", "aws/ec2#^2"]).ok();
    insta::assert_snapshot!(all.shown(), @"
    $ mu which --all aws/ec2#^2
    1  [DIR]/work/hub.mu.com/aws/ec2  miss
    2  [DIR]/work/aws/ec2  miss
    3  [DIR]/work/.mu/packs/hub.mu.com/aws/ec2  passed over: version 1.2.0 does not satisfy `^2`
    4  [DIR]/work/.mu/packs/aws/ec2  passed over: version 2.0.0-rc.1 does not satisfy `^2`
    5  [DIR]/home/.mu/packs/hub.mu.com/aws/ec2  miss
    6  [DIR]/home/.mu/packs/aws/ec2  hit
    7  [DIR]/runtime/lib/packs/hub.mu.com/aws/ec2  miss
    8  [DIR]/runtime/lib/packs/aws/ec2  miss
    [exit 0]
    ");
    let run = sandbox.mu(&["which", "aws/ec2#^3"]).fails();
    run.says(&["version 2.1.0 does not satisfy `^3`"]);
}

#[test]
fn a_package_of_the_workspace_wins_whatever_its_version() {
    let sandbox = Sandbox::new();
    sandbox.place("work/aws/ec2", &ec2("0.9.0"));
    sandbox.place("work/.mu/packs/aws/ec2", &ec2("1.2.0"));
    let run = sandbox.mu(&["which", "aws/ec2#^1"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu which aws/ec2#^1
    [DIR]/work/aws/ec2
    warning: `aws/ec2` is taken from the workspace at `[DIR]/work/aws/ec2`, but version 0.9.0 does not satisfy `^1`
    [exit 0]
    ");
    assert_eq!(sandbox.mu(&["which", "-q", "aws/ec2#^1"]).ok().stderr, "");
}

#[test]
fn a_port_in_a_base_is_written_with_a_plus() {
    let sandbox = Sandbox::new();
    sandbox.place("work/.mu/packs/localhost+8080/aws/ec2", &ec2("1.0.0"));
    let run = sandbox.mu(&["which", "http://localhost:8080/aws/ec2"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/.mu/packs/localhost+8080/aws/ec2\n");
    sandbox.place("work/localhost+8080/aws/ec2", &ec2("1.0.0"));
    let run = sandbox.mu(&["which", "localhost:8080/aws/ec2"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/localhost+8080/aws/ec2\n");
}

#[test]
fn packs_of_the_runtime_may_be_in_bin() {
    let sandbox = Sandbox::new();
    sandbox.place("runtime/bin/packs/aws/ec2", &ec2("1.0.0"));
    let run = sandbox.mu(&["which", "aws/ec2"]).ok();
    assert_eq!(run.stdout, "[DIR]/runtime/bin/packs/aws/ec2\n");
    // Only where there is no `lib/packs`.
    sandbox.place("runtime/lib/packs/aws/s3", &Package::new("aws/s3", "1.0.0"));
    sandbox.mu(&["which", "aws/ec2"]).fails();
    let run = sandbox.mu(&["which", "aws/s3"]).ok();
    assert_eq!(run.stdout, "[DIR]/runtime/lib/packs/aws/s3\n");
}

#[test]
fn json_manifests_count_as_much() {
    let sandbox = Sandbox::new();
    sandbox.write("hub.mu.com/aws/ec2/Mu.json", r#"{"name": "aws/ec2", "version": "1.0.0"}"#);
    sandbox.place("work/aws/ec2", &ec2("1.0.0"));
    let run = sandbox.mu(&["which", "aws/ec2"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/hub.mu.com/aws/ec2\n");
}
