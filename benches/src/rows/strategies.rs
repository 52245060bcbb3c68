//! Both strategies beside each other; minimal selection against Go; an explanation against a solution.

use std::process::Command;

use crate::data::{Data, Place};
use crate::go;
use crate::graph::{self, Package};
use crate::measure::{Contestant, Result, in_turns, peak_memory, run, succeeds};
use crate::report::{self, bounds};
use crate::rows::resolve::{prepare, versions_read};

pub(crate) fn measure(data: &Data) {
    println!("\n#### Both strategies, in the graph without upper bounds\n");
    println!("| strategy | requirements | ms | of processor time | memory, MiB | versions read |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for size in [1, 30, 300] {
        for strategy in ["highest", "minimal"] {
            let place = data.place(&format!("{strategy}-{size}"));
            prepare_open(data, &place, size);
            strategy_row(data, &place, strategy, size);
        }
    }
    println!();
    against_go(data);
    explanation(data);
}

/// A workspace of `size` requirements in the graph without upper bounds.
fn prepare_open(data: &Data, place: &Place<'_>, size: usize) {
    let roots = graph::roots(&data.packages, size);
    let least = |package: &&Package| graph::text(least_of_newest_major(package));
    let references: Vec<String> =
        roots.iter().map(|package| format!("{}#>={}", package.name, least(package))).collect();
    place.write_workspace("open/", &references);
}

fn resolve(place: &Place<'_>, strategy: &str) -> Command {
    place.mu(&["resolve", "--resolution", strategy])
}

fn strategy_row(data: &Data, place: &Place<'_>, strategy: &'static str, size: usize) {
    if !succeeds(&mut resolve(place, strategy)) {
        return println!("| {strategy} | {size} | fails | | | |");
    }
    let results = in_turns(data.rounds, &[mu(place, strategy)]);
    let read = versions_read(place.mu(&["resolve", "-v", "--resolution", strategy]));
    println!(
        "| {strategy} | {size} | {:.1} | {:.1} | {:.0} | {:.0} |",
        results[0].median(),
        results[0].processor(),
        peak_memory(&resolve(place, strategy), &place.folder).unwrap_or_default(),
        read.unwrap_or_default(),
    );
}

fn mu<'run>(place: &'run Place<'_>, strategy: &'static str) -> Contestant<'run> {
    Contestant {
        name: "mu resolve",
        prepare: Box::new(|| {}),
        command: Box::new(move || resolve(place, strategy)),
    }
}

fn against_go(data: &Data) {
    let Some(go) = &data.go else {
        return println!("go list -m all: not measured: go is not installed\n");
    };
    let proxy = data.folder.join("go-proxy");
    if !proxy.exists() {
        go::write_proxy(&proxy, &data.packages);
    }
    let place = data.place("against-go");
    prepare_open(data, &place, 300);
    let mut module = "module bench.test/root\n\ngo 1.16\n".to_owned();
    for package in graph::roots(&data.packages, 300) {
        let least = least_of_newest_major(package);
        let name = go::module(&package.name);
        module.push_str(&format!("require {name} {}\n", go::version(least)));
    }
    place.write("go/go.mod", &module);
    let list = || {
        let mut command = Command::new(go);
        command
            .args(["list", "-mod=mod", "-m", "all"])
            .current_dir(place.join("go"))
            .env("GOPROXY", format!("file://{}", proxy.display()))
            .env("GOSUMDB", "off")
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-modcacherw")
            .env("GOPATH", place.join("go-path"))
            .env("GOCACHE", place.join("go-cache"));
        command
    };
    if !succeeds(&mut list()) || !succeeds(&mut resolve(&place, "minimal")) {
        return println!("go list -m all: not measured: one of the two fails\n");
    }
    let peer =
        Contestant { name: "go list -m all", prepare: Box::new(|| {}), command: Box::new(list) };
    let results = in_turns(data.rounds, &[mu(&place, "minimal"), peer]);
    let work = "minimal, 300 requirements, warm";
    report::times(work, &results);
    data.standing.ratio(work, &results, "go list -m all", bounds(0.20, 0.12));
}

/// The first version of a package's newest major.
fn least_of_newest_major(package: &Package) -> [u32; 3] {
    let newest = package.versions.last().expect("has some").number;
    let mut same = package.versions.iter().map(|version| version.number);
    same.find(|number| number[0] == newest[0]).expect("is one of them")
}

fn explanation(data: &Data) {
    let solved = data.place("solved");
    prepare(data, &solved, 300, &data.web.url("graph/"));
    let Some((name, major)) = impossible(&data.packages) else {
        return println!("an explanation: not measured: everything fits together\n");
    };
    let unsolved = data.place("unsolved");
    prepare(data, &unsolved, 300, &data.web.url("graph/"));
    unsolved.add_dependency(&format!("{name}#^{major}"));
    run(&mut resolve(&solved, "highest"));
    let fails = || unsolved.shell("cd work && ! $MU resolve");
    run(&mut fails());
    let contestants = [
        Contestant {
            name: "mu resolve, no solution",
            prepare: Box::new(|| {}),
            command: Box::new(fails),
        },
        mu(&solved, "highest"),
    ];
    let results: Vec<Result> = in_turns(data.rounds, &contestants);
    let work = "no solution: time to the explanation, against a solved one";
    report::times(work, &results);
    data.standing.ratio(work, &results, "mu resolve", bounds(2.0, 1.2));
}

/// A package and a major of it that do not fit to what every version of some root needs.
fn impossible(packages: &[Package]) -> Option<(String, u32)> {
    for root in graph::roots(packages, 300) {
        let major = root.versions.last()?.number[0];
        let candidates = || root.versions.iter().filter(|version| version.number[0] == major);
        for dependency in &candidates().next()?.dependencies {
            let needed = dependency.least[0];
            let always = candidates().all(|version| {
                version
                    .dependencies
                    .iter()
                    .any(|other| other.package == dependency.package && other.least[0] == needed)
            });
            let package = &packages[dependency.package];
            let other = package.versions.iter().map(|version| version.number[0]);
            if always && let Some(other) = other.clone().find(|other| *other != needed) {
                return Some((package.name.clone(), other));
            }
        }
    }
    None
}
