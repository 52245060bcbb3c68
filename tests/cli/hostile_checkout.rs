//! A checkout that an attacker has prepared: whatever it contains, no command creates, changes or removes
//! anything outside of it, runs anything, or waits.
//!
//! Each trick is tried with every command that could be affected, each time in a new copy of the checkout.
//! Everything around the checkout is listed before and after.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::json;
use walkdir::WalkDir;

use crate::support::git::Origin;
use crate::support::{Package, Run, Sandbox, write};

/// One thing that a checkout brings, and how.
struct Trick {
    name: &'static str,
    /// Prepares `work`; its targets are in `victim`.
    play: fn(&Sandbox),
}

/// Replaces what is at `path` of the workspace by a link to `target`.
pub(crate) fn link(sandbox: &Sandbox, path: &str, target: &str) {
    let place = sandbox.path("work").join(path);
    let _ = fs::remove_file(&place);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(place.parent().expect("is below work")).expect("can be made");
    symlink(sandbox.path(target), place).expect("can be made");
}

/// Creates a pipe without a writer at `path` of the workspace.
fn pipe(sandbox: &Sandbox, path: &str) {
    let place = sandbox.path("work").join(path);
    let _ = fs::remove_file(&place);
    fs::create_dir_all(place.parent().expect("is below work")).expect("can be made");
    assert!(Command::new("mkfifo").arg(place).status().expect("runs").success());
}

/// Creates a sparse file of two GiB at `path` of the workspace.
fn sparse(sandbox: &Sandbox, path: &str) {
    let place = sandbox.path("work").join(path);
    fs::create_dir_all(place.parent().expect("is below work")).expect("can be made");
    fs::File::create(place).and_then(|file| file.set_len(2 << 30)).expect("can be made");
}

/// Writes a state of packs like one that an older mu left in a packs folder.
fn state(sandbox: &Sandbox, packs: &[&str], pending: &[String]) {
    let digest = "h1:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
    let pack = |place: &&str| json!({"place": place, "id": "hub.mu.com/a", "version": "1.0.0", "digest": digest});
    let packs: Vec<_> = packs.iter().map(pack).collect();
    let text = json!({"version": 1, "packs": packs, "pending": pending}).to_string();
    sandbox.write(".mu/packs/.mu/state.json", &text);
}

fn victim(sandbox: &Sandbox) -> String {
    sandbox.path("victim").display().to_string()
}

/// Puts a repository's configuration that names programs into a folder of the workspace.
fn git_config(sandbox: &Sandbox, folder: &str) {
    let ran = sandbox.path("victim/ran").display().to_string();
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tsshCommand = touch {ran}\n\tfsmonitor = touch {ran}\n\
         [credential]\n\thelper = \"!touch {ran}\"\n[url \"ext::touch {ran} \"]\n\tinsteadOf = ssh://\n"
    );
    for (file, content) in [("config", config.as_str()), ("HEAD", "ref: refs/heads/main\n")] {
        sandbox.write(&format!("{folder}{file}"), content);
    }
    for part in ["objects/info", "refs/heads"] {
        let place = sandbox.path("work").join(format!("{folder}{part}"));
        fs::create_dir_all(place).expect("can be made");
    }
    sandbox.asks_for(&["ssh://git@127.0.0.1:1/team/tool.git"]);
}

const TRICKS: &[Trick] = &[
    Trick { name: "`.mu` is a link", play: |sandbox| link(sandbox, ".mu", "victim/mu") },
    Trick { name: "`.mu/packs` is a link", play: |sandbox| link(sandbox, ".mu/packs", "victim") },
    Trick {
        name: "`.mu/packs` is a link to nothing",
        play: |sandbox| link(sandbox, ".mu/packs", "victim/new"),
    },
    Trick {
        name: "a base is a link",
        play: |sandbox| link(sandbox, ".mu/packs/hub.mu.com", "victim"),
    },
    Trick {
        name: "a namespace is a link",
        play: |sandbox| link(sandbox, ".mu/packs/hub.mu.com/aws", "victim"),
    },
    Trick {
        name: "a namespace is a link to nothing",
        play: |sandbox| link(sandbox, ".mu/packs/hub.mu.com/aws", "victim/new"),
    },
    Trick {
        name: "a pack is a link",
        play: |sandbox| link(sandbox, ".mu/packs/hub.mu.com/aws/ec2", "victim"),
    },
    Trick {
        name: "a pack that is needed by another is a link",
        play: |sandbox| link(sandbox, ".mu/packs/hub.mu.com/aws/vpc", "victim/pack"),
    },
    Trick {
        name: "mu's own folder is a link",
        play: |sandbox| link(sandbox, ".mu/packs/.mu", "victim"),
    },
    Trick {
        name: "staging is a link",
        play: |sandbox| link(sandbox, ".mu/packs/.mu/staging", "victim"),
    },
    Trick {
        name: "the old place of the state is a link",
        play: |sandbox| link(sandbox, ".mu/packs/.mu/state.json", "victim/file"),
    },
    Trick {
        name: "the lock of the packs is a link",
        play: |sandbox| link(sandbox, ".mu/packs/.mu/lock", "victim/new"),
    },
    Trick {
        name: ".gitignore is a link, and packs are vendored",
        play: |sandbox| {
            link(sandbox, ".mu/packs/.gitignore", "victim/file");
            sandbox.write(".mu/packs/vendored.json", r#"{"version": 2}"#);
        },
    },
    Trick {
        name: ".gitattributes is a link, and packs are vendored",
        play: |sandbox| {
            link(sandbox, ".mu/packs/.gitattributes", "victim/file");
            sandbox.write(".mu/packs/vendored.json", r#"{"version": 2}"#);
        },
    },
    Trick {
        name: "the record of vendored packs is a link",
        play: |sandbox| link(sandbox, ".mu/packs/vendored.json", "victim/file"),
    },
    Trick {
        name: "the settings are a link",
        play: |sandbox| link(sandbox, ".mu/workspace.yaml", "victim/file"),
    },
    Trick { name: "Mu.lock is a link", play: |sandbox| link(sandbox, "Mu.lock", "victim/Mu.lock") },
    Trick {
        name: "Mu.lock is a link to nothing",
        play: |sandbox| link(sandbox, "Mu.lock", "victim/new"),
    },
    Trick {
        name: "the manifest is a link",
        play: |sandbox| link(sandbox, "Mu.yaml", "victim/pack/Mu.yaml"),
    },
    Trick {
        name: "the manifest of a workspace inside is a link",
        play: |sandbox| {
            sandbox.write("victim/pack/.mu/workspace.yaml", "");
            link(sandbox, "victim/pack/Mu.yaml", "victim/pack/Mu.yaml");
        },
    },
    Trick {
        name: "a folder of packages is a link",
        play: |sandbox| link(sandbox, "hub.mu.com/aws/vpc", "victim/pack"),
    },
    Trick {
        name: "the hub that is published to is a link",
        play: |sandbox| link(sandbox, "local-hub", "victim"),
    },
    Trick {
        name: "folders of the hub that is published to are links",
        play: |sandbox| {
            fs::remove_dir_all(sandbox.path("work/local-hub")).expect("is ours");
            sandbox
                .write("local-hub/hub.json", r#"{"hub": 1, "index": "index/", "packs": "packs/"}"#);
            for part in ["index", "packs", "capabilities", "log", "private"] {
                link(sandbox, &format!("local-hub/{part}"), "victim");
            }
            for part in ["catalog.jsonl", "snapshot.jsonl.gz", "hub.lock"] {
                link(sandbox, &format!("local-hub/{part}"), "victim/file");
            }
        },
    },
    Trick {
        name: "the archive that is packed is a link",
        play: |sandbox| link(sandbox, "web-0.1.0.tgz", "victim/archive.tgz"),
    },
    Trick {
        name: "a state with places outside to clean up",
        play: |sandbox| {
            let places = ["../../../victim", "../../victim", "../../..//victim/file", "../../src"];
            let mut places = places.map(str::to_owned).to_vec();
            places.push(victim(sandbox));
            state(sandbox, &[], &places);
        },
    },
    Trick {
        name: "a state with packs outside",
        play: |sandbox| {
            state(sandbox, &["../../../victim", "hub.mu.com/../../../../victim"], &[]);
        },
    },
    Trick {
        name: "a damaged state",
        play: |sandbox| sandbox.write(".mu/packs/.mu/state.json", "{\"version\": 99"),
    },
    Trick {
        name: "a lock with places outside",
        play: |sandbox| {
            sandbox.write(
                "Mu.lock",
                "version: 1\nresolution: highest\npackages:\n- id: hub.mu.com/../../../victim\n  version: 1.0.0\n  \
                 source: hub+https://hub.mu.com/\n",
            );
        },
    },
    Trick { name: "Mu.lock is a pipe", play: |sandbox| pipe(sandbox, "Mu.lock") },
    Trick { name: "Mu.lock is huge", play: |sandbox| sparse(sandbox, "Mu.lock") },
    Trick {
        name: "Mu.lock is a folder",
        play: |sandbox| {
            fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
            sandbox.write("Mu.lock/file", "");
        },
    },
    Trick { name: "the settings are a pipe", play: |sandbox| pipe(sandbox, ".mu/workspace.yaml") },
    Trick { name: "the settings are huge", play: |sandbox| sparse(sandbox, ".mu/workspace.yaml") },
    Trick {
        name: "settings lead elsewhere",
        play: |sandbox| {
            let victim = victim(sandbox);
            let text = format!(
                "registries: {{hub.mu.com/: \"file://{victim}/\"}}\noverrides: {{hub.mu.com/aws/vpc: ../victim}}\n"
            );
            sandbox.write(".mu/workspace.yaml", &text);
        },
    },
    Trick {
        name: "the record of vendored packs is a pipe",
        play: |sandbox| pipe(sandbox, ".mu/packs/vendored.json"),
    },
    Trick {
        name: "the lock of the packs is a pipe",
        play: |sandbox| pipe(sandbox, ".mu/packs/.mu/lock"),
    },
    Trick {
        name: "the old place of the state is a pipe",
        play: |sandbox| pipe(sandbox, ".mu/packs/.mu/state.json"),
    },
    Trick { name: "the manifest is a pipe", play: |sandbox| pipe(sandbox, "Mu.yaml") },
    Trick { name: "the manifest is huge", play: |sandbox| sparse(sandbox, "Mu.yaml") },
    Trick {
        name: "rules of what is packed are a pipe",
        play: |sandbox| pipe(sandbox, ".muignore"),
    },
    Trick { name: "a file of the package is a pipe", play: |sandbox| pipe(sandbox, "src/pipe") },
    Trick {
        name: "the archive that is packed is a pipe",
        play: |sandbox| pipe(sandbox, "web-0.1.0.tgz"),
    },
    Trick {
        name: "a pack has a pipe in it",
        play: |sandbox| {
            let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws/ec2");
            Package::new("aws/ec2", "1.0.0").write_into(&pack);
            pipe(sandbox, ".mu/packs/hub.mu.com/aws/ec2/pipe");
        },
    },
    Trick {
        name: "a pack's manifest is a pipe",
        play: |sandbox| pipe(sandbox, ".mu/packs/hub.mu.com/aws/ec2/Mu.yaml"),
    },
    Trick {
        name: "a file of the package is a link outside",
        play: |sandbox| link(sandbox, "src/secret", "victim/file"),
    },
    Trick { name: "a Git configuration", play: |sandbox| git_config(sandbox, ".git/") },
    Trick { name: "a folder that is a bare repository", play: |sandbox| git_config(sandbox, "") },
    Trick {
        name: "a device as manifest",
        play: |sandbox| {
            // Only the superuser can create devices; for others, the manifest does not exist.
            let manifest = sandbox.path("work/Mu.yaml");
            fs::remove_file(&manifest).expect("is ours");
            let _ = Command::new("mknod").arg(manifest).args(["c", "1", "5"]).output();
        },
    },
];

/// Every command that writes, and questions that read the files of a checkout.
const COMMANDS: &[&[&str]] = &[
    &["get"],
    &["get", "--locked"],
    &["get", "--frozen"],
    &["get", "--offline"],
    &["get", "aws/log"],
    &["add", "aws/log"],
    &["update"],
    &["upgrade"],
    &["downgrade", "aws/ec2#1.0.0"],
    &["remove", "aws/ec2"],
    &["vendor"],
    &["vendor", "--undo"],
    &["pin"],
    &["unpin"],
    &["mirror", "aws/ec2", "--to", "local-hub"],
    &["pack"],
    &["publish", "--to", "local-hub"],
    &["registry", "add", "x.example/", "https://x.example/"],
    &["init", "acme/new"],
    &["status"],
    &["verify"],
    &["which", "aws/vpc", "--all"],
    &["list"],
];

/// A workspace whose lock is written, as it would be committed.
fn checkout() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1.0.0"]);
    sandbox.offer("aws/vpc 1.0.0:\naws/log 1.0.0:\naws/ec2 1.0.0: aws/vpc\naws/ec2 1.1.0: aws/vpc");
    sandbox.mu(&["get"]).ok();
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is ours");
    sandbox.write("src/main.txt", "content");
    fs::create_dir_all(sandbox.path("work/local-hub")).expect("can be made");
    sandbox.mu(&["hub", "init", "local-hub"]).ok();
    let victim = sandbox.path("victim");
    write(&victim, "file", "precious\n");
    write(&victim, "archive.tgz", [0x1f, 0x8b, 0, 0]);
    write(&victim, "folder/deep/file", "precious\n");
    fs::copy(sandbox.path("work/Mu.lock"), victim.join("Mu.lock")).expect("can be copied");
    fs::create_dir_all(victim.join("mu/packs")).expect("can be made");
    write(&victim, "mu/workspace.yaml", "");
    Package::new("victim/pack", "0.1.0").needs("aws/vpc").write_into(&victim.join("pack"));
    sandbox
}

/// Everything around the workspace and the cache: its kind, its size, and its content or target.
pub(crate) fn around(sandbox: &Sandbox) -> BTreeMap<String, String> {
    const OWN: [&str; 4] = ["work", "cache", "kept", "prepared"];
    let is_own = |path: &Path| OWN.iter().any(|own| path.starts_with(own));
    let mut found = BTreeMap::new();
    for entry in WalkDir::new(sandbox.root()).into_iter().flatten() {
        let path = entry.path().strip_prefix(sandbox.root()).expect("is below");
        if is_own(path) {
            continue;
        }
        let metadata = entry.path().symlink_metadata().expect("is there");
        let content = if metadata.is_file() {
            format!("{:?}", fs::read(entry.path()).expect("can be read"))
        } else if metadata.is_symlink() {
            format!("-> {:?}", fs::read_link(entry.path()).expect("is a link"))
        } else {
            format!("folder {}", metadata.file_type().is_dir())
        };
        assert!(!metadata.file_type().is_fifo(), "{}", path.display());
        found.insert(path.display().to_string(), format!("{:o} {content}", metadata.mode()));
    }
    found
}

/// Makes `to` a copy of `from` with links, pipes and devices as they are.
pub(crate) fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let copied = Command::new("cp").args(["-a", "--sparse=always"]).args([from, to]).status();
    assert!(copied.expect("runs").success());
}

/// Runs mu, but waits no longer than any of these commands could need.
pub(crate) fn run(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    let mu = sandbox.command(arguments);
    let mut command = Command::new(mu_testing::program("timeout"));
    command.arg("60").arg(mu.get_program()).args(mu.get_args());
    command.env_clear().current_dir(sandbox.path("work")).stdin(std::process::Stdio::null());
    command.envs(mu.get_envs().filter_map(|(name, value)| Some((name, value?))));
    sandbox.run(arguments, command)
}

fn play(tricks: &[Trick]) {
    let clean = checkout();
    let kept = clean.path("kept");
    copy(&clean.path("work"), &kept);
    let prepared = clean.path("prepared");
    for Trick { name, play } in tricks {
        copy(&kept, &clean.path("work"));
        play(&clean);
        copy(&clean.path("work"), &prepared);
        let before = around(&clean);
        for arguments in COMMANDS {
            copy(&prepared, &clean.path("work"));
            let run = run(&clean, arguments);
            assert!([0, 1, 2].contains(&run.status), "{name}:\n{}", run.shown());
            let after = around(&clean);
            assert!(after == before, "{name} reached outside:\n{}\n{}", run.shown(), {
                let changed = |(path, is): (&String, &String)| {
                    (before.get(path) != Some(is)).then(|| format!("{path}: {is}"))
                };
                let gone = before.keys().filter(|path| !after.contains_key(*path));
                let news: Vec<String> = after.iter().filter_map(changed).collect();
                format!("{news:?} gone: {:?}", gone.collect::<Vec<_>>())
            });
        }
    }
}

#[test]
fn no_trick_of_a_checkout_reaches_outside_runs_anything_or_waits_1() {
    play(&TRICKS[..TRICKS.len() / 2]);
}

#[test]
fn no_trick_of_a_checkout_reaches_outside_runs_anything_or_waits_2() {
    play(&TRICKS[TRICKS.len() / 2..]);
}

#[test]
fn a_state_that_a_checkout_brings_is_ignored_and_removed() {
    let sandbox = checkout();
    let digest = sandbox.lock()["packages"][0]["digest"].as_str().expect("is text").to_owned();
    let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws/ec2");
    Package::new("aws/ec2", "1.1.0").file("run.sh", "EVIL").write_into(&pack);
    let line = json!({"place": "hub.mu.com/aws/ec2", "id": "hub.mu.com/aws/ec2", "version": "1.1.0", "digest": digest});
    let text = json!({"version": 1, "packs": [line]}).to_string();
    // A folder that mu has never seen, like a clone.
    copy(&sandbox.path("work"), &sandbox.path("kept"));
    copy(&sandbox.path("kept"), &sandbox.path("work"));
    for arguments in [&["get"][..], &["get", "--locked"], &["get", "--frozen"]] {
        sandbox.write(".mu/packs/.mu/state.json", &text);
        sandbox.mu(arguments).fails().says(&["aws/ec2` is in the way"]);
    }
    sandbox.mu(&["status"]).says(&["not installed"]);
    fs::remove_dir_all(&pack).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert!(!sandbox.has("work/.mu/packs/.mu/state.json"));
    assert!(!pack.join("run.sh").exists());
}

#[test]
fn vendored_packs_are_hashed_every_time() {
    let sandbox = checkout();
    sandbox.mu(&["vendor"]).ok();
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date ("]);
    // The next pull brings other content; mu has seen the folder before.
    sandbox.write(".mu/packs/hub.mu.com/aws/ec2/run.sh", "EVIL");
    for arguments in
        [&["get", "--json"][..], &["get", "--locked", "--json"], &["get", "--frozen", "--json"]]
    {
        let error = sandbox.mu(arguments).fails_with("integrity");
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains("expected h1:") && message.contains("got h1:"), "{message}");
    }
    sandbox.mu(&["status"]).says(&["aws/ec2 1.1.0"]);
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2/run.sh"), "nothing was lost");
}

#[test]
fn a_record_of_vendored_packs_excuses_nothing() {
    let sandbox = checkout();
    sandbox.mu(&["vendor"]).ok();
    let lock = sandbox.lock();
    let digest = lock["packages"][0]["digest"].as_str().expect("is text");
    // A left-out part must be in the way of another pack, and only then counts as present.
    let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws/ec2");
    let manifest = crate::support::hex(&fs::read(pack.join("Mu.yaml")).expect("is there"));
    fs::remove_file(pack.join("Mu.yaml")).expect("is ours");
    write(&pack, "Mu.json", r#"{"name": "aws/ec2", "version": "1.1.0"}"#);
    for omitted in [json!([format!("f {manifest}  Mu.yaml")]), json!([])] {
        let partial = json!({"hub.mu.com/aws/ec2": {"digest": digest, "omitted": omitted, "files": "h1:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"}});
        let text = json!({"version": 2, "partial": partial}).to_string();
        sandbox.write(".mu/packs/vendored.json", &text);
        sandbox.mu(&["get", "--json"]).fails_with("integrity");
    }
}

#[test]
fn a_cache_that_was_cleaned_costs_one_verification() {
    let sandbox = checkout();
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["cache", "clean"]).ok();
    sandbox.mu(&["list"]).ok().does_not_say(&["not installed"]);
    sandbox.mu(&["get", "--offline"]).ok().says(&["up to date ("]);
    // Packs in place are recognized again, so that they can be replaced and removed.
    sandbox.mu(&["cache", "clean"]).ok();
    sandbox.mu(&["downgrade", "aws/ec2#1.0.0"]).ok();
    sandbox.mu(&["cache", "clean"]).ok();
    sandbox.mu(&["remove", "aws/ec2"]).ok();
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com"));
    // So is a pack that makes room for another one inside of it.
    let files = Package::new("aws", "1.0.0").file("vpc/own.txt", "its own").file("top.txt", "t");
    sandbox.publish(&[files]);
    sandbox.mu(&["add", "aws", "aws/vpc"]).ok();
    sandbox.mu(&["cache", "clean"]).ok();
    sandbox.mu(&["get", "--offline"]).ok().says(&["up to date ("]);
    sandbox.mu(&["remove", "aws", "aws/vpc"]).ok();
    assert!(!sandbox.has("work/.mu/packs/.mu/partial.json"));
    // A pack that changed meanwhile is not mistaken for the original.
    sandbox.mu(&["add", "aws/ec2"]).ok();
    sandbox.mu(&["cache", "clean"]).ok();
    let file = sandbox.path("work/.mu/packs/hub.mu.com/aws/ec2/Mu.yaml");
    fs::remove_file(&file).expect("is ours");
    fs::write(&file, "name: aws/ec2\nversion: 1.1.0\ndescription: EVIL\n").expect("is ours");
    sandbox.mu(&["get"]).fails().says(&["aws/ec2` is in the way"]);
}

#[test]
fn a_folder_of_another_user_is_refused_with_the_line_that_allows_it() {
    let sandbox = checkout();
    let work = sandbox.path("work");
    // Only the superuser can give a folder away; the check itself is also tested separately.
    if std::os::unix::fs::chown(work.join(".mu"), Some(4711), None).is_err() {
        return;
    }
    for arguments in COMMANDS.iter().filter(|arguments| arguments[0] != "init") {
        let run = sandbox.mu(arguments);
        assert_eq!(run.status, 1, "{}", run.shown());
        run.says(&["belongs to another user", "mu config set --global trust.workspaces"]);
    }
    let config = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    let own = format!("{config}trust: {{workspaces: [\"{}\"]}}\n", work.display());
    fs::write(sandbox.path("home/.mu/config.yaml"), own).expect("is ours");
    sandbox.mu(&["get"]).ok();
    // A workspace does not trust itself.
    sandbox.write(".mu/workspace.yaml", "trust: {workspaces: [\"*\"]}\n");
    sandbox.mu(&["get"]).fails().says(&["cannot declare itself trusted"]);
}

#[test]
fn a_repository_of_another_user_is_refused_with_the_line_that_trusts_it() {
    let (mut sandbox, origin) = (Sandbox::new(), Origin::new("theirs"));
    // Git would put a file in the place of `/dev/null`, which tests have there.
    sandbox.set("GIT_CONFIG_GLOBAL", &sandbox.path("gitconfig").display().to_string());
    origin.commit(&[("Mu.yaml", "name: acme/theirs\nversion: 1.0.0\n")]);
    let own = origin.folder().join(".git");
    let own = if own.is_dir() { own } else { origin.folder().to_owned() };
    if std::os::unix::fs::chown(&own, Some(4711), None).is_err() {
        return;
    }
    let reference = format!("git+file://{}", origin.folder().display());
    let run = sandbox.mu(&["get", &reference]).fails();
    run.says(&["belongs to another user", "if you trust its owner: `git config --global --add"]);
    sandbox.write("../gitconfig", &format!("[safe]\n\tdirectory = {}\n", own.display()));
    sandbox.mu(&["get", &reference]).ok();
}

#[test]
fn a_folder_for_everybodys_files_is_not_searched_for_packages() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = checkout();
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is ours");
    sandbox.write("aws/vpc/Mu.yaml", "name: aws/vpc\nversion: 1.0.0\ndescription: EVIL\n");
    sandbox.mu(&["get"]).ok().says(&["aws/vpc"]);
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/vpc"), "the one in the workspace is used");
    fs::set_permissions(sandbox.path("work"), fs::Permissions::from_mode(0o1777)).expect("is ours");
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/vpc"), "what lies about is not used");
}

#[test]
fn a_symlinked_pack_is_whole_or_made_again() {
    let sandbox = checkout();
    sandbox.write(".mu/workspace.yaml", "link: symlink\n");
    sandbox.mu(&["get"]).ok();
    let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws/ec2");
    let stored = fs::read_link(&pack).expect("is a link");
    // The store lost the tree, or its content changed after it was checked.
    fs::remove_dir_all(stored.parent().expect("is in a folder")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert!(pack.join("Mu.yaml").exists());
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is ours");
    fs::remove_file(stored.join("Mu.yaml")).expect("is ours");
    fs::write(stored.join("Mu.yaml"), "name: aws/ec2\nversion: 1.1.0\ndescription: EVIL\n")
        .expect("is ours");
    sandbox.mu(&["get"]).ok().says(&["was changed; fetching it again"]);
    let text = fs::read_to_string(pack.join("Mu.yaml")).expect("is there");
    assert!(!text.contains("EVIL"), "{text}");
    // If somebody replaces mu's link by another one, that is not followed.
    fs::remove_file(&pack).expect("is ours");
    symlink(sandbox.path("victim"), &pack).expect("can be made");
    sandbox.mu(&["get"]).ok();
    assert_eq!(fs::read_link(&pack).expect("is a link"), stored);
    assert!(sandbox.has("victim/file"));
}

#[test]
fn locks_and_the_cache_are_closed_to_other_users() {
    let sandbox = checkout();
    let umask = "umask 022 && exec \"$0\" \"$@\"";
    let mu = sandbox.command(&["get"]);
    let mut command = Command::new(mu_testing::program("sh"));
    command.args(["-c", umask]).arg(mu.get_program()).args(mu.get_args());
    command.env_clear().current_dir(sandbox.path("work"));
    command.envs(mu.get_envs().filter_map(|(name, value)| Some((name, value?))));
    fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    sandbox.run(&["get"], command).ok();
    let mode = |path: &Path| path.metadata().expect("is there").mode() & 0o777;
    assert_eq!(mode(&sandbox.path("cache")), 0o700);
    let mut locks = 0;
    for entry in WalkDir::new(sandbox.root()).into_iter().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_lock = name == "lock" || name.ends_with(".lock") && name != "Mu.lock";
        if is_lock && entry.file_type().is_file() && !entry.path().starts_with(sandbox.path("hub"))
        {
            locks += 1;
            assert_eq!(mode(entry.path()), 0o600, "{}", entry.path().display());
        }
    }
    assert!(locks >= 2, "{locks} locks");
}
