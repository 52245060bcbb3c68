//! What a patch may do, and what is said when it does not fit.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mu_provider::{Mode, ProviderError};

use super::{Draft, PatchError, PatchFile, Patched, apply};

type Files = BTreeMap<String, PatchFile>;

fn files(files: &[(&str, Mode, &str)]) -> Files {
    let one = |(path, mode, content): &(&str, Mode, &str)| {
        ((*path).to_owned(), (*mode, content.as_bytes().to_owned()))
    };
    files.iter().map(one).collect()
}

fn applied(patch: &[u8], files: &Files) -> Result<Vec<Patched>, PatchError> {
    apply(patch, &|path| Ok::<_, ProviderError>(files.get(path).cloned()))
}

fn patched(patch: &[u8], files: &Files) -> Files {
    let mut after = files.clone();
    for (path, file) in applied(patch, files).expect("applies") {
        match file {
            Some(file) => after.insert(path, file),
            None => after.remove(&path),
        };
    }
    after
}

fn write(folder: &Path, files: &Files) {
    for (path, (mode, content)) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("has one")).expect("creates");
        let _ = fs::remove_file(&path);
        match mode {
            #[cfg(unix)]
            Mode::Symlink => {
                let target = std::str::from_utf8(content).expect("is text");
                std::os::unix::fs::symlink(target, &path).expect("links");
            }
            _ => fs::write(&path, content).expect("writes"),
        }
        #[cfg(unix)]
        if *mode == Mode::Executable {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("can be set");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_was_changed_in_a_working_copy_can_be_applied() {
    let before = files(&[
        ("Mu.yaml", Mode::File, "name: a/b\n"),
        ("run", Mode::Executable, "#!/bin/sh\necho old\n"),
        ("lib/deep/x.txt", Mode::File, "one\r\ntwo\r\nthree"),
        ("lib/gone", Mode::File, "gone\n"),
        ("latest", Mode::Symlink, "lib"),
        ("picture", Mode::File, "\0\u{1}\u{2} binary \0"),
        (".gitignore", Mode::File, "*.log\nkept.log\n"),
        ("kept.log", Mode::File, "came with it\n"),
        (".gitattributes", Mode::File, "* text=auto eol=lf\n"),
        ("a b/my file.txt", Mode::File, "one\n"),
        ("a b/my run", Mode::File, "#!/bin/sh\n"),
        ("a b/my picture", Mode::File, "\0 old"),
        ("a b/old name", Mode::File, "gone\n"),
    ]);
    let mut after = before.clone();
    after.extend(files(&[
        ("run", Mode::Executable, "#!/bin/sh\necho new\n"),
        ("lib/deep/x.txt", Mode::Executable, "one\r\ntwo and a half\r\nthree"),
        ("latest", Mode::Symlink, "lib/deep"),
        ("picture", Mode::File, "\0\u{1}\u{3} other \0"),
        ("kept.log", Mode::File, "changed\n"),
        ("new/file", Mode::File, "new\n"),
        ("a b/my file.txt", Mode::File, "two\n"),
        ("a b/my run", Mode::Executable, "#!/bin/sh\n"),
        ("a b/my picture", Mode::File, "\0 new"),
        ("a b/new file", Mode::File, "new\n"),
        ("a b/empty file", Mode::File, ""),
    ]));
    after.remove("lib/gone");
    after.remove("a b/old name");
    let folder = tempfile::tempdir().expect("creates");
    write(folder.path(), &before);
    Draft::create(folder.path(), "a/b 1.0.0").expect("creates");
    let draft = Draft::open(folder.path()).expect("opens");
    assert_eq!(draft.message().expect("has one"), "a/b 1.0.0");
    assert_eq!(draft.patch().expect("compares"), (Vec::new(), Vec::new()));
    write(folder.path(), &after);
    fs::remove_file(folder.path().join("lib/gone")).expect("removes");
    fs::remove_file(folder.path().join("a b/old name")).expect("removes");
    fs::write(folder.path().join("noise.log"), "ignored").expect("writes");
    let (patch, left_out) = draft.patch().expect("compares");
    assert_eq!(patched(&patch, &before), after, "{}", String::from_utf8_lossy(&patch));
    assert_eq!(left_out, ["noise.log"]);
    // To apply it once more does not fit, and does not pass for success.
    let twice = applied(&patch, &after);
    assert!(
        matches!(
            twice,
            Err(PatchError::Exists(_) | PatchError::Missing(_) | PatchError::Rejected { .. })
        ),
        "{twice:?}"
    );
}

#[test]
fn names_with_spaces_are_what_git_writes_without_quotes() {
    let before = files(&[("x b/x", Mode::File, "one\n"), ("an old name", Mode::File, "kept\n")]);
    let patch =
        b"diff --git a/x b/x b/x b/x\n--- a/x b/x\t\n+++ b/x b/x\t\n@@ -1 +1 @@\n-one\n+two\n\
        diff --git a/an old name b/the new name\nsimilarity index 100%\n\
        rename from an old name\nrename to the new name\n";
    let after = files(&[("x b/x", Mode::File, "two\n"), ("the new name", Mode::File, "kept\n")]);
    assert_eq!(patched(patch, &before), after);
    // What does not apply is named, also if it is new.
    let new = b"diff --git a/a new one b/a new one\nnew file mode 100644\n--- /dev/null\n\
        +++ b/a new one\n@@ -1 +1 @@\n-one\n+two\n";
    let error = applied(new, &before).expect_err("has nothing to take away");
    assert!(error.to_string().contains("`a new one`"), "{error}");
}

#[test]
fn a_folder_that_is_no_working_copy_is_refused() {
    let folder = tempfile::tempdir().expect("creates");
    let opened = Draft::open(folder.path());
    assert!(matches!(opened, Err(super::DraftError::Not(_))), "{opened:?}");
}

#[test]
fn a_patch_that_does_not_fit_names_the_place() {
    let before = files(&[("a.txt", Mode::File, "one\ntwo\nthree\n")]);
    let patch = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-zwei\n+2\n three\n";
    let result = applied(patch.as_bytes(), &before);
    let Err(PatchError::Rejected { path, reason }) = result else { panic!("{result:?}") };
    assert_eq!((path.as_str(), reason.as_str()), ("a.txt", "hunk at line 1 did not apply"));
    let shifted = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -2,3 +2,3 @@\n one\n-two\n+2\n three\n";
    assert!(matches!(applied(shifted.as_bytes(), &before), Err(PatchError::Rejected { .. })));
    let missing = patch.replace("a.txt", "b.txt");
    let missing = applied(missing.as_bytes(), &before);
    assert!(matches!(&missing, Err(PatchError::Missing(path)) if path == "b.txt"), "{missing:?}");
}

#[test]
fn a_mode_that_a_patch_does_not_name_stays() {
    let before = files(&[("run", Mode::Executable, "old\n")]);
    let patch = "diff --git a/run b/run\n--- a/run\n+++ b/run\n@@ -1 +1 @@\n-old\n+new\n";
    let after = patched(patch.as_bytes(), &before);
    assert_eq!(after["run"], (Mode::Executable, b"new\n".to_vec()));
}

#[test]
fn a_patch_that_changes_nothing_is_refused() {
    let before = files(&[("a.txt", Mode::File, "same\n")]);
    let same = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-same\n+same\n";
    let result = applied(same.as_bytes(), &before);
    assert!(matches!(result, Err(PatchError::Empty)), "{result:?}");
    for nothing in ["", "\n", "no patch at all\n"] {
        let result = applied(nothing.as_bytes(), &before);
        assert!(matches!(result, Err(PatchError::Unreadable(_) | PatchError::Empty)), "{result:?}");
    }
}

#[test]
fn a_patch_cannot_leave_the_package() {
    for path in ["../x", "a/../../x", "a\\x"] {
        let patch = format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
        );
        let result = applied(patch.as_bytes(), &Files::new());
        assert!(
            matches!(result, Err(PatchError::Outside(_) | PatchError::Unreadable(_))),
            "{path}: {result:?}"
        );
    }
}
