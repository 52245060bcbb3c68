//! Parses arguments, without describing every command.
//!
//! Every command takes the global options, and clap copies them into each command, which takes longer than
//! everything else in a fast command. So the arguments are first parsed by a program that only has the
//! command that they seem to name.

use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Subcommand as _};

use crate::cli::global::{program, words};
use crate::cli::shape::{Globals, shaped};
use crate::cli::{Cli, Command, VERSION};

/// Reads a command line.
///
/// A command line that the program with one command cannot parse is parsed again by the whole program, which
/// has the best errors.
pub(super) fn parse(arguments: &[OsString], color: ColorChoice) -> Result<Cli, clap::Error> {
    let program = program().version(VERSION.as_str());
    let first = words(arguments, &program).nth(1);
    if let Some((first, _)) = first
        && let (before, [help, asked @ ..]) = arguments.split_at(first)
        && help == "help"
    {
        // `mu help get` works as in other tools.
        let flag = OsString::from("--help");
        return parse(&[before, asked, &[flag]].concat(), color);
    }
    let matches = narrow(program, first.map(|(_, name)| name)).try_get_matches_from(arguments);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => whole(arguments, color),
        answer => answer,
    }
}

/// Reads a command line with every command described.
fn whole(arguments: &[OsString], color: ColorChoice) -> Result<Cli, clap::Error> {
    let is_short = arguments.iter().any(|argument| argument == "-h");
    let globals = if is_short { Globals::Named } else { Globals::Shown };
    let mut program = shaped(Cli::command(), globals, color);
    let matches = program.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// The program with only one command, if there is one of this name.
fn narrow(program: clap::Command, name: Option<&OsStr>) -> clap::Command {
    let all = || Command::augment_subcommands(clap::Command::new("mu"));
    program.subcommands(name.and_then(|name| all().find_subcommand(name).cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOR: ColorChoice = ColorChoice::Never;

    /// Checks that the fast way and the complete way give the same result.
    fn check(line: &str) {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (short, long) = (parse(&arguments, COLOR), whole(&arguments, COLOR));
        match (short, long) {
            (Ok(short), Ok(long)) => {
                assert_eq!(format!("{short:?}"), format!("{long:?}"), "{line}")
            }
            (Err(short), Err(long)) => assert_eq!(short.to_string(), long.to_string(), "{line}"),
            (short, long) => panic!("{line}: {short:?} and {long:?}"),
        }
    }

    #[test]
    fn one_command_is_read_as_by_the_whole_program() {
        for line in [
            "mu",
            "mu --offline",
            "mu --version",
            "mu -V",
            "mu --help",
            "mu get",
            "mu i aws/ec2 -s --json",
            "mu --json -C get get list",
            "mu -C list get -q",
            "mu --color always which aws/ec2 --all",
            "mu --jobs 0 get",
            "mu get --locked --frozen",
            "mu get --help",
            "mu get --version",
            "mu get --with x",
            "mu gte",
            "mu registry",
            "mu registry list -q",
            "mu registry add --help",
            "mu what-if --with a/b",
            "mu add",
            "mu -- get",
        ] {
            check(line);
        }
    }

    #[test]
    fn help_can_be_asked_for_by_a_word() {
        for (word, flag) in [
            ("mu help", "mu --help"),
            ("mu help get", "mu get --help"),
            ("mu help hub serve", "mu hub serve --help"),
            ("mu --json help get", "mu --json get --help"),
            ("mu -C help help get", "mu -C help get --help"),
            ("mu help gte", "mu gte --help"),
        ] {
            let answer = |line: &str| {
                let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
                parse(&arguments, COLOR).expect_err("tells help, or an error").to_string()
            };
            assert_eq!(answer(word), answer(flag));
        }
    }

    #[test]
    fn what_is_read_first_describes_one_command() {
        for (line, expected) in [
            ("mu -q ls", vec!["list"]),
            ("mu --resolution minimal ls", vec!["list"]),
            ("mu -qC get ls", vec!["list"]),
            ("mu -C/get --color=never ls get", vec!["list"]),
            ("mu -C/srv/C ls get", vec!["list"]),
            ("mu -q", vec![]),
            ("mu -C get", vec![]),
        ] {
            let arguments: Vec<&str> = line.split(' ').collect();
            let program = program();
            let first = words(&arguments, &program).nth(1);
            let program = narrow(program.clone(), first.map(|(_, name)| name));
            let commands = program.get_subcommands().map(clap::Command::get_name);
            assert_eq!(commands.collect::<Vec<_>>(), expected, "{line}");
        }
    }
}
