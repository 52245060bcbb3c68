//! Machines with little: a small stack, little address space, and an answer that cannot be written.

use crate::support::Sandbox;

#[test]
fn a_small_stack_and_little_address_space_are_enough() {
    let sandbox = Sandbox::with_dependencies(&["acme/p0"]);
    let chain: String = (0..40).map(|at| format!("acme/p{at} 1.0.0: acme/p{}\n", at + 1)).collect();
    sandbox.offer(&format!("{chain}acme/p40 1.0.0:"));
    for limit in ["ulimit -s 256", "ulimit -v 524288"] {
        let run = sandbox.shell("bash", &format!("{limit}; rm -rf .mu/packs Mu.lock; mu get")).ok();
        run.says(&["installed 41 packages"]);
        sandbox.shell("bash", &format!("{limit}; mu tree >/dev/null && mu help >/dev/null")).ok();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_could_not_be_written_is_no_success() {
    let sandbox = Sandbox::with_dependencies(&["acme/p0"]);
    sandbox.offer("acme/p0 1.0.0:");
    sandbox.mu(&["get"]).ok();
    for command in ["list", "help", "help get", "help references", "--version"] {
        let run = sandbox.shell("bash", &format!("mu {command} > /dev/full"));
        assert_eq!(run.status, 1, "{}", run.shown());
        run.says(&["error: cannot print the answer", "No space left on device"]);
        let run = sandbox.shell("bash", &format!("mu {command} --json > /dev/full"));
        assert_eq!(run.status, 1, "{}", run.shown());
        // Who has read enough, has the answer.
        sandbox.shell("bash", &format!("set -o pipefail; mu {command} | true")).ok();
    }
}
