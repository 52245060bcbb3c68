//! `mu completions` and `mu man`.

use clap::{Args, Command};
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::fs::AtPath as _;
use crate::ops::{Code, CommandError};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu completions bash > ~/.local/share/bash-completion/completions/mu
  mu completions zsh > ~/.zfunc/_mu
  mu completions fish > ~/.config/fish/completions/mu.fish")]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu man | man -l -
  mu man --into ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// Write mu.1, mu-get.1 and the others into this folder
    #[arg(long, value_name = "DIR")]
    into: Option<std::path::PathBuf>,
}

/// What `mu completions` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Completions {
    /// The shell.
    shell: String,
    /// The script that makes it complete.
    script: String,
}

/// What `mu man` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Page {
    /// The manual page, as troff.
    page: String,
}

/// What `mu man --into` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Folder {
    /// The folder with the manual pages.
    folder: String,
}

pub(crate) fn run(context: &Context, arguments: &Arguments, program: &mut Command) -> Ending {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, program, "mu", &mut text);
    let script = String::from_utf8_lossy(&text).into_owned();
    let completions = Completions { shell: arguments.shell.to_string(), script };
    context.answer(&completions, |completions| context.print(&completions.script))
}

pub(crate) fn man(context: &Context, arguments: &ManArguments, mut program: Command) -> Ending {
    if let Some(folder) = &arguments.into {
        let folder = crate::env::absolute(&context.environment.current, folder);
        crate::fs::create_folder(&folder)?;
        program.build();
        clap_mangen::generate_to(program, &folder).at("write manual pages into", &folder)?;
        let answer = Folder { folder: folder.display().to_string() };
        return context.answer(&answer, |Folder { folder }| {
            context.shell.status(&format!("wrote the manual into {folder}"));
            Ok(())
        });
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(program).render(&mut text).map_err(|error| {
        CommandError::from_error(Code::Io, error).while_doing("cannot make the manual page")
    })?;
    let page = String::from_utf8_lossy(&text).into_owned();
    context.answer(&Page { page }, |answer| context.print(&answer.page))
}
