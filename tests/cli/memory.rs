//! How much memory mu takes for what others wrote: in proportion to the text, whatever is in it.

use std::time::Instant;

use mu_testing::http::{Reply, TestServer};
use mu_testing::{gzip, write};

use crate::support::{Run, Sandbox};

/// How many bytes of text each reader gets.
const TEXT: usize = 1 << 20;

/// What mu takes without any text, in KiB: about 45 MiB in a build for tests, and a margin.
const ITSELF: u64 = 55 << 10;

/// A piece, over and over.
fn many(piece: &str) -> String {
    piece.repeat(TEXT / piece.len())
}

/// Numbered pieces.
fn numbered(piece: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= TEXT {
            break;
        }
        text.push_str(&piece(number));
    }
    text
}

/// Runs mu, and checks that its peak is no more than so many bytes for each byte of the text.
fn takes(sandbox: &Sandbox, what: &str, arguments: &[&str], bytes: u64) -> Run {
    takes_of(sandbox, what, arguments, (TEXT, bytes))
}

/// The same for a text of any length.
fn takes_of(
    sandbox: &Sandbox,
    what: &str,
    arguments: &[&str],
    (length, bytes): (usize, u64),
) -> Run {
    let (run, peak) = sandbox.peak(arguments);
    let most = ITSELF + ((bytes * length as u64) >> 10);
    assert!(peak <= most, "{what}: {peak} KiB, and at most {most} are expected: {}", run.shown());
    run
}

/// What a value is that nobody reads: what is before it, its text, and what is behind it.
fn unread() -> Vec<(&'static str, String)> {
    vec![
        ("entries of a list", format!("\n{}", many("- \n"))),
        ("values in brackets", format!(" [{}0]\n", many("0,"))),
        ("empty maps", format!(" [{}0]\n", many("{},"))),
        ("nested lists", format!(" [{}0]\n", many("[[[[[[[[]]]]]]]],"))),
        ("keys", format!("\n{}", numbered(|number| format!("  k{number}: 1\n")))),
        ("words", format!(" {}\n", many("word "))),
    ]
}

#[test]
fn values_of_an_index_or_a_catalog_that_nobody_reads_take_no_memory() {
    let sandbox = Sandbox::new();
    let root = sandbox.root().to_owned();
    let settings = format!(
        "registries: {{charts.example/: 'helm+file://{0}/charts', cat.example/: 'olm+file://{0}/cat', kudo.example/: 'kudo+file://{0}/kudo'}}\n",
        root.display()
    );
    sandbox.write(".mu/workspace.yaml", &settings);
    let chart = "apiVersion: v1\nentries:\n  web:\n  - {apiVersion: v2, name: web, version: 1.0.0, urls: [x.tgz]}\n";
    let operator = "apiVersion: v1\nentries:\n  web:\n  - {name: web, operatorVersion: 1.0.0, urls: [x.tgz]}\n";
    let catalog = "schema: olm.package\nname: web\ndefaultChannel: s\n---\nschema: olm.channel\nname: s\npackage: web\nentries: [{name: web.v1.0.0}]\n---\nschema: olm.bundle\nname: web.v1.0.0\npackage: web\nimage: ''\nproperties: [{type: olm.package, value: {packageName: web, version: 1.0.0}}]\n---\nschema: x\n";
    for (what, value) in unread() {
        write(&root, "charts/index.yaml", format!("{chart}x:{value}"));
        write(&root, "kudo/index.yaml", format!("{operator}x:{value}"));
        write(&root, "cat/catalog.yaml", format!("{catalog}x:{value}"));
        for base in ["charts.example", "kudo.example", "cat.example"] {
            let run = takes(&sandbox, what, &["versions", &format!("{base}/web")], 7);
            run.ok().says(&["1.0.0"]);
        }
    }
}

#[test]
fn small_versions_and_bundles_take_memory_in_proportion() {
    let sandbox = Sandbox::new();
    let root = sandbox.root().to_owned();
    let settings = format!(
        "registries: {{charts.example/: 'helm+file://{0}/charts', cat.example/: 'olm+file://{0}/cat'}}\n",
        root.display()
    );
    sandbox.write(".mu/workspace.yaml", &settings);
    let head = "apiVersion: v1\nentries:\n  web:\n";
    let versions = numbered(|n| format!("  - {{name: web, version: 1.0.{n}, urls: [x]}}\n"));
    write(&root, "charts/index.yaml", format!("{head}{versions}"));
    takes(&sandbox, "versions", &["info", "charts.example/web"], 30);
    write(&root, "charts/index.yaml", format!("{head}{}", many("  - {}\n")));
    takes(&sandbox, "empty versions", &["info", "charts.example/other"], 40);
    let words = format!(
        "{head}  - {{name: web, version: 1.0.0, urls: [x], keywords: [{}b]}}\n",
        many("a,")
    );
    write(&root, "charts/index.yaml", &words);
    takes(&sandbox, "keywords", &["info", "charts.example/web"], 120);
    let entries = format!(
        "schema: olm.channel\nname: s\npackage: web\nentries: [{}{{name: a}}]\n",
        many("{name: a},")
    );
    write(&root, "cat/catalog.yaml", &entries);
    takes(&sandbox, "entries of a channel", &["info", "cat.example/web"], 60);
    let named = numbered(|n| format!("- &n{n} x\n"));
    write(&root, "cat/catalog.yaml", format!("schema: olm.package\nname: web\nx:\n{named}"));
    takes(&sandbox, "names", &["info", "cat.example/web"], 20).fails();
}

/// A text of which a reader could make much.
struct Bomb<'a> {
    reader: &'a str,
    /// Where it is: in the sandbox, or on the server.
    path: &'a str,
    text: String,
    arguments: &'a [&'a str],
    /// How many bytes mu may take for each of the text; about half more than it did.
    bytes: u64,
    /// What mu says.
    says: &'a str,
}

fn bomb<'a>(
    reader: &'a str,
    path: &'a str,
    text: impl Into<String>,
    arguments: &'a [&'a str],
    bytes: u64,
    says: &'a str,
) -> Bomb<'a> {
    Bomb { reader, path, text: text.into(), arguments, bytes, says }
}

impl Bomb<'_> {
    /// Sets it off.
    fn check(&self, sandbox: &Sandbox) {
        let size = (self.text.len(), self.bytes);
        let run = takes_of(sandbox, self.reader, self.arguments, size);
        let shown = run.shown();
        assert!(shown.contains(self.says), "{}: {}", self.reader, shown);
    }
}

/// A lock with these entries.
fn lock(entries: &str) -> String {
    format!("version: 1\nresolution: highest\npackages:\n{entries}")
}

#[test]
fn files_of_a_checkout_and_of_the_user_take_memory_in_proportion() {
    let entry = "- id: a.b/c\n  version: 1.0.0\n  source: hub+file:///h\n";
    let registry = TestServer::start(|_, _| {
        Reply::status(401).header("www-authenticate", "Basic realm=\"x\"")
    });
    let artifact = format!("oci://{}/x", registry.host());
    let of_registry = ["versions", &*artifact];
    let list = &["--offline", "list"][..];
    let status = &["status"][..];
    let resolve = &["--offline", "resolve"][..];
    let bombs = [
        bomb("lock", "work/Mu.lock", lock(&many("- id: a\n")), list, 12, "formatters away"),
        bomb(
            "lock",
            "work/Mu.lock",
            lock(&numbered(|n| entry.replace("a.b/c", &format!("a.b/c{n}")))),
            list,
            45,
            "a.b/c7",
        ),
        bomb(
            "lock",
            "work/Mu.lock",
            lock(&format!("{entry}  provides: [{}\"\"]\n", many("\"\", "))),
            list,
            12,
            "a.b/c",
        ),
        bomb(
            "edits",
            "work/.mu/edits.json",
            format!("{{\"x\": [{}0], \"edits\": []}}", many("0,")),
            status,
            6,
            "acme/web",
        ),
        bomb(
            "edits",
            "work/.mu/edits.json",
            format!("{{\"edits\": [{}{{}}]}}", many("{},")),
            status,
            6,
            "is not a list of edits",
        ),
        bomb(
            "settings",
            "work/.mu/workspace.yaml",
            format!("x: [{}0]\n", "0,".repeat(500_000)),
            status,
            40,
            "unknown key",
        ),
        bomb("settings", "work/.mu/workspace.yaml", "#\n".repeat(500_000), status, 20, "acme/web"),
        bomb(
            "manifest",
            "work/Mu.yaml",
            format!(
                "name: a/b\nkeywords: [&a '{}'{}]\n",
                "x".repeat(100_000),
                ", *a".repeat(9_000)
            ),
            resolve,
            60,
            "anchors and aliases repeat too much",
        ),
        bomb(
            "manifest",
            "work/Mu.yaml",
            format!("name: a/b\nversion: 1.0.0\nkeywords: [{}a]\n", "a,".repeat(500_000)),
            resolve,
            80,
            "",
        ),
        bomb(
            "Docker's settings",
            "home/.docker/config.json",
            format!("{{\"auths\": {{{}\"x\": {{}}}}}}", numbered(|n| format!("\"{n}\":{{}},"))),
            &of_registry,
            130,
            "401",
        ),
        bomb(
            "Helm's lock",
            "work/Chart.lock",
            format!("x:\n{}", many("- \n")),
            &["--offline", "vendor", "--for", "helm"],
            8,
            "1 archive",
        ),
    ];
    for bomb in bombs {
        let sandbox = Sandbox::with_dependencies(&[]);
        if bomb.reader == "Helm's lock" {
            let chart = "apiVersion: v2\nname: top\nversion: 1.0.0\ndependencies: [{name: s, version: 1.0.0, repository: 'file://sub'}]\n";
            std::fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is there");
            sandbox.write(".mu/workspace.yaml", "formats: [helm]\n");
            sandbox.write("Chart.yaml", chart);
            sandbox.write("sub/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n");
        }
        write(sandbox.root(), bomb.path, &bomb.text);
        bomb.check(&sandbox);
    }
}

#[test]
fn answers_of_a_hub_take_memory_in_proportion() {
    // Each is printed.
    let line = |n| format!("{{\"name\":\"a/b\",\"version\":\"1.0.{n}\"}}\n");
    let few: String = (0..10_000).map(line).collect();
    let catalog = numbered(|n| format!("{{\"name\":\"a/{n}\"}}\n"));
    let catalog = format!("{{\"name\":\"a/x\",\"provides\":[\"c.d/v1/V\"]}}\n{catalog}");
    let needs = format!(
        "{{\"name\":\"a/b\",\"version\":\"1.0.0\",\"dependencies\":[{}\"a/c\"]}}\n",
        "\"a/c\",".repeat(100_000)
    );
    let search = &["search", "a"][..];
    let all = &["search", "--provides"][..];
    let of_one = &["search", "--provides", "c.d/v1/V"][..];
    let versions = &["versions", "a/b"][..];
    let bombs = [
        bomb("lines", "/index/a/b.jsonl", many("{}\n"), versions, 8, "not an index line"),
        bomb("lines", "/index/a/b.jsonl", few, versions, 120, "1"),
        bomb("lines", "/index/a/b.jsonl", needs, versions, 60, "1.0.0"),
        bomb("catalog", "/catalog.jsonl", catalog.clone(), search, 8, "a/1"),
        bomb("catalog", "/catalog.jsonl", catalog, all, 8, "c.d/v1/V"),
        bomb(
            "providers",
            "/capabilities/c.d/v1/V.json",
            format!("{{\"packages\":[{}\"a\"]}}", many("\"a\",")),
            of_one,
            20,
            "lists more than 100000 packages",
        ),
        bomb(
            "hub.json",
            "/hub.json",
            format!("{{\"hub\":1,\"index\":\"index/\",\"x\":[{}0]}}", "0,".repeat(500_000)),
            versions,
            60,
            "a/b",
        ),
    ];
    for bomb in bombs {
        let (path, text) = (bomb.path.to_owned(), bomb.text.clone());
        let server = TestServer::start(move |seen, _| match &*seen.path {
            asked if asked == path => Reply::body(text.clone()),
            "/hub.json" => Reply::body("{\"hub\":1,\"index\":\"index/\"}"),
            _ => Reply::status(404),
        });
        let sandbox = Sandbox::with_dependencies(&[]);
        sandbox.hub_is_at(&server.url("/"));
        bomb.check(&sandbox);
    }
}

#[test]
fn what_is_beyond_the_limits_is_said() {
    let sandbox = Sandbox::new();
    let root = sandbox.root().to_owned();
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("registries: {{cat.example/: 'olm+file://{}/cat'}}\n", root.display()),
    );
    write(&root, "cat/catalog.yaml", "---\npackage: web\na: [\n".repeat(10_001));
    sandbox
        .mu(&["versions", "cat.example/web"])
        .fails()
        .says(&["is not read", "it has more than 10,000 documents that cannot be read"]);
}

#[test]
fn an_answer_that_inflates_beyond_reason_is_refused() {
    let sandbox = Sandbox::new();
    let body = gzip(&vec![b' '; 40 << 20]);
    let server =
        TestServer::start(move |_, _| Reply::body(body.clone()).header("content-encoding", "gzip"));
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("registries: {{charts.example/: 'helm+{}'}}\n", server.url("")),
    );
    sandbox
        .mu(&["versions", "charts.example/web"])
        .fails()
        .says(&["is refused", "inflated, it is more than 200 times as long as it was sent"]);
}

#[test]
fn a_server_that_cannot_be_reached_is_given_up_once_for_all_that_need_it() {
    let sandbox = Sandbox::new();
    let root = sandbox.root().to_owned();
    let nobody = TestServer::start(|_, _| Reply::status(200));
    let place = nobody.url("");
    nobody.refuse();
    let count = 2_000;
    let needs: Vec<String> = (0..count)
        .map(|n| format!("{{name: d{n}, version: '1', repository: '{place}r{n}'}}"))
        .collect();
    let chart = format!(
        "entries: {{web: [{{apiVersion: v2, name: web, version: 1.0.0, urls: [x.tgz], dependencies: [{}]}}]}}",
        needs.join(", ")
    );
    write(&root, "charts/index.yaml", &chart);
    let settings =
        format!("registries: {{charts.example/: 'helm+file://{}/charts'}}\n", root.display());
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.asks_for(&["charts.example/web"]);
    let begun = Instant::now();
    let run = sandbox.mu(&["get"]).fails().says(&["cannot reach"]);
    // Each one alone takes more than a second.
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    assert!(run.shown().len() < 8_000, "{}", run.shown());
}

#[test]
fn long_texts_of_others_are_cut_in_errors_and_tables() {
    let sandbox = Sandbox::new();
    let root = sandbox.root().to_owned();
    let settings =
        format!("registries: {{charts.example/: 'helm+file://{}/charts'}}\n", root.display());
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.asks_for(&["charts.example/web"]);
    let either: Vec<String> = (0..20_000).map(|n| format!(">=1.{n}.0")).collect();
    let both = either.join(" ");
    let either = either.join(" || ");
    for said in [
        format!("version: 1.0.0, kubeVersion: '{either}'"),
        format!("version: 1.0.0, kubeVersion: '{both}'"),
        format!("version: '{}'", "1.".repeat(20_000)),
        format!("version: 1.0.0, appVersion: '{}'", "1.".repeat(20_000)),
        format!(
            "version: 1.0.0, dependencies: [{{name: d, repository: 'https://d.example', version: '{either}'}}]"
        ),
        format!("version: 1.0.0, description: '{either}'"),
        format!("version: 1.0.0, keywords: ['{either}']"),
    ] {
        let index =
            format!("entries: {{web: [{{apiVersion: v2, name: web, urls: [x.tgz], {said}}}]}}");
        write(&root, "charts/index.yaml", &index);
        for arguments in [
            &["--offline", "get"][..],
            &["--offline", "resolve", "--runtime", "kubernetes=9.9"],
            &["--offline", "versions", "charts.example/web", "--runtime", "kubernetes=9.9"],
            &["--offline", "info", "charts.example/web"],
        ] {
            let run = sandbox.mu(arguments);
            let begin: String = said.chars().take(60).collect();
            assert!(run.shown().len() < 20_000, "{begin} {arguments:?}: {}", run.shown().len());
        }
    }
}
