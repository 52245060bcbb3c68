//! `mu login`, `mu logout` and `mu whoami`.

use std::io::{self, BufRead as _, IsTerminal as _};

use clap::Args;
use mu_provider::Account;
use mu_provider::http::Secret;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::ops::login::{LoggedIn, TokenOwner, TokenStorage, host_of, log_in, logout, whoami};
use crate::ops::{Code, CommandError, OperationScope, Warning};
use crate::report::{FAINT, Shell, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
Asks for the token without showing it, or reads it from stdin; it is never an argument, which other users could \
see. The host is asked whether the token is good, as a hub, an OCI registry, or (for HOST/PATH) a chart repository; one that it refuses is \
not stored, and one about which it cannot be asked, such as that of a Git server, only with `--yes`. It is stored in ~/.mu/credentials.json, which only you can read, or in the keyring if \
this mu was built with it. It is sent to that host alone: never over plain http, except to this machine, and \
never to the target of a redirect. A token in MU_TOKEN_<HOST> takes precedence over the stored one; <HOST> is in \
capitals, with _ for a dot, __ for a dash and ___ before a port: MU_TOKEN_HUB_MU_COM for hub.mu.com, \
MU_TOKEN_MY__HUB_DEV___8080 for my-hub.dev:8080.

Examples:
  mu login hub.mu.com
  pass show hub.mu.com | mu login hub.mu.com
  mu login charts.acme.co/stable
  echo \"$TOKEN\" | mu login --yes git.acme.co")]
pub(crate) struct LoginArguments {
    /// The base of packages, such as hub.mu.com
    base: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the name of the token, or its user, and what it is for, as far as the server says it. If no token is stored, or the server does not accept it, \
the exit status is 1.

Examples:
  mu whoami hub.mu.com
  mu whoami ghcr.io --json")]
pub(crate) struct WhoAmIArguments {
    /// The base of packages, such as hub.mu.com
    base: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu logout hub.mu.com")]
pub(crate) struct LogoutArguments {
    /// The base of packages, such as hub.mu.com
    base: String,
}

/// What `mu login` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Login {
    /// The host that the token is for.
    host: String,
    /// The file that it is stored in; none if that is the keyring.
    file: Option<String>,
    /// Whether the server was asked, and accepts it.
    accepted: bool,
    /// The name of the token, or its user, as far as the server says it.
    name: Option<String>,
}

/// What `mu whoami` answers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WhoAmI {
    /// The host.
    host: String,
    /// The name of the token, or its user; none if it has none.
    name: Option<String>,
    /// Whether the server was asked, and accepts it.
    accepted: bool,
    /// The packages that it is for: those in these namespaces.
    namespaces: Vec<String>,
    /// The packages that it reads, if it does not read everything: those in these namespaces.
    reads: Option<Vec<String>>,
    /// What it allows.
    can: Vec<String>,
    /// When it ends, if it does.
    expires: Option<String>,
}

/// What `mu logout` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Logout {
    /// The host that the token was for.
    host: String,
    /// Whether one was stored.
    removed: bool,
}

pub(crate) fn run(context: &Context, arguments: &LoginArguments) -> CommandExit {
    let session = context.open(OperationScope::Global)?;
    let host = host_of(&session, &arguments.base)?;
    let token = ask(&host.host, &context.shell)?;
    let LoggedIn { stored, account } = log_in(&session, &host, &token)?;
    if let Some(variable) = &host.variable {
        let (variable, is_out) = (variable.clone(), false);
        session.events.warning(&Warning::TokenVariable { variable, is_out });
    }
    let file = match stored {
        TokenStorage::Keyring => None,
        TokenStorage::File(path) => Some(path.display().to_string()),
    };
    let accepted = account.is_some();
    let name = account.map(|account| account.name).filter(|name| !name.is_empty());
    let answer = Login { host: host.host, file, accepted, name };
    context.answer(&answer, |Login { host, file, accepted, name }| {
        let place = file.as_ref().map_or("the keyring".to_owned(), |file| format!("`{file}`"));
        let said = match (accepted, name) {
            (true, Some(name)) => format!("{host} knows it as `{}`", printable(name)),
            (true, None) => format!("{host} accepts it"),
            (false, _) => "nobody was asked whether it is good".to_owned(),
        };
        context.shell.status(&format!("stored the token for {host} in {place}; {said}"));
        Ok(())
    })
}

pub(crate) fn run_whoami(context: &Context, arguments: &WhoAmIArguments) -> CommandExit {
    let session = context.open(OperationScope::Global)?;
    let TokenOwner { host, account, is_asked } = whoami(&session, &arguments.base)?;
    let Account { name, namespaces, reads, can, expires } = account;
    let name = Some(name).filter(|name| !name.is_empty());
    let answer = WhoAmI { host, name, accepted: is_asked, namespaces, reads, can, expires };
    context.answer(&answer, |answer| {
        context.line(&printable(answer.name.as_deref().unwrap_or("a token without a name")))?;
        let reads = answer.reads.as_ref().map(|reads| reads.join(", ")).unwrap_or_default();
        let lists = [
            ("for", answer.namespaces.join(", ")),
            ("may", answer.can.join(", ")),
            ("reads", reads),
        ];
        let until = answer.expires.iter().map(|expires| ("until", expires.clone()));
        for (title, value) in lists.into_iter().chain(until).filter(|(_, value)| !value.is_empty())
        {
            context.line(&format!("{FAINT}{title:<6}{FAINT:#}{}", printable(&value)))?;
        }
        if !answer.accepted {
            let host = &answer.host;
            context.shell.status(&format!("{host} cannot be asked; this is what is stored"));
        }
        Ok(())
    })
}

pub(crate) fn run_logout(context: &Context, arguments: &LogoutArguments) -> CommandExit {
    let session = context.open(OperationScope::Global)?;
    let host = host_of(&session, &arguments.base)?;
    let removed = logout(&session, &host)?;
    if let Some(variable) = &host.variable {
        let (variable, is_out) = (variable.clone(), true);
        session.events.warning(&Warning::TokenVariable { variable, is_out });
    }
    context.answer(&Logout { host: host.host, removed }, |Logout { host, removed }| {
        context.shell.status(&match removed {
            true => format!("removed the token for {host}"),
            false => format!("no token is stored for {host}, nothing to do"),
        });
        Ok(())
    })
}

/// Asks the user at the terminal, or reads standard input.
fn ask(host: &str, shell: &Shell) -> Result<Secret, CommandError> {
    let failed = |error: io::Error| {
        CommandError::from_error(Code::Io, error).while_doing("cannot read the token")
    };
    let stdin = io::stdin();
    let text = if stdin.is_terminal() {
        shell
            .run_without_progress(|| rpassword::prompt_password(format!("token for {host}: ")))
            .map_err(failed)?
    } else {
        let mut line = String::new();
        stdin.lock().read_line(&mut line).map_err(failed)?;
        line
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(CommandError::new(Code::Usage, "no token was given")
            .hint("type it when asked, or send it to stdin"));
    }
    Ok(Secret::new(text))
}
