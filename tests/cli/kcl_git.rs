//! KCL modules in Git repositories and in folders: how `kcl.mod` names them.

use std::fs;

use super::support::Sandbox;
use super::support::git::{HttpServer, Origin};

const MODULE: &str = "[package]\nname = \"shop\"\nversion = \"0.1.0\"\n\n[dependencies]\n";

#[test]
fn a_module_of_a_repository_is_added_as_kcl_names_it() {
    let origin = Origin::new("modules.git");
    origin.commit(&[
        ("ndots/kcl.mod", "[package]\nname = \"ndots\"\nversion = \"0.1.0\"\n"),
        ("ndots/main.k", "a = 1\n"),
        ("mods/deep/kcl.mod", "[package]\nname = \"add-deep\"\nversion = \"0.2.0\"\n"),
    ]);
    origin.git(&["tag", "v0.1.0"]);
    let mut sandbox = Sandbox::new();
    let place = origin.folder().display().to_string();
    sandbox.replace(&place, "[REPOSITORY]");
    let url = format!("git+file://{place}");
    sandbox.write("kcl.mod", MODULE);
    sandbox.mu(&["add", &format!("{url}/ndots#v0.1.0")]).ok();
    let entry =
        format!("ndots = {{ git = \"file://{place}\", tag = \"v0.1.0\", package = \"ndots\" }}\n");
    assert!(sandbox.read("kcl.mod").ends_with(&entry), "{}", sandbox.read("kcl.mod"));
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    // KCL finds it by the name that it gives itself, wherever it is.
    let before = sandbox.read("kcl.mod");
    sandbox.mu(&["add", &format!("{url}/mods/deep#v0.1.0")]).fails().says(&[
        "by its own name, `add-deep`, and not by its folder `mods/deep`",
        "add it by its name: `git+file://[REPOSITORY]/add-deep`",
    ]);
    assert_eq!(sandbox.read("kcl.mod"), before);
    sandbox.mu(&["add", &format!("{url}/add-deep#v0.1.0")]).ok();
    let entry = format!(
        "add-deep = {{ git = \"file://{place}\", tag = \"v0.1.0\", package = \"add-deep\" }}\n"
    );
    assert!(sandbox.read("kcl.mod").ends_with(&entry), "{}", sandbox.read("kcl.mod"));
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    sandbox.mu(&["remove", "ndots"]).ok();
    assert!(!sandbox.read("kcl.mod").contains("ndots"));
}

#[test]
fn modules_without_names_are_told_apart_by_their_paths() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "formats: [kcl]\n");
    sandbox.write("Mu.yaml", "name: acme/all\n");
    sandbox.write("a/app/kcl.mod", "[dependencies]\n");
    sandbox.write("b/app/kcl.mod", "[dependencies]\n");
    sandbox.write("b/web/kcl.mod", "[dependencies]\n");
    sandbox.mu(&["tree"]).ok().says(&["a/app", "b/app", "web"]).does_not_say(&["b/web"]);
    // One that says its name keeps it.
    sandbox.write("b/app/kcl.mod", "[package]\nname = \"app\"\n");
    sandbox.mu(&["tree"]).ok().says(&["a/app", "app"]).does_not_say(&["b/app"]);
    sandbox.write("a/app/kcl.mod", "[package]\nname = \"app\"\n");
    sandbox.mu(&["tree"]).fails().says(&["is in this workspace twice"]);
}

#[test]
fn a_module_of_a_repository_is_added_at_a_tag_branch_or_commit_as_kcl_reads_them() {
    let mut origin = Origin::new("konfig.git");
    let module = |version: &str| format!("[package]\nname = \"konfig\"\nversion = \"{version}\"\n");
    origin.commit(&[("kcl.mod", &module("0.1.0"))]);
    origin.git(&["tag", "v0.1.0"]);
    origin.commit(&[("kcl.mod", &module("0.2.0"))]);
    origin.git(&["tag", "v0.2.0"]);
    origin.git(&["tag", "nightly"]);
    let commit = origin.commit(&[("kcl.mod", &module("0.3.0"))]);
    origin.git(&["branch", "next"]);
    origin.add("plain.git");
    origin.commit(&[("kcl.mod", "[package]\nname = \"plain\"\nversion = \"1.0.0\"\n")]);
    origin.git(&["tag", "1.0.0"]);
    let server = HttpServer::start(origin.root());
    let url = format!("{}/konfig.git", server.root().trim_end_matches('/'));
    let sandbox = Sandbox::new();
    // Without the name of a tool in front of it, what is at the URL says that it is Git.
    for (reference, revision) in [
        (format!("git+{url}"), "tag = \"v0.2.0\"".to_owned()),
        (url.clone(), "tag = \"v0.2.0\"".to_owned()),
        (format!("{url}#0.1.0"), "tag = \"v0.1.0\"".to_owned()),
        (format!("{url}#v0.1.0"), "tag = \"v0.1.0\"".to_owned()),
        (format!("git+{url}#nightly"), "tag = \"nightly\"".to_owned()),
        (format!("git+{url}#next"), "branch = \"next\"".to_owned()),
        (format!("{url}#{commit}"), format!("commit = \"{commit}\"")),
    ] {
        sandbox.write("kcl.mod", MODULE);
        sandbox.mu(&["add", &reference]).ok();
        let entry = format!("konfig = {{ git = \"{url}\", {revision} }}\n");
        let text = sandbox.read("kcl.mod");
        assert!(text.ends_with(&entry), "{reference}: {text}");
        sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    }
    let plain = url.replace("konfig", "plain");
    sandbox.write("kcl.mod", MODULE);
    sandbox.mu(&["add", &plain]).ok();
    let entry = format!("plain = {{ git = \"{plain}\", tag = \"1.0.0\" }}\n");
    assert!(sandbox.read("kcl.mod").ends_with(&entry), "{}", sandbox.read("kcl.mod"));
}

#[test]
fn a_repository_without_a_revision_is_its_tip_as_for_kcl() {
    let origin = Origin::new("konfig.git");
    let module = |version: &str| format!("[package]\nname = \"konfig\"\nversion = \"{version}\"\n");
    origin.commit(&[("kcl.mod", &module("0.1.0"))]);
    origin.git(&["tag", "v0.1.0"]);
    let tip = origin.commit(&[("kcl.mod", &module("0.2.0"))]);
    let place = origin.folder().display().to_string();
    let entry = |revision: &str| format!("konfig = {{ git = \"file://{place}\"{revision} }}\n");
    let sandbox = Sandbox::new();
    sandbox.write("kcl.mod", &format!("{MODULE}{}", entry("")));
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["commit"], tip.as_str());
    // A version alone names no tag: KCL compares it with that of the module at the tip.
    for version in ["0.2.0", "9.0.0"] {
        sandbox
            .write("kcl.mod", &format!("{MODULE}{}", entry(&format!(", version = \"{version}\""))));
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
        sandbox.mu(&["get"]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["commit"], tip.as_str());
    }
    // What commands write, later ones read, and KCL as well: the newest version has a tag.
    for (reference, expected) in [("", ", tag = \"v0.1.0\""), ("#tip", "")] {
        sandbox.write("kcl.mod", MODULE);
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["add", &format!("git+file://{place}{reference}")]).ok();
        let text = sandbox.read("kcl.mod");
        assert!(text.ends_with(&entry(expected)), "{text}");
        sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    }
    assert_eq!(sandbox.lock()["packages"][0]["commit"], tip.as_str());
    sandbox.mu(&["pin"]).ok();
    let pinned = format!(", commit = \"{tip}\"");
    assert!(sandbox.read("kcl.mod").ends_with(&entry(&pinned)), "{}", sandbox.read("kcl.mod"));
    // There is no key for the newest version.
    sandbox.write("kcl.mod", MODULE);
    let run = sandbox.mu(&["add", &format!("git+file://{place}#latest")]).fails();
    run.says(&["`kcl.mod` cannot say `latest`", "leave the version out"]);
}

#[test]
fn a_tag_or_branch_is_the_one_of_that_name_also_where_it_reads_as_a_range() {
    let origin = Origin::new("konfig.git");
    let module = |version: &str| format!("[package]\nname = \"konfig\"\nversion = \"{version}\"\n");
    let tagged = origin.commit(&[("kcl.mod", &module("0.3.0"))]);
    origin.git(&["tag", "0.3"]);
    origin.git(&["tag", "latest"]);
    origin.commit(&[("kcl.mod", &module("0.3.5"))]);
    origin.git(&["tag", "v0.3.5"]);
    origin.git(&["checkout", "--quiet", "-b", "0.x"]);
    let branch = origin.commit(&[("kcl.mod", &module("0.4.0"))]);
    origin.git(&["branch", "0.3.5"]);
    let place = origin.folder().display().to_string();
    let sandbox = Sandbox::new();
    for (revision, expected) in [
        ("tag = \"0.3\"", &tagged),
        ("tag = \"latest\"", &tagged),
        ("branch = \"0.x\"", &branch),
        ("branch = \"0.3.5\"", &branch),
    ] {
        let text = format!("{MODULE}konfig = {{ git = \"file://{place}\", {revision} }}\n");
        sandbox.write("kcl.mod", &text);
        sandbox.mu(&["get"]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["commit"], expected.as_str(), "{revision}");
    }
    for (named, written) in
        [("refs/heads/0.x", "branch = \"0.x\""), ("refs/tags/0.3", "tag = \"0.3\"")]
    {
        sandbox.write("kcl.mod", MODULE);
        sandbox.mu(&["add", &format!("git+file://{place}#{named}")]).ok();
        let text = sandbox.read("kcl.mod");
        assert!(text.contains(written), "{text}");
        sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    }
}

#[test]
fn a_module_in_a_folder_is_used_whatever_its_version_is() {
    let sandbox = Sandbox::new();
    for version in ["0.2.0-rc.1", "1.0", "1.0.0"] {
        let text = format!("[package]\nname = \"service\"\nversion = \"{version}\"\n");
        sandbox.write("service/kcl.mod", &text);
        sandbox.write("kcl.mod", &format!("{MODULE}service = {{ path = \"./service\" }}\n"));
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["tree"]).ok().says(&[&format!("./service {version} ")]);
        sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    }
}
