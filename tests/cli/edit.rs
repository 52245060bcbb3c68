//! `mu edit`: a clone to work in, no committed file changed, no work lost, one command back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::git::{HttpServer, Origin, git};
use crate::support::{Package, Sandbox};

/// A repository with packages at its root and in two folders, behind a web server, and a committed workspace that needs
/// one package of a hub which names it, and two packages in Git.
pub(crate) struct World {
    pub(crate) origin: Origin,
    pub(crate) server: HttpServer,
    pub(crate) sandbox: Sandbox,
    /// The commit of the released versions.
    pub(crate) commit: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let origin = Origin::new("acme/mono.git");
        let commit = origin.commit(&[
            ("Mu.yaml", "name: acme/mono\n"),
            ("main.tf", "one\n"),
            (".gitignore", "*.env\n"),
            ("net/vpc/Mu.yaml", "name: net/vpc\nversion: 1.2.0\n"),
            ("net/vpc/main.tf", "vpc\n"),
            ("net/dns/Mu.yaml", "name: net/dns\n"),
        ]);
        origin.git(&["tag", "v1.0.0"]);
        origin.git(&["tag", "net/dns/v1.0.0"]);
        origin.git(&["config", "uploadpack.allowFilter", "true"]);
        origin.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        let server = HttpServer::start(origin.root());
        let sandbox = Sandbox::new();
        let world = Self { origin, server, sandbox, commit };
        let url = world.url();
        let package = Package::new("net/vpc", "1.2.0")
            .key("repository", json!(format!("{url}#net/vpc")))
            .file("main.tf", "vpc\n");
        world.sandbox.publish(&[
            package.lies("commit", json!(world.commit)),
            Package::new("aws/log", "1.0.0"),
        ]);
        world.sandbox.asks_for(&[
            "net/vpc#^1",
            "aws/log#^1",
            &format!("git+{url}#^1"),
            &format!("git+{url}/net/dns#^1"),
        ]);
        world.sandbox.write(".gitignore", "/.mu/packs/\n");
        world.sandbox.mu(&["get"]).ok();
        git(&world.work(), &["init", "--quiet", "--initial-branch=main"]);
        git(&world.work(), &["add", "--all"]);
        git(&world.work(), &["commit", "--quiet", "--message", "begin"]);
        world
    }

    /// Adds the submodule `part`, and tags that as 1.1.0; returns its origin, and what serves it.
    fn with_submodule(&self) -> (Origin, HttpServer) {
        let part = Origin::new("acme/part.git");
        part.commit(&[("part.txt", "one")]);
        let server = HttpServer::start(part.root());
        let url = format!("{}acme/part.git", server.root());
        let module = format!("[submodule \"part\"]\n\tpath = part\n\turl = {url}\n");
        self.origin.commit(&[(".gitmodules", &module)]);
        let head = part.git(&["rev-parse", "HEAD"]);
        self.origin.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},part")]);
        self.origin.git(&["commit", "--quiet", "--message", "part"]);
        self.origin.git(&["tag", "v1.1.0"]);
        (part, server)
    }

    pub(crate) fn url(&self) -> String {
        format!("{}acme/mono.git", self.server.root())
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.sandbox.path("work")
    }

    /// Where the repository's clones go.
    pub(crate) fn place(&self) -> String {
        format!("{}/acme/mono", self.server.host().replace(':', "+"))
    }

    /// The id of a package in the repository.
    pub(crate) fn id(&self, folder: &str) -> String {
        format!("{}/acme/mono{folder}", self.server.host())
    }

    /// The workspace without the clone and what is installed: all that is or could be committed.
    #[track_caller]
    pub(crate) fn is_untouched(&self) {
        let status = git(&self.work(), &["status", "--porcelain", "--untracked-files=all"]);
        // A file on its way, when a run ended before it was there.
        let changed = status.lines().filter(|line| !line.contains("/.mu-"));
        assert_eq!(changed.collect::<Vec<_>>(), [""; 0]);
    }

    pub(crate) fn commit_in(&self, clone: &str, file: &str) {
        self.sandbox.write(&format!("{clone}/{file}"), "changed\n");
        let clone = self.work().join(clone);
        git(&clone, &["add", "--all"]);
        git(&clone, &["commit", "--quiet", "--message", "a change"]);
    }

    /// Pushes a clone's branch, which the server then has.
    pub(crate) fn push(&self, clone: &str) {
        let to = self.origin.folder().display().to_string();
        git(&self.work().join(clone), &["push", "--quiet", &to, "HEAD"]);
    }

    /// The edits, as the program lists them.
    /// Removes all that mu knows of edits, but for their clones.
    fn forget(&self) {
        for file in [".mu/edits.json", ".git/mu/edits.json"] {
            fs::remove_file(self.work().join(file)).expect("was written");
        }
    }

    pub(crate) fn edits(&self) -> Vec<Value> {
        let list = self.sandbox.mu(&["edit", "--json"]).ok().json();
        list["edits"].as_array().expect("is a list").clone()
    }
}

#[test]
fn where_work_was_pushed_is_told_by_the_url_that_others_know() {
    let mut world = World::new();
    let settings = world.sandbox.path("home/.gitconfig");
    world.sandbox.set("GIT_CONFIG_GLOBAL", settings.to_str().expect("is UTF-8"));
    let sandbox = &world.sandbox;
    sandbox.mu(&["edit", "net/vpc"]).ok();
    let clone = format!(".mu/edit/{}", world.place());
    let folder = world.work().join(&clone);
    // This user's Git leads the URL elsewhere, as many do to reach a host by SSH. It has their name, as some hosts write it.
    let text = "insteadOf = https://ada@git.acme.example/";
    fs::write(settings, format!("[url \"{}\"]\n\t{text}\n", world.server.root()))
        .expect("can be written");
    git(&folder, &["config", "remote.origin.url", "https://ada@git.acme.example/acme/mono.git"]);
    world.commit_in(&clone, "net/vpc/main.tf");
    world.push(&clone);
    git(&folder, &["update-ref", "refs/remotes/origin/edit/vpc-1.2.0", "HEAD"]);
    sandbox.mu(&["edit", "--done", "net/vpc"]).ok().says(&[
        "`mu add 'https://git.acme.example/acme/mono.git/net/vpc#edit/vpc-1.2.0'` depends on the branch",
    ]);
}

#[test]
fn a_package_of_a_hub_is_edited_in_its_repository_and_given_back() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let lock = sandbox.read("Mu.lock");
    let clone = format!(".mu/edit/{}", world.place());
    let folder = format!("{clone}/net/vpc");
    let run = sandbox.mu(&["edit", "net/vpc"]).ok();
    run.says(&[
        &format!("editing net/vpc 1.2.0 in {folder} (branch edit/vpc-1.2.0)"),
        &format!("using the edit of hub.mu.com/net/vpc in {folder}"),
    ]);
    assert_eq!(sandbox.mu(&["which", "net/vpc"]).ok().stdout, format!("[DIR]/work/{folder}\n"));
    sandbox
        .mu(&["which", "net/vpc", "--all"])
        .ok()
        .says(&[&format!("1  [DIR]/work/{folder}  hit (mu edit)")]);
    let head = git(&world.work().join(&clone), &["rev-parse", "HEAD"]);
    assert_eq!(head, world.commit);
    let branch = git(&world.work().join(&clone), &["symbolic-ref", "--short", "HEAD"]);
    assert_eq!(branch, "edit/vpc-1.2.0");
    sandbox.mu(&["get", "--locked"]).ok().says(&["using the edit of hub.mu.com/net/vpc"]);
    // A commit that is not pushed stays.
    world.commit_in(&clone, "net/vpc/main.tf");
    sandbox.mu(&["get"]).ok().says(&[&format!("in {folder} (1 commit ahead)")]);
    let error = sandbox.mu(&["edit", "--done", "net/vpc", "--json"]).fails_with("conflict");
    assert!(
        error["message"].as_str().expect("is text").contains("commits that no remote has"),
        "{error}"
    );
    assert!(sandbox.has(&format!("work/{clone}")));
    world.push(&clone);
    assert_eq!(world.edits()[0]["state"], "in-use");
    sandbox.mu(&["edit"]).ok().says(&["in use, branch edit/vpc-1.2.0, 1 commit ahead"]);
    let run = sandbox.mu(&["edit", "--done", "net/vpc"]).ok();
    run.says(&[
        "net/vpc is no longer edited; its clone is in the trash",
        "then `mu update net/vpc`",
        &format!("`mu add 'git+{}/net/vpc#edit/vpc-1.2.0'`", world.url()),
        "overrides: {hub.mu.com/net/vpc:",
    ]);
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/net/vpc/main.tf"), "the pack is back");
    assert!(!sandbox.has("work/.mu/edits.lock"));
    assert_eq!(sandbox.read("Mu.lock"), lock);
    world.is_untouched();
    // One command takes it out of the trash again.
    sandbox
        .mu(&["edit", "--restore", "net/vpc"])
        .ok()
        .says(&["restored net/vpc", "1 commit ahead"]);
    assert_eq!(sandbox.read(&format!("{folder}/main.tf")), "changed\n");
    world.is_untouched();
    // The ways on lead to where the commit was pushed.
    let inside = world.work().join(&clone);
    let fork = world.origin.folder().display().to_string();
    git(&inside, &["remote", "add", "fork", &fork]);
    git(&inside, &["push", "--quiet", "fork", "HEAD:fix"]);
    let run = sandbox.mu(&["edit", "--done", "net/vpc"]).ok();
    run.says(&[&format!("`mu add 'git+file://{fork}/net/vpc#fix'`")]);
}

#[test]
fn two_packages_of_one_repository_share_a_clone() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let lock = sandbox.read("Mu.lock");
    let place = world.place();
    let (root, dns) = (world.id(""), world.id("/net/dns"));
    sandbox.mu(&["edit", &root]).ok().says(&[&format!("in {place} (branch edit/mono-1.0.0)")]);
    // Git's folders are below where references find them, so the other one is used from there, too.
    let run = sandbox.mu(&["edit", &dns]).ok();
    run.says(&[
        &format!("in {place}/net/dns"),
        &format!("using the edit of {dns} in {place}/net/dns"),
    ])
    // In Git, the name in its manifest is only a name, and a tag is its version.
    .does_not_say(&["warning", "→"]);
    assert_eq!(world.edits().len(), 2);
    sandbox.mu(&["edit", "--done", &dns]).fails().says(&["is edited in the same clone"]);
    sandbox.mu(&["edit", "--done", "--all"]).ok();
    assert_eq!((sandbox.read("Mu.lock"), world.edits().len()), (lock, 2));
    assert!(world.edits().iter().all(|edit| edit["state"] == "in-trash"));
    assert!(!sandbox.has(&format!("work/{place}")));
    world.is_untouched();
    sandbox.mu(&["edit", "--restore", &root]).ok();
    assert!(world.edits().iter().all(|edit| edit["state"] == "in-use"));
}

#[test]
fn a_tag_is_the_version_of_an_edit_whose_manifest_names_another_one() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let (root, place) = (world.id(""), world.place());
    world.origin.commit(&[
        ("Mu.yaml", "name: acme/mono\nversion: 0.1.0\n"),
        ("net/dns/Mu.yaml", "name: net/dns\nversion: 1.5.0\n"),
    ]);
    world.origin.git(&["tag", "v1.5.0"]);
    world.origin.git(&["tag", "net/dns/v1.5.0"]);
    sandbox.mu(&["update"]).ok();
    for arguments in [&["edit", &root][..], &["edit", &world.id("/net/dns")], &["get"]] {
        sandbox.mu(arguments).ok().does_not_say(&["warning", "0.1.0"]);
    }
    sandbox.mu(&["list"]).ok().says(&["1.5.0"]).does_not_say(&["0.1.0"]);
    // One whose manifest has the tag's version goes on with what the manifest says.
    sandbox.write(&format!("{place}/Mu.yaml"), "name: acme/mono\nversion: 0.2.0\n");
    sandbox.write(&format!("{place}/net/dns/Mu.yaml"), "name: net/dns\nversion: 2.0.0\n");
    let warning =
        "net/dns` is used from the workspace at version 2.0.0, although acme/web requires ^1";
    let run = sandbox.mu(&["get"]).ok();
    run.says(&[warning]).does_not_say(&["0.2.0"]);
}

#[test]
fn a_shared_clone_at_another_commit_is_pointed_out() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let newer = world.origin.commit(&[("net/dns/main.tf", "two\n")]);
    world.origin.git(&["tag", "net/dns/v1.1.0"]);
    sandbox.mu(&["update", &world.id("/net/dns")]).ok();
    sandbox.mu(&["edit", &world.id("")]).ok();
    sandbox.mu(&["edit", &world.id("/net/dns")]).ok().says(&[
        &format!("is locked at commit {}", &newer[..7]),
        &format!("in `{}` already, where the work began at {}", world.place(), &world.commit[..7]),
    ]);
}

#[test]
fn each_kind_of_work_keeps_an_edit_from_ending() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let root = world.id("");
    sandbox.mu(&["edit", &root]).ok();
    let place = world.place();
    let clone = world.work().join(&place);
    let inside = |arguments: &[&str]| git(&clone, arguments);
    let write = |path: &str| fs::write(clone.join(path), "work\n").expect("can be written");
    let check = |why: &str| {
        let error = sandbox.mu(&["edit", "--done", &root, "--json"]).fails_with("conflict");
        let reasons: Vec<String> =
            serde_json::from_value(error["details"]["reasons"].clone()).expect("texts");
        assert_eq!(reasons.len(), 1, "{why}: {reasons:?}");
        assert!(reasons[0].contains(why), "{why}: {reasons:?}");
        assert!(clone.join("Mu.yaml").exists(), "{why}");
    };
    write("new.tf");
    check("not tracked by Git: `new.tf`");
    inside(&["add", "new.tf"]);
    check("staged and not committed: `new.tf`");
    inside(&["rm", "--quiet", "--force", "new.tf"]);
    write("main.tf");
    check("changed and not committed: `main.tf`");
    inside(&["stash", "--quiet"]);
    check("stashed: `");
    inside(&["stash", "drop", "--quiet"]);
    // Files at which Git does not look are work, too.
    for flag in ["assume-unchanged", "skip-worktree"] {
        inside(&["update-index", &format!("--{flag}"), "main.tf"]);
        write("main.tf");
        check("changed and not committed: `main.tf`");
        inside(&["update-index", &format!("--no-{flag}"), "main.tf"]);
        inside(&["checkout", "--quiet", "main.tf"]);
    }
    write("secret.env");
    check("ignored by Git, so in no commit: `secret.env`");
    fs::remove_file(clone.join("secret.env")).expect("was there");
    inside(&["bisect", "start"]);
    check("a bisect is under way");
    inside(&["bisect", "reset"]);
    // The server has the commits that these are based on, so these are not a separate reason.
    inside(&["checkout", "--quiet", "-b", "theirs"]);
    world.commit_in(&place, "main.tf");
    world.push(&place);
    inside(&["checkout", "--quiet", "edit/mono-1.0.0"]);
    inside(&["merge", "--quiet", "--no-ff", "--no-commit", "--strategy=ours", "theirs"]);
    check("a merge is under way");
    inside(&["merge", "--abort"]);
    // A cherry-pick that turned out to be empty waits for its person.
    inside(&["checkout", "--quiet", "theirs"]);
    let picked = Command::new("git").args(["cherry-pick", "HEAD"]).current_dir(&clone).output();
    assert!(!picked.expect("there is Git").status.success(), "nothing is left to pick");
    check("a cherry-pick is under way");
    inside(&["cherry-pick", "--skip"]);
    inside(&["checkout", "--quiet", "edit/mono-1.0.0"]);
    inside(&[
        "-c",
        "sequence.editor=sed -i 1s/pick/edit/",
        "rebase",
        "--quiet",
        "--interactive",
        "theirs~1",
        "theirs",
    ]);
    check("a rebase is under way");
    inside(&["rebase", "--abort"]);
    inside(&["checkout", "--quiet", "edit/mono-1.0.0"]);
    let other = sandbox.path("other");
    inside(&["worktree", "add", "--quiet", "--detach", &other.display().to_string()]);
    check("other worktrees belong to it");
    inside(&["worktree", "remove", &other.display().to_string()]);
    // On a branch that is not checked out.
    inside(&["checkout", "--quiet", "-b", "aside"]);
    inside(&["commit", "--quiet", "--allow-empty", "--message", "aside"]);
    inside(&["checkout", "--quiet", "edit/mono-1.0.0"]);
    check("commits that no remote has: `");
    // A remote that would be gone together with the clone does not count.
    inside(&["remote", "add", "self", &clone.display().to_string()]);
    check("commits that no remote has: `");
    inside(&["remote", "remove", "self"]);
    // Only what HEAD was before still leads to it.
    inside(&["branch", "--quiet", "-D", "aside"]);
    check("commits that no remote has: `");
    inside(&["reflog", "expire", "--expire=now", "--all"]);
    sandbox.mu(&["edit", "--done", &root, "--offline", "--json"]).fails_with("offline");
    let run = sandbox.mu_in(&format!("work/{place}"), &["edit", "--done", &root]).fails();
    run.says(&["the current folder is in it"]);
    // All reasons at once, and what helps.
    write("main.tf");
    write("secret.env");
    write("new.tf");
    let run = sandbox.mu(&["edit", "--done", &root]).fails();
    run.says(&["changed and", "ignored by", "not tracked", "--keep", "--force"]);
    let run = sandbox.mu(&["edit", "--done", &root, "--keep"]).ok();
    run.says(&["its clone stays in"]).does_not_say(&["to use what you committed"]);
    assert!(sandbox.has(&format!("work/.mu/packs/{place}/main.tf")), "the pack is back");
    sandbox.mu(&["get", "--locked"]).ok().does_not_say(&["using the edit"]);
    world.is_untouched();
    sandbox.mu(&["edit", &root]).ok().says(&["using the edit of"]);
    sandbox.mu(&["edit", "--done", &root, "--force"]).ok();
    assert!(!clone.exists());
    sandbox.mu(&["edit", "--restore", &root]).ok();
    assert_eq!(sandbox.read(&format!("{place}/secret.env")), "work\n");
    world.is_untouched();
}

#[test]
fn work_in_a_submodule_counts() {
    let world = World::new();
    let (part, _server) = world.with_submodule();
    let sandbox = &world.sandbox;
    let root = world.id("");
    sandbox.mu(&["update", &root]).ok().says(&["1.0.0 → 1.1.0"]);
    sandbox.mu(&["edit", &root]).ok();
    let place = format!("{}/part", world.place());
    assert_eq!(sandbox.read(&format!("{place}/part.txt")), "one");
    sandbox.write(&format!("{place}/note.txt"), "work\n");
    let run = sandbox.mu(&["edit", "--done", &root]).fails();
    run.says(&[&format!("{place}: not tracked by Git: `note.txt`")]);
    fs::remove_file(world.work().join(&place).join("note.txt")).expect("was there");
    // What was committed stays when its files go.
    world.commit_in(&place, "part.txt");
    let clone = world.work().join(world.place());
    git(&clone, &["submodule", "--quiet", "deinit", "--force", "part"]);
    let run = sandbox.mu(&["edit", "--done", &root]).fails();
    run.says(&[&format!("{place}: commits that no remote has")]).does_not_say(&["not committed"]);
    let inner = clone.join(".git/modules/part");
    let to = part.folder().display().to_string();
    git(&inner, &["--work-tree=.", "push", "--quiet", &to, "HEAD:refs/heads/fix"]);
    sandbox.mu(&["edit", "--done", &root]).ok();
}

/// Nothing in such a clone is its user's, whatever has become of the branches and tags that it came with.
#[test]
fn an_edit_without_work_ends_also_after_its_remote_has_moved_on() {
    let world = World::new();
    let (part, _server) = world.with_submodule();
    part.commit(&[("part.txt", "two")]);
    // The branch is ahead of the version, and a tag is beside both.
    world.origin.commit(&[("main.tf", "two\n")]);
    world.origin.git(&["checkout", "--quiet", "-b", "nightly"]);
    world.origin.commit(&[("main.tf", "nightly\n")]);
    world.origin.git(&["tag", "nightly-1"]);
    world.origin.git(&["checkout", "--quiet", "main"]);
    let (sandbox, root) = (&world.sandbox, world.id(""));
    sandbox.mu(&["update", &root]).ok();
    let moves_on = || {
        for origin in [&world.origin, &part] {
            origin.commit(&[("main.tf", "three\n")]);
            // As after a force push: nothing on the remote leads to what was cloned.
            origin.git(&["commit", "--quiet", "--amend", "--message", "other"]);
        }
        world.origin.git(&["branch", "--quiet", "-D", "nightly"]);
        world.origin.git(&["tag", "-d", "nightly-1"]);
    };
    sandbox.mu(&["edit", &root]).ok();
    moves_on();
    sandbox.mu(&["edit", "--done", &root]).ok();
    // What is committed in it is still work that nobody else has.
    sandbox.mu(&["edit", "--restore", &root]).ok();
    world.commit_in(&world.place(), "work.tf");
    let run = sandbox.mu(&["edit", "--done", &root]).fails();
    run.says(&["commits that no remote has", "a change`"]).does_not_say(&["nightly", "two"]);
}

#[test]
fn a_package_without_a_repository_begins_with_its_files() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let error = sandbox.mu(&["edit", "aws/log", "--json"]).fails_with("not-found");
    let help = error["help"].to_string();
    assert!(help.contains("--url URL") && help.contains("--from-pack"), "{error}");
    sandbox
        .mu(&["edit", "aws/log", "--from-pack"])
        .ok()
        .says(&["editing aws/log 1.0.0 in aws/log"]);
    let clone = world.work().join("aws/log");
    assert_eq!(git(&clone, &["rev-list", "--count", "HEAD"]), "1");
    sandbox.mu(&["edit", "--done", "aws/log"]).ok();
    sandbox.mu(&["edit", "aws/log", "--from-pack"]).ok();
    world.commit_in("aws/log", "new.tf");
    sandbox.mu(&["edit", "--done", "aws/log"]).fails().says(&["commits that no remote has"]);
    world.is_untouched();
    // A repository of another package is none of it.
    let error =
        sandbox.mu(&["edit", "net/vpc", "--url", &world.url(), "--json"]).fails_with("not-found");
    assert!(
        error["message"].as_str().expect("is text").contains("called `acme/mono`, not `net/vpc`"),
        "{error}"
    );
    assert_eq!(world.edits().len(), 2);
}

#[test]
fn an_edit_requires_what_the_package_required_when_it_was_fetched() {
    let mut origin = Origin::new("lib.git");
    origin.commit(&[("Mu.yaml", "name: lib\n")]);
    origin.git(&["tag", "v1.0.0"]);
    origin.add("app.git");
    origin.commit(&[("Mu.yaml", "name: app\ndependencies: ['lib.git#^1']\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    // The name leaves out its base, which is that of the server.
    let sandbox = Sandbox::with_dependencies(&[&format!("git+{}app.git#^1", server.root())]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let id = format!("{}/app", server.host());
    sandbox.mu(&["edit", &id]).ok().says(&["using the edit of"]).does_not_say(&["warning", "→"]);
    let lib = format!("{}/lib", server.host());
    sandbox.mu(&["why", &lib]).ok().says(&["1.0.0"]);
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn a_name_that_several_edits_have_is_not_enough() {
    let world = World::new();
    let sandbox = &world.sandbox;
    sandbox.asks_for(&["net/vpc#^1", &format!("git+{}/net/vpc#^1", world.url())]);
    sandbox.mu(&["get"]).ok();
    let (hub, git) = ("hub.mu.com/net/vpc".to_owned(), world.id("/net/vpc"));
    sandbox.mu(&["edit", &hub, "--from-pack"]).ok();
    sandbox.mu(&["edit", &git]).ok();
    let both = format!("`vpc` could be `{hub}` or `{git}`");
    let error = sandbox.mu(&["edit", "--done", "vpc", "--force", "--json"]).fails_with("usage");
    assert_eq!(error["message"], both);
    sandbox.mu(&["edit", "--done", &git]).ok();
    sandbox.mu(&["edit", "--done", "vpc"]).ok().says(&["net/vpc is no longer edited"]);
    sandbox.mu(&["edit", "--restore", "vpc", "--json"]).fails_with("usage");
    sandbox.mu(&["edit", "--restore", &hub]).ok().says(&["restored net/vpc"]);
    // The same for patches.
    sandbox.mu(&["patch", "vpc", "--json"]).fails_with("usage");
}

#[test]
fn what_cannot_be_edited_is_refused_and_nothing_is_left() {
    let mut world = World::new();
    let sandbox = &world.sandbox;
    sandbox.write("lib/own/Mu.yaml", "name: lib/own\nversion: 1.0.0\n");
    sandbox.mu(&["add", "lib/own"]).ok();
    let error = sandbox.mu(&["edit", "lib/own", "--json"]).fails_with("conflict");
    assert_eq!(error["message"], "`lib/own` is a package of this workspace");
    let error = sandbox.mu(&["edit", "acme/web", "--json"]).fails_with("conflict");
    assert_eq!(error["message"], "`acme/web` is a package of this workspace");
    sandbox.mu(&["edit", "net/vpc", "--branch", "a..b", "--json"]).fails_with("usage");
    sandbox.mu(&["edit", "no/such", "--json"]).fails_with("not-found");
    sandbox.mu(&["edit", "net/vpc", "--offline", "--json"]).fails_with("offline");
    sandbox.mu(&["edit", "--done", "net/vpc", "--json"]).fails_with("not-found");
    sandbox.mu(&["edit", "--done", "--json"]).fails_with("usage");
    sandbox.mu(&["edit", "--restore", "x", "--json"]).fails_with("not-found");
    sandbox.mu(&["edit", "net/vpc", "--at", "lib/own", "--json"]).fails_with("conflict");
    let run = sandbox.mu(&["edit", "net/vpc", "--url", "ext::sh -c true", "--json"]);
    assert_ne!(run.status, 0);
    let missing = format!("{}acme/none.git", world.server.root());
    sandbox.mu(&["edit", "net/vpc", "--url", &missing, "--json"]).fails_with("not-found");
    assert!(world.edits().is_empty() && !sandbox.has("work/.mu/edit/new"));
    world.sandbox.set("CI", "true");
    world.sandbox.mu(&["edit", "net/vpc", "--at", "mine"]).fails().says(&["--allow-edits"]);
}

#[test]
fn an_edit_whose_manifest_is_broken_is_listed_and_ends() {
    let world = World::new();
    let sandbox = &world.sandbox;
    sandbox.mu(&["edit", "aws/log", "--from-pack"]).ok();
    sandbox.mu(&["edit", "net/vpc"]).ok();
    sandbox.write("aws/log/Mu.yaml", "name: [\n");
    sandbox.mu(&["get"]).fails().says(&["aws/log/Mu.yaml:1"]);
    let listed = sandbox.mu(&["edit"]).ok();
    listed.says(&["left out", "aws/log/Mu.yaml:1", "1 file changed"]);
    let kept = sandbox.mu(&["edit", "--done", "aws/log"]).fails();
    kept.says(&["changed and not committed: `Mu.yaml`"]);
    sandbox
        .mu(&["edit", "--done", "aws/log", "--force"])
        .ok()
        .says(&["aws/log is no longer edited"]);
    assert!(!sandbox.has("work/aws/log"));
    sandbox.mu(&["get"]).ok().does_not_say(&["left out"]);
    world.is_untouched();
}

#[test]
fn a_clone_in_the_trash_that_no_edit_names_is_told() {
    let world = World::new();
    let sandbox = &world.sandbox;
    sandbox.mu(&["edit", "--restore", "net/vpc"]).fails().says(&["the trash is empty"]);
    sandbox.mu(&["edit", "net/vpc"]).ok();
    sandbox.mu(&["edit", "--done", "net/vpc"]).ok();
    let name = world.edits()[0]["trash"].as_str().expect("is in the trash").to_owned();
    world.forget();
    assert!(sandbox.has(&format!("work/.mu/edit/trash/{name}")) && world.edits().is_empty());
    let lost = sandbox.mu(&["edit", "--restore", &name]).fails();
    lost.says(&["`.mu/edits.json`", "is gone", ".mu/edit/trash", &name]);
    // Its name says since when it is there.
    sandbox.mu(&["cache", "prune"]).ok();
    assert!(sandbox.has(&format!("work/.mu/edit/trash/{name}")));
    let trash = world.work().join(".mu/edit/trash");
    for (old, left) in [("x-2020-01-31T01-02-03Z-2", false), ("x-2020-01-31T01-02-03Z-y", true)] {
        fs::create_dir(trash.join(old)).expect("can be made");
        sandbox.mu(&["cache", "prune", "--dry-run"]).ok();
        assert!(trash.join(old).exists());
        sandbox.mu(&["cache", "prune"]).ok();
        assert_eq!(trash.join(old).exists(), left, "{old}");
    }
}

#[test]
fn edits_outlive_git_clean_which_leaves_their_clones() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let clean = || git(&world.work(), &["clean", "--quiet", "-f", "-d", "-x"]);
    let (root, place) = (world.id(""), world.place());
    sandbox.mu(&["edit", &root]).ok();
    let before = world.edits();
    clean();
    assert!(!sandbox.has("work/.mu/edits.json") && sandbox.has(&format!("work/{place}/main.tf")));
    assert_eq!(world.edits(), before);
    sandbox.mu(&["edit", &root]).ok().says(&["using the edit of"]);
    clean();
    sandbox.mu(&["edit", "--done", "--keep", &root]).ok();
    clean();
    assert_eq!(world.edits()[0]["state"], "kept");
    sandbox.mu(&["edit", &root]).ok();
    sandbox.mu(&["edit", "--done", &root]).ok();
    clean();
    assert_eq!(world.edits()[0]["state"], "in-trash");
    world.is_untouched();
    sandbox.mu(&["edit", "--restore", &root]).ok();
    assert_eq!(world.edits(), before);
    // One whose clone is gone, too, has ended.
    clean();
    fs::remove_dir_all(world.work().join(&place)).expect("is there");
    assert!(world.edits().is_empty());
    sandbox.mu(&["edit", &root]).ok().says(&["editing"]);
}

#[test]
fn the_trash_is_emptied_after_thirty_days() {
    let world = World::new();
    let sandbox = &world.sandbox;
    sandbox.mu(&["edit", "net/vpc"]).ok();
    sandbox.mu(&["edit", "--done", "net/vpc"]).ok();
    let name = world.edits()[0]["trash"].as_str().expect("is in the trash").to_owned();
    sandbox.mu(&["cache", "prune"]).ok();
    assert!(sandbox.has(&format!("work/.mu/edit/trash/{name}")));
    let mut edits: Value = serde_json::from_str(&sandbox.read(".mu/edits.json")).expect("is JSON");
    let trashed = edits["edits"][0]["trashed"].as_i64().expect("is a time");
    edits["edits"][0]["trashed"] = json!(trashed - 31 * 24 * 60 * 60);
    sandbox.write(".mu/edits.json", &edits.to_string());
    sandbox.mu(&["cache", "prune"]).ok();
    assert!(!sandbox.has(&format!("work/.mu/edit/trash/{name}")) && world.edits().is_empty());
}

#[test]
fn a_hostile_list_of_edits_leads_nowhere() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let list = |folder: &str, trash: &str| {
        json!({"edits": [{"id": "hub.mu.com/net/vpc", "folder": folder, "clone": folder, "version": "1.2.0",
            "branch": "x", "commit": world.commit, "trash": trash}]})
    };
    for (folder, trash) in [("../home", "x"), ("/etc", "x"), ("a/../..", "x"), ("net", "../../x")] {
        sandbox.write(".mu/edits.json", &list(folder, trash).to_string());
        sandbox.mu(&["get"]).fails().says(&["leads nowhere here"]);
    }
    // Nor does the note that Git keeps of it.
    fs::remove_file(sandbox.path("work/.mu/edits.json")).expect("was written");
    sandbox.write(".git/mu/edits.json", &list("../home", "x").to_string());
    assert!(world.edits().is_empty());
    std::os::unix::fs::symlink(sandbox.path("home"), sandbox.path("work/.mu/edit")).expect("links");
    sandbox.mu(&["edit", "net/vpc"]).fails().says(&["is a symbolic link"]);
}

/// Runs the program up to one of its changes to files; returns its exit status.
fn ended_at(sandbox: &Sandbox, arguments: &[&str], number: u32) -> i32 {
    let mut command = sandbox.command(arguments);
    command.env("MU_TEST_END_AT_CHANGE", number.to_string());
    sandbox.run(arguments, command).status
}

#[test]
fn a_beginning_that_ends_at_any_change_is_finished_by_the_next_run() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let lock = sandbox.read("Mu.lock");
    let (root, place) = (world.id(""), world.place());
    let mut changes = 0;
    for number in 1.. {
        let status = ended_at(sandbox, &["edit", &root], number);
        world.is_untouched();
        if status != 0 {
            sandbox.mu(&["edit", &root]).ok().says(&["using the edit of"]);
        }
        assert_eq!(sandbox.read(&format!("{place}/main.tf")), "one\n", "change {number}");
        let head = git(&world.work().join(&place), &["rev-parse", "edit/mono-1.0.0"]);
        assert_eq!(head, world.commit, "change {number}");
        sandbox.mu(&["edit", "--done", &root, "--force"]).ok();
        fs::remove_dir_all(sandbox.path("work/.mu/edit/trash")).expect("was there");
        changes = number;
        if status == 0 {
            break;
        }
    }
    assert!(changes > 4, "{changes} changes");
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn an_end_that_ends_at_any_change_loses_nothing_and_the_next_run_finishes() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let lock = sandbox.read("Mu.lock");
    let (root, place) = (world.id(""), world.place());
    sandbox.mu(&["edit", &root]).ok();
    sandbox.write(&format!("{place}/mine.env"), "work\n");
    let mut changes = 0;
    for number in 1.. {
        let status = ended_at(sandbox, &["edit", "--done", &root, "--force"], number);
        world.is_untouched();
        let edit = world.edits().pop().expect("is known");
        let state = edit["state"].as_str().expect("is text");
        let kept = match state {
            "in-use" => place.clone(),
            "in-trash" => format!(".mu/edit/trash/{}", edit["trash"].as_str().expect("is named")),
            state => panic!("{state} before change {number}"),
        };
        assert_eq!(sandbox.read(&format!("{kept}/mine.env")), "work\n", "change {number}");
        if state == "in-use" {
            sandbox.mu(&["edit", "--done", &root, "--force"]).ok();
        }
        sandbox.mu(&["edit", "--restore", &root]).ok();
        assert_eq!(sandbox.read(&format!("{place}/mine.env")), "work\n", "change {number}");
        changes = number;
        if status == 0 {
            break;
        }
    }
    assert!(changes > 4, "{changes} changes");
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    world.is_untouched();
}

/// Starts the program, and ends it without a warning after a while, if it still runs.
fn killed(sandbox: &Sandbox, arguments: &[&str], after: Duration) {
    let mut command = sandbox.command(arguments);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("mu can be started");
    let mut output = child.stdout.take().expect("is piped");
    let (send, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut output, &mut std::io::sink());
        // If nobody waits any more, that is fine.
        let _ = send.send(());
    });
    let _ = ended.recv_timeout(after);
    let _ = child.kill();
    child.wait().expect("can be waited for");
}

#[test]
fn an_end_at_any_change_loses_no_commit_stash_or_file() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let (root, place) = (world.id(""), world.place());
    sandbox.mu(&["edit", &root]).ok();
    let clone = world.work().join(&place);
    let inside = |arguments: &[&str]| git(&clone, arguments);
    world.commit_in(&place, "committed.tf");
    inside(&["checkout", "--quiet", "-b", "aside"]);
    world.commit_in(&place, "aside.tf");
    inside(&["tag", "mine"]);
    inside(&["checkout", "--quiet", "edit/mono-1.0.0"]);
    fs::write(clone.join("main.tf"), "stashed\n").expect("can be written");
    inside(&["stash", "--quiet"]);
    for file in ["main.tf", "new.tf", "secret.env", "staged.tf"] {
        fs::write(clone.join(file), "work\n").expect("can be written");
    }
    inside(&["add", "staged.tf"]);
    let state = |folder: &Path| {
        let files = ["committed.tf", "main.tf", "new.tf", "secret.env", "staged.tf"];
        let files = files.map(|file| fs::read_to_string(folder.join(file)).unwrap_or_default());
        let refs = git(folder, &["for-each-ref", "--format=%(refname) %(objectname)"]);
        let status = git(folder, &["status", "--porcelain", "--ignored"]);
        (files, refs, git(folder, &["stash", "list", "--format=%H"]), status)
    };
    let whole = state(&clone);
    let trash = world.work().join(".mu/edit/trash");
    // Where the clone is now: at its place, or below the trash.
    let found = || {
        if clone.join(".git").exists() {
            return clone.clone();
        }
        let entries = fs::read_dir(&trash).expect("is in the trash").flatten();
        let mut entries =
            entries.map(|entry| entry.path()).filter(|path| path.join(".git").exists());
        entries.next().expect("is in the trash")
    };
    let done = ["edit", "--done", &root, "--force"];
    let restore = ["edit", "--restore", &root];
    let check = |when: &str| {
        assert_eq!(state(&found()), whole, "{when}");
        world.is_untouched();
    };
    for (arguments, back) in [(&done[..], &restore[..]), (&restore, &done)] {
        let begins_in_place = arguments == done;
        for number in 1.. {
            if (found() == clone) != begins_in_place {
                sandbox.mu(back).ok();
            }
            let status = ended_at(sandbox, arguments, number);
            check(&format!("change {number} of {arguments:?}"));
            if status == 0 {
                assert!(number > 2, "{arguments:?} changes too little");
                break;
            }
            if (found() == clone) == begins_in_place {
                sandbox.mu(arguments).ok();
            }
            check(&format!("the run after change {number} of {arguments:?}"));
        }
    }
    // Half of the time that a run takes is a moment that no change to files marks.
    let started = Instant::now();
    sandbox.mu(&done).ok();
    killed(sandbox, &restore, started.elapsed() / 2);
    check("a kill at any moment");
    if found() != clone {
        sandbox.mu(&restore).ok();
    }
    assert_eq!(state(&clone), whole);
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_repository_without_its_history_is_edited_too() {
    let world = World::new();
    let sandbox = &world.sandbox;
    world.origin.commit(&[("main.tf", "two\n")]);
    world.origin.git(&["tag", "v1.1.0"]);
    let whole = format!("file://{}", world.origin.folder().display());
    let shallow = world.origin.root().join("acme/shallow.git");
    let to = shallow.display().to_string();
    git(world.origin.root(), &["clone", "--quiet", "--bare", "--depth=1", &whole, &to]);
    git(&shallow, &["config", "uploadpack.allowFilter", "true"]);
    git(&shallow, &["fetch", "--quiet", "--depth=1", &whole, "tag", "v1.1.0"]);
    sandbox.asks_for(&[&format!("git+{}acme/shallow.git#^1", world.server.root())]);
    sandbox.mu(&["get"]).ok();
    git(&world.work(), &["add", "--all"]);
    git(&world.work(), &["commit", "--quiet", "--message", "shallow"]);
    let id = format!("{}/acme/shallow", world.server.host());
    sandbox.mu(&["edit", &id]).ok().says(&["using the edit of"]);
    let place = format!("{}/acme/shallow", world.server.host().replace(':', "+"));
    world.commit_in(&place, "main.tf");
    let error = sandbox.mu(&["edit", "--done", &id, "--json"]).fails_with("conflict");
    assert!(error.to_string().contains("commits that no remote has"), "{error}");
    git(&world.work().join(&place), &["push", "--quiet", &to, "HEAD"]);
    sandbox.mu(&["edit", "--done", &id]).ok();
    world.is_untouched();
}

#[test]
fn a_repository_in_a_folder_needs_no_manifest() {
    let origin = Origin::new("ops/logs.git");
    origin.commit(&[("main.tf", "logs\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let sandbox = Sandbox::new();
    let reference = format!("git+file://{}/ops/logs.git#^1", origin.root().display());
    sandbox.asks_for(&[&reference]);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["edit", "logs"]).ok();
    run.says(&["branch edit/logs-1.0.0"]).does_not_say(&["whose package is named"]);
    sandbox.mu(&["status"]).ok().does_not_say(&["whose package is named"]);
    sandbox.mu(&["why", "logs"]).ok().says(&["acme/web → "]);
}

#[test]
fn a_manifest_may_have_another_name_than_its_repository() {
    let origin = Origin::new("ops/logs.git");
    origin.commit(&[("Mu.yaml", "name: infra/logs\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::new();
    sandbox.asks_for(&[&format!("git+{}ops/logs.git#^1", server.root())]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["edit", "logs"]).ok().does_not_say(&["whose package is named"]);
    for arguments in [&["why", "logs"][..], &["tree", "--invert", "logs"]] {
        sandbox.mu(arguments).ok().says(&["acme/web"]);
    }
    sandbox.mu(&["why", "logs"]).ok().says(&["acme/web → infra/logs ^1"]);
    // Here it is called as its manifest says, and the others require it under another name.
    let used = format!("used by others here as {}/ops/logs", server.host());
    sandbox.mu(&["status"]).ok().says(&["infra/logs", &used]);
}

#[test]
fn submodules_of_submodules_are_cloned_and_lead_nowhere_near() {
    let world = World::new();
    let mut parts = Origin::new("acme/inner.git");
    parts.commit(&[("inner.txt", "inner")]);
    let inner = parts.git(&["rev-parse", "HEAD"]).trim().to_owned();
    parts.add("acme/middle.git");
    let server = HttpServer::start(parts.root());
    // A repository of this machine, which nobody has named.
    let private = Origin::new("private.git");
    private.commit(&[("secret", "precious")]);
    let secret = private.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let leads = [
        (format!("{}acme/inner.git", server.root()), inner, true),
        (format!("file://{}", private.folder().display()), secret, false),
    ];
    let sandbox = &world.sandbox;
    for (number, (url, commit, is_fine)) in leads.into_iter().enumerate() {
        let module = format!("[submodule \"deep\"]\n\tpath = deep\n\turl = {url}\n");
        parts.commit(&[(".gitmodules", &module)]);
        parts.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},deep")]);
        parts.git(&["commit", "--quiet", "--message", "deep"]);
        let middle = parts.git(&["rev-parse", "HEAD"]).trim().to_owned();
        let module = format!(
            "[submodule \"part\"]\n\tpath = part\n\turl = {}acme/middle.git\n",
            server.root()
        );
        world.origin.commit(&[(".gitmodules", &module)]);
        let cache = format!("160000,{middle},part");
        world.origin.git(&["update-index", "--add", "--cacheinfo", &cache]);
        world.origin.git(&["commit", "--quiet", "--message", "part"]);
        // A package beside them, in the same repository.
        world.origin.git(&["tag", &format!("net/dns/v1.{}.0", number + 1)]);
        let dns = world.id("/net/dns");
        sandbox.mu(&["update", &dns]).ok();
        if is_fine {
            sandbox.mu(&["edit", &dns]).ok();
            let file = format!("{}/part/deep/inner.txt", world.place());
            assert_eq!(sandbox.read(&file), "inner");
            sandbox.mu(&["edit", "--done", &dns]).ok();
        } else {
            sandbox.mu(&["edit", &dns]).fails().says(&["the submodule URL", "is refused"]);
            let kept = world.work().join(world.place()).join("part/deep/secret");
            assert!(!kept.exists());
        }
    }
}

#[test]
fn what_moves_for_everyone_is_told_of_an_edited_package_too() {
    let world = World::new();
    world.sandbox.mu(&["edit", &world.id("")]).ok();
    world.origin.commit(&[("main.tf", "two\n")]);
    world.origin.git(&["tag", "v1.1.0"]);
    // The clone stays where it is, and Mu.lock does not.
    let moved = "~ acme/mono 1.0.0 → 1.1.0 in Mu.lock";
    world.sandbox.mu(&["update", "--dry-run"]).ok().says(&[moved]);
    world.sandbox.mu(&["update"]).ok().says(&[moved, "using the edit of"]);
    assert!(git(&world.work(), &["diff", "--stat"]).contains("Mu.lock"));
    world.sandbox.mu(&["get"]).ok().says(&["up to date"]).does_not_say(&[moved]);
}
