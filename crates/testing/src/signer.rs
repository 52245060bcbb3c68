//! GnuPG with a home of its own: what authors of charts sign their archives with.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::files::hex;

/// Somebody with a key of OpenPGP.
#[derive(Debug)]
pub struct Signer {
    home: TempDir,
}

impl Signer {
    /// Makes the key.
    pub fn new() -> Self {
        // The sockets of its agent are here, so the path is short.
        let home = tempfile::Builder::new().prefix("g").tempdir().expect("a folder can be made");
        let signer = Self { home };
        let key = "Key-Type: RSA\nKey-Length: 2048\nName-Real: Ada\nName-Email: ada@acme.example\n\
                   %no-protection\n%commit\n";
        signer.gpg(&["--generate-key"], key.as_bytes());
        let exported = signer.gpg(&["--export"], b"");
        fs::write(signer.keyring(), exported).expect("can be written");
        signer
    }

    /// The file with the public key.
    pub fn keyring(&self) -> PathBuf {
        self.home.path().join("public.gpg")
    }

    /// What `helm package --sign` writes beside an archive with this name: its `Chart.yaml` and its digest, signed.
    pub fn provenance(&self, manifest: &str, file: &str, archive: &[u8]) -> Vec<u8> {
        let text = format!("{manifest}\n...\nfiles:\n  {file}: sha256:{}\n", hex(archive));
        self.gpg(&["--clearsign", "--digest-algo", "SHA512"], text.as_bytes())
    }

    fn gpg(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut command = Command::new("gpg");
        command.arg("--homedir").arg(self.home.path()).args(["--batch", "--quiet", "--no-tty"]);
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("gpg can be run: `.ci/setup` brings it");
        let mut stdin = process.stdin.take().expect("is piped");
        stdin.write_all(input).expect("takes it");
        drop(stdin);
        let output = process.wait_with_output().expect("ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "gpg {arguments:?}: {said}");
        output.stdout
    }
}

impl Default for Signer {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        let mut command = Command::new("gpgconf");
        command.arg("--homedir").arg(self.home.path()).args(["--kill", "all"]);
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}
