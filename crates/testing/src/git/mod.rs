//! The real Git: repositories that `git` created, and servers that run it.

mod origin;
mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

pub use self::origin::Origin;
pub use self::server::{Daemon, HttpServer, fake_ssh};

/// The environment of every `git` in the tests, with only the tests' own configuration.
pub fn variables(home: &Path) -> BTreeMap<String, String> {
    let path = std::env::var("PATH").expect("the tests find git on the path");
    let home = home.to_str().expect("temporary folders are UTF-8").to_owned();
    [
        ("PATH", path),
        ("HOME", home),
        ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ("GIT_ALLOW_PROTOCOL", "file".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Runs `git` in a folder and returns what it prints.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    git_with_input(folder, arguments, b"")
}

/// Runs `git` in a folder with something on its standard input.
pub fn git_with_input(folder: &Path, arguments: &[&str], input: &[u8]) -> String {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(folder).env_clear().envs(variables(folder));
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "Ada")
            .env(format!("GIT_{role}_EMAIL"), "ada@example.com")
            .env(format!("GIT_{role}_DATE"), "2026-01-01T00:00:00Z");
    }
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("these tests need git: install it, on Debian with `apt-get install git`");
    std::io::Write::write_all(&mut child.stdin.take().expect("is piped"), input)
        .expect("git reads");
    let output = child.wait_with_output().expect("git ends");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {words}");
    String::from_utf8(output.stdout).expect("git prints text").trim().to_owned()
}
