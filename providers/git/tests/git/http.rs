//! Tests that are specific to http: credentials, redirects, plain http.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_provider::http::{AskedServer, Credential, Credentials, Http, HttpOptions, Secret};
use mu_provider::{ErrorKind, Listing, Provider as _, SafeUrl};
use mu_testing::http::{Reply, Seen, TestServer};

use crate::support::{HttpServer, Origin, World, set, written};

fn origin() -> Origin {
    let origin = Origin::new("private.git");
    origin.release("v1.0.0");
    origin
}

/// Refuses requests without this user and password.
fn guard(user: &str, password: &str) -> impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static {
    let expected = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    move |request| {
        (request.header("authorization") != Some(&expected))
            .then(|| Reply::status(401).header("www-authenticate", "Basic realm=\"git\""))
    }
}

/// A world whose Git has a credential helper that knows a password and takes notes.
fn with_helper(password: &str) -> (World, std::path::PathBuf) {
    let world = World::new();
    let (helper, log) = (world.folder.path().join("helper"), world.folder.path().join("log"));
    let script = format!(
        "#!/bin/sh\necho \"$1\" >> '{log}'\nsed 's/^/  /' >> '{log}'\n\
         [ \"$1\" = get ] && printf 'username=ada\\npassword={password}\\n'\nexit 0\n",
        log = log.display()
    );
    fs::write(&helper, script).expect("can be written");
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("can be executable");
    let config = world.folder.path().join("config");
    let text = format!("[credential]\n\thelper = {}\n", helper.display());
    fs::write(&config, text).expect("can be written");
    let provider = |options: &mut mu_provider_git::GitOptions| {
        let path = config.to_str().expect("is UTF-8").to_owned();
        set(options, "GIT_CONFIG_GLOBAL", path);
    };
    let provider = world.again(provider);
    (World { provider, ..world }, log)
}

#[test]
fn a_credential_helper_is_asked_when_the_server_asks() {
    let origin = origin();
    let server = HttpServer::with(origin.root(), guard("ada", "secret"));
    let (world, log) = with_helper("secret");
    let location = written(&server.root(), "private.git");
    let release = world.release(&location, "1.0.0");
    world.fetch(&location, &release).expect("is let in");
    let said = fs::read_to_string(&log).expect("was asked");
    let verbs: Vec<&str> = said.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(verbs, ["get", "store"], "{said}");
    assert!(said.contains(&format!("host={}", server.host())), "{said}");
    let shown: Vec<bool> =
        server.seen().iter().map(|seen| seen.header("authorization").is_some()).collect();
    assert_eq!(shown, [false, true, true, true], "only the first request is without");
}

#[test]
fn a_server_may_ask_only_when_something_is_fetched() {
    let origin = origin();
    let asks = guard("ada", "secret");
    let server = HttpServer::with(origin.root(), move |request| {
        (request.method == "POST").then(|| asks(request)).flatten()
    });
    let (world, log) = with_helper("secret");
    let location = written(&server.root(), "private.git");
    let release = world.release(&location, "1.0.0");
    world.fetch(&location, &release).expect("is let in");
    let said = fs::read_to_string(&log).expect("was asked");
    let verbs: Vec<&str> = said.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(verbs, ["get", "store"], "{said}");
    let (wrong, _) = with_helper("hunter2");
    let error = wrong.provider.list(&location, None, &wrong.notes).expect_err("is not let in");
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.hints()[0].contains("MU_TOKEN_"), "{:?}", error.hints());
}

#[test]
fn a_helper_may_have_a_token_as_it_is() {
    let origin = origin();
    // Git before 2.46 hands out users and passwords alone.
    let is_known = std::process::Command::new(mu_testing::program("git"))
        .args(["credential", "capability"])
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("authtype"));
    let (world, log) = match is_known {
        true => with_helper("x\\ncapability[]=authtype\\nauthtype=Bearer\\ncredential=hunter2"),
        false => with_helper("hunter2"),
    };
    let expected = match is_known {
        true => "Bearer hunter2".to_owned(),
        false => format!("Basic {}", STANDARD.encode("ada:hunter2")),
    };
    let server = HttpServer::with(origin.root(), move |request| {
        (request.header("authorization") != Some(&expected))
            .then(|| Reply::status(401).header("www-authenticate", "Bearer realm=\"git\", Basic"))
    });
    let location = written(&server.root(), "private.git");
    let release = world.release(&location, "1.0.0");
    world.fetch(&location, &release).expect("is let in");
    let said = fs::read_to_string(&log).expect("was asked");
    assert!(!is_known || said.contains("  authtype=Bearer\n  credential=hunter2"), "{said}");
    assert!(said.contains("\nstore\n"), "{said}");
    assert!(!world.notes.said().contains("hunter2"));
}

#[test]
fn a_wrong_password_is_forgotten_and_never_shown() {
    let origin = origin();
    let server = HttpServer::with(origin.root(), guard("ada", "secret"));
    let (world, log) = with_helper("hunter2");
    let location = written(&server.root(), "private.git");
    let error = world.provider.list(&location, None, &world.notes).expect_err("is not let in");
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert!(error.hints()[0].contains("MU_TOKEN_"), "{:?}", error.hints());
    let said = fs::read_to_string(&log).expect("was asked");
    assert!(said.contains("erase"), "{said}");
}

#[test]
fn without_credentials_nobody_is_asked_for_them() {
    let origin = origin();
    let server = HttpServer::with(origin.root(), guard("ada", "secret"));
    let world = World::new();
    let location = written(&server.root(), "private.git");
    let error = world.provider.list(&location, None, &world.notes).expect_err("is not let in");
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.to_string().contains("there are none"), "{error}");
    // All that is looked into is named.
    let hint = &error.hints()[0];
    for place in ["`mu login ", "`MU_TOKEN_", "Git's settings", "`~/.netrc`", "credential helper"] {
        assert!(hint.contains(place), "{place} is not in {hint}");
    }
}

/// A token for one host.
struct Token(String);

impl Credentials for Token {
    fn find(&self, asked: &AskedServer) -> Option<Credential> {
        let is_it = asked.host_and_unusual_port() == self.0;
        is_it.then(|| Credential::token(asked, Secret::new("hunter2")))
    }
}

fn with_token(host: String) -> World {
    World::with(|options| {
        let credentials = Arc::new(Token(host));
        options.http = Http::new(HttpOptions { credentials, retries: 0, ..HttpOptions::default() });
    })
}

#[test]
fn a_stored_token_is_a_password() {
    let origin = origin();
    let server = HttpServer::with(origin.root(), guard("x-access-token", "hunter2"));
    let world = with_token(server.host());
    let location = written(&server.root(), "private.git");
    world.fetch(&location, &world.release(&location, "1.0.0")).expect("is let in");
}

#[test]
fn credentials_do_not_follow_a_redirect_to_another_host() {
    let origin = origin();
    let other = HttpServer::start(origin.root());
    let there = other.root();
    let server = TestServer::start(move |request, _| match request.header("authorization") {
        None => Reply::status(401).header("www-authenticate", "Basic realm=\"git\""),
        Some(_) => Reply::redirect(format!("{there}{}", request.path.trim_start_matches('/'))),
    });
    let world = with_token(server.host());
    let location = written(&server.url(""), "private.git");
    let release = world.release(&location, "1.0.0");
    world.fetch(&location, &release).expect("is public there");
    assert!(server.seen()[1].header("authorization").is_some());
    let seen = other.seen();
    assert_eq!(seen.len(), 3, "listing and fetching happen there: {:?}", other.requests());
    assert!(seen.iter().all(|seen| seen.header("authorization").is_none()), "{seen:?}");
}

#[test]
fn nobody_is_asked_for_credentials_of_where_a_redirect_leads() {
    let origin = origin();
    let private = HttpServer::with(origin.root(), guard("ada", "secret"));
    let there = private.root();
    let server = TestServer::start(move |request, _| {
        Reply::redirect(format!("{there}{}", request.path.trim_start_matches('/')))
    });
    let (world, log) = with_helper("secret");
    let location = written(&server.url(""), "private.git");
    let error = world.provider.list(&location, None, &world.notes).expect_err("is not let in");
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.to_string().contains(&private.host()), "{error}");
    assert!(!log.exists(), "the helper was asked");
}

#[test]
fn what_another_host_refuses_is_not_forgotten() {
    let other = TestServer::start(|_, _| {
        Reply::status(401).header("www-authenticate", "Basic realm=\"other\"")
    });
    let there = other.url("");
    let server = TestServer::start(move |request, _| match request.header("authorization") {
        None => Reply::status(401).header("www-authenticate", "Basic realm=\"git\""),
        Some(_) => Reply::redirect(format!("{there}{}", request.path.trim_start_matches('/'))),
    });
    let (world, log) = with_helper("secret");
    let location = written(&server.url(""), "private.git");
    let error = world.provider.list(&location, None, &world.notes).expect_err("is not let in");
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(other.seen().iter().all(|seen| seen.header("authorization").is_none()));
    let said = fs::read_to_string(&log).expect("was asked");
    assert!(said.contains("get") && !said.contains("erase"), "{said}");
}

#[test]
fn plain_http_is_refused_before_anything_is_sent() {
    let world = World::new();
    let location = written("http://example.com/", "a.git");
    let error = world.provider.list(&location, None, &world.notes).expect_err("is plain http");
    assert_eq!(error.kind(), ErrorKind::Refused);
}

#[test]
fn a_listing_and_a_fetch_are_three_requests() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let world = World::new();
    let location = written(&server.root(), "private.git");
    let release = world.release(&location, "1.0.0");
    world.provider.manifest(&location, &release, &world.notes).expect("can be read");
    world.fetch(&location, &release).expect("can be fetched");
    assert_eq!(
        server.requests(),
        [
            "GET /private.git/info/refs?service=git-upload-pack",
            "POST /private.git/git-upload-pack",
            "POST /private.git/git-upload-pack"
        ]
    );
    assert!(world.notes.received() > 0, "progress is told");
}

#[test]
fn a_server_of_plain_files_is_explained() {
    let server = TestServer::start(|_, _| {
        let line = format!("{}\trefs/heads/main\n", "1".repeat(40));
        Reply::body(line).header("content-type", "text/plain")
    });
    let world = World::new();
    let location = written(&server.url(""), "a.git");
    let error = world.provider.list(&location, None, &world.notes).expect_err("is not supported");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().contains("plain files"), "{error}");
}

#[test]
fn a_cut_answer_is_asked_for_again() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let there = server.root();
    let posts = std::sync::atomic::AtomicUsize::new(0);
    let front = TestServer::start(move |request, _| {
        let path = request.path.trim_start_matches('/');
        if request.method == "GET" {
            return relay(&there, path, None);
        }
        let reply = relay(&there, path, Some(request));
        match posts.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            // The first answer with a pack in it.
            1 => reply.cut_after(60),
            _ => reply,
        }
    });
    let world = World::new();
    let location = written(&front.url(""), "private.git");
    let release = world.release(&location, "1.0.0");
    world.fetch(&location, &release).expect("the second answer is whole");
    assert!(world.notes.said().contains("trying once more"), "{}", world.notes.said());
    let packs = fs::read_dir(world.database().join("objects/pack")).expect("can be read").count();
    assert_eq!(packs, 2, "one pack and its index, nothing half done");
}

/// Passes a request on to `root`.
fn relay(root: &str, path: &str, post: Option<&Seen>) -> Reply {
    let http = Http::new(HttpOptions::default());
    let url = SafeUrl::parse(&format!("{root}{path}")).expect("is a URL");
    let request = match post {
        Some(seen) => http
            .post(&url)
            .body(seen.body.clone())
            .header("content-type", "application/x-git-upload-pack-request"),
        None => http.get(&url),
    };
    let mut response = request.header("git-protocol", "version=2").send().expect("answers");
    let mut body = Vec::new();
    std::io::Read::read_to_end(&mut response, &mut body).expect("can be read");
    Reply::body(body).header("content-type", response.header("content-type").expect("has a type"))
}

#[test]
fn what_is_absent_is_asked_for_once() {
    let server = TestServer::start(|_, _| Reply::status(404));
    let world = World::new();
    let location = written(&server.url(""), "a.git");
    for _ in 0..3 {
        let listing = world.provider.list(&location, None, &world.notes).expect("answers");
        assert!(matches!(listing, Listing::Absent { .. }), "{listing:?}");
    }
    assert_eq!(server.requests().len(), 1);
}
