//! Where passwords may go: the table in `docs/trust.md`, which the decision itself fills in; and that nothing else in the code sends any.

use mu_provider::SafeUrl;
use mu_provider::http::{AskedServer, Recipient, TokenHosts, may_receive};

use super::{check_generated, files, read};

/// How a server comes to be sent something.
#[derive(Clone, Copy)]
enum Way {
    /// It was asked itself.
    Asked,
    /// A redirect, an upload's place, or a file's place, leads there.
    Led,
    /// It was named for tokens, or for changes.
    Named,
}

/// A row: the server that the password belongs to, how another one comes in, that one, the line in the user's file, and whether it gets the
/// password.
type Row = (&'static str, Way, &'static str, Option<(&'static str, &'static str)>, bool);

const ROWS: [Row; 26] = [
    ("https://hub.acme.co/", Way::Asked, "https://hub.acme.co/index/a.jsonl", None, true),
    ("https://hub.acme.co/", Way::Led, "https://hub.acme.co/packs/a.tgz", None, true),
    ("https://hub.acme.co/", Way::Led, "https://cdn.acme.co/packs/a.tgz", None, false),
    ("https://hub.acme.co/", Way::Led, "https://hub.acme.co:8443/packs/a.tgz", None, false),
    ("https://hub.acme.co/", Way::Led, "http://hub.acme.co/packs/a.tgz", None, false),
    ("http://hub.acme.co/", Way::Asked, "http://hub.acme.co/index/a.jsonl", None, false),
    ("http://localhost:8080/", Way::Asked, "http://localhost:8080/index/a.jsonl", None, true),
    ("http://localhost:8080/", Way::Led, "http://localhost:8081/packs/a.tgz", None, false),
    ("https://ghcr.io/", Way::Named, "https://ghcr.io/token", None, true),
    ("https://registry-1.docker.io/", Way::Named, "https://auth.docker.io/token", None, true),
    ("https://registry.gitlab.com/", Way::Named, "https://gitlab.com/jwt/auth", None, true),
    ("https://hub.acme.co/", Way::Named, "https://api.acme.co/v1/", None, true),
    ("https://registry.acme.co.uk/", Way::Named, "https://auth.acme.co.uk/", None, true),
    ("https://registry.acme.co.uk/", Way::Named, "https://auth.other.co.uk/", None, false),
    ("https://acme.github.io/", Way::Named, "https://other.github.io/token", None, false),
    ("https://acme.azurecr.io/", Way::Named, "https://other.azurecr.io/token", None, false),
    ("https://registry.acme.co/", Way::Named, "https://registry.acme.co:8443/token", None, false),
    ("https://registry.acme.co/", Way::Named, "http://registry.acme.co/token", None, false),
    ("https://evil.example/", Way::Named, "https://ghcr.io/token", None, false),
    (
        "https://registry.acme.co/",
        Way::Named,
        "https://login.example/token",
        Some(("registry.acme.co", "login.example")),
        true,
    ),
    (
        "https://registry.acme.co/",
        Way::Named,
        "http://login.example/token",
        Some(("registry.acme.co", "login.example")),
        false,
    ),
    (
        "https://registry.acme.co/",
        Way::Led,
        "https://login.example/token",
        Some(("registry.acme.co", "login.example")),
        false,
    ),
    (
        "https://evil.example/",
        Way::Named,
        "https://login.example/token",
        Some(("registry.acme.co", "login.example")),
        false,
    ),
    (
        "https://registry-1.docker.io/",
        Way::Named,
        "https://login.example/token",
        Some(("docker.io", "login.example")),
        true,
    ),
    ("http://localhost:5000/", Way::Named, "http://localhost:5001/token", None, false),
    (
        "http://localhost:5000/",
        Way::Named,
        "http://localhost:5001/token",
        Some(("localhost:5000", "localhost:5001")),
        true,
    ),
];

/// What surrounds the table in the document.
const BEGIN: &str =
    "<!-- Made by `BLESS=1 cargo test --test project credentials`; do not edit. -->\n\n";
const END: &str = "\n<!-- The end of what is made. -->\n";

#[test]
fn the_table_of_where_passwords_go_is_what_the_program_decides() {
    let mut table = String::from(
        "| asked | who comes in | how | in your `~/.mu/config.yaml` | gets the password for the asked |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for (asked, way, other, line, expected) in ROWS {
        let url = |text: &str| SafeUrl::parse(text).expect("is a URL");
        let (server, recipient) = (AskedServer::new(&url(asked)), url(other));
        let recipient = match way {
            Way::Asked | Way::Led => Recipient::Server(&recipient),
            Way::Named => Recipient::Named(&recipient),
        };
        let pairs = line.map(|(from, to)| (from.to_owned(), to.to_owned()));
        let decided = may_receive(&server, recipient, &TokenHosts::new(pairs));
        assert_eq!(decided.is_ok(), expected, "{asked} {other} {line:?}");
        let how = match way {
            Way::Asked => "is the asked one",
            Way::Led => "it redirects or leads there",
            Way::Named => "it names it for tokens or changes",
        };
        let line = line.map(|(from, to)| format!("`{from}/: {{tokensAt: {to}}}`"));
        let (line, answer) = (line.unwrap_or_default(), if expected { "yes" } else { "**no**" });
        table.push_str(&format!("| `{asked}` | `{other}` | {how} | {line} | {answer} |\n"));
    }
    let page = read("docs/trust.md");
    let (before, rest) = page.split_once(BEGIN).expect("docs/trust.md has the table");
    let (_, after) = rest.split_once(END).expect("the table in docs/trust.md has an end");
    let page = format!("{before}{BEGIN}{table}{END}{after}");
    check_generated("docs/trust.md", page.as_bytes());
}

/// What may be written in these files alone, outside of tests.
const GUARDED: [(&str, &[&str]); 5] = [
    // Who says that mu was told to ask a server, so that the user's secrets for it may be looked up.
    (
        "AskedServer::new(",
        &[
            "providers/api/src/http/mod.rs",
            "providers/api/src/http/request.rs",
            "providers/exec/src/plugin.rs",
            "providers/git/src/transport/credentials.rs",
            "providers/hub/src/hub.rs",
            "src/ops/publication/server.rs",
        ],
    ),
    // Who sees a secret: to store it, to hand it to a program, and for the body of a request to a token server.
    (
        ".expose()",
        &[
            // The password in the address of a proxy, for that.
            "providers/api/src/http/connection.rs",
            "providers/api/src/http/credentials.rs",
            "providers/api/src/http/request.rs",
            "providers/api/src/http/response.rs",
            "providers/exec/src/plugin.rs",
            "providers/git/src/transport/credentials.rs",
            "providers/git/src/working_copy/program.rs",
            "providers/oci/src/auth/mod.rs",
            "src/ops/login.rs",
            "src/ops/session/credentials.rs",
        ],
    ),
    (".for_program()", &["providers/api/src/http/response.rs", "providers/exec/src/plugin.rs"]),
    // Who knows the header: the client, what signs for buckets, the hub's server, and the messages of plugins.
    (
        "AUTHORIZATION",
        &[
            "crates/hub-server/src/readers.rs",
            "crates/hub-server/src/writing.rs",
            "providers/api/src/http/event.rs",
            "providers/api/src/http/request.rs",
        ],
    ),
    (
        "\"authorization\"",
        &[
            "crates/bucket/src/connect.rs",
            "crates/hub-server/src/readers.rs",
            "providers/exec/src/plugin.rs",
        ],
    ),
];

#[test]
fn nothing_but_the_one_decision_sends_a_secret() {
    let is_ours = |path: &str| {
        let is_code = path.starts_with("src/") || path.contains("/src/");
        let is_for_tests = path.starts_with("crates/testing/") || path.ends_with("tests.rs");
        is_code && !is_for_tests && path.ends_with(".rs")
    };
    let mut used = vec![Vec::new(); GUARDED.len()];
    for path in files("") {
        let path = path.to_str().expect("paths of the repository are UTF-8");
        if !is_ours(path) {
            continue;
        }
        let text = read(path);
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let is_in = |line: &str, what: &str| match what.starts_with('"') {
            true => line.to_ascii_lowercase().contains(what),
            false => line.contains(what),
        };
        for ((what, allowed), used) in GUARDED.iter().zip(&mut used) {
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            if lines.clone().any(|line| is_in(line, what)) {
                assert!(allowed.contains(&path), "{path} may not have `{what}`");
                used.push(path.to_owned());
            }
        }
    }
    for ((what, allowed), used) in GUARDED.iter().zip(used) {
        assert_eq!(used, *allowed, "only these have `{what}`");
    }
}
