//! What lies in submodules that are not checked out, as `git clone` leaves them, is no less there: nothing else takes its place.

use std::fs;

use crate::support::git::{Origin, REPOSITORY_FORMATS, git};
use crate::support::{Sandbox, write};

#[test]
fn a_package_in_a_submodule_without_files_is_replaced_by_none_of_a_hub() {
    // The usual format, and one that libgit2 does not read.
    for (format, init, _) in &REPOSITORY_FORMATS[..2] {
        let sandbox = Sandbox::with_dependencies(&["acme/x", "acme/y#^1"]);
        sandbox.offer("acme/x 9.9.9:\nacme/y 1.0.0:");
        let (work, origin) = (sandbox.path("work"), Origin::new("x"));
        origin.commit(&[("Mu.yaml", "name: acme/x\nversion: 1.0.0\n")]);
        git(&work, &[&["init", "--quiet", "--initial-branch=main"], *init].concat());
        sandbox.write(".gitignore", "/.mu/packs/\n");
        let url = origin.folder().display().to_string();
        git(&work, &["submodule", "--quiet", "add", &url, "acme/x"]);
        sandbox.mu(&["get"]).ok();
        git(&work, &["add", "--all"]);
        git(&work, &["commit", "--quiet", "--message", "begin"]);
        git(&work, &["submodule", "--quiet", "deinit", "--force", "acme/x"]);
        let lock = sandbox.read("Mu.lock");
        assert!(lock.contains("workspace+acme/x"), "{format}: {lock}");
        for state in ["empty", "gone", "what other programs leave"] {
            match state {
                "empty" => {}
                "gone" => fs::remove_dir(work.join("acme/x")).expect("is empty"),
                _ => sandbox.write("acme/x/.DS_Store", "left"),
            }
            for command in
                [&["get"][..], &["get", "--locked"], &["update"], &["add", "acme/y"], &["vendor"]]
            {
                sandbox.mu(command).fails().says(&[
                    "`acme/x` is a submodule that is not checked out",
                    "the package `acme/x` of this workspace is in it",
                    "`git submodule update --init acme/x`",
                ]);
                assert_eq!(sandbox.read("Mu.lock"), lock, "{format}, {state}: {command:?}");
            }
        }
        // What is used as it is locked needs nothing of it.
        sandbox.mu(&["get", "--frozen"]).ok();
        fs::remove_dir_all(work.join("acme/x")).expect("is there");
        git(&work, &["submodule", "--quiet", "update", "--init", "acme/x"]);
        sandbox.mu(&["get", "--locked"]).ok();
    }
}

#[test]
fn a_folder_in_a_submodule_without_files_is_not_locked_empty() {
    let sandbox = Sandbox::new();
    let (team, origin) = (sandbox.path("team"), Origin::new("lib"));
    origin.commit(&[("inner/file", "1")]);
    write(&team, "app/.mu/workspace.yaml", "");
    write(&team, "app/Mu.yaml", "name: acme/app\ndependencies:\n  - ../lib/inner\n");
    git(&team, &["init", "--quiet", "--initial-branch=main"]);
    let url = origin.folder().display().to_string();
    git(&team, &["submodule", "--quiet", "add", &url, "lib"]);
    git(&team, &["submodule", "--quiet", "deinit", "--force", "lib"]);
    let command = "`git -C [DIR]/team submodule update --init lib` checks it out";
    let said =
        "`lib` is a submodule that is not checked out, and the folder `../lib/inner` is in it";
    sandbox.mu_in("team/app", &["get"]).fails().says(&[said, command]);
    assert!(!team.join("app/Mu.lock").exists());
    git(&team, &["submodule", "--quiet", "update", "--init", "lib"]);
    sandbox.mu_in("team/app", &["get"]).ok();
    git(&team, &["submodule", "--quiet", "deinit", "--force", "lib"]);
    for option in ["--locked", "--frozen"] {
        sandbox.mu_in("team/app", &["get", option]).fails().says(&[said]);
    }
}
