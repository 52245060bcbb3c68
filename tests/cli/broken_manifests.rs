//! A manifest of another ecosystem with a mistake in it is a manifest with a mistake: the folder is not one without a package.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::{Hub, Package, Sandbox};

const CROSSPLANE: &str =
    "apiVersion: meta.pkg.crossplane.io/v1\nkind: [Configuration\nmetadata: {name: platform}\n";

const KUDO: &str = "apiVersion: kudo.dev/v1beta1\nname: kafka\noperatorVersion: [1.0.0\n";

const OLM: &str = "annotations:\n  operators.operatorframework.io.bundle.package.v1: [web\n";

/// A workspace with a lock and a pack.
fn installed() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/vpc"]);
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    sandbox
}

/// Expects that `mu get` names the place of the mistake, and changes nothing.
#[track_caller]
fn is_refused(sandbox: &Sandbox, place: &str) {
    let before = sandbox.state();
    let error = sandbox.mu(&["get", "--json"]).fails_with("manifest");
    assert!(error["message"].to_string().contains(place), "{error}");
    assert_eq!(sandbox.state(), before);
}

#[test]
fn a_typo_in_a_foreign_manifest_uninstalls_nothing() {
    let broken: [(&str, &[u8]); 7] = [
        ("crossplane.yaml", CROSSPLANE.as_bytes()),
        ("crossplane.yaml", b"\xff\n"),
        ("package.yaml", CROSSPLANE.as_bytes()),
        ("operator.yaml", KUDO.as_bytes()),
        ("metadata/annotations.yaml", OLM.as_bytes()),
        ("Chart.yaml", b"apiVersion: [v2\n"),
        ("Chart.yaml", b"apiVersion: v2\nname: caf\xe9\nversion: 1.0.0\n"),
    ];
    for (name, text) in broken {
        let sandbox = installed();
        fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is there");
        fs::create_dir_all(sandbox.path("work/metadata")).expect("can be made");
        fs::write(sandbox.path("work").join(name), text).expect("can be written");
        is_refused(&sandbox, &format!("{name}:"));
    }
}

#[test]
fn what_is_no_question_about_the_workspace_is_answered_beside_a_broken_manifest() {
    let sandbox = installed();
    Hub::new(&sandbox.path("mirror"));
    sandbox.write("web/Mu.yaml", "name: acme/web\nversion: [1.0.0\n");
    let told = ["the workspace's own packages are left out", "web/Mu.yaml:2:10"];
    sandbox.mu(&["plugin", "list"]).ok().says(&told);
    let mirror = |more: &[&str]| sandbox.mu(&[&["mirror", "--to", "../mirror"], more].concat());
    mirror(&["aws/vpc"]).ok().says(&told).says(&["+ aws/vpc 1.0.0"]);
    sandbox.mu(&["hub", "check", "../hub", "--repair"]).ok();
    mirror(&["--from", "../hub", "--all"]).ok().says(&told);
    // What is locked is what the workspace's packages need.
    mirror(&["--lock"]).fails().says(&["Mu.yaml:2:10"]);
}

#[test]
fn a_typo_in_the_manifest_of_a_foreign_member_uninstalls_nothing() {
    let sandbox = installed();
    sandbox.write(".mu/workspace.yaml", "formats: [crossplane, kudo]\n");
    for (name, text) in [("crossplane.yaml", CROSSPLANE), ("operator.yaml", KUDO)] {
        sandbox.write(&format!("apps/{name}"), text);
        is_refused(&sandbox, &format!("apps/{name}:3:"));
        fs::remove_dir_all(sandbox.path("work/apps")).expect("is there");
    }
}

#[test]
fn files_of_other_tools_with_the_names_of_manifests_are_left_alone() {
    let sandbox = installed();
    sandbox.write(".mu/workspace.yaml", "formats: [crossplane, kudo]\n");
    sandbox.write("crossplane.yaml", "apiVersion: v1\nkind: Service\n");
    for name in ["package.yaml", "operator.yaml"] {
        sandbox.write(name, "{{ a template }}: {\n");
        sandbox.write(&format!("apps/{name}"), "{{ a template }}: {\n");
    }
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["status"]).ok().does_not_say(&["package.yaml", "operator.yaml"]);
}

/// A workspace whose one package, in `lib`, requires one that is installed.
fn with_member() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0")]);
    sandbox.write("lib/Mu.yaml", "name: acme/lib\ndependencies: [aws/vpc]\n");
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.mu(&["get"]).ok();
    sandbox
}

#[test]
fn what_is_there_and_cannot_be_read_uninstalls_nothing() {
    let make = [
        ("this link is broken", "ln -s nowhere Mu.yaml"),
        ("this link points out of the workspace", "ln -s /etc/hostname Mu.yaml"),
        ("this is not a file", "mkfifo Mu.yaml"),
    ];
    for (why, make) in make {
        let sandbox = with_member();
        fs::remove_file(sandbox.path("work/lib/Mu.yaml")).expect("is there");
        let mut shell = Command::new("sh");
        shell.args(["-c", make]).current_dir(sandbox.path("work/lib"));
        assert!(shell.status().expect("there is a shell").success());
        let locked = sandbox.locked();
        for command in [&["get"][..], &["get", "--locked"], &["get", "--dry-run"], &["update"]] {
            let run = sandbox.mu(command).fails();
            run.says(&["what the package of", "lib/Mu.yaml", why, "\"!lib\""])
                .does_not_say(&["no longer requires"]);
        }
        assert_eq!(sandbox.locked(), locked);
        assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/vpc"));
        // Who only asks is told.
        sandbox.mu(&["tree"]).ok().says(&["warning", why]);
        sandbox.write(".mu/workspace.yaml", "members: [\"**\", \"!lib\"]\n");
        sandbox.mu(&["get"]).ok();
    }
}

/// Says nothing to a user who may do everything, unless that user can be another one.
#[test]
fn a_folder_that_cannot_be_searched_uninstalls_nothing() {
    let sandbox = with_member();
    let folder = sandbox.path("work/lib");
    let allow = |mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(&folder, mode).expect("is ours");
    };
    allow(0);
    if fs::read_dir(&folder).is_err() {
        let locked = sandbox.locked();
        sandbox.mu(&["get"]).fails().says(&["cannot be searched", "`acme/lib`", "\"!lib\""]);
        assert_eq!(sandbox.locked(), locked);
        // What nobody has missed is no reason to stop.
        allow(0o755);
        sandbox.write("lib/Mu.yaml", "name: acme/lib\n");
        sandbox.mu(&["get"]).ok();
        allow(0);
        sandbox.mu(&["get"]).ok();
    }
    allow(0o755);
}
