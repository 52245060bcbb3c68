//! What users see while something takes long, in a terminal and without one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::support::{Package, Sandbox, Terminal};
use mu_testing::git::{HttpServer, Origin};
use mu_testing::http::{Reply, Seen, TestServer};

/// Serves the hub of a sandbox, except what `respond` answers differently.
fn serve(
    sandbox: &Sandbox,
    respond: impl Fn(&Seen, &[u8]) -> Option<Reply> + Send + Sync + 'static,
) -> TestServer {
    let hub = sandbox.path("hub");
    let server = TestServer::start(move |request, _| {
        let Ok(body) = std::fs::read(hub.join(request.path.trim_start_matches('/'))) else {
            return Reply::status(404);
        };
        respond(request, &body).unwrap_or_else(|| Reply::body(body))
    });
    sandbox.hub_is_at(&server.url(""));
    server
}

/// Content that does not compress well.
fn noise(length: usize) -> String {
    let mut number = 1_u64;
    let character = |_| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from(number >> 33 & 15).expect("is small"))
    };
    (0..length).map(character).collect()
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["big/data", "aws/ec2"]);
    let big = Package::new("big/data", "1.0.0").file("data.txt", &noise(60_000));
    sandbox.publish(&[big, Package::new("aws/ec2", "1.0.0")]);
    sandbox
}

#[test]
fn a_slow_server_watched_in_a_terminal() {
    let sandbox = sandbox();
    let server = serve(&sandbox, |request, body| {
        let is_big = request.path.contains("packs/big");
        is_big.then(|| Reply::body(body).in_pieces(body.len() / 40 + 1, Duration::from_millis(75)))
    });
    let mut terminal = Terminal::run(&sandbox, 60, "get");
    // After a moment it shows what is being done, and after a second what takes long: how much has arrived,
    // and how fast.
    let shown = terminal.shows(|shown| shown.contains("/s") && shown.contains("big/data 1.0.0"));
    let lines: Vec<&str> = shown.lines().collect();
    let first = |line: &str| {
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert!(first(lines[0]).starts_with("fetching 1/2 "), "{shown}");
    assert!(lines[0].contains("KiB/s  0:0"), "{shown}");
    assert!(lines[1].starts_with("  big/data 1.0.0 "), "{shown}");
    assert!(lines[1].contains(" KiB/") && lines[1].contains("  0:0"), "{shown}");
    let (last, seen, status) = terminal.end();
    assert_eq!(status, 0, "{last}");
    assert!(!last.contains("fetching") && last.contains("+ big/data 1.0.0"), "{last}");
    for screen in &seen {
        for line in screen.lines().filter(|line| !line.contains('+')) {
            assert!(line.chars().count() < 60, "`{line}` is too wide");
        }
    }
    drop(server);
}

#[test]
fn a_terminal_that_cannot_go_back_in_a_line_shows_no_progress() {
    let mut sandbox = sandbox();
    sandbox.set("TERM", "dumb");
    let _server = serve(&sandbox, |request, body| {
        let is_big = request.path.contains("packs/big");
        is_big.then(|| Reply::body(body).in_pieces(body.len() / 40 + 1, Duration::from_millis(40)))
    });
    let (last, seen, status) = Terminal::run(&sandbox, 60, "get").end();
    assert!(status == 0 && last.contains("+ big/data 1.0.0"), "{last}");
    assert!(!seen.iter().any(|screen| screen.contains("fetching")), "{seen:#?}");
}

#[test]
fn a_server_that_keeps_us_waiting_is_named() {
    let sandbox = sandbox();
    let server = serve(&sandbox, |request, body| {
        let is_index = request.path.contains("index/big");
        is_index.then(|| Reply::body(body).after(Duration::from_millis(3_500)))
    });
    let waiting = format!("waiting for {} to answer", server.host());
    let mut terminal = Terminal::run(&sandbox, 80, "get");
    terminal.shows(|shown| shown.contains(" resolving 1/2"));
    terminal.shows(|shown| shown.contains(&format!("  {waiting}  0:02")));
    let (last, _, status) = terminal.end();
    assert!(status == 0 && !last.contains("waiting"), "{last}");

    // Without a terminal, one line reports it, once.
    let forget = || {
        ["cache", "work/.mu/packs"].iter().for_each(|folder| {
            std::fs::remove_dir_all(sandbox.path(folder)).expect("was there");
        });
        std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    };
    forget();
    let run = sandbox.mu(&["get"]).ok();
    assert_eq!(run.stderr.matches(&waiting).count(), 1, "{}", run.stderr);
    forget();
    let run = sandbox.mu(&["get", "-q"]).ok();
    assert_eq!((&*run.stdout, &*run.stderr), ("", ""));
}

#[test]
fn ctrl_c_leaves_one_line() {
    let sandbox = sandbox();
    let _server = serve(&sandbox, |request, body| {
        request.path.contains("packs/big").then(|| Reply::body(body).silent_after(1000))
    });
    let mut terminal = Terminal::run(&sandbox, 80, "get");
    terminal.shows(|shown| shown.contains("fetching 1/2"));
    terminal.press("\u{3}");
    let (last, _, status) = terminal.end();
    // The terminal itself shows the key press.
    assert_eq!(last.trim_start_matches("^C").trim_end(), "interrupted");
    assert_eq!(status, 130);
    assert!(!sandbox.has("work/Mu.lock"));
}

#[test]
fn attempts_are_one_line_that_is_written_again() {
    let sandbox = sandbox();
    let _server = serve(&sandbox, |request, _| {
        request.path.contains("index/big").then(|| Reply::status(503))
    });
    let mut terminal = Terminal::run(&sandbox, 100, "get");
    terminal.shows(|shown| shown.contains("503 Service Unavailable; attempt 3 of 4 in "));
    let (last, seen, status) = terminal.end();
    assert!(seen.iter().all(|screen| screen.matches("attempt ").count() <= 1), "{seen:#?}");
    assert!(status == 1 && last.contains("(gave up after 4 attempts in "), "{last}");
    assert!(!last.contains("attempt 4"), "{last}");
    let run = sandbox.mu(&["get"]).fails();
    assert_eq!(run.stderr.matches("waiting: ").count(), 1, "{}", run.stderr);
}

#[test]
fn verbose_says_what_was_asked_and_how_long_that_took() {
    let mut sandbox = sandbox();
    let server = serve(&sandbox, |request, body| {
        // A token is sent if it is requested.
        Some(match request.header("authorization") {
            Some(_) => Reply::body(body).header("etag", "\"1\""),
            None => Reply::status(401).header("www-authenticate", "Bearer"),
        })
    });
    let host = server.host();
    sandbox.set_token(&host, "hunter2");
    let run = sandbox.mu(&["get", "-v"]).ok();
    let index = format!("GET http://{host}/index/big/data.jsonl: 200 OK, ");
    let line = run.stderr.lines().find(|line| line.starts_with(&index)).expect(&run.stderr);
    let variable = mu_provider::http::token_variable(&host).expect("has one");
    let end = format!(" ms, with the token for {host} from `{variable}`");
    assert!(line.contains(" B in ") && line.ends_with(&end), "{line}");
    for part in ["resolving took ", "fetching took ", "\ntook ", " requests, "] {
        assert!(run.stderr.contains(part), "`{part}` is missing: {}", run.stderr);
    }
    assert!(!run.stderr.contains("hunter2") && !run.stderr.contains("authorization"));
    sandbox.set("MU_LOG", "debug");
    std::fs::remove_dir_all(sandbox.path("cache")).expect("was there");
    let run = sandbox.mu(&["update"]).ok();
    for part in ["> authorization: ****", "< etag: \"1\""] {
        assert!(run.stderr.contains(part), "`{part}` is missing: {}", run.stderr);
    }
    assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
}

#[test]
fn verbose_says_which_token_and_which_proxy_a_request_has() {
    let mut sandbox = sandbox();
    let server = serve(&sandbox, |request, body| {
        Some(match request.header("authorization") {
            Some(_) => Reply::body(body),
            None => Reply::status(401).header("www-authenticate", "Bearer"),
        })
    });
    let host = server.host();
    let stored = sandbox.path("home/.mu/credentials.json");
    sandbox.write(
        "../home/.mu/credentials.json",
        &format!("{{\"version\": 1, \"tokens\": {{\"{host}\": \"hunter2\"}}}}"),
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&stored, mode).expect("is ours");
    let run = sandbox.mu(&["get", "-v"]).ok();
    let from = format!(", with the token for {host} from `[DIR]/home/.mu/credentials.json`");
    run.says(&[&from]).does_not_say(&["hunter2"]);
    // A proxy is named without its password, and hosts that bypass it use none.
    let proxy = TestServer::start(|_, _| Reply::status(502));
    sandbox.set("HTTPS_PROXY", &format!("http://ada:hunter3@{}", proxy.host()));
    let through = format!("through the proxy `http://{}` (HTTPS_PROXY)", proxy.host());
    let run = sandbox.mu(&["info", "https://hub.example.com/aws/ec2", "-v"]).fails();
    run.says(&["GET https://hub.example.com/hub.json: no answer in ", &through])
        .does_not_say(&["hunter3"]);
    sandbox.set("NO_PROXY", "hub.example.com");
    let run = sandbox.mu(&["info", "https://hub.example.com/aws/ec2", "-v"]).fails();
    run.says(&["GET https://hub.example.com/hub.json"]).does_not_say(&["through the proxy"]);
}

/// A hub's server that reads published archives slowly.
fn slow_reader() -> TestServer {
    TestServer::reading((64 << 10, Duration::from_millis(50)), |request, _| {
        match (&*request.method, &*request.path) {
            ("PUT", _) => Reply::status(201).saying("{}"),
            (_, "/hub.json") => {
                Reply::body(r#"{"hub": 1, "index": "index/", "packs": "packs/", "api": "api/v1/"}"#)
            }
            _ => Reply::status(404),
        }
    })
}

/// Watches an upload: how much was sent, and how fast.
fn uploads(sandbox: &Sandbox, arguments: &str, stage: &str, name: &str) {
    let mut terminal = Terminal::run(sandbox, 100, arguments);
    let shown = terminal.shows(|shown| {
        let line = shown.lines().find(|line| line.starts_with(&format!("  {name} ")));
        line.is_some_and(|line| line.contains(" MiB/")) && shown.contains("/s  0:0")
    });
    assert!(shown.contains(&format!(" {stage} 0/1 ")), "{shown}");
    let (last, _, status) = terminal.end();
    assert!(status == 0 && !last.contains(stage), "{last}");
}

#[test]
fn an_upload_is_watched() {
    let sandbox = Sandbox::new();
    let big = noise(6 << 20);
    sandbox.publish(&[Package::new("big/data", "1.0.0").file("data.txt", &big)]);
    sandbox.write("Mu.yaml", "name: acme/big\nversion: 1.0.0\nlicense: MIT\n");
    sandbox.write("data.txt", &big);
    let server = slow_reader();
    let to = server.url("");
    uploads(&sandbox, &format!("publish --to {to}"), "publishing", "acme/big");
    let mirror = format!("mirror big/data --to {to}");
    uploads(&sandbox, &mirror, "mirroring", "sending hub.mu.com/big/data 1.0.0");
    let sent = server.seen().into_iter().filter(|seen| seen.method == "PUT");
    let sent: Vec<(Option<String>, usize)> = sent
        .map(|seen| (seen.header("content-length").map(str::to_owned), seen.body.len()))
        .collect();
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|(told, length)| told.as_deref() == Some(&*length.to_string())));
    let run = sandbox.mu(&["publish", "--to", &to, "-v"]).ok();
    let line = run.stderr.lines().find(|line| line.starts_with("PUT ")).expect(&run.stderr);
    assert!(line.contains(" MiB sent, 201 "), "{line}");
}

#[test]
fn an_upload_into_a_bucket_is_watched() {
    let mut sandbox = Sandbox::new();
    let files: Mutex<HashMap<String, Vec<u8>>> = Mutex::default();
    let server = TestServer::reading((64 << 10, Duration::from_millis(50)), move |request, _| {
        let mut files = files.lock().expect("nobody panics");
        let path = request.path.split('?').next().unwrap_or_default().to_owned();
        if request.method == "PUT" {
            files.insert(path, request.body.clone());
            return Reply::status(200).header("etag", "\"1\"");
        }
        if request.path.contains("list-type=2") {
            return Reply::body("<ListBucketResult></ListBucketResult>");
        }
        let modified = "Mon, 02 Nov 2026 00:00:00 GMT";
        match files.get(&path) {
            Some(file) => Reply::body(file.clone()).header("etag", "\"1\""),
            None => Reply::status(404),
        }
        .header("last-modified", modified)
    });
    sandbox.set("AWS_ACCESS_KEY_ID", "ada");
    sandbox.set("AWS_SECRET_ACCESS_KEY", "secret");
    sandbox.set("AWS_REGION", "eu-west-1");
    sandbox.set("AWS_ENDPOINT_URL", server.url("").trim_end_matches('/'));
    sandbox.mu(&["hub", "init", "s3://acme/hub"]).ok();
    sandbox.write("Mu.yaml", "name: acme/big\nversion: 1.0.0\nlicense: MIT\n");
    sandbox.write("data.txt", &noise(6 << 20));
    uploads(&sandbox, "publish --to s3://acme/hub", "publishing", "acme/big");
}

#[test]
fn a_clone_is_watched() {
    let sandbox = Sandbox::new();
    let origin = Origin::new("infra.git");
    origin.commit(&[("Mu.yaml", "name: infra\n"), ("data.txt", &noise(200_000))]);
    origin.git(&["tag", "v1.0.0"]);
    let server = HttpServer::answering(origin.root(), |reply| match reply.length() {
        0..20_000 => reply,
        length => reply.in_pieces(length / 30, Duration::from_millis(75)),
    });
    let url = format!("{}infra.git", server.root());
    let mut terminal = Terminal::run(&sandbox, 100, &format!("get git+{url}"));
    let shown = terminal.shows(|shown| {
        let mut lines = shown.lines().skip(1);
        lines.any(|line| {
            line.starts_with(&format!("  cloning {url} ")) && line.contains(" KiB  0:0")
        })
    });
    assert!(shown.contains(" KiB/s "), "{shown}");
    let (last, _, status) = terminal.end();
    assert!(status == 0 && !last.contains("cloning"), "{last}");
}
