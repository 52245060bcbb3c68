//! A conflict across two repositories and a hub.

use crate::support::git::{Daemon, HttpServer, Origin};
use crate::support::{Package, Sandbox};

#[test]
fn the_explanation_names_both_repositories_and_the_hub() {
    let mut origin = Origin::new("a.git");
    origin.commit(&[("Mu.yaml", "name: acme/a\ndependencies: [\"hub.mu.com/aws/vpc#^1\"]\n")]);
    origin.git(&["tag", "v1.0.0"]);
    origin.add("b.git");
    origin.commit(&[("Mu.yaml", "name: acme/b\ndependencies: [\"hub.mu.com/aws/vpc#^2\"]\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let web = HttpServer::start(origin.root());
    let daemon = Daemon::start(origin.root());
    // The two have different names, so that one always comes first, whatever the ports are.
    let host = web.host().replace("127.0.0.1", "localhost");
    let (a, b) = (format!("http://{host}/a.git#^1"), format!("{}b.git#^1", daemon.root()));
    let mut sandbox = Sandbox::with_dependencies(&[&a, &b]);
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0"), Package::new("aws/vpc", "2.0.0")]);
    sandbox.replace(&host, "[WEB]");
    let daemon_host = daemon.root().trim_start_matches("git://").trim_end_matches('/').to_owned();
    sandbox.replace(&daemon_host, "[DAEMON]");
    let run = sandbox.mu(&["get"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    error: no versions fit together
      acme/web requires [DAEMON]/b ^1
      [DAEMON]/b 1.0.0 requires aws/vpc ^2
      acme/web requires [WEB]/a ^1
      [WEB]/a 1.0.0 requires aws/vpc ^1
      no version of aws/vpc is both ^2 and ^1

    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
    let error = sandbox.mu(&["get", "--json"]).fails_with("no-solution");
    let message = error["message"].as_str().expect("is text");
    for part in ["[WEB]/a", "[DAEMON]/b", "aws/vpc"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(message.lines().count() < 24, "it fits a screen");
    assert!(!sandbox.has("work/Mu.lock"));
    // Without the conflict, all three are in one graph.
    sandbox.asks_for(&[&a]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(
        sandbox.locked(),
        ["hub.mu.com/aws/vpc 1.0.0".to_owned(), format!("{host}/a 1.0.0")]
    );
}
