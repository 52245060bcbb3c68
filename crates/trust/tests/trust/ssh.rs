//! SSH signatures over packages, which `ssh-keygen` makes or, of security keys, checks.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mu_testing::SecurityKey;
use mu_trust::{Evidence, Identity, Refusal, Signer, Subject, Verdict};

use crate::{judge, run};

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
    unarmoured(&std::fs::read_to_string(folder.join("message.sig")).expect("it signed"))
}

fn unarmoured(armour: &str) -> Vec<u8> {
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

#[test]
fn security_keys_sign_if_somebody_is_present() {
    let folder = tempfile::tempdir().expect("there is room");
    let folder = folder.path();
    for is_ecdsa in [true, false] {
        let key = SecurityKey::new(is_ecdsa);
        let signers = [Signer::from_keys("ada", &key.public()).expect("it is a key")];
        let judged = |armour: &str| judged(&unarmoured(armour), &signers);
        let armour = key.sign(NAMESPACE, MESSAGE.as_bytes(), true);
        assert!(judged(&armour).is_accepted(), "{}", judged(&armour));
        assert!(!judged(&key.sign(NAMESPACE, MESSAGE.as_bytes(), false)).is_accepted());

        // OpenSSH agrees that it is one.
        std::fs::write(folder.join("sk.sig"), armour).expect("the folder is writable");
        std::fs::write(folder.join("message"), MESSAGE).expect("the folder is writable");
        let command = format!("ssh-keygen -Y check-novalidate -n {NAMESPACE} -s sk.sig < message");
        run(folder, "sh", &["-c", &command]);
    }
}
