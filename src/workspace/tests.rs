//! Roots, settings and members, over folders that each test makes for itself.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::reference::{Base, PackageId};

/// A folder with these files; a name that ends in a slash is an empty folder.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("makes a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).expect("makes a folder");
            continue;
        }
        fs::create_dir_all(path.parent().expect("is in the folder")).expect("makes a folder");
        fs::write(path, text).expect("writes");
    }
    folder
}

fn open(folder: &TempDir) -> Result<Workspace, WorkspaceError> {
    let home = folder.path().join("home/.mu");
    Workspace::open(folder.path(), [&home, &home], &HelmRepositoryAliases::default)
}

fn opened(folder: &TempDir) -> Workspace {
    open(folder).unwrap_or_else(|error| panic!("{error}"))
}

fn id(text: &str) -> PackageId {
    PackageId::parse(text).expect("is an id")
}

fn check_root(files: &[(&str, &str)], start: &str, expected: &str) {
    let folder = tree(files);
    fs::create_dir_all(folder.path().join(start)).expect("makes a folder");
    let at = |place: &str| folder.path().join(place);
    let found = find_root(&at(start), &at("home"), &at("elsewhere/.mu"));
    let expected: PathBuf = folder.path().join(expected).components().collect();
    assert_eq!(found, expected, "{files:?} from {start}");
}

#[test]
fn the_root_is_the_nearest_of_its_kind() {
    let workspace = ("home/w/.mu/workspace.yaml", "");
    check_root(
        &[workspace, ("home/w/a/.mu/", ""), ("home/w/a/b/Mu.yaml", "")],
        "home/w/a/b/c",
        "home/w",
    );
    check_root(&[workspace, ("home/w/a/.mu/workspace.yaml", "")], "home/w/a/b", "home/w/a");
    check_root(&[("home/w/.mu/", ""), ("home/w/a/Mu.yaml", "")], "home/w/a/b", "home/w");
    check_root(&[("home/.mu/packs/", ""), ("home/w/Mu.yaml", "")], "home/w/a", "home/w");
    check_root(&[("home/.mu/workspace.yaml", ""), ("home/w/Mu.yaml", "")], "home/w", "home");
    check_root(&[("w/Mu.json", ""), ("w/a/Mu.yaml", "")], "w/a/b", "w/a");
    check_root(&[("w/mu.yaml", "")], "w/a", "w/a");
    check_root(&[("home/.mu/", "")], "home", "home");
    check_root(&[("elsewhere/.mu/", "")], "elsewhere/w", "elsewhere/w");
    check_root(&[("w/.mu", "a file")], "w/a", "w/a");
    // An installed package is not a workspace, although the packs folder has a `.mu` folder too.
    let pack = ("w/.mu/packs/hub.mu.com/a/Mu.yaml", "");
    check_root(&[("w/.mu/packs/.mu/", ""), pack], "w/.mu/packs/hub.mu.com/a", "w");
    check_root(&[("home/.mu/packs/.mu/", "")], "home/.mu/packs/hub.mu.com/a", "home");
}

const WORKSPACE: &str = r#"
namespace: hub.mu.com/aws
base: hub.acme.co
resolution: minimal
registries:
  hub.mu.com/: https://hub.internal.acme.co/mu
  git.acme.co/: {provider: git}
  hub.mu.com/internal: oci://ghcr.io/acme/mu/
  legacy.acme.co/: {provider: hub, url: "file:///srv/hub", insecure: true, versions: lenient}
  demo.acme.co/: ./hub
runtime: {kubernetes: 1.30, linux: true}
overrides: {ec2: ../ec2, hub.mu.com/aws/vpc: "https://github.com/me/vpc#fix"}
exclude: ["hub.mu.com/aws/ec2#1.2.3", old]
majors: many
minimumReleaseAge: 3 days
allowReplaces: {hub.mu.com/upbound/family: contrib/family}
link: hardlink
trust: {build: [hub.mu.com/acmecorp/*]}
members: ["**"]
x-mine: 1
"#;

/// The compiler does not look for unused constants of a macro from another crate.
#[test]
fn every_declared_key_is_read() {
    let readers = [
        include_str!("read.rs"),
        include_str!("registry.rs"),
        include_str!("rules.rs"),
        include_str!("settings.rs"),
    ];
    let readers = readers.concat();
    let plain = |text: &str| text.replace('_', "").to_lowercase();
    let readers = plain(&readers);
    let words = readers.split(|letter: char| !letter.is_alphanumeric() && letter != ':');
    for (map, keys) in [
        ("File", schema::File::KEYS),
        ("RegistryTable", schema::RegistryTable::KEYS),
        ("PackageTable", schema::PackageTable::KEYS),
        ("Trust", schema::Trust::KEYS),
        ("PackageRule", schema::PackageRule::KEYS),
    ] {
        for key in keys {
            let wanted = plain(&format!("{map}::{key}"));
            assert!(words.clone().any(|word| word == wanted), "nothing reads `{key}`");
        }
    }
}

#[test]
fn every_setting_is_read() {
    let folder = tree(&[(".mu/workspace.yaml", WORKSPACE)]);
    let Workspace { settings, namespace, .. } = opened(&folder);
    let namespace = namespace.expect("is there");
    assert_eq!(namespace.base.as_ref().map(Base::as_str), Some("hub.mu.com/"));
    assert_eq!(namespace.name.as_str(), "aws");
    assert_eq!(settings.base.as_str(), "hub.acme.co/");
    assert_eq!(settings.resolution, Resolution::Minimal);
    let url_of = |text: &str| {
        let registry = settings.registry(&id(text)).expect("is there");
        (
            registry.url.as_ref().map(ToString::to_string),
            registry.rest_of(&id(text)).map(str::to_owned),
        )
    };
    let pair = |url: &str, rest: &str| (Some(url.to_owned()), Some(rest.to_owned()));
    assert_eq!(url_of("hub.mu.com/aws/ec2"), pair("https://hub.internal.acme.co/mu/", "aws/ec2"));
    assert_eq!(url_of("hub.mu.com/internal/a"), pair("oci://ghcr.io/acme/mu/", "a"));
    assert_eq!(url_of("hub.mu.com/internal"), pair("oci://ghcr.io/acme/mu/", ""));
    assert_eq!(
        url_of("hub.mu.com/internals"),
        pair("https://hub.internal.acme.co/mu/", "internals")
    );
    let hub = format!("file://{}/hub/", folder.path().display());
    assert_eq!(url_of("demo.acme.co/a"), pair(&hub, "a"));
    assert_eq!(settings.registry(&id("other.co/a")), None);
    let legacy = settings.registry(&id("legacy.acme.co/a")).expect("is there");
    assert_eq!(
        (legacy.provider.as_deref(), legacy.insecure, legacy.lenient),
        (Some("hub"), true, true)
    );
    assert_eq!(legacy.defined_in, folder.path().join(".mu/workspace.yaml"));
    assert_eq!((&*settings.runtime["kubernetes"], &*settings.runtime["linux"]), ("1.30", "true"));
    assert_eq!(settings.overrides[&id("hub.acme.co/ec2")].as_str(), "../ec2");
    assert_eq!(
        settings.overrides[&id("hub.mu.com/aws/vpc")].as_str(),
        "https://github.com/me/vpc#fix"
    );
    assert_eq!(
        settings.exclude[0].versions.as_ref().map(ToString::to_string).as_deref(),
        Some("1.2.3")
    );
    assert_eq!(
        (&settings.exclude[1].id, &settings.exclude[1].versions),
        (&id("hub.acme.co/old"), &None)
    );
    assert_eq!(settings.majors, Majors::Many);
    assert_eq!(settings.release_age(0).map(|age| age.cutoff), Some(Cutoff::Age(259_200)));
    assert_eq!(
        settings.allow_replaces[&id("hub.mu.com/upbound/family")],
        id("hub.acme.co/contrib/family")
    );
    assert_eq!(settings.link, Link::Hardlink);
    assert_eq!(settings.untrusted(&id("hub.mu.com/acmecorp/elk")), None);
    assert_eq!(settings.untrusted(&id("hub.mu.com/acmecorp/elk/deep")), Some(Untrusted::Unnamed));
}

#[test]
fn the_workspace_wins_key_by_key() {
    let folder = tree(&[
        (
            ".mu/workspace.yaml",
            "registries: {a.co/: ./here, b.co/: {}}\nruntime: {x: 1}\nmajors: one\n",
        ),
        (
            "home/.mu/config.yaml",
            "registries: {a.co/: ./there, c.co/: ./hub}\nruntime: {x: 2, y: 3}\nmajors: many\n\
             link: copy\noverrides: {a.co/z: ./z}\nminimumReleaseAge: 0\n",
        ),
    ]);
    let settings = opened(&folder).settings;
    let prefixes: Vec<&str> =
        settings.registries.iter().map(|registry| &*registry.prefix).collect();
    assert_eq!(prefixes, ["a.co/", "b.co/", "c.co/"]);
    let url = |package: &str| {
        let registry = settings.registry(&id(package)).expect("is there");
        registry.url.as_ref().map(|url| url.as_url().path().to_owned()).expect("has one")
    };
    assert_eq!(url("a.co/x"), format!("{}/here/", folder.path().display()));
    assert_eq!(url("c.co/x"), format!("{}/home/.mu/hub/", folder.path().display()));
    assert_eq!((&*settings.runtime["x"], &*settings.runtime["y"]), ("1", "3"));
    assert_eq!((settings.majors, settings.link), (Majors::One, Link::Copy));
    let moved = settings.overrides[&id("a.co/z")].local().map(PathBuf::from);
    assert_eq!(moved, Some(folder.path().join("home/.mu/./z")));
    assert_eq!((settings.release_age(0), settings.fresh_for), (None, 600));
    let usual = Settings { fresh_for: 600, ..Settings::default() };
    assert_eq!(opened(&tree(&[])).settings, usual);
    assert_eq!(opened(&tree(&[(".mu", "a file")])).settings, usual);
}

fn check_wrong(file: &str, text: &str, expected: &str) {
    let folder = tree(&[(file, text)]);
    let error = open(&folder).expect_err("has a mistake").to_string();
    let shown = error.replace(&format!("{}/", folder.path().display()), "");
    assert_eq!(shown, format!("{file}:{expected}"), "{text}");
}

#[test]
fn an_override_may_be_another_version_of_the_package() {
    for (written, expected) in [
        ("1.0.0", "ec2#1.0.0"),
        ("\"1.0.0\"", "ec2#1.0.0"),
        ("^1", "ec2#^1"),
        ("aws/vpc", "aws/vpc"),
    ] {
        let text = format!("overrides: {{ec2: {written}}}");
        let settings = opened(&tree(&[(".mu/workspace.yaml", &text)])).settings;
        assert_eq!(settings.overrides[&id("hub.mu.com/ec2")].as_str(), expected, "{written}");
    }
}

#[test]
fn a_package_for_another_mu_is_refused() {
    check_wrong(
        "Mu.yaml",
        "name: a\nmuVersion: \">=99\"\n",
        &format!("2:1: `a` needs mu >=99, and this is mu {}", env!("CARGO_PKG_VERSION")),
    );
    check_wrong(
        "Mu.json",
        "{\"name\": \"a\",\n \"muVersion\": \"^99\"}\n",
        &format!("2:2: `a` needs mu ^99, and this is mu {}", env!("CARGO_PKG_VERSION")),
    );
    let folder = tree(&[("Mu.yaml", "name: a\nmuVersion: \">=0.1\"\n")]);
    assert_eq!(opened(&folder).members.len(), 1);
}

#[test]
fn wrong_settings_are_pointed_at() {
    let file = ".mu/workspace.yaml";
    check_wrong(file, "registry: {}", "1:1: unknown key `registry`");
    check_wrong(file, "- a", "1:1: expected a map, found a list");
    check_wrong(file, "majors: two", "1:9: expected one of `one`, `many`");
    check_wrong(file, "registries: {a.co/: hub}", "1:21: `hub` is neither a URL nor a folder");
    check_wrong(
        file,
        "registries: {'https://a.co/': ./x}",
        "1:15: a registry's key has no protocol",
    );
    check_wrong(
        file,
        "registries: {a.co/: 'https://u:p@a.co/'}",
        "1:21: a password does not belong in this file",
    );
    check_wrong(file, "registries: {a.co/: {provider: ../x}}", "1:32: `../x` is not a provider");
    let twice = "1:26: `a.co/` and `a.co` are one prefix";
    check_wrong(file, "registries: {a.co/: ./x, a.co: ./y}", twice);
    let twice = "1:27: `a.co/x` and `a.co/x/` are one prefix";
    check_wrong(file, "aliases: {a.co/x: b.co/x, a.co/x/: c.co/x}", twice);
    check_wrong(file, "minimumReleaseAge: 3", "1:20: `3` has no unit");
    let twice = "are one package";
    for (text, at, names) in [
        ("overrides: {a/b: 1.0.0, hub.mu.com/a/b: 1.1.0}", "1:25", "`a/b` and `hub.mu.com/a/b`"),
        ("{base: a.co/, allowReplaces: {a.co/x: y, x: z}}", "1:42", "`a.co/x` and `x`"),
        ("packages: {x: {}, hub.mu.com/x: {}}", "1:19", "`x` and `hub.mu.com/x`"),
        ("licenses: {except: {a/x: y, hub.mu.com/a/x: z}}", "1:29", "`a/x` and `hub.mu.com/a/x`"),
    ] {
        check_wrong(file, text, &format!("{at}: {names} {twice}"));
    }
    check_wrong(file, "namespace: https://a.co/b", "1:12: no protocol belongs here");
    check_wrong(file, "overrides: {'https://a.co/b': c#1}", "1:14: no protocol belongs here");
    check_wrong(file, "members: ['[']", "1:11: a `[` is not closed");
    let is_root = "1:18: this is the workspace itself, with all that is installed in it";
    check_wrong(file, "overrides: {ec2: ./}", is_root);
    check_wrong(file, "overrides: {ec2: ./lib/..}", is_root);
    check_wrong(
        "home/.mu/config.yaml",
        "members: []",
        "1:1: `members` cannot be set for every workspace",
    );
}

#[test]
fn members_are_found_wherever_they_may_be() {
    let folder = tree(&[
        ("Mu.yaml", "name: acme/root\n"),
        (".mu/workspace.yaml", "base: hub.acme.co/\n"),
        (".mu/packs/p/Mu.yaml", "broken: ["),
        (".git/Mu.yaml", "broken: ["),
        ("node_modules/p/Mu.yaml", "broken: ["),
        ("target/p/Mu.yaml", "broken: ["),
        (".hidden/Mu.yaml", "broken: ["),
        ("b/Mu.json", "{\"name\": \"acme/b\"}"),
        ("b/c/Mu.yaml", "name: other.co/c\n"),
        ("a/mu.yaml", "name: acme/a\n"),
        ("nested/.mu/workspace.yaml", ""),
        ("nested/Mu.yaml", "broken: ["),
        ("home/.mu/packs/x/Mu.yaml", "broken: ["),
    ]);
    let workspace = opened(&folder);
    let found: Vec<(&str, String)> =
        workspace.members.iter().map(|member| (&*member.place, member.id.to_string())).collect();
    let expected =
        [("", "hub.acme.co/acme/root"), ("b", "hub.acme.co/acme/b"), ("b/c", "other.co/c")];
    assert_eq!(found, expected.map(|(place, id)| (place, id.to_owned())));
    let warnings: Vec<&str> = workspace.warnings.iter().map(FileWarning::message).collect();
    assert_eq!(warnings, ["`mu.yaml` is not read as a manifest: its name must be `Mu.yaml`"]);
    assert_eq!(
        workspace.member(&id("other.co/c")).map(|m| m.folder.clone()),
        Some(folder.path().join("b/c"))
    );
}

fn check_members(globs: &str, expected: &[&str]) {
    let manifest = |name: &'static str| (name, "");
    let files = [
        manifest("p/a/Mu.yaml"),
        manifest("p/b/Mu.yaml"),
        manifest("p/b/c/Mu.yaml"),
        manifest("q/Mu.yaml"),
    ];
    let folder = tree(&files);
    for (name, _) in files {
        fs::write(folder.path().join(name), format!("name: {}\n", name.replace("/Mu.yaml", "")))
            .expect("writes");
    }
    fs::create_dir_all(folder.path().join(".mu")).expect("makes a folder");
    fs::write(folder.path().join(".mu/workspace.yaml"), format!("members: {globs}\n"))
        .expect("writes");
    let places: Vec<String> =
        opened(&folder).members.into_iter().map(|member| member.place).collect();
    assert_eq!(places, expected, "{globs}");
}

#[test]
fn globs_choose_members() {
    check_members("['**']", &["p/a", "p/b", "p/b/c", "q"]);
    check_members("['p/*']", &["p/a", "p/b"]);
    check_members("['**', '!p/b/**']", &["p/a", "q"]);
    check_members("['p/{a,b}', q]", &["p/a", "p/b", "q"]);
    check_members("[]", &[]);
}

#[test]
fn patterns_that_choose_nothing_are_told_with_their_line() {
    let file = "members:\n- p/*\n- P/*\n- '**'\n- '!drafts/*'\n- q\n- q/*/c\n";
    let folder = tree(&[
        (".mu/workspace.yaml", file),
        ("p/a/Mu.yaml", "name: p/a\n"),
        ("q/b/Mu.yaml", "name: q/b\n"),
    ]);
    let warnings: Vec<String> = opened(&folder)
        .warnings
        .iter()
        .map(|warning| warning.to_string().replace(&*folder.path().to_string_lossy(), ""))
        .collect();
    let expected = [
        "/.mu/workspace.yaml:3: no folder with a Mu.yaml matches `P/*`",
        "/.mu/workspace.yaml:6: no folder with a Mu.yaml matches `q`; `q/*` would be the folders in it",
        "/.mu/workspace.yaml:7: no folder with a Mu.yaml matches `q/*/c`",
    ];
    assert_eq!(warnings, expected);
    let empty = tree(&[(".mu/workspace.yaml", "members: ['**']\n")]);
    assert!(opened(&empty).warnings.is_empty());
}

#[test]
fn two_members_of_one_id_are_named() {
    let folder = tree(&[
        (".mu/workspace.yaml", ""),
        ("a/Mu.yaml", "name: acme/x\n"),
        ("b/Mu.yaml", "name: hub.mu.com/acme/x\n"),
    ]);
    let error = open(&folder).expect_err("are two").to_string();
    let shown = error.replace(&format!("{}/", folder.path().display()), "");
    assert_eq!(
        shown,
        "`hub.mu.com/acme/x` is in this workspace twice: in `a/Mu.yaml` and in `b/Mu.yaml`"
    );
}

#[test]
fn a_folder_with_the_base_hides_the_one_without() {
    let folder = tree(&[
        (".mu/workspace.yaml", "namespace: acme\n"),
        ("hub.mu.com/acme/x/Mu.yaml", "name: acme/x"),
        ("x/Mu.yaml", "name: acme/x"),
    ]);
    let workspace = opened(&folder);
    let places: Vec<&str> = workspace.members.iter().map(|member| &*member.place).collect();
    assert_eq!(places, ["hub.mu.com/acme/x"]);
    assert!(workspace.warnings[0].message().starts_with("not used"), "{:?}", workspace.warnings);
}

#[test]
fn a_workspace_inside_is_a_member_where_its_name_leads() {
    let folder = tree(&[
        (".mu/workspace.yaml", "namespace: acme\nmembers: ['**', '!old/**']\n"),
        ("x/.mu/workspace.yaml", ""),
        ("x/Mu.yaml", "name: acme/x\n"),
        ("x/below/Mu.yaml", "broken: ["),
        ("git.co/a/y/.mu/workspace.yaml", ""),
        ("git.co/a/y/Mu.json", "{\"name\": \"git.co/a/y\"}"),
        ("copy/.mu/workspace.yaml", ""),
        ("copy/Mu.yaml", "name: acme/x\n"),
        ("old/z/.mu/workspace.yaml", ""),
        ("old/z/Mu.yaml", "name: acme/old/z\n"),
        ("wrong/.mu/workspace.yaml", ""),
        ("wrong/Mu.yaml", "broken: ["),
        ("a/Mu.yaml", "name: acme/a\n"),
    ]);
    let workspace = opened(&folder);
    let places: Vec<&str> = workspace.members.iter().map(|member| &*member.place).collect();
    assert_eq!(places, ["a", "git.co/a/y", "x"]);
    let at = |place: &str| folder.path().join(place);
    let own = |place: &str| Some(LeftOutReason::OwnWorkspace(at(place)));
    let why = |place: &str| workspace.left_out.reason_left_out(&at(place)).cloned();
    assert_eq!((why("x"), why("x/below")), (None, own("x")));
    assert_eq!((why("copy"), why("copy/b/c")), (own("copy"), own("copy")));
    assert_eq!((why("old/z"), why("wrong")), (own("old/z"), own("wrong")));
}

#[test]
fn why_a_folder_is_not_searched_is_known() {
    let folder = tree(&[
        (".mu/workspace.yaml", "members: ['p/*/x', target]\n"),
        ("p/a/Mu.yaml", "name: p/a\n"),
        ("p/a/x/Mu.yaml", "name: p/a/x\n"),
        ("q/b/Mu.yaml", "name: q/b\n"),
        ("target/c/Mu.yaml", "name: target/c\n"),
    ]);
    let workspace = opened(&folder);
    let at = |place: &str| folder.path().join(place);
    let why = |place: &str| workspace.left_out.reason_left_out(&at(place)).cloned();
    assert_eq!((why(""), why("p/a/x"), why("p/b"), why("r")), (None, None, None, None));
    assert_eq!(
        (why("p/a"), why("q/b")),
        (Some(LeftOutReason::Unnamed), Some(LeftOutReason::Unnamed))
    );
    assert_eq!(why("target/c"), Some(LeftOutReason::OtherTool(at("target"))));
}

#[test]
fn the_base_makes_dependencies_the_same() {
    let folder = tree(&[
        (".mu/workspace.yaml", "base: hub.acme.co/\n"),
        ("Mu.yaml", "name: a\ndependencies:\n  - b\n  - hub.mu.com/b\n"),
    ]);
    assert_eq!(opened(&folder).members[0].manifest.dependencies.len(), 2);
    fs::write(folder.path().join(".mu/workspace.yaml"), "").expect("writes");
    let Err(WorkspaceError::Manifest(ManifestError::Source(error))) = open(&folder) else {
        panic!("lists a package twice")
    };
    insta::assert_snapshot!(error.with_path("Mu.yaml").render(false), @r"
    error: `hub.mu.com/b` is listed twice, on lines 3 and 4
     --> Mu.yaml:4:3
      |
    3 |   - b
      |   --- first here
    4 |   - hub.mu.com/b
      |   ^^^^^^^^^^^^^^
      |
      = help: keep one of them
    ");
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_out() {
    let outside = tree(&[("Mu.yaml", "name: outside\n")]);
    let folder = tree(&[
        (".mu/workspace.yaml", ""),
        ("in/Mu.yaml", "name: in\n"),
        ("a/", ""),
        ("b/", ""),
        ("c/", ""),
    ]);
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, folder.path().join(name)).expect("links");
    };
    link(outside.path(), "linked");
    link(folder.path(), "loop");
    link(&outside.path().join("Mu.yaml"), "a/Mu.yaml");
    link(Path::new("nowhere"), "b/Mu.yaml");
    let left_out = opened(&folder).left_out;
    let why = |place: &str| left_out.reason_left_out(&folder.path().join(place)).cloned();
    let linked = |place: &str| Some(LeftOutReason::Link(folder.path().join(place)));
    assert_eq!((why("linked"), why("loop/in")), (linked("linked"), linked("loop")));
    assert_eq!((why("a"), why("a/b"), why("in")), (linked("a/Mu.yaml"), None, None));
    let pipe = std::process::Command::new("mkfifo").arg(folder.path().join("c/Mu.yaml")).status();
    assert!(pipe.expect("is a program").success());
    let workspace = opened(&folder);
    let places: Vec<&str> = workspace.members.iter().map(|member| &*member.place).collect();
    assert_eq!(places, ["in"]);
    let warnings: Vec<&str> = workspace.unread.warnings().map(FileWarning::message).collect();
    let expected = [
        "this link points out of the workspace, so it is not followed",
        "this link is broken",
        "this is not a file, so it is not read",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn a_home_folder_is_only_its_own_package() {
    let folder = tree(&[
        ("Mu.yaml", "name: a\n"),
        ("b/Mu.yaml", "broken: ["),
        (".mu/config.yaml", "link: copy\n"),
    ]);
    let home = folder.path().join(".mu");
    let workspace = Workspace::open(folder.path(), [&home, &home], &HelmRepositoryAliases::default);
    let workspace = workspace.expect("opens");
    assert_eq!((workspace.members.len(), workspace.settings.link), (1, Link::Copy));
}
