//! Archives by URL: one file on a web server as a package.

use std::fs;
use std::sync::{Arc, Mutex};

use mu_testing::http::{Reply, Seen, TestServer};
use mu_testing::oci::Behaviour;
use mu_testing::{Chart, Nginx, OciServer, Package, ZipEntry, gzip, hex, tar, tar_gz, write, zip};
use serde_json::json;

use super::support::Sandbox;

/// The files of `acme/tool` in a folder, as a release on a web page has them.
fn tool(version: &str, more: &str) -> Vec<u8> {
    let manifest = format!("name: acme/tool\nversion: {version}\n{more}");
    tar_gz([
        (format!("tool-{version}/Mu.yaml"), ('f', manifest.into_bytes())),
        (format!("tool-{version}/bin/tool"), ('x', b"#!/bin/sh\n".to_vec())),
    ])
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(bytes))
}

/// A server with one archive, which can be exchanged; and a sandbox.
fn offered(archive: Vec<u8>) -> (Sandbox, TestServer, Arc<Mutex<Vec<u8>>>) {
    let content = Arc::new(Mutex::new(archive));
    let held = Arc::clone(&content);
    let server = TestServer::start(move |seen, _| {
        let content = held.lock().expect("nobody panics").clone();
        let etag = format!("\"{}\"", hex(&content));
        if seen.header("if-none-match") == Some(&etag) {
            return Reply::status(304);
        }
        match seen.path.as_str() {
            "/dl/tool-1.2.tgz" => Reply::ranged(seen, &content).header("etag", etag),
            _ => Reply::status(404),
        }
    });
    let mut sandbox = Sandbox::new();
    sandbox.replace(&server.host(), "[HOST]");
    (sandbox, server, content)
}

fn without_packs_and_cache(sandbox: &Sandbox) {
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
}

#[test]
fn an_archive_is_added_locked_and_got_from_the_lock() {
    let archive = tool("1.2.0", "description: A tool\n");
    let (mut sandbox, server, _) = offered(archive.clone());
    let url = server.url("dl/tool-1.2.tgz");
    let id = format!("{}/dl/tool-1.2.tgz", server.host());
    sandbox.replace(&digest(&archive), "[DIGEST]");
    sandbox.asks_for(&[]);
    sandbox.mu(&["add", &url]).ok().says(&[
        "+ [HOST]/dl/tool-1.2.tgz 1.2.0",
        "added http://[HOST]/dl/tool-1.2.tgz to acme/web (Mu.yaml)",
    ]);
    assert_eq!(server.requests(), ["GET /dl/tool-1.2.tgz"]);
    let pack = format!("work/.mu/packs/{}/dl/tool-1.2.tgz", server.host().replace(':', "+"));
    assert!(sandbox.has(&format!("{pack}/bin/tool")) && sandbox.has(&format!("{pack}/Mu.yaml")));
    let locked = sandbox.lock()["packages"][0].clone();
    assert_eq!(locked["source"], format!("url+http://{}/dl/", server.host()));
    assert_eq!(locked["archive"], digest(&archive));
    assert!(locked["commit"].is_null() && locked["ref"].is_null(), "{locked}");
    without_packs_and_cache(&sandbox);
    let before = server.requests().len();
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(server.requests().len(), before + 1);
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["why", &id]).ok().says(&["latest by acme/web"]);
    sandbox.mu(&["info", &url]).ok().says(&["A tool", "1.2.0"]);
    // From the store, without the network.
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--offline"]).ok();
    without_packs_and_cache(&sandbox);
    let run = sandbox.mu(&["get", "--offline", "--json"]).fails();
    run.fails_with("offline");
    run.says(&["[HOST]/dl/tool-1.2.tgz"]);
    sandbox.mu(&["get"]).ok();
    let before = (sandbox.read("Mu.yaml"), sandbox.read("Mu.lock"));
    sandbox.mu(&["pin"]).ok();
    assert!(sandbox.read("Mu.yaml").contains(&format!("{url}#{}", digest(&archive))));
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    sandbox.mu(&["unpin"]).ok();
    assert_eq!((sandbox.read("Mu.yaml"), sandbox.read("Mu.lock")), before);
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
}

#[test]
fn only_an_update_takes_another_archive_at_the_same_url() {
    let (mut sandbox, server, content) = offered(tool("1.2.0", ""));
    let (first, second) = (tool("1.2.0", ""), tool("1.2.0", "description: Another\n"));
    sandbox.replace(&digest(&first)[..19], "[FIRST]");
    sandbox.replace(&digest(&second)[..19], "[SECOND]");
    let url = server.url("dl/tool-1.2.tgz");
    sandbox.publish(&[Package::new("web/log", "1.0.0"), Package::new("web/log", "1.1.0")]);
    sandbox.asks_for(&[&url, "web/log#1.0.0"]);
    sandbox.mu(&["get"]).ok();
    let locked = sandbox.lock();
    second.clone_into(&mut content.lock().expect("nobody panics"));
    sandbox.mu(&["get"]).ok().says(&["up to date"]);
    sandbox.asks_for(&[&url, "web/log#^1"]);
    sandbox.mu(&["update", "web/log"]).ok().says(&["1.0.0 → 1.1.0"]).does_not_say(&["tool"]);
    assert_eq!(sandbox.lock()["packages"][0], locked["packages"][0]);
    sandbox.mu(&["outdated"]).ok().says(&["1.2.0 ([FIRST])", "1.2.0 ([SECOND])"]);
    // What was locked is not there any more.
    without_packs_and_cache(&sandbox);
    let run = sandbox.mu(&["get", "--locked", "--json"]).fails();
    run.fails_with("integrity");
    run.says(&["[FIRST]", "[SECOND]", "`mu update` takes what is there now"]);
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com") || sandbox.locked().len() == 2);
    let moved = ["1.2.0 ([FIRST]) → 1.2.0 ([SECOND])"];
    sandbox.mu(&["update", "--dry-run"]).ok().says(&moved);
    sandbox.mu(&["update"]).ok().says(&moved);
    assert_eq!(sandbox.lock()["packages"][0]["archive"], digest(&second));
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
}

#[test]
fn a_pinned_archive_must_have_its_digest() {
    let archive = tool("1.2.0", "");
    let (sandbox, server, content) = offered(archive.clone());
    let url = server.url("dl/tool-1.2.tgz");
    let pinned = format!("{url}#{}", digest(&archive));
    sandbox.asks_for(&[&pinned]);
    tool("1.3.0", "").clone_into(&mut content.lock().expect("nobody panics"));
    let run = sandbox.mu(&["get", "--json"]).fails();
    run.fails_with("integrity");
    run.says(&[
        &digest(&archive),
        &digest(&tool("1.3.0", "")),
        "has to be changed where it is written",
    ]);
    assert!(!sandbox.has("work/Mu.lock") && !sandbox.has("work/.mu/packs/hub.mu.com"));
    archive.clone_into(&mut content.lock().expect("nobody panics"));
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["update"]).ok().says(&["up to date"]);
    // Changing the pin is enough.
    let other = tool("1.3.0", "");
    other.clone_into(&mut content.lock().expect("nobody panics"));
    sandbox.asks_for(&[&format!("{url}#{}", digest(&other))]);
    sandbox.mu(&["get"]).ok().says(&["1.2.0 → 1.3.0"]);
}

#[test]
fn dependencies_in_archives_are_resolved_and_folders_beside_them_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let needs = "name: other/name\nversion: 2.0.0\ndependencies: [hub.mu.com/web/log#^1]\n";
    write(folder.path(), "a.zip", zip(&[ZipEntry::new("a/Mu.yaml", 'f', needs)]));
    let beside = "name: acme/b\nversion: 1.0.0\ndependencies: [../lib]\n";
    write(folder.path(), "b.zip", zip(&[ZipEntry::new("Mu.yaml", 'f', beside)]));
    write(folder.path(), "c.zip", zip(&[ZipEntry::new("Mu.yaml", 'f', "name: [")]));
    let chart = "apiVersion: v2\nname: web\nversion: 3.1.0\n";
    write(folder.path(), "chart.zip", zip(&[ZipEntry::new("web/Chart.yaml", 'f', chart)]));
    let nginx = Nginx::serve(folder.path(), "");
    let mut sandbox = Sandbox::new();
    sandbox.replace(&nginx.host(), "[HOST]");
    sandbox.publish(&[Package::new("web/log", "1.4.0")]);
    sandbox.asks_for(&[&nginx.url("a.zip"), &nginx.url("chart.zip")]);
    sandbox.mu(&["get"]).ok();
    let host = nginx.host();
    let locked = sandbox.locked();
    for package in [
        "hub.mu.com/web/log 1.4.0",
        &format!("{host}/a.zip 2.0.0"),
        &format!("{host}/chart.zip 3.1.0"),
    ] {
        assert!(locked.iter().any(|one| one == package), "{locked:?}");
    }
    let pack = format!("work/.mu/packs/{}/chart.zip", host.replace(':', "+"));
    assert_eq!(mu_testing::tree(&sandbox.path(&pack)).keys().collect::<Vec<_>>(), ["Chart.yaml"]);
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    sandbox.mu(&["verify"]).ok();
    sandbox.asks_for(&[&nginx.url("b.zip")]);
    sandbox.mu(&["get"]).fails().says(&["it depends on the folder `../lib`"]);
    sandbox.asks_for(&[&nginx.url("c.zip")]);
    sandbox.mu(&["get"]).fails().says(&["[HOST]/c.zip/Mu.yaml:1"]);
}

#[test]
fn a_mirror_serves_an_archive_to_the_same_lock_and_vendored_packs_need_nothing() {
    let (sandbox, server, _) = offered(tool("1.2.0", ""));
    let url = server.url("dl/tool-1.2.tgz");
    sandbox.asks_for(&[&url]);
    sandbox.mu(&["get"]).ok();
    let locked = sandbox.lock();
    let registry = OciServer::start(Behaviour::default());
    let to = format!("oci://{}/mirror", registry.host());
    sandbox.mu(&["mirror", "--lock", "--to", &to]).ok().says(&["dl/tool-1.2.tgz 1.2.0"]);
    without_packs_and_cache(&sandbox);
    // A registry that covers the id comes first: there, the name is that of a package.
    let place = format!("registries: {{'{}/': '{to}/'}}\n", server.host());
    sandbox.write(".mu/workspace.yaml", &place);
    let before = server.requests().len();
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(server.requests().len(), before, "only the mirror was asked");
    assert_eq!(sandbox.lock()["packages"][0]["digest"], locked["packages"][0]["digest"]);
    // A hub has files of that name.
    let hub = format!("file://{}/", sandbox.path("hub").display());
    let left = ["no part of it may end with `.tgz`; an OCI registry takes it"];
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.mu(&["mirror", "--lock", "--to", &hub]).fails().says(&left);
    sandbox.mu(&["vendor"]).ok();
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
}

#[test]
fn a_mirror_has_archives_without_a_manifest() {
    let bare = tar_gz([("tool-1.2/bin/tool".to_owned(), ('x', b"#!/bin/sh\n".to_vec()))]);
    let (sandbox, server, _) = offered(bare.clone());
    write(&sandbox.path("www"), "dl/tool-1.2.tar.gz", bare);
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let registry = OciServer::start(Behaviour::default());
    let to = format!("oci://{}/mirror", registry.host());
    let hub = format!("file://{}/", sandbox.path("hub").display());
    let urls = [
        (server.url("dl/tool-1.2.tgz"), server.host(), to),
        (nginx.url("dl/tool-1.2.tar.gz"), nginx.host(), hub),
    ];
    for (url, host, to) in urls {
        sandbox.write(".mu/workspace.yaml", "");
        sandbox.asks_for(&[&url]);
        sandbox.mu(&["get"]).ok();
        let locked = sandbox.lock();
        // By its name, of which the scheme counts.
        sandbox.mu(&["mirror", &url, "--to", &to]).ok().says(&["dl/tool-1.2.t"]);
        without_packs_and_cache(&sandbox);
        sandbox.write(".mu/workspace.yaml", &format!("registries: {{'{host}/': '{to}'}}\n"));
        sandbox.mu(&["get", "--locked"]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["digest"], locked["packages"][0]["digest"]);
    }
    sandbox.mu(&["hub", "check", &sandbox.path("hub").display().to_string()]).ok();
}

#[test]
fn if_an_archive_is_not_there_the_url_is_in_doubt() {
    let (sandbox, server, _) = offered(tool("1.2.0", ""));
    sandbox.asks_for(&[]);
    let url = server.url("dl/tool-1.3.tgz");
    for command in ["add", "info", "versions"] {
        let run = sandbox.mu(&[command, &url]).fails();
        run.says(&["`[HOST]` answered that this file does not exist: check the URL"])
            .does_not_say(&["mu search"]);
    }
}

#[test]
fn tokens_stay_with_their_host_and_plain_http_with_this_machine() {
    let archive = tool("1.2.0", "");
    let sent = archive.clone();
    let other = TestServer::start(move |seen, _| Reply::ranged(seen, &sent));
    let target = other.url("elsewhere");
    let first = TestServer::start(move |seen, _| match seen.header("authorization") {
        Some(_) => Reply::redirect(target.clone()),
        None => Reply::status(401),
    });
    let mut sandbox = Sandbox::new();
    sandbox.set_token(&first.host(), "secret");
    sandbox.asks_for(&[&first.url("tool.tgz")]);
    sandbox.mu(&["get"]).ok();
    let told = |seen: &Seen| seen.header("authorization").is_some();
    assert!(first.seen().iter().any(told));
    assert!(!other.seen().is_empty() && !other.seen().iter().any(told));
    assert!(!sandbox.read("Mu.lock").contains("secret"));
    sandbox.mu(&["get", "http://archives.example/x.tgz"]).fails().says(&["--allow-insecure"]);
    // Without a base, it is a name in a registry.
    sandbox.publish(&[Package::new("tools/x.tgz", "1.0.0")]);
    sandbox.asks_for(&["tools/x.tgz#^1"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/tools/x.tgz 1.0.0"]);
}

#[test]
fn an_archive_without_a_version_is_pinned_and_unpinned() {
    let sandbox = Sandbox::new();
    let archive = tar_gz([("tool/bin/tool".to_owned(), ('x', b"#!/bin/sh\n".to_vec()))]);
    write(&sandbox.path("www"), "tool.tgz", &archive);
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    sandbox.asks_for(&[&nginx.url("tool.tgz")]);
    sandbox.mu(&["get"]).ok();
    let before = (sandbox.read("Mu.yaml"), sandbox.read("Mu.lock"));
    sandbox.mu(&["pin"]).ok();
    sandbox.mu(&["unpin"]).ok();
    assert_eq!((sandbox.read("Mu.yaml"), sandbox.read("Mu.lock")), before);
}

/// Offers archives under their names, and requires all of them.
fn offered_as(archives: Vec<(&'static str, Vec<u8>)>) -> (Sandbox, TestServer) {
    let names: Vec<&str> = archives.iter().map(|(name, _)| *name).collect();
    let server = TestServer::start(move |seen, _| {
        let found = archives.iter().find(|(name, _)| seen.path == format!("/{name}"));
        found.map_or(Reply::status(404), |(_, bytes)| Reply::ranged(seen, bytes))
    });
    let sandbox = Sandbox::new();
    let urls: Vec<String> = names.iter().map(|name| server.url(name)).collect();
    sandbox.asks_for(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    (sandbox, server)
}

#[test]
fn what_a_server_calls_a_web_page_is_an_archive_if_it_begins_as_one() {
    let files = [("Mu.yaml".to_owned(), ('f', b"name: acme/tool\nversion: 1.2.0\n".to_vec()))];
    let archive = mu_testing::tar_gz(files);
    for (body, is_archive) in [(archive, true), (b"<p>Sign in".to_vec(), false)] {
        let server = TestServer::start(move |_, _| {
            Reply::body(body.clone()).header("content-type", "text/html")
        });
        let sandbox = Sandbox::new();
        let run = sandbox.mu(&["get", &server.url("tool-1.2.tgz")]);
        match is_archive {
            true => run.ok(),
            false => run.fails().says(&["the answer is a web page"]),
        };
    }
}

#[test]
fn a_chart_with_a_hard_link_is_refused_because_helm_reads_an_empty_file() {
    let made = Sandbox::new();
    write(made.root(), "web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.0\n");
    write(made.root(), "web/templates/a.yaml", "kind: A\n");
    let second = made.path("web/templates/b.yaml");
    fs::hard_link(made.path("web/templates/a.yaml"), second).expect("can be made");
    let archive = made.path("web-1.2.0.tgz");
    let packed = std::process::Command::new("tar")
        .args(["-C".as_ref(), made.root().as_os_str(), "--sort=name".as_ref(), "-czf".as_ref()])
        .args([archive.as_os_str(), "web".as_ref()])
        .status();
    assert!(packed.expect("there is a tar").success());
    for helm in crate::support::Helm::all() {
        let rendered = helm.template(&made.path("helm"), &archive);
        assert_eq!(rendered.len(), 1, "the link is empty to Helm: {rendered:?}");
    }
    let (sandbox, _server) = offered_as(vec![("web-1.2.0.tgz", fs::read(archive).expect("is"))]);
    sandbox.mu(&["get"]).fails().says(&[
        "it has a hard link, which Helm reads as an empty file",
        "`helm package` makes an archive of a chart without hard links",
    ]);
}

#[test]
fn archives_of_others_are_read_as_their_own_tools_read_them() {
    let manifest = "name: acme/tool\nversion: 1.2.0\n";
    // PowerShell's `Compress-Archive` writes backslashes, and macOS adds what its Finder knows.
    let windows = zip(&[
        ZipEntry { mode: 0, ..ZipEntry::new("tool\\bin\\", 'f', "") },
        ZipEntry { mode: 0, ..ZipEntry::new("tool\\bin\\run", 'f', "#!/bin/sh\n") },
        ZipEntry { mode: 0, ..ZipEntry::new("tool\\Mu.yaml", 'f', manifest) },
    ]);
    let finder = zip(&[
        ZipEntry::new("tool/Mu.yaml", 'f', manifest),
        ZipEntry::new("tool/bin/run", 'x', "#!/bin/sh\n"),
        ZipEntry::new("__MACOSX/tool/._Mu.yaml", 'f', "attributes"),
    ]);
    let whole = tar([
        ("tool/Mu.yaml".to_owned(), ('f', manifest.as_bytes().to_vec())),
        ("tool/bin/run".to_owned(), ('x', b"#!/bin/sh\n".to_vec())),
    ]);
    let (first, second) = whole.split_at(700);
    let members = [gzip(first), gzip(second)].concat();
    // Programs that do not end their archive leave out the zeros that mark the end, or half of them.
    let entries = whole.len() - 1024;
    let (unmarked, half) = (gzip(&whole[..entries]), gzip(&whole[..entries + 512]));
    // GNU tar makes a hard link of the second name of a file.
    let made = Sandbox::new();
    write(made.root(), "tool/Mu.yaml", manifest);
    write(made.root(), "tool/bin/run", "#!/bin/sh\n");
    fs::hard_link(made.path("tool/bin/run"), made.path("tool/bin/start")).expect("can be made");
    let linked = std::process::Command::new("tar")
        .args(["-C".as_ref(), made.root().as_os_str()])
        .args(["--sort=name", "-czf", "-", "tool"])
        .output()
        .expect("there is a tar");
    let (sandbox, _server) = offered_as(vec![
        ("windows-1.zip", windows),
        ("finder-1.zip", finder),
        ("members-1.TGZ", members),
        ("unmarked-1.tgz", unmarked),
        ("half-1.tgz", half),
        ("linked-1.tar.gz", linked.stdout),
    ]);
    sandbox.mu(&["get"]).ok().says(&["installed 6 packages"]);
    for package in sandbox.lock()["packages"].as_array().expect("is a list") {
        assert_eq!(package["version"], "1.2.0", "the manifest in it counts: {package}");
        let id = package["id"].as_str().expect("is text");
        let pack = format!("work/.mu/packs/{}", id.replace(':', "+"));
        let all = if id.contains("linked") { vec!["run", "start"] } else { vec!["run"] };
        for name in all {
            let content = fs::read(sandbox.path(&format!("{pack}/bin/{name}")));
            assert_eq!(content.expect("is there"), b"#!/bin/sh\n", "{id}");
        }
        assert!(!sandbox.has(&format!("{pack}/__MACOSX")), "{id}");
    }
    sandbox.mu(&["verify"]).ok();
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
}

/// Archives as Python's own library writes them: zips whose tool did not know sizes in time or leaves room for large ones, with more
/// files than the short numbers count, and with `./` before all paths; and a tar as old tools have it, whose folders
/// are known by their slash. The two ends of `mixed.zip` differ.
const OF_PYTHON: &str = r#"
import io, sys, tarfile, zipfile
class Pipe(io.RawIOBase):
    def __init__(self, file): self.file = file
    def writable(self): return True
    def write(self, data): return self.file.write(data)
files = {'Mu.yaml': b'name: acme/tool\nversion: 1.2.0\n', 'bin/run': b'#!/bin/sh\n'}
def write(archive, top='tool/', **how):
    for name, content in files.items():
        with archive.open(top + name, 'w', **how) as file: file.write(content)
for name, how in (('piped', {}), ('piped64', {'force_zip64': True})):
    with open(name + '-1.zip', 'wb') as file:
        with zipfile.ZipFile(Pipe(file), 'w', zipfile.ZIP_DEFLATED) as archive: write(archive, **how)
with zipfile.ZipFile('roomy-1.zip', 'w') as archive: write(archive, force_zip64=True)
with zipfile.ZipFile('dotted-1.zip', 'w') as archive:
    archive.writestr('./', '')
    write(archive, top='./tool/')
with zipfile.ZipFile('many-1.zip', 'w') as archive:
    write(archive)
    for number in range(65_600): archive.writestr(f'tool/d{number // 1000}/{number}', '')
many = open('many-1.zip', 'rb').read()
end = many.rindex(b'PK\x06\x06')
open('mixed-1.zip', 'wb').write(many[:end + 48] + b'\x03' + many[end + 49:])
with tarfile.open('old-1.tgz', 'w:gz', format=tarfile.USTAR_FORMAT) as archive:
    for name in ('tool/', 'tool/bin/'):
        entry = tarfile.TarInfo(name)
        entry.type = tarfile.AREGTYPE
        archive.addfile(entry)
    for name, content in files.items():
        entry = tarfile.TarInfo('tool/' + name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
"#;

#[test]
fn archives_of_pythons_library_are_read_as_it_reads_them() {
    let made = Sandbox::new();
    let mut python = std::process::Command::new("/usr/bin/python3");
    let run = python.args(["-c", OF_PYTHON]).current_dir(made.root()).output().expect("starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let read = |name: &'static str| (name, fs::read(made.path(name)).expect("was written"));
    let names =
        ["piped-1.zip", "piped64-1.zip", "roomy-1.zip", "dotted-1.zip", "many-1.zip", "old-1.tgz"];
    let (sandbox, _server) = offered_as(names.map(read).to_vec());
    sandbox.mu(&["get"]).ok().says(&["installed 6 packages"]);
    for package in sandbox.lock()["packages"].as_array().expect("is a list") {
        assert_eq!(package["version"], "1.2.0", "the manifest in it counts: {package}");
        let id = package["id"].as_str().expect("is text").replace(':', "+");
        let pack = format!("work/.mu/packs/{id}/bin/run");
        assert_eq!(fs::read(sandbox.path(&pack)).expect("is there"), b"#!/bin/sh\n", "{id}");
    }
    let (sandbox, _server) = offered_as(vec![read("mixed-1.zip")]);
    sandbox
        .mu(&["get"])
        .fails()
        .says(&["it is a zip that mu does not read: its two ends (zip64) differ"]);
}

/// An archive of the folder `tool` with this file besides its manifest, as `tar` makes it with these options.
fn made_by_tar(name: &str, options: &[&str]) -> Vec<u8> {
    let made = Sandbox::new();
    write(made.root(), "tool/Mu.yaml", "name: acme/tool\nversion: 1.2.0\n");
    let file = fs::File::create(made.path("tool").join(name)).expect("can be made");
    file.set_len(1 << 20).expect("can have a hole");
    let mut tar = std::process::Command::new("tar");
    let run = tar.args(["-czf", "-"]).args(options).current_dir(made.root()).output();
    let run = run.expect("there is a tar");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    run.stdout
}

#[test]
fn what_tar_writes_besides_packages_is_named() {
    let sparse =
        "`tool/hole` is refused: it is a sparse file (GNU tar makes none without `--sparse`";
    let whole = made_by_tar("hole", &["tool"]);
    let twice = gzip(&whole);
    let followed = [whole.as_slice(), b"and more"].concat();
    for (archive, expected) in [
        (made_by_tar("hole", &["--sparse", "tool"]), sparse),
        (made_by_tar("hole", &["--sparse", "--format=pax", "tool"]), sparse),
        (
            made_by_tar("hole", &["--listed-incremental=dates", "tool"]),
            "`tool/` is refused: it is a folder of an incremental backup",
        ),
        (
            made_by_tar("hole", &["--label=Tool", "tool"]),
            "`Tool` is refused: it is the label of a volume",
        ),
        (
            made_by_tar("hole", &["tool//hole", "tool/Mu.yaml"]),
            "`tool//hole` is refused: it has two slashes, one after the other",
        ),
        (twice, "it is gzip of something that is not a tar"),
        (followed, "there is data after its end, which other tools may read as more files"),
    ] {
        let (sandbox, _server) = offered_as(vec![("tool-1.tgz", archive)]);
        sandbox.mu(&["get"]).fails().says(&[expected]).does_not_say(&["malformed", "ends early"]);
    }
}

#[test]
fn what_is_served_in_place_of_an_archive_is_named() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    for (body, expected) in [
        (pointer, Some("it is a pointer of Git LFS, and not the file that it stands for")),
        ("\n<!DOCTYPE html><title>Not found</title>", Some("it is a web page")),
        (
            "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>",
            Some("it is an XML document"),
        ),
        ("", Some("it is empty")),
        ("{\"error\": \"not found\"}", None),
    ] {
        for (name, unknown) in
            [("tool-1.tgz", "it is neither gzip nor tar"), ("tool-1.zip", "it is not a zip")]
        {
            let (sandbox, _server) = offered_as(vec![(name, body.as_bytes().to_vec())]);
            sandbox.mu(&["get"]).fails().says(&[expected.unwrap_or(unknown)]);
        }
    }
    // As in what GitHub makes of a tag.
    let source = tar_gz([
        ("tool/Mu.yaml".to_owned(), ('f', b"name: acme/tool\nversion: 1.2.0\n".to_vec())),
        ("tool/model.bin".to_owned(), ('f', pointer.as_bytes().to_vec())),
    ]);
    let (sandbox, _server) = offered_as(vec![("tool-1.tgz", source)]);
    let warning = "only the Git LFS pointer is there, not the file";
    sandbox.mu(&["get"]).ok().says(&["`model.bin` of `http://", warning]);
    let server = TestServer::start(|_, _| Reply::status(202));
    let sandbox = Sandbox::new();
    sandbox.asks_for(&[&server.url("tool-1.tgz")]);
    sandbox.mu(&["get"]).fails().says(&["answered 202 Accepted and not with an archive"]);
}

#[test]
fn a_compression_that_is_not_read_is_named() {
    let xz = b"\xfd7zXZ\0\0\x04".to_vec();
    let (sandbox, _server) = offered_as(vec![("tool-1.tar.xz", xz.clone())]);
    sandbox
        .mu(&["get"])
        .fails()
        .says(&["`.tgz`, `.tar.gz`, `.tar` or `.zip`, which mu reads", "as `.tar.gz` or `.zip`"])
        .does_not_say(&["does not exist"]);
    let (sandbox, _server) = offered_as(vec![("tool-1.tgz", xz)]);
    sandbox.mu(&["get"]).fails().says(&["it is compressed with xz, and mu reads gzip"]);
}

#[test]
fn what_is_gone_does_not_hide_what_else_is_outdated() {
    let sandbox = Sandbox::new();
    let archive = sandbox.path("www/tool-1.0.0.tgz");
    write(&sandbox.path("www"), "tool-1.0.0.tgz", Chart::new("tool", "1.0.0").archive());
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    sandbox.asks_for(&[&nginx.url("tool-1.0.0.tgz"), "aws/ec2#^1.0"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.mu(&["get"]).ok();
    sandbox.hub().release("aws/ec2", "1.1.0");
    let same = sandbox.mu(&["diff", &nginx.url("tool-1.0.0.tgz")]).ok();
    same.says(&["1.0.0 (sha256:"]).does_not_say(&["(sha256:)"]);
    fs::remove_file(archive).expect("is there");
    let run = sandbox.mu(&["--refresh", "outdated", "--json"]);
    let found = run.json();
    let all = found["packages"].as_array().expect("is a list");
    assert_eq!(all.len(), 2, "{found}");
    assert_eq!((&all[0]["current"], &all[0]["allowed"]), (&json!("1.0.0"), &json!("1.1.0")));
    assert_eq!(all[1]["unusable"], json!(["is not at its registry any more"]));
    sandbox.mu(&["--refresh", "outdated"]).says(&["1.0.0 is not at its registry any more"]);
}
