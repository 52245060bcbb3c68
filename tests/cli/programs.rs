//! Which programs run, and with which arguments: nothing that a checkout brings is run, and nothing that a lock, an
//! index or a repository says is an option of `git`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use mu_testing::OciServer;
use mu_testing::oci::Behaviour;
use serde_json::json;

use crate::support::git::{HttpServer, Origin, git};
use crate::support::{Package, Sandbox};

/// What a text from elsewhere has for a commit: an option of `git fetch` that names a program.
const HOSTILE: &str = "--upload-pack=touch ../../ran; touch ran; false";

/// Writes a program that leaves a file `ran` in the sandbox.
fn trap(sandbox: &Sandbox, path: &str) {
    let ran = sandbox.path("ran").display().to_string();
    script(sandbox, path, &format!("touch '{ran}'\nexit 1"));
}

fn script(sandbox: &Sandbox, path: &str, text: &str) {
    mu_testing::write(sandbox.root(), path, format!("#!/bin/sh\n{text}\n"));
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(sandbox.path(path), mode).expect("is ours");
}

/// Whether a file `ran` is anywhere in the sandbox.
fn ran(sandbox: &Sandbox) -> bool {
    let entries = walkdir::WalkDir::new(sandbox.root()).into_iter().filter_map(Result::ok);
    entries.filter(|entry| entry.file_name() == "ran").count() > 0
}

/// A path of folders, the first of which is one that only the sandbox has.
fn path(first: &str) -> String {
    format!("{first}:{}", std::env::var("PATH").expect("there is one"))
}

/// A workspace that is a checkout, with a repository of packages as plain files in it, and a lock.
fn checkout(reference: &str, settings: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let repository = sandbox.path("work/repos/x/y.git");
    fs::create_dir_all(&repository).expect("is made");
    git(&repository, &["init", "--quiet", "--initial-branch=main", "."]);
    fs::write(repository.join("Mu.yaml"), "name: x/y\nversion: 1.0.0\n").expect("is written");
    git(&repository, &["add", "--all"]);
    git(&repository, &["commit", "--quiet", "--message", "begin"]);
    git(&repository, &["tag", "v1.0.0"]);
    let place = sandbox.path("work/repos").display().to_string();
    sandbox.write(".mu/workspace.yaml", &settings.replace("PLACE", &place));
    sandbox.asks_for(&[&reference.replace("PLACE", &place)]);
    sandbox.mu(&["get"]).ok();
    sandbox
}

#[test]
fn a_commit_in_a_lock_that_is_an_option_of_git_is_refused() {
    let registry = "registries: {git.example/: {provider: git, url: ./repos}}\n";
    let overridden = "overrides: {git.example/x/y: \"git+file://PLACE/x/y.git#^1\"}\n";
    for (reference, settings) in [
        ("git.example/x/y#^1", registry),
        ("git+file://PLACE/x/y.git#^1", ""),
        ("git.example/x/y#^1", overridden),
    ] {
        let sandbox = checkout(reference, settings);
        let honest = sandbox.read("Mu.lock");
        let (line, commit) = honest
            .lines()
            .zip(1..)
            .find_map(|(line, number)| Some((number, line.trim().strip_prefix("commit: ")?)))
            .expect("a package in Git has a commit");
        for (hostile, text) in [
            // As mu writes a lock, and in another layout of YAML.
            (HOSTILE, honest.replace(commit, &format!("\"{HOSTILE}\""))),
            (
                HOSTILE,
                honest.replace(&format!("commit: {commit}"), &format!("commit:   '{HOSTILE}'")),
            ),
            (&commit[1..], honest.replace(commit, &commit[1..])),
            ("HEAD", honest.replace(commit, "HEAD")),
        ] {
            sandbox.write("Mu.lock", &text);
            for command in
                [&["edit", "x/y"][..], &["edit", "x/y", "--url", "PLACE"], &["get"], &["list"]]
            {
                let place = format!("file://{}/x/y.git", sandbox.path("work/repos").display());
                let command: Vec<&str> = command
                    .iter()
                    .map(|word| if *word == "PLACE" { &*place } else { word })
                    .collect();
                let said = format!("`{hostile}` is not a commit: expected 40 or 64 hexadecimal");
                sandbox.mu(&command).fails().says(&["Mu.lock", &format!(":{line}:"), &said]);
            }
            assert!(!ran(&sandbox), "{text}");
        }
        sandbox.write("Mu.lock", &honest);
        sandbox.mu(&["list"]).ok();
    }
}

#[test]
fn a_commit_in_the_list_of_edits_that_is_an_option_of_git_is_refused() {
    let sandbox = checkout(
        "git.example/x/y#^1",
        "registries: {git.example/: {provider: git, url: ./repos}}\n",
    );
    sandbox.mu(&["edit", "git.example/x/y"]).ok();
    let edits = sandbox.read(".mu/edits.json");
    let written: serde_json::Value = serde_json::from_str(&edits).expect("is JSON");
    let commit = written["edits"][0]["commit"].as_str().expect("is text");
    sandbox.write(".mu/edits.json", &edits.replace(commit, HOSTILE));
    for command in [&["edit"][..], &["edit", "--done", "x/y"], &["get"]] {
        sandbox.mu(command).fails().says(&["edits.json", "is not a commit", "line 9"]);
    }
    assert!(!ran(&sandbox));
    sandbox.write(".mu/edits.json", &edits);
    sandbox.mu(&["edit"]).ok();
}

#[test]
fn a_version_whose_index_line_names_no_commit_is_not_used() {
    let sandbox = Sandbox::new();
    let bare = sandbox.path("repos/y.git").display().to_string();
    sandbox.publish(&[
        Package::new("x/y", "1.0.0"),
        Package::new("x/y", "1.1.0").lies("commit", json!(HOSTILE)),
    ]);
    sandbox.asks_for(&["x/y#^1"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/x/y 1.0.0"]);
    sandbox.mu(&["versions", "x/y"]).ok().says(&[
        "1.1.0",
        "its index line cannot be read",
        "is not a commit",
    ]);
    sandbox
        .mu(&["get", "x/y#1.1.0"])
        .fails()
        .says(&["its index line cannot be read", "is not a commit"]);
    sandbox.mu(&["edit", "x/y", "--url", &format!("file://{bare}")]).fails();
    assert!(!ran(&sandbox));
}

/// A `git` that writes down its arguments, each call on a line, and is the real one then.
fn watched_git(sandbox: &mut Sandbox) -> PathBuf {
    let asked = sandbox.path("asked");
    let folders = path("/nowhere");
    let mut found = std::env::split_paths(&folders).map(|folder| folder.join("git"));
    let real = found.find(|file| file.is_file()).expect("the tests need git");
    let text = format!(
        "for word; do printf '%s\\t' \"$word\" >> '{0}'; done\necho >> '{0}'\nexec '{1}' \"$@\"",
        asked.display(),
        real.display()
    );
    script(sandbox, "tools/git", &text);
    let tools = sandbox.path("tools").display().to_string();
    sandbox.set("PATH", &path(&tools));
    asked
}

/// Checks that everything in these calls that looks like an option is one of mu's own; returns the calls.
#[track_caller]
fn only_own_options(asked: &Path) -> Vec<Vec<String>> {
    const OWN: [&str; 21] = [
        "--",
        "--end-of-options",
        "--filter=blob:none",
        "--get-regexp",
        "--init",
        "--list",
        "--max-count=1",
        "--no-checkout",
        "--no-track",
        "--null",
        "--quiet",
        "--recursive",
        "--version",
        "-C",
        "-b",
        "-c",
        "-e",
        "credential.interactive=false",
        "safe.bareRepository=explicit",
        "protocol.ext.allow=never",
        "uploadpack.allowFilter=true",
    ];
    let text = fs::read_to_string(asked).expect("git was run");
    let calls: Vec<Vec<String>> =
        text.lines().map(|line| line.split_terminator('\t').map(str::to_owned).collect()).collect();
    for call in &calls {
        for pair in call.windows(2) {
            let is_option = pair[1].starts_with('-') || pair[0] == "-c";
            assert!(!is_option || OWN.contains(&&*pair[1]), "{call:?}");
        }
        assert!(call.first().is_none_or(|first| OWN.contains(&&**first)), "{call:?}");
    }
    calls
}

#[test]
fn no_name_from_a_repository_is_an_option_of_git() {
    let mut origin = Origin::new("acme/inner.git");
    let inner = origin.commit(&[("inner.txt", "inner\n")]);
    origin.add("acme/mono.git");
    let commit = origin.commit(&[("Mu.yaml", "name: acme/mono\n"), ("a.txt", "a\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let names = ["-u", "-v2.0.0", "--upload-pack=touch${IFS}ran", "--end-of-options", "--"];
    for name in names {
        origin.git(&["update-ref", &format!("refs/tags/{name}"), &commit]);
        origin.git(&["update-ref", &format!("refs/heads/{name}"), &commit]);
    }
    let server = HttpServer::start(origin.root());
    let (root, url) = (server.root(), format!("{}acme/mono.git", server.root()));
    let mut sandbox = Sandbox::new();
    let asked = watched_git(&mut sandbox);
    sandbox.asks_for(&[&format!("git+{url}#^1")]);
    sandbox.mu(&["get"]).ok();
    for name in names {
        for command in [&["get"][..], &["update"], &["edit", "--url"], &["info"], &["versions"]] {
            let named = format!("git+{url}#{name}");
            sandbox.mu(&[command, &[&*named]].concat());
            sandbox.mu(&[command, &["--", name]].concat());
        }
        sandbox
            .mu(&["edit", "acme/mono", &format!("--branch={name}"), "--json"])
            .fails_with("usage");
    }
    sandbox.mu(&["edit", "acme/mono"]).ok();
    sandbox.mu(&["edit", "--done", "acme/mono"]).ok();
    let id = format!("{}/acme/mono", server.host());
    let is_cloned = |calls: &[Vec<String>]| {
        let has = |call: &Vec<String>, word: &str| call.iter().any(|one| one == word);
        ["clone", "checkout", "cat-file", "ls-remote"]
            .iter()
            .all(|word| calls.iter().any(|call| has(call, word)))
    };
    assert!(is_cloned(&only_own_options(&asked)));
    // A version that is no version, as the tag to begin an edit at.
    sandbox.publish(&[Package::new("acme/plain", "1.0.0")]);
    sandbox.mu(&["get", "acme/plain"]).ok();
    sandbox.mu(&["edit", "acme/plain", "--url", &format!("{url}#--upload-pack=x")]).fails();
    sandbox.mu(&["edit", "acme/plain", "--url", &url]).fails();
    // Submodules whose URLs are options, and programs.
    for (number, place) in [
        "-u./x",
        "--upload-pack=touch ran",
        "ext::sh -c touch% ran",
        &format!("{root}acme/inner.git"),
    ]
    .iter()
    .enumerate()
    {
        origin.commit(&[(
            ".gitmodules",
            &format!("[submodule \"sub\"]\n\tpath = sub\n\turl = {place}\n"),
        )]);
        origin.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{inner},sub")]);
        origin.git(&["commit", "--quiet", "--message", "a submodule"]);
        origin.git(&["tag", &format!("v1.{}.0", number + 1)]);
        let is_fine = place.starts_with("http");
        let run = sandbox.mu(&["get", &format!("git+{url}#v1.{}.0", number + 1)]);
        assert_eq!(run.status == 0, is_fine, "{place}: {}", run.stderr);
        let lock = sandbox.read("Mu.lock");
        let locked = origin.git(&["rev-parse", "HEAD"]);
        if !is_fine {
            let before = sandbox.lock()["packages"].clone();
            let old =
                before.as_array().expect("is a list").iter().find(|package| package["id"] == id);
            let old = old.expect("is locked")["commit"].as_str().expect("is text").to_owned();
            sandbox.write("Mu.lock", &lock.replace(&old, &locked));
        }
        let run = sandbox.mu(&["edit", &id]);
        assert_eq!(run.status == 0, is_fine, "{place}: {}", run.stderr);
        sandbox.write("Mu.lock", &lock);
    }
    let calls = only_own_options(&asked);
    assert!(calls.iter().any(|call| call.iter().any(|word| word == "submodule")));
    assert!(!ran(&sandbox));
}

#[test]
fn a_program_in_a_folder_of_the_checkout_is_not_run() {
    let registry = OciServer::start(Behaviour {
        password: Some(("ada".to_owned(), "hunter2".to_owned())),
        ..Behaviour::default()
    });
    let oci = format!("oci://{}/x", registry.host());
    let http = format!("git+http://{}/x.git", registry.host());
    for (name, reference) in [
        ("docker-credential-desktop", &*oci),
        ("git", &*http),
        ("ssh", "ssh://git@127.0.0.1:1/x/y"),
        ("sh", "ssh://git@127.0.0.1:1/x/y"),
    ] {
        let mut sandbox = Sandbox::new();
        mu_testing::write(
            sandbox.root(),
            "home/.docker/config.json",
            "{\"credsStore\": \"desktop\"}",
        );
        if name == "sh" {
            sandbox.set("GIT_SSH_COMMAND", "ssh -4");
        }
        sandbox.asks_for(&[reference]);
        sandbox.write(".git/HEAD", "ref: refs/heads/main\n");
        sandbox.write("sub/Mu.yaml", &format!("name: sub\ndependencies: [\"{reference}\"]\n"));
        for folder in ["work", "work/sub", "work/bin", "work/sub/.bin", "tools"] {
            trap(&sandbox, &format!("{folder}/{name}"));
        }
        symlink(sandbox.path("work/bin"), sandbox.path("link")).expect("is made");
        let real = |place: &str| sandbox.path(place).display().to_string();
        let folders = [
            real("work/bin"),
            real("work"),
            real("link"),
            real("work/sub/.bin"),
            real("work/sub/../bin"),
        ];
        let mut folders: Vec<String> = folders.into();
        folders.extend([String::new(), ".".to_owned(), "bin".to_owned(), "./bin".to_owned()]);
        let tools = real("tools");
        for first in &folders {
            for (place, arguments) in [
                ("work", &["get"][..]),
                ("work/sub", &["get"]),
                ("work", &["get", "--global", reference]),
                ("work", &["doctor"]),
            ] {
                let mut command = sandbox.command(arguments);
                command.env("PATH", path(first)).current_dir(sandbox.path(place));
                let run = sandbox.run(arguments, command);
                assert!(!ran(&sandbox), "{name} in `{first}`: {}", run.stderr);
            }
        }
        // The user's own folder, which comes first.
        sandbox.set("PATH", &path(&tools));
        sandbox.mu(&["get"]).fails();
        assert!(ran(&sandbox), "{name} is not run from the user's folder either");
    }
}

#[test]
fn what_runs_finds_nothing_in_the_checkout_either() {
    let mut sandbox = Sandbox::new();
    let seen = sandbox.path("seen").display().to_string();
    script(&sandbox, "tools/ssh", &format!("echo \"$PATH\" >> '{seen}'; pwd >> '{seen}'; exit 1"));
    fs::create_dir_all(sandbox.path("work/bin")).expect("is made");
    let [tools, bin] = ["tools", "work/bin"].map(|name| sandbox.path(name).display().to_string());
    sandbox.set("PATH", &format!("{bin}:bin::.:{tools}:/usr/bin:/bin"));
    sandbox.asks_for(&["ssh://git@127.0.0.1:1/x/y"]);
    sandbox.mu(&["get"]).fails();
    let seen = fs::read_to_string(sandbox.path("seen")).expect("it was run");
    let lines: Vec<&str> = seen.lines().take(2).collect();
    assert_eq!(lines[0], format!("{tools}:/usr/bin:/bin"));
    assert!(Path::new(lines[1]).ends_with("cache/git") && !lines[1].contains("/work"), "{lines:?}");
    // A program that mu passes over is named.
    trap(&sandbox, "work/bin/git");
    sandbox.set("PATH", &bin);
    sandbox.mu(&["doctor"]).says(&["work/bin/git` is not run", "in the workspace"]);
    assert!(!ran(&sandbox));
}
