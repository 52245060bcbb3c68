//! Repositories on this machine in formats that libgit2 does not read: what is found in them is the same as in one that it reads.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use mu_provider::{Commit, Programs};
use mu_provider_git::{Kind, LocalGit};
use mu_testing::git::{REPOSITORY_FORMATS, variables};
use tempfile::TempDir;

use crate::support::git;

/// A clone, its origin, and what reads it.
struct Work {
    folder: TempDir,
    clone: PathBuf,
    base: Commit,
    local: LocalGit,
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("is below")).expect("can be made");
    fs::write(path, text).expect("can be written");
}

impl Work {
    fn new(init: &[&str], after: &[&[&str]]) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let clone = folder.path().join("clone");
        fs::create_dir(&clone).expect("can be made");
        git(&clone, &[&["init", "--quiet", "--initial-branch=main"], init].concat());
        for (path, text) in [
            ("a", "1"),
            ("b", "1"),
            ("lib/c", "1"),
            ("assumed/d", "1"),
            ("far/away", "1"),
            (".gitignore", "*.log\n/ignored/\n"),
            ("run", "1"),
        ] {
            write(&clone, path, text);
        }
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(clone.join("run"), executable).expect("is ours");
        git(&clone, &["add", "--all"]);
        git(&clone, &["commit", "--quiet", "--message", "begin"]);
        let origin = folder.path().join("origin.git");
        let format = init.iter().filter(|option| option.starts_with("--object-format"));
        let format: Vec<&str> = format.copied().collect();
        let path = origin.to_str().expect("is UTF-8");
        git(folder.path(), &[&["init", "--quiet", "--bare", path], &format[..]].concat());
        git(&clone, &["remote", "add", "origin", path]);
        git(&clone, &["push", "--quiet", "--set-upstream", "origin", "main"]);
        let base = git(&clone, &["rev-parse", "HEAD"]).trim().parse().expect("is a commit");
        for arguments in after {
            git(&clone, arguments);
        }
        let programs = Programs::new(&Arc::new(variables(folder.path())), Vec::new);
        let local = LocalGit::new(&programs, &folder.path().join("own"));
        Self { folder, clone, base, local }
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.clone, arguments)
    }

    /// What would be lost, where the origin has these commits.
    fn unsaved(&self, tips: &[&Commit]) -> Vec<(Kind, String, Vec<String>)> {
        let tips = |_: &str| Ok(tips.iter().map(|tip| (*tip).clone()).collect());
        let own = |path: &str| path == "own.log";
        let found = self.local.unsaved(&self.clone, Some(&self.base), &own, &tips);
        let mut found: Vec<_> = found
            .expect("can be read")
            .into_iter()
            .map(|one| {
                let mut names = one.names;
                if one.kind == Kind::Commits {
                    // Their names differ by the format.
                    names.iter_mut().for_each(|name| drop(name.drain(..8)));
                }
                names.sort();
                (one.kind, one.inside, names)
            })
            // What is in a submodule is told of that; libgit2 tells that something is, too.
            .filter(|(_, inside, names)| !inside.is_empty() || *names != ["lib/inner"])
            .collect();
        found.sort();
        found
    }
}

#[test]
fn nothing_is_lost_in_any_format() {
    let mut usual = Vec::new();
    for (format, init, after) in REPOSITORY_FORMATS {
        let work = Work::new(init, after);
        assert_eq!(work.unsaved(&[]), [], "{format}: nothing was done");
        let state = work.local.work_state(&work.clone).expect("can be read");
        assert_eq!((state.branch.as_deref(), state.changed), (Some("main"), 0), "{format}");
        assert_eq!(state.head.as_ref(), Some(&work.base), "{format}");
        let pushed = work.local.pushed_to(&work.clone).expect("can be read");
        let pushed = pushed.expect("is pushed");
        assert_eq!((&*pushed.branch, pushed.url.ends_with("/origin.git")), ("main", true));
        let around = work.folder.path();
        let ahead = |base: Option<&Commit>| {
            work.local.commits_ahead(around, &work.clone, base).expect("can be read")
        };
        assert_eq!([ahead(Some(&work.base)), ahead(None)], [Some(0); 2], "{format}");
        // A commit, a commit that only HEAD has led to, and a stash.
        write(&work.clone, "a", "2");
        work.git(&["commit", "--all", "--quiet", "--message", "second"]);
        write(&work.clone, "a", "3");
        work.git(&["commit", "--all", "--quiet", "--message", "undone"]);
        work.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
        write(&work.clone, "b", "stashed");
        work.git(&["stash", "push", "--quiet", "--message", "for later"]);
        write(&work.clone, "b", "2");
        work.git(&["add", "b"]);
        write(&work.clone, "b", "3");
        write(&work.clone, "lib/new", "1");
        write(&work.clone, "own.log", "1");
        write(&work.clone, "lib/mine.log", "1");
        write(&work.clone, "ignored/file", "1");
        work.git(&["update-index", "--assume-unchanged", "assumed/d"]);
        write(&work.clone, "assumed/d", "2");
        work.git(&["branch", "--quiet", "other", "HEAD~1"]);
        write(&work.clone, ".git/MERGE_HEAD", &work.git(&["rev-parse", "HEAD"]));
        let found = work.unsaved(&[]);
        assert_eq!([ahead(Some(&work.base)), ahead(None)], [Some(1); 2], "{format}");
        let state = work.local.work_state(&work.clone).expect("can be read");
        assert_eq!((state.changed, state.head == Some(work.base.clone())), (2, false), "{format}");
        // What the origin has is not lost.
        let second: Commit = work.git(&["rev-parse", "HEAD"]).trim().parse().expect("is one");
        let commits = |found: &[(Kind, String, Vec<String>)]| {
            let of = found.iter().filter(|(kind, ..)| *kind == Kind::Commits);
            of.flat_map(|(_, _, names)| names.clone()).collect::<Vec<_>>()
        };
        assert_eq!(commits(&found), ["second", "undone"], "{format}");
        assert_eq!(commits(&work.unsaved(&[&second])), ["undone"], "{format}");
        let kinds: Vec<Kind> = found.iter().map(|(kind, ..)| *kind).collect();
        let expected = [
            Kind::Staged,
            Kind::Changed,
            Kind::Untracked,
            Kind::Ignored,
            Kind::Stashed,
            Kind::UnderWay,
            Kind::Commits,
        ];
        assert_eq!(kinds, expected, "{format}: {found:?}");
        if usual.is_empty() {
            usual = found;
        } else {
            assert_eq!(found, usual, "{format}");
        }
    }
}

#[test]
fn a_change_in_the_very_second_of_the_index_is_found_in_any_format() {
    for (format, init, after) in REPOSITORY_FORMATS {
        let work = Work::new(init, after);
        let (file, index) = (work.clone.join("a"), work.clone.join(".git/index"));
        let of = |path: &Path| fs::metadata(path).expect("is there");
        // The text changes and nothing else that the index knows: neither the length nor one of the two times, of which Git compares
        // the seconds. The second may end between the two texts; then once more.
        let long_ago = UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        let put = |text: &str| {
            fs::write(&file, text).expect("can be written");
            let file = fs::File::options().write(true).open(&file).expect("is there");
            file.set_modified(long_ago).expect("is ours");
        };
        loop {
            put("1");
            let before = of(&file).ctime();
            work.git(&["update-index", "--refresh"]);
            put("2");
            if of(&file).ctime() == before {
                break;
            }
        }
        let written = fs::File::options().write(true).open(&index).expect("is there");
        written.set_modified(long_ago).expect("is ours");
        let expected = [(Kind::Changed, String::new(), vec!["a".to_owned()])];
        assert_eq!(work.unsaved(&[&work.base]), expected, "{format}");
        assert_eq!(work.local.work_state(&work.clone).expect("can be read").changed, 1, "{format}");
    }
}

#[test]
fn worktrees_and_submodules_are_looked_into_in_any_format() {
    for (format, init, after) in REPOSITORY_FORMATS {
        let (work, inner) = (Work::new(init, after), Work::new(init, &[]));
        let path = inner.clone.to_str().expect("is UTF-8");
        let allowed =
            ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", path, "lib/inner"];
        work.git(&allowed);
        work.git(&["commit", "--all", "--quiet", "--message", "with a submodule"]);
        let tip: Commit = work.git(&["rev-parse", "HEAD"]).trim().parse().expect("is one");
        let tips = [&tip, &inner.base];
        assert_eq!(work.unsaved(&tips), [], "{format}");
        write(&work.clone, "lib/inner/a", "2");
        let tree = work.folder.path().join("tree");
        work.git(&["worktree", "add", "--quiet", tree.to_str().expect("is UTF-8")]);
        let found = work.unsaved(&tips);
        let expected = [
            (Kind::Changed, "lib/inner".to_owned(), vec!["a".to_owned()]),
            (Kind::Worktree, String::new(), vec!["tree".to_owned()]),
        ];
        assert_eq!(found, expected, "{format}");
        // What was committed in a submodule whose files are gone is there all the same.
        let inside = work.clone.join("lib/inner");
        git(&inside, &["commit", "--all", "--quiet", "--message", "inside"]);
        work.git(&["submodule", "--quiet", "deinit", "--force", "lib/inner"]);
        let found = work.unsaved(&tips);
        let commits: Vec<_> = found.iter().filter(|(kind, ..)| *kind == Kind::Commits).collect();
        let [(_, place, names)] = commits[..] else { panic!("{format}: {found:?}") };
        assert_eq!((place.as_str(), &names[..]), ("lib/inner", &["inside".to_owned()][..]));
    }
}

#[test]
fn recorded_modes_are_found_in_any_format() {
    for (format, init, after) in REPOSITORY_FORMATS {
        let work = Work::new(init, after);
        let modes = || work.local.recorded_modes(&work.clone.join("lib")).expect("can be read");
        assert_eq!(modes(), None, "{format}: the file system tells");
        work.git(&["config", "core.fileMode", "false"]);
        let root = work.clone.canonicalize().expect("is there");
        let modes = modes().unwrap_or_else(|| panic!("{format}: Git has them"));
        let of = |path: &str| modes.get(&root.join(path)).copied();
        assert_eq!(
            [of("run"), of("lib/c"), of("new")],
            [Some(true), Some(false), None],
            "{format}"
        );
    }
}

#[test]
fn a_clone_that_nothing_can_read_is_no_clone_without_work() {
    for (format, init, after) in REPOSITORY_FORMATS {
        let work = Work::new(init, after);
        fs::write(work.clone.join(".git/index"), "no index").expect("is ours");
        let tips = |_: &str| Ok(Vec::new());
        let error = work.local.unsaved(&work.clone, None, &|_| false, &tips);
        let error = error.expect_err("cannot be read").to_string();
        assert!(error.starts_with("cannot read the Git repository"), "{format}: {error}");
    }
    // Without `git`, what libgit2 cannot read stays unread.
    let work = Work::new(REPOSITORY_FORMATS[1].1, REPOSITORY_FORMATS[1].2);
    let none =
        Programs::new(&Arc::new([("PATH".to_owned(), "/nowhere".to_owned())].into()), Vec::new);
    let local = LocalGit::new(&none, &work.folder.path().join("own"));
    assert!(local.work_state(&work.clone).is_err());
}
