//! Programs of others that tests run and do not talk to over a port: Helm in both of its majors, which `.ci/setup` installs (see
//! `crates/testing/helm`); a real Secret Service, GNOME's keyring on a separate session bus; and GnuPG with a home of its own,
//! with which authors of charts sign their archives.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::files::hex;

/// The program of one version of Helm.
#[derive(Debug)]
pub struct Helm {
    program: PathBuf,
}

impl Helm {
    /// Helm 3 and Helm 4.
    pub fn all() -> [Self; 2] {
        ["helm3", "helm4"].map(|name| {
            let program = crate::file(&format!("../../target/helm/{name}"));
            assert!(program.is_file(), "{} is missing, `.ci/setup` brings it", program.display());
            Self { program }
        })
    }

    /// Runs it with a home in `home`; returns what it printed, or what it said against it.
    ///
    /// # Errors
    ///
    /// When it fails.
    pub fn run(&self, home: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().env("HOME", home);
        let output = command.output().expect("Helm can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    /// What it makes of the chart in a folder: each template's text, by its path.
    pub fn template(&self, home: &Path, chart: &Path) -> BTreeMap<String, String> {
        let chart = chart.to_str().expect("is UTF-8");
        let shown = self.run(home, &["template", "demo", chart]);
        let shown = shown.unwrap_or_else(|error| panic!("{self:?} cannot render {chart}: {error}"));
        let parts = shown.split("---\n# Source: ").skip(1);
        parts.map(|part| part.split_once('\n').expect("has lines")).map(owned).collect()
    }
}

fn owned((path, text): (&str, &str)) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

/// The keyring and its bus; both end when this is dropped.
#[derive(Debug)]
pub struct Keyring {
    address: String,
    bus: Child,
    daemon: Child,
}

impl Keyring {
    /// Starts it with all its files in an empty folder.
    pub fn start(folder: &Path) -> Self {
        let run = folder.join("run");
        fs::create_dir_all(&run).expect("is ours");
        fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).expect("is ours");
        let mut bus = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address"])
            .env("XDG_RUNTIME_DIR", &run)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("these tests need dbus-daemon: `.ci/setup` installs it");
        let mut address = String::new();
        let mut said = BufReader::new(bus.stdout.take().expect("is piped"));
        said.read_line(&mut address).expect("is text");
        let address = address.trim();
        let mut daemon = Command::new("gnome-keyring-daemon")
            .args(["--foreground", "--unlock", "--components=secrets"])
            .env("DBUS_SESSION_BUS_ADDRESS", address)
            .env("XDG_RUNTIME_DIR", &run)
            .env("HOME", folder)
            .env("XDG_DATA_HOME", folder.join("data"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("these tests need gnome-keyring-daemon: `.ci/setup` installs it");
        let mut password = daemon.stdin.take().expect("is piped");
        password.write_all(b"of the keyring\n").expect("is read");
        drop(password);
        while !is_there(address) {
            let ended = daemon.try_wait().expect("is a child");
            assert!(ended.is_none(), "gnome-keyring-daemon does not start: {ended:?}");
        }
        Self { address: address.to_owned(), bus, daemon }
    }

    /// The variable that leads to it.
    pub fn variable(&self) -> (&str, &str) {
        ("DBUS_SESSION_BUS_ADDRESS", &self.address)
    }
}

/// Whether somebody answers for the keyring.
fn is_there(address: &str) -> bool {
    let asked = Command::new("dbus-send")
        .env("DBUS_SESSION_BUS_ADDRESS", address)
        .args(["--session", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/"])
        .args(["org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"])
        .output()
        .expect("these tests need dbus-send: `.ci/setup` installs it");
    String::from_utf8_lossy(&asked.stdout).contains("true")
}

impl Drop for Keyring {
    fn drop(&mut self) {
        for process in [&mut self.daemon, &mut self.bus] {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Somebody with a key of OpenPGP.
#[derive(Debug)]
pub struct Signer {
    home: TempDir,
}

impl Signer {
    /// Makes the key: RSA, which Helm reads.
    pub fn new() -> Self {
        Self::with("Key-Type: RSA\nKey-Length: 2048\n")
    }

    /// Makes a key of the kind that these parameters of `gpg --generate-key` describe.
    pub fn with(kind: &str) -> Self {
        // The sockets of its agent are here, so the path is short.
        let home = tempfile::Builder::new().prefix("g").tempdir().expect("a folder can be made");
        let signer = Self { home };
        let key = format!(
            "{kind}Name-Real: Ada\nName-Email: ada@acme.example\n%no-protection\n%commit\n"
        );
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
        self.clearsign(&text, "SHA512")
    }

    /// A text with its signature, made with this digest.
    pub fn clearsign(&self, text: &str, digest: &str) -> Vec<u8> {
        self.gpg(&["--clearsign", "--digest-algo", digest], text.as_bytes())
    }

    /// The text of the public key.
    pub fn public(&self) -> String {
        String::from_utf8(self.gpg(&["--export", "--armor"], b"")).expect("is ASCII")
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
