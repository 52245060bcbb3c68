//! `mu verify`.

use clap::Args;

use crate::cli::context::{Context, Ending};
use crate::ops::verify::{verify, verify_store};
use crate::ops::{Code, CommandError, Scope};
use crate::report::count;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu verify
  mu verify aws/ec2
  mu verify --global
  mu verify --store                    every tree in the store of this machine")]
pub(crate) struct Arguments {
    /// Check only these packages
    #[arg(value_name = "PKG", conflicts_with = "store")]
    packages: Vec<String>,
    /// Check the store instead of the packs
    #[arg(long)]
    store: bool,
    /// Check the global packs
    #[arg(short, long, conflicts_with = "store")]
    global: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let scope = Scope::of(arguments.global);
    let session = context.open(scope)?;
    let report = match arguments.store {
        true => verify_store(&session)?,
        false => verify(&session, &arguments.packages)?,
    };
    let noun = if arguments.store { "tree" } else { "pack" };
    if !report.faults.is_empty() {
        let mut message = format!(
            "{} of {} failed verification",
            report.faults.len(),
            count(report.checked, noun)
        );
        for fault in &report.faults {
            message.push_str(&format!(
                "\n  {} at `{}`: {}",
                fault.what,
                fault.folder.display(),
                fault.problem
            ));
        }
        let hint = if arguments.store {
            "`mu cache clean` empties the store; packs are fetched again when they are needed"
        } else if report.faults.iter().all(|fault| fault.problem.contains("Mu.lock:")) {
            "Mu.lock was edited or merged wrongly: restore it from version control"
        } else if report.faults.iter().all(|fault| !fault.folder.exists()) {
            "`mu get` installs what is missing"
        } else {
            "delete the folder and run `mu get` to install the pack again"
        };
        return Err(CommandError::new(Code::Integrity, message)
            .hint(hint)
            .with_details(&report)
            .into());
    }
    context.answer(&report, |report| {
        context.line(&format!("{} verified", count(report.checked, noun)))
    })
}
