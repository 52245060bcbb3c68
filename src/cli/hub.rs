//! `mu hub`: creates, checks and serves hubs. Who may change or read one is in `hub_token.rs`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use mu_provider::{Program, with_causes};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::cli::global::within;
use crate::cli::hub_token::{TokenCommand, run_token};
use crate::env::Environment;
use crate::ops::hub::{Network, Serving, UpstreamHub, hub_tokens, serve_hub, state_folder};
use crate::ops::{Code, CommandError, Events as _, OperationScope, Stage, hub};
use crate::reference::Base;
use crate::report::{FAINT, count, size};
use crate::workspace::root::programs;

/// Manage a hub in a folder or a bucket
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A PLACE is a folder or a bucket, whose credentials are in the environment:
  s3://BUCKET/PREFIX     AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL
  gs://BUCKET/PREFIX     GOOGLE_APPLICATION_CREDENTIALS
  az://CONTAINER/PREFIX  AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY

Examples:
  mu hub init /srv/hub
  mu hub token add /srv/hub ada --namespace acme
  mu hub serve /srv/hub --listen 127.0.0.1:8080
  mu hub check s3://acme-packages/hub --repair")]
pub(crate) enum HubCommand {
    /// Create an empty hub; an existing one stays as it is
    #[command(after_help = "\
A hub is only files: any web server can serve them for reading, and `mu hub serve` accepts changes too.

Examples:
  mu hub init /srv/hub
  mu hub init s3://acme-packages/hub")]
    Init {
        /// A folder, which is created if necessary, or s3://, gs:// or az://BUCKET/PREFIX
        #[arg(value_name = "PLACE")]
        place: String,
    },
    /// Check every index line and archive of a hub
    #[command(after_help = "\
Exits with status 1 if there are problems. Leftovers come from interrupted writes and do no harm. --repair removes them, and rebuilds the files that are derived from the index. It never changes an index line, or an archive that an index line names.

Examples:
  mu hub check /srv/hub
  mu hub check s3://acme-packages/hub --repair")]
    Check {
        /// A folder, or s3://, gs:// or az://BUCKET/PREFIX
        #[arg(value_name = "PLACE")]
        place: String,
        /// Rebuild the files that are derived from the index, and remove leftovers
        #[arg(long)]
        repair: bool,
    },
    /// Bring the catalog and the snapshot of a large hub up to date
    #[command(after_help = "\
Where one of them is longer than 1 MiB, publishing into the hub's files leaves both alone, so that it takes as long as in a small hub. Until they are written, readers find what is new in the hub's log, and searching does not. Run this as often as searching has to know of new packages; `mu hub serve` does it by itself.

Examples:
  mu hub tidy /srv/hub
  mu hub tidy s3://acme-packages/hub")]
    Tidy {
        /// A folder, or s3://, gs:// or az://BUCKET/PREFIX
        #[arg(value_name = "PLACE")]
        place: String,
    },
    Serve(ServeArguments),
    #[command(subcommand)]
    Token(TokenCommand),
}

/// What `mu hub init` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Init<'a> {
    /// The place of the hub.
    place: &'a str,
    /// Whether there was none before.
    new: bool,
}

/// What `mu hub tidy` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tidy<'a> {
    /// The place of the hub.
    place: &'a str,
    /// Whether it has few enough packages for a catalog.
    catalog: bool,
}

/// What `mu hub check` answers; for a hub with problems, the `details` of the error.
#[derive(Serialize, JsonSchema)]
pub(super) struct Check<'a> {
    /// Packages that were checked.
    packages: u64,
    /// Their versions.
    versions: u64,
    /// Bytes of their archives.
    bytes: u64,
    /// The problems, including repaired ones.
    findings: Vec<Finding<'a>>,
}

/// One problem.
#[derive(Serialize, JsonSchema)]
struct Finding<'a> {
    /// The file, relative to the hub.
    path: &'a str,
    /// The problem.
    what: &'a str,
    /// Whether it is harmless: left by an interrupted write.
    leftover: bool,
    /// Whether it was repaired.
    repaired: bool,
}

pub(crate) fn run(context: &Context, command: HubCommand) -> CommandExit {
    match command {
        HubCommand::Init { place } => init(context, &place),
        HubCommand::Check { place, repair } => check(context, &place, repair),
        HubCommand::Tidy { place } => tidy(context, &place),
        HubCommand::Serve(arguments) => run_serve(context, arguments),
        HubCommand::Token(command) => run_token(context, command),
    }
}

fn init(context: &Context, place: &str) -> CommandExit {
    let new = hub::create_hub(&context.environment, place)?;
    context.answer(&Init { place, new }, |_| {
        context.line(&match new {
            true => format!("created a hub at {place}"),
            false => format!("there is already a hub at {place}"),
        })
    })
}

fn tidy(context: &Context, place: &str) -> CommandExit {
    let catalog = hub::tidy_hub(&context.environment, place)?;
    context.answer(&Tidy { place, catalog }, |_| {
        context.line(&format!("{place} is up to date"))?;
        if !catalog {
            context.shell.status(
                "the hub has too many packages for a catalog: `mu search` finds them by its server (`mu hub serve`), and not in its files",
            );
        }
        Ok(())
    })
}

fn check(context: &Context, place: &str, repair: bool) -> CommandExit {
    let mut begun = 0;
    let mut progress = |_: &str| {
        context.shell.progress(Stage::Checking, begun, 0);
        begun += 1;
    };
    let report = hub::check(&context.environment, place, repair, &mut progress)?;
    let findings = report.findings.iter().map(|finding| Finding {
        path: &finding.path,
        what: &finding.what,
        leftover: finding.is_leftover,
        repaired: finding.is_repaired,
    });
    let answer = Check {
        packages: report.packages,
        versions: report.versions,
        bytes: report.bytes,
        findings: findings.collect(),
    };
    if !report.is_sound() {
        let wrong: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| !finding.is_leftover && !finding.is_repaired)
            .collect();
        let mut message = format!("{} with the hub at `{place}`", count(wrong.len(), "problem"));
        for finding in &wrong {
            message.push_str(&format!("\n  {}: {}", finding.path, finding.what));
        }
        // What people have written is theirs to restore.
        let by_repair = !repair && wrong.iter().any(|finding| finding.can_be_repaired);
        let by_hand = repair || wrong.iter().any(|finding| !finding.can_be_repaired);
        let hints = [
            (
                by_repair,
                "`--repair` rebuilds the files that are derived from the index; it changes no index line and no archive",
            ),
            (by_hand, "restore the right archive or index line from a backup"),
        ];
        let error = CommandError::new(Code::Integrity, message);
        let hints = hints.into_iter().filter(|(helps, _)| *helps);
        let error = hints.fold(error, |error, (_, hint)| error.hint(hint));
        return Err(error.with_details(answer).into());
    }
    context.answer(&answer, |answer| {
        for finding in &answer.findings {
            let state = if finding.repaired { "repaired" } else { "leftover" };
            context.line(&format!("{state}  {}: {}", finding.path, finding.what))?;
        }
        context.line(&format!(
            "{} with {} checked {FAINT}({}){FAINT:#}",
            count(usize::try_from(answer.packages).unwrap_or(usize::MAX), "package"),
            count(usize::try_from(answer.versions).unwrap_or(usize::MAX), "version"),
            size(answer.bytes)
        ))?;
        if !repair && !answer.findings.is_empty() {
            context.shell.status("`mu hub check --repair` removes leftovers");
        }
        Ok(())
    })
}

/// Serve a hub over HTTP, and accept uploads
#[derive(Debug, Args)]
#[command(after_help = "\
Everyone can read, in a browser too; changes need a token (`mu hub token add`). With --private, reading needs a token, \
too, and so do pages, search and counters. All state is in PLACE, so any \
number of servers can share one, and any web server can serve the same files for reading.

With --upstream, packages that this hub has not come from another one. A name that this hub has itself is never asked about there.

The access log goes to standard output, one JSON object per line. `/healthz` says whether the server can read the hub, \
and `/metrics` has counters for Prometheus. Clients refuse plain http to other machines, so \
use TLS here, or put a proxy with TLS in front. Limits apply to each client address; behind a proxy, all clients have the proxy's address, unless it is a --trusted-proxy. Ctrl-C stops the server when the requests in progress are done, a \
second Ctrl-C at once.

Examples:
  mu hub serve /srv/hub
  mu hub serve s3://acme-packages/hub --listen 0.0.0.0:443 \\
    --tls-certificate chain.pem --tls-key key.pem
  mu hub serve /srv/hub --trusted-proxy 127.0.0.1
  mu hub serve /srv/hub --upstream https://hub.example/ --own acme")]
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
    /// How much of the disk uploads leave free, in MiB: yanking and other changes need some room, too. Of a bucket, nothing is known
    /// [default: 64, or a twentieth of a disk where that is less]
    #[arg(long, value_name = "MIB", value_parser = |text: &str| within::<u64>(text, 0..=1 << 30))]
    keep_free: Option<u64>,
    /// How many changes one client address may make in a minute
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = |text: &str| within::<u32>(text, 1..=usize::MAX))]
    changes_per_minute: u32,
    /// How many requests one client address may make in a second; 0 for any number
    #[arg(long, value_name = "N", default_value_t = 0)]
    requests_per_second: u32,
    /// Require a token for reading
    #[arg(long)]
    private: bool,
    /// A hub (http or https) to ask for packages that this one has not; what it has is checked, and kept in PLACE/upstream/
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// How long an answer of the upstream hub is not asked for again, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "upstream")]
    upstream_max_age: u32,
    /// How long the upstream hub may be silent, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20, requires = "upstream", value_parser = |text: &str| within::<u32>(text, 1..=600))]
    upstream_timeout: u32,
    /// A namespace or package that the upstream hub is never asked about, whether this one has it or not; can be repeated
    #[arg(long, value_name = "NAME", requires = "upstream", value_parser = package_name)]
    own: Vec<String>,
    /// The folder in which the server keeps a catalog of its own, if the hub has too many packages for one; without it, a folder of
    /// the cache. It survives a restart, and can be deleted
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Show the counters at /metrics to everyone, not only to programs on this machine
    #[arg(long)]
    public_metrics: bool,
    /// A proxy in front of the server, or a network of proxies, such as 10.0.0.0/8; repeat for more. Of requests from there, the
    /// client is who X-Forwarded-For or Forwarded names, for limits and the log
    #[arg(long, value_name = "ADDRESS[/PREFIX]", value_parser = Network::parse)]
    trusted_proxy: Vec<Network>,
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

fn package_name(text: &str) -> Result<String, String> {
    let name = text.trim_end_matches('/');
    mu_hub::names::check_name(name).map_err(|error| with_causes(&error))?;
    Ok(name.to_owned())
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
        let hint = "releases of mu have both; from its source, `cargo install --path . --profile dist --features full` installs both";
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

/// The upstream hub that the arguments name.
fn upstream(
    context: &Context,
    arguments: &ServeArguments,
) -> Result<Option<UpstreamHub>, CommandError> {
    let Some(url) = &arguments.upstream else { return Ok(None) };
    let session = context.open_settings_of(OperationScope::Global)?;
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let silence = seconds(arguments.upstream_timeout);
    let mut hub = hub::upstream_hub(&session, url, silence)?;
    hub.own.clone_from(&arguments.own);
    hub.max_age = seconds(arguments.upstream_max_age);
    Ok(Some(hub))
}

fn run_serve(context: &Context, arguments: ServeArguments) -> CommandExit {
    let upstream = upstream(context, &arguments)?;
    let shell = Arc::clone(&context.shell);
    let serving = Serving {
        listen: arguments.listen,
        tls: arguments.tls_certificate.zip(arguments.tls_key),
        base: arguments.base.as_ref().map(ToString::to_string),
        largest_archive: arguments.largest_archive << 20,
        most_entries: arguments.most_files,
        keep_free: arguments.keep_free.map(|mebibytes| mebibytes << 20),
        changes_per_minute: arguments.changes_per_minute,
        requests_per_second: arguments.requests_per_second,
        private: arguments.private,
        public_metrics: arguments.public_metrics,
        trusted_proxies: arguments.trusted_proxy,
        upstream,
        state: arguments.state.unwrap_or_else(|| state_folder(&context.environment)),
        // Serving continues even if nobody reads the log any more.
        log: Arc::new(move |line| drop(shell.line(line))),
    };
    let scheme = if serving.tls.is_some() { "https" } else { "http" };
    // If something is wrong with the hub, serving it reports that.
    let tokens = hub_tokens(&context.environment, &arguments.place);
    let has_none = tokens.as_ref().is_ok_and(Vec::is_empty);
    let tokens = tokens.unwrap_or_default();
    let is_limited_in_vain = !arguments.private && tokens.iter().any(|token| token.reads.is_some());
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
        if cfg!(panic = "abort") {
            context.shell.status(
                "a panic in one request would end this server: compiled with `--profile dist`, it goes on",
            );
        }
        if is_limited_in_vain {
            context.shell.status(
                "everybody reads everything: only with `--private`, tokens limit what somebody reads",
            );
        }
    })?;
    Ok(0)
}
