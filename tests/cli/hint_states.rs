//! States that show the hints which no other test meets. As in every test, what a hint says to do is then tried.

use std::fs;

use crate::edit::World;
use crate::support::{Package, Sandbox};

/// A workspace with `aws/ec2`, installed.
fn workspace() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0").file("main.tf", "size = 1\n")]);
    sandbox.mu(&["get"]).ok();
    sandbox
}

/// Where `mu patch` has files to change.
const DRAFT: &str = ".mu/patch/hub.mu.com+aws+ec2";

/// The same, with a file changed for a patch that is not saved.
fn with_draft() -> Sandbox {
    let sandbox = workspace();
    sandbox.mu(&["patch", "aws/ec2"]).ok();
    sandbox.write(&format!("{DRAFT}/main.tf"), "size = 2\n");
    sandbox
}

#[test]
fn words_on_the_command_line() {
    let sandbox = workspace();
    sandbox.mu(&["config", "get", "zebra"]).fails().says(&["`mu schema workspace`"]);
    sandbox.mu(&["config", "get", "audit"]).fails().says(&["`mu config list`"]);
    sandbox.mu(&["env", "ZEBRA"]).fails().says(&["`mu env` shows all that is set"]);
    let run = sandbox.mu(&["hub", "token", "add", "../hub", "ci", "--can", "publish"]);
    run.says(&["`--namespace acme`"]);
    fs::create_dir_all(sandbox.path("work/#")).expect("can be made");
    sandbox.mu_in("work/#", &["init"]).says(&["`mu init acme/web`"]);
    sandbox.mu(&["get", "git+http://git.example/acme/x.git"]).says(&["`--allow-insecure`"]);
    sandbox.write(
        ".mu/workspace.yaml",
        "registries: {b.example/: \"s3://bucket/\", p.example/: {url: \"http://p.example/\", insecure: true}}\n",
    );
    sandbox.mu(&["login", "b.example/"]).says(&["`mu hub --help`"]);
    sandbox.mu(&["login", "p.example/"]).says(&["`mu registry add p.example/ URL`"]);
}

#[test]
fn a_graph_that_is_too_large_to_draw() {
    let names: Vec<String> = (0..501).map(|number| format!("many/p{number}")).collect();
    let sandbox = Sandbox::with_dependencies(&names.iter().map(|one| &**one).collect::<Vec<_>>());
    let packages: Vec<Package> = names.iter().map(|name| Package::new(name, "1.0.0")).collect();
    sandbox.publish(&packages);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["graph", "--format", "svg"]).says(&["`--format dot`"]);
}

#[test]
fn an_edit_that_cannot_come_back_or_be_installed() {
    let world = World::new();
    let sandbox = &world.sandbox;
    let place = format!("{}/acme/mono", world.server.host());
    sandbox.mu(&["edit", &place]).ok();
    let clone = world.edits()[0]["folder"].as_str().expect("is text").to_owned();
    // What is required and not there stops the installation, and not the end of the edit.
    let manifest = sandbox.read("Mu.yaml");
    sandbox.write("Mu.yaml", "name: acme/web\ndependencies: [no/such]\n");
    let run = sandbox.mu(&["edit", "--done", "--all", "--force"]).fails();
    run.says(&["the edits themselves are as they should be"]);
    sandbox.write("Mu.yaml", &manifest);
    sandbox.write(&clone, "in the way\n");
    sandbox.mu(&["edit", "--restore", &place]).fails().says(&["move it away"]);
}

#[test]
fn a_patch_that_cannot_be_installed() {
    let sandbox = with_draft();
    sandbox.write("Mu.yaml", "name: acme/web\ndependencies: [\"aws/ec2#^1\", no/such]\n");
    sandbox.mu(&["patch", "--save", DRAFT]).fails().says(&["the patch was saved as"]);
}

#[test]
fn a_checkout_that_git_cannot_read() {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    sandbox.write(".git/HEAD", "neither a branch nor a commit\n");
    sandbox.write(".git/config", "[core\n");
    fs::create_dir_all(sandbox.path("work/.git/objects")).expect("can be made");
    fs::create_dir_all(sandbox.path("work/.git/refs")).expect("can be made");
    let run = sandbox.mu(&["publish", "--to", "../hub"]).fails();
    run.says(&["`--allow-dirty` publishes without this check"]);
}

#[test]
fn a_file_of_the_store_that_was_changed_before_it_is_patched() {
    let sandbox = with_draft();
    let files = walkdir::WalkDir::new(sandbox.path("cache/store"));
    for file in files.into_iter().filter_map(Result::ok) {
        if file.file_name() == "main.tf" {
            fs::remove_file(file.path()).expect("can be removed");
            fs::write(file.path(), "size = 3\n").expect("can be written");
        }
    }
    sandbox.mu(&["patch", "--save", DRAFT]).fails().says(&["`mu cache clean` empties the store"]);
}

/// A cache on a file system that cannot be written, which needs a separate namespace.
#[test]
fn a_cache_that_cannot_be_written() {
    let sandbox = workspace();
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    let inside = |what: &str| format!("unshare --user --map-root-user --mount sh -c '{what}'");
    let mount = "mount --bind ../cache ../cache && mount -o remount,bind,ro ../cache";
    if sandbox.shell("bash", &inside(mount)).status != 0 {
        return;
    }
    sandbox.publish(&[Package::new("aws/ec2", "1.1.0")]);
    let update = |options: &str| inside(&format!("{mount} && mu update --refresh {options}"));
    let run = sandbox.shell("bash", &update("")).fails();
    run.says(&["`--store-readonly` installs what is in it, and writes nothing there"]);
    let run = sandbox.shell("bash", &update("--store-readonly")).fails();
    run.says(&["cannot be written (--store-readonly), and lacks:\n  aws/ec2 1.1.0\n"]);
}

#[test]
fn a_file_in_the_place_of_a_pack_or_of_a_folder_for_packs() {
    let sandbox = workspace();
    let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws");
    fs::remove_dir_all(pack.join("ec2")).expect("is there");
    fs::write(pack.join("ec2"), "").expect("can be written");
    let run = sandbox.mu(&["verify"]).fails();
    run.says(&["aws/ec2`: a file is in its place", "hint: delete the file and run `mu get`"]);
    fs::remove_dir_all(&pack).expect("is there");
    fs::write(&pack, "").expect("can be written");
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["packs/hub.mu.com/aws` is a file, not a folder: move it away, or delete it"]);
    fs::remove_file(&pack).expect("is there");
    sandbox.mu(&["get"]).ok();
}

#[test]
fn a_file_of_the_store_that_was_changed_where_it_cannot_be_fetched_again() {
    let sandbox = workspace();
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    let spoil =
        "chmod -R u+w ../cache/store/trees && echo x > ../cache/store/trees/*/files/main.tf";
    assert_eq!(sandbox.shell("bash", spoil).status, 0);
    let run = sandbox.mu(&["get", "--store-readonly"]).fails();
    run.says(&[
        "in the store was changed after it was checked",
        "`mu verify --store` names all that was changed",
    ]);
    sandbox.mu(&["verify", "--store"]).fails();
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/ec2/main.tf"), "size = 1\n");
}
