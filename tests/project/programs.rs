//! Every place that starts a program, and every argument that it gives: those made of foreign text are of a type that
//! only its check makes, and stand where they can be no option.
//!
//! This reads the source as text. It sees which expressions are arguments, in which order; that an expression has the
//! type that stands here is for the compiler and the reviewer. `tests/cli/programs.rs` looks at what really runs.

use std::collections::BTreeSet;

use super::read;
use super::tidy::{is_test, texts, without_tests};

/// What starts processes itself. Everything else goes through the first one.
const STARTS: &[&str] = &[
    "providers/api/src/program.rs",
    // Builds run what a package brings, which is their purpose, and confine it.
    "src/ops/build/",
];

/// An argument that is no constant text.
struct Argument {
    file: &'static str,
    expression: &'static str,
    /// Its type, or why no foreign text is in it.
    what: &'static str,
    /// Whether it stands behind `--` or `--end-of-options`.
    behind: bool,
}

const fn argument(
    file: &'static str,
    expression: &'static str,
    what: &'static str,
    behind: bool,
) -> Argument {
    Argument { file, expression, what, behind }
}

const CLONE: &str = "providers/git/src/working_copy/program.rs";
const STAND_IN: &str = "providers/git/src/stand_in.rs";
const SSH: &str = "providers/git/src/transport/ssh.rs";
const PROGRAMS: &str = "providers/git/src/programs.rs";

const ARGUMENTS: &[Argument] = &[
    argument(CLONE, "filter", "constants", false),
    argument(CLONE, "&remote.to_string()", "RemoteUrl", true),
    argument(CLONE, "into", "a path of mu's own below the workspace's root", true),
    argument(CLONE, "clone", "a path of mu's own below the workspace's root", false),
    // `git checkout` did not know `--end-of-options` for long.
    argument(CLONE, "branch", "BranchName", false),
    argument(CLONE, "&commit", "Commit", false),
    argument(CLONE, "tag.full()", "TagName", true),
    argument(CLONE, "&format!(\"{commit}^{{commit}}\")", "Commit", true),
    argument(CLONE, "commit", "Commit", true),
    argument("providers/git/src/transport/file.rs", "&folder", "an absolute path", true),
    argument("providers/git/src/transport/credentials.rs", "verb", "constants", false),
    argument(
        PROGRAMS,
        "&format!(\"include.path={file}\")",
        "a path of the user's own, behind `-c`",
        false,
    ),
    argument(PROGRAMS, "scope", "constants", false),
    argument(
        "providers/git/src/settings.rs",
        "&format!(\"^({})$\", KEYS.join(\"|\"))",
        "a constant",
        false,
    ),
    argument(
        "providers/git/src/settings.rs",
        "format!(\"http.{url}.{MARK}{number}=1\")",
        "a key of the user's own configuration, behind `-c`",
        false,
    ),
    argument("providers/git/src/settings.rs", "remote.url.as_url().as_str()", "RemoteUrl", false),
    argument(SSH, "format!(\"{line} \\\"$@\\\"\")", "the user's own command line", false),
    argument(SSH, "line", "the user's own command line", false),
    argument(SSH, "option", "constants", false),
    argument(SSH, "port.to_string()", "a number", false),
    // Other programs than OpenSSH have no `--`. RemoteUrl refuses users, hosts and paths that begin with `-`.
    argument(SSH, "format!(\"{user}@{host}\")", "RemoteUrl", true),
    argument(SSH, "host", "RemoteUrl", true),
    argument(SSH, "format!(\"git-upload-pack {}\", quote(&remote.path()))", "RemoteUrl", true),
    argument("src/cli/hub.rs", "arguments.iter().skip(1)", "the user's own, as they are", false),
    argument(STAND_IN, "git_dir", "an absolute path of mu's own, or that of a checkout", false),
    argument(STAND_IN, "&self.place.root", "an absolute path", false),
    argument(STAND_IN, "arguments", "constants, and a path behind `--`", false),
    argument("src/ops/doctor.rs", "version", "constants", false),
];

/// The text between the bracket at the start of `text` and the one that closes it.
fn inside(text: &str) -> &str {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return &text[1..at];
                }
            }
            _ => {}
        }
    }
    panic!("brackets close: {text}");
}

/// The parts between the commas that are in no bracket and no text.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped, mut start, mut parts) =
        (0_i32, false, false, 0, Vec::new());
    for (at, character) in list.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// The arguments that a file gives, in their order, and whether each stands behind the end of options.
fn arguments(text: &str) -> Vec<(String, bool)> {
    let (mut found, mut behind) = (Vec::new(), false);
    for (at, _) in text.match_indices('.') {
        let rest = &text[at..];
        if [".git(", ".inside(", ".command("].iter().any(|begin| rest.starts_with(begin)) {
            behind = false;
        }
        let given = match (rest.strip_prefix(".arg("), rest.strip_prefix(".args(")) {
            (Some(_), _) => vec![inside(&rest[".arg".len()..])],
            (_, Some(_)) => {
                let list = inside(&rest[".args".len()..]);
                list.strip_prefix('[').map_or(vec![list], |_| parts(inside(list)))
            }
            _ => continue,
        };
        for one in given {
            let one = one.split_whitespace().collect::<Vec<_>>().join(" ");
            behind |= ["\"--\"", "\"--end-of-options\""].contains(&&*one);
            found.push((one, behind));
        }
    }
    found
}

/// The files of the product that start programs, with the text before their tests.
fn starting() -> Vec<(String, String)> {
    let is_product = |path: &str| {
        let is_there = ["src/", "providers/", "crates/"].iter().any(|at| path.starts_with(at));
        is_there && !is_test(path) && !path.starts_with("crates/testing/")
    };
    let mut files = Vec::new();
    for (path, text) in texts("rs").into_iter().filter(|(path, _)| is_product(path)) {
        let text = text.split("\n#[cfg(all(test, unix))]").next().unwrap_or_default();
        files.push((path, without_tests(text).to_owned()));
    }
    files
}

#[test]
fn one_file_starts_programs() {
    for (path, text) in starting() {
        let is_start = STARTS.iter().any(|start| path.starts_with(start));
        // `clap` and the ways out of a conflict have a `Command`, too.
        let starts = text.contains("process::Command::new")
            || (text.contains("Command::new") && text.contains("use std::process::"));
        assert!(!starts || is_start, "{path} starts a program: use `mu_provider::Program`");
    }
}

#[test]
fn every_argument_is_known() {
    let mut seen = BTreeSet::new();
    for (path, text) in starting() {
        let starts = text.contains(".command(") || text.contains("programs.git()");
        if !starts || STARTS.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        for (expression, behind) in arguments(&text) {
            if expression.starts_with('"') {
                continue;
            }
            let known =
                ARGUMENTS.iter().find(|known| known.file == path && known.expression == expression);
            let known = known.unwrap_or_else(|| {
                panic!(
                    "{path} gives a program `{expression}`: say in ARGUMENTS of which type it is"
                )
            });
            assert!(
                behind || !known.behind,
                "{path}: `{expression}` ({}) may be an option",
                known.what
            );
            seen.insert((known.file, known.expression));
        }
    }
    let all: BTreeSet<_> = ARGUMENTS.iter().map(|known| (known.file, known.expression)).collect();
    assert_eq!(seen, all, "ARGUMENTS names what no program gets");
}

#[test]
fn commits_reach_providers_locks_and_edits_as_commits() {
    let read_or_run = ["providers/", "src/lock/", "src/workspace/", "src/ops/edit/"];
    for (path, text) in starting() {
        if !read_or_run.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let texts =
                ["&str", "String", "Option<&str>", "Option<String>", "&[String]", "Vec<String>"];
            let is_text = |kind: &&str| {
                ["commit", "commits"].iter().any(|name| {
                    let at = format!("{name}: {kind}");
                    line.split_once(&at).is_some_and(|(_, rest)| rest.starts_with([',', ')']))
                })
            };
            // What is printed.
            let is_known = path == "src/ops/edit/mod.rs" && line.trim() == "pub commit: String,";
            assert!(is_known || !texts.iter().any(is_text), "{path}: {line}");
        }
    }
    let types = [
        "providers/api/src/digest.rs",
        "providers/git/src/ref_name.rs",
        "providers/api/src/program.rs",
    ];
    for path in types {
        let text = read(path);
        let fields =
            text.lines().filter(|line| line.starts_with("pub struct ") && line.contains('('));
        for field in fields {
            assert!(!field.contains("(pub"), "{path}: {field}: anybody could make one");
        }
    }
}
