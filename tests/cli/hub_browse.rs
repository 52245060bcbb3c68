//! The pages of `mu hub serve` beside those of packages: versions and their files, namespaces, capabilities, feeds, what a
//! search finds, and how the hub is used.

use std::fs;

use serde_json::json;

use super::hub_page::{BROWSER, commands, has, lacks, page, section, seen, served};
use crate::support::{Package, Sandbox, Served, write};

#[test]
fn every_version_has_a_page_with_all_that_is_in_it() {
    let sandbox = Sandbox::new();
    const COMMIT: &str = "1895753f53a63c055e7cae81ebe4ea5d5805584f";
    sandbox.publish(&[
        Package::new("web/tls", "1.0.0"),
        Package::new("web/proxy", "1.9.0")
            .needs("tls#^1.0")
            .file(
                "README.md",
                "# Old\n\n[how](docs/how%20to.md#use) [code](src/main.rs) [up](../x)",
            )
            .file("docs/how to.md", "## Use\n\n[back](../README.md) ![map](map.png)")
            .file("docs/map.png", "not really a picture")
            .file("docs/odd.bin", "\u{0}")
            .file("conf/proxy.yaml", "tls: true # <b>\n")
            .key("yanked", json!("leaks <memory>"))
            .key("published", json!("2025-02-10T12:00:00Z"))
            .key("repository", json!("https://github.com/acme/proxy#deploy"))
            .key("commit", json!(COMMIT))
            .key("constraints", json!({"kubernetes": ">=1.25"}))
            .key("channels", json!(["stable"]))
            .key("appVersion", json!("24.1")),
        Package::new("web/proxy", "2.0.0").key("deprecated", json!("use ops/edge")),
    ]);
    // `mu pack` names the app version, too.
    let archive = sandbox.hub().archive("web/proxy", "1.9.0");
    fs::rename(&archive, archive.with_file_name("proxy-24.1-1.9.0.tgz")).expect("is ours");
    let served = served(&sandbox);
    let package = page(&served, "/packages/web/proxy");
    has(&package, "<a class=\"number\" href=\"../../packages/web/proxy@1.9.0\">1.9.0</a>");
    has(&seen(&package), "Careful: This version is deprecated: use ops/edge.");

    let version = page(&served, "/packages/web/proxy@1.9.0");
    let text = seen(&version);
    has(&version, "<title>web/proxy 1.9.0 · hub.acme.co</title>");
    for fact in [
        "Careful: This version was yanked: leaks &#60;memory&#62;. mu does not choose it any more",
        "Note: The newest release is 2.0.0 .",
        "App version 24.1",
        "Published 2025-02-10",
        "Channels stable",
        "Requires kubernetes &#62;=1.25",
        "Repository https://github.com/acme/proxy#deploy",
    ] {
        has(&text, fact);
    }
    has(&version, &format!("href=\"https://github.com/acme/proxy/tree/{COMMIT}\""));
    // The page of a yanked version suggests no command.
    assert!(commands(&version).is_empty());
    let index = fs::read_to_string(sandbox.hub().index("web/proxy")).expect("was published");
    let line: serde_json::Value =
        serde_json::from_str(index.lines().next().expect("is there")).expect("is JSON");
    let digests = seen(section(&version, "digests"));
    has(&digests, line["digest"].as_str().expect("is text"));
    has(&digests, line["archive"].as_str().expect("is text"));
    has(section(&version, "dependencies"), "<a href=\"../../packages/web/tls\">tls</a>");
    let archive = "packs/web/proxy/proxy-24.1-1.9.0.tgz";
    has(&version, &format!("<a class=\"button\" href=\"../../{archive}\""));
    served.ask("GET", &format!("/{archive}"), &[BROWSER], &[]).is(200);
    let files = section(&version, "files");
    has(&seen(files), "6 files Mu.yaml");
    has(files, "<a href=\"../../packages/web/proxy@1.9.0/docs/how%20to.md\">docs/how to.md</a>");

    // Links lead to the package's files, or to those of its repository.
    let readme = section(&version, "readme");
    has(readme, "href=\"proxy@1.9.0/docs/how%20to.md#readme-use\"");
    has(
        readme,
        &format!("href=\"https://github.com/acme/proxy/blob/{COMMIT}/deploy/src/main.rs\""),
    );
    has(readme, ">up</a>");
    lacks(readme, "/x\"");
    let how = page(&served, "/packages/web/proxy@1.9.0/docs/how%20to.md");
    has(&how, "<h4 id=\"readme-use\">Use</h4>");
    has(&how, "<a href=\"../README.md\"");
    has(&how, "<img src=\"../docs/map.png\" alt=\"map\" loading=\"lazy\">");
    let yaml = page(&served, "/packages/web/proxy@1.9.0/conf/proxy.yaml");
    has(
        &yaml,
        "<span class=\"k\">tls</span>: <span class=\"w\">true</span> <span class=\"c\"># &lt;b&gt;</span>",
    );
    has(&seen(&page(&served, "/packages/web/proxy@1.9.0/docs/odd.bin")), "This file is not text.");

    // A picture cannot do anything, whatever is in it, and may be cached.
    let picture = served.ask("GET", "/packages/web/proxy@1.9.0/docs/map.png", &[], &[]).is(200);
    assert_eq!(picture.body, b"not really a picture");
    assert_eq!(picture.header("content-type"), Some("image/png"));
    assert_eq!(picture.header("x-content-type-options"), Some("nosniff"));
    has(picture.header("content-security-policy").expect("has one"), "sandbox");
    let e_tag = format!("if-none-match: {}", picture.header("etag").expect("has one"));
    served.ask("GET", "/packages/web/proxy@1.9.0/docs/map.png", &[&e_tag], &[]).is(304);

    let whole = served.ask("GET", "/packages/web/proxy@1.9.0", &[], &[]).is(200);
    let e_tag = format!("if-none-match: {}", whole.header("etag").expect("has an ETag"));
    served.ask("GET", "/packages/web/proxy@1.9.0", &[&e_tag], &[]).is(304);
    for missing in [
        "/packages/web/proxy@3.0.0",
        "/packages/web/proxy@",
        "/packages/web/proxy@1.9.0/",
        "/packages/web/proxy@1.9.0/nothing",
        "/packages/web/proxy@1.9.0/docs",
        "/packages/web/proxy@1.9.0/../../../hub.json",
        "/packages/web/proxy@1.9.0/%2e%2e/%2e%2e/hub.json",
        "/packages/web/proxy@1.9.0//etc/passwd",
        "/packages/web/none@1.0.0",
    ] {
        served.ask("GET", missing, &[BROWSER], &[]).is(404);
    }
}

#[test]
fn a_tag_leads_to_the_page_of_its_version() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("web/tls", "1.0.0").key("tags", json!(["lts", "release/2024"])),
        Package::new("web/tls", "2.0.0-rc.1+x")
            .key("tags", json!(["beta"]))
            .file("docs/how to.md", "# How"),
    ]);
    let served = served(&sandbox);
    for (asked, leads_to) in [
        ("lts", "../../packages/web/tls@1.0.0"),
        ("beta/docs/how%20to.md", "../../../../packages/web/tls@2.0.0-rc.1+x/docs/how%20to.md"),
        ("release/2024", "../../../packages/web/tls@1.0.0"),
    ] {
        let path = format!("/packages/web/tls@{asked}");
        let answer = served.ask("GET", &path, &[BROWSER], &[]).is(302);
        assert_eq!(answer.header("location"), Some(leads_to), "{asked}");
        let page = format!("/{}", leads_to.trim_start_matches("../"));
        served.ask("GET", &page, &[BROWSER], &[]).is(200);
    }
    for missing in ["nightly", "lt", "lts2", "release"] {
        let path = format!("/packages/web/tls@{missing}");
        served.ask("GET", &path, &[BROWSER], &[]).is(404);
    }
}

#[test]
fn the_first_page_says_how_to_use_the_hub_and_how_to_publish() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("a/b", "1.0.0")]);
    assert_eq!(
        commands(&page(&served(&sandbox), "/")),
        [
            "mu add hub.acme.co/acme/tool",
            "mu registry add hub.mu.com/ https://hub.acme.co/",
            "mu login hub.acme.co",
            "mu publish --to https://hub.acme.co/",
        ]
    );
    // Below a path of a proxy, where a whole name alone does not lead, and a token is for the host.
    let proxied = served(&sandbox).ask("GET", "/", &[BROWSER, "x-forwarded-prefix: /mu"], &[]);
    assert_eq!(
        commands(&proxied.is(200).text()),
        [
            "mu registry add hub.acme.co/ https://hub.acme.co/mu/",
            "mu add hub.acme.co/acme/tool",
            "mu login hub.acme.co",
            "mu publish --to https://hub.acme.co/mu/",
        ]
    );
    // As a mirror of the default base, for clients that use this address.
    let mirror = Served::start(&sandbox, "../hub", &["--base", "hub.mu.com"]);
    assert_eq!(
        commands(&page(&mirror, "/")),
        [
            "mu registry add hub.mu.com/ https://x/",
            "mu add acme/tool",
            "mu login x",
            "mu publish --to https://x/",
        ]
    );
    assert_eq!(commands(&page(&mirror, "/packages/a/b"))[0], "mu add 'a/b#^1.0.0'");
}

#[test]
fn namespaces_and_capabilities_lead_to_their_packages() {
    let sandbox = Sandbox::new();
    let provides =
        |name: &str| Package::new(name, "1.0.0").key("provides", json!(["net.mu.com/v1/Server"]));
    sandbox.publish(&[
        provides("web/proxy").key("published", json!("2025-02-10T12:00:00Z")),
        provides("web/edge/gate"),
        Package::new("ops/shop", "1.0.0").key("requires", json!(["net.mu.com/v1/Server"])),
        Package::new("webs", "1.0.0"),
    ]);
    let hub = sandbox.path("hub");
    let names = ["ops/shop", "web/edge/gate", "web/proxy", "webs"];
    let line = |name: &str| {
        format!("{{\"name\":\"{name}\",\"latest\":\"1.0.0\",\"keywords\":[\"a & b\"]}}\n")
    };
    write(&hub, "catalog.jsonl", names.map(line).concat());
    let file = r#"{"packages": ["web/edge/gate", "web/proxy", "web/unlisted", "<x>"]}"#;
    write(&hub, "capabilities/net.mu.com/v1/Server.json", file);
    let served = served(&sandbox);

    let namespace = page(&served, "/namespaces/web");
    has(&seen(&namespace), "web/ 2 packages in this namespace web/edge/gate 1.0.0");
    lacks(&namespace, "packages/webs\"");
    has(&namespace, "<a href=\"../search?q=a+%26+b\">a &#38; b</a>");
    has(
        &namespace,
        "<time datetime=\"2025-02-10T12:00:00Z\" title=\"10 February 2025, 12:00 UTC\">",
    );
    let inner = page(&served, "/namespaces/web/edge");
    has(&inner, "<a class=\"faint\" href=\"../../namespaces/web\">web/</a>");
    served.ask("GET", "/namespaces/nobody", &[BROWSER], &[]).is(404);
    served.ask("GET", "/namespaces/", &[BROWSER], &[]).is(404);

    let package = page(&served, "/packages/web/edge/gate");
    has(&package, "<a class=\"faint\" href=\"../../../namespaces/web/edge\">edge/</a>");
    has(&package, "<a href=\"../../../capabilities/net.mu.com/v1/Server\">");
    let capability = page(&served, "/capabilities/net.mu.com/v1/Server");
    let text = seen(&capability);
    has(&text, "Provided by web/edge/gate 1.0.0");
    has(
        &text,
        "web/unlisted Required by The package of this hub whose newest version requires it. ops/shop",
    );
    lacks(&capability, "<x>");
    // The file beside the page is as it was.
    let json =
        served.ask("GET", "/capabilities/net.mu.com/v1/Server.json", &[BROWSER], &[]).is(200);
    assert_eq!(json.text(), file);
    served.ask("GET", "/capabilities/net.mu.com/v1/Other", &[BROWSER], &[]).is(404);
}

#[test]
fn feeds_name_the_versions_that_were_published_last() {
    let sandbox = Sandbox::new();
    let dated = |name: &str, version: &str, day: u8| {
        let published = format!("2025-02-{day:02}T12:00:00Z");
        Package::new(name, version).key("published", json!(published))
    };
    sandbox.publish(&[
        dated("web/proxy", "1.0.0", 3).key("description", json!("<b>\u{1b} & co")),
        dated("web/proxy", "1.1.0", 5).key("yanked", json!("broken")),
        dated("web/proxy", "1.2.0", 6),
        dated("web/tls", "1.0.0", 4),
    ]);
    let hub = sandbox.path("hub");
    write(&hub, "log/000000.txt", "web/tls\nweb/proxy\n");
    write(&hub, "hub.json", r#"{"hub": 1, "generation": 2, "log": "log/"}"#);
    let served = served(&sandbox);
    let titles = |path: &str| -> Vec<String> {
        let feed = served.ask("GET", path, &[BROWSER], &[]).is(200);
        assert_eq!(feed.header("content-type"), Some("application/atom+xml; charset=utf-8"));
        let text = feed.text();
        let entries = text.split("<entry>\n<title>").skip(1);
        entries.map(|entry| entry.split('<').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(titles("/feed.atom"), ["web/proxy 1.2.0", "web/tls 1.0.0", "web/proxy 1.0.0"]);
    assert_eq!(titles("/feeds/web/proxy.atom"), ["web/proxy 1.2.0", "web/proxy 1.0.0"]);
    let feed = served.ask("GET", "/feeds/web/proxy.atom", &[], &[]).is(200);
    let text = feed.text();
    has(&text, "<id>https://hub.acme.co/packages/web/proxy@1.2.0</id>");
    has(&text, "<updated>2025-02-06T12:00:00Z</updated>\n<author>");
    has(&text, "href=\"https://hub.acme.co/feeds/web/proxy.atom\"");
    has(&text, "<summary>&#60;b&#62; &#38; co</summary>");
    let e_tag = format!("if-none-match: {}", feed.header("etag").expect("has an ETag"));
    served.ask("GET", "/feeds/web/proxy.atom", &[&e_tag], &[]).is(304);
    has(&page(&served, "/packages/web/proxy"), "href=\"../../feeds/web/proxy.atom\"");
    // Below a path of a proxy, whole addresses have it too.
    let proxied = served.ask("GET", "/feed.atom", &["x-forwarded-prefix: /mu"], &[]).is(200);
    has(&proxied.text(), "<id>https://hub.acme.co/mu/packages/web/proxy@1.2.0</id>");
    has(&proxied.text(), "href=\"https://hub.acme.co/mu/feed.atom\"");
    for missing in ["/feeds/web/none.atom", "/feeds/web/proxy", "/feeds/.atom"] {
        served.ask("GET", missing, &[BROWSER], &[]).is(404);
    }
}

#[test]
fn what_a_search_finds_can_be_sorted() {
    let sandbox = Sandbox::new();
    let dated = |name: &str, day: u8| {
        let published = format!("2025-02-{day:02}T12:00:00Z");
        Package::new(name, "1.0.0").key("published", json!(published))
    };
    sandbox.publish(&[dated("tls", 1), dated("a/tls", 3), dated("b/tls", 9)]);
    let line = |name: &str| format!("{{\"name\":\"{name}\",\"latest\":\"1.0.0\"}}\n");
    let names = ["a/tls", "b/tls", "tls"];
    write(&sandbox.path("hub"), "catalog.jsonl", names.map(line).concat());
    let served = served(&sandbox);
    let found = |query: &str| -> Vec<String> {
        let page = page(&served, &format!("/search?q=tls{query}"));
        let found = page.split("<h2><a href=\"./packages/").skip(1);
        found.map(|part| part.split('"').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(found(""), ["tls", "a/tls", "b/tls"]);
    assert_eq!(found("&sort=newest"), ["b/tls", "a/tls", "tls"]);
    assert_eq!(found("&sort=name"), ["a/tls", "b/tls", "tls"]);
    assert_eq!(found("&sort=newest&limit=1"), ["b/tls"]);
    let page = page(&served, "/search?q=tls&sort=newest");
    has(&page, "<b aria-current=\"true\">newest</b>");
    has(&page, "<a href=\"./search?q=tls&#38;sort=name\">name</a>");
    has(&page, "title=\"9 February 2025, 12:00 UTC\">");
}

#[test]
fn a_package_that_is_missing_is_looked_for_among_those_that_are_not() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("web/proxy", "1.0.0")]);
    let catalog = "{\"name\":\"web/proxy\",\"latest\":\"1.0.0\"}\n";
    write(&sandbox.path("hub"), "catalog.jsonl", catalog);
    let served = served(&sandbox);
    let missing = served.ask("GET", "/packages/web/prxoy", &[BROWSER], &[]).is(404).text();
    has(&seen(&missing), "This hub has no package web/prxoy. Did you mean web/proxy ?");
    has(&missing, "<a href=\"../../packages/web/proxy\">");
    let other = served.ask("GET", "/packages/something/else", &[BROWSER], &[]).is(404).text();
    lacks(&other, "Did you mean");
}
