//! Azurite, Microsoft's own emulator of Azure Blob Storage, which `.ci/setup` installs: see `crates/testing/azurite`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

/// A running emulator with one container, `packages`.
#[derive(Debug)]
pub struct Azurite {
    process: Child,
    endpoint: String,
}

impl Azurite {
    /// Starts one with an empty container.
    pub fn start() -> Self {
        let mut command = Command::new("node");
        command.arg(crate::file("azurite/serve.js"));
        command.arg(crate::file("../../target/azurite/node_modules"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|error| {
            panic!("`node` cannot be run, `.ci/setup` installs it and Azurite: {error}")
        });
        let mut endpoint = String::new();
        let mut said = BufReader::new(process.stdout.take().expect("is piped"));
        said.read_line(&mut endpoint).expect("is text");
        if endpoint.is_empty() {
            let mut why = String::new();
            let _ = process.stderr.take().expect("is piped").read_to_string(&mut why);
            panic!("Azurite does not start, `.ci/setup` installs it: {why}");
        }
        Self { process, endpoint: endpoint.trim().to_owned() }
    }

    /// The variables that lead to it. Every emulator has this account and key.
    pub fn variables(&self) -> [(&str, &str); 3] {
        [
            ("AZURE_STORAGE_ENDPOINT", &self.endpoint),
            ("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1"),
            (
                "AZURE_STORAGE_ACCOUNT_KEY",
                "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
            ),
        ]
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
