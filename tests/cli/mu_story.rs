//! The story of a package from its author to its users: the layouts of a workspace, publishing, elements, global packs, and the same
//! package in Git by every name of a commit.

use mu_testing::git::{Origin, git};

use crate::support::{Package, Sandbox, write};

const EXPORTS: &str = "exports:\n  VM: {kind: class, path: vm.ts}\n";

fn ec2(version: &str) -> Package {
    Package::new("aws/ec2", version).manifest(EXPORTS).file("vm.ts", version)
}

#[test]
fn six_layouts_have_one_answer_to_each_name_of_a_package() {
    for (settings, folder) in [
        ("", "hub.mu.com/aws/ec2"),
        ("", "aws/ec2"),
        ("namespace: aws\n", "ec2"),
        ("namespace: aws\n", "hub.mu.com/aws/ec2"),
        ("namespace: hub.mu.com/aws\n", "ec2"),
        ("namespace: aws/ec2\n", "."),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write(".mu/workspace.yaml", settings);
        let place = format!("work/{folder}");
        sandbox.place(place.trim_end_matches("/."), &ec2("1.0.6"));
        for reference in ["aws/ec2", "hub.mu.com/aws/ec2", "https://hub.mu.com/aws/ec2#^1"] {
            let run = sandbox.mu(&["which", reference]).ok();
            let expected = format!("[DIR]/{}\n", place.trim_end_matches("/."));
            assert_eq!(run.stdout, expected, "{settings}{folder}: {reference}");
        }
        let run = sandbox.mu(&["which", "aws/ec2/VM"]).ok();
        assert!(run.stdout.ends_with("/vm.ts  class\n"), "{}", run.shown());
    }
}

#[test]
fn what_is_published_is_got_with_its_elements_here_and_for_all_workspaces() {
    let sandbox = Sandbox::new();
    write(sandbox.root(), "author/.mu/workspace.yaml", "namespace: aws\n");
    for (name, more) in [("ec2", "dependencies: [\"vpc#^1.2.0\"]\n"), ("vpc", "")] {
        let text = format!(
            "name: aws/{name}\nversion: 1.2.0\ndescription: d\nlicense: MIT\n{EXPORTS}{more}"
        );
        write(sandbox.root(), &format!("author/{name}/Mu.yaml"), text);
        write(sandbox.root(), &format!("author/{name}/vm.ts"), name);
    }
    sandbox.mu_in("author", &["publish", "--all"]).ok();
    // An element stands for its package, whose own dependency comes along.
    sandbox.asks_for(&[]);
    sandbox.mu(&["add", "aws/ec2/VM#^1"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.2.0", "hub.mu.com/aws/vpc 1.2.0"]);
    let path = "[DIR]/work/.mu/packs/hub.mu.com/aws/ec2/vm.ts  class\n";
    assert_eq!(sandbox.mu(&["which", "aws/ec2/VM"]).ok().stdout, path);
    // Pinned and taken back, the manifest is as it was.
    let before = sandbox.read("Mu.yaml");
    sandbox.mu(&["pin"]).ok();
    assert!(sandbox.read("Mu.yaml").contains("#1.2.0"), "{}", sandbox.read("Mu.yaml"));
    sandbox.mu(&["unpin"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), before);
    // For all workspaces.
    write(sandbox.root(), "elsewhere/.mu/workspace.yaml", "");
    sandbox.mu_in("elsewhere", &["get", "--global", "aws/vpc/VM"]).ok();
    let run = sandbox.mu_in("elsewhere", &["which", "aws/vpc/VM"]).ok();
    assert_eq!(run.stdout, "[DIR]/home/.mu/packs/hub.mu.com/aws/vpc/vm.ts  class\n");
    // A folder in the workspace comes first, and takes the place of the package for all that need it.
    sandbox.place("work/aws/vpc", &Package::new("aws/vpc", "1.3.0"));
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.2.0", "hub.mu.com/aws/vpc 1.3.0"]);
    assert_eq!(sandbox.mu(&["which", "aws/vpc"]).ok().stdout, "[DIR]/work/aws/vpc\n");
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_package_in_git_is_got_by_every_name_of_its_commits() {
    let origin = Origin::new("infra");
    let commit = |version: &str| {
        let manifest = format!("name: aws/ec2\nversion: {version}\n{EXPORTS}");
        origin.commit(&[("Mu.yaml", &manifest), ("vm.ts", version)])
    };
    let first = commit("1.0.0");
    origin.git(&["tag", "v1.0.0"]);
    commit("1.1.0");
    origin.git(&["tag", "v1.1.0"]);
    commit("1.2.0");
    let (tip, folder) = (git(origin.folder(), &["rev-parse", "HEAD"]), origin.folder().display());
    let sandbox = Sandbox::new();
    for (version, content) in [
        ("latest", "1.1.0"),
        (&first[..], "1.0.0"),
        (&first[..12], "1.0.0"),
        (&first[..7], "1.0.0"),
        ("v1.0.0", "1.0.0"),
        ("~1.0", "1.0.0"),
        ("^1.1", "1.1.0"),
        ("tip", "1.2.0"),
        ("main", "1.2.0"),
        (&tip, "1.2.0"),
    ] {
        let reference = format!("git+file://{folder}#{version}");
        sandbox.asks_for(&[&format!("\"{reference}\"")]);
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["get", "--locked"]).ok();
        let run = sandbox.mu(&["which", &format!("git+file://{folder}/VM")]).ok();
        let path = run.stdout.split("  ").next().unwrap_or_default();
        let path = path.replace("[DIR]", &sandbox.root().display().to_string());
        assert_eq!(std::fs::read_to_string(path).expect("is there"), content, "{version}");
    }
}
