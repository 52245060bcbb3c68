//! Who published a version: a hub's server writes the name of the token into its line, and pages and `mu info` show it.

use std::fs;

use serde_json::Value;

use crate::hub_page::{has, lacks, page, seen};
use crate::support::{Package, Sandbox, Served};

/// A hub in `hub` with a version that was published without a server, and one with a token; and the line of the first.
fn published() -> (Sandbox, Served, String, String) {
    let sandbox = Sandbox::new();
    let add = ["hub", "token", "add", "../hub", "ada <root>", "--namespace", "*"];
    let token = sandbox.mu(&add).ok().stdout.trim().to_owned();
    sandbox.publish(&[
        Package::new("acme/web", "1.0.0").key("published", "2025-02-10T12:00:00Z".into())
    ]);
    let line = fs::read_to_string(sandbox.hub().index("acme/web")).expect("is there");
    let other = crate::support::Hub::new(&sandbox.path("other"));
    other.publish(&Package::new("acme/web", "1.1.0"));
    let archive = fs::read(other.archive("acme/web", "1.1.0")).expect("was published");
    let served = Served::start(&sandbox, "../hub", &["--base", "hub.acme.co/"]);
    lacks(&page(&served, "/packages/acme/web"), "By</th>");
    served.put(&token, "acme/web/1.1.0", &archive).is(201);
    (sandbox, served, token, line)
}

#[test]
fn who_published_a_version_is_shown_and_never_the_secret() {
    let (sandbox, served, token, old) = published();
    let index = fs::read_to_string(sandbox.hub().index("acme/web")).expect("is there");
    // The line of an earlier version keeps every byte.
    let new: Value =
        serde_json::from_str(index.strip_prefix(&*old).expect("is kept")).expect("is a line");
    assert_eq!(new["publishedBy"], "ada <root>");
    assert!(!index.contains(&token));

    let newest = page(&served, "/packages/acme/web");
    has(&newest, "<dt>Published by</dt><dd>ada &#60;root&#62;</dd>");
    has(&seen(&newest), "Version Published By 1.1.0");
    has(&newest, "<td>ada &#60;root&#62;</td>");
    has(&page(&served, "/packages/acme/web?versions=all"), "<td>ada &#60;root&#62;</td>");
    has(&page(&served, "/packages/acme/web@1.1.0"), "<dt>Published by</dt>");
    lacks(&page(&served, "/packages/acme/web@1.0.0"), "Published by");

    sandbox.hub_is_at(&served.url());
    let run = sandbox.mu(&["info", "acme/web"]).ok();
    run.says(&[" by ada <root>\n"]);
    let info = sandbox.mu(&["info", "acme/web", "--json"]).ok().json();
    assert_eq!(info["publishedBy"], "ada <root>");
    let info = sandbox.mu(&["info", "acme/web#1.0.0", "--json"]).ok().json();
    assert_eq!(
        (&info["publishedBy"], &info["published"]),
        (&Value::Null, &"2025-02-10T12:00:00Z".into())
    );
    // The lock has nothing of it.
    sandbox.write("Mu.yaml", "name: acme/shop\nversion: 1.0.0\ndependencies: ['acme/web#^1']\n");
    sandbox.mu(&["get"]).ok();
    assert!(!sandbox.read("Mu.lock").contains("ada"));
}

#[test]
fn nobody_says_himself_who_published_a_version() {
    let (sandbox, served, token, _) = published();
    // Into a folder, nobody shows a token, and that of the other hub says nothing.
    sandbox.hub_is_at(&served.url());
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    sandbox.mu(&["mirror", "acme/web", "--to", "../mirror"]).ok();
    let mirrored =
        fs::read_to_string(sandbox.path("mirror/index/acme/web.jsonl")).expect("is there");
    assert!(mirrored.contains("1.1.0") && !mirrored.contains("publishedBy"), "{mirrored}");
    // A line of another format is taken as it is sent, but not this.
    let chart = mu_testing::tar_gz([(
        "db/Chart.yaml".to_owned(),
        ('f', b"apiVersion: v2\nname: db\nversion: 1.0.0\n".to_vec()),
    )]);
    let line = r#"{"name":"db","version":"1.0.0","format":"helm","locator":"in-folder","dependencies":[],"publishedBy":"root"}"#;
    let body = [line.as_bytes(), b"\n", &chart].concat();
    let bearer = format!("authorization: Bearer {token}");
    let kind = "content-type: application/vnd.mu.copy";
    served.ask("PUT", "/api/v1/packages/db/1.0.0", &[&bearer, kind], &body).is(201);
    let index = fs::read_to_string(sandbox.hub().index("db")).expect("is there");
    let line: Value = serde_json::from_str(&index).expect("is a line");
    assert_eq!(line["publishedBy"], "ada <root>");
}
