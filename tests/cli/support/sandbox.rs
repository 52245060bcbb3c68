//! A separate machine: home, cache, runtime, a workspace, and a hub in a folder.
//!
//! `hub.mu.com/` always leads to a place of the test, so that nothing can reach the internet.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{Hub, Package, Run, recorder, tree, write};

/// A machine of one's own.
pub(crate) struct Sandbox {
    folder: TempDir,
    variables: BTreeMap<String, String>,
    replaced: Vec<(String, &'static str)>,
}

impl Sandbox {
    /// An empty workspace, and an empty hub that `hub.mu.com/` leads to.
    pub(crate) fn new() -> Self {
        let folder = mu_testing::temporary_folder();
        let root = folder.path().to_str().expect("temporary folders are UTF-8").to_owned();
        let mut sandbox =
            Self { folder, variables: BTreeMap::new(), replaced: vec![(root, "[DIR]")] };
        for part in ["home", "runtime", "work/.mu"] {
            fs::create_dir_all(sandbox.path(part)).expect("can be made");
        }
        let path = std::env::var("PATH").expect("the tests find git on the path");
        sandbox.set("PATH", &path);
        for (name, part) in [
            ("HOME", "home"),
            ("MU_HOME", "home/.mu"),
            ("MU_CACHE_DIR", "cache"),
            ("MUROOT", "runtime"),
        ] {
            let value = sandbox.path(part).display().to_string();
            sandbox.set(name, &value);
        }
        sandbox.set("GIT_CONFIG_GLOBAL", "/dev/null");
        sandbox.set("GIT_CONFIG_NOSYSTEM", "1");
        // No test uses the keyring of the user who runs it.
        let bus = format!("unix:path={}", sandbox.path("no-bus").display());
        sandbox.set("DBUS_SESSION_BUS_ADDRESS", &bus);
        // The workspace begins here, whatever is in the folders above.
        sandbox.write(".mu/workspace.yaml", "");
        Hub::new(&sandbox.path("hub"));
        let hub = format!("file://{}/", sandbox.path("hub").display());
        sandbox.hub_is_at(&hub);
        sandbox
    }

    /// An empty workspace whose own package is `acme/web`, with these dependencies.
    pub(crate) fn with_dependencies(dependencies: &[&str]) -> Self {
        let sandbox = Self::new();
        sandbox.asks_for(dependencies);
        sandbox
    }

    /// Makes the workspace's own package depend on these, and on nothing else.
    pub(crate) fn asks_for(&self, dependencies: &[&str]) {
        let mut text = "name: acme/web\nversion: 0.1.0\n".to_owned();
        if !dependencies.is_empty() {
            text.push_str("dependencies:\n");
        }
        for dependency in dependencies {
            text.push_str(&format!("  - {dependency}\n"));
        }
        self.write("Mu.yaml", &text);
    }

    /// A path in the sandbox: `home/…`, `cache/…`, `runtime/…`, `hub/…`, `work/…`.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// The folder around all the others.
    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The hub in the folder.
    pub(crate) fn hub(&self) -> Hub {
        Hub::new(&self.path("hub"))
    }

    /// Publishes in the hub in the folder.
    pub(crate) fn publish(&self, packages: &[Package]) {
        let hub = self.hub();
        for package in packages {
            hub.publish(package);
        }
    }

    /// Publishes versions with their dependencies, one on each line: `aws/app 1.0.0: aws/vpc#^2 aws/log`.
    pub(crate) fn offer(&self, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (package, needs) = line.split_once(':').expect("has a colon");
            let (name, version) = package.split_once(' ').expect("has a version");
            let needs = needs.split_whitespace();
            self.publish(&[needs.fold(Package::new(name, version), Package::needs)]);
        }
    }

    /// Sets `hub.mu.com/` in `~/.mu/config.yaml`.
    pub(crate) fn hub_is_at(&self, url: &str) {
        let text = format!("registries:\n  hub.mu.com/: \"{url}\"\n");
        write(self.folder.path(), "home/.mu/config.yaml", text);
    }

    /// Trusts a folder of the sandbox, outside of the workspace, in `~/.mu/config.yaml`.
    pub(crate) fn trusts_folder(&self, folder: &str) {
        let config = self.path("home/.mu/config.yaml");
        let text = fs::read_to_string(config).expect("is there");
        let folder = self.path(folder).display().to_string();
        let text = format!("{text}trust: {{folders: [\"{folder}\"]}}\n");
        write(self.folder.path(), "home/.mu/config.yaml", text);
    }

    /// Sets an environment variable of every later run.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    /// Sets environment variables of every later run.
    pub(crate) fn set_all<'all>(
        &mut self,
        variables: impl IntoIterator<Item = (&'all str, &'all str)>,
    ) {
        variables.into_iter().for_each(|(name, value)| self.set(name, value));
    }

    /// Gives every later run the token for a host, in its variable.
    pub(crate) fn set_token(&mut self, host_and_port: &str, token: &str) {
        let variable = mu_provider::http::token_variable(host_and_port);
        self.set(&variable.expect("the host has a variable"), token);
    }

    /// Prints `by` in place of `what`, which differs in each run of the tests.
    pub(crate) fn replace(&mut self, what: &str, by: &'static str) {
        self.replaced.push((what.to_owned(), by));
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, path: &str, text: &str) {
        write(&self.path("work"), path, text);
    }

    /// Reads a file of the workspace.
    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.path("work").join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Whether a path of the sandbox is there.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    /// Writes a package into a folder of the sandbox.
    pub(crate) fn place(&self, folder: &str, package: &Package) {
        package.write_into(&self.path(folder));
    }

    /// Every file in the workspace and the home folder.
    pub(crate) fn state(&self) -> BTreeMap<String, (char, Vec<u8>)> {
        let mut files = tree(&self.path("work"));
        let home = tree(&self.path("home"));
        files.extend(home.into_iter().map(|(path, file)| (format!("~/{path}"), file)));
        files
    }

    /// The lock, as data.
    #[track_caller]
    pub(crate) fn lock(&self) -> Value {
        serde_yaml::from_str(&self.read("Mu.lock")).expect("the lock is YAML")
    }

    /// `ID VERSION` of everything in the lock.
    #[track_caller]
    pub(crate) fn locked(&self) -> Vec<String> {
        let lock = self.lock();
        let packages = lock["packages"].as_array().expect("is a list");
        let text = |value: &Value| value.as_str().expect("is text").to_owned();
        packages
            .iter()
            .map(|package| format!("{} {}", text(&package["id"]), text(&package["version"])))
            .collect()
    }

    /// A `mu` that is ready to run in the workspace.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(tested_program(), arguments)
    }

    /// Another build of `mu` that is ready to run in the workspace.
    pub(crate) fn command_of(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env_clear()
            .envs(&self.variables)
            .stdin(Stdio::null());
        command
    }

    /// Runs `mu` in the workspace.
    pub(crate) fn mu(&self, arguments: &[&str]) -> Run {
        self.run(arguments, self.command(arguments))
    }

    /// Runs `mu` in a folder of the sandbox.
    pub(crate) fn mu_in(&self, folder: &str, arguments: &[&str]) -> Run {
        let mut command = self.command(arguments);
        command.current_dir(self.path(folder));
        self.run(arguments, command)
    }

    /// Pastes a command line into a shell, in the workspace: `bash`, or `zsh` as the users have it who want the most of
    /// its patterns.
    pub(crate) fn shell(&self, shell: &str, line: &str) -> Run {
        let programs = Path::new(env!("CARGO_BIN_EXE_mu")).parent().expect("is in a folder");
        let mut path = programs.as_os_str().to_owned();
        path.push(":");
        path.push(&self.variables["PATH"]);
        let mut command = Command::new(mu_testing::program(shell));
        if shell == "zsh" {
            command.args(["--no-rcs", "-o", "extendedglob"]);
        }
        let command = command.args(["-c", line]).env_clear().envs(&self.variables);
        command.env("PATH", path).current_dir(self.path("work")).stdin(Stdio::null());
        let output = command.output().unwrap_or_else(|error| panic!("{shell}: {error}"));
        super::hints::try_all(self.folder.path(), command, &output);
        Run::new(line, &output, &self.replaced)
    }

    /// Runs `mu` in the workspace, and returns how much memory it had at its peak, in KiB.
    pub(crate) fn peak(&self, arguments: &[&str]) -> (Run, u64) {
        // Only who waits for a program learns of its peak, and the standard library does not ask.
        const WAIT: &str = "import os, sys\n\
            program = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)\n\
            _, status, usage = os.wait4(program, 0)\n\
            open(sys.argv[1], 'w').write(str(usage.ru_maxrss))\n\
            sys.exit(os.waitstatus_to_exitcode(status) & 255)\n";
        let told = self.path("peak");
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", WAIT]).arg(&told).arg(tested_program()).args(arguments);
        command.env_clear().envs(&self.variables);
        command.current_dir(self.path("work")).stdin(Stdio::null());
        let run = self.run(arguments, command);
        let peak = std::fs::read_to_string(told).expect("was measured");
        (run, peak.parse().expect("is a number"))
    }

    /// Runs a prepared `mu`.
    pub(crate) fn run(&self, arguments: &[&str], mut command: Command) -> Run {
        let output = command.output().expect("mu can be run");
        super::hints::try_all(self.folder.path(), &command, &output);
        let run = Run::new(&format!("mu {}", arguments.join(" ")), &output, &self.replaced);
        recorder::record(&run, &self.path("work"), &self.replaced);
        run
    }
}

/// The `mu` that is tested: another build, if the environment names one.
fn tested_program() -> OsString {
    let other = std::env::var_os("MU_TESTED_PROGRAM");
    other.unwrap_or_else(|| env!("CARGO_BIN_EXE_mu").into())
}
