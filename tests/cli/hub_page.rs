//! The web pages of `mu hub serve`, as a client without scripts sees them: their content, and that foreign
//! text on them is only text.

use std::fs;

use serde_json::json;

use crate::support::{Package, Sandbox, Served, write};

/// The types that a browser says it accepts.
pub(super) const BROWSER: &str = "accept: text/html,application/xhtml+xml,*/*;q=0.8";

/// Serves the hub in the folder, which its owner calls `hub.acme.co/`.
pub(super) fn served(sandbox: &Sandbox) -> Served {
    Served::start(sandbox, "../hub", &["--base", "hub.acme.co/"])
}

/// The page at a path.
pub(super) fn page(served: &Served, path: &str) -> String {
    served.ask("GET", path, &[BROWSER], &[]).is(200).text()
}

/// The text of a page as people read it: without elements, in one line.
pub(super) fn seen(page: &str) -> String {
    let texts = page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let text = texts.collect::<Vec<_>>().join(" ");
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The commands that a page shows.
pub(super) fn commands(page: &str) -> Vec<String> {
    let commands = page.split("<div class=\"command\"><code ").skip(1);
    let command = |part: &str| {
        let command = part.split("</code>").next().unwrap_or_default();
        let texts = command.split('>').skip(1);
        let texts = texts.map(|text| text.split('<').next().unwrap_or_default());
        texts.collect::<String>().replace("&#39;", "'")
    };
    commands.map(command).collect()
}

/// The part of a page under a heading.
#[track_caller]
pub(super) fn section<'page>(page: &'page str, id: &str) -> &'page str {
    let begin = page.find(&format!("<h2 id=\"{id}\"")).unwrap_or_else(|| panic!("{id}: {page}"));
    page[begin..].split("</section>").next().unwrap_or_default()
}

#[track_caller]
pub(super) fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part} is not in: {text}");
}

#[track_caller]
pub(super) fn lacks(text: &str, part: &str) {
    assert!(!text.contains(part), "{part} is in: {text}");
}

#[test]
fn a_package_has_a_page_with_all_that_is_known_of_it() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("web/tls", "1.0.0"),
        Package::new("web/proxy", "1.9.0").key("yanked", json!("leaks <memory>")),
        Package::new("web/proxy", "1.10.0")
            .needs("tls#^1.0")
            .needs("https://other.co/x/y#~2")
            .file("README.md", "# Proxy\n\nSee [the web](https://mu.example/).")
            .key(
                "dependencies",
                json!(["tls#^1.0", {"ref": "https://other.co/x/y#~2", "channel": "fast"}]),
            )
            .key("description", json!("A reverse proxy"))
            .key("appVersion", json!("24.1"))
            .key("channels", json!(["stable", "fast"]))
            .key("tags", json!(["lts"]))
            .key("published", json!("2025-02-10T12:00:00Z"))
            .key("license", json!("Apache-2.0"))
            .key("website", json!("https://mu.example/proxy"))
            .key(
                "maintainers",
                json!([{"name": "Ada L", "email": "ada@acme.example"}, "Bob <bob@acme.example>"]),
            )
            .key("keywords", json!(["http"]))
            .key("constraints", json!({"kubernetes": ">=1.25"}))
            .key("provides", json!(["net.mu.com/v1/Server"]))
            .key("requires", json!(["net.mu.com/v1/Network"])),
        Package::new("web/proxy", "2.0.0-rc.1").needs("x"),
        Package::new("ops/shop", "1.0.0").needs("hub.acme.co/web/proxy#1.x"),
    ]);
    write(
        &sandbox.path("hub"),
        "capabilities/net.mu.com/v1/Network.json",
        r#"{"packages": ["web/tls", "<x>"]}"#,
    );
    let served = served(&sandbox);
    let page = page(&served, "/packages/web/proxy");
    let text = seen(&page);
    has(&page, "<title>web/proxy · hub.acme.co</title>");
    has(&text, "web/ proxy 1.10.0 A reverse proxy");
    assert_eq!(
        commands(&page),
        ["mu add 'hub.acme.co/web/proxy#^1.10.0'", "- hub.acme.co/web/proxy#^1.10.0"]
    );
    for fact in [
        "App version 24.1",
        "Published 2025-02-10",
        "Channels stable, fast",
        "License Apache-2.0",
        "Maintainers Ada L, Bob ",
        "Website https://mu.example/proxy",
        "Requires kubernetes &#62;=1.25",
        "Keywords http",
        "Provides net.mu.com/v1/Server",
        "Requires net.mu.com/v1/Network provided by web/tls",
    ] {
        has(&text, fact);
    }
    lacks(&page, "ada@acme.example");
    has(&page, "<h3 id=\"readme-proxy\">Proxy</h3>");
    has(&page, "<a href=\"https://mu.example/\" rel=\"nofollow noopener noreferrer\">the web</a>");

    let versions = seen(section(&page, "versions"));
    has(&versions, "All 3 versions, the newest first Version App version Published Channels Tags");
    let order = [
        "2.0.0-rc.1 prerelease",
        "1.10.0 24.1 2025-02-10",
        "stable, fast lts",
        "1.9.0 yanked: leaks &#60;memory&#62;",
    ];
    let places: Vec<_> = order
        .iter()
        .map(|row| versions.find(row).unwrap_or_else(|| panic!("{row}: {versions}")))
        .collect();
    assert!(places.is_sorted(), "{versions}");

    let dependencies = section(&page, "dependencies");
    has(
        dependencies,
        "<a href=\"../../packages/web/tls\">tls</a> <span class=\"asked\">^1.0</span>",
    );
    has(&seen(dependencies), "https://other.co/x/y ~2, channel fast");
    has(
        section(&page, "dependents"),
        "<a href=\"../../packages/ops/shop\">ops/shop</a> <span class=\"asked\">1.x</span>",
    );
    let graph = section(&page, "graph");
    has(graph, "<title>ops/shop needs web/proxy 1.x</title>");
    has(graph, "<title>web/proxy needs tls ^1.0</title>");
    served.ask("GET", "/packages/web/tls", &[], &[]).is(200);
}

#[test]
fn foreign_text_is_nothing_but_text() {
    const HOSTILE: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;";
    let sandbox = Sandbox::new();
    let readme = "<script>alert(1)</script>\n\n[x](javascript:alert(1)) ![](https://evil.example/x.png)\n\n\
                  <iframe src=//evil.example></iframe><p style=color:red onclick=x()>text</p>\n\n\
                  [y](data:text/html,x)\n";
    sandbox.publish(&[Package::new("a/b", "1.0.0")
        .file("README.md", readme)
        .key("description", json!(HOSTILE))
        .key("appVersion", json!(HOSTILE))
        .key("channels", json!([HOSTILE]))
        .key("tags", json!([HOSTILE]))
        .key("license", json!(HOSTILE))
        .key("website", json!("javascript:alert(1)"))
        .key("maintainers", json!([HOSTILE, {"name": HOSTILE}]))
        .key("keywords", json!([HOSTILE]))
        .key("constraints", json!({HOSTILE: HOSTILE}))
        .key("provides", json!([HOSTILE]))
        .key("requires", json!([HOSTILE, "../../private/tokens"]))
        .key("replaces", json!([HOSTILE]))
        .key("dependencies", json!([HOSTILE, {"ref": HOSTILE, "channel": HOSTILE}]))
        .key("published", json!(HOSTILE))
        .key("muVersion", json!(HOSTILE))
        .key("movedTo", json!(format!("evil.example/x;{HOSTILE}")))
        .key("yanked", json!(HOSTILE))]);
    let line = json!({"name": "a/b", "latest": HOSTILE, "description": HOSTILE, "keywords": [HOSTILE], "movedTo": HOSTILE});
    write(&sandbox.path("hub"), "catalog.jsonl", format!("{line}\n"));
    let served = served(&sandbox);
    let query =
        "q=%22%27%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E%3Cimg+src%3Dx+onerror%3Dalert(1)%3E";
    for path in [
        "/packages/a/b",
        "/packages/a/b?versions=all",
        "/packages/a/b@1.0.0",
        "/packages/a/b@1.0.0/README.md",
        "/packages/a/b@1.0.0/Mu.yaml",
        "/namespaces/a",
        "/search?q=",
        &format!("/search?{query}"),
        "/",
    ] {
        let page = page(&served, path);
        assert_eq!(page.matches("<script").count(), 1, "{path}: {page}");
        assert_eq!(page.matches("<img").count(), 1, "{path}: {page}");
        for word in [
            "onerror=alert(1)>",
            "<iframe",
            "style=",
            "onclick",
            "href=\"javascript",
            "href=\"data",
            "src=\"http",
        ] {
            lacks(&page, word);
        }
        lacks(&page, "'><script");
    }
    let page = page(&served, "/packages/a/b");
    // Nobody should copy a command that a shell would interpret differently.
    assert!(commands(&page).is_empty());
    has(&seen(section(&page, "versions")), "yanked: &#34;&#39;&#62;&#60;script&#62;");
    for path in [
        "/%3Cscript%3Ealert(1)%3C/script%3E",
        "/packages/%3Cscript%3E",
        "/packages/a/b@%3Cscript%3E",
        "/packages/a/b@1.0.0/%3Cscript%3E",
        "/namespaces/%3Cscript%3E",
        "/capabilities/%3Cscript%3E/v1/x",
        "/search?limit=%3Cscript%3E&q=x",
    ] {
        let answer = served.ask("GET", path, &[BROWSER], &[]);
        assert_eq!(answer.text().matches("<script").count(), 1, "{}", answer.text());
    }
}

#[test]
fn pages_say_what_a_browser_may_do_with_them() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("a", "1.0.0")]);
    let served = served(&sandbox);
    for path in ["/", "/search?q=a", "/packages/a", "/nothing"] {
        let answer = served.ask("GET", path, &[BROWSER], &[]);
        let policy = answer.header("content-security-policy").expect("has a policy");
        has(policy, "default-src 'none'");
        lacks(policy, "unsafe");
        lacks(policy, "http");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        let page = answer.text();
        for word in ["<style", " style=\"", " onclick", "<script>"] {
            lacks(&page, word);
        }
    }
    let page = page(&served, "/packages/a");
    for ending in [".css\"", ".js\"", ".svg\""] {
        let end = page.find(ending).expect("is linked") + ending.len() - 1;
        let begin = page[..end].rfind("assets/").expect("is an asset");
        let path = format!("/{}", &page[begin..end]);
        let asset = served.ask("GET", &path, &[], &[]).is(200);
        assert_eq!(asset.header("cache-control"), Some("public, max-age=31536000, immutable"));
        assert!(asset.body.len() < 16 << 10, "{path}: {}", asset.body.len());
        assert!(!path.ends_with(".js") || asset.body.len() < 4_000, "{}", asset.body.len());
    }
    served.ask("GET", "/assets/page-0123.css", &[], &[]).is(404);
}

#[test]
fn pages_are_sent_packed_and_only_if_they_changed() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("a/b", "1.0.0")]);
    let served = served(&sandbox);
    let whole = served.ask("GET", "/packages/a/b", &[], &[]).is(200);
    let e_tag = format!("if-none-match: {}", whole.header("etag").expect("has an ETag"));
    let unchanged = served.ask("GET", "/packages/a/b", &[&e_tag], &[]).is(304);
    assert_eq!((unchanged.body.len(), unchanged.header("cache-control")), (0, Some("no-cache")));
    let packed =
        served.ask("GET", "/packages/a/b", &["accept-encoding: br, gzip;q=0.5"], &[]).is(200);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < whole.body.len() / 2);
    assert_ne!(packed.header("etag"), whole.header("etag"));
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(&packed.body[..]);
    std::io::Read::read_to_string(&mut unpacked, &mut text).expect("is gzip");
    assert_eq!(text, whole.text());
    let refused = served.ask("GET", "/packages/a/b", &["accept-encoding: gzip;q=0"], &[]).is(200);
    assert_eq!(refused.header("content-encoding"), None);
    let head = served.ask("HEAD", "/packages/a/b", &[], &[]).is(200);
    assert_eq!(
        (head.body.len(), head.header("content-length")),
        (0, whole.header("content-length"))
    );

    sandbox.publish(&[Package::new("a/b", "1.1.0")]);
    has(&served.ask("GET", "/packages/a/b", &[&e_tag], &[]).is(200).text(), "1.1.0");
    assert_eq!(served.ask("POST", "/packages/a/b", &[], b"x").is(405).json()["status"], 405);
}

#[test]
fn a_search_needs_no_script() {
    let sandbox = Sandbox::new();
    let lines = (0..60).map(|number| {
        format!("{{\"name\":\"many/p{number}\",\"latest\":\"1.0.0\",\"keywords\":[\"bulk\"]}}\n")
    });
    let lines: String = lines.collect();
    let more = "{\"name\":\"web/proxy\",\"latest\":\"2.0.0\",\"description\":\"A reverse proxy\"}\n\
                {\"name\":\"old/proxy\",\"latest\":\"1.0.0\",\"movedTo\":\"hub.acme.co/web/proxy\"}\n";
    write(&sandbox.path("hub"), "catalog.jsonl", format!("{lines}{more}"));
    let served = served(&sandbox);
    let home = page(&served, "/");
    has(&home, "<form class=\"search\" role=\"search\" action=\"./search\">");
    has(&home, "<input id=\"words\" name=\"q\"");
    let found = page(&served, "/search?q=proxy");
    has(
        &seen(&found),
        "Packages for “proxy” 2 packages Sort by relevance newest name web/proxy 2.0.0 A reverse proxy old/proxy 1.0.0 moved to hub.acme.co/web/proxy",
    );
    has(&found, "<a href=\"./packages/web/proxy\">");
    has(&found, "value=\"proxy\"");
    has(&seen(&page(&served, "/search?q=nothing+at+all")), "Nothing was found.");
    let many = page(&served, "/search?q=bulk");
    has(&seen(&many), "The first 50 of 60 packages");
    has(&many, "<a href=\"./search?q=bulk&#38;limit=500\">Show more</a>");
    has(&seen(&page(&served, "/search?q=bulk&limit=500")), "60 packages");
    has(&seen(&page(&served, "/search?q=")), "All packages The first 50 of 62 packages");
    let long = format!("/search?q={}", "x".repeat(2_000));
    served.ask("GET", &long, &[BROWSER], &[]).is(400);
}

#[test]
fn who_claims_to_replace_whom_is_said_with_whether_the_other_agrees() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("old/family", "1.0.0").key("movedTo", json!("hub.acme.co/new/family")),
        Package::new("new/family", "1.0.0").key("replaces", json!(["hub.acme.co/old/family"])),
        Package::new("evil/family", "9.0.0").key("replaces", json!(["old/family"])),
        Package::new("old/next", "1.0.0").key("replaces", json!(["family"])),
        Package::new("a/far", "1.0.0").key("replaces", json!(["other.co/x/y"])),
        Package::new("a/lost", "1.0.0").key("movedTo", json!("hub.acme.co/a/far")),
        Package::new("a/gone", "1.0.0").key("yanked", json!(true)),
    ]);
    let served = served(&sandbox);
    let notices = |name: &str| {
        let page = page(&served, &format!("/packages/{name}"));
        let notices = page.split("<p class=\"notice").skip(1);
        let notices = notices.map(|part| {
            let end = part.find("</p>").expect("ends");
            let kind = if part.starts_with(" warning") { "!" } else { "" };
            format!("{kind}{}", seen(&part[part.find('>').expect("is one") + 1..end]))
        });
        notices.collect::<Vec<_>>()
    };
    assert_eq!(
        notices("new/family"),
        [
            "Note: This package claims to replace hub.acme.co/old/family , and that package agrees: it says that it has moved here."
        ]
    );
    assert_eq!(
        notices("evil/family"),
        [
            "!Careful: This package claims to replace old/family , but that package does not say so. mu uses one in place of the other only if you agree."
        ]
    );
    assert_eq!(
        notices("old/family"),
        [
            "Note: This package has moved to hub.acme.co/new/family . That package agrees: it says that it replaces this one.",
            "!Careful: evil/family claims to replace this package, but this one does not say so. mu uses one in place of the other only if you agree.",
            "Note: old/next of the same namespace says that it replaces this package.",
        ]
    );
    assert_eq!(
        notices("old/next"),
        [
            "Note: This package claims to replace family . Both belong to one namespace, so mu uses one in place of the other."
        ]
    );
    assert_eq!(
        notices("a/far"),
        [
            "!Careful: This package claims to replace other.co/x/y , which is not in this hub, so whether that package \
          agrees is not known here. mu checks that itself."
        ]
    );
    assert_eq!(
        notices("a/lost"),
        [
            "Note: This package has moved to hub.acme.co/a/far . That package does not say that it replaces this one."
        ]
    );
    assert_eq!(
        notices("a/gone"),
        ["!Careful: Every version of this package was yanked: nothing new should depend on it."]
    );
    sandbox.publish(&[Package::new("a/young", "0.1.0-rc.1")]);
    let young = commands(&page(&served, "/packages/a/young"));
    assert_eq!(young[0], "mu add 'hub.acme.co/a/young#^0.1.0-rc.1'");
    let moved = page(&served, "/packages/old/family");
    assert_eq!(commands(&moved), ["mu add hub.acme.co/new/family"]);
    assert!(commands(&page(&served, "/packages/a/gone")).is_empty());
}

#[test]
fn what_is_published_is_on_the_pages_at_once() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let token =
        sandbox.mu(&["hub", "token", "add", "../srv", "ada", "--namespace", "*", "--json"]).ok();
    let token = token.json()["token"].as_str().expect("is a token").to_owned();
    let served = Served::start(&sandbox, "../srv", &[]);
    has(&seen(&page(&served, "/")), "There is no package here yet.");
    let publish = |package: &Package, name: &str, version: &str| {
        sandbox.hub().publish(package);
        let archive = fs::read(sandbox.hub().archive(name, version)).expect("was published");
        served.put(&token, &format!("{name}/{version}"), &archive).is(201);
    };
    publish(&Package::new("web/tls", "1.0.0").manifest("description: Keys\n"), "web/tls", "1.0.0");
    has(&seen(&page(&served, "/")), "Recently updated web/tls 1.0.0 Keys published just now");
    has(
        &seen(section(&page(&served, "/packages/web/tls"), "dependents")),
        "No package of this hub depends on it.",
    );
    publish(&Package::new("web/proxy", "1.0.0").needs("tls#^1"), "web/proxy", "1.0.0");
    has(&seen(section(&page(&served, "/packages/web/tls"), "dependents")), "web/proxy ^1");
    publish(&Package::new("web/proxy", "1.1.0"), "web/proxy", "1.1.0");
    has(
        &seen(section(&page(&served, "/packages/web/tls"), "dependents")),
        "No package of this hub depends on it.",
    );
    let home = seen(&page(&served, "/"));
    assert!(home.find("web/proxy 1.1.0") < home.find("web/tls 1.0.0"), "{home}");
    served.patch(&token, "web/proxy/1.1.0", r#"{"yanked": "broken"}"#).is(200);
    let page = page(&served, "/packages/web/proxy");
    has(&seen(section(&page, "versions")), "1.1.0 yanked: broken");
    // The page shows the newest usable release.
    has(&seen(section(&page, "dependencies")), "Version 1.0.0 depends on: tls ^1");
    // The hub has the address that the browser asked for.
    assert_eq!(commands(&page)[0], "mu add 'https://x/web/proxy#^1.0.0'");
}

#[test]
fn dependents_are_known_from_the_snapshot_and_what_came_after_it() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let added = ["hub", "token", "add", "../srv", "ada", "--namespace", "*", "--json"];
    let token = sandbox.mu(&added).ok().json()["token"].as_str().expect("is a token").to_owned();
    let served = Served::start(&sandbox, "../srv", &[]);
    let publish = |name: &str, version: &str, needs: &str| {
        let package = Package::new(name, version);
        sandbox.hub().publish(&if needs.is_empty() { package } else { package.needs(needs) });
        let archive = fs::read(sandbox.hub().archive(name, version)).expect("was published");
        served.put(&token, &format!("{name}/{version}"), &archive).is(201);
    };
    publish("web/tls", "1.0.0", "");
    for number in 0..40 {
        publish(&format!("many/p{number:02}"), "1.1.0", "web/tls#^1");
    }
    assert!(sandbox.path("srv/snapshot.jsonl.gz").exists());
    // An older version says nothing, whenever it comes; a newer one takes its place.
    publish("many/p00", "1.0.0", "x/other#^1");
    publish("many/p01", "1.2.0", "x/other#^1");
    publish("zoo/late", "1.0.0", "web/tls");
    let fresh = Served::start(&sandbox, "../srv", &[]);
    let dependents = seen(section(&page(&fresh, "/packages/web/tls"), "dependents"));
    has(&dependents, "The 40 packages of this hub");
    has(&dependents, "many/p00 ^1");
    lacks(&dependents, "many/p01");
    has(&dependents, "zoo/late any version");
}

#[cfg(unix)]
#[test]
fn what_the_disk_does_not_give_is_no_page_without_it() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("web/tls", "1.0.0").file("README.md", "Start *here*"),
        Package::new("web/proxy", "1.0.0")
            .needs("web/tls#^1")
            .key("requires", json!(["net.mu.com/v1/Server"])),
    ]);
    let hub = sandbox.path("hub");
    let capability = "capabilities/net.mu.com/v1/Server.json";
    write(&hub, capability, r#"{"packages": ["web/tls"]}"#);
    let at = |path: &str| sandbox.path(path);
    let served = served(&sandbox);
    let fails = |path: &str| {
        let failed = served.ask("GET", path, &[BROWSER], &[]).is(500);
        has(&seen(&failed.text()), "The server could not read or write the hub");
    };
    // The place where archives are unpacked is not a folder.
    write(&sandbox.path("cache"), "hub-staging", "");
    fails("/packages/web/tls");
    fails("/packages/web/tls@1.0.0/README.md");
    fs::remove_file(at("cache/hub-staging")).expect("is ours");
    has(&page(&served, "/packages/web/tls"), "Start <em>here</em>");
    // A link is as good as a disk that cannot be read: the server follows none.
    let fresh = || Served::start(&sandbox, "../hub", &["--base", "hub.acme.co/"]);
    fs::rename(at("hub/index"), at("away")).expect("is ours");
    std::os::unix::fs::symlink(at("away"), at("hub/index")).expect("is ours");
    for path in ["/", "/capabilities/net.mu.com/v1/Server", "/search?q=tls"] {
        fresh().ask("GET", path, &[BROWSER], &[]).is(500);
    }
    fs::remove_file(at("hub/index")).expect("is ours");
    fs::rename(at("away"), at("hub/index")).expect("is ours");
    has(&page(&fresh(), "/capabilities/net.mu.com/v1/Server"), "web/tls");
    write(&hub, capability, "nonsense");
    fails("/capabilities/net.mu.com/v1/Server");
    fails("/packages/web/proxy");
    let (_, log) = served.end();
    for part in ["hub-staging", capability] {
        let is_said = |line: &String| line.contains("\"error\"") && line.contains(part);
        assert!(log.iter().any(is_said), "{part}: {log:#?}");
    }
}

#[test]
fn the_base_is_a_host() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("a", "1.0.0")]);
    let served = Served::start(&sandbox, "../hub", &["--base", "https://Hub.Acme.co"]);
    assert_eq!(commands(&page(&served, "/packages/a"))[0], "mu add 'hub.acme.co/a#^1.0.0'");
    for wrong in ["http://hub.acme.co/", "a b", "hub.acme.co/mu/"] {
        let run = sandbox.mu(&["hub", "serve", "../hub", "--base", wrong, "--json"]);
        let error = run.fails_with("usage");
        has(error["message"].as_str().expect("is text"), "'--base <BASE>'");
    }
}

#[test]
fn many_versions_are_shown_in_part() {
    let sandbox = Sandbox::new();
    let hub = sandbox.hub();
    hub.publish(&Package::new("big", "1.0.0"));
    let lines: String = (1..1_000)
        .map(|number| format!("{{\"name\":\"big\",\"version\":\"1.{number}.0\"}}\n"))
        .collect();
    let before = fs::read_to_string(hub.index("big")).expect("was published");
    fs::write(hub.index("big"), format!("{before}{lines}")).expect("is ours");
    let served = served(&sandbox);
    let some = page(&served, "/packages/big");
    has(&seen(&some), "The newest 50 of 1000 versions");
    has(&seen(section(&some, "versions")), "1.950.0");
    lacks(&seen(section(&some, "versions")), "1.949.0");
    has(&some, "<a href=\"?versions=all#versions\">Show all 1000 versions</a>");
    let all = page(&served, "/packages/big?versions=all");
    has(&seen(section(&all, "versions")), " 1.1.0 1.0.0");
    lacks(&all, "Show all");
}

#[test]
fn a_version_says_what_has_changed_since_the_one_before() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("a/b", "1.0.0"),
        Package::new("a/b", "1.1.0").key("yanked", json!("loses data")),
        Package::new("a/b", "1.2.0-rc.1"),
        Package::new("a/b", "1.2.0").file("CHANGELOG.md", "# 1.2.0\n"),
    ]);
    let served = served(&sandbox);
    let newest = page(&served, "/packages/a/b@1.2.0");
    has(&seen(&newest), "Changes since 1.0.0");
    let command = commands(&newest).into_iter().find(|one| one.starts_with("mu diff"));
    assert_eq!(command.as_deref(), Some("mu diff 'hub.acme.co/a/b#1.0.0' '#1.2.0'"));
    has(&newest, "packages/a/b@1.2.0/CHANGELOG.md\">Changelog</a>");
    let first = page(&served, "/packages/a/b@1.0.0");
    lacks(&first, "Changes since");
    lacks(&first, ">Changelog<");
}

#[test]
fn readmes_come_from_the_archive_that_the_index_names() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("a/named", "1.0.0")
            .manifest("readme: ./docs/Start.md\n")
            .file("docs/Start.md", "Start *here*")
            .file("README.md", "not this"),
        Package::new("a/outside", "1.0.0").manifest("readme: ../../../etc/passwd\n"),
        Package::new("a/text", "1.0.0").file("README", "<b>plain</b> *text*"),
        Package::new("a/none", "1.0.0"),
        Package::new("a/long", "1.0.0").file("README.md", &"long ".repeat(100_000)),
        Package::new("a/flipped", "1.0.0").file("README.md", "flipped"),
        Package::new("a/away", "1.0.0").file("README.md", "away"),
        Package::new("a/up", "1.0.0").key("urls", json!(["../../../etc/passwd"])),
        Package::new("a/private", "1.0.0").key("urls", json!(["private/tokens.json"])),
    ]);
    sandbox.hub().flip(&sandbox.hub().archive("a/flipped", "1.0.0"));
    fs::remove_file(sandbox.hub().archive("a/away", "1.0.0")).expect("was published");
    write(&sandbox.path("hub"), "private/tokens.json", "{}");
    let served = served(&sandbox);
    let readme = |name: &str| {
        let page = page(&served, &format!("/packages/a/{name}"));
        section(&page, "readme").to_owned()
    };
    has(&readme("named"), "Start <em>here</em>");
    lacks(&readme("outside"), "root:");
    has(&readme("text"), "&#60;b&#62;plain&#60;/b&#62; *text*");
    for name in ["outside", "none", "flipped", "away", "up", "private"] {
        has(&readme(name), "This package has no readme.");
    }
    has(&readme("long"), "too large to be shown");
    // A cached page is the same the second time.
    has(&readme("named"), "Start <em>here</em>");
}

#[test]
fn people_are_told_in_html_what_programs_are_told_in_json() {
    let sandbox = Sandbox::new();
    let served = served(&sandbox);
    let people = served.ask("GET", "/packages/a/b", &[BROWSER], &[]).is(404);
    has(&seen(&people.text()), "Not found This hub has no package a/b.");
    assert_eq!(people.header("cache-control"), Some("no-store"));
    has(&people.text(), "href=\"../../assets/page-");
    let programs = served.ask("GET", "/packages/a/b", &[], &[]).is(404);
    assert_eq!(programs.json()["detail"], "this hub has no package a/b");
    let api = served.ask("GET", "/api/v1/nothing", &[BROWSER], &[]).is(404);
    assert_eq!(api.header("content-type"), Some("application/problem+json"));
    // Invalid names are not packages, whatever files are there.
    for path in [
        "/packages/",
        "/packages/a//b",
        "/packages/../hub",
        "/packages/.x",
        "/packages/%2e%2e/x",
        "/packages/a/b/",
    ] {
        served.ask("GET", path, &[BROWSER], &[]).is(404);
    }
}

#[test]
fn pages_stand_in_the_way_of_no_file() {
    for (index, packs) in [("packages/", "assets/"), ("assets/", "packages/"), ("search/", "p/")] {
        let sandbox = Sandbox::new();
        sandbox.publish(&[Package::new("web", "1.0.0"), Package::new("a/b", "1.0.0")]);
        let hub = sandbox.path("hub");
        for (from, to) in [("index", index), ("packs", packs)] {
            fs::rename(hub.join(from), hub.join(to)).expect("is ours");
        }
        write(&hub, "hub.json", json!({"hub": 1, "index": index, "packs": packs}).to_string());
        let served = served(&sandbox);
        for file in ["web.jsonl", "a/b.jsonl"] {
            let answer = served.ask("GET", &format!("/{index}{file}"), &[BROWSER], &[]).is(200);
            assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
        }
        for file in ["web/web-1.0.0.tgz", "a/b/b-1.0.0.tgz"] {
            let answer = served.ask("GET", &format!("/{packs}{file}"), &[BROWSER], &[]).is(200);
            assert_eq!(answer.header("content-type"), Some("application/gzip"));
        }
        for path in ["/packages/web", "/packages/a/b", "/", "/search?q="] {
            has(&page(&served, path), "<html");
        }
        sandbox.hub_is_at(&served.url());
        sandbox.asks_for(&["a/b"]);
        sandbox.mu(&["get"]).ok();
    }
}
