//! Passwords and tokens for OCI registries: where they are found, and who gets them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_testing::OciServer;
use mu_testing::oci::Behaviour;

use super::oci::{offer, sandbox};
use super::support::Sandbox;

const PASSWORD: &str = "hunter2";

/// A registry that requires a password, either directly or for the tokens that it hands out.
fn registry(is_bearer: bool) -> OciServer {
    let password = Some(("ada".to_owned(), PASSWORD.to_owned()));
    let registry = OciServer::start(Behaviour { password, ..Behaviour::default() });
    let realm = format!("http://{}/token", registry.host());
    registry.behave(|behaviour| behaviour.realm = is_bearer.then_some(realm));
    registry
}

/// Writes Docker's `config.json`.
fn docker_config(sandbox: &Sandbox, text: &str) {
    mu_testing::write(sandbox.root(), "home/.docker/config.json", text);
}

fn docker_login(sandbox: &Sandbox, host: &str) {
    let auth = STANDARD.encode(format!("ada:{PASSWORD}"));
    docker_config(sandbox, &format!("{{\"auths\": {{\"{host}\": {{\"auth\": \"{auth}\"}}}}}}"));
}

#[test]
fn a_registry_without_a_password_says_how_to_give_one() {
    for is_bearer in [false, true] {
        let registry = registry(is_bearer);
        let sandbox = sandbox(&registry.host());
        sandbox.asks_for(&["web/log"]);
        let error = sandbox.mu(&["get", "--json"]).fails_with("auth");
        let text = error.to_string();
        assert!(text.contains("mu login") && text.contains("docker login"), "{text}");
    }
}

#[test]
fn a_password_in_a_variable_or_of_dockers_lets_in_and_is_never_shown() {
    for is_bearer in [false, true] {
        let registry = registry(is_bearer);
        let mut sandbox = sandbox(&registry.host());
        sandbox.set_token(&registry.host(), &format!("ada:{PASSWORD}"));
        offer(&sandbox);
        let other = self::sandbox(&registry.host());
        docker_login(&other, &registry.host());
        other.asks_for(&["web/proxy#^2"]);
        let before = registry.seen().len();
        let run = other.mu(&["get", "-vv"]).ok();
        assert!(
            !run.stderr.contains(PASSWORD) && !run.stderr.contains("token-for"),
            "{}",
            run.stderr
        );
        for (path, (_, bytes)) in other.state() {
            let text = String::from_utf8_lossy(&bytes);
            let is_config = path.contains(".docker/");
            assert!(
                is_config || !(text.contains(PASSWORD) || text.contains("token-for")),
                "{path}"
            );
        }
        let requests: Vec<String> = registry.requests().split_off(before);
        let tokens = requests.iter().filter(|request| request.contains("/token?")).count();
        // One for each repository, and none is asked for twice.
        assert_eq!(tokens, if is_bearer { 2 } else { 0 }, "{requests:#?}");
        // The answer of the first repository holds for the second: at most the tags and index of one are
        // refused.
        assert!(requests.len() <= 8 + tokens + 2, "{requests:#?}");
    }
}

#[test]
fn a_program_that_keeps_passwords_is_asked() {
    let registry = registry(true);
    let mut sandbox = sandbox(&registry.host());
    let program = sandbox.path("bin/docker-credential-kept");
    let answer = format!("{{\"Username\": \"ada\", \"Secret\": \"{PASSWORD}\"}}");
    mu_testing::write(
        sandbox.root(),
        "bin/docker-credential-kept",
        format!("#!/bin/sh\necho '{answer}'\n"),
    );
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("is ours");
    let path = std::env::var("PATH").expect("there is one");
    let folder = sandbox.path("bin").display().to_string();
    sandbox.set("PATH", &format!("{folder}:{path}"));
    docker_config(&sandbox, &format!("{{\"credHelpers\": {{\"{}\": \"kept\"}}}}", registry.host()));
    offer(&sandbox);
    sandbox.asks_for(&["web/proxy"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.1.0", "hub.mu.com/web/proxy 2.0.0"]);
}

#[test]
fn a_place_for_tokens_on_another_host_sees_no_password() {
    let registry = registry(true);
    let thief = OciServer::start(Behaviour::default());
    let port = thief.host().rsplit(':').next().expect("has a port").to_owned();
    for realm in
        [format!("http://localhost:{port}/token"), format!("http://{}/token", thief.host())]
    {
        registry.behave(|behaviour| behaviour.realm = Some(realm.clone()));
        let sandbox = sandbox(&registry.host());
        docker_login(&sandbox, &registry.host());
        sandbox.asks_for(&["web/log"]);
        let error = sandbox.mu(&["get", "--json"]).fails();
        error.says(&[&realm, "which is another host"]).does_not_say(&[PASSWORD]);
    }
    assert!(thief.seen().is_empty(), "{:?}", thief.requests());
    registry.behave(|behaviour| behaviour.realm = Some("http://169.254.169.254/token".to_owned()));
    let sandbox = sandbox(&registry.host());
    docker_login(&sandbox, &registry.host());
    sandbox.mu(&["get", "web/log"]).fails().says(&["169.254.169.254"]);
}

#[test]
fn a_blob_on_another_server_is_got_without_the_token() {
    for is_bearer in [false, true] {
        let registry = registry(is_bearer);
        let sandbox = sandbox(&registry.host());
        docker_login(&sandbox, &registry.host());
        offer(&sandbox);
        let manifest = registry.tagged("acme/web/log", "1.1.0").expect("is there");
        let digest = manifest["layers"][0]["digest"].as_str().expect("is text");
        let store = OciServer::start(Behaviour::default());
        store.blob(&super::oci::fetch_blob(&registry, digest));
        let elsewhere = format!("http://{}/v2/any/blobs/", store.host());
        registry.behave(|behaviour| behaviour.blobs_at = Some(elsewhere));
        sandbox.asks_for(&["web/log#^1"]);
        sandbox.mu(&["get"]).ok();
        let [seen] = &store.seen()[..] else { panic!("{:?}", store.requests()) };
        assert_eq!(seen.header("authorization"), None);
    }
}

#[test]
fn a_wrong_password_is_named_by_where_it_is_from() {
    let registry = registry(true);
    let mut sandbox = sandbox(&registry.host());
    sandbox.set_token(&registry.host(), "ada:wrong");
    sandbox.asks_for(&["web/log"]);
    let error = sandbox.mu(&["get", "--json"]).fails_with("auth");
    assert!(error.to_string().contains("was not accepted"), "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");
}

#[test]
fn a_token_of_docker_login_is_exchanged_for_others() {
    const IDENTITY: &str = "refresh-me";
    let registry = registry(true);
    let mut author = sandbox(&registry.host());
    author.set_token(&registry.host(), &format!("ada:{PASSWORD}"));
    offer(&author);
    registry.behave(|behaviour| behaviour.identity = Some(IDENTITY.to_owned()));
    let sandbox = sandbox(&registry.host());
    let login = |token: &str| {
        let auth = STANDARD.encode("00000000-0000-0000-0000-000000000000:");
        let entry = format!("{{\"auth\": \"{auth}\", \"identitytoken\": \"{token}\"}}");
        docker_config(&sandbox, &format!("{{\"auths\": {{\"{}\": {entry}}}}}", registry.host()));
    };
    login(IDENTITY);
    sandbox.asks_for(&["web/proxy#^2"]);
    let before = registry.seen().len();
    let run = sandbox.mu(&["get", "-vv"]).ok().does_not_say(&[IDENTITY, "token-for"]);
    assert!(run.stderr.contains("POST http"), "{}", run.stderr);
    let exchanged: Vec<String> = registry.requests().split_off(before);
    let exchanged = exchanged.iter().filter(|request| *request == "POST /token").count();
    // One for each repository.
    assert_eq!(exchanged, 2);
    assert!(!sandbox.read("Mu.lock").contains(IDENTITY));
    // One that is refused is named as such, and a redirect does not get it.
    login("another-one");
    sandbox.mu(&["update"]).fails().says(&["hands out no token"]).does_not_say(&["another-one"]);
    login(IDENTITY);
    let thief = OciServer::start(Behaviour::default());
    let place = format!("http://{}/token", thief.host());
    registry.behave(|behaviour| behaviour.tokens_at = Some(place.clone()));
    let run = sandbox.mu(&["update"]).fails();
    run.says(&[&place, "where it is not sent"]).does_not_say(&[IDENTITY]);
    assert!(thief.seen().is_empty(), "{:?}", thief.requests());
    // A password may follow the redirect only without itself.
    docker_login(&sandbox, &registry.host());
    sandbox.mu(&["update"]).fails().does_not_say(&[PASSWORD]);
    let seen = thief.seen();
    assert!(seen.iter().all(|seen| seen.header("authorization").is_none()), "{seen:?}");
}
