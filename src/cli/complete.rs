//! `mu __complete`: the names that can complete the last word, for the scripts of `mu completions`.
//!
//! It makes no requests: names come from the workspace, from Mu.lock, and from the catalogs in the cache. If
//! anything fails, it offers nothing. The scripts themselves know commands and options.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use clap::{Args, Command};
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::cli::{global, help};
use crate::env::Environment;
use crate::ops::config::all_settings;
use crate::ops::search::{SearchRequest, search};
use crate::ops::session::locked::target;
use crate::ops::{Code, CommandError, NoEvents, OperationScope, Options, Session};
use crate::reference::PackageId;

/// How many packages of the catalogs are offered at most.
const MOST: usize = 5_000;

#[derive(Debug, Args)]
pub(crate) struct CompleteArguments {
    /// The words behind `mu`; the last one is not complete
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What a word names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Existing packages.
    Known,
    /// Packages that are locked.
    Locked,
    /// Both.
    Any,
    /// Packages of the workspace.
    Members,
    /// Settings.
    Settings,
    /// The beginnings of ids that registries of the settings have.
    Registries,
    /// Bases, which have passwords.
    Bases,
    /// What there is help about.
    Help,
}

/// The kind of name that the last word is, if it is a name.
fn expected(words: &[String]) -> Option<Names> {
    let (last, before) = words.split_last()?;
    if last.starts_with('-') || last.contains('#') {
        return None;
    }
    match before.last().map(String::as_str) {
        Some("-p" | "--package") => return Some(Names::Members),
        Some("-i" | "--invert" | "--without") => return Some(Names::Locked),
        Some("--with") => return Some(Names::Known),
        _ => {}
    }
    let program = global::global_program();
    let mut commands = global::words(before, &program).filter_map(|(_, word)| word.to_str());
    match commands.next()? {
        "get" | "install" | "i" | "add" | "resolve" | "what-if" | "mirror" => Some(Names::Known),
        "info" | "versions" | "which" => Some(Names::Any),
        "remove" | "rm" | "update" | "up" | "upgrade" | "downgrade" | "pin" | "unpin" | "patch"
        | "why" | "tree" | "edit" => Some(Names::Locked),
        "pack" | "publish" => Some(Names::Members),
        "login" | "logout" | "whoami" => Some(Names::Bases),
        "registry" if matches!(commands.next(), Some("remove" | "rm")) => Some(Names::Registries),
        "help" if commands.next().is_none() => Some(Names::Help),
        "config" if matches!(commands.next(), Some("get" | "set")) && commands.next().is_none() => {
            Some(Names::Settings)
        }
        _ => None,
    }
}

pub(crate) fn run(
    context: &Context,
    arguments: &CompleteArguments,
    program: fn() -> Command,
) -> CommandExit {
    let Some(expected) = expected(&arguments.words) else { return Ok(0) };
    let typed = arguments.words.last().map(String::as_str).unwrap_or_default();
    let names = match expected {
        Names::Help => topics_of(&program()),
        _ => names(&context.environment, expected, &arguments.words).unwrap_or_default(),
    };
    let fitting = names.iter().filter(|name| name.starts_with(typed) && is_plain(name));
    context.print(&fitting.map(|name| format!("{name}\n")).collect::<String>())?;
    Ok(0)
}

/// What there is help about.
fn topics_of(program: &Command) -> BTreeSet<String> {
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    let commands = commands.map(|command| command.get_name().to_owned());
    commands.chain(help::names().map(str::to_owned)).collect()
}

/// Whether a name has only characters that references have, and begins like one. Names are those of whoever made the checkout, and
/// a shell puts them on the line as they are: they must mean nothing to it, and be no option.
fn is_plain(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._/+:@#^~=-".contains(letter);
    let begins = |letter: char| letter.is_ascii_alphanumeric() || "._/@".contains(letter);
    name.starts_with(begins) && name.chars().all(is_letter)
}

fn names(environment: &Environment, expected: Names, words: &[String]) -> Option<BTreeSet<String>> {
    let options = Options { offline: true, ..Options::default() };
    let events = Arc::new(NoEvents);
    let session =
        Session::open(environment.clone(), options, OperationScope::Workspace, events).ok()?;
    let short = |id: &PackageId| session.short_name(id).into_owned();
    let mut names = BTreeSet::new();
    if matches!(expected, Names::Known | Names::Any) {
        let request = SearchRequest { limit: MOST, ..SearchRequest::default() };
        let found = search(&session, &request).unwrap_or_default();
        names.extend(found.packages.iter().map(|package| short(&package.id)));
    }
    if matches!(expected, Names::Registries | Names::Bases) {
        let settings = &session.workspace.settings;
        let bases = [settings.base.as_str().to_owned()].into_iter();
        names.extend(bases.filter(|_| expected == Names::Bases));
        names.extend(settings.registries.iter().map(|registry| registry.prefix.to_string()));
        let is_base = |name: String| match expected {
            Names::Bases => name.trim_end_matches('/').to_owned(),
            _ => name,
        };
        return Some(names.into_iter().map(is_base).collect());
    }
    if matches!(expected, Names::Locked | Names::Any) {
        let lock = session.lockfile().ok()?.unwrap_or_default();
        names.extend(lock.packages.iter().map(|package| short(&package.id)));
    }
    if expected != Names::Locked && expected != Names::Settings {
        let members = session.workspace.members.iter();
        names.extend(members.map(|member| member.manifest.name.to_string()));
    }
    let program = global::global_program();
    let command = global::words(words, &program).next();
    if expected == Names::Known && command.is_some_and(|(_, command)| command == "add") {
        // A package cannot depend on itself.
        let option = words.iter().position(|word| word == "-p" || word == "--package");
        let package = option.and_then(|at| words.get(at + 1)).map(String::as_str);
        if let Ok(own) = target(&session, package, "") {
            let own = &session.workspace.members[own];
            names.remove(own.manifest.name.as_str());
            names.remove(&short(&own.id));
        }
    }
    if expected == Names::Settings {
        names.extend(all_settings(&session).ok()?.into_iter().map(|setting| setting.key));
    }
    Some(names)
}

/// The addition to a shell's script that completes names.
pub(super) fn own_script(shell: &str) -> &'static str {
    match shell {
        "bash" => BASH,
        "zsh" => ZSH,
        "fish" => FISH,
        _ => "",
    }
}

/// The names are read line by line, as bash 3.2 of macOS can, and are never evaluated, as `compgen -W` would. Only a program with
/// its whole path is run as it is typed: another one can be a file of a checkout.
const BASH: &str = r#"
_mu_with_names() {
    _mu "$@"
    case "${COMP_WORDS[COMP_CWORD]}" in -*) return 0 ;; esac
    local program=mu name
    local -a names
    names=()
    case "${COMP_WORDS[0]}" in /*) program="${COMP_WORDS[0]}" ;; esac
    while IFS= read -r name; do
        names+=("$name")
    done < <("$program" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ ${#names[@]} -gt 0 ]]; then
        # What the other function takes for files is none.
        COMPREPLY=("${names[@]}")
        compopt +o default +o bashdefault 2>/dev/null
        return 0
    fi
    # Options come after a dash; commands come first.
    for name in "${COMPREPLY[@]}"; do
        case "$name" in -* | __complete) ;; *) names+=("$name") ;; esac
    done
    if [[ ${#names[@]} -gt 0 ]]; then
        COMPREPLY=("${names[@]}")
    fi
    return 0
}
complete -F _mu_with_names -o nosort -o bashdefault -o default mu
"#;

const ZSH: &str = r#"
_mu_with_names() {
    local -a names
    if [[ "${words[CURRENT]}" != -* ]]; then
        names=(${(f)"$(mu __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    fi
    if (( ${#names} )); then
        compadd -- "${names[@]}"
    else
        _mu "$@"
    fi
}
if [ "$funcstack[1]" = "_mu" ]; then
    _mu_with_names "$@"
else
    compdef _mu_with_names mu
fi
"#;

const FISH: &str = r#"
function __mu_names
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l names (mu __complete -- $words[2..-1] "$word" 2>/dev/null)
    if set -q names[1]
        printf '%s\n' $names
    else if string match -q -r '^[.~/]' -- "$word"
        __fish_complete_path "$word"
    end
end
complete -c mu -n "__fish_seen_subcommand_from get install i add remove rm update up upgrade downgrade pin unpin patch resolve what-if which why info versions tree mirror pack publish config login logout whoami registry help" -f -a "(__mu_names)"
complete -c mu -n "__fish_seen_subcommand_from get install i add remove rm tree pack publish" -s p -l package -x -a "(__mu_names)"
complete -c mu -n "__fish_seen_subcommand_from tree" -s i -l invert -x -a "(__mu_names)"
complete -c mu -n "__fish_seen_subcommand_from resolve what-if" -l with -x -a "(__mu_names)"
complete -c mu -n "__fish_seen_subcommand_from resolve what-if" -l without -x -a "(__mu_names)"
"#;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu completions bash > ~/.local/share/bash-completion/completions/mu
  mu completions zsh > ~/.zfunc/_mu
  mu completions fish > ~/.config/fish/completions/mu.fish")]
pub(crate) struct CompletionsArguments {
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

pub(crate) fn run_completions(
    context: &Context,
    arguments: &CompletionsArguments,
    program: &mut Command,
) -> CommandExit {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, program, "mu", &mut text);
    let shell = arguments.shell.to_string();
    let mut script = String::from_utf8_lossy(&text).into_owned();
    script.push_str(own_script(&shell));
    let completions = Completions { shell, script };
    context.answer(&completions, |completions| context.print(&completions.script))
}

pub(crate) fn man(
    context: &Context,
    arguments: &ManArguments,
    mut program: Command,
) -> CommandExit {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_something_to_a_shell_are_not_offered() {
        for name in ["aws/ec2", "git@h.co:a/b", "patches.a/b#^1.2", "x.y/~a", "./a", "c++/a=b"] {
            assert!(is_plain(name), "{name}");
        }
        for name in [
            "",
            "-x",
            "--flag",
            "~a",
            "#a",
            "=a",
            "$(x)",
            "a$x",
            "`x`",
            "a b",
            "a;b",
            "a&b",
            "a|b",
            "a>b",
            "a'b",
            "a\"b",
            "a\\b",
            "a*",
            "a?",
            "[a]",
            "{a,b}",
            "!a",
            "a\tb",
            "a\u{1b}[m",
            "ä",
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn what_is_typed_says_which_names_fit() {
        for (line, names) in [
            ("ad", None),
            ("add ", Some(Names::Known)),
            ("--offline add aws/e", Some(Names::Known)),
            ("-C add remove aws", Some(Names::Locked)),
            ("add aws/ec2#^1", None),
            ("add --de", None),
            ("add aws/ec2 -p ", Some(Names::Members)),
            ("remove aws", Some(Names::Locked)),
            ("tree -i ", Some(Names::Locked)),
            ("tree ", Some(Names::Locked)),
            ("config ", None),
            ("config get res", Some(Names::Settings)),
            ("config set link ", None),
            ("login ", Some(Names::Bases)),
            ("registry add x", None),
            ("registry rm x", Some(Names::Registries)),
            ("help ", Some(Names::Help)),
            ("help get ", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(expected(&words), names, "{line}");
        }
    }
}
