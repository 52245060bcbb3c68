//! Records what every run of the tests answered and left, so that two builds of mu can be compared.
//!
//! With `MU_RECORD=FOLDER`, each test writes a file there: its commands with what they printed and how they ended, and after each
//! of them the manifests, locks and settings of the workspace that it changed. `MU_TESTED_PROGRAM=PATH` has the tests run another
//! build. A change that must not change behaviour leaves nothing for `diff -r` between the records of both.
//!
//! What differs from run to run is left out: temporary folders, ports, durations. Dates, commits made in a test, and what servers were
//! asked in any order can differ all the same.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::Run;

thread_local! {
    /// What the files of the workspace said when they were recorded last.
    static KNOWN: RefCell<BTreeMap<(PathBuf, String), String>> = RefCell::default();
}

/// Records a run in the workspace `work`, if that is wanted. `replaced` are the texts that differ from one run of the tests to the
/// next.
pub(super) fn record(run: &Run, work: &Path, replaced: &[(String, &str)]) {
    let Some(folder) = std::env::var_os("MU_RECORD") else { return };
    let mut text = format!("{}\n", run.shown());
    let mut files = BTreeMap::new();
    collect(work, "", &mut files);
    for (path, content) in files {
        let key = (work.to_owned(), path.clone());
        let known = KNOWN.with_borrow_mut(|known| known.insert(key, content.clone()));
        if known.as_ref() != Some(&content) {
            let clean = |text: String, (what, by): &(String, &str)| text.replace(what, by);
            let content = replaced.iter().fold(content, clean);
            write!(text, "== {path}\n{content}\n").expect("text can be written");
        }
    }
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("main").replace("::", ".");
    fs::create_dir_all(&folder).expect("the folder of records can be made");
    let file = File::options().create(true).append(true).open(Path::new(&folder).join(name));
    let written = file.and_then(|mut file| file.write_all(without_chance(&text, work).as_bytes()));
    written.expect("the record can be written");
}

/// The files of a folder that say what the workspace requires or has: manifests, locks, settings, and what is made for other tools.
/// What is in packs follows from the lock.
fn collect(folder: &Path, place: &str, files: &mut BTreeMap<String, String>) {
    let ends = [".yaml", ".yml", ".json", ".mod", ".lock", ".patch"];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{place}{name}");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && name != ".git" && name != "packs" => {
                collect(&entry.path(), &format!("{path}/"), files);
            }
            Ok(kind) if kind.is_file() && ends.iter().any(|end| name.ends_with(end)) => {
                files.extend(fs::read_to_string(entry.path()).ok().map(|text| (path, text)));
            }
            _ => {}
        }
    }
}

/// The text without what differs from run to run: the sandbox's own name, in whatever it is encoded, the ports of this machine's
/// servers, and how long something took.
fn without_chance(text: &str, work: &Path) -> String {
    let sandbox = work.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let mut text = text.replace(sandbox.trim_start_matches('.'), "SANDBOX");
    for before in ["127.0.0.1:", "localhost:", "[::1]:", "127.0.0.1+", "localhost+", " took "] {
        let mut pieces = text.split(before);
        let mut clean = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let rest =
                piece.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
            clean.push_str(before);
            clean.push_str(if rest.len() < piece.len() { "NUMBER" } else { "" });
            clean.push_str(rest);
        }
        text = clean;
    }
    text
}
