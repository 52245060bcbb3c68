//! Tokens in the keyring of the operating system, for a mu that was built with the feature `keyring`.

use std::fs;

use mu_testing::Keyring;

use crate::login::{guarded, send};
use crate::support::{Sandbox, tree};

#[test]
fn a_token_in_the_keyring_opens_its_host_and_is_on_no_disk() {
    let mut sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    let _nginx = guarded(&mut sandbox);
    // One that is in the file from earlier is replaced by the one in the keyring.
    send(&sandbox, &["login", "--yes", "--offline", "hub.mu.com"], "before\n")
        .ok()
        .says(&["credentials.json"]);
    let keyring = Keyring::start(&sandbox.path("keyring"));
    sandbox.set_all([keyring.variable()]);
    let run = send(&sandbox, &["login", "hub.mu.com"], "hunter2\n").ok();
    run.says(&["in the keyring"]).does_not_say(&["hunter2"]);
    assert!(!sandbox.has("home/.mu/credentials.json"));
    sandbox.mu(&["get"]).ok();
    // The text that was sent is the test's own.
    fs::remove_file(sandbox.path("stdin")).expect("is ours");
    for (path, (_, bytes)) in tree(sandbox.root()) {
        let is_told = bytes.windows(7).any(|window| window == b"hunter2");
        // The requests that nginx has logged.
        assert!(!is_told || path.contains("nginx"), "{path}");
    }
    sandbox.mu(&["logout", "hub.mu.com"]).ok().says(&["removed the token"]);
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    sandbox.mu(&["get"]).fails().says(&["mu login"]);
    sandbox.mu(&["logout", "hub.mu.com"]).ok().says(&["nothing to do"]);
    // Without the keyring, the file is used.
    drop(keyring);
    send(&sandbox, &["login", "hub.mu.com"], "hunter2\n").ok().says(&["credentials.json"]);
    sandbox.mu(&["get"]).ok();
}
