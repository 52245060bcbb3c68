//! How much `mu hub serve` serves, compared with nginx and the same files, and whether its memory stays
//! constant.

use std::process::Command;

use crate::data::Data;
use crate::measure::find;
use crate::report::{UNBOUNDED, bounds};
use crate::rows::resolve::said_number;
use crate::served::Served;
use crate::web::{Web, free_port};

/// How long each kind of file is asked for.
const SECONDS: &str = "5s";

/// After how many requests the memory is looked at again.
const MANY: f64 = 1_000_000.0;

pub(crate) fn measure(data: &Data) {
    println!("\n#### Load: requests a second, 32 connections\n");
    let Some(wrk) = find("wrk") else {
        println!("not measured: wrk is not installed");
        return data.standing.figure("index files a second", None, "", UNBOUNDED);
    };
    let folder = data.folder.join("load");
    let web = Web::serve(&data.folder.join("served"), &folder, free_port()).expect("nginx listens");
    let hub = data.folder.join("served/hub");
    let served = Served::start(&data.mu, &hub, &folder.join("served.log"));
    let load = |url: &str, duration: &str| {
        let mut command = Command::new(&wrk);
        command.args(["-t1", "-c32", "--timeout", "30s", "-d", duration, url]);
        let output = command.output().expect("wrk can be started");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!said.contains("Non-2xx"), "{url}:\n{said}");
        let rate = said_number(&said, "Requests/sec:").expect("wrk says it");
        let requests = said.lines().find_map(|line| line.split_once(" requests in "));
        let requests = requests.and_then(|(count, _)| count.trim().parse::<f64>().ok());
        (rate, requests.expect("wrk says it"))
    };
    println!("| | mu hub serve | nginx, one process | ratio |");
    println!("| --- | ---: | ---: | ---: |");
    for (what, path) in [
        ("hub.json", "hub.json"),
        ("index file", "index/small/pack-001.jsonl"),
        ("archive, small", "packs/small/pack-001/pack-001-1.0.0.tgz"),
        ("archive, large", "packs/large/pack-001/pack-001-1.0.0.tgz"),
    ] {
        let (mut own, mut nginx) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            own.push(load(&served.url(path), SECONDS).0);
            nginx.push(load(&web.url(&format!("hub/{path}")), SECONDS).0);
        }
        own.sort_by(f64::total_cmp);
        nginx.sort_by(f64::total_cmp);
        println!("| {what} | {:.0} | {:.0} | {:.2} |", own[1], nginx[1], own[1] / nginx[1]);
        let ratio = Some(own[1] / nginx[1]);
        data.standing.figure(
            &format!("{what}: a second, against nginx"),
            ratio,
            "times",
            UNBOUNDED,
        );
    }
    let Some(before) = served.memory() else { return };
    let mut asked = 0.0;
    while asked < MANY {
        asked += load(&served.url("index/small/pack-001.jsonl"), "20s").1;
    }
    let after = served.memory().unwrap_or_default();
    println!("\n- memory: {before:.1} MiB, after {asked:.0} more requests {after:.1} MiB");
    let work = "memory of the server after a million requests, against before";
    data.standing.figure(work, Some(after / before), "times", bounds(1.25, 1.1));
}
