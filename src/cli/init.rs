//! `mu init`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::ops::Events as _;
use crate::ops::init::{InitRequest, init};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu init                              a package named after this folder
  mu init acme/web
  mu init --workspace --namespace acme
  mu init acme/web --workspace         both")]
pub(crate) struct InitArguments {
    /// The package's name [default: this folder's path in the workspace, or its name]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Start a workspace
    #[arg(long)]
    workspace: bool,
    /// What names in the workspace start with, and folders leave out: NAME or BASE/NAME
    #[arg(long, value_name = "NS", requires = "workspace")]
    namespace: Option<String>,
}

/// What `mu init` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The files that were written.
    files: Vec<String>,
}

pub(crate) fn run(context: &Context, arguments: InitArguments) -> CommandExit {
    let InitArguments { name, workspace, namespace } = arguments;
    let begun = init(&context.environment, &InitRequest { name, workspace, namespace })?;
    if let Some(warning) = &begun.warning {
        context.shell.warning(warning);
    }
    let files = begun.files;
    if context.shell.is_json() {
        let files = files.iter().map(|file| file.display().to_string()).collect();
        return context.json(&Answer { files });
    }
    for file in &files {
        context.line(&format!("wrote {}", context.path_for_people(file)))?;
    }
    context.shell.status(match begun.is_package {
        true => "next: `mu add REF` adds a dependency, `mu get` installs",
        false => "next: `mu init` in a folder for each package",
    });
    Ok(0)
}
