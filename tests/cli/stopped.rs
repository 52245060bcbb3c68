//! A search for versions that would not end: it is stopped, and the error says what to do.

use crate::support::Sandbox;

/// Seven packages of one kind, each of which needs one of six for itself; the oldest version of each needs
/// nothing if `is_open`.
fn sandbox(is_open: bool) -> Sandbox {
    let names: Vec<String> = (0..7).map(|pigeon| format!("birds/pigeon-{pigeon}#>=0.9")).collect();
    let sandbox = Sandbox::with_dependencies(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut lines = String::new();
    for pigeon in 0..7 {
        if is_open {
            lines.push_str(&format!("birds/pigeon-{pigeon} 0.9.0:\n"));
        }
        for hole in 0..6 {
            lines.push_str(&format!(
                "birds/pigeon-{pigeon} 1.{hole}.0: holes/{hole}#1.{pigeon}.0\n"
            ));
            lines.push_str(&format!("holes/{hole} 1.{pigeon}.0:\n"));
        }
    }
    sandbox.offer(&lines);
    sandbox
}

#[test]
fn a_search_that_was_stopped_names_packages_and_the_ways_on() {
    let sandbox = sandbox(false);
    let run = sandbox.mu(&["get", "--patience", "100"]).fails();
    run.says(&[
        "choosing versions was stopped after 100 steps",
        "most conflicts were about ",
        "whether any versions fit together is not known",
        "hint: search longer: `mu get --patience 1000`",
    ]);
    sandbox.mu(&["get", "--patience", "1"]).fails().says(&["was stopped after 1 step\n"]);
    let error = sandbox.mu(&["get", "--patience", "100", "--json"]).fails_with("no-solution");
    assert_eq!(error["details"]["steps"], 100);
    assert_eq!(error["details"]["packages"].as_array().map(Vec::len), Some(5));
    assert!(!sandbox.has("work/Mu.lock"));
    sandbox.mu(&["get"]).fails().says(&["no versions fit together"]);
}

#[test]
fn what_is_suggested_instead_of_a_longer_search_works() {
    let sandbox = sandbox(true);
    let run = sandbox.mu(&["resolve", "--patience", "20"]).fails();
    run.says(&["mu resolve --resolution minimal --patience 20", "mu resolve --patience 200"]);
    sandbox.mu(&["resolve", "--resolution", "minimal", "--patience", "20"]).ok();
}
