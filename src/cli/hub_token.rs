//! `mu hub token`: who may change or read a hub. It writes into the hub; its server reads that at once.

use clap::{Args, Subcommand, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::ops::hub::{Can, TokenToCreate, create_hub_token, hub_tokens, revoke_hub_token};
use crate::ops::{Code, CommandError};
use crate::report::{PLAIN, Table};
use crate::workspace::Cutoff;

/// Manage tokens: who may change or read a hub
#[derive(Debug, Subcommand)]
#[command(after_help = "\
The hub keeps only a hash of each token, in PLACE/private/, which `mu hub serve` does not serve.

Examples:
  mu hub token add /srv/hub ada --namespace acme
  mu hub token add /srv/hub ci --namespace acme/web --can publish --expires \"90 days\"
  mu hub token add /srv/hub team --can read
  mu hub token list /srv/hub
  mu hub token revoke /srv/hub ci")]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it is shown only once
    #[command(after_help = "\
Its owner stores the token with `mu login`, or sets MU_TOKEN_<HOST>.

Examples:
  mu hub token add /srv/hub ada --namespace acme
  mu hub token add /srv/hub ci --namespace acme/web --can publish --expires \"90 days\"
  mu hub token add /srv/hub partner --read acme/sdk --read acme/docs
  mu hub token add s3://acme-packages/hub admin --namespace '*' > token")]
    Add(AddTokenArguments),
    /// List the tokens: their names, and what they allow
    #[command(after_help = "\
Examples:
  mu hub token list /srv/hub
  mu hub token list /srv/hub --json")]
    List {
        /// A folder, or s3://, gs:// or az://BUCKET/PREFIX
        #[arg(value_name = "PLACE")]
        place: String,
    },
    /// Revoke a token
    #[command(after_help = "\
Examples:
  mu hub token revoke /srv/hub ci")]
    Revoke {
        /// A folder, or s3://, gs:// or az://BUCKET/PREFIX
        #[arg(value_name = "PLACE")]
        place: String,
        /// The token's name
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddTokenArguments {
    /// A folder, or s3://, gs:// or az://BUCKET/PREFIX
    #[arg(value_name = "PLACE")]
    place: String,
    /// A name for the token, such as its owner
    name: String,
    /// A namespace (or one package) that it is for, such as `acme`; repeat for more, `*` for all
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Vec<String>,
    /// What it allows: publish (also tag, move and deprecate), yank (also undo) [default: both]; read alone, for a private hub
    #[arg(long, value_delimiter = ',')]
    can: Vec<What>,
    /// A namespace (or one package) that it reads of a private hub, besides those of --namespace; repeat for more [default: every
    /// token reads everything]. Without --namespace and --can, the token is for reading alone
    #[arg(long, value_name = "NAMESPACE")]
    read: Vec<String>,
    /// When it expires: an age such as `90 days`, or a date
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    Publish,
    Yank,
    Read,
}

/// What `mu hub token add` answers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Added<'a> {
    /// The token's name.
    name: &'a str,
    /// The token; it is shown only once.
    token: String,
}

/// What `mu hub token list` answers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Tokens {
    /// The tokens of the hub.
    tokens: Vec<Token>,
}

/// A token, without its secret.
#[derive(Serialize, JsonSchema)]
struct Token {
    /// Its name.
    name: String,
    /// The namespaces (or packages) that it is for; `*` for all.
    namespaces: Vec<String>,
    /// The namespaces (or packages) that it reads besides; none if it reads everything.
    reads: Option<Vec<String>>,
    /// What it is for: `publish`, `yank`, `read`.
    can: Vec<&'static str>,
    /// When it was created, RFC 3339.
    created: String,
    /// When it expires, RFC 3339; none if it does not.
    expires: Option<String>,
}

/// What `mu hub token revoke` answers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Revoked<'a> {
    /// The token's name.
    revoked: &'a str,
}

pub(super) fn run_token(context: &Context, command: TokenCommand) -> CommandExit {
    match command {
        TokenCommand::Add(arguments) => add(context, arguments),
        TokenCommand::List { place } => list(context, &place),
        TokenCommand::Revoke { place, name } => revoke(context, &place, &name),
    }
}

fn add(context: &Context, arguments: AddTokenArguments) -> CommandExit {
    let AddTokenArguments { place, name, namespace, can, read, expires } = arguments;
    let can = can.into_iter().map(|what| match what {
        What::Publish => Can::Publish,
        What::Yank => Can::Yank,
        What::Read => Can::Read,
    });
    let mut can: Vec<Can> = can.collect();
    if can.is_empty() {
        can = match namespace.is_empty() && !read.is_empty() {
            true => vec![Can::Read],
            false => vec![Can::Publish, Can::Yank],
        };
    }
    let everything = "*".to_owned();
    if !read.is_empty() && !read.contains(&everything) && namespace.contains(&everything) {
        let message = "a token that may change every package reads them all";
        return Err(CommandError::new(Code::Usage, message)
            .hint("leave out `--read`, or name the namespaces that it may change")
            .into());
    }
    let reads_alone = can.iter().all(|can| *can == Can::Read);
    let namespaces = match (&namespace[..], reads_alone) {
        ([], true) if read.is_empty() => vec![everything],
        ([], true) => read.clone(),
        ([], false) => {
            let error = CommandError::new(Code::Usage, "the token needs a namespace");
            return Err(error.hint("`--namespace acme`; `--namespace '*'` for everything").into());
        }
        (namespaces, true) if namespaces != ["*"] => {
            let message = "`--namespace` says what a token may change, and this one may only read";
            return Err(CommandError::new(Code::Usage, message)
                .hint("leave out `--namespace`: `--read NAMESPACE` says what a token reads")
                .into());
        }
        _ => namespace,
    };
    let expires = expires.as_deref().map(Cutoff::parse).transpose();
    let expires = expires.map_err(|problem| {
        let message = format!("--expires: {}", problem.message);
        CommandError::new(Code::Usage, message)
            .hint("write `90 days`, or a date such as `2027-11-01`")
    })?;
    let reads = (!read.is_empty()).then_some(read);
    let new = TokenToCreate { name: name.clone(), namespaces, reads, can, expires };
    let token = create_hub_token(&context.environment, &place, new)?;
    context.answer(&Added { name: &name, token }, |added| {
        context.line(&added.token)?;
        context.shell.status("save it now: it is not shown again");
        Ok(())
    })
}

fn list(context: &Context, place: &str) -> CommandExit {
    let tokens = hub_tokens(&context.environment, place)?.into_iter().map(|token| Token {
        can: token.can.iter().map(|can| can.as_str()).collect(),
        created: token.created.to_string(),
        expires: token.expires.map(|expires| expires.to_string()),
        name: token.name,
        namespaces: token.namespaces,
        reads: token.reads,
    });
    context.answer(&Tokens { tokens: tokens.collect() }, |list| {
        let rows = list.tokens.iter().map(|token| {
            let expires = token.expires.as_deref().unwrap_or("never");
            let Token { name, created, .. } = token;
            let (namespaces, can) = (token.namespaces.join(", "), token.can.join(", "));
            let reads = match &token.reads {
                Some(reads) => reads.join(", "),
                None => "*".to_owned(),
            };
            [name.clone(), namespaces, can, reads, created.clone(), expires.to_owned()]
                .map(|cell| (PLAIN, cell))
        });
        let heading = ["name", "namespaces", "can", "reads", "created", "expires"];
        context.print_table(&Table::with_rows(heading, rows))
    })
}

fn revoke(context: &Context, place: &str, name: &str) -> CommandExit {
    revoke_hub_token(&context.environment, place, name)?;
    context.answer(&Revoked { revoked: name }, |revoked| {
        context.line(&format!("revoked `{}`", revoked.revoked))
    })
}
