//! Choosing versions, with an index that is fresh in the cache.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::data::{Data, Place};
use crate::graph;
use crate::measure::{Contestant, calls, in_turns, peak_memory, remove, run};
use crate::peers::python_name;
use crate::report::{self, UNBOUNDED, bounds};

/// How many requirements the workspaces have.
const SIZES: [usize; 3] = [30, 300, 2_000];

pub(crate) fn measure(data: &Data) {
    for size in SIZES {
        if graph::roots(&data.packages, size).len() < size {
            continue;
        }
        let place = data.place(&format!("resolve-{size}"));
        prepare(data, &place, size, &data.web.url("graph/"));
        counts(data, &place, size);
        times(data, &place, size);
    }
}

/// A workspace of `size` requirements, whose registry is at `url`; and the same for uv.
pub(crate) fn prepare(data: &Data, place: &Place<'_>, size: usize, url: &str) {
    let roots = graph::roots(&data.packages, size);
    let newest = |package: &graph::Package| package.versions.last().expect("has some").number;
    let references: Vec<String> =
        roots.iter().map(|package| format!("{}#^{}", package.name, newest(package)[0])).collect();
    place.write_workspace_at(url, &references);
    let lines: String = roots
        .iter()
        .map(|package| {
            let major = newest(package)[0];
            format!("{}>={major},<{}\n", python_name(&package.name), major + 1)
        })
        .collect();
    place.write("requirements.in", &lines);
}

/// The number after `words` in a program's output.
pub(crate) fn said_number(said: &str, words: &str) -> Option<f64> {
    let (_, rest) = said.split_once(words)?;
    rest.split_whitespace().next()?.replace(',', "").parse().ok()
}

/// uv, choosing versions for `requirements.in` from the simple index at `url`.
pub(crate) fn uv_compile<'run>(
    uv: &'run Path,
    place: &'run Place<'_>,
    url: String,
) -> Contestant<'run> {
    Contestant {
        name: "uv pip compile",
        prepare: Box::new(|| {}),
        command: Box::new(move || {
            let mut command = Command::new(uv);
            command
                .args(["pip", "compile", "requirements.in", "--quiet", "--no-header"])
                .args(["--no-annotate", "--no-config", "--no-python-downloads"])
                .args(["--default-index", &url])
                .arg("--cache-dir")
                .arg(place.join("uv-cache"))
                .current_dir(&place.folder);
            command
        }),
    }
}

fn resolve(place: &Place<'_>) -> Command {
    place.mu(&["resolve"])
}

/// What the search says of itself: how many versions it looked at.
pub(crate) fn versions_read(mut verbose: Command) -> Option<f64> {
    let output = verbose.output().expect("mu can be started");
    said_number(&String::from_utf8_lossy(&output.stderr), "looked at what ")
}

/// How many packages are chosen.
fn chosen(place: &Place<'_>) -> usize {
    let output = place.mu(&["resolve", "--json"]).output().expect("mu can be started");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    answer["packages"].as_array().expect("has packages").len()
}

fn counts(data: &Data, place: &Place<'_>, size: usize) {
    println!("\n#### Resolving {size} requirements: counts\n");
    let cold = data.traffic(|| run(&mut resolve(place)));
    println!("- cold: {} requests, {} bytes", cold.requests, cold.bytes);
    let warm = data.traffic(|| run(&mut resolve(place)));
    println!("- warm: {} requests", warm.requests);
    let asked = Some(warm.requests as f64);
    let work = format!("freshness of a warm index, {size} requirements");
    data.standing.figure(&work, asked, "requests", bounds(1.0, 0.0));
    println!("- {} packages chosen", chosen(place));
    let read = versions_read(place.mu(&["resolve", "-v"])).expect("mu says how many it read");
    println!("- {read} versions read");
    report::calls("warm", calls(&resolve(place), &place.folder).as_ref());
    remove(&place.join("cache"));
    for state in ["cold", "warm"] {
        let memory = peak_memory(&resolve(place), &place.folder);
        report::memory(state, memory);
        let bounds = if size == 300 { bounds(48.0, 32.0) } else { UNBOUNDED };
        let work = format!("peak memory, resolving {size}, {state}");
        data.standing.figure(&work, memory, "MiB", bounds);
    }
}

fn times(data: &Data, place: &Place<'_>, size: usize) {
    let mut contestants = vec![Contestant {
        name: "mu resolve",
        prepare: Box::new(|| {}),
        command: Box::new(|| resolve(place)),
    }];
    match &data.uv {
        Some(uv) => contestants.push(uv_compile(uv, place, data.web.url("simple/"))),
        None => println!("\nuv pip compile: not measured: uv is not installed"),
    }
    run(&mut resolve(place));
    let results = in_turns(data.rounds, &contestants);
    let work = format!("resolve {size} requirements, warm");
    report::times(&work, &results);
    let bounds = if size == 300 { bounds(0.30, 0.18) } else { UNBOUNDED };
    data.standing.ratio(&work, &results, "uv pip compile", bounds);
    let cache = fs::read_dir(place.join("cache/index")).into_iter().flatten().flatten();
    let bytes: u64 = cache.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
    println!("- the index cache: {bytes} bytes");
}
