//! A real Secret Service: GNOME's keyring on a separate session bus, unlocked with a test password.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

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
