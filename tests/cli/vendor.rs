//! `mu vendor`: committed packs, and checkouts that need neither network nor cache.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::git::git;
use crate::support::{Package, Sandbox, digest_of, tree, write};

/// A workspace in a Git repository that depends on `aws/app`, which depends on `aws/lib`.
fn workspace() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/app"]);
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/lib").file("run.sh*", "#!/bin/sh\n"),
        Package::new("aws/lib", "1.0.0").file("crlf.txt", "a\r\nb\r\n").file("link", "-> crlf.txt"),
    ]);
    git(&sandbox.path("work"), &["init", "--quiet", "."]);
    sandbox
}

fn commit(sandbox: &Sandbox) {
    let work = sandbox.path("work");
    git(&work, &["add", "."]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    git(&work, &[&who[..], &["commit", "--quiet", "--message", "vendored"]].concat());
}

/// Another machine: a clone of what was committed, without cache, home or hub.
fn checkout(sandbox: &mut Sandbox) {
    let (work, clone) = (sandbox.path("work"), sandbox.path("clone"));
    let as_on_windows = ["-c", "core.autocrlf=true"];
    let paths = [work.to_str().expect("is UTF-8"), clone.to_str().expect("is UTF-8")];
    git(&work, &[&as_on_windows[..], &["clone", "--quiet"], &paths[..]].concat());
    for part in ["work", "cache", "hub"] {
        let _ = fs::remove_dir_all(sandbox.path(part));
    }
    fs::rename(clone, work).expect("is ours");
}

#[test]
fn a_checkout_needs_neither_network_nor_cache() {
    let mut sandbox = workspace();
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["vendor"]).ok().says(&["git add .mu/packs"]);
    let packs = sandbox.path("work/.mu/packs");
    for (path, (mode, _)) in tree(&packs.join("hub.mu.com")) {
        let metadata = packs.join("hub.mu.com").join(&path).symlink_metadata().expect("is there");
        assert!(mode == 'l' || metadata.nlink() == 1, "{path} is linked to the store");
    }
    sandbox.mu(&["verify"]).ok().says(&["2 packs verified"]);
    commit(&sandbox);
    let before = tree(&packs.join("hub.mu.com"));
    checkout(&mut sandbox);
    assert!(!sandbox.has("work/.mu/packs/.mu"), "what mu keeps for itself is not committed");
    sandbox.mu(&["verify"]).ok().says(&["2 packs verified"]);
    sandbox.mu(&["which", "aws/lib"]).ok().says(&["/work/.mu/packs/hub.mu.com/aws/lib"]);
    sandbox.mu(&["get", "--offline", "--locked"]).ok().says(&["(2 packages)"]);
    sandbox.mu(&["get", "--offline"]).ok().says(&["up to date ("]);
    assert_eq!(tree(&packs.join("hub.mu.com")), before);
    assert!(!sandbox.has("cache/store/trees"), "nothing was copied into a store");
    let status = ["-c", "core.autocrlf=true", "status", "--porcelain"];
    assert_eq!(git(&sandbox.path("work"), &status), "");
}

#[test]
fn what_cannot_be_vendored_is_installed_as_before() {
    let sandbox = workspace();
    let archive = sandbox.path("hub/packs/aws/lib/lib-1.0.0.tgz");
    let content = fs::read(&archive).expect("is there");
    fs::remove_file(&archive).expect("is ours");
    sandbox.mu(&["vendor"]).fails().says(&["lib-1.0.0.tgz"]);
    assert!(!sandbox.has("work/.mu/packs/vendored.json"));
    fs::write(&archive, content).expect("is ours");
    sandbox.mu(&["get"]).ok();
    let manifest = sandbox.path("work/.mu/packs/hub.mu.com/aws/lib/Mu.yaml");
    assert!(manifest.metadata().expect("is there").nlink() > 1, "it is linked to the store");
    sandbox.mu(&["vendor"]).ok();
    assert_eq!(manifest.metadata().expect("is there").nlink(), 1);
}

#[test]
fn what_is_vendored_stays_so() {
    let sandbox = workspace();
    sandbox.mu(&["vendor"]).ok();
    sandbox.publish(&[Package::new("aws/lib", "1.1.0"), Package::new("aws/new", "1.0.0")]);
    sandbox.write(".mu/workspace.yaml", "link: symlink\n");
    sandbox.mu(&["add", "aws/new"]).ok();
    sandbox.mu(&["update"]).ok();
    let packs = sandbox.path("work/.mu/packs/hub.mu.com/aws");
    for name in ["app", "lib", "new"] {
        let folder = packs.join(name).symlink_metadata().expect("is there");
        assert!(folder.is_dir(), "{name} is a link");
        let manifest = packs.join(name).join("Mu.yaml").metadata().expect("is there");
        assert_eq!(manifest.nlink(), 1, "{name}");
    }
    commit(&sandbox);
    let files = git(&sandbox.path("work"), &["ls-files", ".mu/packs"]);
    assert!(files.contains(".mu/packs/hub.mu.com/aws/new/Mu.yaml"), "{files}");
    assert!(files.contains(".mu/packs/vendored.json"), "{files}");
    assert!(!files.contains(".mu/packs/.mu/"), "{files}");
    // `--undo` stops vendoring.
    sandbox.mu(&["vendor", "--undo"]).ok().says(&["git rm"]);
    git(&sandbox.path("work"), &["rm", "-r", "--quiet", "--cached", ".mu/packs"]);
    let seen = git(&sandbox.path("work"), &["status", "--porcelain", "--untracked-files=all"]);
    assert!(!seen.contains("?? .mu/packs"), "{seen}");
    sandbox.mu(&["vendor", "--undo"]).ok().says(&["nothing to do"]);
}

/// The cache, which has the record of how packs were made, may be a new one.
#[test]
fn packs_that_are_no_longer_vendored_are_links_again_where_the_settings_want_links() {
    let sandbox = workspace();
    sandbox.write(".mu/workspace.yaml", "link: symlink\n");
    sandbox.mu(&["vendor"]).ok();
    let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws/lib");
    let is_link = || pack.symlink_metadata().expect("is there").is_symlink();
    assert!(!is_link());
    sandbox.mu(&["cache", "clean"]).ok();
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    sandbox.mu(&["vendor", "--undo"]).ok();
    sandbox.mu(&["get"]).ok();
    assert!(is_link());
    sandbox.mu(&["get"]).ok().says(&["up to date"]);
}

#[test]
fn what_a_person_changed_is_noticed() {
    let mut sandbox = workspace();
    sandbox.mu(&["vendor"]).ok();
    commit(&sandbox);
    checkout(&mut sandbox);
    let file = "work/.mu/packs/hub.mu.com/aws/lib/crlf.txt";
    let asked = sandbox.mu(&["vendor", "--check"]);
    assert_eq!(asked.status, 2);
    asked.says(&["`mu verify` compares the packs"]);
    sandbox.mu(&["verify"]).ok();
    fs::write(sandbox.path(file), "changed").expect("is ours");
    sandbox.mu(&["verify"]).fails().says(&["1 of 2 packs failed verification", "aws/lib 1.0.0"]);
    sandbox
        .mu(&["get", "--offline"])
        .fails()
        .says(&["aws/lib`, which is vendored, is not what Mu.lock says"]);
    assert_eq!(fs::read_to_string(sandbox.path(file)).expect("is there"), "changed");
}

#[test]
fn a_colleagues_update_arrives_with_the_next_pull() {
    let sandbox = workspace();
    sandbox.mu(&["vendor"]).ok();
    commit(&sandbox);
    // A colleague updates in a clone, and commits; the hub is never asked from here again.
    let clone = sandbox.path("clone");
    let paths = [sandbox.path("work"), clone.clone()];
    let paths = paths.map(|path| path.to_str().expect("is UTF-8").to_owned());
    git(&sandbox.path("work"), &["clone", "--quiet", &paths[0], &paths[1]]);
    sandbox.publish(&[Package::new("aws/lib", "1.1.0").file("new.txt", "new")]);
    sandbox.mu_in("clone", &["update"]).ok();
    git(&clone, &["add", "."]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    git(&clone, &[&who[..], &["commit", "--quiet", "--message", "update"]].concat());
    git(&sandbox.path("work"), &["pull", "--quiet", &paths[1]]);
    fs::remove_dir_all(sandbox.path("hub")).expect("is ours");
    fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    sandbox.mu(&["get", "--offline", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok().says(&["2 packs verified"]);
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/lib/new.txt"));
}

#[test]
fn packs_inside_packs_survive_a_checkout() {
    let mut sandbox = workspace();
    let aws = Package::new("aws", "1.0.0").file("top.txt", "t").file("lib/own.txt", "its own lib");
    let digest = sandbox.hub().publish(&aws);
    sandbox.asks_for(&["aws", "aws/app"]);
    sandbox.mu(&["vendor"]).ok();
    commit(&sandbox);
    checkout(&mut sandbox);
    let outer = sandbox.path("work/.mu/packs/hub.mu.com/aws");
    assert!(!outer.join("lib/own.txt").exists(), "it made room for aws/lib");
    assert_ne!(digest_of(&outer), digest);
    sandbox.mu(&["verify"]).ok().says(&["3 packs verified"]);
    sandbox.mu(&["get", "--offline", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
    write(&outer, "top.txt", "changed");
    sandbox.mu(&["verify"]).fails().says(&["aws 1.0.0"]);
}

#[test]
fn folders_that_git_would_leave_behind_are_named() {
    let sandbox = workspace();
    write(&sandbox.path("work"), ".gitignore", ".mu/\n");
    sandbox.mu(&["vendor"]).ok().says(&["work/.mu` would not be committed", "git add --force"]);
    assert!(Path::new(&sandbox.path("work/.mu/packs/.gitattributes")).exists());
}

#[test]
fn a_clone_has_what_was_vendored_whatever_git_was_told_to_change_or_leave_out() {
    let sandbox = workspace();
    let ordered = [
        ("aws/lines", "a.txt", "a\r\nb\r\n", ".gitattributes", "*.txt text eol=lf\n"),
        ("aws/deep", "sub/a.txt", "a\r\nb\r\n", "sub/.gitattributes", "* text=auto\n"),
        ("aws/ident", "a.sh", "# $Id: abc $\n", ".gitattributes", "*.sh ident\n"),
        ("aws/tests", "tests/a", "a", ".gitattributes", "tests export-ignore\n"),
        ("aws/subst", "version", "$Format:%H$\n", ".gitattributes", "version export-subst\n"),
        ("aws/made", "dist/x", "x", ".gitignore", "dist\n"),
    ];
    let names = ordered.map(|(name, path, content, orders, text)| {
        let package = Package::new(name, "1.0.0").file(path, content).file(orders, text);
        sandbox.publish(&[package]);
        name
    });
    sandbox.asks_for(&names);
    let work = sandbox.path("work");
    // The workspace's own orders are not for packs, either.
    write(&work, ".gitattributes", "*.txt text eol=crlf\n*.sh filter=none\n");
    write(&work, ".gitignore", "*.txt\nversion\n");
    sandbox.mu(&["vendor"]).ok().does_not_say(&["would not be committed"]);
    sandbox.mu(&["verify"]).ok().says(&["6 packs verified"]);
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "vendored"]);
    git(&work, &["clone", "--quiet", ".", "../clone"]);
    git(&work, &["archive", "--output=../archive.tar", "HEAD"]);
    fs::create_dir(sandbox.path("archive")).expect("is new");
    let mut tar = Command::new("tar");
    tar.args(["-xf", "../archive.tar"]).current_dir(sandbox.path("archive"));
    let unpacked = tar.status().expect("runs");
    assert!(unpacked.success());
    for copy in ["clone", "archive"] {
        sandbox.mu_in(copy, &["verify"]).ok().says(&["6 packs verified"]);
        sandbox.mu_in(copy, &["get", "--locked", "--offline"]).ok();
        sandbox.mu_in(copy, &["get"]).ok();
    }
    assert_eq!(git(&sandbox.path("clone"), &["status", "--porcelain"]), "");
    // What is no longer vendored is whole.
    sandbox.mu(&["vendor", "--undo"]).ok();
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/deep/sub/.gitattributes"));
    sandbox.mu(&["verify"]).ok().says(&["6 packs verified"]);
}

#[test]
fn vendored_packs_that_were_published_give_way_where_no_lock_names_them() {
    let sandbox = workspace();
    sandbox.mu(&["vendor"]).ok();
    sandbox.publish(&[Package::new("aws/lib", "1.1.0")]);
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.locked().contains(&"hub.mu.com/aws/lib 1.1.0".to_owned()));
    sandbox.mu(&["verify"]).ok();
    // Where the lock names one, another is an error, published or not.
    let lock = sandbox.read("Mu.lock");
    let packs = sandbox.path("work/.mu/packs/hub.mu.com/aws/lib");
    fs::remove_dir_all(&packs).expect("is ours");
    sandbox.place("work/.mu/packs/hub.mu.com/aws/lib", &Package::new("aws/lib", "1.0.0"));
    fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    sandbox.mu(&["get", "--json"]).fails_with("integrity");
    assert_eq!(sandbox.read("Mu.lock"), lock);
}
