//! Large hubs: what a change leaves to be written beside it, and that it is written then.

use std::path::Path;
use std::sync::Arc;

use mu_hub::files::Files;
use mu_hub::writer::Writer;
use mu_hub::{Change, Hub, Notice, Place};
use serde_json::json;

use crate::support::{hub_file, publication};

/// Changes after which a catalog of 1.2 MiB is due.
const DUE: usize = 5;

/// A hub with a catalog of 1.2 MiB.
fn hub(folder: &Path) -> Hub {
    let (hub, _) = Hub::init(&Place::folder(folder)).expect("can be made");
    hub.publish(&publication("other", "1.0.0", "x")).expect("is fine");
    std::fs::create_dir_all(folder.join("index/large")).expect("is ours");
    for number in 0..1_200 {
        let name = format!("large/n{number}");
        let line = json!({ "name": name, "version": "1.0.0", "description": "x".repeat(1_000) });
        std::fs::write(folder.join(format!("index/{name}.jsonl")), format!("{line}\n"))
            .expect("is ours");
    }
    hub.check(true, &mut |_| {}).expect("can be repaired");
    hub
}

/// Says each time something else against a version.
fn change(folder: &Path, writer: &Writer, reason: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
    let notices = [(Notice::Deprecated, Some(format!("reason {reason}")))].into();
    let change = Change { notices, ..Change::default() };
    let before = hub_file(folder)["generation"].as_u64();
    let changed = runtime.block_on(writer.change_version("other", "1.0.0", &change));
    assert!(changed.expect("is there"));
    let after = hub_file(folder)["generation"].as_u64();
    assert_eq!(after, before.map(|before| before + 1), "readers see it at once");
}

#[test]
fn a_change_of_a_large_hub_leaves_its_long_files_to_a_task_beside_it() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    let catalog =
        || std::fs::read_to_string(folder.path().join("catalog.jsonl")).expect("is there");
    let writer = |leaves: bool| {
        let files = Files::open(&Place::folder(folder.path()), false).expect("is there");
        Writer { files, left: leaves.then(Arc::default) }
    };
    let (before, leaving) = (catalog(), writer(true));
    for reason in 0..2 * DUE {
        change(folder.path(), &leaving, reason);
    }
    assert!(catalog() == before, "is left alone");
    let findings = hub.check(false, &mut |_| {}).expect("can be read").findings;
    assert!(findings.iter().all(|finding| finding.path != "catalog.jsonl"), "{findings:?}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
    runtime.block_on(leaving.tidy()).expect("can be written");
    let last = format!("reason {}", 2 * DUE - 1);
    assert!(catalog().contains(&last));
    assert_eq!(
        hub_file(folder.path())["catalog"]["generation"],
        hub_file(folder.path())["generation"]
    );
    // Where nothing is left, nothing is read or written.
    std::fs::write(folder.path().join("catalog.jsonl"), "").expect("is ours");
    runtime.block_on(leaving.tidy()).expect("has nothing to do");
    assert_eq!(catalog(), "");
    std::fs::write(folder.path().join("catalog.jsonl"), before).expect("is ours");
    // A writer that nobody tidies up after writes what is due itself.
    for reason in 0..DUE {
        change(folder.path(), &writer(false), 100 + reason);
    }
    assert!(catalog().contains(&format!("reason {}", 100 + DUE - 1)));
}
