//! The flags that every command takes.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use mu_provider::place_without_secrets;

use crate::env::Environment;
use crate::manifest::source::{Choice as _, TextProblem};
use crate::ops::{Code, CommandError, Options};
use crate::report::{ColorChoice, ShellOptions, Verbosity};
use crate::workspace::{ConfiguredRegistry, Cutoff, Resolution, prefix};

/// The heading of the options in help that every command takes.
pub(super) const HEADING: &str = "Global options";

/// The flags that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct Global {
    /// Run as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Do not use the network; use only what is on this machine
    #[arg(long, global = true)]
    offline: bool,
    /// Ask registries again, however recent their last answers are
    #[arg(long, global = true, conflicts_with = "offline")]
    pub(super) refresh: bool,
    /// Fail if Mu.lock would change
    #[arg(long, global = true, conflicts_with = "frozen")]
    locked: bool,
    /// Use Mu.lock without checking it against the manifests
    #[arg(long, global = true)]
    frozen: bool,
    /// Use a store that cannot be written; what it lacks is an error
    #[arg(long, global = true)]
    store_readonly: bool,
    /// Take packages below BASE from PLACE, a URL or a folder; repeatable
    #[arg(long, value_name = "BASE=PLACE", global = true)]
    registry: Vec<String>,
    /// Look for packages below BASE only; repeatable
    #[arg(long, value_name = "BASE", global = true)]
    only: Vec<String>,
    /// How versions are chosen
    #[arg(long, value_name = "STRATEGY", global = true, value_parser = ["highest", "minimal"])]
    resolution: Option<String>,
    /// Ignore versions published after a DATE, or in the last AGE ("3 days")
    #[arg(long, value_name = "DATE|AGE", global = true)]
    exclude_newer: Option<String>,
    /// Stop searching for versions after N steps [default: 1000000]
    #[arg(long, value_name = "N", global = true, value_parser = |text: &str| within::<usize>(text, 1..=usize::MAX))]
    patience: Option<usize>,
    /// Stop after N packages [default: 100000]
    #[arg(long, value_name = "N", global = true, value_parser = |text: &str| within::<usize>(text, 1..=usize::MAX))]
    most: Option<usize>,
    /// Allow plain http:// to other machines
    #[arg(long, global = true)]
    pub(crate) allow_insecure: bool,
    /// Use packages that are edited here even where CI is set, or to publish
    #[arg(long, global = true)]
    allow_edits: bool,
    /// Print the answer as one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only answers and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Print each request, and what took how long; -vv also prints headers
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// When to use colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value = "auto",
        // Describing each value would make every help three times as long.
        value_parser = PossibleValuesParser::new(["auto", "always", "never"]).map(color_choice)
    )]
    color: ColorChoice,
    /// Do not show progress
    #[arg(long, global = true)]
    no_progress: bool,
    /// Answer yes to every question
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,
    /// Number of parallel jobs
    #[arg(long, value_name = "N", global = true, value_parser = |text: &str| within::<u16>(text, 1..=256))]
    jobs: Option<u16>,
}

impl Global {
    /// How output looks, including the variables `MU_LOG` and `FORCE_COLOR`.
    pub(crate) fn shell_options(&self, environment: Option<&Environment>) -> ShellOptions {
        let variable = |name| environment.and_then(|environment| environment.variable(name));
        let logged = match variable("MU_LOG") {
            Some("info" | "1") => 1,
            Some("debug" | "trace") => 2,
            // `operation_options` refuses what is none of `LOGGED`.
            _ => 0,
        };
        let verbosity = match (self.quiet, self.verbose.max(logged)) {
            (true, _) => Verbosity::Quiet,
            (_, 0) => Verbosity::Normal,
            (_, 1) => Verbosity::Verbose,
            (_, 2..) => Verbosity::Debug,
        };
        ShellOptions {
            color: color(self.color, environment),
            verbosity,
            json: self.json,
            // Such a terminal cannot go back in a line.
            no_progress: self.no_progress || variable("TERM") == Some("dumb"),
        }
    }

    /// The options of operations, from flags and the environment.
    pub(crate) fn operation_options(
        &self,
        environment: &Environment,
    ) -> Result<Options, CommandError> {
        let resolution = self.resolution.as_deref().or(environment.variable("MU_RESOLUTION"));
        let known = |word| {
            let message = format!("MU_RESOLUTION is `{word}`, and must be `highest` or `minimal`");
            Resolution::of_word(word).ok_or_else(|| CommandError::new(Code::Usage, message))
        };
        let resolution = resolution.map(known).transpose()?;
        let cutoff = self.exclude_newer.as_deref().map(Cutoff::parse).transpose();
        let cutoff = cutoff.map_err(|problem| misread("--exclude-newer", problem))?;
        let registries = self.registry.iter().map(|text| registry(text, &environment.current));
        let only = self.only.iter().map(|text| {
            prefix(text).map_err(|problem| misread(&format!("--only {text}"), problem))
        });
        if let Some(word) = environment.variable("MU_LOG")
            && !LOGGED.contains(&word)
        {
            let message = format!("MU_LOG is `{word}`, and must be `info`, `debug` or `off`");
            return Err(CommandError::new(Code::Usage, message));
        }
        // A flag counts before its variable where the two differ, and both before what the settings say.
        Ok(Options {
            offline: is_true(environment, "MU_OFFLINE")? || self.offline,
            refresh: self.refresh,
            locked: self.locked,
            frozen: self.frozen,
            store_readonly: is_true(environment, "MU_STORE_READONLY")? || self.store_readonly,
            resolution,
            published_before: cutoff.map(|cutoff| match cutoff {
                // "0 days" takes back a limit of the settings.
                Cutoff::Age(0) => i64::MAX,
                cutoff => cutoff.cutoff_time(environment.now),
            }),
            patience: self.patience,
            allow_edits: self.allow_edits,
            yes: self.yes,
            allow_insecure: self.allow_insecure,
            jobs: self.jobs.map_or(0, usize::from),
            registries: registries.collect::<Result<_, _>>()?,
            only: only.collect::<Result<_, _>>()?,
            most: self.most,
            tells_archives: self.json,
            repeated: self.repeated(),
            ..Options::default()
        })
    }

    /// The flags that commands to run next need too.
    fn repeated(&self) -> Vec<(&'static str, Option<String>)> {
        let directory = self.directory.as_ref().map(|directory| directory.display().to_string());
        let valued = [
            ("-C", directory),
            ("--resolution", self.resolution.clone()),
            ("--exclude-newer", self.exclude_newer.clone()),
            ("--patience", self.patience.map(|steps| steps.to_string())),
            ("--most", self.most.map(|most| most.to_string())),
        ];
        let valued = valued.into_iter().filter(|(_, value)| value.is_some());
        let registries = self.registry.iter().map(|text| ("--registry", Some(text.clone())));
        let only = self.only.iter().map(|text| ("--only", Some(text.clone())));
        let valued = valued.chain(registries).chain(only);
        valued.chain(self.allow_insecure.then_some(("--allow-insecure", None))).collect()
    }
}

/// What `MU_LOG` may be; those of other programs that are not as telling as `info` change nothing.
const LOGGED: [&str; 8] = ["0", "1", "off", "error", "warn", "info", "debug", "trace"];

/// Whether a variable is set, and says yes.
fn is_true(environment: &Environment, name: &str) -> Result<bool, CommandError> {
    let Some(word) = environment.variable(name) else { return Ok(false) };
    match &*word.to_ascii_lowercase() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => {
            let message = format!("{name} is `{word}`, and must be `1` or `0`");
            Err(CommandError::new(Code::Usage, message))
        }
    }
}

/// The error about a flag whose value cannot be read.
fn misread(flag: &str, problem: TextProblem) -> CommandError {
    let error = CommandError::new(Code::Usage, format!("{flag}: {}", problem.message));
    match problem.help {
        Some(help) => error.hint(help),
        None => error,
    }
}

/// Reads `BASE=PLACE`; a folder is relative to `current`.
fn registry(text: &str, current: &Path) -> Result<ConfiguredRegistry, CommandError> {
    let flag = format!("--registry {}", place_without_secrets(text));
    let Some((base, place)) = text.split_once('=') else {
        let error = CommandError::new(Code::Usage, format!("{flag}: expected BASE=PLACE"));
        return Err(error.hint("such as `--registry hub.mu.com/=../hub`"));
    };
    let mut registry = ConfiguredRegistry::at_place(base, place, current)
        .map_err(|problem| misread(&flag, problem))?;
    registry.defined_in = "--registry".into();
    Ok(registry)
}

/// When output is coloured; `FORCE_COLOR` may enable it.
pub(super) fn color(asked: ColorChoice, environment: Option<&Environment>) -> ColorChoice {
    let variable = |name| environment.and_then(|environment| environment.variable(name));
    let is_forced = variable("FORCE_COLOR").is_some_and(|value| value != "0");
    let is_forced = is_forced && variable("NO_COLOR").is_none();
    if asked == ColorChoice::Auto && is_forced { ColorChoice::Always } else { asked }
}

/// When output is coloured, from a command line that may be invalid.
pub(super) fn color_of(arguments: &[OsString], environment: Option<&Environment>) -> ColorChoice {
    let words = arguments.iter().filter_map(|argument| argument.to_str());
    let after = words.clone().skip_while(|word| *word != "--color").nth(1);
    let word = after.or_else(|| words.clone().find_map(|word| word.strip_prefix("--color=")));
    color(color_choice(word.unwrap_or_default().to_owned()), environment)
}

/// The program with the global options alone.
pub(super) fn global_program() -> clap::Command {
    Global::augment_args(clap::Command::new("mu").disable_help_subcommand(true))
}

/// The words of a command line, with their places: what is neither an option nor the value of one of `options`.
pub(super) fn words<'a, A: AsRef<OsStr>>(
    arguments: &'a [A],
    options: &clap::Command,
) -> impl Iterator<Item = (usize, &'a OsStr)> {
    let mut is_value = false;
    arguments.iter().map(AsRef::as_ref).enumerate().filter(move |(_, argument)| {
        if std::mem::take(&mut is_value) {
            return false;
        }
        let is_option = argument.as_encoded_bytes().starts_with(b"-");
        is_value = is_option && argument.to_str().is_some_and(|text| wants_value(options, text));
        !is_option
    })
}

/// Whether the argument after this option is its value.
fn wants_value(options: &clap::Command, option: &str) -> bool {
    let mut known = options.get_arguments().filter(|one| one.get_action().takes_values());
    match option.strip_prefix("--") {
        Some(name) => known.any(|one| one.get_long() == Some(name)),
        // Several options of one letter can stand together. What follows the first that has a value is that value.
        None => {
            let letters: Vec<char> = known.filter_map(|one| one.get_short()).collect();
            option.find(&*letters).is_some_and(|at| option[at..].chars().count() == 1)
        }
    }
}

fn color_choice(text: String) -> ColorChoice {
    match &*text {
        "always" => ColorChoice::Always,
        "never" => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// Reads a number of the command line that is within limits.
pub(crate) fn within<T: TryFrom<usize>>(
    text: &str,
    limits: RangeInclusive<usize>,
) -> Result<T, String> {
    let (least, most) = (limits.start(), limits.end());
    let expected = match *most {
        usize::MAX => format!("expected a number, at least {least}"),
        most => format!("expected a number from {least} to {most}"),
    };
    let number = Some(number(text)?).filter(|number| limits.contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or(expected)
}

/// Reads a number of the command line.
pub(crate) fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a number, such as 8".to_owned())
}
