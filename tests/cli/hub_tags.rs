//! Tags through a hub's server: many at once, and all of them are there afterwards.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{S3Server, Sandbox, Served};

/// The tags of each version of a package, as a server says.
fn tags(served: &Served) -> Vec<(String, BTreeSet<String>)> {
    let index = served.ask("GET", "/index/acme/web.jsonl", &[], &[]).is(200).text();
    let line = |line: &str| -> (String, BTreeSet<String>) {
        let line: Value = serde_json::from_str(line).expect("is JSON");
        let tags = line["tags"].as_array().into_iter().flatten();
        let tags = tags.map(|tag| tag.as_str().expect("is text").to_owned()).collect();
        (line["version"].as_str().expect("is text").to_owned(), tags)
    };
    index.lines().map(line).collect()
}

fn token(sandbox: &Sandbox, place: &str) -> String {
    let add = ["hub", "token", "add", place, "ada", "--namespace", "acme", "--json"];
    sandbox.mu(&add).ok().json()["token"].as_str().expect("is a token").to_owned()
}

#[test]
fn twenty_tag_at_once_through_two_servers() {
    let mut sandbox = Sandbox::new();
    let s3 = S3Server::start();
    sandbox.set_all(s3.variables());
    sandbox.mu(&["hub", "init", "s3://packages"]).ok();
    let token = token(&sandbox, "s3://packages");
    // A client that was not fast enough tries again.
    let more = ["--changes-per-minute", "10000"];
    let servers = [(); 2].map(|()| Served::start(&sandbox, "s3://packages", &more));
    for server in &servers {
        sandbox.set_token(&server.address.to_string(), &token);
    }
    for version in ["1.0.0", "1.1.0"] {
        sandbox.hub().release("acme/web", version);
        let archive = std::fs::read(sandbox.hub().archive("acme/web", version)).expect("is there");
        servers[0].put(&token, &format!("acme/web/{version}"), &archive).is(201);
    }
    let begun: Vec<_> = (0..20)
        .map(|number| {
            let reference = format!("acme/web#1.{}.0", number % 2);
            let url = servers[number / 2 % 2].url();
            let tag = ["tag", &reference, &format!("t{number}"), "--to", &url];
            let mut command = sandbox.command(&tag);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().expect("mu runs")
        })
        .collect();
    for process in begun {
        let output = process.wait_with_output().expect("is a child");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let of =
        |rest: usize| (0..20).filter(move |number| number % 2 == rest).map(|it| format!("t{it}"));
    let expected = [("1.0.0".to_owned(), of(0).collect()), ("1.1.0".to_owned(), of(1).collect())];
    assert_eq!(tags(&servers[1]), expected);
    // The reference says where it is, too.
    let reference = format!("{}acme/web#1.1.0", servers[0].url());
    sandbox.mu(&["tag", &reference, "t1", "--undo"]).ok();
    assert!(!tags(&servers[1])[1].1.contains("t1"));
    let checked = sandbox.mu(&["hub", "check", "s3://packages", "--json"]).ok().json();
    assert_eq!(checked["findings"], serde_json::json!([]));
}

#[test]
fn a_change_of_what_was_seen_is_refused_once_it_is_another() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let token = token(&sandbox, "../srv");
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.hub().release("acme/web", "1.0.0");
    let archive = std::fs::read(sandbox.hub().archive("acme/web", "1.0.0")).expect("is there");
    served.put(&token, "acme/web/1.0.0", &archive).is(201);
    let seen = || {
        let index = served.ask("GET", "/index/acme/web.jsonl", &[], &[]).is(200);
        index.header("etag").expect("has an ETag").to_owned()
    };
    let patch = |e_tag: &str, tag: &str| {
        let headers = [format!("authorization: Bearer {token}"), format!("if-match: {e_tag}")];
        let headers = [&*headers[0], &*headers[1]];
        let change = format!("{{\"tags\": [\"{tag}\"]}}");
        served.ask("PATCH", "/api/v1/packages/acme/web/1.0.0", &headers, change.as_bytes())
    };
    let first = seen();
    patch(&first, "one").is(200);
    let problem = patch(&first, "two").is(412).json();
    assert_eq!(problem["detail"], "acme/web has changed in the meantime");
    assert_eq!(tags(&served)[0].1, BTreeSet::from(["one".to_owned()]));
    for known in [format!("\"other\", W/{}", seen()), "*".to_owned()] {
        patch(&known, "three").is(200);
    }
    assert_eq!(tags(&served)[0].1, BTreeSet::from(["three".to_owned()]));
}
