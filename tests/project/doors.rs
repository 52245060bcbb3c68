//! The one door for what a checkout or a package names: files of mu that follow such names change the disk by `Folder` alone, which
//! takes an `InnerPath` and follows no link.

use super::tidy::{is_test, texts, without_tests};

/// Files that follow names of a checkout, a lock, a package or an image.
const FOLLOWERS: [&str; 7] = [
    "providers/git/src/surroundings.rs",
    "src/ops/vendor/",
    "src/ops/patch.rs",
    "src/ops/edit/",
    "src/ops/solve/patches.rs",
    "src/workspace/edits.rs",
    "providers/olm/src/",
];

/// Functions of the other door, which take whole paths and follow links on the way.
const BY_WHOLE_PATH: [&str; 15] = [
    "copy",
    "copy_atomic",
    "create_folder",
    "create_private_folder",
    "hard_link",
    "move_away",
    "remove_empty_folder",
    "remove_file",
    "remove_folder",
    "rename",
    "set_permissions",
    "symlink_file",
    "symlink_folder",
    "write_atomic",
    "write_private",
];

#[test]
fn what_follows_foreign_names_changes_nothing_by_a_whole_path() {
    let mut looked_at = 0;
    let mut wrong = Vec::new();
    for (path, text) in texts("rs") {
        if is_test(&path) || !FOLLOWERS.iter().any(|follower| path.starts_with(follower)) {
            continue;
        }
        looked_at += 1;
        for (number, line) in without_tests(&text).lines().enumerate() {
            let calls = |name: &&&str| {
                [format!("fs::{name}("), format!("fs::{name})"), format!("fs::{name},")]
                    .iter()
                    .any(|call| line.contains(call))
            };
            if let Some(name) = BY_WHOLE_PATH.iter().find(calls) {
                wrong.push(format!("{path}:{}: `fs::{name}`", number + 1));
            }
        }
    }
    assert!(looked_at >= 10, "only {looked_at} files: have they moved?");
    assert_eq!(wrong, [""; 0], "use `Folder`, with an `InnerPath`");
}

#[test]
fn no_function_of_the_door_takes_a_text_for_a_path() {
    let path = "providers/api/src/tree/folder/inside.rs";
    let text = super::read(path);
    let public = without_tests(&text).split("pub fn ").skip(1);
    let mut found = 0;
    for signature in public.map(|text| text.split(" {\n").next().unwrap_or_default()) {
        found += 1;
        let name = signature.split('(').next().unwrap_or_default();
        // Where a folder itself is, its user says.
        let is_text = signature.contains("&str")
            || signature.contains("Path>")
            || signature.contains("&Path");
        assert!(!is_text || name == "at", "{path}: {signature}");
    }
    assert!(found > 10, "only {found} functions");
}
