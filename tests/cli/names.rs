//! Names with missing parts: these come from the package that declares the dependency.

use crate::support::{Nginx, Package, Sandbox};

/// The ids in the lock.
fn locked(sandbox: &Sandbox) -> Vec<String> {
    let lock = sandbox.read("Mu.lock");
    lock.lines().filter_map(|line| line.strip_prefix("- id: ")).map(str::to_owned).collect()
}

#[test]
fn a_short_name_means_the_own_namespace_first() {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: acme/internal/conf\ndependencies: [provider-b, provider-c]\n");
    sandbox.offer("acme/internal/provider-b 1.0.0:\nprovider-b 2.0.0:\nprovider-c 3.0.0:");
    sandbox.mu(&["get"]).ok();
    let expected = ["hub.mu.com/acme/internal/provider-b", "hub.mu.com/provider-c"];
    assert_eq!(locked(&sandbox), expected);
    // Others who depend on the same package get the same.
    let published = Package::new("acme/internal/conf", "1.0.0").needs("provider-b");
    sandbox.publish(&[published.needs("provider-c")]);
    let run = sandbox.mu(&["resolve", "acme/internal/conf", "--json"]).ok();
    let packages = run.json()["packages"].clone();
    let ids = packages.as_array().expect("is a list").iter().map(|package| package["id"].clone());
    // It comes after what it needs.
    let ids: Vec<_> = ids.collect();
    assert_eq!(ids[..2], expected);
    // Later questions need no registry for what the lock knows.
    std::fs::remove_dir_all(sandbox.path("hub")).expect("was there");
    std::fs::remove_dir_all(sandbox.path("cache/index")).expect("was there");
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    let status = sandbox.mu(&["status", "--json"]).ok().json();
    assert_eq!(status["upToDate"], true);
}

#[test]
fn the_workspace_is_looked_at_before_the_registry() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    sandbox.write("api/Mu.yaml", "name: acme/api\nversion: 0.1.0\n");
    sandbox.write("web/Mu.yaml", "name: acme/web\ndependencies: [api, vpc]\n");
    sandbox.offer("api 7.0.0:\nvpc 1.0.0:");
    sandbox.mu(&["get"]).ok();
    assert_eq!(locked(&sandbox), ["hub.mu.com/acme/api", "hub.mu.com/vpc"]);
}

#[test]
fn missing_bases_come_from_the_package_that_leaves_them_out() {
    let sandbox = Sandbox::new();
    let place = sandbox.path("acme");
    let acme = crate::support::Hub::new(&place);
    acme.release("aws/ec2", "1.0.0");
    acme.release("net/vpc", "1.0.0");
    sandbox.offer("aws/ec2 9.0.0:");
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("registries:\n  acme.co/: \"file://{}/\"\n", place.display()),
    );
    sandbox.write("Mu.yaml", "name: acme.co/net/web\nversion: 0.1.0\ndependencies: [aws/ec2]\n");
    sandbox.mu(&["add", "vpc"]).ok();
    assert_eq!(locked(&sandbox), ["acme.co/aws/ec2", "acme.co/net/vpc"]);
    let manifest = sandbox.read("Mu.yaml");
    assert!(manifest.contains("acme.co/net/vpc#^1.0.0"), "{manifest}");
    sandbox.mu(&["add", "hub.mu.com/aws/ec2"]).ok();
    let manifest = sandbox.read("Mu.yaml");
    assert!(manifest.contains("hub.mu.com/aws/ec2#^9.0.0"), "{manifest}");
}

#[test]
fn what_was_found_is_written_in_full() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.offer("acme/db 1.0.0:\ndb 2.0.0:\naws 3.0.0:\nnet/vpc 4.0.0:");
    for (given, written) in
        [("db", "acme/db#^1.0.0"), ("aws#^3", "hub.mu.com/aws#^3"), ("net/vpc", "net/vpc#^4.0.0")]
    {
        sandbox.mu(&["add", given]).ok();
        let manifest = sandbox.read("Mu.yaml");
        assert!(manifest.contains(&format!("- {written}\n")), "{manifest}");
    }
    // The same package with any of its names is the same entry.
    sandbox.mu(&["add", "aws#^3.0.0", "hub.mu.com/acme/db"]).ok();
    let manifest = sandbox.read("Mu.yaml");
    assert!(manifest.contains("- hub.mu.com/aws#^3.0.0\n"), "{manifest}");
    assert_eq!(manifest.matches("db#").count(), 1, "{manifest}");
    // A short name in a manifest stays short.
    sandbox.asks_for(&["db#^1", "aws#^3"]);
    sandbox.mu(&["add", "db#~1.0", "aws#~3.0"]).ok();
    let manifest = sandbox.read("Mu.yaml");
    assert!(manifest.contains("- db#~1.0\n  - aws#~3.0\n"), "{manifest}");
    sandbox.mu(&["remove", "aws"]).ok();
    assert_eq!(locked(&sandbox), ["hub.mu.com/acme/db"]);
}

#[test]
fn a_registry_that_cannot_be_asked_says_nothing_of_what_there_is() {
    let sandbox = Sandbox::with_dependencies(&["db"]);
    sandbox.write("db/Mu.yaml", "name: db\nversion: 1.0.0\n");
    sandbox.hub_is_at("http://127.0.0.1:1/");
    sandbox.mu(&["get", "--offline", "--json"]).fails_with("offline");
    let closed = Nginx::serve(&sandbox.path("hub"), "location / { return 403; }");
    sandbox.hub_is_at(&closed.url(""));
    let error = sandbox.mu(&["get", "--json"]).error();
    assert!(error["help"].to_string().contains("`db` means `hub.mu.com/acme/db`"), "{error}");
    assert!(!sandbox.has("work/Mu.lock"));
}

#[test]
fn all_meanings_of_names_are_asked_about_once() {
    let sandbox = Sandbox::with_dependencies(&["db", "aws"]);
    sandbox.offer("acme/db 1.0.0:\naws 1.0.0:");
    let server = Nginx::serve(&sandbox.path("hub"), "");
    sandbox.hub_is_at(&server.url("/"));
    sandbox.mu(&["get"]).ok();
    let mut asked = server.log();
    asked.retain(|line| line.contains(" /index/"));
    asked.sort_unstable();
    let expected = [("acme/aws", 404), ("acme/db", 200), ("aws", 200), ("db", 404)]
        .map(|(name, status)| format!("GET /index/{name}.jsonl HTTP/1.1 {status}"));
    assert_eq!(asked, expected);
}

#[test]
fn another_registry_is_not_told_of_names_that_this_one_has() {
    let sandbox = Sandbox::with_dependencies(&["db", "aws"]);
    sandbox.offer("aws 1.0.0:");
    let place = sandbox.path("acme");
    crate::support::Hub::new(&place).release("db", "1.0.0");
    let (own, public) = (Nginx::serve(&place, ""), Nginx::serve(&sandbox.path("hub"), ""));
    sandbox.hub_is_at(&public.url("/"));
    let registries = format!("registries:\n  hub.mu.com/acme/: \"{}\"\n", own.url(""));
    sandbox.write(".mu/workspace.yaml", &registries);
    sandbox.mu(&["get"]).ok();
    assert_eq!(locked(&sandbox), ["hub.mu.com/acme/db", "hub.mu.com/aws"]);
    let mut asked = public.log();
    asked.retain(|line| line.contains(" /index/"));
    assert_eq!(asked, ["GET /index/aws.jsonl HTTP/1.1 200"]);
}

#[test]
fn one_package_by_two_names_is_listed_twice() {
    let sandbox = Sandbox::with_dependencies(&["aws", "hub.mu.com/aws"]);
    sandbox.offer("aws 1.0.0:");
    let error = sandbox.mu(&["get", "--json"]).fails_with("manifest");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("`hub.mu.com/aws` is listed twice: here, and as `aws`"), "{message}");
    assert!(message.contains("Mu.yaml:5:5"), "{message}");
    sandbox.asks_for(&[]);
    let error = sandbox.mu(&["add", "aws#^1", "hub.mu.com/aws#^2", "--json"]).fails_with("usage");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("names `hub.mu.com/aws` twice"), "{message}");
    assert!(!sandbox.read("Mu.yaml").contains("aws"));
}

#[test]
fn a_package_cannot_depend_on_itself() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    sandbox.write("web/Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    for spelling in ["../web", ".", "acme/web", "web", "hub.mu.com/acme/web#^1"] {
        let error = sandbox.mu_in("work/web", &["add", spelling, "--json"]).fails_with("usage");
        assert_eq!(error["message"], "`acme/web` cannot depend on itself");
    }
    for spelling in ["../web", "acme/web", "web"] {
        let manifest = format!("name: acme/web\nversion: 1.0.0\ndependencies: [{spelling}]\n");
        sandbox.write("web/Mu.yaml", &manifest);
        let error = sandbox.mu(&["get", "--json"]).fails_with("manifest");
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains("`hub.mu.com/acme/web` depends on itself"), "{message}");
    }
}

#[test]
fn a_folder_whose_package_has_another_name_is_that_package() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    sandbox.write("api/Mu.yaml", "name: acme/api\nversion: 0.1.0\n");
    sandbox.write("web/Mu.yaml", "name: site/web\nversion: 0.1.0\n");
    let told = "`api` points to the folder `api` of the package `acme/api`";
    sandbox.mu_in("work/web", &["add", "api"]).ok().says(&[told]);
    assert!(sandbox.read("web/Mu.yaml").ends_with("  - acme/api#^0.1.0\n"));
    sandbox.write("db/Mu.yaml", "name: acme/db\ndependencies: [acme/api]\n");
    sandbox.write("web/Mu.yaml", "name: site/web\ndependencies: [api]\n");
    let told = "`site/web` requires `api`, which points to the folder `api` of the package `acme/api`: write `acme/api`";
    sandbox.mu(&["get"]).ok().says(&[told]);
    sandbox.mu(&["status"]).ok().says(&[told, "up to date"]);
    assert_eq!(locked(&sandbox), ["hub.mu.com/acme/api"]);
    sandbox.mu(&["which", "api"]).ok().says(&["whose package is named `acme/api`"]);
    sandbox.mu(&["why", "acme/api"]).ok().says(&["site/web", "acme/db"]);
    // A folder in the place of another package is that package, and this is reported too.
    sandbox.write("aws/ec2/Mu.yaml", "name: me/ec2\nversion: 1.0.0\n");
    sandbox.write("web/Mu.yaml", "name: site/web\ndependencies: [aws/ec2]\n");
    let told = "`aws/ec2` points to the folder `aws/ec2`, whose package is named `me/ec2`";
    for command in ["get", "status"] {
        sandbox.mu(&[command]).ok().says(&[told]);
    }
    sandbox.mu(&["which", "aws/ec2"]).ok().says(&[told]);
    assert_eq!(locked(&sandbox), ["hub.mu.com/acme/api", "hub.mu.com/aws/ec2"]);
}

#[test]
fn a_package_that_no_reference_leads_to_is_told_with_the_way_out() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.offer("net/vpc 1.0.0:");
    sandbox.write("wrong/vpc/Mu.yaml", "name: net/vpc\nversion: 9.0.0\n");
    sandbox.mu(&["get"]).ok().does_not_say(&["net/vpc"]);
    let way_out = "`overrides: {net/vpc: ./wrong/vpc}` in `.mu/workspace.yaml`";
    let told = [
        "the workspace has `net/vpc` in `wrong/vpc`",
        "point to `net/vpc`: move it there, or",
        way_out,
    ];
    sandbox.mu(&["add", "net/vpc"]).ok().says(&told);
    sandbox.mu(&["get"]).ok().says(&told);
    sandbox.mu(&["status"]).ok().says(&told);
    sandbox.mu(&["which", "net/vpc"]).ok().says(&told);
    assert!(sandbox.read("Mu.lock").contains("version: 1.0.0"));
    // The suggested way out works.
    sandbox.write(".mu/workspace.yaml", "overrides: {net/vpc: ./wrong/vpc}\n");
    sandbox.mu(&["get"]).ok().does_not_say(&["the workspace has"]);
    assert!(sandbox.read("Mu.lock").contains("version: 9.0.0"));
}

#[test]
fn what_a_name_of_one_segment_means_first_is_told_if_there_is_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("services/db/Mu.yaml", "name: acme/db\nversion: 1.0.0\n");
    sandbox.write("app/Mu.yaml", "name: acme/app\nversion: 1.0.0\ndependencies: [\"db#^1\"]\n");
    let hub = sandbox.path("hub").display().to_string();
    let settings = format!("registries: {{hub.mu.com/: \"file://{hub}/\"}}\nnamespace: acme\n");
    sandbox.write(".mu/workspace.yaml", &settings);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&[
        "`db` in `acme/app` means `acme/db` first, and the workspace has `acme/db` in `services/db`",
        "point to `db`: move it there, or set `overrides: {acme/db: ./services/db}`",
    ]);
    // The suggested way out works.
    sandbox
        .write(".mu/workspace.yaml", &format!("{settings}overrides: {{acme/db: ./services/db}}\n"));
    sandbox.mu(&["get"]).ok().says(&["+ acme/db 1.0.0 (workspace)"]);
    sandbox.write("app/Mu.yaml", "name: acme/app\nversion: 1.0.0\ndependencies: [\"log#^1\"]\n");
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["`log` in `acme/app` means `acme/log` first, which is not there either"]);
}

#[test]
fn a_folder_with_the_mark_of_versions_in_its_name_is_no_dependency() {
    let sandbox = Sandbox::new();
    sandbox.write("ha#sh/Mu.yaml", "name: acme/hash\nversion: 1.0.0\n");
    sandbox.write("app/Mu.yaml", "name: acme/app\nversion: 1.0.0\ndependencies: [\"../ha#sh\"]\n");
    let told =
        "a reference cannot name the folder `ha#sh`, because `#` begins a version: rename it";
    sandbox.mu(&["get"]).fails().says(&[told]);
    sandbox.mu(&["add", "-p", "acme/app", "./ha#sh"]).fails().says(&[told]);
    // No override is suggested that could not be written.
    sandbox.write("app/Mu.yaml", "name: acme/app\nversion: 1.0.0\ndependencies: [acme/hash]\n");
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["the workspace has `acme/hash` in `ha#sh`"]).does_not_say(&["overrides"]);
    // As a package of the workspace, it is one as any other.
    sandbox.write("app/Mu.yaml", "name: acme/app\nversion: 1.0.0\n");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["pack", "acme/hash", "--list"]).ok().says(&["acme/hash 1.0.0: 1 file"]);
}

#[test]
fn a_sibling_is_asked_for_from_its_version_on() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    sandbox.write("db/Mu.yaml", "name: acme/db\nversion: 0.3.1\n");
    sandbox.write("log/Mu.yaml", "name: acme/log\n");
    sandbox.write("web/Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    sandbox.mu_in("work/web", &["add", "db", "acme/log"]).ok();
    let written = "dependencies:\n  - acme/db#^0.3.1\n  - acme/log\n";
    assert!(sandbox.read("web/Mu.yaml").ends_with(written));
    // By its folder, too, if its name leads there.
    sandbox.write("web/Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    sandbox.mu_in("work/web", &["add", "../db"]).ok();
    assert!(sandbox.read("web/Mu.yaml").ends_with("  - acme/db#^0.3.1\n"));
}

#[test]
fn what_is_published_says_which_versions_fit() {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/ec2 1.1.0:");
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    sandbox.write("db/Mu.yaml", "name: acme/db\nversion: 0.3.1\n");
    for (dependency, line) in [
        ("acme/db", "write `acme/db#^0.3.1` there"),
        ("db#latest", "write `db#^0.3.1` there"),
        ("aws/ec2", "write `aws/ec2#^1.1.0` there"),
        ("aws/ec2#tip", "write `aws/ec2#^1.1.0` there"),
    ] {
        let manifest = format!("name: acme/web\nversion: 1.0.0\ndependencies:\n  - {dependency}\n");
        sandbox.write("web/Mu.yaml", &manifest);
        sandbox.mu(&["get"]).ok();
        for package in ["web", "--all"] {
            let error = sandbox.mu(&["publish", package, "--json"]).fails_with("manifest");
            assert!(error["help"].to_string().contains(line), "{error}");
            let message = error["message"].as_str().expect("is text");
            assert!(message.contains("web/Mu.yaml:4:5"), "{message}");
        }
    }
    // The hint works.
    sandbox
        .write("web/Mu.yaml", "name: acme/web\nversion: 1.0.0\ndependencies: [acme/db, aws/ec2]\n");
    sandbox.mu_in("work/web", &["add", "acme/db#^0.3.1", "aws/ec2#^1.1.0"]).ok();
    sandbox.mu(&["publish", "--all"]).ok();
    let line = std::fs::read_to_string(sandbox.hub().index("acme/web")).expect("is published");
    assert!(line.contains("\"acme/db#^0.3.1\"") && line.contains("\"aws/ec2#^1.1.0\""), "{line}");
    // Pins say it, too.
    sandbox.write("web/Mu.yaml", "name: acme/web\nversion: 1.1.0\ndependencies: [aws/ec2]\n");
    sandbox.mu(&["publish", "web", "--pinned"]).ok();
}

#[test]
fn a_package_has_the_same_name_in_tables_messages_and_hints() {
    let sandbox = Sandbox::with_dependencies(&["hub.mu.com/tool#^2"]);
    sandbox.offer("tool 1.0.0:\ntool 2.0.0:\nweb/x 1.0.0: hub.mu.com/tool#^1");
    sandbox.mu(&["get"]).ok().says(&["+ hub.mu.com/tool 2.0.0\n"]);
    sandbox.mu(&["list"]).ok().says(&["hub.mu.com/tool  2.0.0"]);
    insta::assert_snapshot!(sandbox.mu(&["add", "web/x"]).fails().shown(), @"
    $ mu add web/x
    error: no versions fit together
      acme/web requires hub.mu.com/tool ^2
      acme/web requires web/x
      web/x 1.0.0 requires hub.mu.com/tool ^1
      no version of hub.mu.com/tool is both ^2 and ^1

    hint: in acme/web, require hub.mu.com/tool ^1.0.0 instead of ^2: `mu add 'hub.mu.com/tool#^1.0.0' web/x`
    hint: use several majors of hub.mu.com/tool side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
    // What is printed can be pasted, even if there is a package of that name in the own namespace.
    sandbox.offer("acme/tool 7.0.0:");
    sandbox.mu(&["add", "hub.mu.com/tool#^1.0.0", "web/x"]).ok();
    assert_eq!(locked(&sandbox), ["hub.mu.com/tool", "hub.mu.com/web/x"]);
}

#[test]
fn the_end_of_a_name_that_several_packages_have_is_told_with_them() {
    let sandbox = Sandbox::with_dependencies(&["aws/vpc", "net/vpc"]);
    sandbox.offer("aws/vpc 1.0.0:\nnet/vpc 1.0.0:\naws/ec2 1.0.0:");
    sandbox.mu(&["get"]).ok();
    for command in ["remove", "why", "update", "upgrade"] {
        let run = sandbox.mu(&[command, "vpc"]);
        assert_eq!(run.status, 2, "{}", run.shown());
        run.says(&["`vpc` could be `aws/vpc` or `net/vpc`\n\nhint: name one of them in full\n"]);
    }
    sandbox.asks_for(&["aws/vpc", "aws/ec2"]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["remove", "vpc"]).ok().says(&["- aws/vpc 1.0.0"]);
}

#[test]
fn a_short_name_means_on_the_command_line_what_it_means_in_the_manifest() {
    let sandbox = Sandbox::new();
    let place = sandbox.path("acme");
    let acme = crate::support::Hub::new(&place);
    acme.release("internal/conf", "1.0.0");
    acme.release("internal/other", "1.0.0");
    sandbox.offer("log 2.0.0:");
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("registries:\n  acme.co/: \"file://{}/\"\n", place.display()),
    );
    sandbox.write("Mu.yaml", "name: acme.co/internal/app\nversion: 0.1.0\n");
    sandbox.mu(&["add", "conf"]).ok();
    let id = "acme.co/internal/conf";
    sandbox.mu(&["which", "conf"]).ok().says(&[&format!(".mu/packs/{id}")]);
    for command in ["info", "versions", "diff", "resolve", "get"] {
        let json = sandbox.mu(&[command, "conf", "--json"]).ok().json().to_string();
        assert!(json.contains(id), "{command}: {json}");
    }
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    sandbox.mu(&["mirror", "conf", "--to", "../mirror"]).ok().says(&["internal/conf 1.0.0"]);
    // What is not in use means what it means anywhere.
    sandbox.mu(&["info", "log"]).ok().says(&["log 2.0.0"]);
    sandbox.mu(&["info", "other", "--json"]).fails_with("not-found");
}

#[test]
fn the_workspaces_namespace_completes_names_in_manifests_without_one() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("acme/provider", "1.0.0"),
        Package::new("provider", "9.0.0"),
        Package::new("other", "1.0.0"),
    ]);
    let settings = sandbox.read(".mu/workspace.yaml");
    sandbox.write(".mu/workspace.yaml", &format!("{settings}\nnamespace: acme\n"));
    sandbox.write("Mu.yaml", "name: conf\nversion: 1.0.0\ndependencies: [provider, other]\n");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/acme/provider 1.0.0", "hub.mu.com/other 1.0.0"]);
    sandbox.mu(&["get", "--locked"]).ok();
}
