//! A terminal around `mu`: what a person sees while it runs, and what is left on the screen at the end.
//!
//! `script` creates the terminal, on every Linux. Only the few codes that mu prints are interpreted.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use super::Sandbox;

/// What a terminal shows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// The beginning of a character or code that has not arrived completely.
    rest: Vec<u8>,
}

/// A `mu` that runs in a terminal; it is killed when this is dropped.
pub(crate) struct Terminal {
    process: Child,
    screen: Screen,
    /// All different screens so far.
    seen: Vec<String>,
}

impl Terminal {
    /// Runs `mu` in a terminal of so many columns.
    pub(crate) fn run(sandbox: &Sandbox, columns: usize, arguments: &str) -> Self {
        let mu = env!("CARGO_BIN_EXE_mu");
        let line = format!("stty cols {columns} rows 50; exec {mu} {arguments}");
        let mut command = Command::new(mu_testing::program("script"));
        let like = sandbox.command(&[]);
        command
            .env_clear()
            .env("TERM", "xterm")
            .envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(sandbox.path("work")).env("SHELL", "/bin/sh");
        command.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let process = command.spawn().expect("these tests need `script`, of util-linux");
        Self { process, screen: Screen::default(), seen: Vec::new() }
    }

    /// Waits for a screen that `is_it`; fails if the run ends before.
    #[track_caller]
    pub(crate) fn shows(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        while let Some(shown) = self.read() {
            if is_it(&shown) {
                return shown;
            }
        }
        panic!("it was never shown; all that was:\n{}", self.seen.join("\n----\n"));
    }

    /// The next screen; none at the end.
    fn read(&mut self) -> Option<String> {
        let mut buffer = [0; 4096];
        let output = self.process.stdout.as_mut().expect("is piped");
        let count = output.read(&mut buffer).ok().filter(|count| *count > 0)?;
        self.screen.print(&buffer[..count]);
        let shown = self.screen.shown();
        if self.seen.last() != Some(&shown) {
            self.seen.push(shown.clone());
        }
        Some(shown)
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        let input = self.process.stdin.as_mut().expect("is piped");
        input.write_all(keys.as_bytes()).expect("can be typed");
        input.flush().expect("can be typed");
    }

    /// Waits for the end; returns the last screen, all screens, and the exit status as a shell shows it.
    pub(crate) fn end(mut self) -> (String, Vec<String>, i32) {
        while self.read().is_some() {}
        let status = self.process.wait().expect("is a child").code().unwrap_or(-1);
        (self.screen.shown(), std::mem::take(&mut self.seen), status)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Screen {
    fn print(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.rest);
        let whole = match std::str::from_utf8(&bytes) {
            Ok(_) => bytes.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = std::str::from_utf8(&bytes[..whole]).expect("was looked at");
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '\r' => self.column = 0,
                '\n' => self.row += 1,
                '\u{1b}' => {
                    let code = &text[at..];
                    let is_end = |character: char| character.is_ascii_alphabetic();
                    let Some(end) = code.find(is_end) else {
                        self.rest.extend_from_slice(&bytes[at..]);
                        return;
                    };
                    self.obey(&code[2..end], &code[end..=end]);
                    characters.nth(end - 1);
                }
                character => self.put(character),
            }
        }
        self.rest.extend_from_slice(&bytes[whole..]);
    }

    fn obey(&mut self, number: &str, code: &str) {
        match code {
            "A" => self.row -= number.parse::<usize>().unwrap_or(1),
            "J" => {
                self.lines.truncate(self.row + 1);
                if let Some(line) = self.lines.get_mut(self.row) {
                    line.truncate(self.column);
                }
            }
            "m" => {}
            other => panic!("mu prints no such code: {number}{other}"),
        }
    }

    fn put(&mut self, character: char) {
        self.lines.resize(self.lines.len().max(self.row + 1), Vec::new());
        let line = &mut self.lines[self.row];
        line.resize(line.len().max(self.column + 1), ' ');
        line[self.column] = character;
        self.column += 1;
    }

    fn shown(&self) -> String {
        let lines = self.lines.iter().map(|line| line.iter().collect::<String>());
        lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }
}
