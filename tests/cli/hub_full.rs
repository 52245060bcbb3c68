//! A hub whose disk is full: nothing half is left, the hub goes on, and everybody learns what to do.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::support::{Package, Sandbox, Served};

/// The archive of version 1.0.0 of a package, of at most `bytes` bytes, and hardly less.
fn archive(name: &str, bytes: usize) -> Vec<u8> {
    let manifest = format!("name: {name}\nversion: 1.0.0\n").into_bytes();
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..bytes)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    let packed = |length: usize| {
        let files = [("Mu.yaml", manifest.clone()), ("data", noise[..length].to_vec())];
        mu_testing::tar_gz(files.map(|(path, content)| (path.to_owned(), ('f', content))))
    };
    let mut length = bytes;
    loop {
        let archive = packed(length);
        if archive.len() <= bytes {
            return archive;
        }
        length = length.checked_sub(archive.len() - bytes).expect("a package has more bytes");
    }
}

/// The value of a counter.
fn counted(served: &Served, name: &str) -> usize {
    let metrics = served.ask("GET", "/metrics", &[], &[]).is(200).text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("mu_hub_{name} ")));
    line.unwrap_or_else(|| panic!("{name} is not in\n{metrics}")).parse().expect("is a number")
}

/// Whether readers see the package.
fn is_there(served: &Served, name: &str) -> bool {
    served.ask("GET", &format!("/index/{name}.jsonl"), &[], &[]).status == 200
}

/// A hub on a disk of this size, in a namespace of its own; a token for it, and its folder as it is seen from here. `None` if the
/// system allows no namespaces.
fn on_a_small_disk(sandbox: &Sandbox, size: &str, more: &str) -> Option<(Served, String, PathBuf)> {
    let mount = format!("mkdir ../small && mount -t tmpfs -o size={size} small ../small");
    let inside = format!("unshare --user --map-root-user --mount sh -c '{mount}; rmdir ../small'");
    if sandbox.shell("bash", &format!("{inside}; rmdir ../small")).status != 0 {
        return None;
    }
    let script = format!(
        "{mount} && $0 hub init ../small/hub > ../said \
         && $0 hub token add ../small/hub ada --namespace acme > ../token 2>> ../said \
         && exec $0 hub serve ../small/hub --listen 127.0.0.1:0 {more}"
    );
    let arguments = ["--user", "--map-root-user", "--mount", "sh", "-c", &script];
    let mut command = sandbox.command_of("unshare", &arguments);
    command.arg(sandbox.command(&[]).get_program());
    let served = Served::try_start(command).unwrap_or_else(|said| panic!("does not start: {said}"));
    let token = fs::read_to_string(sandbox.path("token")).expect("was written").trim().to_owned();
    let seen_from_here = format!("/proc/{}/root", served.id());
    let folder = PathBuf::from(seen_from_here + sandbox.path("small/hub").to_str()?);
    Some((served, token, folder))
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing_half_and_the_hub_goes_on() {
    const PAGE: usize = 4 << 10;
    let sandbox = Sandbox::new();
    let Some((served, token, folder)) = on_a_small_disk(&sandbox, "256k", "--keep-free 0") else {
        return;
    };
    let ballast = folder.join("ballast");
    fs::write(&ballast, [0; 8 * PAGE]).expect("there is room");
    served.put(&token, "acme/web/1.0.0", &archive("acme/web", 4_000)).is(201);
    assert_eq!(counted(&served, "disk_size_bytes"), 256 << 10);

    // More than there is room for is refused before anything is written.
    let free = || counted(&served, "disk_free_bytes");
    let refused = served.put(&token, "acme/big/1.0.0", &archive("acme/big", free() + 100)).is(507);
    let detail = refused.json()["detail"].as_str().unwrap_or_default().to_owned();
    insta::assert_snapshot!(detail, @"there is no room left on the disk of the hub; its operator has to make some");

    // Archives that leave the disk more and more room for all that follows from them. With none, the package is not there, and
    // nothing of it. Once its index file is written, it is there, and the next change writes what follows from it.
    let mut without = 0;
    for spare in 0.. {
        let (name, before) = (format!("acme/p{spare}"), free());
        let bytes = archive(&name, before - spare * PAGE);
        served.put(&token, &format!("{name}/1.0.0"), &bytes).is(507);
        assert!(is_there(&served, "acme/web"));
        if !is_there(&served, &name) {
            assert_eq!(free(), before, "{name} left something");
            without += 1;
            continue;
        }
        fs::remove_file(&ballast).expect("is there");
        served.put(&token, &format!("{name}/1.0.0"), &bytes).is(200);
        break;
    }
    assert!(without > 0);
    served.put(&token, "acme/last/1.0.0", &archive("acme/last", 4_000)).is(201);
    let place = folder.display().to_string();
    let checked = sandbox.mu(&["hub", "check", &place, "--json"]).ok().json();
    assert_eq!((&checked["packages"], &checked["findings"]), (&json!(3), &json!([])));
}

#[cfg(target_os = "linux")]
#[test]
fn a_small_disk_takes_what_it_has_room_for() {
    let sandbox = Sandbox::new();
    let Some((served, token, _)) = on_a_small_disk(&sandbox, "3m", "") else { return };
    served.put(&token, "acme/web/1.0.0", &archive("acme/web", 4_000)).is(201);
    let all = counted(&served, "disk_free_bytes");
    served.put(&token, "acme/big/1.0.0", &archive("acme/big", all - (100 << 10))).is(507);
    served.patch(&token, "acme/web/1.0.0", r#"{"yanked": "leaks"}"#).is(200);
}

#[test]
fn uploads_leave_room_for_other_changes() {
    let mut sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let add = ["hub", "token", "add", "../srv", "ada", "--namespace", "acme"];
    let token = sandbox.mu(&add).ok().stdout.trim().to_owned();
    let bytes = {
        sandbox.hub().publish(&Package::new("acme/web", "1.0.0"));
        fs::read(sandbox.hub().archive("acme/web", "1.0.0")).expect("was published")
    };
    let served = Served::start(&sandbox, "../srv", &[]);
    served.put(&token, "acme/web/1.0.0", &bytes).is(201);
    // No disk has as much.
    let served = Served::start(&sandbox, "../srv", &["--keep-free", "1000000000"]);
    served.put(&token, "acme/site/1.0.0", &archive("acme/site", 4_000)).is(507);
    served.patch(&token, "acme/web/1.0.0", r#"{"yanked": "leaks"}"#).is(200);
    assert!(!is_there(&served, "acme/site"));

    sandbox.set_token(&served.address.to_string(), &token);
    sandbox.write("Mu.yaml", "name: acme/site\nversion: 1.0.0\n");
    let run = sandbox.mu(&["publish", "--to", &served.url()]).fails().says(&[
        "refused acme/site 1.0.0: there is no room left on the disk of the hub; its operator has to make some",
        "hint: run the command again when there is room: nothing has to be undone",
    ]);
    run.does_not_say(&["gave up after", "was fetched completely"]);
    sandbox.mu(&["publish", "--to", &served.url(), "--json"]).fails_with("io");
    let (_, log) = served.end();
    assert!(log.iter().any(|line| line.contains("bytes of the disk are free")), "{log:?}");
}
