//! Measures mu as whole processes, against limits and against other tools if they are installed.
//!
//! `cargo run --release --manifest-path benches/Cargo.toml` builds mu, creates the data, and prints the
//! tables in `docs/performance.md`. `-- --help` lists the options.

#![allow(
    clippy::disallowed_methods,
    reason = "makes data as a user would, and a long wire takes its time"
)]

mod data;
mod delay;
mod go;
mod graph;
mod hard;
mod hub;
mod measure;
mod peers;
mod random;
mod real;
mod report;
mod repository;
mod rows;
mod served;
mod web;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::data::Data;

const HELP: &str = "\
Measures mu against floors and peers.

Usage: mu-benches [--real] [--mu PROGRAM] [--folder DIR] [--rounds N] [ROW...]

  --real         choose versions in the graph of Cargo's registry, as far as some large projects lead into it, instead of a
                 generated graph; Cargo asks the registry once for each --folder
  --mu PROGRAM   measure this program instead of building mu
  --folder DIR   keep the data there for the next time
  --rounds N     how often each contestant runs (default 11)
  ROW            start, resolve, strategies, hard, latency, install, git, load, publish, catalog, charts,
                 operators;
                 all if none is named

Each row ends with a table that says how mu stands, and marks what misses what it must reach.";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut mu, mut folder, mut rounds, mut wanted) = (None, None, 11, Vec::new());
    let mut is_real = false;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("this option has a value");
        match argument.as_str() {
            "--real" => is_real = true,
            "--mu" => mu = Some(PathBuf::from(value())),
            "--folder" => folder = Some(PathBuf::from(value())),
            "--rounds" => rounds = value().parse().expect("--rounds takes a number"),
            "--help" => return println!("{HELP}"),
            // The work of a reader alone, as a process of its own.
            "--read-charts" => return read_charts(&value()),
            "--read-catalog" => return read_catalog(&value()),
            _ => wanted.push(argument),
        }
    }
    let mu = mu.unwrap_or_else(build);
    let mu = installed(&mu.canonicalize().expect("the program is there"));
    let kept = folder.is_some();
    let folder = folder.unwrap_or_else(temporary);
    let data = Data::make(&folder, mu, rounds, is_real);
    data.describe();
    for (name, measure) in rows::ALL {
        if wanted.is_empty() || wanted.iter().any(|row| row == name) {
            measure(&data);
            data.standing.print(name);
        }
    }
    drop(data);
    if !kept {
        measure::remove(&folder);
    }
}

/// Reads the index of a chart repository, as mu's provider does.
fn read_charts(file: &str) {
    let text = std::fs::read_to_string(file).expect("was written");
    let index = mu_formats::helm::index(file, &text, &mu_formats::HelmRepositoryAliases::default());
    println!("{} charts", index.expect("is an index").packages.len());
}

/// Reads a catalog of operators, as mu's provider does.
fn read_catalog(file: &str) {
    let text = std::fs::read_to_string(file).expect("was written");
    let mut catalog = mu_formats::olm::CatalogDocuments::default();
    catalog.add(file, &text, &mut |_| None).expect("is a catalog");
    assert!(
        catalog.has_catalog_documents() && catalog.first_broken().is_none(),
        "{file} is not a catalog"
    );
    println!("{} operators", catalog.finish().packages.len());
}

/// Builds mu as it is released.
fn build() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let status = Command::new("cargo")
        .args(["build", "--profile", "dist", "--features", "full"])
        .current_dir(&root)
        .status();
    assert!(status.expect("cargo can be started").success(), "mu cannot be built");
    root.join("target/dist/mu")
}

/// The program, and the one that serves hubs, as they lie on a disk after they were installed. A file that a linker has just written lies in
/// memory in smaller pieces than a copy of it, which takes a start a tenth longer.
fn installed(mu: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/installed");
    fs::create_dir_all(&folder).expect("can be made");
    for program in [mu, &mu.with_file_name("mu-hub")].into_iter().filter(|program| program.exists())
    {
        let copy = folder.join(program.file_name().expect("is a file"));
        let _ = fs::remove_file(&copy);
        fs::copy(program, &copy).expect("can be copied");
    }
    folder.join(mu.file_name().expect("is a file"))
}

/// A folder in memory, if the system has one.
fn temporary() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    parent.join(format!("mu-benches-{}", std::process::id()))
}
