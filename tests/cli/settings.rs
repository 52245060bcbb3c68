//! The settings in effect, and where they come from: `config`, `env`, `version`, and what `doctor` finds.

use std::process::Stdio;

use mu_testing::OciServer;
use mu_testing::http::{Reply, TestServer};
use mu_testing::oci::Behaviour;

use crate::support::git::{HttpServer, Origin};
use crate::support::{Package, Sandbox};

#[test]
fn each_setting_says_where_it_comes_from() {
    let mut sandbox = Sandbox::new();
    sandbox.write(
        ".mu/workspace.yaml",
        "# Ours.\nlink: copy   # disk is cheap\nruntime: {kubernetes: 1.29.2}\n",
    );
    let run = sandbox.mu(&["config", "list"]).ok();
    insta::assert_snapshot!(run.narrow(), @r#"
    $ mu config list
    name  value  from
    base  hub.mu.com/  default
    freshFor  10 minutes  default
    link  copy  .mu/workspace.yaml:2
    majors  one  default
    members  ["**"]  default
    minimumReleaseAge  0  default
    registries.hub.mu.com/  file://[DIR]/hub/  [DIR]/home/.mu/config.yaml:2
    resolution  highest  default
    runtime.kubernetes  1.29.2  .mu/workspace.yaml:3
    [exit 0]
    "#);
    assert_eq!(sandbox.mu(&["config", "get", "link"]).ok().stdout, "copy\n");
    sandbox.set("MU_RESOLUTION", "minimal");
    let json = sandbox.mu(&["config", "get", "resolution", "--json"]).ok().json();
    assert_eq!(json["settings"][0]["from"], "MU_RESOLUTION");
    sandbox.mu(&["config", "get", "lnik"]).fails().says(&["did you mean `link`?"]);
    // Also if nothing near to it is set.
    for (key, meant) in [("overides", "overrides"), ("overides.a/b", "overrides.a/b")] {
        for command in ["get", "unset"] {
            let run = sandbox.mu(&["config", command, key]).fails();
            run.says(&["there is no setting `overides`", &format!("did you mean `{meant}`?")]);
        }
    }
}

#[test]
fn settings_are_set_in_a_persons_own_layout() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "# Ours.\nlink: copy   # disk is cheap\n");
    sandbox.mu(&["config", "set", "link", "hardlink"]).ok();
    sandbox.mu(&["config", "set", "resolution", "minimal"]).ok();
    sandbox.mu(&["config", "set", "runtime.kubernetes", "1.29"]).ok();
    sandbox.mu(&["config", "set", "runtime.region", "eu"]).ok();
    insta::assert_snapshot!(sandbox.read(".mu/workspace.yaml"), @r#"
    # Ours.
    link: hardlink   # disk is cheap
    resolution: minimal
    runtime:
      kubernetes: "1.29"
      region: "eu"
    "#);
    let before = sandbox.state();
    for (key, value) in [
        ("link", "glue"),
        ("lnik", "copy"),
        ("registries.hub.mu.com/", "./hub"),
        ("members", "x"),
        ("runtime", "x"),
    ] {
        sandbox.mu(&["config", "set", key, value, "--json"]).fails_with("usage");
    }
    assert!(sandbox.state() == before);
    sandbox.mu(&["config", "set", "lnik", "copy"]).says(&["did you mean `link`?"]);
    sandbox.mu(&["config", "set", "colour", "red"]).says(&["`mu schema workspace`"]);
    std::fs::remove_file(sandbox.path("work/.mu/workspace.yaml")).expect("was there");
    sandbox.mu(&["config", "set", "base", "acme.co/"]).ok();
    assert_eq!(sandbox.read(".mu/workspace.yaml"), "base: acme.co/\n");
    sandbox.mu(&["config", "set", "-g", "minimumReleaseAge", "3 days"]).ok();
    let run = sandbox.mu(&["config", "get", "minimumReleaseAge"]).ok();
    assert_eq!(run.stdout, "3 days\n");
}

#[test]
fn variables_are_shown_without_secrets() {
    let mut sandbox = Sandbox::new();
    sandbox.set("MU_TOKEN_ACME_CO", "hunter2");
    sandbox.set("HTTPS_PROXY", "http://me:hunter2@proxy.acme.co:3128");
    let run = sandbox.mu(&["env"]).ok().does_not_say(&["hunter2"]);
    let run = run.says(&["MU_HOME ", "[DIR]/home/.mu ", "MU_TOKEN_ACME_CO ", "proxy.acme.co:3128"]);
    assert!(run.narrow().contains("workspace  [DIR]/work  this folder"), "{}", run.narrow());
    // Some of them, as scripts want them.
    let run = sandbox.mu(&["env", "MU_HOME", "workspace"]).ok();
    assert_eq!(run.stdout, "[DIR]/home/.mu\n[DIR]/work\n");
    sandbox.mu(&["env", "MU_TOKEN_ACME_CO"]).ok().does_not_say(&["hunter2"]);
    let json = sandbox.mu(&["env", "MU_HOME", "--json"]).ok().json();
    assert_eq!(json["settings"].as_array().map(Vec::len), Some(1));
    sandbox
        .mu(&["env", "MU_HOM"])
        .fails()
        .says(&["`MU_HOM` is not set", "did you mean `MU_HOME`?"]);
}

#[test]
fn a_version_is_raised_and_the_layout_kept() {
    let sandbox = Sandbox::new();
    let text = |version: &str| {
        format!("# Ours.\nname: acme/web\nversion: {version}   # ours\nlicense: MIT\n")
    };
    sandbox.write("Mu.yaml", &text("1.2.3"));
    assert_eq!(sandbox.mu(&["version"]).ok().stdout, "1.2.3\n");
    for (change, version) in [
        ("patch", "1.2.4"),
        ("minor", "1.3.0"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        ("major", "2.0.0"),
        ("major", "3.0.0"),
    ] {
        let run = sandbox.mu(&["version", change, "--dry-run"]).ok();
        assert!(run.stdout.starts_with("would write acme/web "), "{}", run.shown());
        let run = sandbox.mu(&["version", change]).ok();
        assert!(run.stdout.ends_with(&format!(" → {version} in Mu.yaml\n")), "{}", run.shown());
        assert_eq!(sandbox.read("Mu.yaml"), text(version));
    }
    sandbox.mu(&["version", "3"]).fails().says(&["cannot set the version to `3`", "major"]);
    sandbox.write("Mu.yaml", "name: acme/web\n");
    sandbox.mu(&["version"]).fails().says(&["has no `version`", "mu version 0.1.0"]);
    sandbox.mu(&["version", "minor"]).fails();
    let json = sandbox.mu(&["version", "0.1.0", "--json"]).ok().json();
    assert_eq!((&json["from"], &json["to"]), (&serde_json::Value::Null, &"0.1.0".into()));
    assert_eq!(sandbox.read("Mu.yaml"), "name: acme/web\nversion: 0.1.0\n");
}

#[test]
fn doctor_asks_registries_and_fails_where_a_check_does() {
    let mut sandbox = Sandbox::new();
    sandbox.mu(&["doctor"]).ok().says(&["✓ registry hub.mu.com/: file://[DIR]/hub/ is a hub"]);
    let server = TestServer::start(|_, _| {
        Reply::body("{\"hub\": 1}").header("date", "Thu, 01 Jan 2026 00:00:00 GMT")
    });
    sandbox.hub_is_at(&server.url(""));
    let run = sandbox.mu(&["doctor"]).fails();
    run.says(&[
        "✓ registry hub.mu.com/: http://127.0.0.1:",
        " answers in ",
        "✗ clock: is ",
        "error: 1 check failed: clock",
    ]);
    let page = TestServer::start(|_, _| Reply::body("<html>please log in</html>"));
    sandbox.hub_is_at(&page.url(""));
    sandbox.set("SSL_CERT_FILE", "/nope");
    sandbox.set("HTTPS_PROXY", "http://[");
    let run = sandbox.mu(&["doctor"]).fails();
    run.says(&[
        "✗ registry hub.mu.com/: ",
        "is not a hub's description",
        "✗ SSL_CERT_FILE: /nope: there is no such file",
        "✗ HTTPS_PROXY: is not a URL",
        "error: 3 checks failed: HTTPS_PROXY, SSL_CERT_FILE, registry hub.mu.com/",
    ]);
    let error = sandbox.mu(&["doctor", "--json"]).fails_with("io");
    let findings = error["details"]["findings"].as_array().expect("is a list");
    assert_eq!(findings.iter().filter(|finding| finding["ok"] == false).count(), 3, "{error}");
    sandbox.set("SSL_CERT_FILE", "");
    sandbox.set("HTTPS_PROXY", "");
    sandbox.write(".mu/workspace.yaml", "link: glue\n");
    sandbox.mu(&["doctor"]).fails().says(&["✗ settings: "]);
}

#[test]
fn doctor_asks_each_kind_of_registry() {
    let oci = OciServer::start(Behaviour::default());
    let origin = Origin::new("r.git");
    origin.commit(&[("file", "one")]);
    let bundle = origin.root().join("r.bundle").display().to_string();
    origin.git(&["bundle", "create", "--quiet", &bundle, "HEAD"]);
    let git = HttpServer::start(origin.root());
    let page = TestServer::start(|_, _| Reply::body("<html>please log in</html>"));
    let sandbox = Sandbox::new();
    let (oci, git, page) = (oci.host(), git.root(), page.host());
    let repositories = origin.root().display();
    let settings = format!(
        "registries:
  a.acme.example/: oci://{oci}/acme
  b.acme.example/: {{provider: git, url: \"{git}\"}}
  c.acme.example/: {{provider: git, url: \"file://{repositories}/\"}}
  d.acme.example/: helm+http://{page}/charts
  e.acme.example/: oci://{page}/acme
  f.acme.example/: {{provider: git, url: \"file:///nowhere/\"}}
  g.acme.example/: {{provider: nope, url: https://x.example/}}
  h.acme.example/: {{provider: git, url: \"file://{bundle}\"}}
"
    );
    sandbox.write(".mu/workspace.yaml", &settings);
    let run = sandbox.mu(&["doctor"]).fails();
    run.says(&[
        &format!("✓ registry h.acme.example/: file://{bundle}/ is there (git)"),
        &format!("✓ registry a.acme.example/: https://{oci}/acme/ answers in "),
        " ms (oci)",
        &format!("✓ registry b.acme.example/: {git} answers in "),
        " ms (git)",
        &format!("✓ registry c.acme.example/: file://{repositories}/ is there (git)"),
        "✗ registry d.acme.example/: ",
        "✗ registry e.acme.example/: ",
        "✗ registry f.acme.example/: there is nothing for `git` at file:///nowhere/",
        "✗ registry g.acme.example/: there is no protocol or provider `nope`",
        "error: 4 checks failed",
    ]);
    let offline = sandbox.mu(&["doctor", "--offline"]).fails();
    offline.says(&[
        "a.acme.example/: https://",
        "(not contacted: mu is offline)",
        "is there (git)",
    ]);
}

#[test]
fn lists_are_set_as_they_stand_in_the_file() {
    let sandbox = Sandbox::new();
    let refused = sandbox.mu(&["config", "set", "formats", "helm"]);
    assert_eq!(refused.status, 2);
    refused.says(&["write `[helm]`", "`mu config set formats '[helm]'`"]);
    // Also where there is a list already, whose layout is not at fault.
    for list in ["exclude: []\n", "exclude:\n- aws/vpc#1.0.0\n"] {
        sandbox.write(".mu/workspace.yaml", list);
        let refused = sandbox.mu(&["config", "set", "exclude", "aws/ec2#1.2.3"]);
        assert_eq!(refused.status, 2);
        refused.says(&["`mu config set exclude '[aws/ec2#1.2.3]'`"]).does_not_say(&["layout"]);
        assert_eq!(sandbox.read(".mu/workspace.yaml"), list);
    }
    sandbox.write(".mu/workspace.yaml", "");
    for (key, value, shown) in [
        ("formats", "[helm]", "[helm]"),
        ("formats", "[helm, kcl]", "[helm, kcl]"),
        ("members", "['libs/*', app]", "libs/*"),
        ("exclude", "[aws/ec2#1.2.3]", "[aws/ec2#1.2.3]"),
        ("runtime.provides", "[compute.acme.co/v1/VM]", "[compute.acme.co/v1/VM]"),
    ] {
        sandbox.mu(&["config", "set", key, value]).ok();
        sandbox.mu(&["config", "get", key]).ok().says(&[shown]);
    }
    // Maps have their own commands, or are edited.
    sandbox.mu(&["config", "set", "registries", "{}", "--json"]).fails_with("usage");
    sandbox.mu(&["config", "set", "base", "[acme.co/]", "--json"]).fails_with("usage");
}

#[test]
fn an_override_is_set_from_where_it_is_typed_and_taken_out_again() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0"), Package::new("aws/ec2", "1.2.0")]);
    sandbox.write(".mu/workspace.yaml", "# Ours.\n");
    sandbox.write("tools/x", "");
    // Relative to the folder of the command, and written as seen from the root.
    mu_testing::write(sandbox.root(), "fork/Mu.yaml", "name: aws/ec2\nversion: 1.9.0\n");
    let set = ["config", "set", "overrides.aws/ec2", "../../fork"];
    sandbox.mu_in("work/tools", &set).ok();
    assert_eq!(sandbox.read(".mu/workspace.yaml"), "# Ours.\noverrides:\n  aws/ec2: ../fork\n");
    sandbox.trusts_folder("fork");
    sandbox.mu(&["get"]).ok().says(&["1.9.0"]);
    sandbox.mu(&["config", "set", "overrides.aws/ec2", "1.0.0"]).ok();
    sandbox.mu(&["get"]).ok().says(&["1.9.0 → 1.0.0"]);
    sandbox.mu(&["config", "unset", "overrides.aws/ec2"]).ok();
    sandbox.mu(&["update"]).ok().says(&["1.0.0 → 1.2.0"]);
    let again = sandbox.mu(&["config", "unset", "overrides.aws/ec2", "--json"]);
    again.fails_with("not-found");
    // As other tools take it at this place: the answer is the command with both.
    let refused = sandbox.mu(&["config", "set", "overrides", "aws/ec2=../fork"]);
    assert_eq!(refused.status, 2);
    refused.says(&["`mu config set overrides.aws/ec2 ../fork`", "folder, reference or version"]);
    for (map, hint) in [
        ("runtime", "`mu config set runtime.NAME VALUE`"),
        ("aliases", "`mu config set aliases.PREFIX PREFIX`"),
        ("patches", "`mu patch` makes patches"),
    ] {
        sandbox.mu(&["config", "set", map, "x"]).says(&[hint]);
    }
}

#[test]
fn what_many_processes_write_at_once_is_all_there() {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    let key = |number: usize| format!("runtime.fact{number}");
    let prefix = |number: usize| format!("r{number}.example/");
    let commands: Vec<Vec<String>> = (0..6)
        .flat_map(|number| {
            let url = format!("https://h{number}.example/");
            [
                vec!["config".into(), "set".into(), key(number), "1".into()],
                vec!["config".into(), "set".into(), "-g".into(), key(number), "1".into()],
                vec!["registry".into(), "add".into(), prefix(number), url],
                vec!["version".into(), "patch".into()],
            ]
        })
        .collect();
    let started: Vec<_> = commands
        .iter()
        .map(|words| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let mut command = sandbox.command(&words);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("mu starts")
        })
        .collect();
    for mut child in started {
        assert!(child.wait().expect("ends").success());
    }
    let (ours, own) = (sandbox.read(".mu/workspace.yaml"), sandbox.read("../home/.mu/config.yaml"));
    for number in 0..6 {
        let fact = format!("fact{number}");
        assert!(ours.contains(&fact) && own.contains(&fact), "{fact}:\n{ours}\n{own}");
        assert!(ours.contains(&prefix(number)), "{number}: {ours}");
    }
    assert!(sandbox.read("Mu.yaml").contains("version: 1.0.6"), "{}", sandbox.read("Mu.yaml"));
}

#[test]
fn a_variable_that_says_neither_yes_nor_no_is_refused() {
    for name in ["MU_OFFLINE", "MU_STORE_READONLY"] {
        let with = |value: &str| {
            let mut sandbox = Sandbox::with_dependencies(&["aws/vpc"]);
            sandbox.publish(&[Package::new("aws/vpc", "1.0.0")]);
            sandbox.set(name, value);
            sandbox.mu(&["get", "--json"])
        };
        for no in ["no", "off", "0", "false", "No", ""] {
            with(no).ok();
        }
        let error = with("banana").fails_with("usage");
        let expected = format!("{name} is `banana`, and must be `1` or `0`");
        assert_eq!(error["message"], expected);
    }
    let mut sandbox = Sandbox::with_dependencies(&["aws/vpc"]);
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0")]);
    for yes in ["yes", "on", "1", "TRUE"] {
        sandbox.set("MU_STORE_READONLY", yes);
        sandbox.mu(&["get"]).fails();
    }
    sandbox.set("MU_STORE_READONLY", "");
    sandbox.set("MU_LOG", "banana");
    let error = sandbox.mu(&["get", "--json"]).fails_with("usage");
    assert_eq!(error["message"], "MU_LOG is `banana`, and must be `info`, `debug` or `off`");
    sandbox.set("MU_LOG", "off");
    sandbox.mu(&["get"]).ok();
}

#[test]
fn the_second_part_of_a_composite_version_is_raised() {
    let sandbox = Sandbox::new();
    let manifest = "name: acme/web\nversion: 1.0.0\nversioning: composite\nappVersion: 2.3\n";
    sandbox.write("Mu.yaml", manifest);
    sandbox.mu(&["version", "patch"]).ok().says(&["2.3-1.0.0 → 2.3-1.0.1"]);
    assert_eq!(sandbox.read("Mu.yaml"), manifest.replace("1.0.0", "1.0.1"));
    sandbox.mu(&["version", "2.0.0"]).ok().says(&["2.3-1.0.1 → 2.3-2.0.0"]);
    assert_eq!(sandbox.read("Mu.yaml"), manifest.replace("1.0.0", "2.0.0"));
}

#[test]
fn settings_behind_a_broken_link_are_missed() {
    let sandbox = Sandbox::with_dependencies(&[]);
    let config = sandbox.path("home/.mu/config.yaml");
    std::fs::remove_file(&config).expect("is there");
    std::os::unix::fs::symlink("dotfiles/config.yaml", config).expect("can be made");
    let run = sandbox.mu(&["get"]).ok();
    run.says(&["home/.mu/config.yaml: this link is broken, so your settings are not read"]);
}
