//! What vouches for a package goes where it goes, for the kinds that are not one archive in one registry: archives by URL, operators, which
//! are images, repositories with submodules, images for many platforms, and hubs in buckets. What cannot be carried is said.

use std::fs;

use mu_testing::oci::Behaviour;
use mu_testing::{
    Artifact, Bundle, DockerRegistry, OciServer, Operators, ZipEntry, hex, push_manifest, tar, zip,
};
use serde_json::{Value, json};

use super::archive_signatures::{PROVENANCE, Site, digest, tool};
use super::git_signatures::{self, Author};
use super::support::git::{HttpServer, Origin};
use super::support::{S3Server, Sandbox, Served, write};
use super::trust::{Key, Registry, SIGNED, forget, identity, referrer, user_says};
use super::trust_away::{carry, lead, lines, signed};

/// The folder of vendored archives.
const ARCHIVES: &str = ".mu/packs/.mu/archives";

/// The statement of a key about an archive, as a release on a web page has it.
fn statement(site: &Site, archive: &[u8]) -> Value {
    serde_json::from_slice(&site.key.bundle(&digest(archive), PROVENANCE)).expect("is JSON")
}

/// A zip with a manifest in it.
fn zipped(name: &str) -> Vec<u8> {
    let manifest = format!("name: acme/{name}\nversion: 1.0.0\n");
    zip(&[ZipEntry::new("Mu.yaml", 'f', manifest)])
}

/// A catalog with one operator, whose image somebody may sign.
struct Catalog {
    sandbox: Sandbox,
    server: OciServer,
    key: Key,
    /// The digest of its image.
    image: String,
}

impl Catalog {
    fn new() -> Self {
        let mut sandbox = Sandbox::new();
        let server = OciServer::start(Behaviour { referrers: true, ..Behaviour::default() });
        sandbox.replace(&server.host(), "[HOST]");
        let key = Key::usual(&sandbox, "team");
        let mut operators = Operators::new(&sandbox.path("catalog"));
        operators.package("kafka", "stable");
        let bundle = Bundle::new("kafka", "0.1.0");
        let image = bundle.push(&server, "acme/kafka-bundle");
        operators.bundle(&bundle.image(&image));
        operators.channel("kafka", "stable", &[json!("kafka.v0.1.0")]);
        sandbox.write(
            ".mu/workspace.yaml",
            "registries:\n  operators.example/: {provider: olm, url: ../catalog}\n",
        );
        let file = key.public.display();
        user_says(
            &sandbox,
            &format!(
                "trust:\n  signers: {{team: {file}}}\n  packages: {{operators.example/*: {{signedBy: [team]}}}}\n"
            ),
        );
        let image = image.rsplit_once('@').expect("has a digest").1.to_owned();
        let bundle = key.bundle(&image, SIGNED);
        let referring = referrer(&image, &bundle, |bytes| server.blob(bytes));
        server.manifest("acme/kafka-bundle", "signature", &referring);
        sandbox.asks_for(&["operators.example/kafka"]);
        Self { sandbox, server, key, image }
    }
}

#[test]
fn archives_by_url_are_vendored_with_what_vouches_for_them() {
    let site = Site::new("");
    let sandbox = &site.sandbox;
    // A signature over the bytes, and a statement about their digest.
    let (tool, pack) = (tool("tool", "1.2.0"), zipped("pack"));
    site.put("tool-1.2.tgz", &tool);
    site.put("tool-1.2.tgz.sigstore.json", site.by_key(&tool).to_string());
    site.put("pack-1.0.zip", &pack);
    site.put("pack-1.0.zip.sigstore.json", statement(&site, &pack).to_string());
    sandbox.asks_for(&[&site.url("tool-1.2.tgz"), &site.url("pack-1.0.zip")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["vendor", "--archives"]).ok().does_not_say(&["warning"]);
    for archive in [&tool, &pack] {
        let name = digest(archive).replace(':', "-");
        let kept = fs::read(sandbox.path(&format!("work/{ARCHIVES}/{name}"))).expect("is kept");
        assert!(kept == *archive, "{name}");
    }
    carry(sandbox);
    let before = site.nginx.log().len();
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    let _ = fs::remove_dir_all(sandbox.path("cache"));
    sandbox.mu(&["get", "--locked"]).ok();
    let says = format!("2 packages signed by {}", identity(&site.key));
    sandbox.mu(&["verify"]).ok().says(&[&says]);
    let nobody: [String; 0] = [];
    assert_eq!(site.asked_since(before), nobody);
    // What a checkout brings is no proof: another archive under this name, and its files.
    let _ = fs::remove_dir_all(sandbox.path("cache"));
    let name = digest(&tool).replace(':', "-");
    fs::write(sandbox.path(&format!("work/{ARCHIVES}/{name}")), &pack).expect("is ours");
    let run = sandbox.mu(&["get", "--locked", "--offline"]).fails();
    run.says(&["cannot find out who signed"]);
    sandbox.mu(&["get", "--locked"]).ok().says(&["the vendored archive of", "is not used"]);
}

#[test]
fn an_operator_is_vendored_as_the_image_that_is_signed() {
    let catalog = Catalog::new();
    let Catalog { sandbox, server, key, image } = &catalog;
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["vendor", "--archives"]).ok().does_not_say(&["warning"]);
    let name = format!("{ARCHIVES}/{}", image.replace(':', "-"));
    let kept = fs::read(sandbox.path(&format!("work/{name}"))).expect("is kept");
    carry(sandbox);
    fs::remove_dir_all(sandbox.path("catalog")).expect("is ours");
    let before = server.requests().len();
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    let _ = fs::remove_dir_all(sandbox.path("cache"));
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok().says(&[&format!("1 package signed by {}", identity(key))]);
    assert_eq!(server.requests().len(), before);
    // The same image is the same file, as the image layout of OCI has it.
    let mut tar = Vec::new();
    let mut inflate = flate2::read::GzDecoder::new(&kept[..]);
    std::io::Read::read_to_end(&mut inflate, &mut tar).expect("is gzip");
    let text = String::from_utf8_lossy(&tar);
    for part in ["oci-layout", "index.json", image.trim_start_matches("sha256:")] {
        assert!(text.contains(part), "{part}");
    }
    // Of an image whose layers are others, nothing is taken.
    let at = tar.windows(15).position(|bytes| bytes == b"\"schemaVersion\"").expect("is there");
    let (mut other, mut cut) = (tar.clone(), tar.clone());
    other[at + 1] = b'S';
    cut.truncate(1024);
    cut.resize(2048, 0);
    let packed = |tar: &[u8]| mu_testing::gzip(tar);
    for broken in [packed(&other), packed(&cut), kept[..kept.len() / 2].to_vec(), Vec::new()] {
        let _ = fs::remove_dir_all(sandbox.path("cache"));
        fs::write(sandbox.path(&format!("work/{name}")), broken).expect("is ours");
        let run = sandbox.mu(&["get", "--locked", "--offline"]).fails();
        run.says(&["the vendored archive of", "is not used"]);
    }
}

#[test]
fn submodules_are_vendored_with_the_commit_that_is_signed() {
    let sandbox = Sandbox::new();
    let ada = Author::ssh(&sandbox, "ada", &["-t", "ed25519"]);
    let mut origin = Origin::new("acme/lib.git");
    let pinned = origin.commit(&[("lib.txt", "pinned")]);
    origin.commit(&[("lib.txt", "later")]);
    origin.add("acme/outer.git");
    let settings = "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib.git\n";
    origin.commit(&[("Mu.yaml", "name: outer\n"), (".gitmodules", settings)]);
    origin.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{pinned},lib")]);
    origin.git(&["commit", "--quiet", "--message", "a submodule"]);
    ada.git(&origin, &["tag", "-s", "-m", "a release", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    user_says(&sandbox, &git_signatures::rule(&ada));
    sandbox.asks_for(&[&format!("{}acme/outer.git#^1", server.root())]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["vendor", "--archives"]).ok().does_not_say(&["warning"]);
    carry(&sandbox);
    let before = server.requests().len();
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
    let _ = fs::remove_dir_all(sandbox.path("cache"));
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok().says(&["1 package signed by ssh:"]);
    assert_eq!(server.requests().len(), before);
    let pack = format!(".mu/packs/{}/acme/outer/lib/lib.txt", server.host().replace(':', "+"));
    assert_eq!(sandbox.read(&pack), "pinned");
}

#[test]
fn an_archive_by_url_keeps_its_signature_in_mirrors_that_keep_the_archive() {
    let mut site = Site::new("");
    let registry = DockerRegistry::start();
    site.sandbox.replace(&registry.host(), "[REGISTRY]");
    let archive = tool("tool", "1.2.0");
    let manifest = "name: acme/flat\nversion: 1.0.0\n".as_bytes().to_vec();
    let flat = mu_testing::tar_gz([("Mu.yaml".to_owned(), ('f', manifest.clone()))]);
    let plain = tar([("Mu.yaml".to_owned(), ('f', manifest))]);
    // In a folder, at the top, not compressed; over the bytes, and over their digest.
    let all = [
        ("tool-1.2.tar.gz", &archive, site.by_key(&archive)),
        ("flat-1.0.tar.gz", &flat, statement(&site, &flat)),
        ("flat-plain-1.0.tar", &plain, site.by_key(&plain)),
    ];
    for (name, bytes, _) in &all {
        site.put(name, bytes);
    }
    let sandbox = &site.sandbox;
    let urls = all.each_ref().map(|(name, ..)| site.url(name));
    sandbox.asks_for(&urls.each_ref().map(String::as_str));
    let rules = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    write(&sandbox.path("home/.mu"), "config.yaml", "");
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let token = sandbox.mu(&["hub", "token", "add", "../srv", "m", "--namespace", "*"]).ok();
    let served = Served::start(sandbox, "../srv", &[]);
    site.sandbox.set_token(&served.address.to_string(), token.stdout.trim());
    let sandbox = &site.sandbox;
    let to_registry = format!("oci://{}", registry.host());
    // The signatures come after a first run, and the next one brings them.
    for is_signed in [false, true] {
        if is_signed {
            for (name, _, bundle) in &all {
                site.put(&format!("{name}.sigstore.json"), bundle.to_string());
            }
        }
        for to in ["../folder", &served.url(), &to_registry] {
            sandbox.mu(&["mirror", "--lock", "--to", to]).ok().does_not_say(&["warning"]);
        }
    }
    write(&sandbox.path("home/.mu"), "config.yaml", rules);
    sandbox.mu(&["hub", "check", "../folder"]).ok();
    let kept = fs::read(sandbox.path("folder/packs/dl/tool-1.2.tar.gz/tool-1.2.tar.gz-1.2.0.tgz"));
    assert!(kept.expect("is there") == archive);
    let host = site.nginx.host();
    let oci = format!("{{provider: oci, url: \"http://{}/\"}}", registry.host());
    let before = site.nginx.log().len();
    for mirror in ["../folder", &served.url(), &oci] {
        lead(sandbox, &host, mirror);
        forget(sandbox);
        sandbox.write("Mu.lock", &lock);
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["verify"]).ok().says(&["3 packages signed by key:sha256:"]);
        // Chosen anew, the same is accepted, under the names that the archives have at their URLs.
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
        forget(sandbox);
        sandbox.asks_for(&[&format!("{host}/dl/tool-1.2.tar.gz")]);
        sandbox.mu(&["get"]).ok();
        let signer = json!([identity(&site.key)]);
        assert_eq!(sandbox.lock()["packages"][0]["signedBy"], signer, "{mirror}");
        sandbox.asks_for(&urls.each_ref().map(String::as_str));
    }
    let nobody: [String; 0] = [];
    assert_eq!(site.asked_since(before), nobody);
}

#[test]
fn what_is_packed_anew_under_a_rule_is_said() {
    // A zip: the archives of hubs are tars.
    let site = Site::new("");
    let (sandbox, pack) = (&site.sandbox, zipped("pack"));
    site.put("pack-1.0.zip", &pack);
    site.put("pack-1.0.zip.sigstore.json", statement(&site, &pack).to_string());
    sandbox.asks_for(&[&site.url("pack-1.0.zip")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    let id = sandbox.lock()["packages"][0]["id"].as_str().expect("is a text").to_owned();
    let says = ["is packed anew", "does not speak of the copy", "no version satisfies the rule `"];
    // In each run, because it stays so.
    for _ in 0..2 {
        let run = sandbox.mu(&["mirror", "--lock", "--to", "../folder"]).ok();
        run.says(&says).says(&["mu trust allow"]);
    }
    lead(sandbox, &site.nginx.host(), "../folder");
    forget(sandbox);
    sandbox.mu(&["get", "--locked", "--json"]).fails_with("untrusted");
    sandbox.mu(&["trust", "allow", &format!("{id}#1.0.0"), "--yes"]).ok();
    sandbox.mu(&["get", "--locked"]).ok();
    // An operator: what is signed is an image, and a mirror has one archive.
    let catalog = Catalog::new();
    let sandbox = &catalog.sandbox;
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../folder"]).ok();
    run.says(&says).says(&["a signature of its image", "leave the catalog where it is"]);
    sandbox.write(".mu/workspace.yaml", "registries: {operators.example/: ../folder}\n");
    forget(sandbox);
    sandbox.mu(&["get", "--locked", "--json"]).fails_with("untrusted");
    // The way out that was printed.
    sandbox.mu(&["trust", "allow", "operators.example/kafka#0.1.0", "--yes"]).ok();
    sandbox.mu(&["get", "--locked"]).ok();
    // Without a rule, there is nothing to say.
    write(&sandbox.path("home/.mu"), "config.yaml", "");
    sandbox.write(
        ".mu/workspace.yaml",
        "registries:\n  operators.example/: {provider: olm, url: ../catalog}\n",
    );
    sandbox.mu(&["hub", "init", "../other"]).ok();
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../other"]).ok();
    run.does_not_say(&["packed anew"]);
}

#[test]
fn what_is_signed_in_a_registry_is_signed_in_a_bucket() {
    let mut registry = signed();
    let s3 = S3Server::start();
    registry.sandbox.set_all(s3.variables());
    let sandbox = &registry.sandbox;
    sandbox.asks_for(&[&registry.chart("web#^1"), &registry.chart("log#^1")]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["hub", "init", "s3://packages/hub"]).ok();
    let to = ["mirror", "--lock", "--to", "s3://packages/hub"];
    sandbox.mu(&to).ok().does_not_say(&["warning"]);
    // Again, with one more signature, which is kept beside the others.
    let digest = sandbox.lock()["packages"][0]["manifest"].as_str().expect("is there").to_owned();
    let second = Key::usual(sandbox, "second");
    registry.put_bundle("charts/log", &digest, &second.bundle(&digest, SIGNED));
    sandbox.mu(&to).ok().does_not_say(&["warning"]);
    sandbox.mu(&["hub", "check", "s3://packages/hub"]).ok();
    lead(sandbox, &registry.host(), "s3://packages/hub/");
    forget(sandbox);
    let before = registry.server.log().len();
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok().says(&["2 packages signed by key:sha256:"]);
    sandbox.mu(&["verify", "--trust"]).ok().says(&["2 packages verified"]);
    assert_eq!(sandbox.read("Mu.lock"), lock);
    let reference = registry.id("log");
    let shown = sandbox.mu(&["trust", "show", &reference, "--json"]).ok().json();
    assert_eq!(shown["evidence"].as_array().map(Vec::len), Some(2), "{shown}");
    assert_eq!(registry.requests_since(before), [""; 0]);
}

#[test]
fn an_image_for_many_platforms_is_signed_in_a_hub_as_in_its_registry() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    let text = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: db}\n";
    let image = Artifact::package(text);
    image.push(&host, "charts/db", "part");
    let bytes = image.manifest().to_string();
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [{
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": format!("sha256:{}", hex(bytes.as_bytes())),
        "size": bytes.len(),
        "platform": {"os": "linux", "architecture": "amd64"},
    }]});
    let digest = push_manifest(&host, "charts/db", "v1.0.0", &index);
    registry.sign("charts/db", &digest, &registry.key);
    sandbox.asks_for(&[&registry.chart("db#^1")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    sandbox.mu(&["mirror", "--lock", "--to", "../folder"]).ok().does_not_say(&["warning"]);
    // The index that is signed, and the manifest of it that leads on to the archive.
    let found = lines(&sandbox.path("folder/signatures/charts/db/db-1.0.0.jsonl"));
    assert_eq!(found[0]["manifests"].as_array().map(Vec::len), Some(2), "{found:?}");
    lead(sandbox, &host, "../folder");
    for is_new in [false, true] {
        forget(sandbox);
        if is_new {
            fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
        }
        sandbox.mu(if is_new { &["get"] } else { &["get", "--locked"] }).ok();
        sandbox.mu(&["verify"]).ok().says(&["1 package signed by key:sha256:"]);
    }
    // Without the index, nothing leads from what is signed to the archive.
    let file = sandbox.path("folder/signatures/charts/db/db-1.0.0.jsonl");
    let mut line = found[0].clone();
    line["manifests"].as_array_mut().expect("is a list").remove(0);
    fs::write(&file, format!("{line}\n")).expect("is ours");
    forget(sandbox);
    sandbox.mu(&["get", "--locked", "--json"]).fails_with("untrusted");
}
