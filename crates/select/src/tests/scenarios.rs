//! Runs `testdata/select/*.yaml`: small worlds, requests, and the expected choice or conflict.
//!
//! `testdata/select/README.md` describes the format.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::format::{Expected, Scenario, without_base};
use crate::{Failure, Highest, Minimal, Selection, SelectionWarning, Strategy};

#[test]
fn scenarios_come_out_as_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/select");
    let entries = fs::read_dir(&folder).expect("the scenarios are there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in &paths {
        let text = fs::read_to_string(path).expect("can be read");
        let file = path.file_name().expect("is a file").to_string_lossy();
        let scenarios: Vec<Scenario> =
            serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        for scenario in &scenarios {
            count += 1;
            if let Err(difference) = run(scenario) {
                wrong.push(format!("{file}: {}\n{difference}", scenario.case));
            }
        }
    }
    assert!(count >= 150, "only {count} scenarios were found in {}", folder.display());
    assert!(wrong.is_empty(), "{} of {count} went wrong\n\n{}", wrong.len(), wrong.join("\n"));
}

/// Runs a scenario with both strategies; an error shows what was expected and what was returned.
fn run(scenario: &Scenario) -> Result<(), String> {
    check(&Highest, scenario, &scenario.highest())?;
    check(&Minimal, scenario, &scenario.minimal())
        .map_err(|difference| format!("by the minimal strategy\n{difference}"))
}

fn check(strategy: &dyn Strategy, scenario: &Scenario, expected: &Expected) -> Result<(), String> {
    let (memory, request) = scenario.world();
    let actual = match strategy.select(&memory, &request) {
        Ok(selection) => Expected {
            chosen: Some(chosen(&selection)),
            warnings: selection.warnings.iter().map(warning).collect(),
            conflict: None,
        },
        Err(Failure::Conflict(conflict)) => Expected {
            conflict: Some(without_base(conflict.to_string().trim_end())),
            ..Expected::default()
        },
        Err(Failure::Unavailable(error)) => return Err(format!("  {error}")),
        Err(Failure::Unfinished(error)) => return Err(format!("  {error}")),
    };
    if actual == *expected {
        Ok(())
    } else {
        Err(format!("--- expected\n{expected}--- came\n{actual}"))
    }
}

/// `name version`, or `name commit` for a revision without a tag.
fn chosen(selection: &Selection) -> Vec<String> {
    let line = |chosen: &crate::Chosen| {
        let name = chosen.id.to_string();
        let name = name.strip_prefix("hub.mu.com/").unwrap_or(&name);
        let what = match (&chosen.origin, &chosen.version, &chosen.commit) {
            (crate::Origin::Revision(_), _, Some(commit)) => commit.to_string(),
            (_, Some(version), _) => version.to_string(),
            _ => "?".to_owned(),
        };
        let way: Vec<String> = chosen.way.iter().map(ToString::to_string).collect();
        let way =
            if way.is_empty() { String::new() } else { format!(" by way of {}", way.join(", ")) };
        format!("{name} {what}{way}")
    };
    let replaced = selection.replaced.iter().map(|replaced| {
        let name = |id: &mu_manifest::reference::PackageId| {
            let id = id.to_string();
            id.strip_prefix("hub.mu.com/").unwrap_or(&id).to_owned()
        };
        format!("{} is replaced by {}", name(&replaced.id), name(&replaced.by))
    });
    selection.packages.iter().map(line).chain(replaced).collect()
}

fn warning(warning: &SelectionWarning) -> String {
    match warning {
        SelectionWarning::LocalDoesNotSatisfy { id, requirement, .. } => {
            format!("{id} is local, and is not {requirement}")
        }
        SelectionWarning::Yanked { id, reason, .. } => format!("{id} is yanked: {reason}"),
        SelectionWarning::Deprecated { id, reason, .. } => format!("{id} is deprecated: {reason}"),
    }
}

/// The names of cases differ, so that a failure can be found.
#[test]
fn no_two_cases_have_one_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/select");
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the scenarios are there") {
        let text = fs::read_to_string(entry.expect("can be read").path()).expect("can be read");
        for line in text.lines().filter_map(|line| line.strip_prefix("- case: ")) {
            *names.entry(line.to_owned()).or_default() += 1;
        }
    }
    names.retain(|_, count| *count > 1);
    assert!(names.is_empty(), "{names:?}");
}
