//! Files as other projects have them, from `testdata/elsewhere`, and shorter ones with what can be wrong in such a file.

use std::fs;

use super::{FilesBeside, InUse, List, go, helmfile, jsonnet, project, terraform, vendir};

fn file(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/elsewhere");
    fs::read_to_string(format!("{folder}/{name}")).expect("is there")
}

/// What a list says, a line each: `LINE CALLED -> REFERENCE @ IN USE (LEFT OUT)`, or `LINE CALLED: WHY NOT`.
fn shown(list: &List) -> Vec<String> {
    let all = list.dependencies.iter().map(|one| {
        let head = format!("{} {}", one.line, one.called);
        match &one.meaning {
            Err(reason) => format!("{head}: {reason}"),
            Ok(meaning) => {
                let mut line = format!("{head} -> {}", meaning.reference);
                match &meaning.in_use {
                    Some(InUse::Commit(text)) => line.push_str(&format!(" @ commit {text}")),
                    Some(InUse::Version(text)) => line.push_str(&format!(" @ {text}")),
                    None => {}
                }
                if !meaning.left_out.is_empty() {
                    line.push_str(&format!(" ({})", meaning.left_out.join(", ")));
                }
                line
            }
        }
    });
    all.collect()
}

/// Files beside another one: their paths and texts. What ends with `/` is a folder.
struct Beside(&'static [(&'static str, &'static str)]);

impl FilesBeside for Beside {
    fn text(&self, path: &str) -> Option<String> {
        let found = self.0.iter().find(|(known, _)| *known == path);
        found.map(|(_, text)| (*text).to_owned())
    }

    fn has_folder(&self, path: &str) -> bool {
        self.0.iter().any(|(known, _)| known.strip_suffix('/') == Some(path))
    }

    fn repository(&self, name: &str, _: &str) -> Option<String> {
        (name == "helms").then(|| "https://charts.example/helms".to_owned())
    }
}

#[track_caller]
fn check(list: &List, expected: &[&str]) {
    assert_eq!(shown(list), expected);
    assert!(list.unknown.is_empty(), "{:?}", list.unknown);
}

#[test]
fn sources_of_vendir_in_parts() {
    let list = vendir::list("vendir.yml", &file("platform.vendir.yml"), None).expect("is read");
    let by_hand = "it is kept by hand, so there is nothing to fetch";
    check(
        &list,
        &[
            "9 config/upstream/networking -> git+https://git.example/platform/networking#v1.4.2 (includePaths)",
            "17 config/upstream/api -> git+https://git.example/platform/api-server#0f3a8e5d1b9c47266e1d2a90c5b7f84d3e6a1c28 (includePaths)",
            "24 config/upstream/logging: the files of a release are not a package; an archive among them is, by its URL",
            "29 config/upstream/metrics -> git+https://git.example/platform/metrics/deploy#7be41d0c92a35f68e0d4c1b7a9f28350d6ce41ab",
            "35 config/upstream/login -> git+https://git.example/platform/login/k8s/templates#v3.11.0",
            &format!("40 config/upstream/cache: {by_hand}"),
            &format!("42 config/upstream/database: {by_hand}"),
        ],
    );
}

#[test]
fn paths_of_vendir_are_the_same_however_they_are_written() {
    let contents = |path: &str, source: &str| format!("  - path: {path}\n    git: {{{source}}}\n");
    let text = [
        "directories:\n- path: ./proto\n  contents:\n",
        &contents("./vendor/", "url: 'https://h.example/x', ref: main"),
        "- path: ../a/./b/..\n  contents:\n",
        &contents(".", "url: 'https://h.example/y', ref: main"),
    ];
    // As older and newer versions of vendir write it.
    for (proto, vendor, above) in
        [("proto", "vendor", "../a"), ("./proto", "./vendor/", "../a/./b/..")]
    {
        let lock = [
            &format!("directories:\n- path: {proto}\n  contents:\n"),
            &contents(vendor, "sha: 0f3a8e5d1b9c47266e1d2a90c5b7f84d3e6a1c28"),
            &format!("- path: {above}\n  contents:\n"),
            &contents(".", "sha: 7be41d0c92a35f68e0d4c1b7a9f28350d6ce41ab"),
        ];
        let list = vendir::list(
            "vendir.yml",
            &text.concat(),
            Some(&lock.map(|one| one.to_owned()).concat()),
        );
        check(
            &list.expect("is read"),
            &[
                "4 ./proto/./vendor/ -> git+https://h.example/x#main @ commit 0f3a8e5d1b9c47266e1d2a90c5b7f84d3e6a1c28",
                "8 ../a/./b/.. -> git+https://h.example/y#main @ commit 7be41d0c92a35f68e0d4c1b7a9f28350d6ce41ab",
            ],
        );
    }
}

#[test]
fn sources_of_vendir_by_branch_and_url() {
    let list = vendir::list("vendir.yml", &file("lessons.vendir.yml"), None).expect("is read");
    let found: Vec<String> = shown(&list)
        .iter()
        .map(|line| {
            line.split_once(" -> ").or(line.split_once(": ")).expect("says something").1.to_owned()
        })
        .collect();
    assert_eq!(
        found,
        [
            "git+https://git.example/security/policies/restricted/pods#release-2.3 (excludePaths)",
            "git+https://git.example/net/ingress/examples/ingress#v2.0.1",
            "https://files.example/styles/styles-5.1.0-dist.zip (includePaths)",
            "a single file is not a package; an archive (.tgz, .tar, .zip) is",
        ]
    );
}

#[test]
fn sources_of_vendir_that_lack_their_place_say_so() {
    let source = |text: &str| format!("  - path: a\n    {text}\n");
    let list = |text: &str| {
        let contents = source(text);
        let list = format!("directories:\n- path: v\n  contents:\n{contents}");
        shown(&vendir::list("vendir.yml", &list, None).expect("is read")).join("; ")
    };
    for (text, said) in [
        ("git: {ref: main}", "it does not say the URL of its repository"),
        (
            "helmChart: {repository: {url: 'https://c.example'}}",
            "it does not say the name of its chart",
        ),
        ("http: {sha256: abc}", "it does not say its URL"),
    ] {
        assert!(list(text).ends_with(said), "{}", list(text));
    }
}

#[test]
fn vendir_with_its_lock() {
    let lock = file("rules.vendir.lock.yml");
    let list = vendir::list("vendir.yml", &file("rules.vendir.yml"), Some(&lock)).expect("is read");
    check(
        &list,
        &[
            "7 rules -> git+https://git.example/build/tool.git/rules#2026-02-01 @ commit 4d2f9b7a61c8e03512fa7d90b3e6c8451a0f7e9d",
        ],
    );
}

#[test]
fn every_source_of_vendir() {
    let text = "\
directories:
- path: a
  contents:
  - {path: b, git: {url: 'git@h.example:o/x.git', refSelection: {semver: {constraints: '>=1.0.0 <2.0.0', prereleases: {}}}}}
  - {path: c, git: {url: 'https://h.example/o/x', ref: origin/main}, newRootPath: ./sub/}
  - {path: d, helmChart: {name: redis, version: 1.2.1, repository: {url: 'https://charts.example/stable'}}}
  - {path: e, helmChart: {name: redis, repository: {url: 'oci://r.example/charts'}}}
  - {path: f, helmChart: {name: stable/redis}}
  - {path: g, http: {url: 'https://h.example/x-1.2.tgz', sha256: 0e7bbd1a4e3a2a3f6f5e1f0a4be0fe3b5a2c7a9c8d1f2b3a4c5d6e7f8091a2b3}}
  - {path: h, hg: {url: 'https://h.example/x'}}
  - {path: i, image: {url: r.example/x}}
  - {path: j, imgpkgBundle: {image: r.example/x}}
  - {path: k, directory: {path: x}}
  - {path: l, inline: {paths: {a: b}}}
  - {path: m}
  - {path: n, git: {url: 'https://ada:secret@h.example/x', ref: main}}
  - {path: o, git: {url: 'https://h.example/x', ref: '--upload-pack=x'}}
";
    let lock = "\
directories:
- path: a
  contents:
  - {path: b, git: {sha: 1895753f53a63c055e7cae81ebe4ea5d5805584f, tags: [v1.2.0]}}
  - {path: e, helmChart: {version: 2.0.0, appVersion: '7'}}
";
    let list = vendir::list("vendir.yml", text, Some(lock)).expect("is read");
    let found = shown(&list);
    assert_eq!(
        found[..12],
        [
            "4 a/b -> git@h.example:o/x.git#>=1.0.0 <2.0.0 @ commit 1895753f53a63c055e7cae81ebe4ea5d5805584f",
            "5 a/c -> git+https://h.example/o/x/sub#main",
            "6 a/d -> helm+https://charts.example/stable/redis#1.2.1",
            "7 a/e -> oci://r.example/charts/redis @ 2.0.0",
            "8 a/f: it names no `repository`, which only Helm's own list of names leads to",
            "9 a/g -> https://h.example/x-1.2.tgz#sha256:0e7bbd1a4e3a2a3f6f5e1f0a4be0fe3b5a2c7a9c8d1f2b3a4c5d6e7f8091a2b3",
            "10 a/h: mu has no provider for Mercurial",
            "11 a/i: the files of an image are not a package; an artifact with a chart or a package is",
            "12 a/j: bundles of imgpkg are not packages of mu",
            "13 a/k: it is a folder of this repository, so there is nothing to fetch",
            "14 a/l: its files stand in vendir.yml itself",
            "15 a/m: it says no source that mu knows",
        ]
    );
    assert!(list.dependencies[0].meaning.as_ref().is_ok_and(|meaning| meaning.prerelease));
    assert!(
        found[12].contains("is not a valid reference") && !found[12].contains("secret"),
        "{}",
        found[12]
    );
    assert!(
        found[13].contains("15 ") || found[13].contains("is not a valid reference"),
        "{}",
        found[13]
    );
}

#[test]
fn what_is_wrong_in_vendir_has_its_place() {
    for (text, place, reason) in [
        ("directories: {}\n", "1:14", "`directories` must be a list"),
        (
            "directories:\n- path: a\n  contents:\n  - {path: b, git: {urll: x}}\n",
            "4:21",
            "unknown key `urll`; did you mean `url`?",
        ),
        ("- a\n", "1:1", "expected keys and values"),
        ("directories: [\n", "1:14", "this is not YAML"),
        ("directories:\n- path: [a]\n", "2:9", "`path` must be text"),
    ] {
        let error = vendir::list("vendir.yml", text, None).expect_err(text);
        assert!(error.reason.starts_with(reason), "{text}: {}", error.reason);
        assert_eq!(format!("{}:{}", error.line, error.column), place, "{text}");
    }
    let told = vendir::list("vendir.yml", "directories: []\nx-own: 1\nqwertz: 2\n", None)
        .expect("is read");
    assert_eq!(told.unknown, ["qwertz"]);
    let error = vendir::list("vendir.yml", "directories: []\n", Some("directories: 1\n"))
        .expect_err("is wrong");
    assert_eq!(error.file, "vendir.lock.yml");
}

#[test]
fn libraries_of_jsonnet() {
    let lock = file("dashboards.jsonnetfile.lock.json");
    let list = jsonnet::list(&file("dashboards.jsonnetfile.json"), Some(&lock)).expect("is read");
    check(
        &list,
        &[
            "3 git.example/graphs/panels -> git+https://git.example/graphs/panels#master @ commit 91c0e5ab3d7f42680e1b9d5a7c3f8024e6d1b7fa",
        ],
    );
    // What others need is in the lock alone.
    let lock = file("monitoring.jsonnetfile.lock.json");
    let own = r#"{"version": 1, "dependencies": [
        {"source": {"git": {"remote": "https://git.example/graphs/boards.git", "subdir": "boards"}}, "version": "master"}
    ], "legacyImports": false}"#;
    let list = jsonnet::list(own, Some(&lock)).expect("is read");
    check(
        &list,
        &[
            "2 git.example/graphs/boards/boards -> git+https://git.example/graphs/boards.git/boards#master @ commit 2b6d8f01c93e47a5d0b1e7c6f3a9852440dce71b",
            "0 git.example/cluster/alerts -> git+https://git.example/cluster/alerts.git#c07e1a4b95d3f862801b6c9d2e5a7f3184bd60ce @ commit c07e1a4b95d3f862801b6c9d2e5a7f3184bd60ce",
            "0 git.example/store/store/documentation/alerts -> git+https://git.example/store/store.git/documentation/alerts#5ea93c7d10b2f46858e9d1c0a7b3f62d94ce8b01 @ commit 5ea93c7d10b2f46858e9d1c0a7b3f62d94ce8b01",
            "0 jsonnet/own: it is a folder of this repository, so there is nothing to fetch",
        ],
    );
    let nothing = jsonnet::list(r#"{"dependencies": [{"version": "x"}]}"#, None).expect("is read");
    check(&nothing, &["1 a library without a source: it is in no Git repository and no folder"]);
    assert!(jsonnet::list("[]", None).is_err());
}

#[test]
fn modules_of_terraform() {
    let list = terraform::list("main.tf", &file("sources.tf")).expect("is read");
    let local = "it is a folder of this repository, so there is nothing to fetch";
    check(
        &list,
        &[
            "3 network -> git+https://git.example/infra/network.git#6b1f0d8e4c7a93525d0e8b1a7f6c3d924e5b80af",
            "18 log_group -> git+https://git.example/infra/logs.git/modules/log-group#d83c5b0e7f1a42961d4e9c0b8a7f6e5310c2d4b9",
            "27 registry: only its registry knows where it is; its repository is probably `https://github.com/acme/terraform-aws-logs`",
            "32 tag -> git+https://git.example/infra/network.git#v5.0.0",
            "36 branch -> git+https://git.example/infra/network.git#next_release",
            &format!("42 beside: {local}"),
            &format!("46 above: {local}"),
        ],
    );
    // Modules in texts and comments are none.
    let list = terraform::list("main.tf", &file("cluster.tf")).expect("is read");
    check(
        &list,
        &[
            &format!("11 cluster: {local}"),
            "49 network: only its registry knows where it is; its repository is probably `https://github.com/acme/terraform-aws-network`",
        ],
    );
}

#[test]
fn every_source_of_terraform() {
    let module = |(source, expected): &(&str, &str)| {
        let text = format!("module \"m\" {{\n  source = {source:?}\n}}\n");
        let list = terraform::list("main.tf", &text).expect("is read");
        assert_eq!(shown(&list), [format!("1 m{expected}")], "{source}");
    };
    [
        (
            "git::https://h.example/x.git//a/b?ref=a/b/v1.2.0",
            " -> git+https://h.example/x.git/a/b#v1.2.0",
        ),
        ("git::https://h.example/x.git", " -> git+https://h.example/x.git#tip"),
        ("git::ssh://git@h.example/x.git//a?depth=1&ref=v1.0", " -> ssh://git@h.example/x.git/a#refs/tags/v1.0"),
        ("git@github.com:o/x.git", " -> git@github.com:o/x.git#tip"),
        ("git@github.com:o/x.git//a?ref=main", " -> git@github.com:o/x.git/a#main"),
        ("github.com/o/x", " -> https://github.com/o/x#tip"),
        ("github.com/o/x//a?ref=v1.0.0", " -> https://github.com/o/x/a#v1.0.0"),
        ("github.com/o/x.git//a?ref=v1.0.0", " -> https://github.com/o/x/a#v1.0.0"),
        (
            "./.terraform/modules/net/a",
            ": it is a folder of what Terraform downloads for the module `net`: name that of its package, below `.mu/packs`, in its `source`",
        ),
        ("https://h.example/x-1.2.zip?checksum=md5:1", " -> https://h.example/x-1.2.zip (checksum)"),
        (
            "https://h.example/x-1.2.zip//a",
            ": it is a folder of an archive, and an archive is one package",
        ),
        (
            "oci://h.example/x?tag=1.0.0",
            ": it is a module that OpenTofu has in an OCI registry, which mu does not read",
        ),
        ("b.s3.amazonaws.com/x.zip", ": mu has no provider for `s3::`"),
        ("https://h.example/x.tar.xz", ": mu does not unpack archives of the kind `.tar.xz`"),
        ("git::https://h.example/x.git//a//b?ref=1.x", " -> git+https://h.example/x.git/a/b#refs/tags/1.x"),
        ("git::https://h.example/x.git//./a/../b/?ref=main", " -> git+https://h.example/x.git/b#main"),
        ("git::https://h.example/x.git//.?ref=main", " -> git+https://h.example/x.git#main"),
        (
            "git::https://h.example/x.git//a/../../b?ref=v1",
            ": its folder is outside of its repository",
        ),
        (
            "git::https://h.example/x.git//a?depth=1&ref=feature%2Fnew",
            " -> git+https://h.example/x.git/a#feature/new",
        ),
        ("git::ssh://git@h.example/x.git//a?ref=", " -> ssh://git@h.example/x.git/a#tip"),
        (".\\vpc", ": it is a folder of this repository, so there is nothing to fetch"),
        (
            "https://h.example/vpc",
            ": an address that leads on to another one is only known to Terraform",
        ),
        ("s3::https://s3.example/x.zip", ": mu has no provider for `s3::`"),
        ("/srv/vpc", ": it is a folder of this machine, so there is nothing to fetch"),
        ("app.terraform.io/o/vpc/aws", ": only its registry knows where it is"),
        ("", ": only its registry knows where it is"),
    ]
    .iter()
    .for_each(module);
    let text = "module \"m\" {\n  source = \"git::https://${var.host}/x\"\n}\nmodule \"n\" {\n}\n";
    let list = terraform::list("main.tf", text).expect("is read");
    assert_eq!(shown(&list), ["1 m: its `source` is an expression", "4 n: it has no `source`"]);
    // A name that is not a version here is a tag if there is one, and else a branch.
    let found = terraform::of_source("git::https://h.example/x.git//a?ref=latest").expect("is one");
    let other = found.otherwise.as_ref().map(ToString::to_string);
    assert_eq!(other.as_deref(), Some("git+https://h.example/x.git/a#refs/heads/latest"));
    assert_eq!(found.at_branch().reference.to_string(), other.expect("is there"));
    let error =
        terraform::list("main.tf", "module \"m\" {\n  source = \"x\n}\n").expect_err("is wrong");
    assert_eq!((error.file.as_str(), error.line), ("main.tf", 2));
}

#[test]
fn modules_of_terraform_in_json() {
    let text = r#"{
  "//": "written by a program",
  "terraform": {"required_version": ">= 1.5"},
  "module": {
    "//": "both forms of a block",
    "vpc": {"source": "git::https://h.example/x.git//net/vpc?ref=v1", "cidr": "10.0.0.0/16"},
    "twice": [
      {"source": "./own"},
      {"//": "more", "source": "git::https://${var.host}/x.git"}
    ],
    "none": {"count": 1}
  }
}"#;
    let found = terraform::list("main.tf.json", text).expect("is read");
    check(
        &found,
        &[
            "6 vpc -> git+https://h.example/x.git/net/vpc#refs/tags/v1",
            "8 twice: it is a folder of this repository, so there is nothing to fetch",
            "9 twice: its `source` is an expression",
            "11 none: it has no `source`",
        ],
    );
    let list = r#"{"module": [{"a": {"source": "git::https://h.example/y.git"}}, {"b": []}]}"#;
    let found = terraform::list("main.tofu.json", list).expect("is read");
    check(&found, &["1 a -> git+https://h.example/y.git#tip"]);
    let names = ["a.tf", "a.tf.json", "a.tofu", "a.tofu.json", "a.json", "a.tfvars"];
    assert_eq!(names.map(terraform::is_listing), [true, true, true, true, false, false]);
}

#[test]
fn projects_of_crossplane() {
    let text = "\
apiVersion: meta.dev.upbound.io/v2alpha1
kind: Project
metadata: {name: platform}
spec:
  repository: xpkg.upbound.io/acme/platform
  dependsOn:
  - function: xpkg.upbound.io/crossplane-contrib/function-auto-ready
    version: '>=v0.0.0'
  - {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: xpkg.upbound.io/upbound/provider-aws-s3, version: v1.2.0}
  - {provider: acme/provider-x, version: v1}
  - {provider: a.b/none}
  apiDependencies:
  - {type: k8s, k8s: {version: v1.33.0}}
  - {type: crd, git: {repository: 'https://h.example/x', ref: v1, path: crds}}
  - {type: crd, git: {repository: 'https://h.example/x', path: crds/a.yaml}}
";
    let list = project::list("upbound.yaml", text).expect("is read");
    check(
        &list,
        &[
            "7 xpkg.upbound.io/crossplane-contrib/function-auto-ready -> oci://xpkg.upbound.io/crossplane-contrib/function-auto-ready#>=v0.0.0",
            "9 xpkg.upbound.io/upbound/provider-aws-s3 -> oci://xpkg.upbound.io/upbound/provider-aws-s3#v1.2.0",
            "10 acme/provider-x: it does not say in which registry it is: Crossplane has no registry of its own since 2.0; until then it was `xpkg.upbound.io`, and `xpkg.crossplane.io` in 1.20: write `xpkg.upbound.io/acme/provider-x`, or another registry",
            "11 a.b/none: the dependency `a.b/none` has no `version`, and Crossplane installs none without: write `version: \">=v0.0.0\"` beside it for any",
            "13 k8s v1.33.0: these are the types of Kubernetes itself, which are no package",
            "14 https://h.example/x -> git+https://h.example/x/crds#refs/tags/v1",
            "15 https://h.example/x: `crds/a.yaml` is one file of its repository, and a package is a folder",
        ],
    );
    let text = "\
apiVersion: dev.crossplane.io/v1alpha1
kind: Project
spec:
  dependencies:
  - {type: xpkg, xpkg: {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: a.b/p, version: '>=v1.0.0-0'}}
  - {type: crd, http: {url: 'https://h.example/crd.yaml'}}
  - {type: crd, git: {repository: 'https://h.example/y'}}
  - {type: more}
";
    let list = project::list("crossplane-project.yaml", text).expect("is read");
    check(
        &list,
        &[
            "5 a.b/p -> oci://a.b/p#>=v1.0.0-0",
            "6 https://h.example/crd.yaml: it is one file at a URL, and no archive of a package",
            "7 https://h.example/y -> git+https://h.example/y#tip",
            "8 a dependency: mu does not know its kind",
        ],
    );
}

#[test]
fn where_terraform_has_put_modules() {
    let text = r#"{"Modules": [
        {"Key": "", "Source": "", "Dir": "."},
        {"Key": "vpc", "Source": "git::https://h.example/x.git//net/vpc?depth=1&ref=net/vpc/v1", "Dir": ".terraform/modules/vpc/net/vpc"},
        {"Key": "vpc.inner", "Source": "./inner", "Dir": ".terraform/modules/vpc/net/vpc/inner"},
        {"Key": "vpc.tags", "Source": "../tags", "Dir": ".terraform/modules/vpc/net/tags"},
        {"Key": "vpc.tags.words", "Source": "./words", "Dir": ".terraform/modules/vpc/net/tags/words"},
        {"Key": "vpc.label", "Source": "registry.terraform.io/a/label/null", "Version": "1.0.0", "Dir": ".terraform/modules/vpc.label"},
        {"Key": "vpc.label.part", "Source": "../part", "Dir": ".terraform/modules/vpc.label/part"},
        {"Key": "copy", "Source": "git::https://h.example/x.git//net/copy?ref=v1", "Dir": ".terraform/modules/copy/net/copy"},
        {"Key": "copy.words", "Source": "../../words", "Dir": ".terraform/modules/copy/words"},
        {"Key": "own", "Source": "./modules/own", "Dir": "modules/own"},
        {"Key": "own.beside", "Source": "../beside", "Dir": "modules/beside"},
        {"Key": "own.logs", "Source": "git::https://h.example/y.git?ref=v2", "Dir": ".terraform/modules/own.logs"},
        {"Key": "own.logs.parts", "Source": "./parts", "Dir": ".terraform/modules/own.logs/parts"},
        {"Key": "own.public", "Source": "registry.terraform.io/a/b/c", "Version": "1.0.0", "Dir": ".terraform/modules/own.public"},
        {"Key": "r", "Source": "registry.terraform.io/a/b/c", "Version": "1.0.0", "Dir": ".terraform/modules/r"},
        {"Key": "r.parts", "Source": "../parts", "Dir": ".terraform/modules/r/parts"}
    ]}"#;
    let (found, unknown) = terraform::installed(text).expect("is read");
    assert!(unknown.is_empty());
    let name = |module: &terraform::InstalledModule| module.name.clone();
    let packages: Vec<_> = found
        .iter()
        .filter(|one| one.package() == ("h.example/x.git", "ref=v1"))
        .map(name)
        .collect();
    assert_eq!(packages, ["copy"]);
    // What lies beside a module in its repository comes with it, at its commit; what it names elsewhere, Terraform goes on to download.
    let commits: Vec<_> = found
        .iter()
        .map(|one| ["vpc", "copy"].contains(&&*one.name).then(|| "c".repeat(40)))
        .collect();
    let main = r#"
        module "vpc" { source = "git::https://h.example/x.git//net/vpc?depth=1&ref=net/vpc/v1" }
        module "copy" { source = "git::https://h.example/x.git//net/copy?ref=v1" }
    "#;
    let main = main.replace("{ ", "{\n").replace(" }", "\n}");
    let listed = terraform::list("main.tf", &main).expect("is read").dependencies;
    let listed: Vec<_> = listed
        .into_iter()
        .map(|one| {
            (one.called, one.meaning.expect("is one").at(Some(InUse::Commit("c".repeat(40)))))
        })
        .collect();
    let dependencies = terraform::inner_modules(&found, &commits, &listed);
    let commit = "c".repeat(40);
    check(
        &List { dependencies, unknown: Vec::new() },
        &[
            &format!(
                "10 copy.words -> git+https://h.example/x.git/words#refs/tags/v1 @ commit {commit}"
            ),
            "13 own.logs -> git+https://h.example/y.git#refs/tags/v2",
            "15 own.public: only its registry knows where it is; its repository is probably `https://github.com/a/terraform-c-b`",
            "7 vpc.label: `vpc` uses it, and Terraform downloads it for that",
            // The tag is one of its folder, which others do not have.
            &format!(
                "5 vpc.tags -> git+https://h.example/x.git/net/tags#{commit} @ commit {commit}"
            ),
        ],
    );
}

#[test]
fn releases_of_helmfile() {
    let lock = file("workflow.helmfile.lock");
    let text = file("workflow.helmfile.yaml");
    let (list, is_template) =
        helmfile::list("helmfile.yaml", &text, Some(&lock), &Beside(&[])).expect("is read");
    assert!(!is_template);
    check(&list, &["13 workflow -> helm+https://charts.example/workflow#2.23.0 @ v2.23.0"]);
    let text = file("notebooks.helmfile.yaml");
    let (list, is_template) =
        helmfile::list("helmfile.yaml", &text, None, &Beside(&[])).expect("is read");
    assert!(is_template);
    check(
        &list,
        &[
            "22 files -> helm+https://raw.example/files/master/charts/files#v4.1.0",
            "30 files-state -> helm+https://charts.example/anything/raw#1.1.0",
            "50 certificates -> helm+https://charts.example/certificates/certificates#1.6.1",
            "56 edge -> helm+https://charts.example/edge/edge#4.0.13",
        ],
    );
}

#[test]
fn charts_of_helmfile_in_registries_have_versions_and_digests_in_their_addresses() {
    let [one, other] = ["a", "b"].map(|digit| format!("sha256:{}", digit.repeat(64)));
    let text = format!(
        "\
repositories:
- {{name: registry, url: 'r.example:5000/charts', oci: true}}
releases:
- {{name: a, chart: 'oci://r.example:5000/a:2.0.0'}}
- {{name: b, chart: 'oci://r.example:5000/b:2.0.0', version: 1.0.0}}
- {{name: c, chart: 'oci://r.example/c@{one}', version: '1.0.0@{other}'}}
- {{name: d, chart: registry/d, version: '1.0.0@{other}'}}
- {{name: e, chart: 'oci://r.example/e:1.0.0@sha256:short'}}
- {{name: f, chart: 'oci://r.example:5000/f'}}
"
    );
    let (list, _) = helmfile::list("helmfile.yaml", &text, None, &Beside(&[])).expect("is read");
    check(
        &list,
        &[
            "4 a -> oci://r.example:5000/a#2.0.0",
            "5 b -> oci://r.example:5000/b#1.0.0",
            &format!("6 c -> oci://r.example/c#{one}"),
            &format!("7 d -> oci://r.example:5000/charts/d#{other}"),
            "8 e: `oci://r.example/e#sha256:short` is not a valid reference: expected 64 lower-case hexadecimal digits after `sha256:`, found `s`",
            "9 f -> oci://r.example:5000/f",
        ],
    );
}

#[test]
fn every_chart_of_helmfile() {
    let text = "\
bases: [common.yaml]
helmfiles:
- path: more/helmfile.yaml
- other.yaml
repositories:
- {name: stable, url: 'https://charts.example/stable/'}
- {name: registry, url: r.example/charts, oci: true}
- {name: plugin, url: 'git+https://h.example/x@charts?ref=1'}
- name: named
  url: https://{{ .Values.host }}/charts
releases:
- {name: a, chart: stable/a, version: ~1.2}
- {name: b, chart: registry/b, version: 1.0.0}
- {name: c, chart: 'oci://r.example/c', version: 1.0.0}
- {name: d, chart: ./charts/d}
- {name: e, chart: stable/e, installed: false}
- {name: f, chart: plugin/f}
- {name: g, chart: missing/g}
- {name: h, chart: 'git::https://h.example/x.git@charts/h?ref=v1'}
- {name: i, chart: alone}
- name: j
  chart: stable/j
  version: {{ .Values.version | quote }}
- {name: k, chart: named/k}
- {name: l}
- name: m
  chart: stable/m
{{- if .Values.new }}
  version: 2.0.0
{{- else }}
  version: 1.0.0
{{- end }}
- {name: n, chart: stable/a, version: ~1.3}
- {name: o, chart: registry/deep/o, version: 1.0.0}
- {name: p, chart: helms/p, dependencies: [{chart: stable/q, version: 1.0.0, alias: r}]}
";
    let lock = "version: v1\ndependencies:\n- {name: a, repository: 'https://charts.example/stable', version: 1.2.9}\n- {name: a, repository: 'https://charts.example/stable', version: 1.3.4}\n- {name: b, repository: 'oci://r.example/charts', version: 1.0.0}\n- {name: o, repository: 'oci://r.example/charts/deep', version: 1.0.0}\n";
    let (list, _) =
        helmfile::list("helmfile.yaml", text, Some(lock), &Beside(&[])).expect("is read");
    check(
        &list,
        &[
            "12 a -> helm+https://charts.example/stable/a#~1.2 @ 1.2.9",
            "13 b -> oci://r.example/charts/b#1.0.0 @ 1.0.0",
            "14 c -> oci://r.example/c#1.0.0",
            "15 d: its chart is a folder of this repository, so there is nothing to fetch",
            "16 e: it is not installed (`installed: false`)",
            "17 f: its repository has the scheme `git+https`, which only a Helm plugin supports",
            "18 g: neither the file nor your Helm has a repository `missing`: `helm repo add missing URL` adds it",
            "19 h -> git+https://h.example/x.git/charts/h#refs/tags/v1",
            "20 i: its chart `alone` is in no repository",
            "21 j: its `version` is a template, which only helmfile fills in",
            "24 k: the `url` of the repository `named` is a template",
            "25 l: it has no `chart`",
            "26 m -> helm+https://charts.example/stable/m#2.0.0",
            "33 n -> helm+https://charts.example/stable/a#~1.3 @ 1.3.4",
            "34 o -> oci://r.example/charts/deep/o#1.0.0 @ 1.0.0",
            "35 p -> helm+https://charts.example/helms/p",
            "35 stable/q of p -> helm+https://charts.example/stable/q#1.0.0",
            "3 more/helmfile.yaml: it is another file: `mu import more/helmfile.yaml` reads it",
            "4 other.yaml: it is another file: `mu import other.yaml` reads it",
            "1 common.yaml: it is another file: `mu import common.yaml` reads it",
            // The other branch.
            "26 m -> helm+https://charts.example/stable/m#1.0.0",
        ],
    );
    let text = "\
repositories:
- {name: stable, url: 'https://charts.example/stable'}
templates:
  web: {chart: stable/web, version: 1.0.0}
  newer: {version: 2.0.0}
  named: {chart: 'stable/{{`{{ .Release.Name }}`}}'}
  every: {version: 9.0.0}
defaultInherit: [every]
releases:
- {name: a, inherit: [{template: web}]}
- {name: b, inherit: [{template: web}, {template: newer}]}
- {name: c, version: 3.0.0, inherit: [{template: web}]}
- {name: d, inherit: [{template: named}]}
- {name: e, inherit: [{template: missing}]}
- {name: '{{ .Values.team }}-f', chart: stable/f}
- {name: g, chart: 'https://h.example/g-1.0.0.tgz'}
- {name: h, chart: 's3::https://h.example/h.tgz'}
helmfiles:
- '{{ .Values.team }}/helmfile.yaml'
- releases/*.yaml
- git::https://h.example/x.git@helmfile.yaml?ref=v1
";
    let (list, _) = helmfile::list("helmfile.yaml", text, None, &Beside(&[])).expect("is read");
    check(
        &list,
        &[
            "10 a -> helm+https://charts.example/stable/web#1.0.0",
            "11 b -> helm+https://charts.example/stable/web#2.0.0",
            "12 c -> helm+https://charts.example/stable/web#3.0.0",
            "13 d: its `chart` is a template, which only helmfile fills in",
            "14 e: it has no `chart`",
            "15 {{…}}-f -> helm+https://charts.example/stable/f#9.0.0",
            "16 g -> https://h.example/g-1.0.0.tgz",
            "17 h: its chart is at an address that only helmfile follows",
            "19 {{…}}/helmfile.yaml: it is another file, whose name only helmfile fills in",
            "20 releases/*.yaml: these are other files: `mu import FILE` reads one of them",
            "21 git::https://h.example/x.git@helmfile.yaml?ref=v1: it is a file elsewhere, which only helmfile fetches",
        ],
    );
    // What is wrong is pointed at where it is in the file, and not in what is left of it without actions.
    let text =
        "a: {{ 1 }}\n{{ if x }}\nb: {{ two\n three }} c: x\nreleases:\n- name: {{ n }}, *x\n";
    let error = helmfile::list("helmfile.yaml", text, None, &Beside(&[])).expect_err("is wrong");
    assert!(text[error.span.start..].starts_with(": x"), "{error} {:?}", error.span);
    let error = helmfile::list(
        "helmfile.yaml",
        "releases:\n- chart: a\n  verison: 1\n",
        None,
        &Beside(&[]),
    )
    .expect_err("is wrong");
    assert!(error.reason.contains("did you mean `version`?"), "{}", error.reason);
}

#[test]
fn what_a_helmfile_says_elsewhere_counts() {
    let beside = Beside(&[
        (
            "common/repositories.yaml",
            "repositories:\n- {name: stable, url: 'https://charts.example'}\n- {name: registry, url: 'oci://r.example/charts', oci: true}\n",
        ),
        (
            "releases.yaml.gotmpl",
            "templates:\n  own: {version: 2.0.0}\nreleases:\n- {name: x, chart: '{{ .Values.x }}/x'}\n",
        ),
        ("broken.yaml", "releases: [\n"),
        ("charts/mine/", ""),
        ("mine/", ""),
    ]);
    let text = "\
bases:
- common/repositories.yaml
- releases.yaml.gotmpl
- broken.yaml
- missing.yaml
---
templates:
  first: {chart: stable/first, version: 1.0.0}
  second: {inherit: [{template: first, except: [version]}, {template: second}]}
  off: {installed: false}
releases:
- {name: a, inherit: [{template: second}]}
- {name: b, inherit: [{template: second}, {template: own}]}
- {name: c, chart: registry/c}
- {name: d, chart: charts/mine}
- {name: e, chart: mine}
- {name: f, directory: stable/f}
- {name: g, chart: stable/g, inherit: [{template: off}]}
- {name: h, chart: stable/h, installed: true, inherit: [{template: off}]}
- name: i
  chart: stable/i
  values:
  - plain
    {{- range .Values.all }} # one of them
    {{- end }}
";
    let (list, is_template) =
        helmfile::list("helmfile.yaml", text, None, &beside).expect("is read");
    assert!(is_template);
    check(
        &list,
        &[
            "12 a -> helm+https://charts.example/first",
            "13 b -> helm+https://charts.example/first#2.0.0",
            "14 c -> oci://r.example/charts/c",
            "15 d: its chart is a folder of this repository, so there is nothing to fetch",
            "16 e: its chart is a folder of this repository, so there is nothing to fetch",
            "17 f -> helm+https://charts.example/f",
            "18 g: it is not installed (`installed: false`)",
            "19 h -> helm+https://charts.example/h",
            "20 i -> helm+https://charts.example/i",
            "3 x: its `chart` is a template, which only helmfile fills in",
            "4 broken.yaml: it is another file: `mu import broken.yaml` reads it",
            "5 missing.yaml: it is another file: `mu import missing.yaml` reads it",
        ],
    );
    assert!(helmfile::looks_like_helmfile("{{ if x }}\nreleases: []\n{{ end }}\n"));
    assert!(!helmfile::looks_like_helmfile("resources:\n- x\nvalues:\n  releases: 1\n"));
}

#[test]
fn each_branch_of_a_helmfile_counts() {
    let text = "\
{{/* releases of }} the team */}}
{{- $team := `a }} b` }}
repositories:
{{- if .Values.mirror }}
- {name: x, url: 'https://mirror.example'}
{{- else }}
- {name: x, url: 'https://charts.example'}
{{- end }}
releases:
{{- range .Values.all }}
- name: {{ .name }}
  chart: x/{{ if .old }}old{{ else }}new{{ end }}
  values:
  {{- if .old }}
  - a: 1
  {{- else if .Values.new }}
    a: 1
  {{- else }}
    {{- with .b }}
    b: 1
    {{- else }}
    c: 1
    {{- end }}
  {{- end }}
{{- else }}
- {name: none, chart: x/none, version: {{ .Values.version | default \"}}\" }}}
{{- end }}
";
    let (list, is_template) =
        helmfile::list("helmfile.yaml", text, None, &Beside(&[])).expect("is read");
    assert!(is_template);
    check(
        &list,
        &[
            "11 {{…}} -> helm+https://mirror.example/old",
            "11 {{…}} -> helm+https://charts.example/new",
            "26 none: its `version` is a template, which only helmfile fills in",
        ],
    );
    // What is defined counts only where it is named, and nothing says as what.
    let text = "{{ define \"one\" }}\n- {name: one, chart: x/one}\n{{ else }}\n{{ end }}\nreleases:\n{{ range .all }}\n{{ template \"one\" . }}\n{{ end }}\n";
    let (list, _) = helmfile::list("helmfile.yaml", text, None, &Beside(&[])).expect("is read");
    check(&list, &["5 `releases`: it is a template, which only helmfile fills in"]);
    // What is not a list, or stands there twice, is not passed over.
    let text = "{{ if x }}\nrepositories: []\n{{ end }}\n{{ if y }}\nrepositories: []\n{{ end }}\nreleases: {{ toYaml .Values.all }}\nbases: x.yaml\n";
    let (list, _) = helmfile::list("helmfile.yaml", text, None, &Beside(&[])).expect("is read");
    check(
        &list,
        &[
            "5 `repositories`: `repositories` appears twice",
            "8 `bases`: `bases` must be a list",
            "7 `releases`: it is a template, which only helmfile fills in",
        ],
    );
    let text = "repositories: []\nhelmfiles:\nreleases:\n\n  {{ toYaml .Values.all | indent 2 }}\n---\nreleases:\n";
    let (list, _) = helmfile::list("helmfile.yaml", text, None, &Beside(&[])).expect("is read");
    check(&list, &["3 `releases`: it is a template, which only helmfile fills in"]);
    let text = format!("{}x: 1\n", "{{ if a }}\n{{ else }}\n".repeat(100));
    let error = helmfile::list("helmfile.yaml", &text, None, &Beside(&[])).expect_err("is deep");
    assert!(error.reason.contains("more than 64 branches"), "{}", error.reason);
}

#[test]
fn what_a_helmfile_says_itself_of_its_templates_counts() {
    let text = "\
{{ readFile \"repositories.yaml\" }}
repositories:
- name: {{ env \"REPO\" | default \"x\" }}
  url: {{ default \"https://charts.example\" .Values.url | quote }}
releases:
{{ template \"first\" . }}
- name: a
  chart: x/a
  version: {{ env \"A\" | default \"1.0.0\" }}
{{ include \"more\" . | nindent 0 }}
- name: b
  chart: {{ .Values | get \"b\" `x` }}/b
  version: \"{{ coalesce .Values.b .Values.c \">=1.0 <2\" }}\"
  values:
{{ toYaml .Values.b | indent 4 }}
  - c: 1
{{ toYaml .Values.more | indent 2 }}
- {name: c, chart: x/c, version: {{ requiredEnv \"C\" }}}
- {name: d, chart: x/d, version: {{ env \"D\" | default \"2.0.0\" }}}
- {name: e, chart: x/e, version: {{ env \"E\" | default \"1: 2\" }}}
- {name: f, chart: x/f, version: {{ env \"F\" | default \"1.0.0\" | trimPrefix \"v\" }}}
- {name: g, chart: x/g, version: {{ env \"G\" | default \"\" }}}
environments:
  default:
{{ toYaml .Values.environment | indent 4 }}
bases:
- {{ env \"BASE\" | default \"base.yaml\" }}
{{ template \"last\" . }}";
    let lock = "dependencies:\n- {name: c, repository: 'https://charts.example', version: 1.2.9}\n- {name: d, repository: 'https://charts.example', version: 3.0.0}\n";
    let (list, _) =
        helmfile::list("helmfile.yaml", text, Some(lock), &Beside(&[])).expect("is read");
    check(
        &list,
        &[
            "7 a -> helm+https://charts.example/a#1.0.0",
            "11 b -> helm+https://charts.example/b#>=1.0 <2",
            "18 c -> helm+https://charts.example/c @ 1.2.9",
            "19 d -> helm+https://charts.example/d @ 3.0.0",
            "20 e: its `version` is a template, which only helmfile fills in",
            "21 f: its `version` is a template, which only helmfile fills in",
            "22 g -> helm+https://charts.example/g",
            "1 {{…}}: it is another file: `mu import repositories.yaml` reads it",
            "6 a part of `releases`: it is a template, which only helmfile fills in",
            "10 a part of `releases`: it is a template, which only helmfile fills in",
            "28 a part of `bases`: it is a template, which only helmfile fills in",
            "27 base.yaml: it is another file, whose name only helmfile fills in",
        ],
    );
    let defaults =
        |at: usize| list.dependencies[at].meaning.as_ref().expect("is one").defaults.clone();
    let url = ("url", "https://charts.example".to_owned());
    assert_eq!(defaults(0), [("version", "1.0.0".to_owned()), url.clone()]);
    assert_eq!(
        defaults(1),
        [("chart", "x/b".to_owned()), ("version", ">=1.0 <2".to_owned()), url.clone()]
    );
    // What the lock says is what became of it.
    assert_eq!(defaults(3), [url]);
}

#[test]
fn each_document_of_vendir_counts() {
    let text = "\
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: x}
---
apiVersion: vendir.k14s.io/v1alpha1
kind: Config
directories:
- path: a
  contents:
  - path: b
    git: {url: 'https://h.example/x', ref: v1, secretRef: {name: login}}
---
directories:
- path: c
  contents:
  - path: d
    manual: {}
";
    let list = vendir::list("vendir.yml", text, None).expect("is read");
    check(
        &list,
        &[
            "11 a/b -> git+https://h.example/x#refs/tags/v1",
            "17 c/d: it is kept by hand, so there is nothing to fetch",
        ],
    );
    let error = vendir::list("deps.yml", "a\n---\ndirectories: []\n", None).expect_err("is wrong");
    assert_eq!(error.file, "deps.yml");
}

#[test]
fn modules_of_go() {
    let text = "\
module acme.example/schemas

go 1.22

require (
	github.com/acme/events v1.4.0
	github.com/acme/apis/billing/v2 v2.1.3 // the newest
	github.com/acme/old v3.0.1+incompatible
	github.com/acme/tip v0.0.0-20240102030405-0f3a8e5d1b9c
	github.com/acme/next v1.3.1-0.20240102030405-7be41d0c92a3
	git.acme.example/ops/base.git/v2 v2.0.0
	gopkg.example/yaml.v3 v3.0.1
	github.com/acme/forked v1.0.0
	github.com/acme/beside v1.0.0
	github.com/acme/far v1.0.0 // indirect
)

require \"github.com/acme/alone\" latest

replace github.com/acme/forked => github.com/other/forked v1.0.1

replace (
	github.com/acme/beside v1.0.0 => ../beside
	github.com/acme/events v1.3.0 => ../events
)
";
    check(
        &go::list(text).expect("is read"),
        &[
            "6 github.com/acme/events -> https://github.com/acme/events#^1.4.0 @ 1.4.0",
            "7 github.com/acme/apis/billing/v2 -> https://github.com/acme/apis/billing#^2.1.3 @ 2.1.3",
            "8 github.com/acme/old -> https://github.com/acme/old#^3.0.1 @ 3.0.1",
            "9 github.com/acme/tip -> https://github.com/acme/tip#0f3a8e5d1b9c",
            "10 github.com/acme/next -> https://github.com/acme/next#7be41d0c92a3",
            "11 git.acme.example/ops/base.git/v2 -> git+https://git.acme.example/ops/base.git#^2.0.0 @ 2.0.0",
            "12 gopkg.example/yaml.v3: only a proxy of Go modules knows where it is",
            "13 github.com/acme/forked -> https://github.com/other/forked#^1.0.1 @ 1.0.1",
            "14 github.com/acme/beside: `../beside` takes its place, which is a folder of this machine",
            "15 github.com/acme/far: only other modules need it",
            "18 github.com/acme/alone: `latest` is not a version of Go modules",
        ],
    );
    // As Go reads it: quotes, brackets of blocks, comments, and what says nothing of modules.
    let text = "\u{feff}module `acme.example/x` // Deprecated: no\r
toolchain go1.24.0
godebug (
	default=go1.21
)
tool github.com/acme/tool/cmd/x
ignore ./node_modules
retract [v1.0.0, v1.1.0] // bad
exclude github.com/acme/one v1.2.0
require(
	\"github.com/acme/one\" `v1.4.0`
	github.com/acme/two v1.0.0 // indirect; why
	github.com/acme/three v1.0.0// indirectly
)
require ( )
replace github.com/acme/one => github.com/other/all v3.0.0
replace (
	\"github.com/acme/one\" v1.4.0 => github.com/other/one v1.4.1
	github.com/acme/three => \"../with space\"
)
more x
more (
	y
)
";
    let list = go::list(text).expect("is read");
    assert_eq!(list.unknown, ["more"]);
    let found = shown(&list);
    assert_eq!(
        found,
        [
            "11 github.com/acme/one -> https://github.com/other/one#^1.4.1 @ 1.4.1",
            "12 github.com/acme/two: only other modules need it",
            "13 github.com/acme/three: `../with space` takes its place, which is a folder of this machine",
        ]
    );
    for (text, line, reason) in [
        ("module x\nrequire github.com/a/b\n", 2, "`require MODULE v1.2.3`"),
        ("require (\n\ta.b/c v1 x\n)\n", 2, "`require MODULE v1.2.3`"),
        ("replace a => \n", 1, "`replace MODULE"),
        ("go 1.2\nreplace (\na b c\n)\n", 3, "`replace MODULE"),
        ("go 1.2\n\nrequire (\n\ta.b/c v1\n", 3, "no `)`"),
        ("go 1.2\nrequire \"a.b/c v1\n", 2, "has no end"),
        ("go 1.2\nrequire a.b/'c' v1\n", 2, "a word without quotes"),
        ("/* x */\n", 1, "begin with `//`"),
        ("require a.b/c v1 (\n", 1, "a bracket"),
        (")\n", 1, "a bracket"),
    ] {
        let error = go::list(text).expect_err(text);
        assert_eq!((error.file.as_str(), error.line), ("go.mod", line), "{text}");
        assert!(error.reason.contains(reason), "{}", error.reason);
    }
    let hostile = go::list("require github.com/\u{1b}31m/x v1.0.0\nrequire => v1\n");
    let hostile = hostile.expect("is read").dependencies;
    assert!(hostile.len() == 2 && hostile.iter().all(|dependency| dependency.meaning.is_err()));
    for text in ["(".repeat(50_000), "require (\n".repeat(50_000), "\"\\".repeat(50_000)] {
        assert!(go::list(&text).is_err());
    }
    let text: String = (0..50_000).map(|number| format!("d{number} x\n")).collect();
    assert_eq!(go::list(&text).expect("is read").unknown.len(), 50_000);
    // A line that a template becomes is looked for in one way through the text, however many there are.
    let text = format!("releases:\n- {{name: a}}\n{}", "{{ include \"x\" . }}\n".repeat(20_000));
    let (list, _) = helmfile::list("helmfile.yaml", &text, None, &Beside(&[])).expect("is read");
    assert_eq!(list.dependencies.len(), 20_001);
}
