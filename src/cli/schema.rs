//! `mu schema`.

use clap::{Args, ValueEnum};

use crate::cli::{Context, Ending};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu schema manifest > mu.schema.json
  # then, as the first line of Mu.yaml:
  # yaml-language-server: $schema=./mu.schema.json")]
pub(crate) struct Arguments {
    /// Which file: Mu.yaml (manifest), .mu/workspace.yaml, or Mu.lock
    #[arg(value_enum, value_name = "FILE")]
    file: File,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum File {
    Manifest,
    Workspace,
    Lock,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let schema = match arguments.file {
        File::Manifest => crate::manifest::schema(),
        File::Workspace => crate::workspace::schema(),
        File::Lock => crate::lock::schema(),
    };
    context.json(&schema)?;
    Ok(0)
}
