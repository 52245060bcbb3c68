//! What mu writes into manifests, a later mu finds, and the tool whose file it is understands.

use mu_testing::git::git;
use mu_testing::oci::Behaviour;
use mu_testing::{Artifact, Chart, Charts, Nginx, OciServer, write};

use crate::support::Sandbox;

/// A `kcl.mod`.
fn module(name: &str, version: &str, dependencies: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"{version}\"\n\n[dependencies]\n{dependencies}"
    )
}

/// Pushes a KCL module.
fn push(host: &str, name: &str, tag: &str, dependencies: &str) {
    let version = tag.trim_start_matches('v');
    let text = module(name, version, dependencies);
    let artifact = Artifact::module(name, version, &[("kcl.mod", &*text)], true);
    artifact.push(host, &format!("kcl-lang/{name}"), tag);
}

/// A workspace that is a KCL module with these dependencies.
fn kcl(resolution: &str, dependencies: &str) -> (Sandbox, OciServer) {
    let (mut sandbox, server) = (Sandbox::new(), OciServer::start(Behaviour::default()));
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    for version in ["1.17", "1.27", "1.28", "1.29"] {
        push(&host, "k8s", version, "");
    }
    push(&host, "konfig", "v0.4.0", "k8s = \"1.28\"\n");
    let settings = format!(
        "resolution: {resolution}\nregistries: {{ghcr.io/kcl-lang/: \"oci://{host}/kcl-lang\"}}\n"
    );
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.write("kcl.mod", &module("app", "0.1.0", dependencies));
    (sandbox, server)
}

/// The dependencies in the `kcl.mod` of the workspace.
fn listed(sandbox: &Sandbox) -> String {
    let text = sandbox.read("kcl.mod");
    text.split("[dependencies]\n").nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_version_that_only_a_manifest_in_git_states_is_not_written() {
    let sandbox = Sandbox::new();
    let origin = sandbox.path("young");
    write(&origin, "Mu.yaml", "name: acme/young\nversion: 0.1.0\n");
    write(&origin, "chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 2.3.4\n");
    write(&origin, "plain/a", "1");
    git(&origin, &["init", "--quiet", "."]);
    git(&origin, &["add", "."]);
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git(&origin, &[&who[..], &["commit", "--quiet", "--message", "a"]].concat());
    let commit = git(&origin, &["rev-parse", "HEAD"]).trim().to_owned();
    for folder in ["", "/chart", "/plain"] {
        // A folder in a pack that is still there would count as put there by hand.
        let _ = std::fs::remove_dir_all(sandbox.path("work/.mu/packs"));
        let reference = format!("git+file://{}{folder}", origin.display());
        sandbox.asks_for(&[]);
        sandbox.mu(&["add", &reference]).ok();
        assert!(sandbox.read("Mu.yaml").ends_with(&format!("- {reference}\n")));
        for command in [&["update"][..], &["outdated"], &["get", "--locked"]] {
            sandbox.mu(command).ok();
        }
        let without_lock = || {
            std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
            sandbox.mu(&["get"]).ok();
        };
        without_lock();
        let before = sandbox.read("Mu.yaml");
        sandbox.mu(&["pin"]).ok();
        let pinned = format!("- {reference}#{commit} # pinned from no version\n");
        assert!(sandbox.read("Mu.yaml").ends_with(&pinned), "{}", sandbox.read("Mu.yaml"));
        without_lock();
        sandbox.mu(&["unpin"]).ok();
        assert_eq!(sandbox.read("Mu.yaml"), before);
        without_lock();
        std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    }
    // A pin that has no note is taken back to what can be found, too.
    let reference = format!("git+file://{}", origin.display());
    sandbox.asks_for(&[&format!("{reference}#{commit}")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["unpin", &reference]).ok();
    assert!(sandbox.read("Mu.yaml").ends_with(&format!("  - {reference}\n")));
    let missing = sandbox.mu(&["get", &format!("{reference}#nosuch")]).fails();
    missing.says(&["its repository has no version tags"]).does_not_say(&["has no commits"]);
}

#[test]
fn a_module_is_moved_by_minimal_selection_in_its_own_words() {
    for command in [&["update"][..], &["update", "k8s"], &["upgrade"], &["update", "k8s#1.29"]] {
        let (sandbox, _server) = kcl("minimal", "konfig = \"0.4.0\"\n");
        sandbox.mu(&["get"]).ok();
        assert_eq!(listed(&sandbox), "konfig = \"0.4.0\"\n");
        sandbox.mu(command).ok();
        let newer = if command == ["upgrade"] { "" } else { "k8s = \"1.29\" # indirect\n" };
        assert_eq!(listed(&sandbox), format!("konfig = \"0.4.0\"\n{newer}"), "{command:?}");
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["downgrade", "k8s#1.28"]).ok();
        assert_eq!(listed(&sandbox), "konfig = \"0.4.0\"\n", "{command:?}");
        sandbox.mu(&["get", "--locked"]).ok();
    }
    // What is marked is not the author's: it goes when nothing needs it, and becomes the author's when that is said.
    let (sandbox, _server) = kcl("minimal", "konfig = \"0.4.0\"\n");
    sandbox.mu(&["update"]).ok();
    sandbox.mu(&["add", "k8s"]).ok();
    assert_eq!(listed(&sandbox), "konfig = \"0.4.0\"\nk8s = \"1.29\"\n");
    sandbox.write(
        "kcl.mod",
        &module("app", "0.1.0", "konfig = \"0.4.0\"\nk8s = \"1.29\" # indirect\n"),
    );
    sandbox.mu(&["remove", "konfig"]).ok();
    assert_eq!(listed(&sandbox), "");
}

#[test]
fn versions_of_modules_are_written_as_they_were_published() {
    for (command, expected) in [
        (&["update", "k8s#1.28"][..], "1.28"),
        (&["update"], "1.29"),
        (&["upgrade"], "1.29"),
        (&["upgrade", "k8s#1.28"], "1.28"),
        (&["downgrade", "ghcr.io/kcl-lang/k8s#1.17"], "1.17"),
        (&["pin", "k8s#1.28"], "1.28\" # pinned from ^1.27"),
    ] {
        let (sandbox, _server) = kcl("minimal", "k8s = \"1.27\"\n");
        sandbox.mu(&["get"]).ok();
        sandbox.mu(command).ok();
        let expected = format!("k8s = \"{expected}");
        assert!(listed(&sandbox).starts_with(&expected), "{command:?}: {}", listed(&sandbox));
        sandbox.mu(&["get", "--locked"]).ok();
    }
    let (sandbox, _server) = kcl("highest", "k8s = \"1.27\"\n");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["pin"]).ok();
    assert_eq!(listed(&sandbox), "k8s = \"1.29\" # pinned from ^1.27\n");
    sandbox.mu(&["unpin"]).ok();
    assert_eq!(listed(&sandbox), "k8s = \"1.27\"\n");
    // A new entry names the tag, with its `v`.
    sandbox.mu(&["add", "konfig"]).ok();
    sandbox.mu(&["add", "oci://ghcr.io/kcl-lang/konfig#^0.4.0"]).ok();
    assert_eq!(listed(&sandbox), "k8s = \"1.27\"\nkonfig = \"v0.4.0\"\n");
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn ranges_of_two_parts_stay_ranges_of_two_parts_in_every_manifest() {
    let (sandbox, server) = kcl("minimal", "");
    let settings = sandbox.read(".mu/workspace.yaml");
    std::fs::remove_file(sandbox.path("work/kcl.mod")).expect("is there");
    for (resolution, from, command, to) in [
        ("minimal", "^1.27", &["update"][..], "^1.29"),
        ("minimal", "^1.27", &["update", "k8s#1.28"], "^1.28"),
        ("highest", "^1.27", &["upgrade"], "^1.29"),
        ("highest", "~1.27", &["upgrade"], "~1.29"),
        ("highest", "~1.27", &["downgrade", "k8s#1.17"], "~1.17"),
        // A pin names all numbers: `1.29` is any version that begins so.
        ("highest", "^1.27", &["pin"], "1.29.0 # pinned from ^1.27"),
        ("minimal", "", &["get"], ">=1.17"),
    ] {
        let settings = settings.replace("minimal", resolution);
        sandbox.write(".mu/workspace.yaml", &settings);
        let spec = if from.is_empty() { String::new() } else { format!("#{from}") };
        let reference = "oci://ghcr.io/kcl-lang/k8s";
        sandbox.asks_for(&[&format!("{reference}{spec}")]);
        let _ = std::fs::remove_file(sandbox.path("work/Mu.lock"));
        sandbox.mu(&["get"]).ok();
        sandbox.mu(command).ok();
        let to = if from.is_empty() { String::new() } else { format!("#{to}") };
        let expected = format!("  - {reference}{to}\n");
        assert!(
            sandbox.read("Mu.yaml").ends_with(&expected),
            "{command:?} {}",
            sandbox.read("Mu.yaml")
        );
        sandbox.mu(&["get", "--locked"]).ok();
    }
    drop(server);
}

#[test]
fn a_word_means_what_it_means_in_the_manifest_here() {
    for (reference, expected) in
        [("k8s", "1.29"), ("k8s#1.28", "1.28"), ("oci://ghcr.io/kcl-lang/k8s#1.28", "1.28")]
    {
        let (sandbox, _server) = kcl("highest", "");
        sandbox.mu(&["add", reference]).ok();
        assert_eq!(listed(&sandbox), format!("k8s = \"{expected}\"\n"));
        sandbox.mu(&["info", "k8s"]).ok().says(&["ghcr.io/kcl-lang/k8s"]);
        sandbox.mu(&["versions", "k8s"]).ok().says(&["1.28", "1.29"]);
    }
}

#[test]
fn indirect_requirements_do_not_become_dependencies_of_charts_and_packages() {
    let server = OciServer::start(Behaviour::default());
    let host = server.host();
    for version in ["1.0.0", "1.2.0"] {
        Artifact::chart(&Chart::new("redis", version)).push(&host, "ch/redis", version);
        let text = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: q}\n";
        Artifact::package(text).push(&host, "up/q", &format!("v{version}"));
    }
    let web = Chart::new("web", "1.0.0").needs("redis", "^1.0.0", &format!("oci://{host}/ch"));
    Artifact::chart(&web).push(&host, "ch/web", "1.0.0");
    let needs =
        format!("spec:\n  dependsOn:\n  - provider: {host}/up/q\n    version: '>=v1.0.0'\n");
    let head = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: p}\n";
    Artifact::package(&format!("{head}{needs}")).push(&host, "up/p", "v1.0.0");
    let chart = format!(
        "apiVersion: v2\nname: app\nversion: 0.1.0\ndependencies:\n- name: web\n  version: ^1.0.0\n  repository: oci://{host}/ch\n"
    );
    let package = format!(
        "{head}spec:\n  dependsOn:\n  - configuration: {host}/up/p\n    version: \"^1.0.0\"\n"
    );
    for (file, text, below, top) in
        [("Chart.yaml", chart, "ch/redis", "ch/web"), ("crossplane.yaml", package, "up/q", "up/p")]
    {
        let sandbox = Sandbox::new();
        sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
        sandbox.write(file, &text);
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["update"]).ok().says(&["1.0.0 → 1.2.0"]);
        assert_eq!(sandbox.read(file), text);
        // It stays where the lock says.
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["get"]).ok();
        assert!(sandbox.locked().contains(&format!("{host}/{below} 1.2.0")));
        sandbox.mu(&["remove", &format!("oci://{host}/{top}")]).ok();
        assert!(!sandbox.read(file).contains(below));
        assert!(!sandbox.has("work/Mu.lock"), "nothing is left to be locked");
    }
}

#[test]
fn a_package_of_crossplane_is_written_with_its_kind() {
    let server = OciServer::start(Behaviour::default());
    let host = server.host();
    for (repository, kind) in [
        ("up/aws-thing", "Provider"),
        ("up/auto-ready", "Function"),
        ("up/provider-set", "Configuration"),
    ] {
        let text =
            format!("apiVersion: meta.pkg.crossplane.io/v1\nkind: {kind}\nmetadata: {{name: x}}\n");
        Artifact::package(&text).push(&host, repository, "v1.0.0");
        for version in ["", "#^1.0.0"] {
            let sandbox = Sandbox::new();
            let own = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: conf\nspec: {}\n";
            sandbox.write("crossplane.yaml", own);
            sandbox.mu(&["add", &format!("oci://{host}/{repository}{version}")]).ok();
            let written = sandbox.read("crossplane.yaml");
            let expected = format!("- {}: {host}/{repository}\n", kind.to_lowercase());
            assert!(written.contains(&expected), "{written}");
            sandbox.mu(&["get", "--locked"]).ok();
        }
    }
}

#[test]
fn an_upgrade_to_a_prerelease_keeps_the_form() {
    let sandbox = Sandbox::new();
    let charts = sandbox.path("www");
    std::fs::create_dir_all(&charts).expect("can be made");
    let mut charts = Charts::new(&charts);
    for version in ["1.0.0-rc.1", "1.0.0-rc.2", "1.0.0", "2.0.0-rc.1"] {
        charts.add(&Chart::new("redis", version));
    }
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let reference = format!("helm+{}", nginx.url("redis"));
    for (before, after) in [
        ("1.0.0-rc.1", "2.0.0-rc.1"),
        ("=1.0.0-rc.1", "=2.0.0-rc.1"),
        ("1.0.0", "2.0.0-rc.1"),
        ("~1.0.0-rc.1", "~2.0.0-rc.1"),
        ("~1.0.0", "~2.0.0-rc.1"),
        ("^1.0.0-rc.1", "^2.0.0-rc.1"),
        ("1.x", "^2.0.0-rc.1"),
    ] {
        let chart = |version: &str| {
            format!(
                "apiVersion: v2\nname: app\nversion: 0.1.0\ndependencies:\n- name: redis\n  version: {version}\n  repository: {}\n",
                reference.trim_start_matches("helm+").trim_end_matches("/redis")
            )
        };
        // With a lock, and on a fresh checkout.
        for has_lock in [true, false] {
            sandbox.write("Chart.yaml", &chart(before));
            let _ = std::fs::remove_file(sandbox.path("work/Mu.lock"));
            if has_lock {
                sandbox.mu(&["get"]).ok();
            }
            sandbox.mu(&["upgrade", &reference, "--pre"]).ok();
            assert_eq!(sandbox.read("Chart.yaml"), chart(after), "{before}");
            sandbox.mu(&["get", "--locked"]).ok();
        }
    }
    std::fs::remove_file(sandbox.path("work/Chart.yaml")).expect("is there");
    sandbox.asks_for(&[&format!("{reference}#1.0.0-rc.1")]);
    sandbox.mu(&["upgrade", "redis", "--pre"]).ok();
    assert!(sandbox.read("Mu.yaml").ends_with(&format!("{reference}#2.0.0-rc.1\n")));
}
