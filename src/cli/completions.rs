//! `mu completions` and `mu man`.

use std::path::Path;

use clap::{Args, Command};
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::complete;
use crate::cli::context::{Context, Ending};
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
    /// The completion script.
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
    let mut script = String::from_utf8_lossy(&text).into_owned();
    let shell = arguments.shell.to_string();
    script.push_str(complete::script(&shell));
    let completions = Completions { shell, script };
    context.answer(&completions, |completions| context.print(&completions.script))
}

pub(crate) fn man(context: &Context, arguments: &ManArguments, mut program: Command) -> Ending {
    if let Some(folder) = &arguments.into {
        let folder = crate::env::absolute(&context.environment.current, folder);
        crate::fs::create_folder(&folder)?;
        program.build();
        write_pages(&program, &folder)?;
        let answer = Folder { folder: folder.display().to_string() };
        return context.answer(&answer, |Folder { folder }| {
            context.shell.status(&format!("wrote the manual into {folder}"));
            Ok(())
        });
    }
    program.build();
    let page = page(&program)?;
    context.answer(&Page { page }, |answer| context.print(&answer.page))
}

/// Writes the page of a command, and those of the commands below it.
fn write_pages(command: &Command, folder: &Path) -> Result<(), CommandError> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write_pages(inner, folder)?;
    }
    let name = clap_mangen::Man::new(command.clone()).get_filename();
    Ok(crate::fs::write_atomic(&folder.join(name), page(command)?.as_bytes())?)
}

/// The manual page of a command. Its synopsis is the line that `--help` shows.
fn page(command: &Command) -> Result<String, CommandError> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text).map_err(|error| {
        CommandError::from_error(Code::Io, error).while_doing("cannot make the manual page")
    })?;
    let text = String::from_utf8_lossy(&text).replace(".SH EXTRA", ".SH NOTES");
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().replace('-', "\\-");
    let start = text.find(".SH SYNOPSIS").map(|at| at + ".SH SYNOPSIS\n".len());
    let end = start.and_then(|start| Some(start + text.get(start..)?.find(".SH ")?));
    Ok(match start.zip(end) {
        Some((start, end)) => format!("{}{usage}\n{}", &text[..start], &text[end..]),
        None => text,
    })
}
