//! A real `sshd`, with its own host key and account, and the agent that holds the account's key; and a security key in software, which
//! signs as one does that somebody touches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::listener::Listener;

/// `sshd` on a free port. It accepts only the agent's key, and only for fetching.
#[derive(Debug)]
pub struct SshServer {
    folder: TempDir,
    user: String,
    listener: Listener,
    agent: Child,
}

impl SshServer {
    /// Serves the repositories below `root`, as hosts do: paths begin there.
    pub fn start(root: &Path) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let user = said(Command::new("id").arg("-un"));
        for name in ["host", "user"] {
            let key = folder.path().join(name);
            said(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(key));
        }
        let agent = start_agent(folder.path());
        // A server that root starts needs this folder, which usually the boot process creates.
        let _ = fs::create_dir_all("/run/sshd");
        let settings = folder.path().join("sshd.conf");
        let listener = Listener::inetd(move || {
            let mut command = Command::new("/usr/sbin/sshd");
            command.arg("-i").arg("-f").arg(&settings);
            command
        });
        let server = Self { user, listener, agent, folder };
        server.write_settings(root);
        server
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("can be written");
    }

    fn write_settings(&self, root: &Path) {
        let shown = |name: &str| self.path(name).display().to_string();
        let path = std::env::var("PATH").expect("the tests find git on the path");
        let script = format!(
            "#!/bin/sh\nPATH='{path}'\nexport PATH GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1\n\
             export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'\n\
             case $SSH_ORIGINAL_COMMAND in \"git-upload-pack '\"*) ;; *) echo 'fetching only' >&2; exit 1;; esac\n\
             path=${{SSH_ORIGINAL_COMMAND#\"git-upload-pack '\"}}\npath=${{path%\"'\"}}\n\
             exec git upload-pack '{root}'/\"${{path#/}}\"\n",
            root = root.display(),
        );
        self.write("serve", &script);
        self.write(
            "sshd.conf",
            &format!(
                "HostKey {}\nAuthorizedKeysFile {}\nForceCommand /bin/sh {}\nAcceptEnv GIT_PROTOCOL\n\
                 PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
                 StrictModes no\nUsePAM no\nPidFile none\nLogLevel QUIET\n",
                shown("host"),
                shown("user.pub"),
                shown("serve"),
            ),
        );
        let key = fs::read_to_string(self.path("host.pub")).expect("was made");
        self.write("known_hosts", &format!("git.example {key}"));
        self.write(
            "ssh.conf",
            &format!(
                "Host git.example\n  HostName 127.0.0.1\n  HostKeyAlias git.example\n  Port {}\n\
                 Host *\n  StrictHostKeyChecking yes\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile none\n",
                self.listener.address().port(),
                shown("known_hosts"),
            ),
        );
    }

    /// The account on the server.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// A command for GIT_SSH_COMMAND, to which the server is the host `git.example`.
    pub fn command(&self) -> String {
        format!("ssh -F {}", self.path("ssh.conf").display())
    }

    /// The socket of the agent, which is the only place with the key.
    pub fn agent(&self) -> String {
        self.path("agent").display().to_string()
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.listener.connections()
    }

    /// Makes clients believe that they talk to a different machine.
    pub fn change_known_host(&self) {
        let key = fs::read_to_string(self.path("user.pub")).expect("was made");
        self.write("known_hosts", &format!("git.example {key}"));
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

/// An agent that holds the key in `folder`, which is then removed from the disk.
fn start_agent(folder: &Path) -> Child {
    use std::io::BufRead as _;
    let (socket, key) = (folder.join("agent"), folder.join("user"));
    let mut agent = Command::new("ssh-agent")
        .args(["-D", "-a"])
        .arg(&socket)
        .stdout(Stdio::piped())
        .spawn()
        .expect("these tests need ssh-agent: `.ci/setup` installs it");
    // It prints where it listens once it does.
    let mut line = String::new();
    let output = agent.stdout.take().expect("is piped");
    std::io::BufReader::new(output).read_line(&mut line).expect("prints text");
    said(Command::new("ssh-add").arg("-q").arg(&key).env("SSH_AUTH_SOCK", &socket));
    fs::remove_file(key).expect("was made");
    agent
}

fn said(command: &mut Command) -> String {
    String::from_utf8(run(command)).expect("is text").trim().to_owned()
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.expect("these tests need OpenSSH and openssl: `.ci/setup` installs them");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {words}");
    output.stdout
}

/// A security key: `openssl` holds the key, and what the device puts around a message is put together here.
#[derive(Debug)]
pub struct SecurityKey {
    folder: TempDir,
    is_ecdsa: bool,
}

impl SecurityKey {
    const APPLICATION: &'static [u8] = b"ssh:";

    /// Makes one: of ECDSA, or else Ed25519.
    pub fn new(is_ecdsa: bool) -> Self {
        let key = Self { folder: tempfile::tempdir().expect("there is room"), is_ecdsa };
        let options: &[&str] = match is_ecdsa {
            true => &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
            false => &["-algorithm", "ED25519"],
        };
        key.openssl(&[&["genpkey", "-out", "sk.pem"], options].concat());
        key
    }

    /// The line of its public key.
    pub fn public(&self) -> String {
        format!("{} {} ada@acme", self.kind(), BASE64.encode(self.blob()))
    }

    /// What `ssh-keygen -Y sign` writes over a message, if somebody touches the key; without a touch, it is worth nothing.
    pub fn sign(&self, namespace: &str, message: &[u8], is_touched: bool) -> String {
        let digest = Sha256::digest(message);
        let parts = [namespace.as_bytes(), b"", b"sha256", &digest].map(string).concat();
        let inner = [b"SSHSIG", &parts[..]].concat();
        // Whether it was touched, and how often it has signed.
        let state = [u8::from(is_touched), 0, 0, 0, 7];
        let application = Sha256::digest(Self::APPLICATION);
        let signed = [&application[..], &state, &Sha256::digest(&inner)[..]].concat();
        fs::write(self.folder.path().join("signed"), signed).expect("can be written");
        let raw = if self.is_ecdsa {
            let der = self.openssl(&["dgst", "-sha256", "-sign", "sk.pem", "signed"]);
            // Two numbers: tag, length and content each, behind tag and length of the whole.
            let first = usize::from(der[3]);
            [string(&der[4..4 + first]), string(&der[6 + first..])].concat()
        } else {
            self.openssl(&["pkeyutl", "-sign", "-rawin", "-inkey", "sk.pem", "-in", "signed"])
        };
        let signature = [string(self.kind().as_bytes()), string(&raw), state.to_vec()].concat();
        let parts = [namespace.as_bytes(), b"", b"sha256", &signature].map(string).concat();
        let blob = [b"SSHSIG", &1_u32.to_be_bytes()[..], &string(&self.blob()), &parts].concat();
        let text = BASE64.encode(blob);
        format!("-----BEGIN SSH SIGNATURE-----\n{text}\n-----END SSH SIGNATURE-----\n")
    }

    fn kind(&self) -> &'static str {
        match self.is_ecdsa {
            true => "sk-ecdsa-sha2-nistp256@openssh.com",
            false => "sk-ssh-ed25519@openssh.com",
        }
    }

    fn blob(&self) -> Vec<u8> {
        let spki = self.openssl(&["pkey", "-in", "sk.pem", "-pubout", "-outform", "DER"]);
        let length = if self.is_ecdsa { 65 } else { 32 };
        let curve = if self.is_ecdsa { string(b"nistp256") } else { Vec::new() };
        let point = string(&spki[spki.len() - length..]);
        [string(self.kind().as_bytes()), curve, point, string(Self::APPLICATION)].concat()
    }

    fn openssl(&self, arguments: &[&str]) -> Vec<u8> {
        run(Command::new("openssl").args(arguments).current_dir(self.folder.path()))
    }
}

/// A string as SSH writes it (RFC 4251).
fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("is short");
    [&length.to_be_bytes(), bytes].concat()
}
