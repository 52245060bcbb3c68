//! Any text as what a plugin sends, and as a record of what it and mu say to each other. Nothing panics, what an error says can be
//! shown on a terminal, and what is read of a record is a question with an answer.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run plugin -- -max_total_time=60`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu_provider_exec::message::{self, Fetched, Incoming, Introduction, Package, Packages};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    text.lines().for_each(message);
    let lines = text.lines().count();
    if let Ok(questions) = message::parse("x-1.jsonl", &text) {
        assert!(questions.len() * 2 <= lines);
        for question in questions {
            assert!(question.method != "initialize" && question.place.starts_with("x-1.jsonl:"));
            let answer = question.answer.as_object().expect("is an object");
            assert!(
                answer.len() == 1
                    && (answer.contains_key("result") || answer.contains_key("error"))
            );
        }
    }
});

/// Reads a line as mu does, and its result as the answer to each question.
fn message(line: &str) {
    let Ok(Incoming { result, error, .. }) = serde_json::from_str(line) else { return };
    if let Some(error) = error {
        let error = error.into_provider_error("the plugin");
        let shown = error.hints().iter().cloned().chain([error.to_string()]);
        shown.for_each(|text| assert!(!text.contains(char::is_control), "{text:?}"));
    }
    let _ = serde_json::from_value::<Introduction>(result.clone());
    let _ = serde_json::from_value::<Package>(result.clone());
    let _ = serde_json::from_value::<Fetched>(result.clone());
    if let Ok(packages) = serde_json::from_value::<Packages>(result) {
        let packages = packages.of(2).unwrap_or_default();
        assert!(packages.is_empty() || packages.len() == 2);
        packages.into_iter().for_each(|one| drop(serde_json::from_value::<Package>(one)));
    }
}
