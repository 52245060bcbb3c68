//! What of a folder is the content of its package: the same for `mu pack` and for a folder that is a dependency.

// Tests make links as a user would.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::git::{REPOSITORY_FORMATS, git};
use crate::support::{Sandbox, write};

/// A repository with the workspace `mono/app`, which needs the package in `mono/lib`.
fn mono() -> Sandbox {
    let sandbox = Sandbox::new();
    for folder in ["mono/app/.mu", "mono/lib"] {
        fs::create_dir_all(sandbox.path(folder)).expect("can be made");
    }
    git(&sandbox.path("mono"), &["init", "-q"]);
    let mono = sandbox.path("mono");
    write(&mono, "app/.mu/workspace.yaml", "formats: [helm]\n");
    write(&mono, "app/Mu.yaml", "name: acme/app\nversion: 1.0.0\ndependencies: [../lib]\n");
    write(&mono, "lib/Mu.yaml", "name: acme/lib\nversion: 1.0.0\n");
    write(&mono, "lib/main.tf", "# main\n");
    sandbox
}

/// The paths of the package that is installed from `mono/lib`.
fn installed(sandbox: &Sandbox) -> Vec<String> {
    let pack = sandbox.path("mono/app/.mu/packs/localhost");
    let mut found = Vec::new();
    let mut folders = vec![pack.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("is there").flatten() {
            let kind = entry.file_type().expect("is there");
            if kind.is_dir() {
                folders.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(&pack).expect("is below").to_owned();
                let text = name.to_str().expect("is UTF-8").rsplit_once("lib/");
                found.extend(text.map(|(_, path)| path.to_owned()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_the_owner_would_not_pack_changes_no_lock() {
    let sandbox = mono();
    let mono = sandbox.path("mono");
    write(&mono, ".gitignore", "*.log\n.mu/packs/\n");
    write(&mono, "lib/.gitignore", ".terraform/\n");
    write(&mono, "lib/.muignore", "notes\n");
    sandbox.mu_in("mono/app", &["get"]).ok();
    let lock = sandbox.read("../mono/app/Mu.lock");
    let all = [".gitignore", ".muignore", "Mu.yaml", "main.tf"];
    assert_eq!(installed(&sandbox), all);
    for noise in [".terraform/x", "a.log", "notes/a", "lib-0.9.0.tgz", ".DS_Store"] {
        write(&mono, &format!("lib/{noise}"), "noise");
    }
    write(&mono, "lib/Mu.lock", "version: 1\nresolution: highest\npackages: []\n");
    sandbox.mu_in("mono/app", &["get", "--locked"]).ok();
    sandbox.mu_in("mono/app", &["get"]).ok();
    assert_eq!(sandbox.read("../mono/app/Mu.lock"), lock);
    assert_eq!(installed(&sandbox), all);
    // It is what `mu pack` packs.
    let packed = sandbox.mu_in("mono/lib", &["pack", "--list", "--json"]).ok().json();
    let files = packed["files"].as_array().expect("is a list").iter();
    let paths: Vec<&str> = files.map(|file| file["path"].as_str().expect("is text")).collect();
    assert_eq!(paths, all);
    assert!(lock.contains(packed["digest"].as_str().expect("is text")), "{lock}");
}

#[test]
fn an_error_about_a_changed_folder_names_it_and_the_first_file() {
    let sandbox = mono();
    sandbox.mu_in("mono/app", &["get"]).ok();
    for (path, text, said) in [
        ("lib/a.tf", "new", "`a.tf` is new"),
        ("lib/main.tf", "other", "`main.tf` has other content"),
        ("lib/main.tf", "", "`main.tf` is gone"),
    ] {
        match text {
            "" => fs::remove_file(sandbox.path("mono").join(path)).expect("is there"),
            text => write(&sandbox.path("mono"), path, text),
        }
        let run = sandbox.mu_in("mono/app", &["get", "--locked"]).fails();
        run.says(&["the folder `../lib`", "has changed since Mu.lock was written", said]);
        sandbox.mu_in("mono/app", &["get", "--locked", "--json"]).fails_with("lock-outdated");
        let _ = fs::remove_file(sandbox.path("mono/lib/a.tf"));
        write(&sandbox.path("mono"), "lib/main.tf", "# main\n");
        sandbox.mu_in("mono/app", &["get", "--locked"]).ok();
    }
}

#[test]
fn a_chart_is_what_helm_packs_without_the_archives_of_its_dependencies() {
    let sandbox = mono();
    let mono = sandbox.path("mono");
    fs::remove_file(mono.join("lib/Mu.yaml")).expect("is there");
    let chart =
        |name: &str, more: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n{more}");
    write(&mono, "base/Chart.yaml", chart("base", ""));
    let needs = "dependencies: [{name: base, version: 1.x, repository: 'file://../base'}]\n";
    write(&mono, "lib/Chart.yaml", chart("lib", needs));
    write(&mono, "lib/.helmignore", "notes/\n");
    write(&mono, "lib/charts/own-1.0.0.tgz", "an archive that its author put there");
    sandbox.mu_in("mono/app", &["get"]).ok();
    let lock = sandbox.read("../mono/app/Mu.lock");
    let all = [".helmignore", "Chart.yaml", "charts/own-1.0.0.tgz", "main.tf"];
    assert_eq!(installed(&sandbox), all);
    for noise in ["charts/base-1.0.0.tgz", "notes/a", "templates/.hidden"] {
        write(&mono, &format!("lib/{noise}"), "noise");
    }
    sandbox.mu_in("mono/app", &["get", "--locked"]).ok();
    assert_eq!(sandbox.read("../mono/app/Mu.lock"), lock);
    write(&mono, "lib/charts/own-1.0.0.tgz", "another");
    let run = sandbox.mu_in("mono/app", &["get", "--locked"]).fails();
    run.says(&["`charts/own-1.0.0.tgz` has other content"]);
}

#[test]
fn links_to_what_is_the_authors_are_its_content() {
    let sandbox = mono();
    let mono = sandbox.path("mono");
    write(&mono, "LICENSE", "MIT");
    write(&mono, "shared/a.tf", "a");
    write(&mono, "shared/deep/b.tf", "b");
    symlink("../../LICENSE", mono.join("shared/deep/LICENSE")).expect("can be made");
    symlink("a.tf", mono.join("shared/same.tf")).expect("can be made");
    for (link, to) in [
        ("LICENSE", "../LICENSE"),
        ("modules", "../shared"),
        ("inside", "main.tf"),
        ("around", "../lib/main.tf"),
        ("dangling", "nowhere"),
    ] {
        symlink(to, mono.join("lib").join(link)).expect("can be made");
    }
    sandbox.mu_in("mono/app", &["get"]).ok();
    let all = [
        "LICENSE",
        "Mu.yaml",
        "around",
        "dangling",
        "inside",
        "main.tf",
        "modules/a.tf",
        "modules/deep/LICENSE",
        "modules/deep/b.tf",
        "modules/same.tf",
    ];
    assert_eq!(installed(&sandbox), all);
    let packed = sandbox.mu_in("mono/lib", &["pack", "--list", "--json"]).ok().json();
    let lock = sandbox.read("../mono/app/Mu.lock");
    assert!(lock.contains(packed["digest"].as_str().expect("is text")), "{lock}");
}

#[test]
fn links_to_what_is_somebody_elses_are_refused_unless_they_are_left_out() {
    let sandbox = mono();
    let mono = sandbox.path("mono");
    write(sandbox.root(), "secret", "precious");
    write(&mono, "shared/.env", "PASSWORD=x");
    let link = mono.join("lib/link");
    for out in ["../../secret", "../.git/config", "../app/.mu/workspace.yaml", "/etc/passwd"] {
        symlink(out, &link).expect("can be made");
        for (folder, command) in [("mono/app", &["get"][..]), ("mono/lib", &["pack", "--list"])] {
            let run = sandbox.mu_in(folder, command).fails();
            run.says(&["lib/link`", "neither in its package nor in the repository"]);
        }
        // A rule leaves it out anyway.
        write(&mono, "lib/.muignore", "link\n");
        sandbox.mu_in("mono/app", &["get"]).ok();
        sandbox.mu_in("mono/lib", &["pack", "--list"]).ok();
        fs::remove_file(mono.join("lib/.muignore")).expect("is there");
        fs::remove_file(&link).expect("is there");
    }
    // Nor does a link give a secret another name.
    symlink("../shared/.env", &link).expect("can be made");
    sandbox.mu_in("mono/lib", &["pack"]).fails().says(&["looks like a secret: `link`"]);
    fs::remove_file(&link).expect("is there");
    // A way around has no end.
    symlink("../lib", &link).expect("can be made");
    sandbox.mu_in("mono/app", &["get"]).fails().says(&["leads to a folder that it is in"]);
    fs::remove_file(&link).expect("is there");
    // And many ways to the same are one too many.
    for level in 0..10 {
        let folder = mono.join(format!("many/{level}"));
        fs::create_dir_all(&folder).expect("can be made");
        for name in ["a", "b", "c", "d"] {
            symlink(format!("../{}", level + 1), folder.join(name)).expect("can be made");
        }
    }
    fs::create_dir_all(mono.join("many/10")).expect("can be made");
    symlink("../many/0", &link).expect("can be made");
    sandbox
        .mu_in("mono/app", &["get"])
        .fails()
        .says(&["is reached through links in more than 1,000 ways"]);
}

#[test]
fn a_package_whose_folder_is_a_link_is_what_it_leads_to() {
    let sandbox = mono();
    let mono = sandbox.path("mono");
    fs::create_dir_all(mono.join("real")).expect("can be made");
    fs::rename(mono.join("lib"), mono.join("real/lib")).expect("can be moved");
    write(&mono, "real/.gitignore", "*.log\n");
    write(&mono, "real/lib/a.log", "noise");
    symlink("real/lib", mono.join("lib")).expect("can be made");
    sandbox.mu_in("mono/app", &["get"]).ok();
    assert_eq!(installed(&sandbox), ["Mu.yaml", "main.tf"]);
    sandbox.mu_in("mono/app", &["get", "--locked"]).ok();
}

#[test]
fn links_that_git_makes_files_of_change_no_lock() {
    for format in ["--object-format=sha1", "--object-format=sha256"] {
        let sandbox = mono();
        let mono = sandbox.path("mono");
        fs::remove_dir_all(mono.join(".git")).expect("is there");
        git(&mono, &["init", "-q", format]);
        write(&mono, ".gitignore", ".mu/packs/\n");
        write(&mono, "LICENSE", "MIT\n");
        for (link, to) in [
            ("LICENSE", "../LICENSE"),
            ("inside", "main.tf"),
            ("deep/up", "../main.tf"),
            ("dangling", "nowhere"),
        ] {
            let link = mono.join("lib").join(link);
            fs::create_dir_all(link.parent().expect("has one")).expect("can be made");
            symlink(to, link).expect("can be made");
        }
        sandbox.mu_in("mono/app", &["get"]).ok();
        git(&mono, &["add", "."]);
        git(&mono, &["commit", "-qm", "all"]);
        let there = sandbox.path("there");
        let [from, to] = [&mono, &there].map(|path| path.to_str().expect("is UTF-8"));
        // As Git for Windows clones, where links need a right that few have.
        git(sandbox.root(), &["clone", "-q", "-c", "core.symlinks=false", from, to]);
        let text = fs::read_to_string(there.join("lib/inside")).expect("is there");
        assert_eq!(text, "main.tf");
        let run = sandbox.mu_in("there/app", &["get", "--locked"]);
        assert_eq!(run.status, 0, "{format}: {}", run.shown());
        // A file that is no link, whatever it has.
        write(&there, "lib/inside", "other.tf");
        sandbox.mu_in("there/app", &["get", "--locked"]).fails().says(&["`inside`"]);
    }
}

#[test]
fn files_that_one_person_ignores_are_in_nobodys_lock() {
    for format in ["--object-format=sha1", "--object-format=sha256"] {
        let sandbox = mono();
        let mono = sandbox.path("mono");
        fs::remove_dir_all(mono.join(".git")).expect("is there");
        git(&mono, &["init", "-q", format]);
        write(&mono, ".gitignore", ".mu/packs/\n*.built\n");
        write(&mono, "lib/.muignore", "!out.built\n");
        write(&mono, "lib/out.built", "built");
        sandbox.mu_in("mono/app", &["get"]).ok();
        let lock = sandbox.read("../mono/app/Mu.lock");
        git(&mono, &["add", "."]);
        git(&mono, &["commit", "-qm", "all"]);
        write(&mono, "lib/.idea/x.xml", "of an editor");
        write(&mono, "lib/deep/notes.local", "of a person");
        sandbox.mu_in("mono/app", &["get", "--locked"]).fails();
        // What is tracked is there for everybody, and so is what everybody's rules leave out and `.muignore` includes.
        let rules = "*.local\n.idea/\n/lib/main.tf\n*.built\n";
        let file = sandbox.path("mine").display().to_string();
        let is_same = |how: &str| {
            let run = sandbox.mu_in("mono/app", &["get", "--locked"]);
            assert_eq!(run.status, 0, "{format}: {how}: {}", run.shown());
            sandbox.mu_in("mono/app", &["get"]).ok();
            assert_eq!(sandbox.read("../mono/app/Mu.lock"), lock, "{format}: {how}");
            assert_eq!(installed(&sandbox), [".muignore", "Mu.yaml", "main.tf", "out.built"]);
        };
        write(&mono, ".git/info/exclude", rules);
        is_same("info/exclude");
        write(&mono, ".git/info/exclude", "# nothing\n");
        write(sandbox.root(), "mine", rules);
        git(&mono, &["config", "core.excludesFile", &file]);
        is_same("core.excludesFile");
        // Rules that leave out the package itself, or its manifest, say nothing about its files.
        git(&mono, &["rm", "-rq", "--cached", "lib"]);
        for rules in ["/lib/\n", "/lib/*\n", "Mu.yaml\n*.tf\n"] {
            write(sandbox.root(), "mine", rules);
            sandbox.mu_in("mono/app", &["get"]).ok();
            let installed = installed(&sandbox);
            assert!(installed.contains(&"main.tf".to_owned()), "{rules}: {installed:?}");
        }
    }
}

#[test]
fn line_ends_that_attributes_turn_are_those_that_git_has_recorded() {
    let sandbox = mono();
    let mono = sandbox.path("mono");
    write(&mono, ".gitignore", ".mu/packs/\n");
    write(&mono, ".gitattributes", "*.tf text eol=crlf\n");
    sandbox.mu_in("mono/app", &["get"]).ok();
    let lock = sandbox.read("../mono/app/Mu.lock");
    git(&mono, &["add", "."]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    git(&mono, &[&who[..], &["commit", "-qm", "all"]].concat());
    // The author's file is as it was written; in a clone it is as the attribute wants it, whatever the settings say.
    for setting in ["core.autocrlf=false", "core.autocrlf=input", "core.autocrlf=true"] {
        let there = sandbox.path(setting);
        let [from, to] = [&mono, &there].map(|path| path.to_str().expect("is UTF-8"));
        git(sandbox.root(), &["clone", "-q", "-c", setting, from, to]);
        let read = |file: &str| fs::read_to_string(there.join(file)).expect("is there");
        assert_eq!(read("lib/main.tf"), "# main\r\n");
        sandbox.mu_in(&format!("{setting}/app"), &["get", "--locked"]).ok();
        assert_eq!(read("app/Mu.lock").replace("\r\n", "\n"), lock, "{setting}");
    }
}

#[test]
fn line_ends_are_as_git_has_them_wherever_its_settings_are() {
    type Set = fn(&mut Sandbox, &str);
    let ways: [(&str, Set); 5] = [
        ("GIT_CONFIG_COUNT", |sandbox, _| {
            sandbox.set("GIT_CONFIG_COUNT", "1");
            sandbox.set("GIT_CONFIG_KEY_0", "core.autocrlf");
            sandbox.set("GIT_CONFIG_VALUE_0", "true");
        }),
        ("GIT_CONFIG_PARAMETERS", |sandbox, _| {
            sandbox.set("GIT_CONFIG_PARAMETERS", "'core.autocrlf'='true'");
        }),
        ("GIT_CONFIG_GLOBAL", |sandbox, file| sandbox.set("GIT_CONFIG_GLOBAL", file)),
        ("GIT_CONFIG_SYSTEM", |sandbox, file| {
            sandbox.set("GIT_CONFIG_NOSYSTEM", "false");
            sandbox.set("GIT_CONFIG_SYSTEM", file);
        }),
        // libgit2 reads this file, too, but only Git knows the condition.
        ("hasconfig", |sandbox, file| {
            sandbox.set("GIT_CONFIG_NOSYSTEM", "false");
            let condition = "[includeIf \"hasconfig:remote.*.url:**/mono\"]";
            let text = format!("{condition}\n\tpath = {file}\n");
            let config = sandbox.read("../there/.git/config");
            write(&sandbox.path("there"), ".git/config", config + &text);
        }),
    ];
    for (way, set) in ways {
        let mut sandbox = mono();
        let mono = sandbox.path("mono");
        write(&mono, ".gitignore", ".mu/packs/\n");
        sandbox.mu_in("mono/app", &["get"]).ok();
        git(&mono, &["add", "."]);
        git(&mono, &["commit", "-qm", "all"]);
        let there = sandbox.path("there");
        let [from, to] = [&mono, &there].map(|path| path.to_str().expect("is UTF-8"));
        git(sandbox.root(), &["-c", "core.autocrlf=true", "clone", "-q", from, to]);
        let text = fs::read_to_string(there.join("lib/main.tf")).expect("is there");
        assert_eq!(text, "# main\r\n");
        let run = sandbox.mu_in("there/app", &["get", "--locked"]).fails();
        run.says(&["has other content"]);
        let file = sandbox.path("settings").display().to_string();
        write(sandbox.root(), "settings", "[core]\n\tautocrlf = true\n");
        set(&mut sandbox, &file);
        let run = sandbox.mu_in("there/app", &["get", "--locked"]);
        assert_eq!(run.status, 0, "{way}: {}", run.shown());
    }
}

#[test]
fn line_ends_that_git_turns_change_no_lock_in_any_format() {
    for (format, init, after) in REPOSITORY_FORMATS {
        let sandbox = Sandbox::new();
        let mono = sandbox.path("mono");
        let app = "name: acme/app\nversion: 1.0.0\ndependencies: [../../lib]\n";
        write(&mono, ".gitignore", ".mu/packs/\n");
        write(&mono, "acme/web/.mu/workspace.yaml", "");
        write(&mono, "acme/web/Mu.yaml", app);
        write(&mono, "lib/Mu.yaml", "name: acme/lib\nversion: 1.0.0\n");
        write(&mono, "lib/main.tf", "# main\n");
        write(&mono, "lib/as-is.tf", "# as it is\r\n");
        write(&mono, "far/away/file", "not in a sparse checkout");
        git(&mono, &[&["init", "-q"], init].concat());
        sandbox.mu_in("mono/acme/web", &["get"]).ok();
        git(&mono, &["add", "."]);
        git(&mono, &["commit", "-qm", "all"]);
        for arguments in after {
            git(&mono, arguments);
        }
        let is_turned = |how: &str| {
            fs::remove_file(mono.join("lib/main.tf")).expect("is there");
            git(&mono, &["checkout", "--", "lib"]);
            let text = fs::read_to_string(mono.join("lib/main.tf")).expect("is there");
            assert_eq!(text, "# main\r\n", "{format}: {how}");
            let run = sandbox.mu_in("mono/acme/web", &["get", "--locked"]);
            assert_eq!(run.status, 0, "{format}: {how}: {}", run.shown());
        };
        git(&mono, &["config", "core.autocrlf", "true"]);
        is_turned("a setting");
        git(&mono, &["config", "--unset", "core.autocrlf"]);
        for attributes in ["main.tf text eol=crlf\n", "main.tf crlf eol=crlf\n"] {
            write(&mono, ".git/info/attributes", attributes);
            is_turned(attributes);
        }
    }
}

#[test]
fn line_ends_that_git_turns_change_no_lock() {
    let sandbox = mono();
    let mono = sandbox.path("mono");
    write(&mono, ".gitignore", ".mu/packs/\n");
    write(&mono, "lib/data", "a\r\nb\n\0");
    write(&mono, "lib/as-is.txt", "a\r\nb\n");
    write(&mono, ".gitattributes", "as-is.txt -text\n");
    sandbox.mu_in("mono/app", &["get"]).ok();
    let lock = sandbox.read("../mono/app/Mu.lock");
    git(&mono, &["add", "."]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    git(&mono, &[&who[..], &["commit", "-qm", "all"]].concat());
    // As Git for Windows clones.
    let there = sandbox.path("there");
    let [from, to] = [&mono, &there].map(|path| path.to_str().expect("is UTF-8"));
    git(sandbox.root(), &["clone", "-q", "-c", "core.autocrlf=true", from, to]);
    let read = |file: &str| fs::read_to_string(there.join(file)).expect("is there");
    assert_eq!(read("lib/main.tf"), "# main\r\n");
    sandbox.mu_in("there/app", &["get", "--locked"]).ok();
    assert_eq!(read("app/Mu.lock").replace("\r\n", "\n"), lock);
    // What is edited there, before and after Git knows of it.
    fs::write(there.join("lib/main.tf"), "# other\r\n").expect("can be written");
    sandbox.mu_in("there/app", &["get"]).ok();
    let edited = read("app/Mu.lock");
    git(&there, &["add", "."]);
    sandbox.mu_in("there/app", &["get", "--locked"]).ok();
    write(&mono, "lib/main.tf", "# other\n");
    sandbox.mu_in("mono/app", &["get"]).ok();
    assert_eq!(edited.replace("\r\n", "\n"), sandbox.read("../mono/app/Mu.lock"));
}
