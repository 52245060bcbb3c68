//! How help looks: commands in groups, examples before options, the global options once, and colours; and the pages of `mu help TOPIC`, which
//! are not about a command.
//!
//! Each command defines its own options; none is parsed here.

use std::ffi::OsString;

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;
use clap::{ColorChoice, Command};

use crate::cli::commands::GROUPED;
use crate::cli::global::{HEADING, global_program, words};

/// How the options that every command takes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Globals {
    /// All of these options are shown.
    Shown,
    /// Only where to find these options is shown.
    Named,
}

const HEAD: Style = AnsiColor::Green.on_default().bold();
const WORD: Style = AnsiColor::Cyan.on_default().bold();

/// The program with every command described, in the form that its help shows.
pub(super) fn shaped(program: Command, globals: Globals, color: ColorChoice) -> Command {
    let mut program = program.styles(styles());
    // Each command is described only when that is needed, which is now.
    program.build();
    let groups = groups(&program);
    let note = note(globals);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{HEAD}Topics:{HEAD:#}\n{}\
         {{after-help}}\n\n{HEAD}Options:{HEAD:#}\n{{options}}{note}",
        list()
    );
    let program = each(program, globals, color);
    program.help_template(template)
}

fn each(command: Command, globals: Globals, color: ColorChoice) -> Command {
    let is_hidden = globals == Globals::Named;
    let note = note(globals);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}{{after-help}}\n\n{{all-args}}{note}"
    );
    let command = command.mut_args(|argument| {
        let is_global = argument.get_help_heading() == Some(HEADING);
        if is_global && is_hidden { argument.hide(true) } else { argument }
    });
    command
        .color(color)
        .help_template(template)
        .mut_subcommands(|inner| each(inner, globals, color))
}

fn note(globals: Globals) -> &'static str {
    match globals {
        Globals::Shown => "",
        Globals::Named => "\n\n`mu --help` lists the options that every command takes.",
    }
}

/// The list of commands.
fn groups(program: &Command) -> String {
    let all: Vec<&Command> =
        program.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let width = all.iter().map(|command| command.get_name().len()).max().unwrap_or_default();
    let mut text = String::new();
    let mut titles: Vec<&str> = Vec::new();
    for (title, _) in GROUPED {
        if !titles.contains(title) {
            titles.push(title);
        }
    }
    for title in titles {
        let names = GROUPED.iter().filter(|(group, _)| *group == title).map(|(_, name)| *name);
        let named = names.filter_map(|name| all.iter().find(|one| one.get_name() == name));
        let lines: Vec<String> = named.map(|command| line(command, width)).collect();
        if !lines.is_empty() {
            text.push_str(&format!("{HEAD}{title}:{HEAD:#}\n{}\n", lines.concat()));
        }
    }
    text
}

fn line(command: &Command, width: usize) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    let aliases = match aliases.as_slice() {
        [] => String::new(),
        aliases => format!(" [{}]", aliases.join(", ")),
    };
    format!("  {WORD}{:<width$}{WORD:#}  {about}{aliases}\n", command.get_name())
}

fn styles() -> Styles {
    Styles::styled()
        .header(HEAD)
        .usage(HEAD)
        .literal(WORD)
        .placeholder(AnsiColor::Cyan.on_default())
}

/// The topics: name, title, text.
const TOPICS: [(&str, &str, &str); 4] = [
    ("references", "How packages are named", include_str!("topics/references.txt")),
    ("versions", "Versions, ranges and tags", include_str!("topics/versions.txt")),
    ("files", "The files that mu reads and writes", include_str!("topics/files.txt")),
    ("environment", "Environment variables", include_str!("topics/environment.txt")),
];

/// The text of a topic.
fn find(name: &str) -> Option<&'static str> {
    TOPICS.iter().find(|(topic, _, _)| *topic == name).map(|(_, _, text)| *text)
}

/// The topic that a command line requests: `mu help versions`.
pub(super) fn asked_for(arguments: &[OsString]) -> Option<&'static str> {
    if !arguments.iter().any(|argument| argument == "help") {
        return None;
    }
    let program = global_program();
    let words: Vec<&str> =
        words(arguments, &program).filter_map(|(_, word)| word.to_str()).collect();
    match words.as_slice() {
        // Words behind it are passed over, as behind a command: `mu help get x`.
        [_, "help", name, ..] => find(name),
        _ => None,
    }
}

/// The names of the topics.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, ..)| *name)
}

/// A line for each topic.
pub(super) fn list() -> String {
    let line = |(name, title, _): &(&str, &str, &str)| {
        format!("  {:<22}  {title}\n", format!("mu help {name}"))
    };
    TOPICS.iter().map(line).collect::<String>().trim_end().to_owned()
}
