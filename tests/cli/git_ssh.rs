//! Packages in Git repositories on a real `sshd`, whose account's key only an agent has.

use crate::support::git::Origin;
use crate::support::{Sandbox, SshServer};

fn origin() -> Origin {
    let origin = Origin::new("org/infra.git");
    for version in ["v1.0.0", "v1.2.0"] {
        let mark = [("Mu.yaml", "name: acme/infra\n"), ("sub/dir/mark.txt", version)];
        origin.commit(&mark);
        origin.git(&["tag", version]);
    }
    origin
}

/// A machine whose `ssh` finds the server as `git.example`.
fn sandbox(server: &SshServer) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.set("GIT_SSH_COMMAND", &server.command());
    sandbox.set("SSH_AUTH_SOCK", &server.agent());
    sandbox
}

#[test]
fn a_key_in_the_agent_opens_the_server() {
    let origin = origin();
    let server = SshServer::start(origin.root());
    let sandbox = sandbox(&server);
    let user = server.user();
    sandbox.mu(&["get", &format!("ssh://{user}@git.example/org/infra.git#^1")]).ok();
    assert_eq!(server.connections(), 1);
    let pack = ".mu/packs/git.example/org/infra";
    assert_eq!(sandbox.read(&format!("{pack}/sub/dir/mark.txt")), "v1.2.0");
    let locked = sandbox.lock()["packages"][0].clone();
    assert_eq!(locked["id"], "git.example/org/infra");
    assert_eq!(locked["source"], format!("git+ssh://{user}@git.example/org/infra.git"));
    // The short form means the same package, here a folder in it at another version.
    let short = format!("{user}@git.example:org/infra.git/sub/dir#v1.0.0");
    sandbox.mu(&["get", &short]).ok();
    assert_eq!(sandbox.read(&format!("{pack}/sub/dir/mark.txt")), "v1.0.0");
    let which = sandbox.mu(&["which", &short]).ok();
    assert_eq!(which.stdout, "[DIR]/work/.mu/packs/git.example/org/infra/sub/dir\n");
    sandbox.mu(&["verify"]).ok().says(&["2 packs verified"]);
    let before = server.connections();
    sandbox.mu(&["get"]).ok();
    assert_eq!(server.connections(), before);
}

#[test]
fn who_is_not_let_in_is_told_what_to_do() {
    let origin = origin();
    let server = SshServer::start(origin.root());
    let mut sandbox = sandbox(&server);
    let reference = format!("ssh://{}@git.example/org/infra.git", server.user());
    let missing = reference.replace("infra", "other");
    let error = sandbox.mu(&["get", &missing, "--json"]).fails_with("not-found");
    assert!(error["message"].as_str().expect("is text").contains("org/other"), "{error}");
    sandbox.set("SSH_AUTH_SOCK", "/nowhere");
    sandbox.mu(&["get", &reference, "--json"]).fails_with("auth");
    sandbox.mu(&["get", &reference]).fails().says(&["was denied access", "ssh-agent"]);
    server.change_known_host();
    sandbox.mu(&["get", &reference, "--json"]).fails_with("auth");
    sandbox.mu(&["get", &reference]).fails().says(&["does not trust the host", "ssh-keygen -R"]);
    assert!(!sandbox.has("work/.mu/packs/git.example"));
}

#[test]
fn what_ssh_could_not_ask_is_not_missing() {
    let origin = origin();
    let server = SshServer::start(origin.root());
    let mut sandbox = sandbox(&server);
    let reference = format!("ssh://{}@git.example/org/infra.git", server.user());
    let missing = sandbox.mu(&["get", &reference.replace("infra", "other")]).fails();
    missing.says(&["the key that ssh uses must have access"]).does_not_say(&["mu login"]);
    for (program, said) in [
        ("/nowhere/ssh", "the program for ssh cannot be run to reach"),
        ("sh -c 'exit 3'", "it ended with the exit code 3, and said nothing"),
    ] {
        sandbox.set("GIT_SSH_COMMAND", program);
        let run = sandbox.mu(&["get", &reference]).fails();
        run.says(&[said]).does_not_say(&["not found: `ssh", "is not installed on the host"]);
    }
}
