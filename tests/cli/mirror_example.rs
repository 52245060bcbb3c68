//! A tree of packages that moves to another place unchanged: missing parts of its dependencies mean packages
//! beside it.
//!
//! `xpkg.example/contrib/configuration` needs `contrib/provider-a` and `provider-b`. At
//! `pkg.acme.example/internal/configuration` the same lines mean `pkg.acme.example/contrib/provider-a` and
//! `pkg.acme.example/internal/provider-b`.
//!
//! This shows that dependencies never have to be edited, wherever a package is copied. Nothing has to be
//! changed if a hub or a Git repository is a whole namespace (so that names there have no namespace), if only
//! the base changes, and in Git in any case. In a hub with several namespaces, a package must have the name
//! that references use. `mu mirror --as` copies it into another namespace byte for byte, with an index line
//! that names the original. Without that, only its `name` must be changed.

use std::fs;

use crate::support::git::Origin;
use crate::support::{Hub, Package, Sandbox, Served, tree};

/// A machine where bases lead to places: `PREFIX PLACE`, places beside the workspace.
fn sandbox(registries: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new();
    let mut settings = "registries:\n".to_owned();
    for (prefix, place) in registries {
        settings.push_str(&format!("  {prefix}: {place}\n"));
    }
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox
}

/// The packages, whose names have this before them. `provider-b` needs one that is beside it, too.
fn packages(namespace: &str) -> [Package; 4] {
    let package =
        |name: &str| Package::new(&format!("{namespace}{name}"), "1.0.0").file("content.txt", name);
    [
        package("configuration").needs("contrib/provider-a#^1").needs("provider-b#^1"),
        package("provider-a"),
        package("provider-b").needs("base"),
        package("base"),
    ]
}

/// Installs a package into an empty workspace; returns the ids and digests of everything installed.
#[track_caller]
fn got(sandbox: &Sandbox, reference: &str) -> Vec<(String, String)> {
    let _ = fs::remove_file(sandbox.path("work/Mu.lock"));
    sandbox.mu(&["get", reference]).ok();
    let lock = sandbox.lock();
    let text = |value: &serde_json::Value| value.as_str().expect("is text").to_owned();
    let packages = lock["packages"].as_array().expect("is a list");
    packages.iter().map(|package| (text(&package["id"]), text(&package["digest"]))).collect()
}

fn ids(got: &[(String, String)]) -> Vec<&str> {
    got.iter().map(|(id, _)| id.as_str()).collect()
}

/// The digests, by the last segment of the id.
fn contents(got: &[(String, String)]) -> Vec<(&str, &str)> {
    let leaf = |id: &'_ str| id.rfind('/').map_or(0, |at| at + 1);
    let mut contents: Vec<_> =
        got.iter().map(|(id, digest)| (&id[leaf(id)..], &**digest)).collect();
    contents.sort_unstable();
    contents
}

const AT_HOME: [&str; 4] = [
    "xpkg.example/contrib/base",
    "xpkg.example/contrib/configuration",
    "xpkg.example/contrib/provider-a",
    "xpkg.example/contrib/provider-b",
];

const COPIED: [&str; 4] = [
    "pkg.acme.example/contrib/provider-a",
    "pkg.acme.example/internal/base",
    "pkg.acme.example/internal/configuration",
    "pkg.acme.example/internal/provider-b",
];

#[test]
fn a_hub_that_is_a_namespace_is_copied_byte_for_byte() {
    let sandbox = sandbox(&[
        ("xpkg.example/contrib/", "../home"),
        ("pkg.acme.example/contrib/", "../contrib"),
        ("pkg.acme.example/internal/", "../internal"),
    ]);
    let home = Hub::new(&sandbox.path("home"));
    packages("").iter().for_each(|package| drop(home.publish(package)));
    let at_home = got(&sandbox, "xpkg.example/contrib/configuration");
    assert_eq!(ids(&at_home), AT_HOME);
    for (place, copied) in [("contrib", "provider-a"), ("internal", "configuration")] {
        let hub = Hub::new(&sandbox.path(place));
        let reference = format!("xpkg.example/contrib/{copied}");
        sandbox.mu(&["mirror", &reference, "--to", &format!("../{place}")]).ok();
        let archive = fs::read(hub.archive(copied, "1.0.0")).expect("was copied");
        assert_eq!(archive, fs::read(home.archive(copied, "1.0.0")).expect("is there"));
    }
    fs::remove_dir_all(home.folder()).expect("is ours");
    let copied = got(&sandbox, "pkg.acme.example/internal/configuration");
    assert_eq!(ids(&copied), COPIED);
    assert_eq!(contents(&copied), contents(&at_home));
}

#[test]
fn under_another_base_nothing_changes() {
    let sandbox = sandbox(&[("xpkg.example/", "../home"), ("pkg.acme.example/", "../mirror")]);
    let home = Hub::new(&sandbox.path("home"));
    packages("contrib/").iter().for_each(|package| drop(home.publish(package)));
    Hub::new(&sandbox.path("mirror"));
    let at_home = got(&sandbox, "xpkg.example/contrib/configuration");
    assert_eq!(ids(&at_home), AT_HOME);
    sandbox.mu(&["mirror", "xpkg.example/contrib/configuration", "--to", "../mirror"]).ok();
    fs::remove_dir_all(home.folder()).expect("is ours");
    let copied = got(&sandbox, "pkg.acme.example/contrib/configuration");
    assert_eq!(ids(&copied), AT_HOME.map(|id| id.replace("xpkg", "pkg.acme")));
    assert_eq!(contents(&copied), contents(&at_home));
}

#[test]
fn in_another_namespace_of_a_hub_only_the_name_changes() {
    let sandbox = sandbox(&[("xpkg.example/", "../home"), ("pkg.acme.example/", "../mirror")]);
    let home = Hub::new(&sandbox.path("home"));
    let mirror = Hub::new(&sandbox.path("mirror"));
    for package in packages("contrib/") {
        home.publish(&package);
    }
    let files = |id: &str| tree(&sandbox.path(&format!("work/.mu/packs/{id}")));
    assert_eq!(ids(&got(&sandbox, "xpkg.example/contrib/configuration")), AT_HOME);
    let mut original = files("xpkg.example/contrib/configuration");
    let [configuration, _, provider_b, base] = packages("internal/");
    for package in [configuration, provider_b, base] {
        mirror.publish(&package);
    }
    let [mixed_up, provider_a, ..] = packages("contrib/");
    mirror.publish(&provider_a);
    let copied = got(&sandbox, "pkg.acme.example/internal/configuration");
    assert_eq!(ids(&copied), COPIED);
    // Except for the name in the manifest, the files are the same.
    let manifest = original.get_mut("Mu.yaml").expect("has a manifest");
    let text = String::from_utf8(manifest.1.clone()).expect("is text");
    manifest.1 = text.replacen("contrib/configuration", "internal/configuration", 1).into_bytes();
    assert_eq!(files("pkg.acme.example/internal/configuration"), original);
    // The unchanged archive is mistaken for a mixed-up one.
    mirror.publish(&mixed_up.version("1.1.0"));
    let line = fs::read_to_string(mirror.index("contrib/configuration")).expect("is there");
    let line = line.replacen("contrib/configuration", "internal/configuration", 1);
    let lines = fs::read_to_string(mirror.index("internal/configuration")).expect("is there");
    fs::write(mirror.index("internal/configuration"), lines + &line).expect("is ours");
    let archive = mirror.archive("internal/configuration", "1.1.0");
    fs::rename(mirror.archive("contrib/configuration", "1.1.0"), archive).expect("is ours");
    let error = sandbox.mu(&["update", "--json"]).fails_with("integrity");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("contains a package named `contrib/configuration`"), "{message}");
}

#[test]
fn a_clone_of_a_repository_works_whatever_its_packages_are_called() {
    let sandbox = sandbox(&[
        ("xpkg.example/contrib/", "{provider: git, url: ../home.git}"),
        ("pkg.acme.example/contrib/", "{provider: git, url: ../copy.git}"),
        ("pkg.acme.example/internal/", "{provider: git, url: ../copy.git}"),
    ]);
    let origin = Origin::new("contrib.git");
    let manifest =
        |name: &str, needs: &str| format!("name: contrib/{name}\ndependencies: [{needs}]\n");
    origin.commit(&[
        (
            "configuration/Mu.yaml",
            &manifest("configuration", "contrib/provider-a#^1, provider-b#^1"),
        ),
        ("provider-a/Mu.yaml", &manifest("provider-a", "")),
        ("provider-b/Mu.yaml", &manifest("provider-b", "base")),
        ("base/Mu.yaml", &manifest("base", "")),
    ]);
    origin.git(&["tag", "v1.0.0"]);
    for clone in ["home.git", "copy.git"] {
        let to = sandbox.path(clone).display().to_string();
        origin.git(&["clone", "--quiet", "--bare", ".", &to]);
    }
    let at_home = got(&sandbox, "xpkg.example/contrib/configuration");
    assert_eq!(ids(&at_home), AT_HOME);
    fs::remove_dir_all(sandbox.path("home.git")).expect("is ours");
    let copied = got(&sandbox, "pkg.acme.example/internal/configuration");
    assert_eq!(ids(&copied), COPIED);
    assert_eq!(contents(&copied), contents(&at_home));
}

#[test]
fn what_is_not_beside_it_is_at_the_base() {
    let sandbox =
        sandbox(&[("pkg.acme.example/", "../rest"), ("pkg.acme.example/internal/", "../internal")]);
    let [configuration, provider_a, provider_b, base] = packages("");
    let internal = Hub::new(&sandbox.path("internal"));
    internal.publish(&configuration);
    let rest = Hub::new(&sandbox.path("rest"));
    for package in [&provider_b, &base] {
        rest.publish(package);
    }
    rest.publish(&Package::new("contrib/provider-a", "1.0.0"));
    let copied = got(&sandbox, "pkg.acme.example/internal/configuration");
    let expected = [
        "pkg.acme.example/base",
        "pkg.acme.example/contrib/provider-a",
        "pkg.acme.example/internal/configuration",
        "pkg.acme.example/provider-b",
    ];
    assert_eq!(ids(&copied), expected);
    // If there is one beside it, that one is meant. A package that is only at the base has its own neighbours
    // there.
    internal.publish(&provider_b);
    internal.publish(&provider_a);
    let copied = got(&sandbox, "pkg.acme.example/internal/configuration");
    let expected = [
        "pkg.acme.example/base",
        "pkg.acme.example/contrib/provider-a",
        "pkg.acme.example/internal/configuration",
        "pkg.acme.example/internal/provider-b",
    ];
    assert_eq!(ids(&copied), expected);
}

#[test]
fn into_another_namespace_of_a_hub_it_is_copied_byte_for_byte() {
    let mut sandbox = sandbox(&[("xpkg.example/", "../home")]);
    let home = Hub::new(&sandbox.path("home"));
    packages("contrib/").iter().for_each(|package| drop(home.publish(package)));
    let at_home = got(&sandbox, "xpkg.example/contrib/configuration");
    sandbox.mu(&["hub", "init", "../served"]).ok();
    let token = sandbox.mu(&["hub", "token", "add", "../served", "m", "--namespace", "*"]).ok();
    let served = Served::start(&sandbox, "../served", &[]);
    sandbox.set_token(&served.address.to_string(), token.stdout.trim());
    let mirror = Hub::new(&sandbox.path("mirror"));
    for place in ["../mirror", &served.url()] {
        let mirror = ["mirror", "xpkg.example/contrib/configuration", "--to", place];
        let wrong = sandbox.mu(&[&mirror[..], &["--as", "x.example/a", "--json"]].concat());
        wrong.fails_with("usage");
        let run = sandbox.mu(&[&mirror[..], &["--as", "internal/"]].concat()).ok();
        run.says(&["+ internal/configuration 1.0.0", "4 versions copied"]);
        let again = sandbox.mu(&[&mirror[..], &["--as", "internal", "--json"]].concat()).ok();
        assert_eq!(again.json()["present"], 4);
    }
    let archive = fs::read(mirror.archive("internal/configuration", "1.0.0")).expect("is copied");
    let original = home.archive("contrib/configuration", "1.0.0");
    assert_eq!(archive, fs::read(original).expect("is there"));
    fs::remove_dir_all(home.folder()).expect("is ours");
    for (place, folder) in [("../mirror".to_owned(), "../mirror"), (served.url(), "../served")] {
        sandbox.mu(&["hub", "check", folder]).ok();
        let settings = format!("registries:\n  pkg.acme.example/: {place}\n");
        sandbox.write(".mu/workspace.yaml", &settings);
        let cache = sandbox.path(&format!("cache-{}", &folder[3..])).display().to_string();
        sandbox.set("MU_CACHE_DIR", &cache);
        let copied = got(&sandbox, "pkg.acme.example/internal/configuration");
        let here = ["base", "configuration", "provider-a", "provider-b"];
        assert_eq!(ids(&copied), here.map(|name| format!("pkg.acme.example/internal/{name}")));
        assert_eq!(contents(&copied), contents(&at_home));
        // With nothing but the lock, too; and with nothing but the cache.
        for more in [&["--locked"][..], &["--locked", "--offline"]] {
            fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is ours");
            if more.len() == 1 {
                fs::remove_dir_all(&cache).expect("is ours");
            }
            sandbox.mu(&[&["get"][..], more].concat()).ok();
        }
    }
}
