//! `mu hub serve`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use mu_provider::Program;

use crate::cli::context::{CommandExit, Context};
use crate::cli::global::within;
use crate::env::Environment;
use crate::ops::hub::{Serving, hub_tokens, serve_hub};
use crate::ops::{Code, CommandError};
use crate::reference::Base;
use crate::workspace::root::programs;

/// Serve a hub over HTTP, and accept uploads
#[derive(Debug, Args)]
#[command(after_help = "\
Everyone can read, in a browser too; changes need a token (`mu hub token add`). With --private, reading needs a token, \
too, and so do pages, search and counters. All state is in PLACE, so any \
number of servers can share one, and any web server can serve the same files for reading.

The access log goes to standard output, one JSON object per line. `/healthz` says whether the server can read the hub, \
and `/metrics` has counters for Prometheus. Clients refuse plain http to other machines, so \
use TLS here, or put a proxy with TLS in front. Limits apply to each client address; behind a proxy, all clients have the proxy's address. Ctrl-C stops the server when the requests in progress are done, a \
second Ctrl-C at once.

Examples:
  mu hub serve /srv/hub
  mu hub serve s3://acme-packages/hub --listen 0.0.0.0:443 \\
    --tls-certificate chain.pem --tls-key key.pem")]
pub(crate) struct ServeArguments {
    /// A folder, or s3://, gs:// or az://BUCKET/PREFIX
    #[arg(value_name = "PLACE")]
    place: String,
    /// Address and port, or a port of this machine; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,
    /// The certificate and those that signed it, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// What references to the hub's packages start with, such as hub.acme.co/, for the web page; without it,
    /// the page shows the host that the browser requests. Set it behind a proxy
    #[arg(long, value_name = "BASE", value_parser = base)]
    base: Option<Base>,
    /// The largest archive that is accepted, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = |text: &str| within::<u64>(text, 1..=4096))]
    largest_archive: u64,
    /// How many files an archive that is accepted may have
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = |text: &str| within::<usize>(text, 1..=200_000))]
    most_files: usize,
    /// How many changes one client address may make in a minute
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = |text: &str| within::<u32>(text, 1..=usize::MAX))]
    changes_per_minute: u32,
    /// How many requests one client address may make in a second; 0 for any number
    #[arg(long, value_name = "N", default_value_t = 0)]
    requests_per_second: u32,
    /// Require a token for reading
    #[arg(long)]
    private: bool,
    /// Show the counters at /metrics to everyone, not only to programs on this machine
    #[arg(long)]
    public_metrics: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let local = is_port.then(|| format!("127.0.0.1:{port}"));
    let expected = "expected an address and a port, such as 127.0.0.1:8080 or [::]:443";
    local.as_deref().unwrap_or(text).parse().map_err(|_| expected.to_owned())
}

fn base(text: &str) -> Result<Base, String> {
    let host = text.strip_prefix("https://").unwrap_or(text);
    if host.contains("://") {
        return Err("expected a host such as hub.acme.co/, without a protocol".to_owned());
    }
    Base::parse(host).map_err(|error| error.to_string())
}

/// The program with the server.
const PROGRAM: &str = "mu-hub";

/// Runs the program with the server, with the arguments of this one: it stands beside this one, or in a folder of `PATH`.
pub(crate) fn run_server(environment: &Environment, arguments: &[OsString]) -> CommandExit {
    let programs = programs(environment);
    let beside = std::env::current_exe().ok().and_then(|mu| Program::named(mu.parent()?, PROGRAM));
    let Some(program) = beside.or_else(|| programs.find(PROGRAM)) else {
        let missing = format!(
            "a hub is served by the program `{PROGRAM}`, which is neither beside `mu` nor in PATH"
        );
        let hint = "releases of mu have both; from its source, `cargo install --path . --features full` installs both";
        return Err(CommandError::new(Code::NotFound, missing).hint(hint).into());
    };
    let mut command = program.command(environment.variables.iter());
    command.args(arguments.iter().skip(1)).current_dir(&environment.current);
    let failed = |error| {
        let doing = format!("cannot run {}", program.path().display());
        CommandError::from_error(Code::Io, error).while_doing(doing)
    };
    // Signals and the exit status are the server's own.
    #[cfg(unix)]
    return Err(failed(std::os::unix::process::CommandExt::exec(&mut command)).into());
    #[cfg(not(unix))]
    Ok(command.status().map_err(failed)?.code().and_then(|code| code.try_into().ok()).unwrap_or(1))
}

pub(super) fn run(context: &Context, arguments: ServeArguments) -> CommandExit {
    let shell = Arc::clone(&context.shell);
    let serving = Serving {
        listen: arguments.listen,
        tls: arguments.tls_certificate.zip(arguments.tls_key),
        base: arguments.base.as_ref().map(ToString::to_string),
        largest_archive: arguments.largest_archive << 20,
        most_entries: arguments.most_files,
        changes_per_minute: arguments.changes_per_minute,
        requests_per_second: arguments.requests_per_second,
        private: arguments.private,
        public_metrics: arguments.public_metrics,
        // Serving continues even if nobody reads the log any more.
        log: Arc::new(move |line| drop(shell.line(line))),
    };
    let scheme = if serving.tls.is_some() { "https" } else { "http" };
    // If something is wrong with the hub, serving it reports that.
    let tokens = hub_tokens(&context.environment, &arguments.place);
    let has_none = tokens.is_ok_and(|tokens| tokens.is_empty());
    let Some(program) = context.server else {
        unreachable!("the program with the server runs this")
    };
    serve_hub(&context.environment, &arguments.place, serving, program, &mut |address| {
        context.shell.status(&format!("serving {} at {scheme}://{address}/", arguments.place));
        if scheme == "http" && !address.ip().is_loopback() {
            context.shell.status(
                "other machines need https: `--tls-certificate` and `--tls-key`, or a server with TLS in front",
            );
        }
        if has_none && arguments.private {
            let add = format!("mu hub token add {} NAME --can read", arguments.place);
            context.shell.status(&format!("nobody can read yet: `{add}` creates a token"));
        } else if has_none {
            let add = format!("mu hub token add {} NAME --namespace NAMESPACE", arguments.place);
            context.shell.status(&format!("nobody can publish yet: `{add}` creates a token"));
        }
    })?;
    Ok(0)
}
