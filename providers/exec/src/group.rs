//! The process group of a plugin: the plugin, what it has started, and a guard.
//!
//! The guard is a shell that waits for the end of its input, which only mu holds. So however mu ends, the guard ends the group,
//! also a plugin that is busy and does not see the end of its own input. No process outlives the plugin in its group.

use std::io;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use std::sync::Mutex;

use mu_provider::threads::lock;

/// A plugin and what it has started.
pub(crate) struct Group(Mutex<Option<Members>>);

/// The pipes to a plugin: its standard input, output and error.
pub(crate) type Pipes = (ChildStdin, ChildStdout, ChildStderr);

/// The processes that mu waits for; until then, their numbers are theirs.
struct Members {
    plugin: Child,
    /// The process that leads the group.
    #[cfg(unix)]
    guard: Option<Child>,
}

impl Group {
    /// Starts a plugin in a group of its own, which Ctrl-C does not reach. Its pipes are still in the child. The guard is there
    /// first, so there is no moment at which mu can end and leave a plugin behind.
    pub(crate) fn start(command: &mut Command) -> io::Result<(Self, Pipes)> {
        #[cfg(unix)]
        let mut guard = guard();
        #[cfg(unix)]
        {
            let group = guard.as_ref().and_then(|guard| i32::try_from(guard.id()).ok());
            std::os::unix::process::CommandExt::process_group(command, group.unwrap_or(0));
        }
        let started = command.spawn();
        #[cfg(unix)]
        if let (Err(_), Some(guard)) = (&started, &mut guard) {
            // It ends with its input.
            let _ = guard.wait();
        }
        let mut plugin = started?;
        let pipes = (plugin.stdin.take(), plugin.stdout.take(), plugin.stderr.take());
        let members = Members {
            plugin,
            #[cfg(unix)]
            guard,
        };
        let group = Self(Mutex::new(Some(members)));
        match pipes {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((group, (stdin, stdout, stderr))),
            _ => {
                group.end();
                Err(io::Error::other("it was started without pipes"))
            }
        }
    }

    /// Ends the plugin, and what it has started.
    pub(crate) fn end(&self) {
        let Some(mut members) = lock(&self.0).take() else { return };
        members.kill();
        let _ = members.plugin.kill();
        let _ = members.plugin.wait();
        #[cfg(unix)]
        if let Some(mut guard) = members.guard {
            let _ = guard.wait();
        }
    }

    /// Waits until the plugin itself has ended, and ends what it has left. Returns whether this system can wait so.
    pub(crate) fn outlast(&self) -> bool {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

            let plugin = lock(&self.0).as_ref().map(|members| Pid::from_child(&members.plugin));
            let Some(plugin) = plugin else { return true };
            // It is only looked at, so that its number stays that of the group.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(plugin), options), Err(rustix::io::Errno::INTR)) {}
            if let Some(members) = &mut *lock(&self.0) {
                members.kill();
            }
        }
        cfg!(unix)
    }
}

impl Members {
    fn kill(&mut self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};

            let leader = self.guard.as_ref().unwrap_or(&self.plugin);
            let _ = kill_process_group(Pid::from_child(leader), Signal::KILL);
        }
    }
}

/// Starts the guard of a group, which it leads. Without one, a plugin sees that mu has ended only at the end of its input.
#[cfg(unix)]
fn guard() -> Option<Child> {
    use std::os::unix::process::CommandExt as _;
    use std::path::Path;
    use std::process::Stdio;

    use mu_provider::Program;

    let nothing: [(&str, &str); 0] = [];
    let mut command = Program::at(Path::new("/bin/sh"))?.command(nothing);
    command.args(["-c", "read -r _; kill -s KILL 0"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().ok()
}
