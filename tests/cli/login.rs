//! `mu login` and `mu logout`: where tokens are stored, and which hosts they are sent to.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use mu_testing::http::{Reply, TestServer};

use crate::support::{Nginx, Run, Sandbox};

/// Runs `mu` and sends it a text.
pub(crate) fn send(sandbox: &Sandbox, arguments: &[&str], text: &str) -> Run {
    let file = sandbox.path("stdin");
    fs::File::create(&file).and_then(|mut file| file.write_all(text.as_bytes())).expect("is ours");
    let mut command = sandbox.command(arguments);
    command.stdin(Stdio::from(fs::File::open(file).expect("is there")));
    sandbox.run(arguments, command)
}

/// A hub on nginx that requires the token `hunter2`.
pub(crate) fn guarded(sandbox: &mut Sandbox) -> Nginx {
    sandbox.hub().release("aws/ec2", "1.0.0");
    let guard = "if ($http_authorization != \"Bearer hunter2\") { return 401; }";
    let nginx = Nginx::serve(sandbox.hub().folder(), guard);
    sandbox.hub_is_at(&nginx.url(""));
    nginx
}

#[test]
fn a_stored_token_opens_its_host() {
    let mut sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    let nginx = guarded(&mut sandbox);
    let host = nginx.host();
    let login = format!("mu login {host}");
    sandbox.mu(&["get"]).fails().says(&[&login, "MU_TOKEN_"]);
    sandbox.mu(&["get", "--json"]).fails_with("auth");
    // People know the base; its registry determines the host.
    let run = send(&sandbox, &["login", "hub.mu.com"], "hunter2\n").ok();
    run.says(&[&host]).does_not_say(&["hunter2"]);
    let file = sandbox.path("home/.mu/credentials.json");
    assert_eq!(fs::metadata(&file).expect("was written").permissions().mode() & 0o777, 0o600);
    sandbox.mu(&["get"]).ok();
    assert!(!sandbox.read("Mu.lock").contains("hunter2"));
    // A variable takes precedence, even if its token is wrong.
    let variable = mu_provider::http::token_variable(&host).expect("it has one");
    sandbox.set(&variable, "wrong");
    fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    sandbox.mu(&["get"]).fails().says(&["was refused"]).does_not_say(&["wrong\n", "hunter2"]);
    sandbox.set(&variable, "");
    sandbox.mu(&["logout", "hub.mu.com"]).ok().says(&["removed the token"]);
    assert!(!file.exists());
    sandbox.mu(&["get"]).fails().says(&[&login]);
    sandbox.mu(&["logout", "hub.mu.com"]).ok().says(&["nothing to do"]);
}

#[cfg(feature = "oci")]
#[test]
fn dockers_registry_has_one_token_under_all_its_names() {
    let mut sandbox = Sandbox::new();
    let stored = |sandbox: &Sandbox| {
        fs::read_to_string(sandbox.path("home/.mu/credentials.json")).unwrap_or_default()
    };
    for name in ["docker.io", "index.docker.io", "registry-1.docker.io"] {
        let login = ["login", "--yes", "--offline", name];
        send(&sandbox, &login, "ada:hunter2\n").ok().says(&["for docker.io in"]);
        assert!(stored(&sandbox).contains("\"docker.io\""), "{name}");
    }
    sandbox.mu(&["logout", "registry-1.docker.io"]).ok().says(&["removed the token"]);
    assert_eq!(stored(&sandbox), "");
    sandbox.mu(&["logout", "docker.io"]).ok().says(&["nothing to do"]);
    sandbox.set("MU_TOKEN_INDEX_DOCKER_IO", "ada:hunter2");
    send(&sandbox, &["login", "--yes", "--offline", "docker.io"], "ada:hunter2\n")
        .ok()
        .says(&["`MU_TOKEN_INDEX_DOCKER_IO` is set"]);
}

#[test]
fn a_token_is_for_one_host_and_port() {
    let mut sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    let _nginx = guarded(&mut sandbox);
    for other in ["127.0.0.1", "127.0.0.1:1", "other.example"] {
        send(&sandbox, &["login", "--yes", "--offline", other], "hunter2").ok();
    }
    sandbox.mu(&["get"]).fails().says(&["mu login"]).does_not_say(&["hunter2"]);
}

#[test]
fn what_is_no_token_is_refused() {
    let sandbox = Sandbox::new();
    for (base, text, said) in [
        ("acme.example", "", "no token was given"),
        ("acme.example", "\n", "no token was given"),
        ("acme.example", "two words", "one word of visible ASCII"),
        ("acme.example", "ümläut", "one word of visible ASCII"),
        ("hub.mu.com", "hunter2", "which takes no token"),
        ("https://HUB.mu.com/", "hunter2", "which takes no token"),
    ] {
        let run = send(&sandbox, &["login", base], text);
        assert_eq!(run.status, 2, "{}", run.shown());
        run.says(&[said]).does_not_say(&["hunter2", "ümläut", "two words"]);
    }
    send(&sandbox, &["login", "not a base"], "hunter2").fails();
    assert!(!sandbox.has("home/.mu/credentials.json"));
    // There is no argument for it.
    let run = sandbox.mu(&["login", "acme.example", "hunter2"]);
    assert_eq!(run.status, 2, "{}", run.shown());
}

#[test]
fn a_damaged_file_is_never_overwritten() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("home/.mu/credentials.json");
    for text in ["{\"version\": 1, \"tokens\": {\"a.example\": \"secr", "{\"version\": 9}"] {
        fs::write(&file, text).expect("is ours");
        let login = ["login", "--yes", "--offline", "acme.example"];
        let run = send(&sandbox, &login, "hunter2").fails();
        run.says(&["is damaged, or was written by a newer mu"]).does_not_say(&["secr"]);
        assert_eq!(fs::read_to_string(&file).expect("is there"), text);
    }
}

#[test]
fn many_logins_at_once_lose_none() {
    let sandbox = Sandbox::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let host = format!("h{number}.example");
                let mut command = sandbox.command(&["login", "--yes", "--offline", &host]);
                let mut child = command
                    .stdin(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("mu can be run");
                let mut stdin = child.stdin.take().expect("is piped");
                stdin.write_all(b"token\n").expect("is read");
                drop(stdin);
                assert!(child.wait().expect("ends").success());
            });
        }
    });
    let text = fs::read_to_string(sandbox.path("home/.mu/credentials.json")).expect("is there");
    assert_eq!(text.matches(".example").count(), 8, "{text}");
}

#[test]
fn a_variable_of_another_host_or_port_is_told_of_and_not_sent() {
    let mut sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    let folder = sandbox.path("hub");
    let server = TestServer::start(move |request, _| match request.header("authorization") {
        Some("Bearer hunter2") => {
            let file = fs::read(folder.join(request.path.trim_start_matches('/')));
            file.map_or_else(|_| Reply::status(404), Reply::body)
        }
        Some(other) => panic!("{other}"),
        None => Reply::status(401),
    });
    let url = server.url("");
    sandbox.hub_is_at(&url);
    let port = server.host().rsplit(':').next().expect("has one").to_owned();
    // By either name, earlier builds would have sent it.
    for former in ["MU_TOKEN_127_0_0_1".to_owned(), format!("MU_TOKEN_127_0_0_1_{port}")] {
        sandbox.set(&former, "hunter2");
        let run = sandbox.mu(&["get"]).fails();
        let warning = format!("`{former}` is not sent to `127.0.0.1:{port}`");
        assert_eq!(run.stderr.matches("is not sent to").count(), 1, "{}", run.shown());
        run.says(&[&warning, &format!("`MU_TOKEN_127_0_0_1___{port}`")]).does_not_say(&["hunter2"]);
        sandbox.set(&former, "");
    }
    sandbox.set(&format!("MU_TOKEN_127_0_0_1___{port}"), "hunter2");
    sandbox.mu(&["get"]).ok().does_not_say(&["is not sent"]);
}

#[test]
fn secrets_in_urls_are_refused_and_never_shown() {
    let sandbox = Sandbox::new();
    let settings = |url: &str| {
        sandbox
            .write(".mu/workspace.yaml", &format!("registries:\n  acme.co/: \"{url}\" # ours\n"));
    };
    for (url, said) in [
        ("https://ada:hunter2@h.example/", "a password does not belong in this file"),
        ("https://hunter2@h.example/", "may be a token"),
        ("git+https://hunter2@h.example/a.git", "may be a token"),
        ("https://h.example/?sig=hunter2", "no `?`"),
    ] {
        settings(url);
        for arguments in [&["get"][..], &["registry", "list"], &["get", "--json"]] {
            sandbox.mu(arguments).fails().says(&[said]).does_not_say(&["hunter2"]);
        }
        settings("https://h.example/");
        let run = sandbox.mu(&["registry", "add", "other.co/", url]);
        assert_eq!(run.status, 2, "{}", run.shown());
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
        run.says(&[said]);
        assert!(!sandbox.read(".mu/workspace.yaml").contains("hunter2"));
    }
    sandbox.asks_for(&[]);
    sandbox.write(
        "Mu.lock",
        "version: 1\npackages:\n- id: h.example/a\n  version: 1.0.0\n  source: git+https://hunter2@h.example/a.git\n",
    );
    for arguments in [&["list", "--json"][..], &["get", "--frozen"]] {
        sandbox
            .mu(arguments)
            .fails()
            .says(&["git+https://****@h.example/a.git"])
            .does_not_say(&["hunter2"]);
    }
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was written");
    for reference in ["https://hunter2@github.com/a/b", "git+https://hunter2@h.example/a.git"] {
        sandbox.asks_for(&[reference]);
        sandbox.mu(&["get"]).fails().says(&["may be a token"]).does_not_say(&["hunter2"]);
        sandbox.asks_for(&[]);
        let run = sandbox.mu(&["get", "--json", reference]).fails();
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
        run.says(&["may be a token"]);
    }
}
