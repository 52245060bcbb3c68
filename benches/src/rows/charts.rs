//! Choosing from chart repositories: an index of 4 MB, one of 5,000 charts of which some make no sense, and one of 30 MB.
//!
//! No Helm runs here. What `helm dependency update` would ask for is counted by its way of working: the whole index of each
//! repository in every run, because it sends no conditional request, and then the archive of each direct dependency.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use crate::data::Data;
use crate::hub::write;
use crate::measure::{Contestant, in_turns, remove};
use crate::random::Random;
use crate::report::{self, UNBOUNDED, bounds};

/// The index of 4 MB: 399 charts of 9 versions, 3,591 in all.
const LARGE: Repository = Repository { charts: 399, versions: 9, more: 800, broken: usize::MAX };

/// The index of 5,000 charts, of which every 50th has an entry that makes no sense.
const MANY: Repository = Repository { charts: 5_000, versions: 2, more: 100, broken: 50 };

/// The index of 30 MB: 300 charts of 95 versions, 28,500 in all.
const HUGE: Repository = Repository { charts: 300, versions: 95, more: 800, broken: usize::MAX };

/// The direct dependencies of the chart that is resolved.
const ROOTS: usize = 3;

struct Repository {
    charts: usize,
    versions: usize,
    /// The length of a description, in bytes.
    more: usize,
    /// Every how many charts there is an entry that makes no sense.
    broken: usize,
}

impl Repository {
    /// Writes the index of the repository at `url` into `folder`, with the archives of the newest versions of
    /// the first charts.
    fn make(&self, folder: &Path, url: &str) {
        let mut random = Random::new(17);
        let mut text = "apiVersion: v1\nentries:\n".to_owned();
        for chart in 0..self.charts {
            writeln!(text, "  c{chart}:").expect("memory takes everything");
            for version in (0..self.versions).rev() {
                let description = String::from_utf8(random.text(self.more)).expect("is ASCII");
                let description = description.replace(['\n', '\''], " ");
                let needs = match chart % 10 {
                    0 => String::new(),
                    _ => format!(
                        "    dependencies: [{{name: c0, version: ^1.0.0, repository: \"{url}\"}}]\n"
                    ),
                };
                let is_root = chart <= ROOTS && version + 1 == self.versions;
                let archive = archive(chart, version, &needs);
                let digest: String =
                    Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
                if is_root {
                    write(&folder.join(format!("c{chart}-1.{version}.0.tgz")), &archive);
                }
                let number = if chart % self.broken == 1 && version == 0 {
                    "of the day".to_owned()
                } else {
                    format!("1.{version}.0")
                };
                writeln!(text, "  - apiVersion: v2\n    name: c{chart}\n    version: {number}\n    created: \"2026-01-02T03:04:05Z\"\n    description: '{description}'\n    digest: {digest}\n{needs}    urls: [c{chart}-1.{version}.0.tgz]").expect("memory takes everything");
            }
        }
        write(&folder.join("index.yaml"), text.as_bytes());
    }
}

/// The archive of a chart, as `helm package` makes it.
fn archive(chart: usize, version: usize, needs: &str) -> Vec<u8> {
    let needs = needs.trim_start();
    let manifest = format!("apiVersion: v2\nname: c{chart}\nversion: 1.{version}.0\n{needs}");
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_ustar();
    header.set_size(manifest.len() as u64);
    header.set_mode(0o644);
    let path = format!("c{chart}/Chart.yaml");
    builder.append_data(&mut header, path, manifest.as_bytes()).expect("memory takes everything");
    let gzip = builder.into_inner().expect("memory takes everything");
    gzip.finish().expect("memory takes everything")
}

pub(crate) fn measure(data: &Data) {
    for (name, title, repository) in [
        ("charts-large", "an index of 3,591 versions", &LARGE),
        ("charts-many", "an index of 5,000 charts, some broken", &MANY),
        ("charts-huge", "an index of 30 MB", &HUGE),
    ] {
        let folder = data.folder.join("served").join(name);
        repository.make(&folder, &data.web.url(name));
        one(data, name, title, repository, &folder.join("index.yaml"));
    }
}

fn one(data: &Data, name: &str, title: &str, repository: &Repository, index: &Path) {
    let place = data.place(name);
    let url = data.web.url(name);
    place.write("work/.mu/workspace.yaml", "");
    let needs: String = (1..=ROOTS)
        .map(|chart| format!("  - {{name: c{chart}, version: ^1, repository: {url}}}\n"))
        .collect();
    let chart = format!("apiVersion: v2\nname: root\nversion: 0.1.0\ndependencies:\n{needs}");
    place.write("work/Chart.yaml", &chart);
    let forget = || remove(&place.join("cache"));
    let own = std::env::current_exe().expect("a process knows its program");
    let parse = || {
        let mut command = Command::new(&own);
        command.arg("--read-charts").arg(index);
        command
    };
    let contestants = [
        Contestant {
            name: "mu resolve, first",
            prepare: Box::new(forget),
            command: Box::new(|| place.mu(&["resolve"])),
        },
        Contestant {
            name: "a plain parse by the same reader",
            prepare: Box::new(|| {}),
            command: Box::new(parse),
        },
    ];
    let first = in_turns(data.rounds, &contestants);
    report::times(&format!("`mu resolve` from {title}"), &first);
    let work = format!("choose from {title}, first");
    data.standing.ratio(&work, &first, "a plain parse by the same reader", bounds(2.0, 1.3));
    forget();
    let memory = |what: &str, arguments: &[&str], bounds| {
        let peak = crate::measure::peak_memory(&place.mu(arguments), &place.folder);
        let work = format!("peak memory, choose from {title}, {what}");
        data.standing.figure(&work, peak, "MiB", bounds);
    };
    memory("first", &["resolve"], UNBOUNDED);
    crate::measure::run(&mut place.mu(&["get"]));
    memory("again (304)", &["update", "--dry-run"], bounds(48.0, 32.0));
    let again = in_turns(
        data.rounds,
        &[Contestant {
            name: "mu update --dry-run, again",
            prepare: Box::new(|| {}),
            command: Box::new(|| place.mu(&["update", "--dry-run"])),
        }],
    );
    report::times(&format!("the same again, answered 304: {title}"), &again);
    if let Some(again) = again.first() {
        let work = format!("choose from {title}, again (304)");
        data.standing.figure(&work, Some(again.median()), "ms", bounds(100.0, 30.0));
    }
    let run = |arguments: &[&str]| crate::measure::run(&mut place.mu(arguments));
    forget();
    remove(&place.join("work/.mu/packs"));
    std::fs::remove_file(place.join("work/Mu.lock")).expect("was written");
    let cold = data.traffic(|| run(&["get"]));
    let warm = data.traffic(|| run(&["update"]));
    forget();
    remove(&place.join("work/.mu/packs"));
    let locked = data.traffic(|| run(&["get", "--locked"]));
    let size = std::fs::metadata(index).map_or(0, |metadata| metadata.len());
    println!("- the index: {size} bytes");
    for (what, traffic) in
        [("mu get, first", cold), ("mu update, again", warm), ("mu get, from a lock", locked)]
    {
        println!("- {what}: {} requests, {} bytes", traffic.requests, traffic.bytes);
    }
    let folder = index.parent().expect("is in a folder");
    let newest =
        |chart: usize| folder.join(format!("c{chart}-1.{}.0.tgz", repository.versions - 1));
    let archives: u64 =
        (1..=ROOTS).map(|chart| std::fs::metadata(newest(chart)).expect("was written").len()).sum();
    println!(
        "- helm dependency update, each time: {} requests, {} bytes",
        1 + ROOTS,
        size + archives
    );
    let work = format!("requests of an update from {title}");
    data.standing.figure(&work, Some(warm.requests as f64), "requests", UNBOUNDED);
}
