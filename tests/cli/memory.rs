//! How much memory mu takes for what others wrote: in proportion to the text, whatever is in it.

use std::time::Instant;

use mu_testing::http::{Reply, TestServer};
use mu_testing::{gzip, write};

use crate::support::{Run, Sandbox};

/// How many bytes of text each reader gets.
const TEXT: usize = 3 << 20;

/// What mu takes without any text, in KiB.
const ITSELF: u64 = 48 << 10;

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
    let (run, peak) = sandbox.peak(arguments);
    let most = ITSELF + bytes * (TEXT as u64 >> 10);
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
        write(&root, "charts/index.yaml", &format!("{chart}x:{value}"));
        write(&root, "kudo/index.yaml", &format!("{operator}x:{value}"));
        write(&root, "cat/catalog.yaml", &format!("{catalog}x:{value}"));
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
    write(&root, "charts/index.yaml", &format!("{head}{versions}"));
    takes(&sandbox, "versions", &["info", "charts.example/web"], 30);
    write(&root, "charts/index.yaml", &format!("{head}{}", many("  - {}\n")));
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
    write(&root, "cat/catalog.yaml", &format!("schema: olm.package\nname: web\nx:\n{named}"));
    takes(&sandbox, "names", &["info", "cat.example/web"], 20).fails();
}

#[test]
fn what_is_beyond_the_limits_is_said() {
    let sandbox = Sandbox::new();
    let root = sandbox.root().to_owned();
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("registries: {{cat.example/: 'olm+file://{}/cat'}}\n", root.display()),
    );
    write(&root, "cat/catalog.yaml", &"---\npackage: web\na: [\n".repeat(10_001));
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
        .map(|n| format!("{{name: d, version: '{n}', repository: '{place}r{n}'}}"))
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
