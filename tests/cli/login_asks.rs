//! `mu login` asks the server whether a token is good, and `mu whoami` whose it is.

use std::fs;

use mu_testing::DockerRegistry;
use mu_testing::http::{Reply, TestServer};
#[cfg(feature = "oci")]
use mu_testing::{OciServer, oci::Behaviour};

use crate::login::send;
use crate::support::git::HttpServer;
use crate::support::{Chart, Charts, Nginx, Sandbox, Served, write};

const FILE: &str = "home/.mu/credentials.json";

/// Checks that this host refuses a wrong token and takes the right one, and who it then says that the user is.
#[track_caller]
fn check(sandbox: &Sandbox, base: &str, wrong: &str, right: &str, said: &[&str]) {
    sandbox.mu(&["whoami", base]).fails().says(&["nobody is logged in", "mu login"]);
    let run = send(sandbox, &["login", base], wrong).fails();
    run.says(&["does not accept the token; it was not stored"]).does_not_say(&[wrong]);
    // The user's word is no token.
    send(sandbox, &["login", "--yes", base], wrong).fails();
    assert!(!sandbox.root().join(FILE).exists(), "{base}");
    send(sandbox, &["login", base], right).ok().does_not_say(&[right, "nobody was asked"]);
    let run = sandbox.mu(&["whoami", base]).ok().says(said).does_not_say(&["cannot be asked"]);
    assert!(!run.stdout.contains(right), "{}", run.shown());
    let json = sandbox.mu(&["whoami", base, "--json"]).ok().json();
    assert_eq!((&json["accepted"], &json["name"]), (&true.into(), &said[0].into()));
    sandbox.mu(&["logout", base]).ok();
    sandbox.mu(&["whoami", base]).fails();
}

#[test]
fn a_hub_says_whose_a_token_is_and_what_it_allows() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let add = ["hub", "token", "add", "../srv", "ci", "--namespace", "acme", "--can", "publish"];
    let more = ["--expires", "90 days", "--json"];
    let token = sandbox.mu(&[&add[..], &more].concat()).ok().json()["token"].clone();
    let token = token.as_str().expect("is a token");
    for flags in [&[][..], &["--private"]] {
        let served = Served::start(&sandbox, "../srv", flags);
        let said = ["ci", "for   acme\n", "may   publish\n", "until 20"];
        check(&sandbox, &served.address.to_string(), "mu_wrong", token, &said);
        // By the name of its base, too, and one that was revoked later.
        sandbox.hub_is_at(&format!("http://{}/", served.address));
        send(&sandbox, &["login", "hub.mu.com"], token).ok().says(&["knows it as `ci`"]);
        sandbox.mu(&["whoami", "hub.mu.com"]).ok().says(&["ci\n"]);
        sandbox.mu(&["logout", "hub.mu.com"]).ok();
    }
    let served = Served::start(&sandbox, "../srv", &[]);
    let base = served.address.to_string();
    send(&sandbox, &["login", &base], token).ok();
    sandbox.mu(&["hub", "token", "revoke", "../srv", "ci"]).ok();
    sandbox.mu(&["whoami", &base]).fails().says(&["it may have been revoked"]);
    // Nobody else learns anything.
    served.ask("GET", "/api/v1/whoami", &[], &[]).is(401);
    served.ask("GET", "/api/v1/whoami", &["authorization: Bearer mu_x"], &[]).is(401);
}

#[cfg(feature = "oci")]
#[test]
fn a_registry_refuses_a_wrong_password_as_docker_login_learns_it() {
    let real = DockerRegistry::guarded();
    check(&Sandbox::new(), &real.host(), "ada:wrong", "ada:hunter2", &["ada"]);
    // One with tokens, which hands out some to everybody.
    for open_tokens in [false, true] {
        let password = Some(("ada".to_owned(), "hunter2".to_owned()));
        let registry =
            OciServer::start(Behaviour { password, open_tokens, ..Behaviour::default() });
        let realm = format!("http://{}/token", registry.host());
        registry.behave(|behaviour| behaviour.realm = Some(realm));
        if open_tokens {
            // The password may not go to another host, and what everybody gets proves nothing.
            let other = TestServer::start(|_, _| Reply::body("{\"token\": \"for-everybody\"}"));
            let realm = Some(other.url("token"));
            registry.behave(|behaviour| behaviour.realm = realm);
            let sandbox = Sandbox::new();
            let run = send(&sandbox, &["login", &registry.host()], "ada:hunter2").fails();
            run.says(&["it was not stored", "tokensAt"]).does_not_say(&["hunter2"]);
            assert!(other.seen().iter().all(|seen| seen.header("authorization").is_none()));
            continue;
        }
        check(&Sandbox::new(), &registry.host(), "ada:wrong", "ada:hunter2", &["ada"]);
    }
    // What `docker login` has stored counts.
    let sandbox = Sandbox::new();
    let auth = "YWRhOmh1bnRlcjI=";
    let config = format!("{{\"auths\": {{\"{}\": {{\"auth\": \"{auth}\"}}}}}}", real.host());
    write(sandbox.root(), "home/.docker/config.json", config);
    sandbox.mu(&["whoami", &real.host()]).ok().says(&["ada\n"]);
}

#[test]
fn a_guarded_chart_repository_is_asked_where_it_is_named() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
    Charts::new(&sandbox.path("www/stable")).add(&Chart::new("web", "0.3.0"));
    write(sandbox.root(), "users", "ada:{PLAIN}hunter2\n");
    let users = sandbox.path("users").display().to_string();
    let guarded =
        format!("location /stable/ {{ auth_basic charts; auth_basic_user_file {users}; }}");
    let nginx = Nginx::serve(&sandbox.path("www"), &guarded);
    let base = format!("{}/stable", nginx.host());
    check(&sandbox, &base, "ada:wrong", "ada:hunter2", &["ada"]);
    // The host alone shows everybody what it has.
    send(&sandbox, &["login", &nginx.host()], "ada:hunter2").says(&["cannot be asked", "--yes"]);
    assert!(!sandbox.root().join(FILE).exists());
    // To strangers, it may be as if it was not there.
    let guarded =
        format!("{guarded} error_page 401 =404 @hidden; location @hidden {{ return 404; }}");
    let nginx = Nginx::serve(&sandbox.path("www"), &guarded);
    let base = format!("{}/stable", nginx.host());
    assert_ne!(send(&sandbox, &["login", &base], "ada:wrong").status, 0);
    send(&sandbox, &["login", &base], "ada:hunter2").ok();
    sandbox.mu(&["whoami", &base]).ok().says(&["ada"]);
}

#[test]
fn a_token_of_a_server_that_cannot_be_asked_is_stored_at_the_users_word() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("git")).expect("can be made");
    let server = HttpServer::start(&sandbox.path("git"));
    let base = server.host();
    let run = send(&sandbox, &["login", &base], "ada:hunter2");
    assert_eq!(run.status, 2, "{}", run.shown());
    run.says(&["cannot be asked whether the token is good", "`--yes` stores it all the same"]);
    assert!(!sandbox.root().join(FILE).exists());
    let run = send(&sandbox, &["login", "--yes", &base], "ada:hunter2").ok();
    run.says(&["nobody was asked whether it is good"]).does_not_say(&["hunter2"]);
    sandbox.mu(&["whoami", &base]).ok().says(&["ada\n", "cannot be asked"]);
    // Nobody is there.
    let run = send(&sandbox, &["login", "--offline", &base], "ada:hunter2").fails();
    run.says(&["mu is offline", "--yes"]);
}
