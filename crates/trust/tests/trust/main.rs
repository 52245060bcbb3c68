//! What the verification of evidence promises, against signatures that the field's own programs make, and sigstore's conformance suite.

#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

mod conformance;
mod git;
mod hostile;
mod keyless;
mod keys;
mod openpgp;
mod ssh;

use std::path::Path;
use std::process::{Command, Stdio};

use mu_trust::{Evidence, Roots, Signer, Subject, Verdict};

/// Runs a program of the system in a folder, and returns what it prints. `.ci/setup` installs them.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .env("GNUPGHOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program} starts: {error}"));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {words}");
    output.stdout
}

/// The SHA-256 of bytes.
fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().try_into().expect("it has 32 bytes")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Content that is here.
fn content(bytes: &[u8]) -> Subject<'_> {
    Subject::Content { sha256: sha256(bytes), bytes: Some(bytes), file: None }
}

/// The verdict by these signers, without roots.
fn judge(evidence: &Evidence, subject: &Subject<'_>, signers: &[Signer]) -> Verdict {
    mu_trust::verify(evidence, subject, signers, &Roots::none())
}
