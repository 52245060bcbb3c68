//! Provenance of charts, signed by `gpg` with each kind of key, and what must not pass for it.

use std::path::Path;
use std::process::Command;

use mu_trust::{Evidence, Identity, Refusal, Signed, SignedBy, Signer, Subject, Verdict};
use tempfile::TempDir;

use crate::{hex, judge, run, sha256};

/// The home of a `gpg`, whose agent ends with it.
pub(crate) struct Gpg {
    folder: TempDir,
}

impl Drop for Gpg {
    fn drop(&mut self) {
        let _ = Command::new("gpgconf")
            .args(["--kill", "all"])
            .env("GNUPGHOME", self.folder.path())
            .output();
    }
}

impl Gpg {
    pub(crate) fn new() -> Self {
        // The path of a socket has at most 107 bytes.
        Self { folder: tempfile::Builder::new().prefix("g").tempdir().expect("there is room") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn gpg(&self, arguments: &[&str]) -> Vec<u8> {
        let quiet =
            ["--batch", "--quiet", "--yes", "--pinentry-mode", "loopback", "--passphrase", ""];
        run(self.path(), "gpg", &[&quiet, arguments].concat())
    }

    /// A key of this kind that signs.
    pub(crate) fn generate(&self, name: &str, algorithm: &str) {
        self.gpg(&["--quick-generate-key", name, algorithm, "sign", "never"]);
    }

    pub(crate) fn signer(&self, name: &str) -> Signer {
        Signer::from_keys(name, &self.public(name)).expect("gpg writes public keys")
    }

    fn public(&self, name: &str) -> String {
        String::from_utf8(self.gpg(&["--armor", "--export", name])).expect("armour is text")
    }

    /// The fingerprint of a primary key, as `gpg` says it.
    pub(crate) fn fingerprint(&self, name: &str) -> String {
        let listing = self.gpg(&["--with-colons", "--list-keys", name]);
        let listing = String::from_utf8(listing).expect("a listing is text");
        let line = listing.lines().find(|line| line.starts_with("fpr:")).expect("it has one");
        line.split(':').nth(9).expect("it is the tenth field").to_owned()
    }

    fn clearsign(&self, name: &str, hash: &str, text: &str) -> String {
        std::fs::write(self.path().join("text"), text).expect("the folder is writable");
        let user = format!("{name}!");
        // With `!` the key is this one and not the newest below it.
        let user = if name.len() == 40 { user.as_str() } else { name };
        let options = ["--local-user", user, "--digest-algo", hash, "--allow-weak-digest-algos"];
        let signed = self.gpg(&[&options[..], &["--clearsign", "--output", "-", "text"]].concat());
        String::from_utf8(signed).expect("a signed text is text")
    }

    /// Whether `gpg` itself takes it.
    fn takes(&self, prov: &str) -> bool {
        std::fs::write(self.path().join("prov"), prov).expect("the folder is writable");
        let output = Command::new("gpg")
            .args(["--batch", "--quiet", "--verify", "prov"])
            .current_dir(self.path())
            .env("GNUPGHOME", self.path())
            .output();
        output.expect("gpg starts").status.success()
    }
}

const ARCHIVE: &[u8] = b"an archive";
const FILE: &str = "web-1.4.0.tgz";

/// What Helm signs. The maintainers' lines begin with a dash, and one line ends in blanks.
fn text(file: &str) -> String {
    let digest = hex(&sha256(ARCHIVE));
    format!(
        "apiVersion: v2\nmaintainers:\n- name: ada  \n--\nname: web\n\n...\nfiles:\n  {file}: sha256:{digest}\n"
    )
}

fn archive(bytes: &[u8]) -> Subject<'_> {
    Subject::Content { sha256: sha256(bytes), bytes: None, file: Some(FILE) }
}

fn judged(prov: &str, signers: &[Signer]) -> Verdict {
    judge(&Evidence::Prov(prov.to_owned()), &archive(ARCHIVE), signers)
}

#[test]
fn each_kind_of_key_signs_charts() {
    let gpg = Gpg::new();
    for (name, algorithm, hashes) in [
        ("rsa", "rsa2048", &["SHA256", "SHA384", "SHA512"][..]),
        ("ed25519", "ed25519", &["SHA256", "SHA384", "SHA512"]),
        ("p256", "nistp256", &["SHA256", "SHA384"]),
        ("p384", "nistp384", &["SHA384"]),
    ] {
        gpg.generate(name, algorithm);
        let signers = [gpg.signer(name)];
        let identity = Identity::Pgp(gpg.fingerprint(name));
        assert_eq!(signers[0].identities(), std::slice::from_ref(&identity));
        for hash in hashes {
            let prov = gpg.clearsign(name, hash, &text(FILE));
            assert!(prov.contains("- - name") && prov.contains(&format!("Hash: {hash}")), "{prov}");
            assert!(gpg.takes(&prov));
            let verdict = judged(&prov, &signers);
            let [accepted] = verdict.accepted.as_slice() else {
                panic!("{name} {hash}: {verdict}")
            };
            assert_eq!((&*accepted.signer, &accepted.identity), (name, &identity));

            // Other ends of line, and words around the block, change nothing.
            let crlf = format!("before\n{}\nafter", prov.replace('\n', "\r\n"));
            assert!(gpg.takes(&crlf) && judged(&crlf, &signers).is_accepted(), "{name} {hash}");
        }
    }
}

#[test]
fn numbers_with_zeros_in_front_verify() {
    // One signature of 128 has a half with a zero byte in front, which OpenPGP drops.
    let gpg = Gpg::new();
    gpg.generate("ed25519", "ed25519");
    gpg.generate("p256", "nistp256");
    for name in ["ed25519", "p256"] {
        let signers = [gpg.signer(name)];
        for at in 0..24 {
            let prov = gpg.clearsign(name, "SHA256", &format!("number: {at}\n{}", text(FILE)));
            assert!(judged(&prov, &signers).is_accepted(), "{prov}");
        }
    }
}

#[test]
fn a_subkey_signs_for_its_certificate() {
    let gpg = Gpg::new();
    gpg.gpg(&["--quick-generate-key", "ada", "rsa2048", "cert", "never"]);
    let primary = gpg.fingerprint("ada");
    gpg.gpg(&["--quick-add-key", &primary, "ed25519", "sign", "never"]);
    // Its other subkey is of a kind that is passed over.
    gpg.gpg(&["--quick-add-key", &primary, "cv25519", "encr", "never"]);
    let signers = [gpg.signer("ada")];
    assert_eq!(signers[0].identities(), [Identity::Pgp(primary.clone())]);
    let prov = gpg.clearsign("ada", "SHA512", &text(FILE));
    let verdict = judged(&prov, &signers);
    assert_eq!(verdict.verified().collect::<Vec<_>>(), [&Identity::Pgp(primary)]);
    assert!(verdict.is_accepted());
}

#[test]
fn weak_signatures_and_keys_are_refused() {
    let gpg = Gpg::new();
    gpg.generate("rsa", "rsa2048");
    let weak = gpg.clearsign("rsa", "SHA1", &text(FILE));
    assert!(gpg.takes(&weak), "gpg still takes SHA-1");
    let verdict = judged(&weak, &[gpg.signer("rsa")]);
    assert!(
        matches!(&verdict.refusal, Some(Refusal::UnknownKind { kind }) if kind.contains("SHA-1")),
        "{verdict}"
    );
    assert!(!verdict.is_accepted());

    for (name, algorithm) in [("short", "rsa1024"), ("brainpool", "brainpoolP256r1")] {
        gpg.generate(name, algorithm);
        let error = Signer::from_keys(name, &gpg.public(name)).expect_err("it is refused");
        assert!(error.to_string().starts_with("the OpenPGP block is not taken: "), "{error}");
    }
}

#[test]
fn any_changed_byte_of_the_text_is_refused() {
    let gpg = Gpg::new();
    gpg.generate("ada", "ed25519");
    let signers = [gpg.signer("ada")];
    let prov = gpg.clearsign("ada", "SHA512", &text(FILE));
    assert!(judged(&prov, &signers).is_accepted());
    let start = prov.find("\n\n").expect("headers end") + 2;
    let end = prov.find("\n-----BEGIN PGP SIGNATURE").expect("it has a signature");
    for at in start..end {
        let mut changed = prov.clone().into_bytes();
        changed[at] ^= 1;
        let changed = String::from_utf8(changed).expect("it stays ASCII");
        assert!(!judged(&changed, &signers).is_accepted(), "byte {at}: {changed}");
    }
}

#[test]
fn other_files_archives_and_signers_are_told_apart() {
    let gpg = Gpg::new();
    gpg.generate("ada", "ed25519");
    gpg.generate("eve", "ed25519");
    let signers = [gpg.signer("ada")];

    let verdict = judged(&gpg.clearsign("eve", "SHA512", &text(FILE)), &signers);
    let by = SignedBy::PgpKey(gpg.fingerprint("eve"));
    let words = format!("signed by PGP key {}, which is not `ada`", gpg.fingerprint("eve"));
    assert_eq!(verdict.to_string(), words);
    assert_eq!(verdict.signed, [Signed { by, verifies: false, reference: None, time: None }]);

    let other_file = judged(&gpg.clearsign("ada", "SHA512", &text("api-1.4.0.tgz")), &signers);
    assert!(matches!(other_file.refusal, Some(Refusal::OtherSubject { .. })), "{other_file}");
    let prov = gpg.clearsign("ada", "SHA512", &text(FILE));
    let other_archive = judge(&Evidence::Prov(prov.clone()), &archive(b"other"), &signers);
    assert!(matches!(other_archive.refusal, Some(Refusal::OtherSubject { .. })), "{other_archive}");

    // What an attacker writes in front of the block, with the archive's digest, is not signed.
    let other = gpg.clearsign("ada", "SHA512", &text("api-1.4.0.tgz"));
    let around = format!("{}\n{other}\n{}", text(FILE), text(FILE));
    assert!(!judged(&around, &signers).is_accepted());
    // Neither is the text of another signature.
    let armour = other.find("-----BEGIN PGP SIGNATURE").expect("it has one");
    let head = prov.find("-----BEGIN PGP SIGNATURE").expect("it has one");
    let mixed = format!("{}{}", &prov[..head], &other[armour..]);
    let verdict = judged(&mixed, &signers);
    assert!(matches!(verdict.refusal, Some(Refusal::DoesNotVerify { .. })), "{verdict}");

    for (text, is_unsigned) in [(text(FILE), true), (prov[..head].to_owned(), false)] {
        let verdict = judged(&text, &signers);
        assert_eq!(verdict.refusal == Some(Refusal::NoSignature), is_unsigned, "{verdict}");
    }
}

#[test]
fn what_helm_signed_verifies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/trust");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it is there");
    let archive = std::fs::read(folder.join("web-1.4.0.tgz")).expect("it is there");
    let signer = Signer::from_keys("ada", &read("ada.asc")).expect("it is a key");
    let subject = Subject::Content { sha256: sha256(&archive), bytes: None, file: Some(FILE) };
    let verdict = judge(&Evidence::Prov(read("web-1.4.0.tgz.prov")), &subject, &[signer]);
    assert!(verdict.is_accepted(), "{verdict}");
}
