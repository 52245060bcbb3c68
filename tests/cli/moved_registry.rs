//! Registries that have changed since the lock was made: a company's mirror, an air gap, a copy beside a
//! copy. The settings say where packages are, and the lock says what they are.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::git::{HttpServer, Origin, git};

use crate::support::{Hub, Nginx, Package, Sandbox};

/// The ways to install locked packages, and to move them as far as possible.
const ALL: [&[&str]; 4] = [&["get"], &["get", "--locked"], &["get", "--frozen"], &["update"]];

/// As on a machine that never saw these packages.
fn forget(sandbox: &Sandbox) {
    for folder in ["cache", "work/.mu/packs"] {
        let folder = sandbox.path(folder);
        if folder.exists() {
            let done = Command::new("rm").arg("-rf").arg(&folder).status();
            assert!(done.expect("rm runs").success());
        }
    }
}

fn registry(sandbox: &Sandbox, place: &str) {
    sandbox.write(".mu/workspace.yaml", &format!("registries: {place}\n"));
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(done.expect("cp runs").success());
}

fn world() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["a/one#^1"]);
    sandbox.publish(&[
        Package::new("a/one", "1.0.0").needs("m/two#^1.0"),
        Package::new("m/two", "1.2.0").file("two.txt", "two"),
    ]);
    sandbox
}

#[test]
fn a_mirror_takes_over_with_the_lock_that_there_is() {
    let sandbox = world();
    let old = Nginx::serve(&sandbox.path("hub"), "");
    registry(&sandbox, &format!("{{hub.mu.com/: \"{}\"}}", old.url("")));
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains(&format!("source: hub+{}", old.url(""))), "{lock}");
    // Both have newer versions, so that the locked ones would not be chosen again.
    copy(&sandbox.path("hub"), &sandbox.path("mirror"));
    sandbox.publish(&[Package::new("m/two", "1.3.0")]);
    let mirror = Nginx::serve(&sandbox.path("mirror"), "");
    registry(&sandbox, &format!("{{hub.mu.com/: \"{}\"}}", mirror.url("")));
    let before = old.log();
    for arguments in ALL {
        forget(&sandbox);
        let run = sandbox.mu(&[arguments, &["-v"]].concat()).ok();
        assert!(run.stderr.contains(&mirror.host()) && !run.stderr.contains(&old.host()));
        assert_eq!(sandbox.read(".mu/packs/hub.mu.com/m/two/two.txt"), "two");
        assert_eq!(sandbox.read("Mu.lock"), lock, "{arguments:?}");
    }
    assert_eq!(old.log(), before, "the old place is not asked");
    drop(old);
    for arguments in ALL {
        forget(&sandbox);
        sandbox.mu(arguments).ok();
    }
    // Packages in the store are fetched from nowhere.
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is ours");
    let before = mirror.log();
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(mirror.log(), before);
    // A lock that is written for another reason names the new places.
    Hub::new(&sandbox.path("mirror")).publish(&Package::new("m/two", "1.4.0"));
    let run = sandbox.mu(&["update"]).ok();
    run.says(&["~ m/two 1.2.0 → 1.4.0"]).does_not_say(&["a/one"]);
    let lock = sandbox.read("Mu.lock");
    assert_eq!(lock.matches(&format!("source: hub+{}", mirror.url(""))).count(), 2, "{lock}");
}

#[test]
fn an_archive_somewhere_else_is_taken_from_the_mirror() {
    let sandbox = Sandbox::with_dependencies(&["a/one#^1"]);
    let old = Nginx::serve(&sandbox.path("."), "");
    let elsewhere = old.url("files/one.tgz");
    sandbox.publish(&[Package::new("a/one", "1.0.0").key("urls", serde_json::json!([elsewhere]))]);
    copy(&sandbox.path("hub"), &sandbox.path("mirror"));
    fs::create_dir(sandbox.path("files")).expect("is new");
    fs::rename(sandbox.hub().archive("a/one", "1.0.0"), sandbox.path("files/one.tgz"))
        .expect("was published");
    registry(&sandbox, &format!("{{hub.mu.com/: \"{}\"}}", old.url("hub/")));
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.read("Mu.lock").contains(&elsewhere));
    // The mirror packed the same files in another way.
    let mirror = Hub::new(&sandbox.path("mirror"));
    fs::write(mirror.index("a/one"), "").expect("was copied");
    mirror.publish(&Package::new("a/one", "1.0.0"));
    registry(&sandbox, "{hub.mu.com/: ../mirror}");
    drop(old);
    for arguments in [["get", "--locked"], ["get", "--frozen"]] {
        forget(&sandbox);
        sandbox.mu(&arguments).ok();
    }
}

#[test]
fn a_mirror_with_other_content_installs_nothing() {
    let sandbox = world();
    sandbox.mu(&["get"]).ok();
    let mirror = Hub::new(&sandbox.path("mirror"));
    mirror.publish(&Package::new("a/one", "1.0.0").needs("m/two#^1.0"));
    registry(&sandbox, "{hub.mu.com/: ../mirror}");
    forget(&sandbox);
    let run = sandbox.mu(&["get", "--locked"]).fails();
    let lock = sandbox.read("Mu.lock");
    run.says(&["m/two", "1.2.0", "now leads to", "[DIR]/mirror", "mu mirror", "mu update"]);
    mirror.publish(&Package::new("m/two", "1.2.0").file("two.txt", "another"));
    for arguments in [["get", "--locked"], ["get", "--frozen"]] {
        forget(&sandbox);
        let error = sandbox.mu(&[&arguments[..], &["--json"]].concat()).fails_with("integrity");
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains("m/two 1.2.0") && message.contains("/mirror/"), "{message}");
        assert!(!sandbox.has("work/.mu/packs/hub.mu.com"));
        assert_eq!(sandbox.read("Mu.lock"), lock);
    }
}

#[test]
fn git_packages_come_from_the_mirror_by_their_commit() {
    let origin = Origin::new("group/mono.git");
    origin.commit(&[
        ("Mu.yaml", "name: acme/mono\n"),
        ("sub/lib/Mu.yaml", "name: acme/lib\nversion: 1.0.0\n"),
        ("sub/lib/lib.txt", "lib"),
    ]);
    origin.git(&["tag", "sub/lib/v1.0.0"]);
    origin.git(&["tag", "v1.0.0"]);
    let old = HttpServer::start(origin.root());
    let mirrored = Origin::new("git/group/other");
    // Without the repository's `.git`, for references that leave it out.
    for name in ["mono", "mono.git"] {
        let to = mirrored.root().join("git/group").join(name).display().to_string();
        git(origin.root(), &["clone", "--quiet", "--mirror", "group/mono.git", &to]);
    }
    let mirror = HttpServer::start(mirrored.root());
    for (reference, there) in [
        ("git.example/group/mono/sub/lib#^1", "mono"),
        ("git+https://git.example/group/mono.git/sub/lib#^1", "mono.git"),
    ] {
        let sandbox = Sandbox::with_dependencies(&[reference]);
        let at = |server: &HttpServer, below: &str| {
            let url = format!("git+{}{below}", server.root());
            registry(&sandbox, &format!("{{git.example/: {{provider: git, url: \"{url}\"}}}}"));
        };
        at(&old, "");
        sandbox.mu(&["get"]).ok();
        let lock = sandbox.read("Mu.lock");
        assert!(lock.contains(&old.host()), "{lock}");
        at(&mirror, "git/");
        let before = old.requests().len();
        for arguments in ALL {
            forget(&sandbox);
            sandbox.mu(arguments).ok();
            let pack = ".mu/packs/git.example/group/mono/sub/lib";
            assert_eq!(sandbox.read(&format!("{pack}/lib.txt")), "lib", "{arguments:?}");
            assert_eq!(sandbox.read("Mu.lock"), lock, "{arguments:?}");
        }
        assert_eq!(old.requests().len(), before, "the old place is not asked");
        sandbox.mu(&["verify"]).ok();
        // And the lock follows as soon as it is written.
        sandbox.publish(&[Package::new("a/one", "1.0.0")]);
        sandbox.mu(&["add", "a/one"]).ok();
        let lock = sandbox.read("Mu.lock");
        let place = format!("source: git+{}git/group/{there}\n", mirror.root());
        assert!(!lock.contains(&old.host()) && lock.contains(&place), "{lock}");
    }
}

#[test]
fn a_workspace_and_the_places_beside_it_are_copied_together() {
    let sandbox = Sandbox::with_dependencies(&["a/one#^1", "git.example/lib#^1", "../beside"]);
    sandbox.publish(&[
        Package::new("a/one", "1.0.0").needs("m/two#^1.0"),
        Package::new("m/two", "1.2.0"),
    ]);
    sandbox.place("beside", &Package::new("acme/beside", "1.0.0"));
    sandbox.trusts_folder("beside");
    let repository = sandbox.path("lib.git");
    fs::create_dir(&repository).expect("is new");
    git(&repository, &["init", "--quiet", "--initial-branch=main", "."]);
    fs::write(repository.join("Mu.yaml"), "name: acme/lib\nversion: 1.0.0\n").expect("is ours");
    git(&repository, &["add", "--all"]);
    git(&repository, &["commit", "--quiet", "--message", "a release"]);
    git(&repository, &["tag", "v1.0.0"]);
    let settings = "{hub.mu.com/: ../hub, git.example/lib/: {provider: git, url: ../lib.git}}";
    registry(&sandbox, settings);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let root = sandbox.root().display().to_string();
    assert!(!lock.contains(&root), "{lock}");
    for source in ["hub+../hub/", "git+../lib.git", "path+../beside"] {
        assert!(lock.contains(&format!("source: {source}\n")), "{source} in {lock}");
    }
    // An earlier lock with another machine's places can be read too.
    let absolute = lock
        .replace("hub+../", &format!("hub+file://{root}/"))
        .replace("git+../", &format!("git+file://{root}/"));
    for lock in [&lock, &absolute] {
        sandbox.write("Mu.lock", lock);
        let copied = Sandbox::new();
        copied.trusts_folder("beside");
        for part in ["work", "hub", "beside", "lib.git"] {
            let _ = fs::remove_dir_all(copied.path(part));
            let done = Command::new("mv").arg(sandbox.path(part)).arg(copied.path(part)).status();
            assert!(done.expect("mv runs").success());
        }
        for arguments in ALL {
            forget(&copied);
            copied.mu(arguments).ok();
            assert_eq!(copied.read("Mu.lock"), *lock, "{arguments:?}");
        }
        for part in ["work", "hub", "beside", "lib.git"] {
            let done = Command::new("mv").arg(copied.path(part)).arg(sandbox.path(part)).status();
            assert!(done.expect("mv runs").success());
        }
    }
    // Written again for another reason, it is relative.
    sandbox.publish(&[Package::new("b/new", "1.0.0")]);
    sandbox.mu(&["add", "b/new"]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(!lock.contains(&root) && lock.contains("source: git+../lib.git\n"), "{lock}");
}

#[test]
fn what_the_settings_say_in_full_stays_so() {
    let sandbox = Sandbox::new();
    let shared = sandbox.path("shared").display().to_string();
    sandbox.place("shared", &Package::new("acme/shared", "1.0.0"));
    sandbox.trusts_folder("shared");
    sandbox.asks_for(&["a/one", &shared]);
    sandbox.publish(&[Package::new("a/one", "1.0.0")]);
    let hub = sandbox.path("hub").display().to_string();
    registry(&sandbox, &format!("{{hub.mu.com/: {hub}}}"));
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains(&format!("source: hub+file://{hub}/\n")), "{lock}");
    assert!(lock.contains(&format!("source: path+{shared}\n")), "{lock}");
    forget(&sandbox);
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_folder_that_is_added_by_its_full_path_stays_so() {
    let sandbox = Sandbox::with_dependencies(&[]);
    let shared = sandbox.path("shared").display().to_string();
    sandbox.place("shared", &Package::new("acme/shared", "1.0.0"));
    sandbox.trusts_folder("shared");
    sandbox.mu(&["add", &shared]).ok();
    let lock = sandbox.read("Mu.lock");
    assert!(lock.contains(&format!("source: path+{shared}\n")), "{lock}");
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn locks_of_branches_with_other_sources_merge() {
    let sandbox = Sandbox::with_dependencies(&["a/one"]);
    let names = ["a/one", "f/mid", "k/mid", "z/last"];
    sandbox.publish(&names.map(|name| Package::new(name, "1.0.0")));
    copy(&sandbox.path("hub"), &sandbox.path("mirror"));
    registry(&sandbox, "{hub.mu.com/: ../hub}");
    let work = sandbox.path("work");
    sandbox.write(".gitignore", ".mu/packs\n");
    sandbox.mu(&["get"]).ok();
    git(&work, &["init", "--quiet", "--initial-branch=main", "."]);
    let commit = || {
        git(&work, &["add", "--all"]);
        git(&work, &["commit", "--quiet", "--message", "a change"]);
    };
    let package = |folder: &str, dependency: &str| {
        let text = format!("name: acme/{folder}\ndependencies: [{dependency}]\n");
        sandbox.write(&format!("{folder}/Mu.yaml"), &text);
        sandbox.mu(&["get"]).ok();
        commit();
    };
    commit();
    git(&work, &["switch", "--quiet", "--create", "mirror"]);
    registry(&sandbox, "{hub.mu.com/: ../mirror}");
    package("x", "z/last");
    git(&work, &["switch", "--quiet", "main"]);
    package("y", "f/mid");
    // Both wrote into the lock, one of them from another place.
    let merged =
        Command::new("git").current_dir(&work).args(["merge", "--quiet", "mirror"]).output();
    let merged = merged.expect("git runs");
    if !merged.status.success() {
        git(&work, &["checkout", "--quiet", "--ours", "Mu.lock"]);
    }
    forget(&sandbox);
    fs::remove_dir_all(sandbox.path("hub")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let ids: Vec<&str> = lock.lines().filter_map(|line| line.strip_prefix("- id: ")).collect();
    assert_eq!(ids, ["hub.mu.com/a/one", "hub.mu.com/f/mid", "hub.mu.com/z/last"]);
    forget(&sandbox);
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn the_id_of_a_locked_package_leads_to_a_hub_of_this_machine_over_plain_http() {
    let sandbox = world();
    let hub = Nginx::serve(&sandbox.path("hub"), "");
    let base = hub.url("").replace("http://", "");
    sandbox.asks_for(&[&format!("http://{base}a/one#^1")]);
    sandbox.mu(&["get"]).ok();
    sandbox.publish(&[Package::new("m/two", "1.3.0")]);
    let id = format!("{base}m/two");
    let two = [format!("{id}#1.2.0"), format!("{id}#1.3.0")];
    let questions: [&[&str]; 4] = [
        &["info", &id],
        &["versions", &id],
        &["diff", &two[0], &two[1]],
        &["get", &id, "--dry-run"],
    ];
    for question in questions {
        forget(&sandbox);
        sandbox.mu(question).ok();
    }
    // The settings take precedence.
    registry(&sandbox, &format!("{{\"{base}\": ../hub}}"));
    drop(hub);
    for question in questions {
        forget(&sandbox);
        sandbox.mu(question).ok();
    }
}
