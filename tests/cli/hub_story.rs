//! The first hour of a company with a hub of its own: tokens, a private server, publishing, a web server in front, damage and repair, and
//! copies for a place without a network. With real servers.

use std::fs;

use mu_testing::DockerRegistry;

use crate::login::send;
use crate::support::{Nginx, Sandbox, Served, tree, write};

/// A hub at `srv`, and three packages of the namespace `acme` in `author`, of which `app` needs the others.
fn company() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    write(sandbox.root(), "author/.mu/workspace.yaml", "namespace: acme\n");
    for (name, more) in
        [("lib", ""), ("vpc", ""), ("app", "dependencies: [\"lib#^1\", \"vpc#^1\"]\n")]
    {
        let manifest =
            format!("name: acme/{name}\nversion: 1.0.0\ndescription: d\nlicense: MIT\n{more}");
        write(sandbox.root(), &format!("author/{name}/Mu.yaml"), manifest);
        write(sandbox.root(), &format!("author/{name}/main.tf"), name);
    }
    sandbox
}

/// A new token of the hub.
fn token(sandbox: &Sandbox, name: &str, more: &[&str]) -> String {
    let add = ["hub", "token", "add", "../srv", name, "--json"];
    let json = sandbox.mu(&[&add[..], more].concat()).ok().json();
    json["token"].as_str().expect("is a token").to_owned()
}

const PACKAGES: [&str; 3] =
    ["hub.mu.com/acme/app 1.0.0", "hub.mu.com/acme/lib 1.0.0", "hub.mu.com/acme/vpc 1.0.0"];

#[test]
fn a_company_runs_a_hub_of_its_own() {
    let sandbox = company();
    let run = sandbox.mu(&["hub", "token", "add", "../srv", "ci"]);
    run.says(&["the token needs a namespace", "--namespace acme"]);
    let ci = token(&sandbox, "ci", &["--namespace", "acme"]);
    let ops = token(&sandbox, "ops", &["--namespace", "ops"]);
    let reader = token(&sandbox, "reader", &["--can", "read"]);
    let served = Served::start(&sandbox, "../srv", &["--private"]);
    sandbox.hub_is_at(&format!("http://{}/", served.address));
    let host = served.address.to_string();
    // Nobody gets in without a token, and the one command that helps is named.
    let login = format!("`mu login {host}`");
    sandbox.mu(&["search", "lib"]).fails().says(&["this hub is private", &login]);
    send(&sandbox, &["login", "hub.mu.com"], "mu_wrong").fails().says(&["it was not stored"]);
    for (wrong, said) in [
        (&ops, "the token `ops` is for `ops`, not `acme`"),
        (&reader, "the token `reader` may read, but not publish"),
    ] {
        send(&sandbox, &["login", "hub.mu.com"], wrong).ok();
        sandbox.mu_in("author", &["publish", "--all"]).fails().says(&[said, "mu hub token add"]);
    }
    sandbox.mu(&["whoami", "hub.mu.com"]).ok().says(&["reader\n", "may   read\n"]);
    send(&sandbox, &["login", "hub.mu.com"], &ci).ok().says(&["knows it as `ci`"]);
    // In the order in which they need each other, and once.
    let run = sandbox.mu_in("author", &["publish", "--all"]).ok();
    let at = |name: &str| run.stdout.find(&format!("published acme/{name}"));
    assert!(at("lib") < at("app") && at("vpc") < at("app") && at("lib").is_some());
    sandbox.mu_in("author", &["publish", "--all"]).ok().says(&["acme/app 1.0.0 is already in"]);
    sandbox.mu(&["doctor"]).ok().says(&["answers in", "with a token"]);
    sandbox.asks_for(&["acme/app#^1"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), PACKAGES);
    // The names complete, and who left gets nothing any more.
    sandbox.mu(&["search", "acme"]).ok();
    let complete = sandbox.mu(&["__complete", "--", "add", "acme/"]).ok();
    assert_eq!(complete.stdout, "acme/app\nacme/lib\nacme/vpc\n");
    sandbox.mu(&["hub", "token", "revoke", "../srv", "ci"]).ok();
    sandbox.mu(&["whoami", "hub.mu.com"]).fails().says(&["it may have been revoked"]);
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn the_files_of_a_hub_need_no_server_and_its_secrets_stay() {
    let sandbox = company();
    let place = sandbox.path("srv").display().to_string();
    sandbox.mu_in("author", &["publish", "--all", "--to", &place]).ok();
    token(&sandbox, "ci", &["--namespace", "acme"]);
    let guard = "location /private/ { deny all; }";
    let nginx = Nginx::serve(&sandbox.path("srv"), guard);
    sandbox.hub_is_at(&nginx.url(""));
    sandbox.asks_for(&["acme/app#^1"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), PACKAGES);
    sandbox.mu(&["search", "vpc"]).ok().says(&["acme/vpc"]);
    assert_eq!(mu_testing::pull(&nginx.host(), "/private/tokens.json"), None);
    // Files that everybody may read do not say whose a token is.
    send(&sandbox, &["login", "hub.mu.com"], "mu_x").says(&["cannot be asked", "--yes"]);
    sandbox.mu(&["publish", "--to", &nginx.url("")]).says(&["does not accept changes"]);
}

#[test]
fn damage_is_named_and_what_can_be_repaired_is() {
    let sandbox = company();
    let place = sandbox.path("srv").display().to_string();
    sandbox.mu_in("author", &["publish", "--all", "--to", &place]).ok();
    let check = ["hub", "check", "../srv"];
    sandbox.mu(&check).ok();
    let before = tree(&sandbox.path("srv/packs"));
    let archive = sandbox.path("srv/packs/acme/lib/lib-1.0.0.tgz");
    let whole = fs::read(&archive).expect("is there");
    fs::write(sandbox.path("srv/catalog.jsonl"), "{}\n").expect("is ours");
    fs::write(&archive, &whole[..whole.len() / 2]).expect("is ours");
    let run = sandbox.mu(&check).fails();
    run.says(&["lib-1.0.0.tgz", "catalog.jsonl", "--repair"]);
    // What follows from the index is made again; an archive comes from a backup.
    let run = sandbox.mu(&["hub", "check", "../srv", "--repair"]).fails();
    run.says(&["lib-1.0.0.tgz", "backup"]).does_not_say(&["catalog.jsonl"]);
    fs::write(&archive, &whole).expect("is ours");
    sandbox.mu(&check).ok();
    assert_eq!(tree(&sandbox.path("srv/packs")), before);
    sandbox.hub_is_at(&format!("file://{place}/"));
    sandbox.mu(&["search", "acme"]).ok().says(&["acme/app", "acme/lib", "acme/vpc"]);
}

#[test]
fn what_is_locked_is_taken_along_to_where_there_is_no_network() {
    let sandbox = company();
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.hub_is_at(&format!("http://{}/", served.address));
    send(&sandbox, &["login", "hub.mu.com"], &token(&sandbox, "ci", &["--namespace", "acme"])).ok();
    sandbox.mu_in("author", &["publish", "--all"]).ok();
    sandbox.asks_for(&["acme/app#^1"]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).fails().says(&["mu hub init"]);
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).ok().says(&["3 versions copied"]);
    let registry = DockerRegistry::start();
    let place = format!("oci://{}/mirror", registry.host());
    sandbox.mu(&["mirror", "--lock", "--to", &place]).ok().says(&["3 versions copied"]);
    drop(served);
    for to in [format!("file://{}/", sandbox.path("mirror").display()), place] {
        sandbox.hub_is_at(&to);
        for folder in ["cache", "work/.mu/packs"] {
            fs::remove_dir_all(sandbox.path(folder)).expect("is ours");
        }
        sandbox.mu(&["get", "--locked"]).ok().says(&["installed 3 packages (3 downloaded"]);
        sandbox.mu(&["verify"]).ok();
        assert_eq!(sandbox.read("Mu.lock"), lock, "{to}");
    }
}
