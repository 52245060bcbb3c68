//! The first hour of a team with modules in one Git repository: its tags, a branch, an edit, two branches that meet, another machine, and what
//! people paste. With a real Git server.

use std::fs;
use std::path::Path;

use crate::support::git::{HttpServer, Origin, git};
use crate::support::{Sandbox, write};

/// The repository `modules.git`, in which each folder has tags of its own, and its server.
struct Modules {
    origin: Origin,
    server: HttpServer,
    sandbox: Sandbox,
}

impl Modules {
    /// With `net/vpc` 1.0.0, 1.1.0 and 2.0.0, and `data/postgres` 2.1.0.
    fn new() -> Self {
        let origin = Origin::new("modules.git");
        for setting in
            ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant", "http.receivepack"]
        {
            origin.git(&["config", setting, "true"]);
        }
        let server = HttpServer::start(origin.root());
        let mut sandbox = Sandbox::new();
        sandbox.replace(&server.host(), "[HOST]");
        for role in ["AUTHOR", "COMMITTER"] {
            sandbox.set(&format!("GIT_{role}_NAME"), "Ada");
            sandbox.set(&format!("GIT_{role}_EMAIL"), "ada@example.com");
        }
        let modules = Self { origin, server, sandbox };
        for version in ["1.0.0", "1.1.0", "2.0.0"] {
            modules.release("net/vpc", version);
        }
        modules.release("data/postgres", "2.1.0");
        modules
    }

    /// Commits a version of a folder, with its tag.
    fn release(&self, folder: &str, version: &str) {
        let manifest = format!("name: {folder}\nversion: {version}\n");
        let files = [
            (format!("{folder}/Mu.yaml"), manifest),
            (format!("{folder}/main.tf"), version.to_owned() + "\n"),
        ];
        let files = files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        self.origin.commit(&files.collect::<Vec<_>>());
        self.origin.git(&["tag", &format!("{folder}/v{version}")]);
    }

    fn reference(&self, rest: &str) -> String {
        format!("{}modules.git/{rest}", self.server.root())
    }

    /// Commits all of the workspace.
    fn commit(&self, message: &str) {
        commit(&self.sandbox.path("work"), message);
    }
}

fn commit(folder: &Path, message: &str) {
    git(folder, &["add", "--all"]);
    git(folder, &["commit", "--quiet", "--message", message]);
}

#[test]
fn a_team_moves_to_the_modules_of_its_repository() {
    let modules = Modules::new();
    let sandbox = &modules.sandbox;
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    sandbox.mu(&["init", "team/app"]).ok();
    // The tags of folders are versions, and the next major is named.
    let run = sandbox.mu(&["add", &modules.reference("net/vpc#^1.0")]).ok();
    run.says(&["net/vpc 1.1.0", "2.0.0 exists"]);
    // A branch: what moved is seen before it is taken, and the short name is enough.
    sandbox.mu(&["add", &modules.reference("data/postgres#main")]).ok();
    modules.commit("begin");
    modules.origin.commit(&[("data/postgres/main.tf", "bigger\n")]);
    let head = modules.origin.git(&["rev-parse", "HEAD"]);
    let new = head.trim().get(..7).expect("is a commit").to_owned();
    sandbox.mu(&["outdated"]).ok().says(&["data/postgres", &format!("2.1.0 ({new})")]);
    sandbox.mu(&["diff", "data/postgres"]).ok().says(&["+bigger"]).does_not_say(&["hub.mu.com"]);
    let lock = sandbox.read("Mu.lock");
    let run = sandbox.mu(&["update", "--dry-run", "--diff"]).ok();
    run.says(&["+bigger", &format!("→ {new}"), "nothing was written"]);
    assert_eq!(sandbox.read("Mu.lock"), lock);
    sandbox.mu(&["update"]).ok().says(&[&format!("→ {new}")]);
    modules.commit("update");
    // Another machine gets the same, and then needs no network.
    git(sandbox.root(), &["clone", "--quiet", "work", "other"]);
    let clone = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.current_dir(sandbox.path("other")).env("CI", "true");
        command.env("MU_CACHE_DIR", sandbox.path("cache-of-another"));
        sandbox.run(arguments, command)
    };
    clone(&["get", "--locked"]).ok().says(&["installed 2 packages"]);
    modules.server.refuse();
    clone(&["get", "--locked", "--offline"]).ok().says(&["up to date"]);
    clone(&["verify"]).ok();
    let packs = |folder: &str| mu_testing::digest_of(&sandbox.path(folder));
    assert_eq!(packs("other/.mu/packs"), packs("work/.mu/packs"));
}

#[test]
fn an_edit_ends_as_a_release_and_no_work_is_lost() {
    let modules = Modules::new();
    let sandbox = &modules.sandbox;
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    sandbox.mu(&["init", "team/app"]).ok();
    sandbox.mu(&["add", &modules.reference("net/vpc#^1.0")]).ok();
    modules.commit("begin");
    let run = sandbox.mu(&["edit", "net/vpc", "--json"]).ok();
    let folder = run.json()["edits"][0]["folder"].as_str().map(str::to_owned);
    let folder = folder.unwrap_or_else(|| panic!("{}", run.shown()));
    let file = format!("{folder}/main.tf");
    sandbox.write(&file, "fixed\n");
    // Nothing that is committed has changed; CI refuses it, and the end waits for the work.
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
    let mut command = sandbox.command(&["get", "--locked"]);
    command.env("CI", "true");
    sandbox.run(&["get", "--locked"], command).fails().says(&["edit"]);
    sandbox.mu(&["edit", "--done", "net/vpc"]).fails().says(&["main.tf"]);
    assert_eq!(sandbox.read(&file), "fixed\n");
    // Pushed and released, it ends.
    let place = work.join(&folder);
    sandbox.write(&format!("{folder}/Mu.yaml"), "name: net/vpc\nversion: 1.2.0\n");
    commit(&place, "fix");
    git(&place, &["tag", "net/vpc/v1.2.0"]);
    let push = "git push --quiet origin HEAD:refs/heads/fix net/vpc/v1.2.0";
    sandbox.shell("bash", &format!("cd '{folder}' && {push}")).ok();
    sandbox.mu(&["edit", "--done", "net/vpc"]).ok().says(&["trash"]);
    sandbox.mu(&["update"]).ok().says(&["1.1.0 → 1.2.0"]);
    let host = modules.server.host().replace(':', "+");
    let pack = format!(".mu/packs/{host}/modules/net/vpc/main.tf");
    assert_eq!(sandbox.read(&pack), "fixed\n");
}

#[test]
fn two_branches_meet_in_the_lock() {
    let modules = Modules::new();
    let sandbox = &modules.sandbox;
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    sandbox.write("Mu.yaml", "name: team/app\nversion: 1.0.0\ndependencies:\n\ndevDependencies:\n");
    sandbox.mu(&["get"]).ok();
    modules.commit("begin");
    git(&work, &["checkout", "--quiet", "-b", "other"]);
    sandbox.mu(&["add", "--dev", &modules.reference("data/postgres#^2")]).ok();
    modules.commit("postgres");
    git(&work, &["checkout", "--quiet", "main"]);
    sandbox.mu(&["add", &modules.reference("net/vpc#^1.0")]).ok();
    modules.commit("vpc");
    let merged = std::process::Command::new("git")
        .args(["merge", "--quiet", "other"])
        .current_dir(&work)
        .output()
        .expect("git runs");
    let text = sandbox.read("Mu.lock");
    if !merged.status.success() {
        assert!(text.contains("<<<<<<<"), "{text}");
        let merged = text;
        for side in ["--theirs", "--ours"] {
            git(&work, &["checkout", "--quiet", side, "Mu.lock"]);
            if sandbox.read("Mu.yaml").contains("<<<<<<<") {
                let both = format!(
                    "name: team/app\nversion: 1.0.0\ndependencies:\n  - {}\n\ndevDependencies:\n  - {}\n",
                    modules.reference("net/vpc#^1.0"),
                    modules.reference("data/postgres#^2")
                );
                sandbox.write("Mu.yaml", &both);
            }
            sandbox.mu(&["get"]).ok();
            assert_eq!(sandbox.locked().len(), 2);
            sandbox.mu(&["get", "--locked"]).ok();
        }
        // Where the manifests are merged, mu puts both sides together itself.
        let whole = sandbox.read("Mu.lock");
        sandbox.write("Mu.lock", &merged);
        sandbox.mu(&["get"]).ok().says(&["Mu.lock was in a merge conflict"]);
        assert_eq!(sandbox.read("Mu.lock"), whole);
    }
    modules.commit("merged");
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn what_other_tools_leave_and_what_people_paste_leads_on() {
    let modules = Modules::new();
    let sandbox = &modules.sandbox;
    // A folder beside the workspace, in which Terraform has worked, is the same everywhere.
    write(sandbox.root(), "lib/Mu.yaml", "name: team/lib\nversion: 1.0.0\n");
    write(sandbox.root(), "lib/.gitignore", ".terraform/\n");
    sandbox.asks_for(&["../lib"]);
    sandbox.mu(&["get", "--yes"]).ok();
    write(sandbox.root(), "lib/.terraform/providers", "many");
    sandbox.mu(&["get", "--locked"]).ok();
    write(sandbox.root(), "lib/main.tf", "changed");
    sandbox.mu(&["get", "--locked"]).fails().says(&["lib", "main.tf"]);
    sandbox.mu(&["get"]).ok().says(&["with other files"]);
    // What Terraform's `source` says.
    let root = modules.server.root();
    let pasted = format!("git::{root}modules.git//net/vpc?ref=net/vpc/v1.1.0");
    let hint = format!("{}#v1.1.0", modules.reference("net/vpc"));
    sandbox.mu(&["add", &pasted]).fails().says(&["hint: write", "modules.git/net/vpc#v1.1.0"]);
    sandbox.mu(&["add", &hint]).ok().says(&["net/vpc 1.1.0"]);
    // What is in the repository, and what is not.
    let all = modules.reference("");
    let all = all.trim_end_matches('/');
    sandbox.mu(&["versions", all]).ok().says(&["data/postgres", "net/vpc"]);
    sandbox.mu(&["add", &modules.reference("net/vpcc")]).fails().says(&["net/vpc"]);
    let run = sandbox.mu(&["add", &format!("{all}#v1.0.0")]).fails();
    run.says(&["its tags give versions to folders"]);
    // A patch, a fork and files to commit.
    sandbox.mu(&["patch", "net/vpc"]).ok();
    let copies = fs::read_dir(sandbox.path("work/.mu/patch")).expect("is there");
    let copy = copies.flatten().next().expect("there is one").path();
    fs::write(copy.join("main.tf"), "patched\n").expect("is ours");
    sandbox.mu(&["patch", "--save", "net/vpc"]).ok();
    sandbox.mu(&["vendor"]).ok();
    let host = modules.server.host().replace(':', "+");
    let pack = format!(".mu/packs/{host}/modules/net/vpc/main.tf");
    assert_eq!(sandbox.read(&pack), "patched\n");
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    sandbox.mu(&["verify"]).ok();
}
