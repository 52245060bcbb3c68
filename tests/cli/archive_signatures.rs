//! Archives by URL whose authors have signed them: the bundle beside an archive, by a key or by an identity.

use std::fs;

use mu_testing::{Nginx, SignedContent, Sigstore, Workflow, hex, tar_gz};
use serde_json::{Value, json};

use super::support::{Run, Sandbox, write};
use super::trust::{Key, forget, identity};

pub(super) const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
const IDENTITY: &str = "github:acme/tool/.github/workflows/release.yml";

/// A web server with archives, an instance of sigstore, and a user who trusts both the key and the workflow.
pub(super) struct Site {
    pub(super) sandbox: Sandbox,
    pub(super) nginx: Nginx,
    sigstore: Sigstore,
    pub(super) key: Key,
}

impl Site {
    pub(super) fn new(rules: &str) -> Self {
        let mut sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.path("www/dl")).expect("can be made");
        let nginx = Nginx::serve(&sandbox.path("www"), rules);
        sandbox.replace(&nginx.host(), "[HOST]");
        let (sigstore, key) = (Sigstore::new(), Key::usual(&sandbox, "team"));
        let workflow = Workflow {
            subject: "https://github.com/acme/tool/.github/workflows/release.yml@refs/tags/v1",
            repository: "acme/tool",
            reference: "refs/tags/v1",
            id: "7",
        };
        sigstore.workflow(&workflow);
        write(&sandbox.path("home/.mu"), "root.json", sigstore.root().to_string());
        let site = Self { sandbox, nginx, sigstore, key };
        site.rule("signedBy: [team, acme-ci]");
        site
    }

    /// Has the user ask this of what is on the server.
    fn rule(&self, asks: &str) {
        let (host, key) = (self.nginx.host(), self.key.public.display());
        let text = format!(
            "trust:\n  roots: [./root.json]\n  signers: {{team: {key}, acme-ci: {{github: acme/tool, workflow: release.yml}}}}\n  packages: {{\"{host}/*\": {{{asks}}}}}\n"
        );
        write(&self.sandbox.path("home/.mu"), "config.yaml", text);
    }

    pub(super) fn put(&self, file: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.sandbox.path(&format!("www/dl/{file}")), bytes).expect("can be written");
    }

    pub(super) fn url(&self, file: &str) -> String {
        self.nginx.url(&format!("dl/{file}"))
    }

    pub(super) fn mu(&self, arguments: &[&str]) -> Run {
        self.sandbox.mu(arguments)
    }

    /// What the server was asked for since then, in short.
    pub(super) fn asked_since(&self, before: usize) -> Vec<String> {
        self.nginx.log().split_off(before)
    }

    /// A bundle over bytes by the key.
    pub(super) fn by_key(&self, bytes: &[u8]) -> Value {
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {"publicKey": {"hint": ""}},
            "messageSignature": {"signature": self.key.sign(bytes)},
        })
    }

    pub(super) fn forget(&self) {
        forget(&self.sandbox);
        let _ = fs::remove_file(self.sandbox.path("work/Mu.lock"));
    }
}

/// The files of `acme/tool` in a folder, as a release on a web page has them.
pub(super) fn tool(name: &str, version: &str) -> Vec<u8> {
    let manifest = format!("name: acme/{name}\nversion: {version}\n");
    tar_gz([(format!("{name}/Mu.yaml"), ('f', manifest.into_bytes()))])
}

pub(super) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(bytes))
}

#[test]
fn an_archive_is_used_if_its_bundle_is_by_a_key_or_an_identity_that_a_rule_names() {
    let site = Site::new("");
    let archive = tool("tool", "1.2.0");
    let subject = digest(&archive);
    site.put("tool-1.2.tgz", &archive);
    site.sandbox.asks_for(&[&site.url("tool-1.2.tgz")]);
    let statement = SignedContent::Statement(&subject, PROVENANCE);
    let by_key = site.key.bundle(&subject, PROVENANCE);
    let by_key: Value = serde_json::from_slice(&by_key).expect("is JSON");
    for (bundle, signer) in [
        (site.by_key(&archive), identity(&site.key)),
        (by_key, identity(&site.key)),
        (site.sigstore.bundle("0.3", SignedContent::Bytes(&archive)), IDENTITY.to_owned()),
        (site.sigstore.bundle("0.1", statement), IDENTITY.to_owned()),
        (site.sigstore.bundle("0.3", statement), IDENTITY.to_owned()),
    ] {
        site.put("tool-1.2.tgz.sigstore.json", bundle.to_string());
        site.forget();
        let before = site.nginx.log().len();
        site.mu(&["get"]).ok();
        // The archive is fetched once, and its bundle.
        let asked = site.asked_since(before);
        let of = |end: &str| asked.iter().filter(|line| line.contains(end)).count();
        assert_eq!((of("tool-1.2.tgz "), of(".sigstore.json ")), (1, 1), "{asked:#?}");
        assert_eq!(site.sandbox.lock()["packages"][0]["signedBy"], json!([signer]));
        // The same for who only has the lock, and then nobody is asked.
        forget(&site.sandbox);
        let before = site.nginx.log().len();
        site.mu(&["get", "--locked"]).ok();
        let asked = site.asked_since(before);
        assert_eq!(asked.len(), 2, "{asked:#?}");
        site.mu(&["get", "--frozen"]).ok();
        assert_eq!(site.asked_since(before).len(), 2);
    }
    let shown = site.mu(&["trust", "show", &site.url("tool-1.2.tgz")]).ok();
    shown.says(&["bundle http://[HOST]/dl/tool-1.2.tgz.sigstore.json: signed by", "accepted"]);
    let info = site.mu(&["info", &site.url("tool-1.2.tgz")]).ok();
    info.says(&[&format!("signed by {IDENTITY}")]);
}

#[test]
fn an_archive_that_nobody_of_these_has_signed_is_refused() {
    let site = Site::new("");
    let archive = tool("tool", "1.2.0");
    let (subject, stranger) = (digest(&archive), Key::usual(&site.sandbox, "stranger"));
    site.put("tool-1.2.tgz", &archive);
    site.sandbox.asks_for(&[&site.url("tool-1.2.tgz")]);
    let why = "no signature (looked at http://[HOST]/dl/tool-1.2.tgz.sigstore.json)";
    site.mu(&["get"]).fails().says(&[why, "mu trust allow"]);
    let mut changed = archive.clone();
    changed.push(0);
    let scan = "https://cosign.sigstore.dev/attestation/vuln/v1";
    for (bundle, why) in [
        (b"<html>there is nothing here</html>".to_vec(), "no signature (looked at"),
        (b"{".to_vec(), "the bundle cannot be read"),
        (stranger.bundle(&subject, PROVENANCE), "no signature by team, acme-ci"),
        (site.key.bundle(&digest(&changed), PROVENANCE), "signature does not verify: it is over"),
        (site.by_key(&changed).to_string().into_bytes(), "no signature by team, acme-ci"),
        (site.key.bundle(&subject, scan), "is not evidence that mu knows"),
    ] {
        site.put("tool-1.2.tgz.sigstore.json", bundle);
        site.mu(&["get"]).fails().says(&[why]);
        site.mu(&["get", "--json"]).fails_with("untrusted");
        assert!(!site.sandbox.path("work/Mu.lock").exists(), "{why}");
    }
    // What is locked was signed, and what is there now is something else.
    site.put("tool-1.2.tgz.sigstore.json", site.by_key(&archive).to_string());
    site.mu(&["get"]).ok();
    site.put("tool-1.2.tgz", &changed);
    forget(&site.sandbox);
    site.mu(&["get", "--locked"]).fails();
}

#[test]
fn the_name_in_a_signed_archive_is_one_of_its_url() {
    let site = Site::new("");
    for (file, name, version, why) in [
        ("tool-1.2.tgz", "tool", "1.2.0", None),
        ("terraform-aws-tool-v1.2.0-linux.tgz", "tool", "1.2.0", None),
        ("tool.tgz", "tool", "1.2.0", None),
        // Signed by the same, and put there by whoever holds the server.
        ("tool-1.3.0.tgz", "tool", "1.2.0", Some("is version 1.2.0")),
        ("tool-11.2.0.tgz", "tool", "1.2.0", Some("is version 1.2.0")),
        ("tool-1.4.0.tgz", "other", "1.4.0", Some("is a package named `acme/other`")),
        ("toolbox-1.5.0.tgz", "tool", "1.5.0", Some("is a package named `acme/tool`")),
    ] {
        let archive = tool(name, version);
        site.put(file, &archive);
        site.put(&format!("{file}.sigstore.json"), site.by_key(&archive).to_string());
        site.forget();
        site.sandbox.asks_for(&[&site.url(file)]);
        match why {
            None => drop(site.mu(&["get"]).ok()),
            Some(why) => {
                site.mu(&["get"]).fails().says(&[why]);
                site.mu(&["get", "--json"]).fails_with("untrusted");
            }
        }
    }
    // Without a manifest, nothing in it is compared, and that is said.
    let archive = tar_gz([("readme".to_owned(), ('f', b"no manifest".to_vec()))]);
    site.put("bare-1.0.0.tgz", &archive);
    site.put("bare-1.0.0.tgz.sigstore.json", site.by_key(&archive).to_string());
    site.forget();
    site.sandbox.asks_for(&[&site.url("bare-1.0.0.tgz")]);
    site.mu(&["get"]).ok();
    let shown = site.mu(&["trust", "show", &site.url("bare-1.0.0.tgz")]).ok();
    shown.says(&["name not bound"]);
    let shown = site.mu(&["trust", "show", &site.url("bare-1.0.0.tgz"), "--json"]).ok().json();
    assert_eq!(shown["unbound"], json!("name"), "{shown}");
}

#[test]
fn a_place_that_hides_what_it_has_not_may_hide_a_signature() {
    let site = Site::new("location ~ sigstore.json$ { return 403; }");
    site.put("tool-1.2.tgz", tool("tool", "1.2.0"));
    site.sandbox.asks_for(&[&site.url("tool-1.2.tgz")]);
    site.mu(&["get", "--json"]).fails_with("auth");
    site.rule("continuity: refuse");
    site.mu(&["get"]).ok();
}
