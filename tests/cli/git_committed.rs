//! What `mu publish` sends is what the commit has that it names: nothing else, and all of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::git::{Origin, REPOSITORY_FORMATS, git};
use crate::support::{Sandbox, write};

const MANIFEST: &str = "name: acme/site\nversion: 1.0.0\ndescription: x\nlicense: MIT\n";

/// A committed package in `work`, in a repository of a format, and a hub.
fn package(init: &[&str], after: &[&[&str]]) -> Sandbox {
    let sandbox = Sandbox::new();
    let work = sandbox.path("work");
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.write("Mu.yaml", MANIFEST);
    for file in ["a", "lib/b"] {
        sandbox.write(file, "1");
    }
    git(&work, &[&["init", "--quiet", "--initial-branch=main"], init].concat());
    commit(&work);
    for arguments in after {
        git(&work, arguments);
    }
    sandbox.mu(&["hub", "init", &sandbox.path("published").display().to_string()]).ok();
    sandbox
}

fn commit(folder: &Path) {
    git(folder, &["add", "--all"]);
    git(folder, &["commit", "--quiet", "--message", "more"]);
}

/// What publishing the package says is not committed; nothing if it would be published.
fn refused(sandbox: &Sandbox) -> Option<String> {
    let to = sandbox.path("published").display().to_string();
    let run = sandbox.mu(&["publish", "--dry-run", "--to", &to]);
    let said = "would be published with changes that are not committed: ";
    let line = run.stderr.lines().find_map(|line| line.split_once(said));
    match line {
        Some((_, files)) => Some(files.to_owned()),
        None => {
            run.ok();
            None
        }
    }
}

#[test]
fn what_the_commit_does_not_have_is_not_published() {
    type Change = fn(&Path);
    let changes: [(Change, &str); 6] = [
        (|work| fs::remove_file(work.join("lib/b")).expect("is there"), "`lib/b`"),
        (
            |work| {
                git(work, &["update-index", "--assume-unchanged", "a"]);
                write(work, "a", "changed");
            },
            "`a`",
        ),
        (
            |work| {
                git(work, &["update-index", "--skip-worktree", "a"]);
                write(work, "a", "changed");
            },
            "`a`",
        ),
        (
            |work| {
                write(work, ".git/info/exclude", "/notes\n");
                write(work, "notes", "mine");
            },
            "`notes`",
        ),
        (
            |work| {
                let mine = work.join(".git/mine").display().to_string();
                git(work, &["config", "core.excludesFile", &mine]);
                write(work, ".git/mine", "notes\n");
                write(work, "notes", "mine");
            },
            "`notes`",
        ),
        (
            |work| {
                git(work, &["init", "--quiet", "inner"]);
                write(work, "inner/file", "of another repository");
                commit(&work.join("inner"));
            },
            "`inner/file`",
        ),
    ];
    for (format, init, after) in REPOSITORY_FORMATS {
        for (number, (change, files)) in changes.into_iter().enumerate() {
            let sandbox = package(init, after);
            change(&sandbox.path("work"));
            assert_eq!(refused(&sandbox).as_deref(), Some(files), "{format}, {number}");
        }
    }
}

#[test]
fn a_skipped_file_that_is_gone_is_not_published_without() {
    let sandbox = package(&[], &[]);
    let work = sandbox.path("work");
    git(&work, &["update-index", "--skip-worktree", "a"]);
    fs::remove_file(work.join("a")).expect("is there");
    assert_eq!(refused(&sandbox).as_deref(), Some("`a`"));
}

#[test]
fn what_is_meant_to_differ_from_the_commit_is_published() {
    // A file that is not packed anyway.
    let sandbox = package(&[], &[]);
    let work = sandbox.path("work");
    sandbox.write(".muignore", "/a\n");
    commit(&work);
    fs::remove_file(work.join("a")).expect("is there");
    assert_eq!(refused(&sandbox), None);
    // What is built.
    sandbox.write(".gitignore", "/dist/\n");
    sandbox.write(".muignore", "!/dist/\n/a\n");
    commit(&work);
    sandbox.write("dist/program", "built");
    assert_eq!(refused(&sandbox), None);
    // Line ends that a rule of the repository turns.
    sandbox.write(".gitattributes", "*.bat text eol=crlf\n");
    sandbox.write("x.bat", "a\r\nb\r\n");
    commit(&work);
    assert_eq!(refused(&sandbox), None);
}

#[test]
fn a_fresh_clone_is_published_with_what_a_filter_has_made_of_a_file() {
    let sandbox = package(&[], &[]);
    let work = sandbox.path("work");
    let filter = |folder: &Path| {
        git(folder, &["config", "filter.upper.clean", "tr A-Z a-z"]);
        git(folder, &["config", "filter.upper.smudge", "tr a-z A-Z"]);
    };
    filter(&work);
    sandbox.write(".gitattributes", "*.bin filter=upper\n");
    sandbox.write("x.bin", "HELLO");
    commit(&work);
    fs::remove_file(work.join("x.bin")).expect("is there");
    git(&work, &["checkout", "--", "x.bin"]);
    assert_eq!(sandbox.read("x.bin"), "HELLO");
    assert_eq!(refused(&sandbox), None);
    sandbox.write("x.bin", "OTHER TEXT");
    assert_eq!(refused(&sandbox).as_deref(), Some("`x.bin`"));
}

#[test]
fn what_links_lead_to_is_in_the_commit_too() {
    let sandbox = Sandbox::new();
    let team = sandbox.path("team");
    write(&team, "LICENSE", "free");
    write(&team, "shared/text", "1");
    write(&team, "site/.mu/workspace.yaml", "");
    write(&team, "site/Mu.yaml", MANIFEST);
    symlink("../LICENSE", team.join("site/LICENSE")).expect("can be made");
    symlink("../shared", team.join("site/shared")).expect("can be made");
    git(&team, &["init", "--quiet", "--initial-branch=main"]);
    commit(&team);
    let to = sandbox.path("published").display().to_string();
    sandbox.mu(&["hub", "init", &to]).ok();
    let publish = ["publish", "--dry-run", "--to", &to];
    sandbox.mu_in("team/site", &publish).ok().says(&["LICENSE", "shared/text"]);
    write(&team, "LICENSE", "costly");
    sandbox.mu_in("team/site", &publish).fails().says(&["not committed: `LICENSE`"]);
    commit(&team);
    write(&team, "shared/more", "untracked");
    sandbox.mu_in("team/site", &publish).fails().says(&["not committed: `shared/more`"]);
}

#[test]
fn a_submodule_is_published_as_the_commit_has_it() {
    let sandbox = package(&[], &[]);
    let (work, origin) = (sandbox.path("work"), Origin::new("part"));
    origin.commit(&[("file", "1"), ("other", "2")]);
    let url = origin.folder().display().to_string();
    git(&work, &["submodule", "--quiet", "add", &url, "part"]);
    commit(&work);
    assert_eq!(refused(&sandbox), None);
    sandbox.write("part/file", "changed");
    assert_eq!(refused(&sandbox).as_deref(), Some("`part/file`"));
    commit(&work.join("part"));
    assert_eq!(refused(&sandbox).as_deref(), Some("`part`"));
    commit(&work);
    assert_eq!(refused(&sandbox), None);
    sandbox.write("part/new", "untracked");
    assert_eq!(refused(&sandbox).as_deref(), Some("`part/new`"));
    fs::remove_file(work.join("part/new")).expect("is there");
    fs::remove_file(work.join("part/other")).expect("is there");
    assert_eq!(refused(&sandbox).as_deref(), Some("`part/other`"));
    git(&work.join("part"), &["checkout", "--quiet", "--", "other"]);
    // As in a fresh clone.
    git(&work, &["submodule", "--quiet", "deinit", "--force", "part"]);
    let to = sandbox.path("published").display().to_string();
    let publish = ["publish", "--to", &to];
    let said = "without the files of a submodule that is not checked out: `part`";
    sandbox.mu(&publish).fails().says(&[said, "`git submodule update --init part`"]);
    git(&work, &["submodule", "--quiet", "update", "--init", "part"]);
    sandbox.mu(&publish).ok();
    let index = fs::read_to_string(sandbox.path("published/index/acme/site.jsonl"));
    let commit = git(&work, &["rev-parse", "HEAD"]);
    assert!(index.expect("was published").contains(commit.trim()));
}

#[test]
fn a_linked_git_folder_belongs_to_where_the_link_is() {
    let sandbox = package(&[], &[]);
    let work = sandbox.path("work");
    let real = sandbox.path("elsewhere/real");
    fs::create_dir_all(sandbox.path("elsewhere")).expect("can be made");
    fs::rename(work.join(".git"), &real).expect("can be moved");
    symlink(&real, work.join(".git")).expect("can be made");
    assert_eq!(refused(&sandbox), None);
    sandbox.write("a", "changed");
    assert_eq!(refused(&sandbox).as_deref(), Some("`a`"));
    sandbox.mu(&["affected", "--since", "HEAD"]).ok().says(&["acme/site"]);
    // What Git would record is packed there, too.
    git(&work, &["config", "core.autocrlf", "true"]);
    sandbox.write("lines", "a\r\nb\r\n");
    commit(&work);
    let to = sandbox.path("published").display().to_string();
    sandbox.mu(&["publish", "--dry-run", "--to", &to]).ok().says(&["lines    4 B"]);
}
