//! Passwords and tokens for OCI registries: where they are found, and who gets them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_testing::http::{Reply, Seen, TestServer};
use mu_testing::oci::Behaviour;
use mu_testing::{Artifact, Chart, OciServer};

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

/// Puts a program on the search path that knows the password for every server.
fn keeper(sandbox: &mut Sandbox) {
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
}

#[test]
fn a_registry_without_a_password_says_how_to_give_one() {
    for is_bearer in [false, true] {
        let registry = registry(is_bearer);
        let sandbox = sandbox(&registry.host());
        sandbox.asks_for(&["web/log"]);
        let error = sandbox.mu(&["get", "--json"]).fails_with("auth");
        let text = error.to_string();
        // All that is read is named.
        for login in [
            "mu login",
            "MU_TOKEN_",
            "docker login",
            "podman login",
            "helm registry login",
            "kcl registry login",
        ] {
            assert!(text.contains(login), "{login} is not in {text}");
        }
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
    keeper(&mut sandbox);
    docker_config(&sandbox, &format!("{{\"credHelpers\": {{\"{}\": \"kept\"}}}}", registry.host()));
    offer(&sandbox);
    sandbox.asks_for(&["web/proxy"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.1.0", "hub.mu.com/web/proxy 2.0.0"]);
}

/// The line of the user's file that lets the password for a registry go to another host.
fn line(registry: &str, tokens_at: &str) -> String {
    format!("registries: {{{registry}/: {{tokensAt: {tokens_at}}}}}")
}

/// What a server was shown: its `Authorization` headers and bodies.
fn shown(seen: &[Seen]) -> Vec<String> {
    let secrets = seen.iter().flat_map(|seen| {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        [seen.header("authorization").map(str::to_owned), Some(body)]
    });
    secrets.flatten().filter(|text| !text.is_empty()).collect()
}

#[test]
fn a_place_for_tokens_on_another_host_sees_no_password() {
    let registry = registry(true);
    let thief = OciServer::start(Behaviour::default());
    let port = thief.host().rsplit(':').next().expect("has a port").to_owned();
    for other in [format!("localhost:{port}"), thief.host()] {
        let realm = format!("http://{other}/token");
        registry.behave(|behaviour| behaviour.realm = Some(realm.clone()));
        let sandbox = sandbox(&registry.host());
        docker_login(&sandbox, &registry.host());
        sandbox.asks_for(&["web/log"]);
        let error = sandbox.mu(&["get", "--json"]).fails();
        let hint = line("[HOST]", &other);
        error.says(&[&realm, &hint, "~/.mu/config.yaml"]).does_not_say(&[PASSWORD, "mu login"]);
    }
    assert!(!thief.seen().is_empty(), "it is asked, for what needs no password");
    assert_eq!(shown(&thief.seen()), [""; 0]);
    registry.behave(|behaviour| behaviour.realm = Some("http://169.254.169.254/token".to_owned()));
    let sandbox = sandbox(&registry.host());
    docker_login(&sandbox, &registry.host());
    sandbox.mu(&["get", "web/log"]).fails().says(&["169.254.169.254"]);
}

/// Puts a password into one of the places where mu looks for them.
type Store<'a> = &'a dyn Fn(&mut Sandbox, &str);

/// A stranger's registry names the server of another one for its tokens, with a scope and a path of its choice. A password for that
/// other server would get the stranger a token that was made with it.
#[test]
fn a_strangers_registry_gets_no_token_of_another_one() {
    const IDENTITY: &str = "refresh-me";
    let victim = registry(true);
    victim.behave(|behaviour| behaviour.identity = Some(IDENTITY.to_owned()));
    for path in ["token", "api/v4/personal_access_tokens?name=x&scopes=api"] {
        let (realm, scope) = (format!("http://{}/{path}", victim.host()), "repository:a:pull,push");
        let challenge = format!("Bearer realm=\"{realm}\",service=\"tests\",scope=\"{scope}\"");
        let stranger = TestServer::start(move |_, _| {
            Reply::status(401).header("www-authenticate", challenge.clone())
        });
        // Each kind of place where a password can be.
        let stores: [Store<'_>; 5] = [
            &|sandbox, host| sandbox.set_token(host, &format!("ada:{PASSWORD}")),
            &|sandbox, host| {
                let text =
                    format!("{{\"version\": 1, \"tokens\": {{\"{host}\": \"ada:{PASSWORD}\"}}}}");
                mu_testing::write(sandbox.root(), "home/.mu/credentials.json", text);
            },
            &|sandbox, host| docker_login(sandbox, host),
            &|sandbox, host| {
                let entry = format!("{{\"identitytoken\": \"{IDENTITY}\"}}");
                docker_config(sandbox, &format!("{{\"auths\": {{\"{host}\": {entry}}}}}"));
            },
            &|sandbox, host| {
                keeper(sandbox);
                docker_config(sandbox, &format!("{{\"credHelpers\": {{\"{host}\": \"kept\"}}}}"));
            },
        ];
        for (number, store) in stores.iter().enumerate() {
            for owner in [&victim.host(), &stranger.host()] {
                let mut sandbox = Sandbox::new();
                store(&mut sandbox, owner);
                sandbox.asks_for(&[&format!("oci://{}/x/y#^1", stranger.host())]);
                let run = sandbox.mu(&["get", "-vv"]).fails();
                run.says(&[&line(&stranger.host(), &victim.host())])
                    .does_not_say(&[PASSWORD, IDENTITY]);
                let all = (shown(&victim.seen()), shown(&stranger.seen()));
                assert_eq!(all, (Vec::new(), Vec::new()), "{path} {number} {owner}");
            }
        }
    }
    assert!(!victim.seen().is_empty(), "it is asked, without a password");
}

#[test]
fn only_the_users_file_lets_a_password_go_to_another_host() {
    let (registry, tokens) = (registry(true), self::registry(true));
    let author = sandbox(&registry.host());
    docker_login(&author, &registry.host());
    offer(&author);
    registry.behave(|behaviour| behaviour.realm = Some(format!("http://{}/token", tokens.host())));
    let sandbox = sandbox(&registry.host());
    docker_login(&sandbox, &registry.host());
    sandbox.asks_for(&["web/log#^1"]);
    // A workspace cannot say it.
    let settings = sandbox.read(".mu/workspace.yaml");
    let pair = |from: &str| format!("{from}/: {{tokensAt: {}}}", tokens.host());
    let own = line(&registry.host(), &tokens.host());
    sandbox.write(".mu/workspace.yaml", &own);
    sandbox.mu(&["get"]).fails().says(&["a workspace cannot say which host gets passwords"]);
    sandbox.write(".mu/workspace.yaml", &settings);
    // Neither does the line for another registry.
    let of_user = |pair: &str| {
        let hub = format!("hub.mu.com/: oci://{}/acme", registry.host());
        let text = format!("registries:\n  {hub}\n  {pair}\n");
        mu_testing::write(sandbox.root(), "home/.mu/config.yaml", text);
    };
    of_user(&pair("registry.example"));
    sandbox.mu(&["get"]).fails().says(&["hands out no token"]);
    assert_eq!(shown(&tokens.seen()), [""; 0]);
    of_user(&pair(&registry.host()));
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.1.0"]);
    // A workspace that leads the registry elsewhere takes no password along.
    let elsewhere = self::registry(true);
    elsewhere.behave(|behaviour| behaviour.realm = Some(format!("http://{}/token", tokens.host())));
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("registries: {{{}/: oci://{}/}}\n", registry.host(), elsewhere.host()),
    );
    let before = tokens.seen().len();
    sandbox.asks_for(&[&format!("{}/acme/web/log", registry.host())]);
    sandbox.mu(&["update"]).fails().does_not_say(&[PASSWORD]);
    assert_eq!(shown(&tokens.seen()[before..]), [""; 0]);
    // What `mu registry add` changes leaves the line alone.
    let to = format!("oci://{}/", registry.host());
    sandbox.mu(&["registry", "add", "-g", &format!("{}/", registry.host()), &to]).ok();
    let text = std::fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    assert!(text.contains(&format!("tokensAt: {}", tokens.host())), "{text}");
}

#[test]
fn what_everybody_may_read_needs_no_password_at_another_host() {
    let (registry, tokens) = (registry(true), self::registry(true));
    tokens.behave(|behaviour| behaviour.open_tokens = true);
    let author = sandbox(&registry.host());
    docker_login(&author, &registry.host());
    offer(&author);
    registry.behave(|behaviour| behaviour.realm = Some(format!("http://{}/token", tokens.host())));
    let sandbox = sandbox(&registry.host());
    docker_login(&sandbox, &registry.host());
    sandbox.asks_for(&["web/log#^1"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(shown(&tokens.seen()), [""; 0]);
    // If the registry refuses such a token, the way out is the same.
    let refusing = TestServer::start({
        let realm = format!("http://{}/token", tokens.host());
        move |_, _| {
            let challenge = format!("Bearer realm=\"{realm}\",scope=\"repository:x:pull\"");
            Reply::status(401).header("www-authenticate", challenge)
        }
    });
    let sandbox = Sandbox::new();
    sandbox.asks_for(&[&format!("oci://{}/x", refusing.host())]);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&[&line(&refusing.host(), &tokens.host()), &format!("mu login {}", refusing.host())]);
}

/// A registry may know a repository by another name than its URL has, and then its token server knows only that one.
#[test]
fn the_scope_to_ask_for_is_the_one_of_the_challenge() {
    let registry = registry(true);
    registry.behave(|behaviour| behaviour.known_below = "virtual/".to_owned());
    let sandbox = sandbox(&registry.host());
    docker_login(&sandbox, &registry.host());
    offer(&sandbox);
    let before = registry.seen().len();
    sandbox.asks_for(&["web/proxy#^2"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.1.0", "hub.mu.com/web/proxy 2.0.0"]);
    let requests: Vec<String> = registry.requests().split_off(before);
    let tokens = requests.iter().filter(|request| request.contains("/token?"));
    // One for each repository; none is guessed.
    assert_eq!(tokens.count(), 2, "{requests:#?}");
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

#[test]
fn a_token_for_the_registry_itself_is_sent_there_and_nowhere_else() {
    const SCOPE: &str = "repository:charts/web:pull";
    for is_bearer in [true, false] {
        let server = OciServer::start(Behaviour::default());
        let host = server.host();
        Artifact::chart(&Chart::new("web", "1.0.0")).push(&host, "charts/web", "1.0.0");
        let thief = OciServer::start(Behaviour::default());
        server.behave(|behaviour| {
            behaviour.password = Some(("ada".to_owned(), PASSWORD.to_owned()));
            behaviour.realm = is_bearer.then(|| format!("http://{}/token", thief.host()));
        });
        let sandbox = Sandbox::new();
        let token = format!("token-for-{SCOPE}");
        let auth = STANDARD.encode("ada:another");
        let entry = format!("{{\"auth\": \"{auth}\", \"registrytoken\": \"{token}\"}}");
        docker_config(&sandbox, &format!("{{\"auths\": {{\"{host}\": {entry}}}}}"));
        sandbox.asks_for(&[&format!("oci://{host}/charts/web")]);
        let run = sandbox.mu(&["get", "-vv"]).does_not_say(&[&token]);
        // One that wants a password gets the token all the same, and says no.
        if is_bearer {
            run.ok()
        } else {
            run.fails()
        };
        let shown: Vec<_> = server
            .seen()
            .iter()
            .filter_map(|seen| seen.header("authorization").map(str::to_owned))
            .collect();
        let expected = format!("Bearer {token}");
        assert!(!shown.is_empty() && shown.iter().all(|shown| *shown == expected), "{shown:?}");
        assert!(thief.seen().is_empty(), "{:?}", thief.requests());
    }
}

#[test]
fn a_password_is_found_wherever_a_tool_keeps_it() {
    let auth = STANDARD.encode(format!("ada:{PASSWORD}"));
    let registry = registry(true);
    let author = {
        let mut author = sandbox(&registry.host());
        author.set_token(&registry.host(), &format!("ada:{PASSWORD}"));
        author
    };
    offer(&author);
    let host = registry.host();
    let text = |name: &str| format!("{{\"auths\": {{\"{name}\": {{\"auth\": \"{auth}\"}}}}}}");
    for (file, name) in [
        ("home/.config/containers/auth.json", host.clone()),
        ("home/.kcl/kpm/.kpm/config/config.json", host.clone()),
        ("home/.docker/config.json", format!("{host}/")),
        ("home/.docker/config.json", format!("https://{host}/v2")),
        ("DOCKER_AUTH_CONFIG", host.clone()),
    ] {
        let mut sandbox = sandbox(&host);
        match file {
            "DOCKER_AUTH_CONFIG" => sandbox.set(file, &text(&name)),
            file => mu_testing::write(sandbox.root(), file, text(&name)),
        }
        sandbox.asks_for(&["web/proxy#^2"]);
        let run = sandbox.mu(&["get", "-vv"]).ok();
        run.does_not_say(&[PASSWORD, &auth]);
    }
}

#[test]
fn what_keeps_a_password_from_being_found_is_named() {
    let registry = registry(true);
    let host = registry.host();
    for (config, said) in [
        ("{\"auths\": {},}".to_owned(), "config.json` cannot be read from line 1, column 14 on"),
        (
            format!("{{\"auths\": {{\"{host}\": \"{PASSWORD}\"}}}}"),
            "config.json` cannot be read from line 1",
        ),
        (
            format!("{{\"auths\": {{\"{host}\": {{\"auth\": \"%{PASSWORD}\"}}}}}}"),
            "config.json` is not `USER:PASSWORD` in Base64",
        ),
        (
            format!("{{\"auths\": {{\"{host}/acme\": {{\"auth\": \"YWRh\"}}}}}}"),
            "config.json` is not `USER:PASSWORD` in Base64",
        ),
        (
            "{\"credsStore\": \"desktop.exe\"}".to_owned(),
            "`docker-credential-desktop.exe`, which is to know it, is not in PATH",
        ),
        (
            "{\"credsStore\": \"kept\"}".to_owned(),
            "`docker-credential-kept`, which is to know it, says: gpg: no secret key",
        ),
    ] {
        let mut sandbox = sandbox(&host);
        keeper(&mut sandbox);
        let locked = "#!/bin/sh\necho 'gpg: no secret key'\nexit 1\n";
        mu_testing::write(sandbox.root(), "bin/docker-credential-kept", locked);
        docker_config(&sandbox, &config);
        sandbox.asks_for(&["web/log"]);
        let run = sandbox.mu(&["get"]).fails();
        run.says(&["a password may be where mu cannot look", said]).does_not_say(&[PASSWORD]);
    }
}
