//! Tests that are specific to ssh, `git daemon` and local repositories.

use std::fs;

use mu_provider::{ErrorKind, Listing, Provider as _};

use crate::support::{Daemon, Origin, World, fake_ssh, git, local, set, told, written};

fn with_ssh(program: &str) -> World {
    World::with(|options| {
        set(options, "GIT_SSH_COMMAND", program);
        set(options, "GIT_SSH_VARIANT", "ssh");
    })
}

#[test]
fn one_ssh_connection_lists_and_fetches() {
    let origin = Origin::new("a/r.git");
    origin.release("v1.0.0");
    origin.release("v1.1.0");
    let (program, log) = fake_ssh(origin.root(), origin.root());
    let world = with_ssh(&program);
    let location = written("ssh://git@example.com:2222/", "a/r.git");
    for version in ["1.0.0", "1.1.0"] {
        let release = world.release(&location, version);
        world.fetch(&location, &release).expect("can be fetched");
    }
    let log = fs::read_to_string(log).expect("was called");
    assert_eq!(
        log,
        "version=2 -o BatchMode=yes -o ServerAliveInterval=30 -o SendEnv=GIT_PROTOCOL -p 2222 -- git@example.com git-upload-pack '/a/r.git'\n"
    );
}

#[test]
fn a_program_may_stand_in_for_ssh() {
    let origin = Origin::new("r.git");
    origin.release("v1.0.0");
    let (program, log) = fake_ssh(origin.root(), origin.root());
    let config = origin.root().join("config");
    let setting = format!("[core]\n\tsshCommand = {program} -i key\n");
    fs::write(&config, setting).expect("can be written");
    for with_setting in [true, false] {
        let world = World::with(|options| {
            let mut set = |name: &str, value: &str| {
                set(options, name, value);
            };
            if with_setting {
                set("GIT_CONFIG_GLOBAL", config.to_str().expect("is UTF-8"));
                set("GIT_SSH", "/nowhere");
            } else {
                set("GIT_SSH", &program);
            }
        });
        assert_eq!(world.list(&written("ssh://example.com/", "r.git")).len(), 2);
    }
    let log = fs::read_to_string(log).expect("was called");
    let calls: Vec<&str> = log.lines().collect();
    assert!(calls[0].starts_with("version=2 -i key -o "), "{log}");
    assert_eq!(calls.len(), 2);
}

#[test]
fn another_url_is_used_where_the_user_says_so() {
    let origin = Origin::new("a/r.git");
    origin.release("v1.0.0");
    let daemon = Daemon::start(origin.root());
    let config = origin.root().join("config");
    let setting = format!("[url \"{}\"]\n\tinsteadOf = https://example.com/\n", daemon.root());
    fs::write(&config, setting).expect("can be written");
    let world = World::with(|options| {
        let config = config.to_str().expect("is UTF-8").to_owned();
        set(options, "GIT_CONFIG_GLOBAL", config);
    });
    let location = written("https://example.com/", "a/r.git");
    let listing = world.provider.list(&location, None, &world.notes).expect("can be listed");
    let Listing::Found(found) = listing else { panic!("is there: {listing:?}") };
    assert_eq!(found.location.root.to_string(), "https://example.com/a/r.git");
    assert_eq!(daemon.connections(), 1);
}

#[test]
fn what_ssh_says_is_told() {
    let world = |script: &str| {
        let world = World::new();
        let program = world.folder.path().join("failing");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("can be written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&program, mode).expect("can be executable");
        let program = program.to_str().expect("is UTF-8").to_owned();
        let provider = world.again(|options| {
            set(options, "GIT_SSH", program);
        });
        World { provider, ..world }
    };
    let location = written("ssh://git@example.com/", "a.git");
    for (script, kind, words) in [
        (
            "echo 'git@example.com: Permission denied (publickey).' >&2; exit 255",
            ErrorKind::Auth,
            "Permission denied",
        ),
        ("echo 'Host key verification failed.' >&2; exit 255", ErrorKind::Auth, "Host key"),
        (
            "echo 'ssh: connect to host example.com port 22: refused' >&2; exit 255",
            ErrorKind::Network,
            "refused",
        ),
        ("echo 'sh: git-upload-pack: not found' >&2; exit 127", ErrorKind::Protocol, "not found"),
        ("echo 'Welcome to our server'", ErrorKind::Protocol, "not Git's protocol"),
    ] {
        let error = world(script).provider.list(&location, None, &mu_provider::Silent);
        let error = error.expect_err(script);
        assert_eq!(error.kind(), kind, "{script}: {error:?}");
        assert!(told(&error).contains(words), "{script}: {}", told(&error));
    }
    let absent = world("echo 'ERROR: Repository not found.' >&2; exit 1");
    let listing =
        absent.provider.list(&location, None, &mu_provider::Silent).expect("is an answer");
    assert!(matches!(listing, Listing::Absent { .. }));
}

#[test]
fn a_host_that_cannot_be_reached_is_given_up_once_for_all_that_is_there() {
    let world = World::new();
    let (program, log) = (world.folder.path().join("refused"), world.folder.path().join("log"));
    let script = format!(
        "#!/bin/sh\necho \"$1\" >> '{}'\necho 'ssh: connect to host $1: Connection refused' >&2\nexit 255\n",
        log.display()
    );
    fs::write(&program, script).expect("can be written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).expect("can be executable");
    let provider = world.again(|options| {
        set(options, "GIT_SSH", program.to_str().expect("is UTF-8"));
    });
    for (host, name) in
        [("dead.example", "a.git"), ("dead.example", "b.git"), ("two.example", "a.git")]
    {
        let location = written(&format!("ssh://git@{host}/"), name);
        let error = provider.list(&location, None, &world.notes).expect_err("is refused");
        assert_eq!(error.kind(), ErrorKind::Network, "{error:?}");
        let text = told(&error);
        assert!(text.contains(name) && text.contains("Connection refused"), "{text}");
    }
    let asked = fs::read_to_string(log).expect("was called");
    assert_eq!(asked, "git@dead.example\ngit@two.example\n");
}

#[test]
fn a_missing_ssh_is_explained() {
    let world = World::with(|options| {
        set(options, "GIT_SSH", "/nowhere/ssh");
    });
    let location = written("ssh://git@example.com/", "a.git");
    let error = world.provider.list(&location, None, &world.notes).expect_err("cannot be run");
    assert!(error.to_string().contains("/nowhere/ssh"), "{error}");
}

#[test]
fn one_connection_to_a_daemon_lists_and_fetches() {
    let origin = Origin::new("r.git");
    origin.release("v1.0.0");
    origin.release("v1.1.0");
    let daemon = Daemon::start(origin.root());
    let world = World::new();
    let location = written(&daemon.root(), "r.git");
    for version in ["1.0.0", "1.1.0"] {
        world.fetch(&location, &world.release(&location, version)).expect("can be fetched");
    }
    assert_eq!(daemon.connections(), 1);
}

#[test]
fn a_bare_repository_of_this_machine_and_a_worktree_are_the_same() {
    let origin = Origin::new("r");
    origin.release("v1.0.0");
    let bare = origin.root().join("bare.git");
    git(origin.root(), &["clone", "--quiet", "--bare", "r", "bare.git"]);
    let worktree = origin.root().join("tree");
    origin.git(&["worktree", "add", "--quiet", worktree.to_str().expect("is UTF-8"), "v1.0.0"]);
    let world = World::new();
    let digests: Vec<_> = [origin.folder(), &bare, &worktree]
        .map(|folder| {
            let location = local(folder);
            let release = world.release(&location, "1.0.0");
            world.fetch(&location, &release).expect("can be fetched").digest()
        })
        .into();
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{digests:?}");
}

#[test]
fn the_environment_of_a_hook_does_no_harm() {
    let origin = Origin::new("r.git");
    origin.release("v1.0.0");
    let world = World::with(|options| {
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE"] {
            set(options, name, "/nowhere");
        }
    });
    assert_eq!(world.list(&local(origin.folder())).len(), 2);
}

#[test]
fn a_bundle_is_the_repository_in_it() {
    let origin = Origin::new("r");
    origin.release("v1.0.0");
    origin.commit(&[("b/Mu.yaml", "name: a/b\n")]);
    origin.git(&["tag", "--annotate", "--message", "second", "v2.0.0"]);
    origin.git(&["branch", "also", "v1.0.0"]);
    origin.git(&["bundle", "create", "--quiet", "../all.bundle", "HEAD", "--branches", "--tags"]);
    let bundle = origin.root().join("all.bundle");
    let world = World::new();
    let (whole, unpacked) = (local(&bundle), local(origin.folder()));
    let said = |location| {
        let mut releases = world.list(location);
        releases.sort_by(|left, right| left.reference.cmp(&right.reference));
        releases
    };
    assert_eq!(said(&whole), said(&unpacked));
    assert!(said(&whole).iter().any(|release| release.tip));
    for version in ["2.0.0", "1.0.0"] {
        let of = |location| {
            let release = world.release(location, version);
            world.fetch(location, &release).expect("can be fetched").digest()
        };
        assert_eq!(of(&whole), of(&unpacked), "{version}");
    }
    let folder = world.release(&local(&bundle.join("b")), "2.0.0");
    assert_eq!(world.paths(&local(&bundle.join("b")), &folder), ["Mu.yaml"]);
}

#[test]
fn a_bundle_that_is_not_whole_is_refused() {
    let origin = Origin::new("r");
    origin.release("v1.0.0");
    origin.release("v1.1.0");
    let make = |name: &str, arguments: &[&str]| {
        let path = origin.root().join(name);
        let mut all = vec!["bundle", "create", "--quiet"];
        all.push(path.to_str().expect("is UTF-8"));
        all.extend(arguments);
        origin.git(&all);
        path
    };
    let partial = make("partial.bundle", &["v1.0.0..main"]);
    let cut = make("cut.bundle", &["--all"]);
    let bytes = fs::read(&cut).expect("can be read");
    fs::write(&cut, &bytes[..bytes.len() - 30]).expect("can be written");
    let damaged = origin.root().join("damaged.bundle");
    fs::write(&damaged, "# v2 git bundle\nnonsense\n\n").expect("can be written");
    for (path, words) in
        [(&partial, "does not contain"), (&cut, "cannot read"), (&damaged, "header is damaged")]
    {
        let world = World::new();
        let error = world.provider.list(&local(path), None, &world.notes).expect_err(words);
        assert!(told(&error).contains(words), "{path:?}: {}", told(&error));
    }
}

#[test]
fn a_repository_on_this_machine_that_lacks_a_file_is_asked_once() {
    let origin = Origin::new("r");
    origin.release("v1.0.0");
    let blob = origin.git(&["rev-parse", "v1.0.0:Mu.yaml"]);
    let (folder, file) = blob.split_at(2);
    let objects = origin.root().join("r").join(".git/objects");
    fs::remove_file(objects.join(folder).join(file)).expect("is loose");
    let (world, location) = (World::new(), local(&origin.root().join("r")));
    let release = world.release(&location, "1.0.0");
    let error = world.fetch(&location, &release).expect_err("a file is not there");
    assert!(told(&error).contains("cannot read the Git repository"), "{}", told(&error));
    assert!(!world.notes.said().contains("once more"), "{}", world.notes.said());
}
