//! Packages in Git repositories, behind `git http-backend` and `git daemon`: every kind of version.

use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::support::git::{Daemon, HttpServer, Origin};
use crate::support::{Sandbox, digest_of, write};

/// A repository with a package at its root and one in `sub/dir`, and the commits of its releases.
struct Infra {
    origin: Origin,
    first: String,
    beta: String,
    head: String,
}

fn infra() -> Infra {
    let origin = Origin::new("group/infra.git");
    let commit = |mark: &str| {
        origin.commit(&[
            ("Mu.yaml", "name: acme/infra\n"),
            ("mark.txt", mark),
            ("sub/dir/Mu.yaml", "name: acme/dir\n"),
            ("sub/dir/mark.txt", mark),
        ])
    };
    let first = commit("v1.0.0");
    origin.git(&["tag", "v1.0.0"]);
    commit("v1.2.0");
    origin.git(&["tag", "--annotate", "--message", "a release", "v1.2.0"]);
    commit("v2.0.0");
    origin.git(&["tag", "2.0.0"]);
    let beta = commit("beta1");
    origin.git(&["tag", "beta1"]);
    origin.git(&["branch", "feature/x"]);
    let head = commit("head");
    Infra { origin, first, beta, head }
}

/// Gets every kind of version from a server, for the package at the root and for the one in the folder.
fn check(infra: &Infra, root: &str) {
    let short = infra.first[..7].to_owned();
    let (first, head, beta) = (&*infra.first, &*infra.head, &*infra.beta);
    let cases = [
        ("#^1.0", "v1.2.0", "1.2.0", None, None),
        ("#v1.2.0", "v1.2.0", "1.2.0", None, None),
        ("#1.0.0", "v1.0.0", "1.0.0", Some(first), None),
        (&format!("#{first}"), "v1.0.0", "1.0.0", Some(first), None),
        (&format!("#{short}"), "v1.0.0", "1.0.0", Some(first), None),
        ("#beta1", "beta1", "", Some(beta), Some("beta1")),
        ("#main", "head", "", Some(head), Some("main")),
        ("#feature/x", "beta1", "", Some(beta), Some("feature/x")),
        ("", "v2.0.0", "2.0.0", None, None),
        ("#tip", "head", "", Some(head), None),
    ];
    let base = root.split_once("://").expect("is a URL").1.trim_end_matches('/');
    for folder in ["", "/sub/dir"] {
        let sandbox = Sandbox::new();
        for (version, mark, number, commit, name) in cases {
            let reference = format!("{root}group/infra.git{folder}{version}");
            sandbox.mu(&["get", &reference]).ok();
            let pack = format!(".mu/packs/{}/group/infra{folder}", base.replace(':', "+"));
            assert_eq!(sandbox.read(&format!("{pack}/mark.txt")), mark, "{reference}");
            let run = sandbox.mu(&["which", &reference]).ok();
            assert_eq!(run.stdout, format!("[DIR]/work/{pack}\n"), "{reference}");
            let locked = sandbox.lock()["packages"][0].clone();
            assert_eq!(locked["id"], format!("{base}/group/infra{folder}"), "{reference}");
            assert_eq!(locked["digest"], digest_of(&sandbox.path("work").join(&pack)));
            if !number.is_empty() && !version.starts_with(&format!("#{short}")) {
                assert_eq!(locked["version"], number, "{reference}");
            }
            if let Some(commit) = commit {
                assert_eq!(locked["commit"], commit, "{reference}");
            }
            if let Some(name) = name {
                assert_eq!(locked["ref"], name, "{reference}");
            }
            assert_eq!(locked["commit"].as_str().map(str::len), Some(40), "{reference}");
        }
        sandbox.mu(&["verify"]).ok().says(&["1 pack verified"]);
    }
}

#[test]
fn every_kind_of_version_over_http() {
    let infra = infra();
    let server = HttpServer::start(infra.origin.root());
    check(&infra, &server.root());
}

#[test]
fn every_kind_of_version_from_a_daemon() {
    let infra = infra();
    let daemon = Daemon::start(infra.origin.root());
    check(&infra, &daemon.root());
}

#[test]
fn a_repository_of_this_machine_needs_no_server() {
    let infra = infra();
    let sandbox = Sandbox::new();
    let path = infra.origin.folder().display().to_string();
    sandbox.mu(&["get", &format!("git+file://{path}#^1.0")]).ok();
    let locked = sandbox.locked().remove(0);
    assert!(locked.starts_with("localhost/") && locked.ends_with("/group/infra 1.2.0"), "{locked}");
}

#[test]
fn tags_of_a_folder_win_there() {
    let infra = infra();
    infra.origin.commit(&[("sub/dir/mark.txt", "own tag")]);
    infra.origin.git(&["tag", "sub/dir/v1.3.0"]);
    let server = HttpServer::start(infra.origin.root());
    let sandbox = Sandbox::new();
    sandbox.mu(&["get", &format!("{}group/infra.git/sub/dir#^1", server.root())]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.3.0");
    sandbox.mu(&["get", &format!("{}group/infra.git#^1", server.root())]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.2.0");
}

#[test]
fn tags_may_name_the_last_part_of_a_folder_alone() {
    let origin = Origin::new("group/charts.git");
    origin.release("v9.0.0");
    for version in ["1.0.0", "1.2.0"] {
        let chart = format!("apiVersion: v2\nname: web\nversion: {version}\n");
        origin.commit(&[("charts/web/Chart.yaml", &chart)]);
        origin.git(&["tag", &format!("web-{version}")]);
    }
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::new();
    for (asked, version) in
        [("", "1.2.0"), ("#~1.0", "1.0.0"), ("#1.0.0", "1.0.0"), ("#web-1.0.0", "1.0.0")]
    {
        let reference = format!("{}group/charts.git/charts/web{asked}", server.root());
        sandbox.mu(&["get", &reference]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["version"], version, "{asked}");
        sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
        sandbox.mu(&["verify", "--trust"]).ok();
    }
}

#[test]
fn submodules_come_with_their_package() {
    let mut origin = Origin::new("group/lib.git");
    let pinned = origin.commit(&[("lib.txt", "pinned")]);
    origin.commit(&[("lib.txt", "later")]);
    origin.add("group/outer.git");
    let settings = "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib.git\n";
    origin.commit(&[("Mu.yaml", "name: acme/outer\n"), (".gitmodules", settings)]);
    origin.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{pinned},lib")]);
    origin.git(&["commit", "--quiet", "--message", "a submodule"]);
    origin.git(&["tag", "v1.0.0"]);
    let (web, daemon) = (HttpServer::start(origin.root()), Daemon::start(origin.root()));
    let mut digests = Vec::new();
    for root in [web.root(), daemon.root()] {
        let sandbox = Sandbox::new();
        sandbox.mu(&["get", &format!("{root}group/outer.git#v1.0.0")]).ok();
        let host = root.split_once("://").expect("is a URL").1.replace(':', "+");
        let lib = sandbox.read(&format!(".mu/packs/{host}group/outer/lib/lib.txt"));
        assert_eq!(lib, "pinned");
        digests.push(sandbox.lock()["packages"][0]["digest"].clone());
    }
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn a_repository_without_a_manifest_gets_one_that_its_digest_leaves_out() {
    let origin = Origin::new("plain.git");
    origin.commit(&[("main.tf", "# terraform\n"), ("run.sh", "#!/bin/sh\n")]);
    origin.git(&["tag", "v0.3.0"]);
    let server = HttpServer::start(origin.root());
    let mut sandbox = Sandbox::with_dependencies(&[&format!("{}plain.git#^0.3", server.root())]);
    sandbox.replace(&server.host(), "[HOST]");
    sandbox.mu(&["get"]).ok();
    let pack = format!(".mu/packs/{}/plain", server.host().replace(':', "+"));
    let manifest = sandbox.read(&format!("{pack}/Mu.yaml"));
    assert!(manifest.contains("x-generated: true"), "{manifest}");
    assert!(manifest.contains("version: \"0.3.0\""), "{manifest}");
    let content = tempfile::tempdir().expect("there is room");
    crate::support::write(content.path(), "main.tf", "# terraform\n");
    crate::support::write(content.path(), "run.sh", "#!/bin/sh\n");
    assert_eq!(sandbox.lock()["packages"][0]["digest"], digest_of(content.path()));
    sandbox.mu(&["verify"]).ok();
    // It is found like any other, and changed content is noticed.
    sandbox.mu(&["which", &format!("{}/plain#^0.3", server.host())]).ok();
    crate::support::write(&sandbox.path("work").join(&pack), "new.tf", "");
    sandbox.mu(&["verify"]).fails();
}

#[test]
fn what_is_not_there_is_said_so() {
    let infra = infra();
    let server = HttpServer::start(infra.origin.root());
    let mut sandbox = Sandbox::new();
    sandbox.replace(&server.host(), "[HOST]");
    let get = |reference: &str| {
        let reference = format!("{}{reference}", server.root());
        sandbox.mu(&["get", &reference, "--json"]).fails_with("not-found")["message"].to_string()
    };
    assert!(get("group/nothing.git").contains("group/nothing"));
    assert!(get("group/infra.git#no-such-branch").contains("no-such-branch"));
    assert!(get("group/infra.git#0123456789012345678901234567890123456789").contains("0123456"));
    assert!(get("group/infra.git/no/dir#v1.0.0").contains("no/dir"));
}

#[test]
fn a_branch_moves_only_when_it_is_updated() {
    let infra = infra();
    let server = HttpServer::start(infra.origin.root());
    let main = format!("{}group/infra.git#main", server.root());
    let sandbox = Sandbox::with_dependencies(&[&main]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["commit"], *infra.head);
    let next = infra.origin.commit(&[("mark.txt", "next")]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["commit"], *infra.head, "the lock holds it");
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["commit"], *next);
    // It is pinned to a commit, because it has no version, and back.
    for name in ["main", "tip", "feature/x"] {
        let reference = main.replace("main", name);
        let written = format!("name: acme/web\ndependencies:\n  - {reference}\n");
        sandbox.write("Mu.yaml", &written);
        sandbox.mu(&["get"]).ok();
        let commit = sandbox.lock()["packages"][0]["commit"].as_str().expect("is text").to_owned();
        sandbox.mu(&["pin"]).ok();
        let pinned = sandbox.read("Mu.yaml");
        assert!(pinned.contains(&format!("#{commit}")), "{pinned}");
        sandbox.mu(&["unpin"]).ok();
        assert_eq!(sandbox.read("Mu.yaml"), written);
    }
}

#[test]
fn a_tag_is_a_pin_already() {
    let infra = infra();
    let server = HttpServer::start(infra.origin.root());
    let tag = format!("{}group/infra.git#beta1", server.root());
    let sandbox = Sandbox::with_dependencies(&[&tag]);
    sandbox.mu(&["get"]).ok();
    let manifest = sandbox.read("Mu.yaml");
    sandbox.mu(&["pin"]).ok().says(&["up to date ("]);
    assert_eq!(sandbox.read("Mu.yaml"), manifest);
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["commit"], *infra.beta);
}

#[test]
fn another_commit_in_the_manifest_is_another_one_in_the_lock() {
    let origin = Origin::new("lib.git");
    let commits = ["one", "two", "three"].map(|text| {
        origin.commit(&[("Mu.yaml", "name: acme/lib\n"), ("text", text)]).trim().to_owned()
    });
    let [one, two, three] = &commits;
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::new();
    // From the tip, the name of a branch, and other digits, to a commit that no tag makes a version.
    for (name, commit) in
        [("tip", three), (one, one), (two, two), (&one[..10], one), ("main", three), (two, two)]
    {
        sandbox.asks_for(&[&format!("git+{}lib.git#{name}", server.root())]);
        sandbox.mu(&["get"]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["commit"], **commit, "{name}");
        sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    }
}

#[test]
fn a_commit_that_is_asked_for_is_compared_with_no_tag() {
    let origin = Origin::new("lib.git");
    origin.commit(&[("Mu.yaml", "name: acme/lib\nversion: 1.0.0\n")]);
    origin.git(&["tag", "v1.0.0"]);
    // Its manifest says the last version, as most do between two releases.
    let later = origin.commit(&[("more", "later")]);
    let server = HttpServer::start(origin.root());
    for digits in [later.trim(), &later[..10]] {
        let reference = format!("git+{}lib.git#{digits}", server.root());
        let sandbox = Sandbox::with_dependencies(&[&reference]);
        sandbox.mu(&["get"]).ok();
        for command in [&["verify", "--trust"][..], &["audit"]] {
            sandbox.mu(command).ok().does_not_say(&["the commit of the tag"]);
        }
        // One that is gone is found, of course.
        let lock = sandbox.read("Mu.lock");
        let other = format!("{}{}", digits, &"0".repeat(40)[digits.len()..]);
        if other != digits {
            sandbox.write("Mu.lock", &lock.replace(later.trim(), &other));
            sandbox.mu(&["verify", "--trust"]).fails().says(&["has no commit"]);
        }
    }
}

#[test]
fn the_object_of_a_tag_leads_to_its_commit() {
    let origin = Origin::new("lib.git");
    let commit = origin.commit(&[("Mu.yaml", "name: acme/lib\n")]);
    origin.git(&["tag", "--annotate", "--message", "the first", "v1.0.0"]);
    origin.commit(&[("Mu.yaml", "name: acme/lib\ndescription: later\n")]);
    // As `git rev-parse` prints it for an annotated tag.
    let object = origin.git(&["rev-parse", "v1.0.0"]);
    let object = object.trim();
    assert_ne!(object, commit);
    let server = HttpServer::start(origin.root());
    for root in [server.root(), format!("git+file://{}/", origin.root().display())] {
        for digits in [object, &object[..12]] {
            let sandbox = Sandbox::with_dependencies(&[&format!("{root}lib.git#{digits}")]);
            sandbox.mu(&["get"]).ok();
            let lock = sandbox.read("Mu.lock");
            assert_eq!(sandbox.lock()["packages"][0]["commit"], *commit);
            assert_eq!(sandbox.lock()["packages"][0]["version"], "1.0.0");
            for command in [&["get", "--locked"][..], &["get"], &["update"], &["verify"]] {
                sandbox.mu(command).ok();
                assert_eq!(sandbox.read("Mu.lock"), lock, "{digits}: {command:?}");
            }
            sandbox.mu(&["get", "--offline"]).ok();
        }
    }
}

#[test]
fn the_packages_in_the_folders_of_a_repository_are_listed() {
    let origin = Origin::new("modules.git");
    origin.commit(&[("net/vpc/Mu.yaml", "name: vpc\n"), ("data/db/Mu.yaml", "name: db\n")]);
    for tag in ["net/vpc/v1.0.0", "net/vpc/v1.1.0", "data/db/v0.1.0", "data/old"] {
        origin.git(&["tag", tag]);
    }
    // A tag may speak of a folder that was never there.
    origin.git(&["tag", "net/gone/v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let mut sandbox = Sandbox::new();
    sandbox.replace(&server.host(), "[HOST]");
    let reference = format!("{}modules.git", server.root());
    let packages = "its tags give versions to folders: `http://[HOST]/modules.git/data/db`, `http://[HOST]/modules.git/net/gone`, \
                    `http://[HOST]/modules.git/net/vpc`";
    sandbox.mu(&["versions", &reference]).ok().says(&["has no version tags", packages]);
    // Of one of them, those are not inside.
    let inside = sandbox.mu(&["versions", &format!("{reference}/net/vpc")]).ok();
    inside.says(&["1.1.0"]).does_not_say(&["give versions to folders", "data/db"]);
    let json = sandbox.mu(&["versions", &reference, "--json"]).ok().json();
    assert_eq!(json["packages"].as_array().map(Vec::len), Some(3));
    sandbox.mu(&["get", &format!("{reference}#v1.0.0")]).fails().says(&["`net/vpc`"]);
    for folder in ["net/vpcc", "net/gone"] {
        let run = sandbox.mu(&["get", &format!("{reference}/{folder}")]).fails();
        run.says(&["folders of it that have versions: `data/db`, `net/vpc`"]);
    }
    sandbox.mu(&["get", &format!("{reference}/net/vpc")]).ok();
}

#[test]
fn a_tag_that_leads_to_no_commit_stops_no_other_version() {
    let origin = Origin::new("odd.git");
    origin.commit(&[("Mu.yaml", "name: acme/odd\n")]);
    origin.git(&["tag", "v1.0.0"]);
    // A tag of a folder, and one of a file: Linux and Git have such tags.
    let tree = origin.git(&["rev-parse", "HEAD^{tree}"]);
    let blob = origin.git(&["rev-parse", "HEAD:Mu.yaml"]);
    origin.git(&["tag", "--annotate", "--message", "a folder", "v1.1.0", tree.trim()]);
    origin.git(&["tag", "key", blob.trim()]);
    let server = HttpServer::start(origin.root());
    for root in [server.root(), format!("git+file://{}/", origin.root().display())] {
        let sandbox = Sandbox::new();
        let reference = format!("{root}odd.git");
        sandbox.mu(&["versions", &reference]).ok().says(&["1.0.0", "1.1.0"]);
        sandbox.mu(&["get", &format!("{reference}#^1")]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["version"], "1.0.0");
        sandbox.mu(&["update"]).ok();
        for name in ["v1.1.0", "key"] {
            let sandbox = Sandbox::new();
            let run = sandbox.mu(&["get", &format!("{reference}#{name}")]).fails();
            run.says(&["is not a commit", name]);
        }
    }
}

#[test]
fn a_repository_without_version_tags_is_taken_at_its_tip() {
    let origin = Origin::new("young.git");
    origin.commit(&[("Mu.yaml", "name: acme/young\n")]);
    origin.git(&["tag", "v1"]);
    let head = origin.commit(&[("new.txt", "new")]);
    let server = HttpServer::start(origin.root());
    let reference = format!("{}young.git", server.root());
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.mu(&["add", &reference]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["commit"], *head);
    // There is no version, so none is written.
    assert!(sandbox.read("Mu.yaml").ends_with(&format!("- {reference}\n")));
    // `v1` is a plain tag, unless the registry's settings say otherwise.
    sandbox.mu(&["get", &format!("{reference}#^1"), "--json"]).fails_with("not-found");
    let settings = format!(
        "registries:\n  {}/: {{provider: git, url: \"{}\", versions: lenient}}\n",
        server.host(),
        server.root()
    );
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.asks_for(&[&format!("{reference}#^1")]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1");
}

#[test]
fn the_root_of_a_repository_is_found_by_asking() {
    let infra = infra();
    let server = HttpServer::start(infra.origin.root());
    // Without `.git` and without a setting for the host: there is no hub, so it is a repository, the longest
    // prefix first.
    std::fs::rename(infra.origin.folder(), infra.origin.root().join("group/plain"))
        .expect("is ours");
    let sandbox = Sandbox::new();
    sandbox.mu(&["get", &format!("{}group/plain/sub/dir#v1.2.0", server.root())]).ok();
    let pack = format!(".mu/packs/{}/group/plain/sub/dir", server.host().replace(':', "+"));
    assert_eq!(sandbox.read(&format!("{pack}/mark.txt")), "v1.2.0");
}

#[test]
fn a_folder_beside_is_a_package_of_the_same_commit() {
    let origin = Origin::new("g/mono.git");
    let manifest = |name: &str, needs: &str| format!("name: {name}\ndependencies: [{needs}]\n");
    let commit = |mark: &str| {
        let commit = origin.commit(&[
            ("libs/a/Mu.yaml", &manifest("a", "../b")),
            ("libs/b/Mu.yaml", &manifest("b", "../../base")),
            ("base/Mu.yaml", &manifest("base", "")),
            ("base/mark.txt", mark),
        ]);
        origin.git(&["tag", mark]);
        commit
    };
    commit("v1.0.0");
    let second = commit("v1.1.0");
    commit("v2.0.0");
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::new();
    sandbox.mu(&["get", &format!("{}g/mono.git/libs/a#^1", server.root())]).ok();
    let host = server.host();
    let expected = ["base", "libs/a", "libs/b"].map(|at| format!("{host}/g/mono/{at} 1.1.0"));
    assert_eq!(sandbox.locked(), expected);
    let folder = format!(".mu/packs/{}/g/mono", host.replace(':', "+"));
    assert_eq!(sandbox.read(&format!("{folder}/base/mark.txt")), "v1.1.0");
    let lock = sandbox.lock();
    assert_eq!(lock["packages"][0]["commit"], *second);
    assert_eq!(lock["packages"][0]["requested"][0], format!("{second} by {host}/g/mono/libs/b"));
    sandbox.mu(&["get"]).ok().says(&["up to date ("]);
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.lock(), lock);
}

#[test]
fn a_folder_outside_the_repository_is_refused() {
    let mut origin = Origin::new("g/other.git");
    origin.commit(&[("Mu.yaml", "name: other\n")]);
    origin.add("g/mono.git");
    let commit = origin.commit(&[("a/Mu.yaml", "name: a\ndependencies:\n  - ../../other\n")]);
    let server = HttpServer::start(origin.root());
    let mut sandbox = Sandbox::new();
    sandbox.replace(&server.host(), "HOST");
    sandbox.replace(&commit, "COMMIT");
    let reference = format!("{}g/mono.git/a", server.root());
    let run = sandbox.mu(&["get", &reference]).fails();
    insta::assert_snapshot!(run.stderr, @"
    error: could not look up `HOST/g/mono/a`
      caused by: `HOST/g/mono/a` COMMIT cannot be used, because of one of its dependencies
      caused by: the folder `../../other` is not in its repository
     --> http://HOST/g/mono.git/a/Mu.yaml:3:5
      |
    3 |   - ../../other
      |     ^^^^^^^^^^^
      |
      = help: its author has to name the package in it instead, as in `https://github.com/acme/utils#^1.0`
    ");
    let error = sandbox.mu(&["get", &reference, "--json"]).fails_with("manifest");
    assert_eq!((&error["details"]["line"], &error["details"]["column"]), (&json!(3), &json!(5)));
    assert!(error["help"].as_str().is_some_and(|help| help.contains("instead")), "{error}");
    assert!(!sandbox.has("work/Mu.lock"));
}

/// A repository whose newer versions are for another mu, or of another format, or for another runtime.
fn for_others() -> Origin {
    let origin = Origin::new("group/later.git");
    let release = |manifest: &str, version: &str| {
        origin.commit(&[("Mu.yaml", &format!("name: acme/later\n{manifest}\n"))]);
        origin.git(&["tag", version]);
    };
    release("", "v1.0.0");
    release("constraints: {kubernetes: '>=1.25'}", "v1.1.0");
    release("muVersion: '>=99'", "v1.2.0");
    release("apiVersion: mu/v2\nwhatever: {that: means}", "v1.3.0");
    release("muVersion: '>=99'\nwhatever: {that: means}", "v1.4.0");
    origin
}

#[test]
fn versions_for_another_mu_or_runtime_are_no_candidates() {
    let origin = for_others();
    let server = HttpServer::start(origin.root());
    let later = format!("{}group/later.git", server.root());
    for resolution in ["highest", "minimal"] {
        let mut sandbox = Sandbox::new();
        sandbox.set("MU_RESOLUTION", resolution);
        sandbox.mu(&["get", &format!("{later}#^1")]).ok();
        let expected = if resolution == "highest" { "1.1.0" } else { "1.0.0" };
        assert_eq!(sandbox.lock()["packages"][0]["version"], expected);
        sandbox.write(".mu/workspace.yaml", "runtime: {kubernetes: 1.20.0}\n");
        sandbox.mu(&["update"]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["version"], "1.0.0");
    }
    let sandbox = Sandbox::new();
    for version in ["1.2.0", "1.3.0", "main"] {
        let run = sandbox.mu(&["get", &format!("{later}#{version}")]).fails();
        let reason =
            if version == "1.3.0" { "needs the manifest format mu/v2" } else { "needs mu >=99" };
        run.says(&[reason]);
    }
    let run = sandbox.mu(&["get", &format!("{later}#^1.2")]).fails();
    run.says(&[
        "group/later 1.3.0 needs the manifest format mu/v2",
        "group/later 1.2.0 and 1.4.0 need mu >=99",
        "group/later has 1.0.0 and 1.1.0",
        &format!("`mu get '{later}#^1.1.0'`"),
    ]);
}

#[test]
fn a_lock_asks_for_the_tag_of_its_version_and_for_no_other() {
    let origin = Origin::new("r.git");
    let commit = origin.commit(&[("Mu.yaml", "name: acme/r\n")]);
    let tags: Vec<String> = (0..2_000)
        .map(|number| format!("{} refs/tags/v1.{}.{}\n", commit.trim(), number / 100, number % 100))
        .collect();
    write(origin.folder(), ".git/packed-refs", tags.concat());
    let answered: Arc<Mutex<Vec<usize>>> = Arc::default();
    let lengths = Arc::clone(&answered);
    let server = HttpServer::answering(origin.root(), move |reply| {
        lengths.lock().expect("nobody panics").push(reply.length());
        reply
    });
    // What each request for tags and branches asks for, and how many bytes were answered in all.
    let asked = |from: usize| {
        let seen = server.seen();
        let bodies = seen[from..].iter().map(|seen| String::from_utf8_lossy(&seen.body));
        let listings = bodies.filter(|body| body.contains("command=ls-refs"));
        let prefixes: Vec<Vec<String>> = listings
            .map(|body| {
                let lines = body.lines().filter_map(|line| line.split_once("ref-prefix "));
                lines.map(|(_, prefix)| prefix.to_owned()).collect()
            })
            .collect();
        let bytes: usize = answered.lock().expect("nobody panics")[from..].iter().sum();
        (seen.len(), prefixes, bytes)
    };
    let sandbox = Sandbox::with_dependencies(&[&format!("git+{}r.git#~1.7.3", server.root())]);
    sandbox.mu(&["get"]).ok();
    let (requests, prefixes, bytes) = asked(0);
    assert_eq!(
        (requests, prefixes),
        (3, vec![["HEAD", "refs/heads/", "refs/tags/"].map(str::to_owned).to_vec()])
    );
    assert!(bytes > 2_000 * 60, "{bytes}");
    // Another machine.
    for folder in ["cache", "work/.mu/packs"] {
        std::fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    sandbox.mu(&["get", "--locked"]).ok();
    let (all, prefixes, bytes) = asked(requests);
    assert_eq!((all - requests, prefixes), (3, vec![vec!["refs/tags/v1.7.99".to_owned()]]));
    assert!(bytes < 2_000, "{bytes}");
    // A lock that says another version of the commit is still found out, by all tags.
    let lock = sandbox.read("Mu.lock");
    sandbox.write("Mu.lock", &lock.replace("1.7.99", "1.7.100"));
    for folder in ["cache", "work/.mu/packs"] {
        std::fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    sandbox.mu(&["get", "--locked"]).fails().says(&["1.7.100"]);
}
