//! Kills, a failing disk, and many processes at once: never half a pack, and the next `mu get` finishes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use crate::support::{Package, Sandbox, digest_of};

/// How many packages the workspace needs.
const PACKAGES: usize = 12;

/// A workspace that needs twelve packages of some files each.
fn workspace() -> Sandbox {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..PACKAGES).map(|number| format!("robust/p{number}")).collect();
    for name in &names {
        sandbox.publish(&[large(name, "1.0.0")]);
    }
    let references: Vec<&str> = names.iter().map(String::as_str).collect();
    sandbox.asks_for(&references);
    sandbox
}

/// A package that is large enough for a kill to hit the middle.
fn large(name: &str, version: &str) -> Package {
    let content = format!("{name} {version}\n").repeat(2_000);
    (0..20).fold(Package::new(name, version), |package, number| {
        package.file(&format!("files/{number}.txt"), &content)
    })
}

/// The digest of every pack that is there, by its name.
fn packs(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let folder = sandbox.path("work/.mu/packs/hub.mu.com/robust");
    let Ok(entries) = fs::read_dir(&folder) else { return BTreeMap::new() };
    entries
        .map(|entry| {
            let entry = entry.expect("can be read");
            (entry.file_name().into_string().expect("is UTF-8"), digest_of(&entry.path()))
        })
        .collect()
}

/// The digests that each pack may have: of any version that was published.
fn published(sandbox: &Sandbox) -> BTreeMap<String, Vec<String>> {
    (0..PACKAGES)
        .filter_map(|number| {
            let index = sandbox.hub().index(&format!("robust/p{number}"));
            let lines = fs::read_to_string(index).ok()?;
            let digests = lines
                .lines()
                .map(|line| {
                    let line: serde_json::Value = serde_json::from_str(line).expect("is JSON");
                    line["digest"].as_str().expect("has a digest").to_owned()
                })
                .collect();
            Some((format!("p{number}"), digests))
        })
        .collect()
}

#[track_caller]
fn every_pack_is_whole(sandbox: &Sandbox, when: &str) {
    let published = published(sandbox);
    for (name, digest) in packs(sandbox) {
        assert!(published[&name].contains(&digest), "{name} is half there {when}");
    }
}

/// Makes `sandbox` a workspace without packs, lock and cache.
fn forget(sandbox: &Sandbox) {
    for part in ["work/.mu", "work/Mu.lock", "cache"] {
        let path = sandbox.path(part);
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
    fs::create_dir_all(sandbox.path("work/.mu")).expect("can be made");
}

/// Ends a command before each of its changes to files, one after the other, and lets the next run finish.
/// Returns the number of changes.
fn end_at_each_change(arguments: &[&str], prepare: impl Fn(&Sandbox)) -> u32 {
    let sandbox = Sandbox::new();
    sandbox.asks_for(&["robust/p0", "robust/p1"]);
    let publish = |version: &str| {
        for name in ["robust/p0", "robust/p1"] {
            let package = Package::new(name, version).file("a/text", version).file("run*", name);
            sandbox.publish(&[package]);
        }
    };
    publish("1.0.0");
    for number in 1.. {
        publish(&format!("1.{number}.0"));
        prepare(&sandbox);
        let mut command = sandbox.command(arguments);
        command.env("MU_TEST_END_AT_CHANGE", number.to_string());
        let run = sandbox.run(arguments, command);
        every_pack_is_whole(&sandbox, &format!("before change {number}"));
        if run.status == 0 {
            return number - 1;
        }
        assert_eq!(run.status, -1, "{}", run.shown());
        sandbox.mu(arguments).ok();
        sandbox.mu(&["verify"]).ok();
        assert_eq!(packs(&sandbox).len(), 2, "before change {number}");
        assert!(!sandbox.has("work/.mu/packs/.mu/staging"), "nothing stays in staging");
    }
    unreachable!("the numbers do not end")
}

#[test]
fn an_end_at_any_change_of_a_get_leaves_whole_packs_and_the_next_finishes() {
    let changes = end_at_each_change(&["get"], forget);
    assert!(changes > 20, "{changes} changes");
}

#[test]
fn an_end_at_any_change_of_an_update_leaves_whole_packs_and_the_next_finishes() {
    let changes = end_at_each_change(&["update"], |sandbox| {
        if !sandbox.has("work/Mu.lock") {
            sandbox.mu(&["get"]).ok();
            sandbox.publish(&[Package::new("robust/p0", "1.1.1")]);
        }
    });
    assert!(changes > 20, "{changes} changes");
}

#[test]
fn a_kill_in_the_middle_leaves_whole_packs_and_the_next_get_finishes() {
    let sandbox = workspace();
    let started = Instant::now();
    sandbox.mu(&["get"]).ok();
    let whole_run = started.elapsed();
    forget(&sandbox);
    let mut command = sandbox.command(&["get"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("mu can be started");
    let mut output = child.stdout.take().expect("is piped");
    let (send, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut output, &mut std::io::sink());
        // If nobody waits any more, that is fine.
        let _ = send.send(());
    });
    // Its output ends when it does: on a fast machine that may be before.
    let _ = ended.recv_timeout(whole_run / 2);
    child.kill().expect("can be killed");
    child.wait().expect("can be waited for");
    every_pack_is_whole(&sandbox, "after the kill");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok();
    assert_eq!(packs(&sandbox).len(), PACKAGES);
    assert!(!sandbox.has("work/.mu/packs/.mu/staging"), "nothing stays in staging");
}

#[test]
fn a_package_that_does_not_come_leaves_no_pack_of_the_others() {
    let sandbox = workspace();
    sandbox.mu(&["get"]).ok();
    let archive = sandbox.hub().archive("robust/p9", "1.0.0");
    let aside = sandbox.path("aside.tgz");
    for part in ["work/.mu/packs", "cache"] {
        fs::remove_dir_all(sandbox.path(part)).expect("can be removed");
    }
    fs::rename(&archive, &aside).expect("can be moved");
    sandbox.mu(&["get"]).fails().says(&["robust/p9"]);
    assert!(packs(&sandbox).is_empty());
    assert!(!sandbox.has("work/.mu/packs/.mu/staging"), "nothing stays in staging");
    assert!(!sandbox.has("work/.mu/packs/.mu/state.json"), "nothing is pending");

    fs::rename(&aside, &archive).expect("can be moved");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok();
    assert_eq!(packs(&sandbox).len(), PACKAGES);
}

/// A `mu` that may write files of no more than `blocks` of 512 bytes, as if the disk were full.
#[cfg(unix)]
fn with_small_disk(sandbox: &Sandbox, blocks: u32) -> crate::support::Run {
    let mut command = std::process::Command::new(mu_testing::program("sh"));
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" get");
    let prepared = sandbox.command(&[]);
    command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_mu"));
    command.current_dir(sandbox.path("work")).env_clear().stdin(Stdio::null());
    for (name, value) in prepared.get_envs() {
        command.env(name, value.expect("is set"));
    }
    sandbox.run(&["get"], command)
}

#[cfg(unix)]
#[test]
fn a_disk_that_refuses_changes_nothing_and_says_where() {
    let sandbox = workspace();
    for blocks in [0, 1, 2, 8, 40] {
        let before = sandbox.path("work/Mu.lock").exists();
        let run = with_small_disk(&sandbox, blocks).fails();
        assert!(run.stderr.contains("cannot write"), "{}", run.shown());
        every_pack_is_whole(&sandbox, "after the disk refused");
        assert_eq!(sandbox.path("work/Mu.lock").exists(), before, "the lock was not written");
    }
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify"]).ok();
    // A later version meets the same disk: what was installed stays.
    let installed = packs(&sandbox);
    let lock = sandbox.read("Mu.lock");
    for number in 0..PACKAGES {
        sandbox.publish(&[large(&format!("robust/p{number}"), "2.0.0")]);
    }
    fs::remove_dir_all(sandbox.path("cache")).expect("can be removed");
    sandbox.asks_for(&["robust/p0#2.0.0"]);
    with_small_disk(&sandbox, 8).fails();
    assert_eq!(packs(&sandbox), installed);
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn eight_processes_in_one_workspace_wait_for_each_other() {
    let sandbox = workspace();
    let children: Vec<_> = (0..8)
        .map(|_| {
            sandbox
                .command(&["get"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("mu can be started")
        })
        .collect();
    let mut waited = 0;
    for child in children {
        let output = child.wait_with_output().expect("ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        waited += u32::from(said.contains("waiting: another mu process is changing"));
    }
    assert!(waited > 0, "at least one found the others at work");
    sandbox.mu(&["verify"]).ok();
    assert_eq!(packs(&sandbox).len(), PACKAGES);
}

#[test]
fn who_uses_the_store_waits_for_who_prunes_it() {
    let sandbox = workspace();
    fs::create_dir_all(sandbox.path("cache/store")).expect("can be made");
    let store = fs::File::create(sandbox.path("cache/store/lock")).expect("can be made");
    for arguments in [&["get"][..], &["verify", "--store"], &["pack"]] {
        store.lock().expect("can be locked");
        let mut child = sandbox
            .command(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("mu can be started");
        let said = BufReader::new(child.stderr.as_mut().expect("is piped"));
        let waits = said.lines().map_while(Result::ok).any(|line| line.contains("is pruning"));
        assert!(waits, "{arguments:?} does not wait");
        store.unlock().expect("can be unlocked");
        assert!(child.wait().expect("ends").success(), "{arguments:?}");
    }
}

#[test]
fn eight_workspaces_share_one_store() {
    let sandbox = workspace();
    let manifest = sandbox.read("Mu.yaml");
    let folders: Vec<String> = (0..8).map(|number| format!("other{number}")).collect();
    let children: Vec<_> = folders
        .iter()
        .map(|folder| {
            fs::create_dir_all(sandbox.path(folder).join(".mu")).expect("can be made");
            fs::write(sandbox.path(folder).join("Mu.yaml"), &manifest).expect("can be written");
            let mut command = sandbox.command(&["get"]);
            command.current_dir(sandbox.path(folder)).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("mu can be started")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for folder in &folders {
        sandbox.mu_in(folder, &["verify"]).ok();
    }
    sandbox.mu(&["verify", "--store"]).ok().says(&["12 trees verified"]);
}

#[test]
fn a_changed_file_in_the_store_is_never_installed() {
    let sandbox = workspace();
    sandbox.mu(&["get"]).ok();
    let trees = sandbox.path("cache/store/trees");
    let tree = fs::read_dir(&trees).expect("is there").next().expect("has trees");
    let file = tree.expect("can be read").path().join("files/files/0.txt");
    replace(&file, "tampered");
    sandbox.mu(&["verify", "--store"]).fails().says(&["content changed"]);
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("can be removed");
    sandbox.mu(&["get"]).ok().says(&["in the store was changed; fetching it again"]);
    every_pack_is_whole(&sandbox, "after the store was tampered with");
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["verify", "--store"]).ok();
}

#[test]
fn several_changed_trees_in_the_store_are_fetched_again_at_once() {
    let sandbox = workspace();
    sandbox.mu(&["get"]).ok();
    let trees: Vec<_> = fs::read_dir(sandbox.path("cache/store/trees"))
        .expect("is there")
        .map(|tree| tree.expect("can be read").path())
        .collect();
    // As after a cache that was restored by half: files that are short, and lists that are empty.
    for (number, tree) in trees.iter().enumerate() {
        let file = if number % 2 == 0 { "files/files/3.txt" } else { "list" };
        replace(&tree.join(file), "");
    }
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("can be removed");
    sandbox.mu(&["get"]).ok().says(&["in the store was changed; fetching it again"]);
    every_pack_is_whole(&sandbox, "after the store was damaged");
    sandbox.mu(&["verify", "--store"]).ok().says(&["12 trees verified"]);
}

/// Puts another file in a read-only one's place.
fn replace(path: &Path, content: &str) {
    fs::remove_file(path).expect("can be removed");
    fs::write(path, content).expect("can be written");
}

#[test]
fn a_folder_that_mu_did_not_make_is_not_overwritten() {
    let sandbox = workspace();
    sandbox.write(".mu/packs/hub.mu.com/robust/p3/notes.txt", "mine");
    let error = sandbox.mu(&["get", "--json"]).fails_with("conflict");
    assert!(error["message"].as_str().expect("is text").contains("robust/p3"), "{error}");
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/robust/p3/notes.txt"), "mine");
    assert!(!sandbox.has("work/Mu.lock"));
    fs::remove_dir_all(sandbox.path("work/.mu/packs/hub.mu.com")).expect("can be removed");
    sandbox.mu(&["get"]).ok();
    // Packs from a checkout, without the state, are used as they are if they are right.
    fs::remove_dir_all(sandbox.path("work/.mu/packs/.mu")).expect("can be removed");
    sandbox.mu(&["get", "--offline"]).ok();
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn files_that_a_killed_run_left_on_their_way_are_removed_and_never_packed() {
    let sandbox = Sandbox::with_dependencies(&[]);
    let left =
        ["work/.mu-staged-aB3dE6", "work/.mu/.mu-staged-000000", "home/.mu/.mu-staged-zzzzzz"];
    let others = ["work/.mu-backup", "work/.mu-staged-1.txt", "work/.mu/.mu-staged-12345"];
    for path in left.iter().chain(&others) {
        let path = sandbox.path(path);
        fs::create_dir_all(path.parent().expect("is in a folder")).expect("can be made");
        let file = fs::File::create(path).expect("can be written");
        file.set_modified(SystemTime::now() - Duration::from_secs(2 * 60 * 60))
            .expect("can be set");
    }
    sandbox.write(".mu-staged-fresh1", "");
    let listed = sandbox.mu(&["pack", "--dry-run"]).ok().stdout;
    assert!(!listed.contains("aB3dE6") && !listed.contains("fresh1"), "{listed}");
    assert!(listed.contains(".mu-backup"), "{listed}");
    sandbox.mu(&["get"]).ok();
    assert_eq!(left.map(|path| sandbox.has(path)), [false; 3]);
    assert_eq!(others.map(|path| sandbox.has(path)), [true; 3]);
    assert!(sandbox.has("work/.mu-staged-fresh1"), "another process may be writing it");
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_not_the_one_on_its_way() {
    let sandbox = Sandbox::with_dependencies(&[]);
    let line = "trap '' XFSZ; ulimit -f 0; mu version 0.2.0";
    let run = sandbox.shell("bash", line).fails();
    run.says(&["cannot write `[DIR]/work/Mu.yaml`"]).does_not_say(&[".mu-staged"]);
    assert!(sandbox.read("Mu.yaml").contains("version: 0.1.0"));
}
