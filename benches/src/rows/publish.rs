//! How long publishing a version takes, into a folder and to a server, as the hub grows.

use std::cell::Cell;
use std::path::Path;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::data::Data;
use crate::hub::{archive, digest, hex, write};
use crate::measure::{Contestant, in_turns, remove, run};
use crate::report::{self, UNBOUNDED, bounds};
use crate::served::Served;

/// How many packages the hubs have.
const SIZES: [usize; 3] = [1, 1_000, 10_000];

pub(crate) fn measure(data: &Data) {
    let mut smallest = None;
    for size in SIZES {
        let medians = publish(data, size);
        let first = *smallest.get_or_insert(medians);
        for (where_to, median, first) in
            [("a folder", medians.0, first.0), ("a server", medians.1, first.1)]
        {
            let work = format!("publish to {where_to} of {size} packages");
            data.standing.figure(&work, Some(median), "ms", UNBOUNDED);
            if size > 1 {
                let work = format!("{work}, against one of 1");
                data.standing.figure(&work, Some(median / first), "times", bounds(2.0, 1.2));
            }
        }
    }
}

/// The medians of publishing into a folder, and to a server.
fn publish(data: &Data, size: usize) -> (f64, f64) {
    let place = data.place(&format!("publish-{size}"));
    place.write_workspace("hub/", &[]);
    place.write("work/content.txt", "content\n");
    let (folder, behind) = (place.join("folder"), place.join("behind"));
    for hub in [&folder, &behind] {
        run(place.mu(&["hub", "init"]).arg(hub));
        write_packages(hub, size);
        run(place.mu(&["hub", "check", "--repair"]).arg(hub));
    }
    let served = Served::start(&data.mu, &behind, &place.join("served.log"));
    let token = place
        .mu(&["hub", "token", "add"])
        .arg(&behind)
        .args(["bench", "--namespace", "*"])
        .output();
    let token = String::from_utf8(token.expect("mu can be started").stdout).expect("is text");
    let url = served.url("");
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap_or_default();
    let variable = format!("MU_TOKEN_127_0_0_1___{port}");
    let number = Cell::new(0);
    // A new version of the same package each time, and a different one for folder and server.
    let prepare = || {
        number.set(number.get() + 1);
        let text = format!("name: bench/new\nversion: 1.{}.0\nlicense: MIT\n", number.get());
        place.write("work/Mu.yaml", &text);
    };
    let contestants = [
        Contestant {
            name: "mu publish to a folder",
            prepare: Box::new(prepare),
            command: Box::new(|| {
                let mut command = place.mu(&["publish", "--to"]);
                command.arg(&folder);
                command
            }),
        },
        Contestant {
            name: "mu publish to a server",
            prepare: Box::new(prepare),
            command: Box::new(|| {
                let mut command = place.mu(&["publish", "--to", &url]);
                command.env(&variable, token.trim());
                command
            }),
        },
    ];
    let results = in_turns(data.rounds.max(20) * 2, &contestants);
    report::times(&format!("Publishing into a hub of {size} packages"), &results);
    for result in &results {
        let mean = result.times.iter().sum::<f64>() / result.times.len() as f64;
        println!("- {}: {mean:.1} ms on average", result.name);
    }
    drop(served);
    let medians = (results[0].median(), results[1].median());
    remove(&folder);
    remove(&behind);
    medians
}

/// Writes `count` packages with a version each, of which each needs the one before.
fn write_packages(hub: &Path, count: usize) {
    for number in 0..count {
        let name = format!("team-{:02}/name-{number:05}", number % 40);
        let before = number.saturating_sub(1);
        let needed = format!("team-{:02}/name-{before:05}#^1", before % 40);
        let dependencies = if number % 8 == 0 { Vec::new() } else { vec![needed] };
        let manifest = format!(
            "name: {name}\nversion: 1.0.0\ndescription: One of many\ndependencies: {}\n",
            json!(dependencies)
        );
        let files = [("Mu.yaml".to_owned(), manifest.into_bytes())];
        let archive = archive(&files, "");
        let line = json!({
            "name": name,
            "version": "1.0.0",
            "digest": digest(&files),
            "archive": format!("sha256:{}", hex(&Sha256::digest(&archive))),
            "size": archive.len(),
            "dependencies": dependencies,
            "description": "One of many packages that a hub may have",
        });
        write(&hub.join(format!("index/{name}.jsonl")), format!("{line}\n").as_bytes());
        write(&hub.join(format!("packs/{name}/name-{number:05}-1.0.0.tgz")), &archive);
    }
}
