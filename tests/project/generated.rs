//! Documents that are generated from the program: the reference of its commands.

use clap::Command;

use super::{check_generated, files, read};

#[test]
fn the_reference_of_commands_is_current() {
    let program = mu::cli::program().term_width(100);
    let mut page = String::from(
        "# Commands\n\n\
         What `mu --help` and `mu COMMAND --help` print. The global options are shown once, with `mu` itself.\n\n\
         <!-- Made by `BLESS=1 cargo test --test project generated`; do not edit. -->\n",
    );
    write(&program, "mu", &mut page);
    check_generated("docs/commands.md", page.as_bytes());
}

fn write(command: &Command, name: &str, page: &mut String) {
    let is_program = name == "mu";
    let mut shown = command.clone().term_width(100).bin_name(name);
    if !is_program {
        shown = shown.mut_args(|argument| {
            let is_global = argument.get_help_heading() == Some("Global options");
            let is_usual = ["help", "version"].contains(&argument.get_id().as_str());
            if is_global || is_usual { argument.hide(true) } else { argument }
        });
    }
    let help = shown.render_help();
    let lines: Vec<String> =
        help.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    page.push_str(&format!("\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n").trim_end()));
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write(inner, &format!("{name} {}", inner.get_name()), page);
    }
}

/// Line breaks inside a paragraph stay on every terminal, and leave single words behind on narrow ones.
#[test]
fn paragraphs_of_help_are_wrapped_by_the_terminal_alone() {
    let program = mu::cli::program();
    let mut broken = Vec::new();
    let mut commands = vec![&program];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let lines: Vec<&str> = text.lines().filter(|line| *line != "Examples:").collect();
        let pairs = lines.windows(2).filter(|pair| is_prose(pair[0]) && is_prose(pair[1]));
        broken.extend(pairs.map(|pair| format!("{}: {}", command.get_name(), pair[0])));
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_command_that_is_spoken_of_exists() {
    let program = mu::cli::program();
    let is_known = |word: &str| {
        let is_it = |command: &clap::Command| {
            command.get_name() == word || command.get_all_aliases().any(|alias| alias == word)
        };
        // Stands for a flag, and is in no list.
        word == "help" || program.get_subcommands().any(is_it)
    };
    let mut unknown = Vec::new();
    for path in files("") {
        let path = path.to_str().expect("paths of the repository are UTF-8");
        if !path.ends_with(".md") && !path.starts_with("src/") && path != "Mu.yaml.example" {
            continue;
        }
        for (number, line) in read(path).lines().enumerate() {
            let quoted = line.split("`mu ").skip(1);
            let shown = line.trim_start().strip_prefix("$ mu ");
            for rest in quoted.chain(shown) {
                let is_part = |character: char| character.is_ascii_lowercase() || character == '-';
                let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
                let word = &rest[..end];
                if !word.is_empty() && !word.starts_with('-') && !is_known(word) {
                    unknown.push(format!("{path}:{}: mu {word}", number + 1));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn the_page_about_plugins_shows_the_whole_example() {
    let program = read("examples/plugins/mu-provider-shelf");
    assert!(read("docs/plugins.md").contains(&format!("```python\n{program}```\n")));
    assert!(program.lines().count() < 75, "it is short enough to read on a page");
}
