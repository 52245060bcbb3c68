//! Takes the hints of every failed run at their word, in every test: what a hint says to type, to write or to move away is
//! done, in a copy of the sandbox as it was when the hint was shown. What then happens must differ from what was there
//! before, or the hint leads round in a circle.
//!
//! A hint is tried once in each test, and has its row in `testdata/hints.tsv`. `HINTS=FILE` writes which test shows which.

use std::collections::HashSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::Value;

/// What stands in the table in place of what differs from one package to another.
pub(crate) const GAP: &str = "…";

/// What a hint says to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Type this.
    Type(String),
    /// Run the same command with this option.
    With(String),
    /// Run the same command without this option.
    Without(&'static str),
    /// Write this line into this file.
    Write(String, String),
    /// Take what is in the way away.
    MoveAway,
}

/// Commands that show what there is, and leave the rest to the reader.
const SHOW: &[&str] = &[
    "cache",
    "config list",
    "diff",
    "doctor",
    "edit",
    "env",
    "graph",
    "hub check",
    "hub token list",
    "info",
    "list",
    "outdated",
    "patch",
    "plugin list",
    "registry list",
    "schema",
    "search",
    "status",
    "tree",
    "verify",
    "versions",
    "which",
    "why",
];

/// Commands that choose versions: with another option, one of them is the answer to what failed.
const INSTALL: &[&str] = &["add", "get", "resolve", "update", "upgrade"];

/// Words of hints whose commands are for another place, or for a person at a terminal.
const ELSEWHERE: &[&str] = &[
    "on a terminal",
    "in a folder of your own",
    "its operator",
    "where the store can be written",
    "mu uses it as it is",
];

/// Tries what a failed run of `command` in the sandbox at `root` hints at.
#[track_caller]
pub(super) fn try_all(root: &Path, command: &Command, failed: &Output) {
    if failed.status.success() {
        return;
    }
    let said = String::from_utf8_lossy(&failed.stderr);
    for hint in shown(&said) {
        if !is_new(&hint) {
            continue;
        }
        if std::env::var_os("HINTS").is_none() {
            let is_known = table().iter().any(|(row, _)| fits(row, &hint));
            assert!(is_known, "the hint `{hint}` has no row in testdata/hints.tsv\n{said}");
        }
        record(&hint);
        let is_shell = command.get_args().next().is_some_and(|one| one == "-c");
        let mut all = advice(&hint);
        // An option belongs to a command somewhere in the line.
        all.retain(|one| !is_shell || matches!(one, Advice::Type(_) | Advice::MoveAway));
        for one in all {
            if let Err(problem) = in_a_copy(root, || attempt(root, command, failed, &one)) {
                panic!("the hint `{hint}` leads nowhere: {problem}\n$ {command:?}\n{said}");
            }
        }
    }
}

/// The hints that a failed run shows.
fn shown(stderr: &str) -> Vec<String> {
    if let Some(Ok(json)) = stderr.lines().last().map(serde_json::from_str::<Value>) {
        let help = json["error"]["help"].as_str().unwrap_or_default();
        // Lists below a hint are indented.
        return help.lines().filter(|line| !line.starts_with(' ')).map(str::to_owned).collect();
    }
    stderr.lines().filter_map(|line| line.strip_prefix("hint: ")).map(str::to_owned).collect()
}

/// The hint without what differs from one package to another.
pub(crate) fn pattern(hint: &str) -> String {
    let parts = hint.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { "`…`" } else { part }).collect()
}

/// Whether this test has not tried this hint yet.
fn is_new(hint: &str) -> bool {
    static TRIED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
    let key = format!("{} {}", test(), pattern(hint));
    TRIED.lock().unwrap_or_else(PoisonError::into_inner).insert(key)
}

fn test() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

fn record(hint: &str) {
    let Some(file) = std::env::var_os("HINTS") else { return };
    let file = fs::OpenOptions::new().append(true).create(true).open(file);
    writeln!(file.expect("can be opened"), "{hint}\t{}", test()).expect("can be written");
}

/// Each hint with gaps, and a test that shows it.
pub(crate) fn table() -> Vec<(String, String)> {
    let text = include_str!("../../../testdata/hints.tsv");
    let row =
        |line: &str| line.split_once('\t').map(|(hint, test)| (hint.to_owned(), test.to_owned()));
    text.lines().map(|line| row(line).expect("has two columns")).collect()
}

/// Whether a row of the table stands for a hint.
pub(crate) fn fits(row: &str, hint: &str) -> bool {
    let parts: Vec<&str> = row.split(GAP).collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
    if parts.len() == 1 {
        return row == hint;
    }
    let Some(mut rest) = hint.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    parts[1..parts.len() - 1].iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// What a hint says to do, if it says it so exactly that nothing is left to fill in.
pub(crate) fn advice(hint: &str) -> Vec<Advice> {
    if ELSEWHERE.iter().any(|words| hint.contains(words)) {
        return Vec::new();
    }
    let quoted: Vec<&str> = hint.split('`').skip(1).step_by(2).collect();
    let file = quoted.iter().find(|text| text.ends_with(".yaml") && !text.contains(' '));
    let mut all = Vec::new();
    for (at, text) in quoted.iter().copied().enumerate() {
        let before = hint.split('`').nth(at * 2).unwrap_or_default();
        // An example, or a command that only the next words complete.
        let is_unsaid = ["such as ", "ask ", "leave out ", "with another ", "another file with "];
        if has_gap(text) || is_unsaid.iter().any(|words| before.ends_with(words)) {
            continue;
        }
        match text.split_once(": ") {
            // No test has the right password, and some look at which servers got one.
            _ if text.starts_with("mu login ") => {}
            _ if text.starts_with("mu ") => all.push(Advice::Type(text.to_owned())),
            _ if text.starts_with("--") && !before.contains("without") => {
                all.push(Advice::With(text.to_owned()));
            }
            Some((key, _)) if !key.contains(' ') && hint.contains("write ") => {
                all.extend(file.map(|file| Advice::Write(text.to_owned(), (*file).to_owned())));
            }
            _ => {}
        }
    }
    for option in ["--frozen", "--locked", "--offline"] {
        if hint.contains(&format!("without {option}")) {
            all = vec![Advice::Without(option)];
        }
    }
    let moves =
        ["move it away", "move the ", "remove the link", "delete the folder", "remove it, and"];
    if moves.iter().any(|words| hint.starts_with(words)) || hint.contains("; or remove it, and run")
    {
        all = vec![Advice::MoveAway];
    }
    all
}

/// Whether a text has a word in capitals, in whose place the reader writes something.
fn has_gap(text: &str) -> bool {
    let words = text.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    let is_gap = |word: &str| {
        word.starts_with(|one: char| one.is_ascii_uppercase())
            && (word.len() > 1 || text.starts_with("--"))
            && word.chars().all(|one| !one.is_ascii_lowercase())
    };
    text.contains('…') || words.into_iter().any(is_gap)
}

/// Does something in a copy of the sandbox that has its place meanwhile.
fn in_a_copy(root: &Path, action: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let aside = root.with_extension("aside");
    fs::rename(root, &aside).expect("the sandbox can be moved");
    let copied = Command::new("cp").arg("-a").arg(&aside).arg(root).output().expect("cp runs");
    // A socket or a file of another user may not be copied.
    let result = if copied.status.success() { action() } else { Ok(()) };
    Command::new("rm").arg("-rf").arg(root).output().expect("rm runs");
    fs::rename(&aside, root).expect("goes back");
    result
}

fn attempt(root: &Path, command: &Command, failed: &Output, advice: &Advice) -> Result<(), String> {
    let mut arguments: Vec<String> =
        command.get_args().map(|one| one.to_string_lossy().into_owned()).collect();
    match advice {
        Advice::Type(line) => return attempt_line(command, &arguments, failed, line),
        Advice::With(option) => {
            let words = option.split(' ').map(str::to_owned).collect::<Vec<String>>();
            match (arguments.iter().position(|one| *one == words[0]), &words[..]) {
                (Some(at), [_, value]) => arguments[at + 1].clone_from(value),
                (Some(_), _) => return Err(format!("`{option}` was there already")),
                (None, _) => arguments.extend(words),
            }
        }
        Advice::Without(option) => arguments.retain(|one| one != option),
        Advice::Write(line, file) => {
            let folder = command.get_current_dir().expect("runs somewhere");
            let home = root.join("home");
            let path = match file.strip_prefix("~/") {
                Some(file) => home.join(file),
                None => folder.join(file),
            };
            let text = fs::read_to_string(&path).unwrap_or_default();
            let key = line.split_once(':').map_or(line.as_str(), |(key, _)| key);
            // What is there already has to be joined by hand.
            if text.lines().any(|one| one.starts_with(&format!("{key}:")))
                || !path.parent().is_some_and(Path::is_dir)
            {
                return Ok(());
            }
            fs::write(&path, format!("{text}{line}\n")).expect("can be written");
        }
        Advice::MoveAway => {
            let said = String::from_utf8_lossy(&failed.stderr).into_owned();
            let folder = command.get_current_dir().expect("runs somewhere");
            let Some(path) = in_the_way(root, folder, &said) else { return Ok(()) };
            Command::new("rm").arg("-rf").arg(path).output().expect("rm runs");
        }
    }
    let after = run(command, &arguments);
    if is_same(failed, &after) { Err("it says the same".to_owned()) } else { Ok(()) }
}

/// The first path of the sandbox that a message names, and that is there.
fn in_the_way(root: &Path, folder: &Path, said: &str) -> Option<PathBuf> {
    let quoted = said.split('`').skip(1).step_by(2).map(|path| folder.join(path));
    let is_inside = |path: &PathBuf| {
        path.starts_with(root)
            && path != root
            && path.symlink_metadata().is_ok()
            && !path.ends_with("work")
    };
    quoted.into_iter().find(is_inside)
}

fn attempt_line(
    command: &Command,
    arguments: &[String],
    failed: &Output,
    line: &str,
) -> Result<(), String> {
    let mut shell = again(command, "/usr/bin/timeout");
    shell.args(["20", "/bin/bash", "-c", &format!("echo token | {line}")]);
    let programs = Path::new(env!("CARGO_BIN_EXE_mu")).parent().expect("is in a folder");
    let path = command.get_envs().find(|(name, _)| *name == "PATH");
    let path = path.and_then(|(_, value)| value).unwrap_or_default().to_string_lossy().into_owned();
    shell.env("PATH", format!("{}:{path}:/usr/bin:/bin", programs.display()));
    let typed = shell.output().expect("bash is there");
    let said = String::from_utf8_lossy(&typed.stderr).into_owned();
    let rest = line.strip_prefix("mu ").unwrap_or(line);
    let is_verb = |verb: &str| rest == verb || rest.starts_with(&format!("{verb} "));
    match typed.status.code() {
        Some(0) if SHOW.iter().any(|verb| is_verb(verb)) || line.ends_with("--help") => Ok(()),
        // The way out is this command in place of the one that failed, which could not be meant or chose versions, too.
        Some(0) if failed.status.code() == Some(2) => Ok(()),
        Some(0) if arguments.iter().any(|one| is_verb(one)) => Ok(()),
        Some(0)
            if INSTALL.iter().any(|verb| {
                is_verb(verb) && arguments.iter().any(|one| INSTALL.contains(&&**one))
            }) =>
        {
            Ok(())
        }
        Some(0) => match is_same(failed, &run(command, arguments)) {
            true => Err(format!("`{line}` succeeds, and then it says the same")),
            false => Ok(()),
        },
        Some(2) if failed.status.code() != Some(2) => {
            Err(format!("`{line}` is no command:\n{said}"))
        }
        // It gets to another difficulty, and says what that is.
        _ if said != String::from_utf8_lossy(&failed.stderr) => Ok(()),
        _ => Err(format!("`{line}` says the same")),
    }
}

fn run(command: &Command, arguments: &[String]) -> Output {
    let mut rerun = again(command, "/usr/bin/timeout");
    rerun.arg("20").arg(command.get_program()).args(arguments);
    rerun.output().expect("mu can be run")
}

/// Another program where this one runs, with the same environment.
fn again(command: &Command, program: &str) -> Command {
    let mut again = Command::new(program);
    again.env_clear().stdin(Stdio::null());
    again.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    again.current_dir(command.get_current_dir().expect("runs somewhere"));
    again
}

fn is_same(before: &Output, after: &Output) -> bool {
    before.status == after.status && before.stdout == after.stdout && before.stderr == after.stderr
}
