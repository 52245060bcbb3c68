//! The output of a run of `mu`, and how it ended.

use std::process::Output;

use serde_json::Value;

use super::schema::{conforms, fault};

/// A finished run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    command: String,
    said: String,
}

impl Run {
    /// `command` is the command that ran, and `replaced` are the texts that differ from one run of the tests
    /// to the next.
    pub(crate) fn new(command: &str, output: &Output, replaced: &[(String, &str)]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("mu prints UTF-8");
        let clean = |text: String| {
            let clean = |text: String, (what, by): &(String, &str)| text.replace(what, by);
            replaced.iter().fold(text, clean)
        };
        let status = output.status.code().unwrap_or(-1);
        let (stdout, stderr) = (clean(text(&output.stdout)), clean(text(&output.stderr)));
        let said = format!("$ {command}\n{stdout}{}[exit {status}]", without_times(&stderr));
        Self { status, stdout, stderr, command: command.to_owned(), said }
    }

    /// Command, output and exit status, as a person would see them.
    pub(crate) fn shown(&self) -> &str {
        &self.said
    }

    /// The output with narrower columns, because their width depends on the length of temporary folders.
    pub(crate) fn narrow(&self) -> String {
        let mut text = self.said.clone();
        while text.contains("   ") {
            text = text.replace("   ", "  ");
        }
        text
    }

    /// Expects success.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.status, 0, "should succeed:\n{}", self.said);
        self
    }

    /// Expects failure, status 1.
    #[track_caller]
    pub(crate) fn fails(self) -> Self {
        assert_eq!(self.status, 1, "should fail:\n{}", self.said);
        self
    }

    /// Standard output as the one JSON document that it must be, and that `mu schema answer` describes.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let answer = serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("stdout is not one JSON document: {error}\n{}", self.said)
        });
        if let Some(fault) = fault(&self.command, &answer) {
            panic!("the answer is not what `mu schema` says: {fault}\n{}", self.said);
        }
        answer
    }

    /// The error on standard error as JSON; standard output must be empty.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        assert_eq!(self.stdout, "", "an error leaves stdout empty:\n{}", self.said);
        let last = self.stderr.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(last)
            .unwrap_or_else(|error| panic!("stderr is not JSON: {error}\n{}", self.said));
        let error = value["error"].clone();
        if let Err(fault) = conforms("error", &value) {
            panic!("the error is not what `mu schema` says: {fault}\n{}", self.said);
        }
        let keys: Vec<&String> = error.as_object().expect("is an object").keys().collect();
        assert_eq!(keys, ["code", "message", "help", "details"], "{}", self.said);
        error
    }

    /// Expects a failure with this code, printed as JSON.
    #[track_caller]
    pub(crate) fn fails_with(&self, code: &str) -> Value {
        let error = self.error();
        assert_eq!(error["code"], code, "{}", self.said);
        assert_eq!(self.status, if code == "usage" { 2 } else { 1 }, "{}", self.said);
        error
    }

    /// Expects every part in the output, on either stream.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.said.contains(part), "`{part}` is missing:\n{}", self.said);
        }
        self
    }

    /// Expects none of the parts in the output.
    #[track_caller]
    pub(crate) fn does_not_say(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(!self.said.contains(part), "`{part}` should not be there:\n{}", self.said);
        }
        self
    }
}

/// The standard error without durations.
fn without_times(stderr: &str) -> String {
    let is_slow = |line: &&str| line.starts_with("waiting for ") && line.ends_with(" to answer\n");
    let mut text: String = stderr.split_inclusive('\n').filter(|line| !is_slow(line)).collect();
    if let Some(start) = text.find(" attempts in ")
        && let Some(end) = text[start..].find(" s)")
    {
        text.replace_range(start..start + end, " attempts in [TIME]");
    }
    text
}
