//! Folders outside of the workspace as packages: which ones a workspace may take, and what its user is asked.

use std::fs;

use crate::support::git::git;
use crate::support::{Package, Sandbox, write};

#[test]
fn a_folder_of_the_repository_around_the_workspace_needs_no_question() {
    // As in a repository that has the workspace and a library side by side.
    let sandbox = Sandbox::new();
    for name in ["mono/app", "mono/lib"] {
        fs::create_dir_all(sandbox.path(name)).expect("can be made");
    }
    git(&sandbox.path("mono"), &["init", "-q"]);
    sandbox.place("mono/lib", &Package::new("acme/lib", "1.0.0"));
    write(&sandbox.path("mono/app"), "Mu.yaml", "name: acme/app\ndependencies: [../lib]\n");
    sandbox.mu_in("mono/app", &["get"]).ok();
    assert!(sandbox.has("mono/app/.mu/packs"));
    // A folder inside needs no manifest.
    fs::remove_file(sandbox.path("mono/lib/Mu.yaml")).expect("is there");
    sandbox.mu_in("mono/app", &["get"]).ok();
}

#[test]
fn a_package_beside_a_workspace_without_a_repository_needs_no_question() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("unpacked/app")).expect("can be made");
    for place in ["unpacked/lib", "far"] {
        sandbox.place(place, &Package::new("acme/lib", "1.0.0"));
    }
    let depends_on = |folder: &str| {
        let text = format!("name: acme/app\ndependencies: [{folder}]\n");
        write(&sandbox.path("unpacked/app"), "Mu.yaml", text);
    };
    depends_on("../lib");
    sandbox.mu_in("unpacked/app", &["get"]).ok();
    depends_on("../../far");
    sandbox.mu_in("unpacked/app", &["get", "--json"]).fails_with("untrusted");
    // What is no package is somebody's, wherever it is.
    write(&sandbox.path("unpacked/private"), "key", "secret");
    depends_on("../private");
    sandbox.mu_in("unpacked/app", &["get", "--json"]).fails_with("untrusted");
    assert!(!sandbox.has("unpacked/app/.mu/packs/localhost/private"));
}

#[test]
fn a_folder_further_out_is_asked_about_once() {
    let sandbox = Sandbox::with_dependencies(&["../lib"]);
    sandbox.place("lib", &Package::new("acme/lib", "1.0.0"));
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["nobody has agreed to use it", "trust: {folders: [[DIR]/lib]}"]);
    sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    assert!(!sandbox.has("work/.mu/packs/localhost"));
    sandbox.mu(&["get", "--yes"]).ok();
    // The answer is kept for this workspace, outside of it.
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["get", "--frozen"]).ok();
    assert!(sandbox.has("home/.mu/trust/folders.json"));
    fs::create_dir_all(sandbox.path("other")).expect("can be made");
    write(&sandbox.path("other"), "Mu.yaml", "name: acme/other\ndependencies: [../lib]\n");
    sandbox.mu_in("other", &["get", "--json"]).fails_with("untrusted");
}

#[test]
fn a_lock_alone_brings_no_folder_from_further_out() {
    let sandbox = Sandbox::with_dependencies(&["../lib"]);
    sandbox.place("lib", &Package::new("acme/lib", "1.0.0"));
    sandbox.mu(&["get", "--yes"]).ok();
    fs::remove_dir_all(sandbox.path("home/.mu/trust")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--frozen", "--json"]).fails_with("untrusted");
    assert!(!sandbox.has("work/.mu/packs/localhost"));
}

#[test]
fn the_users_own_settings_trust_folders() {
    let sandbox = Sandbox::with_dependencies(&["../lib"]);
    sandbox.place("lib", &Package::new("acme/lib", "1.0.0"));
    let config = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    for pattern in ["lib", "*"] {
        let folder = sandbox.path(pattern).display().to_string();
        let text = format!("{config}trust: {{folders: [\"{folder}\"]}}\n");
        write(&sandbox.path("home/.mu"), "config.yaml", &text);
        sandbox.mu(&["get"]).ok();
        assert!(!sandbox.has("home/.mu/trust"));
    }
    write(&sandbox.path("home/.mu"), "config.yaml", &config);
    sandbox.write(".mu/workspace.yaml", "trust: {folders: [\"*\"]}\n");
    sandbox.mu(&["get"]).fails().says(&["a workspace cannot say which folders outside of it"]);
}

#[test]
fn a_folder_that_a_command_names_needs_no_question() {
    for command in ["get", "add"] {
        let sandbox = Sandbox::with_dependencies(&[]);
        sandbox.place("lib", &Package::new("acme/lib", "1.0.0"));
        sandbox.mu(&["info", "../lib"]).ok();
        sandbox.mu(&[command, "../lib"]).ok();
        sandbox.mu(&["get"]).ok();
    }
}

#[test]
fn a_folder_without_a_manifest_outside_is_no_package() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("private")).expect("can be made");
    write(&sandbox.path("private"), "id_rsa", "TOP SECRET");
    let private = sandbox.path("private").display().to_string();
    for dependency in ["../private".to_owned(), private.clone(), format!("file://{private}")] {
        sandbox.asks_for(&[&dependency]);
        for command in [&["get", "--json"][..], &["get", "--yes", "--json"]] {
            sandbox.mu(command).fails_with("untrusted");
            assert!(!sandbox.has("work/.mu/packs/localhost"), "{dependency}");
        }
    }
    // Nor by a registry, an override, or a link of the checkout.
    sandbox.asks_for(&["x.example/a"]);
    for settings in [
        format!(
            "registries: {{x.example/: {{provider: path, url: \"file://{}\"}}}}\n",
            sandbox.root().display()
        ),
        "overrides: {x.example/a: ../private}\n".to_owned(),
        "overrides: {x.example/a: ./link}\n".to_owned(),
    ] {
        fs::create_dir_all(sandbox.path("a")).expect("can be made");
        sandbox.write(".mu/workspace.yaml", &settings);
        let link = sandbox.path("work/link");
        if !link.is_symlink() {
            std::os::unix::fs::symlink(sandbox.path("private"), &link).expect("can be made");
        }
        sandbox.mu(&["get", "--yes", "--json"]).fails_with("untrusted");
    }
}

#[test]
fn folders_of_the_users_settings_are_never_packages() {
    let sandbox = Sandbox::new();
    // Whatever is in them, and whoever agrees: also in a repository of the whole home folder.
    git(&sandbox.path("home"), &["init", "-q"]);
    fs::create_dir_all(sandbox.path("home/src/app")).expect("can be made");
    for folder in [".ssh", ".config/x", ".mu", ".gnupg", "."] {
        let place = sandbox.path("home").join(folder);
        fs::create_dir_all(&place).expect("can be made");
        write(&place, "Mu.yaml", "name: acme/x\nversion: 1.0.0\n");
        let text = format!("name: acme/app\ndependencies: [\"../../{folder}\"]\n");
        write(&sandbox.path("home/src/app"), "Mu.yaml", &text);
        let run = sandbox.mu_in("home/src/app", &["get", "--yes", "--json"]);
        run.fails_with("untrusted");
        assert!(!sandbox.has("home/src/app/.mu/packs/localhost"), "{folder}");
    }
}

#[test]
fn the_repository_of_the_whole_home_folder_makes_nothing_the_authors() {
    let sandbox = Sandbox::new();
    git(&sandbox.path("home"), &["init", "-q"]);
    for folder in ["home/src/app", "home/private"] {
        fs::create_dir_all(sandbox.path(folder)).expect("can be made");
    }
    write(&sandbox.path("home/private"), "Mu.yaml", "name: acme/x\nversion: 1.0.0\n");
    write(
        &sandbox.path("home/src/app"),
        "Mu.yaml",
        "name: acme/app\ndependencies: [../../private]\n",
    );
    sandbox.mu_in("home/src/app", &["get", "--json"]).fails_with("untrusted");
}

#[test]
fn a_repository_of_the_users_settings_is_taken_only_if_the_user_names_it() {
    // As those who keep their home folder, or the settings in it, in Git.
    for place in ["home", "home/.dotfiles", "home/.config/x"] {
        let sandbox = Sandbox::new();
        let folder = sandbox.path(place);
        write(&folder, "Mu.yaml", "name: acme/private\nversion: 1.0.0\n");
        write(&folder, "secret", "TOP SECRET");
        git(&folder, &["init", "--quiet", "."]);
        git(&folder, &["add", "Mu.yaml", "secret"]);
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        git(&folder, &[&who[..], &["commit", "--quiet", "--message", "a"]].concat());
        git(&folder, &["tag", "v1.0.0"]);
        let (root, shown) =
            (folder.parent().expect("is in the sandbox").display(), folder.display());
        let name = folder.file_name().expect("has a name").to_string_lossy().into_owned();
        let reference = format!("git+file://{shown}#^1");
        let led = format!("registries: {{git.example/: \"git+file://{root}/\"}}\n");
        let overridden = format!("overrides: {{hub.mu.com/a/b: \"{reference}\"}}\n");
        let ways =
            [(&*reference, ""), (&*format!("git.example/{name}#^1"), &*led), ("a/b", &*overridden)];
        for (dependency, settings) in ways {
            // A name has no dot in front.
            if dependency.starts_with("git.example/.") {
                continue;
            }
            sandbox.write(".mu/workspace.yaml", settings);
            sandbox.asks_for(&[dependency]);
            for command in ["get", "resolve", "update"] {
                sandbox.mu(&[command, "--yes", "--json"]).fails_with("untrusted");
            }
            assert!(!sandbox.has("work/.mu/packs"), "{dependency}");
        }
        let run = sandbox.mu(&["get"]).fails();
        run.says(&["is refused: your own settings are in there", "trust: {folders: ["]);
        // The user may, and so may the user's own settings.
        sandbox.write(".mu/workspace.yaml", "");
        sandbox.asks_for(&[]);
        sandbox.mu(&["add", &format!("git+file://{shown}")]).ok();
        // What the cache has of it is no way around that.
        fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
        fs::remove_dir_all(sandbox.path("cache/store")).expect("is there");
        for command in [&["get", "--offline", "--json"][..], &["get", "--locked", "--json"]] {
            sandbox.mu(command).fails_with("untrusted");
        }
        sandbox.trusts_folder(place);
        sandbox.mu(&["get"]).ok();
    }
}

#[test]
fn a_folder_is_used_whatever_its_version_is() {
    for (version, shown) in [
        ("version: 1.0.0-rc.1", "1.0.0-rc.1"),
        ("version: 0.1.0\nappVersion: 3.2.1\nversioning: composite", "3.2.1-0.1.0"),
        ("version: 0.1.0-rc.1\nappVersion: 3.2.1\nversioning: composite", "3.2.1-0.1.0-rc.1"),
    ] {
        let sandbox = Sandbox::with_dependencies(&["../lib"]);
        write(&sandbox.path("lib"), "Mu.yaml", format!("name: acme/lib\n{version}\n"));
        sandbox.mu(&["get", "--yes"]).ok().says(&[&format!("+ ../lib {shown}")]);
        sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
        sandbox.mu(&["list"]).ok().says(&[shown]);
        sandbox.mu(&["update"]).ok().says(&["up to date"]);
        // A range still says which versions are meant.
        sandbox.asks_for(&["../lib#^1.0"]);
        let run = sandbox.mu(&["get"]).fails();
        run.says(&[shown]);
    }
}
