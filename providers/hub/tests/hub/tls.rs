//! https: a private certificate authority, and HTTP/2.

use std::process::Command;

use mu_provider::{ErrorKind, Provider as _};

use crate::client::{Client, chain};
use crate::place::{Hub, archive, at, locked};
use mu_testing::{AUTHORITY, LOCALHOST, Nginx};

/// Tells the process below where the hub is.
const HUB: &str = "MU_TEST_HUB";

#[test]
fn an_authority_of_ones_own_is_trusted_if_named() {
    let hub = Hub::new(r#"{"hub": 1}"#);
    let release = hub.publish("a", "1.0.0", &archive(&[("Mu.yaml", b"name: a\n", false)]));
    let nginx = Nginx::serve_tls(hub.path(), &LOCALHOST);
    let location = at(&nginx.url(""), "a");

    let error = Client::new().fetch(&location, &locked(&release)).expect_err("is unknown here");
    assert_eq!(error.kind(), ErrorKind::Network);
    assert!(error.hints().join(" ").contains("SSL_CERT_FILE"), "{}", chain(&error));
    assert!(nginx.log().is_empty(), "nothing may be asked of a stranger");

    let file = hub.write("authority.pem", AUTHORITY);
    // In another process, because the variable is that of the whole process.
    let output = Command::new(std::env::current_exe().expect("this test runs from a file"))
        .args(["--exact", "tls::lists_and_fetches"])
        .env("SSL_CERT_FILE", &file)
        .env(HUB, nginx.url(""))
        .output()
        .expect("can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let log = nginx.log();
    assert_eq!(
        log,
        [
            "GET /hub.json HTTP/2.0 200",
            "GET /index/a.jsonl HTTP/2.0 200",
            "GET /packs/a/a-1.0.0.tgz HTTP/2.0 200"
        ]
    );

    // A server that expects TLS does not say so: many close the connection.
    let plain = format!("http://{}/", nginx.host());
    let error = Client::new().fetch(&at(&plain, "a"), &locked(&release)).expect_err("is refused");
    let hint = format!("if it expects TLS, write `https://{}/...`", nginx.host());
    assert_eq!(error.hints(), [hint], "{}", chain(&error));
}

/// A part of the test above, which starts it in another process and checks its requests.
#[test]
fn lists_and_fetches() {
    let Ok(hub) = std::env::var(HUB) else { return };
    let location = at(&hub, "a");
    let client = Client::new();
    let listing = client.provider.list(&location, None, &mu_provider::Silent).expect("answers");
    let mu_provider::Listing::Found(found) = listing else { panic!("{listing:?}") };
    let release = mu_provider::conformance::releases(&found.lines).remove(0);
    client.fetch(&location, &release).expect("is there");
}
