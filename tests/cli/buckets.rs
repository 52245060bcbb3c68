//! Hubs in the buckets of object stores, read directly: the same commands, and as many requests, as with a web server.

use std::collections::BTreeSet;
use std::fs;

use mu_testing::ReservedPort;
use mu_testing::http::{Reply, TestServer};

use crate::support::{Azurite, GoogleServer, Nginx, Run, S3Server, Sandbox, write};

/// A hub in each kind of object store, and the variable that its credentials come from.
const BUCKETS: [(&str, &str); 3] = [
    ("s3://packages/hub", "AWS_ACCESS_KEY_ID"),
    ("az://packages/hub", "AZURE_STORAGE_ACCOUNT_KEY"),
    ("gs://packages/hub", "GOOGLE_BEARER_TOKEN"),
];

/// What no output, no lock and no file of the cache may contain.
const SECRETS: [&str; 4] = ["not-secret", "Eby8vdM0", "Bearer tests", "Signature="];

/// Two packages at `author/`, of which one needs the other.
fn author(sandbox: &Sandbox) {
    let folder = sandbox.path("author");
    write(&folder, ".mu/workspace.yaml", "namespace: acme\n");
    write(&folder, "lib/Mu.yaml", "name: acme/lib\nversion: 1.2.0\ndescription: A library\n");
    let site = "name: acme/site\nversion: 1.0.0\ndependencies: [acme/lib#^1]\n";
    write(&folder, "site/Mu.yaml", site);
}

fn publish(sandbox: &Sandbox, to: &str) {
    sandbox.mu(&["hub", "init", to]).ok();
    sandbox.mu_in("author", &["publish", "--all", "--to", to]).ok();
}

/// Forgets what is installed, and what earlier runs have brought.
fn begin(sandbox: &mut Sandbox, cache: &str) {
    let cache = sandbox.path(cache).display().to_string();
    sandbox.set("MU_CACHE_DIR", &cache);
    let _ = fs::remove_dir_all(sandbox.path("work/.mu/packs"));
}

/// The requests of a run with `-v`: what was asked for below `root`.
fn requests(run: &Run, root: &str) -> BTreeSet<String> {
    let asked = run.stderr.lines().filter_map(|line| line.strip_prefix("GET "));
    let asked: Vec<String> = asked
        .map(|line| {
            let (url, _) = line.split_once(": ").expect("has an answer");
            let path = url.strip_prefix(root).unwrap_or_else(|| panic!("{url} is elsewhere"));
            path.to_owned()
        })
        .collect();
    let set: BTreeSet<String> = asked.iter().cloned().collect();
    assert_eq!(set.len(), asked.len(), "nothing is requested twice: {}", run.stderr);
    set
}

/// Installs, asks and searches; returns the requests of each command.
fn session(sandbox: &mut Sandbox, number: usize, root: &str) -> Vec<BTreeSet<String>> {
    sandbox.hub_is_at(root);
    begin(sandbox, &format!("cache-{number}"));
    let _ = fs::remove_file(sandbox.path("work/Mu.lock"));
    let mut all = Vec::new();
    let mut said = String::new();
    let mut ask = |sandbox: &Sandbox, arguments: &[&str]| {
        let run = sandbox.mu(&[&["-v"], arguments].concat()).ok();
        all.push(requests(&run, root));
        said.push_str(&run.stderr);
        run
    };
    ask(sandbox, &["get"]);
    ask(sandbox, &["versions", "acme/lib"]).says(&["1.2.0"]);
    ask(sandbox, &["search", "library"]).says(&["acme/lib"]);
    begin(sandbox, &format!("cache-{number}-locked"));
    ask(sandbox, &["get", "--locked"]);
    for secret in SECRETS {
        assert!(!said.contains(secret), "{secret} in {said}");
        assert!(!sandbox.read("Mu.lock").contains(secret));
    }
    assert_eq!(sandbox.locked(), ["hub.mu.com/acme/lib 1.2.0", "hub.mu.com/acme/site 1.0.0"]);
    assert_eq!(sandbox.lock()["packages"][0]["source"], format!("hub+{root}"));
    all
}

#[test]
fn a_profile_of_aws_has_the_keys_of_a_bucket() {
    let mut sandbox = Sandbox::with_dependencies(&["acme/site"]);
    author(&sandbox);
    let s3 = S3Server::start();
    let [(_, key), (_, secret), (_, region), (_, endpoint)] = s3.variables();
    let credentials = format!(
        "[default]\naws_access_key_id = other\naws_secret_access_key = other\n\n[packages]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
    );
    let config = format!(
        "[profile packages]\nregion = {region}\nendpoint_url = {endpoint}\n\n[profile sso]\nsso_session = acme\n"
    );
    write(&sandbox.path("home"), ".aws/credentials", credentials);
    write(&sandbox.path("home"), ".aws/config", config);
    sandbox.set("AWS_PROFILE", "packages");
    publish(&sandbox, "s3://packages/hub");
    sandbox.hub_is_at("s3://packages/hub/");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/acme/lib 1.2.0", "hub.mu.com/acme/site 1.0.0"]);
    // What mu cannot take part in, it says, and what to do.
    sandbox.set("AWS_PROFILE", "sso");
    begin(&mut sandbox, "cache-sso");
    let run = sandbox.mu(&["get", "--locked"]).fails();
    run.says(&["the profile `sso`", "aws configure export-credentials --profile sso"])
        .does_not_say(&[secret]);
    // Variables come first.
    sandbox.set_all(s3.variables());
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_hub_in_a_bucket_is_read_like_one_on_a_web_server() {
    let mut sandbox = Sandbox::with_dependencies(&["acme/site"]);
    author(&sandbox);
    publish(&sandbox, "../folder");
    let nginx = Nginx::serve(&sandbox.path("folder"), "");
    let expected = session(&mut sandbox, 0, &nginx.url(""));
    assert_eq!(expected.iter().map(BTreeSet::len).collect::<Vec<_>>(), [6, 1, 2, 2]);
    let (s3, azurite, google) = (S3Server::start(), Azurite::start(), GoogleServer::start());
    sandbox.set_all(s3.variables());
    let variables = azurite.variables().into_iter().chain(google.variables());
    variables.for_each(|(name, value)| sandbox.set(name, value));
    for (number, (place, variable)) in BUCKETS.into_iter().enumerate() {
        publish(&sandbox, place);
        let root = format!("{place}/");
        assert_eq!(session(&mut sandbox, number + 1, &root), expected, "{place}");
        begin(&mut sandbox, &format!("cache-{}", number + 1));
        sandbox.mu(&["--offline", "get", "--locked"]).ok();
        sandbox.mu(&["verify"]).ok();
        let run = sandbox.mu(&["-vv", "versions", "acme/site"]).ok();
        let signed = format!(", with the credentials from `{variable}`");
        let run = run.says(&["> if-none-match: \"", &signed]);
        // The server for S3 does not look at it.
        if !place.starts_with("s3") {
            run.says(&[&format!("GET {root}hub.json: 304 Not Modified, the cached copy is used")]);
        }
        let doctor = sandbox.mu(&["doctor"]);
        doctor.says(&[&format!("{root} answers in")]);
        // A lock from a bucket holds for a web server, and the other way round.
        sandbox.hub_is_at(&nginx.url(""));
        begin(&mut sandbox, &format!("cache-{}-elsewhere", number + 1));
        sandbox.mu(&["get", "--locked"]).ok();
    }
}

#[test]
fn a_reference_names_a_bucket() {
    let mut sandbox = Sandbox::new();
    author(&sandbox);
    let s3 = S3Server::start();
    sandbox.set_all(s3.variables());
    publish(&sandbox, "s3://packages");
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    sandbox.mu(&["add", "s3://packages/acme/site"]).ok();
    assert!(sandbox.read("Mu.yaml").contains("s3://packages/acme/site#^1.0.0"));
    assert_eq!(sandbox.locked(), ["packages/acme/lib 1.2.0", "packages/acme/site 1.0.0"]);
    begin(&mut sandbox, "other");
    sandbox.mu(&["get", "--locked"]).ok();
    // The hub is in a folder of the bucket.
    let s3 = S3Server::start();
    sandbox.set_all(s3.variables());
    publish(&sandbox, "s3://packages/team/hub");
    begin(&mut sandbox, "third");
    sandbox.mu(&["versions", "s3://packages/team/hub/acme/lib"]).ok().says(&["1.2.0"]);
    let lib = "s3://packages/team/hub/acme/lib#1.2.0";
    sandbox.mu(&["yank", lib]).ok().says(&["acme/lib 1.2.0"]);
    sandbox.mu(&["yank", lib, "--undo"]).ok();
    sandbox.mu(&["tag", lib, "stable"]).ok();
    let run = sandbox.mu(&["versions", "s3://packages/nowhere/acme/lib"]).fails();
    run.says(&["there is no hub in the bucket", "`s3://packages/nowhere/`"]);
}

#[test]
fn what_is_wrong_with_a_bucket_is_said() {
    let mut sandbox = Sandbox::with_dependencies(&["acme/site"]);
    author(&sandbox);
    let (s3, azurite, google) = (S3Server::start(), Azurite::start(), GoogleServer::start());
    sandbox.set_all(s3.variables());
    let variables = azurite.variables().into_iter().chain(google.variables());
    variables.for_each(|(name, value)| sandbox.set(name, value));
    for (place, _) in BUCKETS {
        publish(&sandbox, place);
    }
    // There is no such bucket. The server for S3 does not say so, but S3 does.
    let none = TestServer::start(|_, _| {
        Reply::status(404)
            .saying("<Error><Code>NoSuchBucket</Code><Message>It is not there</Message></Error>")
    });
    let endpoint = s3.variables()[3].1.to_owned();
    sandbox.set("AWS_ENDPOINT_URL", &none.url(""));
    for (place, _) in BUCKETS {
        sandbox.hub_is_at(&place.replace("packages", "nothing-here"));
        let run = sandbox.mu(&["get"]).fails();
        run.says(&["there is no bucket `nothing-here`", "check its name"]);
    }
    sandbox.set("AWS_ENDPOINT_URL", &endpoint);
    // The credentials are refused.
    sandbox.set("AWS_SECRET_ACCESS_KEY", "wrong");
    sandbox.set("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmc=");
    sandbox.set("GOOGLE_BEARER_TOKEN", "wrong");
    for ((place, _), reason) in BUCKETS.into_iter().zip([
        "answered 403 Forbidden: SignatureDoesNotMatch",
        "answered 403 Forbidden: AuthorizationFailure",
        "answered 401 Unauthorized: AuthenticationRequired",
    ]) {
        sandbox.hub_is_at(place);
        let run = sandbox.mu(&["get"]).fails();
        run.says(&[reason, "credentials"]).does_not_say(&["<", "mu login"]);
        sandbox.mu(&["get", "--json"]).fails_with("auth");
    }
    // There are none, and no service of a cloud answers.
    let nobody = ReservedPort::take();
    sandbox.set("AWS_METADATA_ENDPOINT", &nobody.url(""));
    sandbox.set("AWS_ACCESS_KEY_ID", "");
    sandbox.set("AWS_SECRET_ACCESS_KEY", "");
    sandbox.hub_is_at(BUCKETS[0].0);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["was not requested", "no credentials are set", "AWS_SKIP_SIGNATURE=true"]);
    sandbox.set("AZURE_STORAGE_ACCOUNT_NAME", "");
    sandbox.hub_is_at(BUCKETS[1].0);
    sandbox.mu(&["get"]).fails().says(&["cannot be read", "AZURE_STORAGE_ACCOUNT_NAME"]);
    sandbox.set("GOOGLE_BEARER_TOKEN", "");
    sandbox.set("GOOGLE_SERVICE_ACCOUNT", "/nowhere.json");
    sandbox.hub_is_at(BUCKETS[2].0);
    sandbox.mu(&["get"]).fails().says(&["cannot be read", "/nowhere.json"]);
}

#[test]
fn a_bucket_of_another_region_is_named_with_its_region() {
    let mut sandbox = Sandbox::with_dependencies(&["acme/site"]);
    sandbox.hub_is_at("s3://acme-packages/mu");
    sandbox.set_all([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]);
    let moved = TestServer::start(|_, _| {
        Reply::status(301).header("x-amz-bucket-region", "eu-west-1").saying(
            "<Error><Code>PermanentRedirect</Code><Message>Use another endpoint</Message></Error>",
        )
    });
    let malformed = TestServer::start(|_, _| {
        Reply::status(400).saying(
            "<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message><Region>eu-west-1</Region></Error>",
        )
    });
    for server in [moved, malformed] {
        sandbox.set("AWS_ENDPOINT_URL", &server.url(""));
        let run = sandbox.mu(&["get"]).fails();
        run.says(&["`acme-packages` is in the region eu-west-1", "set AWS_REGION=eu-west-1"]);
        assert_eq!(server.requests().len(), 1);
    }
    // Credentials go to no other machine over plain http.
    sandbox.set("AWS_ENDPOINT_URL", "http://store.example.com:9000");
    sandbox.mu(&["get"]).fails().says(&["credentials are not sent over plain http", "https"]);
    // A message that repeats what was sent is not shown.
    let echo = TestServer::start(|request, _| {
        let sent = request.header("authorization").unwrap_or_default().replace(' ', "");
        Reply::status(403)
            .saying(format!("<Error><Code>No</Code><Message>not {sent}</Message></Error>"))
    });
    sandbox.set("AWS_ENDPOINT_URL", &echo.url(""));
    let run = sandbox.mu(&["-vv", "get"]).fails();
    run.says(&["403 Forbidden: No\n"]).does_not_say(&["AWS4-HMAC"]);
}
