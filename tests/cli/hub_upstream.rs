//! `mu hub serve --upstream`: what a hub has not comes from another one, checked and kept, and nothing of its own ever does.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use mu_testing::http::{Reply, Seen, TestServer};
use serde_json::{Value, json};

use crate::support::{Hub, Package, Sandbox, Served, tree};

/// A hub of its own in `own`, and the upstream hub in `hub`; both with their logs.
fn world(own: &[Package], upstream: &[Package]) -> Sandbox {
    let sandbox = Sandbox::new();
    for (folder, packages) in [("own", own), ("hub", upstream)] {
        let hub = Hub::new(&sandbox.path(folder));
        packages.iter().for_each(|package| drop(hub.publish(package)));
        sandbox.mu(&["hub", "check", &format!("../{folder}"), "--repair"]).ok();
    }
    sandbox
}

/// The hub in `own`, in front of an upstream hub.
fn serve(sandbox: &Sandbox, upstream: &str, more: &[&str]) -> Served {
    Served::start(sandbox, "../own", &[&["--upstream", upstream], more].concat())
}

/// Removes what a client has, so that it asks for everything again.
fn forget(sandbox: &Sandbox) {
    for path in ["cache", "work/.mu/packs", "work/Mu.lock"] {
        let path = sandbox.path(path);
        if path.is_dir() {
            fs::remove_dir_all(path).expect("is ours");
        } else if path.exists() {
            fs::remove_file(path).expect("is ours");
        }
    }
}

/// The files that were kept.
fn kept(sandbox: &Sandbox) -> Vec<String> {
    let folder = sandbox.path("own/upstream");
    if folder.exists() { tree(&folder).into_keys().collect() } else { Vec::new() }
}

/// The answer of an ordinary web server.
fn file(folder: &Path, request: &Seen) -> Reply {
    match fs::read(folder.join(request.path.trim_start_matches('/'))) {
        Ok(bytes) => Reply::ranged(request, &bytes),
        Err(_) => Reply::status(404),
    }
}

#[test]
fn what_a_hub_has_not_comes_from_upstream_and_stays() {
    let sandbox = world(
        &[Package::new("acme/web", "1.0.0").needs("lib/log#^1")],
        &[Package::new("lib/log", "1.0.0"), Package::new("lib/other", "1.0.0")],
    );
    let upstream = Served::start(&sandbox, "../hub", &[]);
    let served = serve(&sandbox, &upstream.url(), &["--upstream-max-age", "0"]);
    sandbox.hub_is_at(&served.url());
    sandbox.mu(&["get", "acme/web"]).ok();
    let packages = ["hub.mu.com/acme/web 1.0.0", "hub.mu.com/lib/log 1.0.0"];
    assert_eq!(sandbox.locked(), packages);
    assert_eq!(kept(&sandbox), ["index/lib/log.jsonl", "packs/lib/log/log-1.0.0.tgz"]);
    let original = fs::read(sandbox.hub().archive("lib/log", "1.0.0")).expect("is there");
    let copy = fs::read(sandbox.path("own/upstream/packs/lib/log/log-1.0.0.tgz"));
    assert_eq!(copy.expect("is kept"), original);
    // A new version is there at once, and a part of an archive is answered as of the hub's own.
    sandbox
        .place("new", &Package::new("lib/log", "1.1.0").manifest("license: MIT\ndescription: d\n"));
    crate::support::write(&sandbox.path("new"), ".mu/workspace.yaml", "");
    sandbox.mu_in("new", &["publish", "--to", "../hub"]).ok();
    forget(&sandbox);
    sandbox.mu(&["get", "acme/web"]).ok();
    assert_eq!(sandbox.locked()[1], "hub.mu.com/lib/log 1.1.0");
    let part =
        served.ask("GET", "/packs/lib/log/log-1.0.0.tgz", &["range: bytes=0-9"], &[]).is(206);
    assert_eq!(part.body, original[..10]);
    let index = served.ask("GET", "/index/lib/log.jsonl", &[], &[]).is(200);
    let known = format!("if-none-match: {}", index.header("etag").expect("has one"));
    served.ask("GET", "/index/lib/log.jsonl", &[&known], &[]).is(304);
    // What speaks only of the hub's own files is not told.
    let told = served.ask("GET", "/hub.json", &[], &[]).is(200).json();
    assert_eq!((&told["generation"], &told["api"]), (&Value::Null, &json!("api/v1/")));
    sandbox.mu(&["hub", "check", "../own"]).ok();

    // Without the upstream hub, what is kept is served, and what is not is a clear answer.
    upstream.kill();
    forget(&sandbox);
    sandbox.mu(&["get", "acme/web"]).ok();
    assert_eq!(sandbox.locked()[1], "hub.mu.com/lib/log 1.1.0");
    served.ask("GET", "/packs/lib/log/log-1.0.0.tgz", &[], &[]).is(200);
    let answer = served.ask("GET", "/index/lib/other.jsonl", &[], &[]).is(502);
    let detail = answer.json()["detail"].as_str().expect("is text").to_owned();
    assert!(detail.starts_with("the upstream hub cannot be reached"), "{detail}");
    let (_, log) = served.end();
    assert!(
        log.iter().any(|line| line.contains("\"error\"") && line.contains("hub.json")),
        "{log:#?}"
    );
}

#[test]
fn what_is_absent_upstream_is_not_asked_for_again_soon() {
    let sandbox = world(&[], &[Package::new("lib/log", "1.0.0")]);
    let folder = sandbox.path("hub");
    let upstream = TestServer::start(move |request, _| file(&folder, request));
    let served = serve(&sandbox, &upstream.url(""), &[]);
    for _ in 0..3 {
        served.ask("GET", "/index/no/such.jsonl", &[], &[]).is(404);
        served.ask("GET", "/packs/no/such/such-1.0.0.tgz", &[], &[]).is(404);
        served.ask("GET", "/index/lib/log.jsonl", &[], &[]).is(200);
        served.ask("GET", "/packs/lib/log/log-1.0.0.tgz", &[], &[]).is(200);
        served.ask("GET", "/signatures/lib/log/log-1.0.0.jsonl", &[], &[]).is(404);
    }
    let asked = upstream.requests();
    let expected = [
        "GET /hub.json",
        "GET /index/no/such.jsonl",
        "GET /index/lib/log.jsonl",
        "GET /packs/lib/log/log-1.0.0.tgz",
        "GET /signatures/lib/log/log-1.0.0.jsonl",
    ];
    assert_eq!(asked, expected);
}

#[test]
fn a_name_of_ones_own_is_never_asked_about() {
    let sandbox = world(
        &[Package::new("acme/web", "1.0.0")],
        &[
            Package::new("acme/web", "9.0.0"),
            Package::new("acme/secret", "9.0.0"),
            Package::new("acme2/x", "1.0.0"),
        ],
    );
    let folder = sandbox.path("hub");
    let upstream = TestServer::start(move |request, _| file(&folder, request));
    let served = serve(&sandbox, &upstream.url(""), &["--own", "acme/secret"]);
    sandbox.hub_is_at(&served.url());
    let versions = sandbox.mu(&["versions", "acme/web", "--json"]).ok();
    assert!(versions.stdout.contains("1.0.0") && !versions.stdout.contains("9.0.0"));
    for path in [
        "/packs/acme/web/web-9.0.0.tgz",
        "/signatures/acme/web/web-9.0.0.jsonl",
        "/index/acme/secret.jsonl",
        "/packs/acme/secret/secret-9.0.0.tgz",
        "/signatures/acme/secret/secret-9.0.0.jsonl",
    ] {
        served.ask("GET", path, &[], &[]).is(404);
    }
    let asked = upstream.requests();
    assert!(asked.iter().all(|request| !request.contains("acme")), "{asked:?}");
    served.ask("GET", "/index/acme2/x.jsonl", &[], &[]).is(200);
    // A name that is published here later is this hub's from then on.
    let index = Hub::new(&sandbox.path("own"));
    served.ask("GET", "/packs/acme2/x/x-1.0.0.tgz", &[], &[]).is(200);
    index.publish(&Package::new("acme2/x", "2.0.0"));
    let lines = served.ask("GET", "/index/acme2/x.jsonl", &[], &[]).is(200).text();
    assert!(lines.contains("2.0.0") && !lines.contains("1.0.0"), "{lines}");
    served.ask("GET", "/packs/acme2/x/x-1.0.0.tgz", &[], &[]).is(404);
    let run = sandbox.mu(&["hub", "serve", "../own", "--upstream", "../hub"]);
    assert_eq!(run.says(&["--upstream ../hub: "]).status, 2);
}

#[test]
fn a_hostile_upstream_is_refused() {
    let archive = "/packs/lib/log/log-1.0.0.tgz";
    let line = |key: &str, value: Value| Package::new("lib/log", "1.0.0").lies(key, value);
    let elsewhere = TestServer::start(|_, _| Reply::body("anything"));
    let other = elsewhere.url("log-1.0.0.tgz");
    // What the upstream hub answers, and what its index says.
    type Answer = Box<dyn Fn(&Seen, Reply) -> Reply + Send + Sync>;
    let as_it_is = || -> Answer { Box::new(|_, reply| reply) };
    let of_archive = |answer: fn(Reply) -> Reply| -> Answer {
        Box::new(move |request, reply| match request.path.ends_with(".tgz") {
            true => answer(reply),
            false => reply,
        })
    };
    let leads = other.clone();
    let redirects: Answer = Box::new(move |request, reply| match request.path.ends_with(".tgz") {
        true => Reply::redirect(&leads),
        false => reply,
    });
    let leads = elsewhere.url("log.jsonl");
    let moves_index: Answer =
        Box::new(move |request, reply| match request.path.ends_with(".jsonl") {
            true => Reply::redirect(&leads),
            false => reply,
        });
    let cases: Vec<(&str, Package, Answer)> = vec![
        ("other bytes", line("x", json!(1)), of_archive(|_| Reply::body("other bytes"))),
        ("too long", line("size", json!(9)), of_archive(|reply| reply)),
        ("endless", line("size", Value::Null), of_archive(|_| Reply::body(vec![7; 3 << 20]))),
        ("cut short", line("x", json!(1)), of_archive(|reply| reply.cut_after(20))),
        ("no digest", line("archive", Value::Null), as_it_is()),
        (
            "another digest",
            line("archive", json!(format!("sha256:{}", "0".repeat(64)))),
            as_it_is(),
        ),
        ("a redirect to another host", line("x", json!(1)), redirects),
        ("a URL on another host", line("urls", json!([other])), as_it_is()),
        ("a place outside", line("urls", json!(["../../../../../etc/passwd"])), as_it_is()),
        ("another package", line("name", json!("lib/other")), as_it_is()),
        ("no line", line("version", json!(7)), as_it_is()),
        ("an index elsewhere", line("x", json!(1)), moves_index),
    ];
    for (what, package, answer) in cases {
        let sandbox = world(&[], &[]);
        let hub = sandbox.hub();
        hub.publish(&package);
        let folder = sandbox.path("hub");
        let upstream = TestServer::start(move |request, _| answer(request, file(&folder, request)));
        let served = serve(&sandbox, &upstream.url(""), &["--largest-archive", "1"]);
        let got = served.ask("GET", archive, &[], &[]);
        let detail = got.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert_eq!(got.status, 502, "{what}: {detail}");
        assert!(detail.contains("upstream"), "{what}: {detail}");
        let archives = kept(&sandbox).into_iter().filter(|path| path.contains(".tgz"));
        assert_eq!(archives.count(), 0, "{what}");
        served.ask("GET", "/healthz", &[], &[]).is(200);
    }
    assert!(elsewhere.requests().is_empty(), "{:?}", elsewhere.requests());
    // Names that lead out of the folder are no names.
    let sandbox = world(&[], &[]);
    let upstream = TestServer::start(|_, _| Reply::body("{\"hub\": 1}"));
    let served = serve(&sandbox, &upstream.url(""), &[]);
    for path in [
        "/index/../../x.jsonl",
        "/index/%2e%2e/x.jsonl",
        "/packs/..%2f..%2fx/x-1.tgz",
        "/packs/a/%2e%2e/%2e%2e/x.tgz",
        "/signatures/../private/tokens.json",
        "/upstream/index/a.jsonl",
    ] {
        served.ask("GET", path, &[], &[]).is(404);
    }
    assert!(upstream.requests().is_empty(), "{:?}", upstream.requests());
    assert!(kept(&sandbox).is_empty());
}

#[test]
fn an_upstream_that_is_silent_is_a_gateway_that_timed_out() {
    let sandbox = world(&[], &[]);
    let upstream = TestServer::start(|_, _| Reply::body("{\"hub\": 1}").silent_after(3));
    let served = serve(&sandbox, &upstream.url(""), &["--upstream-timeout", "1"]);
    let answer = served.ask("GET", "/index/a/b.jsonl", &[], &[]).is(504);
    assert!(answer.text().contains("did not answer in time"), "{}", answer.text());
    // It is left alone for a while.
    let before = upstream.requests().len();
    served.ask("GET", "/index/a/c.jsonl", &[], &[]).is(504);
    assert_eq!(upstream.requests().len(), before);
}

/// Such as one that keeps its archives where its users fetch them faster.
#[test]
fn an_archive_may_be_redirected_to_what_everyone_can_reach_and_nothing_else_may() {
    let mut sandbox = world(&[], &[Package::new("lib/log", "1.0.0")]);
    let folder = sandbox.path("hub");
    let bytes = fs::read(sandbox.hub().archive("lib/log", "1.0.0")).expect("is there");
    let archive = bytes.clone();
    // The proxy stands for all other servers.
    let elsewhere = TestServer::start(move |request, _| match request.path.contains("wrong") {
        true => Reply::body("other bytes"),
        false => Reply::ranged(request, &archive),
    });
    sandbox.set("http_proxy", &elsewhere.url(""));
    let to = Arc::new(Mutex::new("http://cdn.example/log.tgz".to_owned()));
    let leads = Arc::clone(&to);
    let upstream = TestServer::start(move |request, _| {
        let is_index = request.path.ends_with(".jsonl");
        let to = leads.lock().expect("nobody panics").clone();
        match request.path.ends_with(".tgz") || (is_index && to.ends_with("l")) {
            true if request.header("authorization").is_none() => Reply::status(401),
            true => Reply::redirect(to),
            false => file(&folder, request),
        }
    });
    sandbox.set_token(&upstream.host(), "mu_upstream");
    let more = ["--allow-insecure", "--upstream-max-age", "0"];
    let path = "/packs/lib/log/log-1.0.0.tgz";
    let lead = |place: &str| *to.lock().expect("nobody panics") = place.to_owned();
    // Not this machine, not a private network, not another file than an archive, and not other bytes.
    for (place, asked) in [
        ("http://cdn.example/log.jsonl", "/index/lib/log.jsonl"),
        ("http://127.0.0.1:9/log.tgz", path),
        ("http://localhost:9/log.tgz", path),
        ("http://10.1.2.3/log.tgz", path),
        ("http://[fd00::1]/log.tgz", path),
        ("http://169.254.169.254/log.tgz", path),
    ] {
        lead(place);
        let served = serve(&sandbox, &upstream.url(""), &more);
        served.ask("GET", asked, &[], &[]).is(502);
        let seen = elsewhere.requests();
        assert!(seen.is_empty(), "{place}: {seen:?}");
    }
    lead("http://cdn.example/wrong.tgz");
    let served = serve(&sandbox, &upstream.url(""), &more);
    served.ask("GET", path, &[], &[]).is(502);
    assert!(kept(&sandbox).iter().all(|path| !path.ends_with(".tgz")), "{:?}", kept(&sandbox));
    lead("http://cdn.example/log.tgz");
    let served = serve(&sandbox, &upstream.url(""), &more);
    let answer = served.ask("GET", path, &[], &[]).is(200);
    assert!(answer.body == bytes);
    // The upstream hub's token is for it alone.
    assert!(upstream.seen().iter().any(|one| one.header("authorization").is_some()));
    let seen = elsewhere.seen();
    assert!(!seen.is_empty() && seen.iter().all(|one| one.header("authorization").is_none()));
}

#[test]
fn a_limited_reader_sees_of_upstream_what_the_token_reads() {
    let capability = "net.mu.com/v1/Network";
    let provider = |name: &str| Package::new(name, "1.0.0").key("provides", json!([capability]));
    let sandbox = world(
        &[provider("acme/own"), provider("secret/own")],
        &[provider("lib/net"), provider("secret/net"), provider("acme/own")],
    );
    let upstream = Served::start(&sandbox, "../hub", &[]);
    let add = ["hub", "token", "add", "../own"];
    let token = |more: &[&str]| {
        let text = sandbox.mu(&[&add[..], more].concat()).ok().stdout;
        format!("authorization: Bearer {}", text.trim())
    };
    let limited = token(&["part", "--can", "read", "--read", "acme", "--read", "lib"]);
    let whole = token(&["all", "--can", "read"]);
    let none = token(&["none", "--can", "read", "--read", "other"]);
    let served = serve(&sandbox, &upstream.url(), &["--private"]);
    let path = format!("/capabilities/{capability}.json");
    let list =
        |token: &str| served.ask("GET", &path, &[token], &[]).is(200).json()["packages"].clone();
    assert_eq!(list(&limited), json!(["acme/own", "lib/net"]));
    assert_eq!(list(&whole), json!(["acme/own", "secret/own", "lib/net", "secret/net"]));
    served.ask("GET", &path, &[&none], &[]).is(404);
    served.ask("GET", "/index/lib/net.jsonl", &[&limited], &[]).is(200);
    served.ask("GET", "/index/secret/net.jsonl", &[&limited], &[]).is(404);
}

#[test]
fn what_is_not_listed_is_said_where_lists_are_shown() {
    let sandbox = world(&[Package::new("acme/web", "1.0.0")], &[Package::new("lib/log", "1.0.0")]);
    let upstream = Served::start(&sandbox, "../hub", &[]);
    let served = serve(&sandbox, &upstream.url(), &[]);
    let told = served.ask("GET", "/hub.json", &[], &[]).is(200).json();
    assert_eq!(told["upstream"], json!(upstream.url()));
    for page in ["/", "/search?q=log", "/search?q=web"] {
        let text = served.ask("GET", page, &["accept: text/html"], &[]).is(200).text();
        assert!(
            text.contains(&upstream.url()) && text.contains("Only packages of this hub"),
            "{text}"
        );
    }
    sandbox.hub_is_at(&served.url());
    let says = format!("brings others from `{}`", upstream.url());
    sandbox.mu(&["search", "web"]).ok().says(&["acme/web", "finds only its own packages", &says]);
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    let mirror = ["mirror", "--all", "--from", &served.url(), "--to", "../mirror"];
    sandbox.mu(&mirror).ok().says(&["acme/web", "lists only its own packages", &says]);
    // Without one, there is nothing to say.
    let text = upstream.ask("GET", "/", &["accept: text/html"], &[]).is(200).text();
    assert!(!text.contains("Only packages of this hub"), "{text}");
    sandbox.hub_is_at(&upstream.url());
    sandbox.mu(&["search", "log"]).ok().does_not_say(&["own packages"]);
}
