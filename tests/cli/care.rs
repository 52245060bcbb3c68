//! Care: `init`, `registry`, `cache`, `doctor`, `completions`, `man`, `schema`.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::Sandbox;

#[test]
fn init_begins_a_package() {
    let sandbox = Sandbox::new();
    let run = sandbox.mu(&["init", "acme/web"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu init acme/web
    wrote Mu.yaml
    wrote .mu/manifest.schema.json
    next: `mu add REF` adds a dependency, `mu get` installs
    [exit 0]
    ");
    sandbox.mu(&["get"]).ok();
    assert!(sandbox.read("Mu.yaml").contains("name: acme/web"));
    sandbox.mu(&["init", "acme/web"]).fails().says(&["Mu.yaml"]);
    std::fs::create_dir(sandbox.path("work/shop")).expect("can be made");
    sandbox.mu_in("work/shop", &["init"]).ok();
    assert!(sandbox.read("shop/Mu.yaml").contains("name: shop"));
    sandbox.mu(&["init", "not a name"]).fails();
    // In a workspace, its name is the one in references to it.
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    for (folder, name) in [("net/vpc", "acme/net/vpc"), ("hub.mu.com/aws/s3", "hub.mu.com/aws/s3")]
    {
        let folder = format!("work/{folder}");
        std::fs::create_dir_all(sandbox.path(&folder)).expect("can be made");
        sandbox.mu_in(&folder, &["init"]).ok();
        let run = sandbox.mu(&["which", name]).ok();
        assert_eq!(run.stdout, format!("[DIR]/{folder}\n"));
    }
}

#[test]
fn init_begins_a_workspace() {
    let sandbox = Sandbox::new();
    std::fs::remove_dir_all(sandbox.path("work/.mu")).expect("was there");
    let run = sandbox.mu(&["init", "--workspace", "--namespace", "acme"]).ok();
    run.says(&["next: `mu init` in a folder for each package"]);
    assert!(sandbox.read(".mu/workspace.yaml").contains("namespace: acme"));
    assert!(!sandbox.has("work/Mu.yaml"));
    sandbox.mu(&["init", "--workspace"]).fails();
    std::fs::create_dir(sandbox.path("work/inner")).expect("can be made");
    let json = sandbox.mu_in("work/inner", &["init", "a/b", "--workspace", "--json"]).ok().json();
    assert_eq!(
        json["files"],
        json!([
            "[DIR]/work/inner/.mu/workspace.yaml",
            "[DIR]/work/inner/Mu.yaml",
            "[DIR]/work/inner/.mu/workspace.schema.json",
            "[DIR]/work/inner/.mu/manifest.schema.json",
            "[DIR]/work/inner/.gitignore"
        ])
    );
    // Editors find the schemas at the paths in the files.
    let schema = |file: &str| {
        let text = sandbox.read(file);
        let line = text.lines().next().expect("has lines").to_owned();
        let path = line.strip_prefix("# yaml-language-server: $schema=").expect("names a schema");
        let folder = sandbox.path("work").join(file);
        let path = folder.parent().expect("is in a folder").join(path);
        let text = std::fs::read_to_string(path).expect("is there");
        serde_json::from_str::<Value>(&text).expect("is JSON")["title"].clone()
    };
    assert_eq!(schema("inner/.mu/workspace.yaml"), "Workspace");
    std::fs::create_dir_all(sandbox.path("work/inner/deep/er")).expect("can be made");
    let run = sandbox.mu_in("work/inner/deep/er", &["init", "acme/x"]).ok();
    run.says(&[
        "warning: references to `acme/x` do not point to this folder",
        "`deep/er` do: rename the package or move it",
    ]);
    std::fs::create_dir_all(sandbox.path("work/inner/lib")).expect("can be made");
    sandbox.mu_in("work/inner/lib", &["init", "acme/lib"]).ok().says(&[
        "`lib` do: rename the package, move it, or set `namespace: acme` in `.mu/workspace.yaml`",
    ]);
    // It is found by nobody, which matters most where no registry answers either.
    let run = sandbox.mu_in("work/inner", &["get", "http://127.0.0.1:1/acme/lib"]);
    run.fails().does_not_say(&["packages are found by their path"]);
    let run = sandbox
        .mu_in("work/inner", &["get", "acme/lib", "--registry", "hub.mu.com/=http://127.0.0.1:1/"]);
    run.fails().says(&["the workspace has `acme/lib` in `lib`", "set `namespace: acme`"]);
    assert_eq!(schema("inner/deep/er/Mu.yaml"), schema("inner/Mu.yaml"));
    assert!(!sandbox.has("work/inner/deep/er/.gitignore"));
}

#[test]
fn registries_are_added_listed_and_removed() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "# Ours.\nnamespace: acme   # short\n");
    sandbox.mu(&["registry", "add", "demo.acme.co/", "../hub"]).ok();
    sandbox.mu(&["registry", "add", "git.acme.co/", "--provider", "git"]).ok();
    let text = sandbox.read(".mu/workspace.yaml");
    assert!(text.starts_with("# Ours.\nnamespace: acme   # short\n"), "{text}");
    let run = sandbox.mu(&["registry", "list"]).ok();
    insta::assert_snapshot!(run.narrow(), @"
    $ mu registry list
    prefix  where  provider  names leave out  set in
    demo.acme.co/  file://[DIR]/hub/  hub  [DIR]/work/.mu/workspace.yaml
    git.acme.co/  at the base  git  [DIR]/work/.mu/workspace.yaml
    hub.mu.com/  file://[DIR]/hub/  hub  [DIR]/home/.mu/config.yaml
    [exit 0]
    ");
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.mu(&["get", "demo.acme.co/aws/ec2"]).ok();
    assert!(sandbox.has("work/.mu/packs/demo.acme.co/aws/ec2/Mu.yaml"));
    let json = sandbox.mu(&["registry", "list", "--json"]).ok().json();
    assert_eq!(json["default"], "hub.mu.com/");
    assert_eq!(json["registries"].as_array().expect("is a list").len(), 3);
    sandbox.mu(&["registry", "remove", "git.acme.co/"]).ok();
    sandbox.mu(&["registry", "remove", "git.acme.co/"]).fails().says(&["has no registry"]);
    sandbox.mu(&["registry", "remove", "hub.mu.com/", "--global"]).ok();
    let text = std::fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    assert!(!text.contains("hub.mu.com"), "{text}");
}

#[test]
fn registries_can_be_set_whatever_the_packages_are_like() {
    let sandbox = Sandbox::new();
    sandbox.write("a/Mu.yaml", "name: acme/x\n");
    sandbox.write("b/Mu.yaml", "name: acme/x\n");
    sandbox.mu(&["registry", "add", "acme.co/", "https://acme.co/"]).ok();
    sandbox.mu(&["registry", "add", "-g", "acme.org/", "https://acme.org/"]).ok();
    sandbox.mu(&["registry", "list"]).ok().says(&["acme.co/", "acme.org/"]);
    sandbox.mu(&["registry", "remove", "acme.co/"]).ok();
    sandbox.mu(&["status"]).fails().says(&["twice"]);
}

#[test]
fn the_longest_prefix_of_an_id_wins() {
    let sandbox = Sandbox::new();
    let inner = crate::support::Hub::new(&sandbox.path("inner"));
    inner.release("ec2", "3.0.0");
    sandbox.hub().release("internal/ec2", "1.0.0");
    sandbox.hub().release("internals/ec2", "2.0.0");
    sandbox.mu(&["registry", "add", "hub.mu.com/internal/", "../inner"]).ok();
    sandbox.mu(&["get", "internal/ec2", "internals/ec2"]).ok();
    assert_eq!(
        sandbox.locked(),
        ["hub.mu.com/internal/ec2 3.0.0", "hub.mu.com/internals/ec2 2.0.0"]
    );
}

#[test]
fn the_cache_is_measured_pruned_and_emptied() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    assert_eq!(sandbox.mu(&["cache", "dir"]).ok().stdout, "[DIR]/cache\n");
    assert_eq!(sandbox.mu(&["cache", "size", "--json"]).ok().json()["total"], 0);
    sandbox.mu(&["get"]).ok();
    let size = sandbox.mu(&["cache", "size", "--json"]).ok().json();
    assert!(size["total"].as_u64() > Some(0) && size["parts"]["store"].as_u64() > Some(0));
    sandbox.mu(&["cache", "size"]).ok().says(&["store", "total"]);
    sandbox.mu(&["cache", "prune"]).ok();
    std::fs::create_dir_all(sandbox.path("cache/hub-staging/half")).expect("is ours");
    let json = sandbox.mu(&["cache", "size", "--json"]).ok().json();
    let cleaned = sandbox.mu(&["cache", "clean", "--json"]).ok().json();
    assert_eq!(cleaned["bytes"], json["total"]);
    sandbox.mu(&["cache", "clean"]).ok().says(&["removed 0 B from [DIR]/cache"]);
    let left = sandbox.mu(&["cache", "size", "--json"]).ok().json();
    assert_eq!(left["parts"].as_object().expect("is one").keys().collect::<Vec<_>>(), ["store"]);
    assert_eq!(left["total"], 0, "{left}");
    sandbox.mu(&["verify"]).ok();
    // Everything in it can be fetched again.
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["get"]).ok().says(&["1 downloaded"]);
    let trees = sandbox.mu(&["verify", "--store", "--json"]).ok().json();
    assert_eq!(trees["checked"], 1);
}

#[test]
fn pruning_leaves_the_trees_that_packs_are_links_to() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.write(".mu/workspace.yaml", "link: symlink\n");
    let checked = || sandbox.mu(&["verify", "--store", "--json"]).ok().json()["checked"].clone();
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["cache", "prune"]).ok();
    sandbox.mu(&["verify"]).ok();
    assert_eq!(checked(), 1);
    // A workspace that was moved is known again once mu is used in it.
    std::fs::rename(sandbox.path("work"), sandbox.path("moved")).expect("can be moved");
    sandbox.mu_in("moved", &["get"]).ok().says(&["up to date ("]);
    sandbox.mu_in("moved", &["cache", "prune"]).ok();
    sandbox.mu_in("moved", &["verify"]).ok();
    // A workspace that no longer exists keeps nothing.
    std::fs::remove_dir_all(sandbox.path("moved")).expect("was there");
    let run = sandbox.mu_in("home", &["cache", "prune", "--dry-run"]).ok();
    run.says(&["would remove 1 package ("]);
    std::fs::create_dir_all(sandbox.path("work/.mu")).expect("can be made");
    assert_eq!(checked(), 1);
    sandbox.mu_in("home", &["cache", "prune"]).ok().says(&["removed 1 package ("]);
    std::fs::create_dir_all(sandbox.path("work/.mu")).expect("can be made");
    assert_eq!(checked(), 0);
}

#[test]
fn doctor_looks_at_this_machine() {
    let sandbox = Sandbox::new();
    let run = sandbox.mu(&["doctor"]).ok();
    let parts = ["cache folder: [DIR]/cache", "global packs: [DIR]/home/.mu", "git: git version"];
    let run = run.says(&parts);
    assert!(run.stdout.starts_with('✓'), "{}", run.shown());
    let json = sandbox.mu(&["doctor", "--json"]).ok().json();
    assert_eq!(json["findings"][0]["subject"], "mu");
}

#[test]
fn doctor_tells_that_a_program_fails() {
    let mut sandbox = Sandbox::new();
    let config = sandbox.path("home/gitconfig").display().to_string();
    std::fs::write(&config, "[no section").expect("is ours");
    sandbox.set("GIT_CONFIG_GLOBAL", &config);
    let run = sandbox.mu(&["doctor"]).fails();
    run.says(&["✗ git: `git --version` failed: fatal: bad config", "run that command yourself"]);
}

#[test]
fn doctor_names_misspelt_keys_beside_passwords() {
    let sandbox = Sandbox::new();
    let docker = sandbox.path("home/.docker/config.json");
    let helm = sandbox.path("home/.config/helm/repositories.yaml");
    for file in [&docker, &helm] {
        std::fs::create_dir_all(file.parent().expect("has one")).expect("is ours");
    }
    let write = |file: &std::path::Path, text: &str| std::fs::write(file, text).expect("is ours");
    write(
        &docker,
        "{\n\t\"auths\": {\"h.example\": {\"auth\": \"eA==\"}},\n\t\"psFormat\": \"x\"\n}\n",
    );
    write(
        &helm,
        "apiVersion: v1\nrepositories:\n- {name: a, url: 'https://a.example/', cache: x}\n",
    );
    sandbox.mu(&["doctor"]).ok().does_not_say(&["passwords of other tools"]);
    write(
        &docker,
        "{\n\t\"auths\": {\"h.example\": {\"usrname\": \"ada\", \"password\": \"geheim\"}}\n}\n",
    );
    write(&helm, "repositories:\n- name: a\n  ulr: https://a.example/\n");
    let run = sandbox.mu(&["doctor"]).fails();
    run.says(&[
        "[DIR]/home/.docker/config.json:2:26: unknown key `usrname`; did you mean `username`?",
        "[DIR]/home/.config/helm/repositories.yaml:3:3: unknown key `ulr`; did you mean `url`?",
    ])
    .does_not_say(&["geheim"]);
    write(&docker, "{\"shiny\": 1}");
    write(&helm, "repositories: [");
    sandbox
        .mu(&["doctor"])
        .fails()
        .says(&["config.json has keys that mu does not know: shiny", "repositories.yaml:1:"]);
}

#[test]
fn completions_are_made_for_every_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = sandbox.mu(&["completions", shell]).ok().stdout;
        for command in ["outdated", "verify"] {
            assert!(text.contains(command), "{shell}");
        }
    }
    assert_eq!(sandbox.mu(&["completions", "tcsh"]).status, 2);
}

#[test]
fn manual_pages_are_written() {
    let sandbox = Sandbox::new();
    let text = sandbox.mu(&["man"]).ok().stdout;
    assert!(text.contains(".TH mu 1") && text.contains("mu\\-outdated"), "{text}");
    sandbox.mu(&["man", "--into", "man1"]).ok();
    for page in ["mu.1", "mu-get.1", "mu-registry-add.1"] {
        assert!(sandbox.read(&format!("man1/{page}")).contains(".TH"), "{page}");
    }
}

#[test]
fn schemas_know_the_keys() {
    let sandbox = Sandbox::new();
    for (file, keys) in [
        ("manifest", ["name", "devDependencies", "appVersion"]),
        ("workspace", ["registries", "minimumReleaseAge", "members"]),
        ("lock", ["version", "packages", "extra"]),
    ] {
        let schema: Value = sandbox.mu(&["schema", file]).ok().json();
        for key in keys {
            assert!(schema["properties"][key].is_object(), "{file}: {key}");
        }
    }
}

#[test]
fn names_are_completed_without_the_network() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.offer("aws/ec2 1.0.0:\naws/eks 1.0.0:\nnet/vpc 1.0.0:");
    let line = |name: &str| format!("{{\"name\": \"{name}\", \"latest\": \"1.0.0\"}}\n");
    let catalog: String = ["aws/ec2", "aws/eks", "net/vpc"].into_iter().map(line).collect();
    std::fs::write(sandbox.path("hub/catalog.jsonl"), catalog).expect("can be written");
    sandbox.mu(&["get"]).ok();
    let complete = |words: &[&str]| {
        let run = sandbox.mu(&[&["__complete", "--"], words].concat()).ok();
        run.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["add", "aws/"]), ["aws/ec2", "aws/eks"]);
    assert_eq!(complete(&["remove", ""]), ["aws/ec2"]);
    // No package depends on itself.
    assert_eq!(complete(&["add", ""]), ["aws/ec2", "aws/eks", "net/vpc"]);
    assert_eq!(complete(&["get", "acme/"]), ["acme/web"]);
    assert_eq!(complete(&["add", "net/vpc", "-p", ""]), ["acme/web"]);
    assert_eq!(complete(&["config", "get", "res"]), ["resolution"]);
    assert_eq!(complete(&["tree", ""]), ["aws/ec2"]);
    assert!(complete(&["doctor", ""]).is_empty() && complete(&[]).is_empty());

    // As in bash: the script's function fills COMPREPLY.
    let script = sandbox.mu(&["completions", "bash"]).ok().stdout;
    std::fs::write(sandbox.path("work/mu.bash"), script).expect("can be written");
    let in_shell = |shell: &str, line: &str| {
        let program = Path::new(env!("CARGO_BIN_EXE_mu"));
        let folder = program.parent().expect("is in a folder").display();
        let mut command = sandbox.command(&[]);
        let variables: Vec<_> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        command = std::process::Command::new(mu_testing::program(shell));
        if shell != "fish" {
            command.arg(if shell == "zsh" { "-f" } else { "--norc" });
        }
        command.args(["-c", line]).env_clear().envs(variables);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{folder}:{path}")).current_dir(sandbox.path("work"));
        let output = command.output().expect("the shell is there");
        String::from_utf8(output.stdout).expect("is text")
    };
    let in_bash = |words: &str| {
        let line = format!(
            "source mu.bash; COMP_WORDS=({} {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _mu_with_names \"${{COMP_WORDS[0]}}\" \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            env!("CARGO_BIN_EXE_mu")
        );
        in_shell("bash", &line)
    };
    assert_eq!(in_bash("add aws/"), "aws/ec2\naws/eks\n");
    assert_eq!(in_bash("remove aws"), "aws/ec2\n");
    assert_eq!(in_bash("outd"), "outdated\n");

    // As fish and zsh do it, where they are installed; of zsh, what its function hands to `compadd`.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |shell: &str| std::env::split_paths(&path).any(|folder| folder.join(shell).is_file());
    for shell in ["fish", "zsh"].into_iter().filter(|shell| has(shell)) {
        let script = sandbox.mu(&["completions", shell]).ok().stdout;
        std::fs::write(sandbox.path(&format!("work/mu.{shell}")), script).expect("can be written");
        for (words, names) in [
            ("add aws/", "aws/ec2\naws/eks\n"),
            ("remove ", "aws/ec2\n"),
            ("--offline add net/", "net/vpc\n"),
            ("add net/vpc -p ", "acme/web\n"),
            ("tree -i ", "aws/ec2\n"),
            ("resolve --without ", "aws/ec2\n"),
            ("config get res", "resolution\n"),
        ] {
            let line = match shell {
                "fish" => format!("source mu.fish; complete -C 'mu {words}'"),
                _ => format!(
                    "compdef() {{}}; compadd() {{ print -l -- \"${{@[2,-1]}}\" }}; source ./mu.zsh; \
                     words=(mu \"${{(@s: :)${{:-{words}}}}}\"); CURRENT=${{#words}}; _mu_with_names"
                ),
            };
            assert_eq!(in_shell(shell, &line), names, "{shell}: mu {words}");
        }
        // Where no name is expected, commands and options are completed as they were.
        if shell == "fish" {
            let completed = in_shell(shell, "source mu.fish; complete -C 'mu outd'");
            assert!(completed.starts_with("outdated\t"), "{completed}");
            let completed = in_shell(shell, "source mu.fish; complete -C 'mu info ./mu.fi'");
            assert_eq!(completed, "./mu.fish\n");
        }
    }
}

#[test]
fn a_schema_has_no_line_breaks_inside_of_sentences() {
    fn check(value: &Value) {
        if let Some(text) = value["description"].as_str() {
            assert!(!text.replace("\n\n", "").contains('\n'), "{text}");
        }
        match value {
            Value::Object(entries) => entries.values().for_each(check),
            Value::Array(values) => values.iter().for_each(check),
            _ => {}
        }
    }
    let sandbox = Sandbox::new();
    for words in [&["manifest"][..], &["workspace"], &["lock"], &["answer", "search"]] {
        check(&sandbox.mu(&[&["schema"], words].concat()).ok().json());
    }
}

#[test]
fn a_program_that_cannot_run_is_not_fine() {
    let mut sandbox = Sandbox::new();
    let folder = sandbox.path("broken");
    crate::support::write(
        &folder,
        "ssh*",
        "#!/bin/sh\necho 'No user exists for uid 7' >&2\nexit 255\n",
    );
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("is set"));
    sandbox.set("PATH", &path);
    let run = sandbox.mu(&["doctor"]).fails();
    run.says(&["✗ ssh: `ssh -V` failed: No user exists for uid 7", "run that command yourself"]);
}
