//! Wrong inputs, each with its complete message, as a new user sees it: what was wrong, where, and what to
//! do. `BLESS=1 cargo test --all-features --test cli wrong_inputs` writes the files in `snapshots`.

use std::fs;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use crate::support::{Package, Sandbox};

/// One wrong input: its name, a change of the sandbox before it, and the arguments.
type Input = (&'static str, fn(&mut Sandbox), &'static [&'static str]);

/// A package of one's own, and a hub with `aws/ec2` and `aws/vpc`.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&[]);
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        sandbox.hub().release("aws/ec2", version);
    }
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0").needs("aws/ec2#^1")]);
    sandbox
}

/// Runs all inputs of a group, and compares what they print with the group's file.
#[track_caller]
fn check(group: &str, inputs: &[Input]) {
    let run = |(name, change, arguments): &Input| {
        let mut sandbox = sandbox();
        sandbox.replace(&format!("`{}`", std::env::temp_dir().display()), "`[TMP]`");
        change(&mut sandbox);
        let run = sandbox.mu(arguments);
        assert_ne!(run.status, 0, "{name} should fail:\n{}", run.shown());
        format!("# {name}\n{}\n\n", timeless(run.shown()))
    };
    // At once, because some wait for what does not answer.
    let found: String = thread::scope(|scope| {
        let started: Vec<_> = inputs.iter().map(|input| scope.spawn(|| run(input))).collect();
        let ended = started.into_iter().map(|thread| thread.join());
        ended.map(|text| text.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cli/snapshots/{group}.txt"));
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("is in a folder")).expect("can be made");
        fs::write(&path, &found).expect("can be written");
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    assert!(known == found, "BLESS=1 writes {}:\n{found}", path.display());
}

/// Adds a line to the index of `aws/ec2`, whatever it says.
fn published(sandbox: &Sandbox, line: &str) {
    let path = sandbox.path("hub/index/aws/ec2.jsonl");
    let before = fs::read_to_string(&path).expect("was published");
    fs::write(path, format!("{before}{line}\n")).expect("can be written");
}

/// The text without how long something took.
fn timeless(text: &str) -> String {
    let line = |line: &str| match line.split_once(" times in ") {
        Some((before, _)) => format!("{before} times in [TIME] s"),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Writes the manifest of the workspace's package.
macro_rules! manifest {
    ($text:expr) => {
        |sandbox| sandbox.write("Mu.yaml", $text)
    };
}

#[test]
fn references_that_are_wrong_are_pointed_at() {
    let none: fn(&mut Sandbox) = |_| {};
    check(
        "references",
        &[
            ("nothing", none, &["add", ""]),
            ("an empty segment", none, &["add", "aws//ec2"]),
            ("no version behind the mark", none, &["add", "aws/ec2#"]),
            ("another tool's mark", none, &["add", "aws/ec2@1.0"]),
            ("a colon before the version", none, &["add", "aws/ec2:1.0"]),
            ("a space before the version", none, &["add", "aws/ec2 #^1"]),
            ("one slash after the protocol", none, &["add", "https:/hub.mu.com/aws/ec2"]),
            ("a misspelt protocol", none, &["add", "htps://hub.mu.com/aws/ec2"]),
            ("capitals", none, &["add", "AWS/EC2"]),
            ("a misspelt name", none, &["add", "aws/ec3"]),
            ("a name that is nowhere", none, &["add", "acme/nothing"]),
            ("a range above all versions", none, &["add", "aws/ec2#^99"]),
            ("a version with four numbers", none, &["add", "aws/ec2#1.0.0.0"]),
            ("an empty range", none, &["add", "aws/ec2#>=2 <1"]),
            ("a range that cannot be read", none, &["add", "aws/ec2#^1.0 <"]),
            ("a comma between two names", none, &["add", "aws/ec2,aws/vpc"]),
            ("a backslash", none, &["add", "aws\\ec2"]),
            ("a home folder in quotes", none, &["add", "~/infra"]),
            ("a tag that is not there", none, &["add", "aws/ec2#stable"]),
            ("a version that is not there, between two majors", none, &["add", "aws/ec2#1.4.7"]),
            ("one package twice", none, &["add", "aws/ec2#^1", "aws/ec2#^2"]),
            ("the folder around the workspace", none, &["add", "../.."]),
            ("the package itself", none, &["add", "../work"]),
            ("a password", none, &["add", "https://ada:secret@hub.mu.com/aws/ec2"]),
            ("a repository that is not there", none, &["add", "git+file:///nothing/infra"]),
            ("a folder that is not a repository", none, &["add", "git+file:///usr"]),
            ("a folder that is not there", none, &["add", "./nothing"]),
            (
                "a folder that is misspelt",
                |sandbox| sandbox.write("network/vpc/a.txt", ""),
                &["add", "./netwrok/vpc"],
            ),
            (
                "a folder that is not among others",
                |sandbox| {
                    sandbox.write("api/a.txt", "");
                    sandbox.write("web/a.txt", "");
                },
                &["add", "./database"],
            ),
            ("a file for a package", none, &["add", "/etc/passwd"]),
            (
                "a capability that nothing provides",
                manifest!("name: acme/web\nrequires: [net.mu.com/v1/Network]\n"),
                &["get"],
            ),
            ("a file", none, &["add", "./Mu.yaml"]),
            (
                "a folder in a bare repository",
                |sandbox| {
                    for file in ["HEAD", "objects/x"] {
                        sandbox.write(&format!("infra.git/{file}"), "");
                    }
                },
                &["add", "./infra.git/modules/vpc"],
            ),
            (
                "a version that another package forbids",
                manifest!("name: acme/web\ndependencies: [aws/vpc]\n"),
                &["add", "aws/ec2#^2"],
            ),
            ("a question about a version that is not there", none, &["info", "aws/ec2#^9"]),
            ("versions of what is not there", none, &["versions", "aws/ec3"]),
        ],
    );
}

#[test]
fn manifests_that_are_wrong_are_pointed_at() {
    check(
        "manifests",
        &[
            ("a misspelt key", manifest!("name: acme/web\ndependecies: []\n"), &["get"]),
            ("no name", manifest!("version: 1.0.0\n"), &["get"]),
            ("a name with an umlaut", manifest!("name: größe/b\n"), &["get"]),
            ("a name with a space", manifest!("name: a b\n"), &["get"]),
            ("a version with two numbers", manifest!("name: acme/web\nversion: 1.0\n"), &["get"]),
            (
                "dependencies as text",
                manifest!("name: acme/web\ndependencies: aws/ec2\n"),
                &["get"],
            ),
            (
                "a dependency without a version in a map",
                manifest!("name: acme/web\ndependencies:\n  aws/ec2:\n"),
                &["get"],
            ),
            (
                "a dependency that is listed twice",
                manifest!("name: acme/web\ndependencies:\n  - aws/ec2\n  - aws/ec2#^1\n"),
                &["get"],
            ),
            ("a key that is there twice", manifest!("name: acme/web\nname: acme/api\n"), &["get"]),
            ("keywords as text", manifest!("name: acme/web\nkeywords: logs\n"), &["get"]),
            ("licences as a list", manifest!("name: acme/web\nlicense: [MIT]\n"), &["get"]),
            (
                "a quote that is not closed",
                manifest!("name: \"acme/web\nversion: 1.0.0\n"),
                &["get"],
            ),
            (
                "a line that is indented too deep",
                manifest!("name: acme/web\n dependencies:\n  - aws/ec2\n"),
                &["get"],
            ),
            (
                "a manifest in lower case",
                |sandbox| {
                    fs::rename(sandbox.path("work/Mu.yaml"), sandbox.path("work/mu.yaml"))
                        .expect("is ours");
                },
                &["get"],
            ),
            (
                "a list for a map",
                manifest!("name: acme/web\nconstraints: [kubernetes]\n"),
                &["get"],
            ),
            ("text for a map", manifest!("name: acme/web\nbuild: make\n"), &["get"]),
            ("a list as the whole", manifest!("- aws/ec2\n"), &["get"]),
            ("an asterisk", manifest!("name: acme/web\ndescription: *all of it\n"), &["get"]),
            ("a bracket that is not closed", manifest!("name: acme/web\nkeywords: [a\n"), &["get"]),
            (
                "itself, in a map",
                manifest!("name: acme/web\ndependencies:\n  acme/web: \"^1\"\n"),
                &["get"],
            ),
            (
                "a comma too many in JSON",
                |sandbox| {
                    fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours");
                    sandbox.write("Mu.json", "{\"name\": \"acme/web\",}");
                },
                &["get"],
            ),
            (
                "JSON that is not closed",
                |sandbox| {
                    fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours");
                    sandbox.write("Mu.json", "{\"name\": \"acme/web\"");
                },
                &["get"],
            ),
            ("a tab", manifest!("name: acme/web\ndependencies:\n\t- aws/ec2\n"), &["get"]),
            (
                "a conflict of a merge",
                manifest!(
                    "name: acme/web\n<<<<<<< HEAD\nversion: 1.0.0\n=======\nversion: 2.0.0\n>>>>>>> other\n"
                ),
                &["get"],
            ),
            ("two documents", manifest!("name: acme/web\n---\nname: acme/api\n"), &["get"]),
            (
                "another encoding",
                |sandbox| {
                    let path = sandbox.path("work/Mu.yaml");
                    fs::write(path, b"name: acme/web\ndescription: gr\xfcn\n")
                        .expect("can be written");
                },
                &["get"],
            ),
            (
                "a folder in the place of the manifest",
                |sandbox| {
                    fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours");
                    sandbox.write("Mu.yaml/a.txt", "");
                },
                &["get"],
            ),
            (
                "a readme that is not there",
                manifest!("name: acme/web\nversion: 1.0.0\nreadme: GUIDE.md\n"),
                &["publish", "--to", "../hub"],
            ),
            (
                "both forms",
                |sandbox| sandbox.write("Mu.json", "{\"name\": \"acme/web\"}"),
                &["get"],
            ),
            (
                "a name that two packages have",
                |sandbox| sandbox.write("copy/Mu.yaml", "name: acme/web\n"),
                &["get"],
            ),
            (
                "an unknown channel",
                manifest!("name: acme/web\ndependencies:\n  - {ref: aws/ec2, channel: fast}\n"),
                &["get"],
            ),
            (
                "an unknown key of a dependency",
                manifest!("name: acme/web\ndependencies:\n  - {ref: aws/ec2, chanel: fast}\n"),
                &["get"],
            ),
        ],
    );
}

#[test]
fn settings_and_locks_that_are_wrong_are_pointed_at() {
    check(
        "settings",
        &[
            (
                "an unknown key",
                |sandbox| sandbox.write(".mu/workspace.yaml", "registry: x\n"),
                &["get"],
            ),
            (
                "an unknown strategy",
                |sandbox| sandbox.write(".mu/workspace.yaml", "resolution: newest\n"),
                &["get"],
            ),
            (
                "an age without a unit",
                |sandbox| sandbox.write(".mu/workspace.yaml", "minimumReleaseAge: 3\n"),
                &["get"],
            ),
            (
                "a registry with an unknown protocol",
                |sandbox| {
                    sandbox.asks_for(&["aws/ec2"]);
                    let text =
                        "# Where packages are\nregistries:\n  hub.mu.com/: hhttps://hub.acme.co\n";
                    sandbox.write(".mu/workspace.yaml", text);
                },
                &["get"],
            ),
            (
                "a registry with an unknown provider",
                |sandbox| {
                    sandbox.asks_for(&["aws/ec2"]);
                    let text = "registries:\n  hub.mu.com/aws/: {provider: gti, url: \"https://git.acme.co\"}\n";
                    sandbox.write(".mu/workspace.yaml", text);
                },
                &["update"],
            ),
            (
                "a registry in a folder that is not there",
                |sandbox| {
                    sandbox.write(".mu/workspace.yaml", "registries:\n  hub.mu.com/: ./hub\n");
                },
                &["add", "aws/ec2"],
            ),
            (
                "an override that leads nowhere",
                |sandbox| {
                    sandbox.asks_for(&["aws/ec2"]);
                    sandbox.write(".mu/workspace.yaml", "overrides: {aws/ec2: ./fork}\n");
                },
                &["get"],
            ),
            (
                "a lock that is from a later mu",
                |sandbox| sandbox.write("Mu.lock", "version: 99\n"),
                &["get"],
            ),
            (
                "a locked package without a source",
                |sandbox| {
                    sandbox.write(
                        "Mu.lock",
                        "version: 1\npackages:\n- id: hub.mu.com/aws/ec2\n  version: 1.0.0\n",
                    );
                },
                &["get"],
            ),
            (
                "a lock that is not YAML",
                |sandbox| sandbox.write("Mu.lock", "version: [\n"),
                &["get"],
            ),
        ],
    );
}

#[test]
fn command_lines_that_are_wrong_are_explained() {
    let none: fn(&mut Sandbox) = |_| {};
    check(
        "command_lines",
        &[
            ("a word for a number of jobs", none, &["get", "--jobs", "abc"]),
            ("no jobs", none, &["get", "--jobs", "0"]),
            ("a word for a number of steps", none, &["resolve", "--patience", "x"]),
            ("no packages", none, &["get", "--most", "0"]),
            ("a word for a depth", none, &["tree", "--depth", "x"]),
            ("an unknown strategy", none, &["get", "--resolution", "newest"]),
            ("an age that cannot be read", none, &["get", "--exclude-newer", "soon"]),
            ("a file for a folder", none, &["-C", "Mu.yaml", "get"]),
            ("a folder that is not there", none, &["-C", "nowhere", "get"]),
            ("nothing to add", none, &["add"]),
            ("a package whose manifest is not written", none, &["get", "-p", "acme/web"]),
            ("an unknown protocol", none, &["registry", "add", "hub.acme.co/", "hhttps://x"]),
            (
                "an unknown provider",
                none,
                &["registry", "add", "git.acme.co/", "--provider", "gti"],
            ),
            ("an unknown setting", none, &["config", "set", "foo", "bar"]),
            ("an unknown value", none, &["config", "set", "resolution", "newest"]),
            ("a version that a hub has not", none, &["yank", "aws/ec2#9.9.9", "--to", "../hub"]),
            ("a tag like a version", none, &["tag", "aws/ec2#1.0.0", "1.2.3", "--to", "../hub"]),
            ("a tag with a space", none, &["tag", "aws/ec2#1.0.0", "a b", "--to", "../hub"]),
            ("a downgrade to nothing", none, &["downgrade", "aws/ec2"]),
            ("a pin of what nothing requires", none, &["pin", "nope"]),
            ("a registry without a URL", none, &["registry", "add", "foo", "bar"]),
            ("a registry of no base", none, &["registry", "add", "my hub/", "./hub"]),
            (
                "an update of nothing",
                |sandbox| fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours"),
                &["update"],
            ),
            ("something that nothing requires", none, &["remove", "nope/x"]),
            (
                "something that nothing requires, where others are",
                manifest!("name: acme/web\ndependencies: [aws/vpc]\n"),
                &["remove", "nope/x"],
            ),
            ("why of what is not there", none, &["why", "nope/x"]),
            ("a package that is not in the workspace", none, &["add", "aws/ec2", "-p", "acme/api"]),
            (
                "a name that cannot be one",
                |sandbox| fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours"),
                &["init", "bad name!"],
            ),
            (
                "a name with another tool's version",
                |sandbox| fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours"),
                &["init", "acme/web@1.0"],
            ),
            (
                "a name with a protocol",
                |sandbox| fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours"),
                &["init", "https://hub.acme.example/web"],
            ),
            ("a port that cannot be one", none, &["hub", "serve", ".", "--listen", "80800"]),
            ("an unknown command", none, &["gte"]),
            ("an unknown flag", none, &["get", "--lock"]),
        ],
    );
}

#[test]
fn what_cannot_be_reached_is_explained() {
    let nowhere: fn(&mut Sandbox) = |sandbox| {
        fs::remove_file(sandbox.path("home/.mu/config.yaml")).expect("is ours");
        sandbox.set("HTTPS_PROXY", "http://127.0.0.1:1");
    };
    check(
        "network",
        &[
            ("a server that is not there", |_| {}, &["add", "http://127.0.0.1:1/aws/ec2"]),
            ("a proxy that is not there, and no registry", nowhere, &["add", "aws/ec2"]),
            ("a search, and no registry", nowhere, &["search", "ec2"]),
            ("a package of one segment, and no registry", nowhere, &["info", "ec2"]),
            ("publishing, and no registry", nowhere, &["publish"]),
            (
                "a search in a hub that is not there",
                |_| {},
                &["search", "ec2", "--registry", "hub.mu.com/=./nope"],
            ),
            ("a check of a hub that is not there", |_| {}, &["hub", "check", "./nope"]),
            ("no network by a flag", nowhere, &["add", "aws/ec2", "--offline"]),
            (
                "no network by a variable",
                |sandbox| {
                    fs::remove_file(sandbox.path("home/.mu/config.yaml")).expect("is ours");
                    sandbox.set("MU_OFFLINE", "1");
                },
                &["add", "aws/ec2"],
            ),
            (
                "a bucket without credentials",
                |sandbox| sandbox.set("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1"),
                &["hub", "check", "s3://acme-packages/hub"],
            ),
            (
                "a page instead of a hub",
                |sandbox| {
                    let page = "<!doctype html><title>Log in</title>";
                    fs::write(sandbox.path("hub/hub.json"), page).expect("can be written");
                },
                &["add", "aws/ec2"],
            ),
            (
                "half a description of a hub",
                |sandbox| {
                    fs::write(sandbox.path("hub/hub.json"), "{\"hub\": ").expect("can be written");
                },
                &["add", "aws/ec2"],
            ),
            (
                "an index line that is cut off",
                |sandbox| published(sandbox, "{\"name\": \"aws/ec2\", \"version\": \"3.0"),
                &["add", "aws/ec2"],
            ),
            (
                "a dependency that nobody can read",
                |sandbox| {
                    let line =
                        r#"{"name": "aws/ec2", "version": "3.0.0", "dependencies": ["aws//vpc"]}"#;
                    published(sandbox, line);
                },
                &["add", "aws/ec2"],
            ),
            (
                "one version twice",
                |sandbox| published(sandbox, r#"{"name": "aws/ec2", "version": "2.0.0"}"#),
                &["add", "aws/ec2"],
            ),
            (
                "an archive that was cut off",
                |sandbox| {
                    let path = sandbox.hub().archive("aws/ec2", "2.0.0");
                    fs::write(path, "short").expect("can be written");
                },
                &["add", "aws/ec2"],
            ),
            (
                "an archive that is not there",
                |sandbox| {
                    fs::remove_file(sandbox.hub().archive("aws/ec2", "2.0.0")).expect("is ours");
                },
                &["add", "aws/ec2"],
            ),
        ],
    );
}

#[test]
fn a_repository_without_commits_says_so() {
    let sandbox = sandbox();
    sandbox.shell("bash", "git init --quiet --bare empty.git");
    let repository = format!("git+file://{}", sandbox.path("work/empty.git").display());
    let run = sandbox.mu(&["add", &repository]).fails();
    run.says(&["has no release", "its repository has no commits"]);
}

/// A cache on a disk of 64 KiB, which needs a separate namespace. If the system allows none, `disk.rs` has
/// its own test.
#[test]
fn a_full_disk_is_explained() {
    let sandbox = sandbox();
    sandbox.asks_for(&["big/data"]);
    sandbox.publish(&[Package::new("big/data", "1.0.0").file("data", &"x".repeat(1 << 20))]);
    let inside = |what: &str| format!("unshare --user --map-root-user --mount sh -c '{what}'");
    let mount = "mkdir -p ../cache && mount -t tmpfs -o size=64k tiny ../cache";
    if sandbox.shell("bash", &inside(mount)).status != 0 {
        return;
    }
    let run = sandbox.shell("bash", &inside(&format!("{mount} && mu get"))).fails();
    run.says(&[
        "cannot fetch `big/data 1.0.0`",
        "caused by: No space left on device",
        "hint: free some space and run the command again",
        "`mu cache prune` removes what no workspace uses from the cache, and MU_CACHE_DIR names another",
    ]);
    // What was fetched does not help where something else is written.
    let mount = "mkdir -p .mu/packs && mount -t tmpfs -o size=64k tiny .mu/packs";
    let run = sandbox.shell("bash", &inside(&format!("{mount} && mu get"))).fails();
    run.says(&["hint: free some space on the disk of `", ", and run the command again"])
        .does_not_say(&["fetched completely", "mu cache prune"]);
}

#[test]
fn a_version_that_nobody_can_read_can_be_left_out() {
    let sandbox = sandbox();
    published(&sandbox, r#"{"name": "aws/ec2", "version": "3.0.0", "dependencies": ["aws//vpc"]}"#);
    let setting = r#"exclude: ["aws/ec2#3.0.0"]"#;
    sandbox.mu(&["add", "aws/ec2"]).fails().says(&[setting]);
    sandbox.write(".mu/workspace.yaml", setting);
    sandbox.mu(&["add", "aws/ec2"]).ok().says(&["+ aws/ec2 2.0.0"]);
}

#[test]
fn text_that_needs_quotes_is_shown_with_them() {
    let sandbox = Sandbox::new();
    for (line, quoted) in [
        ("dependencies:\n  x/a: >=1 <2", "x/a: \">=1 <2\""),
        ("dependencies:\n  x/a: *", "x/a: \"*\""),
        ("dependencies:\n  x/a: @stable # why", "x/a: \"@stable\""),
        ("dependencies:\n  - @acme/x", "- \"@acme/x\""),
        ("description: a: b", "description: \"a: b\""),
        ("description: %5 \"off\"", "description: '%5 \"off\"'"),
    ] {
        sandbox.write("Mu.yaml", &format!("name: x/p\n{line}\n"));
        let help = format!("put quotes around the text: `{quoted}`");
        sandbox.mu(&["get"]).fails().says(&["this is not YAML", &help]);
    }
    // Brackets are not a text.
    sandbox.write("Mu.yaml", "name: x/p\ndependencies: {x/a: *}\n");
    sandbox.mu(&["get"]).fails().does_not_say(&["put quotes"]);
}

#[test]
fn a_version_after_its_package_is_no_package() {
    let sandbox = Sandbox::with_dependencies(&[]);
    for (version, whole) in [("1.0.0", "`x/a#1.0.0`"), ("^1.0", "'x/a#^1.0'")] {
        for command in ["add", "get"] {
            let run = sandbox.mu(&[command, "x/a", version]);
            assert_eq!(run.status, 2, "{}", run.shown());
            run.says(&[&format!("`{version}` is a version, and no package"), "write `", whole]);
        }
    }
}

#[test]
fn the_folder_of_a_hub_that_is_not_there_is_named() {
    let sandbox = Sandbox::with_dependencies(&["aws/vpc"]);
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    fs::rename(sandbox.path("hub"), sandbox.path("elsewhere")).expect("can be moved");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    for command in [&["get"][..], &["info", "aws/log"], &["versions", "aws/log"]] {
        let run = sandbox.mu(command).fails();
        run.says(&["is in the folder", "which is not there"]).does_not_say(&["mu hub check"]);
    }
}

#[test]
fn an_override_to_a_version_that_is_not_there_is_named() {
    let sandbox = Sandbox::with_dependencies(&["aws/vpc#^1"]);
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0"), Package::new("aws/vpc", "2.0.0")]);
    sandbox.write(".mu/workspace.yaml", "overrides: {aws/vpc: aws/vpc#9.9.9}\n");
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["no version of aws/vpc is 9.9.9", "overrid"]).does_not_say(&["is ^1"]);
}

#[test]
fn what_leaves_a_frozen_lock_is_not_needed_by_who_let_it_go() {
    let sandbox = Sandbox::with_dependencies(&["aws/vpc"]);
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["remove", "--frozen", "aws/vpc"]).ok().does_not_say(&["stays, because"]);
}

#[test]
fn what_is_typed_at_the_wrong_place_is_shown_without_its_secrets() {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: acme/web\n");
    for url in [
        "https://ada:hunter2@h.example/x",
        "https://h.example/x?token=hunter2",
        "https://h.example/x.tgz?X-Amz-Signature=hunter2",
        "oci://ada:hunter2@h.example/x",
    ] {
        for command in [
            &["get"][..],
            &["add"],
            &["info"],
            &["outdated"],
            &["import"],
            &["config", "set", "base"],
            &["trust", "add", "x"],
            &["pack"],
            &["sbom"],
            &["env"],
            &["schema"],
            &["nothing"],
            &["--only"],
            &["get", "-C"],
            &["publish", "--to"],
            &["hub", "check"],
        ] {
            for begin in [&[][..], &["-v"], &["--json"]] {
                let run = sandbox.mu(&[begin, command, &[url]].concat());
                let shown = format!("{}{}", run.stdout, run.stderr);
                assert!(!shown.contains("hunter2"), "{command:?} {url}: {shown}");
            }
        }
    }
}
