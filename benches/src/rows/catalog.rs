//! Searching a hub of 100,000 packages: through its server, and through the catalog of its files.

use std::fmt::Write as _;

use serde_json::json;

use crate::data::Data;
use crate::hub::write;
use crate::measure::{Contestant, in_turns, remove, run};
use crate::random::Random;
use crate::report::{self, bounds};
use crate::served::{Served, ask};

const PACKAGES: usize = 100_000;

/// The searches: a word that many packages have, two words, a name, and a word that no package has.
const QUESTIONS: [&str; 4] = ["cluster", "security policy", "team-07/name-04207", "nowhere"];

pub(crate) fn measure(data: &Data) {
    let hub = data.folder.join("served/catalog");
    if !hub.join("hub.json").exists() {
        write_catalog(&hub);
    }
    through_the_server(data);
    through_the_files(data);
}

fn through_the_server(data: &Data) {
    let place = data.place("catalog-server");
    let hub = data.folder.join("served/catalog");
    let served = Served::start(&data.mu, &hub, &place.join("served.log"));
    println!("\n#### `GET api/v1/search?q=` among {PACKAGES} packages\n");
    println!("| words | median ms | highest | found |");
    println!("| --- | ---: | ---: | ---: |");
    for question in QUESTIONS {
        let path = format!("/api/v1/search?q={}&limit=20", question.replace(' ', "+"));
        let mut answers: Vec<(f64, String)> = (0..41).map(|_| ask(served.port, &path)).collect();
        let found = answers.last().and_then(|(_, answer)| answer.rsplit_once("\"total\":"));
        let found =
            found.map_or("", |(_, rest)| rest.trim_end_matches(['}', '\r', '\n'])).to_owned();
        answers.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        let (median, highest) = (answers[20].0, answers[40].0);
        println!("| {question} | {median:.1} | {highest:.1} | {found} |");
        let work = format!("search for `{question}` on the server");
        data.standing.figure(&work, Some(median), "ms", bounds(100.0, 20.0));
    }
    if let Some(memory) = served.memory() {
        println!("\n- memory of the server: {memory:.0} MiB");
    }
}

fn through_the_files(data: &Data) {
    let place = data.place("catalog-files");
    place.write_workspace("catalog/", &[]);
    let search = || place.mu(&["search", "security", "policy"]);
    let asked = data.traffic(|| run(&mut search()));
    println!("\n#### `mu search` over the files of {PACKAGES} packages\n");
    println!("- first: {} requests, {} bytes", asked.requests, asked.bytes);
    let again = data.traffic(|| run(&mut search()));
    println!("- again: {} requests, {} bytes", again.requests, again.bytes);
    let contestants = [
        Contestant {
            name: "mu search, again",
            prepare: Box::new(|| {}),
            command: Box::new(search),
        },
        Contestant {
            name: "mu search, first",
            prepare: Box::new(|| remove(&place.join("cache"))),
            command: Box::new(search),
        },
        Contestant {
            name: "grep -c over the catalog",
            prepare: Box::new(|| {}),
            command: Box::new(|| {
                let mut command = std::process::Command::new("grep");
                let catalog = data.folder.join("served/catalog/catalog.jsonl");
                command.args(["-c", "policy"]).arg(catalog);
                command
            }),
        },
    ];
    // What is first empties the cache of what comes again.
    let again = in_turns(data.rounds, &contestants[..1]);
    let first = in_turns(data.rounds, &contestants[1..]);
    let results: Vec<_> = again.into_iter().chain(first).collect();
    report::times("`mu search` in a catalog", &results);
    let work = "search the catalog of a hub of files, again";
    data.standing.figure(work, Some(results[0].median()), "ms", bounds(200.0, 100.0));
}

/// Writes a hub of 100,000 packages without archives.
fn write_catalog(folder: &std::path::Path) {
    let mut random = Random::new(5);
    let mut text = String::new();
    for number in 0..PACKAGES {
        let description = String::from_utf8(random.text(60)).expect("is ASCII");
        let keywords = String::from_utf8(random.text(24)).expect("is ASCII");
        let keywords: Vec<&str> = keywords.split_whitespace().collect();
        let line = json!({
            "name": format!("team-{:02}/name-{number:05}", number % 40),
            "latest": format!("{}.{}.0", 1 + number % 7, number % 30),
            "description": description.replace('\n', " "),
            "keywords": keywords,
        });
        writeln!(text, "{line}").expect("memory takes everything");
    }
    write(&folder.join("catalog.jsonl"), text.as_bytes());
    let file = json!({"hub": 1, "index": "index/", "packs": "packs/"});
    write(&folder.join("hub.json"), file.to_string().as_bytes());
}
