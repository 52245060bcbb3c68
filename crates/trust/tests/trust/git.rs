//! Commits and tags that `git` signs with SSH and OpenPGP keys, and what must not pass for one that was asked for.

use std::path::Path;

use mu_trust::{Evidence, GitKind, Refusal, Signer, Subject, Verdict};

use crate::openpgp::Gpg;
use crate::ssh::generate;
use crate::{hex, judge, run};

/// A repository with a signed commit and tags.
struct Repository<'a> {
    folder: &'a Path,
}

impl<'a> Repository<'a> {
    fn new(folder: &'a Path, hash: &str, key: &[&str]) -> Self {
        run(folder, "git", &["init", "-q", "--object-format", hash, "."]);
        let repository = Self { folder };
        for pair in [&["user.name", "Ada"], &["user.email", "ada@acme.com"]] {
            run(folder, "git", &[&["config"], &pair[..]].concat());
        }
        for pair in key.chunks(2) {
            run(folder, "git", &[&["config"], pair].concat());
        }
        repository.git(&["commit", "-q", "-S", "--allow-empty", "-m", "signed\n\ngpgsig none"]);
        repository
    }

    fn git(&self, arguments: &[&str]) -> Vec<u8> {
        run(self.folder, "git", arguments)
    }

    fn id(&self, of: &str) -> String {
        let id = self.git(&["rev-parse", of]);
        String::from_utf8(id).expect("an id is text").trim().to_owned()
    }

    fn object(&self, kind: GitKind, of: &str) -> Evidence {
        let word = if kind == GitKind::Tag { "tag" } else { "commit" };
        Evidence::Git { kind, object: self.git(&["cat-file", word, of]) }
    }
}

fn commit(id: &str) -> Subject<'_> {
    Subject::Commit { id, tag: None }
}

fn tagged<'a>(id: &'a str, tag: &'a str) -> Subject<'a> {
    Subject::Commit { id, tag: Some(tag) }
}

fn is_other(verdict: &Verdict) -> bool {
    matches!(verdict.refusal, Some(Refusal::OtherSubject { .. })) && !verdict.is_accepted()
}

/// What holds for each kind of key, and each hash of a repository.
fn check(repository: &Repository<'_>, signers: &[Signer]) {
    let id = repository.id("HEAD");
    repository.git(&["tag", "-s", "-m", "signed", "v1.4.0"]);
    repository.git(&["verify-commit", "HEAD"]);
    repository.git(&["verify-tag", "v1.4.0"]);

    // A lightweight tag is the commit itself.
    let signed = repository.object(GitKind::Commit, "HEAD");
    let verdict = judge(&signed, &commit(&id), signers);
    assert!(verdict.is_accepted(), "{verdict}");
    let tag = repository.object(GitKind::Tag, "v1.4.0");
    let verdict = judge(&tag, &tagged(&id, "v1.4.0"), signers);
    assert!(verdict.is_accepted(), "{verdict}");

    // Only what was asked for counts.
    assert!(is_other(&judge(&tag, &tagged(&id, "v1.4.1"), signers)));
    assert!(is_other(&judge(&tag, &commit(&id), signers)));
    assert!(is_other(&judge(&signed, &tagged(&id, "v1.4.0"), signers)));
    let other = "0".repeat(id.len());
    assert!(is_other(&judge(&signed, &commit(&other), signers)));
    assert!(is_other(&judge(&tag, &tagged(&other, "v1.4.0"), signers)));

    // A tag that leads to a tag, and an unsigned one over a signed commit.
    repository.git(&["tag", "-s", "-m", "nested", "outer", "v1.4.0"]);
    let nested = repository.object(GitKind::Tag, "outer");
    assert!(is_other(&judge(&nested, &tagged(&id, "outer"), signers)));
    repository.git(&["tag", "-a", "-m", "unsigned", "plain"]);
    let plain = repository.object(GitKind::Tag, "plain");
    let verdict = judge(&plain, &tagged(&id, "plain"), signers);
    assert_eq!(verdict.refusal, Some(Refusal::NoSignature));
    repository.git(&["commit", "-q", "--allow-empty", "-m", "unsigned"]);
    let unsigned = repository.object(GitKind::Commit, "HEAD");
    let verdict = judge(&unsigned, &commit(&repository.id("HEAD")), signers);
    assert_eq!(verdict.refusal, Some(Refusal::NoSignature));

    let Evidence::Git { object, .. } = tag else { unreachable!("it is a tag") };
    let end = String::from_utf8_lossy(&object).find("-----BEGIN").expect("it is signed");
    for at in 0..end {
        let mut object = object.clone();
        object[at] ^= 1;
        let tag = Evidence::Git { kind: GitKind::Tag, object };
        assert!(!judge(&tag, &tagged(&id, "v1.4.0"), signers).is_accepted(), "byte {at}");
    }
    // A commit with another one's signature has an id of its own.
    let Evidence::Git { object, .. } = signed else { unreachable!("it is a commit") };
    let forged = String::from_utf8(object).expect("it is text").replace("signed\n", "forged\n");
    let whole = format!("commit {}\0{forged}", forged.len());
    let algorithm = match id.len() {
        64 => &ring::digest::SHA256,
        _ => &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
    };
    let id = hex(ring::digest::digest(algorithm, whole.as_bytes()).as_ref());
    let forged = Evidence::Git { kind: GitKind::Commit, object: forged.into_bytes() };
    let verdict = judge(&forged, &commit(&id), signers);
    assert!(matches!(verdict.refusal, Some(Refusal::DoesNotVerify { .. })), "{verdict}");
}

#[test]
fn ssh_keys_sign_commits_and_tags() {
    for (hash, kind, bits) in
        [("sha1", "ed25519", ""), ("sha256", "ecdsa", "256"), ("sha1", "rsa", "2048")]
    {
        let folder = tempfile::tempdir().expect("there is room");
        let public = generate(folder.path(), "key", kind, bits);
        std::fs::write(folder.path().join("allowed"), format!("* {public}")).expect("writable");
        let key = [
            "gpg.format",
            "ssh",
            "user.signingkey",
            "key.pub",
            "gpg.ssh.allowedSignersFile",
            "allowed",
        ];
        let repository = Repository::new(folder.path(), hash, &key);
        check(&repository, &[Signer::from_keys("ada", &public).expect("it is a key")]);
    }
}

#[test]
fn pgp_keys_sign_commits_and_tags() {
    for (hash, algorithm) in [("sha1", "ed25519"), ("sha256", "rsa2048")] {
        let gpg = Gpg::new();
        gpg.generate("ada", algorithm);
        let repository = Repository::new(gpg.path(), hash, &["user.signingkey", "ada"]);
        check(&repository, &[gpg.signer("ada")]);
    }
}

#[test]
fn a_key_of_another_kind_accepts_nothing() {
    let gpg = Gpg::new();
    gpg.generate("ada", "ed25519");
    let repository = Repository::new(gpg.path(), "sha1", &["user.signingkey", "ada"]);
    let public = generate(gpg.path(), "key", "ed25519", "");
    let signers = [Signer::from_keys("eve", &public).expect("it is a key")];
    let signed = repository.object(GitKind::Commit, "HEAD");
    let verdict = judge(&signed, &commit(&repository.id("HEAD")), &signers);
    let words = format!("signed by PGP key {}, which is not `eve`", gpg.fingerprint("ada"));
    assert_eq!(verdict.to_string(), words);
}
