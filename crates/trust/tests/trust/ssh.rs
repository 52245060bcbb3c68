//! SSH signatures over packages, which `ssh-keygen` makes or, of security keys, checks.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mu_trust::{Evidence, Identity, Refusal, Signer, Subject, Verdict};

use crate::{judge, run, sha256};

const PACKAGE: Subject<'static> =
    Subject::Package { name: "acme/web", version: "1.4.0", h1: "h1:abc" };
const MESSAGE: &str = "mu-package/v1\nacme/web\n1.4.0\nh1:abc\n";
const NAMESPACE: &str = "mu-package@v1";

/// Makes a key, whose public one it returns.
pub(crate) fn generate(folder: &Path, name: &str, kind: &str, bits: &str) -> String {
    let bits: &[&str] = if bits.is_empty() { &[] } else { &["-b", bits] };
    let options = ["-q", "-t", kind, "-N", "", "-C", "ada@acme", "-f", name];
    run(folder, "ssh-keygen", &[&options[..], bits].concat());
    std::fs::read_to_string(folder.join(format!("{name}.pub"))).expect("it wrote the public key")
}

fn sign(folder: &Path, name: &str, namespace: &str, hash: &str) -> Vec<u8> {
    std::fs::write(folder.join("message"), MESSAGE).expect("the folder is writable");
    let _ = std::fs::remove_file(folder.join("message.sig"));
    let hash = format!("hashalg={hash}");
    run(
        folder,
        "ssh-keygen",
        &["-q", "-Y", "sign", "-n", namespace, "-O", &hash, "-f", name, "message"],
    );
    let armour = std::fs::read_to_string(folder.join("message.sig")).expect("it signed");
    let body: String = armour.lines().filter(|line| !line.starts_with("-----")).collect();
    BASE64.decode(body).expect("armour is base64")
}

fn judged(blob: &[u8], signers: &[Signer]) -> Verdict {
    judge(&Evidence::Sshsig(blob.to_vec()), &PACKAGE, signers)
}

#[test]
fn each_kind_of_key_signs_packages() {
    let folder = tempfile::tempdir().expect("there is room");
    let folder = folder.path();
    for (name, kind, bits) in [
        ("ed", "ed25519", ""),
        ("p256", "ecdsa", "256"),
        ("p384", "ecdsa", "384"),
        ("rsa", "rsa", "2048"),
    ] {
        let public = generate(folder, name, kind, bits);
        let listing = run(folder, "ssh-keygen", &["-l", "-f", &format!("{name}.pub")]);
        let listing = String::from_utf8(listing).expect("a listing is text");
        let fingerprint = listing.split(' ').nth(1).expect("it is the second word");
        let signer = Signer::from_keys(name, &format!("# Ada's\n\n{public}")).expect("a key");
        let identity: Identity = format!("ssh:{fingerprint}").parse().expect("it is one");
        assert_eq!(signer.identities(), std::slice::from_ref(&identity));

        for hash in ["sha256", "sha512"] {
            for _ in 0..8 {
                let blob = sign(folder, name, NAMESPACE, hash);
                let verdict = judged(&blob, std::slice::from_ref(&signer));
                assert!(verdict.is_accepted(), "{name} {hash}: {verdict}");
                // Without the signer it is still known whose it is.
                let verdict = judged(&blob, &[]);
                assert_eq!(verdict.verified().collect::<Vec<_>>(), [&identity]);
                assert_eq!(verdict.to_string(), format!("signed by {identity}"));
            }
        }
        let verdict = judged(&sign(folder, name, "file", "sha256"), std::slice::from_ref(&signer));
        assert!(matches!(verdict.refusal, Some(Refusal::DoesNotVerify { .. })), "{verdict}");
    }
}

#[test]
fn what_is_signed_is_this_package_and_nothing_else() {
    let folder = tempfile::tempdir().expect("there is room");
    let public = generate(folder.path(), "ed", "ed25519", "");
    let signers = [Signer::from_keys("ada", &public).expect("it is a key")];
    let blob = sign(folder.path(), "ed", NAMESPACE, "sha512");
    for subject in [
        Subject::Package { name: "acme/api", version: "1.4.0", h1: "h1:abc" },
        Subject::Package { name: "acme/web", version: "1.4.1", h1: "h1:abc" },
        Subject::Package { name: "acme/web", version: "1.4.0", h1: "h1:abd" },
        Subject::Package { name: "acme/web\n1.4.0", version: "h1:abc", h1: "" },
        Subject::Commit { id: "0", tag: None },
    ] {
        let verdict = judge(&Evidence::Sshsig(blob.clone()), &subject, &signers);
        assert!(!verdict.is_accepted() && verdict.refusal.is_some(), "{subject:?}");
    }
    for at in 0..blob.len() {
        let mut changed = blob.clone();
        changed[at] ^= 1;
        assert!(!judged(&changed, &signers).is_accepted(), "byte {at}");
        assert!(!judged(&blob[..at], &signers).is_accepted(), "{at} bytes");
    }
}

#[test]
fn weak_and_foreign_keys_are_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let folder = folder.path();
    for (name, kind, bits) in [("p521", "ecdsa", "521"), ("short", "rsa", "1024")] {
        let public = generate(folder, name, kind, bits);
        assert!(Signer::from_keys(name, &public).is_err(), "{name}");
        let verdict = judged(&sign(folder, name, NAMESPACE, "sha512"), &[]);
        assert!(matches!(verdict.refusal, Some(Refusal::Unreadable { .. })), "{verdict}");
    }
    let ada = Signer::from_keys("ada", &generate(folder, "ada", "ed25519", "")).expect("a key");
    generate(folder, "eve", "ed25519", "");
    let verdict = judged(&sign(folder, "eve", NAMESPACE, "sha512"), &[ada]);
    assert!(matches!(verdict.refusal, Some(Refusal::SomeoneElse { .. })), "{verdict}");
}

fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("it is short");
    [&length.to_be_bytes(), bytes].concat()
}

/// A security key in software: `openssl` holds the key, and what it signs is put together here, with `flags`.
struct SecurityKey<'a> {
    folder: &'a Path,
    is_ecdsa: bool,
}

impl SecurityKey<'_> {
    const APPLICATION: &'static [u8] = b"ssh:mu";

    fn kind(&self) -> &'static str {
        if self.is_ecdsa {
            "sk-ecdsa-sha2-nistp256@openssh.com"
        } else {
            "sk-ssh-ed25519@openssh.com"
        }
    }

    fn blob(&self) -> Vec<u8> {
        let spki =
            run(self.folder, "openssl", &["pkey", "-in", "sk.pem", "-pubout", "-outform", "DER"]);
        let point = if self.is_ecdsa { &spki[spki.len() - 65..] } else { &spki[spki.len() - 32..] };
        let curve = if self.is_ecdsa { string(b"nistp256") } else { Vec::new() };
        [string(self.kind().as_bytes()), curve, string(point), string(Self::APPLICATION)].concat()
    }

    fn sign(&self, flags: u8) -> Vec<u8> {
        let digest = sha256(MESSAGE.as_bytes());
        let parts = [NAMESPACE.as_bytes(), b"", b"sha256", &digest].map(string).concat();
        let inner = [b"SSHSIG", &parts[..]].concat();
        let presence = [flags, 0, 0, 0, 7];
        let message = [&sha256(Self::APPLICATION)[..], &presence, &sha256(&inner)].concat();
        std::fs::write(self.folder.join("sk"), message).expect("the folder is writable");
        let raw = if self.is_ecdsa {
            let der = run(self.folder, "openssl", &["dgst", "-sha256", "-sign", "sk.pem", "sk"]);
            // Two numbers: tag, length and content each, behind tag and length of the whole.
            let first = usize::from(der[3]);
            [string(&der[4..4 + first]), string(&der[6 + first..])].concat()
        } else {
            run(
                self.folder,
                "openssl",
                &["pkeyutl", "-sign", "-rawin", "-inkey", "sk.pem", "-in", "sk"],
            )
        };
        let signature = [string(self.kind().as_bytes()), string(&raw), presence.to_vec()].concat();
        let parts = [NAMESPACE.as_bytes(), b"", b"sha256", &signature].map(string).concat();
        [b"SSHSIG", &1_u32.to_be_bytes()[..], &string(&self.blob()), &parts].concat()
    }
}

#[test]
fn security_keys_sign_if_somebody_is_present() {
    let folder = tempfile::tempdir().expect("there is room");
    let folder = folder.path();
    for (is_ecdsa, options) in [
        (true, &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"][..]),
        (false, &["-algorithm", "ED25519"]),
    ] {
        run(folder, "openssl", &[&["genpkey", "-out", "sk.pem"], options].concat());
        let key = SecurityKey { folder, is_ecdsa };
        let line = format!("{} {} ada", key.kind(), BASE64.encode(key.blob()));
        let signers = [Signer::from_keys("ada", &line).expect("it is a key")];
        let blob = key.sign(1);
        assert!(judged(&blob, &signers).is_accepted(), "{}", judged(&blob, &signers));
        assert!(!judged(&key.sign(0), &signers).is_accepted());

        // OpenSSH agrees that it is one.
        let armour = format!(
            "-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n",
            BASE64.encode(&blob)
        );
        std::fs::write(folder.join("sk.sig"), armour).expect("the folder is writable");
        std::fs::write(folder.join("message"), MESSAGE).expect("the folder is writable");
        let command = format!("ssh-keygen -Y check-novalidate -n {NAMESPACE} -s sk.sig < message");
        run(folder, "sh", &["-c", &command]);
    }
}
