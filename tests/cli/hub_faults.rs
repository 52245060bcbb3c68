//! Hubs with other bytes than promised, and hubs that interrupt answers, are unavailable, or redirect.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use mu_testing::http::{Reply, Seen, TestServer};

use crate::support::{Hub, Nginx, Package, Sandbox};

fn publish(sandbox: &Sandbox) -> Hub {
    let hub = sandbox.hub();
    hub.publish(&Package::new("aws/app", "1.0.0").needs("aws/ec2#^1"));
    hub.publish(&Package::new("aws/ec2", "1.0.0").file("data.txt", &"data\n".repeat(400)));
    sandbox.asks_for(&["aws/app"]);
    hub
}

/// The answer of an ordinary web server.
fn serve(folder: &Path, request: &Seen) -> Reply {
    match fs::read(folder.join(request.path.trim_start_matches('/'))) {
        Ok(bytes) => Reply::ranged(request, &bytes),
        Err(_) => Reply::status(404),
    }
}

/// A server of the hub whose answers `change` may spoil; it gets the number of earlier requests for that
/// path.
fn spoiled(
    sandbox: &Sandbox,
    change: impl Fn(&Seen, usize, Reply) -> Reply + Send + Sync + 'static,
) -> TestServer {
    let folder = sandbox.path("hub");
    let asked: Mutex<HashMap<String, usize>> = Mutex::default();
    let server = TestServer::start(move |request, _| {
        let before = {
            let mut asked = asked.lock().expect("nobody panics");
            let count = asked.entry(request.path.clone()).or_default();
            *count += 1;
            *count - 1
        };
        change(request, before, serve(&folder, request))
    });
    sandbox.hub_is_at(&server.url(""));
    server
}

/// Whether the store or the packs have any content, or an archive is left over.
fn is_anything_kept(sandbox: &Sandbox, name: &str) -> bool {
    let cache = walkdir::WalkDir::new(sandbox.path("cache")).into_iter().flatten();
    let has_content = cache.filter(|entry| entry.file_type().is_file()).any(|entry| {
        let bytes = fs::read(entry.path()).expect("can be read");
        let is_archive = bytes.starts_with(&[0x1f, 0x8b]);
        is_archive || bytes.starts_with(format!("name: {name}").as_bytes())
    });
    has_content || sandbox.has(&format!("work/.mu/packs/hub.mu.com/{name}"))
}

#[test]
fn wrong_bytes_install_nothing_and_keep_nothing() {
    let mut sandbox = Sandbox::new();
    let hub = publish(&sandbox);
    let nginx = Nginx::serve(hub.folder(), "");
    sandbox.hub_is_at(&nginx.url(""));
    sandbox.replace(nginx.url("").trim_end_matches('/'), "[HUB]");
    let archive = hub.archive("aws/ec2", "1.0.0");
    let good = fs::read(&archive).expect("is there");
    hub.flip(&archive);
    let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
    let message = error["message"].as_str().expect("is text");
    let bad = fs::read(&archive).expect("is there");
    for part in [
        "[HUB]/packs/aws/ec2/ec2-1.0.0.tgz".to_owned(),
        crate::support::hex(&good),
        crate::support::hex(&bad),
    ] {
        assert!(message.contains(&part), "`{part}` is missing: {message}");
    }
    assert!(!is_anything_kept(&sandbox, "aws/ec2"));
    assert!(!sandbox.has("work/Mu.lock") && !sandbox.has("work/.mu/packs/hub.mu.com"));
    // After it is repaired, everything works.
    fs::write(&archive, good).expect("is ours");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok().says(&["2 packs verified"]);
}

#[test]
fn content_that_is_not_what_the_lock_says_is_refused() {
    let sandbox = Sandbox::new();
    let hub = publish(&sandbox);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    // The same version is published again with other content: archive and index agree, the lock does not.
    fs::remove_file(hub.index("aws/ec2")).expect("was there");
    hub.publish(&Package::new("aws/ec2", "1.0.0").file("data.txt", "replaced"));
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("was there");
    }
    sandbox.mu(&["get", "--json"]).fails_with("integrity");
    assert_eq!(sandbox.read("Mu.lock"), lock);
    assert!(!is_anything_kept(&sandbox, "aws/ec2"));
}

#[test]
fn an_index_with_a_wrong_digest_is_found_out() {
    let sandbox = Sandbox::new();
    let hub = publish(&sandbox);
    let index = hub.index("aws/ec2");
    let other = hub.publish(&Package::new("other", "1.0.0"));
    let text = fs::read_to_string(&index).expect("is there");
    let start = text.find("h1:").expect("has a digest");
    let wrong = text.replace(&text[start..start + other.len()], &other);
    fs::write(&index, wrong).expect("is ours");
    let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
    assert_eq!(error["details"]["expected"], *other);
    assert!(!is_anything_kept(&sandbox, "aws/ec2"));
}

#[test]
fn cut_connections_are_taken_up_again() {
    let sandbox = Sandbox::new();
    publish(&sandbox);
    let server = spoiled(&sandbox, |_, before, reply| match before {
        0 => reply.cut_after(20),
        _ => reply,
    });
    sandbox.mu(&["get"]).ok().says(&["2 downloaded"]);
    sandbox.mu(&["verify"]).ok();
    let archives = server.requests().iter().filter(|line| line.contains("/packs/")).count();
    assert_eq!(archives, 4, "each broke off once");
}

#[test]
fn a_server_that_cannot_answer_now_is_asked_again() {
    let sandbox = Sandbox::new();
    publish(&sandbox);
    let server = spoiled(&sandbox, |_, before, reply| match before {
        0 => Reply::status(503).header("retry-after", "0"),
        1 => Reply::status(429).header("retry-after", "0"),
        _ => reply,
    });
    let run = sandbox.mu(&["get"]).ok();
    run.says(&["2 downloaded", "503"]);
    assert_eq!(server.requests().len(), 15, "{:?}", server.requests());
}

#[test]
fn a_server_that_never_can_is_given_up() {
    let sandbox = Sandbox::new();
    publish(&sandbox);
    let server = spoiled(&sandbox, |_, _, _| Reply::status(503).header("retry-after", "0"));
    let error = sandbox.mu(&["get", "--json"]).fails_with("network");
    assert!(error["message"].as_str().expect("is text").contains("503"), "{error}");
    assert!(server.requests().len() < 20, "{:?}", server.requests());
    assert!(!sandbox.has("work/Mu.lock"));
}

#[test]
fn a_dead_hub_in_the_middle_leaves_whole_packs_and_the_next_run_goes_on() {
    let sandbox = Sandbox::new();
    publish(&sandbox);
    let server = spoiled(&sandbox, |request, _, reply| {
        if request.path.contains("/packs/aws/ec2") { Reply::status(404) } else { reply }
    });
    sandbox.mu(&["get", "--jobs", "1"]).fails();
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com") && !sandbox.has("work/Mu.lock"));
    drop(server);
    let server = spoiled(&sandbox, |_, _, reply| reply);
    sandbox.mu(&["get"]).ok();
    let archives: Vec<String> =
        server.requests().into_iter().filter(|line| line.contains("/packs/")).collect();
    assert_eq!(archives, ["GET /packs/aws/ec2/ec2-1.0.0.tgz"], "the other one was fetched before");
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn a_token_does_not_follow_a_redirect_to_another_host() {
    let mut sandbox = Sandbox::new();
    publish(&sandbox);
    let folder = sandbox.path("hub");
    let elsewhere = TestServer::start(move |request, _| serve(&folder, request));
    let address = elsewhere.url("");
    let hub = spoiled(&sandbox, move |request, _, reply| {
        if request.header("authorization") != Some("Bearer hunter2") {
            return Reply::status(401);
        }
        if request.path.contains("/packs/") {
            return Reply::redirect(format!("{address}{}", request.path.trim_start_matches('/')));
        }
        reply
    });
    sandbox.mu(&["get", "--json"]).fails_with("auth");
    sandbox.set_token(&hub.host(), "hunter2");
    let run = sandbox.mu(&["get", "-v"]).ok();
    assert!(!run.shown().contains("hunter2") && !sandbox.read("Mu.lock").contains("hunter2"));
    assert_eq!(elsewhere.seen().len(), 2);
    for seen in elsewhere.seen() {
        assert_eq!(seen.header("authorization"), None);
    }
    // Nor is it kept anywhere.
    for (path, (_, bytes)) in crate::support::tree(sandbox.root()) {
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"), "{path}");
    }
}

#[test]
fn redirects_within_a_host_are_followed() {
    let sandbox = Sandbox::new();
    publish(&sandbox);
    let server =
        spoiled(&sandbox, |request, _, reply| match request.path.strip_prefix("/packs/") {
            Some(rest) if !rest.starts_with("moved") => Reply::redirect(format!("/moved/{rest}")),
            _ => reply,
        });
    fs::rename(sandbox.path("hub/packs"), sandbox.path("hub/moved")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert!(server.requests().iter().any(|line| line.starts_with("GET /moved/")));
}

#[test]
fn a_page_in_place_of_an_answer_is_called_one_and_nothing_of_it_is_kept() {
    for part in ["hub.json", "/index/", ".tgz"] {
        let sandbox = Sandbox::new();
        publish(&sandbox);
        let is_signed_in = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let signed_in = std::sync::Arc::clone(&is_signed_in);
        let server = spoiled(&sandbox, move |request, _, reply| {
            match request.path.contains(part)
                && !signed_in.load(std::sync::atomic::Ordering::Relaxed)
            {
                true => Reply::body("<!DOCTYPE html><title>Please sign in</title>")
                    .header("content-type", "text/html; charset=utf-8"),
                false => reply,
            }
        });
        sandbox.hub_is_at(&server.url(""));
        sandbox.mu(&["get"]).fails().says(&[part, "the answer is a web page", "a login page"]);
        is_signed_in.store(true, std::sync::atomic::Ordering::Relaxed);
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["verify"]).ok();
    }
}
