//! An S3-compatible server, which `.ci/setup` builds: see `crates/hub/tests/s3-server`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::Sandbox;

const ACCESS_KEY: &str = "tests";
const SECRET_KEY: &str = "not-secret";

/// A running server with one bucket, `packages`.
#[derive(Debug)]
pub(crate) struct S3Server {
    process: Child,
    endpoint: String,
    #[expect(dead_code, reason = "is held, not looked at")]
    folder: TempDir,
}

impl S3Server {
    /// Starts one with an empty bucket.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        std::fs::create_dir(folder.path().join("packages")).expect("can be made");
        let program =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("target/s3-server/debug/s3-server");
        let mut command = Command::new(&program);
        command.arg(folder.path()).args([ACCESS_KEY, SECRET_KEY]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap_or_else(|error| {
            panic!("`{}` cannot be run, `.ci/setup` builds it: {error}", program.display())
        });
        let mut address = String::new();
        let mut said = BufReader::new(process.stdout.take().expect("is piped"));
        said.read_line(&mut address).expect("is text");
        Self { process, endpoint: format!("http://{}", address.trim()), folder }
    }

    /// Lets `mu` reach it.
    pub(crate) fn reached_from(&self, sandbox: &mut Sandbox) {
        sandbox.set("AWS_ACCESS_KEY_ID", ACCESS_KEY);
        sandbox.set("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
        sandbox.set("AWS_REGION", "us-east-1");
        sandbox.set("AWS_ENDPOINT_URL", &self.endpoint);
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
