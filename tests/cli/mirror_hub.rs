//! `mu mirror` of a namespace and of a whole hub: the first copy, what it costs to follow the hub, and what ends it early.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use mu_testing::http::{Reply, Seen, TestServer};
use serde_json::{Value, json};

use crate::support::{Azurite, GoogleServer, Hub, Package, Run, S3Server, Sandbox, Served, tree};

/// Packages of the large hub.
const PACKAGES: usize = 1_000;

/// A line of evidence, which need not be true to be copied.
const EVIDENCE: &str = "{\"cosign\":{\"payload\":\"e30=\",\"signature\":\"AAAA\"}}\n";

/// A hub in a folder with its log and catalog.
fn hub(sandbox: &Sandbox, folder: &str, packages: &[Package]) -> Hub {
    let hub = Hub::new(&sandbox.path(folder));
    packages.iter().for_each(|package| drop(hub.publish(package)));
    sandbox.mu(&["hub", "check", &format!("../{folder}"), "--repair"]).ok();
    hub
}

/// A server of the files in a folder, which says with each answer for how long that is fresh.
fn serve(
    folder: &Path,
    more: impl Fn(&Seen, Reply) -> Reply + Send + Sync + 'static,
) -> TestServer {
    let folder = folder.to_owned();
    TestServer::start(move |request, _| {
        let path = request.path.trim_start_matches('/').replace("%2B", "+");
        let reply = match fs::read(folder.join(path)) {
            Ok(bytes) => Reply::ranged(request, &bytes),
            Err(_) => Reply::status(404),
        };
        more(request, reply)
    })
}

fn as_it_is(_: &Seen, reply: Reply) -> Reply {
    reply
}

/// Publishes a version into the hub in a folder, as its owner does.
fn publish(sandbox: &Sandbox, folder: &str, name: &str, version: &str) {
    let place = format!("new/{name}/{version}");
    sandbox.place(&place, &Package::new(name, version).manifest("description: d\nlicense: MIT\n"));
    let file = format!("{place}/.mu/workspace.yaml");
    crate::support::write(sandbox.root(), &file, "");
    let to = sandbox.path(folder).display().to_string();
    sandbox.mu_in(&place, &["publish", "--to", &to]).ok();
}

/// What readers find in a hub: its index, archives and evidence.
fn content(sandbox: &Sandbox, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let parts = ["index", "packs", "signatures"];
    let files =
        parts.iter().filter(|part| sandbox.has(&format!("{folder}/{part}"))).flat_map(|part| {
            // What a write that was killed has left beside its file is no part of the hub.
            let files = tree(&sandbox.path(&format!("{folder}/{part}"))).into_iter();
            let files = files.filter(|(path, _)| !path.contains(".mu-staged-"));
            files.map(move |(path, (_, bytes))| (format!("{part}/{path}"), bytes))
        });
    files.collect()
}

#[track_caller]
fn is_equal(sandbox: &Sandbox, folder: &str, mirror: &str) {
    let (original, copy) = (content(sandbox, folder), content(sandbox, mirror));
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&original), names(&copy));
    for (path, bytes) in &original {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(copy[path] == *bytes, "{path}:\n{}\n{}", shown(bytes), shown(&copy[path]));
    }
}

/// The versions that a reader finds, each of which leads to an archive with its digest.
#[track_caller]
fn whole_versions(sandbox: &Sandbox, mirror: &str) -> BTreeSet<String> {
    let files = content(sandbox, mirror);
    let mut versions = BTreeSet::new();
    for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with("index/")) {
        for line in String::from_utf8_lossy(bytes).lines() {
            let line: Value =
                serde_json::from_str(line).unwrap_or_else(|_| panic!("{path}: {line}"));
            let (name, version) = (line["name"].as_str(), line["version"].as_str());
            let (name, version) = (name.expect("is text"), version.expect("is text"));
            let leaf = name.rsplit('/').next().expect("has a segment");
            let archive = &files[&format!("packs/{name}/{leaf}-{version}.tgz")];
            assert_eq!(line["archive"], format!("sha256:{}", mu_testing::hex(archive)), "{name}");
            versions.insert(format!("{name} {version}"));
        }
    }
    versions
}

/// A mu that follows a hub; it is killed when this is dropped.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn copied(run: &Run) -> Vec<String> {
    let answer = run.json();
    let copied = answer["copied"].as_array().expect("is a list");
    let text = |value: &Value| value.as_str().expect("is text").to_owned();
    copied.iter().map(|one| format!("{} {}", text(&one["name"]), text(&one["version"]))).collect()
}

#[test]
fn a_hub_is_copied_and_then_followed_by_its_log() {
    let sandbox = Sandbox::new();
    let name = |number: usize| format!("ns{}/p{number}", number % 10);
    let packages: Vec<Package> =
        (0..PACKAGES).map(|number| Package::new(&name(number), "1.0.0")).collect();
    hub(&sandbox, "source", &packages);
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    let server = serve(&sandbox.path("source"), as_it_is);
    let from = server.url("");
    let arguments = ["mirror", "--all", "--from", &from, "--to", "../mirror", "--json"];

    // It is killed at three moments, and goes on each time.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut there = BTreeSet::new();
    for _ in 0..3 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut command = sandbox.command(&arguments);
        command.env("MU_TEST_END_AT_CHANGE", (200 + (random >> 33) % 2_500).to_string());
        let run = sandbox.run(&arguments, command);
        assert_eq!(run.status, -1, "{}", run.shown());
        let now = whole_versions(&sandbox, "mirror");
        assert!(
            now.is_superset(&there) && now.len() < PACKAGES,
            "{} after {}",
            now.len(),
            there.len()
        );
        there = now;
    }
    let before = server.requests().len();
    let run = sandbox.mu(&arguments).ok();
    let answer = run.json();
    let (now, present) = (copied(&run), answer["present"].as_u64().expect("is one"));
    let twice: Vec<&String> = now.iter().filter(|version| there.contains(*version)).collect();
    assert!(twice.is_empty(), "{twice:?} were there");
    assert_eq!(now.len() + there.len(), PACKAGES);
    // What was written down as done is not asked for again.
    assert!(present < 200, "{present} of {} were looked at again", there.len());
    let asked = server.requests().len() - before;
    assert!(asked <= 3 * (now.len() + 200) + 5, "{asked} requests");
    is_equal(&sandbox, "source", "mirror");
    sandbox.mu(&["hub", "check", "../mirror"]).ok();

    // Nothing has changed: one question.
    let before = server.requests().len();
    assert!(copied(&sandbox.mu(&arguments).ok()).is_empty());
    assert_eq!(server.requests()[before..], ["GET /hub.json"]);

    // Ten changes.
    for number in 0..4 {
        publish(&sandbox, "source", &name(number), "1.1.0");
    }
    publish(&sandbox, "source", "ns3/new", "1.0.0");
    let reference = |number: usize| format!("{}#1.0.0", name(number));
    let to = ["--to", "../source"];
    let change = |arguments: &[&str]| sandbox.mu(&[arguments, &to].concat()).ok();
    change(&["yank", &reference(10), "--reason", "bad"]);
    change(&["yank", &reference(11)]);
    change(&["deprecate", &reference(12), "--reason", "old"]);
    change(&["tag", &reference(13), "lts"]);
    change(&["yank", &reference(11), "--undo"]);
    let before = server.requests().len();
    let run = sandbox.mu(&arguments).ok();
    let asked = server.requests().len() - before;
    assert_eq!(copied(&run).len(), 5, "{}", run.shown());
    assert_eq!(run.json()["changed"].as_array().map(Vec::len), Some(3), "{}", run.shown());
    // `hub.json`, the log, nine index files, and for each new version its archive and what vouches for it.
    assert_eq!(asked, 1 + 1 + 9 + 2 * 5, "{:?}", &server.requests()[before..]);
    is_equal(&sandbox, "source", "mirror");
    sandbox.mu(&["hub", "check", "../mirror"]).ok();

    // A namespace, from the same hub; the package of that name comes first, if there is one.
    sandbox.hub_is_at(&from);
    sandbox.mu(&["hub", "init", "../part"]).ok();
    let run = sandbox.mu(&["mirror", "ns3", "--to", "../part", "--json"]).ok();
    assert_eq!(copied(&run).len(), PACKAGES / 10 + 2, "{}", run.shown());
    assert!(copied(&run).iter().all(|one| one.starts_with("ns3/")), "{}", run.shown());
    sandbox.mu(&["hub", "check", "../part"]).ok();
}

#[test]
fn what_cannot_be_copied_is_named_and_tried_again() {
    let sandbox = Sandbox::new();
    let source = hub(
        &sandbox,
        "source",
        &[
            Package::new("acme/a", "1.0.0"),
            Package::new("acme/bad", "1.0.0"),
            Package::new("acme/bad", "1.1.0"),
            Package::new("acme/c", "1.0.0"),
            Package::new("other/d", "1.0.0"),
        ],
    );
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    source.flip(&source.archive("acme/bad", "1.0.0"));
    let arguments = ["mirror", "acme", "--from", "../source", "--to", "../mirror"];
    let run = sandbox.mu(&arguments);
    assert_eq!(run.status, 1, "{}", run.shown());
    let run = run.says(&["warning: acme/bad 1.0.0 is not copied: ", "3 versions copied"]);
    run.says(&["1 package or version not copied", "the next run tries these again"]);
    let error = sandbox.mu(&[&arguments[..], &["--json"]].concat()).fails_with("integrity");
    let failed = error["details"]["failed"].as_array().expect("is a list");
    assert_eq!((failed.len(), &failed[0]["version"]), (1, &json!("1.0.0")));
    assert!(!sandbox.has("mirror/index/other/d.jsonl"));
    // Another archive under a version that is there is no copy of it.
    fs::remove_file(source.index("acme/c")).expect("is ours");
    source.publish(&Package::new("acme/c", "1.0.0").file("more", "x"));
    source.flip(&source.archive("acme/bad", "1.0.0"));
    sandbox.mu(&["hub", "check", "../source", "--repair"]).ok();
    let run = sandbox.mu(&arguments);
    assert_eq!(run.status, 1, "{}", run.shown());
    let run = run.says(&["acme/c 1.0.0 is not copied: the mirror has another archive"]);
    run.says(&["+ acme/bad 1.0.0"]);
    sandbox.mu(&["hub", "check", "../mirror"]).ok();
}

#[test]
fn a_hub_that_was_restored_from_a_backup_is_compared_anew() {
    let sandbox = Sandbox::new();
    hub(&sandbox, "source", &[Package::new("acme/a", "1.0.0")]);
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    let arguments = ["mirror", "--all", "--from", "../source", "--to", "../mirror", "--json"];
    sandbox.mu(&arguments).ok();
    let backup = sandbox.path("backup");
    let copy = |from: &Path, to: &Path| {
        let done = std::process::Command::new("cp").arg("-r").args([from, to]).status();
        assert!(done.expect("there is cp").success());
    };
    copy(&sandbox.path("source"), &backup);
    publish(&sandbox, "source", "acme/lost", "1.0.0");
    assert_eq!(copied(&sandbox.mu(&arguments).ok()), ["acme/lost 1.0.0"]);
    fs::remove_dir_all(sandbox.path("source")).expect("is ours");
    copy(&backup, &sandbox.path("source"));
    // The same numbers, for other changes.
    publish(&sandbox, "source", "acme/found", "1.0.0");
    publish(&sandbox, "source", "acme/last", "1.0.0");
    let both = ["acme/found 1.0.0", "acme/last 1.0.0"];
    assert_eq!(copied(&sandbox.mu(&arguments).ok()), both);
    sandbox.mu(&["hub", "check", "../mirror"]).ok();
}

#[test]
fn a_server_is_mirrored_into_a_server_with_what_vouches_for_versions() {
    let mut sandbox = Sandbox::new();
    hub(
        &sandbox,
        "source",
        &[
            Package::new("acme/a", "1.0.0"),
            Package::new("acme/b", "1.0.0"),
            Package::new("lib/c", "2.0.0"),
        ],
    );
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    let add = |sandbox: &Sandbox, place: &str| {
        let run = sandbox.mu(&["hub", "token", "add", place, "m", "--namespace", "*"]).ok();
        run.stdout.trim().to_owned()
    };
    let tokens = [add(&sandbox, "../source"), add(&sandbox, "../mirror")];
    let source = Served::start(&sandbox, "../source", &[]);
    let mirror = Served::start(&sandbox, "../mirror", &[]);
    sandbox.set_token(&mirror.address.to_string(), &tokens[1]);
    let vouch = |package: &str| {
        let headers = [
            &format!("authorization: Bearer {}", tokens[0]),
            "content-type: application/vnd.mu.evidence.v1+jsonl",
        ];
        let path = format!("/api/v1/packages/{package}");
        source.ask("PUT", &path, &headers, EVIDENCE.as_bytes()).is(201);
    };
    vouch("acme/a/1.0.0");
    let arguments = ["mirror", "--all", "--from", &source.url(), "--to", &mirror.url(), "--json"];
    assert_eq!(copied(&sandbox.mu(&arguments).ok()).len(), 3);
    // A server says when a version was published there, and by whom, and nothing else differs.
    let undated = |folder: &str| {
        let files = content(&sandbox, folder).into_iter().map(|(path, bytes)| {
            let dated = path.starts_with("index/");
            let without = |line: &str| {
                let mut line: Value = serde_json::from_str(line).expect("is JSON");
                let keys = line.as_object_mut().expect("is an object");
                keys.retain(|key, _| !["published", "publishedBy"].contains(&key.as_str()));
                keys.sort_keys();
                line
            };
            let lines =
                String::from_utf8_lossy(&bytes).lines().filter(|_| dated).map(without).collect();
            (path, (lines, if dated { Vec::new() } else { bytes }))
        });
        files.collect::<BTreeMap<String, (Vec<Value>, Vec<u8>)>>()
    };
    assert_eq!(undated("source"), undated("mirror"));
    // What comes later to a version that is there is in the log, too.
    vouch("lib/c/2.0.0");
    sandbox.mu(&["yank", "acme/b#1.0.0", "--reason", "bad", "--to", "../source"]).ok();
    let run = sandbox.mu(&arguments).ok();
    assert_eq!((copied(&run).len(), &run.json()["present"]), (0, &json!(2)), "{}", run.shown());
    assert_eq!(undated("source"), undated("mirror"));
    assert_eq!(undated("source").keys().filter(|path| path.starts_with("signatures/")).count(), 2);
    // The files of a hub and its server tell the same.
    sandbox.mu(&["hub", "init", "../files"]).ok();
    sandbox.mu(&["mirror", "--all", "--from", &mirror.url(), "--to", "../files"]).ok();
    assert_eq!(undated("mirror"), undated("files"));
    for folder in ["../source", "../mirror", "../files"] {
        sandbox.mu(&["hub", "check", folder]).ok().does_not_say(&["leftover"]);
    }
}

#[test]
fn a_hub_is_followed_until_somebody_asks_to_stop() {
    let sandbox = Sandbox::new();
    hub(&sandbox, "source", &[Package::new("acme/a", "1.0.0")]);
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    let (sender, asked) = channel();
    let sender = Mutex::new(sender);
    // The hub says that its answers are fresh for a second.
    let server = serve(&sandbox.path("source"), move |request, reply| {
        let _ = sender.lock().expect("nobody panics").send(request.path.clone());
        reply.header("cache-control", "max-age=1")
    });
    let wait = |asked: &Receiver<String>, path: &str| {
        while asked.recv().expect("mu asks") != path {}
    };
    let arguments = ["mirror", "--all", "--from", &server.url(""), "--to", "../mirror", "--follow"];
    let mut command = sandbox.command(&arguments);
    let mut following = Following(command.stdout(Stdio::null()).spawn().expect("mu runs"));
    // When it asks again, it has copied what there was.
    wait(&asked, "/hub.json");
    wait(&asked, "/hub.json");
    assert!(sandbox.has("mirror/index/acme/a.jsonl"));
    publish(&sandbox, "source", "acme/b", "1.0.0");
    wait(&asked, "/packs/acme/b/b-1.0.0.tgz");
    wait(&asked, "/hub.json");
    is_equal(&sandbox, "source", "mirror");
    let id = following.0.id().to_string();
    let ended = std::process::Command::new("kill").args(["-TERM", &id]).status();
    assert!(ended.expect("there is kill").success());
    assert_eq!(following.0.wait().expect("is a child").code(), Some(0));
    sandbox.mu(&["hub", "check", "../mirror"]).ok().does_not_say(&["leftover"]);
}

/// What is in a mirror is compared by copying it back into a folder.
#[test]
fn buckets_are_mirrors_of_a_namespace_and_of_a_whole_hub() {
    let (s3, azurite, google) = (S3Server::start(), Azurite::start(), GoogleServer::start());
    let mut sandbox = Sandbox::new();
    sandbox.set_all(s3.variables());
    let variables = azurite.variables().into_iter().chain(google.variables());
    variables.for_each(|(name, value)| sandbox.set(name, value));
    for (number, bucket) in
        ["s3://packages/all", "az://packages/all", "gs://packages/all"].into_iter().enumerate()
    {
        let source = format!("source-{number}");
        let [a, b] = ["1.0.0", "1.1.0"].map(|version| Package::new("acme/a", version));
        hub(
            &sandbox,
            &source,
            &[a, b, Package::new("acme/deep/c", "1.0.0"), Package::new("other/d", "1.0.0")],
        );
        let signatures = format!("{source}/signatures/acme/a/a-1.0.0.jsonl");
        crate::support::write(sandbox.root(), &signatures, EVIDENCE);
        sandbox.mu(&["hub", "check", &format!("../{source}"), "--repair"]).ok();
        let server = serve(&sandbox.path(&source), as_it_is);
        let from = server.url("");
        // All, then only what has changed, and nothing twice.
        sandbox.mu(&["hub", "init", bucket]).ok();
        let all = ["mirror", "--all", "--from", &from, "--to", bucket, "--json"];
        assert_eq!(copied(&sandbox.mu(&all).ok()).len(), 4, "{bucket}");
        let before = server.requests().len();
        assert!(copied(&sandbox.mu(&all).ok()).is_empty(), "{bucket}");
        assert_eq!(server.requests()[before..], ["GET /hub.json"], "{bucket}");
        publish(&sandbox, &source, "other/d", "1.1.0");
        let folder = format!("../{source}");
        sandbox.mu(&["yank", "acme/a#1.0.0", "--reason", "bad", "--to", &folder]).ok();
        assert_eq!(copied(&sandbox.mu(&all).ok()), ["other/d 1.1.0"], "{bucket}");
        sandbox.mu(&["hub", "check", bucket]).ok().says(&["3 packages with 5 versions"]);
        // Another machine begins with what the bucket says of its own state.
        fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
        let before = server.requests().len();
        assert!(copied(&sandbox.mu(&all).ok()).is_empty(), "{bucket}");
        assert_eq!(server.requests()[before..], ["GET /hub.json"], "{bucket}");
        // A namespace, into another place of the same bucket.
        let part = bucket.replace("/all", "/part");
        sandbox.mu(&["hub", "init", &part]).ok();
        let namespace = ["mirror", "acme/", "--from", &from, "--to", &part, "--json"];
        let expected = ["acme/a 1.0.0", "acme/a 1.1.0", "acme/deep/c 1.0.0"];
        assert_eq!(copied(&sandbox.mu(&namespace).ok()), expected, "{bucket}");
        // It comes back as it was.
        let back = format!("back-{number}");
        sandbox.mu(&["hub", "init", &format!("../{back}")]).ok();
        sandbox.mu(&["mirror", "--all", "--from", bucket, "--to", &format!("../{back}")]).ok();
        is_equal(&sandbox, &source, &back);
    }
}

#[test]
fn a_bucket_follows_a_hub() {
    let s3 = S3Server::start();
    let mut sandbox = Sandbox::new();
    sandbox.set_all(s3.variables());
    hub(&sandbox, "source", &[Package::new("acme/a", "1.0.0")]);
    let bucket = "s3://packages/hub";
    sandbox.mu(&["hub", "init", bucket]).ok();
    let (sender, asked) = channel();
    let sender = Mutex::new(sender);
    let server = serve(&sandbox.path("source"), move |request, reply| {
        let _ = sender.lock().expect("nobody panics").send(request.path.clone());
        reply.header("cache-control", "max-age=1")
    });
    let wait = |path: &str| while asked.recv().expect("mu asks") != path {};
    let arguments = ["mirror", "--all", "--from", &server.url(""), "--to", bucket, "--follow"];
    let mut command = sandbox.command(&arguments);
    let mut following = Following(command.stdout(Stdio::null()).spawn().expect("mu runs"));
    wait("/hub.json");
    wait("/hub.json");
    publish(&sandbox, "source", "acme/b", "1.0.0");
    wait("/packs/acme/b/b-1.0.0.tgz");
    wait("/hub.json");
    let id = following.0.id().to_string();
    let ended = std::process::Command::new("kill").args(["-TERM", &id]).status();
    assert!(ended.expect("there is kill").success());
    assert_eq!(following.0.wait().expect("is a child").code(), Some(0));
    sandbox.mu(&["hub", "check", bucket]).ok().says(&["2 packages with 2 versions"]);
    sandbox.mu(&["hub", "init", "../back"]).ok();
    sandbox.mu(&["mirror", "--all", "--from", bucket, "--to", "../back"]).ok();
    is_equal(&sandbox, "source", "back");
}

#[test]
fn a_wrong_command_says_what_to_write() {
    let sandbox = Sandbox::new();
    hub(&sandbox, "source", &[Package::new("acme/a", "1.0.0")]);
    sandbox.mu(&["hub", "init", "../mirror"]).ok();
    let fails_with = |status: i32, arguments: &[&str], says: &[&str]| {
        let run = sandbox.mu(&[&["mirror", "--to", "../mirror"], arguments].concat()).says(says);
        assert_eq!(run.status, status, "{}", run.shown());
    };
    fails_with(1, &["--all", "--from", "../nowhere"], &["nowhere"]);
    fails_with(2, &["../x", "--from", "../source"], &["not the name of a package or a namespace"]);
    fails_with(2, &["nobody", "--from", "../source", "--all"], &["--all"]);
    sandbox.hub_is_at(&format!("file://{}/", sandbox.path("source").display()));
    fails_with(2, &["acme/", "--as", "other"], &["`--as` renames single packages"]);
    fails_with(1, &["nothing"], &["nothing"]);
    fails_with(1, &["nothing/"], &["has no package `nothing`, and none below it"]);
    let misspelt = ["has no package `acm`, and none below it", "did you mean `acme`?"];
    fails_with(1, &["acm", "--from", "../source"], &misspelt);
    fs::remove_file(sandbox.path("source/catalog.jsonl")).expect("is ours");
    fails_with(1, &["--all"], &["does not list what it has", "mu hub check --repair"]);
    // A dry run says what would be copied, and leaves nothing.
    sandbox.mu(&["hub", "check", "../source", "--repair"]).ok();
    let run = sandbox.mu(&["mirror", "--all", "--to", "../mirror", "--dry-run"]).ok();
    run.says(&["1 version would be copied"]);
    assert!(!sandbox.has("mirror/index/acme") && !sandbox.has("mirror/private"));
}
