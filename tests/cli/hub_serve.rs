//! `mu hub serve`: what it serves, what it accepts from whom, and what it refuses.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Package, Sandbox, Served};

/// A workspace beside an empty hub in `srv`.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    sandbox
}

/// A token that may do everything in `acme`.
fn token(sandbox: &Sandbox) -> String {
    token_for(sandbox, "ada", &["--namespace", "acme"])
}

fn token_for(sandbox: &Sandbox, name: &str, more: &[&str]) -> String {
    let arguments = ["hub", "token", "add", "../srv", name, "--json"];
    let run = sandbox.mu(&[&arguments[..], more].concat()).ok();
    run.json()["token"].as_str().expect("is a token").to_owned()
}

/// The archive of a package.
fn archive(sandbox: &Sandbox, package: &Package, name: &str, version: &str) -> Vec<u8> {
    sandbox.hub().publish(package);
    fs::read(sandbox.hub().archive(name, version)).expect("was published")
}

fn simple(sandbox: &Sandbox, name: &str, version: &str) -> Vec<u8> {
    archive(sandbox, &Package::new(name, version), name, version)
}

#[test]
fn files_are_served_whole_in_part_and_only_if_they_changed() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let bytes = simple(&sandbox, "acme/web", "1.0.0");
    served.put(&token(&sandbox), "acme/web/1.0.0", &bytes).is(201);

    let path = "/packs/acme/web/web-1.0.0.tgz";
    let whole = served.ask("GET", path, &[], &[]).is(200);
    assert_eq!(whole.body, bytes);
    assert_eq!(whole.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));
    let e_tag = whole.header("etag").expect("has an ETag").to_owned();
    let whole_tag = e_tag.clone();
    let unchanged = served.ask("GET", path, &[&format!("if-none-match: {e_tag}")], &[]).is(304);
    assert_eq!(unchanged.body, b"");
    // As a proxy marks the tag of what it packed, among others, and any.
    for known in [format!("W/{e_tag}"), format!("\"x\", {e_tag}"), "*".to_owned()] {
        for path in [path, "/hub.json"] {
            let e_tag = served.ask("GET", path, &[], &[]).header("etag").map(str::to_owned);
            let known = known.replace(&whole_tag, &e_tag.expect("has one"));
            served.ask("GET", path, &[&format!("if-none-match: {known}")], &[]).is(304);
        }
    }

    let head = served.ask("HEAD", path, &[], &[]).is(200);
    assert_eq!(head.header("content-length"), Some(bytes.len().to_string().as_str()));
    assert_eq!(head.body, b"");
    let head = served.ask("HEAD", path, &["range: bytes=3-6"], &[]).is(200);
    assert_eq!(head.header("content-length"), Some(bytes.len().to_string().as_str()));

    let part = served.ask("GET", path, &["range: bytes=3-6"], &[]).is(206);
    assert_eq!(part.body, bytes[3..7]);
    assert_eq!(part.header("content-range"), Some(&*format!("bytes 3-6/{}", bytes.len())));
    let last = served.ask("GET", path, &["range: bytes=-5"], &[]).is(206);
    assert_eq!(last.body, bytes[bytes.len() - 5..]);
    let rest = served.ask("GET", path, &["range: bytes=10-", &format!("if-range: {e_tag}")], &[]);
    assert_eq!(rest.is(206).body, bytes[10..]);
    let other = served.ask("GET", path, &["range: bytes=10-", "if-range: \"other\""], &[]);
    assert_eq!(other.is(200).body, bytes);
    served.ask("GET", path, &["range: bytes=999999-"], &[]).is(416);

    let index = served.ask("GET", "/index/acme/web.jsonl", &[], &[]).is(200);
    assert_eq!(index.header("cache-control"), Some("no-cache"));
    let line: Value = serde_json::from_slice(&index.body).expect("is one line");
    assert_eq!(line["version"], "1.0.0");
    let hub = served.ask("GET", "/hub.json", &[], &[]).is(200);
    assert_eq!(hub.json()["api"], "api/v1/");
    let known = format!("if-none-match: {}", hub.header("etag").expect("has an ETag"));
    served.ask("GET", "/hub.json", &[&known], &[]).is(304);
}

#[test]
fn nothing_but_the_hub_is_served() {
    let sandbox = sandbox();
    token(&sandbox);
    fs::write(sandbox.path("srv/index/.hidden"), "x")
        .or_else(|_| {
            fs::create_dir_all(sandbox.path("srv/index"))?;
            fs::write(sandbox.path("srv/index/.hidden"), "x")
        })
        .expect("is ours");
    fs::write(sandbox.path("secret"), "x").expect("is ours");
    let served = Served::start(&sandbox, "../srv", &[]);
    for path in [
        "/private/tokens.json",
        "/hub.lock",
        "/pending/x.txt",
        "/index/.hidden",
        "/index/../private/tokens.json",
        "/index/%2e%2e/private/tokens.json",
        "/index/..%2fprivate%2ftokens.json",
        "/index//private",
        "/../secret",
        "/%2e%2e/secret",
        "/packs/x.html",
        "/index/a%00b",
        "/index/\u{e9}",
        "/%zz",
    ] {
        let answer = served.ask("GET", path, &[], &[]);
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.text());
    }
    let problem = served.ask("GET", "/nothing", &[], &[]).is(404);
    assert_eq!(problem.header("content-type"), Some("application/problem+json"));
    assert_eq!(problem.json()["status"], 404);
    let long = format!("/packs/{}.tgz", "a".repeat(3_000));
    served.ask("GET", &long, &[], &[]).is(404);
    for path in ["/hub.json", "/", "/packages/a", "/api/v1/search", "/metrics"] {
        let refused = served.ask("DELETE", path, &[], &[]).is(405);
        let allowed = refused.header("allow").unwrap_or_default().replace(", ", ",");
        assert_eq!(allowed, "GET,HEAD", "{path}");
    }
    // Before the server asks for a token.
    let refused = served.ask("GET", "/api/v1/packages/a/1.0.0", &[], &[]).is(405);
    assert_eq!(refused.header("allow"), Some("PUT, PATCH"));
}

#[test]
fn what_is_published_to_a_server_is_got_from_it() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let token = token(&sandbox);
    let package = Package::new("acme/web", "1.0.0")
        .manifest("description: The web server\nkeywords: [http]\n")
        .key("provides", json!(["net.mu.com/v1/Server"]));
    let bytes = archive(&sandbox, &package, "acme/web", "1.0.0");
    let answer = served.put(&token, "acme/web/1.0.0", &bytes).is(201).json();
    served.put(&token, "acme/web/1.0.0", &bytes).is(200);

    sandbox.write("Mu.yaml", "name: acme/shop\ndependencies: [\"acme/web#^1\"]\n");
    sandbox.mu(&["get"]).ok();
    let from_files = sandbox.lock()["packages"][0]["digest"].clone();
    assert_eq!(answer["digest"], from_files);
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was written");
    sandbox.hub_is_at(&served.url());
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["digest"], from_files);

    let found = served.ask("GET", "/api/v1/search?q=HTTP+web", &[], &[]).is(200).json();
    assert_eq!(found["packages"][0]["name"], "acme/web");
    assert_eq!(found["total"], 1);
    let found = served.ask("GET", "/api/v1/search?q=database", &[], &[]).is(200).json();
    assert_eq!(found["packages"], json!([]));
    let capability = served.ask("GET", "/capabilities/net.mu.com/v1/Server.json", &[], &[]).is(200);
    assert_eq!(capability.json()["packages"], json!(["acme/web"]));
    let other = package.file("more.txt", "other content");
    let bytes = archive(&sandbox, &other, "acme/web", "1.0.0");
    let problem = served.put(&token, "acme/web/1.0.0", &bytes).is(409).json();
    assert!(problem["detail"].as_str().is_some_and(|why| why.contains("already published")));
}

#[test]
fn what_may_change_of_a_version_changes() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let token = token(&sandbox);
    for version in ["1.0.0", "1.1.0"] {
        let bytes = simple(&sandbox, "acme/web", version);
        served.put(&token, &format!("acme/web/{version}"), &bytes).is(201);
    }
    let line = |version: &str| -> Value {
        let index = served.ask("GET", "/index/acme/web.jsonl", &[], &[]).is(200).text();
        let mut lines = index.lines().map(serde_json::from_str::<Value>);
        lines
            .find_map(|line| line.ok().filter(|line| line["version"] == version))
            .expect("is there")
    };
    let change = |change: &str| served.patch(&token, "acme/web/1.1.0", change).is(200).json();
    assert_eq!(change(r#"{"yanked": "broken"}"#)["changed"], true);
    assert_eq!(line("1.1.0")["yanked"], "broken");
    assert_eq!(change(r#"{"yanked": "broken"}"#)["changed"], false);
    change(r#"{"yanked": false, "tags": ["stable", "lts"]}"#);
    assert_eq!(line("1.1.0")["yanked"], Value::Null);
    assert_eq!(line("1.1.0")["tags"], json!(["stable", "lts"]));
    served.patch(&token, "acme/web/1.0.0", r#"{"tags": ["lts"]}"#).is(200);
    assert_eq!(line("1.1.0")["tags"], json!(["stable"]));
    change(r#"{"movedTo": "hub.mu.com/acme/site"}"#);
    assert_eq!(line("1.0.0")["movedTo"], "hub.mu.com/acme/site");
    change(r#"{"movedTo": null}"#);
    assert_eq!(line("1.0.0")["movedTo"], Value::Null);

    served.patch(&token, "acme/web/9.0.0", r#"{"yanked": true}"#).is(404);
    for wrong in [r#"{"yanked": 1}"#, r#"{"version": "2.0.0"}"#, "{", "[]", "{}"] {
        served.patch(&token, "acme/web/1.0.0", wrong).is(400);
    }
    served.patch(&token, "acme/web/9.0.0", r#"{"movedTo": "acme/site"}"#).is(404);
    let before = served.ask("GET", "/index/acme/web.jsonl", &[], &[]).text();
    let long = json!({ "movedTo": "a".repeat(600) }).to_string();
    let reason = json!({ "yanked": "a".repeat(600) }).to_string();
    for (wrong, expected) in [
        (r#"{"tags": ["../x\u0007"]}"#, "expected letters"),
        (r#"{"movedTo": "https://hub.mu.com/acme/site"}"#, "expected a package"),
        (r#"{"movedTo": "acme/site#1.0.0"}"#, "expected a package"),
        (r#"{"movedTo": "../../etc\u001b[31m"}"#, "expected a package"),
        (r#"{"movedTo": ""}"#, "expected a package"),
        (r#"{"movedTo": "acme/web"}"#, "the package itself"),
        (&long, "longer than 512"),
        (r#"{"yanked": "two\nlines"}"#, "more than one line"),
        (&reason, "longer than 512"),
        // All or nothing: the valid part does not happen either.
        (r#"{"yanked": "fine", "tags": ["fine"], "movedTo": "not fine"}"#, "expected a package"),
    ] {
        let problem = served.patch(&token, "acme/web/1.0.0", wrong).is(422);
        assert_eq!(problem.header("content-type"), Some("application/problem+json"));
        let detail = problem.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains(expected), "{wrong}: {detail}");
    }
    assert_eq!(served.ask("GET", "/index/acme/web.jsonl", &[], &[]).text(), before);
}

#[test]
fn changes_need_a_token_that_allows_them() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let bytes = simple(&sandbox, "acme/web", "1.0.0");
    let put =
        |headers: &[&str]| served.ask("PUT", "/api/v1/packages/acme/web/1.0.0", headers, &bytes);
    let missing = put(&[]).is(401);
    assert_eq!(missing.header("www-authenticate"), Some("Bearer"));
    put(&["authorization: Bearer mu_wrong"]).is(401);
    put(&["authorization: Basic YTpi"]).is(401);

    let other = token_for(&sandbox, "other", &["--namespace", "acm"]);
    let problem = served.put(&other, "acme/web/1.0.0", &bytes).is(403).json();
    insta::assert_snapshot!(problem["detail"].as_str().unwrap_or_default(), @"the token `other` is for `acm`, not `acme`; request one: `mu hub token add PLACE NAME --namespace acme`");
    let yanks = token_for(&sandbox, "yanks", &["--namespace", "acme", "--can", "yank"]);
    served.put(&yanks, "acme/web/1.0.0", &bytes).is(403);
    let publishes = token_for(&sandbox, "ci", &["--namespace", "acme/web", "--can", "publish"]);
    served.put(&publishes, "acme/web/1.0.0", &bytes).is(201);
    served.patch(&publishes, "acme/web/1.0.0", r#"{"yanked": true}"#).is(403);
    served.patch(&yanks, "acme/web/1.0.0", r#"{"tags": ["x"]}"#).is(403);
    served.patch(&yanks, "acme/web/1.0.0", r#"{"yanked": true}"#).is(200);
    let index = || served.ask("GET", "/index/acme/web.jsonl", &[], &[]).is(200).text();
    assert!(index().contains(r#""yanked":"no reason was given""#), "{}", index());
    served.patch(&yanks, "acme/web/1.0.0", r#"{"yanked": "leaks"}"#).is(200);
    served.patch(&yanks, "acme/web/1.0.0", r#"{"yanked": true}"#).is(200);
    assert!(index().contains(r#""yanked":"leaks""#), "{}", index());

    sandbox.mu(&["hub", "token", "revoke", "../srv", "ci"]).ok();
    served.put(&publishes, "acme/web/1.0.0", &bytes).is(401);
    sandbox.mu(&["hub", "token", "revoke", "../srv", "ci", "--json"]).fails_with("not-found");

    let ends = token_for(&sandbox, "ends", &["--namespace", "*", "--expires", "90 days"]);
    served.put(&ends, "acme/web/1.0.0", &bytes).is(200);
    let file = sandbox.path("srv/private/tokens.json");
    let text = fs::read_to_string(&file).expect("is there");
    assert!(!text.contains(&ends), "only hashes are kept");
    let mut tokens: Value = serde_json::from_str(&text).expect("is JSON");
    for token in tokens["tokens"].as_array_mut().expect("is a list") {
        if token["name"] == "ends" {
            token["expires"] = "2020-01-01T00:00:00Z".into();
        }
    }
    fs::write(&file, tokens.to_string()).expect("is ours");
    served.put(&ends, "acme/web/1.0.0", &bytes).is(401);
}

#[test]
fn why_a_token_is_refused_is_told() {
    let mut sandbox = sandbox();
    sandbox.asks_for(&[]);
    let served = Served::start(&sandbox, "../srv", &[]);
    let publish = ["publish", "--to", &served.url()];
    let only_yank = token_for(&sandbox, "ci", &["--namespace", "acme", "--can", "yank"]);
    for (token, expected) in [
        ("mu_unknown", "this hub does not know the token"),
        (
            only_yank.as_str(),
            "the token `ci` may yank, but not publish `acme/web`; request one: \
             `mu hub token add PLACE NAME --namespace acme --can publish`",
        ),
    ] {
        sandbox.set_token(&served.address.to_string(), token);
        let run =
            sandbox.mu(&publish).fails().says(&[expected, "the token in `MU_TOKEN_127_0_0_1___"]);
        run.does_not_say(&[token]);
        sandbox.mu(&[&publish[..], &["--json"]].concat()).fails_with("auth");
    }
}

#[test]
fn what_a_run_has_published_before_it_failed_is_told() {
    let mut sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    for (name, dependencies) in [("web", "[acme/log#^1]"), ("log", "[]")] {
        let text = format!("name: acme/{name}\nversion: 1.0.0\ndependencies: {dependencies}\n");
        sandbox.write(&format!("acme/{name}/Mu.yaml"), &text);
    }
    let only = token_for(&sandbox, "ci", &["--namespace", "acme/log", "--can", "publish"]);
    sandbox.set_token(&served.address.to_string(), &only);
    let publish = ["publish", "--all", "--to", &served.url()];
    let run = sandbox.mu(&publish).fails();
    run.says(&["the token `ci` is for `acme/log`", "this run has published `acme/log` 1.0.0"]);
    served.ask("GET", "/index/acme/log.jsonl", &[], &[]).is(200);
    sandbox.set_token(&served.address.to_string(), &token(&sandbox));
    sandbox.mu(&publish).ok().says(&["acme/log 1.0.0 is already", "published acme/web 1.0.0"]);
}

#[test]
fn a_refusal_arrives_while_the_archive_is_on_its_way() {
    let mut sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.asks_for(&[]);
    // More than sockets hold.
    fs::write(sandbox.path("work/blob"), incompressible(6 << 20)).expect("is ours");
    sandbox.set_token(&served.address.to_string(), "mu_unknown");
    for _ in 0..8 {
        let run = sandbox.mu(&["publish", "--to", &served.url()]).fails();
        run.says(&["this hub does not know the token"]).does_not_say(&["trying again"]);
    }
    // Whatever it is refused for.
    let served = Served::start(&sandbox, "../srv", &["--largest-archive", "1"]);
    let token = token(&sandbox);
    sandbox.set_token(&served.address.to_string(), &token);
    for _ in 0..8 {
        let run = sandbox.mu(&["publish", "--to", &served.url()]).fails();
        run.says(&["the body is larger than the 1048576 bytes that are accepted"])
            .does_not_say(&["trying again"]);
    }
}

/// Bytes that do not shrink when they are compressed.
pub(crate) fn incompressible(count: usize) -> Vec<u8> {
    let mut seed = 1_u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed.to_be_bytes()[0]
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn tokens_are_listed_without_what_they_are() {
    let sandbox = sandbox();
    let token = token_for(&sandbox, "ada", &["--namespace", "acme", "--can", "yank"]);
    let list = sandbox.mu(&["hub", "token", "list", "../srv"]).ok();
    assert!(!list.stdout.contains(&token[3..]));
    let list = sandbox.mu(&["hub", "token", "list", "../srv", "--json"]).ok().json();
    let listed = &list["tokens"][0];
    assert_eq!(listed["name"], "ada");
    assert_eq!(listed["namespaces"], json!(["acme"]));
    assert_eq!(listed["can"], json!(["yank"]));
    assert_eq!(listed["expires"], Value::Null);
    for wrong in [
        &["ada", "--namespace", "acme"][..],
        &["x", "--namespace", "../x"],
        &["x", "--namespace", "a", "--expires", "2020-01-01"],
        &["x", "--namespace", "a", "--expires", "soon"],
        &["", "--namespace", "a"],
    ] {
        let run = sandbox.mu(&[&["hub", "token", "add", "../srv"][..], wrong].concat());
        assert_ne!(run.status, 0, "{}", run.shown());
    }
}

#[test]
fn archives_that_are_not_what_they_should_be_are_refused() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &["--largest-archive", "1"]);
    let token = token(&sandbox);
    let bytes = simple(&sandbox, "acme/web", "1.0.0");
    let problem = served.put(&token, "acme/web/2.0.0", &bytes).is(422).json();
    insta::assert_snapshot!(problem["detail"].as_str().unwrap_or_default(), @"acme/web 2.0.0 is refused: its manifest is for acme/web 1.0.0");
    served.put(&token, "acme/site/1.0.0", &bytes).is(422);
    for (dependency, expected) in [("../lib", "`../lib`"), ("file:///srv/lib", "`file:///srv/lib`")]
    {
        let package = Package::new("acme/needy", "1.0.0").needs(dependency);
        let needy = archive(&sandbox, &package, "acme/needy", "1.0.0");
        let problem = served.put(&token, "acme/needy/1.0.0", &needy).is(422).json();
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(expected) && detail.contains("is a folder"), "{detail}");
    }
    let package = Package::new("acme/two", "1.0.0").file("Mu.json", "{}");
    let two = archive(&sandbox, &package, "acme/two", "1.0.0");
    let problem = served.put(&token, "acme/two/1.0.0", &two).is(422).json();
    insta::assert_snapshot!(problem["detail"].as_str().unwrap_or_default(), @"acme/two 1.0.0 is refused: `the archive` contains both `Mu.yaml` and `Mu.json`: remove one of them");
    served.put(&token, "acme/web/1.0.0", b"garbage").is(422);
    served.put(&token, "acme/web/1.0.0", &[]).is(422);
    served.put(&token, "acme/web/1.0.0", &bytes[..bytes.len() / 2]).is(422);
    for path in
        ["acme/../x/1.0.0", "acme/.git/1.0.0", "acme/web.jsonl/1.0.0", "acme%2f..%2fx/1.0.0"]
    {
        let answer = served.put(&token, path, &bytes);
        assert!([403, 404, 422].contains(&answer.status), "{path}: {}", answer.text());
    }
    let large = vec![0; (1 << 20) + 1];
    served.put(&token, "acme/web/1.0.0", &large).is(413);
    let bearer = format!("authorization: Bearer {token}");
    let mut chunked = format!("{:x}\r\n", large.len()).into_bytes();
    chunked.extend_from_slice(&large);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let path = "/api/v1/packages/acme/web/1.0.0";
    served.ask("PUT", path, &[&bearer, "transfer-encoding: chunked"], &chunked).is(413);
    served.ask("GET", "/index/acme/web.jsonl", &[], &[]).is(404);
    served.put(&token, "acme/web/1.0.0", &bytes).is(201);
    sandbox.mu(&["hub", "check", "../srv"]).ok();
}

#[test]
fn who_is_refused_is_told_why_however_large_the_archive_is() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let token = token(&sandbox);
    let much = vec![0; 40 << 20];
    served.put("wrong", "acme/web/1.0.0", &much).is(401);
    served.put(&token, "other/web/1.0.0", &much).is(403);
}

#[test]
fn hostile_archives_are_refused() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let token = token(&sandbox);
    for (what, bytes) in crate::hostile::archives() {
        let answer = served.put(&token, "acme/web/1.0.0", &bytes);
        let text = answer.text();
        assert!(answer.status == 422 && !text.contains("has no Mu.yaml"), "{what}: {text}");
    }
    served.ask("GET", "/index/acme/web.jsonl", &[], &[]).is(404);
    served.ask("GET", "/healthz", &[], &[]).is(200);
}

#[test]
fn who_asks_for_too_much_has_to_wait() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &["--changes-per-minute", "2"]);
    for _ in 0..2 {
        served.put("mu_guess", "acme/web/1.0.0", &[]).is(401);
    }
    let limited = served.put("mu_guess", "acme/web/1.0.0", &[]).is(429);
    let wait: u64 =
        limited.header("retry-after").and_then(|wait| wait.parse().ok()).expect("a time");
    assert!((1..=31).contains(&wait), "{wait}");
    served.ask("GET", "/hub.json", &[], &[]).is(200);
    let served = Served::start(&sandbox, "../srv", &["--requests-per-second", "1"]);
    let statuses: Vec<u16> =
        (0..20).map(|_| served.ask("GET", "/hub.json", &[], &[]).status).collect();
    assert_eq!(statuses[0], 200);
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn clients_that_dawdle_hold_up_nobody_and_are_cut_off() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    // Silence; too few bytes to recognize the protocol; less than a head; a head, and then nothing more.
    let beginnings: [&[u8]; 5] = [
        b"",
        b"PRI * HT",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /hub.json HTTP/1.1\r\nx: ",
        b"GET /hub.json HTTP/1.1\r\nhost: x\r\n\r\n",
    ];
    let slow: Vec<TcpStream> = (0..200)
        .map(|number| {
            let mut stream = TcpStream::connect(served.address).expect("the server listens");
            let patience = Some(std::time::Duration::from_secs(60));
            stream.set_read_timeout(patience).expect("can be set");
            stream.write_all(beginnings[number % 5]).expect("the server reads");
            stream
        })
        .collect();
    served.ask("GET", "/hub.json", &[], &[]).is(200);
    let bytes = simple(&sandbox, "acme/web", "1.0.0");
    served.put(&token(&sandbox), "acme/web/1.0.0", &bytes).is(201);
    // The server closes each of them after its limit.
    for (number, mut stream) in slow.into_iter().enumerate() {
        let ended = stream.read_to_end(&mut Vec::new());
        let beginning = String::from_utf8_lossy(beginnings[number % 5]);
        ended.unwrap_or_else(|error| panic!("{beginning:?} is not cut off: {error}"));
    }
}

#[test]
fn one_address_cannot_have_every_connection() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let connect = || TcpStream::connect(served.address).expect("the server listens");
    let kept: Vec<TcpStream> = (0..512).map(|_| connect()).collect();
    // The one too many is closed without an answer.
    let mut one_more = connect();
    let _ = one_more.write_all(b"GET /hub.json HTTP/1.1\r\nhost: x\r\n\r\n");
    let mut answer = Vec::new();
    let _ = one_more.read_to_end(&mut answer);
    assert_eq!(String::from_utf8_lossy(&answer), "");
    drop(kept);
    // Those that are gone make room as soon as the server sees it.
    while served.try_ask("GET", "/hub.json", &[], &[]).is_err() {}
}

#[test]
fn the_server_says_how_it_is_and_what_it_did() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let token = token(&sandbox);
    let bytes = simple(&sandbox, "acme/web", "1.0.0");
    served.put(&token, "acme/web/1.0.0", &bytes).is(201);
    served.put("mu_wrong", "acme/web/1.0.0", &bytes).is(401);
    assert_eq!(served.ask("GET", "/healthz", &[], &[]).is(200).text(), "ok\n");
    let metrics = served.ask("GET", "/metrics", &[], &[]).is(200).text();
    for line in [
        "mu_hub_requests_total{status=\"2xx\"} 2",
        "mu_hub_requests_total{status=\"4xx\"} 1",
        "mu_hub_published_total 1",
        "mu_hub_unauthorized_total 1",
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line} is not in\n{metrics}");
    }
    let (status, log) = served.end();
    assert_eq!(status, Some(0), "a server that is asked to end has not failed");
    let lines: Vec<Value> =
        log.iter().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["method"], "PUT");
    assert_eq!(lines[0]["path"], "/api/v1/packages/acme/web/1.0.0");
    assert_eq!(lines[0]["status"], 201);
    assert_eq!(lines[0]["token"], "ada");
    assert_eq!(lines[1]["status"], 401);
    assert!(!log.concat().contains(&token));
}

#[test]
fn twenty_publish_at_once() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &["--changes-per-minute", "1000"]);
    let token = token(&sandbox);
    let packages: Vec<(String, Vec<u8>)> = (0..20)
        .flat_map(|number| {
            let of_one = ("acme/one".to_owned(), format!("1.{number}.0"));
            let of_many = (format!("acme/many-{number}"), "1.0.0".to_owned());
            [of_one, of_many]
        })
        .map(|(name, version)| (format!("{name}/{version}"), simple(&sandbox, &name, &version)))
        .collect();
    std::thread::scope(|scope| {
        for (package, bytes) in &packages {
            let (served, token) = (&served, &token);
            scope.spawn(move || served.put(token, package, bytes).is(201));
        }
    });
    let index = served.ask("GET", "/index/acme/one.jsonl", &[], &[]).is(200).text();
    let versions: std::collections::BTreeSet<String> = index
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("is whole")["version"].to_string())
        .collect();
    assert_eq!((index.lines().count(), versions.len()), (20, 20));
    let found = served.ask("GET", "/api/v1/search?q=many", &[], &[]).is(200).json();
    assert_eq!(found["total"], 20);
    let checked = sandbox.mu(&["hub", "check", "../srv", "--json"]).ok().json();
    assert_eq!((&checked["packages"], &checked["versions"]), (&json!(21), &json!(40)));
    assert_eq!(checked["findings"], json!([]));
}

#[test]
fn the_catalog_of_a_large_hub_is_written_beside_the_changes() {
    let sandbox = sandbox();
    for number in 0..1_200 {
        let name = format!("large/n{number}");
        let line = json!({ "name": name, "version": "1.0.0", "description": "x".repeat(1_000) });
        crate::support::write(
            &sandbox.path("srv/index"),
            &format!("{name}.jsonl"),
            format!("{line}\n"),
        );
    }
    // Their archives are missing; the catalog is made all the same.
    sandbox.mu(&["hub", "check", "../srv", "--repair"]).fails();
    let catalog = || fs::read_to_string(sandbox.path("srv/catalog.jsonl")).expect("is there");
    assert_eq!(catalog().lines().count(), 1_200);
    let served = Served::start(&sandbox, "../srv", &["--changes-per-minute", "1000"]);
    let token = token(&sandbox);
    // After five changes it is due, and some changes later it is there.
    let is_there = (0..50).any(|patch| {
        let package = format!("acme/lib/1.0.{patch}");
        let bytes = simple(&sandbox, "acme/lib", &format!("1.0.{patch}"));
        served.put(&token, &package, &bytes).is(201);
        catalog().contains("acme/lib")
    });
    assert!(is_there, "nobody wrote the catalog");
}

#[test]
fn a_server_that_ends_at_any_change_leaves_no_half_version() {
    let sandbox = sandbox();
    let token = token(&sandbox);
    let (mut sent, mut answered) = (Vec::new(), Vec::new());
    for number in 1.. {
        let version = format!("1.{number}.0");
        let bytes = simple(&sandbox, "acme/web", &version);
        let mut command = Served::command(&sandbox, "../srv", &[]);
        command.env("MU_TEST_END_AT_CHANGE", number.to_string());
        let mut is_done = false;
        // It may end while it starts.
        if let Ok(served) = Served::try_start(command) {
            let path = format!("/api/v1/packages/acme/web/{version}");
            let bearer = format!("authorization: Bearer {token}");
            let answer = served.try_ask("PUT", &path, &[&bearer], &bytes);
            if answer.is_ok_and(|answer| answer.is(201).status == 201) {
                answered.push(version.clone());
            }
            is_done = served.end().0 == Some(0);
        }
        sent.push((version, bytes));
        sandbox.mu(&["hub", "check", "../srv"]).ok();
        if is_done {
            break;
        }
    }
    assert!(sent.len() > answered.len() + 5, "{} of {}", answered.len(), sent.len());
    every_answer_holds(&sandbox, &token, &sent, &answered);
}

/// Repairs the hub, and checks that every acknowledged version is there, and that everything sent can be
/// published again.
fn every_answer_holds(
    sandbox: &Sandbox,
    token: &str,
    sent: &[(String, Vec<u8>)],
    answered: &[String],
) {
    sandbox.mu(&["hub", "check", "../srv", "--repair"]).ok();
    let served = Served::start(sandbox, "../srv", &[]);
    let index = served.ask("GET", "/index/acme/web.jsonl", &[], &[]);
    for version in answered {
        let line = format!("\"version\":\"{version}\"");
        assert!(index.text().contains(&line), "{version} was acknowledged and is lost");
    }
    for (version, bytes) in sent {
        let status = served.put(token, &format!("acme/web/{version}"), bytes).status;
        assert!([200, 201].contains(&status), "{version}: {status}");
    }
    let checked = sandbox.mu(&["hub", "check", "../srv", "--json"]).ok().json();
    assert_eq!(checked["versions"], sent.len());
}

#[test]
fn a_server_that_is_killed_while_publishing_leaves_no_half_version() {
    let sandbox = sandbox();
    let token = token(&sandbox);
    let archives = ["1.0.0", "1.1.0"]
        .map(|version| (version.to_owned(), simple(&sandbox, "acme/web", version)));
    let served = Served::start(&sandbox, "../srv", &[]);
    let begin = Instant::now();
    served.put(&token, "acme/web/1.0.0", &archives[0].1).is(201);
    let whole = begin.elapsed();
    let mut answered = vec!["1.0.0".to_owned()];
    std::thread::scope(|scope| {
        let (send, answer) = channel();
        let address = served.address;
        let (bearer, bytes) = (format!("authorization: Bearer {token}"), &archives[1].1);
        scope.spawn(move || {
            let put = Served::try_ask_at(
                address,
                "PUT",
                "/api/v1/packages/acme/web/1.1.0",
                &[&bearer],
                bytes,
            );
            // The other side may have stopped waiting.
            let _ = send.send(put.is_ok_and(|answer| answer.status == 201));
        });
        // On a fast machine, it may have finished before.
        let mut is_answered = answer.recv_timeout(whole / 2).unwrap_or(false);
        served.kill();
        is_answered |= answer.recv().unwrap_or(false);
        answered.extend(is_answered.then(|| "1.1.0".to_owned()));
    });
    sandbox.mu(&["hub", "check", "../srv"]).ok();
    every_answer_holds(&sandbox, &token, &archives, &answered);
}

#[test]
fn who_announces_much_and_sends_nothing_holds_up_no_other_token() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let slow = token_for(&sandbox, "slow", &["--namespace", "slow"]);
    let dawdling: Vec<TcpStream> = (0..6)
        .map(|number| {
            let head = format!(
                "PUT /api/v1/packages/slow/p{number}/1.0.0 HTTP/1.1\r\nhost: x\r\n\
                 authorization: Bearer {slow}\r\ncontent-length: {}\r\n\r\n\x1f",
                256 << 20
            );
            let mut stream = TcpStream::connect(served.address).expect("the server listens");
            stream.write_all(head.as_bytes()).expect("the server reads");
            stream
        })
        .collect();
    let open = || {
        let metrics = served.ask("GET", "/metrics", &[], &[]).is(200).text();
        let line = metrics.lines().find(|line| line.starts_with("mu_hub_requests_open "));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u32>().ok()).expect("is counted")
    };
    while open() < 7 {}
    let bytes = simple(&sandbox, "acme/web", "1.0.0");
    served.put(&token(&sandbox), "acme/web/1.0.0", &bytes).is(201);
    // All of them are still waited for.
    for mut stream in dawdling {
        stream.set_nonblocking(true).expect("can be set");
        let error = stream.read(&mut [0]).expect_err("nothing was answered");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[test]
fn what_says_too_much_is_refused_with_the_key_the_size_and_the_limit() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let token = token(&sandbox);
    let long = format!("description: {}\n", "long ".repeat(180 << 10));
    let package = Package::new("acme/long", "1.0.0").manifest(&long);
    let bytes = archive(&sandbox, &package, "acme/long", "1.0.0");
    let problem = served.put(&token, "acme/long/1.0.0", &bytes).is(422).json();
    insta::assert_snapshot!(problem["detail"].as_str().unwrap_or_default(), @"acme/long 1.0.0 is refused: `description` is 921599 bytes long, and at most 4096 are allowed");
    let bytes = simple(&sandbox, "acme/web", "1.0.0");
    served.put(&token, "acme/web/1.0.0", &bytes).is(201);
    let tags: Vec<String> = (0..5_000).map(|number| format!("t{number}")).collect();
    let change = json!({ "tags": tags }).to_string();
    let problem = served.patch(&token, "acme/web/1.0.0", &change).is(422).json();
    insta::assert_snapshot!(problem["detail"].as_str().unwrap_or_default(), @"the change of acme/web 1.0.0 is refused: it would have 5000 tags, and at most 100 are allowed");
}

#[cfg(unix)]
#[test]
fn nothing_is_served_through_a_link() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let token = token(&sandbox);
    let bytes = simple(&sandbox, "acme/web", "1.0.0");
    served.put(&token, "acme/web/1.0.0", &bytes).is(201);
    fs::write(sandbox.path("secret"), "secret").expect("is ours");
    for link in ["srv/index/acme/secret.jsonl", "srv/packs/acme/secret.tgz"] {
        std::os::unix::fs::symlink(sandbox.path("secret"), sandbox.path(link)).expect("is ours");
    }
    let inside = sandbox.path("srv/index/acme/tokens.jsonl");
    std::os::unix::fs::symlink("../../private/tokens.json", inside).expect("is ours");
    std::os::unix::fs::symlink(sandbox.path("srv"), sandbox.path("srv/log/all")).expect("is ours");
    for path in [
        "/index/acme/secret.jsonl",
        "/packs/acme/secret.tgz",
        "/index/acme/tokens.jsonl",
        "/log/all/private/tokens.json",
        "/packages/acme/secret",
    ] {
        for method in ["GET", "HEAD"] {
            let answer = served.ask(method, path, &[], &[]);
            assert!(answer.status >= 400, "{path}: {}", answer.text());
        }
    }
    served.ask("GET", "/index/acme/web.jsonl", &[], &[]).is(200);
    let (_, log) = served.end();
    assert!(log.iter().any(|line| line.contains("it is a link")), "{log:#?}");
}

#[cfg(unix)]
#[test]
fn what_is_nobody_elses_business_nobody_else_can_open() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = sandbox();
    fs::set_permissions(sandbox.path("srv"), fs::Permissions::from_mode(0o755)).expect("is ours");
    token(&sandbox);
    let mode = |path: &str| {
        fs::metadata(sandbox.path(path)).expect("is there").permissions().mode() & 0o777
    };
    assert_eq!(mode("srv/private"), 0o700);
    assert_eq!(mode("srv/private/tokens.json"), 0o600);
    assert_eq!(mode("srv/hub.lock"), 0o600);
    assert_eq!(mode("srv/hub.json"), 0o644 & !umask());

    fn umask() -> u32 {
        let folder = tempfile::tempdir().expect("there is room");
        fs::write(folder.path().join("x"), "").expect("is ours");
        let mode = fs::metadata(folder.path().join("x")).expect("is there").permissions().mode();
        0o666 & !mode
    }
}

#[test]
fn an_archive_without_an_early_manifest_is_refused_before_it_is_unpacked() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &["--most-files", "1200"]);
    let token = token(&sandbox);
    let refused = |files: usize, more: &str| {
        let mut all: Vec<_> = (0..files).map(|n| (format!("A{n:06}"), ('f', Vec::new()))).collect();
        all.push((more.to_owned(), ('f', b"name: acme/web\nversion: 1.0.0\n".to_vec())));
        let archive = mu_testing::tar_gz(all);
        let problem = served.put(&token, "acme/web/1.0.0", &archive).is(422).json();
        problem["detail"].as_str().unwrap_or_default().to_owned()
    };
    let late = "none of the first 1000 entries of its archive is its Mu.yaml";
    assert!(refused(30_000, "other").contains(late));
    assert!(refused(1_100, "Mu.yaml").contains(late));
    // A short one is read as before.
    assert!(refused(10, "other").contains("it has no Mu.yaml"));
    // And there is a limit for all of them.
    let early: Vec<_> = (0..1_300).map(|n| (format!("x{n}"), ('f', Vec::new()))).collect();
    let manifest = ("Mu.yaml".to_owned(), ('f', b"name: acme/web\nversion: 1.0.0\n".to_vec()));
    let many = mu_testing::tar_gz([manifest].into_iter().chain(early));
    let problem = served.put(&token, "acme/web/1.0.0", &many).is(422).json();
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("1200"), "{detail}");
}

#[test]
fn a_manifest_behind_a_thousand_files_is_packed_before_them() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, "../srv", &[]);
    let token = token(&sandbox);
    sandbox.write("pkg/Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    for number in 0..1_100 {
        sandbox.write(&format!("pkg/Docs/{number}"), "x");
    }
    sandbox.mu_in("work/pkg", &["pack", "--output", "web.tgz"]).ok();
    let archive = fs::read(sandbox.path("work/pkg/web.tgz")).expect("was packed");
    served.put(&token, "acme/web/1.0.0", &archive).is(201);
}
