//! Every command that there is, in a checkout that has links in the place of what the command touches: nothing outside is read into
//! the checkout, changed or removed.
//!
//! The commands are those that the program lists, so a new one fails here until it has a line. What else a checkout can bring is in
//! `hostile_checkout`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mu_testing::{Bundle, Operators};
use serde_json::json;
use walkdir::WalkDir;

use crate::help::commands;
use crate::hostile_checkout::{around, copy, link, run};
use crate::support::git::git;
use crate::support::{Package, Sandbox, write};

/// What is outside, in each file there.
const PRECIOUS: &str = "precious";

/// What every command reads or writes in a workspace, and whether it is a folder.
const EVERYWHERE: [(&str, bool); 7] = [
    (".mu", true),
    (".mu/packs", true),
    (".mu/packs/.mu", true),
    (".mu/workspace.yaml", false),
    ("Mu.lock", false),
    ("Mu.yaml", false),
    (".git", true),
];

/// A command, and lines that use it.
type Lines = (&'static str, &'static [&'static str]);

/// A line or more for each command.
const COMMANDS: &[Lines] = &[
    ("init", &["init acme/new --workspace", "init acme/new"]),
    ("import", &["import"]),
    ("get", &["get", "get aws/log", "get --frozen"]),
    ("add", &["add aws/log"]),
    ("remove", &["remove aws/ec2"]),
    ("update", &["update"]),
    ("upgrade", &["upgrade"]),
    ("downgrade", &["downgrade aws/ec2#1.0.0"]),
    ("pin", &["pin"]),
    ("unpin", &["unpin"]),
    ("patch", &["patch aws/ec2", "patch --drop aws/vpc", "patch"]),
    ("edit", &["edit aws/ec2 --from-pack", "edit", "edit --done --all", "edit --restore aws/vpc"]),
    ("resolve", &["resolve"]),
    ("what-if", &["what-if --with aws/log"]),
    ("which", &["which aws/vpc --all"]),
    ("list", &["list"]),
    ("tree", &["tree"]),
    ("graph", &["graph"]),
    ("why", &["why aws/vpc"]),
    ("affected", &["affected --since HEAD"]),
    ("images", &["images"]),
    ("licenses", &["licenses"]),
    ("sbom", &["sbom"]),
    ("audit", &["audit", "audit --fix"]),
    ("outdated", &["outdated"]),
    ("diff", &["diff aws/ec2#1.0.0 #1.1.0"]),
    ("status", &["status"]),
    ("search", &["search aws"]),
    ("info", &["info aws/ec2", "info ."]),
    ("versions", &["versions aws/ec2"]),
    ("verify", &["verify"]),
    ("trust", &["trust"]),
    ("trust show", &["trust show aws/ec2"]),
    ("trust add", &["trust add ada github:acme/charts --for aws/* -w --yes"]),
    ("trust allow", &["trust allow aws/ec2#1.1.0 -w --yes"]),
    ("fetch", &["fetch"]),
    ("build", &["build --yes"]),
    ("vendor", &["vendor", "vendor --undo"]),
    ("version", &["version patch"]),
    ("pack", &["pack", "pack --list"]),
    ("publish", &["publish --dry-run --to local-hub", "publish --to local-hub"]),
    ("yank", &["yank acme/web#0.1.0 --to local-hub"]),
    ("deprecate", &["deprecate acme/web#0.1.0 --to local-hub"]),
    ("tag", &["tag acme/web#0.1.0 beta --to local-hub"]),
    ("mirror", &["mirror --lock --to local-hub"]),
    ("login", &["login x.example --yes --offline"]),
    ("whoami", &["whoami x.example --offline"]),
    ("logout", &["logout x.example"]),
    ("registry", &["registry list"]),
    ("registry list", &["registry list"]),
    ("registry add", &["registry add x.example/ https://x.example/"]),
    ("registry remove", &["registry remove x.example/"]),
    ("hub", &["hub check local-hub"]),
    ("hub init", &["hub init local-hub"]),
    ("hub check", &["hub check local-hub --repair"]),
    ("hub tidy", &["hub tidy local-hub"]),
    ("hub serve", &["hub serve nowhere"]),
    ("hub token", &["hub token list local-hub"]),
    ("hub token add", &["hub token add local-hub ada --namespace acme"]),
    ("hub token list", &["hub token list local-hub"]),
    ("hub token revoke", &["hub token revoke local-hub ada"]),
    ("cache", &["cache dir"]),
    ("cache dir", &["cache dir"]),
    ("cache size", &["cache size"]),
    ("cache prune", &["cache prune"]),
    ("cache clean", &["cache clean"]),
    ("config", &["config list"]),
    ("config list", &["config list"]),
    ("config get", &["config get resolution"]),
    ("config set", &["config set resolution minimal"]),
    ("config unset", &["config unset resolution"]),
    ("env", &["env"]),
    ("plugin", &["plugin list"]),
    ("plugin list", &["plugin list"]),
    ("plugin check", &["plugin check ./mu-provider-tool"]),
    ("plugin run", &["plugin run tool versions x"]),
    ("doctor", &["doctor"]),
    ("completions", &["completions bash", "__complete -- config get "]),
    ("man", &["man --into man1"]),
    ("schema", &["schema lock"]),
];

/// Lines with folders and files of their own, and whether these are folders.
const OWN: &[(&str, &[(&str, bool)])] = &[
    (
        "patch aws/ec2",
        &[
            (".mu/patch", true),
            (".mu/patch/hub.mu.com+aws+ec2", true),
            (".mu/patch/.gitignore", false),
        ],
    ),
    ("patch --save .mu/patch/hub.mu.com+aws+log", &[("patches", true), (".mu/patch", true)]),
    ("patch --drop aws/vpc", &[("patches", true), ("patches/vpc.patch", false)]),
    ("get", &[("patches", true), ("patches/vpc.patch", false)]),
    (
        "import",
        &[
            (".gitmodules", false),
            ("vendir.yml", false),
            ("vendir.lock.yml", false),
            ("jsonnetfile.json", false),
            ("helmfile.yaml", false),
            ("main.tf", false),
            (".terraform", true),
            (".terraform/modules", true),
            (".terraform/modules/modules.json", false),
        ],
    ),
    (
        "edit aws/ec2 --from-pack",
        &[
            ("aws", true),
            ("hub.mu.com", true),
            (".mu/edit", true),
            (".mu/edit/new", true),
            (".mu/edits.json", false),
            (".git/info", true),
            (".git/info/exclude", false),
        ],
    ),
    (
        "edit --done --all --force",
        &[
            ("net", true),
            ("net/tool", true),
            (".mu/edit", true),
            (".mu/edit/trash", true),
            (".mu/edits.json", false),
            (".git/info/exclude", false),
        ],
    ),
    (
        "edit --restore aws/old",
        &[("old", true), (".mu/edit/trash", true), (".mu/edit/trash/old-1", true)],
    ),
    ("get --offline", &[("net", true), ("net/tool", true), (".mu/edits.lock", false)]),
    (
        "vendor --for helm",
        &[
            ("chart", true),
            ("chart/charts", true),
            ("chart/charts/lib-0.1.0.tgz", false),
            ("chart/Chart.lock", false),
            ("chart/Chart.yaml", false),
            ("lib", true),
            ("lib/.helmignore", false),
            ("lib/values.yaml", false),
        ],
    ),
    (
        "vendor --for kcl",
        &[
            ("module", true),
            ("module/vendor", true),
            ("module/vendor/x_b", true),
            ("module/vendor/x_b/git", true),
            ("module/vendor/x_b/.mu-git", true),
            ("module/kcl.mod.lock", false),
            ("module/kcl.mod", false),
        ],
    ),
    ("vendor --for olm", &[("olm", true), ("olm/web.yaml", false)]),
    ("vendor --for crossplane", &[("crossplane", true)]),
    ("vendor", &[(".mu/packs/.gitattributes", false), (".mu/packs/vendored.json", false)]),
    (
        "pack",
        &[(".gitignore", false), (".muignore", false), ("src", true), ("web-0.1.0.tgz", false)],
    ),
    ("publish --to local-hub", &[("local-hub", true), ("local-hub/index", true), ("src", true)]),
    ("mirror --lock --to local-hub", &[("local-hub", true), ("local-hub/packs", true)]),
    ("build --yes", &[(".mu/packs/hub.mu.com", true), (".mu/packs/hub.mu.com/aws/ec2", true)]),
];

/// What the lines of [`OWN`] need that is nowhere else.
fn checkout() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1.0.0", "aws/log"]);
    sandbox.publish(&[
        Package::new("aws/vpc", "1.0.0").file("main.tf", "one\n"),
        Package::new("aws/log", "1.0.0").file("main.tf", "one\n"),
        Package::new("aws/ec2", "1.0.0").needs("aws/vpc"),
        Package::new("aws/ec2", "1.1.0").needs("aws/vpc"),
        Package::new("net/tool", "1.0.0"),
    ]);
    // Charts and modules whose dependencies are beside them or in Git, and an operator.
    sandbox.write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies:\n- {name: lib, version: 0.1.0, repository: file://../lib}\n",
    );
    sandbox.write("lib/Chart.yaml", "apiVersion: v2\nname: lib\nversion: 0.1.0\n");
    sandbox.write("lib/values.yaml", "a: 1\n");
    let module = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\n");
    let origin = sandbox.path("origin");
    write(&origin, "kcl.mod", module("x"));
    git(&origin, &["init", "--quiet", "."]);
    git(&origin, &["add", "."]);
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git(&origin, &[&who[..], &["commit", "--quiet", "--message", "a"]].concat());
    git(&origin, &["branch", "b/git"]);
    let needs = format!("x = {{ git = \"file://{}\", branch = \"b/git\" }}", origin.display());
    sandbox.write("module/kcl.mod", &format!("{}[dependencies]\n{needs}\n", module("m")));
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("web", "stable");
    operators.channel("web", "stable", &[json!("web.v1.0.0")]);
    operators.bundle(&Bundle::new("web", "1.0.0"));
    write(&sandbox.path("catalog"), "catalog.json", operators.text());
    let settings = format!(
        "formats: [helm, kcl]\nregistries: {{ops.example/: {{provider: olm, url: \"file://{}\"}}}}\n",
        sandbox.path("catalog").display()
    );
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.asks_for(&["aws/ec2#^1.0.0", "aws/log", "ops.example/web"]);
    git(&sandbox.path("work"), &["init", "--quiet", "."]);
    sandbox.mu(&["get"]).ok();
    for line in ["helm", "kcl", "olm"] {
        sandbox.mu(&["vendor", "--for", line]).ok();
    }
    // A patch, working copies, edits in use and in the trash.
    let patch =
        "diff --git a/main.tf b/main.tf\n--- a/main.tf\n+++ b/main.tf\n@@ -1 +1 @@\n-one\n+two\n";
    sandbox.write("patches/vpc.patch", patch);
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("{settings}patches: {{aws/vpc: patches/vpc.patch}}\n"),
    );
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["patch", "aws/log"]).ok();
    sandbox.write(".mu/patch/hub.mu.com+aws+log/main.tf", "three\n");
    let edit = |id: &str, folder: &str| {
        json!({"id": id, "folder": folder, "clone": folder, "version": "1.0.0", "branch": "x",
            "commit": "0123456789012345678901234567890123456789"})
    };
    let mut old = edit("hub.mu.com/aws/old", "old/tool");
    old["trash"] = json!("old-1");
    old["trashed"] = json!(1_700_000_000);
    sandbox.write(".mu/edit/trash/old-1/Mu.yaml", "name: aws/old\n");
    sandbox.write("net/tool/Mu.yaml", "name: net/tool\nversion: 1.0.0\n");
    let edits = json!({"edits": [edit("hub.mu.com/net/tool", "net/tool"), old]});
    sandbox.write(".mu/edits.json", &edits.to_string());
    // What other tools list.
    sandbox.write("vendir.yml", "directories: []\n");
    sandbox.write("vendir.lock.yml", "directories: []\n");
    sandbox.write("jsonnetfile.json", "{}\n");
    sandbox.write("helmfile.yaml", "releases: []\n");
    sandbox.write("main.tf", "module \"a\" {\n  source = \"./a\"\n}\n");
    sandbox.write(".gitmodules", "");
    sandbox.write(".terraform/modules/modules.json", "{\"Modules\": []}\n");
    sandbox.write("src/main.txt", "content");
    sandbox.mu(&["hub", "init", "local-hub"]).ok();
    // The lock of the user's tokens is there from now on.
    sandbox.mu(&["logout", "x.example"]).ok();
    // What is outside has all that the links could be taken for.
    let victim = sandbox.path("victim");
    write(&victim, "file", PRECIOUS);
    for part in [
        "packs/hub.mu.com/aws/ec2",
        "packs/.mu",
        "hub.mu.com/aws",
        "aws",
        "aws/ec2",
        "edit/trash",
        "trash",
        "tool",
        "patch",
        "hub.mu.com+aws+ec2",
        "hub.mu.com+aws+log",
        "charts",
        "vendor/x_b/git",
        "x_b/git",
        "git",
        "x_1.0.0",
        "index/acme",
        "info",
        "templates",
        "old-1",
    ] {
        write(&victim, &format!("{part}/file"), PRECIOUS);
    }
    for file in [
        "vpc.patch",
        "exclude",
        "workspace.yaml",
        "lib-0.1.0.tgz",
        "lib-0.0.9.tgz",
        "Chart.lock",
        "kcl.mod.lock",
        "web.yaml",
        "info/exclude",
        "values.yaml",
        "hub.json",
        "lock",
        "edits.json",
    ] {
        write(&victim, file, PRECIOUS);
    }
    sandbox
}

/// Texts of what is outside that came into the checkout or were printed.
fn came_in(sandbox: &Sandbox) -> Vec<String> {
    let files = WalkDir::new(sandbox.path("work")).into_iter().flatten();
    let has = |path: &Path| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(PRECIOUS.len()).any(|window| window == PRECIOUS.as_bytes())
    };
    let files = files.filter(|entry| entry.file_type().is_file() && has(entry.path()));
    files.map(|entry| entry.path().display().to_string()).collect()
}

/// Runs each line in copies of a checkout in which each of its places is a link out of it.
fn play<'l>(sandbox: &Sandbox, lines: impl Iterator<Item = (&'l str, &'l [(&'l str, bool)])>) {
    let kept = sandbox.path("kept");
    copy(&sandbox.path("work"), &kept);
    let before = around(sandbox);
    for (line, places) in lines {
        let words: Vec<&str> = line.split(' ').collect();
        for (place, is_folder) in places {
            copy(&kept, &sandbox.path("work"));
            link(sandbox, place, if *is_folder { "victim" } else { "victim/file" });
            let run = run(sandbox, &words);
            let shown = || format!("{place} is a link:\n{}", run.shown());
            assert!([0, 1, 2].contains(&run.status), "{}", shown());
            let after = around(sandbox);
            let changed = |one: &BTreeMap<String, String>, other: &BTreeMap<String, String>| {
                let paths = one.iter().filter(|(path, is)| other.get(*path) != Some(is));
                paths.map(|(path, _)| path.clone()).collect::<Vec<_>>()
            };
            assert!(
                after == before,
                "gone or changed: {:?}, new: {:?}\n{}",
                changed(&before, &after),
                changed(&after, &before),
                shown()
            );
            assert_eq!(came_in(sandbox), [""; 0], "{}", shown());
            let printed = [&run.stdout, &run.stderr];
            assert!(!printed.iter().any(|text| text.contains(PRECIOUS)), "{}", shown());
        }
    }
}

/// All commands that the program lists, as they are written.
fn listed(sandbox: &Sandbox, path: &[&str], found: &mut Vec<String>) {
    let help = sandbox.mu(&[path, &["--help"]].concat()).ok().stdout;
    for command in commands(&help) {
        let deeper = [path, &[&*command]].concat();
        found.push(deeper.join(" "));
        listed(sandbox, &deeper, found);
    }
}

#[test]
fn every_command_has_a_line_and_every_line_is_one() {
    let sandbox = checkout();
    let mut found = Vec::new();
    listed(&sandbox, &[], &mut found);
    found.retain(|command| !command.starts_with("help"));
    let missing =
        found.iter().filter(|command| !COMMANDS.iter().any(|(known, _)| known == *command));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "write lines for these commands");
    let kept = sandbox.path("kept");
    copy(&sandbox.path("work"), &kept);
    let lines = COMMANDS.iter().flat_map(|(_, lines)| lines.iter());
    for line in lines.chain(OWN.iter().map(|(line, _)| line)) {
        copy(&kept, &sandbox.path("work"));
        let run = run(&sandbox, &line.split(' ').collect::<Vec<_>>());
        // Its arguments are understood.
        assert!(!run.stderr.contains("try '--help'"), "{}", run.shown());
    }
}

#[test]
fn no_command_reaches_out_of_a_checkout_through_a_link_that_all_of_them_meet() {
    let lines = COMMANDS.iter().flat_map(|(_, lines)| lines.iter());
    play(&checkout(), lines.map(|line| (*line, &EVERYWHERE[..])));
}

#[test]
fn no_command_reaches_out_of_a_checkout_through_a_link_in_its_own_folders() {
    play(&checkout(), OWN.iter().map(|(line, places)| (*line, *places)));
}
