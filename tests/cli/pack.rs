//! `mu pack`: which files are packed, that only the files determine the bytes, and that others can read it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::{Package, Sandbox, digest_of, hex, tree, write};

/// The files of an archive, unpacked by the system's own tar.
fn unpacked(archive: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room");
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(folder.path());
    assert!(tar.status().expect("there is a tar").success());
    folder
}

/// A package's files, written in this order under this umask into `folder`.
fn write_tree(folder: &Path, umask: &str, reversed: bool) {
    let mut steps = [
        "printf 'name: acme/tree\\nversion: 1.0.0\\n' > Mu.yaml",
        "mkdir bin; printf '#!/bin/sh\\n' > bin/run; chmod u+x bin/run",
        "mkdir -p a/b/c; printf deep > a/b/c/file",
        "printf dash > a-b; printf dot > a.b",
        "ln -s bin/run link",
        "printf '*.log\\n' > .gitignore; printf x > noise.log",
    ];
    if reversed {
        steps.reverse();
    }
    let script = format!("umask {umask}; {}", steps.join("; "));
    let status = Command::new("sh").args(["-ec", &script]).current_dir(folder).status();
    assert!(status.expect("there is a shell").success());
}

#[test]
fn the_same_files_make_the_same_bytes_anywhere() {
    let mut archives = Vec::new();
    // A disk, and memory: two file systems that list folders in different orders.
    for (place, umask, reversed) in
        [("/tmp", "022", false), ("/dev/shm", "077", true), ("/tmp", "027", true)]
    {
        let sandbox = Sandbox::new();
        let folder = tempfile::tempdir_in(place).expect("there is room");
        fs::create_dir(folder.path().join(".mu")).expect("can be made");
        write(folder.path(), ".mu/workspace.yaml", "");
        write_tree(folder.path(), umask, reversed);
        let mut command = sandbox.command(&["pack", "--json"]);
        command.current_dir(folder.path());
        let packed = sandbox.run(&["pack"], command).ok().json();
        let archive = fs::read(folder.path().join("tree-1.0.0.tgz")).expect("was written");
        assert_eq!(packed["archive"], format!("sha256:{}", hex(&archive)));
        assert_eq!(packed["size"], archive.len());
        let out = unpacked(&folder.path().join("tree-1.0.0.tgz"));
        assert_eq!(packed["digest"], digest_of(out.path()));
        let paths: Vec<String> = tree(out.path()).into_keys().collect();
        assert_eq!(paths, [".gitignore", "Mu.yaml", "a-b", "a.b", "a/b/c/file", "bin/run", "link"]);
        archives.push(archive);
    }
    assert!(archives.iter().all(|archive| *archive == archives[0]));
}

#[test]
fn what_was_packed_is_what_a_hub_hands_out() {
    let sandbox = Sandbox::with_dependencies(&["acme/tree"]);
    sandbox.write("tree/Mu.yaml", "name: acme/tree\nversion: 1.0.0\n");
    sandbox.write("tree/run.sh*", "#!/bin/sh\n");
    sandbox.write("tree/deep/er/file.txt", "text");
    sandbox.write("tree/ünï.txt", "ü");
    sandbox.write("tree/link", "-> deep/er/file.txt");
    let deep = format!("tree/{}/end", vec!["folder"; 40].join("/"));
    sandbox.write(&deep, "a path that needs more than tar's own fields");
    let run =
        sandbox.mu(&["pack", "tree", "--json", "-o", "../hub/packs/acme/tree/tree-1.0.0.tgz"]);
    let packed = run.ok().json();
    let line = json!({
        "name": "acme/tree", "version": "1.0.0",
        "archive": packed["archive"], "size": packed["size"], "digest": packed["digest"],
    });
    write(&sandbox.path("hub"), "index/acme/tree.jsonl", format!("{line}\n"));
    fs::rename(sandbox.path("work/tree"), sandbox.path("tree")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["digest"], packed["digest"]);
    assert_eq!(packed["digest"], digest_of(&sandbox.path("tree")));
    let pack = sandbox.path("work/.mu/packs/hub.mu.com/acme/tree");
    assert_eq!(tree(&pack), tree(&sandbox.path("tree")));
}

/// The paths that would be packed.
fn listed(sandbox: &Sandbox) -> Vec<String> {
    let packed = sandbox.mu(&["pack", "--list", "--json"]).ok().json();
    let files = packed["files"].as_array().expect("is a list").clone();
    files.iter().map(|file| file["path"].as_str().expect("is text").to_owned()).collect()
}

#[test]
fn an_archive_of_the_package_is_not_packed_again_whatever_it_is_called() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.write("readme.txt", "hello");
    let all = ["Mu.yaml", "readme.txt"];
    fs::create_dir(sandbox.path("work/out")).expect("is new");
    for name in ["p.tgz", "out/p.tgz", "out/p.data"] {
        sandbox.mu(&["pack", "-o", name]).ok();
        assert_eq!(listed(&sandbox), all, "{name}");
    }
    // Also one of another version.
    let manifest = sandbox.read("Mu.yaml");
    sandbox.write("Mu.yaml", &manifest.replace("0.1.0", "0.2.0"));
    assert_eq!(listed(&sandbox), all);
    sandbox.mu(&["hub", "init", "../published"]).ok();
    sandbox.mu(&["publish", "--to", "../published"]).ok();
    let archive = sandbox.path("published/packs/acme/web/web-0.2.0.tgz");
    assert!(!unpacked(&archive).path().join("p.tgz").exists());
    // Those of others, and what only looks like an archive, are packed.
    sandbox.write("out/damaged.tgz", "\u{1f}no archive");
    sandbox.write("Mu.yaml", &manifest.replace("acme/web", "acme/other"));
    let others = ["Mu.yaml", "out/damaged.tgz", "out/p.data", "out/p.tgz", "p.tgz", "readme.txt"];
    assert_eq!(listed(&sandbox), others);
}

#[test]
fn what_editors_and_systems_leave_behind_is_not_packed() {
    let sandbox = Sandbox::with_dependencies(&[]);
    let left = [
        "a.txt~",
        ".#a.txt",
        "#a.txt#",
        ".a.txt.swp",
        "._a.txt",
        "a.txt.orig",
        "a.txt.bak",
        "Thumbs.db",
        "desktop.ini",
        ".DS_Store",
    ];
    for name in ["a.txt"].into_iter().chain(left) {
        sandbox.write(name, "");
        sandbox.write(&format!("deep/{name}"), "");
    }
    // Emacs says who has a file open with a link that leads nowhere.
    sandbox.write(".#b.txt", "-> ann@laptop.4711:1");
    assert_eq!(listed(&sandbox), ["Mu.yaml", "a.txt", "deep/a.txt"]);
    sandbox.write("deep/.muignore", "!*.bak\n");
    assert_eq!(
        listed(&sandbox),
        ["Mu.yaml", "a.txt", "deep/.muignore", "deep/a.txt", "deep/a.txt.bak"]
    );
}

#[test]
fn files_and_ignore_files_choose() {
    let sandbox = Sandbox::with_dependencies(&[]);
    let manifest = sandbox.read("Mu.yaml");
    for path in ["src/a.txt", "src/b.log", "dist/made.js", "docs/x.md", ".git/HEAD", "README.md"] {
        sandbox.write(path, path);
    }
    sandbox.write(".gitignore", "*.log\ndist/\n");
    sandbox.write("web-0.1.0.tgz", "an earlier archive");
    let all = [".gitignore", "Mu.yaml", "README.md", "docs/x.md", "src/a.txt"];
    assert_eq!(listed(&sandbox), all);
    sandbox.write(".muignore", "!dist/\ndocs\n.muignore\n");
    let with_dist = [".gitignore", "Mu.yaml", "README.md", "dist/made.js", "src/a.txt"];
    assert_eq!(listed(&sandbox), with_dist);
    sandbox.write("Mu.yaml", &format!("{manifest}readme: README.md\nfiles: [src, \"!src/a*\"]\n"));
    sandbox.write("src/c/d.txt", "");
    assert_eq!(listed(&sandbox), ["Mu.yaml", "README.md", "src/c/d.txt"]);
    sandbox.write("Mu.yaml", &format!("{manifest}files: [source]\nreadme: HELLO.md\n"));
    let run = sandbox.mu(&["pack", "--list"]).ok();
    run.says(&[
        "`source` in `files` matches nothing",
        "there is no file `HELLO.md`, which `readme` names",
    ]);
    assert!(!sandbox.has("work/web-0.1.1.tgz"));
}

#[test]
fn secrets_stay_here_unless_they_are_forced_out() {
    let sandbox = Sandbox::with_dependencies(&[]);
    for path in [".env", "deploy/id_rsa", "tls/server.pem", "home/.aws/credentials", ".npmrc"] {
        sandbox.write(path, "hunter2");
        let run = sandbox.mu(&["pack"]).fails();
        run.says(&[&format!("would contain what looks like a secret: `{path}`"), "--force"]);
        let error = sandbox.mu(&["pack", "--json"]).fails_with("untrusted");
        assert_eq!(error["details"]["files"], json!([path]));
        assert!(!sandbox.has("work/web-0.1.0.tgz"));
        fs::remove_file(sandbox.path("work").join(path)).expect("is ours");
    }
    sandbox.write(".env", "hunter2");
    sandbox.mu(&["pack", "--force"]).ok().says(&["warning", "`.env`"]);
    assert!(unpacked(&sandbox.path("work/web-0.1.0.tgz")).path().join(".env").exists());
    sandbox.write(".muignore", ".env\n");
    sandbox.mu(&["pack"]).ok();
    assert!(!unpacked(&sandbox.path("work/web-0.1.0.tgz")).path().join(".env").exists());
}

#[test]
fn pointers_of_git_lfs_are_packed_only_if_they_are_meant() {
    let sandbox = Sandbox::with_dependencies(&[]);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    sandbox.write("data/other.bin", pointer);
    sandbox.write("model.bin", pointer);
    let refused = "of `data/other.bin` and 1 more, only the Git LFS pointer is there, not the file";
    sandbox.mu(&["pack"]).fails().says(&[refused, "`git lfs pull`", "`--force`"]);
    let error = sandbox.mu(&["pack", "--json"]).fails_with("integrity");
    assert_eq!(error["details"]["files"], json!(["data/other.bin", "model.bin"]));
    assert!(!sandbox.has("work/web-0.1.0.tgz"));
    sandbox.mu(&["pack", "--force"]).ok().says(&["data/other.bin", "model.bin", "LFS pointer"]);
    // Longer than any pointer, and one that is not packed.
    sandbox.write("model.bin", &format!("{pointer}{}", "x".repeat(2_000)));
    sandbox.write(".muignore", "data\n");
    sandbox.mu(&["pack"]).ok().does_not_say(&["LFS"]);
}

#[test]
fn what_nobody_could_unpack_is_not_packed() {
    for target in ["-> ../secret", "-> /etc/passwd"] {
        let sandbox = Sandbox::with_dependencies(&[]);
        sandbox.write("out", target);
        let run = sandbox.mu(&["pack"]).fails();
        run.says(&["work/out` is a link to something that is neither in its package", "hint"]);
        sandbox.mu(&["pack", "--json"]).fails_with("integrity");
        assert!(!sandbox.has("work/web-0.1.0.tgz"));
    }
    let refused: [(&str, &str, &str); 3] = [
        ("Mu.YAML", "x", "differ only in case"),
        ("a\\b", "x", "contains a backslash"),
        ("sub/GIT~1/x", "x", "a package may not contain `.git` or `.mu` folders"),
    ];
    for (path, content, reason) in refused {
        let sandbox = Sandbox::with_dependencies(&[]);
        sandbox.write(path, content);
        let run = sandbox.mu(&["pack"]).fails();
        run.says(&["cannot be packed", reason, "hint"]);
        sandbox.mu(&["pack", "--json"]).fails_with("integrity");
        assert!(!sandbox.has("work/web-0.1.0.tgz"));
    }
    let sandbox = Sandbox::with_dependencies(&[]);
    let status = Command::new("mkfifo").arg(sandbox.path("work/pipe")).status();
    assert!(status.expect("there is mkfifo").success());
    sandbox.mu(&["pack"]).fails().says(&["not a file, a folder or a link"]);
}

#[test]
fn an_archive_replaces_archives_alone() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.write("data.txt", "the only copy");
    for output in ["data.txt", "empty"] {
        sandbox.write("empty", "");
        let run = sandbox.mu(&["pack", "--output", output]);
        assert_eq!(run.status, 2, "{}", run.shown());
        run.says(&["already exists, and is not an archive"]);
    }
    assert_eq!(sandbox.read("data.txt"), "the only copy");
    sandbox.mu(&["pack", "--output", "out"]).ok();
    sandbox.mu(&["pack", "--output", "out"]).ok();
}

#[test]
fn set_uid_and_odd_modes_do_not_get_in() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.write("tool*", "#!/bin/sh\n");
    let tool = sandbox.path("work/tool");
    fs::set_permissions(tool, fs::Permissions::from_mode(0o4711)).expect("is ours");
    sandbox.mu(&["pack"]).ok();
    let out = unpacked(&sandbox.path("work/web-0.1.0.tgz"));
    let mode = fs::metadata(out.path().join("tool")).expect("is there").permissions().mode();
    assert_eq!(mode & 0o7000, 0);
    assert_eq!(mode & 0o100, 0o100);
}

#[test]
fn an_archive_carries_the_versions_that_it_was_made_with() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0").needs("aws/vpc"),
        Package::new("aws/vpc", "1.5.0"),
        Package::new("other/tool", "1.0.0"),
    ]);
    sandbox.write("api/Mu.yaml", "name: acme/api\nversion: 1.0.0\ndependencies: [other/tool]\n");
    // Without a lock, versions are chosen, and only the archive is written.
    sandbox.mu(&["pack", "acme/web"]).ok();
    assert!(!sandbox.has("work/Mu.lock") && !sandbox.has("work/.mu/packs"));
    let chosen = fs::read(sandbox.path("work/web-0.1.0.tgz")).expect("is there");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["pack", "acme/web"]).ok();
    assert_eq!(fs::read(sandbox.path("work/web-0.1.0.tgz")).expect("is there"), chosen);
    let lock = |out: &tempfile::TempDir| -> serde_json::Value {
        let text = fs::read_to_string(out.path().join("Mu.lock")).expect("is there");
        serde_yaml::from_str(&text).expect("is YAML")
    };
    let out = unpacked(&sandbox.path("work/web-0.1.0.tgz"));
    let mut expected = sandbox.lock();
    let packages = expected["packages"].as_array_mut().expect("is a list");
    packages.retain(|package| package["id"] != "hub.mu.com/other/tool");
    for package in packages {
        // No folder of this machine is published.
        package["source"] = "hub+https://hub.mu.com/".into();
    }
    assert_eq!(lock(&out), expected);
    // With pins, the manifest says it too.
    sandbox.mu(&["pack", "acme/web", "--pinned", "-o", "pinned.tgz"]).ok();
    let out = unpacked(&sandbox.path("work/pinned.tgz"));
    let manifest = fs::read_to_string(out.path().join("Mu.yaml")).expect("is there");
    assert!(manifest.contains("- aws/ec2#1.0.0\n"), "{manifest}");
    assert!(sandbox.read("Mu.yaml").contains("- aws/ec2#^1\n"));
    // Later changes are not recorded as the versions that it was made with.
    sandbox.asks_for(&["aws/ec2#^1.0"]);
    sandbox.mu(&["pack", "acme/web"]).ok();
    let lock = lock(&unpacked(&sandbox.path("work/web-0.1.0.tgz")));
    assert!(lock.to_string().contains("^1.0 by acme/web"), "{lock}");
    fs::remove_dir_all(sandbox.hub().folder()).expect("was there");
    fs::remove_dir_all(sandbox.path("cache")).expect("was there");
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["pack", "acme/web"]).fails().says(&["does not name the version of `aws/ec2`"]);
}

#[test]
fn a_version_is_needed_and_composite_ones_name_both_parts() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.write("Mu.yaml", "name: acme/web\n");
    sandbox.mu(&["pack"]).fails().says(&["has no `version`", "hint"]);
    sandbox.mu(&["pack", "--json"]).fails_with("manifest");
    let composite = "name: acme/web\nversion: 1.0.0\nversioning: composite\nappVersion: 2.3\n";
    sandbox.write("Mu.yaml", composite);
    let packed = sandbox.mu(&["pack", "--json"]).ok().json();
    assert_eq!(packed["version"], "2.3-1.0.0");
    assert!(sandbox.has("work/web-2.3-1.0.0.tgz"));
}

#[test]
fn what_hubs_do_not_take_is_not_packed() {
    let sandbox = Sandbox::new();
    let long = format!("description: {}\n", "a".repeat(5_000));
    sandbox.place("work", &Package::new("acme/web", "1.0.0").manifest(&long));
    let expected = [
        "hubs do not accept the manifest of `acme/web`: `description` is 5000 bytes long, and at most 4096 are allowed",
        "longer texts belong in the readme",
    ];
    sandbox.mu(&["pack"]).fails().says(&expected);
    sandbox.mu(&["pack", "--list", "--json"]).fails_with("manifest");
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    sandbox.mu(&["publish", "--to", "../srv", "--dry-run"]).fails().says(&expected);
    assert!(!sandbox.has("work/web-1.0.0.tgz"));
}

#[cfg(feature = "git")]
#[test]
fn modes_are_those_in_the_index_where_the_file_system_has_none() {
    use crate::support::git::git;
    let sandbox = Sandbox::new();
    let folder = sandbox.path("work");
    write_tree(&folder, "022", false);
    git(&folder, &["init", "--quiet", "."]);
    git(&folder, &["add", "."]);
    let archive = |name: &str| {
        sandbox.mu(&["pack", "--output", name]).ok();
        fs::read(folder.join(name)).expect("was packed")
    };
    let real = archive("../real.tgz");
    let mode = |mode: u32| {
        for path in ["Mu.yaml", "bin/run", "a-b", "a.b", "a/b/c/file"] {
            fs::set_permissions(folder.join(path), fs::Permissions::from_mode(mode)).expect("ours");
        }
    };
    // As on mounts of WSL and FAT, and without a word of Git's.
    mode(0o777);
    assert!(archive("../wrong.tgz") != real);
    git(&folder, &["config", "core.fileMode", "false"]);
    for all in [0o777, 0o644] {
        mode(all);
        assert!(archive("../again.tgz") == real, "{all:o}");
    }
    // What Git does not know is an ordinary file.
    write(&folder, "new.sh", "#!/bin/sh\n");
    mode(0o777);
    fs::set_permissions(folder.join("new.sh"), fs::Permissions::from_mode(0o777)).expect("ours");
    archive("../new.tgz");
    let files = unpacked(&sandbox.path("new.tgz"));
    let files = tree(files.path());
    assert_eq!((files["new.sh"].0, files["bin/run"].0), ('f', 'x'));
}

/// The paths in the archive that `mu pack` makes of the workspace's package.
fn packed(sandbox: &Sandbox) -> Vec<String> {
    sandbox.mu(&["pack"]).ok();
    let out = unpacked(&sandbox.path("work/web-1.0.0.tgz"));
    tree(out.path()).into_keys().collect()
}

#[test]
fn ignore_files_are_read_as_bytes_and_without_their_mark() {
    for name in [".gitignore", ".muignore", "inner/.gitignore"] {
        let sandbox = Sandbox::new();
        sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
        sandbox.write("inner/private.txt", "secret");
        sandbox.write("kept.txt", "");
        sandbox.write(name, "");
        let rules = b"\xef\xbb\xbfprivate.txt\r\n# caf\xe9\r\ncaf\xe9\r\n";
        fs::write(sandbox.path("work").join(name), rules).expect("can be written");
        let run = sandbox.mu(&["pack", "--dry-run"]).ok();
        run.says(&[&format!("{name}:3"), "this pattern has no effect: it is not UTF-8"])
            .does_not_say(&[&format!("{name}:2")]);
        let paths = packed(&sandbox);
        assert!(paths.iter().all(|path| !path.contains("private")), "{name}: {paths:?}");
        assert!(paths.contains(&"kept.txt".to_owned()), "{name}: {paths:?}");
        // Git finds no pattern in such a file, so what it means to leave out would be packed.
        let rules = b"\xff\xfep\0r\0i\0v\0a\0t\0e\0.\0t\0x\0t\0";
        fs::write(sandbox.path("work").join(name), rules).expect("can be written");
        sandbox.mu(&["pack"]).fails().says(&[name, "it is UTF-16: save it as UTF-8"]);
    }
}

#[test]
fn a_manifest_that_is_a_link_is_packed_as_a_file() {
    let sandbox = Sandbox::new();
    sandbox.write("real.yaml", "name: acme/web\nversion: 1.0.0\n");
    std::os::unix::fs::symlink("real.yaml", sandbox.path("work/Mu.yaml")).expect("can be made");
    sandbox.mu(&["pack"]).ok();
    let out = unpacked(&sandbox.path("work/web-1.0.0.tgz"));
    assert!(out.path().join("Mu.yaml").symlink_metadata().expect("is packed").is_file());
    sandbox.mu(&["publish", "--dry-run"]).ok();
    sandbox.mu(&["publish"]).ok();
}

#[test]
fn a_hub_inside_a_package_is_not_packed() {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    sandbox.mu(&["hub", "init", "hub"]).ok();
    sandbox.write("hub/private/tokens.json", "{}");
    // Of that name, but no root of a hub.
    sandbox.write("docs/hub.json", "{\"title\": \"hubs\"}");
    let said = sandbox.mu(&["pack", "--dry-run"]).ok();
    said.says(&["hub", "this folder is a hub, so it is not packed"]);
    let paths = packed(&sandbox);
    assert_eq!(paths, ["Mu.yaml", "docs/hub.json"]);
    sandbox.mu(&["publish", "--to", "hub"]).ok();
    sandbox.mu(&["publish", "--to", "hub"]).ok().does_not_say(&["different content"]);
}

#[test]
fn a_path_over_a_limit_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    sandbox.write(&format!("{}end", "deep/".repeat(120)), "");
    sandbox.mu(&["pack"]).fails().says(&["of the path that begins with `deep/deep/"]);
}

#[test]
fn the_cache_of_another_run_is_no_part_of_the_workspace() {
    let mut sandbox = Sandbox::with_dependencies(&["aws/ec2#^1.0"]);
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0").needs("net/vpc#^1.0"),
        Package::new("net/vpc", "1.0.0"),
    ]);
    let usual = sandbox.path("cache").display().to_string();
    // As a CI system has it, which keeps only what is in the checkout.
    for place in ["cache", ".ci/cache"] {
        let cache = sandbox.path("work").join(place).display().to_string();
        sandbox.set("MU_CACHE_DIR", &cache);
        sandbox.mu(&["get"]).ok();
        let lock = sandbox.read("Mu.lock");
        sandbox.set("MU_CACHE_DIR", &usual);
        sandbox.mu(&["get", "--locked"]).ok().does_not_say(&["warning"]);
        sandbox.mu(&["get"]).ok().does_not_say(&["warning"]);
        assert_eq!(sandbox.read("Mu.lock"), lock);
        let said = sandbox.mu(&["pack", "--dry-run"]).ok();
        said.says(&["this folder is a cache, so it is not packed"]).does_not_say(&["trees"]);
    }
    let tag = sandbox.read("cache/CACHEDIR.TAG");
    assert!(tag.starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"), "{tag}");
    sandbox.mu(&["cache", "clean"]).ok();
}

#[cfg(unix)]
#[test]
fn no_archive_takes_the_place_of_a_device_or_a_pipe() {
    use std::os::unix::fs::FileTypeExt as _;

    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    let pipe = sandbox.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
    let run = sandbox.mu(&["pack", "--output", &pipe.display().to_string()]);
    assert_eq!(run.status, 2, "{}", run.shown());
    run.says(&["is not a regular file, so `mu pack` does not replace it", "`mu pack --dry-run`"]);
    assert!(fs::symlink_metadata(&pipe).expect("is there").file_type().is_fifo());
}
