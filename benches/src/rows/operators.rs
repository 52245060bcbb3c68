//! Choosing from a catalog of 1,000 operator bundles: read for the first time, and again.

use std::fmt::Write as _;
use std::process::Command;

use crate::data::{Data, Place};
use crate::hub::write;
use crate::measure::{Contestant, in_turns, remove};
use crate::random::Random;
use crate::report::{self, bounds};

const PACKAGES: usize = 50;
const VERSIONS: usize = 20;

/// What reads the catalog, and does nothing else.
const PARSE: &str = "a plain parse by the same reader";

/// How long the excerpt of what a bundle says is, in bytes: catalogs are mostly made of these.
const EXCERPT: usize = 8_000;

pub(crate) fn measure(data: &Data) {
    let place = data.place("operators");
    write(&place.join("catalog/catalog.yaml"), catalog().as_bytes());
    place.write_workspace("operators/", &[]);
    place.write(
        "work/.mu/workspace.yaml",
        &format!(
            "registries:\n  operators.example/: {{provider: olm, url: {}}}\n",
            place.join("catalog").display()
        ),
    );
    let resolve = || place.mu(&["resolve", "operators.example/p0"]);
    let forget = |place: &Place<'_>| remove(&place.join("cache"));
    let own = std::env::current_exe().expect("a process knows its program");
    let parse = || {
        let mut command = Command::new(&own);
        command.arg("--read-catalog").arg(place.join("catalog/catalog.yaml"));
        command
    };
    let contestants = [
        Contestant {
            name: "mu resolve, again",
            prepare: Box::new(|| {}),
            command: Box::new(resolve),
        },
        Contestant {
            name: "mu resolve, first",
            prepare: Box::new(|| forget(&place)),
            command: Box::new(resolve),
        },
        Contestant { name: PARSE, prepare: Box::new(|| {}), command: Box::new(parse) },
    ];
    // What is first empties the cache of what comes again.
    let again = in_turns(data.rounds, &contestants[..1]);
    let first = in_turns(data.rounds, &contestants[1..]);
    report::times("`mu resolve` in a catalog of 1,000 operator bundles, again", &again);
    report::times("`mu resolve` in a catalog of 1,000 operator bundles, first", &first);
    let work = "choose from a catalog of 1,000 operator bundles, first";
    data.standing.ratio(work, &first, PARSE, bounds(2.0, 1.3));
    let ([again], [first, _]) = (&again[..], &first[..]) else { return };
    let work = "choose from a catalog of 1,000 operator bundles, again";
    data.standing.figure(work, Some(again.median()), "ms", bounds(100.0, 30.0));
    let work = "choose from a catalog of 1,000 operator bundles, first";
    data.standing.figure(work, Some(first.median()), "ms", bounds(2_000.0, 500.0));
}

/// Packages that require the kinds of each other in a chain, each version with a step from the one before.
fn catalog() -> String {
    let mut random = Random::new(11);
    let mut text = String::new();
    for package in 0..PACKAGES {
        let entries: String = (0..VERSIONS)
            .map(|minor| {
                let before = minor.checked_sub(1);
                let replaces = before.map(|one| format!(", replaces: p{package}.v1.{one}.0"));
                format!("- {{name: p{package}.v1.{minor}.0{}}}\n", replaces.unwrap_or_default())
            })
            .collect();
        writeln!(text, "---\nschema: olm.package\nname: p{package}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: p{package}\nname: stable\nentries:\n{entries}").expect("memory takes everything");
        for minor in 0..VERSIONS {
            let excerpt = String::from_utf8(random.text(EXCERPT)).expect("is ASCII");
            let excerpt = excerpt.replace('\n', " ").replace('\'', "");
            let requires = match package + 1 {
                PACKAGES => String::new(),
                next => format!(
                    "- {{type: olm.gvk.required, value: {{group: p{next}.example, version: v1, kind: Kind}}}}\n"
                ),
            };
            writeln!(text, "---\nschema: olm.bundle\npackage: p{package}\nname: p{package}.v1.{minor}.0\nproperties:\n- {{type: olm.package, value: {{packageName: p{package}, version: 1.{minor}.0}}}}\n- {{type: olm.gvk, value: {{group: p{package}.example, version: v1, kind: Kind}}}}\n{requires}- type: olm.csv.metadata\n  value: {{description: '{excerpt}'}}").expect("memory takes everything");
        }
    }
    text
}
