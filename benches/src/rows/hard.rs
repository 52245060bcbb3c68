//! Sets where most newest versions do not fit together, against uv, and pubgrub by itself.

use crate::data::{Data, Place};
use crate::graph::{Dependency, text};
use crate::hard::{Set, pubgrub_alone, sets};
use crate::hub;
use crate::measure::{Contestant, in_turns, run};
use crate::peers::{self, python_name};
use crate::report::{self, bounds};
use crate::rows::resolve::{uv_compile, versions_read};

pub(crate) fn measure(data: &Data) {
    for set in sets() {
        let title = format!("hard: {}", set.name);
        let slug = set.name.replace(' ', "-");
        let served = data.folder.join("served").join(&slug);
        hub::write_graph(&served, &set.packages);
        peers::write_simple(&served, &set.packages);
        let place = data.place(&slug);
        prepare(&place, &set, &slug);
        let resolve = || place.mu(&["resolve"]);
        run(&mut resolve());
        let read = versions_read(place.mu(&["resolve", "-v"]));
        let (alone, time) = pubgrub_alone(&set);
        println!("\n#### {title}\n");
        println!("- pubgrub alone reads {alone} versions, in {time:.1} ms; mu reads {read:?}");
        let ratio = read.map(|read| read / alone as f64);
        let work = format!("{title}: versions read, against pubgrub's own");
        data.standing.figure(&work, ratio, "times", bounds(1.2, 1.0));
        let mut contestants = vec![Contestant {
            name: "mu resolve",
            prepare: Box::new(|| {}),
            command: Box::new(resolve),
        }];
        if let Some(uv) = &data.uv {
            let index = data.web.url(&format!("{slug}/simple/"));
            contestants.push(uv_compile(uv, &place, index));
        }
        let results = in_turns(data.rounds, &contestants);
        report::times(&format!("{title}, warm"), &results);
        data.standing.ratio(&title, &results, "uv pip compile", bounds(0.30, 0.20));
    }
}

fn prepare(place: &Place<'_>, set: &Set, slug: &str) {
    let name = |root: &Dependency| &set.packages[root.package].name;
    let references: Vec<String> = set
        .roots
        .iter()
        .map(|root| format!("\"{}#>={} <{}\"", name(root), text(root.least), text(root.before)))
        .collect();
    place.write_workspace(&format!("{slug}/"), &references);
    let lines: String = set
        .roots
        .iter()
        .map(|root| {
            let name = python_name(name(root));
            format!("{name}>={},<{}\n", text(root.least), text(root.before))
        })
        .collect();
    place.write("requirements.in", &lines);
}
