//! Choosing versions with an empty cache, over HTTP/2 and TLS, near and far; and asking again later.
//!
//! Hubs with a snapshot, with closures, or with neither serve the same index.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::data::{Data, Place};
use crate::delay;
use crate::hub::write;
use crate::measure::{Contestant, Result, in_turns, remove, run};
use crate::report::{self, UNBOUNDED, bounds};
use crate::repository::size;
use crate::rows::resolve::{prepare, uv_compile};
use crate::web::AUTHORITY;

/// How much longer a question and its answer take than on this machine alone.
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// How many requirements the workspaces have: few, and many.
const SIZES: [usize; 2] = [3, 300];

/// What hubs have, and where they are.
const HUBS: [(&str, &str); 4] = [
    ("snapshot, closures", "graph-snapshot/"),
    ("snapshot", "graph-alone/"),
    ("closures", "graph-closures/"),
    ("neither", "graph/"),
];

/// How many requests must be enough for many requirements, if the hub has a snapshot.
const WITH_SNAPSHOT: f64 = 3.0;

pub(crate) fn measure(data: &Data) {
    make_hubs(data);
    let far = delay::serve(data.web.tls_port, ROUND_TRIP);
    for size in SIZES {
        let near = cold(data, size, data.web.tls_port, "this machine");
        let far = cold(data, size, far, "20 ms round trip");
        println!("\n#### How often a first resolve of {size} requirements waits\n");
        println!("By what 20 ms more a round trip cost; a connection takes three of them.\n");
        for (near, far) in near.iter().zip(&far) {
            let waits = (far.median() - near.median()) / ROUND_TRIP.as_secs_f64() / 1_000.0;
            println!("- {}: {waits:.1} round trips", near.name);
        }
    }
    again(data);
}

/// Creates the hubs with a snapshot, and with closures, by a repair.
fn make_hubs(data: &Data) {
    let served = data.folder.join("served");
    let whole = served.join("graph-snapshot");
    if !whole.join("snapshot.jsonl.gz").exists() {
        write(&whole.join("hub.json"), br#"{"hub":1}"#);
        let copied = Command::new("cp")
            .args(["-al", "graph/index", "graph-snapshot/"])
            .current_dir(&served)
            .status();
        assert!(copied.is_ok_and(|status| status.success()), "the index can be linked");
        let mut check = Command::new(&data.mu);
        // It finds that there are no archives.
        check
            .args(["hub", "check", "--repair"])
            .arg(&whole)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        check.status().expect("mu can be started");
    }
    // All files of the first hub, but with a `hub.json` that names fewer of them.
    let root = fs::read(whole.join("hub.json")).expect("mu wrote it");
    let root: Value = serde_json::from_slice(&root).expect("mu wrote it");
    let alone = json!({
        "hub": 1, "index": "../graph-snapshot/index/", "packs": "packs/",
        "generation": root["generation"],
        "snapshot": "../graph-snapshot/snapshot.jsonl.gz",
        "snapshotBytes": root["snapshotBytes"],
        "snapshotLines": root["snapshotLines"],
        "snapshotGeneration": root["snapshotGeneration"],
    });
    write(&served.join("graph-alone/hub.json"), alone.to_string().as_bytes());
    let closures = json!({
        "hub": 1, "index": "../graph-snapshot/index/", "packs": "packs/",
        "closures": "../graph-snapshot/closures/",
    });
    write(&served.join("graph-closures/hub.json"), closures.to_string().as_bytes());
    let bytes = |path: &str| size(&whole.join(path)) as f64 / f64::from(1 << 20);
    println!("\n- closures: {:.1} MiB; snapshot: {:.1} MiB", bytes("closures"), {
        let of = |path: &str| whole.join(path).metadata().map_or(0, |file| file.len());
        (of("snapshot.jsonl.gz") + of("snapshot.digests")) as f64 / f64::from(1 << 20)
    });
}

/// `mu resolve` that trusts the server.
fn resolve(place: &Place<'_>, authority: &Path) -> Command {
    let mut command = place.mu(&["resolve"]);
    command.env("SSL_CERT_FILE", authority);
    command
}

fn cold(data: &Data, size: usize, port: u16, distance: &str) -> Vec<Result> {
    println!(
        "\n#### Resolving {size} requirements with an empty cache, HTTP/2 and TLS, {distance}\n"
    );
    let near = distance.replace(' ', "-");
    let places: Vec<Place<'_>> = HUBS
        .iter()
        .map(|(_, path)| {
            let place = data.place(&format!("cold-{size}-{near}-{}", path.trim_end_matches('/')));
            place.write("authority.pem", AUTHORITY);
            prepare(data, &place, size, &format!("https://localhost:{port}/{path}"));
            place
        })
        .collect();
    let mut contestants = Vec::new();
    for ((name, _), place) in HUBS.iter().zip(&places) {
        let authority = place.join("authority.pem");
        let asked = data.traffic(|| run(&mut resolve(place, &authority)));
        println!("- {name}: {} requests, {} bytes", asked.requests, asked.bytes);
        let work = format!("cold requests of {size}, {name}, {distance}");
        let is_at_once = size > SIZES[0] && name.starts_with("snapshot");
        let bounds = if is_at_once { bounds(WITH_SNAPSHOT, WITH_SNAPSHOT) } else { UNBOUNDED };
        data.standing.figure(&work, Some(asked.requests as f64), "requests", bounds);
        contestants.push(Contestant {
            name,
            prepare: Box::new(|| remove(&place.join("cache"))),
            command: Box::new(move || resolve(place, &authority)),
        });
    }
    let place = places.last().expect("there are some");
    if let Some(uv) = &data.uv {
        let compile = uv_compile(uv, place, format!("https://localhost:{port}/simple/"));
        let authority = place.join("authority.pem");
        contestants.push(Contestant {
            name: compile.name,
            prepare: Box::new(|| remove(&place.join("uv-cache"))),
            command: Box::new(move || {
                let mut command = (compile.command)();
                command.env("SSL_CERT_FILE", &authority);
                command
            }),
        });
    }
    let results = in_turns(data.rounds.min(5), &contestants);
    report::times(&format!("resolve {size}, cold, HTTP/2, {distance}"), &results);
    for (index, (name, _)) in HUBS.iter().enumerate() {
        let work = format!("resolve {size}, cold, HTTP/2, {distance}, {name}");
        data.standing.ratio(&work, &results[index..], "uv pip compile", UNBOUNDED);
    }
    results
}

/// A warm index: while its answers are fresh, and after they have to be checked again.
fn again(data: &Data) {
    for (what, path, most) in [("max-age=600", "graph/", 0.0), ("max-age=0", "graph-now/", 1.0)] {
        let place = data.place("again");
        place.write("authority.pem", AUTHORITY);
        let authority = place.join("authority.pem");
        let port = delay::serve(data.web.tls_port, ROUND_TRIP);
        prepare(data, &place, 300, &format!("https://localhost:{port}/{path}"));
        run(&mut resolve(&place, &authority));
        let again = data.traffic(|| run(&mut resolve(&place, &authority)));
        println!("\n#### Resolving 300 requirements again, with `{what}`\n");
        println!("- {} requests, {} bytes", again.requests, again.bytes);
        let work = format!("freshness of a warm index, `{what}`");
        data.standing.figure(&work, Some(again.requests as f64), "requests", bounds(most, most));
        let contestants = [Contestant {
            name: "mu resolve",
            prepare: Box::new(|| {}),
            command: Box::new(|| resolve(&place, &authority)),
        }];
        let results = in_turns(data.rounds.min(5), &contestants);
        report::times(&format!("resolve 300, warm, `{what}`, 20 ms round trip"), &results);
    }
}
