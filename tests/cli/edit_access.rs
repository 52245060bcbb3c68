//! How `mu edit` reaches repositories: without `git` on the path, and with the tokens of `mu login`.

use std::fs;
use std::path::Path;

use mu_testing::http::Reply;

use crate::edit::World;
use crate::support::git::{HttpServer, Origin, git};
use crate::support::{Sandbox, tree};

/// Releases version 1.1.0 of the repository's own package, with a submodule, which has one, too.
fn add_submodules(world: &World, inner: &HttpServer, inner_origin: &mut Origin) {
    inner_origin.commit(&[("leaf.txt", "leaf\n")]);
    let leaf = inner_origin.git(&["rev-parse", "HEAD"]);
    inner_origin.add("acme/part.git");
    let module =
        |name: &str, url: &str| format!("[submodule \"{name}\"]\n\tpath = {name}\n\turl = {url}\n");
    let link = |origin: &Origin, name: &str, commit: &str| {
        origin.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},{name}")]);
        origin.git(&["commit", "--quiet", "--message", name]);
        origin.git(&["rev-parse", "HEAD"])
    };
    inner_origin.commit(&[("part.txt", "part\n"), (".gitmodules", &module("leaf", "../leaf.git"))]);
    let part = link(inner_origin, "leaf", &leaf);
    let url = format!("{}acme/part.git", inner.root());
    world.origin.commit(&[
        ("main.tf", "two\n"),
        ("run.sh", "echo\n"),
        ("link", "-> main.tf"),
        (".gitmodules", &module("part", &url)),
    ]);
    link(&world.origin, "part", &part);
    world.origin.git(&["tag", "--annotate", "--message", "1.1.0", "v1.1.0"]);
    world.origin.git(&["branch", "feature/one", "HEAD~1"]);
}

#[test]
fn without_git_the_clone_is_whole_and_its_end_is_checked() {
    let mut world = World::new();
    let mut part = Origin::new("acme/leaf.git");
    let server = HttpServer::start(part.root());
    add_submodules(&world, &server, &mut part);
    let (root, place) = (world.id(""), world.place());
    world.sandbox.mu(&["update", &root]).ok().says(&["1.0.0 → 1.1.0"]);
    git(&world.work(), &["commit", "--quiet", "--all", "--message", "update"]);
    let nowhere = world.sandbox.path("nowhere").display().to_string();
    world.sandbox.set("PATH", &nowhere);
    let sandbox = &world.sandbox;

    sandbox.mu(&["edit", &root]).ok().says(&["(branch edit/mono-1.1.0)", "using the edit of"]);
    let clone = world.work().join(&place);
    assert_eq!(git(&clone, &["rev-parse", "HEAD"]), world.origin.git(&["rev-parse", "main"]));
    assert_eq!(git(&clone, &["symbolic-ref", "--short", "HEAD"]), "edit/mono-1.1.0");
    assert_eq!(git(&clone, &["status", "--porcelain", "--ignored"]), "");
    assert_eq!(git(&clone, &["fsck", "--full", "--strict"]), "");
    assert_eq!(
        git(&clone, &["submodule", "status", "--recursive"])
            .lines()
            .filter(|line| line.starts_with(['-', '+', 'U']))
            .count(),
        0
    );
    assert_eq!(sandbox.read(&format!("{place}/part/leaf/leaf.txt")), "leaf\n");
    // It is what Git would have made.
    let other = sandbox.path("other");
    let from = format!("file://{}", world.origin.folder().display());
    git(sandbox.root(), &["clone", "--quiet", &from, &other.display().to_string()]);
    let refs = |folder: &Path| {
        git(
            folder,
            &[
                "for-each-ref",
                "--format=%(refname) %(objectname) %(symref)",
                "refs/remotes",
                "refs/tags",
            ],
        )
    };
    assert_eq!(refs(&clone), refs(&other));
    assert_eq!(
        git(&clone, &["config", "remote.origin.fetch"]),
        git(&other, &["config", "remote.origin.fetch"])
    );
    assert_eq!(
        git(&clone, &["rev-list", "--all", "--count"]),
        git(&other, &["rev-list", "--all", "--count"])
    );
    world.is_untouched();

    // Its end is checked against what the servers have.
    world.commit_in(&place, "main.tf");
    world.commit_in(&format!("{place}/part"), "part.txt");
    let reasons = sandbox.mu(&["edit", "--done", &root]).fails();
    reasons.says(&[
        &format!("{place}: commits that no remote has"),
        &format!("{place}/part: commits that no remote has"),
    ]);
    world.push(&place);
    let to = part.folder().display().to_string();
    git(&clone.join("part"), &["push", "--quiet", &to, "HEAD:refs/heads/fix"]);
    sandbox.mu(&["edit", "--done", &root]).fails().says(&["changed and not committed: `part`"]);
    git(&clone, &["commit", "--quiet", "--all", "--message", "part"]);
    world.push(&place);
    sandbox.mu(&["edit", "--done", &root]).ok();
    world.is_untouched();

    // A package of a hub, whose version is a commit in a repository, and what fails leaves nothing.
    sandbox.mu(&["edit", "net/vpc"]).ok().says(&["editing net/vpc 1.2.0 in"]);
    let vpc = world.work().join(format!(".mu/edit/{place}"));
    assert_eq!(git(&vpc, &["rev-parse", "HEAD"]), world.commit);
    sandbox.mu(&["edit", "--done", "net/vpc"]).ok();
    let wrong = format!("{}acme/none.git", world.server.root());
    sandbox
        .mu(&["edit", "net/vpc", "--url", &wrong])
        .fails()
        .says(&["there is no Git repository at"]);
    assert!(!sandbox.has("work/.mu/edit/new"));
}

#[test]
fn without_git_a_repository_without_its_history_is_edited_too() {
    let mut world = World::new();
    world.origin.commit(&[("main.tf", "two\n")]);
    world.origin.git(&["tag", "v1.1.0"]);
    let whole = format!("file://{}", world.origin.folder().display());
    let shallow = world.origin.root().join("acme/shallow.git");
    let to = shallow.display().to_string();
    git(world.origin.root(), &["clone", "--quiet", "--bare", "--depth=1", &whole, &to]);
    world.sandbox.asks_for(&[&format!("git+{}acme/shallow.git#^1", world.server.root())]);
    world.sandbox.mu(&["get"]).ok();
    let nowhere = world.sandbox.path("nowhere").display().to_string();
    world.sandbox.set("PATH", &nowhere);
    let id = format!("{}/acme/shallow", world.server.host());
    world.sandbox.mu(&["edit", &id]).ok().says(&["using the edit of"]);
    let place = format!("{}/acme/shallow", world.server.host().replace(':', "+"));
    let clone = world.work().join(&place);
    assert_eq!(git(&clone, &["rev-parse", "--is-shallow-repository"]), "true");
    assert_eq!(git(&clone, &["rev-list", "--count", "HEAD"]), "1");
    world.commit_in(&place, "main.tf");
    world.sandbox.mu(&["edit", "--done", &id]).fails().says(&["commits that no remote has"]);
    git(&clone, &["push", "--quiet", &to, "HEAD"]);
    world.sandbox.mu(&["edit", "--done", &id]).ok();
}

/// Wraps `git` so that it writes down its command lines.
fn watch_git(sandbox: &mut Sandbox) {
    let path = std::env::var("PATH").expect("is set");
    let (real, log) = (mu_testing::program("git"), sandbox.path("git.log"));
    let script =
        format!("#!/bin/sh\necho \"$@\" >> {}\nexec {} \"$@\"\n", log.display(), real.display());
    fs::create_dir_all(sandbox.path("bin")).expect("can be made");
    fs::write(sandbox.path("bin/git"), script).expect("can be written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(sandbox.path("bin/git"), mode).expect("can be made executable");
    let bin = sandbox.path("bin").display().to_string();
    sandbox.set("PATH", &format!("{bin}:{path}"));
}

#[test]
fn a_stored_token_opens_a_private_repository_and_stays_where_it_was() {
    // `x-access-token:hunter2-hunter2`
    const BASIC: &str = "eC1hY2Nlc3MtdG9rZW46aHVudGVyMi1odW50ZXIy";
    let origin = Origin::new("acme/private.git");
    let part = Origin::new("acme/part.git");
    let guarded = |root: &Path| {
        HttpServer::with(root, |request| match request.header("authorization") {
            Some(shown) if shown == format!("Basic {BASIC}") => None,
            _ => Some(Reply::status(401).header("www-authenticate", "Basic realm=\"x\"")),
        })
    };
    let (server, other) = (guarded(origin.root()), guarded(part.root()));
    let head = part.commit(&[("part.txt", "one")]);
    let module =
        format!("[submodule \"part\"]\n\tpath = part\n\turl = {}acme/part.git\n", other.root());
    origin.commit(&[
        ("Mu.yaml", "name: acme/private\n"),
        ("main.tf", "one\n"),
        (".gitmodules", &module),
    ]);
    origin.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},part")]);
    origin.git(&["commit", "--quiet", "--message", "part"]);
    origin.git(&["tag", "v1.0.0"]);
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let mut sandbox = Sandbox::new();
    watch_git(&mut sandbox);
    // The user's own helper would store whatever Git was let in with.
    let stored = sandbox.path("home/git-credentials");
    fs::write(
        sandbox.path("gitconfig"),
        format!("[credential]\n\thelper = store --file={}\n", stored.display()),
    )
    .expect("can be written");
    let settings = sandbox.path("gitconfig").display().to_string();
    sandbox.set("GIT_CONFIG_GLOBAL", &settings);
    for host in [server.host(), other.host()] {
        let port = host.rsplit(':').next().expect("has a port").to_owned();
        sandbox.set(&format!("MU_TOKEN_127_0_0_1___{port}"), "hunter2-hunter2");
    }
    sandbox.asks_for(&[&format!("git+{}acme/private.git#^1", server.root())]);
    sandbox.mu(&["get"]).ok();
    let id = format!("{}/acme/private", server.host());
    let place = id.replace(':', "+");
    let before = server.seen().len();
    sandbox.mu(&["edit", &id]).ok().says(&["using the edit of"]);
    assert_eq!(sandbox.read(&format!("{place}/main.tf")), "one\n");
    assert_eq!(sandbox.read(&format!("{place}/part/part.txt")), "one");
    // The first request shows nothing, and a clone that only mu could complete is whole.
    assert_eq!(server.seen()[before].header("authorization"), None);
    let clone = sandbox.path("work").join(&place);
    assert_eq!(
        git(&clone, &["rev-list", "--objects", "--all", "--missing=print"]).matches('?').count(),
        0
    );
    let count = server.requests().len();
    sandbox.mu(&["edit", "--done", &id]).ok();
    assert!(server.requests().len() > count, "the server was asked");
    let log = fs::read_to_string(sandbox.path("git.log")).expect("git ran");
    assert!(log.contains("clone --quiet") && log.contains("ls-remote"), "{log}");
    for (path, (_, content)) in tree(sandbox.root()) {
        let content = String::from_utf8_lossy(&content);
        assert!(!content.contains("hunter2") && !content.contains(BASIC), "{path}");
    }

    // Without `git`, mu shows it itself, and without a token, it says what is missing.
    sandbox.set("PATH", "/nowhere");
    sandbox.mu(&["edit", &id]).ok();
    assert_eq!(sandbox.read(&format!("{place}/part/part.txt")), "one");
    sandbox.mu(&["edit", "--done", &id, "--force"]).ok();
    for host in [server.host(), other.host()] {
        let port = host.rsplit(':').next().expect("has a port").to_owned();
        sandbox.set(&format!("MU_TOKEN_127_0_0_1___{port}"), "");
    }
    for path in ["/nowhere".to_owned(), std::env::var("PATH").expect("is set")] {
        sandbox.set("PATH", &path);
        let run = sandbox.mu(&["edit", &id, "--json"]);
        assert_eq!(run.fails_with("auth")["code"], "auth");
    }
}
