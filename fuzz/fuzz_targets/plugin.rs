//! Any text as a record of what mu and a plugin say to each other, whose lines are the messages as mu reads them. Nothing panics,
//! and what is read is a question with an answer.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run plugin -- -max_total_time=60`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu_provider_exec::record;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().count();
    if let Ok(questions) = record::parse("x-1.jsonl", &text) {
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
