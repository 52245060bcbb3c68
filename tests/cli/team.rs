//! The story of a team: four packages in one workspace, from the first `mu init` to their users.

use serde_json::Value;

use crate::support::git::Origin;
use crate::support::{Sandbox, write};

#[test]
fn four_packages_from_the_first_init_to_those_who_use_them() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.offer("net/vpc 1.4.0:\nnet/vpc 2.0.0:\ntools 1.0.0:");
    // The team's repository, with a workspace whose namespace is the team's.
    let origin = Origin::new("platform");
    origin.commit(&[("README.md", "The platform.\n")]);
    let team = sandbox.path("team");
    origin.git(&["clone", "--quiet", ".", &team.display().to_string()]);
    let commit_all = || {
        for arguments in [
            &["add", "--all"][..],
            &["-c", "user.name=Ada", "-c", "user.email=ada@acme.co", "commit", "-qm", "change"],
        ] {
            let status = std::process::Command::new("git")
                .args(arguments)
                .current_dir(&team)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .status();
            assert!(status.expect("git runs").success(), "{arguments:?}");
        }
    };
    sandbox.mu_in("team", &["init", "--workspace", "--namespace", "acme"]).ok();
    for name in ["db", "log", "api", "web"] {
        write(&team, &format!("{name}/main.txt"), name);
        sandbox.mu_in(&format!("team/{name}"), &["init", &format!("acme/{name}")]).ok();
    }
    // Siblings and other packages are added by any name, and written so that others can read it.
    let add = |folder: &str, references: &[&str]| {
        let folder = format!("team/{folder}");
        sandbox.mu_in(&folder, &[&["add"], references].concat()).ok();
    };
    add("db", &["net/vpc#^1", "../log"]);
    add("api", &["db", "log", "net/vpc"]);
    add("web", &["acme/api", "tools"]);
    let manifest = |name: &str| {
        let path = team.join(name).join("Mu.yaml");
        std::fs::read_to_string(path).expect("is there")
    };
    assert!(
        manifest("db").ends_with("  - net/vpc#^1\n  - acme/log#^0.1.0\n"),
        "{}",
        manifest("db")
    );
    let expected = "  - acme/db#^0.1.0\n  - acme/log#^0.1.0\n  - net/vpc#^1.4.0\n";
    assert!(manifest("api").ends_with(expected), "{}", manifest("api"));
    let expected = "  - acme/api#^0.1.0\n  - hub.mu.com/tools#^1.0.0\n";
    assert!(manifest("web").ends_with(expected), "{}", manifest("web"));
    sandbox.mu_in("team", &["get", "--locked"]).ok().says(&["up to date (2 packages)"]);
    sandbox.mu_in("team", &["why", "log"]).ok().says(&["acme/db", "acme/api"]);

    // Uncommitted files are not published; then everything is published, dependencies first.
    sandbox.mu_in("team", &["publish", "--all"]).fails().says(&["not committed"]);
    commit_all();
    let published = sandbox.mu_in("team", &["publish", "--all", "--json"]).ok().json();
    let packages = published["packages"].as_array().expect("is a list");
    let ids: Vec<&str> = packages.iter().filter_map(|package| package["id"].as_str()).collect();
    let order = ["log", "db", "api", "web"].map(|name| format!("hub.mu.com/acme/{name}"));
    assert_eq!(ids, order);
    for (name, bounded) in [
        ("db", &["net/vpc#^1", "acme/log#^0.1.0"][..]),
        ("api", &["acme/db#^0.1.0", "acme/log#^0.1.0", "net/vpc#^1.4.0"]),
        ("web", &["acme/api#^0.1.0", "hub.mu.com/tools#^1.0.0"]),
    ] {
        let index = sandbox.hub().index(&format!("acme/{name}"));
        let line = std::fs::read_to_string(index).expect("is published");
        let line: Value = serde_json::from_str(&line).expect("is JSON");
        assert_eq!(line["dependencies"], serde_json::json!(bounded));
        assert_eq!(line["commit"].as_str().map(str::len), Some(40));
    }
    sandbox.mu_in("team", &["publish", "--all"]).ok().says(&["acme/web 0.1.0 is already in"]);

    // A change that others depend on: the version is raised and published, and dependents take it.
    write(&team, "log/main.txt", "better");
    let raised = manifest("log").replace("0.1.0", "0.2.0");
    write(&team, "log/Mu.yaml", raised);
    sandbox.mu_in("team", &["get"]).ok().says(&["version 0.2.0", "requires ^0.1.0"]);
    for name in ["db", "api"] {
        let text = manifest(name).replacen("version: 0.1.0", "version: 0.2.0", 1);
        write(&team, &format!("{name}/Mu.yaml"), text);
        add(name, &["log"]);
    }
    let text = manifest("web").replacen("version: 0.1.0", "version: 0.2.0", 1);
    write(&team, "web/Mu.yaml", text);
    add("api", &["db"]);
    add("web", &["api"]);
    commit_all();
    sandbox.mu_in("team", &["publish", "--all"]).ok().says(&["published acme/web 0.2.0 to"]);

    // Somebody else uses it, without the team's workspace.
    sandbox.write("Mu.yaml", "name: shop\nversion: 0.1.0\n");
    sandbox.mu(&["add", "acme/web"]).ok().says(&["added acme/web ^0.2.0 to shop (Mu.yaml)"]);
    let lock = sandbox.read("Mu.lock");
    for id in ["acme/api", "acme/db", "acme/log", "acme/web", "net/vpc", "tools"] {
        assert!(lock.contains(&format!("- id: hub.mu.com/{id}\n")), "{lock}");
    }
    assert!(sandbox.path("work/.mu/packs/hub.mu.com/acme/log/main.txt").is_file());
}
