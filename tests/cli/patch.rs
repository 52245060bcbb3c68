//! `mu patch`: changed files of a package, for everyone who uses the workspace.

use std::fs;

use serde_json::Value;

use crate::support::git::{Origin, git};
use crate::support::{Package, Sandbox, write};

const PACK: &str = "work/.mu/packs/hub.mu.com/aws/ec2";
const DRAFT: &str = ".mu/patch/hub.mu.com+aws+ec2";
const PATCH: &str = "patches/hub.mu.com+aws+ec2@1.2.0.patch";

fn ec2(version: &str, text: &str) -> Package {
    Package::new("aws/ec2", version).file("main.tf", text).file("run.sh*", "#!/bin/sh\necho 1\n")
}

/// A workspace with `aws/ec2` 1.2.0.
fn workspace() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.publish(&[ec2("1.2.0", "size = 1\nname = \"web\"\n")]);
    sandbox.mu(&["get"]).ok();
    sandbox
}

/// The same, with a patch.
fn patched() -> Sandbox {
    let sandbox = workspace();
    sandbox.mu(&["patch", "aws/ec2"]).ok();
    sandbox.write(&format!("{DRAFT}/main.tf"), "size = 2\nname = \"web\"\n");
    sandbox.mu(&["patch", "--save", DRAFT]).ok();
    sandbox
}

fn entry(sandbox: &Sandbox) -> Value {
    let lock = sandbox.lock();
    lock["packages"].as_array().expect("is a list")[0].clone()
}

#[test]
fn a_change_is_made_once_and_is_everyones() {
    let mut sandbox = workspace();
    let before = entry(&sandbox);
    let lock = sandbox.read("Mu.lock");
    let begun = sandbox.mu(&["patch", "aws/ec2"]).ok();
    begun.says(&["this is aws/ec2 1.2.0: change files there, then run `mu patch --save"]);
    let draft = sandbox.path(&format!("work/{DRAFT}"));
    assert_eq!(sandbox.read("Mu.lock"), lock, "nothing has changed yet");
    sandbox.write(&format!("{DRAFT}/main.tf"), "size = 2\nname = \"web\"\n");
    sandbox.write(&format!("{DRAFT}/new.txt"), "new\n");
    sandbox.write(&format!("{DRAFT}/dash boards/my first.json"), "{}\n");
    fs::remove_file(draft.join("run.sh")).expect("can be removed");
    let saved = sandbox.mu(&["patch", "--save", DRAFT]).ok();
    saved.says(&[&format!("saved {PATCH} for aws/ec2#^1.2"), "installed 1 package"]);
    let read = |file: &str| fs::read_to_string(sandbox.path(PACK).join(file)).ok();
    assert_eq!(read("main.tf").as_deref(), Some("size = 2\nname = \"web\"\n"));
    assert_eq!((read("new.txt").as_deref(), read("run.sh")), (Some("new\n"), None));
    assert_eq!(read("dash boards/my first.json").as_deref(), Some("{}\n"));
    let after = entry(&sandbox);
    assert_eq!(after["digest"], before["digest"], "what was published stays in the lock");
    assert!(after["patch"].as_str().expect("is text").starts_with("sha256:"));
    assert_ne!(after["patched"], before["digest"]);
    assert!(sandbox.read(".mu/workspace.yaml").contains(PATCH));
    assert!(sandbox.read(PATCH).contains("-size = 1\n+size = 2\n"));
    sandbox.mu(&["verify"]).ok().says(&["1 pack verified"]);
    sandbox.mu(&["get"]).ok().says(&["up to date"]);
    let json = sandbox.mu(&["get", "--locked", "--json"]).ok().json();
    assert_eq!(json["packages"][0]["patched"], after["patched"]);
    let listed = sandbox.mu(&["patch"]).ok();
    listed.says(&["aws/ec2#^1.2", PATCH, "1.2.0", "working copy of aws/ec2 1.2.0"]);
    // Another machine has what is committed, and neither cache nor packs.
    for folder in ["cache", "work/.mu/packs", "work/.mu/patch"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("can be removed");
    }
    for flags in [&["get", "--locked"][..], &["get", "--frozen"], &["get", "--offline"]] {
        let _ = fs::remove_dir_all(sandbox.path("work/.mu/packs"));
        sandbox.mu(flags).ok().says(&["installed 1 package"]);
        let text = fs::read_to_string(sandbox.path(PACK).join("main.tf")).expect("is there");
        assert_eq!(text, "size = 2\nname = \"web\"\n", "{flags:?}");
    }
    assert_eq!(entry(&sandbox), after);
    // The next change goes on from the last one.
    sandbox.mu(&["patch", "aws/ec2"]).ok();
    assert!(sandbox.read(&format!("{DRAFT}/main.tf")).starts_with("size = 2\n"));
    sandbox.write(&format!("{DRAFT}/main.tf"), "size = 3\nname = \"web\"\n");
    sandbox.mu(&["patch", "--save", DRAFT, "--json"]).ok().json();
    assert!(sandbox.read(PATCH).contains("-size = 1\n+size = 3\n"));
    // What is published comes back.
    sandbox.mu(&["patch", "--drop", "aws/ec2"]).ok().says(&["installed 1 package"]);
    assert!(!sandbox.has(&format!("work/{PATCH}")));
    assert_eq!(entry(&sandbox), before);
    sandbox.mu(&["verify"]).ok();
    sandbox.set("CI", "true");
    sandbox.mu(&["patch"]).ok().says(&["working copy of aws/ec2"]);
}

#[cfg(unix)]
#[test]
fn a_working_copy_is_a_repository_that_hides_nothing() {
    let sandbox = workspace();
    sandbox.mu(&["patch", "aws/ec2"]).ok();
    let draft = sandbox.path(&format!("work/{DRAFT}"));
    assert_eq!(git(&draft, &["status", "--porcelain"]), "");
    // What was committed there counts as well.
    sandbox.write(&format!("{DRAFT}/main.tf"), "size = 2\nname = \"web\"\n");
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    git(&draft, &[&who[..], &["commit", "--quiet", "--all", "--message", "x"]].concat());
    sandbox.write(&format!("{DRAFT}/.gitignore"), "*.log\n");
    sandbox.write(&format!("{DRAFT}/new.log"), "new\n");
    let saved = sandbox.mu(&["patch", "--save", DRAFT]).ok();
    saved.says(&["warning: the patch is without what Git ignores: `new.log`"]);
    assert!(sandbox.read(PATCH).contains("+size = 2\n"));
    // The workspace's repository does not see it.
    git(&sandbox.path("work"), &["init", "--quiet", "."]);
    let seen = git(&sandbox.path("work"), &["status", "--porcelain", "--untracked-files=all"]);
    assert!(!seen.contains(".mu/patch/"), "{seen}");
    assert!(seen.contains(PATCH), "{seen}");
}

#[test]
fn a_patch_is_the_same_in_a_checkout_with_other_line_ends() {
    let sandbox = patched();
    let work = sandbox.path("work");
    write(&work, ".gitignore", ".mu/packs/\n.mu/patch/\n");
    git(&work, &["init", "--quiet", "."]);
    git(&work, &["add", "."]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    git(&work, &[&who[..], &["commit", "--quiet", "--message", "x"]].concat());
    let there = sandbox.path("there");
    let [from, to] = [&work, &there].map(|path| path.to_str().expect("is UTF-8"));
    git(sandbox.root(), &["clone", "--quiet", "-c", "core.autocrlf=true", from, to]);
    let patch = fs::read_to_string(there.join(PATCH)).expect("is there");
    assert!(patch.contains("size = 2\r\n"), "{patch}");
    sandbox.mu_in("there", &["get", "--locked"]).ok();
    let installed = there.join(".mu/packs/hub.mu.com/aws/ec2/main.tf");
    assert_eq!(fs::read_to_string(installed).expect("is there"), "size = 2\nname = \"web\"\n");
}

#[test]
fn a_patch_that_no_longer_fits_stops_an_update() {
    let sandbox = patched();
    sandbox.publish(&[ec2("1.3.0", "count = 1\nname = \"web\"\n")]);
    let before = sandbox.state();
    let error = sandbox.mu(&["update", "--json"]).fails_with("conflict");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("does not apply to `hub.mu.com/aws/ec2` 1.3.0"), "{message}");
    assert!(message.contains("`main.tf` is not what it expects: hunk at line 1"), "{message}");
    assert_eq!(sandbox.state(), before, "nothing has changed");
    // The way out that it names.
    sandbox.mu(&["patch", "--drop", "aws/ec2"]).ok();
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.3.0"]);
    sandbox
        .mu(&["patch", "aws/ec2"])
        .fails()
        .says(&["is a copy of `aws/ec2` 1.2.0, which Mu.lock no longer has"]);
    fs::remove_dir_all(sandbox.path("work/.mu/patch")).expect("can be removed");
    sandbox.mu(&["patch", "aws/ec2"]).ok().says(&["1.3.0"]);
}

#[test]
fn a_patched_pack_is_what_its_patch_makes_also_without_a_lock() {
    let sandbox = patched();
    let lock = sandbox.read("Mu.lock");
    for name in ["cache", "work/Mu.lock"] {
        let path = sandbox.path(name);
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.expect("is ours");
    }
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn a_patch_stays_where_its_package_cannot_be_installed_without_it() {
    let sandbox = patched();
    let (settings, patch) = (sandbox.read(".mu/workspace.yaml"), sandbox.read(PATCH));
    fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    fs::remove_dir_all(sandbox.path("hub/packs")).expect("is ours");
    sandbox.mu(&["patch", "--drop", "aws/ec2"]).fails();
    assert_eq!((sandbox.read(".mu/workspace.yaml"), sandbox.read(PATCH)), (settings, patch));
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_lock_says_which_patch_it_means() {
    let sandbox = patched();
    let patch = sandbox.read(PATCH);
    sandbox.write(PATCH, &patch.replace("+size = 2", "+size = 4"));
    let error = sandbox.mu(&["get", "--locked", "--json"]).fails_with("lock-outdated");
    assert!(error.to_string().contains("the patch of hub.mu.com/aws/ec2 has changed"), "{error}");
    let _ = fs::remove_dir_all(sandbox.path("work/.mu/packs"));
    let _ = fs::remove_dir_all(sandbox.path("cache"));
    sandbox.mu(&["get", "--frozen"]).fails().says(&["is not the patch that Mu.lock names"]);
    sandbox.mu(&["get"]).ok();
    assert!(fs::read_to_string(sandbox.path(PACK).join("main.tf")).expect("reads").contains("= 4"));
    // A lock that lies about the result.
    let lock = sandbox.read("Mu.lock");
    let line = lock.lines().find(|line| line.trim().starts_with("patched: ")).expect("is there");
    let digest = line.trim().trim_start_matches("patched: ");
    let first = if digest.starts_with("h1:A") { "h1:B" } else { "h1:A" };
    let other = [first, &digest[first.len()..]].concat();
    sandbox.write("Mu.lock", &lock.replace(line, &format!("  patched: {other}")));
    let _ = fs::remove_dir_all(sandbox.path("work/.mu/packs"));
    let error = sandbox.mu(&["get", "--frozen", "--json"]).fails_with("integrity");
    assert!(error.to_string().contains("is not what Mu.lock says"), "{error}");
}

#[test]
fn a_package_that_needs_a_patched_one_is_not_published() {
    let sandbox = patched();
    let error = sandbox.mu(&["publish", "--json"]).fails_with("conflict");
    assert!(error.to_string().contains("others would get it without the patch"), "{error}");
}

#[test]
fn what_is_wrong_with_a_patch_is_said() {
    let sandbox = workspace();
    let settings = sandbox.read(".mu/workspace.yaml");
    let set = |key: &str, file: &str| {
        sandbox.write(".mu/workspace.yaml", &format!("{settings}patches:\n  {key}: {file}\n"));
    };
    sandbox
        .mu(&["patch", "aws/vpc"])
        .fails()
        .says(&["`aws/vpc` is not in Mu.lock", "mu add aws/vpc"]);
    let other = "helm+https://charts.example/web";
    sandbox.mu(&["patch", other]).fails().says(&[&format!("`mu add {other}`")]);
    sandbox.write("own/Mu.yaml", "name: aws/own\nversion: 1.0.0\n");
    let own = sandbox.mu(&["patch", "aws/own"]);
    assert_eq!(own.status, 2, "{}", own.shown());
    own.says(&["`aws/own` is a package of this workspace", "change its files in `own`"]);
    let none = sandbox.mu(&["patch", "--save", "aws/ec2"]).fails();
    none.says(&["there is no working copy of `aws/ec2`", "`mu patch aws/ec2` makes one"]);
    sandbox.mu(&["patch", "aws/ec2#2.0.0"]).fails().says(&["which has `aws/ec2` 1.2.0"]);
    sandbox.mu(&["patch", "--drop", "aws/ec2"]).fails().says(&["`aws/ec2` is not patched"]);
    sandbox
        .mu(&["patch", "--save", "."])
        .fails()
        .says(&["is not a working copy that `mu patch` made"]);
    sandbox.mu(&["patch", "aws/ec2"]).ok();
    sandbox.mu(&["patch", "aws/ec2"]).ok().says(&["this is aws/ec2 1.2.0"]);
    sandbox.mu(&["patch", "--save", DRAFT]).fails().says(&["nothing was changed in"]);
    let manifest = format!("{DRAFT}/Mu.yaml");
    let text = sandbox.read(&manifest);
    sandbox.write(&manifest, &format!("{text}description: x\n"));
    sandbox
        .mu(&["patch", "--save", DRAFT])
        .fails()
        .says(&["changes the manifest `Mu.yaml`", "mu edit aws/ec2"]);
    assert!(!sandbox.has(&format!("work/{PATCH}")), "nothing was saved");
    set("aws/ec2", "../fix.patch");
    sandbox
        .mu(&["get"])
        .fails()
        .says(&["workspace.yaml:", "is not a file below the workspace's root"]);
    set("'aws/ec2#latest'", "fix.patch");
    sandbox
        .mu(&["get"])
        .fails()
        .says(&["workspace.yaml:", "a patch is for a version, a range or a commit"]);
    set("aws/ec2", "fix.patch");
    sandbox.mu(&["get"]).fails().says(&["the patch for `aws/ec2` is not there", "fix.patch"]);
    sandbox.write("fix.patch", "rubbish\n");
    sandbox.mu(&["get"]).fails().says(&["does not apply to", "mu patch --drop aws/ec2"]);
    sandbox.write(
        "fix.patch",
        "diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n",
    );
    sandbox.mu(&["get"]).fails().says(&["it would write outside the package: `../x`"]);
    set("aws/ec2#^2", "fix.patch");
    sandbox.mu(&["get"]).ok().says(&["the patch for `aws/ec2#^2` is not used"]);
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("{settings}patches: {{\"aws/ec2#^1\": a.patch, \"aws/ec2#>=1\": b.patch}}\n"),
    );
    sandbox.mu(&["get"]).fails().says(&["two patches are for `aws/ec2` 1.2.0"]);
    // An exact version wins.
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("{settings}patches: {{\"aws/ec2#^1\": a.patch, \"aws/ec2#1.2.0\": b.patch}}\n"),
    );
    sandbox.mu(&["get"]).fails().says(&["the patch for `aws/ec2#1.2.0` is not there"]);
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_folder_is_changed_in_place() {
    let sandbox = Sandbox::with_dependencies(&["./../other"]);
    sandbox.trusts_folder("other");
    sandbox.place("other", &Package::new("acme/other", "1.0.0"));
    sandbox.mu(&["get"]).ok();
    let error = sandbox.mu(&["patch", "../other", "--json"]).fails_with("usage");
    assert!(error.to_string().contains("comes from the folder `../other`"), "{error}");
}

#[test]
fn an_edit_is_used_as_it_is_and_leaves_the_patch_to_the_others() {
    let sandbox = patched();
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet", "."]);
    sandbox.write(".git/info/exclude", "/aws/\n");
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "begin"]);
    let lock = sandbox.read("Mu.lock");
    sandbox.place("work/aws/ec2", &ec2("1.2.0", "size = 9\nname = \"web\"\n"));
    sandbox.mu(&["get"]).ok().says(&["using the edit of hub.mu.com/aws/ec2"]);
    let edited = sandbox.mu(&["which", "aws/ec2"]).ok();
    edited.says(&["/work/aws/ec2"]);
    assert_eq!(sandbox.read("Mu.lock"), lock, "it still has the patch");
    fs::remove_dir_all(sandbox.path("work/aws")).expect("can be removed");
    sandbox.mu(&["get", "--locked"]).ok();
    let text = fs::read_to_string(sandbox.path(PACK).join("main.tf")).expect("is there");
    assert!(text.starts_with("size = 2\n"), "{text}");
}

#[test]
fn a_patch_that_is_saved_beside_a_folder_of_ones_own_is_everyones() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1", "aws/log#^1"]);
    sandbox.publish(&[ec2("1.2.0", "size = 1\n"), Package::new("aws/log", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    crate::support::git::git(&sandbox.path("work"), &["init", "--quiet", "."]);
    sandbox.write(".git/info/exclude", "/aws/log/\n");
    sandbox.place("work/aws/log", &Package::new("aws/log", "1.1.0"));
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["patch", "aws/ec2"]).ok();
    sandbox.write(&format!("{DRAFT}/main.tf"), "size = 2\n");
    sandbox.mu(&["patch", "--save", DRAFT]).ok();
    let patched = entry(&sandbox)["patched"].clone();
    assert!(patched.is_string(), "{}", sandbox.read("Mu.lock"));
    fs::remove_dir_all(sandbox.path("work/aws/log")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn patches_behind_a_link_are_neither_written_nor_removed() {
    let sandbox = workspace();
    sandbox.mu(&["patch", "aws/ec2"]).ok();
    sandbox.write(&format!("{DRAFT}/main.tf"), "size = 2\nname = \"web\"\n");
    let settings = "patches:\n  hub.mu.com/aws/ec2: patches/id_rsa\n";
    let victim = sandbox.path("home/.ssh");
    mu_testing::write(&victim, "id_rsa", "key");
    mu_testing::write(&victim, "deep/id_rsa", "key");
    for (link, to, file) in [
        ("patches", "home/.ssh", "patches/id_rsa"),
        ("patches", "home", "patches/.ssh/id_rsa"),
        ("a/b", "home/.ssh", "a/b/deep/id_rsa"),
    ] {
        let place = sandbox.path("work").join(link);
        fs::create_dir_all(place.parent().expect("is below")).expect("can be made");
        std::os::unix::fs::symlink(sandbox.path(to), &place).expect("can be made");
        for command in [
            &["patch", "--drop", "aws/ec2"][..],
            &["patch", "--save", DRAFT],
            &["patch", "aws/ec2"],
            &["patch"],
            &["get"],
        ] {
            sandbox.write(".mu/workspace.yaml", &settings.replace("patches/id_rsa", file));
            let run = sandbox.mu(command);
            // The working copy that is there needs no patch.
            assert!(run.status == 1 || command == ["patch", "aws/ec2"], "{}", run.shown());
            for key in ["id_rsa", "deep/id_rsa"] {
                let text = fs::read_to_string(victim.join(key));
                assert_eq!(text.expect("is there"), "key", "{}", run.shown());
            }
            assert_eq!(fs::read_dir(&victim).expect("is there").count(), 2, "{}", run.shown());
        }
        sandbox.mu(&["patch", "--drop", "aws/ec2"]).fails().says(&["it is a symbolic link"]);
        fs::remove_file(&place).expect("is a link");
    }
    // What is no patch of the workspace is not taken for one: nothing of Git's or mu's, and no folder.
    sandbox.write("src/main.tf", "mine");
    for (file, why) in [
        (".git/config", "may not contain"),
        (".mu/workspace.yaml", "may not contain"),
        ("../home/.ssh/id_rsa", "points out"),
        ("/etc/passwd", "absolute"),
        ("src", "src"),
    ] {
        sandbox.write(".mu/workspace.yaml", &settings.replace("patches/id_rsa", file));
        sandbox.mu(&["patch", "--drop", "aws/ec2"]).fails().says(&[why]);
        assert!(sandbox.has("work/src/main.tf"));
    }
}

#[test]
fn working_copies_behind_a_link_are_neither_made_nor_read() {
    let sandbox = workspace();
    let victim = sandbox.path("victim");
    fs::create_dir_all(victim.join("hub.mu.com+aws+ec2")).expect("can be made");
    for link in ["patch", "patch/hub.mu.com+aws+ec2", "patch/.gitignore"] {
        let place = sandbox.path("work/.mu").join(link);
        fs::create_dir_all(place.parent().expect("is below")).expect("can be made");
        std::os::unix::fs::symlink(&victim, &place).expect("can be made");
        sandbox
            .mu(&["patch", "aws/ec2"])
            .fails()
            .says(&[&format!("{link}`"), "it is a symbolic link"]);
        if link == "patch/hub.mu.com+aws+ec2" {
            sandbox.mu(&["patch", "--save", DRAFT]).fails().says(&["it is a symbolic link"]);
        }
        assert_eq!(fs::read_dir(&victim).expect("is there").count(), 1);
        fs::remove_dir_all(sandbox.path("work/.mu/patch"))
            .or_else(|_| fs::remove_file(sandbox.path("work/.mu/patch")))
            .expect("is ours");
    }
}

#[test]
fn a_patch_counts_beside_a_package_that_only_this_machine_has() {
    for strategy in ["highest", "minimal"] {
        let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1", "aws/log#^1"]);
        sandbox.publish(&[ec2("1.2.0", "size = 1\n"), Package::new("aws/log", "1.0.0")]);
        sandbox.publish(&[Package::new("aws/log", "1.1.0")]);
        sandbox.write(".mu/workspace.yaml", &format!("resolution: {strategy}\n"));
        git(&sandbox.path("work"), &["init", "--quiet", "."]);
        sandbox.write(".git/info/exclude", "/mine/\n");
        sandbox.place("work/mine", &Package::new("acme/mine", "0.1.0").needs("aws/log#^1"));
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["patch", "aws/ec2"]).ok();
        sandbox.write(&format!("{DRAFT}/main.tf"), "size = 2\n");
        sandbox.mu(&["patch", "--save", DRAFT]).ok();
        assert!(sandbox.has("work/.mu/edits.lock"), "{strategy}");
        let size = || fs::read_to_string(sandbox.path(PACK).join("main.tf")).expect("is there");
        assert_eq!(size(), "size = 2\n", "{strategy}");
        // Also in packs that are committed, after something else has moved.
        sandbox.mu(&["vendor"]).ok();
        sandbox.mu(&["add", "aws/log#1.0.0"]).ok();
        assert_eq!(size(), "size = 2\n", "{strategy}");
        sandbox.mu(&["verify"]).ok();
        // What this machine used before does not know of this patch.
        sandbox.mu(&["patch", "aws/log"]).ok();
        sandbox.write(".mu/patch/hub.mu.com+aws+log/more.txt", "more\n");
        sandbox.mu(&["patch", "--save", ".mu/patch/hub.mu.com+aws+log"]).ok();
        assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/log/more.txt"), "more\n", "{strategy}");
        sandbox.mu(&["verify"]).ok();
        let state = sandbox.state();
        sandbox.mu(&["get"]).ok();
        assert!(sandbox.state() == state, "{strategy}: there was nothing to do");
    }
}

#[test]
fn a_package_on_this_machine_is_patched_whatever_git_writes_into_diffs() {
    let origin = Origin::new("logs");
    origin.commit(&[("Mu.yaml", "name: acme/logs\nversion: 1.0.0\n"), ("a.txt", "one\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let reference = format!("git+file://{}", origin.folder().display());
    for settings in ["noprefix = true", "mnemonicPrefix = true"] {
        let sandbox = Sandbox::with_dependencies(&[&format!("{reference}#^1")]);
        write(sandbox.root(), "home/.gitconfig", format!("[diff]\n\t{settings}\n"));
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["patch", &reference]).ok();
        let id = sandbox.lock()["packages"][0]["id"].as_str().expect("is text").to_owned();
        let draft = format!(".mu/patch/{}", id.replace('/', "+"));
        sandbox.write(&format!("{draft}/a.txt"), "two\n");
        sandbox.mu(&["patch", "--save", &draft]).ok();
        let run = sandbox.mu(&["get"]).ok();
        assert!(!run.stderr.contains("warning"), "{}", run.stderr);
        assert_eq!(sandbox.read(&format!(".mu/packs/{id}/a.txt")), "two\n", "{settings}");
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["patch", "--drop", &reference]).ok();
        assert_eq!(sandbox.read(&format!(".mu/packs/{id}/a.txt")), "one\n", "{settings}");
    }
}
