//! Private hubs: they reveal nothing to others, and a team uses one beside a public one.

use std::fs;

use serde_json::json;

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
    let narrow = [&add[..4], &["other", "--can", "read", "--namespace", "a"]].concat();
    sandbox
        .mu(&narrow)
        .says(&["hint: leave out `--namespace`: `--read NAMESPACE` says what a token reads"]);
    let wide = [&add[..4], &["other", "--namespace", "*", "--read", "a"]].concat();
    sandbox.mu(&wide).says(&["a token that may change every package reads them all"]);
    sandbox.mu(&[&add[..4], &["other", "--json"]].concat()).fails_with("usage");
}

/// A private hub with packages in `acme/sdk` and one in `secret`, and a token that reads `acme/sdk`.
fn with_partner() -> (Sandbox, Served, String) {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../private"]).ok();
    let add = ["hub", "token", "add", "../private"];
    let token = |more: &[&str]| {
        let run = sandbox.mu(&[&add[..], more].concat()).ok();
        run.stdout.trim().to_owned()
    };
    let admin = token(&["admin", "--namespace", "*"]);
    let partner = token(&["partner", "--read", "acme/sdk"]);
    let served =
        Served::start(&sandbox, "../private", &["--private", "--changes-per-minute", "1000"]);
    let publish = |package: Package, name: &str, version: &str| {
        sandbox.publish(&[package]);
        let archive = fs::read(sandbox.hub().archive(name, version)).expect("was published");
        served.put(&admin, &format!("{name}/{version}"), &archive).is(201);
    };
    publish(Package::new("secret/tool", "1.0.0"), "secret/tool", "1.0.0");
    // Enough changes for a snapshot.
    for number in 0..32 {
        let version = format!("1.{number}.0");
        publish(Package::new("acme/sdk/core", &version), "acme/sdk/core", &version);
    }
    for (name, needs) in [("acme/sdk/app", "acme/sdk/core#^1"), ("acme/sdk/odd", "secret/tool#^1")]
    {
        publish(Package::new(name, "1.0.0").needs(needs), name, "1.0.0");
    }
    sandbox.hub_is_at(&served.url());
    (sandbox, served, partner)
}

#[test]
fn a_limited_token_reads_its_namespaces_and_the_rest_is_not_there() {
    let (mut sandbox, served, partner) = with_partner();
    let host = served.address.to_string();
    sandbox.set_token(&host, &partner);
    let whoami = sandbox.mu(&["whoami", &host]).ok();
    whoami.says(&["partner\n", "reads acme/sdk\n"]);
    assert_eq!(sandbox.mu(&["whoami", &host, "--json"]).ok().json()["reads"], json!(["acme/sdk"]));

    // Without a snapshot, a log and a catalog, everything works.
    sandbox.asks_for(&["acme/sdk/app#^1"]);
    sandbox.mu(&["get"]).ok().says(&["+ acme/sdk/app 1.0.0", "+ acme/sdk/core 1.31.0"]);
    sandbox.mu(&["update"]).ok();
    sandbox.mu(&["versions", "acme/sdk/core"]).ok().says(&["1.31.0"]);
    let found = sandbox.mu(&["search", "acme"]).ok();
    found.says(&["acme/sdk/app", "acme/sdk/core"]).does_not_say(&["secret"]);
    sandbox.mu(&["search", "tool", "--json"]).ok().does_not_say(&["secret/tool"]);

    // What the token may not read is as if it did not exist.
    let told = |name: &str| {
        let run = sandbox.mu(&["info", name, "--json"]);
        let error = run.fails_with("not-found").to_string();
        error.replace(name, "NAME").replace(name.rsplit('/').next().unwrap_or(name), "LEAF")
    };
    assert_eq!(told("secret/tool"), told("secret/none"));
    sandbox.asks_for(&["acme/sdk/odd#^1"]);
    sandbox.mu(&["get"]).fails().says(&["secret/tool"]);
    sandbox.mu(&["get", "--json"]).fails_with("not-found");
    sandbox.write("Mu.yaml", "name: acme/sdk/new\nversion: 1.0.0\n");
    let run = sandbox.mu(&["publish", "--to", &served.url()]).fails();
    run.says(&["the token `partner` may read, but not publish `acme/sdk/new`"]);

    // A token that reads more finds it at once, although nothing in the hub has changed.
    let wide =
        ["hub", "token", "add", "../private", "wide", "--read", "acme/sdk", "--read", "secret"];
    let wide = sandbox.mu(&wide).ok().stdout.trim().to_owned();
    sandbox.set_token(&host, &wide);
    sandbox.asks_for(&["acme/sdk/odd#^1"]);
    sandbox.mu(&["get"]).ok().says(&["+ secret/tool 1.0.0"]);
    sandbox.mu(&["search", "tool"]).ok().says(&["secret/tool"]);

    let list = sandbox.mu(&["hub", "token", "list", "../private", "--json"]).ok().json();
    assert_eq!(list["tokens"][0]["reads"], json!(null));
    assert_eq!(list["tokens"][1]["reads"], json!(["acme/sdk"]));
    assert_eq!(list["tokens"][1]["can"], json!(["read"]));
    let (_, log) = served.end();
    let asked = |path: &str| {
        log.iter().any(|line| line.contains(path) && line.contains("\"token\":\"partner\""))
    };
    assert!(asked("/index/acme/sdk/core.jsonl") && !asked("/snapshot") && !asked("/log/"));
}

#[test]
fn a_token_that_publishes_reads_that_and_what_it_names() {
    let (sandbox, served, _) = with_partner();
    let add =
        ["hub", "token", "add", "../private", "ci", "--namespace", "acme/ci", "--read", "acme/sdk"];
    let token = sandbox.mu(&add).ok().stdout.trim().to_owned();
    let bearer = format!("authorization: Bearer {token}");
    sandbox.publish(&[Package::new("acme/ci/tool", "1.0.0")]);
    let archive = fs::read(sandbox.hub().archive("acme/ci/tool", "1.0.0")).expect("was published");
    served.put(&token, "acme/ci/tool/1.0.0", &archive).is(201);
    served.put(&token, "acme/sdk/core/1.0.0", &archive).is(403);
    for (path, status) in [
        ("/index/acme/ci/tool.jsonl", 200),
        ("/index/acme/sdk/core.jsonl", 200),
        ("/index/secret/tool.jsonl", 404),
        ("/packs/secret/tool/tool-1.0.0.tgz", 404),
        ("/catalog.jsonl", 404),
        ("/snapshot.jsonl.gz", 404),
        ("/log/000000.txt", 404),
        ("/metrics", 404),
    ] {
        served.ask("GET", path, &[&bearer], &[]).is(status);
    }
    // An older server does not know such tokens, and must not take one for a token that reads everything.
    let tokens = fs::read_to_string(sandbox.path("private/private/tokens.json")).expect("is there");
    assert_eq!(tokens.matches("\"limited-sha256:").count(), 2);
    // In a hub that everybody reads, nothing is limited.
    let public = Served::start(&sandbox, "../private", &[]);
    public.ask("GET", "/index/secret/tool.jsonl", &[&bearer], &[]).is(200);
}

#[test]
fn a_hub_that_shows_no_list_is_not_taken_for_an_empty_one() {
    let (mut sandbox, served, partner) = with_partner();
    sandbox.set_token(&served.address.to_string(), &partner);
    sandbox.mu(&["hub", "init", "../copy"]).ok();
    let url = served.url();
    for what in ["--all", "acme", "acme/sdk/core"] {
        let run = sandbox.mu(&["mirror", what, "--from", &url, "--to", "../copy"]).fails();
        run.says(&[
            "does not list what it has",
            "a token that reads only some packages gets no list",
        ]);
    }
    // By its name, a package can be copied.
    sandbox.mu(&["mirror", "acme/sdk/app", "--to", "../copy"]).ok().says(&["acme/sdk/app 1.0.0"]);
}
