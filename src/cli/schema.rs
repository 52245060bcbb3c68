//! `mu schema`: the content of files, and the JSON answers of commands.

use clap::{Args, ValueEnum};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::cli::context::{CommandExit, Context};
use crate::manifest::in_lines;
use crate::ops::{Code, CommandError};

#[derive(Debug, Args)]
#[command(after_help = "\
`mu schema answer COMMAND` describes what COMMAND prints with --json; `mu schema answer error` describes what any command prints on \
stderr when it fails.

Examples:
  mu schema manifest > mu.schema.json
  # then, as the first line of Mu.yaml:
  # yaml-language-server: $schema=./mu.schema.json
  mu schema answer list
  mu schema answer cache size")]
pub(crate) struct SchemaArguments {
    /// Mu.yaml (manifest), .mu/workspace.yaml, Mu.lock, or the answer of a command
    #[arg(value_enum, value_name = "WHAT")]
    what: What,
    /// The command whose answer is described
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Manifest,
    Workspace,
    Lock,
    Answer,
}

/// One shape of an answer.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// Runs `mu schema`; `described` are the answers of commands, by their names.
pub(crate) fn run(
    context: &Context,
    arguments: &SchemaArguments,
    described: &[(&str, &[Shape])],
) -> CommandExit {
    let command = arguments.command.join(" ");
    let schema = match arguments.what {
        What::Answer => in_lines(answer(&command, described)?.to_value()),
        _ if !command.is_empty() => {
            let message = format!("`{command}` is only for `mu schema answer`");
            return Err(CommandError::new(Code::Usage, message).into());
        }
        What::Manifest => crate::manifest::schema(),
        What::Workspace => crate::workspace::schema(),
        What::Lock => crate::lock::schema(),
    };
    context.json(&schema)
}

/// The schema of a command's answer.
fn answer(command: &str, described: &[(&str, &[Shape])]) -> Result<Schema, CommandError> {
    let Some((_, shapes)) = described.iter().find(|(name, _)| *name == command) else {
        let names: Vec<&str> = described.iter().map(|(name, _)| *name).collect();
        let message = match command {
            "" => "`mu schema answer` needs the command whose answer it describes".to_owned(),
            command => format!("`mu {command}` has no answer that is described"),
        };
        let hint = format!("these are described: {}", names.join(", "));
        return Err(CommandError::new(Code::Usage, message).hint(hint));
    };
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schemas: Vec<Schema> = shapes.iter().map(|shape| shape(&mut generator)).collect();
    let one = match schemas.len() {
        1 => schemas.remove(0),
        _ => json_schema!({ "anyOf": schemas }),
    };
    let meta = generator.settings().meta_schema.clone();
    let mut schema = json_schema!({ "$schema": meta, "title": format!("mu {command} --json") });
    let all = schema.ensure_object();
    all.extend(one.as_object().cloned().unwrap_or_default());
    all.insert("$defs".to_owned(), generator.take_definitions(true).into());
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::commands::answers;

    /// The names of commands that do something without a command below them.
    fn leaves(command: &clap::Command, name: &str, all: &mut Vec<String>) {
        for inner in command.get_subcommands() {
            leaves(inner, format!("{name} {}", inner.get_name()).trim_start(), all);
        }
        if !name.is_empty() && !command.is_subcommand_required_set() {
            all.push(name.to_owned());
        }
    }

    #[test]
    fn the_answer_of_every_command_is_described() {
        let mut program = Cli::command();
        program.build();
        let mut commands = Vec::new();
        leaves(&program, "", &mut commands);
        commands.push("error".to_owned());
        // One runs until it is stopped, and others print documents of formats that are described elsewhere.
        let has_none = ["hub serve", "schema", "sbom", "__complete"];
        commands.retain(|name| !has_none.contains(&name.as_str()));
        commands.sort();
        let names: Vec<&str> = answers().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, commands);
    }

    /// The places of fields without a description, in a schema and those below it.
    fn undescribed(schema: &serde_json::Value, place: &str, found: &mut Vec<String>) {
        match schema {
            serde_json::Value::Object(keys) => {
                for (key, value) in keys {
                    let place = format!("{place}/{key}");
                    let fields = value.as_object().filter(|_| key == "properties");
                    let bare = fields.into_iter().flatten().filter(|(_, field)| {
                        field.get("description").is_none() && field.get("$ref").is_none()
                    });
                    found.extend(bare.map(|(field, _)| format!("{place}/{field}")));
                    undescribed(value, &place, found);
                }
            }
            serde_json::Value::Array(all) => {
                all.iter().for_each(|one| undescribed(one, place, found));
            }
            _ => {}
        }
    }

    #[test]
    fn every_field_is_described() {
        let mut found = Vec::new();
        for (name, _) in answers() {
            let schema = answer(name, &answers()).expect("is described").to_value();
            undescribed(&schema, name, &mut found);
        }
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn an_answer_that_there_is_not_is_told_by_those_that_there_are() {
        for command in ["", "lst"] {
            let error = answer(command, &answers()).expect_err("is none");
            assert!(error.hints[0].contains("hub token add, hub token list"), "{:?}", error.hints);
        }
    }
}
