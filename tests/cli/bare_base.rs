//! References without a protocol that names a provider: what is at their base is found out.

use std::fs;

use crate::support::git::{HttpServer, Origin};
use crate::support::{Chart, Charts, Nginx, Sandbox};
use mu_testing::{KudoOperator, KudoRepository};

/// A host with charts in `stable/`, KUDO operators in `operators/`, and Git repositories in `git/`.
struct Host {
    sandbox: Sandbox,
    nginx: Nginx,
    _git: (Origin, HttpServer),
}

impl Host {
    fn new() -> Self {
        let mut sandbox = Sandbox::new();
        let mut origin = Origin::new("git/tool.git");
        origin.commit(&[("Mu.yaml", "name: acme/tool\n")]);
        origin.git(&["tag", "v1.0.0"]);
        origin.add("git/other.git");
        origin.commit(&[("Mu.yaml", "name: acme/other\n")]);
        origin.git(&["tag", "v2.0.0"]);
        let git = HttpServer::start(origin.root());
        for folder in ["www/stable", "www/operators"] {
            fs::create_dir_all(sandbox.path(folder)).expect("can be made");
        }
        let proxied = format!("location /git/ {{ proxy_pass {}git/; }}", git.root());
        let nginx = Nginx::serve(&sandbox.path("www"), &proxied);
        sandbox.replace(&nginx.host(), "[HOST]");
        let mut charts = Charts::new(&sandbox.path("www/stable"));
        charts.add(&Chart::new("web", "0.3.0"));
        charts.add(&Chart::new("db", "0.4.0"));
        let mut operators =
            KudoRepository::new(&sandbox.path("www/operators"), &nginx.url("operators/"));
        operators.add(&KudoOperator::new("kafka", "1.3.1").app("2.5.0"));
        Self { sandbox, nginx, _git: (origin, git) }
    }

    /// Runs `mu get` with references to packages at this host, and returns the requests that it sent.
    fn get(&self, options: &[&str], names: &[&str]) -> Vec<String> {
        let before = self.nginx.log().len();
        let references: Vec<String> = names.iter().map(|name| self.nginx.url(name)).collect();
        let references = references.iter().map(String::as_str);
        let arguments: Vec<&str> =
            ["get"].into_iter().chain(references).chain(options.iter().copied()).collect();
        self.sandbox.mu(&arguments).ok();
        self.nginx.log()[before..].to_vec()
    }

    /// Removes what is chosen and installed, but not what is known.
    fn forget_choice(&self) {
        fs::remove_file(self.sandbox.path("work/Mu.lock")).expect("is there");
        fs::remove_dir_all(self.sandbox.path("work/.mu/packs")).expect("is there");
    }
}

#[test]
fn one_host_has_charts_and_operators_and_repositories() {
    let host = Host::new();
    let all = ["stable/web", "operators/kafka", "git/tool"];
    let log = host.get(&[], &all);
    let probes = log.iter().filter(|line| line.contains("hub.json")).count();
    assert_eq!(probes, 1, "one look for a hub at a host: {log:?}");
    let locked = host.sandbox.locked();
    let at = |name: &str| format!("{}/{name}", host.nginx.host());
    let expected =
        [at("git/tool 1.0.0"), at("operators/kafka 2.5.0-1.3.1"), at("stable/web 0.3.0")];
    assert_eq!(locked, expected);
    let sources: Vec<String> = host.sandbox.lock()["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .map(|package| package["source"].as_str().expect("a source").to_owned())
        .collect();
    let kinds: Vec<&str> =
        sources.iter().filter_map(|source| Some(source.split_once('+')?.0)).collect();
    assert_eq!(kinds, ["git", "kudo", "helm"]);
    // In whatever order they are met, and whatever is known already.
    for name in ["git/tool", "operators/kafka", "stable/web"] {
        host.forget_choice();
        fs::remove_dir_all(host.sandbox.path("cache")).expect("is there");
        host.get(&[], &[name]);
        host.forget_choice();
        host.get(&[], &all);
        assert_eq!(host.sandbox.locked(), expected, "{name} was known");
    }
}

#[test]
fn what_was_found_is_not_looked_for_again() {
    let host = Host::new();
    let all = ["stable/web", "operators/kafka", "git/tool"];
    host.get(&[], &all);
    host.forget_choice();
    let references = all.map(|name| host.nginx.url(name));
    let references = references.each_ref().map(String::as_str);
    let chosen = ["git/tool 1.0.0", "operators/kafka 2.5.0-1.3.1", "stable/web 0.3.0"];
    host.sandbox.mu(&[&["resolve", "--offline"], &references[..]].concat()).ok().says(&chosen);
    let log = host.get(&["--refresh"], &all);
    let is_probe = |line: &&String| line.contains("hub.json") || line.contains(" 404");
    let probes: Vec<&String> =
        log.iter().filter(is_probe).filter(|line| !line.contains("/git/")).collect();
    assert!(probes.is_empty(), "{probes:?}");
    // The other chart of a known repository needs nothing but that.
    let expected = ["GET /stable/index.yaml HTTP/1.1 304", "GET /stable/db-0.4.0.tgz HTTP/1.1 200"];
    assert_eq!(host.get(&[], &["stable/db"]), expected);
    // Another repository beside a known one is asked itself.
    host.get(&[], &["git/other"]);
    assert!(host.sandbox.locked().contains(&format!("{}/git/other 2.0.0", host.nginx.host())));
}

#[test]
fn a_package_that_is_nowhere_names_every_place() {
    let host = Host::new();
    // A wrong name tells nothing about the other packages of the host.
    for _ in 0..2 {
        host.sandbox.mu(&["get", &host.nginx.url("stabel/web")]).fails().says(&[
            "  there is no package [HOST]/stabel/web",
            "    looked at http://[HOST]/hub.json",
            "    looked at http://[HOST]/stabel/web, where there is no Git repository",
            "    looked at http://[HOST]/stabel/index.yaml",
        ]);
    }
    host.get(&[], &["stable/web"]);
}
