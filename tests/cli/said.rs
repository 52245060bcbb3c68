//! Commands report what they did: the written requirement, the newer release that was not taken, and what was
//! kept where.

use serde_json::json;

use crate::support::Sandbox;
use crate::support::git::Origin;

#[test]
fn what_was_added_and_what_was_not_taken() {
    let sandbox = Sandbox::with_dependencies(&["web/proxy"]);
    sandbox.offer("web/proxy 1.0.0: web/tls#^1.1\nweb/tls 1.1.0:\nweb/tls 2.0.0:\nnet/vpc 1.0.0:");
    insta::assert_snapshot!(sandbox.mu(&["add", "web/tls"]).ok().shown(), @"
    $ mu add web/tls
    + web/proxy 1.0.0
    + web/tls 1.1.0
    added web/tls ^1.1.0 to acme/web (Mu.yaml); 2.0.0 exists, held back by web/proxy ^1.1
    installed 2 packages (2 downloaded, 0 from cache)
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["add", "net/vpc", "--dev", "--dry-run"]).ok().shown(), @"
    $ mu add net/vpc --dev --dry-run
    + net/vpc 1.0.0
    would add net/vpc ^1.0.0 to acme/web (Mu.yaml, devDependencies)
    3 packages would be in use; nothing was written
    [exit 0]
    ");
    // A user who gives a range knows what it excludes, but not which versions exist.
    insta::assert_snapshot!(sandbox.mu(&["add", "web/tls#~1.1"]).ok().shown(), @"
    $ mu add web/tls#~1.1
    web/tls ^1.1.0 → ~1.1 in Mu.yaml; 2.0.0 exists
    up to date (2 packages)
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["remove", "web/tls"]).ok().shown(), @"
    $ mu remove web/tls
    warning: `web/tls` stays, because `web/proxy` needs it
    removed web/tls from acme/web (Mu.yaml)
    up to date (2 packages)
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["get"]).ok().shown(), @"
    $ mu get
    up to date (2 packages)
    [exit 0]
    ");
    let answer = sandbox.mu(&["add", "web/tls", "--json"]).ok().json();
    let written = json!([{
        "package": "acme/web",
        "manifest": "[DIR]/work/Mu.yaml",
        "dev": false,
        "id": "hub.mu.com/web/tls",
        "name": "web/tls",
        "from": null,
        "to": "^1.1.0",
        "newer": "2.0.0",
        "heldBackBy": ["web/proxy ^1.1"],
    }]);
    assert_eq!(answer["written"], written);
}

#[test]
fn what_upgrade_and_pin_made_of_requirements() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#~1.0.6", "web/proxy", "web/tls#^1.0"]);
    sandbox.offer(
        "web/proxy 1.0.0: web/tls#^1.1\nweb/tls 1.1.0:\nweb/tls 2.0.0:\naws/ec2 1.0.6:\naws/ec2 2.0.0:",
    );
    sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(sandbox.mu(&["upgrade"]).ok().shown(), @"
    $ mu upgrade
    ~ aws/ec2 1.0.6 → 2.0.0
    aws/ec2 ~1.0.6 → ~2.0.0 in Mu.yaml
    web/tls ^1.0 → ^1.1 in Mu.yaml; 2.0.0 exists, held back by web/proxy ^1.1
    installed 1 package (1 downloaded, 0 from cache), 3 in all
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["pin", "aws/ec2"]).ok().shown(), @"
    $ mu pin aws/ec2
    aws/ec2 ~2.0.0 → 2.0.0 in Mu.yaml
    up to date (3 packages)
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["unpin", "aws/ec2"]).ok().shown(), @"
    $ mu unpin aws/ec2
    aws/ec2 2.0.0 → ~2.0.0 in Mu.yaml
    up to date (3 packages)
    [exit 0]
    ");
}

#[test]
fn a_branch_moves_from_commit_to_commit() {
    let mut sandbox = Sandbox::new();
    let origin = Origin::new("infra");
    let commit =
        |version: &str| origin.commit(&[("Mu.yaml", &format!("name: vpc\nversion: {version}\n"))]);
    let first = commit("2.0.0");
    let reference = format!("git+file://{}#main", origin.folder().display());
    sandbox.asks_for(&[&reference]);
    sandbox.mu(&["get"]).ok();
    let second = commit("0.0.0");
    sandbox.replace(&first[..7], "[FIRST]");
    sandbox.replace(&second[..7], "[SECOND]");
    let run = sandbox.mu(&["update", "--dry-run"]).ok();
    run.says(&["/infra main [FIRST] → [SECOND]
"]);
    let change = sandbox.mu(&["update", "--json"]).ok().json()["changes"][0].clone();
    let (first, second) = (format!("[FIRST]{}", &first[7..]), format!("[SECOND]{}", &second[7..]));
    let git = json!({"fromRef": "main", "fromCommit": first, "toRef": "main", "toCommit": second});
    assert_eq!(change["git"], git);
}

#[test]
fn what_get_was_given_is_kept_in_the_lock() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.offer("mid/p3 1.0.0:");
    insta::assert_snapshot!(sandbox.mu(&["get", "mid/p3"]).ok().shown(), @"
    $ mu get mid/p3
    + mid/p3 1.0.0
    kept in Mu.lock until `mu remove mid/p3`; `--save` also writes it into Mu.yaml
    installed 1 package (1 downloaded, 0 from cache)
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.mu(&["tree"]).ok().shown(), @"
    $ mu tree
    acme/web 0.1.0
    installed by `mu get`
    └── mid/p3 1.0.0 [required: any version]
    [exit 0]
    ");
    sandbox
        .mu(&["status"])
        .ok()
        .says(&["installed by `mu get`: mid/p3 (stays in Mu.lock until `mu remove`)"]);
    let status = sandbox.mu(&["status", "--json"]).ok().json();
    assert_eq!(status["extra"], json!(["mid/p3"]));
    sandbox.mu(&["remove", "mid/p3"]).ok();
    let status = sandbox.mu(&["status", "--json"]).ok().json();
    assert_eq!(status["extra"], json!([]));
    // Without a manifest there is nothing to save it in.
    std::fs::remove_file(sandbox.path("work/Mu.yaml")).expect("was there");
    sandbox
        .mu(&["get", "mid/p3"])
        .ok()
        .says(&["until `mu remove mid/p3`"])
        .does_not_say(&["--save"]);
}

#[test]
fn add_with_frozen_says_what_was_not_done() {
    let sandbox = Sandbox::with_dependencies(&["web/tls"]);
    sandbox.offer("web/tls 1.1.0:\nnet/vpc 1.0.0:");
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    insta::assert_snapshot!(sandbox.mu(&["add", "net/vpc#^1", "--frozen"]).ok().shown(), @"
    $ mu add net/vpc#^1 --frozen
    added net/vpc ^1 to acme/web (Mu.yaml)
    with --frozen, nothing was chosen or installed, and Mu.lock was not changed: run `mu get`
    [exit 0]
    ");
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn several_manifests_are_edited_only_if_that_was_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/ec2 1.0.0:\naws/vpc 1.0.0:");
    for (name, more) in [("a", ""), ("b", ", aws/vpc")] {
        let manifest =
            format!("name: acme/{name}\nversion: 1.0.0\ndependencies: [aws/ec2{more}]\n");
        sandbox.write(&format!("acme/{name}/Mu.yaml"), &manifest);
    }
    sandbox.mu(&["get"]).ok();
    let error = sandbox.mu(&["remove", "aws/ec2", "--json"]).fails_with("usage");
    let expected = "`aws/ec2` is a dependency of several packages: `acme/a`, `acme/b`";
    assert_eq!(error["message"], expected);
    let help = error["help"].to_string();
    assert!(help.contains("`mu remove aws/ec2 -p acme/a`") && help.contains("--all"), "{help}");
    assert!(sandbox.read("acme/a/Mu.yaml").contains("aws/ec2"));
    // A name that only one package depends on means that package.
    sandbox.mu(&["remove", "aws/vpc"]).ok().says(&["removed aws/vpc from acme/b (acme/b/Mu.yaml)"]);
    sandbox.mu(&["remove", "aws/ec2", "-p", "acme/a"]).ok();
    assert!(!sandbox.read("acme/a/Mu.yaml").contains("aws/ec2"));
    assert!(sandbox.read("acme/b/Mu.yaml").contains("aws/ec2"));
    sandbox.mu(&["get", "aws/ec2", "--save", "-p", "acme/a"]).ok();
    sandbox.mu(&["remove", "aws/ec2", "--all"]).ok();
    for package in ["a", "b"] {
        assert!(!sandbox.read(&format!("acme/{package}/Mu.yaml")).contains("aws"));
    }
    let run = sandbox.mu(&["get", "aws/ec2", "-p", "acme/a"]);
    assert_eq!(run.status, 2, "{}", run.shown());
}

#[test]
fn unpin_takes_back_what_pin_wrote() {
    let manifest = "name: acme/web\ndependencies:\n  - acme/utils#2.0.0   # pinned by hand\n  - aws/ec2#^1.0\n";
    let sandbox = Sandbox::new();
    sandbox.offer("acme/utils 2.0.0:\naws/ec2 1.0.0:\naws/ec2 1.2.0:");
    sandbox.write("Mu.yaml", manifest);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["pin"]).ok();
    sandbox
        .mu(&["unpin"])
        .ok()
        .says(&["kept these pins", "`mu unpin acme/utils` turns them into ranges"]);
    assert_eq!(sandbox.read("Mu.yaml"), manifest);
    sandbox.mu(&["unpin", "acme/utils"]).ok();
    assert!(sandbox.read("Mu.yaml").contains("acme/utils#^2.0.0   # pinned by hand"));
    // By the end of its name, as other commands take it.
    sandbox.mu(&["pin", "ec2"]).ok().says(&["aws/ec2 ^1.0 → 1.2.0 in Mu.yaml"]);
    sandbox.mu(&["unpin", "ec2"]).ok();
    sandbox.mu(&["upgrade", "utils"]).ok();
    sandbox.mu(&["upgrade", "nothing"]).fails().says(&["requires `nothing`"]);
}

#[test]
fn a_downgrade_lowers_what_forbids_it() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#~2.0.0", "aws/vpc#2.0.0", "aws/app"]);
    sandbox.offer(
        "aws/ec2 1.0.0:\naws/ec2 2.0.0:\naws/vpc 1.0.0:\naws/vpc 2.0.0:\naws/app 1.0.0: aws/log#^2\n\
         aws/log 1.0.0:\naws/log 2.0.0:",
    );
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["downgrade", "ec2#1.0.0", "vpc#1.0.0"]).ok();
    run.says(&["aws/ec2 ~2.0.0 → ~1.0.0 in Mu.yaml", "aws/vpc 2.0.0 → 1.0.0 in Mu.yaml"]);
    let lock = sandbox.read("Mu.lock");
    assert_eq!(lock.matches("version: 1.0.0").count(), 3, "{lock}");
    // The requirements of other packages stay.
    let before = sandbox.read("Mu.yaml");
    sandbox.mu(&["downgrade", "log#1.0.0"]).fails().says(&["aws/app 1.0.0 requires aws/log ^2"]);
    assert_eq!(sandbox.read("Mu.yaml"), before);
}

#[test]
fn an_upgrade_says_what_it_left_and_why() {
    for strategy in ["highest", "minimal"] {
        let sandbox = Sandbox::with_dependencies(&["acme/stack#^1.0.0", "acme/tool#^0.3.0"]);
        sandbox.offer(
            "acme/tool 0.3.0:
             acme/tool 0.4.0:
             acme/stack 1.0.0: acme/tool#^0.3.0",
        );
        sandbox.write(".mu/workspace.yaml", &format!("resolution: {strategy}\n"));
        sandbox.mu(&["get"]).ok();
        let left =
            "acme/tool stays at ^0.3.0 in Mu.yaml; 0.4.0 exists, held back by acme/stack ^0.3.0";
        for command in [&["upgrade"][..], &["upgrade", "acme/tool"]] {
            let run = sandbox.mu(command).ok().says(&[left]);
            assert!(!run.stderr.contains("acme/stack stays"), "{}", run.stderr);
        }
        let answer = sandbox.mu(&["upgrade", "--json"]).ok().json();
        let written = &answer["written"][0];
        assert_eq!((&written["from"], &written["to"]), (&"^0.3.0".into(), &"^0.3.0".into()));
        assert_eq!(written["newer"], "0.4.0");
    }
}
