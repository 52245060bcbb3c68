//! KCL modules: in OCI registries, in Git, in folders; and a `kcl.mod` as a workspace.

use std::fs;

use mu_testing::oci::Behaviour;
use mu_testing::{Artifact, DockerRegistry, OciServer, digest_of, tree};

use super::support::Sandbox;

/// The text of a `kcl.mod`.
fn module(name: &str, version: &str, dependencies: &str) -> String {
    let head =
        format!("[package]\nname = \"{name}\"\nedition = \"v0.11.0\"\nversion = \"{version}\"\n");
    format!("{head}\n[dependencies]\n{dependencies}")
}

/// Pushes a module as `kcl-lang/NAME`, by the tag `tag`.
fn push(host: &str, name: &str, tag: &str, dependencies: &str) {
    let version = tag.trim_start_matches('v');
    let text = module(name, version, dependencies);
    let files = [("kcl.mod", &*text), ("main.k", "a = 1\n"), ("lib/b.k", "b = 2\n")];
    let artifact = Artifact::module(name, version, &files, !tag.starts_with('v'));
    artifact.push(host, &format!("kcl-lang/{name}"), tag);
}

/// A folder with a `kcl.mod`, whose modules are in Docker's registry.
fn workspace(dependencies: &str) -> (Sandbox, DockerRegistry) {
    let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    for version in ["1.28", "1.30", "1.31.2", "1.31.10", "2.0.0"] {
        push(&host, "k8s", version, "");
    }
    for version in ["v0.4.0", "v0.4.2"] {
        push(&host, "konfig", version, "k8s = \"1.30\"\n");
    }
    push(&host, "hello", "0.1.2", "");
    let settings = format!("registries: {{ghcr.io/kcl-lang/: \"oci://{host}/kcl-lang\"}}\n");
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.write("kcl.mod", &module("shop", "0.1.0", dependencies));
    (sandbox, server)
}

const KONFIG: &str = "konfig = { oci = \"oci://ghcr.io/kcl-lang/konfig\", tag = \"v0.4.0\" }\n";

#[test]
fn a_folder_with_a_module_is_a_workspace() {
    let (sandbox, server) = workspace(&format!("k8s = \"1.28\"  # any newer one\n{KONFIG}"));
    insta::assert_snapshot!(sandbox.mu(&["get"]).ok().shown(), @"
    $ mu get
    + ghcr.io/kcl-lang/k8s 1.31.10
    + ghcr.io/kcl-lang/konfig 0.4.2
    installed 2 packages (2 downloaded, 0 from cache)
    [exit 0]
    ");
    let pack = "work/.mu/packs/ghcr.io/kcl-lang/konfig";
    let text = module("konfig", "0.4.2", "k8s = \"1.30\"\n");
    let files = tree(&sandbox.path(pack));
    assert_eq!(files.keys().collect::<Vec<_>>(), ["kcl.mod", "lib/b.k", "main.k"]);
    assert_eq!(files["kcl.mod"].1, text.into_bytes());
    let lock = sandbox.lock();
    assert_eq!(lock["packages"][1]["digest"], *digest_of(&sandbox.path(pack)));
    insta::assert_snapshot!(sandbox.mu(&["tree"]).ok().shown(), @"
    $ mu tree
    shop 0.1.0
    ├── ghcr.io/kcl-lang/k8s 1.31.10 [required: ^1.28]
    └── ghcr.io/kcl-lang/konfig 0.4.2 [required: ^0.4.0]
        └── ghcr.io/kcl-lang/k8s 1.31.10 [required: ^1.30]
    [exit 0]
    ");
    sandbox
        .mu(&["why", "oci://ghcr.io/kcl-lang/k8s"])
        .ok()
        .says(&["^1.30 by ghcr.io/kcl-lang/konfig"]);
    sandbox.mu(&["verify"]).ok();
    // A version that leaves a number out is one.
    let versions = sandbox.mu(&["versions", "oci://ghcr.io/kcl-lang/k8s"]).ok();
    versions.says(&["1.28", "1.31.10", "2.0.0"]);
    sandbox.mu(&["resolve", "oci://ghcr.io/kcl-lang/k8s#1.30"]).ok().says(&["k8s 1.30"]);
    sandbox
        .mu(&["info", "oci://ghcr.io/kcl-lang/konfig"])
        .ok()
        .says(&["kcl", "oci://ghcr.io/kcl-lang/k8s#^1.30"]);
    // The least versions, as KCL's own selection would take them.
    let least = sandbox.mu(&["resolve", "--resolution", "minimal"]).ok();
    least.says(&["k8s 1.30", "konfig 0.4.0"]);
    // From a lock, one request for each.
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    let before = server.log().len();
    sandbox.mu(&["get", "--locked"]).ok();
    let log = server.log().split_off(before);
    assert_eq!(log.len(), 2, "{log:#?}");
    assert!(log.iter().all(|line| line.contains("/blobs/sha256:")), "{log:#?}");
    assert_eq!(sandbox.lock(), lock);
}

#[test]
fn a_layer_is_got_once_to_choose_and_to_install() {
    let (sandbox, server) = workspace(KONFIG);
    let before = server.log().len();
    sandbox.mu(&["get"]).ok();
    let log = server.log().split_off(before);
    let blobs = log.iter().filter(|line| line.contains("/blobs/sha256:"));
    assert_eq!(blobs.count(), 2, "{log:#?}");
}

#[test]
fn commands_edit_a_module_and_keep_its_layout() {
    let (sandbox, _server) =
        workspace("# What Kubernetes knows.\nk8s = \"1.28\"  # any newer one\n");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["add", "oci://ghcr.io/kcl-lang/hello"]).ok().says(&["(kcl.mod)"]);
    let text = |k8s: &str, rest: &str| {
        module(
            "shop",
            "0.1.0",
            &format!("# What Kubernetes knows.\nk8s = \"{k8s}\"  # any newer one\n{rest}"),
        )
    };
    assert_eq!(sandbox.read("kcl.mod"), text("1.28", "hello = \"0.1.2\"\n"));
    sandbox.mu(&["add", "oci://ghcr.io/kcl-lang/konfig#^0.4.0"]).ok();
    assert_eq!(sandbox.read("kcl.mod"), text("1.28", "hello = \"0.1.2\"\nkonfig = \"0.4.0\"\n"));
    sandbox.mu(&["remove", "ghcr.io/kcl-lang/hello"]).ok();
    sandbox.mu(&["upgrade", "ghcr.io/kcl-lang/k8s"]).ok();
    assert_eq!(sandbox.read("kcl.mod"), text("1.31.10", "konfig = \"0.4.0\"\n"));
    let before = sandbox.read("kcl.mod");
    sandbox
        .mu(&["add", "oci://ghcr.io/kcl-lang/hello#>=0.1 <3"])
        .fails()
        .says(&[
            "error: cannot change `[DIR]/work/kcl.mod`: `kcl.mod` cannot say `>=0.1 <3`",
            "hint: it says",
        ])
        .does_not_say(&["kcl.mod:1:1"]);
    assert_eq!(sandbox.read("kcl.mod"), before);
    sandbox.mu(&["version", "minor"]).ok();
    assert_eq!(
        sandbox.read("kcl.mod"),
        before.replace("version = \"0.1.0\"", "version = \"0.2.0\"")
    );
    sandbox.mu(&["pack"]).fails().says(&["kcl mod push"]);
    sandbox.write("kcl.mod", &module("shop", "0.1.0", "k8s = 7\n"));
    sandbox.mu(&["get"]).fails().says(&["kcl.mod:7:7", "the dependency `k8s` must be a version"]);
}

#[test]
fn a_module_is_removed_and_upgraded_by_its_local_name() {
    let (sandbox, _server) = workspace(
        "a = { oci = \"oci://ghcr.io/kcl-lang/k8s\", tag = \"1.28\" }\nb = { oci = \"oci://ghcr.io/kcl-lang/hello\", tag = \"0.1.2\" }\n",
    );
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["upgrade", "a"]).ok();
    sandbox.mu(&["pin", "a"]).ok();
    assert!(
        sandbox
            .read("kcl.mod")
            .contains("a = { oci = \"oci://ghcr.io/kcl-lang/k8s\", tag = \"2.0.0\" }")
    );
    sandbox.mu(&["remove", "a"]).ok();
    assert!(!sandbox.read("kcl.mod").contains("k8s"));
    sandbox.mu(&["add", "oci://ghcr.io/kcl-lang/k8s#^1.30"]).ok();
    sandbox.mu(&["remove", "b"]).ok();
    assert!(sandbox.read("kcl.mod").ends_with("[dependencies]\nk8s = \"1.30\"\n"));
}

#[test]
fn modules_in_folders_and_in_git_lead_on() {
    let (sandbox, _server) = workspace("");
    sandbox.trusts_folder("beside");
    let git = sandbox.path("git/tools");
    mu_testing::write(&git, "kcl.mod", module("tools", "0.3.0", "hello = \"0.1.0\"\n"));
    mu_testing::write(&git, "tools.k", "t = 1\n");
    for arguments in [
        &["init", "-q"][..],
        &["add", "."],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
        &["tag", "v0.3.0"],
    ] {
        let done = std::process::Command::new("git").arg("-C").arg(&git).args(arguments).status();
        assert!(done.expect("git runs").success());
    }
    mu_testing::write(
        &sandbox.path("beside"),
        "kcl.mod",
        module("beside", "0.1.0", "konfig = \"0.4.0\"\n"),
    );
    let dependencies = format!(
        "tools = {{ git = \"file://{}\", tag = \"v0.3.0\" }}\nbeside = {{ path = \"../beside\" }}\n",
        git.display()
    );
    sandbox.write("kcl.mod", &module("shop", "0.1.0", &dependencies));
    sandbox.mu(&["get"]).ok().says(&["hello 0.1.2", "konfig 0.4.2", "tools 0.3.0"]);
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn what_kcl_has_locked_stays_where_there_is_no_lock_of_mu_yet() {
    let (sandbox, _server) = workspace(&format!("k8s = \"1.28\"\n{KONFIG}"));
    let entry = |name: &str, tag: &str| {
        format!(
            "  [dependencies.{name}]\n    name = \"{name}\"\n    full_name = \"{name}_{tag}\"\n    version = \"{tag}\"\n    reg = \"ghcr.io\"\n    repo = \"kcl-lang/{name}\"\n    oci_tag = \"{tag}\"\n"
        )
    };
    let lock = [entry("k8s", "1.30"), entry("konfig", "v0.4.0")].concat();
    sandbox
        .write("kcl.mod.lock", &format!("[dependencies]\n{}", lock.replace("oci_tag", "ocitag")));
    sandbox.mu(&["get"]).fails().says(&[
        "kcl.mod.lock:8:5",
        "unknown key `ocitag`; did you mean `oci_tag`?",
        "`kcl mod update` writes it anew",
    ]);
    sandbox.write("kcl.mod.lock", &format!("[dependencies]\n{lock}"));
    sandbox.mu(&["get"]).ok().says(&[
        "k8s 1.30",
        "konfig 0.4.0",
        "kept 2 versions of kcl.mod.lock",
    ]);
    sandbox.mu(&["update"]).ok().says(&["k8s 1.30 → 1.31.10"]);
    // Earlier versions of KCL named no place for what is in its own registry.
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    let is_place =
        |line: &&str| !["reg =", "repo =", "oci_tag ="].iter().any(|key| line.contains(key));
    let old: Vec<&str> = lock.lines().filter(is_place).collect();
    sandbox.write("kcl.mod.lock", &format!("[dependencies]\n{}\n", old.join("\n")));
    sandbox.mu(&["get"]).ok().says(&["k8s 1.30", "kept 2 versions of kcl.mod.lock"]);
    // Where somebody has edited kcl.mod since, the two disagree: that is said, and what kcl.mod wants is chosen.
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    let lock = [entry("k8s", "1.14"), entry("konfig", "v0.4.0")].concat();
    sandbox.write("kcl.mod.lock", &format!("[dependencies]\n{lock}"));
    sandbox.mu(&["get"]).ok().says(&[
        "kept 1 version of kcl.mod.lock",
        "kcl.mod.lock has versions that do not fit what is required now: `ghcr.io/kcl-lang/k8s` 1.14 (chosen: 1.31.10)",
    ]);
}

#[test]
fn a_module_of_several_in_a_repository_is_found_by_its_name() {
    let (sandbox, _server) = workspace("");
    let git = sandbox.path("git/modules.git");
    let run = |arguments: &[&str]| mu_testing::git::git(&git, arguments);
    mu_testing::write(&git, "kcl.mod", module("root", "9.9.9", ""));
    mu_testing::write(
        &git,
        "mods/ndots/kcl.mod",
        module("add-ndots", "0.1.0", "hello = \"0.1.0\"\n"),
    );
    mu_testing::write(&git, "mods/ndots/main.k", "a = 1\n");
    mu_testing::write(&git, "mods/other/kcl.mod", module("other", "0.1.0", ""));
    mu_testing::write(&git, "docs/README.md", "no module\n");
    run(&["init", "--quiet", "."]);
    run(&["add", "."]);
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    run(&[&who[..], &["commit", "--quiet", "--message", "a"]].concat());
    run(&["tag", "v0.1.0"]);
    let needs = |package: &str| {
        format!(
            "[dependencies]\nndots = {{ git = \"file://{}\", tag = \"v0.1.0\", package = \"{package}\" }}\n",
            git.display()
        )
    };
    // A module that is only used needs no name.
    sandbox.write("kcl.mod", &needs("add-ndots"));
    sandbox.mu(&["vendor", "--for", "kcl"]).ok().says(&["add-ndots", "hello 0.1.2"]);
    let lock = sandbox.read("kcl.mod.lock");
    for expected in [
        "full_name = \"add-ndots_0.1.0\"",
        "git_tag = \"v0.1.0\"",
        "package = \"add-ndots\"",
        "full_name = \"hello_0.1.2\"",
    ] {
        assert!(lock.contains(expected), "{expected}: {lock}");
    }
    assert!(sandbox.has("work/vendor/ndots_v0.1.0/main.k"));
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.write("kcl.mod", &needs("nothing"));
    sandbox.mu(&["get"]).fails().says(&["has no folder `nothing`"]);
    // A folder of that name counts first, and has to be a module.
    sandbox.write("kcl.mod", &needs("docs"));
    sandbox.mu(&["get"]).fails().says(&["can require only KCL modules"]);
    // Two of one name are none.
    mu_testing::write(&git, "mods/again/kcl.mod", module("add-ndots", "0.2.0", ""));
    run(&["add", "."]);
    run(&[&who[..], &["commit", "--quiet", "--message", "b"]].concat());
    run(&["tag", "v0.2.0"]);
    sandbox.write("kcl.mod", &needs("add-ndots").replace("v0.1.0", "v0.2.0"));
    sandbox.mu(&["get"]).fails().says(&["two modules called `add-ndots`", "mods/again"]);
}

#[test]
fn a_module_inside_of_another_ones_artifact_is_not_passed_over() {
    let named = |name: &str| KONFIG.replace(" }", &format!(", package = \"{name}\" }}"));
    let (sandbox, _server) = workspace(&named("inner"));
    sandbox.mu(&["get"]).fails().says(&[
        "requires the module `inner` of `oci://ghcr.io/kcl-lang/konfig`, and the module there is `konfig`",
        "write `package = \"konfig\"`, or publish `inner` by itself",
    ]);
    sandbox.write("kcl.mod", &module("shop", "0.1.0", &named("konfig")));
    sandbox.mu(&["get"]).ok();
}

#[test]
fn modules_that_lie_are_refused() {
    let mut sandbox = Sandbox::new();
    let server = OciServer::start(Behaviour::default());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    sandbox.asks_for(&[&format!("oci://{host}/kcl/web")]);
    let refused = |artifact: &Artifact, code: &str, reason: &str| {
        artifact.push(&host, "kcl/web", "1.0.0");
        let _ = fs::remove_dir_all(sandbox.path("cache"));
        let error = sandbox.mu(&["get", "--json"]).fails_with(code);
        assert!(error.to_string().contains(reason), "{reason}: {error}");
        assert!(!sandbox.has(&format!("work/.mu/packs/{}", host.replace(':', "+"))));
    };
    let text = module("web", "2.0.0", "");
    let web = |files: &[(&str, &str)]| Artifact::module("web", "1.0.0", files, true);
    refused(
        &web(&[("kcl.mod", &text)]),
        "no-solution",
        "its tag is `1.0.0`, and it says that it is 2.0.0",
    );
    refused(&web(&[("main.k", "a = 1\n")]), "no-solution", "there is no `kcl.mod`");
    let shown = sandbox.mu(&["info", &format!("oci://{host}/kcl/web")]).ok();
    assert!(
        shown.says(&["cannot be used here"]).stdout.lines().all(|line| !line.starts_with("usable"))
    );
    refused(&web(&[("kcl.mod", "[package")]), "no-solution", "`kcl.mod`: unclosed table");
    let text = module("web", "1.0.0", "a = { path = \"../a\" }\n");
    refused(&web(&[("kcl.mod", &text)]), "no-solution", "which is on its author's machine");
    let empty = Artifact::new("application/vnd.oci.empty.v1+json", b"{}")
        .says("org.kcllang.package.name", "web");
    refused(&empty, "no-solution", "a KCL module without files");
    let text = module("web", "1.0.0", "");
    let honest = web(&[("kcl.mod", &text)]);
    let mut manifest = honest.manifest();
    let layer = manifest["layers"][0]["digest"].as_str().expect("is text").to_owned();
    honest.push(&host, "kcl/web", "1.0.0");
    server.spoil(&layer, b"something else");
    let _ = fs::remove_dir_all(sandbox.path("cache"));
    let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
    assert!(error.to_string().contains("is not the one that was expected"), "{error}");
    manifest["layers"][0]["size"] = (1_u64 << 50).into();
    server.manifest("kcl/web", "1.0.0", &manifest);
    sandbox.mu(&["get"]).fails().says(&["are the most that mu reads"]);
    // What leads out of the folder, or unpacks to far more than it is.
    let bomb = "x".repeat(64 << 20);
    refused(&web(&[("kcl.mod", &text), ("main.k", &bomb)]), "integrity", "is refused");
    let link = [
        ("kcl.mod".to_owned(), ('f', text.clone().into_bytes())),
        ("out".to_owned(), ('l', b"../..".to_vec())),
    ];
    let layer = mu_testing::tar(link);
    let tricky = Artifact::new("application/vnd.oci.empty.v1+json", b"{}")
        .layer("application/vnd.oci.image.layer.v1.tar", &layer, &[])
        .says("org.kcllang.package.name", "web");
    refused(&tricky, "integrity", "is refused");
}

/// A sum as KCL has it: over the bytes of the files in the order in which Go walks a folder.
fn sum(files: &[&str]) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(files.concat().as_bytes());
    base64::engine::general_purpose::STANDARD.encode(digest)
}

#[test]
fn modules_go_where_kcl_looks_for_them() {
    let (sandbox, server) = workspace(&format!("k8s = \"1.28\"\n{KONFIG}"));
    let asked = sandbox.mu(&["vendor", "--for", "kcl", "--dry-run"]).ok();
    asked.says(&["+ vendor/k8s_1.31.10", "+ vendor/konfig_v0.4.2", "nothing was written"]);
    assert!(!sandbox.has("work/vendor") && !sandbox.has("work/kcl.mod.lock"));
    insta::assert_snapshot!(sandbox.mu(&["vendor", "--for", "kcl"]).ok().shown(), @"
    $ mu vendor --for kcl
    + ghcr.io/kcl-lang/k8s 1.31.10
    + ghcr.io/kcl-lang/konfig 0.4.2
    + vendor/k8s_1.31.10
    + vendor/konfig_v0.4.2
    installed 2 packages (2 downloaded, 0 from cache)
    note: the kcl.mod of shop names k8s 1.28; Mu.lock has 1.31.10; `mu pin` writes that into kcl.mod, which KCL goes by
    note: the kcl.mod of shop names konfig v0.4.0; Mu.lock has 0.4.2; `mu pin` writes that into kcl.mod, which KCL goes by
    note: the kcl.mod of konfig 0.4.2 names k8s 1.30; Mu.lock has 1.31.10
    vendor/ (2 modules) and kcl.mod.lock of shop fit Mu.lock; commit them, or use `kcl run --vendor`
    [exit 0]
    ");
    let text = module("k8s", "1.31.10", "");
    let k8s = sum(&[&text, "b = 2\n", "a = 1\n"]);
    let konfig = sum(&[&module("konfig", "0.4.2", "k8s = \"1.30\"\n"), "b = 2\n", "a = 1\n"]);
    let expected = format!(
        "[dependencies]\n  [dependencies.k8s]\n    name = \"k8s\"\n    full_name = \"k8s_1.31.10\"\n    version = \"1.31.10\"\n    sum = \"{k8s}\"\n    reg = \"ghcr.io\"\n    repo = \"kcl-lang/k8s\"\n    oci_tag = \"1.31.10\"\n  [dependencies.konfig]\n    name = \"konfig\"\n    full_name = \"konfig_v0.4.2\"\n    version = \"v0.4.2\"\n    sum = \"{konfig}\"\n    reg = \"ghcr.io\"\n    repo = \"kcl-lang/konfig\"\n    oci_tag = \"v0.4.2\"\n"
    );
    assert_eq!(sandbox.read("kcl.mod.lock"), expected);
    let pack = tree(&sandbox.path("work/.mu/packs/ghcr.io/kcl-lang/konfig"));
    assert_eq!(tree(&sandbox.path("work/vendor/konfig_v0.4.2")), pack);
    // Again there is nothing to do, and no request; what was changed comes back, and what is not KCL's stays.
    sandbox.write("vendor/k8s_1.31.10/main.k", "changed = 1\n");
    sandbox.write("vendor/k8s_1.28/main.k", "old = 1\n");
    sandbox.write("vendor/own/main.k", "own = 1\n");
    let before = server.log().len();
    let again = sandbox.mu(&["vendor", "--for", "kcl", "--offline"]).ok();
    again.says(&["+ vendor/k8s_1.31.10", "- vendor/k8s_1.28"]);
    assert_eq!(server.log().len(), before);
    assert_eq!(sandbox.read("vendor/k8s_1.31.10/main.k"), "a = 1\n");
    assert!(sandbox.has("work/vendor/own") && !sandbox.has("work/vendor/k8s_1.28"));
    sandbox.mu(&["vendor", "--for", "kcl"]).ok().says(&["are up to date"]);
    // Pinned, kcl.mod and its lock agree.
    sandbox.mu(&["pin"]).ok();
    sandbox.mu(&["vendor", "--for", "kcl"]).ok().does_not_say(&["kcl.mod of shop"]);
    // What is no longer needed goes.
    sandbox.mu(&["remove", "ghcr.io/kcl-lang/konfig"]).ok();
    let json = sandbox.mu(&["vendor", "--for", "kcl", "--json"]).ok().json();
    assert_eq!(json["modules"][0]["removed"], serde_json::json!(["konfig_v0.4.2"]));
    assert_eq!(json["modules"][0]["lockChanged"], true);
    assert!(!sandbox.read("kcl.mod.lock").contains("konfig"));
}

#[test]
fn modules_of_folders_and_of_git_are_locked_as_kcl_has_them() {
    let (sandbox, _server) = workspace("");
    sandbox.trusts_folder("beside");
    let git = sandbox.path("git/tools");
    mu_testing::write(&git, "kcl.mod", module("tools", "0.3.0", "hello = \"0.1.0\"\n"));
    mu_testing::git::git(&git, &["init", "--quiet", "."]);
    mu_testing::git::git(&git, &["add", "."]);
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    mu_testing::git::git(&git, &[&who[..], &["commit", "--quiet", "--message", "a"]].concat());
    mu_testing::git::git(&git, &["tag", "v0.3.0"]);
    let beside = module("beside", "0.1.0", "konfig = \"0.4.2\"\n");
    mu_testing::write(&sandbox.path("beside"), "kcl.mod", beside);
    let dependencies = format!(
        "tools = {{ git = \"file://{}\", tag = \"v0.3.0\" }}\nbeside = {{ path = \"../beside\" }}\nhi = {{ oci = \"oci://ghcr.io/kcl-lang/hello\", tag = \"0.1.2\" }}\n",
        git.display()
    );
    sandbox.write("kcl.mod", &module("shop", "0.1.0", &dependencies));
    sandbox.mu(&["vendor", "--for", "kcl"]).ok();
    let lock = sandbox.read("kcl.mod.lock");
    let tools = format!(
        "  [dependencies.tools]\n    name = \"tools\"\n    full_name = \"tools_0.3.0\"\n    version = \"0.3.0\"\n    url = \"file://{}\"\n    git_tag = \"v0.3.0\"\n",
        git.display()
    );
    assert!(lock.contains(&tools), "{lock}");
    // A folder stays where it is, and what it needs is vendored; two names of one module are two folders.
    let beside = "  [dependencies.beside]\n    name = \"beside\"\n    full_name = \"beside_0.1.0\"\n    version = \"0.1.0\"\n  [dep";
    assert!(lock.contains(beside), "{lock}");
    assert!(lock.contains("name = \"hi\"\n    full_name = \"hello_0.1.2\""), "{lock}");
    let folders = fs::read_dir(sandbox.path("work/vendor")).expect("is there");
    let names = folders.map(|entry| entry.expect("can be read").file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    let expected = ["hello_0.1.2", "hi_0.1.2", "k8s_1.31.10", "konfig_v0.4.2", "tools_v0.3.0"];
    assert_eq!(names, expected);
}

#[test]
fn what_cannot_be_vendored_for_kcl_is_said() {
    let (sandbox, server) = workspace(KONFIG);
    let other = module("k8s", "1.30", "");
    let files = [("kcl.mod", &*other)];
    let host = server.host();
    Artifact::module("k8s", "1.30.0", &files, true).push(&host, "kcl-lang/other", "1.30");
    let both =
        format!("{KONFIG}k8s = {{ oci = \"oci://ghcr.io/kcl-lang/other\", tag = \"1.30\" }}\n");
    sandbox.write("kcl.mod", &module("shop", "0.1.0", &both));
    let error = sandbox.mu(&["vendor", "--for", "kcl", "--json"]).fails_with("conflict");
    assert!(error.to_string().contains("two modules are called `k8s`"), "{error}");
    // Nothing is written through a link, or out of the folder.
    sandbox.write("kcl.mod", &module("shop", "0.1.0", KONFIG));
    std::os::unix::fs::symlink(sandbox.path("elsewhere"), sandbox.path("work/vendor"))
        .expect("can be made");
    sandbox
        .mu(&["vendor", "--for", "kcl"])
        .fails()
        .says(&["work/vendor`", "it is a symbolic link, and mu follows no links"]);
    fs::remove_file(sandbox.path("work/vendor")).expect("is there");
    let trick = "\"../../out\" = { oci = \"oci://ghcr.io/kcl-lang/hello\", tag = \"0.1.2\" }\n";
    sandbox.write("kcl.mod", &module("shop", "0.1.0", trick));
    sandbox.mu(&["vendor", "--for", "kcl"]).fails().says(&["a name that no module can have"]);
    assert!(!sandbox.has("out_0.1.2"));
    fs::remove_file(sandbox.path("work/kcl.mod")).expect("is there");
    sandbox.mu(&["init", "acme/app"]).ok();
    sandbox.mu(&["vendor", "--for", "kcl"]).fails().says(&["is a KCL module"]);
}

#[test]
fn a_branch_with_slashes_reaches_no_folder_behind_a_link() {
    let (sandbox, _server) = workspace("");
    let origin = sandbox.path("git/x");
    mu_testing::write(&origin, "kcl.mod", module("x", "1.0.0", ""));
    mu_testing::write(&origin, "config", "[core]\n\tfsmonitor = evil\n");
    let git = |arguments: &[&str]| mu_testing::git::git(&origin, arguments);
    git(&["init", "--quiet", "."]);
    git(&["add", "."]);
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git(&[&who[..], &["commit", "--quiet", "--message", "a"]].concat());
    git(&["branch", "b/git"]);
    git(&["tag", "t/git"]);
    for (key, folder) in [("branch = \"b/git\"", "x_b"), ("tag = \"t/git\"", "x_t")] {
        let url = origin.display();
        let dependency = format!("x = {{ git = \"file://{url}\", {key} }}\n");
        sandbox.write("kcl.mod", &module("shop", "0.1.0", &dependency));
        // As KCL has it: folders in folders.
        sandbox.mu(&["vendor", "--for", "kcl"]).ok();
        let place = format!("work/vendor/{folder}");
        assert!(sandbox.has(&format!("{place}/git/kcl.mod")));
        sandbox.mu(&["vendor", "--for", "kcl"]).ok();
        assert!(sandbox.has(&format!("{place}/git/kcl.mod")), "what is needed stays");
        // The checkout has a link in the place of the outer one.
        fs::remove_dir_all(sandbox.path(&place)).expect("is there");
        mu_testing::write(&sandbox.path("home/.config/git"), "config", "[user]\n\tname = ada\n");
        std::os::unix::fs::symlink(sandbox.path("home/.config"), sandbox.path(&place))
            .expect("can be made");
        let run = sandbox.mu(&["vendor", "--for", "kcl"]).fails();
        run.says(&[&format!("vendor/{folder}`"), "it is a symbolic link"]);
        let config = fs::read_to_string(sandbox.path("home/.config/git/config"));
        assert!(config.expect("is there").contains("ada"), "{key}");
        assert!(!sandbox.has("home/.config/git/kcl.mod"), "{key}");
        fs::remove_file(sandbox.path(&place)).expect("is a link");
    }
}
