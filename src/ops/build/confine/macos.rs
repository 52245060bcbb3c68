//! Confinement by macOS: `sandbox-exec`, which comes with the system, runs a program under a profile. The profile refuses everything
//! that it does not allow.

use std::path::Path;
use std::process::Command;

use super::{FIRST, Order, SYSTEM, Unconfined};

const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Whether the system has the program.
pub(super) fn is_supported() -> Result<String, Unconfined> {
    match Path::new(PROGRAM).is_file() {
        true => Ok(PROGRAM.to_owned()),
        false => Err(Unconfined {
            why: format!("this machine cannot confine programs: there is no `{PROGRAM}`"),
            advice: "it comes with macOS".to_owned(),
        }),
    }
}

/// The command that runs mu as the first process, under the profile.
pub(super) fn command(order: &Order<'_>, mu: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("-p").arg(profile(order, mu)).arg(mu).arg(FIRST);
    command
}

fn profile(order: &Order<'_>, mu: &Path) -> String {
    let mut text = String::from(
        "(version 1)\n(deny default)\n(allow process-fork)\n(allow process-exec)\n(allow signal (target same-sandbox))\n(allow sysctl-read)\n\
         (allow file-read-metadata)\n(allow file-read* (subpath \"/System\") (subpath \"/Library/Developer\") (subpath \"/private/var/db/dyld\") \
         (literal \"/\") (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/urandom\") (literal \"/dev/random\"))\n\
         (allow file-write* (literal \"/dev/null\"))\n",
    );
    let quoted = |path: &Path| {
        // The path without links is what the system compares.
        let path = crate::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let path = path.to_string_lossy();
        format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
    };
    let given = order.dependencies.values().map(|folder| &**folder).chain([order.package, mu]);
    for path in SYSTEM.iter().map(Path::new).chain(given) {
        text.push_str(&format!("(allow file-read* (subpath {}))\n", quoted(path)));
    }
    text.push_str(&format!("(allow file-read* file-write* (subpath {}))\n", quoted(order.work)));
    text
}
