//! `add` and `remove` edit a person's file, and keep its comments, order and layout.

use crate::support::{Package, Sandbox};

const LIST: &str = "\
# The web shop.
name: acme/web   # ours
version: 0.1.0

dependencies:
  # machines
  - aws/ec2#^1.0    # keep below 2

  - \"aws/s3#2.x\"

keywords: [shop,   web]
";

const MAP: &str = "\
name: acme/web
dependencies:
  ec2: https://hub.mu.com/aws/ec2#^1.0   # machines
  aws/s3: 2.x
description: shop
";

fn sandbox(manifest: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", manifest);
    for (name, version) in [
        ("aws/ec2", "1.0.0"),
        ("aws/ec2", "1.3.0"),
        ("aws/ec2", "2.0.0"),
        ("aws/s3", "2.1.0"),
        ("aws/vpc", "0.4.2"),
        ("test/kit", "1.0.0"),
    ] {
        sandbox.hub().release(name, version);
    }
    sandbox
}

#[test]
fn a_list_keeps_its_layout() {
    let sandbox = sandbox(LIST);
    let run = sandbox.mu(&["add", "aws/vpc"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu add aws/vpc
    + aws/ec2 1.3.0
    + aws/s3 2.1.0
    + aws/vpc 0.4.2
    added aws/vpc ^0.4.2 to acme/web (Mu.yaml)
    installed 3 packages (3 downloaded, 0 from cache)
    [exit 0]
    ");
    let expected = LIST.replace("2.x\"\n", "2.x\"\n  - \"aws/vpc#^0.4.2\"\n");
    assert_eq!(sandbox.read("Mu.yaml"), expected);
    sandbox.mu(&["remove", "aws/vpc"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), LIST);
}

#[test]
fn a_map_keeps_its_layout() {
    let sandbox = sandbox(MAP);
    sandbox.mu(&["add", "aws/vpc"]).ok();
    let text = sandbox.read("Mu.yaml");
    let expected = MAP.replace("s3: 2.x\n", "s3: 2.x\n  aws/vpc: ^0.4.2\n");
    assert_eq!(text.replace('"', ""), expected);
    sandbox.mu(&["remove", "aws/vpc"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), MAP);
    // Its local name works too.
    sandbox.mu(&["remove", "ec2"]).ok();
    assert!(!sandbox.read("Mu.yaml").contains("ec2"));
}

#[test]
fn the_version_is_a_caret_of_the_chosen_one() {
    let sandbox = sandbox("name: acme/web\n");
    sandbox.mu(&["add", "aws/ec2"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), "name: acme/web\ndependencies:\n  - aws/ec2#^2.0.0\n");
    // A version that the user gives stays as it is, and replaces the other one.
    sandbox.mu(&["add", "aws/ec2#>=1.0 <2"]).ok();
    let text = sandbox.read("Mu.yaml");
    assert!(text.contains("aws/ec2#>=1.0 <2") && !text.contains("^2.0.0"), "{text}");
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.3.0"]);
}

#[test]
fn development_has_its_own_section() {
    let sandbox = sandbox("name: acme/web\n");
    sandbox.mu(&["add", "--dev", "test/kit"]).ok();
    let expected = "name: acme/web\ndevDependencies:\n  - test/kit#^1.0.0\n";
    assert_eq!(sandbox.read("Mu.yaml"), expected);
    assert_eq!(sandbox.locked(), ["hub.mu.com/test/kit 1.0.0"]);
}

#[test]
fn development_dependencies_of_a_fetched_package_do_not_count() {
    let sandbox = sandbox("name: acme/web\ndependencies: [acme/lib]\n");
    let needs = "devDependencies: [test/kit]\n";
    sandbox.publish(&[Package::new("acme/lib", "1.0.0").manifest(needs)]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/acme/lib 1.0.0"]);
}

#[test]
fn a_package_of_the_workspace_is_chosen_by_name_or_by_folder() {
    let sandbox = sandbox("name: acme/web\n");
    sandbox.place("work/api", &Package::new("acme/api", "1.0.0"));
    sandbox.mu(&["add", "aws/s3", "-p", "acme/api"]).ok();
    sandbox.mu_in("work/api", &["add", "aws/vpc"]).ok();
    assert_eq!(
        sandbox.read("api/Mu.yaml"),
        "name: acme/api\nversion: 1.0.0\ndependencies:\n  - aws/s3#^2.1.0\n  - aws/vpc#^0.4.2\n"
    );
    assert_eq!(sandbox.read("Mu.yaml"), "name: acme/web\n");
    sandbox.mu(&["add", "aws/s3", "-p", "acme/nothing"]).fails().says(&["acme/nothing"]);
}

#[test]
fn json_manifests_are_edited_too() {
    let sandbox = Sandbox::new();
    sandbox.hub().release("aws/vpc", "0.4.2");
    sandbox.write("Mu.json", "{\n    \"name\": \"acme/web\",\n    \"dependencies\": []\n}\n");
    sandbox.mu(&["add", "aws/vpc"]).ok();
    let text = sandbox.read("Mu.json");
    assert!(text.contains("\"aws/vpc#^0.4.2\""), "{text}");
    sandbox.mu(&["remove", "aws/vpc"]).ok();
    assert!(!sandbox.read("Mu.json").contains("vpc"));
}

#[test]
fn what_cannot_be_had_is_not_written() {
    let sandbox = sandbox(LIST);
    let before = sandbox.state();
    sandbox.mu(&["add", "aws/nothing"]).fails();
    sandbox.mu(&["add", "aws/ec2#^9"]).fails();
    assert_eq!(sandbox.read("Mu.yaml"), LIST);
    assert_eq!(sandbox.has("work/Mu.lock"), before.contains_key("Mu.lock"));
}

#[test]
fn where_there_is_no_manifest_it_says_so() {
    let sandbox = Sandbox::new();
    sandbox.hub().release("aws/vpc", "0.4.2");
    let run = sandbox.mu(&["add", "aws/vpc"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu add aws/vpc
    error: there is no package in `[DIR]/work`

    hint: `mu init NAME` creates a package here
    [exit 1]
    ");
}

#[test]
fn a_folder_is_written_once_however_it_is_named() {
    let sandbox = sandbox("name: acme/web\n");
    sandbox.place("tool", &Package::new("acme/tool", "1.0.0"));
    sandbox.place("work/libs/log", &Package::new("acme/log", "1.2.0"));
    let folder = sandbox.path("tool").display().to_string();
    sandbox.mu(&["add", "../tool", "./libs/log"]).ok();
    sandbox.mu(&["add", &format!("file://{folder}#^1"), "-p", "acme/web"]).ok();
    sandbox.mu(&["add", "acme/log#1.x"]).ok();
    let expected = "name: acme/web\ndependencies:\n  - ../tool#^1\n  - ./libs/log#1.x\n";
    assert_eq!(sandbox.read("Mu.yaml"), expected);
    // A person can write it twice.
    let twice = format!("{expected}  - {folder}\n");
    sandbox.write("Mu.yaml", &twice);
    sandbox.mu(&["remove", "../tool"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), expected.replace("  - ../tool#^1\n", ""));
}

#[test]
fn a_package_that_is_no_member_is_not_taken_for_the_one_around_it() {
    let sandbox = sandbox("name: acme/web\n");
    sandbox.write(".mu/workspace.yaml", "members: []\n");
    sandbox.write("inner/Mu.yaml", "name: acme/inner\n");
    for arguments in [["add", "aws/s3"], ["remove", "aws/s3"]] {
        let run = sandbox.mu_in("work/inner/", &arguments).fails();
        run.says(&["inner/Mu.yaml` is not a package of this workspace", "`members`"]);
    }
    assert_eq!(sandbox.read("Mu.yaml"), "name: acme/web\n");
}

#[test]
fn what_others_need_stays_and_is_told() {
    let sandbox = sandbox("name: acme/web\ndependencies: [aws/ec2, aws/elk]\n");
    sandbox.publish(&[Package::new("aws/elk", "1.0.0").needs("aws/ec2#^1")]);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["remove", "aws/ec2"]).ok();
    run.says(&["`aws/ec2` stays, because `aws/elk` needs it"]);
    let gone = sandbox.mu(&["remove", "aws/elk"]).ok();
    gone.says(&["- aws/ec2 1.3.0"]).does_not_say(&["stays"]);
}

#[test]
fn versions_are_chosen_once() {
    let chose = "chose among";
    let sandbox = sandbox(LIST);
    let run = sandbox.mu(&["-v", "add", "aws/vpc", "test/kit"]).ok();
    assert_eq!(run.stderr.matches(chose).count(), 1, "{}", run.stderr);
    let manifest = sandbox.read("Mu.yaml");
    assert!(manifest.contains("aws/vpc#^0.4.2") && manifest.contains("test/kit#^1.0.0"));
    // The lock matches the manifest, so there is nothing left to choose.
    assert!(sandbox.read("Mu.lock").contains("^0.4.2"));
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["-v", "get", "--locked"]).ok().does_not_say(&[chose]);
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn no_move_chooses_twice() {
    let sandbox = sandbox(LIST);
    sandbox.mu(&["get"]).ok();
    sandbox.publish(&[Package::new("aws/ec2", "1.4.0"), Package::new("aws/ec2", "2.1.0")]);
    let moves: [(&[&str], _); 6] = [
        (&["update", "aws/ec2"], "aws/ec2 1.3.0 → 1.4.0"),
        (&["downgrade", "aws/ec2#1.3.0"], "aws/ec2 1.4.0 → 1.3.0"),
        (&["upgrade"], "aws/ec2 1.3.0 → 2.1.0"),
        (&["pin", "aws/ec2"], "aws/ec2"),
        (&["unpin", "aws/ec2"], "aws/ec2"),
        (&["remove", "aws/ec2"], "- aws/ec2 2.1.0"),
    ];
    for (arguments, says) in moves {
        let run = sandbox.mu(&[&["-v"], arguments].concat()).ok().says(&[says]);
        assert!(run.stderr.matches("chose among").count() <= 1, "{arguments:?}: {}", run.stderr);
        // What was written is what was chosen for.
        sandbox.mu(&["-v", "get", "--locked"]).ok().does_not_say(&["chose among"]);
    }
}

#[test]
fn an_upgrade_leaves_the_pin_of_another_package_alone() {
    let sandbox = sandbox("name: acme/web\ndependencies: [aws/tool#^1.0]\n");
    sandbox.write("api/Mu.yaml", "name: acme/api\ndependencies: [aws/tool#1.0.0]\n");
    sandbox.write(".mu/workspace.yaml", "majors: many\n");
    sandbox.publish(&[Package::new("aws/tool", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    sandbox.publish(&[Package::new("aws/tool", "2.1.0")]);
    sandbox.mu(&["upgrade"]).ok().says(&["+ aws/tool 2.1.0", "aws/tool ^1.0 → ^2.1 in Mu.yaml"]);
    assert!(sandbox.read("Mu.yaml").contains("aws/tool#^2.1"));
    assert!(sandbox.read("api/Mu.yaml").contains("aws/tool#1.0.0"));
    sandbox.mu(&["-v", "get", "--locked"]).ok().does_not_say(&["chose among"]);
    // Named, it moves as well.
    sandbox.mu(&["upgrade", "aws/tool"]).ok();
    assert!(sandbox.read("api/Mu.yaml").contains("aws/tool#2.1.0"));
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/tool 2.1.0"]);
}

#[test]
fn what_a_manifest_asked_for_before_is_not_locked_any_more() {
    let sandbox = sandbox(LIST);
    sandbox.mu(&["get"]).ok();
    // Within what is asked for now, its newest version is the least from then on.
    sandbox.mu(&["add", "aws/ec2"]).ok();
    assert!(sandbox.read("Mu.yaml").contains("aws/ec2#^1.3.0"), "{}", sandbox.read("Mu.yaml"));
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains("^1.3.0") && !lock.contains("^1.0"), "{lock}");
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_dependency_moves_from_one_list_to_the_other() {
    for strategy in ["highest", "minimal"] {
        let mut sandbox = Sandbox::new();
        sandbox.set("MU_RESOLUTION", strategy);
        sandbox.offer("aws/ec2 1.0.0:\naws/log 1.0.0:");
        let manifest = |dependencies: &str| format!("name: acme/web\n{dependencies}");
        let both =
            "dependencies:\n  - aws/log#^1.0.0\ndevDependencies:\n  - aws/ec2#^1.0.0 # why\n";
        sandbox.write("Mu.yaml", &manifest(both));
        let run = sandbox.mu(&["add", "aws/ec2"]).ok();
        let run = run.says(&["added aws/ec2 ^1.0.0 to acme/web (Mu.yaml)"]);
        run.says(&["removed aws/ec2 from acme/web (Mu.yaml, devDependencies)"]);
        let text = sandbox.read("Mu.yaml");
        assert_eq!(text.matches("aws/ec2").count(), 1, "{text}");
        assert!(!text.contains("devDependencies:\n  -"), "{text}");
        sandbox.mu(&["add", "aws/ec2", "--dev"]).ok();
        let text = sandbox.read("Mu.yaml");
        assert_eq!(text.matches("aws/ec2").count(), 1, "{text}");
        assert!(text.contains("devDependencies:\n  - aws/ec2#^1.0.0\n"), "{text}");
        // Whoever has listed it twice may mean it.
        let twice = "dependencies:\n  - aws/ec2#^1\ndevDependencies:\n  - aws/ec2#1.0.0\n";
        sandbox.write("Mu.yaml", &manifest(twice));
        sandbox.mu(&["add", "aws/ec2#^1.0"]).ok();
        assert_eq!(sandbox.read("Mu.yaml").matches("aws/ec2").count(), 2);
    }
}

#[test]
fn with_several_majors_a_package_stays_with_the_one_that_its_manifest_names() {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/ec2 1.0.0:\naws/ec2 1.1.0:\naws/ec2 2.0.0-rc.2:\naws/ec2 3.0.0:");
    sandbox.write(".mu/workspace.yaml", "majors: many\n");
    let manifest = "name: acme/web\ndependencies: [\"aws/ec2#^2.0.0-rc.2\"]\n";
    sandbox.write("Mu.yaml", manifest);
    sandbox.write("api/Mu.yaml", "name: acme/api\ndependencies: [\"aws/ec2#^3\"]\n");
    sandbox.mu(&["get"]).ok();
    let locked = ["hub.mu.com/aws/ec2 2.0.0-rc.2", "hub.mu.com/aws/ec2 3.0.0"];
    assert_eq!(sandbox.locked(), locked);
    sandbox.mu(&["add", "aws/ec2"]).ok();
    assert_eq!(sandbox.locked(), locked);
    assert_eq!(sandbox.read("Mu.yaml"), manifest);
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_change_that_would_change_more_names_its_line() {
    let sandbox = Sandbox::new();
    sandbox.write("b/Mu.yaml", "name: acme/b\nversion: 1.0.0\n");
    let manifest = |dependencies: &str| format!("name: acme/a\nversion: 1.0.0\n{dependencies}\n");
    for (dependencies, command) in [
        ("x-list: &list\n  - ./b\ndependencies: *list", ["remove", "./b"]),
        ("x-list: &list [./b]\ndependencies: *list", ["add", "./c"]),
        ("dependencies: {b: &b ./b}\nx-b: *b", ["remove", "./b"]),
    ] {
        sandbox.write("Mu.yaml", &manifest(dependencies));
        sandbox.write("c/Mu.yaml", "name: acme/c\nversion: 1.0.0\n");
        let run = sandbox.mu(&command).fails().says(&["by hand"]);
        let has_line = ["line ", "Mu.yaml:"].iter().any(|place| run.stderr.contains(place));
        assert!(has_line, "{}", run.stderr);
        assert_eq!(sandbox.read("Mu.yaml"), manifest(dependencies));
    }
}

#[test]
fn a_package_that_is_reached_another_way_keeps_its_entry() {
    let sandbox = Sandbox::new();
    sandbox.place("tool", &Package::new("acme/tool", "1.0.0"));
    let git = "cd ../tool && git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm 1 && git tag v1.0.0";
    assert_eq!(sandbox.shell("bash", git).status, 0);
    let folder = sandbox.path("tool").display().to_string();
    let repository = format!("git+file://{folder}");
    let source = |sandbox: &Sandbox| sandbox.lock()["packages"][0]["source"].clone();
    for entry in [
        "dependencies:\n  - REF   # mine\n",
        "dependencies: [REF]\n",
        "dependencies:\n  tool: REF   # mine\n",
        "dependencies:\n  - {ref: REF, prerelease: true} # mine\n",
    ] {
        let manifest = |reference: &str| {
            format!("name: acme/web\n{}", entry.replace("REF", &format!("\"{reference}\"")))
        };
        sandbox.write("Mu.yaml", &manifest(&format!("{repository}#^1.0.0")));
        sandbox.mu(&["get"]).ok();
        assert!(source(&sandbox).as_str().is_some_and(|source| source.starts_with("git+")));
        let run = sandbox.mu(&["add", &folder]).ok();
        run.says(&["git+file://[DIR]/tool ^1.0.0", " → [DIR]/tool", " in Mu.yaml"]);
        assert_eq!(plain(&sandbox.read("Mu.yaml")), plain(&manifest(&folder)));
        assert!(source(&sandbox).as_str().is_some_and(|source| source.starts_with("path+")));
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["add", &repository]).ok();
        let now = manifest(&format!("{repository}#^1.0.0"));
        assert_eq!(plain(&sandbox.read("Mu.yaml")), plain(&now));
        assert!(source(&sandbox).as_str().is_some_and(|source| source.starts_with("git+")));
        sandbox.mu(&["get", "--locked"]).ok();
        // A lock of the folder is not taken for one of the repository, whoever has changed the manifest.
        sandbox.write("Mu.yaml", &manifest(&folder));
        let run = sandbox.mu(&["get", "--locked"]).fails();
        run.says(&["../tool is required as a folder now"]);
        sandbox.mu(&["get"]).ok();
        assert!(source(&sandbox).as_str().is_some_and(|source| source.starts_with("path+")));
    }
    // What `mu get` was given is no other case.
    sandbox.write("Mu.yaml", "name: acme/web\n");
    for (reference, begin) in [(&repository, "git+"), (&folder, "path+"), (&repository, "git+")] {
        sandbox.mu(&["get", reference]).ok();
        assert!(source(&sandbox).as_str().is_some_and(|source| source.starts_with(begin)));
        sandbox.mu(&["get", "--locked"]).ok();
    }
}

#[test]
fn a_manifest_of_another_tool_keeps_how_it_reaches_a_package() {
    let sandbox = Sandbox::new();
    let module = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\n");
    sandbox.write("../tool/kcl.mod", &module("tool"));
    let git = "cd ../tool && git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm 1 && git tag v1.0.0";
    assert_eq!(sandbox.shell("bash", git).status, 0);
    let folder = sandbox.path("tool").display().to_string();
    sandbox.write("kcl.mod", &module("shop"));
    sandbox.mu(&["add", &format!("git+file://{folder}#v1.0.0")]).ok();
    let before = sandbox.read("kcl.mod");
    let run = sandbox.mu(&["add", &folder]).fails();
    run.says(&["it lists the package already, as `git+file://", "remove that entry first"]);
    assert_eq!(sandbox.read("kcl.mod"), before);
}

/// A manifest without the quotes that it may have or not.
fn plain(manifest: &str) -> String {
    manifest.replace('"', "")
}
