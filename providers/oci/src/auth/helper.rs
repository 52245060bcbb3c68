//! Runs the programs in which container tools store passwords: `docker-credential-NAME get`.
//!
//! They are found as all programs are ([`Programs`]), and killed if they take too long. Their output is a secret.

use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use mu_provider::http::{AskedServer, Credential, Secret};
use mu_provider::threads::start;
use mu_provider::{ErrorKind, Programs, ProviderError};
use serde::Deserialize;

/// How long a program may take. Some of them ask the user.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How much a program may print, in bytes.
const LONGEST_ANSWER: u64 = 64 << 10;

/// What a program prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    #[serde(default)]
    username: String,
    secret: String,
}

/// Asks the helper with this name for the password of a registry, which it knows as `server`; `None` if it has none, or if
/// there is no such program.
///
/// # Errors
///
/// When it takes too long, or answers nonsense.
pub(crate) fn ask(
    name: &str,
    (asked, server): (&AskedServer, &str),
    programs: &Programs,
    patience: Duration,
) -> Result<Option<Credential>, ProviderError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Ok(None);
    }
    let program = format!("docker-credential-{name}");
    let Some(found) = programs.find(&program) else { return Ok(None) };
    let failed = |why: String| {
        let text = format!("`{program}`, which is to know the password for `{server}`, failed");
        ProviderError::new(ErrorKind::Auth, text).because(why)
    };
    let mut process = found
        .command(programs.variables())
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = process.stdin.take() {
        // A helper that does not read will not answer either.
        let _ = stdin.write_all(server.as_bytes());
    }
    let (send, receive) = mpsc::channel();
    let stdout = process.stdout.take();
    let reading = start(move || {
        let mut text = String::new();
        let read = stdout.map(|stdout| stdout.take(LONGEST_ANSWER).read_to_string(&mut text));
        let _ = send.send(read.map(|read| read.map(|_| text)));
    });
    let reading = reading.inspect_err(|_| {
        let _ = process.kill();
        let _ = process.wait();
    });
    let reading = reading.map_err(|error| failed(error.to_string()))?;
    let answer = receive.recv_timeout(patience);
    if answer.is_err() {
        // If it has ended already, that is fine. Its child processes may keep its output open.
        let _ = process.kill();
        let _ = process.wait();
        return Err(failed(format!("it did not answer for {} s", patience.as_secs_f32())));
    }
    drop(reading);
    let status = process.wait().map_err(|error| failed(error.to_string()))?;
    let text = answer.ok().flatten().and_then(Result::ok).unwrap_or_default();
    if !status.success() {
        // This is how it says that it has none.
        return Ok(None);
    }
    let answer: HelperAnswer =
        serde_json::from_str(&text).map_err(|_| failed("it answered something else".to_owned()))?;
    let secret = Secret::new(answer.secret);
    Ok(Some(match answer.username.as_str() {
        "<token>" => Credential::identity(asked, secret),
        user => Credential::password(asked, user, secret),
    }))
}
