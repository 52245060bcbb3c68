//! Private hubs: they reveal nothing to others, and a team uses one beside a public one.

use std::fs;

use crate::support::{Package, Sandbox, Served};

/// A private hub with `secret/tool`, which needs a public package; and a token that may publish there.
fn private() -> (Sandbox, Served, String) {
    let mut sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/lib", "1.0.0")]);
    sandbox.mu(&["hub", "init", "../private"]).ok();
    let add = ["hub", "token", "add", "../private", "ada", "--namespace", "secret"];
    let token = sandbox.mu(&add).ok().stdout.trim().to_owned();
    let served = Served::start(&sandbox, "../private", &["--private"]);
    let settings =
        format!("registries:\n  hub.mu.com/secret/: {{url: \"{}\", strip: false}}\n", served.url());
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.set_token(&served.address.to_string(), &token);
    sandbox.write("Mu.yaml", "name: secret/tool\nversion: 1.0.0\ndependencies: ['aws/lib#^1']\n");
    sandbox.write("map.png", "not really a picture");
    sandbox.mu(&["publish"]).ok();
    (sandbox, served, token)
}

#[test]
fn a_private_hub_stands_beside_a_public_one_with_names_unchanged() {
    let (mut sandbox, served, _) = private();
    let host = served.address.to_string();
    let add = ["hub", "token", "add", "../private", "team", "--can", "read"];
    let reader = sandbox.mu(&add).ok().stdout.trim().to_owned();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\ndependencies: ['secret/tool#^1']\n");
    fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    // Nobody without a token learns anything, and everybody learns what to do.
    sandbox.set_token(&host, "");
    let run = sandbox.mu(&["get"]).fails().says(&["this hub is private; reading needs a token"]);
    run.says(&[&format!("`mu login {host}` stores a token for it")]);
    sandbox.mu(&["get", "--json"]).fails_with("auth");
    sandbox.set_token(&host, "mu_unknown");
    let variable = mu_provider::http::token_variable(&host).expect("has one");
    let refused = format!("the token in `{variable}` was refused");
    sandbox.mu(&["get"]).fails().says(&[&refused]).does_not_say(&["mu_unknown"]);
    sandbox.set_token(&host, "mu_a\nmu_b");
    let broken = format!("the token in `{variable}` contains a line break");
    sandbox.mu(&["get"]).fails().says(&[&broken]).does_not_say(&["mu_b"]);
    // With a token for reading, both hubs serve their packages.
    sandbox.set_token(&host, &reader);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains("id: hub.mu.com/secret/tool") && lock.contains("id: hub.mu.com/aws/lib"));
    assert!(!lock.contains(&reader), "{lock}");
    sandbox.mu(&["search", "tool", "--only", "hub.mu.com/secret/"]).ok().says(&["secret/tool"]);
    // The token allows only reading.
    sandbox.write("Mu.yaml", "name: secret/new\nversion: 1.0.0\n");
    let run = sandbox.mu(&["publish"]).fails();
    run.says(&["the token `team` may read, but not publish `secret/new`"]);
    let (_, log) = served.end();
    let shown = log.iter().filter(|line| line.contains("\"token\":\"team\"")).count();
    assert!(shown > 1 && !log.join("\n").contains(&reader), "{log:?}");
}

#[test]
fn nothing_of_a_private_hub_is_read_without_a_token() {
    let (sandbox, served, token) = private();
    let bearer = format!("authorization: Bearer {token}");
    let paths = [
        "/hub.json",
        "/catalog.jsonl",
        "/index/secret/tool.jsonl",
        "/packs/secret/tool/tool-1.0.0.tgz",
        "/api/v1/search?q=tool",
        "/metrics",
        "/",
        "/search?q=tool",
        "/packages/secret/tool",
        "/packages/secret/tool@1.0.0/map.png",
    ];
    for path in paths {
        for shown in [&[][..], &["authorization: Bearer mu_x"], &["authorization: Basic YTpi"]] {
            let answer = served.ask("GET", path, shown, &[]).is(401);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{path}");
            assert!(!answer.text().contains("aws/lib"), "{path}");
        }
        let answer = served.ask("GET", path, &[&bearer], &[]).is(200);
        let caching = answer.header("cache-control").unwrap_or("no-store").to_owned();
        assert!(caching.starts_with("private, ") || caching == "no-store", "{path}: {caching}");
    }
    served.ask("GET", "/nothing", &[], &[]).is(401);
    served.ask("GET", "/healthz", &[], &[]).is(200);
    // A browser asks for the token, as a password.
    let html = "accept: text/html";
    let answer = served.ask("GET", "/", &[html], &[]).is(401);
    assert!(answer.header("www-authenticate").is_some_and(|asks| asks.starts_with("Basic realm=")));
    let pair = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        format!("anybody:{token}"),
    );
    let basic = format!("authorization: Basic {pair}");
    assert!(served.ask("GET", "/", &[html, &basic], &[]).is(200).text().contains("secret/tool"));
    // Only programs make changes.
    served.ask("PUT", "/api/v1/packages/secret/x/1.0.0", &[&basic], &[]).is(401);
    // A token that is created while the hub is served can read at once.
    let add = ["hub", "token", "add", "../private", "new", "--can", "read"];
    let new = format!("authorization: Bearer {}", sandbox.mu(&add).ok().stdout.trim());
    served.ask("GET", "/hub.json", &[&new], &[]).is(200);
    // One that is taken back reads nothing any more, however recently it did.
    sandbox.mu(&["hub", "token", "revoke", "../private", "new"]).ok();
    served.ask("GET", "/hub.json", &[&new], &[]).is(401);
    let narrow = [&add[..4], &["other", "--can", "read", "--namespace", "a", "--json"]].concat();
    sandbox.mu(&narrow).fails_with("usage");
    sandbox.mu(&[&add[..4], &["other", "--json"]].concat()).fails_with("usage");
}
