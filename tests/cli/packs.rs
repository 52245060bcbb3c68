//! Packs on disk: what is beside them, what is removed, packs inside packs, and several runs at once.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::support::{Package, Sandbox, digest_of, git, tree};

#[test]
fn packs_are_not_committed() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    git::git(&sandbox.path("work"), &["init", "--quiet", "."]);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.read(".mu/packs/.gitignore").lines().any(|line| line == "*"));
    let seen = git::git(&sandbox.path("work"), &["status", "--porcelain", "--untracked-files=all"]);
    assert_eq!(seen, "?? .mu/workspace.yaml\n?? Mu.lock\n?? Mu.yaml");
}

#[test]
fn what_is_needed_no_longer_goes_away() {
    let sandbox = Sandbox::with_dependencies(&["aws/app#1.0.0"]);
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("deep/er/lib"),
        Package::new("aws/app", "1.1.0"),
        Package::new("deep/er/lib", "1.0.0"),
    ]);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/deep/er/lib/Mu.yaml"));
    sandbox.asks_for(&["aws/app#1.1.0"]);
    sandbox.mu(&["get"]).ok();
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/deep"), "nor does an empty folder stay");
    // A file that a person put there does not belong to mu.
    sandbox.write(".mu/packs/hub.mu.com/mine/Mu.yaml", "name: mine\n");
    sandbox.asks_for(&[]);
    sandbox.mu(&["get"]).ok();
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws"));
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/mine/Mu.yaml"));
}

#[test]
fn a_pack_may_be_inside_another() {
    let sandbox = Sandbox::with_dependencies(&["aws", "aws/ec2"]);
    let aws = Package::new("aws", "1.0.0").file("readme.txt", "all of it");
    let digest = sandbox.hub().publish(&aws);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0"), aws.clone().version("1.1.0")]);
    sandbox.asks_for(&["aws#1.0.0", "aws/ec2"]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok().says(&["2 packs verified"]);
    assert_eq!(sandbox.lock()["packages"][0]["digest"], *digest);
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/readme.txt"));
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/Mu.yaml"));
    // Each is installed, changed and removed independently.
    sandbox.asks_for(&["aws#1.1.0", "aws/ec2"]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/Mu.yaml"));
    sandbox.asks_for(&["aws/ec2"]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok();
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/readme.txt"));
    sandbox.asks_for(&["aws"]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok();
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2"));
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/readme.txt"));
}

/// As Terraform's modules lie: one at the root of a repository, and others in its folders.
#[test]
fn a_change_of_one_pack_keeps_the_others_inside_the_same_pack() {
    let sandbox = Sandbox::with_dependencies(&["aws"]);
    let aws = Package::new("aws", "1.0.0").file("a.txt", "1").file("ec2/own.txt", "own");
    let inner = ["aws/ec2", "aws/ec2/key", "aws/iam", "aws/vpc"];
    sandbox.publish(&[aws.clone(), aws.version("1.1.0").file("b.txt", "2")]);
    for name in inner {
        sandbox.publish(&[Package::new(name, "1.0.0"), Package::new(name, "1.1.0")]);
    }
    let all = [&["aws"], &inner[..]].concat();
    let exact = |names: &[&str], version: &str| -> Vec<String> {
        names.iter().map(|name| format!("{name}#{version}")).collect()
    };
    let mut steps: Vec<Vec<String>> =
        (1..=all.len()).map(|count| exact(&all[..count], "1.0.0")).collect();
    for moved in 0..all.len() {
        let mut step = exact(&all, "1.0.0");
        step[moved] = format!("{}#1.1.0", all[moved]);
        steps.push(step);
    }
    for dropped in 0..all.len() {
        let left: Vec<&str> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != dropped)
            .map(|(_, name)| *name)
            .collect();
        steps.extend([exact(&left, "1.0.0"), exact(&all, "1.0.0")]);
    }
    for step in steps {
        sandbox.asks_for(&step.iter().map(String::as_str).collect::<Vec<_>>());
        sandbox.mu(&["get"]).ok();
        let packs = if step.len() == 1 { "pack" } else { "packs" };
        sandbox.mu(&["verify"]).ok().says(&[&format!("{} {packs} verified", step.len())]);
        sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    }
}

#[test]
fn packs_come_out_of_the_store_as_asked() {
    for link in ["auto", "copy", "hardlink", "symlink"] {
        let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
        let package = Package::new("aws/ec2", "1.0.0")
            .file("run.sh*", "#!/bin/sh\n")
            .file("deep/file.txt", "text")
            .file("link", "-> deep/file.txt");
        let digest = sandbox.hub().publish(&package);
        sandbox.write(".mu/workspace.yaml", &format!("link: {link}\n"));
        sandbox.mu(&["get"]).ok();
        let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws/ec2");
        let is_link = pack.symlink_metadata().expect("is there").file_type().is_symlink();
        assert_eq!(is_link, link == "symlink");
        let real = pack.canonicalize().expect("is there");
        assert_eq!(digest_of(&real), digest, "{link}");
        assert_eq!(tree(&real)["run.sh"].0, 'x', "{link}");
        let names = fs::metadata(pack.join("deep/file.txt")).expect("is there").nlink();
        match link {
            "copy" => assert_eq!(names, 1),
            "hardlink" => assert!(names > 1),
            _ => {}
        }
        sandbox.mu(&["verify"]).ok();
        sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    }
}

#[test]
fn packs_are_linked_anew_when_another_way_is_asked_for() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0").needs("aws/vpc"),
        Package::new("aws/vpc", "1.0.0"),
    ]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    for link in ["symlink", "copy", "hardlink", "symlink", "hardlink", "auto"] {
        sandbox.write(".mu/workspace.yaml", &format!("link: {link}\n"));
        sandbox.mu(&["get", "--offline", "--locked"]).ok().does_not_say(&["up to date ("]);
        for name in ["ec2", "vpc"] {
            let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws").join(name);
            let is_link = pack.symlink_metadata().expect("is there").file_type().is_symlink();
            assert_eq!(is_link, link == "symlink", "{name} {link}");
            let names = fs::metadata(pack.join("Mu.yaml")).expect("is there").nlink();
            match link {
                "copy" => assert_eq!(names, 1, "{name}"),
                "hardlink" => assert!(names > 1, "{name}"),
                _ => {}
            }
        }
        sandbox.mu(&["verify"]).ok();
        sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    }
    assert_eq!(sandbox.read("Mu.lock"), lock);
    // Vendored packs are files, whatever `link` is.
    sandbox.mu(&["vendor"]).ok();
    sandbox.write(".mu/workspace.yaml", "link: symlink\n");
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
}

#[test]
fn links_to_a_store_that_was_emptied_lead_somewhere_again_and_it_is_said() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.write(".mu/workspace.yaml", "link: symlink\n");
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["cache", "clean"]).ok();
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/Mu.yaml"));
    sandbox.mu(&["get"]).ok().says(&["installed 1 package (1 downloaded, 0 from cache)"]);
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/Mu.yaml"));
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
}

#[test]
fn several_majors_have_folders_of_their_own() {
    let sandbox = Sandbox::with_dependencies(&["aws/app", "aws/vpc#^2"]);
    sandbox.write(".mu/workspace.yaml", "majors: many\n");
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/vpc#^1"),
        Package::new("aws/vpc", "1.4.0"),
        Package::new("aws/vpc", "2.1.0"),
    ]);
    sandbox.mu(&["get"]).ok();
    let version =
        |folder: &str| sandbox.read(&format!(".mu/packs/hub.mu.com/aws/{folder}/Mu.yaml"));
    assert!(version("vpc").contains("version: 2.1.0"));
    assert!(version("vpc@1").contains("version: 1.4.0"));
    let run = sandbox.mu(&["which", "aws/vpc#^1"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/.mu/packs/hub.mu.com/aws/vpc@1\n");
    let run = sandbox.mu(&["which", "aws/vpc"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/.mu/packs/hub.mu.com/aws/vpc\n");
    sandbox.mu(&["verify"]).ok().says(&["3 packs verified"]);
}

#[test]
fn what_a_fetched_package_leaves_out_comes_from_itself() {
    let sandbox = Sandbox::with_dependencies(&["acme.co/internal/conf"]);
    let hub = crate::support::Hub::new(&sandbox.path("acme"));
    hub.publish(
        &Package::new("internal/conf", "1.0.0")
            .needs("provider-b")
            .needs("tools/x")
            .needs("shared"),
    );
    for name in ["internal/provider-b", "tools/x", "shared"] {
        hub.release(name, "1.0.0");
    }
    // The same names in other places are not affected.
    sandbox.hub().release("tools/x", "9.0.0");
    sandbox.mu(&["registry", "add", "acme.co/", "../acme"]).ok();
    sandbox.mu(&["get"]).ok();
    assert_eq!(
        sandbox.locked(),
        [
            "acme.co/internal/conf 1.0.0",
            "acme.co/internal/provider-b 1.0.0",
            "acme.co/shared 1.0.0",
            "acme.co/tools/x 1.0.0",
        ]
    );
}

#[test]
fn excluded_versions_are_never_picked() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.hub().release("aws/ec2", "1.1.0");
    sandbox.mu(&["get"]).ok();
    sandbox.write(".mu/workspace.yaml", "exclude: [\"hub.mu.com/aws/ec2#1.1.0\"]\n");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.0.0"]);
}

#[test]
fn eight_runs_at_once_agree() {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..12).map(|number| format!("aws/p{number}")).collect();
    for name in &names {
        sandbox.publish(&[Package::new(name, "1.0.0").file("data.txt", &"x".repeat(5_000))]);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    sandbox.asks_for(&names);
    fs::create_dir_all(sandbox.path("other/.mu")).expect("can be made");
    fs::copy(sandbox.path("work/Mu.yaml"), sandbox.path("other/Mu.yaml")).expect("is ours");
    let children: Vec<_> = (0..8)
        .map(|number| {
            let mut command = sandbox.command(&["get"]);
            command.current_dir(sandbox.path(if number % 2 == 0 { "work" } else { "other" }));
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
            command.spawn().expect("mu can be run")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for folder in ["work", "other"] {
        sandbox.mu_in(folder, &["verify"]).ok().says(&["12 packs verified"]);
        sandbox.mu_in(folder, &["get", "--locked"]).ok().says(&["up to date ("]);
    }
    sandbox.mu(&["verify", "--store"]).ok().says(&["12 trees verified"]);
}

#[test]
fn a_folder_of_a_pack_makes_room_for_the_pack_that_belongs_there() {
    let sandbox = Sandbox::with_dependencies(&["aws"]);
    let whole = Package::new("aws", "1.0.0").file("ec2/own.txt", "aws's own").file("a.txt", "a");
    sandbox.publish(&[whole, Package::new("aws/ec2", "2.0.0").file("theirs.txt", "ec2's")]);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/own.txt"));
    sandbox.asks_for(&["aws", "aws/ec2"]);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/theirs.txt"));
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/own.txt"));
    sandbox.mu(&["verify"]).ok().says(&["2 packs verified"]);
    sandbox.mu(&["list"]).ok().does_not_say(&["not installed"]);
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    sandbox.asks_for(&["aws"]);
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/own.txt"));
    sandbox.mu(&["verify"]).ok().says(&["1 pack verified"]);
}
