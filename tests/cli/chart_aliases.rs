//! A chart that lists another one twice, with two aliases: commands change each of its entries.

use std::fs;

use mu_testing::{Chart, Charts, Nginx};

use crate::support::Sandbox;

/// A repository with three versions of `web`, and a chart that has it twice.
struct Shop {
    sandbox: Sandbox,
    nginx: Nginx,
}

impl Shop {
    fn new(front: &str, back: &str) -> Self {
        let mut sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
        let mut charts = Charts::new(&sandbox.path("www/stable"));
        let nginx = Nginx::serve(&sandbox.path("www"), "");
        sandbox.replace(&nginx.host(), "[HOST]");
        for version in ["1.0.0", "1.5.0", "2.0.0"] {
            charts.add(&Chart::new("web", version));
        }
        let shop = Self { sandbox, nginx };
        shop.sandbox.write("Chart.yaml", &shop.chart(front, back));
        shop
    }

    /// The text of the chart, with what follows each `version:`.
    fn chart(&self, front: &str, back: &str) -> String {
        let url = self.nginx.url("stable");
        let entry = |alias: &str, version: &str| {
            format!("- name: web\n  repository: {url}\n  alias: {alias}\n  version: {version}\n")
        };
        let entries = format!("{}{}", entry("front", front), entry("back", back));
        format!("apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n{entries}")
    }

    /// Expects these versions in the chart, whatever the comments are.
    #[track_caller]
    fn has(&self, front: &str, back: &str) {
        let text = self.sandbox.read("Chart.yaml");
        let line = |line: &str| line.split(" #").next().unwrap_or_default().to_owned();
        let bare: Vec<String> = text.lines().map(line).collect();
        assert_eq!(format!("{}\n", bare.join("\n")), self.chart(front, back), "{text}");
    }
}

#[test]
fn every_entry_is_pinned_and_unpinned() {
    let shop = Shop::new("^1", "1.x");
    let before = shop.sandbox.read("Chart.yaml");
    shop.sandbox.mu(&["get"]).ok();
    let pinned = shop.sandbox.mu(&["pin"]).ok();
    pinned.says(&["web ^1 → 1.5.0 in Chart.yaml", "web 1.x → 1.5.0 in Chart.yaml"]);
    shop.has("1.5.0", "1.5.0");
    shop.sandbox.mu(&["get", "--locked"]).ok();
    let unpinned = shop.sandbox.mu(&["unpin"]).ok();
    unpinned.says(&["web 1.5.0 → ^1 in Chart.yaml", "web 1.5.0 → 1.x in Chart.yaml"]);
    assert_eq!(shop.sandbox.read("Chart.yaml"), before);
}

#[test]
fn each_of_two_majors_is_pinned_to_its_own_version() {
    let shop = Shop::new("^1", "^2");
    shop.sandbox.write(".mu/workspace.yaml", "majors: many\n");
    let before = shop.sandbox.read("Chart.yaml");
    shop.sandbox.mu(&["get"]).ok();
    let pinned = shop.sandbox.mu(&["pin"]).ok();
    pinned.says(&["web ^1 → 1.5.0 in Chart.yaml", "web ^2 → 2.0.0 in Chart.yaml"]);
    shop.has("1.5.0", "2.0.0");
    shop.sandbox.mu(&["get", "--locked"]).ok();
    shop.sandbox.mu(&["unpin"]).ok();
    assert_eq!(shop.sandbox.read("Chart.yaml"), before);
}

#[test]
fn two_majors_under_their_aliases_stay_without_a_setting() {
    for strategy in ["highest", "minimal"] {
        let shop = Shop::new("^1.5.0", "^2.0.0");
        let sandbox = &shop.sandbox;
        sandbox.write(".mu/workspace.yaml", &format!("resolution: {strategy}\n"));
        sandbox.mu(&["get"]).ok();
        let web = format!("{}/stable/web", shop.nginx.host());
        let both = [format!("{web} 1.5.0"), format!("{web} 2.0.0")];
        assert_eq!(sandbox.locked(), both);
        let lock = sandbox.read("Mu.lock");
        sandbox.mu(&["get", "--locked"]).ok();
        for command in ["get", "update"] {
            sandbox.mu(&[command]).ok();
            assert_eq!(sandbox.read("Mu.lock"), lock, "{command}, {strategy}");
        }
        sandbox.mu(&["verify"]).ok();
    }
}

#[test]
fn two_versions_of_one_major_stand_beside_each_other_under_their_aliases() {
    for strategy in ["highest", "minimal"] {
        let shop = Shop::new("1.5.0", "1.0.0");
        let sandbox = &shop.sandbox;
        sandbox.write(".mu/workspace.yaml", &format!("resolution: {strategy}\n"));
        sandbox.mu(&["get"]).ok();
        let web = format!("{}/stable/web", shop.nginx.host());
        assert_eq!(sandbox.locked(), [format!("{web} 1.0.0"), format!("{web} 1.5.0")]);
        let packs = format!("work/.mu/packs/{}", web.replace(':', "+"));
        assert!(sandbox.has(&format!("{packs}/Chart.yaml")));
        assert!(sandbox.has(&format!("{packs}@1.0.0/Chart.yaml")));
        let lock = sandbox.read("Mu.lock");
        assert!(lock.contains("beside: [1.5.0]") && lock.contains("beside: [1.0.0]"), "{lock}");
        sandbox.mu(&["get", "--locked", "--offline"]).ok();
        sandbox.mu(&["verify"]).ok();
        sandbox.mu(&["tree"]).ok().says(&["web 1.0.0", "web 1.5.0"]);
        sandbox.mu(&["vendor", "--for", "helm"]).ok();
        assert!(
            sandbox.has("work/charts/web-1.0.0.tgz") && sandbox.has("work/charts/web-1.5.0.tgz")
        );
        let names = sandbox.read("Chart.lock");
        assert!(names.find("1.5.0") < names.find("1.0.0"), "in the order of the chart: {names}");
        // Entries that no longer stand beside each other are one package twice, as merges leave it.
        let torn = lock.replace("  beside: [1.5.0]\n", "");
        sandbox.write("Mu.lock", &torn);
        sandbox.mu(&["get", "--locked"]).fails().says(&["is in the lock twice"]);
        sandbox.write("Mu.lock", &lock);
        // Where one will do, there is one again.
        sandbox.write("Chart.yaml", &shop.chart("^1.0.0", "1.0.0"));
        sandbox.mu(&["update"]).ok();
        assert_eq!(sandbox.locked(), [format!("{web} 1.0.0")]);
        assert!(!sandbox.has(&format!("{packs}@1.0.0")));
    }
}

#[test]
fn every_entry_is_upgraded() {
    for strategy in ["highest", "minimal"] {
        let shop = Shop::new("^1.0.0", "1.x");
        shop.sandbox.write(".mu/workspace.yaml", &format!("resolution: {strategy}\n"));
        shop.sandbox.mu(&["get"]).ok();
        shop.sandbox.mu(&["upgrade"]).ok();
        shop.has("^2.0.0", if strategy == "highest" { "2.x" } else { "^2.0.0" });
        assert_eq!(shop.sandbox.locked(), [format!("{}/stable/web 2.0.0", shop.nginx.host())]);
        shop.sandbox.mu(&["get", "--locked"]).ok();
    }
}

#[test]
fn a_dependency_is_added_under_an_alias() {
    let shop = Shop::new("1.5.0", "1.0.0");
    let sandbox = &shop.sandbox;
    let web = format!("helm+http://{}/stable/web", shop.nginx.host());
    sandbox.write("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n");
    let has = |front: &str, back: &str| {
        let text = sandbox.read("Chart.yaml");
        for (alias, version) in [("front", front), ("back", back)] {
            let entry = text.split("- ").find(|entry| entry.contains(&format!("alias: {alias}")));
            let is_so = |entry: &str| entry.contains(&format!("version: {version}\n"));
            assert!(entry.is_some_and(is_so), "{alias} {version}: {text}");
        }
        assert_eq!(text.matches("name: web").count(), 2, "{text}");
    };
    sandbox.mu(&["add", &format!("{web}#1.5.0"), "--alias", "front"]).ok();
    sandbox.mu(&["add", &format!("{web}#^1.0.0"), "--alias", "back"]).ok();
    has("1.5.0", "^1.0.0");
    // Each is changed by its alias.
    sandbox.mu(&["add", &format!("{web}#1.0.0"), "--alias", "back"]).ok();
    has("1.5.0", "1.0.0");
    assert_eq!(sandbox.locked().len(), 2);
    sandbox.mu(&["vendor", "--for", "helm"]).ok();
    assert!(sandbox.has("work/charts/web-1.0.0.tgz") && sandbox.has("work/charts/web-1.5.0.tgz"));
    // Without a version, one that fits is taken.
    sandbox.mu(&["add", &web, "--alias", "third", "--dry-run"]).ok();
    for (arguments, said) in [
        (&["add", &web, "--alias", "a b"][..], "is not an alias"),
        (&["add", &web, "--alias", ""], "is not an alias"),
        (&["add", &web, "a/b", "--alias", "x"], "is for one dependency"),
    ] {
        sandbox.mu(arguments).says(&[said]);
        has("1.5.0", "1.0.0");
    }
    sandbox.mu(&["remove", "back"]).ok();
    let text = sandbox.read("Chart.yaml");
    assert!(text.contains("alias: front") && !text.contains("alias: back"), "{text}");
}

#[test]
fn an_alias_is_the_key_where_dependencies_are_a_map() {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/vpc 1.0.0:\naws/vpc 2.0.0:\naws/log 1.0.0:");
    let manifest = |list: &str| format!("name: acme/web\nversion: 1.0.0\ndependencies:{list}\n");
    sandbox.write("Mu.yaml", &manifest("\n  aws/log: ^1.0.0"));
    sandbox.mu(&["add", "aws/vpc#^1", "--alias", "net"]).ok();
    let added = manifest("\n  aws/log: ^1.0.0\n  net: aws/vpc#^1");
    assert_eq!(sandbox.read("Mu.yaml"), added);
    sandbox.mu(&["add", "aws/vpc#^2", "--alias", "net"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), added.replace("#^1", "#^2"));
    sandbox.mu(&["add", "aws/vpc", "--alias", "other"]).says(&["is listed already"]);
    sandbox.mu(&["add", "aws/log", "--alias", "net"]).says(&["is listed already"]);
    // A list has no names.
    for list in [" [aws/log#^1.0.0]", " []"] {
        sandbox.write("Mu.yaml", &manifest(list));
        sandbox.mu(&["add", "aws/vpc", "--alias", "net"]).says(&["without names", "as a map"]);
        assert_eq!(sandbox.read("Mu.yaml"), manifest(list));
    }
}
