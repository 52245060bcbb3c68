//! The same packages, published to a folder, through a server, and into a bucket: every reader gets the same.

use std::fs;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{Azurite, GoogleServer, Nginx, S3Server, Sandbox, Served, write};

/// A hub in each kind of object store.
const BUCKETS: [&str; 3] = ["s3://packages/hub", "az://packages/hub", "gs://packages/hub"];

/// Two packages at `author/`, of which one needs the other.
fn author(sandbox: &Sandbox) {
    let folder = sandbox.path("author");
    write(&folder, ".mu/workspace.yaml", "namespace: acme\n");
    write(&folder, "lib/Mu.yaml", "name: acme/lib\nversion: 1.2.0\ndescription: A library\n");
    write(&folder, "lib/bin/run*", "#!/bin/sh\n");
    let site = "name: acme/site\nversion: 1.0.0\ndependencies: [acme/lib#^1]\n";
    write(&folder, "site/Mu.yaml", site);
    write(&folder, "site/pages/index.html", "<h1>Hello</h1>\n");
}

/// The digests that a machine with an empty cache locks when its hub is at `url`.
fn digests(sandbox: &mut Sandbox, number: usize, url: &str) -> Vec<Value> {
    sandbox.hub_is_at(url);
    let cache = sandbox.path(&format!("cache-{number}")).display().to_string();
    sandbox.set("MU_CACHE_DIR", &cache);
    for part in ["work/.mu/packs", "work/Mu.lock"] {
        let path = sandbox.path(part);
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok();
    let lock = sandbox.lock();
    let packages = lock["packages"].as_array().expect("is a list").clone();
    assert_eq!(packages.len(), 2);
    packages.iter().map(|package| package["digest"].clone()).collect()
}

/// A hub has to read `1.10` as the text that it is, as everything else of mu does, and not as the number 1.1.
#[test]
fn an_app_version_without_quotes_stays_as_it_is_written() {
    let mut sandbox = Sandbox::with_dependencies(&["acme/elk#1.10-1.0.0"]);
    let manifest = "name: acme/elk\nversion: 1.0.0\nversioning: composite\nappVersion: 1.10\n";
    sandbox.write("../author/Mu.yaml", manifest);
    let add = ["hub", "token", "add", "../served", "ada", "--namespace", "acme", "--json"];
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    sandbox.mu(&["hub", "init", "../served"]).ok();
    let token = sandbox.mu(&add).ok().json()["token"].as_str().expect("is a token").to_owned();
    let served = Served::start(&sandbox, "../served", &[]);
    sandbox.set_token(&served.address.to_string(), &token);
    let folder = sandbox.path("folder").display().to_string();
    for (number, (to, hub)) in
        [(&folder, format!("file://{folder}/")), (&served.url(), served.url())].iter().enumerate()
    {
        let run = sandbox.mu_in("author", &["publish", "--to", to]).ok();
        run.says(&["published acme/elk 1.10-1.0.0"]);
        sandbox.hub_is_at(hub);
        sandbox
            .set("MU_CACHE_DIR", &sandbox.path(&format!("cache-{number}")).display().to_string());
        sandbox.mu(&["update"]).ok();
        sandbox.mu(&["verify"]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["version"], "1.10-1.0.0");
        assert_eq!(sandbox.read(".mu/packs/hub.mu.com/acme/elk/Mu.yaml"), manifest);
    }
    for hub in ["../folder", "../served"] {
        sandbox.mu(&["hub", "check", hub]).ok();
    }
}

#[test]
fn the_same_digests_from_a_folder_nginx_the_server_and_buckets() {
    let mut sandbox = Sandbox::with_dependencies(&["acme/site"]);
    author(&sandbox);
    let publish = |sandbox: &Sandbox, to: &str| {
        let run = sandbox.mu_in("author", &["publish", "--all", "--to", to]).ok();
        run.says(&["published acme/lib 1.2.0", "published acme/site 1.0.0"]);
    };

    sandbox.mu(&["hub", "init", "../folder"]).ok();
    let folder = sandbox.path("folder").display().to_string();
    publish(&sandbox, &folder);
    let expected = digests(&mut sandbox, 1, &format!("file://{folder}/"));

    let nginx = Nginx::serve(&sandbox.path("folder"), "");
    let url = nginx.url("");
    assert_eq!(digests(&mut sandbox, 2, &url), expected);

    sandbox.mu(&["hub", "init", "../served"]).ok();
    let add = ["hub", "token", "add", "../served", "ada", "--namespace", "acme", "--json"];
    let token = sandbox.mu(&add).ok().json()["token"].as_str().expect("is a token").to_owned();
    let served = Served::start(&sandbox, "../served", &[]);
    sandbox
        .mu_in("author", &["publish", "--all", "--to", &served.url(), "--json"])
        .fails_with("auth");
    sandbox.set_token(&served.address.to_string(), &token);
    publish(&sandbox, &served.url());
    assert_eq!(digests(&mut sandbox, 3, &served.url()), expected);
    let has_page = |server: &Served| {
        let page = server.ask("GET", "/packages/acme/lib", &[], &[]).is(200).text();
        let dependent = "<a href=\"../../packages/acme/site\">acme/site</a>";
        assert!(page.contains("A library") && page.contains(dependent), "{page}");
    };
    has_page(&served);

    let (s3, azurite, google) = (S3Server::start(), Azurite::start(), GoogleServer::start());
    sandbox.set_all(s3.variables());
    let variables = azurite.variables().into_iter().chain(google.variables());
    variables.for_each(|(name, value)| sandbox.set(name, value));
    let archive = |folder: &str| {
        fs::read(sandbox.path(folder).join("packs/acme/site/site-1.0.0.tgz")).expect("is there")
    };
    let bytes = archive("folder");
    assert_eq!(archive("served"), bytes);
    for (number, place) in BUCKETS.into_iter().enumerate() {
        sandbox.mu(&["hub", "init", place]).ok().says(&["created a hub at"]);
        publish(&sandbox, place);
        let in_front = Served::start(&sandbox, place, &[]);
        assert_eq!(digests(&mut sandbox, 4 + number, &in_front.url()), expected, "{place}");
        has_page(&in_front);
        let path = "/packs/acme/site/site-1.0.0.tgz";
        assert_eq!(in_front.ask("GET", path, &[], &[]).is(200).body, bytes, "{place}");
        let part = in_front.ask("GET", path, &["range: bytes=10-19"], &[]).is(206);
        assert_eq!(part.body, bytes[10..20], "{place}");

        sandbox.mu(&["tag", "acme/lib#1.2.0", "beta", "--to", place]).ok();
        sandbox.mu(&["yank", "acme/lib#1.2.0", "--to", place]).ok();
        let checked = sandbox.mu(&["hub", "check", place, "--json"]).ok().json();
        assert_eq!(checked["findings"], serde_json::json!([]), "{place}");
        let index = in_front.ask("GET", "/index/acme/lib.jsonl", &[], &[]).is(200).text();
        assert!(index.contains("\"tags\":[\"beta\"]") && index.contains("\"yanked\""), "{index}");
    }
    // The error has the store's reason, without markup.
    sandbox.set("AWS_SECRET_ACCESS_KEY", "wrong");
    sandbox.set("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmc=");
    sandbox.set("GOOGLE_BEARER_TOKEN", "wrong");
    for (place, reason) in BUCKETS.into_iter().zip([
        "403 Forbidden: SignatureDoesNotMatch",
        "403 Forbidden: AuthorizationFailure: ",
        "401 Unauthorized: ",
    ]) {
        let run = sandbox.mu(&["hub", "check", place]).fails();
        run.says(&[reason, "credentials"]).does_not_say(&["<?xml", "<Code>"]);
    }
}

#[test]
fn two_servers_in_front_of_one_bucket_lose_nothing() {
    let mut sandbox = Sandbox::new();
    let s3 = S3Server::start();
    sandbox.set_all(s3.variables());
    sandbox.mu(&["hub", "init", "s3://packages"]).ok();
    let add = ["hub", "token", "add", "s3://packages", "ada", "--namespace", "*", "--json"];
    let token = sandbox.mu(&add).ok().json()["token"].as_str().expect("is a token").to_owned();
    let servers = [(); 2].map(|()| Served::start(&sandbox, "s3://packages", &[]));
    let archives: Vec<(String, Vec<u8>)> = (0..20)
        .map(|number| {
            let version = format!("1.{number}.0");
            sandbox.hub().release("acme/web", &version);
            let bytes = fs::read(sandbox.hub().archive("acme/web", &version)).expect("is there");
            (format!("acme/web/{version}"), bytes)
        })
        .collect();
    std::thread::scope(|scope| {
        for (number, (package, bytes)) in archives.iter().enumerate() {
            let (served, token) = (&servers[number % 2], &token);
            scope.spawn(move || served.put(token, package, bytes).is(201));
        }
    });
    let path = "/index/acme/web.jsonl";
    let index = servers[0].ask("GET", path, &[], &[]).is(200);
    // Whether the bucket looks at the condition or not, and whichever server said what is known.
    let known = format!("if-none-match: {}", index.header("etag").expect("has an ETag"));
    servers[1].ask("GET", path, &[&known], &[]).is(304);
    servers[1].ask("GET", path, &["if-none-match: \"other\""], &[]).is(200);
    let index = index.text();
    let versions: std::collections::BTreeSet<&str> = index.lines().collect();
    assert_eq!(versions.len(), 20);
    let checked = sandbox.mu(&["hub", "check", "s3://packages", "--json"]).ok().json();
    assert_eq!(checked["versions"], 20);
    assert_eq!(checked["findings"], serde_json::json!([]));
}

#[test]
fn twenty_processes_publish_into_one_folder() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    for number in 0..20 {
        let folder = sandbox.path(&format!("author-{number}"));
        write(&folder, ".mu/workspace.yaml", "");
        let name = if number < 10 { "one".to_owned() } else { format!("many-{number}") };
        write(&folder, "Mu.yaml", format!("name: acme/{name}\nversion: 1.{number}.0\n"));
    }
    let to = sandbox.path("srv").display().to_string();
    let started: Vec<Child> = (0..20)
        .map(|number| {
            let mut command = sandbox.command(&["publish", "--to", &to]);
            command.current_dir(sandbox.path(&format!("author-{number}")));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().expect("mu runs")
        })
        .collect();
    for process in started {
        let output = process.wait_with_output().expect("is a child");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let checked = sandbox.mu(&["hub", "check", "../srv", "--json"]).ok().json();
    assert_eq!((&checked["packages"], &checked["versions"]), (&11.into(), &20.into()));
    assert_eq!(checked["findings"], serde_json::json!([]));
}

#[test]
fn a_server_speaks_tls_with_certificates_from_files() {
    let mut sandbox = Sandbox::with_dependencies(&["acme/site"]);
    author(&sandbox);
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let add = ["hub", "token", "add", "../srv", "ada", "--namespace", "acme", "--json"];
    let token = sandbox.mu(&add).ok().json()["token"].as_str().expect("is a token").to_owned();
    let file = |name: &str| mu_testing::file(&format!("tls/{name}")).display().to_string();
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let tls = ["--tls-certificate", &certificate, "--tls-key", &key];
    let served = Served::start(&sandbox, "../srv", &tls);
    let url = format!("https://localhost:{}/", served.address.port());
    sandbox.set_token(&format!("localhost:{}", served.address.port()), &token);
    let publish = ["publish", "--all", "--to", &url];
    sandbox.mu_in("author", &publish).fails().says(&["certificate"]);
    sandbox.set("SSL_CERT_FILE", &file("authority.pem"));
    sandbox.mu_in("author", &publish).ok();
    digests(&mut sandbox, 1, &url);
    let swapped = ["hub", "serve", "../srv", "--tls-certificate", &key, "--tls-key", &certificate];
    sandbox.mu(&swapped).fails().says(&["for TLS", "it contains no PEM certificate"]);
    let (other, nothing) = (file("authority.pem"), sandbox.path("nowhere").display().to_string());
    for (certificate, key, expected) in [
        (&certificate, &certificate, "it contains no PEM private key"),
        (&other, &key, "it is not the key of the certificate in"),
        (&nothing, &key, "No such file"),
    ] {
        let arguments = ["--tls-certificate", certificate, "--tls-key", key];
        let run = sandbox.mu(&[&["hub", "serve", "../srv"][..], &arguments].concat()).fails();
        run.says(&["for TLS", expected]);
    }
}
