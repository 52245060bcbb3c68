//! Git uses only the user's configuration when mu runs it, and never that of a checkout, which may be
//! hostile.

use std::fs;
use std::path::Path;
use std::process::Command;

use mu_testing::http::{Reply, TestServer};

use crate::support::{Sandbox, write};

/// The files of a new repository, with programs that leave a trace in `mark` when they run.
fn repository(folder: &Path, mark: &Path) {
    for part in ["objects", "refs/heads"] {
        fs::create_dir_all(folder.join(part)).expect("can be made");
    }
    let run = format!("touch '{}';", mark.display());
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tsshCommand = \"{run} false\"\n\
         \tfsmonitor = \"{run}\"\n\taskPass = \"{run}\"\n[credential]\n\thelper = \"!{run}\"\n"
    );
    write(folder, "config", config);
    write(folder, "HEAD", "ref: refs/heads/main\n");
}

/// Depends on packages for which Git's configuration is read: one over ssh, and one with a password.
fn depend(sandbox: &Sandbox, folder: &str, server: &TestServer) {
    let server = server.url("private.git");
    for (place, reference) in
        [("ssh", "ssh://git@127.0.0.1:1/a.git#v1.0.0"), ("web", &server.to_string())]
    {
        let text = format!("name: acme/{place}\ndependencies:\n  - {reference}\n");
        write(&sandbox.path(folder), &format!("{place}/Mu.yaml"), text);
        write(&sandbox.path(folder), &format!("{place}/.mu/workspace.yaml"), "");
    }
}

/// A machine, and a server that requires a password.
fn machine() -> (Sandbox, TestServer) {
    let mut sandbox = Sandbox::new();
    // The program that replaces ssh gets the port.
    sandbox.set("GIT_SSH_VARIANT", "ssh");
    let server = TestServer::start(|_, _| {
        Reply::status(401).header("www-authenticate", "Basic realm=\"git\"")
    });
    (sandbox, server)
}

/// Runs `mu get` in both packages in `folder`; no program in a configuration there may run.
fn check(sandbox: &Sandbox, folder: &str, mark: &Path, server: &TestServer) {
    depend(sandbox, folder, server);
    for place in ["ssh", "web"] {
        sandbox.mu_in(&format!("{folder}/{place}"), &["get"]).fails();
        assert!(!mark.exists(), "{folder}/{place}: a program of the checkout ran");
    }
}

#[test]
fn a_checkouts_configuration_names_no_program_to_run() {
    let (sandbox, server) = machine();
    let mark = sandbox.path("mark");
    repository(&sandbox.path("work/.git"), &mark);
    check(&sandbox, "work", &mark, &server);
}

#[test]
fn a_folder_that_looks_like_a_bare_repository_names_no_program_to_run() {
    let (sandbox, server) = machine();
    let mark = sandbox.path("mark");
    // Git commits such a folder like any other.
    repository(&sandbox.path("work/docs"), &mark);
    check(&sandbox, "work/docs", &mark, &server);
}

#[test]
fn a_cache_inside_of_a_checkout_is_no_part_of_it() {
    let (mut sandbox, server) = machine();
    let mark = sandbox.path("mark");
    repository(&sandbox.path("work/.git"), &mark);
    let cache = sandbox.path("work/.cache").display().to_string();
    sandbox.set("MU_CACHE_DIR", &cache);
    check(&sandbox, "work", &mark, &server);
    // Not even if the checkout brings it.
    repository(&sandbox.path("work/.cache/git"), &mark);
    check(&sandbox, "work", &mark, &server);
}

#[test]
fn the_users_own_configuration_counts() {
    let (mut sandbox, server) = machine();
    let (mark, config) = (sandbox.path("mark"), sandbox.path("home/gitconfig"));
    let (ssh, web) = (sandbox.path("ssh"), sandbox.path("web"));
    let text = format!(
        "[core]\n\tsshCommand = \"touch '{}'; false\"\n[credential]\n\thelper = \"!touch '{}';\"\n",
        ssh.display(),
        web.display()
    );
    fs::write(&config, text).expect("can be written");
    sandbox.set("GIT_CONFIG_GLOBAL", &config.display().to_string());
    check(&sandbox, "work", &mark, &server);
    assert!(ssh.exists() && web.exists(), "the user's own programs run");
}

#[test]
fn what_the_users_own_configuration_includes_for_a_checkout_counts_there() {
    let (mut sandbox, server) = machine();
    let (mark, config) = (sandbox.path("mark"), sandbox.path("home/gitconfig"));
    let (ssh, web) = (sandbox.path("ssh"), sandbox.path("web"));
    // The checkout's configuration counts no more than before.
    repository(&sandbox.path("work/.git"), &mark);
    let work = sandbox.path("work").canonicalize().expect("is there");
    let text = format!(
        "[includeIf \"gitdir:{}/\"]\n\tpath = of-work\n[includeIf \"gitdir:/elsewhere/\"]\n\tpath = missing\n",
        work.display()
    );
    fs::write(&config, text).expect("can be written");
    let text = format!(
        "[core]\n\tsshCommand = \"touch '{}'; false\"\n[credential]\n\thelper = \"!touch '{}';\"\n",
        ssh.display(),
        web.display()
    );
    write(&sandbox.path("home"), "of-work", text);
    sandbox.set("GIT_CONFIG_GLOBAL", &config.display().to_string());
    check(&sandbox, "beside", &mark, &server);
    assert!(!ssh.exists() && !web.exists(), "elsewhere, they do not count");
    check(&sandbox, "work", &mark, &server);
    assert!(ssh.exists() && web.exists(), "the user's own programs run");
    // Git would wait for what somebody writes there.
    for left in [&ssh, &web] {
        fs::remove_file(left).expect("is there");
    }
    let odd = sandbox.path("work/.git/config");
    fs::remove_file(&odd).expect("is there");
    assert!(Command::new("mkfifo").arg(&odd).status().expect("runs").success());
    sandbox.mu_in("work/ssh", &["get"]).fails();
    assert!(!ssh.exists());
}

#[test]
fn a_redirect_that_the_user_forbids_is_named() {
    let mut sandbox = Sandbox::new();
    let server = TestServer::start(|_, _| Reply::redirect("https://elsewhere.example/a.git"));
    sandbox.set("GIT_CONFIG_COUNT", "1");
    sandbox.set("GIT_CONFIG_KEY_0", "http.followRedirects");
    sandbox.set("GIT_CONFIG_VALUE_0", "false");
    sandbox.mu(&["get", &format!("git+{}", server.url("a.git"))]).fails().says(&[
        "redirects to `https://elsewhere.example/a.git`, and `http.followRedirects`",
        "hint: name the repository by the URL that it redirects to",
    ]);
}
