//! `mu import`: what other tools list in a folder becomes dependencies at the versions in use, from real servers.

use std::fs;

use serde_json::Value;

use crate::support::git::{HttpServer, Origin, git};
use crate::support::{Chart, Charts, Nginx, Sandbox, write};

/// A sandbox without settings or packages, so that the folder is nothing to mu yet.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    sandbox
}

/// Repositories on a server: `logs.git` and `libs.git` with folders in it. Each had a commit, which is returned, and then another one.
fn repositories() -> (Origin, String, [String; 2], HttpServer) {
    let mut origin = Origin::new("logs.git");
    let logs = origin.commit(&[("file", "one")]);
    origin.commit(&[("file", "two")]);
    origin.add("libs.git");
    let libs = origin.commit(&[("a/main.jsonnet", "1"), ("b/main.tf", "# 1"), ("b/c/file", "1")]);
    origin.git(&["tag", "v1.0.0"]);
    origin.commit(&[("a/main.jsonnet", "2"), ("b/main.tf", "# 2"), ("b/c/file", "2")]);
    let server = HttpServer::start(origin.root());
    let root = server.root().trim_end_matches('/').to_owned();
    (origin, root, [logs, libs], server)
}

/// The entry of the lock for a package whose id ends so.
#[track_caller]
fn entry(sandbox: &Sandbox, id: &str) -> Value {
    let lock = sandbox.lock();
    let packages = lock["packages"].as_array().expect("is a list");
    let found = packages.iter().find(|one| one["id"].as_str().is_some_and(|own| own.ends_with(id)));
    found.unwrap_or_else(|| panic!("{id} is not in {lock}")).clone()
}

/// Checks that what was imported is what others get: the lock passes, and a fresh checkout installs it.
fn is_what_others_get(sandbox: &Sandbox) {
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn submodules_come_at_the_commits_of_the_index_also_if_they_are_not_checked_out() {
    let (origin, root, [logs, _], _server) = repositories();
    let sandbox = sandbox();
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    let tip = origin.git(&["rev-parse", "HEAD"]);
    sandbox.write(
        ".gitmodules",
        &format!(
            "[submodule \"libs/logs\"]\n\tpath = libs/logs\n\turl = {root}/logs.git\n\
             [submodule \"libs/all\"]\n\tpath = libs/all\n\turl = {root}/libs.git\n\tbranch = main\n"
        ),
    );
    for (commit, path) in [(&logs, "libs/logs"), (&tip, "libs/all")] {
        git(&work, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},{path}")]);
    }
    git(&work, &["add", ".gitmodules"]);
    git(&work, &["commit", "--quiet", "--message", "more"]);
    origin.commit(&[("later", "3")]);
    // They were never checked out.
    let before = sandbox.read(".gitmodules");
    let dry = sandbox.mu(&["import", "--dry-run"]).ok();
    dry.says(&["imported libs/logs (.gitmodules:1) as", "nothing was written"]);
    assert!(!sandbox.has("work/Mu.yaml") && !sandbox.has("work/Mu.lock"));
    let run = sandbox.mu(&["import"]).ok();
    run.says(&[
        "imported libs/logs (.gitmodules:1) as",
        "imported libs/all (.gitmodules:4) as",
        "installed 2 packages",
    ]);
    assert_eq!(entry(&sandbox, "/logs")["commit"], logs.as_str());
    let all = entry(&sandbox, "/libs");
    assert_eq!((all["commit"].as_str(), all["ref"].as_str()), (Some(&*tip), Some("main")));
    assert_eq!(sandbox.read(".gitmodules"), before);
    let manifest = sandbox.read("Mu.yaml");
    assert!(manifest.contains(&format!("/logs.git#{logs}")), "{manifest}");
    assert!(manifest.contains("/libs.git#main"), "{manifest}");
    is_what_others_get(&sandbox);
    // The branch is followed again when its user wants it.
    sandbox.mu(&["update"]).ok().says(&["main"]);
    assert_ne!(entry(&sandbox, "/libs")["commit"], tip.as_str());
    // A second import finds all of it there.
    let again = sandbox.mu(&["import", "--json"]).ok().json();
    assert_eq!(again["imported"], serde_json::json!([]));
    assert_eq!(again["left"].as_array().map(Vec::len), Some(2));
    assert!(
        again["left"][0]["reason"].as_str().is_some_and(|text| text.contains("lists it already"))
    );
}

#[test]
fn relative_submodules_lie_beside_the_remote_that_git_takes() {
    let module = "[submodule \"logs\"]\n\tpath = logs\n\turl = ../logs.git\n";
    let origin = "[remote \"origin\"]\n\turl = https://ada:hunter2@127.0.0.1:1/o/app.git\n";
    let fork = "[remote \"fork\"]\n\turl = https://127.0.0.1:1/f/app\n";
    let follows = "[branch \"main\"]\n\tremote = fork\n";
    let submodule = |format: &str, remotes: &[&str]| {
        let sandbox = Sandbox::new();
        let work = sandbox.path("work");
        git(&work, &["init", "--quiet", "--initial-branch=main", format]);
        sandbox.write(".gitmodules", module);
        let commit = "1895753f53a63c055e7cae81ebe4ea5d5805584f";
        git(&work, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},logs")]);
        sandbox.write(".git/config", &(sandbox.read(".git/config") + &remotes.concat()));
        sandbox.mu(&["import", "--offline"]).fails()
    };
    for format in ["--ref-format=files", "--ref-format=reftable"] {
        // The name and the password in a URL are one person's.
        let run = submodule(format, &[origin, fork]).says(&["127.0.0.1:1/o/logs"]);
        run.does_not_say(&["ada", "hunter2"]);
        submodule(format, &[origin, fork, follows]).says(&["127.0.0.1:1/f/logs"]);
        submodule(format, &[fork]).says(&["127.0.0.1:1/f/logs"]);
    }
}

#[test]
fn relative_submodules_lie_beside_the_repository() {
    let (_origin, root, [logs, _], _server) = repositories();
    let sandbox = sandbox();
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    sandbox.write(".gitmodules", "[submodule \"logs\"]\n\tpath = logs\n\turl = ../logs.git\n");
    git(&work, &["update-index", "--add", "--cacheinfo", &format!("160000,{logs},logs")]);
    sandbox.mu(&["import"]).ok().says(&["left logs (.gitmodules:1): its URL is relative"]);
    assert!(!sandbox.has("work/Mu.yaml"));
    git(&work, &["remote", "add", "origin", &format!("{root}/app.git")]);
    sandbox.mu(&["import"]).ok();
    assert_eq!(entry(&sandbox, "/logs")["commit"], logs.as_str());
}

#[test]
fn folders_of_vendir_come_at_the_commits_of_its_lock() {
    let (_origin, root, [logs, libs], _server) = repositories();
    let sandbox = sandbox();
    sandbox.write(
        "vendir.yml",
        &format!(
            "\
apiVersion: vendir.k14s.io/v1alpha1
kind: Config
directories:
- path: config
  contents:
  - path: logs
    git: {{url: '{root}/logs.git', ref: origin/main}}
  - path: b
    git: {{url: '{root}/libs.git', ref: v1.0.0}}
    newRootPath: b
  - path: c
    git: {{url: '{root}/libs.git', ref: origin/main}}
    includePaths: [b/c/**/*]
    excludePaths: ['**/x']
  - path: own
    manual: {{}}
qwertz: 1
"
        ),
    );
    sandbox.write(
        "vendir.lock.yml",
        &format!(
            "\
apiVersion: vendir.k14s.io/v1alpha1
directories:
- contents:
  - git: {{commitTitle: one, sha: {logs}}}
    path: logs
  - git: {{commitTitle: one, sha: {libs}, tags: [v1.0.0]}}
    path: b
  - git: {{commitTitle: one, sha: {libs}}}
    path: c
  - manual: {{}}
    path: own
  path: config
kind: LockConfig
"
        ),
    );
    let run = sandbox.mu(&["import"]).ok();
    run.says(&[
        "imported config/logs (vendir.yml:6) as",
        "imported config/b (vendir.yml:8) as",
        "without `excludePaths`",
        "left config/own (vendir.yml:15): it is kept by hand",
        "vendir.yml has keys that no such file has: `qwertz`",
    ]);
    assert_eq!(entry(&sandbox, "/logs")["commit"], logs.as_str());
    assert_eq!(entry(&sandbox, "/libs/b")["version"], "1.0.0");
    let c = entry(&sandbox, "/libs/b/c");
    assert_eq!((c["commit"].as_str(), c["ref"].as_str()), (Some(&*libs), Some("main")));
    is_what_others_get(&sandbox);
}

#[test]
fn a_tag_that_was_moved_becomes_a_pin_of_the_commit() {
    let (origin, root, [_, libs], _server) = repositories();
    origin.git(&["tag", "--force", "v1.0.0", "HEAD"]);
    let sandbox = sandbox();
    let one = format!(
        "directories:\n- path: a\n  contents:\n  - path: b\n    git: {{url: '{root}/libs.git', ref: v1.0.0}}\n"
    );
    sandbox.write("vendir.yml", &one);
    let lock =
        format!("directories:\n- path: a\n  contents:\n  - path: b\n    git: {{sha: {libs}}}\n");
    sandbox.write("vendir.lock.yml", &lock);
    sandbox.mu(&["import"]).ok();
    assert_eq!(entry(&sandbox, "/libs")["commit"], libs.as_str());
    assert!(sandbox.read("Mu.yaml").contains(&format!("#{libs}")), "{}", sandbox.read("Mu.yaml"));
    is_what_others_get(&sandbox);
}

#[test]
fn libraries_of_jsonnet_come_with_those_that_they_need() {
    let (_origin, root, [logs, libs], _server) = repositories();
    let sandbox = sandbox();
    let library = |place: &str, folder: &str, version: &str| {
        format!(
            r#"{{"source": {{"git": {{"remote": "{root}/{place}", "subdir": "{folder}"}}}}, "version": "{version}", "sum": "x"}}"#
        )
    };
    let file = |all: &[String]| {
        format!(r#"{{"version": 1, "dependencies": [{}], "legacyImports": false}}"#, all.join(", "))
    };
    sandbox.write("jsonnetfile.json", &file(&[library("libs.git", "a", "main")]));
    let locked = [library("libs.git", "a", &libs), library("logs.git", "", &logs)];
    sandbox.write("jsonnetfile.lock.json", &file(&locked));
    sandbox
        .mu(&["import"])
        .ok()
        .says(&["(jsonnetfile.json:1) as", "(the lock of jsonnetfile.json) as"]);
    let a = entry(&sandbox, "/libs/a");
    assert_eq!((a["commit"].as_str(), a["ref"].as_str()), (Some(&*libs), Some("main")));
    assert_eq!(entry(&sandbox, "/logs")["commit"], logs.as_str());
    is_what_others_get(&sandbox);
}

#[test]
fn modules_of_terraform_come_at_the_commits_of_their_checkouts() {
    let (origin, root, [_, libs], _server) = repositories();
    let sandbox = sandbox();
    let source = format!("git::{root}/libs.git//b?ref=main");
    sandbox.write(
        "main.tf",
        &format!(
            "module \"one\" {{\n  source = \"{source}\"\n}}\n\nmodule \"again\" {{\n  source = \"{source}\"\n}}\n\n\
             module \"registry\" {{\n  source  = \"acme/vpc/aws\"\n  version = \"~> 1.0\"\n}}\n\nmodule \"own\" {{\n  source = \"./modules/own\"\n}}\n"
        ),
    );
    sandbox
        .mu(&["import", "--dry-run"])
        .ok()
        .says(&["there is no .terraform/modules/modules.json", "the newest that fits"]);
    // As `terraform init` leaves it.
    let modules = sandbox.path("work/.terraform/modules");
    fs::create_dir_all(&modules).expect("can be made");
    git(&modules, &["clone", "--quiet", &origin.folder().display().to_string(), "one"]);
    git(&modules.join("one"), &["checkout", "--quiet", &libs]);
    let module = |name: &str, place: &str| {
        format!(r#"{{"Key": "{name}", "Source": "{source}", "Dir": ".terraform/modules/{place}"}}"#)
    };
    let all = [module("one", "one/b"), module("again", "one"), module("far", "../../../..")];
    sandbox.write(
        ".terraform/modules/modules.json",
        &format!(r#"{{"Modules": [{}]}}"#, all.join(", ")),
    );
    sandbox.mu(&["import"]).ok().says(&[
        "imported one (main.tf:1) as",
        "left registry (main.tf:9): only its registry knows where it is; its repository is probably `https://github.com/acme/terraform-aws-vpc`",
        "left own (main.tf:14): it is a folder of this repository",
    ]);
    let b = entry(&sandbox, "/libs/b");
    assert_eq!((b["commit"].as_str(), b["ref"].as_str()), (Some(&*libs), Some("main")));
    is_what_others_get(&sandbox);
    // Two checkouts of one module that differ cannot both be in use.
    git(&modules, &["clone", "--quiet", &origin.folder().display().to_string(), "again"]);
    let all = [module("one", "one/b"), module("again", "again/b")];
    let text = format!(r#"{{"Modules": [{}]}}"#, all.join(", "));
    sandbox.write(".terraform/modules/modules.json", &text);
    fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is there");
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    let run = sandbox.mu(&["import"]).ok();
    run.says(&["left again (main.tf:5): it is not in use as main.tf:1 has it"]);
    assert_eq!(entry(&sandbox, "/libs/b")["commit"], libs.as_str());
}

#[test]
fn what_a_module_of_terraform_names_beside_itself_comes_with_it() {
    let (origin, root, [_, libs], _server) = repositories();
    let sandbox = sandbox();
    let source = |folder: &str| format!("git::{root}/libs.git//{folder}?ref=main");
    let block =
        |name: &str, source: &str| format!("module \"{name}\" {{\n  source = \"{source}\"\n}}\n");
    let blocks = [block("one", &source("a")), block("copy", &source("a")), block("own", "./own")];
    sandbox.write("main.tf", &blocks.concat());
    // As `terraform init` leaves it: of what has the same source, one has `.git`, and the others are copies of its files.
    let modules = sandbox.path("work/.terraform/modules");
    fs::create_dir_all(&modules).expect("can be made");
    git(&modules, &["clone", "--quiet", &origin.folder().display().to_string(), "one"]);
    git(&modules.join("one"), &["checkout", "--quiet", &libs]);
    fs::create_dir_all(modules.join("copy/a")).expect("can be made");
    let module = |name: &str, source: &str, place: &str| {
        format!(r#"{{"Key": "{name}", "Source": "{source}", "Dir": "{place}"}}"#)
    };
    let all = [
        module("one", &source("a"), ".terraform/modules/one/a"),
        module("one.beside", "../b", ".terraform/modules/one/b"),
        module("one.far", "registry.terraform.io/acme/far/aws", ".terraform/modules/one.far"),
        module("copy", &source("a"), ".terraform/modules/copy/a"),
        module("own", "./own", "own"),
    ];
    sandbox.write(
        ".terraform/modules/modules.json",
        &format!(r#"{{"Modules": [{}]}}"#, all.join(",\n")),
    );
    sandbox
        .mu(&["import"])
        .ok()
        .says(&[
            "imported one.beside (.terraform/modules/modules.json:2) as",
            "left one.far (.terraform/modules/modules.json:3): `one` uses it, and Terraform downloads it for that",
        ])
        .does_not_say(&["left copy"]);
    for folder in ["/libs/a", "/libs/b"] {
        assert_eq!(entry(&sandbox, folder)["commit"], libs.as_str(), "{folder}");
    }
    is_what_others_get(&sandbox);
}

/// A repository of charts with two versions of `redis`.
fn charts(sandbox: &Sandbox) -> (Nginx, String) {
    fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    charts.add(&Chart::new("redis", "17.0.0"));
    charts.add(&Chart::new("redis", "17.3.1"));
    charts.add(&Chart::new("web", "1.0.0"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let url = nginx.url("stable");
    (nginx, url)
}

#[test]
fn releases_of_helmfile_come_at_the_versions_of_its_lock() {
    let sandbox = sandbox();
    let (_nginx, url) = charts(&sandbox);
    sandbox.write(
        "helmfile.yaml",
        &format!(
            "repositories:\n- {{name: stable, url: '{url}'}}\nreleases:\n- {{name: cache, chart: stable/redis, version: 17.x}}\n\
             {{{{- if .Values.web }}}}\n- name: web\n  chart: stable/web\n  version: 1.0.0\n{{{{- end }}}}\n- {{name: own, chart: ./charts/own}}\n\
             - {{name: other, chart: stable/redis, version: 17.3.1}}\n"
        ),
    );
    let lock = format!(
        "version: v1\ndependencies:\n- {{name: redis, repository: '{url}', version: 17.0.0}}\n- {{name: web, repository: '{url}', version: 1.0.0}}\ndigest: x\ngenerated: x\n"
    );
    sandbox.write("helmfile.lock", &lock);
    sandbox.mu(&["import", "helmfile.yaml"]).ok().says(&[
        "helmfile.yaml: it is a template, so every release in it counts",
        "imported cache (helmfile.yaml:4) as",
        "imported web (helmfile.yaml:6) as",
        "left own (helmfile.yaml:10): its chart is a folder of this repository",
        "left other (helmfile.yaml:11): helmfile.yaml:4 has it as",
    ]);
    assert_eq!(entry(&sandbox, "/redis")["version"], "17.0.0");
    is_what_others_get(&sandbox);
}

#[test]
fn a_template_is_read_as_its_default_and_lines_that_only_helmfile_fills_in_are_said() {
    let sandbox = sandbox();
    let (_nginx, url) = charts(&sandbox);
    sandbox.write(
        "helmfile.yaml",
        &format!(
            "repositories:\n- {{name: stable, url: '{url}'}}\nreleases:\n- name: cache\n  chart: stable/redis\n  version: {{{{ env \"CACHE\" | default \"17.0.0\" }}}}\n\
             {{{{ include \"more\" . | nindent 0 }}}}\n- name: web\n  chart: stable/web\n  version: {{{{ requiredEnv \"WEB\" }}}}\n"
        ),
    );
    sandbox.mu(&["import"]).ok().says(&[
        "warning: the `version` of `cache` (helmfile.yaml:4) is a template, and was read as its default `17.0.0`",
        "imported cache (helmfile.yaml:4) as",
        "left web (helmfile.yaml:8): its `version` is a template, which only helmfile fills in",
        "left a part of `releases` (helmfile.yaml:7): it is a template, which only helmfile fills in",
    ]);
    assert_eq!(entry(&sandbox, "/redis")["version"], "17.0.0");
    is_what_others_get(&sandbox);
    // Where the file says nothing, its lock has what became of it.
    sandbox.write(
        "helmfile.lock",
        &format!(
            "version: v1\ndependencies:\n- {{name: redis, repository: '{url}', version: 17.3.1}}\n- {{name: web, repository: '{url}', version: 1.0.0}}\n"
        ),
    );
    fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is there");
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    let run = sandbox.mu(&["import"]).ok();
    run.says(&["imported cache (helmfile.yaml:4) as", "imported web (helmfile.yaml:8) as"])
        .does_not_say(&["was read as its default"]);
    assert_eq!(entry(&sandbox, "/redis")["version"], "17.3.1");
    assert_eq!(entry(&sandbox, "/web")["version"], "1.0.0");
}

#[test]
fn a_module_file_of_go_that_is_wrong_is_pointed_at_and_nothing_is_passed_over() {
    let (_origin, root, [logs, _], _server) = repositories();
    let sandbox = sandbox();
    sandbox.write("go.mod", "module x\n\nrequire (\n\tgithub.com/a/b v1.0.0 more\n)\n");
    let run = sandbox.mu(&["import", "go.mod"]).fails();
    run.says(&[
        "go.mod:4:1",
        "expected the path of a module and its version",
        "nothing was changed",
    ]);
    assert!(!sandbox.has("work/Mu.yaml"));
    let host = root.strip_prefix("http://").expect("is one");
    let commit = &logs[..12];
    let text = format!(
        "module `x`\ntool x/y\nmore z\nrequire(\n\t\"{host}/logs.git\" `v0.0.0-20240102030405-{commit}` // indirect; why\n)\nrequire h.example/x v1.0.0\n"
    );
    sandbox.write("go.mod", &text);
    sandbox.mu(&["import", "go.mod"]).ok().says(&[
        "warning: go.mod has keys that no such file has: `more`",
        &format!("left {host}/logs.git (go.mod:5): only other modules need it"),
        "left h.example/x (go.mod:7): only a proxy of Go modules knows where it is",
    ]);
}

#[test]
fn what_reads_as_a_range_is_the_name_of_a_tag_or_branch_for_git() {
    let mut origin = Origin::new("logs.git");
    origin.commit(&[("file", "one")]);
    origin.git(&["tag", "v1"]);
    origin.git(&["tag", "latest"]);
    let first = origin.git(&["rev-parse", "HEAD"]);
    origin.add("libs.git");
    origin.commit(&[("a/file", "one"), ("b/file", "one")]);
    for version in ["v1.0.0", "v1.1.0"] {
        origin.git(&["tag", version]);
    }
    origin.git(&["checkout", "--quiet", "-b", "1.x"]);
    let branch = origin.commit(&[("a/file", "two"), ("b/file", "two")]);
    origin.git(&["checkout", "--quiet", "main"]);
    let server = HttpServer::start(origin.root());
    let root = server.root().trim_end_matches('/').to_owned();
    let sandbox = sandbox();
    let git =
        |name: &str, place: &str| format!("  - {{path: {name}, git: {{url: '{root}/{place}}}}}\n");
    sandbox.write(
        "vendir.yml",
        &format!(
            "directories:\n- path: d\n  contents:\n{}{}",
            git("logs", "logs.git', ref: latest"),
            git("libs", "libs.git', ref: origin/1.x")
        ),
    );
    sandbox.write(
        "main.tf",
        &format!("module \"a\" {{\n  source = \"git::{root}/libs.git//a?ref=1.x\"\n}}\nmodule \"b\" {{\n  source = \"git::{root}/libs.git//b?ref=v9\"\n}}\n"),
    );
    sandbox.mu(&["import"]).ok().says(&[
        "#refs/tags/latest",
        "libs.git#refs/heads/1.x",
        "imported a (main.tf:1) as",
        "left b (main.tf:4): `",
        "/libs/b` has no version `v9`, and the newest one is 1.1.0",
    ]);
    assert_eq!(entry(&sandbox, "/logs")["commit"], first.as_str());
    assert_eq!(entry(&sandbox, "/libs")["commit"], branch.as_str());
    assert_eq!(entry(&sandbox, "/libs/a")["commit"], branch.as_str());
    is_what_others_get(&sandbox);
}

#[test]
fn files_of_terraform_count_as_it_merges_them() {
    let (_origin, root, [_, libs], _server) = repositories();
    let sandbox = sandbox();
    let module = |name: &str, folder: &str, reference: &str| {
        format!(
            "module \"{name}\" {{\n  source = \"git::{root}/libs.git//{folder}?ref={reference}\"\n}}\n"
        )
    };
    sandbox.write("main.tf", &module("a", "a", "main"));
    sandbox.write("network.tf", &module("b", "b", "main"));
    sandbox.write("network.tofu", &module("b", "b//c", "v1.0.0"));
    sandbox
        .write("my_override.tf", &(module("a", "a", &libs) + "module \"b\" {\n  count = 2\n}\n"));
    sandbox.write(".hidden.tf", &module("h", "a", "gone"));
    let run = sandbox.mu(&["import"]).ok();
    run.says(&[
        "network.tf: OpenTofu reads network.tofu in its place, and so does mu: `mu import network.tf` reads it",
        "left a (main.tf:1): my_override.tf:1 has another `source` for it, which counts",
        "imported a (my_override.tf:1) as",
        "imported b (network.tofu:1) as",
    ])
    .does_not_say(&["hidden", "has no `source`"]);
    assert_eq!(entry(&sandbox, "/libs/a")["commit"], libs.as_str());
    assert_eq!(entry(&sandbox, "/libs/b/c")["version"], "1.0.0");
    is_what_others_get(&sandbox);
}

#[test]
fn a_helmfile_has_what_its_bases_say_and_what_is_nowhere_is_left() {
    let sandbox = sandbox();
    let (_nginx, url) = charts(&sandbox);
    sandbox.write(".mu/workspace.yaml", "{}\n");
    sandbox.write(
        "common/repositories.yaml",
        &format!("repositories:\n- {{name: stable, url: '{url}'}}\n"),
    );
    sandbox.write("team/charts/own/Chart.yaml", "apiVersion: v2\nname: own\nversion: 0.1.0\n");
    sandbox.write(
        "team/helmfile.yaml",
        "bases: [../common/repositories.yaml, gone.yaml, ../../../far.yaml]\n---\ntemplates:\n  base: {chart: stable/web}\n  cache: {version: 17.0.0, inherit: [{template: base}, {template: loop}]}\n  loop: {inherit: [{template: cache}]}\nreleases:\n- {name: web, inherit: [{template: cache, except: [version]}]}\n- {name: cache, chart: stable/redis, inherit: [{template: cache}]}\n- {name: own, chart: charts/own}\n- {name: retired, chart: stable/retired}\n- {name: old, chart: mine/web, version: 0.9.0}\n",
    );
    // What the file does not list, helmfile has from Helm.
    let repositories = format!("apiVersion: \"\"\nrepositories:\n- {{name: mine, url: '{url}'}}\n");
    write(sandbox.root(), "home/.config/helm/repositories.yaml", &repositories);
    sandbox.mu(&["import", "team"]).ok().says(&[
        "imported web (helmfile.yaml:8) as",
        "imported cache (helmfile.yaml:9) as",
        "left own (helmfile.yaml:10): its chart is a folder of this repository",
        "left retired (helmfile.yaml:11): there is no package `",
        "left old (helmfile.yaml:12): helmfile.yaml:8 has it as `",
        "left gone.yaml (helmfile.yaml:1): it is another file",
        "left ../../../far.yaml (helmfile.yaml:1): it is another file",
    ]);
    assert_eq!(entry(&sandbox, "/redis")["version"], "17.0.0");
    assert_eq!(entry(&sandbox, "/web")["version"], "1.0.0");
}

#[test]
fn a_version_that_is_gone_is_left_and_the_rest_comes() {
    let (_origin, root, _, _server) = repositories();
    let sandbox = sandbox();
    let (_nginx, url) = charts(&sandbox);
    sandbox.write(
        "helmfile.yaml",
        &format!(
            "repositories:\n- {{name: stable, url: '{url}'}}\nreleases:\n- {{name: cache, chart: stable/redis, version: 16.0.0}}\n- {{name: web, chart: stable/web, version: 1.0.0}}\n"
        ),
    );
    sandbox.write(
        "main.tf",
        &format!(
            "module \"a\" {{\n  source = \"git::{root}/libs.git//a?ref=v9\"\n}}\nmodule \"b\" {{\n  source = \"git::{root}/libs.git//b?ref=tags/v1.0.0\"\n}}\nmodule \"c\" {{\n  source = \"git::{root}/libs.git//gone?ref=v1.0.0\"\n}}\nmodule \"d\" {{\n  source = \"git::{root}/logs.git//far?ref=main\"\n}}\n"
        ),
    );
    sandbox.mu(&["import"]).ok().says(&[
        "left cache (helmfile.yaml:4): `",
        "/redis` has no version `16.0.0`, and the newest one is 17.3.1",
        "imported web (helmfile.yaml:5) as",
        "left a (main.tf:1): `",
        "/libs/a` has no version `v9`, and the newest one is 1.0.0",
        "imported b (main.tf:4) as",
        "left c (main.tf:7): `",
        "has no folder `gone` at commit",
        "left d (main.tf:10): `",
        "has no folder `far` at commit",
    ]);
    is_what_others_get(&sandbox);
}

#[test]
fn a_named_file_is_read_as_what_it_says_it_is() {
    let (_origin, root, _, _server) = repositories();
    let sandbox = sandbox();
    // Secrets stand in the same file, in front of what needs them, and the file may have any name.
    sandbox.write(
        "deps.yaml",
        &format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\ndata: {{password: eA==}}\n---\napiVersion: vendir.k14s.io/v1alpha1\nkind: Config\ndirectories:\n- path: config\n  contents:\n  - path: libs\n    git: {{url: '{root}/libs.git', ref: v1.0.0, secretRef: {{name: login}}}}\n"
        ),
    );
    let run = sandbox.mu(&["import", "deps.yaml"]).ok();
    run.says(&["imported config/libs (deps.yaml:11) as"]).does_not_say(&["no such file has"]);
    for (name, text) in [
        ("kustomization.yaml", "resources:\n- https://h.example/x\n"),
        ("release.yaml", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n"),
    ] {
        sandbox.write(name, text);
        let run = sandbox.mu(&["import", name]);
        assert_eq!(run.status, 2, "{name}");
        run.says(&["is not a file that mu imports from", "it reads .gitmodules"]);
    }
}

#[test]
fn a_chart_stays_what_it_is_and_keeps_the_versions_of_its_lock() {
    let sandbox = sandbox();
    let (_nginx, url) = charts(&sandbox);
    let chart = format!(
        "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n- {{name: redis, version: 17.x, repository: '{url}'}}\n"
    );
    sandbox.write("Chart.yaml", &chart);
    sandbox.write("Chart.lock", &format!("dependencies:\n- {{name: redis, repository: '{url}', version: 17.0.0}}\ndigest: sha256:0\n"));
    sandbox.mu(&["import"]).ok().says(&["kept 1 version of Chart.lock", "+ "]);
    assert_eq!(entry(&sandbox, "/redis")["version"], "17.0.0");
    assert_eq!(sandbox.read("Chart.yaml"), chart);
    // What a chart cannot hold is left, and said.
    sandbox.write("vendir.yml", "directories:\n- path: a\n  contents:\n  - path: b\n    git: {url: 'https://h.example/x', ref: v1}\n");
    sandbox
        .mu(&["import"])
        .ok()
        .says(&["left a/b (vendir.yml:4): `Chart.yaml` has no place for it"]);
    assert_eq!(sandbox.read("Chart.yaml"), chart);
}

#[test]
fn with_the_minimal_strategy_the_manifest_says_what_is_in_use() {
    let (_origin, root, [logs, _], _server) = repositories();
    let sandbox = sandbox();
    let (_nginx, url) = charts(&sandbox);
    sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 0.1.0\n");
    let text = format!(
        "directories:\n- path: a\n  contents:\n  - path: b\n    git: {{url: '{root}/logs.git', ref: origin/main}}\n\
         \x20 - path: c\n    helmChart: {{name: redis, version: '>=17', repository: {{url: '{url}'}}}}\n"
    );
    sandbox.write("vendir.yml", &text);
    let lock = format!(
        "directories:\n- path: a\n  contents:\n  - path: b\n    git: {{sha: {logs}}}\n  - path: c\n    helmChart: {{version: 17.3.1}}\n"
    );
    sandbox.write("vendir.lock.yml", &lock);
    sandbox.mu(&["import"]).ok();
    assert_eq!(entry(&sandbox, "/logs")["commit"], logs.as_str());
    assert_eq!(entry(&sandbox, "/redis")["version"], "17.3.1");
    let manifest = sandbox.read("Mu.yaml");
    assert!(manifest.contains(&format!("#{logs}")) && manifest.contains("#17.3.1"), "{manifest}");
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_package_of_the_workspace_gets_the_dependencies() {
    let (_origin, root, [logs, _], _server) = repositories();
    let sandbox = sandbox();
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.write("acme/web/Mu.yaml", "name: acme/web\nversion: 0.1.0\n");
    let list = format!(
        "directories:\n- path: a\n  contents:\n  - path: b\n    git: {{url: '{root}/logs.git', ref: {logs}}}\n"
    );
    sandbox.write("acme/new/vendir.yml", &list);
    sandbox.mu(&["import", "acme/new/vendir.yml", "-p", "acme/web", "--dev"]).ok();
    assert!(sandbox.read("acme/web/Mu.yaml").contains("devDependencies:"));
    assert!(!sandbox.has("work/acme/new/Mu.yaml"));
    // Without a package there, the folder becomes one, by the name that references have for it.
    sandbox.mu_in("work/acme/new", &["import"]).ok();
    assert!(sandbox.read("acme/new/Mu.yaml").starts_with("name: acme/new\nversion: 0.1.0\n"));
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn hostile_lists_reach_nothing() {
    let sandbox = sandbox();
    let mark = sandbox.path("mark");
    let list = |url: &str| {
        format!(
            "directories:\n- path: a\n  contents:\n  - path: b\n    git: {{url: \"{url}\", ref: main}}\n"
        )
    };
    for (url, said) in [
        (format!("ext::sh -c 'touch {}'", mark.display()), "is not a valid reference"),
        ("https://ada:secretword@h.example/x".to_owned(), "is not a valid reference"),
        ("https://h.example/x\\x1b[31m".to_owned(), "is not a valid reference"),
    ] {
        sandbox.write("vendir.yml", &list(&url));
        let run = sandbox.mu(&["import"]).ok().says(&[said]);
        run.does_not_say(&["secretword", "\u{1b}"]);
        let _ = fs::remove_file(sandbox.path("work/Mu.yaml"));
    }
    assert!(!sandbox.has("work/Mu.yaml") && !sandbox.has("work/Mu.lock") && !mark.exists());
    // What cannot be read is said with its place, and nothing is written.
    for (file, text, place) in [
        ("vendir.yml", "directories: 1\n", "vendir.yml:1:14"),
        ("jsonnetfile.json", "{\"dependencies\": 1}\n", "jsonnetfile.json:1:18"),
        ("main.tf", "module \"a\" {\n  source = \"x\n}\n", "main.tf:2:12"),
        ("helmfile.yaml", "releases: [\n", "helmfile.yaml:1:11"),
    ] {
        sandbox.write(file, text);
        sandbox.mu(&["import", file]).fails().says(&[place]);
        fs::remove_file(sandbox.path("work").join(file)).expect("is there");
    }
    assert!(!sandbox.has("work/Mu.yaml"));
    // Anchors, depth and length have their limits.
    let mut bomb = "directories: []\na0: &a0 [x]\n".to_owned();
    for number in 1..20 {
        bomb.push_str(&format!(
            "a{number}: &a{number} [*a{0}, *a{0}, *a{0}, *a{0}, *a{0}]\n",
            number - 1
        ));
    }
    bomb.push_str("directories: *a19\n");
    sandbox.write("vendir.yml", &bomb);
    sandbox.mu(&["import"]).fails();
    sandbox.write("vendir.yml", &"x".repeat(2 << 20));
    sandbox.mu(&["import"]).fails();
}

#[test]
fn what_is_there_is_named() {
    let sandbox = sandbox();
    sandbox
        .mu(&["import"])
        .fails()
        .says(&["there is nothing in", "it reads .gitmodules, vendir.yml"]);
    sandbox.mu(&["import", "nowhere"]).fails().says(&["there is no folder"]);
    write(&sandbox.path("work"), "notes.txt", "x");
    let run = sandbox.mu(&["import", "notes.txt"]);
    assert_eq!(run.status, 2);
    run.says(&["is not a file that mu imports from"]);
    fs::remove_file(sandbox.path("work/notes.txt")).expect("is there");
    sandbox.write("vendir.yml", "directories: []\n");
    sandbox.write("main.tf", "module \"a\" {\n  source = \"github.com/o/x\"\n}\n");
    sandbox.write("outputs.tf", "output \"a\" {\n  value = 1\n}\n");
    sandbox
        .mu(&["init"])
        .ok()
        .says(&["`main.tf`, `vendir.yml` list dependencies too: `mu import` takes them over"]);
    fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is there");
    let answer = sandbox.mu(&["init", "--json"]).ok().json();
    assert_eq!(answer["importable"], serde_json::json!(["main.tf", "vendir.yml"]));
    for file in ["Mu.yaml", "vendir.yml"] {
        fs::remove_file(sandbox.path(&format!("work/{file}"))).expect("is there");
    }
    sandbox.mu(&["init"]).ok().says(&["`main.tf` lists dependencies too"]);
}

#[test]
fn a_submodule_that_was_cloned_from_a_folder_is_a_repository() {
    let (origin, _root, [_, libs], _server) = repositories();
    let sandbox = sandbox();
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    let place = origin.folder().display();
    let module = format!("[submodule \"libs\"]\n\tpath = libs\n\turl = {place}\n");
    sandbox.write(".gitmodules", &module);
    git(&work, &["update-index", "--add", "--cacheinfo", &format!("160000,{libs},libs")]);
    sandbox.mu(&["import"]).ok().says(&[&format!("as git+file://{place}#{libs}")]);
    assert_eq!(entry(&sandbox, "/libs")["commit"], libs.as_str());
    // As an argument, such a path is a folder, and what is said leads on.
    git(origin.root(), &["clone", "--quiet", "--bare", "logs.git", "bare.git"]);
    let bare = origin.root().join("bare.git").display().to_string();
    let run = sandbox.mu(&["add", &bare]).fails();
    let hint = format!("it is a Git repository: `git+file://{bare}` leads there");
    run.says(&[&hint]);
}
