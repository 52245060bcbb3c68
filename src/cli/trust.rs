//! `mu trust`: who may vouch for packages, and who did.

use anstyle::Style;
use clap::{Args, Subcommand};

use crate::cli::context::{CommandExit, Context, Stop};
use crate::ops::OperationScope;
use crate::ops::trust::{
    ShownRule, TrustOverview, Unbound, Vouched, WrittenTrust, trust_add, trust_allow,
    trust_overview, trust_show,
};
use crate::report::{BAD, FAINT, GOOD, STRONG, Table};

/// Show who must have signed which packages, and who has
#[derive(Debug, Args)]
#[command(after_help = "\
Rules are below `trust` in ~/.mu/config.yaml and in .mu/workspace.yaml; packages must satisfy both. Without rules, nothing \
is asked, and nothing is claimed.

Examples:
  mu trust
  mu trust add charts-key ./cosign.pub --for 'ghcr.io/acme/charts/*'
  mu trust show oci://ghcr.io/acme/charts/web
  mu trust allow 'ghcr.io/acme/charts/old#1.2.0'")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TrustArguments {
    #[command(subcommand)]
    command: Option<TrustCommand>,
}

#[derive(Debug, Subcommand)]
enum TrustCommand {
    /// Show all that vouches for a version, and the rule that asks for it
    #[command(after_help = "\
Asks the registry, and verifies what it has. Says who signed, whether you trust them or not.

Examples:
  mu trust show oci://ghcr.io/acme/charts/web
  mu trust show 'ghcr.io/acme/charts/web#1.4.0' --json")]
    Show {
        /// The package
        #[arg(value_name = "REF")]
        reference: String,
    },
    /// Name a signer, and packages that it must have signed
    #[command(after_help = "\
Writes ~/.mu/config.yaml. Shows the fingerprint of the key, and asks; the text of the key is written, so the file is not read \
again.

Examples:
  mu trust add charts-key ./cosign.pub --for 'ghcr.io/acme/charts/*'
  mu trust add charts-key ./cosign.pub -w
  mu trust add acme-ci github:acme/charts/release.yml")]
    Add {
        /// How rules call the signer
        #[arg(value_name = "NAME")]
        name: String,
        /// A file of public keys, the text of a key, or github:OWNER/REPO[/WORKFLOW]
        #[arg(value_name = "KEY", allow_hyphen_values = true)]
        keys: String,
        /// The packages that it must have signed: an id, PREFIX/* or *
        #[arg(long = "for", value_name = "PATTERN")]
        pattern: Option<String>,
        /// Write .mu/workspace.yaml, for everybody who works in this workspace
        #[arg(short, long)]
        workspace: bool,
    },
    /// Accept exactly the content of a version, signed or not
    #[command(after_help = "\
Writes ~/.mu/config.yaml. It lifts the rules of that file alone, for one version with one content.

Examples:
  mu trust allow 'ghcr.io/acme/charts/old#1.2.0'
  mu trust allow 'ghcr.io/acme/charts/old#1.2.0' -w")]
    Allow {
        /// The package, with its version
        #[arg(value_name = "REF")]
        reference: String,
        /// Write .mu/workspace.yaml, for everybody who works in this workspace
        #[arg(short, long)]
        workspace: bool,
    },
}

pub(crate) fn run(context: &Context, arguments: &TrustArguments) -> CommandExit {
    match &arguments.command {
        None => {
            let session = context.open(OperationScope::Workspace)?;
            let overview = trust_overview(&session)?;
            context.answer(&overview, |overview| show_overview(context, overview))
        }
        Some(TrustCommand::Show { reference }) => {
            let session = context.open_asking_session()?;
            let vouched = trust_show(&session, reference)?;
            context.answer(&vouched, |vouched| show(context, vouched))
        }
        Some(TrustCommand::Add { name, keys, pattern, workspace }) => {
            let _lock = context.keep_others_away(!*workspace)?;
            let session = context.open_settings_session()?;
            let written = trust_add(&session, name, keys, pattern.as_deref(), *workspace)?;
            context.answer(&written, |written| wrote(context, written))
        }
        Some(TrustCommand::Allow { reference, workspace }) => {
            let _lock = context.keep_others_away(!*workspace)?;
            let session = context.open_asking_session()?;
            let written = trust_allow(&session, reference, *workspace)?;
            context.answer(&written, |written| wrote(context, written))
        }
    }
}

fn wrote(context: &Context, written: &WrittenTrust) -> Result<(), Stop> {
    context.line(&written.now)?;
    context.line(&format!("wrote {}", context.path_for_people(&written.file)))
}

/// What a rule asks for, in words.
fn asks(rule: &ShownRule) -> String {
    let ShownRule { signed_by, need, refuse, continuity, .. } = rule;
    let mut asked = match (refuse, need) {
        (Some(why), _) => format!("refused: {why}"),
        (None, Some(need)) => format!("{need} of {}", signed_by.join(", ")),
        (None, None) if signed_by.is_empty() => "anything".to_owned(),
        (None, None) => format!("signed by {}", signed_by.join(" or ")),
    };
    match continuity.as_deref() {
        Some("refuse") => asked.push_str(", and by no others than the locked version"),
        Some(_) => asked.push_str(", with a warning if it is by others than the locked version"),
        None => {}
    }
    asked
}

fn show_overview(context: &Context, overview: &TrustOverview) -> Result<(), Stop> {
    let TrustOverview { rules, signers, roots, packages } = overview;
    // Rules, signers, roots and locked packages, each only if there are some.
    if rules.is_empty() {
        context.line("no rules: packages need no signatures")?;
        context.line(&format!(
            "{FAINT}`mu trust add NAME KEY --for 'ghcr.io/acme/*'` makes the first one{FAINT:#}"
        ))?;
    }
    let mut table = Table::new(&["packages", "must be", "file"]);
    for rule in rules {
        let (pattern, file) = (rule.pattern.clone(), rule.file.clone());
        table.row([(STRONG, pattern), (Style::new(), asks(rule)), (FAINT, file)]);
    }
    if !rules.is_empty() {
        context.table(&table, "")?;
    }
    if !signers.is_empty() {
        context.line("")?;
        let mut table = Table::new(&["signer", "identity", "file"]);
        for signer in signers {
            let (name, file) = (signer.name.clone(), signer.file.clone());
            table.row([(STRONG, name), (Style::new(), signer.identity.clone()), (FAINT, file)]);
        }
        context.table(&table, "")?;
    }
    // Signatures by keys need none.
    for root in roots.iter().filter(|root| root.file.is_some() || !signers.is_empty()) {
        let file = root.file.as_deref().unwrap_or("comes with mu");
        let until = root.until.as_deref().unwrap_or_default();
        let until = until.split_once('T').map_or(until, |(date, _)| date);
        context.line(&format!("root {} until {until} {FAINT}{file}{FAINT:#}", root.name))?;
    }
    if !packages.is_empty() {
        context.line("")?;
        let mut table = Table::new(&["locked", "version", "rule", "signed by"]);
        for package in packages {
            let name = context.name(&package.id).into_owned();
            let signers = package.signed_by.join(", ");
            let (version, rule) = (package.version.clone(), package.rule.clone());
            table.row([
                (STRONG, name),
                (Style::new(), version),
                (FAINT, rule),
                (Style::new(), signers),
            ]);
        }
        context.table(&table, "")?;
    }
    Ok(())
}

fn show(context: &Context, vouched: &Vouched) -> Result<(), Stop> {
    let Vouched { id, version, subject, rule, why, evidence, looked_at, unbound, .. } = vouched;
    context.line(&format!("{STRONG}{}{STRONG:#} {version}", context.name(id)))?;
    if !subject.is_empty() {
        context.line(&format!("{FAINT}{subject}{FAINT:#}"))?;
    }
    for piece in evidence {
        let kind = piece.kind.as_deref().unwrap_or("unreadable");
        let mark = if piece.verifies { GOOD } else { BAD };
        context.line(&format!("{mark}{kind}{mark:#} {}: {}", piece.place, piece.why))?;
    }
    if evidence.is_empty() {
        match looked_at.is_empty() {
            true => context.line("no signature: mu knows of none where it comes from")?,
            false => {
                context.line(&format!("no signature (looked at {})", looked_at.join(" and ")))?;
            }
        }
    }
    // Without a signature, nothing depends on what the content says of itself.
    match unbound {
        _ if evidence.is_empty() => {}
        None => {}
        Some(Unbound::Name) => context.line(
            "name not bound: it has no manifest, so another package of the same signer could stand here",
        )?,
        Some(Unbound::Version) => context.line(
            "version not bound: its manifest has none, so another version of it could stand here",
        )?,
    }
    match (rule, why) {
        (None, _) => context.line("no rule asks for a signature"),
        (Some(rule), None) => context.line(&format!(
            "{GOOD}accepted{GOOD:#} by rule `{}` in {}: {}",
            rule.pattern,
            rule.file,
            asks(rule)
        )),
        (Some(rule), Some(why)) => context.line(&format!(
            "{BAD}not accepted{BAD:#} by rule `{}` in {} ({}): {why}",
            rule.pattern,
            rule.file,
            asks(rule)
        )),
    }
}
