//! A package in a Git repository, by tag.

use std::fs;

use crate::data::Data;
use crate::measure::{Contestant, calls, in_turns, peak_memory, remove, run};
use crate::report::{self, bounds};
use crate::repository::TAG;

pub(crate) fn measure(data: &Data) {
    let place = data.place("git");
    let url = format!("http://127.0.0.1:{}/bench.git", data.backend.port);
    place.write_workspace("hub/", &[format!("\"git+{url}#{TAG}\"")]);
    let get = || place.mu(&["get"]);
    let forget = || {
        remove(&place.join("cache"));
        remove(&place.join("work/.mu/packs"));
        let _ = fs::remove_file(place.join("work/Mu.lock"));
    };
    let requests = |work: &dyn Fn()| {
        let before = data.backend.requests();
        work();
        data.backend.requests() - before
    };
    println!("\n#### Git: counts\n");
    println!("- by tag, cold, no lock: {} requests", requests(&|| run(&mut get())));
    remove(&place.join("work/.mu/packs"));
    let asked = requests(&|| run(&mut get()));
    println!("- the tree in the store: {asked} requests");
    let title = "Git, the tree in the store: requests";
    data.standing.figure(title, Some(asked as f64), "requests", bounds(0.0, 0.0));
    remove(&place.join("work/.mu/packs"));
    report::calls("the tree in the store", calls(&get(), &place.folder).as_ref());
    forget();
    report::memory("cold", peak_memory(&get(), &place.folder));
    let results = in_turns(
        data.rounds,
        &[
            Contestant { name: "mu get", prepare: Box::new(forget), command: Box::new(get) },
            Contestant {
                name: "git fetch --depth 1",
                prepare: Box::new(|| remove(&place.join("floor"))),
                command: Box::new(|| {
                    place.shell(&format!(
                        "git init -q floor && git -C floor fetch -q --depth 1 {url} refs/tags/{TAG}"
                    ))
                }),
            },
        ],
    );
    report::times("Git by tag, cold", &results);
    data.standing.ratio("Git by tag, cold", &results, "git fetch --depth 1", bounds(1.15, 1.0));
    let results = in_turns(
        data.rounds,
        &[Contestant {
            name: "mu get, the tree in the store",
            prepare: Box::new(|| remove(&place.join("work/.mu/packs"))),
            command: Box::new(get),
        }],
    );
    report::times("Git, the tree in the store", &results);
}
