//! Choosing versions, with an index that is fresh in the cache.

use std::fs;
use std::process::Command;

use crate::data::{Data, Place};
use crate::graph;
use crate::measure::{Contestant, calls, in_turns, peak_memory, remove, run};
use crate::peers::python_name;
use crate::report;

/// How many requirements the workspaces have.
const SIZES: [usize; 3] = [30, 300, 2_000];

pub(crate) fn measure(data: &Data) {
    for size in SIZES {
        let place = data.place(&format!("resolve-{size}"));
        let roots = graph::roots(&data.packages, size);
        let newest = |package: &graph::Package| package.versions.last().expect("has some").number;
        let references: Vec<String> = roots
            .iter()
            .map(|package| format!("{}#^{}", package.name, newest(package)[0]))
            .collect();
        place.write_workspace("graph/", &references);
        let lines: String = roots
            .iter()
            .map(|package| {
                let major = newest(package)[0];
                format!("{}>={major},<{}\n", python_name(&package.name), major + 1)
            })
            .collect();
        place.write("requirements.in", &lines);
        counts(data, &place, size);
        times(data, &place, size);
    }
}

fn resolve(place: &Place<'_>) -> Command {
    place.mu(&["resolve", "-v"])
}

fn counts(data: &Data, place: &Place<'_>, size: usize) {
    println!("\n#### Resolving {size} requirements: counts\n");
    let cold = data.traffic(|| run(&mut resolve(place)));
    println!("- cold: {} requests, {} bytes", cold.requests, cold.bytes);
    let warm = data.traffic(|| run(&mut resolve(place)));
    println!("- warm: {} requests", warm.requests);
    let output = resolve(place).output().expect("mu can be started");
    let chosen = String::from_utf8_lossy(&output.stdout);
    let chosen = chosen.lines().filter(|line| line.starts_with("hub.mu.com/")).count();
    println!("- {chosen} packages chosen");
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        println!("- said: {line}");
    }
    report::calls("warm", calls(&resolve(place), &place.folder).as_ref());
    report::memory("cold", {
        remove(&place.join("cache"));
        peak_memory(&resolve(place), &place.folder)
    });
    report::memory("warm", peak_memory(&resolve(place), &place.folder));
}

fn times(data: &Data, place: &Place<'_>, size: usize) {
    let mut contestants = vec![Contestant {
        name: "mu resolve",
        prepare: Box::new(|| {}),
        command: Box::new(|| resolve(place)),
    }];
    match &data.uv {
        Some(uv) => contestants.push(Contestant {
            name: "uv pip compile",
            prepare: Box::new(|| {}),
            command: Box::new(move || {
                let mut command = Command::new(uv);
                command
                    .args(["pip", "compile", "requirements.in", "--quiet", "--no-header"])
                    .args(["--no-annotate", "--no-config", "--no-python-downloads"])
                    .args(["--default-index", &data.web.url("simple/")])
                    .arg("--cache-dir")
                    .arg(place.join("uv-cache"))
                    .current_dir(&place.folder);
                command
            }),
        }),
        None => println!("\nuv pip compile: not measured: uv is not installed"),
    }
    run(&mut resolve(place));
    let results = in_turns(data.rounds, &contestants);
    report::times(&format!("Resolving {size} requirements, warm"), &results);
    let cache = fs::read_dir(place.join("cache/index")).into_iter().flatten().flatten();
    let bytes: u64 = cache.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
    println!("- the index cache: {bytes} bytes");
}
