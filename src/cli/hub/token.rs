//! `mu hub token`.

use clap::{Args, Subcommand, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::ops::hub::{Can, TokenToCreate, create_hub_token, hub_tokens, revoke_hub_token};
use crate::ops::{Code, CommandError};
use crate::report::Table;
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
    /// What it allows: publish (also tag and move), yank (also undo) [default: both]; read alone, for a private hub,
    /// where every token reads everything
    #[arg(long, value_delimiter = ',')]
    can: Vec<What>,
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

pub(super) fn run(context: &Context, command: TokenCommand) -> CommandExit {
    match command {
        TokenCommand::Add(arguments) => add(context, arguments),
        TokenCommand::List { place } => list(context, &place),
        TokenCommand::Revoke { place, name } => revoke(context, &place, &name),
    }
}

fn add(context: &Context, arguments: AddTokenArguments) -> CommandExit {
    let AddTokenArguments { place, name, namespace, can, expires } = arguments;
    let can = can.into_iter().map(|what| match what {
        What::Publish => Can::Publish,
        What::Yank => Can::Yank,
        What::Read => Can::Read,
    });
    let mut can: Vec<Can> = can.collect();
    if can.is_empty() {
        can = vec![Can::Publish, Can::Yank];
    }
    let reads_alone = can.iter().all(|can| *can == Can::Read);
    let namespaces = match (&namespace[..], reads_alone) {
        ([], true) => vec!["*".to_owned()],
        ([], false) => {
            let error = CommandError::new(Code::Usage, "the token needs a namespace");
            return Err(error.hint("`--namespace acme`; `--namespace '*'` for everything").into());
        }
        (namespaces, true) if namespaces != ["*"] => {
            let message =
                "a token that can read can read the whole hub: a namespace cannot limit it";
            return Err(CommandError::new(Code::Usage, message)
                .hint("leave out `--namespace`; put packages that only some may read in a separate hub")
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
    let new = TokenToCreate { name: name.clone(), namespaces, can, expires };
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
    });
    context.answer(&Tokens { tokens: tokens.collect() }, |list| {
        let mut table = Table::new(&["name", "namespaces", "can", "created", "expires"]);
        for token in &list.tokens {
            let plain = anstyle::Style::new();
            table.row([
                (plain, token.name.clone()),
                (plain, token.namespaces.join(", ")),
                (plain, token.can.join(", ")),
                (plain, token.created.clone()),
                (plain, token.expires.clone().unwrap_or_else(|| "never".to_owned())),
            ]);
        }
        context.print_table(&table)
    })
}

fn revoke(context: &Context, place: &str, name: &str) -> CommandExit {
    revoke_hub_token(&context.environment, place, name)?;
    context.answer(&Revoked { revoked: name }, |revoked| {
        context.line(&format!("revoked `{}`", revoked.revoked))
    })
}
