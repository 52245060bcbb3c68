//! The way to a server as the user has set it up for Git: what `git` itself would use to reach a URL counts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_provider::{ErrorKind, Listing, Provider as _};
use mu_testing::http::{Reply, Seen};
use mu_testing::{AUTHORITY, LOCALHOST, Nginx};

use crate::support::{HttpServer, Origin, World, set, told, written};

fn origin() -> Origin {
    let origin = Origin::new("private.git");
    origin.release("v1.0.0");
    origin
}

/// Refuses requests without this header.
fn requiring(name: &'static str, value: String) -> impl Fn(&Seen) -> Option<Reply> + Send + Sync {
    move |request| {
        (request.header(name) != Some(&value))
            .then(|| Reply::status(401).header("www-authenticate", "Basic realm=\"git\""))
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// A world whose user has this configuration of Git, in which `{home}` stands for the home folder, and these files there.
fn configured(config: &str, files: &[(&str, &str)]) -> World {
    let world = World::new();
    let home = world.folder.path().join("home");
    fs::create_dir_all(&home).expect("can be made");
    let config = config.replace("{home}", &home.display().to_string());
    fs::write(home.join("config"), config).expect("can be written");
    for (name, text) in files {
        fs::write(home.join(name), text).expect("can be written");
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(home.join(name), mode).expect("can be executable");
    }
    let provider = world.again(|options| {
        set(options, "HOME", home.display().to_string());
        set(options, "GIT_CONFIG_GLOBAL", home.join("config").display().to_string());
    });
    World { provider, ..world }
}

/// Fetches the package; what was said on the way has no secret.
fn fetched(world: &World, root: &str) {
    let location = written(root, "private.git");
    let release = world.release(&location, "1.0.0");
    world.fetch(&location, &release).expect("is let in");
    assert!(!world.notes.said().contains("hunter2"), "{}", world.notes.said());
}

#[test]
fn a_password_in_a_replaced_url_is_used_and_shown_nowhere() {
    let origin = origin();
    let server =
        HttpServer::with(origin.root(), requiring("authorization", basic("ci", "hunter2")));
    let host = server.host();
    let config = format!("[url \"http://ci:hunter2@{host}/\"]\n\tinsteadOf = http://{host}/\n");
    let world = configured(&config, &[]);
    fetched(&world, &server.root());
    let wrong = configured(&config.replace("ci:hunter2", "ci:hunter2x"), &[]);
    let error = wrong.provider.list(&written(&server.root(), "private.git"), None, &wrong.notes);
    let error = error.expect_err("is not let in");
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(!told(&error).contains("hunter2"), "{}", told(&error));
}

#[test]
fn the_list_of_passwords_at_home_counts_for_the_hosts_that_it_names() {
    let origin = origin();
    let server =
        HttpServer::with(origin.root(), requiring("authorization", basic("ci", "hunter2")));
    let entry = "machine 127.0.0.1\n  login ci\n  password hunter2\n";
    let host = server.host();
    let name = host.split(':').next().expect("has a name");
    let entry = entry.replace("127.0.0.1", name);
    fetched(&configured("", &[(".netrc", &entry)]), &server.root());
    // One for all hosts would go to any that a manifest names.
    for other in
        ["default login ci password hunter2\n", "machine other login ci password hunter2\n"]
    {
        let world = configured("", &[(".netrc", other)]);
        let listed =
            world.provider.list(&written(&server.root(), "private.git"), None, &world.notes);
        assert_eq!(listed.expect_err("is not let in").kind(), ErrorKind::Auth, "{other}");
    }
}

#[test]
fn the_program_that_asks_for_passwords_is_asked() {
    let origin = origin();
    let server =
        HttpServer::with(origin.root(), requiring("authorization", basic("ci", "hunter2")));
    let script = "#!/bin/sh\ncase \"$1\" in Username*) echo ci;; *) echo hunter2;; esac\n";
    let world = configured("[core]\n\taskPass = {home}/ask\n", &[("ask", script)]);
    fetched(&world, &server.root());
    // The variable takes precedence.
    let world = configured("[core]\n\taskPass = /nowhere\n", &[("ask", script)]);
    let home = world.folder.path().join("home");
    let provider = world.again(|options| {
        set(options, "HOME", home.display().to_string());
        set(options, "GIT_CONFIG_GLOBAL", home.join("config").display().to_string());
        set(options, "GIT_ASKPASS", home.join("ask").display().to_string());
    });
    fetched(&World { provider, ..world }, &server.root());
    // So does, if there is no other, the program that ssh would ask.
    let world = configured("", &[("ask", script)]);
    let home = world.folder.path().join("home");
    let provider = world.again(|options| {
        set(options, "HOME", home.display().to_string());
        set(options, "SSH_ASKPASS", home.join("ask").display().to_string());
    });
    fetched(&World { provider, ..world }, &server.root());
}

#[test]
fn cookies_go_to_the_server_that_they_are_for() {
    let origin = origin();
    let server = HttpServer::with(origin.root(), requiring("cookie", "o=hunter2; b=2".to_owned()));
    let host = server.host();
    let name = host.split(':').next().expect("has a name");
    let cookies = format!(
        "# Netscape HTTP Cookie File\n#HttpOnly_{name}\tFALSE\t/\tFALSE\t2147483647\to\thunter2\n\
         .other.example\tTRUE\t/\tFALSE\t2147483647\to\tx\n{name}\tFALSE\t/private\tFALSE\t0\tp\tx\n\
         {name}\tFALSE\t/\tTRUE\t0\tsecure\tx\n#{name}\tFALSE\t/\tFALSE\t0\tc\tx\n\
         {name}\tFALSE\t/private.git\tFALSE\t0\tb\t2\nno cookie\n"
    );
    let files = [("cookies", &*cookies)];
    fetched(&configured("[http]\n\tcookieFile = {home}/cookies\n", &files), &server.root());
    // For another server, nothing is set.
    let config = "[http \"https://other.example\"]\n\tcookieFile = {home}/cookies\n";
    let world = configured(config, &files);
    let listed = world.provider.list(&written(&server.root(), "private.git"), None, &world.notes);
    assert_eq!(listed.expect_err("is not let in").kind(), ErrorKind::Auth);
}

#[test]
fn no_redirect_is_followed_if_the_user_says_so() {
    let origin = origin();
    let other = HttpServer::start(origin.root());
    let there = other.root();
    let server = HttpServer::with(origin.root(), move |request| {
        Some(Reply::redirect(format!("{there}{}", request.path.trim_start_matches('/'))))
    });
    for word in ["initial", "true"] {
        fetched(&configured(&format!("[http]\n\tfollowRedirects = {word}\n"), &[]), &server.root());
    }
    let asked = other.requests().len();
    let world = configured("[http]\n\tfollowRedirects = false\n", &[]);
    let error = world.provider.list(&written(&server.root(), "private.git"), None, &world.notes);
    let error = error.expect_err("is redirected");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(told(&error).contains("http.followRedirects"), "{}", told(&error));
    assert!(told(&error).contains(&other.host()), "{}", told(&error));
    assert_eq!(other.requests().len(), asked, "nothing was sent there");
}

#[test]
fn headers_for_a_url_go_to_its_server_alone() {
    let origin = origin();
    for (name, value, sent) in [
        ("authorization", "hunter2", "Bearer hunter2".to_owned()),
        ("authorization", "hunter2", basic("x", "hunter2")),
        ("private-token", "hunter2", "hunter2".to_owned()),
    ] {
        let server = HttpServer::with(origin.root(), requiring(name, sent.clone()));
        let config = format!(
            "[http \"http://{}/\"]\n\textraHeader = {name}: {sent}\n[http \"http://other/\"]\n\textraHeader = X-Other: {value}\n",
            server.host()
        );
        fetched(&configured(&config, &[]), &server.root());
        assert!(server.seen().iter().all(|seen| seen.header("x-other").is_none()));
        // A server that it redirects to gets nothing.
        let foreign =
            HttpServer::with(origin.root(), requiring("authorization", "never".to_owned()));
        let to = foreign.root();
        let leading = HttpServer::with(origin.root(), move |seen| {
            Some(Reply::redirect(format!("{}{}", to.trim_end_matches('/'), seen.path)))
        });
        let config = config.replace(&server.host(), &leading.host());
        let world = configured(&config, &[]);
        let listed =
            world.provider.list(&written(&leading.root(), "private.git"), None, &world.notes);
        listed.expect_err("is not let in");
        for seen in foreign.seen() {
            assert_eq!((seen.header("authorization"), seen.header("private-token")), (None, None));
        }
    }
}

#[test]
fn several_headers_are_sent_as_git_counts_them() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let root = server.root();
    let headers = |lines: &[&str]| {
        lines.iter().map(|line| format!("\textraHeader = {line}\n")).collect::<String>()
    };
    let section = |url: &str, lines: &[&str]| match url {
        "" => format!("[http]\n{}", headers(lines)),
        url => format!("[http \"{url}\"]\n{}", headers(lines)),
    };
    let inner = format!("{root}private.git");
    for (config, sent) in [
        (section("", &["X-A: 1", "X-B: 2"]), "x-a=1 x-b=2"),
        (section("", &["X-A: 1", "\"\"", "X-B: 2"]), "x-b=2"),
        (section("", &["X-A: 1"]) + &section(&root, &["X-B: 2", "X-C: 3"]), "x-a=1 x-b=2 x-c=3"),
        // What is less close and comes later does not count.
        (section(&root, &["X-A: 1"]) + &section("", &["X-B: 2"]), "x-a=1"),
        (section(&inner, &["X-A: 1"]) + &section(&root, &["X-B: 2"]), "x-a=1"),
        (section(&root, &["X-A: 1"]) + &section(&inner, &["X-B: 2"]), "x-a=1 x-b=2"),
        (section(&root, &["X-A: 1"]) + &section(&inner, &["\"\"", "X-B: 2"]), "x-b=2"),
        (section("http://other/", &["X-A: 1"]) + &section(&root, &["X-B: 2"]), "x-b=2"),
        (section("", &["X-A: 1", "X-A: 2"]), "x-a=1 x-a=2"),
    ] {
        let seen = |since: usize| {
            let seen = server.seen().into_iter().nth(since).expect("was asked");
            let own = seen.headers.into_iter().filter(|(name, _)| name.starts_with("x-"));
            own.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        let before = server.seen().len();
        let world = configured(&config, &[]);
        let listed = world.provider.list(&written(&root, "private.git"), None, &world.notes);
        listed.expect("everybody is let in");
        assert_eq!(seen(before), sent, "{config}");
        // Git itself sends the same.
        let before = server.seen().len();
        let home = world.folder.path().join("home");
        let status = std::process::Command::new("git")
            .args(["ls-remote", "--quiet", &inner])
            .env("GIT_CONFIG_GLOBAL", home.join("config"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.is_ok_and(|status| status.success()));
        assert_eq!(seen(before), sent, "git, {config}");
    }
}

#[test]
fn certificates_for_a_url_are_trusted_and_a_wrong_file_is_named() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let nginx = Nginx::in_front_of(server.root().trim_end_matches('/'), &LOCALHOST);
    let root = nginx.url("");
    let plain = World::new();
    let listed = plain.provider.list(&written(&root, "private.git"), None, &plain.notes);
    assert_eq!(listed.expect_err("is not trusted").kind(), ErrorKind::Network);
    for config in [
        "[http]\n\tsslCAInfo = ~/authority.pem\n".to_owned(),
        format!("[http \"{root}\"]\n\tsslCAInfo = ~/authority.pem\n"),
        "[http]\n\tsslCAPath = ~/\n".to_owned(),
    ] {
        fetched(&configured(&config, &[("authority.pem", AUTHORITY)]), &root);
    }
    for config in ["[http]\n\tsslCAInfo = ~/nothing.pem\n", "[http]\n\tsslCAInfo = ~/config\n"] {
        let world = configured(config, &[]);
        let listed = world.provider.list(&written(&root, "private.git"), None, &world.notes);
        let error = listed.expect_err("is not trusted");
        assert!(told(&error).contains("/home/"), "{}", told(&error));
    }
    let elsewhere = "[http \"https://other.example/\"]\n\tsslCAInfo = ~/authority.pem\n";
    let world = configured(elsewhere, &[("authority.pem", AUTHORITY)]);
    let listed = world.provider.list(&written(&root, "private.git"), None, &world.notes);
    listed.expect_err("is not trusted");
}

#[test]
fn the_proxy_for_a_url_is_used() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let config = format!("[http]\n\tproxy = {}\n", server.root());
    let world = configured(&config, &[]);
    // The name is one for the proxy alone.
    let location = mu_provider::Location {
        insecure: true,
        ..written("http://nowhere.invalid/", "private.git")
    };
    let listed = world.provider.list(&location, None, &world.notes);
    assert!(!server.requests().is_empty(), "the proxy was asked: {listed:?}");
}

#[test]
fn a_stated_header_is_sent_before_a_server_asks_for_it() {
    let origin = origin();
    let expected = basic("ci", "hunter2");
    for strangers in [404, 403] {
        let wanted = expected.clone();
        let server = HttpServer::with(origin.root(), move |seen| {
            (seen.header("authorization") != Some(&wanted)).then(|| Reply::status(strangers))
        });
        let config = format!("[http]\n\textraHeader = Authorization: {expected}\n");
        fetched(&configured(&config, &[]), &server.root());
        let world = configured("", &[]);
        let listed =
            world.provider.list(&written(&server.root(), "private.git"), None, &world.notes);
        assert!(!matches!(listed, Ok(Listing::Found(_))), "strangers see nothing");
    }
}

#[test]
fn a_helper_is_told_what_the_server_asks_for_and_again_all_that_it_said() {
    let origin = origin();
    let server =
        HttpServer::with(origin.root(), requiring("authorization", basic("ci", "hunter2")));
    let script = "#!/bin/sh\ncat >\"{home}/$1\"\n[ \"$1\" != get ] || printf '%s\\n' username=ci password=hunter2 \\\n    password_expiry_utc=4102444800 oauth_refresh_token=again\n";
    let world = configured("[credential]\n\thelper = {home}/helper\n", &[]);
    let home = world.folder.path().join("home");
    let helper = home.join("helper");
    fs::write(&helper, script.replace("{home}", &home.display().to_string())).expect("is written");
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o700)).expect("can be executable");
    fetched(&world, &server.root());
    let asked = fs::read_to_string(home.join("get")).expect("it was asked");
    assert!(asked.contains("wwwauth[]=Basic realm=\"git\"\n"), "{asked}");
    let stored = fs::read_to_string(home.join("store")).expect("it was told");
    for line in ["password=hunter2", "password_expiry_utc=4102444800", "oauth_refresh_token=again"]
    {
        assert!(stored.lines().any(|one| one == line), "{stored}");
    }
}

#[test]
fn a_password_goes_to_no_server_that_asks_for_something_safer() {
    let origin = origin();
    let challenge = "Digest realm=\"git\", nonce=\"1\", qop=\"auth\"";
    let server = HttpServer::with(origin.root(), move |_| {
        Some(Reply::status(401).header("www-authenticate", challenge))
    });
    let name = server.host();
    let name = name.split(':').next().expect("has a name");
    let entry = format!("machine {name} login ci password hunter2\n");
    let world = configured("", &[(".netrc", &entry)]);
    let listed = world.provider.list(&written(&server.root(), "private.git"), None, &world.notes);
    let error = listed.expect_err("is not let in");
    assert!(told(&error).contains("does not know: Digest realm"), "{}", told(&error));
    assert!(server.seen().iter().all(|seen| seen.header("authorization").is_none()));
}

#[test]
fn a_token_with_an_empty_password_is_one() {
    let origin = origin();
    let server = HttpServer::with(origin.root(), requiring("authorization", basic("token", "")));
    let host = server.host();
    let config = format!("[url \"http://token:@{host}/\"]\n\tinsteadOf = http://{host}/\n");
    fetched(&configured(&config, &[]), &server.root());
}

#[test]
fn a_configuration_that_git_cannot_read_is_an_error_and_not_passed_over() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let config = format!(
        "[url \"http://mirror.invalid/\"]\n\tinsteadOf = http://{}/\n[user\n",
        server.host()
    );
    let world = configured(&config, &[]);
    let listed = world.provider.list(&written(&server.root(), "private.git"), None, &world.notes);
    let error = listed.expect_err("what is set is not known");
    assert!(told(&error).contains("bad config line"), "{}", told(&error));
    assert_eq!(server.requests().len(), 0, "nothing was asked in another way than Git would");
    // A file for `git config` alone is none of the user's configuration.
    let world = configured("", &[("other", "[user\n")]);
    let home = world.folder.path().join("home");
    let provider = world.again(|options| {
        set(options, "HOME", home.display().to_string());
        set(options, "GIT_CONFIG_GLOBAL", home.join("config").display().to_string());
        set(options, "GIT_CONFIG", home.join("other").display().to_string());
    });
    fetched(&World { provider, ..world }, &server.root());
}

#[test]
fn what_the_user_forbids_git_is_not_done() {
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let place = written(&server.root(), "private.git");
    for (config, setting) in [
        ("[protocol \"http\"]\n\tallow = never\n", "protocol.http.allow"),
        ("[protocol]\n\tallow = never\n", "protocol.allow"),
        ("[protocol]\n\tallow = never\n[protocol \"http\"]\n\tallow = always\n", ""),
        ("[protocol \"ssh\"]\n\tallow = never\n", ""),
    ] {
        let world = configured(config, &[]);
        match world.provider.list(&place, None, &world.notes) {
            Ok(_) => assert_eq!(setting, "", "{config}"),
            Err(error) => assert!(
                !setting.is_empty() && told(&error).contains(setting),
                "{config}: {}",
                told(&error)
            ),
        }
    }
    let world = World::new();
    let provider =
        world.again(|options| set(options, "GIT_ALLOW_PROTOCOL", "https:ssh".to_owned()));
    let listed = provider.list(&place, None, &world.notes);
    let error = listed.expect_err("is not allowed");
    assert!(told(&error).contains("GIT_ALLOW_PROTOCOL"), "{}", told(&error));
}
