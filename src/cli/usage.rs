//! Command lines that are refused: what is wrong with them, for people and for programs.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue};

use crate::cli::Cli;
use crate::ops::{Code, CommandError};
use crate::report::{Shell, ShellOptions};

/// Answers a command line that clap refused, or `--help` and `--version`; returns the exit status.
pub(super) fn refused(mut error: clap::Error, arguments: &[OsString]) -> u8 {
    suggest(&mut error, arguments);
    let is_json = arguments.iter().any(|argument| argument == "--json");
    if error.use_stderr() && is_json {
        let shell = Shell::new(ShellOptions { json: true, ..Default::default() });
        shell.error(&for_programs(&error.to_string()));
        return Code::Usage.exit_status();
    }
    // A closed stream leaves nobody to tell.
    let _ = error.print();
    if error.use_stderr() { Code::Usage.exit_status() } else { 0 }
}

/// What clap says, without what is there for the eye.
fn for_programs(text: &str) -> CommandError {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let (mut message, mut hints, mut command) = (vec![first], Vec::new(), "mu".to_owned());
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(usage) = line.strip_prefix("Usage: ") {
            let words = usage.split(' ').take_while(|word| !word.starts_with(['[', '<', '-']));
            command = words.collect::<Vec<_>>().join(" ");
        } else if let Some(tip) = line.strip_prefix("tip: ") {
            hints.push(tip.to_owned());
        } else if !line.starts_with("For more information") {
            message.push(line.to_owned());
        }
    }
    let error = CommandError::new(Code::Usage, message.join(" "));
    let error = hints.into_iter().fold(error, CommandError::hint);
    error.hint(format!("see `{command} --help`"))
}

/// Suggests the command with the nearest spelling; clap's own measure takes `gte` for `tree`.
fn suggest(error: &mut clap::Error, arguments: &[OsString]) {
    const FARTHEST: usize = 2;
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let first = arguments.iter().skip(1).find(|text| !text.to_string_lossy().starts_with('-'));
    if first.is_none_or(|first| first != word.as_str()) {
        return;
    }
    let program = Cli::command();
    let names = program
        .get_subcommands()
        .flat_map(|command| std::iter::once(command.get_name()).chain(command.get_all_aliases()));
    let nearest = names
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(distance, name)| *distance <= FARTHEST && *distance < name.len())
        .min();
    if let Some((_, name)) = nearest {
        let name = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &[&str], message: &str, hints: &[&str]) {
        let Err(error) = <Cli as clap::Parser>::try_parse_from(arguments) else {
            panic!("{arguments:?} is refused");
        };
        let error = for_programs(&error.to_string());
        assert_eq!(error.to_string(), message);
        assert_eq!(error.hints, hints);
    }

    #[test]
    fn programs_get_all_that_people_get() {
        check(
            &["mu", "schema", "x"],
            "invalid value 'x' for '<WHAT>' [possible values: manifest, workspace, lock, answer]",
            &["see `mu --help`"],
        );
        check(
            &["mu", "add", "--dev"],
            "the following required arguments were not provided: <REF>...",
            &["see `mu add --help`"],
        );
        check(
            &["mu", "get", "--sve"],
            "unexpected argument '--sve' found",
            &["a similar argument exists: '--save'", "see `mu get --help`"],
        );
    }
}
