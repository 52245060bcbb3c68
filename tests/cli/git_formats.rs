//! Repositories in formats that libgit2 does not read: what Git says of them counts all the same, and nothing that their configuration
//! names runs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::git::{Origin, REPOSITORY_FORMATS, git};
use crate::support::{Package, Sandbox, write};

/// A committed workspace in a repository of a format.
fn committed(init: &[&str], after: &[&[&str]]) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1"]);
    sandbox.offer("aws/app 1.0.0: aws/ec2#^1.0\naws/ec2 1.0.6:\naws/vpc 2.0.0:");
    let work = sandbox.path("work");
    sandbox.write(".gitignore", "/.mu/packs/\n");
    sandbox.write("far/away/file", "not in a sparse checkout");
    git(&work, &[&["init", "--quiet", "--initial-branch=main"], init].concat());
    sandbox.mu(&["get"]).ok();
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "begin"]);
    for arguments in after {
        git(&work, arguments);
    }
    sandbox
}

/// Has the configuration of the checkout want programs to run; returns what they would leave.
fn wants_programs(sandbox: &Sandbox) -> PathBuf {
    let (work, mark) = (sandbox.path("work"), sandbox.path("mark"));
    let run = format!("touch '{}'; false", mark.display());
    git(&work, &["config", "filter.x.clean", &run]);
    git(&work, &["config", "core.fsmonitor", &run]);
    write(&work, ".git/info/attributes", "* filter=x\n");
    mark
}

#[test]
fn an_ignored_folder_changes_no_lock_and_edits_stay_out_of_git_in_any_format() {
    for (format, init, after) in REPOSITORY_FORMATS {
        let sandbox = committed(init, after);
        let work = sandbox.path("work");
        let mark = wants_programs(&sandbox);
        let lock = sandbox.read("Mu.lock");
        let origin = Origin::new("vpc.git");
        origin.commit(&[("Mu.yaml", "name: aws/vpc\nversion: 2.0.0\n")]);
        origin.git(&["tag", "v2.0.0"]);
        let url = format!("git+file://{}#^2", origin.folder().display());
        sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.0.9"));
        write(&work, ".git/info/exclude", "/aws/ec2/\n");
        let run = sandbox.mu(&["get"]).ok();
        run.says(&["using the edit of hub.mu.com/aws/ec2"]);
        assert_eq!(sandbox.read("Mu.lock"), lock, "{format}");
        sandbox.mu(&["get", "--locked"]).ok();
        fs::remove_dir_all(work.join("aws")).expect("is there");
        sandbox.mu(&["get", &url]).ok();
        let name = url.trim_end_matches("#^2");
        sandbox.mu(&["edit", name]).ok();
        assert!(!mark.exists(), "{format}: a program of the checkout ran");
        git(&work, &["config", "--unset", "core.fsmonitor"]);
        fs::remove_file(work.join(".git/info/attributes")).expect("is there");
        let status = git(&work, &["status", "--porcelain", "--untracked-files=all"]);
        assert_eq!(status.trim(), "M Mu.lock", "{format}");
        let locked = sandbox.read("Mu.lock");
        sandbox.mu(&["edit", "--done", name]).ok();
        assert_eq!(sandbox.read("Mu.lock"), locked, "{format}");
        let status = git(&work, &["status", "--porcelain", "--untracked-files=all"]);
        assert_eq!(status.trim(), "M Mu.lock", "{format}");
    }
}

#[test]
fn a_folder_all_of_whose_files_git_ignores_is_ignored_in_any_format() {
    for (format, init, after) in REPOSITORY_FORMATS {
        let sandbox = committed(init, after);
        let lock = sandbox.read("Mu.lock");
        let using = "using the edit of hub.mu.com/aws/ec2";
        // As `virtualenv` and others make folders of their own; and as many write rules.
        for (file, rules) in [("aws/ec2/.gitignore", "*\n"), (".git/info/exclude", "/aws/ec2/*\n")]
        {
            sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.0.9").file("deep/a", "a"));
            sandbox.write(file, rules);
            sandbox.mu(&["get"]).ok().says(&[using]);
            assert_eq!(sandbox.read("Mu.lock"), lock, "{format}: {file}");
            sandbox.mu(&["get", "--locked"]).ok();
            // A file that Git would add is the team's.
            sandbox.write(file, &rules.replace("*", "*.md"));
            sandbox.mu(&["get", "--locked"]).fails();
            fs::remove_dir_all(sandbox.path("work/aws")).expect("is there");
        }
    }
}

#[test]
fn a_repository_that_nothing_can_read_is_no_missing_one() {
    let sandbox = committed(&[], &[]);
    sandbox.place("work/aws/ec2", &Package::new("aws/ec2", "1.0.9"));
    sandbox.write(".git/index", "no index");
    let run = sandbox.mu(&["get"]).ok();
    run.says(&[
        "warning",
        "it is not known which folders Git ignores",
        "cannot read the Git repository",
    ]);
}

#[test]
fn packages_are_published_from_checkouts_in_any_format() {
    for (format, init, after) in REPOSITORY_FORMATS {
        let sandbox = committed(init, after);
        let work = sandbox.path("work");
        let mark = wants_programs(&sandbox);
        let to = sandbox.path("published").display().to_string();
        let publish = ["publish", "--to", &to];
        sandbox.mu(&["hub", "init", &to]).ok();
        let manifest = sandbox.read("Mu.yaml");
        sandbox.write("Mu.yaml", &format!("{manifest}description: x\nlicense: MIT\n"));
        sandbox.mu(&publish).fails().says(&["changes that are not committed: `Mu.yaml`"]);
        assert!(!mark.exists(), "{format}: a program of the checkout ran");
        git(&work, &["config", "--unset", "core.fsmonitor"]);
        fs::remove_file(work.join(".git/info/attributes")).expect("is there");
        git(&work, &["commit", "--quiet", "--message", "more", "Mu.yaml"]);
        sandbox.write("new/file", "untracked");
        sandbox.mu(&publish).fails().says(&["changes that are not committed: `new/file`"]);
        fs::remove_dir_all(work.join("new")).expect("is ours");
        if format == "a sparse index" {
            let left_out = "without files that this sparse checkout leaves out: `far/away/file`";
            sandbox.mu(&publish).fails().says(&[left_out, "git sparse-checkout add"]);
            git(&work, &["sparse-checkout", "add", "far"]);
        }
        sandbox.mu(&publish).ok();
        let commit = git(&work, &["rev-parse", "HEAD"]);
        let index = fs::read_to_string(sandbox.path("published/index/acme/web.jsonl"));
        let index = index.expect("was published");
        assert!(index.contains(commit.trim()), "{format}: {index}");
        assert!(!mark.exists(), "{format}: a program of the checkout ran");
    }
}

#[test]
fn a_checkout_that_nothing_can_read_is_no_reason_to_publish() {
    let sandbox = committed(&["--ref-format=reftable"], &[]);
    let to = sandbox.path("published").display().to_string();
    sandbox.mu(&["hub", "init", &to]).ok();
    let manifest = sandbox.read("Mu.yaml");
    sandbox.write("Mu.yaml", &format!("{manifest}description: x\nlicense: MIT\n"));
    sandbox.write(".git/index", "no index");
    let publish = ["publish", "--to", &to];
    sandbox.mu(&publish).fails().says(&["cannot tell whether", "`git` says: ", "--allow-dirty"]);
    sandbox.mu(&[&publish[..], &["--allow-dirty"]].concat()).ok();
}

#[test]
fn a_partial_clone_is_published_like_any_other() {
    let sandbox = committed(&[], REPOSITORY_FORMATS[3].2);
    let work = sandbox.path("work");
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 0.1.0\ndescription: x\nlicense: MIT\n");
    let to = sandbox.path("published").display().to_string();
    let publish = ["publish", "--to", &to];
    sandbox.mu(&["hub", "init", &to]).ok();
    sandbox.mu(&publish).fails().says(&["with changes that are not committed"]);
    git(&work, &["commit", "--all", "--quiet", "--message", "more"]);
    sandbox.mu(&publish).ok();
    let commit = git(&work, &["rev-parse", "HEAD"]);
    let index = fs::read_to_string(sandbox.path("published/index/acme/web.jsonl"));
    let index = index.expect("was published");
    assert!(index.contains(commit.trim()), "{index}");
}

#[test]
fn a_partial_clone_serves_what_its_origin_on_this_machine_has() {
    let sandbox = Sandbox::with_dependencies(&[]);
    let origin = Origin::new("whole.git");
    origin.commit(&[("Mu.yaml", "name: acme/x\nversion: 1.0.0\n"), ("a", "a")]);
    origin.git(&["tag", "v1.0.0"]);
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let partial = sandbox.path("partial.git");
    let made = Command::new("git")
        .args(["clone", "--quiet", "--bare", "--filter=blob:none"])
        .arg(format!("file://{}", origin.folder().display()))
        .arg(&partial)
        .status();
    assert!(made.expect("there is git").success());
    let reference = format!("git+file://{}#^1", partial.display());
    sandbox.mu(&["get", &reference]).ok();
    // Elsewhere, mu fetches for nobody's configuration.
    let elsewhere = "https://ada:hunter2@git.acme.example/whole.git";
    git(&partial, &["config", "remote.origin.url", elsewhere]);
    let cache = sandbox.path("cache");
    fs::remove_dir_all(&cache).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["is a partial clone, which lacks files", "git.acme.example/whole.git`"])
        .does_not_say(&["hunter2"]);
}

#[test]
fn an_edit_ends_in_a_clone_of_any_format_once_nothing_would_be_lost() {
    let mut sandbox = committed(&[], &[]);
    let origin = Origin::new("vpc.git");
    origin.commit(&[("Mu.yaml", "name: aws/vpc\nversion: 2.0.0\n"), ("far/a", "a")]);
    origin.git(&["tag", "v2.0.0"]);
    let url = format!("git+file://{}#^2", origin.folder().display());
    // The user's own settings say how clones are made.
    let config = sandbox.path("home/gitconfig").display().to_string();
    fs::write(&config, "[init]\n\tdefaultRefFormat = reftable\n").expect("is ours");
    sandbox.set("GIT_CONFIG_GLOBAL", &config);
    sandbox.mu(&["get", &url]).ok();
    let name = url.trim_end_matches("#^2");
    sandbox.mu(&["edit", name]).ok();
    let listed = sandbox.mu(&["edit", "--json"]).ok().json();
    let clone = sandbox.path("work").join(listed["edits"][0]["clone"].as_str().expect("is there"));
    assert!(clone.join(".git/reftable").is_dir(), "it has references in tables");
    git(&clone, &["sparse-checkout", "set", "--cone", "--sparse-index", "near"]);
    write(&clone, "more", "1");
    let refused = sandbox.mu(&["edit", "--done", name]).fails();
    refused.says(&["not tracked by Git: `more`"]);
    git(&clone, &["add", "more"]);
    git(&clone, &["commit", "--quiet", "--message", "more"]);
    let listed = sandbox.mu(&["edit", "--json"]).ok().json();
    let edit = &listed["edits"][0];
    assert_eq!((edit["ahead"].as_u64(), edit["changed"].as_u64()), (Some(1), Some(0)), "{edit}");
    assert!(edit["branch"].as_str().is_some_and(|branch| branch.starts_with("edit/")), "{edit}");
    sandbox.mu(&["edit", "--done", name]).fails().says(&["commits that no remote has: `", "more`"]);
    git(&clone, &["push", "--quiet", "origin", "HEAD"]);
    sandbox.mu(&["edit", "--done", name]).ok().says(&["`mu add 'git+"]);
}

#[test]
fn a_remote_with_sha256_leads_to_a_clone_as_a_folder() {
    let sandbox = Sandbox::new();
    let clone = sandbox.path("clone");
    fs::create_dir(&clone).expect("can be made");
    write(&clone, "Mu.yaml", "name: acme/new\nversion: 1.0.0\n");
    git(&clone, &["init", "--quiet", "--object-format=sha256"]);
    git(&clone, &["add", "--all"]);
    git(&clone, &["commit", "--quiet", "--message", "begin"]);
    let run = sandbox.mu(&["get", &format!("git+file://{}", clone.display())]).fails();
    run.says(&["by `sha256`", "`mu add ../CLONE`"]).does_not_say(&["mu doctor"]);
    sandbox.mu(&["get", "../clone"]).ok();
}
