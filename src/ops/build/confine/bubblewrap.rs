//! The walls on Linux: `bwrap` of the package bubblewrap. It gives a program namespaces of its own, in which there is nothing but what is bound
//! here, all of it read-only, and one file system in memory whose size is the limit.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{FIRST, Order, Places, SYSTEM, TRY, Unconfined, shown};
use crate::fs::FileError;

/// Where the program is. Nothing else is asked, so that nobody can put another one before it.
const PROGRAMS: [&str; 4] =
    ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// The folder of everything that a program can write, in memory.
pub(super) const WRITABLE: &str = "/build";

/// What is bound read-only: mu itself, the package, and what this depends on.
const MU: &str = "/mu/program";
const PACKAGE: &str = "/mu/package";
const PACKS: &str = "/mu/packs";

/// The size of the memory that programs share by name, as containers have it. Its locks are there, too.
const SHARED: &str = "67108864";

fn program() -> Option<&'static Path> {
    PROGRAMS.iter().map(Path::new).find(|path| path.is_file())
}

/// Runs the smallest program there is behind the same walls, so that the reason is the true one.
pub(super) fn is_supported() -> Result<String, Unconfined> {
    let Some(program) = program() else {
        return Err(Unconfined {
            why: format!("this machine cannot confine programs: there is no `{}`", PROGRAMS[0]),
            advice: "install the package `bubblewrap`, such as with `apt install bubblewrap` or `dnf install bubblewrap`".to_owned(),
        });
    };
    let mu = std::env::current_exe().unwrap_or_default();
    let mut command = Command::new(program);
    command.args(arguments(&mu, 1 << 20, &[])).args([MU, FIRST, TRY]);
    let said = match command.env_clear().stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => return Ok(program.display().to_string()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            said.lines().next().map_or_else(|| output.status.to_string(), str::to_owned)
        }
        Err(error) => error.to_string(),
    };
    Err(Unconfined {
        why: format!(
            "this machine cannot confine programs: `{}` does not work here: {said}",
            program.display()
        ),
        advice: "a container or the kernel may forbid user namespaces, and an old bubblewrap may lack an option (0.8 has all): see \
                 docs/troubleshooting.md"
            .to_owned(),
    })
}

/// The command that runs mu as the first process behind the walls.
pub(super) fn command(order: &Order<'_>, mu: &Path) -> Result<(Command, Places), FileError> {
    let packs = shown(order.dependencies)?.into_iter();
    let mut bound: Vec<_> = packs.map(|(at, from)| (Path::new(PACKS).join(at), from)).collect();
    bound.push((PACKAGE.into(), order.package.to_owned()));
    let mut command = Command::new(program().unwrap_or(Path::new(PROGRAMS[0])));
    command.args(arguments(mu, order.bytes, &bound)).args([MU, FIRST]);
    let below = |name| Path::new(WRITABLE).join(name);
    let places = Places {
        package: PACKAGE.into(),
        packs: PACKS.into(),
        tree: below("tree"),
        temporary: below("tmp"),
        home: below("home"),
    };
    Ok((command, places))
}

fn arguments(mu: &Path, bytes: u64, bound: &[(PathBuf, PathBuf)]) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut add = |words: &[&dyn AsRef<OsStr>]| {
        all.extend(words.iter().map(|word| word.as_ref().to_owned()));
    };
    // All namespaces, also where the user could do without one. It ends with mu, has no terminal, and no rights of a superuser.
    add(&[&"--unshare-all", &"--unshare-user", &"--die-with-parent", &"--new-session"]);
    add(&[&"--as-pid-1", &"--cap-drop", &"ALL"]);
    // The same on every machine.
    add(&[&"--uid", &"1000", &"--gid", &"1000", &"--hostname", &"build"]);
    // What this machine does not have is left out.
    for path in SYSTEM {
        add(&[&"--ro-bind-try", &path, &path]);
    }
    add(&[&"--ro-bind", &mu, &MU, &"--dir", &PACKS]);
    for (to, from) in bound {
        add(&[&"--ro-bind", from, to]);
    }
    // The superuser's processes could write what `/proc` has of the whole machine, without any further right.
    add(&[&"--proc", &"/proc", &"--remount-ro", &"/proc"]);
    add(&[&"--dev", &"/dev", &"--size", &SHARED, &"--tmpfs", &"/dev/shm"]);
    add(&[&"--remount-ro", &"/dev"]);
    // Everything that a build writes is in here, so the size of this file system is its limit.
    add(&[&"--size", &bytes.to_string(), &"--tmpfs", &WRITABLE]);
    add(&[&"--symlink", &"build/tmp", &"/tmp"]);
    add(&[&"--remount-ro", &"/", &"--chdir", &WRITABLE, &"--"]);
    all
}
