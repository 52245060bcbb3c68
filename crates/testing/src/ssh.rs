//! A real `sshd`, with its own host key and account, and the agent that holds the account's key.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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
    let output = command.stdin(Stdio::null()).output();
    let output = output.expect("these tests need OpenSSH: `.ci/setup` installs it");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {words}");
    String::from_utf8(output.stdout).expect("is text").trim().to_owned()
}
