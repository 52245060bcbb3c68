//! The web pages of `mu hub serve` in a real browser: what the script adds, what works without it, and that
//! everybody can use them. Pictures of the pages are in `target/tmp/pages`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Browser, Package, Sandbox, Served};

const README: &str = "# Proxy\n\n[![build](https://ci.example/badge.svg)](https://ci.example/web/proxy)\n\n\
    A reverse proxy in front of **everything**: one place for certificates, limits and logs.\n\n\
    ![How requests flow](docs/flow.png)\n\n## Use it\n\n\
    ```yaml\nhosts:\n  - {name: shop.acme.co, to: \"http://shop:8080\", limit: 200/s, more: \"a line that is wider than a narrow screen\"}\n```\n\n\
    | key | what it does | since |\n| --- | --- | --- |\n| `name` | The host | 1.0 |\n\
    | `to` | Where requests go. It may be *any* address that the proxy reaches. | 1.0 |\n\n\
    > Certificates are reloaded without a restart.\n\n\
    - [x] Reloads certificates\n- [ ] Speaks HTTP/3\n\n\
    ![The proxy before its servers](docs/map.svg)\n\n\
    See the [website](https://mu.example/proxy), [how to use it](#use-it), or [how it is made](docs/making.md).\n\n\
    <script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">\n";

/// A picture in a package.
const MAP: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"480\" height=\"90\">\
    <rect width=\"480\" height=\"90\" rx=\"8\" fill=\"#cfe3df\"/>\
    <script>document.title = 'owned'</script></svg>";

/// The folder for pictures of the pages.
fn pages() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages")
}

/// Serves a hub with some packages.
fn served(sandbox: &Sandbox) -> Served {
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let added = ["hub", "token", "add", "../srv", "ada", "--namespace", "*", "--json"];
    let token = sandbox.mu(&added).ok().json()["token"].as_str().expect("is a token").to_owned();
    let served = Served::start(sandbox, "../srv", &["--base", "hub.acme.co/"]);
    let publish = |name: &str, version: &str, package: Package| {
        sandbox.hub().publish(&package);
        let archive = fs::read(sandbox.hub().archive(name, version)).expect("was published");
        served.put(&token, &format!("{name}/{version}"), &archive).is(201);
    };
    let described = |name: &str, version: &str, description: &str| {
        Package::new(name, version).manifest(&format!("description: \"{description}\"\n"))
    };
    publish(
        "web/tls",
        "1.4.2",
        described("web/tls", "1.4.2", "Certificates, and which ciphers to offer"),
    );
    publish(
        "ops/logs",
        "2.1.0",
        described("ops/logs", "2.1.0", "<img src=x onerror=document.title='owned'>"),
    );
    publish("old/front", "3.0.0", described("old/front", "3.0.0", "The proxy of before"));
    for version in ["1.7.0", "1.7.1", "1.8.0", "2.0.0-rc.1"] {
        let package = described("web/proxy", version, "A reverse proxy in front of everything")
            .manifest(
                "appVersion: \"24.1\"\nchannels: [stable, fast]\nlicense: Apache-2.0\nwebsite: https://mu.example/proxy\n\
                 maintainers: [{name: Ada L}]\nkeywords: [http, edge]\nconstraints: {kubernetes: \">=1.25\"}\n\
                 provides: [net.mu.com/v1/Server]\nrequires: [net.mu.com/v1/Network]\nreplaces: [hub.acme.co/old/front]\n",
            )
            .needs("tls#^1.0")
            .needs("ops/logs#>=2 <3")
            .needs("github.com/acme/geo#v3")
            .file("README.md", README)
            .file("docs/map.svg", MAP)
            .file("docs/making.md", "# Making it\n\n```rust\nfn main() {\n    // Begins here.\n    serve(\"0.0.0.0\", 443);\n}\n```\n")
            .file("src/proxy.yaml", "# What is served\nhosts:\n  - {name: \"shop\", port: 8080, tls: true}\n");
        publish("web/proxy", version, package);
    }
    for name in [
        "shop",
        "checkout",
        "a-package-with-a-very-long-name-that-fits-no-narrow-screen-in-one-line",
    ] {
        let name = format!("acme/{name}");
        publish(&name, "1.0.0", described(&name, "1.0.0", "Of Acme").needs("web/proxy#^1.7"));
    }
    served.patch(&token, "web/proxy/1.7.0", r#"{"yanked": "drops every tenth header"}"#).is(200);
    served.patch(&token, "web/proxy/1.7.1", r#"{"tags": ["lts"]}"#).is(200);
    served
}

#[test]
fn a_search_answers_while_one_types() {
    let sandbox = Sandbox::new();
    let served = served(&sandbox);
    let mut browser = Browser::start();
    browser.open(&served.url());
    browser.click("#words");
    browser.write("pro");
    browser.wait_until("document.querySelectorAll('#found li').length === 2");
    assert_eq!(
        browser
            .value("[...document.querySelectorAll('#found li b')].map((name) => name.textContent)"),
        serde_json::json!(["web/proxy", "old/front"])
    );
    assert_eq!(browser.value("document.getElementById('told').textContent"), "2 packages found");
    assert_eq!(browser.value("words.ariaExpanded"), "true");
    let told = browser.told();
    let has = |role: &str, name: &str| told.iter().any(|one| one.role == role && one.name == name);
    assert!(has("listbox", "Packages"), "{told:#?}");
    assert!(has("option", "web/proxy 1.8.0 A reverse proxy in front of everything"), "{told:#?}");
    browser.show(900, 500, "light");
    browser.press("ArrowDown");
    browser.press("ArrowDown");
    browser.picture(&pages(), "typing");
    let chosen = "document.getElementById(words.getAttribute('aria-activedescendant')).querySelector('b').textContent";
    assert_eq!(browser.value(chosen), "old/front");
    browser.press("ArrowDown");
    assert_eq!(browser.value(chosen), "web/proxy");
    browser.press("ArrowUp");
    assert_eq!(browser.value(chosen), "old/front");
    browser.press("Escape");
    assert_eq!(browser.value("found.hidden && words.ariaExpanded === 'false'"), true);
    assert_eq!(browser.value("words.value"), "pro");

    // Whatever packages say about themselves is only text here too.
    browser.value("words.select()");
    browser.write("logs");
    browser.wait_until("document.querySelectorAll('#found li').length === 1");
    assert_eq!(
        browser.value("document.querySelector('#found .description').textContent"),
        "<img src=x onerror=document.title='owned'>"
    );
    browser.press("ArrowDown");
    browser.follow(|browser| browser.press("Enter"));
    assert_eq!(browser.url(), format!("{}packages/ops/logs", served.url()));

    // From a package's page, with the mouse.
    browser.click("#words");
    browser.write("tls");
    browser.wait_until("document.querySelectorAll('#found li').length === 1");
    browser.follow(|browser| browser.click("#found li"));
    assert_eq!(browser.url(), format!("{}packages/web/tls", served.url()));

    browser.click("#words");
    browser.write("nothing at all");
    browser.wait_until("told.textContent === 'No packages found'");
    assert_eq!(browser.value("found.hidden"), true);
    browser.follow(|browser| browser.press("Enter"));
    assert_eq!(browser.url(), format!("{}search?q=nothing+at+all", served.url()));
    assert_eq!(browser.value("document.title"), "nothing at all · hub.acme.co");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn the_command_is_copied() {
    let sandbox = Sandbox::new();
    let served = served(&sandbox);
    let mut browser = Browser::start();
    browser.open(&format!("{}packages/web/proxy", served.url()));
    let permissions = serde_json::json!(["clipboardReadWrite", "clipboardSanitizedWrite"]);
    browser.call("Browser.grantPermissions", serde_json::json!({"permissions": permissions}));
    browser.value("document.querySelector('[data-copy]').focus()");
    browser.press("Enter");
    browser.wait_until("copied.textContent === 'The command was copied'");
    assert_eq!(
        browser.value("navigator.clipboard.readText()"),
        "mu add 'hub.acme.co/web/proxy#^1.8.0'"
    );
    assert_eq!(browser.value("document.querySelector('[data-copy]').textContent"), "Copied");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn without_scripts_everything_is_there() {
    let sandbox = Sandbox::new();
    let served = served(&sandbox);
    let mut browser = Browser::start();
    browser.call("Emulation.setScriptExecutionDisabled", serde_json::json!({"value": true}));
    browser.open(&format!("{}packages/web/proxy", served.url()));
    browser.show(1200, 1000, "light");
    browser.picture(&pages(), "without-scripts");
    let html = browser.html();
    for part in [
        "<span>web/</span><span>proxy</span><span>#^1.8.0'</span>",
        "A reverse proxy",
        "drops every tenth header",
        "acme/checkout",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    // A button that does nothing is not shown, and the search is a form.
    assert!(!browser.told().iter().any(|told| told.name == "Copy"));
    assert!(
        browser
            .told()
            .iter()
            .any(|told| told.role == "searchbox" && told.name == "Search packages")
    );
    for _ in 0..3 {
        browser.press("Tab");
    }
    browser.write("logs");
    browser.follow(|browser| browser.press("Enter"));
    assert_eq!(browser.url(), format!("{}search?q=logs", served.url()));
    assert!(browser.html().contains("<a href=\"./packages/ops/logs\">ops/logs</a>"));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// All texts with too little contrast (WCAG 2.2, 1.4.3), each with its ratio.
const PALE: &str = "(() => {
  const parts = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const pale = [];
  for (const element of document.querySelectorAll('body *')) {
    const texts = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
    if (!texts.length || !element.checkVisibility()) continue;
    const [one, other] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) pale.push(element.outerHTML.slice(0, 80) + ' ' + ratio.toFixed(2));
  }
  return pale;
})()";

#[test]
fn pages_fit_every_screen_in_light_and_dark() {
    let sandbox = Sandbox::new();
    let served = served(&sandbox);
    let mut browser = Browser::start();
    for (page, path) in [
        ("home", ""),
        ("search", "search?q=proxy"),
        ("package", "packages/web/proxy"),
        ("version", "packages/web/proxy@1.7.0"),
        ("file", "packages/web/proxy@1.8.0/src/proxy.yaml"),
        ("namespace", "namespaces/acme"),
        ("capability", "capabilities/net.mu.com/v1/Server"),
        ("claimed", "packages/old/front"),
        ("missing", "packages/acme/shopp"),
        (
            "long",
            "packages/acme/a-package-with-a-very-long-name-that-fits-no-narrow-screen-in-one-line",
        ),
    ] {
        for (size, width) in [("wide", 1200), ("narrow", 360), ("narrowest", 320)] {
            for scheme in ["light", "dark"] {
                browser.show(width, 900, scheme);
                browser.open(&format!("{}{path}", served.url()));
                let wide = browser.value("document.documentElement.scrollWidth");
                assert_eq!(wide, width, "{page} does not fit {width} pixels");
                assert_eq!(browser.value(PALE), serde_json::json!([]), "{page} in {scheme}");
                assert_ne!(browser.value("document.title"), "owned");
                let broken = "[...document.images].filter((one) => one.complete && !one.naturalWidth).length";
                assert_eq!(browser.value(broken), 0, "{page} has pictures that cannot be shown");
                let height = browser.value("document.documentElement.scrollHeight").as_u64();
                browser.show(
                    width,
                    u32::try_from(height.expect("is a number")).unwrap_or(900),
                    scheme,
                );
                browser.picture(&pages(), &format!("{page}-{size}-{scheme}"));
            }
        }
    }
    let complaints: BTreeSet<String> = browser.complaints().into_iter().collect();
    // Nobody needs a token to learn that a page does not exist.
    let others: Vec<_> = complaints.iter().filter(|text| !text.contains("acme/shopp")).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn a_page_is_small() {
    let sandbox = Sandbox::new();
    let served = served(&sandbox);
    let mut browser = Browser::start();
    browser.open(&format!("{}packages/web/proxy", served.url()));
    let sent = "['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind)).map((one) => one.transferSize)";
    let sent = browser.value(sent);
    let sent: Vec<u64> =
        sent.as_array().expect("is a list").iter().filter_map(|size| size.as_u64()).collect();
    // What is used a second time is not sent again.
    let sent: Vec<u64> = sent.into_iter().filter(|size| *size > 0).collect();
    // The page, style, script, icon, and the picture in the readme if the window reaches it.
    assert!(sent.len() <= 5 && sent.iter().sum::<u64>() < 16_000, "{sent:?}");
    // The second page brings itself alone.
    browser.open(&format!("{}packages/web/tls", served.url()));
    let again = "performance.getEntriesByType('resource').map((one) => one.transferSize)";
    let again = browser.value(again);
    assert!(again.as_array().expect("is a list").iter().all(|size| *size == 0), "{again}");
}

#[test]
fn a_screen_reader_is_told_all() {
    let sandbox = Sandbox::new();
    let served = served(&sandbox);
    let mut browser = Browser::start();
    browser.open(&format!("{}packages/web/proxy", served.url()));
    let told = browser.told();
    let has = |role: &str, name: &str| {
        assert!(
            told.iter().any(|one| one.role == role && one.name == name),
            "{role} {name}: {told:#?}"
        );
    };
    for (role, name) in [
        ("banner", ""),
        ("search", ""),
        ("main", ""),
        ("contentinfo", ""),
        ("complementary", "Facts"),
        ("navigation", "On this page"),
        ("combobox", "Search packages"),
        ("button", "Search"),
        ("button", "Copy"),
        ("region", "Notices"),
        ("table", "All 4 versions, the newest first"),
        ("columnheader", "Published"),
        ("rowheader", "1.7.0 yanked: drops every tenth header"),
        ("link", "tls"),
        ("link", "1.7.0"),
        ("checkbox", ""),
        ("link", "Skip to the content"),
        ("status", ""),
    ] {
        has(role, name);
    }
    let picture = "What is around web/proxy web/proxy needs 3 packages, and 3 packages need it.";
    assert!(
        told.iter().any(|one| one.role == "image" && one.name.starts_with(picture)),
        "{told:#?}"
    );
    for one in &told {
        let needs_name = ["link", "button", "combobox", "image", "heading", "region"];
        assert!(!needs_name.contains(&one.role.as_str()) || !one.name.trim().is_empty(), "{one:?}");
    }
    let levels: Vec<u64> =
        told.iter().filter_map(|one| one.level.filter(|_| one.role == "heading")).collect();
    assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{levels:?}");
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");

    // The first key press reaches the skip link, which then becomes visible.
    browser.press("Tab");
    assert_eq!(browser.value("document.activeElement.textContent"), "Skip to the content");
    assert_eq!(browser.value("document.activeElement.getBoundingClientRect().top >= 0"), true);
    browser.press("Enter");
    assert_eq!(browser.value("document.activeElement.id"), "content");
    // Whatever has the focus shows it.
    let mut reached = BTreeSet::new();
    for _ in 0..12 {
        browser.press("Tab");
        let shown = "getComputedStyle(document.activeElement).outlineStyle !== 'none'";
        assert_eq!(
            browser.value(shown),
            true,
            "{}",
            browser.value("document.activeElement.outerHTML")
        );
        reached.insert(browser.value("document.activeElement.textContent").to_string());
    }
    assert!(reached.contains("\"Copy\"") && reached.contains("\"Versions\""), "{reached:?}");
}
