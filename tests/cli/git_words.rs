//! What people write for a repository, a tag or a branch, and what mu says if it is not there: the words of Git and of other tools count.

use std::fs;

use crate::support::git::{HttpServer, Origin, fake_ssh, git};
use crate::support::{Sandbox, write};

/// A repository with a version, a tag, and two branches.
fn origin() -> Origin {
    let origin = Origin::new("r.git");
    origin.commit(&[("Mu.yaml", "name: acme/x\nversion: 0.1.0\n")]);
    origin.git(&["branch", "release-1.2"]);
    origin.git(&["tag", "beta1"]);
    origin.git(&["tag", "v1.2.3"]);
    origin
}

fn reference(origin: &Origin, version: &str) -> String {
    format!("git+file://{}#{version}", origin.folder().display())
}

#[test]
fn a_tag_or_branch_that_is_not_there_is_answered_with_those_near_to_it() {
    let (sandbox, origin) = (Sandbox::new(), origin());
    let branch = origin.git(&["branch", "--show-current"]);
    origin.git(&["branch", "v1.5.0"]);
    let default = format!("its default branch is `{}`", branch.trim());
    for (asked, said) in [
        ("trunk", &*default),
        ("release-1.3", "near to that: `#release-1.2`"),
        ("beta2", "near to that: `#beta1`"),
        ("v1.5.0", "near to that: `#refs/heads/v1.5.0`"),
        (&*format!("origin/{}", branch.trim()), &*format!("near to that: `#{}`", branch.trim())),
        ("v1.2.4", "1.2.3"),
        ("refs/heads/v1.2.3", "near to that: `#v1.2.3`"),
        ("HEAD", "near to that: `#tip`"),
    ] {
        let run = sandbox.mu(&["get", &reference(&origin, asked)]).fails();
        run.says(&[said]).does_not_say(&["has no commits"]);
    }
    // A tag is no branch.
    let run = sandbox.mu(&["get", &reference(&origin, "v1.2.4")]).fails();
    run.does_not_say(&["near to that"]);
    // As after a server's default branch was renamed.
    origin.git(&["checkout", "--quiet", "release-1.2"]);
    origin.git(&["tag", "--delete", "v1.2.3"]);
    origin.git(&["symbolic-ref", "HEAD", "refs/heads/gone"]);
    let run = sandbox.mu(&["get", &reference(&origin, "latest")]).fails();
    run.says(&["its default branch is not there; it has ", "`#release-1.2`"]);
    let empty = Origin::new("empty.git");
    sandbox.mu(&["get", &reference(&empty, "latest")]).fails().says(&["has no commits"]);
}

#[test]
fn a_folder_that_gets_tags_of_its_own_stays_in_its_version() {
    let (sandbox, origin) = (Sandbox::new(), Origin::new("many.git"));
    origin.commit(&[("lib/Mu.yaml", "name: acme/lib\nversion: 1.2.0\n")]);
    origin.git(&["tag", "v1.4.0"]);
    let reference = format!("git+file://{}/lib#^1", origin.folder().display());
    sandbox.write("Mu.yaml", &format!("name: acme/top\ndependencies:\n  - {reference}\n"));
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.4.0");
    origin.git(&["tag", "lib/v1.0.0"]);
    let colleague = Sandbox::new();
    for file in ["Mu.yaml", "Mu.lock"] {
        let text = fs::read_to_string(sandbox.path("work").join(file)).expect("is there");
        write(&colleague.path("work"), file, text);
    }
    colleague.mu(&["get", "--locked"]).ok();
}

#[test]
fn full_names_tell_a_branch_from_a_tag() {
    let (sandbox, origin) = (Sandbox::new(), origin());
    let branch = origin.git(&["branch", "--show-current"]);
    let tagged = origin.git(&["rev-parse", "HEAD"]);
    origin.git(&["tag", "rel"]);
    origin.git(&["checkout", "--quiet", "-b", "rel"]);
    origin.commit(&[("file", "on the branch")]);
    let branched = origin.git(&["rev-parse", "HEAD"]);
    origin.git(&["checkout", "--quiet", branch.trim()]);
    for (name, commit) in [
        ("rel", &tagged),
        ("refs/tags/rel", &tagged),
        ("tags/rel", &tagged),
        ("refs/heads/rel", &branched),
        ("heads/rel", &branched),
    ] {
        sandbox.mu(&["get", &reference(&origin, name)]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["commit"], commit.trim(), "{name}");
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["update"]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["commit"], commit.trim(), "{name}");
    }
    // Tags of other tools begin with `@`.
    origin.git(&["tag", "@acme/x@1.0.0"]);
    sandbox.mu(&["get", &reference(&origin, "@acme/x@1.0.0"), "--refresh"]).ok();
}

#[test]
fn a_repository_whose_versions_are_those_of_folders_names_them() {
    let (sandbox, origin) = (Sandbox::new(), Origin::new("mono.git"));
    origin.commit(&[("net/vpc/Mu.yaml", "name: net/vpc\n"), ("net/dns/a", "a")]);
    origin.git(&["tag", "net/vpc/v1.0.0"]);
    for version in ["deadbee", "v1.0.0"] {
        let run = sandbox.mu(&["get", &reference(&origin, version)]).fails();
        run.says(&["its tags give versions to folders: `net/vpc`"]);
    }
    let url = format!("git+file://{}", origin.folder().display());
    sandbox.mu(&["versions", &url]).ok().says(&["net/vpc"]);
    let run = sandbox.mu(&["get", &format!("{url}/net/vpcc")]).fails();
    run.says(&["no folder `net/vpcc`", "there are `net/dns`, `net/vpc`"]);
}

#[test]
fn what_other_tools_write_is_answered_with_the_line_to_write() {
    let sandbox = Sandbox::with_dependencies(&[]);
    for (pasted, written) in [
        ("git::https://h.co/x.git//a/b?ref=v1.2.0", "https://h.co/x.git/a/b#v1.2.0"),
        ("github.com/acme/x@v1.2.3", "github.com/acme/x#v1.2.3"),
        ("redis:17.3.1", "redis#17.3.1"),
        ("root@host:/abs/path.git", "ssh://root@host/abs/path.git"),
        ("host.xz:path/x.git", "ssh://host.xz/~/path/x.git"),
        ("ssh://git@github.com:acme/x.git", "git@github.com:acme/x.git"),
        ("git@github.com/acme/x.git", "git@github.com:acme/x.git"),
        ("https://acme@dev.azure.com/acme/web/_git/x", "https://dev.azure.com/acme/web/_git/x"),
        ("git::https://ada:hunter2@h.co/x.git?ref=v1", "https://h.co/x.git#v1"),
        ("redis@latest", "redis#latest"),
    ] {
        for command in ["add", "get", "resolve"] {
            let run = sandbox.mu(&[command, pasted]).fails();
            let run = run.says(&[&format!("write `{written}`")]);
            assert!(!run.stderr.contains("hunter2"), "{}", run.shown());
        }
        sandbox.mu(&["--offline", "resolve", written]).fails().does_not_say(&["not a valid"]);
    }
    // Which repository that is, Helm alone knows.
    let run = sandbox.mu(&["add", "@stable/web#^1"]).fails();
    run.says(&["write `helm+URL/web#^1`, with the URL of `stable` that `helm repo list` shows"]);
    for (page, written) in [
        ("github.com/acme/x/tree/main/m/vpc", "github.com/acme/x/m/vpc#main"),
        ("github.com/acme/x/releases/tag/v1.2.0", "github.com/acme/x#v1.2.0"),
        ("github.com/acme/x/commit/1895753", "github.com/acme/x#1895753"),
        ("bitbucket.org/acme/x/src/main/m/vpc", "bitbucket.org/acme/x/m/vpc#main"),
        ("codeberg.org/acme/x/src/tag/v1.2.0/m", "codeberg.org/acme/x/m#v1.2.0"),
    ] {
        let run = sandbox.mu(&["--offline", "resolve", &format!("https://{page}")]).fails();
        run.says(&[&format!("write `https://{written}`")]);
    }
}

#[test]
fn the_form_of_scp_is_below_the_home_folder_and_a_url_is_not() {
    let mut origin = Origin::new("home/ops/x.git");
    origin.commit(&[("Mu.yaml", "name: ops/x\n"), ("where", "home")]);
    origin.git(&["tag", "v1.0.0"]);
    origin.add("ops/x.git");
    origin.commit(&[("Mu.yaml", "name: ops/x\n"), ("where", "root")]);
    origin.git(&["tag", "v1.0.0"]);
    for (reference, place) in [
        ("git@host.test:ops/x.git#^1", "home"),
        ("ssh://git@host.test/~/ops/x.git#^1", "home"),
        ("ssh://git@host.test/ops/x.git#^1", "root"),
    ] {
        let mut sandbox = Sandbox::with_dependencies(&[reference]);
        let (ssh, _) = fake_ssh(sandbox.root(), origin.root());
        sandbox.set("GIT_SSH", &ssh);
        sandbox.mu(&["get"]).ok();
        let pack = ".mu/packs/host.test/ops/x/where";
        assert_eq!(sandbox.read(pack), place, "{reference}");
        // Another machine finds it by the manifest and the lock.
        fs::remove_dir_all(sandbox.path("cache")).expect("is there");
        fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
        sandbox.mu(&["get", "--locked"]).ok();
        assert_eq!(sandbox.read(pack), place, "{reference}");
    }
}

#[test]
fn names_that_a_url_escapes_are_names() {
    let origin = Origin::new("acme/My Project/_git/infra");
    origin.commit(&[("Mu.yaml", "name: acme/infra\n"), ("My Module/Mu.yaml", "name: acme/m\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let url = format!("git+{}acme/My%20Project/_git/infra", server.root());
    let sandbox = Sandbox::with_dependencies(&[&format!("{url}#^1")]);
    sandbox.mu(&["get"]).ok();
    assert!(
        sandbox.lock()["packages"][0]["id"].to_string().contains("acme/My_20Project/_git/infra")
    );
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
    for wrong in ["acme/%2fetc", "acme/%zz", "acme/%0a", "acme/%2e%2e/x"] {
        let reference = format!("git+{}{wrong}", server.root());
        sandbox.mu(&["resolve", &reference]).fails().does_not_say(&["panicked"]);
    }
}

#[test]
fn a_registrys_prefix_may_have_the_mark_of_a_repository() {
    let origin = Origin::new("modules.git");
    origin.commit(&[("net/vpc/Mu.yaml", "name: net/vpc\n")]);
    origin.git(&["tag", "net/vpc/v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::with_dependencies(&["git.acme.example/modules.git/net/vpc"]);
    let url = format!("git+{}modules.git", server.root());
    sandbox.mu(&["registry", "add", "git.acme.example/modules.git/", &url]).ok();
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.0.0");
}

#[test]
fn members_that_a_sparse_checkout_leaves_out_count_as_unchanged() {
    let sandbox = Sandbox::new();
    sandbox.offer("lib/x 1.0.0:\nlib/x 1.1.0:\nlib/y 1.0.0:\nlib/z 1.0.0: lib/x#1.0.0");
    sandbox.write(".gitignore", ".mu/packs/\n");
    for (name, needs) in
        [("a", "\"lib/x#^1\", \"acme/b#^1\""), ("b", "lib/y#^1"), ("c", "lib/z#^1")]
    {
        let text = format!("name: acme/{name}\nversion: 1.0.0\ndependencies: [{needs}]\n");
        sandbox.write(&format!("acme/{name}/Mu.yaml"), &text);
    }
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet"]);
    sandbox.mu(&["get"]).ok();
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "all"]);
    for form in ["--no-sparse-index", "--sparse-index"] {
        for kept in ["acme/a", "acme/b", "acme/c"] {
            git(&work, &["sparse-checkout", "set", "--cone", form, kept, ".mu"]);
            assert_eq!(fs::read_dir(work.join("acme")).expect("is there").count(), 1);
            sandbox.mu(&["get", "--locked"]).ok();
            sandbox.mu(&["get"]).ok();
            assert_eq!(git(&work, &["status", "--porcelain"]), "", "{kept}");
        }
    }
    // A member that is really gone counts as gone.
    git(&work, &["sparse-checkout", "disable"]);
    fs::remove_dir_all(work.join("acme/c")).expect("is there");
    sandbox.mu(&["get", "--locked", "--json"]).fails_with("lock-outdated");
}

#[test]
fn a_folder_of_the_lock_that_git_ignores_is_said() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.offer("aws/vpc 1.0.0:\naws/vpc 1.1.0:\naws/ec2 1.0.0: aws/vpc#^1");
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet"]);
    sandbox.write("aws/vpc/Mu.yaml", "name: aws/vpc\nversion: 1.5.0\n");
    sandbox.mu(&["get"]).ok().does_not_say(&["which Git ignores"]);
    for (file, pattern) in [
        (".git/info/exclude", "/aws/vpc/\n"),
        (".gitignore", "aws/\n"),
        ("aws/.gitignore", "vpc"),
        ("aws/vpc/.gitignore", "*\n"),
    ] {
        write(&work, file, pattern);
        for command in [&["get"][..], &["status"], &["get", "--locked"]] {
            sandbox
                .mu(command)
                .ok()
                .says(&["Mu.lock takes `aws/vpc` from `aws/vpc`, which Git ignores"]);
        }
        fs::remove_file(work.join(file)).expect("is there");
    }
    // What is tracked is not ignored.
    git(&work, &["add", "aws"]);
    write(&work, ".gitignore", "aws/\n");
    sandbox.mu(&["get"]).ok().does_not_say(&["which Git ignores"]);
}

#[test]
fn a_package_on_this_machine_is_overridden_by_its_url() {
    let (origin, fork) = (Origin::new("logs"), Origin::new("fork"));
    for (origin, version) in [(&origin, "1.0.0"), (&fork, "1.0.1")] {
        origin.commit(&[("Mu.yaml", &*format!("name: acme/logs\nversion: {version}\n"))]);
        origin.git(&["tag", &format!("v{version}")]);
    }
    let [reference, other] =
        [&origin, &fork].map(|origin| format!("git+file://{}", origin.folder().display()));
    let sandbox = Sandbox::with_dependencies(&[&format!("{reference}#^1")]);
    let settings = sandbox.read(".mu/workspace.yaml");
    let line = format!("overrides: {{'{reference}': '{other}#v1.0.1'}}\n");
    sandbox.write(".mu/workspace.yaml", &format!("{settings}{line}"));
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.0.1");
}

#[test]
fn a_missing_repository_is_named_with_the_place_that_git_leads_to() {
    let mut sandbox = Sandbox::new();
    let origin = origin();
    let server = HttpServer::start(origin.root());
    let leads = server.root().replace("http://", "http://ada:hunter2@");
    let settings = format!("[url \"{leads}\"]\n\tinsteadOf = https://git.acme.example/\n");
    fs::write(sandbox.path("gitconfig"), settings).expect("can be written");
    let settings = sandbox.path("gitconfig").display().to_string();
    sandbox.set("GIT_CONFIG_GLOBAL", &settings);
    let run = sandbox.mu(&["get", "https://git.acme.example/ops/none.git"]).fails();
    let url = format!("{}ops/none.git", server.root());
    run.says(&[
        "looked at https://git.acme.example/ops/none.git",
        &format!("which Git's `insteadOf` leads to {url}"),
    ])
    .does_not_say(&["hunter2"]);
}
